"""One tool in a process of its own: `python -m benchmarks.contenders NAME ROWS PATH`.

Names that end in `-sums` write nothing; they print the sum of every column, to compare the formulas
alone.
"""

from __future__ import annotations

import json
import math
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.grids import config
from rooflines import load_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Contender(NamedTuple):
    """A function that writes or sums the rows of a sweep; its module is imported when it runs.

    Attributes:
        module: The module, in this package.
        function: Takes the sweep, the capacity of the memory [byte] and the path to write.
        options: Its other arguments.
    """

    module: str
    function: str
    options: Mapping[str, object] = {}


CALIBRATED = {"chips": None, "calibration": ["trtllm", "nccl"]}

CONTENDERS = {
    "rooflines-sums": Contender("package", "rooflines_sums"),
    "numpy-sums": Contender("arrays", "numpy_sums"),
    "rooflines": Contender("package", "rooflines_parquet"),
    "rooflines-lz4": Contender("package", "rooflines_parquet", {"compression": "lz4"}),
    "rooflines-core": Contender("package", "rooflines_parquet", {"columns": "core"}),
    "rooflines-core-lz4": Contender(
        "package", "rooflines_parquet", {"columns": "core", "compression": "lz4"}
    ),
    "rooflines-estimates": Contender("package", "rooflines_parquet", CALIBRATED),
    "plain": Contender("package", "rooflines_written", {"compression": "uncompressed"}),
    "lz4": Contender("package", "rooflines_written", {"compression": "lz4"}),
    "duckdb": Contender("frames", "duckdb_parquet"),
    "duckdb-lz4": Contender("frames", "duckdb_parquet", {"compression": "COMPRESSION lz4_raw"}),
    "pandas": Contender("frames", "pandas_parquet"),
    "numpy-pyarrow": Contender("arrays", "numpy_parquet"),
}


def main(name: str, rows: str, path: str) -> None:
    """Run one contender; print its sums, if any, and the CPU seconds without startup.

    A run of few rows before is part of the start: it imports what is used.
    """
    contender = CONTENDERS[name]
    module = import_module(f"benchmarks.contenders.{contender.module}")
    run: Callable[..., Mapping[str, float] | None] = getattr(module, contender.function)
    for count in (1, float(rows)):
        given = load_config(config(count))
        capacity = given.chips["chip-00"].memory["hbm"].capacity_bytes or math.inf
        started_s = time.process_time()
        sums = run(given.sweep("bench"), capacity, Path(path), **contender.options)
    print(json.dumps({"cpu_s": time.process_time() - started_s, "sums": sums}))


if __name__ == "__main__":
    main(*sys.argv[1:])
