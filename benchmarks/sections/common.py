"""What sections share: runs of contenders and of the workflow, and the check of a claim."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from benchmarks.measure import RUNTIME, Cost, run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).parents[2]
"""The repository."""

ROUNDS = 2
"""Rounds of a measurement; the cheapest counts [1]."""

EXACTLY = 1e-12
"""Largest relative difference of values that count as equal [1]."""

CHIPS = 40
"""Chips of a large sweep [1]."""

OTHER_JOBS = 3
"""Jobs besides those of parts: thresholds, what is skipped, and the index [1]."""

WRITER = "polars' Parquet writer, see section 3"
STARTS = "starts of processes, see section 4"
"""What stands in the way of goals."""


def rounds(
    names: Sequence[str], once: Callable[[str], Cost], number: int = ROUNDS
) -> dict[str, Cost]:
    """The cheapest of several rounds; the contenders take turns."""
    found: dict[str, list[Cost]] = {name: [] for name in names}
    for _ in range(number):
        for name in names:
            found[name].append(once(name))
    return {name: min(costs, key=lambda cost: cost.cpu_s) for name, costs in found.items()}


def demand(holds: bool, what: str) -> None:  # noqa: FBT001, it is the claim
    """End the run if two results differ.

    Args:
        holds: Whether they are equal.
        what: The results, for the message.

    Raises:
        SystemExit: They differ.
    """
    if not holds:
        raise SystemExit(f"the contenders differ: {what}")


def write(folder: Path, given: Mapping[str, Any]) -> Path:
    """Write a config into a folder, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.yaml").write_text(yaml.safe_dump(dict(given), sort_keys=False))
    return folder


def workflow(folder: Path, cores: int) -> Cost:
    """Run the workflow as a user does, without the site."""
    targets = ("results/tables/index.csv", "results/thresholds.parquet", "results/skipped.csv")
    arguments = [
        "snakemake",
        *targets,
        "--cores",
        str(cores),
        "--snakefile",
        str(ROOT / "Snakefile"),
        "--configfile",
        "bench.yaml",
    ]
    return run(arguments, cores, folder, RUNTIME)
