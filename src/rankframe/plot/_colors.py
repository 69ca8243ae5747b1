"""Colors, shapes and legends of systems and verdicts, on light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from rankframe._comparison import sentences
from rankframe.plot import _tables

if TYPE_CHECKING:
    import altair as alt

#: a color on a light background, and on a dark one
Pair: TypeAlias = tuple[str, str]

INK: Pair = ("#1A1A1A", "#F2F2F2")
GRAY: Pair = ("#666666", "#BDBDBD")
REST: Pair = ("#8C8C8C", "#9C9C9C")  # systems that are not among the best of many
PALE: Pair = ("#E4E4E4", "#4C4C4C")  # grids and areas behind the data
USERS: Pair = ("#5A7896", "#9DB8D6")
#: of systems: distinct, also under common forms of color blindness; shapes differ, too
COLORS: tuple[Pair, ...] = (
    ("#0072B2", "#56A8E8"),
    ("#D55E00", "#FF8A3D"),
    ("#45137F", "#A98BFF"),
    ("#5E6B00", "#E8E070"),
    ("#C26A86", "#D8A0A8"),
    ("#2B2B2B", "#F5F5F5"),
    ("#2A93BA", "#4FE0E0"),
    ("#8A4A1A", "#C08A5E"),
)
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
#: of verdicts: different colors than those of systems
_BETTER, _WORSE = ("#005A36", "#7CF2BE"), ("#C2247C", "#F06AAE")
VERDICTS: Mapping[str, tuple[Pair, str]] = {
    "better": (_BETTER, "triangle-up"),
    "higher": (_BETTER, "triangle-up"),
    "not worse": (("#4A55C8", "#9C9CFF"), "diamond"),
    "equivalent": (("#8A7A00", "#D9C95A"), "square"),
    "undecided": (GRAY, "circle"),
    "worse": (_WORSE, "triangle-down"),
    "lower": (_WORSE, "triangle-down"),
}
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [1, 3], [12, 3])
_DASH_WORDS = ("solid", "dashed", "dotted", "dashes and dots", "sparse dots", "long dashes")
LETTERS, NARROW_LETTERS = 84, 46  # characters in a line of a subtitle: 400 and 270 pixels
_NARROW_LEGEND, _NARROW_LABEL = 258, 220  # pixels
LETTER = 6.7  # pixels of a character
_SHORT_NAME = 12  # characters that leave room for a chart beside the legend of a phone
_DARK = 0.2  # luminance below which a background needs light colors


def all_pairs() -> dict[str, str]:
    """Map each color on a light background to that on a dark one."""
    verdicts = [pair for pair, _ in VERDICTS.values()]
    return dict([*COLORS, INK, GRAY, REST, PALE, USERS, *verdicts])


def ink(pair: Pair = INK) -> Any:
    """Choose the color that is visible on the background of the theme."""
    import altair as alt

    return alt.expr(f"luminance(background) < {_DARK} ? '{pair[1]}' : '{pair[0]}'")


def are_many(systems: Sequence[str]) -> bool:
    """Return whether only the best systems have their own colors."""
    return len(systems) > _tables.MOST_COLORED


def color_of(
    systems: Sequence[str],
    groups: Sequence[str],
    *,
    legend: bool | Mapping[str, Any] = True,
    distinct: bool = False,
    among: Sequence[str] | None = None,
) -> dict[str, Any]:
    """
    Assign a color to each system; of many, sorted best first, only to the best ones.

    The place of a system ``among`` all systems of a page or a call is its color.
    """
    import altair as alt

    if not groups:
        return {"color": alt.value(ink(COLORS[0]))}
    pairs = [
        REST if place is None else COLORS[place % len(COLORS)]
        for place in _places_of(systems, among, distinct=distinct)
    ]
    scale = alt.Scale(domain=list(systems), range=[ink(pair) for pair in pairs])
    return {
        "color": alt.Color(
            "system:N", scale=scale, legend=_system_legend(systems, groups, legend=legend)
        )
    }


def _places_of(
    systems: Sequence[str], among: Sequence[str] | None, *, distinct: bool
) -> list[int | None]:
    """Return the place of each system among all; none for one of many that is not a best one."""
    every = list(systems if among is None else among)
    kept = len(every) if distinct or not are_many(every) else _tables.BEST
    places = [every.index(name) for name in systems]
    return [place if place < kept else None for place in places]


def _system_legend(
    systems: Sequence[str], groups: Sequence[str], *, legend: bool | Mapping[str, Any]
) -> alt.Legend | None:
    """Make the legend of systems, with own options if they are given."""
    if legend is False:
        return None
    own: Mapping[str, Any] = {} if legend is True else legend
    return legend_of(sentences.one_line(groups[0]), many=len(systems) > len(COLORS), **own)


def legend_above(systems: Sequence[str]) -> bool | dict[str, Any]:
    """Choose the columns of a legend above or below a narrow chart from its longest name."""
    longest = max(map(len, systems), default=1)
    several = are_many(systems)
    if several and longest <= _SHORT_NAME:
        return True  # beside the chart
    longest = min(longest, int(_NARROW_LABEL // LETTER))
    columns = max(1, int(_NARROW_LEGEND // (LETTER * longest + 34)))
    return {
        "orient": "bottom" if several else "top",
        "direction": "horizontal",
        "columns": min(columns, len(systems)),
        "labelLimit": _NARROW_LABEL,
        "titleLimit": _NARROW_LEGEND,
        "titleAnchor": "start",
        "columnPadding": 8,
    }


def legend_of(title: str, *, many: bool = False, **options: Any) -> alt.Legend:
    """Make a legend that lists every value."""
    import altair as alt

    room: dict[str, Any] = {"rowPadding": 1} if many else {}
    fixed: dict[str, Any] = {"symbolLimit": 0, "symbolOpacity": 1, "padding": 8, "labelLimit": 220}
    return alt.Legend(title=title, **{**fixed, **room, **options})


def shape_of(
    systems: Sequence[str],
    groups: Sequence[str],
    *,
    legend: bool | Mapping[str, Any] = True,
    distinct: bool = False,
    among: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Assign shapes to the points of systems; of many, a small circle to all but the best."""
    import altair as alt

    if not groups:
        return {}
    shapes = [
        "circle" if place is None else SHAPES[place % len(SHAPES)]
        for place in _places_of(systems, among, distinct=distinct)
    ]
    scale = alt.Scale(domain=list(systems), range=shapes)
    return {
        "shape": alt.Shape(
            "system:N", scale=scale, legend=_system_legend(systems, groups, legend=legend)
        )
    }


