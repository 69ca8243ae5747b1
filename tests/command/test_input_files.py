"""The inputs of the command: names of runs, folders, patterns, addresses, JSON, odd separators."""

import gzip
import json
import re
from pathlib import Path

import polars as pl
import pytest
from commands import said_by

import rankframe as rf
from rankframe._command import inputs
from rankframe._command.main import main
from rankframe._inputs import judgment_files

TRUTH = pl.DataFrame({"user": [1, 2, 3], "item": ["a", "b", "c"]})
RUNS = {day: pl.DataFrame({"user": [1, 2], "item": ["a", "b"], "rank": [day, 1]}) for day in (1, 2)}
DAYS = pl.concat(run.with_columns(day=pl.lit(day)) for day, run in RUNS.items())
WRITERS = {
    "parquet": pl.DataFrame.write_parquet,
    "csv": pl.DataFrame.write_csv,
    "arrow": pl.DataFrame.write_ipc,
    "ndjson": pl.DataFrame.write_ndjson,
    "json": pl.DataFrame.write_json,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TRUTH.write_parquet("truth.parquet")
    return tmp_path


def rows_of(capsys, command):
    assert main(command.split()) == 0, capsys.readouterr().err
    rows = json.loads(capsys.readouterr().out)
    return [{name: row[name] for name in row if name != "conventions"} for row in rows]


def write(frame, path):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    WRITERS[Path(path).suffix[1:]](frame, Path(path))


@pytest.mark.parametrize("relevance", [[1, 0, None, 2], [True, False, None, True]])
@pytest.mark.parametrize("options", ["", " --relevance grade"])
def test_a_judged_table_of_text_has_grades(relevance, options, folder, capsys):
    name = options.split()[-1] if options else "relevance"
    table = {"user": [1, 1, 2, 2], "item": ["a", "b", "a", "c"], "rank": [2, 1, 1, None]}
    judged = pl.DataFrame({**table, name: relevance})
    want = rf.evaluate(judged, "rr", "recall", "ndcg", relevance=name).to_dicts()
    for file in ("judged.parquet", "judged.csv", "judged.ndjson"):
        write(judged, file)
        rows = rows_of(capsys, f"evaluate {file} -m rr recall ndcg --json{options}")
        assert rows == [pytest.approx(row) for row in want]


# ------------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ("a.csv b.csv", ["a", "b"]),
        ("old=a.csv new=b.csv", ["old", "new"]),
        ("old=a.csv b.csv", ["old", "b"]),
        ("exp1/run.csv exp2/run.csv", ["exp1", "exp2"]),
        ("exp1/out/run.csv exp2/out/run.csv", ["exp1", "exp2"]),
        ("exp1/run.csv exp2/run.csv other.csv", ["exp1", "exp2", "other"]),
        ("run.csv run.parquet", ["run.csv", "run.parquet"]),
        ("run.csv exp2/run.csv", ["run.csv", "exp2/run.csv"]),
        ("./run.csv exp2/../run.csv", ["./run.csv", "exp2/../run.csv"]),
        *(
            (files, files.split())
            for files in ("a/x/run.csv b/x/run.csv exp1/run.csv", "run.csv exp1/run.csv b/run.csv")
        ),
        ("day=1/0000.parquet day=2/0000.parquet", ["day=1", "day=2"]),
        (
            "a/day=1/0.csv a/day=2/0.csv b/day=1/0.csv",
            ["a/day=1/0.csv", "a/day=2/0.csv", "b/day=1/0.csv"],
        ),
        ("exp1/run.csv exp2/run.csv exp1.csv", ["exp1/run.csv", "exp2/run.csv", "exp1"]),
        ("a=b.csv new=b.csv", ["a=b", "new"]),  # a file of this name is there
        ("new=day=1/x.csv day=1/x.csv", ["new", "x"]),
        ("model=x.csv y=a=b.csv", ["model", "y"]),
        ("seed=1.csv rank=2.csv", ["seed=1", "rank=2"]),
        ("old/ new", ["old", "new"]),
        ("old/*.csv new/*.csv", ["old", "new"]),
        ("x=old/*.csv y=new", ["x", "y"]),
    ],
)
def test_names_of_runs(folder, files, names):
    paths = [*files.replace("=b.csv", "=b.csv b.csv").split(), "x.csv", "old/0.csv", "new/0.csv"]
    for name in (*paths, "a.csv", "day=1/x.csv", "a=b.csv", "b.csv"):
        if "*" not in name and not name.startswith(("x=", "y=", "model=", "old=", "new=", "old/ ")):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).touch() if "." in name else Path(name).mkdir(exist_ok=True)
    runs = [inputs.run_of(name) for name in files.split()]
    assert inputs.names_of(runs, [None] * len(runs)) == names


