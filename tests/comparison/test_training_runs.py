"""Training runs, ``over=``: formulas by hand, rates of simulations, what is refused, every door."""

import math
import re
from statistics import fmean, stdev, variance

import numpy as np
import polars as pl
import pytest
from scipy import stats

import rankframe as rf
from rankframe._comparison import run_variance
from rankframe._comparison import statistics as st

OLD = [[0.1, 0.2, 0.1], [0.5, 0.4, 0.3], [0.7, 0.9, 0.6], [0.2, 0.4, 0.4], [0.6, 0.7, 0.4]]
NEW = [[0.3, 0.2], [0.9, 0.4], [0.8, 1.0], [0.5, 0.6], [0.9, 0.7]]


def table(systems):
    """A table of values: systems[name][user] has a value per run."""
    rows = [
        {"model": name, "seed": seed, "user": user, "x": value}
        for name, users in systems.items()
        for user, runs in enumerate(users)
        for seed, value in enumerate(runs)
    ]
    return pl.DataFrame(rows, schema_overrides={"x": pl.Float64})


def squares_by_hand(users):
    """Of one system: the variance of the means of runs, what residuals make of it, and the runs."""
    number = len(users[0])
    of_runs = [fmean(user[run] for user in users) for run in range(number)]
    grand = fmean(of_runs)
    residuals = [
        user[run] - fmean(user) - of_runs[run] + grand for user in users for run in range(number)
    ]
    square = math.fsum(x * x for x in residuals) / ((len(users) - 1) * (number - 1))
    return variance(of_runs), square / len(users), number


def test_by_hand():
    row = rf.compare(
        table({"old": OLD, "new": NEW}), "x", baseline="old", over="seed", details=True
    )
    changes = [fmean(b) - fmean(a) for a, b in zip(OLD, NEW, strict=True)]
    users, own = len(changes), variance(changes) / len(changes)
    extra, per_freedom = 0.0, own**2 / (users - 1)
    for between, residual, runs in map(squares_by_hand, (OLD, NEW)):
        extra += (between - residual) / runs
        per_freedom += between**2 / (runs - 1) / runs**2
    assert extra > 0
    error, freedom = math.sqrt(own + extra), max((own + extra) ** 2 / per_freedom, 1)
    mean, reach = fmean(changes), stats.t.ppf(0.975, freedom) * error
    p = 2 * stats.t.sf(mean / error, freedom)
    found = row.row(0, named=True)
    assert found["difference"] == pytest.approx(mean)
    assert found["p_value"] == pytest.approx(max(p, 2 / 2**5))  # of 5 users, signs have this p
    assert (found["ci_low"], found["ci_high"]) == pytest.approx((mean - reach, mean + reach))
    assert found["note"].startswith("exact test: only 5 users differ; 2 runs of new, 3 of old")


def test_summary_by_hand():
    (row,) = rf.summarize(table({"old": OLD}), "x", over="seed").to_dicts()
    between, residual, runs = squares_by_hand(OLD)
    means = [fmean(user) for user in OLD]
    own, extra = variance(means) / 5, max(between - residual, 0) / runs
    per_freedom = own**2 / 4 + between**2 / (runs - 1) / runs**2
    freedom = max((own + extra) ** 2 / per_freedom, 2)
    reach = stats.t.ppf(0.975, freedom) * math.sqrt(own + extra)
    assert (row["mean"], row["runs"], row["users"]) == (pytest.approx(fmean(means)), 3, 5)
    assert row["runs_std"] == pytest.approx(stdev(map(fmean, zip(*OLD, strict=True))))
    assert row["std"] == pytest.approx(stdev(means))
    assert row["ci_low"] == pytest.approx(fmean(means) - max(reach, 2.776445 * math.sqrt(own)))
    assert row["ci_high"] == pytest.approx(fmean(means) + max(reach, 2.776445 * math.sqrt(own)))


# ------------------------------------------------------------------ rates of simulations


