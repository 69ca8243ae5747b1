"""The greatest t under flipped signs: against its definition, and the test of two systems."""

from fractions import Fraction
from itertools import combinations, product
from math import sqrt

import numpy as np
import polars as pl
import pytest
from scipy import stats
from user_values import FEW, VALUE, compared, judged, one, sample

import rankframe as rf
from benchmarks import systems
from rankframe import _sizes
from rankframe._comparison import system_statistics, trials


def silent(_):
    """Advance no bar."""


def flipped(matrix, times, seed=0):
    return system_statistics.max_t(matrix, trials.Resampling(times, seed), silent)


def reach(matrix, times, seed=0):
    """The errors that all intervals reach, of differences without their means."""
    drawn = trials.Resampling(times, seed)
    return system_statistics.max_t_reach(matrix - matrix.mean(axis=0), 0.95, drawn, silent)[0]


def pairs_of(values):
    """The differences of all pairs, in the order of ``compare``."""
    changes = [b - a for a, b in combinations(np.asarray(values, float), 2)]
    return np.column_stack(changes)


# ------------------------------------------------------------------ the definition


def enumerated(changes):
    """Step down through all patterns of signs, in fractions: p of each pair, alone and adjusted."""
    patterns = list(product([1, -1], repeat=len(changes[0])))

    def squared_t(change, signs):
        total, squares = (
            sum(s * d for s, d in zip(signs, change, strict=True)),
            sum(d * d for d in change),
        )
        rest = squares - Fraction(total * total, len(change))
        return float("inf") if rest == 0 else total * total / rest

    table = [[squared_t(change, signs) for change in changes] for signs in patterns]
    seen = table[0]
    alone, adjusted, ahead = [], [0.0] * len(changes), 0.0
    for place in range(len(changes)):
        alone.append(sum(row[place] >= seen[place] for row in table) / len(table))
    behind = sorted(range(len(changes)), key=lambda place: seen[place], reverse=True)
    while behind:
        first = behind[0]
        as_far = sum(max(row[place] for place in behind) >= seen[first] for row in table)
        ahead = max(ahead, as_far / len(table))
        adjusted[first] = ahead
        behind = behind[1:]
    return alone, adjusted


@pytest.mark.parametrize(
    "values",
    [
        [[1, 5, 2, 4, 3], [2, 2, 2, 2, 2], [4, 8, 5, 1, 0]],
        [
            [3, 1, 4, 1, 5, 9, 2],
            [9, 2, 6, 5, 3, 5, 8],
            [5, 8, 9, 7, 9, 3, 2],
            [3, 1, 4, 1, 5, 9, 3],
        ],
        [[2, 7, 1, 8, 2, 8], [3, 1, 4, 1, 5, 9]],
        [[1, 1, 2, 9], [1, 1, 5, 3], [1, 1, 3, 4]],  # two users for whom the systems tie
    ],
)
def test_flips_of_few_users_are_all_tried(values):
    """Dividing by a power of two keeps the numbers exact, by seven it does not."""
    changes = [[b - a for a, b in zip(*pair, strict=True)] for pair in combinations(values, 2)]
    alone, adjusted = enumerated([list(map(Fraction, change)) for change in changes])
    for scale in (8, 7):
        scaled = [[value / scale for value in row] for row in values]
        got = compared(*scaled, test="max_t")
        order = [(f"m{b}", f"m{a}") for a, b in combinations(range(len(values)), 2)]
        rows = {(row["model"], row["baseline"]): row for row in got.rows(named=True)}
        assert [rows[pair]["p_value"] for pair in order] == pytest.approx(alone, abs=1e-12)
        assert [rows[pair]["p_adjusted"] for pair in order] == pytest.approx(adjusted, abs=1e-12)


