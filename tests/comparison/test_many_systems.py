"""Many systems at once: the worked data of a book, enumeration, simulation, and what is said."""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats
from user_values import FEW, VALUE, compared, judged, sample

import rankframe as rf
from benchmarks import systems
from rankframe._comparison import statistics, system_statistics

# T. Sakai, 情報アクセス評価方法論, 2015, Table 5.1: three systems, 20 topics; elinor has the same
TENTHS = (
    "7 3 2 6 4 4 0 7 1 3 5 4 0 6 5 3 1 5 2 1",
    "5 1 0 2 4 3 0 5 3 3 4 4 1 4 2 1 1 6 3 2",
    "0 0 2 1 3 3 1 2 4 4 4 3 3 2 2 2 1 5 4 3",
)
SAKAI = [[int(tenths) / 10 for tenths in row.split()] for row in TENTHS]
BOOK = judged(*SAKAI)
VARIANCE = "metric source users sum_of_squares freedom mean_square f epsilon p_value note".split()
BEST = "model metric users mean difference ci_low ci_high p_value may_be_best note".split()


def nothing(_):
    """Advance no bar."""


# ------------------------------------------------------------------ the analysis of variance


def test_the_analysis_of_variance_of_sakais_book():
    """The digits are those of elinor's documentation, which cites the book."""
    got = rf.stats.anova(BOOK, VALUE)
    assert got.columns == VARIANCE
    assert got["source"].to_list() == ["system", "user", "residual"]
    assert got["users"].to_list() == [20] * 3
    assert got["freedom"].to_list() == [2, 19, 38]
    squares = got["sum_of_squares"].to_list()
    assert squares == pytest.approx([0.1083, 1.0293, 0.8317], abs=5e-5)
    assert sum(squares) == pytest.approx(1.9693, abs=5e-5)
    assert got["mean_square"].to_list() == pytest.approx([0.0542, 0.0542, 0.0219], abs=5e-5)
    assert got["f"].to_list() == [pytest.approx(2.475, abs=5e-4)] * 2 + [None]
    assert got["p_value"][:2].to_list() == pytest.approx([0.1226, 0.009], abs=5e-4)
    uncorrected = stats.f.sf(got["f"][0], 2, 38)
    assert uncorrected == pytest.approx(0.098, abs=5e-4)
    assert got["note"].null_count() == 3


def test_tukeys_effects_in_sakais_book():
    got = compared(*SAKAI, test="tukey")
    residual = rf.stats.anova(BOOK, VALUE)["mean_square"][2]
    effects = (-got["difference"] / math.sqrt(residual)).to_list()  # m1 − m0, m2 − m0, m2 − m1
    assert effects == pytest.approx([0.5070, 0.6760, 0.1690], abs=5e-5)


def test_the_analysis_of_variance_is_that_of_statsmodels():
    anova = pytest.importorskip("statsmodels.stats.anova")
    from statsmodels.formula.api import ols

    values = sample(21, 12, systems=5)
    long = {
        "value": values.ravel(),
        "system": np.repeat(list("abcde"), 12),
        "person": np.tile([f"u{user}" for user in range(12)], 5),
    }
    table = anova.anova_lm(ols("value ~ system + person", pl.DataFrame(long).to_pandas()).fit())
    got = rf.stats.anova(judged(*values), VALUE)
    assert got["freedom"].to_list() == table["df"].to_list()
    for ours, theirs in {"sum_of_squares": "sum_sq", "mean_square": "mean_sq"}.items():
        assert got[ours].to_list() == pytest.approx(table[theirs].to_list(), rel=1e-9)
    assert got["f"][:2].to_list() == pytest.approx(table["F"][:2].to_list(), rel=1e-9)
    assert got["p_value"][1] == pytest.approx(table["PR(>F)"].iloc[1], rel=1e-9)


