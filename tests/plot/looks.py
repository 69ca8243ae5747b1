"""What each chart looks like, in words: ``python -m tests.plot.looks`` writes ``looks.txt``."""

import functools
import html
import random
import re
from collections import Counter
from pathlib import Path

import polars as pl

import rankframe as rf

PAGE = Path(__file__).with_name("looks.txt")

COUNTRIES = ["DE", "FR", "IT"]


def made(users=40, seed=3):
    """Lists of three systems, of which each is somewhat better than the one before."""
    draw = random.Random(seed)
    truth, run = [], []
    for user in range(users):
        wanted = draw.sample(range(60), draw.choice([1, 2, 3, 8, 20]))
        country = COUNTRIES[user % 3]
        truth += [(user, item, draw.choice([1, 1, 2, 3]), country) for item in wanted]
        for lift, model in enumerate(["b", "a", "c"]):
            scores = {item: draw.random() + 0.15 * lift * (item in wanted) for item in range(60)}
            best = sorted(scores, key=scores.get, reverse=True)[:20]
            run += [(model, user, item, rank) for rank, item in enumerate(best, 1)]
    return (
        pl.DataFrame(run, schema=["model", "user", "item", "rank"], orient="row"),
        pl.DataFrame(truth, schema=["user", "item", "relevance", "country"], orient="row"),
    )


RUN, PLACED = made()
TRUTH = PLACED.drop("country")
BOTH = ["model", "country"]
GENRES = ["drama", "comedy", "action", "science fiction", "documentary"]


def catalogue(seed=1):
    """70 items, ten of which nobody shows, of one or two genres and of 27 makers."""
    draw = random.Random(seed)
    return pl.DataFrame(
        {
            "item": range(70),
            "genre": [draw.sample(GENRES, draw.choice([1, 1, 2])) for _ in range(70)],
            "maker": [f"maker {item % 27:02}" for item in range(70)],
        }
    )


ITEMS = catalogue()


def log_of(run, days):
    """A log of a metric on days, of which the third is missing and one system lacks the fifth."""
    summary = rf.summarize(run, "ndcg@10", truth=TRUTH, by="model")
    rows = pl.concat(
        summary.with_columns(
            day=pl.date(2026, 1, 1) + pl.duration(days=day),
            mean=pl.col("mean") + 0.01 * (day % 7),
            num_missed=pl.lit(day % 3),
        )
        for day in range(days)
        if day != 2
    )
    return rows.drop("ci_low", "ci_high").filter(
        (pl.col("model") != "b") | (pl.col("day").dt.day() != 5)
    )


MANY = pl.concat(
    RUN.with_columns(
        model=pl.format("{} number {}", "model", pl.lit(n)), item=(pl.col("item") + n) % 60
    )
    for n in range(4)
)


LONG = RUN.with_columns(
    pl.col("model").replace(
        {
            "b": "two-tower-retrieval-with-hard-negatives-temperature-1",
            "a": "two-tower-retrieval-with-hard-negatives-temperature-2",
            "c": "تراكم العناصر",
        }
    )
)


