"""The command: ``rankframe evaluate RUN TRUTH -m map``, ``compare``, ``report`` and ``demo``."""

import argparse
import contextlib
import inspect
import os
import re
import shlex
import sys
import threading
import time
import traceback
from collections.abc import Generator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from rankframe._all_lists import is_of_all
from rankframe._chart_tables import missed_lines, named
from rankframe._cli_files import (
    STDIN,
    Tables,
    names_of,
    of_systems,
    one_line,
    read_files,
    resolved,
)
from rankframe._cli_options import Gate, Run, parser_of
from rankframe._cli_tables import (
    OUTPUTS,
    print_data,
    print_json,
    print_text,
    show,
    show_comparison,
    show_values,
    write,
)
from rankframe._cli_trec import RUN_ID, is_set, line_of, lines_of, spelled_out
from rankframe._compare import compare, directions_of
from rankframe._evaluate import evaluate, per_user
from rankframe._gate import Rule, decided, rules_of
from rankframe._inputs import INPUT_MEANINGS
from rankframe._labels import every_label, function_of, parse_metrics
from rankframe._options import MODEL, Columns
from rankframe._reference import reference_page, signature_of
from rankframe._report import check_path, report
from rankframe._results import tested_in_words
from rankframe._table import from_lists, with_rank
from rankframe.presets import TREC_EVAL, TREC_EVAL_9

# Two recommenders, ten users, five items each; they differ only for the last user.
_RELEVANT = "abc abc abc def def def ghi ghi ghi jkl".split()
_MODELS = {
    "M1": "ahjlp tbfhk xbdca fbcdy abcde pemnf hiace oighk agevx zjasq".split(),
    "M2": "ahjlp tbfhk xbdca fbcdy abcde pemnf hiace oighk agevx zxcqp".split(),
}
_MISSED = "num_missed"
_ENDS = ("_users", "_low", "_high", "_if_none", "_if_all")  # of columns beside a metric
_OF_ALL_USERS = (RUN_ID, "num_q")  # lines of trec_eval that are no mean over users
_PATIENCE = 2.0  # seconds until the command shows the elapsed time
_RESAMPLED = ("randomization", "bootstrap", "randomized_tukey")  # with their own progress bar


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code.

    0: success; 1: a gate fails; 2: bad input; 3: an error of rankframe itself. For 1 and 2, one
    line on standard error explains why; for 3, a traceback.
    """
    given = parser_of(_COMMANDS).parse_args(arguments)
    given.arguments = sys.argv[1:] if arguments is None else [*arguments]
    code = None
    try:
        for name in given.modules:
            _import(name)
        code = given.run_command(given)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has stopped reading
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, TypeError, OSError, ImportError, pl.exceptions.PolarsError) as error:
        print(f"rankframe: error: {_in_options(one_line(error))}", file=sys.stderr)
        return 2
    except Exception:  # noqa: BLE001  (Python would return 1, which is a failed gate)
        traceback.print_exc()
        return 3
    return code or 0


@contextlib.contextmanager
def _ticking(*, quiet: bool = False) -> Generator[None]:
    """Show on a terminal the elapsed time of a long command."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    done, start = threading.Event(), time.monotonic()

    def tick() -> None:
        pause = _PATIENCE
        while not done.wait(pause):
            pause = 1.0
            passed = time.monotonic() - start
            print(f"\rrankframe: {passed:.0f} s", end="", file=sys.stderr, flush=True)
        if time.monotonic() - start > _PATIENCE:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        done.set()
        ticker.join()


#: Keywords that are options of the command.
_KEYWORDS = "user|item|rank|score|relevance|subtopic|by|weights|users|undefined|depth"


