"""``health`` counts every defect, as plain Python does, and what breaks a rule of ``check``."""

import datetime
import decimal
import math
import re
from collections import Counter

import odd_input
import polars as pl
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import rankframe as rf

RUN = pl.DataFrame({"user": [1, 1, 1, 2, 2], "item": [10, 11, 12, 10, 13], "rank": [1, 2, 3, 1, 2]})
TRUTH = pl.DataFrame({"user": [1, 1, 2, 3], "item": [11, 14, 10, 10], "relevance": [1, 2, 1, 0]})
ROLES = {"user", "item", "rank", "relevance", "score", "subtopic"}


def counts(found, table):
    """Give {what: count} of a table that is not split."""
    of_table = found.filter(table=table)
    return dict(zip(of_table["what"], of_table["count"], strict=True))


def row(found, table, what, **groups):
    (one,) = (
        found.filter(table=table, what=what, **groups).select("count", "share", "example").rows()
    )
    return one


CASES = [case for section in odd_input.cases().values() for case in section]
THIRD = {case.name for case in CASES[::3]}
#: What is counted of the rules of each row, and of rows together.
RULES = pl.col("what").str.contains(
    "^(null_(groups|users|items|relevances|subtopics)|(invalid|several|shared)_ranks|duplicates)$"
    "|^(infinite_scores|nonfinite_relevances|neither_rank_nor_relevance|unread_grades)$|_blocks$"
)


def text_of(call):
    """Give the error of a call, or None."""
    try:
        call()
    except rf.RankingDataError as error:
        return str(error)
    return None


def assert_as_check(run, **options):
    """What breaks a rule is counted, nothing else is, and what has no roles raises as in check."""
    lazy = {n: t.lazy() if isinstance(t, pl.DataFrame) else t for n, t in options.items()}
    at_the_call = text_of(lambda: rf.check(run.lazy(), **lazy))
    if at_the_call is not None:
        for frame, others in ((run, options), (run.lazy(), lazy)):
            assert text_of(lambda frame=frame, others=others: rf.health(frame, **others)) == (
                at_the_call
            )
        return None
    found = rf.health(run, **options)
    assert found.null_count().select("table", "what", "count").row(0) == (0, 0, 0)
    assert found["count"].min() >= 0
    assert found["share"].drop_nulls().is_between(0, 1).all()
    broken = text_of(lambda: rf.check(run.lazy(), **lazy).collect())
    if broken is None:
        assert found.filter(RULES)["count"].sum() == 0
    else:
        assert found.filter("problem").height, broken
    return found


@pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_odd_input_is_counted_where_check_raises_of_a_row(case):
    options = {name: value for name, value in case.options.items() if name in ROLES | {"by"}}
    found = assert_as_check(case.run, truth=case.truth, **options)
    # a lazy frame runs the same plan later, which a third of the cases shows
    if found is not None and (reference.thorough or case.name in THIRD):
        lazily = rf.health(case.run.lazy(), truth=case.truth.lazy(), **options)
        assert_frame_equal(lazily.collect(), found)
    try:
        judged = case.run.join(case.truth, on=["user", "item"], how="full", coalesce=True)
    except pl.exceptions.PolarsError:
        return  # no judged table can be made of it
    if "relevance" in judged.columns:
        assert_as_check(judged, by=case.options.get("by", ()))


WILD = {
    "object": pl.Series([object(), object()], dtype=pl.Object),
    "null": pl.Series([None, None]),
    "list": pl.Series([[1], []]),
    "struct": pl.Series([{"a": 1}, None]),
    "duration": pl.Series([datetime.timedelta(1), None]),
    "time": pl.Series([datetime.time(1), datetime.time(2)]),
    "date": pl.Series([datetime.date(2026, 1, 1), None]),
    "decimal": pl.Series([decimal.Decimal("1.5"), None]),
    "bytes": pl.Series([b"\xff", b""]),
    "boolean": pl.Series([True, False]),
    "text": pl.Series(["1", "x"]),
    "category": pl.Series(["b", "a"], dtype=pl.Categorical),
    "float": pl.Series([math.nan, -math.inf]),
    "wide": pl.Series([2**127 - 1, 1], dtype=pl.UInt128),
    "negative": pl.Series([-(2**63), 2**63 - 1]),
}


@pytest.mark.sample(2)
@pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")
@pytest.mark.parametrize("wild", WILD)
@pytest.mark.parametrize("column", ["model", "user", "item", "rank", "score", "relevance"])
def test_column_of_any_type_is_counted_or_refused(column, wild):
    tame = pl.DataFrame({"model": ["x", "y"], "user": [1, 2], "item": [1, 2]})
    placing = "score" if column == "score" else "rank"
    run = tame.with_columns(pl.Series(placing, [1, 1]))
    truth = tame.drop("model").with_columns(relevance=1)
    odd = WILD[wild].alias(column)
    runs = [run if column == "relevance" else run.with_columns(odd), run]
    truths = [truth, truth if column in ("model", placing) else truth.with_columns(odd)]
    for one in runs:
        for other in truths:
            assert_as_check(one, truth=other, history=other)
    assert_as_check(run.with_columns(relevance=1).with_columns(odd))


