"""The tables that come in: any frame, its roles and rules, and the join of run and truth."""

from rankframe._tables import arguments as arguments  # it opens what verbs take
