"""Reasons for a measured time below the bound: each is checked against the answer's numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rooflines.answers.measured_number import FasterReason, MeasuredNumber, dtypes_order
from rooflines.basics.quantities import MFU, PER_CHIP, TIME, TOKENS_PER_S
from rooflines.basics.text import percent, seconds, si
from rooflines.evaluation.measured_times import MFU_FULL
from rooflines.models.architecture import DECODE, TRAIN
from rooflines.theory.resources import MATH, MEMORY, NETWORK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.answers.answer_values import ResourceTime
    from rooflines.evaluation.measured_times import RateWorks
    from rooflines.hardware.entries import Chip, Peak

CACHE = "l2"
"""Hardware cache in front of the main memory."""

SPARSE_GAIN = 2
"""Peak with 2:4 sparsity over the dense peak [1]."""


@dataclass(frozen=True)
class FasterInputs:
    """Numbers of an answer that reasons are checked against.

    Attributes:
        row: The row.
        chip: Its chip.
        resources: Times by resource.
        peaks: Peaks of the compute dtypes.
        dtypes: The question in other dtypes, the fastest first.
        chips: Bounds of chips of the same generation, by id [s].
        works: Works behind the rates.
    """

    row: Mapping[str, Any]
    chip: Chip
    resources: Sequence[ResourceTime]
    peaks: Sequence[Peak]
    dtypes: Sequence[Mapping[str, Any]]
    chips: Mapping[str, float]
    works: RateWorks


def reasons_for(number: MeasuredNumber, inputs: FasterInputs) -> Iterator[FasterReason]:
    """Reasons why a measured time can be below the bound, those with numbers first.

    Args:
        number: The number.
        inputs: The answer's numbers.
    """
    row = inputs.row
    beaten = {name for name, share in number.busy.items() if share > 1}
    beaten = beaten or {MEMORY.name}  # weights and activations move one after the other
    texts = {
        "dtypes": _other_dtypes(number, inputs),
        "cache": _cached(number, inputs) if beaten == {MEMORY.name} else "",
        "sparsity": _sparse(number, inputs) if beaten == {MATH.name} else "",
        "count": _counted_otherwise(number, inputs),
        "sizes": _smaller(row),
        "chip": _other_chips(number, inputs),
        "clock": _clocked(inputs.chip) if MATH.name in beaten else "",
        "hops": _hops(inputs.resources) if NETWORK.name in beaten else "",
        "timer": "a clock that is read before the work has ended" if number.kind == TIME else "",
    }
    yield from (FasterReason(subject, text) for subject, text in texts.items() if text)


def request_reasons(row: Mapping[str, Any]) -> tuple[FasterReason, ...]:
    """Reasons why a request's measured time can be below the bound."""
    counted = FasterReason("count", "prompt or drafted tokens counted, too")
    return counted, FasterReason("sizes", _smaller(row))


def _other_dtypes(number: MeasuredNumber, inputs: FasterInputs) -> str:
    """Other dtypes whose bound allows the time: those nearest to it."""
    allowed = [dtypes for dtypes in inputs.dtypes if dtypes["t_lower_s"] <= number.time_s]
    if not allowed:
        return "no other dtypes of this chip have so short a bound" if inputs.dtypes else ""
    nearest = max(allowed, key=lambda dtypes: dtypes_order(dtypes, slowest=True))
    return f"{nearest['dtypes']} has a bound of {seconds(nearest['t_lower_s'])}"


def _cached(number: MeasuredNumber, inputs: FasterInputs) -> str:
    """Working set against the cache; bytes beyond its capacity still come from memory."""
    row, cache = inputs.row, inputs.chip.memory.get(CACHE)
    if cache is None or cache.capacity_bytes is None or row["memory"] == CACHE:
        return ""
    working_set, capacity = row["footprint_bytes"], cache.capacity_bytes
    sizes = f"{si(working_set, 'B')} of working set, {si(capacity, 'B')} of {CACHE}"
    if working_set <= capacity:
        again = f"; `--memory {CACHE}` is the bound of that" if cache.bytes_per_s else ""
        return f"{sizes}: repeated runs read the cache, not {row['memory']}{again}"
    (memory,) = (resource for resource in inputs.resources if resource.resource == MEMORY.name)
    rest_s = (memory.work - capacity) / memory.per_s
    if rest_s <= number.time_s:
        return f"{sizes}: with the cache full from the run before, {seconds(rest_s)} of traffic"
    return f"not alone: {sizes}; what does not fit takes {seconds(rest_s)}"


def _sparse(number: MeasuredNumber, inputs: FasterInputs) -> str:
    """2:4 sparsity, where the chip has it, and the math at twice the peak fits in the time."""
    (math,) = (resource for resource in inputs.resources if resource.resource == MATH.name)
    sparse_s = math.time_s / SPARSE_GAIN
    if sparse_s > number.time_s or not all(peak.printed_with_sparsity for peak in inputs.peaks):
        return ""
    return f"2:4 sparsity, which doubles the peak: {seconds(sparse_s)} of math"


def _counted_otherwise(number: MeasuredNumber, inputs: FasterInputs) -> str:
    """Another meaning of the typed rate that the bound allows."""
    chips, row, works = inputs.row.get("chips", 1), inputs.row, inputs.works
    if number.kind == PER_CHIP and chips > 1 and number.time_s * chips >= number.bound_s:
        time = seconds(number.time_s * chips)
        return f"tokens/s of all {chips:,} chips, typed as of one: {time}"
    if number.kind == MFU and works.mfu_full:
        full_s = number.time_s * works.mfu_full / works.mfu
        if full_s > number.time_s and full_s >= number.bound_s:
            return (
                f"MFU counted with all token pairs, type '{number.typed} full': {seconds(full_s)}"
            )
    if "phase" in row and number.kind in (TOKENS_PER_S, PER_CHIP, MFU_FULL, MFU):
        extra = {TRAIN: "padding or masked tokens", DECODE: "prompt or drafted tokens"}
        return f"{extra.get(row['phase'], 'cached prompts')} counted, too"
    return ""


def _smaller(row: Mapping[str, Any]) -> str:
    """Less work than the sizes say."""
    if "tokens_per_s" not in row:
        return "less work than typed: masked, skipped or empty rows, a batch of fewer rows"
    if row["phase"] == TRAIN:
        return "fewer tokens than B and S say: packed documents with masks, micro-batches as B"
    return "shorter contexts or fewer sequences than typed, prompts read from a cache"


def _other_chips(number: MeasuredNumber, inputs: FasterInputs) -> str:
    """Chip of the same generation whose bound allows the time: the nearest to it."""
    allowed = {name: bound_s for name, bound_s in inputs.chips.items() if bound_s <= number.time_s}
    if not allowed:
        return ""
    nearest = max(allowed, key=allowed.__getitem__)
    return f"{nearest} has a bound of {seconds(allowed[nearest])}"


def _clocked(chip: Chip) -> str:
    """Clock behind the peak."""
    return (
        "a clock above the boost clock that the peak is of"
        if chip.clock
        else ("a clock above the one that the published peak is of")
    )


def _hops(resources: Sequence[ResourceTime]) -> str:
    """Latency in the network time, and fewer bytes by reduction in the switch."""
    (network,) = (resource for resource in resources if resource.resource == NETWORK.name)
    share = percent(network.latency_s / network.time_s)
    return f"hop latency is {share} of the network time; other algorithms have fewer hops or bytes"
