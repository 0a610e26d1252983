"""Ranks compared: the straggler at collectives, the waiting for it, and its cause.

Ranks are devices of one file, or of several. Clocks of hosts need not agree: only durations are
compared. Collectives of a process group are matched by their order.

    transfer = the shortest duration over ranks, an upper bound of the real transfer
    waiting of a rank = its duration - transfer; the rank that waits least comes last
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.text import counted, seconds
from rooflines.traces.span_parts import NS_PER_S
from rooflines.traces.trace_calls import COMMUNICATION
from rooflines.traces.trace_records import Operator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.traces.device_accounts import DeviceAccount
    from rooflines.traces.laid_traces import LaidTrace
    from rooflines.traces.span_parts import BoundedCall

MIN_RANKS = 2

CAUSES = {"host": 1.25, "compute": 1.1}
"""A straggler's host wait, or kernels, over the others' mean from which it is named a cause [1]."""


@dataclass
class RankWaits:
    """Collectives of a rank that others have too, in whole ns.

    Attributes:
        rank: Device, and the file where there are several.
        account: Its time.
        collectives: Matched collectives [1].
        duration_ns: Their durations [ns].
        transfer_ns: The shortest over ranks, summed [ns].
        bound_s: Bounds of the transfers; None: one has none [s].
    """

    rank: str
    account: DeviceAccount
    collectives: int = 0
    duration_ns: int = 0
    transfer_ns: int = 0
    bound_s: float | None = 0.0

    @property
    def waiting_ns(self) -> int:
        """Waiting for others: duration less transfer [ns]."""
        return self.duration_ns - self.transfer_ns

    @property
    def host_ns(self) -> int:
        """Idle, while the host had not called the next launch [ns]."""
        return self.account.not_launched_ns


@dataclass(frozen=True)
class RankComparison:
    """Comparison over ranks.

    Attributes:
        ranks: Ranks with matched collectives.
        notes: Why collectives are not matched.
    """

    ranks: Sequence[RankWaits]
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def last(self) -> RankWaits | None:
        """Straggler, the rank that waits least; None: nothing is matched."""
        return min(self.ranks, key=lambda rank: rank.waiting_ns, default=None)

    def sentences(self) -> Iterator[str]:
        """Sentences on the straggler, or why there is none."""
        last = self.last
        if last is not None:
            yield from _sentences(self.ranks, last)
        yield from self.notes


def compare_ranks(laid: Sequence[LaidTrace]) -> RankComparison:
    """Compare the ranks in traces by their collectives.

    Args:
        laid: The traces; every device is a rank.
    """
    ranks: dict[str, RankWaits] = {}
    groups: dict[str, dict[str, list[BoundedCall]]] = defaultdict(dict)
    for number, answer in enumerate(laid):
        label = f"{Path(answer.trace.file).name} device " if len(laid) > 1 else ""
        for account in answer.accounts:
            rank = f"{label}{account.device}"
            if rank in ranks:
                rank = f"{rank} ({number + 1})"
            ranks[rank] = RankWaits(rank, account)
            for group, calls in _collectives(answer, account.device).items():
                groups[group][rank] = calls
    notes = []
    left_out = 0
    for group, by_rank in groups.items():
        if len(by_rank) < MIN_RANKS:
            continue
        counts = {len(calls) for calls in by_rank.values()}
        if len(counts) > 1:
            listed = ", ".join(f"{rank} has {len(calls)}" for rank, calls in by_rank.items())
            notes.append(f"group {group or '-'} is not matched: {listed} collectives")
            continue
        for matched in zip(*by_rank.values(), strict=True):
            left_out += not _match(matched, [ranks[rank] for rank in by_rank])
    if left_out:
        notes.append(f"{counted(left_out, 'collective')} of other kind or size are left out")
    if not groups and any(_has_unsized(answer) for answer in laid):
        notes.append(
            "no collective has its size: record_param_comms of PyTorch 2.1 and later, with "
            "record_shapes, tells it"
        )
    return RankComparison([rank for rank in ranks.values() if rank.collectives], notes)


def _collectives(laid: LaidTrace, device: str) -> dict[str, list[BoundedCall]]:
    """Collectives with sizes on a device, by process group, in their order."""
    groups: dict[str, list[BoundedCall]] = defaultdict(list)
    for bounded in laid.calls:
        cost = bounded.call.cost
        activity = bounded.call.activities[0]
        if cost is not None and cost.collective is not None and activity.device == device:
            groups[_group(bounded)].append(bounded)
    for calls in groups.values():
        calls.sort(key=lambda bounded: bounded.call.activities[0].begin_ns)
    return groups


def _group(bounded: BoundedCall) -> str:
    """Process group of a collective."""
    message = bounded.call.activities[0].message
    operator = bounded.call.operator
    if message is None and isinstance(operator, Operator):
        message = operator.arguments.message
    return "" if message is None else message.group


def _match(matched: Sequence[BoundedCall], ranks: Sequence[RankWaits]) -> bool:
    """Add one collective of all ranks; False: kinds or sizes differ."""
    works = {
        (call.cost.collective, call.cost.payload_bytes)
        for call in (bounded.call for bounded in matched)
        if call.cost is not None
    }
    if len(works) != 1:
        return False
    shortest_ns = min(bounded.call.kernel_ns for bounded in matched)
    for bounded, rank in zip(matched, ranks, strict=True):
        rank.collectives += 1
        rank.duration_ns += bounded.call.kernel_ns
        rank.transfer_ns += shortest_ns
        lower_s = bounded.lower_s
        rank.bound_s = None if None in (lower_s, rank.bound_s) else rank.bound_s + lower_s  # type: ignore[operator]
    return True


def _has_unsized(laid: LaidTrace) -> bool:
    """True if collectives ran whose size is not recorded."""
    return any(activity.kind == "collective" for activity in laid.trace.activities) and any(
        operator.name == COMMUNICATION and operator.arguments.message is None
        for operator in laid.trace.operators
    )


def _sentences(ranks: Sequence[RankWaits], last: RankWaits) -> Iterator[str]:
    """Straggler, waits, transfer, and the straggler's cause."""
    rest = [rank for rank in ranks if rank is not last]
    waits_s = _mean([rank.waiting_ns - last.waiting_ns for rank in rest])
    host_s, rest_host_s = last.host_ns / NS_PER_S, _mean([rank.host_ns for rank in rest])
    kernels_s = last.account.kernels_ns / NS_PER_S
    rest_kernels_s = _mean([rank.account.kernels_ns for rank in rest])
    yield (
        f"rank {last.rank} comes last: the others wait {seconds(waits_s)} for it on average; "
        f"its device waits {seconds(host_s)} for the host, theirs {seconds(rest_host_s)}"
    )
    if host_s > CAUSES["host"] * rest_host_s and kernels_s < CAUSES["compute"] * rest_kernels_s:
        cause = "a slow host, not a slow device"
    elif kernels_s > CAUSES["compute"] * rest_kernels_s:
        cause = "its kernels take longer: more work, or a slow device"
    else:
        cause = "not told by its own time: it may wait outside of these groups"
    times = f"its kernels take {seconds(kernels_s)}, theirs {seconds(rest_kernels_s)}"
    yield f"{times}: {cause}"
    transfers = counted(last.collectives, "transfer")
    bound = f", their bound {seconds(last.bound_s)}" if last.bound_s else ""
    yield f"{transfers} take at most {seconds(last.transfer_ns / NS_PER_S)}{bound}"


def _mean(amounts_ns: Sequence[int]) -> float:
    """Mean [s]."""
    return sum(amounts_ns) / len(amounts_ns) / NS_PER_S if amounts_ns else 0.0
