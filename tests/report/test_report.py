"""The report: numbers of the verbs, in words and as one safe page that a real browser shows."""

import hashlib
import html
import itertools
import math
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pandas
import polars as pl
import pytest
from commands import said_by
from polars.testing import assert_frame_equal

import rankframe as rf
from rankframe._command.main import main
from rankframe._comparison import numerals, sentences
from rankframe._comparison.trials import Test
from rankframe._evaluation import evaluation
from rankframe._report import explorer, facts, markup, people, strips
from rankframe._report import nouns as wording
from rankframe._report.nouns import nouns_of
from tests.report.elements import Elements, people_of, unmarked
from tests.report.samples import (
    ASKED,
    EVIL,
    KEPT,
    METRICS,
    RUN,
    TRUTH,
    WORSE,
    correlated,
    made,
    page_of,
)

# ------------------------------------------------------------------ numbers


def test_numbers_are_those_of_the_verbs(report):
    tables = report.tables
    truth = {"truth": TRUTH, "relevant_at": 2}
    alone = RUN.rank.summarize(*METRICS, by="model", **truth)
    assert_frame_equal(tables["means"], alone)
    assert_frame_equal(tables["comparison"], RUN.rank.compare(*METRICS, **KEPT, details=True))
    with_relevant = TRUTH.filter(pl.col("relevance").max().over("user") >= 2)
    served = RUN.rank.compare(
        *METRICS, **KEPT | {"truth": with_relevant}, users="both", details=True
    )
    assert_frame_equal(tables["comparison served"], served)
    cuts = tables["cut-offs"]
    ks = cuts["k"].unique().sort().to_list()
    assert {1, 5} < {*ks}
    at_k = RUN.rank.stats.at_k("ndcg", "recall", k=ks, by="model", **truth)
    assert_frame_equal(cuts, at_k.sort("model", "metric", "k").select(cuts.columns))
    bins = tables["segments: number of relevant items"]
    (overall,) = tables["comparison"].filter(metric="ndcg@5")["difference"]
    assert bins["users"].sum() == with_relevant["user"].n_unique()
    assert (bins["users"] * bins["difference"]).sum() / bins["users"].sum() == pytest.approx(
        overall
    )


def test_columns_that_no_part_reads_do_not_stop_a_report():
    """A column of both tables, and counts of which the shown users have only 0 and 1."""
    ranks = random.Random(5).choices(range(1, 6), k=80)
    run = pl.DataFrame({"model": ["old"] * 40 + ["new"] * 40, "user": [*range(40)] * 2})
    run = run.with_columns(item=pl.lit("a"), rank=pl.Series(ranks), country=pl.lit("c"))
    truth = pl.DataFrame({"user": range(40), "item": "a", "country": "c"})
    truth = truth.with_columns(visits=pl.Series([3] + [user % 2 for user in range(39)]))
    want = run.rank.compare("rr", truth=truth, baseline="old", details=True)
    for segments in ((), "visits"):
        made = rf.report(run, "rr", truth=truth, baseline="old", by=segments)
        assert_frame_equal(made.tables["comparison"], want)
        assert "Lost most" in made.html()
    graded = truth.with_columns(relevance=pl.col("user") % 2)  # some lists have unjudged items
    more = run.filter(model="new").with_columns(item=pl.lit("b"), rank=pl.lit(9, pl.Int64))
    rf.report(pl.concat([run, more]), "rr", truth=graded, baseline="old")


def test_segments_are_compared_by_the_metric_that_decides(report):
    want = RUN.rank.compare("ndcg@5", by=["model", "country"], **KEPT, details=True)
    shrunken = ["shrunken", "shrunken_low", "shrunken_high"]
    assert_frame_equal(report.tables["segments: country"].drop(shrunken), want)


def test_user_in_two_segments_counts_in_both():
    halves = pl.concat([TRUTH, TRUTH.with_columns(country=pl.lit("DK"))])
    halves = halves.filter(pl.col("country").ne("DK") | (pl.col("item") < 20))
    halves = halves.unique(["user", "item"], keep="last")
    made = rf.report(RUN, "ndcg@5", truth=halves, baseline="old", by="country")
    want = RUN.rank.compare(
        "ndcg@5", by=["model", "country"], truth=halves, baseline="old", details=True
    )
    assert_frame_equal(made.tables["segments: country"], want)


def test_values_of_users_are_computed_once(monkeypatch):
    calls = []
    read = evaluation.user_values
    monkeypatch.setattr(
        evaluation, "user_values", lambda *args, **more: calls.append(1) or read(*args, **more)
    )
    rf.report(RUN, *METRICS, **ASKED, by="country")
    assert len(calls) == 1


def test_users_are_counted_and_the_data_are_summed(report):
    missed = report.tables["health"].filter(what="missed_users").select("model", "count").rows()
    assert missed == [("new", 36), ("old", 0)]
    assert_frame_equal(report.tables["health"], RUN.rank.health(truth=TRUTH, by="model", k=5))
    again = rf.report(RUN.sample(fraction=1, shuffle=True, seed=4), *METRICS, **ASKED)
    assert again.tables["sources"].equals(report.tables["sources"])
    other = rf.report(RUN.with_columns(pl.col("rank") + 1), *METRICS, **ASKED)
    sums = other.tables["sources"]["checksum"] == report.tables["sources"]["checksum"]
    assert sums.to_list() == [False, True]


# ------------------------------------------------------------------ words


def test_verdict_says_where_missing_lists_turn_the_answer(report):
    title, sentence, *rest = report.verdict.splitlines()
    assert title == "new is worse than old."
    whole = RUN.rank.compare("ndcg@5", **KEPT, details=True).row(0, named=True)
    before, after = (f"{whole[name]:.3f}" for name in ("baseline_mean", "mean"))
    change = f"falls from {before} to {after}, by {abs(100 * whole['relative']):.0f}%; "
    assert sentence.startswith(f"ndcg@5 {change}95% interval −")
    there = report.tables["comparison served"].row(0, named=True)
    (served,) = [line for line in rest if "The answer differs" in line]
    title = "23 users are too few to tell new from old"
    change = f"{100 * there['relative']:+.0f}".replace("-", "−")
    assert served.endswith(f"a list from both: {title} ({change}%).")