def dashes_of(metrics: Sequence[str]) -> str:
    """Write which dashes the lines of each metric have."""
    words = [_DASH_WORDS[place % len(_DASH_WORDS)] for place in range(len(metrics))]
    return "; ".join(f"{word}: {metric}" for word, metric in zip(words, metrics, strict=True))


def dash_of(metrics: Sequence[str], *, legend: bool = True) -> dict[str, Any]:
    """Dash the lines of metrics that share a panel."""
    import altair as alt

    dashes = [_DASHES[place % len(_DASHES)] for place in range(len(metrics))]
    scale = alt.Scale(domain=list(metrics), range=dashes)
    shown = legend_of(
        "metric", symbolType="stroke", symbolSize=500, symbolStrokeColor=ink(), symbolStrokeWidth=2
    )
    return {"strokeDash": alt.StrokeDash("metric:N", scale=scale, legend=shown if legend else None)}


def selections() -> tuple[Any, Any]:
    """Make the selections among many systems: a click in the legend, and the pointer."""
    import altair as alt

    chosen = alt.selection_point(name="chosen", fields=["system"], bind="legend")
    pointed = alt.selection_point(
        name="pointed",
        fields=["system"],
        on="pointerover",
        clear="pointerout",
        nearest=True,
        empty=False,
    )
    return chosen, pointed


def of_many(systems: Sequence[str], chosen: Any) -> dict[str, Any]:
    """Draw the lines of the best of many systems thick, and lines not selected pale."""
    import altair as alt

    best = alt.FieldOneOfPredicate("system", list(systems[: _tables.BEST]))
    return {
        "opacity": alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.12)),
        "strokeWidth": alt.when(best).then(alt.value(2.5)).otherwise(alt.value(1.2)),
    }


def points_of_many(systems: Sequence[str], chosen: Any) -> dict[str, Any]:
    """Draw the points of the best of many systems large, and points not selected pale."""
    import altair as alt

    best = alt.FieldOneOfPredicate("system", list(systems[: _tables.BEST]))
    return {
        "opacity": alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.12)),
        "size": alt.when(best).then(alt.value(32)).otherwise(alt.value(6)),
    }


def verdict_look(
    directions: Mapping[str, bool | None], margins: Mapping[str, float], title: str
) -> dict[str, Any]:
    """Assign a color and a shape to each possible verdict."""
    import altair as alt

    goods, bads = [], []
    if any(direction is not None for direction in directions.values()):
        goods, bads = ["better"], ["worse"]
    if None in directions.values():
        goods, bads = [*goods, "higher"], [*bads, "lower"]
    within = ["not worse", "equivalent"] if margins else []
    domain = [*goods, *within, "undecided", *bads]
    pairs, shapes = zip(*(VERDICTS[verdict] for verdict in domain), strict=True)
    colors = alt.Scale(domain=domain, range=[ink(pair) for pair in pairs])
    return {
        "color": alt.Color("verdict:N", scale=colors, legend=legend_of(title)),
        "shape": alt.Shape(
            "verdict:N", scale=alt.Scale(domain=domain, range=list(shapes)), legend=legend_of(title)
        ),
    }
