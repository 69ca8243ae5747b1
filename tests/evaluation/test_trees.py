"""The reader of expressions: one golden tree for each kind of node, on every version of Polars."""

import polars as pl
import pytest
from every_metric import OF_TIER

from rankframe._evaluation import trees
from rankframe._evaluation.trees import CallNode, Cast, ColumnNode, LiteralNode, Over

A, B, K = ColumnNode("a"), ColumnNode("b"), ColumnNode("k")
a, b = pl.col("a"), pl.col("b")
ONE, NULL = LiteralNode(1), LiteralNode(None)
GOLDEN = {
    "column": (a, A),
    "alias": (a.alias("x"), A),
    "integer": (pl.lit(3), LiteralNode(3)),
    "float": (pl.lit(0.5), LiteralNode(0.5)),
    "typed": (pl.lit(2, pl.Int64), LiteralNode(2)),
    "boolean": (pl.lit(value=True), LiteralNode(value=True)),
    "text": (pl.lit("x'y"), LiteralNode("x'y")),
    "null": (pl.lit(None), NULL),
    "cast to integer": (a.cast(pl.Int64), Cast(A, "int")),
    "cast to float": (a.cast(pl.Float64, strict=False), Cast(A, "float")),
    "cast to boolean": (a.cast(pl.Boolean), Cast(A, "bool")),
    "when": (pl.when(a).then(b).otherwise(1), CallNode("when", (A, B, ONE))),
    "no otherwise": (pl.when(a).then(b), CallNode("when", (A, B, NULL))),
    "two conditions": (
        pl.when(a, b).then(1),
        CallNode("when", (CallNode("and", (A, B)), ONE, NULL)),
    ),
    "+": (a + b, CallNode("plus", (A, B))),
    "-": (a - 1, CallNode("minus", (A, ONE))),
    "*": (a * b, CallNode("times", (A, B))),
    "/": (a / b, CallNode("divide", (A, B))),
    "/ k, for the last bit": (a / (a * 0 + 10), CallNode("divide", (A, LiteralNode(10)))),
    "&": (a & b, CallNode("and", (A, B))),
    "|": (a | b, CallNode("or", (A, B))),
    "==": (a == b, CallNode("equal", (A, B))),
    "!=": (a != b, CallNode("not_equal", (A, B))),
    "<": (a < b, CallNode("less", (A, B))),
    "<=": (a <= b, CallNode("less_equal", (A, B))),
    ">": (a > b, CallNode("greater", (A, B))),
    ">=": (a >= b, CallNode("greater_equal", (A, B))),
    "abs": (a.abs(), CallNode("abs", (A,))),
    "ceil": (a.ceil(), CallNode("ceil", (A,))),
    "floor": (a.floor(), CallNode("floor", (A,))),
    "exp": (a.exp(), CallNode("exp", (A,))),
    "log": (a.log(2), CallNode("log", (A, LiteralNode(2)))),
    "sqrt": (a.sqrt(), CallNode("sqrt", (A,))),
    "power": (a**2, CallNode("power", (A, LiteralNode(2)))),
    "negate": (-a, CallNode("negate", (A,))),
    "not": (~a, CallNode("not", (A,))),
    "is_null": (a.is_null(), CallNode("is_null", (A,))),
    "is_not_null": (a.is_not_null(), CallNode("is_not_null", (A,))),
    "is_nan": (a.is_nan(), CallNode("is_nan", (A,))),
    "is_finite": (a.is_finite(), CallNode("is_finite", (A,))),
    "is_infinite": (a.is_infinite(), CallNode("is_infinite", (A,))),
    "fill_null": (a.fill_null(1), CallNode("coalesce", (A, ONE))),
    "is_between": (
        a.is_between(b, 1, closed="left"),
        CallNode("and", (CallNode("greater_equal", (A, B)), CallNode("less", (A, ONE)))),
    ),
    "coalesce": (pl.coalesce(a, b), CallNode("coalesce", (A, B))),
    "least": (pl.min_horizontal(a, b), CallNode("least", (A, B))),
    "greatest": (pl.max_horizontal(a, b), CallNode("greatest", (A, B))),
    "clip": (a.clip(1), CallNode("when", (CallNode("less", (A, ONE)), ONE, A))),
    "clip above": (
        a.clip(upper_bound=1),
        CallNode("when", (CallNode("greater", (A, ONE)), ONE, A)),
    ),
    "all_horizontal": (pl.all_horizontal(a, b), CallNode("and", (A, B))),
    "any_horizontal": (pl.any_horizontal(a, b), CallNode("or", (A, B))),
    "sum_horizontal": (
        pl.sum_horizontal(a, b),
        CallNode(
            "plus",
            (CallNode("coalesce", (A, LiteralNode(0))), CallNode("coalesce", (B, LiteralNode(0)))),
        ),
    ),
    "sum": (a.sum(), CallNode("sum", (A,))),
    "max": (a.max(), CallNode("max", (A,))),
    "min": (a.min(), CallNode("min", (A,))),
    "mean": (a.mean(), CallNode("mean", (A,))),
    "count": (a.count(), CallNode("count", (A,))),
    "n_unique": (
        a.n_unique(),
        CallNode(
            "plus",
            (
                CallNode("n_unique", (A,)),
                Cast(CallNode("any", (CallNode("is_null", (A,)),)), "int"),
            ),
        ),
    ),
    "len": (pl.len(), CallNode("len", ())),
    "any": (a.any(), CallNode("any", (A,))),
    "all": (a.all(), CallNode("all", (A,))),
    "any, Kleene": (a.any(ignore_nulls=False), CallNode("any", (A,), "ignore_nulls=False")),
    "filter": (a.filter(b).sum(), CallNode("sum", (CallNode("when", (B, A, NULL)),))),
    "filter, rows": (a.filter(b).len(), CallNode("sum", (B,))),
    "over": (a.sum().over("k"), Over(CallNode("sum", (A,)), (K,))),
    "running": (
        a.cum_sum().over("k", order_by="b", nulls_last=True),
        Over(CallNode("cum_sum", (A,)), (K,), (B,)),
    ),
    "product above": (
        a.cum_prod().shift(1, fill_value=1.0).over("k", order_by="b"),
        Over(CallNode("product_above", (A,)), (K,), (B,)),
    ),
    "shift": (
        a.shift(-1).over("k", order_by="b"),
        Over(CallNode("shift", (A, LiteralNode(-1))), (K,), (B,)),
    ),
    "rank": (
        a.rank("ordinal", descending=True).over("k"),
        Over(CallNode("rank", (A,), ("ordinal", True)), (K,)),
    ),
    "is_duplicated": (pl.struct("a", "b").is_duplicated(), CallNode("is_duplicated", (A, B))),
}


