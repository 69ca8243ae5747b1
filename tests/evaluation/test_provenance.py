"""How numbers were made: ``rf.provenance``."""

import hashlib
import json
import math
import struct

import extension
import numpy
import polars as pl
import pytest
from two_models import RUN, TRUTH, A, assert_equal

import rankframe as rf
from rankframe.errors import RankingDataError
from rankframe.presets import PRESETS


def test_parameters_are_spelled_out():
    made = rf.provenance(A, "map", "ndcg(gain=exponential)@5,10", "gmap", truth=TRUTH)
    assert made["metrics"] == {
        "map": "ap(divide_by=relevant)",
        "ndcg(gain=exponential)@5": "ndcg(gain=exponential, ideal=truth, discount=log2)@5",
        "ndcg(gain=exponential)@10": "ndcg(gain=exponential, ideal=truth, discount=log2)@10",
        "gmap": "gmap(epsilon=1e-05)",
    }
    assert made["options"]["users"] == "truth"
    assert made["options"]["undefined"] is None
    assert made["columns"] == {
        "by": [],
        "user": "user",
        "item": "item",
        "rank": "rank",
        "relevance": "relevance",
    }
    assert made["rows"] == {"run": A.height, "truth": TRUTH.height}
    assert made["rankframe"] == rf.__version__
    assert json.loads(json.dumps(made)) == made


def test_metric_has_the_same_digits_alone_and_beside_others():
    two = rf.provenance(A, "map", "ndcg@5", truth=TRUTH)
    one = rf.provenance(A, "map", truth=TRUTH)
    assert one["conventions_of"] == {"map": one["conventions"]}
    assert two["conventions_of"]["map"] == one["conventions"]
    assert len({two["conventions"], *two["conventions_of"].values()}) == 3


def test_defaults_and_levels_are_spelled_out():
    own = {"defaults": {"map": {"divide_by": "attainable"}}}
    made = rf.provenance(A, "map", "ap(rel=2)@5", truth=TRUTH, preset=own)
    assert made["metrics"]["map"] == "ap(divide_by=attainable)"
    assert made["metrics"]["ap(rel=2)@5"] == "ap(divide_by=attainable, rel=2)@5"
    assert made["preset"] == str(own)
    named = rf.provenance(A, "rbp", truth=TRUTH, preset="ranx")
    alone = rf.provenance(A, "rbp", truth=TRUTH, preset=PRESETS["ranx"])
    assert (named["preset"], named["conventions"]) == ("ranx", alone["conventions"])
    assert named["options"]["users"] == "judged"
    assert rf.provenance(A, "rbp", truth=TRUTH)["preset"] is None


def test_expression_of_ones_own_is_its_text():
    own = (pl.col("rank") <= 2).sum().alias("early")
    made = rf.provenance(A, own, rf.metrics.recall_at(5).alias("r"), truth=TRUTH)
    assert made["metrics"]["early"] == str(own)
    assert made["metrics"]["r"] == "recall(divide_by=relevant)@5"


CHANGES = [
    {"users": "both"},
    {"undefined": 0.0},
    {"relevant_at": 2},
    {"depth": 5},
    {"unjudged": "drop"},
    {"exclude": TRUTH.select("user", "item").head(1)},
    {"preset": {"defaults": {"map": {"divide_by": "attainable"}}}},
    {"by": "device"},
]


def test_conventions_change_with_a_convention_and_with_nothing_else():
    def conventions(*tables, **options):
        run, truth = tables or (RUN, TRUTH)
        return rf.provenance(run, "map", truth=truth, **options)["conventions"]

    plain = conventions()
    assert len(plain) == 8
    assert int(plain, 16) >= 0
    same = [
        conventions(users="truth"),
        conventions(relevance="relevance"),
        conventions(total=True, count_users=True, chance=True, unjudged="bounds"),
        conventions(RUN.head(5), TRUTH.reverse()),
        conventions(RUN.lazy(), TRUTH.lazy()),
        conventions(RUN.to_pandas(), TRUTH.to_pandas()),
    ]
    assert set(same) == {plain}
    others = [conventions(**change) for change in CHANGES]
    renamed = [table.rename({"user": "uid"}) for table in (RUN, TRUTH)]
    others.append(conventions(*renamed, user="uid"))
    others.append(rf.provenance(RUN, "mrr", truth=TRUTH)["conventions"])
    assert len({plain, *others}) == len(others) + 1


