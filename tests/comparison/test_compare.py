"""The verbs summarize, compare and who_gained: who is paired, what comes out, and as what."""

import ast
import os
import random
import re
import subprocess
import sys
from fractions import Fraction
from itertools import product
from operator import attrgetter

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats
from tqdm import tqdm
from user_values import FEW, TESTS, VALUE, compared, judged, one, sample, uncorrected

import rankframe as rf
from rankframe import _sizes
from rankframe._comparison.summaries import check_packages

ANSWER = """model metric baseline difference relative users note ci_low ci_high p_adjusted
    verdict""".split()
COMPARISON = """model metric baseline difference relative users baseline_users num_left_out
    num_missed baseline_num_missed mean baseline_mean relative_low relative_high p_value effect_size
    higher equal lower detectable note ci_low ci_high p_adjusted verdict""".split()
NO_PAIR = "no user has a value in both: paired=False compares different users"
DIAGNOSIS = """relevant_low relevant_high users hits_change precision_change recall_change
    precision_shrunken precision_shrunken_low precision_shrunken_high recall_shrunken
    recall_shrunken_low recall_shrunken_high reading signs precision recall attainable_precision
    attainable_recall""".split()

RUN = pl.DataFrame(
    [
        ("old", 1, "a", 1),
        ("old", 1, "b", 2),
        ("old", 2, "c", 1),
        ("old", 3, "a", 2),
        ("new", 1, "b", 1),
        ("new", 2, "b", 1),
        ("new", 2, "c", 2),
        ("new", 4, "a", 1),
    ],
    schema=["model", "user", "item", "rank"],
    orient="row",
)
TRUTH = pl.DataFrame({"user": [1, 2, 3, 4, 5], "item": list("bcaaa")})
COUNTRIES = pl.DataFrame({"user": [1, 2, 3, 4, 5], "country": list("xxyyy")})


# ------------------------------------------------------------------ who is paired


def test_user_whom_a_run_misses_is_a_miss():
    """New: 1, 1/2, 0, 1, 0; old: 1/2, 1, 1/2, 0, 0."""
    got = RUN.rank.compare("rr", truth=TRUTH, baseline="old", details=True)
    assert got.columns == COMPARISON
    row = got.row(0, named=True)
    assert row["baseline_users"] == 5
    assert (row["metric"], row["model"], row["baseline"], row["users"]) == ("rr", "new", "old", 5)
    assert (row["mean"], row["baseline_mean"]) == pytest.approx((0.5, 0.4))
    assert (row["higher"], row["equal"], row["lower"]) == (2, 1, 2)


def test_policies_of_users_pair_the_users_of_both():
    """In both lists and the truth: 1 and 2, with 1, 1/2 against 1/2, 1."""
    got = RUN.rank.compare("rr", truth=TRUTH, baseline="old", users="both", details=True).row(
        0, named=True
    )
    assert got["users"] == 2
    assert (got["mean"], got["baseline_mean"], got["difference"]) == (0.75, 0.75, 0.0)
    assert (got["higher"], got["equal"], got["lower"]) == (1, 0, 1)


def test_undefined_metric_is_not_a_pair():
    got = compared([1.0, None, 3.0], [2.0, 5.0, None], [3.0, 1.0, 1.0], correction=None)
    assert got.select("model", "baseline", "users", "mean", "baseline_mean").rows() == [
        ("m1", "m0", 1, 2.0, 1.0),
        ("m2", "m0", 2, 2.0, 2.0),
        ("m2", "m1", 2, 2.0, 3.5),
    ]
    (row,) = rf.summarize(judged([1.0, None, 3.0]), VALUE).rows(named=True)
    assert (row["users"], row["num_left_out"], row["mean"]) == (2, 1, 2.0)
    (row,) = rf.summarize(judged([1.0, None, 3.0]), VALUE, undefined=0.0).rows(named=True)
    assert (row["users"], row["num_left_out"], row["mean"]) == (3, 0, pytest.approx(4 / 3))


def test_means_are_those_of_evaluate():
    means = RUN.rank.evaluate("rr", "precision@2", truth=TRUTH, by="model")
    got = RUN.rank.compare("rr", "precision@2", truth=TRUTH, details=True)
    summary = RUN.rank.summarize("rr", "precision@2", truth=TRUTH, by="model")
    for metric in ("rr", "precision@2"):
        new, old = means.sort("model")[metric]
        row = got.row(by_predicate=pl.col("metric") == metric, named=True)
        assert (row["model"], row["baseline"]) == ("old", "new")
        assert (row["mean"], row["baseline_mean"]) == pytest.approx((old, new), abs=1e-12)
        described = summary.filter(metric=metric)["mean"].to_list()
        assert described == pytest.approx([new, old], abs=1e-12)


def test_pairs_come_in_order():
    values = sample(1, 10, systems=4)
    square = (pl.col("value").filter("relevant").first() ** 2).alias("a square")
    got = rf.compare(judged(*values), VALUE, square)
    pairs = [("m1", "m0"), ("m2", "m0"), ("m3", "m0"), ("m2", "m1"), ("m3", "m1"), ("m3", "m2")]
    assert got.select("metric", "model", "baseline").rows() == [
        (metric, *pair) for metric in ("value", "a square") for pair in pairs
    ]
    got = rf.compare(judged(*values), VALUE, baseline="m2")
    assert got["model"].to_list() == ["m0", "m1", "m3"]
    assert set(got["baseline"]) == {"m2"}


def test_swapping_turns_the_signs():
    old, new = sample(2, 12)
    for test in TESTS:
        there, back = one(old, new, test=test), one(new, old, test=test)
        for name in ("p_value", "p_adjusted"):
            assert there[name] == pytest.approx(back[name])
        assert there["difference"] == -back["difference"]
        assert (there["higher"], there["lower"]) == (back["lower"], back["higher"])


def test_order_of_rows_and_the_other_metrics_do_not_matter():
    table = judged(*sample(3, 40, systems=3))
    square = (pl.col("value").filter("relevant").first() ** 2).alias("square")
    for test in TESTS:
        options = {"test": test, "resamples": FEW, **uncorrected(test)}
        got = rf.compare(table, VALUE, **options)
        mixed = rf.compare(table.sample(fraction=1, shuffle=True, seed=5), square, VALUE, **options)
        assert mixed.filter(metric="value").equals(got)


# ------------------------------------------------------------------ segments


@pytest.mark.parametrize("options", [{}, {"weights": "weight"}, {"test": "randomization"}])
def test_pair_has_the_same_bits_alone_and_among_many(options):
    draw = np.random.default_rng(4)
    of_systems = [
        pl.DataFrame({"user": range(40), "model": name, "x": draw.random(40) / 3})
        for name in "abcd"
    ]
    values = pl.concat(of_systems).with_columns(weight=1 + pl.col("user") % 3)
    options |= {"correction": None, "details": True}
    every = rf.compare(values, "x", **options)
    pair = rf.compare(values.filter(pl.col("model").is_in([*"bd"])), "x", **options)
    assert_frame_equal(every.filter(model="d", baseline="b"), pair, check_exact=True)


