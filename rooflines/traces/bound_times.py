"""Least time of a work on a chip: the one function from a cost and a chip to seconds by resource.

Rates are those of the package: `Resource.rate` for FLOP and bytes, `placed_collective` for what
ranks send each other, `host_link` for copies between host and device.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError
from rooflines.basics.memo import Memo
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.hardware.support import host_link
from rooflines.kinds.collectives import placed_collective
from rooflines.kinds.kinds import VECTOR
from rooflines.theory.operation import MATRIX
from rooflines.theory.resources import MATH, MEMORY, NETWORK
from rooflines.traces.operator_rules import FP32, FP32_VECTOR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.hardware.entries import Chip
    from rooflines.kinds.collectives import PlacedCollective
    from rooflines.traces.trace_records import OperatorCost

HOST = "host link"
"""Bound of copies between host and device."""

ROUNDING_SHARE = 1e-9
"""Share by which a time may be below its bound by rounding alone [1]."""


class ResourceSeconds(NamedTuple):
    """Least time for a work on each chip resource [s].

    Attributes:
        math: FLOP over their dtype's peak; None: no products.
        memory: Bytes over the memory's rate; for a host copy over the host link's.
        network: Bytes that a rank sends over the network's rate; None: no collective.
        bound: Resource with the largest: `compute`, `memory`, `network` or `host link`.
        network_bytes: Bytes that a rank sends [byte]; None: no collective.
    """

    math: float | None
    memory: float | None
    network: float | None
    bound: str
    network_bytes: float | None = None

    @property
    def lower(self) -> float:
        """Least time: the largest, t_lower [s]."""
        return max(self._present)

    @property
    def upper(self) -> float:
        """Time one after another: the sum, t_upper [s]."""
        return sum(self._present)

    @property
    def _present(self) -> list[float]:
        return [time for time in self[:3] if time is not None]


@dataclass(frozen=True)
class TraceRates:
    """Rates of a chip that works of a trace are divided by.

    Attributes:
        name: The chip's id.
        chip: The chip.
    """

    name: str
    chip: Chip

    @cached_property
    def peaks(self) -> Mapping[str, float]:
        """Peak by compute dtype: of the faster unit; fp32 products may run in tf32 [FLOP/s]."""
        matrix, vector = (
            {dtype: peak.flops_per_s for dtype, peak in self.chip.units.get(unit, {}).items()}
            for unit in (MATRIX, VECTOR)
        )
        peaks = {
            dtype: max(matrix.get(dtype, 0.0), vector.get(dtype, 0.0))
            for dtype in {**matrix, **vector}
        }
        by_threads = vector.get(FP32) or matrix.get(FP32)
        if by_threads:
            peaks[FP32_VECTOR] = by_threads
        if FP32 in peaks or "tf32" in peaks:
            peaks[FP32] = max(peaks.get(FP32, 0.0), peaks.get("tf32", 0.0))
        return peaks

    @cached_property
    def memory_per_s(self) -> float:
        """Main memory bandwidth [byte/s]."""
        return float(self.chip.chip_rates(MATRIX, MAIN_MEMORY).reached_bytes_per_s)

    @cached_property
    def host_per_s(self) -> float:
        """Bandwidth between host and device, one way; the memory's where none is known [byte/s]."""
        link = host_link(self.chip)
        return self.memory_per_s if link is None else float(link[1].bytes_per_s * link[1].links)

    @cached_property
    def cache_bytes(self) -> float:
        """Last-level cache capacity; 0: not known [byte]."""
        cache = self.chip.last_level_cache
        return float(cache.capacity_bytes or 0) if cache else 0.0

    @cached_property
    def cache_per_s(self) -> float | None:
        """Last-level cache bandwidth; None: not published [byte/s]."""
        cache = self.chip.last_level_cache
        return cache.bytes_per_s if cache else None

    def missing_reason(self, cost: OperatorCost) -> str:
        """Reason why the chip gives a work no bound; empty: it gives one."""
        if cost.flops and cost.compute not in self.peaks:
            return f"no peak of the chip in {cost.compute or 'its dtype'}"
        if cost.collective and self._placed(cost) is None:
            return f"no network of the chip joins {cost.ranks} ranks"
        return ""

    def seconds(self, cost: OperatorCost) -> ResourceSeconds | None:
        """Least time for a work by resource [s]; None: `missing_reason` says why there is none."""
        if cost.flops and cost.compute not in self.peaks:
            return None
        math = cost.flops / self.peaks[str(cost.compute)] if cost.flops else None
        if cost.collective:
            placed = self._placed(cost)
            if placed is None:
                return None
            payload = int(cost.payload_bytes)
            sent = float(sum(level.sent_bytes for level in placed.levels(payload)))
            network = float(placed.network_s(payload))
            return ResourceSeconds(None, None, network, NETWORK.bound, sent)
        if cost.host_bytes:
            return ResourceSeconds(None, cost.host_bytes / self.host_per_s, None, HOST)
        memory = cost.memory_bytes / self.memory_per_s
        bound = MATH.bound if math is not None and math >= memory else MEMORY.bound
        return ResourceSeconds(math, memory, None, bound)

    def in_switch_s(self, cost: OperatorCost) -> float | None:
        """Least time for an all-reduce in the switch [s]; None: the network reduces nothing."""
        placed = self._placed(cost) if cost.collective else None
        if placed is None or placed.switch_share is None:
            return None
        _, _, rate, _ = placed.levels(int(cost.payload_bytes))[0]
        return float(placed.switch_share * int(cost.payload_bytes) / rate)

    def _placed(self, cost: OperatorCost) -> PlacedCollective | None:
        return self._placed_collectives[str(cost.collective), cost.ranks]

    @cached_property
    def _placed_collectives(self) -> Memo[tuple[str, int], PlacedCollective | None]:
        """Collectives on the chip's network by kind and ranks; None: none joins the ranks."""

        def placed(key: tuple[str, int]) -> PlacedCollective | None:
            with suppress(RooflinesError):
                return placed_collective(self.chip, self.name, *key)
            return None

        return Memo(placed)