def _in_options(message: str) -> str:
    """Name options where a message for Python names keywords."""
    if "names must be the same in both tables" in message:
        own = "--run-user, --run-item, --truth-user and --truth-item"
        message = message.replace("rename one", f"name the columns of each file by {own}")
    message = re.sub(r"\brelevance='([^']*)'", r"--relevance \1", message)
    message = message.replace("relevant_at=", "--relevant-at")
    message = message.replace(", as in evaluate('auc', weights='impressions')", "")
    message = message.replace("; by=() treats all rows as one group", "")
    return re.sub(rf"(?<![\w.(-])({_KEYWORDS})=(?=[ ,;:.]|$)", r"--\1", message)


def _import(name: str) -> None:
    """Import a module of the caller, also from the working directory."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    import_module(name)


# ------------------------------------------------------------------ evaluate


def _evaluate(given: argparse.Namespace) -> None:
    *given.runs, given.truth = given.files if len(given.files) > 1 else [*given.files, None]
    asked = _asked(given)
    _check_rows(given)
    columns, options = _read_options(given)
    with _ticking():
        tables = read_files(given, columns)
        run, by, columns = _one_run(tables, given)
        options |= {"truth": tables.truth, "by": by, **tables.beside, **columns}
        options |= {"bounds": given.bounds, "scenarios": given.scenarios}
        names = _counts_missed([name for name in asked if name != RUN_ID], given)
        results = _evaluated(run, names, given, options)
    missed = _missed_of(results[-1], by)
    unasked = [] if _MISSED in asked else [f"{_MISSED}{end}" for end in ("", *_ENDS)]
    unasked += ["users"] if given.queries else []
    results = [rows.drop(unasked, strict=False) for rows in results]
    user = columns.get("user", "user")
    if given.form == "trec":
        _print_trec(results, user, tables.tag if RUN_ID in asked else None)
        return
    result = _with_all(results, by, user) if given.queries else results[0]
    if not _delivered(result, given):
        show_values(result, [*by, *({user, "users"} & {*result.columns})], wide=given.wide)
        print_text("".join(f"{line}\n" for line in missed))


def _is_for_people(given: argparse.Namespace) -> bool:
    """Return whether the result is printed as a table."""
    return given.form != "trec" and not given.json and given.out is None


def _counts_missed(names: Sequence[str], given: argparse.Namespace) -> list[str]:
    """Add the count of users without a list, which a line below the table needs."""
    if given.per_user or given.truth is None or given.weights or not _is_for_people(given):
        return [*names]  # a sum over users has no weighted form
    return list(dict.fromkeys([*names, _MISSED]))


def _missed_of(result: pl.DataFrame, by: Sequence[str]) -> list[str]:
    """Write lines for systems that have no list for many users."""
    if not {"users", _MISSED} <= {*result.columns}:
        return []
    return missed_lines(result.select(*named(result, by), pl.col("users", _MISSED)))


def _evaluated(
    run: pl.LazyFrame, names: Sequence[str], given: argparse.Namespace, options: Mapping[str, Any]
) -> list[pl.DataFrame]:
    """Compute the rows of users, the row of all users, or both in this order."""
    if given.per_user:
        return [per_user(run, *names, **options).collect()]
    of_all = evaluate(run, *names, **options, total=given.total, count_users=given.count_users)
    if not given.queries:
        return [of_all.collect()]
    requested = parse_metrics(names, per_user=False)
    single = [one.name for one in requested if one.per_user and not is_of_all(one)]
    of_users = [per_user(run, *single, **options)] if single else []
    return pl.collect_all([*of_users, of_all])


def _asked(given: argparse.Namespace) -> list[str]:
    if not given.metrics:
        msg = "the following arguments are required: -m/--metric"
        raise ValueError(msg)
    return spelled_out(given.metrics, nine=given.trec_eval_9)


def _check_rows(given: argparse.Namespace) -> None:
    """Check that the options for rows and for their format are compatible."""
    of_users = "--per-user" if given.per_user else "-q" if given.queries else None
    for option, meaning in {
        "--total": "adds a row of overall means",
        "--count-users": "counts the users of each mean",
    }.items():
        if of_users and getattr(given, option[2:].replace("-", "_")):
            msg = f"{option} {meaning} and cannot be combined with {of_users}"
            raise ValueError(msg)
    if given.per_user and given.queries:
        msg = "-q includes the rows of --per-user: pass one of the two"
        raise ValueError(msg)
    if given.form == "trec" and (len(given.runs) > 1 or given.by):
        msg = "--print trec has columns only for measure, user and value: pass one run, and no by="
        raise ValueError(msg)
    if given.form == "trec" and (given.out or given.json):
        msg = "--print trec is text: leave out --out and --json"
        raise ValueError(msg)


def _one_run(tables: Tables, given: argparse.Namespace) -> tuple[pl.LazyFrame, list[str], Columns]:
    """Stack several runs, and rank them if requested."""
    (run, *others), by, columns = tables.runs, list(given.by), tables.columns.copy()
    if others:
        named = dict(zip(names_of(given.runs), tables.runs, strict=True))
        run, by = of_systems(named, given, columns), [MODEL, *by]
    if given.ties is not None:
        run = with_rank(run, by=by, ties=given.ties, **columns)
        columns.pop("score", None)
        columns.pop("rank", None)
    return run, by, columns


def _with_all(results: Sequence[pl.DataFrame], by: Sequence[str], user: str) -> pl.DataFrame:
    """Put the row of all users after the rows of users, in each group."""
    *of_users, of_all = results
    everybody = of_all.select(*by, pl.lit("all").alias(user), pl.exclude(by))
    if not of_users:
        return everybody
    rows = [of_users[0].with_columns(pl.col(user).cast(pl.String)), everybody]
    both = pl.concat(rows, how="diagonal_relaxed").select(everybody.columns)
    return both.sort(by, maintain_order=True) if by else both


def _print_trec(results: Sequence[pl.DataFrame], user: str, tag: str | None) -> None:
    *of_users, last = results
    text = "".join(lines_of(rows, user) for rows in of_users)
    if user in last.columns:
        print_data(lines_of(last, user))
        return
    text += "" if tag is None else line_of(RUN_ID, "all", tag)
    everybody = last.drop("users", strict=False).with_columns(pl.lit("all").alias(user))
    print_data(text + lines_of(everybody, user))


# ------------------------------------------------------------------ compare


def _compare(given: argparse.Namespace) -> int:
    names, rules = names_of(given.runs), _rules(given)
    given.metrics = [*given.metrics, *(name for name in rules if name not in given.metrics)]
    asked = _comparable(_asked(given))
    if len(names) < 2:
        msg = f"compare needs two or more runs, not {names}"
        raise ValueError(msg)
    baseline = names[0] if rules and given.baseline is None else given.baseline
    columns, options = _read_options(given)
    correction = None if given.correction == "none" else given.correction
    with _ticking(quiet=given.test in _RESAMPLED):
        tables = read_files(given, columns)
        options.update(tables.beside)
        comparison = compare(
            of_systems(dict(zip(names, tables.runs, strict=True)), given, tables.columns),
            *asked,
            truth=tables.truth,
            by=[MODEL, *given.by],
            total=given.total,
            baseline=baseline,
            test=given.test,
            correction=correction,
            confidence=given.confidence,
            margin=given.margin,
            primary=given.primary,
            resamples=given.resamples,
            seed=given.seed,
            cluster=given.cluster,
            **options,
            **tables.columns,
        )
        result = (decided(comparison, rules) if rules else comparison).collect()
    if not _delivered(result, given):
        words = tested_in_words(given.test, correction, result, given.primary)
        how = f"{given.confidence * 100:.10g}% intervals, {words}"
        show_comparison(result, given.by, MODEL, how, wide=given.wide)
    if not rules:
        return 0
    gated = result.drop_nulls("passed").sort("passed", descending=True, maintain_order=True)
    for row in gated.iter_rows(named=True):
        print(_why(row, given), file=sys.stderr)
    return int(not gated["passed"].all())


def _comparable(labels: Sequence[str]) -> list[str]:
    """Remove what trec_eval's sets have and a comparison has not, and name it."""
    if {*labels} <= {*_OF_ALL_USERS}:
        return [name for name in labels if name != RUN_ID]
    skipped = [name for name in labels if name in _OF_ALL_USERS]
    _print_skipped(skipped, "compared, as it has no values of users")
    return [name for name in labels if name not in skipped]


