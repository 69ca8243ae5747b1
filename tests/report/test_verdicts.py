"""Verdicts of constructed data whose answer is known, and all their sentences in a golden file.

``python -m tests.report.test_verdicts`` writes the file again, for a person to read.
"""

import functools
import html
import random
import re
from pathlib import Path

import polars as pl
import pytest

import rankframe as rf
from tests.report.samples import correlated, run_of

GOLDEN = Path(__file__).parent / "verdicts.md"


def of_ranks(**ranks):
    """Give each user one relevant item, which each system lists at a rank; None: no list."""
    rows = [
        (name, user, "it", rank)
        for name, of_users in ranks.items()
        for user, rank in enumerate(of_users)
        if rank is not None
    ]
    run = run_of(rows)
    users = max(map(len, ranks.values()))
    return {"run": run, "truth": pl.DataFrame({"user": range(users), "item": "it"})}


def in_groups(*, relevant=None, **groups):
    """Give each group its ranks of old and new, and each user more relevant items that none lists.

    Groups are countries, or numbers of relevant items.
    """
    ranks = [pair for pairs in groups.values() for pair in zip(*pairs, strict=True)]
    data = of_ranks(old=[old for old, _ in ranks], new=[new for _, new in ranks])
    names = [name for name, (old, _) in groups.items() for _ in old]
    if relevant is None:
        data["truth"] = data["truth"].with_columns(country=pl.Series(names))
        return {**data, "by": "country"}
    more = [
        (user, f"more {n}") for user, name in enumerate(names) for n in range(1, relevant[name])
    ]
    more = pl.DataFrame(more, schema=["user", "item"], orient="row")
    return {**data, "truth": data["truth"].vstack(more)}


def drawn(seed, users, ranks):
    """Draw ranks."""
    return random.Random(seed).choices(ranks, k=users)


def unjudged():
    """Both lists have the relevant item first or second; below it new has unknown ones."""
    truth = [(user, f"item {item}", int(item == 1)) for user in range(60) for item in range(1, 6)]
    rows = [("old", user, f"item {item}", item) for user in range(60) for item in range(1, 6)]
    for user in range(60):
        listed = ["x", "y", "item 1" if user % 2 else "z", "item 2", "item 3"]
        rows += [("new", user, name, rank) for rank, name in enumerate(listed, 1)]
    return {
        "run": run_of(rows),
        "truth": pl.DataFrame(truth, schema=["user", "item", "relevance"], orient="row"),
    }


def turned():
    """The old lists have a relevant item at rank 2, the new ones unknown items and one at 3."""
    lists = {"old": ["item 2", "item 1"], "new": ["x", "y", "item 1"]}
    rows = [
        (name, user, item, rank)
        for user in range(60)
        for name, items in lists.items()
        for rank, item in enumerate(items[user % 2 :] if name == "old" else items, 1)
    ]
    truth = [(user, f"item {item}", int(item == 1)) for user in range(60) for item in (1, 2)]
    return {
        "run": run_of(rows),
        "truth": pl.DataFrame(truth, schema=["user", "item", "relevance"], orient="row"),
    }


def tied():
    """Scores that do not determine the first items of a third of the lists."""
    rows = [
        (name, user, f"item {item}", 1.0 if user % 3 == 0 else float(item))
        for name in ("old", "new")
        for user in range(60)
        for item in range(4)
    ]
    run = pl.DataFrame(rows, schema=["model", "user", "item", "score"], orient="row")
    wanted = pl.when(pl.col("user") % 3 == 1).then(pl.lit("item 3")).otherwise(pl.lit("item 1"))
    truth = pl.DataFrame({"user": range(60)}).with_columns(item=wanted)
    return {"run": run, "truth": truth, "k": 2}


def tied_throughout():
    """Short lists whose scores do not determine their order, though they do the first items."""
    rows = [
        (name, user, f"item {item}", float(-item) if name == "old" else 1.0)
        for name in ("old", "new")
        for user in range(60)
        for item in range(4)
    ]
    run = pl.DataFrame(rows, schema=["model", "user", "item", "score"], orient="row")
    truth = pl.DataFrame({"user": range(60)})
    truth = truth.with_columns(item=pl.format("item {}", 2 + pl.col("user") % 2))
    return {"run": run, "truth": truth, "k": 4}


