"""The notebooks run from the first cell to the last, and show what they keep as outputs."""

import nbformat
import pytest

from notebooks import NOTEBOOKS, executed, texts


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_its_outputs_are_current(path):
    again = executed(path)
    shown = texts(again)
    for part in ("Sources for", "shape: ("):
        assert any(part in html for html in shown)
    outputs = [output for cell in again.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not [output for output in outputs if output["output_type"] == "stream"]
    assert shown == texts(nbformat.read(path, as_version=4))
