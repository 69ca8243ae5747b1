"""Ratings: gains that begin at ``relevant_at``, and how many users each mean is made of."""

import random

import polars as pl
import pytest
from every_metric import CALLS, EVERY_METRIC, FEW, FEW_WITH_FORM, OF_ZERO
from polars.testing import assert_frame_equal

import rankframe as rf
from rankframe._command.main import main
from rankframe._evaluation.evaluation import plan_means
from rankframe._request.keywords import Settings
from rankframe._request.question import ask
from rankframe.parts._numbers import means_of_plan, numbers_alone, numbers_of

FROM_2 = {"relevant_at": 2, "gains_from": "relevant_at"}


def make_tables(low=(1,), all_grades=(-1, 0, 0, 1, 1, 2, 3)):
    """Forty users; some of them give low grades alone."""
    rng = random.Random(11)
    run, truth = [], []
    for user in range(40):
        for model in "ab":
            if user % 8 and not (model == "b" and user % 7 == 0):
                items = rng.sample(range(30), rng.randint(1, 15))
                run += [(model, user, item, rank) for rank, item in enumerate(items, start=1)]
        grades = low if user % 5 == 0 else all_grades
        for item in rng.sample(range(30), rng.randint(1, 14)):
            truth.append((user, item, rng.choice(grades)))
    return (
        pl.DataFrame(run, schema=["model", "user", "item", "rank"], orient="row"),
        pl.DataFrame(truth, schema=["user", "item", "relevance"], orient="row"),
    )


RUN, TRUTH = make_tables()
A = RUN.filter(model="a").drop("model")
POSITIVE = TRUTH.filter(pl.col("relevance") > 0)
RAISED = TRUTH.with_columns(pl.col("relevance").replace(1, 0))
HAVE_2 = TRUTH.filter(pl.col("relevance") >= 2).select("user").unique()
#: those that give grade 0 a gain are refused
ALLOWED = [x for x in EVERY_METRIC if CALLS[x][1].get("gain") != OF_ZERO]
BINARY = ["precision@10", "ap", "rr", "auc", "bpref", "num_relevant", "judged@10", "fallout"]
SOME = [label for label in FEW if label in ALLOWED and label not in BINARY]


def assert_same(left, right):
    assert_frame_equal(left, right, check_exact=False, rel_tol=1e-12, abs_tol=1e-12)


@pytest.mark.parametrize("label", ["cg", "cg@5", "dcg@5", "ndcg", "ndcg@5", "ndcg(ideal=returned)"])
def test_it_is_the_gain_that_is_0_below(label):
    run, stars = make_tables((1, 2, 3), (1, 2, 3, 4, 5))
    run = run.filter(model="a").drop("model")
    name, _, k = label.partition("@")
    more = ", ideal=returned)" if "ideal" in name else ")"
    mapped = name.partition("(")[0] + "(gain=1:0;2:0;3:0;4:4;5:5" + more + (f"@{k}" if k else "")
    for options in ({}, {"users": "judged", "undefined": 0.0}, {"depth": 3}, {"judged_only": True}):
        got = run.rank.per_user(
            label, truth=stars, relevant_at=4, gains_from="relevant_at", **options
        )
        want = run.rank.per_user(mapped, truth=stars, relevant_at=4, **options)
        want = want.rename({mapped: label})
        # a grade whose gain is 0 is a grade > 0, but one that counts as 0 is not
        liked = stars.filter(pl.col("relevance") >= 4)
        low = got.join(liked, on="user", how="anti")
        assert low[label].to_list() == [0.0] * low.height
        assert (low.height > 0) == ("users" in options)
        assert_same(*(each.join(liked, on="user", how="semi") for each in (got, want)))
        assert got[label].n_unique() > 3


@pytest.mark.parametrize("users", ["truth", "judged", "all"])
def test_every_metric_is_that_of_a_truth_whose_lower_grades_are_0(users):
    labels = ALLOWED if users == "truth" else SOME
    got = A.rank.per_user(*labels, truth=TRUTH, users=users, **FROM_2)
    want = A.rank.per_user(*labels, truth=RAISED, users="all", relevant_at=2)
    assert_same(got.join(HAVE_2, on="user", how="semi"), want.join(HAVE_2, on="user", how="semi"))
    # a user whose grades are all lower has none; only the counts are 0 where no row would be
    values = [label for label in labels if not label.startswith(("num_relevant", "num_hits"))]
    want = want.join(got.select("user"), on="user", how="semi")
    assert_same(got.select("user", *values), want.select("user", *values))


