"""``rankframe run FILE.toml``."""

import json
from pathlib import Path

import polars as pl
import pytest
from commands import said_by
from polars.testing import assert_frame_equal

import rankframe as rf
from rankframe._command import config_file, files
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


def calls(folder, text):
    return config_file.calls_of(Path(written(folder, text)))


def test_keys_are_keywords(folder):
    text = COMMON + 'relevant_at = 1.0\nout = "means.csv"\ndepth = 2\ncount_users = true\n'
    assert main(["run", written(folder, text), "--dry"]) == 0
    assert not (folder / "means.csv").exists()
    assert main(["run", written(folder, text)]) == 0
    frames = {name: pl.read_parquet(folder / f"{name}.parquet") for name in RANKS}
    options = {"user": "uid", "item": "sku", "relevant_at": 1, "depth": 2, "count_users": True}
    want = rf.evaluate(frames, "ndcg@10", "mrr", truth=TRUTH, **options)
    assert_frame_equal(pl.read_csv(folder / "means.csv"), want, check_dtypes=False)


GATES = """
baseline = "old"
out = "decided.json"
report = "page.html"
undecided = "pass"
[[gates]]
metrics = "mrr"
margin = 0.1
[[gates]]
metrics = "hit@3"
at_least = {at_least}
"""


@pytest.mark.parametrize(("at_least", "code"), [(0.5, 0), (1, 1)])
def test_gates_decide_the_exit_code(folder, monkeypatch, at_least, code):
    """A report follows a gate that fails, and the files are read once for both."""
    text = COMMON + GATES.format(at_least=at_least)
    if code:
        frame = pl.read_parquet(folder / "new.parquet").with_columns(rank=pl.lit(9))
        frame.write_parquet(folder / "new.parquet")
    else:
        text = text.replace('report = "page.html"\n', "")
    reads, read_files = [], files.read_files
    monkeypatch.setattr(files, "read_files", lambda *call: reads.append(1) or read_files(*call))
    assert main(["run", written(folder, text)]) == code
    assert (folder / "page.html").exists() == bool(code)
    assert reads == [1]
    decided = json.loads((folder / "decided.json").read_text())
    assert {row["metric"] for row in decided} == {"mrr", "hit@3"}


@pytest.mark.parametrize(
    ("bound", "code"), [("at_least = 0.9", 1), ("at_most = 0.9", 1), ("at_least = 0.01", 0)]
)
def test_a_floor_of_the_interval_fails_what_is_undecided(folder, capsys, bound, code):
    """As in Python: the means of 6 users have wide intervals."""
    gate = f'interval = true\n[[gates]]\nmetrics = "mrr"\n{bound}\n'
    assert main(["run", written(folder, COMMON + 'undecided = "pass"\n' + gate)]) == 0
    path = written(folder, COMMON + gate)
    capsys.readouterr()
    assert main(["run", path]) == code
    frames = {name: pl.read_parquet(folder / f"{name}.parquet") for name in RANKS}
    name, amount = bound.split(" = ")
    options = {"truth": TRUTH, "user": "uid", "item": "sku", name: float(amount), "interval": True}
    decided = rf.gate(frames, "mrr", **options)
    assert decided["passed"].all() == (code == 0)
    said = capsys.readouterr().err
    assert all(why in said for why in decided["why"])


OUTPUTS = {
    'out = "x.txt"': "x.txt: an output must end in one of .csv, ",
    'report = "x.txt"': "x.txt: an output must end in one of .html",
    'out = "x.csv"\nreport = "x.txt"': "x.txt: an output must end in one of .html",
    'out = "x.csv"\nreport = "none/x.html"': "none/x.html: no such folder",
    'provenance = "x.csv"': "x.csv: an output must end in one of .json",
    'out = "x.json"\nprovenance = "./x.json"': "x.json: it is the file of two outputs",
    'out = "x.json"\nprovenance = "link.json"': "link.json: it is the file of two outputs",
    'out = "link.csv"': "link.csv: it is one of the inputs",
    'out = "folder.csv"': "folder.csv: it is a folder",
}


@pytest.mark.parametrize("dry", [[], ["--dry"]])
@pytest.mark.parametrize("text", OUTPUTS)
def test_outputs_are_checked_before_anything_is_written(folder, monkeypatch, text, dry):
    """A hard link is the file that it links."""
    monkeypatch.chdir(folder)
    (folder / "link.csv").hardlink_to(folder / "labels.csv")
    (folder / "folder.csv").mkdir()
    if "link.json" in text:
        (folder / "x.json").write_text("[]")
        (folder / "link.json").hardlink_to(folder / "x.json")
    before = sorted(folder.iterdir())
    (folder / "eval.toml").write_text(f"{COMMON}{text}\n")
    assert said_by(["run", "eval.toml", *dry]).startswith(f"{OUTPUTS[text]}")
    assert sorted(folder.iterdir()) == sorted([*before, folder / "eval.toml"])
    assert (folder / "labels.csv").read_text().startswith("uid,")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[gates]]\nmetrics = 'mrrr'\nat_least = 0.1", "unknown metric 'mrrr'"),
        ("[[gates]]\nmetrics = 'mrr'\nat_least = 2", "is 2, which no mean reaches"),
        (
            "baseline = 'old'\n[[gates]]\nmetrics = 'mrr'",
            "metric 'mrr' has no margin, and without one",
        ),
    ],
)
def test_a_dry_run_checks_metrics_and_gates(folder, text, words):
    assert words in said_by(["run", written(folder, COMMON + text), "--dry"])
    said = said_by(["run", written(folder, COMMON.replace("mrr", "mrrr")), "--dry"])
    assert "unknown metric 'mrrr'" in said


