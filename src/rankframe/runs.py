"""Several runs: put together, fused, compared by their lists."""

from rankframe import _rooms

_rooms.open_door(__name__)
