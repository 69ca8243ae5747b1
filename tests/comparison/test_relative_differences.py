"""Differences as shares of the baseline: Fieller's interval, and margins such as 1%."""

import numpy as np
import polars as pl
import pytest
from scipy import stats
from user_values import hall

import rankframe as rf
from rankframe._comparison import statistics as st
from rankframe._comparison import trials


def drawn(seed=1, users=60, change=0.05):
    rng = np.random.default_rng(seed)
    old = rng.beta(2, 3, users)
    return old, old + rng.normal(change, 0.2, users)


def table_of(old, new, **columns):
    users = pl.DataFrame({"user": np.arange(len(old)), **columns})
    parts = [
        users.with_columns(model=pl.lit(m), x=pl.Series(v)) for m, v in (("old", old), ("new", new))
    ]
    return pl.concat(parts)


def compared(old, new, columns=None, **options):
    options = {"baseline": "old", "details": True, **options}
    frame = rf.compare(table_of(old, new, **(columns or {})), "x", **options)
    return frame.row(0, named=True)


@pytest.mark.parametrize("confidence", [0.9, 0.95])
@pytest.mark.parametrize("change", [-0.1, 0, 0.05])
def test_ends_have_p_alpha_in_the_t_test_of_new_minus_a_multiple_of_old(change, confidence):
    old, new = drawn(change=change)
    row = compared(old, new, confidence=confidence)
    assert row["relative"] == pytest.approx((new - old).mean() / old.mean())
    assert row["relative_low"] < row["relative"] < row["relative_high"]
    for end in (row["relative_low"], row["relative_high"]):
        p = stats.ttest_1samp(new - (1 + end) * old, 0).pvalue
        assert p == pytest.approx(1 - confidence, abs=1e-9)


def test_relative_difference_of_a_worked_example():
    """d = 1, 1, 4 and y = 1, 2, 3: means 2 and 2; of the means, variances 1 and ⅓, covariance ½."""
    row = compared(np.array([1.0, 2, 3]), np.array([2.0, 3, 7]), confidence=0.5)
    far = stats.t.ppf(0.75, 2) ** 2  # 2/3
    square, middle, product = 4 - far / 3, 4 - far / 2, 4 - far
    half = np.sqrt(middle**2 - square * product)
    ends = (middle - half) / square, (middle + half) / square
    assert (row["relative_low"], row["relative_high"]) == pytest.approx(ends)
    assert row["relative"] == 1


def test_relative_interval_is_null_exactly_where_the_baseline_may_be_0():
    old, new = drawn(users=12)
    nulls = []
    for shift in np.linspace(0.1, 0.7, 25):
        row = compared(old - shift, new - shift)
        nulls.append(row["relative_low"] is None)
        below = (old - shift).mean() < 0
        assert nulls[-1] == (below or stats.ttest_1samp(old - shift, 0).pvalue >= 0.05)
        assert (row["relative"] is None) == below == ("is below 0" in (row["note"] or ""))
        assert (row["relative_high"] is None) == nulls[-1]
    assert 0 < sum(nulls) < 25
    assert compared(np.array([-1.0, 1]), np.array([0.0, 3]))["relative"] is None  # of a mean of 0


def test_relative_interval_needs_a_spread_and_no_sequential_test():
    old, new = drawn()
    for row in (
        compared(old, old),
        compared(old, old + 0.1),
        compared(old[:1], new[:1]),
        compared(old, new, test="sequential", value_range={"x": (-1, 2)}),
    ):
        assert row["relative"] == pytest.approx(row["difference"] / row["baseline_mean"])
        assert row["relative_low"] is row["relative_high"] is None


@pytest.mark.parametrize("share", [-1.0, -0.3, 0.1])
def test_users_who_all_change_by_one_share_have_no_interval(share):
    """Fieller's ends are equal: nothing varies, as where all differ by the same amount."""
    old, _ = drawn()
    row = compared(old, (1 + share) * old)
    assert row["relative"] == pytest.approx(share)
    assert row["relative_low"] is row["relative_high"] is None
    assert row["note"] == "no interval of relative: every user changes by the same percentage"
    for margin, passed in (
        (0.2, share > -0.2),
        (0.9, share > -0.9),
    ):  # the gate has the share all the same
        got = gated(old, (1 + share) * old, margin=f"{100 * margin:.0f}%")
        assert got["passed"] is passed
        assert "may be 0" not in got["why"]


