"""Make a table of results for people: systems × metrics, as HTML, LaTeX, Markdown and text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

import polars as pl

from rankframe._comparison import (
    comparison,
    decision,
    many_systems,
    notes,
    numerals,
    pair_tests,
    sentences,
    summaries,
    trials,
)
from rankframe._comparison.notes import Nouns
from rankframe._comparison.trials import Correction, Test, Trial
from rankframe._evaluation import averages, chance, evaluation, user_columns
from rankframe._report import tabular
from rankframe._report.tabular import Cell, Grid
from rankframe._request import keywords, labels
from rankframe._request.keywords import Options
from rankframe._request.labels import Metric
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters, column_roles, run_dicts

if TYPE_CHECKING:
    from rankframe._evaluation.values import Values
_SCHEMA = {
    "metric": pl.String,
    "users": pl.Int64,
    **dict.fromkeys(("mean", "ci_low", "ci_high", "p_adjusted"), pl.Float64),
    **dict.fromkeys(("higher_is_better", "best", "better", "worse"), pl.Boolean),
    **dict.fromkeys(("letters", "note"), pl.String),
}
_SHOWN, _PLACE, _LOOK = (f"{labels.PREFIX}{name}" for name in ("shown", "place", "look"))
_MARKS: Mapping[Literal["better", "worse"], str] = {"better": "†", "worse": "‡"}
#: The system from which the way to the ceiling is measured, as ``runs.baselines`` calls it.
FLOOR = "popular"
#: Notes of a comparison that the line below the table has already.
_SAID = (
    *("effective_users", "one_cluster", "clusters", "few_clusters", "no_list", "primary"),
    *("secondary", "looks", "runs", *trials.EXACT, "no_exact", "no_exact_of_groups"),
)


@adapters.takes_any_frame
def table(
    frame: Runs[Frame],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    baseline: object = None,
    digits: int = 3,
    interval: bool = False,
    letters: bool = False,
    headers: Mapping[str, str] | None = None,
    test: Test = "t",
    correction: Correction | None = "holm",
    confidence: float = 0.95,
    primary: str | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    cluster: str | None = None,
    paired: bool = True,
    over: str | None = None,
    **options: Unpack[Options],
) -> ResultsTable:
    """
    Make a table of systems and metrics: bold for the best mean, † for better, ‡ for worse.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    baseline
        The system that the others are tested against. By default there is no test, no † and no ‡,
        nothing is underlined, and SciPy is not needed.
    digits
        Decimal places of the means.
    interval
        Add to each mean its interval, as chosen by ``summarize``.
    letters
        Add a column of letters to each metric: systems that share a letter are not shown to differ,
        by t tests (exact where few users differ) of all pairs with Holm's correction. "a" marks the
        best. Pairs with the ``baseline`` differ where one has † or ‡.
    headers
        What metrics, and the columns of ``by``, are called in the table, such as
        ``{"ndcg@10": "nDCG@10"}``.
    test
        ``"t"`` (paired), ``"randomization"``, ``"max_t"`` (all systems at once) or
        ``"sequential"`` (valid at every look). The notes of ``rf.compare`` describe them.
    correction
        The correction for the number of comparisons in this call: ``"holm"``, ``"bh"`` (Benjamini
        and Hochberg), or None. ``"max_t"`` corrects by itself, and takes no other.
    confidence
        The probability that a single interval covers the true value.
    primary
        The metric that decides, such as ``"ndcg@10"``, chosen before the values are seen. Its
        p-value is not corrected for the other metrics.
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
    over
        A column of the run, such as ``"seed"``, whose values are training runs of one system for
        the same users: each user's value is the mean over runs, and the table has mean ± standard
        deviation over runs. Pairs are tested as in ``rf.compare``.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    ResultsTable
        The systems in the caller's order, the baseline first; ↑ and ↓ are the better directions of
        the metrics. A LazyFrame is computed at once. ``.as_markdown()`` and ``.as_latex()`` convert
        it, notebooks show it as HTML, and ``print`` writes text, with • for bold and ◦ for
        underlined.

        ``.note`` is the text below it: the test and its correction, the number of users, the
        effective number with ``weights``, the number of clusters with ``cluster``, the systems
        without a list for at least 5% of the users, and a line per metric of other notes of
        ``compare``, with a * at their cells. If there is a system ``popular``
        (``runs.baselines``), it also says how far each better system has come from the mean of
        ``popular`` toward the ceiling of its own lists, as ``chance`` of ``evaluate`` reports it:
        for ``primary``, or the first metric, if all users are one group and ``average`` is the
        default.

        ``.frame`` (polars) has one row per system and metric:

        - the system, segments…, ``metric``, ``users``, ``mean``
        - ``ci_low``, ``ci_high``: null without ``interval``
        - ``p_adjusted``
        - ``higher_is_better``: null for a metric without a direction
        - ``best``; ``better`` and ``worse``, which are true for means marked † and ‡
        - ``letters``: null without the option
        - ``note``
        - with ``over``, ``runs`` and ``runs_std``, as ``summarize`` has them

        With several systems, ``average`` of a column adds ``borda`` (Int64, null for a metric
        without a direction): the rank by Borda's count, 1 for the best, as in MTEB. In each group,
        a system gets a point for each system with a lower mean or without a mean, and ½ for each
        other system with the same mean; a system without a mean gets none. Equal sums share the
        better rank.

        In each segment and metric, the best displayed mean is bold. The others in ``best`` are
        underlined: they are not shown to be worse than the best mean, and have no ‡. The verdict of
        ``compare`` decides pairs with the baseline; all others have its t (exact where few users
        differ), with Holm's correction for all pairs of the call. Without a ``baseline`` and
        ``letters``, or where no pair has a test, nothing is underlined. A metric without a better
        direction has no bold mean, no underlined mean and no letters. † and ‡ mean that the verdict
        of ``compare`` is "better" or "worse": ``p_adjusted`` < 1 − ``confidence``. Counts such as
        ``num_hits`` are averaged.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3] * 2, "item": [7] * 6, "rank": [2, 2, 4, 1, 2, 3]})
    >>> run = run.with_columns(model=pl.Series(["old"] * 3 + ["new"] * 3))
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> print(rf.table(run, "rr", "hit@1", truth=truth).as_markdown())
    | model |      rr ↑ |   hit@1 ↑ |
    |:------|----------:|----------:|
    | old   |     0.417 |     0.000 |
    | new   | **0.611** | **0.333** |
    <BLANKLINE>
    Means over 3 users; bold: the best mean, not tested.
    """
    trial = Trial(
        *(baseline, test, correction, confidence, None, primary, resamples, seed, cluster),
        paired=paired,
        over=over,
    )
    digits = keywords.whole_number("digits", digits, least=0)
    for name, flag in {"interval": interval, "letters": letters}.items():
        keywords.check_switch(name, flag)
    runs: list[object] = [*frame] if isinstance(frame, Mapping) else []
    compares = None if baseline is None else "table"
    frame, by, options = run_dicts.as_frame(frame, by, options, compares=compares)
    question = comparison.ask_systems(frame, metrics, truth, by, options, trial, counts=["missed"])
    values = evaluation.user_values(question)
    named = _read_headers(headers, values)
    borda = {"borda": pl.Int64} if values.in_groups else {}
    summaries.result_schema("table", values, {**_SCHEMA, **borda})
    if letters and not values.by:
        msg = "letters=True compares systems, and the run names none: name their column with model="
        raise ValueError(msg)
    if baseline is not None or interval or letters or values.has_weights:
        values = values._replace(rows=values.rows.collect().lazy())  # one pass for all
    tested = leaders = None
    if baseline is not None:
        tested = comparison.rows_of(values, trial, "table").collect()
    if tested is not None or letters:
        summaries.check_packages()
        leaders = many_systems.leaders_of(values, confidence, tested, letters=letters)
    summary = means_of(values, trial, "table") if interval else summaries.description_of(values)
    systems = runs or _systems(frame, values.by)
    means = _sorted_means(summary.collect(), values.by, systems, baseline)
    result = _marked(means, tested, values, digits, leaders)
    if values.in_groups and values.by and result[values.by[0]].n_unique() > 1:
        result = _with_borda(result, values)
    missed = sentences.missed_lines(
        means.select(
            *sentences.system_and_segment(means, values.by), summaries.SELECTED, "num_missed"
        ),
        () if values.settings.columns.get("model") in values.by else values.by,
    )
    dependent = _of_dependent(values, tested=tested is not None)
    if "borda" in result.columns:
        dependent += ", with the rank by Borda's count over them"
    line = _line_below(result, tested, dependent, trial)
    keys = [*values.by[1:], *values.by[:1]]
    renamed = result.with_columns(pl.col("metric").replace(named))
    more = [f"{tabular.NOTE} {line}." for line in lines_of_notes(renamed, keys)]
    decides = primary if primary is not None else values.all_requested[0].name
    more += reach(values, decides, means, notes.USERS)
    after = [f" {'; '.join(missed)}." if missed else "", *more]
    is_tested = tested is not None and tested["p_value"].count() > 0
    is_tested |= result["letters"].count() > 0
    looks = result[_LOOK].to_list()
    others = _others_of(result, values.by, baseline) if tested is not None else None
    below = partial(_lines_below, line, looks, after, is_tested=is_tested, baseline=others)
    shown = adapters.with_names_as_text(result.drop(_LOOK), frame)
    return ResultsTable(shown, below, looks, digits, named)


@dataclass(frozen=True, eq=False, repr=False)
class ResultsTable:
    """A table of systems × metrics, which ``table`` makes."""

    frame: pl.DataFrame
    below: Callable[[str, str], list[str]]  # its lines, with words or marks for bold and underlined
    looks: Sequence[str]  # "best", or "tied" with it
    digits: int
    headers: Mapping[str, str]

    @property
    def note(self) -> str:
        """What stands below it, a line each."""
        return "\n".join(self.below("bold", "underlined"))

    def as_markdown(self) -> str:
        """Return it as Markdown: bold, underlined, and the note below."""
        return tabular.as_markdown(_grid(self), self.note)

    def as_latex(self, *, caption: str | None = None, label: str | None = None) -> str:
        r"""Return it as LaTeX, for ``\usepackage{booktabs}``: bold, †, ‡, and the note below.

        Parameters
        ----------
        caption
            Text above the table, which then floats: ``\begin{table}``.
        label
            What ``\ref`` names, such as ``"tab:results"``; it needs a ``caption``.
        """
        if label is not None and caption is None:
            msg = f"label={label!r}: LaTeX numbers only a table with a caption: pass caption="
            raise ValueError(msg)
        return tabular.as_latex(_grid(self), self.note, caption, label)

    def _repr_html_(self) -> str:
        return tabular.as_html(_grid(self), self.note)

    def __repr__(self) -> str:
        return tabular.as_text(
            _grid(self), self.below(tabular.IN_TEXT["best"], tabular.IN_TEXT["tied"])
        )


# ------------------------------------------------------------------ numbers


def _marked(
    means: pl.DataFrame,
    tested: pl.DataFrame | None,
    values: Values,
    digits: int,
    leaders: pl.DataFrame | None,
) -> pl.DataFrame:
    """Mark the best systems, and the systems that are better than the baseline.

    The rows of a segment stand together.
    """
    keys = values.by
    lists = [] if values.system_metrics is None else values.system_metrics.requested
    directions = pair_tests.directions_of([*values.requested, *lists])
    higher = pl.col("metric").replace_strict(directions, default=None, return_dtype=pl.Boolean)
    of_runs = [name for name in summaries.RUNS if name in means.columns]
    numbers = ("metric", "users", "mean", "ci_low", "ci_high", *of_runs)
    result = means.select(*keys, *numbers, higher.alias("higher_is_better"))
    result = with_best(result, keys, directions, digits, leaders)
    if tested is None:
        nothing = {name: pl.lit(None, _SCHEMA[name]) for name in ("p_adjusted", "note")}
        return result.with_columns(better=False, worse=False, **nothing).select(
            *keys, *_SCHEMA, *of_runs, _LOOK
        )
    shown = [(pl.col(decision.OUTCOME) == what).alias(what) for what in _MARKS]
    texts = notes.in_words(unsaid(tested, intervals=False))
    verdicts = tested.select(*keys, "metric", "p_adjusted", *shown, texts)
    joined = result.join(
        verdicts, on=[*keys, "metric"], how="left", nulls_equal=True, maintain_order="left"
    )
    unmarked = pl.col("better", "worse").fill_null(value=False)
    return joined.with_columns(unmarked).select(*keys, *_SCHEMA, *of_runs, _LOOK)


def _with_borda(result: pl.DataFrame, values: Values) -> pl.DataFrame:
    """Add the rank of each system by Borda's count over the groups whose means are averaged."""
    plain = replace(values.settings, average="users")
    of_groups = values._replace(by=[*values.by, averages.GROUP], settings=plain)
    keys, family = [*values.by, "metric"], [*values.by[1:], "metric"]
    directions = dict(result.select("metric", "higher_is_better").iter_rows())
    signs = {name: 1 if higher else -1 for name, higher in directions.items() if higher is not None}
    rating = pl.col("mean") * pl.col("metric").replace_strict(signs, default=None)
    place = rating.round_sig_figs(14).rank("average", descending=True).over(*family, averages.GROUP)
    points = pl.col(values.by[0]).n_unique().over(family) - place
    sums = summaries.description_of(of_groups).with_columns(points.alias(_PLACE))
    sums = sums.filter(pl.col("metric").is_in(signs)).group_by(keys).agg(pl.col(_PLACE).sum())
    rank = pl.col(_PLACE).rank("min", descending=True).over(family).cast(pl.Int64)
    ranks = sums.select(*keys, rank.alias("borda")).collect()
    return result.join(ranks, on=keys, how="left", nulls_equal=True, maintain_order="left")


