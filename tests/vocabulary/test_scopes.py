"""Which rows a metric reduces: relevant ones, judged ones, or the whole list."""

import random
import warnings

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from two_models import assert_equal

import rankframe as rf
from rankframe._request import registry
from rankframe._request.registry import COLUMNS, reading_of

LISTED, RANK, POP = pl.col("listed"), pl.col("rank"), pl.col("popularity")
MEAN = POP.filter(LISTED & (RANK <= 10)).mean().alias("pop@10")
SHARE = (POP < 5).filter(LISTED & (RANK <= 3)).mean().alias("long tail@3")
#: R less the items of the list: its rows are those of the list, on which R is a column
BEYOND = (pl.col("total").max() - LISTED.sum().cast(pl.Int64)).alias("R - n")
OF_HITS = POP.filter(LISTED & pl.col("relevant") & (RANK <= 10)).mean().alias("pop of hits@10")
ALL = [MEAN, SHARE, BEYOND, OF_HITS]


def tables(seed, *, by=False):
    rng = random.Random(seed)
    run, truth = [], []
    popularity = {item: rng.randrange(1, 10) for item in range(40)}
    for model in "ab" if by else "a":
        for user in range(12):
            items = rng.sample(range(40), rng.choice([1, 4, 25]))
            ranks = sorted(rng.sample(range(1, 60), len(items)))  # with gaps
            run += [
                (model, user, item, rank, popularity[item])
                for item, rank in zip(items, ranks, strict=True)
            ]
    for user in range(3, 16):
        for item in rng.sample(range(45), rng.choice([1, 5, 20])):
            truth.append((user, item, rng.choice([-1, 0, 0, 1, 2, 3])))
    schema = ["model", "user", "item", "rank", "popularity"]
    run = pl.DataFrame(run, schema=schema, orient="row").sample(fraction=1, shuffle=True, seed=seed)
    truth = pl.DataFrame(truth, schema=["user", "item", "relevance"], orient="row")
    return (run if by else run.drop("model")), truth


def by_hand(run, truth, user, *, depth=None, relevant_at=1, unjudged="miss"):
    """All four metrics of one user, in plain Python."""
    grades = {
        row["item"]: row["relevance"] for row in truth.filter(user=user).iter_rows(named=True)
    }
    rows = sorted(run.filter(user=user).iter_rows(named=True), key=lambda row: row["rank"])
    if depth is not None:
        rows = [row for row in rows if row["rank"] <= depth]
    if unjudged == "drop":
        rows = [row for row in rows if grades.get(row["item"], -1) >= 0]
        rows = [{**row, "rank": place} for place, row in enumerate(rows, 1)]
    if run.filter(user=user).is_empty():  # a list that is cut to nothing is an empty list
        return [None] * 4

    def mean(values):
        return sum(values) / len(values) if values else None

    def liked(item):
        return grades.get(item, 0) >= relevant_at and grades.get(item, 0) > 0

    first = [row for row in rows if row["rank"] <= 10]
    return [
        mean([row["popularity"] for row in first]),
        mean([row["popularity"] < 5 for row in rows if row["rank"] <= 3]),
        sum(map(liked, grades)) - len(rows) if rows else None,
        mean([row["popularity"] for row in first if liked(row["item"])]),
    ]


def expected(run, truth, users, **options):
    rows = [(user, *by_hand(run, truth, user, **options)) for user in sorted(users)]
    names = ["user", *(metric.meta.output_name() for metric in ALL)]
    types = [pl.Int64, pl.Float64, pl.Float64, pl.Int64, pl.Float64]
    return pl.DataFrame(rows, schema=dict(zip(names, types, strict=True)), orient="row")


def users_of(run, truth):
    return {
        "truth": set(truth.filter(pl.col("relevance") > 0)["user"]),
        "judged": set(truth["user"]),
        "run": set(run["user"]),
        "both": set(run["user"]) & set(truth["user"]),
        "all": set(run["user"]) | set(truth["user"]),
    }


