"""Odd input and what comes of it: one list, for the tests and for the page in the docs.

``python -m tests.odd_input`` writes the page, ``notebooks/odd_input.md``.
"""

from __future__ import annotations

import datetime
import functools
import math
import re
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

import rankframe as rf
from rankframe._inputs import judgment_files

PAGE = Path(__file__).parents[1] / "notebooks" / "odd_input.md"

METRICS = ("precision@2", "recall@2", "ap", "ndcg@2", "rr")
RUN = pl.DataFrame({"user": [1, 1, 1, 2, 2], "item": [10, 11, 12, 10, 13], "rank": [1, 2, 3, 1, 2]})
TRUTH = pl.DataFrame(
    {"user": [1, 1, 2, 3], "item": [11, 14, 10, 10], "relevance": [1, 2, 1, 1]},
)
SCORED = RUN.select("user", "item", score=pl.Series([0.9, 0.8, 0.7, 0.9, 0.8]))

NAN, INF = float("nan"), float("inf")
LOG3 = math.log2(3)
NDCG = (1 / LOG3) / (2 + 1 / LOG3)  # user 1: a 1 at rank 2, the ideal is 2, 1
#: What RUN and TRUTH give: user 1 finds one of two at rank 2, user 2 the one at 1, user 3 none.
PLAIN = [1 / 3, 1 / 2, (1 / 4 + 1) / 3, (NDCG + 1) / 3, 1 / 2]

#: The error for a duplicate in a run.
AGAIN = (
    "run, column 'item': duplicate (user, item): name a column of models in model=, of folds or days in by=; "
    "otherwise pass duplicates='first': the best place of an item counts, and items below its others "
    "move up; or duplicates='occupy': its other places stay empty. "
)

#: Calls of Polars that errors name, and those that they name for pandas.
_CALLS = {
    r"\.unique\((\[.*?\])\)": r".drop_duplicates(\1)",
    r"\.group_by\((.*?)\)\.agg\(pl\.max\((.*?)\)\)": r".groupby(\1, as_index=False)[\2].max()",
    r"truth\.drop\((.*?)\)": r"truth.drop(columns=\1)",
    r"human\.join\(truth, on=('.*?'), how='semi'\)": r"human[human[\1].isin(truth[\1])]",
    r"human\.filter\(pl\.col\(\"drawn\"\) == \"random\"\)": 'human[human["drawn"] == "random"]',
    r"\.with_columns\(relevance=1\)": ".assign(relevance=1)",
    r"\.with_columns\(pl\.col\((.*?)\)\.fill_null\('unknown'\)\)": r".astype({\1: object}).fillna({\1: 'unknown'})",
}


def said_in(kind: str, message: str) -> str:
    """Write an error as a caller with frames of a kind reads it."""
    for of_polars, of_pandas in _CALLS.items() if kind == "pandas" else ():
        message = re.sub(of_polars, of_pandas, message)
    return message


Expected = list[float | None] | str


NOTHING_MET = "with a warning that no item of the run is in the truth"


class Case(NamedTuple):
    """An input; what ``evaluate`` gives: the means, or the text of the error."""

    name: str
    run: pl.DataFrame
    truth: pl.DataFrame
    gives: Expected
    metrics: tuple[Any, ...] = METRICS
    options: Mapping[str, Any] = {}
    in_pandas: Expected | None = None  # where pandas cannot tell it from something else
    remark: str = ""


def put(frame: pl.DataFrame, column: str, values: object, dtype: Any = None) -> pl.DataFrame:
    """Replace a column."""
    return frame.with_columns(pl.Series(column, values, dtype=dtype, strict=False))


