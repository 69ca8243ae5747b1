"""Matrices to tables: from_scores and from_grades, against the long table and with_rank."""

import math

import numpy as np
import polars as pl
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy import sparse
from two_models import assert_equal

import rankframe as rf
from rankframe import _sizes

INF, NAN = math.inf, math.nan
SCORES = np.array([[0.1, 0.9, 0.5], [0.7, 0.2, 0.7]])


def oracle(scores, k=None, users=None, items=None, *, descending=True):
    """Rank the long table of all candidates."""
    height, width = scores.shape
    users = pl.Series(range(height), dtype=pl.Int64) if users is None else pl.Series(users)
    items = pl.Series(range(width), dtype=pl.Int64) if items is None else pl.Series(items)
    row, column = (place.ravel() for place in np.indices(scores.shape))
    half = scores.dtype == np.float16
    long = pl.DataFrame(
        {
            "place": pl.Series(row),
            "user": users.gather(pl.Series(row)),
            "item": items.gather(pl.Series(column)),
            "score": pl.Series((scores.astype(np.float32) if half else scores).ravel()),
        }
    )
    kept = np.ones(scores.size, dtype=bool)
    if scores.dtype.kind == "f":
        kept &= scores.ravel() != (-INF if descending else INF)
    ranked = rf.with_rank(long.filter(pl.Series(kept)), descending=descending)
    best = ranked.filter(pl.col("rank") <= (k or width)).sort("place", "rank")
    return best.select("user", "item", "score", "rank")


TYPES = ["float64", "float32", "float16", "int8", "uint8", "int32", "int64", "uint64", ">f8"]
IDS = {
    "positions": lambda n: None,
    "numbers": lambda n: np.random.default_rng(n).permutation(n) * 7 - 20,
    "text": lambda n: [f"{'é' * (i % 3)}{i * 37 % 101}" for i in range(n)],
    "categorical": lambda n: pl.Series(
        [f"i{i * 37 % 101}" for i in range(n)], dtype=pl.Categorical
    ),
    "enum": lambda n: pl.Series(
        [f"i{i}" for i in range(n)], dtype=pl.Enum([f"i{i}" for i in reversed(range(n))])
    ),
}


def drawn(dtype):
    """Draw scores with many ties, and a row of equal ones."""
    whole = np.random.default_rng(3).integers(0, 9, (23, 40))
    whole[1] = 4
    kind = np.dtype(dtype).kind
    if kind == "u":
        return whole.astype(dtype)
    return ((whole - 4) / 3 if kind == "f" else whole - 4).astype(dtype)


@pytest.mark.parametrize("k", [None, 1, 3, 7, 39, 40, 41])
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
def test_matrix_is_the_long_table_by_with_rank(dtype, descending, k):
    scores = drawn(dtype)
    expected = oracle(scores.astype(scores.dtype.newbyteorder("=")), k, descending=descending)
    got = rf.from_scores(scores, k=k, descending=descending)
    assert_frame_equal(got, expected)
    assert got.schema["user"] == got.schema["item"] == got.schema["rank"] == pl.Int64


@pytest.mark.parametrize("k", [None, 1, 5])
@pytest.mark.parametrize("of_items", IDS)
@pytest.mark.parametrize("of_users", ["positions", "numbers", "text"])
def test_ids_order_ties_as_in_with_rank(of_users, of_items, k):
    scores = drawn("float32")
    users, items = IDS[of_users](23), IDS[of_items](40)
    got = rf.from_scores(scores, k=k, user_ids=users, item_ids=items)
    assert_frame_equal(got, oracle(scores, k, users, items))


