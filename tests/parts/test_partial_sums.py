"""Sums of parts, each by itself, combine into the numbers of the whole tables."""

import functools
import io
import json
import random
import subprocess
import sys
from datetime import date

import pandas
import polars as pl
import pytest
import reference
from every_metric import CALLS, OF_TIER, SPECIAL_MEANS
from hypothesis import given, settings
from hypothesis import strategies as st
from lists_and_shares import OF_ALL, OF_USERS, WORLD, labels_at
from polars.testing import assert_frame_equal
from two_models import (
    EXACT,
    EXACT_CALLS,
    RUN,
    TRUTH,
    USERS,
    WITH_WEIGHTS,
    A,
    assert_same,
    many_users,
    split,
)

import rankframe as rf
from rankframe._request.labels import METRICS, parse_metric

METRICS_OF_CALLS = [*OF_TIER.values(), *SPECIAL_MEANS]
LABELS = ["rr", "err", "rbp(gain=graded)", "ndcg@3", "gmap@3", "num_hits", "bpref"]
EXTRA = ("unjudged", "count_users")


def combined(run, *metrics, truth, by=(), places=USERS, total=False, **options):
    known = {name: value for name, value in options.items() if name not in EXTRA}
    facts = rf.parts.facts(run, truth=truth, by=by, **known)
    return rf.parts.combine(
        sums_of(split(run, truth, places), *metrics, by=by, facts=facts, **options), total=total
    )


def sums_of(pairs, *metrics, **options):
    """Give the sums of runs and truths, each with its own key."""
    return [
        rf.parts.sums(run, *metrics, truth=truth, part=str(key), **options)
        for key, (run, truth) in enumerate(pairs)
    ]


# ------------------------------------------------------------------ the traps


@pytest.fixture
def missed():
    """Model b has no row in the second part."""
    run = [("a", user, 7, 1) for user in (1, 2, 3, 4)] + [("b", 1, 7, 1), ("b", 2, 7, 1)]
    run = pl.DataFrame(run, schema=["model", "user", "item", "rank"], orient="row")
    return run, pl.DataFrame({"user": [1, 2, 3, 4], "item": 7}), [[1, 2], [3, 4]]


@pytest.fixture
def graded():
    """The highest grade is in the second part."""
    run = pl.DataFrame({"user": [1, 2], "item": 7, "rank": 1})
    return run, pl.DataFrame({"user": [1, 2], "item": 7, "relevance": [1, 2]}), [[1], [2]]


def test_a_part_without_a_model_counts_its_misses(missed):
    run, truth, users = missed
    got = combined(run, "rr", truth=truth, by="model", places=users)
    assert got.rows() == [("a", 4, 1.0), ("b", 4, 0.5)]


@pytest.mark.parametrize("metric", ["err", "rbp(gain=graded)"])
def test_the_highest_grade_of_another_part_counts(graded, metric):
    run, truth, users = graded
    expected = rf.evaluate(run, metric, truth=truth)
    assert_same(combined(run, metric, truth=truth, places=users), expected)
    each = [rf.evaluate(*part[:1], metric, truth=part[1]) for part in split(run, truth, users)]
    assert pl.concat(each)[metric].mean() != pytest.approx(expected[metric].item())


def test_a_part_that_shares_no_user_with_its_truth():
    run = pl.DataFrame({"user": [1, 2], "item": 7, "rank": 1})
    truth = pl.DataFrame({"user": [2, 3], "item": 7})
    got = combined(run, "rr", truth=truth, places=[[1, 3], [2], []])
    assert got.rows() == [(2, 0.5)]


# ------------------------------------------------------------------ every metric and option


#: metrics that need tables or columns of their own
SPECIAL = [
    "corrected(collection=30, sampled=20)@3",
    "snips_recall(propensity=p)@3",
    "snips_dcg(propensity=p)",
    "snips_recall(power=2)@3",
]


def test_every_metric_is_tried():
    labels = [*SPECIAL, *labels_at(3, OF_USERS), *labels_at(3, OF_ALL)]
    beside = {parse_metric(label).call.entry.function.__name__ for label in labels}
    own = {name for name, function in METRICS.items() if "rankframe" in function.__module__}
    assert own == {function for function, _ in CALLS.values()} | beside


def test_metrics_with_tables_of_their_own():
    truth = TRUTH.with_columns(p=0.1 + pl.col("item") / 100)
    history = A.select("user", item=(pl.col("item") + 1) % 30)
    got = combined(A, *SPECIAL, truth=truth, history=history)
    assert_same(got, rf.evaluate(A, *SPECIAL, truth=truth, history=history))


@pytest.mark.sample(2)
@pytest.mark.parametrize("by", [["model"], []])
def test_every_metric_of_users_adds_up(by):
    run = RUN if by else A
    got = combined(run, *METRICS_OF_CALLS, truth=TRUTH, by=by, places=[range(15), range(15, 40)])
    assert_same(got, rf.evaluate(run, *METRICS_OF_CALLS, truth=TRUTH, by=by), check_dtypes=True)


@pytest.mark.parametrize("users", ["truth", "judged", "both", "run", "all"])
@pytest.mark.parametrize("by", ["model", ["model", "device"]])
def test_every_policy_and_totals(users, by):
    got = combined(RUN, *LABELS, truth=TRUTH, by=by, total=True, users=users)
    expected = rf.evaluate(RUN, *LABELS, truth=TRUTH, by=by, total=True, users=users)
    assert_same(got, expected, check_dtypes=True)


