"""The recipes of the page on parts that need other engines."""

import re
from pathlib import Path

import dask
import dask.dataframe as dd
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from two_models import RUN, TRUTH

import rankframe as rf

PAGE = Path(__file__).parents[1] / "notebooks" / "parts.md"
BLOCKS = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
EXPECTED = rf.evaluate(RUN, "ndcg@10", truth=TRUTH, by="model")


@pytest.fixture
def parts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, table in {"run": RUN, "truth": TRUTH}.items():
        for (part,), rows in table.group_by(pl.col("user") % 8):
            (tmp_path / name / f"part={part}").mkdir(parents=True)
            rows.write_parquet(tmp_path / name / f"part={part}" / "0.parquet")


def test_process_sums_a_part(parts):
    (block,) = (block for block in BLOCKS if "def sums_of" in block)
    names = {"pl": pl, "rf": rf}
    exec(block.partition("\n\n\n")[0], names)
    facts = rf.parts.facts(RUN, truth=TRUTH, by="model")
    small = [names["sums_of"](part, facts) for part in range(8)]
    assert_frame_equal(rf.parts.combine(small), EXPECTED)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's, of pandas
def test_dask_shuffles_by_user(parts):
    (block,) = (block for block in BLOCKS if "shuffle" in block)
    names = {"dd": dd, "delayed": dask.delayed, "rf": rf}
    exec(block, names)
    assert_frame_equal(pl.from_pandas(names["means"]), EXPECTED, check_dtypes=False)
