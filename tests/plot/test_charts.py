"""Charts: they draw the numbers of the verbs, are valid and small, and say what is wrong."""

import functools
import json
import math
import re
from itertools import product

import altair as alt
import polars as pl
import pytest
import vl_convert
from plot import looks
from plot.looks import (
    BOTH,
    CHARTS,
    COUNTRIES,
    ITEMS,
    MANY,
    PLACED,
    RUN,
    TRUTH,
    chart_of,
    log_of,
    picture_of,
    spec_of,
    svg,
)
from polars.testing import assert_frame_equal
from scipy import stats

import rankframe as rf
from rankframe.plot import _colors, _marks, _who_gained

LOOKS = dict(zip(CHARTS, looks.PAGE.read_text(encoding="utf-8").split("\n\n"), strict=True))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CHARTS)
def test_chart_is_valid_and_looks_as_the_page_says(name, capfd):
    """After a change of looks, read the difference of ``looks.txt``."""
    spec = spec_of(name)
    picture = picture_of(name)
    said = capfd.readouterr()
    assert "WARN" not in said.err + said.out
    assert "undefined" not in picture
    assert "NaN" not in picture
    assert len(json.dumps(spec)) < 250_000
    assert "\n".join(looks.look_of(name)).strip() == LOOKS[name].strip()
    for text in re.findall(">([^<]+)</text>", picture):
        assert not re.search(r"(^|[ (])-[0-9.]", text), text  # one minus
        assert text not in {"+0", "−0", "+0.0", "−0.0"}
    for fill in set(re.findall('<text[^>]*fill="(#[0-9A-Fa-f]{6})"', picture)):
        assert contrast(fill, WHITE) >= 4.5
    for color in {*re.findall('(?:fill|stroke)="(#[0-9A-Fa-f]{6})"', picture)} - QUIET:
        assert contrast(color, WHITE) >= 3, color
    check_tooltips(spec)


def check_tooltips(spec):
    """Titles of rows are words, no names of columns, and none stands twice."""
    found = tooltips(spec)
    assert found
    for rows in found:
        titles = [row["title"] for row in rows]
        assert len({*titles}) == len(titles) > 0
        assert not [title for title in titles if "_" in title and title not in NAMES]
        assert not {"panel", "count", "low", "high", "x", "y", "values"} & {*titles}


@pytest.mark.parametrize("name", ["at_k", "change"])
def test_marks_are_seen_on_a_dark_ground(name):
    with alt.theme.enable("dark"):
        spec = chart_of(name).to_dict(validate=False)
    picture = vl_convert.vegalite_to_svg(spec, theme="dark")
    for color in {*re.findall('(?:fill|stroke)="(#[0-9A-Fa-f]{6})"', picture)} - QUIET:
        assert contrast(color, DARK) >= 3, color


def test_at_k_draws_what_evaluate_returns():
    data = chart_of("at_k of metrics").data
    expected = RUN.rank.evaluate("ndcg@5", "recall@5", "map@5", truth=TRUTH, by="model")
    got = data.filter(pl.col("k") == 5).pivot("panel", index="system", values="mean")
    assert got.columns == ["system", "ndcg@k", "recall@k", "map@k"]
    assert_frame_equal(
        got,
        expected.drop("users").rename(
            dict(zip(expected.columns, ["system", "", *got.columns[1:]], strict=True)), strict=False
        ),
    )


def test_at_k_draws_the_intervals_of_summarize():
    chart = RUN.rank.plot.at_k("rr", k=[3, 7], truth=PLACED, by=BOTH)
    row = chart.data.filter(panel="rr@k · FR", system="c", k=7)
    summary = rf.summarize(RUN, "rr@7", truth=PLACED, by=BOTH).filter(model="c", country="FR")
    names = ["users", "mean", "ci_low", "ci_high"]
    assert_frame_equal(row.select(names), summary.select(names))


def test_at_k_draws_the_changes_of_compare():
    metrics, ks = ["ndcg", "recall"], [1, 5, 20]
    data = RUN.rank.plot.at_k(*metrics, k=ks, truth=TRUTH, baseline="a").data
    expected = RUN.rank.compare(
        *(f"{m}@{k}" for m in metrics for k in ks), truth=TRUTH, baseline="a", details=True
    )
    made = expected.select(
        pl.col("metric").str.replace("@.*", "@k").alias("panel"),
        pl.col("model").alias("system"),
        pl.col("metric").str.extract("([0-9]+)$").cast(pl.Int64).alias("k"),
        "users",
        mean="relative",
        ci_low="relative_low",
        ci_high="relative_high",
    )
    assert_frame_equal(data.drop("name", "name_at"), made, check_row_order=False)
    assert data["ci_low"].count() > 6


def test_at_k_draws_metrics_of_all_lists():
    chart = rf.plot.at_k(RUN, "coverage", k=[2, 5], items=ITEMS)
    expected = RUN.rank.evaluate("coverage@2", "coverage@5", items=ITEMS, by="model")
    got = chart.data.pivot("k", index="system", values="mean")
    assert got.rows() == expected.drop("users").rows()
    assert chart.data["users"].to_list() == [40] * 6
    assert chart.data["ci_low"].null_count() == 0


def test_spec_holds_the_table():
    chart = chart_of("at_k")
    (rows,) = chart.to_dict()["datasets"].values()
    assert rows == chart.data.to_dicts()


def test_precision_recall_draws_what_evaluate_returns():
    curve, path = chart_of("precision_recall").hconcat
    one = path.data.filter(system="b", k=7).select("users", "recall", "precision")
    names = ["interpolated_precision(recall=0.3)", "recall@7", "precision@7"]
    expected = RUN.rank.evaluate(*names, truth=TRUTH, by="model").filter(model="b")
    assert one.row(0) == pytest.approx(expected.select("users", *names[1:]).row(0), abs=1e-12)
    (value,) = curve.data.filter(system="b", recall=0.3)["precision"]
    assert value == pytest.approx(expected[names[0]].item(), abs=1e-12)
    assert curve.data["recall"].unique().sort().to_list() == [step / 10 for step in range(11)]


def test_contours_are_of_equal_f1():
    drawn = chart_of("precision_recall").hconcat[1].layer[0].data
    assert drawn["f1"].n_unique() >= 2
    recall, precision = drawn["recall"], drawn["precision"]
    f1 = 2 * recall * precision / (recall + precision)
    assert (f1 - drawn["f1"]).abs().max() < 1e-12


def test_users_without_a_value_are_reported():
    options = {"truth": TRUTH, "relevant_at": 3, "users": "judged"}
    chart = rf.plot.per_user(RUN, "recall@5", **options)
    values = RUN.rank.per_user("recall@5", **options)
    gone = values["recall@5"].null_count()
    assert gone > 0
    assert f"{gone} without a value left out" in chart.title.subtitle[0]
    assert chart.data["users"].sum() == len(values) - gone


def test_compare_draws_the_differences():
    data = chart_of("compare metrics").data
    expected = RUN.rank.compare("ndcg@10", "rr", truth=TRUTH, test="max_t", details=True)
    names = ["users", "difference", "ci_low", "ci_high", "p_adjusted", "higher", "lower"]
    assert_frame_equal(data.select(names), expected.select(names))
    assert data["panel"].to_list() == expected["metric"].to_list()
    assert data["pair"].to_list()[:3] == ["b − a", "c − a", "c − b"]
    for verdict, difference, p in data.select("verdict", "difference", "p_adjusted").rows():
        side = "better" if difference > 0 else "worse"
        assert verdict == (side if p < 0.05 else "undecided")
    assert set(data["verdict"]) > {"undecided"}


def test_verdict_follows_the_direction_of_the_metric():
    own = (1 - rf.metrics.f_at(5)).alias("own")
    chart = RUN.rank.plot.compare("f1@5", "e@5", own, truth=TRUTH, baseline="a", correction=None)
    wide = chart.data.select("panel", "pair", "verdict").pivot("panel", values="verdict")
    assert wide["f1@5"].to_list() == wide["e@5"].to_list()
    opposite = {"better": "lower", "worse": "higher", "undecided": "undecided"}
    assert wide["own"].to_list() == [opposite[verdict] for verdict in wide["f1@5"]]
    assert set(wide["f1@5"]) != {"undecided"}


