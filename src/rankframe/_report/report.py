"""Make a report, everything to read before a decision: a page, its tables and its charts."""

from __future__ import annotations

import hashlib
import html
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Unpack, cast

import polars as pl

from rankframe._comparison import comparison, notes, segments, summaries
from rankframe._comparison.packages import statistics
from rankframe._comparison.trials import Correction, Margin, Test, Trial
from rankframe._evaluation import evaluation, ready_values
from rankframe._report import card, facts, figures, markup, people, sections
from rankframe._report import nouns as wording
from rankframe._report.call import ReportCall
from rankframe._report.facts import Numbers
from rankframe._report.markup import Page
from rankframe._request import keywords
from rankframe._request.keywords import Columns, Options
from rankframe._request.labels import Metric
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters, readers, run_dicts
from rankframe.errors import RankingDataError

if TYPE_CHECKING:
    from altair.typing import ChartType

    from rankframe._comparison.statistics import Advance


class Report:
    """
    A report: its verdict, its tables, its charts, and the page that shows them.

    Attributes
    ----------
    verdict
        The page's card in words: its title is what the comparison shows, such as *new is better
        than old*; then how much, what may mislead (lines with ⚠), the users who do worse, the same
        and better, and the next step. The outcomes: *better*, *worse*, *higher*, *lower*, *the
        same* and *not worse* (both only with a ``margin``), *identical*, *better* in one metric
        *but worse* in another, *too few* users, *undecided*, *no test*, and *not enough judgments*:
        unjudged items could reverse a proved difference.
    tables
        The frames behind the page, of the caller's kind of frame: ``means``, ``comparison``,
        ``comparison served`` (users whom both systems serve), ``cut-offs``, ``harm``,
        ``distribution``, ``segments: …`` (``segments: relevant items`` by the ``history``,
        ``segments: number of relevant items``), ``health`` and ``sources``, as far as the report
        has them. Segments of separate users have the columns ``shrunken``, ``shrunken_low`` and
        ``shrunken_high`` of ``rf.stats.compare_segments``.
    """

    def __init__(
        self,
        page: Page,
        verdict: str,
        tables: dict[str, Any],
        draw: Callable[[], dict[str, ChartType]],
    ) -> None:
        self.verdict = verdict
        self.tables = tables
        self._page = page
        self._draw = draw

    @cached_property
    def charts(self) -> dict[str, ChartType]:
        """The Altair charts of the page by name."""
        return self._draw()

    def save(self, path: str | Path, *, static: bool = False) -> None:
        """
        Write the report as one HTML file, which needs no network.

        Parameters
        ----------
        path
            The file to write, which ends in ``.html`` or ``.htm``.
        static
            Leave out the one script of the page, and the lists that it shows (``explore=``).

        Raises
        ------
        ValueError
            If ``path`` has another ending.
        FileNotFoundError
            If the folder does not exist.
        """
        check_path(Path(path))
        Path(path).write_text(self.html(static=static), encoding="utf-8", newline="\n")

    def html(self, *, static: bool = False) -> str:
        """
        Return the page that ``save`` writes.

        Parameters
        ----------
        static
            Leave out the one script of the page, and the lists that it shows (``explore=``).
        """
        return markup.rendered(self._page, self.charts, static=static)

    def made_by(self, command: str, paths: Sequence[Path]) -> Report:
        """
        Return a report that shows the command that made it, and the checksums of its files.

        Parameters
        ----------
        command
            The command, as it is typed.
        paths
            The files that it read.
        """
        sums = [
            f"# sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}  {path}" for path in paths
        ]
        *sections, last = self._page.sections
        last = last._replace(code="\n".join([command, *sums]))
        page = self._page._replace(sections=[*sections, last])
        return Report(page, self.verdict, self.tables, self._draw)

    def _repr_html_(self) -> str:
        page = html.escape(self.html(static=True))
        style = "width:100%;height:760px;border:1px solid #8888;border-radius:4px"
        title = html.escape(wording.plain(self._page.title))
        return f'<iframe title="{title}" sandbox srcdoc="{page}" style="{style}"></iframe>'

    def __repr__(self) -> str:
        return f"<Report: {wording.plain(self._page.title)}>\n{self.verdict}"


