"""Every metric, by family: one reduction over a user's rows, as a Polars expression.

To add a metric, add a function to a family and its name to the family's ``__all__``: the labels,
the namespaces and the invariant tests find it. :mod:`rankframe._vocabulary.derived_columns` defines
the columns.
"""

from rankframe.metrics.core import *  # noqa: F403
from rankframe.metrics.diversity import *  # noqa: F403
from rankframe.metrics.exposure import *  # noqa: F403
from rankframe.metrics.lists import *  # noqa: F403
from rankframe.metrics.order import *  # noqa: F403
from rankframe.metrics.trec import *  # noqa: F403
from rankframe.metrics.unbiased import *  # noqa: F403
from rankframe.metrics.user_models import *  # noqa: F403
