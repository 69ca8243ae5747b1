"""The notebooks run from top to bottom, and are kept as they ran."""

import re
import shutil
import time
from pathlib import Path

import altair as alt
import nbformat
import pytest
import vl_convert
from nbmake import nb_run
from requirements import lacking

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MINUTES = 2
ASSERTIONS = Path(__file__).parent / "assertions"  # what holds at the end of each notebook


def number(path):
    return path.stem.partition("_")[0]


def _tier(path):
    """A decision is made each time; the others take longest."""
    marks = [] if number(path) == "1" else [pytest.mark.thorough]
    return pytest.param(path, id=path.stem, marks=marks)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(notebook):
    """What a reader sees as text below each cell of code."""
    texts = []
    for cell in code_cells(notebook):
        seen = [one.get("text") or one.data["text/plain"] for one in cell.outputs]
        texts.append((cell.source, "".join(seen)))
    return texts


def drawn(notebook):
    """What each picture below a cell of code shows."""
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    pictures = [output.get("data", {}).get("image/svg+xml") for output in outputs]
    return [shown(picture) for picture in pictures if picture]


def shown(picture):
    """The kinds of marks of a picture, its colors, and its descriptions of titles, axes and marks.

    Descriptions are the same with any fonts; the last digits of their numbers are not compared.
    """
    kinds = re.findall(r'class="mark-(\w+) role-mark', picture)
    said = re.findall(r'aria-label="([^"]*)"', picture)
    colors = set(re.findall(r'(?:fill|stroke)="(#[0-9a-fA-F]+|rgb[^"]*)"', picture))
    return (
        kinds,
        colors,
        [re.sub(r"\d+\.\d+", lambda digits: f"{float(digits[0]):.4g}", one) for one in said],
    )


def test_picture_is_what_it_shows():
    def picture(height, mark="mark_bar", color="#4A1F8A"):
        rows = alt.InlineData([{"name": "a", "share": height}])
        chart = getattr(alt.Chart(rows), mark)(color=color).encode(x="name:N", y="share:Q")
        return shown(vl_convert.vegalite_to_svg(chart.to_json()))

    assert picture(0.45) == picture(0.45 + 1e-12)
    assert picture(0.45) != picture(0.46)
    assert picture(0.45) != picture(0.45, "mark_point")
    assert picture(0.45) != picture(0.45, color="#5B2A9D")


def test_notebooks_are_five():
    assert {number(path) for path in NOTEBOOKS} == {*"12345"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_kept_whole_and_small(path):
    assert path.stat().st_size < 300_000
    cells = code_cells(nbformat.read(path, 4))
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    outputs = [output for cell in cells for output in cell.outputs]
    assert {output.output_type for output in outputs} <= {"execute_result", "stream"}
    assert all(output.get("name") != "stderr" for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_begins_with_its_result_and_has_no_assertions(path):
    notebook = nbformat.read(path, 4)
    assert "**Result.**" in "\n".join(notebook.cells[0].source.splitlines()[:10])
    assert all("assert " not in cell.source for cell in code_cells(notebook))
    assert "assert " in ASSERTIONS.joinpath(f"{path.stem}.txt").read_text()


@pytest.mark.parametrize("path", [*map(_tier, NOTEBOOKS)])
def test_notebook_runs_and_prints_what_it_keeps(path, tmp_path):
    here, notebook = tmp_path / path.name, nbformat.read(path, 4)
    assertions = ASSERTIONS.joinpath(f"{path.stem}.txt").read_text()
    notebook.cells.append(nbformat.v4.new_code_cell(assertions))
    nbformat.write(notebook, here)
    for helper in FOLDER.glob("*.py"):
        shutil.copy(helper, tmp_path)
    start = time.monotonic()
    result = nb_run.NotebookRun(here, default_timeout=60 * MINUTES).execute()
    if result.error:
        if "MovieLens-100K was not found" in result.error.trace:
            lacking("MovieLens-100K was not found: set MOVIELENS_100K to a path")
        pytest.fail(result.error.trace)
    took = time.monotonic() - start
    result.nb.cells.pop()
    assert printed(result.nb) == printed(nbformat.read(path, 4)), (
        f"run it again: python -m tests.run_notebooks {number(path)}"
    )
    assert drawn(result.nb) == drawn(nbformat.read(path, 4)), "its pictures are older than the code"
    pictures = [*tmp_path.glob("*.svg")]
    assert len(pictures) == 3 * (path.stem == "1_quickstart")
    for made in pictures:
        assert shown(path.with_name(made.name).read_text()) == shown(made.read_text())
    assert took < 60 * MINUTES
