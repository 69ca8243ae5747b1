"""An accumulator in loops is ``evaluate`` of all batches."""

import pickle
import random
from datetime import date

import pandas
import polars as pl
import pytest
import reference
from every_metric import OF_EACH_COLUMN, SPECIAL_MEANS
from hypothesis import given, settings
from hypothesis import strategies as st
from lists_and_shares import OF_ALL, WORLD, labels_at
from polars.testing import assert_frame_equal
from two_models import (
    EXACT,
    EXACT_CALLS,
    RUN,
    TRUTH,
    USERS,
    WITH_WEIGHTS,
    A,
    assert_equal,
    assert_same,
    many_users,
    split,
)

import rankframe as rf

ITEMS = pl.DataFrame({"item": range(32)})
ASKED = ["rr", "err@3", "gmap", "ndcg@3", "rbp(gain=graded)", "num_hits", "coverage@3", "gini@3"]
FACTS = rf.parts.facts(RUN, truth=TRUTH, by="model")
FACTS_OF_A = rf.parts.facts(A, truth=TRUTH)


def met(run, *metrics, truth, places=USERS, **options):
    meter = rf.Meter(*metrics, **options)
    for some, judgments in split(run, truth, places):
        meter.update(some, judgments)
    return meter


# ------------------------------------------------------------------ what the whole must tell


def test_model_of_a_later_batch_must_be_in_the_first_or_in_facts():
    rows = [("a", user, 7, 1) for user in (1, 2, 3, 4)] + [("b", 3, 7, 1), ("b", 4, 7, 1)]
    run = pl.DataFrame(rows, schema=["model", "user", "item", "rank"], orient="row")
    truth = pl.DataFrame({"user": [1, 2, 3, 4], "item": 7})
    options, late = {"truth": truth, "by": "model"}, [[1, 2], [3, 4]]
    facts = rf.parts.facts(run, **options)
    for got in (
        met(run, "rr", places=late[::-1], **options),
        met(run, "rr", places=late, facts=facts, **options),
        met(run, "rr", places=late, facts=facts | {"users": 0}, **options),  # is not read
    ):
        assert got.compute().rows() == [("a", 4, 1.0), ("b", 4, 0.5)]
    meter = met(run, "rr", places=late[:1], **options)
    text = "run: model='b' is in this batch and not in the first, .* facts=rf.parts.facts"
    with pytest.raises(rf.RankingDataError, match=text):
        meter.update(run.filter(pl.col("user") > 2), truth.filter(pl.col("user") > 2))
    assert meter.compute().rows() == [("a", 2, 1.0)]
    with pytest.raises(rf.RankingDataError, match="first batches of the meters have other groups"):
        meter.merge(met(run, "rr", places=late[1:], **options))
    with pytest.raises(ValueError, match="the meters differ in facts=: pass the same"):
        meter.merge(met(run, "rr", places=late[1:], facts=facts, **options))
    less = rf.parts.facts(run.filter(model="a"), **options)
    with pytest.raises(
        rf.RankingDataError, match="facts=: they lack a group of this part, model='"
    ):
        met(run, "rr", facts=less, places=late, **options)


@pytest.mark.parametrize("metric", ["err", "rbp(gain=graded)"])
def test_highest_grade_is_named_or_in_facts(metric):
    run = pl.DataFrame({"user": [1, 2], "item": 7, "rank": 1})
    truth = pl.DataFrame({"user": [1, 2], "item": 7, "relevance": [1, 2]})
    facts = rf.parts.facts(run, truth=truth)
    meter = met(run, metric, truth=truth, places=[[1], [2]], facts=facts)
    assert meter.compute().equals(rf.evaluate(run, metric, truth=truth))
    named = f"{metric[:-1]}, max_grade=2)" if "(" in metric else f"{metric}(max_grade=2)"
    meter = met(run, named, truth=truth, places=[[1], [2]])
    assert meter.compute().equals(rf.evaluate(run, named, truth=truth))
    cure = r"reads the highest grade of the whole truth, .*max_grade=4\)', or pass facts=rf.parts"
    with pytest.raises(ValueError, match=cure):
        rf.Meter(metric)
    with pytest.raises(rf.RankingDataError, match="highest grade is 1, and this part has 2"):
        met(run, metric, truth=truth, facts=facts | {"top_grade": 1}, places=[[1], [2]])


