"""Chance and ceiling, against every order of small lists, and where they refuse."""

import itertools
import random

import extension
import polars as pl
import pytest
import reference
from every_metric import FEW_WITH_FORM, WITH_FORM
from polars.testing import assert_frame_equal, assert_series_equal

import rankframe as rf
from rankframe._request import labels


def _traits(label):
    return labels.parse_metric(label).traits


#: of the others no order is the best: they read no grade, or neither direction is better
DIRECTED = [label for label in WITH_FORM if _traits(label).higher_is_better is not None]
DIRECTED = [
    label for label in DIRECTED if label.partition("@")[0] not in ("missed", "num_retrieved")
]
ASKED = [label for label in DIRECTED if reference.thorough or label in FEW_WITH_FORM]
ENDS = ["chance", "ceiling"]
#: an unjudged item above a judged one is better still for these
UNJUDGED_FIRST = ("fallout@", "num_nonrelevant(of=judged)@")
PAIRS = {"schema": ["user", "item"], "orient": "row"}


def make_tables():
    """Users with lists of up to five items, some of them nobody's, and judgments of all kinds.

    No cut-off of these labels is deeper than 3, so a sixth item shows nothing new, in 720 orders.
    """
    rng = random.Random(0)
    run, truth, out = [], [], []
    for user in range(24):
        items = rng.sample(range(12), rng.choice([0, 1, 2, 3, 4, 5, 5]))
        run += [(user, item, rank) for rank, item in enumerate(items, 1)]
        out += [(user, item) for item in items if rng.random() < 0.15]
        for item in rng.sample(range(14), rng.randint(1, 8)):
            truth.append((user, item, rng.choice([-1, 0, 0, 1, 1, 2, 3])))
    run += [(99, item, item + 1) for item in range(4)]  # nobody judged these
    return (
        pl.DataFrame(run, schema=["user", "item", "rank"], orient="row"),
        pl.DataFrame(truth, schema=["user", "item", "relevance"], orient="row"),
        pl.DataFrame(out, **PAIRS),
    )


def final_lists(run, truth, *, depth=None, unjudged="miss", exclude=None):
    """What is left of each list after the options, in the order of ranks."""
    gone = set() if exclude is None else set(exclude.rows())
    lists = {}
    for user, item, _ in run.rows():
        lists.setdefault(user, [])
        if (user, item) not in gone:
            lists[user].append(item)
    for user, items in lists.items():
        ranks = {item: rank for rank, item in enumerate(items, 1)}
        grades = {i: g for u, i, g in truth.rows() if u == user}
        lists[user] = [*reference.cut(ranks, grades, depth=depth, unjudged=unjudged)]
    return lists


