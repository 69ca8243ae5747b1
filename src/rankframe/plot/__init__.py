"""Charts: the frame that a function returns, drawn with Altair.

Each function returns the chart and does not show it. Users are counted or binned before they are
drawn, so charts are small for any number of users. Colors follow the background of the theme. The
first chart imports Altair.
"""

from rankframe.plot._of_cutoffs import at_k, precision_recall
from rankframe.plot._of_days import trend
from rankframe.plot._of_exposure import lorenz, shares, trade_off
from rankframe.plot._of_pairs import agreement, compare, critical_difference
from rankframe.plot._of_segments import heatmap
from rankframe.plot._of_users import change, users

__all__ = [
    "agreement",
    "at_k",
    "change",
    "compare",
    "critical_difference",
    "heatmap",
    "lorenz",
    "precision_recall",
    "shares",
    "trade_off",
    "trend",
    "users",
]


def __dir__() -> list[str]:
    return [*__all__]
