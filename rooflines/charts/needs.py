"""What a chart needs of a sweep: one list for the charts that `auto` draws, for those that a config lists, and for their frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.errors import Mistakes, RooflinesError, check_known
from rooflines.model.resources import MATH, RESOURCES
from rooflines.model.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.sweep.sweep import Sweep

__all__ = [
    "COLUMNS",
    "MAIN_MEMORY",
    "NEEDS",
    "TIMES",
    "TWO",
    "absent",
    "chips_for",
    "lacking",
    "map_dims",
    "need",
    "sizes_of",
]

MAIN_MEMORY = "hbm"
"""The memory level whose bandwidth compares chips."""

TWO = 2
LONG_AXIS, SHORT_AXIS, MAP_AXIS = 8, 3, 4
"""Sizes from which on an axis makes a curve, a series over shards, and the side of a map [1]."""


class Need(NamedTuple):
    """Something that a chart needs.

    Attributes:
        what: It, as a message names it after "needs".
        met: Whether a sweep has it.
        auto: Whether only `auto` asks for it: the chart can be drawn without it, but shows little.
    """

    what: str
    met: Callable[[Sweep], bool]
    auto: bool = False


def has_bandwidth(entry: Chip) -> bool:
    """Whether the bandwidth of a chip's main memory is known."""
    return MAIN_MEMORY in entry.memory and bool(entry.memory[MAIN_MEMORY].bytes_per_s)


COMPARED: Mapping[str, Callable[[Chip], bool]] = {
    "chips": has_bandwidth,
    "ridges": has_bandwidth,
    "per-dollar": lambda entry: has_bandwidth(entry) and bool(entry.prices),
    "per-watt": lambda entry: has_bandwidth(entry) and bool(entry.power),
}
"""What a chart that compares chips reads of each."""


def chips_for(chart: str, sweep: Sweep) -> list[str]:
    """The chips of a sweep that a chart can show: those with rows and, where it compares chips, with the numbers that it compares."""
    served = dict.fromkeys(chip_rows.chip for chip_rows in sweep.by_chip)
    return [chip for chip in served if chart not in COMPARED or COMPARED[chart](sweep.chips[chip])]


def sizes_of(sweep: Sweep, dim: str) -> list[int]:
    """The sizes that a dimension takes."""
    return sorted(
        {value for axis in (*sweep.leading, *sweep.inner) for value in axis.columns.get(dim, ())}
    )


def _free(sweep: Sweep, dim: str) -> bool:
    """Whether a dimension has an axis for itself."""
    return any(set(axis.columns) == {dim} for axis in (*sweep.leading, *sweep.inner))


def _by_shape(sweep: Sweep) -> bool:
    """Whether shapes give one size to every dimension but the first, which has its own."""
    return (
        bool(sweep.config.shapes)
        and sweep.lead is not None
        and all("shape" in a.columns or a.count == 1 for a in sweep.inner)
    )


def _tall(sweep: Sweep, up: str) -> bool:
    """Whether a bound map has some rows with this upwards."""
    return (
        len(sweep.config.shards) >= SHORT_AXIS
        if up == SHARDS
        else len(sizes_of(sweep, up)) >= MAP_AXIS
    )


def map_dims(sweep: Sweep) -> list[str]:
    """What a bound map of a sweep can have upwards, what shows most first."""
    shards = [SHARDS] if len(sweep.config.shards) > 1 else []
    return sorted(
        [*shards, *(dim for dim in sweep.op.dims[1:] if _free(sweep, dim))],
        key=lambda up: not _tall(sweep, up),
    )


def _two_chips(chart: str, what: str) -> Need:
    return Need(f"two chips with {what}", lambda s: len(chips_for(chart, s)) >= TWO)


OWN_LEAD = Need("an axis of its own for the first dimension", lambda s: _free(s, s.op.dims[0]))
SOLVED_LEAD = Need("`thresholds` of the first dimension", lambda s: s.op.dims[0] in s.solved)
LONG_LEAD = Need(
    f"{LONG_AXIS} sizes of the first dimension",
    lambda s: len(sizes_of(s, s.op.dims[0])) >= LONG_AXIS,
    auto=True,
)
OTHER_DIMS = Need("an operation of several dimensions", lambda s: len(s.op.dims) > 1)
TWO_OTHERS = Need("an operation of three dimensions", lambda s: len(s.op.dims) == 1 + TWO)
BOTH_FREE = Need(
    f"{SHORT_AXIS} sizes of each other dimension, each on an axis of its own",
    lambda s: all(_free(s, dim) and len(sizes_of(s, dim)) >= SHORT_AXIS for dim in s.op.dims[1:]),
    auto=True,
)
BY_SHAPE = Need("shapes that give every size but that of the first dimension", _by_shape)

