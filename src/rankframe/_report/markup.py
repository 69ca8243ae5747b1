"""Write the sections of a report as one file: HTML that requests nothing from outside."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from rankframe._comparison.notes import Nouns
from rankframe._report import nouns, strips
from rankframe._report.strips import Axis, Change
from rankframe._report.tabular import Grid
from rankframe.plot import _colors

if TYPE_CHECKING:
    from altair.typing import ChartType
    from jinja2 import Template


_FONT = 'system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif'
_SIZES = {"labelFontSize": 12, "titleFontSize": 12}
#: The text of charts inherits its colors from the page, so that both schemes are readable.
_CONFIG: dict[str, Any] = {
    "background": "white",  # replaced by the style of the page
    "aria": False,  # a chart is one picture, with a text and a table beside it
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {**_SIZES, "titleFontWeight": "normal", "titlePadding": 12, "labelSeparation": 6},
    "header": {**_SIZES, "labelFontWeight": "bold"},
    "legend": {**_SIZES, "columnPadding": 20},
}
_PLACES = re.compile(r' (?:d|transform|x1?|x2|y1?|y2|width|height)="[^"]*"')
_IDS = re.compile(r'(?<=id=")(?:clip|gradient)\d+|(?<=url\(#)(?:clip|gradient)\d+')
_TAG = re.compile(r"<[^<>]*>")
#: Where no element can isolate a name: in tags, and in the text of these.
_NO_ELEMENTS = re.compile(r"<(?:title|option)\b[^>]*>[^<]*|<[^>]*>")
_ROLES = re.compile(r' (?:role|aria-hidden|aria-roledescription|aria-label)="[^"]*"')
_DIGITS = re.compile(r"\d+\.\d{2,}")
_SIGNS = re.compile("[★▲▼●◆■○→] ?")
_HEARD = {"★": "grade ", "▲": "up ", "▼": "down ", "→ ": "to "}  # without a space: of a number
_WIDTH = 200  # pixels of a panel, beside its axis and legend


class UserBar(NamedTuple):
    """The users who do worse, the same and better: kinds, counts and their texts."""

    parts: Sequence[tuple[str, int, str]]
    below: str


class Step(NamedTuple):
    """What to do next: a sentence, of which a part may be a link to a section."""

    lead: str
    text: str = ""
    after: str = ""
    link: str = ""


class Card(NamedTuple):
    """What a comparison shows, from the claim to the next step."""

    kind: str  # of the outcome, or "open"
    title: str
    sentence: str
    strip: str = ""  # the interval, as SVG
    bar: UserBar | None = None
    doubts: Sequence[str] = ()
    passed: str = ""  # the checks of the data, if there is no doubt
    step: Step = Step("")


class Figure(NamedTuple):
    """The name of a chart, its title, and its description."""

    name: str
    title: str
    alt: str
    ends: Mapping[str, str]  # what each panel shows, a part of its description


class Lists(NamedTuple):
    """The lists of one user, side by side."""

    name: str  # the text of a query, or the noun and the id
    key: str  # of the link to them
    values: str
    change: str
    kind: str
    note: str
    unjudged: str  # the share of items that nobody judged
    history: Sequence[str]
    grid: Grid
    missed: Sequence[str]  # what is relevant and in neither list
    more: int  # of these
    place: float  # percent of the histogram's width
    segments: Sequence[int]  # their places among those of the page


class Group(NamedTuple):
    """Users whose lists are shown, under one title."""

    title: str
    people: Sequence[Lists]


class Bar(NamedTuple):
    """A bar of a histogram: its place in percent of the width, its height in pixels."""

    kind: str
    x: float
    width: float
    height: float
    text: str


class Histogram(NamedTuple):
    """The changes of all users."""

    title: str
    alt: str
    bars: Sequence[Bar]
    height: int
    scale: str  # SVG
    counts: Sequence[tuple[str, str]]  # kinds and texts


class Users(NamedTuple):
    """The changes of all users, and the lists of those whom a reader may choose."""

    histogram: Histogram
    chosen: str  # whose lists the page has
    key: str  # of the signs in lists
    groups: Sequence[Group]  # without a script
    caption: str  # of both lists
    heads: Sequence[str]  # the systems
    orders: Sequence[str]
    segments: Sequence[str]
    data: str  # JSON
    to_judge: Sequence[tuple[Lists, str]]
    k: int  # the length of the lists


class Row(NamedTuple):
    """A row of the page's table."""

    name: str
    small: str = ""  # what a metric asks
    tag: str = ""
    values: Sequence[str] = ()  # before the change
    change: Change | None = None
    kind: str = ""  # first word of what the change shows
    said: str = ""
    why: str = ""
    blocks: Sequence[Block] = ()  # that the row opens
    full: str = ""  # of a name that is cut


