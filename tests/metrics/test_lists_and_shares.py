"""Metrics of lists and of shares, against definitions in plain Python."""

import itertools
import math
import re
from contextlib import suppress
from random import Random

import polars as pl
import pytest
import reference
from every_metric import OF_EACH_COLUMN
from hypothesis import given, settings
from hypothesis import strategies as st
from lists_and_shares import (
    ITEMS,
    OF_ALL,
    OF_USERS,
    WORLD,
    World,
    labels_at,
    mean,
    oracle,
)
from polars.testing import assert_frame_equal
from two_models import assert_equal

import rankframe as rf
from rankframe import _sizes


@st.composite
def worlds(draw):
    users = range(1, draw(st.integers(2, 6)))
    some = st.lists(st.sampled_from(ITEMS), unique=True, min_size=0, max_size=6)
    gaps = st.sets(st.integers(0, 6), max_size=4)
    lists = {u: with_gaps(draw(some), draw(gaps)) for u in users}
    lists[0] = ["a", *draw(st.permutations(["b", "g", "c"]))]
    history = {u: draw(st.sets(st.sampled_from(ITEMS), max_size=5)) for u in [*users, 8, 9]}
    history[0] = {"b", "c"}
    history[0] |= draw(st.sets(st.sampled_from(ITEMS)))
    truth = {u: draw(st.sets(st.sampled_from(ITEMS), max_size=4)) for u in users}
    truth[0] = {"b"}
    return World({u: some for u, some in lists.items() if some}, history, truth)


def with_gaps(some, gaps):
    """A list with empty ranks before some of its items; none at its end."""
    return [item for place, own in enumerate(some) for item in [None, own][place not in gaps :]]


def close(got, expected):
    if expected is None:
        return got is None
    return got is not None and math.isclose(got, expected, rel_tol=1e-11, abs_tol=1e-11)


@settings(deadline=None, max_examples=reference.drawn(25))
@given(worlds(), st.sampled_from([1, 2, 3, 10]))
def test_values_of_users_follow_their_definitions(world, k):
    tables = world.tables()
    labels = labels_at(k, OF_USERS)
    run = tables.pop("run")
    got = rf.per_user(run, *labels, users="run", **tables)
    for label, asked in zip(OF_USERS, labels, strict=True):
        expected = oracle(world, label, k)
        values = dict(zip(got["user"], got[asked], strict=True))
        assert values.keys() == world.lists.keys()
        for user, value in values.items():
            assert close(value, expected.get(user)), (asked, user, value, expected.get(user))


@settings(deadline=None, max_examples=reference.drawn(25))
@given(worlds(), st.sampled_from([1, 2, 3, 10]))
def test_numbers_of_all_lists_follow_their_definitions(world, k):
    tables = world.tables()
    labels = labels_at(k, OF_ALL)
    run = tables.pop("run")
    got = rf.evaluate(run, *labels, users="run", **tables).row(0, named=True)
    for label, asked in zip(OF_ALL, labels, strict=True):
        expected = oracle(world, label, k)
        assert close(got[asked], expected), (asked, got[asked], expected)


# ------------------------------------------------------------------ invariants

LABELS = labels_at(3, [*OF_USERS, *OF_ALL])


def evaluated(run, *labels, **options):
    return rf.evaluate(run, *labels, **options).lazy().collect()


@pytest.mark.parametrize("engine", ["streaming", "in-memory"])
def test_frames_of_any_kind_in_any_order(engine):
    tables = WORLD.tables()
    run = tables.pop("run")
    expected = evaluated(run, *LABELS, **tables)
    shuffled = {
        name: table.sample(fraction=1, shuffle=True, seed=3) for name, table in tables.items()
    }
    lazy = {name: table.lazy() for name, table in shuffled.items()}
    plan = rf.evaluate(run.sample(fraction=1, shuffle=True, seed=5).lazy(), *LABELS, **lazy)
    assert_frame_equal(plan.collect(engine=engine), expected, abs_tol=1e-12)


def test_first_rows_that_do_not_meet_prove_nothing(monkeypatch):
    tables = WORLD.tables()
    run = tables.pop("run")
    expected = evaluated(run, *LABELS, **tables)
    monkeypatch.setattr(_sizes, "FIRST_ROWS", 1)
    tables["items"] = tables["items"].reverse()
    tables["history"] = tables["history"].reverse()
    assert_frame_equal(evaluated(run, *LABELS, **tables), expected, abs_tol=1e-12)


def test_unranked_row_does_not_meet_the_catalogue():
    run = pl.DataFrame({"user": [1, 1], "item": ["a", "z"], "rank": [None, 1]})
    with pytest.raises(rf.RankingDataError, match="no item of the run is in items="):
        rf.evaluate(run, "coverage@2", items=pl.DataFrame({"item": ["a"]}))


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int64, pl.UInt64])
@pytest.mark.parametrize("lazy", [False, True])
def test_ids_of_any_type_in_any_table(dtype, lazy):
    """The lists have ids below and above those of the other tables."""
    tables = WORLD.tables()
    tables["history"] = tables["history"].filter(pl.col("item").is_in([*"bcd"]))
    labels = ["unseen@3", "novelty@3", "coverage@3", "categories(of=genre)@3"]
    run = tables["run"]
    expected = evaluated(run, *labels, **{n: t for n, t in tables.items() if n != "run"})
    for of_run in (pl.Int16, pl.Int64, dtype):
        places = dict(zip(ITEMS, range(1 if pl.UInt64 in (dtype, of_run) else -4, 9), strict=False))
        coded = {
            name: table.with_columns(pl.col("item").replace_strict(places).cast(dtype))
            for name, table in tables.items()
        }
        lists = coded.pop("run").with_columns(pl.col("item").cast(of_run))
        rest = {n: t.lazy() if lazy else t for n, t in coded.items()}
        got = evaluated(lists.lazy() if lazy else lists, *labels, **rest)
        assert_frame_equal(got, expected, abs_tol=1e-12)


def test_pandas_frames():
    tables = WORLD.tables()
    tables["items"] = tables["items"].drop("vector")
    labels = [label for label in LABELS if "vector" not in label]
    run = tables.pop("run")
    expected = evaluated(run, *labels, **tables)
    frames = {name: table.to_pandas() for name, table in tables.items()}
    got = pl.from_pandas(rf.evaluate(run.to_pandas(), *labels, **frames))
    assert_frame_equal(got, expected, abs_tol=1e-12)