def test_runs_of_trec_with_one_name_are_named_by_their_tags(folder, capsys):
    for tag in ("rutcor", "nlpr"):
        Path(f"input.{tag}03").write_text(f"1 Q0 a 1 0.9 {tag}\n2 Q0 b 1 0.9 {tag}\n")
    command = "evaluate input.rutcor03 input.nlpr03 truth.parquet -m map --json"
    assert [row["model"] for row in rows_of(capsys, command)] == ["rutcor", "nlpr"]
    Path("input.nlpr03").write_text(Path("input.rutcor03").read_text())
    names = [row["model"] for row in rows_of(capsys, command)]
    assert names == ["input.rutcor03", "input.nlpr03"]
    command = "compare input.rutcor03 input.nlpr03 truth.parquet -m map --json"
    assert rows_of(capsys, command)[0]["baseline"] == "input.rutcor03"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "a.csv a.csv",
            "two runs are called 'a': give each its own name, as in old=a.csv new=a.csv",
        ),
        (
            "new=a.csv new=b.csv",
            "two runs are called 'new': give each its own name, as in old=a.csv new=b.csv",
        ),
        (
            "b=a.csv b.csv",
            "two runs are called 'b': give each its own name, as in old=a.csv new=b.csv",
        ),
        ("x=none.csv", "x=none.csv: no such file"),
        ("runs/day=1/x.csv", "runs/day=1/x.csv: no such file"),
        ("runs/*.csv", "runs/*.csv: no such file (names that begin with _ or . are left out)"),
    ],
)
def test_names_that_are_refused(folder, command, said):
    for name in "ab":
        write(RUNS[1], f"{name}.csv")
    assert said_by(f"evaluate {command} truth.parquet -m map") == said


@pytest.mark.parametrize(
    ("address", "name"),
    [("old/*.parquet", "old"), ("old/", "old"), ("x/run.parquet", "run"), ("*.parquet", "b")],
)
def test_a_pattern_at_an_address_is_no_name(address, name):
    runs = [inputs.Input(f"s3://b/{address}"), inputs.Input("new.csv")]
    assert inputs.names_of(runs, [None, None]) == [name, "new"]


def test_the_truth_has_no_name(folder):
    write(RUNS[1], "a.csv")
    text = said_by("evaluate a.csv t=truth.parquet -m map")
    assert text == "t=truth.parquet: the last file is the truth, which has no name"


# ------------------------------------------------------------------ tables of several files


@pytest.mark.parametrize("source", ["runs", "runs/", "runs/day=*/*", "runs/**/*", "runs/day=*"])
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_folder_is_one_table_with_hives_columns(folder, capsys, suffix, source):
    for day, run in RUNS.items():
        write(run, f"runs/day={day}/0000.{suffix}")
        write(run.clear(), f"runs/day={day}/_temporary/0.{suffix}")
    Path("runs/_SUCCESS").touch()
    Path("runs/.hidden").touch()
    rows = rows_of(capsys, f"evaluate {source} truth.parquet -m map --by day --json")
    assert rows == rf.evaluate(DAYS, "map", truth=TRUTH, by="day").to_dicts()


