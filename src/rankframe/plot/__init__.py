"""Charts: the frame that a function returns, drawn with Altair.

Each function returns the chart and does not show it. Users are counted or binned before they are
drawn, so charts are small for any number of users. Colors follow the background of the theme. The
first chart imports Altair.
"""

from typing import TYPE_CHECKING

from rankframe import _rooms

if TYPE_CHECKING:
    from rankframe.plot._of_cutoffs import at_k, precision_recall
    from rankframe.plot._of_days import trend
    from rankframe.plot._of_exposure import exposure, lorenz, trade_off
    from rankframe.plot._of_pairs import compare
    from rankframe.plot._of_segments import heatmap
    from rankframe.plot._of_users import per_user, who_gained
else:
    __getattr__, __dir__ = _rooms.doors(__name__, _rooms.ROOMS["plot"])

__all__ = [
    "at_k",
    "compare",
    "exposure",
    "heatmap",
    "lorenz",
    "per_user",
    "precision_recall",
    "trade_off",
    "trend",
    "who_gained",
]
