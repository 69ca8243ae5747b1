"""The command: ``rankframe evaluate RUN TRUTH -m ndcg@10 -m map``, ``compare`` and ``demo``."""

import argparse
import functools
import inspect
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast, get_args

import polars as pl

from rankframe import trec
from rankframe.checks import Columns
from rankframe.compare import Correction, Test, compare
from rankframe.evaluate import Users, evaluate, per_user
from rankframe.labels import every_label, function_of
from rankframe.presets import TREC_EVAL, TREC_EVAL_9
from rankframe.reference import reference_page
from rankframe.table import Ties, from_lists, with_rank

_FORMATS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv",),
    "tsv": (".tsv",),
    "ipc": (".arrow", ".ipc", ".feather"),
    "trec": (".trec", ".run", ".qrels", ".txt"),
}
_OUTPUTS = (".csv", ".parquet", ".json")

# Two recommenders, ten users, five items each; they differ for the last user only.
_RELEVANT = "abc abc abc def def def ghi ghi ghi jkl".split()
_MODELS = {
    "M1": "ahjlp tbfhk xbdca fbcdy abcde pemnf hiace oighk agevx zjasq".split(),
    "M2": "ahjlp tbfhk xbdca fbcdy abcde pemnf hiace oighk agevx zxcqp".split(),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 if all is well, 2 for bad input, with one line on stderr."""
    given = _parser().parse_args(arguments)
    try:
        given.run_command(given)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, head for one, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, TypeError, OSError, ImportError, pl.exceptions.PolarsError) as error:
        print(f"rankframe: error: {_one_line(error)}", file=sys.stderr)
        return 2
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say it in one line."""
        self.exit(2, f"rankframe: error: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="rankframe", description="Ranking metrics for recommenders and search.")
    parser.add_argument("--version", action="version", version=f"rankframe {version('rankframe')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="show a small example")
    demo.set_defaults(run_command=_demo)

    listing = commands.add_parser("metrics", help="list the metrics, or explain one")
    listing.set_defaults(run_command=_metrics)
    listing.add_argument(
        "--markdown", action="store_true", help="print the reference of all as a Markdown page"
    )
    listing.add_argument("name", nargs="?", metavar="NAME", help="a label such as ndcg@10 or P_10")

    ask = commands.add_parser(
        "evaluate",
        help="evaluate a run against its truth",
        description=(
            "Evaluate a run (user, item, rank or score) against its truth (user, item, relevance). "
            "Files are Parquet, CSV, TSV, Arrow IPC, or TREC run and qrels text; gzip and zstd "
            "(.gz, .zst) may pack what is text."
        ),
    )
    ask.set_defaults(run_command=_evaluate)
    ask.add_argument("run", metavar="RUN", type=Path, help="file of the run")
    ask.add_argument("truth", metavar="TRUTH", type=Path, help="file of the truth")
    _add_options(ask, by="a column that splits the run into lists, such as model; repeat for more")
    ask.add_argument("--per-user", action="store_true", help="one row a user, not the mean")
    ask.add_argument("--ties", choices=get_args(Ties), help="rank by score, equal scores so")
    ask.add_argument("--bounds", action="store_true", help="add what unjudged items leave open")
    ask.add_argument("--total", action="store_true", help="add the row of all users")

    against = commands.add_parser(
        "compare",
        help="compare runs on the users that they share",
        description=(
            "Compare runs, each a system called as its file is, without the suffix: differences, "
            "intervals and tests. Files are as in rankframe evaluate."
        ),
    )
    against.set_defaults(run_command=_compare)
    against.add_argument("runs", metavar="RUN", type=Path, nargs="+", help="files of the runs")
    against.add_argument("truth", metavar="TRUTH", type=Path, help="file of the truth")
    _add_options(against, by="a column of segments to compare in, such as country; repeat for more")
    against.add_argument(
        "--baseline", metavar="SYSTEM", help="compare with it (default: all pairs)"
    )
    against.add_argument("--test", choices=get_args(Test), default="t", help="default: t")
    corrections = (*get_args(Correction), "none")
    against.add_argument("--correction", choices=corrections, default="holm", help="default: holm")
    against.add_argument("--confidence", type=float, metavar="X", default=0.95, help="of intervals")
    against.add_argument("--resamples", type=int, metavar="N", default=10_000, help="how many")
    against.add_argument("--seed", type=int, metavar="N", default=0, help="of the resamples")
    return parser


def _add_options(ask: argparse.ArgumentParser, *, by: str) -> None:
    """Add what evaluate and compare both take."""
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
    ask.add_argument("--undefined", type=float, metavar="X", help="value of undefined metrics")
    ask.add_argument("--relevant-at", type=float, metavar="G", help="grade that is relevant")
    ask.add_argument("--judged-only", action="store_true", help="drop unjudged items")
    ask.add_argument("--depth", type=int, metavar="K", help="cut the lists to K items first")
    presets = ask.add_mutually_exclusive_group()
    presets.add_argument(
        "--trec-eval",
        action="store_true",
        help="trec_eval -c: all judged users count, undefined is 0",
    )
    presets.add_argument("--trec-eval-9", action="store_true", help="the same of version 9")
    for role in Columns.__annotations__:
        ask.add_argument(f"--{role}", metavar="NAME", help=f"column of the {role}")
    ask.add_argument(
        "--subtopic-qrels", action="store_true", help="TREC qrels with a subtopic as second field"
    )
    ask.add_argument("--format", choices=_FORMATS, help="format of all files (default: by suffix)")
    ask.add_argument(
        "--out", type=Path, metavar="FILE", help="write .csv, .parquet or .json; print nothing"
    )


def _evaluate(given: argparse.Namespace) -> None:
    columns, options = _read_options(given)
    run, truth = _read_files(given, [given.run], columns)
    if given.ties is not None:
        run = with_rank(run, by=given.by, ties=given.ties, **columns)
        columns.pop("score", None)
        columns.pop("rank", None)
    if given.per_user and given.total:
        msg = "--total is of means, and --per-user takes none"
        raise ValueError(msg)
    if given.total:
        options["total"] = True
    options["bounds"] = given.bounds
    verb = per_user if given.per_user else evaluate
    result = verb(run, *given.metrics, truth=truth, by=given.by, **options, **columns)
    _deliver(result.collect(), given.out)


def _compare(given: argparse.Namespace) -> None:
    columns, options = _read_options(given)
    names = [path.stem for path in given.runs]
    if len(set(names)) < len(names) or len(names) < 2:
        msg = f"compare takes two runs or more, each with a name of its own, not {names}"
        raise ValueError(msg)
    if "model" in given.by:
        msg = "--by names segments; the systems are called as their files are"
        raise ValueError(msg)
    *runs, truth = _read_files(given, given.runs, columns)
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
        resamples=given.resamples,
        seed=given.seed,
        **options,
        **columns,
    )
    _deliver(result.collect(), given.out)


def _read_options(given: argparse.Namespace) -> tuple[Columns, dict[str, Any]]:
    """Read the columns that play the roles, and the options of per_user."""
    if given.out and given.out.suffix.lower() not in _OUTPUTS:
        msg = f"--out must end in one of {', '.join(_OUTPUTS)}, not {given.out.name!r}"
        raise ValueError(msg)
    inputs = [*getattr(given, "runs", [getattr(given, "run", None)]), given.truth]
    if given.out and any(one and one.resolve() == given.out.resolve() for one in inputs):
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
) -> list[pl.LazyFrame]:
    """Scan the runs and the truth, which comes last; their ids meet."""
    ids = _ids(given, columns)
    files = [_scan(path, given.format, trec.scan_run, columns, ids) for path in runs]
    qrels = functools.partial(trec.scan_qrels, subtopics=given.subtopic_qrels)
    files.append(_scan(given.truth, given.format, qrels, columns, ids))
    for name in ids:
        files = list(_meeting(name, *files))
    return [file.frame for file in files]


def _of_systems(
    runs: Mapping[str, pl.LazyFrame], ids: Sequence[str], columns: Columns
) -> pl.LazyFrame:
    """Put the runs under each other, each called as its file is."""
    places = (columns.get("rank", "rank"), columns.get("score", "score"))
    frames: list[pl.LazyFrame] = []
    used: set[str | None] = set()
    for name, run in runs.items():
        has = run.collect_schema().names()
        place = next((column for column in places if column in has), None)
        used.add(place)
        frame = run.select(column for column in (*ids, place) if column in has)
        frames.append(frame.with_columns(model=pl.lit(name, dtype=pl.Enum(list(runs)))))
    if len(used) > 1:
        msg = f"all runs must have a {places[0]!r}, or all only a {places[1]!r}"
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


def _metrics(given: argparse.Namespace) -> None:
    if given.markdown:
        if given.name is not None:
            msg = "--markdown prints all metrics: leave out the name"
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
    truth = pl.DataFrame({"user": users, "item": [list(items) for items in _RELEVANT]})
    run = from_lists(lists)
    _show(evaluate(run, "map", "gmap", "hit@5", truth=truth.explode("item"), by="model"))
    print("M2 leaves one user of ten with nothing: MAP falls by 0.02 only, GMAP by 0.20.")


class _File(NamedTuple):
    path: Path
    form: str
    frame: pl.LazyFrame

    def read(self, *exprs: pl.Expr) -> pl.DataFrame:
        """Compute something of the file, and name it if that fails."""
        try:
            return self.frame.select(*exprs).collect()
        except pl.exceptions.PolarsError as error:
            msg = f"{self.path}: {_one_line(error)}"
            raise ValueError(msg) from None


def _scan(
    path: Path, form: str | None, scan_trec: Any, columns: Columns, ids: Sequence[str]
) -> _File:
    """Scan a file by its format, or else by its suffix; the ids of CSV files come as text."""
    if not path.is_file():
        msg = f"{path}: no such file"
        raise ValueError(msg)
    unpacked = path.with_suffix("") if path.suffix.lower() in trec.PACKINGS else path
    known = (name for name, suffixes in _FORMATS.items() if unpacked.suffix.lower() in suffixes)
    form = form or next(known, None)
    if form is None:
        msg = f"{path}: unknown suffix {unpacked.suffix!r}; say --format {'|'.join(_FORMATS)}"
        raise ValueError(msg)
    try:
        if form == "trec":
            roles = cast("dict[str, str]", columns)
            frame: pl.LazyFrame = scan_trec(path).rename(roles, strict=False)
        elif form == "parquet":
            frame = pl.scan_parquet(path, glob=False)
        elif form == "ipc":
            frame = pl.scan_ipc(path, glob=False)
        else:
            frame = pl.scan_csv(
                path,
                separator="\t" if form == "tsv" else ",",
                schema_overrides=dict.fromkeys(ids, pl.String),
                infer_schema_length=10_000,
                glob=False,
            )
        frame.collect_schema()
    except pl.exceptions.PolarsError as error:
        msg = f"{path}: {_one_line(error)}"
        raise ValueError(msg) from None
    file = _File(path, form, frame)
    if form in ("csv", "tsv") and not file.read(pl.len()).item():
        msg = f"{path}: it is empty"
        raise ValueError(msg)
    return file


def _meeting(name: str, *files: _File) -> tuple[_File, ...]:
    """Bring an id of all files to one type.

    A CSV file does not say whether 7 is a number, nor a TREC file. Ids are numbers where another
    file says so, or where all are CSV, and only if all are written as numbers are (007 is not);
    else they are text.
    """
    having = [file for file in files if name in file.frame.collect_schema()]
    types = {file.path: file.frame.collect_schema()[name] for file in having}
    spelled = [file for file in having if file.form in ("csv", "tsv")]
    numbers = all(file in spelled or types[file.path].is_integer() for file in having)
    number = pl.col(name).cast(pl.Int64, strict=False)
    if numbers and all(
        file.read(number.cast(pl.String).eq_missing(pl.col(name)).all()).item() for file in spelled
    ):
        change, changed = number, spelled
    else:
        change, changed = pl.col(name).cast(pl.String), having
        if not any(types[file.path] == pl.String for file in having):
            changed = []
    return tuple(
        file._replace(frame=file.frame.with_columns(change)) if file in changed else file
        for file in files
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
        shown = str(result)
    encoding = sys.stdout.encoding or "utf-8"
    print(shown.encode(encoding, errors="replace").decode(encoding))