@pytest.mark.parametrize("kind", [pl.DataFrame.clone, pl.DataFrame.lazy, pl.DataFrame.to_pandas])
def test_lists_that_cannot_be_made_long_raise(kind):
    lists = pl.DataFrame({"user": [1, 2], "item": [["a"], []]})
    truth = pl.DataFrame({"user": [1, 2], "item": ["a", "b"], "relevance": 1})
    for one in ({}, {"truth": truth}):
        with pytest.raises(rf.RankingDataError, match="column 'item': empty or null list.*user=2"):
            rf.health(kind(lists), **{n: kind(table) for n, table in one.items()}).lazy().collect()


def row_count(found, table):
    return found.filter(table=table, what="rows")["count"].to_list()


def test_tables_without_rows_are_counted():
    found = rf.health(RUN.clear(), truth=TRUTH.clear())
    assert row_count(found, "run") == row_count(found, "truth") == [0]
    assert found["share"].null_count() == found.height


@pytest.mark.parametrize("case", odd_input.pandas_cases(), ids=lambda case: case.name)
def test_odd_input_of_pandas_is_counted(case):
    import rankframe.pandas  # noqa: F401

    truth = TRUTH.to_pandas() if case.truth is None else case.truth
    if isinstance(case.gives, str):
        with pytest.raises(rf.RankingDataError, match=re.escape(case.gives)):
            case.run.ranking.health(truth=truth)
        return
    got = case.run.ranking.health(truth=truth)
    assert list(got.columns) == ["table", "what", "count", "share", "problem", "example"]


# ------------------------------------------------------------------ the same in plain Python

IDS = st.sampled_from([None, "a", "b", "A", " b", "1", "1.0", "c"])
RANKED = st.tuples(st.sampled_from(["m", "n"]), IDS, IDS, st.sampled_from([None, 0, 1, 2, 3, 5]))
SCORED = st.tuples(
    st.sampled_from(["m", "n"]),
    IDS,
    IDS,
    st.sampled_from([None, math.nan, math.inf, 1.0, 2.0, 2.5]),
)
JUDGED = st.tuples(IDS, IDS, st.sampled_from([None, math.nan, -1.0, 0.0, 1.0, 2.0]))
K = 2


def beyond_first(values):
    return len(values) - len({*values})


def text(value):
    return value.removesuffix(".0")


def ranked(rows):
    """Rank as ``with_rank`` does: the highest score first, then the highest id."""
    made = []
    for user in {row[0] for row in rows}:
        placed = [row for row in rows if row[0] == user and not missing(row[2])]
        known = [row for row in placed if row[0] is not None and row[1] is not None]
        order = sorted(known, key=lambda row: (row[2], row[1]), reverse=True)
        made += [(user, item, place, score) for place, (_, item, score) in enumerate(order, 1)]
    return made


def missing(value):
    return value is None or math.isnan(value)


def of_run(rows, *, scored):
    """Count a run whose rows are (user, item, rank or score)."""
    counts = {"rows": len(rows)}
    counts["null_users"] = sum(row[0] is None for row in rows)
    counts["null_items"] = sum(row[1] is None for row in rows)
    values = [row[2] for row in rows]
    if scored:
        counts["null_scores"] = values.count(None)
        counts["nan_scores"] = sum(value is not None and math.isnan(value) for value in values)
        counts["infinite_scores"] = values.count(math.inf)
    else:
        counts["null_ranks"] = values.count(None)
        counts["invalid_ranks"] = values.count(0)
        counts["shared_ranks"] = 0
    listed = [row for row in rows if not missing(row[2])]
    users = {row[0] for row in listed} - {None}
    counts["users"] = len(users)
    counts["items"] = len({row[1] for row in listed} - {None})
    of = {user: [row for row in listed if row[0] == user] for user in users}
    counts["short_lists"] = sum(len(rows) < K for rows in of.values())
    counts["duplicates"] = sum(
        beyond_first([row[1] for row in rows if row[0] == user and row[1] is not None])
        for user in {row[0] for row in rows} - {None}
    )
    places = ranked(rows) if scored else [(*row, 0) for row in listed if row[2] > 0]
    counts["gaps"] = counts["ties_at_the_cut"] = 0
    for user in users:
        ranks = [place[2] for place in places if place[0] == user]
        by_rank = {place[2]: place[3] for place in places if place[0] == user}
        counts["gaps"] += bool(ranks) and max(ranks) > len({*ranks})
        crowded = sum(rank <= K for rank in ranks) > K
        if scored and K + 1 in by_rank:
            crowded = crowded or by_rank[K] == by_rank[K + 1]
        counts["ties_at_the_cut"] += crowded
        if not scored:
            counts["shared_ranks"] += beyond_first(ranks)
    if scored:
        scores = [[row[2] for row in rows] for rows in of.values() if len(rows) > 1]
        counts["constant_scores"] = sum(min(values) == max(values) for values in scores)
    top = [place for place in places if place[2] <= K and None not in place[:2]]
    return counts, users, {row[1] for row in listed} - {None}, top