@pytest.mark.parametrize("suffix", ["csv", "ndjson", "json"])
def test_a_folder_of_text_is_one_table_without_hives_columns(folder, capsys, suffix):
    for user, run in enumerate(RUNS[1].partition_by("user")):
        write(run, f"runs/part={user}/0.{suffix}")
    (row,) = rows_of(capsys, "evaluate runs truth.parquet -m map --json")
    assert row == rf.evaluate(RUNS[1], "map", truth=TRUTH).row(0, named=True)
    text = said_by("evaluate runs truth.parquet -m map --by part")
    assert text.startswith("run: no column 'part' for by")


def test_values_of_folders_are_typed_as_a_whole(folder, capsys):
    truth = TRUTH.join(pl.DataFrame({"day": ["2026-11-01", "2026-11-02"]}), how="cross")
    truth = truth.with_columns(pl.col("day").str.to_date())
    truth.write_parquet("truth.parquet")
    for day, run in RUNS.items():
        write(run, f"runs/day=2026-11-0{day}/x.parquet")
    rows = rows_of(capsys, "evaluate runs/*/* truth.parquet -m map --by day --json")
    assert [row["day"] for row in rows] == ["2026-11-01", "2026-11-02"]
    assert [row["map"] for row in rows] == pytest.approx([2 / 3, 0.5])
    for value in ("a b", "__HIVE_DEFAULT_PARTITION__"):
        write(RUNS[1], f"other/day={value.replace(' ', '%20')}/x.parquet")
    text = said_by("check other/ --by day --items truth.parquet")
    assert text.startswith("run, column 'day': null group: drop the row")
    Path("other/day=__HIVE_DEFAULT_PARTITION__/x.parquet").unlink()
    TRUTH.write_parquet("truth.parquet")
    (row,) = rows_of(capsys, "evaluate other truth.parquet -m map --by day --json")
    assert row["day"] == "a b"


@pytest.mark.parametrize("name", ["shard", "fold", "bucket"])
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_folders_of_a_truth_are_no_grades(folder, capsys, name, suffix):
    for part in (0, 1):
        write(TRUTH[[part]], f"t/{name}={part}/x.{suffix}")
    write(RUNS[1], "run.csv")
    for source in ("t", f"t/{name}=*/*"):
        (row,) = rows_of(capsys, f"evaluate run.csv {source} -m rr --json")
        assert row == {"users": 2, "rr": 1.0}
        assert main(f"check run.csv {source}".split()) == 0
        capsys.readouterr()
    for user in (1, 2):  # a role and a label keep their columns
        write(TRUTH[[user - 1]].drop("user"), f"u/user={user}/x.{suffix}")
        write(TRUTH[[user - 1]], f"g/grade={2 - user}/x.{suffix}")
    assert rows_of(capsys, "evaluate run.csv u -m rr --json") == [row]
    (graded,) = rows_of(capsys, "evaluate run.csv g -m rr --json")
    assert graded["users"] == 1


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_single_file_has_hives_columns(folder, capsys, suffix):
    truth = TRUTH.join(pl.DataFrame({"day": [1, 2]}), how="cross")
    truth = truth.filter((pl.col("day") == 1) | (pl.col("user") == 1))
    write(truth, f"truth.{suffix}")
    write(RUNS[1], f"runs/day=1/p.{suffix}")
    write(RUNS[1], f"runs/day=2/p.{suffix}")
    command = f"truth.{suffix} -m rr --by day --json"
    one = rows_of(capsys, f"evaluate runs/day=1/p.{suffix} {command}")
    assert one == rows_of(capsys, f"evaluate runs/day=1/ {command}")
    assert [(row["day"], row["users"]) for row in one] == [(1, 3), (2, 1)]
    assert [row["rr"] for row in one] == pytest.approx([2 / 3, 0])
    files = f"runs/day=1/p.{suffix} runs/day=2/p.{suffix}"
    both = rows_of(capsys, f"evaluate {files} {command}")
    assert {row["model"] for row in both} == {"day=1", "day=2"}
    address = f"{folder.as_uri()}/runs/day=1/p.{suffix}"
    assert rows_of(capsys, f"evaluate {address} {command}") == one
    write(RUNS[1].with_columns(day=2), f"own/day=1/p.{suffix}")  # its own column comes first
    rows = rows_of(capsys, f"evaluate own/day=1/p.{suffix} {command}")
    assert [row["rr"] for row in rows] == [0, 1]


