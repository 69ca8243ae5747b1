"""Groups of different users: Welch's t, the paired t, and everything between."""

import itertools

import numpy as np
import polars as pl
import pytest
from scipy import stats

import rankframe as rf
from rankframe._comparison import overlapping_samples
from rankframe._comparison import statistics as st


def weeks(old, new, shared=0, **columns):
    """Two weeks; the last ``shared`` users of the first one are the first users of the second."""
    parts = []
    for week, values, start in (("w41", old, 0), ("w42", new, len(old) - shared)):
        part = pl.DataFrame(
            {"week": week, "user": np.arange(start, start + len(values)), "x": values}
        )
        parts.append(part)
    table = pl.concat(parts)
    return table.with_columns(**{name: of(table) for name, of in columns.items()})


def compared(table, **options):
    options = {"model": "week", "baseline": "w41", "paired": False} | options
    return rf.compare(table, "x", details=True, **options).row(0, named=True)


def drawn(users=80, more=50, seed=1):
    rng = np.random.default_rng(seed)
    return rng.beta(2, 3, users), rng.beta(3, 3, more)


def test_test_without_common_users_is_welchs_t():
    old, new = drawn()
    row = compared(weeks(old, new))
    expected = stats.ttest_ind(new, old, equal_var=False)
    assert row["p_value"] == pytest.approx(expected.pvalue, rel=1e-12)
    interval = expected.confidence_interval(0.95)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(tuple(interval), rel=1e-12)
    assert row["difference"] == pytest.approx(new.mean() - old.mean(), rel=1e-12)
    assert (row["users"], row["baseline_users"], row["num_left_out"]) == (50, 80, 0)
    assert row["higher"] is row["equal"] is row["lower"] is None
    assert row["note"] == "50 users of w42, 80 of w41, 0 in both"
    pooled = np.sqrt((old.var(ddof=1) + new.var(ddof=1)) / 2)
    assert row["effect_size"] == pytest.approx((new.mean() - old.mean()) / pooled)


@pytest.mark.parametrize("options", [{}, {"weights": "w"}, {"cluster": "c"}])
def test_test_of_common_users_alone_is_the_paired_t(options):
    old, _ = drawn()
    new = old + np.random.default_rng(2).normal(0.02, 0.05, len(old))
    table = weeks(old, new, len(old), w=lambda t: t["user"] % 5 + 1, c=lambda t: t["user"] % 30)
    apart, paired = compared(table, **options), compared(table, paired=True, **options)
    same = ("difference", "mean", "baseline_mean", "p_value", "ci_low", "ci_high", "detectable")
    for name in (*same, "relative", "relative_low", "relative_high"):
        assert apart[name] == pytest.approx(paired[name], rel=1e-9 if "rel" in name else 1e-12)
    for margin in (0.03, "5%"):
        apart, paired = (
            compared(table, margin=margin, paired=it, **options) for it in (False, True)
        )
        if options:  # paired, weights and clusters of unequal sizes count as effective ones
            assert apart["p_equivalent"] <= paired["p_equivalent"] * (1 + 1e-9)
        else:
            assert apart["p_equivalent"] == pytest.approx(paired["p_equivalent"], rel=1e-9)


def test_worked_example_of_four_users_two_of_them_common():
    """x = 1, 2, 4 and y = 1, 3, 5 share users 2 and 3, who have (2, 1) and (4, 3).

    Means are 7/3 and 3, so the products of the deviations are (−1/3)(−2) and (5/3)(0).
    """
    row = compared(weeks(np.array([1.0, 2, 4]), np.array([1.0, 3, 5]), 2))
    first, second = 7 / 3, 4.0
    variance = first / 3 + second / 3 - 2 * 3 / 2 * (2 / 3) / 9
    welch = (first / 3 + second / 3) ** 2 / ((first / 3) ** 2 / 2 + (second / 3) ** 2 / 2)
    freedom = 1 + (welch - 1) * 2 / 6
    p = 2 * stats.t.sf((3 - 7 / 3) / np.sqrt(variance), freedom)
    assert row["p_value"] == pytest.approx(p, rel=1e-12)
    few = "3 users, too few for a sure test; no exact test of different users, though only 3"
    assert row["note"] == f"3 users of w42, 3 of w41, 2 in both; {few} are of w42"


