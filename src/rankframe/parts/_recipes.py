"""Small frames of parts: their recipe, which turns numbers into metrics, and their keys."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import polars as pl

from rankframe._evaluation.system_metrics import OfLists
from rankframe._evaluation.values import Values
from rankframe._request import keywords
from rankframe._request.keywords import Settings
from rankframe._tables import rules
from rankframe._tables.table import Table
from rankframe.errors import RankingDataError
from rankframe.parts import _groups, _numbers, _partitions
from rankframe.parts._numbers import PART, RECIPE, SCHEMA, SEEN, Request, RequestedMean
from rankframe.presets import Users

_VERSION = 2  # of the entries

#: What happens to a part that comes twice.
Duplicates: TypeAlias = Literal["error", "last"]


class Recipe(NamedTuple):
    """What the numbers of small frames are, and how they become metrics."""

    request: Request
    labels: dict[str, str]  # of the metrics of all lists
    grouped: bool  # whether a table beside run and truth has columns of by
    facts: dict[str, Any] | None
    options: dict[str, Any]  # keywords that parts must share


def in_json(recipe: Recipe) -> str:
    request = recipe.request
    written = {
        **request._asdict(),
        "types": {name: _groups.type_in_json(dtype) for name, dtype in request.types.items()},
        "means": [
            {**mean._asdict(), "dtype": _groups.type_in_json(mean.dtype)} for mean in request.means
        ],
    }
    record = {"version": _VERSION, **recipe._asdict(), "request": written}
    return json.dumps(record, ensure_ascii=False)


def from_json(text: str) -> Recipe:
    record: dict[str, Any] = json.loads(text)
    if record.pop("version", None) != _VERSION:
        msg = "parts: another version of rankframe made them: make them again with rf.parts.sums"
        raise RankingDataError(msg)
    request: dict[str, Any] = record["request"]
    means: list[dict[str, Any]] = request["means"]
    read, types = _groups.type_from_json, request["types"].items()
    request["types"] = {name: read(dtype) for name, dtype in types}
    request["means"] = [RequestedMean(dtype=read(mean.pop("dtype")), **mean) for mean in means]
    record["request"] = Request(**request)
    return Recipe(**record)


# ------------------------------------------------------------------ numbers of a part


def of_recipe(recipe: Recipe) -> pl.DataFrame:
    """Write a recipe as the row of a small frame."""
    return _row_of(RECIPE, in_json(recipe))


def _row_of(entry: str, text: str) -> pl.DataFrame:
    return pl.DataFrame({"group": "", "entry": entry, "of": text, "number": 1.0}, schema=SCHEMA)


def labels_of(of_lists: OfLists | None) -> dict[str, str]:
    """Return the labels of metrics of all lists, from which they can be made again."""
    names: dict[str, str] = {}
    for metric in [] if of_lists is None else of_lists.requested:
        if metric.call is None:
            msg = (
                f"metric {metric.name!r}: an expression of your own over all lists has no label "
                "for a part to store: register it with rf.register_metric, and request it by its "
                "label"
            )
            raise ValueError(msg)
        names[metric.name] = metric.call.label
    return names


def small_frame(
    plan: Values,
    settings: Settings,
    facts: dict[str, Any] | None,
    units: pl.LazyFrame | None = None,
) -> pl.LazyFrame:
    """Plan the recipe and the numbers of a part; ``units`` as in ``numbers_of_part``."""
    request = _numbers.request_of(plan)
    inputs = plan.source.inputs.values()
    grouped = any(name in request.by for table in inputs for name in table.by)
    options = shared_options(settings)
    recipe = Recipe(request, labels_of(plan.of_lists), grouped, facts, options)
    return pl.concat([of_recipe(recipe).lazy(), _numbers.numbers_of_part(plan, units)])


def shared_options(settings: Settings) -> dict[str, str]:
    """Write the options that change values, except tables and columns."""
    plain = Settings()
    left_out = (*keywords.INPUTS, "columns", "preset")
    names = [f.name for f in fields(Settings) if f.name not in left_out]
    options = {name: repr(getattr(settings, name)) for name in names}
    options = {name: text for name, text in options.items() if text != repr(getattr(plain, name))}
    return {**options, **dict.fromkeys(sorted(settings.inputs - {"exclude"}), "a table")}


# ------------------------------------------------------------------ parts that come twice


class _Part(NamedTuple):
    """A part in one of several frames: its key, and what tells it from parts without a key."""

    frame: int
    part: str | None
    users: int  # the number of (group, user)
    hash: str


def of_part(tables: Sequence[Table], part: str | None) -> pl.LazyFrame:
    """Write the key of a part and a hash of its groups and users as the row of a small frame."""
    return _partitions.units_of(tables).map_batches(partial(_part_row, part=part), schema=SCHEMA)


def _part_row(units: pl.DataFrame, part: str | None) -> pl.DataFrame:
    """Hash the sorted text of all groups and users: stable in all versions of Polars."""
    untold = pl.selectors.binary().bin.encode("hex"), pl.selectors.duration().cast(pl.Int64)
    texts = units.with_columns(*untold).cast(pl.String)
    rows = texts.select(unit=pl.concat_str(pl.all().fill_null(""), separator="\0")).sort("unit")
    digest = hashlib.blake2b(digest_size=16)
    for slice_ in rows.iter_slices(100_000):
        digest.update(slice_.write_csv(include_header=False).encode())
    fingerprint = {"part": part, "users": units.height, "hash": digest.hexdigest()}
    return _row_of(PART, json.dumps(fingerprint, ensure_ascii=False))


def single_parts(small: pl.DataFrame, duplicates: Duplicates) -> pl.DataFrame:
    """Raise if a part comes twice in concatenated frames, or keep the last frame that has it."""
    _check_rows_of_parts(small)
    frames = small.with_columns(frame=(pl.col("entry") == RECIPE).cum_sum().cast(pl.Int64) - 1)
    rows = frames.filter(entry=PART)
    parts = [_Part(frame, **json.loads(of)) for frame, of in rows.select("frame", "of").rows()]
    again = dict(_repeated(parts))
    if not again:
        return small
    if duplicates == "error":
        _common(frames.filter(entry=RECIPE)["of"].unique().to_list())  # the greater fault first
        part, other = next(iter(again.items()))
        raise _told_twice(part, other)
    whole = rows["frame"].unique().equals(frames["frame"].unique())
    if not whole or frames.select("frame", "group", "entry", "of").is_duplicated().any():
        msg = (
            "parts: the rows of several frames are mixed, so none of them is the last: pass a "
            "list of the frames, or concatenate them in order"
        )
        raise RankingDataError(msg)
    _check_replaced(parts, list(again))
    return frames.filter(~pl.col("frame").is_in([part.frame for part in again])).drop("frame")


def _check_rows_of_parts(small: pl.DataFrame) -> None:
    """Check that each part has its recipe and its key."""
    recipes, keys = (small.filter(entry=name)["number"].sum() for name in (RECIPE, PART))
    if recipes != keys or not recipes:
        counts = " and ".join(
            f"{number:.0f} row{'' if number == 1 else 's'} {name!r}"
            for name, number in ((RECIPE, recipes), (PART, keys))
        )
        msg = (
            f"parts: {counts}, but each part has one of each: rows are missing, or another version "
            "made them: make them again with rf.parts.sums"
        )
        raise RankingDataError(msg)


def _check_replaced(parts: Sequence[_Part], replaced: Sequence[_Part]) -> None:
    """Check that frames which are left out have no other part."""
    old = {part.frame: part for part in reversed(replaced)}
    for part in parts:
        alone = part.part is None and not part.users  # without users, it adds nothing
        if part.frame in old and part not in replaced and not alone:
            msg = (
                f"parts: {_named(old[part.frame])} comes again, but its first sums are merged with "
                f"those of {_named(part)}: keep the last one before you merge"
            )
            raise RankingDataError(msg)


def _repeated(parts: Sequence[_Part]) -> Iterator[tuple[_Part, _Part]]:
    """Find the parts that a later frame has, too, each with the later one.

    Two keys decide whether parts are the same; where one has no key, their groups and users do.
    """
    by_key: dict[str, _Part] = {}
    by_hash: dict[str, _Part] = {}
    without_key: dict[str, _Part] = {}
    for part in reversed(parts):
        if part.part is None:
            other = by_hash.get(part.hash)
        else:
            other = by_key.get(part.part) or without_key.get(part.hash)
        if other is not None:
            yield part, other
        if part.part is not None:
            by_key[part.part] = part
        if part.users:  # parts without users are no part twice
            by_hash[part.hash] = part
            if part.part is None:
                without_key[part.hash] = part


def _told_twice(part: _Part, other: _Part) -> RankingDataError:
    if part.part is not None and part.part == other.part:
        return comes_twice(_named(part))
    users = "user" if part.users == 1 else f"{part.users} users"
    same = (
        f": frames {part.frame} and {other.frame} have the same {users} in the same groups: name "
        "parts that differ, such as days, with part= in sums; of a part that was computed again,"
    )
    rows = ". If the rows of users are split, put all rows of a user into one part"
    return comes_twice(_named(part), same, rows)


def comes_twice(part: str, why: str = ":", cure: str = "") -> RankingDataError:
    """Make the error for a part that comes twice."""
    msg = f"parts: {part} comes twice{why} leave one out, or keep the later one with "
    return RankingDataError(f"{msg}duplicates='last'{cure}")


def _named(part: _Part) -> str:
    return "a part without a key" if part.part is None else f"part {part.part!r}"


# ------------------------------------------------------------------ numbers of all parts


def added(small: pl.DataFrame) -> pl.DataFrame:
    """Add up the numbers of concatenated small frames."""
    recipes = small.filter(pl.col("entry") == RECIPE)
    numbers = _numbers.numbers_alone(small)
    if recipes.is_empty():
        return numbers
    number = pl.lit(recipes["number"].sum(), pl.Float64)
    common = of_recipe(_common(recipes["of"].unique().to_list())).with_columns(number=number)
    return pl.concat([common, numbers])


def keeps_rules(numbers: pl.DataFrame, plan: Values) -> bool:
    """Return whether numbers of all parts, or of some, prove that the whole tables keep them."""
    if numbers.is_empty():
        return False
    groups = _numbers.groups_of_numbers(numbers, _numbers.request_of(plan).types)
    try:
        raise_if_whole_is_broken(numbers, groups, policy=plan.source.tables.settings.users)
    except RankingDataError:
        return False
    return True


def raise_if_whole_is_broken(
    small: pl.DataFrame,
    groups: pl.DataFrame,
    users: int | None = None,
    *,
    policy: Users | None = None,
) -> None:
    """Raise if all parts together break a rule that no part alone can break.

    ``groups`` are all groups, ``users`` is the number of users, if known, and ``policy`` the option
    of the call that says which users count.
    """
    rows = small.filter(pl.col("entry") == SEEN)
    seen = dict(zip(rows["of"], rows["number"].cast(pl.Int64), strict=True))
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
    for of, number in seen.items():
        name = of.removeprefix("several: ")
        if name != of and groups[name].n_unique() > 1:
            _raise_if_diluted(name, number, misses_count=rules.counts_misses(policy))


def _raise_if_diluted(name: str, several: int, *, misses_count: bool) -> None:
    if several == 0:
        if not misses_count:
            return
        msg = (
            f"parts, column {name!r}: no user is in two of its groups, and the truth has no such "
            "column, so each user would count as a miss in every other group: join the column to "
            "the truth"
        )
        raise RankingDataError(msg)
    if rules.is_fold(name):
        msg = (
            f"parts, column {name!r}: users are in several folds, and the truth has no such "
            "column, so each fold would be judged by the whole truth: add the column to the truth, "
            "or rename it if one truth judges all folds"
        )
        raise RankingDataError(msg)


def recipe_of(small: pl.DataFrame) -> Recipe:
    return from_json(small.filter(pl.col("entry") == RECIPE)["of"].item())


def _common(texts: Sequence[str]) -> Recipe:
    """Return the recipe of all parts, or raise if they come from different calls."""
    first, *rest = map(from_json, texts)
    for other in rest:
        for name in ("request", "facts", "labels", "grouped", "options"):
            ours, theirs = getattr(first, name), getattr(other, name)
            if name == "request":
                ours, theirs = _untyped(ours), _untyped(theirs)
            if ours != theirs:
                what = _MEANT[name]
                both = "" if name == "facts" else f", {_shown(ours)} and {_shown(theirs)}"
                msg = f"parts: {what} differ{both}: make all parts with the same call"
                raise RankingDataError(msg)
        first = first._replace(request=_with_common_types(first.request, other.request))
    return first


def _with_common_types(request: Request, other: Request) -> Request:
    """Take the type of a mean from the part that knows it: in an empty one it may be Null."""
    types = _groups.common_types_of_groups(request.types, other.types)
    pairs = zip(request.means, other.means, strict=True)
    return request._replace(types=types, means=[b if a.dtype == pl.Null else a for a, b in pairs])


_MEANT = {
    "request": "metrics or columns of by=",
    "facts": "facts",
    "labels": "metrics of all lists",
    "grouped": "columns of by= in the tables beside run and truth",
    "options": "options",
}


def _shown(value: object) -> str:
    return repr((value.columns, value.by) if isinstance(value, Request) else value)


def _untyped(request: Request) -> Request:
    """Leave out the types, which an empty part may not know."""
    means = [mean._replace(dtype=pl.Null()) for mean in request.means]
    return request._replace(types=dict.fromkeys(request.types, pl.Null()), means=means)


def means_of(small: pl.DataFrame, *, total: bool) -> pl.DataFrame:
    """Return the metrics, from numbers that are already added up."""
    recipe = recipe_of(small)
    kinds = _numbers.kinds_of(recipe.labels)
    return _numbers.means_of_numbers(small, recipe.request, kinds, total=total)


def of_late_groups(
    absent: pl.DataFrame, late: pl.DataFrame, by: Sequence[str], lacking: Sequence[str]
) -> pl.DataFrame:
    """Return, for groups that appear late, the sums of users without a list in them.

    ``absent`` has these sums, grouped by the columns of ``by`` that the truth has.
    """
    texts = absent["group"].unique().to_list()
    kept = [name for name in by if name not in lacking]
    rows: list[tuple[str, str]] = []
    for values in _groups.groups_in_json(late):
        for text in texts:
            group = {**dict(zip(lacking, values, strict=True))}
            group |= dict(zip(kept, json.loads(text), strict=True))
            rows.append((text, json.dumps([group[name] for name in by], ensure_ascii=False)))
    pairs = pl.DataFrame(rows, {"group": pl.String, "late": pl.String}, orient="row")
    return absent.join(pairs, on="group").select(pl.col("late").alias("group"), *list(SCHEMA)[1:])
