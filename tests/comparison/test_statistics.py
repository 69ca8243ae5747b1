"""Intervals and tests, against SciPy, enumeration and statsmodels."""

import itertools

import numpy as np
import polars as pl
import pytest
from scipy import stats
from user_values import FEW, TESTS, VALUE, compared, judged, one, sample

import rankframe as rf
from rankframe._comparison import statistics as st

# ------------------------------------------------------------------ SciPy, called directly


@pytest.mark.parametrize("users", [20, 60, 500])
def test_paired_t_is_scipys(users):
    old, new = sample(users, users)
    got = one(old, new, confidence=0.9)
    expected = stats.ttest_rel(new, old)
    low, high = expected.confidence_interval(0.9)
    assert got["p_value"] == pytest.approx(expected.pvalue, abs=1e-10)
    assert (got["ci_low"], got["ci_high"]) == pytest.approx((low, high), abs=1e-10)
    assert got["mean"] == pytest.approx(new.mean(), abs=1e-12)
    assert got["baseline_mean"] == pytest.approx(old.mean(), abs=1e-12)
    assert got["difference"] == pytest.approx((new - old).mean(), abs=1e-12)
    assert got["effect_size"] == pytest.approx((new - old).mean() / (new - old).std(ddof=1))
    assert (got["higher"], got["lower"]) == ((new > old).sum(), (new < old).sum())
    assert got["note"] is None


@pytest.mark.parametrize("scale", [1.0, 0.1, 1e-7, 1 / 3])
def test_a_resample_as_far_as_the_difference_counts_for_the_null(scale):
    """Of differences 1, 0, 0: no 1, two and three are as far; two are so but for rounding."""
    got = one([0.0] * 3, [scale, 0.0, 0.0], test="bootstrap", resamples=20_000)
    assert got["p_value"] == pytest.approx((8 + 6 + 1) / 27, abs=0.02)


@pytest.mark.parametrize("users", [1, 2, 7, 40, 300])
@pytest.mark.parametrize("parts", [1, 8, 2**40])  # of a whole: many ties, some, none
def test_wilcoxon_is_scipys(users, parts):
    old, new = np.round(sample(users, users) * parts) / parts
    if (old == new).all():
        new[0] += 1
    got = one(old, new, test="wilcoxon")
    assert got["equal"] == (old == new).sum()
    sizes = np.abs(new - old)
    exact = users <= 50 and 0 not in sizes and len({*sizes}) == users
    # SciPy's names of the normal approximation depend on its version
    method = "exact" if exact else "asymptotic"
    expected = stats.wilcoxon(new, old, correction=False, method=method).pvalue
    assert got["p_value"] == pytest.approx(expected, abs=1e-12)


def test_wilcoxons_p_is_that_of_every_scipy():
    """The numbers of SciPy 1.13 and 1.17; without ``method=``, these differ for ties."""
    for change, expected in [
        ([0.25, 0.25, 0.5, -0.25, 0.75, 0.25, 0, 0, 0.5, 0.25], 0.031032519500144917),
        ([0.1, 0.1, 0.2, -0.1, 0.3, 0.4], 0.07154597258900632),
        ([0.5], 1.0),
        ([0.5, 0.0], 0.31731050786291415),
    ]:
        got = one(np.zeros(len(change)), np.array(change), test="wilcoxon")
        assert got["p_value"] == pytest.approx(expected, abs=1e-12)


def test_wilcoxons_verdict_is_of_ranks_and_says_so_where_that_differs():
    """Equal means, of which one system has a few users with much: ranks find a difference."""
    rng = np.random.default_rng(3)
    old, new = np.zeros(4000), rng.exponential(1, 4000) - 1
    got = one(old, new, test="wilcoxon")
    assert got["p_value"] < 1e-9
    assert got["verdict"] in ("ranks lower", "undecided")
    assert got["note"].startswith("tests ranks, not the mean: the differences have skewness 1.9")
    assert one(old, new - 0.1, test="wilcoxon")["verdict"] == "ranks lower"
    assert one(new - 0.1, old, test="wilcoxon")["verdict"] == "ranks higher"


