-- Five metrics as a data engineer writes them by hand: the numbers of rf.sql, also with gaps in the
-- ranks, null ranks, users without lists and null grades. DuckDB and Spark read it as it is.
WITH relevant AS (
  SELECT
    user_id,
    item,
    relevance,
    ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY relevance DESC) AS place
  FROM truth
  WHERE relevance > 0
),
ideals AS (
  SELECT
    user_id,
    COUNT(*) AS num_relevant,
    SUM(CASE WHEN place <= 10 THEN relevance / LOG2(place + 1) ELSE 0 END) AS ideal_dcg
  FROM relevant
  GROUP BY user_id
),
models AS (
  SELECT DISTINCT model FROM run
),
hits AS (
  SELECT
    run.model,
    run.user_id,
    run.rank,
    relevant.relevance,
    ROW_NUMBER() OVER (PARTITION BY run.model, run.user_id ORDER BY run.rank) AS hits
  FROM run
  JOIN relevant ON run.user_id = relevant.user_id AND run.item = relevant.item
  WHERE run.rank IS NOT NULL
),
lists AS (
  SELECT
    model,
    user_id,
    SUM(CASE WHEN rank <= 10 THEN 1 ELSE 0 END) AS hits_at_10,
    SUM(CAST(hits AS DOUBLE) / rank) AS precisions,
    MIN(rank) AS first_hit,
    SUM(CASE WHEN rank <= 10 THEN relevance / LOG2(rank + 1) ELSE 0 END) AS dcg
  FROM hits
  GROUP BY model, user_id
)
SELECT
  models.model,
  COUNT(*) AS users,
  AVG(COALESCE(lists.hits_at_10, 0) / CAST(10 AS DOUBLE)) AS precision_at_10,
  AVG(COALESCE(lists.hits_at_10, 0) / CAST(ideals.num_relevant AS DOUBLE)) AS recall_at_10,
  AVG(COALESCE(lists.precisions, 0) / ideals.num_relevant) AS map,
  AVG(COALESCE(1 / CAST(lists.first_hit AS DOUBLE), 0)) AS mrr,
  AVG(COALESCE(lists.dcg, 0) / ideals.ideal_dcg) AS ndcg_at_10
FROM ideals
CROSS JOIN models
LEFT JOIN lists ON lists.model = models.model AND lists.user_id = ideals.user_id
GROUP BY models.model
