"""Users are closed under the key: parts of the tables, each by itself, add up to the whole."""

import pickle
from dataclasses import replace

import polars as pl
import pytest
from every_metric import CALLS, EVERY_METRIC, SPECIAL_MEANS
from two_models import RUN, TRUTH, A, assert_same

import rankframe as rf
from rankframe._evaluation.evaluation import plan_means, plan_values
from rankframe._request.keywords import Settings, read_options
from rankframe._request.labels import parse_metric
from rankframe._request.question import Totals, ask
from rankframe._request.registry import reading_of
from rankframe.parts._numbers import SCHEMA, means_of_plan, numbers_alone, numbers_of
from rankframe.parts._partitions import judged_of, needs_of, values_of
from rankframe.parts._recipes import keeps_rules

#: one of each function: the parts are many, and the options are the same expressions
_LABELS = {function: label for label, (function, _) in CALLS.items()}
METRICS = [EVERY_METRIC[label] for label in _LABELS.values()]
WHOLE = Totals(TRUTH["relevance"].max(), RUN.select("model").unique())


# user 20 is in no run, user 1 in no truth; the parts have top grades of 1 to 3
PARTS = [
    [20],
    [1, 2],
    [3, 7, 8],
    [9, 17],
    [99],
    [*range(4, 7), *range(10, 17), 18, 19, *range(21, 40), 0],
]


def parts(run, truth):
    """Split both tables by user; a part may be empty, or hold rows of one table only."""
    for users in PARTS:
        mine = pl.col("user").is_in(users)
        yield run.lazy().filter(mine), truth.lazy().filter(mine), WHOLE


def test_a_question_is_pickled_as_it_was_asked():
    question = ask(pl.LazyFrame(), ["gmap", rf.metrics.ndcg_at(3)], None, "model", Settings())
    again = pickle.loads(pickle.dumps(question))
    assert "requested" in vars(question)
    assert "requested" not in vars(again)
    assert [metric.name for metric in again.requested] == ["gmap", "ndcg@3"]
    got, expected = (
        plan_values(each.of(RUN, TRUTH)).rows.sort("model", "user").collect()
        for each in (again, question)
    )
    assert_same(got, expected)


def added_up(question, run):
    frames = [numbers_of(question, *part).collect() for part in parts(run, TRUTH)]
    return numbers_alone(pl.concat(frames))


def test_the_parts_differ():
    tops = [truth.collect()["relevance"].max() for _, truth, _ in parts(A, TRUTH)]
    assert len(set(tops)) > 2
    heights = [(run.collect().height, truth.collect().height) for run, truth, _ in parts(A, TRUTH)]
    assert heights[0][0] == 0 < heights[0][1]
    assert heights[4] == (0, 0)


@pytest.mark.sample(6)
@pytest.mark.parametrize("by", [["model"], []])
@pytest.mark.parametrize("options", [{}, {"users": "all"}, {"unjudged": "drop"}])
def test_parts_add_up_to_the_whole(by, options):
    run = RUN if by else A
    settings = Settings(**options)
    question = ask(run, METRICS, TRUTH, by, settings, per_user=True)
    got = pl.concat(values_of(question, *part).collect() for part in parts(run, TRUTH))
    expected = rf.per_user(run, *METRICS, truth=TRUTH, by=by, **options)
    assert_same(got.sort(*by, "user"), expected, check_dtypes=True)

    metrics = [*METRICS, *SPECIAL_MEANS]
    question = ask(run.clear(), metrics, TRUTH.clear(), by, settings)
    numbers = added_up(question, run)
    plan = plan_means(question)
    expected = rf.evaluate(run, *metrics, truth=TRUTH, by=by, **options)
    assert_same(means_of_plan(numbers, plan, total=False), expected, check_dtypes=True)


@pytest.mark.parametrize("by", [[], ["model"]])
def test_a_part_with_a_common_user_proves_that_tables_meet(by):
    run = RUN if by else A
    question = ask(run, ["map"], TRUTH, by, Settings())
    plan = plan_means(question)
    for part in parts(run, TRUTH):
        users = [set(table.collect()["user"]) for table in part[:2]]
        numbers = numbers_of(question, *part).collect()
        assert keeps_rules(numbers, plan) is bool(users[0] & users[1])
    apart = run.filter(user=1).lazy(), TRUTH.filter(user=20).lazy(), WHOLE
    assert not keeps_rules(numbers_of(question, *apart).collect(), plan)


def test_no_part_proves_nothing_and_has_no_users():
    plan = plan_means(ask(A, ["map", "num_hits"], TRUTH, [], Settings()))
    nothing = pl.DataFrame(schema=SCHEMA)
    assert not keeps_rules(nothing, plan)
    assert means_of_plan(nothing, plan, total=False).rows() == [(0, None, None)]
    plan = plan_means(ask(RUN, ["map"], TRUTH, ["model"], Settings()))
    assert means_of_plan(nothing, plan, total=False).is_empty()


