"""How far a value depends on its convention: against calls of evaluate, one by one."""

import itertools

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import rankframe as rf

LISTS = {1: "abcd", 2: "dab", 3: "ghi", 5: "ab", 6: "ceb"}
TRUTH = rf.from_grades({1: {"a": 1, "c": 2}, 2: {"b": 3, "d": 0}, 3: {"m": 1}, 4: {"a": 2}})
RUN = rf.from_lists(pl.DataFrame({"user": [*LISTS], "item": [[*x] for x in LISTS.values()]}))
RUNS = {
    "short": RUN.filter(pl.col("user") > 1),
    "all": RUN,
    "few": RUN.filter(~pl.col("user").is_in([2, 5])),
    "again": RUN,
}
#: The parameters of each that are not those of the first.
LABELS = {
    "recall@2": set(),
    "recall(divide_by=attainable)@2": {"divide_by"},
    "recall": {"k"},
    "recall(divide_by=attainable)": {"divide_by", "k"},
}
CHANGES = {"ranks": [2], "relevant_at": [2, 3], "unjudged": ["drop"]}
SHARED = {
    "users": ["truth", "judged", "both", "run", "all"],
    "undefined": [None, 0.0, 1.0],
    "average": ["users", "pooled"],
}


def every_convention():
    """Yield all options that recall@2 has on these tables, as departures from the first of each."""
    changes = [{}, *({name: value} for name, values in CHANGES.items() for value in values)]
    for change, *values in itertools.product(changes, *SHARED.values()):
        shared = dict(zip(SHARED, values, strict=True))
        yield change | {name: x for name, x in shared.items() if x != SHARED[name][0]}


def values_of(options):
    """Evaluate a convention by itself: the departures of each label, and values of the systems."""
    moved = pl.col("rank") + ("ranks" in options)
    runs = {name: run.with_columns(moved) for name, run in RUNS.items()}
    others = {name: value for name, value in options.items() if name != "ranks"}
    means = rf.evaluate(runs, *LABELS, truth=TRUTH, **others)
    for label, parameters in LABELS.items():
        yield parameters | options.keys(), dict(means.select("model", label).iter_rows())


def expected(pairs, choice):
    """Return what the spread of a choice must be, and who turns, for each system."""
    rows = [values for departs, values in pairs if choice == "all" or departs <= {choice}]
    for system in RUNS:
        defined = [values for values in rows if values[system] is not None]
        of_system = [values[system] for values in defined]
        both = {name: [x for x in defined if x[name] is not None] for name in RUNS}
        gaps = {name: [x[system] - x[name] for x in both[name]] for name in RUNS}
        turned = [name for name, gap in gaps.items() if min(gap) < -1e-12 and max(gap) > 1e-12]
        ends = pytest.approx(min(of_system)), pytest.approx(max(of_system))
        yield system, choice, *ends, len(defined), turned


def check(conventions, choices):
    pairs = [pair for options in conventions for pair in values_of(options)]
    got = rf.stats.conventions(RUNS, "recall@2", truth=TRUTH)
    assert got["model"].unique(maintain_order=True).to_list() == [*RUNS]
    for choice in choices:
        columns = ("model", "choice", "least", "greatest", "conventions", "turned")
        assert got.filter(choice=choice).select(columns).rows() == [*expected(pairs, choice)]


def test_single_choices_are_those_of_evaluate():
    single = [options for options in every_convention() if len(options) < 2]
    check(single, {"k", "divide_by", *CHANGES, *SHARED})


@pytest.mark.thorough
def test_all_conventions_are_those_of_evaluate():
    check(every_convention(), {"all"})


def test_settings_in_words_give_the_ends():
    got = rf.stats.conventions(RUNS["all"], "recall@2", truth=TRUTH)
    assert "model" not in got.columns
    assert "turned" not in got.columns
    assert got["value"].to_list() == [0.125] * len(got)
    rows = {row["choice"]: row for row in got.iter_rows(named=True)}
    assert next(iter(rows)) == "all"
    assert got["width"][1:].is_sorted(descending=True)
    assert rows["users"]["greatest_setting"] == "over users with a list and a judgment"
    assert rows["k"]["least_setting"] == "cut at 2"
    assert rows["undefined"]["width"] == 0
    words = "no cut-off, relevant from grade 3 (gains of all grades > 0)"
    assert rows["all"]["greatest_setting"] == words
    value = rf.evaluate(RUN, "recall", truth=TRUTH, relevant_at=3)["recall"].item()
    assert rows["all"]["greatest"] == value == 1


def test_options_of_the_call_are_yours():
    options = {"users": "both", "undefined": 0.5}
    got = rf.stats.conventions(RUN, "recall(divide_by=attainable)@2", truth=TRUTH, **options)
    values = rf.evaluate(RUN, "recall(divide_by=attainable)@2", truth=TRUTH, **options)
    assert got["value"].unique().to_list() == [pytest.approx(values[:, 1].item())]
    assert got.filter(choice="undefined")["conventions"].item() == 4
    assert got.filter(choice="users")["conventions"].item() == 5


def test_systems_keep_the_order_of_the_table():
    names = ("short", "few", "all")  # not that of the alphabet
    table = pl.concat(RUNS[name].with_columns(system=pl.lit(name)) for name in names)
    got = rf.stats.conventions(table, "recall@2", truth=TRUTH, model="system")
    assert got.filter(system="few", choice="all")["turned"].item().to_list() == ["short", "all"]
    by_name = {name: RUNS[name] for name in names}
    wanted = rf.stats.conventions(by_name, "recall@2", truth=TRUTH)
    assert_frame_equal(got, wanted.rename({"model": "system"}))
    one = rf.stats.conventions({"x": RUN}, "recall@2", truth=TRUTH)
    assert_frame_equal(one, rf.stats.conventions(RUN, "recall@2", truth=TRUTH))


def test_lists_without_a_truth_have_a_spread():
    got = rf.stats.conventions(RUN, "novelty@2", history=RUN)
    own = rf.evaluate(RUN, "novelty@2", history=RUN)["novelty@2"].item()
    assert got["value"].unique().to_list() == [pytest.approx(own)]
    assert {"k", "out_of"} & {*got["choice"]}


def test_pooled_mean_without_a_form_is_refused():
    for call in (rf.evaluate, rf.stats.conventions):
        with pytest.raises(ValueError, match="metric 'gmap' is not declared as a ratio"):
            call(RUN, "gmap", truth=TRUTH, average="pooled")