def bought_again():
    """One in five wants what the history has: old hides it, new lists it and drops other hits."""

    def lists(name, items):
        rows = [(name, u, i, rank) for u in range(1000) for rank, i in enumerate(items(u), 1)]
        return run_of(rows)

    old = lists("old", lambda user: "ba")
    new = lists("new", lambda user: (f"mine{user}", "b" if user % 10 == 1 else "a"))
    history = pl.DataFrame({"user": range(1000)}).with_columns(item=pl.format("mine{}", "user"))
    wanted = pl.when(pl.col("user") % 5 == 0).then("item").otherwise(pl.lit("a"))
    truth = history.with_columns(item=wanted)
    return {"run": pl.concat([old, new]), "truth": truth, "history": history}


def other_shares():
    """Two weeks of different users: new is better in both countries, with more of the hard one."""
    ranks = {"old": [1, 2, 2] * 54 + [9, 8] * 20, "new": [1, 1, 2] * 14 + [6, 5] * 80}
    easy = {"old": 162, "new": 42}
    run, truth, start = [], [], 0
    for model, of_users in ranks.items():
        for user, rank in enumerate(of_users, start):
            run.append((model, user, "it", rank))
            truth.append((user, "it", "no" if user - start < easy[model] else "se"))
        start += len(of_users)
    return {
        "run": run_of(run),
        "truth": pl.DataFrame(truth, schema=["user", "item", "country"], orient="row"),
        "paired": False,
        "users": "run",
        "by": "country",
    }


def in_clusters(data, *, clusters):
    """Give each user a customer."""
    customer = pl.col("user") % clusters
    return {**data, "truth": data["truth"].with_columns(customer=customer), "cluster": "customer"}


def without_common_ids():
    data = of_ranks(old=[1, 2] * 20, new=[2, 1] * 20)
    return {**data, "truth": data["truth"].with_columns(item=pl.lit("0it"))}