@pytest.mark.parametrize(
    ("values", "f", "epsilon", "p"),
    [  # written down: pingouin 0.7.0, rm_anova(correction=True)
        (SAKAI, 2.4749498997996002, 0.6353719590301559, 0.12259588153435472),
        (sample(21, 12, systems=5), 0.5470171360407586, 0.5927550679731758, 0.6144132200592296),
        (
            sample(21, 12, systems=5) * [[1], [1], [1], [1], [4]],
            37.220486932893564,
            0.2847664924870326,
            2.9817884481351806e-05,
        ),
    ],
)
def test_the_p_of_systems_is_corrected_as_by_greenhouse_and_geisser(values, f, epsilon, p):
    got = rf.stats.anova(judged(*values), VALUE).row(0, named=True)
    found = [got["f"], got["epsilon"], got["p_value"]]
    assert found == pytest.approx([f, epsilon, p], rel=1e-9)


def test_f_of_two_systems_is_the_square_of_t():
    old, new = sample(22, 25)
    got = rf.stats.anova(judged(old, new), VALUE).row(0, named=True)
    expected = stats.ttest_rel(new, old)
    assert got["f"] == pytest.approx(expected.statistic**2, rel=1e-9)
    assert got["p_value"] == pytest.approx(expected.pvalue, rel=1e-9)
    assert got["epsilon"] == 1


def test_equal_systems_leave_no_residual_whatever_the_digits():
    rng = np.random.default_rng(20)
    for number in (2, 3, 7):
        user = 1 / rng.integers(1, 50, (40, 1)) * rng.choice([1e-6, 1.0, 1e6], (40, 1))
        assert not system_statistics.residuals(np.repeat(user, number, axis=1)).any()
        assert not system_statistics.residuals(rng.random((40, 1)) + rng.random(number)).any()


# ------------------------------------------------------------------ which may be the best


@pytest.mark.parametrize(("others", "freedom"), [(1, 1), (2, 3), (3, 38), (9, 171), (4, 1e6)])
def test_dunnetts_distribution_is_scipys_multivariate_t(others, freedom):
    """One-sided, correlation ½; SciPy draws points, and is right to four digits."""
    shape = (np.eye(others) + 1) / 2
    for distance in (-1.0, 0.3, 2.1):
        theirs = stats.multivariate_t(shape=shape, df=freedom, seed=1)
        expected = 1 - theirs.cdf(np.full(others, distance), maxpts=100_000)
        ours = system_statistics.dunnett(distance, others, freedom)
        assert ours == pytest.approx(expected, abs=4e-4)


def test_dunnett_of_two_systems_is_t():
    for freedom in (1, 2, 5, 40, 10_000):
        for distance in (-2.0, 0.0, 1.5, 4.0):
            expected = stats.t.sf(distance, freedom)
            assert system_statistics.dunnett(distance, 1, freedom) == pytest.approx(
                expected, rel=1e-9
            )


@pytest.mark.parametrize(
    ("others", "freedom", "limit"),
    [(2, 6, 2.34), (2, 10, 2.15), (3, 20, 2.19), (5, 60, 2.28), (9, 120, 2.45)],
)
def test_critical_values_are_those_of_dunnetts_table(others, freedom, limit):
    """C. W. Dunnett, JASA 50, 1955, Table 1a: one-sided, 5 %."""
    assert system_statistics._dunnett_critical(0.95, others, freedom) == pytest.approx(
        limit, abs=0.011
    )


def test_the_intervals_are_those_of_minitabs_paint():
    """Minitab's example of Hsu's MCB: four blends, six panels each, S = 3.95012; by its manual
    the intervals of blends 2 and 3 are −14.5000 to 0 and −10.0833 to 0.
    """
    means = np.array([14.733, 8.567, 12.983, 18.067])
    error = 3.95012 * math.sqrt(2 / 6)
    p = np.array(
        [
            system_statistics.dunnett(float(-one / error), 3, 20)
            for one in system_statistics._ahead(means)
        ]
    )
    width = np.full((4, 1), system_statistics._dunnett_critical(0.95, 3, 20) * error)
    got = system_statistics._constrained(means, width, p, 0.95)
    assert (got.low[1], got.high[1]) == pytest.approx((-14.5, 0), abs=2e-3)
    assert (got.low[2], got.high[2]) == pytest.approx((-10.0833, 0), abs=2e-3)
    assert got.may_be_best.tolist() == [True, False, False, True]


