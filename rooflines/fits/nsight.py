"""The CSV that Nsight Compute prints: FLOPs, bytes and time of every launch of a kernel.

On the page `raw` a row is a launch, and a row below the names has the units. On the page `details`
a row is one metric of a launch. Values have the marks of a locale, units have prefixes.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import dropwhile, groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError, at_path, quote
from rooflines.fits.decimal_marks import COMMA, POINT, marks_of, value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.fits.decimal_marks import Marks
    from rooflines.model.operation import Unit

DURATION, BYTES = "gpu__time_duration.sum", "dram__bytes.sum"
READ_WRITTEN = ("dram__bytes_read.sum", "dram__bytes_write.sum")
DEVICES = ("device__attribute_display_name", "CC")
"""Columns that tell devices apart: the name or, else, the compute capability."""

SCALAR = re.compile(r"sm(?:sp)?__sass_thread_inst_executed_op_([hfd])(add|mul|fma)_pred_on\.sum")
"""Instructions of threads: their format and operation; both names count the same."""

FORMATS = {"h": "fp16", "f": "fp32", "d": "fp64"}
FLOPS = {"add": 1, "mul": 1, "fma": 2}
"""Floating-point operations of an instruction [FLOP]."""

TENSOR = re.compile(
    r"sm__ops_path_tensor_(?:op_(?P<op>[a-z]+)_)?src_(?P<src>\w+?)"
    r"(?:_dst_(?P<dst>[a-z0-9]+))?(?:_sparsity_(?P<sparsity>on|off))?\.sum"
)
"""Operations of tensor cores, a multiply-add counted as two; some counters contain others."""

EXAMPLES = (
    "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
    *(f"sm__sass_thread_inst_executed_op_f{op}_pred_on.sum" for op in FLOPS),
)

LARGE = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
SMALL = {"": Fraction(1), **{p: Fraction(1, 10**n) for p, n in (("m", 3), ("u", 6), ("n", 9))}}
UNITS: Mapping[str, Mapping[str, int | Fraction]] = {
    "a time": {f"{p}{unit}": scale for unit in ("second", "s") for p, scale in SMALL.items()},
    "bytes": {f"{p}byte": scale for p, scale in LARGE.items()},
    "a count": {f"{p}{unit}": scale for unit in ("inst", "op", "") for p, scale in LARGE.items()},
}
"""Scales of units, by quantity [s, byte or 1]."""

UNSCALED = ("ns", "nsecond", "")
"""Units without a prefix in which a number of three digits, a mark and three more may be whole."""

SCOPE = re.compile(r"(?:<unnamed>|\(anonymous namespace\)|\b[A-Za-z_]\w*)::")
"""A namespace, or a class, in the name of a kernel."""

NO_VALUE = ("", "n/a", "nan")
"""Cells of a metric that was not collected."""

TELLING = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
"""A metric with a fraction, whose mark tells those of all numbers."""

EXPORT = "export it: ncu --import report.ncu-rep --csv --page raw > kernels.csv"


class MetricCell(NamedTuple):
    """A metric as it is printed, with the marks of numbers in its file; None: no number tells."""

    value: str
    unit: str
    marks: Marks | None = None


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel, or the exact sum of several.

    Attributes:
        kernel: The name of the function.
        device: The device that ran it, by name or compute capability; empty if not printed.
        flops: Operations by unit and dtype: those of the counters, such as bf16, or several joined
            by `_` where a counter does not tell them apart [FLOP].
        memory_bytes: Bytes read from and written to the main memory [byte].
        seconds: Its time [s].
        count: Launches that it is the sum of [1].
    """

    kernel: str
    device: str
    flops: Mapping[tuple[Unit, str], Fraction]
    memory_bytes: Fraction
    seconds: Fraction
    count: int = 1

    def __add__(self, other: Launch) -> Launch:
        """The sum of launches of a kernel."""
        keys, zero = dict.fromkeys((*self.flops, *other.flops)), Fraction(0)
        flops = {key: self.flops.get(key, zero) + other.flops.get(key, zero) for key in keys}
        moved, seconds = self.memory_bytes + other.memory_bytes, self.seconds + other.seconds
        return Launch(self.kernel, self.device, flops, moved, seconds, self.count + other.count)