def test_the_note_on_ranks_begins_at_200_users_and_two_standard_errors():
    def noted(users, skewness):
        shape = np.linspace(0, 1, users)
        low, high = 0.0, 9.0  # of an exponent, whose skewness grows with it
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if stats.skew(np.exp(middle * shape)) < skewness else (low, middle)
            )
        return one(np.zeros(users), np.exp(low * shape), test="wilcoxon")["note"]

    error = np.sqrt(6 * 198 / (201 * 203))
    assert noted(200, 1.99 * error) is None
    assert noted(200, 2.01 * error).startswith("tests ranks, not the mean")
    assert noted(199, 1.0) is None


@pytest.mark.parametrize(("users", "seed"), [(5, 0), (30, 3), (3000, 1)])
def test_bootstrap_intervals_are_scipys(users, seed):
    (values,) = sample(users, users, systems=1)
    times = 2000 if users < 1000 else 3000  # in several blocks
    expected = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=times,
        batch=500,
        confidence_level=0.9,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    options = {"method": "bootstrap", "confidence": 0.9, "resamples": times, "seed": seed}
    got = rf.summarize(judged(values), VALUE, **options).row(0, named=True)
    assert (got["ci_low"], got["ci_high"]) == pytest.approx(tuple(expected), abs=1e-10)


def test_the_bootstrap_test_is_sakais():
    """Resample the shifted differences one by one, and take SciPy's t statistic of each."""
    old, new = sample(5, 20)
    difference = new - old
    rng = np.random.default_rng(11)
    shifted = difference - difference.mean()
    drawn = shifted[rng.integers(0, 20, (FEW, 20))]
    statistics = np.abs(stats.ttest_1samp(drawn, 0, axis=1).statistic)
    extreme = (statistics >= abs(stats.ttest_1samp(difference, 0).statistic)).sum()
    got = one(old, new, test="bootstrap", resamples=FEW, seed=11)
    assert got["p_value"] == pytest.approx((extreme + 1) / (FEW + 1), abs=1e-12)


@pytest.mark.parametrize("method", ["t", "bootstrap"])
def test_summaries_are_numpys_and_scipys(method):
    (values,) = sample(6, 40, systems=1)
    given = [*values, None, None]
    got = rf.summarize(judged(given), VALUE, method=method, resamples=FEW).row(0, named=True)
    assert (got["metric"], got["users"], got["undefined"], got["note"]) == ("value", 40, 2, None)
    for name, expected in {
        "mean": values.mean(),
        "std": values.std(ddof=1),
        "min": values.min(),
        "p10": np.quantile(values, 0.1),
        "median": np.median(values),
        "max": values.max(),
    }.items():
        assert got[name] == pytest.approx(expected, abs=1e-12)
    if method == "t":
        low, high = stats.t.interval(0.95, 39, values.mean(), stats.sem(values))
        assert (got["ci_low"], got["ci_high"]) == pytest.approx((low, high), abs=1e-10)
    assert got["ci_low"] < got["mean"] < got["ci_high"]


# ------------------------------------------------------------------ enumeration


def enumerated(difference):
    """Fisher's p by its definition, in whole numbers."""
    sums = [
        abs(sum(sign * value for sign, value in zip(signs, difference, strict=True)))
        for signs in itertools.product([1, -1], repeat=len(difference))
    ]
    return np.mean([value >= abs(sum(difference)) for value in sums])


def test_few_users_who_differ_have_the_exact_test():
    """Four users of 2,000 gain a hit, and none loses one: p = 2/2⁴."""
    for gained, lost in [(4, 0), (5, 0), (6, 0), (9, 1), (12, 3), (19, 0)]:
        old, new = np.zeros((2, 2000))
        new[:gained], old[-lost or 2000 :] = 1, 1
        got, hits = (one(old, new, test=test) for test in ("t", "mcnemar"))
        assert got["p_value"] == pytest.approx(hits["p_value"], rel=1e-12)
        shown = hits["p_value"] < 0.05
        assert (got["verdict"] == "higher") is shown
        assert (got["ci_low"] > 0) is shown
        assert got["note"] == f"exact test: only {gained + lost} users differ"
    old[:], new[:] = 0, np.arange(2000) < 20
    many = one(old, new)
    assert many["p_value"] == stats.ttest_rel(new, old).pvalue
    assert many["note"] is None


