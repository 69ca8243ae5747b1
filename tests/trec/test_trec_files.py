"""TREC files: every shape that is met, bad lines by number, bombs, and round trips."""

import contextlib
import functools
import gzip
import io
import itertools
import os
import pickle
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import polars as pl
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import rankframe as rf
from rankframe import _sizes, trec

ENGINES = ["streaming", "in-memory"]
RUN = b"q1 Q0 d1 1 0.5 tag\nq1 Q0 d2 2 0.25 tag\nq2 Q0 d1 1 -3 tag\n"
ROWS = [("q1", "d1", 0.5), ("q1", "d2", 0.25), ("q2", "d1", -3.0)]
QRELS = b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 -2\n"


def zstd(data):
    out = io.BytesIO()
    text = pl.DataFrame({"": [data.decode()]})
    text.write_csv(
        out, include_header=False, quote_style="never", line_terminator="", compression="zstd"
    )
    return out.getvalue()


PACKINGS = {
    "plain": bytes,
    "gzip": gzip.compress,
    "members": lambda data: gzip.compress(data[:20]) + gzip.compress(data[20:]),
    "zstd": zstd,
}


@pytest.fixture(params=PACKINGS)
def packed(request):
    return PACKINGS[request.param]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "text",
    [
        RUN,
        RUN.rstrip(),
        RUN.replace(b" ", b"\t"),
        RUN.replace(b" ", b" \t  "),
        RUN.replace(b"\n", b"\r\n"),
        RUN.replace(b"\n", b"  \n"),
        RUN.replace(b" tag", b""),
        RUN.replace(b" tag", b" "),
        RUN.replace(b" tag", b" my run"),
        RUN.replace(b" tag", b"\tmy \t 2nd\xc2\xa0run, of 0.5 # \xc3\xa9 \r"),
        b"\xef\xbb\xbf" + RUN,
        b"\xef\xbb\xbf# q0 Q0 d0 1 1 tag\n\n" + RUN.replace(b"q", b" \tq"),
        b"\r\n# \xc3\xa9\n   \t\n  #q0 Q0 d0 1 1 tag\n" + RUN.replace(b"\n", b"\n\n#\n"),
        RUN.replace(b"q2", b"\xef\xbb\xbfq2"),  # files joined by cat
    ],
)
def test_shapes_of_a_run_are_read(tmp_path, packed, text, engine):
    path = tmp_path / "a.run"
    path.write_bytes(packed(text))
    got = trec.scan_run(path).collect(engine=engine)
    assert got.schema == {"user": pl.String, "item": pl.String, "score": pl.Float64}
    assert got.rows() == ROWS


def test_qrels_of_every_packing_are_read(tmp_path, packed):
    path = tmp_path / "a.qrels"
    path.write_bytes(packed(QRELS.replace(b"d2 0", b"d2\t \t0\t\r")))
    got = trec.read_qrels(str(path))
    assert got.schema == {"user": pl.String, "item": pl.String, "relevance": pl.Int64}
    assert got.rows() == [("q1", "d1", 1), ("q1", "d2", 0), ("q2", "d1", -2)]


@pytest.mark.parametrize(
    "user", ["007", "1e3", "é", "a\xa0b", "a\u2028b", "x^", "xڀ", "x\x01", "\0"]
)
def test_ids_are_kept_as_they_are_written(tmp_path, user):
    path = tmp_path / "a.run"  # "x^" begins a zlib file, and white space is what C calls so
    path.write_text(f"{user} Q0 #{user} 1 0.5", encoding="utf-8")
    assert trec.read_run(path).rows() == [(user, f"#{user}", 0.5)]


def test_empty_file_has_no_rows(tmp_path, packed):
    path = tmp_path / "a.run"
    path.write_bytes(packed(b"# nothing here\n"))
    assert trec.read_run(path).shape == (0, 3)
    path.write_bytes(b"")
    assert trec.read_run(path).shape == (0, 3)
    with pytest.raises(rf.RankingDataError, match="run: it is empty"):
        trec.read_run(path).rank.evaluate("map", truth=pl.DataFrame({"user": ["a"], "item": ["b"]}))


@pytest.mark.parametrize("piece", [40, 64, _sizes.BYTES_READ])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "line",
    [
        b"q1 Q0 d1",
        b"q1 Q0 d1 1",
        b"q1 Q0 d1 1 high tag",
        b"q1 Q0 d1 1 0.5x tag",
        b"q1 Q0 d1 1 0,5 tag",
        b"q1",
        b"\xff Q0 d1 1 0.5 tag",
    ],
)
def test_bad_line_is_reported_by_its_number(tmp_path, packed, line, engine, piece, monkeypatch):
    if packed is zstd and not line.isascii():
        pytest.skip("polars unpacks zstd, and does not say in which line it fails")
    monkeypatch.setattr(_sizes, "BYTES_READ", piece)
    path = tmp_path / "a.run"
    path.write_bytes(packed(b"# one\n\n" + RUN + b"\r\n" + line + b"\n" + RUN))
    message = r"a\.run, line 7: it is not (of the form 'user Q0 item rank score tag'|UTF-8 text): "
    for look in (lambda q: q, lambda q: q.select(pl.len()), lambda q: q.filter(user="none")):
        with pytest.raises(rf.RankingDataError, match=message):
            look(trec.scan_run(path)).collect(engine=engine)


