"""Shared data: real runs and truths with expected values, beside the checkout in CI."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# elsewhere each run draws new examples; a run of CI must be repeatable
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

SHARED = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared() -> Path:
    if not SHARED.is_dir():
        reason = "the shared test data (../shared/data) is not beside this checkout"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return SHARED
