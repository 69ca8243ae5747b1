"""Equal to other tools: what they print on real data, and on one small input for all of them."""

from collections.abc import Callable
from itertools import product
from math import log2
from random import Random
from typing import NamedTuple, get_args

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import rankframe as rf
from rankframe.presets import PRESETS, Preset, PresetName

DATA_SETS = ["trec_sample", "web12_catb"]
CUTS = (1, 3, 5, 10, 20, 100)
CUTS_AND_NONE = ("", *(f"@{k}" for k in CUTS))


def each(values: tuple[object, ...], templates: dict[str, str]) -> dict[str, str]:
    """Write a value into the ``{}`` of each measure and label."""
    pairs = product(values, templates.items())
    return {name.replace("{}", f"{v}"): label.replace("{}", f"{v}") for v, (name, label) in pairs}


def by_item(run: pl.DataFrame) -> pl.DataFrame:
    """Ties by item descending, as trec_eval."""
    return run.rank.with_rank()


def by_item_ascending(run: pl.DataFrame) -> pl.DataFrame:
    return run.sort("item").rank.with_rank(ties="order")


def by_order(run: pl.DataFrame) -> pl.DataFrame:
    return run.rank.with_rank(ties="order")


class Comparison(NamedTuple):
    """Measures of a program with our labels, under a preset and an order of ties."""

    program: str
    labels: dict[str, str]
    preset: PresetName | Preset
    ranked: Callable[[pl.DataFrame], pl.DataFrame] = by_item
    options: dict[str, object] = {}  # noqa: RUF012
    tolerance: float = 1e-12


