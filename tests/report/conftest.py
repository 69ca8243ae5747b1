"""The browser that opens reports."""

import shutil

import pytest
import requirements


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "chrome"])), None)
    if found is None:
        requirements.lacking("there is no Chromium: apt-get install chromium")
    return found
