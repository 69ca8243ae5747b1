"""What the command says of errors: options of the command, and no call of Python."""

import re

import odd_input
import polars as pl
import pytest

import rankframe as rf
from rankframe._command.main import _in_options, main

# labels have parameters too, such as ap(rel=2), and types of columns have brackets
LABELS = (
    r"\w+\((rel|gain|of|p|beta)=[^()]*\)|(max_grade|collection|gain|of|out_of|rel)=|\{1: 1, 2: 3\}"
)
TYPES = r"(Datetime|Categorical|Categories|Enum|List|Struct)\(.*\)"
VALUES = "False and True|which has [^:]*:"  # of the data
OF_PYTHON = re.compile(
    r"\w\(|\w=|=\w|\bpandas\b|with_rank|\bjudge\(|\b(pl|rf|truth|run|judged)\.\w|True\b|None\b"
)


def said_by(capsys, arguments):
    """Run a command that must fail; return what it says, without the data of the row."""
    try:
        code = main(arguments)
    except SystemExit as stopped:
        code = stopped.code
    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1)
    return err.partition("Offending row:")[0].removeprefix("rankframe: error: ")


def assert_words_of_the_command(text):
    assert not OF_PYTHON.search(re.sub(f"{TYPES}|{LABELS}|{VALUES}", "", text)), text


def options_of(case):
    """Write the options of a call; None if the command has no such option."""
    options = [part for label in case.metrics for part in ("-m", label)]
    for name, value in case.options.items():
        values = value if isinstance(value, list | tuple) else [value]
        if not all(isinstance(one, str | int | float) for one in values):
            return None
        flag = f"--{name.replace('_', '-')}"
        options += [flag] if value is True else [f"{flag}={one}" for one in values]
    return options if all(isinstance(one, str) for one in options) else None