def _read_headers(headers: Mapping[str, str] | None, values: Values) -> dict[str, str]:
    """Check that headers are of metrics or of columns of ``by``."""
    names = cast("object", {} if headers is None else headers)
    if not isinstance(names, Mapping):
        msg = f"headers={names!r} is not a dict: pass the name of each metric, as in "
        raise TypeError(msg + "headers={'ndcg@10': 'nDCG@10'}")
    named = dict(cast("Mapping[str, object]", names))
    metrics = [metric.name for metric in values.all_requested]
    comparison.check_names("headers", named, metrics, values.by)
    columns: dict[str, str] = {}
    for name in (*values.by, *metrics):
        header = named.get(name, name)
        if not isinstance(header, str):
            msg = f"headers: {header!r} of {name!r} is not text: write it as {str(header)!r}"
            raise TypeError(msg)
        if header in columns:
            msg = f"headers: {columns[header]!r} and {name!r} are both called {header!r}: "
            raise ValueError(msg + "give each its own name")
        columns[header] = name
    return {name: header for header, name in columns.items() if name in named}


def means_of(values: Values, trial: Trial, verb: str) -> pl.LazyFrame:
    """Plan the means with their intervals, as ``summarize`` has them."""
    numbers = {name: getattr(trial, name) for name in ("confidence", "resamples", "seed")}
    return summaries.summary_of(values, method="auto", verb=verb, **numbers)


