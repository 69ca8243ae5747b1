"""The options of a call: which column plays which role, and the conventions.

Stage of the pipeline: the keywords of a call are read and checked once, at its start, and passed on
as one frozen record, ``Settings``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from numbers import Real
from typing import Any, Literal, TypeAlias, TypedDict, TypeGuard, TypeVar, cast, get_args

from rankframe._request.types import Frame
from rankframe.errors import Problem, keyword, option, wording
from rankframe.presets import PRESETS, Defaults, Preset, PresetName, Users

#: The tables besides run and truth: the catalogue, past interactions, and the rows to remove
#: from the lists.
InputName: TypeAlias = Literal["items", "history", "exclude"]
INPUTS: tuple[InputName, ...] = get_args(InputName)

Unjudged: TypeAlias = Literal["miss", "drop", "bounds"]

#: What happens if a list has an item several times.
Duplicates: TypeAlias = Literal["error", "first", "occupy"]

#: What statistics count: users without a list, and, for gates, users with a hit.
Count: TypeAlias = Literal["missed", "hits"]

ChoiceT = TypeVar("ChoiceT", bound=str | None)


class Columns(TypedDict, total=False):
    """The columns that play the roles, if they have other names."""

    model: str | None
    """The system that made the list; None ignores a column ``model`` of the run."""
    user: str | Sequence[str]
    """The user, or the query: the name of a column, or a list of names whose values make one."""
    item: str
    """The item, or the document."""
    rank: str
    """The place in the list; 1 is the first."""
    relevance: str
    """The grade of a judgment."""
    score: str
    """The score of the run, from which ranks are made."""
    subtopic: str
    """The subtopic of a judgment, for metrics of diversity."""
    truth_user: str | Sequence[str]
    """The user in the truth, if it has another name there."""
    truth_item: str
    """The item in the truth, if it has another name there."""


class IdColumns(TypedDict, total=False):
    """The columns of interactions."""

    user: str | Sequence[str]
    item: str


class ListColumns(TypedDict, total=False):
    """The columns of a table of lists, or of a dict."""

    model: str | None
    user: str | Sequence[str]
    item: str
    score: str


class RunColumns(TypedDict, total=False):
    """The columns of a run in a file of TREC."""

    user: str
    item: str
    rank: str
    score: str


class TruthColumns(TypedDict, total=False):
    """The columns of a truth in a file of TREC."""

    user: str
    item: str
    relevance: str
    subtopic: str


class Options(Columns, total=False):
    """The keywords of ``evaluate`` that verbs built on it pass on, with those of ``Columns``."""

    preset: PresetName | Preset | None
    """The conventions of a tool, such as ``"ranx"``; or a dict with some of the keys ``users``,
    ``undefined``, ``defaults`` and ``single_precision``. A keyword that you pass takes precedence,
    even None, and so does a parameter in a label.
    """
    users: Users | None
    """Which users count: ``"truth"``, those with a relevant item (a user missing from the run
    scores 0); ``"judged"``, those with any row in the truth; ``"both"``, those in run and truth;
    ``"run"``; or ``"all"``. By default ``"truth"``, or ``"run"`` if nothing is judged. If every
    judged row of a judged table has a rank, all users count, with a warning: a user without a
    relevant item has the worst value of each metric.
    """
    undefined: float | None
    """The value of a metric where it is undefined, as for a user without a relevant item. By
    default null, and the mean leaves the user out.
    """
    weights: str | None
    """The column of the truth or the run with the weight of each user: ≥ 0, for the mean Σ
    weight·value / Σ weight. It has one value per user, or per user and group if the truth has
    columns of ``by``. By default all weights are equal.
    """
    average: str
    """Which mean: ``"users"``, over users; ``"pooled"``, Σ numerators / Σ denominators over users
    (micro-average), for precision, recall, F, E and R-precision; or a column, such as
    ``"dataset"``: the mean of the means of its groups. A user counts once in each group. By default
    "users".
    """
    relevant_at: float | None
    """The lowest grade that counts as relevant in binary metrics; > 0. By default every grade > 0.
    A label with ``rel=``, such as ``"ap(rel=2)"``, has its own threshold, which does not change who
    counts.
    """
    unjudged: Unjudged
    """What happens to items of the lists without a judgment, or with a negative grade. ``"miss"``:
    they count as not relevant. ``"drop"``: they are removed after ``exclude``, and the items below
    move up (trec_eval ``-J``). ``"bounds"`` is ``"miss"`` with ``<metric>_low`` and
    ``<metric>_high``: the least and the greatest value that the metric could have if these items
    were judged, with any grade up to the highest of the truth. By default ``"miss"``.
    """
    duplicates: Duplicates
    """What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
    keeps its best place, and the items below its other places move up. ``"occupy"`` keeps its best
    place, and its other places stay empty. This happens before ``exclude``, ``depth`` and
    ``unjudged``. ``"error"`` checks relevant rows, and all rows if a metric or ``chance`` counts
    rows, or if ranks come from scores. By default ``"error"``.
    """
    depth: int | None
    """Cut the lists to this depth first, after ``exclude``; the ideal list stays whole (trec_eval
    ``-M``).
    """
    items: Frame | None
    """The catalogue: one row per item, with columns such as genres (a list of strings), a provider
    or a vector (a list of numbers).
    """
    history: Frame | None
    """Past interactions (user, item), for popularity (in distinct users), novelty and profiles.
    """
    exclude: Frame | None
    """Rows to remove from the lists, one per user and item, such as past interactions; a column of
    ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. An
    excluded item that is in the truth is a miss.
    """


class StatisticsOptions(Options, total=False):
    """The keywords of ``evaluate``, with two of a table of values: one row per user, no items."""

    higher_is_better: Mapping[str, bool | None] | None
    """For a table of values: whether higher values of a column are better, such as ``{"revenue":
    True}``. A column with the name of a metric, such as ``ndcg@10``, has its direction.
    """
    value_range: Mapping[str, tuple[float, float]] | None
    """For a table of values: the least and the greatest value of a column, such as ``{"revenue":
    (0, 500)}``. A column with the name of a metric has its range, and a Boolean column 0 to 1.
    """


#: The column that names the systems, unless the caller names another.
MODEL = "model"

ROLES = tuple(name for name in Columns.__annotations__ if not name.startswith("truth_"))


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # 0.5 ms less to import
class Settings:
    """The options of one call, checked."""

    preset: PresetName | Preset | None = None
    users: Users | None = None  # None: "truth", or "run" where there is no truth
    undefined: float | None = None
    weights: str | None = None
    average: str = "users"
    cluster: str | None = None
    over: str | None = None
    relevant_at: float | None = None
    unjudged: Unjudged = "miss"
    duplicates: Duplicates = "error"
    depth: int | None = None
    count_users: bool = False
    chance: bool = False
    counts: Sequence[Count] = ()
    defaults: Defaults | None = field(default=None, init=False)  # this and the next by preset
    single_precision: bool = field(default=False, init=False)
    items: Frame | None = None
    history: Frame | None = None
    exclude: Frame | None = None
    stages: Mapping[str, Frame] = field(default_factory=dict[str, Frame])  # runs of candidates
    higher_is_better: Mapping[str, bool | None] | None = None
    value_range: Mapping[str, tuple[float, float]] | None = None
    columns: Columns = field(default_factory=Columns)

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The tables besides run and truth that the call passes."""
        return frozenset(name for name in INPUTS if getattr(self, name) is not None)

    @cached_property
    def of_users(self) -> list[str]:
        """Columns with one value per user: weight and cluster."""
        return [name for name in (self.weights, self.cluster) if name is not None]

    @property
    def averaged_by(self) -> str | None:
        """The column of groups whose means are averaged."""
        return None if self.average in ("users", "pooled") else self.average

    @property
    def averaged(self) -> tuple[str, str | None]:
        """The option that names a column whose groups or runs are averaged, and the column."""
        return ("average", self.averaged_by) if self.over is None else ("over", self.over)

    def groups(self, by: object) -> list[str]:
        """Read ``by=``; the column of the groups or the runs that are averaged comes last."""
        names, (name, column) = group_names(by), self.averaged
        ids = user_of(self.columns), self.columns.get("item", "item")
        if column in (*names, *ids):
            kind = "systems or segments" if column in names else "users or items"
            msg = f"{option(name, column)}: this column names {kind}: name another"
            raise ValueError(Problem(msg))
        return names if column is None else [*names, column]

    @property
    def cuts_lists(self) -> bool:
        """Whether options may leave nothing of a list."""
        return self.depth is not None or self.unjudged == "drop"

    def __post_init__(self) -> None:
        """Check each option by itself, and options that exclude each other."""
        check_columns(self.columns)
        for name, value in read_preset(self.preset).items():
            if getattr(self, name) is None or name in ("defaults", "single_precision"):
                object.__setattr__(self, name, value)
        check_switch("count_users", self.count_users)
        check_switch("chance", self.chance)
        check_switch("single_precision", self.single_precision)
        if self.users is not None:
            check_choice("users", self.users, get_args(Users))
        if self.undefined is not None and not (
            is_number(self.undefined) and math.isfinite(self.undefined)
        ):
            msg = f"undefined must be None or a finite number, not {self.undefined!r}"
            raise ValueError(msg)
        check_name("weights", self.weights)
        check_average(self.average)
        check_name("cluster", self.cluster)
        check_name("over", self.over)
        if self.over is not None and self.average != "users":
            of = f"{option('over', self.over)}, several training runs"
            msg = f"{option('average', self.average)} is not supported with {of}: leave it out"
            raise ValueError(Problem(msg))
        if self.relevant_at is not None and not (
            is_number(self.relevant_at) and self.relevant_at > 0
        ):
            msg = f"{keyword('relevant_at')} must be a number > 0, not {self.relevant_at!r}"
            raise ValueError(Problem(msg))
        if self.depth is not None:
            object.__setattr__(self, "depth", whole_number("depth", self.depth))
        check_choice("unjudged", self.unjudged, get_args(Unjudged))
        check_choice("duplicates", self.duplicates, get_args(Duplicates))
        if self.unjudged == "bounds" and self.average == "pooled":
            bounds, pooled = option("unjudged", "bounds"), option("average", "pooled")
            raise ValueError(Problem(f"{bounds}: no bounds are proven for {pooled}: leave it out"))
        if self.unjudged == "bounds" and self.undefined:
            msg = (
                f"{option('unjudged', 'bounds')}: no bounds are proven with "
                f"{option('undefined', self.undefined)}; it must be {UNSET} or 0"
            )
            raise ValueError(Problem(msg))