class Block(NamedTuple):
    """Rows below one head, whose intervals have one axis."""

    head: Sequence[str]
    rows: Sequence[Row]
    axis: Axis | None = None
    small: str = ""  # below the first head
    more: str = ""  # which rows are left out
    caption: str = ""
    first: int | None = None  # so many rows are not folded
    folded: str = ""  # how many are

    @property
    def verdicts(self) -> bool:
        """Return whether the rows say what their changes show."""
        return any(row.said for row in self.rows)

    def draws(self, change: Change) -> bool:
        """Return whether the axis has the unit of a change: percent, if any is in percent."""
        return self.axis is not None and change.in_percent == any(
            row.change and row.change.in_percent for row in self.rows
        )


class Table(NamedTuple):
    """The table of a page."""

    title: str
    text: str
    blocks: Sequence[Block]
    notes: Sequence[str]


class Section(NamedTuple):
    """A part of the report; its fields are in reading order."""

    slug: str
    title: str
    text: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    grids: Sequence[Grid] = ()
    code: str = ""
    users: Users | None = None
    blocks: Sequence[Block] = ()
    folded: bool = False


class Page(NamedTuple):
    """The contents of a report."""

    title: str
    users: str
    note: str  # of the caller
    nouns: Nouns
    card: Card
    table: Table
    sections: Sequence[Section]
    footer: str  # of a printed page


# ------------------------------------------------------------------ the page


def check_report_packages() -> None:
    """Check that the packages of a report are installed."""
    modules = {"altair": "altair", "jinja2": "jinja2", "vl_convert": "vl-convert-python"}
    if missing := [name for module, name in modules.items() if find_spec(module) is None]:
        msg = f"a report needs {' and '.join(missing)}: pip install 'rankframe[report]'"
        raise ImportError(msg)


def rendered(page: Page, charts: Mapping[str, ChartType], *, static: bool) -> str:
    """Write the page: its charts are pictures, and its one script is for the lists of users."""
    explored = any(of.users is not None and of.users.data for of in page.sections) and not static
    script = _part("report.js") if explored else ""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    figures = [figure for section in page.sections for figure in section.figures]
    text = _template().render(
        page=page,
        strips=strips,
        script=script,
        words=page.nouns.words,
        policy=f"'sha256-{digest}'" if script else "'none'",
        style=_part("report.css") + _dark() + _running(page.title),
        pictures={
            figure.name: pictures(charts[figure.name], figure)
            for figure in figures
            if figure.name in charts
        },
    )
    text = _NO_ELEMENTS.sub(
        lambda tag: (nouns.in_text if tag[0].startswith("<title") else nouns.plain)(tag[0]), text
    )
    return text.replace(nouns.OPEN, "<bdi>").replace(nouns.CLOSE, "</bdi>")


