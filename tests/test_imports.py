"""What an import loads."""

import subprocess
import sys

HEAVY = ["pandas", "numpy", "pyarrow", "scipy", "tqdm", "altair", "pyspark", "rankframe._cli"]


def test_import_loads_polars_only():
    code = f"""
import sys
import rankframe
loaded = [name for name in {HEAVY} if name in sys.modules]
assert not loaded, loaded
import polars as pl
frame = pl.DataFrame({{"user": [1], "item": [1], "rank": [1], "relevance": [1]}})
frame.rank.evaluate("ndcg@10", "precision")
frame.rank.plot.at_k, rankframe.plot.users
loaded = [name for name in {HEAVY} if name in sys.modules]
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)