@pytest.mark.parametrize("kind", ["float", "float64"])
def test_integer_and_the_same_float_are_one_convention(kind):
    """The command reads 1 as 1.0, and numbers may come from NumPy."""
    numbers = {"relevant_at": 1, "undefined": 0}
    as_floats = {name: getattr(numpy, kind, float)(x) for name, x in numbers.items()}
    presets = [{"defaults": {"ndcg": {"base": base}}} for base in (2, 2.0)]
    of_integers, of_floats = (
        rf.provenance(A, "ndcg@5", truth=TRUTH, depth=5, preset=own, **options)
        for own, options in zip(presets, (numbers, as_floats), strict=True)
    )
    assert json.dumps(of_floats | {"preset": ""}) == json.dumps(of_integers | {"preset": ""})


def test_conventions_are_those_of_every_version():
    """A new option that changes no value must not change them."""
    made = rf.provenance(A, "ndcg@10", truth=TRUTH)
    assert made["conventions"] == "c87c935c"


def number_of(value):
    if value is None or math.isnan(value if isinstance(value, float) else 0):
        return 0xBF58476D1CE4E5B9
    if isinstance(value, str):
        return int.from_bytes(hashlib.sha256(value.encode()).digest()[:8], "big")
    packed = struct.pack("<d", value) if isinstance(value, float) else None
    return value if packed is None else int.from_bytes(packed, "little")


def checksum_of(rows):
    """Add up the rows in plain Python, by SplitMix64."""
    total, whole = 0, 2**64
    for row in rows:
        number = 0
        for value in row:
            number = (number + number_of(value)) * 0x9E3779B97F4A7C15 % whole
        number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % whole
        number = (number ^ number >> 27) * 0x94D049BB133111EB % whole
        total += number ^ number >> 31
    return f"{total % whole:016x}"


@pytest.mark.parametrize("users", [[1, 1, -(2**62)], [2**64 - 1, 1, 1], ["é", "", "é"]])
@pytest.mark.parametrize("place", ["rank", "score"])
def test_checksums_ignore_the_order_of_rows(users, place):
    places = [1, 2, 1] if place == "rank" else [2.5, math.nan, -0.0]
    run = pl.DataFrame({"user": users, "item": ["a", "b", "a"], place: places, "x": [0, 1, 0]})
    truth = pl.DataFrame({"user": users[:1], "item": ["b"], "relevance": [True]})
    made = rf.provenance(run, "rr", truth=truth, checksums=True)
    expected = checksum_of(run.drop("x").rows()), checksum_of(truth.rows())
    assert made["checksums"] == dict(zip(("run", "truth"), expected, strict=True))
    again = rf.provenance(run.reverse(), "rr", truth=truth.lazy(), checksums=True)
    assert again == made
    other = rf.provenance(run.head(2), "rr", truth=truth, checksums=True)
    assert other["checksums"]["run"] != made["checksums"]["run"]
    assert "checksums" not in rf.provenance(run, "rr", truth=truth)


def test_checksums_tell_which_user_has_an_item():
    runs = [
        pl.DataFrame({"user": users, "item": [1, 2], "rank": [1, 1]}) for users in ([1, 2], [2, 1])
    ]
    one, other = (rf.provenance(run, "rr", truth=TRUTH, checksums=True) for run in runs)
    assert one["checksums"]["run"] != other["checksums"]["run"]


@pytest.mark.parametrize(
    "ids",
    [
        pl.Series([7, 7 + 2**64], dtype=pl.Int128),
        pl.Series([b"\xff", b"\xfe"]),
        pl.Series([7, 8], dtype=pl.Duration("us")),
        pl.Series([7, 8], dtype=pl.Date),
    ],
)
def test_checksums_of_ids_of_every_type(ids):
    runs = [pl.DataFrame({"user": ids[[place]], "item": ["a"], "rank": [1]}) for place in (0, 1)]
    one, other = (
        rf.provenance(run, "rr", truth=run.drop("rank"), checksums=True)["checksums"]
        for run in runs
    )
    assert all(one[table] != other[table] for table in ("run", "truth"))