def drawn(rng, users, runs, of_runs, *, of_users=0.3, of_rest=0.3):
    """Draw two systems of equal true means: values by run, user and system."""
    shared = rng.normal(size=(1, users, 1))
    values = np.full((max(runs), users, 2), np.nan)
    for place, number in enumerate(runs):
        own = of_users * rng.normal(size=(users,)) + of_runs * rng.normal(size=(number, 1))
        values[:number, :, place] = own + of_rest * rng.normal(size=(number, users))
    return values + shared


def outcome(values):
    """Test the difference of two systems, as ``compare`` does, and the mean of the first."""
    means = np.nanmean(values, axis=0)
    pairs = [(means[:, 0] - means[:, 1], values, [0, 1]), (means[:, 0], values[:, :, :1], [0])]
    found = []
    for change, runs, systems in pairs:
        sample = st.Sample(change)
        result = st.t_test(st.Sample(change[:, None]), 0.95)
        error = run_variance.error_of(runs, systems, None, None)
        error.widen(result, 0, st.estimate(sample), 0.95)
        found += [result.p[0], result.low[0] <= 0 <= result.high[0]]
    return found


@pytest.mark.parametrize("of_runs", [0, 0.03, 0.1, 1])
@pytest.mark.parametrize("runs", [(5, 5), (3, 8)], ids=str)
def test_false_positives_and_coverage(of_runs, runs):
    rng, times = np.random.default_rng(7), 600
    p, covers, _, covers_mean = np.transpose(
        [outcome(drawn(rng, 100, runs, of_runs)) for _ in range(times)]
    )
    allowed = 3 * math.sqrt(0.05 * 0.95 / times)
    assert 0.035 - allowed / 2 <= (p < 0.05).mean() <= 0.05 + allowed
    assert covers.mean() >= 0.95 - allowed
    assert covers_mean.mean() >= 0.95 - allowed


def test_runs_that_are_ignored_are_found_too_often():
    """The simulation sees what it is for: the t test of the means over runs has no such level."""
    rng = np.random.default_rng(7)
    means = [np.nanmean(drawn(rng, 100, (5, 5), 0.1), axis=0) for _ in range(200)]
    p = st.t_test(st.Sample(np.column_stack([of[:, 0] - of[:, 1] for of in means])), 0.95).p
    assert (p < 0.05).mean() > 0.15


# ------------------------------------------------------------------ how many runs


def test_one_run_is_the_test_of_today():
    one = table({"old": OLD, "new": NEW}).filter(seed=0)
    plain = one.drop("seed")
    unknown = "one training run: how much runs vary is unknown"
    made = rf.compare(one, "x", over="seed", baseline="old", details=True)
    today = rf.compare(plain, "x", baseline="old", details=True)
    assert made.drop("note").equals(today.drop("note"))
    assert unknown in made["note"].item()
    summary = rf.summarize(one, "x", over="seed")
    assert summary.drop("runs", "runs_std", "note").equals(rf.summarize(plain, "x").drop("note"))
    assert summary["runs"].to_list() == [1, 1]
    assert all(unknown in note for note in summary["note"])


def test_runs_that_do_not_vary_leave_the_test_of_today():
    again = {name: [[user[0]] * 4 for user in of] for name, of in {"old": OLD, "new": NEW}.items()}
    made = rf.compare(table(again), "x", over="seed", baseline="old", details=True)
    one = rf.compare(table(again).filter(seed=0).drop("seed"), "x", baseline="old", details=True)
    assert made.drop("note").equals(one.drop("note"))


