"""Cost of a process and its children: CPU time, wall time and peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).parents[1]
"""The repository."""

RUNTIME = ROOT / ".venv-run" / "bin" / "python"
"""Python with the packages of requirements/run.lock only, as users have it: Snakemake imports more
packages if they are installed. `make bench` creates it."""

ROUNDS = 2
"""Rounds of a measurement; the cheapest counts [1]."""

CORES = os.cpu_count() or 1

WATCH = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu_s, peak_mib = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
print(json.dumps([done.returncode, cpu_s, peak_mib, done.stdout]))
"""
"""Starts a command from a small process: its peak memory counts that of the one that starts it."""


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

    @property
    def numbers(self) -> dict[str, float]:
        """The cost without the output, rounded for a file."""
        return {name: round(value, 2) for name, value in asdict(self).items() if name != "said"}


def run(
    command: Sequence[str],
    threads: int = 1,
    cwd: Path = ROOT,
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
    environment = {**os.environ, "POLARS_MAX_THREADS": str(threads)}
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


def workflow(
    folder: Path, config: Mapping[str, object] | None = None, targets: Sequence[str] = ()
) -> Cost:
    """Run the workflow in a folder as a user does.

    Args:
        folder: The folder.
        config: A config; None: the default one.
        targets: Files to make; all of them where none is named.
    """
    folder.mkdir(parents=True, exist_ok=True)
    given: list[str] = []
    if config is not None:
        (folder / "bench.yaml").write_text(yaml.safe_dump(dict(config), sort_keys=False))
        given = ["--configfile", "bench.yaml"]
    words = ["--cores", str(CORES), "--snakefile", str(ROOT / "Snakefile"), *given]
    return run(["snakemake", *targets, *words], CORES, folder, RUNTIME)


def cheapest(
    names: Sequence[str], once: Callable[[str], Cost], rounds: int = ROUNDS
) -> dict[str, Cost]:
    """The cheapest of several rounds; the contenders take turns."""
    found: dict[str, list[Cost]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            found[name].append(once(name))
    return {name: min(costs, key=lambda cost: cost.cpu_s) for name, costs in found.items()}


def demand(holds: bool, what: str) -> None:  # noqa: FBT001, it is the claim
    """End the run if a result is not what it has to be.

    Args:
        holds: Whether it is.
        what: What is wrong, for the message.

    Raises:
        SystemExit: It is not.
    """
    if not holds:
        raise SystemExit(what)
