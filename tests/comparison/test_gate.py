"""The gate: what fails, what passes, and the exit codes of the command."""

import json
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from commands import said_by
from scipy import stats
from statsmodels.stats import multitest
from user_values import hall

import rankframe as rf
from rankframe._command.main import main

OLD = [1, 1, 2, 1, 2, 3, 1, 1, 2, 1] * 4
#: like the first by chance, and clearly worse
LIKE = [1, 2, 1, 1, 3, 2, 1, 2, 1, 1] * 4
WORSE = [2, 3, 4, 2, 5, 4, 3, 2, 6, 3] * 4
TRUTH = pl.DataFrame({"user": range(40), "item": "a"})


def run(ranks):
    return pl.DataFrame({"user": range(len(ranks)), "rank": ranks, "item": "a"})


RUNS = {"old": run(OLD), "like": run(LIKE), "worse": run(WORSE)}


def gate(frame, *metrics, **options):
    """Gate; what is undecided passes, if nothing else is said."""
    compares = options.get("baseline") is not None or options.get("interval")
    return rf.gate(frame, *metrics, **({"undecided": "pass"} if compares else {}) | options)


def decisions(*metrics, **options):
    frame = gate(RUNS, *metrics, truth=TRUTH, baseline="old", **options)
    return dict(zip(frame["model"], frame["passed"], strict=True))


def interval(ranks):
    change = [1 / new - 1 / old for new, old in zip(ranks, OLD, strict=True)]
    return stats.ttest_1samp(change, 0).confidence_interval(0.95)


def test_gate_decides_by_the_interval():
    low, high = interval(WORSE)
    assert high < 0
    just = -high
    assert decisions("rr") == {"like": True, "worse": False}
    assert decisions("rr", margin=just / 2) == {"like": True, "worse": False}
    assert decisions("rr", margin=just + 1e-6) == {"like": True, "worse": True}
    assert decisions("rr", margin=-low - 1e-6, undecided="fail")["worse"] is False
    assert decisions("rr", margin=-low + 1e-6, undecided="fail")["worse"] is True


def of_values(old, new):
    """Make tables of one value per user."""
    values = {"old": old, "new": new}
    return {m: pl.DataFrame({"user": range(len(v)), "v": v}) for m, v in values.items()}


def test_gate_without_a_margin_decides_as_compare():
    """Of the same users: a gate that undecided passes fails what compare calls worse."""
    random = np.random.default_rng(5)
    verdicts = set()
    for users in range(2, 18, 2):
        old = random.choice([0.2, 0.4, 0.6], users)
        table = of_values(old, old - random.choice([0, 0.1, 0.1, 0.2, -0.1], users))
        options = {"baseline": "old", "higher_is_better": {"v": True}}
        (verdict,) = rf.compare(table, "v", **options)["verdict"]
        for correction in (None, "holm"):
            (got,) = gate(table, "v", correction=correction, **options).rows(named=True)
            assert got["passed"] is (verdict != "worse"), (verdict, got)
            below = gate(table, "v", correction=correction, margin=1e-9, **options)
            assert below["passed"].item() is got["passed"] or not got["passed"]
        verdicts.add(verdict)
    assert {"worse", "undecided"} <= verdicts


def test_margin_fails_only_if_t_and_halls_t_show_it():
    """A few users lose all: t of so skewed losses shows too much, Hall's t less."""
    random = np.random.default_rng(1)
    counts = {False: 0, True: 0}
    for _ in range(24):
        loss = np.where(random.random(60) < 0.5, 0.02, random.exponential(0.3, 60))
        table = of_values(np.full(60, 5.0), 5 - loss)
        options = {"baseline": "old", "higher_is_better": {"v": True}, "margin": 0.1}
        got = gate(table, "v", correction=None, **options)["passed"].item()
        beyond = loss - 0.1
        t = stats.ttest_1samp(beyond, 0).statistic
        skew = stats.skew(beyond)
        h = t + skew * (t**2 / 3 + 1 / 6) / 60**0.5 + skew**2 * t**3 / (27 * 60)
        assert got is not bool(min(t, h) > stats.t.ppf(0.975, 59))
        counts[got] += 1
    assert min(counts.values()) > 2


def test_undecided_systems_fail():
    low, high = interval(LIKE)
    assert low < 0 < high
    assert decisions("rr", undecided="fail", margin=-low - 1e-6)["like"] is False
    assert decisions("rr", undecided="fail", margin=-low + 1e-6)["like"] is True


def test_lower_may_be_better():
    metric = "mean_hit_rank@10"
    assert decisions(metric) == {"like": True, "worse": False}
    frame = gate(RUNS, metric, truth=TRUTH, baseline="worse", margin=0.1, undecided="fail")
    assert frame["passed"].all()
    assert frame["why"].unique().to_list() == ["not worse: interval below 0.1"]
    why = gate(RUNS, metric, truth=TRUTH, baseline="old", margin=0.1, correction=None)
    assert why.filter(model="worse")["why"].item() == "worse: interval above 0.1"


def test_gate_frame():
    frame = gate(RUNS, "rr", "hit@1", truth=TRUTH, baseline="old", margin={"rr": 0.01})
    columns = "model metric baseline users num_left_out margin difference note ci_low ci_high"
    columns += " passed why"
    assert frame.columns == columns.split()
    compared = rf.compare(RUNS, "rr", "hit@1", truth=TRUTH, baseline="old", correction=None)
    for name in ("metric", "model", "baseline", "users", "difference", "ci_low", "ci_high"):
        assert frame[name].equals(compared[name])
    assert frame["margin"].to_list() == [0.01, 0.01, 0, 0]
    named = frame["note"].str.replace(r"^lost most: .*?\)(; |$)", "")
    assert named.replace("", None).equals(compared["note"])
    lost = rf.stats.differences(RUNS, "rr", truth=TRUTH, baseline="old", n=3)
    for row in frame.filter(~pl.col("passed"), metric="rr").iter_rows(named=True):
        users = lost.filter(pl.col("difference") < 0, model=row["model"])
        names = [f"{user} (−{-x:.4f})" for user, x in users.select("user", "difference").rows()]
        assert row["note"].startswith(f"lost most: {', '.join(names)}")
    assert frame["passed"].to_list() == [True, False, True, False]
    like, worse = frame["why"].to_list()[:2]
    assert like == "undecided: -0.01 in interval"
    rough = gate(RUNS, "rr", truth=TRUTH, baseline="old", margin=np.float32(0.01))
    assert rough["why"][0] == like
    assert re.fullmatch(
        r"worse: interval below -0.01, and p = \S+ after Holm's correction for 4 decisions", worse
    )
    assert (
        gate({name: rows.lazy() for name, rows in RUNS.items()}, "rr", truth=TRUTH, baseline="old")
        .collect()
        .height
        == 2
    )


