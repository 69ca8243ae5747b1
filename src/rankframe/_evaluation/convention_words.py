"""Conventions in words: what a choice such as ``users="both"`` means, and the names of tools.

A convention maps choices to values: the parameters of a metric by their names, and users,
undefined, average, relevant_at, ties, duplicates, depth, unjudged and ranks. One that it lacks has
its default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

from rankframe._request import parameters

Convention: TypeAlias = Mapping[str, Any]

#: The presets whose tools are written otherwise.
_TOOLS = {
    "trec_eval_9": "trec_eval 9",
    "rectools": "RecTools",
    "replay": "RePlay",
    "spark": "Spark",
    "lenskit": "LensKit",
    "recommenders": "Recommenders",
    "scikit_learn": "scikit-learn",
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "catboost": "CatBoost",
    "elasticsearch": "Elasticsearch",
    "sentence_transformers": "sentence-transformers",
    "surprise": "Surprise",
    "beir": "BEIR",
    "mteb": "MTEB",
}
#: What is meant by a choice that a convention lacks; None for the others.
_DEFAULTS: Convention = {
    "users": "truth",
    "average": "users",
    "ties": "item",
    "duplicates": "error",
    "unjudged": "miss",
    "ranks": 1,
    "single_precision": False,
}
#: Choices in words, first those of one value; templates, as a report has nouns of its own.
_WORDS = {
    "k": "cut at {value}",
    "k=None": "no cut-off",
    "gain": "{value} gain",
    "discount": "discount {value}",
    "discount=log2": "discount 1/log2(rank + 1)",
    "discount=rank": "discount 1/rank",
    "base": "discount 1/log(rank) of base {value}",
    "base=None": "discount 1/log2(rank + 1)",
    "base=2": "discount from rank 3 on",
    "ideal=truth": "the ideal list of the whole truth",
    "ideal=returned": "the ideal order of the returned {items}",
    "ideal=perfect": "an ideal list of k {items} of the highest grade",
    "ideal=same_length": "an ideal list as long as the list",
    "divide_by=k": "divided by k",
    "divide_by=relevant": "divided by the relevant {items}",
    "divide_by=attainable": "divided by what is attainable",
    "divide_by=returned": "divided by the returned {items}",
    "divide_by=hits": "divided by the hits",
    "users=truth": "over {users} with a relevant {item} (0 without a list)",
    "users=judged": "over {users} with a judgment (0 without a list)",
    "users=both": "over {users} with a list and a judgment",
    "users=run": "over {users} with a list",
    "users=all": "over {users} with a list or a judgment (0 without a list)",
    "users=rows": "over {users} as the judged table has them",
    "undefined": "undefined values as {value}",
    "undefined=None": "undefined values left out",
    "average": "the mean of the means per {value}",
    "average=users": "the mean of the {users}' values",
    "average=pooled": "pooled over {users}",
    "relevant_at": "relevant from grade {value} (gains of all grades > 0)",
    "relevant_at=None": "relevant from any grade > 0",
    "ties=item": "equal scores by {item}, descending",
    "ties=order": "equal scores in the order of rows",
    "ties=expected": "equal scores as the mean over their orders",
    "ties=pessimistic": "equal scores in the worst order",
    "ties=optimistic": "equal scores in the best order",
    "ties=32-bit": "scores rounded to 32 bits",
    "duplicates=error": "repeated {items} as they come",
    "duplicates=first": "repeated {items} removed and gaps closed",
    "duplicates=occupy": "repeated {items} removed and gaps kept",
    "depth": "lists cut at {value}",
    "depth=None": "whole lists",
    "unjudged=miss": "unjudged {items} not relevant",
    "unjudged=drop": "unjudged {items} dropped from lists",
    "ranks": "all ranks one lower (rank + 1)",
    "ranks=1": "ranks as they are",
    "single_precision=true": "scores rounded to 32 bits",
    "single_precision=false": "scores as they are",
}
_NOUNS: Mapping[str, str] = {"user": "user", "users": "users", "item": "item", "items": "items"}
_plain = partial(str.format, **_NOUNS)


def tools(presets: Iterable[str], *, last: str = ", ") -> str:
    """Name presets as their tools are written: ``RecTools, Spark``, the last one after ``last``."""
    *names, final = (_TOOLS.get(name, name) for name in presets)
    return last.join([", ".join(names), final] if names else [final])


def departures(convention: Convention, other: Convention) -> Convention:
    """Return the choices of a convention whose values differ from another's."""
    ours, theirs = ({**_DEFAULTS, **choices} for choices in (convention, other))
    return {
        name: ours.get(name)
        for name in {**convention, **other}
        if ours.get(name) != theirs.get(name)
    }


def words(convention: Convention, *, write: Callable[..., str] = _plain) -> str:
    """Write each choice of a convention: ``binary gain, over users with a list``."""
    return ", ".join(_words_of(name, value, write) for name, value in convention.items())


def _words_of(name: str, value: object, write: Callable[..., str]) -> str:
    """Write one choice; a value without words as in a label."""
    text = parameters.as_text(value)
    return write(
        _WORDS.get(f"{name}={text}") or _WORDS.get(name) or "{name}={value}", name=name, value=text
    )