NEEDS: Mapping[str, tuple[Need, ...]] = {
    "roofline": (
        Need(
            "the vector unit for an operation of one dimension",
            lambda s: s.op.dims != ("D",) or s.unit == "vector",
            auto=True,
        ),
    ),
    "chips": (_two_chips("chips", "a known bandwidth of the main memory"),),
    "attained": (
        OTHER_DIMS,
        OWN_LEAD,
        SOLVED_LEAD,
        LONG_LEAD,
        Need("no shapes", lambda s: not s.config.shapes, auto=True),
        Need("rows of one chip alone", lambda s: min(s.config.shards) == 1),
        Need("no other numbers of chips", lambda s: max(s.config.shards) == 1, auto=True),
    ),
    "critical": (TWO_OTHERS, SOLVED_LEAD, BOTH_FREE),
    "critical-map": (
        Need("the operation matmul", lambda s: s.op.name == "matmul"),
        Need("sizes without tiles", lambda s: not s.tile),
        SOLVED_LEAD._replace(auto=True),
        BOTH_FREE,
    ),
    "shards": (
        Need("`thresholds` of a dimension", lambda s: any(axis in s.op.dims for axis in s.solved)),
        Need("several numbers of chips in `shards`", lambda s: len(s.config.shards) > 1),
        Need(
            f"{SHORT_AXIS} numbers of chips in `shards`",
            lambda s: len(s.config.shards) >= SHORT_AXIS,
            auto=True,
        ),
    ),
    "ridges": (_two_chips("ridges", "a known bandwidth of the main memory"),),
    "layers": (
        OTHER_DIMS,
        SOLVED_LEAD,
        BY_SHAPE,
        Need("several shapes", lambda s: len(s.config.shapes or ()) > 1, auto=True),
    ),
    "per-dollar": (_two_chips("per-dollar", "a dated price"),),
    "per-watt": (_two_chips("per-watt", "a design power"),),
    "time": (BY_SHAPE,),
    "bounds": (
        Need(
            "several numbers of chips in `shards`, or another dimension with an axis of its own",
            lambda s: bool(map_dims(s)),
        ),
        LONG_LEAD,
        Need(
            f"{SHORT_AXIS} numbers of chips in `shards`, or {MAP_AXIS} sizes of another dimension",
            lambda s: any(_tall(s, up) for up in map_dims(s)),
            auto=True,
        ),
    ),
}
"""What every chart needs, most telling first."""

TIMES = {resource.bound: f"t_{resource.name}_s" for resource in RESOURCES}
"""The column of each resource's time, by what a row is called that waits for it."""

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "roofline": ("memory_intensity", "attained_flops_per_s"),
    "attained": (MATH.work, *TIMES.values()),
    "time": (*TIMES.values(), "t_lower_s", "bound"),
    "bounds": ("bound", "utilization"),
}
"""The columns of the sweep's table that a chart reads, beside the keys."""


def lacking(chart: str, sweep: Sweep, *, auto: bool = False) -> str | None:
    """What a sweep lacks for a chart, as a message names it after "needs"; None where it fits.

    Args:
        chart: Which.
        sweep: Its sweep.
        auto: Whether it is to be drawn without being asked for: then it has to show something, too.
    """
    return next(
        (need.what for need in NEEDS[chart] if not need.met(sweep) and (auto or not need.auto)),
        None,
    )


def absent(chart: str, sweep: Sweep) -> list[str]:
    """The columns that a chart reads and the sweep does not store."""
    stored = sweep.config.columns
    return (
        [] if stored == "all" else [name for name in COLUMNS.get(chart, ()) if name not in stored]
    )


def shape_names(sweep: Sweep) -> list[str]:
    """The names of a sweep's shapes."""
    return [shape.name for shape in sweep.config.shapes or []]


def check_asked(sweep: Sweep, **asked: str | Sequence[Any] | None) -> None:
    """Refuse what a chart asks for and its sweep does not have.

    Args:
        sweep: The sweep.
        asked: A name, or a list of names or numbers; None asks for nothing in particular.

    Raises:
        RooflinesError: It has no such thing; key paths are the names of the arguments.
    """
    offered: Mapping[str, tuple[Sequence[Any], str]] = {
        "chips": (list(sweep.rows_by_chip()), "no chip of"),
        "dtypes": (list(sweep.combinations), "no dtype combination of"),
        **dict.fromkeys(("shape", "shapes"), (shape_names(sweep), "no shape of")),
        "sharding": (list(sweep.shardings), "no sharding of"),
        "shards": (sweep.config.shards, "no number of chips of"),
        "sizes": (sizes_of(sweep, sweep.op.dims[0]), f"no size of {sweep.op.dims[0]} in"),
        "up": (map_dims(sweep), "nothing that has an axis in"),
        "axis": (
            [axis for axis in sweep.solved if axis != SHARDS],
            "no dimension among the `thresholds` of",
        ),
    }
    with Mistakes() as mistakes:
        for name, values in asked.items():
            with mistakes.at(name):
                known, what = offered[name]
                check_known(values, known, f"{what} sweep {sweep.name}")


def need(chart: str, sweep: Sweep, **asked: str | Sequence[Any] | None) -> None:
    """Refuse a chart of a sweep that does not have what it needs, or what is asked for.

    Args:
        chart: Which.
        sweep: Its sweep.
        asked: As in `check_asked`.

    Raises:
        RooflinesError: It lacks something.
    """
    if what := lacking(chart, sweep):
        raise RooflinesError(
            f"sweeps.{sweep.name}",
            f"has no chart {chart}, which needs {what}",
            "choose another sweep or chart",
        )
    check_asked(sweep, **asked)
