"""Turn any frame into a LazyFrame, and a result into the caller's kind of frame."""

import functools
import importlib
import inspect
import math
import os
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeGuard, TypeVar, cast

import polars as pl

from rankframe import _sizes, errors
from rankframe._request import wrong_keywords
from rankframe._request.types import Frame, FrameT, Truth, Types
from rankframe.errors import RankingDataError

if TYPE_CHECKING:
    import pandas as pd
_FEW_LEVELS = 8  # an error shows all levels of a smaller Enum
#: Frames of these packages are read as they are; Spark's would be collected.
_READ_OTHERWISE = {"polars", "pandas", "pyspark"}

#: What reads a file, by its suffix.
_READERS = {
    ".csv": "pl.read_csv",
    ".run": "rankframe.trec.read_run",
    ".qrels": "rankframe.trec.read_qrels",
}

VerbT = TypeVar("VerbT", bound=Callable[..., Any])
PolarsT = TypeVar("PolarsT", bound="pl.DataFrame | pl.LazyFrame")


class Opened(NamedTuple):
    """The arguments of a verb, and what is done with its result."""

    args: Sequence[Any]
    options: dict[str, Any]
    close: Callable[[Any], Any]


#: What opens the arguments of a verb: ``arguments``, which is above this module.
openers: list[Callable[[str, Sequence[str], Sequence[Any], dict[str, Any]], Opened]] = []


def takes_any_frame(verb: VerbT) -> VerbT:
    """Let a verb take all that holds runs and a truth: each is read once, at the start.

    They are tables that export Arrow, dicts of users, and frames with lists of items. Metrics may
    be in a list.
    """
    code = inspect.unwrap(verb).__code__
    names = code.co_varnames[: code.co_argcount]

    @wrong_keywords.checked
    @functools.wraps(verb)
    def call(*args: Any, **options: Any) -> Any:
        with errors.one_call(), cures_of_caller(args, options):
            own = {name: _of_arrow(options[name]) for name in options}
            opened = openers[0](verb.__name__, names, [*map(_of_arrow, args)], own)
            return opened.close(verb(*opened.args, **opened.options))

    return cast("VerbT", call)


def takes_arrow(verb: VerbT) -> VerbT:
    """Let a verb take tables that export Arrow, and read other values itself."""

    @wrong_keywords.checked
    @functools.wraps(verb)
    def call(*args: Any, **options: Any) -> Any:
        with errors.one_call():
            own = {name: _of_arrow(options[name]) for name in options}
            with cures_of_caller(args, options):
                return verb(*map(_of_arrow, args), **own)

    return cast("VerbT", call)


@contextmanager
def cures_of_caller(args: Sequence[Any], options: Mapping[str, Any]) -> Generator[None]:
    """Let the code in an error call the caller's tables: each in Polars or in pandas."""
    try:
        yield
    except (ValueError, TypeError) as error:
        first = next((table for table in args if is_frame(table) or is_dict(table)), None)
        tables: dict[str, tuple[str, str]] = {}
        for name in ("run", "judged", "lists", *options, "truth"):
            table = options[name] if is_frame(options.get(name)) else first
            frames: Iterable[Any] = table.values() if is_dict(table) else [table]
            tables[name] = name, "pandas" if any(map(_is_pandas, frames)) else "polars"
        if is_dict(first) and any(map(is_frame, first.values())):
            model = f", model={options['model']!r}" if options.get("model") else ""
            tables["run"] = f"rf.runs.stack(runs{model})", tables["run"][1]
        problem = errors.Problem(error, tables)
        if problem != errors.Problem(error):
            error.args = (problem,)
        raise


def frames_of_parts(parts: Any) -> list[Any]:
    """List the frames of one or several parts, with those that export Arrow as Polars."""
    parts = _of_arrow(parts)
    return [parts] if is_frame(parts) else [*map(_of_arrow, parts)]


def _of_arrow(value: Any) -> Any:
    """Read a table that exports Arrow, or those in a dict; leave any other value as it is."""
    if isinstance(value, pl.DataFrame | pl.LazyFrame | str | None):
        return value
    if isinstance(value, Mapping):
        values = cast("Mapping[object, object]", value)
        if not any(map(_exports_arrow, values.values())):
            return values
        return {n: _read_arrow(v) if _exports_arrow(v) else v for n, v in values.items()}
    return _read_arrow(value) if _exports_arrow(value) else value


