"""Threads and processes get the same numbers, and no table of the caller's is changed."""

import hashlib
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

import rankframe as rf
from rankframe import trec

LABELS = ["ndcg@10", "map", "rr", "precision@5", "bpref", "gmap", "err", "auc"]


def tables(users=200):
    rows = pl.select(user=pl.int_range(users)).join(pl.select(n=pl.int_range(20)), how="cross")
    run = rows.select("user", item=pl.col("n") * 7 % 31, score=pl.col("n") * pl.col("user") % 13)
    truth = rows.select("user", item=pl.col("n") * 3 % 23, relevance=pl.col("n") % 4)
    return run.cast({"score": pl.Float64}), truth


def evaluated(tables):
    run, truth = tables
    return run.rank.evaluate(*LABELS, truth=truth)


def assert_same(results):
    first = results[0]
    for other in results[1:]:
        assert other.columns == first.columns
        assert other.row(0) == pytest.approx(first.row(0), rel=1e-12)


# ------------------------------------------------------------------ threads


@pytest.mark.sample(2)
@pytest.mark.parametrize("lazy", [False, True])
def test_16_threads_evaluate_the_same_frame(lazy):
    run, truth = tables()
    expected = evaluated((run, truth))
    given = (run.lazy(), truth.lazy()) if lazy else (run, truth)
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(evaluated, [given] * 32))
    assert_same([expected, *(result.lazy().collect() for result in results)])


def test_16_threads_collect_the_same_plan(tmp_path):
    """Of few users: threads meet in the plan and its files, whatever the number of rows."""
    run, truth = tables(50)
    trec.write_run(run, tmp_path / "a.run.gz")
    trec.write_qrels(truth, tmp_path / "a.qrels")
    truth = trec.scan_qrels(tmp_path / "a.qrels")
    plan = trec.scan_run(tmp_path / "a.run.gz").rank.evaluate(*LABELS, truth=truth)
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda _: plan.collect(), range(16)))
    texts = tuple(table.cast({"user": pl.String, "item": pl.String}) for table in tables(50))
    assert_same([evaluated(texts), *results])


def test_threads_get_their_own_errors():
    run, truth = tables()
    bad = {i: run.with_columns(item=pl.lit(i)) for i in range(32)}

    def message(i):
        with pytest.raises(rf.RankingDataError) as caught:
            evaluated((bad[i], truth))
        return str(caught.value)

    with ThreadPoolExecutor(16) as pool:
        for i, told in enumerate(pool.map(message, range(32))):
            assert told.endswith(f"Offending row: user=0, item={i}, score=0.0")


def test_threads_update_one_meter():
    run, truth = tables(48)
    meters = rf.Meter("rr", "precision@5"), rf.Meter("rr", "precision@5")
    copied = pickle.loads(pickle.dumps(meters[0]))

    def update(user):
        meter = meters[user % 2]
        meter.update(run.filter(user=user), truth.filter(user=user))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(update, range(48)))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(copied.merge, meters))
    expected = rf.evaluate(run, "rr", "precision@5", truth=truth)
    assert copied.compute().rows() == expected.rows()


# ------------------------------------------------------------------ processes

# A forked process has the locks of its parent and not its threads, so polars never answers in a
# process that is forked once polars has computed anything; no line of ours is run then. What polars
# supports is spawn and forkserver; a fork before its first use works, too.


_POOL = """
import json, multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
sys.path.insert(0, sys.argv[1])
from test_concurrency import evaluated, tables

if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(sys.argv[2])) as pool:
        print(json.dumps([got.row(0) for got in pool.map(evaluated, [tables()] * 4)]))
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_evaluate_the_same_frame(method, request, tmp_path):
    script = tmp_path / "pool.py"
    script.write_text(_POOL)
    command = [sys.executable, "-W", "error", script, request.path.parent, method]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert done.stderr == ""
    expected = evaluated(tables()).row(0)
    for row in json.loads(done.stdout):
        assert row == pytest.approx(expected, rel=1e-12)


_FORK = """
import json, multiprocessing, sys
sys.path.insert(0, sys.argv[1])
if sys.argv[2] == "imported":
    import test_concurrency

def child(queue):
    from test_concurrency import evaluated, tables
    queue.put(evaluated(tables()).row(0))

context = multiprocessing.get_context("fork")
queue = context.SimpleQueue()
children = [context.Process(target=child, args=[queue]) for _ in range(2)]
for process in children:
    process.start()
print(json.dumps([queue.get() for _ in children]))
for process in children:
    process.join()
