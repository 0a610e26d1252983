"""Wall times of the page "First steps": `python -m benchmarks.first_steps [--write]`.

Runs the page's commands unchanged in a fresh clone of this repository, in one shell and without
pip's cache. `--write` writes the table into the page.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.report import table

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "first-steps.md"
TIMES = re.compile(r"(?<=<!-- times -->\n).*(?=<!-- end -->)", re.DOTALL)
CLONE = "Clone"
"""The step before those of the page."""


def steps(page: str) -> dict[str, str]:
    """The commands of each section, those that have any."""
    _, *sections = re.split(r"^## ", page, flags=re.MULTILINE)
    titled = (
        (text.partition("\n")[0], re.findall(r"^ {4}(.+)$", text, re.MULTILINE))
        for text in sections
    )
    return {title: "\n".join(commands) for title, commands in titled if commands}


def measured(commands: dict[str, str], folder: Path) -> dict[str, float]:
    """Seconds from the start of the clone to the end of each step.

    Args:
        commands: Those of each step.
        folder: An empty folder.

    Raises:
        SystemExit: A command fails; the message is what was printed.
    """
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
    seconds = (float(text) - started_s for text in ends.read_text(encoding="utf-8").split())
    return dict(zip((CLONE, *commands), seconds, strict=True))


def times_of(ends: dict[str, float], load: float) -> str:
    """The table of the page.

    Args:
        ends: Seconds from the start to the end of each step.
        load: Load of the machine when it began [1].
    """
    starts = (0.0, *ends.values())
    rows = [
        (name, f"{end - start:.1f} s", f"{end:.1f} s")
        for (name, end), start in zip(ends.items(), starts, strict=False)
    ]
    cores = len(os.sched_getaffinity(0))
    note = (
        f"On {cores} cores; packages are downloaded, the clone is of a folder on the same disk. "
        f"Load of the machine when it began: {load:.1f}."
    )
    return "\n".join(table("First steps", ("step", "time", "since the start"), rows, note)[2:])


def main() -> None:
    """Measure, print, and write the page if this is wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    write = parser.parse_args().write
    page = PAGE.read_text(encoding="utf-8")
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        times = times_of(measured(steps(page), Path(folder)), load)
    if write:
        PAGE.write_text(TIMES.sub(lambda _: f"\n{times}\n", page), encoding="utf-8")


if __name__ == "__main__":
    main()