OPTIONS = [{}, {"depth": 6}, {"relevant_at": 2}, {"unjudged": "drop"}]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", range(4))
def test_list_is_reduced_as_by_hand(seed, options):
    run, truth = tables(seed)
    relevant = pl.col("relevance") >= options.get("relevant_at", 1)
    whole = users_of(run, truth) | {"truth": {*truth.filter(relevant)["user"]}}
    for users, names in whole.items():
        want = expected(run, truth, names, **options)
        got = rf.per_user(run, *ALL, truth=truth, users=users, **options)
        assert_frame_equal(got, want)
        lazy = rf.per_user(run.lazy(), *ALL, truth=truth.lazy(), users=users, **options)
        assert_frame_equal(lazy.collect(engine="streaming"), want)
        for judged in (rf.judge(run, truth), rf.judge(run.lazy(), truth).collect().lazy()):
            got = rf.per_user(judged, *ALL, users=users, **options)
            assert_frame_equal(got.lazy().collect(), want)


@pytest.mark.parametrize("seed", range(4))
def test_scopes_of_one_call_do_not_touch_each_other(seed):
    run, truth = tables(seed, by=True)
    labels = ["precision@5", "ndcg@10", "bpref", "judged@5", "unjudged@5", "map"]
    mixed = rf.per_user(run, *labels, *ALL, truth=truth, by="model", users="all")
    alone = rf.per_user(run, *labels, truth=truth, by="model", users="all")
    assert_frame_equal(mixed.select(alone.columns), alone)
    for model in "ab":
        part = run.filter(model=model)
        want = expected(part, truth, users_of(run, truth)["all"])
        got = mixed.filter(model=model).select(want.columns)
        assert_frame_equal(got, want)


@pytest.mark.parametrize("engine", ["streaming", "in-memory"])
def test_run_alone_is_enough_for_metrics_of_the_list(engine):
    run, truth = tables(5)
    want = expected(run, truth, set(run["user"])).select("user", "pop@10", "long tail@3")
    got = rf.per_user(run.lazy(), MEAN, SHARE).collect(engine=engine)
    assert_frame_equal(got, want)
    assert_equal(rf.per_user(run, MEAN, SHARE, users="all"), got)
    means = rf.evaluate(run, MEAN, SHARE)
    assert means["users"].item() == len(want)
    assert means["pop@10"].item() == pytest.approx(want["pop@10"].mean())
    scored = run.select("user", "item", "popularity", score=-RANK)
    got = rf.per_user(scored, MEAN.alias("p"))
    assert_frame_equal(got, rf.per_user(rf.with_rank(scored).drop("score"), MEAN.alias("p")))
    got = rf.per_user(run.to_pandas(), MEAN)
    assert_frame_equal(pl.from_pandas(got), want.select("user", "pop@10"), check_dtypes=False)


def test_run_alone_joins_nothing():
    run, truth = tables(6)
    assert "JOIN" not in rf.per_user(run.lazy(), MEAN, SHARE).explain()
    # with a truth, the list's own columns are reduced before it is joined
    plan = rf.per_user(run.lazy(), MEAN, truth=truth.lazy(), users="run").explain()
    assert "FULL JOIN" not in plan


def test_run_alone_has_no_users_of_the_truth():
    run, _ = tables(7)
    for users in ("truth", "judged", "both"):
        with pytest.raises(ValueError, match=f"users='{users}' selects users of the truth"):
            rf.evaluate(run, MEAN, users=users)
    for metrics in (["precision@3"], [MEAN, "precision@3"], [OF_HITS]):
        with pytest.raises(rf.RankingDataError, match="pass truth="):
            rf.evaluate(run, *metrics)


def test_rows_that_break_a_rule_are_seen_in_the_whole_list():
    run, truth = tables(8)
    twice = pl.concat([run, run.filter(user=5).head(1)])
    shared = run.with_columns(rank=pl.when(user=5).then(1).otherwise(RANK))
    for bad, text in ((twice, "duplicate"), (shared, "same rank")):
        for metric in (MEAN, OF_HITS):
            with pytest.raises(rf.RankingDataError, match=text):
                rf.per_user(bad, metric, truth=truth)
        with pytest.raises(rf.RankingDataError, match=text):
            rf.per_user(bad, MEAN)


