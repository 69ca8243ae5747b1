"""Rank-biased overlap of two runs against sums over the depths, and against lists made longer."""

import math

import polars as pl
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import rankframe as rf

P = (0.3, 0.5, 0.9)
DEEP = 300  # 0.9^300 is nothing
LISTS = st.lists(st.integers(1, 9), unique=True, min_size=1, max_size=7)
quick = settings(deadline=None, max_examples=reference.drawn(60))


def overlaps(one, two, depths):
    """X_d, the number of items that both have among their first d."""
    return [len({*one[:d]} & {*two[:d]}) for d in depths]


def agreement(one, two, p):
    """RBO of lists so long that nothing is left."""
    depths = range(1, DEEP + 1)
    both = zip(depths, overlaps(one, two, depths), strict=True)
    return (1 - p) * math.fsum(p ** (d - 1) * x / d for d, x in both)


def alike(one, two):
    """Both lists made longer so that they agree as early as they can."""
    one, two = list(one), list(two)
    for depth in range(1, 20):
        for mine, other in ((one, two), (two, one)):
            if len(mine) < depth:
                left = [item for item in other if item not in mine]
                mine.append(left[0] if left else ("new", depth))
    assert {*one} == {*two}
    rest = [("new", depth) for depth in range(20, DEEP + 1)]
    return one + rest, two + rest


def apart(one, two):
    """Both lists made longer so that nothing more agrees."""
    return [*one, *(("one", i) for i in range(DEEP))], [*two, *(("two", i) for i in range(DEEP))]


def extrapolated(one, two, p):
    """RBO_EXT of the paper for lists of two lengths, s the shorter."""
    s, n = sorted((len(one), len(two)))
    x = [0, *overlaps(one, two, range(1, n + 1))]
    first = math.fsum(x[d] / d * p**d for d in range(1, n + 1))
    second = math.fsum(x[s] * (d - s) / (s * d) * p**d for d in range(s + 1, n + 1))
    return (1 - p) / p * (first + second) + ((x[n] - x[s]) / n + x[s] / s) * p**n


def run_of(*lists):
    frame = pl.DataFrame({"user": range(len(lists)), "item": list(lists)})
    return rf.from_lists(frame)


@quick
@given(st.lists(st.tuples(LISTS, LISTS), min_size=1, max_size=3), st.sampled_from(P))
def test_rbo_equals_the_definition(pairs, p):
    got = rf.runs.rbo(run_of(*(one for one, _ in pairs)), run_of(*(two for _, two in pairs)), p=p)
    assert got.columns == ["user", "rbo", "rbo_min", "rbo_residual"]
    for (one, two), (_, value, least, residual) in zip(pairs, got.rows(), strict=True):
        assert value == pytest.approx(extrapolated(one, two, p), abs=1e-12)
        assert least == pytest.approx(agreement(*apart(one, two), p), abs=1e-12)
        assert least + residual == pytest.approx(agreement(*alike(one, two), p), abs=1e-12)
        assert least - 1e-12 <= value <= least + residual + 1e-12


@quick
@given(LISTS, LISTS)
def test_rbo_is_symmetric(one, two):
    there, back = rf.runs.rbo(run_of(one), run_of(two)), rf.runs.rbo(run_of(two), run_of(one))
    assert_frame_equal(there, back, abs_tol=1e-14)


def test_list_is_like_itself_and_unlike_a_list_of_others():
    run = run_of([1, 2, 3], [4])
    assert rf.runs.rbo(run, run)["rbo"].to_list() == pytest.approx([1, 1])
    other = run.with_columns(pl.col("item") + 10)
    assert rf.runs.rbo(run, other).select("rbo", "rbo_min").rows() == [(0, 0), (0, 0)]
    # the first ten depths have 86 % of the weight (Webber et al. 2010)
    ten = run_of(list(range(10)))
    assert rf.runs.rbo(ten, ten)["rbo_min"].item() == pytest.approx(0.8556, abs=5e-5)


def test_k_cuts_both_runs():
    one, two = [1, 2, 3, 4, 5], [2, 1, 6, 3]
    got = rf.runs.rbo(run_of(one), run_of(two), k=3)
    assert_frame_equal(got, rf.runs.rbo(run_of(one[:3]), run_of(two[:3])))


def test_user_whom_one_run_misses_is_anywhere_between_0_and_1():
    run, other = run_of([1, 2], [1]), run_of([1, 2])
    for got in (rf.runs.rbo(run, other), rf.runs.rbo(other, run)):
        assert got.row(1) == (1, None, 0.0, pytest.approx(1, abs=1e-15))


