"""Six Python tools on the conformance suite, each as its users call it.

A function gives the number of a case by the option of the tool that is nearest to its convention,
and raises NotImplementedError where the tool has no such metric, or where its users change the
tables themselves. ``offers.json`` has the tool's names of the metrics, and the values that a field
of the convention can have there: the first stands for those that are not offered.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

OFFERS = json.loads(Path(__file__).with_name("offers.json").read_text())
_USUAL = {"unjudged": "miss", "score_order": "descending", "score_precision": 64}

Case = dict[str, Any]
Tables = dict[str, Any]


def _name(tool: str, case: Case) -> str:
    """Find the tool's name of the metric."""
    metric, changed = case["metric"], OFFERS[tool]["changed"]
    plain = metric["name"] + ("" if metric.get("k") is None else "@k")
    names = OFFERS[tool]["names"]
    options = (f"{plain} {metric[key]}" for key in ("divide_by", "gain") if key in metric)
    name = next((names[option] for option in options if option in names), names.get(plain))
    if name is None or any(case[field] != _USUAL.get(field) for field in changed):
        raise NotImplementedError
    return name.format(**metric)


def _by_user(rows: Iterable[list[Any]]) -> dict[str, dict[str, Any]]:
    users: dict[str, dict[str, Any]] = defaultdict(dict)
    for user, item, number in rows:
        users[user][item] = number
    return dict(users)


def _scored(tables: Tables) -> list[list[Any]]:
    """Rows of user, item and score; a rank becomes a score."""
    by_rank = tables["run_by"] == "rank"
    return [[u, i, 1e6 - number if by_rank else float(number)] for u, i, number in tables["run"]]


def _relevant(case: Case, grade: float) -> bool:
    return grade > 0 and grade >= (case["relevant_at"] or 0)


def _mean(values: Iterable[float]) -> float:
    numbers = [*values]
    return sum(numbers) / len(numbers) if numbers else float("nan")


def pytrec_eval(case: Case, tables: Tables) -> float:
    """The mean over the queries that it returns."""
    import pytrec_eval as tool

    name = _name("pytrec_eval", case)
    evaluator = tool.RelevanceEvaluator(
        _by_user(tables["truth"]),
        {name},
        relevance_level=case["relevant_at"] or 1,
        judged_docs_only_flag=case["unjudged"] == "drop",
    )
    queries = evaluator.evaluate(_by_user(_scored(tables))).values()
    return _mean(value for values in queries for value in values.values())


def ir_measures(case: Case, tables: Tables) -> float:
    """``calc_aggregate`` with the providers that it installs."""
    import ir_measures as tool

    measure = tool.parse_measure(_name("ir_measures", case))
    by_rel = case["relevant_at"] and "rel" in measure.SUPPORTED_PARAMS
    measure = measure(rel=case["relevant_at"]) if by_rel else measure
    measure = measure(judged_only=True) if case["unjudged"] == "drop" else measure
    if not tool.DefaultPipeline.supports(measure):
        raise NotImplementedError
    truth = [tool.Qrel(*row) for row in tables["truth"]]
    run = [tool.ScoredDoc(*row) for row in _scored(tables)]
    return float(tool.calc_aggregate([measure], truth, run)[measure])


def ranx(case: Case, tables: Tables) -> float:
    """``evaluate`` with ``make_comparable``, without which other queries are an error."""
    import ranx as tool

    name = _name("ranx", case).replace("rbp.0.", "rbp.")
    by_level = case["relevant_at"] and "dcg" not in name  # it would also take gains away
    level = f"-l{case['relevant_at']}" if by_level else ""
    truth, run = tool.Qrels(_by_user(tables["truth"])), tool.Run(_by_user(_scored(tables)))
    return float(tool.evaluate(truth, run, name + level, make_comparable=True))


def scikit_learn(case: Case, tables: Tables) -> float:
    """The mean over lists, each with the grades of its items."""
    from sklearn import metrics as tool

    function = getattr(tool, _name("scikit-learn", case))
    grades, values = _by_user(tables["truth"]), []
    for user, scores in _by_user(_scored(tables)).items():
        given = [grades.get(user, {}).get(item, 0) for item in scores]
        if case["metric"]["name"] == "ap":
            values.append(function([_relevant(case, grade) for grade in given], [*scores.values()]))
        else:
            values.append(function([given], [[*scores.values()]], k=case["metric"]["k"]))
    return _mean(values)


def torchmetrics(case: Case, tables: Tables) -> float:
    """One table: the rows of the run with their grades."""
    import torch
    from torchmetrics import retrieval as tool

    name, metric = _name("torchmetrics", case), case["metric"]
    options = {"empty_target_action": {0: "neg", 1: "pos", None: "skip"}[case["undefined"]]}
    options |= {"adaptive_k": metric["divide_by"] == "n"} if name == "RetrievalPrecision" else {}
    options |= {"top_k": metric["k"]} if metric.get("k") else {}
    grades, rows = _by_user(tables["truth"]), _scored(tables)
    users = {user: number for number, user in enumerate(_by_user(rows))}
    given = [grades.get(user, {}).get(item, 0) for user, item, _ in rows]
    if metric["name"] != "ndcg":
        given = [_relevant(case, grade) for grade in given]
    scores = torch.tensor([score for *_, score in rows])
    indexes = torch.tensor([users[user] for user, *_ in rows])
    return float(getattr(tool, name)(**options)(scores, torch.tensor(given), indexes=indexes))


def rectools(case: Case, tables: Tables) -> float:
    """Ranks as they are; of the truth, the relevant items."""
    import pandas as pd
    from rectools import metrics as tool

    name, metric = _name("RecTools", case), case["metric"]
    options = {
        "F1Beta": {"beta": metric.get("beta")},
        "Precision": {"r_precision": metric.get("divide_by") == "min(k,R)"},
        "MAP": {"divide_by_k": metric.get("divide_by") == "k"},
        "NDCG": {"divide_by_achievable": metric.get("ideal") == "truth"},
    }.get(name, {})
    by_score = tables["run_by"] == "score"
    rows = sorted(tables["run"], key=lambda row: -row[2] if by_score else 0)
    reco = pd.DataFrame(rows, columns=["user_id", "item_id", "rank"])
    if by_score:
        reco["rank"] = reco.groupby("user_id").cumcount() + 1
    liked = [row[:2] for row in tables["truth"] if _relevant(case, row[2])]
    interactions = pd.DataFrame(liked, columns=["user_id", "item_id"])
    return float(getattr(tool, name)(k=metric["k"], **options).calc(reco, interactions))