def test_undefined_is_for_users_without_a_list():
    run, truth = tables(9)
    got = rf.per_user(run, MEAN, truth=truth, users="all", undefined=-1.0)
    missed = set(truth["user"]) - set(run["user"])
    assert set(got.filter(pl.col("pop@10") == -1)["user"]) >= missed != set()


def test_blocks_of_ties_have_lists_too():
    scored = pl.DataFrame(
        {"user": 1, "item": [1, 2, 3, 4], "score": [3.0, 2.0, 2.0, 1.0], "popularity": [1, 2, 4, 8]}
    )
    tied = scored.rank.with_rank(ties="expected")
    block, size = pl.col("block"), pl.col("tied")
    chance = ((2 - block + 1).clip(0, size) / size).filter(LISTED)
    expectation = (POP.filter(LISTED) * chance).sum() / 2
    got = rf.per_user(tied, expectation.alias("pop@2"))
    assert got["pop@2"].item() == (1 + (2 + 4) / 2) / 2
    with pytest.raises(ValueError, match="no exact expectation under ties: it reads 'rank'"):
        rf.per_user(tied, MEAN)


def test_words_of_items_are_null_on_other_rows():
    run = pl.DataFrame({"user": 1, "item": [1, 2, 3, 4], "rank": [1, 2, 3, 4]})
    truth = pl.DataFrame({"user": 1, "item": [2, 4, 9, 3], "relevance": [2, 1, 1, 0]})
    judged = rf.judge(run, truth)
    one = pl.col("hits").filter("listed").max().alias("x")
    rows = rf.metrics.rows(judged, one, pl.col("total").max().alias("y")).sort("item")
    assert rows["item"].to_list() == [1, 2, 3, 4, 9]
    assert rows["hits"].to_list() == [None, 1, None, 2, None]
    assert rows["ideal_rank"].to_list() == [None, 1, None, 2, 3]
    assert rows["total"].to_list() == [3] * 5
    assert rows["relevant"].to_list() == [False, True, False, True, True]
    assert rows["listed"].to_list() == [True] * 4 + [False]
    three = (pl.col("judged").sum() + LISTED.sum() + pl.col("hits").max()).alias("x")
    assert rf.per_user(run, three, truth=truth)["x"].item() == 3 + 4 + 2


def written(word):
    """Write a column, with a gain if it has no default."""
    return f"{word}(exponential)" if COLUMNS[word].in_parentheses else word


@pytest.mark.parametrize("name", [*map(written, sorted(COLUMNS))])
def test_words_keep_their_values_beside_listed(name):
    """Values of relevant and judged rows do not change where the whole list is reduced."""
    column = COLUMNS[name.partition("(")[0]]
    if column.in_ties == "blocks" or name in ("listed", "subtopic"):
        return
    if column.source or column.scope == "shares":  # of other tables: test_lists_and_shares
        return
    run, truth = tables(12)
    judged = rf.judge(run, truth)
    word = pl.col(name).max().alias("x")
    scope = "judged" if column.scope == "judged" else "relevant"
    plain = rf.metrics.rows(judged, word, pl.col(scope).max().alias("y"))
    wide = rf.metrics.rows(judged, word, pl.col("listed").sum().alias("y"))
    keys = ["user", "item"]
    both = plain.select(*keys, name).join(wide.select(*keys, name), on=keys, suffix="_wide")
    if name in keys or name in ("user", "item"):
        return
    assert len(both) == len(plain) < len(wide)
    one, other = both.select("user", name), both.select("user", pl.col(f"{name}_wide").alias(name))
    if name == "ideal_weight":  # items of one grade that are not retrieved stand in any order
        one, other = one.sort("user", name), other.sort("user", name)
    assert_frame_equal(other, one)


