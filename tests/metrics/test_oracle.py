"""rankframe against the brute-force reference, on random small runs and truths."""

import math
from dataclasses import dataclass

import polars as pl
import pytest
import reference
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

import rankframe as rf

#: Drawn tables may have no relevant item: a warning, which others test.
pytestmark = pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")

FUNCTIONS = {
    "precision": rf.metrics.precision_at,
    "recall": rf.metrics.recall_at,
    "f": rf.metrics.f_at,
    "e": rf.metrics.e_at,
    "hit": rf.metrics.hit_at,
    "ap": rf.metrics.average_precision,
    "rr": rf.metrics.reciprocal_rank,
    "cg": rf.metrics.cg_at,
    "dcg": rf.metrics.dcg_at,
    "ndcg": rf.metrics.ndcg_at,
    "r_precision": rf.metrics.r_precision,
    "all": rf.metrics.all_at,
    "attainable_precision": rf.metrics.attainable_precision_at,
    "attainable_recall": rf.metrics.attainable_recall_at,
}
# every grade > 0 that may be drawn is a key
GAINS = [
    {0.5: 0, 1: 1, 1.5: 1, 2: 3, 3: 4.5, 9: 10},
    {0.5: 0, 1: 0, 1.5: 0, 2: 0, 3: 0, 9: 1},
]
CLIPPED = {"base": 2}
PARAMETERS = {
    "precision": [{}, *({"divide_by": by} for by in ("k", "returned", "attainable"))],
    "recall": [{}, *({"divide_by": by} for by in ("relevant", "attainable"))],
    "f": [{}, *({"beta": beta} for beta in (1, 0, 0.5, 2))],
    "e": [{}, *({"beta": beta} for beta in (1, 0, 0.5, 2))],
    "ap": [{}, *({"divide_by": by} for by in ("relevant", "attainable", "returned", "hits", "k"))],
    **{
        name: [
            {},
            *({"gain": gain} for gain in ("linear", "exponential", "binary", *GAINS)),
        ]
        for name in ("cg", "dcg", "ndcg")
    },
}
for _name in ("dcg", "ndcg"):
    PARAMETERS[_name] += [CLIPPED, *({"gain": gain, **CLIPPED} for gain in GAINS)]
    PARAMETERS[_name] += [{"discount": "rank"}, {"discount": "rank", "gain": "exponential"}]
    PARAMETERS[_name] += [{"discount": "rank", "gain": GAINS[0]}]
PARAMETERS["ndcg"] += [
    {"ideal": ideal, "discount": "rank"} for ideal in ("returned", "perfect", "same_length")
]
PARAMETERS["ndcg"] += [
    {"ideal": ideal, **gain, **discount}
    for ideal in ("truth", "returned", "perfect", "same_length")
    for gain in ({}, {"gain": "exponential"}, {"gain": "binary"}, {"gain": GAINS[0]})
    for discount in ({}, CLIPPED)
]
VARIANTS = [(name, parameters) for name in FUNCTIONS for parameters in PARAMETERS.get(name, [{}])]
GEOMETRIC = [("gm_map", {}), *(("gmap", p) for p in ({}, {"epsilon": 0.01}, {"epsilon": 1}))]

GRADES = {
    "integer": [-2, -1, 0, 1, 2, 3, 9],
    "float": [-1.0, 0.0, 0.5, 1.0, 1.5, 3.0],
    "boolean": [False, True],
    "missing": [1],
}
SCORES = [0.25, 0.5, 0.5, 1.0, 0.0, -0.0, -3.0, math.nan, None]


def label(name, k, parameters):
    def text(value):
        if isinstance(value, dict):
            return ";".join(f"{grade}:{gain}" for grade, gain in value.items())
        return value

    inside = ",".join(f"{key}={text(value)}" for key, value in parameters.items())
    return name + (f"({inside})" if inside else "") + ("" if k is None else f"@{k}")