@adapters.takes_any_frame
def report(
    frame: Runs[Frame],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    human: Truth | None = None,
    by: str | Sequence[str] = (),
    baseline: object = None,
    k: int = 10,
    test: Test = "t",
    correction: Correction | None = "holm",
    confidence: float = 0.95,
    margin: Margin | None = None,
    primary: str | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    cluster: str | None = None,
    paired: bool = True,
    title: str | None = None,
    note: str | None = None,
    nouns: tuple[str, str] | None = None,
    queries: Frame | None = None,
    explore: int = people.SHOWN,
    **options: Unpack[Options],
) -> Report:
    """Report whether a system is better, for whom, and on which data, as one HTML page.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``.
    *metrics
        Labels or expressions. The first one, or ``primary``, decides the verdict. By default nDCG,
        recall and precision at ``k``, ``map`` and ``mrr``, with nDCG as ``primary``: its p-value is
        not corrected for the other four.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    human
        A truth with labels by humans; ``truth`` then has the labels of a judge, such as a language
        model. It has a random sample of the users of ``truth``, and all their labels down to the
        depth of the metrics. The labels correct the verdict and the table only, and the page says
        so.
    by
        Columns of segments of the truth (or of the judged table), such as the users' country.
    baseline
        The system that the others are compared with; by default the first one of a dict or an Enum.
        For a column of text, which has no order, name the baseline.
    k
        The length of the displayed lists, and the cut-off of the default metrics.
    test
        ``"t"`` (paired), ``"randomization"``, ``"max_t"`` (all systems at once) or
        ``"sequential"`` (valid at every look). The notes of ``rf.compare`` describe them.
    correction
        The correction for the number of comparisons in this call: ``"holm"``, ``"bh"`` (Benjamini
        and Hochberg), or None. ``"max_t"`` corrects by itself, and takes no other.
    confidence
        The probability that a single interval covers the true value.
    margin
        A difference too small to matter, > 0, on the scale of the metric, or a share of the
        baseline's values such as ``"1%"``: one for all metrics, or a mapping such as
        ``{"ndcg@10": 0.01, "mrr": "2%"}``; metrics missing from the mapping have no margin.
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
    title
        The title of the page; by default the names of the systems.
    note
        A line below the title, such as the author and the date. The page has no date of its own,
        since the same input makes the same bytes.
    nouns
        What the page calls users and items, such as ``("query", "document")``. By default, a user
        is called query if the column is ``query``, ``query_id`` or ``qid``, and session if it
        begins with ``session``; an item is called document or passage if its column begins with
        ``doc`` or ``passage``.
    queries
        The texts of the queries (or of other users), one row per query: a column ``title``,
        ``name``, ``text`` or ``query``, or else another column of text, is shown and searched.
    explore
        The number of users whose lists the page includes: by default eight, the four greatest
        losses and the four greatest gains. If there are more, 30% are the greatest losses, 30% the
        greatest gains, and the others are drawn with ``seed``; 50 take about 50 kB. 0 shows no
        lists, which keeps data of single people out of the file.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    Report
        ``save(path)`` writes one HTML file, which needs no network; ``save(path, static=True)``
        writes one without scripts. Notebooks show the page. ``verdict`` is text, ``tables`` a dict
        of frames, ``charts`` a dict of Altair charts. The same input makes the same bytes.

    Raises
    ------
    RankingDataError
        If no table has a column of ``by``.
    ValueError
        If ``nouns`` are not two words.

    Notes
    -----
    With the default ``users="truth"``, a user missing from a run counts as 0. If a system has no
    list for 5% of the users or more, or the verdict changes without these users, the report also
    compares the systems on the users whom both serve.

    If there is a system ``popular``, such as that of ``runs.baselines``, a line says how far each
    better system has come from the mean of ``popular`` toward the best order of its own lists, in
    the metric that decides.

    A column ``title`` or ``name`` of ``items`` is shown instead of each item's id. The last five
    items of ``history=`` are shown above the lists of a user.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3] * 2, "item": [7] * 6, "rank": [2, 2, 4, 1, 2, 3]})
    >>> run = run.with_columns(model=pl.Series(["old"] * 3 + ["new"] * 3))
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> made = rf.report(run, "rr", "recall@3", truth=truth, baseline="old")
    >>> print(made.verdict.partition(".")[0])
    3 users are too few to tell new from old
    >>> made.save("report.html")  # doctest: +SKIP
    """
    trial = Trial(
        *(baseline, test, correction, confidence, margin, primary, resamples, seed, cluster),
        paired=paired,
        needed_by="report" if baseline is None else None,
    )
    markup.check_report_packages()
    summaries.check_packages()
    compares = None if baseline is None else "report"
    table, by, options = run_dicts.as_frame(frame, by, options, compares=compares)
    k = keywords.whole_number("k", k)
    settings = keywords.read_options(options, cluster=cluster, counts=["missed"])
    if truth is None:
        names = adapters.column_names(table, "judged table")
        ready_values.check_lists("report", names, by, settings.columns)
    like, table = table, readers.with_items(table, truth, by, options)
    run, system = _with_system(table, truth, options.get("model"))
    options["model"] = system
    settings = replace(settings, columns=cast("Columns", {**settings.columns, "model": system}))
    if not metrics:
        first, *others = facts.default_metrics(k)
        metrics = (first, *others)
        # nobody asked for the tests of the others
        trial = trial._replace(primary=first if primary is None else primary)
    call = ReportCall(
        run=run,
        truth=None if truth is None else adapters.to_polars(truth, "truth"),
        human=human,
        metrics=metrics,
        by=system,
        segments=[name for name in by if name != system],
        k=k,
        trial=trial,
        settings=settings,
        options=options,
        queries=queries,
        explore=keywords.whole_number("explore", explore, least=0),
        note=note,
        nouns=nouns,
    )
    numbers = _numbers(call, own_system=system not in adapters.column_names(table, "run"))
    page = sections.page_of(numbers, title)
    draw = partial(figures.charts_of, numbers)
    return Report(page, card.text_of_card(page.card), _tables(numbers, like), draw)


