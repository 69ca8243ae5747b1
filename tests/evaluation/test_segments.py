"""Segments that no table has, against the same columns made by hand."""

import random

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import rankframe as rf

SIZES = [0, 1, 1, 2, 3, 4, 5, 8, 13, 20]


def tables(seed=1):
    """Users 0 to 9 with SIZES past items; the last row of each comes twice."""
    rng = random.Random(seed)
    past = [(u, item) for u, size in enumerate(SIZES) for item in rng.sample(range(30), size)]
    history = pl.DataFrame([*past, past[-1]], schema=["user", "item"], orient="row")
    lists = [(u, i, r) for u in range(9) for r, i in enumerate(rng.sample(range(30), 8), 1)]
    truth = [
        (u, i, rng.choice([0, 1, 1, 2]))
        for u in range(10)
        for i in rng.sample(range(35), u % 5 + 3)
    ]
    run = pl.DataFrame(lists, schema=["user", "item", "rank"], orient="row")
    return run, pl.DataFrame(truth, schema=["user", "item", "relevance"], orient="row"), history


RUN, TRUTH, HISTORY = tables()
RUNS = {"old": RUN, "new": RUN.with_columns(rank=9 - pl.col("rank"))}


def bin_of(number, edges):
    starts = [0, *edges]
    start = max(edge for edge in starts if edge <= number)
    if start == starts[-1]:
        return f"{start}+"
    end = starts[starts.index(start) + 1] - 1
    return str(start) if start == end else f"{start}-{end}"


def by_hand(name, key, numbers, edges, *frames):
    """Add the column of the segment to frames, in an order of its bins."""
    order = pl.Enum([bin_of(start, edges) for start in [0, *edges]])
    names = {k: bin_of(number, edges) for k, number in numbers.items()}
    lowest = bin_of(0, edges)
    of_key = pl.col(key).replace_strict(names, default=lowest, return_dtype=order).alias(name)
    return [frame.with_columns(of_key) for frame in frames]


def quantile_edges(values, bins=4):
    """The least value of each bin, as who_gained puts users into bins."""
    places = {}
    for value in values:
        places.setdefault(sum(other < value for other in values) * bins // len(values), []).append(
            value
        )
    return sorted(min(group) for group in places.values())[1:]


CASES = {
    "activity": ("user", dict(enumerate(SIZES)), range(10)),
    "popularity": (
        "item",
        dict(HISTORY.unique().group_by("item").len().rows()),
        TRUTH["item"].unique(),
    ),
    "relevant_items": (
        "user",
        dict(TRUTH.filter(pl.col("relevance") > 0).group_by("user").len().rows()),
        range(10),
    ),
}
EDGES = {"": None, "(bins=2)": None, "(2,5)": [2, 5], "(1)": [1], "( 3, 4 )": [3, 4]}


@pytest.mark.parametrize("text", EDGES)
@pytest.mark.parametrize("kind", CASES)
def test_a_segment_is_the_column_made_by_hand(kind, text):
    name, (key, numbers, ids) = kind + text, CASES[kind]
    edges = EDGES[text]
    if edges is None:
        edges = quantile_edges([numbers.get(i, 0) for i in ids], 2 if text else 4)
    *runs, truth = by_hand("made", key, numbers, edges, *RUNS.values(), TRUTH)
    runs = dict(zip(RUNS, RUNS.values() if key == "item" else runs, strict=True))
    metrics, options = ["ndcg@3", "recall@5"], {"model": "model"}
    got = rf.evaluate(RUNS, *metrics, truth=TRUTH, by=name, history=HISTORY)
    expected = rf.evaluate(runs, *metrics, truth=truth, by="made").rename({"made": name})
    assert_frame_equal(got, expected, check_exact=True)
    assert got[name].dtype == pl.Enum([bin_of(start, edges) for start in [0, *edges]])
    lazy = rf.evaluate(
        rf.runs.stack(RUNS).lazy(),
        *metrics,
        truth=TRUTH.lazy(),
        by=name,
        history=HISTORY.lazy(),
        **options,
    )
    got = got.sort("model", name)
    assert_frame_equal(lazy.collect().sort("model", name), got, check_exact=True)