def _systems(frame: Frame, by: Sequence[str]) -> list[object]:
    """Return the systems in the order of their first rows."""
    run = adapters.to_lazy(frame, "run")
    if not by or by[0] not in run.collect_schema():
        return []
    return run.select(pl.col(by[0]).unique(maintain_order=True)).collect().to_series().to_list()


def _sorted_means(
    means: pl.DataFrame, by: Sequence[str], names: Sequence[object], baseline: object
) -> pl.DataFrame:
    """Sort by segment, then the baseline first, then the systems in the caller's order."""
    if not by:
        return means
    order = {name: place for place, name in enumerate([baseline, *names]) if name != baseline}
    order[baseline] = -1
    places = pl.Series(_PLACE, [order.get(name, len(order)) for name in means[by[0]]], pl.Int64)
    return means.sort(*by[1:], places, maintain_order=True)


def unsaid(tested: pl.DataFrame, *, intervals: bool = True) -> pl.Series:
    """Return the notes of a comparison, without the parts that the line below the table has.

    Without ``intervals``, the table shows none, and a note that one was cut is left out.
    """
    said = {*_SAID, *sentences.common_reasons(tested)}
    return notes.without(tested["note"], said if intervals else {*said, "cut", "cut_difference"})


def lines_of_notes(table: pl.DataFrame, names: Sequence[str]) -> list[str]:
    """Write the notes of each metric, each of them before the ``names`` of the rows that have it.

    Metrics with the same notes have one line, and a note that differs in its numbers has no words.
    """
    rows: dict[str, dict[str, list[str]]] = {}
    for row in table.filter(pl.col("note").is_not_null()).iter_rows(named=True):
        name = " ".join(sentences.name_in_note(row[name]) for name in names)
        rows.setdefault(row["metric"], {}).setdefault(row["note"], []).append(name)
    metrics: dict[str, list[str]] = {}
    for metric, said in rows.items():
        parts, before = list[str](), ""
        for note, of in said.items():
            numbers = re.match("[0-9,]+ of [0-9,]+ ", note)
            rest = note[numbers.end() :] if numbers else ""
            text = numbers[0].strip() if numbers and rest == before else note
            parts.append(f"{text} ({_listed(of)})" if any(of) else text)
            before = rest
        metrics.setdefault("; ".join(parts), []).append(metric)
    return [f"{_listed(of)}: {text}" for text, of in metrics.items()]


