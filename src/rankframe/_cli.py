"""The command: ``rankframe evaluate RUN TRUTH -m ndcg@10 -m map``, ``compare`` and ``demo``."""

import argparse
import contextlib
import csv
import gzip
import inspect
import io
import itertools
import math
import os
import re
import sys
from collections.abc import Generator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, get_args

import polars as pl

from rankframe._compare import Correction, Test, compare
from rankframe._evaluate import evaluate, per_user
from rankframe._formats import (
    BEIR,
    GZIP,
    PACKINGS,
    Fit,
    Kind,
    Line,
    Stream,
    binary_format,
    first_lines,
    has_three_fields,
    is_of_other_kind,
    text_fits,
)
from rankframe._inputs import INPUT_MEANINGS
from rankframe._labels import every_label, function_of
from rankframe._lines import can_be_scanned, scan_text
from rankframe._names import RATINGS, with_ids, with_placing, with_relevance, with_score
from rankframe._options import Columns, GainsFrom, Users
from rankframe._reference import reference_page
from rankframe._table import Ties, from_lists, with_rank
from rankframe.presets import TREC_EVAL, TREC_EVAL_9

_FORMATS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv",),
    "tsv": (".tsv",),
    "ipc": (".arrow", ".ipc", ".feather"),
    "trec": (".trec", ".run", ".qrels", ".txt"),
}
_SEPARATORS = {"csv": ",", "tsv": "\t", "trec": None}
_FILE_ROLES = {
    "run": ("user", "item", "rank", "score"),
    "truth": ("user", "item", "relevance", "subtopic"),
}
_OUTPUTS = (".csv", ".parquet", ".json")
_STDIN = Path("-")  # compared by identity: a file of this name is passed as ./-

