"""Names that the examples in docstrings may use."""

import polars as pl
import pytest

import rankframe as rf


@pytest.fixture(autouse=True)
def _names(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace.update(pl=pl, rf=rf)
