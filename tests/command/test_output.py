"""What the command prints: tables of 80 columns, JSON, and what trec_eval prints."""

import json
import os
import re
import sys
import threading
from pathlib import Path

import extension
import polars as pl
import pytest
from commands import said_by

import rankframe as rf
from rankframe._command import options, progress, reference, text_tables
from rankframe._command.main import _COMMANDS, main
from rankframe._command.trec import spelled_out
from rankframe._evaluation import evaluation
from rankframe._request import descriptions
from rankframe._request.labels import every_label

TRUTH = pl.DataFrame({"user": range(40), "item": "a", "country": ["no", "se"] * 20})
NAMES = ["popularity_of_the_last_month_variant_01", "popularity_of_the_last_month_variant_02"]


def run(shift):
    return pl.DataFrame({"user": range(40), "item": "a"}).with_columns(
        rank=1 + (pl.col("user") * 7 + shift) % (3 + shift)
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place, name in enumerate(["old", "new", *NAMES]):
        run(3 * place).write_csv(f"{name}.csv")
    TRUTH.write_csv("truth.csv")
    return tmp_path


def printed(capsys, command):
    assert main(command.split()) in (0, 1)
    return capsys.readouterr().out


LONG = " ".join(f"{name}.csv" for name in NAMES)
MANY = " ".join(f"-m {label}" for label in ("ndcg@5,10,20", "map", "recall@5,10,20", "rbp(p=0.8)"))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "command",
    [
        f"evaluate old.csv truth.csv {MANY}",
        f"evaluate old.csv truth.csv {MANY} --per-user",
        f"evaluate old.csv {LONG} truth.csv {MANY} --by country --total",
        "evaluate old.csv truth.csv -m all_trec",
        f"compare old.csv new.csv {LONG} truth.csv {MANY}",
        f"compare old.csv new.csv {LONG} truth.csv -m map -m ndcg@10 --by country --total",
        f"compare {LONG} old.csv truth.csv -m rbp(p=0.8) --margin 0.1 --by country --baseline old",
        f"gate old.csv {LONG} truth.csv -m map --undecided pass --by country --total",
        "metrics",
        "demo",
    ],
)
def test_tables_fit_80_columns(folder, capsys, command):
    lines = printed(capsys, command).splitlines()
    assert len(lines) > 3
    assert max(map(len, lines)) <= 80


def test_the_head_line_has_the_margin_and_speaks_of_p_where_it_is_displayed(folder, capsys):
    text = printed(capsys, "compare old.csv new.csv truth.csv -m map -m mrr --margin 0.1")
    head, table = text.split("model", 1)
    assert "margin 0.1, paired t test, p after" in " ".join(head.split())
    assert " p_not_worse " in table.splitlines()[0]
    narrow = printed(capsys, f"compare old.csv {LONG} truth.csv -m map -m mrr --margin 0.1")
    head, table = narrow.split("model", 1)
    assert ("p after" in " ".join(head.split())) == (" p " in table.splitlines()[0])
    assert "margin" not in printed(capsys, "compare old.csv new.csv truth.csv -m map")


def test_truncated_names_remain_distinct(folder, capsys):
    text = printed(capsys, f"compare old.csv {LONG} truth.csv -m ndcg@10 --by country")
    assert {name[-2:] for name in re.findall(r"\w+…\w+", text)} == {"01", "02"}


def test_definitions_and_verdicts_are_whole(folder, capsys):
    text = " ".join(printed(capsys, "metrics").split())
    for label, function in every_label().items():
        assert f" {label} {descriptions.first_line(function)}" in text
    for more in ("", "--by country", "-m ndcg@10"):
        text = printed(capsys, f"compare old.csv new.csv third=old.csv truth.csv {more}")
        head, *rows = [row for row in text.splitlines() if row[:5] in ("model", "new  ", "third")]
        assert head.endswith("verdict")
        tested = [row for row in rows if " to " in row]
        assert len(tested) >= 2
        assert all(row.endswith(("worse", "better", "undecided")) for row in tested)
        assert "null" not in text


