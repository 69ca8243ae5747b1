"""What the README prints is what its code prints, and it names every metric."""

import math
import re
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import polars as pl
import pytest

import rankframe as rf
from rankframe._labels import METRICS

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(
    r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", README, re.DOTALL | re.MULTILINE
)


# Polars 1 asks to be told what explode does with an empty list: the page has none
explodes = pytest.mark.filterwarnings("ignore:In Polars 2.0, the default:DeprecationWarning")


@explodes
def test_the_code_prints_what_is_shown():
    assert README.count("```python") == len(BLOCKS) > 2
    names: dict[str, object] = {}
    for code, shown in BLOCKS:
        if ".style" in code and find_spec("great_tables") is None:
            continue
        printed = StringIO()
        with redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == shown


def test_every_metric_is_in_the_table():
    table = README.split("## Metrics")[1].split("## Conventions")[0]
    for name in METRICS:
        assert f"`{name}`" in table


def test_every_public_name_is_told():
    import rankframe as rf

    for name in rf.__all__:
        if name not in ("RankFrame", "metric"):
            assert name in README, name


def test_the_speed_that_is_told_was_measured():
    """The README's ratios, and the benchmarks' own table of targets, are those of the results."""
    folder = Path(__file__).parents[1] / "benchmarks"
    results = pl.read_csv(folder / "results.csv").filter(suite="five")
    names = ["rectools", "pytrec_eval", "replay", "ranx", "pyspark"]
    told = {}
    for data in [("a", "integer"), ("b", "integer"), ("c", "integer"), ("c", "string")]:
        cell = results.filter(shape=data[0], ids=data[1])
        ratios = {row["peer"]: float(f"{row['ratio']:.2g}") for row in cell.to_dicts()}
        told[data] = [next(r for peer, r in ratios.items() if peer.startswith(n)) for n in names]
    page = (folder / "README.md").read_text()
    lines = page.split("| times as long as rankframe")[1].splitlines()[2:7]
    table = [[float(cell) for cell in line.split("|")[3:-1]] for line in lines]
    assert table == [list(row) for row in zip(*told.values(), strict=True)]
    assert all(ratio > 1 for row in table for ratio in row)  # "ahead of six libraries"
    rectools, pytrec_eval, replay, ranx, spark = (f"{ratio:g}" for ratio in told["a", "integer"])
    said = f"RecTools takes {rectools} times as long, RePlay {replay}, pytrec_eval {pytrec_eval}, "
    said += f"Spark's RankingMetrics {spark} and ranx, warm, {ranx}."
    assert said in README.replace("\n", " ")
    largest = re.search(r"\| plain \| 300 \| ([\d.]+) \| [\d.]+ \| (\d+) \|", page)
    assert largest
    seconds, memory = map(float, largest.groups())
    assert f"300 M rows of Parquet in {seconds:.0f} s and {memory / 1000:.1f} GB" in README


GRADES = {"1": {"a": 1, "b": 1}, "2": {"c": 1}}
RUN = {"1": {"a": 3.0, "x": 2.0, "b": 1.0}, "2": {"y": 2.0, "c": 1.0}}


def coming_from():
    table = README.split("| from | there | here |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| (\w+) \| `.*?` \| `(.*)` \|$", table, re.MULTILINE)
    return dict(rows)


def test_there_is_a_line_for_each():
    assert list(coming_from()) == ["ranx", "pytrec_eval", "RecTools", "RePlay", "Spark"]


@explodes
@pytest.mark.parametrize("tool", coming_from())
def test_a_line_takes_the_tables_of_the_tool(tool):
    pytest.importorskip("pandas")
    import rankframe.pandas  # noqa: F401

    run, truth = rf.from_dict(RUN), rf.from_dict(GRADES, score="relevance")
    liked = truth.drop("relevance")
    lists = run.group_by("user", maintain_order=True).agg(pl.col("item").alias("prediction"))
    theirs = {"user": "user_id", "item": "item_id"}
    names = {
        "rf": rf,
        "run": RUN,
        "qrels": GRADES,
        "reco": run.rank.with_rank().drop("score").rename(theirs).to_pandas(),
        "interactions": liked.rename(theirs).to_pandas(),
        "recs": run.rename({"user": "query_id", "item": "item_id", "score": "rating"}),
        "test": liked.rename({"user": "query_id", "item": "item_id"}),
        "lists": lists,
        "labels": liked.group_by("user").agg(label="item"),
    }
    got = eval(coming_from()[tool], names)
    # of user 1 the hits are at ranks 1 and 3, of user 2 at rank 2
    ap = [(1 + 2 / 3) / 2, 1 / 2]
    discount = {rank: 1 / math.log2(rank + 1) for rank in (1, 2, 3)}
    ndcg = [(discount[1] + discount[3]) / (discount[1] + discount[2]), discount[2]]
    label = got.columns[-1]
    mean = float(pl.Series(got[label]).mean())
    assert mean == pytest.approx(sum(ap if "map" in label else ndcg) / 2, abs=1e-12)


def test_as_many_numbers_of_trec_eval_are_compared_as_it_says(shared):
    import test_trec_eval as compared

    every = [
        compared.expected_values(shared, name, file)
        for name in compared.DATA_SETS
        for file in compared.OPTIONS
    ]
    numbers = sum(len(expected) for expected, _ in every)
    measures = {measure for _, measures in every for measure in measures}
    assert f"{numbers:,} numbers of {len(measures)} measures" in README


def test_what_it_links_to_is_there():
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", README)
    assert "notebooks/quickstart.svg" in links
    for link in links:
        assert (Path(__file__).parents[1] / link).exists(), link
    headings = re.findall(r"^#+ (.+)$", README, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", README)) <= anchors
