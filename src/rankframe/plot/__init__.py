"""Charts: the frame that a function returns, drawn with Altair.

Each function returns the chart and does not show it. Users are counted or binned before they are
drawn, so charts are small for any number of users. Colors follow the background of the theme. The
first chart imports Altair.
"""

from __future__ import annotations

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
    "users",
]


def __dir__() -> list[str]:
    return [*__all__]
