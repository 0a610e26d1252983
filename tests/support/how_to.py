"""The how-to pages: their commands, and the files that they name."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from documents import DOCS
from hf_configs import config_of
from pages import blocks, commands
from timed import timings

from rooflines.models.library import model_entries

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["HOW_TO", "arguments", "prepare"]

HOW_TO = ("first-steps", "own-chip", "own-model", "publish", "calibrate")

TIMINGS = timings({"math": 0.72, "memory": 0.86, "overhead_s": 4e-6})


def prepare(folder: Path) -> None:
    """Write the files that the pages take as given: a model, its config.json, timings."""
    TIMINGS.write_csv(folder / "timings.csv")
    (model,) = blocks(DOCS / "own-model.md", "yaml")
    (folder / "own-model.yaml").write_text(model, encoding="utf-8")
    (folder / "path/to").mkdir(parents=True)
    entry = model_entries()["llama-3.1-8b"].model_dump(exclude_none=True)
    (folder / "path/to/config.json").write_text(json.dumps(config_of(entry)), encoding="utf-8")


def arguments(page: str) -> list[list[str]]:
    """The commands of a page, in order: the words after `rooflines`.

    `rooflines measure` takes minutes and is left to tests/verify/test_measure.py.
    """
    named = [shlex.split(command)[1:] for command in commands(DOCS / f"{page}.md", "rooflines")]
    return [words for words in named if words != ["measure"]]