def test_the_best_of_sakais_systems_by_hand():
    """Means .345, .27, .245; the standard error of a difference is √(2·.021886/20)."""
    got = rf.stats.best_systems(BOOK, VALUE, method="mcb")
    assert got.columns == BEST
    assert got["model"].to_list() == ["m0", "m1", "m2"]
    assert got["mean"].to_list() == pytest.approx([0.345, 0.27, 0.245])
    assert got["difference"].to_list() == pytest.approx([0.075, -0.075, -0.1])
    error = math.sqrt(2 * 0.831667 / 38 / 20)
    width = system_statistics._dunnett_critical(0.95, 2, 38) * error
    assert got["ci_high"].to_list() == pytest.approx([0.075 + width, width - 0.075, 0], abs=1e-6)
    lows = [0.075 - width, -0.075 - width, -0.1 - width]
    assert got["ci_low"].to_list() == pytest.approx(lows, abs=1e-6)
    assert got["may_be_best"].to_list() == [True, True, False]
    expected = system_statistics.dunnett(0.1 / error, 2, 38)
    assert got["p_value"][2] == pytest.approx(expected, abs=1e-6)


def test_a_clear_winner_has_an_interval_from_0():
    values = np.random.default_rng(28).normal(0, 1, (4, 50)) + np.array([[0], [3], [0], [1]])
    for method in ("pairs", "mcb", "bootstrap"):
        got = rf.stats.best_systems(judged(*values), VALUE, method=method, resamples=FEW)
        assert got["model"][0] == "m1"
        assert got["may_be_best"].to_list() == [True, False, False, False]
        assert got["ci_low"][0] == 0
        assert (got["ci_high"][1:] == 0).all()
        assert (got["ci_low"][1:] < got["difference"][1:]).all()
        assert got["p_value"].is_between(0, 1).all()


def test_the_best_is_the_lowest_where_lower_is_better():
    run = pl.DataFrame({"user": [1, 2, 3] * 2, "item": [7] * 6, "rank": [2, 2, 4, 1, 2, 3]})
    run = run.with_columns(model=pl.Series(["old"] * 3 + ["new"] * 3))
    truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    best = rf.stats.best_systems(run, "rr", "e@3", truth=truth)
    (high, low) = best.partition_by("metric")
    assert high["model"][0] == low["model"][0] == "new"
    assert high["difference"].to_list() == pytest.approx([0.194444, -0.194444], abs=1e-6)
    means = run.rank.evaluate("e@3", truth=truth, by="model").sort("model")["e@3"]
    assert low["mean"].to_list() == pytest.approx(means.to_list())
    assert low["difference"].to_list() == pytest.approx([means[0] - means[1], means[1] - means[0]])
    assert (low["ci_low"] <= low["difference"]).all()
    assert (low["difference"] <= low["ci_high"]).all()
    with pytest.raises(ValueError, match="'num_rel' has no best system: neither higher nor lower"):
        rf.stats.best_systems(run, "num_rel", truth=truth)


