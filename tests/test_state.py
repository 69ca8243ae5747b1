"""Any frame into any verb: the right kind of answer, or an error in our words.

Draws as many rounds in CI as RANKFRAME_STATE_ROUNDS says (2), and else for as many seconds as
RANKFRAME_STATE_SECONDS says (5). Each round is a hundred examples, the same ones for its number.
"""

import itertools
import os
import re
import time
import traceback
from math import inf
from pathlib import Path

import kinds
import polars as pl
import pytest
import reference
from every_metric import LABELS, RANGES, SPECIAL_MEANS
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from polars.testing.parametric import column, dataframes, dtypes

import rankframe as rf
import rankframe.pandas

#: Drawn tables may have nothing in common, or no relevant item: warnings, which others test.
pytestmark = pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")

ROUNDS = int(os.environ.get("RANKFRAME_STATE_ROUNDS", 2 if os.environ.get("CI") else 0))
SECONDS = float(os.environ.get("RANKFRAME_STATE_SECONDS", 5))
PACKAGE = Path(rf.__file__).parent

# what a caller would pass, each now and then replaced by any column of any type
small = st.integers(0, 4)
numbers = st.one_of(small, st.integers(-2, 9), st.sampled_from([2**31, 2**62]))
floats = st.one_of(small.map(float), st.floats(width=64), st.floats(-1, 1))
texts = st.sampled_from(["", "a", "b", "é", "日本"])
SANE = {
    "user": [(pl.Int64, small), (pl.String, texts)],
    "item": [(pl.Int64, small), (pl.String, texts)],
    "rank": [(pl.Int64, st.integers(1, 6)), (pl.Int64, numbers), (pl.Float64, floats)],
    "score": [(pl.Float64, st.floats(-1, 1)), (pl.Float64, floats), (pl.Int64, numbers)],
    "relevance": [(pl.Int64, st.integers(-1, 3)), (pl.Float64, floats), (pl.Boolean, None)],
    "subtopic": [(pl.Int64, small)],
    "model": [(pl.String, st.sampled_from("ab")), (pl.Int64, small)],
}


@st.composite
def tables(draw, roles, ids):
    """Draw a frame with these columns, most of them of a type that fits."""
    columns = []
    for role in roles:
        odd = draw(st.integers(0, 24)) == 0
        null = draw(st.integers(0, 9)) == 0
        if odd:
            columns.append(column(role, dtype=draw(dtypes(nesting_level=1)), allow_null=null))
            continue
        dtype, values = ids.get(role) or draw(st.sampled_from(SANE[role]))
        columns.append(column(role, dtype=dtype, strategy=values, allow_null=null))
    least = draw(st.sampled_from([0, 1, 4, 8]))
    frame = draw(dataframes(columns, min_size=least, max_size=12, allow_chunks=True))
    keys = [name for name in ("model", "user", "item", "subtopic") if name in frame.columns]
    if draw(st.integers(0, 3)) and keys:  # else most frames end at the same rule
        try:
            frame = frame.unique(keys, maintain_order=True)
            if "rank" in frame.columns and "user" in frame.columns:
                lists = [name for name in ("model", "user") if name in frame.columns]
                places = pl.int_range(1, pl.len() + 1).over(lists)
                if draw(st.booleans()):  # else with gaps, or as drawn
                    frame = frame.with_columns(rank=places * draw(st.sampled_from([1, 1, 4])))
        except (pl.exceptions.PolarsError, TypeError):
            pass  # lists and the like have no order
    return frame


def some(draw, options):
    """Draw a few of these keywords."""
    names = draw(st.lists(st.sampled_from(sorted(options)), max_size=3, unique=True))
    return {name: draw(options[name]) for name in names}


