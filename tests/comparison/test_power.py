"""Which difference so many users show: against G*Power, statsmodels, quadrature and simulation."""

from itertools import pairwise
from math import ceil, sqrt

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import integrate, stats
from user_values import VALUE, judged, sample

import rankframe as rf
from rankframe._comparison import power_statistics, statistics

RUN = pl.DataFrame({"user": [1, 2, 3, 4] * 2, "item": [7] * 8, "rank": [2, 2, 4, 1, 1, 2, 3, 1]})
RUN = RUN.with_columns(model=pl.Series(["old"] * 4 + ["new"] * 4))
TRUTH = pl.DataFrame({"user": [1, 2, 3, 4], "item": [7] * 4})
PAIRS = (
    """metric model baseline users baseline_mean note deviation target detectable needed""".split()
)
ANOVA = "metric systems users baseline_mean note deviation target detectable needed".split()


def asked(*systems, **options):
    return rf.power(judged(*systems), VALUE, **options)


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
    assert row["deviation"] == pytest.approx(1 / effect, abs=1e-12)
    assert (row["users"], row["target"], row["needed"]) == (30, 1.0, needed)


@pytest.mark.parametrize(
    ("f", "systems", "needed"),
    # G*Power 3.1, "ANOVA: fixed effects, omnibus, one-way", α = 0.05, power 0.8: N / groups
    [(0.25, 3, 53), (0.25, 4, 45), (0.25, 5, 40), (0.4, 3, 22), (0.1, 3, 323)],
)
def test_users_of_systems_are_those_of_gpower(f, systems, needed):
    values = np.stack([spread(40, 1.0)] * systems)
    # of m means, the best and the worst δ apart, f² = δ²/(2mσ²)
    row = asked(*values, design="anova", difference=f * sqrt(2 * systems)).row(0, named=True)
    assert (row["systems"], row["needed"]) == (systems, needed)


#: T. Sakai, Laboratory Experiments in Information Retrieval, 2018, table 6.4: α, β, and Nagata's
#: λ ≈ x₁ + x₂·√(m − 1) for many users, which is within 5 %.
NAGATA = [
    (0.01, 0.1, 10.439, 5.213),
    (0.01, 0.2, 7.736, 4.551),
    (0.05, 0.1, 7.049, 4.244),
    (0.05, 0.2, 4.860, 3.584),
    (0.05, 0.5, 1.765, 2.341),
]


@pytest.mark.parametrize(("alpha", "beta", "first", "second"), NAGATA)
@pytest.mark.parametrize("systems", [3, 10, 30])
def test_lambda_is_that_of_sakais_table(alpha, beta, first, second, systems):
    design = power_statistics.Design(1 - alpha, 1 - beta, systems)
    expected = first + second * sqrt(systems - 1)
    assert power_statistics.least_distance(100_000, design) ** 2 == pytest.approx(
        expected, rel=0.05
    )


# ------------------------------------------------------------------ other implementations


@pytest.mark.parametrize("users", [2, 3, 10, 301, 20_000])
@pytest.mark.parametrize(("confidence", "power"), [(0.95, 0.8), (0.99, 0.95), (0.8, 0.3)])
def test_detectable_is_that_of_statsmodels(users, confidence, power):
    sm = pytest.importorskip("statsmodels.stats.power", reason="a second opinion on power")
    options = {"confidence": confidence, "power": power}
    old, new = sample(users, users)
    row = asked(old, new, **options).row(0, named=True)
    deviation = (new - old).std(ddof=1)
    assert row["deviation"] == pytest.approx(deviation, rel=1e-12)
    assert row["baseline_mean"] == pytest.approx(old.mean(), rel=1e-12)
    found = sm.TTestPower().power(row["detectable"] / deviation, users, 1 - confidence)
    assert found == pytest.approx(power, abs=1e-6)
    values = sample(users, users, systems=3)
    row = asked(*values, design="anova", **options).row(0, named=True)
    variance = values.var(axis=1, ddof=1).mean()
    assert row["deviation"] == pytest.approx(sqrt(variance), rel=1e-12)
    f = row["detectable"] / sqrt(2 * 3 * variance)
    found = sm.FTestAnovaPower().power(f, users * 3, 1 - confidence, k_groups=3)
    assert found == pytest.approx(power, abs=1e-6)