def test_the_bootstrap_of_the_best_by_loops():
    """Resample users one by one, and take the greatest lead of the others over each system."""
    values = sample(29, 12, systems=3)
    matrix = values.T
    rng = np.random.default_rng(4)
    means = matrix.mean(axis=0)
    leads = [[], [], []]
    for drawn in rng.integers(0, 12, (FEW, 12)):
        shift = matrix[drawn].mean(axis=0) - means
        for place in range(3):
            leads[place].append(max(shift[other] - shift[place] for other in {0, 1, 2} - {place}))
    got = rf.stats.best_systems(judged(*values), VALUE, method="bootstrap", resamples=FEW, seed=4)
    for row in got.rows(named=True):
        place = int(row["model"][1])
        behind = max(means[other] - means[place] for other in {0, 1, 2} - {place})
        assert row["difference"] == pytest.approx(-behind)
        extreme = sum(lead >= behind - 1e-12 for lead in leads[place])
        assert row["p_value"] == pytest.approx((extreme + 1) / (FEW + 1))
        width = sorted(leads[place])[949]  # the 950th of 1000, this sample being one
        assert row["ci_high"] == pytest.approx(max(0, width - behind) if row["may_be_best"] else 0)
        assert row["may_be_best"] == (row["p_value"] > 0.05)


# ------------------------------------------------------------------ how often each is wrong


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["pairs", "mcb", "bootstrap"])
@pytest.mark.parametrize("gap", [0.0, 0.4])
def test_the_best_system_is_seldom_left_out(method, gap):
    """Of five systems the first is best, by as much as ``gap``; intervals cover all at once."""
    true = np.array([gap, 0, 0, 0, 0])
    rng = np.random.default_rng(32)
    values = rng.normal(0, 1, (250, 40, 5)) + rng.normal(0, 1, (250, 40, 1)) + true
    ahead = system_statistics._ahead(true)
    left_out = missed = 0
    for matrix in values:
        if method == "mcb":
            got = system_statistics.lead(matrix, 0.95)
        elif method == "pairs":
            got = by_pairs(matrix)
        else:
            got = system_statistics.lead_by_bootstrap(
                matrix, 0.95, statistics.Resampling(399, 0), nothing
            )
        left_out += not got.may_be_best[0]
        missed += ((got.low > ahead + 1e-12) | (got.high < ahead - 1e-12)).any()
    most = 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / 250)
    assert left_out / 250 <= most
    assert missed / 250 <= most
    if gap == 0:
        assert left_out > 3  # the test is not idle


def by_pairs(matrix):
    """Compare with the best of all, each pair with its own standard error."""
    users = len(matrix)
    errors = (matrix[:, :, None] - matrix[:, None]).std(axis=0, ddof=1) / math.sqrt(users)
    np.fill_diagonal(errors, np.nan)
    return system_statistics.lead_by_pairs(matrix.mean(axis=0), errors, users - 1, 0.95)


def test_no_system_beside_near_copies_is_often_left_out_of_the_best():
    """Nor do they differ by the analysis of variance; both hold 5 % up to two errors."""
    runs, users = 400, 50
    values = systems.recommenders(np.random.default_rng(33), users, runs)
    left_out, pooled, varied, noted = np.zeros(11), np.zeros(11), 0, 0
    for matrix in np.ascontiguousarray(values.transpose(2, 1, 0)):
        left_out += ~by_pairs(matrix).may_be_best
        varied += system_statistics.two_way(matrix).p[0] <= 0.05
        noted += system_statistics.note_of_variances(matrix) is not None
    for matrix in np.ascontiguousarray(values.transpose(2, 1, 0)[:100]):
        pooled += ~system_statistics.lead(matrix, 0.95).may_be_best
    most = 0.05 + 2 * math.sqrt(0.05 * 0.95 / runs)
    assert left_out.max() / runs <= most
    assert varied / runs <= most
    assert left_out.max() > 3
    assert pooled[-1] / 100 > 0.1
    assert noted == runs


