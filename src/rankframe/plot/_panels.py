"""Around the pictures: titles, panels, and widths."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any, Literal

import altair as alt
import polars as pl

from rankframe.plot import _colors, _marks, _tables

_INNER, _WHOLE = 480, 720  # pixels, if there is no container: inside another chart, and alone


def title_of(text: str, *subtitle: str, narrow: bool = False) -> alt.TitleParams:
    """Make a title and subtitle whose lines are short enough for a narrow page or column."""
    letters = _colors.NARROW_LETTERS if narrow else _colors.LETTERS
    lines = [part for line in subtitle for part in wrap(line, letters, break_on_hyphens=False)]
    titles = wrap(text, letters * 4 // 5 if narrow else letters, break_on_hyphens=False)
    return alt.TitleParams(
        titles if len(titles) > 1 else text,
        subtitle=lines,
        anchor="start",
        color=_marks.INK,
        subtitleColor=_marks.GRAY,
        offset=12,
    )


def panels_by(name: str, order: Sequence[str], title: str | None = None) -> Any:
    """Make one panel per value of a column, without headers if there is only one."""
    own: dict[str, Any] = {"labelLimit": 150}
    if name in ("system", "panel"):
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
    channel = {"system": alt.Row, "panel": alt.Row, "measure": alt.Column, "segment": alt.Column}
    return channel[name](f"{name}:N", sort=list(order), header=header)


def layered(*layers: alt.Chart, **options: Any) -> Any:
    """Layer charts; Altair's types of keywords are too vague."""
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
    wide: float | None = None,
    columns: int = 2,
    resolve: Literal["x", "y"] = "y",
    **options: Any,
) -> alt.LayerChart | alt.FacetChart:
    """Draw a single panel, as wide as its page or ``wide`` pixels, or several side by side."""
    panels = _tables.texts(table["panel"])
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
        return WideChart(layer=list(layers), width="container", data=table, title=title, **options)
    chart: alt.LayerChart = layered(*layers, width=wide, data=table, title=title, **options)
    return chart


class WideChart(alt.LayerChart):
    """
    A layered chart with ``width="container"`` that also has a width without a container.

    Vega-Lite uses 300 pixels, including axes and legend, for a picture without a page, and rejects
    containers inside other charts.
    """

    def to_dict(
        self,
        validate: bool = True,  # noqa: FBT001, FBT002  (as Altair has it)
        *,
        format: Any = "vega-lite",  # noqa: A002
        ignore: Any = None,
        context: Any = None,
    ) -> dict[str, Any]:
        """Return the specification, as Altair does."""
        own: Any = self
        chart: alt.LayerChart = self
        if own.width == "container":
            top: Any = {} if context is None else context
            is_alone = top.get("top_level", True)
            chart = self._with_config() if is_alone else self.properties(width=_INNER)
        # not this method again, which a copy inherits, too
        spec: dict[str, Any] = alt.LayerChart.to_dict(
            chart, validate, format=format, ignore=ignore, context=context
        )
        return spec

    def _with_config(self) -> alt.LayerChart:
        own: Any = self
        kept: Any = {} if own.config is alt.Undefined else own.config.to_dict()
        view: Any = kept.get("view", {})
        if "continuousWidth" in view:
            return self
        return self.properties(config={**kept, "view": {**view, "continuousWidth": _WHOLE}})