def of_truth(rows):
    counts = {"rows": len(rows)}
    for what, place in {"null_users": 0, "null_items": 1, "null_relevances": 2}.items():
        counts[what] = sum(row[place] is None for row in rows)
    grades = [row[2] for row in rows if row[2] is not None]
    counts["nonfinite_relevances"] = sum(math.isnan(grade) for grade in grades)
    counts["negative_grades"] = sum(grade < 0 for grade in grades)
    users = {row[0] for row in rows} - {None}
    items = {row[1] for row in rows} - {None}
    counts |= {"users": len(users), "items": len(items)}
    relevant = {row[0] for row in rows if not missing(row[2]) and row[2] > 0} - {None}
    counts["users_without_relevant"] = len(users - relevant)
    counts["duplicates"] = sum(
        beyond_first([row[1] for row in rows if row[0] == user and row[1] is not None])
        for user in users
    )
    finite = Counter(int(grade) for grade in grades if not math.isnan(grade))
    nan = any(math.isnan(grade) for grade in grades)
    counts["grades"] = len(finite) + nan
    counts |= {f"grade_{grade}": number for grade, number in finite.items()}
    return counts, users, items, relevant


def of_both(run, truth):
    _, users, items, top = run
    _, judged_users, judged_items, relevant = truth[:4]
    counts = {"users": len(users & judged_users), "missed_users": len(relevant - users)}
    counts["groups_without_common_users"] = int(not users & judged_users)
    for role, mine, theirs in (("user", users, judged_users), ("item", items, judged_items)):
        unknown = mine - theirs
        counts[f"{role}s_unknown_to_truth"] = len(unknown)
        folded = {one.strip().lower() for one in theirs}
        counts[f"{role}_ids_differ_in_case"] = sum(one.strip().lower() in folded for one in unknown)
        texts = {text(one) for one in theirs}
        counts[f"{role}_ids_differ_in_type"] = sum(text(one) in texts for one in unknown)
    counts["items_unknown_to_run"] = len(judged_items - items)
    judged = {row[:2] for row in truth[4]}
    counts[f"unjudged_at_{K}"] = sum(place[:2] not in judged for place in top)
    return counts


@pytest.mark.parametrize("scored", [False, True])
@given(data=st.data())
@settings(deadline=None, max_examples=reference.drawn(60))
def test_dirty_tables_are_counted_as_plain_python_does(scored, data):
    rows = data.draw(st.lists(SCORED if scored else RANKED, max_size=14))
    judgments = data.draw(st.lists(JUDGED, max_size=8))
    placing = {"score": pl.Float64} if scored else {"rank": pl.Int64}
    schema = {"model": pl.String, "user": pl.String, "item": pl.String, **placing}
    run = pl.DataFrame(rows, schema=schema, orient="row")
    schema = {"user": pl.String, "item": pl.String, "relevance": pl.Float64}
    truth = pl.DataFrame(judgments, schema=schema, orient="row")
    found = rf.health(run, truth=truth, k=K)
    expected = of_truth(judgments)
    assert counts(found, "truth") == expected[0]
    for model in {row[0] for row in rows}:
        of_model = of_run([row[1:] for row in rows if row[0] == model], scored=scored)
        got = found.filter(model=model)
        assert counts(got, "run") == {**of_model[0], "null_groups": 0}
        assert counts(got, "both") == of_both(of_model, (*expected, judgments))
    shuffled = data.draw(st.permutations(rows))
    again = pl.DataFrame(shuffled, schema=run.schema, orient="row")
    assert_frame_equal(rf.health(again, truth=truth[::-1], k=K), found)
    lazily = rf.health(run.lazy(), truth=truth.lazy(), k=K).collect()
    assert_frame_equal(lazily, found)


# ------------------------------------------------------------------ each defect by itself


