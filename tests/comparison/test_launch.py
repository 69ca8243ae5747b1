"""One decision from a primary metric and its guardrails."""

from itertools import product

import numpy as np
import polars as pl
import pytest
from commands import said_by
from polars.testing import assert_frame_equal

import rankframe as rf
from rankframe._command.main import main
from rankframe._comparison import launch

USERS = 400
TRUTH = pl.DataFrame({"user": range(USERS), "item": "a"})
RANDOM = np.random.default_rng(5)
OLD = RANDOM.integers(1, 4, USERS)
RANKS = {
    "old": OLD,
    "better": np.maximum(1, OLD - RANDOM.integers(0, 2, USERS)),
    "like": RANDOM.permutation(OLD),
    "lossy": np.where(np.arange(USERS) < 60, 9, 1),
}
RUNS = {name: TRUTH.with_columns(rank=pl.Series(ranks)) for name, ranks in RANKS.items()}
LAUNCH = {"primary": "rr", "guardrails": {"hit@3": 0.05}}


def words(why):
    return [text.partition(": ")[0] for text in why]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_truth_table(number):
    outcomes = ("worse", "not worse", "undecided", "identical", "untested")
    for primary, *guardrails in product(outcomes, repeat=number + 1):
        every = [primary, *guardrails]
        if any(outcome == "worse" for outcome in every):
            expected = "stop"
        elif any(outcome == "untested" for outcome in every):
            expected = "cannot be judged"
        elif primary == "not worse" and all(outcome == "not worse" for outcome in guardrails):
            expected = "ship"
        else:
            expected = "hold"
        assert launch.decision_of(every) == expected, every


def test_a_decision_joins_the_rows_below_it():
    got = rf.gate(RUNS, truth=TRUTH, **LAUNCH)
    decided = got.filter(metric="decision")
    assert dict(zip(decided["model"], words(decided["why"]), strict=True)) == {
        "better": "ship",
        "like": "hold",
        "lossy": "stop",
    }
    assert decided["passed"].to_list() == [True, False, False]
    assert decided["why"].to_list() == [
        "ship: rr is better at 0.05; within the margin at 0.025, one-sided: hit@3; "
        "all must hold, so nothing is corrected",
        "hold: rr is undecided: 0 in interval",
        "stop: hit@3 is worse by more than its margin of 0.05",
    ]
    assert got["metric"].to_list() == ["decision", "rr", "hit@3"] * 3
    alone = rf.gate(RUNS, "hit@3", truth=TRUTH, margin=0.05)  # a guardrail is a gate of its own
    assert_frame_equal(got.filter(metric="hit@3"), alone)
    compared = rf.compare(RUNS, "rr", truth=TRUTH, baseline="old", correction=None)
    primary = got.filter(metric="rr")
    found = words(primary["why"])
    assert found == compared.filter(pl.col("baseline") == "old")["verdict"].to_list()
    lazy = {name: run.lazy() for name, run in RUNS.items()}
    assert_frame_equal(rf.gate(lazy, truth=TRUTH.lazy(), **LAUNCH).collect(), got)


