"""Around the pictures: titles, panels, and widths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any, Literal, cast

import polars as pl

from rankframe._comparison import sentences
from rankframe.plot import _altair as alt
from rankframe.plot import _colors, _marks
from rankframe.plot._colors import Systems

_LETTER = 4.75  # pixels of a character of a subtitle


def title_of(text: str, *subtitle: str, width: float = 400) -> alt.TitleParams:
    """Make a title and subtitle whose lines are short enough for a narrow page or column."""
    letters = int(width / _LETTER)
    titles, *below = (wrap(line, letters, break_on_hyphens=False) for line in (text, *subtitle))
    return alt.TitleParams(
        titles if len(titles) > 1 else text,
        subtitle=[part for line in below for part in line],
        anchor="start",
        color=_marks.INK,
        subtitleColor=_marks.GRAY,
        offset=12,
    )


def panels_by(name: str, order: Sequence[str], title: str | None = None) -> Any:
    """Make one panel per value of a column, without headers if there is only one."""
    channel: Any = alt.Column
    own: dict[str, Any] = {"labelLimit": 150}
    if name == "panel":
        channel = alt.Row
        own = {"labelAngle": 0, "labelAlign": "left", "labelLimit": 190, "labelPadding": 20}
    header = alt.Header(
        title=title,
        labelFontWeight="bold",
        labels=len(order) > 1,
        labelColor=_marks.INK,
        titleColor=_marks.INK,
        titleFontWeight="bold",
        **own,
    )
    return channel(f"{name}:N", sort=list(order), header=header)


def layered(*layers: Any, **options: Any) -> alt.LayerChart:
    """Layer charts; Altair's types of keywords are too vague."""
    return cast("alt.LayerChart", alt.layer(*layers, **options))


def in_grid(layers: Any, **options: Any) -> alt.FacetChart:
    """Put layers in panels; Altair's types of keywords are too vague."""
    grid: alt.FacetChart = layers.facet(**options)
    return grid


def in_panels(
    layers: Sequence[Any],
    table: pl.DataFrame,
    title: alt.TitleParams,
    *,
    width: float,
    height: float,
    wide: float | None = None,
    columns: int = 2,
    resolve: Literal["x", "y"] = "y",
    **options: Any,
) -> alt.LayerChart | alt.FacetChart:
    """Draw a single panel, as wide as its page or ``wide`` pixels, or several side by side."""
    panels = texts(table["panel"])
    if len(panels) == 1:
        return alone(layers, table, title, wide=wide, height=height, **options)
    header = alt.Header(
        title=None, labelFontWeight="bold", labelColor=_marks.INK, labelLimit=max(width, 150)
    )
    facet = alt.Facet("panel:N", sort=list(panels), header=header)
    drawn = layered(*layers, data=table, width=width, height=height, **options)
    faceted: Any = in_grid(drawn, facet=facet, columns=columns, title=title)
    # otherwise axes are drawn below missing panels of the last row
    faceted = faceted.resolve_axis(x="independent")
    grid: alt.FacetChart = faceted.resolve_scale(**{resolve: "independent"})
    return grid


def alone(
    layers: Sequence[Any],
    table: pl.DataFrame,
    title: alt.TitleParams,
    *,
    wide: float | None,
    **options: Any,
) -> alt.LayerChart:
    if wide is None:
        from rankframe.plot._wide import WideChart

        return WideChart(layer=list(layers), width="container", data=table, title=title, **options)
    return layered(*layers, width=wide, data=table, title=title, **options)


def panel_of(name: str) -> pl.Expr:
    """Name a panel after its metric and its segment."""
    alone = pl.col("segment") == ""
    both = pl.format("{} · {}", name, "segment")
    return pl.when(alone).then(pl.col(name)).otherwise(both).alias("panel")


def texts(column: pl.Series) -> list[str]:
    return column.unique(maintain_order=True).to_list()


def as_text(cutoffs: Sequence[int]) -> str:
    """Write cut-offs for a title: a range or a long list by its ends, others in full."""
    first, last = cutoffs[0], cutoffs[-1]
    if 2 < len(cutoffs) == last - first + 1 or len(cutoffs) > 8:
        return f"{first} to {last}"
    return ", ".join(map(str, cutoffs))


def weighted_by(options: Mapping[str, Any]) -> str:
    weights = options.get("weights")
    return "" if weights is None else f" weighted by {sentences.one_line(weights)}"


def missed(means: pl.DataFrame, groups: Sequence[str], users: str = "users") -> list[str]:
    """Write which systems have no list for how many of their users."""
    return sentences.missed_lines(
        means.select(*sentences.system_and_segment(means, groups), users, "num_missed")
    )


def counted(users: str, systems: Systems, by: str, confidence: float | None) -> list[str]:
    """Write of how many users an average is, and how to read its lines and bands."""
    shown = "" if confidence is None else f", with {_marks.sure(confidence)}s"
    lines = [f"{users}{shown}"]
    if systems.are_many:
        lines.append(f"colored: the best {_colors.BEST} by {by}")
    elif confidence is not None and len(systems.names) > 1:
        lines.append("overlapping bands are not a test: see compare")
    return [*lines, systems.short.key]


def best_last(table: pl.DataFrame, systems: Systems) -> pl.DataFrame:
    """Sort rows so that the best of many systems are drawn on top."""
    places = {name: place for place, name in enumerate(systems.best) if systems.are_many}
    return table.sort(
        pl.col("system").replace_strict(places, default=_colors.BEST, return_dtype=pl.Int64),
        descending=True,
        maintain_order=True,
    )
