"""Thresholds of levers: over a size of the grid, or the sizes from which on each chip's pays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl
from rooflines.charts.chart_models import step_bases
from rooflines.charts.frames import NOMINAL, dtypes_by_chip
from rooflines.charts.lever_lines import LEVERS, lever_view
from rooflines.charts.lever_ranges import RANGES, range_view
from rooflines.charts.options import Menu
from rooflines.charts.views import Kind, Need, View
from rooflines.hardware.support import host_link
from rooflines.models.architecture import DECODE
from rooflines.solvers.offload_levers import INPUTS, SAVED
from rooflines.solvers.payoffs import ESTIMATED_TIME, LOWER_TIME, SERIAL_TIME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.chart_data import Results
    from rooflines.charts.options import Option
    from rooflines.sweep.step_sweep import ModelSweep

FREE = "free"
"""Option for chunks that fit under the decode step, without a target."""

SLOWDOWN = "slowdown"
"""Basis of a slowdown that the config states."""

SIZES = {
    "B_draft": ("S",),
    "accepted_draft": ("B", "S", "T"),
    "B_pools": ("target", "S"),
    "chunk": ("B", "S", "target"),
}
"""Sizes that a lever's thresholds differ in, by lever; the first with several values is x."""

NOMINAL_TIMES = {"B_pools": SERIAL_TIME}
"""Nominal times, where they are not the bound: by it separate servers never pay."""

PLACES = ("memory", "network")
"""Columns of which a chart shows each chip's first."""


def menus(sweep: ModelSweep, choice: Mapping[str, Option]) -> list[Menu]:
    """Menus: lever, model, dtypes, split, basis, and sizes other than that along x."""
    levers = levers_of(sweep)
    offered = set().union(*dtypes_by_chip(sweep).values())
    phase = phase_of(sweep)
    splits = dict.fromkeys(case.split.name for case in sweep.cases if case.phase == phase)
    first = [
        Menu("lever", levers),
        Menu("model", tuple(sweep.models)),
        Menu("dtypes", tuple(name for name in sweep.combinations if name in offered)),
        Menu("split", tuple(splits)),
    ]
    chosen = {menu.name: choice.get(menu.name, menu.options[0]) for menu in first if menu.options}
    lever = str(chosen.get("lever"))
    if lever == "S_offload":
        first.append(Menu("offload", (SAVED, INPUTS)))
    bases = () if lever in RANGES else lever_bases(sweep, chosen)
    fixed = [Menu(name, tuple(values)) for name, values in fixed_sizes(sweep, lever).items()]
    return [*first, *([Menu("basis", bases)] if len(bases) > 1 else []), *fixed]


def phase_of(sweep: ModelSweep) -> str:
    """Phase whose cases have thresholds: decode where the sweep has it, else its first."""
    return DECODE if DECODE in sweep.config.phase else sweep.config.phase[0]


def levers_of(sweep: ModelSweep) -> tuple[str, ...]:
    """Levers among a sweep's thresholds: along a size of its grid, or with a link."""
    listed = sweep.config.thresholds
    along = tuple(lever for lever in LEVERS if lever in listed and _along(sweep, lever))
    return along + tuple(lever for lever in RANGES if lever in listed and _has_link(sweep, lever))


def _has_link(sweep: ModelSweep, lever: str) -> bool:
    """Check for the link of a lever: that of a pulled cache, or to a chip's host."""
    levers = sweep.config.levers
    if lever == "S_pull":
        return levers is not None and levers.pull is not None
    if levers is not None and levers.host_bytes_per_s is not None:
        return True
    return any(host_link(entry) is not None for entry in sweep.chips.values())


def lever_bases(sweep: ModelSweep, chosen: Mapping[str, Any]) -> tuple[str, ...]:
    """Bases of a lever's times, the default first; a typed slowdown replaces the calibration."""
    levers = sweep.config.levers
    if levers is not None and levers.slowdown is not None:
        return (SLOWDOWN, NOMINAL)
    return step_bases(sweep, {**chosen, "phase": DECODE})


def sizes_of(sweep: ModelSweep, lever: str) -> dict[str, list[Option]]:
    """Values by size of a lever's thresholds."""
    targets = sweep.config.targets
    limits: list[Option] = [_target(limit) for limit in (targets.t_step_s if targets else ())]
    values: dict[str, list[Option]] = {
        "B": [*sweep.batches],
        "S": [*sweep.contexts],
        "T": [new for new in sweep.new_tokens or () if new > 1],
        "target": [FREE, *limits] if lever == "chunk" else limits,
    }
    return {name: values[name] for name in SIZES.get(lever, ())}


def _target(seconds: float) -> str:
    """Target as an option of a menu."""
    return f"{float(seconds) * 1e3:g} ms"


def _along(sweep: ModelSweep, lever: str) -> str | None:
    """Size along x: the first with several values; of targets only those of time."""
    for name, values in sizes_of(sweep, lever).items():
        if len([value for value in values if value != FREE]) > 1:
            return name
    return None


def fixed_sizes(sweep: ModelSweep, lever: str) -> dict[str, list[Option]]:
    """Values of the sizes other than x."""
    sizes, along = sizes_of(sweep, lever), _along(sweep, lever)
    return {name: values for name, values in sizes.items() if name != along and values}


def view(results: Results, sweep: str, chips: Sequence[str], choice: Mapping[str, Any]) -> View:
    """Draw one lever of one model, a line or bars for each chip."""
    model_sweep, lever = results.model_sweep(sweep), str(choice["lever"])
    keys = {name: choice[name] for name in ("model", "dtypes", "split")}
    if lever in RANGES:
        keys |= {"offload": choice["offload"]} if "offload" in choice else {}
        solved = results.thresholds(sweep, chips).filter(axis=lever, **keys).collect()
        return range_view(solved, lever, chips=model_sweep.chips)
    sizes = {name: choice[name] for name in ("B", "S", "T") if name in choice}
    rows = results.thresholds(sweep, chips).filter(axis=lever, **keys, **sizes)
    if "target" in choice:
        target = pl.col("target_s").map_elements(_target, pl.String).fill_null(FREE)
        rows = rows.filter(target == choice["target"])
    elif "target" in SIZES[lever]:
        rows = rows.drop_nulls("target_s")
    first = (pl.col(name).eq_missing(pl.col(name).first().over("chip")) for name in PLACES)
    frame = rows.filter(*first).collect()
    time = NOMINAL_TIMES.get(lever, LOWER_TIME)
    if choice.get("basis", NOMINAL) != NOMINAL:
        time = ESTIMATED_TIME
    return lever_view(frame, lever, time=time, chips=model_sweep.chips)


KIND = Kind(
    name="levers",
    source="model_sweeps",
    menus=menus,
    view=view,
    needs=(
        Need(
            f"{', '.join([*LEVERS, *RANGES])} among its thresholds",
            lambda s: bool({*LEVERS, *RANGES} & {*s.config.thresholds}),
        ),
        Need(
            "several sizes along which a lever's thresholds differ, or the link of one",
            lambda s: bool(levers_of(s)),
        ),
        Need("a chip with a known memory capacity", lambda s: bool(dtypes_by_chip(s))),
    ),
    preferred=lambda sweep: (-len(levers_of(sweep)),),
    multi_chip=True,
)