def test_users_who_all_lose_alike_have_the_exact_test():
    """A metric that falls from 1 to 0 for everybody has no spread, and is worse all the same."""
    runs = {"old": run([1] * 40), "same": run([1] * 40), "none": run([2] * 40)}
    for undecided in ("pass", "fail"):
        margin = 0.2 * (undecided == "fail")
        frame = gate(runs, "hit@1", truth=TRUTH, baseline="old", margin=margin, undecided=undecided)
        same, none = frame.select("ci_low", "ci_high", "passed", "why").rows()
        assert none == (None, None, False, "worse: every user differs by the same amount")
        if undecided == "pass":
            assert same == (None, None, True, "not worse: no user differs")


def test_system_without_an_interval_fails():
    """No users, one user who loses, one who is as before: nothing is known, so nothing passes."""
    runs = {name: rows.filter(user=4) for name, rows in RUNS.items()}
    other = runs | {"worse": runs["worse"].with_columns(user=99)}
    for undecided in ("pass", "fail"):
        options = {"baseline": "old", "undecided": undecided, "margin": 0.5}
        frame = gate(runs, "rr", truth=TRUTH.filter(user=4), **options)
        assert frame["passed"].to_list() == [False, False]
        assert frame["why"].to_list() == ["no interval: one user"] * 2
        frame = gate(runs | {"like": runs["old"]}, "rr", truth=TRUTH.filter(user=4), **options)
        assert frame["passed"].to_list() == [False, False]
        frame = gate(other, "rr", truth=TRUTH, users="run", **options).filter(model="worse")
        assert frame["passed"].to_list() == [False]
        assert frame["why"].item() == "no interval: no user has a value in one of the two"


def test_reason_is_not_the_baseline_nor_an_interval_that_is_there():
    runs = {name: rows.head(1) for name, rows in RUNS.items()}
    alone = rf.gate(runs, "rr", truth=TRUTH.head(1), margin=0.5)
    assert alone["why"].to_list() == ["no interval: one user"] * 2
    assert alone["note"].to_list() == [
        "one user; baseline: 'old', the first system",
        "lost most: 0 (−0.5000); one user; baseline: 'old', the first system",
    ]
    values = {"model": ["old"] * 30 + ["new"] * 30, "user": [*range(30)] * 2}
    values = pl.DataFrame(values | {"rr": [0.0] * 30 + [0.1, 0.2] * 15})
    row = rf.gate(values, "rr", baseline="old", margin="1%").row(0, named=True)
    assert row["ci_low"] > 0.1
    assert row["why"] == "cannot be judged: 1% of the baseline's mean, 0, is not above 0"


def test_segment_without_users_does_not_hide_the_others():
    truth = TRUTH.with_columns(country=pl.when(pl.col("user") < 39).then(pl.lit("a")))
    truth = truth.with_columns(pl.col("country").fill_null("b"))
    by = ["model", "country"]
    frame = gate(RUNS, "rr", truth=truth, by=by, baseline="old").filter(model="like")
    assert frame.select("country", "passed").rows() == [("a", True), ("b", False)]
    assert frame["why"].to_list()[1] == "no interval: one user"


def test_gate_counts_users_in_one_group_only():
    runs = {"old": RUNS["old"], "like": RUNS["like"].filter(pl.col("user") < 5)}
    frame = gate(runs, "rr", truth=TRUTH, users="run", baseline="old")
    left_out = "35 of 40 users are left out: they have a value with one system only"
    assert frame.select("users", "num_left_out", "note").rows() == [
        (5, 35, f"exact test: only 3 users differ; {left_out}")
    ]


def test_segments_are_decided_by_themselves():
    truth = TRUTH.with_columns(country=pl.Series(["no", "se"] * 20))
    frame = gate(
        RUNS, "rr", truth=truth, by=["model", "country"], baseline="old", total=True
    ).filter(model="worse")
    assert frame["country"].to_list() == ["no", "se", None]
    assert frame.columns[:3] == ["model", "country", "metric"]


@pytest.mark.parametrize(
    ("metrics", "options"),
    [
        (["rr"], {"baseline": "x"}),
        (["rr"], {"undecided": "fail"}),
        (["gmap"], {"undecided": "fail"}),
        (["rr"], {"undecided": "fail", "margin": 0.1, "test": "sequential"}),
        (["rr"], {"margin": 0.1, "test": "sequential"}),
        (["rr"], {"at_least": 90}),
        (["rr"], {"at_most": "x"}),
        (["rr"], {"at_least": {"ap": 0.1}}),
        (["rr", "ap"], {"baseline": None, "at_least": {"ap": 0}}),
        (["rr"], {"baseline": None, "at_least": 0, "paired": False}),
        (["rr"], {"baseline": None, "at_least": 0, "test": "max_t"}),
        (["rr"], {"at_least": 0, "test": "sequential"}),
        (["rr"], {"margin": 1}),
        (["rr"], {"margin": 5}),
        (["rr"], {"margin": "100%"}),
        (["rr"], {"margin": "250%"}),
        (["rr"], {"undecided": "maybe"}),
        (["rr"], {"interval": True}),
        (["rr"], {"baseline": None, "at_least": 0, "undecided": "pass"}),
        (["rr"], {"baseline": None, "at_least": 0, "confidence": 0.9}),
        (["rr"], {"test": "randomization"}),
        (["rr"], {"margin": -0.1}),
        (["rr"], {"margin": {"ap": 0.1}}),
        (["num_relevant"], {}),
        ([pl.col("rank").min().alias("x")], {}),
        (["personalization@2"], {}),
        (["gmap"], {"margin": 0.1}),
    ],
)
def test_gate_refuses_what_it_cannot_decide(metrics, options, refused):
    refused(gate, RUNS, *metrics, truth=TRUTH, **{"baseline": "old", **options})


# ------------------------------------------------------------------ what a gate promises


def hits(lost, users):
    """Per item of ``lost``, a run in which so many of the users lose their hit; and the truth."""
    rows = pl.DataFrame({"run": lost}).join(pl.DataFrame({"user": range(users)}), how="cross")
    loses = pl.col("user") < pl.col("run")
    new = rows.with_columns(model=pl.lit("new"), rank=pl.when(loses).then(2).otherwise(1))
    old = rows.with_columns(model=pl.lit("old"), rank=pl.lit(1))
    both = pl.concat([new, old]).with_columns(item=pl.lit("a"))
    return both, rows.select("user", item=pl.lit("a")).unique()


def surely(lost, users, margin, metric="hit@1", **options):
    table, truth = hits(lost, users)
    options = {"by": ["model", "run"], "baseline": "old", "undecided": "fail", **options}
    return gate(table, metric, truth=truth, margin=margin, **options)


@pytest.mark.parametrize(
    ("users", "margin"),
    [(20, 0.05), (50, 0.02), (100, 0.02), (300, 0.01), (1000, 0.05), (5000, 0.02)],
)
def test_system_that_is_worse_by_the_margin_passes_in_one_case_of_forty(users, margin):
    """Each user loses with the probability of the margin, and none gains: the exact probability."""
    number = stats.binom(users, margin)
    least, most = (int(count) for count in number.ppf([0.005, 0.1]))
    lost = sorted({0, *range(least, most + 2)})
    passed = surely(lost, users, margin)["passed"].to_numpy()
    assert (np.diff(passed.astype(int)) <= 0).all()
    assert not passed[-1]
    most = max((count for count, passes in zip(lost, passed, strict=True) if passes), default=-1)
    assert number.cdf(most) <= 0.025
    assert (most >= 0) == (users >= 1000)
    if users >= 1000:  # the bound is not wider than it must be
        assert number.cdf(most + 1) > 0.025


