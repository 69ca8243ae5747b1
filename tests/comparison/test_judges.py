"""Judges against scikit-learn, statsmodels and krippendorff, and against plain Python."""

import math
import random
from itertools import product

import pandas
import polars as pl
import pytest
from scipy import stats

import rankframe as rf
from rankframe.errors import RankingDataError

HUMAN = [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 0, 1, 2, 0, 1, 3]
LLM = [0, 0, 1, 0, 1, 2, 1, 1, 2, 2, 0, 2, 3, 3, 3, 3, 2, 3, 1, 1, 3, 0, 2, 3]


def judged(human, llm, each=1):
    """Put grades in a dict of judges; each user has the same number of items."""
    places = range(len(human))
    pairs = pl.DataFrame({"user": [n // each for n in places], "item": [*places]})
    grades = {"human": human, "llm": llm}
    return {
        name: pairs.with_columns(relevance=pl.Series(of, strict=False))
        for name, of in grades.items()
    }


def values(found):
    return dict(found.select("measure", "value").rows())


# ------------------------------------------------------------------ grades


def test_numbers_of_other_packages():
    # scikit-learn 1.9.1 cohen_kappa_score(…, labels=[0, 1, 2, 3]), and statsmodels 0.15.0;
    # krippendorff 0.9.0 alpha(…, level_of_measurement="ordinal")
    assert values(rf.stats.judges(judged(HUMAN, LLM))) == pytest.approx(
        {
            "exact": 0.5,
            "bias": 0.375,
            "kappa": 0.33793103448275863,
            "kappa_linear": 0.5806451612903225,
            "kappa_quadratic": 0.7637795275590551,
            "alpha": 0.7550521890403016,
        },
        abs=1e-12,
    )
    # nobody gave a 2: scikit-learn with all four labels, not with the three that are there
    gap = values(rf.stats.judges(judged([0, 1, 3, 1, 0, 3, 0, 1], [0, 1, 3, 3, 1, 3, 0, 0])))
    assert gap["kappa_linear"] == pytest.approx(0.627906976744186, abs=1e-12)
    assert gap["alpha"] == pytest.approx(0.7350206611570248, abs=1e-12)


def test_errors_of_independent_pairs_are_near_those_of_statsmodels():
    human = [(i * 7919 % 97) % 4 for i in range(400)]
    llm = [
        min(3, grade + ((i * 31 % 11) > 7)) if (i * 13 % 17) < 15 else (i * 5) % 4
        for i, grade in enumerate(human)
    ]
    found = rf.stats.judges(judged(human, llm)).filter(pl.col("measure").str.contains("kappa"))
    width = (found["ci_high"] - found["ci_low"]) / 2 / stats.t.ppf(0.975, 399)
    # statsmodels 0.15.0 cohens_kappa(…).std_kappa, of Fleiss, Cohen and Everitt
    expected = [0.029330642799168565, 0.02440552908886929, 0.025129554294553724]
    assert width.to_list() == pytest.approx(expected, rel=0.005)


def plain(pairs):
    """Each measure from its definition, over pairs of grades."""
    n, result = len(pairs), {}
    result["exact"] = sum(h == j for h, j in pairs) / n
    result["bias"] = sum(j - h for h, j in pairs) / n
    weights = {"": lambda d: d != 0, "_linear": abs, "_quadratic": lambda d: d * d}
    for name, weight in weights.items():
        observed = sum(weight(h - j) for h, j in pairs) / n
        expected = sum(weight(h - j) for (h, _), (_, j) in product(pairs, pairs)) / n**2
        result[f"kappa{name}"] = 1 - observed / expected
    both = [grade for pair in pairs for grade in pair]

    def distance(c, k):
        low, high = sorted((c, k))
        between = sum(low <= grade <= high for grade in both)
        return 0 if c == k else (between - (both.count(c) + both.count(k)) / 2) ** 2

    observed = sum(distance(h, j) for h, j in pairs) / n
    expected = sum(distance(c, k) for c, k in product(both, both)) / (2 * n * (2 * n - 1))
    return result | {"alpha": 1 - observed / expected}


def test_values_and_jackknife_in_plain_python(monkeypatch):
    monkeypatch.setattr("rankframe._comparison.judge_agreement._CELLS", 32)  # two users at once
    draw = random.Random(3)
    human = [draw.choice([0, 1, 2, 3.5]) for _ in range(20)]
    llm = [grade if draw.random() < 0.6 else draw.choice([0, 1, 2, 3.5]) for grade in human]
    pairs = [*zip(human, llm, strict=True)]
    found = {row["measure"]: row for row in rf.stats.judges(judged(human, llm, 4)).to_dicts()}
    others = [plain(pairs[: 4 * user] + pairs[4 * user + 4 :]) for user in range(5)]
    for name, value in plain(pairs).items():
        row = found[name]
        assert (row["users"], row["pairs"], row["unpaired"]) == (5, 20, 0)
        assert row["value"] == pytest.approx(value, abs=1e-12)
        squares = sum((other[name] - value) ** 2 for other in others)
        reach = stats.t.ppf(0.975, 4) * math.sqrt(4 / 5 * squares)
        high = value + reach if name == "bias" else min(1, value + reach)
        low = max(0, value - reach) if name == "exact" else value - reach
        assert (row["ci_low"], row["ci_high"]) == pytest.approx((low, high), abs=1e-10)


def test_confusion_counts_the_pairs_of_two_grades():
    table = rf.stats.judges(judged(HUMAN, LLM), confusion=True)
    assert table.columns == ["judge", "baseline_grade", "grade", "pairs"]
    pairs = [*zip(HUMAN, LLM, strict=True)]
    expected = {pair: pairs.count(pair) for pair in sorted({*pairs})}
    assert table.rows() == [("llm", *pair, number) for pair, number in expected.items()]


# ------------------------------------------------------------------ segments and pairs of one judge


def test_segments_are_those_of_the_judge_and_pairs_of_one_judge_are_counted():
    judgments = pl.DataFrame(
        [
            ("human", 1, "a", 1, None),
            ("human", 1, "b", 0, None),
            ("human", 1, "c", 1, None),
            ("llm", 1, "a", 1, "top"),
            ("llm", 1, "b", 2, "low"),
            ("llm", 2, "a", 1, "low"),
        ],
        schema=["judge", "user", "item", "relevance", "place"],
        orient="row",
    )
    found = rf.stats.judges(judgments, by="place", baseline="human").filter(measure="bias")
    columns = ["place", "users", "pairs", "unpaired", "note", "value"]
    assert found.select(columns).rows() == [
        ("low", 1, 1, 1, "one user", 2.0),
        ("top", 1, 1, 0, "one user", 0.0),
        (None, 0, 0, 1, "no pair was judged by both", None),
    ]


def test_a_dict_of_frames_with_other_columns():
    truths = judged([0, 1, 2, 0], [1, 1, 2, 1], 2)
    truths["llm"] = truths["llm"].with_columns(place=pl.Series([1, 2, 1, 2]))
    truths["human"] = truths["human"].with_columns(drawn=pl.lit("random"))
    found = rf.stats.judges(truths, by="place").filter(measure="bias")
    assert found.select("judge", "place", "value").rows() == [("llm", 1, 0.5), ("llm", 2, 0.5)]
    assert found.schema["judge"] == pl.String
    lazy = rf.stats.judges({name: of.lazy() for name, of in truths.items()}, by="place")
    assert lazy.filter(measure="bias").collect().equals(found)
    of_pandas = rf.stats.judges({n: of.to_pandas() for n, of in truths.items()}, by="place")
    assert isinstance(of_pandas, pandas.DataFrame)
    assert of_pandas["judge"].to_list() == ["llm"] * 12


def test_judges_without_a_common_pair():
    judges = {"human": {1: {"a": 1}}, "llm": {2: {"a": 1}}}
    for systems, measures in (([], 6), ([{"up": {1: ["a"]}}, "rr"], 9)):
        found = rf.stats.judges(judges, *systems)
        assert found["unpaired"].to_list() == [2] * measures
        assert set(found["note"]) == {"no pair was judged by both"}
    assert rf.stats.judges(judges, confusion=True).is_empty()


def test_one_grade_and_perfect_agreement():
    found = rf.stats.judges(judged([1] * 4, [1] * 4)).select("measure", "value", "note").rows()
    assert found[:3] == [
        ("exact", 1.0, "every user has the same value"),
        ("bias", 0.0, "every user has the same value"),
        ("kappa", None, "both gave the same grade everywhere"),
    ]
    found = rf.stats.judges(judged([0, 1, 2, 3] * 3, [0, 1, 2, 3] * 3))
    assert found["value"].to_list() == [1, 0, 1, 1, 1, 1]
    assert found["ci_low"].to_list() == [None] * 6


def test_a_judge_who_gives_one_grade():
    found = rf.stats.judges(judged([0, 1, 2, 3], [2] * 4)).select("measure", "value", "note")
    kappas = found.filter(pl.col("measure").str.starts_with("kappa"))
    assert kappas["value"].to_list() == pytest.approx([0, 0, 0], abs=1e-12)  # as scikit-learn
    assert set(kappas["note"]) == {"one of the two gave the same grade everywhere"}
    alpha = found.filter(measure="alpha")["value"].item()
    assert alpha == pytest.approx(plain([(0, 2), (1, 2), (2, 2), (3, 2)])["alpha"], abs=1e-12)
    same = rf.stats.judges(judged([2] * 4, [2] * 4)).select("value", "note").rows()
    assert same[2:] == [(None, "both gave the same grade everywhere")] * 4


def test_grades_of_two_types_are_one_number():
    both = judged(HUMAN, LLM)
    as_float = both | {"llm": both["llm"].with_columns(pl.col("relevance").cast(pl.Float64))}
    assert rf.stats.judges(as_float).equals(rf.stats.judges(both))
    named = {name: of.rename({"relevance": "label"}) for name, of in as_float.items()}
    assert rf.stats.judges(named).equals(rf.stats.judges(both))


# ------------------------------------------------------------------ systems

TRUTHS = {
    "human": {1: {"a": 1, "b": 0}, 2: {"a": 1, "b": 0}, 3: {"c": 0}},
    "llm": {1: {"a": 1, "b": 0}, 2: {"a": 1, "b": 2}, 3: {"c": 1, "d": 1}},
    "turned": {1: {"a": 0, "b": 1}, 2: {"a": 0, "b": 1}},
}
SYSTEMS = {"up": {1: ["a", "b"], 2: ["a", "b"]}, "down": {1: ["b", "a"], 2: ["b", "a"]}}


def test_order_of_systems_and_change_of_each_metric():
    found = rf.stats.judges(TRUTHS, SYSTEMS, "rr", "fallout@1", users="judged", undefined=0.0)
    of_metrics = found.drop_nulls("metric")
    tau = of_metrics.filter(measure="kendall_tau").select("judge", "metric", "value")
    assert tau.rows() == [
        ("llm", "rr", 1),
        ("llm", "fallout@1", 1),
        ("turned", "rr", -1),
        ("turned", "fallout@1", -1),
    ]
    shared = {
        1: {"a": 1, "b": 0},
        2: {"a": 1, "b": 2},
        3: {"c": 1},
    }  # not d, which the llm alone judged
    options = {"by": "model", "users": "judged", "undefined": 0.0}
    own, base = (
        rf.evaluate(SYSTEMS, "rr", truth=of, **options) for of in (shared, TRUTHS["human"])
    )
    change = of_metrics.filter(judge="llm", metric="rr", measure="change")
    assert change["model"].to_list() == ["up", "down"]
    assert change["value"].to_list() == pytest.approx((own["rr"] - base["rr"]).to_list())
    assert change["value"][1] > 0


def test_taus_are_those_of_metric_agreement():
    draw = random.Random(1)
    users, items = range(8), "abcdef"
    truths = {
        judge: {u: {i: draw.choice([0, 0, 1, 2]) for i in items} for u in users}
        for judge in ("human", "llm")
    }
    runs = {name: {u: draw.sample(items, 4) for u in users} for name in "stuvw"}
    found = rf.stats.judges(truths, runs, "ndcg@3").filter(metric="ndcg@3")
    own, base = (
        rf.evaluate(runs, "ndcg@3", truth=truths[judge], by="model") for judge in ("llm", "human")
    )
    both = own.join(base, on="model", suffix=" of human")
    expected = rf.stats.metric_agreement(both, "ndcg@3", "ndcg@3 of human").row(0, named=True)
    assert found["value"][:2].to_list() == [expected["kendall_tau"], expected["tau_ap"]]


def test_segments_of_systems_are_those_of_evaluate():
    runs = {"up": pl.DataFrame({"user": [1, 2], "item": ["a", "b"], "rank": 1})}
    truth = pl.DataFrame({"user": [1, 2], "item": ["a", "b"], "relevance": 1, "land": ["x", "y"]})
    judges = {"human": truth, "llm": truth.with_columns(relevance=pl.Series([1, 0]))}
    found = rf.stats.judges(judges, runs, "precision@1", by="land", users="judged", undefined=0.0)
    change = found.filter(measure="change").select("land", "metric", "model", "value")
    assert change.rows() == [("x", "precision@1", "up", 0.0), ("y", "precision@1", "up", -1.0)]


# ------------------------------------------------------------------ odd input

LONG = pl.DataFrame(rf.runs.stack(judged(HUMAN, LLM), model="judge").to_dict())


@pytest.mark.parametrize(
    ("judgments", "options", "error", "text"),
    [
        (LONG, {}, ValueError, "has 'human', 'llm', but not which .* baseline='human'"),
        (LONG, {"baseline": "us"}, ValueError, "baseline must be one of 'human', 'llm', not 'us'"),
        (LONG.drop("judge"), {}, RankingDataError, "judgments: no column 'judge'; it has 'user'"),
        (LONG, {"by": "place"}, RankingDataError, "judgments: no column 'place'"),
        (LONG.drop("relevance"), {}, RankingDataError, "no column 'relevance'"),
        (pl.concat([LONG, LONG[30:31]]), {"baseline": "human"}, RankingDataError, "duplicate"),
        (
            LONG.with_columns(relevance=pl.lit(None, pl.Int64)),
            {},
            RankingDataError,
            "null relevance",
        ),
        (LONG.filter(judge="llm"), {}, RankingDataError, "only one"),
    ],
)
def test_errors(judgments, options, error, text):
    with pytest.raises(error, match=text):
        rf.stats.judges(judgments, **options)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (lambda llm: llm.head(0), "judge 'llm': it is empty: .* give it rows"),
        (
            lambda llm: llm.with_columns(pl.col("item").cast(pl.String)),
            "in judge 'human' and .* in judge 'llm': cast one",
        ),
        (
            lambda llm: llm.with_columns(judge=pl.lit("x")),
            "judge 'llm', column 'judge': the names of the judges .* judge=",
        ),
    ],
)
def test_errors_name_the_judge(changed, text):
    both = judged(HUMAN, LLM)
    with pytest.raises(RankingDataError, match=text):
        rf.stats.judges(both | {"llm": changed(both["llm"])})


def test_column_of_the_judges_in_by_is_no_segment():
    found = rf.stats.judges(LONG, by=["judge"], baseline="human")
    assert found.equals(rf.stats.judges(LONG, baseline="human"))


def test_measurements_are_no_grades():
    many = [n / 7 for n in range(120)]
    with pytest.raises(RankingDataError, match="120 different grades, and at most 101 can agree"):
        rf.stats.judges(judged(many, many))
    rounded = {
        name: of.with_columns(pl.col("relevance").round(0))
        for name, of in judged(many, many).items()
    }
    assert rf.stats.judges(rounded)["value"][0] == 1


def test_systems_and_metrics_go_together():
    with pytest.raises(ValueError, match="go together"):
        rf.stats.judges(TRUTHS, SYSTEMS)


def test_each_null_of_systems_has_a_note():
    pairs = pl.DataFrame({"user": [1, 1, 2, 2], "item": [*"abab"], "segment": [*"xxyy"]})
    grades = {"human": [1, 0, 1, 0], "alike": [1] * 4, "zero": [0] * 4}
    judges = {name: pairs.with_columns(relevance=pl.Series(of)) for name, of in grades.items()}
    judges["other"] = pairs.with_columns(pl.col("user") + 9, relevance=1)
    judges["half"] = judges["human"].head(2)
    runs = {
        name: pl.DataFrame({"user": [1, 2], "item": [item] * 2, "rank": 1})
        for name, item in (("first", "a"), ("second", "b"))
    }
    rated = rf.stats.judges(judges, runs, "rr").filter(pl.col("metric").is_not_null())
    assert rated.filter(pl.col("value").is_null() == pl.col("note").is_null()).is_empty()
    assert dict(rated.filter(measure="kendall_tau").select("judge", "note").rows()) == {
        "alike": "all systems tie under one of the two",
        "zero": "no user counts under one of the two",
        "other": "no pair was judged by both",
        "half": None,
    }
    alone = rf.stats.judges(judges, {"first": runs["first"]}, "rr").filter(measure="tau_ap")
    assert alone["note"][0] == "an order needs two systems with a mean under both"
    parts = rf.stats.judges(judges, runs, "rr", "ap", by="segment")
    assert (
        parts.filter(judge="half", segment="y", measure="change")["note"].to_list()
        == ["no pair was judged by both"] * 4
    )
    apart = rf.stats.judges({x: judges[x] for x in ("human", "other")}, runs, "rr", "ap")
    of_orders = apart.filter(measure="kendall_tau")
    assert of_orders.select("metric", "note").rows() == [
        (name, "no pair was judged by both") for name in ("rr", "ap")
    ]
