"""Cost of a process and its children: CPU time, wall time and peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WATCH = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu_s, peak_mib = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
print(json.dumps([done.returncode, cpu_s, peak_mib, done.stdout]))
"""

RUNTIME = Path(__file__).parent.parent / ".venv-run" / "bin" / "python"
"""Python with the packages of requirements/run.lock only, as users have it: Snakemake imports numpy
and pandas if they are installed. `make bench` creates it."""


@dataclass(frozen=True)
class Cost:
    """Cost of a process.

    Attributes:
        cpu_s: User and system time, children included [s].
        wall_s: Wall time [s].
        peak_mib: Largest resident memory of any of its processes [MiB].
        said: Its output.
    """

    cpu_s: float
    wall_s: float
    peak_mib: float
    said: str


def run(
    command: Sequence[str],
    threads: int = 1,
    cwd: Path | None = None,
    python: str | Path = sys.executable,
) -> Cost:
    """Run a Python module with arguments to its end.

    Args:
        command: The module and its arguments.
        threads: Threads of polars [1].
        cwd: The folder to run in.
        python: The interpreter, such as `RUNTIME`.

    Raises:
        SystemExit: It fails; the message is what it printed.
    """
    environment = {**os.environ, "POLARS_MAX_THREADS": str(threads), "BENCH_THREADS": str(threads)}
    watched = [sys.executable, "-c", WATCH, str(python), "-m", *command]
    started_s = time.monotonic()
    done = subprocess.run(  # noqa: S603
        watched, cwd=cwd, env=environment, capture_output=True, text=True, check=True
    )
    wall_s = time.monotonic() - started_s
    status, cpu_s, peak_mib, said = json.loads(done.stdout)
    if status:
        raise SystemExit(f"{' '.join(command)} failed:\n{said}")
    return Cost(cpu_s, wall_s, peak_mib, said)
