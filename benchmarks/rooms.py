"""Rooms that a number passes: `python -m benchmarks.rooms [--walk]`.

Counts the package's functions that a second call enters, comprehensions apart, and their modules.
The first call fills memos; what the second one passes is what a reader follows to see how a number
is computed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import rooflines

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

PACKAGE = Path(rooflines.__file__).parent

SIZES = {"B": 64, "D": 4096, "F": 4096}

MATMUL = {"operation": "matmul", "chips": ["h100-sxm"], "dtypes": ["bf16"], "grid": SIZES}

STEP = {
    "models": ["llama-3.1-70b"],
    "phase": "decode",
    "chips": ["h100-sxm"],
    "dtypes": ["bf16"],
    "splits": [{"tp": 8}],
    "grid": {"B": 64, "S": 4096},
}


class Function(NamedTuple):
    """A function of the package.

    Attributes:
        module: Its file, below the package.
        name: Its qualified name.
    """

    module: str
    name: str


def functions_entered(call: Callable[[], object]) -> dict[Function, int]:
    """Functions of the package that a call enters, in order, with the number of entries [1]."""
    entries: dict[Function, int] = {}

    def count(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        path = Path(code.co_filename)
        # Comprehensions and generator expressions, but not lambdas: these are functions.
        is_comprehension = code.co_name.startswith("<") and code.co_name != "<lambda>"
        if event == "call" and not is_comprehension and path.is_relative_to(PACKAGE):
            function = Function(path.relative_to(PACKAGE).as_posix(), code.co_qualname)
            entries[function] = entries.get(function, 0) + 1

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entries


def walks() -> dict[str, dict[Function, int]]:
    """Functions that each number passes in a second call, by the number's name."""
    config = rooflines.load_config({"sweeps": {"matmul": MATMUL}, "model-sweeps": {"step": STEP}})
    calls: dict[str, Callable[[], object]] = {
        "t_memory_s of a matmul": lambda: (
            rooflines.rows(config, "matmul").select("t_memory_s").collect()
        ),
        "t_lower_s of a step": lambda: rooflines.rows(config, "step").select("t_lower_s").collect(),
        "thresholds of a matmul": lambda: rooflines.thresholds(config, "matmul"),
    }
    entered = {}
    for name, call in calls.items():
        call()
        entered[name] = functions_entered(call)
    return entered


def main() -> None:
    """Print functions and modules of each walk, and with `--walk` the functions."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rooms", description=__doc__)
    parser.add_argument("--walk", action="store_true", help="print the functions in order")
    options = parser.parse_args()
    for name, entries in walks().items():
        modules = {function.module for function in entries}
        print(f"{name}: {len(entries)} functions in {len(modules)} modules")
        if options.walk:
            for function, count in entries.items():
                print(f"  {count:5} {function.module} {function.name}")


if __name__ == "__main__":
    main()
