"""Scores to a run, grades to a truth: of matrices and of dicts.

NumPy comes with the caller's array, and is imported by the call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import polars as pl

from rankframe._inputs import dicts
from rankframe._request import keywords, wrong_keywords
from rankframe._tables import adapters, run_dicts

if TYPE_CHECKING:
    import numpy.typing as npt


class SupportsDLPack(Protocol):
    """A tensor of PyTorch, JAX, CuPy and others."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        """Hand over the memory."""
        ...


class SparseMatrix(Protocol):
    """A matrix or an array of scipy.sparse."""

    @property
    def nnz(self) -> Any:
        """How many cells it stores."""
        ...

    def tocsr(self) -> Any:
        """Compress the rows."""
        ...


Matrix: TypeAlias = "npt.ArrayLike | SupportsDLPack"
Ids: TypeAlias = "npt.ArrayLike | Sequence[object] | SupportsDLPack"


@adapters.takes_arrow
def from_scores(
    scores: Matrix | Mapping[Any, Mapping[Any, float]],
    /,
    *,
    k: int | None = None,
    user_ids: Ids | None = None,
    item_ids: Ids | None = None,
    descending: bool = True,
    user: str = "user",
    item: str = "item",
    score: str = "score",
) -> pl.DataFrame:
    """Make a run from a matrix of scores, users × items, or from ``{user: {item: score}}``.

    In a matrix, each user's k best items are ranked.

    Parameters
    ----------
    scores
        A matrix of numbers, one row per user and one column per item: an array of NumPy, a nested
        list, or anything with ``__array__`` or DLPack, such as tensors of PyTorch and JAX. A score
        of −inf means that the item is not a candidate: ``scores[seen] = -np.inf``. Or a dict, as
        pytrec_eval and ranx take it, for which only ``user``, ``item`` and ``score`` are options.
        In a dict, a user without an item has no row, like a user missing from the run.
    k
        How many items each user's list has at most. By default all candidates.
    user_ids
        The ids of the rows, a sequence, an array or a Series. By default row positions.
    item_ids
        The ids of the columns. By default column positions.
    descending
        True if the highest score is the best; False for distances, where inf takes the place of
        −inf.
    user
        Name for the column of users.
    item
        Name for the column of items.
    score
        Name for the column of scores.

    Returns
    -------
    DataFrame
        user, item, score (as in the matrix; Float32 for half precision) and ``rank`` (Int64, 1 =
        best), in the order of the users and of their lists. Equal scores are ordered by item id,
        descending, as by ``with_rank``. Positions are Int64. A user without a candidate has no row.
        A dict gives user, item and score, in its order.

    Raises
    ------
    RankingDataError
        If a candidate's score is NaN or infinite, no cell is a candidate, the matrix does not have
        two dimensions or has no numbers, an id is null or a duplicate, or lengths do not fit.
    TypeError
        If the values of a dict are not dicts of numbers.
    ValueError
        If two columns have one name, or a dict has options of a matrix.

    Notes
    -----
    The long table of all cells is never made. Evaluate the batches of one model together, as one
    run, ``pl.concat([rf.from_scores(block, user_ids=ids) for ids, block in batches])``. If a single
    batch is evaluated against the truth of all users, the users of other batches count as misses,
    so with ten batches each value is about a tenth of the right one; ``users="both"`` leaves these
    users out.

    Examples
    --------
    >>> rf.from_scores([[0.1, 0.9, 0.5], [0.7, 0.2, 0.7]], k=2, item_ids=["a", "b", "c"])
    shape: (4, 4)
    ┌──────┬──────┬───────┬──────┐
    │ user ┆ item ┆ score ┆ rank │
    │ ---  ┆ ---  ┆ ---   ┆ ---  │
    │ i64  ┆ str  ┆ f64   ┆ i64  │
    ╞══════╪══════╪═══════╪══════╡
    │ 0    ┆ b    ┆ 0.9   ┆ 1    │
    │ 0    ┆ c    ┆ 0.5   ┆ 2    │
    │ 1    ┆ c    ┆ 0.7   ┆ 1    │
    │ 1    ┆ a    ┆ 0.7   ┆ 2    │
    └──────┴──────┴───────┴──────┘
    >>> rf.from_scores({"q1": {"d1": 0.5, "d2": 0.9}}).rows()
    [('q1', 'd1', 0.5), ('q1', 'd2', 0.9)]
    """
    if adapters.is_dict(scores):
        of_matrix = {"k": k, "user_ids": user_ids, "item_ids": item_ids}
        _check_dict("from_scores", {**of_matrix, "descending": None if descending else descending})
        _check_names("from_scores", user=user, item=item, score=score)
        return dicts.scores_of("from_scores", scores, (user, item, score))
    keywords.check_switch("descending", descending)
    _check_names("from_scores", user=user, item=item, score=score, rank="rank")
    depth = None if k is None else keywords.whole_number("k", k)
    keywords.need_numpy("matrices")
    from rankframe._inputs import arrays
    from rankframe._inputs.arrays import Names

    names = Names(user, item, score)
    return arrays.ranked_cells(scores, depth, user_ids, item_ids, names, descending=descending)


@wrong_keywords.checked
def from_grades(
    grades: Matrix | SparseMatrix | Mapping[Any, Mapping[Any, float] | Collection[Any]],
    /,
    *,
    user_ids: Ids | None = None,
    item_ids: Ids | None = None,
    user: str = "user",
    item: str = "item",
    relevance: str = "relevance",
) -> pl.DataFrame:
    """Make a truth from a matrix of grades, users × items, or from a dict of grades or relevant
    items.

    Parameters
    ----------
    grades
        A dense matrix, whose nonzero cells are judgments; or a matrix or an array of scipy.sparse,
        whose stored cells are judgments, including zeros. Cells that it stores several times are
        added up, as in SciPy. Or a dict: ``{user: {item: grade}}``, or of the relevant items,
        ``{user: {items}}`` or ``{user: [items]}``. In a dict, a user without an item has no row.
    user_ids
        The ids of the rows, a sequence, an array or a Series. By default row positions.
    item_ids
        The ids of the columns. By default column positions.
    user
        Name for the column of users.
    item
        Name for the column of items.
    relevance
        Name for the column of grades.

    Returns
    -------
    DataFrame
        user, item and relevance, row by row of the matrix. Integers and floats keep their type, but
        half precision becomes Float32; True becomes 1 (Int64). Positions are Int64. A dict of
        relevant items gives user and item alone, and sets are sorted.

    Raises
    ------
    RankingDataError
        If a grade is NaN or infinite, no cell has a grade, the matrix does not have two dimensions
        or has no numbers, an id is null or a duplicate, or lengths do not fit.
    TypeError
        If the values of a dict have another type, or several types.
    ValueError
        If two columns have one name, or a dict has options of a matrix.

    Examples
    --------
    >>> rf.from_grades([[0, 2], [1, 0]], item_ids=["a", "b"]).rows()
    [(0, 'b', 2), (1, 'a', 1)]
    >>> rf.from_grades({"q1": {"d1": 2, "d2": 0}}).rows()
    [('q1', 'd1', 2), ('q1', 'd2', 0)]
    >>> rf.from_grades({"q1": {"d1", "d3"}}).rows()
    [('q1', 'd1'), ('q1', 'd3')]
    """
    _check_names("from_grades", user=user, item=item, relevance=relevance)
    if adapters.is_dict(grades):
        _check_dict("from_grades", {"user_ids": user_ids, "item_ids": item_ids})
        run_dicts.check_columns_of_dict(grades, "grades are {user: {item: grade}}")
        return dicts.truth_of("from_grades", grades, (user, item, relevance))
    keywords.need_numpy("matrices")
    from rankframe._inputs import arrays
    from rankframe._inputs.arrays import Names

    return arrays.graded_cells(grades, user_ids, item_ids, Names(user, item, relevance))


def _check_dict(function: str, of_matrix: Mapping[str, object]) -> None:
    """Check that a dict has no options of a matrix."""
    for name, value in of_matrix.items():
        if value is not None:
            msg = (
                f"{function}: {name}= is for a matrix: leave it out for a dict, whose keys are ids"
            )
            raise ValueError(msg)


def _check_names(function: str, **names: str) -> None:
    keywords.check_columns(names)
    if len({*names.values()}) < len(names):
        roles = " and ".join([", ".join([*names][:-1]), [*names][-1]])
        msg = f"{function}: {roles} need different names, not {[*names.values()]}"
        raise ValueError(msg)
