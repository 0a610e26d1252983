"""Answers about a collective between chips."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rooflines.answers.answer_values import ResourceTime
from rooflines.answers.kernel_answer import (
    KernelAnswer,
    bound_words,
    chip_records,
)
from rooflines.answers.kernel_estimate import UNTIMED, collective_estimate
from rooflines.answers.measured_kernel import IN_SWITCH, measured_kernel
from rooflines.answers.phrases import Line, Title
from rooflines.basics.text import seconds, si
from rooflines.kinds.collectives import ALL_REDUCE, PAIRWISE, placed_collective
from rooflines.theory.network import LEVEL_SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.answers.kernel_estimate import KernelChip
    from rooflines.kinds.collectives import LevelTime, PlacedCollective


def collective_answer(
    kind: str, payload: int, shards: str, target: KernelChip, *, measured: str | None = None
) -> KernelAnswer:
    """Answer about a collective.

    Args:
        kind: The collective.
        payload: The whole tensor, in an all-to-all what one chip holds [byte].
        shards: Chips, or `4x4` along the axes of a torus.
        target: The chip, with its interconnects and calibrations.
        measured: Measured number; None: none.

    Raises:
        RooflinesError: The interconnects do not join the chips.
    """
    name, chip = target.name, target.chip
    placed = placed_collective(chip, name, kind, shards, target.network)
    levels = placed.levels(payload)
    estimate = collective_estimate(placed, payload, target)
    row = _row(placed, payload, levels, name)
    row |= {} if estimate is None else estimate.columns()
    axes = placed.route.axes
    chips = "x".join(map(str, axes)) if len(axes) > 1 else f"{placed.chips}"
    used = {"memory.hbm", *(f"networks.{network_name}" for network_name in placed.names)}
    return KernelAnswer(
        row=row,
        title=Title(
            name,
            f"{kind} {payload:,} bytes",
            "",
            f"{chips} chips over {' and '.join(placed.names)}",
        ).text(),
        bound_text=_bound_text(placed, row),
        rate_text=f"busbw {si(row['busbw_bytes_per_s'], 'B/s')} at that",
        resources=[*_resources(placed, levels, row)],
        facts=[*_facts(placed, payload, levels, row)],
        chip_name=chip.name or name,
        numbers=chip_records(chip, used),
        estimate=estimate,
        untimed=UNTIMED,
        measured=measured_kernel(measured, row, chip, estimate),
    )


def _row(
    placed: PlacedCollective, payload: int, levels: Sequence[LevelTime], name: str
) -> dict[str, Any]:
    """Row with the columns of a table."""
    network_s, memory_s = placed.network_s(payload), placed.memory_s(payload)
    in_switch = placed.in_switch_s(payload)
    lower = max(network_s, memory_s)
    return {
        "operation": placed.kind,
        "chip": name,
        "network": LEVEL_SEPARATOR.join(placed.names),
        "shards": placed.chips,
        "bytes": payload,
        "flops": 0.0,
        "memory_bytes": float(placed.memory_share * payload),
        "network_bytes": float(sum((level.sent_bytes for level in levels), Fraction(0))),
        "vector_flops": 0.0,
        "t_memory_s": float(memory_s),
        "t_network_s": float(network_s),
        IN_SWITCH: None if in_switch is None else float(in_switch),
        "t_lower_s": float(lower),
        "t_upper_s": float(network_s + memory_s),
        "bound": "network" if network_s >= memory_s else "memory",
        "bandwidth_bound_from": placed.bandwidth_bound_from(),
        "algbw_bytes_per_s": float(payload / lower),
        "busbw_bytes_per_s": float(placed.bus_factor * payload / lower),
        "bus_factor": float(placed.bus_factor),
    }


def _bound_text(placed: PlacedCollective, row: dict[str, Any]) -> str:
    """Bound in words; where the network adds up in its switch, the ring's time is none."""
    lower, words = seconds(row["t_lower_s"]), bound_words(row["bound"])
    if row[IN_SWITCH] is not None:
        return f"ring {lower}, {words}; reduced in the switch at least {seconds(row[IN_SWITCH])}"
    if placed.reduces and placed.kind in (ALL_REDUCE, "reduce"):
        return f"ring {lower}, {words}; reduced in the switch of {placed.names[0]} it may take less"
    return f"at least {lower}, {words}"


def _resources(
    placed: PlacedCollective, levels: Sequence[LevelTime], row: dict[str, Any]
) -> Iterator[ResourceTime]:
    """Times by resource, for the bars: the slowest level, and main memory."""
    slowest = max(levels, key=lambda level: level.time_s)
    yield ResourceTime(
        "network",
        "network",
        "network_bytes",
        float(slowest.sent_bytes),
        float(slowest.bytes_per_s),
        float(slowest.latency_s),
        float(slowest.time_s),
    )
    yield ResourceTime(
        "memory",
        "memory",
        "memory_bytes",
        row["memory_bytes"],
        float(placed.memory_per_s),
        0.0,
        row["t_memory_s"],
    )


def _facts(
    placed: PlacedCollective, payload: int, levels: Sequence[LevelTime], row: dict[str, Any]
) -> Iterator[Line]:
    """Levels, hops, the switch and the direct link, in words."""
    for label, level in zip(("inside", "outside"), levels if len(levels) > 1 else (), strict=False):
        sent, rate = si(float(level.sent_bytes), "B"), si(float(level.bytes_per_s), "B/s")
        text = f"{sent} a chip over {level.name} at {rate}, {seconds(float(level.time_s))}"
        yield Line(label, "", text)
    algbw = si(row["algbw_bytes_per_s"], "B/s")
    yield Line("algbw", "", f"{algbw} at the bound")
    if hops := max(level.latency_s for level in levels):
        smallest = f"{row['bandwidth_bound_from']:,}"
        text = f"{seconds(float(hops))} for any payload; bandwidth-bound from {smallest} bytes"
        yield Line("hops", "", text)
    if row[IN_SWITCH] is not None:
        share = Fraction(placed.chips + 1, placed.chips) * payload
        yield Line("switch", "", f"{si(float(share), 'B')} a chip where it reduces")
    link = placed.route.levels[0].link
    if placed.kind in PAIRWISE and link.topology == "mesh":
        direct = seconds(float(payload / link.bytes_per_s))
        yield Line("direct", "", f"{direct} over the direct link; detours use the others too")
