"""Evaluation code that people write by hand: each piece in at most five lines, with its numbers.

Each function has one piece as we write it; its test has the definition in plain Python.
"""

import ast
import inspect
import textwrap
from collections import defaultdict
from math import log2, prod

import duckdb
import polars as pl
import pytest

import rankframe as rf

pytestmark = pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")

LISTS = {1: "abcde", 2: "dab", 3: "ghijk", 6: "ceb"}
GRADES = {
    1: {"a": 1, "c": 2, "f": 1, "y": 3},
    2: {"a": 1, "b": 3},
    3: {"m": 1},
    4: {"a": 2, "b": 1},
    6: {"c": 3, "x": 1},
}
OTHER = {1: "caedb", 2: "bad", 3: "mghij", 6: "xbe"}
TRUTH = rf.from_grades(GRADES)


def run_of(lists):
    return rf.from_lists({user: [*items] for user, items in lists.items()})


RUN, NEW = run_of(LISTS), run_of(OTHER)
RUNS = {"old": RUN, "new": NEW}
TEXTS = pl.DataFrame({"user": [1, 2, 3, 4, 6], "query": ["shoes", "hat", "red", "blue", "sock"]})


# ------------------------------------------------------------------ the pieces


def otto_score(lists):
    """The score of the competition OTTO: recall by type of event, with weights."""
    weights = {"clicks": 0.1, "carts": 0.3, "orders": 0.6}
    names = {"user": "session", "item": "labels", "truth": "actual", "by": "type"}
    found = rf.evaluate(lists, "R_cap@20", average="pooled", **names)
    return found.select(pl.col("type").replace_strict(weights).dot("R_cap@20")).item()


def candidate_recall(run, truth):
    """Hits of all users / relevant items of all users."""
    return run.rank.evaluate("recall@3", truth=truth, average="pooled")


def implicit_precision(run, truth):
    """Precision of implicit."""
    return run.rank.evaluate("precision@3", truth=truth, preset="implicit", average="pooled")


def surprise_precision_and_recall(rated):
    """Precision and recall of predicted ratings, as the FAQ of Surprise has them."""
    names = {"user": "uid", "item": "iid", "score": "est", "relevance": "r_ui"}
    shown = rated.filter(pl.col("est") >= 3.5).drop("r_ui")
    labels = ["precision@2", "recall@2"]
    return rf.evaluate(shown, labels, truth=rated, preset="surprise", relevant_at=3.5, **names)


def first_passage(run, judgments):
    """MRR of MS MARCO."""
    return run.rank.evaluate("rr", truth=judgments)


def deltas_of_one_over_rank(runs, truth):
    """nDCG against k places of the highest grade, discount 1 / rank: each query of two runs."""
    label = "ndcg(gain=exponential, ideal=perfect, discount=rank)@3"
    return rf.stats.differences(runs, label, truth=truth, baseline="old")


def texts_of_changes(runs, truth, texts):
    """Per query: A, B, difference, text; sorted."""
    return rf.stats.differences(runs, "ndcg@5", truth=truth, baseline="old", queries=texts)


def impressions_of_news(impressions):
    """Two lists per impression, labels and scores; MRR is Σ 1 / rank / clicks."""
    mrr = (rf.metrics.arhr_at() / rf.metrics.num_relevant()).alias("mrr")
    names = {"user": "impression", "score": "scores", "relevance": "labels"}
    long = impressions.explode("labels", "scores", empty_as_null=False)
    return long.rank.per_user("auc", mrr, "ndcg(gain=exponential)@2", **names)


def sql_by_algorithm():
    """A shop's nDCG by algorithm, as SQL."""
    return rf.sql("ndcg@3", run="shown", truth="judged", by="algorithm", dialect="duckdb")


def key_of_three_columns(clicks):
    """A query is a wiki, a text and a session."""
    key = ["wiki", "query", "session"]
    return clicks.rank.evaluate("ndcg@3", user=key, score="score", relevance="label")


def relative_changes(values):
    """The relative change of mean nDCG of each launch."""
    return rf.compare(values, "ndcg10", baseline="control")


def expedia(searches):
    """nDCG of each search by scikit-learn."""
    names = {"user": "srch_id", "item": "prop_id", "score": "pred", "relevance": "grade"}
    return searches.rank.evaluate("ndcg@2", preset="scikit_learn", **names)


def own_ideal(run, truth):
    """Precision, recall, and nDCG by the user's own first k in ideal order."""
    labels = "precision@3", "recall@3", "ndcg(ideal=returned)@3"
    return run.rank.evaluate(*labels, truth=truth, depth=3)