def test_a_user_with_lower_grades_alone_does_not_count():
    got = A.rank.per_user(*SOME, *BINARY, "ndcg@10", truth=TRUTH, **FROM_2)
    assert got["user"].to_list() == sorted(HAVE_2["user"])
    assert HAVE_2.height < POSITIVE["user"].n_unique() - 4
    assert got["ndcg@10"].null_count() == 0
    plain = A.rank.per_user(*BINARY, "ndcg@10", truth=TRUTH, relevant_at=2)
    assert_same(got.select(BINARY), plain.select(BINARY))
    assert plain["user"].equals(got["user"])


def test_users_is_the_number_behind_the_mean():
    run = pl.DataFrame({"user": [1, 2, 3, 4], "item": "a", "rank": 1})
    rated = pl.DataFrame({"user": [1, 2, 3, 4], "item": "a", "stars": [5, 5, 1, 2]})
    options = {"truth": rated, "relevance": "stars", "relevant_at": 4}
    got = rf.evaluate(run, "precision@1", "ndcg@1", **options, count_users=True)
    assert got.row(0) == (2, 1.0, 2, 1.0, 2)
    assert rf.evaluate(run, "precision@1", users="judged", **options).row(0) == (4, 1.0)
    assert rf.evaluate(run, "precision(rel=4)@1", truth=rated, relevance="stars").row(0) == (4, 1.0)
    small = rf.parts.sums(run, "precision@1", "gmap", **options)
    want = rf.evaluate(run, "precision@1", "gmap", **options)
    assert rf.parts.combine(small).equals(want)


def test_under_ties():
    tied = A.with_columns(tied=1)
    labels = [label for label in FEW_WITH_FORM if label in ALLOWED]
    plain = A.rank.per_user(*labels, truth=TRUTH, **FROM_2)
    as_expected = tied.rank.per_user(*labels, truth=TRUTH, **FROM_2)
    assert_same(as_expected.cast(plain.schema), plain)  # expected counts are no integers
    blocks = A.with_columns(score=-(pl.col("rank") // 3)).rank.with_rank(ties="expected")
    got = blocks.rank.per_user(*labels, truth=TRUTH, **FROM_2)
    want = blocks.rank.per_user(*labels, truth=RAISED, users="all", relevant_at=2)
    assert_same(got.join(HAVE_2, on="user", how="semi"), want.join(HAVE_2, on="user", how="semi"))


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt8, pl.Int64, pl.Float32, pl.Float64])
def test_the_type_of_the_ratings_changes_nothing(dtype):
    run = A.rank.per_user("ndcg@5", "err(max_grade=3)", "concordance", truth=TRUTH, **FROM_2)
    ratings = TRUTH.filter(pl.col("relevance") >= 0)
    want = A.rank.per_user("ndcg@5", "err(max_grade=3)", "concordance", truth=ratings, **FROM_2)
    cast = ratings.with_columns(pl.col("relevance").cast(dtype))
    got = A.rank.per_user("ndcg@5", "err(max_grade=3)", "concordance", truth=cast, **FROM_2)
    assert_same(got, want)
    assert run.height == want.height


def test_every_way_in_gives_the_same():
    kept = RUN.clone(), TRUTH.clone()
    options = {"by": "model", **FROM_2}
    want = RUN.rank.evaluate(*SOME, truth=TRUTH, **options)
    lazy = RUN.lazy().rank.evaluate(*SOME, truth=TRUTH.lazy(), **options)
    assert_same(lazy.collect(engine="streaming"), want)
    assert_same(lazy.collect(engine="in-memory"), want)
    judged = RUN.rank.judge(TRUTH, by="model")
    with pytest.warns(rf.RankingWarning, match="2 of 40 users have judged items, none relevant"):
        assert_same(judged.rank.evaluate(*SOME, **options), want)
    assert judged.columns == ["model", "user", "item", "rank", "relevance"]
    listed = pl.col("relevance").filter(pl.col("listed")).max().alias("best")
    rows = RUN.rank.per_user(listed, "ndcg@5", truth=TRUTH, **options)
    assert set(rows["best"].drop_nulls()) <= {-1, 0, 2, 3}
    assert rows.drop("best").equals(RUN.rank.per_user("ndcg@5", truth=TRUTH, **options))
    assert (kept[0].equals(RUN), kept[1].equals(TRUTH)) == (True, True)


