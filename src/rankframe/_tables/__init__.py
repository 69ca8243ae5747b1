"""Run and truth as tables: roles, rules, ranks, and their join."""
