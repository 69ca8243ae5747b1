"""The table of a report: metrics, systems and groups, each with its interval drawn in its row."""

import random
import re
from html.parser import HTMLParser

import polars as pl
import pytest

import rankframe as rf
from rankframe._report import table
from tests.report.elements import unmarked
from tests.report.samples import page_of, run_of


def made(users=90, seed=2, **shifts):
    """One relevant item per user, which each system lists at a drawn rank, on the whole so far."""
    draw = random.Random(seed)
    ranks = {user: draw.randint(1, 6) for user in range(users)}
    rows = [
        (name, user, "it", max(1, rank + draw.choice([shift - 1, shift, shift + 1])))
        for name, shift in shifts.items()
        for user, rank in ranks.items()
    ]
    run = run_of(rows)
    truth = pl.DataFrame({"user": range(users), "item": "it"})
    return run, truth.with_columns(
        country=pl.col("user").mod(3).replace_strict({0: "SE", 1: "NO", 2: "DK"})
    )


class Blocks(HTMLParser):
    """The tables with strips of a page, and those that its rows open: heads, and rows of cells."""

    def __init__(self, text):
        super().__init__()
        self.found, self._open, self._cell = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "table":
            self._open.append({"rows": [], "inside": len(self._open)})
            if attrs.get("class") == "rows":
                self.found.append(self._open[-1])
        if not self._open:
            return
        if tag == "tr":
            self._open[-1]["rows"].append([])
        if tag in ("th", "td"):
            self._cell = {"class": attrs.get("class", ""), "text": "", "label": ""}
            self._open[-1]["rows"][-1].append(self._cell)
        if tag == "svg" and self._cell is not None:
            self._cell["label"] = attrs.get("aria-label", "")

    def handle_endtag(self, tag):
        if tag == "table":
            self._open.pop()
        if tag in ("th", "td", "table"):
            self._cell = None

    def handle_data(self, data):
        if self._cell is not None:
            self._cell["text"] += data


def blocks_of(report):
    """The blocks of the page's table: of each row the text of its cells, and what is heard."""
    text = page_of(report).partition('id="table"')[2].partition("</section>")[0]
    blocks = Blocks(text).found
    for block in blocks:
        head, *rows = block["rows"]
        block["head"] = [" ".join(cell["text"].split()) for cell in head]
        block["rows"] = [
            {
                "cells": [" ".join(cell["text"].split()) for cell in row],
                "heard": "".join(cell["label"] for cell in row),
                "class": row[-1]["class"],
            }
            for row in rows
        ]
    return blocks


ASKED = {"baseline": "old", "by": "country"}


@pytest.fixture(scope="module")
def pair():
    run, truth = made(old=1, new=0)
    return rf.report(run, "rr", "hit@2", "mean_hit_rank", truth=truth, **ASKED)


def test_pair_has_a_row_per_metric_and_group(pair):
    metrics, countries = blocks_of(pair)
    assert metrics["head"][:4] == ["metric p adjusted for 3 tests", "old", "new", "change"]
    want = pair.tables["comparison"].to_dicts()
    for row, number in zip(metrics["rows"], want, strict=True):
        name, *means, change, _, said = row["cells"]
        assert name.startswith(number["metric"])
        assert "decides" not in name  # the caller names no primary metric
        assert means == [f"{number[of]:.3f}" for of in ("baseline_mean", "mean")]
        assert change == f"{100 * number['relative']:+.0f}%".replace("-", "−")
        assert row["heard"].startswith(f"difference {change}, interval ")
        assert said.endswith(f" {number['verdict']}")
        assert row["class"] == f"said {number['verdict']}"
    marks = [row["cells"][-1][0] for row in metrics["rows"]]
    assert marks == ["▲", "●", "▲"]  # a lower rank is better
    assert countries["head"][:3] == ["rr, by country p adjusted for 3 tests", "users", "change"]
    of_groups = pair.tables["segments: country"]
    for row, of_group in zip(countries["rows"], of_groups.to_dicts(), strict=True):
        name, _, shrunken = row["cells"][0].partition(" shrunken: ")
        assert name == of_group["country"]
        assert shrunken.startswith(f"{of_group['shrunken']:+.3f} (".replace("-", "−"))
    run, truth = made(old=1, new=0)
    tested = rf.stats.compare_segments(
        run, "rr", truth=truth, baseline="old", by=["model", "country"]
    ).drop_nulls("country")
    assert of_groups["shrunken_low"].to_list() == tested["shrunken_low"].to_list()
    is_shown = (tested["p_adjusted"] < 0.05).any()
    assert is_shown != ("No group is shown to differ from the whole (+" in page_of(pair))
    assert [row["cells"][1] for row in countries["rows"]] == ["30"] * 3


