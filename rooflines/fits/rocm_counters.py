"""AMD profilers' counters as CSV: FLOPs, bytes and time for every kernel dispatch.

In rocprof-compute's `pmc_perf.csv` a row is a dispatch; in rocprofv3's `counter_collection.csv` a
row is one counter in a dispatch. Times are in nanoseconds.
"""

from __future__ import annotations

import csv
import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError, at_path, printable, quote
from rooflines.basics.file_kinds import FIXES
from rooflines.basics.files import READ_ERRORS, open_text
from rooflines.fits.decimal_marks import POINT, value_of
from rooflines.fits.nsight import Launch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.theory.operation import Unit

NANO = Fraction(1, 10**9)
"""Seconds per nanosecond [s]."""

LANES = 64
"""Operations per wavefront instruction [1]."""

MOPS = 512
"""Operations per count in a matrix counter [1]."""

SCALAR = re.compile(r"SQ_INSTS_VALU_(ADD|MUL|TRANS|FMA)_F(16|32|64)")
MATRIX = re.compile(r"SQ_INSTS_VALU_MFMA_MOPS_(\w+)")
MATRIX_ACTIVE = re.compile(r"SQ_INSTS_(VALU_)?MFMA(_F\d+|_BF16|_I8)?|SQ_VALU_MFMA_BUSY_CYCLES")
"""Counters that are above zero where matrix units work, and do not count operations."""

DTYPES = {
    "F16": "fp16",
    "BF16": "bf16",
    "F32": "fp32",
    "XF32": "tf32",
    "F64": "fp64",
    "F8": "fp8",
    "F6F4": "fp6_fp4",
    "I8": "int8",
}
"""Dtypes in matrix operations by the end of the counter's name."""

REQUESTS = ("RDREQ", "RDREQ_32B", "WRREQ", "WRREQ_64B")
"""Requests from the second-level cache to the memory: all, and those of one size."""

BLOCKS = ("TCC_EA0", "TCC_EA")
"""Prefixes in request counters' names: on MI300 and later, and on MI200."""

WIDE = "TCC_BUBBLE_sum"
"""Counter for 128-byte reads; MI200 has none."""

PMC_PERF = "pmc_perf.csv"
"""File name of rocprof-compute's counter table."""

DISPATCH = ("Process_Id", "Agent_Id", "Dispatch_Id", "Kernel_Name")
"""Columns that agree in a dispatch's rows."""

TIMES = ("Start_Timestamp", "End_Timestamp")

COLLECT = f"collect all: {FIXES['kernels']['amd'].partition(': ')[2]}"


def read_dispatches(path: str | Path) -> Iterator[Launch]:
    """Read dispatches from a rocprof-compute or rocprofv3 CSV file, in order, one by one.

    Operations: 64 per vector instruction, 128 per fused multiply-add, 512 per matrix operation as
    counted. Bytes: 32 or 64 per read, 128 per wide read, 32 or 64 per write.

    Raises:
        RooflinesError: It lacks counters, or has values that are none.

    Source: rocprof-compute, roofline metrics, arithmetic intensity at the HBM.
    """
    with at_path(file=str(path)):
        number = 0
        for number, cells in enumerate(_dispatches(Path(path)), start=1):
            where = (
                f"has counters of an AMD GPU: dispatch {number} of {quote(cells['Kernel_Name'])}"
            )
            yield _launch(cells, where)
        if not number:
            raise RooflinesError("", "has counters of no dispatch", COLLECT)


def counters_in(path: str | Path) -> Path:
    """Counter table in a rocprof-compute folder with one run; a file as it is.

    Raises:
        RooflinesError: There is none, or there are several.
    """
    folder = Path(path)
    try:
        if not folder.is_dir():
            return folder
        tables = sorted(folder.glob(PMC_PERF)) or sorted(folder.glob(f"*/{PMC_PERF}"))
    except (OSError, ValueError):
        return folder
    if len(tables) != 1:
        count = f"{len(tables)} files" if tables else "no file"
        problem = f"is a directory with {count} {PMC_PERF} of rocprof-compute"
        fix = "give a file: kernels.csv of Nsight Compute, or pmc_perf.csv of rocprof-compute"
        raise RooflinesError("", problem, fix, file=printable(str(folder)))
    return tables[0]


