"""Pipeline stages: their layers by kind, and the kernels that these run.

Layers with an MLP come before those with experts. Mixers (attention, or a state), and layers with
one part each, are in the same mixture on every stage: a shape does not say their order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.training.layer_chunks import chunk_layers
from rooflines.training.plan_parts import EXPERT_KERNELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.models.architecture import Shape
    from rooflines.training.plan_parts import StatePlan

INPUT_KERNELS = ("qkv", "qkv-down")
"""First attention kernel: plain, or with compressed queries."""

STATE_IN, STATE_STEPS, RECURRENCE, STATE_OUT = "state-in", "state-steps", "state", "state-out"
STATE_KERNELS = (STATE_IN, STATE_STEPS, RECURRENCE, STATE_OUT)
"""Kernels in a layer with a state."""

INDEX_PROJECTIONS, INDEXER = ("index-q", "index-k"), "indexer"
"""Indexer kernels: projections, and scores over all tokens."""

LATENT_IN, LATENT_OUT = "latent-in", "latent-out"
"""Projections to the experts' latent width, and back."""

MLP_KERNELS = ("gate-up", "down")
END_KERNELS = ("embed", "unembed")
SEND = "send"

ATTENTION_LAYERS, MLP_LAYERS, EXPERT_LAYERS = "attention", "mlps", "experts"
RECURRENT_LAYERS, INDEX_LAYERS = "states", "indexers"
"""Layer kinds: fields in `LayerMix`."""

KIND_BY_KERNEL = {
    **dict.fromkeys(STATE_KERNELS, RECURRENT_LAYERS),
    **dict.fromkeys((*INDEX_PROJECTIONS, INDEXER), INDEX_LAYERS),
    **dict.fromkeys(MLP_KERNELS, MLP_LAYERS),
    **dict.fromkeys((*EXPERT_KERNELS, LATENT_IN, LATENT_OUT), EXPERT_LAYERS),
}
"""Layer kind by kernel; further kernels are attention's."""

Layers = int | Fraction
"""Layers [1]; a mean where an order is not known."""


class LayerMix(NamedTuple):
    """Layers by kind; a layer may have several [1].

    Attributes:
        attention: With attention.
        indexers: With an indexer, which chooses the tokens that attention sees.
        states: With a state, in place of attention or beside it.
        mlps, experts: With an MLP, and with experts.
    """

    attention: Layers = 0
    indexers: Layers = 0
    states: Layers = 0
    mlps: Layers = 0
    experts: Layers = 0

    @classmethod
    def of_model(cls, shape: Shape) -> LayerMix:
        """Layers in a model by kind [1]."""
        return cls(
            shape.attention_layers,
            0 if shape.sparse is None else shape.sparse.indexers,
            0 if shape.state is None else shape.state.layers,
            shape.mlp_layers,
            shape.moe_layers,
        )

    def with_kernel(self, kernel: str) -> Layers:
        """Layers with a kernel, by its name [1]."""
        layers: Layers = getattr(self, KIND_BY_KERNEL.get(kernel, ATTENTION_LAYERS))
        return layers


@dataclass(frozen=True)
class Stage:
    """Layers in one pipeline stage.

    Attributes:
        index: Position in the pipeline, from 0 [1].
        layers: Layers [1].
        mix: Layers by kind [1].
        has_embedding, has_head: Whether it has the embedding, and the LM head.
    """

    index: int
    layers: int
    mix: LayerMix
    has_embedding: bool
    has_head: bool

    @classmethod
    def whole(cls, shape: Shape) -> Stage:
        """All layers on one stage."""
        mix = LayerMix.of_model(shape)
        return cls(0, shape.layers, mix, has_embedding=True, has_head=True)

    def kernel_count(self, kernel: str) -> Layers:
        """Copies of a kernel on this stage, by kernel name [1]."""
        ends = {"embed": self.has_embedding, "unembed": self.has_head, SEND: True}
        return int(ends[kernel]) if kernel in ends else self.mix.with_kernel(kernel)


def single_layers(shape: Shape, stage: Stage) -> Iterator[Stage]:
    """One-layer stages, for each layer kind that a stage must have.

    A mixer and an MLP meet in some layer if there are more layers with either than layers.

    Args:
        shape: The model.
        stage: The stage.
    """
    mix = stage.mix
    share = Fraction(mix.indexers) / mix.attention if mix.attention else Fraction(0)
    attention = LayerMix(attention=1, indexers=share)
    mixers: list[tuple[Layers, LayerMix]] = [(mix.attention, attention)]
    if shape.state is not None and shape.state.beside:
        beside = attention._replace(states=1)
        mixers = [(mix.states, beside), (mix.attention - mix.states, attention)]
    else:
        mixers.append((mix.states, LayerMix(states=1)))
    feeds = [(mix.mlps, LayerMix(mlps=1)), (mix.experts, LayerMix(experts=1))]
    mixers, feeds = ([part for part in parts if part[0]] for parts in (mixers, feeds))
    if shape.single:
        kinds = [kind for _, kind in (*mixers, *feeds)]
    else:
        pairs = [
            (mixer_layers + feed_layers > stage.layers, mixer, feed)
            for mixer_layers, mixer in mixers
            for feed_layers, feed in feeds
        ]
        met = [pair for pair in pairs if pair[0]] or pairs
        kinds = [mixer._replace(mlps=feed.mlps, experts=feed.experts) for _, mixer, feed in met]
    for kind in kinds:
        yield Stage(stage.index, 1, kind, has_embedding=False, has_head=False)


def stages_of(shape: Shape, plan: StatePlan) -> tuple[Stage, ...]:
    """Split layers over stages, see `chunk_layers`; with an MLP before those with experts."""
    model = LayerMix.of_model(shape)
    layers, mlps = [0] * plan.pp, [0] * plan.pp
    layer = 0
    for chunk, size in enumerate(chunk_layers(shape.layers, plan)):
        layers[chunk % plan.pp] += size
        mlps[chunk % plan.pp] += max(min(layer + size, shape.mlp_layers) - layer, 0)
        layer += size
    return tuple(
        Stage(
            index,
            count,
            _mix(shape, model, count, dense),
            has_embedding=index == 0,
            has_head=index == plan.pp - 1,
        )
        for index, (count, dense) in enumerate(zip(layers, mlps, strict=True))
    )


def _mix(shape: Shape, model: LayerMix, layers: int, mlps: int) -> LayerMix:
    """Layers by kind on a stage: in the model's mixture, MLPs and experts as they come [1]."""
    shares = (Fraction(count * layers, shape.layers) for count in map(int, model))
    mix = LayerMix(*(int(share) if share.denominator == 1 else share for share in shares))
    return mix if shape.single else mix._replace(mlps=mlps, experts=layers - mlps)


def stage_kinds(stages: Sequence[Stage]) -> tuple[tuple[Stage, int], ...]:
    """Kinds of stages by their layers: the first stage of each kind, with their number.

    The first has the most micro-batches in flight, so the most memory, within its kind.
    """
    stages_by_kind: dict[Stage, list[Stage]] = {}
    for stage in stages:
        stages_by_kind.setdefault(replace(stage, index=0), []).append(stage)
    return tuple((stages_alike[0], len(stages_alike)) for stages_alike in stages_by_kind.values())
