"""Wall times of the tutorial: its indented commands, unchanged, in a fresh clone.

They run in one shell and without pip's cache; packages are downloaded.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from itertools import pairwise
from typing import TYPE_CHECKING

from benchmarks.measure import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "tutorial.md"
CLONE = "Clone"
"""The step before those of the page."""


def steps(page: str) -> dict[str, str]:
    """The commands of each section, those that have any; screens are no commands."""
    text = re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)
    _, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    titled = (
        (text.partition("\n")[0], re.findall(r"^ {4}(.+)$", text, re.MULTILINE))
        for text in sections
    )
    return {title: "\n".join(commands) for title, commands in titled if commands}


def first_steps(folder: Path) -> dict[str, float]:
    """Seconds of each step [s].

    Args:
        folder: An empty folder.

    Raises:
        SystemExit: A command fails; the message is what was printed.
    """
    commands = steps(PAGE.read_text(encoding="utf-8"))
    ends = folder / "ends"
    script = "\n".join(
        f"{text}\necho $EPOCHREALTIME >> {ends}"
        for text in (f"git clone --quiet {ROOT} clone; cd clone", *commands.values())
    )
    environment = {**os.environ, "PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    started_s = time.time()
    done = subprocess.run(  # noqa: S603, the page's own commands
        ["/bin/bash", "-e", "-c", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stdout)
    stops = [started_s, *map(float, ends.read_text(encoding="utf-8").split())]
    seconds = (round(end - start, 1) for start, end in pairwise(stops))
    return dict(zip((CLONE, *commands), seconds, strict=True))