@pytest.mark.parametrize("of_tables", [(), ("history",), ("truth", "items")])
def test_groups_are_as_if_alone(of_tables):
    tables = WORLD.tables()
    run = tables.pop("run")
    halves = {"x": run.filter(pl.col("user") != 1), "y": run.filter(pl.col("rank") < 3)}
    grouped = pl.concat([half.with_columns(model=pl.lit(name)) for name, half in halves.items()])
    parts = {
        name: {
            "x": tables[name].sample(fraction=0.9, seed=1),
            "y": tables[name].sample(fraction=0.8, seed=2),
        }
        for name in of_tables
    }
    whole = {
        name: pl.concat([part.with_columns(model=pl.lit(m)) for m, part in some.items()])
        for name, some in parts.items()
    }
    got = evaluated(grouped, *LABELS, by="model", users="run", **{**tables, **whole})
    for model, half in halves.items():
        own = {name: some[model] for name, some in parts.items()}
        alone = evaluated(half, *LABELS, users="run", **{**tables, **own})
        one = got.filter(model=model).drop("model")
        assert_frame_equal(one, alone, abs_tol=1e-12)


def test_metrics_of_accuracy_stay_as_they_are():
    tables = WORLD.tables()
    run, truth = tables.pop("run"), tables["truth"]
    labels = ["ndcg@3", "map", "judged@2", "num_hits"]
    plain = rf.per_user(run, *labels, truth=truth)
    beside = rf.per_user(run, *labels, "novelty@3", "miscalibration(of=genre)@3", **tables)
    assert_frame_equal(beside.select(plain.columns), plain)


@pytest.mark.parametrize("users", ["truth", "judged", "both", "run", "all"])
def test_users_whose_lists_count(users):
    tables = WORLD.tables()
    run = tables.pop("run")
    tables["truth"] = tables["truth"].filter(pl.col("user") != 2)
    got = evaluated(run, *LABELS, users=users, **tables)
    counted = run if users in ("run", "all") else run.filter(pl.col("user") != 2)
    expected = evaluated(counted, *LABELS, users="run", **tables)
    assert_frame_equal(got.drop("users"), expected.drop("users"), abs_tol=1e-12)


def test_total_is_made_anew():
    tables = WORLD.tables()
    run = tables.pop("run")
    split = run.with_columns(half=pl.col("user") % 2)
    tables["truth"] = tables["truth"].with_columns(half=pl.col("user") % 2)
    labels = [label for label in LABELS if "target=" not in label]
    got = evaluated(split, *labels, by="half", total=True, users="run", **tables)
    tables["truth"] = tables["truth"].drop("half")
    whole = evaluated(run, *labels, users="run", **tables)
    assert_frame_equal(got.filter(pl.col("half").is_null()).drop("half"), whole, abs_tol=1e-12)


# ------------------------------------------------------------------ companions

_GROUPS = {
    "plain": {0: [*"abcg"], 1: [*"hgfa"], 2: [*"ba"]},
    "unknown": {0: [*"hde"], 1: [*"eha"], 2: [*"h"]},  # without a value, or not in the catalogue
    "gaps": {0: ["a", None, "h", "c"], 1: [None] * 3 + [*"bd"], 2: [None, "h", None, *"ab"]},
    "below": {0: [None] * 4 + [*"agh"], 2: [None] * 5 + [*"c"]},
    "lone": {1: [*"cha"]},
}
_CUTS = itertools.cycle([1, 2, 3, 5])
_MIXED = [f"{label.replace(',', ', ')}@{next(_CUTS)}" for label in (*OF_USERS, *OF_ALL)]
_MORE = [
    *("entropy(of=shown)@3", "disparity(of=shown)@1", "disparity(of=shown, target=uniform)@3"),
    *("categories(of=genre)@3", "categories(of=genre, divide_by=values)@1"),
    *("gini(of=shown, discount=hit)@1", "coverage(of=shown, count=true)@5", "awrf(of=shown)@2"),
    *("precision(divide_by=returned)@3", "disparity(of=item, over=user, target=truth)@2"),
]


def _grouped(names):
    """The tables of these groups; the column of groups is there if they are several."""
    history = {0: {"a", "c"}, 1: {"h", "d"}, 9: {"a"}}
    truth = {0: {"b", "h"}, 1: {"a", "c"}, 2: {"e"}}
    worlds = [World(_GROUPS[name], history, truth) for name in names]
    tables = worlds[0].tables()
    if len(names) > 1:
        runs = {name: world.tables()["run"] for name, world in zip(names, worlds, strict=True)}
        tables |= {"run": rf.runs.stack(runs), "by": "model"}
    grade = pl.col("item").replace_strict({"a": 2, "h": 3}, default=1)
    tables["truth"] = tables["truth"].with_columns(relevance=grade)
    return tables


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("names", "options"),
    [
        ([*_GROUPS], {"users": "all"}),
        ([*_GROUPS], {"users": "run", "depth": 2}),
        ([*_GROUPS], {"truth": None, "depth": 2}),
        (["lone"], {"relevant_at": 2}),
        (["unknown"], {"truth": None}),
    ],
)
def test_values_do_not_depend_on_the_other_metrics_of_the_call(names, options):
    tables = _grouped(names) | options
    run = tables.pop("run")
    alone = {}
    for label in {*_MIXED, *_MORE, *([] if tables["truth"] is None else OF_EACH_COLUMN)}:
        with suppress(ValueError, rf.RankingDataError):  # what is refused has no value
            alone[label] = rf.evaluate(run, label, count_users=True, **tables)
    assert len(alone) > 70
    random = Random(7)
    labels = sorted(alone)
    for call in [labels, *(random.sample(labels, number) for number in [2, 3] * 4)]:
        together = rf.evaluate(run, *call, count_users=True, **tables)
        for label in call:
            own = alone[label]
            assert_frame_equal(together.select(own.columns), own, abs_tol=1e-12)


