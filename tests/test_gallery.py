"""Every notebook of the gallery runs from its first cell to its last, and shows what it showed."""

import ast
import json
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "gallery").glob("*.ipynb"))


def cells(notebook: Path) -> list[dict]:
    return json.loads(notebook.read_text())["cells"]


def test_the_gallery_has_all_its_notebooks() -> None:
    assert len(NOTEBOOKS) == 8


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(notebook: Path) -> None:
    """In this process: what a kernel adds is nothing of ours, and takes seconds."""
    mpl.use("Agg")
    space: dict = {"__name__": "__main__"}
    for number, cell in enumerate(one for one in cells(notebook) if one["cell_type"] == "code"):
        tree = ast.parse("".join(cell["source"]))
        exec(compile(tree, f"{notebook.name}, cell {number}", "exec"), space)
    plt.close("all")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_outputs_are_kept_for_the_page(notebook: Path) -> None:
    code = [cell for cell in cells(notebook) if cell["cell_type"] == "code"]
    assert any(cell["outputs"] for cell in code)
    outputs = [output for cell in code for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
