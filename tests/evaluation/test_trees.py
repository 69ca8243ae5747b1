"""The reader of expressions: one golden tree for each kind of node, on every version of Polars."""

import polars as pl
import pytest
from every_metric import EVERY_METRIC

from rankframe._evaluation import trees
from rankframe._evaluation.trees import Call, Cast, Column, Literal, Over

A, B, K = Column("a"), Column("b"), Column("k")
a, b = pl.col("a"), pl.col("b")
ONE, NULL = Literal(1), Literal(None)
GOLDEN = {
    "column": (a, A),
    "alias": (a.alias("x"), A),
    "integer": (pl.lit(3), Literal(3)),
    "float": (pl.lit(0.5), Literal(0.5)),
    "typed": (pl.lit(2, pl.Int64), Literal(2)),
    "boolean": (pl.lit(value=True), Literal(value=True)),
    "text": (pl.lit("x'y"), Literal("x'y")),
    "null": (pl.lit(None), NULL),
    "cast to integer": (a.cast(pl.Int64), Cast(A, "int")),
    "cast to float": (a.cast(pl.Float64, strict=False), Cast(A, "float")),
    "cast to boolean": (a.cast(pl.Boolean), Cast(A, "bool")),
    "when": (pl.when(a).then(b).otherwise(1), Call("when", (A, B, ONE))),
    "no otherwise": (pl.when(a).then(b), Call("when", (A, B, NULL))),
    "two conditions": (pl.when(a, b).then(1), Call("when", (Call("and", (A, B)), ONE, NULL))),
    "+": (a + b, Call("plus", (A, B))),
    "-": (a - 1, Call("minus", (A, ONE))),
    "*": (a * b, Call("times", (A, B))),
    "/": (a / b, Call("divide", (A, B))),
    "/ k, for the last bit": (a / (a * 0 + 10), Call("divide", (A, Literal(10)))),
    "&": (a & b, Call("and", (A, B))),
    "|": (a | b, Call("or", (A, B))),
    "==": (a == b, Call("equal", (A, B))),
    "!=": (a != b, Call("not_equal", (A, B))),
    "<": (a < b, Call("less", (A, B))),
    "<=": (a <= b, Call("less_equal", (A, B))),
    ">": (a > b, Call("greater", (A, B))),
    ">=": (a >= b, Call("greater_equal", (A, B))),
    "abs": (a.abs(), Call("abs", (A,))),
    "ceil": (a.ceil(), Call("ceil", (A,))),
    "floor": (a.floor(), Call("floor", (A,))),
    "exp": (a.exp(), Call("exp", (A,))),
    "log": (a.log(2), Call("log", (A, Literal(2)))),
    "sqrt": (a.sqrt(), Call("sqrt", (A,))),
    "power": (a**2, Call("power", (A, Literal(2)))),
    "negate": (-a, Call("negate", (A,))),
    "not": (~a, Call("not", (A,))),
    "is_null": (a.is_null(), Call("is_null", (A,))),
    "is_not_null": (a.is_not_null(), Call("is_not_null", (A,))),
    "is_nan": (a.is_nan(), Call("is_nan", (A,))),
    "is_finite": (a.is_finite(), Call("is_finite", (A,))),
    "is_infinite": (a.is_infinite(), Call("is_infinite", (A,))),
    "fill_null": (a.fill_null(1), Call("coalesce", (A, ONE))),
    "is_between": (
        a.is_between(b, 1, closed="left"),
        Call("and", (Call("greater_equal", (A, B)), Call("less", (A, ONE)))),
    ),
    "coalesce": (pl.coalesce(a, b), Call("coalesce", (A, B))),
    "least": (pl.min_horizontal(a, b), Call("least", (A, B))),
    "greatest": (pl.max_horizontal(a, b), Call("greatest", (A, B))),
    "clip": (a.clip(1), Call("when", (Call("less", (A, ONE)), ONE, A))),
    "clip above": (a.clip(upper_bound=1), Call("when", (Call("greater", (A, ONE)), ONE, A))),
    "all_horizontal": (pl.all_horizontal(a, b), Call("and", (A, B))),
    "any_horizontal": (pl.any_horizontal(a, b), Call("or", (A, B))),
    "sum_horizontal": (
        pl.sum_horizontal(a, b),
        Call("plus", (Call("coalesce", (A, Literal(0))), Call("coalesce", (B, Literal(0))))),
    ),
    "sum": (a.sum(), Call("sum", (A,))),
    "max": (a.max(), Call("max", (A,))),
    "min": (a.min(), Call("min", (A,))),
    "mean": (a.mean(), Call("mean", (A,))),
    "count": (a.count(), Call("count", (A,))),
    "n_unique": (
        a.n_unique(),
        Call(
            "plus",
            (Call("n_unique", (A,)), Cast(Call("any", (Call("is_null", (A,)),)), "int")),
        ),
    ),
    "len": (pl.len(), Call("len", ())),
    "any": (a.any(), Call("any", (A,))),
    "all": (a.all(), Call("all", (A,))),
    "any, Kleene": (a.any(ignore_nulls=False), Call("any", (A,), "ignore_nulls=False")),
    "filter": (a.filter(b).sum(), Call("sum", (Call("when", (B, A, NULL)),))),
    "filter, rows": (a.filter(b).len(), Call("sum", (B,))),
    "over": (a.sum().over("k"), Over(Call("sum", (A,)), (K,))),
    "running": (
        a.cum_sum().over("k", order_by="b", nulls_last=True),
        Over(Call("cum_sum", (A,)), (K,), (B,)),
    ),
    "product above": (
        a.cum_prod().shift(1, fill_value=1.0).over("k", order_by="b"),
        Over(Call("product_above", (A,)), (K,), (B,)),
    ),
    "shift": (
        a.shift(-1).over("k", order_by="b"),
        Over(Call("shift", (A, Literal(-1))), (K,), (B,)),
    ),
    "rank": (
        a.rank("ordinal", descending=True).over("k"),
        Over(Call("rank", (A,), ("ordinal", True)), (K,)),
    ),
    "is_duplicated": (pl.struct("a", "b").is_duplicated(), Call("is_duplicated", (A, B))),
}


@pytest.mark.parametrize("kind", GOLDEN)
def test_a_node_is_read_as_its_golden_tree(kind):
    expression, tree = GOLDEN[kind]
    assert trees.read(expression) == tree


def test_every_node_has_a_golden_tree():
    golden = [trees.read(expression) for expression, _ in GOLDEN.values()]
    golden = {
        below.name for tree in golden for below in trees.every_node(tree) if isinstance(below, Call)
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


def test_every_metric_is_read():
    for label, metric in EVERY_METRIC.items():
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
def test_an_unknown_node_names_itself(expression, node):
    with pytest.raises(trees.UnknownNodeError, match=node.replace("(", r"\(").replace(")", r"\)")):
        trees.read(expression)
