"""Results kept, printed and drawn."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

SCHEMA = {
    "shape": pl.String,
    "ids": pl.String,
    "suite": pl.String,
    "peer": pl.String,
    "metrics": pl.Int64,
    "convert_seconds": pl.Float64,
    "compute_seconds": pl.Float64,
    "seconds": pl.Float64,
    "rankframe_seconds": pl.Float64,
    "ratio": pl.Float64,
    "ratio_without_conversion": pl.Float64,
    "peak_mb": pl.Float64,
    "rankframe_peak_mb": pl.Float64,
    "loaded_mb": pl.Float64,
    "import_seconds": pl.Float64,
    "read_seconds": pl.Float64,
    "missing": pl.String,
    "different": pl.String,
    "remark": pl.String,
}
CELL = ["shape", "ids", "suite"]
SHAPES = {
    "a": "(a) 100 k users × 100 items",
    "b": "(b) 1 M users × 10 items",
    "c": "(c) 10 k users × 100 items",
}


def keep(path: Path, rows: list[dict[str, Any]], cell: dict[str, str]) -> None:
    """Write the rows of a cell into the results, in place of those of the same peers."""
    new = pl.DataFrame(rows, schema=SCHEMA)
    same = [pl.col(name) == value for name, value in cell.items()]
    again = pl.col("peer").is_in(new["peer"].to_list())
    others = read(path).remove(pl.all_horizontal(*same, again))
    pl.concat([others, new]).sort(CELL, maintain_order=True).write_csv(path)


def read(path: Path) -> pl.DataFrame:
    """Read results; none if there is no file yet."""
    return pl.read_csv(path, schema=SCHEMA) if path.exists() else pl.DataFrame(schema=SCHEMA)


def show(results: pl.DataFrame, where: Path, readme: Path | None) -> None:
    """Print the table, save the chart, and put the table into the README."""
    table = markdown(_table(results))
    print(table)
    chart(results).save(where / "speed.svg")
    if readme:
        fill(readme, "peers", table)


def _table(results: pl.DataFrame) -> pl.DataFrame:
    notes = [pl.format("lacks {}", "missing"), pl.format("differs: {}", "different"), "remark"]
    return results.select(
        *CELL,
        "peer",
        "metrics",
        pl.col("convert_seconds", "compute_seconds", "rankframe_seconds").round(4),
        pl.col("ratio", "ratio_without_conversion").round_sig_figs(2),
        pl.col("peak_mb", "rankframe_peak_mb").round(0).cast(pl.Int64, strict=False),
        pl.concat_str(notes, separator="; ", ignore_nulls=True).alias("remarks"),
    )


def markdown(table: pl.DataFrame) -> str:
    """Write a frame as a table of Markdown; null is an empty cell."""
    rows = [table.columns, ["---"] * table.width, *table.iter_rows()]
    return "\n".join(f"| {' | '.join(map(_text, row))} |" for row in rows)


def _text(cell: object) -> str:
    if cell is None:
        return ""
    return f"{cell:g}" if isinstance(cell, float) else str(cell)


def fill(readme: Path, name: str, table: str) -> None:
    """Put a table between the README's marks of this name."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    text = readme.read_text()
    filled, found = re.subn(
        f"{begin}.*?{end}", lambda _: f"{begin}\n{table}\n{end}", text, flags=re.DOTALL
    )
    if not found:
        msg = f"{readme} has no place for {name}"
        raise ValueError(msg)
    readme.write_text(filled)


def chart(results: pl.DataFrame) -> alt.FacetChart:
    """Draw how many times as long as rankframe each peer takes."""
    timed = results.drop_nulls("ratio").select(
        "peer",
        "suite",
        "ratio",
        data=pl.format("{}, {} ids", pl.col("shape").replace(SHAPES), "ids"),
        label=pl.max_horizontal("ratio", 1.0),  # beside the bar, also where that goes to the left
    )
    peer = alt.Y("peer:N", title=None).sort(field="ratio", op="median", order="ascending")
    axis = alt.Axis(values=[10.0**n for n in range(-2, 5)], format="~r")
    ratio = alt.X("ratio:Q", title="times as long", axis=axis, scale=alt.Scale(type="log"))
    color = alt.Color("suite:N", title="metrics", sort="ascending")
    base = alt.Chart().encode(y=peer, yOffset="suite:N")
    bars = base.mark_bar().encode(x=ratio, x2=alt.datum(1), color=color)
    text = base.mark_text(align="left", dx=3, fontSize=9)
    text = text.encode(x="label:Q", text=alt.Text("ratio:Q", format=".2~r"))
    line = alt.Chart().mark_rule().encode(x=alt.datum(1, type="quantitative"))
    panel = alt.layer(bars, text, line, data=timed).properties(width=280, height=200)
    title = "Tables to means: how many times as long as rankframe"
    return panel.facet(alt.Facet("data:N", title=None), columns=2, title=title)
