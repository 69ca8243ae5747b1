"""What lists give their items, together or each: coverage, concentration, fairness, calibration.

These metrics reduce shares: one row per item, genre or provider, with its exposure. Those of *all*
lists are one number per group of ``by``, which ``evaluate`` gives.
"""

from math import inf, log
from typing import Literal, TypeAlias

import polars as pl

from rankframe._labels import ColumnName, OptionalColumn, Weight, as_text, labelled
from rankframe.metrics._building_blocks import check_persistence
from rankframe.metrics._gains import divided

__all__ = [
    "awrf_at",
    "calibration_at",
    "category_count_at",
    "coverage_at",
    "disparity_at",
    "ee_disparity_at",
    "ee_loss_at",
    "ee_relevance_at",
    "entropy_at",
    "gini_at",
    "personalization_at",
]

Over: TypeAlias = Literal["all", "user"]
Target: TypeAlias = Literal["catalogue", "uniform", "history", "truth", "candidates"]


@labelled("coverage", value_range=(0, inf))
def coverage_at(k: int | None = None, *, of: ColumnName = "item", count: bool = False) -> pl.Expr:
    """
    Coverage: items that are shown in any list down to k / items of the catalogue.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    of
        ``"item"``; ``"shown"``: the items that are shown at all, whatever the catalogue; or a
        column of ``items=``, an item of several values giving each an equal part.
    count
        Give the number instead of the share.

    Returns
    -------
    Expr
        Float64 in [0, 1], or a number, named ``coverage@k``: one of all lists. Null where the
        catalogue has no value.

    Raises
    ------
    ValueError
        If k is not an integer ≥ 1, or an option is unknown.

    Notes
    -----
    Reads ``items=`` or ``history=``, whose items are the catalogue; an item outside it counts
    neither above nor below the line. Under ties, whole lists alone. RecTools, RePlay, Recommenders,
    Elliot, RecBole.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> run.rank.evaluate(rf.coverage_at(2), items=items).item(0, "coverage@2")
    0.5
    """
    if of == "shown" and not count:
        msg = "coverage_at: of='shown' covers all that is shown: ask for count=True, or of='item'"
        raise ValueError(msg)
    shown = (_exposure(k, of, "all", "none") > 0).sum().cast(pl.Float64)
    return shown if count else pl.when(pl.len() > 0).then(shown / pl.len())


@labelled("gini", higher_is_better=False)
def gini_at(
    k: int | None = None,
    *,
    of: ColumnName = "item",
    weight: Weight = "none",
    divide_by: Literal["n", "n1"] = "n",
) -> pl.Expr:
    """
    Gini coefficient of exposure: Σ (2j − n − 1)·x₍ⱼ₎ / (n·Σ x), x sorted; 0 = even, 1 = all on one.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    of
        ``"item"``; ``"shown"``: the items that are shown at all, whatever the catalogue; or a
        column of ``items=``, an item of several values giving each an equal part.
    weight
        What a place is worth: ``"none"`` = 1, ``"log"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"hit"`` = 1 if the item is relevant, or a number p: p^(rank − 1).
    divide_by
        ``"n"``, the number of values, or ``"n1"`` = n − 1, so that 1 can be reached.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``gini@k``: one of all lists. Null where nothing is exposed.

    Raises
    ------
    ValueError
        If k is not an integer ≥ 1, or an option is unknown.

    Notes
    -----
    Reads ``items=`` or ``history=``: what is never shown has exposure 0 and counts. LensKit and
    RecBole; Elliot gives 1 − Gini with ``"n1"``, Evidently that of ``of=shown``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> round(run.rank.evaluate(rf.gini_at(2), items=items).item(0, "gini@2"), 4)
    0.5833
    """
    x = _exposure(k, of, "all", weight)
    x = x.filter(x > 0) if of == "shown" else x
    n = x.len().cast(pl.Int64)
    place = 2 * x.rank("average") - n - 1  # equal exposures have equal parts, in any order
    whole = x.sum() * (n if divide_by == "n" else n - 1)
    return pl.when(whole > 0).then((place * x).sum() / whole)


