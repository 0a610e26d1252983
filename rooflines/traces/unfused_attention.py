"""Attention that a trace runs as several kernels: a product, a softmax, and a product."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from rooflines.traces.kernel_works import kernel_work
from rooflines.traces.span_parts import NS_PER_S
from rooflines.traces.trace_records import Operator, OperatorCost

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflines.traces.bound_times import TraceRates
    from rooflines.traces.trace_records import Call

MAX_CALLS_BETWEEN = 8
"""Calls between a product and its softmax: scaling, masks, dropout, copies [1]."""

ELEMENT_BYTES_BY_FORMAT = {"bf16": 2, "fp16": 2}
"""Bytes per element by compute dtype; others have four [byte]."""


class UnfusedAttention(NamedTuple):
    """Attention as several kernels.

    Attributes:
        calls: Calls from the first product to the second.
        seconds: Their time [s].
        apart_s: Their bounds, one after another [s].
        fused_s: Bound as one kernel, which keeps the scores on chip [s].
    """

    calls: Sequence[Call]
    seconds: float
    apart_s: float
    fused_s: float


def unfused_attention(calls: Iterable[Call], rates: TraceRates) -> list[UnfusedAttention]:
    """Softmax calls between two products over the same scores, thread by thread.

    Args:
        calls: Calls of a trace.
        rates: Rates of the chip.
    """
    by_thread: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in calls:
        if isinstance(call.operator, Operator) and call.cost is not None:
            by_thread[call.operator.thread].append(call)
    chains = (chain for thread in by_thread.values() for chain in _chains(thread))
    attentions = (_attention(chain, rates) for chain in chains)
    return [attention for attention in attentions if attention is not None]


def _chains(calls: list[Call]) -> Iterator[list[Call]]:
    """Calls from the product before a softmax to the one after it."""
    calls.sort(key=lambda call: call.operator.begin_ns if call.operator else 0)
    for place, call in enumerate(calls):
        if call.cost is not None and call.cost.kind == "softmax":
            before = _first_product(range(place - 1, max(place - MAX_CALLS_BETWEEN, -1), -1), calls)
            after = _first_product(range(place + 1, len(calls)), calls)
            if before is not None and after is not None:
                yield calls[before : after + 1]


def _first_product(places: range, calls: Sequence[Call]) -> int | None:
    """First place with a matmul."""
    near = islice(places, MAX_CALLS_BETWEEN)
    kinds = ((place, calls[place].cost) for place in near)
    return next((place for place, cost in kinds if cost and cost.kind == "matmul"), None)


def _attention(chain: Sequence[Call], rates: TraceRates) -> UnfusedAttention | None:
    """Attention that a chain computes; None: its products are not over the softmax's scores."""
    costs = [call.cost for call in chain if call.cost is not None]
    first, second = costs[0].sizes, costs[-1].sizes
    scores = (first["batch"], first["B"], first["F"])
    softmax = next(
        call.operator
        for call in chain
        if call.cost and call.cost.kind == "softmax" and isinstance(call.operator, Operator)
    )
    dims = softmax.arguments.input_dims[0]
    if scores != (second["batch"], second["B"], second["D"]) or prod(scores) != prod(dims):
        return None
    letters = {"B": first["batch"], "N": 1, "K": 1, "T": first["B"], "S": first["F"]}
    letters |= {"H": first["D"], "Hv": second["F"]}
    element_bytes = ELEMENT_BYTES_BY_FORMAT.get(costs[0].compute or "", 4)
    work = kernel_work("attention", letters, {}, element_bytes, options={"mask": "full"})
    whole = OperatorCost("attention", work.flops, costs[0].compute, work.memory_bytes)
    fused = rates.seconds(whole)
    times = [rates.seconds(cost) for cost in costs]
    if fused is None or any(time is None for time in times):
        return None
    apart_s = sum(time.lower for time in times if time is not None)
    seconds = sum(call.owned_ns for call in chain) / NS_PER_S
    return UnfusedAttention(chain, seconds, apart_s, fused.lower)
