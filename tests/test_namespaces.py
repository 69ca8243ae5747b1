"""``df.rank`` and ``pdf.ranking``: fresh, freed at once, signed, and sugar only."""

import gc
import importlib
import inspect
import subprocess
import sys
import warnings
import weakref

import polars as pl
import pytest

import rankframe as rf
from rankframe._namespace import RankFrame, RankPlot
from rankframe._request.labels import METRICS

TABLE = {"user": [1, 1, 2], "item": [1, 2, 1], "rank": [1, 2, 1], "relevance": [0, 1, 1]}
VERBS = ["judge", "with_rank", "relevant", "from_lists", "check", "health", "per_user", "evaluate"]
VERBS += [
    "lists",
    "at_k",
    "summarize",
    "compare",
    "compare_segments",
    "diagnose",
    "power",
    "summarize_values",
    "compare_values",
    "overlap",
    "rbo",
    "fuse",
    "listed",
    "shares",
    "anova",
    "best_systems",
    "letters",
    "agreement",
    "discriminative_power",
    "provenance",
    "report",
    "table",
    "gate",
    "harm",
]


@pytest.fixture
def without_gc():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("make", [pl.DataFrame, pl.LazyFrame])
def test_a_dropped_frame_is_freed_at_once(without_gc, make):
    kept, references = [], []
    for _ in range(50):
        frame = make(TABLE)
        kept.append(frame.rank.per_user("ap"))
        kept.append(frame.rank.relevant())
        kept.append(frame.rank.precision_at(1))
        references.append(weakref.ref(frame))
        del frame
    assert [reference() for reference in references] == [None] * 50


def test_a_dropped_pandas_frame_is_freed_at_once(without_gc):
    pandas = pytest.importorskip("pandas")
    import rankframe.pandas  # noqa: F401

    frame = pandas.DataFrame(TABLE)
    kept = frame.ranking.per_user("ap")
    reference = weakref.ref(frame)
    del frame
    assert reference() is None
    assert len(kept) == 2


def test_a_judged_plan_does_not_keep_itself(without_gc):
    run = pl.LazyFrame(TABLE).drop("relevance")
    judged = run.rank.judge(pl.DataFrame({"user": [1], "item": [2]}))
    kept = judged.rank.evaluate("ap", users="truth")
    reference = weakref.ref(judged)
    del judged
    assert reference() is None
    assert kept.collect()["ap"].item() == 0.5


def ap(frame):
    return frame.rank.evaluate("ap", users="truth")["ap"].item()


def test_changes_in_place_are_seen():
    frame = pl.DataFrame(TABLE)
    assert ap(frame) == 0.75
    frame.extend(pl.DataFrame({"user": [3], "item": [1], "rank": [None], "relevance": [1]}))
    assert ap(frame) == 0.5
    frame.replace_column(3, pl.Series("relevance", [1, 0, 0, 1]))
    assert ap(frame) == 0.5
    frame[["rank", "relevance"]] = [[1, 1], [2, 0], [1, 1], [1, 1]]
    assert ap(frame) == 1
    frame.drop_in_place("rank")
    frame.insert_column(3, pl.Series("rank", [2, 1, 1, 1]))
    assert ap(frame) == pytest.approx(2.5 / 3)


def test_changes_in_place_are_seen_in_pandas():
    pandas = pytest.importorskip("pandas")
    import rankframe.pandas  # noqa: F401

    frame = pandas.DataFrame(TABLE)
    assert frame.ranking.evaluate("ap")["ap"].item() == 0.75
    frame["relevance"] = [1, 0, 1]
    assert frame.ranking.evaluate("ap")["ap"].item() == 1
    frame.loc[len(frame)] = [3, 1, 9, 1]
    assert frame.ranking.evaluate("ap")["ap"].item() == pytest.approx((1 + 1 + 1 / 9) / 3)


def test_every_function_and_metric_is_a_method():
    named = {name for name in vars(RankFrame) if not name.startswith("_")}
    assert named == {*VERBS, *METRICS, "plot"}
    own = dir(pl.DataFrame(TABLE).rank)
    assert {*VERBS, *METRICS} <= set(own)


@pytest.mark.parametrize("verb", VERBS)
def test_the_signature_of_a_verb_is_that_of_its_function(verb):
    function, method = getattr(rf, verb), getattr(RankFrame, verb)
    _, *expected = inspect.signature(function).parameters.values()
    _, *got = inspect.signature(method).parameters.values()
    assert got == expected
    assert (
        inspect.signature(getattr(pl.DataFrame(TABLE).rank, verb)).parameters.keys()
        == {parameter.name: None for parameter in expected}.keys()
    )
    assert inspect.getdoc(method) == inspect.getdoc(function)


