"""What type checkers must accept, and, by unused ignores being errors, what they must refuse."""

from typing import TYPE_CHECKING, Any, assert_type

import polars as pl

import rankframe as rf
from rankframe.typing import Names, Options, RankFrame, ResultsTable

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

TABLE = {"user": [1, 1], "item": [1, 2], "rank": [1, 2], "relevance": [0, 1]}


def test_kind_of_frame_is_kept() -> None:
    df = pl.DataFrame(TABLE)
    lf = df.lazy()
    assert_type(rf.evaluate(df, "ap", rf.metrics.ndcg_at(10)), pl.DataFrame)
    assert_type(rf.evaluate(lf, "ap", truth=None), pl.LazyFrame)
    assert_type(df.pipe(rf.evaluate, "ap", rf.metrics.ndcg_at(10)), pl.DataFrame)
    assert_type(lf.pipe(rf.metrics.rows), pl.LazyFrame)
    assert_type(rf.evaluate(df, "ap", preset="trec_eval"), pl.DataFrame)
    assert_type(rf.metrics.ndcg_at(10, gain={1: 1.0}), pl.Expr)
    assert_type(rf.summarize(df, "ap", users="judged", user="user"), pl.DataFrame)


def keywords(df: pl.DataFrame, lf: pl.LazyFrame) -> None:
    assert_type(rf.evaluate(df, "ap", truth=df, by="user", users="both"), pl.DataFrame)
    assert_type(rf.per_user(lf, "p@10", undefined=0.0, unjudged="drop", item="sku"), pl.LazyFrame)


def compared(df: pl.DataFrame, lf: pl.LazyFrame) -> None:
    assert_type(
        rf.compare(df, "ap", baseline="old", test="max_t", preset="trec_eval"), pl.DataFrame
    )
    assert_type(rf.compare(df, "ap", margin={"ap": 0.01}), pl.DataFrame)
    assert_type(rf.stats.power(lf, "ap", difference="1%", users="both"), pl.LazyFrame)
    assert_type(lf.pipe(rf.compare, "ap"), pl.LazyFrame)
    assert_type(rf.compare(lf, "ap", by=["model", "day"], correction=None), pl.LazyFrame)
    assert_type(rf.stats.compare_segments(df, "ap", by=["model", "day"], cluster="c"), pl.DataFrame)
    assert_type(rf.stats.who_gained(lf, 10, baseline="old", users="both"), pl.LazyFrame)
    assert_type(rf.stats.differences(df, "ap", n=20, queries=df, items=df), pl.DataFrame)
    assert_type(rf.stats.metric_agreement(lf, "ap", "rr"), pl.LazyFrame)
    assert_type(
        rf.gate(lf, "ap", baseline="old", margin={"ap": 0.01}, undecided="pass"), pl.LazyFrame
    )
    assert_type(rf.table({"a": lf}, "ap", truth=df, baseline="a", digits=2), ResultsTable)


def dicts_of_runs(df: pl.DataFrame, lf: pl.LazyFrame) -> None:
    assert_type(rf.runs.stack({"a": df, "b": df}), pl.DataFrame)
    assert_type(rf.evaluate({"a": df}, "ap", truth=df), pl.DataFrame)
    assert_type(rf.compare({"a": lf, "b": lf}, "ap", truth=df), pl.LazyFrame)
    assert_type(rf.with_rank({"a": lf}, exclude=df, close_gaps=True), pl.LazyFrame)


NAMES: Names = dict(user="uid", item="sku")  # noqa: C408  (as the guide writes it)
OPTIONS: Options = {"users": "judged", "undefined": 0.0, "user": "uid"}


def namespaces(df: pl.DataFrame, lf: pl.LazyFrame, pdf: "pd.DataFrame") -> None:
    assert_type(RankFrame(df).evaluate("ap", truth=lf, **NAMES), pl.DataFrame)
    assert_type(RankFrame(lf).evaluate("ap", preset="lightgbm"), pl.LazyFrame)
    assert_type(RankFrame(pdf).compare("ap", baseline="old", **OPTIONS), "pd.DataFrame")
    assert_type(RankFrame(df).ndcg_at(10, gain="exponential", truth=df), pl.DataFrame)
    assert_type(RankFrame(lf).recall_at(10, users="both", **NAMES), pl.LazyFrame)
    assert_type(RankFrame(df).table("ap"), ResultsTable)
    assert_type(RankFrame(df).report("ap").verdict, str)
    assert_type(RankFrame(df).runs.side_by_side(1, by="model"), pl.DataFrame)
    assert_type(RankFrame(df).from_lists(user="q", truth="expected"), pl.DataFrame)
    assert_type(RankFrame(df).registered_elsewhere(10), Any)
    RankFrame(df).ndcg_at("10")  # type: ignore[arg-type]
    RankFrame(df).ndcg_at(10, trut=df)  # type: ignore[call-arg]
    RankFrame(df).evaluate("ap", usr="uid")  # type: ignore[call-arg]
    assert_type(rf.evaluate(df, "ap", **NAMES), pl.DataFrame)
    df.rank.evaluate("ap")  # type: ignore[attr-defined]


