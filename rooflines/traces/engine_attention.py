"""Engine attention: queries from shapes, contexts from the step's annotation."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from rooflines.traces.kernel_works import kernel_work
from rooflines.traces.operator_rules import UNREADABLE, operator_table
from rooflines.traces.tensors import recorded_arguments
from rooflines.traces.trace_records import OperatorCost

if TYPE_CHECKING:
    from rooflines.traces.operator_rules import Places
    from rooflines.traces.tensors import RecordedArguments
    from rooflines.traces.trace_records import Arguments, StepTokens, TokenSums

ENGINE_ATTENTION = "engine-attention"

HEADS_AND_SIZE = 3
"""Least dims of keys that tell KV heads: tokens, heads, size [1]."""


def attended_pairs(sums: TokenSums) -> float:
    """Pairs (new token, token at or before it): sum over q s - (q^2 - q) / 2 [1]."""
    return sums.pairs - (sums.squared_queries - sums.queries) / 2


@cache
def _places(name: str) -> Places | None:
    """Places for an engine's attention, also by its name's beginning; None: it is another."""
    entry = operator_table().get(name)
    if entry is not None:
        return entry[1] if entry[0] == ENGINE_ATTENTION else None
    return next(
        (
            places
            for start, (rule, places) in operator_table().items()
            if rule == ENGINE_ATTENTION and start.endswith("*") and name.startswith(start[:-1])
        ),
        None,
    )


def is_engine_attention(name: str) -> bool:
    """True for an operator that is an engine's attention over its cache."""
    return _places(name) is not None


def engine_attention_cost(
    name: str, arguments: Arguments, tokens: StepTokens
) -> OperatorCost | None:
    """Engine attention work in a step, all sequences together; assumed.

    Args:
        name: The operator.
        arguments: Its arguments: queries, keys or their cache.
        tokens: Sums over the step's sequences.

    Returns:
        None: it is another operator, or contexts or shapes are not recorded.
    """
    places = _places(name)
    if places is None:
        return None
    with suppress(*UNREADABLE):
        return _cost(recorded_arguments(arguments), places, tokens)
    return None


def _cost(recorded: RecordedArguments, places: Places, tokens: StepTokens) -> OperatorCost | None:
    """Work by readable arguments."""
    q, k = recorded.find(places["q"]), recorded.find(places["k"])
    sums = (tokens.prompts, tokens.decodes)
    context = sum(part.keys for part in sums)
    if q is None or k is None or not context or len(q.dims) < HEADS_AND_SIZE - 1:
        return None
    heads, size = q.dims[-2], q.dims[-1]
    kv_heads = k.dims[-2] if len(k.dims) >= HEADS_AND_SIZE else 1
    new, sequences = (sum(getattr(part, key) for part in sums) for key in ("queries", "sequences"))
    pairs = sum(map(attended_pairs, sums))
    letters = {"B": 1, "T": new, "S": context, "N": heads, "K": kv_heads, "H": size, "Hv": size}
    letters |= {"entries": context}
    flops = kernel_work("attention", letters | {"pairs": 1}, {"q": [], "kv": [], "out": []}).flops
    rows = kernel_work("attention", letters | {"pairs": 0}, {"kv": []}, q.element_bytes)
    cached = kernel_work("attention", letters | {"pairs": 0}, {"q": [], "out": []}, k.element_bytes)
    return OperatorCost(
        "attention",
        flops * pairs,
        q.format,
        rows.memory_bytes + cached.memory_bytes,
        exact=False,
        sizes={"B": sequences, "N": heads, "K": kv_heads, "H": size, "S": context},
    )