def test_human_labels_correct_a_gate_of_the_file_and_of_the_line(folder, capsys):
    TRUTH.filter(pl.col("uid") < 5).write_csv(folder / "human.csv")
    gate = (
        'human = "human.csv"\nout = "decided.json"\n[[gates]]\nmetrics = "mrr"\nat_least = 0.01\n'
    )
    assert main(["run", written(folder, COMMON + gate)]) == 0
    decided = json.loads((folder / "decided.json").read_text())
    assert all("5 users with human labels" in row["note"] for row in decided)
    names = ("old.parquet", "new.parquet", "labels.csv", "human.csv")
    *files_of, human = (str(folder / name) for name in names)
    columns = ["--user", "uid", "--item", "sku"]
    capsys.readouterr()
    assert main(["compare", *files_of, "-m", "mrr", "--human", human, *columns, "--json"]) == 0
    assert '"users_human": 5' in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"PAR1\x00", None])
def test_a_file_that_is_no_toml_is_named(tmp_path, content):
    path = tmp_path / "night.toml"
    if content is not None:
        path.write_bytes(content)
    assert said_by(["run", str(path)]).startswith(f"{path}: ")


def test_a_byte_order_mark_is_no_fault(folder):
    (folder / "eval.toml").write_text(COMMON, encoding="utf-8-sig")
    assert main(["run", str(folder / "eval.toml"), "--dry"]) == 0


@pytest.mark.parametrize("name", ["run", "metrics", "gates"])
def test_a_list_without_an_entry_is_a_fault(folder, name):
    kept = [line for line in COMMON.splitlines() if not line.startswith(f"{name} =")]
    with pytest.raises(ValueError, match=f"^{name}: missing or empty"):
        calls(folder, "\n".join([*kept, f"{name} = []"]))


def test_an_unknown_key_has_a_short_message(folder):
    with pytest.raises(ValueError, match="^zzz: unknown key: the keys are run, truth, ") as error:
        calls(folder, COMMON + "zzz = 1")
    assert len(str(error.value)) < 200


def test_a_gate_without_metrics_and_bounds_has_those_of_the_file(folder):
    gate = calls(folder, COMMON + 'margin = "1%"\n[[gates]]\n')["gate"]
    assert gate["metrics"] == ["ndcg@10", "mrr"]
    assert gate["margin"] == [("ndcg@10", "1%"), ("mrr", "1%")]


def test_a_report_has_the_options_of_the_comparison(folder):
    own = 'baseline = "old"\nmargin = "1%"\nreport = "page.html"\nby = "country"\n'
    of_both = calls(folder, COMMON + own + 'provenance = "made.json"\n')
    assert of_both["compare"]["provenance"] == folder / "made.json"
    assert of_both["report"]["out"] == folder / "page.html"
    for call in of_both.values():
        assert (call["margin"], call["baseline"], call["by"]) == ("1%", "old", ["country"])


def test_a_value_is_no_option_and_no_stream(folder, monkeypatch):
    """The file is data, also where it is in the working directory."""
    monkeypatch.chdir(folder)
    (folder / "--json").write_bytes((folder / "old.parquet").read_bytes())
    Path("eval.toml").write_text(COMMON.replace("old.parquet", "--json") + "run_format='parquet'")
    assert main(["run", "eval.toml"]) == 0
    Path("eval.toml").write_text(COMMON.replace("mrr", "--help") + 'history = "-"')
    assert "unknown metric '--help'" in said_by(["run", "eval.toml"])
    Path("eval.toml").write_text(COMMON + 'history = "-"')
    assert "./-: no such file" in said_by(["run", "eval.toml"])


