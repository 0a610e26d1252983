"""Nsight Compute's CSV: FLOPs, bytes and time for every kernel launch.

On the page `raw` a row is a launch, and a row below the names has the units. On the page `details`
a row is one metric in a launch. Values have a locale's marks, units have prefixes.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError, at_path, printable, quote
from rooflines.basics.file_kinds import COUNTERS, FIXES
from rooflines.basics.files import READ_ERRORS, open_text
from rooflines.fits.decimal_marks import COMMA, POINT, marks_of, value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.fits.decimal_marks import Marks
    from rooflines.theory.operation import Unit

DURATION, BYTES = "gpu__time_duration.sum", "dram__bytes.sum"
READ_WRITTEN = ("dram__bytes_read.sum", "dram__bytes_write.sum")
PER_SECOND, PER_CYCLE = ".per_second", ".per_cycle_elapsed"
"""Endings in the names of rate metrics."""

BYTES_COUNTERS = (
    READ_WRITTEN,
    (BYTES,),
    tuple(f"{name}{PER_SECOND}" for name in READ_WRITTEN),
    (f"{BYTES}{PER_SECOND}",),
)
"""Metrics that have all memory bytes, in order of preference."""

LABELS = {"Duration": DURATION, "Memory Throughput": f"{BYTES}{PER_SECOND}"}
"""Metrics by their labels on the page `details`; in percent they are shares of a peak."""

LAUNCH_KEYS = ("ID", "Process ID", "Kernel Name")
"""Columns that agree in a launch's rows."""

TENSOR_ACTIVE = re.compile(r"sm(?:sp)?__(inst_executed_)?pipe_(tensor|tc)(_\w+)?\.\w+(\.\w+)?")
"""Metrics that are above zero where tensor cores work; they do not count operations."""

DEVICES = ("device__attribute_display_name", "CC")
"""Columns that tell devices apart: the name or, else, the compute capability."""

SCALAR = re.compile(r"sm(?:sp)?__sass_thread_inst_executed_op_([hfd])(add|mul|fma)_pred_on\.sum")
"""Thread instructions: their format and operation; both names count the same."""

FORMATS = {"h": "fp16", "f": "fp32", "d": "fp64"}
FLOPS = {"add": 1, "mul": 1, "fma": 2}
"""Floating-point operations per instruction [FLOP]."""

DOUBLED = re.compile(r"derived__(sm(?:sp)?__sass_thread_inst_executed_op_[hfd]fma_pred_on)_x2")
"""Twice the instructions in a cycle, as a section of Nsight Compute has them."""

TENSOR = re.compile(
    r"sm__ops_path_tensor_(?:op_(?P<op>[a-z]+)_)?src_(?P<src>\w+?)"
    r"(?:_dst_(?P<dst>[a-z0-9]+))?(?:_sparsity_(?P<sparsity>on|off))?\.sum"
)
"""Tensor-core operations, a multiply-add counted as two; some counters contain others."""

EXAMPLES = (
    "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
    *(f"sm__sass_thread_inst_executed_op_f{op}_pred_on.sum" for op in FLOPS),
)

LARGE = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
SMALL = {"": Fraction(1), **{p: Fraction(1, 10**n) for p, n in (("m", 3), ("u", 6), ("n", 9))}}
COUNTED, PER = ("inst", "op", ""), ("s", "second")
UNITS: Mapping[str, Mapping[str, int | Fraction]] = {
    "a time": {f"{p}{unit}": scale for unit in ("second", "s") for p, scale in SMALL.items()},
    "bytes": {f"{p}byte": scale for p, scale in LARGE.items()},
    "a count": {f"{p}{unit}": scale for unit in (*COUNTED, "cycle") for p, scale in LARGE.items()},
    "a rate of bytes": {f"{p}byte/{s}": n for s in PER for p, n in LARGE.items()},
    "a rate of counts": {
        f"{p}{unit}/{per}": scale
        for unit in (*COUNTED, "1")
        for per in (*PER, "cycle")
        for p, scale in LARGE.items()
    },
    "a frequency": {
        f"{p}{unit}": scale
        for unit in ("hz", "Hz", *(f"cycle/{s}" for s in PER))
        for p, scale in LARGE.items()
    }
    | {f"cycle/{p}{s}": 1 / Fraction(scale) for s in PER for p, scale in SMALL.items()},
}
"""Scales of units, by quantity [s, byte, 1, byte/s, 1/s or 1 a cycle]."""

