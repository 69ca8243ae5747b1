"""Several columns as one user, against a user of concatenated text; other names in the truth."""

import pickle

import polars as pl
import pytest
from kinds import given
from two_models import assert_equal

import rankframe as rf

ODD = ["en", 'd"e', "f\\r", "é, 1", "{}", "a b", "a"]
KEYS = [(wiki, session) for wiki in ODD for session in (2, 10, -5)]
RUN = (
    pl.DataFrame(
        [
            {"wiki": wiki, "session": session, "item": item, "rank": rank, "model": model}
            for model in ("old", "new")
            for place, (wiki, session) in enumerate(KEYS[:-1])
            for rank, item in enumerate("abcd"[place % 3 :] + "xy"[: place % 2], 1)
        ]
    )
    .with_columns(
        pl.when(model="new")
        .then((pl.col("rank") * 7 + 3) % 4 + 1 + pl.col("rank") // 5 * 4)
        .otherwise("rank")
        .alias("rank")
    )
    .unique(["model", "wiki", "session", "rank"], maintain_order=True)
)
TRUTH = pl.DataFrame(
    [
        {"wiki": wiki, "session": session, "item": item, "relevance": grade}
        for place, (wiki, session) in enumerate(KEYS[1:])
        for grade, item in enumerate("adc"[: place % 3 + 1])
    ]
)
USER = ["wiki", "session"]
LABELS = ["ndcg@2", "map", "recall@1"]


def text_of(frame):
    text = pl.format("{}|{}", "wiki", "session").alias("user")
    return frame.with_columns(text).drop(USER)


def as_form(form, *frames):
    return [given(frame, form) for frame in frames]


def polars(frame):
    is_polars = isinstance(frame, pl.DataFrame | pl.LazyFrame)
    return frame.lazy().collect() if is_polars else pl.from_pandas(frame)


FORMS = ["eager", "lazy", "pandas"]


@pytest.mark.parametrize("form", FORMS)
def test_per_user_is_that_of_text(form):
    run, truth = as_form(form, RUN, TRUTH)
    got = polars(rf.per_user(run, LABELS, truth=truth, user=USER))
    assert type(rf.per_user(run, LABELS, truth=truth, user=USER)) is type(run)
    assert got.columns == ["model", *USER, *LABELS]
    assert got.schema["session"] == pl.Int64
    expected = rf.per_user(text_of(RUN), LABELS, truth=text_of(TRUTH))
    assert_equal(text_of(got).select(expected.columns).sort("model", "user"), expected)
    keys = got.filter(model="old").select(USER).rows()
    assert keys == sorted(keys)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("verb", ["evaluate", "summarize", "compare", "gate"])
def test_means_are_those_of_text(verb, form):
    run, truth = as_form(form, RUN, TRUTH)
    more = {"margin": 0.1} if verb == "gate" else {}
    more |= {"baseline": "old"} if verb in ("gate", "compare") else {}
    verb = getattr(rf, verb)
    got = polars(verb(run, *LABELS, truth=truth, user=USER, **more))
    expected = polars(
        verb(*as_form(form, text_of(RUN)), *LABELS, truth=as_form(form, text_of(TRUTH))[0], **more)
    )
    floats = [name for name, dtype in expected.schema.items() if dtype.is_float()]
    assert got.drop(floats).equals(expected.drop(floats))
    for name in floats:
        assert got[name].to_list() == pytest.approx(expected[name].to_list(), nan_ok=True)


@pytest.mark.parametrize("form", FORMS)
def test_tables_have_the_columns(form):
    run, truth = as_form(form, RUN.filter(model="old").drop("model"), TRUTH)
    judged = polars(rf.judge(run, truth, user=USER))
    assert judged.columns == [*USER, "item", "rank", "relevance"]
    plain = rf.judge(text_of(RUN.filter(model="old").drop("model")), text_of(TRUTH))
    got = text_of(judged).select(plain.columns)
    assert got.sort(plain.columns).equals(plain.sort(plain.columns))
    assert_equal(rf.evaluate(judged, LABELS, user=USER), rf.evaluate(plain, LABELS))
    scored = (
        RUN.filter(model="old").drop("model", "rank").with_columns(score=pl.int_range(pl.len()) % 7)
    )
    ranked = polars(rf.with_rank(*as_form(form, scored), user=USER))
    assert ranked.drop("rank").equals(scored)
    assert ranked["rank"].to_list() == rf.with_rank(text_of(scored))["rank"].to_list()
    if form != "lazy":
        assert polars(rf.check(run, truth=truth, user=USER)).equals(polars(run))
    counts = polars(rf.health(run, truth=truth, user=USER)).select("what", "count")
    expected = rf.health(text_of(RUN.filter(model="old").drop("model")), truth=text_of(TRUTH))
    assert counts.equals(expected.select("what", "count"))


def test_beside_tables_dicts_of_runs_charts_and_reports():
    seen = RUN.filter(pl.col("rank") == 1, model="old").select(*USER, "item")
    runs = {name: RUN.filter(model=name).drop("model") for name in ("old", "new")}
    texts = {name: text_of(run) for name, run in runs.items()}
    got = rf.evaluate(runs, LABELS, truth=TRUTH, exclude=seen, user=USER)
    assert_equal(got, rf.evaluate(texts, LABELS, truth=text_of(TRUTH), exclude=text_of(seen)))
    assert rf.runs.rbo(runs["old"], runs["new"], user=USER).columns[:3] == [*USER, "rbo"]
    report = rf.report(runs, "ndcg@2", truth=TRUTH, baseline="old", user=USER)
    found = report.verdict
    assert found == rf.report(texts, "ndcg@2", truth=text_of(TRUTH), baseline="old").verdict
    assert rf.plot.per_user(runs, "ndcg@2", truth=TRUTH, user=USER).to_dict()


@pytest.mark.parametrize("form", FORMS)
def test_names_in_the_truth_may_differ(form):
    expected = rf.per_user(RUN, LABELS, truth=TRUTH, user=USER)
    names = {"wiki": "w", "session": "s", "item": "page"}
    run, truth = as_form(form, RUN, TRUTH.rename(names))
    got = rf.per_user(run, LABELS, truth=truth, user=USER, truth_user=["w", "s"], truth_item="page")
    assert_equal(polars(got), expected)
    run, truth = as_form(
        form,
        text_of(RUN).rename({"user": "qid"}),
        text_of(TRUTH).rename({"user": "id", "item": "d"}),
    )
    got = rf.evaluate(run, LABELS, truth=truth, truth_user="id", truth_item="d")
    assert_equal(polars(got), rf.evaluate(text_of(RUN), LABELS, truth=text_of(TRUTH)))


NARROW = TRUTH.with_columns(pl.col("session").cast(pl.Int8))
OTHER = TRUTH.with_columns(pl.col("session").cast(pl.String))
REFUSALS = [
    ({"user": ["wiki", "id"]}, "run: no column 'id' for user; it has 'wiki'"),
    ({"user": ["wiki", "wiki"]}, "user: column 'wiki' is named twice"),
    ({"user": []}, "user= must be the name of a column, or a list of names, not []"),
    ({"user": USER, "by": "wiki"}, "by='wiki' names a column of user=: copy it"),
    ({"user": USER, "truth": OTHER}, "it is Int64 in one table and String in the truth: cast one"),
    ({"user": USER, "truth": {"q": {"a"}}}, "truth: several columns of user= need a frame, not di"),
    ({"user": USER, "truth_user": "w"}, "name as many columns"),
    ({"user": USER, "truth_item": "no"}, "truth: no column 'no', but truth_item='no': it has"),
    ({"truth": None, "truth_item": "i"}, "truth_item='i' names a column of the truth: pass truth="),
]


@pytest.mark.parametrize(("options", "message"), REFUSALS)
def test_columns_that_cannot_be_a_user_are_named(options, message):
    with pytest.raises((TypeError, ValueError)) as raised:
        rf.evaluate(RUN, "rr", **{"truth": TRUTH, **options})
    assert message in str(raised.value)


def test_integers_of_any_size_match_and_nulls_are_refused(refused):
    expected = rf.evaluate(RUN, LABELS, truth=TRUTH, user=USER)
    assert_equal(rf.evaluate(RUN, LABELS, truth=NARROW, user=USER), expected)
    gap = RUN.with_columns(pl.when(pl.col("session") != 2).then("session"))
    refused(rf.evaluate, gap, "rr", truth=TRUTH, user=USER)


@pytest.mark.parametrize("form", FORMS)
def test_meters_add_up_users_of_several_columns(form):
    seen = RUN.filter(pl.col("rank") == 1, model="old").select(*USER, "item")
    names = {"truth_user": ["w", "session"], "truth_item": "page"}
    metrics = [*LABELS, "err(max_grade=3)"]
    meters = [rf.Meter(metrics, user=USER, exclude=seen, **names) for _ in range(2)]
    for wiki in ODD:
        run, truth = (frame.filter(wiki=wiki) for frame in (RUN, TRUTH))
        run, truth = as_form(form, run, truth.rename({"wiki": "w", "item": "page"}))
        meters[wiki > "c"].update(run, truth)
        again = rf.RankingDataError, "'wiki and session': a user is in two batches"
        with pytest.raises(again[0], match=again[1]):
            meters[wiki > "c"].update(run, truth)
    meters[0].merge(pickle.loads(pickle.dumps(meters[1])))
    got = polars(meters[0].compute())
    excluded = {"exclude": text_of(seen)}
    assert got.equals(rf.evaluate(text_of(RUN), metrics, truth=text_of(TRUTH), **excluded))
    other = rf.Meter(metrics, user=USER, **names)
    batches = [frame.with_columns(pl.col("session").cast(pl.String)) for frame in (RUN, TRUTH)]
    other.update(batches[0], batches[1].rename({"wiki": "w", "item": "page"}))
    with pytest.raises(rf.RankingDataError, match="Int64 in one table and String in the other me"):
        meters[0].merge(other)
    run, truth = (frame.filter(wiki="en") for frame in batches)
    with pytest.raises(rf.RankingDataError, match="it is Int64 in one table and String in the run"):
        meters[1].update(run, truth.rename({"wiki": "w", "item": "page"}))


@pytest.mark.parametrize("form", FORMS)
def test_lists_of_users_of_several_columns(form):
    keys = [*USER, "model"]
    lists = RUN.sort("rank").group_by(keys, maintain_order=True).agg("item")
    got = polars(rf.from_lists(*as_form(form, lists), user=USER, by="model"))
    assert got.columns == [*keys, "item", "rank"]
    assert text_of(got).equals(
        rf.from_lists(text_of(lists), by="model").select(text_of(got).columns)
    )
    wanted = lists.filter(model="old").drop("model").rename({"item": "found"})
    wanted = wanted.join(TRUTH.group_by(USER).agg("item"), on=USER)
    roles = {"item": "found", "truth": "item"}
    got = polars(rf.from_lists(*as_form(form, wanted), user=USER, **roles))
    expected = rf.from_lists(text_of(wanted), user="user", **roles)
    assert rf.evaluate(got, LABELS, user=USER).equals(rf.evaluate(expected, LABELS))
    assert text_of(got).select(expected.columns).equals(expected)
    with pytest.raises(TypeError, match="run 'q': several columns of user= need a frame, not list"):
        rf.from_lists({"q": ["a"]}, user=USER)
