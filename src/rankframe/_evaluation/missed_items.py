"""A trap of own expressions: a mean, or the like, that leaves out missed items without a word."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from rankframe._evaluation import trees
from rankframe._evaluation.trees import CallNode, Cast, ColumnNode, LiteralNode, Node

#: The columns of the vocabulary that are null for items that were not retrieved.
NULL = frozenset(
    {
        *("rank", "hits", "rank_discount", "judged_hits", "pooled_hits", "subtopic_hits"),
        *("gains", "discounted_gains", "ideal_gains", "ideal_discounted_gains", "level_weight"),
        *("returned_ideal_rank", "lower_graded", "lower_graded_below", "shared", "common_weight"),
    }
)
_COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "is_in"}
_CUTS = {"less", "less_equal", "greater", "greater_equal"}
_SKIPPING = {"mean", "median", "all"}
_JUNCTIONS = {"and", "or", "not"}
#: Functions of numbers whose value is null if one of these is.
_PASS_NULL = {
    *("plus", "minus", "times", "divide", "negate", "abs", "ceil", "floor"),
    *("exp", "log", "sqrt", "power"),
}


def leaving_out(expr: pl.Expr, null: Collection[str]) -> tuple[str, str, int] | None:
    """Return the function that skips missed items, the column that is null for them, and a cut-off.

    It is that of the comparison, or 10.
    """
    for tree in trees.readable(expr):
        for node in trees.every_node(tree):
            if isinstance(node, CallNode) and node.name in _SKIPPING:
                column = _compared(node.inputs[0], null)
                if column is not None:
                    cuts = (_cut(below) for below in trees.every_node(node))
                    return node.name, column, next((k for k in cuts if k > 0), 10)
    return None


def _cut(node: Node) -> int:
    """Read the k of a comparison with a rank, 0 if it is none."""
    if not isinstance(node, CallNode) or node.name not in _CUTS:
        return 0
    match node.inputs:
        case (ColumnNode("rank"), LiteralNode(int(k))):
            return k - (node.name in ("less", "greater_equal"))
        case (LiteralNode(int(k)), ColumnNode("rank")):
            return k - (node.name in ("greater", "less_equal"))
        case _:
            return 0


def _compared(node: Node, null: Collection[str]) -> str | None:
    """Name the first of these columns that a Boolean compares, with nothing that handles nulls."""
    if isinstance(node, Cast):
        return _compared(node.value, null)
    if not isinstance(node, CallNode) or node.name not in _COMPARISONS | _JUNCTIONS:
        return None
    find = _passed_on if node.name in _COMPARISONS else _compared
    columns = (find(below, null) for below in node.inputs)
    return next((column for column in columns if column is not None), None)


def _passed_on(node: Node, null: Collection[str]) -> str | None:
    """Name the first of these columns whose nulls make a number null."""
    if isinstance(node, ColumnNode):
        return node.name if node.name.partition("(")[0] in null else None
    if isinstance(node, Cast) or (isinstance(node, CallNode) and node.name in _PASS_NULL):
        columns = (_passed_on(below, null) for below in trees.inputs_of(node))
        return next((column for column in columns if column is not None), None)
    return None
