"""What the README and the guide print is what their code prints; they leave nothing out."""

import ast
import importlib
import inspect
import itertools
import json
import math
import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import extension
import names
import pages
import polars as pl
import pytest
import quoted
import yaml

import rankframe as rf
from rankframe import parts, plot, trec, typing

README = pages.PAGES[0].read_text()
GENERATED = ("conformance.md", "metrics.md", "names.md", "odd_input.md")

# Polars 1 asks to be told what explode does with an empty list: the pages have none
explodes = pytest.mark.filterwarnings("ignore:In Polars 2.0, the default:DeprecationWarning")


@explodes
@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.stem)
def test_code_prints_what_is_shown(page):
    with extension.registered():
        for shown, printed in pages.printed(page):
            assert printed == shown


def test_pages_but_the_generated_have_code():
    without = {page.name for page in pages.GUIDE if "```python" not in page.read_text()}
    assert without == {*GENERATED, "bibliography.md", "command_line.md"}


def test_pages_are_short_and_begin_with_code():
    assert len(README.splitlines()) <= 180
    for page in pages.GUIDE:
        if page.name not in GENERATED:
            lines = page.read_text().splitlines()
            assert len(lines) <= 200, page
            assert page.name == "bibliography.md" or lines[4].startswith("```"), page


def test_page_of_names_is_current():
    assert names.PAGE.read_text() == names.page()


def test_public_names_are_on_a_page():
    text = "".join(page.read_text() for page in pages.PAGES if page != names.PAGE)
    rooms = (rf, rf.stats, rf.runs, rf.plot, rf.parts)
    for name in itertools.chain.from_iterable(room.__all__ for room in rooms):
        assert re.search(rf"\b{name}\b", text), name


def public():
    """Functions, and methods of the classes whose methods have their own documentation."""
    modules = [rf, rf.metrics, rf.stats, rf.runs, parts, plot, trec]
    if find_spec("pyspark"):
        modules.append(importlib.import_module("rankframe.spark"))
    for module in modules:
        for name in dir(module):
            thing = getattr(module, name)
            if inspect.isfunction(thing):
                yield f"{module.__name__}.{name}", thing
    yield "rankframe.Meter", rf.Meter
    for kind in (rf.Meter, typing.Report, typing.ResultsTable):
        for name, method in vars(kind).items():
            if inspect.isfunction(method) and name[0] != "_":
                yield f"rankframe.{kind.__name__}.{name}", method


PUBLIC = dict(public())


def texts(function):
    """The entries of the section Parameters, as numpydoc reads them, with their text; or None."""
    found = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)",
        inspect.getdoc(function),
        re.MULTILINE | re.DOTALL,
    )
    if found is None:
        return None
    _, *parts = re.split(r"^(\S.*)\n", found[1], flags=re.MULTILINE)
    return [
        (name, " ".join(text.split())) for name, text in zip(parts[::2], parts[1::2], strict=True)
    ]


def documented(function):
    """The names of the section Parameters; None without it.

    A reference takes type and default of an entry from the parameter of its name; an entry of
    several names has those of its first one.
    """
    entries = texts(function)
    return None if entries is None else [name for name, _ in entries]


@pytest.mark.parametrize("room", sorted({name.rpartition(".")[0] for name in PUBLIC}))
def test_parameters_are_documented_by_their_own_names(room):
    for name, function in PUBLIC.items():
        if name.rpartition(".")[0] == room:
            check_parameters(function)


def check_parameters(function):
    assert not re.search(r"\w -{4,}", function.__doc__)  # a heading that is part of a paragraph
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = inspect.signature(function).parameters.values()
    names = [stars.get(one.kind, "") + one.name for one in parameters if one.name != "self"]
    entries = documented(function)
    if entries is None and names:  # one sentence that names the function with the same parameters
        assert re.fullmatch(r".*; see :func:`(\w+)`\.", inspect.getdoc(function))
    else:
        assert (entries or []) == names