def test_margin_is_a_band_of_its_metric():
    data = chart_of("compare margins").data
    expected = RUN.rank.compare(
        "ndcg@10", "rr", truth=TRUTH, baseline="a", margin={"ndcg@10": 0.3}, details=True
    )
    assert data["margin"].to_list() == [0.3, 0.3, None, None]
    assert_frame_equal(data.select("p_equivalent"), expected.select("p_equivalent"))
    assert data["verdict"].to_list() == expected["verdict"].to_list()
    assert "equivalent" in set(data["verdict"])
    picture = picture_of("compare margins")
    assert picture.count('fill="#E4E4E4"') == 1  # one band, not one per row
    assert "margin" not in chart_of("compare").data.columns


@pytest.mark.filterwarnings("ignore:.*no item of:rankframe.errors.RankingWarning")
def test_pair_without_an_interval_is_a_point():
    one = RUN.filter(user=0)
    chart = one.rank.plot.compare("rr", truth=TRUTH.filter(user=0), baseline="a")
    assert chart.data["ci_low"].null_count() == 2
    assert chart.data["verdict"].to_list() == ["undecided"] * 2
    picture = svg(chart)
    assert picture.count('aria-roledescription="point"') == 2
    assert "NaN" not in picture


def test_change_draws_each_user_and_what_diagnose_reads():
    data = chart_of("change").data
    totals = TRUTH.group_by("user").len("relevant")
    names = ["precision@10", "recall@10"]
    values = RUN.rank.per_user(*names, truth=TRUTH, by="model").join(totals, on="user")
    old = values.filter(model="a")
    diagnosis = rf.stats.who_gained(RUN, 10, truth=TRUTH, baseline="a", bins=8)
    in_bins = diagnosis.drop_nulls("relevant_low")
    for system, name in product("bc", names):
        new = values.filter(model=system).join(old, on="user", suffix=" old")
        drawn = data.filter(panel=system, measure=name)
        for row in in_bins.filter(model=system).iter_rows(named=True):
            low, high = row["relevant_low"], row["relevant_high"]
            mine = new.filter(pl.col("relevant").is_between(low, high))
            changes = (mine[name] - mine[f"{name} old"]).round(9).to_list()
            of_bin = drawn.filter(bin=str(low) if low == high else f"{low} to {high}")
            users = of_bin.drop_nulls("count").select(pl.col("change").round(9), "count")
            assert dict(users.rows()) == {change: changes.count(change) for change in changes}
            mean, first, last = of_bin.drop_nulls("mean").select("mean", "ci_low", "ci_high").row(0)
            assert mean == pytest.approx(row[name.replace("@10", "_change")], abs=1e-12)
            shrunken = of_bin["shrunken"].drop_nulls().item()
            assert shrunken == row[name.replace("@10", "_shrunken")]
            if len({*changes}) > 1:
                ends = stats.ttest_1samp(changes, 0).confidence_interval(0.95)
                assert (first, last) == pytest.approx((max(ends[0], -1), min(ends[1], 1)), abs=1e-8)
            else:
                assert first is last is None
    said = " ".join(chart_of("change").title.subtitle)
    readings = diagnosis.filter(pl.col("relevant_low").is_null()).select("model", "reading")
    for system, reading in readings.rows():
        assert re.search(rf"{system}: precision@10 [^:]+, recall@10 [^:]+: {reading}", said)


def test_axis_of_changes_fits_most_users():
    truth = TRUTH.filter(pl.len().over("user") > 2)
    chart = RUN.rank.plot.who_gained(10, truth=truth, baseline="a", bins=2)
    low, high = chart.to_dict()["spec"]["layer"][1]["encoding"]["y"]["scale"]["domain"]
    assert chart.data["ci_low"].min() >= low > -1
    assert chart.data["ci_high"].max() <= high < 1
    inside = chart.data.filter(pl.col("change").is_between(low, high))["count"].sum()
    changes = rf.stats.who_gained(RUN, truth=truth, k=10, baseline="a", bins=1)
    users = changes.filter(pl.col("relevant_low").is_not_null())["users"].sum() * 2  # measures
    beyond = chart.data["beyond"].drop_nulls()
    assert beyond.str.contains("^[▲▼] [0-9]+ users? (gain|lose)s? more$").all()
    outside = beyond.str.extract("([0-9]+)").cast(pl.Int64).sum()
    assert 0.8 < inside / users < 1
    assert inside + outside == users
    assert inside == chart.data["count"].sum()


def test_axis_of_small_changes_has_no_label_twice():
    """A million users: changes of 0.01 in steps of 0.005."""
    labels = {}
    for size in (1, 0.1, 0.01, 0.001):
        domain = _marks.round_ends(-0.3 * size, 2.7 * size, (-1, 1))
        table = pl.DataFrame(
            {"panel": ["b"], "measure": ["recall@10"], "change": [0.0], "bin": ["1"]}
            | {"relevant_low": [1], "relevant_high": [1], "count": [1], "users": [1]}
            | {"mean": [0.0], "ci_low": [0.0], "ci_high": [0.0], "beyond": [""], "side": [""]}
        )
        axis = _who_gained._changes(table, domain).to_dict()["layer"][1]["encoding"]["y"]["axis"]
        assert axis["labelOverlap"] is False
        labels[size] = [f"{value:{axis['format']}}" for value in axis["values"]]
        assert len({*labels[size]}) == len(labels[size]) > 2
    assert "+0.5" in labels[1]
    assert "+0.01" in labels[0.01]


def test_users_whom_one_system_misses_have_no_bar_and_no_interval():
    """As in the means of ``who_gained``: a missing list is no list without hits."""
    missed = [1, 2, 5]
    run = RUN.filter((pl.col("model") != "b") | ~pl.col("user").is_in(missed))
    data = run.rank.plot.who_gained(10, truth=TRUTH, baseline="a", bins=1).data
    drawn = data.filter(panel="b", measure="recall@10")
    alone = RUN.filter(~pl.col("user").is_in(missed))
    truth = TRUTH.filter(~pl.col("user").is_in(missed))
    served = alone.rank.plot.who_gained(10, truth=truth, baseline="a", bins=1).data
    assert drawn["count"].sum() == drawn["users"].sum() == 37
    assert_frame_equal(drawn, served.filter(panel="b", measure="recall@10"))


def test_funnel_draws_the_stages_of_stats():
    chart = chart_of("funnel of sources")
    sources = {name: RUN.filter(model=name).drop("model") for name in ("b", "c")}
    run = RUN.filter(model="a").drop("model")
    found = rf.stats.funnel(run, "map", truth=TRUTH, stages=sources)
    names = ["metric", "stage", "value", "gap", "users"]
    assert_frame_equal(chart.data.select(names), found.select(names))
    last = chart.data.row(-1, named=True)
    assert (last["stage"], last["gap"], last["next"]) == ("truth", None, None)
    assert chart_of("funnel").data["panel"].unique().sort().to_list() == [*"abc"]


def test_panels_of_a_funnel_share_a_scale_and_say_what_they_are_of():
    drawn = chart_of("funnel").to_dict()
    assert "x" not in drawn["resolve"]["scale"]  # bars of systems are compared by eye
    assert drawn["title"]["subtitle"][-1] == "panels: model"
    run, sources = RUN.filter(model="a").drop("model"), {"b": RUN.drop("model").head(9)}
    chart = rf.plot.funnel(run, "e(beta=1)@3", truth=TRUTH, stages=sources)
    title = chart.to_dict()["layer"][0]["encoding"]["x"]["title"]
    assert title == "e(beta=1)@3, and recall of the sources (lower is better)"


# by hand: three lists, of a, b and of c; the exposure is 3 · a, 2 · b, 1 · c, 0 · d
SMALL = pl.DataFrame(
    {
        "user": [1, 1, 2, 2, 3, 3],
        "item": [*"abacab"],
        "rank": [1, 2, 1, 2, 2, 1],
        "model": ["one"] * 6,
    }
)
FOUR = pl.DataFrame({"item": [*"abcd"], "genre": [["x"], ["x", "y"], ["z"], ["z"]]})


