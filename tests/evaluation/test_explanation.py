"""Explain a number: the code of each class of conventions gives the value beside it."""

import random
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
import reference
from every_metric import FEW
from lists_and_shares import OF_ALL, OF_USERS, WORLD, labels_at
from polars.testing import assert_frame_equal

import rankframe as rf
from rankframe.typing import Explanation


def _tables(seed: int, placed_by: str) -> dict[str, pl.DataFrame]:
    """Make tables with ties, misses of grade 0, users without a list, and lists without a truth."""
    draw = random.Random(seed)
    lists = [
        {"user": user, "item": item, "score": draw.choice([0.25, 0.5, 0.75]), "rank": rank}
        for user in range(1, 7)
        for rank, item in enumerate(draw.sample("abcdefghij", draw.randint(3, 8)), start=1)
    ]
    truth = [
        {"user": user, "item": item, "relevance": draw.choice([0, 1, 1, 2, 3])}
        for user in range(3, 9)
        for item in draw.sample("abcdefghij", draw.randint(1, 6))
    ]
    run = pl.DataFrame(lists).drop("score" if placed_by == "rank" else "rank")
    return {"run": run, "truth": pl.DataFrame(truth)}


def _check(explanation: Explanation, metrics: Sequence[str], **tables: Any) -> None:
    """Run the code of some classes, and compare its value with the one in the row."""
    rows = explanation.frame.rows(named=True)
    if not reference.thorough:
        rows = rows[:2] + random.Random(0).sample(rows[2:], min(6, len(rows[2:])))
    assert rows
    for row in rows:
        values = eval(row["call"], {"rf": rf, "pl": pl, **tables})
        found = [values[name][0] for name in values.columns if name not in ("users", "model")]
        assert found == pytest.approx([row[name] for name in metrics], rel=1e-12, abs=1e-12), row


def _explained(number: Any, *metric: str, run: pl.DataFrame, **options: Any) -> Explanation:
    return rf.explain(number, *metric, run, **options)


def _number(metric: str, tables: dict[str, Any]) -> float:
    """Return the value of a metric, or any number in its range."""
    *_, value = rf.evaluate(
        tables["run"], metric, **{n: tables[n] for n in tables if n != "run"}
    ).row(0)
    return 0.5 if value is None else value


#: Of each kind: with and without a cut-off, pooled, geometric, a sum, without a form under ties.
LABELS = ["ndcg@3", "precision", "ap(rel=2)@3", "gmap@3", "num_hits@3", "rbp@3", "bpref"]
LISTS = ["tail@3", "coverage(of=genre)@3", "ild(of=genre)@3"]
if reference.thorough:
    LABELS += [*FEW, "gm_bpref"]
    LISTS += [*labels_at(3, OF_USERS), *labels_at(3, OF_ALL)]


@pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")
@pytest.mark.parametrize("placed_by", ["rank", "score"])
@pytest.mark.parametrize("label", LABELS)
def test_code_gives_the_value(label: str, placed_by: str) -> None:
    tables = _tables(len(label), placed_by)
    found = _explained(_number(label, tables), label, digits=0, **tables)
    _check(found, [label], **tables)


@pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")
@pytest.mark.parametrize("label", LISTS)
def test_code_gives_the_value_of_lists(label: str) -> None:
    tables = WORLD.tables()
    found = _explained(_number(label, tables), label, digits=0, **tables)
    _check(found, [label], **tables)


@pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")
@pytest.mark.parametrize("placed_by", ["rank", "score"])
def test_code_gives_the_value_of_a_judged_table(placed_by: str) -> None:
    tables = _tables(0, placed_by)
    judged = tables["run"].join(tables["truth"], on=["user", "item"], how="left")
    lists = judged.with_columns(pl.col("relevance").fill_null(0))
    for run in (judged, lists):  # in the second, users without a relevant item count
        found = rf.explain(_number("precision@3", {"run": run}), "precision@3", run, digits=0)
        _check(found, ["precision@3"], run=run)