def test_a_system_is_compared_with_each_other_by_its_own_t():
    """Bonferroni's p is that of the best rival; the interval is Edwards and Hsu's, by loops."""
    values = sample(34, 30, systems=4) + np.array([[0], [0.4], [0.9], [1.0]])
    got = rf.stats.best_systems(judged(*values), VALUE)
    assert got.columns == BEST
    means, may_be_best = values.mean(axis=1), dict(got.select("model", "may_be_best").rows())
    limit = stats.t.isf(0.05 / 3, 29)
    for row in got.rows(named=True):
        place = int(row["model"][1])
        rivals = [other for other in range(4) if other != place]
        t = [
            stats.ttest_rel(values[other], values[place], alternative="greater").pvalue
            for other in rivals
        ]
        assert row["p_value"] == pytest.approx(min(1, 3 * min(t)), rel=1e-9)
        assert row["may_be_best"] == (row["p_value"] > 0.05)
        assert row["difference"] == pytest.approx(means[place] - means[rivals].max())
        widths = {
            other: limit * (values[place] - values[other]).std(ddof=1) / math.sqrt(30)
            for other in rivals
        }
        reach = min(means[place] - means[other] + widths[other] for other in rivals)
        assert row["ci_high"] == pytest.approx(max(0, reach), abs=1e-12)
        lows = [
            means[place] - means[other] - widths[other]
            for other in rivals
            if may_be_best[f"m{other}"]
        ]
        assert row["ci_low"] == pytest.approx(min(0, *lows, 0), abs=1e-12)
    assert not got["may_be_best"].all()


def test_a_copy_of_a_system_is_left_out():
    old, new = sample(35, 30)
    alone = rf.stats.best_systems(judged(old, new), VALUE, confidence=0.9)
    got = rf.stats.best_systems(judged(old, new, new), VALUE).sort("model")
    assert set(got["note"]) == {"1 of 3 pairs left out: all users differ alike"}
    assert got["may_be_best"].to_list()[1:] == [True, True]
    assert got["ci_low"].to_list()[1:] == [None, None]  # how far the copies differ has no limit
    p = dict(alone.select("model", "p_value").rows())
    assert got["p_value"][0] == pytest.approx(min(1, 2 * p["m0"]))
    assert rf.stats.best_systems(judged(old, old + 1, old), VALUE)["note"][0].startswith(
        "the systems"
    )


# ------------------------------------------------------------------ letters


def pairs_of(names, separated, means=None, **columns):
    means = means or {name: float(-place) for place, name in enumerate(names)}
    rows = [
        {
            **columns,
            "metric": "rr",
            "model": second,
            "baseline": first,
            "mean": means[second],
            "baseline_mean": means[first],
            "p_adjusted": 0.01 if {first, second} in separated else 0.5,
        }
        for first, second in itertools.combinations(names, 2)
    ]
    return pl.DataFrame(rows)


@pytest.mark.parametrize("seed", range(30))
def test_two_systems_share_a_letter_where_they_do_not_differ(seed):
    rng = np.random.default_rng(seed)
    names = [f"m{number:02}" for number in range(rng.integers(2, 9))]
    everything = [set(pair) for pair in itertools.combinations(names, 2)]
    different = [pair for pair in everything if rng.random() < 0.5]
    got = rf.stats.letters(pairs_of(names, different))
    letters = dict(got.select("model", "letters").rows())
    for pair in everything:
        first, second = pair
        assert (not set(letters[first]) & set(letters[second])) == (pair in different)
    # no system can be added to the group of a letter
    used = sorted(set("".join(letters.values())))
    assert used == list("abcdefghijklmnopqrstuvwxyz"[: len(used)])
    for letter in used:
        group = {name for name in names if letter in letters[name]}
        outside = [name for name in names if name not in group]
        assert not [
            name for name in outside if all({name, inside} not in different for inside in group)
        ]


def test_letters_begin_with_the_greatest_mean():
    means = {"a": 0.1, "b": 0.4, "c": 0.2}
    got = rf.stats.letters(pairs_of("abc", [{"a", "b"}, {"b", "c"}], means))
    assert got.rows() == [("b", "rr", 0.4, "a"), ("c", "rr", 0.2, "b"), ("a", "rr", 0.1, "b")]


def test_letters_after_the_last():
    names = [f"m{number:02}" for number in range(60)]
    everything = [set(pair) for pair in itertools.combinations(names, 2)]
    got = rf.stats.letters(pairs_of(names, everything))["letters"].to_list()
    assert got[:2] + got[25:28] + got[51:54] == ["a", "b", "z", "A", "B", "Z", ".a", ".b"]
    assert len(set(got)) == 60