@pytest.mark.parametrize(
    ("table", "run", "truth", "what", "expected"),
    [
        ("run", {"user": [1, 1, None, 2, 2]}, {}, "null_users", (1, 0.2, "item=12, rank=3")),
        ("run", {"item": [10, 11, None, 10, 13]}, {}, "null_items", (1, 0.2, "user=1, item=null")),
        ("run", {"rank": [1, 2, None, 1, 2]}, {}, "null_ranks", (1, 0.2, "item=12, rank=null")),
        ("run", {"rank": [0, 1, 2, 0, 1]}, {}, "invalid_ranks", (2, 0.4, "item=10, rank=0")),
        ("run", {"rank": [1, 1.5, 3, 1, 2]}, {}, "invalid_ranks", (1, 0.2, "item=11, rank=1.5")),
        ("run", {"item": [10, 11, 11, 10, 13]}, {}, "duplicates", (1, 0.2, "item=11, rank=2")),
        ("run", {"rank": [1, 2, 2, 1, 2]}, {}, "shared_ranks", (1, 0.2, "item=11, rank=2")),
        ("run", {"rank": [1, 2, 4, 1, 2]}, {}, "gaps", (1, 0.5, "user=1")),
        ("run", {}, {}, "short_lists", (1, 0.5, "user=2")),
        ("run", {"rank": [1, 2, 3, 1, 1]}, {}, "gaps", (0, 0.0, None)),
        ("run", {"rank": [1, 2, 3, 3, 3]}, {}, "gaps", (1, 0.5, "user=2")),
        ("truth", {}, {"user": [1, 1, None, 3]}, "null_users", (1, 0.25, "user=null, item=10")),
        ("truth", {}, {"relevance": [1, None, 1, 0]}, "null_relevances", (1, 0.25, "item=14")),
        ("truth", {}, {"relevance": [1, -2, 1, 0]}, "negative_grades", (1, 0.25, "item=14")),
        ("truth", {}, {"relevance": [1, math.inf, 1, 0]}, "nonfinite_relevances", (1, 0.25, "inf")),
        ("truth", {}, {"item": [11, 11, 10, 10]}, "duplicates", (1, 0.25, "item=11, relevance=1")),
        ("truth", {}, {}, "users_without_relevant", (1, 1 / 3, "user=3")),
        ("truth", {}, {}, "grade_1", (2, 0.5, "user=1, item=11, relevance=1")),
        ("truth", {}, {"relevance": [0.5, 2, 1, 0]}, "grade_0.5", (1, 0.25, "relevance=0.5")),
        ("both", {}, {}, "users", (2, 2 / 3, None)),
        ("both", {"user": [1, 1, 1, 9, 9]}, {}, "missed_users", (1, 0.5, "user=2")),
        ("both", {"user": [1, 1, 1, 9, 9]}, {}, "users_unknown_to_truth", (1, 0.5, "user=9")),
        ("both", {}, {}, "items_unknown_to_truth", (2, 0.5, "item=12")),
        ("both", {}, {}, "items_unknown_to_run", (1, 1 / 3, "item=14")),
        ("both", {}, {}, "unjudged_at_3", (3, 0.6, "user=1, item=10, rank=1")),
    ],
)
def test_defects_are_counted_with_their_share_and_example(table, run, truth, what, expected):
    tables = [
        frame.with_columns(pl.Series(name, values, strict=False) for name, values in new.items())
        for frame, new in ((RUN, run), (TRUTH, truth))
    ]
    count, share, example = row(rf.health(tables[0], truth=tables[1], k=3), table, what)
    assert (count, share) == (expected[0], pytest.approx(expected[1]))
    assert expected[2] in example if expected[2] else example is None


def test_ids_as_text_of_floats_are_counted_with_an_example():
    text = RUN.with_columns(pl.col("user", "item").cast(pl.String))
    floats = TRUTH.with_columns(pl.col("user", "item").cast(pl.Float64).cast(pl.String))
    found = rf.health(text, truth=floats)
    assert row(found, "both", "user_ids_differ_in_type") == (2, 1.0, "user='1'")
    assert row(found, "both", "item_ids_differ_in_type") == (2, 0.5, "item='10'")
    assert row(found, "both", "missed_users") == (2, 1.0, "user='1.0'")


def test_integers_of_other_widths_meet():
    small = RUN.with_columns(pl.col("user").cast(pl.Int8), pl.col("item").cast(pl.UInt64))
    assert_frame_equal(rf.health(small, truth=TRUTH), rf.health(RUN, truth=TRUTH))


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int64, pl.Int128])
@pytest.mark.parametrize("name", ["user", "item"])
def test_unsigned_ids_of_128_bits_beside_signed_ones_raise(name, dtype):
    """No type of Polars holds both, and a cast fails at the first id above 2^127."""
    wide = RUN.with_columns(pl.col(name).cast(pl.UInt128) + pl.lit(2**127, pl.UInt128))
    run, truth = RUN.with_columns(pl.col(name).cast(dtype)), TRUTH.cast({name: dtype})
    cure = "no integer type holds both: cast the signed one to UInt128, or both to text"
    said = f"column '{name}': it is UInt128 in the {{}} and {dtype()!r} in the {{}}: {cure}"
    for call in (rf.check, rf.health, lambda frame, **other: rf.evaluate(frame, "ap", **other)):
        for kind in (pl.DataFrame.clone, pl.DataFrame.lazy):
            got = text_of(lambda call=call, kind=kind: call(kind(wide), truth=kind(truth)))
            assert got == said.format("run", "truth")
    assert text_of(lambda: rf.evaluate({"a": wide, "b": run}, "ap", truth=truth)) == said.replace(
        "the {}", "run {}"
    ).format("'a'", "'b'")
    unsigned = truth.cast({name: pl.UInt128})
    assert_frame_equal(
        rf.evaluate(run.cast({name: pl.UInt128}), "ap", truth=unsigned),
        rf.evaluate(RUN, "ap", truth=TRUTH),
    )


