"""The names of the columns of shares: exposure(genre;all;log2;10) and alike, read and written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias, cast

from rankframe._request import registry
from rankframe.errors import Problem, option

Over: TypeAlias = Literal["all", "user"]
Target: TypeAlias = Literal["catalogue", "uniform", "history", "truth", "candidates"]


class Distribution(NamedTuple):
    """The rows of shares: values of ``of``, over all lists or per user."""

    of: str
    over: Over


class ShareName(NamedTuple):
    """The parsed name of a column of shares."""

    name: str
    word: str
    of: str
    over: str
    weight: str | float = "none"  # of a target, what it is
    k: int | None = None

    @property
    def exposure(self) -> str:
        """The column from which a share is made."""
        if self.word == "exposure" and self.name:
            return self.name
        return registry.name("exposure", of=self.of, over=self.over, weight=self.weight, k=self.k)


def distribution_of(metric: str, reads: frozenset[str]) -> Distribution | None:
    """Return which shares a metric reduces; None if it reduces other rows."""
    every = {Distribution(share.of, cast("Over", share.over)) for share in parsed(reads)}
    if len(every) > 1:
        shares = " and ".join(sorted(f"{share.of} over {share.over}" for share in every))
        msg = f"metric {metric!r} reads shares of {shares}: split it into one metric for each"
        raise ValueError(msg)
    return next(iter(every), None)


def check_shares_in_ties(whose: str, names: Iterable[str]) -> None:
    """Check that exposures are certain: ties may span a cut-off or ranks of different weight."""
    for share in parsed(names):
        if share.word != "target" and (share.k is not None or share.weight not in ("none", "hit")):
            msg = (
                f"{whose} has no exact expectation under ties: it reads {share.name!r}, whose "
                "cut-off or weights may split a block of ties (column 'tied'). Rank with "
                f"{option('ties', 'item')}"
            )
            raise ValueError(Problem(msg))


def share_columns(
    kind: Distribution, weight: str | float, k: int | None, target: Target | None
) -> list[str]:
    """Return the names of the columns of exposure, share and, if there is one, target."""
    of = kind._asdict()
    names = [registry.name(word, **of, weight=weight, k=k) for word in ("exposure", "share")]
    return names if target is None else [*names, registry.name("target", **of, what=target)]


# ------------------------------------------------------------------ reading names


def parsed(names: Iterable[str]) -> Iterable[ShareName]:
    for name in sorted(names):
        word = name.partition("(")[0]
        if word != name and word in ("exposure", "share", "target"):
            of, *rest = registry.read_parameters(name)
            yield ShareName(name, word, of or "", *rest)


def is_even(share: ShareName) -> bool:
    """Whether the target is uniform over what is shown."""
    return share.of == "shown" and share.weight == "uniform"


def needs_truth(names: Iterable[str]) -> bool:
    """Return whether shares read the truth."""
    return any(
        share.weight == "hit" if share.word != "target" else share.weight in ("truth", "judged")
        for share in parsed(names)
    )
