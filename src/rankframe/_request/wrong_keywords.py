"""The answer to a wrong keyword: the call's own word for it, or the nearest that it takes."""

import functools
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar, cast

from rankframe._request import keywords

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

#: What others call our keywords. Those in capitals are no keywords: what comes by position.
WORDS = {
    "METRICS": "metrics measures",
    "k": "n cutoff top_k",
    "TABLE": "run df preds reco recommendations",
    "truth": "qrels qrel ground_truth y_true labels target interactions",
    "by": "groups segment segments",
    "model": "system",
    "margin": "tolerance",
    "at_least": "threshold",
    "relevant_at": "threshold",
    "relevance": "rating",
    "user": "query_id",
    "score": "y_score",
    "baseline": "control",
    "confidence": "alpha",
    "resamples": "n_resamples",
    "seed": "random_state seeds",
    "items": "catalog",
    "history": "prev_interactions",
    "weights": "sample_weight",
    "undefined": "zero_division",
}
#: Where it is not enough to name the keyword; of a cut-off, where the call takes labels.
_HOW = {
    "METRICS": "metrics come by position, as in {call}(…, 'ndcg@10')",
    "LABEL": "write the cut-off in the label, as in 'ndcg@10'",
    "TABLE": "the table comes first, by position",
    "confidence": "{own} is 1 − alpha",
}
#: Words that lead out of a call: to other verbs, or nowhere.
_ELSEWHERE = {
    "baseline": "it is an option of compare, gate, harm and power",
    "paired": "only compare, gate, report, table and plot.compare support groups of different "
    "users",
    "cluster": "summarize and compare support clusters of users; this function does not",
    "over": "summarize, compare and table support several training runs, for tables in memory",
    "total": "it is an option of evaluate, summarize, compare, gate and Meter.compute",
    "chance": "it is an option of evaluate, for whole tables in Python and on the command line",
    "weights": "it has one value per user; weights are options of evaluate and summarize",
    "average": "it is an option of evaluate, summarize, compare, table and sql",
    "count_users": "it is an option of evaluate",
    "human": "it is an option of summarize, compare, gate, report and power",
    "parent": "pass it to from_lists, and its result to this function",
    "exclude": "pass it to evaluate; in a matrix of scores: scores[seen] = -np.inf",
    "ties": "pass it to with_rank, and its result to this function",
    "seed": "the same call always has the same result",
}
_NAMES_OF_COLUMNS = ("by", "model", "weights", "cluster", "over")


def checked(function: FunctionT) -> FunctionT:
    """Let a function answer a wrong keyword, and a second table among the metrics.

    Here alone a None that is passed is not yet a default: it wins over a preset.
    """

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        check(function, options)
        if any(map(is_frame, args[1:])) and [*taken_by(function)][:2] == ["TABLE", "METRICS"]:
            msg = (
                f"{_name_of(function)} takes one table by position: pass the truth as truth=, or "
                'two runs as {"old": old, "new": new}'
            )
            raise TypeError(msg)
        if "preset" in options:
            options["preset"] = keywords.preset_beside(options)
        return function(*args, **options)

    return cast("FunctionT", call)


def is_frame(value: object) -> bool:
    """Whether a value is a table of Polars, pandas or Spark, which need not be imported."""
    return type(value).__name__ in ("DataFrame", "LazyFrame")


def check(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise TypeError at the first keyword that a function does not take, or not of a table."""
    taken = taken_by(function)
    for name in options:
        if name not in taken:
            raise TypeError(answer(_name_of(function), name, taken))
        if name in _NAMES_OF_COLUMNS and is_frame(options[name]):
            msg = f"{name}= names a column: join the table to the truth, and name its column"
            raise TypeError(msg)


def _name_of(function: Callable[..., Any]) -> str:
    name = function.__qualname__.rpartition("<locals>.")[2].removeprefix("RankFrame.")
    return name.removesuffix(".__init__")


@functools.cache
def taken_by(function: Callable[..., Any]) -> Collection[str]:
    """Return all keywords of a function; words in capitals stand for what comes by position."""
    taken: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind == parameter.VAR_KEYWORD:
            name = re.findall(r"\w+", str(parameter.annotation))[-1]
            taken += getattr(keywords, name).__annotations__
        elif parameter.kind == parameter.VAR_POSITIONAL:
            taken += ["METRICS", "LABEL"] if name == "metrics" else ["METRICS"]
        elif name != "self":
            taken.append("TABLE" if parameter.kind == parameter.POSITIONAL_ONLY else name)
    return dict.fromkeys(taken)


def answer(
    call: str,
    name: str,
    taken: Collection[str],
    write: Callable[[str], str] = repr,
    typed: str = "",
) -> str:
    """Name what the call takes instead: by meaning, else by spelling, else all that it takes."""
    from difflib import get_close_matches

    begin = f"{call} has no {typed or f'keyword {name!r}'}"
    same = [own for own, others in WORDS.items() if name in (own, *others.split())]
    same += ["LABEL"] if "k" in same else []
    if match := [own for own in same if own in taken]:
        how = _HOW.get(match[0], "here it is {own}").format(call=call, own=write(match[0]))
        return f"{begin}: {how}"
    if match := [word for word in (name, *same) if word in _ELSEWHERE]:
        return f"{begin}: {_ELSEWHERE[match[0]]}"
    own = [word for word in taken if word.islower()]
    swapped = [word for word in own if sorted(word) == sorted(name)]
    if match := get_close_matches(name, swapped or own, n=1, cutoff=0 if swapped else 0.6):
        return f"{begin}; the nearest is {write(match[0])}"
    return begin if typed else f"{begin}; it takes {', '.join(map(write, own))}"