def read_launches(path: str | Path) -> Iterator[Launch]:
    """The launches of a CSV file of Nsight Compute, in order, read one by one.

    Args:
        path: What `ncu --csv` prints, of the page `raw` or `details`; lines before the names of the
            columns are skipped.

    Yields:
        The launches.

    Raises:
        RooflinesError: It is no such file, lacks counters, has unknown units or a time of zero, or
            is of several kinds of devices.

    Source of the weights of FLOPs: Yang, Kurth and Williams, Hierarchical Roofline analysis for
        GPUs, section III; counters of tensor cores as NVIDIA defines them.
    """
    devices = set()
    with at_path(file=str(path)):
        marks = marks_of(cell[:2] for _, _, each in _found(Path(path)) for cell in each.values())
        found = _found(Path(path))
        for number, (kernel, device, printed) in enumerate(found, start=1):
            metrics = {name: cell._replace(marks=marks) for name, cell in printed.items()}
            devices.add(device)
            yield _launch(kernel, device, metrics, f"launch {number} of {quote(kernel)}")
        if not devices:
            raise RooflinesError("", "has no launches of kernels", EXPORT)
        if len(devices) > 1:
            problem = f"is of several kinds of devices: {', '.join(sorted(devices))}"
            raise RooflinesError("", problem, "give a file for each, from ncu --devices")


def _found(path: Path) -> Iterator[Found]:
    """The launches of a file, as printed."""
    rows = _rows(path)
    names = next(rows)
    return _long(names, rows) if "Metric Name" in names else _wide(names, rows)


