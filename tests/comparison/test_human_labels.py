"""Human labels correct a judge: ppi_py's numbers, the jackknife by hand, what is refused."""

import re
from functools import partial

import numpy as np
import polars as pl
import pytest
from scipy import stats

import rankframe as rf
from rankframe._comparison import human_labels
from rankframe._comparison import statistics as st
from rankframe._comparison.human_labels import Both

HUMAN = [0.096, 0.586, 0.086, 0.716, 0.299, 0.315, 0.0, 0.458, 0.305, 0.738, 0.547, 0.153]
BESIDE = [0.271, 0.846, 0.117, 0.621, 0.424, 0.424, 0.401, 0.727, 0.464, 1.0, 0.626, 0.088]
ALONE = [
    *(0.264, 0.539, 0.013, 0.6, 1.0, 0.954, 0.454, 0.0, 0.027, 0.556, 0.65, 0.658, 0.432, 0.325),
    *(0.528, 0.153, 0.354, 0.562, 0.463, 0.116, 0.064, 0.09, 1.0, 0.16, 0.179, 0.41, 0.781, 0.591),
]
NUMBER, USERS = len(HUMAN), len(HUMAN + ALONE)
#: ppi_py 0.2.3: ppi_mean_pointestimate and its λ; the jackknife of that function over both samples.
MEAN, TUNED, ERROR = 0.3242995934337838, 0.45310361480174255, 0.053588094560608854
#: The error behind its ppi_mean_ci, which takes λ as known, and divides by n.
ERROR_OF_KNOWN = 0.05021114387357763
DCG = {"users": "all", "undefined": 0.0}  # so that a grade of 0 is a value


def truth_of(grades, item=1, **columns):
    return pl.DataFrame(
        {"user": range(len(grades)), "item": item, "relevance": [float(x) for x in grades]}
        | columns
    )


RUN = pl.DataFrame({"user": range(USERS), "item": 1, "rank": 1})
JUDGE, TRUE = truth_of(BESIDE + ALONE), truth_of(HUMAN)


def test_mean_is_that_of_ppi_py():
    row = rf.summarize(RUN, "dcg@1", truth=JUDGE, human=TRUE, **DCG).row(0, named=True)
    reach = stats.t.ppf(0.975, NUMBER - 1) * ERROR
    assert (row["users"], row["users_human"]) == (USERS, NUMBER)
    found = row["mean"], row["ci_low"], row["ci_high"], row["mean"] + row["correction"]
    expected = MEAN, MEAN - reach, MEAN + reach, np.mean(BESIDE + ALONE)
    assert found == pytest.approx(expected, abs=1e-10)
    assert row["median"] == np.median(HUMAN)
    assert row["note"].startswith(
        "the judge puts the mean too high by 0.12 (12 users with human labels)"
    )


def test_error_of_known_lambda_is_that_of_ppi_py():
    residual = np.array(HUMAN) - TUNED * np.array(BESIDE)
    known = np.var(residual) / NUMBER + TUNED**2 * np.var(ALONE) / len(ALONE)
    assert known**0.5 == pytest.approx(ERROR_OF_KNOWN, abs=1e-10)
    assert 1 < ERROR / ERROR_OF_KNOWN < 1.1


def by_hand(human, judge, labelled, weights, clusters):
    """The mean, and the jackknife over clusters of both kinds, in plain Python."""

    def sums(values, unit):
        own = [u for u in range(len(values)) if clusters[u] == unit and values[u] is not None]
        return sum(weights[u] * values[u] for u in own), sum(weights[u] for u in own)

    units = dict.fromkeys(clusters)
    with_labels = [unit for unit in units if labelled[clusters.index(unit)]]
    both = [(sums(human, unit), sums(judge, unit)) for unit in with_labels]
    others = [sums(judge, unit) for unit in units if unit not in with_labels]
    mean = sum(y for (y, _), _ in both) / sum(size for (_, size), _ in both)

    def estimate(both, others):
        true, beside, alone = np.array([y for y, _ in both]), np.array([f for _, f in both]), others
        far, of_judge, of_others = (np.array(x) @ [1, -mean] for x in (true, beside, alone))
        slope = np.cov(far, of_judge, ddof=0)[0, 1]
        slope /= np.var([*of_judge, *of_others], ddof=1) * (1 + len(both) / len(others))
        slope = min(max(slope, 0), 1)
        parts = slope * np.mean(alone, axis=0) + (true - slope * beside).mean(axis=0)
        return parts[0] / parts[1]

    squares = 0.0
    for kind, number in enumerate((len(both), len(others))):
        left = [
            estimate(
                *(
                    part[:u] + part[u + 1 :] if k == kind else part
                    for k, part in enumerate((both, others))
                )
            )
            for u in range(number)
        ]
        squares += (number - 1) * np.var(left)
    return estimate(both, others), squares**0.5