def test_unread_grades_are_counted_beside_times():
    truth = TRUTH.drop("relevance").with_columns(click=pl.col("item") % 2, at=1)
    history = TRUTH.select("user", "item", at=0)
    found = rf.health(RUN, truth=truth, history=history, time="at")
    assert row(found, "truth", "unread_grades")[2] == "user=1, item=14, click=0"


LISTS = pl.DataFrame(
    {"user": [user for user in (7, 3, 5) for _ in range(4)], "rank": [1, 2, 3, 4] * 3}
)
LISTS = LISTS.with_columns(item=(pl.col("user") + pl.col("rank")) % 6 - 2, score=0.5)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"item": pl.col("item").shift(1)},
        {"item": pl.lit(1)},
        {"item": pl.when(pl.col("rank") == 4).then(pl.col("item").shift(3)).otherwise("item")},
        {"item": pl.when(pl.col("rank") == 1).then(-(2**63)).otherwise(2 - 2**63 + pl.col("rank"))},
        {"user": pl.col("user").reverse()},
        {"user": pl.when(pl.col("user") == 5).then(7).otherwise("user")},
        {"user": pl.when(pl.col("rank") == 3).then(None).otherwise("user")},
        {"rank": pl.col("rank") * 2},
        {"rank": pl.col("rank") - 1},
        {"rank": pl.col("rank") / 2},
        {"rank": (pl.col("rank") / 2).cast(pl.Decimal(9, 1)) + pl.lit(0.5).cast(pl.Decimal(9, 1))},
        {"rank": pl.col("rank").clip(1, 3)},
        {"rank": pl.col("rank").cast(pl.UInt8)},
        {"score": -pl.col("rank") // 2},
    ],
    ids=range(15),
)
def test_lists_that_lie_together_have_the_counts_of_a_plan(change):
    """Neighbors of rows in memory show what a lazy frame counts."""
    scored = LISTS.with_columns(**change)
    truth = LISTS.select("user", "item", relevance=pl.col("rank") - 3).sort("item")
    truths = truth, truth.sort("user"), pl.concat([truth.sort("user"), truth.head(2)])
    for lists in (scored, scored.drop("score")):
        two = pl.concat([lists.with_columns(model=pl.lit(name)) for name in ("b", "a")])
        for run in (lists, two, two.sort("user", maintain_order=True)):
            for judged in truths:
                found = rf.health(run, truth=judged, k=3)
                planned = rf.health(run.lazy(), truth=judged.lazy(), k=3).collect()
                assert_frame_equal(planned, found)


def test_scores_that_tie_at_the_cut():
    run = pl.DataFrame({"user": 1, "item": [1, 2, 3], "score": [3.0, 2.0, 2.0]})
    assert row(rf.health(run, k=2), "run", "ties_at_the_cut") == (1, 1.0, "user=1")
    assert row(rf.health(run, k=1), "run", "ties_at_the_cut")[0] == 0
    with_both = run.rank.with_rank()
    assert row(rf.health(with_both, k=2), "run", "ties_at_the_cut")[0] == 1
    blocks = run.rank.with_rank(ties="expected").drop("score")
    found = rf.health(blocks, k=2)
    assert row(found, "run", "ties_at_the_cut")[0] == 1
    assert row(found, "run", "gaps")[0] == 0
    assert "shared_ranks" not in counts(found, "run")


def test_judged_table_is_counted_as_its_run_and_its_truth():
    judged = rf.judge(RUN, TRUTH)
    both = rf.health(RUN, truth=TRUTH)
    found = rf.health(judged)
    assert_frame_equal(found.filter(pl.col("table") == "both"), both.filter(table="both"))
    assert counts(found, "truth")["grade_2"] == 1
    neither = judged.with_columns(rank=None, relevance=None)
    assert row(rf.health(neither), "judged table", "neither_rank_nor_relevance")[0] == 7


@pytest.mark.parametrize("placing", ["rank", "score"])
@pytest.mark.parametrize("item", [None, "a"])
@pytest.mark.parametrize("missing", ["user", "day"])
def test_judged_rows_without_a_key_are_counted(missing, item, placing):
    placed = {placing: [1, 2, None, None], "relevance": [1, 0, None, None]}
    keys = {"day": [1, 1, 1, 1], "user": [1, 1, 2, 3]}
    keys[missing][2] = None
    judged = pl.DataFrame(keys | {"item": ["a", "b", item, None]} | placed)
    rf.check(judged[[0, 1, 3]], by="day")  # a user alone breaks no rule
    found = assert_as_check(judged, by="day")
    what = {"user": "null_users", "day": "null_groups"}[missing]
    assert found.filter(table="run", what=what)["count"].sum() == 1


