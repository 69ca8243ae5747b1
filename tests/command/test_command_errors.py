"""What the command says of errors: a person reads it in ``errors.md``, which names each call.

``python -m tests.command.test_command_errors`` writes the file again.
"""

import contextlib
import copy
import pickle
import tempfile
from pathlib import Path

import commands
import odd_input
import polars as pl
import pytest

import rankframe as rf
from rankframe import errors

GOLDEN = Path(__file__).parent / "errors.md"


RUN, TRUTH = odd_input.RUN, odd_input.TRUTH
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
    "thrice": pl.DataFrame({"item": [10, 10, 11]}),
    "history": pl.DataFrame({"user": [1, 1], "item": [10, 10]}),
    "seen": RUN.drop("rank"),
    "ids": RUN.rename({"user": "qid", "item": "docno"}),
    "subtopics": TRUTH.with_columns(subtopic=pl.lit("s")),
    "named": TRUTH.rename({"relevance": "rating"}),
    "renamed": RUN.rename({"user": "qid"}),
    "users": RUN.rename({"user": "user_id"}).with_columns(qid=1),
    "numbered": pl.concat([RUN.with_columns(algo=1), RUN.with_columns(algo=2)]),
    "systems": pl.concat(RUN.with_columns(model=pl.lit(name)) for name in ("new", "old")),
    "every": RUN.select("user", "item"),
}
CALLS = """
evaluate run -m map
evaluate run -m coverage@2
evaluate run truth -m nothing@2
evaluate run truth -m gauc
evaluate run truth -m f1(beta=x)
evaluate run truth -m map --weights w
evaluate run minus -m map --weights w
evaluate run weighed -m num_q --weights w
evaluate run weighed -m map --weights w --per-user
evaluate run weighed -m coverage@2 --weights w --items seen
evaluate run truth -m map --total
gate run truth -m rr --at-least 0.1 --unjudged bounds
evaluate run truth -m map --unjudged bounds --undefined 0.5
evaluate run truth -m ndcg(gain=exponential)@2 --unjudged bounds
evaluate run truth -m gmap --undefined=-1
evaluate run truth -m map --relevant-at=-1
evaluate run truth -m map --depth=-1
evaluate run truth -m map --by day
evaluate run country -m map --by country --users all
evaluate run truth -m map --ties item
evaluate both truth -m map --score score
evaluate blocks truth -m map
evaluate judged truth -m map
gate run truth -m map --at-least map:0 --systems new
evaluate floats truth -m map
evaluate folds truth -m map
evaluate folds truth -m map --by fold
evaluate run flags -m map
evaluate run truth -m map --exclude seen
evaluate run truth -m map --exclude items
evaluate run truth -m novelty@2 --items twice
evaluate run truth -m coverage@2 --items twice
evaluate run truth -m ndcg.1=3,2=9,4=4.5
evaluate run truth -m intra_list_diversity@2 --items twice
evaluate run truth -m rbo
evaluate ids truth -m map
evaluate run subtopics -m map --subtopic topic
evaluate run truth -m map --rank place
evaluate run truth -m map --relevance gain
check run truth --items items
check run truth --by day
check run plain --relevance gain
check folds truth
health run truth -k 0
health run truth --by day
health judged truth
health every truth
compare run other truth -m map --baseline none
compare run other truth -m map --by day
compare run other truth -m num_q
compare run other truth -m coverage@2 --items seen
compare run other truth -m num_ret --test sequential
compare run other truth -m map -m gmap --margin 0.1
compare run other truth -m map --margin=-1
compare run other truth -m map --margin 0.1 --test max_t
compare run other truth -m map --primary ndcg
compare run other truth -m map --confidence 2
compare run other truth -m map --resamples=-1 --test max_t
compare run other truth -m map --seed=-1 --test max_t
compare run other weighed -m map --weights w --test max_t
compare run other weighed -m map --cluster c --test sequential
compare run other weighed -m map --cluster c
compare run other minus -m map --cluster c
compare run other truth -m map --cluster c
gate run other truth -m num_ret --undecided pass
gate run other truth -m coverage@2 --undecided pass --items seen
gate run other truth -m gmap --margin 0.1 --undecided pass
compare run other truth -m map --depth 0
report run other truth -o x.html --by country
report run other truth -o x.html --by country -m nothing
report run other truth -o x.html -k 0
report run other truth -o x.html --baseline none
gate run other named -m rr --relevance rating
evaluate run named -m rr
evaluate renamed named -m rr --user qid
evaluate run users -m map
evaluate run plain -m gauc
evaluate run truth -m map --items items --exclude every
evaluate run truth -m ap@2 --undefined 0.5 --unjudged bounds
evaluate run country -m map --by country --total --users run
evaluate numbered truth -m map --model algo --weights x
health run truth --time at
gate run truth -m map --interval
gate run truth -m map --undecided pass --at-least 0.1
gate run truth -m map --confidence 0.9 --at-least 0.1
gate run truth -m map --test sequential --at-least 0.1
gate run truth -m map
gate run other truth -m map --at-least map:2
gate run other truth -m map -m rr --margin map:1%
gate run other truth -m map --margin 1% --test sequential
gate run other truth -m map --margin 0.1 --test max_t
gate run other truth -m map --test max_t
gate run other truth -m coverage@2 --margin 0.1 --items seen
gate systems truth -m map --margin 0.1
compare numbered truth -m map --model algo --baseline 7
compare run other truth -m map --unjudged bounds
report run other truth -o x.html --by user
report run other truth -o x.html -m coverage@2 --by country --items seen
sql -m map --unjudged bounds
sql -m num_ret --by day --schema run=user:int,item:int,rank:int
check judged truth --users all
check run truth --ties item
compare run truth -m rr
compare run scored truth -m rr
compare run none.csv truth -m rr
compare run none truth -m rr
compare run other truth -m rr --confidence 1e999
compare run other truth -m gauc
evalute run
helth run
per_user run
zz run
report run truth -o x.html --baselines c
evaluate run truth --segment c
evaluate run truth --relevent-at 4
evaluate run --qrels truth
evaluate run truth --k 10
health run --k 3
evaluate run truth -m rr run.parq
evaluate run truth -m rr none.csv
gate run other truth --margin map=2%
sql ndcg@10
evaluate run truth -m map --by user --user user --user item
evaluate run truth -m map --user a --user b
evaluate run run -m map
evaluate weird.csv truth -m map
gate run other truth -m map --margin x
health run truth --ties item
evaluate run truth -m coverage@2 --items thrice
"""


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
CASES = {
    case.name: case
    for listed in odd_input.cases().values()
    for case in listed
    if isinstance(case.gives, str) and options_of(case) is not None and case.name not in READ
}
LINES = CALLS.strip().splitlines()


