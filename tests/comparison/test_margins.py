"""Verdicts and margins: which difference is too small to matter, and what the tests support."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats import multitest
from statsmodels.stats import weightstats as descriptive
from user_values import VALUE, compared, hall, judged, one, sample

import rankframe as rf


def near(seed, users, shift, deviation=0.1):
    """Two systems whose differences have this mean and deviation, exactly."""
    rng = np.random.default_rng(seed)
    change = rng.normal(size=users)
    change = (change - change.mean()) / change.std(ddof=1) * deviation + shift
    old = rng.uniform(size=users)
    return old, old + change


def wide(old, new, **options):
    return one(old, new, **{"resamples": 2000, **options})


# ------------------------------------------------------------------ p-values


@pytest.mark.parametrize("shift", [-0.12, -0.05, 0.0, 0.02, 0.11])
@pytest.mark.parametrize("users", [3, 20, 200])
def test_equivalence_is_that_of_statsmodels(users, shift):
    old, new = near(users, users, shift)
    got = wide(old, new, margin=0.05)
    if users < 20:  # too few for t, and no range bounds the rest
        assert got["p_equivalent"] is None
        return
    p, *_ = descriptive.DescrStatsW(new - old).ttost_mean(-0.05, 0.05)
    p = max(p, hall(new - old + 0.05), hall(old - new + 0.05))  # for skewed differences
    assert got["p_equivalent"] == pytest.approx(p, abs=1e-10)


@pytest.mark.parametrize("shift", [-0.12, -0.05, 0.0, 0.02, 0.11])
def test_p_values_of_one_side_are_scipys(shift):
    """VALUE is nobody's metric, and F1 is better where E is worse."""
    old, new = near(1, 30, shift)
    above = stats.ttest_1samp(new - old + 0.05, 0, alternative="greater").pvalue
    below = stats.ttest_1samp(new - old - 0.05, 0, alternative="less").pvalue
    above, below = max(above, hall(new - old + 0.05)), max(below, hall(old - new + 0.05))
    got = wide(old, new, margin=0.05)
    assert got["p_equivalent"] == pytest.approx(max(above, below), abs=1e-12)
    assert got["p_not_worse"] is None


RUN = pl.DataFrame(
    {
        "model": np.repeat(["a", "b"], 300),
        "user": np.tile(np.repeat(np.arange(60), 5), 2),
        "item": np.random.default_rng(1)
        .permuted(np.tile(np.arange(9), (120, 1)), axis=1)[:, :5]
        .ravel(),
        "rank": np.tile(np.arange(1, 6), 120),
    }
)
TRUTH = pl.DataFrame({"user": np.repeat(np.arange(60), 2), "item": np.tile([0, 1], 60)})


def test_worse_is_higher_where_lower_is_better():
    """E is 1 − F1, so a gain of one is a loss of the other."""
    got = RUN.rank.compare(
        "f1@3", "e@3", truth=TRUTH, baseline="a", margin=0.09, correction=None, details=True
    )
    f, e = got.rows(named=True)
    assert f["difference"] == pytest.approx(-e["difference"])
    for name in ("p_equivalent", "p_not_worse", "p_value"):
        assert f[name] == pytest.approx(e[name], abs=1e-12)
    decided = rf.gate(RUN, "f1@3", truth=TRUTH, baseline="a", margin=0.09)
    assert decided["passed"].item() is (f["p_not_worse"] < 0.025)


def test_direction_is_known_under_ties_and_of_renamed_metrics():
    tied = RUN.with_columns(tied=1)
    label = {"e@3": 0.1}
    plain = RUN.rank.compare("e@3", truth=TRUTH, margin=label)
    assert plain["p_not_worse"].null_count() == 0
    got = tied.rank.compare("e@3", truth=TRUTH, margin=label)
    assert got["p_not_worse"].to_list() == pytest.approx(plain["p_not_worse"].to_list())
    renamed = RUN.rank.compare(rf.metrics.e_at(3).alias("mine"), truth=TRUTH, margin={"mine": 0.1})
    assert renamed["p_not_worse"].to_list() == plain["p_not_worse"].to_list()