OLD = [2, 3, 1, 4, 2, 3] * 20
BETTER = [1, 2, 1, 2, 2, 1] * 20
DEEP = [200] * 400
NO_DIRECTION = pl.col("rank").mean().alias("mean rank")
#: the outcome's words, the call, and what is true of the data
DATA = {
    "a copy": ("identical", ["rr", "hit@1"], of_ranks(old=OLD, new=OLD)),
    "a copy, by the metric that decides": (
        "hit@5 cannot tell new from old",
        ["hit@5", "rr"],
        of_ranks(old=OLD, new=BETTER),
    ),
    "fewer first hits, more hits in five": (
        "new is better than old in hit@5, but worse in hit@1",
        ["hit@1", "hit@5"],
        of_ranks(old=[1, 1, 9, 9] * 25, new=[1, 2, 3, 3] * 25),
    ),
    "the same in the other order": (
        "new is better than old in hit@5, but worse in hit@1",
        ["hit@5", "hit@1"],
        of_ranks(old=[1, 1, 9, 9] * 25, new=[1, 2, 3, 3] * 25),
    ),
    "the metric that decides shows nothing, two others disagree": (
        "new is better than old in hit@5, but worse in hit@1",
        ["hit@9", "hit@1", "hit@5"],
        of_ranks(old=[1, 1, 9, 9] * 25 + [5, 20], new=[1, 2, 3, 3] * 25 + [20, 5]),
    ),
    "higher ranks for half of the users": (
        "better",
        ["rr", "hit@1"],
        of_ranks(old=OLD, new=BETTER),
    ),
    "lower ranks for half of the users": ("worse", ["rr", "hit@1"], of_ranks(old=BETTER, new=OLD)),
    "a lower value is better": ("better", ["mean_hit_rank"], of_ranks(old=OLD, new=BETTER)),
    "a baseline of 0": (
        "better",
        ["hit@5"],
        of_ranks(old=[9] * 40, new=[1, 9] * 20),
    ),
    "half a percent for half of the users": (
        "better",
        ["rr"],
        of_ranks(old=DEEP, new=[199, 200] * 200),
    ),
    "less than the margin": (
        "same for practical purposes",
        ["rr"],
        {**of_ranks(old=OLD, new=[1, 2, 1, 4, 2, 3] * 20), "margin": 0.4},
    ),
    "no direction is better": ("higher", [NO_DIRECTION], of_ranks(old=BETTER, new=OLD)),
    "no direction is better, the reverse": ("lower", [NO_DIRECTION], of_ranks(old=OLD, new=BETTER)),
    "gains and losses of half a percent": (
        "too few",
        ["rr"],
        of_ranks(old=DEEP, new=[199, 201] * 200),
    ),
    "gains and losses of half a percent, with a margin": (
        "too few",
        ["rr"],
        {**of_ranks(old=DEEP, new=[199, 201] * 200), "margin": "1%"},
    ),
    "within the margin": (
        "the same",
        ["rr"],
        {**of_ranks(old=OLD, new=[2, 3, 1, 4, 3, 2] * 20), "margin": "10%"},
    ),
    "40 users of noise": (
        "too few",
        ["rr", "hit@1"],
        of_ranks(old=drawn(1, 40, range(1, 9)), new=drawn(2, 40, range(1, 9))),
    ),
    "a difference that correction overrules": (
        "too few",
        ["rr", "hit@1", "hit@2", "hit@3", "hit@4", "hit@5"],
        of_ranks(old=[2, 3, 5, 4, 2, 6] * 4, new=[1, 3, 5, 2, 3, 6] * 4),
    ),
    "a loss of the margin is excluded": (
        "not worse than old by more than the margin",
        ["rr"],
        {
            **of_ranks(old=[2, 3, 4, 4, 2, 3] * 20, new=[1, 3, 4, 5, 3, 3, 2, 3, 4, 5, 3, 3] * 10),
            "margin": 0.03,
        },
    ),
    "one user": ("too few", ["rr"], of_ranks(old=[2], new=[1])),
    "each user gains the same": ("better", ["rr"], of_ranks(old=[2] * 40, new=[1] * 40)),
    "four users gain the same": ("too few", ["rr"], of_ranks(old=[2] * 4, new=[1] * 4)),
    "no list for a third of the users": (
        "worse",
        ["rr"],
        of_ranks(old=OLD, new=[None if user % 3 == 0 else OLD[user] for user in range(120)]),
    ),
    "unjudged items": ("worse", ["rr", "ndcg@5"], {**unjudged(), "k": 5}),
    "ties at the cut": ("identical", ["hit@2"], tied()),
    "different users": (
        "better",
        ["rr"],
        {
            **of_ranks(old=[*OLD, *[None] * 120], new=[*[None] * 120, *BETTER]),
            "paired": False,
            "users": "run",
        },
    ),
    "users of one group only": (
        "too few",
        ["rr"],
        {
            **of_ranks(
                old=[*drawn(3, 50, range(1, 9)), *[None] * 30],
                new=[*[None] * 25, *drawn(4, 55, range(1, 9))],
            ),
            "users": "run",
        },
    ),
    "better in each country": (
        "better than",
        ["rr"],
        in_groups(no=(OLD, BETTER), se=(OLD[:60], BETTER[:60])),
    ),
    "better, but in a small country nobody can tell": (
        "better than",
        ["rr"],
        in_groups(no=(OLD, BETTER), se=([2, 3, 2, 1, 4, 2, 5], [3, 2, 2, 1, 3, 3, 5])),
    ),
    "better overall, but not in each country": (
        "better than old overall",
        ["rr"],
        in_groups(
            no=(OLD, BETTER), se=(BETTER[:60], OLD[:60]), dk=(OLD[:40], OLD[:40]), fi=([1], [1])
        ),
    ),
    "no country has enough users": (
        "too few",
        ["rr"],
        in_groups(
            no=(drawn(5, 20, range(1, 9)), drawn(6, 20, range(1, 9))),
            se=(drawn(7, 20, range(1, 9)), drawn(8, 20, range(1, 9))),
            dk=(drawn(9, 20, range(1, 9)), drawn(10, 20, range(1, 9))),
        ),
    ),
    "better for users with few relevant items": (
        "better than old overall",
        ["rr"],
        in_groups(
            relevant={"few": 1, "some": 3, "many": 9},
            few=(OLD, BETTER),
            some=(OLD[:60], BETTER[:60]),
            many=(BETTER[:60], OLD[:60]),
        ),
    ),
    "unjudged items that could turn the order": (
        "Not enough judgments to tell new from old",
        ["rr"],
        {**turned(), "k": 3},
    ),
    "the same overall, but not in each country": (
        "too few to tell new from old overall",
        ["rr"],
        {
            **in_groups(no=(DEEP, [199, 200] * 200), se=(DEEP, [201, 200] * 200)),
            "margin": "1%",
        },
    ),
    "equal scores in lists that end before the cut": ("better", ["rr"], tied_throughout()),
    "a proved loss in a metric that does not count": (
        "too few",
        ["hit@9", "rr"],
        {
            **of_ranks(old=[1, 2, 1, 2] * 25 + [5, 20], new=[3, 4, 4, 3] * 25 + [20, 5]),
            "primary": "hit@9",
        },
    ),
    "all find it, at other ranks": (
        "hit@10 cannot tell new from old",
        ["hit@10"],
        of_ranks(old=[1] * 100, new=[5] * 100),
    ),
    "one user of 300": (
        "1 of 300 users differs: too few",
        ["hit@10"],
        of_ranks(old=[1, 11] * 150, new=[1, 1] + [1, 11] * 149),
    ),
    "three users": ("too few", ["rr"], of_ranks(old=[2, 3, 4], new=[1, 2, 1])),
    "30 users, of whom none loses": (
        "better",
        ["rr"],
        of_ranks(old=[4, 5, 6] * 10, new=[3, 4, 5] * 10),
    ),
    "40 users of two customers gain the same": (
        "too few",
        ["rr"],
        in_clusters(of_ranks(old=[2] * 40, new=[1] * 40), clusters=2),
    ),
    "few users have both lists": (
        "better",
        ["rr"],
        {
            **of_ranks(old=[*[2] * 10, *[1] * 95], new=[*[1] * 10, *[None] * 95, *[3] * 95]),
            "users": "both",
        },
    ),
    "a loss of everything": (
        "worse than old",
        ["rr@5"],
        of_ranks(old=OLD, new=[9] * 120),
    ),
    "more than ten times the baseline": (
        "better",
        ["rr"],
        of_ranks(old=[90, 95, 100, 99] * 3, new=[1, 2, 3, 4] * 3),
    ),
    "different users in other shares": ("worse than old overall", ["rr"], other_shares()),
    "a fifth of the truth in the history": ("better than old overall", ["ndcg@2"], bought_again()),
    "ids that never meet": ("Not enough judgments", ["rr"], without_common_ids()),
    "a difference that only a correction overrules": (
        "Undecided between new and old",
        [f"ndcg@{k}" for k in range(1, 9)],
        correlated(),
    ),
    "one number for all lists": (
        "No test can tell new from old",
        ["coverage@1"],
        {
            "run": pl.concat(
                of_ranks(**{name: [1] * 40})["run"].with_columns(item=pl.col("user") % number)
                for name, number in (("old", 5), ("new", 20))
            ),
            "truth": pl.DataFrame({"user": range(40), "item": range(40)}),
            "items": pl.DataFrame({"item": range(40)}),
        },
    ),
    "three systems": (
        "1 of 3 systems is better than old",
        ["rr"],
        of_ranks(old=OLD, copy=OLD, new=BETTER, poor=[6, 7] * 60),
    ),
}