@pytest.mark.parametrize("test", TESTS)
def test_segment_is_compared_as_if_alone(test):
    table = judged(*sample(4, 30, systems=3)).with_columns(country=pl.col("user") % 2)
    options = {"test": test, "resamples": FEW, **uncorrected(test)}
    got = rf.compare(table, VALUE, by=["model", "country"], **options, details=True)
    assert got.columns == ["country", *COMPARISON]
    for country in (0, 1):
        alone = rf.compare(table.filter(country=country), VALUE, **options, details=True)
        assert got.filter(country=country).drop("country").equals(alone)


def test_segments_of_the_truth_place_the_users():
    truth = TRUTH.join(COUNTRIES, on="user")
    got = RUN.rank.evaluate("rr", truth=truth, by=["model", "country"], total=True)
    assert got.rows() == [
        ("new", "x", 2, 0.75),
        ("new", "y", 3, pytest.approx(1 / 3)),
        ("new", None, 5, 0.5),
        ("old", "x", 2, 0.75),
        ("old", "y", 3, pytest.approx(1 / 6)),
        ("old", None, 5, pytest.approx(0.4)),
    ]
    by = ["model", "country"]
    both = RUN.join(COUNTRIES, on="user").rank.evaluate("rr", truth=truth, by=by)
    assert both.equals(got.drop_nulls())
    joined = RUN.rank.judge(TRUTH, by="model").join(COUNTRIES, on="user")
    assert joined.rank.evaluate("rr", by=by).equals(both)
    assert RUN.rank.judge(truth, by=by).rank.evaluate("rr", by=by).equals(both)
    users = {row["country"]: row["users"] for row in _compared_by(truth).rows(named=True)}
    assert users == {"x": 2, "y": 3}
    assert _compared_by(truth.lazy()).equals(_compared_by(truth))


def _compared_by(truth):
    return RUN.rank.compare("rr", truth=truth, by=["model", "country"])


def test_segments_of_the_truth_need_its_users():
    truth = TRUTH.join(COUNTRIES, on="user")
    by = ["model", "country"]
    with pytest.raises(
        ValueError, match="only the truth has the column 'country' of by=: join it to the"
    ):
        RUN.rank.evaluate("rr", truth=truth, by=by, users="all")
    stranger = RUN.with_columns(
        pl.when(pl.col("user") == 3).then(9).otherwise("user").alias("user")
    )
    assert stranger.rank.per_user("rr", truth=truth, by=by)["user"].to_list() == [1, 2, 3, 4, 5] * 2
    for bad, message in [
        (stranger.filter(user=9), "no user of the run is in the truth"),
        (stranger.with_columns(rank=pl.col("rank") - 1), "a rank that is not an integer ≥ 1"),
        (RUN.cast({"user": pl.String}), "it is String in the run and Int64 in the truth"),
        (pl.concat([RUN, RUN]), "duplicate"),
    ]:
        with pytest.raises(rf.RankingDataError, match=message):
            bad.rank.evaluate("rr", truth=truth, by=by)
    with pytest.raises(rf.RankingDataError, match="run: no column 'county' for by"):
        RUN.rank.evaluate("rr", truth=truth, by=["model", "county"])


def test_ids_of_other_widths_meet_where_the_truth_places_users():
    truth = TRUTH.join(COUNTRIES, on="user")
    expected = RUN.rank.evaluate("rr", truth=truth, by=["model", "country"])
    narrow = RUN.cast({"user": pl.UInt8})
    assert narrow.rank.evaluate("rr", truth=truth, by=["model", "country"]).equals(expected)


def test_totals_of_a_comparison():
    truth = TRUTH.join(COUNTRIES, on="user")
    run = RUN.filter(model="old").drop("model")
    got = run.rank.evaluate("rr", "gmap", "num_hits", truth=truth, by="country", total=True)
    assert got["country"].to_list() == ["x", "y", None]
    whole = run.rank.evaluate("rr", "gmap", "num_hits", truth=TRUTH)
    assert_frame_equal(got.filter(pl.col("country").is_null()).drop("country"), whole)
    lazy = run.lazy().rank.evaluate("rr", "gmap", "num_hits", truth=truth, by="country", total=True)
    assert_frame_equal(lazy.collect(), got)
    with pytest.raises(
        ValueError, match="total=True adds a row of overall means to the groups of by="
    ):
        run.rank.evaluate("rr", truth=TRUTH, total=True)
    with pytest.raises(TypeError, match="total must be True or False"):
        run.rank.evaluate("rr", truth=truth, by="country", total="yes")


def test_segment_without_users_says_so():
    truth = TRUTH.join(COUNTRIES, on="user").with_columns(day=1)
    run = pl.concat([RUN.with_columns(day=1), RUN.with_columns(day=2)])
    by = ["model", "day"]
    got = run.rank.compare("rr", truth=truth.drop("country"), by=by, correction="bh", details=True)
    missed = "2 of 5 users have no list of old; 2 of 5 users have no list of new"
    by_name = "systems are sorted by name, unless baseline= names one"
    assert got.select("day", "users", "note").rows() == [
        (1, 5, f"exact test: only 4 users differ; {missed}; {by_name}"),
        (2, 0, f"no user has a value; {by_name}"),
    ]
    told = ("difference", "mean", "baseline_mean", "ci_low", "p_adjusted", "verdict")
    counts = ("num_missed", "baseline_num_missed", "higher", "equal", "lower", "num_left_out")
    row = got.row(1, named=True)
    assert [row[name] for name in told] == [None] * 6
    assert [row[name] for name in counts] == [0] * 6
    got = run.rank.summarize("rr", truth=truth.drop("country"), by=by)
    found = got.filter(day=2).select("users", "mean", "note").rows()
    assert found == [(0, None, "no user has a value")] * 2
    got = run.rank.stats.who_gained(2, truth=truth.drop("country"), by=by, baseline="old")
    assert got.filter(day=2).drop("model", "day").rows() == [
        (None, None, 0, *[None] * 9, "no user has a value in both", *[None] * 5)
    ]


# ------------------------------------------------------------------ the order of columns


def test_answer_is_in_the_columns_that_a_narrow_print_shows():
    """A terminal shows the first four and the last four columns; new ones go into the middle."""
    values = RUN.rank.per_user("rr", truth=TRUTH, by="model")
    first, last = ANSWER[:4], ANSWER[-4:]
    both = {"baseline": "old", "truth": TRUTH}
    for made in (
        RUN.rank.compare("rr", **both),
        RUN.rank.compare("rr", **both, details=True),
        RUN.rank.compare("coverage@2", **both, items=TRUTH.select("item").unique()),
        rf.compare(values, "rr", baseline="old"),
    ):
        shown = str(made).splitlines()[2]
        assert [name.strip() for name in shown.strip("│").split("┆")] == [*first, "…", *last]
    for total in (False, True):
        by = {"by": "model", "total": True} if total else {}
        made = RUN.filter(model="old").rank.summarize("rr", truth=TRUTH, **by)
        assert made.columns[1:5] == ["metric", "users", "num_left_out", "mean"]
        assert made.columns[-4:] == ["std", "ci_low", "ci_high", "note"]
    made = RUN.rank.stats.power("rr", **both)
    assert made.columns[:4] == ["model", "metric", "baseline", "users"]
    assert made.columns[-2:] == ["detectable", "needed"]
    truth = TRUTH.join(COUNTRIES, on="user")
    by = ["model", "country"]
    made = RUN.rank.stats.compare_segments("rr", truth=truth, by=by, baseline="old")
    assert made.columns[:4] == ["model", "country", "metric", "baseline"]
    assert made.columns[-4:] == ["contrast", "ci_low", "ci_high", "p_adjusted"]