def charts():
    plot = RUN.rank.plot
    alone = RUN.filter(pl.col("model") == "a").drop("model").rank.plot
    yield "at_k", lambda: plot.at_k("ndcg", truth=TRUTH)
    yield "at_k of metrics", lambda: plot.at_k("ndcg", "recall", "map", k=[1, 5, 10], truth=TRUTH)
    yield "at_k of segments", lambda: plot.at_k("rr", truth=PLACED, by=BOTH, interval=False)
    yield "at_k alone", lambda: alone.at_k("precision(divide_by=returned)", truth=TRUTH, by=())
    yield "at_k together", lambda: plot.at_k("precision", "recall", truth=TRUTH, together=True)
    pair = {"truth": TRUTH, "by": (), "together": True}
    yield "at_k together alone", lambda: alone.at_k("precision", "recall", **pair)
    many = MANY.rank.plot
    yield "at_k of many", lambda: many.at_k("ndcg", truth=TRUTH)
    yield "at_k of many and metrics", lambda: many.at_k("ndcg", "rr", k=[1, 5, 9], truth=TRUTH)
    yield "precision_recall of many", lambda: many.precision_recall(truth=TRUTH)
    yield "users of many", lambda: many.per_user("ndcg@10", truth=TRUTH)
    most = pl.concat([MANY, RUN.with_columns(pl.format("more {}", "model").alias("model"))])
    yield (
        "compare of many with one",
        lambda: most.rank.plot.compare("rr", truth=TRUTH, baseline="more a"),
    )
    yield "at_k from a baseline", lambda: plot.at_k("ndcg", "recall", truth=TRUTH, baseline="a")
    yield "at_k of many from one", lambda: many.at_k("rr", truth=TRUTH, baseline="a number 0")
    yield "at_k of long names", lambda: LONG.rank.plot.at_k("ndcg", truth=TRUTH)
    yield "users of long names", lambda: LONG.rank.plot.per_user("ndcg@10", truth=TRUTH)
    yield "compare long names", lambda: LONG.rank.plot.compare("ndcg@10", truth=TRUTH)
    yield "at_k of one k", lambda: alone.at_k("hit", k=[3], truth=TRUTH, by=())
    yield "precision_recall", lambda: plot.precision_recall(truth=TRUTH)
    yield "precision_recall of segments", lambda: plot.precision_recall(truth=PLACED, by=BOTH)
    yield "precision_recall alone", lambda: alone.precision_recall(truth=TRUTH, by=())
    yield "users", lambda: plot.per_user("ndcg@10", truth=TRUTH)
    yield "users of segments", lambda: plot.per_user("num_hits", truth=PLACED, by=BOTH)
    yield "users alone", lambda: alone.per_user("hit@10", truth=TRUTH, by=())
    yield "compare", lambda: plot.compare("ndcg@10", truth=TRUTH, baseline="a")
    yield "compare metrics", lambda: plot.compare("ndcg@10", "rr", truth=TRUTH, test="max_t")
    margin = {"ndcg@10": 0.3}
    yield (
        "compare margins",
        lambda: plot.compare("ndcg@10", "rr", truth=TRUTH, baseline="a", margin=margin),
    )
    yield "compare segments", lambda: plot.compare("rr", truth=PLACED, by=BOTH, correction=None)
    two = RUN.filter(pl.col("model") != "c").rank.plot
    yield "compare a pair", lambda: two.compare("rr", truth=TRUTH, baseline="a")
    yield "change", lambda: plot.who_gained(10, truth=TRUTH, baseline="a")
    yield "change of segments", lambda: plot.who_gained(3, truth=PLACED, by=BOTH, baseline="b")
    yield (
        "differences in segments",
        lambda: plot.segments("ndcg@10", truth=PLACED, by="country", baseline="a"),
    )
    yield "segments of many", lambda: many.segments("rr", truth=PLACED, by="country")
    yield "segments", lambda: plot.segments("ndcg@10", "rr", truth=PLACED, by="country")
    yield "shares", lambda: plot.exposure(of="genre", k=10, items=ITEMS)
    yield "shares of many", lambda: plot.exposure(of="maker", k=10, items=ITEMS, discount="log2")
    truthful = {"truth": PLACED, "target": "truth", "by": BOTH}
    yield "shares of segments", lambda: plot.exposure(of="genre", k=10, items=ITEMS, **truthful)
    yield (
        "shares alone",
        lambda: alone.exposure(of="genre", items=ITEMS, target=None, discount=0.5, by=()),
    )
    yield "trade_off", lambda: plot.trade_off("ndcg@10", "gini@10", truth=TRUTH, items=ITEMS)
    yield "trade_off of many", lambda: many.trade_off("rr", "coverage@3", truth=TRUTH, items=ITEMS)
    yield (
        "trade_off of segments",
        lambda: plot.trade_off("ndcg@10", "recall@9", truth=PLACED, by=BOTH),
    )
    yield "trade_off alone", lambda: alone.trade_off("ndcg@10", "rr", truth=TRUTH, by=())
    yield "lorenz", lambda: plot.lorenz(k=3, items=ITEMS)
    yield "lorenz of many", lambda: many.lorenz(k=3, of="genre", items=ITEMS)
    yield "lorenz of segments", lambda: plot.lorenz(k=3, items=ITEMS, truth=PLACED, by=BOTH)
    yield "lorenz alone", lambda: alone.lorenz(of="shown", items=ITEMS, discount="log2", by=())
    yield "funnel", lambda: plot.funnel("ndcg@10", truth=TRUTH)
    sources = {name: RUN.filter(model=name).drop("model") for name in ("b", "c")}
    yield "funnel of sources", lambda: alone.funnel("map", truth=TRUTH, by=(), stages=sources)
    log = log_of(RUN, 7)
    yield "trend", lambda: rf.plot.trend(log, "ndcg@10", floor=0.3)
    yield (
        "trend of many",
        lambda: rf.plot.trend(log_of(MANY, 7).drop("num_missed"), "ndcg@10", time="day"),
    )
    single = log.filter(model="a").drop("model").with_columns(pl.col("day").dt.day())
    yield "trend alone", lambda: rf.plot.trend(single, "ndcg@10")


CHARTS = dict(charts())


@functools.cache
def chart_of(name):
    return CHARTS[name]()


@functools.cache
def spec_of(name):
    """What a chart hands to Vega-Lite, found valid."""
    return chart_of(name).to_dict(validate=True)


@functools.cache
def picture_of(name):
    return drawn(spec_of(name))


def svg(chart):
    """Draw a chart that no test has to find valid."""
    return drawn(chart.to_dict(validate=False))


def drawn(spec, **options):
    import vl_convert

    return vl_convert.vegalite_to_svg(spec, **options)


def look_of(name):
    """Name a picture's size, its texts in order, and how many marks it has of each color."""
    picture = picture_of(name)
    width, height = map(float, picture.split('viewBox="0 0 ')[1].split('"')[0].split())
    texts = [html.unescape(text) for text in re.findall(">([^<]+)</t(?:ext|span)>", picture)]
    marks = Counter(
        (kind.replace(" mark", ""), re.search('(?:stroke|fill)="(#[^"]+|black)"', tag))
        for tag, kind in re.findall(r'(<[^>]*aria-roledescription="([^"]+)"[^>]*>)', picture)
        if "container" not in tag
    )
    drawn: Counter[str] = Counter()
    for (kind, color), number in marks.items():
        if kind not in ("axis", "legend", "title", "subtitle", "text", "header", "group"):
            drawn[f"{kind} {color[1] if color else ''}".strip()] += number
    counts = (f"{number} {mark}" for mark, number in sorted(drawn.items()))
    lines = [f"# {name}: {round(width / 20) * 20} x {round(height / 20) * 20}", *_wrapped(texts)]
    return [*lines, "marks: " + ", ".join(counts), ""]


def _wrapped(texts):
    lines = [""]
    for text in texts:
        if len(lines[-1]) + len(text) > 117:
            lines.append("")
        lines[-1] += f" | {text}" if lines[-1] else text
    return lines


def page():
    return "\n".join(line for name in CHARTS for line in look_of(name))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
