"""Define the options of each command: a parser of arguments."""

import argparse
import ast
import inspect
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol, TypeAlias, get_args

from rankframe._command import files, inputs, trec
from rankframe._command.inputs import Input
from rankframe._comparison.trials import Correction, GateTest, Test, Trial, Undecided
from rankframe._request import keywords, labels, wrong_keywords
from rankframe._request.keywords import Duplicates, Unjudged
from rankframe._tables import side_tables
from rankframe._tables.rank_order import Ties
from rankframe._warehouse.dialects import DialectName
from rankframe.errors import Problem, keyword, wording
from rankframe.presets import PresetName, Users

#: The name of an option's value in the help, its choices, or None for a flag; and the help.
Option: TypeAlias = tuple[str | Sequence[str] | None, str]
#: The function of a command; it returns the exit code, or None for 0.
Run: TypeAlias = Callable[[argparse.Namespace], int | None]
_NAMED = "each run is a system, and NAME=FILE names it (default: the file name without suffix)"
_DEFAULT = "default, with a truth: nDCG, recall and precision at 10, map and mrr"
_FILES = (
    "The suffix tells the format: Parquet, CSV, TSV, Arrow IPC, JSON, JSON Lines, or TREC run and "
    "qrels text. Without a suffix, the first lines tell TREC from CSV. Text may be compressed with "
    "gzip or zstd. One file may be -, which is standard input, and pipes such as <(zcat run.gz) "
    "are read. A folder, "
    "or a pattern in quotes such as 'runs/day=*/*.parquet', is one table, and folders such as "
    "day=1 in paths of Parquet and IPC are columns. Addresses such as s3://bucket/run.parquet are "
    "read by Polars."
)


class _Group(Protocol):
    """A parser or a group of options."""

    def add_argument(self, *names: Any, **options: Any) -> Any: ...

    def add_mutually_exclusive_group(self) -> Any: ...