# ------------------------------------------------------------ faster than the bound

ASSUMED = "assumed work"
IN_CACHE = "in cache"
PARTLY_IN_CACHE = "partly in cache"
FEWER_PRODUCTS = "fewer products (Winograd, FFT)"
ARGUMENT_TWICE = "one argument twice"
IN_SWITCH = "reduced in the switch"
BOOST_CLOCK = "boost clock"
UNEXPLAINED = "unexplained"


def faster_reason(cost: OperatorCost, rates: TraceRates, kernel_s: float) -> str | None:
    """Reason why a call is faster than its bound; None: it is not, or has no bound.

    Args:
        cost: Its work.
        rates: The chip's rates.
        kernel_s: Summed durations over its kernels [s].
    """
    seconds = rates.seconds(cost)
    if seconds is None or kernel_s >= seconds.lower * (1 - ROUNDING_SHARE):
        return None
    checks = (
        (ASSUMED, not cost.exact),
        (IN_CACHE, seconds.bound == MEMORY.bound and _in_cache(cost, rates, kernel_s)),
        (PARTLY_IN_CACHE, seconds.bound == MEMORY.bound and _partly(cost, rates, kernel_s)),
        (FEWER_PRODUCTS, seconds.bound == MATH.bound and cost.kind == "convolution"),
        (ARGUMENT_TWICE, _once_is_enough(cost, rates, kernel_s)),
        (IN_SWITCH, _in_switch(cost, rates, kernel_s)),
        (BOOST_CLOCK, rates.chip.clock == "boost"),
    )
    return next((reason for reason, holds in checks if holds), UNEXPLAINED)


def _cache_s(cost: OperatorCost, rates: TraceRates) -> float:
    """Bytes over the cache's rate: no cache is faster [s]; 0 where no rate is published."""
    return cost.memory_bytes / rates.cache_per_s if rates.cache_per_s else 0.0


def _in_cache(cost: OperatorCost, rates: TraceRates, kernel_s: float) -> bool:
    """True if all bytes fit the last-level cache, and its rate allows the time."""
    return cost.memory_bytes <= rates.cache_bytes and kernel_s >= _cache_s(cost, rates)


def _partly(cost: OperatorCost, rates: TraceRates, kernel_s: float) -> bool:
    """True if what does not fit the last-level cache can come from memory in the time."""
    rest_s = max(cost.memory_bytes - rates.cache_bytes, 0.0) / rates.memory_per_s
    return kernel_s >= max(rest_s, _cache_s(cost, rates))


def _once_is_enough(cost: OperatorCost, rates: TraceRates, kernel_s: float) -> bool:
    """True if the bound holds where arguments of one shape are one tensor."""
    if not cost.repeated_bytes or cost.collective or cost.host_bytes:
        return False
    once_s = (cost.memory_bytes - cost.repeated_bytes) / rates.memory_per_s
    seconds = rates.seconds(cost)
    math_s = (seconds.math if seconds else None) or 0.0
    return kernel_s >= max(once_s, math_s)


def _in_switch(cost: OperatorCost, rates: TraceRates, kernel_s: float) -> bool:
    """True for an all-reduce that the network's switch can add up in the time."""
    least_s = rates.in_switch_s(cost)
    return least_s is not None and kernel_s >= least_s * (1 - ROUNDING_SHARE)
