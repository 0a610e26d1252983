"""The commands of the how-to pages run, in the order of the page, in an empty folder."""

from __future__ import annotations

import shlex
from importlib import resources
from typing import TYPE_CHECKING

import pytest
from documents import DOCS
from pages import blocks, commands
from timed import timings

from rooflines.cli.main import run

if TYPE_CHECKING:
    from pathlib import Path

TIMINGS = timings({"math": 0.72, "memory": 0.86, "overhead_s": 4e-6})


@pytest.mark.parametrize("name", ["own-chip", "publish", "calibrate"])
def test_the_commands_of_a_page_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, default_results: Path
) -> None:
    """Runs of the workflow as dry runs beside other results; `make verify` has them in full.

    `rooflines measure` takes minutes: it is left to tests/verify/test_measure.py.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(default_results)
    TIMINGS.write_csv("timings.csv")
    named = [shlex.split(command)[1:] for command in commands(DOCS / f"{name}.md", "rooflines")]
    assert len(named) >= 3
    for words in named:
        if words != ["measure"]:
            assert run([*words, *(["--dry-run"] if words[0] == "run" else [])]) == 0


@pytest.mark.parametrize(("page", "example"), [("own-chip", "own-chip"), ("models", "model")])
def test_a_page_has_the_config_that_new_writes(page: str, example: str) -> None:
    """To the character."""
    written = resources.files("rooflines.cli") / "examples" / f"{example}.yaml"
    assert written.read_text("utf-8") in blocks(DOCS / f"{page}.md", "yaml")