@pytest.mark.parametrize(
    ("options", "rename"),
    [
        ({"users": "both", "undefined": 0}, {}),
        ({"preset": "pytrec_eval", "user": "query", "score": "s"}, {"user": "query", "score": "s"}),
        ({"preset": {"users": "judged", "defaults": {"ap@k": {"divide_by": "attainable"}}}}, {}),
        ({"weights": "weight", "average": "pooled"}, {}),
        ({"average": "part", "relevant_at": 2}, {}),
        ({"depth": 4, "unjudged": "drop", "duplicates": "first"}, {}),
        ({"user": ["user", "part"]}, {}),
    ],
)
@pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")
def test_yours_are_the_options_of_the_call(options: dict[str, Any], rename: dict[str, str]) -> None:
    label = "precision@3" if options.get("average") == "pooled" else "map@3"
    part = {"part": pl.col("user") % 2, "weight": 1 + pl.col("user")}
    tables = {
        name: table.with_columns(**part).rename(rename, strict=False)
        for name, table in _tables(1, "score").items()
    }
    tables["run"] = tables["run"].drop("weight")
    own = rf.evaluate(tables["run"], label, truth=tables["truth"], **options)[label].item()
    found = rf.explain(own, label, tables["run"], truth=tables["truth"], digits=0, **options)
    first = found.frame.row(0, named=True)
    assert (first["departures"], first[label]) == (0, pytest.approx(own, rel=1e-12))
    assert "as you compute it" in found.sentence
    _check(found, [label], **tables)


def test_kinds_of_tables_have_one_explanation() -> None:
    tables = _tables(2, "rank")
    lazy = {name: table.lazy() for name, table in tables.items()}
    pandas = {name: table.to_pandas() for name, table in tables.items()}
    found = _explained(0.5, "map@3", digits=0, **tables)
    of_lazy = rf.explain(0.5, "map@3", lazy["run"], truth=lazy["truth"], digits=0)
    assert_frame_equal(of_lazy.frame, found.frame)
    of_pandas = rf.explain(0.5, "map@3", pandas["run"], truth=pandas["truth"], digits=0)
    assert_frame_equal(of_pandas.frame.drop("call"), found.frame.drop("call"))
    _check(of_pandas, ["map@3"], **pandas)
    run = {
        user: dict(of.select("item", "score").iter_rows())
        for (user,), of in _tables(2, "score")["run"].group_by("user")
    }
    truth = {
        user: dict(of.select("item", "relevance").iter_rows())
        for (user,), of in tables["truth"].group_by("user")
    }
    _check(rf.explain(0.5, "map@3", run, truth=truth, digits=0), ["map@3"], run=run, truth=truth)
    lists = tables["run"].group_by("user", maintain_order=True).agg("item")
    of_lists = rf.explain(0.5, "map@3", lists, truth=tables["truth"], digits=0)
    _check(of_lists, ["map@3"], run=lists, truth=tables["truth"])


def test_several_numbers_are_of_one_convention() -> None:
    tables = _tables(3, "score")
    run, truth = tables["run"], tables["truth"]
    spark = rf.evaluate(run, "map@3", "rr@3", truth=truth, preset="spark").drop("users")
    numbers = {name: round(value, 4) for name, value in spark.row(0, named=True).items()}
    found = rf.explain(numbers, run, truth=truth)
    assert "Spark" in str(found.frame["preset"][0])
    assert "are explained by" in found.sentence
    assert found.frame["fits"].all()
    _check(found, [*numbers], **tables)
    other = rf.explain({"map@3": numbers["map@3"], "rr@3": 0.9999}, run, truth=truth)
    assert not other.frame["fits"].any()
    assert len(other.frame) == 3
    _check(other, [*numbers], **tables)


def test_values_per_user_name_the_users_who_differ() -> None:
    tables = _tables(4, "rank")
    run, truth = tables["run"], tables["truth"]
    values = rf.per_user(run, "map@3", "rr", truth=truth, preset="spark")
    rounded = values.with_columns(pl.col("map@3", "rr").round(4))
    found = rf.explain(rounded, run, truth=truth)
    assert "Spark" in found.frame["preset"][0]
    assert found.users is not None
    assert found.users.is_empty()
    row = found.frame.row(0, named=True)
    own = eval(row["call"], {"rf": rf, **tables})
    assert own.rename(dict(zip(own.columns, values.columns, strict=True))).equals(values)
    user = values["user"][1]
    odd = pl.when(user=user).then(0.123).otherwise("map@3").alias("map@3")
    other = rf.explain(rounded.with_columns(odd), run, truth=truth)
    assert not other.frame["fits"].any()
    assert other.users is not None
    assert other.users.select("user", "metric", "printed").row(0) == (user, "map@3", 0.123)
    assert len(other.users) == other.frame["difference"][0] == 1


