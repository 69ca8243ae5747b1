"""The public names by room, with the module of each, which is imported when the name is used."""

import sys
from collections.abc import Iterable
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
    "health": "_health.health",
    "judge": "_tables.verbs",
    "with_rank": "_tables.verbs",
    "from_lists": "_inputs.item_lists",
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
        "funnel": "plot._funnel",
        "trade_off": "plot._trade_off",
        "lorenz": "plot._lorenz",
        "trend": "plot._trend",
    },
    "stats": {
        "at_k": "_comparison.cutoff_curves",
        "compare_segments": "_comparison.segments",
        "conventions": "_evaluation.convention_spread",
        "differences": "_comparison.differences",
        "exposure": "_evaluation.row_verbs",
        "funnel": "_evaluation.funnel",
        "harm": "_comparison.harm",
        "power": "_comparison.power",
        "who_gained": "_comparison.diagnosis",
        "metric_agreement": "_comparison.system_agreement",
        "judges": "_comparison.judge_agreement",
    },
    "runs": {
        "baselines": "_inputs.baselines",
        "fuse": "_inputs.fusion",
        "overlap": "_evaluation.overlap",
        "rbo": "_evaluation.overlap",
        "side_by_side": "_evaluation.side_by_side",
        "to_judge": "_evaluation.pools",
    },
}
#: The other names of a room, in whose functions no frame comes first; None is a module in the room.
_OTHERS: dict[str, dict[str, str | None]] = {
    "": {
        "from_grades": "_inputs.matrices",
        "from_scores": "_inputs.matrices",
        "Meter": "parts._meter",
        "as_dict": "_evaluation.trackers",
        "sql": "_warehouse.query",
        "explain": "_evaluation.explanation",
        "register_metric": "_request.registration",
        "RankingDataError": "errors",
        **dict.fromkeys(("metrics", "parts", "plot", "presets", "runs", "stats")),
    },
    "metrics": {"rows": "_evaluation.row_verbs"},
    "runs": {"stack": "_tables.run_dicts"},
    "typing": {
        "Explanation": "_evaluation.explanation",
        "Report": "_report.report",
        "ResultsTable": "_report.results",
    },
}
#: Words of the field that are no functions, and what to take.
_INSTEAD = {
    "heatmap": "rf.plot.segments",
    "letters": "rf.table(…, letters=True)",
    "best_systems": "the column 'best' of rf.table(…)",
    "anova": "statsmodels' AnovaRM, as on the page of recipes",
}


def hint(name: str, names: Iterable[str]) -> str:
    """Say what to take for a name that a room lacks: by meaning, else by spelling."""
    from difflib import get_close_matches  # importing it takes 0.7 ms

    if name in _INSTEAD:
        return f": use {_INSTEAD[name]}"
    near = [] if name.startswith("_") else get_close_matches(name, names, n=1, cutoff=0.75)
    return f"; the nearest is {near[0]!r}" if near else ""


def function_of(name: str, module: str) -> Any:
    """Import the module of a public name when the name is first used."""
    return getattr(import_module(f"rankframe.{module}"), name)


def homes_of(room: str) -> dict[str, str | None]:
    """Return the names of a room that are imported when they are first used."""
    return {**(ROOMS.get(room, {}) if room else VERBS), **_OTHERS.get(room, {})}


def _place_of(name: str) -> str:
    """Say in which room a name is that the front door lacks, or how to import this room."""
    from importlib.util import find_spec  # only an error needs it

    for room in (*reversed(ROOMS), "metrics"):
        loaded = sys.modules.get(f"rankframe.{room}")
        if name in homes_of(room) or name in getattr(loaded, "__all__", ()):
            return f"; it is rf.{room}.{name}"
    is_room = not name.startswith("_") and find_spec(f"rankframe.{name}") is not None
    return f": import rankframe.{name}" if is_room else ""


def open_door(module: str) -> None:
    """Give a module the names of its room: ``__all__``, if it has none, and their later imports."""
    names, homes = vars(sys.modules[module]), homes_of(module.partition(".")[2])

    def value_of(name: str) -> Any:
        if name not in homes:
            place = "" if "." in module else _place_of(name)
            more = place or hint(name, names["__all__"])
            msg = f"module {module!r} has no attribute {name!r}{more}"
            raise AttributeError(msg)
        home = homes[name]
        value = function_of(name, home) if home else import_module(f"{module}.{name}")
        names[name] = value
        return value

    names.setdefault("__all__", [*homes])
    names |= {"__getattr__": value_of, "__dir__": lambda: sorted(names["__all__"])}
