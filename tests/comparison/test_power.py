"""Which difference so many users show: against G*Power, statsmodels, quadrature and simulation."""

import re
from itertools import pairwise
from math import ceil, sqrt

import numpy as np
import polars as pl
import pytest
import statsmodels.stats.power as sm
from scipy import integrate, stats
from user_values import VALUE, judged, sample

import rankframe as rf
from rankframe import _sizes
from rankframe._comparison import gate_power, power_statistics, statistics
from rankframe._comparison.trials import Bound, Trial

RUN = pl.DataFrame({"user": [1, 2, 3, 4] * 2, "item": [7] * 8, "rank": [2, 2, 4, 1, 1, 2, 3, 1]})
RUN = RUN.with_columns(model=pl.Series(["old"] * 4 + ["new"] * 4))
TRUTH = pl.DataFrame({"user": [1, 2, 3, 4], "item": [7] * 4})
PAIRS = """model metric baseline users baseline_mean note std target detectable needed""".split()


def asked(*systems, **options):
    return rf.stats.power(judged(*systems), VALUE, **{"baseline": "m0"} | options)


def spread(users, deviation):
    """Differences with this standard deviation."""
    values = np.random.default_rng(users).normal(size=users)
    return values * deviation / values.std(ddof=1)


# ------------------------------------------------------------------ published numbers


@pytest.mark.parametrize(
    ("effect", "confidence", "power", "needed"),
    [
        # G*Power 3.1, "Means: difference between two dependent means", two-sided
        (0.2, 0.95, 0.8, 199),
        (0.5, 0.95, 0.8, 34),
        (0.8, 0.95, 0.8, 15),
        (0.5, 0.95, 0.9, 44),
    ],
)
def test_users_of_pairs_are_those_of_gpower(effect, confidence, power, needed):
    change = spread(30, 1 / effect)
    options = {"difference": 1, "confidence": confidence, "power": power}
    row = asked(np.zeros(30), change, **options).row(0, named=True)
    assert row["std"] == pytest.approx(1 / effect, abs=1e-12)
    assert (row["users"], row["target"], row["needed"]) == (30, 1.0, needed)


# ------------------------------------------------------------------ other implementations


@pytest.mark.parametrize("users", [2, 3, 10, 301, 20_000])
@pytest.mark.parametrize(("confidence", "power"), [(0.95, 0.8), (0.99, 0.95), (0.8, 0.3)])
def test_detectable_is_that_of_statsmodels(users, confidence, power):
    options = {"confidence": confidence, "power": power}
    old, new = sample(users, users)
    row = asked(old, new, **options).row(0, named=True)
    deviation = (new - old).std(ddof=1)
    assert row["std"] == pytest.approx(deviation, rel=1e-12)
    assert row["baseline_mean"] == pytest.approx(old.mean(), rel=1e-12)
    found = sm.TTestPower().power(row["detectable"] / deviation, users, 1 - confidence)
    assert found == pytest.approx(power, abs=1e-6)


@pytest.mark.parametrize("effect", [3.0, 1.0, 0.3, 0.05, 0.003])
@pytest.mark.parametrize(("confidence", "power"), [(0.95, 0.8), (0.99, 0.95)])
def test_needed_users_are_those_of_statsmodels(effect, confidence, power):
    expected = sm.TTestPower().solve_power(effect, alpha=1 - confidence, power=power)
    design = power_statistics.Design(confidence, power)
    assert power_statistics.needed_users(effect, 1.0, design) == ceil(expected)
    assert power_statistics.needed_users(effect, 0.0, design) == 2


def integrated(distance, freedom, confidence):
    """P(|T| > limit) by its definition: a normal deviate over an independent χ."""
    limit = stats.t.isf((1 - confidence) / 2, freedom)

    def density(scale):
        reached = stats.norm.sf(limit * scale - distance) + stats.norm.cdf(
            -limit * scale - distance
        )
        return reached * stats.chi.pdf(scale * sqrt(freedom), freedom) * sqrt(freedom)

    around = 1 + np.array([-8, -3, -1, 0, 1, 3, 8]) / sqrt(2 * freedom)
    points = [0.0, *around[around > 0], *([40.0] if freedom < 20 else [])]
    parts = [integrate.quad(density, low, high) for low, high in pairwise(points)]
    return sum(value for value, _ in parts)