@pytest.mark.parametrize("effect", [3.0, 1.0, 0.3, 0.05, 0.003])
@pytest.mark.parametrize(("confidence", "power"), [(0.95, 0.8), (0.99, 0.95)])
def test_needed_users_are_those_of_statsmodels(effect, confidence, power):
    sm = pytest.importorskip("statsmodels.stats.power", reason="a second opinion on power")
    expected = sm.TTestPower().solve_power(effect, alpha=1 - confidence, power=power)
    design = power_statistics.Design(confidence, power)
    assert power_statistics.needed_users(effect, 1.0, design) == ceil(expected)
    expected = sm.TTestIndPower().solve_power(effect, alpha=1 - confidence, power=power)
    assert power_statistics.needed_users(
        effect, 1.0, power_statistics.Design(confidence, power, 2)
    ) == ceil(expected)


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
def test_a_detectable_difference_is_found_as_often_as_said(users):
    rng = np.random.default_rng(users)
    detectable = power_statistics.detectable(0.3, users, power_statistics.Design(0.95, 0.8))
    changes = rng.normal(detectable, 0.3, (users, 4000))
    assert (
        0.78 <= (statistics.t_test(statistics.Sample(changes, None), 0.95).p < 0.05).mean() <= 0.82
    )
    detectable = power_statistics.detectable(0.3, users, power_statistics.Design(0.95, 0.8, 4))
    values = rng.normal(0.5, 0.3, (4, users, 4000))
    values[0] += detectable / 2
    values[1] -= detectable / 2
    assert 0.78 <= (stats.f_oneway(*values).pvalue < 0.05).mean() <= 0.82


# ------------------------------------------------------------------ what must hold


@pytest.mark.parametrize("design", ["pairs", "anova"])
@pytest.mark.parametrize("share", [0.5, 0.97, 1.03, 5.0, 100.0])
def test_so_many_users_suffice_where_the_difference_is_detectable(design, share):
    values = sample(3, 50, systems=3)
    options = {"design": design, "baseline": "m0", "power": 0.9, "confidence": 0.9}
    plain = asked(*values, **options)["detectable"][0]
    row = asked(*values, difference=share * plain, **options).row(0, named=True)
    assert (row["needed"] <= 50) == (share > 1)
    goal = power_statistics.Design(0.9, 0.9, 3 if design == "anova" else None)
    distances = [
        power_statistics.power_of(row["target"] / goal.error(row["deviation"], users), users, goal)
        for users in (row["needed"] - 1, row["needed"])
        if users > 1
    ]
    assert distances[-1] >= 0.9
    assert row["needed"] == 2 or distances[0] < 0.9


@pytest.mark.parametrize("effect", [1e-6, 1e-5, 0.01, 50.0, 1e5, 1e300])
def test_any_difference_has_its_number_of_users(effect):
    for systems in (None, 2, 20):
        needed = power_statistics.needed_users(
            effect, 1.0, power_statistics.Design(0.95, 0.8, systems)
        )
        assert isinstance(needed, int)
        assert needed >= 2
        if effect < 1e-4 and systems is None:
            normal = (stats.norm.isf(0.025) + stats.norm.isf(0.2)) / effect
            assert needed == pytest.approx(normal**2, rel=1e-4)
    assert power_statistics.needed_users(1e-9, 1.0, power_statistics.Design(0.95, 0.8)) is None


