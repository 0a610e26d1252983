"""Measured number of a kernel, a chain or a collective, beside its bound and its estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.answers.faster_than_bound import CACHE, SPARSE_GAIN
from rooflines.answers.measured_number import (
    BUS_RATE,
    MIN_BUSY,
    TRAFFIC_RATE,
    FasterReason,
    MeasuredNumber,
    measured_section,
    place_in_band,
)
from rooflines.basics.errors import RooflinesError
from rooflines.basics.quantities import (
    FLOPS_PER_S,
    MBU,
    MFU,
    TIME,
    MeasuredValue,
    measured_value,
    quantity,
)
from rooflines.basics.text import seconds, si, significant
from rooflines.hardware.entries import MAIN_MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.answers.kernel_estimate import KernelEstimate
    from rooflines.answers.phrases import Section
    from rooflines.hardware.entries import Chip

IN_SWITCH = "t_in_switch_s"
"""Column with the time where the network adds up in its switch [s]."""

RESOURCE_NAMES = ("math", "vector", "memory", "network")
"""Resources whose times a row has."""

WHERE = {
    True: "waiting for the last rank, launch, an algorithm for other sizes or chips",
    False: "launch and host in the timing, waiting, or a kernel made for other shapes",
}
"""Places of the time while no resource is busy: between chips, or on one."""

FIX = "write 250us, 650TFLOP/s, 41%mfu or 2.1TB/s"


def measured_kernel(
    typed: str | None,
    row: Mapping[str, Any],
    chip: Chip,
    estimate: KernelEstimate | None = None,
) -> Section | None:
    """Measured number against the bound and the estimate, in words.

    Args:
        typed: A time, FLOP/s, a share of a peak, a bandwidth, or for a collective its busbw or
            `algbw=274GB/s`; None: none was asked about.
        row: The row.
        chip: Its chip.
        estimate: Its calibrated time; None: untimed.

    Raises:
        RooflinesError: It is something else.
    """
    if typed is None:
        return None
    is_bandwidth = typed.lower().endswith(("b/s", "bps"))
    value = None if is_bandwidth else measured_value(typed.rpartition("=")[2])
    time_s = _bandwidth_time(typed, row) if value is None else _value_time(typed, value, row)
    lower, estimate_s = float(row["t_lower_s"]), row.get("t_estimate_s")
    p10_s, p90_s = row.get("t_estimate_p10_s"), row.get("t_estimate_p90_s")
    busy = {name: row[f"t_{name}_s"] / time_s for name in RESOURCE_NAMES if row.get(f"t_{name}_s")}
    number = MeasuredNumber(
        typed=typed,
        kind=FLOPS_PER_S if value is None else value.kind,
        time_s=time_s,
        rounding=0.0 if value is None else value.rounding,
        bound_s=lower,
        bound_share=lower / time_s,
        estimate_ratio=None if estimate_s is None else time_s / estimate_s,
        place=place_in_band(time_s, p10_s, p90_s),
        estimate_s=estimate_s,
        p10_s=p10_s,
        p90_s=p90_s,
        serial_s=None,
        upper_s=float(row["t_upper_s"]),
        above_bound_s=time_s - lower,
        above_estimate_s=None if estimate_s is None else time_s - estimate_s,
        rates={**_rates(row, time_s), **_shares(row, busy)},
        busy=busy,
        fits=None,
        outside_kernels=max(lower / time_s, *busy.values()) < MIN_BUSY,
        reasons=[*_reasons(row, chip, time_s)] if time_s < lower else (),
    )
    is_slower = estimate_s is not None and estimate_s < time_s
    faster = ""
    if estimate is not None and is_slower:
        faster = f"as {estimate.software} runs it, {seconds(estimate.time_s)}"
    return measured_section(
        number,
        per="",
        band_share="80% of the timings",
        levers=faster,
        bound_name="bound" if row.get(IN_SWITCH) is None else "ring",
        where=WHERE["bus_factor" in row],
    )


def _rates(row: Mapping[str, Any], time_s: float) -> dict[str, float]:
    """Rates in a measured time, by kind [1/s]."""
    rates = {FLOPS_PER_S: row["flops"] / time_s} if row["flops"] else {}
    if row.get("bus_factor"):
        rates[BUS_RATE] = row["bus_factor"] * row["bytes"] / time_s
    elif row["memory_bytes"]:
        rates[TRAFFIC_RATE] = row["memory_bytes"] / time_s
    return rates


def _shares(row: Mapping[str, Any], busy: Mapping[str, float]) -> dict[str, float]:
    """MFU and MBU of one chip's kernel [1]; none between chips."""
    if "bus_factor" in row:
        return {}
    shares = {MFU: busy.get("math") if row["flops"] else None, MBU: busy.get("memory")}
    return {name: share for name, share in shares.items() if share is not None}


def _reasons(row: Mapping[str, Any], chip: Chip, time_s: float) -> Iterator[FasterReason]:
    """Reasons for a time below the bound, each checked against the row."""
    in_switch = row.get(IN_SWITCH)
    if in_switch:
        over = significant(time_s / in_switch)
        yield FasterReason("switch", f"reduced in the switch; {over} times the bound of that")
        return
    beaten = [name for name in RESOURCE_NAMES if (row.get(f"t_{name}_s") or 0.0) > time_s]
    cache = chip.memory.get(CACHE)
    if cache is not None and cache.capacity_bytes and "memory" in beaten:
        traffic, capacity = row["memory_bytes"], cache.capacity_bytes
        sizes = f"{si(traffic, 'B')} of traffic, {si(capacity, 'B')} of {CACHE}"
        if traffic <= capacity:
            yield FasterReason("cache", f"{sizes}: repeated runs read the cache, not {MAIN_MEMORY}")
        else:
            yield FasterReason("cache", f"not alone: {sizes}")
    if beaten == ["math"] and row["t_math_s"] / SPARSE_GAIN <= time_s:
        half = seconds(row["t_math_s"] / SPARSE_GAIN)
        yield FasterReason("sparsity", f"2:4 sparsity, which doubles the peak: {half} of math")
    if beaten and "network" not in beaten:
        yield FasterReason("dtypes", "narrower dtypes than typed")
    if row.get("pairs"):
        yield FasterReason("sizes", "a window or a mask that skips pairs which are counted here")
    else:
        yield FasterReason("sizes", "less work than typed: masked, skipped or empty rows")
    yield FasterReason("timer", "a clock that is read before the work has ended")


def _bandwidth_time(typed: str, row: Mapping[str, Any]) -> float:
    """Time behind a bandwidth of memory, or of a collective [s]."""
    name, _, text = typed.rpartition("=")
    rate = float(quantity(text, "bandwidth"))
    if "bus_factor" not in row:
        return float(row["memory_bytes"]) / rate
    factor = 1.0 if name.lower() == "algbw" else float(row["bus_factor"])
    return factor * float(row["bytes"]) / rate


def _value_time(typed: str, value: MeasuredValue, row: Mapping[str, Any]) -> float:
    """Time behind a time, FLOP/s or a share of a peak [s].

    Raises:
        RooflinesError: The kernel has no such rate.
    """
    works = {
        TIME: None,
        FLOPS_PER_S: row["flops"] or row["vector_flops"],
        MFU: row.get("t_math_s") if row["flops"] else None,
        MBU: None if "bus_factor" in row else row.get("t_memory_s"),
    }
    if value.kind == TIME:
        return value.value
    work = None if value.full else works.get(value.kind)
    if not work:
        problem = f"is {typed}, which is no time or rate of a kernel"
        raise RooflinesError("measured", problem, FIX)
    return float(work) / value.value