def check_path(path: Path) -> None:
    """Check before a page is made that it can be written there."""
    if path.suffix.lower() not in (".html", ".htm"):
        msg = f"a report is HTML: its file must end in .html or .htm, not {path.name!r}"
        raise ValueError(msg)
    if not path.parent.is_dir():
        msg = f"{path}: no such folder: {str(path.parent)!r}"
        raise FileNotFoundError(msg)


def _numbers(call: ReportCall, *, own_system: bool) -> Numbers:
    """Compute the numbers; errors do not name a column of systems that the caller has not."""
    try:
        with statistics.progress(facts.STEPS) as advance, _seconds(advance):
            return facts.numbers_of(call, advance)
    except RankingDataError:
        if own_system:  # what is wrong with the caller's own tables is said of these
            run, options = call.run.drop(call.by), cast("Any", {**call.options, "model": None})
            evaluation.evaluate(run.lazy(), *call.metrics, truth=call.truth, **options).collect()
        raise


@contextmanager
def _seconds(advance: Advance) -> Generator[None]:
    """Show each second of a long step on the bar of a terminal."""
    done = Event()

    def tick() -> None:
        while not done.wait(1):
            advance(0)

    ticker = Thread(target=tick, daemon=True)
    if sys.stderr is not None and sys.stderr.isatty():
        ticker.start()
    try:
        yield
    finally:
        done.set()
        if ticker.ident is not None:
            ticker.join()


def _with_system(
    frame: Frame, truth: Truth | None, model: str | None
) -> tuple[pl.DataFrame | pl.LazyFrame, str]:
    """Return the column of the systems; a run of one system gets one."""
    kind = "judged table" if truth is None else "run"
    run = adapters.to_polars(frame, kind)
    if model is not None:
        return run, model
    names = [*adapters.column_names(frame, kind)]
    names += [] if truth is None else adapters.column_names(truth, "truth")
    name = next(name for name in (keywords.MODEL, "system", "__system") if name not in names)
    return run.with_columns(pl.lit("run").alias(name)), name


def _tables(numbers: Numbers, like: Frame) -> dict[str, Any]:
    """Return the frames of a report by name, in the caller's kind; lazy frames are computed."""
    tables = {
        "means": numbers.means,
        "comparison": numbers.compared,
        "comparison served": numbers.served,
        "cut-offs": numbers.cuts,
        "harm": numbers.harm,
        "distribution": numbers.spread,
        **{f"segments: {name}": table for name, table in numbers.segments.items()},
        f"segments: {facts.RELEVANT}": numbers.of_relevant,
        "health": numbers.health,
        "sources": numbers.sources,
    }
    frames: dict[str, Any] = {}
    for name, table in tables.items():
        if table is None:
            continue
        noted = [notes.in_words(table["note"])] if "note" in table.columns else []
        names = table.columns
        if "verdict" in names:
            by = names[: names.index("metric")]
            human = "correction" in names
            names = comparison.columns_of(by, numbers.call.trial, details=True, human=human)
            names += [name for name in segments.SHRUNKEN if name in table.columns]
        frame = adapters.with_names_as_text(table.with_columns(noted).select(names), like)
        is_lazy = isinstance(like, pl.LazyFrame)
        frames[name] = frame if is_lazy else adapters.to_caller_type(frame.lazy(), like=like)
    return frames
