"""rankframe on the conformance suite: each named convention as an option."""

import json
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

import rankframe as rf

USERS = {
    "with_relevant_item": "truth",
    "judged": "judged",
    "in_run": "run",
    "judged_and_in_run": "both",
    "judged_or_in_run": "all",
}
TIES = {
    "item_text_descending": "item",
    "item_number_descending": "item",  # of integers
    "item_text_ascending": "order",
    "row_order": "order",
}
OF_ONE = ("id", "why", "tables", "metric", "label", "expect", "derivation", "per_user")


def frames(case: dict[str, Any], tables: dict[str, Any]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make the frames, with ranks as the convention has them."""
    item = pl.Int64 if case["ties"] == "item_number_descending" else pl.String
    number = pl.Float64 if tables["run_by"] == "score" else pl.Int64
    columns = {"user": pl.String, "item": pl.String}
    run = pl.DataFrame(
        tables["run"], {**columns, tables["run_by"]: number}, orient="row", strict=False
    )
    truth = pl.DataFrame(
        tables["truth"], {**columns, "relevance": pl.Float64}, orient="row", strict=False
    )
    run, truth = run.cast({"item": item}), truth.cast({"item": item})
    if tables["run_by"] == "score":
        ties = case["ties"] or "item"
        run = run.sort("item") if ties == "item_text_ascending" else run
        run = rf.with_rank(
            run,
            ties=TIES.get(ties, ties),
            truth=truth if ties in ("pessimistic", "optimistic") else None,
            descending=case["score_order"] == "descending",
            preset={"single_precision": case["score_precision"] == 32},
            duplicates=case["duplicates"] or "error",
        )
    elif case["first_rank"] == 0:
        run = run.with_columns(pl.col("rank") + 1)
    return run if case["gaps"] == "keep" else rf.with_rank(run, close_gaps=True), truth


def numbers(cases: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, float | None]:
    """Compute the numbers of cases, with one call for those of equal tables and conventions."""
    groups: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for case, tables in cases:
        convention = {key: case[key] for key in case if key not in OF_ONE}
        groups.setdefault(json.dumps([tables, convention]), []).append((case, tables))
    return {key: number for group in groups.values() for key, number in _numbers(group)}


def _numbers(group: Any) -> Iterator[tuple[str, float | None]]:
    case, tables = group[0]
    run, truth = frames(case, tables)
    labels = dict.fromkeys(case["label"] for case, _ in group)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of users without a value
        result = rf.evaluate(run, *labels, truth=truth, average=case["average"], **_options(case))
    for case, _ in group:
        yield case["id"], result[case["label"]].item()


def compute(case: dict[str, Any], tables: dict[str, Any]) -> float | None:
    """Compute the number of a case."""
    return numbers([(case, tables)])[case["id"]]


def values(case: dict[str, Any], tables: dict[str, Any]) -> dict[str, float | None]:
    """Compute the value of each user who counts."""
    run, truth = frames(case, tables)
    result = rf.per_user(run, case["label"], truth=truth, **_options(case))
    return dict(zip(result["user"], result[:, -1], strict=True))


def _options(case: dict[str, Any]) -> dict[str, Any]:
    options = {key: case[key] for key in ("undefined", "relevant_at", "unjudged", "depth")}
    return options | {"users": USERS[case["users"]], "duplicates": case["duplicates"] or "error"}