RECTOOLS = each(
    CUTS,
    {
        "Precision@{}": "precision@{}",
        "Precision@{}(r_precision)": "precision(divide_by=attainable)@{}",
        "Recall@{}": "recall@{}",
        "F1Beta@{}": "f1@{}",
        "F1Beta@{}(beta=2)": "f(beta=2)@{}",
        "HitRate@{}": "hit@{}",
        "MRR@{}": "mrr@{}",
        "MAP@{}": "map@{}",
        "MAP@{}(divide_by_k)": "map(divide_by=k)@{}",
        "NDCG@{}": "ndcg@{}",
        "NDCG@{}(log_base=3)": "ndcg@{}",  # the base of a logarithm cancels
        "NDCG@{}(divide_by_achievable)": "ndcg(ideal=truth)@{}",
    },
)
REPLAY = each(
    CUTS,
    {
        "Precision@{}": "precision@{}",
        "Recall@{}": "recall@{}",
        "HitRate@{}": "hit@{}",
        "MRR@{}": "mrr@{}",
        "MAP@{}": "map@{}",
        "NDCG@{}": "ndcg@{}",
        "RocAuc@{}": "auc@{}",
    },
)
_SPARK_AT = {
    "meanAveragePrecisionAt({})": "map@{}",
    "ndcgAt({})": "ndcg@{}",
    "precisionAt({})": "precision@{}",
    "recallAt({})": "recall@{}",
}
SPARK = {
    f"{measure}{table}": label
    for table in ("[binary]", "[binary,users with a relevant item]")
    for measure, label in {"meanAveragePrecision": "map", **each(CUTS, _SPARK_AT)}.items()
} | {f"ndcgAt({k})[graded]": f"ndcg@{k}" for k in CUTS}  # Python hands Spark no grades
LENSKIT = each(
    CUTS_AND_NONE,
    {
        "Precision{}": "precision{}",
        "Recall{}": "recall{}",
        "Hit{}": "hit{}",
        "RecipRank{}": "rr{}",
        "AveragePrecision{}": "map{}",
        "DCG{}(binary)": "dcg{}",
        "NDCG{}(binary)": "ndcg{}",
        "NDCG{}(gain=rating)": "ndcg(gain=linear){}",
        "RBP{}(0.5)": "rbp(p=0.5){}",
        "RBP{}(0.85)": "rbp{}",
        "RBP{}(0.85,normalize)": "rbp(divide_by=attainable){}",
    },
)
PYTREC_EVAL = {
    f"pytrec_eval:{measure}": label
    for measure, label in {
        "AP": "map",
        "AP@10": "map_cut_10",
        "Bpref": "bpref",
        "IPrec@0.0": "iprec_at_recall_0.0",
        "IPrec@0.1": "iprec_at_recall_0.1",
        "IPrec@0.5": "iprec_at_recall_0.5",
        "P@10": "P_10",
        "R@10": "recall_10",
        "RR": "recip_rank",
        "Rprec": "Rprec",
        "SetAP": "set_map",
        "SetF": "set_F",
        "SetF(beta=2.0)": "set_F.2.0",
        "SetP": "set_P",
        "SetP(relative=True)": "set_relative_P",
        "SetR": "set_recall",
        "Success@1": "success_1",
        "Success@10": "success_10",
        "infAP": "infAP",
        "nDCG": "ndcg",
        "nDCG@10": "ndcg_cut_10",
        "nDCG(gains={2:3,3:7,4:15,5:31})": "ndcg.1=1,2=3,3=7,4=15",
    }.items()
}
JUDGED_ONLY = {  # in the tool's own words
    "pytrec_eval:AP(judged_only=True)": "map",
    "pytrec_eval:P(judged_only=True)@10": "P_10",
    "pytrec_eval:RR(judged_only=True)": "recip_rank",
    "pytrec_eval:nDCG(judged_only=True)@10": "ndcg_cut_10",
}
GDEVAL = each(
    (5, 10, 20),
    {
        "gdeval:ERR@{}": "err(max_grade=4)@{}",
        "gdeval:nDCG(dcg='exp-log2')@{}": "ndcg(gain=exponential)@{}",
    },
)
ASCENDING = {
    **each((5, 10, 100), {"msmarco:RR@{}": "rr@{}"}),
    **each((5, 10, 20), {"judged:Judged@{}": "judged@{}"}),
}
IN_ORDER = {
    "accuracy:Accuracy": "auc",
    "accuracy:Accuracy@10": "auc@10",
    "accuracy:Accuracy@100": "auc@100",
    "cwl_eval:AP": "ap(divide_by=hits)",
    "cwl_eval:P@10": "precision@10",
    "cwl_eval:RR": "rr",
    "cwl_eval:RBP(p=0.5,rel=1)": "rbp(p=0.5)",
    "cwl_eval:RBP(p=0.95,rel=1)": "rbp(p=0.95)",
    "cwl_eval:RBP(rel=1)": "rbp(p=0.8)",
    **each((5, 10), {"cwl_eval:SDCG(max_rel=4)@{}": "ndcg(ideal=perfect)@{}"}),
}
NTCIREVAL = {
    "lin:AP": "ap",
    "lin:AP@10": "ap(divide_by=attainable)@10",
    "lin:P@10": "precision@10",
    **each((1, 10), {"lin:Hit@{}": "hit@{}"}),
    "lin:RR": "rr",
    "lin:MSnDCG": "ndcg",
    "lin:MSnDCG@10": "ndcg@10",
    "exp:MSnDCG": "ndcg(gain=exponential)",
    "exp:MSnDCG@10": "ndcg(gain=exponential)@10",
    "lin:nDCG_orig(b=2)": "ndcg(base=2)",
    "lin:nDCG_orig(b=2)@10": "ndcg(base=2)@10",
    "exp:nDCG_orig(b=2)": "ndcg(gain=exponential, base=2)",
    "exp:nDCG_orig(b=2)@10": "ndcg(gain=exponential, base=2)@10",
    "lin:Q(beta=1)@10": "q@10",
    "exp:Q(beta=1)@10": "q(gain=exponential)@10",
    "exp:ERR": "err",
    "exp:nERR": "nerr",
    "exp:nERR@10": "nerr@10",
    **each((0.85, 0.95), {"lin:RBP(p={})": "rbp(p={}, gain=graded)"}),
    **each(("0.1", 1, 10), {"lin:Q(beta={})": "q(beta={})"}),
    **each(("0.1", 1, 10), {"exp:Q(beta={})": "q(beta={}, gain=exponential)"}),
    "lin:O(beta=1)": "o_measure",
    "exp:O(beta=1)": "o_measure(gain=exponential)",
    "lin:P(beta=1)": "p_measure",
    "exp:P(beta=1)": "p_measure(gain=exponential)",
    "lin:P+(beta=1)": "p_plus",
    "exp:P+(beta=1)": "p_plus(gain=exponential)",
}
IR = "ir_measures"
COMPARISONS = {
    "RecTools": Comparison("rectools", RECTOOLS, "rectools"),
    "RePlay": Comparison("replay", REPLAY, "replay"),
    "Spark": Comparison("spark", SPARK, "spark"),
    "LensKit": Comparison("lenskit", LENSKIT, "lenskit"),
    "pytrec_eval": Comparison(IR, PYTREC_EVAL, "pytrec_eval"),
    "pytrec_eval -J": Comparison(IR, JUDGED_ONLY, "pytrec_eval", options={"unjudged": "drop"}),
    # gdeval prints five decimals
    "gdeval": Comparison(IR, GDEVAL, "trec_eval", tolerance=5.1e-6),
    "ir_measures, item ascending": Comparison(IR, ASCENDING, "trec_eval", by_item_ascending),
    "ir_measures, by order": Comparison(IR, IN_ORDER, {"users": "judged"}, by_order),
    # it was given the first 100 items of each list
    "ntcireval": Comparison("ntcireval", NTCIREVAL, "trec_eval", options={"depth": 100}),
}
#: measures of those files that no label reproduces, by the start of their names
NOT_COVERED = {
    "rectools": {
        "Accuracy": "counts the items of the catalogue that were rightly not recommended",
        "MCC": "needs the number of items of the catalogue",
        "PAP": "no such metric in these families",
        "PartialAUC": "no such metric in these families",
    },
    IR: {
        "compat:": "RBO with an ideal list, which is no sum over relevant items",
        "cwl_eval:BPM": "a bounded search for gain: no such metric",
        "cwl_eval:INSQ": "no such metric in these families",
        "cwl_eval:INST": "no such metric in these families",
        "cwl_eval:NERR": "C/W/L's own readers: no such metric",
    },
    "ntcireval": {
        "exp:RBP": "the utility is the exponential gain; rbp takes the grade",
        "lin:nDCG_orig(b=10)": "the discount of base 10",
        "exp:nDCG_orig(b=10)": "the discount of base 10",
        "lin:ERR": "the stop chance is grade / (max + 1), NTCIREVAL's own",
        "lin:nERR": "the stop chance is grade / (max + 1), NTCIREVAL's own",
    },
}