@pytest.mark.parametrize("test", ["t", "randomization"])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_an_interval_agrees_with_an_exact_p(test, confidence):
    random = np.random.default_rng(8)
    shown = 0
    moved = set()
    for users in np.tile(range(2, 12), 12):
        change = random.choice([0, 1, 1, 2, 3, -1, 30], users)
        if change.min() == change.max():
            continue
        old = np.full(users + 3, 5.0)
        new = old + np.append(change, [0, 0, 0])
        got = one(old, new, test=test, confidence=confidence)
        assert got["p_value"] == pytest.approx(enumerated(change.tolist()), abs=1e-15)
        differs = got["p_value"] < 1 - confidence
        shown += differs
        for low, high in (("ci_low", "ci_high"), ("relative_low", "relative_high")):
            assert (got[low] > 0 or got[high] < 0) == differs, (change, got)
            assert got[low] <= got[low.replace("ci_low", "difference").replace("_low", "")]
        plain = stats.ttest_rel(new, old).confidence_interval(confidence)
        if got["ci_low"] != pytest.approx(plain.low, abs=1e-9):
            moved.add(bool(got["ci_low"] > 0))
        assert got["ci_high"] == pytest.approx(plain.high, abs=1e-9) or got["ci_high"] <= 0
    assert shown > 5
    assert False in moved


def test_an_end_that_contradicts_an_exact_p_is_the_nearest_mean_it_accepts():
    """One of six gains much: t sees no gain, the signs do, of a mean that one of them may have."""
    got = one([0.0] * 8, [1.0, 1.1, 1.2, 1.3, 1.4, 40.0, 0.0, 0.0])
    assert got["p_value"] == 2 / 2**6
    assert stats.ttest_1samp([1.0, 1.1, 1.2, 1.3, 1.4, 40, 0, 0], 0).pvalue > 0.2
    assert got["ci_low"] == pytest.approx(1.0 * 6 / 8, rel=1e-8)
    assert got["verdict"] == "higher"


@pytest.mark.parametrize("users", range(1, 13))
def test_randomization_is_exact_for_few_users(users):
    hits = np.random.default_rng(users).integers(0, 4, (2, users))
    # thirds, whose sums round in more than one way, tie as whole numbers do
    old, new = hits / 3
    got = one(old, new, test="randomization")
    expected = enumerated((hits[1] - hits[0]).tolist())
    assert got["p_value"] == pytest.approx(expected, abs=1e-15)


def test_ties_of_users_do_not_count():
    old, new = np.zeros((2, 300))
    new[:5] = 0.1, 0.2, 0.3, -0.6, 0.7
    expected = enumerated([1, 2, 3, -6, 7])
    assert one(old, new, test="randomization")["p_value"] == pytest.approx(expected, abs=1e-15)


def test_drawn_patterns_come_near_enumeration():
    difference = [1, 2, -3, 4, 1, -2, 3, 5, -1, 2, -4, 1, 1, -1, 2, -2, 3, -3, 1, 1]
    ways = np.ones(1)  # of each sum of signed sizes, from the least to the greatest
    for size in np.abs(difference):
        ways = np.convolve(ways, [1, *[0] * (2 * size - 1), 1])
    sums = np.arange(len(ways)) - np.abs(difference).sum()
    exact = ways[np.abs(sums) >= sum(difference)].sum() / 2**20
    old, new = np.zeros(20), np.array(difference) / 3
    got = [one(old, new, test="randomization", resamples=4095, seed=s)["p_value"] for s in range(9)]
    assert len(set(got)) > 1
    # nine means of 4,095 draws differ from the truth by five standard errors at most
    assert np.mean(got) == pytest.approx(exact, abs=5 * np.sqrt(exact * (1 - exact) / 36_855))


def test_drawn_p_values_count_the_observed_one():
    old, new = np.zeros(40), np.ones(40) + np.arange(40) / 100
    got = one(old, new, test="randomization", resamples=FEW)
    assert got["p_value"] == 1 / (FEW + 1)
    assert one(old, new, test="bootstrap", resamples=FEW)["p_value"] == 1 / (FEW + 1)


def test_signs_are_fair_and_differ():
    blocks = list(st.drawn_signs((70, 1), st.Resampling(5000, 0), lambda _: None))
    signs = np.concatenate(blocks)
    assert signs.shape == (5000, 70)
    assert set(np.unique(signs)) == {-1, 1}
    assert np.abs(signs.mean(axis=0)).max() < 5 / np.sqrt(5000)
    between = np.corrcoef(signs.T) - np.eye(70)
    assert np.abs(between).max() < 6 / np.sqrt(5000)