#: What options may be that have no value.
UNSET = wording("None", command="left out,")


def read_preset(preset: Any) -> Preset:
    """Return what a preset sets, which has a name or is a dict of one's own."""
    if preset is None:
        return {}
    is_own = isinstance(preset, Mapping)
    names = [*(Preset.__annotations__ if is_own else PRESETS)]
    values: list[Any] = [*preset] if is_own else [preset]
    if unknown := [value for value in values if value not in names]:
        from difflib import get_close_matches  # importing it takes 0.7 ms

        near = get_close_matches(str(unknown[0]).lower(), names, n=3)
        hint = f"did you mean {' or '.join(map(repr, near))}?"
        hint = hint if near else f"there are {', '.join(map(repr, names))}"
        msg = f"preset: unknown {'key' if is_own else 'name'} {unknown[0]!r}; {hint}"
        raise ValueError(msg)
    return cast("Preset", preset) if is_own else PRESETS[preset]


def preset_beside(options: Mapping[str, Any]) -> Any:
    """Return the preset of a call without what the caller sets to None."""
    preset, unset = options["preset"], [n for n, value in options.items() if value is None]
    if preset is None or set(unset).isdisjoint(Preset.__annotations__):
        return preset
    return {name: value for name, value in read_preset(preset).items() if name not in unset}