WRONG = {
    "usr = 'x'": "usr: unknown key: did you mean user?",
    "plugins = ['x']": "plugins: unknown key: the keys are ",
    "confidence = 0.99": "confidence: evaluate does not read it, but compare and gate and report",
    "title = 'Tonight'": "title: evaluate does not read it, but report",
    "baseline = 'old'\nper_user = true": "per_user: compare does not read it, but evaluate",
    "depth = 'ten'": "depth must be an integer ≥ 1, not 'ten'",
    "depth = true": "depth must be an integer ≥ 1, not True",
    "undefined = '0'": "a finite number, not '0'",
    "unjudged = true": "unjudged: True is not a text",
    "users = 'everyone'": "users: 'everyone' is not one of truth, judged, ",
    "by = ['model', 3]": "by: 3 is not a text",
    "history = 'past.csv'": "past.csv: no such file",
    "baseline = 'old'\nmargin = 'some'": "values such as '1%', not 'some'",
    "[[gates]]\nmetrics = 'mrr'\nat_least = '0.5'": "gates[0].at_least: it must be a finite",
    "[[gates]]\nmetrics = 'mrr'\nat_least = nan": "must be a finite number, not nan",
    "provenance = 'labels.csv'": "an output must end in one of .json",
    "gates = 3": "gates[0]: 3 is not a table",
    "[[gates]]\nmetrics = 'mrr'\nat_least = 0\n[[gates]]\nmetrics = 'mrr'\nat_leats = 1": (
        "gates[1].at_leats: unknown key: did you mean at_least?"
    ),
    "[[gates]]\nmetrics = 'mrr'\nundecided = 'pass'": (
        "gates[0].undecided: unknown key: the keys are metrics, margin, at_least, at_most"
    ),
    "[[gates]]\nmetrics = 'mrr'\nmargin = [1]": "gates[0].margin: it must be a finite",
    "out = 'labels.csv'": "it is one of the inputs",
    "depth = = 3": "(at line 7",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_fault_is_named_by_its_path(folder, line):
    assert WRONG[line] in said_by(["run", written(folder, COMMON + line)])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("truth = 'labels.csv'", "run: missing or empty: name one or more, as in run = "),
        ("run = 'gone.csv'\nmetrics = 'coverage'", "gone.csv: no such file"),
        ("run = 'old.parquet'\nbaseline = 'old'", "truth: missing or empty"),
    ],
)
def test_a_missing_table_is_named(folder, text, error):
    assert error in said_by(["run", written(folder, text)])


def test_rows_of_json_know_how_they_were_made(folder, capsys):
    """Those of evaluate and compare, with a number as the command reads it."""
    truth = str(folder / "labels.csv")
    runs = [f"{name}={folder / name}.parquet" for name in RANKS]
    own = ["-m", "ndcg@10", "--user", "uid", "--item", "sku", "--relevant-at", "1"]
    frames = {name: pl.read_parquet(folder / f"{name}.parquet") for name in RANKS}
    options = {"user": "uid", "item": "sku", "relevant_at": 1, "relevance": "relevance"}
    expected = rf.provenance(frames, "ndcg@10", truth=TRUTH, by="model", **options)
    made = folder / "made.json"
    for command in ("evaluate", "compare"):
        line = [command, *runs, truth, *own, "--json", "--provenance", str(made)]
        assert main(line) == 0
        rows = json.loads(capsys.readouterr().out)
        assert {row["conventions"] for row in rows} == {expected["conventions"]}
        assert json.loads(made.read_text()) == expected
    assert main(["compare", *runs, truth, *own, "-m", "mrr", "--json"]) == 0
    of_two = {row["metric"]: row["conventions"] for row in json.loads(capsys.readouterr().out)}
    assert (
        of_two
        == rf.provenance(frames, "ndcg@10", "mrr", truth=TRUTH, by="model", **options)[
            "conventions_of"
        ]
    )
    assert of_two["ndcg@10"] == expected["conventions"]
    assert main(["evaluate", *runs, truth, *own]) == 0
    assert "conventions" not in capsys.readouterr().out
    said = said_by(["evaluate", *runs, truth, *own, "--provenance", truth])
    assert "an output must end in one of .json" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("relevant_at = -1", "relevant_at must be a number > 0"),
        ("user = ['a', 'b']", "no column 'a' for user; it has"),
        ("run_format = 'csv'", "its format is parquet, not csv: pass run_format = 'parquet'"),
        ("by = 'day'", "join it to a table, or leave out by\n"),
        ("undecided = 'pass'\n[[gates]]\nat_least = 0.1", "undecided = 'pass'"),
        ("[[gates]]\nmetrics = 'mrr'\nat_least = 2", "error: gates[0]: at_least of 'mrr' is 2"),
        (
            "[[gates]]\nmetrics = 'mrr'\nat_least = 0\n[[gates]]\nmetrics = 'mrr'\nat_least = 1",
            "at_least has two values for one metric: name each label once\n",
        ),
        ("[[gates]]\nmetrics = 'mrr'\nat_least = 'x'", "gates[0].at_least: it must be"),
    ],
)
def test_an_error_names_the_keys_of_the_file(folder, text, said):
    kept = [line for line in COMMON.splitlines() if not text.startswith(line[:6] or "-")]
    error = said_by(["run", written(folder, "\n".join([*kept, text]))])
    assert said in f"error: {error}\n"
    assert "--" not in error
