"""Users to whom a system gives no list: counted, named, and left out of all systems alike."""

import random

import polars as pl
import pytest
from two_models import assert_equal
from user_values import FEW

import rankframe as rf

RUN = pl.DataFrame(
    [
        ("old", 1, "a", 1),
        ("old", 2, "c", 1),
        ("old", 3, "a", 1),
        ("old", 4, "z", 1),
        ("new", 1, "b", 1),
        ("new", 3, "a", 1),
        ("new", 9, "a", 1),
    ],
    schema=["model", "user", "item", "rank"],
    orient="row",
)
TRUTH = pl.DataFrame({"user": [1, 2, 3, 4, 5], "item": list("acaaa")})
TOLD = "3 of 5 users have no list of new"


def served_by(users: range, *, total: int = 40) -> pl.DataFrame:
    """Make the run of an old system that serves all users, and a new one that serves some."""
    old = pl.DataFrame({"model": "old", "user": range(total), "item": 0, "rank": 1})
    new = pl.DataFrame({"model": "new", "user": users, "item": 0, "rank": 2})
    return pl.concat([old, new], how="vertical_relaxed")


# ------------------------------------------------------------------ the metrics


def test_user_without_a_row_of_the_run_is_missed():
    got = RUN.rank.per_user("missed", "num_missed", truth=TRUTH, by="model")
    assert got.filter(model="old")["missed"].to_list() == [0.0, 0.0, 0.0, 0.0, 1.0]
    assert got.filter(model="new")["num_missed"].to_list() == [0, 1, 0, 1, 1]
    means = RUN.rank.evaluate("missed", "num_missed", truth=TRUTH, by="model")
    assert means.rows() == [("new", 5, 0.6, 3), ("old", 5, 0.2, 1)]
    assert means.schema["num_missed"] == pl.Int64


def test_list_of_which_nothing_is_left_is_missing():
    run = pl.DataFrame({"user": [1, 2, 2, 3], "item": list("aaba"), "rank": [1, 1, 2, 5]})
    truth = pl.DataFrame({"user": [1, 2, 3, 4], "item": list("abba")})

    def missed(**options):
        return run.rank.evaluate("num_missed", truth=truth, **options).item(0, "num_missed")

    assert missed() == 1
    assert missed(depth=4) == 2  # user 3 has a list from rank 5 on
    assert missed(unjudged="drop") == 2  # user 3 has an unjudged item alone
    assert missed(exclude=pl.DataFrame({"user": [1, 2], "item": ["a", "a"]})) == 2
    unranked = run.with_columns(rank=pl.when(pl.col("user") != 3).then("rank"))
    assert unranked.rank.evaluate(rf.metrics.num_missed(), truth=truth).item(0, "num_missed") == 2


def test_users_of_other_policies():
    graded = TRUTH.with_columns(relevance=pl.Series([1, 1, 1, 0, -1]))
    one = {"truth": graded, "by": "model"}
    assert RUN.rank.evaluate("num_missed", **one)["num_missed"].to_list() == [1, 0]
    judged = RUN.rank.evaluate("num_missed", users="judged", **one)
    assert judged.rows() == [("new", 5, 3), ("old", 5, 1)]
    everybody = RUN.rank.per_user("missed", users="all", **one)
    assert everybody.filter(user=9)["missed"].to_list() == [None]


def test_unanswerable_question_is_answered_by_no_list():
    lists = {"found": ["a"], "missed": [], "answered": ["b"], "abstained": []}
    expected = {"found": ["a"], "missed": ["c"], "answered": [], "abstained": []}
    cases = pl.DataFrame({"user": [*lists], "item": [*lists.values()]})
    cases = cases.with_columns(expected=pl.Series([*expected.values()]))
    judged = rf.from_lists(cases, truth="expected")
    nothing = pl.col("item").fill_null("none"), pl.col("relevance").fill_null(0)
    truth = {user: dict.fromkeys(items, 1) or {"none": 0} for user, items in expected.items()}
    run = rf.from_lists(lists)
    asked = ("recall", "abstention_recall", "missed")
    want = {
        "found": (1.0, None, 0.0),
        "missed": (0.0, None, 1.0),
        "answered": (None, 0.0, 0.0),
        "abstained": (None, 1.0, 1.0),
    }
    for frame, options in ((judged.with_columns(nothing), {}), (run, {"truth": truth})):
        rows = rf.per_user(frame, *asked, users="judged", **options).rows()
        assert {user: tuple(values) for user, *values in rows} == want
    cure = "pass users='judged'$"
    with pytest.warns(rf.errors.RankingWarning, match=f"'abstention_recall' is null .*{cure}"):
        by_default = rf.evaluate(run, *asked, truth=truth)
    assert by_default.row(0) == (2, 0.5, None, 0.5)
    # an excluded item leaves no list, and a user without a judgment is neither
    without = pl.DataFrame({"user": ["answered"], "item": ["b"]})
    more = pl.concat([run, run.head(1).with_columns(user=pl.lit("unjudged"))])
    got = rf.per_user(more, *asked, truth=truth, users="all", exclude=without)
    assert dict(got.select("user", "abstention_recall").rows()) == {
        **dict.fromkeys(("found", "missed", "unjudged")),
        **dict.fromkeys(("answered", "abstained"), 1.0),
    }


