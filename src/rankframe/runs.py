"""Several runs: put together, fused, compared by their lists."""

from typing import TYPE_CHECKING

from rankframe import _rooms

if TYPE_CHECKING:
    from rankframe._evaluation.overlap import overlap, rbo
    from rankframe._evaluation.side_by_side import side_by_side
    from rankframe._inputs.fusion import fuse
    from rankframe._tables.run_dicts import stack
else:
    _HOMES = _rooms.ROOMS["runs"] | {"stack": "_tables.run_dicts"}  # which takes no frame
    __getattr__, __dir__ = _rooms.doors(__name__, _HOMES)

__all__ = ["fuse", "overlap", "rbo", "side_by_side", "stack"]
