"""The notebooks run from the first cell to the last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nbformat
import pytest
from nbclient import NotebookClient
from pages import NOTEBOOKS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    """In an empty folder; it shows a card, tables and a chart."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    shown = [output["data"].get("text/html", "") for output in outputs if "data" in output]
    for part in ("Numbers of", "shape: (", "vegaEmbed"):
        assert any(part in html for html in shown)
    assert not [output for output in outputs if output["output_type"] == "stream"]