def _read_arrow(table: Any) -> pl.DataFrame:
    """Read a table that exports Arrow: dictionaries become text, HUGEINT Int64 if it fits."""
    try:
        frame = pl.DataFrame(table)
    except pl.exceptions.DuplicateError as error:
        msg = f"{kind(table)}: two columns have one name ({error}): rename one"
        raise RankingDataError(msg) from None
    except pl.exceptions.PanicException as error:
        msg = f"{kind(table)}: {why_unreadable(error)}"
        raise RankingDataError(msg) from None
    for name, dtype in frame.schema.items():
        if isinstance(dtype, pl.Categorical | pl.Enum):
            frame = frame.with_columns(pl.col(name).cast(pl.String))
        elif isinstance(dtype, pl.Decimal) and dtype.scale == 0:
            numbers = frame[name].cast(pl.Int64, strict=False)
            if numbers.null_count() == frame[name].null_count():  # all fit
                frame = frame.with_columns(numbers)
    return frame


def why_unreadable(panic: BaseException) -> str:
    """Tell why polars panics at a table: a column has a type that it does not read."""
    why = str(panic).rpartition("ErrString(")[2].partition(". Hint")[0].strip("\"'()")
    return (
        f"polars cannot read a column ({why}): leave it out, or cast it, such as an INTERVAL to "
        "text"
    )


def _exports_arrow(value: object) -> bool:
    is_array = hasattr(value, "__array__") and not hasattr(value, "schema")
    if is_array or not hasattr(value, "__arrow_c_stream__"):
        return False
    packages = {base.__module__.partition(".")[0] for base in type(value).__mro__}
    return packages.isdisjoint(_READ_OTHERWISE)


def to_lazy(frame: Truth, table: str, *, also: str = "") -> pl.LazyFrame:
    """Turn the caller's frame into a LazyFrame; ``table`` is its name in errors."""
    return to_polars(frame, table, also=also).lazy()


def to_polars(frame: Truth, table: str, *, also: str = "") -> pl.DataFrame | pl.LazyFrame:
    """Turn the caller's frame into one of Polars, eager if it is."""
    if isinstance(frame, pl.LazyFrame):
        return frame.clone()  # what we make keeps the plan, not the caller's object
    if isinstance(frame, pl.DataFrame):
        return frame
    if _is_pandas(frame):
        return _from_pandas(frame, table)
    msg = (
        f"the {table} must be a {also}polars DataFrame or LazyFrame, a pandas DataFrame, or a "
        f"table that exports Arrow, not {kind(frame)}{_cure(frame, table)}"
    )
    raise TypeError(msg)


def _cure(frame: object, table: str) -> str:
    """Name the one call that makes a frame, as the rest of a sentence."""
    rows: Any = frame if type(frame) in (list, tuple) else ()
    first = next(iter(rows), None)
    if is_frame(first):
        return ': name the runs, {"old": old, "new": new}'
    if len(getattr(frame, "shape", ())) == 2 or isinstance(first, list | tuple):
        if table == "frame of lists":
            return ": from_lists reads {user: [items]}, or a frame of a list per user"
        both = ": pass rf.from_scores(scores), and the truth as truth=rf.from_grades(grades)"
        return "" if "=" in table else both
    package = type(frame).__module__.partition(".")[0]
    if isinstance(frame, str | os.PathLike):
        reader = _READERS.get(Path(cast("str", frame)).suffix, "pl.read_parquet")
        return f": read the file, as in {reader}(path)"
    if isinstance(frame, set | frozenset):
        return ": a set has no order; rf.from_grades makes a truth of {user: {items}}"
    if isinstance(frame, Mapping):
        return ": rf.from_grades makes one of {user: {items}}, pl.DataFrame of columns"
    if isinstance(frame, list | tuple) or hasattr(frame, "__arrow_c_stream__"):
        return "" if package == "pyspark" else ": pl.DataFrame(…) makes one"
    names = ("compute", "collect", "to_polars", "pl", "to_table")
    calls = [name for name in names if hasattr(frame, name)]
    return f": call .{calls[0]}()" if calls and package != "pyspark" else ""


