"""Ranking metrics as Polars expressions.

``import rankframe as rf`` registers ``df.rank``, also called ``df.ranking``, on Polars DataFrames
and LazyFrames.

Calls from several threads are safe. Start processes by ``spawn`` or ``forkserver``: Polars may hang
in a process that was forked after Polars had computed anything.
"""

import polars as _pl

from rankframe import _inputs as _inputs  # it opens what verbs take
from rankframe import _namespace, _rooms
from rankframe import metrics as metrics  # its functions have the labels

__version__ = "0.1.0"

_rooms.open_door(__name__)
_namespace.attach("rank", _pl.DataFrame, _pl.api.register_dataframe_namespace)
_namespace.attach("rank", _pl.LazyFrame, _pl.api.register_lazyframe_namespace)
_namespace.attach("ranking", _pl.DataFrame, _pl.api.register_dataframe_namespace)  # as in pandas
_namespace.attach("ranking", _pl.LazyFrame, _pl.api.register_lazyframe_namespace)