@pytest.mark.parametrize("models", [["a"], ["a", "b"]])
def test_nothing_is_relevant(models):
    ids = {"user": [1, 2], "item": [7, 8]}
    runs = dict.fromkeys(models, pl.DataFrame({**ids, "rank": 1}))
    truth = pl.DataFrame({"user": [1, 2, 3], "item": 7, "relevance": [0, 0, 1]})
    page = rf.report(runs, "rr", truth=truth, users="both")
    assert len(models) > 1 or "No user of a has a value of rr" in page.verdict
    with pytest.raises(rf.RankingDataError, match="truth, column 'relevance': no grade is > 0"):
        rf.report(runs, "rr", truth=truth.head(2))


def test_system_that_serves_nobody_is_compared_and_not_tested():
    old = RUN.filter(model="old")
    third = old.with_columns(model=pl.lit("third"), rank=9 - pl.col("rank"))
    lost = old.with_columns(model=pl.lit("lost"), user=pl.col("user") + 1000)
    made = rf.report(pl.concat([old, third, lost]), "map", truth=TRUTH, baseline="old")
    served = made.tables["comparison served"].sort("model").select("model", "users", "verdict")
    assert served.rows() == [("lost", 0, None), ("third", 60, "worse")]


def test_verdict_is_silent_of_served_users_where_nobody_is_missed():
    made_run, truth = made(served=60)
    verdict = rf.report(made_run, "ndcg@5", truth=truth, baseline="old").verdict
    assert "a list from both" not in verdict


def test_lower_value_is_better_where_the_metric_says_so():
    run, truth = made(users=80, served=80)
    later = pl.when(pl.col("model") == "new").then("rank").otherwise(pl.col("rank") + 3)
    run = run.with_columns(rank=later)
    compared = run.rank.compare("mean_hit_rank", truth=truth, baseline="old")
    assert compared["verdict"].item() == "better"
    made_of_ranks = rf.report(run, "mean_hit_rank", "ndcg@5", truth=truth, baseline="old")
    title, sentence, *_ = made_of_ranks.verdict.splitlines()
    assert title == "new is better than old."
    assert sentence.startswith("mean_hit_rank falls from ")
    people = people_of(made_of_ranks.html())
    assert {one["change"][0]: one["kind"] for one in people} == {"−": "better", "+": "worse"}


def test_primary_metric_decides():
    verdict = rf.report(RUN, *METRICS, **ASKED, primary="map").verdict
    assert verdict.startswith("new is worse than old.\nmap falls from ")


def test_warnings_name_the_users_without_a_list(report):
    text = unmarked(page_of(report))
    assert "35 of 58 users have no list of new; no list counts as 0." in text


def test_users_of_weight_0_are_not_counted():
    weighted = TRUTH.with_columns(weight=(pl.col("country") == "SE").cast(pl.Int64))
    told = rf.report(RUN, "rr", truth=weighted, baseline="old", weights="weight").verdict
    assert "better of 20 users, in rr" in told
    assert "Only 20 users: " in told
    assert "12 of 20 users have no list of new" in told


def test_lists_are_of_users_whom_both_serve(report):
    elements = Elements(page_of(report, static=True))
    users = [re.match(r"user (\d+):", one["text"]) for one in elements.all("summary")]
    users = [int(found[1]) for found in users if found]
    assert len(users) == 8
    assert max(users) < 24
    values = RUN.rank.per_user("ndcg@5", by="model", truth=TRUTH, relevant_at=2)
    values = values.pivot("model", index="user", values="ndcg@5").filter(pl.col("user") < 24)
    change = values.with_columns(change=pl.col("new") - pl.col("old")).sort("change", "user")
    assert users[:4] == change["user"].head(4).to_list()


def test_items_show_their_title_their_grade_and_how_they_moved():
    run = pl.DataFrame(
        {
            "model": ["old"] * 6 + ["new"] * 6,
            "user": [1, 1, 1, 2, 2, 2] * 2,
            "item": [7, 8, 9, 7, 8, 9, 9, 7, 5, 7, 8, 9],
            "rank": [1, 2, 3] * 4,
        }
    )
    below = pl.DataFrame({"model": ["new"], "user": [1], "item": [8], "rank": [5]})
    truth = pl.DataFrame({"user": [1, 2], "item": [9, 9], "relevance": [3, 1]})
    items = pl.DataFrame({"item": [5, 7, 8, 9], "title": ["Five", "Seven", "Eight", "Nine"]})
    asked = {"truth": truth, "baseline": "old", "items": items, "k": 3}
    went = Elements(rf.report(pl.concat([run, below]), "ndcg@3", **asked).html(static=True))
    assert "Eight ▼down to 5" in [" ".join(one["text"].split()) for one in went.all("td")]
    elements = Elements(page_of(rf.report(run, "ndcg@3", **asked), static=True))
    assert {one["text"] for one in elements.all("th") if "details" in one["inside"]} >= {"rank"}
    cells = [one["text"].split() for one in elements.all("td") if "details" in one["inside"]]
    cells = [cell for cell in cells if cell and cell[0] in ("Five", "Seven", "Eight", "Nine")]
    assert cells == [
        *(["Seven"], ["Nine", "relevant,", "★grade", "3", "▲up", "2"]),
        *(["Eight", "out"], ["Seven", "▼down", "1"]),
        *(["Nine", "relevant,", "★grade", "3"], ["Five", "new"]),
    ]


def test_users_of_a_report_are_those_of_the_call():
    served = rf.report(RUN, "map", truth=TRUTH, baseline="old", users="both")
    assert served.tables["comparison"]["users"].to_list() == [24]
    assert "over users with a list and a judgment" in served.html()


@pytest.mark.sample(2)
@pytest.mark.parametrize("test", get_args(Test))
def test_tests_are_named_in_the_report(test):
    made = rf.report(RUN, "map", truth=TRUTH, baseline="old", test=test, resamples=100)
    assert html.escape(sentences.TESTS[test]) in made.html().replace("&#39;", "&#x27;")