# ------------------------------------------------------------------ summarize and compare


def test_summary_counts_and_notes_them():
    got = RUN.rank.summarize("rr", "missed", truth=TRUTH, by="model", total=True)
    assert got["num_missed"].to_list() == [3, 3, 1, 1, 4, 4]
    notes = got["note"].to_list()
    assert notes[0].startswith("3 of 5 users have no list; ")
    assert notes[2].startswith("1 of 5 users has no list; ")
    assert "4 of 10 users have no list" in notes[4]


def test_summary_of_all_lists_counts_them():
    items = pl.DataFrame({"item": list("abc")})
    got = RUN.filter(pl.col("item") != "z").rank.summarize(
        "coverage@1", "rr", truth=TRUTH, items=items, by="model"
    )
    assert got["num_missed"].to_list() == [3, 3, 2, 2]
    assert got["note"][0].endswith("; 3 of 5 users have no list")
    alone = RUN.filter(model="new").rank.summarize("coverage@1", truth=TRUTH, items=items)
    assert alone["num_missed"].to_list() == [3]
    pair = RUN.filter(pl.col("item") != "z").rank.compare(
        "coverage@1", truth=TRUTH, items=items, baseline="old", details=True
    )
    assert pair.select("users", "num_missed", "baseline_num_missed").row(0) == (2, 0, 0)


def test_comparison_counts_and_notes_them_of_both():
    got = RUN.rank.compare("rr", "hit@1", truth=TRUTH, baseline="old", details=True)
    assert got.select("users", "num_missed", "baseline_num_missed").rows() == [(5, 3, 1)] * 2
    both = f"{TOLD}; 1 of 5 users has no list of old; interval cut at the greatest difference"
    assert [both in note for note in got["note"]] == [True, True]
    got = RUN.rank.compare("rr", truth=TRUTH, baseline="old", users="both", details=True)
    assert got.select("users", "num_missed", "baseline_num_missed").row(0) == (2, 0, 0)
    assert "no list" not in (got["note"].item() or "")


@pytest.mark.parametrize("test", ["t", "randomization", "max_t", "sequential"])
def test_tests_count_missed_users(test):
    run = served_by(range(30))
    truth = pl.DataFrame({"user": range(40), "item": [0] * 40})
    got = run.rank.compare(
        "hit@1", truth=truth, baseline="old", test=test, resamples=FEW, details=True
    )
    assert got.select("num_missed", "baseline_num_missed").row(0) == (10, 0)
    assert "10 of 40 users have no list of new" in got["note"].item()


def test_counts_are_those_of_evaluate():
    draw = random.Random(3)
    rows = [(m, u, i, i) for m in "xyz" for u in range(30) if draw.random() < 0.8 for i in (1, 2)]
    run = pl.DataFrame(rows, schema=["model", "user", "item", "rank"], orient="row")
    truth = pl.DataFrame({"user": range(35), "item": [1, 2, 3, 4, 5] * 7})
    for options in ({}, {"unjudged": "drop"}, {"users": "judged"}, {"users": "both"}):
        counted = run.rank.evaluate("num_missed", truth=truth, by="model", **options)
        counts = dict(counted.select("model", "num_missed").rows())
        got = run.rank.summarize("rr", truth=truth, by="model", **options)
        assert dict(got.select("model", "num_missed").rows()) == counts
        if options.get("users") == "both":
            continue
        pairs = run.rank.compare("rr", truth=truth, **options, details=True)
        for side, name in (("model", "num_missed"), ("baseline", "baseline_num_missed")):
            for model, missed in pairs.select(side, name).iter_rows():
                assert missed == counts[model]


