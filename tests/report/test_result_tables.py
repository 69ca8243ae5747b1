"""Tables of results: what is marked, what the line says, and hostile names in every form."""

import dataclasses
import math
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import rankframe as rf
from rankframe._comparison.sentences import CORRECTIONS, TESTS
from rankframe._comparison.trials import Correction, Test

GOLDEN = Path(__file__).with_name("tables.md")
RANKS = {
    "old": [2, 3, 4, 2, 5, 4, 3, 2, 6, 1],
    "mid": [1, 4, 4, 3, 5, 2, 3, 2, 4, 2],
    "new": [1, 1, 2, 1, 2, 3, 1, 1, 2, 1],
}
TRUTH = pl.DataFrame({"user": range(10), "item": "a"})


def lists(names=("old", "mid", "new")):
    ranks = dict(zip(names, RANKS.values(), strict=True))
    made = pl.DataFrame({"model": [*ranks], "rank": [*ranks.values()], "user": [[*range(10)]] * 3})
    return made.explode("user", "rank", empty_as_null=False).with_columns(item=pl.lit("a"))


def cells(made, column):
    return dict(made.frame.filter(metric="rr").select("model", column).iter_rows())


def test_table_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        rf.table(lists(), "rr", truth=TRUTH).digits = 2


def test_means_are_those_of_evaluate_and_marks_those_of_compare():
    made = rf.table(lists(), "rr", "hit@1", truth=TRUTH, baseline="old")
    means = rf.evaluate(lists(), "rr", "hit@1", truth=TRUTH, by="model")
    wide = made.frame.pivot("metric", index="model", values="mean")
    assert wide["model"].to_list() == ["old", "mid", "new"]  # as the caller has them
    assert_frame_equal(wide.sort("model"), means.drop("users"))
    tested = rf.compare(lists(), "rr", "hit@1", truth=TRUTH, baseline="old", details=True)
    p = {(row["metric"], row["model"]): row for row in tested.iter_rows(named=True)}
    for row in made.frame.iter_rows(named=True):
        one = p.get((row["metric"], row["model"]))
        assert row["p_adjusted"] == (one["p_adjusted"] if one else None)
        for what, sign in (("better", 1), ("worse", -1)):
            shown = one and one["p_adjusted"] < 0.05 and one["difference"] * sign > 0
            assert row[what] == bool(shown)
    assert cells(made, "best") == {"old": False, "mid": False, "new": True}


def test_lower_is_better_where_that_is_declared():
    made = rf.table(lists(), "mean_hit_rank@10", "e@3", truth=TRUTH, baseline="old")
    best = made.frame.filter("best").select("metric", "model").rows()
    assert [model for metric, model in best if metric == "mean_hit_rank@10"][-1] == "new"
    assert len([model for metric, model in best if metric == "e@3"]) == 3  # 4 users differ
    assert made.frame.filter("better")["model"].unique().to_list() == ["new"]
    worse = rf.table(lists(), "mean_hit_rank@10", truth=TRUTH, baseline="new")
    assert not worse.frame["better"].any()
    assert worse.frame["worse"].to_list() == [False, True, True]
    assert worse.note.startswith("‡ worse than new: exact randomization test, p < 0.05")
    assert re.search(r"model +mean_hit_rank@10 ↓\n", str(worse))
    two = rf.table(lists(), "rr", truth=TRUTH.head(2), baseline="old")
    assert two.note.startswith("No system is shown to be better or worse than old: exact")


def test_metric_without_a_direction_has_no_best():
    for baseline in (None, "old"):
        options = {"history": TRUTH, "baseline": baseline}
        made = rf.table(lists(), "num_relevant", "popularity@2", truth=TRUTH, **options)
        assert not made.frame["best"].any()
        assert "bold" not in made.note
        assert made.as_markdown().startswith("| model | num_relevant | popularity@2 |")


def test_best_are_all_that_show_the_same_digits():
    run = pl.DataFrame({"model": ["a"] * 3 + ["b"] * 3, "user": [1, 2, 3] * 2, "item": 7})
    run = run.with_columns(rank=pl.Series([1, 1, 8, 1, 1, 9]))
    truth = pl.DataFrame({"user": [1, 2, 3], "item": 7})
    assert rf.table(run, "rr", truth=truth, digits=2).frame["best"].to_list() == [True, False]
    assert rf.table(run, "rr", truth=truth, digits=1).frame["best"].to_list() == [True, True]