def test_first_default_metric_does_not_pay_for_the_others():
    run, truth = correlated(users=38, seed=5).values()
    made = rf.report(run, truth=truth, baseline="old", k=5)
    labels = facts.default_metrics(5)
    table = made.tables["comparison"]
    want = run.rank.compare(*labels, truth=truth, baseline="old", primary="ndcg@5", details=True)
    assert_frame_equal(table, want)
    plain = run.rank.compare(*labels, truth=truth, baseline="old", details=True)
    assert plain["p_value"][0] < 0.05 < plain["p_adjusted"][0]
    assert made.verdict.startswith("new is better than old.\nndcg@5 rises from ")
    assert "without correction in ndcg@5, the primary metric" in html.unescape(page_of(made))
    assert "primary='ndcg@5'" in page_of(made).replace("&#39;", "'")
    same = rf.report(run, *labels, truth=truth, baseline="old", k=5, primary="ndcg@5")
    assert page_of(same) == page_of(made)
    named = rf.report(run, *labels, truth=truth, baseline="old", k=5)  # nobody named a primary one
    assert named.verdict.startswith("Undecided between new and old.")


def test_p_of_a_primary_metric_is_corrected_for_its_own_pairs_only():
    third = RUN.filter(model="old").with_columns(model=pl.lit("third"), rank=9 - pl.col("rank"))
    run = pl.concat([RUN, third])
    made = rf.report(run, *METRICS, **ASKED, primary="map")
    table = made.tables["comparison"]
    p = table.filter(metric="map").sort("p_value")
    least = p.select(2 * pl.col("p_value").first()).item()
    assert p["p_adjusted"][0] == pytest.approx(least)
    assert (
        "p after Holm's correction for 2 comparisons in map, the primary metric, and for 4 in the "
        "others" in html.unescape(made.html())
    )


def test_interval_that_correction_overrules_is_explained():
    run, truth = correlated().values()
    labels = [f"ndcg@{k}" for k in range(1, 9)]
    made = rf.report(run, *labels, truth=truth, baseline="old")
    row = made.tables["comparison"].row(0, named=True)
    assert row["ci_low"] > 0
    assert row["p_value"] < 0.05 < row["p_adjusted"]
    title, lead, *_ = made.verdict.splitlines()
    assert title == "Undecided between new and old."
    p, adjusted = f"{row['p_value']:.4f}", f"{row['p_adjusted']:.4f}"
    assert f"p {p} is not enough among 8 comparisons (adjusted: {adjusted})" in lead


def test_share_has_the_digits_that_its_interval_supports():
    assert numerals.percent(-1 + 1e-15) == "−100%"
    assert numerals.percent(-0.9991) == "−99.9%"
    assert numerals.percent(-1e-15, 1) == numerals.percent(-0.0, 1) == "0.0%"
    row = {"relative": 0.0264, "relative_low": 0.013, "relative_high": 0.039}
    row |= {"difference": 0.01, "ci_low": 0.005, "ci_high": 0.015, "baseline_mean": 0.4}
    change = strips.change_of(row)
    assert (change.text, change.ends) == ("+2.6%", ("1.3%", "3.9%"))
    wide = row | {"relative": 2.64, "relative_low": -0.85, "relative_high": 33.39}
    change = strips.change_of(wide)  # in percent, it would say nothing
    assert (change.text, change.ends) == ("+0.0100", ("0.0050", "0.0150"))


def test_numbers_that_are_not_0_are_not_written_as_0():
    row = {"relative": 0.68, "relative_low": 0.0031, "relative_high": 1.37, "baseline_mean": 0.4}
    row |= {"difference": 0.27, "ci_low": 0.00003, "ci_high": 0.5}
    assert strips.change_of(row).ends == ("0.3%", "137%")
    assert strips.change_of(row | {"relative_low": -1.1}).ends == ("0.00003", "0.50")
    assert numerals.percent(-0.00001, 1) == "−0.001%"
    assert numerals.number(-0.00004) == "−0.00004"
    assert numerals.number(1e-7) == "0.0000001"
    assert [*map(numerals.number, (0, -0.0, 1e-17, None))] == ["0", "0.0000", "0.0000", "–"]


def test_shares_and_numbers_are_rounded_half_up_as_in_charts():
    assert [numerals.percent(share / 8) for share in (1, 3, -1)] == ["13%", "38%", "−13%"]
    assert [numerals.percent(share / 40) for share in (17, 23)] == [
        "43%",
        "57%",
    ]  # 57.49999999999999
    assert numerals.number(0.03125) == "0.0313"
    assert numerals.number(0.15, 1) == "0.1"  # less than half in binary, as in JavaScript
    assert numerals.number(12_345_678) == "12,345,678"
    assert numerals.number(1e30) == f"{1e30:,.1f}"
    assert numerals.number(-math.inf) == "−inf"


def test_groups_of_one_user_are_merged():
    totals = pl.Series([1, 1, 2, 3, 4, 16, 20, 30])
    assert facts._without_single([1, 2, 16, 17], totals) == [1, 2, 17]
    assert facts._without_single([2, 3, 17], pl.Series([2, 3, 4, 17, 18])) == [2, 17]


def test_names_are_isolated_and_keep_their_words():
    """A name from right to left moves no number beside it; the word of a name stays elsewhere."""
    names = {"old": "item", "new": "מודל חדש"}
    run = RUN.filter(pl.col("user") < 24).with_columns(pl.col("model").replace_strict(names))
    truth = TRUTH.filter(pl.col("user") < 24).with_columns(pl.col("country").replace("NO", "مصر"))
    asked = {"truth": truth, "baseline": "item", "k": 5, "by": "country", "explore": 10}
    made = rf.report(run, *METRICS, **asked, nouns=("query", "document"), note="مذكرة")
    text = made.html()
    assert "<bdi>מודל חדש</bdi> from <bdi>item</bdi>" in text
    assert "<bdi>مصر</bdi>" in text
    assert 'class="note" dir="auto"' in text
    elements = Elements(text)
    isolated = {one["text"] for one in elements.all("bdi")}
    assert {"item", "מודל חדש", "مصر", "SE"} <= isolated
    assert not re.search("[\ue000\ue001]", text + made.verdict + repr(made))
    titles = [one["text"] for one in elements.all("title", "option")]
    assert "\u2068מודל חדש\u2069 against item" in titles
    assert "\u2068מודל חדש\u2069 " in made.verdict
    words = re.sub(r"<bdi>[^<]*</bdi>", "", text.partition("<main")[2].partition("<pre")[0])
    words = re.sub(r"<svg.*?</svg>|<script.*?</script>|<[^>]*>", "", words, flags=re.DOTALL)
    assert not re.search(r"\b([Uu]ser|[Ii]tem)s?\b", words.replace("in the items", ""))
    assert "document" in words