MODELS = pl.concat(
    run_of(*lists).with_columns(model=pl.lit(name))
    for name, lists in (("a", [[1, 2, 3], [4, 5]]), ("b", [[3, 9], [5, 4, 6]]))
)
BASE = run_of([2, 1, 3], [5, 7])


def test_groups_are_compared_with_a_run_that_lacks_the_column():
    got = rf.runs.rbo(MODELS, BASE, by="model")
    assert got.columns == ["model", "user", "rbo", "rbo_min", "rbo_residual"]
    for name in "ab":
        alone = rf.runs.rbo(MODELS.filter(model=name).drop("model"), BASE)
        assert_frame_equal(got.filter(model=name).drop("model"), alone)
    itself = rf.runs.rbo(MODELS, MODELS, by="model")
    assert itself["rbo"].to_list() == pytest.approx([1] * 4)


@pytest.mark.parametrize("engine", ["streaming", "in-memory"])
def test_overlap_is_the_same_in_all_kinds_of_frames(engine):
    expected = rf.runs.rbo(MODELS, BASE, by="model")
    assert_frame_equal(MODELS.rank.runs.rbo(BASE, by="model"), expected)
    lazy = MODELS.lazy().rank.runs.rbo(BASE.lazy(), by="model")
    assert isinstance(lazy, pl.LazyFrame)
    assert_frame_equal(lazy.collect(engine=engine), expected, abs_tol=1e-14)
    mixed = MODELS.sample(fraction=1, shuffle=True, seed=1).with_columns(
        pl.col("user").cast(pl.Int8)
    )
    got = rf.runs.rbo(mixed, BASE.with_columns(other=1), by="model")
    assert_frame_equal(got, expected, abs_tol=1e-14)
    scored = MODELS.with_columns(score=-pl.col("rank")).drop("rank")
    assert_frame_equal(rf.runs.rbo(scored, BASE, by="model"), expected, abs_tol=1e-14)
    named = BASE.rename({"user": "uid", "item": "sku"})
    got = rf.runs.rbo(
        MODELS.rename({"user": "uid", "item": "sku"}), named, by="model", user="uid", item="sku"
    )
    assert_frame_equal(got.rename({"uid": "user"}), expected, abs_tol=1e-14)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("run", "other", "message"),
    [
        ({"rank": [1, 1]}, {}, "run, column 'rank': two items of one user have the same rank"),
        (
            {},
            {"rank": [1, 1]},
            "other run, column 'rank': two items of one user have the same rank",
        ),
        ({"item": [1, 1]}, {}, "run, column 'item': duplicate (user, item)"),
        ({}, {"item": [1, 1]}, "other run, column 'item': duplicate (user, item)"),
        ({"rank": [0, 1]}, {}, "run, column 'rank': a rank that is not an integer ≥ 1"),
        ({}, {"rank": [None, None]}, "other run, column 'rank': it is null in every row"),
        ({"user": [1, None]}, {}, "run, column 'user': null user: drop the row"),
        ({"user": [5, 5]}, {}, "run, column 'user': no user of the run is in the other run, which"),
    ],
)
def test_overlap_reports_what_breaks_a_rule(run, other, message, lazy):
    table = {"user": [1, 1], "item": [1, 2], "rank": [1, 2]}
    frames = [pl.DataFrame({**table, **change}) for change in (run, other)]
    one, two = (frame.lazy() if lazy else frame for frame in frames)
    with pytest.raises(rf.RankingDataError) as error:
        rf.runs.rbo(one, two).lazy().collect()
    assert str(error.value).startswith(message)


def test_overlap_reports_wrong_calls_at_once(refused):
    run = run_of([1, 2])
    for p in (0, 1, "x", None):
        refused(rf.runs.rbo, run, run, p=p)
    refused(rf.runs.rbo, run, run, p=0.999999)
    refused(rf.runs.rbo, run, run, k=0)
    refused(rf.runs.rbo, run, run.rename({"item": "sku"}))
    refused(rf.runs.rbo, run, run.with_columns(pl.col("item").cast(pl.String)))
    refused(rf.runs.rbo, run.with_columns(rbo=1), run, by="rbo")
    refused(rf.runs.rbo, run_of([1], [2]).with_columns(fold="user"), run_of([1], [2]), by="fold")
