"""The names of the columns of shares: exposure(genre;all;log2;10) and alike, read and written."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias, cast, get_args

from rankframe._request.labels import RequestedMetric

Over: TypeAlias = Literal["all", "user"]
Target: TypeAlias = Literal["catalogue", "uniform", "history", "truth", "candidates"]
#: the weight of a rank, in addition to numbers p: p^(rank − 1)
WEIGHTS = ("none", "log2", "clipped", "hit", "norm", "inverse")


class Kind(NamedTuple):
    """The rows of shares: values of ``of``, over all lists or per user."""

    of: str
    over: Over


class ShareName(NamedTuple):
    """The parsed name of a column of shares."""

    name: str
    word: str
    of: str
    over: str
    weight: str = "none"
    k: int | None = None


def exposure(text: str) -> None:
    _, over, weight, k = text.split(";")
    is_weight = weight in WEIGHTS or 0 < float(weight) < 1
    if not is_weight or over not in get_args(Over) or (k and int(k) < 1):
        raise ValueError


def target(text: str) -> None:
    _, over, what = text.split(";")
    if over not in get_args(Over) or what not in (*get_args(Target), "judged"):
        raise ValueError


def values(text: str) -> None:
    if ";" in text:
        raise ValueError


def kind_of(metric: RequestedMetric) -> Kind | None:
    """Return which shares a metric reduces; None if it reduces other rows."""
    kinds = _kinds(metric.reads)
    if len(kinds) > 1:
        shares = " and ".join(sorted(f"{kind.of} over {kind.over}" for kind in kinds))
        msg = f"metric {metric.name!r} reads shares of {shares}: split it into one metric for each"
        raise ValueError(msg)
    return next(iter(kinds), None)


@functools.lru_cache(maxsize=4096)
def _kinds(reads: frozenset[str]) -> frozenset[Kind]:
    return frozenset(Kind(a.of, cast("Over", a.over)) for a in parsed(reads))


def check_shares_in_ties(whose: str, names: Iterable[str]) -> None:
    """Check that exposures are certain: ties may span a cut-off or ranks of different weight."""
    for share in parsed(names):
        if share.word != "target" and (share.k is not None or share.weight not in ("none", "hit")):
            msg = (
                f"{whose} has no exact expectation under ties: it reads {share.name!r}, whose "
                "cut-off or weights may split a block of ties (column 'tied'). Rank with "
                "ties='item'"
            )
            raise ValueError(msg)


def share_columns(kind: Kind, weight: str, k: int | None, target: Target | None) -> list[str]:
    """Return the names of the columns of exposure, share and, if there is one, target."""
    parameters = f"{kind.of};{kind.over};{weight};{k or ''}"
    names = [f"exposure({parameters})", f"share({parameters})"]
    return names if target is None else [*names, f"target({kind.of};{kind.over};{target})"]


# ------------------------------------------------------------------ reading names


def parsed(names: Iterable[str]) -> Iterable[ShareName]:
    for name in sorted(names):
        word, _, text = name.removesuffix(")").partition("(")
        if word in ("exposure", "share") and text.count(";") == 3:
            of, over, weight, k = text.split(";")
            yield ShareName(name, word, of, over, weight, int(k) if k else None)
        if word == "target" and text.count(";") == 2:
            of, over, what = text.split(";")
            yield ShareName(name, word, of, over, what)


def is_even(share: ShareName) -> bool:
    """Whether a target is the same for all rows, in the catalogue or not."""
    return share.of == "shown" and share.weight == "uniform"


def exposure_name(share: ShareName) -> str:
    return f"exposure({share.of};{share.over};{share.weight};{share.k or ''})"


def needs_truth(names: Iterable[str]) -> bool:
    """Return whether shares read the truth."""
    return any(
        share.weight == "hit" if share.word != "target" else share.weight in ("truth", "judged")
        for share in parsed(names)
    )