@st.composite
def metrics(draw, *, geometric=False):
    """(name, k, parameters) as the reference takes them, and what rankframe is asked for."""

    def with_cut(variant, k):
        name, parameters = variant
        if name in ("r_precision", "gm_map"):
            k = None
        elif name.startswith("attainable"):
            k = k or 3
        return name, k, parameters

    variants = VARIANTS + (GEOMETRIC if geometric else [])
    cuts = st.none() | st.integers(1, 7)
    if draw(st.booleans()):
        k = draw(cuts)
        asked = [with_cut(variant, k) for variant in variants]
    else:
        some = st.builds(with_cut, st.sampled_from(variants), cuts)
        asked = draw(st.lists(some, min_size=1, max_size=6, unique_by=str))
    if draw(st.booleans()):
        return asked, [label(*metric) for metric in asked]
    # an expression's name is canonical, so what differs only in a spelt-out default is one column
    expressions = {}
    for name, k, parameters in asked:
        if name in FUNCTIONS:
            cut = () if name == "r_precision" else (k,)
            expression = FUNCTIONS[name](*cut, **parameters)
            expressions[expression.meta.output_name()] = (name, k, parameters), expression
        else:
            text = label(name, k, parameters)
            expressions[text] = (name, k, parameters), text
    return [m for m, _ in expressions.values()], [e for _, e in expressions.values()]


@dataclass
class Case:
    """A run and a truth, as frames and as the reference's table."""

    run: pl.DataFrame | pl.LazyFrame
    truth: pl.DataFrame | pl.LazyFrame
    by: list
    table: dict


def identifiers(draw, texts, integers):
    """The ids of one kind, and their type on either side of the join."""
    if draw(st.booleans()):
        return texts, pl.String, pl.String
    dtypes = st.sampled_from([pl.Int64, pl.UInt8, pl.Int32])
    return integers, draw(dtypes), draw(dtypes)


def frame(draw, rows, by, schema):
    data = [(*row[0], *row[1:]) for row in rows]
    made = pl.DataFrame(data, {**dict.fromkeys(by, pl.String), **schema}, orient="row")
    return made.lazy() if draw(st.booleans()) else made


def lists_of(draw, groups, users, items, values, *, unique=False):
    """Rows (group, user, item, value), the items of each list in any order."""
    rows = []
    for group in groups:
        for user in users:
            listed = draw(st.lists(st.sampled_from(items), unique=True, max_size=5))
            size = len(listed)
            drawn = draw(st.lists(values, unique=unique, min_size=size, max_size=size))
            rows += [(group, user, *row) for row in zip(listed, drawn, strict=True)]
    assume(rows)
    draw(st.randoms(use_true_random=False)).shuffle(rows)
    return rows


@st.composite
def cases(draw):
    users, user_left, user_right = identifiers(draw, ["u", "v", "é", "10"], [1, 2, 3, 10])
    items, item_left, item_right = identifiers(
        draw, ["9", "10", "a", "B", "é", "ab"], [9, 10, 1, 2, 3, 4]
    )
    by = draw(st.sampled_from([[], ["model"], ["model", "day"]]))
    shared = [i for i in range(len(by)) if draw(st.booleans())]
    names = {0: [()], 1: [("a",), ("b",), ("c",)]}
    names[2] = [(model, day) for model in "ab" for day in "xy"]

    def groups(width):
        return draw(st.lists(st.sampled_from(names[width]), unique=True, min_size=1))

    # the run: ranks with gaps, or scores, ranked on the way or before
    keys = {"user": user_left, "item": item_left}
    form = draw(st.sampled_from(["rank", "score", "with_rank"]))
    values = st.integers(1, 9) if form == "rank" else st.sampled_from(SCORES)
    rows = lists_of(draw, groups(len(by)), users, items, values, unique=form == "rank")
    if form == "rank":
        dtype = draw(st.sampled_from([pl.Int64, pl.UInt8, pl.Float64]))
        run = frame(draw, rows, by, {**keys, "rank": dtype})
        lists = reference.lists_from_ranks(rows)
    else:
        run = frame(draw, rows, by, {**keys, "score": pl.Float64})
        options = {}
        if form == "with_rank":
            ties = draw(st.sampled_from(["item", "order"]))
            options = {"descending": draw(st.booleans()), "ties": ties}
            run = rf.with_rank(run, by=by, **options)
        lists = reference.lists_from_scores(rows, **options)

    # the truth: with all, some or none of the columns that split the run
    kind = draw(st.sampled_from(list(GRADES)))
    grades = st.sampled_from(GRADES[kind])
    judged = lists_of(draw, groups(len(shared)), users, items[:5], grades)
    keys = {"user": user_right, "item": item_right}
    dtypes = {
        "integer": draw(st.sampled_from([pl.Int64, pl.Int8])),
        "float": draw(st.sampled_from([pl.Float64, pl.Float32])),
        "boolean": pl.Boolean,
        "missing": pl.Int64,
    }
    truth = frame(draw, judged, [by[i] for i in shared], {**keys, "relevance": dtypes[kind]})
    if kind == "missing":
        truth = truth.drop("relevance")

    # what the library refuses: no common user, or several groups without one
    def seen(group):
        return tuple(group[i] for i in shared)

    common = {(seen(g), user) for g, user in lists} & {(g, user) for g, user, *_ in judged}
    assume(common)
    others = [i for i in range(len(by)) if i not in shared]
    models = {tuple(g[i] for i in others) for g, _ in lists}
    if len(models) > 1:
        held = [sum((seen(g), user) == key for g, user in lists) for key in common]
        assume(max(held) > 1)
    note(f"by={by}\nrun={run.lazy().collect().rows()}\ntruth={truth.lazy().collect().rows()}")
    return Case(run, truth, by, reference.judge(lists, judged, width=len(by), shared=shared))


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "users": st.sampled_from(["truth", "judged", "both", "run", "all"]),
        "undefined": st.sampled_from([0.0, 0.25, None]),
        "relevant_at": st.sampled_from([0.5, 1, 2, 2.5, None]),
        "unjudged": st.sampled_from(["miss", "drop"]),
        "depth": st.integers(1, 7) | st.none(),
    },
)
quick = settings(deadline=None, max_examples=reference.drawn(40))