@pytest.mark.parametrize("details", [False, True])
@pytest.mark.parametrize("margin", [None, {}, 0.1, {"rr": "1%"}])
def test_columns_are_those_of_the_call_whatever_the_data(margin, details):
    columns = [*(COMPARISON if details else ANSWER)]
    if margin is not None:
        columns.insert(-1, "p_not_worse")
    if margin is not None and details:
        columns.insert(columns.index("note"), "p_equivalent")
    truth = TRUTH.join(COUNTRIES, on="user")
    call = {"truth": truth, "baseline": "old", "margin": margin, "details": details}
    ways = [{"paired": False}, {}]
    ways += [{"test": name} for name in (*TESTS, "sequential") if margin is None]
    few = [RUN.filter(pl.col("user") < 2), RUN.filter(item="c")]
    for way, run in [*((way, RUN) for way in ways), *((ways[1], run) for run in few)]:
        got = rf.compare(run, "rr", **call, **way)
        assert got.columns == columns
        assert rf.compare(run.lazy(), "rr", **call, **way).collect_schema() == got.schema
        by = ["model", "country"]
        assert rf.compare(run, "rr", by=by, **call, **way).columns == ["country", *columns]
    items = TRUTH.select("item").unique()
    assert rf.compare(RUN, "coverage@2", items=items, **call | {"margin": None}).height == 1
    values = RUN.rank.per_user("rr", truth=TRUTH, by="model")
    assert rf.compare(values, "rr", **call | {"truth": None}).columns == columns


def test_terminal_of_80_columns_shows_the_answer():
    """Each cell is whole, if in two lines: Polars shows eight columns of any table."""
    runs = dict(zip(("popularity", "item-kNN"), RUN.partition_by("model"), strict=True))
    runs = {name: run.drop("model") for name, run in runs.items()}
    got = rf.compare(runs, "recall@10", truth=TRUTH, baseline="popularity")
    with pl.Config(tbl_width_chars=80):
        lines = str(got).splitlines()[2:-1]
    assert max(map(len, lines)) <= 80
    head = next(place for place, line in enumerate(lines) if "═" in line)
    names, cells = (
        [
            "".join(map(str.strip, of))
            for of in zip(*(x[1:-1].split("┆") for x in part), strict=True)
        ]
        for part in (lines[:head], lines[head + 1 :])
    )
    assert [name.split("---")[0] for name in names] == [*ANSWER[:4], "…", *ANSWER[-4:]]
    assert [*cells[:3], cells[-1]] == ["item-kNN", "recall@10", "popularity", "undecided"]


# ------------------------------------------------------------------ users in one group only


def weeks(ranks):
    """Ranks of one item by week and user, as a run and its truth."""
    rows = [(week, user, rank) for week, of in ranks.items() for user, rank in of.items()]
    run = pl.DataFrame(rows, schema=["week", "user", "rank"], orient="row")
    run = run.with_columns(item=pl.lit("a"))
    return run, run.select("week", "user", "item")


OTHER_USERS = {"l": dict.fromkeys("abcd", 1), "t": {"d": 9, "e": 1, "f": 1, "g": 1}}
LEFT_OUT = "6 of 7 users are left out: they have a value with one system only"


def test_users_in_one_group_only_are_counted():
    """Weeks of users a–d and d–g share d; the means over all users are 1 and 7/9."""
    run, truth = weeks(OTHER_USERS)
    got = rf.compare(run, "rr", truth=truth, model="week", baseline="l", details=True).row(
        0, named=True
    )
    assert (got["users"], got["num_left_out"]) == (1, 6)
    assert got["note"] == f"one user; {LEFT_OUT}"
    back = rf.compare(run, "rr", truth=truth, model="week", baseline="t", details=True).row(
        0, named=True
    )
    assert (back["users"], back["num_left_out"], back["note"]) == (1, 6, got["note"])