def cast(column: str, dtype: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give both tables with a column of another type."""
    return RUN.with_columns(pl.col(column).cast(dtype)), TRUTH.with_columns(
        pl.col(column).cast(dtype)
    )


def named(column: str, names: Mapping[int, Any], dtype: Any = None) -> tuple[pl.DataFrame, ...]:
    """Give both tables with other ids."""
    return tuple(
        put(frame, column, [names[value] for value in frame[column]], dtype)
        for frame in (RUN, TRUTH)
    )


NAMES = {10: "é", 11: "", 12: " ", 13: "日本", 14: "a\nb"}
DAYS = {n: datetime.datetime(2026, 1, n) for n in range(10, 15)}  # noqa: DTZ001
BYTES = {n: bytes([0, n, 255]) for n in range(10, 15)}
UUIDS = {n: str(uuid.UUID(int=n)) for n in range(10, 15)}
WIDE = {1: 2**63 + 1, 2: 2**64 - 1, 3: 0}
LEVELS = ["10", "11", "12", "13", "14"]
MANY = [str(number) for number in range(2_000)]


def cases() -> dict[str, list[Case]]:
    """Give all cases, by the sections of the page."""
    return {
        "Rows and users": [
            Case("nothing odd", RUN, TRUTH, PLAIN),
            Case("an empty run", RUN.clear(), TRUTH, "run: it is empty"),
            Case("an empty truth", RUN, TRUTH.clear(), "truth: it is empty"),
            Case("one row, a hit", RUN[3:4], TRUTH[2:3], [0.5, 1, 1, 1, 1]),
            Case("one row, a miss", RUN[4:5], TRUTH[2:3], [0, 0, 0, 0, 0], remark=NOTHING_MET),
            Case(
                "no common user",
                RUN.with_columns(pl.col("user") + 100),
                TRUTH,
                "run, column 'user': no user of the run is in the truth, which has users like 1. "
                "Offending row: user=101, item=10, rank=1",
            ),
            Case(
                "no common item, the same users",
                RUN.with_columns(pl.col("item") + 100),
                TRUTH,
                [0, 0, 0, 0, 0],
                remark=NOTHING_MET,
            ),
            Case("a user of the run who is not in the truth", with_user_9(), TRUTH, PLAIN),
            Case(
                "grade 0 for the user without a list, and users='judged': rightly no list",
                RUN,
                put(TRUTH, "relevance", [1, 2, 1, 0]),
                [(1 / 2 + 1) / 2, 1],
                ("recall@2", "abstention_recall"),
                {"users": "judged"},
            ),
            Case(
                "the same, and users='all': undefined for that user",
                with_user_9(),
                TRUTH,
                PLAIN,
                options={"users": "all"},
            ),
            Case(
                "the same, and users='all', undefined=0.0",
                with_user_9(),
                TRUTH,
                [mean * 3 / 4 for mean in PLAIN],
                options={"users": "all", "undefined": 0.0},
            ),
            Case(
                "no user has a relevant item",
                RUN,
                TRUTH.with_columns(relevance=0),
                [None] * 5,
            ),
        ],
        "Ids": [
            Case(
                "item ids are text in the run and integers in the truth",
                RUN.with_columns(pl.col("item").cast(pl.String)),
                TRUTH,
                "column 'item': it is String in the run and Int64 in the truth: cast one; ids "
                "must have the same type in both tables, or any two integer types",
            ),
            Case(
                "user ids are floats in the run and integers in the truth",
                RUN.with_columns(pl.col("user").cast(pl.Float64)),
                TRUTH,
                "column 'user': it is Float64 in the run and Int64 in the truth: cast one; ids "
                "must have the same type in both tables, or any two integer types (pandas turns "
                "integers into floats where one is missing)",
            ),
            Case(
                "item ids are Int8 in the run and UInt64 in the truth",
                RUN.with_columns(pl.col("item").cast(pl.Int8)),
                TRUTH.with_columns(pl.col("item").cast(pl.UInt64)),
                PLAIN,
            ),
            Case("user ids above 2^63", *named("user", WIDE, pl.UInt64), PLAIN),
            Case("item ids are Unicode, empty, a space, two lines", *named("item", NAMES), PLAIN),
            Case("item ids are UUIDs as text", *named("item", UUIDS), PLAIN),
            Case("item ids are bytes", *named("item", BYTES, pl.Binary), PLAIN),
            Case("item ids are datetimes", *named("item", DAYS), PLAIN),
            Case(
                "item ids are datetimes in microseconds in one table and milliseconds in the other",
                named("item", DAYS)[0],
                named("item", DAYS)[1].with_columns(pl.col("item").cast(pl.Datetime("ms"))),
                "column 'item': it is Datetime(time_unit='us', time_zone=None) in the run and "
                "Datetime(time_unit='ms', time_zone=None) in the truth: cast one; ids must have "
                "the same type in both tables, or any two integer types",
            ),
            Case("user ids are floats in both tables", *cast("user", pl.Float64), PLAIN),
            Case(
                "user ids are booleans in both tables",
                RUN.with_columns(pl.col("user") == 1),
                TRUTH.with_columns(pl.col("user") == 1).filter(pl.col("item") != 10),
                [0.5, 0.5, 0.25, NDCG, 0.5],
            ),
            Case(
                "item ids are categories, in a different order in each table",
                RUN.with_columns(pl.col("item").cast(pl.String).cast(pl.Categorical)),
                TRUTH[::-1].with_columns(pl.col("item").cast(pl.String).cast(pl.Categorical)),
                PLAIN,
            ),
            Case(
                "item ids are from different sets of categories",
                categories(RUN, "shelf"),
                categories(TRUTH, "shop"),
                "column 'item': it is Categorical(Categories(name=\"shelf\", "
                'namespace="rankframe tests", physical=pl.UInt32)) in the run and '
                'Categorical(Categories(name="shop", namespace="rankframe tests", '
                "physical=pl.UInt32)) in the truth: cast one; ids must have the same type in both "
                "tables, or any two integer types",
                in_pandas=PLAIN,
            ),
            Case(
                "item ids are enums with different levels",
                RUN.with_columns(pl.col("item").cast(pl.String).cast(pl.Enum(LEVELS))),
                TRUTH.with_columns(pl.col("item").cast(pl.String).cast(pl.Enum(LEVELS[::-1]))),
                "column 'item': it is Enum(categories=['10', '11', '12', '13', '14']) in the run "
                "and Enum(categories=['14', '13', '12', '11', '10']) in the truth: cast one; ids "
                "must have the same type in both tables, or any two integer types",
                in_pandas=PLAIN,
            ),
            Case(
                "item ids are enums of many levels, of which one differs",
                RUN.with_columns(pl.col("item").cast(pl.String).cast(pl.Enum(MANY))),
                TRUTH.with_columns(pl.col("item").cast(pl.String).cast(pl.Enum([*MANY, "else"]))),
                "column 'item': it is an Enum of 2,000 levels (no 2001) in the run and an Enum of "
                "2,001 levels (number 2001 is 'else') in the truth: cast one; ids must have the "
                "same type in both tables, or any two integer types",
                in_pandas=PLAIN,
            ),
            Case(
                "item ids are lists",
                RUN.with_columns(pl.concat_list("item")),
                TRUTH.with_columns(pl.concat_list("item")),
                "run, column 'item': List(Int64) cannot be an id or group: use text or integers",
            ),
            Case(
                "item ids are structs",
                RUN.with_columns(pl.struct("item").alias("item")),
                TRUTH.with_columns(pl.struct("item").alias("item")),
                "run, column 'item': Struct({'item': Int64}) cannot be an id or group: use text "
                "or integers",
            ),
            Case(
                "a null user in the run",
                put(RUN, "user", [1, 1, None, 2, 2]),
                TRUTH,
                "run, column 'user': null user: drop the row, or fill in the user. Offending row: "
                "user=null, item=12, rank=3",
                in_pandas=one_type("user", "Float64", "Int64"),
            ),
            Case(
                "a null item in the run",
                put(RUN, "item", [10, 11, None, 10, 13]),
                TRUTH,
                "run, column 'item': null item: drop the row, or fill in the item. Offending row: "
                "user=1, item=null, rank=3",
                in_pandas=one_type("item", "Float64", "Int64"),
            ),
            Case(
                "a null user in the truth",
                RUN,
                put(TRUTH, "user", [1, 1, None, 3]),
                "truth, column 'user': null user: drop the row, or fill in the user. Offending "
                "row: user=null, item=10, relevance=1",
                in_pandas=one_type("user", "Int64", "Float64"),
            ),
            Case(
                "a null item in the truth, of grade 0",
                RUN,
                put(put(TRUTH, "item", [11, 14, 10, None]), "relevance", [1, 2, 1, 0]),
                "truth, column 'item': null item: drop the row, or fill in the item. Offending "
                "row: user=3, item=null, relevance=0",
                in_pandas=one_type("item", "Int64", "Float64"),
            ),
            Case(
                "a NaN user in the run",
                put(RUN, "user", [1.0, 1, NAN, 2, 2]),
                TRUTH.with_columns(pl.col("user").cast(pl.Float64)),
                "run, column 'user': NaN user: drop the row, or fill in the user. Offending row: "
                "user=nan, item=12, rank=3",
                in_pandas=(
                    "run, column 'user': null user: drop the row, or fill in the user. Offending "
                    "row: user=null, item=12, rank=3"
                ),
            ),
            Case(
                "an infinite user in both tables: an id like any other",
                put(RUN, "user", [INF, INF, INF, 2, 2]),
                put(TRUTH, "user", [INF, INF, 2.0, 3]),
                PLAIN,
            ),
        ],
        "Ranks": [
            Case(
                "ranks that start at 0",
                RUN.with_columns(pl.col("rank") - 1),
                TRUTH,
                "run, column 'rank': a rank that is not an integer ≥ 1: ranks start at 1; add 1 "
                "if yours start at 0. Offending row: user=1, item=10, rank=0",
            ),
            Case(
                "a negative rank",
                put(RUN, "rank", [1, -2, 3, 1, 2]),
                TRUTH,
                "run, column 'rank': a rank that is not an integer ≥ 1: ranks start at 1; add 1 "
                "if yours start at 0. Offending row: user=1, item=11, rank=-2",
            ),
            Case(
                "a rank of 1.5",
                put(RUN, "rank", [1, 1.5, 3, 1, 2]),
                TRUTH,
                "run, column 'rank': a rank that is not an integer ≥ 1: ranks start at 1; add 1 "
                "if yours start at 0. Offending row: user=1, item=11, rank=1.5",
            ),
            Case(
                "a rank of 0.5",
                put(RUN, "rank", [1, 0.5, 3, 1, 2]),
                TRUTH,
                "run, column 'rank': a rank that is not an integer ≥ 1: ranks start at 1; add 1 "
                "if yours start at 0. Offending row: user=1, item=11, rank=0.5",
            ),
            Case(
                "ranks as floats without a fraction",
                RUN.with_columns(pl.col("rank") * 1.0),
                TRUTH,
                PLAIN,
            ),
            Case(
                "a rank of NaN",
                put(RUN, "rank", [1, 2, NAN, 1, 2]),
                TRUTH,
                "run, column 'rank': a rank that is not an integer ≥ 1: ranks start at 1; add 1 "
                "if yours start at 0. Offending row: user=1, item=12, rank=nan",
                in_pandas=PLAIN,
                remark="in pandas NaN is null",
            ),
            Case(
                "an infinite rank",
                put(RUN, "rank", [1, 2, INF, 1, 2]),
                TRUTH,
                "run, column 'rank': a rank that is not an integer ≥ 1: ranks start at 1; add 1 "
                "if yours start at 0. Offending row: user=1, item=12, rank=inf",
            ),
            Case(
                "ranks as text",
                RUN.with_columns(pl.col("rank").cast(pl.String)),
                TRUTH,
                "run, column 'rank': String cannot be a rank: cast it to integers",
            ),
            Case("a null rank: not retrieved", put(RUN, "rank", [1, 2, None, 1, 2]), TRUTH, PLAIN),
            Case(
                "every rank is null",
                RUN.with_columns(rank=pl.lit(None, pl.Int64)),
                TRUTH,
                "run, column 'rank': it is null in every row",
            ),
            Case(
                "two hits at the same rank",
                put(RUN, "rank", [1, 2, 2, 1, 2]),
                put(TRUTH, "item", [11, 12, 10, 10]),
                "run, column 'rank': two items of one user have the same rank: name a column of "
                "models in model=, of folds or days in by=; otherwise make ranks without ties, as "
                "rank('ordinal') does. Offending row: user=1, item=11, rank=2",
            ),
            Case(
                "a hit and a miss at the same rank, and a metric that reads judgments",
                put(RUN, "rank", [2, 2, 1, 1, 2]),
                TRUTH,
                "run, column 'rank': two items of one user have the same rank: name a column of "
                "models in model=, of folds or days in by=; otherwise make ranks without ties, as "
                "rank('ordinal') does. Offending row: user=1, item=10, rank=2",
                ("bpref",),
            ),
            Case(
                "the same, and `lrap`, for which the items of a list are its labels",
                put(RUN, "rank", [2, 2, 1, 1, 2]),
                TRUTH,
                "run, column 'rank': two items of one user have the same rank: name a column of "
                "models in model=, of folds or days in by=; otherwise make ranks without ties, as "
                "rank('ordinal') does. Offending row: user=1, item=10, rank=2",
                ("lrap",),
            ),
            Case(
                "two misses at the same rank (`check` reports them)",
                put(RUN, "rank", [1, 2, 1, 1, 2]),
                TRUTH,
                PLAIN,
            ),
            Case("ranks with gaps", put(RUN, "rank", [1, 2, 7, 1, 9]), TRUTH, PLAIN),
            Case(
                "ranks above 2^31, and cut-offs of 10^12",
                put(RUN, "rank", [1, 2**31 + 1, 2**40, 1, 2]),
                TRUTH,
                [1 / 3e12 * 2, 1 / 2, (1 / (2**31 + 1) / 2 + 1) / 3],
                ("precision@1000000000000", "recall@1000000000000", "ap"),
            ),
            Case(
                "a duplicate item in a list, a hit",
                put(RUN, "item", [10, 11, 11, 10, 13]),
                TRUTH,
                f"{AGAIN}Offending row: user=1, item=11, rank=2",
            ),
            Case(
                "a duplicate item in a list, a miss (`check` reports it)",
                put(RUN, "item", [9, 11, 9, 10, 13]),
                TRUTH,
                PLAIN,
            ),
            Case(
                "a duplicate item in a list with scores, a miss",
                put(SCORED, "item", [9, 11, 9, 10, 13]),
                TRUTH,
                f"{AGAIN}Offending row: user=1, item=9, score=0.9",
            ),
            Case(
                "the same, and duplicates='first': the best place, and the others close",
                put(SCORED, "item", [10, 10, 11, 10, 13]),
                TRUTH,
                PLAIN,
                options={"duplicates": "first"},
            ),
            Case(
                "the same, and duplicates='occupy': the others stay empty",
                put(RUN, "item", [10, 10, 11, 10, 13]),
                TRUTH,
                [1 / 6, 1 / 3, (1 / 6 + 1) / 3, 1 / 3, 4 / 9],
                options={"duplicates": "occupy"},
            ),
        ],
        "Scores": [
            Case("scores instead of ranks", SCORED, TRUTH, PLAIN),
            Case(
                "scores shifted below 0, same order",
                SCORED.with_columns(pl.col("score") - 1),
                TRUTH,
                PLAIN,
            ),
            Case(
                "all scores equal: by item id, descending",
                SCORED.with_columns(score=0.5),
                TRUTH,
                [1 / 3, 1 / 2, (1 / 4 + 1 / 2) / 3, (NDCG + 1 / LOG3) / 3, 1 / 3],
            ),
            Case("scores as integers", put(SCORED, "score", [9, 8, 7, 9, 8]), TRUTH, PLAIN),
            Case(
                "a null score, and a NaN: not retrieved",
                put(SCORED, "score", [0.9, 0.8, None, 0.9, NAN]),
                TRUTH,
                PLAIN,
            ),
            Case(
                "every score is NaN",
                SCORED.with_columns(score=NAN),
                TRUTH,
                "run, column 'score': it is null in every row",
            ),
            Case(
                "an infinite score",
                put(SCORED, "score", [INF, 0.8, 0.7, 0.9, 0.8]),
                TRUTH,
                "run, column 'score': infinite score: use a finite one, or null if the item was "
                "not retrieved. Offending row: user=1, item=10, score=inf",
            ),
            Case(
                "scores as text",
                SCORED.with_columns(pl.col("score").cast(pl.String)),
                TRUTH,
                "run, column 'score': String cannot be a score: cast it to numbers",
            ),
            Case(
                "neither rank nor score",
                RUN.drop("rank"),
                TRUTH,
                "run: no column 'rank' for rank; it has 'user', 'item'; name it with rank=, or "
                "name a score with score=, or call with_rank",
            ),
            Case(
                "score= beside a rank",
                RUN.with_columns(points=1.0),
                TRUTH,
                "run, column 'rank': a rank in addition to score=: drop the rank, or call "
                "with_rank to make it from the score",
                options={"score": "points"},
            ),
        ],
        "Relevance": [
            Case("no relevance: 1 in every row", RUN, TRUTH.drop("relevance"), with_binary()),
            Case(
                "ratings but no relevance",
                RUN,
                TRUTH.rename({"relevance": "rating"}),
                "truth, column 'rating': ratings but no relevance, so every rated item would be "
                "relevant, even a disliked one: pass relevance='rating' and relevant_at= the "
                "lowest rating of a liked item; if every rated item is liked, drop the column: "
                "truth.drop('rating')",
            ),
            Case(
                "grades under a name that is not recognized",
                RUN,
                TRUTH.rename({"relevance": "judgement"}),
                "truth, column 'judgement': grades but no relevance, so every judged item would be "
                "relevant, even one of grade 0: pass relevance='judgement'; if every judged item is "
                "relevant, drop the column: truth.drop('judgement')",
            ),
            Case(
                "a truth of clicks and views whose grades have any other name",
                RUN,
                TRUTH.select("user", "item", is_click=pl.Series([0, 1, 1, 1])),
                "truth, column 'is_click': 0 and 1 but no relevance, so every judged item would be "
                "relevant: pass relevance='is_click'; if every judged item is relevant, drop the "
                "column: truth.drop('is_click'), or keep it beside a relevance of 1: "
                "truth.with_columns(relevance=1). Offending row: user=1, item=11, is_click=0",
            ),
            Case(
                "the same as booleans, with a null",
                RUN,
                TRUTH.select("user", "item", bought=pl.Series([True, False, True, None])),
                "truth, column 'bought': False and True but no relevance, so every judged item "
                "would be relevant: pass relevance='bought'; if every judged item is relevant, "
                "drop the column: truth.drop('bought'), or keep it beside a relevance of 1: "
                "truth.with_columns(relevance=1). Offending row: user=1, item=14, bought=False",
            ),
            Case(
                "a truth without relevance and with a column of 1, 2 and 3, or of 1 alone",
                RUN,
                TRUTH.select("user", "item", n=pl.Series([1, 2, 3, 1]), seen=1),
                with_binary(),
            ),
            Case(
                "relevance as booleans",
                RUN,
                cast("relevance", pl.Boolean)[1]
                if False
                else TRUTH.with_columns(pl.col("relevance") > 0),
                with_binary(),
            ),
            Case(
                "relevance as decimals",
                RUN,
                TRUTH.with_columns(pl.col("relevance").cast(pl.Decimal(10, 2))),
                PLAIN,
            ),
            Case(
                "relevance as text",
                RUN,
                TRUTH.with_columns(pl.col("relevance").cast(pl.String)),
                "truth, column 'relevance': String cannot be a relevance: cast it to numbers or "
                "booleans",
            ),
            Case(
                "a null relevance in the truth",
                RUN,
                put(TRUTH, "relevance", [1, None, 1, 1]),
                "truth, column 'relevance': null relevance: use a finite grade, or drop the row "
                "if the item is unjudged. Offending row: user=1, item=14, relevance=null",
            ),
            Case(
                "relevance is null in every row",
                RUN,
                TRUTH.with_columns(relevance=pl.lit(None)),
                "truth, column 'relevance': null relevance: use a finite grade, or drop the row "
                "if the item is unjudged. Offending row: user=1, item=11, relevance=null",
            ),
            Case(
                "a relevance of NaN",
                RUN,
                put(TRUTH, "relevance", [1, NAN, 1, 1]),
                "truth, column 'relevance': NaN or infinite relevance: use a finite grade, or "
                "drop the row if the item is unjudged. Offending row: user=1, item=14, "
                "relevance=nan",
                in_pandas=(
                    "truth, column 'relevance': null relevance: use a finite grade, or drop the "
                    "row if the item is unjudged. Offending row: user=1, item=14, relevance=null"
                ),
            ),
            Case(
                "an infinite relevance",
                RUN,
                put(TRUTH, "relevance", [1, INF, 1, 1]),
                "truth, column 'relevance': NaN or infinite relevance: use a finite grade, or "
                "drop the row if the item is unjudged. Offending row: user=1, item=14, "
                "relevance=inf",
            ),
            Case(
                "grades below 0: pooled, not judged; not relevant",
                RUN,
                put(TRUTH, "relevance", [1, -2, 1, -1]),
                [1 / 2, 1, (1 / 2 + 1) / 2, (1 / LOG3 + 1) / 2, 3 / 4],
                remark="user 3 has no relevant item, so it is left out of the mean",
            ),
            Case(
                "a grade of 10^15, linear gain",
                RUN,
                put(TRUTH, "relevance", [1, 10**15, 1, 1]),
                [*PLAIN[:3], ((1 / LOG3) / (1e15 + 1 / LOG3) + 1) / 3, PLAIN[4]],
            ),
            Case(
                "a grade of 2000, exponential gain: more than a float holds",
                RUN,
                put(TRUTH, "relevance", [1, 2000, 1, 1]),
                "metric 'ndcg(gain=exponential)@2': it is not a finite number for a user. The "
                "grades present are 1, 2000: give each a finite gain, for example gain={1: 1, 2: "
                "3}. With max_grade=, use one that no grade exceeds. With collection=, count at "
                "least the items of every user. An expression of your own must be null where it "
                "is undefined. Offending row: user=1, ndcg(gain=exponential)@2=nan",
                ("ndcg(gain=exponential)@2",),
            ),
            Case(
                "a duplicate judgment of a relevant item",
                RUN,
                TRUTH[[0, 0, 1, 2, 3]],
                "truth, column 'item': duplicate (user, item): if items have several events, such "
                "as click and buy, name the column in by=, or keep the highest grade: "
                "truth.group_by(['user', 'item']).agg(pl.max('relevance')). "
                "Offending row: user=1, item=11, relevance=1",
            ),
            Case(
                "a duplicate judgment of grade 0 (`check` reports it)",
                RUN,
                pl.concat(
                    [
                        TRUTH,
                        pl.DataFrame([(1, 12, 0), (1, 12, 0)], schema=TRUTH.schema, orient="row"),
                    ]
                ),
                PLAIN,
            ),
            Case("one judged item per user, ranked first", RUN[3:], TRUTH[2:3], [0.5, 1, 1, 1, 1]),
        ],
        "Columns and options": [
            Case(
                "a run with a column relevance",
                RUN.with_columns(relevance=1),
                TRUTH,
                "run, column 'relevance': a relevance in a run: drop the column, or pass a judged "
                "table without truth=",
            ),
            Case(
                "user= and item= are one column",
                RUN,
                TRUTH,
                "run, column 'item': it has two roles: name a different column for one of them",
                options={"user": "item"},
            ),
            Case(
                "a column with the name of one of the vocabulary",
                RUN.with_columns(hits=1),
                TRUTH,
                "run, column 'hits': this name is reserved for the vocabulary of the metrics: rename "
                "or drop the column",
            ),
            Case(
                "a column that both tables have, and that no metric reads",
                RUN.with_columns(day=1),
                TRUTH.with_columns(day=2),
                PLAIN,
            ),
            Case(
                "a column that both tables have, and that your own metric reads",
                RUN.with_columns(day=1),
                TRUTH.with_columns(day=2),
                "column 'day': both the run and the truth have it; name it in by=, or rename or drop "
                "one",
                (pl.col("day").max().alias("last_day"),),
            ),
            Case(
                "a column whose name begins like an internal column",
                RUN.with_columns(__rankframe_row=1),
                TRUTH,
                "run, column '__rankframe_row': names that begin with '__rankframe_' are reserved "
                "for internal columns: rename or drop the column",
            ),
            Case(
                "no column for two roles",
                RUN.rename({"user": "uid", "item": "sku"}),
                TRUTH.rename({"user": "uid", "item": "sku"}),
                "run: no column 'user' for user, 'item' for item; it has 'uid', 'sku', "
                "'rank'; name them with user=, item=",
            ),
            Case(
                "common names, which are found",
                RUN.rename({"user": "query_id", "item": "doc_id", "rank": "position"}),
                TRUTH.rename({"user": "query_id", "item": "doc_id", "relevance": "grade"}),
                PLAIN,
            ),
            Case(
                "two common names for one role",
                RUN.rename({"user": "user_id"}).with_columns(qid=1),
                TRUTH.rename({"user": "user_id"}),
                "run: no column 'user' for user; it has 'user_id', 'item', 'rank', 'qid'; name it "
                "with user=; perhaps 'user_id' or 'qid' is meant",
            ),
            Case(
                "a role has a different name in each table",
                RUN.rename({"user": "user_id"}),
                TRUTH,
                "run: no column 'user' for user; it has 'user_id', 'item', 'rank'; the truth has "
                "'user': pass user='user_id', truth_user='user'",
            ),
            Case(
                "by= has a null",
                RUN.with_columns(model=pl.Series(["a", "a", "a", None, None])),
                TRUTH,
                "run, column 'model': null group: drop the row, or fill in the group: "
                "run.with_columns(pl.col('model').fill_null('unknown')). Offending row: model=null, user=2, item=10, rank=1",
                options={"by": "model"},
            ),
            Case(
                "by= names a segment of the history, and there is no history",
                RUN,
                TRUTH,
                "by='activity' means users by their number of items in the history: pass history=, "
                "with users and items",
                options={"by": "activity"},
            ),
            Case(
                "by= names a segment of items, and unjudged= drops those of other bins",
                RUN,
                TRUTH,
                "unjudged='drop': in each bin, items of all other bins would be unjudged with "
                "by='popularity': leave one of them out",
                options={"by": "popularity", "unjudged": "drop"},
            ),
            Case(
                "by= names a segment that is a column, too",
                RUN,
                TRUTH.with_columns(relevant_items=2),
                "truth, column 'relevant_items': by='relevant_items' also means users by their "
                "number of relevant items: rename the column",
                options={"by": "relevant_items"},
            ),
            Case(
                "by= splits the users, and the truth lacks the column",
                RUN.with_columns(model=pl.Series(["a", "a", "a", "b", "b"])),
                TRUTH,
                "run, column 'model': no user is in two of its groups, and the truth has no such "
                "column, so each user would count as a miss in every other group: join the column "
                "to the truth, or pass users='both'. Offending row: model='a', user=1, item=10, rank=1",
                options={"by": "model"},
            ),
            Case(
                "by= names no column",
                RUN,
                TRUTH,
                "run: no column 'model' for by; it has 'user', 'item', 'rank'; join it to a "
                "table, or leave out by=",
                options={"by": "model"},
            ),
            Case(
                "by= is the day, and lists and judgments are of different days",
                RUN.with_columns(day=pl.lit(2, pl.Int64)),
                TRUTH.with_columns(day=pl.lit(1, pl.Int64)),
                "run, column 'day': no (day, user) of the run is in the truth, which has day=1, "
                "user=1: make the values of 'day' the same in both tables, such as days of one "
                "time zone. Offending row: day=2, user=1, item=10, rank=1",
                options={"by": "day"},
                remark="if only some days have no common user, `evaluate` keeps their rows, and "
                "`rf.check` raises `run, column 'day': a group in which no user is in the truth: "
                "add its rows to the truth, or leave the group out of both tables`",
            ),
            Case(
                "by= is the fold, users return, and the truth lacks the column",
                pl.concat([RUN.with_columns(fold=1), RUN.with_columns(fold=2)]),
                TRUTH,
                "run, column 'fold': users are in several folds, and the truth has no such column, "
                "so each fold would be judged by the whole truth, and what a user likes in other "
                "folds would count as missed: add the column to the truth, or rename it if one "
                "truth judges all folds. Offending row: fold=1, user=1, item=10, rank=1",
                options={"by": "fold"},
            ),
            Case(
                "weights= of users, 3, 3, 1 and 2",
                RUN,
                put(TRUTH, "w", [3, 3, 1, 2]),
                [2 / 6, 2.5 / 6, (3 / 4 + 1) / 6, (3 * NDCG + 1) / 6, 2.5 / 6],
                options={"weights": "w"},
            ),
            Case(
                "a negative weight",
                RUN,
                put(TRUTH, "w", [3, 3, -1, 2]),
                "truth, column 'w': negative weight: a weight is a finite number ≥ 0. Offending "
                "row: user=2, w=-1.0",
                options={"weights": "w"},
            ),
            Case(
                "a weight is missing",
                RUN,
                put(TRUTH, "w", [3, 3, None, 2]),
                "truth, column 'w': null weight: a weight is a finite number ≥ 0. Offending row: "
                "user=2, w=null",
                options={"weights": "w"},
            ),
            Case(
                "a user has two weights",
                RUN,
                put(TRUTH, "w", [3, 4, 1, 2]),
                "truth, column 'w': several weights of one user: give each user the same weight in "
                "all rows. Offending row: user=1, w=4.0",
                options={"weights": "w"},
            ),
            Case(
                "all weights are 0",
                RUN,
                put(TRUTH, "w", [0, 0, 0, 0]),
                "column 'w': every user with a value of 'precision@2' has the weight 0, so there is "
                "no weighted mean: give at least one user a weight > 0",
                options={"weights": "w"},
            ),
            Case(
                "weights= from a run that lacks a user",
                RUN.with_columns(w=1.0),
                TRUTH,
                "run, column 'w': a user in the mean has no weight: join the weights to the truth, "
                "or leave out users missing from the run: users='both'. Offending row: user=3",
                options={"weights": "w"},
            ),
            Case(
                "average='pooled': 2 hits of 3 · 2 places, of 4 relevant items",
                RUN,
                TRUTH,
                [2 / 6, 2 / 4],
                ("precision@2", "recall@2"),
                options={"average": "pooled"},
            ),
            Case(
                "average='market', of two users and of one",
                RUN,
                put(TRUTH, "market", ["x", "x", "x", "y"]),
                [(1 / 2 + 0) / 2, (3 / 4 + 0) / 2],
                ("precision@2", "recall@2"),
                options={"average": "market"},
            ),
            Case(
                "average='pooled' of a metric that is no ratio of sums",
                RUN,
                TRUTH,
                "metric 'rr' is not declared as a ratio of two sums, which average='pooled' "
                "needs: precision, recall, f1, e(beta=1), r_precision are; use average='users' for "
                "the others, in another call",
                ("recall@2", "rr"),
                options={"average": "pooled"},
            ),
            Case(
                "average='pooled' beside a column pooled",
                RUN.with_columns(pooled=1),
                TRUTH,
                "run: average='pooled' could mean the column 'pooled': rename it",
                ("recall@2",),
                options={"average": "pooled"},
            ),
            Case(
                "average='micro'",
                RUN,
                TRUTH,
                "average='micro': it is called average='pooled' here; a column, such as "
                "average='dataset', gives the mean of the means of its groups",
                ("recall@2",),
                options={"average": "micro"},
            ),
            Case(
                "average= of a column that no table has",
                RUN,
                TRUTH,
                "average='market': no column of this name; the columns are "
                "'user', 'item', 'rank', 'relevance'",
                ("recall@2",),
                options={"average": "market"},
            ),
            *[
                Case(
                    f"k = {k}",
                    RUN,
                    TRUTH,
                    why,
                    (f"precision@{k}",),
                )
                for k, why in [
                    (0, "precision_at: k must be an integer ≥ 1, not 0"),
                    (-1, "precision_at: k must be an integer ≥ 1, not -1"),
                    (2.5, "metric 'precision@2.5': k cannot be read from '2.5'"),
                ]
            ],
            Case("k = 10^12", RUN, TRUTH, [1 / 2], (f"recall@{10**12}",)),
            Case(
                "a duplicate metric",
                RUN,
                TRUTH,
                "two output columns are called 'ap': rename one with .alias(…)",
                ("ap", "ap"),
            ),
            Case("no metric", RUN, TRUTH, 'pass at least one metric, for example "ndcg@10"', ()),
            Case(
                "an unknown metric",
                RUN,
                TRUTH,
                "unknown metric 'ndgc@10'; the nearest are 'ndcg@10' or 'dcg@10' or 'unjudged@10'",
                ("ndgc@10",),
            ),
        ],
    }


def one_type(column: str, of_run: str, of_truth: str) -> str:
    """Write the error about ids of two types, one of them with a fraction."""
    return (
        f"column '{column}': it is {of_run} in the run and {of_truth} in the truth: cast one; ids "
        "must have the same type in both tables, or any two integer types (pandas turns integers "
        "into floats where one is missing)"
    )


def with_user_9() -> pl.DataFrame:
    """Add a user to the run."""
    return pl.concat([RUN, pl.DataFrame({"user": [9], "item": [10], "rank": [1]})])


def with_binary() -> list[float]:
    """Give the means where every grade is 1."""
    return [*PLAIN[:3], ((1 / LOG3) / (1 + 1 / LOG3) + 1) / 3, PLAIN[4]]


def categories(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Make the items categories of a set of their own."""
    own = pl.Categorical(pl.Categories(name, namespace="rankframe tests"))
    return frame.with_columns(pl.col("item").cast(pl.String).cast(own))


# ------------------------------------------------------------------ pandas has more to offer


class PandasCase(NamedTuple):
    """A run in pandas, with a truth or TRUTH; what ``evaluate`` gives, or how the error begins."""

    name: str
    run: Any
    gives: Expected
    truth: Any = None


def pandas_cases() -> list[PandasCase]:
    """Give what only pandas has."""
    import pandas as pd

    run, truth = RUN.to_pandas(), TRUTH.to_pandas()

    def uuids(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(item=[uuid.UUID(int=n) for n in frame["item"]])

    arrow = run.convert_dtypes(dtype_backend="pyarrow")
    sparse = run.assign(rank=pd.arrays.SparseArray(run["rank"], fill_value=0))
    two_names = run.set_axis(["user", "item", "item"], axis="columns")
    wide = run.set_axis(
        pd.MultiIndex.from_product([["run"], ["user", "item", "rank"]]), axis="columns"
    )
    mixed = run.assign(item=pd.Series([10, "11", 12, 10, 13], dtype=object))
    repeated = run.set_axis([0, 0, 0, 1, 1], axis="index")
    return [
        PandasCase("a MultiIndex of user and item", run.set_index(["user", "item"]), PLAIN),
        PandasCase("duplicate row labels", repeated, PLAIN),
        PandasCase("Arrow types", arrow, PLAIN),
        PandasCase("nullable types", run.convert_dtypes(), PLAIN),
        PandasCase("a sparse column", sparse, PLAIN),
        PandasCase("integers as objects", run.astype(object), PLAIN),
        PandasCase(
            "two columns with the same name",
            two_names,
            "run, column 'item': two columns have this name",
        ),
        PandasCase(
            "a MultiIndex of columns",
            wide,
            "run: no column 'user' for user, 'item' for item, 'rank' for rank; it has \"('run', "
            "'user')\", \"('run', 'item')\", \"('run', 'rank')\"; name it with rank=, or name a "
            "score with score=, or call with_rank; the truth has 'user' and 'item': pass "
            "user= (a column of the run), truth_user='user', item= (a column of the run), "
            "truth_item='item'",
        ),
        PandasCase(
            "items of mixed types",
            mixed,
            "run, column 'item': its values have no common polars type",
        ),
        PandasCase("items are UUID objects", uuids(run), PLAIN, uuids(truth)),
    ]


# ------------------------------------------------------------------ parts, meters, logs and trackers


class Refusal(NamedTuple):
    """A call that is refused, and the text of the error."""

    name: str
    call: Callable[[], object]
    says: str


@functools.cache
def refusals(given: Callable[[pl.DataFrame], Any] = pl.DataFrame.clone) -> list[Refusal]:
    """Give what parts, meters and trackers refuse, with tables as ``given`` returns them."""
    run, truth = (table.with_columns(day=1) for table in (RUN, TRUTH))

    def sums(part: Any = None, users: tuple[int, ...] = (1, 2)) -> pl.DataFrame:
        mine = pl.col("user").is_in(users)
        tables = given(run.filter(mine)), given(truth.filter(mine))
        small: Any = rf.parts.sums(tables[0], "rr", truth=tables[1], by="day", part=part)
        return pl.DataFrame(small) if given is not pl.DataFrame.lazy else small.collect()

    def combine(*parts: pl.DataFrame, **options: Any) -> Callable[[], object]:
        return lambda: rf.parts.combine([given(part) for part in parts], **options)

    def updated(by: str | None) -> object:
        meter = rf.Meter[Any]("rr", by=by or ())
        for table in (run, run.with_columns(day=2)) if by is None else (run, run):
            meter.update(given(table.drop("day" if by is None else [])), given(truth))
        return meter

    def later_model() -> object:
        meter = rf.Meter[Any]("rr")
        for model, user in (("a", 1), ("b", 2)):
            mine = run.drop("day").filter(user=user).with_columns(model=pl.lit(model))
            meter.update(given(mine), given(truth.filter(user=user).drop("day")))
        return meter

    elsewhere, judged = TRUTH.with_columns(pl.col("user") + 100), RUN.with_columns(relevance=1)
    chosen = TRUTH.with_columns(drawn=pl.lit("chosen"))
    part = "2026-11-01"
    one, other = sums(part), sums(part, (2, 3))
    tree: Any = rf.parts.merge([one, sums("2026-11-02", (3,))])
    facts = rf.parts.facts(given(RUN), truth=given(TRUTH))
    means = pl.DataFrame({"users": [1], "rr": [None]})
    mixed = pl.DataFrame({"day": [1, 2], "user": 1, "rr": 1.0, "conventions": ["a", "b"]})
    log = mixed.select("day", "conventions", metric=pl.lit("rr"), mean="rr", users="user")
    unlike = "column 'conventions': the rows differ in how they were made: conventions='a', "
    made_so = (
        ": keep rows of one value, compute the others again, or name the column in by=; the files "
        "of rf.provenance, such as those of two days, show what changed"
    )
    twice = "comes twice: leave one out, or keep the later one with repeated='last'"
    return [
        Refusal(
            "a key of parts.sums comes twice", combine(one, other), f"parts: part '{part}' {twice}"
        ),
        Refusal(
            "one part of two without a key",
            combine(one, sums()),
            "parts: 1 of 2 have no key, so a part that comes twice would not be noticed: give each its own, "
            "such as its day, in rf.parts.sums(…, part='2026-11-01')",
        ),
        Refusal(
            "a key that comes twice, repeated='last', after merge",
            combine(tree, one, repeated="last"),
            f"parts: part '{part}' comes again, but its first sums are merged with those of part "
            "'2026-11-02': keep the last one before you merge",
        ),
        Refusal(
            "a key that comes twice, repeated='last', rows of both frames mixed",
            combine(pl.concat([one, one]).sort("kind"), repeated="last"),
            "parts: the rows of several frames are mixed, so none of them is the last: pass a list "
            "of the frames, or concatenate them in order",
        ),
        Refusal(
            "sums without the row of their part",
            combine(one.filter(pl.col("kind") != "part")),
            "parts: 1 row 'call' and 0 rows 'part', but each part has one of each, so rows are "
            "missing: recreate them with rf.parts.sums",
        ),
        Refusal(
            "repeated='first'",
            combine(one, repeated="first"),
            "repeated must be one of 'error', 'last', not 'first'",
        ),
        Refusal(
            "facts, repeated='last'",
            lambda: rf.parts.merge([facts, facts], repeated="last"),  # type: ignore[call-overload]
            "repeated='last': facts have no key: leave out those that come twice",
        ),
        Refusal("part=''", lambda: sums(""), "part must be text, such as '2026-11-01', not ''"),
        Refusal(
            "values where sums are merged",
            lambda: rf.parts.merge([given(means)]),
            "part 0: no column 'group': parts are what rf.parts.sums returned; values are put "
            "together with pl.concat",
        ),
        Refusal(
            "a user in two batches of a Meter",
            lambda: updated(None),
            "column 'user': a user is in two batches: put all rows of a user into one, or name in "
            "by= the column of both tables that tells their lists apart, such as day. Offending row: user=1",
        ),
        Refusal(
            "err of a Meter",
            lambda: rf.Meter("err"),
            "metric 'err': it reads the highest grade of the whole truth, which may be in another "
            "part: name it, such as 'err(max_grade=4)', or pass facts=rf.parts.facts(run, truth=truth)",
        ),
        Refusal(
            "a model in the second batch of a Meter",
            later_model,
            "run: model='b' is in this batch and not in the first, so its misses there are not "
            "counted: give the first batch all groups, or pass them to the Meter in "
            "facts=rf.parts.facts(run, truth=truth, by=…)",
        ),
        Refusal(
            "a user in two batches, by='day'",
            lambda: updated("day"),
            "column 'user': a user is in two batches: put all rows of a user into one. Offending "
            "row: day=1, user=1",
        ),
        Refusal(
            "values of different conventions",
            lambda: rf.summarize(given(mixed), "rr", by="day"),
            f"table of values, {unlike}day=1, user=1, but conventions='b', day=2, user=1{made_so}",
        ),
        Refusal(
            "a trend of different conventions",
            lambda: rf.plot.trend(given(log), "rr", by=()),
            f"log, {unlike}day=1, but conventions='b', day=2{made_so}",
        ),
        Refusal(
            "a trend with two rows of a day",
            lambda: rf.plot.trend(given(log.with_columns(day=1).drop("conventions")), "rr", by=()),
            "log: two rows of 'rr' at day=1: keep one, or name more columns in by=",
        ),
        Refusal(
            "a trend of means that are text",
            lambda: rf.plot.trend(given(log.cast({"mean": pl.String})), "rr", by=()),
            "log, column 'mean': its type is String: cast it to a number",
        ),
        Refusal(
            "gate(confidence=0.05)",
            lambda: rf.gate(
                given(mixed.drop("conventions")), "rr", at_least=0.5, interval=True, confidence=0.05
            ),
            "confidence=0.05: it is the probability that an interval covers the true value, such "
            "as 0.95",
        ),
        Refusal(
            "gate(primary=, margin=)",
            lambda: rf.gate(
                {"a": given(RUN), "b": given(RUN)}, truth=TRUTH, primary="rr", margin=0.1
            ),
            "margin=0.1 has no effect with primary=, which must be better; guardrails= has the "
            "margins: leave out margin=",
        ),
        Refusal(
            "power with both a difference and a margin",
            lambda: rf.stats.power(
                {"a": given(RUN), "b": given(RUN)},
                "rr",
                truth=TRUTH,
                baseline="a",
                difference=0.1,
                margin=0.1,
            ),
            "margin= is not supported with difference=: leave out one of them",
        ),
        Refusal(
            "differences of two metrics",
            lambda: rf.stats.differences({"a": given(RUN), "b": given(RUN)}, "rr@1,2", truth=TRUTH),
            "differences takes one metric, not 'rr@1', 'rr@2'",
        ),
        Refusal(
            "differences(n=0)",
            lambda: rf.stats.differences({"a": given(RUN)}, "rr", truth=TRUTH, n=0),
            "n must be an integer ≥ 1, not 0",
        ),
        Refusal(
            "differences with a text of queries called 'share'",
            lambda: rf.stats.differences(
                {"a": given(RUN), "b": given(RUN)},
                "rr",
                truth=given(TRUTH),
                queries=given(pl.DataFrame({"user": [1], "share": "shoes"})),
            ),
            "queries=: differences adds a column 'share': rename yours",
        ),
        Refusal(
            "compare_segments by a column 'shrunken'",
            lambda: rf.stats.compare_segments(
                {"a": given(RUN), "b": given(RUN)},
                "rr",
                truth=given(TRUTH.with_columns(shrunken="user")),
                by="shrunken",
            ),
            "column 'shrunken': compare_segments adds a column with this name: rename yours",
        ),
        Refusal(
            "a number in percent, explained",
            lambda: rf.explain(38.12, "ndcg@2", given(RUN), truth=TRUTH),
            "metric 'ndcg@2': 38.12 is outside of its range, 0 to 1: pass 0.3812, if it is in percent",
        ),
        Refusal(
            "a number without its label, explained",
            lambda: rf.explain(0.3812, given(RUN), truth=TRUTH),
            "explain takes a number, its label and the run, as in explain(0.3812, 'ndcg@10', run, "
            "truth=truth), a dict of numbers, or a frame of values per user, not 0.3812 alone",
        ),
        Refusal(
            "a number of one of two systems, explained",
            lambda: rf.explain(0.3812, "ndcg@2", {"a": given(RUN), "b": given(RUN)}, truth=TRUTH),
            "run, column 'model': 2 systems, and explain takes one: pass one of the dict",
        ),
        Refusal(
            "printed values of a user who comes twice, explained",
            lambda: rf.explain(
                given(pl.DataFrame({"user": [1, 1], "rr": 0.5})), given(RUN), truth=TRUTH
            ),
            "frame of values, column 'user': a null, or a user who comes twice: drop the row",
        ),
        Refusal(
            "conventions of a metric with two cut-offs",
            lambda: rf.stats.conventions(given(RUN), "rr@1,2", truth=TRUTH),
            "metric 'rr@1,2' has several cut-offs: name one",
        ),
        Refusal(
            "conventions of systems in a column 'value'",
            lambda: rf.stats.conventions(
                {"a": given(RUN), "b": given(RUN)}, "rr", truth=TRUTH, model="value"
            ),
            "column 'value': conventions adds a column with this name: rename yours",
        ),
        Refusal(
            "judges, one of whom judged an item twice",
            lambda: rf.stats.judges({"human": TRUTH, "llm": pl.concat([TRUTH, TRUTH[:1]])}),
            "truth, column 'item': duplicate (judge, user, item): if items have several events, such as click and buy, "
            "name the column in by=, or keep the highest grade: truth.group_by(['judge', 'user', 'item'])"
            ".agg(pl.max('relevance')). Offending row: judge='llm', user=1, item=11, relevance=1",
        ),
        Refusal(
            "a judge who is not in the judgments",
            lambda: rf.stats.judges({"human": TRUTH, "llm": TRUTH}, baseline="me"),
            "baseline must be one of 'human', 'llm', not 'me'",
        ),
        Refusal(
            "judges without grades",
            lambda: rf.stats.judges(
                {"human": TRUTH.drop("relevance"), "llm": TRUTH.drop("relevance")}
            ),
            "judgments: no column 'relevance': agreement is of one grade per judge, user and item",
        ),
        Refusal(
            "a trend of a metric that is not in the log",
            lambda: rf.plot.trend(given(log), "map", by=()),
            "log: no mean of 'map'; its metrics are 'rr'",
        ),
        Refusal(
            "human= without truth=",
            lambda: rf.summarize(given(judged), "rr", human=given(TRUTH)),
            "human= corrects the means of a judge: pass its labels in truth=",
        ),
        Refusal(
            "human= has a user that truth= has not",
            lambda: rf.summarize(given(RUN), "rr", truth=given(TRUTH), human=given(elsewhere)),
            "human labels: a user without a row in the truth: labels are of a random sample of the "
            "users of the truth: leave others out: human.join(truth, on='user', how='semi'). "
            "Offending row: user=101",
        ),
        Refusal(
            "human= has rows that were chosen",
            lambda: rf.summarize(given(RUN), "rr", truth=given(TRUTH), human=given(chosen)),
            "human labels, column 'drawn': the users must be a random sample, and rows were chosen: "
            'keep the others: human.filter(pl.col("drawn") == "random"). Offending row: user=1, '
            "item=11, relevance=1, drawn='chosen'",
        ),
        Refusal(
            "over= names no column",
            lambda: rf.summarize(given(RUN), "rr", truth=given(TRUTH), over="seed"),
            "over='seed': no column of this name; the columns are 'user', 'item', 'rank'",
        ),
        Refusal(
            "over= and by= name one column",
            lambda: rf.summarize(given(run), "rr", truth=given(TRUTH), by="day", over="day"),
            "over='day': this column names systems or segments: name another",
        ),
        Refusal(
            "over= and a metric of all lists",
            lambda: rf.summarize(given(run), "gini(of=shown)@2", truth=given(TRUTH), over="day"),
            "over='day': metric 'gini(of=shown)@2' is not a mean over users: evaluate it for each run, "
            "by='day'",
        ),
        Refusal(
            "as_dict(undefined=0.0)",
            lambda: rf.as_dict(given(means), undefined=0.0),  # type: ignore[arg-type]
            "undefined must be one of 'nan', 'omit', not 0.0",
        ),
    ]


def doors() -> list[Refusal]:
    """Give what is refused before any row is read."""

    class Lazy:
        __module__ = "narwhals.dataframe"
        collect = None

    not_a_frame = (
        "a polars DataFrame or LazyFrame, a pandas DataFrame, or a table that exports Arrow"
    )
    rows: Any = RUN.to_dicts()
    columns: Any = RUN.to_dict(as_series=False)
    path: Any = "run.parquet"
    judged = pl.DataFrame({"qid": [1, 1], "score": [0.5, 0.4], "label": [0, 1]})
    texts = RUN.rename({"user": "query"}).with_columns(question=pl.lit("?"))
    sets: Any = {"q": {"a", "b"}}
    answers = pl.DataFrame({"q": [1], "found": [[]], "wanted": [["a"]]}).cast(
        {"found": pl.List(pl.String)}
    )
    pairs = pl.Series([[{"a": 1, "b": 2}]])
    unrated = {"requests": [{"id": "q", "ratings": [{"_id": "d", "rating": None}]}]}
    return [
        Refusal(
            "with_rank(ties='pessimistic') of a run without truth=",
            lambda: rf.with_rank(SCORED, ties="pessimistic"),
            "run: no grades, but ties='pessimistic' orders equal scores by them: pass truth=, or name its column of grades "
            "in relevance=",
        ),
        Refusal(
            "with_rank(truth=…) without ties='pessimistic' or 'optimistic'",
            lambda: rf.with_rank(SCORED, truth=TRUTH),
            "with_rank(ties='item') reads no grade: leave out truth=, or use 'pessimistic'",
        ),
        Refusal(
            "a lazy narwhals frame",
            lambda: rf.evaluate(Lazy(), "rr", truth=TRUTH),  # type: ignore[type-var]
            f"the run must be {not_a_frame}, not narwhals Lazy: call .collect()",
        ),
        Refusal(
            "a list of dicts",
            lambda: rf.evaluate(rows, "rr", truth=TRUTH),
            f"the run must be {not_a_frame}, not list: pl.DataFrame(…) makes one",
        ),
        Refusal(
            "a path",
            lambda: rf.evaluate(path, "rr", truth=TRUTH),
            f"the run must be {not_a_frame}, not str: read the file, as in pl.read_parquet(path)",
        ),
        Refusal(
            "a dict of columns",
            lambda: rf.evaluate(columns, "rr", truth=TRUTH),
            "a dict of columns, 'user', 'item', 'rank': pl.DataFrame(…) makes a frame of it; rf.from_lists reads {user: [items]}; a dict of runs is {name: run}",
        ),
        Refusal(
            "a dict of sets as a run",
            lambda: rf.evaluate(sets, "rr", truth=TRUTH),
            "run: the dict has sets, which have no order: rf.from_grades makes a truth of {user: {items}}",
        ),
        Refusal(
            "an empty list, from_lists without truth=",
            lambda: rf.from_lists(answers, user="q", item="found"),
            "frame of lists, column 'found': empty or null list, for which a long run has no row: drop it: lists"
            ".filter(pl.col('found').list.len() > 0). users='truth' and 'judged' still count its user as a miss, "
            "'run' and 'both' leave the user out. Offending row: q=1",
        ),
        Refusal(
            "from_lists, expected ids of another type",
            lambda: rf.from_lists(
                answers.with_columns(wanted=[1]), user="q", item="found", truth="wanted"
            ),
            "frame of lists, column 'wanted': its ids are Int64, and those of 'found' are String: cast one; ids must "
            "have the same type, or any two integer types",
        ),
        Refusal(
            "from_lists, expected is not a list",
            lambda: rf.from_lists(
                answers.with_columns(wanted=1), user="q", item="found", truth="wanted"
            ),
            "frame of lists, column 'wanted': Int32 is not a list of ids, or of structs of an id and a number: make one "
            "with pl.concat_list('wanted'), or from JSON with .str.json_decode",
        ),
        Refusal(
            "from_lists, expected are structs of two numbers without known names",
            lambda: rf.from_lists(
                answers.with_columns(wanted=pairs), user="q", item="found", truth="wanted"
            ),
            "frame of lists, column 'wanted': List(Struct({'a': Int64, 'b': Int64})) is not a list of ids, or of structs "
            "of an id and a number: rename the fields to 'id' and 'score' or 'grade', or keep the ids alone: "
            "pl.col('wanted').list.eval(pl.element().struct.field(…))",
        ),
        Refusal(
            "from_lists, a text of ids with commas",
            lambda: rf.from_lists(pl.DataFrame({"user": [1], "item": ["10,11"]})),
            "frame of lists, column 'item': a text of ids is split at white space, but this one has a comma, a semicolon or a bracket: "
            "make lists: lists.with_columns(pl.col('item').str.extract_all(r'[\\w.-]+')). Offending row: user=1",
        ),
        Refusal(
            "from_lists, two texts of one user",
            lambda: rf.from_lists(pl.DataFrame({"user": [1, 1], "item": ["a", "b"]})),
            "frame of lists, column 'user': two rows have the same 'user': add a column that tells "
            "them apart to by=, or number the rows: frame.with_row_index('row'), with user='row'. Offending row: user=1",
        ),
        Refusal(
            "from_lists, truth= and item= are one column",
            lambda: rf.from_lists(answers, user="q", item="found", truth="found"),
            "frame of lists: truth='found' names a column that has another role: name another",
        ),
        Refusal(
            "from_lists, another column is called rank",
            lambda: rf.from_lists(
                answers.with_columns(rank=1), user="q", item="found", truth="wanted"
            ),
            "frame of lists, column 'rank': from_lists adds a column with this name: rename yours",
        ),
        Refusal(
            "query and question beside item",
            lambda: rf.evaluate(texts, "rr", truth=TRUTH),
            "run: no column 'user' for user; it has 'query', 'item', 'rank', 'question'; the truth has 'user': pass user= (a column of the run), truth_user='user'",
        ),
        Refusal(
            "a lazy judged table without items",
            lambda: rf.evaluate(judged.lazy(), "rr"),
            "judged table: no column 'item' for item; it has 'qid', 'score', 'label'; name it with item=; a lazy table needs it, and a DataFrame with a rank or score, and a grade, does not",
        ),
        Refusal(
            "a judged table without items, exclude=",
            lambda: rf.evaluate(judged, "rr", exclude=TRUTH),
            "judged table: no column 'item' for item, which exclude= reads; its rows are numbered instead: name the column with item=",
        ),
        Refusal(
            "judgments.json without requests",
            lambda: judgment_files.of_search("judgments.json", {"queries": []}),
            f"judgments.json: 'queries' is not one of 'requests', 'judgmentRatings': {judgment_files.IN_WORDS}",
        ),
        Refusal(
            "judgments.json with a rating of null",
            lambda: judgment_files.of_search("judgments.json", unrated),
            f"judgments.json: requests[0].ratings[0].rating is None, not a number: {judgment_files.IN_WORDS}",
        ),
        Refusal(
            "ndcg_at(3, discount=[1, 0.5])",
            lambda: rf.metrics.ndcg_at(3, discount=[1, 0.5]),
            "discount has 2 weights, and k is 3: give at least k weights, of ranks 1 to k",
        ),
        Refusal(
            "ndcg_at(2, discount='rank', base=2)",
            lambda: rf.metrics.ndcg_at(2, discount="rank", base=2),
            "base=2.0 and discount='rank' are two discounts: leave out one",
        ),
        Refusal(
            "dcg_at(2, discount=[0.5, 1])",
            lambda: rf.metrics.dcg_at(2, discount=[0.5, 1]),
            "dcg_at: discount must be weights ≥ 0 that do not rise, the first > 0, not [0.5, 1]",
        ),
        Refusal(
            "the label context_recall@5",
            lambda: rf.metrics.of_label("context_recall@5"),
            "metric 'context_recall@5' is the share of the relevant items that are retrieved: use 'recall@5'",
        ),
        Refusal(
            "the label cosine_ndcg@10",
            lambda: rf.metrics.of_label("cosine_ndcg@10"),
            "metric 'cosine_ndcg@10' has the name of a similarity, which the scores have already: use 'ndcg@10'",
        ),
        Refusal(
            "err@2, chance=True",
            lambda: rf.evaluate(RUN, "err@2", truth=TRUTH, chance=True),
            "chance=True: metric 'err@2' has no chance: it reads 'rank', which has no exact expectation in random order: leave it out",
        ),
        Refusal(
            "num_retrieved, chance=True",
            lambda: rf.evaluate(RUN, "num_retrieved", truth=TRUTH, chance=True),
            "chance=True: metric 'num_retrieved' has no chance: it is not declared whether higher or lower is better: leave it out",
        ),
        Refusal(
            "baselines with a user of text, and integers in the history",
            lambda: rf.runs.baselines(TRUTH, users=["1"]),
            "column 'user': it is Int64 in the history= and String in the users=: cast one; ids must have the same type in both tables, or any two integer types",
        ),
        Refusal(
            "baselines for no user",
            lambda: rf.runs.baselines(TRUTH, users=TRUTH.clear()),
            "users=: it is empty",
        ),
        Refusal(
            "baselines with a null user",
            lambda: rf.runs.baselines(TRUTH, users=[1, None]),
            "users=, column 'user': null user: drop the row. Offending row: user=null",
        ),
        Refusal(
            "to_judge with more than all of its budget at random",
            lambda: rf.runs.to_judge(RUN, 2, budget=4, random=50),
            "random must be a number from 0 to 1, the share of the budget, not 50",
        ),
        Refusal(
            "to_judge of no pair",
            lambda: rf.runs.to_judge(RUN, 2, budget=0),
            "budget must be an integer ≥ 1, not 0",
        ),
        Refusal(
            "from_scores of sets",
            lambda: rf.from_scores(sets),
            "from_scores: the dict has sets, which have no order: rf.from_grades makes a truth of {user: {items}}",
        ),
    ]


# ------------------------------------------------------------------ the page

HEAD = """# Results for odd input

This page is generated by `python -m tests.odd_input`. The tests check each line with Polars (eager and lazy, on both
engines) and with pandas.

Each line changes one thing in two plain tables. In the run, user 1 has the items 10, 11 and 12 at ranks 1 to 3, and
user 2 the items 10 and 13. In the truth, user 1 likes item 11 (grade 1) and item 14 (grade 2), and users 2 and 3 like
item 10 (grade 1).

With pandas, the calls in a message are those of pandas. Each call is `evaluate("precision@2", "recall@2", "ap", "ndcg@2", "rr", truth=…)` unless another metric is
named. *The same* means the results for the plain tables: 1/3, 1/2, 0.416667, 0.413271 and 1/2. A message is that
of the `RankingDataError`, or of the `ValueError` or `TypeError` if the call is wrong and not the data. Metrics that count rows or
judgments, such as `judged@2` and `bpref`, raise an error for duplicates that these five leave to `rf.check`.
"""


def page() -> str:
    """Write the page."""
    lines = [HEAD]
    for section, listed in cases().items():
        lines += [f"## {section}", "", "| input | result |", "| --- | --- |"]
        for case in listed:
            told = _told(case.gives, case.metrics)
            if case.in_pandas is not None:
                told += f"; in pandas: {_told(case.in_pandas, case.metrics)}"
            if case.remark:
                told += f" ({case.remark})"
            lines.append(f"| {case.name} | {told} |")
        lines.append("")
    lines += ["## pandas", "", "| input | result |", "| --- | --- |"]
    lines += [f"| {case.name} | {_told(case.gives, METRICS)} |" for case in pandas_cases()]
    lines += ["", "## Parts, meters, logs and trackers", "", "| input | result |", "| --- | --- |"]
    lines += [f"| {case.name} | {_told(case.says, METRICS)} |" for case in refusals()]
    lines += ["", "## Frames and shapes", "", "| input | result |", "| --- | --- |"]
    lines += [f"| {case.name} | {_told(case.says, METRICS)} |" for case in doors()]
    lines += [
        "",
        "A LazyFrame whose file no longer exists raises `FileNotFoundError`, which names the file.",
    ]
    return "\n".join(lines) + "\n"


def _told(gives: Expected, metrics: tuple[Any, ...]) -> str:
    if isinstance(gives, str):
        return f"`{gives}`".replace("|", "\\|")
    if gives == PLAIN:
        return "the same"
    values = zip(metrics, gives, strict=True)
    return ", ".join(
        f"{label} {'null' if value is None else format(value, '.6g')}" for label, value in values
    )


if __name__ == "__main__":
    PAGE.write_text(page())