def test_weights_clusters_and_users_without_a_value_by_hand():
    draw = np.random.default_rng(5)
    number = 40
    judge = [float(x) if x > 0.1 else None for x in draw.random(number).round(3)]
    human = [None if x is None or x > 0.9 else x * 0.8 for x in judge]
    human[3] = 0.5  # of a user without a value by the judge
    judge[3] = None
    clusters = [u // 2 if u < 20 else u for u in range(number)]
    labelled = [clusters[u] % 3 == 0 for u in range(number)]
    human = [x if on else None for x, on in zip(human, labelled, strict=True)]
    weights = draw.integers(1, 4, number).tolist()
    mean, error = by_hand(human, judge, labelled, weights, clusters)
    places = np.unique(clusters, return_inverse=True)[1]
    both = Both(*(np.array(x, np.float64) for x in (judge, human)))
    (sample,) = human_labels.corrected(
        [both], np.array(labelled), np.array(weights, np.float64), places
    )
    found = st.estimate(sample)
    assert (float(found.mean), float(found.error)) == pytest.approx((mean, error), abs=1e-12)


def lists(*numbers, seed=1):
    """Runs by name, the judge's truth and that of humans, of 40 users with hits at 1 or 2."""
    draw = np.random.default_rng(seed)
    runs = {}
    for name, number in zip(("old", "new"), numbers, strict=False):
        ranks = draw.permuted(np.tile(np.arange(1, 5), (40, 1)), axis=1)
        ranks[:number] = np.sort(ranks[:number], axis=1)
        runs[name] = pl.DataFrame(
            {"user": np.repeat(range(40), 4), "item": [*range(4)] * 40, "rank": ranks.ravel()}
        )
    grade = np.tile([2, 1, 0, 0], 40)
    judge = np.maximum(grade, draw.random(160) < 0.3).astype(int)
    keys = {"user": np.repeat(range(40), 4), "item": [*range(4)] * 40}
    shop = {"shop": [f"s{u % 8}" for u in keys["user"]]}
    judged = pl.DataFrame(keys | {"relevance": judge} | shop)
    return runs, judged, pl.DataFrame(keys | {"relevance": grade})


def test_comparison_agrees_with_its_parts():
    runs, judged, true = lists(5, 40)
    human = true.filter(pl.col("user") % 4 != 0)
    options = {"truth": judged, "human": human}
    row = rf.compare(runs, "ndcg@2", **options, details=True).row(0, named=True)
    assert row["users_human"] == 30
    assert row["mean"] - row["baseline_mean"] == pytest.approx(row["difference"])
    assert row["difference"] / row["baseline_mean"] == pytest.approx(row["relative"])
    assert row["ci_low"] < row["difference"] < row["ci_high"]
    assert row["relative_low"] < row["relative"] < row["relative_high"]
    judge = rf.compare(runs, "ndcg@2", truth=judged)["difference"].item()
    assert row["difference"] + row["correction"] == pytest.approx(judge)
    assert "the judge puts the difference too " in row["note"]
    users = {
        (name, kind): rf.per_user(run, "ndcg@2", truth=truth).sort("user")["ndcg@2"].to_numpy()
        for name, run in runs.items()
        for kind, truth in (("judge", judged), ("human", true))
    }
    has = np.arange(40) % 4 != 0
    change = [users["new", kind] - users["old", kind] for kind in ("judge", "human")]
    both = Both(change[0], np.where(has, change[1], np.nan))
    found = st.estimate(human_labels.corrected([both], has, None, None)[0])
    assert found.mean == pytest.approx(row["difference"])
    assert found.p() == pytest.approx(row["p_adjusted"])


@pytest.mark.parametrize("verb", [rf.summarize, rf.compare])
def test_judge_who_tells_nothing_costs_nothing(verb):
    """λ is 0 where the judge is against the labels, or where all users have them."""
    runs, judged, true = lists(5, 40)
    human = true.filter(pl.col("user") % 2 == 0)
    against = judged.with_columns(relevance=2 - pl.col("relevance"))
    by = {"by": "model"} if verb is rf.summarize else {}
    shown = ["mean", "ci_low", "ci_high"] if by else ["difference", "ci_low", "ci_high"]
    for truth, labels in ((against, human), (judged, true)):
        stacked = rf.runs.stack(runs)
        found = verb(stacked, "ndcg@2", truth=truth, human=labels, **by)
        method = {"method": "t"} if by else {}
        alone = verb(stacked, "ndcg@2", truth=labels, **by, **method)
        for column in shown:
            assert found[column].to_list() == pytest.approx(alone[column].to_list())


def test_clusters_totals_and_dicts():
    runs, judged, true = lists(5, 40)
    human = true.filter(pl.col("user") % 8 < 5)  # five whole shops
    options = {"truth": judged, "human": human}
    of_shops = rf.compare(runs, "ndcg@2", **options, cluster="shop")
    assert "8 clusters" in of_shops["note"].item()
    stacked = rf.runs.stack(runs)
    options["truth"] = judged = judged.with_columns(day=pl.col("user") % 2)
    days = rf.compare(stacked, "ndcg@2", **options, by="day", total=True)
    assert days.filter(pl.col("day").is_null())["users_human"].item() == 25
    whole = rf.compare(runs, "ndcg@2", **options)
    grades = {
        user: dict(of.select("item", "relevance").iter_rows())
        for (user,), of in human.group_by("user", maintain_order=True)
    }
    assert rf.compare(runs, "ndcg@2", truth=judged, human=grades).equals(whole)
    few = rf.summarize(
        stacked, "ndcg@2", truth=judged, human=true.filter(user=0), by=["model", "day"]
    )
    assert few["users_human"].to_list() == [1, 0, 1, 0]
    assert few["mean"].is_null().to_list() == [False, True, False, True]
    assert few["ci_low"].null_count() == 4
    assert few["note"][1].startswith("no user with human labels has a value")


def refused(match, human, verb=rf.compare, **options):
    runs, judged, _ = lists(5, 40)
    with pytest.raises(ValueError, match=match) as caught:
        verb(runs, "ndcg@2", truth=judged, human=human, **options)
    return runs, judged, str(caught.value)


def test_labels_of_a_pool_are_no_whole_truth():
    """The judge's recall divides by relevant items below the pool, and that by humans does not."""
    pairs = pl.DataFrame({"user": range(12)}).join(pl.DataFrame({"item": range(4)}), how="cross")
    truth = pairs.with_columns(relevance=(pl.col("item") + pl.col("user")) % 2)
    human = truth.filter(pl.col("item") < 2, pl.col("user") < 6)
    run = pairs.filter(pl.col("item") < 2).with_columns(rank=pl.col("item") + 1)
    with pytest.raises(
        rf.RankingDataError, match="a relevant item in truth is not judged in human labels"
    ):
        rf.summarize(run, "recall@2", truth=truth, human=human)
    pool = truth.filter(pl.col("item") < 2)
    equal = rf.summarize(run, "recall@2", truth=pool, human=human).row(0, named=True)
    assert (equal["mean"], equal["correction"]) == (1.0, 0.0)


def test_segment_of_a_user_is_that_of_the_truth():
    options = {"by": "team", "users": "judged", "undefined": 0.0}
    judge, human = truth_of(BESIDE + ALONE, team="a"), truth_of(HUMAN, team="b")
    row = rf.summarize(RUN, "dcg@1", truth=judge, human=human, **options).row(0, named=True)
    assert (row["team"], row["users"], row["users_human"]) == ("a", USERS, NUMBER)


def test_labels_down_to_depth_are_complete():
    pairs = pl.DataFrame({"user": range(8)}).join(pl.DataFrame({"item": range(4)}), how="cross")
    truth = pairs.with_columns(relevance=((pl.col("item") + pl.col("user")) % 2 == 0) * 1)
    run = pairs.with_columns(rank=pl.col("item") + 1)
    human = truth.filter(pl.col("user") < 4, (pl.col("item") < 2) | (pl.col("relevance") > 0))
    with pytest.raises(rf.RankingDataError, match="judge all items of the lists to rank 4"):
        rf.summarize(run, "precision@4", truth=truth, human=human)
    cut = rf.summarize(run, "precision@4", truth=truth, human=human, depth=2)
    assert cut["users_human"].item() == 4


def test_users_without_a_list_are_in_a_random_sample():
    run, human = RUN.filter(pl.col("user") < 20), JUDGE.head(12)
    message = "20 of 40 users have no list, and none of the 12 users with human labels"
    for verb in (rf.summarize, partial(rf.compare, baseline="a")):
        frame = {"a": run, "b": run} if verb is not rf.summarize else run
        with pytest.raises(rf.RankingDataError, match=message):
            verb(frame, "dcg@1", truth=JUDGE, human=human, **DCG)
        drawn = JUDGE.gather_every(3)
        assert verb(frame, "dcg@1", truth=JUDGE, human=drawn, **DCG)["users_human"].item() == 14
        served = verb(frame, "dcg@1", truth=JUDGE, human=human, users="both", undefined=0.0)
        assert served["users_human"].item() == 12


def test_what_is_checked_of_the_labels():
    _, _, true = lists(5, 40)
    human = true.filter(pl.col("user") < 20)
    drawn = human.with_columns(
        drawn=pl.when(pl.col("user") < 15).then(pl.lit("random")).otherwise(pl.lit("chosen"))
    )
    runs, truth, text = refused("must be a random sample", drawn)
    assert 'human.filter(pl.col("drawn") == "random")' in text
    drawn = drawn.filter(pl.col("drawn") == "random")
    assert rf.compare(runs, "ndcg@2", truth=truth, human=drawn)["users_human"].item() == 15
    others = pl.concat([human, human.with_columns(user=pl.col("user") + 100)])
    _, _, text = refused(r"random sample of the users .* Offending row: user=100", others)
    cure = "human.join(truth, on='user', how='semi')"
    assert cure in text
    others = eval(cure, {"human": others, "truth": truth})
    assert rf.compare(runs, "ndcg@2", truth=truth, human=others)["users_human"].item() == 20
    part = human.filter((pl.col("user") > 0) | (pl.col("item") > 0))
    _, _, text = refused("judged in truth, and not in human", part)
    assert text.endswith(
        "to rank 2 in both, or use metrics with a smaller cut-off. Offending row: "
        "model='old', user=0, item=0"
    )
    refused(
        "with shop='s0', which is one observation", true.filter(pl.col("user") < 5), cluster="shop"
    )
    text = human.cast({"user": pl.String})
    refused("it is Int64 in the run and String in the human labels: cast one", text)
    refused(
        "^human labels, column 'relevance': ", human.with_columns(relevance=pl.lit(float("nan")))
    )


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"test": "max_t", "correction": "holm"}, "test='max_t' is not supported with human="),
        (
            {"test": "randomization"},
            "test='randomization' is not supported with human=: leave it out",
        ),
        ({"paired": False}, "paired=False is not supported with human=: leave it out"),
        (
            {"by": "relevant_items"},
            "by=: 'relevant_items' is made of each truth, and is not supported",
        ),
        ({"average": "shop"}, "average='shop' is not supported with human=: leave it out"),
    ],
)
def test_options_without_a_form(options, match):
    _, _, true = lists(5, 40)
    refused(match, true.filter(pl.col("user") < 20), **options)