OPTIONS = {
    "users": st.sampled_from(["truth", "judged", "both", "run", "all", "none"]),
    "undefined": st.sampled_from([None, 0.0, 1, -1.0, float("nan"), "x"]),
    "relevant_at": st.sampled_from([None, 1, 2, 0.5, 0, -1, "x"]),
    "unjudged": st.sampled_from(["miss", "drop"]),
    "depth": st.sampled_from([None, 1, 2, 10**12, 0, 2.5]),
    "preset": st.sampled_from([None, "trec_eval_9", "spark", {"single_precision": True}, "x"]),
}
BOUNDS = {"unjudged": st.sampled_from(["miss", "drop", "bounds", "x"])}
metrics = st.lists(st.sampled_from([*LABELS, *SPECIAL_MEANS]), min_size=1, max_size=4)


OF_SYSTEMS = ("compare", "differences", "who_gained", "power")


@st.composite
def calls(draw):
    """Draw a verb, its frames and its options."""
    verb = draw(st.sampled_from(sorted(VERBS)))
    by = draw(st.sampled_from([(), (), "model"]))
    by = "model" if verb in OF_SYSTEMS else by
    keys = ["model", "user", "item"] if by else ["user", "item"]
    placing = draw(st.sampled_from([["rank"], ["score"], ["rank", "score"]]))
    if verb in ("with_rank", "expected"):
        placing = ["score"]
    ids = {role: draw(st.sampled_from(SANE[role])) for role in ("user", "item", "model")}
    run = draw(tables([*keys, *placing], ids))
    also = draw(st.sampled_from([["relevance"], ["relevance"], [], ["relevance", "subtopic"]]))
    truth = draw(tables(["user", "item", *also], ids))
    judged = draw(tables([*keys, *placing, "relevance"], ids))
    asked = draw(metrics)
    kind = draw(st.sampled_from(["eager", "lazy", "pandas"]))
    return verb, run, truth, judged, asked, by, draw(st.booleans()), kind, draw(st.data())


def over(verb, more):
    """Give a call of a verb that takes a run with a truth, or a judged table."""

    def call(run, truth, judged, asked, by, two, data):
        options = some(data.draw, {**OPTIONS, **more})
        frame = run if two else judged
        given_truth = {"truth": truth} if two else {}
        return getattr(rf if verb in dir(rf) else rf.stats, verb)(
            frame, *asked, by=by, **given_truth, **options
        )

    return call


