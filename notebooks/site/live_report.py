"""The report of two recommenders on MovieLens: a page of the site, and the picture of the README.

``python notebooks/site/live_report.py`` makes the picture; it needs Chromium.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import rankframe as rf

NOTEBOOKS = Path(__file__).parents[1]
#: The verdict, and the lists of those who gain most: the rest of a page is no picture.
_PART = """<style>
:root { color-scheme: light } body { margin: 0 auto; padding-top: 24px }
nav, main > section:not(#verdict, #lists), #lists > p, #lists .people:first-of-type,
#lists h3:first-of-type { display: none }
</style></head>"""


def live_report() -> rf.Report:
    """Compare what is popular with what was popular in the last 30 days."""
    sys.path.append(str(NOTEBOOKS))
    import movielens

    past, future = movielens.split(movielens.ratings())
    truth = movielens.liked(past, future)
    users = truth.select("user").unique()
    runs = {
        "popularity": movielens.popularity(past, users),
        "trending": movielens.trending(past, users),
    }
    options = {"items": movielens.films(), "history": past.select("user", "item")}
    return rf.report(runs, truth=truth, baseline="popularity", **options)


def save_picture(out: Path) -> None:
    """Photograph the parts of the page that are read first."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(live_report().html(static=True).replace("</head>", _PART, 1))
        size = ["--window-size=1120,980", "--force-device-scale-factor=1.5"]
        command = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", *size]
        subprocess.run([*command, f"--screenshot={out}", page.as_uri()], check=True)


if __name__ == "__main__":
    save_picture(NOTEBOOKS / "report.png")