@pytest.mark.sample(2)
@pytest.mark.parametrize("piece", [25, 27, 80])
def test_pieces_make_no_difference(tmp_path, piece, monkeypatch):
    text = b"".join(b"q%d\tQ0 d%d 1 %d.5 tag\r\n" % (i % 7, i, i) for i in range(99))
    path = tmp_path / "a.run"
    path.write_bytes(gzip.compress(text))
    monkeypatch.setattr(_sizes, "BYTES_READ", piece)
    assert trec.read_run(path).rows() == [(f"q{i % 7}", f"d{i}", i + 0.5) for i in range(99)]


@pytest.mark.parametrize("engine", ENGINES)
def test_scan_can_be_looked_at_like_any_frame(tmp_path, engine, monkeypatch):
    monkeypatch.setattr(_sizes, "BYTES_READ", 40)
    path = tmp_path / "a.run"
    path.write_bytes(RUN)
    scan, frame = trec.scan_run(path), trec.read_run(path)
    for look in (
        lambda q: q.select(pl.len()),
        lambda q: q.select("score"),
        lambda q: q.head(2),
        lambda q: q.slice(1, 1),
        lambda q: q.tail(1),
        lambda q: q.filter(pl.col("score") > 0).select("item"),
        lambda q: q.filter(pl.col("score") > 0).head(1),
        lambda q: q.head(2).filter(pl.col("item") == "d2"),
        lambda q: q.filter(pl.lit(value=False)),
        lambda q: q.join(q, on=["user", "item"]).select("user", "score_right").sort(pl.all()),
        lambda q: pl.concat([q, q]),
    ):
        assert look(scan).collect(engine=engine).equals(look(frame.lazy()).collect(engine=engine))