@settings(max_examples=reference.drawn(100))
@given(st.data())
def test_drawn_scores_are_ranked_as_the_long_table(data):
    height, width = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 9))
    values = st.sampled_from([-INF, -1.5, -0.0, 0.0, 1e-40, 1.0, 1.0 + 1e-12, 3e38, 1e300])
    cells = st.lists(values, min_size=height * width, max_size=height * width)
    scores = np.array(data.draw(cells)).reshape(height, width)
    k = data.draw(st.sampled_from([None, 1, 2, 3, 8]))
    if (scores == -INF).all():
        with pytest.raises(rf.RankingDataError, match="no cell is a candidate"):
            rf.from_scores(scores, k=k)
        return
    assert_frame_equal(rf.from_scores(scores, k=k), oracle(scores, k))


def test_whole_numbers_that_no_float_holds_keep_their_order():
    scores = np.array([[2**62, 2**62 + 1, -(2**62), 2**62 + 1]])
    for dtype, descending in (("int64", True), ("int64", False), ("uint64", True)):
        given_scores = scores.astype(dtype) if dtype == "int64" else np.abs(scores).astype(dtype)
        for k in (None, 1, 2, 3):
            got = rf.from_scores(given_scores, k=k, descending=descending)
            assert_frame_equal(got, oracle(given_scores, k, descending=descending))


def test_cells_that_only_64_bits_distinguish():
    scores = np.array([[1.0, 1.0 + 1e-12]])
    assert rf.from_scores(scores, k=1)["item"].to_list() == [1]
    assert rf.from_scores(scores[:, ::-1], k=1)["item"].to_list() == [0]


@pytest.mark.parametrize("cells", [1, 7, 100])
def test_slices_make_no_difference(monkeypatch, cells, refused):
    scores = drawn("float32")
    expected = oracle(scores, 5)
    monkeypatch.setattr(_sizes, "CELLS_OF_MATRIX", cells)
    assert_frame_equal(rf.from_scores(scores, k=5), expected)
    assert_frame_equal(rf.from_scores(np.asfortranarray(scores), k=5), expected)
    wide = np.repeat(scores, 2, axis=1)
    assert_frame_equal(rf.from_scores(wide[:, ::2], k=5), expected)
    scores[20, 3] = NAN
    refused(rf.from_scores, scores, k=5)


@pytest.mark.parametrize("levels", [2, 60, 10**6])
@pytest.mark.parametrize("width", [1023, 1024, 1500, 2500])
def test_wide_rows(width, levels):
    """The best are looked for among the greatest of groups of columns."""
    scores = np.random.default_rng(width).integers(0, levels, (6, width)).astype("float32")
    scores[0, ::3] = -INF
    scores[1] = -INF
    scores[1, :7] = 1
    scores[2, -7:] = levels  # the last columns, which make no whole group
    scores[3] = np.sort(scores[3])
    scores[np.random.default_rng(0).random(scores.shape) < 0.1] = -INF
    for k in (1, 10, 64, 65):
        for descending in (True, False):
            given_scores = scores if descending else -scores
            got = rf.from_scores(given_scores, k=k, descending=descending)
            assert_frame_equal(got, oracle(given_scores, k, descending=descending))
    for column in (0, width - 1):
        for unfit in (NAN, INF):
            broken = scores.copy()
            broken[4, column] = unfit
            with pytest.raises(rf.RankingDataError, match=f"at row 4, column {column}$"):
                rf.from_scores(broken, k=10)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("dtype", TYPES)
def test_groups_of_columns_make_no_difference(monkeypatch, dtype, k):
    scores = drawn(dtype)
    expected = rf.from_scores(scores, k=k)
    for groups, crowd in ((1, 4), (17, 1), (20, 10)):
        monkeypatch.setattr(_sizes, "GROUPS_OF_COLUMNS", groups)
        monkeypatch.setattr(_sizes, "CELLS_PER_ITEM", crowd)
        assert_frame_equal(rf.from_scores(scores, k=k), expected)