@pytest.mark.parametrize("seed", range(2))
def test_left_out_users_are_those_of_one_set_only(seed):
    """Sets of users per system and segment, with undefined values, counted in plain Python."""
    random = np.random.default_rng(seed)
    rows = [
        (model, segment, user, None if random.random() < 0.2 else random.random())
        for model in "abc"
        for segment in "xy"
        for user in range(30)
        if random.random() < 0.8
    ]
    schema = {"model": pl.String, "segment": pl.String, "user": pl.Int64, "value": pl.Float64}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    known = {
        (m, s): {u for m2, s2, u, value in rows if (m2, s2) == (m, s) and value is not None}
        for m in "abc"
        for s in "xy"
    }
    weight = pl.when(pl.col("user") < 4).then(0).otherwise(1)
    table = table.with_columns(weight=weight, cluster=pl.col("user") // 3)

    def expected(one, other, segment, light):
        first, second = (one, segment), (other, segment)
        found = (known[first] ^ known[second]) | valueless(segment)
        return found - {*range(4)} if light else found

    def valueless(segment):
        of_all = {user for _, name, user, _ in rows if name == segment}
        return of_all - set.union(*(known[model, segment] for model in "abc"))

    by = ["model", "segment"]
    for option in ({}, {"weights": "weight"}, {"cluster": "cluster"}, {"test": "randomization"}):
        got = rf.compare(table, "value", by=by, **option, details=True)
        for row in got.iter_rows(named=True):
            names = row["model"], row["baseline"], row["segment"]
            users = expected(*names, "weights" in option)
            left_out = len(users)
            assert row["num_left_out"] == left_out
            kinds = users - valueless(names[2]), users & valueless(names[2])
            many = any(len(kind) >= 0.05 * (left_out + row["users"]) for kind in kinds if kind)
            assert many == ("left out" in (row["note"] or ""))
        parts = rf.compare(table, "value", by=by, total=True, **option, details=True)
        for row in parts.filter(pl.col("segment").is_null()).iter_rows(named=True):
            names = row["model"], row["baseline"]
            out = {u for s in "xy" for u in expected(*names, s, "weights" in option)}
            kept = {u for s in "xy" for u in known[names[0], s] & known[names[1], s]}
            assert row["num_left_out"] == len(out - kept)
    got = rf.compare(table, "value", by=by, test="max_t", details=True)
    for segment, of in got.group_by("segment"):
        some = {user for _, name, user, _ in rows if name == segment[0]}
        lacking = some - set.intersection(*(known[m, segment[0]] for m in "abc"))
        assert of["num_left_out"].to_list() == [len(lacking)] * 3
        assert all(
            "users are left out: they have a value with some systems only" in n for n in of["note"]
        )


def test_note_names_who_is_left_out_and_people_are_told_of_5_percent_or_more():
    """19 of 20 and 20 of 21 users are in both groups."""
    for both in (19, 20):
        note = f"1 of {both + 1} users is left out: this user has a value with one system only"
        users = [f"u{place}" for place in range(both)]
        ranks = {u: place % 3 + 1 for place, u in enumerate(users)}
        run, truth = weeks({"l": {**ranks, "new": 1}, "t": dict.fromkeys(users, 1)})
        got = rf.compare(run, "rr", truth=truth, model="week", baseline="l", details=True).row(
            0, named=True
        )
        assert (got["users"], got["num_left_out"]) == (both, 1)
        exact = f"exact test: only {got['higher'] + got['lower']} users differ"
        assert got["note"] == f"{exact}; {note}"
        shown = rf.table(run, "rr", truth=truth, model="week", baseline="l").note
        assert (note in shown) == (both == 19)


def test_users_of_the_truth_are_not_left_out():
    """A user whom a run misses is a miss of that system, unless it has no value then."""
    got = RUN.rank.compare("rr", "mean_hit_rank@9", truth=TRUTH, baseline="old", details=True)
    assert got["num_left_out"].to_list() == [0, 3]  # both systems miss one of them
    notes = got["note"].str.contains("users are left out: they have a value with one system only")
    assert notes.to_list() == [False, True]
    both = RUN.rank.compare("rr", truth=TRUTH, baseline="old", users="both", details=True).row(
        0, named=True
    )
    assert (both["users"], both["num_left_out"]) == (2, 2)
    assert "; 2 of 4 users are left out: they have a value with one system only" in both["note"]


def test_verbs_count_users_who_are_left_out():
    run, truth = weeks(OTHER_USERS)
    items = pl.DataFrame({"item": ["a", "b"]})
    options = {"model": "week", "baseline": "l"}
    frame = rf.compare(run.to_pandas(), "rr", truth=truth.to_pandas(), **options, details=True)
    assert frame["num_left_out"].tolist() == [6]
    lazy = rf.compare(run.lazy(), "rr", truth=truth.lazy(), **options, details=True).collect()
    assert lazy["note"].item() == f"one user; {LEFT_OUT}"
    for test in ("t", "randomization"):
        of_lists = rf.compare(
            run, "coverage@9", truth=truth, items=items, test=test, **options, details=True
        )
        assert of_lists["num_left_out"].item() == 6
        assert of_lists["note"].item().endswith(LEFT_OUT.replace("a value", "a list"))
    runs = {week[0]: rows.drop("week") for week, rows in run.group_by("week")}
    alone = rf.compare(
        runs, "rr", truth=truth.select("user", "item").unique(), users="run", details=True
    )
    assert alone["num_left_out"].item() == 6


# ------------------------------------------------------------------ kinds of frames


@pytest.mark.parametrize("verb", ["summarize", "compare", "stats.who_gained"])
def test_plan_is_collected_once_and_not_before(verb, monkeypatch):
    collected = []
    collect = pl.LazyFrame.collect
    monkeypatch.setattr(
        pl.LazyFrame, "collect", lambda self, **kw: collected.append(self) or collect(self, **kw)
    )
    arguments = [2] if verb == "stats.who_gained" else ["rr", "precision@2", "ndcg"]
    options = {"by": "model"} if verb == "summarize" else {"baseline": "old"}
    result = attrgetter(verb)(RUN.lazy().rank)(*arguments, truth=TRUTH.lazy(), **options)
    assert collected == []
    result.collect()
    assert len(collected) == 1
    attrgetter(verb)(RUN.rank)(*arguments, truth=TRUTH.lazy(), **options)
    assert len(collected) == 2


@pytest.mark.parametrize("verb", ["summarize", "compare"])
def test_types_of_by_are_kept(verb):
    plain = rf.compare(RUN, "rr", truth=TRUTH, baseline="old")
    for values in (
        pl.Series([3, 1], dtype=pl.UInt8),
        pl.Series(["b", "a"], dtype=pl.Enum(["b", "a"])),
        pl.Series(["b", "a"], dtype=pl.Categorical),
        pl.Series([True, False]),
        pl.Series([1.5, 0.5]),
        pl.Series(["2026-01-01", "2026-01-02"]).str.to_date(),
    ):
        run = RUN.with_columns(pl.col("model").replace_strict(["old", "new"], values))
        got = getattr(rf, verb)(run, "rr", truth=TRUTH, by="model")
        assert got.schema["model"] == values.dtype
        assert got.height == {"summarize": 2, "compare": 1}[verb]
        if verb == "compare":
            got = rf.compare(run, "rr", truth=TRUTH, by="model", baseline=values[0])
            assert got.select("model", "baseline").row(0) == (values[1], values[0])
            named = ("model", "baseline", "note")
            assert got.drop(named).equals(plain.drop(named))
            assert got["note"].item() == plain["note"].item().replace(
                "new", str(values[1])
            ).replace("old", str(values[0]))
            bins = rf.stats.who_gained(run, 2, truth=TRUTH, by="model", baseline=values[0])
            assert bins["model"].unique().to_list() == [values[1]]


def test_metrics_of_any_number_type():
    table = judged([1.0, 2.0, 5.0], [2.0, 1.0, 9.0])
    expected = rf.compare(table, VALUE, details=True).drop("metric")
    whole = pl.col("value").filter("relevant").first().cast(pl.UInt8).alias("x")
    assert rf.compare(table, whole, details=True).drop("metric").equals(expected)
    flag = (pl.col("value").filter("relevant").first() > 1.5).alias("x")
    assert rf.compare(table, flag, details=True).select("higher", "lower").row(0) == (1, 1)
    assert rf.summarize(table, flag, by="model")["mean"][0] == pytest.approx(2 / 3)
    for verb in (rf.compare, rf.summarize):
        with pytest.raises(ValueError, match="metric 'x' is String for each user, which has no"):
            verb(table, pl.col("model").first().alias("x"), by="model")
        with pytest.raises(ValueError, match="metric 'x' is Duration.* for each user; statistics"):
            verb(table, pl.duration(seconds=pl.len()).first().alias("x"), by="model")


def test_counts_are_averaged_and_geometric_means_kept():
    got = RUN.rank.summarize("num_hits", "gmap", truth=TRUTH, by="model")
    hits = RUN.rank.per_user("num_hits", truth=TRUTH, by="model")
    assert got.filter(metric="num_hits")["mean"].to_list() == [
        part["num_hits"].mean() for part in hits.partition_by("model")
    ]
    geometric = RUN.rank.evaluate("gmap", truth=TRUTH, by="model")["gmap"]
    assert got.filter(metric="gmap")["mean"].to_list() == pytest.approx(geometric.to_list())
    assert got.filter(metric="gmap")["ci_low"].null_count() == 0
    counted = RUN.rank.summarize("num_users", truth=TRUTH, by="model")
    assert set(counted["note"]) == {
        "no interval: not an arithmetic mean; 2 of 5 users have no list"
    }
    with pytest.raises(ValueError, match="'num_users' is a mean over users, not a value per user"):
        RUN.rank.compare("num_users", truth=TRUTH)


# ------------------------------------------------------------------ same seed, same numbers


SCRIPT = """
import numpy as np, polars as pl, rankframe as rf
values = (np.arange(1200) * 7919 % 1009 / 1009).reshape(3, 400)
values[1] += 0.04
table = pl.DataFrame({
    "model": np.repeat(["a", "b", "c"], 400), "user": np.tile(np.arange(400), 3), "item": 0,
    "rank": 1, "relevance": 1, "value": values.ravel()})
metric = pl.col("value").filter("relevant").first()
for test in ("randomization", "max_t"):
    print(rf.compare(table, metric, test=test, resamples=999, seed=4, details=True).rows())
print(rf.summarize(table, metric, by="model", resamples=999, seed=4).rows())
"""


@pytest.mark.thorough
def test_seed_gives_the_same_numbers_in_every_process():
    printed = []
    for threads in ("1", "2"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")
        env = {**os.environ, **dict.fromkeys(names, threads)}
        command = [sys.executable, "-W", "error", "-c", SCRIPT]
        done = subprocess.run(command, env=env, capture_output=True, check=True, timeout=60)
        printed.append(done.stdout)
    assert printed[0] == printed[1]
    # written down: the numbers are the same on every machine
    assert b"'b', 'value', 'a', 0.0" in printed[0]
    first, second = (ast.literal_eval(line.decode())[0] for line in printed[0].splitlines()[:2])
    place = COMPARISON.index("p_adjusted")
    assert (round(first[place], 3), second[place]) == (0.285, 0.186)


def test_another_seed_gives_other_numbers():
    old, new = sample(5, 50)
    for test in ("randomization", "max_t"):
        got = {one(old, new, test=test, seed=seed)["p_value"] for seed in range(4)}
        assert len(got) > 1
        assert max(got) - min(got) < 0.05


# ------------------------------------------------------------------ too little to go by


DEGENERATE = {
    "no user": ([1.0, None], [None, 2.0], NO_PAIR),
    "one user": ([1.0], [2.0], "one user"),
    "two users": ([1.0, 2.0], [2.0, 5.0], "2 users, too few for a sure test"),
    "all ties": ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], "no user differs"),
    "constant": (
        [0.1, 0.2, 0.3],
        [0.2, 0.3, 0.4],
        "exact test: every user differs by the same amount",
    ),
}


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_comparisons(case, test):
    old, new, note = DEGENERATE[case]
    if case == "two users":  # these need more for an interval
        why = {"t": "exact test: only 2 users differ; ", "max_t": "too few users for an interval; "}
        note = why.get(test, "") + note
    got = one(old, new, test=test, resamples=FEW)
    assert not [name for name, value in got.items() if value != value]
    assert got["note"] == note
    nothing = note is not None and "sure" not in note
    assert (got["effect_size"] is None) == nothing
    no_interval = nothing or "interval" in note
    assert (got["ci_low"] is None) == (got["ci_high"] is None) == no_interval
    if case == "two users":
        assert 0 < got["p_value"] < 1
    else:
        expected = {"constant": 0.25} | ({"one user": 1.0} if test == "randomization" else {})
        assert got["p_value"] == expected.get(case)


