"""What public results per topic show: ``python -m benchmarks.findings`` fills the page of findings.

The values are in ``benchmarks/per_topic``, whose README says where they are from.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

import rankframe as rf
from benchmarks import report

FOLDER = Path(__file__).parent / "per_topic"
PAGE = Path(__file__).parents[1] / "notebooks" / "findings.md"
FILES = {
    "web2013_ndcg20": ("Web 2013", "nDCG@20"),
    "web2014_ndcg20": ("Web 2014", "nDCG@20"),
    "genomics2004_ap": ("Genomics 2004", "AP"),
    "terabyte2006_ap": ("Terabyte 2006", "AP"),
}
PAIR = ["baseline", "system"]
LEVEL = 0.05
TOP = 10
OTHERS = "_others"


class Collection(NamedTuple):
    """Values of systems in the order of their means, and all pairs, the better system first."""

    name: str
    metric: str
    values: pl.DataFrame
    systems: int
    pairs: pl.DataFrame


def collection(file: str) -> Collection:
    """Read the values of a collection, and compare all pairs of its systems."""
    name, metric = FILES[file]
    table = pl.read_csv(FOLDER / f"{file}.csv", infer_schema_length=None).with_row_index("topic")
    values = table.unpivot(index="topic", variable_name="system", value_name=metric)
    means = values.group_by("system").agg(pl.col(metric).mean()).sort(-pl.col(metric), "system")
    values = values.cast({"system": pl.Enum(means["system"])})
    return Collection(name, metric, values, means.height, compared(values, metric))


def compared(values: pl.DataFrame, metric: str, **rule: Any) -> pl.DataFrame:
    """Compare all pairs of systems, with a correction for all of them."""
    pairs = rf.compare(values, metric, user="topic", model="system", details=True, **rule)
    pairs = pairs.cast({"baseline": values.schema["system"]})
    return pairs.with_columns(pl.col(PAIR).to_physical().name.prefix("place_of_"))


def shown(pairs: pl.DataFrame, *conditions: pl.Expr) -> str:
    """Count those of the pairs that are shown to differ, after the correction."""
    asked = pairs.filter(*conditions)
    return f"{asked.filter(pl.col('p_adjusted') < LEVEL).height} of {asked.height:,}"


def overview(data: Collection) -> dict[str, object]:
    """Count the pairs of a collection that differ."""
    better, place = pl.col("place_of_baseline"), pl.col("place_of_system")
    with_best = data.pairs.filter(better == 0)
    equals = with_best.remove(pl.col("p_adjusted") < LEVEL).height
    return {
        "collection": f"{data.name}, {data.metric}",
        "topics": data.values["topic"].n_unique(),
        "systems": data.systems,
        "pairs": f"{data.pairs.height:,}",
        "p < .05": f"{data.pairs.filter(pl.col('p_value') < LEVEL).height:,}",
        "shown": f"{data.pairs.filter(pl.col('p_adjusted') < LEVEL).height:,}",
        "of neighbors": shown(data.pairs, place - better == 1),
        "of the ten best": shown(data.pairs, place < TOP),
        "may be the best": f"{1 + equals} of {data.systems}",
        "detectable": f"{with_best.select(pl.col('detectable').median()).item():.2f}",
    }


def gaps(data: Collection) -> list[dict[str, object]]:
    """Compare the best system with the next three."""
    pairs = data.pairs.filter(pl.col("place_of_baseline") == 0, pl.col("place_of_system") <= 3)
    return [
        {
            "collection": data.name,
            "means: best, other": f"{row['baseline_mean']:.3f}, {row['mean']:.3f}",
            "place": row["place_of_system"] + 1,
            "gap": f"{-row['difference']:.3f}",
            "95% interval": f"{-row['ci_high']:z.3f} to {-row['ci_low']:.3f}",
            "p": f"{row['p_value']:.2g}",
            "of all pairs": f"{row['p_adjusted']:.2g}",
            "topics": needed(data, row),
            "for all pairs": needed(data, row, comparisons=data.pairs.height),
        }
        for row in pairs.sort("place_of_system").to_dicts()
    ]


def needed(data: Collection, pair: dict[str, Any], comparisons: int = 1) -> str:
    """Count the topics that show a difference like that of the pair 8 times in 10."""
    plan = rf.stats.power(
        data.values.filter(pl.col("system").is_in([pair[side] for side in PAIR])),
        data.metric,
        user="topic",
        model="system",
        baseline=pair["baseline"],
        difference=-pair["difference"],
        comparisons=comparisons,
    )
    return f"{round_to_two(plan['needed'].item()):,}"


def round_to_two(number: int) -> int:
    """Round to two digits."""
    return int(float(f"{number:.2g}"))


def rules(data: Collection) -> dict[str, object]:
    """Count the pairs that other corrections find: of all, of the ten best, and the winner's."""
    found = {
        "Holm": data.pairs,
        "max_t": compared(data.values, data.metric, test="max_t"),
        "bh": compared(data.values, data.metric, correction="bh"),
    }
    best = pl.col("place_of_system") < TOP
    second = (pl.col("place_of_baseline") == 0) & (pl.col("place_of_system") == 1)
    cells: dict[str, object] = {"collection": data.name}
    for rule, pairs in found.items():
        differ = pairs.filter(pl.col("p_adjusted") < LEVEL)
        winner = "yes" if differ.filter(second).height else "no"
        cells[rule] = f"{differ.height:,}; {differ.filter(best).height}; {winner}"
    return cells


def thirds(data: Collection) -> list[dict[str, object]]:
    """Compare on each third of the topics, and ask whether the other topics agree."""
    rows: list[dict[str, object]] = []
    agree = pl.col("difference") * pl.col(f"difference{OTHERS}") > 0
    for first in range(3):
        third = pl.col("topic") % 3 == first
        few, rest = data.values.filter(third), data.values.remove(third)
        both = compared(few, data.metric).join(compared(rest, data.metric), on=PAIR, suffix=OTHERS)
        for rule, p in {"shown": "p_adjusted", "p < .05": "p_value"}.items():
            pairs = both.filter(pl.col(p) < LEVEL)
            again = pairs.filter(agree, pl.col(p + OTHERS) < LEVEL)
            rows.append(
                {
                    "topics": f"{first + 1}, {first + 4}, {first + 7}, …",
                    "rule": rule,
                    "pairs": f"{pairs.height:,}",
                    "reversed in the others": pairs.remove(agree).height,
                    "found there, too": f"{again.height / pairs.height:.1%}",
                }
            )
    return rows


def filled(text: str) -> str:
    """Fill in the tables of the page."""
    collections = [collection(file) for file in FILES]
    tables = {
        "overview": [overview(data) for data in collections],
        "gaps": [row for data in collections for row in gaps(data)],
        "rules": [rules(data) for data in collections],
        "thirds": thirds(collections[-1]),
    }
    for name, rows in tables.items():
        table = report.markdown(pl.DataFrame(rows))
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, _, after = text.partition(begin)
        text = f"{before}{begin}{table}\n{end}{after.partition(end)[2]}"
    return text


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
