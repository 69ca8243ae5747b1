"""The public names by room, with the module of each, which is imported when the name is used."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

#: The verbs that take a frame: functions of ``rankframe``, and methods of ``df.rank``.
VERBS = {
    "evaluate": "_evaluation.evaluation",
    "per_user": "_evaluation.evaluation",
    "summarize": "_comparison.summaries",
    "compare": "_comparison.comparison",
    "gate": "_comparison.gate",
    "report": "_report.report",
    "table": "_report.results",
    "check": "_evaluation.row_verbs",
    "health": "_tables.health",
    "judge": "_tables.verbs",
    "with_rank": "_tables.verbs",
    "from_lists": "_tables.verbs",
    "provenance": "_evaluation.provenance",
}
#: The rooms of functions that take a frame: ``rf.stats.power(df, …)``, ``df.rank.stats.power(…)``.
ROOMS = {
    "plot": {
        "at_k": "plot._at_k",
        "precision_recall": "plot._precision_recall",
        "per_user": "plot._per_user",
        "compare": "plot._differences",
        "who_gained": "plot._who_gained",
        "segments": "plot._segments",
        "exposure": "plot._exposure",
        "trade_off": "plot._trade_off",
        "lorenz": "plot._lorenz",
        "trend": "plot._trend",
    },
    "stats": {
        "at_k": "_comparison.cutoff_curves",
        "compare_segments": "_comparison.segments",
        "exposure": "_evaluation.row_verbs",
        "harm": "_comparison.harm",
        "power": "_comparison.power",
        "who_gained": "_comparison.diagnosis",
        "metric_agreement": "_comparison.system_agreement",
    },
    "runs": {
        "fuse": "_tables.fusion",
        "overlap": "_evaluation.overlap",
        "rbo": "_evaluation.overlap",
        "side_by_side": "_tables.side_by_side",
    },
}


def function_of(name: str, module: str) -> Any:
    """Import the module of a public name when the name is first used."""
    return getattr(import_module(f"rankframe.{module}"), name)


def doors(
    room: str, homes: Mapping[str, str | None]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a room; a name without a home is a module in it."""
    names = vars(sys.modules[room])

    def value_of(name: str) -> Any:
        if name not in homes:
            inside = [f"; it is rf.{r}.{name}" for r in reversed(ROOMS) if name in ROOMS[r]]
            hint = inside[0] if inside and room == "rankframe" else ""
            msg = f"module {room!r} has no attribute {name!r}{hint}"
            raise AttributeError(msg)
        home = homes[name]
        value = function_of(name, home) if home else import_module(f"{room}.{name}")
        names[name] = value
        return value

    return value_of, lambda: sorted(names["__all__"])