def test_means_of_what_is_not_a_number_of_ours():
    """Booleans, durations and unsigned counts have a mean, too; sums of 8 bits do not wrap."""
    metrics = [
        pl.col("relevance").max().ge(2).alias("high"),
        pl.duration(minutes=pl.col("minutes").filter("relevant").max()).alias("time"),
        pl.len().cast(pl.UInt8).alias("rows") * 20,
        pl.lit(None).alias("nothing"),
    ]
    question = ask(A.clear(), metrics, TRUTH.clear(), [], Settings())
    numbers = added_up(question, A)
    plan = plan_means(question)
    expected = rf.evaluate(A, *metrics, truth=TRUTH)
    assert expected["rows"].item() * expected["users"].item() > 255
    assert_same(means_of_plan(numbers, plan, total=False), expected, check_dtypes=True)


def test_subtopics_are_of_a_user():
    truth = pl.concat([TRUTH, TRUTH.with_columns(pl.col("relevance") - 1)])
    truth = truth.with_columns(subtopic=(pl.col("item") + pl.col("relevance")) % 4)
    truth = truth.unique(["user", "item", "subtopic"], keep="first", maintain_order=True)
    split = [
        expr
        for expr in EVERY_METRIC.values()
        if reading_of(expr.meta.root_names(), has_subtopics=True).scope == "subtopic"
    ]
    assert split
    metrics = list({expr.meta.output_name(): expr for expr in [*split, *METRICS]}.values())
    question = ask(A, metrics, truth, [], Settings(), per_user=True)
    got = pl.concat(values_of(question, *part).collect() for part in parts(A, truth))
    assert_same(got.sort("user"), rf.per_user(A, *metrics, truth=truth))


def test_a_judged_table_is_made_part_by_part():
    got = pl.concat(
        judged_of(*part, by="model", settings=Settings()).collect() for part in parts(RUN, TRUTH)
    )
    expected = rf.judge(RUN, TRUTH, by="model")
    assert_same(got.sort("model", "user", "rank", "item", nulls_last=True), expected)


def test_below_its_cut_off_a_metric_reads_nothing():
    cuts = {label: parse_metric(expr).cut_off for label, expr in EVERY_METRIC.items()}
    for label, cut in cuts.items():
        name, _, k = label.partition("@")
        assert cut == (int(k) if k and name not in ("pauc", "pap") else None)
    for k in (1, 3, 10):
        metrics = [
            expr
            for label, expr in EVERY_METRIC.items()
            if cuts[label] == k and not reading_of(expr.meta.root_names()).depends_on_below
        ]
        assert len(metrics) > 20
        short = A.filter(pl.col("rank") <= k)
        assert_same(
            short.rank.per_user(*metrics, truth=TRUTH), A.rank.per_user(*metrics, truth=TRUTH)
        )


def test_cut_offs_are_read_off_the_expression():
    assert (
        parse_metric(rf.metrics.of_label("P_10")).cut_off
        == parse_metric(rf.metrics.precision_at(10).alias("x")).cut_off
        == 10
    )
    assert parse_metric(rf.metrics.of_label("map")).cut_off is None
    own = pl.col("rank").max().alias("precision@10")
    assert parse_metric(own).cut_off is None


@pytest.mark.parametrize(
    ("metrics", "options", "depth", "relevant"),
    [
        (["precision@3", "ndcg@10"], {}, 10, True),
        (["precision@3", "map"], {}, None, True),
        (["precision(divide_by=returned)@3"], {}, None, True),
        (["ndcg(ideal=returned)@3"], {}, None, True),
        (["precision@3", "bpref"], {}, None, False),
        (["map"], {"depth": 5}, 5, True),
        (["precision@3"], {"users": "judged"}, 3, False),
        (["precision@3"], {"users": "run"}, 3, False),
        (["precision@3", "missed", "num_missed"], {}, 3, True),
        (["precision@3", "num_ret"], {}, None, False),
        (["precision@3"], {"count_missed": True}, 3, True),
        (["precision@3"], {"unjudged": "drop"}, None, False),
        (["precision@3"], {"by": "model"}, 3, True),
        (["precision@3"], {"by": "genre"}, None, False),
        ([pl.len().alias("n"), "precision@3"], {}, None, True),
    ],
)
def test_what_must_go_into_a_shuffle(metrics, options, depth, relevant):
    by, count_missed = options.pop("by", []), options.pop("count_missed", False)
    settings = read_options(options)
    settings = replace(settings, count_missed=count_missed)
    plan = plan_values(ask(RUN, metrics, TRUTH, by, settings, per_user=True))
    needs = needs_of(plan, settings)
    assert (needs.depth, needs.relevant) == (depth, relevant)
    needs = needs_of(plan, replace(settings, unjudged="bounds"))
    assert (needs.depth, needs.relevant) == (None, False)


def test_the_top_grade_is_asked_for_where_it_is_read():
    for metric, needed in [
        ("err@3", True),
        (pl.col("survival").min().alias("x"), True),
        ("err(max_grade=4)@3", False),
        ("ndcg@3", False),
    ]:
        plan = plan_values(ask(A, [metric], TRUTH, [], Settings(), per_user=True))
        assert needs_of(plan, Settings()).top_grade is needed
        assert needs_of(plan, Settings(unjudged="bounds")).top_grade