@labelled("entropy", value_range=(0, inf))
def entropy_at(
    k: int | None = None,
    *,
    of: ColumnName = "item",
    over: Over = "all",
    weight: Weight = "none",
    base: float = 2,
    normalize: bool = False,
) -> pl.Expr:
    """
    Entropy of exposure: −Σ share·log share, in bits.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    of
        ``"item"``; ``"shown"``: the items that are shown at all, whatever the catalogue; or a
        column of ``items=``, an item of several values giving each an equal part.
    over
        ``"all"`` lists together, or each ``"user"``'s.
    weight
        What a place is worth: ``"none"`` = 1, ``"log"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"hit"`` = 1 if the item is relevant, or a number p: p^(rank − 1).
    base
        The base of the logarithm; > 1.
    normalize
        Divide by the logarithm of the number of values of the catalogue.

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``entropy@k``: one of all lists, or with ``over="user"`` of each user.
        Null where nothing is exposed, and with ``normalize`` where there is one value.

    Raises
    ------
    ValueError
        If k is not an integer ≥ 1, an option is unknown, or the base not > 1.

    Notes
    -----
    Recommenders' distributional coverage, Elliot's Shannon entropy.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> round(run.rank.evaluate(rf.entropy_at(2), items=items).item(0, "entropy@2"), 4)
    0.9183
    """
    if not base > 1:
        msg = f"entropy_at: base must be a number > 1, not {base!r}"
        raise ValueError(msg)
    share = _share(k, of, over, weight)
    value = pl.when(share > 0).then(share * (1 / share).log(base)).sum()
    if normalize:
        most = pl.col(f"values({of})").first().log(base)
        value = pl.when(most > 0).then(value / most)
    return pl.when(share.sum() > 0).then(value)


@labelled("personalization")
def personalization_at(k: int | None = None) -> pl.Expr:
    """
    Personalization: 1 − the mean cosine of two users' lists down to k.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``personalization@k``: one of all lists. Null where there are fewer
        than two lists.

    Raises
    ------
    ValueError
        If k is not an integer ≥ 1.

    Notes
    -----
    The cosine of two sets is their common items / √(product of their sizes). No pair is made: the
    sum over pairs is Σ over items of (Σ over lists 1/√n)² − the number of lists. recmetrics.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> round(run.rank.evaluate(rf.personalization_at(2)).item(0, "personalization@2"), 4)
    0.2929
    """
    exposure = _exposure(k, "shown", "all", "norm")
    lists = _exposure(k, "shown", "all", "inverse").sum().round()  # each adds n times 1/n
    pairs = lists * (lists - 1)
    common = ((exposure**2).sum() - lists) / pairs
    return pl.when(pairs > 0).then((1 - common).clip(0, 1))


_Distance: TypeAlias = Literal["tv", "kl", "js", "hellinger", "ratio", "cv"]