def _rows(path: Path) -> Iterator[list[str]]:
    """The names of the columns, then the cells of the rows."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = dropwhile(lambda line: not line.startswith(('"ID",', "ID,")), file)
            rows = csv.reader(line for line in lines if not line.startswith("=="))
            names = next(rows, None)
            if names is None:
                raise RooflinesError("", "is no CSV of Nsight Compute: no column ID", EXPORT)
            if "Kernel Name" not in names:
                raise RooflinesError("", "has no column Kernel Name", EXPORT)
            yield names
            for row in rows:
                if len(row) == len(names):  # others are text of the program
                    yield row
                elif row and row[0].isdigit():
                    problem = f"has {len(names)} columns, and launch {row[0]} has {len(row)}"
                    raise RooflinesError("", problem, EXPORT)
    except (OSError, UnicodeDecodeError) as error:
        problem = f"cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}"
        raise RooflinesError("", problem, "give the path of a CSV file") from None
    except csv.Error as error:
        raise RooflinesError("", f"is no CSV: {error}", EXPORT) from None


Found = tuple[str, str, "Mapping[str, MetricCell]"]
"""The kernel, the device and the metrics of a launch."""


def _wide(names: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[Found]:
    """The launches of the page `raw`: a row each, below a row of units."""
    units = next(rows, None)
    if units and units[0]:
        raise RooflinesError("", "has no row of units below the names", EXPORT)
    for row in rows:
        cells = dict(zip(names, row, strict=True))
        metrics = {n: MetricCell(v, u) for n, v, u in zip(names, row, units or (), strict=True)}
        yield cells["Kernel Name"], _device(cells), metrics


def _long(names: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[Found]:
    """The launches of the page `details`: a row for each metric, those of a launch together."""
    every = (dict(zip(names, row, strict=True)) for row in rows)
    for _, own in groupby(every, lambda cells: (cells.get("Process ID", ""), cells["ID"])):
        launch = list(own)
        metrics = {
            c["Metric Name"]: MetricCell(c["Metric Value"], c["Metric Unit"]) for c in launch
        }
        yield launch[0]["Kernel Name"], _device(launch[0]), metrics


def _device(cells: Mapping[str, str]) -> str:
    return next((cells[name] for name in DEVICES if cells.get(name)), "")


def _launch(kernel: str, device: str, metrics: Mapping[str, MetricCell], where: str) -> Launch:
    known = {name: cell for name, cell in metrics.items() if cell.value not in NO_VALUE}
    of_bytes = [BYTES] if BYTES in known and not set(READ_WRITTEN) <= known.keys() else READ_WRITTEN
    missing = [name for name in (DURATION, *of_bytes) if name not in known]
    flops = _flops(known, where)
    if missing or not flops:
        what = ", ".join(missing) or "no counter of operations"
        wanted = ",".join(missing or EXAMPLES)
        problem = f"lacks {what}" if missing else "has no counter of operations"
        raise RooflinesError(where, problem, f"collect it: ncu --metrics {wanted}")
    seconds = _quantity(known, DURATION, "a time", where)
    if seconds == 0:
        raise RooflinesError(where, "takes no time", "profile it again, or take it out")
    moved = sum((_quantity(known, name, "bytes", where) for name in of_bytes), Fraction(0))
    return Launch(kernel, device, flops, moved, seconds)


def _quantity(metrics: Mapping[str, MetricCell], name: str, kind: str, where: str) -> Fraction:
    """The value of a metric [s, byte or 1].

    Raises:
        RooflinesError: It is no number, or its unit is another one.
    """
    cell = metrics[name]
    value = value_of(cell.value, cell.marks or POINT)
    if cell.marks is None and cell.unit in UNSCALED and COMMA.whole.fullmatch(cell.value):
        thousands = cell.value.replace(COMMA.thousands, POINT.thousands)
        problem = f"has {name} {quote(cell.value)} {cell.unit}".rstrip()
        problem += f", which is {thousands} where the point separates thousands, as in some locales"
        fix = f"print it with LC_ALL=C, or with another metric, such as {TELLING}"
        raise RooflinesError(where, problem, fix)
    if value is None:
        fix = "print it with LC_ALL=C, or collect it again"
        raise RooflinesError(where, f"has {name} {quote(cell.value)}, which is no number", fix)
    if cell.unit not in UNITS[kind]:
        problem = f"has {name} in {quote(cell.unit)}, which is no unit of {kind}"
        known = ", ".join(unit for unit in UNITS[kind] if unit)
        raise RooflinesError(where, problem, f"print one of {known}: ncu --print-units base")
    return value * UNITS[kind][cell.unit]


def short_name(kernel: str) -> str:
    """The name of a kernel without its return type, namespaces and parameters.

    Names of templates have hundreds of characters: the function and the first arguments of a
    template tell them apart.
    """
    depth = 0
    name = SCOPE.sub("", kernel.removeprefix("void "))
    for index, mark in enumerate(name):
        if mark == "(" and not depth and index:
            return name[:index]
        depth += {"<": 1, ">": -1}.get(mark, 0)
    return name


# ---------------------------------------------------------------- operations


def _flops(metrics: Mapping[str, MetricCell], where: str) -> dict[tuple[Unit, str], Fraction]:
    """Operations by unit and dtype [FLOP]."""
    totals: dict[tuple[Unit, str], Fraction] = {}
    scalars = {match.groups(): name for name in metrics if (match := SCALAR.fullmatch(name))}
    for (form, operation), name in scalars.items():
        key: tuple[Unit, str] = "vector", FORMATS[form]
        count = _quantity(metrics, name, "a count", where) * FLOPS[operation]
        totals[key] = totals.get(key, Fraction(0)) + count
    for name, source in _tensor_counters(metrics).items():
        key = "matrix", source
        count = _quantity(metrics, name, "a count", where)
        totals[key] = totals.get(key, Fraction(0)) + count
    return totals


def _tensor_counters(names: Iterable[str]) -> dict[str, str]:
    """Counters of tensor cores with their source dtypes, without those that others contain."""
    parsed = {name: match for name in names if (match := TENSOR.fullmatch(name))}
    return {
        name: match["src"]
        for name, match in parsed.items()
        if not any(_contains(other, match) for other in parsed.values() if other is not match)
    }


def _contains(one: re.Match[str], other: re.Match[str]) -> bool:
    """Whether a counter counts all that another one does."""
    same = all(one[key] in (None, other[key]) for key in ("op", "dst", "sparsity"))
    return same and set(other["src"].split("_")) <= set(one["src"].split("_"))
