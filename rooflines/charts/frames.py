"""Columns, sizes, dtypes and shares that several kinds of charts read from a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import Mistakes, RooflinesError, check_choices
from rooflines.basics.lazy import pl
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.sweep.collective_sweep import CollectiveSweep
from rooflines.sweep.kind_sweep import KindCase, KindSweep
from rooflines.theory.network import axes_text
from rooflines.theory.resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflines.hardware.entries import Chip
    from rooflines.measured.timing_sets import TimedCase
    from rooflines.sweep.operation_sweep import OperationCase, Sweep

TIMES = {resource.bound: f"t_{resource.name}_s" for resource in RESOURCES}
"""The column of each resource's time, by the name of the bottleneck."""

BAND = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s")
"""The columns of a calibrated time and of its band."""

NOMINAL, CALIBRATED = BASES = ("nominal", "calibrated")
"""Sources of a chart's numbers: nominal rates or a calibration."""

CASE = ("chip", "software", "dtypes")
"""Columns that are constant within one picture of timings."""

NO_SOFTWARE = "software not stated"
"""Software name where timings do not state it."""

TWO = 2

MIN_CURVE_SIZES, MIN_TABLE_SIZES = 8, 3
"""Fewest sizes of an axis for a curve, and for the side of a table [1]."""


def lowest(frame: pl.DataFrame, column: str, otherwise: float = 1.0) -> float:
    """Smallest value in a column, or a default if it has none."""
    value = frame.select(pl.col(column).cast(pl.Float64).min()).item()
    return otherwise if value is None else float(value)


def highest(frame: pl.DataFrame, column: str, otherwise: float = 1.0) -> float:
    """Largest value in a column, or a default if it has none."""
    value = frame.select(pl.col(column).cast(pl.Float64).max()).item()
    return otherwise if value is None else float(value)


def with_missing(rows: pl.LazyFrame, *columns: str) -> pl.LazyFrame:
    """Add columns that a table may lack, as nulls."""
    absent = {*columns} - {*rows.collect_schema()}
    texts = {name for name in absent if name.endswith("bound")}
    return rows.with_columns(
        pl.lit(None, dtype=pl.String if name in texts else pl.Float64).alias(name)
        for name in sorted(absent)
    )


def calibrated_rates(names: Iterable[str]) -> dict[str, pl.Expr]:
    """Attained rate at each time in `BAND`: FLOPs / time [FLOP/s], by these names."""
    flops = pl.col("attained_flops_per_s") * pl.col("t_lower_s")
    return {name: flops / pl.col(time) for name, time in zip(names, BAND, strict=True)}


def has_bandwidth(entry: Chip) -> bool:
    """Check that a chip's main-memory bandwidth is known."""
    return MAIN_MEMORY in entry.memory and bool(entry.memory[MAIN_MEMORY].bytes_per_s)


def chips_with_rows(sweep: Sweep) -> list[str]:
    """Chips with rows in a sweep."""
    return list(sweep.dtypes_by_chip)


def dtypes_of(sweep: Sweep, chips: Sequence[str] = ()) -> tuple[str, ...]:
    """Dtype combinations in a sweep that all these chips support; without chips, any chip."""
    by_chip = sweep.dtypes_by_chip
    usable = set().union(*by_chip.values())
    for chip in chips:
        usable &= by_chip.get(chip, set())
    return tuple(name for name in sweep.combinations if name in usable)


def route_name(case: OperationCase) -> str | None:
    """Network of a case with its axes if there are several, as in `ici 4x4`."""
    along = f" {axes_text(case.axes)}" if len(case.axes) > 1 else ""
    return case.network and case.network + along


def shares_below_peak(sweep: Sweep) -> list[float]:
    """Shares of the peak below 1 that a sweep solves for, the largest first [1]."""
    return sorted((float(share) for share in sweep.config.shares if share < 1), reverse=True)


def at_largest(frame: pl.DataFrame, dims: Iterable[str]) -> pl.DataFrame:
    """Rows at the largest value of each fixed size."""
    for dim in dims:
        if frame[dim].n_unique() > 1:
            frame = frame.filter(pl.col(dim) == frame[dim].max())
    return frame


def fixed_text(frame: pl.DataFrame, dims: Iterable[str]) -> str:
    """Shape, or else sizes, shared by all rows, as text."""
    shape = frame["shape"].drop_nulls().unique()
    if len(shape) == 1:
        return str(shape[0])
    sizes = {dim: frame[dim].unique() for dim in dims}
    return ", ".join(f"{dim} = {values[0]:,}" for dim, values in sizes.items() if len(values) == 1)


def per_expert(layers: pl.Series) -> str:
    """Suffix of a size in titles: " per expert" if any layer belongs to experts, else ""."""
    return " per expert" if layers.cast(pl.String).str.contains("expert").any() else ""