@pytest.mark.parametrize("users", [11, 60])
def test_max_t_of_two_systems_is_the_randomization_test(users):
    old, new = np.round(sample(23, users) * 8) / 8
    options = {"resamples": 5000, "seed": 3}
    ours, plain = (one(old, new, test=test, **options) for test in ("max_t", "randomization"))
    assert ours["p_value"] == ours["p_adjusted"] == plain["p_value"]
    # the interval has the critical t of the flipped signs of centered differences
    change = new - old
    centered = change - change.mean()
    signs = 2.0 * (np.random.default_rng(0).random((40_000, users)) < 0.5) - 1
    critical = np.quantile(np.abs(stats.ttest_1samp(signs * centered, 0, axis=1).statistic), 0.95)
    margin = critical * change.std(ddof=1) / sqrt(users)
    assert ours["ci_low"] == pytest.approx(change.mean() - margin, abs=0.03 * margin)
    assert ours["ci_high"] == pytest.approx(change.mean() + margin, abs=0.03 * margin)


def test_drawn_signs_come_close_to_all():
    matrix = pairs_of(sample(24, 12, systems=4))
    exact, drawn = flipped(matrix, 2**12), flipped(matrix, 2**12 - 1)
    assert (exact.adjusted != drawn.adjusted).any()
    assert drawn.adjusted == pytest.approx(exact.adjusted, abs=0.03)
    assert drawn.alone == pytest.approx(exact.alone, abs=0.03)
    assert reach(matrix, 2**12 - 1) == pytest.approx(reach(matrix, 2**12), rel=0.03)


def test_blocks_change_nothing(monkeypatch):
    for users in (10, 30):
        matrix = pairs_of(sample(24, users, systems=4))
        whole, of_all = flipped(matrix, 2000), reach(matrix, 2000)
        with monkeypatch.context() as patched:
            patched.setattr(_sizes, "CELLS_RANDOM", 1000)
            parts, of_parts = flipped(matrix, 2000), reach(matrix, 2000)
        assert (whole.adjusted == parts.adjusted).all()
        assert (whole.alone == parts.alone).all()
        assert of_all == of_parts


def test_scale_of_a_pair_does_not_matter():
    matrix = pairs_of(sample(25, 40, systems=3))
    scaled = matrix * [1e-200, 1.0, 1e90]
    assert (flipped(matrix, 500).adjusted == flipped(scaled, 500).adjusted).all()
    assert reach(scaled, 500) == pytest.approx(reach(matrix, 500), rel=1e-12)


def test_intervals_are_of_the_greatest_t_of_centered_differences():
    """Six users: all 64 patterns of signs, by SciPy's t."""
    values = sample(31, 6, systems=4)
    changes = pairs_of(values)
    signs = np.array(list(product([1, -1], repeat=6)))
    centered = changes - changes.mean(axis=0)
    of_pairs = stats.ttest_1samp(signs[:, :, None] * centered, 0, axis=1).statistic
    greatest = np.sort(np.abs(of_pairs).max(axis=1))[60]  # 61 of 64 are at least 95 %
    errors = changes.std(axis=0, ddof=1) / sqrt(6)
    got = compared(*values, test="max_t")
    rows = {(row["model"], row["baseline"]): row for row in got.rows(named=True)}
    for place, (a, b) in enumerate(combinations(range(4), 2)):
        row, mean = rows[f"m{b}", f"m{a}"], changes[:, place].mean()
        ends = mean - greatest * errors[place], mean + greatest * errors[place]
        assert (row["ci_low"], row["ci_high"]) == pytest.approx(ends, rel=1e-9)