@pytest.mark.parametrize("weights", [None, "w"])
def test_error_is_that_of_the_sum_over_all_users_of_both_groups(weights):
    """SE² is the sum over users of (a − b)², their shares in the deviations of the two means."""
    old, new = drawn()
    table = weeks(old, new, 20, w=lambda t: t["user"] % 5 + 1.0)
    row = compared(table, weights=weights)
    if weights is None:
        table = table.with_columns(w=1.0)
    shares: dict[int, float] = {}
    for sign, part in zip((-1, 1), table.partition_by("week"), strict=True):
        x, w = part["x"].to_numpy(), part["w"].to_numpy()
        deviation = w * (x - np.average(x, weights=w)) / (w.sum() - w)
        deviation = deviation * np.sqrt((len(x) - 1) / len(x))  # the jackknife
        for user, of_user in zip(part["user"], deviation, strict=True):
            shares[user] = shares.get(user, 0.0) + sign * of_user
    error = np.sqrt(sum(share**2 for share in shares.values()))
    t = stats.t.isf(row["p_value"] / 2, _freedom(row, table))
    assert abs(row["difference"]) / t == pytest.approx(error, rel=1e-9)


def _freedom(row, table):
    """Derrick's degrees of freedom of 80 and 50 users, 20 of them common."""
    variances, sizes, common = [], [], table.filter(pl.col("user").is_duplicated())
    for part in table.sort("week").partition_by("week"):
        x, w = part["x"].to_numpy(), part["w"].to_numpy()
        squares = (w * (x - np.average(x, weights=w)) / (w.sum() - w)) ** 2
        variances.append(squares.sum() * (len(x) - 1) / len(x))
        sizes.append(w.sum() ** 2 / (w**2).sum())
    old, new = variances
    welch = (old + new) ** 2 / (old**2 / (sizes[0] - 1) + new**2 / (sizes[1] - 1))
    assert (row["baseline_users"], row["users"]) == (80, 50)
    w = common.unique("user")["w"].to_numpy()
    both = w.sum() ** 2 / (w**2).sum() - 1
    return both + (welch - both) * (sum(sizes) - 2 * both - 2) / sum(sizes)


def test_order_of_users_and_ids_do_not_matter():
    table = weeks(*drawn(), shared=20)
    shuffled = table.sample(fraction=1, shuffle=True, seed=1)
    renamed = shuffled.with_columns(user=pl.format("u{}", 1000 - pl.col("user")))
    expected = compared(table)
    for other in (shuffled, renamed):
        row = compared(other)
        assert row["note"] == expected["note"]
        for name in ("difference", "p_value", "ci_low", "relative_high", "detectable"):
            assert row[name] == pytest.approx(expected[name], rel=1e-12)


def test_ends_of_the_relative_interval_have_p_alpha_in_welchs_t():
    old, new = drawn()
    row = compared(weeks(old, new))
    for end in (row["relative_low"], row["relative_high"]):
        p = stats.ttest_ind(new, (1 + end) * old, equal_var=False).pvalue
        assert p == pytest.approx(0.05, abs=1e-9)
    assert row["relative"] == pytest.approx(new.mean() / old.mean() - 1)
    low = compared(weeks(old - old.mean() + 0.01, new))
    assert low["relative_low"] is low["relative_high"] is None


def halls(new, old):
    """One-sided p that the mean of new is above that of old, by Hall's t of two samples."""
    variance = third = 0.0
    parts = []
    for sign, values in ((1, new), (-1, old)):
        n, around = len(values), values - values.mean()
        parts.append(((around**2).sum() / (n - 1) / n, n))
        variance += parts[-1][0]
        third += sign * (around**3).sum() / (n * (n - 1)) ** 1.5
    t, skew = (new.mean() - old.mean()) / variance**0.5, third / variance**1.5
    h = t + skew * (t**2 / 3 + 1 / 6) + skew**2 * t**3 / 27
    return stats.t.sf(h, variance**2 / sum(part**2 / (n - 1) for part, n in parts))