LINEAR = [
    *(
        "popularity",
        "novelty",
        "novelty(new=zero)",
        "popularity_quantile",
        "tail",
        "tail(count=true)",
    ),
    *("unseen", "new", "popularity_lift", "popularity(divide_by=k)", "filled"),
]


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_expectation_under_ties_is_the_mean_over_all_orders(k):
    tables = WORLD.tables()
    tables.pop("run")
    tables.pop("truth")
    scores = {"a": 3.0, "h": 2.0, "c": 2.0, "f": 2.0, "d": 1.0}
    run = pl.DataFrame({"user": 1, "item": [*scores], "score": [*scores.values()]})
    labels = [f"{label}@{k}" for label in LINEAR]
    got = rf.per_user(run.rank.with_rank(ties="expected"), *labels, **tables).row(0)[1:]
    orders = []
    for order in itertools.permutations("hcf"):
        ranked = pl.DataFrame({"user": 1, "item": ["a", *order, "d"], "rank": range(1, 6)})
        orders.append(rf.per_user(ranked, *labels, **tables).row(0)[1:])
    for label, value, values in zip(labels, got, zip(*orders, strict=True), strict=True):
        assert close(value, mean(values)), label


def test_metrics_of_lists_without_a_form_refuse_ties(refused):
    tables = WORLD.tables()
    run = tables.pop("run").with_columns(tied=1)
    assert rf.evaluate(run, "coverage", "gini", **tables)["coverage"].item() == 1.0
    for label in ("ild(of=genre)", "serendipity", "epc", "novelty(new=skip)", "coverage@2"):
        refused(rf.evaluate, run, label, **tables)


# ------------------------------------------------------------------ pitfalls

RUN = pl.DataFrame({"user": [1, 1, 2, 2, 3, 3], "item": [*"abacbd"], "rank": [1, 2] * 3})


def test_item_outside_the_catalogue_does_not_break_personalization():
    run = pl.DataFrame({"user": [1, 1, 2, 2, 3, 3], "item": [*"abacde"], "rank": [1, 2] * 3})
    catalogue = pl.DataFrame({"item": [*"bcde"]})  # lacks a, which two lists share
    got = rf.evaluate(run, "personalization@2", "coverage@2", items=catalogue)
    assert got["personalization@2"].item() == pytest.approx(1 - 0.5 / 3)
    assert got["coverage@2"].item() == 1.0


def test_item_outside_the_catalogue_counts_in_no_share():
    run = pl.DataFrame({"user": 1, "item": [*"aqr"], "rank": [1, 2, 3]})
    items = pl.DataFrame({"item": [*"ab"]})
    options = "entropy({})", "disparity(of=item, {})", "awrf(of=item, {})"
    of_user = [option.format("over=user") for option in options]
    of_all = [option.format("over=all") for option in options]
    means = [rf.evaluate(run, *labels, items=items).row(0) for labels in (of_all, of_user)]
    assert means[0] == means[1] == (1, 0.0, 0.5, pytest.approx(0.784238))
    assert rf.evaluate(run, "entropy(over=user, normalize=true)", items=items).item(0, 1) == 0.0
    shares = rf.stats.exposure(run, of="item", over="user", items=items)
    assert shares.rows() == [(1, "a", 1.0, 1.0, 0.5), (1, "b", 0.0, 0.0, 0.5)]
    assert rf.stats.exposure(run, of="item", items=items).rows() == [
        row[1:] for row in shares.rows()
    ]


def test_list_without_a_known_value_is_a_list():
    run = pl.DataFrame({"user": [1, 2], "item": ["a", "c"], "rank": [1, 1]})
    items = pl.DataFrame({"item": ["a", "b"], "genre": [["x"], ["y"]]})
    assert rf.per_user(run, "categories@1", items=items).rows() == [(1, 1.0), (2, 0.0)]
    assert rf.stats.exposure(run, over="user", items=items, target=None)["user"].to_list() == [1]


def test_items_shown_count_with_and_without_a_hit():
    run = pl.DataFrame({"user": [1, 1, 2, 2], "item": [*"abca"], "rank": [1, 2, 1, 2]})
    truth = pl.DataFrame({"user": [1, 2], "item": ["a", "a"]})
    items = pl.DataFrame({"item": [*"ab"]})
    labels = ["gini(of=shown, discount=hit)", "entropy(of=shown, normalize=true)"]
    labels += ["disparity(of=shown, target=uniform)", "disparity(of=shown)"]
    alone = rf.evaluate(run, *labels[:3], truth=truth).row(0)[1:]
    assert alone == pytest.approx((2 / 3, 1.5 / math.log2(3), 1 / 6))
    # c is shown, but the catalogue lacks it, so that its target is 0
    assert rf.evaluate(run, *labels, truth=truth, items=items).row(0)[1:] == (*alone, 0.25)
    shares = rf.stats.exposure(run, of="shown", discount="hit", truth=truth, target="uniform")
    assert shares["exposure"].to_list() == [2.0, 0.0, 0.0]
    assert shares["target"].to_list() == pytest.approx([1 / 3] * 3)
    each = rf.stats.exposure(run, of="shown", over="user", items=items)
    assert each.filter(user=2).rows() == [(2, "a", 1.0, 0.5, 1.0), (2, "c", 1.0, 0.5, 0.0)]


def test_history_of_one_user_has_no_scale_of_novelty():
    one = pl.DataFrame({"user": [1], "item": ["a"]})
    options = ["", "new=zero, ", "new=skip, ", "out_of=rows, ", "divide_by=k, "]
    labels = [f"novelty({option}normalize=true)@2" for option in options]
    got = rf.evaluate(RUN, *labels, history=one, count_users=True)
    assert got.row(0) == (3, *(None, 0) * len(labels))


@pytest.mark.parametrize("options", [{}, {"users": "all"}, {"truth": None}])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_cut_at_k_is_a_metric_at_k(k, options):
    """A list of which ``depth`` leaves nothing is an empty list, and its user counts."""
    tables = _grouped([*_GROUPS]) | options
    run = tables.pop("run")
    labels = [label for label in (*OF_USERS, *OF_ALL) if not label.startswith(("ee_r", "ee_l"))]
    if tables["truth"] is None:
        reads = ("truth", "hit", "epc", "efd", "serendipity")
        labels = [label for label in labels if not any(word in label for word in reads)]
    labels = [f"{label.replace(',', ', ')}@{k}" for label in labels]
    got = rf.evaluate(run, *labels, depth=k, count_users=True, **tables)
    assert_frame_equal(got, rf.evaluate(run, *labels, count_users=True, **tables), abs_tol=1e-12)
    below = got.filter(model="below").row(0, named=True)
    assert [below[f"{name}@{k}"] for name in ("filled", "coverage", "gini")] == [0.0, 0.0, None]
    assert below["users"] == (2 if tables["truth"] is None else 3)


