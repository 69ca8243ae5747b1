"""The exception class, and the class of warnings."""


class RankingDataError(ValueError):
    """A table breaks a rule: the message names the table, the column, the rule and a row."""


class RankingWarning(UserWarning):
    """A metric of the caller's gives a number, but perhaps not the one that it reads like."""
