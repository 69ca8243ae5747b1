"""The package ``acme_metrics``, which registers metrics and columns of its own."""

import sys
from contextlib import contextmanager

import every_metric  # noqa: F401  (lists the metrics before there are more)

from rankframe._request import labels, registry


@contextmanager
def registered():
    """Import the package; take back afterwards what it has registered."""
    kept = [dict(known) for known in (labels.METRICS, labels._ENTRIES, labels._ALIASES)]
    columns = dict(registry.COLUMNS)
    sys.modules.pop("acme_metrics", None)
    import acme_metrics

    try:
        yield acme_metrics
    finally:
        known = (labels.METRICS, labels._ENTRIES, labels._ALIASES)
        for entries, before in zip((*known, registry.COLUMNS), (*kept, columns), strict=True):
            entries.clear()
            entries.update(before)
        labels._by_label_alone.cache_clear()
        registry._reading.cache_clear()