@pytest.mark.parametrize("names", [[*_GROUPS], ["below"]])
@pytest.mark.parametrize("options", [{}, {"users": "run", "depth": 2}])
def test_parts_of_lists_with_gaps_add_up(names, options):
    tables = _grouped(names)
    run, truth = tables.pop("run"), tables.pop("truth")
    by = {"by": tables["by"]} if "by" in tables else {}
    facts = rf.parts.facts(run, truth=truth, **by)
    moving = ("target=truth", "target=candidates")  # targets that no part can add up
    labels = [label for label in OF_ALL if not any(word in label for word in moving)]
    labels = [f"{label.replace(',', ', ')}@2" for label in (*labels, "categories(of=genre)")]
    options = {**tables, **options}
    parts = []
    for user in range(3):
        some, judged = run.filter(user=user), truth.filter(user=user)
        options |= {"facts": facts, "part": str(user)}
        parts.append(rf.parts.sums(some, *labels, truth=judged, **options))
    del options["facts"], options["part"]
    whole = rf.evaluate(run, *labels, truth=truth, **options)
    combined = rf.parts.combine(parts)  # by name
    assert_frame_equal(combined, whole, abs_tol=1e-12, check_row_order=False)


def test_list_without_a_judged_item_is_an_empty_list():
    truth = pl.DataFrame({"user": [1, 9], "item": ["a", "a"]})
    options = {"truth": truth, "users": "all", "unjudged": "drop", "items": CATALOGUE}
    got = rf.per_user(
        RUN, "filled@2", "categories@2", "awrf@2", "popularity@2", history=HISTORY, **options
    )
    assert got.rows()[1:] == [
        (2, 0.0, 0.0, None, None),
        (3, 0.0, 0.0, None, None),
        (9, *[None] * 4),
    ]
    assert got.row(0)[1:3] == (0.5, 0.5)


def test_users_without_a_profile_are_not_calibrated():
    tables = WORLD.tables()
    run = tables.pop("run")
    got = rf.per_user(run, "miscalibration(of=genre)@3", "popularity_lift@3", **tables)
    assert got.filter(user=3).row(0) == (3, None, None)
    filled = rf.per_user(run, "miscalibration(of=genre)@3", undefined=1.0, **tables)
    assert filled.filter(user=3)["miscalibration(of=genre)@3"].item() == 1.0


def test_repeated_row_of_the_history_is_not_a_second_user():
    twice = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "a", "b"]})
    of_users = ["popularity@2", "novelty@2", "popularity_quantile@2", "popularity_lift@2", "new@2"]
    of_users += ["popularity(out_of=users)@2", "tail@2"]
    for frame in (RUN, RUN.lazy()):
        got = rf.evaluate(frame, *of_users, history=twice).lazy().collect()
        assert_equal(got, rf.evaluate(RUN, *of_users, history=twice.unique()))
    truth = {"truth": RUN.select("user", "item").head(3)}
    of_hits = ["serendipity@2", "epc@2", "snips_recall@2"]
    got = rf.evaluate(RUN, *of_hits, history=twice, **truth)
    assert_equal(got, rf.evaluate(RUN, *of_hits, history=twice.unique(), **truth))
    rows = rf.metrics.rows(
        RUN, "popularity", "novelty(out_of=rows)", "epc(measure=efd)", history=twice, **truth
    )
    assert rows.filter(item="a")["popularity", "interactions", "history_rows"].row(0) == (1, 2, 3)
    rows = rows.filter(pl.col("user") == rows["user"][0])
    bits = [math.log2(3 / max(count, 1)) for count in rows["interactions"]]
    got = rf.per_user(RUN, "novelty(out_of=rows)", history=twice)
    assert got.row(0)[1] == pytest.approx(sum(bits) / len(bits))


@pytest.mark.parametrize(
    "label", ["coverage@2", "gini@2", "coverage(count=true)@2", "entropy(normalize=true)"]
)
def test_hint_of_what_is_shown_can_be_pasted(label):
    with pytest.raises(rf.RankingDataError, match="only items that are shown: '") as raised:
        rf.evaluate(RUN, label)
    pasted = str(raised.value).rpartition("shown: ")[2].strip("'")
    assert rf.evaluate(RUN, pasted).item(0, rf.evaluate(RUN, pasted).columns[-1]) is not None


@pytest.mark.parametrize("dtype", [pl.String, pl.Int64])
@pytest.mark.parametrize("kind", ["clone", "to_pandas"])
def test_long_catalogue_has_an_error_whose_line_makes_lists(dtype, kind):
    run = pl.DataFrame({"user": 1, "item": [*"ab"], "rank": [1, 2]})
    long = pl.DataFrame({"item": [*"aab"], "category": pl.Series(["1", "2", "2"]).cast(dtype)})
    long = getattr(long, kind)()
    with pytest.raises(rf.RankingDataError, match=r"duplicate \(item\): keep one row") as got:
        rf.evaluate(run, "categories(of=category)@2", items=long)
    line = str(got.value).partition("into a list: ")[2].partition(". Offending")[0]
    items = eval(line, {"items": long, "pl": pl})
    lists = pl.DataFrame({"item": [*"ab"], "category": [["1", "2"], ["2"]]})
    assert_frame_equal(pl.DataFrame(items), lists, check_row_order=False)
    assert rf.evaluate(run, "categories(of=category)@2", items=items).height == 1


def test_column_of_the_callers_own_keeps_its_name():
    run = RUN.with_columns(popularity=pl.Series([5, 4, 3, 2, 1, 0]), lists=1, share=0.5)
    mine = pl.col("popularity").filter("listed").max().alias("mine")
    assert rf.per_user(run, mine)["mine"].to_list() == [5, 3, 1]
    history = pl.DataFrame({"user": [1, 2], "item": ["a", "a"]})
    assert rf.evaluate(run, "unseen@2", history=history)["unseen@2"].item() == pytest.approx(2 / 3)
    message = "run, column 'popularity': this name is reserved"
    with pytest.raises(rf.RankingDataError, match=message):
        rf.evaluate(run, "popularity@2", history=history)


