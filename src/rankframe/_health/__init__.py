"""Counts of what is in the tables, and of what is wrong with them."""
