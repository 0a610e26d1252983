"""Screens of pages: what the command of a block prints, cut where the page cuts it."""

from __future__ import annotations

import re
import shlex
import shutil
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory

from documents import DOCS
from example_trace import write_examples
from gallery import PROFILE

from rooflines.cli.main import run

MEASURE = DOCS / "measure.md"
TRACE = DOCS / "trace.md"

COMMAND_BLOCK = re.compile(r"^```text\n\$ rooflines ([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
"""A block with a command and its output."""

CUT = "...\n"
"""The line of a screen that stands for the lines left out."""


def with_output(page: str) -> str:
    """Page with the current output of the commands in its blocks.

    A screen that ends with `...` keeps its number of lines, a whole one has all; one with `...` in
    between is left as it is.
    """
    return COMMAND_BLOCK.sub(_current, page)


def _current(screen: re.Match[str]) -> str:
    typed, shown = screen.groups()
    head = shown.removesuffix(CUT)
    if CUT in head:
        return screen[0]
    output = printed(typed)
    if head != shown:
        kept = output.splitlines(keepends=True)[: len(head.splitlines())]
        output = "".join(kept) + CUT
    return f"```text\n$ rooflines {typed}\n{output}```"


def printed(typed: str) -> str:
    """Standard output of a command, in a folder with the profile and traces that pages name.

    Raises:
        ValueError: The command fails.
    """
    with TemporaryDirectory() as folder, chdir(folder):
        shutil.copy(PROFILE, Path("kernels.csv"))
        write_examples(Path())
        output, errors = BytesIO(), StringIO()
        screen = TextIOWrapper(output, encoding="utf-8", write_through=True)
        with redirect_stdout(screen), redirect_stderr(errors):
            status = run(shlex.split(typed))
    if status:
        raise ValueError(errors.getvalue())
    return output.getvalue().decode()
