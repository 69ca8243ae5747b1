"""``df.rank`` and ``pdf.ranking``: fresh, freed at once, signed, and sugar only."""

import gc
import importlib
import inspect
import re
import subprocess
import sys
import warnings
import weakref

import pandas
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import rankframe as rf
from rankframe._namespace import RankFrame
from rankframe._request.labels import METRICS
from rankframe._rooms import ROOMS, VERBS

TABLE = {"user": [1, 1, 2], "item": [1, 2, 1], "rank": [1, 2, 1], "relevance": [0, 1, 1]}
FRONT = """
evaluate per_user summarize compare gate report table check health judge with_rank
from_lists from_grades from_scores as_dict provenance sql explain Meter register_metric
RankingDataError metrics parts plot presets runs stats
"""
#: What TAB shows at each door, but for the metrics.
DOORS = {
    "rankframe": FRONT,
    "rankframe.metrics": "describe of_label register_column rows",
    "rankframe.stats": "at_k compare_segments conventions differences exposure funnel harm "
    "judges metric_agreement power who_gained",
    "rankframe.runs": "stack baselines fuse overlap rbo side_by_side to_judge",
    "rankframe.plot": "at_k compare exposure funnel lorenz per_user precision_recall segments "
    "trade_off trend who_gained",
    "rankframe.parts": "combine facts merge sums values",
    "rankframe.presets": "PRESETS Preset PresetName",
    "rankframe.errors": "RankingDataError RankingWarning",
    "rankframe.trec": "read_judgments read_qrels read_run scan_qrels scan_run write_qrels "
    "write_run",
    "rankframe.typing": "Explanation Frame Gain Metric Names Options Preset PresetName RankFrame "
    "Report ResultsTable Signed StatisticsOptions Users",
}
#: What TAB shows at a frame.
ON_FRAMES = """
evaluate per_user summarize compare gate report table check health judge with_rank from_lists
provenance precision_at recall_at hit_at ap_at rr_at ndcg_at plot runs stats
"""


@pytest.mark.parametrize("module", DOORS)
def test_door_shows_these_names(module):
    door = importlib.import_module(module)
    metrics = {*METRICS} if module == "rankframe.metrics" else set()
    own = {name for name in metrics if METRICS[name].__module__.startswith("rankframe.")}
    assert {*dir(door)} == {*door.__all__} == {*DOORS[module].split()} | own
    assert all(getattr(door, name) is not None for name in dir(door))
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'zyzzyva'$"):
        door.zyzzyva  # noqa: B018


@pytest.mark.parametrize(
    ("room", "name", "said"),
    [
        ("plot", "tradeoff", "; the nearest is 'trade_off'"),
        ("plot", "heatmap", ": use rf.plot.segments"),
        ("stats", "best_systems", ": use the column 'best' of rf.table(…)"),
        ("stats", "anova", ": use statsmodels' AnovaRM, as on the page of recipes"),
    ],
)
def test_room_names_what_to_take_for_a_name_that_it_lacks(room, name, said):
    for home in (rf, pl.DataFrame(TABLE).rank):
        with pytest.raises(AttributeError) as error:
            getattr(getattr(home, room), name)
        assert str(error.value).endswith(f"{name!r}{said}")


@pytest.mark.parametrize(
    ("door", "name", "said"),
    [
        ("", "power", "; it is rf.stats.power"),
        ("", "stack", "; it is rf.runs.stack"),
        ("", "describe", "; it is rf.metrics.describe"),
        ("", "ndcg_at", "; it is rf.metrics.ndcg_at"),
        ("", "trec", ": import rankframe.trec"),
        ("", "typing", ": import rankframe.typing"),
        ("", "spark", ": import rankframe.spark"),
        ("", "evalute", "; the nearest is 'evaluate'"),
        (".parts", "sum", "; the nearest is 'sums'"),
        (".trec", "read_qrel", "; the nearest is 'read_qrels'"),
    ],
)
def test_door_says_where_a_name_is_that_it_lacks(door, name, said, monkeypatch):
    home = importlib.import_module(f"rankframe{door}")
    monkeypatch.delitem(vars(home), name, raising=False)  # a room that was imported before
    with pytest.raises(AttributeError) as error:
        getattr(home, name)
    assert str(error.value) == f"module 'rankframe{door}' has no attribute {name!r}{said}"


