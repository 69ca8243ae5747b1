"""Run notebooks in place, and keep what they print: ``python -m tests.run_notebooks [3 5 …]``."""

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parents[1]


def run(path: Path) -> None:
    """Run a notebook from top to bottom, with the sources of this checkout."""
    notebook = nbformat.read(path, 4)
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, resources=resources, record_timing=False).execute()
    notebook.metadata.language_info = {"name": "python"}  # the Python version is no content
    nbformat.write(notebook, path)


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = str(HERE / "src")
    for path in sorted((HERE / "notebooks").glob("*.ipynb")):
        if len(sys.argv) == 1 or path.stem.partition("_")[0] in sys.argv[1:]:
            run(path)
            sys.stdout.write(f"{path.name}\n")