@pytest.mark.parametrize("label", ["judged@3", "unjudged@3"])
def test_metric_without_a_direction_has_nothing_worse(label):
    got = RUN.rank.compare(label, "rr", truth=TRUTH, margin=0.5, details=True).rows(named=True)
    assert got[0]["p_not_worse"] is None
    assert got[0]["p_equivalent"] < 0.05
    assert got[1]["p_not_worse"] is not None


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_margin_is_met_as_the_interval_meets_it(confidence):
    """Equivalent: the interval is within the margin."""
    table = judged(*sample(1, 500)).with_columns(segment=pl.col("user") // 25)
    options = {"by": ["model", "segment"], "baseline": "m0", "correction": None}
    interval = rf.compare(table, VALUE, confidence=confidence, **options, details=True)
    met = 0
    for margin in (0.4, 0.8):
        got = rf.compare(
            table, VALUE, confidence=confidence, margin=margin, **options, details=True
        )
        inside = (interval["ci_low"] > -margin) & (interval["ci_high"] < margin)
        met_by_p = got["p_equivalent"] < round((1 - confidence) / 2, 12)
        assert not (met_by_p & ~inside).any()  # Hall's p may be larger
        assert met_by_p.to_list() == (got["verdict"] == "equivalent").to_list()
        met += met_by_p.sum()
    assert 3 < met < 38


def test_margin_is_not_tested_where_hardly_any_user_changes():
    """One of 200 users gains a hit: the others' zeros have no spread to judge by."""
    old, new = np.zeros(200), np.eye(200)[0]
    got = wide(old, new, margin=0.015)
    assert (got["p_equivalent"], got["p_not_worse"]) == (None, None)
    assert got["verdict"] == "undecided"
    why = "margin not tested: 1 of 200 users differ, too few for the test, and the metric has "
    assert got["note"].endswith(f"{why}no finite range, which would bound the loss")
    assert got["note"].startswith("exact test: only 1 user differs; ")
    few = wide(old, np.repeat([0.0, 1.0], [184, 16]), margin=0.1)
    assert "margin not tested: 16 of 200 users differ" in few["note"]
    many = np.repeat([0.9, 0.0], [20, 180])
    assert wide(old, many, margin=0.2)["p_equivalent"] is not None
    nothing = wide(old, old, margin=0.1)
    assert nothing["p_equivalent"] is None
    assert nothing["note"].startswith("no user differs; margin not tested: 0 of 200 users differ")


@pytest.mark.parametrize("correction", ["holm", "bh"])
def test_family_is_corrected_over_metrics_and_pairs(correction):
    third = RUN.filter(model="b").with_columns(model=pl.lit("c"), item=(pl.col("item") + 1) % 9)
    table = pl.concat([RUN, third])
    metrics = ("rr", "f1@3", "e@3", "judged@3", "hit@1")
    options = {"truth": TRUTH, "margin": {"rr": 0.2, "f1@3": 0.1, "e@3": 0.1, "judged@3": 0.2}}
    raw = table.rank.compare(*metrics, correction=None, **options, details=True)
    got = table.rank.compare(*metrics, correction=correction, **options, details=True)
    method = "fdr_bh" if correction == "bh" else correction
    for name, nulls in (("p_equivalent", 3), ("p_not_worse", 6)):
        assert raw[name].null_count() == got[name].null_count() == nulls
        expected = multitest.multipletests(raw[name].drop_nulls().to_numpy(), method=method)[1]
        assert got[name].drop_nulls().to_list() == pytest.approx(expected.tolist(), abs=1e-12)


# ------------------------------------------------------------------ verdicts


def test_verdicts_by_precedence():
    """Differences of deviation 0.1 on 100 users: the standard error is 0.01."""
    for shift, margin, verdict in [
        (0.0, None, "undecided"),
        (0.03, None, "higher"),
        (-0.03, None, "lower"),
        (0.0, 0.1, "equivalent"),
        (0.03, 0.1, "equivalent"),  # significant, and too small to matter
        (0.03, 0.04, "higher"),
        (-0.03, 0.04, "lower"),
        (0.0, 0.01, "undecided"),
    ]:
        assert wide(*near(2, 100, shift), margin=margin)["verdict"] == verdict


def test_change_is_better_or_worse_where_the_metric_has_a_direction():
    """The same change of ranks, in the words of four metrics."""
    users = range(40)
    ranks = {"old": [3 + u % 2 for u in users], "new": [1 + u % 3 // 2 for u in users]}
    runs = {
        name: pl.DataFrame({"user": users, "item": 7, "rank": of_users})
        for name, of_users in ranks.items()
    }
    truth = pl.DataFrame({"user": users, "item": 7})
    own = pl.col("rank").min().alias("own")
    options = {"truth": truth, "baseline": "old"}
    got = rf.compare(runs, "rr", "mean_hit_rank", own, **options, details=True)
    assert got["verdict"].to_list() == ["better", "better", "lower"]
    back = rf.compare(runs, "rr", "mean_hit_rank", own, truth=truth, baseline="new", details=True)
    assert back["verdict"].to_list() == ["worse", "worse", "higher"]


def test_verdict_not_worse_and_not_better_either():
    """A gain of 1.5 standard errors with a margin of 1: above −margin, and not below it."""
    values = RUN.rank.per_user("rr", truth=TRUTH, by="model")
    old, new = (part["rr"].to_numpy() for part in values.partition_by("model"))
    error = (new - old).std(ddof=1) / np.sqrt(60)
    margin = float(abs((new - old).mean()) + 0.9 * error)
    better, worse = ("a", "b") if new.mean() < old.mean() else ("b", "a")
    options = {"truth": TRUTH, "margin": margin, "confidence": 0.95}
    got = RUN.rank.compare("rr", baseline=worse, **options)
    assert got.select("model", "verdict").row(0) == (better, "not worse")
    got = RUN.rank.compare("rr", baseline=better, **options)
    assert got.select("model", "verdict").row(0) == (worse, "undecided")


def test_verdict_reads_the_corrected_p_values():
    values = sample(13, 30, systems=5, spread=3.0)
    got = compared(*values, margin=0.8, correction="holm")
    plain = compared(*values, margin=0.8, correction=None)
    assert (got["p_adjusted"] >= plain["p_adjusted"]).all()
    changed = got["verdict"] != plain["verdict"]
    assert changed.any()
    assert set(got.filter(changed)["verdict"]) == {"undecided"}


def test_verdict_needs_a_test():
    for old, new in [([1.0], [2.0]), ([1.0, 2.0], [1.0, 2.0]), ([None, 1.0], [1.0, None])]:
        for margin in (None, 0.5):
            got = one(old, new, margin=margin)
            told = [got.get(name) for name in ("verdict", "p_equivalent", "p_not_worse")]
            assert told == [None, None, None]
            assert got["note"] is not None


def test_columns_of_a_margin_are_absent_without_it():
    got = compared(*sample(4, 20, systems=3))
    assert not {"p_equivalent", "p_not_worse"} & {*got.columns}
    assert set(got["verdict"]) <= {"higher", "lower", "undecided"}


@pytest.mark.parametrize("test", ["randomization", "max_t"])
def test_verdicts_of_all_tests(test):
    old, new = sample(3, 40)
    assert wide(old, new + 3, test=test)["verdict"] == "higher"
    assert wide(old, new - 3, test=test)["verdict"] == "lower"
    assert wide(old, old + np.tile([0.1, -0.1], 20), test=test)["verdict"] == "undecided"


def test_margin_may_be_any_number():
    old, new = near(1, 30, 0.02)
    expected = one(old, new, margin=0.125)
    for margin in (Fraction(1, 8), np.float32(0.125), {"value": Fraction(1, 8)}):
        assert one(old, new, margin=margin) == expected
    assert one(old, new, margin=1)["p_equivalent"] < 1e-6


@pytest.mark.thorough  # the p-values alone: test_simulations
def test_false_verdicts_are_as_rare_as_said():
    """Segments of 20 users: true differences of 0, and at either end of the margin."""
    rng = np.random.default_rng(8)
    old = rng.beta(2, 3, 6000)
    wrong = {0.0: ["higher", "lower"], 0.05: ["equivalent"], -0.05: ["equivalent"]}
    for shift, verdicts in wrong.items():
        table = judged(old, old + shift + rng.normal(0, 0.06, 6000))
        table = table.with_columns(segment=pl.col("user") // 20)
        options = {"by": ["model", "segment"], "baseline": "m0", "correction": None}
        got = table.rank.compare(VALUE, margin=0.05 if shift else 0.001, **options, details=True)
        # 300 segments: 5 %, or 2.5 % for margins, and three standard errors
        low, high = (0.003, 0.052) if shift else (0.013, 0.088)
        assert low <= got["verdict"].is_in(verdicts).mean() <= high


# ------------------------------------------------------------------ every way in


def test_margins_of_metrics():
    options = {"truth": TRUTH, "margin": {"rr": 0.5}}
    got = RUN.rank.compare("rr", "hit@1", **options, details=True)
    assert got["p_equivalent"].is_null().to_list() == [False, True]
    lazy = RUN.lazy().rank.compare("rr", "hit@1", **options, details=True)
    assert lazy.collect_schema() == got.schema
    assert lazy.collect().equals(got)
    whole = RUN.rank.compare("rr", "hit@1", truth=TRUTH, margin=0.99, details=True)
    assert whole["p_equivalent"].null_count() == 0


def test_metrics_of_all_lists_have_no_margin():
    items = pl.DataFrame({"item": range(9)})
    options = {"truth": TRUTH, "items": items}
    got = RUN.rank.compare("coverage@1", "rr", margin={"rr": 0.5}, **options, details=True)
    assert got["p_equivalent"].is_null().to_list() == [True, False]
    assert got["detectable"].is_null().to_list() == [True, False]
    for margin in (0.5, {"coverage@1": 0.5}):
        with pytest.raises(ValueError, match="'coverage@1' is one number for all lists, which has"):
            RUN.rank.compare("coverage@1", "rr", margin=margin, **options, details=True)


@pytest.mark.parametrize(
    "options",
    [
        {"margin": -0.1},
        {"margin": 0},
        {"margin": float("nan")},
        {"margin": float("inf")},
        {"margin": True},
        {"margin": {"value": -1}},
        {"margin": {"ndgc@10": 0.1}},
        {"margin": 0.1, "test": "randomization"},
        {"margin": 0.1, "test": "max_t"},
    ],
)
def test_bad_margins(options, refused):
    refused(compared, [1.0, 2.0], [3.0, 1.0], **options)


@pytest.mark.parametrize("margin", [0.01, 0.05, "5%"])
@pytest.mark.parametrize(("users", "lost"), [(400, 0), (1000, 1), (1000, 10), (2000, 3), (60, 30)])
def test_compare_and_gate_have_one_rule_for_a_margin(users, lost, margin):
    old = np.ones(users)
    new = np.where(np.arange(users) < lost, 0.5, 1.0)
    values = pl.concat(
        pl.DataFrame({"model": m, "user": range(users), "ndcg@10": v})
        for m, v in (("old", old), ("new", new))
    )
    row = rf.compare(values, "ndcg@10", baseline="old", margin=margin).row(0, named=True)
    decided = rf.gate(values, "ndcg@10", baseline="old", margin=margin)
    assert decided["passed"].item() is bool(row["p_not_worse"] < 0.025)


def test_loss_below_the_margin_is_called_so():
    """Ten of 1,000 lose 0.5: the loss of 0.005 is proved, and below the margin of 0.05."""
    new = np.where(np.arange(1000) < 10, 0.5, 1.0)
    values = pl.concat(
        pl.DataFrame({"model": m, "user": range(1000), "ndcg@10": v})
        for m, v in (("old", np.ones(1000)), ("new", new))
    )
    row = rf.compare(values, "ndcg@10", baseline="old", margin=0.05).row(0, named=True)
    assert row["verdict"] == "worse, by less than the margin"
    share = stats.binom.cdf(10, 1000, 0.05)  # 50 losers of 1 each would be the margin
    assert row["p_not_worse"] == pytest.approx(share, rel=1e-9)
    assert "10 of 1,000 users lose, so the mean loss is at most 0.01831" in row["note"]


def test_users_whom_neither_system_serves_are_no_evidence_for_a_margin():
    """Ten served users and 990 without a list: a test of ten users, in compare and gate."""
    truth = pl.DataFrame({"user": range(1000), "item": "a"})
    run = {
        m: pl.DataFrame({"user": range(10), "item": "a", "rank": ranks})
        for m, ranks in (("old", [1] * 10), ("new", [1] * 9 + [2]))
    }
    of_served = rf.compare(run, "rr", truth=truth.head(10), baseline="old", margin=0.01).row(
        0, named=True
    )
    row = rf.compare(run, "rr", truth=truth, baseline="old", margin=0.01).row(0, named=True)
    assert (row["users"], row["difference"]) == (1000, pytest.approx(-0.0005))
    assert row["p_not_worse"] == of_served["p_not_worse"]
    assert (
        "990 users have no list of either system, and are no evidence for the margin" in row["note"]
    )
    decided = rf.gate(run, "rr", truth=truth, baseline="old", margin=0.01)
    assert not decided["passed"].item()