@labelled("disparity", value_range=(0, inf), higher_is_better=None)
def disparity_at(
    k: int | None = None,
    *,
    of: OptionalColumn = None,
    target: Target = "catalogue",
    distance: _Distance = "tv",
    weight: Weight = "none",
    over: Over = "all",
    alpha: float = 0.01,
) -> pl.Expr:
    """
    Disparity: the distance of shares of exposure from the shares that they should have.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    of
        The column of ``items=`` whose values share the exposure: a list of text (an item gives each
        an equal part), or text. May be left out where there is one column of lists.
    target
        What the share should be: that of the value in the ``"catalogue"``, ``"uniform"``, in the
        ``"history"`` (the user's own where each user is measured), in the relevant items of the
        ``"truth"``, or among ``"candidates"``, the catalogue less what each user had.
    distance
        ``"tv"`` = ½ Σ |share − target|; ``"kl"`` = Σ target·log2(target / ((1 − α)·share +
        α·target)); ``"js"``, the Jensen–Shannon divergence in bits; ``"hellinger"`` =
        √(½ Σ (√share − √target)²); of share / target where the target is > 0: ``"ratio"`` = least /
        greatest, ``"cv"`` = standard deviation / mean.
    weight
        What a place is worth: ``"none"`` = 1, ``"log"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"hit"`` = 1 if the item is relevant, or a number p: p^(rank − 1).
    over
        ``"all"`` lists together, or each ``"user"``'s.
    alpha
        α, the part of the target that is mixed in for ``"kl"``, between 0 and 1.

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``disparity(of=…)@k``: one of all lists, or with ``over="user"`` of each
        user. Null where there is no exposure or no target.

    Raises
    ------
    ValueError
        If k is not an integer ≥ 1, an option is unknown, or α not between 0 and 1.

    Notes
    -----
    Reads ``items=``. Elliot's RSP is ``"cv"`` with target ``"candidates"``, PopRSP with
    ``of=`` the head and the tail, REO and PopREO with ``weight="hit"`` and target ``"truth"``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> round(run.rank.evaluate(rf.disparity_at(2, of="genre"), items=items).item(0, 1), 4)
    0.4583
    """
    return _apart(
        _share(k, of, over, weight),
        _target(of, over, target),
        distance,
        _checked("disparity", alpha),
    )


@labelled("calibration", value_range=(0, inf), higher_is_better=False)
def calibration_at(
    k: int | None = None,
    *,
    of: OptionalColumn = None,
    distance: Literal["kl", "hellinger", "js", "tv"] = "kl",
    weight: Weight = "none",
    alpha: float = 0.01,
) -> pl.Expr:
    """
    Miscalibration: how far the genres of the list are from those of the user's history.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    of
        The column of ``items=`` whose values share the exposure: a list of text (an item gives each
        an equal part), or text. May be left out where there is one column of lists.
    distance
        ``"kl"`` = Σ profile·log2(profile / ((1 − α)·list + α·profile)), in bits; ``"hellinger"`` =
        √(½ Σ (√profile − √list)²); ``"js"``, the Jensen–Shannon divergence in bits; or ``"tv"`` =
        ½ Σ |profile − list|.
    weight
        What a place is worth: ``"none"`` = 1, ``"log"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"hit"`` = 1 if the item is relevant, or a number p: p^(rank − 1).
    alpha
        α, the part of the profile that is mixed into the list for ``"kl"``, between 0 and 1.

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``calibration(of=…)@k``; 0 = calibrated. Null for a user without a list,
        or without a history of known values.

    Raises
    ------
    ValueError
        If k is not an integer ≥ 1, an option is unknown, or α not between 0 and 1.

    Notes
    -----
    Reads ``items=`` and ``history=``. Steck, *RecSys* 2018.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> history = pl.DataFrame({"user": [1, 1, 2], "item": ["c", "a", "a"]})
    >>> calibration = rf.calibration_at(2, distance="tv")
    >>> run.rank.evaluate(calibration, items=items, history=history).item(0, 1)
    0.125
    """
    share, target = _share(k, of, "user", weight), _target(of, "user", "history")
    return _apart(share, target, distance, _checked("calibration", alpha))


@labelled("awrf")
def awrf_at(
    k: int | None = None,
    *,
    of: OptionalColumn = None,
    target: Target = "catalogue",
    weight: Weight = "clipped",
    over: Over = "user",
) -> pl.Expr:
    """
    Attention-weighted rank fairness: 1 − JS(share, target), the divergence in nats.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    of
        The column of ``items=`` whose values share the exposure: a list of text (an item gives each
        an equal part), or text. May be left out where there is one column of lists.
    target
        What the share should be: that of the value in the ``"catalogue"``, ``"uniform"``, in the
        ``"history"``, the ``"truth"`` or among ``"candidates"``, as in ``disparity``.
    weight
        What a place is worth: ``"none"`` = 1, ``"log"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"hit"`` = 1 if the item is relevant, or a number p: p^(rank − 1).
    over
        ``"all"`` lists together, or each ``"user"``'s.

    Returns
    -------
    Expr
        Float64 in [1 − ln 2, 1], named ``awrf(of=…)@k``; 1 = fair. Null where there is no
        exposure or no target.

    Raises
    ------
    ValueError
        If k is not an integer ≥ 1, or an option is unknown.

    Notes
    -----
    Reads ``items=``. A similarity, in nats, as TREC's Fair Ranking Track of 2022 fixed it.
    Sapiezynski et al., *WWW* 2019.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> round(run.rank.evaluate(rf.awrf_at(2), items=items).item(0, "awrf@2"), 4)
    0.7925
    """
    apart = _apart(_share(k, of, over, weight), _target(of, over, target), "js", 0.01)
    return 1 - log(2) * apart


