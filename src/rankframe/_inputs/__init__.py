"""What becomes a table: dicts, lists, matrices, files of judgments, and several runs."""

from rankframe._inputs import arguments as arguments  # it opens what verbs take