@pytest.mark.parametrize(
    "systems",
    [
        [[0.1] * 8, [0.1, 0.1, 0.1, 0.2, 0.25, 0.3, 0.35, 0.3]],  # p = .0625, 0 was outside
        np.linspace(0, 1.4, 5)[:, None] + sample(5, 12, systems=5),  # .038, it was inside
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_interval_has_0_where_the_adjusted_p_shows_nothing(systems, sign):
    got = compared(*(sign * np.asarray(systems) + 20), test="max_t")
    for low, high in (("ci_low", "ci_high"), ("relative_low", "relative_high")):
        has_0 = (got[low] <= 0) & (got[high] >= 0)
        assert has_0.to_list() == (got["p_adjusted"] >= 0.05).to_list()


@pytest.mark.parametrize("distance", [0, 1, 3])
def test_intervals_cover_all_differences_at_once(distance):
    """Nine systems, and a baseline that is this many deviations below: 400 runs of 30 users.

    With the means in, the flipped signs of all pairs move together: at 3, they cover .85.
    """
    rng, covered = np.random.default_rng(distance), 0
    for seed in range(400):
        of_users = rng.normal(size=(30, 10))
        changes = of_users[:, 1:] - of_users[:, :1] + distance * sqrt(2)
        t = (changes.mean(axis=0) - distance * sqrt(2)) / changes.std(axis=0, ddof=1) * sqrt(30)
        covered += np.abs(t).max() <= reach(changes, 199, seed)
    assert covered / 400 == pytest.approx(0.95, abs=0.03)


def test_seed_of_signs_gives_the_same_numbers():
    values = (np.arange(120) * 79 % 101).reshape(3, 40) / 101 + np.array([[0], [0.1], [0.22]])
    first, again, other = (
        compared(*values, test="max_t", resamples=FEW, seed=seed) for seed in (1, 1, 2)
    )
    assert first.equals(again)
    assert not first.equals(other)
    # written down: the numbers are the same on every machine
    assert first["p_adjusted"].to_list() == [0.28, 0.041, 0.28]


# ------------------------------------------------------------------ which pairs, which users


def test_baseline_has_a_family_of_its_own():
    values = sample(26, 30, systems=5, spread=0.5)
    every = compared(*values, test="max_t", resamples=FEW)
    own = compared(*values, test="max_t", resamples=FEW, baseline="m0")
    both = own.join(every, on=["model", "baseline"])
    assert both.height == 4
    assert (both["p_value"] == both["p_value_right"]).all()
    assert (both["p_adjusted"] <= both["p_adjusted_right"]).all()
    assert (both["ci_low"] > both["ci_low_right"]).all()


def test_pairs_without_spread_are_left_out():
    old, new = sample(27, 40)
    plain = compared(old, new, test="max_t", resamples=FEW).row(0, named=True)
    got = compared(old, new, old, old + 1, test="max_t", resamples=FEW, baseline="m0")
    first, same, shifted = got.rows(named=True)
    assert (first["p_adjusted"], first["ci_low"]) == (plain["p_adjusted"], plain["ci_low"])
    for row, p, note in (
        (same, None, "no user differs"),
        (shifted, 0.5**39, "exact test: every user differs by the same"),
    ):
        adjusted = None if p is None else 3 * p
        assert (row["p_value"], row["p_adjusted"], row["ci_low"]) == (p, adjusted, None)
        assert row["note"].startswith(note)


def test_users_are_those_of_all_systems():
    table = judged([1.0, 2.0, 4.0, None], [2.0, 2.5, 3.0, 9.0], [0.0, None, 1.0, 1.0])
    got = rf.compare(table, VALUE, test="max_t")
    assert got["users"].to_list() == [2] * 3


def test_clusters_are_flipped_as_one():
    customer = np.arange(40) // 4
    values = sample(28, 40, systems=3) + np.random.default_rng(0).gamma(2, 1, (3, 10))[:, customer]
    of_users = pl.DataFrame({"user": np.arange(40), "customer": customer})
    table = judged(*values).join(of_users, on="user")
    options = {"cluster": "customer", "resamples": 2000}
    got = rf.compare(table, VALUE, test="max_t", **options, details=True)
    sums = np.column_stack([np.bincount(customer, change) for change in pairs_of(values).T])
    expected = flipped(sums, 2000)
    rows = {(row["model"], row["baseline"]): row for row in got.rows(named=True)}
    pairs = [(f"m{b}", f"m{a}") for a, b in combinations(range(3), 2)]
    assert [rows[pair]["p_adjusted"] for pair in pairs] == expected.adjusted.tolist()
    two = table.filter(pl.col("model") != "m2")
    ours, plain = (
        rf.compare(two, VALUE, test=test, **options, details=True)["p_value"].item()
        for test in ("max_t", "randomization")
    )
    assert ours == plain
    with pytest.raises(ValueError, match="test='max_t' does not support weights"):
        rf.compare(table, VALUE, test="max_t", weights="customer", details=True)


def test_clusters_of_users_without_a_value_in_a_system_are_left_out():
    values = sample(29, 40, systems=3)
    of_users = pl.DataFrame({"user": np.arange(40), "customer": np.arange(40) // 4})
    table = judged(*values).join(of_users, on="user")
    lacks = (pl.col("model") == "m1") & (pl.col("user") % 13 == 0)
    options = {"test": "max_t", "cluster": "customer", "resamples": 500}
    got = rf.compare(
        table.with_columns(value=pl.when(~lacks).then("value")), VALUE, **options, details=True
    )
    alone = rf.compare(table.filter(pl.col("user") % 13 > 0), VALUE, **options, details=True)
    assert got["users"].to_list() == [36] * 3
    assert got.drop("note", "num_left_out").equals(alone.drop("note", "num_left_out"))


def test_too_little_for_an_interval_is_reported():
    few = compared(*sample(27, 30, systems=3), test="max_t", resamples=10)
    assert few["ci_low"].null_count() == few["ci_high"].null_count() == 3
    by_name = "systems are sorted by name, unless baseline= names one"
    assert set(few["note"]) == {f"too few resamples for an interval; {by_name}"}
    assert few["p_adjusted"].null_count() == 0
    for users, start in (
        (3, "too few users for an interval; 3 users, too few"),
        (5, "too few users for an interval"),
        (6, None),
    ):
        (row,) = compared(*sample(27, users), test="max_t").rows(named=True)
        assert (row["ci_low"] is None) is (start is not None)
        assert (row["note"] or "").startswith(start or "")
        assert row["p_adjusted"] is not None


@pytest.mark.parametrize("correction", [None, "bh"])
def test_max_t_has_a_correction_of_its_own(correction):
    values = sample(12, 12, systems=3)
    start = f"correction={correction!r}: test='max_t' tests all systems at once"
    with pytest.raises(ValueError, match=f"^{start}"):
        compared(*values, test="max_t", correction=correction)
    got = compared(*values, test="max_t")
    assert (got["p_adjusted"] > got["p_value"]).any()


# ------------------------------------------------------------------ how often it is wrong


def test_near_copies_beside_another_system_are_seldom_separated():
    """It holds 5 %, up to two errors of the simulation."""
    runs, users = 200, 50
    values = systems.recommenders(np.random.default_rng(30), users, runs)
    first, second = np.triu_indices(len(values), 1)
    wrong = 0
    for matrix in np.ascontiguousarray(values.transpose(2, 1, 0)):
        wrong += flipped(matrix[:, second] - matrix[:, first], 199).adjusted.min() <= 0.05
    assert wrong / runs <= 0.05 + 2 * sqrt(0.05 * 0.95 / runs)


def test_max_t_finds_more_than_holm_among_near_copies():
    values = systems.recommenders(np.random.default_rng(35), 300, 1)[:, :, 0]
    values[0] += 0.025
    table = judged(*values)
    found = {
        test: (rf.compare(table, VALUE, test=test, resamples=FEW)["p_adjusted"] < 0.05).sum()
        for test in ("t", "max_t")
    }
    assert 0 < found["t"] < found["max_t"]


def test_relative_intervals_are_as_wide_as_the_intervals_of_the_test():
    """A baseline of one value: each relative end is the end of the difference over it."""
    values = np.full((1, 30), 4.0), 4 + np.random.default_rng(3).normal(0, 1, (4, 30))
    got = compared(*np.concatenate(values), test="max_t", baseline="m0", resamples=500)
    plain = compared(*np.concatenate(values), baseline="m0")
    for side in ("low", "high"):
        ends = got[f"ci_{side}"] / 4
        assert got[f"relative_{side}"].to_list() == pytest.approx(ends.to_list())
    widths = [table["relative_high"] - table["relative_low"] for table in (got, plain)]
    assert (widths[0] > widths[1]).all()
    looks = rf.compare(
        judged(*np.concatenate(values)).select("model", "user", (pl.col("value") / 9).alias("rr")),
        *("rr",), baseline="m0", test="sequential", details=True,
    )  # fmt: skip
    assert looks["relative_low"].null_count() == looks["relative_high"].null_count() == 4
