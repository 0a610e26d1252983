"""The example of docs/own-sweep.md, with its charts and its site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from example import example

from rooflines.results.provenance import check_results

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Snakemake


def test_the_example_config_makes_everything(
    tmp_path: Path, repository: Path, snakemake: Snakemake
) -> None:
    """The command as printed draws the charts of `auto` and writes the site."""
    run = snakemake(*example(tmp_path, repository), cwd=tmp_path)
    assert run.returncode == 0, run.stdout
    results = tmp_path / "elsewhere" / "results"
    assert (results / "bundle" / "index.html").is_file()
    assert len(list((results / "charts").glob("*/*.svg"))) > 5
    assert [(path, fault) for path, fault in check_results(results) if fault] == []