def read_options(
    options: Mapping[str, Any],
    *,
    takes_bounds: bool = False,
    takes_average: bool = False,
    **more: Any,
) -> Settings:
    """Read the keywords that a verb passes on; ``more`` are options that it has by itself."""
    average = options.get("average", "users")
    if average != "users" and not takes_average:
        check_average(average)
        msg = (
            f"{option('average', average)}: only evaluate, summarize, compare and table accept "
            f"it, for tables in memory; here, use {option('average', 'users')}"
        )
        raise ValueError(Problem(msg))
    if options.get("unjudged") == "bounds" and not takes_bounds:
        bounds = option("unjudged", "bounds")
        msg = f"{bounds}: only per_user and evaluate accept it; here, pass 'miss' or 'drop'"
        raise ValueError(Problem(msg))
    own = StatisticsOptions.__annotations__.keys() - Columns.__annotations__.keys()
    columns = {name: value for name, value in options.items() if name not in own}
    own_options = {name: value for name, value in options.items() if name in own}
    return Settings(**own_options, **more, columns=cast("Columns", columns))


def check_columns(columns: Mapping[str, object]) -> None:
    """Check that roles are names of columns."""
    for role, name in columns.items():
        if role.startswith("truth_"):
            msg = f"{role}= is not an option of this call: rename the column of the truth"
            raise TypeError(msg)
        if not isinstance(name, str) and (role, name) != ("model", None):
            msg = f"{role}= must be the name of a column, not {name!r}"
            raise TypeError(msg)


def user_of(columns: Columns | ListColumns, default: str = "user") -> str:
    """Return the column of the user; several were made one before."""
    return cast("str", columns.get("user", default))