def drawn(seed, systems=5, users=40):
    """Ranks of one relevant item per user, which fall from system to system."""
    random = np.random.default_rng(seed)
    ranks = 1 + random.poisson(np.linspace(4, 2, systems)[:, None], (systems, users))
    return ranks, pl.concat(
        pl.DataFrame({"model": f"m{place}", "user": range(users), "item": 1, "rank": of_users})
        for place, of_users in enumerate(ranks)
    )


@pytest.mark.parametrize("seed", [4, 7, 8])
@pytest.mark.parametrize("test", ["t", "randomization", "max_t"])
def test_best_are_bold_and_those_not_shown_worse_are_underlined(seed, test):
    _, run = drawn(seed)
    options = {"truth": pl.DataFrame({"user": range(40), "item": 1}), "baseline": "m0"}
    metrics = ("rr", "mean_hit_rank@99", "hit@2", "hit@4")
    made = rf.table(run, *metrics, test=test, resamples=500, **options)
    best = made.frame.filter(metric="rr").select("model", "best")
    assert 1 < best["best"].sum() < best.height
    said = "underlined: not significantly worse (pairs without m0: t of all pairs, Holm's"
    assert f"; bold: the best mean; {said} correction)." in made.note
    text = made.as_latex()
    rr = [row.split(" & ")[1] for row in text.splitlines() if row.startswith("m")][1:]
    tied = [r"\underline" in cell or r"\textbf" in cell for cell in rr]
    assert (tied, sum(r"\textbf" in cell for cell in rr)) == (best["best"].to_list(), 1)


def test_small_sure_loss_is_not_the_best_though_it_shows_the_same_digits():
    """Ranks of 1,000 and 1,001 or 1,002: 0.001 for both, and a loss for each of 400 users."""
    users = pl.DataFrame({"user": range(400), "item": 1})
    run = pl.concat(
        users.with_columns(model=pl.lit(name), rank=1000 + pl.col("user") % 2 * step + step)
        for name, step in (("a", 0), ("b", 1))
    )
    made = rf.table(run, "rr", truth=users, baseline="a", digits=3)
    assert [round(mean, 3) for mean in made.frame["mean"]] == [0.001, 0.001]
    assert made.frame["best"].to_list() == [True, False]
    assert rf.table(run, "rr", truth=users, digits=3).frame["best"].to_list() == [True, True]


def test_best_is_one_where_all_lose_alike():
    """Without a spread, too: 0.0 is no tie with 1.0."""
    ranks = pl.DataFrame({"model": ["a", "b", "c"], "rank": [1, 2, 2]})
    run = ranks.join(TRUTH, how="cross")
    for baseline in (None, "a", "b"):
        made = rf.table(run, "hit@1", truth=TRUTH, baseline=baseline)
        assert made.frame.filter("best")["model"].to_list() == ["a"]
        assert made.frame["model"][0] == (baseline or "a")
    assert "† better than b: exact randomization test" in made.note


def test_segment_with_the_name_of_the_best_system_is_no_ambiguity():
    _, run = drawn(6)
    run = run.select(pl.col("model").str.strip_prefix("m").cast(pl.Int64), pl.exclude("model"))
    run = run.rename({"model": "run"})
    truth = pl.DataFrame({"user": range(40), "item": 1, "fold": [1, 2, 3, 4] * 10})
    made = rf.table(run, "rr", truth=truth, model="run", by="fold", baseline=0)
    assert made.frame.group_by("fold").agg(pl.col("best").any())["best"].all()


def test_table_without_a_baseline_has_no_test():
    made = rf.table(lists(), "rr", truth=TRUTH)
    assert cells(made, "p_adjusted") == dict.fromkeys(RANKS)
    assert "†" not in str(made) + made.as_markdown() + made._repr_html_()
    one = rf.table(lists().filter(model="old").drop("model"), "rr", truth=TRUTH, digits=1)
    assert one.as_markdown().startswith("| rr ↑ |\n|-----:|\n|  0.4 |\n")
    short = rf.table(lists("abc").rename({"model": "m"}), "rr", truth=TRUTH, model="m")
    assert short.as_markdown().startswith("| m   |")  # some readers ask for three dashes