# Two recommenders, ten users, five items each; they differ only for the last user.
_RELEVANT = "abc abc abc def def def ghi ghi ghi jkl".split()
_MODELS = {
    "M1": "ahjlp tbfhk xbdca fbcdy abcde pemnf hiace oighk agevx zjasq".split(),
    "M2": "ahjlp tbfhk xbdca fbcdy abcde pemnf hiace oighk agevx zxcqp".split(),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 2 for bad input, with one line on stderr."""
    given = _parser().parse_args(arguments)
    try:
        for name in given.modules:
            _import(name)
        given.run_command(given)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has stopped reading
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, TypeError, OSError, ImportError, pl.exceptions.PolarsError) as error:
        print(f"rankframe: error: {_in_options(_one_line(error))}", file=sys.stderr)
        return 2
    return 0


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
    message = message.replace("; by=() takes all rows as one group", "")
    return re.sub(rf"(?<![\w.(-])({_KEYWORDS})=(?=[ ,;:.]|$)", r"--\1", message)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Print the message in one line."""
        self.exit(2, f"rankframe: error: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="rankframe", description="Ranking metrics for recommenders and search.")
    parser.add_argument("--version", action="version", version=f"rankframe {version('rankframe')}")
    parser.add_argument(
        "--import",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="import a module that registers metrics, from here or installed; repeat it for more",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="show a small example")
    demo.set_defaults(run_command=_demo)

    listing = commands.add_parser("metrics", help="list the metrics, or explain one")
    listing.set_defaults(run_command=_metrics)
    listing.add_argument(
        "--markdown", action="store_true", help="print the reference of all metrics in Markdown"
    )
    listing.add_argument("name", nargs="?", metavar="NAME", help="a label such as ndcg@10 or P_10")

    ask = commands.add_parser(
        "evaluate",
        help="evaluate a run against its truth",
        description=(
            "Evaluate a run (user, item, rank or score) against its truth (user, item, relevance). "
            "Files are Parquet, CSV, TSV, Arrow IPC, or TREC run and qrels text, as their content "
            "shows; BEIR's TSV and qrels of three fields are read, too. Text files may be "
            "compressed with gzip or zstd. One file may be -, which is standard input, and pipes "
            "such as <(zcat run.gz) are read. Where the content leaves two choices, the suffix "
            "decides, or else an error names the options."
        ),
    )
    ask.set_defaults(run_command=_evaluate)
    ask.add_argument("run", metavar="RUN", type=_input, help="file of the run, or -")
    ask.add_argument(
        "truth",
        metavar="TRUTH",
        type=_input,
        nargs="?",
        help="file of the truth, or -; metrics of lists alone need none",
    )
    _add_options(ask, by="a column that splits the run into lists, such as model; repeat for more")
    ask.add_argument("--per-user", action="store_true", help="one row per user, not the mean")
    ask.add_argument("--ties", choices=get_args(Ties), help="rank by score; how to order ties")
    ask.add_argument(
        "--bounds",
        action="store_true",
        help="add the least and greatest value that unjudged items allow",
    )
    ask.add_argument(
        "--scenarios",
        action="store_true",
        help="add the values if none or all unjudged items are relevant",
    )
    ask.add_argument("--total", action="store_true", help="add the row of all users")
    ask.add_argument(
        "--count-users",
        action="store_true",
        help="add the number of users who have a value of each metric",
    )

    pairs = commands.add_parser(
        "compare",
        help="compare runs on the users that they share",
        description=(
            "Compare runs: differences, intervals and tests. Each run is a system, named after its "
            "file without the suffix. Files are as in rankframe evaluate."
        ),
    )
    pairs.set_defaults(run_command=_compare)
    pairs.add_argument("runs", metavar="RUN", type=_input, nargs="+", help="files of the runs")
    pairs.add_argument("truth", metavar="TRUTH", type=_input, help="file of the truth")
    _add_options(pairs, by="a column of segments, such as country; repeat for more")
    pairs.add_argument(
        "--baseline", metavar="SYSTEM", help="compare only with this system (default: all pairs)"
    )
    pairs.add_argument("--total", action="store_true", help="add the test over all segments")
    pairs.add_argument("--test", choices=get_args(Test), default="t", help="default: t")
    corrections = (*get_args(Correction), "none")
    pairs.add_argument("--correction", choices=corrections, default="holm", help="default: holm")
    pairs.add_argument(
        "--confidence", type=_finite, metavar="X", default=0.95, help="of the intervals"
    )
    pairs.add_argument(
        "--margin", type=_finite, metavar="X", help="a difference too small to matter, > 0"
    )
    pairs.add_argument(
        "--primary", metavar="LABEL", help="the metric that decides; others count where it differs"
    )
    pairs.add_argument(
        "--resamples", type=int, metavar="N", default=10_000, help="number of resamples"
    )
    pairs.add_argument("--seed", type=int, metavar="N", default=0, help="of the resamples")
    pairs.add_argument(
        "--cluster", metavar="COL", help="column of the truth: users who depend on each other"
    )
    return parser


def _input(text: str) -> Path:
    return _STDIN if text == "-" else Path(text)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _finite(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        msg = f"{text!r} is not a finite number"
        raise argparse.ArgumentTypeError(msg)
    return number


def _add_options(ask: argparse.ArgumentParser, *, by: str) -> None:
    """Add the options that evaluate and compare share."""
    ask.add_argument(
        "-m",
        "--metric",
        dest="metrics",
        action="append",
        required=True,
        metavar="LABEL",
        help="a metric such as ndcg@10, map or P_10; repeat it for more",
    )
    ask.add_argument("--by", action="append", default=[], metavar="COL", help=by)
    ask.add_argument("--users", choices=get_args(Users), help="whose mean (default: truth)")
    ask.add_argument("--undefined", type=_finite, metavar="X", help="value of undefined metrics")
    ask.add_argument(
        "--weights", metavar="COL", help="column of the truth or run: how much each user counts"
    )
    ask.add_argument("--relevant-at", type=_finite, metavar="G", help="lowest relevant grade")
    ask.add_argument(
        "--gains-from",
        choices=get_args(GainsFrom),
        help="relevant_at: lower grades count as 0 (default: every grade has a gain)",
    )
    ask.add_argument("--judged-only", action="store_true", help="drop unjudged items")
    ask.add_argument("--depth", type=int, metavar="K", help="cut the lists to K items first")
    presets = ask.add_mutually_exclusive_group()
    presets.add_argument(
        "--trec-eval",
        action="store_true",
        help="trec_eval -c: all judged users count, undefined is 0",
    )
    presets.add_argument(
        "--trec-eval-9", action="store_true", help="the same, as version 9 computes it"
    )
    for role in Columns.__annotations__:
        ask.add_argument(f"--{role}", metavar="NAME", help=f"column of the {role}, in all files")
    for kind, roles in _FILE_ROLES.items():
        for role in roles:
            ask.add_argument(
                f"--{kind}-{role}",
                metavar="NAME",
                help=f"column of the {role} in the {kind}, if it has another name there",
            )
        ask.add_argument(
            f"--{kind}-fields",
            type=_names,
            metavar="NAME,…",
            help=f"names of all columns of a {kind} that is text without a header",
        )
    ask.add_argument(
        "--subtopic-qrels", action="store_true", help="TREC qrels with a subtopic as second field"
    )
    for name, meaning in INPUT_MEANINGS.items():
        ask.add_argument(f"--{name}", metavar="FILE", type=_input, help=f"file of {meaning}")
    formats = ("auto", *_FORMATS)
    ask.add_argument("--format", choices=formats, help="format of all files (default: by content)")
    for kind in _FILE_ROLES:
        ask.add_argument(f"--{kind}-format", choices=formats, help=f"format of the {kind}")
    ask.add_argument(
        "--out", type=Path, metavar="FILE", help="write .csv, .parquet or .json instead of printing"
    )


def _evaluate(given: argparse.Namespace) -> None:
    columns, options = _read_options(given)
    (run,), truth, inputs, columns = _read_files(given, [given.run], columns)
    options.update(inputs)
    if given.ties is not None:
        run = with_rank(run, by=given.by, ties=given.ties, **columns)
        columns.pop("score", None)
        columns.pop("rank", None)
    if given.per_user and given.total:
        msg = "--total adds a row of overall means and cannot be combined with --per-user"
        raise ValueError(msg)
    if given.per_user and given.count_users:
        msg = "--count-users counts the users of a mean and cannot be combined with --per-user"
        raise ValueError(msg)
    if not given.per_user:
        options["total"], options["count_users"] = given.total, given.count_users
    options["bounds"], options["scenarios"] = given.bounds, given.scenarios
    verb = per_user if given.per_user else evaluate
    result = verb(run, *given.metrics, truth=truth, by=given.by, **options, **columns)
    _deliver(result.collect(), given.out)


def _compare(given: argparse.Namespace) -> None:
    columns, options = _read_options(given)
    names = [path.stem for path in given.runs]
    if len(set(names)) < len(names) or len(names) < 2:
        msg = f"compare needs two or more runs with different names, not {names}"
        raise ValueError(msg)
    if "model" in given.by:
        msg = "--by model: pass only segments; systems are named after their files"
        raise ValueError(msg)
    runs, truth, inputs, columns = _read_files(given, given.runs, columns)
    options.update(inputs)
    systems = dict(zip(names, runs, strict=True))
    result = compare(
        _of_systems(systems, _ids(given, columns), columns),
        *given.metrics,
        truth=truth,
        by=["model", *given.by],
        total=given.total,
        baseline=given.baseline,
        test=given.test,
        correction=None if given.correction == "none" else given.correction,
        confidence=given.confidence,
        margin=given.margin,
        primary=given.primary,
        resamples=given.resamples,
        seed=given.seed,
        cluster=given.cluster,
        **options,
        **columns,
    )
    _deliver(result.collect(), given.out)


def _read_options(given: argparse.Namespace) -> tuple[Columns, dict[str, Any]]:
    """Read the columns that play roles, and the options of per_user."""
    if given.out and given.out.suffix.lower() not in _OUTPUTS:
        msg = f"--out must end in one of {', '.join(_OUTPUTS)}, not {given.out.name!r}"
        raise ValueError(msg)
    inputs = [*getattr(given, "runs", [getattr(given, "run", None)]), given.truth]
    inputs += [getattr(given, name) for name in INPUT_MEANINGS]
    if given.out and any(path and _resolved(path) == given.out.resolve() for path in inputs):
        msg = f"--out {given.out} is one of the inputs"
        raise ValueError(msg)
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


def _ids(given: argparse.Namespace, columns: Columns) -> list[str]:
    return [columns.get("user", "user"), columns.get("item", "item"), *given.by]


def _read_files(
    given: argparse.Namespace, runs: Sequence[Path], columns: Columns
) -> tuple[list[pl.LazyFrame], pl.LazyFrame | None, dict[str, pl.LazyFrame], Columns]:
    """Scan runs, truth and the tables beside them; give ids one type, and read numbers of CSV.

    The columns come back with the common names that were found.
    """
    beside = {name: getattr(given, name) for name in INPUT_MEANINGS}
    beside = {name: path for name, path in beside.items() if path is not None}
    judged = [] if given.truth is None else [given.truth]
    _check_inputs([*runs, *judged, *beside.values()])
    weights = [] if given.weights is None else [given.weights]
    as_run, as_truth = _layout("run", given, columns), _layout("truth", given, columns)
    files = [_scan(path, as_run) for path in runs]
    truths = [_scan(path, as_truth) for path in judged]
    columns = _with_names(given, columns, files, truths)
    ids = _ids(given, columns)
    files = [
        _with_numbers(
            file, [*_placing(file, given, columns), *weights], without=ids, booleans=False
        )
        for file in files
    ]
    subtopic = columns.get("subtopic", "subtopic")
    for truth in truths:
        names = truth.frame.collect_schema().names()
        grades = with_relevance(columns, given.by, names).get("relevance", "relevance")
        (typed,) = _of_one_type(subtopic, truth)
        numbers = [grades] if grades in names else _numeric(truth, RATINGS)
        typed = _with_numbers(typed, numbers, without=ids, booleans=True)
        files.append(_with_numbers(typed, weights, without=[*ids, grades], booleans=False))
    for name, path in beside.items():
        file = _scan(path, _layout(name, given, columns))
        numbers = _placing(file, given, columns) if name == "other" else []
        files.append(_with_numbers(file, numbers, without=ids, booleans=False))
    for name in ids:
        files = list(_of_one_type(name, *files))
    frames = [file.frame for file in files]
    known = frames[: len(runs)], frames[len(runs)] if judged else None
    return *known, dict(zip(beside, frames[len(runs) + len(judged) :], strict=True)), columns


def _with_names(
    given: argparse.Namespace, columns: Columns, runs: Sequence["_File"], truths: Sequence["_File"]
) -> Columns:
    """Add the common names of user, item, and rank or score, as a call does."""
    tables = {str(place): file.frame for place, file in enumerate((*runs, *truths))}
    names = [name for run in runs for name in run.frame.collect_schema()]
    placed = with_placing if getattr(given, "ties", None) is None else with_score
    return placed(with_ids(columns, given.by, tables), given.by, names)


def _numeric(file: "_File", names: Sequence[str]) -> list[str]:
    """Name the columns of a CSV file that hold nothing but numbers."""
    found = [name for name in names if file.is_text and name in file.frame.collect_schema()]
    numbers = [pl.col(name).cast(pl.Float64, strict=False).count() for name in found]
    read = [number == pl.col(name).count() for name, number in zip(found, numbers, strict=True)]
    return list(itertools.compress(found, file.read(*read).row(0))) if found else []


def _check_inputs(paths: Sequence[Path]) -> None:
    """Check that all files exist, and no pipe is read twice: the second read would wait forever."""
    seen: set[Path] = set()
    for path in paths:
        _check_exists(path)
        resolved = _resolved(path)
        if resolved in seen and not _can_be_scanned(path):
            msg = (
                f"{_name(path)}: two inputs, but it can be read only once; "
                "save it to a file, and pass the file for one of them"
            )
            raise ValueError(msg)
        seen.add(resolved)


def _placing(file: "_File", given: argparse.Namespace, columns: Columns) -> list[str]:
    """Return the columns of a run that are read as numbers: the rank, or else the score."""
    rank, score = columns.get("rank", "rank"), columns.get("score", "score")
    by_rank = rank in file.frame.collect_schema() and getattr(given, "ties", None) is None
    return [rank, "tied"] if by_rank else [score]


def _of_systems(
    runs: Mapping[str, pl.LazyFrame], ids: Sequence[str], columns: Columns
) -> pl.LazyFrame:
    """Stack the runs, with a column ``model`` that has the name of each."""
    rank, score = columns.get("rank", "rank"), columns.get("score", "score")
    frames: list[pl.LazyFrame] = []
    used: set[str | None] = set()
    for name, run in runs.items():
        has = run.collect_schema().names()
        order = next((column for column in (rank, score) if column in has), None)
        used.add(order)
        frame = run.select(column for column in (*ids, order) if column in has)
        frames.append(frame.with_columns(model=pl.lit(name, dtype=pl.Enum(list(runs)))))
    if len(used) > 1:
        msg = f"only some runs have a {rank!r}: all must have one, or all only a {score!r}"
        raise ValueError(msg)
    return pl.concat(frames, how="diagonal_relaxed")


def _deliver(result: pl.DataFrame, out: Path | None) -> None:
    """Write the result to a file by its suffix, or print it."""
    if out is None:
        _show(result)
    elif out.suffix.lower() == ".csv":
        result.write_csv(out)
    elif out.suffix.lower() == ".parquet":
        result.write_parquet(out)
    else:
        result.write_json(out)


def _import(name: str) -> None:
    """Import a module of the caller's, also from the working directory."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    import_module(name)


def _metrics(given: argparse.Namespace) -> None:
    if given.markdown:
        if given.name is not None:
            msg = "--markdown prints all metrics: omit the name"
            raise ValueError(msg)
        print(reference_page(), end="")
        return
    if given.name is not None:
        function = function_of(given.name)
        print(f"{function.__name__}{inspect.signature(function)}\n\n{inspect.getdoc(function)}")
        return
    rows = [
        {"label": label, "definition": (inspect.getdoc(function) or "").partition("\n")[0]}
        for label, function in every_label().items()
    ]
    _show(pl.DataFrame(rows))


def _demo(_: argparse.Namespace) -> None:
    users = list(range(1, 11))
    lists = pl.concat(
        pl.DataFrame({"model": model, "user": users, "item": [list(items) for items in lists]})
        for model, lists in _MODELS.items()
    )
    truth = from_lists(pl.DataFrame({"user": users, "item": [list(items) for items in _RELEVANT]}))
    truth = truth.drop("rank")
    run = from_lists(lists)
    _show(evaluate(run, "map", "gmap", "hit@5", truth=truth, by="model"))
    print("M2 leaves one user of ten with nothing: MAP falls by 0.02 only, GMAP by 0.20.")


class _Layout(NamedTuple):
    """What the caller says of a file."""

    table: str
    kind: Kind
    form: str | None
    fields: list[str] | None
    own: dict[str, str]  # columns by role, named for this file alone
    shared: dict[str, str]
    subtopics: bool

    @property
    def names(self) -> dict[str, str]:
        """The columns of the file by the roles that they would play."""
        roles = {"items": ("item",)}.get(self.table, ("user", "item", *self.own))
        return {role: self.own.get(role, self.shared.get(role, role)) for role in roles}

    def option(self, fit: Fit) -> str:
        """Name the option that asks for a format."""
        if self.table in _FILE_ROLES:
            fields = fit.form == "fields"
            return f"--{self.table}-" + (f"fields {fit.fields}" if fields else f"format {fit.form}")
        if fit.form == "fields":
            return "give it a header"
        return f"end its name in {_FORMATS[fit.form][0]}"


class _File(NamedTuple):
    name: str
    form: str
    frame: pl.LazyFrame
    names: Mapping[str, str] = {}  # how the file calls columns that have been renamed
    source: Path | bytes | None = None

    @property
    def is_text(self) -> bool:
        """Whether all columns are read as text, whatever they hold."""
        return self.form in ("csv", "tsv")

    def read(self, *exprs: pl.Expr) -> pl.DataFrame:
        """Compute expressions of the file; an error names the file."""
        try:
            return self.frame.select(*exprs).collect()
        except (OSError, pl.exceptions.PolarsError) as error:
            msg = f"{self.name}: {_one_line(error)}"
            raise ValueError(msg) from None


def _layout(table: str, given: argparse.Namespace, columns: Columns) -> _Layout:
    own = {role: getattr(given, f"{table}_{role}") for role in _FILE_ROLES.get(table, ())}
    form = getattr(given, f"{table}_format", None) or given.format
    if form == "auto" or (form == "trec" and table not in _FILE_ROLES):
        form = None
    kinds: dict[str, Kind] = {"truth": "truth", "items": "table"}
    return _Layout(
        table,
        kinds.get(table, "run"),
        form,
        getattr(given, f"{table}_fields", None),
        {role: name for role, name in own.items() if name},
        {role: str(name) for role, name in columns.items()},
        given.subtopic_qrels,
    )


def _scan(path: Path, layout: _Layout) -> _File:
    """Scan a file; columns of CSV files are read as text, and those with roles are renamed."""
    name = _name(path)
    try:
        with _opened(path) as stream:
            lines = [] if binary_format(stream) else first_lines(stream)
            form = _format_of(path, stream, lines, layout)
            source = stream if stream.path is None else path
            if form == "trec" or layout.fields is not None:
                return _scan_lines(name, form, source, lines, layout)
            content = source.read_all() if isinstance(source, Stream) else source
        if form == "parquet":
            frame = pl.scan_parquet(content, glob=False)
        elif form == "ipc":
            frame = pl.scan_ipc(content, glob=False)
        else:
            separator = _SEPARATORS[form] or ","
            frame = pl.scan_csv(content, separator=separator, infer_schema=False, glob=False)
        frame.collect_schema()
    except (OSError, pl.exceptions.PolarsError) as error:  # errors of polars do not name the file
        msg = f"{name}: {_one_line(error)}"
        raise ValueError(msg) from None
    return _in_roles(_File(name, form, frame, source=content), layout)


def _scan_lines(
    name: str, form: str, source: Path | Stream, lines: Sequence[Line], layout: _Layout
) -> _File:
    """Scan lines of TREC, or fields without a header."""
    if form not in _SEPARATORS:
        msg = (
            f"{name}: --{layout.table}-fields names the columns of text without a header, "
            f"and this file is of format {form}"
        )
        raise ValueError(msg)
    named = layout.fields or [word for line in lines[:1] for word in line.words]
    shared = {role: column for role, column in layout.shared.items() if column in named}
    known = _FILE_ROLES["truth" if layout.kind == "truth" else "run"]
    roles = {role: name for role, name in (shared | layout.own).items() if role in known}
    frame = scan_text(
        source,
        layout.kind,
        fields=layout.fields,
        separator=_SEPARATORS[form] if layout.form else "",
        subtopics=layout.subtopics and layout.kind == "truth",
        columns=roles,
    )
    has = frame.collect_schema().names()
    change = {role: name for role, name in layout.shared.items() if role in has}
    return _File(name, "trec", frame.rename(change))


def _in_roles(file: _File, layout: _Layout) -> _File:
    """Rename the columns that play roles in this file to what all files call them."""
    has = file.frame.collect_schema().names()
    for role, name in layout.own.items():
        if name not in has:
            names = ", ".join(map(repr, has))
            msg = f"{file.name}: no column {name!r} for --{layout.table}-{role}; it has {names}"
            raise ValueError(msg)
    played = dict(layout.own)
    if layout.kind == "truth" and set(BEIR.values()) <= {*has}:
        beir = {
            role: name for role, name in BEIR.items() if layout.shared.get(role, role) not in has
        }
        played = beir | played
    if len({*played.values()}) < len(played):
        twice = max(played.values(), key=[*played.values()].count)
        msg = f"{file.name}: two roles name the same column, {twice!r}"
        raise ValueError(msg)
    change = {name: layout.shared.get(role, role) for role, name in played.items()}
    shadowed = [new for new in change.values() if new in has and new not in change]
    frame = file.frame.drop(shadowed).rename(change)
    return file._replace(frame=frame, names={new: name for name, new in change.items()})


def _check_exists(path: Path) -> None:
    if path is not _STDIN and not path.exists():
        msg = f"{path}: no such file"
        raise ValueError(msg)
    if path is not _STDIN and path.is_dir():
        msg = f"{path}: it is a directory, not a file"
        raise ValueError(msg)


def _format_of(path: Path, stream: Stream, lines: Sequence[Line], layout: _Layout) -> str:
    """Find the format of a file: the one that is named, that of its content, or of its suffix."""
    name, form = stream.name, layout.form or binary_format(stream)
    if form not in (None, "trec"):
        return form
    if layout.fields is not None:
        return form or "trec"
    if layout.table in _FILE_ROLES and is_of_other_kind(lines, layout.kind):
        other = "qrels" if layout.kind == "run" else "a run"
        problem = (
            f"a line of {other}, not of the {layout.table}: pass the run first, then the truth"
        )
        raise _at_line(name, lines[0], problem)
    suffix = _format_of_suffix(path)
    fits = text_fits(lines, layout.kind, layout.names.values())
    if form is not None and not (layout.kind == "run" and has_three_fields(lines)):
        return form
    if len(fits) > 1:
        fits = [fit for fit in fits if fit.form == suffix and fit.by_suffix] or fits
    if len(fits) == 1:
        return fits[0].form
    if fits:
        choices = " or ".join(f"{fit.meaning} ({layout.option(fit)})" for fit in fits)
        raise _at_line(name, lines[0], f"it may be {choices}")
    if not stream.peek(1):
        msg = f"{name}: it is empty"
        raise ValueError(msg)
    if suffix is not None and not (suffix == "trec" and layout.kind == "table"):
        return suffix
    prefix = f"{layout.table}-" if layout.table in _FILE_ROLES else ""
    problem = f"its content shows no format; pass --{prefix}format {'|'.join(_FORMATS)}"
    if lines:
        raise _at_line(name, lines[0], problem)
    msg = f"{name}: {problem}"
    raise ValueError(msg)


def _format_of_suffix(path: Path) -> str | None:
    suffix = (path.with_suffix("") if path.suffix.lower() in PACKINGS else path).suffix.lower()
    return next((form for form, suffixes in _FORMATS.items() if suffix in suffixes), None)


def _at_line(name: str, line: Line, problem: str) -> ValueError:
    return ValueError(f"{name}, line {line.number}: {problem}: {line.text[:200]!r}")


@contextlib.contextmanager
def _opened(path: Path) -> Generator[Stream]:
    """Open a file to look at its start; a pipe is then read from there."""
    if path is _STDIN:
        if sys.stdin is None:
            msg = f"{_name(path)}: standard input is closed"
            raise ValueError(msg)
        yield Stream(sys.stdin.buffer, _name(path))
        return
    with path.open("rb", buffering=0) as file:
        yield Stream(file, str(path), path if can_be_scanned(path) else None)


def _can_be_scanned(path: Path) -> bool:
    return path is not _STDIN and can_be_scanned(path)


def _name(path: Path) -> str:
    return "<stdin>" if path is _STDIN else str(path)


def _resolved(path: Path) -> Path:
    """Return the real path of a file, also of standard input."""
    return (Path("/dev/stdin") if path is _STDIN else path).resolve()


def _with_numbers(
    file: _File, names: Sequence[str], *, without: Sequence[str], booleans: bool
) -> _File:
    """Read columns of CSV as numbers, whichever row has the first fraction.

    A column whose values are all written as integers is read as integers, which are exact, and any
    other as floats; with ``booleans`` it may also hold true and false.
    """
    if not file.is_text:
        return file
    has = file.frame.collect_schema().names()
    present = [name for name in names if name in has and name not in without]
    readings = {
        name: _readings(name, booleans=booleans)
        for name in present
        if not pl.col(name).meta.has_multiple_outputs()  # a pattern: the checks raise for it
    }
    fits = (
        pl.concat_list(reading.count() == pl.col(name).count() for reading in of_column).alias(
            str(place)
        )
        for place, (name, of_column) in enumerate(readings.items())
    )
    wanted = [pl.len().alias("rows"), *fits]
    every = pl.sum_horizontal(pl.all().count()).alias("every")
    try:  # polars counts the fields of a line only where all columns are read
        rows, *fitting, _ = file.frame.select(*wanted, every).collect().row(0)
    except (OSError, pl.exceptions.PolarsError) as error:
        if "more fields than" in str(error):
            _raise_at_long_line(file)
        rows, *fitting = file.read(*wanted).row(0)
    if not rows:
        msg = f"{file.name}: it is empty"
        raise ValueError(msg)
    chosen: list[pl.Expr] = []
    for (name, of_column), fit in zip(readings.items(), fitting, strict=True):
        if not any(fit):
            raise _not_a_number(file, name, of_column)
        chosen.append(next(itertools.compress(of_column, fit)))
    return file._replace(frame=file.frame.with_columns(chosen))


def _readings(name: str, *, booleans: bool) -> list[pl.Expr]:
    """Cast a column of text to each type, the most exact first; values that do not fit are null."""
    text = pl.col(name).str.strip_chars(" \t")
    numbers = [text.cast(dtype, strict=False) for dtype in (pl.Int64, pl.Int128, pl.Float64)]
    if not booleans:
        return numbers
    words = {"true": True, "false": False}
    lower = text.str.to_lowercase()
    return [*numbers, lower.replace_strict(words, default=None, return_dtype=pl.Boolean)]


def _raise_at_long_line(file: _File) -> None:
    """Name the first line of CSV with more fields than the header, if it is found."""
    source = file.source
    content = source.read_bytes() if isinstance(source, Path) else source or b""
    if content.startswith(GZIP):
        content = gzip.decompress(content)
    text = io.StringIO(content.decode(errors="replace"), newline="")
    rows = csv.reader(text, delimiter=_SEPARATORS[file.form] or ",")
    with contextlib.suppress(csv.Error):
        columns, line = len(next(rows)), rows.line_num + 1
        for row in rows:
            if len(row) > columns:
                msg = (
                    f"{file.name}, line {line}: it has {len(row)} fields and the header "
                    f"{columns}: quote a field that holds the separator: {','.join(row)[:200]!r}"
                )
                raise ValueError(msg)
            line = rows.line_num + 1


def _not_a_number(file: _File, name: str, readings: Sequence[pl.Expr]) -> ValueError:
    """Name the first value of a column that cannot be read, and the line where its row begins."""
    given, number = pl.col(name).is_not_null(), readings[2]
    breaks = pl.sum_horizontal(pl.all().str.count_matches("\n", literal=True).fill_null(0))
    header = [file.names.get(column, column) for column in file.frame.collect_schema().names()]
    before = 1 + sum(column.count("\n") for column in header)
    rows = file._replace(
        frame=file.frame.select(
            value=pl.col(name),
            line=pl.int_range(1, pl.len() + 1) + breaks.cum_sum() - breaks + before,
            mixed=given & number.is_null(),
            unknown=given & pl.all_horizontal(reading.is_null() for reading in readings),
        ).filter("mixed"),
    )
    first = rows.read(pl.all().sort_by("unknown", descending=True, maintain_order=True).first())
    value, line, _, unknown = first.row(0)
    if not unknown:
        problem = "is in a column that also has numbers"
    elif len(readings) > 3:
        problem = "is neither a number nor true or false"
    else:
        problem = "is not a number (leave the field of a missing one empty)"
    column = file.names.get(name, name)
    return ValueError(f"{file.name}, line {line}, column {column!r}: {value[:200]!r} {problem}")


def _of_one_type(name: str, *files: _File) -> tuple[_File, ...]:
    """Give an id of all files the same type.

    CSV and TREC files do not declare whether 7 is a number. Ids are integers if another file
    declares them so, or if all files are CSV, but only if all ids are written as integers are (007
    is not). Otherwise they are text.
    """
    types = [file.frame.collect_schema().get(name) for file in files]
    has_id = [dtype is not None for dtype in types]
    in_text = [has and file.is_text for has, file in zip(has_id, files, strict=True)]
    number, text = pl.col(name).cast(pl.Int64, strict=False), pl.col(name).cast(pl.String)
    alike = number.cast(pl.String).eq_missing(pl.col(name)).all()
    declared = [dtype for dtype, is_text in zip(types, in_text, strict=True) if not is_text]
    if all(dtype is None or dtype.is_integer() for dtype in declared) and all(
        file.read(alike).item() for file in itertools.compress(files, in_text)
    ):
        change, changed = number, in_text
    else:
        change, changed = text, has_id if pl.String in types else [False] * len(files)
    return tuple(
        file._replace(frame=file.frame.with_columns(change)) if is_changed else file
        for file, is_changed in zip(files, changed, strict=True)
    )


def _one_line(error: Exception) -> str:
    line = str(error).strip().partition("\n")[0] or type(error).__name__
    return "".join(char if char.isprintable() else "?" for char in line[:500])


def _show(result: pl.DataFrame) -> None:
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    with pl.Config(
        tbl_formatting="UTF8_FULL_CONDENSED" if unicode else "ASCII_FULL_CONDENSED",
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=10_000,
        fmt_str_lengths=1_000,
        float_precision=6,
    ):
        text = str(result)
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, errors="replace").decode(encoding))