UNPREFIXED_UNITS = ("ns", "nsecond", "")
"""Units without a prefix in which a number of three digits, a mark and three more may be whole."""

SCOPE = re.compile(r"(?:<unnamed>|\(anonymous namespace\)|\b[A-Za-z_]\w*)::")
"""Namespace or class in a kernel's name."""

NO_VALUE = ("", "n/a", "nan")
"""Cells for a metric that was not collected."""

TELLING = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
"""Metric with a fraction, whose mark tells the marks in all numbers."""

EXPORT = "export it: ncu --import report.ncu-rep --csv --page raw > kernels.csv"
GENERAL = FIXES["kernels"][""]

NOTHING = "No kernels were profiled"
"""Nsight Compute's message where a program launches no kernel."""

ERROR, QUIET = "==ERROR==", ("==PROF==", "==WARNING==")
"""Line prefixes for Nsight Compute's own output: errors, and other notes."""


class MetricCell(NamedTuple):
    """Metric as printed, with its file's number marks; None: no number tells."""

    value: str
    unit: str
    marks: Marks | None = None


@dataclass(frozen=True)
class Launch:
    """Kernel launch, or the exact sum over several.

    Attributes:
        kernel: The function's name.
        device: The device that ran it, by name or compute capability; empty if not printed.
        flops: Operations by unit and dtype, such as bf16; dtypes that a counter does not tell apart
            are joined by `_` [FLOP].
        memory_bytes: Bytes read from and written to the main memory [byte].
        seconds: Its time [s].
        count: Launches in the sum [1].
    """

    kernel: str
    device: str
    flops: Mapping[tuple[Unit, str], Fraction]
    memory_bytes: Fraction
    seconds: Fraction
    count: int = 1

    def __add__(self, launch: Launch) -> Launch:
        """Add launches of one kernel."""
        keys, zero = dict.fromkeys((*self.flops, *launch.flops)), Fraction(0)
        flops = {key: self.flops.get(key, zero) + launch.flops.get(key, zero) for key in keys}
        memory_bytes = self.memory_bytes + launch.memory_bytes
        seconds, count = self.seconds + launch.seconds, self.count + launch.count
        return Launch(self.kernel, self.device, flops, memory_bytes, seconds, count)


def read_launches(path: str | Path) -> Iterator[Launch]:
    """Read launches from an Nsight Compute CSV file, in order, one by one.

    Args:
        path: Output from `ncu --csv`, page `raw` or `details`; lines before the column names are
            skipped.

    Yields:
        The launches.

    Raises:
        RooflinesError: It is no such file, lacks counters, has unknown units or zero time, or mixes
            several kinds of devices.

    Source for FLOP weights: Yang, Kurth and Williams, Hierarchical Roofline analysis for
        GPUs, section III; counters of tensor cores as NVIDIA defines them.
    """
    devices = set()
    with at_path(file=str(path)):
        cells = (
            cell for launch in _printed_launches(Path(path)) for cell in launch.metrics.values()
        )
        marks = marks_of(cell[:2] for cell in cells)
        for number, launch in enumerate(_printed_launches(Path(path)), start=1):
            metrics = {name: cell._replace(marks=marks) for name, cell in launch.metrics.items()}
            devices.add(launch.device)
            where = f"launch {number} of {quote(launch.kernel)}"
            yield _launch(launch._replace(metrics=metrics), where)
        if not devices:
            problem = "is an export of Nsight Compute and has no launches of kernels"
            raise RooflinesError("", problem, EXPORT)
        if len(devices) > 1:
            names = ", ".join(sorted(devices))
            problem = f"is an export of Nsight Compute of several kinds of devices: {names}"
            raise RooflinesError("", problem, "give a file for each, from ncu --devices")