COMPARE = {
    "test": st.sampled_from(["t", "randomization", "sequential", "max_t", "x"]),
    "correction": st.sampled_from(["holm", "bh", None, "x"]),
    "confidence": st.sampled_from([0.95, 0.5, 1, 0]),
    "resamples": st.sampled_from([20, 0]),
    "baseline": st.sampled_from([None, "a", "b", 1, "c"]),
    "margin": st.sampled_from([None, 0.1, {"rr": 0.1}, 0, "x"]),
}
POWER = {
    "power": st.sampled_from([0.8, 0.99, 0.01, 0, "x"]),
    "confidence": st.sampled_from([0.95, 0.5, 1, 0]),
    "difference": st.sampled_from([None, 0.01, 1e-9, "1%", {"rr": 0.1}, 0, "x"]),
    "baseline": st.sampled_from([None, "a", "b", 1, "c"]),
}
SUMMARIZE = {
    "method": st.sampled_from(["t", "auto", "x"]),
    "confidence": st.sampled_from([0.95, 0.5, 1, 0]),
    "resamples": st.sampled_from([20, 0]),
}
VERBS = {
    "per_user": over("per_user", BOUNDS),
    "evaluate": over("evaluate", {**BOUNDS, "total": st.booleans()}),
    "summarize": over("summarize", SUMMARIZE),
    "compare": over("compare", COMPARE),
    "power": over("power", POWER),
    "who_gained": lambda run, truth, judged, asked, by, two, data: rf.stats.who_gained(
        run, data.draw(st.sampled_from([1, 3, 0])), truth=truth, baseline="a"
    ),
    "differences": lambda run, truth, judged, asked, by, two, data: rf.stats.differences(
        run, asked[0], truth=truth, baseline="a", n=data.draw(st.sampled_from([None, 1, 0]))
    ),
    "judge": lambda run, truth, judged, asked, by, two, data: rf.judge(run, truth, by=by),
    "relevant": lambda run, truth, judged, asked, by, two, data: rf.metrics.rows(
        judged, *(asked if two else ()), by=by
    ),
    "check": lambda run, truth, judged, asked, by, two, data: (
        rf.check(run, truth=truth, by=by) if two else rf.check(judged, by=by)
    ),
    "health": lambda run, truth, judged, asked, by, two, data: (
        rf.health(run, truth=truth, by=by) if two else rf.health(judged, by=by)
    ),
    "side_by_side": lambda run, truth, judged, asked, by, two, data: rf.runs.side_by_side(
        run if two else judged,
        data.draw(st.sampled_from([1, 2, "1"])),
        truth=truth if two else None,
        by=by,
    ),
    "with_rank": lambda run, truth, judged, asked, by, two, data: rf.with_rank(
        run,
        by=by,
        descending=data.draw(st.booleans()),
        ties=data.draw(st.sampled_from(["item", "order", "expected", "x"])),
    ),
    "with_rank by grade": lambda run, truth, judged, asked, by, two, data: rf.with_rank(
        run if two else judged,
        by=by,
        ties=data.draw(st.sampled_from(["pessimistic", "optimistic"])),
        truth=truth if two else None,
    ),
    "expected": lambda run, truth, judged, asked, by, two, data: rf.per_user(
        rf.with_rank(run, by=by, ties="expected"), *asked, truth=truth, by=by
    ),
    "rbo": lambda run, truth, judged, asked, by, two, data: rf.runs.rbo(
        run, judged_run(judged), by=by
    ),
}


def judged_run(judged):
    """Take the truth's part off a judged table."""
    if isinstance(judged, (pl.DataFrame, pl.LazyFrame)):
        return judged.drop("relevance")
    return judged.drop(columns="relevance")


def in_our_words(error):
    """Tell if an error was raised by a line of ours."""
    if not isinstance(error, (rf.RankingDataError, ValueError, TypeError)):
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    return Path(last.filename).is_relative_to(PACKAGE)


def assert_in_range(result, asked, slack):
    """Check that shares are between 0 and 1, and nothing is NaN or infinite."""
    for label in asked:
        if label not in result.columns or not result[label].dtype.is_numeric():
            continue
        values = result[label].drop_nulls()
        assert values.is_finite().all(), (label, values)
        plain = re.sub("_(low|high)$", "", label)
        least, greatest = RANGES.get(plain, (0, inf))  # others are means over users
        assert values.is_between(least - slack, greatest + slack).all(), (label, values)


@settings(
    max_examples=reference.drawn(100),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(calls())
def one_round(drawn):
    verb, run, truth, judged, asked, by, two, kind, data = drawn
    try:
        frames = [kinds.given(frame, kind) for frame in (run, truth, judged)]
    except Exception:  # noqa: BLE001  (pandas and pyarrow lack types; that is not ours)
        return
    try:
        result = VERBS[verb](*frames, asked, by, two, data)
        if isinstance(result, pl.LazyFrame):
            result = result.collect(engine=data.draw(st.sampled_from(["streaming", "in-memory"])))
    except Exception as error:
        if in_our_words(error):
            return
        raise
    result = result if isinstance(result, pl.DataFrame) else pl.from_pandas(result)
    if verb in ("per_user", "evaluate", "expected"):
        # expectations under ties are sums that round
        assert_in_range(result, asked, slack=1e-12 if verb == "expected" else 0)


def test_verbs_take_any_frame():
    end = time.monotonic() + SECONDS
    for number in itertools.count(1):
        seed(number)(one_round)()
        if number == ROUNDS or (not ROUNDS and time.monotonic() > end):
            break