def read(shared, name, program):
    run = pl.read_parquet(shared / name / "run.parquet").drop("rank")
    truth = pl.read_parquet(shared / name / "qrels.parquet")
    expected = pl.read_parquet(shared / name / f"expected_{program}.parquet")
    return run, truth, expected


@pytest.mark.parametrize("program", sorted({c.program for c in COMPARISONS.values()}))
@pytest.mark.parametrize("name", DATA_SETS)
def test_measures_are_compared_or_excused(shared, name, program):
    _, _, expected = read(shared, name, program)
    covered = {m for c in COMPARISONS.values() if c.program == program for m in c.labels}
    excused = NOT_COVERED.get(program, {})
    for measure in expected["measure"].unique():
        starts = [start for start in excused if measure.startswith(start)]
        assert (measure in covered) + len(starts) == 1, measure
    for start in excused:
        assert expected["measure"].str.starts_with(start).any(), start


@pytest.mark.parametrize("tool", COMPARISONS)
@pytest.mark.parametrize("name", DATA_SETS)
def test_tool_is_equal_on_real_data(shared, name, tool):
    """Of each user, and over all, wherever the tool prints it."""
    comparison = COMPARISONS[tool]
    run, truth, expected = read(shared, name, comparison.program)
    expected = expected.filter(pl.col("measure").is_in([*comparison.labels]))
    # web12_catb lacks Accuracy@10: some list has nothing but hits, and ir_measures stops
    labels = {m: x for m, x in comparison.labels.items() if m in expected["measure"].unique()}
    assert len(labels) >= len(comparison.labels) - 1
    ranked = comparison.ranked(run)
    keywords = {"truth": truth, "preset": comparison.preset, **comparison.options}
    asked = list(dict.fromkeys(labels.values()))
    users = ranked.rank.per_user(*asked, **keywords)
    means = ranked.rank.evaluate(*asked, **keywords).with_columns(user=pl.lit("all"))
    frames = (users, means.select(users.columns))
    tidy = pl.concat(
        f.unpivot(index="user", variable_name="label", value_name="got") for f in frames
    )
    names = pl.DataFrame({"measure": [*labels], "label": [*labels.values()]})
    joined = expected.join(names, on="measure").join(tidy, on=["label", "user"], how="left")
    assert joined["got"].null_count() == 0
    apart = (pl.col("got") - pl.col("value")).abs()
    worst = joined.with_columns(apart=apart).sort("apart").row(-1, named=True)
    assert worst["apart"] < comparison.tolerance, worst