#: The command reads ids of two types as text, a metric that is named twice once, and has defaults.
READ = ("item ids are text in the run and integers in the truth", "a duplicate metric", "no metric")
REFUSED = [
    case
    for listed in odd_input.cases().values()
    for case in listed
    if isinstance(case.gives, str) and options_of(case) is not None and case.name not in READ
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_odd_input_is_refused_in_words_of_the_command(tmp_path, capsys, case):
    run, truth = tmp_path / "run.parquet", tmp_path / "truth.parquet"
    case.run.write_parquet(run)
    case.truth.write_parquet(truth)
    assert_words_of_the_command(
        said_by(capsys, ["evaluate", str(run), str(truth), *options_of(case)])
    )


RUN = odd_input.RUN
TRUTH = odd_input.TRUTH
TABLES = {
    "run": RUN,
    "other": RUN,
    "truth": TRUTH,
    "plain": TRUTH.drop("relevance"),
    "flags": TRUTH.select("user", "item", gain=pl.Series([False, True, True, True])),
    "weighed": TRUTH.with_columns(w=1.0, c=pl.lit("x")),
    "minus": TRUTH.with_columns(w=-1.0, c=None),
    "country": TRUTH.with_columns(country=pl.Series(["se", "se", "no", "no"])),
    "scored": odd_input.SCORED,
    "both": RUN.join(odd_input.SCORED, on=["user", "item"]),
    "blocks": RUN.with_columns(tied=2),
    "judged": RUN.join(TRUTH, on=["user", "item"], how="full", coalesce=True),
    "folds": pl.concat([RUN.with_columns(fold=1), RUN.with_columns(fold=2)]),
    "apart": RUN.with_columns(day="user"),
    "text": RUN.with_columns(pl.col("user").cast(pl.String)),
    "floats": RUN.with_columns(pl.col("user").cast(pl.Float64)),
    "items": pl.DataFrame({"item": [10], "genre": [["a"]]}),
    "twice": pl.DataFrame({"item": [10, 10, 11, 12, 13], "genre": [["a"]] * 5}),
    "history": pl.DataFrame({"user": [1, 1], "item": [10, 10]}),
    "seen": RUN.drop("rank"),
    "ids": RUN.rename({"user": "qid", "item": "docno"}),
    "subtopics": TRUTH.with_columns(subtopic=pl.lit("s")),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, frame in TABLES.items():
        frame.write_parquet(f"{name}.parquet")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "evaluate run -m map",
        "evaluate run -m coverage@2",
        "evaluate run truth -m nothing@2",
        "evaluate run truth -m gauc",
        "evaluate run truth -m f1(beta=x)",
        "evaluate run truth -m map --weights w",
        "evaluate run minus -m map --weights w",
        "evaluate run weighed -m num_q --weights w",
        "evaluate run weighed -m map --weights w --per-user",
        "evaluate run weighed -m coverage@2 --weights w --items seen",
        "evaluate run truth -m map --total",
        "gate run truth -m rr --at-least 0.1 --unjudged bounds",
        "evaluate run truth -m map --unjudged bounds --undefined 0.5",
        "evaluate run truth -m ndcg(gain=exponential)@2 --unjudged bounds",
        "evaluate run truth -m gmap --undefined=-1",
        "evaluate run truth -m map --relevant-at=-1",
        "evaluate run truth -m map --depth=-1",
        "evaluate run truth -m map --by day",
        "evaluate run country -m map --by country --users all",
        "evaluate run truth -m map --ties item",
        "evaluate both truth -m map --score score",
        "evaluate blocks truth -m map",
        "evaluate judged truth -m map",
        "gate run truth -m map --at-least map:0 --systems new",
        "evaluate floats truth -m map",
        "evaluate folds truth -m map",
        "evaluate folds truth -m map --by fold",
        "evaluate run flags -m map",
        "evaluate run truth -m map --exclude seen",
        "evaluate run truth -m map --exclude items",
        "evaluate run truth -m novelty@2 --items twice",
        "evaluate run truth -m coverage@2 --items twice",
        "evaluate run truth -m ndcg.1=3,2=9,4=4.5",
        "evaluate run truth -m intra_list_diversity@2 --items twice",
        "evaluate run truth -m rbo",
        "evaluate ids truth -m map",
        "evaluate run subtopics -m map --subtopic topic",
        "evaluate run truth -m map --rank place",
        "evaluate run truth -m map --relevance gain",
        "check run truth --items items",
        "check run truth --by day",
        "check run plain --relevance gain",
        "check folds truth",
        "health run truth -k 0",
        "compare run other truth -m map --baseline none",
        "compare run other truth -m map --by day",
        "compare run other truth -m num_q",
        "compare run other truth -m coverage@2 --items seen",
        "compare run other truth -m num_ret --test sequential",
        "compare run other truth -m map -m gmap --margin 0.1",
        "compare run other truth -m map --margin=-1",
        "compare run other truth -m map --margin 0.1 --test max_t",
        "compare run other truth -m map --primary ndcg",
        "compare run other truth -m map --confidence 2",
        "compare run other truth -m map --resamples=-1 --test max_t",
        "compare run other truth -m map --seed=-1 --test max_t",
        "compare run other weighed -m map --weights w --test max_t",
        "compare run other weighed -m map --cluster c --test sequential",
        "compare run other weighed -m map --cluster c",
        "compare run other minus -m map --cluster c",
        "compare run other truth -m map --cluster c",
        "gate run other truth -m num_ret --undecided pass",
        "gate run other truth -m coverage@2 --undecided pass --items seen",
        "gate run other truth -m gmap --margin 0.1 --undecided pass",
        "compare run other truth -m map --depth 0",
        "report run other truth -o x.html --by country",
        "report run other truth -o x.html --by country -m nothing",
        "report run other truth -o x.html -k 0",
        "report run other truth -o x.html --baseline none",
    ],
)
def test_refusals_are_in_words_of_the_command(folder, capsys, command):
    words = [f"{word}.parquet" if word in TABLES else word for word in command.split()]
    assert_words_of_the_command(said_by(capsys, words))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            "truth, column 'is_click': 0 and 1 but no relevance: pass relevance='is_click'; if "
            "every judged item is relevant, drop the column: truth.drop('is_click'), or keep it "
            "beside a relevance of 1: truth.with_columns(relevance=1), or drop(columns=…) and "
            "assign(…) in pandas. Offending row: user=1",
            "truth, column 'is_click': 0 and 1 but no relevance: pass --relevance is_click; if "
            "every judged item is relevant, drop the column. Offending row: user=1",
        ),
        ('pass relevance="a b", or users=', "pass --relevance a b, or --users"),
        ("unjudged='bounds': no bounds", "--unjudged bounds: no bounds"),
        ("undefined=0.5; test='t'", "--undefined 0.5; --test t"),
        ("ap(rel=2), gmap(epsilon=1)", "ap(rel=2), gmap(epsilon=1)"),
        ("runs/user=7/x.csv: no such file", "runs/user=7/x.csv: no such file"),
        ("user=7/x.csv: no such file", "user=7/x.csv: no such file"),
        ("depth=7/x.csv: no such file", "depth=7/x.csv: no such file"),
        ("which has day=2, user='a', item=-1", "which has day=2, user='a', item=-1"),
        ("name them with user=, item=", "name them with --user, --item"),
        (
            "baseline must be one of 'seed=1', 'a b, rank=2', not 'seed=3'; pass seed=4",
            "baseline must be one of 'seed=1', 'a b, rank=2', not 'seed=3'; pass --seed 4",
        ),
        ("it has 'user', 'seed=1", "it has 'user', 'seed=1"),
    ],
)
def test_keywords_become_options(message, said):
    assert _in_options(message) == said


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("gate a.csv b.csv --margin map=2%", "'map=2%' is not a finite number: write map:2% ("),
        ("gate a.csv b.csv --test randomization", "(choose from 't', 'max_t', 'sequential') ("),
        ("sql ndcg@10", "unrecognized arguments: ndcg@10: write a metric as -m ndcg@10 ("),
    ],
)
def test_a_value_in_a_wrong_form_is_answered_with_the_form(capsys, typed, said):
    with pytest.raises(SystemExit):
        main(typed.split())
    assert said in capsys.readouterr().err