def test_all_numbers_are_in_the_long_table(folder, capsys):
    text = printed(capsys, f"evaluate old.csv new.csv truth.csv {MANY} --by country")
    runs = {"old": run(0), "new": run(3)}
    labels = ["ndcg@5", "ndcg@10", "ndcg@20", "map", "recall@5", "recall@10", "recall@20"]
    expected = rf.evaluate(runs, *labels, "rbp(p=0.8)", truth=TRUTH, by="country")
    assert text.count("\n") == 2 + 4 * 8
    for row in expected.iter_rows(named=True):
        for label in (*labels, "rbp(p=0.8)"):
            cells = [row["model"], row["country"], row["users"], label, f"{row[label]:.6f}"]
            pattern = " +".join(re.escape(str(cell)) for cell in cells)
            assert re.search(rf"^{pattern}$", text, re.MULTILINE), cells


def test_details_are_all_columns(folder, capsys):
    head = printed(capsys, "compare old.csv new.csv truth.csv -m map --details").splitlines()[0]
    columns = rf.compare({"new": run(3), "old": run(0)}, "map", truth=TRUTH, details=True).columns
    assert re.findall(r"\w+", head) == columns
    head = printed(capsys, f"evaluate old.csv truth.csv {MANY} --details").splitlines()[0]
    assert "rbp(p=0.8)" in head