def test_files_of_trec_are_one_table(folder, capsys):
    for user, item in ((1, "a"), (2, "b")):
        Path(f"part{user}.run").write_text(f"{user} Q0 {item} 1 0.9 tag\n")
    (row,) = rows_of(capsys, "evaluate part*.run truth.parquet -m map --json")
    assert row == {"users": 3, "map": pytest.approx(2 / 3)}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"b.parquet": RUNS[1]},
            "runs: files of one table must have one format, not runs/a.csv and runs/b.parquet",
        ),
        ({"b.csv": RUNS[1].rename({"rank": "score"})}, "runs/b.csv: no column 'rank', which runs/"),
        (
            {"b.csv": RUNS[1].cast({"rank": str}).with_columns(rank=pl.lit("x"))},
            "runs/b.csv, line 2, column 'rank': 'x' is not a number",
        ),
        (
            {"_delta_log/0.json": RUNS[1]},
            "runs: a Delta table, whose folder keeps rows of old vers",
        ),
    ],
)
def test_files_that_are_not_one_table(folder, files, said):
    for name, frame in {"a.csv": RUNS[1], **files}.items():
        write(frame, f"runs/{name}")
    assert said_by("evaluate runs truth.parquet -m map").startswith(said)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("2,b,1,9", "4 fields and the header 3: quote a field that holds the separator"),
        ("2,b", "2 fields and the header 3: leave the field of a missing value empty"),
        ("2", "1 field and the header 3: leave the field of a missing value empty"),
        ('2,"b,c"', "2 fields and the header 3: leave the field of a missing value empty"),
    ],
)
def test_a_line_of_a_table_with_other_fields_is_named(folder, line, said):
    Path("runs").mkdir(exist_ok=True)
    for name, text in {"a": "1,a,1\n", "b": f"1,a,1\n{line}\n"}.items():
        Path(f"runs/{name}.csv").write_text(f"user,item,rank\n{text}")
    text = said_by("evaluate runs truth.parquet -m map")
    assert text == f"runs/b.csv, line 3: it has {said}: {line.replace(chr(34), '')!r}"


@pytest.mark.parametrize("suffix", ["parquet", "csv", "ndjson", "trec"])
@pytest.mark.parametrize("command", ["evaluate", "check", "health"])
def test_an_empty_file_of_a_table_is_named(folder, suffix, command):
    write(RUNS[1], "runs/a.parquet")
    Path(f"runs/b.{suffix}").touch()
    text = said_by(f"{command} runs truth.parquet")
    assert text == f"runs/b.{suffix}: it is empty: write it again, or remove it if it has no rows"


def test_a_corrupt_page_names_its_file(folder):
    many = pl.DataFrame({"user": range(20_000), "item": "a", "rank": 1})
    Path("runs").mkdir()
    for name in "abc":
        many.with_columns(item=pl.lit(name)).write_parquet(f"runs/{name}.parquet")
    content = bytearray(Path("runs/b.parquet").read_bytes())
    content[2_000:6_000] = bytes(4_000)
    Path("runs/b.parquet").write_bytes(content)
    Path("day.toml").write_text('run = "runs"\ntruth = "truth.parquet"\nmetrics = ["map"]\n')
    for call in ("evaluate runs truth.parquet -m map", "check runs truth.parquet", "run day.toml"):
        assert "runs/b.parquet: " in said_by(call)


