"""The commands of the how-to pages run, in the order of the page."""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING

import pytest
from documents import DOCS
from how_to import HOW_TO, arguments, prepare
from pages import blocks

from benchmarks.first_steps import CLONE, PAGE, TIMES, steps
from rooflines.cli.main import run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("page", HOW_TO)
def test_the_commands_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, default_results: Path
) -> None:
    """Runs of the workflow are dry runs, beside other results; `make verify` has them in full."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(default_results)
    prepare(tmp_path)
    assert len(arguments(page)) >= 2
    for words in arguments(page):
        assert run([*words, *(["--dry-run"] if words[0] == "run" else [])]) == 0, words


@pytest.mark.parametrize(("page", "example"), [("own-chip", "own-chip"), ("models", "model")])
def test_a_page_has_the_config_that_new_writes(page: str, example: str) -> None:
    """To the character."""
    written = resources.files("rooflines.cli") / "examples" / f"{example}.yaml"
    assert written.read_text("utf-8") in blocks(DOCS / f"{page}.md", "yaml")


def test_every_step_of_the_first_ones_is_timed() -> None:
    """The table has the clone and each section with commands, and it adds up."""
    page = PAGE.read_text("utf-8")
    table = TIMES.search(page)
    assert table
    rows = re.findall(r"^\| (.+) \| ([\d.]+) s \| ([\d.]+) s \|$", table[0], re.MULTILINE)
    assert [name for name, _, _ in rows] == [CLONE, *steps(page)]
    past = 0.0
    for _, seconds, end in rows:
        assert float(seconds) > 0
        assert float(end) - past == pytest.approx(float(seconds), abs=0.11)
        past = float(end)
