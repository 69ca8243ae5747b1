"""Numbers that pages quote: counted here, kept in ``quoted.json``, and written into the pages.

``python -m tests.quoted`` counts again, after a new metric, chart or preset, and after benchmarks.
"""

import json
import re
from pathlib import Path

import polars as pl

from rankframe import plot, presets
from rankframe._request import labels

TOP = Path(__file__).parents[1]
STORED = Path(__file__).with_suffix(".json")
README, BENCHMARKS = TOP / "README.md", TOP / "benchmarks" / "README.md"
INDEX = TOP / "notebooks" / "site" / "index.md"
PAGES = [README, BENCHMARKS, INDEX, *sorted((TOP / "notebooks").glob("*.md"))]
WORDS = "no one two three four five six seven eight nine ten eleven twelve".split()
LIBRARIES = ["rectools", "pytrec_eval", "replay", "ranx", "pyspark", "scikit"]
CELLS = {"a": ("a", "integer"), "b": ("b", "integer"), "c": ("c", "integer"), "t": ("c", "string")}

SENTENCES = [
    "{metrics} [metrics]",
    "{other_metrics} other metrics",
    "{numbers} values of {measures} measures match",
    "{measures} measures of trec_eval",
    "{tools} other tools",
    "faster than {libraries} libraries on every data shape",
    "with {libraries} libraries",
    "RecTools takes {rectools_a} times as long, RePlay {replay_a}, pytrec_eval {pytrec_eval_a},"
    " Spark's RankingMetrics {pyspark_a} and ranx {ranx_a} (after its JIT warm-up)",
    "{join_least} to {join_most} times as long as the bare join",
    "300 M rows of Parquet in {seconds} s, using {gigabytes} GB",
    # the page of benchmarks
    "| RecTools | 10, 5.5, 6 | {rectools_a} | {rectools_b} | {rectools_c} | {rectools_t} |",
    "| pytrec_eval | 20 | {pytrec_eval_a} | {pytrec_eval_b} | {pytrec_eval_c} | {pytrec_eval_t} |",
    "| RePlay, on Polars | 20 | {replay_a} | {replay_b} | {replay_c} | {replay_t} |",
    "| ranx, after its JIT warm-up | 20 | {ranx_a} | {ranx_b} | {ranx_c} | {ranx_t} |",
    "| Spark's RankingMetrics | 50 | {pyspark_a} | {pyspark_b} | {pyspark_c} | {pyspark_t} |",
    "On (a), pytrec_eval takes {pytrec_eval_a} times as long",
    "pandas frames as input, it takes {pandas_a}, {pandas_b} and {pandas_c} times as long",
    "{large} s per million rows, {small} at 10 M",
    "{seconds} s (goal 22); the bare join of both files takes {join_seconds} s",
    "{gigabytes} GB instead of 3.5 GB; the join holds {join_gigabytes} GB",
    "300 M rows of run take {megabytes} MB",
    # the page of larger tables
    "takes {ten_million} s for 10 M rows and {seconds} s for 300 M",
    "| 300 M | `evaluate`, lazy, of the benchmarks | {gigabytes} GB |",
]
UNQUOTED = ["{metrics} metrics", "{charts} charts", "{presets} presets"]  # on no page today
USED = set(re.findall(r"{(\w+)}", "".join(SENTENCES)))


def table(page, head):
    """Read the rows below the head of a table."""
    rows = re.split(r"\n(?!\|)", page.read_text().split(f"\n{head}")[1])[0]
    return [re.split(r" *\| *", row)[1:-1] for row in rows.splitlines()[2:]]


def counted():
    """Count all but what trec_eval gives, which ``test_trec_eval.py`` counts."""
    rows = table(README, "| label | definition | question |")
    shown = {labels.function_of(label) for row in rows for label in re.findall("`(.+?)`", row[0])}
    results = pl.read_csv(BENCHMARKS.with_name("results.csv"))
    ratio = {
        f"{name}_{cell}": row["ratio"]
        for cell, (shape, ids) in CELLS.items()
        for row in results.filter(shape=shape, ids=ids, suite="five").to_dicts()
        for name in [*LIBRARIES, "rankframe"]
        if row["peer"].startswith(name)
    }
    slower = results.filter(pl.col("ratio") <= 1)["peer"].str.extract("|".join(LIBRARIES), 0)
    of_join = [
        float(row[4])
        for row in table(BENCHMARKS, "| candidate / baseline |")
        if re.fullmatch(r"five metrics / join, \(.\)", row[0])
    ]
    scale = {tuple(row[:2]): [*map(float, row[2:])] for row in table(BENCHMARKS, "| case | M rows")}
    plain, join = scale["plain", "300"], scale["bare join", "300"]
    return {
        "metrics": f"{len(labels.METRICS)}",
        "other_metrics": f"{len(labels.METRICS) - len(shown)}",
        "tools": f"{sum(not name.startswith('trec_eval') for name in presets.PRESETS)}",
        "presets": f"{len(presets.PRESETS)}",
        "charts": f"{len(plot.__all__)}",
        "libraries": WORDS[len(LIBRARIES) - slower.drop_nulls().n_unique()],
        **{name: short(value) for name, value in ratio.items() if name in USED},
        **{f"pandas_{c}": short(ratio[f"rectools_{c}"] / ratio[f"rankframe_{c}"]) for c in "abc"},
        "join_least": f"{min(of_join):.1f}",
        "join_most": f"{max(of_join):.1f}",
        "seconds": f"{plain[0]:.0f}",
        "ten_million": f"{scale['plain', '10'][0]:.1f}",
        "gigabytes": f"{plain[2] / 1000:.1f}",
        "large": f"{plain[1]:.2f}",
        "small": f"{scale['plain', '10'][1]:.2f}",
        "join_seconds": f"{join[0]:.0f}",
        "join_gigabytes": f"{join[2] / 1000:.1f}",
        "megabytes": f"{scale['plain, truth of 0.1 M rows', '300'][2]:.0f}",
    }


def short(ratio):
    """Write two digits of a ratio."""
    return f"{float(f'{ratio:.2g}'):g}"


def written(text, sentence, numbers):
    """Write numbers into a sentence wherever a text has it; return also how often that is."""
    values = [numbers[name] for name in re.findall(r"{(\w+)}", sentence)]
    words = [re.escape(words).replace(r"\ ", r"\s+") for words in re.split(r"{\w+}", sentence)]
    number = rf"(?:\d[\d,.]*(?<=\d)|{'|'.join(WORDS[6:])})"
    pattern = rf"(?<![\w,.])({f'){number}('.join(words)})"

    def renewed(found):
        return "".join(map("".join, zip(found.groups(), [*values, ""], strict=True)))

    return re.subn(pattern, renewed, text, flags=re.IGNORECASE)


def pages(numbers):
    """Return each page with these numbers, and the sentences that no page has."""
    texts, absent = {page: page.read_text() for page in PAGES}, []
    for sentence in [*SENTENCES, *UNQUOTED]:
        places = 0
        for page in (README, INDEX) if sentence in UNQUOTED else PAGES:
            texts[page], count = written(texts[page], sentence, numbers)
            places += count
        absent += [] if places else [sentence]
    return texts, absent


if __name__ == "__main__":
    numbers = json.loads(STORED.read_text()) | counted()
    STORED.write_text(json.dumps(numbers, indent=1) + "\n")
    for path, content in pages(numbers)[0].items():
        path.write_text(content)