def test_a_relative_difference_is_of_the_baselines_mean():
    old, new, other = sample(5, 40, systems=3)
    got = asked(old, -new, other, difference="2.5 %")
    means = {"m0": old.mean(), "m1": -new.mean()}
    assert got["baseline"].to_list() == ["m0", "m0", "m1"]
    for row in got.rows(named=True):
        assert row["target"] == pytest.approx(0.025 * abs(means[row["baseline"]]))
        same = asked(old, -new, other, difference=row["target"], baseline=row["baseline"])
        assert row["needed"] in same["needed"].to_list()
    row = asked(old, -new, design="anova", difference="1%", baseline="m1").row(0, named=True)
    assert row["target"] == pytest.approx(0.01 * new.mean())
    assert row["baseline_mean"] == pytest.approx(-new.mean())
    assert asked(old, new, design="anova")["baseline_mean"].to_list() == [None]


def test_each_metric_may_have_its_difference():
    square = (VALUE**2).alias("square")
    table = judged(*sample(6, 20))
    got = rf.power(table, VALUE, square, difference={"square": 0.5})
    assert got.select("metric", "target").rows() == [("value", None), ("square", 0.5)]
    assert got["needed"].null_count() == 1
    assert got["note"].null_count() == 2


def test_compare_has_the_same_detectable_difference():
    values = sample(7, 60, systems=3)
    square = (VALUE**2).alias("square")
    expected = rf.power(judged(*values), VALUE, square, confidence=0.9)["detectable"]
    assert expected.null_count() == 0
    for test in ("t", "randomization", "bootstrap"):
        options = {"test": test, "confidence": 0.9, "resamples": 20}
        got = rf.compare(judged(*values), VALUE, square, **options)["detectable"]
        assert got.to_list() == expected.to_list()
    for test in ("wilcoxon", "tukey", "randomized_tukey", "friedman"):
        assert rf.compare(judged(*values), VALUE, test=test)["detectable"].null_count() == 3
    # without any difference a test at 1 − 0.15 rejects more often than with power 0.8
    got = rf.compare(judged(*values), VALUE, confidence=0.15)["detectable"]
    assert got.null_count() == 3


# ------------------------------------------------------------------ segments and kinds of frames


@pytest.mark.parametrize("design", ["pairs", "anova"])
def test_a_segment_is_planned_as_if_alone(design):
    table = judged(*sample(4, 30, systems=3)).with_columns(country=pl.col("user") % 2)
    options = {"design": design, "difference": "1%", "baseline": "m1"}
    got = rf.power(table, VALUE, by=["model", "country"], **options)
    assert got.columns == ["country", *(PAIRS if design == "pairs" else ANOVA)]
    assert got.height == (4 if design == "pairs" else 2)
    for country in (0, 1):
        alone = rf.power(table.filter(country=country), VALUE, **options)
        assert got.filter(country=country).drop("country").equals(alone)


@pytest.mark.parametrize("design", ["pairs", "anova"])
def test_every_kind_of_frame(design):
    pandas = pytest.importorskip("pandas")
    import rankframe.pandas  # noqa: F401

    options = {"baseline": "old", "difference": "1%", "design": design}
    before = RUN.clone()
    eager = RUN.rank.power("rr", "hit@1", truth=TRUTH, **options)
    assert eager.columns == (PAIRS if design == "pairs" else ANOVA)
    assert RUN.equals(before)
    lazy = RUN.lazy().rank.power("rr", "hit@1", truth=TRUTH.lazy(), **options)
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect_schema() == eager.schema
    assert lazy.collect().equals(eager)
    frame = RUN.to_pandas().ranking.power("rr", "hit@1", truth=TRUTH.to_pandas(), **options)
    assert isinstance(frame, pandas.DataFrame)
    assert_frame_equal(pl.from_pandas(frame), eager, check_dtypes=False)


def test_users_whom_a_system_leaves_undefined():
    got = asked([1.0, 2.0, None, 4.0], [2.0, 2.5, 3.0, 9.0], [0.0, None, 1.0, 1.0])
    assert got["users"].to_list() == [3, 2, 3]
    assert asked([1.0, 2.0, None, 4.0], [2.0, 2.5, 3.0, 9.0], design="anova")["users"].item() == 3


# ------------------------------------------------------------------ too little to go by