def test_shares_by_hand():
    chart = SMALL.rank.plot.exposure(of="genre", items=FOUR)
    # x: 3 of a and half of 2 of b; y the other half; z: 1 of c. Of 4 items z has 2, x 1½, y ½
    assert chart.data.rows() == [
        ("one", "z", "one", 1 / 6, 2 / 4, 1 / 6 - 2 / 4),
        ("one", "x", "one", 4 / 6, 1.5 / 4, 4 / 6 - 1.5 / 4),
        ("one", "y", "one", 1 / 6, 0.5 / 4, 1 / 6 - 0.5 / 4),
    ]
    spec = chart.to_dict()
    bars, ticks = spec["layer"]
    assert bars["encoding"]["y"]["sort"] == ["z", "x", "y"]
    assert bars["encoding"]["y"]["title"] == "genre"
    assert bars["encoding"]["x"]["title"] == "share of exposure"
    assert (bars["mark"]["type"], ticks["mark"]["type"]) == ("bar", "tick")
    assert chart.title.text == "Exposure of each genre in the whole lists"
    assert chart.title.subtitle == ["3 users", "ticks: target, the share in the catalogue"]


@pytest.mark.parametrize("target", ["uniform", "history", "truth", "candidates", None])
def test_shares_draws_what_shares_returns(target):
    history = TRUTH.select("user", "item")
    options = {"of": "genre", "k": 5, "discount": "log2", "items": ITEMS, "history": history}
    options |= {"target": target, "truth": TRUTH}
    chart = rf.plot.exposure(RUN, **options)
    found = rf.stats.exposure(RUN, by="model", **options)
    names = ["model", "genre", "share", *(["target"] if target else [])]
    got = chart.data.rename({"system": "model", "value": "genre"})
    if not target:
        assert got["target"].is_null().all()
    assert_frame_equal(got.select(names), found.select(names), check_row_order=False)
    assert chart.title.subtitle[-1].startswith("target: ") or target is None
    assert chart.title.text == "Exposure of each genre in the first 5 items"
    drawn = "share" if target is None else "difference"
    assert chart.to_dict()["spec"]["layer"][0]["encoding"]["x"]["field"] == drawn
    far = chart.data.group_by("value", maintain_order=True).agg(pl.col(drawn).abs().max())[drawn]
    assert (far.diff().drop_nulls() <= 1e-9).all()


def test_shares_furthest_from_their_target_are_drawn_of_many():
    chart = chart_of("shares of many")
    data = chart.data
    assert data["value"].n_unique() == 10
    found = rf.stats.exposure(RUN, of="maker", k=10, items=ITEMS, discount="log2", by="model")
    found = found.with_columns(far=(pl.col("share") - pl.col("target")).abs())
    far = found.group_by("maker").agg(pl.col("far").max()).sort("far", descending=True)
    assert set(far["maker"].head(10)) == set(data["value"])
    most = math.ceil(far["far"][10] * 1000) / 10
    assert chart.title.subtitle == [
        "40 users; discount of a rank: 1/log2(rank + 1)",
        f"10 of 27 values: the others differ by at most {most} points",
        "target: the share in the catalogue",
    ]
    shares = rf.plot.exposure(RUN, of="maker", k=10, items=ITEMS, target=None)
    found = rf.stats.exposure(RUN, of="maker", k=10, items=ITEMS, target=None, by="model")
    top = found.group_by("maker").agg(pl.col("share").max()).sort("share", descending=True)
    assert shares.data["share"].max() == top["share"][0]
    most = math.ceil(top["share"][10] * 1000) / 10
    assert shares.title.subtitle[1] == f"10 of 27 values: the others have at most {most}% each"


def test_trade_off_draws_the_intervals_of_summarize():
    chart = chart_of("trade_off")
    expected = rf.summarize(RUN, "ndcg@10", "gini@10", truth=TRUTH, items=ITEMS, by="model")
    for axis, metric in zip("xy", ["ndcg@10", "gini@10"], strict=True):
        ends = [axis, f"{axis}_low", f"{axis}_high"]
        got = chart.data.select("system", "users", *ends)
        numbers = expected.filter(metric=metric)
        same = dict(zip(["model", "mean", "ci_low", "ci_high"], ["system", *ends], strict=True))
        assert_frame_equal(
            got, numbers.select(*same, "users").rename(same), check_column_order=False
        )
        assert numbers["ci_low"].null_count() == 0
    spec = chart.to_dict()
    encoding = spec["layer"][0]["encoding"]
    assert encoding["x"]["title"] == "mean ndcg@10 (higher is better)"
    assert encoding["y"]["title"] == "gini@10 of all lists (lower is better)"
    assert chart.title.text == "gini@10 against ndcg@10"
    beaten = chart.data.with_columns(pl.col("y") * -1).select("x", "y").rows()
    assert chart.data["front"].to_list() == [
        not any(u >= x and v >= y and (u, v) != (x, y) for u, v in beaten) for x, y in beaten
    ]
    lines = "40 users; lines: 95% intervals, not corrected"
    assert chart.title.subtitle == [
        lines + "; dashed: none beats them in both" * (chart.data["front"].sum() > 1)
    ]
    picture = svg(chart)
    for name in "abc":
        assert f">{name}</text>" in picture


def test_equal_points_of_a_trade_off_are_named_apart():
    run = pl.concat(SMALL.with_columns(model=pl.format("s{}", pl.lit(n))) for n in range(3))
    data = run.rank.plot.trade_off("filled@3", "coverage@2", items=FOUR).data
    assert data.select("x", "y").n_unique() == 1
    assert data.drop_nulls("name").sort("name_at")["name"].to_list() == ["s2", "s1", "s0"]


def test_trade_off_leaves_out_intervals_that_are_not_there():
    truth = pl.DataFrame({"user": [1], "item": ["a"]})
    chart = SMALL.filter(user=1).rank.plot.trade_off("dcg@1", "num_hits@1", truth=truth)
    assert chart.data.drop("front", "name", "name_at").rows() == [
        ("", "one", 1, 1.0, None, None, 1.0, None, None)
    ]
    assert "NaN" not in svg(chart)


def test_lorenz_by_hand():
    chart = SMALL.rank.plot.lorenz(items=FOUR)
    gini = (-3 * 0 - 1 * 1 + 1 * 2 + 3 * 3) / (4 * 6)
    # half of the exposure, 3 of 6, goes to the first item
    assert chart.data.drop("marked").rows() == [
        ("", "one", 0, 0, 4, gini, 1),
        ("", "one", 1 / 4, 0, 3, gini, 1),
        ("", "one", 2 / 4, 1 / 6, 2, gini, 1),
        ("", "one", 3 / 4, 3 / 6, 1, gini, 1),
        ("", "one", 1, 1, 0, gini, 1),
    ]
    line = chart.to_dict()["layer"][1]["encoding"]
    assert line["x"]["title"] == "number of items, most exposed first"
    assert line["y"]["title"] == "share of exposure"
    assert chart.title.text == "Half of the exposure in the whole lists goes to 1 of 4 items"
    assert chart.title.subtitle == [
        "3 users",
        f"half goes to (Gini): one 1 ({gini:.3f})",
        "dashed: even exposure, Gini 0",
    ]


@pytest.mark.parametrize("discount", ["none", "log2", "clipped", "hit", 0.8])
@pytest.mark.parametrize("of", ["item", "shown", "genre"])
def test_twice_the_area_above_a_lorenz_curve_is_gini(of, discount):
    options = {"items": ITEMS, "truth": TRUTH, "by": "model"}
    data = rf.plot.lorenz(RUN, k=10, of=of, discount=discount, **options).data
    expected = RUN.rank.evaluate(
        rf.metrics.gini_at(10, of=of, discount=discount).alias("gini"), **options
    )
    for (system,), curve in data.group_by("system"):
        (value,) = expected.filter(model=system)["gini"]
        assert curve["gini"].to_list() == pytest.approx([value] * len(curve), abs=1e-12)
        x, y = curve["values"], curve["exposure"]
        area = ((y + y.shift()) / 2 * (x - x.shift())).sum()
        assert 1 - 2 * area == pytest.approx(value, abs=2e-3)