def reported(data, *metrics, **options):
    return rf.report(data["run"], *metrics, truth=data["truth"], **options)


@functools.cache
def said(name):
    """Return the verdict of a data set."""
    _, metrics, call = DATA[name]
    call = dict(call)
    return rf.report(call.pop("run"), *metrics, baseline="old", **call).verdict


def written(name):
    return f"## {name}\n\n{said(name)}\n"


@pytest.mark.parametrize("name", DATA)
@pytest.mark.filterwarnings("ignore:.*no item of the run is in the truth")  # the subject is another
def test_verdict_says_what_is_true_and_as_the_golden_file_does(name):
    text = said(name)
    first = text.splitlines()[0]
    assert DATA[name][0] in first
    golden = GOLDEN.read_text("utf-8")
    assert f"## {name}\n\n{text}\n" in golden


def test_judged_table_warns_of_unjudged_items_as_its_run_and_truth_do():
    data = unjudged()
    judged = rf.judge(data["run"], data["truth"], by="model")
    told = rf.report(judged, "rr", "ndcg@5", baseline="old", k=5).verdict
    assert told == said("unjudged items")
    judged = judged.with_columns(pl.col("relevance").fill_null(0))  # now all are judged
    told = rf.report(judged, "rr", "ndcg@5", baseline="old", k=5).verdict
    assert "never judged" not in told