@pytest.mark.parametrize("skewed", [0, 1, -1])
@pytest.mark.parametrize(("margin", "factor", "bound"), [(0.1, 1, 0.1), ("10%", 0.9, 0)])
def test_margins_are_the_larger_p_of_welchs_and_halls_t(margin, factor, bound, skewed):
    old, new = drawn(300, 200)
    if skewed:  # new values, to either side
        new = new.mean() + skewed * (np.random.default_rng(0).lognormal(0, 1, 200) - 1.65) / 5
    row = compared(weeks(old, new), margin=margin, higher_is_better={"x": True})
    options = {"equal_var": False, "alternative": "greater"}
    sides = (new + bound, factor * old), ((2 - factor) * old, new - bound)
    t = [stats.ttest_ind(*side, **options).pvalue for side in sides]
    above, below = (max(p, halls(*side)) for p, side in zip(t, sides, strict=True))
    assert row["p_not_worse"] == pytest.approx(above, rel=1e-9)
    assert row["p_equivalent"] == pytest.approx(max(above, below), rel=1e-9)
    if skewed:  # Hall's sees low values that are rare, and t high ones
        assert (above > t[0]) == (skewed < 0)


def test_weights_are_those_of_two_weighted_means():
    """Weights of 2 and 1 are not two copies of a user: the error is that of ``summarize``."""
    table = weeks(*drawn(), w=lambda t: t["user"] % 3 + 1)
    row = compared(table, weights="w")
    alone = rf.summarize(table, "x", model="week", weights="w").sort("week")
    assert row["difference"] == pytest.approx(alone["mean"][1] - alone["mean"][0])
    assert "effective users: " in row["note"]
    w = table.group_by("week").agg(pl.col("w").sum() ** 2 / (pl.col("w") ** 2).sum()).sort("week")
    each = w["w"].to_numpy() - 1
    errors = (alone["ci_high"] - alone["ci_low"]) / 2 / stats.t.ppf(0.975, each)
    variance = (errors.to_numpy() ** 2).sum()
    freedom = variance**2 / (errors.to_numpy() ** 4 / each).sum()
    p = 2 * stats.t.sf(row["difference"] / variance**0.5, freedom)
    assert row["p_value"] == pytest.approx(p, rel=1e-9)


