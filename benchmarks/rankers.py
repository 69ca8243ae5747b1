# /// script
# requires-python = ">=3.11"
# dependencies = ["catboost==1.2.10", "lightgbm==4.7.0", "numpy>=2", "xgboost==3.2.0"]
# ///
"""Write ``rankers.json``: groups, and what LightGBM, XGBoost and CatBoost evaluate on them.

The scores are passed as they are (as initial scores, margins or approximations), so nothing is
trained. The groups have no equal scores; some have no positive, one grade, or one row. The presets
are compared with these numbers in ``tests/metrics/test_rankers.py``.
"""

from __future__ import annotations

import json
import random
from importlib.metadata import version
from pathlib import Path

import lightgbm as lgb
import numpy as np
import xgboost as xgb
from catboost.utils import eval_metric

FILE = Path(__file__).with_name("rankers.json")
CUTS = [1, 3, 5, 10]
Groups = list[tuple[list[int], list[float]]]


def groups() -> Groups:
    """Draw groups of labels and of scores."""
    draw = random.Random(34)
    drawn: Groups = []
    for size in [1, 1, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 20, 25]:
        top = draw.choice([1, 2, 4])
        labels = [draw.choice([0, draw.randint(0, top)]) for _ in range(size)]
        drawn.append((labels, [place / 64 for place in draw.sample(range(-99, 99), size)]))
    drawn[3] = [0, 0, 0], drawn[3][1]
    drawn[5] = [2, 2, 2, 2], drawn[5][1]
    drawn[9] = [0] * 6, drawn[9][1]
    return drawn


def joined(chosen: Groups) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Put groups behind each other, as the libraries take them."""
    labels = np.concatenate([np.array(labels) for labels, _ in chosen])
    return labels, np.concatenate([scores for _, scores in chosen]), [len(a) for a, _ in chosen]


def of_lightgbm(chosen: Groups) -> dict[str, float]:
    """Evaluate a booster without trees: its scores are the initial ones."""
    labels, scores, sizes = joined(chosen)
    data = lgb.Dataset(scores[:, None], label=labels, group=sizes, init_score=scores)
    parameters = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": CUTS}
    booster = lgb.Booster({**parameters, "verbosity": -1}, data)
    return {name: float(value) for _, name, value, _ in booster.eval_train()}


def of_xgboost(chosen: Groups) -> dict[str, float]:
    """MAP is of labels 0 and 1: XGBoost refuses others."""
    labels, scores, sizes = joined(chosen)
    values: dict[str, float] = {}
    for name, grades in (("ndcg", labels), ("map", np.minimum(labels, 1))):
        data = xgb.DMatrix(scores[:, None], label=grades, base_margin=scores)
        data.set_group(sizes)
        for label in (name, *(f"{name}@{k}" for k in CUTS)):
            parameters = {"objective": f"rank:{name}", "eval_metric": label}
            booster = xgb.train(parameters, data, num_boost_round=0)
            values[label] = float(booster.eval(data).rpartition(":")[2])
    return values


def of_catboost(chosen: Groups) -> dict[str, float]:
    """Evaluate approximations, with the labels of rankframe."""
    labels, scores, sizes = joined(chosen)
    names = {}
    for k in CUTS:
        names[f"ndcg@{k}"] = f"NDCG:top={k}"
        names[f"ndcg(gain=exponential)@{k}"] = f"NDCG:top={k};type=Exp"
        names[f"ndcg(discount=rank)@{k}"] = f"NDCG:top={k};denominator=Position"
        names[f"dcg(discount=rank)@{k}"] = f"DCG:top={k};denominator=Position"
        names[f"map@{k}"] = f"MAP:top={k}"
    ids = np.repeat(np.arange(len(sizes)), sizes)
    return {
        label: float(eval_metric(labels, scores, name, group_id=ids)[0])
        for label, name in names.items()
    }


def main() -> None:
    """Write the file."""
    drawn = groups()
    tools = {"lightgbm": of_lightgbm, "xgboost": of_xgboost, "catboost": of_catboost}
    content = {
        "groups": [{"label": labels, "score": scores} for labels, scores in drawn],
        **{
            name: {
                "version": version(name),
                "all": values(drawn),
                "each": [values([group]) for group in drawn],
            }
            for name, values in tools.items()
        },
    }
    FILE.write_text(json.dumps(content, separators=(",", ":")).replace("},", "},\n") + "\n")


if __name__ == "__main__":
    main()
