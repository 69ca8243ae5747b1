"""The common names of columns are used where only one name fits."""

import polars as pl
import pytest
from kinds import eager, given
from polars.testing import assert_frame_equal
from two_models import assert_equal

import rankframe as rf

RUN = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
SCORED = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "score": [0.5, 0.9, 0.1]})
TRUTH = pl.DataFrame({"user": [1, 2, 3], "item": [8, 7, 9], "relevance": [2, 1, 1]})
METRICS = ["ndcg@2", "rr"]
PLAIN = rf.per_user(RUN, *METRICS, truth=TRUTH)
USERS = ["user_id", "userId", "query_id", "qid", "query-id", "query", "question"]
ITEMS = ["item_id", "itemId", "doc_id", "docid", "docno", "movieId", "corpus-id"]
ITEMS += ["doc", "document", "passage"]


def renamed(*names):
    """Give the run and the truth with other names for user and item."""
    new = dict(zip(["user", "item"], names, strict=True))
    return RUN.rename(new), TRUTH.rename(new)


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("user", USERS)
def test_ids_are_found_and_keep_their_names(user, item):
    run, truth = renamed(user, item)
    got = rf.per_user(run, *METRICS, truth=truth)
    assert got.columns == [user, *METRICS]
    assert_equal(got.rename({user: "user"}), PLAIN)
    assert rf.judge(run, truth).columns == [user, item, "rank", "relevance"]


@pytest.mark.parametrize("kind", ["lazy", "pandas", "mixed"])
def test_names_are_found_in_every_kind_of_frame(kind):
    run, truth = renamed("user_id", "item_id")
    of_truth = given(truth, "pandas" if kind == "pandas" else "lazy")
    got = eager(rf.per_user(given(run, kind), *METRICS, truth=of_truth))
    assert_frame_equal(got.rename({"user_id": "user"}), PLAIN)


@pytest.mark.parametrize(
    ("of_run", "of_truth", "options"),
    [
        (("user", "item"), ("user_id", "movie_id"), {}),
        (("user_id", "item"), ("userId", "item"), {}),
        (("uid", "mid"), ("user", "item"), {"user": "uid", "item": "mid"}),
        (("uid", "item"), ("user", "item"), {}),
        (("user", "item"), ("u", "item"), {}),
        (("userId", "movieId"), ("user_id", "movie_id"), {}),
    ],
)
def test_names_that_differ_have_a_cure_that_works_when_pasted(of_run, of_truth, options):
    run = RUN.rename(dict(zip(["user", "item"], of_run, strict=True)))
    truth = TRUTH.rename(dict(zip(["user", "item"], of_truth, strict=True)))
    for kind in (pl.DataFrame.lazy, pl.DataFrame.to_pandas):
        with pytest.raises(rf.RankingDataError) as raised:
            rf.evaluate(kind(run), "ap", truth=truth, **options)
        pasted = eval(f"dict({str(raised.value).rpartition(': pass ')[2]})")
        got = rf.per_user(run, *METRICS, truth=truth, **{**options, **pasted})
        assert got.rename({of_run[0]: "user"}).equals(PLAIN)


@pytest.mark.parametrize("name", ["rel", "grade", "label"])
def test_relevance_of_a_truth_is_found(name):
    got = rf.per_user(RUN, *METRICS, truth=TRUTH.rename({"relevance": name}))
    assert_equal(got, PLAIN)


def test_label_of_the_run_is_a_column_like_any_other():
    truth = TRUTH.rename({"relevance": "label"})
    run = RUN.with_columns(label=pl.lit(9))
    assert_equal(rf.per_user(run, *METRICS, truth=truth), PLAIN)
    assert rf.judge(run, truth).columns == ["user", "item", "rank", "relevance", "label"]


def test_prediction_and_position_place_the_items():
    expected = rf.per_user(SCORED, *METRICS, truth=TRUTH)
    got = rf.per_user(SCORED.rename({"score": "prediction"}), *METRICS, truth=TRUTH)
    assert_equal(got, expected)
    assert not got.equals(PLAIN)
    got = rf.per_user(RUN.rename({"rank": "position"}), *METRICS, truth=TRUTH)
    assert_equal(got, PLAIN)
    ranked = rf.with_rank(SCORED.rename({"score": "prediction"}))
    assert ranked["rank"].to_list() == [2, 1, 1]
    gaps = pl.DataFrame({"qid": [1, 1], "docno": ["a", "b"], "position": [3, 9]})
    assert rf.with_rank(gaps, close_gaps=True).rows() == [(1, "a", 1), (1, "b", 2)]