def assert_rows(result, columns, expected):
    """The columns, and the rows in order, numbers to 1e-12."""
    result = result.lazy().collect()
    assert result.columns == columns
    rows = result.rows()
    keys = [column for column in columns if column in ("model", "day", "user", "item", "users")]
    assert [row[: len(keys)] for row in rows] == [row[: len(keys)] for row in expected]
    for row, wanted in zip(rows, expected, strict=True):
        for column, got, want in zip(columns, row, wanted, strict=True):
            if isinstance(got, float) and isinstance(want, float):
                same = math.isclose(got, want, rel_tol=1e-12, abs_tol=1e-12)
            else:
                same = got == want
            assert same, f"{column} in {row}: {got}, not {want}"


def names_of(asked):
    return [a if isinstance(a, str) else a.meta.output_name() for a in asked]


@quick
@given(cases())
def test_judge(case):
    """The judged table has one row for each item that was retrieved or judged."""
    expected = sorted(
        (*group, user, item, ranks.get(item), grades.get(item))
        for (group, user), (ranks, grades) in case.table.items()
        for item in {*ranks, *grades}
    )
    judged = rf.judge(case.run, case.truth, by=case.by)
    assert isinstance(judged, type(case.run))
    columns = [*case.by, "user", "item", "rank", "relevance"]
    assert_rows(judged.select(columns).sort(columns[:-2]), columns, expected)


@quick
@given(cases(), metrics(), OPTIONS)
def test_per_user(case, chosen, options):
    """Run and truth, and the judged table, both give the rows of the reference."""
    specified, asked = chosen
    note(f"asked={names_of(asked)}")
    expected = reference.per_user(case.table, specified, **options)
    columns = [*case.by, "user", *names_of(asked)]
    result = rf.per_user(case.run, *asked, truth=case.truth, by=case.by, **options)
    assert isinstance(result, type(case.run))
    assert_rows(result, columns, expected)
    judged = rf.judge(case.run, case.truth, by=case.by)
    options = {"users": "truth"} | options  # by default all users count where all judged is listed
    assert_rows(rf.per_user(judged, *asked, by=case.by, **options), columns, expected)


@quick
@given(cases(), metrics(geometric=True), OPTIONS)
def test_evaluate(case, chosen, options):
    """Means over users, one row a group, from run and truth and from the judged table."""
    specified, asked = chosen
    note(f"asked={names_of(asked)}")
    expected = reference.evaluate(case.table, specified, **options)
    columns = [*case.by, "users", *names_of(asked)]
    result = rf.evaluate(case.run, *asked, truth=case.truth, by=case.by, **options)
    assert isinstance(result, type(case.run))
    assert_rows(result, columns, expected)
    judged = rf.judge(case.run, case.truth, by=case.by)
    options = {"users": "truth"} | options  # by default all users count where all judged is listed
    assert_rows(rf.evaluate(judged, *asked, by=case.by, **options), columns, expected)


