"""Pooled means and means of groups: formulas in plain Python, the jackknife, and other programs."""

import math
import random
from statistics import fmean, variance

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats
from two_models import assert_same

import rankframe as rf

SIZES = {"a": 30, "b": 8, "c": 15}
POOLED = {  # (numerator, denominator) of hits among 5, relevant items and length of the list
    "precision@5": lambda h, r, n: (h, 5),
    "precision(divide_by=attainable)@5": lambda h, r, n: (h, min(5, r)),
    "precision(divide_by=returned)@5": lambda h, r, n: (h, min(5, n)),
    "recall@5": lambda h, r, n: (h, r),
    "recall(divide_by=attainable)@5": lambda h, r, n: (h, min(5, r)),
    "f1@5": lambda h, r, n: (2 * h, r + 5),
    "f(beta=2)@5": lambda h, r, n: (5 * h, 4 * r + 5),
    "e@5": lambda h, r, n: (r + 5 - 2 * h, r + 5),
}


def _tables():
    """Three data sets with users of the same names, two systems, and a user without a list."""
    rng = random.Random(3)
    run, truth = [], []
    for dataset, size in SIZES.items():
        for user in range(size):
            liked = rng.sample(range(25), rng.randint(1, 7))
            truth += [(dataset, user, item, 1 + user % 3) for item in liked]
            for model in ("old", "new"):
                items = rng.sample(range(25), rng.randint(3, 12))
                if model == "new":
                    items = sorted(items, key=lambda item: rng.random() + 0.5 * (item not in liked))
                if (model, user) != ("old", 4):
                    run += [(model, dataset, user, item, at + 1) for at, item in enumerate(items)]
    return (
        pl.DataFrame(run, ["model", "dataset", "user", "item", "rank"], orient="row"),
        pl.DataFrame(truth, ["dataset", "user", "item", "weight"], orient="row"),
    )


RUN, TRUTH = _tables()
ONE = RUN.filter(dataset="a"), TRUTH.filter(dataset="a")


LISTS, LIKED = {}, {}
for *_key, _item, _ in RUN.sort("rank").iter_rows():
    LISTS.setdefault(tuple(_key), []).append(_item)
for *_key, _item, _weight in TRUTH.iter_rows():
    LIKED.setdefault(tuple(_key), {})[_item] = _weight


def sums(label, model):
    """Numerator, denominator and weight of each user of a data set, in plain Python."""
    rows = {}
    for key, liked in LIKED.items():
        listed = LISTS.get((model, *key), [])
        hits = len({*listed[:5]} & {*liked})
        weight = next(iter(liked.values()))
        rows[key] = (*POOLED[label](hits, len(liked), len(listed)), weight)
    return rows


def ratio(rows):
    whole = math.fsum(w * below for _, below, w in rows)
    return math.fsum(w * above for above, _, w in rows) / whole


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("label", POOLED)
def test_pooled_means_are_ratios_of_sums(label, weighted):
    options = {"weights": "weight"} if weighted else {}
    made = rf.evaluate(
        RUN, label, truth=TRUTH, by=["model", "dataset"], average="pooled", total=True, **options
    )
    for model, dataset, users, mean in made.iter_rows():
        rows = [
            (above, below, w if weighted else 1)
            for (of, _), (above, below, w) in sums(label, model).items()
            if dataset in (None, of)
        ]
        assert users == len(rows)
        assert mean == pytest.approx(ratio(rows), abs=1e-14)
    summary = rf.summarize(
        RUN, label, truth=TRUTH, by=["model", "dataset"], average="pooled", total=True, **options
    )
    assert_same(
        summary.select("model", "dataset", "mean").rename({"mean": label}), made.drop("users")
    )