def test_nested_list_is_a_matrix():
    expected = oracle(SCORES, 2)
    assert_frame_equal(rf.from_scores(SCORES.tolist(), k=2), expected)
    assert_frame_equal(rf.from_scores([tuple(row) for row in SCORES.tolist()], k=2), expected)
    assert_frame_equal(rf.from_scores([*SCORES], k=2), expected)
    square = np.array([[0.25, 0.75], [0.5, 0.125]])
    assert_frame_equal(rf.from_scores(square.tolist(), k=1), oracle(square, 1))


class Lent:
    """A tensor that knows DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Trained:
    """A tensor of PyTorch that is trained, and not on this device."""

    def __init__(self, array, ready=False):
        self.array, self.ready = array, ready

    def detach(self):
        return self

    def cpu(self):
        return Trained(self.array, ready=True)

    def __array__(self, dtype=None, copy=None):
        if not self.ready:
            raise TypeError("can't convert cuda:0 device type tensor to numpy.\nUse Tensor.cpu()")
        return self.array


def test_tensors():
    expected = oracle(SCORES, 2)
    assert_frame_equal(rf.from_scores(Lent(SCORES), k=2), expected)
    assert_frame_equal(rf.from_scores(Trained(SCORES), k=2), expected)
    named = rf.from_scores(SCORES, k=2, user_ids=Lent(np.array([0, 1])))
    assert_frame_equal(named, expected)
    assert rf.from_grades(Lent(np.array([[0, 2]]))).rows() == [(0, 1, 2)]


def test_tensor_that_numpy_cannot_read(refused):
    class Odd:
        def __array__(self, dtype=None, copy=None):
            raise TypeError("Got unsupported ScalarType BFloat16\nand more")

    refused(rf.from_scores, Odd())


# ------------------------------------------------------------------ rows without a candidate


def test_user_without_a_candidate_has_no_row():
    scores = np.array([[-INF, -INF], [1.0, -INF]])
    assert rf.from_scores(scores, k=1).rows() == [(1, 0, 1.0, 1)]


def test_matrix_of_the_caller_is_not_changed():
    scores = drawn("float64")
    kept = scores.copy()
    stored = sparse.coo_matrix(([1, 2, 3], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    unsorted = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), np.array([0, 3])))
    for read_only in (scores, stored.data, unsorted.data, unsorted.indices):
        read_only.flags.writeable = False
    rf.from_scores(scores, k=3)
    rf.from_scores(scores, k=3, descending=False)
    assert rf.from_grades(stored).rows() == [(0, 1, 3), (1, 0, 3)]
    assert rf.from_grades(unsorted).rows() == [(0, 0, 2.0), (0, 1, 5.0)]
    assert (scores == kept).all()
    assert stored.nnz == unsorted.nnz == 3


# ------------------------------------------------------------------ errors

SEEN = pl.DataFrame({"user": [0], "item": [1]})


@pytest.mark.parametrize(
    "call",
    [
        lambda: rf.from_scores([[0.1, NAN]], user_ids=["u"], item_ids=["a", "b"], user="uid"),
        lambda: rf.from_scores([[0.1, NAN, 3]], k=1),
        lambda: rf.from_scores([[-INF, NAN, -INF]], k=2),
        lambda: rf.from_scores([[0.1, INF]], k=1),
        lambda: rf.from_scores([[0.1, -INF]], descending=False),
        lambda: rf.from_scores([[0.1, NAN]], k=1, descending=False),
        lambda: rf.from_scores([[-INF]]),
        lambda: rf.from_scores([[1, 2], [3]]),
        lambda: rf.from_scores([1, 2]),
        lambda: rf.from_scores(np.zeros((2, 2, 2))),
        lambda: rf.from_scores([]),
        lambda: rf.from_scores(np.zeros((0, 3))),
        lambda: rf.from_scores([[1 + 1j]]),
        lambda: rf.from_scores([[None, 1]]),
        lambda: rf.from_scores([["a"]]),
        lambda: rf.from_scores([[True]]),
        lambda: rf.from_scores(np.zeros((1, 1), np.longdouble)),
        lambda: rf.from_scores(SCORES, user_ids=[1]),
        lambda: rf.from_scores(SCORES, item_ids=[1]),
        lambda: rf.from_scores(SCORES, item_ids=["a", "b", "a"]),
        lambda: rf.from_scores(SCORES, user_ids=["a", None]),
        lambda: rf.from_scores(SCORES, user_ids=[0.5, NAN]),
        lambda: rf.from_scores(SCORES, user_ids=[[1], [2]]),
        lambda: rf.from_scores(SCORES, user_ids=[1, "a"]),
        lambda: rf.from_scores(SCORES, user_ids=np.ones((2, 1))),
        lambda: rf.from_grades([[0, 1.0], [NAN, 0]], item_ids=["a", "b"]),
        lambda: rf.from_grades(sparse.csr_array([[0, INF]])),
        lambda: rf.from_grades([[0, 0]]),
        lambda: rf.from_grades(np.zeros((0, 2))),
        lambda: rf.from_grades([[0, 1], [1]]),
        lambda: rf.from_grades([0, 1]),
        lambda: rf.from_grades([["a"]]),
        lambda: rf.from_grades(sparse.csr_array([[1j]])),
        lambda: rf.from_grades([[1]], user_ids=[1, 2]),
        lambda: rf.from_grades([[1]], item_ids=[1, 2]),
    ],
)
def test_bad_data_gets_an_error(call, refused):
    refused(call)


@pytest.mark.parametrize(
    "call",
    [
        lambda: rf.from_scores(SCORES, k=0),
        lambda: rf.from_scores(SCORES, k=1.0),
        lambda: rf.from_scores(SCORES, k=True),
        lambda: rf.from_scores(SCORES, descending=1),
        lambda: rf.from_scores(SCORES, user="rank"),
        lambda: rf.from_grades(SCORES, relevance="item"),
        lambda: rf.from_scores(SCORES, item=1),
        lambda: rf.from_scores(5),
        lambda: rf.from_scores("scores"),
        lambda: rf.from_grades(None),
        lambda: rf.from_scores(SEEN),
        lambda: rf.from_scores(SEEN.lazy()),
        lambda: rf.from_grades(SEEN),
        lambda: rf.from_scores(sparse.csr_array(SCORES)),
        lambda: rf.from_scores(np.ma.array(SCORES)),
        lambda: rf.from_scores(block for block in [SCORES]),
        lambda: rf.from_scores(SCORES, user_ids="ab"),
        lambda: rf.from_scores(SCORES, user_ids=SEEN),
    ],
)
def test_matrix_reports_a_slip(call, refused):
    refused(call)


# ------------------------------------------------------------------ grades

GRADES = np.array([[0, 2, 0], [1, 0, 3]])


@pytest.mark.parametrize(
    "form",
    [
        np.asarray,
        np.ndarray.tolist,
        sparse.csr_matrix,
        sparse.csc_matrix,
        sparse.coo_matrix,
        sparse.csr_array,
        sparse.coo_array,
        sparse.lil_matrix,
        sparse.dok_array,
    ],
)
def test_matrix_of_grades_is_a_truth(form):
    expected = [("u", "b", 2), ("v", "a", 1), ("v", "c", 3)]
    got = rf.from_grades(form(GRADES), user_ids=["u", "v"], item_ids=["a", "b", "c"])
    assert got.rows() == expected
    names = {"user": "uid", "item": "sku", "relevance": "grade"}
    assert rf.from_grades(form(GRADES), **names).columns == [*names.values()]
    got = rf.from_grades(form(GRADES))
    assert got.rows() == [(0, 1, 2), (1, 0, 1), (1, 2, 3)]
    assert got.schema == {"user": pl.Int64, "item": pl.Int64, "relevance": pl.Int64}


def test_zeros_that_are_stored_are_judgments():
    stored = sparse.csr_array((np.array([0, 5]), ([0, 1], [1, 0])), shape=(2, 2))
    assert rf.from_grades(stored).rows() == [(0, 1, 0), (1, 0, 5)]
    assert rf.from_grades(stored.tocsc()).rows() == [(0, 1, 0), (1, 0, 5)]
    assert rf.from_grades(stored.toarray()).rows() == [(1, 0, 5)]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("bool", pl.Int64),
        ("int8", pl.Int8),
        ("uint16", pl.UInt16),
        ("float32", pl.Float32),
        ("float64", pl.Float64),
        (">i4", pl.Int32),
    ],
)
def test_grades_keep_their_type(dtype, expected):
    grades = (GRADES != 0).astype(dtype)
    for form in (grades, *([sparse.csr_array(grades)] if grades.dtype.isnative else [])):
        got = rf.from_grades(form)["relevance"]
        assert got.dtype == expected
        assert got.to_list() == [1, 1, 1]
    half = rf.from_grades(GRADES.astype("float16") / 2)["relevance"]
    assert half.dtype == pl.Float32
    assert half.to_list() == [1, 0.5, 1.5]


# ------------------------------------------------------------------ in a training loop

USERS, ITEMS, BATCHES = 200, 50, 10


def loop():
    """Make scores that know a little of what users like, and the truth."""
    rng = np.random.default_rng(0)
    liked = rng.random((USERS, ITEMS)) < 0.1
    liked[:, 0] = True
    return liked + rng.normal(size=liked.shape), rf.from_grades(liked)


def test_errors_of_masks_and_batches_have_lines_that_work():
    scores, _ = loop()
    seen = scores > 1
    with pytest.raises(TypeError, match=r"in a matrix of scores: scores\[seen\] = -np.inf") as got:
        rf.from_scores(scores, k=3, exclude=seen)
    line = str(got.value).partition("scores: ")[2]
    names = {"scores": scores, "seen": seen, "np": np}
    exec(line, names)
    run = rf.from_scores(scores, k=3)
    assert run["score"].max() <= 1
    batches = [(users, scores[users]) for users in np.split(np.arange(USERS), BATCHES)]
    for slip in (batches, iter(batches)):
        with pytest.raises((TypeError, rf.RankingDataError), match="of batches: ") as got:
            rf.from_scores(slip)
        line = str(got.value).partition("of batches: ")[2]
        merged = eval(line, {"pl": pl, "rf": rf, "batches": batches})
        assert_frame_equal(merged, rf.from_scores(scores))


def test_batch_against_the_truth_of_all_is_a_tenth():
    scores, truth = loop()
    whole = rf.from_scores(scores, k=10).rank.evaluate("ndcg@10", truth=truth)
    assert whole["users"].item() == USERS
    users = np.split(np.arange(USERS), BATCHES)
    parts = [rf.from_scores(scores[batch], k=10, user_ids=batch) for batch in users]
    trap = [part.rank.evaluate("ndcg@10", truth=truth) for part in parts]
    assert {row["users"].item() for row in trap} == {USERS}
    mean = sum(row["ndcg@10"].item() for row in trap) / BATCHES
    assert mean == pytest.approx(whole["ndcg@10"].item() / BATCHES, rel=1e-12)
    # one cure: only the users of the batch; here all batches are of one size
    cured = [part.rank.evaluate("ndcg@10", truth=truth, users="both") for part in parts]
    assert {row["users"].item() for row in cured} == {USERS // BATCHES}
    mean = sum(row["ndcg@10"].item() for row in cured) / BATCHES
    assert mean == pytest.approx(whole["ndcg@10"].item(), rel=1e-12)
    # the other: all batches are one run
    assert_equal(pl.concat(parts).rank.evaluate("ndcg@10", truth=truth), whole)


def test_result_keeps_every_rule():
    scores, truth = loop()
    run = rf.from_scores(scores, k=10)
    assert rf.check(run, truth=truth) is not None
    again = run.drop("rank").rank.with_rank()
    assert_frame_equal(again, run)
