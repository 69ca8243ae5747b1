"""Cautions in the notes of a comparison: each on both sides of its threshold."""

import numpy as np
import polars as pl
import pytest
from scipy import stats
from user_values import VALUE, judged

import rankframe as rf
from rankframe._comparison import cautions


def note(old, new, **options):
    """The note of a comparison of two systems' values."""
    found = rf.compare(judged(old, new), VALUE, baseline="m0", **options)
    return found["note"].item() or ""


def test_fewer_than_five_users_are_too_few():
    for users in (2, 3, 4, 5, 6):
        old = [0.1 * u for u in range(users)]
        new = [0.1 * u + 0.01 * u**2 + 0.1 for u in range(users)]
        few = f"; {users} users, too few for a sure test" if users < 5 else ""
        assert note(old, new) == f"exact test: only {users} users differ{few}"
    assert cautions.FEWEST_USERS == 5


def test_weight_of_one_user_may_outweigh_all_others():
    old = np.linspace(0, 1, 300)
    new = old - 0.01
    new[0] += 1000
    assert note(old, new) == "lower for 299 of 300 users, though the mean rises"
    assert note(new, old) == "higher for 299 of 300 users, though the mean falls"
    runs = pl.concat(
        pl.DataFrame({"model": name, "user": range(300), "v": values})
        for name, values in (("old", old), ("new", new))
    )
    for higher, word in ((True, "worse"), (False, "better")):
        got = rf.compare(runs, "v", baseline="old", higher_is_better={"v": higher})
        assert got["note"].item() == f"{word} for 299 of 300 users, though the mean rises"


@pytest.mark.parametrize(("excess", "expected"), [(0.0, False), (1e-13, False), (1e-6, True)])
def test_mean_that_changes_by_rounding_contradicts_nobody(excess, expected):
    old = np.full(400, 0.5)
    change = np.where(np.arange(400) < 300, -0.01, 0.03)  # three lose a third of what one gains
    change[-1] += 400 * excess
    got = note(old, old + change)
    has_note = "lower for 300 of 400 users, though the mean rises" in got
    assert has_note is expected


def test_sign_test_decides_whether_users_contradict_the_mean():
    for losers in range(11, 20):
        change = np.where(np.arange(20) < losers, -0.01, 1.0) + np.linspace(0, 1e-3, 20)
        old = np.linspace(0.1, 0.9, 20)
        p = stats.binomtest(losers, 20).pvalue
        told = f"lower for {losers} of 20 users, though the mean rises" in note(old, old + change)
        assert told is bool(p < cautions.SIGN_LEVEL)
    # with clusters, these are counted
    shops = judged(old, old + change).with_columns(shop=pl.col("user") // 2)
    got = rf.compare(shops, VALUE, baseline="m0", cluster="shop")["note"].item()
    assert "users have" not in got


@pytest.mark.parametrize(
    ("users", "effect", "options", "told"),
    [
        (10_000, 0.019, {}, True),
        (9_999, 0.019, {}, False),
        (10_000, 0.021, {}, False),
        (10_000, -0.019, {}, True),
        (10_000, 0.019, {"margin": 0.5}, False),
        (10_000, 0.019, {"test": "max_t"}, False),  # takes no margin
    ],
)
def test_small_effect_of_many_users_asks_for_a_margin(users, effect, options, told):
    rng = np.random.default_rng(4)
    old, change = rng.random(users), rng.normal(size=users)
    change = (change - change.mean()) / change.std(ddof=1) + effect
    text = f"10,000 users prove even a small effect, here {effect:.2g} standard deviations"
    assert (text in note(old, old + change, **options)) is told


RUN = pl.DataFrame(
    {"model": [*"ab"] * 40, "user": sorted([*range(40)] * 2), "item": 7, "rank": [1, 2, 3, 1] * 20}
)


def test_ages_weeks_and_tiers_are_proposed_as_no_clusters():
    truth = pl.DataFrame({"user": range(40), "item": 7})
    truth = truth.with_columns(age=18 + pl.col("user") % 10)
    notes = rf.compare(RUN, "rr", truth=truth, baseline="a")["note"]
    assert "cluster" not in (notes.item() or "")


def test_signs_of_two_means_are_read_beside_the_test():
    """A loses 2 of 10 hits of 100 relevant items, B gains one of 20."""
    lists = {"old": {"A": [1, 2], "B": [999]}, "new": {"A": [998], "B": [101]}}
    run = pl.DataFrame(
        [
            (m, u, i, r)
            for m, of in lists.items()
            for u, items in of.items()
            for r, i in enumerate(items, 1)
        ],
        schema=["model", "user", "item", "rank"],
        orient="row",
    )
    truth = pl.DataFrame({"user": ["A"] * 100 + ["B"] * 20, "item": range(1, 121)})
    got = rf.stats.who_gained(run, 10, truth=truth, baseline="old").row(-1, named=True)
    assert got["recall_change"] == pytest.approx(0.015)
    assert got["precision_change"] == pytest.approx(-0.05)
    assert got["signs"] == "better for users with few relevant items, worse for users with many"
    assert got["reading"] == "no difference seen"
    back = rf.stats.who_gained(run, 10, truth=truth, baseline="new")["signs"].to_list()
    assert back == [
        "worse overall",
        "better overall",
        "better for users with many relevant items, worse for users with few",
    ]
    same = run.with_columns(model=pl.col("model") + "2").filter(model="old2")
    alike = rf.stats.who_gained(pl.concat([run, same]), 10, truth=truth, baseline="old")
    assert set(alike.filter(model="old2")["signs"]) == {"unchanged"}


def test_diagnosis_counts_clusters():
    """Users come four times: only the number of customers tells."""
    ranks = {"old": [2] * 8 + [1] * 16, "new": [1] * 8 + [2] * 3 + [1] * 13}

    def diagnosis(copies, **options):
        users = [*range(24 * copies)]
        run = pl.concat(
            pl.DataFrame({"model": m, "user": users, "item": 7, "rank": np.repeat(r, copies)})
            for m, r in ranks.items()
        )
        truth = pl.DataFrame({"user": users, "item": 7, "customer": [u // copies for u in users]})
        found = rf.stats.who_gained(run, 1, truth=truth, baseline="old", **options)
        return found.filter(pl.col("relevant_low").is_null()).row(0, named=True)

    plain = diagnosis(1)
    naive = diagnosis(4)
    clustered = diagnosis(4, cluster="customer")
    assert naive["reading"] != plain["reading"] == clustered["reading"] == "no difference seen"
