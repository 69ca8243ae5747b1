"""Write the sections of a report as one file: HTML that requests nothing from outside."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from rankframe._report import tabular
from rankframe._report.tabular import Grid
from rankframe.plot import _colors

if TYPE_CHECKING:
    from altair.typing import ChartType

_MINUS = "\u2212"
_FONT = 'system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif'
#: The text of charts inherits its colors from the page, so that both schemes are readable.
_CONFIG: dict[str, Any] = {
    "background": "white",  # replaced by the style of the page
    "aria": False,  # a chart is one picture, with a text and a table beside it
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
    "header": {"labelFontSize": 12, "titleFontSize": 12, "labelFontWeight": "bold"},
    "legend": {"labelFontSize": 12, "titleFontSize": 12},
    "title": {"fontSize": 14, "subtitleFontSize": 12, "anchor": "start"},
}
_PLACES = re.compile(r' (?:d|transform|x1?|x2|y1?|y2|width|height)="[^"]*"')
_TAG = re.compile(r"<[^<>]*>")
_ROLES = re.compile(r' (?:role|aria-hidden|aria-roledescription)="[^"]*"')
_DIGITS = re.compile(r"\d+\.\d{2,}")
_COUNTED = re.compile(r"\b(view|param)_(\d+)")  # names that Altair numbers within a process


class Verdict(NamedTuple):
    """The result of comparing one system with the baseline, in words."""

    kind: str  # of the outcome, or "open"
    lead: str
    text: Sequence[str] = ()


class Figure(NamedTuple):
    """The name of a chart, and its description."""

    name: str
    alt: str


class Lists(NamedTuple):
    """The lists of one user, side by side."""

    summary: str
    change: str
    kind: str
    note: str
    grid: Grid


class Group(NamedTuple):
    """Users whose lists are shown, under one title."""

    title: str
    people: Sequence[Lists]


class Section(NamedTuple):
    """A part of the report; its fields are in reading order."""

    slug: str
    title: str
    text: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    grids: Sequence[Grid] = ()
    groups: Sequence[Group] = ()
    code: str = ""
    single: bool = False  # whether figures are stacked


class Page(NamedTuple):
    """The contents of a report."""

    title: str
    subtitle: str
    verdicts: Sequence[Verdict]
    doubts: Sequence[str]
    steps: Sequence[str]
    fine: Sequence[str]
    sections: Sequence[Section]


# ------------------------------------------------------------------ numbers in words


def number(value: float | None, digits: int = 4) -> str:
    """Write a number: four decimals, fewer if it is large."""
    if value is None:
        return tabular.DASH
    if isinstance(value, int):
        return f"{value:,}".replace("-", _MINUS)
    size = abs(value)
    digits = digits if size < 10 else 2 if size < 1_000 else 1
    text = f"{value:,.{digits}f}"
    return text.replace("-", "" if not float(text.replace(",", "")) else _MINUS)


def signed(value: float | None, digits: int = 4) -> str:
    """Write a change with its sign."""
    text = number(value, digits)
    is_zero = not any(digit in text for digit in "123456789")
    return text if value is None or value < 0 or is_zero else f"+{text}"


def interval(low: float | None, high: float | None, *, sign: bool = False) -> str:
    """Write both ends of an interval; nothing if there is none."""
    if low is None or high is None:
        return ""
    write = signed if sign else number
    return f"{write(low)} to {write(high)}"


def percent(share: float | None) -> str:
    """Write a share in percent: without decimals, unless it is small."""
    if share is None:
        return tabular.DASH
    size = abs(share)
    digits = 0 if share == 0 or size >= 0.0095 else 1 if size >= 0.00095 else 2
    return f"{100 * share:.{digits}f}%".replace("-", _MINUS)


def p_value(p: float | None) -> str:
    """Write a p-value, which is never 0."""
    if p is None:
        return tabular.DASH
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """Write a count and what is counted."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def listed_words(words: Sequence[str]) -> str:
    """Join words: one, two and three."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


# ------------------------------------------------------------------ the page


def check_report_packages() -> None:
    """Check that the packages of a report are installed."""
    modules = {"altair": "altair", "jinja2": "jinja2", "vl_convert": "vl-convert-python"}
    if missing := [name for module, name in modules.items() if find_spec(module) is None]:
        msg = f"a report needs {' and '.join(missing)}: pip install 'rankframe[report]'"
        raise ImportError(msg)


def rendered(page: Page, charts: Mapping[str, ChartType], *, static: bool) -> str:
    """Write the page; ``static`` has pictures and no scripts."""
    import jinja2

    specs = {name: specification(chart) for name, chart in charts.items()}
    scripts = [] if static else [_bundle(), _DRAW]
    hashes = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts
    ]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_part("report.html.j2"))
    return template.render(
        page=page,
        static=static,
        style=_part("report.css") + _dark(),
        policy=" ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'",
        scripts=scripts,
        specs=_as_json(specs),
        pictures={name: picture(spec, name) for name, spec in specs.items()} if static else {},
    )


def specification(chart: ChartType) -> dict[str, Any]:
    """Write a chart as Vega-Lite: identical for the same numbers, whatever was drawn before."""
    import altair as alt

    with alt.data_transformers.enable("default", max_rows=None), alt.theme.enable("none"):
        spec: dict[str, Any] = chart.to_dict(validate=False)  # charts of our own are valid
    own = spec.get("config", {}).get("legend", {})
    spec["config"] = {**_CONFIG, "legend": {**_CONFIG["legend"], **own}}
    spec.pop("usermeta", None)
    return _renumbered(_named_apart(_rounded(spec)))


def picture(spec: Mapping[str, Any], name: str) -> str:
    """Draw a chart as SVG, whose ids differ from those of other charts of the page."""
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(_wide(spec, name), _version())
    svg = re.sub(r'\b(id="|url\(#)(clip|gradient)', rf"\1{name}-\2", svg)
    # a chart is one picture to a screen reader: hide its parts
    svg = _TAG.sub(lambda tag: _ROLES.sub("", tag[0]), svg)
    return _PLACES.sub(lambda match: _DIGITS.sub(_short, match[0]), svg)


def _short(digits: re.Match[str]) -> str:
    return f"{float(digits[0]):.4g}"


def _wide(spec: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Set the width of the page in a chart as wide as its container: a picture has no container."""
    wide_spec = dict(spec)
    if wide_spec.get("width") == "container":
        wide_spec["width"] = 300 if name.startswith("cut") else 620
    return wide_spec