def test_segments_have_their_own_best():
    truth = TRUTH.with_columns(
        country=pl.when(pl.col("user") < 5).then(pl.lit("no")).otherwise(pl.lit("se"))
    )
    made = rf.table(lists(), "rr", truth=truth, by=["model", "country"])
    assert made.frame.filter("best").select("country", "model").sort("country").rows() == [
        ("no", "new"),
        ("se", "new"),
    ]
    assert made.as_markdown().startswith("| model | country |      rr ↑ |")
    rows = made.frame.select("country", "model").rows()
    assert rows == [(country, model) for country in ("no", "se") for model in ("old", "mid", "new")]


def test_table_is_the_same_of_any_kind_of_frame():
    expected = rf.table(lists(), "rr", truth=TRUTH, baseline="old")
    runs = {name: lists().filter(model=name).drop("model") for name in RANKS}
    for frame, truth in [
        (lists().lazy(), TRUTH.lazy()),
        (lists().to_pandas(), TRUTH.to_pandas()),
        (runs, TRUTH),
    ]:
        made = rf.table(frame, "rr", truth=truth, baseline="old")
        assert made.as_markdown() == expected.as_markdown()


def test_undefined_mean_is_a_dash():
    truth = TRUTH.with_columns(relevance=0)
    for baseline in (None, "old"):
        made = rf.table(lists(), "rr", truth=truth, users="judged", baseline=baseline)
        assert re.search(r"\| old +\| +– \|", made.as_markdown())
        assert not made.frame["best"].any()


HOSTILE = ["a|b", "x & y_1", "<script>alert(1)</script>"]
LATEX = [r"a\textbar{}b", r"x \& y\_1", r"\textless{}script\textgreater{}alert(1)"]


@pytest.fixture
def hostile():
    return rf.table(lists(HOSTILE), "rr", truth=TRUTH, baseline="x & y_1")