@pytest.mark.parametrize("label", ["recall@5", "f1@5", "r_precision"])
def test_error_of_a_pooled_difference_is_the_jackknife_and_near_the_delta_method(label):
    made = rf.compare(ONE[0], label, truth=ONE[1], average="pooled", baseline="old", details=True)
    if label == "r_precision":  # users with more relevant items count more
        plain = rf.compare(ONE[0], label, truth=ONE[1], details=True)
        assert plain["mean"].item() != made["mean"].item()
        return
    new, old = (
        {key: row for key, row in sums(label, model).items() if key[0] == "a"}
        for model in ("new", "old")
    )
    whole = [below for _, below, _ in new.values()]
    change = [new[key][0] - old[key][0] for key in new]
    users, difference = len(change), sum(change) / sum(whole)
    assert made["difference"].item() == pytest.approx(difference, abs=1e-13)
    without = [(sum(change) - d) / (sum(whole) - w) for d, w in zip(change, whole, strict=True)]
    jackknife = math.sqrt((users - 1) / users * sum((x - difference) ** 2 for x in without))
    spread = variance(d - difference * w for d, w in zip(change, whole, strict=True))
    delta = math.sqrt(spread / users) / fmean(whole)
    size = sum(whole) ** 2 / sum(w * w for w in whole)
    margin = made["ci_high"].item() - made["difference"].item()
    assert margin == pytest.approx(stats.t.ppf(0.975, size - 1) * jackknife, rel=1e-10)
    assert delta == pytest.approx(jackknife, rel=0.05)
    p = 2 * stats.t.sf(abs(difference) / jackknife, size - 1)
    assert made["p_value"].item() == pytest.approx(p, rel=1e-9)


def test_denominators_of_each_system_are_compared_with_their_covariance():
    label = "precision(divide_by=returned)@5"
    with pytest.raises(rf.RankingDataError, match="paired=False"):
        rf.compare(RUN, label, truth=TRUTH, by="dataset", average="pooled")
    made = rf.compare(
        RUN.filter(dataset="a"), label, truth=TRUTH.filter(dataset="a"), average="pooled",
        paired=False, details=True, baseline="old",
    )  # fmt: skip
    new, old = (
        {key: row for key, row in sums(label, model).items() if key[0] == "a"}
        for model in ("new", "old")
    )
    means = [ratio([(a, b, 1) for a, b, _ in rows.values()]) for rows in (new, old)]
    assert made["mean"].item() == pytest.approx(means[0])
    assert made["baseline_mean"].item() == pytest.approx(means[1])
    # the delta method of a difference of two ratios of the same users
    parts = [
        (new[key][0] - means[0] * new[key][1]) / sum(b for _, b, _ in new.values())
        - (old[key][0] - means[1] * old[key][1]) / sum(b for _, b, _ in old.values())
        for key in new
    ]
    delta = math.sqrt(len(parts) * variance(parts))
    margin = made["ci_high"].item() - made["difference"].item()
    assert margin == pytest.approx(stats.t.ppf(0.975, len(parts) - 2) * delta, rel=0.06)