def said_of(call):
    """Write the tables of a call or of an odd input into a folder, and run the command in it."""
    case = CASES.get(call)
    tables = {"run": case.run, "truth": case.truth} if case else TABLES
    words = ["evaluate", "run", "truth", *options_of(case)] if case else call.split()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name in tables.keys() & {*words}:
            tables[name].write_parquet(f"{name}.parquet")
        RUN.write_parquet("weird.csv")
        files = set() if words[0] == "sql" else tables.keys()
        names = {f"--by {name}" for name in files} | {f"--users {name}" for name in files}
        pairs = zip(["", *words], words, strict=False)
        return commands.said_by(
            [w + ".parquet" * (w in files and f"{v} {w}" not in names) for v, w in pairs]
        )


@pytest.mark.sample(4)
@pytest.mark.parametrize("call", LINES)
def test_errors_are_those_that_a_person_has_read(call):
    assert f"{call}\n    {said_of(call)}\n" in GOLDEN.read_text(encoding="utf-8")


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CASES)
def test_odd_input_is_refused_in_words_of_the_command(name):
    said = said_of(name)
    entry = f"{name}\n    {said}\n"
    assert said == CASES[name].gives or entry in GOLDEN.read_text(encoding="utf-8")


def golden():
    """Write the file: each call, and each odd input whose page names keywords or calls."""
    said = {call: said_of(call) for call in [*LINES, *CASES]}
    own = {name for name in CASES if said[name] == CASES[name].gives}
    return "".join(f"{call}\n    {text}\n" for call, text in said.items() if call not in own)


