"""Parts with damaged or missing rows, and errors of parts for callers with pandas or Arrow."""

import pandas
import polars as pl
import pytest

import rankframe as rf

RUN = pl.DataFrame({"user": [1, 2], "item": 1, "rank": 1})
TRUTH = RUN.drop("rank")
SEEN = ["run", "truth", "shared"]  # counts of each part, whatever its columns


def both(**options):
    run, truth = (table.with_columns(day=pl.lit("a")) for table in (RUN, TRUTH))
    truth = truth.with_columns(w=2.0)
    return [
        rf.parts.sums(run.filter(user=u), "rr", truth=truth.filter(user=u), part=str(u), **options)
        for u in (1, 2)
    ]


def test_group_without_a_value_leaves_exact_sums():
    run = pl.DataFrame(
        {"day": "a", "user": range(8), "item": 1, "rank": [3, 7, 6, 5, 9, 11, 13, 1]}
    )
    truth = run.select("day", "user", "item", relevance=pl.Series([1] * 7 + [0]))
    weights = pl.DataFrame({"user": range(8), "w": [2.0**-600 * (1 + u / 7) for u in range(8)]})
    for options in ({}, {"weights": "w"}):
        tables = [run, truth.join(weights, on="user") if options else truth]
        meter, parts = rf.Meter("rr", by="day", **options), []
        for users in ([0, 1], [2, 3, 4, 5, 6], [7]):
            some = [t.filter(pl.col("user").is_in(users)) for t in tables]
            call = {"truth": some[1], "by": "day", "part": str(users), **options}
            parts.append(rf.parts.sums(some[0], "rr", **call))
            meter.update(*some)
        expected = rf.evaluate(tables[0], "rr", truth=tables[1], by="day", **options)
        assert rf.parts.combine(parts).equals(expected)
        assert meter.compute().equals(expected)


@pytest.mark.parametrize("by", [(), "day"])
@pytest.mark.parametrize("options", [{}, {"count_users": True}, {"weights": "w"}])
def test_each_row_is_required(by, options):
    parts = both(by=by, **options)
    assert rf.parts.combine(parts)["rr"].item() == 1
    for row in range(parts[0].height):
        kept = parts[0].with_row_index().filter(pl.col("index") != row).drop("index")
        if parts[0]["kind"][row] == "seen" and parts[0]["metric"][row] not in SEEN:
            continue
        for several in ([kept, parts[1]], [parts[1], kept]):
            with pytest.raises(rf.RankingDataError, match="recreate"):
                rf.parts.combine(several)


@pytest.mark.parametrize("column", ["metric", "count", "sum", "size", "units", "exponent"])
@pytest.mark.parametrize("cell", ["oops", None])
def test_damaged_cells(column, cell):
    parts = both(by="day")
    for row in range(parts[0].height):
        if column == "metric" and parts[0]["kind"][row] in ("seen", "part"):
            continue
        cells = parts[0][column].cast(pl.String).to_list()
        cells[row] = cell
        damaged = parts[0].with_columns(pl.Series(column, cells, pl.String))
        with pytest.raises(rf.RankingDataError, match="recreate|again"):
            rf.parts.combine([damaged, parts[1]])


def test_lists_of_arrow_tables():
    tables = [part.to_arrow() for part in both()]
    expected = rf.parts.combine(both())
    assert rf.parts.combine(tables).equals(expected)
    assert rf.parts.combine(iter(tables)).equals(expected)
    assert rf.parts.combine(rf.parts.merge(tables)).equals(expected)


def test_facts_take_the_keywords_of_sums():
    options = {"unjudged": "bounds", "count_users": True, "part": "a"}
    facts = rf.parts.facts(RUN, truth=TRUTH, **options)
    assert facts == rf.parts.facts(RUN, truth=TRUTH)
    small = rf.parts.sums(RUN, "rr", truth=TRUTH, facts=facts, **options)
    assert rf.parts.combine(small)["rr_users"].item() == 2
    with pytest.raises(TypeError, match="part must be text"):
        rf.parts.facts(RUN, truth=TRUTH, part=1)


def _duplicates(frame, pandas):
    return pandas.concat([frame.to_pandas()] * 2)


def test_pandas_callers_are_told_cures_of_pandas():
    run, truth = RUN.to_pandas(), TRUTH.to_pandas()
    graded = TRUTH.with_columns(g=pl.Series([0, 1])).to_pandas()
    calls = [
        lambda: rf.Meter("judged@2").update(_duplicates(RUN, pandas), truth),
        lambda: rf.Meter("bpref").update(run, _duplicates(TRUTH, pandas)),
    ]

    def halves(meter):
        parts = []
        for user in (1, 2):
            some = run[run["user"] == user], graded[graded["user"] == user]
            meter.update(*some)
            parts.append(rf.parts.sums(some[0], "rr", truth=some[1], part=str(user)))
        return parts

    meter = rf.Meter("rr")
    parts = halves(meter)
    calls += [meter.compute, lambda: rf.parts.combine(parts), lambda: rf.parts.combine(iter(parts))]
    for call in calls:
        with pytest.raises(rf.RankingDataError) as raised:
            call()
        assert "pl." not in str(raised.value), raised.value
