"""Types of CSV from its first rows are those of all rows: the same output or the same error."""

import contextlib
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankframe._command import files, main

NUMBERS = ["1", "-2", "0.5", "1e5", "+7", " 7", "nan", "inf", "", "true", "x", '" 7"', '"1"', "1,2"]
NUMBERS += ["9223372036854775808", "\t7", "007", "٣", "1e400"]
IDS = st.sampled_from(["1", "1", "007", "u", "+1", " 1", "-0", ""])


@given(
    scores=st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=4),
    ids=st.tuples(IDS, IDS),
    truth=st.sampled_from(["a.csv", "a.qrels"]),
    first=st.sampled_from([1, 2, 10_000]),
)
@settings(deadline=None)
def test_types_of_the_first_rows_are_those_of_all(tmp_path_factory, scores, ids, truth, first):
    folder = tmp_path_factory.mktemp("csv")
    rows = [f"{ids[0]},{place},{score}\n" for place, score in enumerate(scores)]
    run, judged = folder / "run.csv", folder / truth
    run.write_text("user,item,score\n" + "".join(rows))
    line = f"{ids[1]} 0 0 1\n"
    if truth == "a.csv":
        line = f"user,item,relevance\n{ids[1]},0,1\n"
    judged.write_text(line)
    words, outputs = ["evaluate", str(run), str(judged), "-m", "mrr", "--json"], []
    for is_plain in (files._is_plain, lambda _: False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "_is_plain", is_plain)
            patch.setattr(files._sizes, "FIRST_ROWS", first)
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                outputs.append((main.main(words), out.getvalue(), err.getvalue()))
    assert outputs[0] == outputs[1]


def test_integers_of_csv_are_text_beside_text(tmp_path, capsys):
    (tmp_path / "run.csv").write_text("user,item,score\n1,7,0.5\n")
    (tmp_path / "truth.csv").write_text("user,item,relevance\n1,7,1\n01,7,1\n")
    words = ["evaluate", f"{tmp_path}/run.csv", f"{tmp_path}/truth.csv", "-m", "mrr", "--json"]
    assert main.main(words) == 0
    assert '"users": 2, "mrr": 0.5' in capsys.readouterr().out


def test_digits_of_other_scripts_are_text(tmp_path, capsys):
    (tmp_path / "run.csv").write_text("user,item,score\n٣,7,0.5\n4,7,0.5\n", encoding="utf-8")
    (tmp_path / "truth.csv").write_text("user,item,relevance\n٣,7,1\n", encoding="utf-8")
    words = ["evaluate", f"{tmp_path}/run.csv", f"{tmp_path}/truth.csv", "-m", "mrr", "--json"]
    assert main.main(words) == 0
    assert '"users": 1, "mrr": 1.0' in capsys.readouterr().out
