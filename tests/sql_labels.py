"""Which labels have a form in SQL: the table in the page, ``python -m tests.sql_labels``."""

import functools
import re
from pathlib import Path

from rankframe import sql
from rankframe._request import labels

PAGE = Path(__file__).parents[1] / "notebooks" / "warehouse.md"
BEGIN, END = "<!-- labels -->\n", "<!-- end of labels -->\n"
#: what a label lacks
EXAMPLES = {
    "mcc": "mcc(collection=100)@10",
    "interpolated_precision": "interpolated_precision(recall=0.5)",
    "corrected": "corrected(collection=100, sampled=9)@10",
    "lauc": "lauc(collection=100)@10",
    "mpr": "mpr(collection=100)",
}


def written(label):
    """Write a label with what it needs."""
    if label in EXAMPLES:
        return EXAMPLES[label]
    try:
        labels.parse_metric(label)
    except ValueError:
        return f"{label}@10"
    return label


@functools.cache
def translations():
    """Pair each label with its query, or with the error that refuses it."""
    return [(label, *_translated(written(label))) for label in labels.every_label()]


def _translated(label):
    try:
        return sql(label), None
    except ValueError as error:
        return None, str(error)


def table():
    """Write the table of the page: labels that cost the same, or are refused for one reason."""
    costs, reasons = {}, {}
    for label, query, reason in translations():
        if query is None:
            why = re.sub(r"^.*? cannot be written in SQL: |; use rf.evaluate$", "", reason)
            why = re.sub(r"reads '\S+', (a column of subtopics|from \w+=)", r"reads \1", why)
            reasons.setdefault(why, []).append(f"`{written(label)}`")
        else:
            sorts = len({*re.findall(r"OVER \((?:[^()]|\([^()]*\))*ORDER BY[^)]*\)", query)})
            whole = "all rows of the truth" if "LEFT JOIN lists USING" in query else "hits"
            cost = f"{whole} | {sorts} | {query.count(' AS o ON ')}"
            costs.setdefault(cost, []).append(f"`{written(label)}`")
    lines = ["| joined | sorts | joins of hits with the ideal list | labels |", "|---|---|---|---|"]
    lines += [f"| {cost} | {', '.join(names)} |" for cost, names in sorted(costs.items())]
    lines += ["", "| refused, because | labels |", "|---|---|"]
    lines += [f"| {why} | {', '.join(names)} |" for why, names in reasons.items()]
    return "".join(f"{line}\n" for line in lines)


def updated(text):
    """Return the page with the current table."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