def test_system_that_loses_nothing_may_pass():
    assert surely([0], 400, 0.01)["passed"].to_list() == [True]
    few = surely([0], 300, 0.01)
    assert few["passed"].to_list() == [False]
    why = "undecided: 0 of 300 users lose, so the mean loss is at most 0.01222"
    assert few["why"].to_list() == [why]


@pytest.mark.parametrize("lost", [0, 1, 7, 19, 30])
def test_bound_is_clopper_and_pearsons(lost):
    most = stats.binomtest(lost, 500).proportion_ci(0.95, "exact").high
    for margin, passed in [(most + 1e-6, True), (most - 1e-6, False)]:
        got = surely([lost], 500, margin)
        assert got["passed"].item() is passed
        assert got["why"].item().endswith(f"at most {most:.4g}")
        lower = surely([lost], 500, margin, metric="e@1")  # 1 − hit@1
        assert lower["passed"].item() is passed
        assert lower["difference"].item() == pytest.approx(-got["difference"].item())


def test_p_value_decides_where_enough_users_differ():
    """Twenty of 60 gain or lose: Student's one-sided test, at (1 − confidence)/2."""
    rng = np.random.default_rng(4)
    old = rng.integers(1, 4, 60)
    new = np.where(np.arange(60) < 20, old % 3 + 1, old)
    change = 1 / new - 1 / old
    assert np.count_nonzero(change) == 20
    low = stats.ttest_1samp(change, 0).confidence_interval(0.9).low
    truth = pl.DataFrame({"user": range(60), "item": "a"})
    for margin, passed in [(-low + 1e-6, True), (-low - 1e-6, False)]:
        options = {"margin": margin, "undecided": "fail", "confidence": 0.9}
        runs = {"old": run(old), "new": run(new)}
        got = gate(runs, "rr", truth=truth, baseline="old", **options)
        assert got["passed"].item() is passed
        few = {"old": run(old), "new": run(np.where(np.arange(60) < 19, new, old))}
        bound = gate(few, "rr", truth=truth, baseline="old", **options)
        assert bound["why"].item().startswith("undecided: ")
        assert "of 60 users lose, so the mean loss is at most" in bound["why"].item()


def noisy_losses(users, margin, runs=150):
    """Draw gains of about 0, but −1 for a share of the users; so their mean is −margin."""
    rng = np.random.default_rng(users)
    gains = np.where(rng.random((runs, users)) < margin, -1, rng.normal(0, 1e-3, (runs, users)))
    keys = {"run": np.repeat(np.arange(runs), users), "user": np.tile(np.arange(users), runs)}
    old = pl.DataFrame({**keys, "model": "old", "value": 1.0})
    return pl.concat([old, old.with_columns(model=pl.lit("new"), value=1 + gains.ravel())])


@pytest.mark.parametrize(("users", "margin"), [(50, 0.02), (300, 0.01)])
@pytest.mark.parametrize("kind", ["paired", "unpaired", "floor"])
def test_rare_losses_are_not_hidden_by_noise(users, margin, kind):
    """By t alone, .37 and .15 of the runs pass; goal .025, here two errors more."""
    values = noisy_losses(users, margin)
    options = {
        "paired": {"baseline": "old", "margin": margin},
        "unpaired": {"baseline": "old", "margin": margin, "paired": False},
        "floor": {"at_least": 1 - margin, "interval": True},
    }[kind]
    if kind == "floor":
        values = values.filter(model="new")
    value_range = {"value": (0, 2) if kind == "floor" else (0.0, 1.01)}
    passed = gate(
        values,
        "value",
        by=["model", "run"],
        undecided="fail",
        higher_is_better={"value": True},
        value_range=value_range,
        **options,
    )["passed"]
    assert passed.mean() <= 0.025 + 2 * (0.025 * 0.975 / 150) ** 0.5


def test_gate_says_what_is_too_rare_to_be_seen():
    """Of 300 users without a large loss, 1.22 % may have one; of 400, 0.92 %."""
    for users, passed in [(300, False), (400, True)]:
        rng = np.random.default_rng(1)
        old = pl.DataFrame({"user": range(users), "model": "old", "value": 0.5})
        new = old.with_columns(model=pl.lit("new"), value=0.5 + rng.normal(0, 1e-3, users))
        got = gate(
            pl.concat([old, new]),
            "value",
            baseline="old",
            margin=0.01,
            undecided="fail",
            higher_is_better={"value": True},
            value_range={"value": (0, 1)},
        )
        assert got["passed"].item() is passed
        if not passed:
            assert got["why"].item() == (
                "undecided: 0 of 300 users lose far more than the others, but up to 1% of all may; "
                "an equal system passes 0 times in 100 with 300 users: 380 are needed for 8 in 10"
            )


def test_few_users_who_lose_alike_are_corrected_like_others():
    """The sign test of n users has p = 1/2ⁿ: two users in 20 countries show nothing."""
    ones = pl.DataFrame({"country": [*range(20)] * 2, "user": range(40), "item": "a", "rank": 1})
    country = pl.col("country") < 1
    twos = ones.with_columns(rank=pl.when(country).then(2).otherwise(1))
    truth = ones.select("country", "user", "item")
    options = {"truth": truth, "baseline": "old", "by": ["model", "country"]}
    for correction in ("holm", None):
        got = gate({"old": ones, "new": twos}, "hit@1", correction=correction, **options)
        assert got["passed"].all()
        assert got["why"][0].startswith("undecided: every user differs by the same amount, but p")


def test_metric_without_a_range_is_undecided():
    table, truth = hits([1], 1000)
    got = gate(table, "mean_hit_rank@5", truth=truth, baseline="old", margin=5.0, undecided="fail")
    assert got["passed"].to_list() == [False]
    assert got["why"].item() == (
        "undecided: 1 of 1,000 users differ, too few for the test, and the metric has no finite "
        "range, which would bound the loss"
    )


def test_clusters_and_weights_are_counted():
    table, truth = hits([0], 400)
    table = table.with_columns(
        customer=pl.col("user") // 2, even=1.0, uneven=pl.col("user") % 2 * 9.0 + 1
    )
    options = {"by": ["model", "run"], "baseline": "old", "undecided": "fail"}
    passed = {"cluster": ("customer", 200), "weights": ("even", 400)}
    for option, (column, number) in passed.items():
        bound = 1 - 0.025 ** (1 / number)
        got = gate(table, "rr", truth=truth, margin=bound + 1e-6, **options, **{option: column})
        assert got["passed"].to_list() == [True]
        got = gate(table, "rr", truth=truth, margin=bound - 1e-6, **options, **{option: column})
        assert got["passed"].to_list() == [False]
    uneven = gate(table, "rr", truth=truth, margin=0.5, weights="uneven", **options)
    effective = (200 + 2000) ** 2 / (200 + 200 * 100)
    assert uneven["why"].item().endswith(f"at most {1 - 0.025 ** (1 / effective):.4g}")