def parts(df: pl.DataFrame, lf: pl.LazyFrame, pdf: "pd.DataFrame") -> None:
    facts = rf.parts.merge([rf.parts.facts(df, truth=lf, by="model"), rf.parts.facts(pdf)])
    assert_type(rf.parts.sums(lf, "ap", truth=df, facts=facts, users="both"), pl.LazyFrame)
    assert_type(rf.parts.merge([df, df]), pl.DataFrame)
    assert_type(rf.parts.combine([pdf, pdf], total=True), "pd.DataFrame")
    assert_type(rf.parts.combine(lf), pl.LazyFrame)
    assert_type(rf.parts.values(df, rf.metrics.ndcg_at(10), cluster="c"), pl.DataFrame)
    assert_type(rf.parts.combine([lf], repeated="last"), pl.LazyFrame)
    assert_type(rf.parts.merge([pdf, pdf], repeated="last"), "pd.DataFrame")
    meter = rf.Meter("ap", by="model", users="both")
    meter.update(df, pdf)
    meter.update(lf)
    meter.update({"a": df, "b": df}, lf)
    assert_type(meter.compute(total=True), pl.DataFrame)
    meter.merge(rf.Meter("ap", by="model", users="both"))
    of_pandas = rf.Meter[pd.DataFrame]("ap", by="model")
    of_pandas.update(pdf, df)
    assert_type(of_pandas.compute(), "pd.DataFrame")
    assert_type(rf.as_dict(df, undefined="omit"), dict[str, float])
    assert_type(rf.as_dict(df, names="label"), dict[str, float])


def pandas_frames(pdf: "pd.DataFrame", df: pl.DataFrame) -> None:
    assert_type(rf.judge(pdf, df), "pd.DataFrame")
    assert_type(rf.judge(df, pdf), pl.DataFrame)


def charts(df: pl.DataFrame, lf: pl.LazyFrame) -> None:
    assert_type(rf.plot.per_user(df, "ap"), alt.FacetChart)
    assert_type(rf.plot.who_gained(lf, 10, baseline="old"), alt.FacetChart)
    assert_type(rf.plot.precision_recall({"a": df}, truth=df), alt.HConcatChart)
    # one panel or several, which the data decide
    assert_type(rf.plot.at_k(df, "ndcg", together=True), alt.LayerChart | alt.FacetChart)
    assert_type(rf.plot.compare(df, "ap", baseline="old"), alt.LayerChart | alt.FacetChart)
    assert_type(rf.plot.segments(df, "ap", by="country"), alt.LayerChart | alt.FacetChart)
    assert_type(rf.plot.exposure(df, of="genre"), alt.LayerChart | alt.FacetChart)
    assert_type(rf.plot.trade_off(df, "ap", "rr"), alt.LayerChart | alt.FacetChart)
    assert_type(rf.plot.lorenz(df), alt.LayerChart | alt.FacetChart)
    rf.plot.at_k(df, "ndcg").properties(width=300, title="nDCG").save("ndcg.svg")
    assert_type(rf.plot.per_user(df, "ap").properties(title="AP"), alt.FacetChart)
    rf.plot.precision_recall(df).properties(title="both").save("both.png")


def refused(df: pl.DataFrame) -> None:
    rf.plot.at_k(df, "ndcg", together="yes")  # type: ignore[arg-type]
    rf.evaluate(df, "ap", users="everyone")  # type: ignore[arg-type]
    rf.evaluate(df, 10)  # type: ignore[arg-type]
    rf.evaluate(df, "ap", usr="uid")  # type: ignore[call-arg]
    rf.metrics.precision_at(10, divide_by="n")  # type: ignore[arg-type]
    rf.evaluate([1], "ap")  # type: ignore[arg-type]
    rf.evaluate({1: df}, "ap")  # type: ignore[arg-type]
    rf.compare(df, "ap", test="anova")  # type: ignore[arg-type]
    rf.stats.metric_agreement(df, 10)  # type: ignore[arg-type]
    rf.compare(df, "ap", usr="uid")  # type: ignore[call-arg]
    rf.compare(df, "ap", margin=b"1%")  # type: ignore[arg-type]
    rf.parts.sums(df, "ap", usr="uid")  # type: ignore[call-arg]
    rf.parts.combine([df], repeated="first")  # type: ignore[arg-type]
    rf.as_dict(df, names="plain")  # type: ignore[arg-type]
    rf.as_dict(df, undefined=0.0)  # type: ignore[arg-type]
    df.pipe(rf.evaluate, 10)  # type: ignore[arg-type]
    # which is why the docs advise a call: mypy binds a pipe's keywords to no parameter of ours
    df.pipe(rf.evaluate, "ap", truth=df)  # type: ignore[arg-type]
