"""Run the command, such as ``rankframe evaluate RUN TRUTH -m map``: output, and an exit code."""

import argparse
import contextlib
import json
import os
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Generator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import polars as pl

from rankframe._command import imported_when_used
from rankframe._command.files import Tables
from rankframe._command.inputs import Input
from rankframe._command.options import Run
from rankframe._comparison.trials import Trial
from rankframe._request.keywords import Columns
from rankframe._request.labels import RequestedMetric
from rankframe.errors import RankingWarning

with imported_when_used():
    from rankframe._command import (
        config_file,
        files,
        inputs,
        options,
        progress,
        reference,
        text_tables,
        trec,
    )
    from rankframe._comparison import (
        comparison,
        differences,
        floors,
        gate,
        launch,
        notes,
        numerals,
        pair_tests,
        sentences,
        trials,
    )
    from rankframe._evaluation import evaluation, explanation, provenance, row_verbs
    from rankframe._health import health
    from rankframe._inputs import item_lists
    from rankframe._report import facts, report
    from rankframe._request import descriptions, keywords, labels
    from rankframe._tables import adapters, rank_order, run_dicts, verbs
    from rankframe._warehouse import query

# Two recommenders, ten users, five items each; they differ only for the last user.
_RELEVANT = "abc abc abc def def def ghi ghi ghi jkl".split()
_MODELS = {
    "M1": "ahjlp tbfhk xbdca fbcdy abcde pemnf hiace oighk agevx zjasq".split(),
    "M2": "ahjlp tbfhk xbdca fbcdy abcde pemnf hiace oighk agevx zxcqp".split(),
}
_MISSED = "num_missed"
_K = 10  # cut-off of the default metrics
_ENDS = ("_users", "_low", "_high", "_chance", "_ceiling")  # of columns beside a metric
_OF_ALL_USERS = (trec.RUN_ID, "num_q")  # lines of trec_eval that are no mean over users
#: Notes of a comparison that the lines above the table have already.
_SAID_ABOVE = ("primary", "secondary", *trials.EXACT)
_RESAMPLED = ("randomization", "max_t")  # with their own progress bar


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code.

    0: success; 1: a gate fails; 2: bad input, or a gate without an interval; 3: an error of
    rankframe itself. For 1 and 2, one line on standard error explains why; for 3, a traceback.
    A warning is a line, too.
    """
    words = sys.argv[1:] if arguments is None else [*arguments]
    with _warnings_in_lines("toml" if words[:1] == ["run"] else "command"):
        return _code_of(words)


@contextlib.contextmanager
def _warnings_in_lines(reader: str) -> Generator[None]:
    """Print each warning of rankframe once, as errors are printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", RankingWarning)
        other, said = warnings.showwarning, set[str]()

        def show(
            message: Warning | str, category: type[Warning], *where: Any, **options: Any
        ) -> None:
            if not issubclass(category, RankingWarning):
                other(message, category, *where, **options)
            elif (text := files.one_line(message, reader)) not in said:
                said.add(text)
                text_tables.print_error(f"rankframe: warning: {text}")

        warnings.showwarning = show
        yield


def _code_of(words: Sequence[str]) -> int:
    namespace = options.parser_of(_COMMANDS, words).parse_args(options.with_each_metric(words))
    namespace.command_line = words
    code = None
    try:
        for name in namespace.modules:
            _import(name)
        code = namespace.run_command(namespace)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has stopped reading
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, TypeError, OSError, ImportError, pl.exceptions.PolarsError) as error:
        text_tables.print_error(f"rankframe: error: {_in_words(error, namespace)}")
        return 2
    # Python would return 1, which is a failed gate; a panic of Polars is no Exception
    except (Exception, pl.exceptions.PanicException):  # noqa: BLE001
        traceback.print_exc()
        return 3
    return code or 0


def _in_words(error: Exception, arguments: argparse.Namespace) -> str:
    """Write an error in one line; of a file that cannot be read, its name."""
    is_of_file = isinstance(error, pl.exceptions.PolarsError | OSError) and "runs" in arguments
    broken = files.broken_file(_inputs(arguments)) if is_of_file else None
    return broken or files.one_line(error, "toml" if "config" in arguments else "command")


