"""Metrics of others: ``register_metric``, and what their names and parameters must be like."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec

import polars as pl

from rankframe._request import labels, parameters, wrong_keywords
from rankframe._request.keywords import StatisticsOptions

P = ParamSpec("P")

_METHODS: set[str] = set()  # names in the namespace that are not metrics


@wrong_keywords.checked
def register_metric(
    label: str,
    *,
    aliases: Mapping[str, str] | None = None,
    value_range: tuple[float, float] = (0, 1),
    higher_is_better: bool | None = True,
    in_ties: Callable[..., pl.Expr] | None = None,
) -> Callable[[Callable[P, pl.Expr]], Callable[P, pl.Expr]]:
    """Turn a function into a metric for labels, methods, charts and the command line.

    Parameters
    ----------
    label
        The name that labels begin with, such as ``first_half``; with the parameters and the
        cut-off of a call it makes ``first_half(weight=2)@10``.
    aliases
        Other spellings, each with the label that it stands for; ``{}`` stands for a number in both.
    value_range
        The least and the greatest value; one may be infinite. Statistics rely on it, and raise an
        error at a value outside.
    higher_is_better
        False where lower values are better; None where neither is.
    in_ties
        A function with the same parameters, for tables in which equal scores form blocks: the exact
        expectation over all orders of each block, from ``block``, ``tied``, ``hits_above`` and the
        other columns of blocks. Without it, a metric that reads ranks raises an error on such
        tables.

    Returns
    -------
    Callable
        A decorator for the function that returns the metric as an expression on the vocabulary. Its
        parameters are checked against their annotations: ``k`` is the cut-off, ``int`` an integer ≥
        1, ``float`` a number ≥ 0, ``Literal`` a choice, ``rankframe.typing.Gain`` a gain.

    Raises
    ------
    ValueError
        If a name is taken or cannot be read as a label.
    TypeError
        If a parameter has no annotation that labels can read.

    Notes
    -----
    Registering a label again replaces it, as when a cell of a notebook runs twice. Do so after you
    change what the function reads or calls, because its expression is made once per label.

    Examples
    --------
    >>> @rf.register_metric("first_half")
    ... def first_half_at(k: int) -> pl.Expr:
    ...     '''The share of the first k items' hits that are in the upper half.'''
    ...     upper = (pl.col("relevant") & (pl.col("rank") <= k / 2)).sum()
    ...     return upper / (pl.col("relevant") & (pl.col("rank") <= k)).sum()
    >>> run = pl.DataFrame({"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3]})
    >>> truth = pl.DataFrame({"user": [1, 1], "item": [7, 9]})
    >>> run.rank.evaluate("first_half@4", truth=truth).item(0, "first_half@4")
    0.5
    >>> run.rank.first_half_at(4, truth=truth).equals(
    ...     run.rank.per_user("first_half@4", truth=truth)
    ... )
    True
    """
    spellings = dict(aliases or {})
    _check_free(label, label)
    for alias, target in spellings.items():
        _check_free(alias.lower(), label)
        _check_alias(alias, target, label)
    least, greatest = value_range
    if not least < greatest:
        msg = f"value_range must be a least and a greatest value, not {value_range!r}"
        raise ValueError(msg)

    def decorate(function: Callable[P, pl.Expr]) -> Callable[P, pl.Expr]:
        _check_free(function.__name__, label)
        _check_annotations(function)

        @functools.wraps(function)
        def metric_function(*args: P.args, **kwargs: P.kwargs) -> pl.Expr:
            form = in_ties if in_ties is not None and labels.in_tie_mode() else function
            return _one_expression(function.__name__, form(*args, **kwargs))

        for entry in labels.every_entry():
            if label == entry.label:
                labels.forget(entry)
        return labels.labelled(
            label,
            aliases=spellings,
            value_range=value_range,
            higher_is_better=higher_is_better,
            registered=True,
        )(metric_function)

    return decorate


def reserve_methods(names: Sequence[str]) -> None:
    """Reserve names of the namespace, so that no metric can have them."""
    _METHODS.update(names)


def _check_free(name: str, label: str) -> None:
    """Check that a name can be read as a label, and names no other metric."""
    if not re.fullmatch(r"[a-z][a-z0-9_.-]*(\{\}[a-z0-9_.-]*)*", name) or name.startswith(
        labels.PREFIX
    ):
        msg = f"{name!r} is not a label: use lower-case letters, digits, '_', '-' and '.'"
        raise ValueError(msg)
    if name in _METHODS:
        msg = f"{name!r} is a method of df.rank: choose another name"
        raise ValueError(msg)
    if re.search(r"-l[\d{]", name):
        msg = f"{name!r} ends like ranx's level of relevance, -l2: choose another name"
        raise ValueError(msg)
    parsed = labels.look_up(name.replace("{}", "7"))
    entry = parsed.entry if parsed else None
    if entry is not None and not (entry.registered and entry.label == label):
        whose = "registered" if entry.registered else "of rankframe"
        msg = f"{name!r} is the name of a metric {whose}, {entry.plain!r}: choose another"
        raise ValueError(msg)


def _check_alias(alias: str, target: object, label: str) -> None:
    """Check that an alias stands for a label of the metric, with the same numbers."""
    fits = isinstance(target, str) and target.count("{}") == alias.count("{}")
    if not fits or re.split(r"[@(]", str(target))[0].strip() != label:
        msg = f"alias {alias!r}: {target!r} must be a label of {label!r}, with a {{}} per number"
        raise ValueError(msg)


def _one_expression(name: str, result: object) -> pl.Expr:
    """Check what a registered function returns."""
    if not isinstance(result, pl.Expr):
        msg = f"{name} must return a polars expression, not {type(result).__name__}"
        raise TypeError(msg)
    if result.meta.has_multiple_outputs():
        msg = f"{name} must return one column, but this expression makes several: {result}"
        raise ValueError(msg)
    return result


def _check_annotations(function: Callable[..., Any]) -> None:
    """Check that labels can carry every parameter, and that none is a keyword of the verbs."""
    for name, parameter in labels.signature_of(function).parameters.items():
        try:
            parameters.type_of(parameter.annotation)
        except (LookupError, TypeError):
            msg = (
                f"{function.__name__}: {name} needs an annotation that labels can read (int, "
                f"float, either of them or None, a Literal of strings, Gain), not "
                f"{parameter.annotation!r}"
            )
            raise TypeError(msg) from None
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            msg = f"{function.__name__}: {name} must be a parameter that can be passed by name"
            raise TypeError(msg)
        if name in (*StatisticsOptions.__annotations__, "by", "truth"):
            msg = f"{function.__name__}: {name} is a keyword of per_user: rename the parameter"
            raise TypeError(msg)
        if name == "rel":
            msg = f"{function.__name__}: every label takes rel=: rename the parameter"
            raise TypeError(msg)
