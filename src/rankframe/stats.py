"""Statistics beyond the mean: curves, segments, harm, exposure, power, and many systems at once."""

from typing import TYPE_CHECKING

from rankframe import _rooms

if TYPE_CHECKING:
    from rankframe._comparison.cutoff_curves import at_k
    from rankframe._comparison.diagnosis import who_gained
    from rankframe._comparison.harm import harm
    from rankframe._comparison.many_systems import anova, best_systems, letters
    from rankframe._comparison.power import power
    from rankframe._comparison.segments import compare_segments
    from rankframe._comparison.system_agreement import discriminative_power, metric_agreement
    from rankframe._evaluation.row_verbs import exposure
else:
    __getattr__, __dir__ = _rooms.doors(__name__, _rooms.ROOMS["stats"])

__all__ = [
    "anova",
    "at_k",
    "best_systems",
    "compare_segments",
    "discriminative_power",
    "exposure",
    "harm",
    "letters",
    "metric_agreement",
    "power",
    "who_gained",
]