def test_letters_of_a_comparison_in_each_segment():
    table = judged(*sample(33, 40, systems=4, spread=2.0)).with_columns(
        country=pl.when(pl.col("user") < 17).then(pl.lit("x")).otherwise(pl.lit("y"))
    )
    both = ["model", "country"]
    square = (VALUE**2).alias("square")
    pairs = table.rank.compare(VALUE, square, by=both, test="tukey", confidence=0.6)
    got = rf.stats.letters(pairs, by=both, confidence=0.6)
    assert got.columns == ["model", "country", "metric", "mean", "letters"]
    assert got.height == 2 * 2 * 4
    for (country, metric), part in got.group_by("country", "metric"):
        own = pairs.filter(country=country, metric=metric)
        alone = rf.stats.letters(own.drop("country"), confidence=0.6)
        assert part.drop("country").rows() == alone.rows()
        means = dict(own.select("model", "mean").rows())
        means |= dict(own.select("baseline", "baseline_mean").rows())
        assert dict(part.select("model", "mean").rows()) == pytest.approx(means)
    assert_frame_equal(pairs.lazy().rank.stats.letters(by=both, confidence=0.6).collect(), got)
    pandas = pytest.importorskip("pandas")
    as_pandas = rf.stats.letters(pairs.to_pandas(), by=both, confidence=0.6)
    assert isinstance(as_pandas, pandas.DataFrame)
    assert_frame_equal(pl.from_pandas(as_pandas), got)


def test_a_null_p_separates_nothing():
    pairs = pairs_of("ab", []).with_columns(p_adjusted=pl.lit(None, pl.Float64))
    assert rf.stats.letters(pairs)["letters"].to_list() == ["a", "a"]


def test_what_is_no_comparison_has_no_letters():
    pairs = pairs_of("abc", [])
    with pytest.raises(rf.RankingDataError, match="comparison: no column 'p_adjusted'; letters"):
        rf.stats.letters(pairs.drop("p_adjusted"))
    with pytest.raises(rf.RankingDataError, match="no pair 'b', 'c': call compare without base"):
        rf.stats.letters(pairs.head(2))
    with pytest.raises(rf.RankingDataError, match="duplicate pair 'b', 'a': name the col"):
        rf.stats.letters(pl.concat([pairs, pairs]))
    with pytest.raises(rf.RankingDataError, match="comparison: no column 'engine'; letters"):
        rf.stats.letters(pairs, model="engine")
    with pytest.raises(ValueError, match="confidence must be a number between 0 and 1, not 5"):
        rf.stats.letters(pairs, confidence=5)
    assert rf.stats.letters(pairs.clear()).rows() == []


# ------------------------------------------------------------------ every kind of frame and data


def countries(table):
    return table.with_columns(
        country=pl.when(pl.col("user") < 7).then(pl.lit("x")).otherwise(pl.lit("y"))
    )


@pytest.mark.parametrize("verb", ["anova", "best_systems"])
def test_every_kind_of_frame(verb):
    function = getattr(rf.stats, verb)
    expected = function(BOOK, VALUE)
    assert_frame_equal(getattr(BOOK.rank.stats, verb)(VALUE), expected)
    lazy = function(BOOK.lazy(), VALUE)
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect_schema() == expected.schema
    assert_frame_equal(lazy.collect(), expected)
    pandas = pytest.importorskip("pandas")
    got = function(BOOK.to_pandas(), VALUE)
    assert isinstance(got, pandas.DataFrame)
    assert got.shape == expected.shape
    assert got["metric"].tolist() == ["value"] * 3


