"""How long the recipes of the notebook on pipelines are."""

import json
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "notebooks" / "9_pipelines.ipynb"
CELLS = json.loads(PAGE.read_text())["cells"]
SOURCES = ["".join(cell["source"]) for cell in CELLS]


def block(library):
    """The lines of Markdown that import a library."""
    blocks = re.findall(r"^```py\n(.*?)^```$", "\n".join(SOURCES), re.DOTALL | re.MULTILINE)
    return next(found for found in blocks if found.startswith(f"import {library}\n"))


def test_no_recipe_is_longer_than_15_lines():
    first = next(place for place, source in enumerate(SOURCES) if source.startswith("## Processes"))
    recipes = ["".join(cell["source"]) for cell in CELLS[first:-1] if cell["cell_type"] == "code"]
    recipes += [block(library) for library in ("ray", "mlflow", "wandb")]
    assert len(recipes) > 10
    lengths = [sum(bool(line.strip()) for line in recipe.splitlines()) for recipe in recipes]
    assert max(lengths) <= 15
