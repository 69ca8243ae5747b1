"""Charts: the frame that a function returns, drawn with Altair.

Each function returns the chart and does not show it. Users are counted or binned before they are
drawn, so charts are small for any number of users. Colors follow the background of the theme. The
first chart imports Altair.
"""

from typing import TYPE_CHECKING

from rankframe import _rooms

if TYPE_CHECKING:
    from rankframe.plot._at_k import at_k
    from rankframe.plot._differences import compare
    from rankframe.plot._exposure import exposure
    from rankframe.plot._lorenz import lorenz
    from rankframe.plot._per_user import per_user
    from rankframe.plot._precision_recall import precision_recall
    from rankframe.plot._segments import segments
    from rankframe.plot._trade_off import trade_off
    from rankframe.plot._trend import trend
    from rankframe.plot._who_gained import who_gained
else:
    __getattr__, __dir__ = _rooms.doors(__name__, _rooms.ROOMS["plot"])

__all__ = [
    "at_k",
    "compare",
    "exposure",
    "lorenz",
    "per_user",
    "precision_recall",
    "segments",
    "trade_off",
    "trend",
    "who_gained",
]