# ------------------------------------------------------------------ all systems at once


def test_tukey_is_the_two_way_analysis_of_statsmodels():
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    values = sample(8, 15, systems=4)
    long = pl.DataFrame(
        {
            "value": values.ravel(),
            "system": np.repeat(["a", "b", "c", "d"], 15),
            "person": np.tile([f"u{u}" for u in range(15)], 4),
        }
    )
    table = anova_lm(ols("value ~ system + person", long.to_pandas()).fit())
    error, freedom = table.loc["Residual", ["mean_sq", "df"]]
    assert freedom == 14 * 3
    got = compared(*values, test="tukey")
    assert got.height == 6
    for row in got.rows(named=True):
        new, old = (values[int(row[name][1])] for name in ("model", "baseline"))
        distance = abs((new - old).mean()) / np.sqrt(error / 15)
        expected = stats.studentized_range.sf(distance, 4, freedom)
        assert row["p_adjusted"] == pytest.approx(expected, abs=1e-9)
        assert row["p_value"] == pytest.approx(2 * stats.t.sf(distance / np.sqrt(2), freedom))
        margin = stats.studentized_range.ppf(0.95, 4, freedom) * np.sqrt(error / 15)
        assert row["ci_high"] - row["difference"] == pytest.approx(margin, abs=1e-9)
        assert row["difference"] - row["ci_low"] == pytest.approx(margin, abs=1e-9)


@pytest.mark.parametrize("users", [20, 25])
def test_tukey_of_two_systems_is_the_paired_t(users):
    old, new = sample(9, users)
    tukey, plain = (one(old, new, test=test) for test in ("tukey", "t"))
    for name in ("p_value", "p_adjusted", "ci_low", "ci_high"):
        assert tukey[name] == pytest.approx(plain[name], abs=1e-7)


def test_friedman_and_nemenyi():
    values = sample(10, 20, systems=3)
    got = compared(*values, test="friedman", baseline="m0")
    omnibus = stats.friedmanchisquare(*values)
    p = "p < 0.0001" if omnibus.pvalue < 0.0001 else f"p = {omnibus.pvalue:.3g}"
    said = f"Friedman: chi² = {omnibus.statistic:.4g}, {p}"
    ranks = stats.rankdata(values, axis=0).mean(axis=1)
    for row, place in zip(got.rows(named=True), (1, 2), strict=True):
        assert row["note"] == said
        # Demšar (2006): the critical difference is q·√(k(k + 1)/6n), of ranges divided by √2
        distance = abs(ranks[place] - ranks[0]) / np.sqrt(3 * 4 / (6 * 20))
        expected = stats.studentized_range.sf(distance * np.sqrt(2), 3, np.inf)
        assert row["p_adjusted"] == pytest.approx(expected, abs=1e-9)
        assert row["p_value"] == pytest.approx(2 * stats.norm.sf(distance), abs=1e-12)


@pytest.mark.parametrize(("factor", "noted"), [(0.999, False), (1.001, True)])
def test_tukey_notes_a_pair_that_varies_over_twice_as_much_as_the_mean_one(factor, noted):
    """Five uncorrelated systems, four of variance 1 and one of s²: 10(1 + s²)/(16 + 4s²)."""
    drawn = np.random.default_rng(14).normal(size=(40, 5))
    values, _ = np.linalg.qr(drawn - drawn.mean(axis=0))
    values[:, 4] *= np.sqrt(11 * factor)  # of 11, twice the mean variance
    got = compared(*values.T, test="tukey")
    note = "the largest variance of a pair is 2 times the mean one: take test='max_t'"
    assert got["note"].str.contains(note).fill_null(value=False).to_list() == [noted] * 10


def test_ties_in_friedmans_ranks():
    """The squared distances of mean ranks add up to Friedman's statistic, ties and all."""
    values = np.round(sample(11, 30, systems=3))
    assert (values[0] == values[1]).any()
    got = compared(*values, test="friedman")
    squares = stats.norm.isf(got["p_value"].to_numpy() / 2) ** 2
    omnibus = stats.friedmanchisquare(*values).statistic
    # Σ over pairs of (Rᵢ − Rⱼ)²/(2s²/n) = k·Σ(Rᵢ − R̄)²·n/(2s²), and Friedman's is Σ(Rᵢ − R̄)²·n/s²
    assert 2 * squares.sum() / 3 == pytest.approx(omnibus, rel=1e-9)


