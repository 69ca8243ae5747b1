"""rankframe on the conformance suite: each named convention as an option."""

import warnings
from typing import Any

import polars as pl

USERS = {
    "with_relevant_item": "truth",
    "judged": "judged",
    "in_run": "run",
    "judged_and_in_run": "both",
    "judged_or_in_run": "all",
}
SAME = ("undefined", "average", "relevant_at", "unjudged", "depth")


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
        ties = {"row_order": "order", "item_text_ascending": "order"}.get(ties, ties)
        run = run.rank.with_rank(
            ties="item" if ties.startswith("item") else ties,
            descending=case["score_order"] == "descending",
            preset={"single_precision": case["score_precision"] == 32},
            duplicates=case["duplicates"] or "error",
        )
    elif case["first_rank"] == 0:
        run = run.with_columns(pl.col("rank") + 1)
    return run if case["gaps"] == "keep" else run.rank.with_rank(close_gaps=True), truth


def compute(case: dict[str, Any], tables: dict[str, Any]) -> float | None:
    """Compute the number of a case."""
    run, truth = frames(case, tables)
    options = {key: case[key] for key in SAME} | {"duplicates": case["duplicates"] or "error"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of users without a value
        result = run.rank.evaluate(
            case["label"], truth=truth, users=USERS[case["users"]], **options
        )
    return result[:, -1].item()


def values(case: dict[str, Any], tables: dict[str, Any]) -> dict[str, float | None]:
    """Compute the value of each user who counts."""
    run, truth = frames(case, tables)
    options = {key: case[key] for key in SAME[2:]} | {"duplicates": case["duplicates"] or "error"}
    result = run.rank.per_user(
        case["label"],
        truth=truth,
        users=USERS[case["users"]],
        undefined=case["undefined"],
        **options,
    )
    return dict(zip(result["user"], result[:, -1], strict=True))