def test_columns_of_the_catalogue_ride_along_where_they_are_named():
    items = pl.DataFrame({"item": [*"abcd"], "price": [1.0, 2.0, 3.0, 4.0]})
    price = pl.col("price").filter(pl.col("listed") & (pl.col("rank") <= 2)).mean().alias("price@2")
    got = rf.per_user(RUN, price, items=items)
    assert got["price@2"].to_list() == [1.5, 2.0, 3.0]
    assert "price" in rf.metrics.rows(RUN, price, items=items).columns
    assert "price" not in rf.metrics.rows(RUN, items=items).columns


# ------------------------------------------------------------------ errors

HISTORY = pl.DataFrame({"user": [1, 2], "item": ["a", "b"]})
CATALOGUE = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["y"], ["x"], ["z"]], "price": 1.0})


def text_of(call):
    """Give the error of a call, or None."""
    try:
        call()
    except rf.RankingDataError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", ["share", "target"])
@pytest.mark.parametrize("given", [[], ["items"]])
def test_column_of_the_caller_that_is_missing_is_named_though_a_share_is_so_called(name, given):
    tables = WORLD.tables()
    metric = pl.col(name).sum().alias("own")
    options = {table: tables[table] for table in ["truth", *given]}
    with pytest.raises(rf.RankingDataError, match=f"metric 'own' reads a column '{name}'; the "):
        rf.evaluate(tables["run"], metric, **options)


@pytest.mark.parametrize("label", sorted({*labels_at(3, [*OF_USERS, *OF_ALL]), *OF_EACH_COLUMN}))
def test_metric_without_its_tables_says_which_to_pass(label):
    """Each error names one that is missing, until the call has all that it needs."""
    tables = {name: frame.lazy() for name, frame in WORLD.tables().items()}
    run, passed = tables.pop("run"), {"truth": tables.pop("truth")}
    while (text := text_of(lambda: rf.evaluate(run, label, **passed))) is not None:
        said = re.search(r"pass (items|history)=, the (catalogue|table of past)", text)
        assert said is not None, text
        passed[said[1]] = tables.pop(said[1])  # an error for a table that is passed fails here


@pytest.mark.parametrize("kind", ["eager", "lazy", "pandas"])
@pytest.mark.parametrize(
    ("label", "tables", "message"),
    [
        (
            "novelty@2",
            {},
            "'novelty@2': pass history=, the",
        ),
        (
            "ild@2",
            {},
            "metric 'ild@2': pass items=, the catalogue.*; it reads '(pairs|distance)_above",
        ),
        ("coverage@2", {}, "needs shares of item: pass items=.*or history=.*of=shown"),
        (
            "miscalibration@2",
            {"items": CATALOGUE},
            "needs shares of a column of items=: pass history=",
        ),
        ("epc@2", {"history": HISTORY}, "metric 'epc@2': pass truth=, what users want"),
        (
            "coverage(of=gener)@2",
            {"items": CATALOGUE},
            "of=gener: items= has no such.*did you mean 'genre'",
        ),
        ("ild(of=price)@2", {"items": CATALOGUE}, "of=price: Float64 has no distance"),
        (
            "gini(of=price)@2",
            {"items": CATALOGUE},
            "of=price: the column is Float64, but shares need text",
        ),
        ("ild@2", {"items": CATALOGUE.drop("genre")}, "of= is left out, but items= has 0 columns"),
        (
            "coverage@2",
            {"items": pl.concat([CATALOGUE, CATALOGUE])},
            "items=, column 'item': duplicate",
        ),
        ("coverage@2", {"items": CATALOGUE.clear()}, "items=: it is empty"),
        (
            "coverage@2",
            {"items": pl.DataFrame({"item": ["a", None]})},
            "items=, column 'item': null item: drop the row.*item=null",
        ),
        (
            "coverage@2",
            {"items": pl.DataFrame({"item": [1, 2]})},
            "is String in the run and Int64",
        ),
        ("coverage@2", {"items": pl.DataFrame({"item": ["z"]})}, "no item of the run is in items="),
        (
            "unseen@2",
            {"history": HISTORY.with_columns(user=9)},
            "no user of the run is in h",
        ),
        (
            "unseen@2",
            {"history": HISTORY.drop("user")},
            "history=: no column 'user' for user",
        ),
        ("unseen@2", {"history": HISTORY.with_columns(user=None)}, "history="),
    ],
)
def test_metrics_of_lists_report_what_is_wrong(kind, label, tables, message):
    def made(table):
        return (
            {"eager": table, "lazy": table.lazy()}[kind] if kind != "pandas" else table.to_pandas()
        )

    if kind == "pandas" and "null" in message:
        return  # pandas turns the column into objects
    beside = {name: made(table) for name, table in tables.items()}
    with pytest.raises((rf.RankingDataError, ValueError), match=message):
        result = rf.evaluate(made(RUN), label, **beside)
        if kind == "lazy":
            result.collect()


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, 2.0], [1.0], [1.0, 1.0]], "its length is not 2"),
        ([[1.0, math.nan], [1.0, 2.0], [1.0, 1.0]], "a number that is null or not finite"),
        ([[1.0, None], [1.0, 2.0], [1.0, 1.0]], "a number that is null or not finite"),
        ([[], [], []], "its length is 0"),
    ],
)
def test_vectors_that_cannot_be_compared(vectors, message):
    items = pl.DataFrame(
        {"item": [*"abc"], "v": vectors}, schema_overrides={"v": pl.List(pl.Float64)}
    )
    text = f"items=, column 'v': a vector cannot be compared: .*{message}.*Offending row: item="
    for frame in (RUN, RUN.lazy()):
        with pytest.raises(rf.RankingDataError, match=text):
            rf.evaluate(frame, "ild(of=v)@2", items=items).lazy().collect()


def test_numbers_of_all_lists_are_nobodys():
    with pytest.raises(ValueError, match="coverage@2 is one number for all users: use evaluate"):
        rf.per_user(RUN, "novelty@2", "coverage@2", items=CATALOGUE, history=HISTORY)
    with pytest.raises(ValueError, match="'coverage@2' has no bounds, .*: leave it out"):
        truth = pl.DataFrame({"user": [1], "item": ["a"]})
        rf.evaluate(RUN, "coverage@2", items=CATALOGUE, truth=truth, unjudged="bounds")
    mixed = (pl.col("exposure(item;all;none;2)").sum() + pl.col("rank").sum()).alias("mixed")
    with pytest.raises(ValueError, match="reads columns of shares and 'rank'"):
        rf.evaluate(RUN, mixed, items=CATALOGUE)
    two = (pl.col("share(item;all;none;2)") + pl.col("share(genre;all;none;2)")).sum().alias("two")
    with pytest.raises(ValueError, match="reads shares of genre over all and item over all"):
        rf.evaluate(RUN, two, items=CATALOGUE)