def test_numbers_of_the_user_are_on_every_row():
    run, truth = tables(13)
    words = ["retrieved", "total", "graded", "nonrelevant", "top_grade", "hits"]
    metrics = [pl.col(word).min().alias(word) for word in words]
    rows = rf.metrics.rows(rf.judge(run, truth), *metrics, pl.col("listed").sum().alias("y"))
    for user, part in rows.group_by("user"):
        grades = truth.filter(user=user[0])["relevance"]
        expected = {
            "retrieved": len(run.filter(user=user[0])),
            "total": (grades > 0).sum(),
            "graded": (grades > 0).sum(),
            "nonrelevant": (grades == 0).sum(),
            "top_grade": truth["relevance"].max(),
        }
        for word, value in expected.items():
            assert part[word].to_list() == [value] * len(part), word


def test_precision_is_the_same_over_the_list():
    """What only relevant rows have a part in does not change with the scope."""
    run, truth = tables(10)
    hits = (pl.col("relevant") & (RANK <= 10)).sum() / 10
    whole = pl.when(LISTED.any()).then(hits).alias("x")
    got = rf.per_user(run, whole, truth=truth, users="both")
    want = rf.per_user(run, hits.alias("x"), truth=truth, users="both")
    some = truth.filter(pl.col("relevance") > 0)["user"].unique()
    assert_frame_equal(got.filter(pl.col("user").is_in(some.implode())), want.drop_nulls())
    total = pl.col("relevant").sum()
    widened = (total + 0 * pl.col("judged").sum()).alias("R")
    got = rf.per_user(run, widened, truth=truth, users="both").filter(pl.col("R") > 0)
    want = rf.per_user(run, total.alias("R"), truth=truth, users="both").drop_nulls()
    assert_frame_equal(got, want, check_dtypes=False)


# ------------------------------------------------------------------ rows that nobody names


@pytest.mark.parametrize(
    "metric",
    [
        POP.filter(RANK <= 10).mean().alias("p"),
        POP.sum().alias("p"),
        (POP * pl.col("hits")).sum().alias("p"),
    ],
)
def test_column_of_the_run_without_a_scope_is_refused(metric, refused):
    run, truth = tables(11)
    for call in (
        lambda: rf.evaluate(run, metric, truth=truth),
        lambda: rf.evaluate(rf.judge(run, truth), metric),
        lambda: rf.per_user(rf.judge(run.lazy(), truth), metric),
    ):
        refused(call)


def test_scopes_cure_a_column_without_one():
    run, truth = tables(11)
    for scope in ("listed", "judged", "relevant"):
        rf.evaluate(run, POP.filter(pl.col(scope)).mean().alias("p"), truth=truth)
    # a column of the truth is known of relevant rows, and ids are of both tables
    priced = truth.with_columns(price=pl.col("item") * 1.0)
    rf.evaluate(run, pl.col("price").sum().alias("p"), truth=priced)
    rf.evaluate(run, pl.col("item").n_unique().alias("n"), pl.len().alias("m"), truth=truth)


def test_discount_may_be_read_beside_subtopics():
    run = pl.DataFrame({"user": 1, "item": [1, 2], "rank": [1, 3]})
    truth = pl.DataFrame({"user": 1, "item": [1, 1, 2], "subtopic": list("xyx")})
    both = (pl.col("subtopic_hits").max() + pl.col("rank_discount").sum()).alias("x")
    assert rf.evaluate(run, both, truth=truth)["x"].item() == 2 + 1 + 1 + 0.5


def test_subtopics_and_other_scopes_are_two_metrics():
    run = pl.DataFrame({"user": 1, "item": [1, 2], "rank": [1, 2]})
    truth = pl.DataFrame({"user": 1, "item": [1, 1, 2], "subtopic": list("xyx")})
    for scope in ("listed", "judged"):
        mixed = (pl.col("subtopic_hits").max() + pl.col(scope).sum()).alias("x")
        with pytest.raises(ValueError, match="metric 'x' reads both columns of items and columns"):
            rf.per_user(run, mixed, truth=truth)
    n = LISTED.sum().alias("n")
    got = rf.per_user(run, "alpha_ndcg@2", "judged@2", n, truth=truth)
    assert got["n"].item() == 2
    alone = rf.per_user(run, "alpha_ndcg@2", "judged@2", truth=truth)
    assert_frame_equal(got.drop("n"), alone)