def has_lists(frame: Frame, column: str) -> bool:
    """Whether each row of a column is a list."""
    if not _is_pandas(frame):
        frame = cast("pl.DataFrame | pl.LazyFrame", frame)
        return isinstance(frame.collect_schema().get(column), pl.List | pl.Array)
    # two columns of one name are refused where the frame is read
    if [*frame.columns].count(column) != 1 or frame[column].dtype != object:
        return False
    first = frame[column].dropna().head(1)
    return any(isinstance(v, list | tuple) or getattr(v, "shape", ()) for v in first)


def renamed(frame: FrameT, names: Mapping[str, str]) -> FrameT:
    """Give columns other names."""
    if _is_pandas(frame):
        return cast("FrameT", frame.rename(columns=dict(names)))
    return cast("FrameT", cast("pl.DataFrame", frame).rename(names, strict=False))


def has_sets(frame: Frame, column: str) -> bool:
    """Whether a column of pandas has sets, which become lists in any order."""
    if not _is_pandas(frame) or column not in frame.columns:
        return False
    return any(isinstance(value, set | frozenset) for value in frame[column])


def column_names(frame: Truth, table: str) -> list[str]:
    """Return the columns that a frame has as a LazyFrame, without turning it into one."""
    if isinstance(frame, pl.DataFrame):
        return frame.columns
    if _is_pandas(frame):
        return [*map(str, frame.columns), *_levels(frame)]
    return to_lazy(frame, table).collect_schema().names()


def to_caller_type(
    result: pl.LazyFrame,
    like: FrameT,
    *,
    beside: "Iterable[Truth | None]" = (),
    sort: Sequence[str] = (),
    new_columns: Sequence[str] = (),
) -> FrameT:
    """Return the result as the caller's kind of frame, an eager one sorted by ``sort``.

    ``beside`` has the other frames of the call. If the rows are the caller's and the result only
    adds ``new_columns``, a pandas frame keeps its index and the types of its columns.
    """
    if isinstance(like, pl.LazyFrame):
        return cast("FrameT", with_names_as_text(result, like))
    ordered = with_names_as_text(result.sort(sort, nulls_last=True) if sort else result, like)
    frame = collected(ordered, _number_of_rows([like, *beside]))
    keep_notes(frame, ordered)
    if not _is_pandas(like):
        return cast("FrameT", frame)
    if not new_columns:
        texts = {name for name, dtype in frame.schema.items() if dtype == pl.String}
        categories = dict.fromkeys(texts.intersection(_categories(like)), "category")
        converted = _to_pandas(_narrowed(frame)).astype(categories)
        if (order := order_of(frame)) is not None:
            note_order(converted, order[0], [*order[1].categories])
        return cast("FrameT", converted)
    kept = like[[name for name in like.columns if str(name) in frame.columns]]
    new = {name: frame[name].to_pandas().to_numpy() for name in new_columns}
    return cast("FrameT", kept.assign(**new))


def note_order(stacked: Frame, column: str, names: Sequence[str]) -> None:
    """Note on a table of several runs the order of their names, which ``column`` has."""
    order = (column, tuple(names))
    if isinstance(stacked, pl.DataFrame | pl.LazyFrame):
        stacked._rankframe_order = order  # type: ignore[union-attr]  # pyright: ignore
    else:
        stacked.attrs["rankframe_order"] = order


def order_of(frame: Frame) -> tuple[str, pl.Enum] | None:
    """Return the column of the names of runs, if their order was noted, and its type inside."""
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        order = getattr(frame, "_rankframe_order", None)
    else:
        order = getattr(frame, "attrs", {}).get("rankframe_order")
    return None if order is None else (order[0], pl.Enum(order[1]))


def note_lists(table: pl.DataFrame) -> pl.DataFrame:
    """Note on a table of a dict that its lists lie together, with no item twice."""
    table._rankframe_lists = True  # type: ignore[attr-defined]  # pyright: ignore
    return table