print([process.exitcode for process in children])
"""


@pytest.mark.sample(2)
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.parametrize("polars", ["imported", "unknown"])
def test_processes_forked_before_polars_is_used(polars, request):
    command = [sys.executable, "-W", "error", "-c", _FORK, str(request.path.parent), polars]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert done.stderr == ""
    rows, codes = done.stdout.splitlines()
    expected = evaluated(tables()).row(0)
    for row in json.loads(rows):
        assert row == pytest.approx(expected, rel=1e-12)
    assert codes == "[0, 0]"


_PANDAS = """
import os
os.environ["POLARS_MAX_THREADS"] = "1"
from concurrent.futures import ThreadPoolExecutor
import rankframe as rf
from test_concurrency import tables
run, truth = (frame.to_pandas() for frame in tables(20))
facts = rf.parts.facts(run, truth=truth)
def sums(part):
    return rf.parts.sums(run, "ndcg@10", "map", truth=truth, facts=facts, part=str(part))
with ThreadPoolExecutor(2) as threads:
    print(len(list(threads.map(sums, range(100)))))
"""


def test_threads_with_pandas_frames_do_not_wait_for_each_other(request):
    command = [sys.executable, "-c", _PANDAS]  # with one thread of Polars, an earlier version hung
    paths = os.pathsep.join([str(request.path.parent), *sys.path])
    environment = os.environ | {"PYTHONPATH": paths}
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60, env=environment
    )
    assert done.stdout == "100\n"


def test_errors_pass_between_processes():
    error = rf.RankingDataError("run: it is empty")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (rf.RankingDataError, "run: it is empty")


# ------------------------------------------------------------------ nothing is changed


def fingerprint(frame):
    """Hash all there is of a frame: names, types, values, order, chunks, index."""
    if isinstance(frame, pl.DataFrame):
        parts = [frame.schema, frame.n_chunks("all"), frame.serialize()]
    elif isinstance(frame, pl.LazyFrame):
        parts = [frame.collect_schema(), frame.serialize()]
    else:
        parts = [frame.dtypes.to_dict(), frame.index.names, frame.attrs, pickle.dumps(frame)]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


KINDS = {"polars": lambda frame: frame, "lazy": pl.DataFrame.lazy, "pandas": pl.DataFrame.to_pandas}
CALLS = {
    "evaluate": lambda run, truth: rf.evaluate(run, *LABELS, truth=truth),
    "options": lambda run, truth: rf.evaluate(
        run,
        "map",
        truth=truth,
        unjudged="drop",
        users="all",
        depth=5,
        relevant_at=2,
        undefined=0.0,
    ),
    "bounds": lambda run, truth: rf.per_user(run, "recall@10", truth=truth, unjudged="bounds"),
    "judge": lambda run, truth: rf.metrics.rows(rf.judge(run, truth)),
    "with_rank": lambda run, truth: rf.with_rank(run, ties="expected"),
    "check": lambda run, truth: rf.check(run, truth=truth),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", KINDS)
def test_inputs_are_never_changed(kind, call):
    run, truth = map(KINDS[kind], tables())
    if kind == "pandas":
        run.index, run.attrs["of"] = run.index[::-1], "mine"
    before = fingerprint(run), fingerprint(truth)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", rf.errors.RankingWarning)  # some lists have one score
        result = CALLS[call](run, truth)
        if isinstance(result, pl.LazyFrame):
            result.collect()
    assert (fingerprint(run), fingerprint(truth)) == before


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_are_not_changed_by_calls_that_fail_or_write(kind, tmp_path):
    run, truth = tables()
    for frame, call in (
        (run, lambda run: trec.write_run(run, tmp_path / "a.run")),
        (truth, lambda truth: trec.write_qrels(truth, tmp_path / "a.qrels")),
        (pl.concat([run, run]), lambda run: rf.with_rank(run).collect()),
    ):
        given = KINDS[kind](frame)
        before = fingerprint(given)
        try:
            call(given)
        except rf.RankingDataError as error:
            assert "duplicate" in str(error)  # noqa: PT017
        assert fingerprint(given) == before


def test_fingerprint_sees_a_change():
    run, _ = tables()
    changed = [
        run.rename({"item": "it"}),
        run.cast({"score": pl.Float32}),
        run[::-1],
        run.with_columns(score=pl.when(pl.int_range(pl.len()) == 7).then(0.5).otherwise("score")),
    ]
    for kind in KINDS.values():
        assert len({fingerprint(kind(frame)) for frame in [run, *changed]}) == 5
        assert fingerprint(kind(run)) == fingerprint(kind(run.clone()))
