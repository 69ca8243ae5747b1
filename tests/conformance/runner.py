"""Run the conformance suite on one function: ``python runner.py module:function``.

``compute(case, tables)`` gets a case with its whole convention, and its two tables; it returns the
number, None where it is undefined, or raises NotImplementedError where a tool has no such thing.
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


def cases(path: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Read a file: each case, with what it leaves to the defaults, and its tables."""
    file = json.loads(path.read_text(encoding="utf-8"))
    for case in file["cases"]:
        yield file["defaults"] | case, file["tables"][case["tables"]]


def outcome(compute: Callable[..., Any], case: dict[str, Any], tables: dict[str, Any]) -> str:
    """Say what becomes of a case: "passed", "not offered", "failed: …" or "error: …"."""
    try:
        value = compute(case, tables)
    except NotImplementedError:
        return "not offered"
    except Exception as error:  # noqa: BLE001 - whatever a tool raises
        return f"error: {type(error).__name__}: {error}"
    value = None if value is None or math.isnan(value) else float(value)
    expect = case["expect"]
    same = value is expect  # both undefined
    if value is not None and expect is not None:
        same = math.isclose(value, expect, rel_tol=1e-12, abs_tol=1e-12)
    return "passed" if same else f"failed: {value}, not {expect}"


if __name__ == "__main__":
    compute = getattr(import_module(sys.argv[1].split(":")[0]), sys.argv[1].split(":")[1])
    results = [(case, outcome(compute, case, t)) for path in FILES for case, t in cases(path)]
    wrong = [pair for pair in results if pair[1].startswith(("failed", "error"))]
    for case, result in wrong:
        print(f"{case['id']}: {result}. {case['label']}: {case['why']}")  # noqa: T201
    print(dict(Counter(result.split(":")[0] for _, result in results)))  # noqa: T201
    sys.exit(len(wrong) > 0)
