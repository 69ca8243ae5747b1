"""Each user's difference, the greatest loss first, against plain Python and ``compare``."""

import math

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from two_models import many_users

import rankframe as rf

RUN, TRUTH = many_users(47)
METRICS = ["ndcg@3", "ap", "rr@2", "recall@3", "auc", "rbp", "err@3", "num_hits", "mean_hit_rank"]
METRICS += ["precision(divide_by=returned)@3", "e@3", "rr(rel=2)"]
NUMBERS = ["value", "baseline_value", "difference", "weight", "share"]


def by_hand(values, keys, metric, *, baseline, lower=False, n=None):
    """Pair and sort the rows of ``per_user``, with the weight of each, in plain Python."""
    of_baseline = {
        tuple(row[key] for key in keys): row
        for row in values.iter_rows(named=True)
        if row["model"] == baseline
    }
    groups = {}
    for row in values.sort(*keys[:-1], "model").iter_rows(named=True):
        before = of_baseline.get(tuple(row[key] for key in keys))
        if row["model"] == baseline or before is None or row["weight"] == 0:
            continue
        if row[metric] is None or before[metric] is None:
            continue
        group = (*(row[key] for key in keys[:-1]), row["model"])
        change = round(row[metric] - before[metric], 12) + 0.0
        users = groups.setdefault(group, [])
        users.append((row[keys[-1]], row[metric], before[metric], change, row["weight"]))
    rows = []
    for group, users in groups.items():
        total = math.fsum(change * weight for *_, change, weight in users)
        sign = -1 if lower else 1

        def gain(user, sign=sign):
            return float(f"{sign * user[3] * user[4]:.11g}")

        users.sort(key=lambda user: (gain(user), user[0]))
        lost = [user for user in users if sign * user[3] < 0]
        gained = [user for user in users if sign * user[3] > 0]
        if n is not None:
            best = sorted(gained, key=lambda user: (-gain(user), user[0]))[:n]
            users = lost[:n] + [user for user in gained if user in best]
        for user in users:
            rows.append([*group, *user, None if abs(total) < 1e-9 else user[3] * user[4] / total])
    return rows


@pytest.mark.parametrize("n", [None, 3, 1000])
@pytest.mark.parametrize("by", [[], ["country"]])
@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize("metric", ["ndcg@3", "precision@3", "mean_hit_rank", "e@3"])
def test_rows_are_those_of_plain_python(metric, weights, by, n):
    third = RUN.filter(model="b").with_columns(model=pl.lit("c"), rank=9 - pl.col("rank"))
    run = pl.concat([RUN, third])
    options = {"truth": TRUTH, "by": by}
    values = rf.per_user(run, metric, users="both", **options)
    own = TRUTH.group_by("user").agg(weight=pl.col("w").first())
    values = values.join(own, on="user").with_columns(
        weight=pl.col("weight") if weights else pl.lit(1.0)
    )
    lower = metric in ("mean_hit_rank", "e@3")
    want = by_hand(values, [*by, "user"], metric, baseline="b", lower=lower, n=n)
    got = rf.stats.differences(
        run, metric, baseline="b", n=n, users="both", weights=weights, **options
    )
    assert got.columns == [*by, "model", "user", *NUMBERS]
    assert [row[: len(by) + 2] for row in got.rows()] == [tuple(r[: len(by) + 2]) for r in want]
    for row, expected in zip(got.rows(), want, strict=True):
        assert row[len(by) + 2 :] == pytest.approx(expected[len(by) + 2 :], abs=1e-9, rel=1e-9)
    lazy = rf.stats.differences(
        run.lazy(), metric, baseline="b", n=n, users="both", weights=weights, **options
    )
    assert lazy.collect_schema() == got.schema
    assert_frame_equal(lazy.collect(), got)


@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize("options", [{}, {"users": "both"}, {"by": "country"}, {"undefined": 0.0}])
def test_mean_is_the_difference_of_compare(options, weights):
    call = {"truth": TRUTH, "baseline": "a", "weights": weights, **options}
    by = [call["by"]] if "by" in call else []
    every = rf.compare(RUN, *METRICS, details=True, **call)
    for metric in METRICS:
        compared = every.filter(metric=metric)
        assert len(compared) > 0
        found = rf.stats.differences(RUN, metric, **call)
        assert found.columns == [*by, "user", *NUMBERS]
        for group in compared.iter_rows(named=True):
            users = found.filter(pl.lit(value=True), *(pl.col(x) == group[x] for x in by)).sort(
                "user"
            )
            assert len(users) == group["users"]
            if not len(users):
                continue
            change, weight, share = users.select("difference", "weight", "share")
            mean = np.average(change.to_numpy(), weights=weight.to_numpy()) if weights else None
            mean = change.to_numpy().mean() if mean is None else mean
            assert mean == pytest.approx(group["difference"], rel=1e-14, abs=1e-17), metric
            for name, of_group in (("value", "mean"), ("baseline_value", "baseline_mean")):
                mean = math.fsum(users[name] * weight) / math.fsum(weight)
                assert mean == pytest.approx(group[of_group], rel=1e-13), metric
            assert share.null_count() in (0, len(users))
            assert share.null_count() or math.fsum(share) == pytest.approx(1)


def test_share_of_who_does_not_differ_has_no_sign():
    values = {"model": list("aabb"), "user": [1, 2] * 2, "x": [1.0, 1.0, 1.0, 0.0]}
    shares = rf.stats.differences(pl.DataFrame(values), "x", baseline="a")["share"]
    assert [str(share) for share in shares] == ["1.0", "0.0"]


