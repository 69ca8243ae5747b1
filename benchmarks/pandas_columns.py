"""What the types of pandas columns cost: ``python -m benchmarks.pandas_columns``.

Five metrics on shape (c), 1 M rows: pandas frames in, a pandas frame out, against Polars frames of
the same values, in turn and in one process.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pandas as pd
import polars as pl

import rankframe as rf
from benchmarks import report
from benchmarks.ratios import load
from benchmarks.suites import FIVE
from benchmarks.timing import alternate

ROUNDS = 9
TYPES = {
    "integer": ("int64", "Int64", "int64[pyarrow]"),
    "string": ("str", "string[python]", "string[pyarrow]", "category"),
}


def frames(
    ids: str,
) -> Iterator[tuple[str, pl.DataFrame, pl.DataFrame, pd.DataFrame, pd.DataFrame]]:
    """Give the tables with the columns user and item of each type, in Polars and in pandas."""
    tables = load("c", "integer" if ids == "integer" else "string", small=False)
    run, truth = tables.run, tables.truth
    pandas_run, pandas_truth = run.to_pandas(), truth.to_pandas()
    for name in TYPES[ids]:
        types = {"user": name, "item": name}
        if name == "category":  # of all users and items, as frames of one source have them
            both = (pd.concat([pandas_run[c], pandas_truth[c]]) for c in types)
            kinds = [pd.CategoricalDtype(sorted(column.unique())) for column in both]
            types = dict(zip(types, kinds, strict=True))
        yield name, run, truth, pandas_run.astype(types), pandas_truth.astype(types)


def main() -> None:
    """Measure and print."""
    rows = []
    for ids in TYPES:
        for name, run, truth, pandas_run, pandas_truth in frames(ids):
            polars = partial(rf.evaluate, run, *FIVE, truth=truth)
            pandas = partial(rf.evaluate, pandas_run, *FIVE, truth=pandas_truth)
            assert pl.from_pandas(pandas()).equals(polars()), name
            baseline, candidate = alternate(polars, pandas, ROUNDS)
            rows.append(
                {
                    "user and item": name,
                    "Polars, ms": round(baseline * 1e3, 1),
                    "pandas, ms": round(candidate * 1e3, 1),
                    "ratio": f"{candidate / baseline:.2f}",
                }
            )
            print(*rows[-1].values(), sep="\t", flush=True)
    table = report.markdown(pl.DataFrame(rows))
    report.fill(Path(__file__).parent / "README.md", "pandas", table)


if __name__ == "__main__":
    main()
