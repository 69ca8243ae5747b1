"""The exception class, the class of warnings, and how to warn."""

import inspect
import warnings


class RankingDataError(ValueError):
    """A table breaks a rule: the message names the table, the column, the rule and a row."""


class RankingWarning(UserWarning):
    """A number is given, but it is perhaps not the one that it reads like."""


def warn(message: str) -> None:
    """Warn at the line of the caller, outside of this library and of polars."""
    frame, level = inspect.currentframe(), 1
    ours = {"rankframe", "polars"}
    while frame is not None and frame.f_globals["__name__"].partition(".")[0] in ours:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RankingWarning, stacklevel=level)