@pytest.mark.parametrize("users", [2, 3, 5, 20, 400, 100_000])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.9999])
@pytest.mark.parametrize("power", [0.55, 0.8, 0.99, 0.9999])
def test_power_is_the_integral_over_the_variance(users, confidence, power):
    distance = power_statistics.least_distance(users, power_statistics.Design(confidence, power))
    assert integrated(distance, users - 1, confidence) == pytest.approx(power, abs=1e-7)


@pytest.mark.parametrize("users", [5, 30, 200])
def test_detectable_difference_is_found_as_often_as_said(users):
    rng = np.random.default_rng(users)
    detectable = power_statistics.detectable(
        0.3 / sqrt(users), users, power_statistics.Design(0.95, 0.8)
    )
    changes = rng.normal(detectable, 0.3, (users, 4000))
    assert (
        0.78 <= (statistics.t_test(statistics.Sample(changes, None), 0.95).p < 0.05).mean() <= 0.82
    )


# ------------------------------------------------------------------ what must hold


@pytest.mark.parametrize("share", [0.5, 0.97, 1.03, 5.0, 100.0])
def test_so_many_users_suffice_where_the_difference_is_detectable(share):
    values = sample(3, 50, systems=3)
    options = {"baseline": "m0", "power": 0.9, "confidence": 0.9}
    plain = asked(*values, **options)["detectable"][0]
    row = asked(*values, difference=share * plain, **options).row(0, named=True)
    assert (row["needed"] <= 50) == (share > 1)
    goal, effect = power_statistics.Design(0.9, 0.9), row["target"] / row["std"]
    distances = [
        power_statistics.power_of(effect * sqrt(users), users, goal)
        for users in (row["needed"] - 1, row["needed"])
        if users > 1
    ]
    assert distances[-1] >= 0.9
    assert row["needed"] == 2 or distances[0] < 0.9


@pytest.mark.parametrize("effect", [1e-6, 1e-5, 0.01, 50.0, 1e5, 1e300])
def test_difference_has_its_number_of_users(effect):
    needed = power_statistics.needed_users(effect, 1.0, power_statistics.Design(0.95, 0.8))
    assert isinstance(needed, int)
    assert needed >= 2
    if effect < 1e-4:
        normal = (stats.norm.isf(0.025) + stats.norm.isf(0.2)) / effect
        assert needed == pytest.approx(normal**2, rel=1e-4)
    assert power_statistics.needed_users(1e-9, 1.0, power_statistics.Design(0.95, 0.8)) is None


def test_relative_difference_is_of_the_baselines_mean():
    old, new, other = sample(5, 40, systems=3)
    for baseline, mean in {"m0": old.mean(), "m1": -new.mean()}.items():
        got = asked(old, -new, other, difference="2.5 %", baseline=baseline)
        for row in got.rows(named=True):
            assert row["target"] == pytest.approx(0.025 * abs(mean))
            same = asked(old, -new, other, difference=row["target"], baseline=baseline)
            assert row["needed"] in same["needed"].to_list()


def test_metrics_may_have_differences_of_their_own():
    square = (VALUE**2).alias("square")
    table = judged(*sample(6, 20))
    got = rf.stats.power(table, VALUE, square, baseline="m0", difference={"square": 0.5})
    assert got.select("metric", "target").rows() == [("value", None), ("square", 0.5)]
    assert got["needed"].null_count() == 1
    assert got["note"].null_count() == 2


def test_compare_has_the_same_detectable_difference():
    values = sample(7, 60, systems=3)
    square = (VALUE**2).alias("square")
    options = {"confidence": 0.9, "comparisons": 4, "baseline": "m0"}
    expected = rf.stats.power(judged(*values), VALUE, square, **options)["detectable"]
    assert expected.null_count() == 0
    for test in ("t", "randomization"):
        options = {"test": test, "confidence": 0.9, "resamples": 20, "baseline": "m0"}
        got = rf.compare(judged(*values), VALUE, square, **options, details=True)["detectable"]
        assert got.to_list() == pytest.approx(expected.to_list(), rel=1e-9)
    assert (
        rf.compare(judged(*values), VALUE, test="max_t", details=True)["detectable"].null_count()
        == 3
    )
    # without any difference a test at 1 − 0.15 rejects more often than with power 0.8
    got = rf.compare(judged(*values), VALUE, confidence=0.15, details=True)["detectable"]
    assert got.null_count() == 3