def reach(values: Values, name: str, means: pl.DataFrame, nouns: Nouns) -> list[str]:
    """Say how far each system is from a run called popular to its ceiling, if there is one."""
    if not values.by or FLOOR not in means[values.by[0]].cast(pl.String):
        return []
    shares, words = chance.reach(values, name, FLOOR), notes.templates("tables")
    texts = [
        nouns.write(words["reach_of_one"], system=sentences.name_in_note(of), share=shares[of])
        for of in means[values.by[0]].unique(maintain_order=True)
        if of in shares
    ]
    if not texts:
        return []
    line = nouns.write(words["reach"], floor=FLOOR, shares=numerals.listed(texts), metric=name)
    return [f"{line}."]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def with_best(
    means: pl.DataFrame,
    by: Sequence[str],
    directions: Mapping[str, bool | None],
    digits: int,
    leaders: pl.DataFrame | None,
) -> pl.DataFrame:
    """Add which systems may be the best of their metric, how they look, and their letters.

    Where nothing is tested, the best are those with the best displayed mean. A metric without a
    direction, or of one system, has no best.
    """
    keys, family = [*by, "metric"], [*by[1:], "metric"]
    if leaders is None:
        nothing = pl.lit(None, pl.Boolean).alias("may_be_best"), pl.lit(None, pl.String)
        leaders = means.select(keys).clear().with_columns(*nothing[:1], letters=nothing[1])
    signs = {name: 1 if higher else -1 for name, higher in directions.items() if higher is not None}
    sign = pl.col("metric").replace_strict(signs, default=None, return_dtype=pl.Int64)
    shown = [None if mean is None else round(mean, digits) for mean in means["mean"]]
    rating, shown_rating = pl.col("mean") * sign, pl.col(_SHOWN) * sign
    is_best = (pl.int_range(pl.len()) == rating.arg_max()).over(family)
    is_alike = (shown_rating == shown_rating.max()).over(family)
    may_be_best = is_best | pl.coalesce("may_be_best", is_alike)
    best = (may_be_best & (pl.len().over(family) > 1)).fill_null(value=False)
    look = pl.when(is_alike).then(pl.lit("best")).otherwise(pl.lit("tied"))
    return (
        means.with_columns(pl.Series(_SHOWN, shown, pl.Float64))
        .join(leaders, on=keys, how="left", nulls_equal=True, maintain_order="left")
        .with_columns(pl.when(best).then(look).otherwise(pl.lit("")).alias(_LOOK), best=best)
        .drop("may_be_best", _SHOWN)
    )


