"""Gates pipelines: comparisons with margins, and floors, in; which systems pass, and why, out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import nan
from typing import Any, NamedTuple, Unpack, get_args

import polars as pl

from rankframe._comparison import (
    comparison,
    decision,
    floors,
    margins,
    notes,
    pair_tests,
    sentences,
    summaries,
    trials,
)
from rankframe._comparison import (
    launch as launches,
)
from rankframe._comparison.floors import Floor
from rankframe._comparison.launch import Launch
from rankframe._comparison.packages import statistics
from rankframe._comparison.trials import (
    Bound,
    Correction,
    GateTest,
    Margin,
    Size,
    Trial,
    Undecided,
)
from rankframe._evaluation import reduction, user_choice, user_columns
from rankframe._evaluation.values import Values
from rankframe._request import keywords, labels
from rankframe._request.keywords import StatisticsOptions
from rankframe._request.labels import Metric, RequestedMetric
from rankframe._request.types import FrameT, Runs, Truth
from rankframe._tables import adapters, guards, rules, run_dicts
from rankframe.errors import Problem, option

_FLOORS = f"{option('at_least')} or {option('at_most')}"


@adapters.takes_any_frame
def gate(
    frame: Runs[FrameT],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    human: Truth | None = None,
    by: str | Sequence[str] = (),
    baseline: object = None,
    margin: Margin | None = None,
    primary: str | None = None,
    guardrails: Mapping[str, Size] | None = None,
    ratio: Mapping[Any, float] | None = None,
    at_least: float | Mapping[str, float] | None = None,
    at_most: float | Mapping[str, float] | None = None,
    interval: bool = False,
    undecided: Undecided = "fail",
    most_missed: float | None = 0.05,
    systems: Sequence[object] | None = None,
    total: bool = False,
    test: GateTest = "t",
    correction: Correction | None = "holm",
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    cluster: str | None = None,
    paired: bool = True,
    **options: Unpack[StatisticsOptions],
) -> FrameT:
    """
    Decide whether systems pass: by the difference from a baseline, or by floors of their means.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``. A
        frame without a column of items, and without ``truth``, is a table of values: one row per
        user and group of ``by``, with a numeric column per metric, where null means undefined.
    *metrics
        Labels such as ``"ndcg@10"`` or expressions such as ``rf.metrics.ndcg_at(10)``, of metrics
        with a direction: higher is better, or lower is.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    human
        A truth with labels by humans; ``truth`` then has the labels of a judge, such as a language
        model. It has a random sample of the users of ``truth``, and all their labels down to the
        depth of the metrics. The corrected means and differences of ``summarize`` and ``compare``
        decide.
    by
        Columns of segments, such as country, fold or day.
    baseline
        The system that the others are compared with; by default the first one of a dict or an Enum.
        For a column of text, which has no order, name the baseline.
    margin
        The accepted loss on the scale of the metric, below the width of its range, or a share of
        the baseline's values such as ``"1%"`` (with ``test="t"``): one for all metrics, or a
        mapping such as ``{"ndcg@10": 0.01}``; metrics missing from the mapping have 0, or are not
        compared if they have a floor. Floors without ``baseline`` and ``margin`` compare nothing.
    primary
        The metric that must be better, by the two-sided test of ``compare``. Then one row with
        ``metric`` "decision" is above those of each system and segment. It replaces ``margin``,
        floors and ``undecided``; without ``*metrics``, it and ``guardrails`` are the metrics.
    guardrails
        Metrics that must not be worse, and the accepted loss > 0 of each, as in ``margin``:
        ``{"recall@100": 0.01, "rr": "5%"}``. Metrics of all lists, such as coverage, have no
        interval of a difference, and raise an error.
    ratio
        With ``paired=False``, the planned shares of users: ``{"old": 1, "new": 1}``. If the numbers
        of users (or clusters) with a list contradict them, with p < 0.001 in the exact binomial
        test, nothing can be judged. Without ``ratio``, the ``note`` of each metric names both
        numbers.
    at_least
        A floor: the least accepted mean of every system, the baseline included, such as 0.9, or a
        mapping such as ``{"recall@3": 0.9}``. The mean itself is compared. Floors need no baseline,
        no column of systems, no direction, and no SciPy.
    at_most
        The greatest accepted mean, likewise.
    interval
        True: the interval of the mean is compared with the floor, not the mean itself.
    undecided
        ``"fail"``: pass only if a loss of the margin, which must be > 0, is excluded (or, with
        ``interval``, the whole interval reaches the floor). ``"pass"``: fail only if the whole
        interval is beyond the margin (or floor), so the system is worse, or if there is none.
    most_missed
        The greatest share of users without a list that a system may have in any segment, among the
        users with a relevant item; with more, it fails there. ``users=`` says who counts. None: any
        share.
    systems
        The systems that must be present, such as ``["live", "next"]``; a missing one has rows that
        fail.
    total
        Add the decision over all segments, with null in the segment columns.
    test
        The test that decides: ``"t"``, ``"max_t"`` or ``"sequential"``; the notes of ``rf.compare``
        describe them. The intervals of floors have Student's t, or the exact binomial test if all
        values are 0 or 1.
    correction
        The correction for the number of comparisons in this call: ``"holm"``, ``"bh"`` (Benjamini
        and Hochberg), or None. ``"max_t"`` corrects by itself, and takes no other.
    confidence
        The probability that a single interval covers the true value.
    resamples
        The number of resamples, for the tests and intervals that draw them.
    seed
        Seed of the resamples; the same seed produces the same numbers on every machine.
    cluster
        A column of the truth or the run, such as the customer of a session or query: users of one
        cluster depend on each other, and clusters are the observations.
    paired
        False: compare groups of different users, such as weeks or cohorts with ``model="week"``, by
        Welch's t test on all users of each group. Users in both groups enter with their covariance.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per segment, metric and system, and one per floor:

        - the system (in the column of the model, if there is one), segments…, ``metric`` and, with
          a baseline, ``baseline``
        - ``users``, ``num_left_out``, ``note``: as in ``compare``. The note of a system that fails
          against the baseline begins with up to three users who lost most. For a floor, these are
          the users with and without a value; ``note`` reports the latter from 5% on, and is
          otherwise that of ``summarize``
        - with ``human``, ``users_human`` and ``correction``
        - with a baseline, ``margin`` and ``difference``; with floors, ``mean``, ``at_least`` and
          ``at_most``
        - ``ci_low``, ``ci_high``: the interval of the difference or, with ``interval``, the mean
        - ``passed`` (Boolean, never null)
        - ``why``: what decided. It begins with "worse", "not worse", "undecided", "no interval",
          "cannot be judged", or for a floor "too low", "high enough", "too high" or "low enough"

        With ``primary``, ``why`` of a decision begins with "ship", "hold", "stop" or "cannot be
        judged", and names the metric that decides; ``passed`` is true for "ship" alone.

    Raises
    ------
    ValueError
        If ``margin`` or a floor names a metric that is not requested, a metric cannot be decided
        (it has no better direction, or no value per user, or is a geometric mean with a margin), no
        value can reach a floor or a margin, or an option has no effect: ``paired=False`` or a
        ``test`` without a comparison, a ``confidence`` or ``undecided`` without ``interval``. If
        ``undecided="fail"`` has no margin: a system that equals the baseline would pass with
        probability (1 − confidence)/2 only. If ``"sequential"`` has a floor, or a margin with a
        correction.

    Notes
    -----
    By default, every row must pass, so no correction is needed: a system that is worse by the
    margin or more passes with a probability of (1 − confidence)/2, or about so where t decides. The
    p-value is the larger one of Student's t and of Hall's transformed t. Where fewer than 20 users
    differ, or hits are lost and none is gained, the mean loss is at most the upper limit of the
    share of users who lose, times the width of the metric's range: to pass a margin of 0.01 for a
    metric from 0 to 1, 368 users are enough if none loses, and 367 are not. Where more differ, few
    users who lose much are bounded likewise. C. J. Clopper and E. S. Pearson, *Biometrika* 26,
    1934; with weights or clusters, E. L. Korn and B. I. Graubard, *Survey Methodology* 24, 1998.

    With ``undecided="pass"``, the p-value that the system is worse than the margin is corrected for
    all decisions of the call, so all systems as good as the baseline pass with probability 0.975 or
    more. Without a margin it is that of ``compare``. Where all users differ by the same amount,
    there is no interval, and the exact test of ``compare`` decides.

    A decision is "stop" if the primary metric is worse, or a guardrail is worse by more than its
    margin; else "cannot be judged" if one of them has no test; else "ship" if the primary metric is
    better and every guardrail is shown not worse by its margin; else "hold". A rejected ``ratio``
    makes each of them "cannot be judged". The primary metric is tested at 1 − confidence, each
    guardrail one-sided at half of it. As all must hold, no correction for several metrics is
    needed. Several systems or segments are not corrected either: each is decided at this level, so
    of many systems that equal the baseline, (1 − confidence)/2 may ship.

    A margin of ``"1%"`` is tested as in ``compare``; the column ``margin`` has the share of the
    baseline's mean. Without a test, as with no users or a single one, a system fails, even in a
    segment without a user. ``why`` of an undecided system says how often an equal one would pass
    (see ``power(margin=)``), in at most 20 rows, as each takes a simulation. With ``human``, it
    does not.

    Examples
    --------
    >>> ranks = {"old": [1, 1, 2, 1], "new": [2, 2, 3, 3], "same": [1, 1, 2, 1]}
    >>> runs = {
    ...     name: pl.DataFrame({"user": range(8), "item": 7, "rank": of_users * 2})
    ...     for name, of_users in ranks.items()
    ... }
    >>> truth = pl.DataFrame({"user": range(8), "item": [7] * 8})
    >>> decided = rf.gate(runs, "rr", truth=truth, baseline="old", margin=0.01, undecided="pass")
    >>> decided.select("model", "margin", "difference", "passed", "why")
    shape: (2, 5)
    ┌───────┬────────┬────────────┬────────┬─────────────────────────────┐
    │ model ┆ margin ┆ difference ┆ passed ┆ why                         │
    │ ---   ┆ ---    ┆ ---        ┆ ---    ┆ ---                         │
    │ str   ┆ f64    ┆ f64        ┆ bool   ┆ str                         │
    ╞═══════╪════════╪════════════╪════════╪═════════════════════════════╡
    │ new   ┆ 0.01   ┆ -0.458333  ┆ false  ┆ worse: interval below -0.01 │
    │ same  ┆ 0.01   ┆ 0.0        ┆ true   ┆ not worse: no user differs  │
    └───────┴────────┴────────────┴────────┴─────────────────────────────┘
    >>> floor = rf.gate(runs["new"], "hit@2", truth=truth, at_least=0.9)
    >>> floor.select("mean", "passed", "why").row(0)
    (0.5, False, 'too low: the mean is 0.5, below 0.9')
    """
    amounts = {"at_least": at_least, "at_most": at_most}
    others = {"margin": margin, **amounts, "undecided": undecided}
    launch = launches.launch_of(primary, guardrails, ratio, paired=paired, others=others)
    if launch is not None:
        margin, metrics = launch.margins, metrics or (*launch.margins,)
    trial = Trial(
        *(baseline, test, correction, confidence, None, None, resamples, seed, cluster, total),
        paired=paired,
    )
    has_floors = at_least is not None or at_most is not None
    if baseline is not None or margin is not None or not has_floors:
        trial = trial._replace(needed_by="gate")
    keywords.check_switch("interval", interval)
    presence = _Presence(most_missed, systems)
    _check_presence(presence)
    keywords.check_choice("undecided", undecided, get_args(Undecided))
    frame, by, options = run_dicts.as_frame(frame, by, options, compares=trial.needed_by)
    if interval and not has_floors:
        msg = f"{option('interval', value=True)} without a floor: name one in {_FLOORS}"
        raise ValueError(Problem(msg))
    if trial.needed_by is None:
        _check_floors(trial, compares=False, interval=interval, undecided=undecided)
    question = comparison.ask_systems(
        frame, metrics, truth, by, options, trial, counts=["missed", "hits"], takes_average=False
    )
    describe = partial(
        _decisions,
        trial=trial,
        margin=margin,
        amounts=amounts,
        interval=interval,
        undecided=undecided,
        presence=presence,
        launch=launch,
    )
    return summaries.described(frame, question, describe, human=human)


_DECIDED = {"passed": pl.Boolean, "why": pl.String}


def _decisions(
    values: Values,
    *,
    trial: Trial,
    margin: Margin | None,
    amounts: Mapping[str, Any],
    interval: bool,
    undecided: Undecided,
    presence: _Presence,
    launch: Launch | None,
) -> pl.LazyFrame:
    """Decide by the margin and the floors of each metric."""
    if launch is not None:
        launches.check_metrics(launch, values.all_requested)
    rules, floored = rules_and_floors(
        values.all_requested,
        margin,
        amounts,
        undecided if launch is None else "pass",  # the primary metric has no margin
        interval=interval,
        compares=trial.needed_by is not None,
    )
    trial = trial._replace(margins=rules, undecided=undecided)
    _check_test(trial, has_launch=launch is not None)
    if floored:
        _check_floors(trial, compares=bool(rules), interval=interval)
    added: dict[str, Any] = ({"margin": pl.Float64} if rules else {}) | _DECIDED
    if launch is not None:
        added[decision.OUTCOME] = pl.String
    summaries.result_schema("gate", values, added)
    parts: list[pl.LazyFrame] = []
    if rules:
        gated = [metric for metric in values.requested if metric.name in rules]
        parts.append(comparison.rows_of(values._replace(requested=gated), trial, "gate"))
    if floored:
        parts.append(floors.means_of(values, trial, floored))
    both = pl.concat(parts, how="diagonal")
    schema: dict[str, Any] = dict(both.drop(decision.HIDDEN).collect_schema())
    decide = partial(
        _with_decisions,
        trial=trial,
        floor=next(iter(floored), None),
        directions=pair_tests.directions_of(values.requested),
        columns=[*schema, *added],
        primary=None if launch is None else launch.primary,
    )
    decided = both.map_batches(decide, schema=schema | added)
    if values.joined is not None or presence.systems is not None:
        if presence.systems is not None and values.by and isinstance(schema[values.by[0]], pl.Enum):
            schema[values.by[0]] = pl.String()  # a system that did not come is none of its names
        metrics = [*rules, *(floor.metric for floor in floored)]
        check = partial(_with_presence, values=values, presence=presence, metrics=metrics)
        facts = _lists_of_groups(values, total=trial.total)
        decided = pl.concat([decided, facts], how="diagonal")
        decided = decided.map_batches(check, schema=schema | added)
    if launch is not None:
        decided = launches.decided(decided, values, launch, trial)
    of_floors = [name for name in floors.OPTIONS if amounts[name] is not None]
    human = [*summaries.HUMAN] * values.has_human
    columns = ["baseline"] * bool(rules) + ["users", *human, "num_left_out"]
    columns += ["margin", "difference"] * bool(rules) + ["mean"] * bool(floored) + of_floors
    columns += ["note"] + ["ci_low", "ci_high"] * bool(rules or interval)
    return decided.select(*values.by, "metric", *columns, *_DECIDED)


def rules_and_floors(
    requested: Sequence[RequestedMetric],
    margin: Margin | None,
    amounts: Mapping[str, Any],
    undecided: Undecided,
    *,
    interval: bool,
    compares: bool,
) -> tuple[dict[str, Bound], list[Floor]]:
    """Read what each metric must keep: a margin, if systems are compared, or floors."""
    names = [metric.name for metric in requested]
    floored: list[Floor] = []
    for bound in floors.OPTIONS:
        amounts_of = comparison.per_metric(bound, amounts[bound], names)
        floored += floors.floors_of(requested, amounts_of, bound, interval=interval)
    with_floor = {floor.metric for floor in floored}
    sizes = comparison.per_metric("margin", margin, names)
    gated = [*requested] * compares
    if isinstance(margin, Mapping):
        gated = [m for m in gated if m.name in sizes or m.name not in with_floor]
    sizes = {metric.name: sizes.get(metric.name, 0.0) for metric in gated}
    rules = margins.read_margins(sizes, gated, of_gate=True)
    for metric in gated:
        labels.direction_of(metric)  # which it must have
        if undecided == "fail":
            _check_margin(metric, rules[metric.name].size)
    for name in names:
        if name not in rules and name not in with_floor:
            msg = (
                f"metric {name!r} has no floor: name it in {_FLOORS}, or pass "
                f"{option('margin')} to compare systems"
            )
            raise ValueError(Problem(msg))
    return rules, floored


def _check_margin(metric: RequestedMetric, margin: float) -> None:
    """Check that a system may pass though it is not better than the baseline."""
    if metric.over_users.epsilon is not None:
        msg = (
            f"metric {metric.name!r} is a geometric mean, whose ratio is tested, so no margin "
            f"bounds its loss: pass {option('undecided', 'pass')}, or gate another metric"
        )
        raise ValueError(Problem(msg))
    if not margin:
        msg = (
            f"metric {metric.name!r} has no margin, and without one a system that equals the "
            "baseline passes in 2.5% of cases only: pass the accepted loss, such as "
            f"{option('margin', '1%')}, or {option('undecided', 'pass')} to fail only what is "
            "shown to be worse"
        )
        raise ValueError(Problem(msg))


class _Presence(NamedTuple):
    """What must be there before a gate passes: lists of most users, and systems."""

    most_missed: float | None = 0.05
    systems: Sequence[object] | None = None


def _check_presence(presence: _Presence) -> None:
    share, systems = presence
    if share is not None and not (keywords.is_number(share) and 0 <= share <= 1):
        msg = f"most_missed must be a share of the users from 0 to 1, or None, not {share!r}"
        raise ValueError(msg)
    if isinstance(systems, str):
        msg = f"systems must be a list of names, such as [{systems!r}], not {systems!r}"
        raise TypeError(msg)


_MET, _MISSED, _USERS, _OWED = (
    f"{labels.PREFIX}{name}" for name in ("met", "missed", "users_of_system", "owed")
)


def _lists_of_groups(values: Values, *, total: bool) -> pl.LazyFrame:
    """Count the users with a relevant item, and those of them without a list; look for a hit."""
    rows, joined = values.rows, values.joined
    names, owed = rows.collect_schema(), pl.lit(value=True)
    if joined is not None and joined.tables.has_truth and joined.tables.users != "truth":
        relevant = user_choice.selected(joined, "truth").with_columns(owed.alias(_OWED))
        rows = rows.join(relevant, on=values.keys, how="left", nulls_equal=True)
        owed = pl.col(_OWED).fill_null(value=False)
    met = pl.col(guards.HIT).fill_null(value=False).any() if guards.HIT in names else pl.lit(None)
    missed = pl.lit(value=False)
    if user_columns.MISSED in names:
        missed = pl.col(user_columns.MISSED).fill_null(value=False)
    user = pl.col(values.user)
    facts = [met.cast(pl.Boolean).alias(_MET)] + [
        user.filter(who).n_unique().cast(pl.Int64).alias(name)
        for name, who in ((_MISSED, missed & owed), (_USERS, owed))
    ]
    groups = [values.by, values.by[:1]] if total else [values.by]
    tables = [rows.group_by(by).agg(facts) if by else rows.select(facts) for by in groups]
    return pl.concat(tables, how="diagonal")


def _with_presence(
    table: pl.DataFrame, *, values: Values, presence: _Presence, metrics: Sequence[str]
) -> pl.DataFrame:
    """Fail what passes without lists that can be judged, and systems that did not come."""
    lists = table.filter(pl.col(_USERS).is_not_null())
    table = table.filter(pl.col(_USERS).is_null()).drop(_MET, _MISSED, _USERS)
    by = values.by[:1]
    if values.joined is not None and lists[_MET].null_count() == 0 and not lists[_MET].any():
        table = _unjudged(table, values)
    if presence.most_missed is not None:
        missing = lists.filter(pl.col(_MISSED) > presence.most_missed * pl.col(_USERS))
        for group in missing.iter_rows(named=True):
            of = f" of {group[by[0]]}" if by else ""
            why = (
                f"too many missed: {group[_MISSED]:,} of {group[_USERS]:,} users with a relevant "
                f"item have no list{of}, more than {presence.most_missed:.10g} of them"
            )
            own = pl.col("passed").is_not_null()
            for name in values.by:
                own &= pl.col(name).eq_missing(pl.lit(group[name], table.schema[name]))
            table = _failed(table, own, why)
    if presence.systems is None:
        return table
    if not by:
        msg = (
            f"{option('systems')} without a column of systems: name it with {option('model')}, or "
            f"pass {run_dicts.SEVERAL}"
        )
        raise ValueError(Problem(msg))
    came = lists[by[0]]
    if isinstance(came.dtype, pl.Enum):
        came, table = came.cast(pl.String), table.with_columns(pl.col(by[0]).cast(pl.String))
    absent = [name for name in presence.systems if name not in came]
    if not absent:
        return table
    names = ", ".join(repr(name) for name in lists[by[0]].drop_nulls().unique().sort())
    rows = [
        {
            by[0]: name,
            "metric": metric,
            "passed": False,
            "why": f"no list of {name!r}: the systems are {names}",
        }
        for metric in dict.fromkeys(metrics)
        for name in absent
    ]
    schema = {name: table.schema[name] for name in rows[0]}
    return pl.concat([table, pl.DataFrame(rows, schema=schema)], how="diagonal")


def _unjudged(table: pl.DataFrame, values: Values) -> pl.DataFrame:
    """Fail rows of metrics that read relevance, as no list meets it."""
    source = values.source
    names = [m.name for m in values.requested if reduction.is_of_truth(source, m)]
    own = pl.col("metric").is_in(names) & pl.col("passed").is_not_null()
    apart = rules.unmatched_systems(source.tables.both)
    if apart:
        return _failed(table, own, f"cannot be judged: {apart[0][1]}")
    if "at_least" in table.columns:  # items are judged, as not relevant: the floor is not reached
        own &= pl.col("at_least").is_null()
    return _failed(table, own, "cannot be judged: no list has a relevant item of its user")


def _failed(table: pl.DataFrame, own: pl.Expr, why: str) -> pl.DataFrame:
    if decision.OUTCOME in table.columns:
        outcome = pl.when(own).then(pl.lit("untested")).otherwise(decision.OUTCOME)
        table = table.with_columns(outcome.alias(decision.OUTCOME))
    return table.with_columns(
        passed=pl.when(own).then(pl.lit(value=False)).otherwise("passed"),
        why=pl.when(own).then(pl.lit(why)).otherwise("why"),
    )


def _check_test(trial: Trial, *, has_launch: bool) -> None:
    """Check that the test decides by a margin, if there is one."""
    keywords.check_confidence(trial.confidence)
    if trial.confidence < 0.5:
        msg = (
            f"{option('confidence', trial.confidence)}: it is the probability that an interval "
            "covers the true value, such as 0.95"
        )
        raise ValueError(Problem(msg))
    test, rules = trial.test, trial.margins
    if rules:
        keywords.check_choice("test", test, get_args(GateTest))
    if test != "t" and (shares := [bound for bound in rules.values() if bound.relative]):
        share, t = option("margin", str(shares[0])), option("test", "t")
        msg = f"{share}: a share of the baseline needs {t}, not {test!r}"
        raise ValueError(Problem(msg))
    if test != "t" and rules and trial.undecided == "fail":
        msg = (
            f"{option('undecided', 'fail')}: {option('test', test)} has an interval, but no "
            f"p-value for a loss of the margin: use {option('test', 't')}"
        ) + f", or {option('undecided', 'pass')}" * (not has_launch)
        raise ValueError(Problem(msg))
    if trial.correction is None or test != "sequential":
        return
    if margin := next((bound.size for bound in rules.values() if bound.size), None):
        msg = (
            f"{option('margin', margin)}: {option('test', test)} has no p-value to correct for a "
            f"margin: use {option('test', 't')}, or {option('correction', None)}, so that each "
            "interval decides by itself"
        )
        raise ValueError(Problem(msg))


def _check_floors(
    trial: Trial, *, compares: bool, interval: bool, undecided: Undecided = "fail"
) -> None:
    """Check that no option is lost on floors, whose means are compared, or have Student's t."""
    lost = ["paired=False"] * (not trial.paired)
    lost += [option("test", trial.test)] * (trial.test != "t")
    cure = f"leave it out, or name a {option('baseline')} to compare with"
    if not lost and not interval:
        lost = [option("undecided", "pass")] * (undecided == "pass")
        lost += [option("confidence", trial.confidence)] * (trial.confidence != Trial().confidence)
        cure = (
            f"leave it out, or test the floor by the interval with {option('interval', value=True)}"
        )
    if lost and not compares:
        how = "tests the mean of each system by Student's t" if interval else "compares the means"
        msg = f"{lost[0]} has no effect without a baseline, since a floor {how}: {cure}"
        raise ValueError(Problem(msg))
    if trial.test == "sequential":
        msg = (
            f"{option('test', trial.test)} with a floor: the interval of a floor is valid at one "
            "look only: test the floor in another call"
        )
        raise ValueError(Problem(msg))