# ------------------------------------------------------------------ segments and kinds of frames


def test_segment_is_planned_as_if_alone():
    table = judged(*sample(4, 30, systems=3)).with_columns(country=pl.col("user") % 2)
    options = {"difference": "1%", "baseline": "m1"}
    got = rf.stats.power(table, VALUE, by=["model", "country"], **options)
    assert got.columns == ["model", "country", *PAIRS[1:]]
    assert got.height == 4
    for country in (0, 1):
        alone = rf.stats.power(table.filter(country=country), VALUE, **options)
        assert got.filter(country=country).drop("country").equals(alone)


def test_users_whom_a_system_leaves_undefined():
    got = asked([1.0, 2.0, None, 4.0], [2.0, 2.5, 3.0, 9.0], [0.0, None, 1.0, 1.0])
    assert got["users"].to_list() == [3, 2]


# ------------------------------------------------------------------ too little to go by


@pytest.mark.parametrize(
    ("systems", "note"),
    [
        (([1.0, None], [None, 2.0]), "no user has a value in both"),
        (([1.0], [2.0]), "one user"),
        (([1.0, 2.0], [1.0, 2.0]), "no user differs"),
        (([0.1, 0.2], [0.2, 0.3]), "every user differs by the same amount"),
    ],
)
def test_power_is_null_where_undefined_and_the_note_says_why(systems, note):
    row = asked(*systems, difference=0.1).row(0, named=True)
    assert (row["detectable"], row["needed"], row["target"]) == (None, None, 0.1)
    assert row["note"].startswith(note)
    assert (row["std"] is None) == (row["users"] < 2)


def test_share_of_nothing_and_a_difference_too_small():
    row = asked([0.0, 0.0, 0.0], [1.0, 2.0, 4.0], difference="1%").row(0, named=True)
    assert (row["target"], row["needed"]) == (0.0, None)
    assert row["note"] == "the baseline's mean is 0, so a share of it is not a difference"
    assert row["detectable"] > 0
    row = asked([0.0, 0.0, 0.0], [1.0, 2.0, 4.0], difference=1e-12).row(0, named=True)
    assert (row["needed"], row["note"]) == (None, "more than 10¹⁵ users are needed")


@pytest.mark.parametrize(
    "options",
    [
        {"power": 0},
        {"power": 1.0},
        {"power": "0.8"},
        {"power": 0.04},
        {"confidence": 95},
        {"difference": 0},
        {"difference": -0.1},
        {"difference": float("inf")},
        {"difference": True},
        {"difference": "0%"},
        {"difference": "nan%"},
        {"difference": "one%"},
        {"difference": "0.01"},
        {"difference": {"rr": 0.1}},
        {"baseline": "m9"},
        {"model": None},
    ],
)
def test_power_refuses_bad_options(options, refused):
    refused(asked, [1.0, 2.0], [3.0, 1.0], **options)


def test_power_refuses_bad_data(refused):
    refused(asked, [1.0, 2.0])
    refused(
        lambda: (
            judged([1.0], [2.0]).rename({"model": "needed"}).rank.stats.power("rr", model="needed")
        )
    )
    refused(RUN.rank.stats.power, "gmap", truth=TRUTH)
    refused(RUN.rank.stats.power, "coverage@1", truth=TRUTH, items=TRUTH.select("item").unique())
    refused(asked, [1.0], [2.0], basline="m0")


# ------------------------------------------------------------------ beside a corrected verdict


def noncentral(distance, users, level):
    """The power of the two-sided t test at this level."""
    limit = stats.t.isf(level / 2, users - 1)
    return stats.nct.sf(limit, users - 1, distance) + stats.nct.cdf(-limit, users - 1, distance)


