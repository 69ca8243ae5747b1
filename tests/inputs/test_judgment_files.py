"""Judgments in JSON: rows, Elasticsearch's _rank_eval, OpenSearch's judgmentRatings."""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

import rankframe as rf
import rankframe.trec

RUN = pl.DataFrame({"user": ["q1", "q1", "7"], "item": ["d2", "1", "d1"], "rank": [1, 2, 1]})
ELASTICSEARCH = {
    "requests": [
        {
            "id": "q1",
            "request": {"query": {"match": {"text": "shoes"}}},
            "ratings": [
                {"_index": "shop", "_id": "d2", "rating": 0},
                {"_index": "shop", "_id": 1, "rating": 3},
            ],
        },
        {"id": 7, "ratings": []},
    ],
    "metric": {"dcg": {"k": 10, "normalize": True}},
}
OPENSEARCH = {
    "name": "shop",
    "type": "IMPORT_JUDGMENT",
    "judgmentRatings": [
        {
            "query": "q1",
            "ratings": [{"docId": "d2", "rating": "0.000"}, {"docId": "1", "rating": "3.0"}],
        }
    ],
}
ROWS = [
    {"query": "q1", "docid": "d2", "rating": 0},
    {"query": "q1", "docid": "1", "rating": 3},
]
NAMED = [{"qid": "q1", "docno": "d2", "label": 0}, {"qid": "q1", "docno": 1, "label": 3}]
EXPECTED = [("q1", "d2", 0), ("q1", "1", 3)]


@pytest.fixture
def saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def save(content, name="judgments.json", indent=None):
        (tmp_path / name).write_text(json.dumps(content, indent=indent))
        return tmp_path / name

    return save


def printed(capsys):
    """Read the rows that the command printed, without the hash of their conventions."""
    rows = json.loads(capsys.readouterr().out)
    return [{name: row[name] for name in row if name != "conventions"} for row in rows]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("content", [ELASTICSEARCH, OPENSEARCH, ROWS], ids=["ES", "OS", "rows"])