@pytest.mark.parametrize("missing", [None, math.nan], ids=["null", "NaN"])
@pytest.mark.parametrize("table", ["run", "truth", "both"])
@pytest.mark.parametrize("other", [[], [1.0]], ids=["all", "one"])
def test_missing_groups_are_a_problem_with_an_example(missing, table, other):
    groups = pl.Series("g", [missing, *other], pl.Float64)
    broken = pl.DataFrame({"user": 1, "item": [10, 11][: len(groups)], "g": groups})
    whole = broken.with_columns(g=1.0)
    run = (whole if table == "truth" else broken).with_columns(rank=pl.int_range(pl.len()) + 1)
    truth = {"run": whole.drop("g"), "truth": broken, "both": broken}[table]
    found = rf.health(run, truth=truth, by="g", k=2)
    broken_tables = ["run", "truth"] if table == "both" else [table]
    said = found.filter("problem", what="null_groups")
    assert [*said["table"]] == broken_tables
    assert [*said["count"]] == [1] * len(broken_tables)
    shown, word = ("null", "null") if missing is None else ("nan", "NaN")
    assert all(f"g={shown}, user=1, item=10" in text for text in said["example"])
    assert found.filter(what="rows", table=broken_tables[0])["count"].sum() == len(groups)
    with pytest.raises(rf.RankingDataError, match=f"column 'g': {word} group"):
        rf.check(run, truth=truth, by="g")


def test_catalogue_and_a_history():
    items = pl.DataFrame({"item": [10, 11, 12, 99, 99]})
    history = pl.DataFrame({"user": [1, 1], "item": [10, 12]})
    found = rf.health(RUN, items=items, history=history, k=2)
    assert row(found, "items", "items_unknown_to_catalogue") == (1, 0.25, "item=13")
    assert row(found, "items", "items_never_listed") == (1, 0.25, "item=99")
    assert row(found, "items", "duplicates") == (1, 0.2, "item=99")
    assert row(found, "history", "users_unknown_to_history") == (1, 0.5, "user=2")
    assert row(found, "history", "items_unknown_to_history") == (2, 0.5, "item=11")
    assert row(found, "history", "seen_at_2") == (1, 0.25, "user=1, item=10, rank=1")


def test_empty_run_of_a_dict_is_counted():
    found = rf.health({"old": RUN, "none": RUN.clear()}, truth=TRUTH)
    assert row(found, "run", "rows", model="none")[0] == 0
    assert row(found, "both", "missed_users", model="none")[0] == 2
    with pytest.raises(rf.RankingDataError, match="run 'new': no column 'rank'"):
        rf.health({"old": RUN, "new": RUN.drop("rank")}, truth=TRUTH)


def test_users_in_several_folds_that_the_truth_lacks_are_counted():
    folds = pl.concat([RUN.with_columns(fold=1), RUN.filter(user=2).with_columns(fold=2)])
    found = rf.health(folds, truth=TRUTH, by="fold")
    assert row(found, "both", "users_in_several_folds") == (1, 0.5, "user=2")
    of_folds = pl.concat(TRUTH.with_columns(fold=fold) for fold in (1, 2))
    assert "users_in_several_folds" not in counts(
        rf.health(folds, truth=of_folds, by="fold"), "both"
    )


def test_rows_of_subtopics_share_the_rank_of_their_item():
    judged = pl.DataFrame({"user": 1, "item": [*"aab"], "subtopic": [*"xyx"], "rank": [1, 1, 2]})
    judged = judged.with_columns(relevance=1)
    assert_as_check(judged)
    shared = assert_as_check(judged.with_columns(rank=1))
    assert row(shared, "run", "shared_ranks")[:2] == (1, 1 / 3)
    several = assert_as_check(judged.with_columns(rank=pl.Series([1, 3, 2])))
    assert row(several, "run", "several_ranks")[:2] == (1, 1 / 3)
    nulls = assert_as_check(judged.with_columns(subtopic=pl.Series([None, "y", "x"])))
    assert row(nulls, "truth", "null_subtopics")[0] == 1


@pytest.mark.parametrize(
    ("tied", "rank", "what"),
    [
        ([0, 1], [1, 2], "invalid_sizes_of_blocks"),
        ([1, 1], [1, 1], "wrong_sizes_of_blocks"),
        ([3, 1], [1, 2], "ranks_inside_blocks"),
    ],
)
def test_rules_on_blocks_of_ties_are_counted(tied, rank, what):
    run = pl.DataFrame({"user": 1, "item": [10, 11], "rank": rank, "tied": tied})
    assert row(assert_as_check(run, truth=TRUTH), "run", what)[0] > 0