@pytest.mark.parametrize("verb", ["anova", "best_systems"])
def test_a_segment_is_as_if_alone(verb):
    table, both = countries(BOOK), ["model", "country"]
    square = (VALUE**2).alias("square")
    got = getattr(rf.stats, verb)(table, VALUE, square, by=both)
    assert got["country"].to_list() == ["x"] * 6 + ["y"] * 6
    assert got["metric"].to_list() == (["value"] * 3 + ["square"] * 3) * 2
    for country in "xy":
        alone = getattr(rf.stats, verb)(table.filter(country=country), VALUE, square)
        assert_frame_equal(got.filter(country=country).drop("country"), alone)


def test_types_of_systems_and_segments_are_kept():
    order = pl.Enum(["m2", "m1", "m0"])
    table = countries(BOOK).with_columns(
        pl.col("model").cast(order), pl.col("country").cast(pl.Categorical)
    )
    got = rf.stats.best_systems(table, VALUE, by=["model", "country"])
    assert got.schema["model"] == order
    assert got.schema["country"] == table.schema["country"]
    numbered = BOOK.with_columns(pl.col("model").str.slice(1).cast(pl.Int16))
    assert rf.stats.best_systems(numbered, VALUE)["model"].to_list() == [0, 1, 2]


@pytest.mark.parametrize(
    ("systems", "note"),
    [
        (([1.0, None], [None, 2.0], [1.0, 1.0]), "no user has a value in every system"),
        (([1.0, 2.0], [3.0, None], [2.0, 2.0]), "one user"),
        (([1.0, 2.0], [1.0, 2.0], [1.0, 2.0]), "no user differs"),
        (([0.1, 0.2], [0.2, 0.3], [0.4, 0.5]), "the systems differ by the same amounts for every"),
    ],
)
def test_too_little_to_go_by_is_reported(systems, note):
    table = judged(*systems)
    variance = rf.stats.anova(table, VALUE)
    assert variance["note"].str.starts_with(note).all()
    assert variance["f"].null_count() == variance["p_value"].null_count() == 3
    for method in ("pairs", "mcb", "bootstrap"):
        best = rf.stats.best_systems(table, VALUE, method=method, resamples=FEW)
        assert best["note"].str.starts_with(note).all()
        for name in ("ci_low", "ci_high", "p_value", "may_be_best"):
            assert best[name].null_count() == 3
    for table in (variance, best):
        numbers = table.select(pl.selectors.float()).fill_null(0)
        assert not numbers.select(pl.all_horizontal(pl.all().is_nan())).to_series().any()


def test_users_whom_a_system_misses():
    """Of the users in both lists and the truth only; by default a missing list is a miss."""
    run = pl.DataFrame({"user": [1, 2, 1, 2, 3], "item": 7, "rank": [1, 2, 2, 1, 1]})
    run = run.with_columns(model=pl.Series(["a", "a", "b", "b", "b"]))
    truth = pl.DataFrame({"user": [1, 2, 3], "item": 7})
    assert rf.stats.anova(run, "rr", truth=truth)["users"].to_list() == [3] * 3
    assert rf.stats.anova(run, "rr", truth=truth, users="both")["users"].to_list() == [2] * 3


def test_bad_calls_say_what_is_wrong():
    for verb in (rf.stats.anova, rf.stats.best_systems):
        with pytest.raises(rf.RankingDataError, match="only one system, 'm0': a comparison needs"):
            verb(judged([1.0, 2.0]), VALUE)
        name = verb.__name__
        with pytest.raises(ValueError, match=f"{name} needs the column that names the systems"):
            verb(BOOK.rename({"model": "system"}), VALUE)
        with pytest.raises(ValueError, match="ask for at least one metric"):
            verb(BOOK)
        with pytest.raises(ValueError, match="'gmap' is a mean over users, not a value per user"):
            verb(BOOK, "gmap")
        with pytest.raises(rf.RankingDataError, match=f"column 'users': {name} makes a column of"):
            verb(BOOK.rename({"model": "users"}), VALUE, model="users")
        with pytest.raises(TypeError, match="has no keyword 'usr'; the nearest is 'user'"):
            verb(BOOK, VALUE, usr="uid")
        with pytest.raises(
            rf.RankingDataError, match="as large as 1e\\+200 has no finite variance"
        ):
            verb(judged([1e200, 1.0], [1.0, 2.0]), VALUE)
    with pytest.raises(
        ValueError, match="method must be one of 'pairs', 'bootstrap', 'mcb', not 'hsu'"
    ):
        rf.stats.best_systems(BOOK, VALUE, method="hsu")
    with pytest.raises(ValueError, match="resamples must be an integer ≥ 1, not 0"):
        rf.stats.best_systems(BOOK, VALUE, method="bootstrap", resamples=0)