@pytest.mark.parametrize(
    ("systems", "design", "note"),
    [
        (([1.0, None], [None, 2.0]), "pairs", "no user has a value in both"),
        (([1.0], [2.0]), "pairs", "one user"),
        (([1.0, 2.0], [1.0, 2.0]), "pairs", "no user differs"),
        (([0.1, 0.2], [0.2, 0.3]), "pairs", "every user differs by the same amount"),
        (([1.0, None], [None, 2.0]), "anova", "no user has a value in all"),
        (([1.0], [2.0]), "anova", "one user"),
        (([0.1, 0.1], [0.3, 0.1 + 0.2]), "anova", "within each system, every user has the same"),
    ],
)
def test_what_is_undefined_is_null_and_the_note_says_why(systems, design, note):
    row = asked(*systems, design=design, difference=0.1).row(0, named=True)
    assert (row["detectable"], row["needed"], row["target"]) == (None, None, 0.1)
    assert row["note"].startswith(note)
    assert (row["deviation"] is None) == (row["users"] < 2)


def test_a_share_of_nothing_and_a_difference_too_small():
    row = asked([0.0, 0.0, 0.0], [1.0, 2.0, 4.0], difference="1%").row(0, named=True)
    assert (row["target"], row["needed"]) == (0.0, None)
    assert row["note"] == "the baseline's mean is 0, so a share of it is not a difference"
    assert row["detectable"] > 0
    row = asked([0.0, 0.0, 0.0], [1.0, 2.0, 4.0], difference=1e-12).row(0, named=True)
    assert (row["needed"], row["note"]) == (None, "more than 10¹⁵ users are needed")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"power": 0}, "power must be a number between 0 and 1, not 0"),
        ({"power": 1.0}, "power must be a number between 0 and 1, not 1.0"),
        ({"power": "0.8"}, "power must be a number between 0 and 1, not '0.8'"),
        ({"power": 0.04}, "power=0.04 must be above 1 − confidence = 0.05, the probability"),
        ({"confidence": 95}, "confidence must be a number between 0 and 1, not 95"),
        ({"difference": 0}, "difference of 'value' must be a finite number > 0, or a share of"),
        ({"difference": -0.1}, "difference of 'value' must be a finite number > 0.* not -0.1"),
        ({"difference": float("inf")}, "difference of 'value' must be a finite number > 0"),
        ({"difference": True}, "difference of 'value' must be a finite number > 0"),
        ({"difference": "0%"}, "such as '1%', not '0%'"),
        ({"difference": "nan%"}, "such as '1%', not 'nan%'"),
        ({"difference": "one%"}, "such as '1%', not 'one%'"),
        ({"difference": "0.01"}, "such as '1%', not '0.01'"),
        ({"difference": {"rr": 0.1}}, "difference names 'rr'; the metrics are 'value'"),
        ({"design": "t"}, "design must be one of 'pairs', 'anova', not 't'"),
        ({"design": "anova", "difference": "1%"}, "name the system in baseline="),
        ({"baseline": "m9"}, "baseline must be one of 'm0', 'm1', not 'm9'"),
        ({"by": []}, "power needs the column that identifies the systems: name it in by="),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        asked([1.0, 2.0], [3.0, 1.0], **options)


def test_bad_data():
    with pytest.raises(rf.RankingDataError, match="'model': only one system"):
        asked([1.0, 2.0])
    with pytest.raises(rf.RankingDataError, match="'needed': power makes a column of this name"):
        judged([1.0], [2.0]).rename({"model": "needed"}).rank.power("rr", by="needed")
    with pytest.raises(ValueError, match="'gmap' is a mean over users, not a value per user"):
        RUN.rank.power("gmap", truth=TRUTH)
    with pytest.raises(ValueError, match="one number for all users"):
        RUN.rank.power("coverage@1", truth=TRUTH, items=TRUTH.select("item").unique())
    with pytest.raises(TypeError, match="unknown argument 'basline'"):
        asked([1.0], [2.0], basline="m0")
