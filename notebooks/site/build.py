"""Build the site: ``python notebooks/site/build.py FOLDER`` gathers the pages and runs Zensical.

Pages keep their links as they are in the repository; here they are rewritten to those of the site.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import live_report
import metric_pages
import nbformat
import reference
from nbconvert import MarkdownExporter

HERE = Path(__file__).parent
TOP = HERE.parents[1]
REPOSITORY = "https://github.com/rankframe/rankframe/blob/main/"

#: Files of the repository, and the pages that they become.
PAGES = {
    HERE / "index.md": "index.md",
    TOP / "CHANGELOG.md": "changelog.md",
    TOP / "CONTRIBUTING.md": "contributing.md",
    TOP / "benchmarks" / "README.md": "benchmarks.md",
    **{path: path.name for path in (TOP / "notebooks").glob("*.md")},
    **{path: f"{path.stem}.md" for path in (TOP / "notebooks").glob("*.ipynb")},
}
PICTURES = [path for kind in ("svg", "png") for path in TOP.glob(f"*/*.{kind}")]


def main(folder: Path) -> int:
    """Gather the pages in a folder and build the site beside them."""
    pages = folder / "pages"
    pages.mkdir(parents=True, exist_ok=True)
    for source, name in PAGES.items():
        pages.joinpath(name).write_text(with_links_of_the_site(source, markdown(source, pages)))
    pages.joinpath("metrics").mkdir(exist_ok=True)
    for name, text in metric_pages.pages().items():
        pages.joinpath(name).write_text(text)
    index = pages / "index.md"
    for place, text in {"PICTURE\n": picture(), "CODE\n": first_code()}.items():
        index.write_text(index.read_text().replace(place, text))
    for path in [*PICTURES, HERE / "site.css"]:
        shutil.copy(path, pages)
    live_report.live_report().save(pages / "report.html", static=True)
    live_report.save_charts(pages)
    navigation = reference.write_pages(pages)
    settings = (HERE / "zensical.toml").read_text()
    for place, text in {
        'paths = ["src"]': f'paths = ["{TOP / "src"}"]',
        "    # REFERENCE\n": navigation,
        "    # METRICS\n": metric_pages.navigation(),
    }.items():
        settings = settings.replace(place, text)
    shutil.copy(HERE / "keywords.py", folder)
    folder.joinpath("zensical.toml").write_text(settings)
    for path in pages.rglob("*.md"):
        if silent := re.findall(r"!\[(?:svg|png|)\]\(.*?\)", path.read_text()):
            sys.exit(f"{path.name}: a picture without words: {silent[0]}")
    command = ["zensical", "build", "--strict", "--clean", "-f", "zensical.toml"]
    code = subprocess.run(command, cwd=folder, check=False).returncode
    reference.write_texts(pages, folder / "site")
    folder.joinpath("site", "llms.txt").write_text(reference.for_language_models(pages))
    return code


def picture() -> str:
    """Return the README's picture, on light and on dark, as a link to its report."""
    found = re.search(r'alt="(.*?)"', (TOP / "README.md").read_text())
    assert found
    both = "".join(f"![{found[1]}](report-{on}.png#only-{on})" for on in ("light", "dark"))
    return f"[{both}](report.html)\n"


def first_code() -> str:
    """Return the README's first code and what it prints."""
    found = re.search(r"```python.*?```text.*?```\n", (TOP / "README.md").read_text(), re.DOTALL)
    assert found
    return found[0]


def markdown(source: Path, pages: Path) -> str:
    """Read a page, or turn a notebook into one."""
    if source.suffix == ".md":
        return source.read_text()
    notebook = nbformat.read(source, 4)
    text, resources = MarkdownExporter().from_notebook_node(
        notebook, resources={"unique_key": source.stem, "output_files_dir": "."}
    )
    for name, picture in resources["outputs"].items():
        pages.joinpath(name).write_bytes(picture)
        text = text.replace(f"![svg]({name})", f"![{live_report.alt_of(picture.decode())}]({name})")
    return re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)


def with_links_of_the_site(source: Path, text: str) -> str:
    """Rewrite relative links to the names that the pages have on the site."""

    def rewritten(found: re.Match[str]) -> str:
        name, mark, anchor = found[2].partition("#")
        path = (source.parent / name).resolve()
        if path in PAGES:
            name = PAGES[path]
        elif path in PICTURES:
            name = path.name
        elif path.is_relative_to(TOP) and path.exists():
            name = REPOSITORY + str(path.relative_to(TOP))
        return f"{found[1]}({name}{mark}{anchor})"

    return re.sub(r"(\])\((?!https?:|#|data:)([^)\s]+)\)", rewritten, text)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
