"""After the means: a flat dict of numbers, for experiment trackers."""

from __future__ import annotations

import re
from math import nan
from typing import Literal, TypeAlias, get_args

import polars as pl

from rankframe._request import keywords
from rankframe._request.types import Frame
from rankframe._tables import adapters
from rankframe.errors import RankingDataError

Names: TypeAlias = Literal["snake", "label"]
Undefined: TypeAlias = Literal["nan", "omit"]

_TABLE = "table of means"


@adapters.takes_any_frame
def as_dict(
    frame: Frame, /, names: Names = "snake", undefined: Undefined = "nan"
) -> dict[str, float]:
    """
    Return the frame of ``evaluate`` as a flat dict of numbers, for experiment trackers.

    Parameters
    ----------
    frame
        What ``evaluate``, ``rf.parts.combine`` or ``Meter.compute`` returned.
    names
        ``"snake"``: names that every tracker takes, such as ``ndcg_at_10``. ``@`` becomes ``_at_``,
        every other character except letters (a–z, A–Z) and digits becomes ``_``, and a name that
        begins with a digit gets a leading ``_``. ``"label"`` keeps labels.
    undefined
        What happens to a metric that is null. ``"nan"``: it becomes NaN, which a tracker shows as a
        gap; otherwise the last value would still look like the newest. ``"omit"`` leaves it out,
        for strict JSON, which has no NaN.

    Returns
    -------
    dict
        ``users`` and the metrics. The values of the columns ``by`` come first:
        ``pop_ndcg_at_10``. In a row of totals, ``all`` stands for the null.

    Raises
    ------
    RankingDataError
        If there is no column ``users``, a metric is not a number, or two numbers get the same name.
    ValueError
        If ``names`` or ``undefined`` is unknown.

    Notes
    -----
    ``mlflow.log_metrics(rf.as_dict(means))`` and ``wandb.log(rf.as_dict(means))`` take it, and
    ``json.dumps(rf.as_dict(means, undefined="omit"), allow_nan=False)`` is a metrics file of DVC.

    Examples
    --------
    >>> run = pl.DataFrame({"model": ["pop"], "user": [1], "item": [7], "rank": [2]})
    >>> truth = pl.DataFrame({"user": [1], "item": [7]})
    >>> rf.as_dict(rf.evaluate(run, "hit@10", "mrr", truth=truth, by="model"))
    {'pop_users': 1, 'pop_hit_at_10': 1.0, 'pop_mrr': 0.5}
    """
    keywords.check_choice("names", names, get_args(Names))
    keywords.check_choice("undefined", undefined, get_args(Undefined))
    table = adapters.to_lazy(frame, _TABLE).collect()
    columns = table.columns
    if "users" not in columns:
        msg = f"{_TABLE}: no column 'users': as_dict takes what evaluate returns"
        raise RankingDataError(msg)
    by = columns[: columns.index("users")]
    if "metric" in by:
        msg = (
            f"{_TABLE}: it has one row per metric, such as a frame of compare or summarize; "
            "as_dict takes what evaluate returns, one column per metric"
        )
        raise RankingDataError(msg)
    numbers: dict[str, float] = {}
    sources: dict[str, str] = {}
    for row in table.iter_rows(named=True):
        groups = ["all" if row[name] is None else str(row[name]) for name in by]
        for column in columns[len(by) :]:
            _check_number(column, table.schema[column])
            number = row[column]
            if number is None and undefined == "omit":
                continue
            label = "_".join([*groups, column])
            name = _plain(label) if names == "snake" else label
            if name in numbers:
                cure = "rename one, or leave one out"
                if (
                    "all" in groups
                    and table.select(pl.any_horizontal(pl.col(by).is_null().any())).item()
                ):
                    cure = "'all' stands for the row of totals: rename the group"
                msg = f"{_TABLE}: {sources[name]!r} and {label!r} both become {name!r}: {cure}"
                raise RankingDataError(msg)
            numbers[name], sources[name] = nan if number is None else number, label
    return numbers


def _plain(label: str) -> str:
    name = re.sub("[^a-zA-Z0-9]", "_", label.replace("@", "_at_"))
    return f"_{name}" if name[:1].isdigit() else name


def _check_number(column: str, dtype: pl.DataType) -> None:
    if not dtype.is_numeric() and dtype != pl.Null:
        msg = f"{_TABLE}, column {column!r}: it is {dtype}, and a tracker takes numbers: cast it"
        raise RankingDataError(msg)