def test_summary_of_three_systems_precedes_their_verdicts():
    parts = [RUN, RUN.filter(model="old").with_columns(model=pl.lit(""))]
    three = rf.report(pl.concat(parts), "map", "mrr", truth=TRUTH, baseline="old")
    first, second, *others = three.verdict.splitlines()
    assert first == "None of 2 systems is better than old."
    assert second == "In map, new is worse; '' is identical to old."
    assert any("'' and old are identical: check" in line for line in others)
    text = page_of(three)
    assert not [one for one in Elements(text).all("th") if one["text"].strip() == ""]


def test_summary_counts_many_systems():
    draw = random.Random(5)
    systems = {f"s{i}": RUN.filter(model="old").drop("model") for i in range(7)}
    shuffled = {
        name: frame.with_columns(rank=pl.col("rank").shuffle(seed=draw.randrange(99)).over("user"))
        for name, frame in systems.items()
    }
    made = rf.report(shuffled, "ndcg@5", truth=TRUTH, baseline="s0")
    assert re.match(r"\d of 6 systems are better than s0\.\nIn ndcg@5, ", made.verdict)
    assert made.tables["comparison"].height == 6


# ------------------------------------------------------------------ what can be asked


def test_report_of_one_system_compares_nothing():
    made = rf.report(RUN.filter(model="old"), *METRICS, truth=TRUTH)
    assert not {"comparison", "harm"} & {*made.tables}
    assert made.verdict.startswith("old has a mean ndcg@5")
    assert "Lists side by side" not in page_of(made)


def test_baseline_alone_is_not_compared_with_itself():
    made = rf.report(RUN.filter(model="old"), "map", "ndcg@5", truth=TRUTH, baseline="old")
    assert "No comparison: there is only one system." in made.verdict
    text = made.html()
    assert "best mean" not in text
    assert "table of differences" not in text


def test_report_is_written_as_html_into_a_folder(report, tmp_path, capsys):
    with pytest.raises(ValueError, match=r"must end in \.html or \.htm, not 'x\.pdf'"):
        report.save(tmp_path / "x.pdf")
    with pytest.raises(FileNotFoundError, match="no such folder: '.*nowhere'"):
        report.save(tmp_path / "nowhere" / "x.html")
    files = ["old.csv", "new.csv", "truth.csv"]
    assert main(["report", *files, "-o", str(tmp_path / "nowhere" / "x.html")]) == 2
    assert re.search("error: .*x.html: no such folder: '.*nowhere'", capsys.readouterr().err)


def test_run_without_a_column_of_systems_is_one_system():
    made = rf.report(RUN.filter(model="old").drop("model"), "map", truth=TRUTH)
    assert made.verdict.startswith("run has a mean map of ")


def test_metrics_have_a_default():
    made = rf.report(RUN, truth=TRUTH, baseline="old", k=4)
    names = made.tables["means"]["metric"].unique(maintain_order=True).to_list()
    assert names == ["ndcg@4", "recall@4", "precision@4", "map", "mrr"]


def test_report_is_the_same_of_any_kind_of_frame(report):
    want = page_of(report)
    truth = {**ASKED, "truth": TRUTH.lazy()}
    lazy = rf.report(RUN.lazy(), *METRICS, **truth, by="country")
    assert page_of(lazy) == want
    truth = {**ASKED, "truth": TRUTH.to_pandas()}
    other = rf.report(RUN.to_pandas(), *METRICS, **truth, by="country")
    assert page_of(other) == want
    assert isinstance(other.tables["means"], pandas.DataFrame)
    with pytest.warns(
        rf.errors.RankingWarning, match="1 of 60 users has judged items, none relevant"
    ):
        judged = rf.report(
            RUN.rank.judge(TRUTH, by="model"), *METRICS, baseline="old", relevant_at=2
        )
    assert judged.verdict.splitlines()[0] == report.verdict.splitlines()[0]


@pytest.mark.parametrize(
    ("asked", "error", "text"),
    [
        ({"baseline": "odl"}, ValueError, "baseline must be one of 'new', 'old', not 'odl'"),
        (
            {"by": ["model", "user"]},
            ValueError,
            "by='user' names the column of the users",
        ),
        ({"by": "land"}, rf.RankingDataError, "truth: no column 'land' for by="),
        ({"k": 0}, ValueError, "k must be an integer ≥ 1, not 0"),
        ({"primary": "mrr"}, ValueError, "primary names 'mrr'"),
        ({"margin": {"mrr": 0.1}}, ValueError, "margin names 'mrr'; the metrics are 'ndcg@5'"),
        (
            {"truth": TRUTH.with_columns(country=float("nan")), "by": "country"},
            rf.RankingDataError,
            "truth, column 'country': NaN group: drop the row",
        ),
        ({"tset": "t"}, TypeError, "report has no keyword 'tset'; the nearest is 'test'"),
    ],
)
def test_report_names_what_it_cannot_take(asked, error, text):
    with pytest.raises(error, match=re.escape(text)):
        rf.report(RUN, *METRICS, **{**ASKED, **asked})


def test_missing_package_is_named_with_its_cure(monkeypatch):
    found = markup.find_spec
    monkeypatch.setattr(
        markup, "find_spec", lambda name: None if name == "vl_convert" else found(name)
    )
    with pytest.raises(ImportError, match=r"vl-convert-python: pip install 'rankframe\[report\]'"):
        rf.report(RUN, *METRICS, **ASKED)


# ------------------------------------------------------------------ the file

SAME = """
import sys
import altair
import rankframe as rf
from tests.report.samples import ASKED, METRICS, RUN
rf.plot.at_k(RUN, "map(divide_by=attainable)", truth=ASKED["truth"])
altair.theme.enable("dark")
report = rf.report(RUN, *METRICS, **ASKED, by="country")
report.save(sys.argv[1])
report.save(sys.argv[2], static=True)
"""


@pytest.mark.thorough
def test_bytes_are_the_same_of_one_input(report, tmp_path):
    for static in (False, True):
        assert report.html(static=static) == page_of(report, static=static)
    new, still = tmp_path / "new.html", tmp_path / "still.html"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    call = [sys.executable, "-c", SAME, str(new), str(still)]
    subprocess.run(call, check=True, env=environment, cwd=Path(__file__).parent)
    assert new.read_text("utf-8") == page_of(report)
    assert still.read_text("utf-8") == page_of(report, static=True)


def test_files_are_small(report):
    assert len(page_of(report).encode()) < 400_000