# ------------------------------------------------------------------ one input, all conventions

LISTS = {1: "abcde", 2: "dab", 3: "ghijk", 5: "abcde", 6: "ceb"}  # user 4 has none
GRADES = {
    1: {"a": 1, "c": 2, "f": 1, "v": 1, "x": 1, "y": 3, "z": 1},
    2: {"a": 1, "b": 3},
    3: {"m": 1},
    4: {"a": 2, "b": 1},
    6: {"c": 3},
}  # user 5 has none
RUN = rf.from_lists(pl.DataFrame({"user": [*LISTS], "item": [list(x) for x in LISTS.values()]}))
TRUTH = rf.from_grades(GRADES)

PRINTED = {
    "rectools": {  # rectools 0.19.0
        "users": 5,
        "precision@5": 0.2,
        "recall@5": 0.45714285714285713,
        "map@5": 0.36428571428571427,
        "mrr@5": 0.5,
        "ndcg@5": 0.24629337611107519,
        "precision(divide_by=attainable)@5": 0.48,
        "map(divide_by=k)@5": 0.15333333333333332,
        "ndcg(ideal=truth)@5": 0.440433342305539,
    },
    "replay": {  # replay-rec 0.22.0
        "users": 5,
        "precision@5": 0.2,
        "recall@5": 0.45714285714285713,
        "map@5": 0.3833333333333333,
        "mrr@5": 0.5,
        "ndcg@5": 0.440433342305539,
        "auc@5": 0.3666666666666667,
    },
    "spark": {  # pyspark 4.0.1, an inner join of lists and truth
        "users": 4,
        "precision@5": 0.25,
        "recall@5": 0.5714285714285714,
        "map@5": 0.47916666666666663,
        "map": 0.4553571428571429,
        "ndcg@5": 0.5505416778819237,
    },
    "recommenders": {  # recommenders 1.2.1
        "users": 4,
        "precision@5": 0.25,
        "recall@5": 0.5714285714285714,
        "map@5": 0.47916666666666663,
        "map(divide_by=relevant)@5": 0.45535714285714285,
    },
    "scikit_learn": {  # scikit-learn 1.9.1, one row of a matrix for each list
        "users": 5,
        "ap": 0.4833333333333333,  # average_precision_score
        "ndcg": 0.46941404097351774,
        "ndcg@5": 0.46941404097351774,
        "dcg@5": 1.4261859507142916,
        "ndcg(gain=binary)@5": 0.5226294385530916,
    },
    "ranx": {  # ranx 0.3.21, make_comparable=True
        "users": 5,
        "precision@5": 0.2,
        "precision": 0.28,
        "recall@5": 0.45714285714285713,
        "f1@5": 0.24761904761904763,
        "hit_rate@5": 0.6,
        "mrr@5": 0.5,
        "map@5": 0.36428571428571427,
        "dcg@5": 1.4261859507142916,
        "dcg(gain=exponential)@5": 2.7261859507142914,  # dcg_burges
        "ndcg": 0.3811832826058482,
        "ndcg@5": 0.38906897393318945,
        "ndcg(gain=exponential)@5": 0.35723812698158774,  # ndcg_burges
        "r_precision": 0.3571428571428571,
        "rbp(p=0.8)": 0.31999999999999995,
    },
    "pytrec_eval": {  # pytrec_eval-terrier 0.5.11
        "users": 4,
        "P_5": 0.25,
        "recall_5": 0.5714285714285714,
        "map_cut_5": 0.45535714285714285,
        "recip_rank": 0.625,
        "ndcg_cut_5": 0.4863362174164868,
    },
    "implicit": {  # implicit 0.7.3, ranking_metrics_at_k; its precision is pooled, as tested below
        "users": 5,
        "map@3": 0.42777777777777776,
        "map@5": 0.3833333333333333,
        "ndcg(gain=binary)@3": 0.4794688985302811,
        "ndcg@5": 0.440433342305539,
    },
}
#: Of tools with few digits, with the difference that they allow.
ROUNDED = {
    "mteb": (
        5.1e-6,
        {  # mteb 2.26.24, calculate_retrieval_scores
            "users": 4,
            "ndcg_at_3": 0.50172,
            "ndcg_at_5": 0.48634,
            "map_at_5": 0.45536,
            "recall_at_5": 0.57143,
            "precision_at_5": 0.25,
            "mrr_at_5": 0.625,
            "hit_rate_at_3": 0.75,
        },
    ),
    "beir": (
        5.1e-6,
        {  # beir 2.2.0, EvaluateRetrieval.evaluate
            "users": 4,
            "NDCG@3": 0.50172,
            "MAP@5": 0.45536,
            "Recall@3": 0.57143,
            "P@3": 0.41667,
        },
    ),
    "torchmetrics": (
        1e-7,
        {  # torchmetrics 1.9.0 with torch 2.14.1, of the rows of the lists
            "users": 5,
            "map@5": 0.4833333492279053,
            "precision@5": 0.20000000298023224,
            "precision": 0.2800000309944153,
            "precision(divide_by=returned)@5": 0.2800000309944153,  # adaptive_k=True
            "mrr@5": 0.5,
            "hit@5": 0.6000000238418579,
            "ndcg@5": 0.4694140553474426,
            "auc": 0.36666667461395264,
        },
    ),
}