def test_users_without_a_value_are_left_out_of_a_gate():
    """A new system without a value for those who would lose: the gate passes, and says for whom."""
    old = pl.DataFrame({"model": "old", "user": range(500), "v": 1.0})
    lost = pl.when(pl.col("user") >= 30).then("v").alias("v")
    table = pl.concat([old, old.with_columns(lost, model=pl.lit("new"))])
    options = {"value_range": {"v": (0, 1)}, "higher_is_better": {"v": True}, "undecided": "fail"}
    row = gate(table, "v", baseline="old", margin=0.05, **options).row(0, named=True)
    assert (row["passed"], row["users"], row["num_left_out"]) == (True, 470, 30)
    note = "30 of 500 users are left out: they have"
    assert row["note"].endswith(f"{note} a value with one system only")
    floors = gate(table, "v", at_least=0.9, interval=True, **options)
    assert floors["num_left_out"].to_list() == [30, 0]
    assert floors["note"].str.ends_with(f"{note} no value").to_list() == [True, False]


# ------------------------------------------------------------------ several decisions


@pytest.mark.parametrize("correction", ["holm", None])
def test_default_corrects_for_the_number_of_decisions(correction):
    """One-sided p-values in SciPy, corrected by statsmodels, at (1 − confidence)/2."""
    rng = np.random.default_rng(8)
    countries, users = 20, 20
    old, new = rng.integers(1, 6, (2, countries, users))
    new[:6] += rng.integers(0, 5, (6, users))
    frame = pl.DataFrame({"user": range(countries * users), "item": "a"})
    frame = frame.with_columns(country=pl.col("user") // users)
    runs = {
        name: frame.with_columns(rank=pl.Series(ranks.ravel()))
        for name, ranks in (("old", old), ("new", new))
    }
    options = {"truth": frame, "by": ["model", "country"], "baseline": "old"}
    got = gate(runs, "rr", margin=0.01, correction=correction, **options).sort("country")
    p = [
        stats.ttest_1samp(1 / a - 1 / b + 0.01, 0, alternative="less").pvalue
        for a, b in zip(new, old, strict=True)
    ]
    fails = np.array(p) < 0.025
    if correction:
        fails = multitest.multipletests(p, 0.025, method=correction)[0]
    assert got["passed"].to_list() == (~fails).tolist()
    assert 0 < fails.sum() < 6 + 14 * (correction is None)
    saved = got.filter(pl.col("passed") & (pl.col("ci_high") < -0.01))
    assert saved.is_empty() == (correction is None)
    for why in saved["why"]:
        assert re.fullmatch(
            r"undecided: interval below -0.01, but p = 0.\d+ after \S+ correction for 20 decisions",
            why,
        )


@pytest.mark.parametrize("test", ["max_t", "sequential"])
def test_tests_decide_by_their_interval_or_its_p_value(test):
    got = gate(RUNS, "hit@1", truth=TRUTH, baseline="old", test=test, resamples=2000)
    assert got.filter(model="worse")["passed"].item() is False
    assert got.filter(model="like")["passed"].item() is True


# ------------------------------------------------------------------ floors


@pytest.mark.parametrize("lazy", [False, True])
def test_floor_is_a_requirement(lazy):
    """Seven hits of ten are not 0.9, though an interval of ten users reaches it."""
    seven = run([1] * 7 + [2] * 3)
    truth = TRUTH.filter(pl.col("user") < 10)
    tables = [table.lazy() if lazy else table for table in (seven, truth)]
    for amount, passed, why in [
        (0.9, False, "too low: the mean is 0.7, below 0.9"),
        (0.7, True, "high enough: the mean is 0.7, not below 0.7"),
        (0.70001, False, "too low: the mean is 0.7, below 0.70001"),
    ]:
        got = rf.gate(tables[0], "hit@1", truth=tables[1], at_least=amount).lazy().collect()
        assert got.columns == "metric users num_left_out mean at_least note passed why".split()
        assert got.select("passed", "why").row(0) == (passed, why)
    got = rf.gate(seven, "hit@1", truth=truth, at_most=0.6)
    assert got["why"].item() == "too high: the mean is 0.7, above 0.6"
    assert rf.gate(seven, "hit@1", truth=truth, at_least=0.9, interval=True)["why"].item() == (
        "undecided: 7 of 10 values are 1 or more, so the mean is at least 0.3475"
    )


def test_floor_compares_the_mean_that_evaluate_returns():
    """Weighted and geometric means, too, and each segment with the total."""
    truth = TRUTH.with_columns(country=pl.col("user") % 3, w=pl.col("user") * 1.0)
    for label in ("rr", "gmap(epsilon=0.1)"):
        options = {"truth": truth, "by": ["model", "country"], "weights": "w", "total": True}
        means = rf.evaluate(RUNS, label, **options | {"weights": "w"})
        for amount in sorted(means[label])[4::9]:
            got = rf.gate(RUNS, label, at_least=amount, **options)
            both = got.join(means, on=["model", "country"], nulls_equal=True)
            assert both.height == means.height
            assert both["mean"].to_list() == pytest.approx(both[label].to_list(), rel=1e-12)
            assert (both["passed"] == (both[label] >= amount - 1e-12)).all()


def test_floor_without_a_value_cannot_be_judged(folder):
    got = rf.gate(
        RUNS["old"],
        "mean_hit_rank",
        truth=TRUTH.with_columns(item=pl.lit("b")).vstack(
            pl.DataFrame({"user": [99], "item": ["a"]})
        ),
        at_most=3,
    )
    assert got.select("passed", "why").row(0)[0] is False
    assert got["why"].item().startswith("cannot be judged: ")


def test_floors_of_means_need_no_scipy():
    code = """
import sys
sys.modules["scipy"] = sys.modules["numpy"] = None
import importlib.util, polars as pl, rankframe as rf
found = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name in ("numpy", "scipy") else found(name)
table = pl.DataFrame({"user": [1, 2], "item": [1, 1], "rank": [1, 2], "relevance": [1, 1]})
assert rf.gate(table, "rr", at_least=0.7)["passed"].item() is True
assert rf.gate(table, "rr", at_most=0.7)["passed"].item() is False
try:
    rf.gate(table, "rr", at_least=0.7, interval=True)
except ImportError as error:
    assert "pip install 'rankframe[stats]'" in str(error), error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


def floor(ranks, metric, truth=None, **options):
    frame = run(ranks)
    truth = frame.select("user", "item") if truth is None else truth
    return gate(frame, metric, truth=truth, **{"interval": True} | options)


def test_floor_is_decided_by_the_interval_of_the_mean():
    ranks = [1, 2, 3] * 100
    values = [1 / rank for rank in ranks]
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)

    def p_above(sign, amount):  # the larger one of t and Hall's
        shifted = [sign * (value - amount) for value in values]
        return max(stats.ttest_1samp(shifted, 0, alternative="greater").pvalue, hall(shifted))

    for option, sign in [("at_least", 1), ("at_most", -1)]:
        for amount in np.linspace(low - 0.01, high + 0.01, 11):
            fails, shows = p_above(-sign, amount) < 0.025, p_above(sign, amount) < 0.025
            for undecided, passed in [("pass", not fails), ("fail", shows)]:
                got = floor(ranks, "rr", undecided=undecided, **{option: amount})
                assert got["passed"].to_list() == [passed], (undecided, option, amount)


def test_skewed_floor_gives_few_false_alarms():
    """RR of 30 users, of whom most have little: the true mean is the floor."""
    rng, ranks = np.random.default_rng(0), np.array([1, 2, 5, 20, 50])
    share = np.array([0.1, 0.1, 0.2, 0.3, 0.3])
    mean, drawn = float((share / ranks).sum()), rng.choice(ranks, (200, 30), p=share)
    place = {"run": np.repeat(np.arange(200), 30), "user": np.tile(np.arange(30), 200)}
    rows = pl.DataFrame({**place, "rank": drawn.ravel()}).with_columns(item=pl.lit("a"))
    options = {"truth": rows.select("user", "item").unique(), "by": "run", "correction": None}
    got = gate(rows, "rr", at_least=mean, interval=True, undecided="pass", **options)
    below = stats.ttest_1samp(1 / drawn, mean, axis=1, alternative="less").pvalue
    assert got.height == 200
    assert (~got["passed"]).sum() <= 9 < (below < 0.025).sum()  # promised: 5 of 200


def test_numbers_of_a_floor():
    ranks = [1, 2, 3] * 100
    low, high = stats.ttest_1samp([1 / rank for rank in ranks], 0).confidence_interval(0.95)
    row = floor(ranks, "rr", at_least=0.99).row(0, named=True)
    names = list(row)
    assert names == "metric users num_left_out mean at_least note ci_low ci_high passed why".split()
    assert row["why"] == "too low: interval below 0.99"
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((low, high))
    assert floor(OLD, "rr", at_most=0.1)["why"].item() == "too high: interval above 0.1"
    assert floor(OLD, "rr", at_least=0.1)["why"].item() == "high enough: interval above 0.1"


@pytest.mark.parametrize("missed", [0, 3, 40])
def test_floor_of_hits_is_exact(missed):
    ranks = [2] * missed + [1] * (100 - missed)
    low, high = stats.binomtest(100 - missed, 100).proportion_ci(0.95, "exact")
    got = floor(ranks, "hit@1", at_least=0.1)
    assert got.select("ci_low", "ci_high").row(0) == pytest.approx((low, high))
    for amount, passed in [(low - 1e-6, True), (low + 1e-6, False)]:
        assert floor(ranks, "hit@1", at_least=amount, undecided="fail")["passed"].item() is passed
    if missed:
        for amount, passed in [(high - 1e-6, True), (high + 1e-6, False)]:
            assert floor(ranks, "hit@1", at_least=amount)["passed"].item() is passed


def test_values_without_spread_have_the_exact_bound():
    """Forty users with rr = ½: at most 8.8% may have less, and then 0."""
    share = 1 - 0.025 ** (1 / 40)
    got = floor([2] * 40, "rr", at_least=0.4)
    assert got.select("ci_low", "ci_high").row(0) == pytest.approx(
        (0.5 * (1 - share), 0.5 + 0.5 * share)
    )
    assert floor([2] * 40, "rr", at_least=0.45, undecided="fail")["passed"].item() is True
    few = floor([2] * 30, "rr", at_least=0.45, undecided="fail")
    assert few["passed"].item() is False
    assert (
        few["why"].item().startswith("undecided: 30 of 30 values are 0.5 or more, so the mean is")
    )
    rare = floor([1] * 100 + [3] * 5, "rr", at_least=0.95, undecided="fail")  # t says 0.968 − 0.027
    assert rare["why"].item().startswith("undecided: 100 of 105 values are 1 or more")


def test_floors_and_margins_are_decided_in_one_call():
    floors = {"hit@1": 0.2}
    options = {"truth": TRUTH, "baseline": "old", "margin": {"rr": 0.3}, "at_least": floors}
    got = gate(RUNS, "rr", "hit@1", interval=True, **options)
    assert got.select("metric", "model", "baseline", "at_least").rows() == [
        ("rr", "like", "old", None),
        ("rr", "worse", "old", None),
        ("hit@1", "old", None, 0.2),
        ("hit@1", "like", None, 0.2),
        ("hit@1", "worse", None, 0.2),
    ]
    assert got.filter(model="worse")["passed"].to_list() == [False, False]
    assert got["why"].to_list()[-1].startswith("too low: interval below 0.2, and p = ")
    assert got["passed"].null_count() == 0


def test_segment_in_which_a_system_serves_nobody_does_not_pass():
    truth = TRUTH.with_columns(country=pl.Series(["no", "se"] * 20))
    runs = {name: rows.join(truth, on=["user", "item"]) for name, rows in RUNS.items()}
    runs["like"] = runs["like"].filter(country="no")
    options = {"truth": truth, "by": ["model", "country"], "users": "run", "at_least": 0.1}
    options |= {"undecided": "fail"}
    got = gate(runs, "rr", **options, total=True, interval=True).filter(model="like")
    assert got.select("country", "users", "passed").rows() == [
        ("no", 20, True),
        ("se", 0, False),
        (None, 20, True),
    ]
    assert got["why"].to_list()[1] == "no interval: no user has a value"


def test_floors_need_no_direction():
    few = floor(OLD, "num_relevant", at_most=1.0, undecided="fail")
    assert few["why"].item().startswith("undecided: too few values differ for the test, and no")
    own = pl.col("rank").min().cast(pl.Float64).alias("first")
    assert floor(OLD, own, at_most=1.2)["passed"].item() is False
    ranks = [1, 2, 3] * 100
    logs = np.log([1 / rank + 0.1 for rank in ranks])
    low = np.exp(stats.ttest_1samp(logs, 0).confidence_interval(0.95).low) - 0.1
    for amount, passed in [(low - 1e-6, True), (low + 1e-6, False)]:
        label = "gmap(epsilon=0.1)"
        got = floor(ranks, label, at_least=amount, undecided="fail")
        assert got["passed"].item() is passed


# ------------------------------------------------------------------ the command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, rows in RUNS.items():
        rows.write_csv(f"{name}.csv")
    TRUTH.write_csv("truth.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("old.csv worse.csv truth.csv -m rr --undecided pass", 1),
        ("old.csv worse.csv truth.csv -m rr --margin 0.9 --undecided pass", 0),
        ("old.csv like.csv truth.csv -m rr --undecided pass", 0),
        ("old.csv like.csv truth.csv -m rr --margin 0.01", 1),
        ("old.csv like.csv truth.csv -m rr --margin 0.9", 0),
        ("old.csv same=old.csv truth.csv -m rr --margin 0.2", 0),
        ("old.csv same=old.csv truth.csv -m rr --margin 0.05", 1),
        ("old.csv same=old.csv truth.csv -m rr", 2),
        ("old.csv truth.csv --at-least rr:0.5", 0),
        ("old.csv truth.csv --at-least rr:0.9", 1),
        ("old.csv truth.csv --at-most rr:0.5", 1),
        ("old.csv truth.csv --at-least rr", 2),
        ("old.csv like.csv truth.csv --margin 0.9", 2),
        ("old.csv truth.csv -m rr --margin 0.9", 2),
        ("old.csv like.csv truth.csv -m rr --margin rr:0.9 --margin 0.8", 2),
        ("old.csv truth.csv --at-least rr:90", 2),
        ("old.csv worse.csv truth.csv -m mean_hit_rank@10 --undecided pass", 1),
        ("worse.csv old.csv truth.csv -m mean_hit_rank@10 --undecided pass", 0),
        ("worse.csv old.csv truth.csv -m rr --undecided pass --baseline old", 1),
        ("old.csv worse.csv truth.csv -m rr --margin x --undecided pass", 2),
        ("old.csv worse.csv truth.csv -m rr --margin -1 --undecided pass", 2),
        ("old.csv worse.csv truth.csv -m nothing --undecided pass", 2),
        ("old.csv none.csv truth.csv -m rr --undecided pass", 2),
        ("old.csv worse.csv truth.csv -m rr --margin 5", 2),
        ("old.csv truth.csv --at-least rr:0.7 --interval", 1),
        ("old.csv truth.csv --at-least rr:0.7 --interval --undecided pass", 0),
        ("old.csv truth.csv --at-least rr:0.5 --undecided pass", 2),
        ("old.csv worse.csv truth.csv -m rr --undecided pass --interval", 2),
        ("old.csv worse.csv truth.csv -m rr --undecided pass --test randomization", 2),
    ],
)
def test_exit_codes(folder, capsys, command, code):
    try:
        got = main(["gate", *command.split()])
    except SystemExit as stopped:
        got = stopped.code
    out, err = capsys.readouterr()
    assert got == code
    assert err.count("\n") == 1, err
    assert (out == "") == (code == 2)
    begin = ["rankframe: gate passed: ", "rankframe: gate failed: ", "rankframe: error: "]
    assert err.startswith(begin[code])


def test_confidence_below_a_half_is_an_alpha():
    values = pl.DataFrame({"model": [*"aabb"], "user": [1, 2] * 2, "rr": [0.1, 0.2, 0.3, 0.5]})
    for bound in ({"baseline": "a"}, {"at_least": 0.1, "interval": True}):
        with pytest.raises(ValueError, match=r"confidence=0.05: .* covers the true value, such as"):
            gate(values, "rr", **bound, confidence=0.05)


def test_simultaneous_interval_decides_by_a_margin():
    """Its p-values are of no margin, so undecided='fail' has nothing to test."""
    rng = np.random.default_rng(1)
    old = rng.random(60) / 2 + 0.3
    new = old - 0.1 + rng.normal(0, 0.02, 60)
    values = pl.DataFrame({"model": ["a"] * 60 + ["b"] * 60, "user": [*range(60)] * 2})
    values = values.with_columns(rr=np.concatenate([old, new]))
    options = {"baseline": "a", "test": "max_t", "resamples": 999}
    high = rf.compare(values, "rr", **options)["ci_high"].item()
    for margin, passed in ((-high - 0.001, False), (-high + 0.001, True)):
        decided = gate(values, "rr", **options, margin=margin)
        assert decided["passed"].item() is passed
    with pytest.raises(ValueError, match="undecided='fail': test='max_t' has an interval"):
        gate(values, "rr", **options, margin=0.1, undecided="fail")


def test_gate_says_why_in_one_line(folder, capsys):
    assert main("gate old.csv worse.csv truth.csv -m rr --margin 0.1 --undecided pass".split()) == 1
    low, high = interval(WORSE)
    assert capsys.readouterr().err == (
        "rankframe: gate failed: rr of worse against old: worse: interval below -0.1 (margin 0.1, "
        f"difference {(low + high) / 2:.4f}, interval {low:.4f} to {high:.4f}); "
        "lost most: 1 (−0.6667), 6 (−0.6667), 9 (−0.6667)\n"
    )


def test_several_gates_have_a_line_each(folder, capsys):
    command = "gate old.csv worse.csv like.csv truth.csv --json -m map hit@1,2 --margin map:0.01"
    command += " --margin hit@1,2:0.05"
    assert main(command.split()) == 1
    out, err = capsys.readouterr()
    rows = json.loads(out)
    margins = {row["metric"]: row["margin"] for row in rows}
    assert margins == {"map": 0.01, "hit@1": 0.05, "hit@2": 0.05}
    assert err.count("gate failed") == sum(row["passed"] is False for row in rows) > 2
    assert err.count("gate passed") == sum(row["passed"] is True for row in rows)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("-m rr hit@1 --margin 10%", {"margin": "10%"}),
        (
            "-m rr --margin 0.2 --undecided pass --baseline like",
            {"baseline": "like", "margin": 0.2, "undecided": "pass"},
        ),
        (
            "--at-least rr:0.5 --interval --confidence 0.9",
            {"at_least": {"rr": 0.5}, "interval": True, "confidence": 0.9},
        ),
        (
            "--margin rr:0.1 --at-most hit@1:0.9",
            {"margin": {"rr": 0.1}, "at_most": {"hit@1": 0.9}},
        ),
    ],
)
def test_words_are_those_of_python(folder, capsys, words, options):
    main(["gate", *"old.csv like.csv worse.csv truth.csv --json".split(), *words.split()])
    rows = json.loads(capsys.readouterr().out)
    runs = {name: RUNS[name] for name in ("old", "like", "worse")}
    names = ["rr", "hit@1"][: len({row["metric"] for row in rows})]
    expected = rf.gate(runs, *names, truth=TRUTH, **options).to_dicts()
    for row in rows:
        del row["conventions"]
    assert rows == [pytest.approx(row) for row in expected]


def test_floors_of_the_command(folder, capsys):
    assert main("gate worse.csv truth.csv --at-least rr:0.9 --json".split()) == 1
    out, err = capsys.readouterr()
    (row,) = json.loads(out)
    assert (row["metric"], row["at_least"], row["passed"]) == ("rr", 0.9, False)
    assert err.startswith(
        "rankframe: gate failed: rr: too low: the mean is 0.3367, below 0.9 (mean 0.3367)"
    )
    command = "gate old.csv like.csv truth.csv -m rr --margin 0.9 --at-most hit@1:0.9"
    assert main(command.split()) == 0
    err = capsys.readouterr().err
    assert "gate passed: hit@1 of old: low enough: the mean is 0.6, not above 0.9 (mean 0.6" in err


@pytest.mark.parametrize(
    ("verb", "text"),
    [
        ("compare", "margin of 'rr' must be a finite number > 0, or a share of the baseline"),
        ("gate", "margin of 'rr' must be a finite number ≥ 0, or a share of the baseline"),
    ],
)
def test_margin_below_0_is_refused(folder, verb, text):
    assert text in said_by([verb, *"old.csv like.csv truth.csv -m rr --margin -1%".split()])


def test_line_of_a_gate_has_its_note(folder, capsys):
    RUNS["like"].filter(pl.col("user") < 30).write_csv("few.csv")
    command = "gate old.csv few.csv truth.csv -m rr --margin 0.5 --undecided pass --users both"
    assert main(command.split()) == 0
    line = capsys.readouterr().err.rstrip()
    left_out = "10 of 40 users are left out: they have a value with one system only"
    assert line.endswith(f"); exact test: only 18 users differ; {left_out}")


def test_help_has_no_doubled_signs(capsys):
    for command in ("compare", "gate", "report"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert "%%" not in capsys.readouterr().out


def test_errors_of_gates_name_options(folder, capsys):
    assert main("gate old.csv like.csv truth.csv -m rr".split()) == 2
    assert capsys.readouterr().err == (
        "rankframe: error: metric 'rr' has no margin, and without one a system that equals the "
        "baseline passes in 2.5% of cases only: pass the accepted loss, such as --margin 1%, or "
        "--undecided pass to fail only what is shown to be worse\n"
    )


def test_set_gates_what_has_a_direction(folder, capsys):
    command = "gate old.csv worse.csv truth.csv --json -m official --undecided pass"
    assert main(command.split()) == 1
    out, err = capsys.readouterr()
    gated = {row["metric"] for row in json.loads(out)}
    assert {"map", "P_5"} < gated
    assert not {"num_q", "num_ret", "runid"} & gated
    assert err.startswith("rankframe: not compared, as it has no values of users: runid, num_q\n")
    assert "not gated, as neither direction is better: num_ret, num_rel\n" in err


def test_colon_of_a_label_is_not_a_margin(folder, capsys):
    label = "dcg(gain=1:2)@10"
    command = ["gate", *"old.csv worse.csv truth.csv --json --undecided pass".split()]
    for margin, words in [(0, ["-m", label]), (0.25, ["--margin", f"{label}:0.25"])]:
        assert main([*command, *words]) in (0, 1)
        (row,) = json.loads(capsys.readouterr().out)
        assert (row["metric"], row["margin"]) == (label, margin)


def test_same_stem_is_named_by_the_folder(folder, capsys):
    for name in ("a", "b"):
        (folder / name).mkdir()
    RUNS["old"].write_csv("a/run.csv")
    RUNS["worse"].write_csv("b/run.csv")
    RUNS["like"].write_csv("run_2.csv")
    command = "gate a/run.csv b/run.csv run_2.csv truth.csv -m rr --undecided pass --json"
    assert main(command.split()) == 1
    rows = json.loads(capsys.readouterr().out)
    assert [row["model"] for row in rows] == ["b", "run_2"]
    assert [row["passed"] for row in rows] == [False, True]


def test_error_of_our_own_is_not_a_failed_gate(folder, capsys, monkeypatch):
    def broken(*_, **__):
        raise KeyError

    monkeypatch.setattr("rankframe._command.main.gate.gate", broken)
    assert main("gate old.csv worse.csv truth.csv -m rr --undecided pass".split()) == 3
    assert "KeyError" in capsys.readouterr().err


def test_relative_margin_takes_the_weighted_mean_of_the_baseline():
    """All lose 0.04, which is 4.8% of the weighted mean 0.828, and 22% of the plain one."""
    old = [0.9] + [0.1] * 9
    values = pl.concat(
        pl.DataFrame({"model": m, "user": range(10), "ndcg@10": [x - less for x in old]})
        for m, less in (("old", 0.0), ("new", 0.04))
    ).with_columns(w=pl.when(pl.col("user") == 0).then(91.0).otherwise(1.0))
    decided = gate(values, "ndcg@10", baseline="old", margin="8%", weights="w")
    assert decided["margin"].item() == pytest.approx(0.08 * 0.828)
    assert decided["passed"].item()


# ------------------------------------------------------------------ what cannot be judged


CHUNKS = {name: rows.with_columns(item=pl.lit("a#0")) for name, rows in RUNS.items()}
APART = "no item of the run is in the truth, which has items like 'a'"
GATES = [
    {"baseline": "old", "margin": 0.1},
    {"baseline": "old", "undecided": "pass"},
    {"at_least": 0.0},
    {"at_most": 1.0},
    {"at_least": 0.0, "interval": True, "undecided": "pass"},
]


@pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("options", GATES)
def test_gate_passes_nothing_where_nothing_is_judged(options, lazy):
    runs = {name: rows.lazy() if lazy else rows for name, rows in CHUNKS.items()}
    got = rf.gate(runs, "rr", "hit@1", truth=TRUTH, **options).lazy().collect()
    assert not got["passed"].any()
    assert got["why"].str.starts_with("cannot be judged: ").all()
    assert got["why"].str.contains(APART, literal=True).all()


@pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")
def test_lists_of_items_that_are_judged_0_cannot_be_compared_and_miss_a_floor():
    truth = pl.concat(
        [TRUTH.with_columns(relevance=0), TRUTH.with_columns(item=pl.lit("b"), relevance=1)]
    )
    got = rf.gate(RUNS, "rr", truth=truth, baseline="old", margin=0.1)
    assert got["why"].unique().to_list() == [
        "cannot be judged: no list has a relevant item of its user"
    ]
    floors = rf.gate(RUNS, "rr", truth=truth, at_least=0.1)
    assert floors["why"].unique().to_list() == ["too low: the mean is 0, below 0.1"]


def test_system_that_meets_nothing_is_named_and_fails_as_usual():
    runs = {"old": RUNS["old"], "chunks": CHUNKS["like"]}
    with pytest.warns(
        rf.errors.RankingWarning, match="^model 'chunks': run, column 'item': no item"
    ):
        got = rf.gate(runs, "rr", truth=TRUTH, baseline="old", margin=0.1)
    assert got["why"].to_list() == ["worse: interval below -0.1"]


def test_metrics_of_lists_alone_are_not_concerned():
    options = {"truth": TRUTH, "history": pl.DataFrame({"user": [1], "item": ["a#0"]})}
    got = rf.gate(CHUNKS["old"], "novelty@9", at_least=0, **options)
    assert got["passed"].all()


def test_judged_table_of_lists_that_meet_nothing():
    table = pl.DataFrame({"user": [1, 2], "found": [["x#0"], ["y#0"]], "wanted": [["x"], ["y"]]})
    judged = rf.from_lists(table, item="found", truth="wanted")
    judged = judged.rename({"found": "item"}, strict=False)
    with pytest.warns(rf.errors.RankingWarning, match="no item of the lists is a relevant one"):
        rf.evaluate(judged, "hit@1")


@pytest.mark.parametrize("verb", ["evaluate", "compare", "summarize", "table"])
def test_numbers_of_lists_that_meet_nothing_come_with_a_warning(verb):
    with pytest.warns(rf.errors.RankingWarning, match=re.escape(APART)):
        getattr(rf, verb)(CHUNKS, "rr", truth=TRUTH)


@pytest.mark.parametrize("option", ["margin", "at_least"])
def test_users_without_a_list_fail_a_gate(option):
    few = RUNS | {"like": RUNS["old"].filter(pl.col("user") < 37)}
    options = {"margin": {"baseline": "old", "margin": 0.99}, "at_least": {"at_least": 0.1}}[option]
    got = rf.gate(few, "rr", truth=TRUTH, **options).filter(model="like").row(0, named=True)
    assert (got["passed"], got["why"]) == (
        False,
        "too many missed: 3 of 40 users with a relevant item have no list of like, more than 0.05 "
        "of them",
    )
    for most in (0.075, None):
        assert rf.gate(few, "rr", truth=TRUTH, most_missed=most, **options)["passed"].all()
    with pytest.raises(ValueError, match="most_missed must be a share of the users from 0 to 1"):
        rf.gate(few, "rr", truth=TRUTH, most_missed=5, **options)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("users", [None, "truth", "judged", "all"])
def test_users_without_a_list_fail_the_rows_of_their_segment(lazy, users):
    """Of 400 users, 12 have no list: 3 %, but 12 of 40 users of one country."""
    number = 400
    country = pl.Series(["AT"] * 40 + ["DE"] * 360)
    ids = pl.DataFrame({"user": range(number), "country": country, "item": "a"})
    extra = pl.DataFrame({"user": range(1000, 1200), "country": "DE", "item": "a", "relevance": 0})
    truth = pl.concat([ids.with_columns(relevance=pl.lit(1)), extra], how="diagonal_relaxed")
    full = ids.with_columns(rank=pl.lit(1))
    runs = {"old": full, "new": full.filter(~pl.col("user").is_between(0, 11))}
    if lazy:
        runs = {name: rows.lazy() for name, rows in runs.items()}
    options = {"truth": truth, "by": ["model", "country"], "total": True, "at_least": 0.0}
    options |= {"users": users} | ({"undefined": 0.0} if users == "all" else {})
    got = rf.gate(runs, "hit@1", **options).lazy().collect()
    failed = got.filter(~pl.col("passed"))
    assert failed.select("model", "country", "why").rows() == [
        (
            "new",
            "AT",
            "too many missed: 12 of 40 users with a relevant item have no list of new, more than "
            "0.05 of them",
        )
    ]
    assert set(got["country"]) == {"AT", "DE", None}
    got = rf.gate(runs, "hit@1", **options | {"most_missed": 0.02}).lazy().collect()
    assert got.filter(~pl.col("passed"))["country"].to_list() == ["AT", None]


@pytest.mark.parametrize("lazy", [False, True])
def test_system_that_did_not_come_fails_by_name(lazy):
    named = {{"like": "Like "}.get(name, name): rows for name, rows in RUNS.items()}
    named = {name: rows.lazy() if lazy else rows for name, rows in named.items()}
    options = {"truth": TRUTH, "systems": ["old", "like"], "at_least": 0.0}
    got = rf.gate(named, "rr", "hit@1", **options).lazy().collect()
    absent = got.filter(model="like")
    assert absent.select("metric", "passed", "mean").rows() == [
        ("rr", False, None),
        ("hit@1", False, None),
    ]
    assert absent["why"][0] == "no list of 'like': the systems are 'old', 'Like ', 'worse'"
    assert got.filter(pl.col("model") != "like")["passed"].all()
    with pytest.raises(TypeError, match="systems must be a list of names"):
        rf.gate(RUNS, "rr", truth=TRUTH, systems="old", at_least=0.1)


@pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")
def test_broken_days_of_the_command(folder, capsys):
    """Lists that meet nothing exit with 2; users or systems that are missing with 1."""
    CHUNKS["old"].write_csv("chunks.csv")
    RUNS["old"].filter(pl.col("user") < 20).write_csv("few.csv")
    for command, code, said in [
        ("chunks.csv new=chunks.csv truth.csv -m rr --margin 0.1", 2, "cannot be judg"),
        ("chunks.csv new=chunks.csv truth.csv -m rr --undecided pass", 2, APART),
        ("chunks.csv truth.csv --at-least rr:0", 2, APART),
        ("old.csv chunks.csv truth.csv -m rr --undecided pass", 1, "worse: "),
        ("few.csv new=few.csv truth.csv -m rr --margin 0.2", 1, "too many missed: 20 "),
        ("few.csv truth.csv --at-least rr:0 --most-missed 0.5", 0, "high enough"),
        (
            "old.csv like.csv truth.csv -m rr --undecided pass --systems next",
            1,
            "no list of 'next'",
        ),
    ]:
        assert main(["gate", *command.split()]) == code, command
        assert said in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")
def test_run_asks_check_first(folder, capsys):
    CHUNKS["like"].write_csv("chunks.csv")
    text = 'truth = "truth.csv"\nsystems = ["old", "new"]\nmost_missed = 0.5\nbaseline = "old"\n'
    text += '[run]\nold = "old.csv"\nNAME = "FILE.csv"\n'
    text += '[[gates]]\nmetrics = "mrr"\nmargin = 0.9\n'
    for name, file, code, said in [
        ("new", "like", 0, "gate passed"),
        ("new", "chunks", 1, "40 of 40 users lose"),
        ("Next", "like", 1, "no list of 'new'"),
    ]:
        (folder / "day.toml").write_text(text.replace("NAME", name).replace("FILE", file))
        assert main(["run", "day.toml"]) == code, capsys.readouterr().err
        assert said in capsys.readouterr().err
    text = text.replace("old.csv", "chunks.csv").replace("FILE", "chunks").replace("NAME", "new")
    (folder / "day.toml").write_text(text)
    assert APART in said_by(["run", "day.toml"])


def test_systems_that_no_column_names_have_a_cure_that_works():
    arms = pl.DataFrame({"arm": ["a", "b"], "user": 1, "item": "x", "rank": 1})
    truth = pl.DataFrame({"user": [1], "item": ["x"]})
    asked = {"truth": truth, "at_least": 0.5, "systems": ["a", "b", "c"]}
    with pytest.raises(ValueError, match=r"^systems= without .*: name it with model=, or pass a "):
        rf.gate(arms.filter(arm="a"), "rr", **asked)
    decided = rf.gate(arms, "rr", model="arm", **asked)
    assert dict(decided.select("arm", "passed").rows()) == {"a": True, "b": True, "c": False}


def test_gains_of_few_users_do_not_count_and_why_says_so():
    """No user of 300 loses: the mean loss is at most .0122, whatever 15 users gain."""
    hits = [[float(place >= 15 or new) for place in range(300)] for new in (False, True)]
    values = pl.concat(
        pl.DataFrame({"user": range(300), "model": name, "hit@3": of})
        for name, of in zip(("old", "new"), hits, strict=True)
    )
    why = [
        rf.gate(values, "hit@3", baseline="old", margin=margin)["why"].item()
        for margin in (0.01, 0.02)
    ]
    said = "0 of 300 users lose, so the mean loss is at most 0.01222"
    assert why == [
        f"undecided: {said}: too few differ to count what 15 users gain",
        f"not worse: {said}",
    ]