def _import(name: str) -> None:
    """Import a module of the caller, also from the working directory."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    import_module(name)


# ------------------------------------------------------------------ evaluate


def _evaluate(arguments: argparse.Namespace) -> None:
    _split_files(arguments)
    metric_labels = _metric_labels(arguments)
    _check_rows(arguments)
    _check_outputs(arguments)
    with progress.clock():
        tables, run, call = _read(arguments)
        call |= _conventions(arguments)
        names = _with_num_missed([name for name in metric_labels if name != trec.RUN_ID], arguments)
        results = _evaluated(run, names, arguments, call)
        digits = _provenance(arguments, run, metric_labels, call)
    by = call["by"]
    missed = _missed_of(results[-1], by)
    extra_columns = [] if _MISSED in metric_labels else [f"{_MISSED}{end}" for end in ("", *_ENDS)]
    extra_columns += ["users"] if arguments.per_query else []
    results = [rows.drop(extra_columns, strict=False) for rows in results]
    users = arguments.user or [keywords.user_of(tables.columns)]
    if arguments.form == "trec":
        _print_trec(results, users[0], tables.tag if trec.RUN_ID in metric_labels else None)
        return
    result = _with_means(results, by, users) if arguments.per_query else results[0]
    if not _output(result, arguments, digits):
        text_tables.show_values(
            result,
            [*by, *(name for name in (*users, "users") if name in result.columns)],
            details=arguments.details,
        )
        text_tables.print_lines(missed)


def _split_files(arguments: argparse.Namespace) -> None:
    """Take the last of several files as the truth; a configuration file has named it."""
    if arguments.files is None:
        return
    *arguments.runs, arguments.truth = (
        arguments.files if len(arguments.files) > 1 else [*arguments.files, None]
    )
    if arguments.truth is not None and arguments.truth.name is not None:
        msg = (
            f"{arguments.truth.name}={arguments.truth}: the last file is the truth, "
            "which has no name"
        )
        raise ValueError(msg)


def _is_for_people(arguments: argparse.Namespace) -> bool:
    """Return whether the result is printed as a table."""
    return arguments.form != "trec" and not arguments.json and arguments.out is None


def _with_num_missed(names: Sequence[str], arguments: argparse.Namespace) -> list[str]:
    """Add the count of users without a list, which a line below the table needs."""
    if (
        arguments.per_user
        or arguments.truth is None
        or arguments.weights
        or arguments.average
        or not _is_for_people(arguments)
    ):
        return [*names]  # a sum over users has no weighted form
    return list(dict.fromkeys([*names, _MISSED]))


def _missed_of(result: pl.DataFrame, by: Sequence[str]) -> list[str]:
    """Write lines for systems that have no list for many users."""
    if not {"users", _MISSED} <= {*result.columns}:
        return []
    return sentences.missed_lines(
        result.select(*sentences.system_and_segment(result, by), pl.col("users", _MISSED)), by
    )


def _evaluated(
    run: pl.LazyFrame,
    names: Sequence[str],
    arguments: argparse.Namespace,
    conventions: Mapping[str, Any],
) -> list[pl.DataFrame]:
    """Compute the rows of users, the row of all users, or both in this order."""
    if arguments.per_user:
        return [evaluation.per_user(run, *names, **conventions).collect()]
    more = {name: getattr(arguments, name) for name in ("total", "count_users", "chance")}
    of_all = evaluation.evaluate(run, *names, **conventions, **more)
    if not arguments.per_query:
        return [of_all.collect()]
    requested = labels.parse_metrics(names, per_user=False)
    single = [metric.name for metric in requested if metric.per_user and not metric.is_of_all_lists]
    of_users = [evaluation.per_user(run, *single, **conventions)] if single else []
    return pl.collect_all([*of_users, of_all])


def _metric_labels(arguments: argparse.Namespace) -> list[str]:
    if not arguments.metrics and arguments.truth is None:
        msg = "no -m, and no truth as the last file: name metrics of lists, such as -m coverage@10"
        raise ValueError(msg)
    return trec.spelled_out(arguments.metrics or facts.default_metrics(_K), arguments.preset)


def _check_rows(arguments: argparse.Namespace) -> None:
    """Check that the options for rows and for their format are compatible."""
    of_users = "--per-user" if arguments.per_user else "-q" if arguments.per_query else None
    for option, meaning in {
        "--total": "adds a row of overall means",
        "--count-users": "counts the users of each mean",
        "--chance": "adds means",
        "--weights": "weighs the users of a mean",
        "--average": "says which mean is taken",
    }.items():
        if of_users and getattr(arguments, option[2:].replace("-", "_")):
            msg = f"{option} {meaning} and cannot be combined with {of_users}"
            raise ValueError(msg)
    problem, is_trec = "", arguments.form == "trec"
    if arguments.per_user and arguments.per_query:
        problem = "-q includes the rows of --per-user: pass one of the two"
    elif is_trec and (len(arguments.runs) > 1 or arguments.by):
        problem = (
            "--print trec has no column but measure, user and value: pass one run, and no --by"
        )
    elif is_trec and len(arguments.user) > 1:
        problem = "--print trec has one column of the user: print a table, or name one by --user"
    elif is_trec and (arguments.out or arguments.json):
        problem = "--print trec is text: leave out --out and --json"
    if problem:
        raise ValueError(problem)


def _read(
    arguments: argparse.Namespace,
) -> tuple[Tables, pl.LazyFrame, dict[str, Any]]:
    """Read the tables, stack several runs, and rank if requested; return the keywords, too.

    The column of the systems is first in ``by``.
    """
    shared: Tables | None = getattr(arguments, "tables", None)  # of several commands
    tables = shared or files.read_files(arguments, _columns(arguments))
    run, *rest = tables.runs.values()
    if rest:
        run = files.of_systems(tables.runs, arguments, tables.columns)
    by, columns = run_dicts.with_model(run.collect_schema(), arguments.by, tables.columns)
    duplicates = getattr(arguments, "duplicates", None)
    once: dict[str, Any] = {} if duplicates is None else {"duplicates": duplicates}
    if getattr(arguments, "ties", None) is not None:
        grades = tables.truth if arguments.ties in rank_order.BY_GRADE else None
        run = verbs.with_rank(run, by=by, ties=arguments.ties, truth=grades, **once, **columns)
        columns.pop("score", None)
        columns.pop("rank", None)
    return tables, run, {"truth": tables.truth, "by": by, **tables.beside, **once, **columns}


def _with_means(
    results: Sequence[pl.DataFrame], by: Sequence[str], users: Sequence[str]
) -> pl.DataFrame:
    """Put the row of all users after the rows of users, in each group."""
    *of_users, of_all = results
    named = [pl.lit("all").alias(name) for name in users]
    everybody = of_all.select(*by, *named, pl.exclude(by))
    if not of_users:
        return everybody
    rows = [of_users[0].with_columns(pl.col(users).cast(pl.String)), everybody]
    both = pl.concat(rows, how="diagonal_relaxed").select(everybody.columns)
    return both.sort(by, maintain_order=True) if by else both


def _print_trec(results: Sequence[pl.DataFrame], user: str, tag: str | None) -> None:
    *of_users, last = results
    text = "".join(trec.lines_of(rows, user) for rows in of_users)
    if user in last.columns:
        text_tables.print_data(trec.lines_of(last, user))
        return
    text += "" if tag is None else trec.line_of(trec.RUN_ID, "all", tag)
    everybody = last.drop("users", strict=False).with_columns(pl.lit("all").alias(user))
    text_tables.print_data(text + trec.lines_of(everybody, user))


# ------------------------------------------------------------------ check and health


def _check(arguments: argparse.Namespace) -> None:
    _split_files(arguments)
    names = trec.spelled_out(arguments.metrics, arguments.preset)
    with progress.clock():
        _, run, call = _read(arguments)
        rows = row_verbs.check(run, **call).select(pl.len()).collect().item()
        if names := [name for name in names if name != trec.RUN_ID]:
            evaluation.evaluate(run, *names, **(call | _conventions(arguments))).collect()
        missed: list[str] = []
        if call["truth"] is not None:
            missed = _missed_of(evaluation.evaluate(run, _MISSED, **call).collect(), call["by"])
    text_tables.print_lines([f"No rule is broken ({rows:,} row{'s' * (rows != 1)}).", *missed])


def _health(arguments: argparse.Namespace) -> None:
    _split_files(arguments)
    _check_outputs(arguments)
    with progress.clock():
        _, run, call = _read(arguments)
        result = health.health(run, k=arguments.k, time=arguments.time, **call).collect()
    if not _output(result, arguments):
        _show_health(result, details=arguments.details)


def _show_health(result: pl.DataFrame, *, details: bool) -> None:
    """Print what is worth a look, and below it what is in the tables."""
    shown = result.with_columns(
        pl.Series("count", [f"{count:,}" for count in result["count"]], pl.String),
        share=pl.col("share").map_elements(numerals.percent, return_dtype=pl.String),
    )
    problem, counted = pl.col("problem").fill_null(value=False), pl.col("count") != "0"
    sizes = shown.filter(~problem, counted | pl.lit(details))
    for head, rows in (("Problems", shown.filter(problem)), ("\nCounts", sizes)):
        text_tables.print_text(f"{head}: {rows.height or 'none'}\n")
        if rows.height:
            text_tables.show(rows.drop("problem"), numbers=("count", "share"), details=details)
    left_out = shown.filter(~counted).height
    if left_out and not details:
        text_tables.print_lines([f"Counts of 0 that are left out: {left_out} (--details: all)."])


def _explain(arguments: argparse.Namespace) -> None:
    names = trec.spelled_out(arguments.metrics, arguments.preset)
    numbers, paths = arguments.words[: len(names)], arguments.words[len(names) :]
    if not names or not paths:
        msg = (
            "name the metric of each number in -m, and the run after the numbers: "
            "explain 0.3812 run.csv truth.csv -m ndcg@10"
        )
        raise ValueError(msg)
    arguments.files = [*map(inputs.run_of, paths)]
    _split_files(arguments)
    _check_outputs(arguments)
    with progress.clock():
        _, run, call = _read(arguments)
        call = {name: value for name, value in call.items() if name != "by"}
        printed = dict(zip(names, map(_printed, numbers), strict=True))
        result = explanation.explain(printed, run, **call, **_conventions(arguments))
    if not _output(result.frame, arguments):
        text_tables.print_lines([result.sentence])
        shown = result.frame.drop("call", "fits", *([] if arguments.details else ["equivalent"]))
        text_tables.show(shown.select(pl.exclude("words"), "words"), details=arguments.details)


def _printed(text: str) -> Decimal:
    """Read a number with the zeros at its end."""
    try:
        return Decimal(text)
    except InvalidOperation:
        msg = f"{text!r} is not a number: explain takes one per -m, and then the run"
        raise ValueError(msg) from None


# ------------------------------------------------------------------ compare


def _compare(arguments: argparse.Namespace) -> None:
    if not arguments.metrics:  # nobody asked for the tests of the others
        arguments.primary = arguments.primary or facts.default_metrics(_K)[0]
    metric_labels = _comparable(_metric_labels(arguments))
    test = options.test_options(arguments)
    with progress.clock(quiet=arguments.test in _RESAMPLED):
        runs, call = _systems(arguments)
        baseline = _baseline(runs, call["by"], arguments)
        trial = Trial(baseline, **test, total=arguments.total)
        planned = adapters.takes_any_frame(comparison.planned)  # the user may be several columns
        packed = planned(runs, metric_labels, trial, **call).collect()
        digits = _provenance(arguments, runs, metric_labels, call, per_metric=True)
    if not _output(packed.with_columns(notes.in_words(packed["note"])), arguments, digits):
        how = {"interval": f"{arguments.confidence * 100:.10g}% intervals"}
        how |= _test_in_words(trial, packed)
        by = call["by"]
        others = notes.in_words(notes.without(packed["note"], _SAID_ABOVE))
        result = packed.with_columns(others)
        text_tables.show_comparison(result, by[1:], by[0], how, details=arguments.details)


def _differences(arguments: argparse.Namespace) -> None:
    names = _metric_labels(arguments)[: None if arguments.metrics else 1]
    with progress.clock():
        runs, call = _systems(arguments)
        own = {"baseline": _baseline(runs, call["by"], arguments), "n": arguments.n}
        own["queries"] = call.pop("queries", None)
        result = differences.differences(runs, names, **own, **call).collect()
        digits = _provenance(arguments, runs, names, call)
    if not _output(result, arguments, digits):
        left_out = [] if arguments.details or arguments.weights else ["weight"]
        text_tables.show(result.drop(left_out), details=arguments.details)


def _test_in_words(trial: Trial, compared: pl.DataFrame) -> dict[str, str]:
    """Say how the columns of a comparison were made, by the column that each part explains."""
    margin = trial.margin if isinstance(trial.margin, Mapping) else {"": trial.margin}
    sizes = [f"{name} {size}".strip() for name, size in margin.items() if size is not None]
    said = {"difference": f"margin {', '.join(sizes)}"} if sizes else {}
    if why := sentences.untested(compared):
        return {**said, "verdict": f"not tested: {why}"}
    test = sentences.test_in_words(trial, compared, notes.USERS)
    corrected = sentences.correction_in_words(trial, compared)
    return {**said, "verdict": test, "p": f"p {corrected}"}


def _systems(arguments: argparse.Namespace) -> tuple[pl.LazyFrame, dict[str, Any]]:
    """Read the files of one system or more, and the keywords that describe them."""
    _check_outputs(arguments)
    _, runs, call = _read(arguments)
    return runs, call | _conventions(arguments)


# ------------------------------------------------------------------ gate


def _gate(arguments: argparse.Namespace) -> int:
    requested, bounds, _ = _gated(arguments)
    names = [metric.name for metric in requested]
    own = ("interval", "undecided", "most_missed", "total")
    decision: dict[str, Any] = {name: getattr(arguments, name) for name in own}
    decision |= {**options.test_options(arguments), "systems": arguments.systems or None, **bounds}
    with progress.clock(quiet=arguments.test in _RESAMPLED):
        runs, call = _systems(arguments)
        decision["baseline"] = _baseline(runs, call["by"], arguments)
        result = gate.gate(runs, *names, **decision, **call).collect()
        digits = _provenance(arguments, runs, names, call, per_metric=True)
    if not _output(result, arguments, digits):
        _show_decisions(result, details=arguments.details)
    return _exit_code(result, call["by"])


def _show_decisions(result: pl.DataFrame, *, details: bool) -> None:
    """Print the decisions by a margin, and those by floors; the lines below say the rest."""
    names = result.columns
    compared = pl.col("baseline").is_not_null() if "baseline" in names else pl.lit(value=False)
    for rows in (result.filter(compared), result.filter(~compared)):
        empty = [name for name in rows.columns if rows[name].null_count() == rows.height]
        more = [] if details else ["baseline", "num_left_out", "ci_low", "ci_high"]
        if rows.height:
            shown = rows.drop("note", "why", *more, *empty, strict=False)
            text_tables.show(shown, details=details)


def _gated(arguments: argparse.Namespace) -> tuple[list[RequestedMetric], dict[str, Any], bool]:
    """Read the metrics of a gate, what they must keep, and whether systems are compared."""
    bounds = options.bounds_of(arguments)
    named: list[str] = []
    if arguments.primary is not None:
        arguments.primary = options.names_of([arguments.primary])[0]
        named.append(arguments.primary)
    for bound in bounds.values():
        named += bound if isinstance(bound, dict) else []
    names = options.names_of(_comparable(trec.spelled_out(arguments.metrics, arguments.preset)))
    if not (names := list(dict.fromkeys([*names, *named]))):
        msg = "the following arguments are required: -m/--metric"
        raise ValueError(msg)
    requested = labels.parse_metrics(names, per_user=False)
    if any(map(trec.is_measure_set, arguments.metrics)):
        directions = pair_tests.directions_of(requested)
        without = [name for name, better in directions.items() if better is None]
        _print_skipped(without, "gated, as neither direction is better")
        requested = [metric for metric in requested if metric.name not in without]
    compares = any(x is not None for x in (arguments.baseline, arguments.primary))
    compares = compares or not bounds or not bounds.keys() <= {*floors.OPTIONS}
    return requested, {"margin": None, **bounds}, compares


def _exit_code(result: pl.DataFrame, by: Sequence[str]) -> int:
    """Print why each gate passes or fails, and return the exit code."""
    gated = result.drop_nulls("passed").sort("passed", descending=True, maintain_order=True)
    for row in gated.iter_rows(named=True):
        text_tables.print_error(_why(row, by))
    if (decisions := gated.filter(pl.col("metric") == launch.DECISION)).height:
        gated = decisions  # it joins the others
    if gated["why"].str.contains("^(no interval|cannot be judged)").any():
        return 2
    return int(not gated["passed"].all())


def _baseline(runs: pl.LazyFrame, by: Sequence[str], arguments: argparse.Namespace) -> object:
    """Read --baseline in the type of the column of the systems."""
    dtype = runs.collect_schema().get(by[0] if by else "", pl.String())
    if arguments.baseline is not None and (dtype.is_integer() or dtype.is_temporal()):
        value = pl.Series([arguments.baseline]).cast(dtype, strict=False).item()
        return arguments.baseline if value is None else value
    return arguments.baseline


def _comparable(labels: Sequence[str]) -> list[str]:
    """Remove what trec_eval's sets have and a comparison has not, and name it."""
    if {*labels} <= {*_OF_ALL_USERS}:
        return [name for name in labels if name != trec.RUN_ID]
    skipped = [name for name in labels if name in _OF_ALL_USERS]
    _print_skipped(skipped, "compared, as it has no values of users")
    return [name for name in labels if name not in skipped]