def _dispatches(path: Path) -> Iterator[Mapping[str, str]]:
    """Cells by column for each dispatch, with its counters as columns."""
    try:
        with open_text(path) as file:
            rows = csv.reader(file)
            names: Sequence[str] = next((row for row in rows if "Kernel_Name" in row), ())
            records = (dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names))
            if "Counter_Name" not in names:
                yield from records
                return
            yield from _by_dispatch(records)
    except READ_ERRORS as error:
        problem = f"cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}"
        raise RooflinesError("", problem, "give the path of a CSV file") from None
    except csv.Error as error:
        raise RooflinesError("", f"is no CSV: {error}", COLLECT) from None


def _by_dispatch(rows: Iterable[Mapping[str, str]]) -> Iterable[Mapping[str, str]]:
    """Join rows with a counter each by dispatch; a dispatch's rows may stand apart."""
    dispatches: dict[tuple[str | None, ...], dict[str, str]] = {}
    for row in rows:
        key = tuple(row.get(name) for name in DISPATCH)
        if key not in dispatches:
            dispatches[key] = {name: row[name] for name in ("Kernel_Name", *TIMES) if name in row}
        dispatches[key][row["Counter_Name"]] = row["Counter_Value"]
    return dispatches.values()


def _launch(cells: Mapping[str, str], where: str) -> Launch:
    if missing := [name for name in TIMES if name not in cells]:
        raise RooflinesError("", f"{where} lacks {', '.join(missing)}", COLLECT)
    start, end = (_number(cells, name, where) for name in TIMES)
    if end <= start:
        raise RooflinesError("", f"{where} takes no time", "profile it again, or take it out")
    memory_bytes = _bytes(cells, where)
    flops: dict[tuple[Unit, str], Fraction] = {}
    for name in cells:
        if scalar := SCALAR.fullmatch(name):
            key: tuple[Unit, str] = "vector", f"fp{scalar[2]}"
            operations = LANES * (2 if scalar[1] == "FMA" else 1)
        elif matrix := MATRIX.fullmatch(name):
            key, operations = ("matrix", DTYPES.get(matrix[1], matrix[1].lower())), MOPS
        else:
            continue
        flops[key] = flops.get(key, Fraction(0)) + operations * _number(cells, name, where)
    if not any(unit == "matrix" for unit, _ in flops) and any(
        MATRIX_ACTIVE.fullmatch(name) and value_of(cell, POINT) for name, cell in cells.items()
    ):
        flops = {}  # those of the vector unit are few of them
    return Launch(cells["Kernel_Name"], "", flops, memory_bytes, (end - start) * NANO)


def _bytes(cells: Mapping[str, str], where: str) -> Fraction:
    """Bytes read from and written to the memory [byte]."""
    groups = [[f"{block}_{request}_sum" for request in REQUESTS] for block in BLOCKS]
    names = next((group for group in groups if cells.keys() >= {*group}), groups[0])
    if missing := [name for name in names if name not in cells]:
        raise RooflinesError("", f"{where} lacks {', '.join(missing)}", COLLECT)
    reads, short, writes, long = (_number(cells, name, where) for name in names)
    wide = _number(cells, WIDE, where) if WIDE in cells else Fraction(0)
    return 128 * wide + 64 * (reads - wide - short) + 32 * short + 32 * (writes - long) + 64 * long


def _number(cells: Mapping[str, str], name: str, where: str) -> Fraction:
    """Value in a cell."""
    value = value_of(cells[name], POINT)
    if value is None:
        problem = f"{where} has {name} {quote(cells[name])}, which is no number"
        raise RooflinesError("", problem, "profile it again, or take it out")
    return value