@pytest.mark.parametrize(
    "make",
    [
        lambda: rf.metrics.coverage_at(0),
        lambda: rf.metrics.tail_at(3, head=1.0),
        lambda: rf.metrics.miscalibration_at(3, alpha=0),
        lambda: rf.metrics.gini_at(3, discount=1.5),
        lambda: rf.metrics.gini_at(3, of="a;b"),
        lambda: rf.metrics.ee_loss_at(p=1.0),
        lambda: rf.metrics.entropy_at(base=1),
        lambda: rf.metrics.awrf_at(target="x"),
        lambda: rf.metrics.corrected_at(collection=1, sampled=1),
        lambda: rf.metrics.of_label("coverage(count=yes)@3"),
    ],
)
def test_parameters_out_of_range(make):
    with pytest.raises(ValueError, match="must be|catalogue > sampled"):
        make()


# ------------------------------------------------------------------ statistics


def test_interval_is_a_jackknife_of_users():
    tables = WORLD.tables()
    run, items = tables["run"], tables["items"]
    got = rf.summarize(run, "coverage@2", "gini@2", items=items)
    users = run["user"].unique().to_list()
    for label in ("coverage@2", "gini@2"):
        row = got.filter(metric=label).row(0, named=True)
        assert row["mean"] == rf.evaluate(run, label, items=items)[label].item()
        without = [
            rf.evaluate(run.filter(pl.col("user") != user), label, items=items)[label].item()
            for user in users
        ]
        middle = mean(without)
        error = math.sqrt((len(users) - 1) / len(users) * sum((x - middle) ** 2 for x in without))
        assert row["ci_high"] == pytest.approx(min(row["mean"] + 3.182446305 * error, 1))
        assert row["ci_low"] == pytest.approx(max(row["mean"] - 3.182446305 * error, 0))
        assert row["std"] is row["median"] is None


def test_systems_are_compared_by_the_lists_of_users_who_have_both():
    one = pl.DataFrame({"user": [1, 2, 3, 4], "item": [*"aaab"], "rank": 1})
    two = pl.DataFrame({"user": [1, 2, 3, 5], "item": [*"cdef"], "rank": 1})
    items = pl.DataFrame({"item": [*"abcdef"]})
    options = {"items": items, "baseline": "one"}
    for test in ("t", "randomization"):
        got = rf.compare(
            {"one": one, "two": two}, "coverage@1", "gini@1", test=test, **options, details=True
        )
        row = got.row(0, named=True)
        assert (row["mean"], row["baseline_mean"]) == (pytest.approx(3 / 6), pytest.approx(1 / 6))
        assert (row["difference"], row["relative"]) == (pytest.approx(2 / 6), pytest.approx(2))
        assert (row["users"], row["num_left_out"], row["p_value"], row["verdict"]) == (
            *(3, 2, None, None),
        )
        left_out = "2 of 5 users are left out: they have a list with one system only"
        assert row["note"] == f"one number for all lists, which has no test; {left_out}"
        both = [run.filter(pl.col("user") < 4) for run in (one, two)]
        ginis = [rf.evaluate(run, "gini@1", items=items)["gini@1"].item() for run in both]
        assert got["baseline_mean"][1] == pytest.approx(ginis[0])
        assert got["mean"][1] == pytest.approx(ginis[1])


# ------------------------------------------------------------------ rows, fusion, overlap


def test_shares_for_people():
    got = rf.stats.exposure(RUN, of="genre", k=1, items=CATALOGUE)
    assert got.columns == ["genre", "exposure", "share", "target"]
    assert got.rows() == [
        ("x", 2.0, pytest.approx(2 / 3), 0.5),
        ("y", 1.0, pytest.approx(1 / 3), 0.25),
        ("z", 0.0, 0.0, 0.25),
    ]
    each = rf.stats.exposure(RUN, over="user", of="genre", items=CATALOGUE, target=None)
    assert each.columns == ["user", "genre", "exposure", "share"]
    with pytest.raises(rf.RankingDataError, match="exposure needs shares of item: pass items="):
        rf.stats.exposure(RUN, of="item")


def test_overlap_of_lists():
    other = pl.DataFrame({"user": [1, 1, 4], "item": [*"bxa"], "rank": [1, 2, 1]})
    got = rf.runs.overlap(RUN, other, k=2)
    assert got.rows() == [(1, 0.5, 1 / 3), (2, 0, 0), (3, 0, 0), (4, 0, 0)]


RUNS = pl.DataFrame(
    {
        "model": [*"pppqqqr"],
        "user": 1,
        "item": [*"abcbadc"],
        "rank": [1, 2, 3, 1, 2, 3, 1],
        "score": [0.9, 0.5, 0.1, 8.0, 4.0, 2.0, 1.0],
    }
)
#: what each list gives to an item, in places
PLACES = {"a": [1, 2], "b": [2, 1], "c": [3, 1], "d": [3]}
SCORES = {"a": [0.9, 4.0], "b": [0.5, 8.0], "c": [0.1, 1.0], "d": [2.0]}


@pytest.mark.parametrize(
    ("method", "score"),
    [
        ("rrf", lambda ranks, _: sum(1 / (60 + r) for r in ranks)),
        ("isr", lambda ranks, _: len(ranks) * sum(1 / r**2 for r in ranks)),
        ("rbc", lambda ranks, _: sum(0.2 * 0.8 ** (r - 1) for r in ranks)),
        ("comb_sum", lambda _, scores: sum(scores)),
        ("comb_mnz", lambda _, scores: len(scores) * sum(scores)),
        ("comb_max", lambda _, scores: max(scores)),
        ("comb_min", lambda _, scores: min(scores)),
        ("comb_med", lambda _, scores: (min(scores) + max(scores)) / 2),
        ("comb_anz", lambda _, scores: sum(scores) / len(scores)),
    ],
)
def test_fusions_follow_their_formulas(method, score):
    got = {item: value for _, item, value, _ in rf.runs.fuse(RUNS, method).rows()}
    assert got == {item: pytest.approx(score(PLACES[item], SCORES[item])) for item in PLACES}