def test_repeated_items_are_explained_though_yours_has_no_value() -> None:
    run = pl.DataFrame({"user": [1, 1, 1], "item": [*"aab"], "rank": [1, 2, 3]})
    truth = pl.DataFrame({"user": [1, 1], "item": [*"ab"]})
    found = rf.explain(0.8333, "map", run, truth=truth)
    assert found.frame["call"][0] == "rf.evaluate(run, 'ap', truth=truth, duplicates='occupy')"
    assert "Yours (no value)" in found.sentence


def test_a_choice_says_what_it_changes() -> None:
    tables = _tables(5, "rank")
    found = _explained(0.5, "map@3", **tables)
    plain = rf.evaluate(tables["run"], "map@3", "ap(divide_by=k)@3", truth=tables["truth"])
    single = found.choices.row(by_predicate=pl.col("words") == "divided by k", named=True)
    _, own, value = plain.row(0)
    assert single["value"] == pytest.approx(value)
    assert single["change"] == pytest.approx(value - own)


RUN = pl.DataFrame({"user": [1, 1], "item": [*"ab"], "rank": [1, 2]})
TRUTH = pl.DataFrame({"user": [1], "item": ["b"]})
VALUES = pl.DataFrame({"user": [1, 2], "rr": [0.5, 0.5]})


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((50, "rr", RUN), r"outside of its range, 0 to 1: pass 0.5, if"),
        ((-0.5, "rr", RUN), r"outside of its range, 0 to 1$"),
        ((0.5, RUN), r"explain takes a number, its label and the run"),
        (({}, RUN), r"explain takes a number, its label and the run"),
        (("0.5", "rr", RUN), r"must be finite, such as 0.3812, not '0.5'"),
        ((True, "rr", RUN), r"must be finite"),
        ((float("nan"), "rr", RUN), r"must be finite"),
        ((0.5, "rrr", RUN), r"unknown metric 'rrr'"),
        ((0.5, "ndcg@1,2", RUN), r"has several cut-offs"),
        ((0.5, rf.metrics.ndcg_at(2), RUN), r"label of a number, such as 'ndcg@10', not Expr"),
        ((0.5, "rr", RUN.with_columns(model=pl.col("item"))), r"2 systems, .* one: run.filter"),
        ((0.5, "rr", {"a": RUN, "b": RUN}), r"pass one of the dict"),
        ((VALUES.drop("rr"), RUN), r"no column 'user' of users beside one per label"),
        ((VALUES.with_columns(user=1), RUN), r"a user who comes twice"),
        ((VALUES.with_columns(rr=pl.lit("a")), RUN), r"it is String: cast it to Float64"),
        ((VALUES.rename({"rr": "gmap"}), RUN), r"'gmap' is a mean over users"),
    ],
)  # fmt: skip
def test_errors_say_a_cure(arguments: tuple[Any, ...], problem: str) -> None:
    with pytest.raises((ValueError, TypeError), match=problem):
        rf.explain(*arguments, truth=TRUTH)


def test_digits_are_those_that_were_printed() -> None:
    with pytest.raises(ValueError, match="digits must be an integer ≥ 0, not 1.5"):
        rf.explain(0.5, "rr", RUN, truth=TRUTH, digits=1.5)
    close = RUN.with_columns(rank=pl.Series([2, 3]))
    assert rf.explain(0.3, "rr", close, truth=TRUTH).frame["fits"].all()
    assert not rf.explain(0.3, "rr", close, truth=TRUTH, digits=2).frame["fits"].any()


def test_number_that_is_a_frame():
    tables = _tables(0, "rank")
    with pytest.raises(TypeError, match=r"such as 0\.3812, not DataFrame$"):
        rf.explain(tables["run"], "rr", 0.5, truth=tables["truth"])