VERBS = {
    "per_user": lambda runs, **options: rf.per_user(runs, "recall@5", **options),
    "summarize": lambda runs, **options: rf.summarize(runs, "recall@5", **options),
    "compare": lambda runs, **options: rf.compare(runs, "recall@5", baseline="old", **options),
    "compare_segments": lambda runs, **options: rf.stats.compare_segments(
        runs, "recall@5", baseline="old", **options
    ),
    "gate": lambda runs, **options: rf.gate(
        runs, "recall@5", baseline="old", margin=0.9, undecided="pass", **options
    ),
    "at_k": lambda runs, **options: rf.stats.at_k(runs, "recall", k=[1, 5], **options),
    "harm": lambda runs, **options: rf.stats.harm(runs, "recall@5", baseline="old", **options),
    "funnel": lambda runs, **options: rf.stats.funnel(runs, "recall@5", **options),
    "report": lambda runs, **options: rf.report(runs, "recall@5", baseline="old", **options).tables[
        f"segments: {options['by']}"
    ],
    "chart": lambda runs, **options: rf.plot.segments(runs, "recall@5", **options).data,
}


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_takes_them(verb):
    key, numbers, _ = CASES["activity"]
    name = "activity(2,5)"
    *runs, truth = by_hand("made", key, numbers, [2, 5], *RUNS.values(), TRUTH)
    got = VERBS[verb](RUNS, truth=TRUTH, by=name, history=HISTORY)
    expected = VERBS[verb](dict(zip(RUNS, runs, strict=True)), truth=truth, by="made")
    assert_frame_equal(got.rename({name: "made"}, strict=False), expected)


def test_a_report_of_rare_items():
    tables = rf.report(RUNS, "recall@5", truth=TRUTH, history=HISTORY, by="popularity(2)").tables
    rows = tables["segments: popularity(2)"]
    expected = rf.compare(
        RUNS, "recall@5", truth=TRUTH, history=HISTORY, by="popularity(2)", baseline="old"
    )
    assert rows["users"].to_list() == expected["users"].to_list() == [10, 9]


def test_pandas_users_of_the_run_judged_tables_and_two_segments():
    options = {"by": ["activity(5)", "relevant_items(3)"], "users": "all", "undefined": 0.0}
    got = rf.evaluate(RUN, "recall@5", truth=TRUTH, history=HISTORY, **options)
    in_pandas = {"truth": TRUTH.to_pandas(), "history": HISTORY.to_pandas()}
    frame = rf.evaluate(RUN.to_pandas(), "recall@5", **in_pandas, **options)
    assert_frame_equal(pl.from_pandas(frame), got, categorical_as_str=True, check_dtypes=False)
    judged = rf.judge(RUN, TRUTH)
    users = {"by": "activity(5)", "history": HISTORY, "users": "truth"}
    assert_frame_equal(
        rf.evaluate(judged, "ap", **users), rf.evaluate(RUN, "ap", truth=TRUTH, **users)
    )
    alone = rf.evaluate(RUN, "novelty@3", by="activity(5)", history=HISTORY)
    assert alone["users"].to_list() == [sum(size < 5 for size in SIZES[:9]), 3]


def test_a_level_of_relevance_counts_and_small_tables_keep_no_plan():
    level = {"relevant_at": 2, "by": "relevant_items(2)"}
    twice = TRUTH.filter(pl.col("relevance") > 1).group_by("user").len()
    expected = {"0-1": int((twice["len"] < 2).sum()), "2+": int((twice["len"] > 1).sum())}
    for truth, run in [(TRUTH, RUN)] * 3:
        got = rf.evaluate(run, "recall@5", truth=truth, **level)
        found = dict(got.select(pl.col("relevant_items(2)").cast(pl.String), "users").rows())
        assert found == expected
    more = pl.concat([TRUTH, TRUTH.with_columns(item=pl.col("item") + 100)])
    got = rf.evaluate(RUN, "recall@5", truth=more, **level)
    assert got["users"].to_list() == [0, twice.height]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (
            {"by": "activity"},
            rf.RankingDataError,
            "by='activity' means users by their number of items in the history: pass history=, ",
        ),
        ({"by": "popularity"}, rf.RankingDataError, "pass history=, with users and items"),
        ({"by": "relevant_items", "truth": None}, rf.RankingDataError, "pass truth="),
        (
            {"by": "activity(5,5)", "history": HISTORY},
            ValueError,
            "'activity(5,20)' for below 5, 5 to 19 and from 20",
        ),
        (
            {"by": "activity(bins=0)", "history": HISTORY},
            ValueError,
            "by: 'activity(bins=0)' has no bins",
        ),
        ({"by": "activity(x)", "history": HISTORY}, ValueError, "has no bins"),
        (
            {"by": "activity", "history": HISTORY, "truth": TRUTH.with_columns(activity=1)},
            rf.RankingDataError,
            "truth, column 'activity': by='activity' also means users",
        ),
        (
            {"by": "relevant_items", "truth": TRUTH.with_columns(relevant_items=1)},
            rf.RankingDataError,
            "rename the column",
        ),
        (
            {"by": "activity", "history": HISTORY.drop("user")},
            rf.RankingDataError,
            "no column 'user' for user",
        ),
        (
            {"by": "popularity", "history": HISTORY, "users": "run"},
            ValueError,
            "users='run' includes users who are not in the truth, whose items",
        ),
    ],
)
def test_what_is_no_segment(options, error, text):
    options = {"truth": TRUTH, **options}
    metric = "recall@5" if options["truth"] is not None else "filled@3"
    with pytest.raises(error) as raised:
        rf.evaluate(RUN, metric, **options)
    assert text in str(raised.value)