def test_frame_shows_these_names():
    rank = pl.DataFrame(TABLE).rank
    assert {*dir(rank)} == {*ON_FRAMES.split()}
    for name in ("plot", "stats", "runs"):
        room = getattr(rank, name)
        assert {*dir(room)} == {*DOORS[f"rankframe.{name}"].split()} - {"stack"}
        assert {*dir(room)} <= {*re.findall(r"\w+", repr(room))}
        with pytest.raises(AttributeError, match=f"rankframe.{name} has no function 'evaluate'"):
            room.evaluate  # noqa: B018


@pytest.fixture
def without_gc():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("make", [pl.DataFrame, pl.LazyFrame])
def test_dropped_frame_is_freed_at_once(without_gc, make):
    kept, references = [], []
    for _ in range(3):
        frame = make(TABLE)
        kept.append(frame.rank.per_user("ap"))
        kept.append(rf.metrics.rows(frame))
        kept.append(frame.rank.precision_at(1))
        references.append(weakref.ref(frame))
        del frame
    assert [reference() for reference in references] == [None] * 3


def test_dropped_pandas_frame_is_freed_at_once(without_gc):
    import rankframe.pandas  # noqa: F401

    frame = pandas.DataFrame(TABLE)
    kept = frame.ranking.per_user("ap")
    reference = weakref.ref(frame)
    del frame
    assert reference() is None
    assert len(kept) == 2


def test_judged_plan_does_not_keep_itself(without_gc):
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
    import rankframe.pandas  # noqa: F401

    frame = pandas.DataFrame(TABLE)
    assert frame.ranking.evaluate("ap")["ap"].item() == 0.75
    frame["relevance"] = [1, 0, 1]
    assert frame.ranking.evaluate("ap")["ap"].item() == 1
    frame.loc[len(frame)] = [3, 1, 9, 1]
    assert frame.ranking.evaluate("ap")["ap"].item() == pytest.approx((1 + 1 + 1 / 9) / 3)


def test_verbs_and_metrics_are_methods():
    named = {name for name in vars(RankFrame) if not name.startswith("_")}
    assert named == {*VERBS, *METRICS, *ROOMS}


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_signature_of_a_verb_is_that_of_its_function(room):
    home, rank = rf, pl.DataFrame(TABLE).rank
    if room:
        home, rank = getattr(rf, room), getattr(rank, room)
    for verb in ROOMS[room] if room else VERBS:
        function, method = getattr(home, verb), getattr(rank, verb)
        _, *expected = inspect.signature(function).parameters.values()
        assert [*inspect.signature(method).parameters.values()] == expected, verb
        assert inspect.getdoc(method) == inspect.getdoc(function), verb


def test_types_of_methods_are_those_of_functions():
    from stub import stubs

    for path, text in stubs():
        assert path.read_text() == text, "run python -m tests.stub"


def test_signature_of_a_metric_is_its_own_and_that_of_per_user():
    shared = list(inspect.signature(rf.per_user).parameters.values())[2:]
    for metric in METRICS:
        own = list(inspect.signature(getattr(rf.metrics, metric)).parameters.values())
        _, *got = inspect.signature(getattr(RankFrame, metric)).parameters.values()
        assert sorted(map(str, got)) == sorted(map(str, [*own, *shared])), metric
        first, _, rest = inspect.getdoc(getattr(rf.metrics, metric)).partition("\n")
        documented = inspect.getdoc(getattr(RankFrame, metric))
        said = f"{first}\n\nAs a method it returns the frame of ``per_user``"
        assert documented.startswith(said), metric
        assert documented.endswith(rest), metric


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


def test_class_returns_the_namespace():
    assert pl.DataFrame.rank is RankFrame
    assert pl.LazyFrame.rank is RankFrame


@pytest.mark.parametrize("frame", [pl.DataFrame(TABLE), pl.LazyFrame(TABLE)])
def test_ranking_is_rank_so_code_is_that_of_pandas(frame):
    assert type(frame).ranking is type(frame).rank
    assert_frame_equal(frame.ranking.evaluate("ap"), frame.rank.evaluate("ap"))


@pytest.mark.parametrize("module", ["rankframe", "rankframe._namespace", "rankframe.pandas"])
def test_reloading_works(module):
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


def test_polars_with_a_rank_of_its_own_is_left_alone():
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
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        importlib.reload(importlib.import_module("rankframe.pandas"))
    frame = pandas.DataFrame({"x": [3.0, 1.0]})
    assert frame.rank()["x"].to_list() == [2.0, 1.0]
    assert pandas.DataFrame.ranking is RankFrame
    assert "ranking" in dir(frame)
