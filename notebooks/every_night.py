"""Judge the lists of a day: ``python every_night.py LAKE DAY``.

LAKE has the folders run/day=DAY and truth/day=DAY with Parquet files; the log, the trend and the
reports go there. Exit codes: 0 if the gate passes, 1 if it fails, 2 if the day cannot be judged.
"""

import os
import sys
from pathlib import Path

import polars as pl

import rankframe as rf

METRICS, KEYS = ("ndcg@10", "recall@10"), ("day", "model", "metric")
FEWEST, MOST_MISSED, FLOOR = 5, 0.05, 0.02  # users; share of users without a list; mean nDCG@10


def night(lake: Path, day: str) -> bool:
    run, truth = (table_of(lake, name, day) for name in ("run", "truth"))
    call = {"truth": truth, "by": "model", "relevance": "relevance"}  # renamed: an error
    rf.check(run, **call).collect()
    found = rf.health(run, **call).collect().filter(table="both")
    users = found.filter(what="users")["count"].min()
    missed = found.filter(what="missed_users")["share"].max()
    if users < FEWEST or missed > MOST_MISSED:
        why = f"users in both tables: {users}, without a list: {missed:.0%}: see that the day is "
        raise rf.RankingDataError(why + "complete, and both tables are of one day and time zone")
    made = rf.provenance(run, *METRICS, **call)
    rows = (
        rf.summarize(run, *METRICS, **call)
        .collect()
        .with_columns(
            day=pl.lit(day),
            missed=pl.col("num_missed") / pl.col("users"),
            conventions=pl.lit(made["conventions"]),
        )
    )
    log = logged(
        lake / "log.parquet", rows.select(*KEYS, "mean", "std", "users", "missed", "conventions")
    )
    rf.plot.trend(log, METRICS[0], floor=FLOOR).save(lake / "trend.svg")
    rf.report(run, *METRICS, **call).save(lake / f"{day}.html", static=True)
    decided = rf.gate(run, METRICS[0], at_least=FLOOR, **call).collect()
    print(day, *decided.select("model", "why").rows())
    if decided["why"].str.starts_with("no interval").any():
        raise rf.RankingDataError("the gate has no interval")
    return decided["passed"].all()


def table_of(lake: Path, name: str, day: str) -> pl.LazyFrame:
    files = [*(lake / name / f"day={day}").glob("*.parquet")]
    if not files:
        raise rf.RankingDataError(
            f"{name}: no file: run the job that writes it, then this one again"
        )
    return pl.scan_parquet(files, hive_partitioning=False)


def logged(path: Path, rows: pl.DataFrame) -> pl.DataFrame:
    """Put rows in the log: those of a day that comes again replace all rows of this day."""
    if path.exists():
        old = pl.read_parquet(path).join(rows, on="day", how="anti")
        rows = pl.concat([old, rows]).sort(KEYS)
    beside = path.with_suffix(f".{os.getpid()}")
    with beside.open("wb") as file:
        rows.write_parquet(file)
        file.flush()
        os.fsync(file.fileno())  # the rows are on the disk before the name is
    beside.replace(path)
    return rows


def main(lake: str, day: str) -> int:
    try:
        return 0 if night(Path(lake), day) else 1
    except Exception as error:  # no verdict; Python's own exit code is 1, that of a failed gate
        what_to_do = "Nothing is logged: mend the day, and run it again."
        print(f"{day}: {error}. {what_to_do}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