def test_ends_with_weights_and_clusters_have_p_alpha_too():
    """The same verb is the oracle, on new − (1 + e) · old against 0."""
    old, new = drawn()
    rng = np.random.default_rng(2)
    for options in ({"weights": "w"}, {"cluster": "c"}, {"weights": "w", "cluster": "c"}):
        columns = {"w": rng.uniform(0.5, 2, len(old)), "c": rng.integers(0, 15, len(old))}
        row = compared(old, new, columns, **options)
        for end in (row["relative_low"], row["relative_high"]):
            again = compared(np.zeros(len(old)), new - (1 + end) * old, columns, **options)
            assert again["p_value"] == pytest.approx(0.05, abs=1e-8)


def test_geometric_means_have_a_ratio_in_the_note_instead():
    run = pl.DataFrame({"user": [*range(30)] * 2, "item": 7, "model": ["a"] * 30 + ["b"] * 30})
    run = run.with_columns(rank=pl.Series(np.random.default_rng(1).integers(1, 6, 60)))
    truth = pl.DataFrame({"user": range(30), "item": 7})
    frame = rf.compare(run, "gmap", "ap", truth=truth, details=True)
    assert frame["relative"].is_null().to_list() == [True, False]
    assert frame["relative_low"].is_null().to_list() == [True, False]


def test_metrics_of_all_lists_have_a_share_without_an_interval():
    runs = {
        "old": pl.DataFrame({"user": [1, 2], "item": [7, 7], "rank": [1, 1]}),
        "new": pl.DataFrame({"user": [1, 2], "item": [7, 8], "rank": [1, 1]}),
    }
    items = pl.DataFrame({"item": [7, 8, 9]})
    row = rf.compare(runs, "coverage@1", items=items, baseline="old", details=True).row(
        0, named=True
    )
    assert (row["relative"], row["relative_low"]) == (1, None)


# ------------------------------------------------------------------ margins


@pytest.mark.parametrize("weighted", [False, True])
def test_margin_of_1_percent_is_a_t_test_of_new_minus_099_old(weighted):
    old, new = drawn(users=400, change=0.001)
    columns = {"w": np.random.default_rng(3).uniform(1, 2, 400)}
    options = {"weights": "w"} if weighted else {}
    row = compared(old, new, columns, margin="1%", **options)
    above = new - 0.99 * old
    below = 1.01 * old - new
    p = []
    for values in (above, below):
        if weighted:
            alone = compared(np.zeros(400), values, columns, **options)
            one_sided = alone["p_value"] / 2
            t = one_sided if alone["difference"] > 0 else 1 - one_sided
            sample = st.Sample(values[:, None], columns["w"][:, None])
            p.append(max(t, st.estimate(sample).p_above().item()))
        else:
            t = stats.ttest_1samp(values, 0, alternative="greater").pvalue
            p.append(max(t, hall(values)))
    assert row["p_equivalent"] == pytest.approx(max(p))


def test_percentage_of_a_margin_is_in_the_direction_of_the_metric():
    """Both metrics fall by 2 %: precision loses, the rank of the first hit gains."""
    rng = np.random.default_rng(4)
    users = 200
    ranks = rng.integers(5, 12, users)
    runs = {
        name: pl.DataFrame({"user": range(users), "item": 7, "rank": moved})
        for name, moved in (("old", ranks), ("new", ranks + rng.choice([0, 0, 0, 1], users)))
    }
    truth = pl.DataFrame({"user": range(users), "item": 7})
    frame = rf.compare(runs, "rr", "mean_hit_rank", truth=truth, baseline="old", margin="1%")
    assert frame["relative"].to_list() == pytest.approx([-0.03, 0.03], abs=0.01)
    assert (frame["p_not_worse"] > 0.9).all()
    frame = rf.compare(runs, "rr", "mean_hit_rank", truth=truth, baseline="old", margin="6%")
    of_rr, of_rank = frame["p_not_worse"]
    assert of_rank < 0.05 < of_rr  # 6% of an rr of 0.13: a few users could lose as much, unseen


def test_percentage_of_a_constant_baseline_is_a_number():
    _, new = drawn()
    old = np.full(60, 0.5)
    share, number = compared(old, new, margin="20%"), compared(old, new, margin=0.1)
    assert share["p_equivalent"] == pytest.approx(number["p_equivalent"])


def test_baseline_whose_mean_is_not_above_0_has_no_percentage():
    old, new = drawn()
    row = compared(old - 1, new - 1, margin="1%")
    assert row["p_equivalent"] is None
    assert "margin not tested: 1% of the baseline's mean, -0." in row["note"]


