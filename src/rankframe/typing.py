"""Types for code that wraps rankframe: ``from rankframe.typing import Metric, Options``.

``Options`` are the keywords of ``evaluate``, columns' roles included, for wrappers that hand them
through: ``def report(run: Frame, **options: Unpack[Options])``. ``StatisticsOptions`` are those and
the two of a table of values, which ``compare`` and other statistics take.
"""

from rankframe._request.keywords import Columns as Columns
from rankframe._request.keywords import Options as Options
from rankframe._request.keywords import StatisticsOptions as StatisticsOptions
from rankframe._request.labels import Metric as Metric
from rankframe._request.parameters import AnyGain as AnyGain
from rankframe._request.parameters import Gain as Gain
from rankframe._request.parameters import Signed as Signed
from rankframe._request.types import Frame as Frame
from rankframe.presets import Preset as Preset
from rankframe.presets import PresetName as PresetName
from rankframe.presets import Users as Users

__all__ = [
    "AnyGain",
    "Columns",
    "Frame",
    "Gain",
    "Metric",
    "Options",
    "Preset",
    "PresetName",
    "Signed",
    "StatisticsOptions",
    "Users",
]