def _of_dependent(values: Values, *, tested: bool) -> str:
    """Write how many clusters and effective users are behind the numbers."""
    parts: list[str] = []
    of_groups = values.rows.group_by(values.by or pl.lit(0).alias(_PLACE))
    if values.cluster is not None and tested:
        counts = of_groups.agg(pl.col(user_columns.CLUSTER).drop_nulls().n_unique()).collect()[
            user_columns.CLUSTER
        ]
        few = (
            ", too few for a sure test"
            if sentences.ends(counts)[0] < sentences.FEW_CLUSTERS
            else ""
        )
        parts.append(f" in {sentences.span(counts)} clusters{few}")
    if values.in_groups:
        number = values.rows.select(pl.col(averages.GROUP).n_unique()).collect().item()
        parts.append(f" in {number:,} groups of {values.settings.average!r}, which count alike")
    columns = {metric.name: averages.weight_of(values, metric.name) for metric in values.requested}
    weights = {
        name: pl.col(weight).filter(pl.col(name).is_not_null())
        for name, weight in columns.items()
        if weight is not None
    }
    if weights:
        sizes = [(of.sum() ** 2 / (of**2).sum()).alias(name) for name, of in weights.items()]
        effective_sizes = of_groups.agg(sizes).collect().select([*weights])
        counts = effective_sizes.unpivot()["value"].drop_nulls().drop_nans()
        if not counts.is_empty():
            how = "pooled" if values.pooled else "weighted"
            parts.append(f", {how}: effective number {sentences.span(counts)}")
    return "".join(parts)


