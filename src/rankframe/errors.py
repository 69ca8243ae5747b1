"""The one exception class."""


class RankingDataError(ValueError):
    """A table breaks a rule: the message names the table, the column, the rule and a row."""