def popular_items(history, truth):
    """The most popular items for every user, without those that the user has had."""
    floors = rf.runs.baselines(history, users=truth, k=2, exclude=history)
    return floors.rank.evaluate("recall@2", truth=truth, by="model")


def worst_by_traffic(runs, truth):
    """Queries by traffic · change of nDCG."""
    return rf.stats.differences(runs, "ndcg@5", truth=truth, baseline="old", weights="traffic")


def mean_over_tasks(run, truth):
    """The mean of the data sets' means, by model."""
    return run.rank.evaluate("recall@2", truth=truth, by="model", average="dataset")


def suite(run, truth):
    """The mean of repeated runs, then the geometric mean over data sets."""
    found = run.rank.evaluate("recall@2", truth=truth, by=["dataset", "seed"])
    means = found.group_by("dataset").agg(pl.mean("recall@2"))
    return means["recall@2"].log().mean()


def without_repeats(run, truth):
    """An item that comes again does not count, and the next ones move up."""
    return run.rank.evaluate("recall@2", "rr", truth=truth, duplicates="first")


def pages_of_chunks(chunks, pages, gold):
    """A chunk counts if its page does."""
    return rf.from_lists(chunks, parent=pages).rank.evaluate("recall@2", "rr", truth=gold)


def worst_queries(run, truth):
    """The queries of the lowest nDCG."""
    values = run.rank.per_user("ndcg@5", truth=truth)
    return values.sort("ndcg@5", "user").head(2)


def head_and_tail(run, truth):
    """Recall on popular and on rare items."""
    return run.rank.evaluate("recall@3", truth=truth, by="kind")


def cold_and_active(run, truth, history):
    """Users by length of their history: none, one or two, three and more."""
    return run.rank.evaluate("recall@3", truth=truth, history=history, by="activity(1,3)")


PIECES = [
    otto_score,
    candidate_recall,
    implicit_precision,
    surprise_precision_and_recall,
    first_passage,
    deltas_of_one_over_rank,
    texts_of_changes,
    impressions_of_news,
    sql_by_algorithm,
    key_of_three_columns,
    relative_changes,
    expedia,
    own_ideal,
    popular_items,
    worst_by_traffic,
    mean_over_tasks,
    suite,
    without_repeats,
    pages_of_chunks,
    worst_queries,
    head_and_tail,
    cold_and_active,
]