def test_pandas_and_statistics_take_it():
    pytest.importorskip("pandas")
    pytest.importorskip("scipy")
    import rankframe.pandas  # noqa: F401

    want = RUN.rank.evaluate("ndcg@5", truth=TRUTH, by="model", **FROM_2)
    got = RUN.to_pandas().ranking.evaluate("ndcg@5", truth=TRUTH.to_pandas(), by="model", **FROM_2)
    assert_same(pl.from_pandas(got), want)
    summary = RUN.rank.summarize("ndcg@5", truth=TRUTH, by="model", **FROM_2)
    assert summary["mean"].to_list() == pytest.approx(want["ndcg@5"].to_list())
    pair = RUN.rank.compare("ndcg@5", truth=TRUTH, baseline="b", **FROM_2)
    values = RUN.rank.per_user("ndcg@5", truth=TRUTH, by="model", **FROM_2)
    both = values.pivot("model", index="user").drop_nulls()
    assert pair["difference"].item() == pytest.approx((both["a"] - both["b"]).mean())


def test_bounds_are_those_of_a_truth_whose_lower_grades_are_0():
    got = A.rank.per_user("dcg@5", "err@5", truth=TRUTH, bounds=True, **FROM_2)
    want = A.rank.per_user("dcg@5", "err@5", truth=RAISED, bounds=True, relevant_at=2, users="all")
    assert_same(got.join(HAVE_2, on="user", how="semi"), want.join(HAVE_2, on="user", how="semi"))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"gains_from": "relevant_at"}, "gains_from='relevant_at': pass relevant_at="),
        ({"gains_from": 4, "relevant_at": 4}, "gains_from must be one of 'relevant_at', not 4"),
    ],
)
def test_bad_options_are_refused(options, text):
    for verb in (rf.per_user, rf.evaluate, rf.summarize, rf.compare):
        with pytest.raises(ValueError, match=text):
            verb(RUN, "ndcg", truth=TRUTH, by="model", **options)


@pytest.mark.parametrize("metric", ["ndcg(gain=0:1;2:4;3:5)@5", rf.cg_at(gain={0: 2, 3: 5})])
def test_a_gain_of_grade_0_is_refused(metric):
    with pytest.raises(
        ValueError, match="gives grade 0 a gain, but gains_from='relevant_at', like"
    ):
        A.rank.evaluate(metric, truth=TRUTH, **FROM_2)
    mapped = A.rank.evaluate(
        "ndcg(gain=2:1;3:3)", truth=TRUTH, **FROM_2
    )  # none is for lower grades
    every = "ndcg(gain=1:0;2:1;3:3)"
    assert mapped.item(0, 1) == pytest.approx(A.rank.evaluate(every, truth=TRUTH).item(0, 1))


# ------------------------------------------------------------------ how many users


def counts(summary):
    return (summary["users"] - summary["undefined"]).to_list()


def test_users_are_counted_where_they_differ():
    labels = ["precision@5", "dcg@5", "ndcg@5", "auc", "num_hits"]
    got = RUN.rank.evaluate(*labels, truth=TRUTH, by="model", count_users=True, **FROM_2)
    names = [name for label in labels for name in (label, f"{label}_users")]
    assert got.columns == ["model", "users", *names]
    assert set(got.select(pl.col("^.*_users$")).dtypes) == {pl.Int64()}
    plain = RUN.rank.evaluate(*labels, truth=TRUTH, by="model", **FROM_2)
    assert got.select(plain.columns).equals(plain)
    values = RUN.rank.per_user(*labels, truth=TRUTH, by="model", **FROM_2)
    for label in labels:
        want = values.group_by("model").agg(pl.col(label).count()).sort("model")[label]
        assert got[f"{label}_users"].to_list() == want.to_list()
    assert got["ndcg@5_users"].to_list() == got["users"].to_list() == [HAVE_2.height] * 2
    assert (got["dcg@5_users"] == got["ndcg@5_users"]).all()


def test_they_are_those_of_summarize():
    pytest.importorskip("scipy")
    labels = ["ndcg@5", "auc", "gmap"]
    got = RUN.rank.evaluate(*labels, truth=TRUTH, by="model", count_users=True, relevant_at=2)
    summary = RUN.rank.summarize(*labels, truth=TRUTH, by="model", relevant_at=2)
    for label in labels:
        assert got[f"{label}_users"].to_list() == counts(summary.filter(metric=label))


