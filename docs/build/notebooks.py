"""Run the notebooks and keep their outputs; charts as pictures, since pages run no scripts."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))

PICTURES = "import altair; altair.renderers.enable('png', scale_factor=1)"
"""Run before the first cell, and not kept."""

KEPT = ("text/html", "image/png", "text/plain")
"""Forms of an output that are kept, the first that it has."""


def executed(path: Path) -> Any:  # noqa: ANN401, a notebook of nbformat
    """A notebook with the outputs of its cells, run in an empty folder."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    notebook.cells.insert(0, nbformat.v4.new_code_cell(PICTURES))  # type: ignore[no-untyped-call]
    with TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    del notebook.cells[0]
    for count, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), 1):
        cell.execution_count = count
        cell.metadata = {}
        for output in cell.outputs:
            if "data" in output:
                form = next(form for form in KEPT if form in output.data)
                output.data, output.metadata = {form: output.data[form]}, {}
            if "execution_count" in output:
                output.execution_count = count
    return notebook


def texts(notebook: Any) -> list[str]:  # noqa: ANN401, as above
    """The tables and texts among the outputs of a notebook."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    found = [output["data"] for output in outputs if "data" in output]
    return [data[form] for data in found for form in ("text/html", "text/plain") if form in data]


def run_notebooks() -> None:
    """Write the notebooks with their outputs."""
    for path in NOTEBOOKS:
        nbformat.write(executed(path), path)  # type: ignore[no-untyped-call]