def test_verbs_find_common_names():
    run, truth = renamed("qid", "docno")
    run, other = run.with_columns(model=pl.lit("a")), run
    history = other.select("qid", "docno").unique()
    plain = RUN.with_columns(model=pl.lit("a"))
    back = {"qid": "user", "docno": "item"}
    calls = [
        (lambda r, t, o: rf.evaluate(r, "ap", truth=t)),
        (lambda r, t, o: rf.summarize(r, "ap", truth=t)),
        (lambda r, t, o: rf.metrics.rows(rf.judge(r, t))),
        (lambda r, t, o: rf.metrics.rows(r)),
        (lambda r, t, o: rf.stats.exposure(r, of="shown", target=None)),
        (lambda r, t, o: rf.runs.rbo(r, o)),
        (lambda r, t, o: rf.runs.overlap(r, o, k=1)),
        (lambda r, t, o: rf.runs.fuse(r)),
        (lambda r, t, o: rf.check(r, truth=t)),
        (lambda r, t, o: rf.evaluate(rf.judge(r.lazy(), t), "ap").collect()),
        (lambda r, t, o: rf.evaluate(r, "unseen@1", history=o.select(o.columns[:2]).unique())),
        (lambda r, t, o: rf.compare({"a": o, "b": o}, "rr", truth=t, details=True)),
    ]
    assert history.height == 3
    for call in calls:
        got = call(run, truth, other)
        assert_frame_equal(got.rename(back, strict=False), call(plain, TRUTH, RUN))
    lists = pl.DataFrame({"qid": [1], "docno": [["x", "y"]]})
    assert rf.from_lists(lists).rows() == [(1, "x", 1), (1, "y", 2)]


def test_plain_names_and_keywords_go_first():
    both = RUN.with_columns(user_id=pl.lit(9), label=pl.lit(5), position=pl.lit(1))
    assert_equal(rf.per_user(both, *METRICS, truth=TRUTH), PLAIN)
    truth = TRUTH.with_columns(grade=pl.lit(0), rel=pl.lit(0), rating=pl.lit(5))
    assert_equal(rf.per_user(RUN, *METRICS, truth=truth), PLAIN)
    run, truth = renamed("qid", "docno")
    named = run.with_columns(user_id=pl.lit(9)), truth.with_columns(user_id=pl.lit(9))
    got = rf.per_user(named[0], *METRICS, truth=named[1].drop("user_id"), user="qid")
    assert_equal(got.rename({"qid": "user"}), PLAIN)
    scored = SCORED.with_columns(position=pl.Series([1, 2, 1]))
    expected = rf.per_user(SCORED, *METRICS, truth=TRUTH)
    assert_equal(rf.per_user(scored, *METRICS, truth=TRUTH), expected)


@pytest.mark.parametrize(
    ("user", "texts"),
    [("user", ["query", "query_id"]), ("query_id", ["query"]), ("qid", ["query", "question"])],
)
def test_names_of_texts_give_way_to_plain_names_and_names_of_ids(user, texts):
    both = [
        frame.rename({"user": user}).with_columns(pl.lit("what?").alias(name) for name in names)
        for frame, names in ((RUN, texts), (TRUTH, texts[:1]))
    ]
    assert rf.per_user(both[0], *METRICS, truth=both[1])[user].to_list() == [1, 2, 3]
    judged = rf.judge(RUN, TRUTH).rename({"user": user, "item": "docno"})
    judged = judged.with_columns(doc=pl.lit("a"), document=pl.lit("b"), query=pl.lit("c"))
    assert rf.per_user(judged, *METRICS)[user].to_list() == [1, 2, 3]


def test_names_of_texts_are_not_taken():
    run = RUN.rename({"user": "query"}).with_columns(question=pl.lit("what?"))
    with pytest.raises(rf.RankingDataError, match="perhaps 'query' or 'question' is meant$"):
        rf.evaluate(run, "ap", truth=TRUTH.rename({"user": "query"}))


@pytest.mark.parametrize(
    "names",
    [("query", "docid", "rating"), ("query-id", "corpus-id", "score")],
    ids=["Quepid", "BEIR"],
)
@pytest.mark.parametrize("placed", ["rank", "score"])
def test_judgments_of_quepid_and_beir_are_read_as_they_are(names, placed):
    user, item, grade = names
    run = SCORED if placed == "score" else RUN
    got = rf.per_user(
        run.rename({"user": user, "item": item}),
        *METRICS,
        truth=TRUTH.rename({"user": user, "item": item, "relevance": grade}),
    )
    assert_equal(got.rename({user: "user"}), rf.per_user(run, *METRICS, truth=TRUTH))