@pytest.mark.parametrize("comparisons", [1, 5, 20])
def test_power_is_of_one_of_many_comparisons(comparisons):
    old, new = sample(1, 30)
    row = asked(old, new, comparisons=comparisons, difference=0.3).row(0, named=True)
    deviation = (new - old).std(ddof=1)
    level = 0.05 / comparisons
    assert noncentral(row["detectable"] / deviation * sqrt(30), 30, level) == pytest.approx(0.8)
    found = [
        noncentral(0.3 / deviation * sqrt(n), n, level) for n in (row["needed"] - 1, row["needed"])
    ]
    assert found[0] < 0.8 <= found[1]
    with pytest.raises(ValueError, match="comparisons must be an integer ≥ 1, not 0"):
        asked(old, new, comparisons=0)


def test_detectable_is_of_the_comparisons_that_are_corrected_together():
    table = judged(*sample(2, 40, systems=4)).with_columns(
        country=pl.when(pl.col("user") < 14).then(1).otherwise(2)
    )
    metrics = [VALUE.alias("x"), (VALUE**2).alias("y")]

    def levels(**options):
        """The level of each row at which its difference is detected 8 times in 10."""
        got = rf.compare(table, *metrics, **options, details=True)
        plain = rf.compare(
            table, *metrics, **{**options, "correction": None, "primary": None}, details=True
        )
        ratios = (got["detectable"] / plain["detectable"]).to_list()
        users = got["users"].to_list()
        grid = {
            n: power_statistics.least_distance(n, power_statistics.Design(0.95, 0.8)) for n in users
        }
        return [
            0.05
            / next(
                m for m in range(1, 99) if abs(noncentral(r * grid[n], n, 0.05 / m) - 0.8) < 1e-6
            )
            for r, n in zip(ratios, users, strict=True)
        ]

    for correction in ("holm", "bh"):
        assert levels(correction=correction) == [0.05 / 12] * 12
    assert levels(correction=None) == [0.05] * 12
    assert levels(baseline="m0") == [0.05 / 6] * 6
    assert levels(baseline="m0", by=["model", "country"], total=True) == [0.05 / 18] * 18
    assert levels(baseline="m0", primary="x") == [0.05 / 3] * 6
    pair = table.filter(pl.col("model").is_in(["m0", "m1"]))
    alone = rf.compare(pair, *metrics, baseline="m0", primary="x", details=True)
    plain = rf.compare(pair, *metrics, baseline="m0", correction=None, details=True)
    assert alone["detectable"].equals(plain["detectable"])  # each family has one comparison
    same = pl.concat([pair, pair.filter(model="m0").with_columns(model=pl.lit("m2"))])
    untested = rf.compare(same, VALUE, baseline="m0", details=True)
    assert untested["p_value"].is_null().to_list() == [False, True]
    assert untested["detectable"][0] == pytest.approx(plain["detectable"][0])


