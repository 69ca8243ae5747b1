"""The tables that come in: any frame, its roles and rules, and the join of run and truth."""
