"""The command: formats in and out, and one line on stderr for bad input."""

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest
from commands import said_by
from two_models import assert_equal

import rankframe as rf
from rankframe import trec
from rankframe._command.main import main

RUN = pl.DataFrame(
    {"model": list("aaab"), "uid": [1, 1, 2, 1], "sku": [7, 8, 7, 8], "rank": [1, 2, 1, 1]}
)
TRUTH = pl.DataFrame({"uid": [1, 2, 3], "sku": [8, 7, 7], "relevance": [2, 1, 1]})
ROLES = ["--user", "uid", "--item", "sku"]
METRICS = ["-m", "ndcg@10", "-m", "map"]
OPTIONS = [*METRICS, *ROLES, "--by", "model"]
EXPECTED = RUN.rank.evaluate("ndcg@10", "map", truth=TRUTH, by="model", user="uid", item="sku")
WRITERS = {
    "parquet": pl.DataFrame.write_parquet,
    "csv": pl.DataFrame.write_csv,
    "arrow": pl.DataFrame.write_ipc,
    "tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
}


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for name, frame in {"run": RUN, "truth": TRUTH}.items():
        for suffix, write in WRITERS.items():
            write(frame, folder / f"{name}.{suffix}")
    return folder


@pytest.fixture
def files(templates, tmp_path):
    return Path(shutil.copytree(templates, tmp_path / "files"))


def evaluated(out, *words):
    """Evaluate files, and read what is written."""
    assert main(["evaluate", *map(str, words), "--out", str(out)]) == 0
    return pl.read_parquet(out)


@pytest.mark.parametrize("truth", WRITERS)
@pytest.mark.parametrize("run", WRITERS)
def test_files_are_read_by_suffix(files, run, truth):
    paths = [files / f"run.{run}", files / f"truth.{truth}"]
    assert evaluated(files / "out.parquet", *paths, *OPTIONS).equals(EXPECTED)


def test_a_format_can_be_named(files):
    (files / "run.csv").rename(files / "run.parquet")
    paths = [str(files / "run.parquet"), str(files / "truth.parquet")]
    out = files / "out.parquet"
    options = [*OPTIONS, "--out", str(out)]
    for named, code in [
        ("--format csv", 2),
        ("--format csv --truth-format parquet", 0),
        ("--run-format csv", 0),
        ("--run-format tsv", 2),
        ("--format auto", 2),
    ]:
        out.unlink(missing_ok=True)
        assert main(["evaluate", *paths, *options, *named.split()]) == code
        assert code or pl.read_parquet(out).equals(EXPECTED)


@pytest.mark.parametrize(
    ("suffix", "read"),
    [
        ("csv", pl.read_csv),
        ("parquet", pl.read_parquet),
        ("json", lambda path: pl.DataFrame(json.loads(path.read_text()))),
    ],
)
def test_results_are_written_by_suffix(files, capsys, suffix, read):
    out = files / f"out.{suffix}"
    paths = [str(files / "run.parquet"), str(files / "truth.parquet")]
    assert main(["evaluate", *paths, *OPTIONS, "--out", str(out)]) == 0
    assert_equal(read(out), EXPECTED)
    assert capsys.readouterr() == ("", "")


def test_it_prints_a_table(files, capsys):
    paths = [str(files / "run.csv"), str(files / "truth.csv")]
    assert main(["evaluate", *paths, "-m", "map", *ROLES, "--by", "model", "--per-user"]) == 0
    assert capsys.readouterr().out == (
        "model  uid       map\n"
        "-----  ---  --------\n"
        "a        1  0.500000\n"
        "a        2  1.000000\n"
        "a        3  0.000000\n"
        "b        1  1.000000\n"
        "b        2  0.000000\n"
        "b        3  0.000000\n"
    )


