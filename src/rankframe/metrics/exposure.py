"""Exposure of items in one list or in all lists: coverage, concentration, fairness, miscalibration.

These metrics reduce shares: one row per item, genre or provider, with its exposure. Metrics of
*all* lists have one number per group of ``by``, which ``evaluate`` returns.
"""

from math import inf, log
from typing import Literal, TypeAlias

import polars as pl

from rankframe._request import keywords, registry
from rankframe._request.gain_functions import divided
from rankframe._request.labels import labelled
from rankframe._request.parameters import ColumnName, OptionalColumn, PlaceDiscount
from rankframe._request.share_names import Over, Target

__all__ = [
    "awrf_at",
    "category_count_at",
    "coverage_at",
    "disparity_at",
    "ee_disparity_at",
    "ee_loss_at",
    "ee_relevance_at",
    "entropy_at",
    "gini_at",
    "miscalibration_at",
    "personalization_at",
]


@labelled(
    "coverage", value_range=(0, inf), in_words="How much of the catalogue do users ever get to see?"
)
def coverage_at(k: int | None = None, *, of: ColumnName = "item", count: bool = False) -> pl.Expr:
    """
    Coverage: items shown in at least one list down to k / items of the catalogue.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    of
        ``"item"``; ``"shown"``: only items that are in some list, regardless of the catalogue; or
        a column of ``items=``: an item with several values is split equally among them.
    count
        Return the number instead of the share.

    Returns
    -------
    Expr
        Float64, a share in [0, 1] or a number, named ``coverage@k``: one for all lists; 0 where no
        list has an item at rank ≤ k. Null where the catalogue has no value.

    Notes
    -----
    Reads ``items=`` or ``history=``, whose items are the catalogue. Items outside it are
    ignored, unless ``of="shown"``. RecTools, RePlay, Recommenders, Elliot and RecBole have it too.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> run.rank.evaluate(rf.metrics.coverage_at(2), items=items).item(0, "coverage@2")
    0.5
    """
    if of == "shown" and not count:
        msg = "coverage_at: of='shown' covers all that is shown: use count=True, or of='item'"
        raise ValueError(msg)
    shown = (_exposure(k, of, "all", "none") > 0).sum().cast(pl.Float64)
    return shown if count else pl.when(pl.len() > 0).then(shown / pl.len())


@labelled(
    "gini",
    higher_is_better=False,
    in_words="Is exposure spread over the catalogue, or concentrated on few items?",
)
def gini_at(
    k: int | None = None,
    *,
    of: ColumnName = "item",
    discount: PlaceDiscount = "none",
    divide_by: Literal["n", "n1"] = "n",
) -> pl.Expr:
    """
    Gini coefficient of exposure: Σ (2j − n − 1)·x₍ⱼ₎ / (n·Σ x), x sorted; 0 = even, 1 = all on one.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    of
        ``"item"``; ``"shown"``: only items that are in some list, regardless of the catalogue; or
        a column of ``items=``: an item with several values is split equally among them.
    discount
        The discount of a place: ``"none"`` = 1, ``"log2"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"hit"`` = 1 if the item is relevant, or a number p: p^(rank − 1).
    divide_by
        ``"n"``, the number of values, or ``"n1"`` = n − 1, so that 1 can be reached.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``gini@k``: one for all lists. Null where nothing is exposed.

    Notes
    -----
    Reads ``items=`` or ``history=``: items that are never shown count, with exposure 0. LensKit and
    RecBole; Elliot returns 1 − Gini with ``"n1"``, Evidently uses ``of=shown``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> round(run.rank.evaluate(rf.metrics.gini_at(2), items=items).item(0, "gini@2"), 4)
    0.5833
    """
    x = _exposure(k, of, "all", discount)
    x = x.filter(_is_shown(k, of, "all")) if of == "shown" else x
    n = x.len().cast(pl.Int64)
    place = 2 * x.rank("average") - n - 1  # equal exposures have the same mean place, in any order
    whole = x.sum() * (n if divide_by == "n" else n - 1)
    return pl.when(whole > 0).then((place * x).sum() / whole)


