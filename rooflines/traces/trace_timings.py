"""Matmuls in a trace as timings: for calibrations, and beside what a calibrated library needs.

A row has the layout that `rooflines measured` reads: chip, software, dtypes, sizes, seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.lazy import pl
from rooflines.fits.timings import DTYPES, MATMUL_SIZES, MATMUL_TIMINGS
from rooflines.measured.kernel_rows import kernel_rows
from rooflines.traces.span_parts import NS_PER_S
from rooflines.traces.tensors import TensorArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rooflines.measured.catalogues import Catalogues
    from rooflines.traces.bound_times import TraceRates
    from rooflines.traces.trace_records import Call, OperatorCost

CALL = "#call"
"""Column with a call's place among those with timings."""

EAGER_SOFTWARE = "torch"
"""Software of matmuls that a framework calls; its calibration counts first."""


class LibraryTime(NamedTuple):
    """Time that a call takes with a good library, by a calibration.

    Attributes:
        seconds: Estimate [s].
        low_s, high_s: Its band, p10 and p90 [s]; None: no band.
        calibration: Chip and software whose timings it is fitted to.
    """

    seconds: float
    low_s: float | None
    high_s: float | None
    calibration: str


@dataclass(frozen=True)
class LibrarySplit:
    """Time above the bound in calls with an estimate, in two parts.

    Attributes:
        library_s: Part that a good library needs, too [s].
        run_s: Part that this run adds [s].
        calls: Calls with an estimate [1].
        kinds: Their kinds, such as `matmul` and `attention`.
        above_s: Time above the bound of all calls [s].
        calibrations: Calibrations behind the estimates.
    """

    library_s: float
    run_s: float
    calls: int
    above_s: float
    calibrations: tuple[str, ...]
    kinds: tuple[str, ...] = ("matmul",)

    @property
    def share(self) -> float:
        """Share of the time above the bound that has an estimate [1]."""
        return (self.library_s + self.run_s) / self.above_s if self.above_s else 0.0


def matmul_timings(
    calls: Iterable[Call], chip: str, source: str, software: str = EAGER_SOFTWARE
) -> pl.DataFrame:
    """Matmuls as timings, a row a call; batched ones and dtypes without a format are left out.

    Args:
        calls: Calls of a trace.
        chip: The chip's id.
        source: Name of the file.
        software: Name of the library, for calibrations.
    """
    rows = [row for _, row in _timed(calls)]
    names = {"source": source, "chip": chip, "software": software}
    schema = {name: MATMUL_TIMINGS.columns[name] for name in (*DTYPES, *MATMUL_SIZES, "seconds")}
    frame = pl.DataFrame(rows, schema=schema)
    named = [pl.lit(text).alias(name) for name, text in names.items()]
    return frame.select(*named, *schema)


def _timed(calls: Iterable[Call]) -> Iterator[tuple[Call, Mapping[str, str | int | float]]]:
    """Calls that are matmuls, each with its timing."""
    for call in calls:
        dtypes = _formats(call.cost) if call.cost is not None else None
        if dtypes is not None and call.cost is not None and call.kernel_ns:
            sizes = {name: int(call.cost.sizes[name]) for name in MATMUL_SIZES}
            yield call, {**dtypes, **sizes, "seconds": call.kernel_ns / NS_PER_S}


def _formats(cost: OperatorCost) -> dict[str, str] | None:
    """Formats in a single matmul by column; None: it is none, or a format is not known."""
    sizes = cost.sizes
    if cost.kind != "matmul" or sizes.get("batch", 1) != 1 or not {*MATMUL_SIZES} <= sizes.keys():
        return None
    stored = {role: TensorArgument((), dtype).format for role, dtype in cost.dtypes.items()}
    formats = [stored.get("x"), stored.get("w"), stored.get("out"), cost.compute]
    if cost.compute == "fp32":
        formats[-1] = "tf32"  # the faster unit, which no kernel name tells apart
    if not all(formats) or " " in str(cost.compute):
        return None
    return dict(zip(DTYPES, map(str, formats), strict=True))


def library_times(
    calls: Iterable[Call], rates: TraceRates, catalogues: Catalogues
) -> dict[int, LibraryTime]:
    """Times with a good library by the call's `id`; calls that no calibration covers have none.

    Args:
        calls: Calls of a trace.
        rates: Rates of the chip.
        catalogues: Chips, dtypes and calibrations.
    """
    timed = [*_timed(calls)]
    if not timed:
        return {}
    rows = [{**row, CALL: place} for place, (_, row) in enumerate(timed)]
    frame = pl.DataFrame(rows).with_columns(
        chip=pl.lit(rates.name),
        software=pl.col("compute").replace_strict(
            {compute: _software(rates, catalogues, compute) for compute in _computes(timed)},
            return_dtype=pl.String,
        ),
    )
    peaks = [compute for compute in frame["compute"].unique() if _has_peak(rates, compute)]
    frame = frame.filter(pl.col("compute").is_in(peaks))
    if frame.is_empty():
        return {}
    columns = [CALL, "t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s", "calibration"]
    estimated = (
        part.filter(pl.col("t_estimate_s").is_not_null()).select(columns)
        for part in kernel_rows(frame, MATMUL_TIMINGS, catalogues)
    )
    return {
        id(timed[place][0]): LibraryTime(*times)
        for part in estimated
        for place, *times in part.iter_rows()
    }


def _computes(timed: Iterable[tuple[Call, Mapping[str, str | int | float]]]) -> set[str]:
    return {str(row["compute"]) for _, row in timed}


def _has_peak(rates: TraceRates, compute: str) -> bool:
    return compute in rates.chip.units.get("matrix", {})


def _software(rates: TraceRates, catalogues: Catalogues, compute: str) -> str | None:
    """Software with a calibration: the framework's, else the first engine's; None: none has."""
    if catalogues.fits.matmul(rates.name, [EAGER_SOFTWARE], compute):
        return EAGER_SOFTWARE
    return next(iter(catalogues.fits.auto_softwares(rates.name, [compute])), None)


def library_split(
    calls: Iterable[Call], rates: TraceRates, times: Mapping[int, LibraryTime]
) -> LibrarySplit | None:
    """Time above the bound: what a good library needs, and what this run adds; None: no estimate.

    Args:
        calls: Calls of a trace.
        rates: Rates of the chip.
        times: Times with a good library, from `library_times`.
    """
    library_s = run_s = above_s = 0.0
    count, calibrations, kinds = 0, set[str](), set[str]()
    for call in calls:
        seconds = rates.seconds(call.cost) if call.cost is not None else None
        if seconds is None or seconds.network is not None:
            continue
        owned_s = call.owned_ns / NS_PER_S
        above_call_s = max(owned_s - seconds.lower, 0.0)
        above_s += above_call_s
        if id(call) in times:
            needed_s = min(max(times[id(call)].seconds - seconds.lower, 0.0), above_call_s)
            library_s += needed_s
            run_s += above_call_s - needed_s
            count += 1
            calibrations.add(times[id(call)].calibration)
            kinds.add("" if call.cost is None else call.cost.kind)
    if not count:
        return None
    names = tuple(sorted(calibrations)), tuple(sorted(kinds))
    return LibrarySplit(library_s, run_s, count, above_s, *names)
