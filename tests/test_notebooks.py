"""The notebooks run from top to bottom, and are kept as they ran."""

import os
import re
import shutil
import time
from pathlib import Path

import pytest
from test_spark import need_spark

nbformat = pytest.importorskip("nbformat")
nb_run = pytest.importorskip("nbmake.nb_run")

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
MINUTES = 2


def test_there_are_seven():
    assert [path.stem[0] for path in NOTEBOOKS] == ["1", "2", "3", "4", "5", "6", "7"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_whole_and_small(path):
    assert path.stat().st_size < 300_000
    cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    outputs = [output for cell in cells for output in cell.outputs]
    assert {output.output_type for output in outputs} <= {"execute_result", "stream"}
    assert all(output.get("name") != "stderr" for output in outputs)
    assert any("assert " in cell.source for cell in cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    if path.stem == "5_spark":
        need_spark()
    here = Path(shutil.copy(path, tmp_path))
    start = time.monotonic()
    result = nb_run.NotebookRun(here, default_timeout=60 * MINUTES).execute()
    if result.error:
        if "MovieLens-100K is not at hand" in result.error.trace and not os.environ.get("CI"):
            pytest.skip("MovieLens-100K is not at hand: name a file in MOVIELENS_100K")
        pytest.fail(result.error.trace)
    assert time.monotonic() - start < 60 * MINUTES
    pictures = [*tmp_path.glob("*.svg")]
    assert len(pictures) == (path.stem == "1_quickstart")
    for made in pictures:
        kept = path.with_name(made.name).read_text()
        assert re.findall(">([^<]+)</text>", kept) == re.findall(
            ">([^<]+)</text>", made.read_text()
        )