def test_borda_gives_the_last_of_all_items_one_point():
    both = RUNS.filter(pl.col("model").is_in(["p", "q"]))  # N = 4: a, b, c and d
    got = {item: value for _, item, value, _ in rf.runs.fuse(both, "borda").rows()}
    assert got == {"a": 4 + 3, "b": 3 + 4, "c": 2 + 1, "d": 1 + 2}


def test_borda_counts():
    # a list of three of the four items gives 4, 3, 2, and 1 to the other; one of one 4, 2, 2, 2
    got = {item: value for _, item, value, _ in rf.runs.fuse(RUNS, "borda").rows()}
    assert got == {"a": 4 + 3 + 2, "b": 3 + 4 + 2, "c": 2 + 1 + 4, "d": 1 + 2 + 2}


@pytest.mark.parametrize(
    ("norm", "of_a"),
    [
        ("min_max", 1.0 + 2 / 6),
        ("sum", 0.8 / 1.2 + 2 / 8),
        ("rank", 1.0 + 2 / 3),
        ("zmuv", 0.4 / math.sqrt(0.32 / 3) + (4 - 14 / 3) / math.sqrt(56 / 9)),
    ],
)
def test_norms_of_scores(norm, of_a):
    got = {item: value for _, item, value, _ in rf.runs.fuse(RUNS, "comb_sum", norm=norm).rows()}
    assert got["a"] == pytest.approx(of_a)


@pytest.mark.parametrize("dtype", [pl.UInt8, pl.Int64, pl.Float32])
@pytest.mark.parametrize("norm", [None, "min_max", "sum", "zmuv"])
def test_type_of_scores_does_not_matter(norm, dtype):
    """Scores of a list may all be equal, and those of another fill their type."""
    rows = [("p", "a", 7), ("p", "b", 7), ("q", "a", 255), ("q", "b", 3), ("q", "c", 254)]
    run = pl.DataFrame(rows, schema=["model", "item", "score"], orient="row").with_columns(user=1)
    weights = {"p": 0.1, "q": 0.3}
    frames = [
        rf.runs.fuse(
            run.with_columns(pl.col("score").cast(kind)), "comb_sum", norm=norm, weights=weights
        )
        for kind in (dtype, pl.Float64)
    ]
    assert frames[0].equals(frames[1])
    assert frames[0]["score"].is_finite().all()


def test_fusion_is_a_run():
    fused = rf.runs.fuse(RUNS.lazy(), "rrf", weights={"p": 1, "q": 2, "r": 0})
    truth = pl.DataFrame({"user": [1], "item": ["b"]})
    assert rf.evaluate(fused.drop("score"), "rr", truth=truth).collect()["rr"].item() == 1.0
    assert fused.collect()["rank"].to_list() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="weights: no weight for the system 'r'"):
        rf.runs.fuse(RUNS, "rrf", weights={"p": 1, "q": 2})
    with pytest.raises(rf.RankingDataError, match="no column 'score' for score: comb_sum adds up"):
        rf.runs.fuse(RUNS.drop("score"), "comb_sum")
    with pytest.raises(ValueError, match="smoothing must be a number ≥ 0"):
        rf.runs.fuse(RUNS, smoothing=-1)


# ------------------------------------------------------------------ on relevant rows


def test_propensities_weigh_the_relevant():
    run = pl.DataFrame({"user": 1, "item": [*"abc"], "rank": [1, 2, 4]})
    truth = pl.DataFrame({"user": 1, "item": [*"acx"], "p": [0.5, 0.25, 0.1]})
    labels = [
        "snips_recall(propensity=p)@3",
        "snips_dcg(propensity=p)",
        "snips_recall(propensity=p)",
    ]
    got = rf.per_user(run, *labels, truth=truth).row(0)[1:]
    whole = 2 + 4 + 10
    assert got == pytest.approx((2 / whole, (2 + 4 / math.log2(5)) / whole, 6 / whole))
    history = pl.DataFrame({"user": [1, 2, 3], "item": [*"aac"]})
    popular = rf.per_user(run, "snips_recall(power=2)@1", truth=truth, history=history).row(0)[1]
    assert popular == pytest.approx((1 / 4) / (1 / 4 + 1 + 1))


def test_corrected_metrics_are_nearly_unbiased():
    n, m = 60, 20
    exact, corrected, sampled = [], [], []
    for rank in range(1, n + 1):
        run = pl.DataFrame({"user": 1, "item": range(m + 1), "rank": range(1, m + 2)})
        label = f"corrected(collection={n}, sampled={m}, gamma=0.0)@5"
        chance = (rank - 1) / (n - 1)
        pmf = [math.comb(m, j) * chance**j * (1 - chance) ** (m - j) for j in range(m + 1)]
        if rank == 1:
            truth = pl.DataFrame({"user": range(m + 1), "item": range(m + 1)})
            runs = run.drop("user").join(pl.DataFrame({"user": range(m + 1)}), how="cross")
            of_places = rf.per_user(runs, label, "ndcg@5", truth=truth)
        exact.append(1 / math.log2(rank + 1) if rank <= 5 else 0.0)
        corrected.append(sum(map(math.prod, zip(pmf, of_places[label], strict=True))))
        sampled.append(sum(map(math.prod, zip(pmf, of_places["ndcg@5"], strict=True))))
    assert abs(mean(corrected) - mean(exact)) < 1e-6 < abs(mean(sampled) - mean(exact)) / 100


def test_resamples_know_no_more_items_than_they_show():
    run = pl.DataFrame({"user": [1, 2, 3, 4], "item": [*"aabc"], "rank": 1})
    got = rf.summarize(run, "gini(of=shown)").row(0, named=True)
    without = [
        rf.evaluate(run.filter(pl.col("user") != user), "gini(of=shown)").item(0, 1)
        for user in range(1, 5)
    ]
    error = math.sqrt(3 * mean((x - mean(without)) ** 2 for x in without))
    assert got["ci_high"] - got["mean"] == pytest.approx(3.182446305 * error)
    two = pl.concat(
        [
            run.with_columns(model=pl.lit("a")),
            run.with_columns(pl.lit("z").alias("item"), model=pl.lit("b")),
        ]
    )
    each = rf.evaluate(two, "gini(of=shown)", by="model")["gini(of=shown)"].to_list()
    pair = rf.compare(two, "gini(of=shown)", baseline="a", details=True).row(0, named=True)
    assert [pair["baseline_mean"], pair["mean"]] == pytest.approx(each)


