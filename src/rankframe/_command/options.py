"""Define the options of each command: a parser of arguments."""

import argparse
import math
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib.metadata import version
from typing import Any, NamedTuple, NoReturn, Protocol, TypeAlias, get_args

from rankframe._command import files, inputs
from rankframe._comparison.trials import Correction, Test
from rankframe._request.keywords import Columns, GainsFrom, Users
from rankframe._tables import side_tables
from rankframe._tables.rank_order import Ties

#: The function of a command; it returns the exit code, or None for 0.
Run: TypeAlias = Callable[[argparse.Namespace], int | None]
_FILES = (
    "Files are Parquet, CSV, TSV, Arrow IPC, JSON Lines, or TREC run and qrels text; the format is "
    "detected by content. BEIR's TSV and qrels with three fields are read, too. Text files may be "
    "compressed with gzip or zstd. One file may be -, which is standard input, and pipes such as "
    "<(zcat run.gz) are read. If the content allows two formats, the suffix decides, and if it "
    "does not either, an error names the options. A folder, or a pattern in quotes such as "
    "'runs/day=*/*.parquet', is one table. Folders such as day=1 in paths are columns. Addresses "
    "such as s3://bucket/run.parquet are read by Polars."
)


class _Group(Protocol):
    """A parser or a group of options."""

    def add_argument(self, *names: Any, **options: Any) -> Any: ...

    def add_mutually_exclusive_group(self) -> Any: ...


class Gate(NamedTuple):
    """A metric that must not be worse by more than a margin."""

    label: str
    margin: float