def test_column_of_by_is_no_user():
    run = RUN.rename({"user": "user_id"}).with_columns(qid=pl.lit("q"))
    truth = TRUTH.rename({"user": "user_id"})
    got = rf.per_user(run, *METRICS, truth=truth, by="qid")
    assert got.columns == ["qid", "user_id", *METRICS]
    segments = truth.with_columns(qid=pl.col("user_id") % 2)
    got = rf.evaluate(run.drop("qid"), *METRICS, truth=segments, by="qid")
    assert got["qid"].to_list() == [0, 1]


TWO = RUN.rename({"user": "user_id"}).with_columns(qid=pl.lit(1))


@pytest.mark.parametrize(
    ("run", "truth", "message"),
    [
        (
            TWO,
            TRUTH.rename({"user": "user_id"}),
            "run: no column 'user' for user; it has 'user_id', 'item', 'rank', 'qid'; name it with "
            "user=; perhaps 'user_id' or 'qid' is meant",
        ),
        (
            RUN.rename({"user": "user_id"}),
            TRUTH.rename({"user": "userId"}),
            "run: no column 'user' for user; it has 'user_id', 'item', 'rank'; the truth has "
            "'userId': pass user='user_id', truth_user='userId'",
        ),
        (
            RUN.rename({"user": "user_id"}),
            TRUTH,
            "run: no column 'user' for user; it has 'user_id', 'item', 'rank'; the truth has "
            "'user': pass user='user_id', truth_user='user'",
        ),
        (
            RUN.rename({"user": "user_id"}),
            TRUTH.rename({"user": "uid"}),
            "truth: no column 'user_id' for user; it has 'uid', 'item', 'relevance'; the run has "
            "'user_id': pass truth_user='uid'",
        ),
        (
            RUN.rename({"rank": "position"}).with_columns(prediction=1.0),
            TRUTH,
            "run: no column 'rank' for rank; it has 'user', 'item', 'position', 'prediction'; name "
            "it with rank=, or name a score with score=, or call with_rank; perhaps 'position' or "
            "'prediction' is meant",
        ),
        (
            RUN,
            TRUTH.rename({"relevance": "grade"}).with_columns(label=1),
            "truth: no column 'relevance' for relevance; it has 'user', 'item', 'grade', 'label'; "
            "name it with relevance=; perhaps 'grade' or 'label' is meant",
        ),
        (
            RUN,
            TRUTH.with_columns(pl.col("relevance").cast(pl.String)).rename({"relevance": "label"}),
            "truth, column 'label': String cannot be a relevance: cast it to numbers or booleans, "
            "or rename it if it is not one",
        ),
    ],
)
def test_names_are_not_taken_where_two_would_fit(run, truth, message):
    for kind in (pl.DataFrame.lazy, pl.DataFrame.clone):
        with pytest.raises(rf.RankingDataError) as raised:
            rf.evaluate(kind(run), "ap", truth=truth)
        assert str(raised.value) == message


@pytest.mark.parametrize("name", ["rel", "grade", "label"])
def test_relevance_of_a_judged_table_is_found(name):
    judged = rf.judge(RUN, TRUTH).rename({"relevance": name})
    assert_equal(rf.per_user(judged, *METRICS), PLAIN)
    assert_equal(rf.per_user(judged.lazy(), *METRICS).collect(), PLAIN)
    both = judged.with_columns(judged[name].alias("rel" if name == "label" else "label"))
    with pytest.raises(rf.RankingDataError, match="no column 'relevance' for relevance"):
        rf.per_user(both, *METRICS)


def test_metrics_of_lists_take_a_run_with_a_label_for_a_run():
    run = RUN.with_columns(label=1)
    price = (pl.col("label").filter("listed").sum()).alias("labels")
    assert rf.per_user(run, price)["labels"].to_list() == [2, 1]
    history = pl.DataFrame({"user": [1], "item": [7]})
    assert rf.evaluate(run.with_columns(label=0), "unseen@1", history=history)["users"].item() == 2