def test_a_missing_extra_says_what_to_install(monkeypatch):
    monkeypatch.setattr("rankframe._comparison.summaries.find_spec", lambda name: None)
    means = pl.DataFrame({"model": ["a", "b"], "rr": [0.1, 0.2], "ap": [0.1, 0.3]})
    for call in (
        lambda: rf.stats.anova(BOOK, VALUE),
        lambda: rf.stats.best_systems(BOOK, VALUE),
        lambda: rf.stats.metric_agreement(means),
        lambda: rf.stats.discriminative_power(BOOK, VALUE),
    ):
        with pytest.raises(ImportError, match="pip install 'rankframe\\[stats\\]'"):
            call()


def test_verbs_of_independent_users_take_no_clusters():
    run = pl.DataFrame({"model": ["a", "b"], "user": 1, "item": 7, "rank": [1, 2], "shop": 1})
    truth = pl.DataFrame({"user": [1], "item": [7]})
    with pytest.raises(
        TypeError, match="anova has no keyword 'cluster': summarize and compare take it"
    ):
        rf.stats.anova(run, "rr", truth=truth, cluster="shop")
    with pytest.raises(ValueError, match="method='mcb' takes users for independent: with cluster="):
        rf.stats.best_systems(run, "rr", truth=truth, cluster="shop", method="mcb")


def test_the_best_of_clusters_has_the_errors_of_compare():
    customer = np.arange(40) // 4
    shared = np.random.default_rng(0).gamma(2, 1, (3, 10))[:, customer]
    table = judged(*(sample(36, 40, systems=3) + shared)).with_columns(customer=pl.col("user") // 4)
    got = rf.stats.best_systems(table, VALUE, cluster="customer")
    assert got["note"].to_list() == ["10 clusters"] * 3
    options = {"cluster": "customer", "baseline": got["model"][0], "correction": None}
    p = rf.compare(table, VALUE, **options).sort("difference")["p_value"]
    assert got["p_value"][2] == pytest.approx(min(1, p[0]), rel=1e-9)  # 2 rivals, half of two sides
    assert (got["p_value"] > rf.stats.best_systems(table, VALUE)["p_value"])[2]


def test_frames_of_another_kind_are_named():
    truth = pl.DataFrame({"user": [1], "item": [7]})
    for frame in (truth, truth.with_columns(model=1)):
        with pytest.raises(rf.RankingDataError, match="letters takes a frame of compare"):
            rf.stats.letters(frame)
    with pytest.raises(ValueError, match="agreement takes a frame of evaluate, one row per system"):
        rf.stats.metric_agreement(truth)


def test_a_column_is_named_once_in_by():
    run = pl.DataFrame({"model": ["a", "b"], "user": 1, "item": 7, "rank": [1, 2]})
    truth = pl.DataFrame({"user": [1], "item": [7]})
    for verb in (rf.evaluate, rf.compare, rf.per_user, rf.stats.best_systems):
        with pytest.raises(ValueError, match="by: column 'model' is named twice"):
            verb(run, "rr", truth=truth, by=["model", "model"])


def test_two_users_are_enough_for_tukey():
    """For two systems it is the paired t, whose p for differences of 1 and 3 is 2 arctan(1/2)/π."""
    got = compared([1.0, 2.0], [2.0, 5.0], test="tukey")["p_value"][0]
    assert got == pytest.approx(2 * np.arctan(1 / 2) / np.pi, abs=1e-6)
