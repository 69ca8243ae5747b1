"""Spark's RankingMetrics, in local mode on all cores."""

# /// script
# requires-python = ">=3.11"
# dependencies = ["pyspark==4.3.0", "numpy==2.4.6"]
# ///

import os
import sys
from pathlib import Path

from pyspark import RDD
from pyspark.ml.evaluation import RankingEvaluator
from pyspark.mllib.evaluation import RankingMetrics
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

#: The ideal is binary, and AP@k divides by min(k, R).
DIFFERS = {"ndcg": "ndcg(gain=1:1;2:1;3:1)", "ap": "ap(divide_by=attainable)"}
NAMES = {"precision": "precisionAt", "recall": "recallAt", "ndcg": "ndcgAt"}
Tables = tuple[DataFrame, DataFrame]


def read(run: Path, truth: Path) -> Tables:
    """Start Spark, and keep both tables in its memory."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {
        "spark.driver.memory": "8g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = SparkSession.builder.master("local[*]").config(map=options).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    tables = (
        spark.read.parquet(str(run)).select("user", "item", "rank").cache(),
        spark.read.parquet(str(truth)).select("user", "item").cache(),
    )
    for table in tables:
        table.count()
    return tables


def metric(measure: str, k: int | None) -> tuple[str, int | None] | None:
    """Name the method."""
    if measure == "ap":
        return ("meanAveragePrecision", None) if k is None else ("meanAveragePrecisionAt", k)
    return (NAMES[measure], k) if measure in NAMES and k else None


def convert(tables: Tables) -> RDD:
    """Make pairs of lists, and keep them in Spark's memory."""
    return keep(pairs(*tables))


def pairs(run: DataFrame, truth: DataFrame) -> RDD:
    """Plan pairs of lists, the run's in its order."""
    lists = run.groupBy("user").agg(_listed(F.struct("rank", "item")))
    relevant = truth.groupBy("user").agg(F.collect_list("item").alias("relevant"))
    return relevant.join(lists, "user").select("listed", "relevant").rdd.map(tuple)


def pairs_of_judged(judged: DataFrame) -> RDD:
    """Plan pairs of lists of a judged table."""
    listed = F.when(F.col("rank").isNotNull(), F.struct("rank", "item"))
    relevant = F.collect_list(F.when(F.col("relevance") > 0, F.col("item")))
    lists = judged.groupBy("user").agg(_listed(listed), relevant.alias("relevant"))
    return lists.select("listed", "relevant").rdd.map(tuple)


def keep(lists: RDD) -> RDD:
    """Compute them now, and keep them in Spark's memory."""
    lists.cache().count()
    return lists


def compute(inputs: RDD, metrics: dict[str, tuple[str, int | None]]) -> dict[str, float]:
    """Ask for one metric after the other, which is all there is."""
    ranking = RankingMetrics(inputs)
    means = {}
    for label, (name, k) in metrics.items():
        value = getattr(ranking, name)
        means[label] = value if k is None else value(k)
    inputs.unpersist()
    return means


def compute_each(inputs: RDD, metrics: dict[str, tuple[str, int | None]]) -> dict[str, float]:
    """Ask RankingEvaluator, which takes lists of doubles, for one metric after the other."""
    lists = inputs.map(lambda pair: tuple([float(i) for i in each] for each in pair))
    frame = lists.toDF("prediction array<double>, label array<double>").cache()
    means = {}
    for label, (name, k) in metrics.items():
        # its names: precisionAtK beside RankingMetrics' precisionAt
        asked = RankingEvaluator(metricName=name if k is None else f"{name}K", k=k or 10)
        means[label] = asked.evaluate(frame)
    frame.unpersist()
    return means


def _listed(ranked: Column) -> Column:
    return F.sort_array(F.collect_list(ranked))["item"].alias("listed")