def _print_skipped(names: Sequence[str], why: str) -> None:
    if names:
        print(f"rankframe: not {why}: {', '.join(names)}", file=sys.stderr)


def _rules(given: argparse.Namespace) -> dict[str, Rule]:
    """Read --fail-if-worse and --fail-unless-not-worse."""
    rules: dict[str, Rule] = {}
    both: list[tuple[Gate, bool]] = [(one, False) for one in given.fail_if_worse]
    both += [(one, True) for one in given.fail_unless_not_worse]
    for (label, margin), strict in both:
        requested = parse_metrics(_comparable(spelled_out([label])), per_user=False)
        if is_set(label):
            directions = directions_of(requested)
            without = [name for name, better in directions.items() if better is None]
            _print_skipped(without, "gated, as neither direction is better")
            requested = [one for one in requested if one.name not in without]
        names = [one.name for one in requested]
        if twice := [name for name in names if name in rules]:
            msg = f"{twice[0]!r} has two gates: name it once in --fail-if-worse and its strict form"
            raise ValueError(msg)
        margins = dict.fromkeys(names, margin)
        rules |= rules_of(requested, margins, strict=names if strict else ())
    return rules


def _why(row: Mapping[str, Any], given: argparse.Namespace) -> str:
    """Explain in one line why a gate passes or fails."""
    segment = "".join(f", {name} {row[name]}" for name in given.by if row[name] is not None)
    text = f"{row['metric']} of {row['model']} against {row['baseline']}{segment}: {row['why']}"
    text += f" (margin {row['margin']:g}"
    if given.margin is not None and given.margin != row["margin"]:
        text += f" of the gate, not --margin {given.margin:g}"
    if row["difference"] is not None:
        text += f", difference {row['difference']:.4f}"
    if row["ci_low"] is not None:
        text += f", interval {row['ci_low']:.4f} to {row['ci_high']:.4f}"
    result = "passed" if row["passed"] else "failed"
    return f"rankframe: gate {result}: {''.join(c if c.isprintable() else '?' for c in text)})"


