"""Layers per chunk: which part each pipeline stage has, as Megatron deals them.

n = pp * interleave chunks; chunk i is on stage i mod pp. Layers are typed, chunk by chunk or for
the first and the last stage, or even; else, interleaved, the first and the last chunk have one
less, since embedding and LM head count as a layer, where that divides; else chunks differ by one.
Without interleaving stages differ by one, the last and the first with fewer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rooflines.basics.errors import RooflinesError
from rooflines.models.stages import stage_layers

if TYPE_CHECKING:
    from collections.abc import Sequence

ENDS = 2
"""Chunks that have the embedding, or the LM head [1]."""


class ChunkPlan(Protocol):
    """Plan values that decide which layers a stage has."""

    @property
    def pp(self) -> int:
        """Pipeline stages [1]."""

    @property
    def interleave(self) -> int:
        """Chunks per stage [1]."""

    @property
    def stage_layers(self) -> tuple[int, ...] | None:
        """Layers per chunk, as typed [1]."""

    @property
    def first(self) -> int | None:
        """Layers in the first stage, as typed [1]."""

    @property
    def last(self) -> int | None:
        """Layers in the last stage, as typed [1]."""


def chunk_layers(layers: int, plan: ChunkPlan) -> tuple[int, ...]:
    """Layers per chunk, in the order in which a micro-batch passes them [1].

    Args:
        layers: All layers [1].
        plan: Plan values that decide them.

    Raises:
        RooflinesError: Typed layers do not add up, or there are more chunks than layers.
    """
    chunks = plan.pp * plan.interleave
    if plan.stage_layers is not None:
        return _typed_chunks(layers, chunks, plan)
    if plan.first is not None or plan.last is not None:
        return _typed_ends(layers, plan)
    if plan.interleave == 1:
        if chunks > layers:
            problem = f"is {chunks} stages, but there are {layers} layers"
            raise RooflinesError("pp", problem, "use fewer stages")
        return stage_layers(layers, plan.pp)
    if chunks > layers + ENDS:
        problem = f"is {plan.interleave}: {chunks} chunks, more than {layers} layers and both ends"
        raise RooflinesError("interleave", problem, "use fewer stages, or fewer chunks on each")
    if layers % chunks == 0:
        return (layers // chunks,) * chunks
    if (layers + ENDS) % chunks == 0:
        size = (layers + ENDS) // chunks
        return (size - 1, *[size] * (chunks - ENDS), size - 1)
    fewest, larger = divmod(layers, chunks)
    order = [index for near in range(chunks) for index in (chunks - 1 - near, near)]
    smaller = set(list(dict.fromkeys(order))[: chunks - larger])
    return tuple(fewest + (index not in smaller) for index in range(chunks))


def _typed_chunks(layers: int, chunks: int, plan: ChunkPlan) -> tuple[int, ...]:
    """Layers per chunk as typed."""
    typed: Sequence[int] = plan.stage_layers or ()
    if plan.first is not None or plan.last is not None:
        raise RooflinesError("stage_layers", "is given beside first or last", "leave out one")
    if len(typed) != chunks:
        problem = f"has {len(typed)} numbers, but pp * interleave is {chunks} chunks"
        raise RooflinesError("stage_layers", problem, f"write {chunks} numbers")
    if sum(typed) != layers or min(typed) < 0:
        problem = f"adds up to {sum(typed)}, but there are {layers} layers"
        raise RooflinesError("stage_layers", problem, "write the layers in every chunk")
    return tuple(typed)


def _typed_ends(layers: int, plan: ChunkPlan) -> tuple[int, ...]:
    """Layers per chunk where those in the first or the last stage are typed."""
    typed = {0: plan.first, plan.pp - 1: plan.last}
    ends = {stage: count for stage, count in typed.items() if count is not None}
    rest, stages = layers - sum(ends.values()), plan.pp - len(ends)
    name = "first" if plan.first is not None else "last"
    if rest < 0 or (rest and not stages) or (stages and rest % stages):
        problem = f"leaves {rest} layers for {stages} other stages, which are not even"
        raise RooflinesError(name, problem, "write another number, or stage_layers")
    by_stage = [ends.get(stage, rest // max(stages, 1)) for stage in range(plan.pp)]
    if any(count % plan.interleave for count in by_stage):
        problem = f"gives stages of {by_stage} layers, which {plan.interleave} chunks do not divide"
        raise RooflinesError(name, problem, "write another number, or stage_layers")
    return tuple(count // plan.interleave for count in by_stage) * plan.interleave
