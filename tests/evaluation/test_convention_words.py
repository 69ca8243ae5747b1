"""Conventions in words: every choice that a caller has, what differs, and a report's fine print."""

from typing import get_args

import polars as pl
import pytest

import rankframe as rf
from rankframe._evaluation import convention_words
from rankframe._request import keywords, parameters
from rankframe.presets import PRESETS, Users

CHOICES = {
    "users": (*get_args(Users), "rows"),
    "undefined": (None, 0.0, 1),
    "average": ("users", "pooled", "dataset"),
    "relevant_at": (None, 2.0),
    "duplicates": get_args(keywords.Duplicates),
    "depth": (None, 100),
    "unjudged": ("miss", "drop"),
    "ties": ("item", "order", "expected", "pessimistic", "optimistic", "32-bit"),
    "ranks": (1, 2),
    "single_precision": (True,),
    "k": (None, 10),
    "gain": (*get_args(get_args(parameters.Gain)[0]), {1: 1.0, 2: 5.0}),
    "discount": (*get_args(get_args(parameters.Discount)[0]), (1.0, 0.5)),
    "base": (None, 2, 3.0),
    "ideal": ("truth", "returned", "perfect", "same_length"),
    "divide_by": ("relevant", "attainable", "returned", "hits", "k"),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_each_value_of_a_choice_has_words_of_its_own(choice):
    texts = [convention_words.words({choice: value}) for value in CHOICES[choice]]
    assert len({*texts}) == len(texts)
    assert not any(mark in text for text in texts for mark in "{}=")


def test_choice_without_words_is_named():
    assert convention_words.words({"p": 0.9, "count": True}) == "p=0.9, count=true"


def test_what_differs_is_told():
    yours = {"gain": "linear", "ideal": "truth", "undefined": 0, "users": "truth"}
    theirs = {"gain": "binary", "ideal": "truth", "undefined": 0.0, "users": "run"}
    differs = convention_words.departures(theirs, yours)
    assert convention_words.words(differs) == "binary gain, over users with a list"
    differs = convention_words.departures(yours, theirs)
    words = "linear gain, over users with a relevant item (0 without a list)"
    assert convention_words.words(differs) == words


def test_tools_are_named_as_they_are_written():
    tools = convention_words.tools(["rectools", "trec_eval_9", "ranx"])
    assert tools == "RecTools, trec_eval 9, ranx"
    assert convention_words.enumeration(["a", "b", "c"]) == "a, b and c"
    assert convention_words.enumeration(["a"]) == "a"
    names = [convention_words.tools([name]).replace("trec_eval", "") for name in PRESETS]
    assert not any("_" in name for name in names)
    assert convention_words._templates("tools").keys() <= PRESETS.keys()


def test_fine_print_of_a_report_names_the_convention():
    run = pl.DataFrame({"query": [1, 1, 2], "doc": [*"aba"], "rank": [1, 2, 1]})
    truth = pl.DataFrame({"query": [1, 2, 3], "doc": [*"baa"], "relevance": [2, 1, 2]})
    options = {"truth": truth, "user": "query", "item": "doc"}
    page = rf.report(run, "ndcg@2", **options, preset="spark", relevant_at=2, depth=5)._repr_html_()
    assert (
        "over queries with a list and a judgment, undefined values as 0, relevant from grade 2 "
        "(gains of all grades &amp;gt; 0), unjudged documents not relevant, lists cut at 5 (Spark)"
    ) in page
    assert "over queries with a relevant document (0 without a list)" in (
        rf.report(run, "ndcg@2", **options)._repr_html_()
    )