def _printed_launches(path: Path) -> Iterator[PrintedLaunch]:
    """Launches in a file, as printed."""
    rows = _rows(path)
    names = next(rows)
    return _long(names, rows) if "Metric Name" in names else _wide(names, rows)


def _rows(path: Path) -> Iterator[list[str]]:
    """Column names, then each row's cells."""
    try:
        with open_text(path) as file:
            rows, preamble = _table(file), list[str]()
            for row in rows:
                if "Kernel Name" in row:
                    names = row
                    break
                preamble.append(",".join(row))
            else:
                raise _no_table(preamble)
            yield names
            min_cells = names.index("Metric Value") + 1 if "Metric Value" in names else len(names)
            for row in rows:
                if len(row) >= min_cells and (min_cells < len(names) or len(row) == len(names)):
                    yield row
                elif row and row[0].isdigit():
                    mismatch = f"has {len(names)} columns, and launch {row[0]} has {len(row)}"
                    problem = f"is an export of Nsight Compute that {mismatch}"
                    raise RooflinesError("", problem, EXPORT)
    except READ_ERRORS as error:
        problem = f"cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}"
        raise RooflinesError("", problem, "give the path of a CSV file") from None
    except csv.Error as error:
        raise RooflinesError("", f"is no CSV: {error}", GENERAL) from None


def _table(lines: Iterable[str]) -> Iterator[list[str]]:
    """Table rows; lines by Nsight Compute itself are rows with one cell."""
    before = (line.lstrip() for line in lines)
    return csv.reader(line for line in before if NOTHING in line or not line.startswith(QUIET))


def _no_table(lines: Sequence[str]) -> RooflinesError:
    """Refusal for a file without column names."""
    errors = [line.removeprefix(ERROR).strip() for line in lines if line.startswith(ERROR)]
    if errors:
        problem = "is the output of Nsight Compute, which profiled no kernel"
        fix = "mend what it says, and profile again: ncu --csv --page raw ./program"
        return RooflinesError("", f"{problem}: {printable(errors[0].rstrip('.'))}", fix)
    if any(NOTHING in line for line in lines):
        problem = "is the output of Nsight Compute, which profiled no kernel"
        fix = "profile a program that launches kernels: ncu --csv --page raw ./program"
        return RooflinesError("", problem, fix)
    if any(line.startswith("Section:") for line in lines):
        problem = "is the output of Nsight Compute as text"
        return RooflinesError("", problem, "print it as CSV: ncu --csv --page raw ./program")
    return RooflinesError("", "has no column Kernel Name of counted kernels", GENERAL)


class PrintedLaunch(NamedTuple):
    """Printed metrics for a launch, or the mean over several launches of a kernel.

    Attributes:
        kernel: The function's name.
        device: As in `Launch`.
        metrics: The metrics by name, averaged over the launches.
        launches: Launches in the mean [1].
    """

    kernel: str
    device: str
    metrics: Mapping[str, MetricCell]
    launches: int = 1