class _Case(NamedTuple):
    """Words for what is beyond a bound and within it, and where the interval is."""

    words: tuple[str, str]
    beyond: bool = False
    within: bool = False
    where: str = ""


def _with_decisions(
    table: pl.DataFrame,
    *,
    trial: Trial,
    floor: Floor | None,
    directions: Mapping[str, bool | None],
    columns: Sequence[str],
    primary: str | None = None,
) -> pl.DataFrame:
    """Decide the rows of margins, and those of floors, as the ``floor`` of the call does."""
    correction, after = trial.correction, ""
    number = table[decision.P_BEYOND].count()
    # by default every row must pass, so nothing is corrected; p-values of max_t are
    if (
        trial.undecided != "fail"
        and trial.test != "max_t"
        and correction is not None
        and number > 1
    ):
        p = table[decision.P_BEYOND].fill_null(nan).to_numpy()
        adjusted = pl.Series(decision.P_BEYOND, statistics.corrected(p, correction))
        table = table.with_columns(adjusted.fill_nan(None))
        after = f" after {sentences.CORRECTIONS[correction]} for {number} decisions"
    rows = table.to_dicts()
    cases = [_case_of(row, trial, floor, directions) for row in rows]
    cases = [
        case._replace(words=("worse", "better")) if case and row["metric"] == primary else case
        for row, case in zip(rows, cases, strict=True)
    ]
    for row, case in zip(rows, cases, strict=True):
        if case is not None and case.where and row[decision.P_BEYOND] is None:
            row[decision.P_BEYOND] = float(not case.beyond)  # the interval of the test decides
            row[decision.P_WITHIN] = float(not case.within)
    numbers = [{name: row[name] for name in decision.HIDDEN} for row in rows]
    outcomes = pl.DataFrame(numbers, schema=decision.HIDDEN).select(
        decision.outcome_of_bound(trial.alpha)
    )
    decided = [
        _decided(row, case, outcome, trial, floor, after)
        for row, case, outcome in zip(rows, cases, outcomes.to_series(), strict=True)
    ]
    passed, why = zip(*decided, strict=True) if decided else ((), ())
    sizes = [_size_of(row, trial.margins.get(row["metric"])) for row in rows]
    table = table.with_columns(
        pl.Series("margin", sizes, pl.Float64),
        pl.Series("passed", passed, pl.Boolean),
        pl.Series("why", why, pl.String),
        outcomes.to_series().alias(decision.OUTCOME),
    )
    lost = notes.noted(pl.when(~pl.col("passed")).then(decision.LOST), first=True)
    return table.with_columns(lost).select(columns)


