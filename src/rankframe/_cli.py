"""The command: ``rankframe evaluate RUN TRUTH -m ndcg@10 -m map``, ``compare`` and ``demo``."""

import argparse
import functools
import inspect
import itertools
import math
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn, cast, get_args

import polars as pl

from rankframe import trec
from rankframe._compare import Correction, Test, compare
from rankframe._evaluate import evaluate, per_user
from rankframe._inputs import INPUT_MEANINGS
from rankframe._labels import every_label, function_of
from rankframe._options import Columns, Users
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
        print(f"rankframe: error: {_one_line(error)}", file=sys.stderr)
        return 2
    return 0


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
            "Files are Parquet, CSV, TSV, Arrow IPC, or TREC run and qrels text; text files may be "
            "compressed with gzip or zstd (.gz, .zst). One file may be -, which is standard input, "
            "and pipes such as <(zcat run.gz) are read; they have no suffix, so pass --format."
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
        "--resamples", type=int, metavar="N", default=10_000, help="number of resamples"
    )
    pairs.add_argument("--seed", type=int, metavar="N", default=0, help="of the resamples")
    return parser


def _input(text: str) -> Path:
    return _STDIN if text == "-" else Path(text)


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
    ask.add_argument("--relevant-at", type=_finite, metavar="G", help="lowest relevant grade")
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
        ask.add_argument(f"--{role}", metavar="NAME", help=f"column of the {role}")
    ask.add_argument(
        "--subtopic-qrels", action="store_true", help="TREC qrels with a subtopic as second field"
    )
    for name, meaning in INPUT_MEANINGS.items():
        ask.add_argument(f"--{name}", metavar="FILE", type=_input, help=f"file of {meaning}")
    ask.add_argument("--format", choices=_FORMATS, help="format of all files (default: by suffix)")
    ask.add_argument(
        "--out", type=Path, metavar="FILE", help="write .csv, .parquet or .json instead of printing"
    )


