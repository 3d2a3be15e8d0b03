"""The notebook runs, a cell after the other, and draws what it says.

$INLAY_FIGURES: a folder for its figures as PNG, to look at.
"""
from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import matplotlib  # type: ignore[import]
import pytest

from conftest import BARD, BUILD, ROOT

NOTEBOOK = ROOT / "python/figures.ipynb"


def run(notebook: dict[str, Any], names: dict[str, Any], folder: Path) -> list[Any]:
    """Runs the code cells; the figures that they have drawn, each stored in the folder."""
    import matplotlib.pyplot as plt  # type: ignore[import]

    figures: list[Any] = []
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
        for drawn in map(plt.figure, plt.get_fignums()):
            drawn.savefig(folder / f"figure-{len(figures) + 1}.png")
            figures.append(drawn)
        plt.close("all")
    return figures


def test_notebook_draws_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib.use("Agg")
    monkeypatch.setenv("INLAY_PROGRAM", str(BUILD / "inlay"))
    if "INLAY_FIGURES_MODEL" not in os.environ:
        monkeypatch.setenv("INLAY_FIGURES_MODEL", str(BARD))
    folder = Path(os.environ.get("INLAY_FIGURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    names: dict[str, Any] = {}
    with matplotlib.rc_context():
        figures = run(json.loads(NOTEBOOK.read_text()), names, folder)
    assert len(figures) == 4
    for figure in figures:
        [axis] = figure.axes
        assert axis.get_xlabel() and axis.get_ylabel() and axis.get_title(loc="left")
        assert axis.get_legend() is not None
        lines = [line.get_xydata() for line in axis.get_lines()]
        assert len(lines) >= 2
        for line in lines:  # all of it is to be seen
            assert len(line) > 1
            (left, right), (bottom, top) = axis.get_xlim(), axis.get_ylim()
            assert left <= line[:, 0].min() and line[:, 0].max() <= right
            assert bottom <= line[:, 1].min() and line[:, 1].max() <= top


def test_notebook_is_kept_without_outputs() -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    identifiers = [cell["id"] for cell in notebook["cells"]]
    assert len(set(identifiers)) == len(identifiers)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
    assert str(Path.home()) not in NOTEBOOK.read_text()
    assert "inlay" in sys.modules