def test_files_of_a_table_have_the_same_types(folder):
    Path("runs").mkdir()
    for name, user in {"a": 1, "b": "x"}.items():
        pl.DataFrame({"user": [user], "item": "a", "rank": 1}).write_parquet(f"runs/{name}.parquet")
    assert said_by("evaluate runs truth.parquet -m map") == (
        "runs, column 'user': it is Int64 in runs/a.parquet and String in runs/b.parquet: files of "
        "one table must have the same types: write one again"
    )


def test_gzip_is_unpacked_up_to_a_size(folder, monkeypatch):
    monkeypatch.setattr(judgment_files, "MOST_UNPACKED", 1 << 20)
    Path("run.json.gz").write_bytes(gzip.compress(b"[" + b" " * (9 << 20) + b"]"))
    said = "unpacked, it has more than 1 MB: unpack it first, or save it as Parquet"
    text = said_by("evaluate run.json.gz truth.parquet -m map")
    assert text == f"run.json.gz: {said}"
    assert said_by("check truth.parquet run.json.gz") == f"run.json.gz: {said}"
    with pytest.raises(ValueError, match="more than 1 MB"):
        rf.trec.read_judgments("run.json.gz")


def test_check_needs_a_grade_above_0(folder):
    for grade in (0, -1):
        TRUTH.with_columns(relevance=grade).write_parquet("none.parquet")
        write(RUNS[1], "run.parquet")
        text = said_by("check run.parquet none.parquet")
        assert text.startswith(
            f"truth, column 'relevance': no grade is > 0 (the greatest is {grade})"
        )


@pytest.mark.parametrize("rank", [2**55, 1e18])
def test_a_rank_above_what_a_float_holds_is_refused(rank):
    run = pl.DataFrame({"user": [1], "item": ["a"], "rank": [rank]})
    truth = pl.DataFrame({"user": [1], "item": ["a"]})
    for call in (rf.check, lambda run, truth: rf.evaluate(run, "rr", truth=truth)):
        with pytest.raises(rf.RankingDataError, match=r"rank above 2\^53"):
            call(run, truth=truth)


def test_out_is_not_inside_an_input(folder):
    write(RUNS[1], "runs/a.parquet")
    for source, out in [("runs", "runs/deep.csv"), ("runs/*.parquet", "runs/a.parquet")]:
        text = said_by(f"evaluate {source} truth.parquet -m map --out {out}")
        assert text == f"{out}: it is one of the inputs: name another file"


@pytest.mark.parametrize("system", ["model", "algo"])
@pytest.mark.parametrize("names", [("old", "new"), (1, 2)])
def test_one_table_of_several_systems_is_compared(folder, capsys, system, names):
    for name, run in zip(names, RUNS.values(), strict=True):
        write(run, f"runs/{system}={name}/x.parquet")
    by = "" if system == "model" else "--model algo"
    command = f"compare runs truth.parquet -m map {by}"
    (row,) = rows_of(capsys, f"{command} --baseline {names[0]} --json")
    assert (row[system], row["baseline"]) == names[::-1]
    assert row["difference"] == pytest.approx(-1 / 6)
    assert main(command.split()) == 0
    gated = f"gate runs truth.parquet -m map --undecided pass --most-missed 1 {by}"
    capsys.readouterr()
    text = said_by(gated)
    first, second = sorted(names)
    assert text == (
        f"column {system!r} has {first!r}, {second!r}, but not which of them is the baseline of "
        f"gate: name it, --baseline {first} or --baseline {second}"
    )
    assert main(f"{gated} --baseline {names[0]}".split()) == 0
    assert f"map of {names[1]} against {names[0]}" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["evaluate", "compare", "health"])
def test_the_folder_of_out_is_there(folder, command):
    metric = "" if command == "health" else "-m map"
    text = said_by(f"{command} a.csv b.csv truth.parquet {metric} --out none/x.csv")
    assert text == "none/x.csv: no such folder: 'none': make it first"  # before files are read


