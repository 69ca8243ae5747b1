"""Each public call answers a wrong keyword with one that it takes, as the command does."""

import importlib
import inspect
import re

import polars as pl
import pytest
import reference

import rankframe as rf
from rankframe import parts, plot, trec
from rankframe._request.labels import METRICS
from rankframe._request.wrong_keywords import WORDS, taken_by

FRAME = pl.DataFrame({"user": [1], "item": [2], "rank": [1]})
ROOMS = [rf, rf.metrics, rf.stats, rf.runs, plot, parts, trec]
if importlib.util.find_spec("pyspark"):
    ROOMS.append(importlib.import_module("rankframe.spark"))
CALLS = {
    room.__name__: {
        name: call
        for name in room.__all__
        if inspect.isroutine(call := getattr(room, name)) and name != "plain_errors"
    }
    for room in ROOMS
}
CALLS["rankframe"] |= {"Meter": rf.Meter, "Meter.update": rf.Meter("rr").update}
CALLS["methods"] = {name: getattr(FRAME.rank, name) for name in METRICS}
BY_POSITION = {
    "METRICS": "metrics come by position",
    "LABEL": "write the cut-off in the label",
    "TABLE": "the table comes first",
}


def answer(call, word):
    with pytest.raises(TypeError) as caught:
        call(**{word: None})
    text = str(caught.value)
    assert f"has no keyword '{word}'" in text
    return text


def named(text):
    """Return the keyword that an answer names, or what it says of positions."""
    if found := re.search(r"(?:the nearest is|here it is) '(\w+)'|: '(confidence)' is", text):
        return found[1] or found[2]
    return next((sign for sign, said in BY_POSITION.items() if said in text), None)


def forms(word):
    """Return a word as it is and without each letter; those of words one slip apart meet."""
    return {word, *(word[:place] + word[place + 1 :] for place in range(len(word)))}


def keywords_of(call):
    return taken_by(getattr(call, "__func__", call))


def distinct(calls):
    """Keep one call of each set of keywords; methods of metrics share those of per_user."""
    return {frozenset(keywords_of(call)): call for call in calls.values()}.values()


@pytest.mark.parametrize("room", CALLS)
def test_calls_answer_a_wrong_keyword(room):
    for name, call in CALLS[room].items():
        assert answer(call, "zyzzyva").startswith(f"{name} has no"), name


@pytest.mark.parametrize("room", CALLS)
def test_words_of_other_libraries_lead_to_ours(room):
    for call in distinct(CALLS[room]):
        taken = keywords_of(call)
        for word in {word for others in WORDS.values() for word in others.split()} - {*taken}:
            same = [own for own, others in WORDS.items() if word in others.split()]
            same += ["LABEL"] if "k" in same else []
            found = named(answer(call, word))
            expected = [own for own in same if own in taken]
            assert found == expected[0] if expected else found is None or found in taken, word


@pytest.mark.parametrize("room", CALLS)
def test_misspelled_keyword_has_a_nearest_one(room):
    shared = {*keywords_of(rf.per_user)} if room == "methods" else set()
    for call in distinct(CALLS[room]):
        taken = keywords_of(call)
        known = {*taken, *(word for others in WORDS.values() for word in others.split())}
        for own in filter(str.islower, {*taken} - shared):
            for place in range(1, len(own) - 1, 1 if reference.thorough else 3):
                left_out = own[:place] + own[place + 1 :]
                swapped = own[:place] + own[place + 1] + own[place] + own[place + 2 :]
                for typed in {left_out, swapped, f"{own[:place]}x{own[place:]}"} - known:
                    found = named(answer(call, typed))
                    assert found in taken, typed
                    assert forms(found) & forms(typed), (own, typed)


@pytest.mark.parametrize(
    ("call", "word", "said"),
    [
        (rf.gate, "tolerance", "here it is 'margin'"),
        (rf.gate, "threshold", "here it is 'at_least'"),
        (rf.evaluate, "threshold", "here it is 'relevant_at'"),
        (rf.evaluate, "cutoff", "write the cut-off in the label, as in 'ndcg@10'"),
        (rf.evaluate, "human", "an option of summarize, compare, gate, report and power"),
        (rf.evaluate, "seeds", "the same call always has the same result"),
    ],
)
def test_word_leads_to_what_the_call_means_by_it(call, word, said):
    assert answer(call, word).endswith(said)


@pytest.mark.parametrize("verb", [rf.evaluate, rf.gate, rf.stats.harm])
def test_second_table_by_position(verb):
    with pytest.raises(TypeError, match=f"^{verb.__name__} takes one table by position: pass the"):
        verb(FRAME, FRAME, "rr")