def parser_of(commands: Mapping[str, Run], words: Sequence[str]) -> argparse.ArgumentParser:
    """Make the parser; the command among the words has its options and its function."""
    parser = _Parser(
        prog="rankframe",
        description="Ranking metrics for recommenders and search.",
        epilog="rankframe COMMAND --help has an example, and all options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"rankframe {version('rankframe')}")
    modules = "import a module that registers metrics, from the working directory or installed; "
    _add_repeated(parser, "--import", "MODULE", modules + "repeat for more", dest="modules")

    def print_help(_: argparse.Namespace) -> None:
        parser.print_help()

    parser.set_defaults(run_command=print_help)
    added = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, run in commands.items():
        of_one, typed = _COMMANDS[name], f"rankframe {name}"
        command = added.add_parser(
            name,
            help=of_one.task,
            usage=f"{typed} {of_one.usage}\nexample: {typed} {of_one.example}",
            description=f"{of_one.task[0].upper()}{of_one.task[1:]}.",
            epilog=of_one.more,
        )
        command.set_defaults(run_command=run)
        if name in words:  # all of them take 14 ms
            of_one.add_options(command)
    return parser


def parser_of_command(name: str) -> argparse.ArgumentParser:
    """Make the parser of a command alone."""
    parser = argparse.ArgumentParser()
    _COMMANDS[name].add_options(parser)
    return parser


def defaults_of(name: str) -> dict[str, Any]:
    """Return the options of a command, as if none was passed."""
    parser = parser_of_command(name)
    names = {*parser._defaults, *(action.dest for action in parser._actions)}  # pyright: ignore
    return {option: parser.get_default(option) for option in names}


#: Options that keys of a configuration file replace, or that are for a person at a terminal.
_NO_KEYS = ("help", "metrics", "json", "details", "form", "per_query", "at_least", "at_most")


def actions_of(name: str) -> dict[str, argparse.Action]:
    """Return the options of a command that may be keys of a configuration file."""
    own = {"report": ("out",), "gate": ("margin", "primary", "guardrails")}.get(name, ())
    no_keys = (*_NO_KEYS, "run", "truth", *own)
    actions = parser_of_command(name)._actions  # pyright: ignore
    named = {action.dest: action for action in actions if action.option_strings}
    return {option: action for option, action in named.items() if option not in no_keys}


def with_each_metric(words: Sequence[str]) -> list[str]:
    """Repeat -m before each of the labels after it, and move all of them to the end.

    A word that is a file and no label ends the labels, so files may follow them.
    """
    named: list[str] = []
    rest: list[str] = []
    is_first = in_labels = False
    for place, word in enumerate(words):
        if word == "--":
            return [*rest, *named, *words[place:]]
        if word in ("-m", "--metric"):
            is_first = in_labels = True
            rest += ["-m"] if place + 1 == len(words) else []  # argparse says what is missing
            continue
        in_labels = is_first or (in_labels and not (_is_option(word) or _is_file(word)))
        (named if in_labels else rest).extend(["-m", word] if in_labels else [word])
        is_first = False
    return [*rest, *named]


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _is_file(word: str) -> bool:
    """Whether a word is a file, a folder, a pattern or an address, and no label."""
    source = inputs.run_of(word)
    if not (source.is_stdin or source.is_remote or source.path.exists() or source.is_table):
        return False
    try:
        labels.function_of(word)
    except ValueError:
        return not trec.is_measure_set(word)
    return False


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._negative_number_matcher = re.compile(r"-\.?\d")  # -1% is a value, too

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore
        """Keep the words, which tell an error the command."""
        self._words: Sequence[str] = args or ()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the message in one line; name what is nearest to a misspelled command or option."""
        if match := re.match(r"unrecognized arguments: (--[\w-]+)", message):
            name = next(word for word in self._words if word in _COMMANDS)
            message = _wrong_option(name, match[1])
            self.prog = f"rankframe {name}"
        if "sql" in self._words[:1] and (
            match := re.match(r"unrecognized arguments: (\w\S*)", message)
        ):
            message += f": write a metric as -m {match[1]}"
        if match := re.match(r"argument COMMAND: invalid choice: '(.*?)' \(choose", message):
            near = get_close_matches(match[1], _COMMANDS, n=1)
            near = [_VERBS[verb]] if (verb := match[1].replace("_", "-")) in _VERBS else near
            commands = ", ".join(_COMMANDS)
            message = f"unknown command {match[1]!r}; the commands are {commands}"
            message += f"; the nearest is {near[0]!r}" if near else ""
        self.exit(2, f"rankframe: error: {message} (see {self.prog} --help)\n")


def _wrong_option(command: str, typed: str) -> str:
    """Answer a wrong option as Python answers a wrong keyword."""
    taken = {"LABEL": ""}
    for action in parser_of_command(command)._actions:  # pyright: ignore
        if action.option_strings:
            longest = max(action.option_strings, key=len)
            taken[longest.strip("-").replace("-", "_")] = longest
        elif "TRUTH" in str(action.metavar):
            taken["truth"] = "TRUTH, the last file"
    word = typed.strip("-").replace("-", "_")
    return wrong_keywords.answer(command, word, taken, taken.__getitem__, typed)


def _add_nothing(_job: argparse.ArgumentParser) -> None:
    """Add no option."""


def _add_run(job: argparse.ArgumentParser) -> None:
    job.add_argument("config", metavar="FILE", type=Path, help="a TOML file")
    _add(job, {"--dry": (None, "check metrics, gates and outputs, and read no table")})


def _add_metrics(listing: argparse.ArgumentParser) -> None:
    listing.add_argument("name", nargs="?", metavar="NAME", help="a label such as ndcg@10 or P_10")


_HUMAN = "labels by humans for a random sample of users; the truth then has a judge's labels"
_WITH_HUMAN = (*side_tables.INPUT_MEANINGS, "human")


def _add_tables(ask: argparse.ArgumentParser) -> None:
    ask.add_argument(
        "files",
        metavar="RUN [TRUTH]",
        type=inputs.run_of,
        nargs="+",
        help="files of one or more runs, then the file of the truth, or -; a single file is a run "
        f"without a truth; {_NAMED}",
    )


def _add_ranking(conventions: _Group) -> None:
    ties = (
        "rank by score, and order equal scores by item id (descending), as in the file, by the "
        "mean over all their orders, or with the lowest or the highest grade first"
    )
    _add(conventions, {"--ties": (get_args(Ties), ties)})


def _add_evaluate(ask: argparse.ArgumentParser) -> None:
    _add_tables(ask)
    _add_metric(ask)
    rows = ask.add_argument_group("rows")
    _add(rows, {"--per-user": (None, "one row per user instead of means")})
    queries = "one row per user, then one for 'all', as in trec_eval -q"
    _add(rows, {"-q": (None, queries)}, dest="per_query")
    _add_by(rows)
    counted = "add the number of users with a value of each metric"
    _add(rows, {"--total": (None, "add a row of overall means"), "--count-users": (None, counted)})
    chance = "add the value of a random order of each list, and of its best order by grade"
    _add(rows, {"--chance": (None, chance)})
    _add_ranking(_add_conventions(ask))
    output = _add_output(ask)
    _add_provenance(output)
    form = "trec: measure, user and value with tabs between them, as trec_eval prints"
    _add(output, {"--print": (("table", "trec"), form)}, dest="form", default="table")
    _add_files(ask)


def _add_check(ask: argparse.ArgumentParser) -> None:
    _add_tables(ask)
    _add_metric(ask)
    rows = ask.add_argument_group("rows")
    _add_by(rows)
    _add_ranking(_add_conventions(ask))
    _add_files(ask)


def _add_health(ask: argparse.ArgumentParser) -> None:
    _add_tables(ask)
    rows = ask.add_argument_group("rows")
    _add_by(rows)
    _add(rows, {"-k": ("N", "cut-off of the counts (default: 10)")}, default=10)
    times = "the column of the time in the truth and the history, to count leakage"
    _add(rows, {"--time": ("COL", times)})
    _add_output(ask)
    _add_files(ask, ("items", "history"))


def _add_compare(pairs: argparse.ArgumentParser) -> None:
    _add_runs(pairs)
    _add_systems(pairs, "compare only with this system (default: all pairs)", "test")
    _add_test(pairs)
    _add_conventions(pairs)
    _add_provenance(_add_output(pairs))
    _add_files(pairs, _WITH_HUMAN)


def _add_differences(pairs: argparse.ArgumentParser) -> None:
    _add_runs(pairs, "default, with a truth: nDCG at 10")
    _add_systems(pairs, "compare with this system (default: the first run)")
    _add(pairs, {"--n": ("N", "the N greatest losses and the N greatest gains (default: all)")})
    _add(pairs, {"--queries": ("FILE", "the texts of the queries, one row per query")})
    _add_conventions(pairs)
    _add_provenance(_add_output(pairs))
    _add_files(pairs)


def _add_explain(ask: argparse.ArgumentParser) -> None:
    files_of = "the printed numbers, one per -m, then the files of the run and the truth"
    ask.add_argument("words", metavar="NUMBER RUN [TRUTH]", nargs="+", help=files_of)
    _add_metric(ask, "required")
    model = "the column of the system (default: model, if there is one), or none to ignore it"
    _add(ask, {"--model": ("NAME", model)})
    ask.set_defaults(by=[])
    _add_ranking(_add_conventions(ask))
    _add_output(ask)
    _add_files(ask)


def _add_gate(ask: argparse.ArgumentParser) -> None:
    _add_runs(ask, "default: those with their own bound")
    bounds = ask.add_argument_group(
        "what must hold", "Each holds for all metrics, or for LABEL alone."
    )
    _add(bounds, {"--primary": ("LABEL", _PRIMARY)})
    for option, text in _BOUNDS.items():
        _add_repeated(bounds, option, "[LABEL:]X", f"{text}; repeat for more labels")
    _add(bounds, _DECISION)
    ask.set_defaults(undecided="fail")
    missed = "fail a system without a list for more than this share of users (default: 0.05)"
    _add(bounds, {"--most-missed": ("X", missed)}, default=0.05)
    _add_repeated(bounds, "--systems", "SYSTEM", "fail if this system is missing; repeat for more")
    baseline = "compare with this system (default: the first run, or none if there are only floors)"
    _add_systems(ask, baseline, "decision")
    names = [name for name in _TEST if name not in ("margin", "primary", "over")]
    _add_test(ask, names, test=(get_args(GateTest), "the test"))
    _add_conventions(ask, average=False)
    _add_provenance(_add_output(ask))
    _add_files(ask, _WITH_HUMAN)


_PRIMARY = "ship if it is better, and every guardrail not worse: one decision per system"
#: What a metric must keep, each a number of all metrics or of one.
_BOUNDS = {
    "--guardrails": "the accepted loss of other metrics, with --primary",
    "--margin": "the accepted loss: a number, or a share of the baseline such as 1%%",
    "--at-least": "fail each system with a mean below X; one run is enough",
    "--at-most": "fail each system with a mean above X",
}
_DECISION: Mapping[str, Option] = {
    "--interval": (None, "compare the interval of the mean with X, instead of the mean"),
    "--undecided": (
        get_args(Undecided),
        "fail (default): the interval must be within the margin; pass: it must not be beyond it",
    ),
}


def _add_runs(pairs: argparse.ArgumentParser, default: str = _DEFAULT) -> None:
    pairs.add_argument(
        "runs", metavar="RUN", type=inputs.run_of, nargs="+", help=f"files of the runs; {_NAMED}"
    )
    pairs.add_argument("truth", metavar="TRUTH", type=Input, help="file of the truth")
    _add_metric(pairs, default)


_TEST: Mapping[str, Option] = {
    "test": (get_args(Test), "the test"),
    "correction": ((*get_args(Correction), "none"), "the correction for several comparisons"),
    "confidence": ("X", "confidence of the intervals"),
    "margin": ("M", "the largest difference that does not matter, > 0, or a share such as 1%%"),
    "primary": ("LABEL", "the metric that decides; others count only if it shows a difference"),
    "resamples": ("N", "number of resamples"),
    "seed": ("N", "seed of the resamples"),
    "cluster": ("COL", "column of the truth: users with the same value depend on each other"),
    "over": ("COL", "column of the training runs of each system, such as seed"),
}


def _add_test(
    pairs: argparse.ArgumentParser, names: Sequence[str] = tuple(_TEST), **own: Option
) -> None:
    defaults = {name: Trial._field_defaults[name] for name in names}
    shown = {
        f"--{name}": (
            value,
            text if (default := defaults[name]) is None else f"{text} (default: {default})",
        )
        for name, (value, text) in {**_TEST, **own}.items()
        if name in names
    }
    _add(pairs.add_argument_group("test"), shown)
    pairs.set_defaults(**defaults)


def test_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of a test, as functions take them."""
    values = {name: getattr(arguments, name) for name in _TEST if name in arguments}
    return values | ({"correction": None} if arguments.correction == "none" else {})


def names_of(metrics: Sequence[str]) -> list[str]:
    """Read labels, of which one may be of several metrics."""
    names = trec.spelled_out(metrics)
    return [metric.name for metric in labels.parse_metrics(names, per_user=False)] if names else []


def bounds_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the margin and floors of a gate, as the function takes them."""
    bounds: dict[str, Any] = {}
    for option in _BOUNDS:
        name = option[2:].replace("-", "_")
        amounts = [
            (label, amount)
            for text, amount in getattr(arguments, name)
            for label in ([""] if text is None else names_of([text]))
        ]
        if len(amounts) > len(dict(amounts)) or (len(amounts) > 1 and "" in dict(amounts)):
            more = wording("", command=", as in LABEL:0.01", toml="")
            msg = f"{keyword(name)} has two values for one metric: name each label once{more}"
            raise ValueError(Problem(msg))
        if amounts:
            bounds[name] = amounts[0][1] if amounts[0][0] == "" else dict(amounts)
    return bounds


def _add_report(pairs: argparse.ArgumentParser) -> None:
    _add_runs(pairs)
    page = pairs.add_argument_group("page")
    out = {"-o --out": ("FILE", "the .html file to write")}
    _add(page, out, type=inputs.output_of, required=True)
    _add(
        page, {"--static": (None, "leave out the script that chooses among the users of --explore")}
    )
    _add(page, {"-k": ("N", "length of lists (default: 10)")}, default=10)
    _add(page, {"--title": ("TEXT", "title of the page")})
    _add(page, {"--note": ("TEXT", "a line below the title, such as author and occasion")})
    _add(
        page,
        {"--explore": ("N", "number of users whose lists the page includes (default: 8)")},
        default=8,
    )
    _add(page, {"--queries": ("FILE", "the texts of the queries, one row per query")})
    _add_systems(pairs, "compare with this system (default: the first run)")
    pairs.set_defaults(json=False, outputs=(".html", ".htm"))
    _add_test(pairs, [name for name in _TEST if name != "over"])
    _add_conventions(pairs, average=False)
    _add_files(pairs, _WITH_HUMAN)


def _add_sql(ask: argparse.ArgumentParser) -> None:
    _add_metric(ask)
    named = ask.add_argument_group("tables")
    path = "a dotted path, or one Jinja expression such as '{{ ref(\"recs\") }}'"
    for name, default in {"run": "run", "truth": "truth", "exclude": None}.items():
        help_of = f"name of the {name} table: {path}"
        _add(named, {f"--{name}": ("NAME", help_of)}, default=default)
    schema = (
        "columns of the run, truth or exclude, as in truth=user:int,item:str,relevance:bool; "
        "types: str (the default), int, float, bool; repeat for more tables"
    )
    _add_repeated(named, "--schema", "NAME=COL:TYPE,…", schema)
    text = ask.add_argument_group("text")
    text.add_argument("--dialect", choices=get_args(DialectName), default="duckdb")
    _add(
        text,
        {
            "--names": (("label", "snake"), "columns of metrics: ndcg@10, or ndcg_at_10"),
            "--per-user": (None, "one row per user instead of means"),
            "--check": (None, "write the query that looks for rows that break a rule"),
        },
    )
    arrays = "write a function of arrays per metric: ndcg_at_10(items, relevant)"
    _add(text, {"--as-function": (None, arrays)})
    _add_by(text)
    conventions = ask.add_argument_group("conventions")
    of_sql = {name: option for name, option in CONVENTIONS.items() if name != "--weights"}
    _add(conventions, of_sql)
    columns = ask.add_argument_group("columns")
    for role in ("user", "item", "rank", "relevance", "score", "truth_user", "truth_item"):
        _add_role(columns, role.replace("_", "-"), _TEXTS[role])
    ask.set_defaults(subtopic=None)


class _Command(NamedTuple):
    """A command: its line of help, its options, its usage, and what stands below the options."""

    task: str
    add_options: Callable[[argparse.ArgumentParser], None]
    usage: str
    example: str
    more: str = ""


_COMMANDS: dict[str, _Command] = {
    "demo": _Command("show a small example", _add_nothing, "", ""),
    "metrics": _Command("list the metrics, or explain one", _add_metrics, "[NAME]", "ndcg@10"),
    "evaluate": _Command(
        "evaluate runs against their truth",
        _add_evaluate,
        "RUN [RUN ...] [TRUTH] [-m LABEL ...] [options]",
        "run.csv truth.csv -m ndcg@10 map",
    ),
    "check": _Command(
        "check every rule on every row",
        _add_check,
        "RUN [RUN ...] [TRUTH] [options]",
        "run.csv truth.csv",
        "The exit code is 0 if no rule is broken; otherwise it is 2, and one line on standard "
        "error names the rule and a row. With -m, errors of evaluate count as well.",
    ),
    "health": _Command(
        "count what is in the tables and what is wrong with them",
        _add_health,
        "RUN [RUN ...] [TRUTH] [options]",
        "run.csv truth.csv",
        "The table leaves out counts of 0; --details, --json and --out have all counts.",
    ),
    "explain": _Command(
        "find the conventions that give a number",
        _add_explain,
        "NUMBER [NUMBER ...] RUN [TRUTH] -m LABEL [options]",
        "0.3812 run.csv truth.csv -m ndcg@10",
        "Your conventions are the options here; words says how others depart from them. Zeros at "
        "the end of a number count: 0.38 is any value from 0.375 to 0.385, but 0.3800 is not.",
    ),
    "compare": _Command(
        "compare runs: differences, intervals and tests",
        _add_compare,
        "RUN [RUN ...] TRUTH [-m LABEL ...] [options]",
        "old.csv new.csv truth.csv -m ndcg@10 map",
        "A single run with a column model, or one named by --model, has several systems.",
    ),
    "differences": _Command(
        "list each user's difference, the greatest loss first",
        _add_differences,
        "RUN [RUN ...] TRUTH [-m LABEL] [options]",
        "old.csv new.csv truth.csv -m ndcg@10 --n 20",
        "share is the user's weighted difference, divided by the sum over all users.",
    ),
    "gate": _Command(
        "decide whether systems pass, by the exit code",
        _add_gate,
        "RUN [RUN ...] TRUTH [-m LABEL ...] [--margin 1%%] [options]",
        "old.csv new.csv truth.csv -m ndcg@10 --margin 1%%",
        "Systems are compared with a baseline, or their means with floors. The exit code is 0 if "
        "all pass, 1 if a system fails, and 2 if something cannot be judged, such as no users; one "
        "line on standard error explains each decision.",
    ),
    "sql": _Command(
        "write evaluate as SQL for a warehouse",
        _add_sql,
        "-m LABEL [--run NAME] [--truth NAME] [options]",
        "-m ndcg@10 --run recs --truth clicks --dialect bigquery",
        "The text is one SELECT; no table is read. The comment above it lists its assumptions "
        "about the tables; --check writes the query that looks for rows that break them.",
    ),
    "report": _Command(
        "write a page with the verdict, charts, lists and data",
        _add_report,
        "RUN [RUN ...] TRUTH -o FILE [-m LABEL ...] [options]",
        "old.csv new.csv truth.csv -o report.html",
        "The page is one file that needs no network. The command prints its verdict.",
    ),
    "run": _Command(
        "run the calls of a configuration file",
        _add_run,
        "FILE.toml [--dry]",
        "nightly.toml",
        "The file is TOML. The command evaluates; with gates it gates, with a baseline it "
        "compares; and it can write a report. Keys are named as in Python, such as relevant_at. "
        "run is a file, a list, or a table of names and files. Each of [[gates]] has metrics, and "
        "margin, at_least or at_most. Relative paths start at the folder of the file.",
    ),
}


#: Verbs of Python that are options here.
_VERBS = {
    "per-user": "evaluate --per-user",
    "summarize": "compare",
    "provenance": "evaluate --provenance",
}


def _label(text: str) -> str:
    """Read a label; a text with the suffix of a file is a misspelled file."""
    path = Path(text)
    there = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, there, n=1, cutoff=0.8)
    suffixes = {end for of_one in files.FORMATS.values() for end in of_one}
    if path.suffix.lower() in suffixes or (near and re.fullmatch(r"\.[A-Za-z]+", path.suffix)):
        hint = f"; the nearest is {path.parent / near[0]}" if near else ""
        msg = f"{text}: no such file, and no metric{hint}"
        raise argparse.ArgumentTypeError(msg)
    return text


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


_AMOUNT = re.compile(r"(?P<label>.+):(?P<amount>[^:()@]*)")


def _bound(text: str) -> tuple[str | None, float | str]:
    """Read ``0.01``, ``1%`` or ``ndcg@10:1%``; a colon inside parentheses is of the label."""
    match = _AMOUNT.fullmatch(text)
    if pair := re.fullmatch(r"(.+)=([-\d.]+%?)", text):
        msg = f"{text!r} is not a finite number: write {pair[1]}:{pair[2]}"
        raise argparse.ArgumentTypeError(msg)
    return (None, _size(text)) if match is None else (match["label"], _size(match["amount"]))


def _size(text: str) -> float | str:
    """Read a number, or a share such as ``1%``."""
    try:
        return text if text.endswith("%") else _finite(text)
    except argparse.ArgumentTypeError as error:
        msg = f"{error}, nor a share such as 1%"
        raise argparse.ArgumentTypeError(msg) from None


#: What reads the value of an option, by its name in the help.
_TYPES: Mapping[str, Callable[[str], Any]] = {
    "X": _finite,
    "M": _size,
    "N": int,
    "LABEL": _label,
    "NAME,...": _names,
    "FILE": Input,
    "[LABEL:]X": _bound,
}


_MOST_IN_HEADS = 9  # choices that stand at an option, in place of its text


def _add(group: _Group, options: Mapping[str, Option], **more: Any) -> None:
    for names, (value, text) in options.items():
        own: dict[str, Any] = {"choices": value}
        if value is None:
            own = {"action": "store_true"}
        elif isinstance(value, tuple) and len(value) > _MOST_IN_HEADS:
            own |= {"metavar": "NAME"}
            text += f": {', '.join(value)}"
        elif isinstance(value, str):
            own = {"metavar": value, "type": _TYPES.get(value, str)}
        group.add_argument(*names.split(), help=text, **own | more)


def _add_repeated(group: _Group, names: str, value: str, text: str, **more: Any) -> None:
    """Add an option that can be repeated, each time for one more value."""
    _add(group, {names: (value, text)}, action="append", default=[], **more)


def _add_role(columns: _Group, role: str, text: str) -> None:
    """Add the option of a role; several columns may be the user."""
    if role.endswith("user"):
        _add_repeated(columns, f"--{role}", "NAME", f"{text}; repeat for users of several columns")
    else:
        _add(columns, {f"--{role}": ("NAME", text)})


def _add_metric(ask: argparse.ArgumentParser, default: str = _DEFAULT) -> None:
    metrics = "metrics such as ndcg@10 map P_10 P.5,10, or a set of trec_eval: official, set or "
    metrics += f"all_trec ({default})"
    _add_repeated(ask, "-m --metric", "LABEL", metrics, dest="metrics")


def _add_systems(pairs: argparse.ArgumentParser, baseline: str, total: str = "") -> None:
    rows = pairs.add_argument_group("systems and segments")
    _add(rows, {"--baseline": ("SYSTEM", baseline)})
    _add_by(rows)
    if total:
        _add(rows, {"--total": (None, f"add the {total} over all segments")})


def _add_by(rows: _Group) -> None:
    model = "the column of the systems (default: model, if there is one), or none to ignore it"
    _add(rows, {"--model": ("NAME", model)})
    segments = "a column of segments, such as country, fold or day; repeat for more"
    _add_repeated(rows, "--by", "COL", segments)


def _add_conventions(ask: argparse.ArgumentParser, *, average: bool = True) -> _Group:
    """Add the options for conventions that evaluate and compare share."""
    group = ask.add_argument_group("conventions")
    ask.set_defaults(average=None)
    _add(group, {name: of for name, of in CONVENTIONS.items() if average or name != "--average"})
    return group


def _texts_of(record: type) -> dict[str, str]:
    """Read what stands below each key of a record of keywords: its first clause, and a default."""
    (tree,) = ast.parse(inspect.getsource(record)).body
    texts: dict[str, str] = {}
    for key, below in itertools.pairwise(ast.iter_child_nodes(tree)):
        if isinstance(key, ast.AnnAssign) and isinstance(below, ast.Expr):
            text = " ".join(ast.literal_eval(below.value).split()).replace("``", "")
            clause = re.split(r"[.:;](?: |$)", text, maxsplit=1)[0]
            default = re.search(r"By default (.+?)\.(?: |$)", text)
            clause += f" (default: {default[1]})" if default else ""
            texts[ast.unparse(key.target)] = clause[0].lower() + clause[1:].replace("%", "%%")
    return texts


#: The conventions of a call, with the name of each value in the help or its choices.
CONVENTION_VALUES: Mapping[str, str | Sequence[str]] = {
    "preset": get_args(PresetName),
    "users": get_args(Users),
    "undefined": "X",
    "weights": "COL",
    "average": "HOW",
    "relevant_at": "X",
    "unjudged": get_args(Unjudged),
    "duplicates": get_args(Duplicates),
    "depth": "N",
}
_TEXTS = _texts_of(keywords.Columns) | _texts_of(keywords.Options)
CONVENTIONS: Mapping[str, Option] = {
    f"--{name.replace('_', '-')}": (value, _TEXTS[name])
    for name, value in CONVENTION_VALUES.items()
}


def _add_output(ask: argparse.ArgumentParser) -> _Group:
    group = ask.add_argument_group("output")
    out = "write a .csv, .parquet or .json file instead of printing; -: CSV on standard output"
    _add(group, {"--out": ("FILE", out)}, type=inputs.output_of)
    _add(
        group,
        {
            "--json": (None, "print JSON, a list of rows; with --out, write the file as well"),
            "--details": (None, "print all columns (default: those that fit)"),
            "--spreadsheet": (
                None,
                "in CSV, put ' before text that a spreadsheet would run as a formula",
            ),
        },
    )
    return group


def _add_provenance(output: _Group) -> None:
    text = "write how the numbers were made as a .json file: rf.provenance"
    _add(output, {"--provenance": ("FILE", text)}, type=inputs.output_of)


def _add_files(
    ask: argparse.ArgumentParser, beside_names: Sequence[str] = tuple(side_tables.INPUT_MEANINGS)
) -> None:
    """Add the options for files and their columns that most commands share."""
    ask.set_defaults(**dict.fromkeys((*files.BESIDE, "weights")))
    meanings = {**side_tables.INPUT_MEANINGS, "human": _HUMAN}
    beside = ask.add_argument_group("further tables")
    _add(beside, {f"--{name}": ("FILE", meanings[name]) for name in beside_names})
    columns = ask.add_argument_group(
        "columns", "Names of columns. The first ones apply to all files."
    )
    for role in keywords.ROLES[1:]:  # the model is among the rows
        _add_role(columns, role, _TEXTS[role])
    for role in ("truth_user", "truth_item"):
        _add_role(columns, role.replace("_", "-"), _TEXTS[role])
    _add_role(
        columns,
        "truth-relevance",
        "the grade in the truth, if the runs have a column with this name",
    )
    formats = ask.add_argument_group("formats", _FILES)
    choices = ("auto", *files.FORMATS)
    _add(formats, {"--format": (choices, "format of all files (default: by suffix)")})
    kinds = files.FILE_ROLES
    _add(formats, {f"--{kind}-format": (choices, f"format of the {kind}") for kind in kinds})
    fields = "names of all columns of a text {} without a header"
    _add(formats, {f"--{kind}-fields": ("NAME,...", fields.format(kind)) for kind in kinds})
    _add(formats, {"--subtopic-qrels": (None, "TREC qrels with a subtopic as second field")})