def test_the_demo_is_the_articles_example(capsys):
    assert main(["demo"]) == 0
    assert capsys.readouterr().out == (
        "model  users       map      gmap     hit@5\n"
        "-----  -----  --------  --------  --------\n"
        "M1        10  0.368889  0.320381  1.000000\n"
        "M2        10  0.352222  0.121187  0.900000\n"
        "M2 finds nothing for one user in ten: MAP falls by only 0.02, but GMAP by 0.20.\n"
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "run.parquet truth.parquet -m map",
            "run: no column 'user' for user, 'item' for item; it has 'model'",
        ),
        ("none.parquet truth.parquet -m map", "none.parquet: no such file"),
        ("run.parquet truth.parquet -m ndgc@10 {roles}", "unknown metric 'ndgc@10'; the nearest"),
        ("double.parquet truth.parquet -m map {roles}", "run, column 'sku': duplicate (model, uid"),
        ("run.parquet truth.parquet -m p@0 {roles}", "precision_at: k must be an integer"),
        ("run.parquet truth.parquet -m map {roles} --by x", "run: no column 'x' for by"),
        (
            "run.parquet truth.parquet -m map {roles} --out x.xls",
            "x.xls: an output must end in one of .csv,",
        ),
        ("run.parquet truth.parquet -m map {roles} --users me", "argument --users: invalid choice"),
        ("run.parquet", "no -m, and no truth as the last file"),
        ("run.parquet -m map", "judged table: no column"),
        ("broken.parquet truth.parquet -m map", "broken.parquet: parquet: "),
        ("broken.csv truth.parquet -m map", "broken.csv: could not parse"),
        ("empty.csv truth.parquet -m map", "empty.csv: empty CSV"),
        ("header.csv truth.parquet -m map", "header.csv: it is empty"),
        (
            "run.parquet truth.parquet -m map --format csv",
            "run.parquet: its format is parquet, not csv",
        ),
        ("run.parquet folder.csv -m map", "folder.csv: it has no file (names that beg"),
        ("empty.arrow truth.parquet -m map", "empty.arrow: "),
        ("empty.data truth.parquet -m map", "empty.data: it is empty"),
        (
            "words.data truth.csv -m map",
            "words.data, line 1: its name tells no format, and it is neither TREC nor CSV",
        ),
        (
            "bytes.data truth.csv -m map",
            "bytes.data, line 1: its name tells no format, and it is neither TREC nor CSV",
        ),
        ("- truth.parquet -m map", "<stdin>: it is empty"),
        ("run.parquet - -m map", "<stdin>: it is empty"),
        (
            "- - -m map --format csv",
            "<stdin>: two inputs, but it can be read only once; save it to",
        ),
        ("- truth.csv -m map --format csv", "<stdin>: empty CSV"),
        ("run.arrow - -m map --format ipc", "<stdin>: "),
        ("- good.qrels -m map --format trec", "run: it is empty"),
        (
            "run.csv truth.csv -m map --undefined 1e999",
            "argument --undefined: '1e999' is not a fin",
        ),
        ("run.csv truth.csv -m map --undefined=-inf", "argument --undefined: '-inf' is not a fini"),
        ("run.csv truth.csv -m map --undefined x", "argument --undefined: 'x' is not a finite num"),
        ("run.csv truth.csv -m map --relevant-at nan", "argument --relevant-at: 'nan' is not a fi"),
        ("run.csv truth.csv -m map --relevant-at 1e999", "argument --relevant-at: '1e999' is not"),
        ("run.csv truth.csv -m map --depth 1e3", "argument --depth: invalid int value: '1e3'"),
        (f"run.csv truth.csv -m map {{roles}} --depth {10**40}", "depth must be an integer"),
        ("pattern.csv truth.csv -m map --score ^s$", "run, column '^s$': polars reads this name"),
        ("short.run good.qrels -m map", "short.run, line 3: it is not of the form 'user Q0"),
        ("good.run bad.qrels -m map", "bad.qrels, line 2: it is not of the form 'user 0 item"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(files, monkeypatch, arguments, message):
    monkeypatch.chdir(files)
    pl.concat([RUN, RUN]).write_parquet(files / "double.parquet")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    (files / "folder.csv").mkdir()
    (files / "empty.data").write_text("")
    (files / "words.data").write_text("nothing of the kind")
    (files / "bytes.data").write_bytes(bytes(range(128, 256)) * 9)
    (files / "empty.arrow").write_text("")
    (files / "pattern.csv").write_text("user,item,^s$\n1,a,1\n")
    (files / "broken.parquet").write_text("nothing of the kind")
    (files / "broken.csv").write_text('user,item\n1,"')
    (files / "empty.csv").write_text("")
    (files / "header.csv").write_text("user,item,rank\n")
    (files / "short.run").write_text("# a comment\n1 Q0 a 1 0.5 tag\n1 Q0 b\n")
    (files / "good.run").write_text("1 Q0 a 1 0.5\r\n\n 1\tQ0  b 2 0.4 tag \r\n")
    (files / "good.qrels").write_text("1 0 a 1\n")
    (files / "bad.qrels").write_text("1 0 a 1\n1 0 b 0.5\n")
    given = arguments.replace("{roles}", " ".join(ROLES)).split()
    assert said_by(["evaluate", *given]).startswith(message)


def test_metrics_are_listed_and_explained(capsys):
    assert main(["metrics"]) == 0
    listed = capsys.readouterr().out
    for label, definition in [("ndcg", "Normalized DCG: DCG@k /"), ("gmap", "Geometric MAP: exp(")]:
        assert f"\n{label} " in listed
        assert definition in listed
    assert main(["metrics", "P_10"]) == 0
    explained = capsys.readouterr().out
    assert "".join(explained.split()).startswith("precision_at(k:int|None=None,*,divide_by")
    assert "trec_eval:" in explained
    assert "the nearest are 'ndcg'" in said_by("metrics ndgc")


def test_it_runs_as_a_module_and_knows_its_version():
    command = [sys.executable, "-W", "error", "-m", "rankframe", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("rankframe 0.")


def test_runs_of_other_types_and_columns_are_compared(files):
    first = RUN.filter(model="a").drop("model")
    first.cast({"uid": pl.Int32}).write_parquet(files / "first.parquet")
    (files / "third.csv").write_text("uid,sku,rank,more\n1,8,1,x\n3,7,1,x\n")
    paths = [str(files / name) for name in ("first.parquet", "third.csv", "truth.csv")]
    out = files / "out.parquet"
    assert main(["compare", *paths, *ROLES, "-m", "map", "--out", str(out)]) == 0
    runs = {"first": first, "third": pl.DataFrame({"uid": [1, 3], "sku": [8, 7], "rank": 1})}
    options = {"truth": TRUTH, "user": "uid", "item": "sku", "details": True}
    assert pl.read_parquet(out).equals(rf.compare(runs, "map", **options))


def test_runs_of_trec_are_compared_in_segments(tmp_path):
    (tmp_path / "a.run").write_text("1 Q0 x 1 0.9 t\n2 Q0 x 1 0.9 t\n3 Q0 x 1 0.9 t\n")
    (tmp_path / "b.run").write_text("1 Q0 y 1 0.9 t\n2 Q0 x 1 0.9 t\n3 Q0 x 1 0.9 t\n")
    (tmp_path / "t.csv").write_text("user,item,country\n1,x,se\n2,x,no\n3,x,no\n")
    out = tmp_path / "out.csv"
    paths = [str(tmp_path / name) for name in ("a.run", "b.run", "t.csv")]
    assert main(["compare", *paths, "-m", "rr", "--by", "country", "--out", str(out)]) == 0
    rows = pl.read_csv(out).select("country", "model", "baseline", "users", "difference").rows()
    assert rows == [("no", "b", "a", 2, 0.0), ("se", "b", "a", 1, -1.0)]
    code = main(["evaluate", paths[0], paths[2], "-m", "rr", "--by", "country", "--total"])
    assert code == 0


def evaluate_text(folder, run, truth, *options, suffixes=("csv", "csv")):
    paths = [folder / f"r.{suffixes[0]}", folder / f"t.{suffixes[1]}"]
    for path, text in zip(paths, (run, truth), strict=True):
        if isinstance(text, str):
            path.write_text(text)
        else:
            text.write_parquet(path)
    return evaluated(folder / "out.parquet", *paths, "-m", "rr", *options)


def test_ids_in_csv_are_numbers_only_if_all_are_written_so(tmp_path):
    run = "user,item,rank\n{0},a,1\n{0},b,2\n"
    for user, other, value in [("1", "1", 1.0), ("007", "007", 1.0), ("1.10", "1.10", 1.0)]:
        got = evaluate_text(tmp_path, run.format(user), f"user,item\n{other},a\n")
        assert got["rr"].to_list() == [value]
    per_user = evaluate_text(tmp_path, run.format("007"), "user,item\n007,a\n7,a\n", "--per-user")
    assert per_user.rows() == [("007", 1.0), ("7", 0.0)]
    per_user = evaluate_text(tmp_path, run.format("10"), "user,item\n10,a\n9,a\n", "--per-user")
    assert per_user.rows() == [(9, 0.0), (10, 1.0)]


def test_ids_of_two_formats_meet(tmp_path):
    items = pl.DataFrame({"user": [1, 1], "item": [7, 8], "relevance": [0, 1]})
    csv = "user,item,rank\n1,7,1\n1,8,2\n"
    trec_run = "1 Q0 7 1 0.9 x\n1 Q0 8 2 0.8 x\n"
    for run, truth, suffixes in [
        (csv, items, ("csv", "parquet")),
        (csv, items.cast({"item": pl.String, "user": pl.String}), ("csv", "parquet")),
        (csv, "1 0 8 1\n", ("csv", "qrels")),
        (trec_run, items, ("run", "parquet")),
        (trec_run, "user,item\n1,8\n", ("run", "csv")),
        (
            csv.replace("8", "008"),
            items.with_columns(item=pl.Series(["7", "008"])),
            ("csv", "parquet"),
        ),
    ]:
        assert evaluate_text(tmp_path, run, truth, suffixes=suffixes)["rr"].item() == 0.5


def test_names_of_files_are_not_patterns(tmp_path):
    for suffix in ("csv", "parquet", "run"):
        for name, items in {"run[1]": ["a", "b"], "run1": ["b", "a"]}.items():
            path = tmp_path / f"{name}.{suffix}"
            frame = pl.DataFrame({"user": ["1", "1"], "item": items, "rank": [1, 2]})
            if suffix == "run":
                path.write_text("".join(f"1 Q0 {x} 1 {-i}\n" for i, x in enumerate(items)))
            else:
                WRITERS[suffix](frame, path)
        run, truth = tmp_path / f"run[1].{suffix}", tmp_path / "t.qrels"
        truth.write_text("1 0 a 1\n")
        assert evaluated(tmp_path / "out.parquet", run, truth, "-m", "rr")["rr"].item() == 1


def test_output_that_is_not_utf8_gets_a_plain_table(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["demo"]) == 0
    assert b"M2        10  0.352222  0.121187  0.900000" in out.buffer.getvalue()


def test_ties_and_bounds(files):
    scored = RUN.with_columns(score=pl.lit(1.0)).drop("rank")
    scored.write_parquet(files / "scored.parquet")
    paths = [str(files / f"{name}") for name in ("scored.parquet", "truth.csv", "run.csv")]
    options = ["-m", "rr", "--by", "model", *ROLES, "--ties", "expected", "--unjudged", "bounds"]
    roles = {"user": "uid", "item": "sku"}
    ranked = scored.rank.with_rank(ties="expected", by="model", **roles)
    expected = ranked.rank.evaluate("rr", truth=TRUTH, by="model", unjudged="bounds", **roles)
    assert evaluated(files / "out.parquet", *paths[:2], *options).equals(expected)
    assert "no column 'score' for score" in said_by(["evaluate", *paths[:0:-1], *options])


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_text_may_be_packed(files, packing):
    suffix = {"gzip": ".GZ", "zstd": ".zst"}[packing]
    for name, frame in {"run": RUN, "truth": TRUTH}.items():
        target = files / f"{name}.csv{suffix}"
        frame.write_csv(target, compression=packing, check_extension=False)
    out, paths = files / "out.parquet", [files / f"{n}.csv{suffix}" for n in ("run", "truth")]
    assert evaluated(out, *paths, *OPTIONS).equals(EXPECTED)
    trec.write_run(RUN.filter(model="a").drop("model"), files / "a.run.gz", user="uid", item="sku")
    trec.write_qrels(TRUTH, files / "a.qrels.zst", user="uid", item="sku")
    got = evaluated(out, files / "a.run.gz", files / "a.qrels.zst", *METRICS)
    assert got.row(0) == pytest.approx(EXPECTED.filter(model="a").drop("model").row(0))


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["a.run.zst", "run.csv", "run.parquet"])
def test_nothing_is_written_but_out(tmp_path, name, monkeypatch, capsys):
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    run = RUN.filter(model="a").drop("model").rename({"uid": "user", "sku": "item"})
    truth = TRUTH.rename({"uid": "user", "sku": "item"})
    if ".run" in name:
        trec.write_run(run, work / name)
    else:
        WRITERS[name.rpartition(".")[2]](run, work / name)
    truth.write_parquet(work / "truth.parquet")
    monkeypatch.chdir(work)
    for variable in ("HOME", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "POLARS_TEMP_DIR"):
        monkeypatch.setenv(variable, str(home))
    before = contents(tmp_path)
    for options, code, made in [
        ("-m map", 0, set()),
        ("-m map --user nobody --out out.csv", 2, set()),
        ("-m map --out none/out.csv", 2, set()),
        ("-m map --per-user --out out.csv", 0, {work / "out.csv"}),
    ]:
        assert main(["evaluate", name, "truth.parquet", *options.split()]) == code
        assert capsys.readouterr().err.count("\n") == (code == 2)
        after = contents(tmp_path)
        assert {key: after[key] for key in before} == before
        assert set(after) - set(before) == made


def test_a_reader_may_stop_early():
    command = [sys.executable, "-m", "rankframe", "metrics"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.parametrize("verb", ["evaluate", "compare"])
def test_out_is_none_of_the_inputs(tmp_path, verb):
    files = {name: tmp_path / f"{name}.csv" for name in ("run", "other", "truth")}
    for name, path in files.items():
        (TRUTH if name == "truth" else RUN).write_csv(path)
    runs = ["run"] if verb == "evaluate" else ["run", "other"]
    for name in (*runs, "truth"):
        before = files[name].read_bytes()
        given = [str(files[one]) for one in (*runs, "truth")]
        call = [verb, *given, "-m", "ap", "--out", str(files[name])]
        assert "is one of the inputs" in said_by(call)
        assert files[name].read_bytes() == before


# ------------------------------------------------------------------ standard input and pipes

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of POSIX")


def evaluate_fed(fed, *arguments):
    """Run the command with bytes in its standard input, which is a pipe."""
    command = [sys.executable, "-m", "rankframe", *map(str, arguments)]
    done = subprocess.run(command, input=fed, capture_output=True, timeout=120)
    return done.returncode, done.stderr.decode()


def fed(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def packed_csv(frame, packing):
    out = io.BytesIO()
    frame.write_csv(out, compression=packing)
    return out.getvalue()


@pytest.mark.parametrize("suffix", ["parquet", "tsv"])
def test_standard_input_is_the_run_or_the_truth(files, monkeypatch, suffix):
    for name in ("run", "truth"):
        paths = [files / f"{one}.{suffix}" for one in ("run", "truth")]
        fed(monkeypatch, (files / f"{name}.{suffix}").read_bytes())
        paths[name == "truth"] = "-"
        got = evaluated(files / f"{name}_out.parquet", *paths, *OPTIONS, "--format", suffix)
        assert got.equals(EXPECTED)


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_packed_text_in_standard_input(files, monkeypatch, packing):
    out = files / "out.parquet"
    fed(monkeypatch, packed_csv(RUN, packing))
    got = evaluated(out, "-", files / "truth.csv", *OPTIONS, "--format", "csv")
    assert got.equals(EXPECTED)
    path = files / f"a.run{ {'gzip': '.gz', 'zstd': '.zst'}[packing] }"
    trec.write_run(RUN.filter(model="a").drop("model"), path, user="uid", item="sku")
    trec.write_qrels(TRUTH, files / "a.qrels", user="uid", item="sku")
    fed(monkeypatch, path.read_bytes())
    got = evaluated(out, "-", files / "a.qrels", *METRICS, "--format", "trec")
    assert got.row(0) == pytest.approx(EXPECTED.filter(model="a").drop("model").row(0))


@pytest.mark.thorough
def test_a_run_in_a_pipe_is_read_whole(tmp_path):
    users = 3_000  # of ten items: beyond every buffer
    rows = [(f"100{user:04}", f"d{item}", item % 7) for user in range(users) for item in range(10)]
    run = "".join(f"{user} Q0 {item} 1 {score} tag\n" for user, item, score in rows).encode()
    (tmp_path / "a.run").write_bytes(run)
    (tmp_path / "a.qrels").write_text("".join(f"{user} 0 d6 1\n" for user, item, _ in rows[::10]))
    results = []
    sources = [tmp_path / "a.run", "-"]
    sources += ["/dev/stdin"] if os.path.exists("/dev/stdin") else []  # noqa: PTH110
    for source in sources:
        out = tmp_path / f"out{len(results)}.parquet"
        given = [source, tmp_path / "a.qrels", "-m", "rr", "--per-user", "--format", "trec"]
        for data in (run, gzip.compress(run)):
            assert evaluate_fed(data, "evaluate", *given, "--out", out) == (0, "")
            results.append(pl.read_parquet(out))
    assert results[0].height == users
    assert results[0]["rr"].unique().to_list() == [1.0]
    assert all(result.equals(results[0]) for result in results)


@pytest.mark.sample(2)
@needs_pipes
@pytest.mark.parametrize(
    ("suffix", "end", "options"),
    [
        ("parquet", "", ["--format", "parquet"]),
        ("csv", ".csv", []),
        ("tsv", "", ["--format", "tsv"]),
        ("arrow", ".arrow", []),
    ],
)
def test_named_pipes_are_read(files, suffix, end, options):
    pipes = [files / f"fifo_{name}{end}" for name in ("run", "truth")]
    for pipe, name in zip(pipes, ("run", "truth"), strict=True):
        os.mkfifo(pipe)
        data = (files / f"{name}.{suffix}").read_bytes()
        threading.Thread(target=pipe.write_bytes, args=(data,), daemon=True).start()
    assert evaluated(files / "out.parquet", *pipes, *OPTIONS, *options).equals(EXPECTED)


@needs_pipes
def test_pipes_that_cannot_be_read(files):
    pipe = files / "pipe"
    os.mkfifo(pipe)
    for paths in (f"{pipe} {pipe}", "- /dev/stdin"):
        said = said_by(f"evaluate {paths} -m map --format csv")
        assert f"{paths.split()[1]}: two inputs, but it can be read only once" in said


@pytest.mark.parametrize(
    ("stdin", "said"),
    [
        (None, "standard input is closed"),
        (b"uid,sku,score\n1,7,0.5\n1,8,high\n", "line 3, column 'score': 'high' is not a number"),
    ],
)
def test_standard_input_is_named_in_errors(files, monkeypatch, stdin, said):
    fed(monkeypatch, stdin or b"")
    if stdin is None:
        monkeypatch.setattr(sys, "stdin", None)
    call = ["evaluate", "-", str(files / "truth.csv"), "-m", "map", *ROLES, "--format", "csv"]
    before = "<stdin>: " if stdin is None else "<stdin>, "
    assert said_by(call).startswith(f"{before}{said}")


def test_a_file_called_minus_is_a_file(files, monkeypatch):
    monkeypatch.chdir(files)
    (files / "run.csv").rename(files / "-")
    fed(monkeypatch, b"")
    options = [*OPTIONS, "--format", "csv"]
    assert evaluated("out.parquet", "./-", "truth.csv", *options).equals(EXPECTED)
    assert "<stdin>: empty CSV" in said_by(["evaluate", "-", "truth.csv", *options])


@needs_pipes
def test_out_is_not_the_file_in_standard_input(files):
    run, before = files / "run.csv", os.dup(0)
    given = ["evaluate", "-", str(files / "truth.csv"), *METRICS, *ROLES, "--format", "csv"]
    try:
        with run.open("rb") as file:
            os.dup2(file.fileno(), 0)
            said = said_by([*given, "--out", str(run)])
    finally:
        os.dup2(before, 0)
        os.close(before)
    assert "is one of the inputs" in said
    assert pl.read_csv(run).equals(RUN)


# ------------------------------------------------------------------ numbers in CSV

LATE = 10_100  # later than polars looks to guess a type


def late(value, *, before="0", header="user,item,score", row="{n},a,{value}"):
    """Text of a CSV file in which only the last row has a value."""
    rows = [row.format(n=n, value=before) for n in range(LATE)]
    return "\n".join([header, *rows, row.format(n=LATE, value=value), ""])


@pytest.mark.parametrize("value", ["9.5", " 2.5 ", '"3.5"'])
def test_a_fraction_may_come_late(tmp_path, value):
    got = evaluate_text(tmp_path, late(value) + f"{LATE},b,9\n", f"user,item\n{LATE},a\n")
    assert got.rows() == [(1, 1.0 if value == "9.5" else 0.5)]


def test_a_late_fraction_of_every_role(tmp_path):
    run = "user,item,rank\n" + "".join(f"{n},a,1\n" for n in range(LATE + 1))
    truth = late("0.5", header="user,item,grade")
    got = evaluate_text(tmp_path, run, truth, "-m", "cg@1", "--relevance", "grade")
    assert got.rows() == [(1, 1.0, 0.5)]
    tied = late("1,2.0", before="1,1", header="user,item,rank,tied") + f"{LATE},b,1,2\n"
    got = evaluate_text(tmp_path, tied, f"user,item\n{LATE},a\n")
    assert got["rr"].item() == 0.75


@pytest.mark.parametrize("low", [2**53, 2**64, -(2**63)])
def test_large_integers_keep_their_order(tmp_path, low):
    rows = "".join(f"1,{item},{low + more}\n" for item, more in zip("cba", range(3), strict=True))
    truth = "user,item\n1,a\n"
    got = evaluate_text(tmp_path, f"user,item,score\n{rows}", truth)
    assert got["rr"].item() == 1.0  # equal floats would be in descending order of items: c, b, a


@pytest.mark.parametrize("words", [("true", "false"), ("True", "False")])
def test_a_relevance_may_be_true_or_false(tmp_path, words):
    yes, no = words
    run = "user,item,rank\n1,a,1\n1,b,2\n"
    got = evaluate_text(tmp_path, run, f"user,item,relevance\n1,a,{no}\n1,b,{yes}\n")
    assert got.rows() == [(1, 0.5)]


def test_an_empty_field_is_not_a_value(tmp_path):
    run = "user,item,score\n1,a,\n1,b,0.5\n1,c,nan\n1,d,NaN\n"
    got = evaluate_text(tmp_path, run, "user,item\n1,b\n1,a\n", "-m", "num_ret")
    assert got.rows() == [(1, 1.0, 1)]


@pytest.mark.parametrize("extra", ["x", '"a\nb"', "9" * 50])
def test_columns_that_nobody_reads_do_no_harm(tmp_path, extra):
    row = "{n},a,1,{value}"
    run = late(extra, header="user,item,rank,more", row=row)
    truth = late(extra, header="user,item,relevance,even_more", row=row)
    assert evaluate_text(tmp_path, run, truth).rows() == [(LATE + 1, 1.0)]


def test_what_counts_is_read_and_no_more(tmp_path):
    truth = "user,item\n1,b\n"
    run = "user,item,rank,score\n1,a,1,high\n1,b,2,\n"
    assert evaluate_text(tmp_path, run, truth).rows() == [(1, 0.5)]
    run = "user,item,rank,score\n1,a,first,0.5\n1,b,second,9\n"
    assert evaluate_text(tmp_path, run, truth, "--ties", "order").rows() == [(1, 1.0)]
    run = "user,item,rank\n1,a,1\n1,b,2\n"
    truth = "user,item,score\n1,b,n/a\n"
    assert evaluate_text(tmp_path, run, truth).rows() == [(1, 0.5)]


def test_subtopics_are_ids(tmp_path):
    run = "user,item,rank\n1,a,1\n1,b,2\n"
    for last in ("5", "x"):
        rows = "".join(f"1,b,{number}\n" for number in range(99))
        truth = f"user,item,subtopic\n{rows}1,a,{last}\n"
        got = evaluate_text(tmp_path, run, truth, "-m", "strec@1", "-m", "strec@2")
        share = 1 / 99 if last == "5" else 1 / 100
        assert got.row(0)[2:] == pytest.approx((share, 1.0))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("run", "truth", "message"),
    [
        ("{head},score\n1,a,0.5\n1,b,n/a\n", None, "r.csv, line 3, column 'score': 'n/a' is not a"),
        ("{head},score\n1,a,true\n", None, "run, column 'score': Boolean cannot be a score"),
        ('{head},score\n1,a,"1,5"\n', None, "r.csv, line 2, column 'score': '1,5' is not a number"),
        ("{head},rank\r\n1,a,1\r\n\r\n1,b,1st\r\n", None, "r.csv, line 4, column 'rank': '1st' is"),
        ('"user",item,rank,"a\nb"\n1,a,1,"\n\n"\n1,b,x,"\n"\n', None, "r.csv, line 6, column 'ra"),
        (
            "late",
            None,
            "r.csv, line 10102, column 'score': 'x\\ny' is not a number (leave the field",
        ),
        (None, "{head},relevance\n1,a,1\n1,b,maybe\n", "t.csv, line 3, column 'relevance': 'mayb"),
        (
            None,
            "{head},relevance\n1,a,true\n1,b,maybe\n",
            "t.csv, line 2, column 'relevance': 'true' is in a column that is not",
        ),
        (
            None,
            "{head},relevance\n1,a,1\n1,b,true\n",
            "t.csv, line 3, column 'relevance': 'true' is in a column that is not",
        ),
        (
            None,
            "{head},relevance\n1,a,\n",
            "truth, column 'relevance': null relevance: use a finite",
        ),
        ("{head},rank\n1,a,\n", None, "run, column 'rank': it is null in every row"),
        (
            "{head},rank\n1,a,1\n1,b,2,9\n",
            None,
            "r.csv, line 3: it has 4 fields and the header 3: ",
        ),
        (
            None,
            '{head},x\n1,a,"\n"\n1,b,2,9\n',
            "t.csv, line 4: it has 4 fields and the header 3: ",
        ),
        ("{head},rank\n1,a,1.5\n", None, "run, column 'rank': a rank that is not an integer ≥ 1"),
        ("{head},score\n1,a,1e999\n", None, "run, column 'score': infinite score: use a finite"),
    ],
)
def test_what_is_not_a_number_is_named(tmp_path, monkeypatch, run, truth, message):
    monkeypatch.chdir(tmp_path)
    run = late('"x\ny"') if run == "late" else run or "{head},rank\n1,a,1\n"
    for name, text in {"r": run, "t": truth or "{head}\n1,a\n"}.items():
        Path(f"{name}.csv").write_bytes(text.replace("{head}", "user,item").encode())
    assert said_by("evaluate r.csv t.csv -m rr").startswith(message)


# ------------------------------------------------------------------ files of search

TREC_RUN = "1 Q0 7 1 0.9 t\n1 Q0 8 2 0.8 t\n2 Q0 7 1 0.9 t\n"
GRADES = "1\t8\t1\n2\t7\t2\n"
MSMARCO = "1\t7\t1\n1\t8\t2\n2\t7\t1\n"
HEAD = "query-id\tcorpus-id\tscore\n"


def evaluate_named(folder, run, truth, *options, names=("r", "t")):
    """Evaluate files of any name; return one value of rr per user."""
    for name, content in zip(names, (run, truth), strict=True):
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    out, paths = folder / "out.parquet", [folder / name for name in names]
    out.unlink(missing_ok=True)
    return evaluated(out, *paths, "-m", "rr", "--per-user", *options)["rr"].to_list()


def parquet(text, *names):
    """Bytes of a Parquet file of the rows of a text, with numbers where all are."""
    rows = [line.split("\t") for line in text.splitlines()]
    out = io.BytesIO()
    pl.DataFrame(rows, names, orient="row").with_columns(pl.last().cast(pl.Int64)).write_parquet(
        out
    )
    return out.getvalue()


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("truth", "options"),
    [
        (HEAD + GRADES, ""),
        (HEAD + GRADES, "--truth-user query-id --truth-item corpus-id --truth-relevance score"),
        (HEAD.replace("\t", " ") + GRADES, "--truth-relevance score --truth-format trec"),
        (HEAD.replace("\t", ",") + GRADES.replace("\t", ","), ""),
        (HEAD + GRADES, "--truth-format tsv"),
        (HEAD + GRADES, "--truth-format trec"),
        (GRADES, ""),
        (GRADES.replace("\t", " "), "--format trec"),
        (GRADES, "--truth-fields user,item,relevance"),
        (
            GRADES,
            "--truth-fields qid,pid,grade --truth-user qid --truth-item pid --relevance grade",
        ),
        (GRADES.replace("\t", ","), "--truth-fields user,item,relevance --truth-format csv"),
        (GRADES.replace("1\t8", "1\t0\t8").replace("2\t7", "2\t0\t7"), ""),
        (GRADES.replace("1\t8", "1\tx\t8").replace("2\t7", "2\ty\t7"), "--truth-format trec"),
        ("qid,pid,grade\n1,8,1\n2,7,2\n", "--truth-user qid --truth-item pid"),
        (gzip.compress((HEAD + GRADES).encode(), mtime=0), ""),
        (parquet(GRADES, "query-id", "corpus-id", "score"), "--truth-format parquet"),
        (
            parquet(GRADES, "q", "d", "score"),
            "--truth-format parquet --truth-user q --truth-item d --truth-relevance score",
        ),
    ],
)
def test_a_trec_run_meets_a_truth_of_any_shape(tmp_path, truth, options):
    assert evaluate_named(tmp_path, TREC_RUN, truth, *options.split()) == [0.5, 1.0]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("run", "options"),
    [
        (MSMARCO, "--run-fields user,item,rank"),
        (MSMARCO.replace("\t", " "), "--run-fields user,item,rank"),
        (MSMARCO.replace("\t", ","), "--run-fields user,item,rank --run-format csv"),
        (MSMARCO, "--run-fields qid,pid,rank --user qid --item pid"),
        (MSMARCO, "--run-fields qid,pid,place --user qid --item pid --rank place"),
        ("user\titem\tplace\n" + MSMARCO, "--rank place"),
        ("qid,user,item,rank\n1,x,7,1\n1,x,8,2\n2,x,7,1\n", "--user qid"),
        (TREC_RUN.replace("Q0", "x"), "--run-format trec"),
        (TREC_RUN, "--run-fields user,_,item,rank,score,_ --truth-format tsv"),
        (
            parquet(MSMARCO, "query-id", "doc", "rank"),
            "--run-format parquet --user query-id --item doc",
        ),
    ],
)
def test_a_run_of_any_shape_meets_beir(tmp_path, run, options):
    assert evaluate_named(tmp_path, run, HEAD + GRADES, *options.split()) == [0.5, 1.0]