def _evaluate(given: argparse.Namespace) -> None:
    columns, options = _read_options(given)
    (run,), truth, inputs = _read_files(given, [given.run], columns)
    options.update(inputs)
    if given.ties is not None:
        run = with_rank(run, by=given.by, ties=given.ties, **columns)
        columns.pop("score", None)
        columns.pop("rank", None)
    if given.per_user and given.total:
        msg = "--total adds a row of overall means and cannot be combined with --per-user"
        raise ValueError(msg)
    if given.total:
        options["total"] = True
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
    runs, truth, inputs = _read_files(given, given.runs, columns)
    options.update(inputs)
    systems = dict(zip(names, runs, strict=True))
    result = compare(
        _of_systems(systems, _ids(given, columns), columns),
        *given.metrics,
        truth=truth,
        by=["model", *given.by],
        baseline=given.baseline,
        test=given.test,
        correction=None if given.correction == "none" else given.correction,
        confidence=given.confidence,
        margin=given.margin,
        resamples=given.resamples,
        seed=given.seed,
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
    for option in ("users", "undefined", "relevant_at", "depth"):
        if getattr(given, option) is not None:
            options[option] = getattr(given, option)
    return columns, options


def _ids(given: argparse.Namespace, columns: Columns) -> list[str]:
    return [columns.get("user", "user"), columns.get("item", "item"), *given.by]


def _read_files(
    given: argparse.Namespace, runs: Sequence[Path], columns: Columns
) -> tuple[list[pl.LazyFrame], pl.LazyFrame | None, dict[str, pl.LazyFrame]]:
    """Scan runs, truth and the tables beside them; give ids one type, and read numbers of CSV."""
    beside = {name: getattr(given, name) for name in INPUT_MEANINGS}
    beside = {name: path for name, path in beside.items() if path is not None}
    judged = [] if given.truth is None else [given.truth]
    _check_inputs([*runs, *judged, *beside.values()])
    ids = _ids(given, columns)
    qrels = functools.partial(trec.scan_qrels, subtopics=given.subtopic_qrels)
    files = [_scan(path, given.format, trec.scan_run, columns) for path in runs]
    files = [
        _with_numbers(file, _placing(file, given, columns), without=ids, booleans=False)
        for file in files
    ]
    grades, subtopic = columns.get("relevance", "relevance"), columns.get("subtopic", "subtopic")
    for path in judged:
        truth = _scan(path, given.format, qrels, columns)
        (truth,) = _of_one_type(subtopic, truth)
        files.append(_with_numbers(truth, [grades], without=ids, booleans=True))
    form = None if given.format == "trec" else given.format
    for name, path in beside.items():
        file = _scan(path, form, trec.scan_run, columns)
        numbers = _placing(file, given, columns) if name == "other" else []
        files.append(_with_numbers(file, numbers, without=ids, booleans=False))
    for name in ids:
        files = list(_of_one_type(name, *files))
    frames = [file.frame for file in files]
    known = frames[: len(runs)], frames[len(runs)] if judged else None
    return *known, dict(zip(beside, frames[len(runs) + len(judged) :], strict=True))


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


class _File(NamedTuple):
    name: str
    form: str
    frame: pl.LazyFrame

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


def _scan(path: Path, form: str | None, scan_trec: Any, columns: Columns) -> _File:
    """Scan a file by its format, or else by its suffix; columns of CSV files are read as text."""
    name = _name(path)
    form = form or _format_of(path)
    try:
        if form == "trec":
            roles = cast("dict[str, str]", columns)
            source = _stdin() if path is _STDIN else path
            frame: pl.LazyFrame = scan_trec(source).rename(roles, strict=False)
        elif form == "parquet":
            frame = pl.scan_parquet(_content(path), glob=False)
        elif form == "ipc":
            frame = pl.scan_ipc(_content(path), glob=False)
        else:
            separator = "\t" if form == "tsv" else ","
            frame = pl.scan_csv(_content(path), separator=separator, infer_schema=False, glob=False)
        frame.collect_schema()
    except (OSError, pl.exceptions.PolarsError) as error:  # errors of polars do not name the file
        msg = f"{name}: {_one_line(error)}"
        raise ValueError(msg) from None
    return _File(name, form, frame)


def _check_exists(path: Path) -> None:
    if path is not _STDIN and not path.exists():
        msg = f"{path}: no such file"
        raise ValueError(msg)
    if path is not _STDIN and path.is_dir():
        msg = f"{path}: it is a directory, not a file"
        raise ValueError(msg)


def _format_of(path: Path) -> str:
    uncompressed = path.with_suffix("") if path.suffix.lower() in trec.PACKINGS else path
    suffix = uncompressed.suffix
    for form, suffixes in _FORMATS.items():
        if suffix.lower() in suffixes:
            return form
    problem = f"unknown suffix {suffix!r}" if suffix else "no suffix that names a format"
    msg = f"{_name(path)}: {problem}; pass --format {'|'.join(_FORMATS)}"
    raise ValueError(msg)


def _content(path: Path) -> Path | bytes:
    """Return the path of a file that polars can scan, or the bytes of a stream or pipe."""
    if _can_be_scanned(path):
        return path
    return _stdin().read() if path is _STDIN else path.read_bytes()


def _can_be_scanned(path: Path) -> bool:
    return path is not _STDIN and trec.can_be_scanned(path)


def _stdin() -> IO[bytes]:
    if sys.stdin is None:
        msg = f"{_name(_STDIN)}: standard input is closed"
        raise ValueError(msg)
    return sys.stdin.buffer


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
    rows, *fitting = file.read(pl.len().alias("rows"), *fits).row(0)
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


def _not_a_number(file: _File, name: str, readings: Sequence[pl.Expr]) -> ValueError:
    """Name the first value of a column that cannot be read, and the line where its row begins."""
    given, number = pl.col(name).is_not_null(), readings[2]
    breaks = pl.sum_horizontal(pl.all().str.count_matches("\n", literal=True).fill_null(0))
    before = 1 + sum(column.count("\n") for column in file.frame.collect_schema().names())
    rows = _File(
        file.name,
        file.form,
        file.frame.select(
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
    return ValueError(f"{file.name}, line {line}, column {name!r}: {value[:200]!r} {problem}")


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
