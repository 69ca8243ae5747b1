"""Metrics as SQL: one SELECT for a warehouse, translated from the expressions of the metrics."""