@pytest.mark.parametrize("kind", GOLDEN)
def test_node_is_read_as_its_golden_tree(kind):
    expression, tree = GOLDEN[kind]
    assert trees.read(expression) == tree


def test_nodes_have_golden_trees():
    golden = [trees.read(expression) for expression, _ in GOLDEN.values()]
    golden = {
        below.name
        for tree in golden
        for below in trees.every_node(tree)
        if isinstance(below, CallNode)
    }
    names = {*trees._OPERATORS.values(), *map(trees._named, trees._FUNCTIONS | trees._AGGREGATES)}
    names -= {*trees._SEEN_ONLY}
    assert golden == names | {
        "when",
        "power",
        "rank",
        "shift",
        "cum_sum",
        "product_above",
        "len",
    } | {
        "any",
        "all",
    }


def test_json_has_no_nan():
    (number,) = (n.value for n in trees.every_node(trees.read(pl.lit(float("nan")))))
    assert number != number


def test_trees_read_each_metric():
    for label, metric in OF_TIER.items():
        assert set(trees.columns_of(trees.read(metric))) == set(metric.meta.root_names()), label


@pytest.mark.parametrize(
    ("expression", "node"),
    {
        "median": (a.median(), "Median"),
        "first": (a.first(), "First"),
        "python": (a.map_elements(abs, return_dtype=pl.Int64).sum(), "AnonymousFunction"),
        "text": (a.str.len_chars().sum(), "StringExpr"),
        "floor division": ((a // 2).sum(), "FloorDivide"),
        "reverse": (a.cum_sum(reverse=True).over("k", order_by="b"), "CumSum(reverse)"),
        "falling": (a.cum_sum().over("k", order_by="b", descending=True), "Over"),
        "all columns": (pl.all().sum(), "Selector"),
        "cast to text": (a.cast(pl.String).max(), "Cast(String)"),
        "average rank": (a.rank().over("k"), "Rank(Average)"),
        "filter alone": (a.filter(b), "Filter"),
    }.values(),
)
def test_unknown_node_names_itself(expression, node):
    with pytest.raises(trees.UnknownNodeError, match=node.replace("(", r"\(").replace(")", r"\)")):
        trees.read(expression)