def test_metrics_and_tables_without_a_form():
    runs, judged, true = lists(5, 40)
    for metric in ("gmap", "gini(of=shown)@2"):
        with pytest.raises(ValueError, match="corrects means: leave it out"):
            rf.summarize(runs["old"], metric, truth=judged, human=true)
    values = pl.DataFrame({"user": [1, 2, 3], "score": [0.1, 0.2, 0.4]})
    with pytest.raises(ValueError, match="human= corrects the means of a judge"):
        rf.summarize(values, "score", human=true)


def test_interval_covers_where_that_of_the_judge_does_not():
    """200 samples of 90 users, 30 of them with human labels, and a generous judge."""
    draw = np.random.default_rng(8)
    covered = {"both": 0, "judge": 0}
    widths = []
    has = np.arange(90) < 30
    for _ in range(200):
        values = draw.beta(1, 2, 90)
        judge = np.clip(values + 0.1 + draw.normal(0, 0.1, 90), 0, 1)
        both = Both(judge, np.where(has, values, np.nan))
        (sample,) = human_labels.corrected([both], has, None, None)
        low, high = st.estimate(sample).interval(0.95)
        covered["both"] += bool(low <= 1 / 3 <= high)
        alone = st.estimate(st.Sample(judge)).interval(0.95)
        covered["judge"] += bool(alone[0] <= 1 / 3 <= alone[1])
        of_labels = st.estimate(st.Sample(values[:30])).interval(0.95)
        widths.append((high - low, of_labels[1] - of_labels[0]))
    assert covered["both"] >= 180
    assert covered["judge"] <= 60
    assert np.mean(widths, axis=0)[0] < 0.9 * np.mean(widths, axis=0)[1]