QUERIES = {"old": ["shoes", "hats", "bags", "belts"], "new": ["shoes", "hats", "bags", "belts"]}
RANKS = {"old": [1, 2, 4, 1], "new": [2, 1, 4, 3]}
RUNS = {
    name: pl.DataFrame({"user": QUERIES[name], "item": 7, "rank": ranks})
    for name, ranks in RANKS.items()
}
OF_QUERIES = pl.DataFrame({"user": QUERIES["old"], "item": 7})
TEXTS = pl.DataFrame({"user": ["hats", "shoes"], "text": ["sun hats", "red shoes"], "n": [1, 2]})


def test_texts_of_queries_follow_the_user():
    call = {"truth": OF_QUERIES, "queries": TEXTS}
    got = rf.stats.differences(RUNS, "rr", **call)
    assert got.columns == ["user", "text", *NUMBERS]
    assert got.select("user", "text", "difference").rows() == [
        ("belts", None, pytest.approx(-2 / 3)),
        ("shoes", "red shoes", -0.5),
        ("bags", None, 0.0),
        ("hats", "sun hats", 0.5),
    ]
    few = rf.stats.differences(RUNS, "rr", n=1, **call)
    assert few.rows() == [got.row(0), got.row(3)]
    stacked = rf.runs.stack(RUNS)
    assert_frame_equal(stacked.rank.stats.differences("rr", **call), got)


def test_third_system_has_a_column_and_an_order():
    runs = {**RUNS, "mid": RUNS["old"]}
    got = rf.stats.differences(runs, "rr", truth=OF_QUERIES, n=1)
    assert got["model"].to_list() == ["new", "new"]  # nobody changed by the other one
    named = rf.stats.differences(runs, "rr", truth=OF_QUERIES, baseline="new")
    assert named["model"].to_list() == ["old"] * 4 + ["mid"] * 4
    as_text = rf.runs.stack(runs).with_columns(pl.col("model").cast(pl.String)).lazy()
    plan = as_text.rank.stats.differences("rr", truth=OF_QUERIES, baseline="new")
    assert plan.collect_schema() == named.schema
    assert plan.collect()["model"].to_list() == ["mid"] * 4 + ["old"] * 4


def test_users_of_several_columns_come_back_as_they_are():
    def several(frame):
        session = pl.int_range(9, 9 + pl.len())
        return frame.with_columns(wiki=pl.lit("en"), session=session).drop("user")

    runs = {name: several(run) for name, run in RUNS.items()}
    runs["new"] = runs["new"].with_columns(rank=pl.Series([2, 1, 1, 4]))
    runs["old"] = runs["old"].with_columns(rank=pl.Series([1, 1, 1, 1]))
    texts = several(OF_QUERIES).select("wiki", "session", text=pl.lit("a query"))
    call = {"user": ["wiki", "session"], "queries": texts}
    got = rf.stats.differences(runs, "hit@1", truth=several(OF_QUERIES), **call)
    assert got.columns == ["wiki", "session", "text", *NUMBERS]
    # users with one difference are in order of their numbers, not of the text of these
    assert got.select("session", "difference").rows() == [
        (9, -1.0),
        (12, -1.0),
        (10, 0.0),
        (11, 0.0),
    ]


def test_table_of_values_is_compared_as_it_is():
    table = pl.DataFrame(
        {
            "model": ["old"] * 4 + ["new"] * 4,
            "user": [*range(4)] * 2,
            "minutes": [5, 9, 7, None, 6, 11, 4, 4],
            "visits": [1.0, 0.0, 2.0, 4.0] * 2,
        }
    )
    call = {"baseline": "old", "weights": "visits"}
    got = rf.stats.differences(table, "minutes", **call)
    assert got.rows() == [(2, 4.0, 7.0, -3.0, 2.0, 1.2), (0, 6.0, 5.0, 1.0, 1.0, -0.2)]
    lower = rf.stats.differences(table, "minutes", **call, higher_is_better={"minutes": False})
    assert lower.rows() == got.rows()[::-1]
    texts = pl.DataFrame({"user": [0, 2], "name": ["Ada", "Bo"]})
    named = rf.stats.differences(table, "minutes", queries=texts, **call)
    assert named["name"].to_list() == ["Bo", "Ada"]


def test_wrong_calls_are_refused(refused):
    def wrong(**call):
        refused(rf.stats.differences, RUNS, "rr", **{"truth": OF_QUERIES, **call})

    refused(rf.stats.differences, RUNS, "rr@1,2", truth=OF_QUERIES)
    refused(rf.stats.differences, RUNS, "gmap", truth=OF_QUERIES)
    refused(rf.stats.differences, RUNS["old"], "rr", truth=OF_QUERIES)
    refused(rf.stats.differences, rf.runs.stack(RUNS).clone(), "rr", truth=OF_QUERIES)
    for n in (0, -1, 2.5, True):
        wrong(n=n)
    wrong(baseline="live")
    wrong(by="value", truth=OF_QUERIES.with_columns(value=pl.lit("a")))
    named = rf.runs.stack(RUNS).rename({"model": "value"})
    refused(rf.stats.differences, named, "rr", truth=OF_QUERIES, model="value", baseline="old")
    wrong(queries=TEXTS.drop("text"))
    wrong(queries=TEXTS.rename({"text": "share"}))
    wrong(queries=pl.concat([TEXTS, TEXTS]))
    wrong(queries=TEXTS.with_columns(user=pl.lit("none")).head(1))
    wrong(queries={"shoes": "red shoes"})
    wrong(queries=TEXTS.with_columns(user=pl.Series([1, 2])))
    several = {name: run.with_columns(value=pl.lit(1)) for name, run in RUNS.items()}
    truth = OF_QUERIES.with_columns(value=pl.lit(1))
    refused(rf.stats.differences, several, "rr", truth=truth, user=["user", "value"])