def keys(kind):
    """The keys of a TypedDict, each with the text below it, which editors and the site read."""
    (body,) = [node.body for node in ast.parse(inspect.getsource(kind)).body]
    return [
        (key.target.id, inspect.cleandoc(text.value.value).replace("\n", " ").strip())
        for key, text in itertools.pairwise(body)
        if isinstance(key, ast.AnnAssign) and isinstance(text, ast.Expr)
    ]


def test_keywords_of_options_are_documented():
    kinds = (typing.Names, typing.Options, typing.StatisticsOptions)
    for parent, kind in zip((None, *kinds), kinds, strict=False):
        inherited = {} if parent is None else parent.__annotations__
        own = [key for key in kind.__annotations__ if key not in inherited]
        assert [key for key, _ in keys(kind)] == own


def test_entry_of_several_names_is_seen():
    def grouped(one, two=2):
        """
        Group two names.

        Parameters
        ----------
        one, two : int
            Both.

        Returns
        -------
        int
        """

    assert documented(grouped) == ["one, two : int"]
    assert len(PUBLIC) > 150


def test_links_lead_somewhere():
    for page in pages.PAGES:
        text = page.read_text()
        for link in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
            name, _, anchor = link.partition("#")
            target = (page.parent / name) if name else page
            assert target.exists(), f"{page.name}: {link}"
            if anchor:
                assert anchor in anchors(target), f"{page.name}: {link}"


def anchors(page):
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_pages_and_notebooks_are_linked_from_the_readme():
    for path in (pages.TOP / "notebooks").iterdir():
        if path.suffix in (".md", ".ipynb") and path.name != "odd_input.md":
            assert f"(notebooks/{path.name})" in README, path.name


CITED = re.compile(r"([\w-]+),\s\*([A-Z][^*]+)\*([^.;:*]{0,40}?\b(?:18|19|20)\d\d)\b")


def test_sources_are_in_the_bibliography():
    page = pages.TOP / "notebooks" / "bibliography.md"
    entries = [line for line in page.read_text().splitlines() if line.startswith("- ")]
    cited = set()
    for path in Path(inspect.getfile(rf)).parent.rglob("*.py"):
        for docstring in path.read_text().split('"""')[1::2]:
            cited |= {found.groups() for found in CITED.finditer(" ".join(docstring.split()))}
    assert len(cited) > 40
    for author, venue, when in cited:
        year = when[-4:]
        assert any(
            author in entry and f"*{venue}*" in entry and entry.endswith(f"{year}.")
            for entry in entries
        ), (author, venue, when)
    assert len(entries) == len(set(entries))


def test_quoted_numbers_are_counted():
    stored = json.loads(quoted.STORED.read_text())
    assert stored == stored | quoted.counted()
    texts, absent = quoted.pages(stored)
    assert absent == quoted.UNQUOTED
    assert texts == {page: page.read_text() for page in texts}


def test_quoted_numbers_are_renewed():
    text, renewed = "6 libraries, with six\nlibraries", "6 libraries, with nine\nlibraries"
    got = quoted.written(text, "with {libraries} libraries", {"libraries": "nine"})
    assert got == (renewed, 1)


def test_oldest_versions_are_those_of_the_package():
    settings = tomllib.loads((pages.TOP / "pyproject.toml").read_text())["project"]
    wanted = [*settings["dependencies"], *settings["optional-dependencies"]["pandas"]]
    oldest = dict(one.split(">=") for one in [*wanted, f"Python{settings['requires-python']}"])
    table = (pages.TOP / "CONTRIBUTING.md").read_text().split("| | oldest | newest |")[1]
    for name in ("Python", "polars", "pandas"):
        assert f"| {name} | {oldest[name]} |".lower() in table.lower()


GRADES = {"1": {"a": 1, "b": 1}, "2": {"c": 1}}
RUN = {"1": {"a": 3.0, "x": 2.0, "b": 1.0}, "2": {"y": 2.0, "c": 1.0}}


def coming_from():
    table = README.split("| from | there | here |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| (\w+) \| `.*?` \| `(.*)` \|$", table, re.MULTILINE)
    return dict(rows)


def test_lines_are_there_for_each_tool():
    assert list(coming_from()) == ["ranx", "pytrec_eval", "RecTools", "RePlay", "Spark"]