def test_pooled_differences_of_clusters_and_by_randomization():
    truth = ONE[1].with_columns(shop=pl.col("user") // 3)
    plain = rf.compare(ONE[0], "recall@5", truth=truth, average="pooled", details=True)
    clusters = rf.compare(
        ONE[0], "recall@5", truth=truth, average="pooled", cluster="shop", details=True
    )
    flipped = rf.compare(
        ONE[0], "recall@5", truth=truth, average="pooled", test="randomization", details=True
    )
    for other in (clusters, flipped):
        assert other["difference"].item() == pytest.approx(plain["difference"].item(), abs=1e-13)
    assert "10 clusters" in clusters["note"].item()
    assert flipped["p_value"].item() == pytest.approx(plain["p_value"].item(), abs=0.02)


def test_pooled_difference_of_0_is_0():
    """Gains and losses of the same number of hits, whose values have other denominators."""
    sizes = [7, 7, 1, 5, 9, 8]
    gains = [1, 0, 0, 1, 1, 0]
    truth = pl.DataFrame(
        [(user, item) for user, size in enumerate(sizes) for item in range(size)],
        ["user", "item"],
        orient="row",
    )
    rows = [
        (model, user, item, 1)
        for model in ("new", "old")
        for user, gain in enumerate(gains)
        for item in [0 if gain == (model == "new") else 99]
    ]
    run = pl.DataFrame(rows, ["model", "user", "item", "rank"], orient="row")
    made = rf.compare(run, "recall@1", truth=truth, average="pooled", details=True)
    assert made["difference"].to_list() == [0.0]
    assert made["higher"].to_list() == made["lower"].to_list() == [3]


def test_mean_of_groups_is_the_plain_mean_of_their_means():
    labels = ["ndcg@5", "recall@5"]
    of_groups = rf.evaluate(RUN, *labels, truth=TRUTH, by=["model", "dataset"], weights="weight")
    made = rf.evaluate(RUN, *labels, truth=TRUTH, by="model", average="dataset", weights="weight")
    want = of_groups.group_by("model").agg(pl.col("users").sum(), pl.col(labels).mean())
    assert_same(made, want.sort("model"))
    values = rf.per_user(RUN, *labels, truth=TRUTH, by=["model", "dataset"])
    ready = rf.summarize(values, *labels, by="model", average="dataset")
    same = rf.summarize(RUN, *labels, truth=TRUTH, by="model", average="dataset")
    assert_same(ready.drop("num_missed", "note"), same.drop("num_missed", "note"))


def test_groups_without_a_value_are_left_out_of_the_mean():
    truth = TRUTH.with_columns(relevance=pl.when(pl.col("dataset") == "b").then(0).otherwise(1))
    made = rf.evaluate(RUN, "recall@5", truth=truth, by="model", average="dataset")
    kept = rf.evaluate(RUN, "recall@5", truth=truth, by=["model", "dataset"])
    assert kept.filter(dataset="b")["recall@5"].to_list() == [None, None]
    assert_same(
        made.select("model", "recall@5"),
        kept.group_by("model").agg(pl.col("recall@5").mean()).sort("model"),
    )


@pytest.mark.parametrize("total", [False, True])
def test_error_of_a_mean_of_groups_has_the_variance_within_them(total):
    options = {"by": "half", "total": True} if total else {}
    truth = TRUTH.with_columns(
        half=pl.when(pl.col("user") % 2 == 0).then(pl.lit("x")).otherwise(pl.lit("y"))
    )
    made = rf.compare(
        RUN, "ndcg@5", truth=truth, average="dataset", details=True, baseline="old", **options
    )
    made = made[-1] if total else made
    values = rf.per_user(RUN, "ndcg@5", truth=TRUTH, by=["model", "dataset"]).pivot(
        "model", values="ndcg@5"
    )
    changes = values.with_columns(d=pl.col("new") - pl.col("old"))
    groups = [group["d"].to_list() for group in changes.partition_by("dataset")]
    difference = fmean(map(fmean, groups))
    error = math.sqrt(sum(variance(group) / len(group) for group in groups)) / len(groups)
    freedom = len(groups) ** 2 / sum(1 / len(group) for group in groups) - 1
    assert made["difference"].item() == pytest.approx(difference, abs=1e-13)
    assert made["p_value"].item() == pytest.approx(
        2 * stats.t.sf(abs(difference) / error, freedom), rel=1e-8
    )
    margin = made["ci_high"].item() - difference
    assert margin == pytest.approx(stats.t.ppf(0.975, freedom) * error, rel=1e-9)
    means = values.group_by("dataset").agg(pl.col("new", "old").mean())
    assert made["mean"].item() == pytest.approx(means["new"].mean())
    assert made["higher"].item() == (changes["d"] > 1e-12).sum()


def test_interval_of_a_mean_of_groups_has_the_variance_within_them():
    made = rf.summarize(RUN, "ndcg@5", truth=TRUTH, by="model", average="dataset").filter(
        model="new"
    )
    values = rf.per_user(RUN, "ndcg@5", truth=TRUTH, by=["model", "dataset"]).filter(model="new")
    groups = [group["ndcg@5"].to_list() for group in values.partition_by("dataset")]
    error = math.sqrt(sum(variance(group) / len(group) for group in groups)) / len(groups)
    freedom = len(groups) ** 2 / sum(1 / len(group) for group in groups) - 1
    margin = stats.t.ppf(0.975, freedom) * error
    assert made["mean"].item() == pytest.approx(fmean(map(fmean, groups)))
    assert made["ci_high"].item() - made["mean"].item() == pytest.approx(margin, rel=1e-9)


def test_group_of_one_user_has_no_variance():
    truth = TRUTH.filter((pl.col("dataset") != "b") | (pl.col("user") == 1))
    made = rf.compare(RUN, "ndcg@5", truth=truth, average="dataset", details=True)
    assert made["p_value"].item() is None
    assert "a group has one user" in made["note"].item()
    summary = rf.summarize(RUN, "ndcg@5", truth=truth, by="model", average="dataset")
    assert summary["ci_low"].to_list() == [None, None]
    assert "a group has one user" in summary["note"][0]


def test_precision_is_that_of_implicit():
    # implicit 0.7.3, ranking_metrics_at_k on these lists: 0.15789473684210525, 0.2916666666666667
    rng = random.Random(7)
    lists = [rng.sample(range(30), 10) for _ in range(12)]
    liked = [rng.sample(range(30), rng.choice([0, 1, 2, 3, 5, 8, 14])) for _ in range(12)]
    run = rf.from_lists(pl.DataFrame({"user": range(12), "item": lists}))
    truth = pl.DataFrame({"user": range(12), "item": liked}).explode("item", empty_as_null=False)
    made = rf.evaluate(run, "precision(divide_by=attainable)@3,10", truth=truth, average="pooled")
    for k, theirs in {3: 0.15789473684210525, 10: 0.2916666666666667}.items():
        pairs = [*zip(lists, liked, strict=True)]
        hits = sum(len({*items[:k]} & {*wanted}) for items, wanted in pairs)
        ours = made[f"precision(divide_by=attainable)@{k}"].item()
        assert ours == pytest.approx(hits / sum(min(k, len(wanted)) for wanted in liked), abs=1e-15)
        assert ours == pytest.approx(theirs, abs=1e-15)


def test_score_of_otto():
    run = RUN.filter(model="new").rename({"dataset": "type"}).drop("model")
    truth = TRUTH.rename({"dataset": "type"})
    made = rf.evaluate(
        run, "recall(divide_by=attainable)@20", truth=truth, by="type", average="pooled"
    )
    weights = pl.DataFrame({"type": [*"abc"], "weight": [0.1, 0.3, 0.6]})
    score = made.join(weights, on="type").select(pl.col("^recall.*$").dot("weight")).item()
    want = 0.0
    for name, weight in weights.iter_rows():
        hits = (
            run.filter(pl.col("rank") <= 20)
            .join(truth, on=["type", "user", "item"])
            .filter(type=name)
        )
        relevant = truth.filter(type=name).group_by("user").len()
        want += weight * len(hits) / relevant["len"].clip(upper_bound=20).sum()
    assert score == pytest.approx(want, abs=1e-14)


def test_users_who_count_without_a_relevant_item():
    judged = pl.DataFrame(
        {
            "user": [1, 1, 2, 2],
            "item": [1, 2, 1, 2],
            "rank": [1, 2, 1, 2],
            "relevance": [1, 0, 0, 0],
        }
    )  # the lists were judged, so user 2 counts
    with pytest.warns(rf.errors.RankingWarning, match="counts as 0"):
        made = judged.rank.evaluate("precision@2", "f1@2", "recall@2", average="pooled")
    assert made.row(0) == (2, 0.25, 2 / 5, 1.0)  # 1/4, 2·1/(1 + 2 + 0 + 2), 1/1
    with pytest.raises(ValueError, match="the length of their lists is not known") as raised:
        judged.rank.evaluate("precision", average="pooled")
    assert "users='truth', undefined=None" in str(raised.value)
    cured = judged.rank.evaluate("precision", average="pooled", users="truth", undefined=None)
    assert cured["precision"].item() == 0.5


def test_chance_and_ceiling_are_pooled_with_the_same_denominators():
    label, options = "recall(divide_by=attainable)@5", {"truth": TRUTH, "by": ["model", "dataset"]}
    made = rf.evaluate(RUN, label, average="pooled", chance=True, **options)
    names = [label, f"{label}_chance", f"{label}_ceiling"]
    values = rf.evaluate(RUN, label, chance=True, **options)
    assert (made[names[1]] <= made[names[2]]).all()
    below = {key: below for key, (_, below, _) in sums(label, "new").items()}
    lists = RUN.filter(model="new", dataset="a").join(TRUTH, on=["dataset", "user", "item"])
    found = dict(lists.group_by("user").len().iter_rows())
    best = sum(min(5, found.get(user, 0)) for of, user in below if of == "a")
    whole = sum(below for (of, _), below in below.items() if of == "a")
    row = made.row(by_predicate=(pl.col("model") == "new") & (pl.col("dataset") == "a"), named=True)
    assert row[names[2]] == pytest.approx(best / whole)
    assert values.columns == made.columns


def test_sums_over_users_are_sums_when_others_are_pooled():
    made = rf.evaluate(
        RUN, "num_hits@5", "recall@5", truth=TRUTH, by=["model", "dataset"], average="pooled"
    )
    plain = rf.evaluate(RUN, "num_hits@5", truth=TRUTH, by=["model", "dataset"])
    assert_frame_equal(made.drop("recall@5"), plain)


def test_borda_ranks_are_those_of_mteb():
    means = {"a": [0.9, 0.5, 0.5, None], "b": [0.1, 0.2, 0.3, 0.4], "c": [0.5, 0.5, 0.4, 0.3]}
    models = ["p", "q", "r", "s"]
    rows = [
        (model, dataset, user, mean + shift)
        for dataset, of in means.items()
        for model, mean in zip(models, of, strict=True)
        if mean is not None
        for user, shift in enumerate((-0.05, 0.05))
    ]
    values = pl.DataFrame(rows, ["model", "dataset", "user", "ndcg@10"], orient="row")
    values = values.with_columns((1 - pl.col("ndcg@10")).alias("e@10"))
    made = rf.table(values, "ndcg@10", "e@10", average="dataset")
    # points: p 3 + 0 + 2.5, q 1.5 + 1 + 2.5, r 1.5 + 2 + 1, s – + 3 + 0
    for metric in ("ndcg@10", "e@10"):
        of_metric = made.frame.filter(metric=metric)
        assert dict(of_metric.select("model", "borda").iter_rows()) == {
            "p": 1,
            "q": 2,
            "r": 3,
            "s": 4,
        }
    assert "borda" in made.as_markdown().splitlines()[0]
    assert "in 3 groups of 'dataset', which count alike" in made.note
    assert "borda" not in rf.table(values.filter(model="p"), "ndcg@10", average="dataset").frame


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"average": "macro"},
            "it is called average='users' here; a column, such as average='dataset'",
        ),
        (
            {"average": "datset"},
            "average='datset': no column of this name; the columns are 'model', 'dataset'",
        ),
        ({"average": "dataset", "by": "dataset"}, "average='dataset': this column names systems"),
        ({"average": "pooled", "unjudged": "bounds"}, "no bounds are proven for average='pooled'"),
        (
            {"average": "pooled", "metrics": ["ndcg@5"]},
            "precision, recall, f1, e(beta=1), r_precision are",
        ),
        ({"average": "pooled", "metrics": ["gmap"]}, "is not declared as a ratio"),
        (
            {"average": "dataset", "metrics": ["gmap"]},
            "a geometric mean does not support average='dataset'",
        ),
        ({"average": "dataset", "metrics": ["num_hits"]}, "leave out average="),
        (
            {"average": "dataset", "metrics": ["coverage(of=shown, count=true)@5"]},
            "one number for all lists",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_refused_averages_of_evaluate(options, says):
    options = {"metrics": ["recall@5"], **options}
    with pytest.raises(ValueError) as raised:
        rf.evaluate(RUN, *options.pop("metrics"), truth=TRUTH, **options)
    assert says in str(raised.value)


def test_column_that_is_called_pooled_is_renamed():
    with pytest.raises(rf.RankingDataError, match="'pooled': rename it"):
        rf.evaluate(
            RUN.with_columns(pooled=1), "recall@5", truth=TRUTH, by="dataset", average="pooled"
        )
    with pytest.raises(TypeError, match="must be 'users', 'pooled' or the name of a column, not 3"):
        rf.evaluate(RUN, "recall@5", truth=TRUTH, average=3)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ({"test": "randomization"}, "test='randomization' is not supported with average='dataset'"),
        ({"margin": 0.01}, "margin=0.01 is not supported"),
        ({"paired": False}, "paired=False is not supported"),
    ],
)
def test_refused_comparisons_of_means_of_groups(option, says):
    with pytest.raises(ValueError, match=says):
        rf.compare(RUN, "ndcg@5", truth=TRUTH, average="dataset", **option)