@pytest.mark.parametrize("tool", PRINTED)
def test_preset_returns_what_the_tool_prints(tool):
    printed = PRINTED[tool]
    labels = [label for label in printed if label != "users"]
    got = RUN.rank.evaluate(*labels, truth=TRUTH, preset=tool)
    assert got.row(0, named=True) == pytest.approx(printed, abs=1e-12)


@pytest.mark.parametrize("tool", ROUNDED)
def test_preset_returns_what_a_tool_rounds(tool):
    tolerance, printed = ROUNDED[tool]
    labels = [label for label in printed if label != "users"]
    got = RUN.rank.evaluate(*labels, truth=TRUTH, preset=tool)
    assert got.row(0, named=True) == pytest.approx(printed, abs=tolerance)


def picked(draw: Random, items: int, number: int) -> list[int]:
    left = list(range(items))
    return [left.pop(int(draw.random() * len(left))) for _ in range(number)]


def tied_tables() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Scores that tie: users 1 and 2 have no truth, 5 nothing relevant, 11 and 12 no list."""
    draw, scores, grades = Random(47), {}, {}
    for user in range(1, 13):
        if user <= 10:
            scores[user] = {
                f"d{i:02}": (1 + int(draw.random() * 4)) / 4 for i in picked(draw, 20, 8)
            }
        if user >= 3:
            grades[user] = {
                f"d{i:02}": int(draw.random() * 4) if user != 5 else 0 for i in picked(draw, 20, 6)
            }
    return rf.from_scores(scores), rf.from_grades(grades)


TIED, OF_TIED = tied_tables()


def test_mteb_and_beir_with_ties():
    """By item descending, as pytrec_eval; BEIR's own measures keep the order of the dict."""
    printed = {  # mteb 2.26.24; those that BEIR 2.2.0 has, it prints alike
        "ndcg_at_3": 0.31105,
        "ndcg_at_5": 0.31052,
        "map_at_3": 0.14062,
        "map_at_5": 0.18229,
        "recall_at_3": 0.18958,
        "recall_at_5": 0.28125,
        "precision_at_3": 0.29167,
        "precision_at_5": 0.25,
        "mrr_at_3": 0.5625,
        "hit_rate_at_5": 0.75,
    }
    of_mteb = TIED.rank.evaluate(*printed, truth=OF_TIED, preset="mteb")
    assert of_mteb.row(0, named=True) == pytest.approx({"users": 8, **printed}, abs=5.1e-6)
    assert_frame_equal(of_mteb, TIED.rank.evaluate(*printed, truth=OF_TIED, preset="beir"))


def test_own_measures_of_beir_are_of_all_judged_queries():
    printed = {"MRR@3": 0.5, "R_cap@3": 0.53333, "R_cap@5": 0.48, "Accuracy@5": 0.6}  # beir 2.2.0
    got = RUN.rank.evaluate(*printed, truth=TRUTH, preset="beir", users="judged")
    assert got.row(0, named=True) == pytest.approx({"users": 5, **printed}, abs=5.1e-6)