def parser_of(commands: Mapping[str, Run]) -> argparse.ArgumentParser:
    """Make the parser; each command has its options and its function."""
    parser = _Parser(
        prog="rankframe",
        description="Ranking metrics for recommenders and search.",
        epilog="rankframe COMMAND --help lists the options of a command. Example: rankframe "
        "evaluate run.parquet truth.csv -m ndcg@10",
    )
    parser.add_argument("--version", action="version", version=f"rankframe {version('rankframe')}")
    parser.add_argument(
        "--import",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="import a module that registers metrics, from the working directory or installed; "
        "repeat for more",
    )
    added = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, run in commands.items():
        help_of, add_options, about = _COMMANDS[name]
        command = added.add_parser(name, help=help_of, **about)
        command.set_defaults(run_command=run)
        add_options(command)
    return parser


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Print the message in one line; name the command that is nearest to a misspelled one."""
        if match := re.match(r"argument COMMAND: invalid choice: '(.*?)' \(choose", message):
            near = get_close_matches(match[1], _COMMANDS, n=1)
            commands = ", ".join(_COMMANDS)
            message = f"unknown command {match[1]!r}; the commands are {commands}"
            message += f"; the nearest is {near[0]!r}" if near else ""
        self.exit(2, f"rankframe: error: {message} (see {self.prog} --help)\n")


def _add_no_options(_: argparse.ArgumentParser) -> None:
    return


def _add_metrics(listing: argparse.ArgumentParser) -> None:
    listing.add_argument(
        "--markdown", action="store_true", help="print the reference of all metrics in Markdown"
    )
    listing.add_argument("--wide", action="store_true", help="do not cut definitions")
    listing.add_argument("name", nargs="?", metavar="NAME", help="a label such as ndcg@10 or P_10")


def _add_tables(ask: argparse.ArgumentParser) -> None:
    ask.add_argument(
        "files",
        metavar="RUN [TRUTH]",
        type=inputs.run_of,
        nargs="+",
        help="files of one or more runs, then the file of the truth, or -; a single file is a run, "
        "for metrics that need no truth",
    )


def _add_ranking(conventions: _Group) -> None:
    conventions.add_argument(
        "--ties",
        choices=get_args(Ties),
        help="rank by score; equal scores are ordered by item id (descending) or as in the file, "
        "or count with the mean over all their orders",
    )


def _add_unjudged(ask: argparse.ArgumentParser) -> None:
    unjudged = ask.add_argument_group("unjudged items")
    unjudged.add_argument(
        "--judged-only", action="store_true", help="drop unjudged items from the lists"
    )
    unjudged.add_argument(
        "--bounds",
        action="store_true",
        help="add the least and greatest value that unjudged items allow",
    )
    unjudged.add_argument(
        "--scenarios",
        action="store_true",
        help="add the values if none or all unjudged items are relevant",
    )


def _add_evaluate(ask: argparse.ArgumentParser) -> None:
    _add_tables(ask)
    _add_metric(ask)
    rows = ask.add_argument_group("rows")
    rows.add_argument("--per-user", action="store_true", help="one row per user instead of means")
    rows.add_argument(
        "-q",
        dest="queries",
        action="store_true",
        help="one row per user, and then one for 'all', as trec_eval -q",
    )
    _add_by(rows, "a column that splits the run into lists, such as model; repeat for more")
    rows.add_argument("--total", action="store_true", help="add a row of overall means")
    rows.add_argument(
        "--count-users",
        action="store_true",
        help="add the number of users with a value of each metric",
    )
    _add_ranking(_add_conventions(ask))
    _add_unjudged(ask)
    output = _add_output(ask)
    output.add_argument(
        "--print",
        dest="form",
        choices=("table", "trec"),
        default="table",
        help="trec: measure, user and value with tabs between them, as trec_eval prints",
    )
    _add_files(ask)


def _add_check(ask: argparse.ArgumentParser) -> None:
    _add_tables(ask)
    _add_metric(ask)
    rows = ask.add_argument_group("rows")
    _add_by(rows, "a column that splits the run into lists, as in evaluate")
    _add_ranking(_add_conventions(ask))
    _add_unjudged(ask)
    _add_files(ask)


def _add_health(ask: argparse.ArgumentParser) -> None:
    _add_tables(ask)
    rows = ask.add_argument_group("rows")
    _add_by(rows, "a column that splits the run into lists, as in evaluate")
    rows.add_argument(
        "-k", type=int, metavar="N", default=10, help="cut-off of the counts (default: 10)"
    )
    _add_output(ask)
    _add_files(ask, ("items", "history"))


def _add_compare(pairs: argparse.ArgumentParser) -> None:
    pairs.add_argument(
        "runs", metavar="RUN", type=inputs.run_of, nargs="+", help="files of the runs"
    )
    pairs.add_argument("truth", metavar="TRUTH", type=inputs.input_of, help="file of the truth")
    _add_metric(pairs)
    rows = pairs.add_argument_group("systems and segments")
    rows.add_argument(
        "--baseline",
        metavar="SYSTEM",
        help="compare only with this system (default: all pairs; with a gate, the first run)",
    )
    _add_by(rows, "a column of segments, such as country; repeat for more")
    rows.add_argument("--total", action="store_true", help="add the test over all segments")
    _add_test(pairs)
    gate = pairs.add_argument_group(
        "gate",
        "The exit code is 1 if a system fails, and 2 if a gate has no interval, such as without "
        "users; one line on standard error explains why. The margin is the accepted loss "
        "(default: 0).",
    )
    for option, help_of in {
        "--fail-if-worse": "fail if the whole interval of the difference is beyond the margin; "
        "repeat for more",
        "--fail-unless-not-worse": "the same, but fail also if the test is "
        "undecided; repeat for more",
    }.items():
        gate.add_argument(
            option,
            type=_gate,
            action="append",
            default=[],
            metavar="LABEL[:MARGIN]",
            help=help_of,
        )
    conventions = _add_conventions(pairs)
    conventions.add_argument(
        "--judged-only", action="store_true", help="drop unjudged items from the lists"
    )
    _add_output(pairs)
    _add_files(pairs)


def _add_test(pairs: argparse.ArgumentParser) -> None:
    test = pairs.add_argument_group("test")
    test.add_argument("--test", choices=get_args(Test), default="t", help="the test (default: t)")
    corrections = (*get_args(Correction), "none")
    test.add_argument(
        "--correction",
        choices=corrections,
        default="holm",
        help="the correction for several comparisons (default: holm)",
    )
    test.add_argument(
        "--confidence",
        type=_finite,
        metavar="X",
        default=0.95,
        help="confidence of the intervals (default: 0.95)",
    )
    test.add_argument(
        "--margin",
        type=_finite,
        metavar="X",
        help="the largest difference that does not matter, > 0",
    )
    test.add_argument(
        "--primary",
        metavar="LABEL",
        help="the metric that decides; others count only where it shows a difference",
    )
    test.add_argument(
        "--resamples",
        type=int,
        metavar="N",
        default=10_000,
        help="number of resamples (default: 10000)",
    )
    test.add_argument(
        "--seed", type=int, metavar="N", default=0, help="seed of the resamples (default: 0)"
    )
    test.add_argument(
        "--cluster",
        metavar="COL",
        help="column of the truth: users with the same value depend on each other",
    )


def _add_report(pairs: argparse.ArgumentParser) -> None:
    pairs.add_argument(
        "runs", metavar="RUN", type=inputs.run_of, nargs="+", help="files of the runs"
    )
    pairs.add_argument("truth", metavar="TRUTH", type=inputs.input_of, help="file of the truth")
    _add_metric(pairs)
    page = pairs.add_argument_group("page")
    page.add_argument(
        "-o",
        "--out",
        type=inputs.output_of,
        metavar="FILE",
        required=True,
        help="the .html file to write",
    )
    page.add_argument(
        "--static", action="store_true", help="pictures instead of charts with scripts"
    )
    page.add_argument("-k", type=int, metavar="N", default=10, help="length of lists (default: 10)")
    page.add_argument("--title", metavar="TEXT", help="title of the page")
    rows = pairs.add_argument_group("systems and segments")
    rows.add_argument(
        "--baseline", metavar="SYSTEM", help="compare with this system (default: the first run)"
    )
    rows.add_argument(
        "--segment",
        dest="segments",
        action="append",
        default=[],
        metavar="COL",
        help="a column of the truth that splits the users; repeat for more",
    )
    pairs.set_defaults(by=[], json=False, outputs=(".html", ".htm"))
    _add_test(pairs)
    conventions = _add_conventions(pairs)
    conventions.add_argument(
        "--judged-only", action="store_true", help="drop unjudged items from the lists"
    )
    _add_files(pairs)


_EVALUATE = (
    "Evaluate runs (user, item, rank or score) against their truth (user, item, relevance). If "
    "there are several runs, each is a model, named by NAME=FILE, or after its file without the "
    "suffix. "
)
_CHECK = (
    "Check every rule on every row, with the files and options of evaluate. The exit code is 0 if "
    "no rule is broken; otherwise it is 2, and one line on standard error names the rule and a "
    "row. With -m, errors of evaluate count, too. "
)
_HEALTH = (
    "Count what is in the tables and what is wrong with them: missed users, short lists, "
    "duplicates, unjudged items, and so on. The printed table leaves out what is not found; "
    "--wide, --json and --out have all counts. "
)
_COMPARE = (
    "Compare runs: differences, intervals and tests. Each run is a system, named by NAME=FILE, or "
    "after its file without the suffix. A single run with a column model, or that of --by, is one "
    "table of several systems. "
)
_REPORT = (
    "Write one HTML file that needs no network, and print its verdict. Each run is a system, named "
    "by NAME=FILE, or after its file without the suffix. Without -m, the metrics are nDCG, recall "
    "and precision at k, map and mrr. "
)
#: Each command: its line of help, the function that adds its options, and keywords for argparse.
_COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], dict[str, Any]]] = {
    "demo": ("show a small example", _add_no_options, {}),
    "metrics": ("list the metrics, or explain one", _add_metrics, {}),
    "evaluate": (
        "evaluate runs against their truth",
        _add_evaluate,
        {
            "usage": "rankframe evaluate RUN [RUN ...] [TRUTH] -m LABEL [-m LABEL ...] [options]",
            "description": _EVALUATE + _FILES,
        },
    ),
    "check": (
        "check every rule on every row",
        _add_check,
        {
            "usage": "rankframe check RUN [RUN ...] [TRUTH] [options]",
            "description": _CHECK + _FILES,
        },
    ),
    "health": (
        "count what is in the tables and what is wrong with them",
        _add_health,
        {
            "usage": "rankframe health RUN [RUN ...] [TRUTH] [options]",
            "description": _HEALTH + _FILES,
        },
    ),
    "compare": (
        "compare runs on the same users",
        _add_compare,
        {
            "usage": "rankframe compare RUN [RUN ...] TRUTH -m LABEL [-m LABEL ...] [options]",
            "description": _COMPARE + _FILES,
        },
    ),
    "report": (
        "write a page with the verdict, charts, lists and data",
        _add_report,
        {
            "usage": "rankframe report RUN [RUN ...] TRUTH -o report.html [-m LABEL ...] [options]",
            "description": _REPORT + _FILES,
        },
    ),
}


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


def _gate(text: str) -> Gate:
    """Read ``ndcg@10:0.01``; a colon inside parentheses belongs to the label."""
    match = re.fullmatch(r"(?P<label>.+):(?P<margin>[^:()@]*)", text)
    if match is None:
        return Gate(text, 0.0)
    margin = _finite(match["margin"])
    if margin < 0:
        msg = f"{text!r}: the margin must be ≥ 0"
        raise argparse.ArgumentTypeError(msg)
    return Gate(match["label"], margin)


def _add_metric(ask: argparse.ArgumentParser) -> None:
    ask.add_argument(
        "-m",
        "--metric",
        dest="metrics",
        action="append",
        default=[],
        metavar="LABEL",
        help="a metric such as ndcg@10, map, P_10 or P.5,10, or a set of trec_eval: official, set "
        "or all_trec; repeat for more",
    )


def _add_by(rows: _Group, help_of: str) -> None:
    rows.add_argument("--by", action="append", default=[], metavar="COL", help=help_of)


def _add_conventions(ask: argparse.ArgumentParser) -> _Group:
    """Add the options for conventions that evaluate and compare share."""
    group = ask.add_argument_group("conventions")
    group.add_argument(
        "--users",
        choices=get_args(Users),
        help="users to average over (default: truth, the users with an item of grade > 0)",
    )
    group.add_argument(
        "--undefined",
        type=_finite,
        metavar="X",
        help="value of undefined metrics (default: left out)",
    )
    group.add_argument(
        "--weights", metavar="COL", help="column of the truth or run: the weight of each user"
    )
    group.add_argument(
        "--relevant-at", type=_finite, metavar="G", help="lowest relevant grade (default: > 0)"
    )
    group.add_argument(
        "--gains-from",
        choices=get_args(GainsFrom),
        help="relevant_at: grades below --relevant-at have no gain (default: every grade has one)",
    )
    group.add_argument("--depth", type=int, metavar="K", help="first cut the lists to K items")
    presets = group.add_mutually_exclusive_group()
    presets.add_argument(
        "--trec-eval",
        action="store_true",
        help="the conventions of trec_eval -c: all judged users count, undefined is 0",
    )
    presets.add_argument(
        "--trec-eval-9", action="store_true", help="the same, as version 9 of trec_eval"
    )
    return group


def _add_output(ask: argparse.ArgumentParser) -> _Group:
    group = ask.add_argument_group("output")
    group.add_argument(
        "--out",
        type=inputs.output_of,
        metavar="FILE",
        help="write a .csv, .parquet or .json file instead of printing; -: CSV on standard output",
    )
    group.add_argument(
        "--json",
        action="store_true",
        help="print JSON, a list of rows; with --out, write the file as well",
    )
    group.add_argument(
        "--wide", action="store_true", help="print all columns (default: those that fit)"
    )
    return group


def _add_files(
    ask: argparse.ArgumentParser, beside_names: Sequence[str] = tuple(side_tables.INPUT_MEANINGS)
) -> None:
    """Add the options for files and their columns that most commands share."""
    ask.set_defaults(**dict.fromkeys((*side_tables.INPUT_MEANINGS, "weights")))
    beside = ask.add_argument_group("further tables")
    for name in beside_names:
        meaning = side_tables.INPUT_MEANINGS[name]
        beside.add_argument(f"--{name}", metavar="FILE", type=inputs.input_of, help=meaning)
    columns = ask.add_argument_group("columns")
    for role in Columns.__annotations__:
        columns.add_argument(
            f"--{role}", metavar="NAME", help=f"column of the {role}, in all files"
        )
    for kind, roles in files.FILE_ROLES.items():
        for role in roles:
            columns.add_argument(
                f"--{kind}-{role}",
                metavar="NAME",
                help=f"column of the {role} in the {kind}, if its name differs there",
            )
    formats = ask.add_argument_group("formats")
    choices = ("auto", *files.FORMATS)
    formats.add_argument(
        "--format", choices=choices, help="format of all files (default: by content)"
    )
    for kind in files.FILE_ROLES:
        formats.add_argument(f"--{kind}-format", choices=choices, help=f"format of the {kind}")
    for kind in files.FILE_ROLES:
        formats.add_argument(
            f"--{kind}-fields",
            type=_names,
            metavar="NAME,...",
            help=f"names of all columns of a text {kind} without a header",
        )
    formats.add_argument(
        "--subtopic-qrels", action="store_true", help="TREC qrels with a subtopic as second field"
    )
