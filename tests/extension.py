"""The package ``acme_metrics``, which registers metrics and columns of its own."""

import sys
from contextlib import contextmanager

import every_metric  # noqa: F401  (lists the metrics before there are more)

from rankframe._request import labels, registry


@contextmanager
def registered():
    """Import the package; take back afterwards what it has registered."""
    with unchanged_registry():
        sys.modules.pop("acme_metrics", None)
        import acme_metrics

        yield acme_metrics


@contextmanager
def unchanged_registry():
    """Take back what is registered inside."""
    known = (labels.METRICS, labels._ENTRIES, labels._ALIASES, registry.COLUMNS)
    before = [dict(entries) for entries in known]
    try:
        yield
    finally:
        for entries, kept in zip(known, before, strict=True):
            entries.clear()
            entries.update(kept)
        labels.look_up.cache_clear()
        labels._by_label.cache_clear()
        registry._reading.cache_clear()
