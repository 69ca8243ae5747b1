"""rankframe.spark against SQL, RankingMetrics and one machine: ``python -m benchmarks.spark``.

Parquet files, once as run and truth and once as the judged table of both. Spark runs on two cores,
all is warm, and each pair is measured in turn. RankingMetrics is given its lists in two ways: kept
in Spark's memory for its five jobs, and as its guide has it, made anew by each job; the second is
timed once, as is RankingEvaluator, which has lists of doubles. The SQL is as one writes it by hand:
windows and group by, no checks. Ends with status 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession

import rankframe as rf
import rankframe.spark
from benchmarks import report
from benchmarks.data import CACHE
from benchmarks.peers import spark as peer
from benchmarks.peers import spark_sql
from benchmarks.scale import parts, scan
from benchmarks.timing import alternate, seconds

#: What RankingMetrics has; its nDCG is binary.
METRICS = {
    "precision@10": ("precisionAt", 10),
    "recall@10": ("recallAt", 10),
    "ndcg(gain=1:1;2:1;3:1)@10": ("ndcgAt", 10),
    "ap": ("meanAveragePrecision", None),
    "ap(divide_by=attainable)@10": ("meanAveragePrecisionAt", 10),
}
AHEAD, AHEAD_OF_SQL, COST, GROWTH = 10, 1.5, 6, 1.3
SIZES = [5, 10]  # millions of rows


def session(memory: str) -> SparkSession:
    """Start Spark on two cores."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {
        "spark.driver.memory": memory,
        "spark.sql.autoBroadcastJoinThreshold": "64m",  # 8.4 M keys of the truth
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


class Form(NamedTuple):
    """The same data as Spark, RankingMetrics and one machine take it."""

    name: str
    ours: Callable[[], DataFrame]
    lists: Callable[[], RDD]
    sql: Callable[[], DataFrame]
    here: Callable[[], pl.LazyFrame]


def two_tables(spark: SparkSession, millions: int) -> Form:
    """Read run and truth."""
    made = parts(millions)
    run = spark.read.parquet(*(str(one.run) for one in made))
    truth = spark.read.parquet(*(str(one.truth) for one in made))
    lazy, judgments = scan(millions)
    return Form(
        "run and truth",
        partial(rankframe.spark.evaluate, run, *METRICS, truth=truth),
        partial(peer.pairs, run, truth),
        partial(spark_sql.means, run, truth),
        partial(rf.evaluate, lazy, *METRICS, truth=judgments),
    )


def one_table(spark: SparkSession, millions: int) -> Form:
    """Read the judged table of both, which is made if it is not there."""
    path = CACHE / "data" / f"judged-{millions}M.parquet"
    if not path.exists():
        run, truth = scan(millions)
        unfinished = path.with_suffix(".part")
        rf.judge(run, truth).sink_parquet(unfinished)
        unfinished.rename(path)
    judged = spark.read.parquet(str(path))
    return Form(
        "judged table",
        partial(rankframe.spark.evaluate, judged, *METRICS, users="truth"),
        partial(peer.pairs_of_judged, judged),
        partial(spark_sql.means_of_judged, judged),
        partial(rf.evaluate, pl.scan_parquet(path), *METRICS, users="truth"),
    )


def measure(form: Form, millions: int, rounds: int) -> dict[str, Any]:
    """Time ours against theirs, then against one machine."""

    def ours() -> dict[str, float]:
        return form.ours().drop("users").collect()[0].asDict()

    def theirs() -> dict[str, float]:
        return peer.compute(peer.keep(form.lists()), METRICS)

    def as_in_the_guide() -> dict[str, float]:
        return peer.compute(form.lists(), METRICS)

    def sql() -> dict[str, float]:
        return form.sql().collect()[0].asDict()

    def evaluator() -> dict[str, float]:
        return peer.compute_each(form.lists(), METRICS)

    def here() -> dict[str, float]:
        return form.here().drop("users").collect().row(0, named=True)

    means = ours()
    for other in (sql, theirs, evaluator, here):
        for label, mean in other().items():
            if abs(mean - means[label]) > 1e-9:
                sys.exit(f"{label} is {mean} in {other.__name__}, and not {means[label]}")
    load = os.getloadavg()[0]
    with_sql, by_hand = alternate(ours, sql, rounds)
    own, kept = alternate(ours, theirs, rounds)
    local, again = alternate(here, ours, rounds)
    anew, each = seconds(as_in_the_guide), seconds(evaluator)
    return {
        "M rows": millions,
        "from": form.name,
        "rankframe.spark, s": round(own, 2),
        "SQL by hand, s": round(by_hand, 2),
        "RankingMetrics, lists kept, s": round(kept, 2),
        "RankingMetrics, s": round(anew, 2),
        "RankingEvaluator, s": round(each, 2),
        "one machine, s": round(local, 3),
        "times as fast as SQL": round(by_hand / with_sql, 2),
        "times as fast, lists kept": round(kept / own, 1),
        "times as fast": round(anew / own, 1),
        "times one machine": round(again / local, 1),
        "load before": round(load, 1),
    }


def verdicts(rows: list[dict[str, Any]]) -> dict[str, bool]:
    """Tell which targets are met."""
    met = {}
    for row in rows:
        where = f"{row['from']}, {row['M rows']} M rows"
        met[f"{AHEAD} times as fast as RankingMetrics, {where}"] = row["times as fast"] >= AHEAD
        by_hand = row["times as fast as SQL"]
        met[f"{AHEAD_OF_SQL} times as fast as SQL, {where}"] = by_hand >= AHEAD_OF_SQL
        kept = row["times as fast, lists kept"]
        met[f"{AHEAD} times as fast, its lists kept, {where}"] = kept >= AHEAD
        met[f"{COST} times one machine, {where}"] = row["times one machine"] <= COST
    forms = {row["from"]: [one for one in rows if one["from"] == row["from"]] for row in rows}
    for form, (first, *_, last) in ((k, v) for k, v in forms.items() if len(v) > 1):
        growth = last["rankframe.spark, s"] / first["rankframe.spark, s"]
        linear = last["M rows"] / first["M rows"]
        met[f"growth within {GROWTH} of linear, {form}"] = growth <= GROWTH * linear
    return met


def main() -> int:
    """Measure, and say which targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="millions of rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="8g", help="of Spark's Java heap")
    options = parser.parse_args()
    spark = session(options.memory)
    rows = [
        measure(form(spark, millions), millions, options.rounds)
        for millions in options.sizes
        for form in (two_tables, one_table)
    ]
    spark.stop()
    table = report.markdown(pl.DataFrame(rows))
    print(table)
    if options.sizes == SIZES:
        report.fill(Path(__file__).parent / "README.md", "spark", table)
    met = verdicts(rows)
    print(*(f"{'met' if yes else 'missed'}: {target}" for target, yes in met.items()), sep="\n")
    return int(not all(met.values()))


if __name__ == "__main__":
    sys.exit(main())
