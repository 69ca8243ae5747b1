"""Every worked example of five introductory articles equals its exact value."""

import json
import math

import polars as pl
import pytest

import rankframe as rf

#: Entries that name no metric of ranked lists, or state a fact that no call computes.
SKIPPED = {
    "000.example1.recall_step": "the step of a metric, 1/R: no metric",
    "000.example1.precision_step": "the step of a metric, 1/N: no metric",
    "000.example2.recall_step": "the step of a metric, 1/R: no metric",
    "000.example2.precision_step": "the step of a metric, 1/N: no metric",
    "001.speed": "a harmonic mean of two speeds",
}


@pytest.fixture(scope="module")
def entries(shared):
    return {
        entry["id"]: entry for entry in json.loads((shared / "worked_examples.json").read_text())
    }


def lists_to_judged(lists, labels):
    """Judge one list a user."""
    users = list(range(len(lists)))
    run = rf.from_lists(pl.DataFrame({"user": users, "item": lists}))
    truth = pl.DataFrame({"user": users, "item": labels}).explode("item", empty_as_null=False)
    return rf.judge(run, truth)


def counts_to_judged(hits, retrieved, relevant):
    """Judge one user with these counts; the hits come first."""
    run = pl.DataFrame({"user": 0, "item": range(retrieved), "rank": range(1, retrieved + 1)})
    found, missed = range(hits), range(10_000, 10_000 + relevant - hits)
    truth = pl.DataFrame({"user": 0, "item": [*found, *missed]})
    return rf.judge(run, truth)


def value(judged, label):
    return judged.rank.evaluate(label).item(0, label)


def change(hits, gained, relevant, n, metric):
    """Change of a metric of one user whose hits among the first n change."""
    label = f"{metric}@{n}"
    before = value(counts_to_judged(hits, n, relevant), label)
    return value(counts_to_judged(hits + gained, n, relevant), label) - before


def compute(entry, entries):
    """Compute an entry from its input with the library."""
    number, *path = entry["id"].split(".")
    given = entry["input"]
    match (number, *path):
        case ("000", "example1" | "example2", bound):
            label = f"attainable_{bound.removesuffix('_max')}@{given['N']}"
            return value(counts_to_judged(0, given["N"], given["relevant"]), label)
        case ("000", "delta", "mean", metric):
            users = [entries[f"000.delta.{user}.{metric}"]["input"] for user in given["users"]]
            return sum(
                change(5, u["change_in_hits"], u["relevant"], u["N"], metric) for u in users
            ) / len(users)
        case ("000", "delta", _, metric):
            return change(5, given["change_in_hits"], given["relevant"], given["N"], metric)
        case ("000", "same_direction", _, metric):
            gained = given["hits_after"] - given["hits_before"]
            return change(given["hits_before"], gained, given["relevant"], given["N"], metric)
        case ("001", "identity"):
            judged = counts_to_judged(given["hits"], given["retrieved"], given["relevant"])
            return value(judged, "f1")
        case ("002", "drop", metric):
            one, two = (
                compute(entries[f"002.{model}.{metric}"], entries) for model in ("M1", "M2")
            )
            return one - two
        case ("002", model, "hits" | "hits_max" as which):
            lists = entries[f"002.{model}.MAP"]["input"]
            judged = lists_to_judged(lists["predictions"], lists["labels"])
            hits = judged.rank.per_user(rf.metrics.cg_at(5))["cg@5"]
            assert hits.to_list() == given["hits"]
            return hits.max() if which == "hits_max" else hits.min()
        case ("002", _, user, "AP"):
            assert user.startswith("user")
            return value(lists_to_judged([given["prediction"]], [given["labels"]]), "ap")
        case ("002", _, metric):
            judged = lists_to_judged(given["predictions"], given["labels"])
            return value(judged, {"MAP": "map", "GMAP": "gmap", "GMAP_trec": "gm_map"}[metric])
        case ("003", "F", *_):
            # P = h/k and R = h/r, with a list of k = h/P items of which h are relevant
            h = 36
            judged = counts_to_judged(h, round(h / given["P"]), round(h / given["R"]))
            return value(judged, "f1")
        case ("003", "precision" | "recall" as metric, _):
            judged = counts_to_judged(given["hits"], given["retrieved"], given["relevant"])
            return value(judged, metric)
        case ("004", "MAP", convention):
            lists, labels = zip(
                *((q["retrieved"], q["relevant"]) for q in given.values()), strict=True
            )
            return value(lists_to_judged(lists, labels), AP_LABELS[convention])
        case ("004", _, "AP", convention):
            judged = lists_to_judged([given["retrieved"]], [given["relevant"]])
            return value(judged, AP_LABELS[convention])
        case ("004", _, metric):
            letter, k = metric.split("@")
            label = {"P": "precision", "R": "recall"}[letter] + f"@{k}"
            return value(lists_to_judged([given["retrieved"]], [given["relevant"]]), label)
    raise AssertionError(f"compute or skip {entry['id']}")


AP_LABELS = {"hits": "ap(divide_by=hits)", "R": "ap", "minRk": "ap(divide_by=attainable)@3"}


@pytest.mark.filterwarnings("ignore:.*no item of:rankframe.errors.RankingWarning")
def test_entries_equal_their_exact_values(entries):
    assert set(SKIPPED) <= set(entries)
    computed = [entry for name, entry in entries.items() if name not in SKIPPED]
    assert len(computed) > 60
    for entry in computed:
        got = compute(entry, entries)
        assert math.isclose(got, entry["exact"], rel_tol=1e-12, abs_tol=1e-12), entry["id"]


def test_article_on_map_and_gmap():
    """The article's example without the shared data: the command shows it."""
    from rankframe._command.main import _MODELS, _RELEVANT

    truth = [list(items) for items in _RELEVANT]
    exact = {"M1": (83 / 225, 0.32038055292405304), "M2": (317 / 900, 0.12118709807942667)}
    for model, (mean, geometric) in exact.items():
        judged = lists_to_judged([list(items) for items in _MODELS[model]], truth)
        assert value(judged, "map") == pytest.approx(mean, abs=1e-12)
        assert value(judged, "gmap") == pytest.approx(geometric, abs=1e-12)