def test_without_groups_lazily_and_with_totals():
    labels = ["ndcg@5", "auc"]
    one = A.rank.evaluate(*labels, truth=TRUTH, count_users=True)
    lazy = A.lazy().rank.evaluate(*labels, truth=TRUTH.lazy(), count_users=True)
    assert lazy.collect_schema() == one.schema
    assert_same(lazy.collect(), one)
    values = A.rank.per_user(*labels, truth=TRUTH)
    assert one["auc_users"].item() == values["auc"].count() < one["users"].item()
    total = RUN.rank.evaluate(*labels, truth=TRUTH, by="model", total=True, count_users=True)
    assert total["auc_users"].to_list()[2] == sum(total["auc_users"].to_list()[:2])


def test_what_is_filled_counts_and_a_group_without_users_has_0():
    filled = A.rank.evaluate("auc", truth=TRUTH, undefined=0.0, count_users=True)
    assert filled["auc_users"].item() == filled["users"].item()
    run = pl.DataFrame({"day": [1, 2], "user": [1, 9], "item": [1, 1], "rank": [1, 1]})
    truth = pl.DataFrame({"day": [1], "user": [1], "item": [1]})
    got = run.rank.evaluate("ap", "ndcg", truth=truth, by="day", count_users=True)
    assert got.rows() == [(1, 1, 1.0, 1, 1.0, 1), (2, 0, None, 0, None, 0)]


def test_beside_bounds_and_numbers_of_all_lists():
    got = A.rank.evaluate("precision@5", truth=TRUTH, bounds=True, count_users=True)
    names = ["precision@5", "precision@5_users", "precision@5_low", "precision@5_high"]
    assert got.columns == ["users", *names]
    items = pl.DataFrame({"item": range(30)})
    both = A.rank.evaluate("auc", "coverage@5", truth=TRUTH, items=items, count_users=True)
    assert both.columns == ["users", "auc", "auc_users", "coverage@5"]
    assert both["auc_users"].item() < both["users"].item()


def test_bad_calls_are_refused():
    with pytest.raises(TypeError, match="count_users must be True or False, not 1"):
        A.rank.evaluate("ap", truth=TRUTH, count_users=1)
    own = pl.col("relevance").max().alias("ap_users")
    with pytest.raises(ValueError, match="two output columns are called 'ap_users'"):
        A.rank.evaluate("ap", own, truth=TRUTH, count_users=True)
    with pytest.raises(TypeError, match="unknown argument 'count_users'"):
        A.rank.summarize("ap", truth=TRUTH, count_users=True)


@pytest.mark.parametrize("total", [False, True])
def test_parts_add_up(total):
    """As Spark's workers and its driver do it."""
    labels = ["ndcg@5", "auc", "num_hits"]
    options = {"relevant_at": 2, "gains_from": "relevant_at", "count_users": True}
    settings = Settings(**options)
    question = ask(RUN, labels, TRUTH, "model", settings)
    parts = [
        numbers_of(
            question,
            RUN.filter(pl.col("user") % 2 == half).lazy(),
            TRUTH.filter(pl.col("user") % 2 == half).lazy(),
            None,
        ).collect()
        for half in (0, 1)
    ]
    plan = plan_means(question)
    got = means_of_plan(numbers_alone(pl.concat(parts)), plan, total=total)
    want = RUN.rank.evaluate(*labels, truth=TRUTH, by="model", total=total, **options)
    assert_same(got, want)


def test_the_command_takes_both(tmp_path):
    A.write_csv(tmp_path / "run.csv")
    TRUTH.write_csv(tmp_path / "truth.csv")
    out = tmp_path / "out.parquet"
    call = ["evaluate", str(tmp_path / "run.csv"), str(tmp_path / "truth.csv"), "-m", "ndcg@5"]
    call += ["--relevant-at", "2", "--gains-from", "relevant_at", "--out", str(out)]
    assert main([*call, "--count-users"]) == 0
    want = A.rank.evaluate("ndcg@5", truth=TRUTH, count_users=True, **FROM_2)
    assert_same(pl.read_parquet(out), want)
    assert main([*call, "--per-user"]) == 0
    assert_same(pl.read_parquet(out), A.rank.per_user("ndcg@5", truth=TRUTH, **FROM_2))
    assert main([*call, "--count-users", "--per-user"]) == 2