def group_names(by: object) -> list[str]:
    """Read ``by=``."""
    values = cast("Sequence[object]", by if isinstance(by, list | tuple) else [by])
    names = [name for name in values if isinstance(name, str)]
    if len(names) < len(values):
        msg = f"by must be the name of a column, or a list of names, not {by!r}"
        raise TypeError(msg)
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        msg = f"by: column {twice!r} is named twice: name it once"
        raise ValueError(msg)
    return names


def check_name(name: str, column: object) -> None:
    """Check that an option is the name of a column, or None."""
    if not (column is None or isinstance(column, str)):
        msg = f"{name} must be the name of a column, not {column!r}"
        raise TypeError(msg)


def check_average(value: object) -> None:
    """Check that an average is a word or the name of a column; others have other words for it."""
    if not isinstance(value, str):
        msg = f"average must be 'users', 'pooled' or the name of a column, not {value!r}"
        raise TypeError(msg)
    if own := {"micro": "pooled", "macro": "users"}.get(value):
        msg = (
            f"{option('average', value)}: it is called {option('average', own)} here; a column, "
            f"such as {option('average', 'dataset')}, gives the mean of the means of its groups"
        )
        raise ValueError(Problem(msg))


def check_switch(name: str, value: object) -> bool:
    """Return an option that is True or False: any text would count as True."""
    if not isinstance(value, bool):
        msg = f"{name} must be True or False, not {value!r}"
        raise TypeError(msg)
    return value


def check_total(by: Sequence[str], *, total: bool) -> None:
    """Check that there are groups, of which a row of overall means can be made."""
    check_switch("total", total)
    if total and not by:
        msg = (
            f"{option('total', value=True)} adds a row of overall means to the groups of "
            f"{option('by')}: name their columns"
        )
        raise ValueError(Problem(msg))


#: Tests, corrections and intervals by other names, and what to take: the first one that fits.
_INSTEAD = {
    "wilcoxon": ("scipy.stats.wilcoxon, as on the page of recipes",),
    "friedman": ("scipy.stats.friedmanchisquare, as on the page of recipes",),
    "mcnemar": ("randomization", "t"),  # flipped signs of hits are McNemar's test
    **dict.fromkeys(("tukey", "dunnett"), ("max_t",)),
    "bonferroni": ("holm",),
    **dict.fromkeys(("bootstrap", "bca", "percentile", "studentized", "wilson"), ("auto", "t")),
}


def check_choice(name: str, value: object, choices: Sequence[ChoiceT], also: str = "") -> ChoiceT:
    """Return a value that is one of several; ``also`` names what else the option takes."""
    if not isinstance(value, str | None) or value not in choices:
        words = _INSTEAD.get(str(value), ())
        takes = [repr(word) for word in words if word in choices]
        takes += [word for word in words if name == "test" and word.startswith("scipy")]
        hint = f": use {takes[0]}" if takes else ""
        msg = f"{name} must be one of {', '.join(map(repr, choices))}{also}, not {value!r}{hint}"
        raise ValueError(Problem(msg))
    return choices[choices.index(value)]


def alpha_of(confidence: float) -> float:
    """Return 1 − confidence without the rounding of floats, of which 0.05 would be above 1/20."""
    return round(1 - confidence, 12) or 1 - confidence


def check_confidence(confidence: object) -> None:
    check_fraction("confidence", confidence)


def check_fraction(name: str, value: object) -> None:
    """Check a chance or a share that is neither 0 nor 1."""
    if not (is_number(value) and 0 < value < 1):
        msg = f"{name} must be a number between 0 and 1, not {value!r}"
        raise ValueError(msg)


def whole_number(name: str, value: Any, *, least: int = 1) -> int:
    """Return ``value`` as an int ≥ ``least``, or raise ValueError."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or not least <= number < 2**63:
        msg = f"{name} must be an integer ≥ {least}, not {value!r}"
        raise ValueError(msg)
    return number


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a real number: neither boolean nor NaN."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return not math.isnan(value)
    except OverflowError:  # an integer that no float can hold
        return False


def plain_number(value: object) -> object:
    """Write a number in one way, as 2 and 2.0 are one convention; return other values."""
    if not is_number(value):
        return value
    return int(value) if float(value).is_integer() else float(value)


def need_numpy(what: str) -> None:
    """Check that NumPy is installed, for those parts that compute with it."""
    if find_spec("numpy") is None:
        msg = f"{what} need numpy: pip install 'rankframe[stats]'"
        raise ImportError(msg)