def are_lists_apart(table: pl.DataFrame | None) -> bool:
    """Whether this was noted."""
    return getattr(table, "_rankframe_lists", False)


def keep_notes(table: Frame, source: Frame) -> None:
    """Note on a table that was made of another one what a verb noted on that."""
    for name in ("_rankframe_order", "_rankframe_tables", "_rankframe_segments"):
        if hasattr(source, name):
            setattr(table, name, getattr(source, name))


def with_order_of_names(frame: PolarsT, column: str, dtype: pl.Enum) -> PolarsT:
    """Let a column of names have their order; leave it as text if other names came in."""
    try:
        return cast("PolarsT", frame.with_columns(pl.col(column).cast(dtype)))
    except pl.exceptions.PolarsError:
        return frame


def with_names_as_text(result: FrameT, like: Frame) -> FrameT:
    """Turn the names of runs into text, as in the caller's table; inside, their type has an order.

    They are in columns of the result's own, such as ``baseline``, too.
    """
    order = order_of(like)
    if order is None or not isinstance(result, pl.DataFrame | pl.LazyFrame):
        return result
    column, dtype = order
    others = {*column_names(like, "run")} - {column}
    number = len(dtype.categories)
    names = {  # of a table beside, other names may have come in
        name: own
        for name, own in result.collect_schema().items()
        if isinstance(own, pl.Enum) and name not in others
        if own.categories[:number].equals(dtype.categories)
    }
    text = result.with_columns(pl.col(*names).cast(pl.String)) if names else result
    if column in names:
        note_order(text, column, [*names[column].categories])
    return cast("FrameT", text)


def collected(
    plan: pl.LazyFrame, rows: float, *, unoptimized: int = _sizes.ROWS_UNOPTIMIZED
) -> pl.DataFrame:
    """Run the plan of an eager call, with the engine and the flags for its number of rows."""
    flags = pl.QueryOptFlags.none() if rows <= unoptimized else pl.QueryOptFlags()
    return plan.collect(engine=_engine(rows), optimizations=flags)


def in_one_step(
    plan: pl.LazyFrame, function: Callable[[pl.DataFrame], pl.DataFrame], schema: Types
) -> pl.LazyFrame:
    """Call a function on all rows and columns of a plan."""
    return plan.map_batches(
        function,
        schema=dict(schema),
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
    )


def _number_of_rows(frames: "Iterable[Truth | None]") -> float:
    """Count the rows of all frames; those of a LazyFrame may be any number."""
    present = [frame for frame in frames if frame is not None]
    return sum([math.inf if isinstance(frame, pl.LazyFrame) else len(frame) for frame in present])


def _engine(rows: float) -> Literal["auto", "in-memory"]:
    """Choose the engine of an eager call: the caller's choice, if there is one."""
    chosen = os.environ.get("POLARS_ENGINE_AFFINITY", "auto") != "auto"
    return "in-memory" if rows <= _sizes.ROWS_IN_MEMORY and not chosen else "auto"


def type_words(dtype: pl.DataType, other: pl.DataType) -> str:
    """Name the type of a column beside another one; of a long Enum, the level that differs."""
    if not isinstance(dtype, pl.Enum) or len(dtype.categories) <= _FEW_LEVELS:
        return str(dtype)
    levels = dtype.categories.to_list()
    beside = other.categories.to_list() if isinstance(other, pl.Enum) else []
    pairs = enumerate(zip_longest(levels, beside))
    place = next((place for place, (own, theirs) in pairs if own != theirs), 0)
    level = f"number {place + 1} is {levels[place]!r}" if place < len(levels) else f"no {place + 1}"
    return f"an Enum of {len(levels):,} levels ({level})"


