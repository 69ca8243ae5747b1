"""Small frames of parts: the call that made them, their keys, and the rules of whole tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal, NamedTuple, TypeAlias

import polars as pl

from rankframe._evaluation.system_metrics import SystemMetrics
from rankframe._evaluation.values import Values
from rankframe._request import keywords
from rankframe._request.keywords import Settings
from rankframe._tables import rules
from rankframe.errors import RankingDataError
from rankframe.parts import _groups, _numbers
from rankframe.parts._numbers import CALL, PART, SCHEMA, SEEN, Request
from rankframe.presets import Users

_VERSION = 1  # of the rows

#: What happens to a part that comes twice.
Repeated: TypeAlias = Literal["error", "last"]


class Call(NamedTuple):
    """What parts must share: their metrics and options, from which sums become means."""

    request: Request
    labels: dict[str, str]  # of the metrics of all lists
    grouped: bool  # whether a table beside run and truth has columns of by
    facts: dict[str, Any] | None
    options: dict[str, Any]  # keywords that change values


_IN_WORDS = {
    "request": "metrics or columns of by=",
    "facts": "facts",
    "labels": "metrics of all lists",
    "grouped": "columns of by= in the tables beside run and truth",
    "options": "options",
}


def encoded(call: Call) -> str:
    """Write a call as JSON."""
    types = _groups.as_text(pl.DataFrame(schema=call.request.types))
    request = {**call.request._asdict(), "types": types}
    return json.dumps({"version": _VERSION, **call._asdict(), "request": request})


def decoded(text: str) -> Call:
    try:
        record: dict[str, Any] = json.loads(text)
        if record.pop("version", None) == _VERSION:
            request = record.pop("request")
            types = dict(_groups.from_text(request.pop("types")).schema)
            return Call(Request(types=types, **request), **record)
        why = "made by another version of rankframe"
    except (ValueError, TypeError, LookupError, AttributeError):  # also of JSON
        why = f"the text of a row {CALL!r} is damaged"
    msg = f"parts: {why}: recreate them with rf.parts.sums"
    raise RankingDataError(msg)


def labels_of(metrics: SystemMetrics | None) -> dict[str, str]:
    """Return the labels of metrics of all lists, from which they can be made again."""
    names: dict[str, str] = {}
    for metric in [] if metrics is None else metrics.requested:
        if metric.call is None:
            msg = (
                f"metric {metric.name!r}: an expression of your own over all lists has no label "
                "for a part to store: register it with rf.register_metric, and request it by its "
                "label"
            )
            raise ValueError(msg)
        names[metric.name] = metric.call.label
    return names


def small_frame(plan: Values, settings: Settings, facts: dict[str, Any] | None) -> pl.LazyFrame:
    """Plan the call and the sums of a part."""
    inputs = plan.source.inputs.values()
    grouped = any(name in plan.by for table in inputs for name in table.by)
    request, options = _numbers.request_of(plan), shared_options(settings)
    call = Call(request, labels_of(plan.system_metrics), grouped, facts, options)
    numbers = _numbers.numbers_of_part(plan, counts_users=facts is not None)
    return pl.concat([_numbers.row_of(CALL, encoded(call)).lazy(), numbers])


def shared_options(settings: Settings) -> dict[str, Any]:
    """Return the options that change values; of tables only their names, and no columns."""
    plain = Settings()
    left_out = (*keywords.INPUTS, "columns", "preset")
    names = [f.name for f in fields(Settings) if f.name not in left_out]
    values = {name: getattr(settings, name) for name in names}
    options = {name: value for name, value in values.items() if value != getattr(plain, name)}
    options |= dict.fromkeys(sorted(settings.inputs - {"exclude"}), "a table")
    return dict(json.loads(json.dumps(options, default=repr)))


# ------------------------------------------------------------------ keys of parts


def single_parts(small: pl.DataFrame, repeated: Repeated) -> pl.DataFrame:
    """Keep each part of concatenated frames once, or raise: keys tell parts apart."""
    frames = small.with_columns(frame=(pl.col("kind") == CALL).cum_sum())
    parts = frames.filter(kind=PART)
    _check_keys(frames.filter(kind=CALL), parts)
    again = parts.filter(pl.col("metric").is_duplicated())
    if again.is_empty():
        return small
    if repeated == "error":
        _common(frames.filter(kind=CALL)["metric"].unique().to_list())  # the greater fault first
        raise _duplicate_part_error(again["metric"][0])
    rows = frames.select("frame", *(name for name in SCHEMA if SCHEMA[name] == pl.String))
    if not parts["frame"].unique().equals(frames["frame"].unique()) or rows.is_duplicated().any():
        msg = (
            "parts: the rows of several frames are mixed, so none of them is the last: pass a "
            "list of the frames, or concatenate them in order"
        )
        raise RankingDataError(msg)
    replaced = parts.filter(pl.col("frame") < pl.col("frame").max().over("metric"))
    dropped = parts.filter(pl.col("frame").is_in(replaced["frame"].to_list()))
    alone = dropped.join(replaced, on=["frame", "metric"], how="anti")
    if not alone.is_empty():
        first = replaced.filter(frame=alone["frame"][0])["metric"][0]
        msg = (
            f"parts: part {first!r} comes again, but its first sums are merged with those of part "
            f"{alone['metric'][0]!r}: keep the last one before you merge"
        )
        raise RankingDataError(msg)
    return frames.join(dropped, on="frame", how="anti", maintain_order="left").drop("frame")


def _check_keys(calls: pl.DataFrame, parts: pl.DataFrame) -> None:
    """Check that each part has its call, and each of several its key."""
    counts = [(int(rows["count"].sum()), kind) for rows, kind in ((calls, CALL), (parts, PART))]
    if counts[0][0] != counts[1][0] or calls.is_empty():
        numbers = " and ".join(f"{n} row{'' if n == 1 else 's'} {kind!r}" for n, kind in counts)
        msg = (
            f"parts: {numbers}, but each part has one of each, so rows are missing: recreate them "
            "with rf.parts.sums"
        )
        raise RankingDataError(msg)
    bare = parts.filter(metric="").height
    if bare and parts.height > 1:
        msg = (
            f"parts: {bare} of {parts.height} have no key, so a part that comes twice would "
            "not be noticed: give each its own, such as its day, in "
            "rf.parts.sums(…, part='2026-11-01')"
        )
        raise RankingDataError(msg)


def _duplicate_part_error(part: str) -> RankingDataError:
    return RankingDataError(
        f"parts: part {part!r} comes twice: leave one out, or keep the later one with "
        "repeated='last'"
    )


# ------------------------------------------------------------------ sums of all parts


def added(small: pl.DataFrame) -> pl.DataFrame:
    """Add up concatenated small frames of one call."""
    calls = small.filter(kind=CALL)
    common = _common(calls["metric"].unique(maintain_order=True).to_list())
    _check_rows(small, common, calls.height)
    call = _numbers.row_of(CALL, encoded(common), int(calls["count"].sum()))
    return pl.concat([call, _numbers.added(small)])


def _check_rows(small: pl.DataFrame, call: Call, frames: int) -> None:
    """Check that each frame has its row per group and metric, and its counts."""
    wanted = _numbers.rows_wanted(small, call.request, frames)
    seen = small.filter(kind=SEEN)["metric"].to_list()
    names = ["run", *(["users"] if call.facts else [])]
    names += [name for name in ("truth", "shared") if name in seen]
    wrong = [(SEEN, n, frames, seen.count(n)) for n in names if seen.count(n) != frames]
    wrong += wanted.select("kind", "metric", "frames", "rows").rows()
    if wrong:
        kind, metric, expected, rows = wrong[0]
        of = f" of {metric!r}" if metric else ""
        msg = (
            f"parts: {rows} of {expected} rows {kind!r}{of}, so a part lacks rows, or has them "
            "twice: recreate it with rf.parts.sums"
        )
        raise RankingDataError(msg)


def whole_tables_pass(numbers: pl.DataFrame, users: Users | None) -> bool:
    """Return whether sums of all parts, or of some, prove that the whole tables keep the rules."""
    try:
        raise_if_whole_is_broken(numbers, policy=users)
    except RankingDataError:
        return False
    return not numbers.is_empty()


def raise_if_whole_is_broken(
    small: pl.DataFrame, users: int | None = None, *, policy: Users | None = None
) -> None:
    """Raise if all parts together break a rule that no part alone can break.

    ``users`` is the number of users, if known, and ``policy`` the option that says which count.
    """
    rows = small.filter(kind=SEEN)
    seen = dict(zip(rows["metric"], rows["count"], strict=True))
    for name in ("run", "truth"):
        if seen.get(name) == 0:
            msg = f"parts, the {name}: it is empty in every part"
            raise RankingDataError(msg)
    rules.raise_if_counted_ungraded(seen, [of.removeprefix("values: ") for of in seen])
    if users is not None and users != seen["users"]:
        msg = (
            f"parts: they have {seen['users']} users, but the facts have {users}: a part is "
            "missing or duplicated, or a user is in several parts: combine each part once, and "
            "put all rows of a user into one part"
        )
        raise RankingDataError(msg)
    if seen.get("shared") == 0:
        msg = (
            "parts: no user of the run is in the truth of the same part: ids may differ, or run "
            "and truth were split differently: split both tables by user in the same way"
        )
        raise RankingDataError(msg)
    if seen.get("pairs") == 0 and policy != "run":
        msg = (
            "parts: no user of the run is in the truth in the same group: make the values of the "
            "columns of by= the same in both tables, such as days of one time zone"
        )
        raise RankingDataError(msg)
    groups = _numbers.groups_of(small)
    for of, number in seen.items():
        name = of.removeprefix("several: ")
        if name != of and groups[name].n_unique() > 1:
            _raise_if_diluted(name, number, misses_count=rules.counts_misses(policy))


def _raise_if_diluted(name: str, several: int, *, misses_count: bool) -> None:
    text = ""
    if several == 0 and misses_count:
        text = rules.split_users_text("truth")
    elif several and rules.is_fold(name):
        text = rules.shared_folds_text("truth")
    if text:
        msg = f"parts, column {name!r}: {text}"
        raise RankingDataError(msg)


def call_of(small: pl.DataFrame) -> Call:
    return decoded(small.filter(kind=CALL)["metric"].item())


def _common(texts: Sequence[str]) -> Call:
    """Return the call of all parts, or raise if they come from different ones."""
    first, *rest = map(decoded, texts)
    for other in rest:
        for name, what in _IN_WORDS.items():
            ours, theirs = (_untyped(getattr(call, name)) for call in (first, other))
            if ours != theirs:
                both = "" if name == "facts" else f", {_shown(ours)} and {_shown(theirs)}"
                msg = f"parts: {what} differ{both}: make all parts with the same call"
                raise RankingDataError(msg)
        # an empty part does not know the types of its means
        types = _groups.common_types(first.request.types, other.request.types)
        first = first._replace(request=first.request._replace(types=types))
    return first


def _untyped(value: object) -> object:
    return value._replace(types={}) if isinstance(value, Request) else value


def _shown(value: object) -> str:
    return repr((value.columns, value.by) if isinstance(value, Request) else value)


def means_of(small: pl.DataFrame, *, total: bool) -> pl.DataFrame:
    """Return the metrics, from sums that are already added up."""
    call = call_of(small)
    kinds = _numbers.kinds_of(call.labels)
    return _numbers.means_of_numbers(small, call.request, kinds, total=total)