@pytest.mark.parametrize(
    "options",
    [
        {"unjudged": "bounds"},
        {"unjudged": "bounds", "users": "all"},
        {"count_users": True, "users": "all"},
        {"undefined": 0.0, "users": "all"},
        {"unjudged": "drop"},
        {"depth": 2},
        {"relevant_at": 2},
        {"preset": {"defaults": {"rr": {}, "ndcg": {"gain": "exponential"}}}},
        {"exclude": RUN.filter(pl.col("rank") == 1).select("user", "item", "model")},
    ],
    ids=lambda options: next(iter(options)),
)
def test_every_option(options):
    metrics = ["rr", "precision@3", "err@3"] if options.get("unjudged") == "bounds" else LABELS[:4]
    got = combined(RUN, *metrics, truth=TRUTH, by="model", **options)
    assert_same(got, rf.evaluate(RUN, *metrics, truth=TRUTH, by="model", **options))


def test_a_column_of_the_truth_alone_and_one_of_both():
    truth = TRUTH.with_columns(country=pl.col("user") % 3)
    metrics = ["rr", "err"]
    got = combined(RUN, *metrics, truth=truth, by=["model", "country"], total=True)
    expected = rf.evaluate(RUN, *metrics, truth=truth, by=["model", "country"], total=True)
    assert_same(got, expected)
    run = RUN.with_columns(country=pl.col("user") % 3)
    assert_same(combined(run, *metrics, truth=truth, by=["model", "country"], total=True), expected)


def test_subtopics():
    truth = pl.concat([TRUTH, TRUTH.with_columns(pl.col("item") + 1)]).unique(["user", "item"])
    truth = pl.concat([truth.with_columns(subtopic=pl.col("item") % n) for n in (3, 2)])
    truth = truth.unique(["user", "item", "subtopic"], maintain_order=True)
    labels = ["alpha_ndcg", "subtopic_recall@3", "err_ia@3", "rr"]
    assert_same(combined(A, *labels, truth=truth), rf.evaluate(A, *labels, truth=truth))


def test_weights():
    truth = TRUTH.with_columns(w=pl.col("user") % 4)
    for run, by in ((A, []), (RUN, ["model"])):
        got = combined(run, "rr", "gmap", truth=truth, by=by, weights="w")
        assert_same(got, rf.evaluate(run, "rr", "gmap", truth=truth, by=by, weights="w"))
    run = RUN.with_columns(w=pl.col("user") % 4)
    options = {"by": "model", "weights": "w", "users": "both"}
    assert_same(
        combined(run, "rr", truth=TRUTH, **options), rf.evaluate(run, "rr", truth=TRUTH, **options)
    )


def test_no_weight_in_one_part_is_no_fault_and_in_all_it_is_one():
    truth = TRUTH.with_columns(w=(pl.col("user") >= 21).cast(pl.Int64))
    assert_same(
        combined(A, "rr", truth=truth, weights="w"), rf.evaluate(A, "rr", truth=truth, weights="w")
    )
    with pytest.raises(rf.RankingDataError, match="has the weight 0"):
        combined(A, "rr", truth=truth.with_columns(w=0), weights="w")


