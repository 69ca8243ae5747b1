"""The class of charts that are as wide as their page."""

from __future__ import annotations

from typing import Any

import altair as alt

_INNER, _WHOLE = 480, 720  # pixels, if there is no container: inside another chart, and alone


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
