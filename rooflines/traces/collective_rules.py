"""Collective work: the payload by the package's definition, from what a trace records."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from rooflines.kinds.collectives import ALL_REDUCE, PAIRWISE, find_collective
from rooflines.theory.network import PAIR
from rooflines.traces.operator_rules import UNREADABLE
from rooflines.traces.tensors import recorded_arguments, type_bytes
from rooflines.traces.trace_records import OperatorCost

if TYPE_CHECKING:
    from rooflines.traces.trace_records import Arguments, Message

RECORDED = {
    "_all_gather_base": "all-gather",
    "_allgather_base": "all-gather",
    "_reduce_scatter_base": "reduce-scatter",
    "all_gather_into_tensor": "all-gather",
    "all_to_all": "all-to-all",
    "all_to_all_single": "all-to-all",
    "all_to_allv": "all-to-all",
    "allgather_into_tensor_coalesced": "all-gather",
    "allreduce_coalesced": ALL_REDUCE,
    "reduce_scatter_tensor_coalesced": "reduce-scatter",
}
"""Collective by recorded name, where it is no name of the package."""

GIVEN = (ALL_REDUCE, "reduce-scatter", "all-to-all", "reduce")
"""Collectives whose payload is what a rank gives; otherwise the whole is what it gets."""

ROOT_GETS, ROOT_GIVES = "gather", "scatter"

CUSTOM_ALL_REDUCE = re.compile(r"all_?reduce", re.IGNORECASE)
"""Operators that reduce by kernels of their own, without record_param_comms."""


def collective_cost(message: Message) -> OperatorCost | None:
    """Collective work; None: it moves nothing, or its sizes are not recorded.

    Args:
        message: The collective as record_param_comms has it.
    """
    name = message.collective.lower()
    kind = RECORDED.get(name) or find_collective(name)
    width = type_bytes(message.dtype) or type_bytes(message.dtype.removeprefix("c10::"))
    if kind is None or not width or message.ranks < PAIR:
        return None
    given, gotten = message.in_elements * width, message.out_elements * width
    payload = given if kind in GIVEN else max(given, gotten)
    if kind == ROOT_GETS:
        kind, payload = (kind, gotten) if gotten > given else ("send", given)
    elif kind == ROOT_GIVES:
        kind, payload = (kind, given) if given > gotten else ("send", gotten)
    return _cost(kind, payload, message.ranks, exact=True) if payload else None


def custom_all_reduce_cost(
    name: str, arguments: Arguments, world_size: int | None
) -> OperatorCost | None:
    """Work in an engine's own all-reduce over all ranks; assumed.

    Args:
        name: The operator.
        arguments: Its arguments; the largest tensor is reduced.
        world_size: Ranks in the job; None: not recorded [1].

    Returns:
        None: it is no all-reduce, or has no tensor or ranks.
    """
    if not CUSTOM_ALL_REDUCE.search(name) or (world_size or 0) < PAIR:
        return None
    with suppress(*UNREADABLE):
        tensors = recorded_arguments(arguments).flat()
        payload = max(tensor.stored_bytes for tensor in tensors)
        return _cost(ALL_REDUCE, payload, world_size or 0, exact=False)
    return None


def _cost(kind: str, payload: float, ranks: int, *, exact: bool) -> OperatorCost:
    """Collective cost; bytes sent depend on the network, see bound_times.py."""
    return OperatorCost(
        "collective",
        collective=kind,
        payload_bytes=float(payload),
        ranks=PAIR if kind in PAIRWISE else ranks,
        exact=exact,
        sizes={"bytes": int(payload), "shards": ranks},
    )