def launches_of(gain, loss, *, repeats=400, users=60, margin=0.5, seed=0):
    """Decide on a system so many times: it gains in x, and loses in y, beside noise."""
    random, shape = np.random.default_rng(seed), repeats * users
    places = pl.DataFrame({"repeat": np.arange(shape) // users, "user": np.arange(shape) % users})
    old, new = random.normal(0, 1, (2, 2, shape))
    values = {"old": old, "new": old + new + [[gain], [-loss]]}
    table = {name: places.with_columns(x=x, y=y) for name, (x, y) in values.items()}
    asked = {"primary": "x", "guardrails": {"y": margin}, "by": "repeat"}
    got = rf.gate(table, **asked, higher_is_better={"x": True, "y": True})
    why = got.filter(metric="decision")["why"]
    assert len(why) == repeats
    return why.str.extract("^(ship|hold|stop): ").value_counts(name="n"), why


def share(counts, word):
    return counts.filter(why=word)["n"].sum() / counts["n"].sum()


def test_false_ships_are_rare():
    most = 0.025 + 2 * (0.025 * 0.975 / 400) ** 0.5
    equal, _ = launches_of(0, 0)
    assert share(equal, "ship") <= most
    assert share(equal, "stop") <= most + 0.01
    at_the_margin, why = launches_of(1, 0.5)
    assert share(at_the_margin, "ship") <= most
    assert share(at_the_margin, "stop") <= most
    # better in the primary metric, and nothing is shown of the guardrail
    held = why.filter(why.str.starts_with("hold: "))
    assert len(held) > 350
    assert held.str.starts_with("hold: x is better, but y is undecided: -0.5 in interval").all()
    good, _ = launches_of(1, 0)
    assert share(good, "ship") > 0.9


def test_missed_users_and_no_common_users_cannot_be_judged():
    few = RUNS | {"better": RUNS["better"].head(300)}
    got = rf.gate(few, truth=TRUTH, users="truth", **LAUNCH).filter(metric="decision")
    why = dict(got.select("model", "why").rows())
    assert why["better"].startswith("cannot be judged: rr: too many missed: 100 of 400 users")
    apart = {"old": RUNS["old"].head(200), "better": RUNS["better"].tail(200)}
    got = rf.gate(apart, truth=TRUTH, users="both", **LAUNCH).filter(metric="decision")
    assert words(got["why"]) == ["cannot be judged"]
    got = rf.gate(RUNS, truth=TRUTH, systems=["better", "next"], **LAUNCH)
    got = got.filter(metric="decision", model="next")
    assert got["why"].item().startswith("cannot be judged: rr: no list of 'next'")


@pytest.mark.parametrize(
    ("ratio", "word"),
    [
        (None, "ship"),
        ({"old": 1, "better": 1}, "cannot be judged"),
        ({"old": 1, "better": 2}, "ship"),
    ],
)
def test_planned_shares_of_users_are_tested(ratio, word):
    ranks = {"old": np.tile([2, 3, 3], 50), "better": np.tile([1, 1, 2], 100)}
    runs, start = {}, 0
    for name, of_users in ranks.items():
        users = range(start, start := start + len(of_users))
        runs[name] = pl.DataFrame({"user": users, "item": "a", "rank": of_users})
    truth = pl.DataFrame({"user": range(start), "item": "a"})
    options = {"paired": False, "users": "both", "primary": "rr", "ratio": ratio}
    rows = rf.gate(runs, truth=truth, **options)
    got = rows.filter(metric="decision")["why"].item()
    assert words([got]) == [word]
    assert [*rows["passed"]] == [word == "ship"] * 2
    if word != "ship":
        assert "150 of old and 300 of better have a list, not 225 of old and 225 of better" in got


@pytest.mark.parametrize("kind", ["dict", "enum", "weights", "total", "cluster"])
def test_planned_shares_are_of_users_or_their_clusters(kind):
    """Of each country, 150 users are of the old and 300 of the new system, in pairs."""
    rows = [
        (name, country, f"{name}{country}{user}", f"{name}{country}{user // size}")
        for name, size in (("old", 1), ("new", 2))
        for country in ("x", "y")
        for user in range(150 * size)
    ]
    users = pl.DataFrame(rows, ["model", "country", "user", "pair"], orient="row")
    rank = 1 + (pl.int_range(pl.len()) % 3 + (pl.col("model") == "old")) // 2
    runs = users.select("model", "user", item=pl.lit("a"), rank=rank)
    truth = users.select("country", "user", "pair", item=pl.lit("a"), weight=pl.lit(2.0))
    more = {"baseline": "old", "primary": "rr", "paired": False, "users": "both"}
    if kind == "dict":
        runs = {name: runs.filter(model=name).drop("model") for name in ("old", "new")}
    elif kind == "enum":
        runs = runs.with_columns(pl.col("model").cast(pl.Enum(["old", "new"])))
        more["systems"] = ["old", "new"]
    elif kind == "weights":
        more["weights"] = "weight"
    elif kind == "total":
        more |= {"by": ["model", "country"], "total": True}
    elif kind == "cluster":
        more["cluster"] = "pair"

    def words_of(**ratio):
        got = rf.gate(runs, truth=truth, ratio=ratio, **more).filter(metric="decision")
        return words(got["why"]), got["why"][-1]

    rejected, other = ({"old": 1, "new": 2}, {"old": 1, "new": 1})
    rejected, other = (rejected, other) if kind == "cluster" else (other, rejected)
    number = 3 if kind == "total" else 1
    lost, why = words_of(**rejected)
    assert lost == ["cannot be judged"] * number
    sizes = "300 of old and 300 of new" if kind == "cluster" else "300 of old and 600 of new"
    assert sizes in why
    assert words_of(**other)[0] == ["ship"] * number


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"test": "max_t"}, "no p-value for a loss of the margin: use test='t'$"),
        ({"margin": 0.1}, "margin=0.1 has no effect with primary=.*leave out margin="),
        ({"at_least": 0.1}, "at_least=0.1 has no effect with primary=.*leave out at_least="),
        ({"undecided": "pass"}, "undecided='pass' has no effect with primary="),
        ({"primary": None}, "guardrails= without a primary metric.*primary='ndcg@10'"),
        ({"ratio": {"old": 1}}, "ratio= is of different users: leave it out, or pass paired=False"),
        ({"ratio": {"old": 0}, "paired": False}, "ratio of 'old' must be a number > 0, not 0"),
        ({"ratio": {"old": 1}, "paired": False}, "ratio: no share of 'better': name each system"),
        (
            {"ratio": dict.fromkeys([*RUNS, "x"], 1), "paired": False},
            "ratio: no system 'x': leave it out; there are .*'old', 'better', 'like', 'lossy'",
        ),
        ({"primary": ["rr"]}, "primary= must be the label of one metric, such as.*not list"),
        ({"primary": rf.metrics.ndcg_at(5)}, "primary= must be the label of one metric.*not Expr"),
        ({"guardrails": 3}, "guardrails= must be a mapping of names, not 3"),
        ({"guardrails": {"hit@3": 0}}, "guardrail 'hit@3' is 0: name the loss > 0"),
        ({"guardrails": {"rr": 0.1}}, "guardrail 'rr' is primary, too"),
        (
            {"guardrails": {"coverage(of=shown,count=true)@10": "5%"}},
            "guardrails: metric 'coverage.*' is one number for all lists.*of its own: at_least=",
        ),
    ],
)
def test_options_that_do_not_decide_are_refused(options, text):
    with pytest.raises((ValueError, TypeError), match=text):
        rf.gate(RUNS, truth=TRUTH, **LAUNCH | options)
    with pytest.raises(ValueError, match="'rr@5' is neither primary nor a guardrail: leave it out"):
        rf.gate(RUNS, "rr", "hit@3", "rr@5", truth=TRUTH, **LAUNCH)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, rows in {**RUNS, "few": RUNS["better"].head(9)}.items():
        rows.write_csv(f"{name}.csv")
    TRUTH.write_csv("truth.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "word", "code"),
    [
        ("better", "ship", 0),
        ("like", "hold", 1),
        ("lossy", "stop", 1),
        ("few", "cannot be judged", 2),
    ],
)
def test_exit_code_is_of_the_decision(folder, capsys, name, word, code):
    options = ["--primary", "rr", "--guardrails", "hit@3:0.05", "--users", "truth"]
    got = main(["gate", "old.csv", f"{name}.csv", "truth.csv", *options])
    assert got == code
    assert f"decision of {name}: {word}: " in capsys.readouterr().err
    gate = '[[gates]]\nprimary = "rr"\nguardrails = {"hit@3" = 0.05}\n'
    run = (
        f'run = {{old = "old.csv", {name} = "{name}.csv"}}\ntruth = "truth.csv"\nusers = "truth"\n'
    )
    (folder / "eval.toml").write_text(run + gate)
    assert main(["run", "eval.toml"]) == code
    assert f"decision of {name}: {word}: " in capsys.readouterr().err


