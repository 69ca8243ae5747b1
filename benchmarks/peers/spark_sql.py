"""Five metrics in Spark's SQL, as one writes it by hand: windows and group by, no checks."""

from pyspark.sql import DataFrame

_HITS = """
SELECT user, rank, row_number() OVER (PARTITION BY user ORDER BY rank) AS number
FROM {hits}
"""
_MEANS = """
WITH numbered AS ({numbered}),
of_hits AS (
    SELECT user,
        count_if(rank <= 10) AS hits,
        sum(IF(rank <= 10, 1 / log2(rank + 1), 0)) AS dcg,
        sum(number / rank) AS precisions,
        sum(IF(rank <= 10, number / rank, 0)) AS precisions_10
    FROM numbered GROUP BY user
),
of_truth AS (SELECT user, count(*) AS relevant FROM {relevant} GROUP BY user)
SELECT
    avg(coalesce(hits, 0) / 10) AS `precision@10`,
    avg(coalesce(hits, 0) / relevant) AS `recall@10`,
    avg(coalesce(dcg, 0) / element_at(array({ideals}), int(least(relevant, 10))))
        AS `ndcg(gain=1:1;2:1;3:1)@10`,
    avg(coalesce(precisions, 0) / relevant) AS ap,
    avg(coalesce(precisions_10, 0) / least(relevant, 10)) AS `ap(divide_by=attainable)@10`
FROM of_truth LEFT JOIN of_hits USING (user)
"""
_IDEALS = ", ".join(
    "double(" + " + ".join(f"1 / log2({rank + 1})" for rank in range(1, size + 1)) + ")"
    for size in range(1, 11)
)


def means(run: DataFrame, truth: DataFrame) -> DataFrame:
    """Plan the means over users of the truth, from two tables."""
    run.createOrReplaceTempView("run")
    truth.where("relevance > 0").createOrReplaceTempView("relevant")
    numbered = _HITS.format(hits="run JOIN relevant USING (user, item)")
    return _planned(run, numbered, "relevant")


def means_of_judged(judged: DataFrame) -> DataFrame:
    """Plan the means over users of a judged table."""
    judged.where("relevance > 0").createOrReplaceTempView("relevant")
    numbered = _HITS.format(hits="relevant WHERE rank IS NOT NULL")
    return _planned(judged, numbered, "relevant")


def _planned(frame: DataFrame, numbered: str, relevant: str) -> DataFrame:
    text = _MEANS.format(numbered=numbered, relevant=relevant, ideals=_IDEALS)
    return frame.sparkSession.sql(text)
