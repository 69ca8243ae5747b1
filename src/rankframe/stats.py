"""Statistics beyond the mean: curves, segments, harm, exposure, power, agreement of metrics."""

from rankframe import _rooms

_rooms.open_door(__name__)