def test_lorenz_curve_of_many_items_is_small_and_true():
    number = 50_000
    rank = pl.int_range(1, 11, eager=True).alias("rank")
    user = pl.int_range(number, eager=True).alias("user")
    run = user.to_frame().join(rank.to_frame(), how="cross")
    item = (number / (1 + pl.col("user") % 997 * pl.col("rank"))).floor().cast(pl.Int64)
    run = run.with_columns(item=item).unique(["user", "item"])
    items = pl.DataFrame({"item": range(2 * number)})
    chart = run.rank.plot.lorenz(items=items, by=())
    assert len(chart.data) < 220
    assert chart.data.row(0)[2:4] == (0, 0)
    assert chart.data.row(-1)[2:4] == (1, 1)
    x, y = chart.data["values"], chart.data["exposure"]
    assert ((x.diff().drop_nulls() <= 0.0101) | (y[1:] == 0)).all()
    assert chart.data["exposure"].diff().drop_nulls().min() >= 0
    area = ((y + y.shift()) / 2 * (x - x.shift())).sum()
    assert 1 - 2 * area == pytest.approx(chart.data["gini"][0], abs=2e-3)


# ------------------------------------------------------------------ many systems


def test_systems_keep_the_order_of_their_type():
    run = RUN.with_columns(pl.col("model").replace_strict({"b": 10, "a": 9, "c": 100}))
    spec = run.rank.plot.at_k("rr", k=[1], truth=TRUTH).to_dict()
    assert spec["layer"][1]["encoding"]["color"]["scale"]["domain"] == ["9", "10", "100"]
    assert rf.plot.per_user(run, "rr", truth=TRUTH).data["system"].unique(
        maintain_order=True
    ).to_list() == ["9", "10", "100"]


@pytest.mark.parametrize("name", ["k:[x].system", "k", "system", "panel", "name"])
def test_column_may_be_called_anything(name):
    chart = RUN.rename({"model": name}).rank.plot.at_k("rr", k=[1], truth=TRUTH, by=name)
    expected = RUN.rank.plot.at_k("rr", k=[1], truth=TRUTH)
    assert_frame_equal(chart.data, expected.data)


@pytest.mark.parametrize("name", ["mean", "users", "metric"])
def test_column_called_as_one_of_summarize_is_refused(name):
    renamed = RUN.rename({"model": name})
    with pytest.raises(rf.RankingDataError, match=f"column '{name}': .* rename yours"):
        renamed.rank.plot.at_k("rr", k=[1], truth=TRUTH, by=name)


#: each chart with a baseline or without: metrics and options
CALLS = {
    "at_k": (["ndcg"], {"k": [1, 5]}),
    "per_user": (["rr"], {}),
    "trade_off": (["rr", "coverage@5"], {"items": ITEMS}),
    "exposure": ([], {"of": "maker", "target": "truth", "items": ITEMS}),
    "lorenz": ([], {"k": 4, "discount": "hit", "items": ITEMS}),
    "precision_recall": ([], {"k": [1, 5]}),
    "funnel": (["ndcg@5"], {}),
    "compare": (["rr"], {}),
    "who_gained": ([5], {"baseline": "a"}),
}
OF_ONE_SYSTEM = [name for name in CALLS if name not in ("compare", "who_gained")]


def chart_from(name, run, **options):
    args, others = CALLS[name]
    chart = getattr(rf.plot, name)(run, *args, **others | options)
    return chart.hconcat[1] if name == "precision_recall" else chart


def test_lazy_frames_and_those_of_pandas_are_drawn_the_same():
    for place, (name, (_, options)) in enumerate(CALLS.items()):
        change = pl.DataFrame.to_pandas if place % 2 else pl.DataFrame.lazy
        tables = {"truth": TRUTH} | ({"items": ITEMS} if "items" in options else {})
        other = {key: change(table) for key, table in tables.items()}
        got, expected = chart_from(name, change(RUN), **other), chart_from(name, RUN, **tables)
        assert_frame_equal(got.data, expected.data)


def test_judged_table_is_drawn_without_a_truth():
    judged = RUN.rank.judge(TRUTH, by="model")
    got = judged.rank.plot.at_k("ndcg").data
    assert_frame_equal(got, chart_of("at_k").data)


def test_drawing_shows_nothing(capfd, monkeypatch):
    monkeypatch.setattr(alt.TopLevelMixin, "show", lambda *_: pytest.fail("shown"))
    RUN.rank.plot.at_k("rr", k=[1], truth=TRUTH)
    assert capfd.readouterr() == ("", "")


PLOT = RUN.rank.plot
MISSED = pl.DataFrame({"user": range(40), "item": [69] * 40})
WRONG = {
    "a cut-off of its own": (
        lambda: PLOT.at_k("ndcg@10", truth=TRUTH),
        ValueError,
        "at_k takes a metric's name without its cut-off, such as 'ndcg', not 'ndcg@10'",
    ),
    "an expression": (
        lambda: PLOT.at_k(rf.metrics.rank_biased_precision(), truth=TRUTH),
        ValueError,
        "at_k takes a metric's name without its cut-off",
    ),
    "takes no cut-off": (
        lambda: PLOT.at_k("r_precision", truth=TRUTH),
        ValueError,
        "r_precision takes no cut-off @k",
    ),
    "no metric": (lambda: PLOT.at_k(truth=TRUTH), ValueError, "pass at least one metric"),
    "no cut-off": (lambda: PLOT.at_k("rr", k=[], truth=TRUTH), ValueError, "k has no cut-off"),
    "cut-off 0": (lambda: PLOT.precision_recall(k=[0], truth=TRUTH), ValueError, "k must be"),
    "interval": (
        lambda: PLOT.at_k("rr", interval="yes", truth=TRUTH),
        (TypeError, ValueError),
        "interval must be",
    ),
    "bins": (lambda: PLOT.who_gained(3, bins=0, truth=TRUTH), ValueError, "bins must be"),
    "a mean": (lambda: PLOT.per_user("gmap", truth=TRUTH), ValueError, "not a value per user"),
    "no number": (
        lambda: PLOT.per_user(pl.col("item").cast(pl.String).first().alias("x"), truth=TRUTH),
        ValueError,
        "metric 'x' is String for each user, which has no mean",
    ),
    "no value": (
        lambda: PLOT.per_user("rr", truth=TRUTH, relevant_at=9),
        rf.RankingDataError,
        "metric 'rr': no user has a value to draw",
    ),
    "one system": (
        lambda: RUN.filter(model="a").rank.plot.compare("rr", truth=TRUTH),
        rf.RankingDataError,
        "a comparison needs two",
    ),
    "no such baseline": (
        lambda: PLOT.who_gained(10, truth=TRUTH, baseline="z"),
        ValueError,
        "baseline must be one of 'a', 'b', 'c', not 'z'",
    ),
    "no system": (lambda: PLOT.compare("rr", truth=TRUTH, by=()), ValueError, "name it in by="),
    "no segment": (lambda: PLOT.segments("rr", truth=TRUTH), ValueError, "by= names no segments"),
    "no column": (
        lambda: RUN.drop("model").rank.plot.at_k("rr", truth=TRUTH, by="model"),
        rf.RankingDataError,
        "no column 'model' for by; it has 'user', 'item', 'rank'; join it to a table",
    ),
    "too many points": (
        lambda: PLOT.at_k("rr", k=range(1, 1400), truth=TRUTH),
        ValueError,
        "4,197 points are too many for one chart: choose fewer cut-offs",
    ),
    "no genres": (
        lambda: PLOT.exposure(of="genre"),
        rf.RankingDataError,
        "shares needs shares of genre: pass items=",
    ),
    "no such genre": (
        lambda: PLOT.exposure(of="gener", items=ITEMS),
        rf.RankingDataError,
        "genre",
    ),
    "nothing exposed": (
        lambda: PLOT.exposure(of="genre", items=ITEMS, discount="hit", truth=MISSED),
        rf.RankingDataError,
        "no list exposes a value of 'genre': no share to draw",
    ),
    "nothing exposed of items": (
        lambda: PLOT.lorenz(items=ITEMS, discount="hit", truth=MISSED),
        rf.RankingDataError,
        "no list exposes a value of 'item': no share to draw",
    ),
    "no catalogue": (lambda: PLOT.lorenz(), rf.RankingDataError, "pass items="),
    "such a target": (
        lambda: PLOT.exposure(of="genre", items=ITEMS, target="half"),
        ValueError,
        "target must be one of 'catalogue'",
    ),
    "such a weight": (
        lambda: PLOT.lorenz(items=ITEMS, discount="heavy"),
        ValueError,
        "discount",
    ),
    "too many panels": (
        lambda: MANY.rank.plot.exposure(of="genre", items=ITEMS, truth=PLACED, by=BOTH),
        ValueError,
        "36 systems and segments are too many for one chart: filter the frame",
    ),
    "too many segments": (
        lambda: RUN.with_columns(day=pl.col("user") % 20).rank.plot.lorenz(
            items=ITEMS, by=["model", "day"]
        ),
        ValueError,
        "20 segments are too many for one chart: filter the frame",
    ),
    "no such role": (
        lambda: PLOT.lorenz(items=ITEMS, usrs="all"),
        TypeError,
        "has no keyword 'usrs'; the nearest is 'user'",
    ),
    "no value of both": (
        lambda: PLOT.trade_off("rr", "ndcg@5", truth=TRUTH, relevant_at=9),
        rf.RankingDataError,
        "no system has a value of both",
    ),
    "one metric twice": (
        lambda: PLOT.trade_off("rr", "rr", truth=TRUTH),
        ValueError,
        "two output columns are called 'rr'",
    ),
    "no frame of shares": (
        lambda: rf.plot.lorenz([1], items=ITEMS),
        TypeError,
        "must be a polars DataFrame",
    ),
    "no frame": (lambda: rf.plot.at_k([1], "rr"), TypeError, "must be a polars DataFrame"),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", WRONG)
def test_charts_report_what_is_wrong(name):
    call, kind, words = WRONG[name]
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)


