"""The recipes of the notebook on pipelines that it does not run itself, and how long they are."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "notebooks" / "9_pipelines.ipynb"
CELLS = json.loads(PAGE.read_text())["cells"]
SOURCES = ["".join(cell["source"]) for cell in CELLS]
TRACKED = {"new_users": 4, "new_ndcg_at_10": 0.25, "new_auc": math.nan}
HEAD = f"from math import nan\ntracked = {TRACKED}\n"


def block(library):
    """The lines of Markdown that import a library."""
    blocks = re.findall(r"^```py\n(.*?)^```$", "\n".join(SOURCES), re.DOTALL | re.MULTILINE)
    return next(found for found in blocks if found.startswith(f"import {library}\n"))


def code_before(heading):
    before = next(place for place, source in enumerate(SOURCES) if source.startswith(heading))
    code = [cell for cell in CELLS[:before] if cell["cell_type"] == "code"]
    return "\n\n".join("".join(cell["source"]) for cell in code)


def run(tmp_path, code, **environment):
    script = tmp_path / "recipe.py"
    script.write_text(code)
    source = str(PAGE.parents[1] / "src")
    known = {**os.environ, "PYTHONPATH": source, **environment}
    given = {"cwd": tmp_path, "env": known, "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run([sys.executable, script], check=False, **given)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_recipe_is_longer_than_15_lines():
    first = next(place for place, source in enumerate(SOURCES) if source.startswith("## Processes"))
    recipes = ["".join(cell["source"]) for cell in CELLS[first:-1] if cell["cell_type"] == "code"]
    recipes += [block(library) for library in ("ray", "mlflow", "wandb")]
    assert len(recipes) > 10
    lengths = [sum(bool(line.strip()) for line in recipe.splitlines()) for recipe in recipes]
    assert max(lengths) <= 15


def test_tasks_of_ray(tmp_path):
    for library in ("ray", "dask.dataframe", "duckdb"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    code = code_before("## Processes")
    assert 'USERS = pl.col("user"), 125_000' in code
    code = code.replace("125_000", "2_000")
    same = """
from polars.testing import assert_frame_equal
assert_frame_equal(means, whole, rel_tol=0, abs_tol=1e-12)
shutil.rmtree(folder)
print("same")
"""
    assert run(tmp_path, f"{code}\n\n{block('ray')}{same}").endswith("same\n")


def test_mlflow_logs_without_error(tmp_path):
    pytest.importorskip("mlflow", reason="mlflow-skinny is not installed")
    shown = "sorted((name, float(number)) for name, number in tracked.items())"
    logged = "sorted(mlflow.last_active_run().data.metrics.items())"
    code = f"{HEAD}{block('mlflow')}\nprint(str({logged}) == str({shown}))\n"
    # the folder stands for a server
    store = {"MLFLOW_TRACKING_URI": (tmp_path / "runs").as_uri(), "MLFLOW_ALLOW_FILE_STORE": "true"}
    assert run(tmp_path, code, **store) == "True\n"


def test_wandb_logs_without_error(tmp_path):
    pytest.importorskip("wandb", reason="wandb is not installed")
    read = "    print(str({name: logged.summary[name] for name in tracked}) == str(tracked))\n"
    code = f"{HEAD}{block('wandb')}{read}"
    assert run(tmp_path, code, WANDB_MODE="offline", WANDB_SILENT="true") == "True\n"
