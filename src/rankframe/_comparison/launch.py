"""Joins the outcomes of a primary metric and its guardrails to one decision per system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import polars as pl

from rankframe._comparison import comparison, decision, sentences, trials
from rankframe._comparison.trials import Size, Trial
from rankframe._evaluation import user_columns
from rankframe._evaluation.values import Values
from rankframe._request import keywords, labels
from rankframe._request.labels import RequestedMetric
from rankframe.errors import Problem, option

#: The value of ``metric`` in rows of a decision, and the p-value that rejects planned shares.
DECISION, MISMATCH = "decision", 0.001
_COUNT = f"{labels.PREFIX}users_of_group"


class Launch(NamedTuple):
    """The metric that must be better, the accepted losses of others, and planned shares."""

    primary: str
    guardrails: Mapping[str, Size]
    ratio: Mapping[Any, float] | None = None

    @property
    def margins(self) -> dict[str, Size]:
        """The margin of each metric: within one of 0, a system is better."""
        return {self.primary: 0.0, **self.guardrails}


def launch_of(
    primary: str | None,
    guardrails: Mapping[str, Size] | None,
    ratio: Mapping[Any, float] | None,
    *,
    paired: bool,
    others: Mapping[str, object],
) -> Launch | None:
    """Read a launch; ``others`` are the options that it replaces."""
    mappings = {"guardrails": guardrails, "ratio": ratio}
    lone = next((name for name, value in mappings.items() if value is not None), None)
    if primary is None and lone is None:
        return None
    other = next((name for name, value in others.items() if value not in (None, "fail")), None)
    msg = ""
    if primary is None:
        msg = (
            f"{option(str(lone))} without a primary metric: name the one that must be better, "
            f"such as {option('primary', 'ndcg@10')}"
        )
    elif other is not None:
        msg = (
            f"{option(other, others[other])} has no effect with {option('primary')}, which must be "
            f"better; {option('guardrails')} has the margins: leave out {option(other)}"
        )
    elif ratio is not None and paired:
        msg = (
            f"{option('ratio')} is of different users: leave it out, or pass "
            f"{option('paired', value=False)}"
        )
    if msg:
        raise ValueError(Problem(msg))
    for name, value in mappings.items():
        if not isinstance(cast("object", value), Mapping | None):
            msg = f"{option(name)} must be a mapping of names, not {value!r}"
            if name == "guardrails":
                msg += ": name the metric of each margin, as in METRIC:MARGIN on the command line"
            raise TypeError(Problem(msg))
    if not isinstance(cast("object", primary), str):
        msg = (
            f"{option('primary')} must be the label of one metric, such as 'ndcg@10', not "
            f"{type(primary).__name__} {primary!s}"
        )
        raise TypeError(Problem(msg))
    launch = Launch(cast("str", primary), dict(guardrails or {}), ratio)
    for name, size in launch.guardrails.items():
        if (bound := trials.bound_of(size)) is None or bound.size <= 0 or name == primary:
            why = "is primary, too" if name == primary else f"is {size!r}"
            msg = f"guardrail {name!r} {why}: name the loss > 0 that another metric may have"
            raise ValueError(msg)
    for name, share in (ratio or {}).items():
        if not (keywords.is_number(share) and 0 < share < float("inf")):
            msg = f"ratio of {name!r} must be a number > 0, not {share!r}"
            raise ValueError(msg)
    return launch


def check_metrics(launch: Launch, requested: Sequence[RequestedMetric]) -> None:
    """Check that each metric has a part in the decision, and an interval of its difference."""
    names = [metric.name for metric in requested]
    comparison.check_names("primary", [launch.primary], names)
    comparison.check_names("guardrails", launch.guardrails, names)
    for metric in requested:
        own = "primary" if metric.name == launch.primary else "guardrails"
        if metric.name not in launch.margins:
            msg = f"metric {metric.name!r} is neither primary nor a guardrail: leave it out"
            raise ValueError(msg)
        if metric.is_of_all_lists:
            floor = option("at_least", {metric.name: 0.5})
            msg = (
                f"{own}: metric {metric.name!r} is one number for all lists, which has no interval "
                f"of a difference: leave it out, and give it a floor in a call of its own: {floor}"
            )
            raise ValueError(Problem(msg))


def decision_of(outcomes: Iterable[str]) -> str:
    """Join the outcomes of all metrics, each by its own margin, which is 0 of the primary one."""
    shown = {*outcomes}
    if "worse" in shown:
        return "stop"
    if "untested" in shown:
        return "cannot be judged"
    return "ship" if shown == {"not worse"} else "hold"


def decided(rows: pl.LazyFrame, values: Values, launch: Launch, trial: Trial) -> pl.LazyFrame:
    """Put a row with the decision above those of each system and segment."""
    schema = rows.collect_schema()
    if launch.ratio is not None:
        types: dict[Any, Any] = {name: schema[name] for name in values.by}
        users = _users_of(values, total=trial.total).cast(types)
        rows = pl.concat([rows, users], how="diagonal")

    def join(table: pl.DataFrame) -> pl.DataFrame:
        counts: dict[tuple[Any, ...], int] = {}
        if launch.ratio is not None:
            of_groups = table.filter(pl.col(_COUNT).is_not_null())
            counts = {row[:-1]: row[-1] for row in of_groups.select(*values.by, _COUNT).rows()}
            _check_shares(
                launch.ratio, [*dict.fromkeys(table["baseline"].drop_nulls())], table[values.by[0]]
            )
            table = table.filter(pl.col(_COUNT).is_null()).drop(_COUNT)
        groups = table.partition_by(values.by, maintain_order=True)
        parts = [
            part for group in groups for part in _joined(group, values.by, counts, launch, trial)
        ]
        return pl.concat(parts) if parts else table

    return rows.map_batches(join, schema=schema)


def _check_shares(ratio: Mapping[Any, float], baselines: Sequence[Any], systems: pl.Series) -> None:
    """Check that each planned share is of a system."""
    present = [*dict.fromkeys([*baselines, *systems.drop_nulls()])]
    if present and (unknown := [name for name in ratio if name not in present]):
        msg = f"ratio: no system {unknown[0]!r}: leave it out; there are {present}"
        raise ValueError(msg)


def _users_of(values: Values, *, total: bool) -> pl.LazyFrame:
    """Count the users of each group who have a list, or their clusters."""
    rows = values.rows
    unit = pl.col(user_columns.CLUSTER if values.cluster else values.user)
    if user_columns.MISSED in rows.collect_schema():
        rows = rows.filter(~pl.col(user_columns.MISSED).fill_null(value=False))
    count = unit.n_unique().cast(pl.Int64).alias(_COUNT)
    groups = [values.by, values.by[:1]] if total else [values.by]
    return pl.concat([rows.group_by(by).agg(count) for by in groups], how="diagonal")


def _joined(
    group: pl.DataFrame,
    by: Sequence[str],
    counts: Mapping[tuple[Any, ...], int],
    launch: Launch,
    trial: Trial,
) -> Iterator[pl.DataFrame]:
    """Return the row of a decision, and the rows that it joins."""
    first = group.row(0, named=True)
    rows = {row["metric"]: row for row in group.iter_rows(named=True)}
    outcomes = {name: row[decision.OUTCOME] or "untested" for name, row in rows.items()}
    word = decision_of(outcomes.values())
    why = _reason(word, outcomes, rows, launch, trial)
    if launch.ratio is not None and first["baseline"] is not None:
        names = first["baseline"], first[by[0]]
        sizes = [counts.get((name, *(first[key] for key in by[1:])), 0) for name in names]
        if mismatch := _mismatch(names, sizes, launch.ratio):
            word, why = "cannot be judged", mismatch
            no_trust = pl.lit(f"{word}: sample-ratio mismatch")
            group = group.with_columns(passed=pl.lit(value=False), why=no_trust)
    row = dict.fromkeys(group.columns) | {name: first[name] for name in (*by, "baseline")}
    row |= {"metric": DECISION, "passed": word == "ship", "why": f"{word}: {why}"}
    yield pl.DataFrame([row], schema=group.schema)
    yield group


def _reason(
    word: str,
    outcomes: Mapping[str, str],
    rows: Mapping[str, Mapping[str, Any]],
    launch: Launch,
    trial: Trial,
) -> str:
    """Say in one sentence which metric decides."""
    primary, alpha = launch.primary, f"{trial.alpha:.4g}"
    if word == "ship":
        said = f"{primary} is better at {alpha}"
        if launch.guardrails:
            others = ", ".join(launch.guardrails)
            level = f"at {trial.alpha / 2:.4g}, one-sided"
            said += f"; within the margin {level}: {others}; all must hold, so nothing is corrected"
        return said + sentences.missed_by_baseline(rows[primary])
    sought = {"stop": "worse", "cannot be judged": "untested"}.get(word)
    ordered = sorted(outcomes, key=lambda name: name != primary)
    name = next(
        x for x in ordered if (outcomes[x] == sought if sought else outcomes[x] != "not worse")
    )
    if sought == "untested":
        return f"{name}: {rows[name]['why'].removeprefix('cannot be judged: ')}"
    if sought is None:
        shown = "" if name == primary else f"{primary} is better, but "
        return f"{shown}{name} is {outcomes[name]}: {rows[name]['why'].partition(': ')[2]}"
    if name == primary:
        return f"{name} is worse at {alpha}"
    return f"{name} is worse by more than its margin of {launch.guardrails[name]}"


def _mismatch(names: Sequence[Any], sizes: Sequence[int], ratio: Mapping[Any, float]) -> str | None:
    """Test planned shares by the exact binomial test, with the doubled tail."""
    from scipy import special

    if without := [name for name in names if name not in ratio]:
        msg = f"ratio: no share of {without[0]!r}: name each system, such as {{{without[0]!r}: 1}}"
        raise ValueError(msg)
    share = ratio[names[0]] / (ratio[names[0]] + ratio[names[1]])
    number = sum(sizes)
    below, above = special.bdtr(sizes[0], number, share), special.bdtrc(sizes[0] - 1, number, share)
    p = min(1.0, 2 * min(below, above if sizes[0] else 1.0))
    if not decision.shows(p, MISMATCH):
        return None
    planned = (number * share, number * (1 - share))
    numbers, shares = (
        " and ".join(f"{size:,.10g} of {name}" for name, size in zip(names, of_names, strict=True))
        for of_names in (sizes, planned)
    )
    return f"sample-ratio mismatch: {numbers} have a list, not {shares} as planned (p = {p:.2g})"
