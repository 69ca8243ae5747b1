"""Each public call answers a wrong keyword with one that it takes, as the command does."""

import importlib
import inspect
import re

import polars as pl
import pytest

import rankframe as rf
from rankframe import parts, plot, trec
from rankframe._request.labels import METRICS
from rankframe._request.wrong_keywords import WORDS, taken_by

FRAME = pl.DataFrame({"user": [1], "item": [2], "rank": [1]})
ROOMS = [rf, rf.metrics, rf.stats, rf.runs, plot, parts, trec]
if importlib.util.find_spec("pyspark"):
    ROOMS.append(importlib.import_module("rankframe.spark"))
CALLS = {
    f"{room.__name__}.{name}": call
    for room in ROOMS
    for name in room.__all__
    if inspect.isroutine(call := getattr(room, name)) and name != "plain_errors"
}
CALLS |= {f"method {name}": getattr(FRAME.rank, name) for name in METRICS}
CALLS |= {"Meter": rf.Meter, "Meter.update": rf.Meter("rr").update}
BY_POSITION = {
    "METRICS": "metrics come by position",
    "LABEL": "write the cut-off in the label",
    "TABLE": "the table comes first",
}


def answer(call, word):
    with pytest.raises(TypeError, match=f"has no keyword '{word}'") as caught:
        call(**{word: None})
    return str(caught.value)


def named(text):
    """Return the keyword that an answer names, or what it says of positions."""
    if found := re.search(r"(?:the nearest is|here it is) '(\w+)'|: '(confidence)' is", text):
        return found[1] or found[2]
    return next((sign for sign, said in BY_POSITION.items() if said in text), None)


def forms(word):
    """Return a word as it is and without each letter; those of words one slip apart meet."""
    return {word, *(word[:place] + word[place + 1 :] for place in range(len(word)))}


@pytest.mark.parametrize("name", CALLS)
def test_words_of_other_libraries_lead_to_ours(name):
    taken = taken_by(getattr(CALLS[name], "__func__", CALLS[name]))
    for word in {word for others in WORDS.values() for word in others.split()} - {*taken}:
        same = [own for own, others in WORDS.items() if word in others.split()]
        same += ["LABEL"] if "k" in same else []
        found = named(answer(CALLS[name], word))
        expected = [own for own in same if own in taken]
        assert found == expected[0] if expected else found is None or found in taken, word


@pytest.mark.parametrize("name", CALLS)
def test_a_misspelled_keyword_has_a_nearest_one(name):
    taken = taken_by(getattr(CALLS[name], "__func__", CALLS[name]))
    known = {*taken, *(word for others in WORDS.values() for word in others.split())}
    for own in filter(str.islower, taken):
        for place in range(1, len(own) - 1):
            left_out = own[:place] + own[place + 1 :]
            swapped = own[:place] + own[place + 1] + own[place] + own[place + 2 :]
            for typed in {left_out, swapped, f"{own[:place]}x{own[place:]}"} - known:
                found = named(answer(CALLS[name], typed))
                assert found in taken, typed
                assert forms(found) & forms(typed), (own, typed)