def test_gate_decides_by_the_corrected_numbers():
    """A judge who likes what is new lets a loss pass; human labels of 30 users do not."""
    runs, judged, true = lists(40, 5)
    human = true.filter(pl.col("user") % 4 != 0)
    first = runs["new"].filter(rank=1)
    likes = judged.join(first, on=["user", "item"], how="left").with_columns(
        relevance=pl.when(pl.col("rank") == 1).then(2).otherwise(pl.col("relevance"))
    )
    likes = likes.drop("rank")
    options = {"baseline": "old", "margin": 0.2}
    assert rf.gate(runs, "precision@1", truth=likes, **options)["passed"].item()
    row = rf.gate(runs, "precision@1", truth=likes, human=human, **options).row(0, named=True)
    compared = rf.compare(runs, "precision@1", truth=likes, human=human, baseline="old", margin=0.2)
    for column in ("difference", "ci_low", "users_human", "correction"):
        assert row[column] == compared[column].item()
    assert not row["passed"]
    assert row["why"].startswith("worse: interval below -0.2")


def test_floors_are_of_the_corrected_mean():
    runs, judged, true = lists(5, 40)
    human = true.filter(pl.col("user") % 4 != 0)
    options = {"truth": judged, "human": human}
    means = rf.summarize(runs, "ndcg@2", by="model", **options)
    row = means.filter(model="old").row(0, named=True)
    decided = rf.gate(runs, "ndcg@2", at_least=0.6, **options)
    assert dict(decided.select("model", "mean").rows()) == dict(
        means.select("model", "mean").rows()
    )
    assert decided["users_human"].to_list() == [30, 30]
    tested = rf.gate(runs, "ndcg@2", at_least=0.6, interval=True, **options)
    of_old = tested.filter(model="old").row(0, named=True)
    assert of_old["ci_low"] == pytest.approx(row["ci_low"])
    most = rf.gate(runs, "ndcg@2", at_most=0.6, interval=True, **options).filter(model="old")
    assert most["ci_low"].item() == pytest.approx(row["ci_low"])
    assert "the judge puts the mean too high by" in decided["note"][0]