def _size_of(row: Mapping[str, Any], margin: Bound | None) -> float | None:
    """Return the margin of a row of a comparison on the scale of its metric."""
    mean = row.get("baseline_mean")
    if margin is None or _option_of(row) is not None:
        return None
    if not margin.relative:
        return margin.size
    return margin.size * mean if mean is not None and mean > 0 else None


def _option_of(row: Mapping[str, Any]) -> str | None:
    return next((name for name in floors.OPTIONS if row.get(name) is not None), None)


def _case_of(
    row: Mapping[str, Any],
    trial: Trial,
    floor: Floor | None,
    directions: Mapping[str, bool | None],
) -> _Case | None:
    """Find where the interval of a row is; None if its mean is compared, and not an interval."""
    low, high = row["ci_low"], row["ci_high"]
    if (option := _option_of(row)) is not None:
        if floor is None or not floor.interval:
            return None
        words = ("too low", "high enough") if option == "at_least" else ("too high", "low enough")
        return _case(words, (low, high), row[option], is_least=option == "at_least")
    margin, is_least = trial.margins[row["metric"]], directions[row["metric"]] is not False
    bound = (-margin.size if is_least else margin.size) + 0.0
    text = str(trials.Bound(bound, relative=True)) if margin.relative else ""
    if margin.relative:
        low, high = row["relative_low"], row["relative_high"]
    if trials.ALL_DIFFER_ALIKE in notes.kinds(row[decision.EVIDENCE]):
        low = high = row["relative" if margin.relative else "difference"]
    return _case(("worse", "not worse"), (low, high), bound, is_least=is_least, text=text)