def test_static_page_has_no_script_and_all_charts(report):
    elements = Elements(page_of(report, static=True))
    assert not elements.all("script")
    assert [one for one in elements.all("div") if one.get("class") == "chart"]
    assert [*report.charts] == ["over-k"]
    ids = [one["id"] for one in elements.found if "id" in one]
    assert len(ids) == len({*ids})


def test_notebook_shows_the_static_page(report):
    shown = Elements(report._repr_html_())
    (frame,) = shown.all("iframe")
    assert "sandbox" in frame
    assert "new is worse than old" in unmarked(frame["srcdoc"])
    assert len(report._repr_html_()) < 500_000


@pytest.mark.parametrize("static", [False, True])
def test_network_is_asked_for_nothing(report, static):
    elements = Elements(page_of(report, static=static))
    for one in elements.found:
        for name in ("src", "href", "xlink:href", "action", "data", "poster"):
            assert one.get(name, "#").startswith("#"), one
    (policy,) = [one["content"] for one in elements.all("meta") if "http-equiv" in one]
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert ("script-src 'none'" in policy) == static


@pytest.mark.parametrize("static", [False, True])
def test_page_can_be_heard_and_walked_by_keyboard(report, static):
    elements = Elements(page_of(report, static=static))
    (root,) = elements.all("html")
    assert root["lang"] == "en"
    levels = [int(one["tag"][1]) for one in elements.all("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert all(one.get("scope") in ("row", "col") for one in elements.all("th"))
    assert len(elements.all("caption")) == len(elements.all("table"))
    ids = {one["id"]: one for one in elements.found if "id" in one}
    charts = [one for one in elements.all("svg") if one.get("aria-hidden") != "true"]
    assert all(one["role"] == "img" for one in charts)
    drawn = re.findall(r"<svg role=.img. .*?</svg>", page_of(report, static=static), re.DOTALL)
    assert len(drawn) == 2
    assert all(picture.count('<g aria-hidden="true" ') == 1 for picture in drawn)
    names = [one.get("aria-label") or one["text"] for one in charts]
    assert all(len(name) > 20 for name in names)
    assert not [one for one in elements.all("div", "table") if "tabindex" in one]
    assert all("summary" not in one["inside"] for one in elements.all("a", "button"))
    body = page_of(report, static=static).partition("<body>")[2].partition("<script")[0]
    unheard = re.findall(r'<span aria-hidden="true">([★▲▼]) ?</span>', body)
    assert {*unheard} == {*"★▲▼"}
    assert len(unheard) == len(re.findall("[★▲▼]", body))
    links = [one["href"] for one in elements.all("a")]
    assert links[0] == "#content"
    assert {link.removeprefix("#") for link in links} <= {*ids}


def test_chart_is_described_with_its_numbers(report):
    titles = [one["text"] for one in Elements(page_of(report)).all("title")]
    described = [text for text in titles if text.startswith(("ndcg@k: ", "recall@k: "))]
    assert len(described) == 2
    assert all(re.search(r"pairs\. new −\d+% to −\d+%\.$", text) for text in described)


def test_sections_stand_in_their_order(report):
    titles = [one["text"] for one in Elements(page_of(report)).all("h2")]
    assert titles == [
        *("new is worse than old", "Does it hold everywhere?", "Lists side by side"),
        *("Over k", "User by user", "How the numbers are made"),
    ]


def test_call_is_code_that_makes_the_report_again(report):
    (code,) = Elements(page_of(report)).all("code")
    again = eval(code["text"], {"rf": rf, "run": RUN, "truth": TRUTH})
    assert again.verdict == report.verdict
    assert page_of(again) == page_of(report)


@pytest.mark.parametrize("static", [False, True])
def test_names_of_the_data_are_text(hostile, static):
    text = page_of(hostile, static=static)
    elements = Elements(text)
    scripts = elements.all("script")
    assert len(scripts) == (0 if static else 2)
    if not static:
        assert people_of(text)[0]["user"].startswith(WORSE)
    assert not elements.all("img")
    assert not any(name.startswith("on") for one in elements.found for name in one)
    assert EVIL in elements.all("h1")[0]["text"]
    assert "49" not in elements.all("thead")[0]["text"]


# ------------------------------------------------------------------ lists to explore


def test_page_has_the_greatest_losses_and_gains_and_others_drawn(explored):
    values = RUN.rank.per_user("ndcg@5", by="model", truth=TRUTH, relevant_at=2)
    values = values.pivot("model", index="user", values="ndcg@5").filter(pl.col("user") < 24)
    change = values.with_columns(change=pl.col("new") - pl.col("old")).sort("change", "user")
    order = change["user"].to_list()
    text = page_of(explored)
    users = [int(person["user"]) for person in people_of(text)]
    assert len({*users}) == len(users) == 12
    assert users == sorted(users, key=order.index)
    assert users[:4] == order[:4]
    assert {*change.sort("change", "user", descending=[True, False])["user"][:4]} <= {*users}
    said = "12 of these 23 users: the 4 greatest losses, the 4 greatest gains and "
    assert f"{said}4 of the others, drawn at random (seed 3)." in text
    assert text == explored.html()
    static = page_of(explored, static=True)
    assert not Elements(static).all("script")
    assert len(static) < len(text)


@pytest.mark.parametrize(("explore", "shown"), [(0, 0), (1, 1), (9, 9), (200, 24)])
def test_lists_are_of_as_many_users_as_the_caller_says(explore, shown):
    made = rf.report(RUN, "ndcg@5", truth=TRUTH, baseline="old", explore=explore)
    text = made.html()
    assert (people_of(text) if shown else []).__len__() == shown
    summaries = [one["text"] for one in Elements(text).all("summary")]
    lost = [line for line in summaries if re.match(r"user \d+", line)]
    assert len(lost) == min(8, 2 * (explore // 2))
    assert ("All 24 users." in text) == (shown == 24)
    assert "of 24 users with a list from both" in unmarked(text)  # the changes of all
    assert ("<script" in text) == (shown > 0)


def test_histogram_has_all_users_on_their_own_range(explored):
    values = RUN.rank.per_user("ndcg@5", by="model", truth=TRUTH, relevant_at=2)
    values = values.pivot("model", index="user", values="ndcg@5").filter(pl.col("user") < 24)
    change = (values["new"] - values["old"]).drop_nulls()
    (chart,) = [one.users.histogram for one in explored._page.sections if one.users]
    lose, gain = (change < 0).sum(), (change > 0).sum()
    assert [text for _, text in chart.counts] == [
        f"{lose} lose", f"{len(change) - lose - gain} the same", f"{gain} gain"
    ]  # fmt: skip
    counts = {"worse": 0, "same": len(change) - lose - gain, "better": 0}
    for bar in chart.bars:
        if bar.kind != "same":
            counts[bar.kind] += int(bar.text.partition(" ")[0])
    assert [*counts.values()] == [lose, len(change) - lose - gain, gain]
    ends = min(bar.x for bar in chart.bars), max(bar.x + bar.width for bar in chart.bars)
    assert 0 <= ends[0] < 20
    assert 80 < ends[1] <= 100
    zero = max(bar.x + bar.width for bar in chart.bars if bar.kind == "worse")
    assert zero <= min(bar.x for bar in chart.bars if bar.kind == "better")


def test_explored_lists_are_those_of_the_verb(explored):
    for person in people_of(page_of(explored)):
        user = int(person["user"])
        want = rf.runs.side_by_side(RUN, user, 5, truth=TRUTH, baseline="old")
        titles = [[cell["title"] for cell in cells] for cells in person["lists"]]
        assert titles == [
            [f"film {item}" for item in want[name].drop_nulls()] for name in ("old", "new")
        ]
        marks = [re.sub(r"★\d ?", "", cell["mark"]) for cell in person["lists"][1]]
        for moved, mark in zip(want["moved"], marks, strict=True):
            word = "new" if moved is None else f"{'▲' if moved > 0 else '▼'}{abs(moved)}"
            assert mark == ("" if moved == 0 else word)
        wanted = TRUTH.filter(pl.col("relevance") >= 2, user=user)["item"]
        shown = {*want["old"], *want["new"]}
        missed = {f"film {item}" for item in wanted if item not in shown}
        assert {*person["missed"]} == missed
        assert person["relevant"] == len(wanted)
        assert {
            cell["title"] for cells in person["lists"] for cell in cells if cell["look"] == "hit"
        } == {f"film {item}" for item in wanted if item in shown}
        last = RUN.filter(model="old", user=user).sort(-pl.col("rank"))["item"].tail(5) + 40
        assert person["history"] == [f"film {item}" for item in last]
        assert person["segments"] == [f"country: {'NO' if user % 3 else 'SE'}"]


def test_page_counts_what_it_leaves_out_of_a_user():
    more = pl.DataFrame({"user": [0] * 30, "item": range(40, 70), "relevance": [3] * 30})
    truth = pl.concat([TRUTH.drop("country"), more])
    for person in people_of(
        rf.report(RUN, "ndcg@5", **{**ASKED, "truth": truth}, explore=30).html()
    ):
        missed = int(re.search(r"(\d*) in neither first 5|$", person["note"])[1] or 0)
        assert (missed >= 30) == (person["user"] == "0") == (person["more"] > 0)
        assert len(person["missed"]) == min(missed, 20)
        assert person["more"] == max(0, missed - 20)


def test_small_change_is_not_none():
    person = people.Person(1, 0.5, 0.5004, 0.0004, 1, [], [], [], [])
    assert explorer.change_of(person) == "+0.0004"
    assert explorer.change_of(person._replace(after=0.5)) == "0.000"
    assert explorer.change_of(person._replace(after=0.501)) == "+0.001"


def test_unjudged_item_is_hollow_where_misses_are_judged(report):
    truth = TRUTH.vstack(
        TRUTH.select("user").unique().sort("user").with_columns(
            item=pl.lit(0, pl.Int64), relevance=pl.lit(0, pl.Int64), country=pl.lit("NO")
        )
    ).unique(["user", "item"], keep="first", maintain_order=True)  # fmt: skip
    text = rf.report(RUN, *METRICS, **{**ASKED, "truth": truth}, explore=20).html()
    judged = truth.select(pl.col("user").cast(pl.String), pl.col("item").cast(pl.String)).rows()
    looks = {
        (person["user"], cell["title"]): cell["look"]
        for person in people_of(text)
        for cells in person["lists"]
        for cell in cells
    }
    assert {*looks.values()} == {"hit", "", "unjudged"}
    assert all((look == "unjudged") == (key not in {*judged}) for key, look in looks.items())
    assert "○ </span>never judged. " in text
    assert 'class="unjudged"' not in page_of(report)


def test_script_is_short_and_writes_text_only():
    script = markup._part("report.js")
    assert len(script.splitlines()) <= 150
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|Function\(", script
    )


QUERIES = pl.DataFrame({"user": range(60)}).with_columns(text=pl.format("shoes {}", "user"))


def test_queries_are_shown_by_their_text():
    made = rf.report(RUN, *METRICS, **ASKED, queries=QUERIES.head(20), nouns=("query", "document"))
    text = made.html()
    for person in people_of(text):
        user = person["user"]
        named = int(user) < 20
        assert wording.plain(person["name"]) == (f"shoes {user}" if named else f"query {user}")
        assert wording.plain(person["note"]).startswith(f"query {user} · ") == named
    assert "shoes" in unmarked(made.html(static=True))
    assert "queries=queries" in text.replace("&#39;", "'")
    apart = QUERIES.with_columns(pl.col("user") + 100)
    with pytest.raises(rf.RankingDataError, match="no user of the run is in queries=, which has"):
        rf.report(RUN, *METRICS, **ASKED, queries=apart)


def test_queries_to_judge_first_have_the_most_unjudged_items(report):
    truth = pl.concat([TRUTH, RUN.filter(model="old").select(
        "user", "item", relevance=pl.lit(0, pl.Int64), country=pl.lit("NO")
    )]).unique(["user", "item"], keep="first", maintain_order=True)  # fmt: skip
    made = rf.report(RUN, "ndcg@5", truth=truth, baseline="old", k=5, queries=QUERIES)
    text = made.html()
    keys = [one["href"] for one in Elements(text).all("a") if one["href"].startswith("#user=")]
    people = {f"#{person['key']}": person for person in people_of(text)}
    assert 0 < len(keys) <= 10
    assert {*keys} <= {*people}
    first = text.partition('id="judge"')[2].partition("</ol>")[0]
    found = re.findall(r"(\d) of the first 5 of new never judged, 0 of 5 of old", unmarked(first))
    counts = [sum(cell["look"] == "unjudged" for cell in people[key]["lists"][1]) for key in keys]
    assert [*map(int, found)] == counts == sorted(counts, reverse=True)
    judged = RUN.filter(model="new", rank=pl.col("rank").clip(1, 5)).join(
        truth, on=["user", "item"], how="anti"
    )
    assert counts[0] == judged.group_by("user").len()["len"].max()
    assert 'id="judge"' not in page_of(report)


def test_list_to_judge_is_one_for_both_systems():
    rows = [(query, place) for query in range(20) for place in range(5)]
    old = [f"u{q}_{i}" if i in (1, 3) else f"d{i}" for q, i in rows]
    new = [f"n{q}_{i}" if q == 15 else f"d{4 - i}" for q, i in rows]
    run = pl.DataFrame(rows, schema=["query", "rank"], orient="row") + 0
    run = run.with_columns(pl.col("rank") + 1)
    runs = {
        name: run.with_columns(doc=pl.Series(docs)) for name, docs in (("old", old), ("new", new))
    }
    truth = pl.DataFrame({
        "query": [q for q, _ in rows],
        "doc": [f"d{i}" for _, i in rows],
        "relevance": [int((i + q) % 3 == 0) for q, i in rows],
    })  # fmt: skip
    made = rf.report(runs, "ndcg@5", truth=truth, baseline="old", user="query", item="doc", k=5)
    text = made.html()
    first = text.partition('id="judge"')[2].partition("</ol>")[0]
    listed = re.findall(r"user=(\d+)", first)
    assert listed == [str(query) for query in (15, *range(9))]
    step = made.verdict.splitlines()[-1]
    assert "judge" in step
    if ":" in step.removeprefix("Next: "):
        assert re.findall(r"\d+", step) == listed
    words = re.search(r"(\d+) of these 20 queries: (.*)\.", unmarked(text))
    assert words is not None
    parts = words[2].replace("the greatest", "1").replace("(seed 0)", "")
    assert sum(map(int, re.findall(r"\d+", parts))) == int(words[1])


def test_lists_without_a_value_are_no_missing_lists():
    rows = [(user, rank) for user in range(20) for rank in (1, 2, 3)]
    run = pl.DataFrame(rows, schema=["user", "rank"], orient="row")
    old = run.with_columns(item=pl.col("rank"))
    new = run.with_columns(item=(pl.col("rank") + pl.col("user")) % 3 + 1).filter(
        pl.col("user") != 3
    )
    user = pl.Series(range(20))
    truth = pl.DataFrame({"user": user, "item": user % 2 + 1})
    truth = truth.with_columns(item=pl.when(pl.col("user") == 5).then(9).otherwise("item"))
    runs = {"old": old, "new": new}
    made = rf.report(runs, "mean_hit_rank", truth=truth, baseline="old").html()
    text = "of 18 users with a list and a value from both; 1 user has no list of one or both; "
    assert f"{text}1 user has no value from one or both" in unmarked(made)


def test_user_of_several_columns_is_shown_by_its_values():
    site = pl.lit("a").alias("site")
    queries = QUERIES.with_columns(site)
    made = rf.report(
        *(RUN.with_columns(site), *METRICS),
        **{**ASKED, "truth": TRUTH.with_columns(site)},
        user=["site", "user"],
        queries=queries.filter(pl.col("user") % 2 == 0),
    )
    for person in people_of(made.html()):
        user = int(person["user"].removeprefix("a, "))
        named = f"user a, {user}" if user % 2 else f"shoes {user}"
        assert wording.plain(person["name"]) == named


def test_queries_are_judged_first_though_no_value_differs():
    lists = {"old": ["a", "b"], "new": ["a", "x"]}
    runs = {name: rf.from_lists(dict.fromkeys("pqr", items)) for name, items in lists.items()}
    rows = {"user": [*"ppqqrr"], "item": ["a", "b"] * 3, "relevance": [1, 0] * 3}
    text = rf.report(runs, "rr", truth=pl.DataFrame(rows), baseline="old", k=2).html()
    assert text.count("1 of the first 2 of") == 3
    assert "0 lose, 3 the same and 0 gain" in text


# ------------------------------------------------------------------ the caller's nouns


@pytest.mark.parametrize(
    ("columns", "given", "nouns"),
    [
        (("query", "docno"), None, ("query", "document")),
        (("user", "item"), ("reader", "story"), ("reader", "story")),
    ],
)
def test_page_has_the_nouns_of_the_caller(columns, given, nouns):
    names = {"user": columns[0], "item": columns[1]}
    systems = {"old": "user-knn", "new": "item and user"}
    run = RUN.rename(names).with_columns(model=pl.col("model").replace(systems))
    truth = TRUTH.rename(names).with_columns(country=pl.format("{} of users", "country"))
    items = pl.DataFrame({columns[1]: range(40)}).with_columns(title=pl.lit("The lost item"))
    made = rf.report(
        *(run, "ndcg@5", "recall@5"), truth=truth, baseline="user-knn", k=5, by="country",
        items=items, explore=12, nouns=given, user=columns[0], item=columns[1],
    )  # fmt: skip
    elements = Elements(made.html())
    data = "lost item|item and user|user-knn|(NO|SE) of users"
    own = [one for one in elements.found if one["tag"] not in ("style", "script", "code", "html")]
    texts = [
        re.sub(data, "", one["text"])
        for one in own
        if one["tag"] in ("p", "li", "h2", "h3", "th", "td", "caption", "summary", "title", "desc",
                          "text", "figcaption", "label", "dt", "dd", "a")
        if not re.search(r"\w=\d", one["text"])  # an example of a row
    ]  # fmt: skip
    words = [re.search(r"\b([Uu]sers?|[Ii]tems?)\b", text) for text in texts]
    wanted = {"user", "users", "item", "items"} - {*nouns, *(f"{noun}s" for noun in nouns)}
    assert not [found.string for found in words if found and found[0].lower() in wanted]
    assert sum("The lost item" in text["text"] for text in own) > 10
    many = {"query": "queries", "story": "stories"}
    plural = many.get(nouns[0], f"{nouns[0]}s")
    assert f"60 {plural}" in elements.all("p")[0]["text"]
    assert f"better of 60 {plural}, in ndcg@5" in made.verdict
    assert elements.all("h1")[0]["text"] == "item and user against user-knn"


def test_nouns_follow_the_names_of_columns():
    assert nouns_of(None, "qid", "passage_id") == ("query", "passage")
    assert nouns_of(None, "session_id", "item_no") == ("session", "item")


@pytest.mark.parametrize("nouns", ["query", ("query",), ("a", "<b>"), (1, 2)])
def test_nouns_are_two_words(nouns):
    with pytest.raises(ValueError, match="nouns"):
        rf.report(RUN, "map", truth=TRUTH, baseline="old", nouns=nouns)


# ------------------------------------------------------------------ the command


def test_command_writes_the_report_and_prints_its_verdict(report, tmp_path, capsys):
    for name in ("old", "new"):
        RUN.filter(model=name).drop("model").write_csv(tmp_path / f"{name}.csv")
    TRUTH.write_csv(tmp_path / "truth.csv")
    files = [str(tmp_path / f"{name}.csv") for name in ("old", "new", "truth")]
    out = tmp_path / "report.html"
    QUERIES.write_csv(tmp_path / "queries.csv")
    asked = [*(f"-m{metric}" for metric in METRICS), "--relevant-at=2", "-k5", "--by=country"]
    asked.append(f"--queries={tmp_path / 'queries.csv'}")
    assert main(["report", *files, "-o", str(out), *asked]) == 0
    size = f"{out.stat().st_size / 1000:,.0f} kB"
    assert capsys.readouterr().out == f"{report.verdict}\nWritten: {out} ({size})\n"
    text = out.read_text("utf-8")
    assert "shoes" in text
    assert Elements(text).all("h1")[0]["text"] == "new against old"
    (code,) = Elements(text).all("code")
    command, *sums = code["text"].splitlines()
    assert command.startswith("rankframe report ")
    digest = hashlib.sha256((tmp_path / "truth.csv").read_bytes()).hexdigest()
    assert sums[-2] == f"# sha256 {digest}  {files[-1]}"
    said = said_by(["report", *files, "-o", str(tmp_path / "report.csv")])
    assert "report.csv: an output must end in one of .html, .htm" in said
    assert main(["report", *files, "-o", "-", "--static", *asked]) == 0
    assert not Elements(capsys.readouterr().out).all("script")


def test_systems_in_a_column_that_is_not_named_are_an_error_that_names_by():
    run = pl.DataFrame({"user": 1, "item": [7, 8] * 2, "rank": [1, 2] * 2, "algo": [*"aabb"]})
    truth = pl.DataFrame({"user": [1], "item": [7]})
    with pytest.raises(
        ValueError, match="report needs the column that names the systems, .*name it, model='algo'"
    ):
        rf.report(run, "rr", truth=truth, baseline="a")
    with pytest.raises(rf.RankingDataError) as of_report:
        rf.report(run, "rr", truth=truth)
    with pytest.raises(rf.RankingDataError) as of_evaluate:
        rf.evaluate(run, "rr", truth=truth)
    assert str(of_report.value) == str(of_evaluate.value)
    assert "duplicate (user, item): name a column of models in model=" in str(of_report.value)


def test_curves_go_to_the_end_of_the_longest_list():
    short = pl.col("user").is_in([1, 2]) & (pl.col("rank") > 2)
    made = rf.report(RUN.remove(short), "ndcg@3", truth=TRUTH, baseline="old", k=3)
    assert made.tables["cut-offs"]["k"].max() > 3


def test_curves_go_to_the_end_of_a_long_tie():
    ties = pl.DataFrame({"item": range(256), "rank": [1] + [2] * 255, "tied": [1] + [255] * 255})
    ties = ties.with_columns(pl.lit(1).alias("user"), pl.col("rank", "tied").cast(pl.UInt8))
    truth = pl.DataFrame({"user": [1], "item": [0]})
    made = rf.report(dict.fromkeys(["old", "new"], ties), "ndcg@3", truth=truth, baseline="old")
    assert made.tables["cut-offs"]["k"].max() == 20


def test_saved_report_explores_itself_by_default(report, tmp_path):
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text("utf-8") == page_of(report)
    assert "<script" in page_of(report)


@pytest.mark.parametrize("metrics", [["coverage@1"], ["coverage@5", "ndcg@5"]])
def test_metric_of_all_lists_may_decide(metrics):
    options = {"truth": TRUTH, "baseline": "old", "items": TRUTH.select("item").unique()}
    report = rf.report(RUN, *metrics, **options)
    compared = report.tables["comparison"]  # which has cut-offs too
    for row in rf.compare(RUN, *metrics, **options).iter_rows(named=True):
        got = compared.filter(metric=row["metric"])["difference"].to_list()
        assert got == pytest.approx([row["difference"]])
    cuts = report.tables["cut-offs"].filter(metric="coverage")
    ks = cuts["k"].unique().sort().to_list()
    at_k = rf.stats.at_k(RUN, "coverage", k=ks, by="model", truth=TRUTH, items=options["items"])
    assert 1 in ks
    assert_frame_equal(cuts, at_k.sort("model", "k").select(cuts.columns))
    assert metrics[0] in report.html()


@pytest.mark.parametrize("gain", [0.36, 0.4, 0.07, 1e-6])
def test_histogram_of_any_range_is_drawn(gain):
    """Its axis may have one tick alone."""
    users = pl.DataFrame({"user": range(40), "item": 1, "rank": 1, "relevance": 1, "v": 0.5})
    value = pl.when(pl.col("user") < 9).then(0.5 - gain).otherwise(0.5 + gain)
    data = pl.concat(
        [
            users.with_columns(model=pl.lit("a")),
            users.with_columns(value.alias("v"), model=pl.lit("b")),
        ]
    )
    made = rf.report(data, pl.col("v").filter("relevant").max(), baseline="a")
    assert "<svg" in made.html()
    assert 'id="changes"' in made.html()


def test_no_list_counts_as_0_only_where_it_does():
    truth = pl.DataFrame({"user": range(40), "item": "a", "relevance": [0, 1] * 20})
    run = truth.select("user", "item", rank=1)
    runs = {"old": run, "new": run.filter(pl.col("user") > 9)}
    for metrics, is_said in ((("recall@5",), True), (("recall@5", "abstention_recall"), False)):
        text = unmarked(rf.report(runs, *metrics, truth=truth, users="judged").html())
        assert "10 of 40 users have no list of new" in text
        assert ("no list counts as 0" in text) is is_said