def test_columns_say_their_scope():
    for word, column in COLUMNS.items():
        given = {"items", "history"}
        examples = {"of": "genre", "over": "all", "what": "truth", "distance": "cosine"}
        examples["gain"] = "exponential"
        needs = [key for key, (_, *default) in column.parameters.items() if not default]
        needed = {key: examples.get(key, "none") for key in needs}
        name = registry.name(word, **needed)
        reading = reading_of([name], inputs=given)
        scope = "relevant" if column.scope == "subtopic" else column.scope
        assert reading.scope == scope
        assert name in reading.columns
        split = reading_of([name], has_subtopics=True, inputs=given)
        assert split.scope == column.scope


def test_order_of_scopes():
    for names, scope in [
        (("hits",), "relevant"),
        (("hits", "judged"), "judged"),
        (("judged", "listed", "hits"), "listed"),
        (("nonrelevant", "retrieved"), "relevant"),
        (("subtopic_hits", "hits"), "relevant"),
        (("subtopic_hits", "judged"), "judged"),
    ]:
        assert reading_of(names).scope == scope


# ------------------------------------------------------------------ missed items and null ranks


def _missed():
    run = pl.DataFrame({"user": [1, 1, 1, 2], "item": [*"abcd"], "rank": [1, 2, 3, 1]})
    truth = pl.DataFrame({"user": [1, 1, 2, 3], "item": [*"bzdx"], "relevance": [1, 1, 1, 1]})
    return run, truth


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_within_is_never_null(k, lazy):
    run, truth = _missed()
    run = run.lazy() if lazy else run
    column = pl.col(f"within({k})")
    mine = [
        column.mean().alias("recall"),
        column.all().cast(pl.Float64).alias("all"),
        column.any().cast(pl.Float64).alias("hit"),
        column.is_null().any().alias("null"),
    ]
    got = rf.per_user(run, *mine, truth=truth).lazy().collect()
    labels = [f"recall@{k}", f"all@{k}", f"hit@{k}"]
    expected = rf.per_user(run, *labels, truth=truth).lazy().collect()
    assert [row[1:4] for row in got.rows()] == [row[1:] for row in expected.rows()]
    assert got["null"].to_list() == [False] * 3


def test_within_counts_rows_of_lists_and_of_truths():
    run, truth = _missed()
    listed = (pl.col("within(2)") & pl.col("listed")).sum().alias("shown")
    assert rf.per_user(run, listed)["shown"].to_list() == [2, 1]
    judged = (pl.col("within") & pl.col("judged")).sum().alias("found")
    assert rf.per_user(run, judged, truth=truth)["found"].to_list() == [1, 1, 0]
    topics = truth.with_columns(subtopic=pl.lit("t"))
    both = rf.per_user(run, "all@2", pl.col("within(2)").mean().alias("r"), truth=topics)
    assert both.rows() == [(1, 0.0, 0.5), (2, 1.0, 1.0), (3, 0.0, 0.0)]
    for name in ("within(0)", "within(x)"):
        with pytest.raises(ValueError, match="within"):
            rf.per_user(run, pl.col(name).any().alias("x"), truth=truth)


def test_words_for_all_evidence_are_one_metric():
    run, truth = _missed()
    names = ["all@2", "recall_all@2", "full_recall@2"]
    values = rf.evaluate(run, *names, truth=truth).row(0)
    assert values == (3, 1 / 3, 1 / 3, 1 / 3)
    groups = pl.DataFrame({"user": 1, "item": [*"bza"], "subtopic": ["x", "x", "y"]})
    got = rf.evaluate(run, "all@2", "subtopic_recall@2", truth=groups)
    assert got.row(0) == (1, 0.0, 1.0)  # one of each group is enough


