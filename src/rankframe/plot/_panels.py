"""Around the pictures: titles, panels, and the checks of a chart's call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from rankframe._request.keywords import Options
from rankframe.plot import _colors, _tables

if TYPE_CHECKING:
    import altair as alt


def title_of(text: str, *subtitle: str, narrow: bool = False) -> alt.TitleParams:
    """Make a title and subtitle whose lines are short enough for a narrow page or column."""
    import altair as alt

    letters = _colors.NARROW_LETTERS if narrow else _colors.LETTERS
    lines = [part for line in subtitle for part in wrap(line, letters, break_on_hyphens=False)]
    titles = wrap(text, letters * 4 // 5 if narrow else letters, break_on_hyphens=False)
    return alt.TitleParams(
        titles if len(titles) > 1 else text,
        subtitle=lines,
        anchor="start",
        color=_colors.ink(),
        subtitleColor=_colors.ink(_colors.GRAY),
        offset=12,
    )


def panels_by(name: str, order: Sequence[str], title: str | None = None) -> Any:
    """Make one panel per value of a column, without headers if there is only one."""
    import altair as alt

    own: dict[str, Any] = {"labelLimit": 150}
    if name in ("system", "panel"):
        own = {"labelAngle": 0, "labelAlign": "left", "labelLimit": 190}
    header = alt.Header(
        title=title,
        labelFontWeight="bold",
        labels=len(order) > 1,
        labelColor=_colors.ink(),
        titleColor=_colors.ink(),
        titleFontWeight="bold",
        **own,
    )
    channel = {"system": alt.Row, "panel": alt.Row, "measure": alt.Column, "segment": alt.Column}
    return channel[name](f"{name}:N", sort=list(order), header=header)


def layered(*layers: alt.Chart, **options: Any) -> Any:
    """Layer charts; Altair's types of keywords are too vague."""
    import altair as alt

    return alt.layer(*layers, **options)


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
    wide: float | Literal["container"] = "container",
    columns: int = 2,
    resolve: Literal["x", "y"] = "y",
    joined: bool = False,
    **options: Any,
) -> alt.LayerChart | alt.FacetChart:
    """Draw a single wide panel, or several side by side; ``joined`` draws all panels in one."""
    import altair as alt

    panels = _tables.texts(table["panel"])
    if len(panels) == 1 or joined:
        options |= {"data": table, "height": height, "title": title}
        if wide == "container":
            from rankframe.plot import _wide

            return _wide.wide(*layers, **options)
        single: alt.LayerChart = layered(*layers, width=wide, **options)
        return single
    header = alt.Header(
        title=None, labelFontWeight="bold", labelColor=_colors.ink(), labelLimit=max(width, 150)
    )
    facet = alt.Facet("panel:N", sort=list(panels), header=header)
    drawn = layered(*layers, data=table, width=width, height=height, **options)
    faceted: Any = in_grid(drawn, facet=facet, columns=columns, title=title)
    # otherwise axes are drawn below missing panels of the last row
    faceted = faceted.resolve_axis(x="independent")
    grid: alt.FacetChart = faceted.resolve_scale(**{resolve: "independent"})
    return grid


def check_call(options: Mapping[str, object]) -> None:
    """Check that Altair is installed, and that charts accept the keywords."""
    for name in options:
        if name not in Options.__annotations__:
            msg = f"unknown argument {name!r}; charts accept {', '.join(Options.__annotations__)}"
            raise TypeError(msg)
    if find_spec("altair") is None:
        msg = "charts need altair: pip install 'rankframe[plot]'"
        raise ImportError(msg)