def is_dict(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Whether a value is a dict; SciPy's DOK matrix is one that is no table of users."""
    return not hasattr(value, "tocsr") and isinstance(value, Mapping)


def is_frame(value: object) -> TypeGuard[Frame]:
    """Whether a value is a table of Polars or pandas."""
    return isinstance(value, pl.DataFrame | pl.LazyFrame) or _is_pandas(value)


def kind(frame: object) -> str:
    """Return the name of an unsupported type, with its package."""
    package = type(frame).__module__.partition(".")[0]
    name = type(frame).__name__
    if package == "pyspark":
        return (
            f"{package} {name}, which rankframe.spark takes in evaluate, per_user, summarize and "
            "compare; other statistics take its per_user(…).toPandas(), a table of values"
        )
    return name if package == "builtins" else f"{package} {name}"


def _is_pandas(frame: object) -> TypeGuard["pd.DataFrame"]:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(frame, pandas.DataFrame)


def _from_pandas(frame: "pd.DataFrame", table: str) -> pl.DataFrame:
    """Convert, with the named levels of the index as columns; NaN becomes null.

    Names of categories become text, as those of an Arrow dictionary do.
    """
    labels = [str(label) for label in frame.columns]
    for label in labels:
        if labels.count(label) > 1:
            msg = f"{table}, column {label!r}: two columns have this name"
            raise RankingDataError(msg)
    source = frame.set_axis(labels, axis="columns")
    sparse = [label for label in labels if str(source[label].dtype).startswith("Sparse")]
    dense = {label: cast("Any", source[label]).sparse.to_dense() for label in sparse}
    source = source.assign(**dense)
    coded = [*_categories(source)]
    plain: pd.DataFrame = source.assign(**dict.fromkeys(coded, 0))
    try:
        texts = {label: _text_of_codes(source[label]) for label in coded}
        converted = pl.from_pandas(plain, include_index=bool(_levels(frame))).with_columns(**texts)
        converted = converted.with_columns(pl.col(pl.Categorical).cast(pl.String))  # of the index
    except Exception:
        for label in labels:
            try:
                pl.from_pandas(source[[label]])
            except Exception as error:  # noqa: BLE001  (whatever pandas or pyarrow says of it)
                why = str(error).partition("\n")[0]
                msg = f"{table}, column {label!r}: its values have no common polars type ({why})"
                raise RankingDataError(msg) from None
        raise
    if (order := order_of(frame)) is not None and order[0] in converted.columns:
        converted = with_order_of_names(converted, *order)
    # pandas has no type for "no value at all", and calls it object or float
    untyped = [
        name for name in labels if source[name].dtype == object or name in coded or frame.empty
    ]
    return converted.with_columns(
        pl.col(name).cast(pl.Null) for name in untyped if converted[name].null_count() == len(frame)
    )


def _categories(frame: "pd.DataFrame") -> Iterable[str]:
    """Name the columns of categories."""
    return (str(label) for label, dtype in frame.dtypes.items() if str(dtype) == "category")


def _text_of_codes(column: "pd.Series[Any]") -> pl.Series:
    """Copy each name by its code: Polars' own conversion codes the name of every row again."""
    pa: Any = importlib.import_module("pyarrow")
    return pl.Series(pa.Array.from_pandas(column).dictionary_decode())


def _narrowed(frame: pl.DataFrame) -> pl.DataFrame:
    """Cast 128-bit integers, the common type of Int64 and UInt64, to a type that pandas has."""
    for name, dtype in frame.schema.items():
        if isinstance(dtype, pl.Int128 | pl.UInt128):
            least = frame[name].min()
            small = isinstance(least, int) and least < 0
            frame = frame.with_columns(pl.col(name).cast(pl.Int64 if small else pl.UInt64))
    return frame


def _to_pandas(frame: pl.DataFrame) -> "pd.DataFrame":
    """Convert column by column.

    To convert a frame, Polars waits for its threads, and keeps Python's lock. A thread that checks
    the rows of another call waits for this lock: two calls would wait for ever.
    """
    pa: Any = importlib.import_module("pyarrow")
    table = pa.table([column.to_arrow() for column in frame], names=frame.columns)
    return cast("pd.DataFrame", table.to_pandas(date_as_object=False))


def _levels(frame: "pd.DataFrame") -> list[str]:
    """Name the index levels that serve as columns: all, if they have names of their own."""
    names = [str(name) for name in frame.index.names if name is not None]
    usable = len(names) == frame.index.nlevels and not set(names) & set(map(str, frame.columns))
    return names if usable else []