def test_tables_leave_open_what_unjudged_items_could_turn():
    data = turned()
    page = reported(data, "rr", baseline="old", k=3).html()
    assert re.search("● ?</span>open: too few judgments", page)
    assert not re.search("▼ ?</span>worse", page)
    assert not re.search(r'<td class="[^"]*worse', page)


def test_open_verdict_counts_its_checks_as_the_section_of_the_data_does():
    data = turned()
    ask = {"truth": data["truth"], "baseline": "old", "k": 3}
    made = rf.report(data["run"], "rr", "ndcg@3", **ask)
    counts = re.findall(r"\d+ of \d+ checks", html.unescape(made.html()))
    assert counts == ["1 of 26 checks"]
    assert "Data checks found short lists (100% of old).\n" in made.verdict


def test_loss_below_the_margin_has_the_mark_of_a_loss():
    data = of_ranks(old=[1] * 100, new=[2] * 20 + [1] * 80)
    made = reported(data, "rr", baseline="old", margin=0.3)
    verdict = "worse, by less than the margin"
    assert made.tables["comparison"]["verdict"].to_list() == [verdict]
    assert made.verdict.startswith("new is worse than old, by less than the margin.\n")
    assert "; the margin is 30.0% (0.3)." in made.verdict
    page = made.html()
    assert re.search(rf'<td class="said worse">.*▼ ?</span>.*{verdict}', page)


def test_summary_of_systems_says_what_a_margin_earned():
    ranks = {
        "old": [2] * 100,
        "slips": [3] * 20 + [2] * 80,
        "mixes": [1] * 20 + [6] * 18 + [2] * 62,
    }
    data = of_ranks(**ranks)
    told = reported(data, "rr", baseline="old", margin=0.07).verdict
    told = told.splitlines()[1]
    assert "slips is worse by less than the margin; mixes is not worse by more than the" in told


def test_systems_are_told_apart_only_where_a_direction_is_better():
    ranks = {"old": OLD, "new": BETTER, "like new": [1, 2, 1, 2, 1, 2] * 20, "top": [1] * 120}
    data = of_ranks(**ranks)
    first, second, *_ = reported(data, "rr", baseline="old").verdict.split("\n")
    assert first == "3 of 3 systems are better than old."
    assert " top is the best of these 3: 1.000, +106% (" in second
    near = of_ranks(**{name: ranks[name] for name in ("old", "new", "like new")})
    told = reported(near, "rr", baseline="old").verdict
    assert "Neither of these two is proved worse than the best." in told
    told = reported(near, NO_DIRECTION, baseline="old").verdict
    assert "proved" not in told
    assert told.startswith("None of 2 systems has a higher mean rank than old.")


def test_tiny_effect_is_said_once():
    data = of_ranks(old=[1] * 4870 + [2] * 15130, new=[2] * 4870 + [1] * 5130 + [2] * 10000)
    page = reported(data, "rr", baseline="old").html()
    said = r"So many users prove even a small change: decide whether \+1\.?\d*% matters, or set "
    assert len(re.findall(said, page)) == 1
    assert "margin= says what matters" not in page


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("best overall", "a copy, by the metric that decides"),
        ("new; relative boost", "40 users of noise"),
        ("rr, for each", "40 users of noise"),
    ],
)
def test_names_do_not_steer_sentences(name, data):
    """The verdict of a system is that of another name."""
    _, metrics, call = DATA[data]
    run = call["run"].with_columns(model=pl.col("model").replace({"new": name}))
    told = rf.report(run, *metrics, baseline="old", truth=call["truth"]).verdict
    assert told.replace(name, "new") == said(data)