# ------------------------------------------------------------------ report


def _report(given: argparse.Namespace) -> None:
    names = names_of(given.runs)
    metrics = spelled_out(given.metrics, nine=given.trec_eval_9)
    columns, options = _read_options(given)
    if given.out is not STDIN:
        check_path(given.out)
    with _ticking(quiet=given.test in _RESAMPLED):
        tables = read_files(given, columns)
        options.update(tables.beside)
        made = report(
            of_systems(dict(zip(names, tables.runs, strict=True)), given, tables.columns),
            *_comparable(metrics),
            truth=tables.truth,
            by=MODEL,
            baseline=names[0] if given.baseline is None else given.baseline,
            segments=given.segments,
            k=given.k,
            test=given.test,
            correction=None if given.correction == "none" else given.correction,
            confidence=given.confidence,
            margin=given.margin,
            primary=given.primary,
            resamples=given.resamples,
            seed=given.seed,
            cluster=given.cluster,
            title=given.title,
            **options,
            **tables.columns,
        )
    made = made.made_by(shlex.join(["rankframe", *given.arguments]), _paths(given))
    if given.out is STDIN:
        print_data(made.html(static=given.static))
        return
    made.save(given.out, static=given.static)
    print_text(f"{made.verdict}\n")
    size = given.out.stat().st_size / 1000
    print_text(f"Written: {given.out} ({size:,.0f} kB)\n")


