"""Intervals and tests, against SciPy, enumeration and statsmodels."""

import itertools

import numpy as np
import polars as pl
import pytest
from scipy import stats
from user_values import FEW, TESTS, VALUE, compared, judged, one, sample

import rankframe as rf
from rankframe import _sizes
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


@pytest.mark.parametrize("method", ["t", "auto"])
def test_summaries_are_numpys_and_scipys(method):
    (values,) = sample(6, 40, systems=1)
    given = [*values, None, None]
    got = rf.summarize(judged(given), VALUE, method=method, resamples=FEW).row(0, named=True)
    assert (got["metric"], got["users"], got["num_left_out"]) == ("value", 40, 2)
    chosen = "auto: Student's t, 40 users, skewness 0.05"
    assert got["note"] == (chosen if method == "auto" else None)
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


def test_exact_test_is_for_few_users_who_differ():
    """Four users of 2,000 gain a hit, and none loses one: p = 2/2⁴."""
    for gained, lost in [(4, 0), (5, 0), (6, 0), (9, 1), (12, 3), (19, 0)]:
        old, new = np.zeros((2, 2000))
        new[:gained], old[-lost or 2000 :] = 1, 1
        got = one(old, new)
        exact = stats.binomtest(gained, gained + lost).pvalue  # McNemar's
        assert got["p_value"] == pytest.approx(exact, rel=1e-12)
        shown = bool(exact < 0.05)
        assert (got["verdict"] == "higher") is shown
        assert (got["ci_low"] > 0) is shown
        assert got["note"] == f"exact test: only {gained + lost} users differ"
    old[:], new[:] = 0, np.arange(2000) < 20
    many = one(old, new)
    assert many["p_value"] == pytest.approx(stats.ttest_rel(new, old).pvalue, rel=1e-9)
    assert many["note"] is None


@pytest.mark.parametrize("test", ["t", "randomization"])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_interval_agrees_with_an_exact_p(test, confidence):
    random = np.random.default_rng(8)
    shown = 0
    moved = set()
    for users in np.tile(range(2, 12), 3):
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


def test_end_that_contradicts_an_exact_p_is_the_nearest_mean_it_accepts():
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
    assert one(old, new, test="max_t", resamples=FEW)["p_value"] == 1 / (FEW + 1)


def test_signs_are_fair_and_differ():
    blocks = list(st.drawn_signs((70, 1), st.Resampling(5000, 0), lambda _: None))
    signs = np.concatenate(blocks)
    assert signs.shape == (5000, 70)
    assert set(np.unique(signs)) == {-1, 1}
    assert np.abs(signs.mean(axis=0)).max() < 5 / np.sqrt(5000)
    between = np.corrcoef(signs.T) - np.eye(70)
    assert np.abs(between).max() < 6 / np.sqrt(5000)


# ------------------------------------------------------------------ all systems at once


def test_joint_tests_are_of_the_users_whom_all_share():
    values = sample(12, 12, systems=3).tolist()
    values[2][4] = None
    alone = [[value for u, value in enumerate(row) if u != 4] for row in values]
    counts = ("note", "num_left_out")
    got, expected = compared(*values, test="max_t"), compared(*alone, test="max_t")
    assert got.drop(counts).equals(expected.drop(counts))
    assert got["num_left_out"].to_list() == [1] * 3


# ------------------------------------------------------------------ corrections


@pytest.mark.parametrize(("correction", "name"), [("holm", "holm"), ("bh", "fdr_bh")])
def test_corrections_are_those_of_statsmodels(correction, name):
    from statsmodels.stats.multitest import multipletests

    table = judged(*sample(13, 30, systems=5, spread=3.0)).with_columns(
        country=pl.when(pl.col("user") < 14).then(pl.lit("x")).otherwise(pl.lit("y"))
    )
    square = (VALUE**2).alias("square")
    got = table.rank.compare(
        VALUE, square, by=["model", "country"], correction=correction, details=True
    )
    assert got.height == 10 * 2 * 2
    expected = multipletests(got["p_value"].to_numpy(), method=name)[1]
    assert got["p_adjusted"].to_list() == pytest.approx(expected.tolist(), abs=1e-12)


def test_undefined_p_values_are_no_comparisons():
    old, new = sample(14, 30)
    got = compared(old, old, new, baseline="m0", correction="holm")
    assert got["p_value"].null_count() == 1
    assert got["p_adjusted"].to_list() == got["p_value"].to_list()
    plain = compared(old, new, new + old, correction=None)
    assert plain["p_adjusted"].equals(plain["p_value"], check_names=False)


# ------------------------------------------------------------------ values that differ by rounding


@pytest.mark.parametrize("draw", ["counts", "signs"])
@pytest.mark.parametrize("users", [30, 100_000])
def test_blocks_of_draws_are_bounded_and_change_no_digit(draw, users, monkeypatch):
    def blocks(cells):
        monkeypatch.setattr(_sizes, "CELLS_RANDOM", cells)
        of_users = users if draw == "counts" else (users, 2)
        drawn = st.counts if draw == "counts" else st.drawn_signs
        found = list(drawn(of_users, st.Resampling(times, 5), advanced.append))
        assert all(block.size <= max(cells, users) and block.dtype == float for block in found)
        return found

    times, advanced = 2_000_000 // users, []
    few, many = blocks(2**18), blocks(2**10)
    assert len(few) < len(many)
    assert sum(advanced) == 2 * times
    assert (np.concatenate(few) == np.concatenate(many)).all()
    if draw == "counts":  # SciPy's draws, counted one by one
        indices = np.random.default_rng(5).integers(0, users, (times, users))
        assert (few[0][-1] == np.bincount(indices[len(few[0]) - 1], minlength=users)).all()


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
    options["value_range"] = {"whole": (0, 15), **{f"/{n}": (0, 15 / n) for n in (3, 7, 10)}}
    for users in (9, 10, 40):
        for seed in range(2):
            frame = counts(seed, users)
            values = [name for name in frame.columns if name not in ("model", "user")]
            p = rf.compare(frame, *values, **options, details=True)["p_value"]
            assert p.to_list() == pytest.approx([p[0]] * 4, abs=1e-12), (users, seed)


def test_skewness_of_a_weighted_mean_is_that_of_its_influences():
    values, weights = [0.0, 0.1, 0.2, 0.9, 0.4], [1.0, 4.0, 2.0, 1.0, 3.0]
    shares = [weight / sum(weights) for weight in weights]
    mean = sum(share * value for share, value in zip(shares, values, strict=True))
    parts = [s / (1 - s) * (value - mean) for s, value in zip(shares, values, strict=True)]
    center = sum(parts) / len(parts)
    second, third = (sum((part - center) ** n for part in parts) / len(parts) for n in (2, 3))
    number = 1 / sum(share**2 for share in shares)
    matrix = st.Sample(np.array(values)[:, None], np.array(weights)[:, None])
    assert st.estimate(matrix).skew == pytest.approx([third / second**1.5 / number**0.5])
