"""Conditions that charts have on a sweep: for `auto`, for the charts of a config, for frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rooflines.basics.errors import RooflinesError
from rooflines.catalogue.entries import MAIN_MEMORY
from rooflines.charts.chart import Need, SweepType
from rooflines.charts.offers import (
    LONG_AXIS,
    SHORT_AXIS,
    TWO,
    check_asked,
    curved_of,
    dtypes_by_chip,
    has_axis,
    lead_of,
    pair_of,
    sizes_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.charts.chart import AnyChart, Chart
    from rooflines.measured.sets import MeasuredSet
    from rooflines.serving.sweep import ModelSweep
    from rooflines.settings.charts import ChartConfig
    from rooflines.sweep.sweep import Sweep

FEW = 3
"""Examples in a message [1]."""

TableType = TypeVar("TableType", "Sweep", "ModelSweep")


def has_bandwidth(entry: Chip) -> bool:
    """Whether the catalogue has the bandwidth of a chip's main memory."""
    return MAIN_MEMORY in entry.memory and bool(entry.memory[MAIN_MEMORY].bytes_per_s)


def _chips_with(sweep: Sweep, compares: Callable[[Chip], bool] | None) -> list[str]:
    """The chips of a sweep that have rows, and the numbers that are compared."""
    chips = dict.fromkeys(chip_rows.chip for chip_rows in sweep.by_chip)
    return [chip for chip in chips if compares is None or compares(sweep.chips[chip])]


def chips_for(chart: Chart, sweep: Sweep) -> list[str]:
    """The chips of a sweep that a chart can show."""
    chips = _chips_with(sweep, chart.compares)
    if chart.only is None:
        return chips
    shown = {chip for chip, _ in chart.only(sweep)}
    return [chip for chip in chips if chip in shown]


def dtypes_for(chart: Chart, sweep: Sweep) -> list[str]:
    """The dtype combinations of a sweep that a chart can show."""
    if chart.only is None:
        return list(sweep.combinations)
    shown = {name for _, name in chart.only(sweep)}
    return [name for name in sweep.combinations if name in shown]


