"""NumPy, and the modules that compute with it and SciPy: imported at their first use.

They are of the extra ``stats``, and means and floors need none of them.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "always_valid",
    "human_labels",
    "np",
    "overlapping_samples",
    "power_statistics",
    "relative_differences",
    "run_variance",
    "segment_statistics",
    "statistics",
    "system_statistics",
]

if TYPE_CHECKING:
    import numpy as np

    from rankframe._comparison import (
        always_valid,
        human_labels,
        overlapping_samples,
        power_statistics,
        relative_differences,
        run_variance,
        segment_statistics,
        statistics,
        system_statistics,
    )
else:
    _module = cache(import_module)  # which takes 5 µs for a module that is there

    class _Package:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            return getattr(_module(self._name), name)

    np = _Package("numpy")
    for _name in __all__:
        if _name != "np":
            globals()[_name] = _Package(f"rankframe._comparison.{_name}")