def test_verdict_and_table_of_a_report_are_corrected():
    runs, judged, true = lists(5, 40)
    options = {"truth": judged, "human": true.filter(pl.col("user") % 4 != 0)}
    page = rf.report(runs, "ndcg@2", **options, explore=0)
    compared = rf.compare(runs, "ndcg@2", **options)
    for column in ("difference", "ci_low", "users_human", "correction"):
        assert page.tables["comparison"][column].equals(compared[column])
    means = rf.summarize(runs, "ndcg@2", **options, by="model")
    assert {*page.tables["means"]["mean"]} == {*means["mean"]}
    assert "The verdict and the table are corrected by 30 users with human labels" in page.verdict


def test_power_plans_the_human_labels():
    """The error is the mean square of Y - λF and of F, by hand; the power is SciPy's."""
    runs, judged, true = lists(5, 40)
    human = true.filter(pl.col("user") % 4 != 0)
    options = {"truth": judged, "human": human, "baseline": "old", "power": 0.7}
    row = rf.stats.power(runs, "ndcg@2", **options, difference=0.2).row(0, named=True)
    values = pl.concat(
        [
            rf.stats.differences(runs, "ndcg@2", truth=truth, baseline="old").select(
                "user", pl.col("difference"), kind=pl.lit(kind)
            )
            for kind, truth in (("judge", judged), ("human", true))
        ]
    ).pivot("kind", index="user", values="difference")
    judge, seen = values["judge"], values.filter(pl.col("user") % 4 != 0)
    slope = np.cov(seen["judge"], seen["human"], ddof=0)[0, 1] / judge.var()
    spread = seen["human"].std()

    def power_with(number):
        tuned = min(1, slope * (1 - number / 40))
        squared = spread**2 - 2 * tuned * slope * judge.var() + tuned**2 * judge.var()
        error = np.sqrt(squared / number + tuned**2 * judge.var() / (40 - number))
        limit = stats.t.isf(0.025, number - 1)
        return 1 - np.diff(stats.nct.cdf([-limit, limit], number - 1, 0.2 / error)).item()

    assert row["users_human"] == 30
    assert row["needed_human"] == next(n for n in range(2, 40) if power_with(n) >= 0.7)
    assert row["std"] == pytest.approx(spread)
    assert row["needed_human"] < row["needed"]
    few = rf.stats.power(runs, "ndcg@2", **options, difference=0.01).row(0, named=True)
    assert (few["needed_human"], few["needed"] > 40) == (None, True)
    assert "human labels of all users are too few for the target" in few["note"]
    lazy = {name: run.lazy() for name, run in runs.items()}
    found = rf.stats.power(lazy, "ndcg@2", **options, difference=0.2).collect().row(0, named=True)
    assert found == row