# ------------------------------------------------------------------ addresses


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow", "ndjson"])
def test_addresses_are_read_by_polars(folder, capsys, suffix):
    write(RUNS[1], f"run.{suffix}")
    address = (folder / f"run.{suffix}").as_uri()
    (row,) = rows_of(capsys, f"evaluate {address} truth.parquet -m map --json")
    assert row == rf.evaluate(RUNS[1], "map", truth=TRUTH).row(0, named=True)


def test_tables_at_addresses_have_hives_columns(folder, capsys):
    for day, run in RUNS.items():
        write(run, f"runs/day={day}/0.parquet")
    rows = rf.evaluate(DAYS, "map", truth=TRUTH, by="day").to_dicts()
    for end in ("runs/day=*/*.parquet", "runs/"):
        address = f"{folder.as_uri()}/{end}"
        assert rows_of(capsys, f"evaluate {address} truth.parquet -m map --by day --json") == rows


def test_an_address_reaches_polars_unchanged(folder, monkeypatch):
    seen = []

    def scan(source, **options):
        seen.append((source, options))
        return RUNS[1].lazy()

    truth = pl.scan_parquet("truth.parquet").collect()
    truth.write_csv("truth.csv")
    monkeypatch.setattr(pl, "scan_parquet", scan)
    for address in ("s3://bucket/a//x.parquet", "gs://b/runs/", "new=s3://bucket/day=1/x.parquet"):
        assert main(["evaluate", address, "truth.csv", "-m", "map"]) == 0
    hive = [options["hive_partitioning"] for _, options in seen]
    assert [source for source, _ in seen] == [
        *("s3://bucket/a//x.parquet", "gs://b/runs/", "s3://bucket/day=1/x.parquet")
    ]
    assert hive == [True] * 3


def test_what_an_address_cannot_be(folder):
    text = said_by("evaluate s3://bucket/a.run truth.parquet -m map")
    assert text == (
        "s3://bucket/a.run: only Parquet, CSV, TSV, Arrow IPC and JSON Lines are read from an "
        "address"
    )
    text = said_by("evaluate file:///none/x.parquet truth.parquet -m map")
    assert text.startswith("file:///none/x.parquet: ")


# ------------------------------------------------------------------ JSON and separators


@pytest.mark.parametrize(
    "name",
    [
        "run.jsonl",
        "run.ndjson",
        "run.json",
        "run[1].jsonl",
        "run.jsonl.gz",
        "run.json.gz",
        "run.jsonl.zst",
    ],
)
def test_json_is_read(folder, capsys, name):
    frame = RUNS[1].with_columns(note=pl.lit("x"))
    text = (
        frame.write_ndjson()
        if "json" not in name or "l" in name or "nd" in name
        else frame.write_json()
    ).encode()
    if name.endswith(".zst"):
        frame.write_ndjson(name, compression="zstd")
    else:
        Path(name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    (row,) = rows_of(capsys, f"evaluate {name} truth.parquet -m map --json")
    assert row == rf.evaluate(RUNS[1], "map", truth=TRUTH).row(0, named=True)


def test_json_may_be_indented_and_late_in_its_fractions(folder, capsys):
    rows = [{"user": 1, "item": "a", "score": 5}] * 1 + [
        {"user": 2, "item": f"i{place}", "score": -place} for place in range(300)
    ]
    rows.append({"user": 2, "item": "b", "score": 0.5})
    Path("run.json").write_text(json.dumps(rows, indent=1))
    Path("run.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for name in ("run.json", "run.jsonl"):
        (row,) = rows_of(capsys, f"evaluate {name} truth.parquet -m map --json")
        assert row["map"] == pytest.approx(2 / 3)


def test_csv_is_read_in_the_types_of_json(folder, capsys):
    for users in ([1, 2], ["1", "2"], ["01", "02"]):
        run = RUNS[1].with_columns(user=pl.Series(users))
        run.write_ndjson("run.jsonl")
        truth = TRUTH.head(2).with_columns(user=pl.Series(users))
        truth.write_csv("truth.csv")
        (row,) = rows_of(capsys, "evaluate run.jsonl truth.csv -m map --json")
        assert row["map"] == 1


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "r.json",
            '{\n "1": {"a": 0.5}\n}\n',
            "run: no column 'user' for user, 'item' for item, 'rank' for rank; it has '1'; ",
        ),
        ("r.json", '[{"user": 1}, ', "r.json: "),
        ("r.jsonl", '{"user":1,"item":"a","rank":1}\nx\n', "r.jsonl: "),
        ("r.jsonl", "", "r.jsonl: "),
        (
            "r.csv",
            "user;item;rank\n1;a;1\n",
            "r.csv, line 1: it is not a header of csv: pass --run-format csv|tsv|trec, or",
        ),
        ("r.tsv", "1\ta\t1\n", "r.tsv, line 1: it is not a header of tsv: pass --run-format "),
        ("r", "user;item;rank\n1;a;1\n", "r, line 1: its name tells no format, and it is neither"),
    ],
)
def test_text_that_cannot_be_read(folder, name, text, said):
    Path(name).write_text(text)
    assert said_by(f"evaluate {name} truth.parquet -m map").startswith(said)