@labelled("categories")
def category_count_at(
    k: int, *, of: OptionalColumn = None, divide_by: Literal["k", "values"] = "k"
) -> pl.Expr:
    """
    Categories: different values in the first k of the list / k.

    Parameters
    ----------
    k
        Cut-off.
    of
        The column of ``items=`` whose values share the exposure: a list of text (an item gives each
        an equal part), or text. May be left out where there is one column of lists.
    divide_by
        ``"k"``, or ``"values"``: the number of values of the catalogue.

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``categories(of=…)@k``. Null for a user without a list.

    Raises
    ------
    ValueError
        If k is not an integer ≥ 1, or an option is unknown.

    Notes
    -----
    Reads ``items=``. RePlay's CategoricalDiversity.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> run.rank.per_user(rf.category_count_at(2), items=items)["categories@2"].to_list()
    [1.0, 0.5]
    """
    shown = (_exposure(k, of, "user", "none") > 0).sum().cast(pl.Float64)
    return divided(shown, k) if divide_by == "k" else shown / pl.col(f"values({of or ''})").first()


@labelled("ee_disparity", higher_is_better=False, value_range=(0, inf))
def ee_disparity_at(k: int | None = None, *, p: float = 0.5) -> pl.Expr:
    """
    Expected-exposure disparity: Σ ε² over the items of the user, ε = p^(rank − 1).

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    p
        The chance that a reader goes on to the next item, between 0 and 1.

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``ee_disparity@k``. Null for a user without a list.

    Raises
    ------
    ValueError
        If k is not an integer ≥ 1, or p not between 0 and 1.

    Notes
    -----
    Diaz, Mitra, Ekstrand, Biega and Carterette, *CIKM* 2020, for one ranking per user.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> run.rank.per_user(rf.ee_disparity_at(), items=items)["ee_disparity"].to_list()
    [1.25, 1.0]
    """
    check_persistence(p)
    exposure = _exposure(k, "item", "user", p)
    return pl.when(exposure.sum() > 0).then((exposure**2).sum())


@labelled("ee_relevance", value_range=(0, inf))
def ee_relevance_at(k: int | None = None, *, p: float = 0.5) -> pl.Expr:
    """
    Expected-exposure relevance: Σ ε·ε*, ε = p^(rank − 1), ε* = equal exposure of equal relevance.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    p
        The chance that a reader goes on to the next item, between 0 and 1.

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``ee_relevance@k``. Null for a user without a list or without a relevant
        item.

    Raises
    ------
    ValueError
        If k is not an integer ≥ 1, or p not between 0 and 1.

    Notes
    -----
    Reads the truth. Of m relevant items of n each should have (1 − pᵐ)/(m(1 − p)), of the others
    (pᵐ − pⁿ)/((n − m)(1 − p)); n = judged or listed items of the user. Diaz et al., *CIKM* 2020,
    without the factor 2 of some.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> truth = pl.DataFrame({"user": [1], "item": ["b"]})
    >>> run.rank.evaluate(rf.ee_relevance_at(), truth=truth).item(0, "ee_relevance")
    1.0
    """
    check_persistence(p)
    exposure, due = _exposure(k, "item", "user", p), _due(p)
    return _where_both(exposure, (exposure * due).sum())


