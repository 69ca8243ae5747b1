"""Types for code that wraps rankframe: ``from rankframe.typing import Metric, Options``.

``Options`` are the keywords of ``evaluate``, columns' roles included, for wrappers that hand them
through: ``def report(run: Frame, **options: Unpack[Options])``.
"""

from rankframe._frames import Frame as Frame
from rankframe._labels import AnyGain as AnyGain
from rankframe._labels import Gain as Gain
from rankframe._labels import Metric as Metric
from rankframe._labels import Signed as Signed
from rankframe._options import Columns as Columns
from rankframe._options import Options as Options
from rankframe._options import Users as Users
from rankframe.presets import Preset as Preset

__all__ = ["AnyGain", "Columns", "Frame", "Gain", "Metric", "Options", "Preset", "Signed", "Users"]