def further(
    chart: Chart,
    sweep: Sweep,
    config: ChartConfig,
    chips: Sequence[str],
    dtypes: Sequence[str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The chips and dtype combinations of a sweep that the site offers beside those shown.

    None where the config names some.
    """
    more_chips = [] if config.chips else chips_for(chart, sweep)
    more_dtypes = [] if config.dtypes else dtypes_for(chart, sweep)
    return (
        tuple(chip for chip in more_chips if chip not in chips),
        tuple(name for name in more_dtypes if name not in dtypes),
    )


def _by_shape(sweep: Sweep) -> bool:
    """Whether shapes set every dimension but the first, which has an axis of its own."""
    return (
        bool(sweep.config.shapes)
        and sweep.lead is not None
        and all("shape" in a.columns or a.count == 1 for a in sweep.inner)
    )


SOLVED_AXIS: Need[Sweep] = Need(
    "a dimension with an axis of its own and `thresholds`, with 1 among its `shares`",
    lambda s: has_axis(s, curved_of(s)) and curved_of(s) in s.solved and 1 in s.config.shares,
)
SOLVED_SIZES: Need[Sweep] = Need(
    f"{SHORT_AXIS} sizes of that dimension",
    lambda s: len(sizes_of(s, curved_of(s))) >= SHORT_AXIS,
    auto=True,
)
SOLVED_LEAD: Need[Sweep] = Need(
    "`thresholds` of the first dimension, with 1 among its `shares`",
    lambda s: s.op.dims[0] in s.solved and 1 in s.config.shares,
)
LONG_LEAD: Need[Sweep] = Need(
    f"{LONG_AXIS} sizes of a dimension",
    lambda s: len(sizes_of(s, lead_of(s))) >= LONG_AXIS,
    auto=True,
)
OTHER_DIMS: Need[Sweep] = Need("an operation of several dimensions", lambda s: len(s.op.dims) > 1)
TWO_OTHERS: Need[Sweep] = Need(
    "two dimensions beside the first, and one size of any further one",
    lambda s: len(pair_of(s)) == TWO,
)
BOTH_FREE: Need[Sweep] = Need(
    f"{SHORT_AXIS} sizes of two other dimensions, each on an axis of its own",
    lambda s: all(has_axis(s, dim) and len(sizes_of(s, dim)) >= SHORT_AXIS for dim in pair_of(s)),
    auto=True,
)
BY_SHAPE: Need[Sweep] = Need(
    "shapes that give every size but that of the first dimension", _by_shape
)


NO_REQUESTS: Need[ModelSweep] = Need(
    "contexts S in its grid, not `requests`", lambda s: not s.config.requests
)
MATMULS: Need[MeasuredSet] = Need(
    "timings of matmuls that the model has rows for", lambda one: bool(one.cases)
)
KNOWN_CAPACITY: Need[ModelSweep] = Need(
    "a chip with a known memory capacity", lambda s: bool(dtypes_by_chip(s))
)


def two_chips(compares: Callable[[Chip], bool], what: str) -> Need[Sweep]:
    """The need for two chips that have the numbers compared."""
    return Need(f"two chips with {what}", lambda s: len(_chips_with(s, compares)) >= TWO)


def by_chips(sweep: Sweep) -> tuple[int, ...]:
    """Sort key: matrix units first, then most chips, then named shapes."""
    chips = len({chip_rows.chip for chip_rows in sweep.by_chip})
    return sweep.unit != "matrix", -chips, not sweep.config.shapes


def by_shards(sweep: Sweep) -> tuple[int, ...]:
    """Sort key: most numbers of chips first, then named shapes."""
    return -len(sweep.counts), not sweep.config.shapes


def lacking(chart: AnyChart[SweepType], sweep: SweepType, *, auto: bool = False) -> str | None:
    """What a sweep lacks for a chart, as a message names it after "needs"; None if nothing.

    Args:
        chart: The chart.
        sweep: Its sweep.
        auto: Whether `auto` asks: then the chart has to show something, too.
    """
    unmet = (need for need in chart.needs if not need.met(sweep) and (auto or not need.auto))
    return next((need.what for need in unmet), None)


def absent(chart: AnyChart[TableType], sweep: TableType) -> list[str]:
    """The columns that a chart reads and the sweep does not store."""
    stored = sweep.config.columns
    return [name for name in chart.reads if isinstance(stored, list) and name not in stored]


def check_suits(chart: AnyChart[TableType], sweep: TableType) -> None:
    """Refuse a chart of a config whose sweep lacks what it needs, or does not store what it reads.

    Raises:
        RooflinesError: The sweep lacks something.
    """
    if what := lacking(chart, sweep):
        raise RooflinesError(
            "chart",
            f"is {chart.name}, which needs {what}; sweep {sweep.name} lacks that",
            "choose another sweep or chart, or give the sweep what it needs",
        )
    if missing := absent(chart, sweep):
        raise RooflinesError(
            "chart",
            f"is {chart.name}, which reads columns that sweep {sweep.name} does not store",
            f"add {', '.join(missing)} to the sweep's `columns`",
        )


def check_needs(chart: AnyChart[SweepType], sweep: SweepType, key: str = "sweeps") -> None:
    """Refuse a chart of a sweep that lacks what it needs.

    Args:
        chart: The chart.
        sweep: Its sweep.
        key: The key of a config that the sweep stands under.

    Raises:
        RooflinesError: The sweep lacks something.
    """
    if what := lacking(chart, sweep):
        raise RooflinesError(
            f"{key}.{sweep.name}",
            f"has no chart {chart.name}, which needs {what}",
            "choose another sweep or chart",
        )


def check_shown(chart: Chart, sweep: Sweep, chips: Sequence[str], dtypes: Sequence[str]) -> None:
    """Refuse chips and dtypes of a sweep of which a chart shows none.

    Raises:
        RooflinesError: It shows none of them.
    """
    if chart.only is None:
        return
    shown = chart.only(sweep)
    if not {(chip, name) for chip in chips for name in dtypes} & set(shown):
        pairs = ", ".join(f"{name} of {chip}" for chip, name in sorted(shown)[:FEW])
        raise RooflinesError(
            "dtypes",
            f"are {', '.join(dtypes) or 'none'}, of which {chart.name} shows none of "
            f"{', '.join(chips)}",
            f"choose others, such as {pairs}",
        )


def need(chart: Chart, sweep: Sweep, **asked: str | Sequence[Any] | None) -> None:
    """Refuse a chart of a sweep that lacks what it needs, or has no such choice.

    Args:
        chart: The chart.
        sweep: Its sweep.
        asked: As in `check_asked`.

    Raises:
        RooflinesError: The sweep lacks something.
    """
    check_needs(chart, sweep)
    check_asked(sweep, **asked)
