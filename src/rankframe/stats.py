"""Statistics beyond the mean: curves, segments, harm, exposure, power, agreement of metrics."""

from typing import TYPE_CHECKING

from rankframe import _rooms

if TYPE_CHECKING:
    from rankframe._comparison.cutoff_curves import at_k
    from rankframe._comparison.diagnosis import who_gained
    from rankframe._comparison.harm import harm
    from rankframe._comparison.power import power
    from rankframe._comparison.segments import compare_segments
    from rankframe._comparison.system_agreement import metric_agreement
    from rankframe._evaluation.row_verbs import exposure
else:
    __getattr__, __dir__ = _rooms.doors(__name__, _rooms.ROOMS["stats"])

__all__ = [
    "at_k",
    "compare_segments",
    "exposure",
    "harm",
    "metric_agreement",
    "power",
    "who_gained",
]