def test_torchmetrics_averages_over_ties_in_ndcg():
    given = TIED.join(OF_TIED, on=["user", "item"], how="left")
    ranked = given.with_columns(pl.col("relevance").fill_null(0)).rank.with_rank(ties="expected")
    printed = {"ndcg@5": 0.4666654169559479, "ndcg": 0.4945492148399353}  # torchmetrics 1.9.0
    got = ranked.rank.evaluate(*printed, preset="torchmetrics")
    assert got.row(0, named=True) == pytest.approx({"users": 10, **printed}, abs=1e-6)


def test_implicit_of_a_binary_truth():
    """0 in its matrix is no judgment. It was given our order of equal scores."""
    truth = OF_TIED.filter(pl.col("relevance") > 0)
    printed = {  # implicit 0.7.3
        "map@3": 0.2037037037037037,
        "ndcg@3": 0.2880182024368589,
        "map@5": 0.16944444444444443,
        "ndcg@5": 0.27019882139539275,
    }
    got = TIED.rank.evaluate(*printed, truth=truth, preset="implicit")
    assert got.row(0, named=True) == pytest.approx({"users": 9, **printed}, abs=1e-12)


def test_precision_of_implicit_is_pooled():
    printed = {"precision@3": 0.5555555555555556, "precision@5": 0.45454545454545453}
    of_ties = {"precision@3": 0.25925925925925924, "precision@5": 0.24390243902439024}
    own = {"preset": "implicit", "average": "pooled"}  # implicit 0.7.3
    got = RUN.rank.evaluate(*printed, truth=TRUTH, **own)
    assert got.row(0, named=True) == pytest.approx({"users": 5, **printed}, abs=1e-12)
    truth = OF_TIED.filter(pl.col("relevance") > 0)
    got = TIED.rank.evaluate(*of_ties, truth=truth, **own)
    assert got.row(0, named=True) == pytest.approx({"users": 9, **of_ties}, abs=1e-12)


def predictions() -> pl.DataFrame:
    """Surprise's, with ties; user 7 has no estimate from the threshold on."""
    draw, rows = Random(47), []
    for user in range(1, 9):
        for item in range(10):
            if draw.random() < 0.6:
                rating = 1 + int(draw.random() * 5)
                rows.append(
                    (user, item, rating, (2 + int(draw.random() * 7)) / 2 if user != 7 else 2)
                )
    return pl.DataFrame(rows, ["uid", "iid", "r_ui", "est"], orient="row")


def test_surprise_of_its_predictions():
    """By the definition in the FAQ of Surprise 1.1.5, which the package does not install."""
    made = predictions()
    names = {"user": "uid", "item": "iid"}
    run = made.filter(pl.col("est") >= 3.5).select("uid", "iid", "est")
    run = run.rank.with_rank(ties="order", score="est", **names)  # as Python sorts
    printed = {
        "precision@2": 0.4375,
        "recall@2": 0.2791666666666667,
        "precision@3": 0.4375,
        "recall@3": 0.30416666666666664,
        "precision@5": 0.46875,
        "recall@5": 0.36666666666666664,
    }
    got = run.rank.evaluate(
        *printed, truth=made, preset="surprise", relevant_at=3.5, relevance="r_ui", **names
    )
    assert got.row(0, named=True) == pytest.approx({"users": 8, **printed}, abs=1e-12)


def test_ndcg_of_recommenders_is_a_mean_over_the_truth():
    """Its other measures leave out users without a list; version 1.2.1."""
    printed = {  # score_type "binary", "raw" and "exp"
        "ndcg@5": 0.44043334230553893,
        "ndcg(gain=linear)@5": 0.38906897393318945,
        "ndcg(gain=exponential)@5": 0.35723812698158774,
    }
    keywords = {"preset": "recommenders", "users": "truth"}
    got = RUN.rank.evaluate(*printed, truth=TRUTH, **keywords)
    assert got.row(0, named=True) == pytest.approx({"users": 5, **printed}, abs=1e-12)


