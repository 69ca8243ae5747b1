"""Odd input: the value or the message, the same on every engine and in pandas."""

import re
from contextlib import nullcontext

import odd_input
import polars as pl
import pytest
from every_metric import FEW, OF_TIER, RANGES

import rankframe as rf
import rankframe.pandas

CASES = [case for listed in odd_input.cases().values() for case in listed]
NUMBERS = [case for case in CASES if not isinstance(case.gives, str)]
KINDS = ["eager", "streaming", "in-memory", "pandas"]


def given(frame, kind):
    if kind == "pandas":
        return frame.to_pandas()
    return frame if kind == "eager" else frame.lazy()


def means(run, truth, metrics, options, kind="eager"):
    """Give the means of a call, without the columns beside them."""
    result = rf.evaluate(run, *metrics, truth=truth, **options)
    if kind in ("streaming", "in-memory"):
        result = result.collect(engine=kind)
    if kind == "pandas":
        result = pl.from_pandas(result)
    assert result.height == 1
    return list(result.select(*metrics).row(0))


def assert_gives(expected, call):
    if isinstance(expected, str):
        with pytest.raises((rf.RankingDataError, ValueError)) as error:
            call()
        assert type(error.value) in (rf.RankingDataError, ValueError)
        said, _, _ = str(error.value).partition(" (Could not convert")  # the rest is pyarrow's
        assert said == expected
    else:
        found = call()
        nulls = [value is None for value in expected]
        assert [value is None for value in found] == nulls
        assert [v for v in found if v is not None] == pytest.approx(
            [v for v in expected if v is not None], rel=1e-12, abs=1e-15
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_odd_input(case, kind):
    run, truth = given(case.run, kind), given(case.truth, kind)
    expected = case.gives
    if kind == "pandas" and case.in_pandas is not None:
        expected = case.in_pandas
    if isinstance(expected, str):
        expected = odd_input.said_in(kind, expected)
    said = pytest.warns(rf.errors.RankingWarning, match="no item of the run is in the truth")
    with said if case.remark == odd_input.NOTHING_MET else nullcontext():
        assert_gives(expected, lambda: means(run, truth, case.metrics, case.options, kind))


@pytest.mark.parametrize("case", odd_input.pandas_cases(), ids=lambda case: case.name)
def test_odd_pandas(case):
    truth = odd_input.TRUTH.to_pandas() if case.truth is None else case.truth
    assert_gives(case.gives, lambda: means(case.run, truth, odd_input.METRICS, {}, "pandas"))


@pytest.mark.parametrize("kind", ["clone", "lazy", "to_pandas"])
@pytest.mark.parametrize("place", range(len(odd_input.refusals())))
def test_parts_meters_and_trackers_refuse(kind, place):
    case = odd_input.refusals(getattr(pl.DataFrame, kind))[place]
    with pytest.raises((rf.RankingDataError, ValueError, TypeError)) as error:
        result = case.call()
        if isinstance(result, pl.LazyFrame):  # it raises when it is collected
            result.collect()
    assert type(error.value) in (rf.RankingDataError, ValueError, TypeError)
    assert str(error.value) == case.says


@pytest.mark.parametrize("case", odd_input.doors(), ids=lambda case: case.name)
def test_calls_are_refused_before_a_row_is_read(case):
    with pytest.raises((rf.RankingDataError, ValueError, TypeError)) as error:
        case.call()
    assert type(error.value) in (rf.RankingDataError, ValueError, TypeError)
    assert str(error.value) == case.says


PLAIN_METRICS = {label: expr for label, expr in OF_TIER.items() if "(" not in label}
REFUSED = ("duplicate", "at the same rank", "10^15")  # some count these rows, or overflow


def stacks():
    """Put cases whose tables have the same types and the same top grade into one call."""
    found = {}
    for section, listed in odd_input.cases().items():
        for case in listed:
            if isinstance(case.gives, str) or any(text in case.name for text in REFUSED):
                continue
            grade = case.truth["relevance"].max() if "relevance" in case.truth.columns else 1
            types = str(case.run.schema), str(case.truth.schema)
            found.setdefault((section == "Ids", types, str(grade)), []).append(case)
    return [pytest.param(those, of_ids, id=those[0].name) for (of_ids, *_), those in found.items()]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("cases", "of_ids"), stacks())
def test_metrics_stay_in_their_range(cases, of_ids):
    run, truth = (
        pl.concat([getattr(case, side).with_columns(case=pl.lit(case.name)) for case in cases])
        for side in ("run", "truth")
    )
    # the formulas do not see the ids
    asked = [label for label in PLAIN_METRICS if label in FEW or not of_ids]
    assert len(asked) > 50
    values = rf.evaluate(run, *asked, truth=truth, by="case")
    assert values.height == len(cases)
    for label in asked:
        assert values[label].drop_nulls().is_between(*RANGES[label]).all(), label


@pytest.mark.parametrize(
    "case",
    [case for case in NUMBERS if any(text in case.name for text in REFUSED)],
    ids=lambda case: case.name,
)
def test_inputs_are_refused_by_some_metric(case):
    with pytest.raises(rf.RankingDataError, match="duplicate|same rank|not a finite number"):
        rf.evaluate(case.run, *PLAIN_METRICS.values(), truth=case.truth)


def test_check_sees_what_is_left_to_it():
    found = [case for case in CASES if "`check`" in case.name]
    assert len(found) == 3
    for case in found:
        with pytest.raises(rf.RankingDataError, match="duplicate|have the same rank"):
            rf.check(case.run, truth=case.truth)


def test_file_that_has_vanished(tmp_path):
    path = tmp_path / "run.parquet"
    odd_input.RUN.write_parquet(path)
    scanned = pl.scan_parquet(path)
    planned = rf.evaluate(scanned, "map", truth=odd_input.TRUTH)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"run\.parquet"):
        planned.collect()
    with pytest.raises(FileNotFoundError, match=r"run\.parquet"):
        rf.evaluate(pl.scan_parquet(path), "map", truth=odd_input.TRUTH)


def test_page_is_current():
    assert odd_input.PAGE.read_text() == odd_input.page()
    assert not re.search(r"`\?", odd_input.page())
