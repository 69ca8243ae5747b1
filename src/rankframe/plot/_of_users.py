"""Draw the values of users: charts of their distribution, and of their changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from rankframe._comparison import diagnosis, system_pairs
from rankframe._comparison.trials import Trial
from rankframe._request import keywords
from rankframe._request.keywords import Options, StatisticsOptions
from rankframe._request.labels import Metric
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters
from rankframe.metrics import core, trec
from rankframe.plot import _tables

if TYPE_CHECKING:
    import altair as alt


@adapters.takes_any_frame
def per_user(
    frame: Runs[Frame],
    /,
    metric: Metric,
    *,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    bins: int = 20,
    **options: Unpack[StatisticsOptions],
) -> alt.FacetChart:
    """
    Draw the distribution of a metric over users, per system.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``. A
        frame without a column of items, and without ``truth``, is a table of values: one row per
        user and group of ``by``, whose columns of numbers are the metrics; null is undefined.
    metric
        A label or an expression, as in ``per_user``.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
        Or a dict, as ``from_grades`` takes it, or the column of relevant items beside lists.
    by
        Columns of segments, such as country, fold or day.
    bins
        Roughly the number of bins; their width is 1, 2 or 5 times a power of ten.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

    Returns
    -------
    altair.FacetChart
        One histogram per system and segment, with the mean as a line, and on its left a box
        filled to the share of users whose value is exactly 0. The drawn numbers are in
        ``chart.data``: ``system``, ``segment``, ``low`` ≤ value < ``high`` (the last bin also
        includes its upper end; ``low`` = ``high`` = 0 is exactly 0, which the other bins exclude),
        ``users``, their ``share``, and the ``mean`` in the first row of each histogram. With six
        systems or more, one row per system, best mean first, with quantiles of the users who are
        not exactly 0: ``system``, ``segment``, ``users``, ``zeros`` (the share of users at exactly
        0), ``low`` (5%), ``lower quarter``, ``median``, ``upper quarter``, ``high`` (95%) and the
        ``mean`` of all users.

    Raises
    ------
    RankingDataError
        If no user has a value.
    ValueError
        If the metric is not a number.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7]})
    >>> rf.plot.per_user(run, "rr", truth=truth, by=()).data.select("low", "high", "users").rows()
    [(0.5, 0.55, 1), (0.95, 1.0, 1)]
    """
    call = _tables.read_call(frame, truth, by, options)
    bins = keywords.whole_number("bins", bins)
    if options.pop("weights", None) is not None:
        msg = "weights= given to the chart of users, which counts users equally: leave it out"
        raise ValueError(msg)
    values = call.values([metric], per_user=True).rows.collect()
    higher = call.requested([metric])[0].traits.higher_is_better
    from rankframe.plot import _user_pictures

    return _user_pictures.users(values, call.groups, higher_is_better=higher, bins=bins)


@adapters.takes_any_frame
def who_gained(
    frame: Runs[Frame],
    /,
    k: int,
    *,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    baseline: object = None,
    bins: int = 8,
    **options: Unpack[Options],
) -> alt.FacetChart:
    """
    Draw the changes of precision@k and recall@k in bins of R, the number of relevant items.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``.
    k
        Cut-off.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
        Or a dict, as ``from_grades`` takes it, or the column of relevant items beside lists.
    by
        Columns of segments, such as country, fold or day.
    baseline
        The system that the others are compared with; by default the first one of a dict or an
        Enum. A column of text has no order, and needs a name.
    bins
        The greatest number of bins. Users with the same R, their number of relevant items, are in
        the same bin.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    altair.FacetChart
        Two panels per system and segment over R, the number of a user's relevant items: the change
        of precision@k = change of hits / k, and that of recall@k = change of hits / R. Points are
        the means of the bins of ``who_gained``, whose reading is in the subtitle, with 95%
        intervals by Student's t, not corrected. Bars are users, stronger where more have a similar
        change. The axis fits the intervals and nine of ten users; the others are at its ends. The
        drawn numbers are in ``chart.data``: ``bin``, and in rows with a ``count`` the mean
        ``change`` of this number of users, in the others ``mean``, ``ci_low`` and ``ci_high`` of
        ``users``.

    Raises
    ------
    RankingDataError
        If the systems share no user.

    Notes
    -----
    Both panels show the same hits. Read them as ``who_gained`` does: if points are above 0 for
    users with few relevant items and below for users with many, mean recall rises, and mean
    precision falls.

    Examples
    --------
    >>> old = pl.DataFrame({"user": ["A", "A", "B"], "item": [1, 2, 9], "rank": [1, 2, 1]})
    >>> new = pl.DataFrame({"user": ["A", "B"], "item": [101, 101], "rank": [1, 1]})
    >>> run = pl.concat([f.with_columns(model=pl.lit(m)) for f, m in [(old, "old"), (new, "new")]])
    >>> truth = pl.DataFrame({"user": ["A"] * 100 + ["B"] * 20, "item": range(1, 121)})
    >>> drawn = rf.plot.who_gained(run, 10, truth=truth, baseline="old").data
    >>> drawn.drop_nulls("count").select("measure", "bin", "change", "count").rows()
    [('precision@10', '20', 0.1, 1), ('precision@10', '100', -0.2, 1),
     ('recall@10', '20', 0.05, 1), ('recall@10', '100', -0.02, 1)]
    """
    call = _tables.read_call(frame, truth, by, options, "change")
    k = keywords.whole_number("k", k)
    means = call.compute(diagnosis.who_gained, k, baseline=baseline, bins=bins)
    metrics = [trec.num_relevant().alias("relevant"), core.precision_at(k).alias("precision")]
    metrics += [core.recall_at(k).alias("recall")]
    values = call.values(metrics, per_user=True).rows.collect()
    trial = Trial(baseline, needed_by="who_gained")
    baseline = system_pairs.systems_in(values, call.groups[0], trial).baseline
    from rankframe.plot import _user_pictures

    return _user_pictures.change(values, means, call.groups, k, baseline)
