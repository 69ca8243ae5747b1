"""Many systems at once: which may be the best, by loops and simulation, and letters."""

import itertools

import numpy as np
import polars as pl
import pytest
from scipy import stats
from user_values import judged, sample

import rankframe as rf
from rankframe._comparison import many_systems

# ------------------------------------------------------------------ which may be the best


def values_of(*systems):
    """Name the values after a metric for which higher is better, without an upper bound."""
    return judged(*systems).select("model", "user", (pl.col("value") + 100).alias("dcg@10"))


def best_of(table, *metrics, **options):
    """Return the systems that the table of results marks as the best, per metric."""
    frame = rf.table(table, *(metrics or ["dcg@10"]), baseline="m0", **options).frame
    return [part.filter("best")["model"].to_list() for part in frame.partition_by("metric")]


def adjusted_to_best(values):
    """Return p of each system and the best by t, with Holm's correction for all pairs."""
    best = int(values.mean(axis=1).argmax())
    pairs = [*itertools.combinations(range(len(values)), 2)]
    p = [stats.ttest_rel(values[one], values[other]).pvalue for one, other in pairs]
    adjusted, least = dict.fromkeys(pairs, 1.0), 0.0
    for place, rank in enumerate(np.argsort(p)):
        least = max(least, min(1.0, p[rank] * (len(pairs) - place)))
        adjusted[pairs[rank]] = least
    number = range(len(values))
    return [1.0 if x == best else adjusted[tuple(sorted((x, best)))] for x in number]


@pytest.mark.parametrize("seed", [34, 35, 36])
def test_system_is_compared_with_each_other_by_its_own_t(seed):
    values = sample(seed, 30, systems=4) + np.array([[0], [0.4], [0.9], [1.0]])
    expected = [f"m{place}" for place, p in enumerate(adjusted_to_best(values)) if p >= 0.05]
    assert 0 < len(expected) < 4
    made = rf.table(values_of(*values), "dcg@10", letters=True).frame
    assert made.filter("best")["model"].to_list() == expected


def test_best_is_the_lowest_where_lower_is_better():
    ranks = {"m0": [9, 8, 9, 9, 8, 9, 9, 9], "m1": [1, 2, 1, 2, 1, 1, 1, 1]}
    runs = {
        name: pl.DataFrame({"user": range(8), "item": 7, "rank": of_users})
        for name, of_users in ranks.items()
    }
    truth = pl.DataFrame({"user": range(8), "item": 7})
    assert best_of(runs, "rr", "e@3", truth=truth) == [["m1"], ["m1"]]


def test_copy_of_the_best_may_be_the_best():
    old, new = sample(35, 30) + np.array([[0], [2.0]])
    assert best_of(values_of(old, new, new)) == [["m1", "m2"]]


def test_pair_with_the_best_is_of_the_users_whom_it_shares():
    """The best mean is of two users, on whom nothing is shown, as in the rows of compare."""
    old, new = sample(35, 30) + np.array([[0], [2.0]])
    few = np.where(np.arange(30) < 2, new, np.nan)
    table = values_of(old, new, [None if value != value else value for value in few.tolist()])
    made = rf.table(table, "dcg@10", baseline="m0").frame
    compared = rf.compare(table, "dcg@10", baseline="m0")
    assert dict(compared.select("model", "verdict").rows()) == {"m1": "better", "m2": "undecided"}
    assert made.sort("mean")["model"].to_list()[-1] == "m2"
    assert "m0" in made.filter("best")["model"]


def test_best_of_clusters_has_the_errors_of_compare():
    customer = np.arange(40) // 4
    shared = np.random.default_rng(0).gamma(2, 1, (3, 10))[:, customer]
    table = values_of(*(sample(36, 40, systems=3) + shared)).with_columns(
        customer=pl.col("user") // 4
    )
    options = {"cluster": "customer", "correction": None}
    for confidence in (0.5, 0.7, 0.9, 0.99):
        means = dict(table.group_by("model").agg(pl.col("dcg@10").mean()).rows())
        best = max(means, key=means.get)
        of_best = rf.table(table, "dcg@10", baseline=best, confidence=confidence, **options)
        marked = of_best.frame.filter("best")["model"].to_list()
        pairs = rf.compare(table, "dcg@10", baseline=best, **options, details=True)
        out = pairs.filter(pl.col("p_value") < 1 - confidence)["model"]
        assert {*marked} == {*means} - {*out}, confidence