def test_folds_of_the_truth_are_its_groups():
    run = pl.concat([RUN.with_columns(fold=1), RUN.with_columns(fold=2)])
    truth = TRUTH.with_columns(fold=pl.Series([1, 1, 1, 3]))
    found = rf.health(run, truth=truth, by="fold")
    assert found.filter(table="truth", what="rows")["fold"].to_list() == [1, 2, 3]
    assert row(found, "both", "users", fold=2) == (0, None, None)
    assert row(found, "both", "users", fold=3)[0] == 0


def test_many_grades_have_no_row_each():
    truth = pl.DataFrame({"user": 1, "item": range(30), "relevance": range(30)})
    found = counts(rf.health(RUN, truth=truth), "truth")
    assert found["grades"] == 30
    assert "grade_3" not in found


def test_objects_that_are_no_data_raise():
    with pytest.raises(ValueError, match="k must be an integer ≥ 1, not 0"):
        rf.health(RUN, k=0)
    with pytest.raises(TypeError, match="health has no keyword 'usr'; the nearest is 'user'"):
        rf.health(RUN, usr="x")
    with pytest.raises(TypeError, match="the run must be a polars DataFrame"):
        rf.health([1])
    with pytest.raises(rf.RankingDataError, match="column 'share': health adds a column"):
        rf.health(RUN.with_columns(share=1), by="share")


def test_lazy_result_is_filtered_and_cut_after_it_is_counted():
    lazy = rf.health(RUN.lazy(), truth=TRUTH)
    assert lazy.filter(pl.col("what") == "gaps").select("count").head(1).collect().item() == 0
    assert lazy.collect_schema().names() == [
        "table",
        "what",
        "count",
        "share",
        "problem",
        "example",
    ]


def test_columns_of_other_names_are_found_and_named_in_examples():
    run = RUN.rename({"user": "qid", "item": "docno", "rank": "position"})
    found = rf.health(run, truth=TRUTH.rename({"user": "qid", "item": "docno"}))
    assert row(found, "both", "unjudged_at_10")[2] == "qid=1, docno=10, position=1"
    found = rf.health(run.rename({"qid": "uid"}), user="uid")
    assert row(found, "run", "short_lists")[2] == "uid=1"


def test_frames_are_left_as_they_are():
    run, truth = RUN.clone(), TRUTH.clone()
    rf.health(run, truth=truth)
    assert_frame_equal(run, RUN)
    assert_frame_equal(truth, TRUTH)


def test_rows_without_an_item_are_no_duplicates():
    nulls = pl.DataFrame(
        {"user": [1, 1], "item": [None, None], "rank": [1, 2], "relevance": [1, 1]},
        schema_overrides={"item": pl.String},
    )
    for rows, duplicates in ((nulls, 0), (pl.concat([nulls, A_TWICE]), 1)):
        run, truth = rows.drop("relevance"), rows.drop("rank")
        both = rf.health(run, truth=truth, items=rows.select("item"), history=truth)
        for found in (both, rf.health(rows)):
            counted = found.filter(what="duplicates")
            assert counted["count"].to_list() == [duplicates] * counted.height
            assert counted.height > 1
            for example in counted["example"]:
                assert example is None if duplicates == 0 else "item='a'" in example


A_TWICE = pl.DataFrame({"user": [1, 1], "item": ["a", "a"], "rank": [3, 4], "relevance": [1, 1]})


def test_a_filter_leaves_only_what_is_wrong():
    wrong = pl.col("problem")
    run = pl.DataFrame({"user": [1, 2], "item": ["a", "b"], "rank": [1, 1]})
    truth = pl.DataFrame({"user": [1, 2], "item": ["a", "b"], "relevance": [1, 2]})
    assert rf.health(run, truth=truth, k=1).filter(wrong).is_empty()
    bad = rf.health(run.with_columns(rank=0), truth=truth.with_columns(item=pl.lit("c")), k=1)
    found = set(bad.filter(wrong)["what"])
    assert {"invalid_ranks", "items_unknown_to_truth", "items_unknown_to_run"} <= found


# ------------------------------------------------------------------ leakage

TESTED = pl.DataFrame(
    {"user": [1, 1, 2, 3], "item": [10, 11, 12, 13], "t": [5, 7, 6, 9], "fold": [0, 0, 1, 1]}
)
EVENTS = pl.DataFrame(
    {"user": [1, 1, 2, 4, 2], "item": [10, 20, 11, 12, 21], "t": [1, 5, 5, 8, None]}
)
LISTED = pl.DataFrame({"user": [1], "item": [10], "rank": [1]})


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "judged"])
def test_leakage_is_counted(kind):
    turn = {"lazy": pl.DataFrame.lazy, "pandas": pl.DataFrame.to_pandas}.get(
        kind, pl.DataFrame.clone
    )
    truth = TESTED.drop("fold")
    if kind == "judged":
        judged = truth.with_columns(rank=1, relevance=1).unique("user", keep="first")
        truth = judged.drop("rank")
        found = rf.health(judged, history=EVENTS, time="t")
    else:
        found = rf.health(turn(LISTED), truth=turn(truth), history=turn(EVENTS), time="t")
    found = pl.DataFrame(found.lazy().collect() if kind == "lazy" else found)
    one = lambda what: row(found, "history", what)  # noqa: E731
    rows = len(truth)
    own = {"judged": "user=1, item=10, relevance=1, t=5"}.get(kind, "user=1, item=10, t=5")
    assert one("truth_in_history") == (1, 1 / rows, own)
    assert one("truth_users_unknown_to_history") == (1, 1 / 3, "user=3")
    assert one("truth_items_unknown_to_history")[0] == 1
    # user 2 has an event at 5, before 6; user 4, who has no truth, one at 8; a null is no time
    pandas = kind == "pandas"
    assert one("not_before_the_users_truth")[:2] == (1, 1 / 5)
    assert one("not_before_the_users_truth")[2] == f"user=1, item=20, t=5{'.0' * pandas}"
    assert one("not_before_the_truth")[:2] == (3, 3 / 5)