def test_three_shapes_are_one_truth(saved, content, indent):
    path = saved(content, indent=indent)
    truth = rf.trec.read_judgments(path)
    assert truth.rows() == EXPECTED
    assert truth.schema == {"user": pl.String, "item": pl.String, "relevance": pl.Int64}
    packed = path.with_suffix(".json.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert rf.trec.read_judgments(str(packed)).equals(truth)


def test_rows_keep_their_other_columns_and_fractions(saved):
    rows = [{"qid": 1, "doc_id": 2, "grade": 0.5, "subtopic": "a"}]
    truth = rf.trec.read_judgments(saved(rows))
    assert truth.to_dicts() == [{"user": "1", "item": "2", "relevance": 0.5, "subtopic": "a"}]
    assert rf.trec.read_judgments(saved([{"user": 1, "item": 2}])).rows() == [("1", "2")]
    huge = {"requests": [{"id": "q", "ratings": [{"_id": "d", "rating": 10**30}]}]}
    assert rf.trec.read_judgments(saved(huge)).rows() == [("q", "d", 1e30)]
    half = {"judgmentRatings": [{"query": "q", "ratings": [{"docId": "d", "rating": "1.5"}]}]}
    assert rf.trec.read_judgments(saved(half)).rows() == [("q", "d", 1.5)]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("content", [ELASTICSEARCH, OPENSEARCH, NAMED], ids=["ES", "OS", "rows"])
def test_command_reads_them(saved, capsys, content, indent):
    from rankframe._command.main import main

    if content is NAMED:
        content = [{**row, "docno": str(row["docno"])} for row in content]
        run = RUN.rename({"user": "qid", "item": "docno"})
    else:
        run = RUN
    saved(content, indent=indent)
    run.filter(pl.col(run.columns[0]) == "q1").write_csv("run.csv")
    assert main(["evaluate", "run.csv", "judgments.json", "-m", "rr", "--json"]) == 0
    assert printed(capsys) == [{"users": 1, "rr": 0.5}]


def test_ids_of_a_csv_beside_it_are_text(saved, capsys):
    from rankframe._command.main import main

    requests = [{"id": "07", "ratings": [{"_id": "1", "rating": 1}]}]
    saved({"requests": requests})
    pl.DataFrame({"user": ["07"], "item": [1], "score": [0.5]}).write_csv("run.csv")
    assert main(["evaluate", "run.csv", "judgments.json", "-m", "rr", "--json"]) == 0
    assert printed(capsys) == [{"users": 1, "rr": 1.0}]


@pytest.mark.parametrize("kind", ["JSON", "TREC", "of the run"])
def test_ids_without_names_have_those_of_the_other_file(saved, capsys, kind):
    from rankframe._command.main import main

    saved(ELASTICSEARCH)
    run = RUN.rename({"user": "query", "item": "docid"}).head(2)
    run.write_csv("run.csv")
    files = ["run.csv", "judgments.json"]
    if kind == "TREC":
        Path("qrels.txt").write_text("q1 0 d2 0\nq1 0 1 3\n")
        files = ["run.csv", "qrels.txt"]
    if kind == "of the run":
        Path("run.txt").write_text("q1 Q0 d2 1 0.9 r\nq1 Q0 1 2 0.5 r\n")
        pl.DataFrame(ROWS).write_csv("judgments.csv")
        files = ["run.txt", "judgments.csv"]
    assert main(["evaluate", *files, "-m", "rr", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["rr"] == 0.5


def test_command_reads_the_table_of_quepid(saved, capsys):
    from rankframe._command.main import main

    pl.DataFrame(ROWS).write_csv("judgments.csv")
    run = RUN.rename({"user": "query", "item": "docid"}).head(2)
    run.write_csv("run.csv")
    assert main(["evaluate", "run.csv", "judgments.csv", "-m", "rr", "-m", "cg", "--json"]) == 0
    assert printed(capsys) == [{"users": 1, "rr": 0.5, "cg": 3.0}]


@pytest.mark.usefixtures("saved")
@pytest.mark.parametrize("user", ["query-id", "query", "user"])
def test_command_reads_the_files_of_beir(capsys, user):
    from rankframe._command.main import main

    item = {"query-id": "corpus-id", "query": "docid", "user": "item"}[user]
    truth = pl.DataFrame(ROWS).rename(
        {"query": "query-id", "docid": "corpus-id", "rating": "score"}
    )
    truth.write_csv("qrels.tsv", separator="\t")
    run = RUN.with_columns(score=1 / pl.col("rank")).drop("rank").head(2)
    run.rename({"user": user, "item": item}).write_csv("run.csv")
    assert main(["evaluate", "run.csv", "qrels.tsv", "-m", "rr", "-m", "cg", "--json"]) == 0
    assert printed(capsys) == [{"users": 1, "rr": 0.5, "cg": 3.0}]


def test_runs_of_dicts_take_the_names_of_quepid():
    run = rf.from_lists({"q1": ["d2", "1"]}, user="query", item="docid")
    assert rf.evaluate(run, "rr", truth=pl.DataFrame(ROWS)).row(0) == (1, 0.5)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"queries": [1]}, "'queries' is not one of 'requests', 'judgmentRatings'"),
        ({"requests": {}}, "requests is not a list"),
        ({"requests": [{"id": 1}]}, "requests[0].ratings is missing"),
        ({"requests": [{"ratings": [{"_id": 1, "rating": 1}]}]}, "requests[0].id is missing"),
        (
            {"requests": [{"id": 1, "ratings": [{"_id": 1, "rating": 1}, {"rating": 1}]}]},
            "requests[0].ratings[1]._id is missing",
        ),
        (
            {"judgmentRatings": [{"query": "a", "ratings": [{"docId": 1, "rating": "good"}]}]},
            "judgmentRatings[0].ratings[0].rating is 'good', not a number",
        ),
        (
            {"requests": [{"id": 1, "ratings": [{"_id": 1, "rating": float("nan")}]}]},
            "requests[0].ratings[0].rating is nan, not a number",
        ),
        (
            {"requests": [{"id": None, "ratings": [{"_id": 1, "rating": 1}]}]},
            "requests[0].id is None, not an id",
        ),
        ([1], "[0] is 1, not a row"),
    ],
)
def test_another_shape_names_file_field_and_the_shapes(saved, capsys, content, problem):
    from rankframe._command.main import main

    saved(content)
    with pytest.raises(rf.RankingDataError) as raised:
        rf.trec.read_judgments("judgments.json")
    assert str(raised.value).startswith(f"judgments.json: {problem}: judgments are a list of rows")
    RUN.write_csv("run.csv")
    assert main(["evaluate", "run.csv", "judgments.json", "-m", "rr"]) == 2
    assert f"judgments.json: {problem}: judgments are" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"user": 1},
        [{"user": [1], "item": 2}],
        [{"user": 1}],
        [{"qid": 1, "query_id": 2, "doc_id": 3}],
    ],
)
def test_files_without_rows_are_named(saved, content, refused):
    refused(rf.trec.read_judgments, saved(content))


def test_files_that_are_not_json_are_named(tmp_path, refused):
    (tmp_path / "a.json").write_text("{")
    refused(rf.trec.read_judgments, tmp_path / "a.json")


def test_id_of_two_indices_is_an_error(saved, capsys, refused):
    from rankframe._command.main import main

    ratings = [{"_index": name, "_id": "1", "rating": 3} for name in ("shop", "blog")]
    saved({"requests": [{"id": "q", "ratings": ratings}]})
    told = "requests[0].ratings[1]._index is 'blog', and that of another rating of this query and"
    refused(rf.trec.read_judgments, "judgments.json")

    RUN.write_csv("run.csv")
    assert main(["evaluate", "run.csv", "judgments.json", "-m", "rr"]) == 2
    assert told in " ".join(capsys.readouterr().err.split())
    requests = [{"id": name, "ratings": [ratings[0]]} for name in "ab"]
    assert rf.trec.read_judgments(saved({"requests": requests})).height == 2


def test_odd_files_are_read_or_named(tmp_path, refused):
    file = tmp_path / "a.json"
    file.write_text(json.dumps(ROWS), encoding="utf-16")
    assert rf.trec.read_judgments(file).rows() == EXPECTED
    file.write_text("[" * 100_000)
    refused(rf.trec.read_judgments, file)
    refused(rf.trec.read_judgments, ELASTICSEARCH)