def _print_skipped(names: Sequence[str], why: str) -> None:
    if names:
        text_tables.print_error(f"rankframe: not {why}: {', '.join(names)}")


def _why(row: Mapping[str, Any], by: Sequence[str]) -> str:
    """Explain in one line why a gate passes or fails."""
    margin = row.get("margin")
    text = str(row["metric"]) + "".join(f" of {row[name]}" for name in by[:1])
    text += "" if margin is None else f" against {row['baseline']}"
    text += "".join(f", {name} {row[name]}" for name in by[1:] if row[name] is not None)
    numbers = [] if margin is None else [f"margin {margin:g}"]
    number = "mean" if margin is None else "difference"
    if row.get(number) is not None:
        numbers.append(f"{number} {row[number]:.4f}")
    if row.get("ci_low") is not None and row["ci_high"] is not None:
        numbers.append(f"interval {row['ci_low']:.4f} to {row['ci_high']:.4f}")
    text += f": {row['why']}" + (f" ({', '.join(numbers)})" if numbers else "")
    note = re.sub("(; )?baseline: .*, the first system$", "", row["note"] or "")  # is named above
    if note and note not in row["why"]:
        text += f"; {note}"
    result = "passed" if row["passed"] else "failed"
    return f"rankframe: gate {result}: {''.join(c if c.isprintable() else '?' for c in text)}"


