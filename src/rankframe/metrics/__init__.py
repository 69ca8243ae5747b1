"""Every metric, by family: one reduction over a user's rows, as a Polars expression.

To add a metric, add a function to a family and its name to the family's ``__all__``: the labels,
the namespaces and the invariant tests find it. :mod:`rankframe._vocabulary.derived_columns` defines
the columns.
"""

from typing import TYPE_CHECKING

from rankframe import _rooms
from rankframe._request.descriptions import describe
from rankframe._request.labels import of_label
from rankframe._request.registry import register_column
from rankframe.metrics import core, diversity, exposure, lists, order, trec, unbiased, user_models
from rankframe.metrics.core import *  # noqa: F403
from rankframe.metrics.diversity import *  # noqa: F403
from rankframe.metrics.exposure import *  # noqa: F403
from rankframe.metrics.lists import *  # noqa: F403
from rankframe.metrics.order import *  # noqa: F403
from rankframe.metrics.trec import *  # noqa: F403
from rankframe.metrics.unbiased import *  # noqa: F403
from rankframe.metrics.user_models import *  # noqa: F403

if TYPE_CHECKING:
    from rankframe._evaluation.row_verbs import rows
else:
    _rooms.open_door(__name__)

__all__ = ["describe", "of_label", "register_column", "rows"]
__all__ += core.__all__
__all__ += diversity.__all__
__all__ += exposure.__all__
__all__ += lists.__all__
__all__ += order.__all__
__all__ += trec.__all__
__all__ += unbiased.__all__
__all__ += user_models.__all__