@labelled("entropy", value_range=(0, inf), in_words="How evenly is exposure spread over the items?")
def entropy_at(
    k: int | None = None,
    *,
    of: ColumnName = "item",
    over: Over = "all",
    discount: PlaceDiscount = "none",
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
        ``"item"``; ``"shown"``: only items that are in some list, regardless of the catalogue; or
        a column of ``items=``: an item with several values is split equally among them.
    over
        ``"all"`` lists together, or the list of each ``"user"``.
    discount
        The discount of a place: ``"none"`` = 1, ``"log2"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"hit"`` = 1 if the item is relevant, or a number p: p^(rank − 1).
    base
        The base of the logarithm; > 1.
    normalize
        Divide by the logarithm of the number of values of the catalogue; of the shown ones with
        ``of="shown"``.

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``entropy@k``: one for all lists, or one per user with ``over="user"``.
        Null where nothing is exposed, and with ``normalize`` where there is one value.

    Notes
    -----
    Recommenders calls it distributional coverage, Elliot calls it Shannon entropy.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> round(run.rank.evaluate(rf.metrics.entropy_at(2), items=items).item(0, "entropy@2"), 4)
    0.9183
    """
    if not base > 1:
        msg = f"entropy_at: base must be a number > 1, not {base!r}"
        raise ValueError(msg)
    share = _share(k, of, over, discount)
    value = pl.when(share > 0).then(share * (1 / share).log(base)).sum()
    if normalize:
        shown = (
            _is_shown(k, of, over).sum()
            if of == "shown"
            else pl.col(registry.name("values", of=of)).first()
        )
        most = shown.cast(pl.Float64).log(base)
        value = pl.when(most > 0).then(value / most)
    return pl.when(share.sum() > 0).then(value)


@labelled("personalization", in_words="How different are the lists of two users?")
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
        Float64 in [0, 1], named ``personalization@k``: one for all lists. Null where there are
        fewer than two lists.

    Notes
    -----
    The cosine of two sets is the number of common items / √(product of their sizes). No pairs are
    built: the sum over pairs is Σ over items of (Σ over lists 1/√n)² − the number of lists.
    recmetrics has it too.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> round(run.rank.evaluate(rf.metrics.personalization_at(2)).item(0, "personalization@2"), 4)
    0.2929
    """
    exposure = _exposure(k, "shown", "all", "norm")
    lists = _exposure(k, "shown", "all", "inverse").sum().round()  # each adds n times 1/n
    pairs = lists * (lists - 1)
    common = ((exposure**2).sum() - lists) / pairs
    return pl.when(pairs > 0).then((1 - common).clip(0, 1))


Distance: TypeAlias = Literal["tv", "kl", "js", "hellinger", "ratio", "cv"]


@labelled(
    "disparity",
    value_range=(0, inf),
    higher_is_better=None,
    in_words="How far is each group's share of exposure from its fair share?",
)
def disparity_at(
    k: int | None = None,
    *,
    of: OptionalColumn = None,
    target: Target = "catalogue",
    distance: Distance = "tv",
    discount: PlaceDiscount = "none",
    over: Over = "all",
    alpha: float = 0.01,
) -> pl.Expr:
    """
    Disparity: the distance between the shares of exposure and their target shares.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    of
        The column of ``items=`` whose values share the exposure. It holds text, or lists of text:
        an item with several values is split equally among them. Optional if ``items=`` has one
        column of lists.
    target
        The target share: the share of the value in the ``"catalogue"``, the same for all values
        (``"uniform"``), the share in the ``"history"`` (with ``over="user"``, the user's own), in
        the relevant items of the ``"truth"``, or among ``"candidates"``: the catalogue without the
        items that each user had.
    distance
        ``"tv"`` = ½ Σ |share − target|; ``"kl"`` = Σ target·log2(target / ((1 − α)·share +
        α·target)); ``"js"``, the Jensen–Shannon divergence in bits; ``"hellinger"`` =
        √(½ Σ (√share − √target)²). Two others read share / target where the target is > 0:
        ``"ratio"`` = least / greatest, and ``"cv"`` = standard deviation / mean.
    discount
        The discount of a place: ``"none"`` = 1, ``"log2"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"hit"`` = 1 if the item is relevant, or a number p: p^(rank − 1).
    over
        ``"all"`` lists together, or the list of each ``"user"``.
    alpha
        α, the part of the target that is mixed into the share for ``"kl"``, between 0 and 1.

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``disparity(of=…)@k``: one for all lists, or one per user with
        ``over="user"``. Null where there is no exposure or no target.

    Notes
    -----
    Reads ``items=``. Elliot's RSP is ``"cv"`` with target ``"candidates"``; PopRSP is the same with
    head and tail as the values of ``of=``; REO and PopREO use ``discount="hit"`` and target
    ``"truth"``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> round(run.rank.evaluate(rf.metrics.disparity_at(2, of="genre"), items=items).item(0, 1), 4)
    0.4583
    """
    keywords.check_fraction("disparity_at: alpha", alpha)
    return _distance(_share(k, of, over, discount), _target(k, of, over, target), distance, alpha)


@labelled(
    "miscalibration",
    value_range=(0, inf),
    higher_is_better=False,
    in_words="Does a list reflect the mix of genres that the user liked before?",
)
def miscalibration_at(
    k: int | None = None,
    *,
    of: OptionalColumn = None,
    distance: Literal["kl", "hellinger", "js", "tv"] = "kl",
    discount: PlaceDiscount = "none",
    alpha: float = 0.01,
) -> pl.Expr:
    """
    Miscalibration: how far the genres of the list are from those of the user's history.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    of
        The column of ``items=`` whose values share the exposure. It holds text, or lists of text:
        an item with several values is split equally among them. Optional if ``items=`` has one
        column of lists.
    distance
        ``"kl"`` = Σ profile·log2(profile / ((1 − α)·list + α·profile)), in bits; ``"hellinger"`` =
        √(½ Σ (√profile − √list)²); ``"js"``, the Jensen–Shannon divergence in bits; or ``"tv"`` =
        ½ Σ |profile − list|.
    discount
        The discount of a place: ``"none"`` = 1, ``"log2"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"hit"`` = 1 if the item is relevant, or a number p: p^(rank − 1).
    alpha
        α, the part of the profile that is mixed into the list for ``"kl"``, between 0 and 1.

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``miscalibration(of=…)@k``; 0 = calibrated. Null for a user without a
        known value at rank ≤ k, or without a history of known values.

    Notes
    -----
    Reads ``items=`` and ``history=``. Steck, *RecSys* 2018.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> history = pl.DataFrame({"user": [1, 1, 2], "item": ["c", "a", "a"]})
    >>> miscalibration = rf.metrics.miscalibration_at(2, distance="tv")
    >>> run.rank.evaluate(miscalibration, items=items, history=history).item(0, 1)
    0.125
    """
    keywords.check_fraction("miscalibration_at: alpha", alpha)
    share, target = _share(k, of, "user", discount), _target(k, of, "user", "history")
    return _distance(share, target, distance, alpha)


@labelled("awrf", in_words="Do providers receive the share of attention that they should?")
def awrf_at(
    k: int | None = None,
    *,
    of: OptionalColumn = None,
    target: Target = "catalogue",
    discount: PlaceDiscount = "clipped",
    over: Over = "user",
) -> pl.Expr:
    """
    Attention-weighted rank fairness: 1 − JS(share, target), the divergence in nats.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    of
        The column of ``items=`` whose values share the exposure. It holds text, or lists of text:
        an item with several values is split equally among them. Optional if ``items=`` has one
        column of lists.
    target
        The target share: ``"catalogue"``, ``"uniform"``, ``"history"``, ``"truth"`` or
        ``"candidates"``, as in ``disparity``.
    discount
        The discount of a place: ``"none"`` = 1, ``"log2"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"hit"`` = 1 if the item is relevant, or a number p: p^(rank − 1).
    over
        ``"all"`` lists together, or the list of each ``"user"``.

    Returns
    -------
    Expr
        Float64 in [1 − ln 2, 1], named ``awrf(of=…)@k``; 1 = fair. Null where there is no
        exposure or no target.

    Notes
    -----
    Reads ``items=``. JS is the Jensen–Shannon divergence. The definition is that of TREC's Fair
    Ranking Track of 2022. Sapiezynski et al., *WWW* 2019.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> round(run.rank.evaluate(rf.metrics.awrf_at(2), items=items).item(0, "awrf@2"), 4)
    0.7925
    """
    share, target_share = _share(k, of, over, discount), _target(k, of, over, target)
    return 1 - log(2) * _distance(share, target_share, "js")


@labelled("categories", in_words="How many different categories does a list show?")
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
        The column of ``items=`` whose values share the exposure. It holds text, or lists of text:
        an item with several values is split equally among them. Optional if ``items=`` has one
        column of lists.
    divide_by
        ``"k"``, or ``"values"``: the number of values in the catalogue.

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``categories(of=…)@k``. Null for a user without a list.

    Notes
    -----
    Reads ``items=``. RePlay calls it CategoricalDiversity.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> run.rank.per_user(rf.metrics.category_count_at(2), items=items)["categories@2"].to_list()
    [1.0, 0.5]
    """
    shown = (_exposure(k, of, "user", "none") > 0).sum().cast(pl.Float64)
    return (
        divided(shown, k)
        if divide_by == "k"
        else shown / pl.col(registry.name("values", of=of)).first()
    )


@labelled(
    "ee_disparity",
    higher_is_better=False,
    value_range=(0, inf),
    in_words="How unequal is the attention that items receive?",
)
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

    Notes
    -----
    Diaz, Mitra, Ekstrand, Biega and Carterette, *CIKM* 2020, for one ranking per user.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> run.rank.per_user(rf.metrics.ee_disparity_at(), items=items)["ee_disparity"].to_list()
    [1.25, 1.0]
    """
    keywords.check_fraction("p", p)
    return (_exposure(k, "shown", "user", p) ** 2).sum()


@labelled("ee_relevance", value_range=(0, inf), in_words="Does attention go to relevant items?")
def ee_relevance_at(k: int | None = None, *, p: float = 0.5) -> pl.Expr:
    """
    Expected-exposure relevance: Σ ε·ε*, ε = p^(rank − 1), ε* = equal exposure for equal relevance.

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

    Notes
    -----
    Reads the truth. If m of n items are relevant, ε* is (1 − pᵐ)/(m(1 − p)) for each of them and
    (pᵐ − pⁿ)/((n − m)(1 − p)) for each of the others; n = judged or listed items of the user. Diaz
    et al., *CIKM* 2020, without the factor 2 that some add.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> truth = pl.DataFrame({"user": [1], "item": ["b"]})
    >>> run.rank.evaluate(rf.metrics.ee_relevance_at(), truth=truth).item(0, "ee_relevance")
    1.0
    """
    keywords.check_fraction("p", p)
    return _where_relevant((_exposure(k, "shown", "user", p) * _target_exposure(p)).sum())


@labelled(
    "ee_loss",
    value_range=(0, inf),
    higher_is_better=False,
    in_words="How far is attention from being equal among equally relevant items?",
)
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

    Notes
    -----
    Reads the truth. Diaz et al., *CIKM* 2020; see ``ee_relevance``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["y"], ["z"]]})
    >>> truth = pl.DataFrame({"user": [1], "item": ["b"]})
    >>> run.rank.evaluate(rf.metrics.ee_loss_at(), truth=truth).item(0, "ee_loss")
    0.5
    """
    keywords.check_fraction("p", p)
    return _where_relevant(((_exposure(k, "shown", "user", p) - _target_exposure(p)) ** 2).sum())


# ------------------------------------------------------------------ building blocks


def _exposure(k: int | None, of: str | None, over: str, discount: str | float) -> pl.Expr:
    return pl.col(registry.name("exposure", of=of, over=over, weight=discount, k=k))


def _share(k: int | None, of: str | None, over: str, discount: str | float) -> pl.Expr:
    return pl.col(registry.name("share", of=of, over=over, weight=discount, k=k))


def _is_shown(k: int | None, of: str | None, over: str) -> pl.Expr:
    """Whether a list has the value at rank ≤ k; the rows may be those of other metrics, too."""
    return _exposure(k, of, over, "none") > 0


def _target(k: int | None, of: str | None, over: str, what: str) -> pl.Expr:
    target = pl.col(registry.name("target", of=of, over=over, what=what))
    if of != "shown":
        return target
    target = pl.when(_is_shown(k, of, over)).then(target)
    return pl.when(target.sum() > 0).then(target / target.sum())


def _distance(share: pl.Expr, target: pl.Expr, distance: str, alpha: float = 0) -> pl.Expr:
    """Distance between two distributions, null where one is missing; ``alpha`` is of ``"kl"``."""
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
        value = value.clip(lower_bound=0)  # rounding may yield -1e-17 for equal distributions
    condition = (share.sum() > 0) & (target.sum() > 0)
    if distance in ("ratio", "cv"):
        condition &= ratio.max() > 0
    return pl.when(condition).then(value)


def _divergence(p: pl.Expr, q: pl.Expr) -> pl.Expr:
    """Kullback–Leibler divergence in bits."""
    return pl.when(p > 0).then(p * (p / q).log(2)).sum()


def _target_exposure(p: float) -> pl.Expr:
    """The target exposure of an item: that of all items of its grade, shared equally."""
    wanted = pl.col("target(shown;user;truth)") > 0
    # these columns add the listed and judged items of any rank as rows; other metrics add more
    pool = _is_shown(None, "shown", "user") | (pl.col("target(shown;user;judged)") > 0)
    m, n = wanted.sum().cast(pl.Float64), pool.sum().cast(pl.Float64)
    of_relevant = (1 - pl.lit(p).pow(m)) / (m * (1 - p))
    of_others = (pl.lit(p).pow(m) - pl.lit(p).pow(n)) / ((n - m) * (1 - p))
    return pl.when(wanted).then(of_relevant).when(pool).then(of_others).otherwise(0.0)


def _where_relevant(value: pl.Expr) -> pl.Expr:
    return pl.when(pl.col("target(shown;user;truth)").sum() > 0).then(value)
