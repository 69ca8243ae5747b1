"""Sets up the process of a test run, before anything imports Polars."""

import os
import sys

# each of several workers takes its share of the cores; small tables gain nothing from more
workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
if workers > 1:
    os.environ.setdefault("POLARS_MAX_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))

# else each process, also those that tests start, compiles the library and the tests again
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