def test_labels_are_read_as_a_truth():
    """Cures name the labels, and work when pasted; every pair is checked, whatever its grade."""
    runs, truth, true = lists(5, 40)
    human = true.filter(pl.col("user") < 20)

    def cured(human, expected, **tables):
        with pytest.raises(rf.RankingDataError) as caught:
            rf.compare(runs, "ndcg@2", truth=truth, human=human, **tables)
        text = str(caught.value)
        assert expected in text
        found = re.search(r"human\.\w+\(.*\)(?=\. Offending|$)", text)
        return found and eval(found[0], {"human": human, "truth": truth, "pl": pl})

    for column in ("user", "item"):
        cured(human.cast({column: pl.Float64}), f"column {column!r}: it is Int64 in the run and")
    assert cured(human.rename({"user": "query"}), "no column 'user' for user").equals(human)
    assert cured(human.rename({"item": "doc"}), "no column 'item' for item").equals(human)
    others = pl.concat([human, human.with_columns(user=pl.col("user") + 100)])
    for kind in (pl.Int64, pl.Int32):
        cure = cured(others.cast({"user": kind}), "a user without a row in the truth")
        assert cure.equals(human.cast({"user": kind}))
    for grade in (2, 0):
        doubled = pl.concat([human, human.head(1).with_columns(relevance=pl.lit(grade, pl.Int64))])
        cure = cured(doubled, "human labels, column 'item': duplicate (user, item): ")
        assert cure.sort("user", "item").equals(human)
    runs = {name: run.rename({"user": "query"}) for name, run in runs.items()}
    truth = truth.rename({"user": "query"})
    assert cured(human, "no column 'query' for user").columns[0] == "query"


@pytest.mark.filterwarnings("ignore:.*empty_as_null:DeprecationWarning")  # of pasted cures, 1.44
def test_lists_of_relevant_items():
    pairs = {"user": [1, 2, 3], "retrieved": [["a", "b"], ["c"], ["d"]]}
    run = pl.DataFrame(pairs | {"expected": [["a"], ["d"], ["d"]], "gold": [["b"], ["c"], ["d"]]})
    options = {"item": "retrieved", "human": run.select("user", "gold")}
    for kind in (pl.DataFrame, pl.DataFrame.to_pandas):
        run = kind(run)
        with pytest.raises(ValueError, match="truth='expected' with human=: pass both as") as text:
            rf.summarize(run, "recall@1", truth="expected", **options)
        cure = str(text.value).split("here as truth: ")[1]
        truth = eval(cure, {"run": run, "pl": pl})
        with pytest.raises(ValueError, match="no column 'item' for item") as text:
            rf.summarize(run, "recall@1", truth=truth, **options)
        human = eval(str(text.value).split("as in the truth: ")[1], dict(options))
        found = rf.summarize(run, "recall@1", truth=truth, **(options | {"human": human}))
        assert [*found["users_human"]] == [3]