def calls_of(piece) -> int:
    """Count the calls of our functions, without those of metrics, which are expressions."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(piece)))
    called = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    ours = [name for name in called if name.startswith("rf.") or ".rank." in name]
    return sum(not name.startswith("rf.metrics.") for name in ours)


def test_pieces_are_short():
    for piece in PIECES:
        body = ast.parse(textwrap.dedent(inspect.getsource(piece))).body[0].body
        lines = body[-1].end_lineno - body[0].end_lineno  # the docstring comes first
        assert 1 <= lines <= 5, piece.__name__
    assert len(PIECES) == 22  # the last two are one piece: users and items by activity
    assert sum(calls_of(piece) == 1 for piece in PIECES) == 20


# ------------------------------------------------------------------ their definitions


def hits_of(items, liked, k=None):
    return [item in liked for item in items[:k]]


def dcg(gains):
    return sum(gain / log2(i + 2) for i, gain in enumerate(gains))


def ndcg(items, grades, k):
    got = dcg([grades.get(item, 0) for item in items[:k]])
    return got / dcg(sorted(grades.values(), reverse=True)[:k])


def recall(items, liked, k):
    return sum(hits_of(items, liked, k)) / len(liked)


def mean(values):
    values = [*values]
    return sum(values) / len(values)


def test_otto_score():
    rows = [
        (1, "clicks", "10 11 12", "11"),
        (2, "clicks", "13 10", "13 14"),
        (1, "carts", "10 11", "12 10 11"),
        (2, "orders", "15", "15 16"),
        (3, "orders", "17 18", "19"),
    ]
    hits, of = defaultdict(int), defaultdict(int)
    for _, kind, labels, actual in rows:
        hits[kind] += len({*labels.split()} & {*actual.split()})
        of[kind] += min(20, len(actual.split()))
    weights = {"clicks": 0.1, "carts": 0.3, "orders": 0.6}
    score = sum(weight * hits[kind] / of[kind] for kind, weight in weights.items())
    lists = pl.DataFrame(rows, ["session", "type", "labels", "actual"], orient="row")
    assert otto_score(lists) == pytest.approx(score)


def test_candidate_recall():
    hits = sum(sum(hits_of(LISTS.get(user, ""), liked, 3)) for user, liked in GRADES.items())
    relevant = sum(map(len, GRADES.values()))
    assert candidate_recall(RUN, TRUTH).row(0) == (5, pytest.approx(hits / relevant))


def test_implicit_precision():
    hits = sum(sum(hits_of(LISTS.get(user, ""), liked, 3)) for user, liked in GRADES.items())
    divisor = sum(min(3, len(liked)) for liked in GRADES.values())
    assert implicit_precision(RUN, TRUTH).row(0) == (5, pytest.approx(hits / divisor))


def test_surprise_precision_and_recall():
    rows = [(1, "a", 4, 4.5), (1, "b", 2, 4), (1, "c", 5, 3), (2, "a", 3, 3.8), (3, "b", 5, 1)]
    rows += [(1, "d", 4, 3.6), (3, "c", 2, 3.9), (3, "d", 4, 3.7)]
    precisions, recalls = [], []
    for user in (1, 2, 3):
        own = sorted((row for row in rows if row[0] == user), key=lambda row: -row[3])
        shown = [row for row in own[:2] if row[3] >= 3.5]
        both = sum(row[2] >= 3.5 for row in shown)
        liked = sum(row[2] >= 3.5 for row in own)
        precisions.append(both / len(shown) if shown else 0)
        recalls.append(both / liked if liked else 0)
    rated = pl.DataFrame(rows, ["uid", "iid", "r_ui", "est"], orient="row")
    expected = 3, pytest.approx(mean(precisions)), pytest.approx(mean(recalls))
    assert surprise_precision_and_recall(rated).row(0) == expected


def test_first_passage():
    """Unlike theirs, a query without a hit counts as 0."""
    values = [
        max(
            (1 / (i + 1) for i, hit in enumerate(hits_of(LISTS.get(u, ""), liked)) if hit),
            default=0,
        )
        for u, liked in GRADES.items()
    ]
    assert first_passage(RUN, TRUTH).row(0) == (5, pytest.approx(mean(values)))


def changes_of(value):
    """User, value, value of the baseline, difference: the greatest loss first."""
    rows = [(u, value(OTHER.get(u, ""), x), value(LISTS.get(u, ""), x)) for u, x in GRADES.items()]
    return sorted(((*row, row[1] - row[2]) for row in rows), key=lambda row: (row[3], row[0]))


def test_deltas_of_one_over_rank():
    best = 2 ** max(grade for liked in GRADES.values() for grade in liked.values()) - 1

    def value(items, grades):
        gained = sum((2 ** grades.get(x, 0) - 1) / (i + 1) for i, x in enumerate(items[:3]))
        return gained / sum(best / (i + 1) for i in range(3))

    got = deltas_of_one_over_rank(RUNS, TRUTH)
    rows = got.select("user", "value", "baseline_value", "difference").rows()
    assert rows == [pytest.approx(row) for row in changes_of(value)]


def test_texts_of_changes():
    got = texts_of_changes(RUNS, TRUTH, TEXTS)
    expected = changes_of(lambda items, grades: ndcg(items, grades, 5))
    rows = got.select("user", "value", "baseline_value", "difference").rows()
    assert rows == [pytest.approx(row) for row in expected]
    texts = dict(TEXTS.rows())
    assert got["query"].to_list() == [texts[row[0]] for row in expected]


def test_impressions_of_news():
    rows = [("x", [0, 1, 0, 1], [0.1, 0.9, 0.5, 0.3]), ("y", [1, 0, 0], [0.2, 0.8, 0.1])]
    expected = []
    for name, labels, scores in rows:
        order = [label for _, label in sorted(zip(scores, labels, strict=True), reverse=True)]
        pairs = [
            (own > other)
            for own, label in zip(scores, labels, strict=True)
            for other, miss in zip(scores, labels, strict=True)
            if label > miss
        ]
        mrr = sum(label / (i + 1) for i, label in enumerate(order)) / sum(labels)
        ideal = dcg(sorted(labels, reverse=True)[:2])
        expected.append((name, mean(pairs), mrr, dcg(order[:2]) / ideal))
    got = impressions_of_news(pl.DataFrame(rows, ["impression", "labels", "scores"], orient="row"))
    assert got.rows() == [pytest.approx(row) for row in expected]


def test_sql_by_algorithm():
    runs = {"a": LISTS, "b": OTHER}
    shown = pl.concat(
        run_of(lists).with_columns(algorithm=pl.lit(name)) for name, lists in runs.items()
    )
    names = {"shown": shown, "judged": TRUTH}
    got = duckdb.sql(sql_by_algorithm(), connection=_registered(duckdb, names)).fetchall()
    expected = [
        (name, 5, pytest.approx(mean(ndcg(lists.get(u, ""), x, 3) for u, x in GRADES.items())))
        for name, lists in runs.items()
    ]
    assert sorted(got) == expected


def _registered(duckdb, tables):
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table.to_arrow())
    return connection


def test_key_of_three_columns():
    rows = [("en", "cat", 1, 0.9, 0), ("en", "cat", 1, 0.5, 2), ("en", "cat", 1, 0.1, 1)]
    rows += [("en", "cat", 2, 0.9, 1), ("de", "cat", 1, 0.9, 0), ("de", "cat", 1, 0.2, 3)]
    lists = defaultdict(list)
    for *key, score, label in rows:
        lists[tuple(key)].append((score, label))
    value = mean(
        dcg([label for _, label in sorted(own, reverse=True)][:3])
        / dcg(sorted((label for _, label in own), reverse=True)[:3])
        for own in lists.values()
    )
    clicks = pl.DataFrame(rows, ["wiki", "query", "session", "score", "label"], orient="row")
    assert key_of_three_columns(clicks).row(0) == (3, pytest.approx(value))


def test_relative_changes():
    values = {"control": [0.4, 0.5, 0.9], "one": [0.5, 0.5, 0.95], "two": [0.3, 0.6, 0.8]}
    table = pl.DataFrame(
        {"user": user, "model": model, "ndcg10": value}
        for model, own in values.items()
        for user, value in enumerate(own)
    )
    got = relative_changes(table)
    base = mean(values["control"])
    assert dict(got.select("model", "relative").rows()) == pytest.approx(
        {name: (mean(values[name]) - base) / base for name in ("one", "two")}
    )


def test_expedia():
    rows = [(1, 7, 0.9, 0), (1, 8, 0.5, 5), (1, 9, 0.1, 1), (2, 7, 0.4, 1), (2, 8, 0.6, 0)]
    values = []
    for search in (1, 2):
        own = sorted((row for row in rows if row[0] == search), key=lambda row: -row[2])
        grades = [row[3] for row in own]
        values.append(dcg(grades[:2]) / dcg(sorted(grades, reverse=True)[:2]))
    searches = pl.DataFrame(rows, ["srch_id", "prop_id", "pred", "grade"], orient="row")
    assert expedia(searches).row(0) == (2, pytest.approx(mean(values)))


def test_own_ideal():
    """The ideal flatters: a list with one hit on top scores 1."""
    rows = []
    for user, grades in GRADES.items():
        gains = [grades.get(item, 0) for item in LISTS.get(user, "")[:3]]
        found, ideal = sum(gain > 0 for gain in gains), dcg(sorted(gains, reverse=True))
        rows.append((found / 3, found / len(grades), dcg(gains) / ideal if ideal else 0))
    expected = [pytest.approx(mean(column)) for column in zip(*rows, strict=True)]
    assert own_ideal(RUN, TRUTH).row(0) == (5, *expected)


def test_popular_items():
    had = {1: "ab", 2: "ac", 3: "a", 5: "bd"}
    liked = {1: "c", 2: "bd", 4: "ab"}
    counts = defaultdict(int)
    for item in "".join(had.values()):
        counts[item] += 1
    popular = sorted(counts, key=lambda item: (counts[item], item), reverse=True)
    value = mean(
        recall([item for item in popular if item not in had.get(user, "")], own, 2)
        for user, own in liked.items()
    )
    history = run_of(had).drop("rank")
    got = popular_items(history, rf.from_grades({user: [*own] for user, own in liked.items()}))
    assert got.filter(model="popular").row(0) == ("popular", 3, pytest.approx(value))


def test_worst_by_traffic():
    traffic = {1: 10, 2: 500, 3: 7, 4: 1, 6: 60}
    changes = changes_of(lambda items, grades: ndcg(items, grades, 5))
    total = sum(row[3] * traffic[row[0]] for row in changes)
    expected = sorted(
        ((row[0], row[3], traffic[row[0]] * row[3] / total) for row in changes),
        key=lambda row: (row[1] * traffic[row[0]], row[0]),
    )
    truth = TRUTH.with_columns(traffic=pl.col("user").replace_strict(traffic))
    got = worst_by_traffic(RUNS, truth).select("user", "difference", "share")
    assert got.rows() == [pytest.approx(row) for row in expected]


def several(seeds):
    """Two data sets with users of their own, and a list per seed."""
    run, truth, values = [], [], defaultdict(list)
    lists = {("q1", 0): "abc", ("q1", 1): "xab", ("q2", 0): "bxy", ("q2", 1): "xyb"}
    liked = {"q1": "ab", "q2": "b"}
    for dataset, users in (("nq", ["q1", "q2"]), ("hotpot", ["q2"])):
        for user in users:
            for seed in seeds:
                run.append((dataset, seed, user, [*lists[user, seed]]))
                values[dataset, seed].append(recall(lists[user, seed], liked[user], 2))
            truth += [(dataset, user, item, 1) for item in liked[user]]
    frame = pl.DataFrame(run, ["dataset", "seed", "user", "item"], orient="row")
    truth = pl.DataFrame(truth, ["dataset", "user", "item", "relevance"], orient="row")
    return rf.from_lists(frame, by=["dataset", "seed"]), truth, values


def test_mean_over_tasks():
    run, truth, values = several([0, 1])
    expected = {
        seed: mean(mean(values[dataset, seed]) for dataset in ("nq", "hotpot")) for seed in (0, 1)
    }
    got = mean_over_tasks(run.rename({"seed": "model"}), truth)
    assert dict(got.select("model", "recall@2").rows()) == pytest.approx(expected)


def test_suite():
    run, truth, values = several([0, 1])
    means = [mean(mean(values[name, seed]) for seed in (0, 1)) for name in ("nq", "hotpot")]
    assert 2.718281828459045 ** suite(run, truth) == pytest.approx(prod(means) ** (1 / 2))


def test_without_repeats():
    lists = {1: "xxab", 2: "bb"}
    liked = {1: "ab", 2: "c"}
    once = {user: [*dict.fromkeys(items)] for user, items in lists.items()}
    recalls = mean(recall(once[user], own, 2) for user, own in liked.items())
    first = mean(
        next((1 / (i + 1) for i, item in enumerate(once[user]) if item in own), 0)
        for user, own in liked.items()
    )
    truth = rf.from_grades({user: [*own] for user, own in liked.items()})
    got = without_repeats(run_of(lists), truth)
    assert got.row(0) == (2, pytest.approx(recalls), pytest.approx(first))


def test_pages_of_chunks():
    pages = {"a1": "a", "a2": "a", "b1": "b", "c1": "c", "d1": "d"}
    chunks = {"q": ["a1", "a2", "b1", "c1"], "r": ["d1", "b1", "a2"]}
    gold = {"q": ["b"], "r": ["b", "c"]}
    rows = []
    for user, own in gold.items():
        found = [*dict.fromkeys(pages[chunk] for chunk in chunks[user])]
        ranks = [i + 1 for i, page in enumerate(found) if page in own]
        rows.append((recall(found, own, 2), 1 / ranks[0]))
    expected = [pytest.approx(mean(column)) for column in zip(*rows, strict=True)]
    assert pages_of_chunks(chunks, pages, gold).row(0) == (2, *expected)


def test_worst_queries():
    values = sorted((ndcg(LISTS.get(u, ""), x, 5), u) for u, x in GRADES.items())[:2]
    assert worst_queries(RUN, TRUTH).rows() == [(u, pytest.approx(value)) for value, u in values]


def test_head_and_tail():
    kinds = {item: "head" if item in "abc" else "tail" for item in "abcdefghijklmnopqrstuvwxyz"}
    expected = {}
    for kind in ("head", "tail"):
        own = {u: [x for x in liked if kinds[x] == kind] for u, liked in GRADES.items()}
        expected[kind] = mean(recall(LISTS.get(u, ""), x, 3) for u, x in own.items() if x)
    truth = TRUTH.with_columns(kind=pl.col("item").replace_strict(kinds))
    got = head_and_tail(RUN, truth)
    assert dict(got.select("kind", "recall@3").rows()) == pytest.approx(expected)


def test_cold_and_active():
    had = {1: "vwx", 2: "v", 3: "vw"}
    groups = defaultdict(list)
    for user, liked in GRADES.items():
        number = len(had.get(user, ""))
        groups[(number >= 1) + (number >= 3)].append(recall(LISTS.get(user, ""), liked, 3))
    expected = [(len(groups[place]), mean(groups[place])) for place in range(3)]
    got = cold_and_active(RUN, TRUTH, run_of(had).drop("rank"))
    assert got.select("users", "recall@3").rows() == [pytest.approx(row) for row in expected]