def test_weights_count_in_the_best():
    old = np.linspace(-0.1, 0.1, 40)
    new = old[::-1] + np.where(np.arange(40) < 20, 1.0, -1.0)
    weights = pl.when(pl.col("user") < 20).then(pl.lit(9.0)).otherwise(pl.lit(1.0)).alias("w")
    table = values_of(old, new).with_columns(weights)
    assert best_of(table) == [["m0", "m1"]]
    assert best_of(table, weights="w") == [["m1"]]


@pytest.mark.parametrize("test", ["t", "randomization", "max_t", "sequential"])
@pytest.mark.parametrize("seed", range(4))
def test_system_undecided_against_the_best_may_be_the_best(test, seed):
    """A baseline was "not the best" by a one-sided test of its own, and undecided in compare."""
    shift = np.array([[0], [0.3], [0.45]])
    table = values_of(*(sample(seed, 24, systems=3) + shift)).rename({"dcg@10": "value"})
    table = table.with_columns(
        pl.col("user") % 2,
        **{"ndcg@10": (pl.col("value") - 100) / 20, "ndcg@5": (pl.col("value") - 100) ** 2 / 400},
    ).rename({"user": "half"})
    table = table.with_columns(user=pl.int_range(pl.len()).over("model")).drop("value")
    options = {"test": test, "resamples": 100, "by": ["model", "half"]}
    seen = set()
    for baseline in ("m0", "m2"):
        frame = rf.table(table, "ndcg@10", "ndcg@5", baseline=baseline, **options).frame
        rows = rf.compare(table, "ndcg@10", "ndcg@5", baseline=baseline, **options)
        for half, metric in itertools.product((0, 1), ("ndcg@10", "ndcg@5")):
            part = frame.filter(half=half, metric=metric)
            best = part.sort("mean")["model"][-1]
            marked = dict(part.select("model", "best").rows())
            verdicts = rows.filter(half=half, metric=metric).select("model", "verdict").rows()
            for model, verdict in verdicts:
                if best in (model, baseline):
                    other = model if best == baseline else baseline
                    assert marked[other] == (verdict == "undecided"), (half, metric, model)
                    seen.add(verdict)
    assert "undecided" in seen


# ------------------------------------------------------------------ letters


@pytest.mark.parametrize("seed", range(30))
def test_systems_share_a_letter_where_they_do_not_differ(seed):
    rng = np.random.default_rng(seed)
    number = int(rng.integers(2, 9))
    everything = list(itertools.combinations(range(number), 2))
    different = [pair for pair in everything if rng.random() < 0.5]
    letters = many_systems.letters_of(number, different)
    for first, second in everything:
        shared = set(letters[first]) & set(letters[second])
        assert (not shared) == ((first, second) in different)
    # no system can be added to the group of a letter
    used = sorted(set("".join(letters)))
    assert used == list("abcdefghijklmnopqrstuvwxyz"[: len(used)])
    for letter in used:
        group = [system for system in range(number) if letter in letters[system]]
        for other in set(range(number)) - {*group}:
            assert any(tuple(sorted((other, inside))) in different for inside in group)


def test_letters_begin_with_the_first_system_and_go_on_after_the_last():
    assert many_systems.letters_of(3, [(0, 1), (0, 2)]) == ["a", "b", "b"]
    got = many_systems.letters_of(60, list(itertools.combinations(range(60), 2)))
    assert got[:2] + got[25:28] + got[51:54] == ["a", "b", "z", "A", "B", "Z", ".a", ".b"]
    assert len(set(got)) == 60