def test_single_run_beside_several_has_the_variance_of_all():
    rng = np.random.default_rng(4)
    values = drawn(rng, 50, (4, 6), 0.3)
    single = rng.normal(size=50)
    of = {"mid": values[:4, :, 0].T.tolist(), "new": values[:, :, 1].T.tolist()}
    rows = table({"old": [[x] for x in single], **of})
    found = rf.compare(rows, "x", over="seed", baseline="old", details=True)
    pooled = "1 of old: a single run takes its variance from the runs of all systems"
    assert all(pooled in note for note in found["note"])
    squares = [squares_by_hand(of["mid"]), squares_by_hand(of["new"])]
    excess = [between - residual for between, residual, _ in squares]
    shares = [3 / 8, 1 / 6 + 5 / 8]  # of the runs of mid and new in the difference of new and old
    changes = np.mean(of["new"], axis=1) - single
    own = variance(changes.tolist()) / 50
    total = own + shares[0] * excess[0] + shares[1] * excess[1]
    terms = [(w * s[0]) ** 2 / (s[2] - 1) for w, s in zip(shares, squares, strict=True)]
    freedom = max(total**2 / (own**2 / 49 + sum(terms)), 3)
    row = found.row(by_predicate=pl.col("model") == "new", named=True)
    reach = stats.t.ppf(0.975, freedom) * math.sqrt(total)
    assert row["ci_high"] == pytest.approx(row["difference"] + reach)
    p = 2 * stats.t.sf(abs(row["difference"]) / math.sqrt(total), freedom)
    assert row["p_value"] == pytest.approx(p)


def test_relative_difference_has_both_errors():
    rng = np.random.default_rng(1)
    values = drawn(rng, 80, (4, 4), 0.3) + 5
    systems = {name: values[:, :, place].T.tolist() for place, name in enumerate(("new", "old"))}
    rows = table(systems)
    row = rf.compare(rows, "x", over="seed", baseline="old", details=True).row(0, named=True)
    apart = rf.compare(
        rows.group_by("model", "user").agg(pl.mean("x")), "x", baseline="old", details=True
    ).row(0, named=True)
    assert row["relative"] == pytest.approx(apart["relative"])
    assert row["relative_high"] - row["relative_low"] > 2 * (
        apart["relative_high"] - apart["relative_low"]
    )
    width = (row["ci_high"] - row["ci_low"]) / row["baseline_mean"]
    assert row["relative_high"] - row["relative_low"] == pytest.approx(width, rel=0.2)
    assert row["detectable"] > 2 * apart["detectable"]


@pytest.mark.parametrize("what", ["weights", "cluster"])
def test_equal_weights_and_clusters_of_one_user_change_nothing(what):
    rows = table({"old": OLD, "new": NEW}).with_columns(w=2.0, c="user")
    column = {"weights": "w", "cluster": "c"}[what]
    made = rf.compare(rows, "x", over="seed", baseline="old", **{what: column})
    plain = rf.compare(rows, "x", over="seed", baseline="old")
    numbers = ("difference", "ci_low", "ci_high", "p_adjusted")
    assert made.select(numbers).row(0) == pytest.approx(plain.select(numbers).row(0))


def test_users_of_a_cluster_vary_together():
    """Two copies of each user, as clusters of two: the numbers of the users themselves."""
    rows = table({"old": OLD, "new": NEW})
    twice = pl.concat([rows, rows.with_columns(user=pl.col("user") + 100)])
    twice = twice.with_columns(c=pl.col("user") % 100)
    for call in (rf.summarize, rf.compare):
        made = (
            call(twice, "x", over="seed", cluster="c", correction=None)
            if call is rf.compare
            else call(twice, "x", over="seed", cluster="c", method="t")
        )
        plain = (
            call(rows, "x", over="seed", correction=None)
            if call is rf.compare
            else call(rows, "x", over="seed", method="t")
        )
        assert made["ci_low"].to_list() == pytest.approx(plain["ci_low"].to_list())


# ------------------------------------------------------------------ lists, and users without one

LISTS = pl.DataFrame(
    [
        (model, seed, user, item, rank)
        for model, seed, user, items in [
            ("old", 1, 1, "ab"), ("old", 1, 2, "ba"), ("old", 2, 1, "ba"), ("old", 2, 2, "cd"),
            ("new", 1, 1, "ab"), ("new", 1, 2, "ab"), ("new", 2, 1, "ab"), ("new", 3, 2, "ba"),
            ("new", 3, 1, "ca"),
        ]
        for rank, item in enumerate(items, start=1)
    ],
    schema=["model", "seed", "user", "item", "rank"],
    orient="row",
)  # fmt: skip
TRUTH = pl.DataFrame({"user": [1, 2, 3], "item": ["a", "a", "a"]})