@pytest.mark.parametrize("name", ["judgement", "Label", "relevance_score"])
@pytest.mark.parametrize("dtype", [pl.Int64, pl.Float64, pl.Boolean])
def test_grades_under_another_name_are_not_left_unread(name, dtype):
    truth = TRUTH.select("user", "item", pl.lit(1).cast(dtype).alias(name))
    with pytest.raises(rf.RankingDataError, match=f"^truth, column '{name}': grades but no rel"):
        rf.evaluate(RUN, "ap", truth=truth)
    liked = rf.evaluate(RUN, "ap", truth=truth.drop(name))
    assert_equal(rf.evaluate(RUN, "ap", truth=truth, relevance=name), liked)
    text = truth.with_columns(pl.lit("good").alias(name))
    assert_equal(rf.evaluate(RUN, "ap", truth=text), liked)


@pytest.mark.parametrize("name", ["rating", "stars"])
@pytest.mark.parametrize("dtype", [pl.Int64, pl.Float64])
def test_ratings_are_not_likes_by_default(name, dtype):
    truth = TRUTH.select("user", "item", pl.lit(1, dtype).alias(name))
    with pytest.raises(rf.RankingDataError) as raised:
        rf.evaluate(RUN, "ap", truth=truth)
    said = str(raised.value)
    assert said.startswith(f"truth, column '{name}': ratings but no relevance")
    assert f"pass relevance='{name}' and relevant_at=" in said
    assert said.endswith(f"if every rated item is liked, drop the column: truth.drop('{name}')")
    liked = rf.evaluate(RUN, "ap", truth=truth.drop(name))
    assert_equal(rf.evaluate(RUN, "ap", truth=truth, relevance=name), liked)
    text = truth.with_columns(pl.lit("good").alias(name))
    assert_equal(rf.evaluate(RUN, "ap", truth=text), liked)
    assert rf.evaluate(RUN, "ap", truth=truth, by=name)["ap"].item() == liked["ap"].item()
    scored = RUN.rename({"rank": name}).with_columns(pl.col(name).cast(dtype))
    assert rf.evaluate(scored, "rr", truth=truth, score=name)["rr"].item() > 0


def test_names_of_a_call_are_a_dict():
    names = {"user": "uid", "item": "sku"}
    run, truth = (f.rename({"user": "uid", "item": "sku"}) for f in (RUN, TRUTH))
    got = rf.per_user(run, *METRICS, truth=truth, **names)
    assert_equal(got.rename({"uid": "user"}), PLAIN)


def test_plan_of_common_names_is_remembered():
    run, truth = renamed("user_id", "item_id")
    judged = rf.judge(run.lazy(), truth.lazy())
    remembered = judged.rank.evaluate("ap").explain(engine="streaming")
    assert "FULL" not in remembered


# ------------------------------------------------------------------ the command


def printed(capsys, command):
    from rankframe._command.main import main

    code = main([str(word) for word in command])
    shown = capsys.readouterr()
    return (shown.out if code == 0 else shown.err), code


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_command_finds_them(tmp_path, capsys, suffix):
    names = {"user": "qid", "item": "docno", "score": "prediction", "relevance": "label"}
    seen = pl.DataFrame({"user": [1], "item": [8]})
    for name, table in {"a": SCORED, "b": SCORED, "t": TRUTH, "seen": seen}.items():
        for folder, frame in [("plain", table), ("found", table.rename(names, strict=False))]:
            (tmp_path / folder).mkdir(exist_ok=True)
            getattr(frame, f"write_{suffix}")(tmp_path / folder / f"{name}.{suffix}")
    for words in (
        ["evaluate", "a", "t", "-m", "ndcg@2", "-m", "ap"],
        ["evaluate", "a", "t", "-m", "ndcg@2", "--ties", "expected"],
        ["evaluate", "a", "t", "-m", "rr", "--exclude", "seen"],
        ["compare", "a", "b", "t", "-m", "ndcg@2"],
    ):
        shown = []
        for folder in ("plain", "found"):
            files = {
                name: tmp_path / folder / f"{name}.{suffix}" for name in ("a", "b", "t", "seen")
            }
            shown.append(printed(capsys, [files.get(word, word) for word in words]))
        assert shown[0] == shown[1]
        assert shown[0][1] == 0


@pytest.mark.parametrize(("value", "code"), [("4.5", 2), ("good", 0)])
def test_command_takes_no_ratings_for_likes(tmp_path, capsys, value, code):
    RUN.write_csv(tmp_path / "run.csv")
    TRUTH.select("user", "item", rating=pl.lit(value)).write_csv(tmp_path / "truth.csv")
    files = [tmp_path / "run.csv", tmp_path / "truth.csv"]
    said, got = printed(capsys, ["evaluate", *files, "-m", "ap"])
    assert got == code
    assert ("truth, column 'rating': ratings but no relevance" in said) == (code == 2)
