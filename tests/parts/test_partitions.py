"""What goes to the workers: a question that is pickled."""

import pickle

import polars as pl
from two_models import RUN, TRUTH, assert_same

import rankframe as rf
from rankframe._evaluation.evaluation import plan_values
from rankframe._request.keywords import Settings
from rankframe._request.question import ask


def test_a_question_is_pickled_as_it_was_asked():
    question = ask(pl.LazyFrame(), ["gmap", rf.metrics.ndcg_at(3)], None, "model", Settings())
    again = pickle.loads(pickle.dumps(question))
    assert "requested" in vars(question)
    assert "requested" not in vars(again)
    assert [metric.name for metric in again.requested] == ["gmap", "ndcg@3"]
    got, expected = (
        plan_values(each.of(RUN, TRUTH)).rows.sort("model", "user").collect()
        for each in (again, question)
    )
    assert_same(got, expected)