def test_tables_beside_are_counted():
    made = rf.provenance(A, "novelty@5", truth=TRUTH, history=TRUTH)
    assert made["rows"] == {"run": A.height, "truth": TRUTH.height, "history": TRUTH.height}
    assert made["options"]["tables"] == ["history"]


def test_fault_of_the_call_is_the_error_of_evaluate(refused):
    refused(rf.provenance, A, "nddcg", truth=TRUTH)
    refused(rf.provenance, A.drop("user"), "rr", truth=TRUTH)


VALUES = pl.DataFrame(
    {
        "day": [1, 1, 2, 2],
        "user": [1, 2, 1, 2],
        "ndcg@10": [0.1, 0.2, 0.3, 0.5],
        "conventions": ["adea965d", "adea965d", "9d978661", "9d978661"],
    }
)


@pytest.mark.parametrize("kind", ["eager", "lazy"])
@pytest.mark.parametrize("verb", [rf.summarize, rf.compare])
def test_values_of_several_conventions_are_no_trend(verb, kind):
    values = VALUES.lazy() if kind == "lazy" else VALUES
    with pytest.raises(RankingDataError) as error:
        verb(values, "ndcg@10", model="day").lazy().collect()
    text = str(error.value)
    assert "conventions='adea965d', day=1, user=1, but conventions='9d978661', day=2" in text
    same = values.with_columns(conventions=pl.lit("adea965d"))
    plain = verb(VALUES.drop("conventions"), "ndcg@10", model="day")
    assert_equal(verb(same, "ndcg@10", model="day").lazy().collect(), plain)


def test_column_of_conventions_may_split_the_rows():
    by = ["conventions", "day"]
    assert rf.summarize(VALUES, "ndcg@10", by=by)["mean"].to_list() == pytest.approx([0.4, 0.15])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("map", "ap"),
        ("mrr", "rr"),
        ("ndcg@10", "ndcg(gain=linear)@10"),
        ("rbp", "rbp(p=0.8)"),
        ("precision@5", "p@5"),
        ("efd@3", "relevant_novelty(measure=efd)@3"),
        ("ndcg(gain=exponential, base=2)@5", "ndcg(base=2.0,gain=exponential)@5"),
    ],
)
def test_spellings_of_one_label_are_one_convention(one, other):
    history = TRUTH.select("user", "item").unique()
    one, other = (
        rf.provenance(A, name, truth=TRUTH, history=history) | {"name": name}
        for name in (one, other)
    )
    assert one["conventions"] == other["conventions"]
    assert [*one["conventions_of"].values()] == [*other["conventions_of"].values()]
    longer = rf.provenance(A, one["name"], "hit@7", truth=TRUTH, history=history)
    assert longer["conventions"] != one["conventions"]
    assert longer["conventions_of"][one["name"]] in one["conventions_of"].values()


def test_text_of_a_registered_metric_is_a_convention():
    def hash_of(expression):
        with extension.unchanged_registry():
            rf.register_metric("of_tonight")(expression)
            return rf.provenance(A, "of_tonight@2", truth=TRUTH)["conventions_of"]["of_tonight@2"]

    def above(k: int) -> pl.Expr:
        """Items above: the share of items above."""
        return (pl.col("rank") <= k).sum() / 10

    def below(k: int) -> pl.Expr:
        """Items above: the share of items above."""
        return (pl.col("rank") > k).sum() / 10

    assert hash_of(above) == hash_of(above) != hash_of(below)


def test_run_with_blocks_of_ties_has_conventions_of_its_own():
    scored = pl.DataFrame({"user": 1, "item": [*"abc"], "score": [0.5, 0.5, 0.1]})
    truth = pl.DataFrame({"user": [1], "item": ["a"]})
    runs = [rf.with_rank(scored, ties=ties) for ties in ("item", "order", "expected")] + [scored]
    made = [rf.provenance(run, "rr", truth=truth)["conventions"] for run in runs]
    assert made[0] == made[1]  # ranks alone are left
    assert len(set(made)) == 3
