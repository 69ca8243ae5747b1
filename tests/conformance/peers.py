"""Run six Python tools on the suite, where they are installed, and keep what they give.

``PYTHONPATH=tests python -m conformance.peers [TOOL …]`` writes ``adapters/peers.json``: a number,
null for NaN, "-" where the tool has no such metric or takes no such table, or the error that it
raises. The results of other tools stay. No test runs this; ``page.py`` makes a page of it.
"""

import json
import math
import re
import sys
import warnings
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from conformance.adapters import peers
from conformance.runner import FILES, cases

KEPT = Path(__file__).parent / "adapters" / "peers.json"


def given(tool: str, case: dict[str, Any], tables: dict[str, Any]) -> Any:
    """Return what a tool gives, as JSON."""
    try:
        value = getattr(peers, tool.lower().replace("-", "_"))(case, tables)
    except NotImplementedError:
        return "-"
    except Exception as error:  # noqa: BLE001 - whatever a tool raises
        text = f"{type(error).__name__}: {error}".partition("\n")[0]
        return re.sub(r"\[.*/tmp.*\]", "[…]", text)
    return None if math.isnan(value) else str(value) if math.isinf(value) else round(value, 9)


def run(tools: list[str]) -> None:
    """Run some tools on all cases; cases that have changed since lose what others gave."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"tools": {}, "given": {}}
    of_all = {}
    for case, tables in (pair for path in FILES for pair in cases(path)):
        before = kept["given"].get(case["id"], {})
        before = before if before.get("expect") == case["expect"] else {}
        of_tools = {tool: given(tool, case, tables) for tool in tools}
        of_all[case["id"]] = {"expect": case["expect"], **before, **of_tools}
    for tool in tools:
        of_package = {"version": version(peers.OFFERS[tool]["distribution"])}
        kept["tools"][tool] = of_package | {"date": f"{datetime.now(UTC):%Y-%m-%d}"}
    lines = [f"    {json.dumps(key)}: {json.dumps(row)}" for key, row in of_all.items()]
    head = json.dumps(kept["tools"])
    KEPT.write_text(f'{{\n  "tools": {head},\n  "given": {{\n' + ",\n".join(lines) + "\n  }\n}\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of what is undefined
    run(sys.argv[1:] or [tool for tool in peers.OFFERS if tool != "every tool"])