@pytest.mark.parametrize(
    ("options", "why"),
    [({"cluster": "town"}, "With clusters,"), ({"paired": False}, "With unpaired users,")],
)
def test_groups_without_shrunken_differences_say_so(options, why):
    run, truth = made(old=1, new=0)
    truth = truth.with_columns(town=pl.col("user") // 3 % 20)
    report = rf.report(run, "rr", truth=truth, **ASKED, **options)
    assert f"{why} differences are not shrunken" in page_of(report)
    assert "shrunken" not in report.tables["segments: country"].columns


def test_table_says_what_it_is_and_which_metric_is_better_lower(pair):
    text = unmarked(page_of(pair))
    assert ">Change of each metric from old to new</caption>" in text
    assert ">Change of rr from old to new, by country</caption>" in text
    metrics, _ = blocks_of(pair)
    lower = [row["cells"][0].endswith("lower is better") for row in metrics["rows"]]
    assert lower == [False, False, True]


def test_changes_of_one_metric_have_one_unit(pair):
    run, truth = made(old=1, new=0)
    assert all(row["cells"][2].endswith("%") for row in blocks_of(pair)[1]["rows"])
    nobody = (pl.col("user") % 3 == 0) & (pl.col("model") == "old") & (pl.col("item") == "it")
    lost = run.with_columns(item=pl.when(nobody).then(pl.lit("other")).otherwise("item"))
    countries = blocks_of(rf.report(lost, "rr", truth=truth, **ASKED))[1]
    assert countries["head"][2] == "change (points)"
    assert not any(row["cells"][2].endswith("%") for row in countries["rows"])


def test_groups_are_in_the_order_of_numbers_and_folded_if_many():
    run, truth = made(old=1, new=0)
    truth = truth.with_columns(age=(pl.col("user") % 12).cast(pl.String))
    report = rf.report(run, "rr", truth=truth, baseline="old", by="age")
    first, rest, *_ = blocks_of(report)[1:]
    names = [row["cells"][0].split()[0] for block in (first, rest) for row in block["rows"]]
    assert names == [str(age) for age in range(12)]
    assert len(first["rows"]) == 8
    assert "<summary>4 more</summary>" in page_of(report)


def test_texts_of_which_some_are_numbers_stay_in_order_of_text():
    run, truth = made(old=1, new=0)
    sizes = pl.col("user").mod(3).replace_strict({0: "10", 1: "9", 2: "large"})
    report = rf.report(run, "rr", truth=truth.with_columns(size=sizes), baseline="old", by="size")
    names = [row["cells"][0].split()[0] for row in blocks_of(report)[1]["rows"]]
    assert names == ["10", "9", "large"]


def test_systems_are_rows_best_first_that_open():
    run, truth = made(old=1, a=2, b=0, c=1)
    report = rf.report(run, "rr", "hit@2", truth=truth, **ASKED)
    systems, *opened = blocks_of(report)
    means = report.tables["means"].filter(metric="rr").sort("mean", descending=True)
    own = [row["cells"] for row in systems["rows"] if len(row["cells"]) > 1]  # others open
    assert [cells[0].split()[0] for cells in own] == means["model"].to_list() != ["old", "a", "b"]
    assert [cells[0] for cells in own if "baseline" in cells[0]] == ["old baseline"]
    assert [cells[1] for cells in own] == [f"{mean:.3f}" for mean in means["mean"]]
    assert systems["head"][0] == "system p adjusted for 6 tests"
    assert len(opened) == 3 * 2  # metrics and countries of each
    assert {block["inside"] for block in opened} == {1}
    assert opened[1]["head"][0] == ("rr, by country p adjusted for 9 tests: 3 systems × 3 groups")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "p adjusted for 3 tests"),
        ({"primary": "rr"}, "p of rr alone; of other metrics adjusted for 2 tests"),
        ({"correction": None}, "p of 3 tests, not adjusted"),
        ({"test": "max_t", "resamples": 200}, "p adjusted for 3 tests"),
    ],
)
def test_head_says_for_how_many_tests_p_is_adjusted(options, words):
    run, truth = made(old=1, new=0)
    report = rf.report(run, "rr", "hit@2", "hit@4", truth=truth, baseline="old", **options)
    assert blocks_of(report)[0]["head"][0] == f"metric {words}"


