"""What a chip holds in a step of training: states of its parameters, and saved tensors.

Tensors of a micro-batch are saved between its forward and its backward pass. Sources: Korthikanti
et al. 2022 (arXiv 2205.05198) for what is saved, Rajbhandari et al. 2020 (arXiv 1910.02054) for
shards of states.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.numbers import exact
from rooflines.models.counts import parameters_of
from rooflines.models.shape import Gqa
from rooflines.training.plan import MOMENTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.models.shape import Shape
    from rooflines.training.plan import Recompute, Shard, TrainingPlan

FP32_BYTES = 4
"""Of a sum of a softmax, whatever the dtype of activations [byte]."""

GATHERED = ("qkv", "qkv-down", "gate-up", "router", "unembed")
"""Kernels whose input tp gathers: the output of a norm."""


class Saved(NamedTuple):
    """Elements that a kernel of one layer saves of a token, over all chips of tp [1].

    Attributes:
        kept: Always, unless whole layers are computed again.
        dropped: Outputs of norms and activations, which are cheap to compute again.
        first: The input of the layer: all that is kept where layers are computed again.
    """

    kept: int | Fraction = 0
    dropped: int = 0
    first: int = 0

    def elements(self, recompute: Recompute, *, again: bool = True) -> int | Fraction:
        """Elements that stay until the backward pass [1].

        Args:
            recompute: What is computed again.
            again: Whether it is a kernel of a layer: the head is never computed again.
        """
        if recompute == "full" and again:
            return self.first
        return self.kept + self.first + (self.dropped if recompute != "selective" else 0)


def saved_tensors(shape: Shape, plan: TrainingPlan, activation_bytes: Fraction) -> dict[str, Saved]:
    """What each kernel saves, by its name.

    A norm saves its input, a linear kernel its input, attention q, k, v, its output and the sums of
    its softmax, an activation its inputs, a router its scores and choices. A residual belongs to
    the kernel before it. Inputs that are saved whole are there once for each chip of tp.

    Args:
        shape: The model.
        plan: How chips share it.
        activation_bytes: Bytes of an element of activations [byte].
    """
    width, attention = shape.D, shape.attention
    found = {"embed": Saved(first=width), "unembed": Saved(shape.V, width)}
    if isinstance(attention, Gqa):
        values = attention.N * attention.value
        into = attention.N * attention.H + attention.cache_elements
        found["qkv"] = Saved(dropped=width)
    else:
        key, rank = attention.N * (attention.nope + attention.rope), attention.q_rank
        values = attention.N * attention.v
        into = 2 * key + values
        if rank is None:
            found["qkv"] = Saved(attention.kv_rank, width)
        else:
            found["qkv-down"] = Saved(attention.kv_rank + rank, width)
            found["q-up"] = Saved(dropped=rank)
        found["kv-up"] = Saved(dropped=attention.kv_rank)
    sums = attention.N * FP32_BYTES / activation_bytes
    found["attention"] = Saved(into + values + sums)
    found["o"] = Saved(width)
    if (mlp := shape.mlp) is not None:
        found["gate-up"] = Saved((1 + mlp.gated) * mlp.F, width)
        found["down"] = Saved(dropped=mlp.F, first=width)
    if (moe := shape.moe) is not None:
        inner, shared = 1 + moe.gated, moe.shared * moe.Fe
        last = "shared" if shared else "experts"
        found["router"] = Saved(2 * moe.E, width)
        found["experts"] = Saved(moe.k * (width + inner * moe.Fe), moe.k * moe.Fe)
        found["shared"] = Saved(inner * shared, shared)
        found[last] = found[last]._replace(first=width)
    if plan.save == "gathered":
        for name in found.keys() & {*GATHERED}:
            if name != "router" or plan.gathers_tokens(shape):
                found[name] = found[name]._replace(dropped=plan.tp * found[name].dropped)
    return found


DENSE = ("gate-up", "down")
EXPERTS = ("router", "experts", "shared")
ENDS = ("embed", "unembed")
SEND = "send"


@dataclass(frozen=True)
class Stage:
    """The layers of a stage of a pipeline.

    Attributes:
        index: From 0 [1].
        dense, moe: Its layers with an MLP, and with experts [1].
        embeds, heads: Whether it has the embedding, and the unembedding.
    """

    index: int
    dense: int
    moe: int
    embeds: bool
    heads: bool

    @property
    def layers(self) -> int:
        """Its layers [1]."""
        return self.dense + self.moe

    def times(self, kernel: str) -> int:
        """Times that it has a kernel, by its name [1]."""
        counts = {
            **dict.fromkeys(DENSE, self.dense),
            **dict.fromkeys(EXPERTS, self.moe),
            "embed": int(self.embeds),
            "unembed": int(self.heads),
            SEND: 1,
        }
        return counts.get(kernel, self.layers)


def stages_of(shape: Shape, plan: TrainingPlan) -> tuple[Stage, ...]:
    """The stages: whole layers, which differ by one at most; the last and the first have fewer.

    Layers with an MLP come before those with experts.
    """
    least, more = divmod(shape.layers, plan.pp)
    order = [*range(1, plan.pp - 1), 0, plan.pp - 1] if plan.pp > 1 else [0]
    larger = set(order[:more])
    numbers = [least + (index in larger) for index in range(plan.pp)]
    runs = plan.pp * plan.interleave
    dense = [0] * plan.pp
    layer = 0
    for run in range(runs):
        stage = run % plan.pp
        size = numbers[stage] // plan.interleave
        dense[stage] += max(min(layer + size, shape.mlp_layers) - layer, 0)
        layer += size
    return tuple(
        Stage(index, dense[index], number - dense[index], index == 0, index == plan.pp - 1)
        for index, number in enumerate(numbers)
    )


def kinds_of(stages: Sequence[Stage]) -> tuple[tuple[Stage, int], ...]:
    """The stages that differ in their layers, the first of each kind, and how many there are.

    The first of a kind holds the most micro-batches of its kind.
    """
    found: dict[Stage, list[Stage]] = {}
    for stage in stages:
        found.setdefault(replace(stage, index=0), []).append(stage)
    return tuple((alike[0], len(alike)) for alike in found.values())


def parameters_on(shape: Shape, stage: Stage) -> tuple[int, int, int]:
    """Parameters of a stage over all its chips [1]: weights, experts, and token tables."""
    whole = parameters_of(shape)
    moe = shape.moe
    routed = 0 if moe is None else whole.experts // max(shape.moe_layers, 1)
    dense = 0 if shape.mlp is None else whole.mlp // max(shape.mlp_layers, 1)
    beside = (whole.shared + whole.router) // max(shape.moe_layers, 1)
    per_layer = whole.attention // shape.layers + shape.norms_per_layer * shape.D
    own = whole.norms + whole.biases - shape.D * (1 + shape.layers * shape.norms_per_layer)
    weights = (
        stage.layers * per_layer
        + stage.dense * dense
        + stage.moe * beside
        + round(own * stage.layers / shape.layers)
        + shape.D * stage.heads
    )
    return (
        weights,
        stage.moe * routed,
        shape.table * (stage.embeds + stage.heads)
        if not (shape.tied and stage.embeds and stage.heads)
        else shape.table,
    )


class ParameterShare(NamedTuple):
    """Parameters of a chip that the same chips hold.

    Attributes:
        number: How many [1].
        weight_bytes: Of a weight [byte].
        replicas: Chips with equal ones [1].
        stride: Chips from one replica to the next [1].
    """

    number: Fraction
    weight_bytes: Fraction
    replicas: int
    stride: int


def parameters_of_chip(
    shape: Shape, plan: TrainingPlan, stage: Stage, sizes: Mapping[str, Fraction]
) -> tuple[ParameterShare, ...]:
    """The parameters of a chip of a stage: weights, token tables, and experts.

    Args:
        shape: The model.
        plan: How chips share it.
        stage: The stage.
        sizes: Bytes of an element by class [byte].
    """
    weights, experts, head = parameters_on(shape, stage)
    shards = plan.expert_shards
    return (
        ParameterShare(Fraction(weights, plan.tp), sizes["weights"], plan.replicas, plan.tp),
        ParameterShare(Fraction(head, plan.tp), sizes["head"], plan.replicas, plan.tp),
        ParameterShare(Fraction(experts, shards), sizes["experts"], plan.expert_replicas, shards),
    )


SHARDED: Mapping[Shard, tuple[bool, bool, bool]] = {
    "none": (False, False, False),
    "optimizer": (False, False, True),
    "gradients": (False, True, True),
    "weights": (True, True, True),
}
"""Whether replicas share weights, gradients, and the states of the optimizer."""


def optimizer_bytes(plan: TrainingPlan, sizes: Mapping[str, Fraction]) -> Fraction:
    """Bytes of the states that the optimizer has of a parameter [byte]."""
    if plan.optimizer != "adam":
        return exact(plan.optimizer)
    return sizes["master"] + MOMENTS * sizes["moments"]


def states_on(
    shape: Shape, plan: TrainingPlan, stage: Stage, sizes: Mapping[str, Fraction]
) -> Fraction:
    """Bytes of weights, gradients and the states of the optimizer of a chip [byte], exact.

    Args: as of `parameters_of_chip`.
    """
    total = Fraction(0)
    for each in parameters_of_chip(shape, plan, stage, sizes):
        parts = (each.weight_bytes, sizes["gradients"], optimizer_bytes(plan, sizes))
        for size, shared in zip(parts, SHARDED[plan.shard], strict=True):
            total += each.number * size / (each.replicas if shared else 1)
    return total


def most_in_flight(plan: TrainingPlan, stage: int) -> int:
    """Runs of layers of a stage that hold saved tensors at once, with many micro-batches [1].

    Source: Narayanan et al. 2021 (arXiv 2104.04473), one forward, one backward, interleaved.
    """
    ahead, runs = plan.pp - stage, plan.interleave
    return ahead if runs == 1 else 2 * (ahead - 1) + (runs - 1) * plan.pp + 1


def saved_elements(
    shape: Shape, plan: TrainingPlan, stage: Stage, activation_bytes: Fraction
) -> tuple[int | Fraction, int | Fraction]:
    """Elements of a token that a stage saves, over all chips of tp [1].

    Returns:
        Of its layers; of the head, which holds one micro-batch, with the input of the last norm.
    """
    saved = saved_tensors(shape, plan, activation_bytes)
    layers = sum(
        stage.times(name) * each.elements(plan.recompute)
        for name, each in saved.items()
        if name not in ENDS
    )
    head = saved["unembed"].elements(plan.recompute, again=False) + shape.D
    return layers, stage.heads * head


def saved_of_one_layer(
    shape: Shape, plan: TrainingPlan, stage: Stage, activation_bytes: Fraction
) -> int | Fraction:
    """Elements of a token that one layer of a stage saves while it is computed again [1]."""
    one = plan.model_copy(update={"recompute": "none"})
    kinds = [(1, 0)] * bool(stage.dense) + [(0, 1)] * bool(stage.moe)
    layers = (
        replace(stage, dense=dense, moe=moe, embeds=False, heads=False) for dense, moe in kinds
    )
    return max(saved_elements(shape, one, layer, activation_bytes)[0] for layer in layers)


class StageMemory(NamedTuple):
    """What a chip of a stage holds at most, working memory apart.

    Attributes:
        states: Weights, gradients and the states of the optimizer [byte].
        run: Tensors that a run of its layers saves, of every token of a sequence [byte].
        once: Those that one micro-batch at a time has, of every token of a sequence [byte].
        most: Runs that hold tensors at once, with many micro-batches [1].
        runs: Runs of layers that the stage has [1].
    """

    states: Fraction
    run: Fraction
    once: Fraction
    most: int
    runs: int

    def saved(self, micro_batches: int) -> Fraction:
        """Saved tensors of every token of a sequence [byte]."""
        return self.run * min(self.most, micro_batches * self.runs) + self.once

    @classmethod
    def of(
        cls, shape: Shape, plan: TrainingPlan, stage: Stage, sizes: Mapping[str, Fraction]
    ) -> StageMemory:
        """The memory of a stage. Arguments as of `parameters_of_chip`."""
        size = sizes["saved"]
        layers, once = saved_elements(shape, plan, stage, size)
        if plan.recompute == "full":
            once += saved_of_one_layer(shape, plan, stage, size)
        token = size * Fraction(plan.micro_batch, plan.tp * plan.cp)
        states = states_on(shape, plan, stage, sizes)
        most = most_in_flight(plan, stage.index)
        return cls(states, layers * token / plan.interleave, once * token, most, plan.interleave)