def test_a_terminal_may_be_wider(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    text = printed(capsys, "compare old.csv new.csv truth.csv -m map")
    assert "higher/equal/lower" in text
    assert "baseline_mean" in text


def test_a_p_value_is_never_0(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    users = pl.DataFrame({"user": range(300), "item": "a"})
    users.with_columns(rank=1 + pl.col("user") % 2).write_csv("a.csv")
    users.with_columns(rank=4 + pl.col("user") % 3).write_csv("b.csv")
    users.write_csv("t.csv")
    text = printed(capsys, "compare a.csv b.csv t.csv -m rr")
    assert "<0.0001" in text
    assert "0.000000" not in text
    assert text.startswith(
        "Differences from a over 300 users; 95% intervals, paired t test, p without"
    )
    wide = printed(capsys, "compare a.csv b.csv t.csv -m rr --details")
    assert wide.count("<0.0001") == 2
    assert json.loads(printed(capsys, "compare a.csv b.csv t.csv -m rr --json"))[0]["p_value"] > 0


def rows_of(text):
    """The rows of --json without their conventions, which each row has."""
    rows = json.loads(text)
    assert all(re.fullmatch("[0-9a-f]{8}", row.pop("conventions")) for row in rows)
    return rows


def test_notes_stand_below(folder, capsys):
    run(0).with_columns(rank=2).write_csv("same.csv")
    text = printed(capsys, "compare a=same.csv b=same.csv truth.csv -m rr -m ap")
    assert text.endswith("\n* rr, ap: no user differs (b)\n")
    rows = text.splitlines()
    assert [row.count(" 0.0000 *") for row in rows if row.startswith("b ")] == [1, 1]
    assert all(len(row) <= 80 for row in rows)
    assert "*" not in printed(capsys, "compare old.csv new.csv truth.csv -m rr")


def test_counts_are_integers(folder, capsys):
    command = "evaluate old.csv truth.csv -m num_ret -m num_hits@3 --undefined 0"
    text = printed(capsys, command)
    assert re.search(r"^ +40 +40 +\d+$", text, re.MULTILINE)
    (row,) = rows_of(printed(capsys, f"{command} --json"))
    assert all(isinstance(value, int) for value in row.values())


def test_hostile_names_are_text(folder, capsys):
    names = ["a|b", "x & y_1", "<script>", "ü…", "a\tb", "\x1b[31mred"]
    for name in names:
        run(1).write_csv(f"{name}.csv")
    call = ["evaluate", *(f"{name}.csv" for name in names), "truth.csv", "-m", "rr"]
    assert main([*call, "--json"]) == 0
    assert [row["model"] for row in json.loads(capsys.readouterr().out)] == names
    assert main(call) == 0
    out = capsys.readouterr().out
    assert not {"\x1b", "\t"} & {*out}
    assert out.count("\n") == 2 + len(names)


def test_json_is_always_a_list(folder, capsys):
    (one,) = rows_of(printed(capsys, "evaluate old.csv truth.csv -m map --json"))
    assert one == rf.evaluate(run(0), "map", truth=TRUTH).row(0, named=True)
    several = rows_of(printed(capsys, "evaluate old.csv new.csv truth.csv -m map --json"))
    expected = rf.evaluate({"old": run(0), "new": run(3)}, "map", truth=TRUTH)
    assert several == expected.to_dicts()
    assert [row["model"] for row in several] == ["old", "new"]


def test_out_minus_is_csv_on_standard_output(folder, capsys):
    text = printed(capsys, "evaluate old.csv truth.csv -m map --per-user --out -")
    assert pl.read_csv(text.encode()).equals(rf.per_user(run(0), "map", truth=TRUTH))
    said = said_by("evaluate old.csv truth.csv -m map --json --out -")
    assert "--json and --out - both print" in said
    assert not (folder / "-").exists()


def test_json_is_printed_and_out_written(folder, capsys):
    command = (
        "gate old.csv new.csv truth.csv -m map --margin 0.5 --undecided pass --json --out gate.json"
    )
    rows = json.loads(printed(capsys, command))
    assert [row["model"] for row in rows] == ["new"]
    assert json.loads((folder / "gate.json").read_text()) == rows


@pytest.mark.parametrize("command", ["evaluate old.csv", "compare old.csv new.csv"])
def test_an_error_leaves_the_old_file_and_prints_nothing(folder, capsys, monkeypatch, command):
    write_bytes = Path.write_bytes

    def fail(path, content):
        write_bytes(path, content[:9])
        raise OSError("disk full")

    Path("out.parquet").write_text("of last night")
    before = {*folder.iterdir()}
    monkeypatch.setattr(Path, "write_bytes", fail)
    assert main([*command.split(), *"truth.csv -m map --json --out out.parquet".split()]) == 2
    assert capsys.readouterr() == ("", "rankframe: error: disk full\n")
    assert Path("out.parquet").read_text() == "of last night"
    assert {*folder.iterdir()} == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of POSIX")
def test_out_may_be_a_link_or_a_pipe(folder):
    Path("real.csv").touch(mode=0o640)
    Path("link.csv").symlink_to("real.csv")
    assert main("evaluate old.csv truth.csv -m map --out link.csv".split()) == 0
    assert Path("link.csv").is_symlink()
    assert Path("real.csv").read_text().startswith("users,map\n")
    assert Path("real.csv").stat().st_mode & 0o777 == 0o640
    os.mkfifo("pipe.csv")
    received = []
    reader = threading.Thread(target=lambda: received.append(Path("pipe.csv").read_text()))
    reader.start()
    assert main("evaluate old.csv truth.csv -m map --out pipe.csv".split()) == 0
    reader.join(timeout=30)
    assert received == [Path("real.csv").read_text()]


def test_a_spreadsheet_runs_no_formula(folder, capsys):
    Path("old.csv").rename("=cmd|calc.csv")
    files = "./=cmd|calc.csv new.csv truth.csv".split()
    call = ["evaluate", *files, "-m", "map", "--undefined", "-1"]
    for out in ("-", "c.csv"):
        assert main([*call, "--out", out, "--spreadsheet"]) == 0
        text = capsys.readouterr().out or Path("c.csv").read_text()
        assert "\n'=cmd|calc,40," in text
        assert "\nnew,40," in text
    assert main([*call, "--out", "-"]) == 0
    assert "\n=cmd|calc,40," in capsys.readouterr().out
    assert main([*call, "--out", "c.json", "--spreadsheet"]) == 2


def test_a_panic_of_polars_is_no_failed_gate(folder, monkeypatch):
    def panic(*_, **__):
        raise pl.exceptions.PanicException

    monkeypatch.setattr(evaluation, "evaluate", panic)
    assert main("evaluate old.csv truth.csv -m map".split()) == 3


def test_an_output_beside_follows_no_link(folder, monkeypatch):
    monkeypatch.setattr(text_tables.secrets, "token_hex", lambda _: "same")
    Path("mine").write_text("kept")
    Path(".out.same.csv").symlink_to("mine")
    assert main("evaluate old.csv truth.csv -m map --out out.csv".split()) == 2
    assert Path("mine").read_text() == "kept"
    assert not Path("out.csv").exists()


def test_a_metric_on_a_column_of_several_runs(folder, capsys):
    """As in Python, also where the numbers of one file have no fraction."""
    prices = {"old": 2, "new": 2.5}
    for name, price in prices.items():
        pl.read_csv(f"{name}.csv").with_columns(price=price, note=pl.lit(name)).write_csv(
            f"{name}.csv"
        )
    runs = {name: pl.read_csv(f"{name}.csv").cast({"price": float}) for name in prices}
    with extension.registered():
        rows = rows_of(printed(capsys, "evaluate old.csv new.csv truth.csv -m mean_price@5 --json"))
        want = rf.evaluate(runs, "mean_price@5", truth=TRUTH)
    assert rows == want.to_dicts()
    assert [row["mean_price@5"] for row in rows] == [2, 2.5]


def test_several_runs_are_evaluated(folder, capsys):
    command = "evaluate old.csv new.csv again=old.csv truth.csv -m map --by country --json"
    rows = rows_of(printed(capsys, command))
    runs = {"old": run(0), "new": run(3), "again": run(0)}
    expected = rf.evaluate(runs, "map", truth=TRUTH, by="country")
    assert [row["model"] for row in rows] == ["old", "old", "new", "new", "again", "again"]
    assert sorted(rows, key=str) == sorted(expected.to_dicts(), key=str)
    once, plain = (
        printed(capsys, f"evaluate old.csv new.csv truth.csv -m map {by}")
        for by in ("--by model", "")
    )
    assert once == plain
    named = printed(capsys, "evaluate old.csv new.csv truth.csv -m map --model engine --json")
    assert [row["engine"] for row in rows_of(named)] == ["old", "new"]


def test_weights_of_several_runs(folder, capsys):
    for place, name in enumerate(("heavy", "light")):
        run(place).with_columns(w=1 + pl.col("user") % 3).write_parquet(f"{name}.parquet")
    rows = json.loads(
        printed(capsys, "evaluate heavy.parquet light.parquet truth.csv -m map --weights w --json")
    )
    weighted = run(1).with_columns(w=1 + pl.col("user") % 3)
    expected = rf.evaluate(weighted, "map", truth=TRUTH, weights="w")["map"].item()
    assert rows[1]["map"] == pytest.approx(expected)


def test_q_has_the_rows_of_users_and_all(folder, capsys):
    command = "evaluate old.csv truth.csv -m map -m gmap -m num_q -q --json"
    *users, everybody = rows_of(printed(capsys, command))
    means = rf.evaluate(run(0), "map", "gmap", "num_q", truth=TRUTH).row(0, named=True)
    assert everybody == {"user": "all", **{name: means[name] for name in ("map", "gmap", "num_q")}}
    assert [row["user"] for row in users] == [str(user) for user in range(40)]
    assert [row["map"] for row in users] == rf.per_user(run(0), "map", truth=TRUTH)["map"].to_list()
    assert {row["gmap"] for row in users} == {None}
    groups = printed(capsys, "evaluate old.csv new.csv truth.csv -m map -q --out -")
    ends = pl.read_csv(groups.encode()).filter(user="all")
    assert ends["model"].to_list() == ["old", "new"]
    for option in ("--per-user", "--total", "--count-users"):
        assert "-q" in said_by(["evaluate", *"old.csv truth.csv -m map -q".split(), option])


def test_trec_has_three_columns(folder, capsys):
    text = printed(capsys, "evaluate old.csv truth.csv -m P.5,10 -m num_ret --print trec")
    got = rf.evaluate(run(0), "P_5", "P_10", truth=TRUTH).row(0)
    assert text == (
        f"P_5                   \tall\t{got[1]:.4f}\n"
        f"P_10                  \tall\t{got[2]:.4f}\n"
        "num_ret               \tall\t40\n"
    )
    users = printed(capsys, "evaluate old.csv truth.csv -m P_5 --per-user --print trec")
    assert users.count("\n") == 40
    for more in ("--by country", "--json", "--out x.csv"):
        command = f"evaluate old.csv truth.csv -m P_5 --print trec {more}"
        assert "--print trec" in said_by(command)


def test_sets_are_compared_but_for_lines_without_users(folder, capsys):
    command = "compare old.csv new.csv truth.csv -m set --json"
    assert main(command.split()) == 0
    out, err = capsys.readouterr()
    labels = {row["metric"] for row in json.loads(out)}
    assert labels == {*spelled_out(["set"])} - {"runid", "num_q"}
    assert err == "rankframe: not compared, as it has no values of users: runid, num_q\n"


def test_a_table_names_those_who_were_missed(folder, capsys):
    run(0).filter(pl.col("user") >= 9).write_csv("gaps.csv")
    command = "evaluate old.csv gaps.csv truth.csv -m map"
    text = printed(capsys, command)
    assert text.endswith("\n9 of 40 users have no list of gaps\n")
    assert "num_missed" not in text
    assert printed(capsys, f"{command} --count-users").count("map_users") == 1
    chance = printed(capsys, f"{command} --chance")
    assert all(name in chance for name in ("map_chance", "map_ceiling"))
    assert "num_missed" not in chance
    assert "num_missed" in printed(capsys, f"{command} -m num_missed")
    assert printed(capsys, f"{command} -q").endswith("\n9 of 40 users have no list of gaps\n")
    alone = printed(capsys, "evaluate gaps.csv truth.csv -m rr --unjudged bounds")
    assert alone.endswith("\n9 of 40 users have no list\n")
    assert "num_missed" not in alone
    split = printed(capsys, f"{command} --by country")
    assert "5 of 20 users have no list of gaps · no\n" in split
    for more in ("--json", "--out -"):
        text = printed(capsys, f"{command} {more}")
        assert "no list" not in text
        assert "num_missed" not in text
    assert "no list" not in printed(capsys, "evaluate gaps.csv truth.csv -m map --print trec")
    assert "no list" not in printed(capsys, "evaluate old.csv new.csv truth.csv -m map")


def test_a_metric_is_explained_with_readable_types(capsys):
    text = printed(capsys, "metrics ndcg@10")
    head = text.partition("\n\n")[0]
    gain = "gain: 'linear' | 'exponential' | 'binary' | Mapping[float, float] = 'linear',"
    assert gain in " ".join(head.split())
    assert "k: int | None = None," in head
    assert "``" not in text
    for function in every_label().values():
        head = reference.explanation(function, 80).partition("\n\n")[0]
        assert not re.search(r"typing|collections|Annotated|Union|Literal|<", head), head


def test_labels_as_trec_eval_spells_them():
    assert spelled_out(["P.5,10", "ndcg_cut.10,100", "map"]) == [
        "P_5",
        "P_10",
        "ndcg_cut_10",
        "ndcg_cut_100",
        "map",
    ]
    assert spelled_out(["iprec_at_recall.0.1,.25"]) == [
        "iprec_at_recall_0.10",
        "iprec_at_recall_0.25",
    ]
    # what trec_eval's own names with a dot mean here stays
    kept = ["set_F.2.0", "utility.1,-1,0,0", "ndcg.1=3.5,2=9", "11pt_avg..25,.5,.75", "P", "recall"]
    assert spelled_out(kept) == kept
    assert spelled_out(["map", "official", "map"]).count("map") == 1
    assert len(spelled_out(["all_trec"])) == 99
    assert len(spelled_out(["all_trec"], "trec_eval_9")) == 94


COUNTS = {"num_q", "num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret"}
OF_ALL = {"gm_map", "gm_bpref", "num_q"}


def as_trec_eval_prints(expected, measures, tag, *, queries):
    """Lay out the numbers that trec_eval gave as its source does."""
    values = {(measure, user): value for measure, user, value in expected.iter_rows()}

    def lines(user, names):
        for name in names:
            value = values[name, user]
            text = f"{value:.0f}" if name in COUNTS else f"{value:6.4f}"
            yield f"{name:<22}\t{user}\t{text}\n"

    each = [name for name in measures if name not in OF_ALL]
    users = sorted({user for _, user in values} - {"all"}) if queries else []
    text = "".join(line for user in users for line in lines(user, each))
    return text + f"{'runid':<22}\tall\t{tag}\n" + "".join(lines("all", measures))


@pytest.mark.sample(2)
@pytest.mark.parametrize("queries", [False, True])
@pytest.mark.parametrize("name", ["official", "set", "all_trec"])
@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("expected_trec_c", "--preset trec_eval"),
        ("expected_trec", "--preset trec_eval --users both"),
        ("expected_trec_v9", "--preset trec_eval_9 --users both"),
    ],
)
def test_it_prints_what_trec_eval_prints(shared, capsys, file, options, name, queries):
    folder = shared / "trec_sample"
    command = f"evaluate {folder}/run.trec {folder}/qrels.trec -m {name} --print trec {options}"
    got = printed(capsys, command + " -q" * queries)
    expected = pl.read_parquet(folder / f"{file}.parquet").select("measure", "user", "value")
    measures = spelled_out([name], "trec_eval_9" if "v9" in file else None)[1:]
    assert got == as_trec_eval_prints(expected, measures, "STANDARD", queries=queries)