def test_a_batch_that_shares_no_user_with_its_truth():
    run = pl.DataFrame({"user": [1, 2], "item": 7, "rank": 1})
    truth = pl.DataFrame({"user": [2, 3], "item": 7})
    assert met(run, "rr", truth=truth, places=[[1, 3], [2], []]).compute().rows() == [(2, 0.5)]


# ------------------------------------------------------------------ as evaluate


def made(users):
    """Model b has no list for most users."""
    rng = random.Random(11)
    run, truth = [], []
    for user in range(users):
        for model in "ab" if user % 10 == 0 else "a":
            items = rng.sample(range(30), rng.randint(1, 8))
            run += [(model, user, item, rank) for rank, item in enumerate(items, 1)]
        truth += [
            (user, item, rng.choice([0, 1, 1, 2 + user // 200]))
            for item in rng.sample(range(30), 5)
        ]
    return (
        pl.DataFrame(run, schema=["model", "user", "item", "rank"], orient="row"),
        pl.DataFrame(truth, schema=["user", "item", "relevance"], orient="row"),
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize("by", [["model"], []])
def test_metrics_of_users(by):
    run, metrics = RUN if by else A, [*OF_EACH_COLUMN.values(), *SPECIAL_MEANS]
    facts = FACTS if by else FACTS_OF_A
    places = [range(15), range(15, 40)]
    meter = met(run, *metrics, truth=TRUTH, by=by, places=places, facts=facts)
    assert_same(meter.compute(), rf.evaluate(run, *metrics, truth=TRUTH, by=by), check_dtypes=True)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "options",
    [
        {"users": "all"},
        {"users": "run", "count_users": True},
        {"users": "both", "undefined": 0.0},
        {"users": "judged"},
        {"unjudged": "drop"},
        {"depth": 2},
        {"unjudged": "bounds"},
        {"relevant_at": 2},
        {"exclude": RUN.filter(pl.col("rank") == 1).select("user", "item", "model")},
    ],
    ids=str,
)
def test_options_and_totals(options):
    metrics = ["rr", "err@3", "precision@3", "rbp(gain=graded)"]
    meter = met(RUN, *metrics, truth=TRUTH, by="model", facts=FACTS, **options)
    expected = rf.evaluate(RUN, *metrics, truth=TRUTH, by="model", total=True, **options)
    assert_same(meter.compute(total=True), expected, check_dtypes=True)


def test_a_column_of_the_truth_alone_and_weights():
    truth = TRUTH.with_columns(country=pl.col("user") % 3, w=pl.col("user") % 4)
    options = {"by": ["model", "country"], "weights": "w"}
    for places in (USERS, USERS[::-1]):
        meter = met(RUN, "rr", "err", truth=truth, places=places, facts=FACTS, **options)
        expected = rf.evaluate(RUN, "rr", "err", truth=truth, total=True, **options)
        assert_same(meter.compute(total=True), expected)


def test_metrics_of_all_lists():
    tables = WORLD.tables()
    run, truth = tables.pop("run"), tables.pop("truth")
    labels = labels_at(3, OF_ALL)
    run = pl.concat(
        [
            run.with_columns(model=pl.lit("a")),
            run.filter(user=1, rank=1).with_columns(model=pl.lit("b")),
        ]
    )
    facts = rf.parts.facts(run, truth=truth, by="model")
    for places in ([[0, 2], [1], [3]], [[1], [3, 0], [2]]):
        meter = met(run, *labels, truth=truth, by="model", places=places, facts=facts, **tables)
        expected = rf.evaluate(run, *labels, truth=truth, by="model", **tables)
        assert_same(meter.compute(), expected, rel_tol=1e-11, abs_tol=1e-11)


def test_judged_tables_scores_and_ties():
    judged = rf.judge(RUN, TRUTH, by="model")
    facts = rf.parts.facts(judged, by="model")
    meter = rf.Meter("rr", "err", "bpref", by="model", users="truth", facts=facts)
    for some in USERS:
        meter.update(judged.filter(pl.col("user").is_in(some)))
    assert_same(meter.compute(), rf.evaluate(judged, "rr", "err", "bpref", by="model"))
    scored = A.with_columns(score=-(pl.col("rank") // 2)).drop("rank")
    metrics = ["rr", "err@3", "rbp(gain=graded)"]
    for run, asked in ((scored, metrics), (rf.with_rank(scored, ties="expected"), metrics[::2])):
        meter = met(run, *asked, truth=TRUTH, facts=FACTS_OF_A)
        assert_same(meter.compute(), rf.evaluate(run, *asked, truth=TRUTH))


def test_text_ids_other_names_and_own_columns():
    run = A.select(who="user", what="item", place="rank", minutes="minutes")
    run = run.with_columns(pl.col("who", "what").cast(pl.String))
    truth = TRUTH.select(who="user", what="item", liked="relevance")
    truth = truth.with_columns(pl.col("who", "what").cast(pl.String))
    names = {"user": "who", "item": "what", "rank": "place", "relevance": "liked"}
    own = (pl.col("survival") * pl.col("minutes")).filter("relevant").sum().alias("own")
    meter = rf.Meter("err", own, "rr", facts=FACTS_OF_A, **names)
    for some in USERS:
        mine = pl.col("who").is_in([str(user) for user in some])
        meter.update(run.filter(mine), truth.filter(mine))
    assert_same(meter.compute(), rf.evaluate(run, "err", own, "rr", truth=truth, **names))


@pytest.mark.thorough
@settings(deadline=None, max_examples=reference.drawn(8))
@given(st.data())
def test_any_batches_in_any_meters(data):
    places = data.draw(st.lists(st.integers(0, 5), min_size=40, max_size=40))
    meters = [rf.Meter(*ASKED, by="model", items=ITEMS, facts=FACTS) for _ in range(3)]
    for place in range(6):
        mine = pl.col("user").is_in([user for user in range(40) if places[user] == place])
        meters[data.draw(st.integers(0, 2))].update(RUN.filter(mine), TRUTH.filter(mine))
    first, second, third = data.draw(st.permutations(meters))
    second.merge(pickle.loads(pickle.dumps(third)))
    first.merge(second)
    expected = rf.evaluate(RUN, *ASKED, truth=TRUTH, by="model", items=ITEMS)
    assert_same(first.compute(), expected, check_dtypes=True)


@settings(deadline=None, max_examples=reference.drawn(6))
@given(st.data(), st.sampled_from(EXACT_CALLS))
def test_any_batches_in_any_meters_have_the_bits_of_evaluate(data, options):
    seed = data.draw(st.integers(0, 2**32))
    rng = random.Random(seed)
    run, truth = many_users(seed % 5)
    options = dict(options)
    total, metrics = options.pop("total", False), WITH_WEIGHTS if "weights" in options else EXACT
    if not options["by"]:
        run = run.filter(model="a").drop("model")
    expected = rf.evaluate(run, *metrics, truth=truth, total=total, **options)
    places = [rng.randrange(8) for _ in range(150)]
    meters = [rf.Meter(*metrics, **options) for _ in range(3)]
    for place in rng.sample(range(8), 8):
        mine = pl.col("user").is_in([user for user in range(150) if places[user] == place])
        rng.choice(meters).update(run.filter(mine), truth.filter(mine))
    first, second, third = rng.sample(meters, 3)
    second.merge(pickle.loads(pickle.dumps(third)))
    first.merge(second)
    assert_frame_equal(first.compute(total=total), expected, check_exact=True)


# ------------------------------------------------------------------ its shape


def test_compute_goes_on_and_reset_forgets():
    meter = rf.Meter("rr", "err", facts=FACTS_OF_A)
    with pytest.raises(rf.RankingDataError, match="call update first"):
        meter.compute()
    parts = list(split(A, TRUTH, [range(20), range(20, 40)]))
    meter.update(*parts[0])
    assert_same(meter.compute(), rf.evaluate(parts[0][0], "rr", "err", truth=parts[0][1]))
    meter.update(*parts[1])
    assert_same(meter.compute(), rf.evaluate(A, "rr", "err", truth=TRUTH))
    assert "'rr', 'err'" in repr(meter)
    meter.reset()
    assert repr(meter) == "Meter('rr', 'err'): 0 users"
    meter.update(*parts[0])
    assert_same(meter.compute(), rf.evaluate(parts[0][0], "rr", "err", truth=parts[0][1]))


def test_pandas_lazy_frames_and_dicts_of_runs():
    expected = rf.evaluate(RUN, "rr", "err", truth=TRUTH, by="model")
    options = {"by": "model", "facts": FACTS}
    meter = rf.Meter("rr", "err", **options)
    for run, truth in split(RUN, TRUTH):
        meter.update(run.to_pandas(), truth.to_pandas())
    meter = pickle.loads(pickle.dumps(meter))
    got = meter.compute()
    assert isinstance(got, pandas.DataFrame)
    typed = pickle.loads(pickle.dumps(rf.Meter[pandas.DataFrame]("rr", "err", **options)))
    typed.merge(meter)
    assert typed.compute().equals(got)
    assert_same(pl.from_pandas(got), expected)
    meter = met(RUN.lazy(), "rr", "err", truth=TRUTH.lazy(), **options)
    assert isinstance(meter.compute(), pl.DataFrame)
    assert_same(meter.compute(), expected)
    meter = rf.Meter("rr", "err", facts=FACTS)
    for run, truth in split(RUN, TRUTH):
        meter.update({name: run.filter(model=name).drop("model") for name in "ab"}, truth)
    assert_same(meter.compute(), expected)


def test_a_user_in_two_updates_raises_and_changes_nothing():
    meter = rf.Meter("rr", "map")
    first, second = split(A, TRUTH, [range(20), range(19, 40)])
    meter.update(*first)
    with pytest.raises(rf.RankingDataError, match=r"a user is in two batches: .*: user=19$"):
        meter.update(*second)
    assert_same(meter.compute(), rf.evaluate(first[0], "rr", "map", truth=first[1]))
    other = rf.Meter("rr", "map")
    other.update(*second)
    with pytest.raises(rf.RankingDataError, match="user=19"):
        meter.merge(other)


def of_days(users):
    """Users return on other days, with other lists and other likes."""
    run, truth = made(users)
    days = range(1, 4)
    return (
        pl.concat(run.with_columns(day=day, item=(pl.col("item") + day) % 30) for day in days),
        pl.concat(truth.filter(pl.col("user") % 5 != day).with_columns(day=day) for day in days),
    )


@pytest.mark.parametrize("by", ["day", ["model", "day"]])
@pytest.mark.parametrize("metrics", [["rr", "coverage@3"], ["rr", "err@3", "ndcg@3"]])
def test_a_user_may_return_on_another_day(by, metrics):
    run, truth = of_days(40)
    if by == "day":
        run = run.filter(model="a").drop("model")
    options = {"by": by, "items": ITEMS}
    expected = rf.evaluate(run, *metrics, truth=truth, total=True, **options)
    options["facts"] = rf.parts.facts(run, truth=truth, by=by)
    meters = [rf.Meter(*metrics, **options) for _ in range(2)]
    for day in (2, 3, 1):
        for some in (range(20), range(20, 40)):
            mine = pl.col("user").is_in(some) & (pl.col("day") == day)
            meters[day % 2].update(run.filter(mine), truth.filter(mine))
    meters[0].merge(pickle.loads(pickle.dumps(meters[1])))
    assert_same(meters[0].compute(total=True), expected, check_dtypes=True)
    assert repr(meters[0]).endswith(": 120 users")  # (day, user), as in compute
    again = pl.col("user").is_in([7, 8]) & (pl.col("day") == 3)
    with pytest.raises(
        rf.RankingDataError, match=r"put all rows of a user into one. .*: day=3, user=7$"
    ):
        meters[0].update(run.filter(again), truth.filter(again))
    assert_same(meters[0].compute(total=True), expected, check_dtypes=True)


def test_days_of_the_run_alone_do_not_part_a_user():
    """The truth judges all days together, so a later day would be another list of the same unit."""
    run, truth = of_days(10)
    run, truth = run.filter(model="a").drop("model"), truth.filter(day=1).drop("day")
    meter = rf.Meter("rr", by="day", facts=rf.parts.facts(run, truth=truth, by="day"))
    meter.update(run.filter(day=1), truth)
    with pytest.raises(rf.RankingDataError, match=r"such as day. Offending row: user=0$"):
        meter.update(run.filter(day=2), truth)


def split_lists():
    """One list of a user in two batches, each with the judgments of another country."""
    run = pl.DataFrame({"user": [1, 1], "item": ["a", "b"], "rank": [1, 2]})
    truth = pl.DataFrame({"user": [1, 1], "country": ["de", "fr"], "item": ["a", "b"]})
    return [
        (run.filter(rank=rank), truth.filter(country=country))
        for rank, country in ((1, "fr"), (2, "de"))
    ]


def test_groups_of_the_truth_alone_do_not_part_a_user():
    meter = rf.Meter("rr", by="country")
    first, second = split_lists()
    meter.update(*first)
    with pytest.raises(rf.RankingDataError, match=r"column of both tables .* row: user=1$"):
        meter.update(*second)
    whole = [pl.concat(tables) for tables in zip(first, second, strict=True)]
    facts = rf.parts.facts(whole[0], truth=whole[1], by="country")
    assert facts["users"] == 1
    parts = [
        rf.parts.sums(run, "rr", truth=truth, by="country", facts=facts, part=str(rank))
        for rank, (run, truth) in enumerate((first, second))
    ]
    with pytest.raises(rf.RankingDataError, match="they have 2 users, but the facts have 1"):
        rf.parts.combine(parts)


def test_the_run_has_the_same_groups_in_all_batches():
    meter = rf.Meter("rr", by="country")
    truth = pl.DataFrame({"user": [1], "country": "de", "item": "a"})
    meter.update(truth.with_columns(rank=1), truth)
    with pytest.raises(rf.RankingDataError, match="give it the same columns of by="):
        meter.update(truth.drop("country").with_columns(rank=1), truth)


def test_a_user_of_judged_tables_may_return_on_another_day():
    run, truth = of_days(20)
    judged = rf.judge(run.filter(model="a").drop("model"), truth, by="day")
    meter = rf.Meter("rr", "map", by="day", users="truth")
    for day in (1, 2, 3):
        meter.update(judged.filter(day=day))
    assert_same(meter.compute(), rf.evaluate(judged, "rr", "map", by="day", users="truth"))
    with pytest.raises(rf.RankingDataError, match="day=2, user=0$"):
        meter.update(judged.filter(day=2))


def test_days_of_every_kind():
    days = [date(2026, 11, 1), date(2026, 11, 2)]
    kinds = [pl.Series(days), pl.Series(["1", "2"], dtype=pl.Categorical), pl.Series(["1", "2"])]
    for dtype in (pl.Int8, pl.UInt64, pl.Datetime("ms"), pl.Enum(["1", "2"])):
        kinds.append(
            pl.Series(["1", "2"]).cast(dtype)
            if dtype != pl.Datetime
            else pl.Series(days).cast(dtype)
        )
    for day in kinds:
        run = pl.DataFrame({"day": day, "user": 1, "item": "a", "rank": 1})
        meter = rf.Meter("rr", by="day")
        for place in range(2):
            meter.update(run[place : place + 1], run[place : place + 1].drop("rank"))
        assert_equal(meter.compute(), rf.evaluate(run, "rr", truth=run.drop("rank"), by="day"))
        assert repr(meter) == "Meter('rr'): 2 users"
        with pytest.raises(rf.RankingDataError, match="a user is in two batches"):
            meter.update(run[1:], run[1:].drop("rank"))


def test_a_batch_that_breaks_a_rule_raises_and_changes_nothing():
    meter = rf.Meter("rr")
    first, second = split(A, TRUTH, [range(20), range(20, 40)])
    meter.update(*first)
    before = meter.compute()
    with pytest.raises(rf.RankingDataError, match="Offending row"):
        meter.update(second[0].with_columns(rank=0), second[1])
    assert meter.compute().equals(before)


def test_rules_of_all_batches():
    run = pl.DataFrame({"user": [1, 2], "item": 7, "rank": 1})
    apart = pl.DataFrame({"user": [3, 4], "item": 7})
    with pytest.raises(rf.RankingDataError, match="no user of the run is in the truth"):
        met(run, "rr", truth=apart, places=[[1, 3], [2, 4]]).compute()
    truth = pl.DataFrame({"user": [1, 2], "item": 7})
    folds = pl.concat([run.with_columns(fold=fold) for fold in (1, 2)])
    with pytest.raises(rf.RankingDataError, match="users are in several folds"):
        met(folds, "rr", truth=truth, by="fold", places=[[1], [2]]).compute()


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="pass at least one metric"):
        rf.Meter()
    with pytest.raises(ValueError, match="unknown metric"):
        rf.Meter("ndgc@10")
    with pytest.raises(ValueError, match="users must be one of"):
        rf.Meter("rr", users="everyone")
    with pytest.raises(ValueError, match="the meters differ"):
        meter = met(A, "rr", truth=TRUTH)
        meter.merge(met(A, "ndcg", truth=TRUTH))
    with pytest.raises(TypeError, match="merge takes a Meter, not str"):
        meter.merge("meter")
    with pytest.raises(ValueError, match="total=True"):
        meter.compute(total=True)


def test_an_empty_meter_of_another_kind_is_not_merged():
    run = pl.DataFrame({"model": "a", "user": [1], "item": [7], "rank": [1]})
    truth = pl.DataFrame({"user": [1], "item": [7]})
    full = rf.Meter("rr", by="model")
    full.update(run, truth)
    others = [rf.Meter("map", by="model"), rf.Meter("rr", by="day"), rf.Meter("rr")]
    others.append(rf.Meter("rr", by="model", depth=3))
    for other in others[:2] + others[3:]:
        for one, two in ((full, other), (other, full)):
            with pytest.raises(ValueError, match="the meters differ in metrics, by= or options"):
                one.merge(two)
    full.merge(rf.Meter("rr", by="model"))
    named = rf.Meter("rr")
    named.update({"a": run.drop("model")}, truth)
    for one, two in ((named, rf.Meter("rr")), (rf.Meter("rr"), named)):
        one.merge(two)
        assert_equal(one.compute(), full.compute())


def test_a_total_belongs_to_compute():
    with pytest.raises(TypeError, match="Meter has no keyword 'total': .* Meter.compute"):
        rf.Meter("rr", by="model", total=True)


def test_every_label_has_the_bits_of_evaluate():
    from every_metric import FEW

    draw = random.Random(5)
    for seed in range(3 if reference.thorough else 1):
        lists = {user: draw.sample(range(12), draw.randint(1, 9)) for user in range(5)}
        rows = [(u, i, rank) for u, some in lists.items() for rank, i in enumerate(some, 1)]
        run = pl.DataFrame(rows, schema=["user", "item", "rank"], orient="row")
        run = run.sample(fraction=1, shuffle=True, seed=seed)
        rows = [(u, i, draw.randint(0, 3)) for u in lists for i in draw.sample(range(12), 7)]
        truth = pl.DataFrame(rows, schema=["user", "item", "relevance"], orient="row")
        want = rf.evaluate(run, *FEW, truth=truth)
        facts = rf.parts.facts(run, truth=truth)
        meter = met(run, *FEW, truth=truth, places=[[0, 1], [2], [3, 4]], facts=facts)
        assert_same(meter.compute(), want, rel_tol=1e-15, abs_tol=0)


def test_a_dict_of_runs_keeps_its_order():
    rows = {"user": [1, 2], "item": ["a", "b"], "rank": [1, 2]}
    run, truth = pl.DataFrame(rows), pl.DataFrame({"user": [1, 2], "item": ["a", "b"]})
    meters = rf.Meter("rr"), rf.Meter("rr")
    for meter, user, names in ((meters[0], 1, "zyx"), (meters[1], 2, "xyz")):
        part = run.filter(user=user)
        meter.update(dict.fromkeys(names, part), truth=truth.filter(user=user))
    assert meters[0].compute(total=True)["model"].to_list() == ["z", "y", "x", None]
    meters[0].merge(meters[1])
    got = meters[0].compute()
    assert got["model"].to_list() == ["z", "y", "x"]
    assert got.schema["model"] == pl.String
    meters[0].reset()
    meters[0].update(dict.fromkeys("yz", run), truth=truth)
    assert meters[0].compute()["model"].to_list() == ["y", "z"]


@pytest.mark.thorough
def test_sums_do_not_grow_with_users():
    run, truth = made(users=230)
    small = met(run, "rr", "ndcg", truth=truth, by="model", places=[range(20)])
    places = [[user] for user in range(230)]
    large = met(run, "rr", "ndcg", truth=truth, by="model", places=places)
    heights = [sum(map(len, meter._state.numbers)) for meter in (small, large)]
    assert heights[0] < heights[1] <= 65 * heights[0]  # up to 64 batches wait
