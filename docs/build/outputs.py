"""The table of docs/results.md: what the rules of the workflow declare, and their docstrings."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

from blocks import table, with_block
from documents import ROOT

import rooflines
from rooflines.run.plan import plan

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKFLOW = ROOT / "workflow"

RULE = re.compile(r'^rule \w+:\n    """(.*?)"""\n(.*?)(?=^rule |\Z)', re.DOTALL | re.MULTILINE)
SECTION = re.compile(r"^    output:\n((?:        .*\n)+)", re.MULTILINE)
OUTPUT = re.compile(r'(directory\(f?)?"<results>/([^"]+)"')
RECORDS = ".made/"
WILDCARDS = str.maketrans("{}", "<>")

OF_EVERY_FILE = (
    ("`logs/`", "the log of every job"),
    (
        f"`{RECORDS}`",
        "the provenance record and digest of every file, and the config file of all",
    ),
)
"""Further outputs of every rule."""


def declared() -> Iterator[tuple[list[str], str]]:
    """The outputs of each rule below the results, and the first paragraph of its docstring.

    Those of files with a rule of the plan come last.
    """
    main = (WORKFLOW / "Snakefile").read_text(encoding="utf-8")
    for path in re.findall(r'^include: "(.*)"', main, re.MULTILINE):
        for docstring, body in RULE.findall((WORKFLOW / path).read_text(encoding="utf-8")):
            (section,) = SECTION.findall(body)
            outputs = [
                name.translate(WILDCARDS) + ("/" if folder else "")
                for folder, name in OUTPUT.findall(section)
            ]
            paragraph = inspect.cleandoc(docstring).partition("\n\n")[0]
            yield outputs, " ".join(paragraph.split())
    yield from (([file.path], file.meaning) for file in plan(rooflines.load_config()).files)


def with_outputs(page: str) -> str:
    """The page with the current table between its markers."""
    rows = [
        (", ".join(f"`{name}`" for name in outputs), meaning[0].lower() + meaning[1:].rstrip("."))
        for outputs, meaning in declared()
        if not outputs[0].startswith(RECORDS)
    ]
    head = ("in `results/`", "content")
    return with_block(page, "outputs", table(head, [*rows, *OF_EVERY_FILE]))