def test_roles_of_files_are_those_of_every_verb(tmp_path):
    (tmp_path / "a.run").write_text(TREC_RUN)
    (tmp_path / "b.run").write_text(TREC_RUN.replace("0.8", "1.8"))
    (tmp_path / "t").write_text(HEAD + GRADES)
    out = tmp_path / "out.csv"
    paths = [str(tmp_path / name) for name in ("a.run", "b.run", "t")]
    options = f"-m rr --truth-relevance score --out {out}"
    assert main(["compare", *paths, *options.split()]) == 0
    assert pl.read_csv(out)["difference"].to_list() == [0.25]
    options = "-m rr --by model --run-fields user,Q0,item,place,score,model"
    got = evaluated(tmp_path / "out.parquet", *paths[1:], *options.split())
    assert got.rows() == [("t", 2, 1.0)]


UNTOLD = "line 1: its name tells no format, and it is neither TREC nor CSV with a header"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("run", "truth", "options", "message"),
    [
        (
            MSMARCO,
            GRADES,
            "",
            "r, line 1: its third field may be the rank or the score: pass --run-fields "
            "user,item,rank or --run-fields user,item,score: '1\\t7\\t1'",
        ),
        (MSMARCO, GRADES, "--run-format trec", "r, line 1: its third field may be the rank or"),
        (
            TREC_RUN,
            "196\t242\t3\t881250949\n186\t302\t3\t891717742\n",
            "",
            f"t, {UNTOLD}: pass --truth-format parquet|csv|tsv|ipc|jsonl|json|trec, or the names "
            "of its fields in --truth-fields: '196\\t242",
        ),
        (TREC_RUN.replace("Q0", "x"), GRADES, "", f"r, {UNTOLD}: pass --run-format parquet|"),
        (TREC_RUN, "1\t8\t881250949\n", "", f"t, {UNTOLD}"),
        (TREC_RUN, "1\t8\t0.5\n", "", f"t, {UNTOLD}"),
        ("1,7,1\n", GRADES, "", f"r, {UNTOLD}"),
        ("a,b\tc\n1,2\t3\n", GRADES, "", f"r, {UNTOLD}"),
        (parquet(MSMARCO, "user", "item", "rank"), GRADES, "", f"r, {UNTOLD}"),
        ('{"user": 1, "item": "a"}', GRADES, "", f"r, {UNTOLD}"),
        (
            TREC_RUN,
            TREC_RUN,
            "--truth-format trec",
            "t, line 1: it is not of the form 'user 0 item relevance (an integer)': '1 Q0",
        ),
        (TREC_RUN, HEAD + GRADES, "--truth-user qid", "t: no column 'qid' for --truth-user; it "),
        (TREC_RUN, GRADES, "--truth-user qid", "t, line 1: no header with 'qid'"),
        (
            TREC_RUN,
            HEAD + GRADES,
            "--truth-user score --truth-item score",
            "t: two roles name the same column, 'score'",
        ),
        (
            MSMARCO,
            GRADES,
            "--run-fields user,rank",
            "fields must name the fields of a line, including 'item'",
        ),
        (
            MSMARCO,
            GRADES,
            "--run-fields user,item,x,rank",
            "r, line 1: it does not have the fields",
        ),
        (
            MSMARCO + "3\t7\n",
            GRADES,
            "--run-fields user,item,rank",
            "r, line 4: it is not of the f",
        ),
        (TREC_RUN, HEAD + GRADES + "3\t7\tx\n", "", "t, line 4, column 'score': 'x' is not a"),
        (TREC_RUN, GRADES + "3\t7\tx\n", "", "t, line 3: it is not of the form 'user item relevan"),
        (
            parquet(MSMARCO, "user", "item", "rank"),
            GRADES,
            "--run-fields user,item,rank --run-format parquet",
            "r: --run-fields names the columns of text without a header, and this file is of for",
        ),
        (TREC_RUN, GRADES, "--run-format xml", "argument --run-format: invalid choice: 'xml'"),
    ],
)
def test_files_that_cannot_be_told_are_refused(tmp_path, monkeypatch, run, truth, options, message):
    monkeypatch.chdir(tmp_path)
    for name, content in [("r", run), ("t", truth)]:
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    assert said_by(f"evaluate r t -m rr {options}").startswith(message)


