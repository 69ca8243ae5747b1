-- rankframe 0.1.0
-- rf.sql('precision@10', 'recall@10', 'map', 'mrr', 'ndcg@10', run='recs', truth='labels', by='model', dialect='bigquery')
-- Assumed, and checked by rf.sql_check:
--   run: groups, user and item are never null; one row for each
--   run: ranks are integers from 1, each once in a list; null is not retrieved
--   truth: user and item are never null; one row for each
--   truth: the relevance is a finite number, never null, some are > 0; some users have lists
--   every group of the run has the whole truth
-- Metrics:
--   precision_at_10: Precision: hits@k / k, the share of the first k items that are relevant.
--   recall_at_10: Recall: hits@k / R, the share of the relevant items that are among the first k.
--   map: Average precision: Σ hits / rank over the relevant items at rank ≤ k, divided by R.
--   mrr: Reciprocal rank: 1 / rank of the first relevant item, 0 if none is among the first k.
--   ndcg_at_10: Normalized DCG: DCG@k / DCG@k of the ideal list of all the user's items of gain > 0.
WITH
-- the items that each list returned, with their ranks
lists AS (
  SELECT
    `model`,
    `user`,
    `item`,
    CAST(`rank` AS INT64) AS `rank`
  FROM `recs`
  WHERE `rank` IS NOT NULL
),
-- what users want, with grades as numbers
judgments AS (
  SELECT
    `user`,
    `item`,
    CAST(`relevance` AS FLOAT64) AS `relevance`
  FROM `labels`
  WHERE `relevance` IS NOT NULL
),
-- each group has all of the truth
all_groups AS (
  SELECT DISTINCT `model`
  FROM `recs`
  WHERE `rank` IS NOT NULL
),
-- items of grade > 0
relevant_step_1 AS (
  SELECT
    `user`,
    `item`,
    `relevance`
  FROM judgments
  WHERE `relevance` > 0
),
-- the same, with columns derived on them
relevant_step_2 AS (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY `user` ORDER BY `relevance` DESC) AS `ideal_place`
  FROM relevant_step_1
),
-- the same, with columns derived on them
relevant AS (
  SELECT
    *,
    CAST(1 AS FLOAT64) / (LN(`ideal_place` + 1) / LN(2)) AS `place_discount`
  FROM relevant_step_2
),
-- sums of the truth, one row per user
relevant_sums AS (
  SELECT
    `user`,
    COUNT(*) AS `num_rows`,
    SUM(`relevance` * CASE WHEN `ideal_place` <= 10 THEN `place_discount` ELSE 0.0 END) AS `sum_relevance_ideal_place_place_discount`
  FROM relevant
  GROUP BY `user`
),
-- those in the lists, of relevant
hits_step_1 AS (
  SELECT
    l.`model`, t.*, l.`rank`
  FROM relevant AS t
  JOIN lists AS l ON l.`user` = t.`user` AND l.`item` = t.`item`
),
-- the same, with columns derived on them
hits AS (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY `model`, `user` ORDER BY `rank`) AS `hits`,
    CAST(1 AS FLOAT64) / (LN(`rank` + 1) / LN(2)) AS `rank_discount`
  FROM hits_step_1
),
-- sums of the lists
hits_sums AS (
  SELECT
    `model`,
    `user`,
    SUM(CASE WHEN `rank` <= 10 THEN 1 ELSE 0 END) AS `hits_to_10`,
    SUM(CAST(`hits` AS FLOAT64) / `rank`) AS `sum_hits_rank`,
    MIN(`rank`) AS `min_rank`,
    SUM(`relevance` * CASE WHEN `rank` <= 10 THEN `rank_discount` ELSE 0.0 END) AS `sum_relevance_rank_rank_discount_to_10`
  FROM hits
  GROUP BY `model`, `user`
),
-- one row per user, with the value of each metric
values_of_relevant AS (
  SELECT
    g.`model`,
    s.`user`,
    CAST(COALESCE(h.`hits_to_10`, 0) AS FLOAT64) / 10 AS `precision@10`,
    CAST(COALESCE(h.`hits_to_10`, 0) AS FLOAT64) / s.`num_rows` AS `recall@10`,
    COALESCE(h.`sum_hits_rank`, 0.0) / s.`num_rows` AS `map`,
    CASE WHEN h.`min_rank` IS NOT NULL THEN CAST(1 AS FLOAT64) / NULLIF(h.`min_rank`, 0) ELSE 0.0 END AS `mrr`,
    CASE WHEN s.`sum_relevance_ideal_place_place_discount` <> 0 THEN CASE WHEN COALESCE(h.`sum_relevance_rank_rank_discount_to_10`, 0.0) / NULLIF(s.`sum_relevance_ideal_place_place_discount`, 0) > 1 THEN 1.0 ELSE COALESCE(h.`sum_relevance_rank_rank_discount_to_10`, 0.0) / NULLIF(s.`sum_relevance_ideal_place_place_discount`, 0) END END AS `ndcg@10`
  FROM relevant_sums AS s CROSS JOIN all_groups AS g
  LEFT JOIN hits_sums AS h ON h.`model` = g.`model` AND h.`user` = s.`user`
)
SELECT
  `model`,
  COUNT(*) AS `users`,
  AVG(`precision@10`) AS `precision_at_10`,
  AVG(`recall@10`) AS `recall_at_10`,
  AVG(`map`) AS `map`,
  AVG(`mrr`) AS `mrr`,
  AVG(`ndcg@10`) AS `ndcg_at_10`
FROM values_of_relevant
GROUP BY `model`