# ------------------------------------------------------------------ report


def _report(arguments: argparse.Namespace) -> None:
    metrics = trec.spelled_out(arguments.metrics, arguments.preset)
    _check_outputs(arguments)
    if arguments.out is not inputs.STDOUT:
        report.check_path(arguments.out)
    with progress.clock():
        tables, run, call = _read(arguments)
        if call["model"] is None:  # the page names the system after its file
            call |= {"model": run_dicts.model_of_dict(tables.columns)}
            run = files.of_systems(tables.runs, arguments, tables.columns)
        own = ("k", "title", "note", "explore")
        call |= {name: getattr(arguments, name) for name in own} | _conventions(arguments)
        baseline = _baseline(run, call["by"], arguments)
    test = options.test_options(arguments)
    page = report.report(run, *_comparable(metrics), baseline=baseline, **test, **call)
    page = page.made_by(shlex.join(["rankframe", *arguments.command_line]), _paths(arguments))
    if arguments.out is inputs.STDOUT:
        text_tables.print_data(page.html(static=arguments.static))
        return
    with text_tables.replaced(arguments.out) as path:
        page.save(path, static=arguments.static)
    size = arguments.out.stat().st_size / 1000
    written = f"Written: {arguments.out} ({size:,.0f} kB)"
    text_tables.print_lines([*f"{page.verdict}".splitlines(), written])


