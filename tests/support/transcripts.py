"""Commands and what they print, reviewed and kept as text; `pytest --update -n 0` rewrites it."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

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
    def words(self):
        return shlex.split(self.typed)

    @property
    def next_words(self):
        return shlex.split(self.typed_next)

    def update(self, output):
        """Write another output into the file."""
        text, head = self.path.read_text(encoding="utf-8"), f"$ rooflines {self.typed}".rstrip()
        old = f"{head}\n{self.output if self.output.strip() else ''}"  # new ones have none
        self.path.write_text(text.replace(old, f"{head}\n{output}", 1), encoding="utf-8")


def asked_in(path):
    """The commands of a file, with empty lines between them."""
    found = COMMAND.findall(path.read_text(encoding="utf-8"))
    return [Asked(path, typed, output.rstrip("\n") + "\n", after) for typed, output, after in found]