#: expressions of one list, and what they are in plain Python: of the grades of its items in order,
#: None for an unjudged one
OF_A_LIST = {
    "hit share": (
        (LISTED & pl.col("relevant")).mean(),
        lambda g: sum(x is not None and x > 0 for x in g) / len(g) if g else None,
    ),
    "miss share": (
        (LISTED & ~pl.col("relevant")).mean(),
        lambda g: sum(x is None or x <= 0 for x in g) / len(g) if g else None,
    ),
    "grade": (
        (LISTED.cast(pl.Int64) * pl.col("relevance").fill_null(0)).mean(),
        lambda g: sum(x or 0 for x in g) / len(g) if g else None,
    ),
    "rows": ((LISTED.cast(pl.Int64) + pl.col("gains").fill_null(0)).len(), len),
    "above": (
        (LISTED & pl.col("within(2)")).mean(),
        lambda g: min(2, len(g)) / len(g) if g else None,
    ),
    "listed": (LISTED.mean(), lambda g: 1.0 if g else None),
}


@pytest.mark.parametrize("options", [{}, {"unjudged": "drop"}, {"depth": 3}])
@pytest.mark.parametrize("seed", range(3))
def test_rows_of_listed_are_the_list_whatever_else_is_read(seed, options):
    rng = random.Random(seed)
    lists = {user: rng.sample(range(9), rng.randint(1, 8)) for user in range(8)}
    grades = {user: {i: rng.randint(0, 2) for i in rng.sample(range(14), 6)} for user in lists}
    rows = [(u, i, rank) for u, some in lists.items() for rank, i in enumerate(some, 1)]
    run = pl.DataFrame(rows, schema=["user", "item", "rank"], orient="row")
    rows = [(u, i, grade) for u, some in grades.items() for i, grade in some.items()]
    truth = pl.DataFrame(rows, schema=["user", "item", "relevance"], orient="row")
    metrics = [metric.alias(name) for name, (metric, _) in OF_A_LIST.items()]
    got = rf.per_user(run, *metrics, truth=truth, users="run", **options)
    for row in got.iter_rows(named=True):
        some = lists[row["user"]][: options.get("depth")]
        known = [grades[row["user"]].get(item) for item in some]
        if "unjudged" in options:
            known = [grade for grade in known if grade is not None]
        for name, (_, by_hand) in OF_A_LIST.items():
            want = by_hand(known)
            assert row[name] == (want if want is None else pytest.approx(want)), (row, name)


#: counts of the truth, its greatest grade, and what is read from its ideal list
OF_THE_TRUTH = {"total", "graded", "nonrelevant", "top_grade", "subtopic_total", "level_weight"}
OF_THE_TRUTH |= {"subtopics"}
OF_THE_TRUTH |= {"common_weight", "diverse_rank", "diverse_hits"}
OF_LISTS = sorted(
    written(name)
    for name, column in COLUMNS.items()
    if name not in OF_THE_TRUTH | {"subtopic", "listed"}
    and not name.startswith("ideal_")
    and column.in_ties != "blocks"
    and not column.source
    and column.scope != "shares"
    and not column.registered
)


@pytest.mark.parametrize("unjudged", ["drop", "miss"])
def test_missed_items_change_what_reads_listed_through_counts_of_the_truth_alone(unjudged):
    run, truth = tables(3)
    more = [(u, 100 + u * 7 + i, i % 4 - 1) for u in range(3, 16) for i in range(1 + u % 5)]
    more = pl.concat([truth, pl.DataFrame(more, schema=truth.schema, orient="row")])
    assert {"hits", "gains", "judged", "within", "retrieved"} <= {*OF_LISTS}
    words = [pl.col(name).cast(pl.Float64) for name in OF_LISTS]
    metrics = [
        (reduced + 0 * LISTED.sum()).alias(f"{name} {kind}")
        for name, word in zip(OF_LISTS, words, strict=True)
        for kind, reduced in (("mean", word.mean()), ("n", word.len()), ("min", word.min()))
    ]
    both = [
        rf.per_user(run, *metrics, truth=some, users="run", unjudged=unjudged)
        for some in (truth, more)
    ]
    assert_frame_equal(*both)
    of_total = (pl.col("total").max() + 0 * LISTED.sum().cast(pl.Int64)).alias("R")
    number = pl.col("total").max()
    share = pl.when(number > 0).then(pl.col("relevant").sum() / number + 0 * LISTED.sum())
    share = share.alias("share")
    for some in (truth, more):
        got = rf.per_user(run, of_total, share, truth=some, users="both", unjudged=unjudged)
        for user, number, part in got.iter_rows():
            grades = some.filter(user=user).filter(pl.col("relevance") > 0)["item"].to_list()
            found = run.filter(user=user)["item"].is_in(grades).sum()
            if number is not None:
                assert number == len(grades)
                assert part == (pytest.approx(found / number) if number else None)