def test_leakage_knows_folds_and_types():
    events = EVENTS.with_columns(fold=pl.Series([0, 0, 1, 1, 1]))
    run = LISTED.with_columns(fold=0)
    found = rf.health(run, truth=TESTED, history=events, time="t", by="fold")
    counts = found.filter(table="history", what="not_before_the_truth")
    assert counts.select("fold", "count").rows() == [(0, 1), (1, 1)]
    timed = LISTED.with_columns(t=0)  # the times are those of the truth
    found = rf.health(timed, truth=TESTED.drop("fold"), history=EVENTS, time="t")
    assert row(found, "history", "not_before_the_truth")[0] == 3
    days = TESTED.with_columns(t=pl.lit("2026-01-01"))
    said = "^column 't': it is String in the truth and Int64 in the history: cast one$"
    with pytest.raises(rf.RankingDataError, match=said):
        rf.health(LISTED, truth=days, history=EVENTS, time="t")
    with pytest.raises(rf.RankingDataError, match="^truth: no column 't' for time=; it has 'user'"):
        rf.health(LISTED, truth=TESTED.drop("t", "fold"), history=EVENTS, time="t")
    with pytest.raises(ValueError, match="time='t' compares the truth with past events: pass hist"):
        rf.health(LISTED, truth=TESTED, time="t")


@pytest.mark.parametrize("lazy", [False, True])
def test_problems_come_first(lazy):
    run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "A"], "rank": [1, 3, 1]})
    truth = pl.DataFrame({"user": [1, 3], "item": ["a", "b"]})
    found = rf.health(run.lazy() if lazy else run, truth=truth, k=1).lazy().collect()
    sizes = pl.col("what").str.contains("^(rows|users|items|grades|grade_.*)$")
    is_size = found.select(sizes).to_series()
    assert (found["problem"].is_null() == is_size).all()
    is_problem = found["problem"].fill_null(value=False)
    overlaps = found.select(pl.col("what").str.contains("unknown_to|unjudged")).to_series()
    assert (overlaps & (found["share"] < 1) & (found["count"] > 0)).sum() > 0  # no problem
    expected = (found["count"] > 0) & ~is_size & (~overlaps | (found["share"] == 1).fill_null(True))
    assert (is_problem == expected).all()
    assert is_problem.to_list() == sorted(is_problem, reverse=True)
    rest = found.filter(~is_problem)
    assert rest["table"].unique(maintain_order=True).to_list() == ["run", "truth", "both"]


@pytest.mark.parametrize("placing", ["rank", "score"])
@pytest.mark.parametrize("lazy", [False, True])
def test_relevant_items_that_are_known_from_the_lists_alone_are_counted(placing, lazy):
    place = [2.0, 1.0, 1.0] if placing == "score" else [1, 2, 1]
    judged = pl.DataFrame(
        {
            "model": ["A", "A", "B"],
            "user": [1, 1, 1],
            "item": ["a", "b", "a"],
            placing: place,
            "relevance": [1.0, 0.0, 2.0],
        }
    )
    missed = judged.head(1).with_columns(
        pl.lit("c").alias("item"), pl.lit(None).cast(judged[placing].dtype).alias(placing)
    )
    what = "relevant_only_from_lists"

    def found(table):
        got = rf.health(table.lazy() if lazy else table)
        got = got.collect() if lazy else got
        return got.filter(what=what).select("model", "count", "share").rows()

    assert found(judged) == [("A", 1, 1.0), ("B", 1, 1.0)]
    # one judged row without a rank, in any group, and relevant or not
    for grade in (1.0, 0.0):
        table = pl.concat([judged, missed.with_columns(relevance=pl.lit(grade))])
        assert found(table) == [("A", 0, 0.0), ("B", 0, 0.0)]
    # an unjudged row without a rank is no evidence
    table = pl.concat([judged, missed.with_columns(relevance=pl.lit(None, pl.Float64))])
    assert found(table) == [("A", 1, 1.0), ("B", 1, 1.0)]
