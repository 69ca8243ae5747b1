"""Types for code that wraps rankframe: ``from rankframe.typing import Metric, Options``.

``Options`` are the keywords of ``evaluate``, columns' roles included, for wrappers that hand them
through: ``def report(run: Frame, **options: Unpack[Options])``; ``Names`` are the roles alone.
``StatisticsOptions`` are those of ``Options`` and the two of a table of values, which ``compare``
and other statistics take. ``RankFrame(df)`` is ``df.rank`` for type checkers, which see no
namespaces. ``Report``, ``ResultsTable`` and ``Explanation`` are what ``report``, ``table``
and ``explain`` return.
"""

from typing import TYPE_CHECKING

from rankframe import _rooms
from rankframe._namespace import RankFrame
from rankframe._request.keywords import Columns as Names
from rankframe._request.keywords import Options, StatisticsOptions
from rankframe._request.labels import Metric
from rankframe._request.parameters import Gain, Signed
from rankframe._request.types import Frame
from rankframe.presets import Preset, PresetName, Users

if TYPE_CHECKING:
    from rankframe._evaluation.explanation import Explanation
    from rankframe._report.report import Report
    from rankframe._report.results import ResultsTable
else:
    _rooms.open_door(__name__)

__all__ = [
    "Explanation",
    "Frame",
    "Gain",
    "Metric",
    "Names",
    "Options",
    "Preset",
    "PresetName",
    "RankFrame",
    "Report",
    "ResultsTable",
    "Signed",
    "StatisticsOptions",
    "Users",
]