@pytest.mark.parametrize("options", [{}, {"exclude": True}, {"depth": 3}, {"unjudged": "drop"}])
@pytest.mark.parametrize("users", ["both", "run"])
def test_groups_that_the_truth_lacks_have_the_judgments_of_their_lists(users, options):
    """The oracle: a truth that has the column of the groups, each with all rows."""
    run, truth = tables(4, by=True)
    run = run.filter((pl.col("user") + pl.col("model").str.len_bytes()) % 5 > 0)
    run = run.with_columns(rank=pl.when(pl.col("item") % 6 > 0).then("rank"))
    if "exclude" in options:
        options = {"exclude": run.filter(pl.col("item") % 7 == 0).select("user", "item").unique()}
    whole = truth.join(run.select("model").unique(), how="cross")
    names = ["precision@5", "ndcg@10", "map", "bpref", "err@5", "judged@3", "num_ret", "hit@1"]
    for verb in (rf.evaluate, rf.per_user):
        want = verb(run, *names, truth=whole, by="model", users=users, **options)
        got = verb(run, *names, truth=truth, by="model", users=users, **options)
        assert_frame_equal(got, want, check_exact=True)
        lazy = verb(run.lazy(), *names[:3], truth=truth, by="model", users=users, **options)
        want = verb(run, *names[:3], truth=whole, by="model", users=users, **options)
        assert_frame_equal(lazy.collect(), want, check_exact=True, check_row_order=False)


@pytest.mark.parametrize("users", ["both", "run"])
@pytest.mark.parametrize("in_two", [False, True])
def test_groups_of_users_need_no_product(users, in_two):
    """The highest grade is that of a user in no group; one user is in the run alone."""
    run = pl.DataFrame({"user": [3, 3, 2, 1, 1, 9], "item": [1, 2, 1, 2, 5, 1], "rank": [1, 2] * 3})
    run = run.with_columns(country=pl.Series([*"aabbbc"]))
    if in_two:
        run = pl.concat([run, run.filter(pl.col("user") < 3).with_columns(country=pl.lit("c"))])
    truth = pl.DataFrame({"user": [1, 2, 3, 4], "item": [2, 3, 2, 1], "relevance": [1, 2, 1, 7]})
    whole = truth.join(run.select("country").unique(), how="cross")
    for verb, options, names in (
        (rf.evaluate, {"unjudged": "bounds"}, ["dcg@2"]),
        (rf.summarize, {}, ["ndcg@2", "err@2"]),
        (rf.stats.differences, {"model": "country", "baseline": "b"}, ["ndcg@2"]),
    ):
        by = {} if "model" in options else {"by": "country"}
        got, want = (
            verb(run, *names, truth=some, users=users, **by, **options) for some in (truth, whole)
        )
        assert_frame_equal(got, want, check_exact=True)


def test_column_of_users_that_the_truth_lacks():
    """The error comes before the product, and its cure, pasted, gives what users="both" gives."""
    run = pl.DataFrame({"user": range(400), "item": 1, "rank": 1, "cohort": range(400)})
    truth = run.select("user", item=pl.col("user") % 3)
    with pytest.raises(rf.RankingDataError, match="join the column to the truth"):
        rf.evaluate(run, "rr", truth=truth, by="cohort")
    joined = truth.join(run.select("user", "cohort").unique(), on="user")
    got = rf.evaluate(run, "rr", truth=joined, by="cohort")
    assert_frame_equal(got, rf.evaluate(run, "rr", truth=truth, by="cohort", users="both"))