def test_detectable_counts_clusters():
    table = judged(*sample(3, 40, systems=3)).with_columns(customer=pl.col("user") // 4)
    got = rf.compare(table, VALUE, baseline="m0", cluster="customer", details=True)
    plain = rf.compare(
        table, VALUE, baseline="m0", cluster="customer", correction=None, details=True
    )
    one, two = (
        power_statistics.least_distance(10, power_statistics.Design(c, 0.8)) for c in (0.95, 0.975)
    )
    assert (got["detectable"] / plain["detectable"]).to_list() == pytest.approx([two / one] * 2)


@pytest.mark.parametrize("comparisons", [5, 20])
def test_corrected_verdict_finds_what_is_detectable_8_times_in_10(comparisons):
    """One true difference among systems that are equal: at the level of a single test, .59, .41."""
    rng = np.random.default_rng(comparisons)
    users, runs = 40, 1500
    level = power_statistics.of_family(0.95, comparisons)
    found = {}
    for name, confidence in (("now", level), ("alone", 0.95)):
        design = power_statistics.Design(confidence, 0.8)
        shift = power_statistics.detectable(1.0 / sqrt(users), users, design)
        change = rng.normal(0, 1, (users, runs * comparisons))
        change[:, :runs] += shift
        p = statistics.t_test(statistics.Sample(change), 0.95).p.reshape(comparisons, runs).T
        adjusted = np.array([statistics.corrected(row, "holm")[0] for row in p])
        found[name] = np.mean(adjusted < 0.05)
    assert found["now"] >= 0.75
    assert found["alone"] < 0.65


# ------------------------------------------------------------------ what a gate can see


def shapes(random):
    """Values of a baseline, gains of as many users, and a margin: hits, rare losses, noise."""
    hits = (np.arange(60) < 30) * 1.0
    lost = np.where(np.arange(60) < 5, -1.0, 0) + np.where(np.arange(60) > 54, 1.0, 0)
    yield hits, lost, 0.05
    yield hits, lost * (np.arange(60) % 2), 0.2
    noise = random.normal(0, 0.02, 90)
    yield np.full(90, 0.5), np.where(np.arange(90) < 3, -0.45, noise), 0.045
    yield np.full(90, 0.5), noise.round(2), 0.05
    yield np.full(90, 0.5), np.where(np.arange(90) < 12, -0.3, 0.05), 0.01


def test_simulated_rule_is_that_of_the_gate(monkeypatch):
    """Each draw, as a table of its users, passes the gate or not as the simulation says."""
    monkeypatch.setattr(gate_power, "note_of", lambda *_: None)  # else each row has a simulation
    random = np.random.default_rng(2)
    seen = set()
    for relative in (False, True):
        for old, gains, size in shapes(random):
            margin = Bound(size, relative)
            surplus = gains + size * (old if relative else 1)
            counts = random.multinomial(len(old), np.full(len(old), 1 / len(old)), size=6)
            worst = (size - 1) if not relative else size * 1 - 1
            hits = bool(set(old) <= {0.0, 1.0})
            order = gains.argsort(kind="stable")
            columns = [x[order] for x in (gains, surplus, old)]
            equal = gate_power.Equal(
                *columns, old, margin, 1.0, worst, hits, Trial(), len(old), len(old)
            )
            passes = equal.p_within(counts[:, order].T) < 0.025
            rows = [np.repeat(np.arange(len(old)), draw) for draw in counts]
            users = pl.DataFrame({"run": np.repeat(np.arange(6), len(old))}).with_columns(
                user=pl.int_range(pl.len()).over("run")
            )
            values = [old[np.concatenate(rows)], (old + gains)[np.concatenate(rows)]]
            table = pl.concat(
                users.with_columns(model=pl.lit(name), v=value)
                for name, value in zip(("old", "new"), values, strict=True)
            )
            decided = rf.gate(
                table,
                "v",
                by=["model", "run"],
                baseline="old",
                margin=str(margin) if relative else size,
                higher_is_better={"v": True},
                value_range={"v": (0, 1)},
            ).sort("run")
            assert decided["passed"].to_list() == passes.tolist()
            seen |= {*passes.tolist()}
    assert seen == {False, True}


def test_equal_system_passes_as_often_as_by_simulation():
    """Of 300 users 10 % gain a hit and 10 % lose one: 3,800 are enough for 8 in 10."""
    old = (np.arange(300) < 150) * 1.0
    new = np.where(np.arange(300) % 10 == 0, 1 - old, old)
    table = {
        name: pl.DataFrame({"user": range(300), "v": values})
        for name, values in (("old", old), ("new", new))
    }
    options = {"baseline": "old", "higher_is_better": {"v": True}, "value_range": {"v": (0, 1)}}
    planned = rf.stats.power(table, "v", margin=0.02, **options)
    assert planned.columns[-3:] == ["detectable", "passes", "needed"]
    row = planned.row(0, named=True)
    # a binomial number of users differs, each by a fair coin: t of the gate, by 4,000 draws
    random = np.random.default_rng(0)
    differ = random.binomial(300, 0.1, 4000)
    mean = (2 * random.binomial(differ, 0.5) - differ) / 300
    error = np.sqrt((differ / 300 - mean**2) / 299)
    share = ((mean + 0.02) / error > stats.t.ppf(0.975, 299)).mean()
    assert row["passes"] == pytest.approx(share, abs=0.03)
    expected = (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) ** 2 * 0.1 / 0.02**2
    assert row["needed"] == pytest.approx(expected, rel=0.05)
    assert row["target"] == 0.02
    why = rf.gate(table, "v", margin=0.02, **options)["why"].item()
    times = round(100 * row["passes"])
    assert f"; an equal system passes {times} times in 100 with 300 users: 2,0" in why


@pytest.mark.parametrize("kind", ["users", "clusters", "weights", "both"])
def test_passes_is_the_share_of_resampled_systems_that_pass(kind):
    """Gains and as many losses go through the gate, drawn again with clusters and weights."""
    random, number, size = np.random.default_rng(4), 80, 3 if kind in ("clusters", "both") else 1
    gains = random.normal(0, 0.1, (number // 2, 1)) + random.normal(0, 0.1, (number // 2, size))
    gains = np.concatenate([gains, -gains])
    weights = np.tile(random.uniform(0.2, 3, (number // 2, size)), (2, 1))
    options = {"higher_is_better": {"v": True}, "baseline": "old", "margin": 0.026}
    options |= {"cluster": "c"} if size > 1 else {}
    options |= {"weights": "w"} if kind in ("weights", "both") else {}

    def table(units):
        columns = {
            "repeat": np.arange(units.size * size) // (number * size),
            "c": np.arange(units.size * size) // size,
            "user": np.arange(units.size * size),
            "w": weights[units].ravel(),
        }
        values = {"old": 0.5, "new": 0.5 + gains[units].ravel()}
        return {name: pl.DataFrame({**columns, "v": value}) for name, value in values.items()}

    drawn = table(random.integers(0, number, (400, number)))
    passed = rf.gate(drawn, "v", by="repeat", **options)["passed"].mean()
    why = rf.gate(table(np.arange(number)), "v", **options)["why"].item()
    times = int(re.search(r"passes (\d+) times in 100", why)[1])
    assert 0.1 < passed < 0.9
    assert times / 100 == pytest.approx(passed, abs=0.05)
    if "weights" not in options:
        planned = rf.stats.power(table(np.arange(number)), "v", **options)
        assert round(100 * planned["passes"].item()) == times
    else:
        with pytest.raises(ValueError, match="weights"):
            rf.stats.power(table(np.arange(number)), "v", **options)


def test_needed_is_null_with_a_reason_where_no_number_of_users_passes():
    """A tenth lose .6 and gains are small: the gate bounds the loss of a tenth by 1."""
    gains = np.where(np.arange(200) % 10 == 0, -0.6, 0.6 / 9)
    table = {
        name: pl.DataFrame({"user": range(200), "v": values})
        for name, values in (("old", np.full(200, 0.6)), ("new", 0.6 + gains))
    }
    options = {"higher_is_better": {"v": True}, "value_range": {"v": (0, 1)}, "margin": 0.03}
    row = rf.stats.power(table, "v", **options).row(0, named=True)
    assert (row["passes"], row["needed"]) == (0, None)
    reason = "needed is null: no number of users is enough, as those who lose most may lose all"
    assert reason in row["note"]
    why = rf.gate(table, "v", **options)["why"].item()
    assert why.endswith("passes 0 times in 100 with 200 users: no number is enough for 8 in 10")


def test_margin_and_difference_are_not_asked_at_once():
    for other, value in (("difference", 0.1), ("comparisons", 2)):
        with pytest.raises(ValueError, match=f"is not supported with {other}=: leave out one"):
            asked([0.0, 0.5], [0.5, 0.0], margin=0.1, **{other: value})


def test_no_equal_system_where_no_user_loses():
    old = np.full(30, 0.2)
    table = {
        name: pl.DataFrame({"user": range(30), "v": values})
        for name, values in (("old", old), ("new", old + np.arange(30) / 100))
    }
    row = rf.stats.power(table, "v", baseline="old", margin=0.1, higher_is_better={"v": True})
    assert row.select("passes", "needed").row(0) == (None, None)
    assert "no user gains, or none loses" in row["note"].item()


def test_equal_systems_are_simulated_for_few_rows(monkeypatch):
    monkeypatch.setattr(_sizes, "ROWS_SIMULATED", 1)
    gains = [0.1, -0.1, 0.2, -0.2] * 10
    table = pl.DataFrame(
        {
            "model": ["old"] * 80 + ["new"] * 80,
            "segment": ([0] * 40 + [1] * 40) * 2,
            "user": [*range(80)] * 2,
            "v": [0.5] * 80 + [0.5 + gain for gain in gains] * 2,
        }
    )
    options = {"by": ["model", "segment"], "higher_is_better": {"v": True}}
    why = rf.gate(table, "v", baseline="old", margin=0.01, value_range={"v": (0, 1)}, **options)
    assert why["why"].str.starts_with("undecided: ").all()
    assert why["why"].str.contains("an equal system passes").to_list() == [True, False]
