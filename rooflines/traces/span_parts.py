"""Span parts by what the time went into; they add up to the nanosecond.

span = at the bound + above the bound + no bound + before the trace + communication
     + not launched + in the call + queued + break
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

from rooflines.traces.bound_times import faster_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.traces.bound_times import ResourceSeconds, TraceRates
    from rooflines.traces.device_accounts import DeviceAccount
    from rooflines.traces.trace_records import Call

NS_PER_S = 1_000_000_000

NO_CHIP = "no chip"


@dataclass(frozen=True, slots=True)
class BoundedCall:
    """A call with its bound on a chip.

    Attributes:
        call: The call.
        times: Least time by resource; None: no bound.
        why: Reason why there is none; empty with one.
        below: Reason why the call is faster than its bound; None: it is not.
    """

    call: Call
    times: ResourceSeconds | None
    why: str
    below: str | None

    @property
    def lower_s(self) -> float | None:
        """Bound t_lower [s]; None: none."""
        return None if self.times is None else self.times.lower

    @property
    def seconds(self) -> float:
        """Owned time [s]."""
        return self.call.owned_ns / NS_PER_S

    @property
    def is_communication(self) -> bool:
        """True for collectives, whose exposed time is lost whatever the network can do."""
        if self.call.cost is not None:
            return self.call.cost.collective is not None
        return any(activity.kind == "collective" for activity in self.call.activities)

    @property
    def is_before(self) -> bool:
        """True for kernels that were launched before the trace began."""
        return self.call.origin == "before"


def bound_calls(calls: Iterable[Call], rates: TraceRates | None) -> list[BoundedCall]:
    """Calls with their bounds.

    Args:
        calls: The calls.
        rates: The chip's; None: no chip, no bound.
    """
    times_by_cost: dict[int, ResourceSeconds | None] = {}
    bounded = []
    for call in calls:
        cost = call.cost
        if cost is None or rates is None:
            bounded.append(BoundedCall(call, None, call.why or NO_CHIP, None))
            continue
        key = id(cost)
        if key not in times_by_cost:
            times_by_cost[key] = rates.seconds(cost)
        times = times_by_cost[key]
        if times is None:
            bounded.append(BoundedCall(call, None, rates.missing_reason(cost), None))
            continue
        kernel_s = call.kernel_ns / NS_PER_S
        below = faster_reason(cost, rates, kernel_s) if kernel_s < times.lower else None
        bounded.append(BoundedCall(call, times, "", below))
    return bounded


def inside_bounds_s(calls: Iterable[BoundedCall]) -> float:
    """Bounds, summed over calls whose launch is in the trace [s]."""
    return sum(bounded.lower_s or 0.0 for bounded in calls if not bounded.is_before)


@dataclass(frozen=True, slots=True)
class SpanParts:
    """Parts of a span, in whole ns; `total_ns` is their sum.

    Attributes:
        at_bound_ns: Calls with a bound: the smaller of time and bound [ns].
        above_ns: The same calls' time above the bound [ns].
        no_bound_ns: Calls without a bound [ns].
        before_ns: Kernels launched before the trace began [ns].
        communication_ns: Collectives while no kernel runs [ns].
        not_launched_ns: Idle, the host had not called the launch [ns].
        in_call_ns: Idle, the launch call was running [ns].
        queued_ns: Idle, launched and not begun, up to 1 ms at a time [ns].
        break_ns: The same for longer [ns].
    """

    at_bound_ns: int = 0
    above_ns: int = 0
    no_bound_ns: int = 0
    before_ns: int = 0
    communication_ns: int = 0
    not_launched_ns: int = 0
    in_call_ns: int = 0
    queued_ns: int = 0
    break_ns: int = 0

    @property
    def total_ns(self) -> int:
        """Span: the sum over parts [ns]."""
        return sum(getattr(self, field.name) for field in fields(self))

    def __add__(self, device: Self) -> Self:
        """Add another device's parts."""
        names = [field.name for field in fields(self)]
        return type(self)(*(getattr(self, name) + getattr(device, name) for name in names))


def span_parts(
    calls: Sequence[BoundedCall], accounts: Iterable[DeviceAccount]
) -> Mapping[str, SpanParts]:
    """Span parts by device.

    Args:
        calls: All calls, with their bounds.
        accounts: The devices' accounts.

    Raises:
        AssertionError: A device's parts do not add up to its span.
    """
    by_device: dict[str, list[BoundedCall]] = defaultdict(list)
    for bounded in calls:
        by_device[bounded.call.activities[0].device].append(bounded)
    parts = {}
    for account in accounts:
        sums = _device_parts(by_device[account.device], account)
        if sums.total_ns != account.span_ns:
            raise AssertionError(f"parts of device {account.device} do not add up to its span")
        parts[account.device] = sums
    return parts


def _device_parts(calls: Iterable[BoundedCall], account: DeviceAccount) -> SpanParts:
    """Parts for one device."""
    bounded_ns = no_bound_ns = before_ns = communication_ns = 0
    at_bound_s = 0.0
    for bounded in calls:
        owned_ns = bounded.call.owned_ns
        lower_s = bounded.lower_s
        if bounded.is_before:
            before_ns += owned_ns
        elif bounded.is_communication:
            communication_ns += owned_ns
        elif lower_s is None:
            no_bound_ns += owned_ns
        else:
            bounded_ns += owned_ns
            at_bound_s += min(owned_ns / NS_PER_S, lower_s)
    at_bound_ns = min(round(at_bound_s * NS_PER_S), bounded_ns)
    return SpanParts(
        at_bound_ns=at_bound_ns,
        above_ns=bounded_ns - at_bound_ns,
        no_bound_ns=no_bound_ns,
        before_ns=before_ns,
        communication_ns=communication_ns,
        not_launched_ns=account.not_launched_ns,
        in_call_ns=account.in_call_ns,
        queued_ns=account.queued_ns,
        break_ns=account.break_ns,
    )