@pytest.mark.parametrize("method", ["t", "auto"])
def test_degenerate_summaries(method):
    for values, note in [
        ([None, None], "no user has a value"),
        ([1.0, None], "one user"),
        ([0.3, 0.3], "every user has the same value"),
        ([0.3, 0.1 + 0.2], "every user has the same value"),
        ([0.3, 0.4], "too few users for a sure interval: 2"),
    ]:
        got = rf.summarize(judged(values), VALUE, method=method).row(0, named=True)
        assert not [name for name, value in got.items() if value != value]
        assert got["note"].endswith(note)
        assert (got["ci_low"] is None) == ("too few" not in note)


def test_rounding_makes_no_difference():
    """0.1 + 0.2 and 0.3 are one number."""
    old = np.array([0.3, 0.1 + 0.2, 0.5, 0.7, 0.9])
    new = np.array([0.1 + 0.2, 0.3, 0.6, 0.8, 1.0])
    got = one(old, new)
    assert (got["higher"], got["equal"], got["lower"], got["p_value"]) == (3, 2, 0, 0.25)


def test_resamples_may_be_few():
    old, new = sample(6, 30)
    assert one(old, new + 9, test="randomization", resamples=1)["p_value"] in (0.5, 1)
    assert one(old, new + 9, test="max_t", resamples=1)["ci_low"] is None


@pytest.mark.parametrize(
    "options",
    [
        {"baseline": "m9"},
        {"test": "anova"},
        {"correction": "sidak"},
        {"confidence": 95},
        {"resamples": 0},
        {"seed": -1},
        {"model": None},
        {"users": "me"},
    ],
)
def test_compare_refuses_bad_options(options, refused):
    refused(compared, [1.0, 2.0], [3.0, 1.0], **options)


def test_compare_refuses_bad_data(refused):
    refused(compared, [1.0, 2.0])
    refused(
        lambda: judged([1.0], [2.0]).rename({"model": "users"}).rank.compare("rr", model="users")
    )
    refused(
        lambda: judged([1.0], [2.0]).rename({"model": "mean"}).rank.summarize("rr", model="mean")
    )
    lazy = judged([1.0], [2.0]).lazy().rank.compare("rr", baseline="m9")
    refused(lazy.collect)
    refused(compared, [1.0], [2.0], basline="m0")


def test_missing_extra_says_what_to_install():
    code = """
import importlib.util, polars as pl, rankframe as rf
found = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "scipy" else found(name)
table = pl.DataFrame({"user": [1], "item": [1], "rank": [1], "relevance": [1]})
try:
    rf.summarize(table, "rr")
except ImportError as error:
    assert str(error) == "statistics need scipy: pip install 'rankframe[stats]'", error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


def test_bar_after_two_seconds(monkeypatch, capsys):
    bars = []

    class Bar(tqdm):
        def __init__(self, **options):
            bars.append([options, 0])
            super().__init__(**options)

        def update(self, n):
            bars[-1][1] += n
            return super().update(n)

    monkeypatch.setattr("tqdm.tqdm", Bar)
    monkeypatch.setattr(_sizes, "CELLS_RANDOM", 2**10)  # many blocks
    old, new = sample(7, 30)
    for test, times in (("randomization", FEW), ("max_t", 2 * FEW)):
        one(old, new, test=test, resamples=FEW)
        options, done = bars[-1]
        assert (options["delay"], options["total"], done) == (2, times, times)
    assert capsys.readouterr().err == ""


def test_resampling_needs_no_tqdm(monkeypatch):
    old, new = sample(7, 30)
    expected = one(old, new, test="randomization", resamples=FEW)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert one(old, new, test="randomization", resamples=FEW) == expected
    check_packages()


def several(users=25, systems=3, metrics=("a", "b"), seed=8):
    rng = np.random.default_rng(seed)
    frames = [
        pl.DataFrame({name: rng.random(users).round(1) for name in metrics}).with_columns(
            model=pl.lit(f"m{place}"), user=pl.Series(range(users))
        )
        for place in range(systems)
    ]
    return pl.concat(frames)


@pytest.mark.parametrize("test", ["t", "randomization", "sequential"])
def test_pairs_that_are_tested_in_several_batches_have_the_same_numbers(monkeypatch, test):
    table = several()
    options = {"test": test, "resamples": FEW, "value_range": {"a": (0, 1), "b": (0, 1)}}
    if test == "t":
        options |= {"margin": {"a": 0.1}, "primary": "a"}
    together = rf.compare(table, "a", "b", **options)
    for cells in ("CELLS_TESTED", "CELLS_RESAMPLED"):
        monkeypatch.setattr(_sizes, cells, 40)  # less than two pairs
    alone = rf.compare(table, "a", "b", **options)
    assert_frame_equal(alone, together, check_exact=False, rel_tol=1e-12)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_bars_go_to_the_terminals_stderr_and_nowhere_else():
    import fcntl
    import pty
    import select
    import struct
    import termios

    code = """