def test_the_suffix_decides(tmp_path):
    truth = "1 4.5 8 1\n2 1 7 2\n"  # rounds of judging, as in TREC-COVID
    for suffix in ("qrels", "txt", "trec"):
        names = ("r", f"t.{suffix}")
        assert evaluate_named(tmp_path, TREC_RUN, truth, names=names) == [0.5, 1.0]
    truth = "qid\tpid,x\n1\t8\n2\t7\n"
    options = "--truth-user qid --truth-item pid,x".split()
    assert evaluate_named(tmp_path, TREC_RUN, truth, *options, names=("r", "t.tsv")) == [0.5, 1.0]


def test_files_beside_run_and_truth_are_known_by_content(tmp_path):
    (tmp_path / "r").write_text(TREC_RUN)
    (tmp_path / "o").write_text(TREC_RUN)
    (tmp_path / "i").write_text("item,genre\n7,a\n8,b\n")
    words = f"{tmp_path}/r -m coverage@1 --items {tmp_path}/i".split()
    assert evaluated(tmp_path / "out.parquet", *words)["coverage@1"].item() == 0.5


@pytest.mark.parametrize("packing", [bytes, gzip.compress])
def test_a_pipe_needs_no_format(tmp_path, monkeypatch, packing):
    (tmp_path / "t").write_text(HEAD + GRADES)
    fed(monkeypatch, packing(TREC_RUN.encode()))
    assert evaluated(tmp_path / "out.parquet", "-", tmp_path / "t", "-m", "rr")["rr"].item() == 0.75