def _paths(arguments: argparse.Namespace) -> list[Path]:
    """Return the files of a call that can be read again."""
    return [path for source in _inputs(arguments) for path in source.files() if path.is_file()]


def _inputs(arguments: argparse.Namespace) -> list[Input]:
    """Return the inputs of a call, the runs first."""
    beside = (getattr(arguments, name) for name in files.BESIDE)
    return [source for source in (*arguments.runs, arguments.truth, *beside) if source is not None]


# ------------------------------------------------------------------ sql


def _sql(arguments: argparse.Namespace) -> None:
    own = ("run", "truth", "by", "dialect")
    call: dict[str, Any] = {name: getattr(arguments, name) for name in own} | _columns(arguments)
    of_truth = {name: getattr(arguments, name) for name in ("truth_user", "truth_item")}
    call |= {name: column for name, column in of_truth.items() if column}
    call["schema"] = dict(map(_schema_of, arguments.schema))
    names = trec.spelled_out(arguments.metrics, arguments.preset)
    labels_ = [name for name in names if name != trec.RUN_ID]
    if not arguments.metrics and not arguments.check:
        msg = "the following arguments are required: -m/--metric"
        raise ValueError(msg)
    more = ("preset", "users", "undefined", "relevant_at", "depth", "unjudged", "duplicates")
    texts = ("per_user", "names", "exclude", "check", "as_function")
    values = {n: getattr(arguments, n) for n in (*more, *texts)}
    call |= {name: value for name, value in values.items() if value is not None}
    text_tables.print_data(query.sql(*labels_, **call))


