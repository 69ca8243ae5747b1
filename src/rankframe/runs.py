"""Several runs: stack them, fuse them, and compare their lists."""

from rankframe import _rooms

_rooms.open_door(__name__)
