"""A primary metric: it decides, and the others count where it shows a difference."""

import numpy as np
import polars as pl
import pytest

import rankframe as rf

METRICS = ["decides", "b", "c", "d"]
SHIFTS = {"old": 0.0, "new": 0.3, "mid": 0.12}


def values(seed=0, users=40, shifts=SHIFTS, metrics=METRICS):
    rng = np.random.default_rng(seed)
    frames = []
    for model, shift in shifts.items():
        made = {name: rng.normal(shift * place, 0.6, users) for place, name in enumerate(metrics)}
        made[metrics[0]] = rng.normal(shift, 0.6, users)
        frames.append(pl.DataFrame({"model": model, "user": range(users), **made}))
    return pl.concat(frames)


def holm(p):
    """Adjust by the definition: the greatest of the steps before."""
    order = sorted(range(len(p)), key=p.__getitem__)
    adjusted, greatest = [0.0] * len(p), 0.0
    for step, place in enumerate(order):
        greatest = max(greatest, min(1.0, (len(p) - step) * p[place]))
        adjusted[place] = greatest
    return adjusted


def gated(rows, primary="decides"):
    """The definition of a gatekeeper, in plain Python."""
    keys = [(row["metric"], row["model"], row["baseline"]) for row in rows]
    p = {key: row["p_value"] for key, row in zip(keys, rows, strict=True)}
    first = [key for key in keys if key[0] == primary]
    rest = [key for key in keys if key[0] != primary]
    gate = dict(zip(first, holm([p[key] for key in first]), strict=True))
    others = dict(zip(rest, holm([p[key] for key in rest]), strict=True))
    return [gate[key] if key in gate else max(others[key], gate[primary, *key[1:]]) for key in keys]


@pytest.mark.parametrize("baseline", [None, "old"])
@pytest.mark.parametrize("test", ["t", "randomization"])
def test_adjusted_p_values_are_those_of_the_definition(test, baseline):
    got = rf.compare(
        values(),
        *METRICS,
        baseline=baseline,
        test=test,
        primary="decides",
        resamples=500,
        details=True,
    )
    assert got["p_adjusted"].to_list() == pytest.approx(gated(got.rows(named=True)), abs=1e-12)
    plain = rf.compare(
        values(),
        *METRICS,
        baseline=baseline,
        test=test,
        resamples=500,
        correction=None,
        details=True,
    )
    assert got["p_value"].equals(plain["p_value"])
    assert (got["p_adjusted"] > got["p_value"]).any()


def test_other_metrics_do_not_touch_the_primary_one():
    alone = rf.compare(values(), "decides")
    got = rf.compare(values(), *METRICS, primary="decides").filter(metric="decides")
    assert got.drop("note").equals(alone.drop("note"))


def test_difference_that_the_primary_metric_does_not_show_is_no_verdict_of_the_others():
    table = values(shifts={"old": 0.0, "new": 0.5})
    table = table.with_columns(decides=pl.col("user") * 0.1 + pl.col("user").cast(float).sin())
    flat = pl.when(model="new").then((pl.col("user") % 2 - 0.5) * 0.2).otherwise(0.0)
    table = table.with_columns(pl.col("decides") + flat)
    free = rf.compare(table, *METRICS, baseline="old", details=True)
    assert free.filter(metric="d")["verdict"].item() == "higher"
    got = rf.compare(table, *METRICS, baseline="old", primary="decides", details=True)
    assert got["verdict"].unique().to_list() == ["undecided"]
    assert got["p_adjusted"].min() == got["p_adjusted"][0]


def test_notes_say_which_metric_decides():
    got = rf.compare(values(), "decides", "b", baseline="old", primary="decides")
    assert got.filter(model="new")["note"].to_list() == [
        "primary metric: not corrected for the other metrics",
        "secondary metric: p_adjusted is at least that of decides",
    ]


def test_primary_metric_without_a_p_value_opens_nothing():
    table = values().with_columns(decides=pl.lit(1.0))
    got = rf.compare(table, "decides", "d", baseline="old", primary="decides", details=True)
    assert got["p_adjusted"].null_count() == got.height
    assert got["verdict"].null_count() == got.height
    assert got.filter(metric="d")["p_value"].null_count() == 0
    notes = got["note"].str.replace("^relative is null: .*? is below 0; ", "")
    assert notes.unique().sort().to_list() == [
        "no p_adjusted: the primary metric decides has none",
        "no user differs; primary metric: not corrected for the other metrics",
    ]


def test_metric_without_a_p_value_keeps_its_note():
    table = values().with_columns(b=pl.lit(1.0))
    got = rf.compare(table, "decides", "b", baseline="old", primary="decides")
    assert got.filter(metric="b")["note"].unique().to_list() == ["no user differs"]
    assert got.filter(metric="b")["p_adjusted"].null_count() == 2


def test_segment_has_its_own_gate():
    table = values(users=60).with_columns(country=pl.col("user") % 3)
    got = rf.compare(
        table, *METRICS, by=["model", "country"], total=True, primary="decides", details=True
    )
    rows = got.rows(named=True)
    gate = {
        (row["country"], row["model"], row["baseline"]): row["p_adjusted"]
        for row in rows
        if row["metric"] == "decides"
    }
    assert len(gate) == 12
    others = [row for row in rows if row["metric"] != "decides"]
    adjusted = holm([row["p_value"] for row in others])
    for row, of_rest in zip(others, adjusted, strict=True):
        key = row["country"], row["model"], row["baseline"]
        assert row["p_adjusted"] == pytest.approx(max(of_rest, gate[key]), abs=1e-12)


def test_margins_are_corrected_in_the_same_two_families():
    options = {"baseline": "old", "margin": 0.4}
    got = rf.compare(values(), *METRICS, **options, primary="decides", details=True)
    raw = rf.compare(values(), *METRICS, **options, correction=None, details=True)
    for of_primary in (True, False):
        family = (pl.col("metric") == "decides") == of_primary
        expected = holm(raw.filter(family)["p_equivalent"].to_list())
        assert got.filter(family)["p_equivalent"].to_list() == pytest.approx(expected, abs=1e-12)


def test_max_t_keeps_its_own_correction():
    plain = rf.compare(values(), *METRICS, test="max_t")
    got = rf.compare(values(), *METRICS, test="max_t", primary="decides")
    gate = {
        (model, baseline): p
        for model, baseline, p in plain.filter(metric="decides")
        .select("model", "baseline", "p_adjusted")
        .iter_rows()
    }
    for before, after in zip(plain.rows(named=True), got.rows(named=True), strict=True):
        bound = gate[before["model"], before["baseline"]]
        assert after["p_adjusted"] == max(before["p_adjusted"], bound)


def lists():
    rng = np.random.default_rng(3)
    rows = [
        {"model": model, "user": user, "item": item, "rank": rank}
        for model in ("new", "old")
        for user in range(12)
        for rank, item in enumerate(rng.permutation(8)[:3], 1)
    ]
    return pl.DataFrame(rows), pl.DataFrame({"user": range(12), "item": 1}).cast(pl.Int64)


def test_primary_metric_must_be_compared():
    with pytest.raises(ValueError, match="primary names 'x'; the metrics are 'decides', 'b'"):
        rf.compare(values(), "decides", "b", primary="x")
    run, truth = lists()
    items = pl.DataFrame({"item": range(8)})
    with pytest.raises(
        ValueError, match="'coverage@3' is one number for all lists, which has no test"
    ):
        run.rank.compare("coverage@3", "rr", truth=truth, items=items, primary="coverage@3")
