"""Draw the charts of a report from its numbers: Altair charts by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rankframe._report.facts import Numbers
from rankframe.plot import _at_k

if TYPE_CHECKING:
    from altair.typing import ChartType


def charts_of(numbers: Numbers) -> dict[str, ChartType]:
    """Draw the metrics over k: their changes from the baseline, or their means."""
    call, drawn = numbers.call, numbers.over_k
    if drawn is None or drawn["mean"].null_count() == len(drawn):
        return {}
    cuts = numbers.values.cuts.filter(pl.col("label").is_in(drawn["metric"].to_list()))
    is_change = numbers.pairs and call.trial.paired
    chart: ChartType = _at_k.picture(
        drawn,
        cuts,
        [call.by],
        call.options,
        confidence=call.trial.confidence,
        baseline=call.trial.baseline if is_change else None,
    )
    return {"over-k": chart}