def test_user_of_several_segments_is_missed_in_all_of_them():
    run = pl.concat([RUN.with_columns(day=1), RUN.filter(model="old").with_columns(day=2)])
    only = pl.DataFrame({"model": "new", "user": [2], "item": "c", "rank": 1, "day": 2})
    run = pl.concat([run, only], how="vertical_relaxed")
    got = run.rank.compare(
        "rr", truth=TRUTH, by=["model", "day"], baseline="old", total=True, details=True
    ).select("day", "users", "num_missed", "baseline_num_missed")
    assert got.rows() == [(1, 5, 3, 1), (2, 5, 4, 1), (None, 5, 2, 1)]


@pytest.mark.parametrize(("missed", "told"), [(2, True), (1, False), (0, False)])
def test_note_names_them_from_5_percent_on(missed, told):
    run = served_by(range(40 - missed))
    truth = pl.DataFrame({"user": range(40), "item": [0] * 40})
    got = run.rank.compare("rr", truth=truth, baseline="old", details=True)
    assert got["num_missed"].item() == missed
    assert ("2 of 40 users have no list of new" in (got["note"].item() or "")) == told
    summary = run.rank.summarize("rr", truth=truth, by="model").row(0, named=True)
    assert summary["num_missed"] == missed
    assert ("no list" in (summary["note"] or "")) == told


def test_column_of_this_name_is_refused(refused):
    run = RUN.rename({"model": "num_missed"})
    for verb in (rf.summarize, rf.compare):
        refused(verb, run, "rr", truth=TRUTH, model="num_missed")


# ------------------------------------------------------------------ who_gained and charts


def test_rows_of_a_diagnosis_add_up():
    run = served_by(range(30))
    sizes = [1 + user % 7 for user in range(40)]
    truth = pl.DataFrame({"user": range(40), "item": [list(range(n)) for n in sizes]})
    truth = truth.explode("item", empty_as_null=False)
    run = run.filter(~((pl.col("model") == "old") & pl.col("user").is_in([29, 30, 31])))
    got = run.rank.stats.who_gained(1, truth=truth, baseline="old")
    *bins, lacking, overall = got.iter_rows(named=True)
    assert sum(row["users"] for row in bins) == 29
    assert lacking["users"] == 11
    assert lacking["reading"] == (
        "no list of new: 8 users; no list of old: 1 user; no list of either: 2 users"
    )
    assert (lacking["relevant_low"], lacking["relevant_high"]) == (1, 7)
    assert overall["users"] == 40
    assert overall["relevant_low"] is None
    assert overall["reading"].endswith(
        "; 10 of 40 users have no list of new; 3 of 40 users have no list of old"
    )
    for name in ("hits_change", "precision_change", "recall_change"):
        weighed = sum(row[name] * row["users"] for row in [*bins, lacking]) / 40
        assert weighed == pytest.approx(overall[name])
    served = run.rank.stats.who_gained(1, truth=truth, baseline="old", users="both")
    assert not any("no list" in reading for reading in served["reading"])
    assert served.head(len(bins)).equals(got.head(len(bins)))


@pytest.mark.parametrize("name", ["compare", "who_gained", "per_user", "at_k", "precision_recall"])
def test_subtitles_of_charts_name_them(name):
    run = served_by(range(30))
    truth = pl.DataFrame({"user": range(40), "item": [0] * 40})
    calls = {
        "compare": (["rr"], {"baseline": "old"}),
        "who_gained": ([1], {"baseline": "old"}),
        "per_user": (["rr"], {}),
        "at_k": (["recall"], {"k": [1, 2]}),
        "precision_recall": ([], {"k": [1, 2]}),
    }
    arguments, options = calls[name]
    draw = getattr(run.rank.plot, name)
    subtitle = draw(*arguments, truth=truth, **options).title.subtitle
    assert " ".join(subtitle).endswith("10 of 40 users have no list of new")
    served = draw(*arguments, truth=truth, users="both", **options).title.subtitle
    assert not any("no list" in line for line in served)


# ------------------------------------------------------------------ the command, MovieLens


# ------------------------------------------------------------------ lists of which nothing is left


