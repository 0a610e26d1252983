"""What several charts share: columns, and the sizes, dtypes and shares that a sweep offers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import Mistakes, RooflinesError, check_choices
from rooflines.basics.lazy import pl
from rooflines.hardware.entries import MAIN_MEMORY
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
"""Source of a chart's numbers: nominal rates or a calibration."""

CASE = ("chip", "software", "dtypes")
"""What timings in one picture have in common."""

NO_SOFTWARE = "software not stated"
"""The software of timings that do not state it."""

TWO = 2

MIN_CURVE_SIZES, MIN_TABLE_SIZES = 8, 3
"""Fewest sizes of an axis for a curve, and for the side of a table [1]."""


def lowest(frame: pl.DataFrame, column: str, otherwise: float = 1.0) -> float:
    """The smallest value of a column, or a default if it has none."""
    value = frame.select(pl.col(column).cast(pl.Float64).min()).item()
    return otherwise if value is None else float(value)


def highest(frame: pl.DataFrame, column: str, otherwise: float = 1.0) -> float:
    """The largest value of a column, or a default if it has none."""
    value = frame.select(pl.col(column).cast(pl.Float64).max()).item()
    return otherwise if value is None else float(value)


def with_missing(rows: pl.LazyFrame, *columns: str) -> pl.LazyFrame:
    """Rows of a table with columns that it may not store, then null."""
    absent = {*columns} - {*rows.collect_schema()}
    texts = {name for name in absent if name.endswith("bound")}
    return rows.with_columns(
        pl.lit(None, dtype=pl.String if name in texts else pl.Float64).alias(name)
        for name in sorted(absent)
    )


def calibrated_rates(names: Iterable[str]) -> dict[str, pl.Expr]:
    """What is attained in each time of `BAND`, by these names [FLOP/s]."""
    flops = pl.col("attained_flops_per_s") * pl.col("t_lower_s")
    return {name: flops / pl.col(time) for name, time in zip(names, BAND, strict=True)}


def has_bandwidth(entry: Chip) -> bool:
    """Whether the catalogue has the bandwidth of a chip's main memory."""
    return MAIN_MEMORY in entry.memory and bool(entry.memory[MAIN_MEMORY].bytes_per_s)


def chips_with_rows(sweep: Sweep) -> list[str]:
    """The chips of a sweep that have rows."""
    return list(sweep.dtypes_by_chip)


def dtypes_of(sweep: Sweep, chips: Sequence[str] = ()) -> tuple[str, ...]:
    """The dtype combinations of a sweep that any, or all, of some chips can do."""
    by_chip = sweep.dtypes_by_chip
    usable = set().union(*by_chip.values())
    for chip in chips:
        usable &= by_chip.get(chip, set())
    return tuple(name for name in sweep.combinations if name in usable)


def route_name(case: OperationCase) -> str | None:
    """The network of a case as charts name it, with several axes, as in `ici 4x4`."""
    along = f" {axes_text(case.axes)}" if len(case.axes) > 1 else ""
    return case.network and case.network + along


def shares_below_peak(sweep: Sweep) -> list[float]:
    """The shares of the peak that a sweep solves for besides 1, the largest first [1]."""
    return sorted((float(share) for share in sweep.config.shares if share < 1), reverse=True)


def at_largest(frame: pl.DataFrame, dims: Iterable[str]) -> pl.DataFrame:
    """The rows at the largest of each size held fixed."""
    for dim in dims:
        if frame[dim].n_unique() > 1:
            frame = frame.filter(pl.col(dim) == frame[dim].max())
    return frame


def fixed_text(frame: pl.DataFrame, dims: Iterable[str]) -> str:
    """The shape, or else the sizes, that all rows share, in words."""
    shape = frame["shape"].drop_nulls().unique()
    if len(shape) == 1:
        return str(shape[0])
    sizes = {dim: frame[dim].unique() for dim in dims}
    return ", ".join(f"{dim} = {values[0]:,}" for dim, values in sizes.items() if len(values) == 1)


def per_expert(layers: pl.Series) -> str:
    """What titles add to a size where any layer is one of which each expert has its own."""
    return " per expert" if layers.cast(pl.String).str.contains("expert").any() else ""


def few_sizes(values: Sequence[int], max_count: int) -> list[int]:
    """Sizes of a table with few columns: powers of two first, then an even selection."""
    powers = [value for value in values if value & (value - 1) == 0]
    sizes = powers if len(powers) > 1 else list(values)
    if len(sizes) <= max_count:
        return sizes
    step = -(-len(sizes) // max_count)
    return sorted(sizes[::-1][::step])


def dimension_sizes(sweep: Sweep, dim: str) -> list[int]:
    """The sizes that a dimension takes."""
    return sorted({value for axis in sweep.size_axes for value in axis.columns.get(dim, ())})


def has_axis(sweep: Sweep, dim: str) -> bool:
    """Whether a dimension has an axis of its own."""
    return any(set(axis.columns) == {dim} for axis in sweep.size_axes)


def sweep_axis(sweep: Sweep, *, curve: bool = False) -> str:
    """The dimension that tables of bottlenecks, or curves, run over.

    The first one that has an axis of its own, a long one, and thresholds; where none has, of these
    the one with most of the three, in this order. Of curves thresholds count before length.
    """

    def suitability(dim: str) -> tuple[bool, ...]:
        long, solved = len(dimension_sizes(sweep, dim)) >= MIN_CURVE_SIZES, dim in sweep.solved
        return has_axis(sweep, dim), *((solved, long) if curve else (long, solved))

    return max(sweep.op.dims, key=suitability)


def matrix_dims(sweep: Sweep) -> list[str]:
    """The dimensions beside the first that have several sizes; all where these are two."""
    further_dims = sweep.op.dims[1:]
    return [
        dim
        for dim in further_dims
        if len(further_dims) == TWO or len(dimension_sizes(sweep, dim)) > 1
    ]


def by_timings(timings: Any) -> list[TimedCase]:  # noqa: ANN401, of a config or joined
    """The cases of a set of timings, those with most first."""
    return sorted(timings.cases, key=lambda case: -case.timings)


def dtypes_by_chip(source: Any) -> dict[str, set[str]]:  # noqa: ANN401, of any kind
    """The dtypes of each chip of a sweep or of a set of timings, those with most timings first.

    Of whole models the chips with a known memory capacity.
    """
    if hasattr(source, "op"):
        return dict(source.dtypes_by_chip)
    if hasattr(source, "blocks"):
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
    """Those of some chips that can do a dtype combination."""
    by_chip = dtypes_by_chip(source)
    return [chip for chip in chips if dtypes in by_chip.get(chip, ())]


def check_shown(source: Any, chips: Sequence[str], dtypes: Sequence[str]) -> None:  # noqa: ANN401
    """Refuse chips and dtypes that a sweep or a set of timings does not have.

    Raises:
        RooflinesError: It lacks some, or none of the chips can do any of the dtypes.
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
    """What numbers of a chip can be by; calibrated ones are of sweeps without tiles alone."""
    blocks = [blocks for blocks in sweep.blocks if blocks.place.chip == chip][:1]
    fitted = not sweep.tile and any(
        case.dtypes == dtypes and case.estimate is not None
        for block in blocks
        for case in block.cases
    )
    return BASES if fitted else (NOMINAL,)