def test_semicolons_may_be_in_ids(folder, capsys):
    Path("r.run").write_text("1 Q0 a;b 1 0.9 t\n2 Q0 b 1 0.9 t\n")
    Path("r.csv").write_text("user,item;,rank\n1,a,1\n2,b,1\n")
    assert rows_of(capsys, "evaluate r.run truth.parquet -m map --json")[0]["map"] > 0
    command = "evaluate r.csv truth.parquet -m map --item item; --truth-item item --json"
    assert rows_of(capsys, command)[0]["map"] > 0


# ------------------------------------------------------------------ check and health


def test_check_finds_doubled_misses(folder, capsys):
    run = pl.DataFrame({"user": [1, 1, 2], "item": ["z", "z", "b"], "rank": [1, 2, 1]})
    run.write_csv("run.csv")
    rf.evaluate(run, "map", truth=TRUTH)  # which looks for duplicates among relevant rows
    text = said_by("check run.csv truth.parquet")
    assert text == (
        "run, column 'item': duplicate (user, item): name a column of models in --model, "
        "of folds or days in --by; otherwise pass --duplicates first: the best place of an item "
        "counts, and items below its others move up; or --duplicates occupy: its other places "
        "stay empty. Offending row: user=1, item='z', rank=1"
    )
    run.unique("item").write_csv("run.csv")
    assert main("check run.csv truth.parquet -m map".split()) == 0
    said = "No rule is broken (2 rows).\n1 of 3 users has no list\n"
    assert capsys.readouterr() == (said, "")
    assert said_by("check run.csv truth.parquet -m mapp").startswith("unknown metric 'mapp")


def test_check_takes_the_files_and_options_of_evaluate(folder, capsys):
    for name in ("a", "b"):
        RUNS[1].rename({"user": "uid"}).write_csv(f"{name}.csv")
    Path("none.csv").write_text("item,genre\na,x\n")
    command = (
        "check a.csv b.csv truth.parquet --user uid --truth-user user -m map --depth 5 --users both"
    )
    assert main(command.split()) == 0
    lines = [f"1 of 3 users has no list of {name}\n" for name in "ab"]
    assert capsys.readouterr().out == "".join(["No rule is broken (4 rows).\n", *lines])
    text = said_by(f"{command} --items none.csv")
    assert text.startswith(
        "run, column 'item': an item that is not in --items: add it to the catal"
    )
    for name in ("a.csv", "b.csv"):
        write(RUNS[1].drop("rank").with_columns(score=1.0), name)
    assert main("check a.csv truth.parquet --ties expected -m map".split()) == 0


