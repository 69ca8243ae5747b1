-- rankframe 0.1.0, for sqlite
-- rf.sql('precision@10', 'recall@10', 'map', 'mrr', 'ndcg@10', run='recs', truth='labels', by='model', dialect='sqlite')
-- Assumed, and checked by rf.sql(…, check=True):
--   run: groups, user and item are never null; one row per group, user and item
--   run: ranks are integers from 1, each once in a list; null is not retrieved
--   truth: user and item are never null; one row per user and item
--   truth: the relevance is a finite number, never null, > 0 in some
--   truth: some users of each group are in the run, and some items
--   model: users are in several groups, and the whole truth judges each
-- Assumed, and not checked: the types that schema= says, by default numbers for
--   ranks and grades; ids have the same type in both tables.
-- Users: all with an item of grade > 0; one without a list counts, as a miss.
WITH
-- the items that each list returned, with their ranks
lists AS (
  SELECT
    r."model",
    r."user",
    r."item",
    CAST(r."rank" AS INTEGER) AS "rank"
  FROM "recs" AS r
  WHERE r."rank" IS NOT NULL
),
-- the judged items, with grades as numbers
judgments AS (
  SELECT
    t."user",
    t."item",
    CAST(t."relevance" AS REAL) AS "relevance"
  FROM "labels" AS t
  WHERE t."relevance" IS NOT NULL
),
-- the groups of the run; the whole truth judges each
all_groups AS (
  SELECT DISTINCT r."model"
  FROM "recs" AS r
  WHERE r."rank" IS NOT NULL
),
-- items of grade > 0
relevant AS (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY "user" ORDER BY "relevance" DESC) AS "ideal_place"
  FROM judgments
  WHERE "relevance" > 0
),
-- the same, with place_discount
relevant_with_place_discount AS (
  SELECT
    *,
    CAST(1 AS REAL) / (LN("ideal_place" + 1) / LN(2)) AS "place_discount"
  FROM relevant
),
-- sums over the rows of relevant, one row per user
relevant_sums AS (
  SELECT
    "user",
    COUNT(*) AS "num_relevant",
    SUM("relevance" * CASE WHEN "ideal_place" <= 10 THEN "place_discount" ELSE 0.0 END) AS "ndcg_at_10_truth_sum"
  FROM relevant_with_place_discount
  GROUP BY "user"
),
-- relevant items that are in the list
hits AS (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY "model", "user" ORDER BY "rank") AS "hits",
    CAST(1 AS REAL) / (LN("rank" + 1) / LN(2)) AS "rank_discount"
  FROM relevant_with_place_discount
  JOIN lists USING ("user", "item")
),
-- sums over the rows of hits, one row per list
hits_sums AS (
  SELECT
    "model",
    "user",
    SUM(CASE WHEN "rank" <= 10 THEN 1 ELSE 0 END) AS "hits_at_10",
    SUM(CAST("hits" AS REAL) / "rank") AS "map_sum",
    MIN("rank") AS "min_rank",
    SUM("relevance" * CASE WHEN "rank" <= 10 THEN "rank_discount" ELSE 0.0 END) AS "ndcg_at_10_sum"
  FROM hits
  GROUP BY "model", "user"
),
-- the value of each metric, one row per user in each group, also of those without hits
relevant_values AS (
  SELECT
    "model",
    "user",
    CAST(COALESCE("hits_at_10", 0) AS REAL) / 10 AS "precision@10",
    CAST(COALESCE("hits_at_10", 0) AS REAL) / "num_relevant" AS "recall@10",
    COALESCE("map_sum", 0.0) / "num_relevant" AS "map",
    CASE WHEN "min_rank" IS NOT NULL THEN CAST(1 AS REAL) / NULLIF("min_rank", 0) ELSE 0.0 END AS "mrr",
    CASE WHEN "ndcg_at_10_truth_sum" <> 0 THEN CASE WHEN COALESCE("ndcg_at_10_sum", 0.0) / NULLIF("ndcg_at_10_truth_sum", 0) > 1 THEN 1.0 ELSE COALESCE("ndcg_at_10_sum", 0.0) / NULLIF("ndcg_at_10_truth_sum", 0) END END AS "ndcg@10"
  FROM relevant_sums
  CROSS JOIN all_groups
  LEFT JOIN hits_sums USING ("model", "user")
)
SELECT
  "model",
  COUNT(*) AS "users",
  AVG("precision@10") AS "precision@10",
  AVG("recall@10") AS "recall@10",
  AVG("map") AS "map",
  AVG("mrr") AS "mrr",
  AVG("ndcg@10") AS "ndcg@10"
FROM relevant_values
GROUP BY "model"
