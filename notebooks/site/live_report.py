"""Four recommenders on MovieLens: the report and the charts of the site, and the README's picture.

``python notebooks/site/live_report.py`` makes the picture; it needs Chromium and Pillow.
"""

import functools
import html
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

import rankframe as rf
from rankframe.typing import Report

NOTEBOOKS = Path(__file__).parents[1]
README = NOTEBOOKS.parent / "README.md"
_WIDTH = 760  # of the README's picture, in pixels of the page
#: The card alone: the rest of a page is no picture.
_CARD = f"""<style>
html, body {{ background: none !important }}
body {{ margin: 0; padding: 0; max-width: none; width: {_WIDTH}px }}
header, main > :not(.card) {{ display: none }} .card {{ margin: 0 }}
</style></head>"""
_PICTURE = re.compile(r"<picture>.*?</picture>", re.DOTALL)
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
    "funnel": (
        "Is it the order, the cut or retrieval that loses?",
        'rf.plot.funnel(two, "ndcg@10", truth=truth)',
    ),
    "precision_recall": (
        "What does each further hit cost?",
        "rf.plot.precision_recall(runs, truth=truth)",
    ),
}


@functools.cache
def tables_of_two() -> dict[str, Any]:
    """Return the names that the report reads: two systems, which are made at once."""
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
    two = {
        "popularity": movielens.popularity(past, users),
        "trending": movielens.trending(past, users),
    }
    pairs = past.select("user", "item")
    return {"two": two, "truth": truth, "films": films, "past": pairs, "ratings": past}


@functools.cache
def tables() -> dict[str, Any]:
    """Return the names that the code of charts reads."""
    names = tables_of_two()  # finds the module
    import movielens

    users = names["truth"].select("user").unique()
    runs = names["two"] | {"item-kNN": movielens.item_knn(names["ratings"], users)}
    both = {name: runs[name] for name in ("trending", "item-kNN")}
    runs["fused"] = rf.runs.fuse(both).filter(pl.col("rank") <= 20).drop("score")
    return {"rf": rf, "runs": runs, **names}


def live_report() -> Report:
    """Compare what is popular with what was popular in the last 30 days."""
    names = tables_of_two()
    options = {"items": names["films"], "history": names["past"]}
    return rf.report(names["two"], truth=names["truth"], baseline="popularity", **options)


def save_charts(folder: Path) -> None:
    """Draw all charts, each as the SVG of its name."""
    for name, (_, code) in CHARTS.items():
        eval(code, tables()).save(folder / f"{name}.svg")


def alt_of(svg: str) -> str:
    """Return what a chart says in words: its title, and the lines below it."""
    found = re.findall(r"""aria-label="(Title|Subtitle) text '(.*?)'\"""", svg)
    title = max(place for place, (kind, _) in enumerate(found) if kind == "Title")
    return html.unescape(". ".join(text for _, text in found[title : title + 2]))


def picture() -> str:
    """Write the README's picture: the card on light and on dark, and in words what it says."""
    said = html.escape(" ".join(f"{live_report().verdict}".split()))
    return f"""<picture>
  <source media="(prefers-color-scheme: dark)" srcset="notebooks/report-dark.png">
  <img src="notebooks/report-light.png" width="{_WIDTH}" alt="{said}">
</picture>"""


def save_pictures() -> None:
    """Photograph the card, light and dark, with a palette, and write the README's words."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder) / "report.html", Path(folder) / "report.png"
        page.write_text(live_report().html(static=True).replace("</head>", _CARD, 1))
        for number, (scheme, ground) in enumerate({"dark": "#0d1117", "light": "white"}.items()):
            command = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars"]
            command += [f"--window-size={_WIDTH},900", "--force-device-scale-factor=2"]
            command += [f"--blink-settings=preferredColorScheme={number}"]
            command += ["--default-background-color=00000000", f"--screenshot={shot}"]
            subprocess.run([*command, page.as_uri()], check=True)
            card = Image.open(shot)
            card = card.crop(card.getbbox())
            flat = Image.new("RGBA", card.size, ground)
            flat.alpha_composite(card)
            flat = flat.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
            out = NOTEBOOKS / f"report-{scheme}.png"
            flat.save(out, optimize=True, transparency=flat.getpixel((0, 0)))
    README.write_text(_PICTURE.sub(lambda _: picture(), README.read_text(), count=1))


if __name__ == "__main__":
    save_pictures()