def _rounded(value: Any) -> Any:
    """Round numbers to visible digits: the last digits of sums differ from run to run."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    return _within(value, lambda _, item: _rounded(item))


def _within(value: Any, change: Callable[[str, Any], Any]) -> Any:
    """Change the values in a list or an object of JSON; ``change`` receives the key of each."""
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        return {name: change(name, item) for name, item in entries.items()}
    if isinstance(value, list):
        return [change("", item) for item in cast("Sequence[Any]", value)]
    return value


def _named_apart(spec: dict[str, Any]) -> dict[str, Any]:
    """Number the data of a chart: Altair names them by a long hash."""
    names = {name: f"data-{place}" for place, name in enumerate(spec.get("datasets", {}), 1)}

    def renamed(key: str, value: Any) -> Any:
        if key == "datasets":
            return {names[name]: rows for name, rows in value.items()}
        if key == "data" and isinstance(value, dict):
            data = cast("dict[str, Any]", value)
            return {**data, "name": names[data["name"]]} if data.get("name") in names else data
        return _within(value, renamed)

    return {name: renamed(name, value) for name, value in spec.items()}


def _renumbered(spec: dict[str, Any]) -> dict[str, Any]:
    """Number the names that Altair makes from 1 in each chart, and leave data unchanged."""
    new_names: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        place = sum(name.startswith(match[1]) for name in new_names) + 1
        return new_names.setdefault(match[0], f"{match[1]}_{place}")

    def walked(key: str, value: Any) -> Any:
        if key in ("datasets", "values", "domain", "sort"):
            return value
        if isinstance(value, str):
            return _COUNTED.sub(renamed, value)
        return _within(value, walked)

    return {name: walked(name, value) for name, value in spec.items()}


def _as_json(value: object) -> str:
    """Write JSON that no HTML parser mistakes for markup."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for sign in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


@lru_cache(maxsize=1)
def _bundle() -> str:
    """Return the scripts that draw charts, all of them once."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", _version())
    return bundle.replace("\r\n", "\n").replace("</script", r"<\/script").replace("<!--", r"<\!--")


def _dark() -> str:
    """Write the colors of charts on a dark background as a style, so that a page fits both."""
    rules = [
        f'.chart [{place}="{light}"] {{ {place}: {dark}; }}'
        for light, dark in _colors.all_pairs().items()
        for place in ("fill", "stroke")
    ]
    return f"@media screen and (prefers-color-scheme: dark) {{\n{chr(10).join(rules)}\n}}\n"


def _version() -> str:
    """Return the version of Vega-Lite of the charts."""
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.split(".")[:2])


def _part(name: str) -> str:
    from importlib.resources import files

    return files("rankframe._report").joinpath(name).read_text(encoding="utf-8")


#: ``ast``: expressions are interpreted, so that the page needs no permission to evaluate text.
_DRAW = """
const specs = JSON.parse(document.getElementById("specs").textContent);
const options = {actions: false, renderer: "svg", ast: true, defaultStyle: false};
Promise.all(Object.entries(specs).map(([name, spec]) => {
  const place = document.getElementById("chart-" + name);
  return vegaEmbed(place, spec, options).then(() => place.removeAttribute("data-waiting"));
})).then(() => document.documentElement.setAttribute("data-drawn", "yes"));
"""