def test_margins_of_several_metrics_may_be_of_both_kinds():
    old, new = drawn()
    table = table_of(old, new).with_columns(y=pl.col("x"))
    frame = rf.compare(table, "x", "y", baseline="old", margin={"x": "30%", "y": 0.3}, details=True)
    assert frame["p_equivalent"].null_count() == 0


@pytest.mark.parametrize("margin", ["1", "x%", "0%", "-1%", "%", "inf%", b"1%"])
def test_wrong_margin_raises(margin, refused):
    refused(compared, *drawn(), margin=margin)


def test_bound_is_written_as_it_was_read():
    assert [str(trials.bound_of(size)) for size in ("1%", " 2.5 %", 0.01)] == ["1%", "2.5%", "0.01"]


# ------------------------------------------------------------------ gates


def gated(old, new, higher_is_better=True, **options):
    options = {"higher_is_better": {"x": higher_is_better}, "baseline": "old"} | options
    return rf.gate(table_of(old, new), "x", **options).row(0, named=True)


@pytest.mark.parametrize("higher_is_better", [True, False])
@pytest.mark.parametrize("undecided", ["fail", "pass"])
def test_gate_decides_at_the_ends_of_the_relative_interval(undecided, higher_is_better):
    """What is undecided fails up to the near end, or passes from the far end on."""
    old, new = drawn(users=200, change=-0.08 if higher_is_better else 0.08)
    row = compared(old, new)
    edge = 100 * abs(
        row["relative_low" if (undecided == "fail") == higher_is_better else "relative_high"]
    )
    for share, passed in ((edge - 1e-6, False), (edge + 1e-6, True)):
        options = {"margin": f"{share:.9f}%", "undecided": undecided}
        decision = gated(old, new, higher_is_better, **options)
        assert decision["passed"] is passed
        assert decision["margin"] == pytest.approx(share / 100 * old.mean())
        assert decision["why"].endswith("%") or "% in interval" in decision["why"]


def test_gate_without_a_share_of_the_baseline_fails_and_says_why():
    old, new = drawn()
    for undecided in ("pass", "fail"):
        row = gated(old - 1, new - 1, margin="5%", undecided=undecided)
        assert row["passed"] is False
        assert row["why"] == "cannot be judged: 5% of the baseline's mean, -0.618, is not above 0"


@pytest.mark.parametrize("rise", [0.2, -0.2])
def test_gate_whose_baseline_may_be_0_decides_as_compare(rise):
    """The test of new − 0.95 · old needs no ratio."""
    old, new = drawn()
    old, new = old - old.mean() + 0.01, new - old.mean() + 0.01 + rise
    row = compared(old, new, margin="5%", higher_is_better={"x": True})
    decided = gated(old, new, margin="5%")
    assert decided["passed"] is (row["p_not_worse"] < 0.025) is (rise > 0)
    assert decided["why"].startswith("not worse: p = " if rise > 0 else "worse: p = ")


def test_copy_passes_where_undecided_passes_else_it_needs_users_who_could_differ():
    """The bound of 0 losers of n users is 1 − .0125^(1/n), to be below 2 % of all 1."""
    ones = np.ones(400)
    frames = {users: np.ones(users) for users in (200, 219, 220, 400)}
    for users, values in frames.items():
        row = gated(values, values, margin="2%", value_range={"x": (0, 1)})
        assert row["passed"] is (1 - 0.0125 ** (1 / users) < 0.02)
    assert gated(ones, ones, margin="2%", undecided="pass")["passed"] is True
    lost = ones - 0.5
    assert gated(ones, lost, margin="2%")["passed"] is False


def test_hit_system_that_is_worse_by_exactly_the_share_seldom_passes():
    """It loses each of 80 % hits with probability 5 % and gains none: at most 2.5 % of 200 runs."""
    rng = np.random.default_rng(3)
    frames = []
    for _ in range(200):
        old = (rng.random(100) < 0.8).astype(float)
        frames.append(table_of(old, old * (rng.random(100) >= 0.05)))
    table = pl.concat(frame.with_columns(run=pl.lit(run)) for run, frame in enumerate(frames))
    decided = rf.gate(
        table,
        "x",
        by=["model", "run"],
        baseline="old",
        margin="5%",
        higher_is_better={"x": True},
        value_range={"x": (0, 1)},
    )
    passed = decided["passed"].mean()
    assert passed <= 0.025


def test_share_of_the_baseline_takes_the_t_test_in_gates():
    with pytest.raises(ValueError, match="margin='1%': a share of the baseline needs test='t'"):
        gated(np.array([0.0, 1, 1]), np.array([1.0, 1, 0]), margin="1%", test="max_t")
