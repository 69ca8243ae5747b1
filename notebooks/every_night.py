"""Judge the lists of a day: ``python every_night.py LAKE DAY``.

LAKE has the folders run/day=DAY and truth/day=DAY with Parquet files; the log, the trend and the
reports go there, the log last. Exit codes: 0 if the gate passes, 1 if it fails, 2 if the day cannot
be judged, and then it is not in the log.
"""

import json
import os
import sys
from pathlib import Path

import polars as pl

import rankframe as rf

METRICS, KEYS = ("ndcg@10", "recall@10"), ("day", "model", "metric")
#: The gate: least mean nDCG@10, greatest share of users without a list, systems that must be
#: present; the first of them is the baseline of the report.
GATE = {"at_least": 0.02, "most_missed": 0.05, "systems": ["live", "next"]}
FEWEST = 5  # users


def night(lake: Path, day: str) -> bool:
    run, truth = (table_of(lake, name, day) for name in ("run", "truth"))
    call = {"truth": truth, "by": "model", "relevance": "relevance"}  # renamed: an error
    rf.check(run, **call).collect()
    made = rf.provenance(run, *METRICS, **call)
    (lake / f"{day}.json").write_text(json.dumps(made, indent=2))
    rows = (
        rf.summarize(run, *METRICS, **call)
        .collect()
        .with_columns(
            day=pl.lit(day),
            missed=pl.col("num_missed") / pl.col("users"),
            conventions=pl.col("metric").replace_strict(made["conventions_of"]),
        )
        .select(*KEYS, "mean", "std", "users", "missed", "conventions")
    )
    decided = rf.gate(run, METRICS[0], **GATE, **call).collect()
    print(day, *decided.select("model", "why").rows())
    broken = decided.remove(pl.col("passed") | pl.col("why").str.starts_with("too low"))
    if broken.height:
        raise rf.RankingDataError(f"{broken['why'][0]}: see that the day is complete")
    if decided["users"].min() < FEWEST:
        raise rf.RankingDataError(f"fewer than {FEWEST} users: see that the day is complete")
    log = with_day(lake / "log.parquet", rows)
    rf.plot.trend(log, METRICS[0], floor=GATE["at_least"]).save(lake / "trend.svg")
    page = rf.report(run, *METRICS, baseline=GATE["systems"][0], **call)
    page.save(lake / f"{day}.html", static=True)
    write(lake / "log.parquet", log)  # last: a day that stops above is not in it
    return decided["passed"].all()


def table_of(lake: Path, name: str, day: str) -> pl.LazyFrame:
    files = [*(lake / name / f"day={day}").glob("*.parquet")]
    if not files:
        raise rf.RankingDataError(
            f"{name}: no file: run the job that writes it, then this one again"
        )
    try:
        schemas = [pl.read_parquet_schema(file) for file in files]
    except Exception as error:
        raise rf.RankingDataError(f"{name}: a file cannot be read: {error}") from error
    if any(schema != schemas[0] for schema in schemas):
        raise rf.RankingDataError(f"{name}: its files differ in columns or types: write them again")
    return pl.scan_parquet(files, hive_partitioning=False)


def with_day(path: Path, rows: pl.DataFrame) -> pl.DataFrame:
    """Put rows in the log: rerunning a day replaces its rows."""
    if not path.exists():
        return rows
    old = pl.read_parquet(path).join(rows, on="day", how="anti")
    return pl.concat([old, rows]).sort(KEYS)


def write(path: Path, log: pl.DataFrame) -> None:
    """Write beside and rename: a reader, or a killed job, sees the old log or the new one."""
    beside = path.with_suffix(".new")
    with beside.open("wb") as file:
        log.write_parquet(file)
        file.flush()
        os.fsync(file.fileno())  # the rows are on the disk before the name is
    beside.replace(path)


def main(lake: str, day: str) -> int:
    try:
        return 0 if night(Path(lake), day) else 1
    except (Exception, pl.exceptions.PanicException) as error:  # else Python exits with 1: a gate
        what_to_do = "Nothing is logged: mend the day, and run it again."
        print(f"{day}: {error}. {what_to_do}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:]))