class Texts(HTMLParser):
    """The tags and the texts of a page, as a browser reads them."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts = set(), []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.texts.append(data)


def test_hostile_names_are_text_in_html(hostile):
    read = Texts(hostile._repr_html_())
    assert read.tags == {*"table thead tbody tfoot tr th td strong span small".split()}
    assert {*HOSTILE} <= {*read.texts}


def test_hostile_names_are_text_in_markdown(hostile):
    head, rule, *rows = hostile.as_markdown().splitlines()[:5]
    unescaped = [re.split(r"(?<!\\)\|", line) for line in (head, rule, *rows)]
    assert {len(row) for row in unescaped} == {4}  # two cells between three bars
    assert sorted(row[1].strip() for row in unescaped[2:]) == sorted(
        [r"a\|b", "x & y_1", r"\<script>alert(1)\</script>"]
    )
    odd = [r"back\slash", "*star* _under_ `tick`", "[link](x)"]
    text = rf.table(lists(odd), "rr", truth=TRUTH).as_markdown()
    assert r"back\\slash" in text
    assert r"\*star\* \_under\_ \`tick\`" in text
    assert r"\[link\](x)" in text


def test_hostile_names_are_text_in_latex(hostile):
    text = hostile.as_latex()
    for name in LATEX:
        assert name in text
    rows = text.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    assert len(rows) == 3
    assert all(len(re.findall(r"(?<!\\)&", row)) == 1 and row.endswith(r" \\") for row in rows)
    odd = [r"\input{x}", "50% #1 $5 ~^", "[2] *"]
    made = rf.table(lists(odd), "rr", truth=TRUTH).as_latex()
    assert r"\textbackslash{}input\{x\}" in made
    assert r"50\% \#1 \$5 \textasciitilde{}\textasciicircum{}" in made
    assert "\n{[}2{]} {*} &" in made  # no option of the \\ before it


def test_intervals_of_many_metrics_stand_below_their_means_in_latex():
    metrics = ("rr", "hit@1", "hit@2", "ndcg@5", "map")
    text = rf.table(lists(), *metrics, truth=TRUTH, interval=True).as_latex()
    assert r"\small\setlength{\tabcolsep}{3pt}" in text
    rows = [row for row in text.splitlines() if row.startswith(("old", "mid", "new"))]
    cell = r"\\shortstack\[r\]\{\S+ \\\\ \{\\footnotesize \[[0-9., $-]+\]\}\}"
    assert [len(re.findall(cell, row)) for row in rows] == [5, 5, 5]
    assert "shortstack" not in rf.table(lists(), "rr", truth=TRUTH, interval=True).as_latex()


@pytest.mark.parametrize(("number", "end"), [(3, ""), (4, "; and 1 more system")])
def test_note_names_three_systems_that_miss_users(number, end):
    lists_of = {f"s{at}": TRUTH.head(at + 1).with_columns(rank=1) for at in range(number)}
    made = rf.table(lists_of, "rr", truth=TRUTH)
    assert made.note.count("have no list") == 3
    assert made.note.endswith(f"have no list of s2{end}.")


def test_systems_that_share_a_letter_do_not_differ():
    made = rf.table(lists(), "rr", "num_hits", "missed", truth=TRUTH, letters=True)
    letters = {(row["model"], row["metric"]): row["letters"] for row in made.frame.to_dicts()}
    assert [letters[model, "rr"] for model in ("old", "mid", "new")] == ["b", "b", "a"]
    assert "| old   |     0.403 |       b |" in made.as_markdown()
    assert "systems that share a letter do not differ (t of all pairs" in made.note
    best = made.frame.filter("best", pl.col("letters").is_not_null())
    assert best["letters"].str.contains("a").all()
    plain = rf.table(lists(), "rr", truth=TRUTH)
    assert plain.frame["letters"].null_count() == 3
    with pytest.raises(ValueError, match="the run names none"):
        rf.table(lists().filter(model="old").drop("model"), "rr", truth=TRUTH, letters=True)


def without_mid(fewest):
    """Lists of all users, but of mid only the first ones."""
    return lists().filter((pl.col("model") != "mid") | (pl.col("user") < fewest))


WEIGHED = TRUTH.with_columns(
    group=pl.col("user") % 5, weight=pl.when(pl.col("user") < 5).then(3.0).otherwise(1.0)
)
COPIES = pl.concat(lists().filter(model="old").with_columns(model=pl.lit(name)) for name in "ab")
BOTH = {"metrics": ["rr", "hit@1"], "baseline": "old"}
#: what is asked of which table, beside ``rr`` of all lists
TABLES = {
    "exact test, Holm, 99%": BOTH | {"confidence": 0.99},
    "paired randomization test": BOTH | {"test": "randomization"},
    "max-t": {"baseline": "old", "test": "max_t"},
    "a primary metric, no correction": {"baseline": "old", "correction": None, "primary": "rr"},
    "sequential": {"baseline": "old", "test": "sequential"},
    "users of both": {"run": without_mid(6), "baseline": "old", "users": "both"},
    "no baseline": {},
    "missed, no baseline": BOTH | {"run": without_mid(6), "baseline": None},
    "missed": BOTH | {"run": without_mid(6)},
    "clusters": {"truth": WEIGHED, "baseline": "old", "cluster": "group"},
    "weights": {"truth": WEIGHED, "weights": "weight"},
    "weights and a baseline": {"truth": WEIGHED, "weights": "weight", "baseline": "old"},
    "one weighted system": {
        "run": lists().filter(model="old").drop("model"), "truth": WEIGHED, "weights": "weight"
    },
    "no user differs": {"run": COPIES, "baseline": "a"},
    "one user": {"run": lists().filter(user=0), "truth": TRUTH.head(1), "baseline": "old"},
    "two systems, no correction": {
        "run": without_mid(0), "baseline": "old", "correction": None
    },
    "an empty name": {
        "run": without_mid(6).with_columns(pl.col("model").replace("mid", "")), "baseline": ""
    },
    "notes of two metrics": BOTH | {
        "run": without_mid(6).remove(model="new", user=9), "users": "run"
    },
}  # fmt: skip


def written(name):
    asked = {"run": lists(), "metrics": ["rr"], "truth": TRUTH} | TABLES[name]
    made = rf.table(asked.pop("run"), *asked.pop("metrics"), **asked)
    latex = f"\n\n{made.as_latex()}" if name.startswith("paired") else ""
    return f"## {name}\n\n```text\n{made}{latex}\n```\n"


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.filterwarnings("ignore:.*:rankframe.errors.RankingWarning")
def test_table_is_that_of_the_golden_file(name):
    """``python -m tests.report.test_result_tables`` writes the file again."""
    assert written(name) in GOLDEN.read_text("utf-8")


def losses(number, *, of_new):
    values = pl.DataFrame({"user": range(number), "old": 0.6, "new": of_new})
    return values.unpivot(["old", "new"], index="user", variable_name="model", value_name="ndcg@10")


def test_worse_system_is_not_the_best_and_shares_no_letter():
    """The exact test of six users: p = .031, where t finds .33."""
    few = losses(6, of_new=[0.59] * 5 + [0.0])
    frame = rf.table(few, "ndcg@10", baseline="old", letters=True).frame
    rows = frame.select("model", "worse", "best", "letters").rows()
    assert rows == [("old", False, True, "a"), ("new", True, False, "b")]


def test_identical_systems_share_a_letter():
    same = losses(6, of_new=[0.6] * 6)
    assert rf.table(same, "ndcg@10", letters=True).frame["letters"].to_list() == ["a", "a"]


def test_negative_and_tiny_means():
    metric = (pl.col("rank").min() * 0 - 0.0001).alias("tiny")
    made = rf.table(lists(), metric, truth=TRUTH)
    assert "-0.000" not in made.as_markdown()
    lower = (pl.col("rank").min() * 0 - 0.5).alias("lower")
    assert "$-$0.500" in rf.table(lists(), lower, truth=TRUTH).as_latex()
    assert math.isclose(rf.table(lists(), lower, truth=TRUTH).frame["mean"][0], -0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": "none"}, "baseline must be one of 'mid', 'new', 'old', not 'none'"),
        ({"digits": -1}, "digits must be an integer ≥ 0, not -1"),
        ({"test": "x", "baseline": "old"}, "test must be one of"),
        ({"users": "x"}, "users must be one of"),
    ],
)
def test_bad_parameters_raise(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        rf.table(lists(), "rr", truth=TRUTH, **options)


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (["rr"], "headers=['rr'] is not a dict: pass the name of each metric, as in headers={"),
        ("MRR", "headers='MRR' is not a dict"),
        ({"rr": "hit@1"}, "headers: 'rr' and 'hit@1' are both called 'hit@1': give each"),
        ({"rr": "x", "hit@1": "x"}, "headers: 'rr' and 'hit@1' are both called 'x'"),
        ({"rr": "model"}, "headers: 'model' and 'rr' are both called 'model'"),
        ({"rr": 3}, "headers: 3 of 'rr' is not text: write it as '3'"),
        ({"rr": None}, "headers: None of 'rr' is not text"),
    ],
)
def test_headers_are_a_text_per_column(headers, message):
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(message)}"):
        rf.table(lists(), "rr", "hit@1", truth=TRUTH, headers=headers)


def test_column_of_its_own_name_raises():
    truth = TRUTH.with_columns(best=pl.lit("x"))
    with pytest.raises(rf.RankingDataError, match="column 'best': table adds a column"):
        rf.table(lists(), "rr", truth=truth, by=["model", "best"])


def test_tests_of_compare_have_names():
    assert {*TESTS} == {*get_args(Test)}
    assert {*CORRECTIONS} == {*get_args(Correction)}


def test_note_is_a_star_at_its_cell_and_a_line_below():
    """Six users have no list of mid, so only four are compared; new is compared on all."""
    fewer = lists().filter((pl.col("model") != "mid") | (pl.col("user") < 4))
    made = rf.table(fewer, "rr", truth=TRUTH, baseline="old", users="run")
    few = "4 users, too few for a sure test"
    note = f"6 of 10 users are left out: they have a value with one system only; {few}"
    assert dict(made.frame.select("model", "note").rows()) == {
        "mid": note,
        "new": None,
        "old": None,
    }
    assert made.note.endswith(f"\n* rr: {note} (mid).")
    rows = str(made).splitlines()[2:5]
    assert [row.endswith(" *") for row in rows] == [False, True, False]
    assert len({row.index(".") for row in rows}) == 1  # digits align
    assert r"<u>0.458</u> \* |" in made.as_markdown()
    assert f"\n\n\\* rr: {note} (mid)." in made.as_markdown()
    assert (
        r"\underline{0.458}\phantom{\textsuperscript{\dag}}\textsuperscript{*} \\"
        in made.as_latex()
    )
    hidden = '<span style="visibility:hidden">†</span>'
    assert f"<u>0.458</u>{hidden} *</td>" in made._repr_html_()
    assert rf.table(fewer, "rr", truth=TRUTH, users="run").frame["note"].null_count() == 3
    weighed = TRUTH.with_columns(w=pl.col("user") + 1, group=pl.col("user") % 3)
    for option in ({"weights": "w"}, {"cluster": "group"}, {"primary": "rr"}):
        told = rf.table(lists(), "rr", truth=weighed, baseline="old", **option)
        assert told.frame["note"].null_count() == 3  # the line has these numbers


def test_order_is_the_callers_and_the_baseline_first():
    for names, baseline in ((["b", "a", "c"], "c"), (["c", "b", "a"], None)):
        runs = {name: rows.drop("model") for (name,), rows in lists(names).group_by("model")}
        runs = {name: runs[name] for name in names}
        stacked = rf.runs.stack(runs)
        expected = [name for name in (baseline, *(n for n in names if n != baseline)) if name]
        for frame in (runs, stacked, stacked.lazy(), stacked.cast({"model": pl.Categorical})):
            made = rf.table(frame, "rr", truth=TRUTH, baseline=baseline)
            assert made.frame["model"].cast(pl.String).to_list() == expected


def test_intervals_are_those_of_summarize():
    truth = TRUTH.with_columns(pl.col("user").alias("w") + 1)
    for options in ({}, {"weights": "w"}, {"confidence": 0.8}):
        made = rf.table(
            lists(), "rr", "hit@1", truth=truth, interval=True, baseline="old", **options
        )
        expected = rf.summarize(lists(), "rr", "hit@1", truth=truth, by="model", **options)
        names = ["model", "metric", "mean", "ci_low", "ci_high"]
        got = made.frame.select(names).sort("model", "metric")
        assert_frame_equal(got, expected.select(names).sort("model", "metric"))
    row = made.frame.row(0, named=True)
    text = f"[{row['ci_low']:.3f}, {row['ci_high']:.3f}]"
    for form in (str(made), made.as_markdown(), made.as_latex(), made._repr_html_()):
        assert text in form
    assert "80% intervals as in summarize; bold: " in made.note
    assert "[" not in str(rf.table(lists(), "rr", truth=TRUTH, baseline="old"))


def test_headers_are_names_of_the_caller():
    headers = {"rr": "MRR", "model": "System"}
    made = rf.table(lists(), "rr", "hit@1", truth=TRUTH, baseline="old", headers=headers)
    assert made.as_markdown().startswith("| System |      MRR ↑ |      hit@1 ↑ |")
    assert made.frame.columns[0] == "model"
    assert made.frame["metric"].unique(maintain_order=True).to_list() == ["rr", "hit@1"]
    fewer = lists().filter((pl.col("model") != "mid") | (pl.col("user") < 4))
    noted = rf.table(fewer, "rr", truth=TRUTH, baseline="old", users="run", headers=headers)
    assert "\n* MRR: " in noted.note
    with pytest.raises(
        ValueError, match=re.escape("'hit@2'; the metrics are 'rr', 'hit@1': did you mean 'hit@1'?")
    ):
        rf.table(lists(), "rr", "hit@1", truth=TRUTH, headers={"hit@2": "x"})


def test_plain_text_is_at_most_79_places_wide_with_wide_letters_too():
    names = ["old", "新しい推薦", "e\u0301"]
    text = str(rf.table(lists(names), "rr", "hit@1", truth=TRUTH, baseline="old"))
    _, rule, *rows = text.splitlines()[:5]
    assert rule.split("  ")[0] == "-" * 10
    place = rows[0].index(".")
    assert [row.index(".") - place for row in rows] == [0, -5, 1]
    assert max(map(len, text.splitlines())) <= 79


def test_latex_has_a_caption_and_a_label():
    made = rf.table(lists(), "rr", truth=TRUTH, baseline="old")
    text = made.as_latex(caption="50% of the users", label="tab:rr")
    above = r"""\begin{table}