def _case(
    words: tuple[str, str],
    ends: tuple[float | None, float | None],
    bound: float,
    *,
    is_least: bool,
    text: str = "",
) -> _Case:
    low, high = ends
    text = text or f"{bound:.6g}"
    if low is None or high is None:
        return _Case(words)
    above, below = (low >= bound, high < bound) if is_least else (low > bound, high <= bound)
    beyond, within = (below, above) if is_least else (above, below)
    if not above and not below:
        return _Case(words, where=f"{text} in interval")
    return _Case(words, beyond, within, f"interval {'above' if above else 'below'} {text}")


def _decided(
    row: Mapping[str, Any],
    case: _Case | None,
    outcome: str,
    trial: Trial,
    floor: Floor | None,
    after: str,
) -> tuple[bool, str]:
    """Return whether a row passes by its outcome, and say what decided."""
    if case is None:
        assert floor is not None
        option = _option_of(row) or ""
        return floor._replace(amount=row[option], option=option).decide(row["mean"], row["note"])
    strict, evidence = trial.undecided == "fail", row[decision.EVIDENCE]
    alike = row[decision.OUTCOME] == "identical" or trials.NOBODY_DIFFERS in notes.kinds(evidence)
    if not strict and evidence and alike:
        return True, f"{case.words[1]}: {notes.text([notes.note(trials.NOBODY_DIFFERS)])}"
    if outcome == "untested":
        reasons = [
            notes.with_lead(note, None)
            for note in notes.unpacked(evidence or row["note"])
            if note.kind != "first_system"
        ]
        lead = "no interval" if row["ci_low"] is None else "cannot be judged"
        return False, f"{lead}: {notes.text(reasons) or 'the test has none'}"
    worse, not_worse = outcome == "worse", outcome == "not worse"
    word = case.words[0] if worse else case.words[1] if not_worse else outcome
    said, p, p_within = case.where, row[decision.P_BEYOND], row[decision.P_WITHIN]
    is_sure = (
        trials.ALL_DIFFER_ALIKE in notes.kinds(evidence) or not said or case.within != not_worse
    )
    if evidence and (is_sure or (strict and not worse)):
        said = notes.text(notes.unpacked(evidence)) or ""
    elif p_within is not None and not worse and (not said or case.within != not_worse):
        side = "below" if not_worse else "not below"
        said = f"p = {p_within:.2g}, {side} {trial.alpha / 2:.4g}"
    contrary = bool(case.where) and worse != case.beyond
    if p is not None and (contrary or (worse and (after or not said))):
        joined = f"{said}, {'but' if contrary else 'and'} " if said else ""
        said = f"{joined}p = {p:.2g}{after}"
    if outcome == "undecided" and row[decision.EQUAL]:
        said = f"{said}; {notes.text(notes.unpacked(row[decision.EQUAL]))}"
    passes = not_worse if strict else not worse
    return passes, f"{word}: {said}{sentences.missed_by_baseline(row) if passes else ''}"
