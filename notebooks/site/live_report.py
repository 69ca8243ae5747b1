"""Four recommenders on MovieLens: the report and the charts of the site, and the README's picture.

``python notebooks/site/live_report.py`` makes the picture; it needs Chromium.
"""

import functools
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

import rankframe as rf
from rankframe.typing import Report

NOTEBOOKS = Path(__file__).parents[1]
#: The verdict, and the lists of those who gain most: the rest of a page is no picture.
_PART = """<style>
:root { color-scheme: light } body { margin: 0 auto; padding-top: 24px }
nav, main > section:not(#verdict, #lists), #lists > p, #lists .people:has(~ .people),
#lists h3:has(~ h3) { display: none }
</style></head>"""
#: Each chart: the question that it answers, and its code.
CHARTS = {
    "compare": (
        "Which differences are proven?",
        'rf.plot.compare(runs, "ndcg@10", "recall@10", "mrr", truth=truth, baseline="popularity")',
    ),
    "at_k": (
        "How long should the list be?",
        'rf.plot.at_k(runs, "ndcg", "recall", truth=truth)',
    ),
    "per_user": (
        "How are the values of users spread?",
        'rf.plot.per_user(runs, "ndcg@10", truth=truth)',
    ),
    "who_gained": (
        "Who gains, and who loses?",
        'rf.plot.who_gained(two, 10, truth=truth, baseline="popularity")',
    ),
    "segments": (
        "Where is each system strong?",
        'rf.plot.segments(runs, "ndcg@10", "recall@10", truth=truth, by="history")',
    ),
    "trade_off": (
        "What does a gain cost?",
        'rf.plot.trade_off(runs, "ndcg@10", "coverage@10", truth=truth, items=films)',
    ),
    "lorenz": (
        "Do all items get a place?",
        "rf.plot.lorenz(runs, items=films, k=10)",
    ),
    "exposure": (
        "Which genres are shown?",
        'rf.plot.exposure(two, of="genre", k=10, items=films, target="history", history=past)',
    ),
    "precision_recall": (
        "What does each further hit cost?",
        "rf.plot.precision_recall(runs, truth=truth)",
    ),
}


@functools.cache
def tables() -> dict[str, Any]:
    """Return the names that the code of charts reads."""
    sys.path.append(str(NOTEBOOKS))
    import movielens

    past, future = movielens.split(movielens.ratings())
    films, truth = movielens.films(), movielens.liked(past, future)
    seen = (
        past.group_by("user")
        .len()
        .with_columns(
            history=pl.when(pl.col("len") < 60).then(pl.lit("short")).otherwise(pl.lit("long"))
        )
    )
    truth = truth.join(seen.drop("len"), on="user")
    users = truth.select("user").unique()
    runs = {
        "popularity": movielens.popularity(past, users),
        "trending": movielens.trending(past, users),
        "item-kNN": movielens.item_knn(past, users),
    }
    both = {name: runs[name] for name in ("trending", "item-kNN")}
    runs["fused"] = rf.runs.fuse(both).filter(pl.col("rank") <= 20).drop("score")
    two = {name: runs[name] for name in ("popularity", "trending")}
    past = past.select("user", "item")
    return {"rf": rf, "runs": runs, "two": two, "truth": truth, "films": films, "past": past}


def live_report() -> Report:
    """Compare what is popular with what was popular in the last 30 days."""
    names = tables()
    options = {"items": names["films"], "history": names["past"]}
    return rf.report(names["two"], truth=names["truth"], baseline="popularity", **options)


def save_charts(folder: Path) -> None:
    """Draw all charts, each as the SVG of its name."""
    for name, (_, code) in CHARTS.items():
        eval(code, tables()).save(folder / f"{name}.svg")


def save_picture(out: Path) -> None:
    """Photograph the parts of the page that are read first."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        text = live_report().html(static=True).replace("</head>", _PART, 1)
        page.write_text(text.replace("<details>", "<details open>"))
        size = ["--window-size=1120,980", "--force-device-scale-factor=1.5"]
        command = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", *size]
        subprocess.run([*command, f"--screenshot={out}", page.as_uri()], check=True)


if __name__ == "__main__":
    save_picture(NOTEBOOKS / "report.png")