def _line_below(
    result: pl.DataFrame, tested: pl.DataFrame | None, dependent: str, trial: Trial
) -> str:
    """Name the test, the correction and the number of users, without the last period."""
    users = sentences.users(result["users"]) + dependent
    why = "" if tested is None else sentences.untested(tested)
    more = ""
    if result["ci_low"].count():
        more = f"; {trial.confidence * 100:.10g}% intervals as in summarize"
    if trial.over is not None and result["runs_std"].count():
        more += f"; ± standard deviation of {sentences.span(result['runs'])} runs"
    if result["letters"].count():
        more += f"; {notes.USERS.write(notes.templates('tables')['letters'])}"
    if tested is None:
        return f"Means over {users}{more}"
    baseline = sentences.name_in_note(trial.baseline)
    corrected = sentences.correction_in_words(trial, tested)
    paired = sentences.users(tested["users"]) + dependent
    who = users if paired == users else f"{paired} in pairs, means over {users}"
    if why:
        return f"Not tested against {baseline}: {why}; {who}{more}"
    marks = [f"{mark} {what}" for what, mark in _MARKS.items() if result[what].any()]
    system = ", ".join(marks) or "No system is shown to be better or worse"
    how = (
        f"{sentences.test_in_words(trial, tested, notes.USERS)}, p < {trial.alpha:.10g} {corrected}"
    )
    return f"{system} than {baseline}: {how}; {who}{more}"


def _others_of(result: pl.DataFrame, by: Sequence[str], baseline: object) -> str | None:
    """Name the baseline if pairs without it decide what is underlined."""
    systems = result[by[0]].to_list()
    is_other = (
        look == "best" and system != baseline
        for look, system in zip(result[_LOOK], systems, strict=True)
    )
    return sentences.name_in_note(baseline) if len({*systems}) > 2 and any(is_other) else None


def _lines_below(
    line: str,
    looks: Sequence[str],
    after: Sequence[str],
    bold: str,
    underlined: str,
    *,
    is_tested: bool,
    baseline: str | None,
) -> list[str]:
    """Write the lines below a table, with words or marks for bold and underlined."""
    template = notes.templates("tables")["best" if is_tested else "best_untested"]
    marks = {"bold": bold, "underlined": None, "baseline": None}
    if "tied" in looks:
        marks |= {"underlined": underlined, "baseline": baseline}
    best = f"; {notes.USERS.write(template, **marks)}" if "best" in looks else ""
    return [f"{line}{best}.{after[0]}", *after[1:]]


# ------------------------------------------------------------------ cells


def _grid(results_table: ResultsTable) -> Grid:
    """Arrange one row per system (and segment), one column per metric, and one of its letters."""
    frame = results_table.frame
    keys = frame.columns[: frame.columns.index("metric")]
    metrics = frame["metric"].unique(maintain_order=True).to_list()
    more = ["letters"] * (frame["letters"].count() > 0)
    more += [name for name in ("borda",) if name in frame.columns]
    rows: dict[tuple[object, ...], dict[str, list[Cell]]] = {}
    for row, look in zip(frame.iter_rows(named=True), results_table.looks, strict=True):
        mean = Cell(
            _mean(row, results_table.digits),
            small=_interval(row, results_table.digits),
            kind=look,
            mark="".join(mark for what, mark in _MARKS.items() if row[what]),
            note=f" {tabular.NOTE}" if row["note"] else "",
        )
        cells = [mean, *(Cell("" if row[name] is None else str(row[name])) for name in more)]
        rows.setdefault(tuple(row[key] for key in keys), {})[row["metric"]] = cells
    nothing = [Cell(numerals.DASH), *(Cell("") for _ in more)]
    arranged = [
        [
            *(Cell(column_roles.in_words(value)) for value in key),
            *(cell for metric in metrics for cell in cells_of.get(metric, nothing)),
        ]
        for key, cells_of in rows.items()
    ]
    directions = dict(frame.select("metric", "higher_is_better").iter_rows())
    names = {name: results_table.headers.get(name, name) for name in (*keys, *metrics)}
    heads = [names[key] for key in keys]
    for metric in metrics:
        heads += [f"{names[metric]}{_ARROWS[directions[metric]]}", *more]
    return Grid("", heads, arranged, keys=len(keys))


_ARROWS = {True: " ↑", False: " ↓", None: ""}


def _mean(row: Mapping[str, Any], digits: int) -> str:
    """Write a mean, with the standard deviation over training runs if there are several."""
    mean, deviation = numerals.fixed(row["mean"], digits, numerals.DASH), row.get("runs_std")
    return mean if deviation is None else f"{mean} ± {numerals.fixed(deviation, digits, '')}"


def _interval(row: Mapping[str, Any], digits: int) -> str:
    ends = [numerals.fixed(row[end], digits, "") for end in ("ci_low", "ci_high")]
    return f"[{', '.join(ends)}]" if all(ends) else ""