def test_a_mismatch_of_long_enums_is_one_line(folder, capsys):
    levels = [f"user {number}" for number in range(2_000)]
    for name, own in {"run": levels, "truth": [*levels[:-1], "else"]}.items():
        frame = TABLES[name].with_columns(user=pl.lit(levels[0], pl.Enum(own)))
        frame.write_parquet(f"{name}.parquet")
    run, truth = pl.read_parquet("run.parquet"), pl.read_parquet("truth.parquet")
    with pytest.raises(rf.RankingDataError) as error:
        rf.evaluate(run, "map", truth=truth)
    text = (
        "column 'user': it is an Enum of 2,000 levels (number 2000 is 'user 1999') in the run and "
        "an Enum of 2,000 levels (number 2000 is 'else') in the truth: cast one; ids must have the "
        "same type in both tables, or any two integer types"
    )
    assert str(error.value) == text
    assert said_by(capsys, "evaluate run.parquet truth.parquet -m map".split()) == f"{text}\n"
    with pytest.raises(rf.RankingDataError) as error:
        rf.runs.stack({"a": run, "b": run.with_columns(pl.col("user").cast(pl.String))})
    assert "it is an Enum of 2,000 levels (number 1 is 'user 0') in run 'a'" in str(error.value)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("evalute", "; the nearest is 'evaluate' ("),
        ("helth", "; the nearest is 'health' ("),
        ("per_user", "; the nearest is 'evaluate --per-user' ("),
        ("zz", "report, run ("),
    ],
)
def test_a_misspelled_command_has_a_nearest_one(capsys, typed, said):
    text = said_by(capsys, [typed, "run.csv"])
    assert text.startswith(f"unknown command {typed!r}; the commands are demo, metrics, evaluate,")
    assert said in text


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "report run.csv truth.csv -o x.html --baselines c",
            "report has no --baselines; the nearest is --baseline (see rankframe report --help)",
        ),
        (
            "evaluate run.csv truth.csv --segment c",
            "evaluate has no --segment: here it is --by (see",
        ),
        ("evaluate run.csv truth.csv --relevent-at 4", "; the nearest is --relevant-at (see"),
        ("evaluate run.csv --qrels truth.csv", "here it is TRUTH, the last file (see"),
        ("evaluate run.csv truth.csv --k 10", "has no --k: write the cut-off in the label"),
        ("health run.csv --k 3", "health has no --k: here it is -k"),
        (
            "evaluate run.csv truth.csv -m rr seedd1.csv",
            "seedd1.csv: no such file, and no metric",
        ),
        ("evaluate run.csv truth.csv -m rr seed1.parq", "; the nearest is seed1.parquet"),
        ("evaluate run.csv truth.csv -m rr none.csv", "none.csv: no such file, and no metric ("),
    ],
)
def test_what_is_nearest_is_named(tmp_path, monkeypatch, capsys, command, said):
    monkeypatch.chdir(tmp_path)
    for name in ("run.csv", "truth.csv", "seed1.parquet"):
        (tmp_path / name).touch()
    assert said in said_by(capsys, command.split())