def _schema_of(text: str) -> tuple[str, dict[str, Any]]:
    """Read the name of a table, and its columns with their types."""
    types: dict[str, Any] = {"": pl.String, "str": pl.String, "int": pl.Int64}
    types |= {"float": pl.Float64, "bool": pl.Boolean}
    table, _, columns = text.partition("=")
    pairs = [column.partition(":")[::2] for column in columns.split(",")]
    if wrong := [f"{name}:{kind}" for name, kind in pairs if not name or kind not in types]:
        msg = f"--schema {text}: {wrong[0]!r} is not COLUMN:TYPE of type str, int, float or bool"
        raise ValueError(msg)
    return table, {name: types[kind] for name, kind in pairs}


# ------------------------------------------------------------------ options and output


def _conventions(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read the options of per_user."""
    values = {name: getattr(arguments, name) for name in options.CONVENTION_VALUES}
    return {name: value for name, value in values.items() if value is not None}


def _columns(arguments: argparse.Namespace) -> Columns:
    """Read the columns that play roles in all files."""
    columns = {role: getattr(arguments, role) for role in keywords.ROLES}
    columns = {role: name for role, name in columns.items() if name}
    if len(arguments.user) == 1:
        columns["user"] = arguments.user[0]
    if columns.get("model") == "none":
        columns["model"] = None
    return cast("Columns", columns)


def _check_outputs(*calls: argparse.Namespace) -> None:
    """Check that outputs have a known format, and that each is a file of its own."""
    paths: list[Path] = []
    for call in calls:
        out = getattr(call, "out", None)
        if out is inputs.STDOUT and call.json:
            msg = "--json and --out - both print: pass one of the two, or --out a file"
            raise ValueError(msg)
        is_csv = out is inputs.STDOUT or (out is not None and out.suffix.lower() == ".csv")
        if getattr(call, "spreadsheet", False) and not is_csv:
            msg = "--spreadsheet is for CSV: pass --out with a .csv file, or with -"
            raise ValueError(msg)
        endings = getattr(call, "outputs", text_tables.OUTPUTS)
        for path, ends in ((out, endings), (getattr(call, "provenance", None), (".json",))):
            if path is None or path is inputs.STDOUT:
                continue
            _check_output(path, ends, _inputs(call))
            if any(_is_same(path, other) for other in paths):
                msg = f"{path}: it is the file of two outputs: name another one"
                raise ValueError(msg)
            paths.append(path)


def _check_output(out: Path, endings: Sequence[str], sources: Sequence[Input]) -> None:
    real, problem = out.resolve(), ""
    if out.suffix.lower() not in endings:
        problem = f"an output must end in one of {', '.join(endings)}"
    elif not real.parent.is_dir():
        problem = f"no such folder: {str(out.parent)!r}: make it first"
    elif real.is_dir():
        problem = "it is a folder: name a file"
    elif any(_is_part(real, source) for source in sources if not source.is_remote):
        problem = "it is one of the inputs: name another file"
    if problem:
        msg = f"{out}: {problem}"
        raise ValueError(msg)


def _is_part(path: Path, source: Input) -> bool:
    """Whether a path is an input, or in its folder."""
    folders = path.parents if source.is_table else ()
    same = any(_is_same(path, file) for file in source.files())
    return same or inputs.resolved(source) in (path, *folders)


def _is_same(path: Path, other: Path) -> bool:
    """Whether two paths are one file, also by a link."""
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


def _provenance(
    arguments: argparse.Namespace,
    run: pl.LazyFrame,
    names: Sequence[str],
    call: Mapping[str, Any],
    *,
    per_metric: bool = False,
) -> pl.Expr | None:
    """Return the conventions for rows of --json; write the whole provenance if requested."""
    names = [name for name in names if name != trec.RUN_ID]
    if arguments.provenance is not None:
        text = json.dumps(provenance.provenance(run, *names, **call), indent=2)
        with text_tables.replaced(arguments.provenance) as path:
            path.write_text(f"{text}\n", encoding="utf-8")
    if not arguments.json:
        return None
    hashes = provenance.conventions_of(run, *names, **call)
    of_all = pl.lit(hashes[provenance.COLUMN])
    if not per_metric:
        return of_all
    return pl.col("metric").replace_strict(hashes["conventions_of"], default=of_all)


def _output(
    result: pl.DataFrame, arguments: argparse.Namespace, conventions: pl.Expr | None = None
) -> bool:
    """Write the result, or print it for a program, if requested; return whether it was."""
    if conventions is not None:
        result = result.with_columns(conventions.alias(provenance.COLUMN))
    written = text_tables.for_spreadsheets(result) if arguments.spreadsheet else result
    if arguments.out is inputs.STDOUT:
        text_tables.print_data(written.write_csv())
    elif arguments.out is not None:
        text_tables.write(written, arguments.out)
    if arguments.json:
        text_tables.print_json(result)
    return arguments.json or arguments.out is not None


# ------------------------------------------------------------------ metrics and demo


def _metrics(arguments: argparse.Namespace) -> None:
    if arguments.name is not None:
        function = labels.function_of(arguments.name)
        text_tables.print_text(reference.explanation(function, text_tables.width()))
        return
    rows = [
        {"label": label, "definition": descriptions.first_line(function)}
        for label, function in labels.every_label().items()
    ]
    text_tables.show(pl.DataFrame(rows))


def _demo(_: argparse.Namespace) -> None:
    users = list(range(1, 11))
    lists = pl.concat(
        pl.DataFrame({"model": model, "user": users, "item": [list(items) for items in lists]})
        for model, lists in _MODELS.items()
    )
    truth = item_lists.from_lists(
        pl.DataFrame({"user": users, "item": [list(items) for items in _RELEVANT]})
    )
    truth = truth.drop("rank")
    run = item_lists.from_lists(lists)
    text_tables.show(evaluation.evaluate(run, "map", "gmap", "hit@5", truth=truth, by="model"))
    said = "M2 finds nothing for one user in ten: MAP falls by only 0.02, but GMAP by 0.20."
    text_tables.print_lines([said])


def _run(arguments: argparse.Namespace) -> int:
    """Run the commands of a file, whose tables are read and checked once."""
    read = config_file.calls_of(arguments.config)
    calls = {name: argparse.Namespace(**(vars(arguments) | call)) for name, call in read.items()}
    _check_outputs(*calls.values())
    for name, call in calls.items():
        _check_metrics(name, call)
        inputs.check_inputs(_inputs(call))
    if arguments.dry:
        text_tables.print_lines([f"{arguments.config}: {' and '.join(calls)}; nothing was run."])
        return 0
    first, *_, last = *calls.values(), *calls.values()
    vars(arguments).update(vars(last))  # an error names their files
    tables = files.read_files(last, _columns(last)).in_memory()
    code = 0
    for name, call in calls.items():  # a report follows a gate that fails, too
        beside = {key: table for key, table in tables.beside.items() if getattr(call, key)}
        call.tables = tables._replace(beside=beside)
        if call is first and tables.truth is not None:
            _, run, keys = _read(call)
            keys.pop("human", None)
            row_verbs.check(run, **keys).collect()
        code = max(code, _COMMANDS[name](call) or 0)
        if code > 1:
            break
    return code


def _check_metrics(command: str, call: argparse.Namespace) -> None:
    """Check metrics and gates, which needs no data."""
    if command != "gate":
        names = [name for name in _metric_labels(call) if name != trec.RUN_ID]
        labels.parse_metrics(names, per_user=False)
        return
    requested, bounds, compares = _gated(call)
    amounts = {name: bounds.get(name) for name in floors.OPTIONS}
    rules = {"interval": call.interval, "compares": compares}
    others = {"margin": bounds["margin"], **amounts, "undecided": call.undecided}
    guardrails = bounds.get("guardrails")
    plan = launch.launch_of(call.primary, guardrails, None, paired=True, others=others)
    if plan is None:
        gate.rules_and_floors(requested, bounds["margin"], amounts, call.undecided, **rules)
    else:
        launch.check_metrics(plan, requested)
        gate.rules_and_floors(requested, plan.margins, amounts, "pass", **rules)


#: The function of each command; ``options`` has its options.
_COMMANDS: Mapping[str, Run] = {
    "demo": _demo,
    "metrics": _metrics,
    "evaluate": _evaluate,
    "check": _check,
    "health": _health,
    "explain": _explain,
    "compare": _compare,
    "differences": _differences,
    "gate": _gate,
    "report": _report,
    "sql": _sql,
    "run": _run,
}