def test_what_the_caller_wrote_is_not_rewritten(tmp_path, monkeypatch):
    """Names of experiments, columns and groups may look like keywords or options."""
    monkeypatch.chdir(tmp_path)
    frame = RUN.with_columns(model=pl.lit("seed=1")).rename({"rank": "rank=x"})
    both = pl.concat([frame, frame.with_columns(model=pl.lit("by='day'"))])
    both.write_parquet("user=7.parquet")
    both.with_columns(pl.lit(None, pl.Int64).alias("rank=x")).write_parquet("null.parquet")
    TRUTH.write_parquet("truth.parquet")
    ask = "truth.parquet -m map --rank rank=x --baseline seed=3".split()
    assert commands.said_by(["compare", "user=7.parquet", *ask]) == (
        """baseline must be one of "by='day'", 'seed=1', not 'seed=3'"""
    )
    assert commands.said_by(["compare", "null.parquet", *ask]) == (
        "run, column 'rank=x': it is null in every row"
    )
    assert commands.said_by(["evaluate", "user=7.parquet", "truth.parquet", "-m", "map"]) == (
        "run: no column 'rank' for rank; it has 'user', 'item', 'rank=x', 'model'; name it with "
        "--rank, or name a score with --score"
    )
    found = commands.said_by(["evaluate", "truth=1.csv", "truth.parquet"])
    assert found == "truth=1.csv: no such file"
    value, day = "by='x=y'", "day='a=b'"
    groups = RUN.with_columns(pl.lit(value).alias(day))
    groups.with_columns(rank=0).write_parquet("zero.parquet")
    pl.concat([groups, groups]).write_parquet("twice.parquet")
    for name, said in (
        ("zero", "run, column 'rank': a rank that is not an integer ≥ 1: "),
        (
            "twice",
            f"run, column 'item': duplicate ({day}, user, item): name a column of folds or "
            f'days in --by after "{day}"; otherwise pass --duplicates first: ',
        ),
    ):
        for command in ("check", "evaluate"):
            got = commands.said_by([command, f"{name}.parquet", "truth.parquet", "--by", day])
            assert got.startswith(said)
            assert f'Offending row: {day}="{value}", user=1, item=10, rank=' in got


def test_an_error_keeps_what_it_says_to_each_reader():
    truth = pl.concat([TRUTH, TRUTH])
    with pytest.raises(rf.RankingDataError, match="grade: truth.group_by") as got:
        rf.check(RUN, truth=truth)
    with pytest.raises(rf.RankingDataError, match="grade: truth.groupby") as in_pandas:
        rf.check(RUN.to_pandas(), truth=truth.to_pandas())
    copies = []
    for own in (got.value, in_pandas.value):
        copies += [pickle.loads(pickle.dumps(own)), copy.deepcopy(own)]
        assert [(type(e), str(e)) for e in copies[-2:]] == [(rf.RankingDataError, str(own))] * 2
    for error in (got.value, in_pandas.value, *copies):
        said = errors.rendered(error, "command")
        assert "name the column in --by, or keep the highest grade. " in said
        assert "in by=, or keep the highest grade. " in errors.rendered(error, "sql")


def test_a_mismatch_of_long_enums_is_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
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
    assert commands.said_by("evaluate run.parquet truth.parquet -m map".split()) == text
    with pytest.raises(rf.RankingDataError) as error:
        rf.runs.stack({"a": run, "b": run.with_columns(pl.col("user").cast(pl.String))})
    assert "it is an Enum of 2,000 levels (number 1 is 'user 0') in run 'a'" in str(error.value)


if __name__ == "__main__":
    GOLDEN.write_text(golden(), encoding="utf-8")