def test_name_does_not_end_a_note():
    data = of_ranks(old=OLD, new=[None if user % 3 == 0 else OLD[user] for user in range(120)])
    run = data["run"].with_columns(pl.col("model").replace({"new": "new; relative boost"}))
    table = rf.table(run, "rr", truth=data["truth"], baseline="old")
    assert "*" not in table.note


def test_users_that_a_difference_needs_are_those_of_power():
    rows = in_clusters(
        of_ranks(old=drawn(1, 300, range(1, 9)), new=drawn(2, 300, range(1, 9))), clusters=6
    )
    run, truth, options = rows.pop("run"), rows.pop("truth"), rows
    row = run.rank.compare("rr", truth=truth, baseline="old", **options).row(0, named=True)
    difference = abs(row["difference"])
    plan = run.rank.stats.power("rr", truth=truth, baseline="old", difference=difference, **options)
    needed = plan["needed"].item()
    assert needed > 1000
    told = rf.report(run, "rr", truth=truth, baseline="old", **options).verdict
    (number,) = re.findall(r"if it is real, needs about ([\d,]+)", told)
    assert needed <= int(number.replace(",", "")) <= 1.1 * needed


@pytest.mark.filterwarnings("ignore:.*no item of the run is in the truth")  # the subject is another
def test_truth_is_split_by_the_history():
    """Both verdicts are those of the parts of the truth that the history has and has not."""
    data = bought_again()
    made = reported(data, "ndcg@2", history=data["history"], baseline="old")
    table = made.tables["segments: relevant items"].cast({"relevant items": pl.String})
    for group, part in (("seen before", 0), ("not seen before", 1)):
        truth = data["truth"].filter((pl.col("user") % 5 > 0) == part)
        want = data["run"].rank.compare("ndcg@2", truth=truth, baseline="old").row(0, named=True)
        got = table.filter(pl.col("relevant items") == group).row(0, named=True)
        assert got["users"] == want["users"] == (200, 800)[part]
        assert got["difference"] == pytest.approx(want["difference"])
    line = "By relevant items, new is worse for not seen before, though not overall."
    assert line in made.verdict
    few = data["history"].head(40)  # 8 of its rows are in the truth
    made = reported(data, "ndcg@2", history=few, baseline="old")
    assert "segments: relevant items" not in made.tables


def test_golden_file_has_no_other_verdict():
    titles = [line for line in GOLDEN.read_text("utf-8").splitlines() if line.startswith("## ")]
    assert titles == [f"## {name}" for name in DATA]


if __name__ == "__main__":
    text = "# Verdicts of constructed data\n\n" + "\n".join(map(written, DATA))
    GOLDEN.write_text(text, encoding="utf-8")


def plain(new):
    """Return a run whose scores are distinct, and one that has them elsewhere, with its truth."""
    score = pl.Series([5.0, 4.0, 3.0] * 40)
    old = pl.DataFrame({"user": sorted([*range(40)] * 3), "item": [0, 1, 2] * 40, "score": score})
    truth = old.select("user", "item", relevance=(pl.col("item") + pl.col("user")) % 2)
    return {"old": old, "new": old.with_columns(score=new)}, truth


def test_problems_of_health_are_on_the_card():
    item, nan = pl.col("item"), float("nan")
    runs, truth = plain(pl.when(item == 2).then(nan).otherwise(-item.cast(pl.Float64)))
    text = rf.report(runs, "rr", truth=truth, baseline="old", k=2).verdict
    problems = rf.health(runs, truth=truth, k=2).filter("problem")["what"].to_list()
    assert problems == ["nan_scores"]
    assert "⚠ Data checks found scores that are NaN (33% of new).\n" in text
    assert "Ties" not in text
    assert "checks passed" not in text
    runs, truth = plain(-item.cast(pl.Float64))
    assert not rf.health(runs, truth=truth, k=2)["problem"].any()
    made = rf.report(runs, "rr", truth=truth, baseline="old", k=2)
    assert re.search(r"✓ \d+ data checks passed\.", made.verdict)


