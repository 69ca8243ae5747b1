"""Shared data: real runs and truths with expected values, beside the checkout in CI."""

import os
from pathlib import Path

import polars as pl
import pytest
from hypothesis import settings

# elsewhere each run draws new examples; a run of CI must be repeatable
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

#: These take longest; begun first, they leave no process waiting for another at the end.
LONG = ["test_spark", "test_notebooks", "test_oracle_catalogue", "test_invariants", "test_state"]

collect_ignore = ["acme_metrics"]  # to import it registers metrics

# Java of small tables: a second compiler and several collectors take longer than they save
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

SHARED = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared() -> Path:
    if not SHARED.is_dir():
        reason = "the shared test data (../shared/data) is not beside this checkout"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return SHARED


def pytest_configure(config: pytest.Config) -> None:
    # else xdist begins with the files that have most tests, and ends with the longest
    config.option.loadscopereorder = False
    config.addinivalue_line("markers", "polars_2(why): skipped before Polars 2")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(LONG)}
    if pl.__version__.startswith("1."):
        for item in items:
            if mark := item.get_closest_marker("polars_2"):
                item.add_marker(pytest.mark.skip(reason=f"Polars 1: {mark.args[0]}"))
    # examples that register a metric come last: what others list would have it
    last = dict.fromkeys(["labels", "registration", "registry"], len(LONG) + 1)
    items.sort(key=lambda item: places.get(item.path.stem, last.get(item.path.stem, len(LONG))))
