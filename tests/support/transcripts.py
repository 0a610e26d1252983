"""Commands and what they print, reviewed and kept as text; `pytest --update -n 0` rewrites it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

CASES = Path(__file__).parents[1] / "cases"

COMMAND = re.compile(
    r"^\$ rooflines ?(.*)\n((?:(?!\$ |> ).*\n)*)(?:> rooflines (.*)\n)?", re.MULTILINE
)
"""A command, its output, and the command that a reader types next."""


@dataclass(frozen=True)
class Asked:
    """A command as its words, its output, and the words of the command that follows."""

    path: Path
    typed: str
    output: str
    typed_next: str = ""

    @property
    def words(self) -> list[str]:
        return shlex.split(self.typed)

    @property
    def next_words(self) -> list[str]:
        return shlex.split(self.typed_next)

    def update(self, output: str) -> None:
        """Write another output into the file."""
        text, head = self.path.read_text(encoding="utf-8"), f"$ rooflines {self.typed}".rstrip()
        old = f"{head}\n{self.output}"
        self.path.write_text(text.replace(old, f"{head}\n{output}", 1), encoding="utf-8")


def asked_in(path: Path) -> list[Asked]:
    """The commands of a file, with empty lines between them."""
    found = COMMAND.findall(path.read_text(encoding="utf-8"))
    return [Asked(path, typed, output.rstrip("\n") + "\n", after) for typed, output, after in found]