@pytest.mark.parametrize("values", ["01", ["0.0", "1.0"], ["False", "true"]], ids=str)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_grades_of_an_unknown_name_are_not_left_unread(values, form, tmp_path, capsys):
    (tmp_path / "run.csv").write_text("user,item,rank\n1,a,1\n1,b,2\n")
    truth = pl.DataFrame({"user": ["1", "1"], "item": [*"ab"], "is_click": [*values], "n": [*"56"]})
    file = tmp_path / f"truth.{form}"
    if form == "csv":
        truth.write_csv(file)
    else:
        as_flag = pl.col("is_click").str.to_lowercase().is_in(["1", "1.0", "true"])
        truth.with_columns(as_flag).write_parquet(file)
    call = ["evaluate", str(tmp_path / "run.csv"), str(file), "-m", "map"]
    assert "truth, column 'is_click':" in said_by(call)
    assert main([*call, "--relevance", "is_click"]) == 0
    assert "0.500000" in capsys.readouterr().out
    truth.with_columns(is_click=pl.lit(values[1])).write_csv(tmp_path / "flat.csv")
    assert main([*call[:2], str(tmp_path / "flat.csv"), *call[3:]]) == 0
    assert "1.000000" in capsys.readouterr().out


def test_sql_prints_what_rf_sql_returns(capsys):
    ask = ["sql", "-m", "ndcg@10", "-m", "map", "--run", "recs", "--truth", "labels"]
    tables = {"run": "recs", "truth": "labels", "by": ["model"], "dialect": "bigquery"}
    ask += ["--by", "model", "--dialect", "bigquery"]
    assert main([*ask, "--per-user", "--users", "all", "--depth", "5"]) == 0
    options = {"per_user": True, "users": "all", "depth": 5}
    got = capsys.readouterr().out
    want = rf.sql("ndcg@10", "map", **tables, **options)
    assert got.partition("WITH")[2] == want.partition("WITH")[2] != ""
    assert main([*ask, "--check"]) == 0
    assert capsys.readouterr().out == rf.sql("ndcg@10", "map", **tables, check=True)
    grades = ["--schema", "truth=user,item:int,relevance:bool"]
    assert main([*ask, *grades]) == 0
    schema = {"truth": {"user": pl.String, "item": pl.Int64, "relevance": pl.Boolean}}
    want = rf.sql("ndcg@10", "map", **tables, schema=schema)
    assert capsys.readouterr().out.partition("WITH")[2] == want.partition("WITH")[2]
    assert "'user:text' is not COLUMN:TYPE" in said_by([*ask, "--schema", "truth=user:text"])
    said = said_by("sql -m alpha_ndcg@5")
    assert "metric 'alpha_ndcg@5' cannot be written in SQL" in said
    for more in ([], ["--check"]):
        assert main(["sql", "-m", "official", *more]) == 0
        capsys.readouterr()
    assert main(["sql", "-m", "ap", "--as-function", "--undefined", "0"]) == 0
    want = rf.sql("ap", as_function=True, undefined=0)
    assert capsys.readouterr().out.partition("CREATE")[2] == want.partition("CREATE")[2] != ""
    assert main(["sql", "-m", "map"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "-- rf.sql('map')"
    said = said_by("sql -m map --as-function --by day")
    assert "leave out --as-function for the SELECT" in said


def in_two_columns(frame, *names):
    wiki = pl.when(pl.col("uid") % 2 == 0).then(pl.lit("en")).otherwise(pl.lit("de"))
    return frame.select(
        wiki.alias(names[0]), (pl.col("uid") // 2).alias(names[1]), pl.exclude("uid")
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("verb", ["evaluate", "evaluate --per-user", "check", "health", "compare"])
def test_several_columns_are_one_user(tmp_path, verb, suffix):
    run, truth = in_two_columns(RUN, "wiki", "session"), in_two_columns(TRUTH, "w", "s")
    for name, frame in {"run": run, "truth": truth}.items():
        WRITERS[suffix](frame, tmp_path / f"{name}.{suffix}")
    paths = [str(tmp_path / f"{name}.{suffix}") for name in ("run", "truth")]
    roles = "--user wiki --user session --item sku --truth-user w --truth-user s".split()
    metrics = [] if verb == "health" else ["-m", "ndcg@10", "-m", "map"]
    words = [*verb.split(), *paths, *roles, *metrics]
    out = tmp_path / "out.parquet"
    assert main(words if verb == "check" else [*words, "--out", str(out)]) == 0
    if verb == "check":
        return
    call = {"user": ["wiki", "session"], "item": "sku", "truth_user": ["w", "s"], "truth": truth}
    name = verb.rpartition("--")[2].replace("-", "_")
    labels = metrics[1::2]
    call |= {"details": True} if verb == "compare" else {}
    assert pl.read_parquet(out).equals(getattr(rf, name)(run, *labels, **call))


def test_several_columns_are_one_user_of_other_files(tmp_path, capsys):
    whole, truth = in_two_columns(RUN, "wiki", "session"), in_two_columns(TRUTH, "w", "s")
    runs = {name: whole.filter(model=name).drop("model") for name in "ab"}
    for name, frame in runs.items():
        frame.write_csv(tmp_path / f"{name}.csv")
    truth.write_csv(tmp_path / "t.csv", include_header=False)
    seen = in_two_columns(pl.DataFrame({"uid": [1], "sku": [7]}), "wiki", "session")
    seen.write_csv(tmp_path / "seen.csv")
    config = tmp_path / "eval.toml"
    config.write_text(
        'run = ["a.csv", "b.csv"]\ntruth = "t.csv"\ntruth_fields = "w,s,sku,relevance"\n'
        'user = ["wiki", "session"]\ntruth_user = ["w", "s"]\nitem = "sku"\nexclude = "seen.csv"\n'
        'metrics = "ndcg@10"\nout = "out.parquet"\nper_user = true\n'
    )
    assert main(["run", str(config)]) == 0, capsys.readouterr().err
    roles = {"user": ["wiki", "session"], "item": "sku"}
    named = truth.rename({"w": "wiki", "s": "session"})
    expected = rf.per_user(runs, "ndcg@10", truth=named, exclude=seen, **roles)
    expected = expected.with_columns(pl.col("session").cast(pl.String))
    assert pl.read_parquet(tmp_path / "out.parquet").equals(expected)
    paths = [str(tmp_path / name) for name in ("a.csv", "t.csv")]
    words = ["evaluate", *paths, "--truth-fields", "w,s,sku,relevance", "--item", "sku"]
    words += ["--user", "wiki", "--user", "session", "-m", "rr"]
    assert main([*words, "--truth-user", "w", "--truth-user", "s", "-q", "--json"]) == 0
    *_, last = json.loads(capsys.readouterr().out)
    assert (last["wiki"], last["session"]) == ("all", "all")
    for options, error in (
        (["--truth-user", "w"], "--truth-user names 1 column and --user 2: name as many"),
        (["--truth-user", "x", "--truth-user", "w"], "no column 'x' for --truth-user; it has"),
        (["--print", "trec", "--per-user"], "--print trec has one column of the user"),
    ):
        assert error in said_by([*words, *options])