@labelled("ee_loss", value_range=(0, inf), higher_is_better=False)
def ee_loss_at(k: int | None = None, *, p: float = 0.5) -> pl.Expr:
    """
    Expected-exposure loss: Σ (ε − ε*)² = disparity − 2·relevance + Σ ε*².

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    p
        The chance that a reader goes on to the next item, between 0 and 1.

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``ee_loss@k``. Null for a user without a list or without a relevant item.

    Raises
    ------
    ValueError
        If k is not an integer ≥ 1, or p not between 0 and 1.

    Notes
    -----
    Reads the truth. Diaz et al., *CIKM* 2020; see ``ee_relevance``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> truth = pl.DataFrame({"user": [1], "item": ["b"]})
    >>> run.rank.evaluate(rf.ee_loss_at(), truth=truth).item(0, "ee_loss")
    0.5
    """
    check_persistence(p)
    exposure, due = _exposure(k, "item", "user", p), _due(p)
    return _where_both(exposure, ((exposure - due) ** 2).sum())


# ------------------------------------------------------------------ words of these formulas


def _exposure(k: int | None, of: str | None, over: str, weight: str | float) -> pl.Expr:
    return pl.col(f"exposure({of or ''};{over};{as_text(weight)};{k or ''})")


def _share(k: int | None, of: str | None, over: str, weight: str | float) -> pl.Expr:
    return pl.col(f"share({of or ''};{over};{as_text(weight)};{k or ''})")


def _target(of: str | None, over: str, what: str) -> pl.Expr:
    return pl.col(f"target({of or ''};{over};{what})")


def _checked(label: str, alpha: float) -> float:
    if not 0 < alpha < 1:
        msg = f"{label}_at: alpha must be a number between 0 and 1, not {alpha!r}"
        raise ValueError(msg)
    return alpha


def _apart(share: pl.Expr, target: pl.Expr, distance: str, alpha: float) -> pl.Expr:
    """Distance of two distributions, null where one of them is not there."""
    p, q = target, share.fill_null(0.0)
    ratio = (q / p).filter(p > 0)
    values = {
        "tv": (q - p).abs().sum() / 2,
        "kl": _divergence(p, (1 - alpha) * q + alpha * p),
        "js": (_divergence(p, (p + q) / 2) + _divergence(q, (p + q) / 2)) / 2,
        "hellinger": (((q.sqrt() - p.sqrt()) ** 2).sum() / 2).sqrt(),
        "ratio": ratio.min() / ratio.max(),
        "cv": ratio.std(ddof=0) / ratio.mean(),
    }
    value = values[distance]
    if distance in ("kl", "js"):
        value = value.clip(lower_bound=0)  # two that are equal may be -1e-17 apart
    there = (share.sum() > 0) & (target.sum() > 0)
    if distance in ("ratio", "cv"):
        there &= ratio.max() > 0
    return pl.when(there).then(value)


def _divergence(p: pl.Expr, q: pl.Expr) -> pl.Expr:
    """Kullback–Leibler divergence in bits."""
    return pl.when(p > 0).then(p * (p / q).log(2)).sum()


def _due(p: float) -> pl.Expr:
    """The expected exposure that is due to an item: that of its grade, shared equally."""
    wanted = pl.col("target(item;user;truth)") > 0
    m, n = wanted.sum().cast(pl.Float64), _rows_of_user(p)
    of_relevant = (1 - pl.lit(p).pow(m)) / (m * (1 - p))
    of_others = (pl.lit(p).pow(m) - pl.lit(p).pow(n)) / ((n - m) * (1 - p))
    return pl.when(wanted).then(of_relevant).otherwise(of_others)


def _rows_of_user(p: float) -> pl.Expr:
    """Number of the judged or listed items; to read them, whatever k, makes them rows."""
    listed = _exposure(None, "item", "user", p).len()
    return (listed + 0 * pl.col("target(item;user;judged)").len()).cast(pl.Float64)


def _where_both(exposure: pl.Expr, value: pl.Expr) -> pl.Expr:
    there = pl.col("target(item;user;truth)").sum() > 0
    return pl.when(there & (exposure.sum() > 0)).then(value)