def test_level_of_ranx_also_takes_the_gains_below():
    printed = {  # ranx 0.3.21, "-l2"
        "precision@5": 0.12000000000000002,
        "map": 0.3,
        "r_precision": 0.2,
        "ndcg(gain=1:0;2:2;3:3)@5": 0.34692787260227564,
    }
    got = RUN.rank.evaluate(*printed, truth=TRUTH, relevant_at=2, preset="ranx")
    assert got.row(0, named=True) == pytest.approx({"users": 5, **printed}, abs=1e-12)
    raised = TRUTH.with_columns(pl.col("relevance").replace(1, 0))
    same = RUN.rank.evaluate("ndcg@5", truth=raised, preset="ranx")
    assert same.item(0, "ndcg@5") == pytest.approx(got.row(0)[-1], abs=1e-12)


def test_outer_join_in_spark_counts_all_users():
    printed = {  # pyspark 4.0.1
        "precision@5": 0.16666666666666669,
        "recall@5": 0.38095238095238093,
        "map@5": 0.3194444444444444,
        "map": 0.3035714285714286,
        "ndcg@5": 0.3670277852546158,
    }
    got = RUN.rank.evaluate(*printed, truth=TRUTH, preset="spark", users="all")
    assert got.row(0, named=True) == pytest.approx({"users": 6, **printed}, abs=1e-12)


def test_lenskit_by_its_formulas():
    """Precision by what was returned, recall and AP by what it could hold, log2 from rank 3 on."""
    got = RUN.rank.per_user(
        "precision@5", "recall@5", "map@5", "ndcg@5", truth=TRUTH, preset="lenskit"
    )
    assert got["user"].to_list() == [1, 2, 3, 6]
    third = 0.6309297535714575  # 1 / log2(3)
    ideal_of_5 = 1 + 1 + third + 1 / 2 + 0.43067655807339306
    expected = [
        (1, 2 / 5, 2 / 5, (1 + 2 / 3) / 5, (1 + third) / ideal_of_5),
        (2, 2 / 3, 1.0, (1 / 2 + 2 / 3) / 2, (1 + third) / 2),
        (3, 0.0, 0.0, 0.0, 0.0),
        (6, 1 / 3, 1.0, 1.0, 1.0),
    ]
    for row, wanted in zip(got.rows(), expected, strict=True):
        assert row == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(
    ("grades", "hits", "dcg", "ideal"),
    [
        ([3, 2, 3, 0, 1, 2], 6, 13.84826362927298, 14.595390756454922),
        ([3, 2, 3, None, 1], 6, 12.779642067948913, 13.347184833073591),
        ([3, 2, 3, None, 1, None], 4, 12.392789260714371, 13.347184833073591),
    ],
)
def test_elasticsearch_in_its_own_tests(grades, hits, dcg, ideal):
    """The numbers of DiscountedCumulativeGainTests.java; document i is at rank i + 1."""
    run = pl.DataFrame({"user": "q", "item": range(hits), "rank": range(1, hits + 1)})
    judged = {item: grade for item, grade in enumerate(grades) if grade is not None}
    truth = rf.from_grades({"q": judged})
    got = run.rank.evaluate("dcg@10", "ndcg@10", truth=truth, preset="elasticsearch")
    assert got.row(0) == pytest.approx((1, dcg, dcg / ideal), abs=1e-12)


def test_elasticsearch_ends_the_ideal_list_at_the_hits():
    """The example of its pull request 154362, which would end it at k."""
    truth = rf.from_grades({"q": dict.fromkeys("abcde", 3)})
    one, five = rf.from_lists({"q": ["a"]}), rf.from_lists({"q": list("vwxyzabcde")})
    values = [
        run.rank.evaluate(label, truth=truth, preset="elasticsearch").item(0, label)
        for label in ("ndcg@10", "ndcg(ideal=truth)@10")
        for run in (one, five)
    ]
    assert [round(value, 2) for value in values] == [1.0, 0.54, 0.34, 0.54]
    nothing = rf.from_lists({"r": ["a"], "q": ["x"]})
    truth = rf.from_grades({"q": {"a": 1}, "r": {"a": 0}, "s": {"a": 1}})
    labels = "precision@10", "ndcg@10", "rr@10"
    assert nothing.rank.evaluate(*labels, truth=truth, preset="elasticsearch").row(0) == (
        3,
        0,
        0,
        0,
    )
    found = RUN.rank.per_user("precision@5", truth=TRUTH, preset="elasticsearch")
    assert found["precision@5"].to_list() == pytest.approx([2 / 5, 2 / 3, 0, 0, 1 / 3])