def test_joint_tests_are_of_the_users_whom_all_share():
    values = sample(12, 12, systems=3).tolist()
    values[2][4] = None
    alone = [[value for u, value in enumerate(row) if u != 4] for row in values]
    for test in ("tukey", "friedman"):
        counts = ("note", "num_left_out")
        got, expected = compared(*values, test=test), compared(*alone, test=test)
        assert got.drop(counts).equals(expected.drop(counts))
        assert got["num_left_out"].to_list() == [1] * 3


# ------------------------------------------------------------------ corrections


@pytest.mark.parametrize(
    ("correction", "name"), [("holm", "holm"), ("bonferroni", "bonferroni"), ("bh", "fdr_bh")]
)
def test_corrections_are_those_of_statsmodels(correction, name):
    from statsmodels.stats.multitest import multipletests

    table = judged(*sample(13, 30, systems=5, spread=3.0)).with_columns(
        country=pl.when(pl.col("user") < 14).then(pl.lit("x")).otherwise(pl.lit("y"))
    )
    square = (VALUE**2).alias("square")
    got = table.rank.compare(VALUE, square, by=["model", "country"], correction=correction)
    assert got.height == 10 * 2 * 2
    expected = multipletests(got["p_value"].to_numpy(), method=name)[1]
    assert got["p_adjusted"].to_list() == pytest.approx(expected.tolist(), abs=1e-12)


def test_undefined_p_values_are_no_comparisons():
    old, new = sample(14, 30)
    got = compared(old, old + 1, new, baseline="m0", correction="bonferroni")
    assert got["p_value"].null_count() == 1
    assert got["p_adjusted"].to_list() == got["p_value"].to_list()
    plain = compared(old, new, new + old, correction=None)
    assert plain["p_adjusted"].equals(plain["p_value"], check_names=False)


# ------------------------------------------------------------------ values that differ by rounding


def counts(seed, users):
    """Whole numbers of two systems, with many ties, and the same numbers divided."""
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "model": ["old"] * users + ["new"] * users,
            "user": [*range(users)] * 2,
            "whole": rng.integers(0, 16, 2 * users),
        }
    )
    return frame.with_columns((pl.col("whole") / part).alias(f"/{part}") for part in (3, 7, 10))


@pytest.mark.sample(3)
@pytest.mark.parametrize("test", [*TESTS, "sequential"])
def test_dividing_all_values_changes_no_p_value(test):
    options = {"test": test, "resamples": FEW, "baseline": "old"}
    for users in (9, 10, 40):
        for seed in range(6):
            frame = counts(seed, users)
            values = [name for name in frame.columns if name not in ("model", "user")]
            p = rf.compare(frame, *values, **options)["p_value"]
            assert p.to_list() == pytest.approx([p[0]] * 4, abs=1e-12), (users, seed)


def test_wilcoxon_ties_differences_that_rounding_separates():
    old, new = np.array([0, 0, 1, 6, 5, 6, 6, 4, 2]), np.array([6, 4, 0, 5, 4, 0, 7, 7, 3])
    expected = stats.wilcoxon(new - old, method="asymptotic").pvalue
    assert one(old / 7, new / 7, test="wilcoxon")["p_value"] == pytest.approx(expected, abs=1e-12)


def test_wilcoxon_keeps_small_differences_beside_large_values():
    old, new = np.array([1e9, 0, 0, 0, 0, 0]), np.array([1e9, 1e-7, 2e-7, 3e-7, 4e-7, -5e-7])
    expected = stats.wilcoxon([0, 1, 2, 3, 4, -5], method="asymptotic").pvalue
    assert one(old, new, test="wilcoxon")["p_value"] == pytest.approx(expected, abs=1e-12)


def test_a_mean_of_0_is_no_evidence_for_the_bootstrap():
    old, new = np.array([6, 0, 1, 1, 1, 6, 6, 4, 0]), np.array([0, 2, 3, 4, 3, 2, 1, 5, 5])
    assert (new - old).sum() == 0
    for part in (1, 3, 7, 10):
        got = one(old / part, new / part, test="bootstrap", resamples=1_000)
        assert got["p_value"] == 1.0