def test_health_prints_the_counts(folder, capsys):
    run = pl.DataFrame({"user": [1, 1, 9], "item": ["z", "z", "b"], "rank": [1, 2, 1]})
    run.write_csv("run.csv")
    expected = rf.health(run, truth=TRUTH, k=2)
    assert rows_of(capsys, "health run.csv truth.parquet -k 2 --json") == expected.to_dicts()
    assert main("health run.csv truth.parquet -k 2".split()) == 0
    text = capsys.readouterr().out
    found = expected.filter(pl.col("count") > 0)
    shown = re.findall(r"^\w+  +(\w+) ", text, re.MULTILINE)
    assert [name for name in shown if name != "what"] == found["what"].to_list()
    assert text.startswith(f"Problems: {found['problem'].sum()}\n")
    assert not re.search(r"null|0\.\d|true", text)
    assert re.search(r"items_unknown_to_truth +1 +50%", text)
    zeros = expected.filter(pl.col("count") == 0).height
    assert text.endswith(f"Counts of 0 that are left out: {zeros} (--details: all).\n")
    assert main("health run.csv truth.parquet -k 2 --details".split()) == 0
    assert "invalid_ranks" in capsys.readouterr().out
    run.write_csv("other.csv")
    rows = rows_of(capsys, "health run.csv other.csv truth.parquet --json")
    assert {row["model"] for row in rows} >= {"run", "other"}
    DAYS.with_columns(model=pl.lit("m")).write_csv("run.csv")
    rows = rows_of(capsys, "health run.csv truth.parquet --by day --json --out h.parquet")
    assert pl.read_parquet("h.parquet").height == len(rows)


@pytest.mark.parametrize("days", [[999, 1000, 1001], ["2026-01-02", "2026-02-01", "2026-02-03"]])
def test_health_counts_leakage_by_time(folder, capsys, days):
    before, at, after = days
    run = pl.DataFrame({"user": [1], "item": ["b"], "rank": [1]})
    truth = pl.DataFrame({"user": [1, 2], "item": ["a", "b"], "at": [after, at]})
    history = pl.DataFrame({"user": [1, 1, 2], "item": ["c", "b", "b"], "at": [before, at, at]})
    for name, table in {"run": run, "truth": truth, "history": history}.items():
        table.write_csv(f"{name}.csv")
    rows = rows_of(capsys, "health run.csv truth.csv --history history.csv --time at --json")
    assert rows == rf.health(run, truth=truth, history=history, time="at").to_dicts()
    counts = {row["what"]: row["count"] for row in rows}
    assert (counts["not_before_the_users_truth"], counts["not_before_the_truth"]) == (1, 2)
    assert "--history" in said_by("health run.csv truth.csv --time at")


# ------------------------------------------------------------------ gates


def test_a_gate_without_an_interval_is_bad_input(folder, capsys):
    run = pl.DataFrame({"user": [1], "item": ["a"], "rank": [1]})
    run.write_csv("a.csv")
    run.write_csv("b.csv")
    pl.DataFrame({"user": [1], "item": ["a"], "relevance": [0]}).write_csv("t.csv")
    for undecided in ("pass", "fail"):
        command = f"gate a.csv b.csv t.csv -m ndcg@10 --margin 0.01 --undecided {undecided}"
        assert main(command.split()) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert "cannot be judged: no list has a relevant item" in err
    users = pl.DataFrame({"user": range(20), "item": "x", "c": ["many"] * 19 + ["one"]})
    users.write_csv("t.csv")
    ranks = users.select("user", "item", rank=pl.int_range(20) % 3 + 1)
    ranks.write_csv("a.csv")
    ranks.with_columns(pl.col("rank") * 2).write_csv("b.csv")
    command = "gate a.csv b.csv t.csv -m rr --undecided pass"
    assert main(command.split()) == 1  # worse
    code = main(f"{command} --by c".split())
    assert code == 2  # worse in one segment, nothing to test in another