def _paths(given: argparse.Namespace) -> list[Path]:
    """Return the files of a call that can be read again."""
    beside = (getattr(given, name) for name in INPUT_MEANINGS)
    named = [*given.runs, given.truth, *beside]
    return [path for path in named if path is not None and path is not STDIN and path.is_file()]


# ------------------------------------------------------------------ options and output


def _read_options(given: argparse.Namespace) -> tuple[Columns, dict[str, Any]]:
    """Read the columns that play roles, and the options of per_user."""
    _check_out(given)
    columns: Columns = {
        role: getattr(given, role) for role in Columns.__annotations__ if getattr(given, role)
    }  # type: ignore[assignment]
    options: dict[str, Any] = {"judged_only": given.judged_only}
    if given.trec_eval or given.trec_eval_9:
        options.update(TREC_EVAL if given.trec_eval else TREC_EVAL_9)
    for option in ("users", "undefined", "weights", "relevant_at", "gains_from", "depth"):
        if getattr(given, option) is not None:
            options[option] = getattr(given, option)
    return columns, options


def _check_out(given: argparse.Namespace) -> None:
    """Check that the output has a known format, and is not one of the inputs."""
    out = given.out
    if out is None or out is STDIN:
        return
    if given.json:
        msg = "--json prints and --out writes a file: pass one of the two"
        raise ValueError(msg)
    endings = getattr(given, "outputs", OUTPUTS)
    if out.suffix.lower() not in endings:
        msg = f"--out must end in one of {', '.join(endings)}, not {out.name!r}"
        raise ValueError(msg)
    inputs = [*given.runs, given.truth, *(getattr(given, name) for name in INPUT_MEANINGS)]
    if any(path and resolved(path) == out.resolve() for path in inputs):
        msg = f"--out {out} is one of the inputs"
        raise ValueError(msg)


def _delivered(result: pl.DataFrame, given: argparse.Namespace) -> bool:
    """Write the result, or print it for a program, if requested; return whether it was."""
    if given.json:
        print_json(result)
    elif given.out is STDIN:
        print_data(result.write_csv())
    elif given.out is not None:
        write(result, given.out)
    else:
        return False
    return True


# ------------------------------------------------------------------ metrics and demo


def _metrics(given: argparse.Namespace) -> None:
    if given.markdown:
        if given.name is not None:
            msg = "--markdown prints all metrics: omit the name"
            raise ValueError(msg)
        print(reference_page(), end="")
        return
    if given.name is not None:
        function = function_of(given.name)
        text = (inspect.getdoc(function) or "").replace("``", "`")
        print(f"{signature_of(function)}\n\n{text}")
        return
    rows = [
        {"label": label, "definition": (inspect.getdoc(function) or "").partition("\n")[0]}
        for label, function in every_label().items()
    ]
    show(pl.DataFrame(rows), wide=given.wide)


def _demo(_: argparse.Namespace) -> None:
    users = list(range(1, 11))
    lists = pl.concat(
        pl.DataFrame({"model": model, "user": users, "item": [list(items) for items in lists]})
        for model, lists in _MODELS.items()
    )
    truth = from_lists(pl.DataFrame({"user": users, "item": [list(items) for items in _RELEVANT]}))
    truth = truth.drop("rank")
    run = from_lists(lists)
    show(evaluate(run, "map", "gmap", "hit@5", truth=truth, by="model"))
    print("M2 leaves one user of ten with nothing: MAP falls by 0.02 only, GMAP by 0.20.")


#: The function of each command; ``_cli_options`` has its options.
_COMMANDS: Mapping[str, Run] = {
    "demo": _demo,
    "metrics": _metrics,
    "evaluate": _evaluate,
    "compare": _compare,
    "report": _report,
}