def test_group_without_a_test_is_not_counted():
    run, truth = made(old=0, new=1)
    same = pl.col("user") % 3 == 0
    old = run.filter(model="old")
    copied = pl.concat([old, old.filter(same).with_columns(model=pl.lit("new"))])
    run = pl.concat([copied, run.filter(~same, model="new")])
    report = rf.report(run, "rr", truth=truth, **ASKED)
    (countries,) = blocks_of(report)[1:]
    assert countries["head"][0] == "rr, by country p adjusted for 2 tests"
    assert [row["cells"][-1] for row in countries["rows"]].count("● no test") == 1


def test_undecided_interval_without_0_has_its_p():
    run, truth = made(users=40, seed=8, old=1, new=0)
    labels = ["rr", *(f"hit@{k}" for k in range(1, 7))]
    found = rf.compare(run, *labels, truth=truth, baseline="old")
    report = rf.report(run, *labels, truth=truth, baseline="old")
    (metrics,) = blocks_of(report)
    clear = {
        row["metric"]: f"p {row['p_adjusted']:.4f}"
        for row in found.to_dicts()
        if row["verdict"] == "undecided" and row["ci_low"] > 0
    }
    assert 0 < len(clear) < len(labels)
    for row in metrics["rows"]:
        p = re.search(r" p [\d.]+$|$", row["cells"][-1])[0].strip()
        assert p == clear.get(row["cells"][0].split()[0], "")


def test_means_are_the_table_of_one_system():
    run, truth = made(old=1)
    report = rf.report(run, "rr", "mean_hit_rank", truth=truth, by="country")
    shares, ranks, countries = blocks_of(report)
    mean = report.tables["means"].row(0, named=True)
    ((name, text, *_),) = (row["cells"] for row in shares["rows"])
    assert (name, text) == ("rr how soon the first wanted item comes", f"{mean['mean']:.3f}")
    assert shares["rows"][0]["heard"].startswith(f"mean {text}, interval ")
    assert " to " in ranks["rows"][0]["cells"][2]  # a scale of its own: no strip
    assert countries["head"][:3] == ["rr, by country", "users", "mean"]


def test_far_longer_interval_does_not_shrink_the_others():
    row = {"difference": 0.01, "relative": None, "relative_low": None, "relative_high": None}
    ends = [(0.0, 0.02), (-0.01, 0.03), (-0.9, 0.92)]
    rows = [
        table.Row("", change=table.strips.change_of({**row, "ci_low": low, "ci_high": high}))
        for low, high in ends
    ]
    (block,) = table._drawn(table.Block([], rows))
    assert block.axis.high < 0.2


def test_notes_of_rows_are_below_the_table():
    run, truth = made(old=1, new=0)
    copy = run.filter(model="old").with_columns(model=pl.lit("copy"))
    report = rf.report(
        pl.concat([run, copy]), "rr", "hit@1", truth=truth, baseline="old", primary="rr"
    )
    text = unmarked(page_of(report))
    assert "<p>rr, hit@1: no user differs (copy).</p>" in text


def test_users_are_described_by_their_changes(pair):
    text = page_of(pair).partition('id="users"')[2].partition("</details>")[0]
    head, row, *_ = Blocks(text).found[0]["rows"]
    assert [cell["text"].strip() for cell in head[:5]] == [
        "rr",
        "lower",
        "equal",
        "higher",
        "median",
    ]
    number = pair.tables["comparison"].row(0, named=True)
    assert [int(cell["text"]) for cell in row[1:4]] == [
        number[of] for of in ("lower", "equal", "higher")
    ]


def test_checks_are_rows_only_with_problems():
    run, truth = made(old=1, new=0)
    run = run.with_columns(rank=1)
    clean = rf.report(run, "rr", truth=truth, baseline="old", k=1).html()
    assert re.search(r"All \d+ checks passed\.", clean)
    assert "Counts that are worth a look" not in clean
    lost = run.filter((pl.col("model") == "old") | (pl.col("user") > 30))
    text = rf.report(lost, "rr", truth=truth, baseline="old", k=1).html()
    assert re.search(r"1 of \d+ checks found something worth a look\.", text)
    rows = text.partition("Counts that are worth a look")[2].partition("</table>")[0]
    assert rows.count("<tr>") == 2
    assert "users without a list" in rows