OPTIONS = {
    "plain": {},
    "judged": {"users": "judged"},
    "level": {"relevant_at": 2, "undefined": 0.25, "users": "all"},
    "drop": {"unjudged": "drop", "users": "run"},
    "depth": {"depth": 3, "users": "both", "undefined": 0.5},
    "exclude": {"exclude": True, "users": "judged"},
    "both": {"exclude": True, "depth": 2, "unjudged": "drop", "users": "all"},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_chance_is_the_mean_over_every_order_and_ceiling_the_best(name):
    """Options choose rows, which a third of the labels shows; without them, all are asked."""
    asked = ASKED if reference.thorough or not OPTIONS[name] else ASKED[len(name) % 3 :: 3]
    run, truth, out = make_tables()
    options = {**OPTIONS[name]}
    if options.get("exclude"):
        options["exclude"] = out
    lists = final_lists(
        run, truth, **{n: options[n] for n in ("depth", "unjudged", "exclude") if n in options}
    )
    orders = [
        (f"{user}:{number}", item, rank)
        for user, items in lists.items()
        for number, order in enumerate(itertools.permutations(items))
        for rank, item in enumerate(order, 1)
    ]
    orders = pl.DataFrame(orders, schema=["user", "item", "rank"], orient="row")
    owner = pl.col("user").str.split(":").list.first().cast(pl.Int64)
    # each order of a list is a user of its own; one without a list is the user "7:"
    names = pl.concat(
        [orders.select("user"), truth.select(pl.format("{}:", "user").alias("user"))]
    ).unique()
    names = names.with_columns(owner=owner)
    listed = {user for user, items in lists.items() if items}
    names = names.filter(pl.col("user").str.ends_with(":") != pl.col("owner").is_in(listed))
    each = names.join(truth.rename({"user": "owner"}), on="owner").drop("owner")
    kept = {n: v for n, v in options.items() if n in ("relevant_at", "undefined")}
    every = orders.rank.per_user(*asked, truth=each, users="all", **kept)
    every = every.with_columns(pl.exclude("user").cast(pl.Float64))
    alone = run.rank.per_user(*asked, truth=truth, **options)
    got = run.with_columns(group="user").rank.evaluate(
        *asked, truth=truth.with_columns(group="user"), by="group", chance=True, **options
    )
    got = got.filter(pl.col("users") > 0)
    assert got["group"].to_list() == alone["user"].to_list()
    whole = every.group_by(owner)
    ends = {"mean": whole.mean(), "max": whole.max(), "min": whole.min()}
    ends = {
        end: alone.select("user").join(of_orders, on="user", how="left")
        for end, of_orders in ends.items()
    }
    for label in asked:
        best = "max" if _traits(label).higher_is_better else "min"
        expected = alone.select(
            "user", own=label, chance=ends["mean"][label], ceiling=ends[best][label]
        )
        for end in ENDS[: 1 if label.startswith(UNJUDGED_FIRST) else 2]:
            # a list of which nothing is left has one order
            is_listed = pl.col("user").is_in(listed)
            value = pl.when(is_listed).then(end).otherwise("own").cast(pl.Float64)
            if label.startswith("num_"):  # a sum over users, which is 0 over none
                value = value.fill_null(0)
            there = got[f"{label}_{end}"].cast(pl.Float64).alias("value")
            assert_series_equal(
                expected.select(value=value)["value"], there, check_exact=False, abs_tol=1e-9
            )


RUN = pl.DataFrame({"user": [1, 1, 1, 2, 2], "item": [7, 8, 9, 7, 5], "rank": [1, 2, 3, 1, 2]})
TRUTH = pl.DataFrame({"user": [1, 1, 2, 3], "item": [9, 4, 7, 9], "relevance": [2, 1, 1, 1]})
ADDED = ["ndcg@2", "ndcg@2_chance", "ndcg@2_ceiling"]


def test_worked_by_hand():
    got = rf.evaluate(RUN, "precision@2", "rr", truth=TRUTH, chance=True, count_users=True)
    # the one hit of user 1 is at rank 1, 2 or 3, that of user 2 at 1 or 2; user 3 has no list
    assert got.row(0, named=True) == pytest.approx(
        {
            "users": 3,
            "precision@2": (0 + 1 / 2 + 0) / 3,
            "precision@2_users": 3,
            "precision@2_chance": (2 / 3 / 2 + 1 / 2) / 3,
            "precision@2_ceiling": (1 / 2 + 1 / 2) / 3,
            "rr": (1 / 3 + 1) / 3,
            "rr_users": 3,
            "rr_chance": ((1 + 1 / 2 + 1 / 3) / 3 + (1 + 1 / 2) / 2) / 3,
            "rr_ceiling": 2 / 3,
        }
    )
    assert got.columns == [
        *("users", "precision@2", "precision@2_users", "precision@2_chance"),
        *("precision@2_ceiling", "rr", "rr_users", "rr_chance", "rr_ceiling"),
    ]


@pytest.mark.parametrize("frame", [pl.DataFrame, pl.LazyFrame])
def test_counts_alone_have_chance(frame):
    got = rf.evaluate(frame(RUN), "num_hits@2", "num_missed", truth=TRUTH, chance=True)
    assert got.lazy().collect().row(0, named=True) == {
        "users": 3,
        "num_hits@2": 1,
        "num_hits@2_chance": 2 / 3 + 1,
        "num_hits@2_ceiling": 2,
        **dict.fromkeys(("num_missed", "num_missed_chance", "num_missed_ceiling"), 1),
    }


@pytest.mark.parametrize("options", [{}, {"unjudged": "drop"}])
def test_scores_are_ranks_to_metrics_that_count_rows(options):
    asked = ("num_nonrelevant@2", "fallout@2", "bpref")
    scores = RUN.select("user", "item", score=-pl.col("rank"))
    by_ranks = rf.evaluate(RUN, *asked, truth=TRUTH, chance=True, **options)
    assert_frame_equal(rf.evaluate(scores, *asked, truth=TRUTH, chance=True, **options), by_ranks)


def test_an_unjudged_item_that_comes_twice_is_an_error():
    twice = pl.concat([RUN, RUN[:1].with_columns(rank=pl.lit(4, pl.Int64))])
    rf.evaluate(twice, "recall@1", truth=TRUTH)  # reads relevant rows alone
    with pytest.raises(rf.RankingDataError, match=r"duplicate .*duplicates='first'"):
        rf.evaluate(twice, "recall@1", truth=TRUTH, chance=True)
    cured = rf.evaluate(twice, "recall@1", truth=TRUTH, chance=True, duplicates="first")
    assert_frame_equal(cured, rf.evaluate(RUN, "recall@1", truth=TRUTH, chance=True))


def test_ways_in_have_the_same_values():
    expected = rf.evaluate(RUN, "ndcg@2", truth=TRUTH, chance=True)
    assert expected.columns == ["users", *ADDED]
    calls = {
        "judged": lambda: RUN.rank.judge(TRUTH).rank.evaluate("ndcg@2", users="truth", chance=True),
        "lazy judged": lambda: (
            RUN.lazy()
            .rank.judge(TRUTH)
            .rank.evaluate("ndcg@2", users="truth", chance=True)
            .collect()
        ),
        "scores": lambda: rf.evaluate(
            RUN.select("user", "item", score=-pl.col("rank")), "ndcg@2", truth=TRUTH, chance=True
        ),
        "dict": lambda: rf.evaluate({"a": RUN}, "ndcg@2", truth=TRUTH, chance=True).drop("model"),
        "renamed": lambda: rf.evaluate(
            RUN, rf.metrics.ndcg_at(2).alias("x"), truth=TRUTH, chance=True
        ).rename(lambda name: name.replace("x", "ndcg@2")),
    }
    for call in calls.values():
        assert_frame_equal(call(), expected)
    plain = rf.evaluate(RUN, "precision@2", truth=TRUTH, chance=True)
    bounded = rf.evaluate(RUN, "precision@2", truth=TRUTH, chance=True, unjudged="bounds")
    assert_frame_equal(bounded.select(plain.columns), plain)


def test_text_ids_groups_totals_and_weights():
    run, truth, _ = make_tables()
    text = pl.format("u{}", "user").alias("user")
    weight = (pl.col("user") % 3).alias("weight")
    run = run.with_columns(text, country=pl.col("user") % 2)
    truth = truth.with_columns(text, weight)
    options = {"truth": truth, "users": "both", "weights": "weight"}
    got = rf.evaluate(run, "ndcg@3", by="country", total=True, chance=True, **options)
    each = rf.evaluate(
        run.with_columns(group="user"),
        "ndcg@3",
        by="group",
        chance=True,
        truth=truth.with_columns(group="user"),
        users="both",
    ).drop_nulls()
    number = pl.col("group").str.slice(1).cast(pl.Int64)
    for country, here in ((0, number % 2 == 0), (1, number % 2 == 1), (None, number >= 0)):
        users = each.filter(here)
        weights = users.select(number % 3).to_series()
        row = got.filter(pl.col("country").eq_missing(country))
        for end in ENDS:
            mean = (users[f"ndcg@3_{end}"] * weights).sum() / weights.sum()
            assert row[f"ndcg@3_{end}"].item() == pytest.approx(mean)


def test_gaps_and_ties_change_neither():
    run, truth, _ = make_tables()
    expected = rf.evaluate(run, "ap", "ndcg@3", "bpref", truth=truth, chance=True)
    same = [f"{label}_{end}" for label in ("ap", "ndcg@3", "bpref") for end in ENDS]
    holes = run.with_columns(pl.col("rank") * 3 - 1)
    scores = run.select("user", "item", score=pl.col("rank") // 3).rank.with_rank(ties="expected")
    for other in (
        holes,
        scores,
        run.with_columns(pl.col("rank").rank("dense", descending=True).over("user")),
    ):
        got = rf.evaluate(other, "ap", "ndcg@3", "bpref", truth=truth, chance=True)
        assert_frame_equal(got.select(same), expected.select(same))


def test_ceiling_is_the_stage_of_the_funnel():
    run, truth, _ = make_tables()
    for label, options in (("ndcg@3", {}), ("recall@2", {"depth": 4}), ("ap", {"relevant_at": 2})):
        means = rf.evaluate(run, label, truth=truth, chance=True, **options)
        stages = rf.stats.funnel(run, label, truth=truth, **options)
        ceiling = stages.filter(stage="candidates")["value"].item()
        assert means[f"{label}_ceiling"].item() == pytest.approx(ceiling)


def test_random_lists_are_at_chance_and_ideal_ones_at_the_ceiling():
    rng = random.Random(1)
    truth = [
        (user, item, 1 + item % 3) for user in range(2_000) for item in rng.sample(range(40), 4)
    ]
    truth = pl.DataFrame(truth, schema=["user", "item", "relevance"], orient="row")
    lists = [
        (user, item, rank)
        for user in range(2_000)
        for rank, item in enumerate(rng.sample(range(40), 15), 1)
    ]
    run = pl.DataFrame(lists, schema=["user", "item", "rank"], orient="row")
    asked = ("ndcg@5", "recall@5", "rr", "ap")
    means = rf.evaluate(run, *asked, truth=truth, chance=True).row(0, named=True)
    spread = rf.summarize(run, *asked, truth=truth, confidence=0.999)
    for label, low, high in spread.select("metric", "ci_low", "ci_high").rows():
        assert low < means[f"{label}_chance"] < high < means[f"{label}_ceiling"]
    best = run.join(truth, on=["user", "item"], how="left").sort(
        "relevance", descending=True, nulls_last=True
    )
    best = best.with_columns(rank=pl.int_range(1, pl.len() + 1).over("user")).drop("relevance")
    ideal = rf.evaluate(best, *asked, truth=truth, chance=True).row(0, named=True)
    whole = truth.sort("relevance", descending=True).select(
        "user", "item", rank=pl.int_range(1, 5).over("user")
    )
    whole = rf.evaluate(whole, *asked, truth=truth, chance=True).row(0, named=True)
    for label in asked:
        assert ideal[label] == pytest.approx(ideal[f"{label}_ceiling"])
        assert ideal[label] == pytest.approx(means[f"{label}_ceiling"])
        assert whole[label] == pytest.approx(1) == whole[f"{label}_ceiling"]


def test_a_call_that_repeats_keeps_its_options():
    for _ in range(3):
        assert rf.evaluate(RUN, "ndcg@2", truth=TRUTH).columns == ["users", "ndcg@2"]
        assert rf.evaluate(RUN, "ndcg@2", truth=TRUTH, chance=True).columns == ["users", *ADDED]


SUBTOPICS = TRUTH.with_columns(subtopic=1)


@pytest.mark.parametrize(
    ("label", "options", "why"),
    [
        ("err@2", {}, "it reads 'rank', which has no exact expectation in random order"),
        ("auc@2", {}, "no exact expectation"),
        ("gmap", {}, "a geometric mean has no exact expectation"),
        ("novelty@2", {"history": TRUTH.select("user", "item")}, "it reads no grade"),
        ("gini@2", {"history": TRUTH.select("user", "item")}, "it is one number for all lists"),
        ("rbp_residual", {}, "it is not declared whether higher or lower is better"),
        ("subtopic_recall@2", {"truth": SUBTOPICS}, "which order of subtopics is the best"),
        (pl.col("hits").max().alias("own"), {}, "not declared whether higher or lower is"),
    ],
)  # fmt: skip
def test_metrics_without_chance_are_refused(label, options, why):
    name = "own" if isinstance(label, pl.Expr) else label
    with pytest.raises(ValueError, match=f"metric '{name}'.*{why}"):
        rf.evaluate(RUN, label, "ndcg@2", **{"truth": TRUTH, **options}, chance=True)
    # the cure: leave it out
    rf.evaluate(RUN, "ndcg@2", truth=TRUTH, chance=True)


@extension.unchanged_registry()
def test_an_infinite_expectation_is_an_error():
    @rf.register_metric("no_chance", in_ties=lambda: pl.col("relevant").sum() / 0)
    def no_chance() -> pl.Expr:
        return pl.col("hits").max().fill_null(0)

    assert rf.evaluate(RUN, "no_chance", truth=TRUTH).height == 1
    with pytest.raises(rf.RankingDataError, match="'no_chance_chance'.*not a finite number"):
        rf.evaluate(RUN, "no_chance", truth=TRUTH, chance=True)


def test_a_name_that_is_taken_and_a_wrong_value():
    taken = rf.metrics.recall_at(1).alias("ndcg@2_chance")
    with pytest.raises(ValueError, match="two output columns are called 'ndcg@2_chance'"):
        rf.evaluate(RUN, "ndcg@2", taken, truth=TRUTH, chance=True)
    with pytest.raises(TypeError, match="chance must be True or False, not 1"):
        rf.evaluate(RUN, "ndcg@2", truth=TRUTH, chance=1)