@quick
@given(st.data(), st.sampled_from(["item", "order"]), st.booleans(), st.booleans())
def test_with_rank_equals_the_reference(data, ties, descending, grouped):
    """Every row of the run keeps its place and has its rank, null where not retrieved."""
    items = data.draw(st.sampled_from([["9", "10", "a", "B", "é", "ab"], [9, 10, 1, 2, -3, 4]]))
    by = ["model"] if grouped else []
    groups = [("a",), ("b",)] if grouped else [()]
    rows = lists_of(data.draw, groups, ["u", "v"], items, st.sampled_from(SCORES))
    item_type = pl.String if isinstance(items[0], str) else pl.Int64
    run = frame(data.draw, rows, by, {"user": pl.String, "item": item_type, "score": pl.Float64})
    lists = reference.lists_from_scores(rows, descending=descending, ties=ties)
    expected = [
        (*group, user, item, lists.get((group, user), {}).get(item))
        for group, user, item, _ in rows
    ]
    ranked = rf.with_rank(run, by=by, ties=ties, descending=descending)
    columns = [*by, "user", "item", "rank"]
    assert_rows(ranked.select(columns), columns, expected)


# user, item, score; user, item, grade. Nobody hears of "silent", whose only score is null
RUN = [
    ("found", "a", 0.9),
    ("found", "b", 0.8),
    ("unjudged", "a", 0.9),
    ("zero", "a", 0.9),
    ("negative", "a", 0.9),
    ("null", "a", None),
    ("silent", "a", None),
]
TRUTH = [
    ("found", "b", 2),
    ("found", "c", 1),
    ("zero", "a", 0),
    ("negative", "a", -1),
    ("absent", "a", 1),
    ("null", "a", 1),
]
JUDGED = [
    ("absent", "a", None, 1),
    ("found", "a", 1, None),
    ("found", "b", 2, 2),
    ("found", "c", None, 1),
    ("negative", "a", 1, -1),
    ("null", "a", None, 1),
    ("unjudged", "a", 1, None),
    ("zero", "a", 1, 0),
]
# precision@4, rr, cg
VALUES = {
    "absent": (0.0, 0.0, 0.0),
    "found": (0.25, 0.5, 2.0),
    "negative": (None, None, None),
    "null": (0.0, 0.0, 0.0),
    "unjudged": (None, None, None),
    "zero": (None, None, None),
}


@pytest.mark.parametrize(
    ("users", "selected", "means", "means_of_zeros"),
    [
        ("truth", "absent found null", (1 / 12, 1 / 6, 2 / 3), (1 / 12, 1 / 6, 2 / 3)),
        ("judged", "absent found negative null zero", (1 / 12, 1 / 6, 2 / 3), (0.05, 0.1, 0.4)),
        ("both", "found negative zero", (0.25, 0.5, 2.0), (1 / 12, 1 / 6, 2 / 3)),
        ("run", "found negative unjudged zero", (0.25, 0.5, 2.0), (0.0625, 0.125, 0.5)),
        (
            "all",
            "absent found negative null unjudged zero",
            (1 / 12, 1 / 6, 2 / 3),
            (1 / 24, 1 / 12, 1 / 3),
        ),
    ],
)
def test_user_of_each_kind(users, selected, means, means_of_zeros):
    """Who comes out under each policy, and whose mean it is."""
    run = pl.DataFrame(RUN, ["user", "item", "score"], orient="row")
    truth = pl.DataFrame(TRUTH, ["user", "item", "relevance"], orient="row")
    judged = pl.DataFrame(JUDGED, ["user", "item", "rank", "relevance"], orient="row")
    made = rf.judge(run, truth).select(judged.columns).sort("user", "item")
    assert made.rows() == judged.rows()

    asked = ["precision@4", "rr", "cg"]
    rows = [(user, *VALUES[user]) for user in selected.split()]
    for table, options in ((run, {"truth": truth}), (judged, {})):
        result = rf.per_user(table, *asked, users=users, **options)
        assert_rows(result, ["user", *asked], rows)
        result = rf.evaluate(table, *asked, users=users, **options)
        assert_rows(result, ["users", *asked], [(len(rows), *means)])
        result = rf.evaluate(table, *asked, users=users, undefined=0.0, **options)
        assert_rows(result, ["users", *asked], [(len(rows), *means_of_zeros)])
