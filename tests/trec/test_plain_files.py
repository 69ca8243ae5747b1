"""Plain text is read without patterns: by both roads, the same frame or the same error."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankframe as rf
from rankframe import trec
from rankframe.trec import _lines

ODD = ["", " ", "  ", "\t", "#", '"', "\r", "\x0b", "\x00", "é", "\ufeff", ",", "\n", "x\x01", "-"]
WORDS = st.sampled_from(["q1", "Q0", "d1", "007", "1", "0.5", "nan", "1e400", "inf", "+1", *ODD])
PLAIN = st.sampled_from(["q1 Q0 d1 1 0.5 tag", "q1 0 d2 1", "q2 d1 1", "q2,d1,1", "q2\td1\t1"])
ENDS = st.sampled_from(["", "\n", "\r\n", " ", ",", "\t", "\n\n"])


@st.composite
def texts(draw):
    """Lines that are alike, of which one may be odd."""
    separator = draw(st.sampled_from([" ", " ", ",", "\t"]))
    lines = [draw(PLAIN)] * draw(st.integers(0, 3))
    odd = separator.join(draw(st.lists(WORDS, max_size=7)))
    lines.insert(draw(st.integers(0, len(lines))), odd)
    header = draw(st.sampled_from(["", f"user{separator}item{separator}score\n"]))
    return header + "\n".join(lines) + draw(ENDS)


def outcome(read, *arguments, **options):
    try:
        frame = read(*arguments, **options)
    except Exception as error:  # noqa: BLE001
        return type(error), str(error)
    return frame.schema, [repr(row) for row in frame.rows()]


READERS = [
    (trec.read_run, {}),
    (trec.read_run, {"fields": ["user", "item", "score"]}),
    (trec.read_run, {"fields": ["user", "item", "rank"]}),
    (trec.read_qrels, {}),
    (trec.read_qrels, {"subtopics": True}),
    (trec.read_qrels, {"relevance": "score"}),
]


@pytest.mark.parametrize("reader", READERS)
@given(text=texts(), piece=st.sampled_from([8, 64, 4096]))
@settings(deadline=None)
def test_plain_lines_are_read_as_by_the_pattern(tmp_path_factory, reader, text, piece):
    read, options = reader
    path = tmp_path_factory.mktemp("text") / "a.txt"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_lines._sizes, "BYTES_READ", piece)
        got = outcome(read, path, **options)
        patch.setattr(_lines, "_plain", lambda *_: None)
        assert got == outcome(read, path, **options)


def test_plain_lines_need_no_pattern(tmp_path, monkeypatch):
    path = tmp_path / "a.run"
    path.write_text("q1 Q0 007 1 0.5 tag\nq1 Q0 d2 2 0.25 tag\n")
    parsed, pieces = _lines._parsed, []
    monkeypatch.setattr(_lines, "_parsed", lambda *words: pieces.append(words[2]) or parsed(*words))
    assert trec.read_run(path).rows() == [("q1", "007", 0.5), ("q1", "d2", 0.25)]
    assert pieces == [b"\n"]


@pytest.mark.parametrize("separator", [",", "\t"])
def test_an_empty_field_too_many_is_an_error(tmp_path, separator):
    path = tmp_path / "a.csv"
    lines = ["q1,d1,1", "q1,d2,2,", ""]
    path.write_text("\n".join(lines).replace(",", separator))
    with pytest.raises(rf.RankingDataError, match=r"a.csv, line 2: it is not of the form"):
        trec.read_run(path, fields=["user", "item", "rank"])