def test_verbs_without_an_average_say_so():
    for verb in (rf.gate, rf.stats.power, rf.plot.at_k):
        with pytest.raises(ValueError, match="evaluate, summarize, compare and table"):
            verb(RUN, "recall" + "@5" * (verb != rf.plot.at_k), truth=TRUTH, average="pooled")
    with pytest.raises(
        TypeError, match="it is an option of evaluate, summarize, compare, table and sql"
    ):
        rf.per_user(RUN, "recall@5", truth=TRUTH, average="pooled")


def test_average_is_a_convention():
    one, other = (
        rf.provenance(RUN, "recall@5", truth=TRUTH, by="dataset", average=average)
        for average in ("users", "pooled")
    )
    assert "average" not in one["options"]
    assert other["options"]["average"] == "pooled"
    assert one["conventions"] != other["conventions"]


@pytest.mark.filterwarnings("error")
def test_groups_without_a_user_who_counts_are_noted():
    values = pl.DataFrame(
        {
            "model": list("aaabb"),
            "user": [1, 2, 3, 2, 3],
            "dataset": list("pqqqq"),
            "ndcg": [0.1, 0.3, 0.5, 0.6, 0.4],
            "weight": [0, 1, 1, 1, 1],
        }
    )
    text = "the mean leaves out 1 of 2 groups: no user counts there"
    for weights in (None, "weight"):  # user 1 has one value, and the weight 0
        options = {"average": "dataset", "weights": weights}
        table = rf.compare(values, "ndcg", baseline="a", **options)
        assert table["difference"].item() == pytest.approx(0.1)
        assert text in table["note"].item()
        noted = rf.summarize(values, "ndcg", **options)["note"].str.contains(text, literal=True)
        assert noted.to_list() == [weights is not None, False]


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        (rf.evaluate, {"by": "g"}),
        (rf.evaluate, {"average": "g"}),
        (rf.summarize, {"by": "g"}),
        (rf.compare, {"by": "g"}),
        (rf.stats.differences, {"by": "g", "baseline": "a"}),
    ],
)
def test_weights_of_zero_in_a_segment_name_it(verb, options):
    run = pl.DataFrame({"model": list("aabb"), "user": [1, 2] * 2, "item": list("xyxx"), "rank": 1})
    truth = pl.DataFrame({"user": [1, 2], "item": ["x", "y"], "g": ["p", "q"], "w": [0, 1]})
    with pytest.raises(rf.RankingDataError, match=r"'rr' has the weight 0.*row: .*g='p'"):
        verb(run, "rr", truth=truth, weights="w", **options)