@pytest.mark.parametrize(
    ("name", "cure"),
    [("cohort", r"join 'cohort' to the truth, or pass users='both'"), ("model", r"tables: pass")],
)
def test_long_product_is_warned_of(name, cure):
    """No column is taken for one of the users: one user is in two groups."""
    run = pl.DataFrame({"user": [*range(200), 0], "item": 1, "rank": 1, name: range(201)})
    truth = run.select("user", "item").unique()
    words = rf"201 groups of '{name}' is judged by the whole truth, which makes 40,200 rows, 100 "
    with pytest.warns(rf.errors.RankingWarning, match=f"{words}times those of both .*{cure}"):
        got = rf.evaluate(run, "rr", truth=truth, by=name)
    assert got["users"].to_list() == [200] * 201
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rf.evaluate(run.lazy(), "rr", truth=truth, by=name).collect()
        rf.evaluate(run, "err@5", truth=truth, by=name, users="both")


@pytest.mark.parametrize("users", ["both", "run"])
def test_groups_without_a_list_stay(users):
    """One system has only excluded rows, and one country of the truth has no list of the other."""
    run = pl.DataFrame({"model": ["a", "a", "b"], "user": [1, 2, 1], "item": [1, 2, 2], "rank": 1})
    truth = pl.DataFrame({"user": [1, 2], "item": [1, 2]})
    excluded = pl.DataFrame({"user": [1], "item": [2]})
    got = rf.evaluate(run, "rr", truth=truth, by="model", users=users, exclude=excluded)
    assert got.rows() == [("a", 2, 1.0), ("b", 0, None)]
    truth = truth.with_columns(country=pl.Series(["x", "y"]))
    run = run.with_columns(country=pl.Series(["x", "y", "x"]))
    by = ["model", "country"]
    got = rf.evaluate(run, "rr", truth=truth, by=by, users=users).drop(by).rows()
    assert got == [(1, 1.0), (1, 1.0), (1, 0.0), (0, None)]


def test_column_with_parameters_is_a_call():
    weights = (3.0, 2.0)
    for name, values in {
        "within": {},
        "within(10)": {"k": 10},
        "retrieved(10)": {"k": 10},
        "gains(exponential)": {"gain": "exponential"},
        "gains(1:1;2:3)": {"gain": {1.0: 1.0, 2.0: 3.0}},
        "discounts(;2)": {"base": 2.0},
        "discounts(10;;3;2)": {"k": 10, "discount": weights},
        "discounts(;;3)": {"discount": (3.0,)},
        "eagerness(;4)": {"max_grade": 4.0},
        "exposure(genre;all;log2;10)": {"of": "genre", "over": "all", "weight": "log2", "k": 10},
        "lists()": {},
    }.items():
        word = name.partition("(")[0]
        assert registry.name(word, **values) == name
        read = dict(zip(COLUMNS[word].parameters, registry.read_parameters(name), strict=True))
        assert registry.name(word, **read) == name
        assert values.items() <= read.items()
    for name in ["within(0)", "gains(x)", "rank(3)", "tail(2)", "share(a;all)", "discounts(3;0.5)"]:
        with pytest.raises(ValueError, match="is not a parameter of"):
            registry.read_parameters(name)


def test_parameters_of_a_column_are_those_that_it_declares():
    with pytest.raises(TypeError, match="'discounts' has no parameter 'by': it has k, base, disc"):
        registry.name("discounts", k=10, by=2.0)
    for unread in (str, list[int], {}):
        with pytest.raises(TypeError, match="'twice', parameter 'k': labels cannot read"):
            registry.given_column("twice", "a rank", parameters={"k": (unread, None)})
    assert "twice" not in COLUMNS


def test_tables_may_have_a_column_of_a_word_in_parentheses():
    run, truth = tables(3)
    own = truth.with_columns(gain=pl.lit(0.5))
    labels = ["ndcg(gain=exponential)@3", pl.col("gain").max().alias("own")]
    both = rf.per_user(run, *labels, truth=own)
    assert both["own"].unique().to_list() == [0.5]
    assert_frame_equal(both.drop("own"), rf.per_user(run, labels[0], truth=truth))
    with pytest.raises(rf.errors.RankingDataError, match="reads a column 'gain'; the rows have"):
        rf.per_user(run, labels[1], truth=truth)