def test_legend_refuses_more_systems_than_it_holds():
    many = pl.concat(
        [RUN.filter(model="a").with_columns(model=pl.lit(f"m{n:02}")) for n in range(41)]
    )
    for draw in (many.rank.plot.at_k, many.rank.plot.trade_off):
        names = ["rr"] if draw.__name__ == "at_k" else ["rr", "hit@3"]
        with pytest.raises(ValueError, match="column 'model': 41 systems, but a chart has room"):
            draw(*names, truth=TRUTH)


@pytest.mark.parametrize("name", CALLS)
def test_charts_without_altair_say_what_to_install(monkeypatch, name):
    monkeypatch.setattr("rankframe.plot._call.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"charts need altair: pip install 'rankframe\[plot\]'"):
        chart_from(name, RUN, truth=TRUTH)


@pytest.mark.thorough
def test_charts_of_two_hundred_thousand_users_are_small():
    users = 200_000
    user = pl.int_range(users, eager=True).alias("user")
    wanted = pl.when(user % 50 == 0).then(user // 50 % 300).otherwise(user % 3) + 1
    truth = user.to_frame().with_columns(country=pl.format("c{}", pl.col("user") % 9))
    truth = truth.with_columns(item=pl.int_ranges(wanted)).explode("item")
    ranks = pl.DataFrame([user]).with_columns(rank=pl.int_ranges(pl.lit(1), pl.lit(3)))
    item = (pl.col("user") * 13 + pl.col("rank") * pl.col("model").str.len_chars()) % 11
    run = pl.concat(ranks.with_columns(model=pl.lit(model)) for model in ("old", "newer"))
    run = run.explode("rank").with_columns(item=item)
    distribution = run.rank.plot.per_user("ndcg@3", truth=truth.drop("country"))
    change = run.rank.plot.who_gained(10, truth=truth, by=BOTH, baseline="old")
    for chart in (distribution, change):
        assert len(chart.to_json()) < 1_000_000
    assert distribution.data["users"].sum() == 2 * users
    assert "200,000 users" in distribution.title.subtitle[0]
    assert change.data.filter(measure="recall@10")["count"].sum() == users


def test_slips_are_reported_in_a_sentence():
    for name, value, error, message in [
        ("unjudged", "bounds", ValueError, "here, pass 'miss' or 'drop'"),
        ("total", True, TypeError, "has no keyword 'total'"),
        ("usrs", "all", TypeError, "has no keyword 'usrs'"),
    ]:
        for draw, metric in [
            (rf.plot.per_user, "rr"),
            (functools.partial(rf.plot.segments, by="item"), "rr"),
            (rf.plot.at_k, "ndcg"),
        ]:
            with pytest.raises(error, match=message):
                draw(RUN, metric, truth=TRUTH, **{name: value})
    with pytest.raises(TypeError, match=r"the cut-offs themselves, such as range\(1, 11\)"):
        rf.plot.at_k(RUN, "ndcg", k=10, truth=TRUTH)
    nothing = TRUTH.with_columns(relevance=0)
    for call in (
        lambda: rf.plot.at_k(RUN, "ndcg", truth=nothing),
        lambda: rf.plot.precision_recall(RUN, truth=nothing),
        lambda: rf.plot.compare(RUN, "rr", truth=nothing),
        lambda: rf.plot.segments(RUN, "rr", truth=nothing.with_columns(c=1), by="c"),
        lambda: rf.plot.per_user(RUN, "rr", truth=nothing),
    ):
        with pytest.raises(rf.RankingDataError, match="no user has a value to draw"):
            call()


def test_groups_may_be_durations_and_names_have_two_lines():
    span = pl.duration(days=pl.col("model").rank("dense"))
    run = RUN.with_columns(span.alias("a\nspan")).drop("model")
    chart = rf.plot.at_k(run, "ndcg", "rr", truth=TRUTH, by="a\nspan", together=True)
    assert chart.data["system"].unique().sort().to_list() == [
        f"{n}d" for n in range(1, RUN["model"].n_unique() + 1)
    ]
    chart = rf.plot.per_user(RUN, rf.metrics.reciprocal_rank().alias("a\nb"), truth=TRUTH)
    assert chart.title.text == r"'a\nb', user by user"


def test_control_characters_of_systems_and_segments_are_escaped():
    hidden, escaped = "\u2028\0\u202e", r"\u2028\x00\u202e"
    run = pl.DataFrame({"user": [*range(4)] * 2, "item": 7, "rank": [1, 2, 1, 1, 2, 1, 2, 1]})
    run = run.with_columns(model=pl.Series(["old"] * 4 + [f"a{hidden}b"] * 4))
    truth = pl.DataFrame({"user": range(4), "item": 7, "land": [f"x{hidden}y", "z"] * 2})
    by = ["model", "land"]
    for chart in (
        rf.plot.compare(run, "rr", truth=truth, by=by, baseline="old"),
        rf.plot.segments(run, "rr", truth=truth, by=by),
        rf.plot.per_user(run, "rr", truth=truth, by=by),
    ):
        assert not {*hidden} & {*svg(chart)}
        assert f"a{escaped}b" in json.dumps(chart.to_dict(), ensure_ascii=False).replace(
            r"\\", "\\"
        )
    page = rf.report(run, "rr", truth=truth, baseline="old", by="land").html()
    assert not {*hidden} & {*page}
    assert f"a{escaped}b" in page


# ------------------------------------------------------------------ what is seen


WHITE, DARK = "#FFFFFF", "#333333"  # the grounds of Altair's default and dark themes
QUIET = {*_colors.PALE, WHITE, DARK}


def luminance(color):
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(color, ground):
    """The contrast ratio of the Web Content Accessibility Guidelines."""
    low, high = sorted([luminance(color), luminance(ground)])
    return (high + 0.05) / (low + 0.05)


def test_contrast_by_hand():
    assert contrast("#000000", WHITE) == pytest.approx(21)
    assert contrast("#777777", WHITE) == pytest.approx(4.48, abs=0.01)


def test_colors_of_data_are_seen_on_both_grounds():
    shown = [*_colors.COLORS, *(pair for pair, _ in _colors.VERDICTS.values())]
    for light, dark in [
        *shown,
        _colors.INK,
        _colors.GRAY,
        _colors.BASELINE,
        _colors.REST,
        _colors.USERS,
    ]:
        assert contrast(light, WHITE) >= 3
        assert contrast(dark, DARK) >= 3


def test_verdicts_have_other_colors_than_systems_and_a_shape_each():
    systems = {color for pair in _colors.COLORS for color in pair}
    looks = {verdict: look for verdict, look in _colors.VERDICTS.items() if verdict != "undecided"}
    assert systems.isdisjoint(color for pair, _ in looks.values() for color in pair)
    shapes = dict(_colors.VERDICTS.values())
    assert len(set(shapes.values())) == len(shapes) == 5


def test_colors_follow_a_ground_of_ones_own():
    chart = chart_of("at_k")
    for ground, place in [("#101418", 1), ("#FFF8E7", 0), ("transparent", 0)]:
        picture = svg(chart.properties(background=ground))
        assert _colors.COLORS[0][place] in picture
        assert _colors.COLORS[0][1 - place] not in picture


def test_single_panel_is_as_wide_as_its_page():
    for name in ("at_k", "compare", "shares alone", "at_k of many", "compare of many with one"):
        spec = spec_of(name)
        assert spec["width"] == "container"
        # and where there is no page, its width is given
        assert spec["config"]["view"]["continuousWidth"] == 720
        assert 'width="720"' in vl_convert.vegalite_to_svg(spec)
    assert chart_of("at_k").properties(width=300).to_dict()["width"] == 300
    own = chart_of("at_k").configure_view(continuousWidth=410).to_dict()
    assert own["config"]["view"]["continuousWidth"] == 410
    beside = (chart_of("at_k") | chart_of("shares alone")).to_dict()
    assert [one["width"] for one in beside["hconcat"]] == [480, 480]
    assert looks.drawn(beside).startswith("<svg")


# ------------------------------------------------------------------ more than six systems


def test_baseline_is_gray_and_the_others_keep_their_colors():
    systems = _colors.Systems(["a", "b", "c"], "model", baseline="b")
    first, gray, second = _marks.color_of(systems)["color"].to_dict()["scale"]["range"]
    assert gray["expr"] == _colors.ink(_colors.BASELINE)["expr"]
    inks = [_colors.ink(pair)["expr"] for pair in _colors.COLORS[:2]]
    assert [first["expr"], second["expr"]] == inks


def test_same_call_gives_the_same_bytes():
    again = MANY.rank.plot.at_k("ndcg", truth=TRUTH)
    assert again.to_json() == chart_of("at_k of many").to_json()


def test_ends_of_the_upper_path_are_named_inside_of_the_frame():
    for name in ("precision_recall", "precision_recall of many", "precision_recall alone"):
        path = chart_of(name).hconcat[1]
        y_end = path.to_dict()["layer"][0]["encoding"]["y"]["scale"]["domain"][1]
        assert path.data["precision"].max() <= 0.9 * y_end or y_end == 1
        ends = path.data.drop_nulls("at").sort("k")
        assert ends["at"].to_list() == ["k=1", "k=20"]
        assert ends["precision"][0] == path.data.filter(k=1)["precision"].max()


def test_metrics_together_share_an_axis_and_differ_in_dashes():
    apart = RUN.rank.plot.at_k("precision", "recall", truth=TRUTH).data.drop("name", "name_at")
    chart = chart_of("at_k together")
    got = chart.data.select(pl.col("metric").alias("panel"), pl.exclude("panel", "metric"))
    assert_frame_equal(got.drop("name", "name_at"), apart, check_row_order=False)
    assert set(chart.data["panel"]) == {""}
    line = chart.to_dict()["layer"][0]
    assert line["encoding"]["strokeDash"]["scale"]["domain"] == ["precision@k", "recall@k"]
    assert len({*map(tuple, line["encoding"]["strokeDash"]["scale"]["range"])}) == 2
    assert line["encoding"]["color"]["field"] == "system"
    with pytest.raises((TypeError, ValueError), match="together must be True or False"):
        RUN.rank.plot.at_k("rr", truth=TRUTH, together="yes")


# ------------------------------------------------------------------ strips and triangles


def test_strips_describe_users_who_are_not_at_zero():
    data = chart_of("users of many").data
    values = MANY.rank.per_user("ndcg@10", truth=TRUTH, by="model")
    drawn = spec_of("users of many")["spec"]["layer"][0]["encoding"]["y"]["sort"]
    assert drawn == values["model"].unique(maintain_order=True).to_list()
    for row in data.rows(named=True):
        mine = values.filter(model=row["system"])["ndcg@10"]
        others = sorted(value for value in mine if value != 0)
        assert row["zeros"] == pytest.approx(sum(value == 0 for value in mine) / len(mine))
        assert row["users"] == len(mine) == 40
        assert row["mean"] == pytest.approx(sum(mine) / 40)
        names = {"low": 0.05, "lower quarter": 0.25, "median": 0.5, "upper quarter": 0.75}
        for name, share in (names | {"high": 0.95}).items():
            place = share * (len(others) - 1)
            low = math.floor(place)
            high = min(low + 1, len(others) - 1)
            expected = others[low] + (place - low) * (others[high] - others[low])
            assert row[name] == pytest.approx(expected)
    assert data["zeros"].max() > 0


def test_pairs_of_more_than_twelve_systems_need_a_baseline():
    assert chart_of("compare of many with one").data.height == 14
    most = pl.concat([MANY, RUN.with_columns(pl.format("more {}", "model").alias("model"))])
    with pytest.raises(ValueError, match=r"15 systems are .* name a baseline=, or read .*letters"):
        most.rank.plot.compare("ndcg@10", truth=TRUTH)


@pytest.mark.parametrize("metrics", [["ndcg@10"], ["rr", "num_hits"]])
def test_segments_are_those_of_summarize_and_of_compare(metrics):
    asked = {"truth": PLACED, "by": "country"}
    named = {"segment": "country", "system": "model", "panel": "metric"}
    for value, expected, baseline in [
        ("mean", rf.summarize(RUN, *metrics, **asked), None),
        ("difference", rf.compare(RUN, *metrics, baseline="a", **asked, details=True), "a"),
    ]:
        data = rf.plot.segments(RUN, *metrics, baseline=baseline, **asked).data
        if baseline is not None:
            tested = rf.stats.compare_segments(
                RUN, *metrics, baseline="a", truth=PLACED, by=BOTH, resamples=9
            )
            got, shrunken = data.rename(named), tested.drop_nulls("country")
            shrunken = shrunken.select("metric", "country", "model", "shrunken")
            assert_frame_equal(got.select(shrunken.columns), shrunken, check_row_order=False)
            data = data.drop("shrunken")
        drawn = data.rename({**named, "value": value, "low": "ci_low", "high": "ci_high"})
        assert_frame_equal(drawn, expected.select(drawn.columns), check_row_order=False)
        assert data["segment"].unique(maintain_order=True).to_list() == COUNTRIES


@pytest.mark.parametrize(
    ("metric", "by", "truth"),
    [
        ("gmap", "country", PLACED),
        ("ap", "place", PLACED.with_columns(place=pl.col("item") % 3)),
        ("ap", "shrunken", PLACED.rename({"country": "shrunken"})),
    ],
)
def test_differences_without_shrunken_ones_are_drawn(metric, by, truth):
    chart = rf.plot.segments(RUN, metric, truth=truth, by=by, baseline="a")
    assert chart.data["value"].count() == 6
    assert "hollow" not in str(chart.title.subtitle)


def test_segments_with_most_users_are_drawn_in_the_order_of_their_type():
    # the cities 0 … 49, of which the first ten have two users each
    user = pl.int_range(60, eager=True).alias("user")
    cities = pl.Enum([str(city) for city in range(50)][::-1])
    city = (user % 50).cast(pl.String).cast(cities).alias("city")
    truth = pl.DataFrame([user, city]).with_columns(item=1)
    run = pl.DataFrame([user]).with_columns(item=1, rank=1)
    chart = run.rank.plot.segments("rr", truth=truth, by="city")
    most = "40 of 50 segments, those with the most users: 1 to 2 users in each; 95% intervals,"
    assert chart.title.subtitle == [most, "not corrected"]
    drawn = chart.data["segment"].to_list()
    assert len(drawn) == 40
    assert {str(city) for city in range(10)} <= {*drawn}
    assert drawn == sorted(drawn, key=int, reverse=True)


def test_change_that_no_test_shows_is_not_called_worse():
    """Two systems whose means differ by chance alone."""
    near = RUN.with_columns(
        item=pl.when((pl.col("user") == 3) & (pl.col("rank") == 1)).then(999).otherwise("item")
    )
    both = pl.concat(
        [RUN.filter(model="a"), near.filter(model="a").with_columns(model=pl.lit("b"))]
    )
    chart = both.rank.plot.who_gained(10, truth=TRUTH, baseline="a")
    assert chart.title.subtitle[-1].rpartition(": ")[2] in {"no difference seen", "unchanged"}
    assert "worse" not in " ".join(chart.title.subtitle)


# ------------------------------------------------------------------ one run without a name


ALONE = RUN.filter(model="a").drop("model")


@pytest.mark.parametrize("by", [{}, {"by": ()}, {"by": "country"}, {"by": ["country"]}])
@pytest.mark.parametrize("name", OF_ONE_SYSTEM)
def test_run_without_a_name_is_drawn(name, by):
    chart = chart_from(name, ALONE, truth=PLACED, **by)
    assert svg(chart).startswith("<svg")
    assert set(chart.data["system"]) == (set(COUNTRIES) if by.get("by") else {""})


@pytest.mark.parametrize("name", OF_ONE_SYSTEM)
def test_dict_of_one_run_is_drawn_under_its_name(name):
    assert set(chart_from(name, {"mine": ALONE}, truth=PLACED).data["system"]) == {"mine"}


# ------------------------------------------------------------------ names, ranges, scales


LONG = ["popularity-baseline-2024-11", "item-knn-k100-shrink50", "x" * 130]
OF_LONG = RUN.with_columns(model=pl.col("model").replace_strict(["a", "b", "c"], LONG))
FEWER = OF_LONG.filter((pl.col("model") == LONG[0]) | (pl.col("user") > 3))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "draw",
    [
        lambda: FEWER.rank.plot.at_k("ndcg", truth=TRUTH),
        lambda: FEWER.rank.plot.per_user("ndcg@10", truth=TRUTH),
        lambda: FEWER.rank.plot.who_gained(10, truth=TRUTH, baseline=LONG[2]),
        lambda: FEWER.rank.plot.compare("ndcg@10", truth=TRUTH, baseline=LONG[2]),
        lambda: FEWER.rank.plot.trade_off("ndcg@10", "recall@10", truth=TRUTH),
    ],
)
def test_name_of_130_characters_fits(draw):
    chart = draw()
    title = chart.title.to_dict()
    lines = title["text"] if isinstance(title["text"], list) else [title["text"]]
    assert max(map(len, [*lines, *title["subtitle"]])) <= 84
    picture = svg(chart)
    assert max(map(len, re.findall(">([^<]+)</text>", picture))) <= 84
    assert float(picture.split('viewBox="0 0 ')[1].split()[0]) < 900


def test_axis_keeps_to_the_range_of_a_metric():
    perfect = TRUTH.select("user", "item").with_columns(
        model=pl.lit("a"), rank=pl.int_range(1, pl.len() + 1).over("user")
    )
    items = TRUTH.select("item").unique()
    with_worse = pl.concat([perfect, perfect.with_columns(pl.col("rank") + 1, model=pl.lit("b"))])
    drawn = with_worse.rank.plot.at_k("recall", k=[5, 30], truth=TRUTH).to_dict()
    assert drawn["layer"][1]["encoding"]["y"]["scale"]["domain"][1] == 1
    chart = with_worse.rank.plot.trade_off("rr", "coverage@30", truth=TRUTH, items=items)
    assert set(chart.data["y"]) == {1}
    encoding = chart.to_dict()["layer"][0]["encoding"]
    assert encoding["y"]["scale"]["domain"] == [0.9, 1]
    assert encoding["x"]["scale"]["domain"][1] == 1
    counts = with_worse.rank.plot.trade_off(
        "rr", "coverage(count=true)@30", truth=TRUTH, items=items
    )
    assert counts.to_dict()["layer"][0]["encoding"]["y"]["scale"]["domain"][1] > len(items)
    assert _marks.within((0, 1), pl.Series([0.5, 1.2])) == (0, math.inf)  # a wrong range
    assert _marks.round_ends(0.2, 0.97, (0, 1)) == (0.2, 1)
    assert _marks.round_ends(0.5, 0.5, (0, 1)) == pytest.approx((0.47, 0.53), abs=0.02)


@pytest.mark.parametrize("zeros", [[64, 55, 40], [64, 55, 40, 10, 1, 99]])
def test_box_of_exact_zeros_is_filled_to_their_share(zeros):
    wanted = pl.DataFrame({"user": range(100), "item": [1] * 100})
    run = pl.concat(
        wanted.select(
            "user",
            item=pl.when(pl.col("user") < number).then(2).otherwise(1),
            rank=1 + pl.col("user") % 7,
            model=pl.lit(f"s{place}"),
        )
        for place, number in enumerate(zeros)
    )
    chart = run.rank.plot.per_user("rr", truth=wanted)
    spec = chart.to_dict()
    picture = vl_convert.vegalite_to_svg(spec)
    drawn = [100 * float(share) for share in re.findall(r">(\d+)%</text>", picture)]
    assert {*zeros} <= {share / 100 for share in drawn}
    assert "box on the left: filled to the share of users whose value is exactly 0" in (
        " ".join(chart.title.subtitle)
    )


def test_system_without_zeros_has_an_empty_box():
    wanted = pl.DataFrame({"user": [1, 2], "item": [1, 1]})
    run = pl.concat(
        wanted.select(
            "user", pl.col("item") + shift * (pl.col("user") - 1), rank=1, model=pl.lit(name)
        )
        for shift, name in enumerate(["none", "half"])
    )
    chart = run.rank.plot.per_user("rr", truth=wanted)
    picture = svg(chart)
    assert "users at exactly 0: 0%" in picture
    assert "users at exactly 0: 50%" in picture


# ------------------------------------------------------------------ tooltips


def tooltips(spec):
    """All tooltips of a chart: the title of each row."""
    if isinstance(spec, list):
        return [found for one in spec for found in tooltips(one)]
    if not isinstance(spec, dict):
        return []
    mine = [spec["tooltip"]] if isinstance(spec.get("tooltip"), list) else []
    return mine + [
        found
        for name, one in spec.items()
        if name not in ("datasets", "data")
        for found in tooltips(one)
    ]


#: names of metrics and coefficients, which the caller chose
NAMES = ["τ_AP", "num_hits", "num_hits per user"]


def test_interval_is_one_row_of_a_tooltip():
    picture = picture_of("compare")
    row = chart_of("compare").data.row(0, named=True)
    low, high = (f"{row[name]:.4f}".rstrip("0").replace("-", "−") for name in ("ci_low", "ci_high"))
    assert f"95% interval: {low} to {high}" in picture
    counts = " / ".join(str(row[name]) for name in ("higher", "equal", "lower"))
    assert f"users higher / equal / lower: {counts}" in picture
    assert "ci_low: " not in picture
    assert "null" not in picture
    p = row["p_adjusted"]
    assert f"p, adjusted: {'&lt;0.0001' if p < 0.0001 else format(p, '.4f')}" in picture


def test_trend_draws_the_log_with_gaps_as_gaps():
    data = chart_of("trend").data
    log = log_of(RUN, 7)
    days = [f"2026-01-0{day}" for day in range(1, 8)]
    assert data["at"].unique(maintain_order=True).to_list() == days
    gaps = data.filter(pl.col("mean").is_null()).select("at", "system").rows()
    assert gaps == [("2026-01-03", "a"), ("2026-01-03", "b"), ("2026-01-03", "c"), (days[4], "b")]
    row = data.filter(at=days[5], system="c").row(0, named=True)
    logged = log.filter(day=pl.date(2026, 1, 6), model="c").row(0, named=True)
    margin = stats.t.ppf(0.975, 39) * logged["std"] / 40**0.5
    ends = [logged["mean"] - margin, logged["mean"] + margin]
    assert [row["mean"], row["ci_low"], row["ci_high"]] == pytest.approx([logged["mean"], *ends])
    assert (row["users"], row["missed"]) == (40, 2 / 40)


def test_trend_draws_the_intervals_of_summarize():
    rows = rf.summarize(RUN, "rr", truth=PLACED, by=["country", "model"])
    data = rf.plot.trend(rows, "rr", time="country").data
    expected = rows.sort("country", "model").select("users", "mean", "ci_low", "ci_high")
    assert_frame_equal(data.select("users", "mean", "ci_low", "ci_high"), expected)
    assert data["time"].to_list() == rows.sort("country", "model")["country"].to_list()


def long_log(days):
    day = pl.int_range(days, eager=True)
    start = pl.date(2024, 1, 1)
    return pl.DataFrame({"metric": "rr", "users": 100 + day % 7, "mean": (day % 100) / 200}).select(
        pl.all(), day=start + pl.duration(days=day), missed=(day == 500).cast(pl.Float64) * 0.4
    )


@pytest.mark.parametrize(("days", "ticks"), [(7, {"interval": "day", "step": 1}), (30, None)])
def test_trend_of_few_days_has_a_tick_per_day(days, ticks):
    axis = str(rf.plot.trend(long_log(days), "rr").to_dict())
    assert {*re.findall(r"'tickCount': ({.*?})", axis)} == ({str(ticks)} if ticks else set())
    assert "'labelOverlap': True" in axis  # the renderer leaves out what does not fit


def test_trend_of_many_days_averages_weeks_and_keeps_the_worst_share():
    log = long_log(1000)
    data = rf.plot.trend(log, "rr").data
    assert len(data) == 143
    week = log.slice(7 * 10, 7)
    mean = (week["mean"] * week["users"]).sum() / week["users"].sum()
    assert data["mean"][10] == pytest.approx(mean)
    assert data["time"][10] == week["day"][0]
    assert data["missed"].max() == 0.4
    assert len(rf.plot.trend(log.head(250), "rr").data) == 250


TREND = {
    "no mean of 'map'": (lambda log: log, "map"),
    "no column 'users'": (lambda log: log.drop("users"), "rr"),
    "two rows of 'rr' at day=datetime.date(2024, 1, 1)": (lambda log: pl.concat([log, log]), "rr"),
    "log: the time is null: drop the row, or fix it. Offending row: ": (
        lambda log: log.with_columns(day=pl.when(pl.col("mean") > 0).then("day")),
        "rr",
    ),
    "log: the mean is NaN: drop the row, or fix it. Offending row: ": (
        lambda log: log.with_columns(mean=pl.col("mean") / pl.col("mean")),
        "rr",
    ),
    "log, column 'users': its type is String: cast it to a number": (
        lambda log: log.cast({"users": pl.String}),
        "rr",
    ),
    "log, column 'mean': its type is String: cast it to a number": (
        lambda log: log.cast({"mean": pl.String}),
        "rr",
    ),
    "conventions='1', day=datetime.date(2024, 1, 1), but conventions='2', day=datetime": (
        lambda log: log.with_columns(
            conventions=pl.when(pl.col("day").dt.day() < 4).then(pl.lit("1")).otherwise(pl.lit("2"))
        ),
        "rr",
    ),
}


@pytest.mark.parametrize("words", TREND)
def test_trend_reports_what_is_none(words):
    change, metric = TREND[words]
    with pytest.raises(rf.RankingDataError) as caught:
        rf.plot.trend(change(long_log(7)), metric)
    assert words in str(caught.value)
    if "conventions" in words:
        rf.plot.trend(change(long_log(7)), metric, by="conventions")


@pytest.mark.parametrize("floor", ["0.1", float("nan"), True])
def test_floor_is_a_finite_number(floor):
    with pytest.raises(ValueError, match="floor must be a finite number, not"):
        rf.plot.trend(long_log(7), "rr", floor=floor)


def test_spread_that_is_nan_has_no_interval():
    data = rf.plot.trend(long_log(7).with_columns(std=float("nan")), "rr").data
    assert data["ci_low"].null_count() == 7
    with pytest.raises(rf.RankingDataError, match="no mean of 'rr'"):
        rf.plot.trend(long_log(7).with_columns(mean=None), "rr")


def test_total_is_drawn_as_all():
    values = pl.DataFrame(
        {
            "day": [1] * 4 + [2] * 4,
            "model": [*"aabb"] * 2,
            "user": [1, 2] * 4,
            "rr": [n / 8 for n in range(8)],
        }
    )
    rows = rf.summarize(values, "rr", model=None, by=["day", "model"], total=True)
    data = rf.plot.trend(rows, "rr").data
    assert data.filter(system="all").select("time", "mean").rows() == [(1, 1.5 / 8), (2, 5.5 / 8)]
    assert data["system"].null_count() == 0


def test_text_is_read_as_dates_or_drawn_in_order():
    log = long_log(7).with_columns(pl.col("day").cast(pl.String))
    assert rf.plot.trend(log, "rr").data["time"].dtype == pl.Date
    log = log.with_columns(day=pl.format("w{}", pl.col("day").str.slice(9)))
    upside_down = log.reverse()
    data = rf.plot.trend(upside_down, "rr").data
    assert data["time"].to_list() == data["at"].to_list() == upside_down["day"].to_list()
    many = log.head(1).join(pl.DataFrame({"at": range(300)}), how="cross")
    many = many.with_columns(day=pl.format("w{}", "at"))
    assert rf.plot.trend(many, "rr").data["time"].to_list() == [f"w{n}" for n in range(0, 300, 2)]
    for frame in (log.lazy(), log.to_pandas()):
        assert rf.plot.trend(frame, "rr").data.equals(rf.plot.trend(log, "rr").data)


def test_dir_lists_the_charts():
    assert dir(rf.plot) == sorted(rf.plot.__all__)
    assert all(callable(getattr(rf.plot, name)) for name in rf.plot.__all__)


def test_panels_of_one_metric_share_an_axis():
    for metrics in (["rr"], ["rr", "num_hits"]):
        chart = rf.plot.compare(RUN, *metrics, truth=PLACED, by=BOTH, baseline="a")
        picture = svg(chart)
        data = chart.data
        assert data["panel"].n_unique() == 3 * len(metrics)
        ends = data.group_by(pl.col("panel").str.contains("num_hits")).agg(
            pl.struct("axis_low", "axis_high").n_unique().alias("axes"),
            pl.col("axis_low").first() == pl.min_horizontal("difference", "ci_low").min(),
            pl.col("axis_high").first() == pl.max_horizontal("difference", "ci_high").max(),
        )
        assert ends["axes"].to_list() == [1] * len(metrics)
        assert ends["axis_low"].all()
        assert ends["axis_high"].all()
        axes = re.findall(r'aria-label="X-axis [^"]*values? from ([^"]*)"', picture)
        assert len(axes) == 3 * len(metrics)
        assert len({*axes}) == len(metrics)


def test_result_of_compare_names_the_chart_of_runs_and_the_charts_are_listed():
    compared = rf.compare(RUN, "rr", truth=TRUTH, baseline="a")
    for frame in (compared, compared.lazy()):
        with pytest.raises(ValueError, match=r"draw from what it compared, rf.plot.compare\(runs"):
            frame.rank.plot.compare()
    assert {*re.findall(r"\w+", repr(RUN.rank.plot).partition("functions:")[2])} == {
        *rf.plot.__all__
    }


def test_name_from_right_to_left_moves_nothing_beside_it():
    """Isolated where other text is beside it: the minus of a pair, a title."""
    system = "חדש"
    run = RUN.with_columns(pl.col("model").replace("c", system))
    texts = json.dumps(
        [
            rf.plot.compare(run, "rr", truth=TRUTH, baseline=system).to_dict(),
            rf.plot.compare(run, "rr", truth=TRUTH).to_dict(),
        ],
        ensure_ascii=False,
    )
    assert f"Differences from \u2068{system}\u2069 in" in texts
    assert f"\u2068{system}\u2069 − " in texts or f" − \u2068{system}\u2069" in texts