\centering
\setlength{\abovecaptionskip}{0pt}\setlength{\belowcaptionskip}{6pt}
\caption{50\% of the users}
\label{tab:rr}
"""
    plain = made.as_latex().removeprefix("\\begingroup\n").removesuffix("\\endgroup")
    assert text == above + plain + "\\end{table}"
    with pytest.raises(ValueError, match=r"label='tab:rr': .*: pass caption="):
        made.as_latex(label="tab:rr")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(tmp_path, hostile):
    odd = [r"\input{x}", "50% #1 $5 ~^", "[2] *"]
    tables = [
        hostile.as_latex(caption="A & B_1", label="tab:a"),
        rf.table(
            lists(odd), "rr", "mean_hit_rank@9", truth=TRUTH, baseline=odd[2], interval=True
        ).as_latex(),
        rf.table(lists(), (pl.col("rank").min() * -0.5).alias("a–b ≥ −1"), truth=TRUTH).as_latex(),
    ]
    (tmp_path / "t.tex").write_text(
        r"\documentclass{article}\usepackage{booktabs}\begin{document}"
        + "\n\n".join(tables)
        + r"\end{document}"
    )
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "t.pdf").stat().st_size > 1000


if __name__ == "__main__":
    text = "# Tables of results\n\n" + "\n".join(map(written, TABLES))
    GOLDEN.write_text(text, encoding="utf-8")


def test_way_from_popular_to_the_ceiling():
    # user 1: popular has it at 2, new at 2 of 3, the best order at 1; user 2: 4, 1 and 1
    lists = {
        "popular": [[9, 1, 8], [9, 8, 7, 2]],
        "new": [[5, 1, 6], [2, 6]],
        "far": [[5, 6, 1], [6]],
    }
    rows = [
        (system, user, item, rank)
        for system, of_users in lists.items()
        for user, items in enumerate(of_users, 1)
        for rank, item in enumerate(items, 1)
    ]
    run = pl.DataFrame(rows, schema=["model", "user", "item", "rank"], orient="row")
    truth = pl.DataFrame({"user": [1, 2], "item": [1, 2]})
    popular, new, best = (1 / 2 + 1 / 4) / 2, (1 / 2 + 1) / 2, 1
    share = f"{(new - popular) / (best - popular):.0%}"
    way = " of the way from popular to the best order of its own lists"
    line = f"In rr, new reaches {share}{way}."
    for options in ({}, {"baseline": "popular"}, {"baseline": "new", "primary": "rr"}):
        assert rf.table(run, "rr", "hit@1", truth=truth, **options).note.splitlines()[-1] == line
    page = rf.report(run, "rr", truth=truth, baseline="popular")._repr_html_()
    assert line in page
    weighted = truth.with_columns(weight=pl.Series([3, 1]))
    popular, new = (3 / 2 + 1 / 4) / 4, (3 / 2 + 1) / 4
    note = rf.table(run, "rr", truth=weighted, weights="weight").note
    assert f"In rr, new reaches {(new - popular) / (1 - popular):.0%} of the way" in note
    moved = pl.when(model="new").then(1).otherwise("rank").alias("rank")
    first = run.filter((pl.col("model") == "popular") | (pl.col("item") < 3)).with_columns(moved)
    first = first.filter(pl.col("model") != "far")
    assert f"In rr, new reaches 100%{way}." in rf.table(first, "rr", truth=truth).note
    # no line: another name, no ceiling, an order that changes nothing, segments
    for frame, label, options in (
        (run.with_columns(pl.col("model").replace("popular", "pop")), "rr", {}),
        (run, "err", {}),
        (run, "recall", {}),
        (run.with_columns(country=1), "rr", {"by": "country"}),
    ):
        assert "of the way" not in rf.table(frame, label, truth=truth, **options).note
    lower = rf.table(run, "e", "mean_hit_rank", truth=truth).note
    assert "of the way" not in lower
