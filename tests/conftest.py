"""Shared data: real runs and truths with expected values, beside the checkout or not there."""

import gc
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import workers  # noqa: F401  # isort: skip  (before Polars)
import polars as pl
import pytest
import reference
import refusals
import requirements
from hypothesis import settings
from refusals import refused  # noqa: F401

# elsewhere each run draws new examples; a run of CI must be repeatable; a slow machine is no error
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("new examples", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "new examples")

#: These take longest; begun first, they leave no process waiting for another at the end.
LONG = ["test_spark", "test_notebooks", "test_oracle_catalogue", "test_invariants", "test_state"]

collect_ignore = ["acme_metrics"]  # to import it registers metrics

# Java of small tables: a second compiler and several collectors take longer than they save
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

SHARED = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared() -> Path:
    if not SHARED.is_dir():
        requirements.lacking("the shared test data (../shared/data) is not beside this checkout")
    return SHARED


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "run all combinations of parameters, not only each value once, and all long tests"
    parser.addoption("--thorough", action="store_true", help=text)
    parser.addoption("--golden", action="store_true", help="write the errors of a room again")


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # thousands of cases are made, and all are kept: a tenth of the time
    config.option.thorough |= config.option.golden
    reference.thorough = config.getoption("--thorough")
    # else xdist begins with the files that have most tests, and ends with the longest
    config.option.loadscopereorder = False
    config.addinivalue_line("markers", "polars_2(why): skipped before Polars 2")
    config.addinivalue_line("markers", "thorough: run only with --thorough")
    config.addinivalue_line("markers", "sample(n): each n-th case is run, with --thorough all are")


def pytest_collection_finish() -> None:
    gc.freeze()  # cases stay to the end: else each full collection goes through all of them
    gc.enable()


def pytest_sessionfinish() -> None:
    refusals.write()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--thorough"):
        kept = {item.nodeid for item in _fast_tier(items)}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
        items[:] = [item for item in items if item.nodeid in kept]
    for item in items:
        if item.path.stem in {"registration", "registry"}:  # fixtures of tests/ do not reach src/
            item.runtest = partial(_without_traces, item.runtest)
        if isinstance(item, pytest.Function) and item.path.stem != "test_pages":
            # the subject of tests is another; pages and docstrings show no such mean
            item.add_marker(pytest.mark.filterwarnings("ignore:means leave out users"))
            item.add_marker(pytest.mark.filterwarnings("ignore:metric 'abstention_recall' is null"))
    places = {name: place for place, name in enumerate(LONG)}
    if pl.__version__.startswith("1."):
        for item in items:
            if mark := item.get_closest_marker("polars_2"):
                item.add_marker(pytest.mark.skip(reason=f"Polars 1: {mark.args[0]}"))
    items.sort(key=lambda item: places.get(item.path.stem, len(LONG)))


def _without_traces(run: Callable[[], None]) -> None:
    """Run an example that registers a metric, which others would list."""
    import extension

    with extension.unchanged_registry():
        run()


def _fast_tier(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not item.get_closest_marker("thorough"):
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in functions.values():
        sample = cases[0].get_closest_marker("sample")
        yield from _each_value_once(cases[:: sample.args[0]] if sample else cases)


def _each_value_once(cases: list[pytest.Item]) -> Iterator[pytest.Item]:
    values = {case: _values(case) for case in cases}
    seen: set[object] = set()
    # cases that are new in all parameters come first: else one value would meet all of another
    for share in (all, any):
        for case, own in values.items():
            if share(value not in seen for value in own):
                seen |= own
                yield case


def _values(case: pytest.Item) -> set[object]:
    """The values of each ``parametrize`` and fixture; those of one ``parametrize`` go together."""
    params = case.callspec.params if hasattr(case, "callspec") else {}
    axes: list[tuple[str, ...]] = []
    for mark in case.iter_markers("parametrize"):
        names = mark.args[0]
        axes.append(tuple(re.split(r",\s*", names)) if isinstance(names, str) else tuple(names))
    axes += [(name,) for name in params.keys() - {name for axis in axes for name in axis}]
    return {(*axis, *(id(params[name]) for name in axis)) for axis in axes} or {case}
