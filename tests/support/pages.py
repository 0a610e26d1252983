"""The pages for users: README and docs, and the blocks of code in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from documents import DOCS, README

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["NOTEBOOKS", "PAGES", "blocks", "commands", "text_of"]

PAGES = (README, *sorted(DOCS.glob("*.md")))
NOTEBOOKS = sorted((README.parent / "notebooks").glob("*.ipynb"))


def text_of(name: str) -> str:
    """The text of a page in docs."""
    return (DOCS / name).read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of code of a page in a language, without their fences."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def commands(page: Path, program: str) -> list[str]:
    """The indented commands of a page that start a program, without their comments."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^    ({re.escape(program)}(?: [^#\n]*)?)", text, flags=re.MULTILINE)