def test_facts_are_no_doubts():
    runs, truth = plain(pl.col("item").cast(pl.Float64))
    truth = truth.with_columns(shop=pl.col("user") // 4)
    text = rf.report(runs, "rr", truth=truth, baseline="old", k=2, cluster="shop").verdict
    assert "⚠" not in text
    only = {name: run.filter(pl.col("user") < 20) for name, run in runs.items()}
    only["new"], few = only["old"], truth.filter(pl.col("user") < 20)
    text = rf.report(only, "rr", truth=few, baseline="old", k=2).verdict
    assert text.startswith("new and old are identical")
    assert "rough" not in text


def test_box_has_the_loss_that_a_primary_metric_leaves_out():
    text = said("a proved loss in a metric that does not count")
    assert "rr falls by 60.9%, which counts only if hit@9 shows a difference." in text


def test_equal_scores_are_a_doubt():
    text = said("equal scores in lists that end before the cut")
    assert "Ties among the first 4 items, in 100% of the lists of new: their order" in text


@pytest.mark.parametrize(("margin", "passes"), [(0.01, False), (0.05, True)])
def test_card_says_what_a_gate_does_of_the_margin_in_the_unit_of_the_interval(margin, passes):
    data = of_ranks(old=[1, 2, 3, 4, 2] * 20, new=[*[1, 1, 3, 4, 2] * 4, *[1, 2, 3, 4, 2] * 16])
    options = {"baseline": "old", "margin": margin}
    report = reported(data, "rr", **options)
    gated = rf.gate(data["run"], "rr", truth=data["truth"], **options)
    assert gated["passed"].to_list() == [passes]
    share = f"{100 * margin / (31 / 60):.1f}%"
    said = f"a loss beyond the margin of {share} ({margin}) is {'' if passes else 'not '}excluded"
    assert said in report.verdict
    assert f", margin {share}" in report.html()


def test_same_mean_in_another_order_stays():
    old = drawn(1, 97, range(1, 8))
    data = of_ranks(old=old, new=random.Random(2).sample(old, 97))
    lines = reported(data, "rr", baseline="old").verdict.splitlines()
    assert re.match(r"rr stays at 0\.\d{3};", lines[1])
    assert lines[-1] == "Next: compare on more users."


def test_areas_of_the_bar_of_users_are_shares():
    html = reported(of_ranks(old=[2] * 50, new=[1] + [2] * 49), "rr", baseline="old").html()
    parts = re.findall(r'<span class="(\w+)" style="flex-grow: (\d+)"></span>', html)
    assert parts == [("same", "49"), ("better", "1")]
    assert "min-width" not in re.search(r"\.bar span \{.*", html)[0]
    assert "0 worse" in html


def test_metric_decides_in_the_table_only_if_the_caller_names_it():
    data = of_ranks(old=[1, 1, 9, 9] * 25, new=[1, 2, 3, 3] * 25)
    tag = '<span class="tag">decides</span>'
    unnamed = reported(data, "hit@1", "hit@5", baseline="old")
    assert tag not in unnamed.html()
    assert "margin" not in unnamed.verdict
    assert tag in reported(data, "hit@1", "hit@5", baseline="old", primary="hit@1").html()


def test_systems_that_may_be_the_best_have_their_names():
    ranks = {"old": [9] * 60, "a": [2, 3] * 30, "b": [1, 1, 2] * 20, "c": [4, 5] * 30}
    told = reported(of_ranks(**ranks), "rr", baseline="old").verdict
    assert "b is the best of these 3: 0.833, +650% (95% interval 595% to 705%)." in told
    alike = {f"s{n}": [*[1, 2] * (30 - n), *[2, 1] * n] for n in range(5)}
    told = reported(of_ranks(**alike, **ranks), "rr", baseline="old").html()
    assert "6 of these 8 may be the best: the table marks them." in told
    assert told.count('<span class="tag">may be the best</span>') == 6


def test_metric_without_values_is_not_tested_on_more_users():
    told = reported(of_ranks(old=OLD, new=BETTER), "fallout@10", baseline="old").verdict
    assert told.endswith("by another metric: fallout@10 has no value with these judgments.")