def lists_to_reduce():
    """Of system a, user 2 has an unjudged item alone, and user 3 one item, at rank 5."""
    run = pl.DataFrame(
        {
            "model": ["a"] * 3 + ["b"] * 3,
            "user": [1, 2, 3] * 2,
            "item": ["x", "y", "x", "x", "x", "x"],
            "rank": [1, 1, 5, 1, 1, 1],
        }
    )
    return run, pl.DataFrame({"user": [1, 2, 3, 4], "item": ["x"] * 4})


def by_batches(run, truth, **options):
    meter = rf.Meter("missed", by="model", **options)
    for some in ([1, 2], [3, 4]):
        mine = pl.col("user").is_in(some)
        meter.update(run.filter(mine), truth.filter(mine))
    return meter.compute()


@pytest.mark.parametrize(
    ("options", "users", "missed"),
    [
        ({"unjudged": "drop"}, 3, 1),
        ({"depth": 4}, 3, 1),
        ({"exclude": pl.DataFrame({"user": [2], "item": ["y"]})}, 2, 0),
        ({"unjudged": "drop", "depth": 4}, 3, 2),
        ({}, 3, 0),
    ],
)
def test_users_of_both_tables_stay_if_nothing_is_left_of_their_lists(options, users, missed):
    """trec_eval -J averages a topic of which no retrieved document is judged."""
    run, truth = lists_to_reduce()
    options = {"users": "both", **options}
    got = run.rank.evaluate("missed", "num_missed", truth=truth, by="model", **options)
    assert got["users"].to_list() == [users, 3]
    assert got["num_missed"].to_list() == [missed, 0]
    pair = run.rank.compare("rr", truth=truth, baseline="a", **options, details=True)
    found = pair.select("users", "num_missed", "baseline_num_missed").row(0)
    assert found == (users, 0, missed)
    assert_equal(by_batches(run, truth, **options), got.select("model", "users", "missed"))


@pytest.mark.parametrize(("users", "values"), [("run", [1.0, 0.5]), ("both", [1.0, 0.5])])
def test_systems_without_a_common_user_have_no_misses_to_count(users, values):
    run = pl.DataFrame({"model": ["a", "b"], "user": [1, 2], "item": 7, "rank": [1, 2]})
    truth = pl.DataFrame({"user": [1, 2], "item": 7})
    options = {"by": "model", "users": users}
    assert run.rank.evaluate("rr", truth=truth, **options)["rr"].to_list() == values
    options["facts"] = rf.parts.facts(run, truth=truth, by="model")
    meter, parts = rf.Meter("rr", **options), []
    for user in (1, 2):
        mine = run.filter(user=user), truth.filter(user=user)
        meter.update(*mine)
        parts.append(rf.parts.sums(mine[0], "rr", truth=mine[1], part=str(user), **options))
    assert meter.compute()["rr"].to_list() == values
    assert rf.parts.combine(parts)["rr"].to_list() == values
    for misses in ("truth", "judged", "all", None):
        with pytest.raises(rf.RankingDataError, match="each user would count as a miss"):
            run.rank.evaluate("rr", truth=truth, by="model", users=misses)


def test_names_that_do_not_show_are_quoted():
    family, persian = (
        "\N{WOMAN}\u200d\N{WOMAN}\u200d\N{GIRL}",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    )
    quoted = {"": "''", " a": "' a'", "a\nb": r"'a\nb'", "a\u202eb": r"'a\u202eb'"}
    for name, text in [
        *quoted.items(),
        *((as_it_is, as_it_is) for as_it_is in ("new one", family)),
        (persian, f"\u2068{persian}\u2069"),  # its direction moves no number beside it
    ]:
        run = RUN.with_columns(pl.col("model").replace("new", name))
        got = run.rank.compare("rr", truth=TRUTH, baseline="old")
        assert f"no list of {text}" in got["note"].item()
        reading = run.rank.stats.who_gained(1, truth=TRUTH, baseline="old")["reading"].drop_nulls()
        assert f"no list of {text}: 2 users" in "; ".join(reading)
    numbered = RUN.with_columns(model=pl.col("model").replace_strict({"old": 1, "new": 2}))
    assert "no list of 2" in numbered.rank.compare("rr", truth=TRUTH, baseline=1)["note"].item()


def test_system_may_be_called_either():
    run = RUN.with_columns(pl.col("model").replace("new", "either"))
    reading = run.rank.stats.who_gained(1, truth=TRUTH, baseline="old")["reading"].drop_nulls()
    assert "no list of either: 2 users; no list of either: 1 user" in "; ".join(reading)