POPULAR = {"by": "popularity(2)", "history": HISTORY}
WORDS = HISTORY.with_columns(pl.lit("click").alias("activity(2)"))


@pytest.mark.parametrize(
    ("table", "options"),
    [
        ("history=", {"history": WORDS}),
        ("exclude=", {"exclude": WORDS}),
        (
            "items=",
            {"items": TRUTH.select("item").unique().with_columns(pl.lit(1).alias("activity(2)"))},
        ),
    ],
)
def test_no_table_beside_has_the_column(table, options):
    with pytest.raises(rf.RankingDataError) as raised:
        rf.evaluate(
            RUN, "recall@2", truth=TRUTH, **{"history": HISTORY, **options}, by="activity(2)"
        )
    assert str(raised.value).startswith(f"{table}, column 'activity(2)': by='activity(2)' also ")
    with pytest.raises(rf.RankingDataError, match=r"^stages\['a'\]=, column 'activity\(2\)'"):
        rf.stats.funnel(
            RUN, "recall@2", truth=TRUTH, history=HISTORY, stages={"a": WORDS}, by="activity(2)"
        )


def test_a_day_of_the_history_limits_the_counts():
    lists = pl.DataFrame({"day": [1, 1, 2, 2], "user": [1, 2, 1, 2], "item": ["a"] * 4, "rank": 1})
    past = pl.DataFrame({"day": [1, 1, 1, 2], "user": [1, 1, 1, 2], "item": ["a", "b", "c", "a"]})
    truth, options = lists.drop("rank"), {"history": past}
    for by, bins in {
        "popularity(1,2)": ["1"] * 4,
        "activity(1,3)": ["3+", "0", "0", "1-2"],
    }.items():
        for order in (["day", by], [by, "day"]):
            got = rf.per_user(lists, "popularity@1", truth=truth, by=order, **options)
            assert got.sort("day", "user")[by].cast(pl.String).to_list() == bins
        one = lists.filter(day=1).drop("day")  # the day comes from the truth
        got = rf.per_user(one, "popularity@1", truth=truth, by=["day", by], **options)
        assert got.sort("day", "user")[by].cast(pl.String).to_list() == bins
    with pytest.raises(rf.RankingDataError, match="^history=, column 'day': the truth has no such"):
        rf.evaluate(lists, "rr", truth=truth.drop("day").unique(), by=["day", by], **options)


@pytest.mark.parametrize(
    "options", [{"unjudged": "drop"}, {"unjudged": "bounds"}, {"users": "all"}]
)
def test_options_that_contradict_popularity(options):
    with pytest.raises(ValueError, match=r"by='popularity\(2\)': leave one of them out"):
        rf.evaluate(RUN, "recall@2", truth=TRUTH, **POPULAR, **options)


def test_provenance_of_a_segment():
    options = {"truth": TRUTH, "history": HISTORY, "checksums": True}
    got = rf.provenance(RUN, "recall@2", by="activity(2)", **options)
    plain = rf.provenance(RUN, "recall@2", **options)
    assert got["columns"]["by"] == ["activity(2)"]
    assert (got["rows"], got["checksums"]) == (plain["rows"], plain["checksums"])