def test_target_that_moves_with_the_users_has_no_interval_and_no_test():
    run = pl.concat([RUN.with_columns(model=pl.lit(name)) for name in "ab"])
    tables = {"items": CATALOGUE, "history": HISTORY}
    label = "disparity(of=genre, target=candidates)@2"
    row = rf.summarize(RUN, label, **tables).row(0, named=True)
    assert row["ci_low"] is None
    assert "its target changes with the users" in row["note"]
    row = rf.compare(run, label, test="randomization", resamples=99, **tables, details=True).row(
        0, named=True
    )
    assert (row["difference"], row["p_value"]) == (0, None)


def test_columns_of_a_history_that_have_no_role_mean_nothing():
    history = HISTORY.with_columns(popularity=pl.lit("many"), seen=1, rank=7)
    labels = ["popularity_lift@2", "unseen@2", "novelty@2"]
    expected = rf.per_user(RUN, *labels, history=HISTORY)
    assert_frame_equal(rf.per_user(RUN, *labels, history=history), expected)


@pytest.mark.parametrize("chance", [0.0, -0.25, None, math.nan])
def test_propensity_is_a_number_above_0(chance):
    truth = pl.DataFrame({"user": [1, 1], "item": ["a", "b"], "p": [chance, 0.5]})
    with pytest.raises(rf.RankingDataError, match="propensity= must be a number > 0"):
        rf.evaluate(RUN, "snips_recall(propensity=p)@1", truth=truth)


def test_close_and_large_vectors_do_not_cancel():
    vectors = [[1e8, 1.0], [1e8, 2.0], [1e200, 1.0], [1e200, 2.0]]
    items = pl.DataFrame({"item": [*"abcd"], "v": vectors})
    run = pl.DataFrame({"user": [1, 1, 2, 2], "item": [*"abcd"], "rank": [1, 2, 1, 2]})
    squared = rf.per_user(run.head(2), "ild(distance=euclidean2)", items=items)
    assert squared["ild(distance=euclidean2)"].item() == 1.0
    assert rf.per_user(run, "ild", items=items)["ild"].to_list() == pytest.approx([0, 0], abs=1e-15)


def test_metrics_of_unknown_items_are_null():
    items = pl.DataFrame(
        {"item": [*"abcd"], "g": [None] * 4}, schema_overrides={"g": pl.List(pl.String)}
    )
    got = rf.evaluate(RUN, "ild@2", "coverage(of=g)@2", "disparity(of=g)@2", items=items)
    assert got.row(0) == (3, None, None, None)


def test_names_of_columns_beside_those_inside():
    for name in ("had", "there", "lists", "genre", "exposures"):
        run = RUN.rename({"user": name})
        history = HISTORY.rename({"user": name})
        labels = [
            "miscalibration(of=genre)@2",
            "disparity(of=genre, target=candidates)@2",
            "coverage@2",
        ]
        got = rf.evaluate(run, *labels, items=CATALOGUE, history=history, user=name)
        expected = rf.evaluate(RUN, *labels, items=CATALOGUE, history=HISTORY)
        assert_frame_equal(got, expected)


def test_metrics_of_lists_name_what_is_missing(refused):
    refused(rf.evaluate, RUN, "disparity(of=shown)")
    refused(rf.stats.exposure, RUN, of="genre", target="truth", items=CATALOGUE)
    refused(rf.stats.exposure, RUN, of="share", items=CATALOGUE.rename({"genre": "share"}))
    typo = pl.col("prize").filter("listed").mean().alias("prize")
    refused(rf.evaluate, RUN, typo, items=CATALOGUE)
    both = pl.col("price").filter("listed").mean().alias("mean price")
    refused(rf.evaluate, RUN.with_columns(price=1.0), both, items=CATALOGUE)


@pytest.mark.parametrize("score", [None, math.nan, math.inf])
def test_score_that_is_none_is_not_fused(score):
    runs = RUNS.with_columns(score=pl.when(pl.col("score") > 4).then(score).otherwise("score"))
    with pytest.raises(
        rf.RankingDataError, match="column 'score': a score that is null or not fin"
    ):
        rf.runs.fuse(runs, "comb_sum")
    assert len(rf.runs.fuse(runs, "rrf")) == 4
    with pytest.raises(ValueError, match="weights names 'x', which is not a system"):
        rf.runs.fuse(RUNS, weights={"p": 1, "q": 1, "r": 1, "x": 1})


def test_check_reads_all_tables():
    tables = {"items": CATALOGUE, "history": HISTORY}
    assert rf.check(RUN, **tables) is RUN
    assert_frame_equal(rf.check(RUN.lazy(), **tables).collect(), RUN)
    message = "run, column 'item': an item that is not in items=: add it to the catalogue.*item='d'"
    with pytest.raises(rf.RankingDataError, match=message):
        rf.check(RUN, items=CATALOGUE.filter(pl.col("item") != "d"))
    assert rf.check(RUN, history=pl.concat([HISTORY, HISTORY])) is RUN  # a shop's repeats


def test_comparing_metrics_of_all_lists_counts_lists_that_begin_below_k():
    a = pl.DataFrame({"user": [1, 2, 3], "item": ["a", "b", "a"], "rank": [1, 1, 3]})
    b = pl.DataFrame({"user": [1, 2, 3], "item": ["a", "a", "b"], "rank": [1, 3, 1]})
    options = {"baseline": "a", "items": pl.DataFrame({"item": ["a", "b"]})}
    (row,) = rf.compare({"a": a, "b": b}, "coverage@1", **options, details=True).to_dicts()
    assert (row["users"], row["num_left_out"]) == (3, 0)
    assert (row["mean"], row["baseline_mean"]) == (1.0, 1.0)


def test_shares_that_may_split_a_block_of_ties_are_refused(refused):
    tied = pl.DataFrame({"user": [1, 1], "item": ["a", "b"], "score": [1.0, 1.0]})
    tied = tied.rank.with_rank(ties="expected")
    items = pl.DataFrame({"item": ["a", "b", "c"]})
    whole = rf.stats.exposure(tied, of="item", items=items, target=None)
    assert whole["exposure"].to_list() == [1.0, 1.0, 0.0]
    for options in ({"k": 1}, {"discount": "log2"}):
        refused(rf.stats.exposure, tied, of="item", items=items, target=None, **options)
