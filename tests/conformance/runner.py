"""Run the conformance suite on one function: ``python runner.py module:function``.

``compute(case, tables)`` gets a case with its whole convention, and its two tables; it returns the
number, None where it is undefined, or raises NotImplementedError where the tool has no such metric
or convention. A port in another language is as long as this file.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FILES = sorted(path for path in HERE.glob("*.json") if path.name != "schema.json")
Compute = Callable[[dict[str, Any], dict[str, Any]], float | None]


def cases(path: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Read a file: each case, with what it leaves to the defaults, and its tables."""
    file = json.loads(path.read_text(encoding="utf-8"))
    for case in file["cases"]:
        yield file["defaults"] | case, file["tables"][case["tables"]]


def outcome(compute: Compute, case: dict[str, Any], tables: dict[str, Any]) -> str:
    """Say what becomes of a case: "passed", "not offered", "failed: …" or "error: …"."""
    try:
        value = compute(case, tables)
    except NotImplementedError:
        return "not offered"
    except Exception as error:  # noqa: BLE001 - whatever a tool raises
        return f"error: {type(error).__name__}: {error}"
    value = None if value is None or math.isnan(value) else float(value)
    expect = case["expect"]
    if value is None or expect is None:
        return "passed" if value is expect else f"failed: {value}, not {expect}"
    near = math.isclose(value, expect, rel_tol=1e-12, abs_tol=1e-12)
    return "passed" if near else f"failed: {value}, not {expect}"


if __name__ == "__main__":
    module, name = sys.argv[1].split(":")
    function = getattr(import_module(module), name)
    results = {c["id"]: (c, outcome(function, c, t)) for path in FILES for c, t in cases(path)}
    for key, (case, result) in results.items():
        if result.startswith(("failed", "error")):
            print(f"{key}: {result}. {case['label']}: {case['why']}")  # noqa: T201
    print(dict(Counter(result.split(":")[0] for _, result in results.values())))  # noqa: T201