OTHERS = {
    "check": lambda **by: rf.check(RUN, truth=TRUTH, **by),
    "judge": lambda **by: rf.judge(RUN, TRUTH, **by),
    "exposure": lambda **by: rf.stats.exposure(RUN, of="item", **by),
    "lorenz": lambda **by: rf.plot.lorenz(RUN, of="item", **by),
    "Meter": lambda **by: rf.Meter("rr", **by),
    "sums": lambda **by: rf.parts.sums(RUN, "rr", truth=TRUTH, **by),
    "sql": lambda **by: rf.sql("rr", run="r", truth="t", **by),
}


@pytest.mark.parametrize("verb", OTHERS)
def test_other_verbs_make_no_segments(verb):
    with pytest.raises(rf.RankingDataError, match=r"^by='activity\(5,20\)' means users by .* does"):
        OTHERS[verb](by="activity(5,20)")


def test_popularity_needs_no_common_users():
    others = HISTORY.with_columns(pl.col("user") + 100)
    options = {"truth": TRUTH, "by": "popularity(2)"}
    got = rf.evaluate(RUN, "recall@5", history=others, **options)
    assert_frame_equal(got, rf.evaluate(RUN, "recall@5", history=HISTORY, **options))
    with pytest.raises(rf.RankingDataError, match="no user of the run is in history="):
        rf.evaluate(RUN, "novelty@2", history=others, **options)


def test_popularity_of_a_judged_table_says_how_to_part_it():
    judged = rf.judge(RUN, TRUTH)
    with pytest.raises(rf.RankingDataError) as raised:
        rf.evaluate(judged, "recall@5", **POPULAR)
    cure = str(raised.value).partition("they are: ")[2]
    got = eval(
        f"rf.evaluate({cure}, **options)".replace("truth=", "'recall@5', truth="),
        {
            "rf": rf,
            "judged": judged,
            "options": POPULAR,
        },
    )
    assert_frame_equal(got, rf.evaluate(RUN, "recall@5", truth=TRUTH, **POPULAR))


def test_a_metric_of_the_same_name_and_an_open_bracket():
    with pytest.raises(ValueError, match=r"write by='popularity\(bins=4\)'"):
        rf.evaluate(RUN, "novelty@2", truth=TRUTH, history=HISTORY, by="popularity")
    got = rf.evaluate(RUN, "novelty@2", truth=TRUTH, history=HISTORY, by="popularity(bins=4)")
    assert got.height == 3
    with pytest.raises(ValueError, match=r"by: 'activity\(1' has an open bracket"):
        rf.evaluate(RUN, "rr", truth=TRUTH, history=HISTORY, by="activity(1")


def test_a_segment_is_no_system_in_a_line_of_missed_users():
    runs = pl.concat([RUN.with_columns(seed=seed) for seed in (1, 2)])
    options = {"truth": TRUTH, "history": HISTORY, "over": "seed"}
    text = str(rf.table(runs, "recall@5", by="activity(8)", **options))
    assert "1 of 3 users of activity(8) 8+ has no list" in " ".join(text.split())


def test_one_bin_of_quantiles_is_told():
    alike = pl.DataFrame({"user": range(10), "item": [1] * 10})
    with pytest.warns(UserWarning, match="^by='activity': all fall into one bin"):
        got = rf.evaluate(RUN, "rr", truth=TRUTH, history=alike, by="activity")
    assert got["activity"].to_list() == ["0+"]
    rf.evaluate(RUN, "rr", truth=TRUTH, history=alike, by="activity(bins=1)")


def test_a_history_that_is_no_table():
    with pytest.raises(TypeError, match="^the history= table must be a polars DataFrame"):
        rf.evaluate(RUN, "rr", truth=TRUTH, history={1: ["a"]}, by="activity")


@pytest.mark.parametrize("options", [{}, {"users": "all"}, {"unjudged": "drop"}])
def test_a_report_has_no_segments_of_items_with_options_that_contradict_them(options):
    past = pl.concat([HISTORY, TRUTH.select("user", "item").head(20)])
    report = rf.report(RUNS, "recall@5", truth=TRUTH, history=past, by="activity(2)", **options)
    assert ("segments: relevant items" in report.tables) == (not options)