def test_user_without_a_list_in_a_run_scores_0_in_it():
    found = rf.summarize(LISTS, "rr", truth=TRUTH, over="seed")
    of_runs = rf.evaluate(LISTS, "rr", truth=TRUTH, by=["model", "seed"])
    means = of_runs.group_by("model").agg(pl.mean("rr"), pl.std("rr").alias("std"), pl.len())
    expected = found.join(means, on="model")
    assert found["users"].to_list() == [3, 3]
    assert expected["mean"].to_list() == pytest.approx(expected["rr"].to_list())
    assert expected["runs_std"].to_list() == pytest.approx(expected["std_right"].to_list())
    assert expected["runs"].to_list() == expected["len"].to_list()
    missed = dict(found.select("model", "num_missed").iter_rows())
    assert missed == {"old": 1, "new": 2}  # in one run or more


def test_users_count_who_have_a_value_in_every_run():
    found = rf.summarize(LISTS, "rr", truth=TRUTH, over="seed", users="both")
    assert dict(found.select("model", "users").iter_rows()) == {"old": 2, "new": 1}
    assert dict(found.select("model", "num_left_out").iter_rows()) == {"old": 0, "new": 1}
    compared = rf.compare(LISTS, "rr", truth=TRUTH, over="seed", users="both", details=True)
    assert compared.select("users", "num_left_out").row(0) == (1, 1)


def test_segments_are_compared_each_with_its_runs():
    truth = TRUTH.with_columns(country=pl.Series(["x", "x", "y"]))
    found = rf.summarize(LISTS, "rr", truth=truth, over="seed", by="country")
    runs = rf.evaluate(LISTS, "rr", truth=truth, by=["model", "country", "seed"])
    means = runs.group_by("model", "country").agg(pl.mean("rr"))
    both = found.join(means, on=["model", "country"])
    assert both.height == 4
    assert both["mean"].to_list() == pytest.approx(both["rr"].to_list())
    assert rf.compare(LISTS, "rr", truth=truth, over="seed", by="country").height == 2


def test_order_of_rows_and_a_dict_change_no_number():
    shuffled = LISTS.sample(fraction=1, shuffle=True, seed=3)
    for verb in (rf.summarize, rf.compare):
        options = {"truth": TRUTH, "over": "seed"}
        assert verb(shuffled, "rr", **options).equals(verb(LISTS, "rr", **options))
    runs = {name: LISTS.filter(model=name).drop("model") for name in ("old", "new")}
    of_dict = rf.compare(runs, "rr", truth=TRUTH, baseline="old", over="seed")
    plain = rf.compare(LISTS, "rr", truth=TRUTH, baseline="old", over="seed")
    assert of_dict["ci_low"].equals(plain["ci_low"])
    method = LISTS.rank.compare("rr", truth=TRUTH, baseline="old", over="seed")
    assert method.equals(plain)


# ------------------------------------------------------------------ the table of results


def test_table_has_means_and_deviations_and_the_verdicts_of_compare():
    rng = np.random.default_rng(2)
    values = drawn(rng, 100, (5, 5), 0.02) + np.array([9.0, 10.0])
    rows = table({n: values[:, :, at].T.tolist() for at, n in enumerate(("old", "new"))})
    better = {"higher_is_better": {"x": True}}
    shown = rf.table(rows.rename({"x": "dcg"}), "dcg", baseline="old", over="seed")
    compared = rf.compare(rows, "x", baseline="old", over="seed", **better)
    summary = rf.summarize(rows, "x", over="seed")
    assert compared["verdict"].item() == "better"
    assert shown.frame.filter(model="new")["better"].item()
    ordered = summary.sort("model", descending=True)
    for name in ("mean", "runs", "runs_std"):
        assert shown.frame[name].to_list() == pytest.approx(ordered[name].to_list())
    new = summary.filter(model="new").row(0, named=True)
    text = f"**{new['mean']:.3f} ± {new['runs_std']:.3f}**†"
    assert text in shown.as_markdown()
    assert "t test over users and training runs" in shown.note
    assert "± standard deviation of 5 runs" in shown.note
    assert "runs" not in rf.table(rows.filter(seed=0).drop("seed"), "x").frame.columns


