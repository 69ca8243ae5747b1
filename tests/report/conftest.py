"""Reports that several modules read, made once per process."""

import pytest

from tests.report import samples


@pytest.fixture(scope="session")
def report():
    return samples.report()


@pytest.fixture(scope="session")
def hostile():
    return samples.hostile()


@pytest.fixture(scope="session")
def explored():
    return samples.explored()