def few_sizes(values: Sequence[int], max_count: int) -> list[int]:
    """At most `max_count` sizes: powers of two if there are any, then an even selection."""
    powers = [value for value in values if value & (value - 1) == 0]
    sizes = powers if len(powers) > 1 else list(values)
    if len(sizes) <= max_count:
        return sizes
    step = -(-len(sizes) // max_count)
    return sorted(sizes[::-1][::step])


def dimension_sizes(sweep: Sweep, dim: str) -> list[int]:
    """Sizes along a dimension, sorted."""
    return sorted({value for axis in sweep.size_axes for value in axis.columns.get(dim, ())})


def has_axis(sweep: Sweep, dim: str) -> bool:
    """Check that an axis varies this dimension alone."""
    return any(set(axis.columns) == {dim} for axis in sweep.size_axes)


def sweep_axis(sweep: Sweep, *, curve: bool = False) -> str:
    """Dimension along the x axis of bottleneck tables, or of curves.

    The first dimension with its own axis, at least `MIN_CURVE_SIZES` sizes, and thresholds. If none
    has all three, the criteria count in this order; for curves thresholds count before length.
    """

    def suitability(dim: str) -> tuple[bool, ...]:
        long, solved = len(dimension_sizes(sweep, dim)) >= MIN_CURVE_SIZES, dim in sweep.solved
        return has_axis(sweep, dim), *((solved, long) if curve else (long, solved))

    return max(sweep.op.dims, key=suitability)


def matrix_dims(sweep: Sweep) -> list[str]:
    """Dimensions after the first with several sizes; both if there are just two."""
    further_dims = sweep.op.dims[1:]
    return [
        dim
        for dim in further_dims
        if len(further_dims) == TWO or len(dimension_sizes(sweep, dim)) > 1
    ]


def by_timings(timings: Any) -> list[TimedCase]:  # noqa: ANN401, of a config or joined
    """Cases in a set of timings, the most timed first."""
    return sorted(timings.cases, key=lambda case: -case.timings)


def dtypes_by_chip(source: Any) -> dict[str, set[str]]:  # noqa: ANN401, of any kind
    """Dtypes by chip in a sweep or a set of timings, the most timed first.

    For whole models only chips with a known memory capacity.
    """
    if hasattr(source, "op"):
        return dict(source.dtypes_by_chip)
    if isinstance(source, KindSweep | CollectiveSweep):
        pairs = [
            (case.chip, name)
            for case in source.cases
            for name in ([case.dtypes] if isinstance(case, KindCase) else source.combinations)
        ]
    elif hasattr(source, "blocks"):
        cases = (case for block in source.blocks for case in block.cases)
        with_capacity = (case for case in cases if case.machine.level.capacity_bytes is not None)
        pairs = list(dict.fromkeys((case.chip, case.dtypes.label) for case in with_capacity))
        pairs.sort(key=lambda pair: source.config.chips.index(pair[0]))
    else:
        pairs = [(case.chip, case.dtypes) for case in by_timings(source)]
    by_chip: dict[str, set[str]] = {}
    for chip, dtypes in pairs:
        by_chip.setdefault(chip, set()).add(dtypes)
    return by_chip


def able_chips(source: Any, chips: Sequence[str], dtypes: str) -> list[str]:  # noqa: ANN401
    """Chips that support a dtype combination."""
    by_chip = dtypes_by_chip(source)
    return [chip for chip in chips if dtypes in by_chip.get(chip, ())]


def check_shown(source: Any, chips: Sequence[str], dtypes: Sequence[str]) -> None:  # noqa: ANN401
    """Refuse chips and dtypes that a sweep or a set of timings lacks.

    Raises:
        RooflinesError: Some are missing, or no chip supports any of the dtypes.
    """
    offered = dtypes_by_chip(source)
    with Mistakes() as mistakes:
        with mistakes.at("chips"):
            check_choices(chips, list(offered), f"no chip of {source.name}")
        with mistakes.at("dtypes"):
            offered_dtypes = sorted(set().union(*offered.values()))
            check_choices(dtypes, offered_dtypes, f"no dtypes of {source.name}")
    if not any(offered[chip] & {*dtypes} for chip in chips):
        names, combinations = ", ".join(chips) or "no chip", ", ".join(dtypes) or "none"
        problem = f"are {combinations}, of which {names} can do none"
        fix = "name a dtype combination that one of the chips can do"
        raise RooflinesError("dtypes", problem, fix)


def bases_of(sweep: Sweep, chip: str, dtypes: str) -> tuple[str, ...]:
    """Bases for a chip's numbers: nominal, and calibrated if a fit exists and nothing is tiled."""
    blocks = [blocks for blocks in sweep.blocks if blocks.place.chip == chip][:1]
    fitted = not sweep.tile and any(
        case.dtypes == dtypes and case.estimate is not None
        for block in blocks
        for case in block.cases
    )
    return BASES if fitted else (NOMINAL,)