def test_table_marks_nothing_that_training_runs_explain():
    rng = np.random.default_rng(5)
    values = drawn(rng, 200, (3, 3), 0.5)
    rows = table({n: values[:, :, at].T.tolist() for at, n in enumerate(("old", "new"))})
    rows = rows.rename({"x": "dcg"}).with_columns(dcg=pl.col("dcg") + 9)
    means = rows.group_by("model", "user").agg(pl.mean("dcg"))
    plain = rf.table(means, "dcg", baseline="old").frame
    assert plain.select(pl.any_horizontal("better", "worse").any()).item()
    shown = rf.table(rows, "dcg", baseline="old", over="seed", letters=True).frame
    assert not shown.select(pl.any_horizontal("better", "worse").any()).item()
    assert shown["letters"].to_list() == ["a", "a"]


# ------------------------------------------------------------------ what is refused

RUNS = {"truth": TRUTH, "over": "seed"}
REFUSED = {
    "missing": (
        lambda: rf.compare(LISTS, "rr", truth=TRUTH, over="run"),
        "over='run': no column of this name; the columns are 'model', 'seed', 'user', 'item', "
        "'rank'",
    ),
    "of values": (
        lambda: rf.summarize(table({"old": OLD}), "x", over="epoch"),
        "table of values: no column 'epoch'; it has 'model', 'seed', 'user', 'x'",
    ),
    "by": (
        lambda: rf.summarize(LISTS, "rr", by="seed", **RUNS),
        "over='seed': this column names systems or segments: name another",
    ),
    "model": (
        lambda: rf.compare(LISTS, "rr", truth=TRUTH, over="model"),
        "over='model': this column names systems or segments",
    ),
    "no name": (
        lambda: rf.compare(LISTS, "rr", truth=TRUTH, over=3),
        "over must be the name of a column, not 3",
    ),
    "user": (
        lambda: rf.compare(LISTS, "rr", truth=TRUTH, over="user"),
        "over='user': this column names users or items: name another",
    ),
    "all lists": (
        lambda: rf.summarize(LISTS, "coverage@1", items=LISTS.select("item").unique(), **RUNS),
        "over='seed': metric 'coverage@1' is not a mean over users: evaluate it for each run, by=",
    ),
    "gmap": (
        lambda: rf.compare(LISTS, "gmap", **RUNS),
        "over='seed': metric 'gmap' is not a mean over users: evaluate it for each run, by='seed'",
    ),
    **{
        name: (
            lambda options=options: rf.compare(LISTS, "rr", **RUNS, **options),
            f"{name}={options[name]!r} is not supported with over='seed', several training runs: ",
        )
        for name, options in {
            "test": {"test": "randomization"},
            "paired": {"paired": False},
            "margin": {"margin": 0.1},
            "average": {"average": "pooled"},
        }.items()
    },
    "gate": (
        lambda: rf.gate(LISTS, "rr", margin=0.1, **RUNS),
        "gate has no keyword 'over': summarize, compare and table support several training "
        "runs, for tables in memory",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, text = REFUSED[name]
    with pytest.raises((rf.RankingDataError, ValueError, TypeError), match=f"^{re.escape(text)}"):
        call()


@pytest.mark.parametrize("what", ["weights", "cluster"])
def test_weights_and_clusters_are_of_the_user_and_not_of_a_run(what):
    rows = table({"old": OLD, "new": NEW}).with_columns(w=pl.col("seed") + 1.0)
    noun = what.removesuffix("s")
    says = f"table of values, column 'w': several {noun}s of one user: give each user the same"
    for call in (rf.summarize, rf.compare):
        with pytest.raises(rf.RankingDataError, match=f"^{says}"):
            call(rows, "x", over="seed", **{what: "w"})


def test_total_is_refused():
    truth = TRUTH.with_columns(country=pl.lit("x"))
    for call in (rf.compare, rf.summarize):
        with pytest.raises(
            ValueError, match="total=True is not supported with over='seed', several"
        ):
            call(LISTS, "rr", truth=truth, over="seed", by="country", total=True)