@pytest.mark.polars_2("a step that raises the errors of the scan keeps the head from it")
def test_head_of_a_scan_reads_no_further(tmp_path, monkeypatch):
    monkeypatch.setattr(_sizes, "BYTES_READ", 40)
    path = tmp_path / "a.run"
    path.write_bytes(RUN + b"bad\n")
    assert trec.scan_run(path).head(1).collect().rows() == ROWS[:1]
    with pytest.raises(rf.RankingDataError, match="line 4"):
        trec.scan_run(path).head(4).collect()


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_damaged_files_are_reported(tmp_path, pack, refused):
    path = tmp_path / "a.run"
    whole = pack(b"".join(b"q%d Q0 d%d 1 0.5 tag\n" % (i * i % 997, i) for i in range(20_000)))
    assert len(whole) > 10_000
    torn = whole[:5_000] + whole[6_000:]
    for damaged in (whole[:-1], whole[: len(whole) // 2], whole[:6], torn):
        path.write_bytes(damaged)
        refused(trec.read_run, path)


def test_file_that_is_not_there(tmp_path):
    path = tmp_path / "a.run"
    for call in (trec.scan_run, trec.read_run, trec.scan_qrels, trec.read_qrels):
        with pytest.raises(FileNotFoundError, match=r"a\.run"):
            call(path)
    path.write_bytes(RUN)
    scan = trec.scan_run(path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"a\.run"):
        scan.collect()


# ------------------------------------------------------------------ what can be read only once

SIZES = [io.DEFAULT_BUFFER_SIZE, 1 << 16, 1 << 17, 1 << 18]  # the third is a piece, the last two
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of POSIX")


def within(seconds, call):
    """Call in another thread, so that a hang fails the test and does not stop it."""
    done = queue.Queue()

    def run():
        try:
            done.put((call(), None))
        except BaseException as error:  # noqa: BLE001
            done.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    got, error = done.get(timeout=seconds)
    if error is not None:
        raise error
    return got


def write_all(file, parts):
    """Write the parts one by one; a reader that has seen enough may close the pipe."""
    with contextlib.suppress(BrokenPipeError), file:
        for part in parts:
            file.write(part)
            file.flush()
            if len(parts) > 1:
                time.sleep(0.005)


def read_pipe(parts, read=trec.read_run):
    reader, writer = os.pipe()
    file = os.fdopen(writer, "wb")
    thread = threading.Thread(target=write_all, args=(file, parts), daemon=True)
    thread.start()
    try:
        return within(60, lambda: read(f"/dev/fd/{reader}"))
    finally:
        os.close(reader)
        thread.join(60)


def read_fifo(parts, read=trec.read_run):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.fifo")
        os.mkfifo(path)
        thread = threading.Thread(target=lambda: write_all(path.open("wb"), parts), daemon=True)
        thread.start()
        return within(60, lambda: read(path))  # a second opening would wait for ever


def read_stream(parts, read=trec.read_run):
    return read(io.BytesIO(b"".join(parts)))


WAYS = {"pipe": read_pipe, "fifo": read_fifo, "object": read_stream}


@functools.cache
def run_of_size(size):
    """Text of a run of so many bytes that packs badly, and its rows."""
    words = random.Random(size).randbytes(size // 2).hex()
    lines, left = [], size
    for number in itertools.count(100_015):
        line = f"{number} Q0 {words[len(lines) * 256 :][:256]} 1 {number % 7}.5 tag\n"
        if left < 2 * len(line):
            break
        lines.append(line)
        left -= len(line)
    lines.append(f"{number} Q0 last 1 -1 ".ljust(left, "x"))
    rows = [(user, item, float(score)) for user, _, item, _, score, _ in map(str.split, lines)]
    return "".join(lines).encode(), rows


@pytest.mark.sample(5)
@needs_pipes
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pack", ["plain", "gzip", "zstd"])
@pytest.mark.parametrize("size", [size + more for size in SIZES for more in (-1, 0, 1)])
def test_pipe_is_read_whole(size, pack, way, monkeypatch):
    monkeypatch.setattr(_sizes, "BYTES_READ", SIZES[2])
    text, rows = run_of_size(size)
    assert len(text) == size
    data = gzip.compress(text, 1) if pack == "gzip" else PACKINGS[pack](text)
    got = WAYS[way]([data])
    assert got.schema == {"user": pl.String, "item": pl.String, "score": pl.Float64}
    assert got.rows() == rows
    if pack == "gzip":  # so many bytes go through the pipe
        text, rows = run_of_size(size - 18 - 5 * -(-size // 65_535))
        data = gzip.compress(text, 0)
        assert abs(len(data) - size) <= 10
        assert WAYS[way]([data]).rows() == rows


@needs_pipes
@pytest.mark.parametrize("way", ["pipe", "fifo"])
@pytest.mark.parametrize("first", [[1], [2], [3], [1, 1, 1, 1], [1, 3], [3, 1, 2, 1], [5, 1, 1]])
def test_slow_writer_is_waited_for(packed, first, way):
    data = packed(b"100015 Q0 d1 1 0.5 tag\n" + RUN)
    cuts = [0, *itertools.accumulate(first), len(data) // 2, len(data) - 1, len(data)]
    parts = [data[start:end] for start, end in itertools.pairwise(cuts)]
    assert b"".join(parts) == data
    assert WAYS[way](parts).rows() == [("100015", "d1", 0.5), *ROWS]


@needs_pipes
@pytest.mark.parametrize("way", WAYS)
def test_qrels_are_read_from_a_pipe(packed, way):
    data = packed(QRELS)
    got = WAYS[way]([data[:1], data[1:]], trec.read_qrels)
    assert got.rows() == [("q1", "d1", 1), ("q1", "d2", 0), ("q2", "d1", -2)]
    got = WAYS[way]([data], functools.partial(trec.read_qrels, subtopics=True))
    assert got.schema.names() == ["user", "item", "subtopic", "relevance"]
    assert got["subtopic"].to_list() == ["0"] * 3


@needs_pipes
@pytest.mark.parametrize("way", WAYS)
def test_scan_of_a_pipe_holds_its_rows(packed, way):
    scan = WAYS[way]([packed(RUN)], trec.scan_run)
    assert isinstance(scan, pl.LazyFrame)
    for engine in ENGINES:
        assert scan.collect(engine=engine).rows() == ROWS
    assert scan.join(scan, on=["user", "item"]).select(pl.len()).collect().item() == 3
    assert WAYS[way]([packed(b"# nothing\n")]).shape == (0, 3)
    assert WAYS[way]([b""]).schema == {"user": pl.String, "item": pl.String, "score": pl.Float64}


@needs_pipes
@pytest.mark.parametrize("way", ["pipe", "fifo", "object"])
def test_errors_of_a_pipe_are_raised_at_the_call(packed, way, refused):
    for read in (trec.read_run, trec.scan_run):
        refused(WAYS[way], [packed(RUN + b"bad\n" + RUN)], read)
    refused(WAYS[way], [packed(QRELS.replace(b"d2 0", b"d2 0 0"))], trec.scan_qrels)
    if packed is not zstd:
        refused(WAYS[way], [packed(RUN + b"\xff Q0 d1 1 0.5\n")])
    whole = packed(run_of_size(1 << 16)[0])
    if packed is not bytes:
        for size in (6, len(whole) // 2, len(whole) - 1):
            refused(WAYS[way], [whole[:size]])


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no endless device here")
def test_endless_device_is_given_up():
    with pytest.raises(rf.RankingDataError, match=r"^/dev/zero, line 1: it is longer than 4 MB"):
        within(60, lambda: trec.read_run("/dev/zero"))


@needs_pipes
def test_descriptor_is_read_at_once(tmp_path):
    path = tmp_path / "a.run"
    path.write_bytes(RUN)
    with path.open("rb") as file:
        scan = trec.scan_run(f"/dev/fd/{file.fileno()}")
    path.write_bytes(b"")  # or the number goes to another file
    assert scan.collect().rows() == ROWS


def test_file_object_is_read_from_where_it_is(tmp_path, packed):
    path = tmp_path / "a.run"
    path.write_bytes(b"not of the file\n" + packed(RUN))
    for buffering in (-1, 0):
        with path.open("rb", buffering=buffering) as file:
            assert file.readline() == b"not of the file\n"
            assert trec.read_run(file).rows() == ROWS
            assert file.read() == b""  # it stays open
    path.write_bytes(RUN + b"bad")
    with path.open("rb") as file, pytest.raises(rf.RankingDataError, match=r"^a\.run, line 4"):
        trec.scan_run(file)
    with gzip.open(io.BytesIO(gzip.compress(packed(RUN)))) as file:
        assert trec.read_run(file).rows() == ROWS


class _Chunks:
    """A file object that gives what it likes, and knows nothing but read."""

    def __init__(self, *chunks):
        self.chunks = list(chunks)

    def read(self, size):
        return b"" if size == 0 or not self.chunks else self.chunks.pop(0)


def test_file_object_may_give_what_it_likes(packed):
    data = packed(RUN)
    for cut in (1, 2, 5, 17):
        assert trec.read_run(_Chunks(data[:cut], data[cut:])).rows() == ROWS
    assert trec.read_run(_Chunks(data, b"", b"another writer's")).rows() == ROWS
    with pytest.raises(
        rf.RankingDataError, match="^<_Chunks>: it cannot be read to the end: it is"
    ):
        trec.read_run(_Chunks(data[:9], None, data[9:]))  # a pipe that does not wait


@pytest.mark.parametrize("read", [trec.read_run, trec.scan_run, trec.read_qrels, trec.scan_qrels])
def test_source_is_a_path_or_a_binary_file(tmp_path, read):
    path = tmp_path / "a.run"
    path.write_bytes(gzip.compress(RUN))
    wanted = "^source must be a path or a file object open in binary mode, not "
    for source in (None, 3, b"a.run", [path], pl.DataFrame()):
        with pytest.raises(
            TypeError, match=wanted + r"(NoneType|int|bytes|list|polars DataFrame)$"
        ):
            read(source)
    in_text = wanted + "one in text mode: open it with 'rb', or pass its .buffer$"
    with pytest.raises(TypeError, match=in_text):
        read(io.StringIO("q1 Q0 d1 1 0.5"))
    with path.open(encoding="utf-8") as file, pytest.raises(TypeError, match=in_text):
        read(file)
    with path.open("ab") as file, pytest.raises(TypeError, match="not one open for writing only$"):
        read(file)
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        read(tmp_path)


_STDIN = """
import sys
from rankframe import trec
source = sys.stdin.buffer if sys.argv[1] == "buffer" else sys.argv[1]
print(trec.read_run(source).rows())
"""


@pytest.mark.sample(3)
@needs_pipes
@pytest.mark.parametrize("source", ["buffer", "/dev/stdin"])
def test_standard_input_is_read(packed, source):
    command = [sys.executable, "-c", _STDIN, source]
    done = subprocess.run(command, input=packed(RUN), capture_output=True, check=True, timeout=60)
    assert done.stdout.decode().strip() == str(ROWS)
    done = subprocess.run(command, input=packed(b"bad"), capture_output=True, timeout=60)
    name = {"buffer": b"<stdin>"}.get(source, source.encode())
    assert name + b", line 1: it is not of the form" in done.stderr


# ------------------------------------------------------------------ nothing is executed or blown up


class _Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_files_are_never_executed(tmp_path):
    sign, path = tmp_path / "sign", tmp_path / "a.run"
    payload = pickle.dumps(_Bomb(sign))
    pickle.loads(payload)
    assert sign.exists()  # so it would show
    sign.unlink()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path.write_bytes(pickle.dumps(_Bomb(sign), protocol))
        with pytest.raises(rf.RankingDataError):
            trec.read_run(path)
    assert not sign.exists()


_PEAK = """
import resource, sys
import polars as pl
from rankframe import RankingDataError, trec

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

trec.read_run(sys.argv[2])  # what polars takes for itself
before = peak()
try:
    print(trec.scan_run(sys.argv[1]).select(pl.len()).collect().item(), end=" ")
except RankingDataError as error:
    print(error, end=" ")
print(peak() - before)
"""


@pytest.mark.sample(3)
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is told in other units elsewhere")
@pytest.mark.parametrize(
    ("unit", "told"),
    [
        (b"\0" * (1 << 20), "bomb.gz, line 1: it is longer than 4 MB"),
        (b"#" + b" " * 1_022 + b"\n", "0"),
        (RUN + b"#" * (1_023 - len(RUN)) + b"\n", str(3 * 240 * 1_024)),
    ],
)
def test_bomb_is_not_held_in_memory(tmp_path, unit, told):
    bomb, small = tmp_path / "bomb.gz", tmp_path / "small.run"
    megabyte = unit * ((1 << 20) // len(unit))
    bomb.write_bytes(gzip.compress(megabyte * 4) * 60)  # 240 MB in members of 4 MB
    small.write_bytes(RUN * 10_000)
    command = [sys.executable, "-c", _PEAK, str(bomb), str(small)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    text, _, grown = done.stdout.strip().rpartition(" ")
    assert text == told
    assert int(grown) < 150


# ------------------------------------------------------------------ any bytes

FIELDS = st.sampled_from(
    ["q1", "Q0", "d", "1", "0.5", "nan", "inf", "1e999", "-1", "#", "\ufeff", "é"]
)
GAPS = st.sampled_from([" ", "  ", "\t", "\r", "\x0b", "\xa0", "\n", "\r\n"])
LINES = st.lists(st.tuples(FIELDS, GAPS), max_size=60).map(
    lambda pairs: "".join(map("".join, pairs))
)
FILES = st.binary(max_size=300) | LINES.map(str.encode) | st.text(max_size=200).map(str.encode)


@settings(max_examples=reference.drawn(150), deadline=None)
@given(data=FILES, pack=st.sampled_from([bytes, gzip.compress]), cut=st.integers(0, 400))
def test_bytes_are_a_frame_or_our_error(tmp_path_factory, data, pack, cut):
    path = tmp_path_factory.getbasetemp() / "fuzz"
    whole = pack(data)
    path.write_bytes(whole[:cut] if cut < 20 else whole)
    for read, value in ((trec.read_run, pl.Float64), (trec.read_qrels, pl.Int64)):
        try:
            got = read(path)
        except rf.RankingDataError as error:
            assert str(error).startswith("fuzz")  # noqa: PT017
        else:
            assert got.dtypes == [pl.String, pl.String, value]
            assert got.null_count().sum_horizontal().item() == 0


@settings(max_examples=reference.drawn(60), deadline=None)
@given(
    data=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=4),
    pack=st.sampled_from([gzip.compress, zstd]),
)
def test_packed_file_with_wrong_bytes(tmp_path_factory, data, pack):
    path = tmp_path_factory.getbasetemp() / "fuzz"
    packed = bytearray(pack(b"".join(b"q%d Q0 d%d 1 0.5 x\n" % (i % 7, i * i) for i in range(50))))
    for place, byte in data:
        packed[place % len(packed)] = byte
    path.write_bytes(packed)
    try:
        got = trec.read_run(path)
    except rf.RankingDataError as error:
        assert str(error).startswith("fuzz")  # noqa: PT017
    else:
        assert got.width == 3


# ------------------------------------------------------------------ files of other shapes

BEIR = b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\nq2\td1\t-2\n"
JUDGED = [("q1", "d1", 1), ("q1", "d2", 0), ("q2", "d1", -2)]


@pytest.mark.parametrize("piece", [40, _sizes.BYTES_READ])
@pytest.mark.parametrize(
    "text",
    [
        BEIR,
        BEIR.rstrip(),
        BEIR.replace(b"\n", b"\r\n"),
        BEIR.replace(b"\t", b" "),
        BEIR.replace(b"\t", b","),
        b"\xef\xbb\xbf# made by\n\n" + BEIR + b"\n# end\n",
        BEIR.replace(b"d1", b'"d1"').replace(b"query-id", b'"query-id"'),
        BEIR.replace(b"query-id\tcorpus-id\tscore", b"user\titem\trelevance"),
        BEIR.partition(b"\n")[2],
        BEIR.partition(b"\n")[2].replace(b"\t", b"  "),
        b"# made by\n" + BEIR.partition(b"\n")[2].replace(b"\t", b" \t"),
        QRELS.replace(b" ", b"\t"),
    ],
)
def test_qrels_of_other_shapes_are_read(tmp_path, packed, text, piece, monkeypatch):
    monkeypatch.setattr(_sizes, "BYTES_READ", piece)
    path = tmp_path / "test.tsv"
    path.write_bytes(packed(text))
    got = trec.read_qrels(path)
    assert got.schema == {"user": pl.String, "item": pl.String, "relevance": pl.Int64}
    assert got.rows() == JUDGED
    for way in WAYS.values():
        assert way([packed(text)], trec.read_qrels).equals(got)


@pytest.mark.parametrize(
    ("text", "fields", "columns"),
    [
        (b"q1\td1\t1\nq2\td2\t2\n", ["user", "item", "rank"], {}),
        (b"q1,d1,1\r\nq2,d2,2\r\n", ["user", "item", "rank"], {}),
        (b"q1 d1 1\n\n# x\nq2\td2  2", ["user", "item", "rank"], {}),
        (b"q1 d1 1\nq2 d2 2\n", ["qid", "pid", "rank"], {"user": "qid", "item": "pid"}),
        (b"user\tmore\titem\trank\nq1\tx\td1\t1\nq2\t\td2\t2\n", None, {}),
        (
            b"qid,n,pid,place\nq1,9,d1,1\nq2,9,d2,2\n",
            None,
            {"user": "qid", "item": "pid", "rank": "place"},
        ),
    ],
)
def test_runs_of_other_shapes_are_read(tmp_path, packed, text, fields, columns):
    path = tmp_path / "a.tsv"
    path.write_bytes(packed(text))
    got = trec.read_run(path, fields=fields, **columns)
    assert got.select("user", "item", "rank").rows() == [("q1", "d1", 1), ("q2", "d2", 2)]
    assert got.schema["rank"] == pl.Int64
    assert got.rank.evaluate("rr", truth=pl.DataFrame({"user": ["q2"], "item": ["d2"]}))["rr"][0]


def test_fields_without_a_role_are_text(tmp_path):
    path = tmp_path / "a.run"
    path.write_bytes(RUN)
    names = ["user", "Q0", "item", "rank", "score", "number"]
    got = trec.read_run(path, fields=names)
    assert got.columns == names
    assert got.row(0) == ("q1", "Q0", "d1", 1, 0.5, "tag")
    got = trec.read_run(path, fields=["user", "_", "item", "_", "score", "model"])
    assert got.columns == ["user", "item", "score", "model"]
    path.write_text('user,item,score,title\n1,"a,b",2,"say ""x"", y"\n2,c"d,1.5,\n')
    got = trec.read_run(path)
    assert got.rows() == [("1", "a,b", 2.0, 'say "x", y'), ("2", 'c"d', 1.5, "")]


@pytest.mark.parametrize(
    ("read", "text", "keywords"),
    [
        ("run", "q1\td1\t1\n", {}),
        ("run", "# x\nq1 d1 1.5\n", {}),
        ("qrels", "196\t242\t881250949\n", {}),
        ("qrels", "q1 d1 1\nq1 d2 x\n", {}),
        ("qrels", "q1 d1 1\nq1 0 d2 1\n", {}),
        ("qrels", "query-id\tcorpus-id\tscore\n\nq1\td1\t0.5\n", {}),
        ("qrels", "query-id\tcorpus-id\tscore\nq1\td1\n", {}),
        ("qrels", "query-id\tcorpus-id\tscore\nq1\t\t1\n", {}),
        ("qrels", "user,item,relevance\n1,a,b,1\n", {}),
        ("qrels", 'user,item,relevance\n1,"a,1\n', {}),
        ("qrels", "q1 0 d1 1\n", {"user": "qid"}),
        ("run", "qid\titem\n", {"user": "qid"}),
        ("run", "q1 d1 1 0.5", {"fields": ["user", "item", "rank"]}),
        ("run", "q1 d1 1\nq1 d2 2.5", {"fields": ["user", "item", "rank"]}),
    ],
)
def test_line_of_another_shape_is_reported_by_its_number(tmp_path, read, text, keywords, refused):
    path = tmp_path / "a.tsv"
    path.write_text(text)
    refused(lambda: getattr(trec, f"read_{read}")(path, **keywords))


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"fields": "user item rank"}, TypeError, "fields must be a list of the names of all fiel"),
        ({"fields": ["user", 1]}, TypeError, "fields must be a list of the names of all fields"),
        (
            {"fields": ["user", "item"]},
            ValueError,
            "fields must name the fields of a line, including 'rank' ",
        ),
        (
            {"fields": ["user", "rank"]},
            ValueError,
            "fields must name the fields of a line, including 'item'",
        ),
        (
            {"fields": ["user", "item", "rank", "item"]},
            ValueError,
            "fields has a duplicate name, 'item'",
        ),
        ({"user": "x", "item": "x"}, ValueError, "two roles name the same column, 'x'"),
        ({"user": "item"}, ValueError, "two roles name the same column, 'item'"),
        ({"relevance": "x"}, TypeError, "scan_run has no keyword 'relevance'; it takes 'source'"),
        ({"user": 3}, TypeError, "user= must be the name of a column, not 3"),
    ],
)
def test_names_of_fields_are_checked(tmp_path, keywords, error, message):
    path = tmp_path / "a.run"
    path.write_bytes(RUN)
    with pytest.raises(error) as caught:
        trec.scan_run(path, **keywords)
    assert str(caught.value).startswith(message)


def test_line_of_trec_is_no_header(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("user\t0\titem\t1\nuser\t0\tb\t0\n")
    assert trec.read_qrels(path).rows() == [("user", "item", 1), ("user", "b", 0)]
    path.write_text("user Q0 item 1 0.5 tag\n")
    assert trec.read_run(path).rows() == [("user", "item", 0.5)]


def test_chunks_become_documents(shared):
    """A document is where its best chunk is, and further chunks of it leave no gaps."""
    run = pl.read_parquet(shared / "trec_sample" / "run.parquet")
    truth = pl.read_parquet(shared / "trec_sample" / "qrels.parquet")
    place = pl.int_range(pl.len()).over("user")
    copies = [run.with_columns(score=pl.col("score") - copy * 1e-6, copy=copy) for copy in range(3)]
    chunks = pl.concat(copies).sort(
        "user", "score", "item", "copy", descending=[False, True, True, False]
    )
    chunks = chunks.with_columns(
        chunk=pl.concat_str("item", pl.lit("#"), "copy"), rank=1 + place
    ).drop("item")
    of_document = chunks.with_columns(item=pl.col("chunk").str.extract("^(.*)#")).group_by(
        "user", "item"
    )
    expected = run.drop("rank").rank.per_user("ndcg@10", "map", "rr", truth=truth)
    by_score = of_document.agg(pl.col("score").max())
    by_rank = of_document.agg(score=-pl.col("rank").min()).rank.with_rank()
    for documents in (by_score, by_rank):
        got = documents.rank.per_user("ndcg@10", "map", "rr", truth=truth)
        assert_frame_equal(got, expected, abs_tol=1e-12)
    gaps = of_document.agg(pl.col("rank").min()).rank.evaluate("ndcg@10", truth=truth)
    assert gaps["ndcg@10"].item() < 0.9 * expected["ndcg@10"].mean()


# ------------------------------------------------------------------ writing

WORDS = st.text(st.characters(codec="utf-8", exclude_characters=" \t\n\r\f\v"), min_size=1)
USERS = WORDS.filter(lambda word: word[0] not in "#\ufeff")
SCORES = st.floats(allow_nan=False, allow_infinity=False)
SUFFIXES = ["", ".gz", ".zst"]


def written(folder, frame, write=trec.write_run, suffix="", **options):
    path = folder / f"out.trec{suffix}"
    write(frame, path, **options)
    return path


@settings(max_examples=reference.drawn(80), deadline=None)
@given(
    rows=st.lists(st.tuples(USERS, WORDS, SCORES), min_size=1, unique_by=lambda row: row[:2]),
    suffix=st.sampled_from(SUFFIXES),
)
def test_run_comes_back_bit_for_bit(tmp_path_factory, rows, suffix):
    run = pl.DataFrame(rows, ["user", "item", "score"], orient="row")
    path = written(tmp_path_factory.getbasetemp(), run, suffix=suffix)
    got = trec.read_run(path)
    assert got.drop("score").equals(run.drop("score"))
    assert [x.hex() for x in got["score"]] == [x.hex() for x in run["score"]]  # −0.0 too
    assert path.read_bytes().startswith({"": rows[0][0].encode(), ".gz": b"\x1f"}.get(suffix, b"("))


@settings(max_examples=reference.drawn(40), deadline=None)
@given(
    rows=st.lists(
        st.tuples(USERS, WORDS, st.integers(-(2**63), 2**63 - 1)),
        min_size=1,
        unique_by=lambda row: row[:2],
    ),
    suffix=st.sampled_from(SUFFIXES),
)
def test_qrels_come_back(tmp_path_factory, rows, suffix):
    truth = pl.DataFrame(rows, ["user", "item", "relevance"], orient="row")
    path = written(tmp_path_factory.getbasetemp(), truth, trec.write_qrels, suffix)
    assert trec.read_qrels(path).equals(truth)


def test_real_files_come_back(shared, tmp_path):
    for name in ("trec_sample", "web12_catb"):
        run = pl.read_parquet(shared / name / "run.parquet")
        truth = pl.read_parquet(shared / name / "qrels.parquet")
        path = written(tmp_path, run, suffix=".gz", tag="indri")
        assert trec.read_run(path).equals(run.drop("rank"))
        ranks = pl.read_csv(path, has_header=False, separator=" ", infer_schema=False)
        assert (
            ranks.to_series(3).cast(pl.Int64).equals(run["rank"].cast(pl.Int64), check_names=False)
        )
        path = written(tmp_path, truth, trec.write_qrels)
        assert trec.read_qrels(path).equals(truth.cast({"relevance": pl.Int64}))


def test_lines_are_those_of_trec(tmp_path):
    run = pl.DataFrame({"uid": [2, 1, 1], "sku": [7, 9, 10], "points": [0.1, 1e-7, 1e22]})
    path = written(tmp_path, run, tag="a", user="uid", item="sku", score="points")
    assert path.read_text() == "2 Q0 7 1 0.1 a\n1 Q0 9 2 1e-7 a\n1 Q0 10 1 1e+22 a\n"
    truth = run.select("uid", "sku", seen=pl.Series([True, False, True]))
    path = written(tmp_path, truth, trec.write_qrels, user="uid", item="sku", relevance="seen")
    assert path.read_text() == "2 0 7 1\n1 0 9 0\n1 0 10 1\n"
    path = written(tmp_path, truth.drop("seen"), trec.write_qrels, user="uid", item="sku")
    assert path.read_text() == "2 0 7 1\n1 0 9 1\n1 0 10 1\n"


def test_items_not_retrieved_are_not_written(tmp_path):
    run = pl.DataFrame({"user": 1, "item": list("abcd"), "score": [0.5, None, float("nan"), 2.0]})
    assert written(tmp_path, run.lazy()).read_text() == (
        "1 Q0 a 2 0.5 rankframe\n1 Q0 d 1 2.0 rankframe\n"
    )
    ranked = run.rank.with_rank()
    assert written(tmp_path, ranked).read_text() == written(tmp_path, run).read_text()
    ranks = ranked.drop("score").to_pandas()
    assert written(tmp_path, ranks).read_text() == (
        "1 Q0 a 2 -2.0 rankframe\n1 Q0 d 1 -1.0 rankframe\n"
    )


def test_blocks_of_ties_stay_ties(tmp_path):
    run = pl.DataFrame({"user": 1, "item": list("abc"), "score": [0.5, 0.5, 2.0]})
    tied = run.rank.with_rank(ties="expected")
    for frame in (tied, tied.drop("score")):
        got = trec.read_run(written(tmp_path, frame))
        again = got.rank.with_rank(ties="expected")
        assert again["rank"].to_list() == [2, 2, 1]
        assert again["tied"].to_list() == [2, 2, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"user": "a b"},
            "run, column 'user': user that is empty or has white space, ",
        ),
        ({"user": "#a"}, "or begins with #"),
        ({"user": ""}, "Offending row: user='', item='x'"),
        ({"user": None}, "null user: drop the row"),
        (
            {"item": "a\tb"},
            "run, column 'item': item that is empty or has white space: rename it",
        ),
        ({"item": "a\n"}, "Offending row: user='u', item='a\\n'"),
        ({"item": b"\xff"}, "run, column 'item': TREC files hold text, so cast it to pl.String"),
        ({"score": float("inf")}, "run, column 'score': infinite score"),
        ({"score": None}, "run, column 'score': it is null in every row"),
        ({"score": "high"}, "run, column 'score': String cannot be a score"),
        ({"score": 1.0, "rank": 2}, "run, column 'rank': a rank that differs from the one that"),
        ({"score": None, "rank": 1}, "item='x', score=null, rank=1, made=null"),
        ({"score": "high", "rank": 1}, "run, column 'score': String cannot be a score"),
        ({"rank": 0}, "run, column 'rank': a rank that is not an integer ≥ 1"),
        ({"score": 1.0, "relevance": 1}, "run, column 'relevance': a relevance in a run"),
    ],
)
def test_runs_that_no_file_can_hold(tmp_path, change, message):
    row = {"user": "u", "item": "x", **({} if {"score", "rank"} & set(change) else {"score": 1.0})}
    run = pl.DataFrame([{**row, **change}])
    with pytest.raises(rf.RankingDataError) as caught:
        written(tmp_path, run)
    assert message in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_rows_and_order_that_no_file_can_hold(tmp_path):
    run = pl.DataFrame({"user": 1, "item": ["a", "b"], "score": [1.0, 1.0], "rank": [1, 2]})
    with pytest.raises(rf.RankingDataError, match="made=2"):  # ties by item, descending: b, a
        written(tmp_path, run)
    gap = pl.DataFrame({"user": 1, "item": ["a", "b"], "rank": [1, 3]})
    with pytest.raises(rf.RankingDataError, match="rank=3, made=2"):
        written(tmp_path, gap)
    with pytest.raises(rf.RankingDataError, match="duplicate"):
        written(tmp_path, pl.concat([run, run]))
    for tag in ("", "a b", " a", "a\n"):
        with pytest.raises(ValueError, match="tag must be one word"):
            written(tmp_path, gap, tag=tag)
    with pytest.raises(TypeError, match="the run must be a polars DataFrame"):
        written(tmp_path, {})
    with pytest.raises(FileNotFoundError):
        written(tmp_path / "none", run.drop("rank"))
    for relevance in (0.5, 2.0**63, 1e300):
        truth = gap.select("user", "item", relevance=pl.lit(relevance))
        with pytest.raises(
            rf.RankingDataError,
            match="column 'relevance': a relevance that is not a 64-bit integer",
        ):
            written(tmp_path, truth, trec.write_qrels)
    assert not list(tmp_path.iterdir())


def test_subtopics_come_back(tmp_path):
    truth = pl.DataFrame(
        {"user": ["1"] * 3, "item": ["a", "a", "b"], "subtopic": ["x", "y", "x"], "relevance": 1}
    )
    trec.write_qrels(truth, tmp_path / "a.qrels")
    back = trec.read_qrels(tmp_path / "a.qrels", subtopics=True)
    assert back.select(truth.columns).rows() == truth.rows()
    with pytest.raises(
        rf.RankingDataError,
        match="column 'subtopic': subtopic that is empty or has white space: rename",
    ):
        trec.write_qrels(truth[:1].with_columns(subtopic=pl.lit("a b")), tmp_path / "b.qrels")


@pytest.mark.parametrize(
    "scores",
    [
        pl.Series([2**60, 2**60 + 1]),
        pl.Series(["1", "1.00000000000000000001"]).cast(pl.Decimal(38, 20)),
    ],
)
def test_scores_that_floats_cannot_distinguish(scores, tmp_path, refused):
    run = pl.DataFrame({"user": ["1", "1"], "item": ["b", "a"], "score": scores})
    refused(trec.write_run, run, tmp_path / "a.run")
    trec.write_run(run.with_columns(item=pl.Series(["a", "b"])), tmp_path / "a.run")


def test_tag_is_text(tmp_path):
    for tag in (None, 3, "", "a b"):
        with pytest.raises(ValueError, match="tag must be one word, not"):
            trec.write_run(
                pl.DataFrame({"user": [1], "item": [1], "rank": [1]}), tmp_path / "a", tag=tag
            )
