"""Follow trec_eval: labels from its sets of measures, and text in its three columns."""

import re
from collections.abc import Iterator, Sequence

import polars as pl

#: The line that names the run; it is not a measure.
RUN_ID = "runid"
_CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_TENTHS = range(11)
#: What trec_eval computes for a measure without a cut-off or a level.
_MANY = {
    **dict.fromkeys(("P", "recall", "map_cut", "ndcg_cut", "relative_P"), _CUTS),
    "success": (1, 5, 10),
    "unj": (5, 10, 20),
    "iprec_at_recall": tuple(f"{tenth / 10:.2f}" for tenth in _TENTHS),
    "Rprec_mult": tuple(f"{2 * tenth / 10:.2f}" for tenth in _TENTHS[1:]),
}
_COUNTS = "num_q num_ret num_rel num_rel_ret"
_OFFICIAL = f"{RUN_ID} {_COUNTS} map gm_map Rprec bpref recip_rank iprec_at_recall P"
#: In the order in which trec_eval prints them; ``relstring`` is text, and left out.
_SETS = {
    "official": _OFFICIAL,
    "set": f"{RUN_ID} {_COUNTS} utility set_P set_relative_P set_recall set_map set_F",
    "all_trec": f"{_OFFICIAL} recall infAP gm_bpref Rprec_mult utility 11pt_avg binG G ndcg "
    "ndcg_rel Rndcg ndcg_cut map_cut relative_P success set_P set_relative_P set_recall set_map "
    "set_F num_nonrel_judged_ret rbp rbp_resid unj",
}
_NEW = ("rbp", "rbp_resid", "unj")  # in version 10
_NUMBERS = r"\d*\.?\d+"
_WITH_NUMBERS = re.compile(rf"(?P<name>{'|'.join(_MANY)})\.(?P<numbers>{_NUMBERS}(?:,{_NUMBERS})*)")


def spelled_out(labels: Sequence[str], preset: str | None = None) -> list[str]:
    """Expand ``P.5,10``, and sets of measures as a preset has them, into labels, each once."""
    nine = preset in ("trec_eval_9", "pytrec_eval", "beir", "mteb")
    names = (name for label in labels for name in _spelled(label.strip(), nine=nine))
    return list(dict.fromkeys(names))


def is_measure_set(label: str) -> bool:
    return label.strip() in _SETS


def _spelled(label: str, *, nine: bool) -> Iterator[str]:
    if label in _SETS:
        for name in _SETS[label].split():
            if nine and name in _NEW:
                continue
            yield from (f"{name}_{number}" for number in _MANY[name]) if name in _MANY else [name]
    elif match := _WITH_NUMBERS.fullmatch(label):
        name, numbers = match["name"], match["numbers"].split(",")
        levels = isinstance(_MANY[name][0], str)
        yield from (f"{name}_{f'{float(number):.2f}' if levels else number}" for number in numbers)
    else:
        yield label


def lines_of(rows: pl.DataFrame, user: str) -> str:
    """Write one line per value: measure, user and value, as trec_eval does."""
    return "".join(
        line_of(measure, str(row[user]), value)
        for row in rows.iter_rows(named=True)
        for measure, value in row.items()
        if measure != user
    )


def line_of(measure: str, user: str, value: object) -> str:
    """Write a line: counts as integers, other numbers with four digits."""
    text = "nan" if value is None else str(value)
    if isinstance(value, int | float):
        is_count = measure.startswith("num_") and float(value).is_integer()
        text = f"{value:.0f}" if is_count else f"{value:6.4f}"
    return f"{measure:<22}\t{user}\t{text}\n"