def _wide(names: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[PrintedLaunch]:
    """Launches on the page `raw`: a row each, below a row with units."""
    units = next(rows, None)
    if units and units[0]:
        problem = "is an export of Nsight Compute that has no row of units below the names"
        raise RooflinesError("", problem, EXPORT)
    for row in rows:
        cells = dict(zip(names, row, strict=True))
        metrics = {n: MetricCell(v, u) for n, v, u in zip(names, row, units or (), strict=True)}
        yield PrintedLaunch(cells["Kernel Name"], _device(cells), metrics)


def _long(names: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[PrintedLaunch]:
    """Launches on the page `details`: a row per metric, a launch's rows together.

    Rows with rules have no metric. A summary has the mean over a kernel's launches.
    """
    lines = (dict(zip(names, row, strict=False)) for row in rows)
    metrics: dict[str, MetricCell] = {}
    first: dict[str, str] = {}
    for cells in lines:
        name, unit = cells["Metric Name"], cells.get("Metric Unit", "")
        if not name or (name in LABELS and unit == "%"):
            continue
        is_same_launch = all(cells.get(key) == first.get(key) for key in LAUNCH_KEYS)
        if first and (not is_same_launch or ("ID" not in cells and name in metrics)):
            yield PrintedLaunch(first["Kernel Name"], _device(first), metrics, _count(first))
            metrics, first = {}, {}
        first = first or cells
        value = cells["Metric Value"] if "Metric Value" in cells else cells["Average"]
        metrics[LABELS.get(name, name)] = MetricCell(value, unit)
    if first:
        yield PrintedLaunch(first["Kernel Name"], _device(first), metrics, _count(first))


def _count(cells: Mapping[str, str]) -> int:
    """Launches that a row averages over [1]."""
    digits = re.sub(r"\D", "", cells.get("Invocations", "1"))
    return int(digits or 1)


def _device(cells: Mapping[str, str]) -> str:
    return next((cells[name] for name in DEVICES if cells.get(name)), "")


def _launch(printed: PrintedLaunch, where: str) -> Launch:
    """Launch with amounts from its metrics, direct or as rates."""
    metrics = {name: cell for name, cell in printed.metrics.items() if cell.value not in NO_VALUE}
    missing = [] if DURATION in metrics else [DURATION]
    byte_metrics = next(
        (counters for counters in BYTES_COUNTERS if set(counters) <= metrics.keys()), ()
    )
    if not byte_metrics:
        missing += [name for name in READ_WRITTEN if name not in metrics]
    if missing:
        problem = f"is an export of Nsight Compute: {where} lacks {', '.join(missing)}"
        fix = f"collect all: ncu --csv --page raw --metrics {COUNTERS} ./program > kernels.csv"
        raise RooflinesError("", problem, fix)
    where = f"is an export of Nsight Compute: {where}"
    seconds = _quantity(metrics, DURATION, "a time", where)
    if seconds == 0:
        raise RooflinesError("", f"{where} takes no time", "profile it again, or take it out")
    memory_bytes = Fraction(0)
    for name in byte_metrics:
        rate = name.endswith(PER_SECOND)
        amount = _quantity(metrics, name, "a rate of bytes" if rate else "bytes", where)
        memory_bytes += amount * seconds if rate else amount
    flops = _flops(_operations(metrics, seconds, where))
    uncounted = any(TENSOR.fullmatch(name) for name in printed.metrics.keys() - metrics.keys())
    if not any(unit == "matrix" for unit, _ in flops) and (
        uncounted or _uses_tensor_cores(metrics)
    ):
        flops = {}  # those of threads are few of them
    n = printed.launches
    total_flops = {key: count * n for key, count in flops.items()}
    return Launch(printed.kernel, printed.device, total_flops, memory_bytes * n, seconds * n, n)


def _quantity(metrics: Mapping[str, MetricCell], name: str, kind: str, where: str) -> Fraction:
    """Metric's value, in its kind's SI unit.

    Raises:
        RooflinesError: It is no number, or its unit is another one.
    """
    cell = metrics[name]
    value = value_of(cell.value, cell.marks or POINT)
    if cell.marks is None and cell.unit in UNPREFIXED_UNITS and COMMA.whole.fullmatch(cell.value):
        thousands = cell.value.replace(COMMA.thousands, POINT.thousands)
        problem = f"{where} has {name} {quote(cell.value)} {cell.unit}".rstrip()
        problem += f", which is {thousands} where the point separates thousands, as in some locales"
        fix = f"print it with LC_ALL=C, or with another metric, such as {TELLING}"
        raise RooflinesError("", problem, fix)
    if value is None:
        problem = f"{where} has {name} {quote(cell.value)}, which is no number"
        raise RooflinesError("", problem, "print it with LC_ALL=C, or collect it again")
    if cell.unit not in UNITS[kind]:
        problem = f"{where} has {name} in {quote(cell.unit)}, which is no unit of {kind}"
        units = ", ".join(unit for unit in UNITS[kind] if unit)
        raise RooflinesError("", problem, f"print one of {units}: ncu --print-units base")
    return value * UNITS[kind][cell.unit]


def short_name(kernel: str) -> str:
    """Kernel name without return type, namespaces and parameters.

    Template names have hundreds of characters: the function and the first template arguments tell
    them apart.
    """
    depth = 0
    name = SCOPE.sub("", kernel.removeprefix("void "))
    for index, mark in enumerate(name):
        if mark == "(" and not depth and index:
            return name[:index]
        depth += {"<": 1, ">": -1}.get(mark, 0)
    return name


# ---------------------------------------------------------------- operations


def _operations(
    metrics: Mapping[str, MetricCell], seconds: Fraction, where: str
) -> dict[str, Fraction]:
    """Operation counts by counter: as counted, or rate * time [1].

    A rate per cycle is multiplied by the cycles, as in Nsight Compute's rooflines.
    """
    counts: dict[str, Fraction] = {}
    for name in metrics:
        base, rate = name, ""
        if double := DOUBLED.fullmatch(name):
            base, rate = f"{double[1]}.sum", PER_CYCLE
        for end in (PER_SECOND, PER_CYCLE):
            if name.endswith(end):
                base, rate = name.removesuffix(end), end
        counter = SCALAR.fullmatch(base) or TENSOR.fullmatch(base)
        if not counter or base in counts or (rate and base in metrics):
            continue
        if not rate:
            counts[base] = _quantity(metrics, name, "a count", where)
            continue
        per = _quantity(metrics, name, "a rate of counts", where) / (2 if double else 1)
        if rate == PER_SECOND:
            counts[base] = per * seconds
        elif (cycles := _cycles(metrics, seconds, where)) is not None:
            counts[base] = per * cycles
    return counts


def _uses_tensor_cores(metrics: Mapping[str, MetricCell]) -> bool:
    """True if a metric, besides operation counters, shows that tensor cores work."""
    return any(
        TENSOR_ACTIVE.fullmatch(name) and value_of(cell.value, cell.marks or POINT)
        for name, cell in metrics.items()
    )


def _cycles(metrics: Mapping[str, MetricCell], seconds: Fraction, where: str) -> Fraction | None:
    """Cycles in a launch [1]; None: no metric has them."""
    for unit in ("smsp", "sm"):
        name = f"{unit}__cycles_elapsed.avg{PER_SECOND}"
        if name in metrics:
            return _quantity(metrics, name, "a frequency", where) * seconds
        for end in ("avg", "max"):
            if (name := f"{unit}__cycles_elapsed.{end}") in metrics:
                return _quantity(metrics, name, "a count", where)
    return None


def _flops(counts: Mapping[str, Fraction]) -> dict[tuple[Unit, str], Fraction]:
    """Operations by unit and dtype, from counts by counter [FLOP]."""
    totals: dict[tuple[Unit, str], Fraction] = {}
    scalars = {match.groups(): name for name in counts if (match := SCALAR.fullmatch(name))}
    for (form, operation), name in scalars.items():
        key: tuple[Unit, str] = "vector", FORMATS[form]
        totals[key] = totals.get(key, Fraction(0)) + counts[name] * FLOPS[operation]
    for name, source in _tensor_counters(counts).items():
        key = "matrix", source
        totals[key] = totals.get(key, Fraction(0)) + counts[name]
    return totals


def _tensor_counters(names: Iterable[str]) -> dict[str, str]:
    """Tensor-core counters with their source dtypes, without those that others contain."""
    parsed = {name: match for name in names if (match := TENSOR.fullmatch(name))}
    return {
        name: match["src"]
        for name, match in parsed.items()
        if not any(_contains(counter, match) for counter in parsed.values() if counter is not match)
    }


def _contains(outer: re.Match[str], inner: re.Match[str]) -> bool:
    """True if a counter counts all that another one does."""
    is_same_kind = all(outer[key] in (None, inner[key]) for key in ("op", "dst", "sparsity"))
    return is_same_kind and set(inner["src"].split("_")) <= set(outer["src"].split("_"))
