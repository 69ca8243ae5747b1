"""``rankframe run FILE.toml``."""

import json
import shlex

import polars as pl
import pytest

from rankframe._command.main import main

RANKS = {"old": [1, 2, 3, 1, 2, 3], "new": [1, 1, 2, 1, 1, 2]}
TRUTH = pl.DataFrame({"uid": range(6), "sku": ["a"] * 6, "relevance": [1] * 6})


@pytest.fixture
def folder(tmp_path):
    for name, ranks in RANKS.items():
        frame = pl.DataFrame({"uid": range(6), "sku": ["a"] * 6, "rank": ranks})
        frame.write_parquet(tmp_path / f"{name}.parquet")
    TRUTH.write_csv(tmp_path / "labels.csv")
    return tmp_path


COMMON = """
run = {old = "old.parquet", new = "new.parquet"}
truth = "labels.csv"
metrics = ["ndcg@10", "mrr"]
user = "uid"
item = "sku"
"""


def written(folder, text):
    path = folder / "eval.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def lines(folder, text, capsys):
    assert main(["run", written(folder, text), "--dry"]) == 0
    return [shlex.split(line) for line in capsys.readouterr().out.splitlines()]


def test_a_file_is_the_command_line_that_it_prints(folder, capsys):
    text = COMMON + 'relevant_at = 1.0\nout = "means.csv"\n'
    (line,) = lines(folder, text, capsys)
    paths = [f"{name}={folder / name}.parquet" for name in RANKS]
    assert line[:5] == ["rankframe", "evaluate", *paths, str(folder / "labels.csv")]
    assert not (folder / "means.csv").exists()
    assert main(line[1:]) == 0
    by_hand = (folder / "means.csv").read_bytes()
    (folder / "means.csv").unlink()
    assert main(["run", written(folder, text)]) == 0
    assert (folder / "means.csv").read_bytes() == by_hand


GATES = """
baseline = "old"
out = "decided.json"
report = "page.html"
[[gates]]
metric = "mrr"
margin = 0.1
[[gates]]
metric = "hit@3"
at_least = {at_least}
"""


@pytest.mark.parametrize(("at_least", "code"), [(0.5, 0), (1, 1)])
def test_gates_decide_the_exit_code_and_the_report_is_written(folder, capsys, at_least, code):
    if code:
        frame = pl.read_parquet(folder / "new.parquet").with_columns(rank=pl.lit(9))
        frame.write_parquet(folder / "new.parquet")
    text = COMMON + GATES.format(at_least=at_least)
    compared, report = lines(folder, text, capsys)
    gates = ["--fail-if-worse", "mrr:0.1", "--fail-below", f"hit@3:{at_least}"]
    assert [word for word in compared if word in gates] == gates
    assert report[1] == "report"
    assert main(["run", written(folder, text)]) == code
    assert (folder / "page.html").stat().st_size > 1000
    decided = json.loads((folder / "decided.json").read_text())
    assert {row["metric"] for row in decided} == {"mrr", "ndcg@10", "hit@3"}


def test_a_baseline_of_gates_is_that_of_the_call(folder, capsys):
    gate = '[[gates]]\nmetric = "mrr"\nmargin = 0.05\nstrict = true\nbaseline = "old"\n'
    (line,) = lines(folder, COMMON + gate, capsys)
    assert line[-4:] == ["--baseline", "old", "--fail-unless-not-worse", "mrr:0.05"] or (
        "--fail-unless-not-worse" in line
        and "mrr:0.05" in line
        and line[line.index("--baseline") + 1] == "old"
    )


WRONG = {
    "usr = 'x'": "usr: unknown key: did you mean user?",
    "plugins = ['x']": "plugins: unknown key: the keys are ",
    "depth = 'ten'": "depth: 'ten' is not an integer",
    "depth = true": "depth: True is not an integer",
    "undefined = '0'": "undefined: '0' is not a number",
    "judged_only = 1": "judged_only: 1 is not true or false",
    "users = 'everyone'": "users: 'everyone' is not one of truth, judged, ",
    "by = ['model', 3]": "by[1]: 3 is not a text",
    "history = 'past.csv'": "history: ",
    "gates = 3": "gates: 3 is not a table",
    "[[gates]]\nmetric = 'mrr'\n[[gates]]\nmetric = 'mrr'\nat_leats = 1": (
        "gates[1].at_leats: unknown key: did you mean at_least?"
    ),
    "[[gates]]\nmargin = 0.1": "gates[0].metric: missing",
    "[[gates]]\nmetric = 'mrr'\nmargin = [1]": "gates[0].margin: [1] is not a text or a number",
    "baseline = 'old'\n[[gates]]\nmetric = 'mrr'\nbaseline = 'new'": (
        "gates[0].baseline: 'new', but baseline is 'old'"
    ),
    "out = 'labels.csv'": "is one of the inputs",
    "depth = = 3": "(at line 7",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_fault_is_named_by_its_path(folder, capsys, line):
    assert main(["run", written(folder, COMMON + line)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("rankframe: error: ")
    assert WRONG[line] in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("truth = 'labels.csv'", "run: missing: name its file, as in run = 'run.parquet'"),
        ("run = 'gone.csv'", "run: "),
        ("run = 'old.parquet'\nbaseline = 'old'", "truth: missing"),
    ],
)
def test_a_missing_table_is_named(folder, capsys, text, error):
    assert main(["run", written(folder, text)]) == 2
    assert error in capsys.readouterr().err


def test_nothing_is_run(folder, capsys):
    text = COMMON.replace("old.parquet", "$(touch pwned)").replace("mrr", "`touch pwned`")
    assert main(["run", written(folder, text)]) == 2
    assert not list(folder.glob("pwned"))
    capsys.readouterr()