@functools.cache
def _template() -> Template:
    """Compile the templates once: it takes longer than to fill them."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_part),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"heard": heard, "in_script": _in_script}
    return environment.get_template("report.html.j2")


def pictures(chart: ChartType, figure: Figure) -> list[str]:
    """Draw a chart as SVG, one picture per panel, so that a phone can stack them."""
    import altair as alt

    with alt.data_transformers.enable("default", max_rows=None), alt.theme.enable("none"):
        spec: dict[str, Any] = chart.to_dict(validate=False)  # charts of our own are valid
    own = spec.get("config", {}).get("legend", {})
    spec["config"] = {**_CONFIG, "legend": {**_CONFIG["legend"], **own}}
    spec.pop("title", None)  # the page has it as text
    # rounded to visible digits: the last ones of sums differ from run to run
    spec = json.loads(json.dumps(spec), parse_float=lambda text: float(f"{float(text):.6g}"))
    spec.get("spec", spec)["width"] = _WIDTH  # so narrow that it fits on a phone
    return [
        _picture(
            part, f"chart-{figure.name}-{place}", f"{panel}{figure.alt}{figure.ends.get(panel, '')}"
        )
        for place, (panel, part) in enumerate(_panels(spec).items())
    ]


def _panels(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Take panels apart."""
    facet = spec.get("facet", {})
    names = facet.get("sort", [])
    if len(names) < 2:
        return {"": spec}
    kept = spec.get("transform", [])
    filters = ({"filter": {"field": facet["field"], "equal": name}} for name in names)
    parts = zip(names, filters, strict=True)
    return {f"{name}: ": {**spec, "transform": [*kept, part]} for name, part in parts}


def _picture(spec: Mapping[str, Any], name: str, alt: str) -> str:
    """Draw SVG with a title, whose ids differ from those of other charts."""
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(dict(spec), _version())
    ids = [*dict.fromkeys(_IDS.findall(svg))]  # whose numbers go on from chart to chart
    svg = _IDS.sub(lambda match: f"{name}-{ids.index(match[0])}", svg)
    # a chart is one picture to a screen reader: hide its parts
    svg = _TAG.sub(lambda tag: _ROLES.sub("", tag[0]), svg)
    svg = _PLACES.sub(lambda match: _DIGITS.sub(_short, match[0]), svg)
    svg = svg.replace("<g ", '<g aria-hidden="true" ', 1)
    words = f"<title>{html.escape(alt)}</title>"
    return re.sub(r"<svg ([^>]*)>", lambda tag: f'<svg role="img" {tag[1]}>{words}', svg, count=1)


def heard(text: str) -> str:
    """Hide signs from screen readers, which read out their names, and write words for some."""
    return _SIGNS.sub(
        lambda sign: (
            f'<span aria-hidden="true">{sign[0]}</span>'
            + (f'<span class="hidden">{word}</span>' if (word := _HEARD.get(sign[0])) else "")
        ),
        html.escape(text),
    )


def _in_script(data: str) -> str:
    """Write JSON so that no name in it ends its element, or is isolated as text is."""
    data = f'{data[:-1]},"heard":{json.dumps(_HEARD, ensure_ascii=False)}}}'
    signs = ("<", nouns.OPEN, nouns.CLOSE)
    return data.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in signs})


def _short(digits: re.Match[str]) -> str:
    return f"{float(digits[0]):.4g}"


def _dark() -> str:
    """Write the colors of charts on a dark background as a style, so that a page fits both."""
    rules = [
        f'.chart [{place}="{light}"] {{ {place}: {dark}; }}'
        for light, dark in _colors.all_pairs().items()
        for place in ("fill", "stroke")
    ]
    return f"@media screen and (prefers-color-scheme: dark) {{\n{chr(10).join(rules)}\n}}\n"


def _running(title: str) -> str:
    """Write the title above each printed page, as a style: each of its characters by its number."""
    text = "".join(f"\\{ord(letter):x} " for letter in nouns.plain(title))
    return f'@page {{ @top-left {{ content: "{text}"; font: 8pt sans-serif; }} }}\n'


def _version() -> str:
    """Return the version of Vega-Lite of the charts."""
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.split(".")[:2])


def _part(name: str) -> str:
    from importlib.resources import files

    return files("rankframe._report").joinpath(name).read_text(encoding="utf-8")
