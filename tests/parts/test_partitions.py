"""What goes to the workers: a question that is pickled, and the rows that its metrics need."""

import pickle
from dataclasses import replace

import polars as pl
import pytest
from two_models import RUN, TRUTH, assert_same

import rankframe as rf
from rankframe._evaluation.evaluation import plan_values
from rankframe._request.keywords import Settings, read_options
from rankframe._request.question import ask
from rankframe.parts._partitions import needs_of


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


@pytest.mark.parametrize(
    ("metrics", "options", "depth", "relevant"),
    [
        (["precision@3", "ndcg@10"], {}, 10, True),
        (["precision@3", "map"], {}, None, True),
        (["precision(divide_by=returned)@3"], {}, None, True),
        (["ndcg(ideal=returned)@3"], {}, None, True),
        (["precision@3", "bpref"], {}, None, False),
        (["map"], {"depth": 5}, 5, True),
        (["precision@3"], {"users": "judged"}, 3, False),
        (["precision@3"], {"users": "run"}, 3, False),
        (["precision@3", "missed", "num_missed"], {}, 3, True),
        (["precision@3", "num_ret"], {}, None, False),
        (["precision@3"], {"counts": ["missed"]}, 3, True),
        (["precision@3"], {"unjudged": "drop"}, None, False),
        (["precision@3"], {"by": "model"}, 3, True),
        (["precision@3"], {"by": "genre"}, None, False),
        ([pl.len().alias("n"), "precision@3"], {}, None, True),
    ],
)
def test_what_must_go_into_a_shuffle(metrics, options, depth, relevant):
    by, counts = options.pop("by", []), options.pop("counts", ())
    settings = read_options(options, counts=counts)
    plan = plan_values(ask(RUN, metrics, TRUTH, by, settings, per_user=True))
    needs = needs_of(plan, settings)
    assert (needs.depth, needs.relevant) == (depth, relevant)
    needs = needs_of(plan, replace(settings, unjudged="bounds"))
    assert (needs.depth, needs.relevant) == (None, False)