import polars as pl
import rankframe as rf
from rankframe import _sizes
from rankframe._comparison import statistics as st
st.PATIENCE, _sizes.CELLS_RANDOM = 0, 2**10
table = pl.DataFrame({"user": [*range(40)] * 2, "x": [i * 37 % 11 / 10 for i in range(80)]})
table = table.with_columns(model=pl.Series(["a"] * 40 + ["b"] * 40))
print(rf.compare(table, "x", test="randomization", resamples=2_000).height)
run = table.select("user", "model", item=7, rank=pl.col("x") // 0.2 + 1)
page = rf.report(run, "rr", truth=pl.DataFrame({"user": range(40), "item": 7}), baseline="a")
print(page.tables["means"].height)
"""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))  # else 0 columns
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=end, check=True, timeout=120)
    written, _, _ = select.select([terminal], [], [], 0)
    shown = os.read(terminal, 100_000).decode() if written else ""
    os.close(end)
    os.close(terminal)
    assert ended.stdout.split() == [b"1", b"2"]
    assert "%|" in shown
    assert "/2000" in shown
    assert "/5 [" in shown  # steps of the report


# ------------------------------------------------------------------ recall and precision together

FEW_GAIN = "better for users with few relevant items, worse for users with many"
MANY_GAIN = "better for users with many relevant items, worse for users with few"


def with_hits(sizes, **systems):
    """Users with R = sizes, and systems with so many hits among the first 10."""
    truth = [(u, f"r{i}") for u, size in enumerate(sizes) for i in range(size)]
    run = [
        (name, u, f"r{i}" if i < hits else f"x{i}", i + 1)
        for name, found in systems.items()
        for u, hits in enumerate(found)
        for i in range(10)
    ]
    return (
        pl.DataFrame(run, schema=["model", "user", "item", "rank"], orient="row"),
        pl.DataFrame(truth, schema=["user", "item"], orient="row"),
    )


def test_comparison_of_a_worked_example():
    """A: R = 100, hits −2; B: R = 20, hits +1; k = 10."""
    run, truth = with_hits([100, 20], old=[5, 3], new=[3, 4])
    got = run.rank.stats.who_gained(10, truth=truth, baseline="old")
    assert got.columns == ["model", *DIAGNOSIS]
    expected = [
        ("new", 20, 20, 1, 1.0, 0.1, 0.05, "no test: one user", 0.4, 0.2, 1.0, 0.5),
        ("new", 100, 100, 1, -2.0, -0.2, -0.02, "no test: one user", 0.3, 0.03, 1.0, 0.1),
        ("new", None, None, 2, -0.5, -0.05, 0.015, "no difference seen", 0.35, 0.115, 1.0, 0.3),
    ]
    shrunken = [name for name in DIAGNOSIS if "shrunken" in name]
    assert got.select(shrunken).null_count().sum_horizontal().item() == 18  # no bin has a spread
    for row, wanted in zip(got.drop("signs", shrunken).rows(), expected, strict=True):
        assert row == tuple(pytest.approx(x) if isinstance(x, float) else x for x in wanted)


@pytest.mark.parametrize(
    ("change", "reading"),
    [
        ([1, 1], "better overall"),
        ([-1, 0], "worse overall"),
        ([0, 0], "unchanged"),
        ([-2, 1], FEW_GAIN),
        ([2, -1], MANY_GAIN),
        # as many hits as before, so precision stays
        ([1, -1], "lower recall, no difference seen in precision"),
        ([-1, 1], "higher recall, no difference seen in precision"),
        # 5/100 − 1/20 = 0: recall stays
        ([5, -1], "higher precision, no difference seen in recall"),
        ([-5, 1], "lower precision, no difference seen in recall"),
    ],
)
def test_readings(change, reading):
    """60 users of each kind, of whom one has as many hits as before."""
    sizes = [100] * 60 + [20] * 60
    old = [5] * 60 + [3] * 60
    new = [5 + change[0]] * 59 + [5, 3] + [3 + change[1]] * 59
    run, truth = with_hits(sizes, old=old, new=new)
    assert run.rank.stats.who_gained(10, truth=truth, baseline="old")["reading"][-1] == reading


@pytest.mark.parametrize("cluster", [None, "house"])
def test_changes_of_bins_are_shrunken_as_those_of_segments(cluster):
    draw, sizes = random.Random(4), [2] * 12 + [8] * 9 + [30] * 6
    hits = {name: [draw.randint(0, min(5, r)) for r in sizes] for name in ("old", "new", "newer")}
    run, truth = with_hits(sizes, **hits)
    placed = truth.with_columns(house=pl.col("user") // 3, r=pl.len().over("user"))
    absent = (pl.col("model") == "newer") & pl.col("user").is_in([0, 1, 2])
    asked = {"baseline": "old", "cluster": cluster, "users": "both"}
    got = run.rank.stats.who_gained(10, truth=placed.drop("r"), **asked)
    segments = rf.stats.compare_segments(
        run, "precision@10", "recall@10", truth=placed, by=["model", "r"], resamples=20, **asked
    ).sort("model", "r", nulls_last=True)
    for name in ("precision", "recall"):
        ends = ["", "_low", "_high"]
        wanted = segments.filter(metric=f"{name}@10").select(f"shrunken{end}" for end in ends)
        assert wanted["shrunken"].null_count() == 2  # in the rows of all users
        columns = got.select(
            pl.col(f"{name}_shrunken{end}").alias(f"shrunken{end}") for end in ends
        )
        assert_frame_equal(columns, wanted, rel_tol=1e-12)
    missed = run.remove(absent).rank.stats.who_gained(10, truth=truth, baseline="old")
    lacking = missed.filter(pl.col("reading").str.starts_with("no list")).row(0, named=True)
    assert lacking["recall_change"] is not None
    assert lacking["recall_shrunken"] is None


@pytest.mark.parametrize("change", [[1, 1], [-1, 0], [-2, 1], [2, -1]])
def test_comparison_of_two_users_shows_nothing(change):
    run, truth = with_hits([100, 20], old=[5, 3], new=[5 + change[0], 3 + change[1]])
    readings = run.rank.stats.who_gained(10, truth=truth, baseline="old")["reading"].to_list()
    alike = "no test: every user differs by the same amount"
    assert readings[-1] == (alike if change == [1, 1] else "no difference seen")
    assert readings[0] == ("no test: one user" if change[1] else "unchanged")


@pytest.mark.parametrize("seed", range(12))
def test_readings_are_those_of_scipys_paired_t(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 40, 30).tolist()
    hits = {
        model: [int(rng.binomial(min(10, r), 0.4 + lift * seed / 60)) for r in sizes]
        for model, lift in (("old", 0), ("new", 1))
    }
    gained = np.array(hits["new"]) - np.array(hits["old"])
    p = {
        "precision": stats.ttest_1samp(gained / 10, 0).pvalue,
        "recall": stats.ttest_1samp(gained / np.array(sizes), 0).pvalue,
    }
    least = min(p, key=p.__getitem__)
    shown = {name for name in p if p[least] < 0.025 and (name == least or p[name] < 0.05)}
    expected = {0: "no difference seen", 2: "better overall"}.get(
        len(shown), f"higher {least}, no difference seen in {({*p} - {least}).pop()}"
    )
    run, truth = with_hits(sizes, **hits)
    assert run.rank.stats.who_gained(10, truth=truth, baseline="old")["reading"][-1] == expected


def test_diagnose_adds_up_to_evaluate():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 40, 50).tolist()
    hits = {m: [int(rng.integers(0, min(10, r) + 1)) for r in sizes] for m in ("a", "b", "c")}
    run, truth = with_hits(sizes, **hits)
    got = run.rank.stats.who_gained(10, truth=truth, baseline="b", bins=5)
    whole = got.filter(pl.col("relevant_low").is_null())
    assert whole["model"].to_list() == ["a", "c"]
    names = ["precision", "recall", "attainable_precision", "attainable_recall"]
    means = run.rank.evaluate(*(f"{name}@10" for name in names), truth=truth, by="model")
    for name in names:
        old, new = means.filter(model="b")[f"{name}@10"].item(), means.filter(model="c")
        assert whole[name][1] == pytest.approx(new[f"{name}@10"].item())
        if name in ("precision", "recall"):
            assert whole[f"{name}_change"][1] == pytest.approx(new[f"{name}@10"].item() - old)
    for model in ("a", "c"):
        bins = got.filter(pl.col("relevant_low").is_not_null(), model=model)
        assert bins.height == 5
        assert bins["users"].sum() == 50
        assert bins["users"].min() >= 5
        assert (bins["relevant_high"][:-1] < bins["relevant_low"][1:]).all()
        for low, high, users, change, recall in bins.select(
            "relevant_low", "relevant_high", "users", "hits_change", "recall_change"
        ).rows():
            inside = [u for u, size in enumerate(sizes) if low <= size <= high]
            assert len(inside) == users
            gained = [Fraction(hits[model][u] - hits["b"][u]) for u in inside]
            assert change == float(sum(gained) / users)  # counts, not k × a rounded share
            shares = [gain / sizes[u] for gain, u in zip(gained, inside, strict=True)]
            assert recall == pytest.approx(float(sum(shares) / users))


@pytest.mark.parametrize("k", [3, 7, 10, 49])
def test_change_of_hits_is_counted(k):
    """Two users lose two hits and gain one: exactly −2, 1, and −1/2 as their mean."""
    run, truth = with_hits([20, 100], old=[0, 3], new=[1, 1])
    got = run.rank.stats.who_gained(k, truth=truth, baseline="old")
    assert got["hits_change"].to_list() == [1.0, -2.0, -0.5]
    truth = truth.with_columns(country=pl.lit("x"))
    got = run.rank.stats.who_gained(k, truth=truth, baseline="old", by=["model", "country"])
    assert got["hits_change"].to_list() == [1.0, -2.0, -0.5]
    tied = run.rename({"rank": "score"}).with_columns(-pl.col("score"))
    tied = rf.with_rank(tied, by="model", ties="expected")
    got = rf.stats.who_gained(tied, k, truth=truth.drop("country"), baseline="old")
    assert got["hits_change"].to_list() == pytest.approx([1, -2, -0.5])


def test_users_of_equal_r_stay_together():
    run, truth = with_hits([3] * 9 + [4], old=[1] * 10, new=[2] * 10)
    got = run.rank.stats.who_gained(10, truth=truth, baseline="old")
    assert got.select("relevant_low", "relevant_high", "users").rows() == [
        (3, 3, 9),
        (4, 4, 1),
        (None, None, 10),
    ]


def test_users_without_a_relevant_item_are_left_out():
    run, truth = with_hits([3, 4], old=[1, 1], new=[2, 1])
    graded = truth.with_columns(relevance=pl.when(pl.col("user") == 0).then(2).otherwise(1))
    for undefined in (None, 0.0):
        got = run.rank.stats.who_gained(
            10, truth=graded, baseline="old", relevant_at=2, undefined=undefined
        )
        assert got["users"].to_list() == [1, 1]


def test_bad_diagnoses(refused):
    run, truth = with_hits([3], old=[1], new=[2])
    for options in [
        {"k": 0, "baseline": "old"},
        {"k": 3, "baseline": "old", "bins": 0},
        {"k": 3, "baseline": "older"},
    ]:
        refused(rf.stats.who_gained, run, options.pop("k"), truth=truth, **options)


# ------------------------------------------------------------------ what is shared with per_user


def test_options_are_those_of_evaluate():
    import inspect

    from rankframe._request.keywords import Columns, Options

    own = {"frame", "metrics", "truth", "by", "columns"}
    of_values = inspect.signature(rf.per_user).parameters.keys() - own
    of_means = (
        inspect.signature(rf.evaluate).parameters.keys() - own - {"total", "count_users", "chance"}
    )
    assert {*of_means, *Columns.__annotations__} == {*Options.__annotations__}
    assert of_means - of_values == {"weights", "average"}


def test_options_reach_per_user():
    truth = TRUTH.with_columns(relevance=pl.col("user")).rename({"user": "who"})
    options = {"users": "judged", "undefined": 0.5, "relevant_at": 3, "depth": 1, "user": "who"}
    run = RUN.rename({"user": "who"})
    means = run.rank.evaluate("p@2", truth=truth, by="model", **options)["p@2"].to_list()
    got = run.rank.compare("p@2", truth=truth, **options, details=True).row(0, named=True)
    assert [got["baseline_mean"], got["mean"]] == pytest.approx(means)
    got = run.rank.summarize("p@2", truth=truth, by="model", **options)
    assert got["mean"].to_list() == pytest.approx(means)


def test_resamples_have_a_bound():
    for call in (rf.compare, rf.summarize):
        with pytest.raises(ValueError, match="resamples must not be above 10,000,000"):
            call(RUN, "ap", truth=TRUTH, by="model", resamples=10**12)


def test_large_value_of_one_user_leaves_the_others_as_they_are():
    grades = [1, 2, 3, 1, 2, 3, 2, 1, 3, 50]
    ranks = {"A": [3, 2, 4, 5, 2, 6, 7, 3, 2, 1], "B": [1, 1, 2, 3, 1, 4, 5, 2, 1, 1]}
    truth = pl.DataFrame({"user": range(10), "item": ["a"] * 10, "relevance": grades})
    lists = [
        pl.DataFrame({"model": [m] * 10, "user": range(10), "item": ["a"] * 10, "rank": r})
        for m, r in ranks.items()
    ]
    label = "dcg(gain=exponential)@10"
    values = pl.concat(lists).rank.per_user(label, truth=truth, by="model")
    a, b = (values.filter(model=m)[label].to_numpy() for m in "AB")
    signs = np.array([*product([1, -1], repeat=10)])
    as_far = np.abs(signs @ (b - a)) >= np.abs((b - a).sum()) * (1 - 1e-12)
    got = rf.compare(pl.concat(lists), label, truth=truth, baseline="A", details=True)
    assert got["p_value"].item() == pytest.approx(as_far.mean(), rel=1e-6)
    assert got.select("higher", "equal", "lower").row(0) == (9, 1, 0)
    assert got["difference"].item() == pytest.approx((b - a).mean(), rel=1e-9)


def test_values_without_squares_are_reported(refused):
    x = pl.col("relevance").max().cast(pl.Float64).alias("x") * 1e150
    for call in (rf.compare, rf.summarize):
        refused(call, RUN, x.alias("x"), truth=TRUTH.with_columns(relevance=pl.lit(1)), by="model")


def test_baseline_is_the_name_of_a_system():
    with pytest.raises(TypeError, match="name of a system"):
        rf.stats.who_gained(RUN, 1, truth=TRUTH, baseline=pl.lit("a"))


def test_diagnose_returns_the_same_bits_in_each_call_and_order():
    rng = np.random.default_rng(0)
    run = pl.DataFrame(
        [
            (model, user, int(item), rank)
            for model in "abc"
            for user in range(60)
            for rank, item in enumerate(rng.permutation(30)[:7], start=1)
        ],
        schema=["model", "user", "item", "rank"],
        orient="row",
    )
    truth = pl.DataFrame(
        [(user, int(item)) for user in range(60) for item in rng.permutation(30)[: 1 + user % 11]],
        schema=["user", "item"],
        orient="row",
    ).with_columns(country=pl.col("user") % 3)
    for by in ("model", ["model", "country"]):
        first, *others = (
            rf.stats.who_gained(
                run.sample(fraction=1, shuffle=True, seed=seed), 5, truth=truth, by=by, baseline="a"
            )
            for seed in range(5)
        )
        for other in others:
            assert_frame_equal(other, first, check_exact=True)


@pytest.mark.parametrize("primary", [rf.metrics.hit_at(1), 3])
def test_primary_metric_is_named(primary, refused):
    refused(rf.compare, RUN, "rr", "hit@1", truth=TRUTH, primary=primary)


@pytest.mark.parametrize(("confidence", "users"), [(0.95, 20), (0.9, 10), (0.8, 5), (0.99, 100)])
def test_p_equal_to_alpha_is_undecided_at_each_confidence(confidence, users):
    """With ``resamples=users - 1``, the least p is 1/users: (b + 1)/(n + 1) with b = 0."""
    change = [0.01 * x for x in range(1, 41)]
    values = pl.concat(
        pl.DataFrame({"model": m, "user": range(40), "v": v})
        for m, v in (("new", change), ("old", [0.0] * 40))
    )
    got = rf.compare(
        values, "v", test="randomization", resamples=users - 1, confidence=confidence, details=True
    )
    assert got["p_value"].item() == pytest.approx(1 - confidence, abs=1e-15)
    assert got["verdict"].item() == "undecided"


@pytest.mark.parametrize("test", ["t", "randomization"])
def test_copies_of_the_baseline_count_in_no_correction(test):
    rng = np.random.default_rng(0)
    old = rng.random(40)
    new = old + rng.normal(0.05, 0.1, 40)
    values = pl.concat(
        pl.DataFrame({"model": m, "user": range(40), "v": v})
        for m, v in [("old", old), ("new", new), *((f"copy{i}", old) for i in range(3))]
    )
    got = rf.compare(values, "v", baseline="old", test=test, resamples=999, details=True)
    rows = {row["model"]: row for row in got.iter_rows(named=True)}
    assert rows["new"]["p_adjusted"] == rows["new"]["p_value"]
    assert (rows["copy0"]["p_value"], rows["copy0"]["verdict"]) == (None, None)


@pytest.mark.parametrize("systems", [2, 3])
def test_users_whom_no_system_can_satisfy_are_counted_and_named(systems):
    """4 of 10 have no item at rel=2: the mean is over 6, and no column said of whom."""
    first = pl.DataFrame({"user": range(10), "item": ["a"] * 10, "rank": [1, 2] * 5})
    runs = {
        name: first.with_columns(pl.col("rank") + place)
        for name, place in zip("abc"[:systems], (1, 0, 2), strict=False)
    }
    grades = [1] * 4 + [2] * 6
    truth = pl.DataFrame({"user": range(10), "item": ["a"] * 10, "relevance": grades})
    test = "max_t" if systems == 3 else None
    options = {} if test is None else {"test": test, "resamples": 200}
    got = rf.compare(runs, "rr(rel=2)", "rr", truth=truth, **options, details=True)
    of_level, plain = got.filter(metric="rr(rel=2)"), got.filter(metric="rr")
    assert of_level.select("users", "num_left_out").unique().rows() == [(6, 4)]
    assert plain.select("users", "num_left_out").unique().rows() == [(10, 0)]
    words = "4 of 10 users are left out: they have no value with any system"
    assert of_level["note"].str.contains(words, literal=True).all()
    gated = rf.gate(runs, "rr(rel=2)", truth=truth, baseline="a", margin=0.5, at_least=0.1)
    assert gated["num_left_out"].to_list() == [4] * len(gated)
    none = rf.compare(runs, "rr(rel=3)", truth=truth, **options, details=True)
    assert none.select("users", "num_left_out").unique().rows() == [(0, 10)]
    assert none["note"].str.starts_with("no user has a value").all(), none["note"].to_list()


@pytest.mark.parametrize(
    ("option", "typed", "said"),
    [
        ("test", "wilcoxon", "scipy.stats.wilcoxon, as on the page of recipes"),
        ("test", "mcnemar", "'randomization'"),
        ("test", "bootstrap", "'t'"),
        ("test", "tukey", "'max_t'"),
        ("correction", "bonferroni", "'holm'"),
        ("method", "wilson", "'auto'"),
    ],
)
def test_test_or_interval_of_another_name_is_answered_with_what_to_take(option, typed, said):
    values = pl.DataFrame({"model": ["a", "b"] * 2, "user": [1, 1, 2, 2], "rr": [0.1, 0.2, 0.3, 1]})
    verb = rf.summarize if option == "method" else rf.compare
    with pytest.raises(ValueError, match=f"not '{typed}': use {re.escape(said)}$"):
        verb(values, "rr", **{option: typed})
