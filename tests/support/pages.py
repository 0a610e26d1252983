"""The pages for users: README, docs and others, and the blocks of code in them."""

import re
from typing import NamedTuple

from documents import DOCS, README

ROOT = README.parent
PAGES = (
    *(README, ROOT / "CONTRIBUTING.md", ROOT / "config" / "README.md"),
    *sorted(DOCS.glob("*.md")),
)
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
"""A block of code: its language and text."""

INDENTED = re.compile(r"(?:^    .*\n)+", re.MULTILINE)


class Block(NamedTuple):
    """A block of code: its language, `shell` where it is indented, and its text."""

    language: str
    text: str


def text_of(name):
    """The text of a page in docs."""
    return (DOCS / name).read_text(encoding="utf-8")


def code(page):
    """Every block of code of a page, fenced or indented."""
    text = page.read_text(encoding="utf-8")
    fenced = [Block(*found) for found in FENCED.findall(text)]
    indented = [
        Block("shell", re.sub(r"^    ", "", found, flags=re.MULTILINE))
        for found in INDENTED.findall(FENCED.sub("", text))
    ]
    return fenced + indented


def blocks(page, language):
    """The blocks of code of a page in a language, without their fences."""
    return [block.text for block in code(page) if block.language == language]


def every_command(page):
    """Every command of a page without its comment: indented lines, and those after `$`."""
    lines = [
        line if block.language == "shell" else line.removeprefix("$ ")
        for block in code(page)
        for line in block.text.splitlines()
        if block.language == "shell" or line.startswith("$ ")
    ]
    return [re.sub(r"\s+# .*", "", line) for line in lines]


def commands(page, program):
    """The commands of a page that start a program."""
    return [command for command in every_command(page) if f"{command} ".startswith(f"{program} ")]