def test_scores_and_ties():
    scored = A.with_columns(score=-(pl.col("rank") // 2)).drop("rank")
    assert_same(
        combined(scored, *LABELS[:4], truth=TRUTH), rf.evaluate(scored, *LABELS[:4], truth=TRUTH)
    )
    tied = rf.with_rank(scored, ties="expected")
    assert_same(
        combined(tied, "ndcg@3", "rr", truth=TRUTH), rf.evaluate(tied, "ndcg@3", "rr", truth=TRUTH)
    )


def test_judged_tables():
    judged = rf.judge(RUN, TRUTH, by="model")
    assert rf.parts.facts(judged.drop("relevance"), by="model")["top_grade"] is None
    facts = rf.parts.facts(judged, by="model")
    assert facts["by"] == []
    options = {"by": "model", "users": "truth"}
    mine = [judged.filter(pl.col("user").is_in(some)) for some in USERS]
    parts = sums_of([(some, None) for some in mine], *LABELS, facts=facts, **options)
    expected = rf.evaluate(judged, *LABELS, by="model")
    assert_same(rf.parts.combine(parts), expected)
    lazy = rf.judge(RUN.lazy(), TRUTH, by="model")  # remembers its tables
    small = rf.parts.sums(lazy, *LABELS, facts=facts, **options)
    assert_same(rf.parts.combine(small).collect(), expected)


def test_metrics_of_others_and_expressions():
    class_of = pl.col("minutes").filter(pl.col("listed") & (pl.col("rank") <= 3)).mean()
    metrics = [
        class_of.alias("minutes at 3"),
        pl.col("relevance").max().ge(2).alias("high"),
        pl.duration(minutes=pl.col("minutes").filter("relevant").max()).alias("time"),
        pl.lit(None).alias("nothing"),
    ]
    got = combined(A, *metrics, truth=TRUTH)
    assert_same(got, rf.evaluate(A, *metrics, truth=TRUTH), check_dtypes=True)


# ------------------------------------------------------------------ lists and shares


@pytest.mark.sample(2)
@pytest.mark.parametrize("users", ["run", "truth", "all"])
def test_metrics_of_lists_and_of_all_lists(users):
    labels = labels_at(3, [*OF_USERS, *OF_ALL])
    tables = WORLD.tables()
    run, truth = tables.pop("run"), tables.pop("truth")
    places = [[0, 1], [2], [3], [5]]
    got = combined(run, *labels, truth=truth, places=places, users=users, **tables)
    expected = rf.evaluate(run, *labels, truth=truth, users=users, **tables)
    assert_same(got, expected, rel_tol=1e-11, abs_tol=1e-11, check_dtypes=True)


@pytest.mark.parametrize("options", [{}, {"undefined": -1.0}, {"users": "run"}])
def test_metrics_of_all_lists_in_groups_with_totals(options):
    labels = labels_at(3, OF_ALL)
    tables = WORLD.tables()
    run, truth = tables.pop("run"), tables.pop("truth")
    run = pl.concat(
        [
            run.with_columns(model=pl.lit("a")),
            run.filter(user=1, rank=1).with_columns(model=pl.lit("b")),
        ]
    )
    facts = rf.parts.facts(run, truth=truth, by="model")
    pairs = split(run, truth, [[0, 2], [1], [3]])
    parts = sums_of(pairs, *labels, by="model", facts=facts, **tables, **options)
    got = rf.parts.combine(parts, total=True)
    expected = rf.evaluate(run, *labels, truth=truth, by="model", total=True, **tables, **options)
    assert_same(got, expected, rel_tol=1e-11, abs_tol=1e-11)


def test_a_run_alone():
    tables = WORLD.tables()
    run, _ = tables.pop("run"), tables.pop("truth")
    labels = ["coverage@3", "novelty@3", "gini"]
    parts = sums_of([(run.filter(user=user), None) for user in range(5)], *labels, **tables)
    assert_same(rf.parts.combine(parts), rf.evaluate(run, *labels, **tables))


def test_a_catalogue_in_groups_has_no_total():
    items = pl.DataFrame({"item": [*range(30)] * 2, "model": ["a"] * 30 + ["b"] * 30})
    got = combined(RUN, "coverage@3", "gini", truth=TRUTH, by="model", items=items)
    assert_same(got, rf.evaluate(RUN, "coverage@3", "gini", truth=TRUTH, by="model", items=items))
    with pytest.raises(ValueError, match="'coverage@3': items= or history= has a column of by="):
        combined(RUN, "coverage@3", truth=TRUTH, by="model", items=items, total=True)


def test_an_expression_of_all_lists_needs_a_label():
    items = pl.DataFrame({"item": range(30)})
    got = combined(A, rf.metrics.coverage_at(3).alias("seen"), truth=TRUTH, items=items)
    assert_same(
        got, rf.evaluate(A, rf.metrics.coverage_at(3).alias("seen"), truth=TRUTH, items=items)
    )
    own = pl.col("exposure(item;all;none;)").max().alias("most shown")
    with pytest.raises(ValueError, match="register it with rf.register_metric"):
        rf.parts.sums(A, own, truth=TRUTH, items=items)


# ------------------------------------------------------------------ any split, any tree


def tree(parts, rng, *, total=False):
    """Merge one to three parts at a time, in any order."""
    parts = list(parts)
    while len(parts) > 1 and rng.random() < 0.9:
        rng.shuffle(parts)
        number = rng.randint(1, 3)
        parts = [*parts[number:], rf.parts.merge(parts[:number])]
    return rf.parts.combine(parts, total=total)


ITEMS = pl.DataFrame({"item": range(32)})
ASKED = ["rr", "err@3", "gmap", "ndcg@3", "num_hits", "coverage@3", "gini@3", "personalization@3"]
EXPECTED = rf.evaluate(RUN, *ASKED, truth=TRUTH, by="model", items=ITEMS)


@settings(deadline=None, max_examples=reference.drawn(12))
@given(st.integers(1, 6), st.integers(0, 2**32), st.integers(0, 39))
def test_any_split_and_any_tree(number, seed, alone):
    rng = random.Random(seed)
    places = [rng.randrange(number) for _ in range(40)]
    users = [[u for u in range(40) if places[u] == part and u != alone] for part in range(number)]
    pairs = list(split(RUN, TRUTH, [*users, [alone], []]))
    of_parts = [rf.parts.facts(run, truth=truth, by="model") for run, truth in pairs]
    facts = rf.parts.merge([*of_parts[2:], rf.parts.merge(of_parts[:2])])
    assert facts == rf.parts.facts(RUN, truth=TRUTH, by="model")
    parts = sums_of(pairs, *ASKED, by="model", items=ITEMS, facts=facts)
    assert_same(tree(parts, rng), EXPECTED, check_dtypes=True)


# ------------------------------------------------------------------ formats


def small_frames():
    facts = rf.parts.facts(RUN, truth=TRUTH, by="model")
    return sums_of(split(RUN, TRUTH), *ASKED, by="model", items=ITEMS, facts=facts)


def test_facts_survive_json():
    facts = rf.parts.facts(RUN, truth=TRUTH, by="model")
    assert json.loads(json.dumps(facts)) == facts
    users = len({*RUN["user"], *TRUTH["user"]})
    assert isinstance(facts.pop("groups"), str)
    assert facts == {"users": users, "top_grade": 3, "by": ["model"]}


def _through_parquet(frame):
    file = io.BytesIO()
    frame.write_parquet(file)
    file.seek(0)
    return pl.read_parquet(file)


def _through_csv(frame):
    return pl.read_csv(io.StringIO(frame.write_csv()))


def _through_arrow(frame):
    return pl.from_arrow(frame.to_arrow())


def _through_pandas(frame):
    import pandas as pd

    file = io.BytesIO()
    frame.to_pandas().to_parquet(file)
    file.seek(0)
    return pl.from_pandas(pd.read_parquet(file))


@pytest.mark.parametrize(
    "through", [_through_parquet, _through_csv, _through_arrow, _through_pandas]
)
def test_small_frames_survive(through):
    parts = small_frames()
    assert all(part.null_count().sum_horizontal().item() == 0 for part in parts)
    assert_same(rf.parts.combine([through(part) for part in parts]), EXPECTED, check_dtypes=True)
    assert_same(rf.parts.combine(through(rf.parts.merge(parts))), EXPECTED, check_dtypes=True)


def test_one_below_the_other_they_are_one():
    parts = small_frames()
    assert_same(rf.parts.combine(pl.concat(parts)), EXPECTED)
    got = rf.parts.combine(pl.concat(parts).lazy())
    assert isinstance(got, pl.LazyFrame)
    assert_same(got.collect(), EXPECTED)


def test_pandas_callers():
    run, truth, items = RUN.to_pandas(), TRUTH.to_pandas(), ITEMS.to_pandas()
    facts = rf.parts.facts(run, truth=truth, by="model")
    assert facts == rf.parts.facts(RUN, truth=TRUTH, by="model")
    options = {"by": "model", "items": items, "facts": facts}
    pairs = [(run[run["user"].isin(some)], truth[truth["user"].isin(some)]) for some in USERS]
    parts = sums_of(pairs, *ASKED, **options)
    assert all(isinstance(part, pandas.DataFrame) for part in parts)
    got = rf.parts.combine([rf.parts.merge(parts[:3]), *parts[3:]])
    assert isinstance(got, pandas.DataFrame)
    assert_same(pl.from_pandas(got), EXPECTED)


def test_lazy_parts_and_dicts_of_runs():
    facts = rf.parts.facts(RUN.lazy(), truth=TRUTH.lazy(), by="model")
    lazy = rf.parts.sums(
        RUN.lazy(), *ASKED, truth=TRUTH.lazy(), by="model", facts=facts, items=ITEMS
    )
    assert isinstance(lazy, pl.LazyFrame)
    assert_same(rf.parts.combine(lazy.collect()), EXPECTED)
    runs = {name: RUN.filter(model=name).drop("model") for name in "ab"}
    assert rf.parts.facts(runs, truth=TRUTH) == facts
    pairs = []
    for some in USERS:  # model b is empty in some
        mine = pl.col("user").is_in(some)
        pairs.append(({name: r.filter(mine) for name, r in runs.items()}, TRUTH.filter(mine)))
    assert_same(rf.parts.combine(sums_of(pairs, *ASKED, facts=facts, items=ITEMS)), EXPECTED)


@pytest.mark.parametrize(
    "days",
    [
        pl.Series([date(2026, 1, 1), date(2026, 1, 2)]),
        pl.Series([1, 10**15]).cast(pl.Datetime("us", "Europe/Rome")),
        pl.Series([1, 10**12]).cast(pl.Datetime("ms")),
        pl.Series([1, 10**12]).cast(pl.Time),
        pl.Series(["a", "b"], dtype=pl.Enum(["b", "a"])),
        pl.Series(["Zürich", '東京"\\n']),
        pl.Series(["a", "b"], dtype=pl.Categorical),
        pl.Series([True, False]),
        pl.Series([1, 2**63], dtype=pl.UInt64),
        pl.Series(["1.5", "2.5"]).cast(pl.Decimal(5, 2)),
        pl.Series([b"\xff", b"a"]),
        pl.Series([0.1, 2.5]),
    ],
    ids=lambda days: str(days.dtype.base_type()),
)
def test_groups_of_every_type(days):
    of = pl.DataFrame({"model": ["a", "b"], "day": days})
    run = RUN.join(of, on="model").drop("model")
    got = combined(run, "rr", "err", truth=TRUTH, by="day", total=True)
    expected = rf.evaluate(run, "rr", "err", truth=TRUTH, by="day", total=True)
    assert_same(got, expected, check_dtypes=True)


def test_group_names_are_not_ascii():
    run = RUN.rename({"model": "système"}).with_columns(pl.col("système") + "é 東京")
    facts = rf.parts.facts(run, truth=TRUTH, by="système")
    parts = sums_of(split(run, TRUTH), "rr", by="système", facts=facts)
    got = rf.parts.combine(rf.parts.merge(map(_through_csv, parts)))
    assert got.equals(rf.evaluate(run, "rr", truth=TRUTH, by="système"))


def test_integers_of_several_widths_and_empty_parts_without_types():
    run = RUN.with_columns(model=(pl.col("model") == "b").cast(pl.Int64))
    expected = rf.evaluate(run, "rr", "err", truth=TRUTH, by="model")
    narrow = run.with_columns(pl.col("model").cast(pl.Int8))
    left, right = list(split(run, TRUTH, [range(20), range(20, 40)]))
    facts = [
        rf.parts.facts(left[0], truth=left[1], by="model"),
        rf.parts.facts(narrow.join(right[0], on="user", how="semi"), truth=right[1], by="model"),
    ]
    nothing = pl.DataFrame(schema=dict.fromkeys(run.columns, pl.Null))
    none = nothing.select("user", "item", pl.lit(None).alias("relevance"))
    facts = rf.parts.merge([rf.parts.facts(nothing, truth=none, by="model"), *facts])
    right = narrow.join(right[0], on="user", how="semi"), right[1]
    parts = sums_of([(nothing, none), left, right], "rr", "err", by="model", facts=facts)
    assert_same(rf.parts.combine(parts), expected)
    assert_same(rf.parts.combine([rf.parts.merge(parts[:2]), parts[2]]), expected)


def test_another_process_needs_the_small_frames_alone(tmp_path):
    for place, part in enumerate(small_frames()):
        part.write_parquet(tmp_path / f"{place}.parquet")
    code = f"""
import polars as pl, rankframe as rf
got = rf.parts.combine(pl.read_parquet({str(tmp_path / "*.parquet")!r}))
got.write_parquet({str(tmp_path / "got")!r})
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert_same(pl.read_parquet(tmp_path / "got"), EXPECTED)


# ------------------------------------------------------------------ values


def test_values_are_summarized_and_compared():
    truth = TRUTH.with_columns(w=pl.col("user") % 4 + 1, c=pl.col("user") // 3)
    facts = rf.parts.facts(RUN, truth=truth, by="model")
    options = {"weights": "w", "cluster": "c"}
    rows = pl.concat(
        rf.parts.values(run, "rr", "err", truth=some, by="model", facts=facts, **options)
        for run, some in split(RUN, truth)
    )
    assert rows.columns == ["model", "user", "rr", "err", "w", "c"]
    for of_values, verb in (
        (rf.summarize, rf.summarize),
        (rf.compare, rf.compare),
    ):
        got = of_values(rows, "rr", "err", by="model", **options)
        expected = verb(RUN, "rr", "err", truth=truth, by="model", **options)
        # values do not show who has no list
        unknown = [name for name in got.columns if "missed" in name or name == "note"]
        assert_same(got.drop(unknown), expected.drop(unknown))
    with pytest.raises(rf.RankingDataError, match="duplicate"):
        rf.summarize(pl.concat([rows, rows.head(1)]), "rr", by="model")


@pytest.mark.parametrize("metric", ["coverage@3", "gmap"])
def test_what_has_no_value_per_user_is_refused(metric):
    with pytest.raises(ValueError, match="evaluate"):
        rf.parts.values(A, metric, truth=TRUTH, items=ITEMS)


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize("verb", [rf.parts.sums, rf.parts.values])
def test_facts_are_asked_for_where_they_are_needed(verb):
    verb(A, "rr", "err(max_grade=3)", truth=TRUTH)
    cure = r"'err': it reads the highest grade .* such as 'err\(max_grade=4\)', or pass facts=rf"
    with pytest.raises(ValueError, match=cure):
        verb(A, "err", truth=TRUTH)
    with pytest.raises(ValueError, match="'rr': its bounds read the highest grade of the whole"):
        verb(A, "rr", truth=TRUTH, unjudged="bounds")
    with pytest.raises(ValueError, match=r"the truth lacks 'model', so a part must know"):
        verb(RUN, "rr", truth=TRUTH, by="model")
    with pytest.raises(
        TypeError, match=r"facts are what rf.parts.facts or rf.parts.merge returned"
    ):
        verb(RUN, "rr", truth=TRUTH, by="model", facts=3)
    with pytest.raises(ValueError, match=r"facts= were made for the columns \[\], but the truth"):
        verb(RUN, "rr", truth=TRUTH, by="model", facts=rf.parts.facts(A, truth=TRUTH))


@pytest.mark.parametrize("verb", [rf.parts.sums, rf.parts.values])
@pytest.mark.parametrize("lazy", [False, True])
def test_facts_of_less_than_the_whole_are_refused(verb, lazy):
    run = RUN.lazy() if lazy else RUN
    some = rf.parts.facts(RUN, truth=TRUTH.filter(pl.col("relevance") < 3), by="model")
    with pytest.raises(rf.RankingDataError, match="highest grade is 2, and this part has 3"):
        verb(run, "rr", truth=TRUTH, by="model", facts=some).lazy().collect()
    some = rf.parts.facts(RUN.filter(model="a"), truth=TRUTH, by="model")
    with pytest.raises(rf.RankingDataError, match="lack a group of this part, model='b'"):
        verb(run, "rr", truth=TRUTH, by="model", facts=some).lazy().collect()


def parts_of_a(*metrics, facts=None, **options):
    facts = rf.parts.facts(A, truth=TRUTH) if facts is None else facts
    return sums_of(split(A, TRUTH), *(metrics or ["rr"]), facts=facts, **options)


def test_missing_or_duplicated_part_is_reported():
    parts = parts_of_a()
    with pytest.raises(rf.RankingDataError, match="a part is missing or duplicated"):
        rf.parts.combine(parts[1:])
    with pytest.raises(rf.RankingDataError, match="part '2' comes twice"):
        rf.parts.combine([*parts, parts[2]])


# ------------------------------------------------------------------ keys of parts


@functools.cache
def day(number, users=(1, 2), found=(1,), **options):
    """Give the sums of a day on which of some users some find what they like."""
    truth = pl.DataFrame({"day": number, "user": list(users), "item": "a"})
    run = truth.with_columns(
        item=pl.when(pl.col("user").is_in(list(found))).then(pl.lit("a")).otherwise(pl.lit("z")),
        rank=1,
    )
    return rf.parts.sums(run, "map", truth=truth, by="day", **options)


def stack(parts, form):
    """Pass parts as frames, as one frame, or as files that are read at once."""
    if form == "frames":
        return parts
    one = pl.concat(parts)
    return {"one": lambda: one, "lazy": one.lazy, "parquet": lambda: _through_parquet(one)}[form]()


FORMS = ["frames", "one", "lazy", "parquet"]


def rows(parts, **options):
    return rf.parts.combine(parts, total=True, **options).lazy().collect().rows()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("door", [rf.parts.combine, rf.parts.merge])
def test_part_without_key_is_an_error_that_names_the_keyword(door, form):
    cure = r"1 of 3 have no key, .* rf\.parts\.sums\(…, part='2026-11-01'\)"
    with pytest.raises(rf.RankingDataError, match=cure):
        door(stack([day(1, part="1"), day(2), day(3, part="3")], form))
    assert rows(day(1)) == rows(rf.parts.merge([day(1)])) == [(1, 2, 0.5), (None, 2, 0.5)]


@pytest.mark.parametrize("form", FORMS)
def test_key_met_twice_is_an_error_that_names_it(form):
    first, second = day(1, part="2026-11-01"), day(2, part="2026-11-02")
    assert len(rows(stack([first, second], form))) == 3
    for again in (day(1, users=(3, 4), part="2026-11-01"), day(3, part="2026-11-01")):
        for verb in (rf.parts.combine, rf.parts.merge):
            with pytest.raises(rf.RankingDataError, match="part '2026-11-01' comes twice: leave"):
                verb(stack([first, second, again], form))


@pytest.mark.parametrize("form", FORMS)
def test_last_of_a_part_replaces_the_others_wholly(form):
    first, second = day(1, part="1"), day(2, part="2", found=())
    again = day(1, users=(2, 3, 4), found=(2,), part="1")  # user 1 is gone
    old = day(7, part="1")
    for parts in ([first, second, again], [first, again, second], [old, again, second]):
        got = rows(stack(parts, form), repeated="last")
        assert got == [(1, 3, 1 / 3), (2, 2, 0.0), (None, 5, 0.2)]
    assert rows(stack([again, second, first], form), repeated="last")[0] == (1, 2, 0.5)
    merged = rf.parts.merge(stack([first, second, again], form), repeated="last")
    assert rows(merged) == [(1, 3, 1 / 3), (2, 2, 0.0), (None, 5, 0.2)]
    nothing = day(1, users=(), part="1")  # an empty part is one
    assert rows(stack([first, second, nothing], form), repeated="last") == [
        (2, 2, 0.0),
        (None, 2, 0.0),
    ]


def test_keys_are_carried_through_trees():
    one, two, three = (day(number, part=str(number)) for number in (1, 2, 3))
    tree = rf.parts.merge([rf.parts.merge([one, two]), three])
    assert rows(tree) == rows([one, two, three])
    again = rf.parts.merge([day(5, part="5"), day(9, part="2")])
    for other in (two, day(9, users=(8,), part="2"), again):
        with pytest.raises(rf.RankingDataError, match="part '2' comes twice"):
            rf.parts.combine([tree, other])
    with pytest.raises(rf.RankingDataError, match="part '2' comes again, but its first sums are"):
        rf.parts.combine([tree, two], repeated="last")
    # a later tree has all parts of an earlier one
    other = rf.parts.merge([day(1, (7,), (7,), part="1"), day(2, (8,), (8,), part="2")])
    old = rf.parts.merge([one, two])
    assert rows([old, three, other], repeated="last")[:2] == [(1, 1, 1.0), (2, 1, 1.0)]


def test_user_in_two_parts_counts_twice():
    run = pl.DataFrame({"user": [1, 2], "item": "a", "rank": 1})
    days = [rf.parts.sums(run, "rr", truth=run.drop("rank"), part=part) for part in ("1", "2")]
    assert rf.parts.combine(days).rows() == [(4, 1.0)]


def test_users_without_a_group_differ():
    """A group that only the truth knows is null for users who are not in it."""
    run = pl.DataFrame({"user": [1, 8, 9], "item": 7, "rank": 1})
    truth = pl.DataFrame({"user": [1], "item": 7, "country": "IT"})
    pairs = [(run.filter(user=user), truth.filter(user=user)) for user in (1, 8, 9)]
    assert rf.parts.combine(sums_of(pairs, "rr", by="country")).rows() == [("IT", 1, 1.0)]
    meter = rf.Meter("rr", by="country")
    for pair in pairs:
        meter.update(*pair)
    assert meter.compute().rows() == [("IT", 1, 1.0)]
    with pytest.raises(rf.RankingDataError, match="a user is in two batches.* row: user=8$"):
        meter.update(run.filter(user=8), truth.clear())


def test_the_order_of_parts_changes_no_bit():
    rng = random.Random(5)
    run = pl.concat([RUN.with_columns(pl.col("user") + 40 * n, n=n) for n in range(5)])
    truth = pl.concat([TRUTH.with_columns(pl.col("user") + 40 * n, n=n) for n in range(5)])
    facts = rf.parts.facts(run, truth=truth, by=["model", "n"])
    options = {"by": ["model", "n"], "facts": facts, "items": ITEMS}
    users = [range(place, 200, 7) for place in range(7)]
    parts = sums_of(split(run, truth, users), *ASKED, "entropy@3", **options)
    first = rf.parts.combine(parts, total=True)
    merged = rf.parts.merge(parts)
    for _ in range(3):
        rng.shuffle(parts)
        assert rf.parts.combine(parts, total=True).equals(first, null_equal=True)
        assert rf.parts.combine(pl.concat(parts), total=True).equals(first, null_equal=True)
        numbers = rf.parts.merge(parts).filter(pl.col("kind") != "call")
        assert numbers.equals(merged.filter(pl.col("kind") != "call"))


@pytest.mark.parametrize("weights", [None, "w"])
def test_the_order_of_rows_changes_no_bit_of_sums(weights):
    """A part that is computed again has the same sums, on any number of threads."""
    run = pl.select(user=pl.int_range(60_000), item=1, rank=1 + pl.int_range(60_000) % 97)
    truth = run.select("user", "item", w=0.1 + pl.col("user") % 7)
    options = {"truth": truth, "weights": weights}
    first = rf.parts.sums(run, "rr", "ndcg", "gmap", **options)
    for seed in range(4):
        again = run.sample(fraction=1, shuffle=True, seed=seed)
        assert rf.parts.sums(again, "rr", "ndcg", "gmap", **options).equals(first)


def test_one_part_has_the_bits_of_evaluate():
    run = pl.select(user=pl.int_range(3000), item=1, rank=1 + pl.int_range(3000) % 97)
    truth = run.drop("rank")
    small = rf.parts.sums(run, "rr", "ndcg", "gmap", truth=truth)
    assert rf.parts.combine(small).equals(rf.evaluate(run, "rr", "ndcg", "gmap", truth=truth))


def test_sums_that_lack_rows_are_no_parts():
    counted = {"part": "2 rows 'call' and 1 row 'part'", "call": "1 row 'call' and 2 rows"}
    for gone, text in counted.items():
        with pytest.raises(rf.RankingDataError, match=text):
            rf.parts.combine([day(1, part="1"), day(2, part="2").filter(pl.col("kind") != gone)])
    with pytest.raises(rf.RankingDataError, match="0 of 1 rows 'groups'"):
        rf.parts.combine(day(1).filter(pl.col("kind") != "groups"))
    mixed = pl.concat([day(1, part="x"), day(1, part="x")]).sort("kind")
    with pytest.raises(rf.RankingDataError, match="part 'x' comes twice"):
        rf.parts.combine(mixed)
    one = pl.concat([day(1, part="x"), day(1, part="x")])
    firsts = pl.col("kind").is_in(["call", "part"])
    interleaved = pl.concat([one.filter(firsts), one.filter(~firsts)])
    for order in (mixed, one[::-1], interleaved):
        with pytest.raises(rf.RankingDataError, match="the rows of several frames are mixed"):
            rf.parts.combine(order, repeated="last")


def test_key_is_text():
    with pytest.raises(TypeError, match="part must be text, such as '2026-11-01', not 3"):
        rf.parts.sums(A, "rr", truth=TRUTH, part=3)
    with pytest.raises(ValueError, match="repeated must be one of 'error', 'last'"):
        rf.parts.merge([day(1)], repeated="first")


def test_values_are_concatenated_and_not_merged():
    some = rf.parts.values(A, "rr", truth=TRUTH)
    with pytest.raises(rf.RankingDataError, match="no column 'group'.* put together with pl.conc"):
        rf.parts.merge([some, some])


def test_a_user_in_two_parts_is_seen():
    facts = rf.parts.facts(A, truth=TRUTH)
    odd = pl.col("item") % 2 == 1
    parts = sums_of(
        [(A.filter(mine), TRUTH.filter(mine)) for mine in (odd, ~odd)], "rr", facts=facts
    )
    with pytest.raises(rf.RankingDataError, match="or a user is in several parts"):
        rf.parts.combine(parts)


@pytest.mark.parametrize("judged", [False, True])
def test_a_user_of_two_days_counts_twice_in_facts(judged):
    """Parts may be days, users, or both: they count what facts count."""
    run = pl.DataFrame({"day": [1, 2, 2], "user": [1, 1, 2], "item": "a", "rank": 1})
    truth = run.drop("rank").with_columns(relevance=pl.Series([1, 2, 1]))
    tables = [rf.judge(run, truth, by="day")] if judged else [run, truth]
    options = {"by": "day"} | ({} if judged else {"truth": truth})
    facts = rf.parts.facts(tables[0], **options)
    assert facts["users"] == 3
    options["users"] = "truth"
    expected = rf.evaluate(tables[0], "rr", "err", **options)
    for column in ("day", "user"):
        parts = []
        for value in (1, 2):
            frame, *others = (table.filter(pl.col(column) == value) for table in tables)
            some = options | ({"truth": others[0]} if others else {})
            key = str(value)
            parts.append(rf.parts.sums(frame, "rr", "err", facts=facts, part=key, **some))
        assert_same(rf.parts.combine(parts), expected)
        with pytest.raises(rf.RankingDataError, match=r"they have \d users, but the facts have 3"):
            rf.parts.combine(parts[1:])


def test_parts_of_several_calls_do_not_combine():
    other = rf.parts.facts(A, truth=TRUTH) | {"top_grade": 4}
    for text, parts in {
        "metrics or columns of by= differ": [*parts_of_a(), *parts_of_a("ndcg")],
        "facts differ": [*parts_of_a(), *parts_of_a(facts=other)],
        "options differ": [*parts_of_a(), *parts_of_a(depth=2)],
    }.items():
        with pytest.raises(rf.RankingDataError, match=text):
            rf.parts.combine(parts)


def test_rules_of_whole_tables_are_checked_when_parts_are_combined():
    run = pl.DataFrame({"user": [1, 2], "item": 7, "rank": 1})
    truth = pl.DataFrame({"user": [3, 4], "item": 7})
    with pytest.raises(rf.RankingDataError, match="no user of the run is in the truth"):
        combined(run, "rr", truth=truth, places=[[1, 3], [2, 4]])
    with pytest.raises(rf.RankingDataError, match="parts, the run: it is empty in every part"):
        combined(run.clear(), "rr", truth=truth, places=[[1, 3], [2, 4]])
    with pytest.raises(rf.RankingDataError, match="parts, the truth: it is empty in every part"):
        combined(run, "rr", truth=truth.clear(), places=[[1, 3], [2, 4]])
    truth = pl.DataFrame({"user": [1, 2], "item": 7})
    apart = run.with_columns(country=pl.col("user"))
    with pytest.raises(rf.RankingDataError, match="no user is in two of its groups"):
        combined(apart, "rr", truth=truth, by="country", places=[[1], [2]])
    folds = pl.concat([run.with_columns(fold=fold) for fold in (1, 2)])
    with pytest.raises(rf.RankingDataError, match="column 'fold': users are in several folds"):
        combined(folds, "rr", truth=truth, by="fold", places=[[1], [2]])


def test_a_row_that_breaks_a_rule_is_named():
    twice = pl.concat([A, A.head(1)])
    with pytest.raises(rf.RankingDataError, match="Offending row"):
        rf.parts.sums(twice, "map", "bpref", "precision(divide_by=returned)", truth=TRUTH)
    lazy = rf.parts.sums(A.with_columns(rank=0).lazy(), "rr", truth=TRUTH)
    with pytest.raises(rf.RankingDataError, match="Offending row"):
        lazy.collect()


def test_what_are_no_parts():
    for verb in (rf.parts.combine, rf.parts.merge):
        with pytest.raises(ValueError, match="there is no part"):
            verb([])
        with pytest.raises(rf.RankingDataError, match="part 0: no column 'group'"):
            verb([A])
    with pytest.raises(TypeError, match="facts are what"):
        rf.parts.merge([rf.parts.facts(A, truth=TRUTH), A])
    with pytest.raises(rf.RankingDataError, match="facts: made for different by= columns"):
        rf.parts.merge(
            [rf.parts.facts(A, truth=TRUTH), rf.parts.facts(RUN, truth=TRUTH, by="model")]
        )
    with pytest.raises(ValueError, match="total=True"):
        rf.parts.combine(parts_of_a(), total=True)


def test_inputs_are_not_changed():
    run, truth, facts = RUN.clone(), TRUTH.clone(), rf.parts.facts(RUN, truth=TRUTH, by="model")
    before = json.dumps(facts)
    rf.parts.sums(run, "rr", truth=truth, by="model", facts=facts)
    assert run.equals(RUN)
    assert truth.equals(TRUTH)
    assert json.dumps(facts) == before


# ------------------------------------------------------------------ the same bits as evaluate


@settings(deadline=None, max_examples=reference.drawn(8))
@given(st.integers(1, 8), st.integers(0, 2**32), st.sampled_from(EXACT_CALLS))
def test_any_split_and_any_tree_have_the_bits_of_evaluate(number, seed, options):
    rng = random.Random(seed)
    run, truth = many_users(seed % 5)
    options = dict(options)
    total, metrics = options.pop("total", False), WITH_WEIGHTS if "weights" in options else EXACT
    if not options["by"]:
        run = run.filter(model="a").drop("model")
    places = [rng.randrange(number) for _ in range(150)]
    users = [[u for u in range(150) if places[u] == part] for part in range(number)]
    known = {name: value for name, value in options.items() if name not in EXTRA}
    facts = rf.parts.facts(run, truth=truth, **known)
    parts = sums_of(split(run, truth, users), *metrics, facts=facts, **options)
    expected = rf.evaluate(run, *metrics, truth=truth, total=total, **options)
    assert_frame_equal(tree(parts, rng, total=total), expected, check_exact=True)


@pytest.mark.parametrize("scale", [2.0**-1000, 1e-300, 1.0, 1e9, 1e300])
def test_weights_of_any_size_have_the_bits_of_evaluate(scale):
    run, truth = many_users(1)
    run = run.filter(model="a").drop("model")
    truth = truth.with_columns(pl.col("w") * scale)
    users = [[u for u in range(150) if u * 7 % 11 == part] for part in range(11)]
    options, metrics = {"weights": "w"}, ["rr", "gmap@1", "auc"]
    parts = sums_of(split(run, truth, users), *metrics, **options)
    expected = rf.evaluate(run, *metrics, truth=truth, **options)
    for seed in range(3):
        assert_frame_equal(tree(parts, random.Random(seed)), expected, check_exact=True)


@pytest.mark.parametrize("size", [1e-15, 2.0**-40, 1e13, 1e200])
def test_values_that_do_not_fit_agree_in_fifteen_digits(size):
    """In one part; in several they are free of the order of parts."""
    run, truth = many_users(2)
    metric = (pl.col("item").filter("relevant").sum() * size / 7).alias("own")
    expected = rf.evaluate(run, metric, truth=truth, by="model", users="truth")
    users = [range(part, 150, 9) for part in range(9)]
    facts = rf.parts.facts(run, truth=truth, by="model")
    parts = sums_of(split(run, truth, users), metric, by="model", facts=facts)
    got = rf.parts.combine(parts)
    assert_same(got, expected, rel_tol=1e-15, abs_tol=0)
    assert got.equals(rf.parts.combine(parts[::-1]))


def test_parts_of_an_older_version_are_refused():
    small = day(1, part="x")
    older = small.with_columns(pl.col("metric").str.replace('"version": 1, ', "", literal=True))
    assert not older.equals(small)
    for door in (rf.parts.combine, rf.parts.merge):
        with pytest.raises(rf.RankingDataError, match="made by another version of rankframe"):
            door([older])


@pytest.mark.parametrize("name", ["group", "kind", "metric", "count"])
def test_a_column_of_by_may_be_called_like_one_of_a_small_frame(name):
    run, truth = RUN.rename({"model": name}), TRUTH
    got = combined(run, "rr", "coverage@3", truth=truth, by=name, items=ITEMS)
    expected = rf.evaluate(run, "rr", "coverage@3", truth=truth, by=name, items=ITEMS)
    assert_same(got, expected, check_dtypes=True)
