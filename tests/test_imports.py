"""What an import loads."""

import ast
import functools
import importlib
import inspect
import json
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import rankframe as rf
from rankframe import _rooms

HEAVY = [
    "difflib",
    "pandas",
    "numpy",
    "pyarrow",
    "scipy",
    "tqdm",
    "altair",
    "pyspark",
    "rankframe._command.main",
]


def test_import_loads_polars_only():
    code = f"""
import sys
import rankframe
loaded = [name for name in {HEAVY} if name in sys.modules]
assert not loaded, loaded
import polars as pl
frame = pl.DataFrame({{"user": [1], "item": [1], "rank": [1], "relevance": [1]}})
frame.rank.evaluate("ndcg@10", "precision")
frame.rank.evaluate((pl.col("rank") <= 1).filter("relevant").mean().alias("own"))  # reads trees
rankframe.plot, rankframe.stats, rankframe.runs, frame.rank.stats, dir(frame.rank.plot)
loaded = [name for name in sys.modules if name in {HEAVY} or "_warehouse" in name]
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


#: The rooms that ``evaluate`` and ``per_user`` need, and their modules that are loaded later.
LOADED = {"_evaluation", "_inputs", "_namespace", "_request", "_rooms", "_tables", "_vocabulary"}
LOADED |= {"_sizes", "errors", "metrics", "presets"}
LATER = {
    "_evaluation": {
        "convention_spread",
        "convention_words",
        "conventions",
        "explanation",
        "funnel",
        "human_values",
        "missed_items",
        "overlap",
        "pools",
        "provenance",
        "ready_values",
    }
    | {"row_verbs", "side_by_side", "trackers", "trees"},
    "_inputs": {
        "arrays",
        "baselines",
        "fusion",
        "item_parents",
        "judgment_files",
        "matrices",
        "two_lists",
    },
    "_tables": {"verbs"},
    "_vocabulary": {"item_distances"},
}


def test_import_loads_what_evaluate_needs():
    code = "import sys, rankframe; print(*(n for n in sys.modules if n.startswith('rankframe.')))"
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    loaded = {name.removeprefix("rankframe.") for name in output.split()}
    modules = {name.removeprefix("rankframe.") for name in imports()} - {"rankframe"}
    needed = {name for name in modules if name.partition(".")[0] in LOADED}
    later = {f"{room}.{name}" for room, names in LATER.items() for name in names}
    assert loaded == needed - later


DOORS = ["", "stats", "runs", "plot", "metrics", "typing"]


@pytest.fixture(scope="module")
def names_at_import():
    """The names of each door of a new process."""
    rooms = [f"rankframe.{door}".removesuffix(".") for door in DOORS]
    names = f"[[*vars(importlib.import_module(room))] for room in {rooms}]"
    code = f"import importlib, json; print(json.dumps({names}))"
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    return {door: {*names} for door, names in zip(DOORS, json.loads(output), strict=True)}


@pytest.mark.parametrize("room", DOORS)
def test_names_of_a_room_are_loaded_when_they_are_used(room, names_at_import):
    module, homes = importlib.import_module(f"rankframe.{room}".strip(".")), _rooms.homes_of(room)
    for name, home in homes.items():
        value = getattr(module, name)
        where = value.__name__ if inspect.ismodule(value) else value.__module__
        assert where == f"rankframe.{home or name}"
    assert not {*homes} & names_at_import[room] - LOADED
    assert {*homes} <= {*module.__all__} == {*dir(module)}


SOURCE = Path(rf.__file__).parents[1]


@functools.cache
def trees():
    """Parse every module of ours."""
    paths = Path(rf.__file__).parent.rglob("*.py")
    return {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): (
            ast.parse(path.read_text(encoding="utf-8"))
        )
        for path in paths
    }


@functools.cache
def imports():
    """Read, for each module, every module of ours that any statement imports."""
    graph = {}
    for module, tree in trees().items():
        found = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rankframe"):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                found |= {name if name in trees() else node.module for name in names}
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names if alias.name in trees()}
        graph[module] = found - {module}
    return graph


def test_modules_import_none_above_them():
    """Not inside functions nor for types either: there is no circle."""
    graph = imports()
    assert len(graph) > 30
    order = list(TopologicalSorter(graph).static_order())
    assert order.index("rankframe._vocabulary.derived_columns") < order.index(
        "rankframe._evaluation.evaluation"
    )


#: The rooms, from the ground up; those of one floor do not know each other.
FLOORS = [
    {"errors", "_rooms", "_sizes", "presets"},
    {"_request"},
    {"metrics", "_tables"},
    {"_inputs", "_vocabulary"},
    {"_evaluation", "_health", "trec"},
    {"_comparison", "_warehouse", "parts"},
    {"plot", "spark"},
    {"_report"},
    {"_namespace", "_command", "runs", "stats"},
    {"", "__main__", "pandas", "typing"},
]


def room(module):
    """Name the room; ``rankframe.metrics`` itself is a door, which shows more than is in it."""
    name = module.removeprefix("rankframe").removeprefix(".").partition(".")[0]
    return "" if module == "rankframe.metrics" else name


def test_room_imports_only_rooms_below_it():
    floors = {name: floor for floor, rooms in enumerate(FLOORS) for name in rooms}
    arrows = {(room(a), room(b)) for a, found in imports().items() for b in found}
    assert {name for arrow in arrows for name in arrow} == {*floors}
    assert [a for a in sorted(arrows) if a[0] != a[1] and floors[a[0]] <= floors[a[1]]] == []


def test_folders_of_tests_are_named_after_rooms():
    folders = {path.parent.name for path in Path(__file__).parent.glob("*/test_*.py")}
    rooms = {name.removeprefix("_") for rooms in FLOORS for name in rooms}
    assert folders - {"conformance"} <= rooms  # a suite for other languages, too


def test_core_imports_no_wing():
    graph, pending, core = imports(), ["rankframe._comparison.comparison"], set()
    while pending:
        core.add(pending[0])
        pending += graph[pending.pop(0)] - core
    wings = {
        f"rankframe.{name}" for name in ("plot", "spark", "trec", "pandas", "_report", "_command")
    }
    assert core.isdisjoint({*wings, "rankframe._namespace"})


def test_function_is_not_hidden_by_a_module():
    for module in imports():
        package, _, name = module.rpartition(".")
        assert name == "plot" or not callable(getattr(sys.modules.get(package), name, None)), name


NO_NAMES = {"one", "given", "known", "asked", "found", "made", "told", "some", "each"}


def test_names_are_nouns():
    for module, tree in trees().items():
        for node in ast.walk(tree):
            stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            name = node.id if stored else node.arg if isinstance(node, ast.arg) else None
            assert name not in NO_NAMES, f"{module}:{node.lineno}: {name}"