@pytest.mark.parametrize(
    ("labels", "grades", "mean", "difference"),
    [
        (pl.col("user") < 20, 0, "no user has a value by the judge: the mean is that of 20", ""),
        (pl.col("user") == 3, None, "; one user with human labels", "; one user with human labels"),
        (pl.col("user") < 5, None, "every user with human labels has", "no user with human labels"),
        (pl.col("user") > 40, None, "^no user with human labels has a value$", "same"),
    ],
)
def test_notes_name_the_users_with_human_labels(labels, grades, mean, difference):
    runs, truth, true = lists(5, 40)
    truth = truth if grades is None else truth.with_columns(relevance=pl.lit(grades))
    truth = truth.select("user", "item", "relevance", part=pl.lit("a"))
    if difference == "same":
        truth = pl.concat([truth, truth.with_columns(pl.col("user") + 40, part=pl.lit("b"))])
        true = pl.concat([true, true.with_columns(pl.col("user") + 40)])
        runs = {
            name: pl.concat([run, run.with_columns(pl.col("user") + 40)])
            for name, run in runs.items()
        }
    options = {"truth": truth, "human": true.filter(labels), "by": "part"}
    of_mean = rf.summarize(runs["old"], "ndcg@2", **options)["note"][0]
    of_pair = rf.compare(runs, "ndcg@2", **options)["note"][0]
    assert re.search(mean, of_mean)
    if difference == "same":
        assert of_pair == of_mean
    assert difference == "same" or difference in of_pair
    assert "no user differs" not in of_pair


def test_gate_and_power_say_whose_values_decide():
    runs, judged, true = lists(5, 40)
    options = {"truth": judged, "human": true.filter(pl.col("user") < 15), "baseline": "old"}
    gated = rf.gate(runs, "precision@1", **options, margin=0.1)["why"].item()
    assert "0 of 15 users with human labels lose" in gated
    floor = rf.gate(runs, "ndcg@2", **(options | {"baseline": None}), at_least=0.6, interval=True)
    assert "15 of 15 values with human labels are " in floor["why"][0]
    with pytest.raises(
        ValueError, match="margin= is not supported with human=: leave out one of them"
    ):
        rf.stats.power(runs, "ndcg@2", **options, margin=0.1)


def test_provenance_names_the_labels():
    runs, judged, true = lists(5, 40)
    human = true.filter(pl.col("user") < 30)
    alone, both, other = (
        rf.provenance(runs, "ndcg@2", truth=judged, human=labels, checksums=True)
        for labels in (None, human, human.head(80))
    )
    assert both["rows"] == {**alone["rows"], "human": 120}
    assert {*both["checksums"]} == {"run", "truth", "human"}
    assert both["checksums"]["human"] != other["checksums"]["human"]
    assert both["conventions"] == other["conventions"] != alone["conventions"]
    assert both["conventions_of"] != alone["conventions_of"]
    assert both["options"] == alone["options"] | {"human": True}
    page = rf.report(runs, "ndcg@2", truth=judged, human=human, explore=0)
    sources = page.tables["sources"].filter(table="human").row(0)
    assert sources == ("human", 120, both["checksums"]["human"])
    assert "human" in str(page)


def test_report_claims_nothing_of_the_judge_alone():
    """Among users with a list from both, the judge's claim is another one, and no labels tell."""
    runs, judged, true = lists(5, 40)
    runs["new"] = runs["new"].filter(pl.col("user") >= 25)
    options = {"truth": judged, "explore": 0}
    assert "The answer differs among" in rf.report(runs, "ndcg@2", **options).verdict
    human = true.filter(pl.col("user") % 2 == 0)
    assert (
        "The answer differs among" not in rf.report(runs, "ndcg@2", **options, human=human).verdict
    )


def test_means_of_segments_in_a_total_are_corrected():
    options = {"truth": truth_of(BESIDE + ALONE), "human": truth_of(HUMAN), "total": True}
    team = pl.when(pl.col("user").hash(1) % 2 == 0).then(pl.lit("a")).otherwise(pl.lit("b"))
    run = RUN.with_columns(team=team)
    rows = rf.summarize(run, "dcg@1", **options, by="team", users="both", undefined=0.0)
    means, total = rows["mean"].drop_nulls().to_list()[:-1], rows.row(-1, named=True)
    assert total["groups_mean"] == pytest.approx(sum(means) / len(means))
    assert total["groups"] == len(means)


def test_both_tables_have_grades_or_neither():
    judge, human = truth_of(BESIDE + ALONE), truth_of(HUMAN)
    bare = human.drop("relevance")
    with pytest.raises(
        rf.errors.RankingDataError, match="^human labels: there is no column of grades"
    ):
        rf.summarize(RUN, "dcg@1", truth=judge, human=bare)
    with pytest.raises(rf.errors.RankingDataError, match="^truth: there is no column of grades"):
        rf.summarize(RUN, "dcg@1", truth=judge.drop("relevance"), human=human)