def test_the_types_of_methods_are_those_of_functions():
    from stub import STUB, stub

    assert STUB.read_text() == stub(), "run python -m tests.stub"


def test_every_chart_is_a_method_signed_as_its_function():
    charts = ["at_k", "precision_recall", "users", "compare", "change", "heatmap"]
    charts += ["shares", "trade_off", "lorenz", "critical_difference", "agreement", "trend"]
    made_here = {
        name
        for name, value in vars(rf.plot).items()
        if inspect.isfunction(value)
        and value.__module__.startswith("rankframe.plot")
        and name[0] != "_"
    }
    assert made_here == set(charts)
    assert {name for name in vars(RankPlot) if not name.startswith("_")} == set(charts)
    for name in charts:
        function, method = getattr(rf.plot, name), getattr(RankPlot, name)
        _, *expected = inspect.signature(function).parameters.values()
        _, *got = inspect.signature(method).parameters.values()
        assert got == expected
        assert inspect.getdoc(method) == inspect.getdoc(function)


@pytest.mark.parametrize("metric", METRICS)
def test_the_signature_of_a_metric_is_its_own_and_that_of_per_user(metric):
    own = list(inspect.signature(getattr(rf, metric)).parameters.values())
    shared = list(inspect.signature(rf.per_user).parameters.values())[2:]
    _, *got = inspect.signature(getattr(RankFrame, metric)).parameters.values()
    assert sorted(map(str, got)) == sorted(map(str, [*own, *shared]))
    first, _, rest = inspect.getdoc(getattr(rf, metric)).partition("\n")
    documented = inspect.getdoc(getattr(RankFrame, metric))
    assert documented.startswith(f"{first}\n\nAs a method it returns the frame of ``per_user``")
    assert documented.endswith(rest)


def test_help_shows_the_signature(capsys):
    help(pl.DataFrame(TABLE).rank.precision_at)
    shown = " ".join(capsys.readouterr().out.split())  # 3.13 breaks long signatures
    assert "k: int | None = None, *, divide_by: Literal[" in shown
    assert "hits@k / k" in shown


def test_options_of_a_metric_and_of_per_user_go_together():
    run = pl.DataFrame(TABLE).drop("relevance").rename({"user": "uid"})
    truth = pl.DataFrame({"uid": [1, 3], "item": [2, 2]})
    got = run.rank.precision_at(5, divide_by="returned", truth=truth, user="uid", users="both")
    assert got.rows() == [(1, 0.5)]
    assert got.columns == ["uid", "precision(divide_by=returned)@5"]
    assert run.rank.f_at(5, 2, truth=truth, user="uid").columns == ["uid", "f(beta=2)@5"]
    with pytest.raises(
        TypeError, match="precision_at has no keyword 'devide_by'; the nearest is 'divide_by'"
    ):
        run.rank.precision_at(5, devide_by="returned", truth=truth)


def test_the_class_returns_the_namespace():
    assert pl.DataFrame.rank is RankFrame
    assert pl.LazyFrame.rank is RankFrame


@pytest.mark.parametrize("module", ["rankframe", "rankframe._namespace", "rankframe.pandas"])
def test_reloading_works(module):
    if module == "rankframe.pandas":
        pytest.importorskip("pandas")
    code = f"""
import importlib, warnings
warnings.simplefilter("error")
import polars as pl, rankframe, {module}
frame = pl.DataFrame({TABLE})
frame.rank
importlib.reload({module})
importlib.reload(rankframe)
assert frame.rank.evaluate("ap")["ap"].item() == 0.75
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_polars_with_a_rank_of_its_own_is_left_alone():
    code = f"""
import warnings
import polars as pl
pl.DataFrame.rank = lambda self: "theirs"
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import rankframe as rf
assert "df.rank is not available" in str(caught[0].message), caught
frame = pl.DataFrame({TABLE})
assert frame.rank() == "theirs"
assert rf.evaluate(frame, "ap")["ap"].item() == 0.75
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_rank_of_pandas_is_unharmed():
    pandas = pytest.importorskip("pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        importlib.reload(importlib.import_module("rankframe.pandas"))
    frame = pandas.DataFrame({"x": [3.0, 1.0]})
    assert frame.rank()["x"].to_list() == [2.0, 1.0]
    assert pandas.DataFrame.ranking is RankFrame
    assert "ranking" in dir(frame)