@pytest.mark.parametrize("k", [1, 3, 5, 10])
def test_sentence_transformers_by_its_formulas(k):
    def discounted(gains):
        return sum(gain / log2(i + 2) for i, gain in enumerate(gains[:k]))

    rows = []
    for user, liked in GRADES.items():
        hits = [item in liked for item in LISTS.get(user, "")][:k]
        precisions = [sum(hits[: i + 1]) / (i + 1) for i, hit in enumerate(hits) if hit]
        rows.append(
            (
                float(any(hits)),
                sum(hits) / k,
                sum(hits) / len(liked),
                next((1 / (i + 1) for i, hit in enumerate(hits) if hit), 0.0),
                discounted(hits) / discounted([1] * len(liked)),
                sum(precisions) / min(k, len(liked)),
            )
        )
    labels = [f"{name}@{k}" for name in ("accuracy", "precision", "recall", "mrr", "ndcg", "map")]
    got = RUN.rank.per_user(*labels, truth=TRUTH, preset="sentence_transformers")
    assert got["user"].to_list() == list(GRADES)
    assert [list(row[1:]) for row in got.rows()] == [pytest.approx(row, abs=1e-12) for row in rows]


def test_empty_list_of_lenskit_counts_where_the_readme_says_so():
    """User 9 has a truth and an empty list: no row here."""
    run = pl.DataFrame({"user": [1], "item": ["a"], "rank": [1]})
    truth = pl.DataFrame({"user": [1, 9], "item": ["a", "b"]})
    six = ["recall@5", "ndcg@5", "dcg@5", "rr", "hit@5", "rbp"]
    two = run.rank.evaluate(*six, truth=truth, preset="lenskit", users="truth")
    one = run.rank.evaluate(*six, "precision@5", "ap", truth=truth, preset="lenskit")
    assert (two["users"].item(), one["users"].item()) == (2, 1)
    assert [value * 2 for value in two.row(0)[1:]] == list(one.row(0)[1:7])
    assert one.row(0)[7:] == (1.0, 1.0)


def test_equal_scores_of_trec_eval_9_go_by_descending_id():
    """ir_measures has 0.5 and 0 here."""
    run = pl.DataFrame({"user": [1, 1], "item": ["a", "b"], "score": [0.5, 0.5]})
    truth = pl.DataFrame({"user": [1], "item": ["b"]})
    got = run.rank.evaluate("rr@2", "rr@1", "judged@1", truth=truth, preset="trec_eval_9")
    assert got.row(0) == (1, 1.0, 1.0, 1.0)


def test_options_of_tools_without_a_preset():
    """The README's rows for TF-Ranking and rankerEval, and torchmetrics, by hand."""
    run = pl.DataFrame({"user": [1, 1, 1], "item": ["a", "x", "b"], "rank": [1, 2, 3]})
    truth = pl.DataFrame({"user": [1, 1, 1], "item": ["a", "b", "c"], "relevance": [1, 2, 3]})
    labels = {
        "ap(divide_by=hits)": (1 + 2 / 3) / 2,
        "ap(divide_by=attainable)@2": 1 / 2,
        "precision(divide_by=returned)@5": 2 / 3,
        "ndcg(ideal=returned)": (1 + 2 / 2) / (2 + 1 / log2(3)),
        "ndcg(gain=exponential)": (1 + 3 / 2) / (7 + 3 / log2(3) + 1 / 2),
    }
    got = run.rank.evaluate(*labels, truth=truth).row(0, named=True)
    assert got == pytest.approx({"users": 1, **labels})


@pytest.mark.parametrize("tool", PRESETS)
def test_preset_is_for_metrics_there_are(tool):
    asked = ["map@5", "ndcg", "rbp", "iprec_at_recall_0.5", "11pt_avg"]
    named = RUN.rank.evaluate(*asked, truth=TRUTH, preset=tool)
    assert named.columns == ["users", *asked]
    assert_frame_equal(named, RUN.rank.evaluate(*asked, truth=TRUTH, preset=PRESETS[tool]))


def test_names_of_presets_are_a_type():
    assert get_args(PresetName) == (*PRESETS,)