def test_the_command_alone_prints_its_help(capsys):
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: rankframe ")
    assert "compare" in out
    assert err == ""


COMMANDS = (
    "demo metrics evaluate check health explain compare differences gate report sql run".split()
)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_begins_with_an_example_that_runs(folder, capsys, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert next(n for n, line in enumerate(lines) if line.endswith(":")) <= 5
    name, *words = lines[1].removeprefix("example: ").split()
    assert (lines[0].startswith("usage: "), name) == (True, "rankframe")
    Path("run.csv").write_text(Path("old.csv").read_text())
    Path("nightly.toml").write_text("run='run.csv'\ntruth='truth.csv'\nmetrics=['map']\n")
    if command in ("compare", "gate", "report"):  # which other tests run
        assert options.parser_of(_COMMANDS, words).parse_args(options.with_each_metric(words))
    else:
        assert main(words) == 0


def test_differences_are_a_table_with_the_texts_of_queries(folder, capsys):
    Path("texts.csv").write_text("user,text\n1,red shoes\n")
    call = ["differences", "old.csv", "new.csv", "truth.csv", "-m", "rr", "--queries", "texts.csv"]
    assert main(call) == 0
    head, line, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["user", "text", "value", "baseline_value", "difference", "share"]
    assert len(line) <= 80
    assert any("red shoes" in row for row in rows)
    assert main([*call, "--n", "1", "--json"]) == 0
    few = json.loads(capsys.readouterr().out)
    assert len(few) < len(rows)
    assert {"weight", "conventions"} <= few[0].keys()
    assert "takes one metric, not 'rr', 'map'" in said_by([*call[:4], "-m", "rr", "map"])


def test_explanation_is_a_sentence_and_a_table(folder, capsys):
    assert main(["evaluate", "old.csv", "truth.csv", "-m", "rr", "--users", "both", "--json"]) == 0
    value = round(json.loads(capsys.readouterr().out)[0]["rr"], 4)
    call = ["explain", f"{value:.4f}", "old.csv", "truth.csv", "-m", "rr"]
    assert main(call) == 0
    sentence, head, line, *rows = capsys.readouterr().out.splitlines()
    assert sentence.startswith(f"{value:.4f} is ")
    assert head.split() == ["preset", "rr", "difference", "departures", "words"]
    assert len(line) <= 80
    assert rows
    assert main([*call, "--json"]) == 0
    first = json.loads(capsys.readouterr().out)[0]
    assert first["call"].startswith("rf.evaluate(run, 'rr', truth=truth")
    said = said_by(["explain", "high", *call[2:]])
    assert "'high' is not a number: explain takes one per -m" in said
    said = said_by(call[:1] + call[2:4])
    assert "name the metric of each number in -m, and the run after" in said


def test_help_is_in_groups(capsys):
    for command, groups in {
        "evaluate": ["rows:", "conventions:", "output:", "further tables:", "columns:", "formats:"],
        "compare": ["systems and segments:", "test:", "conventions:", "output:"],
        "gate": ["what must hold:", "systems and segments:", "test:", "conventions:", "output:"],
    }.items():
        with pytest.raises(SystemExit) as stopped:
            main([command, "--help"])
        assert stopped.value.code == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if line in groups] == groups


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_sees_that_it_is_at_work(folder, capsys, monkeypatch, terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(progress, "_PATIENCE", 0)
    assert main(["evaluate", "old.csv", "truth.csv", "-m", "map"]) == 0
    out, err = capsys.readouterr()
    assert "map" in out
    assert err == ("\rrankframe: 0 s\r\x1b[K" if terminal else "")


@pytest.fixture
def terminal(monkeypatch):
    """Make standard output a terminal of a width."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    def of(columns):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("COLUMNS", str(columns))

    return of


DEFAULTS = ["ndcg@10", "recall@10", "precision@10", "map", "mrr"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize(
    "command",
    [
        "compare old.csv new.csv truth.csv",
        "compare new.csv old.csv truth.csv -m rr --margin 0.01 --by country",
        "evaluate old.csv new.csv truth.csv",
        "health old.csv truth.csv",
        "check old.csv truth.csv",
        "report old.csv new.csv truth.csv -m rr -o page.html --static",
        "metrics",
        "metrics ndcg@10",
        "metrics err@10",
        "demo",
    ],
)
def test_a_terminal_breaks_no_word(folder, capsys, terminal, command, columns):
    terminal(columns)
    lines = re.sub(r"\x1b\[[\d;]*m", "", printed(capsys, command)).splitlines()
    assert [line for line in lines if len(line) > columns] == []


def test_signs_and_colors_are_for_terminals_alone(folder, capsys, monkeypatch, terminal):
    worse, better = (
        "compare old.csv new.csv truth.csv -m rr",
        "compare new.csv old.csv truth.csv -m rr",
    )
    piped = printed(capsys, worse) + printed(capsys, better)
    assert not re.search("[−+▲▼\x1b]", piped)
    assert re.search(r" -0\.\d+", piped)
    terminal(100)
    assert re.search(
        r"\x1b\[38;5;208m−0\.\d{4} ▼\x1b\[39m .* −0\.\d+ to −0\.\d+", printed(capsys, worse)
    )
    assert re.search(
        r"\x1b\[38;5;33m\+0\.\d{4} ▲\x1b\[39m .* \+0\.\d+ to \+0\.\d+", printed(capsys, better)
    )
    assert printed(capsys, better).count("+0.") == 3  # no mean has a sign
    for more in ("--json", "--out -"):
        assert not re.search("[−+▲▼\x1b]", printed(capsys, f"{worse} {more}"))
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in printed(capsys, worse)


def test_report_goes_to_standard_output(folder, capsys):
    page = printed(capsys, "report old.csv new.csv truth.csv -m rr -o - --static")
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")


def test_metrics_by_default_are_those_of_a_report(folder, capsys):
    (row,) = json.loads(printed(capsys, "evaluate old.csv truth.csv --json"))
    assert [*row] == ["users", *DEFAULTS, "conventions"]
    rows = json.loads(printed(capsys, "compare old.csv new.csv truth.csv --json"))
    assert [row["metric"] for row in rows] == DEFAULTS
    assert "no -m, and no truth" in said_by(["evaluate", "old.csv"])


@pytest.mark.parametrize(
    "words",
    [
        "-m ndcg@10 map old.csv truth.csv",
        "-m ndcg@10 -m map old.csv truth.csv",
        "old.csv truth.csv -m ndcg@10 map",
        "old.csv -m ndcg@10 map truth.csv",
        "old.csv -m ndcg@10 --metric map truth.csv --depth 20",
        "-m ndcg@10 map o=old.csv ./truth.csv",
        "-mndcg@10 --metric=map old.csv truth.csv",
    ],
)
def test_metrics_and_files_in_any_order(folder, capsys, words):
    (row,) = json.loads(printed(capsys, f"evaluate {words} --json"))
    assert [*row] == ["users", "ndcg@10", "map", "conventions"]


def test_a_label_that_is_also_a_file_is_a_label(folder, capsys):
    Path("map").write_text("")
    Path("official").write_text("")
    (row,) = json.loads(printed(capsys, "evaluate -m rr map old.csv truth.csv --json"))
    assert [*row] == ["users", "rr", "map", "conventions"]
    assert "P_5" in printed(capsys, "evaluate -m rr official old.csv truth.csv --json")
    for words, text in {
        "-m ndgc@10 old.csv truth.csv": "unknown metric 'ndgc@10'",
        "old.csv truth.csv -m": "expected one argument",
    }.items():
        try:
            code = main(["evaluate", *words.split()])
        except SystemExit as stopped:
            code = stopped.code
        assert code == 2
        assert text in capsys.readouterr().err
