"""rankframe.spark against Spark's RankingMetrics and one machine: ``python -m benchmarks.spark``.

The tables are Parquet files, Spark runs on two cores, all is warm, and each pair is measured in
turn. Ends with status 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import polars as pl
from pyspark.sql import DataFrame, SparkSession

import rankframe as rf
import rankframe.spark
from benchmarks import report
from benchmarks.peers import spark as peer
from benchmarks.scale import parts, scan
from benchmarks.timing import alternate

#: What RankingMetrics has; its nDCG is binary.
METRICS = {
    "precision@10": ("precisionAt", 10),
    "recall@10": ("recallAt", 10),
    "ndcg(gain=1:1;2:1;3:1)@10": ("ndcgAt", 10),
    "ap": ("meanAveragePrecision", None),
    "ap(divide_by=attainable)@10": ("meanAveragePrecisionAt", 10),
}
AHEAD, COST, GROWTH = 10, 6, 1.3
SIZES = [5, 50]  # millions of rows


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


def tables(spark: SparkSession, millions: int) -> tuple[DataFrame, DataFrame]:
    """Read both tables, lazily."""
    made = parts(millions)
    run = spark.read.parquet(*(str(one.run) for one in made))
    return run, spark.read.parquet(*(str(one.truth) for one in made))


def measure(spark: SparkSession, millions: int, rounds: int) -> dict[str, float]:
    """Time ours against theirs, then against one machine."""
    run, truth = tables(spark, millions)

    def ours() -> dict[str, float]:
        frame = rankframe.spark.evaluate(run, *METRICS, truth=truth)
        return frame.drop("users").collect()[0].asDict()

    def theirs() -> dict[str, float]:
        return peer.compute(peer.convert((run, truth)), METRICS)

    def here() -> dict[str, float]:
        lazy, judgments = scan(millions)
        result = rf.evaluate(lazy, *METRICS, truth=judgments).drop("users").collect()
        return result.row(0, named=True)

    means = ours()
    for other in (theirs, here):
        for label, mean in other().items():
            if abs(mean - means[label]) > 1e-9:
                sys.exit(f"{label} is {mean} in {other.__name__}, and not {means[label]}")
    own, spark_seconds = alternate(ours, theirs, rounds)
    local, again = alternate(here, ours, rounds)
    return {
        "M rows": millions,
        "rankframe.spark, s": round(own, 2),
        "RankingMetrics, s": round(spark_seconds, 2),
        "one machine, s": round(local, 3),
        "times as fast": round(spark_seconds / own, 1),
        "times one machine": round(again / local, 1),
    }


def verdicts(rows: list[dict[str, float]]) -> list[str]:
    """Hold the ratios against their targets."""
    said = [
        f"{'missed' if missed else 'met'}: {what} at {row['M rows']} M rows"
        for row in rows
        for what, missed in (
            (f"{AHEAD} times as fast as RankingMetrics", row["times as fast"] < AHEAD),
            (f"{COST} times one machine", row["times one machine"] > COST),
        )
    ]
    first, last = rows[0], rows[-1]
    if first is not last:
        seconds = last["rankframe.spark, s"] / first["rankframe.spark, s"]
        missed = seconds > GROWTH * last["M rows"] / first["M rows"]
        said.append(f"{'missed' if missed else 'met'}: growth within {GROWTH} of linear")
    return said


def main() -> int:
    """Measure, and say which targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="millions of rows")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", default="4g", help="of Spark's Java heap")
    options = parser.parse_args()
    spark = session(options.memory)
    rows = [measure(spark, millions, options.rounds) for millions in options.sizes]
    spark.stop()
    table = report.markdown(pl.DataFrame(rows))
    print(table)
    if options.sizes == SIZES:
        report.fill(Path(__file__).parent / "README.md", "spark", table)
    said = verdicts(rows)
    print(*said, sep="\n")
    return int(any(one.startswith("missed") for one in said))


if __name__ == "__main__":
    sys.exit(main())
