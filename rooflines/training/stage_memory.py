"""What a chip holds in a step of training: states of its parameters, and saved tensors.

Tensors of a micro-batch are saved between its forward and its backward pass. Sources: Korthikanti
et al. 2022 (arXiv 2205.05198) for what is saved, Rajbhandari et al. 2020 (arXiv 1910.02054) for
shards of states.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.numbers import exact
from rooflines.models.architecture import Gqa
from rooflines.models.parameter_counts import copied_routing_weights, copied_weights, parameters_of
from rooflines.models.tensor_dtypes import LM_HEAD
from rooflines.training.parallel_plan import MOMENTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.models.architecture import Shape
    from rooflines.models.parameter_counts import Parameters
    from rooflines.training.parallel_plan import Recompute, Shard, TrainingPlan

FP32_BYTES = 4
"""Of a sum of a softmax, whatever the dtype of activations [byte]."""

FIRST = ("qkv", "qkv-down")
"""The first kernel of a layer, with or without compressed queries."""

GATHERED = (*FIRST, "gate-up", "router", "unembed")
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


def saved_tensors(
    shape: Shape, plan: TrainingPlan | None, element_bytes: Fraction
) -> dict[str, Saved]:
    """What each kernel saves, by its name.

    A norm saves its input, a linear kernel its input, attention q, k, v, its output and the sums of
    its softmax, an activation its inputs, those of gates of attention too, a router its scores and
    choices. A residual belongs to
    the kernel before it. Inputs that are saved whole are there once for each chip of tp.

    Args:
        shape: The model.
        plan: How chips share it; None: every tensor once.
        element_bytes: Bytes of an element [byte].
    """
    width, attention = shape.D, shape.attention
    found = {"embed": Saved(first=width), "unembed": Saved(shape.V, width)}
    if isinstance(attention, Gqa):
        values, gates = attention.N * attention.value, attention.gates
        into = attention.N * attention.H + attention.kv_cache_elements
        found["qkv"] = Saved(dropped=width)
    else:
        key, rank = attention.N * (attention.nope + attention.rope), attention.q_rank
        values = attention.N * attention.v
        into, gates = 2 * key + values, values * attention.gate
        if rank is None:
            found["qkv"] = Saved(attention.kv_rank, width)
        else:
            found["qkv-down"] = Saved(attention.kv_rank + rank, width)
            found["q-up"] = Saved(dropped=rank)
        found["kv-up"] = Saved(dropped=attention.kv_rank)
    sums = attention.N * FP32_BYTES / element_bytes
    found["attention"] = Saved(into + values + sums)
    found["o"] = Saved(width + gates, values * (gates > 0))
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
    if plan is not None and plan.save == "gathered":
        for name in found.keys() & {*GATHERED}:
            if name != "router" or plan.gathers_tokens(shape):
                found[name] = found[name]._replace(dropped=plan.tp * found[name].dropped)
    return found


def vectors_of(shape: Shape) -> dict[str, int]:
    """Parameters of norms and biases of a layer, by the kernel that they are sent with [1].

    Those of attention and the norms of width D are sent with its first kernel, those of an MLP and
    of experts with `gate-up` and `router`, the last norm with the unembedding.
    """
    width, attention, mlp, moe = shape.D, shape.attention, shape.mlp, shape.moe
    norms = shape.norms_per_layer * shape.norm + attention.norms()
    found = dict.fromkeys(FIRST, norms + attention.biases(width))
    if mlp is not None:
        found["gate-up"] = mlp.biases(width)
    if moe is not None:
        found["router"] = moe.E * (int(moe.router_bias) + moe.expert.biases(moe.width(width)))
    last = shape.model_norms * shape.norm + shape.outputs * shape.head_bias
    return {**found, "unembed": last}


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


SHARDED: Mapping[Shard, tuple[bool, bool, bool]] = {
    "none": (False, False, False),
    "optimizer": (False, False, True),
    "gradients": (False, True, True),
    "weights": (True, True, True),
}
"""Whether replicas share weights, gradients, and the states of the optimizer."""


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


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model and its dtypes: what its plans have in common.

    Attributes:
        shape: The model.
        sizes: Bytes of an element by class of tensors [byte].
    """

    shape: Shape
    sizes: Mapping[str, Fraction]

    @cached_property
    def _parameters(self) -> Parameters:
        return parameters_of(self.shape)

    @cached_property
    def vectors(self) -> Mapping[str, int]:
        """Parameters of norms and biases of a layer, of `vectors_of` [1]."""
        return vectors_of(self.shape)

    @cached_property
    def saved_once(self) -> Mapping[str, Saved]:
        """What each kernel saves, every tensor once and in the format of activations."""
        return saved_tensors(self.shape, None, self.sizes["activations"])

    @cached_property
    def _on_stages(self) -> dict[Stage, tuple[int, int, int, int]]:
        return {}

    def parameters_on(self, stage: Stage) -> tuple[int, int, int, int]:
        """Parameters of a stage over all its chips [1].

        Returns:
            Weights, experts, the embedding and the unembedding.
        """
        if stage not in self._on_stages:
            self._on_stages[stage] = self._counted(stage)
        return self._on_stages[stage]

    def _counted(self, stage: Stage) -> tuple[int, int, int, int]:
        """The parameters of `parameters_on`."""
        shape, whole = self.shape, self._parameters
        routed = whole.experts // max(shape.moe_layers, 1)
        dense = whole.mlp // max(shape.mlp_layers, 1)
        beside = (whole.shared + whole.router) // max(shape.moe_layers, 1)
        weights = (
            stage.layers * (whole.attention // shape.layers + self.vectors[FIRST[0]])
            + stage.dense * (dense + self.vectors.get("gate-up", 0))
            + stage.moe * (beside + self.vectors.get("router", 0))
            + stage.heads * self.vectors["unembed"]
        )
        once = shape.tied and stage.embeds
        head = 0 if once else stage.heads * shape.table
        return weights, stage.moe * routed, stage.embeds * whole.embedding, head


@dataclass(frozen=True, eq=False)
class PlannedModel:
    """A model that chips share by a plan.

    Attributes:
        model: The model.
        plan: How chips share it.
    """

    model: TrainedModel
    plan: TrainingPlan

    @property
    def shape(self) -> Shape:
        """The shape of the model."""
        return self.model.shape

    @property
    def sizes(self) -> Mapping[str, Fraction]:
        """Bytes of an element by class of tensors [byte]."""
        return self.model.sizes

    @cached_property
    def saved(self) -> Mapping[str, Saved]:
        """What each kernel saves, by its name."""
        return saved_tensors(self.shape, self.plan, self.sizes["saved"])

    @cached_property
    def stages(self) -> tuple[tuple[Stage, int], ...]:
        """The kinds of stages, the first of each, and how many there are."""
        return kinds_of(stages_of(self.shape, self.plan))

    @cached_property
    def optimizer_bytes(self) -> Fraction:
        """Bytes of the states that the optimizer has of a parameter [byte]."""
        if self.plan.optimizer != "adam":
            return exact(self.plan.optimizer)
        return self.sizes["master"] + MOMENTS * self.sizes["moments"]

    def parameters(self, stage: Stage) -> tuple[ParameterShare, ...]:
        """The parameters of a chip of a stage: weights, token tables, and experts."""
        plan, sizes, shards = self.plan, self.sizes, self.plan.expert_shards
        weights, experts, embedding, head = self.model.parameters_on(stage)
        held = Fraction(weights, plan.tp) + self._copied(stage)
        tables = Fraction(embedding + head, plan.tp)
        table_bytes = embedding * sizes["head"] + head * sizes[LM_HEAD]
        of_table = table_bytes / max(embedding + head, 1)  # in the mean of both
        return (
            ParameterShare(held, sizes["weights"], plan.replicas, plan.tp),
            ParameterShare(tables, of_table, plan.replicas, plan.tp),
            ParameterShare(
                Fraction(experts, shards), sizes["experts"], plan.expert_replicas, shards
            ),
        )

    def _copied(self, stage: Stage) -> Fraction:
        """Parameters that a chip of a stage holds beyond its even share of the weights [1]."""
        attention, routed = self._copied_of_layer
        return stage.layers * attention + stage.moe * routed

    @cached_property
    def _copied_of_layer(self) -> tuple[Fraction, Fraction]:
        """The same of one layer: of its attention, and of what is beside its experts [1]."""
        tp, experts = self.plan.tp, copied_routing_weights(self.shape, self.plan.tp)
        of_layers = copied_weights(self.shape, tp) - self.shape.moe_layers * experts
        return of_layers / self.shape.layers, experts

    def states(self, stage: Stage) -> Fraction:
        """Bytes of weights, gradients and the states of the optimizer of a chip [byte], exact."""
        total = Fraction(0)
        for each in self.parameters(stage):
            parts = each.weight_bytes, self.sizes["gradients"], self.optimizer_bytes
            for size, shared in zip(parts, SHARDED[self.plan.shard], strict=True):
                total += each.number * size / (each.replicas if shared else 1)
        return total

    def most_in_flight(self, stage: Stage) -> int:
        """Runs of layers of a stage that hold saved tensors at once, with many micro-batches [1].

        Source: Narayanan et al. 2021 (arXiv 2104.04473), one forward, one backward, interleaved.
        """
        ahead, runs = self.plan.pp - stage.index, self.plan.interleave
        return ahead if runs == 1 else 2 * (ahead - 1) + (runs - 1) * self.plan.pp + 1

    def _of_layers(self, stage: Stage, recompute: Recompute) -> int | Fraction:
        """Elements of a token that the layers of a stage save, over all chips of tp [1]."""
        return sum(
            stage.times(name) * each.elements(recompute)
            for name, each in self.saved.items()
            if name not in ENDS
        )

    def _at_once(self, stage: Stage) -> int | Fraction:
        """Elements of a token that one micro-batch at a time has, over all chips of tp [1].

        Of the head, with the input of the last norm; and of one layer while it is computed again.
        """
        head = self.saved["unembed"].elements(self.plan.recompute, again=False) + self.shape.D
        found = stage.heads * head
        if self.plan.recompute == "full":
            kinds = [(1, 0)] * bool(stage.dense) + [(0, 1)] * bool(stage.moe)
            layers = (replace(stage, dense=dense, moe=moe) for dense, moe in kinds)
            found += max(self._of_layers(layer, "none") for layer in layers)
        return found

    def memory(self, stage: Stage) -> StageMemory:
        """What a chip of a stage holds."""
        plan = self.plan
        token = self.sizes["saved"] * Fraction(plan.micro_batch, plan.tp * plan.cp)
        return StageMemory(
            self.states(stage),
            self._of_layers(stage, plan.recompute) * token / plan.interleave,
            self._at_once(stage) * token,
            self.most_in_flight(stage),
            plan.interleave,
        )