def test_clusters_are_the_observations_of_both():
    """Sessions of 20 customers a week, the same number each: Welch's t of the customers' means."""
    old, new = drawn(80, 80)
    row = compared(weeks(old, new, c=lambda t: t["user"] // 4), cluster="c")
    means = [values.reshape(20, 4).mean(axis=1) for values in (new, old)]
    assert row["p_value"] == pytest.approx(stats.ttest_ind(*means, equal_var=False).pvalue)
    assert row["users"] == 80
    assert "20 clusters of w42" in row["note"]


def test_segments_and_their_total():
    table = weeks(*drawn(), shared=20, country=lambda t: pl.Series(["a", "b"])[t["user"] % 2])
    by = {"model": "week", "by": "country", "baseline": "w41"}
    frame = rf.compare(table, "x", paired=False, total=True, **by, details=True)
    assert frame["country"].to_list() == ["a", "b", None]
    whole, plain = frame.row(2, named=True), compared(table)
    assert whole["p_value"] == pytest.approx(plain["p_value"], rel=1e-12)
    of_a = compared(table.filter(country="a"))
    assert frame["p_value"][0] == pytest.approx(of_a["p_value"], rel=1e-12)


def test_user_of_two_segments_is_one_observation_of_the_total():
    table = weeks(*drawn(), country=lambda t: pl.Series(["a"] * len(t)))
    again = table.filter(pl.col("user") % 4 == 0).with_columns(country=pl.lit("b"))
    both = pl.concat([table, again])
    frame = rf.compare(
        both,
        "x",
        model="week",
        by="country",
        baseline="w41",
        total=True,
        paired=False,
        details=True,
    )
    whole = frame.filter(pl.col("country").is_null()).row(0, named=True)
    merged = both.group_by("week", "user").agg(pl.col("x").mean(), w=pl.len())
    expected = compared(merged, weights="w")
    for name in ("users", "baseline_users", "difference", "p_value", "ci_low"):
        assert whole[name] == pytest.approx(expected[name], rel=1e-12)


def test_metrics_of_two_weeks_are_compared_on_their_own_users():
    run = pl.DataFrame({"week": ["w41"] * 30 + ["w42"] * 30, "user": range(60), "item": 7})
    run = run.with_columns(rank=pl.Series(np.random.default_rng(1).integers(1, 6, 60)))
    truth = run.select("week", "user", "item")
    options = {"truth": truth, "model": "week", "baseline": "w41"}
    paired = rf.compare(run, "rr", **options, details=True)
    assert "no user has a value in both: paired=False compares different" in paired["note"].item()
    values = rf.per_user(run, "rr", truth=truth, model="week").partition_by("week")
    p = stats.ttest_ind(values[1]["rr"], values[0]["rr"], equal_var=False).pvalue
    row = rf.compare(run, "rr", "gmap@5", paired=False, **options, details=True)
    assert row["p_value"][0] == pytest.approx(p)
    assert row["note"][1].startswith("ratio ")  # of geometric means
    lazy = rf.compare(
        run.lazy(), "rr", "gmap@5", paired=False, **options | {"truth": truth.lazy()}, details=True
    )
    assert lazy.collect().equals(row)


def test_pairs_that_cannot_be_tested_have_a_reason():
    one, none = np.array([0.5]), np.array([np.nan])
    many = np.linspace(0, 1, 9)
    for old, new, reason in (
        (many, one, "one user of w42"),
        (many, none, "no user of w42 has a value"),
        (np.ones(9), np.ones(9), "no test: all 9 users of w42 have 1"),
        (many, many, "no user differs"),
    ):
        shared = 9 if len(new) == 9 else 0
        row = compared(weeks(old, new, shared).with_columns(pl.col("x").fill_nan(None)))
        assert row["note"].startswith(reason)
        assert row["p_value"] is row["ci_low"] is row["detectable"] is row["verdict"] is None


def test_margin_is_asked_for_many_users_with_a_small_effect():
    """10,000 users a week, means apart by .01 deviations."""
    values = stats.norm.ppf((np.arange(10_000) + 0.5) / 10_000)
    table = weeks(values, values + 0.01)
    caution = "10,000 users prove even a small effect, here 0.01 standard deviations"
    assert caution in compared(table)["note"]
    assert caution not in compared(table, margin=0.1)["note"]
    fewer = table.filter((pl.col("week") == "w41") | (pl.col("user") > 10_000))
    assert caution not in compared(fewer)["note"]


def test_margin_of_rare_values_is_not_tested():
    old, new = np.zeros(300), np.zeros(300)
    old[:3] = 1
    row = compared(weeks(old, new), margin=0.05)
    assert row["p_equivalent"] is None
    assert "margin not tested: 300 of 300 values of w42 are 0" in row["note"]


@pytest.mark.parametrize(
    "options",
    [
        {"test": "max_t"},
        {"paired": 0},
    ],
)
def test_unpaired_test_refuses_what_it_does_not_take(options, refused):
    refused(compared, weeks(*drawn()), **options)


def test_metrics_of_all_lists_raise(refused):
    run = pl.DataFrame({"week": ["a", "b"], "user": [1, 2], "item": 7, "rank": 1})
    items = pl.DataFrame({"item": [7, 8]})
    refused(rf.compare, run, "coverage@1", items=items, model="week", paired=False)


@pytest.mark.parametrize(
    ("shared", "spread"), [(0, 1.0), (10, 1.0), (25, 1.0), (20, 0.3), (20, 3.0)]
)
def test_equal_means_are_rejected_in_5_percent(shared, spread):
    """30 and 40 users, unequal variances; common users are correlated, and vary as ``spread``.

    400 runs each, one error of the simulation is .011. A covariance that takes common users to
    vary as the others do rejects 10 % with a spread of 0.3, and 1 % with 3.
    """
    rng = np.random.default_rng(7)
    rejected = []
    for _ in range(400):
        of_user = rng.normal(0, 1, 70 - shared)
        old = of_user[:40] + rng.normal(0, 0.5, 40)
        new = 0.5 * (of_user[40 - shared :] + rng.normal(0, 0.5, 30))
        old[40 - shared :] *= spread
        new[:shared] *= spread
        places = np.arange(40 - shared, 40), np.arange(shared)
        both = overlapping_samples.overlap(st.Sample(new), st.Sample(old), places[::-1])
        rejected.append(both.estimate().p() < 0.05)
    assert np.mean(rejected) == pytest.approx(0.05, abs=0.02)


def lists():
    """Two weeks with 60 users each, 20 of them in both, and lists of five items."""
    rng = np.random.default_rng(1)
    users = [*range(60), *range(40, 100)]
    truth = pl.DataFrame({"week": ["w41"] * 60 + ["w42"] * 60, "user": users})
    truth = truth.with_columns(item=pl.Series(rng.integers(0, 7, 120)))
    run = truth.drop("item").join(pl.DataFrame({"item": range(5)}), how="cross")
    return run.with_columns(rank=pl.col("item") + 1), truth


def test_report_table_and_chart_take_it_and_leave_out_what_is_paired():
    run, truth = lists()
    options = {"truth": truth, "model": "week", "baseline": "w41", "paired": False}
    row = rf.compare(run, "rr", **options, details=True).row(0, named=True)
    report = rf.report(run, "rr", **options)
    assert f"from {row['baseline_mean']:.3f} to {row['mean']:.3f}" in report.verdict
    assert "20 in both" in report.html()
    assert "its value is higher for" not in report.verdict
    assert "By precision" not in report.verdict
    assert "whom both serve" not in report.html()
    table = rf.table(run, "rr", **options)
    assert "Welch's t test, p < 0.05" in table.note
    chart = rf.plot.compare(run, "rr", margin="5%", **options)
    drawn = chart.data.row(0, named=True)
    assert drawn["margin"] == pytest.approx(0.05 * row["baseline_mean"])
    assert "Welch's t test" in str(chart.to_dict())


def test_gate_decides_by_welchs_interval():
    old, new = drawn(300, 200)
    table = weeks(old + 0.2, new)
    options = {"model": "week", "baseline": "w41", "paired": False, "higher_is_better": {"x": True}}
    row = compared(table)
    for name, loss in (("margin", "ci"), ("%", "relative")):
        for undecided, end in (("fail", "low"), ("pass", "high")):
            edge = -row[f"{loss}_{end}"]
            for size in (edge - 1e-7, edge + 1e-7, 1.05 * edge):
                margin = size if name == "margin" else f"{100 * size:.12f}%"
                decision = rf.gate(table, "x", margin=margin, undecided=undecided, **options)
                shift, share = (size, 0) if name == "margin" else (0, size)
                by_hall = halls(new + shift, (1 - share) * (old + 0.2)) < 0.025
                passed = size > edge and (undecided == "pass" or by_hall)
                assert decision["passed"].item() is bool(passed)
    alone = rf.gate(
        table.filter((pl.col("week") == "w41") | (pl.col("user") == 300)),
        "x",
        undecided="pass",
        **options,
    )
    assert alone["passed"].item() is False
    assert alone["why"].item().startswith("no interval: one user of w42")


@pytest.mark.parametrize("margin", [0.05, "5%"])
@pytest.mark.parametrize("value", [1.0, 0.6])
@pytest.mark.parametrize("users", [30, 200])
def test_constant_guardrail_is_judged_as_that_of_pairs(users, value, margin):
    """None of 200 users has less: a loss of .05 has p = .95²⁰⁰; of 30 users, .2."""
    draw = np.random.default_rng(3)
    frame = pl.concat(
        pl.DataFrame(
            {"model": name, "user": range(users), "rr": rr + draw.random(users) / 2, "hit@3": value}
        )
        for name, rr in (("old", 0.0), ("new", 0.4))
    )
    options = {"baseline": "old", "primary": "rr", "guardrails": {"hit@3": margin}}
    apart = frame.with_columns(pl.col("user") + 1000 * (pl.col("model") == "new"))
    gates = [
        rf.gate(frame, **options),
        rf.gate(frame, **options, paired=False),
        rf.gate(apart, **options, paired=False),
    ]
    decided = "ship" if users == 200 else "hold"
    assert [gate["why"][0].partition(":")[0] for gate in gates] == [decided] * 3
    assert [gate["passed"][2] for gate in gates] == [users == 200] * 3
    said = f"0 of {users} and 0 of {users} users differ from the others of their group"
    assert all(said in gate["why"][2] for gate in gates[1:])
    p = rf.compare(apart, "hit@3", baseline="old", margin=0.05, paired=False)["p_not_worse"].item()
    assert p == pytest.approx((1 - 0.05 / value) ** users)
    options = {"baseline": "old", "margin": margin, "higher_is_better": {"x": True}}
    without_range = apart.rename({"hit@3": "x"}).drop("rr")
    why = rf.gate(without_range, "x", **options, paired=False)["why"].item()
    assert why.startswith("no interval: no test: all")
    if value == 1:
        none = apart.with_columns(pl.lit(0.0).alias("hit@3"))
        for values in (none, without_range.rename({"x": "hit@3"})):
            row = rf.gate(
                values, "hit@3", baseline="old", margin=margin, undecided="pass", paired=False
            )
            assert row["passed"].item()


def test_gate_of_rare_values_is_undecided():
    old, new = np.zeros(300), np.zeros(300)
    old[:3] = 1
    options = {"model": "week", "baseline": "w41", "higher_is_better": {"x": True}}
    row = rf.gate(weeks(old, new), "x", margin=0.05, paired=False, **options)
    assert row["passed"].item() is False
    assert row["why"].item().startswith("undecided: 300 of 300 values of w42 are 0, too")


def test_week_without_a_hit_has_a_relative_difference_of_minus_one():
    hits = {"w1": [1.0, 0.0] * 15, "w2": [0.0] * 20}
    weeks = [pl.DataFrame({"week": week, "value": values}) for week, values in hits.items()]
    frame = pl.concat(weeks).with_row_index("user")
    row = rf.compare(frame, "value", model="week", baseline="w1", paired=False, details=True).row(
        0, named=True
    )
    assert [row[name] for name in ("relative", "relative_low", "relative_high")] == [-1, None, None]
    alike = "no interval of relative: every user changes by the same percentage"
    assert row["note"].endswith(alike)
    turned = frame.with_columns(pl.col("value") - 5)
    row = rf.compare(turned, "value", model="week", baseline="w1", paired=False, details=True).row(
        0, named=True
    )
    assert row["relative"] is row["relative_low"] is None
    assert row["note"].endswith("relative is null: the baseline's mean, -4.5, is below 0")


@pytest.mark.parametrize(
    ("new", "shared"), [(np.linspace(0, 1, 9), 9), (np.ones(9), 9), (np.ones(9), 0)]
)
def test_copy_passes_a_gate(new, shared):
    options = {"model": "week", "baseline": "w41", "paired": False, "higher_is_better": {"x": True}}
    for old, passed in ((new, True), (new + 0.5, False)):
        row = rf.gate(weeks(old, new, shared), "x", undecided="pass", **options).row(0, named=True)
        assert (row["passed"], row["ci_low"]) == (passed, None)
        both = f"all 9 users of w42 have 1, and all 9 users of w41 have {old[0]:.4g}"
        why = f"undecided: no test: {both}" if passed else f"worse: exact test: {both}"
        if new[0] < new[-1]:
            alike = "worse: exact test: every user differs by the same amount"
            why = "not worse: no user differs" if passed else alike
        assert row["why"] == why
    decided = rf.gate(weeks(new, new, shared), "x", margin=0.1, **options)
    assert decided["why"].item().startswith("no interval: ")


@pytest.mark.parametrize("shared", [0, 2, 5])
def test_groups_of_one_value_each_are_permuted(shared):
    """Of all ways to label the values, only two put the ones together."""
    row = compared(weeks(np.zeros(5), np.ones(5), shared))
    ways = []
    for swaps in itertools.product((0, 1), repeat=shared):
        for chosen in itertools.combinations(range(10 - 2 * shared), 5 - shared):
            alone = [int(at >= 5 - shared) for at in range(10 - 2 * shared)]
            ways.append(sum(1 - swap for swap in swaps) + sum(alone[at] for at in chosen))
    assert row["p_value"] == pytest.approx(np.mean(np.isin(ways, (0, 5))))


def test_groups_of_one_value_each_have_no_effect_size():
    """0.63 has a deviation of 1e-16 by rounding."""
    row = compared(weeks(np.full(100, 0.63), np.ones(110)))
    assert row["effect_size"] is row["ci_low"] is None
    assert row["verdict"] == "higher"
    assert row["note"] == (
        "exact test: all 110 users of w42 have 1, and all 100 users of w41 have 0.63; 110 users of "
        "w42, 100 "
        "of w41, 0 in both"
    )
    ids = pl.DataFrame({"week": ["w1"] * 100 + ["w2"] * 110, "user": range(210), "item": 7})
    judged = ids.with_columns(rank=pl.when(week="w1").then(2).otherwise(1), relevance=1)
    box = str(rf.report(judged, model="week", baseline="w1", paired=False, primary="mrr"))
    assert "mrr rises from 0.500 to 1.000, by 100%, the same for all 110 users" in box