def test_help_has_all_bounds_in_one_group(capsys):
    with pytest.raises(SystemExit):
        main(["gate", "--help"])
    usage, _, rest = capsys.readouterr().out.partition("what must hold:")
    assert "TRUTH [-m LABEL ...] [--margin 1%] [options]" in usage
    group = rest.partition("systems and segments:")[0]
    assert all(f"  --{name} " in group for name in ("primary", "guardrails", "margin"))


@pytest.mark.parametrize(
    ("gate", "text"),
    [
        ("guardrails = {rr = 0.1}", "gates[0].primary: None is not a text"),
        ("primary = 'rr'\nguardrails = 0.1", "gates[0].guardrails: 0.1 is not a table"),
        ("primary = 'rr'\nmargin = 0.1", "gates[0].margin: primary and guardrails name their"),
        ("primary = 'rr'\n[[gates]]\nmetrics = 'rr'\nmargin = 0.1", "gates[0].primary: it decides"),
        ("primary = 'rr'\nguardrails = {rr = 0.1}", "guardrail 'rr' is primary, too"),
        ("primary = 'rr'", "undecided = 'pass' has no effect with primary"),
    ],
)
def test_a_file_with_a_wrong_launch_is_refused(folder, gate, text):
    run = 'run = {old = "old.csv", like = "like.csv"}\ntruth = "truth.csv"\n'
    more = "undecided = 'pass'\n" if text.startswith("undecided") else ""
    (folder / "eval.toml").write_text(f"{run}{more}[[gates]]\n{gate}")
    assert text in said_by(["run", "eval.toml", "--dry"])


@pytest.mark.parametrize("paired", [True, False])
def test_who_ships_by_answering_more_users_says_so(paired):
    """40 users without a list of the baseline count as its loss."""
    runs = {"old": RUNS["like"].head(USERS - 40), "new": RUNS["like"]}
    options = {"truth": TRUTH, "baseline": "old", "paired": paired}
    decided = rf.gate(runs, primary="rr", **options)
    said = "; 40 of 400 users have no list of old, which counts as its loss"
    if paired:
        assert decided["why"][0] == f"ship: rr is better at 0.05{said}"
    row = rf.gate(runs, "rr", margin=0.05, **options)
    assert row["why"].item() == f"not worse: interval above -0.05{said}"
    alike = rf.gate(runs | {"old": RUNS["like"]}, "rr", margin=0.05, **options)
    assert "no list" not in alike["why"].item()
    fewer = rf.gate({"old": RUNS["like"], "new": runs["old"]}, "rr", margin=0.3, **options)
    assert "counts as its loss" not in fewer["why"].item()