@explodes
@pytest.mark.parametrize("tool", coming_from())
def test_line_takes_the_tables_of_the_tool(tool):
    import rankframe.pandas  # noqa: F401

    run, truth = rf.from_scores(RUN), rf.from_grades(GRADES)
    liked = truth.drop("relevance")
    lists = run.group_by("user", maintain_order=True).agg(pl.col("item").alias("prediction"))
    theirs = {"user": "user_id", "item": "item_id"}
    names = {
        "rf": rf,
        "run": RUN,
        "qrels": GRADES,
        "reco": run.rank.with_rank().drop("score").rename(theirs).to_pandas(),
        "interactions": liked.rename(theirs).to_pandas(),
        "recs": run.rename({"user": "query_id", "item": "item_id", "score": "rating"}),
        "test": liked.rename({"user": "query_id", "item": "item_id"}),
        "lists": lists.join(liked.group_by("user").agg(label="item"), on="user"),
    }
    got = eval(coming_from()[tool], names)
    # of user 1 the hits are at ranks 1 and 3, of user 2 at rank 2
    ap = [(1 + 2 / 3) / 2, 1 / 2]
    discount = {rank: 1 / math.log2(rank + 1) for rank in (1, 2, 3)}
    ndcg = [(discount[1] + discount[3]) / (discount[1] + discount[2]), discount[2]]
    label = got.columns[-1]
    mean = float(pl.Series(got[label]).mean())
    assert mean == pytest.approx(sum(ap if "map" in label else ndcg) / 2, abs=1e-12)


def test_workflows_call_what_a_developer_calls():
    folder = pages.TOP.joinpath(".github", "workflows")
    ci, release = (folder.joinpath(name).read_text() for name in ("ci.yml", "release.yml"))
    assert re.findall(r"- run: (.*)", ci) == [
        ".ci/run",
        'pip install --editable ".[test]"',
        "pip install ${{ matrix.next }}",
        "pytest -n 2 --dist worksteal",
    ]
    assert '.ci/package out "$GITHUB_REF_NAME"' in release
    for text in (ci, release):
        assert text.count("runs-on:") == text.count("timeout-minutes:")
        assert not re.findall(r"uses: (?!\S+@[0-9a-f]{40} # v[\d.]+)", text)  # a tag can be moved
    assert f"version: {rf.__version__}\n" in pages.TOP.joinpath("CITATION.cff").read_text()
    classifiers = tomllib.loads((pages.TOP / "pyproject.toml").read_text())["project"][
        "classifiers"
    ]
    versions = set(re.findall(r"Python :: (3\.\d+)", "".join(classifiers)))
    assert versions == set(re.findall(r'python(?:-version)?: "([\d.]+)"', ci))
    systems = {"macos": "MacOS", "windows": "Windows", "ubuntu": "Linux"}
    told = {name.rpartition(" ")[2] for name in classifiers if name.startswith("Operating System")}
    assert told == {systems[name] for name in re.findall(r"\b(\w+)-latest", ci)}
    hooks = pages.TOP.joinpath(".pre-commit-config.yaml").read_text()
    assert re.findall(r"- repo: (.*)", hooks) == ["local"]


def test_recipe_asks_for_what_the_package_asks_for():
    page = pages.TOP.joinpath("CONTRIBUTING.md").read_text()
    recipe = yaml.safe_load(page.split("```yaml\n")[1].split("```")[0])
    settings = tomllib.loads(pages.TOP.joinpath("pyproject.toml").read_text())
    project, needed = settings["project"], recipe["requirements"]
    oldest = project["requires-python"].removeprefix(">=")
    assert recipe["context"] == {"version": rf.__version__, "python_min": oldest}
    assert [one.replace(" ", "") for one in needed["run"][1:]] == project["dependencies"]
    assert [one.replace(" ", "") for one in needed["host"][2:]] == settings["build-system"][
        "requires"
    ]
    files = settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {name[0] for name in files} == {"/"}  # no "tests" of an environment in the checkout
    (script,) = project["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [" = ".join(script)]
