"""Memory of a chip in training: weights, gradients, optimizer states and activation memory.

Activations are saved between a micro-batch's forward and backward pass. Sources: Korthikanti et al.
2022 (arXiv 2205.05198) for saved tensors, Rajbhandari et al. 2020 (arXiv 1910.02054) for ZeRO.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rooflines.basics.memo import Memo
from rooflines.basics.numbers import exact
from rooflines.models.architecture import Gqa
from rooflines.models.parameter_counts import copied_routing_weights, copied_weights, parameters_of
from rooflines.models.tensor_dtypes import LM_HEAD
from rooflines.training.parallel_plan import MOMENTS, trained_attention
from rooflines.training.plan_parts import EXPERT_KERNELS, StatePlan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.models.architecture import Shape
    from rooflines.models.parameter_counts import Parameters
    from rooflines.training.parallel_plan import ChipGroup, Recompute, Save, Shard, TrainingPlan

SOFTMAX_SUM_BYTES = 4
"""Bytes per softmax sum, whatever the activation dtype [byte]."""

INPUT_KERNELS = ("qkv", "qkv-down")
"""First kernel of a layer: plain, or with compressed queries."""

GATHERED_INPUTS = (*INPUT_KERNELS, "gate-up", "router", "unembed")
"""Kernels whose input, a norm's output, is all-gathered over tp."""


class SavedElements(NamedTuple):
    """Elements that one layer's kernel saves per token, over all tp chips [1].

    Attributes:
        required: Saved unless whole layers are recomputed.
        recomputable: Outputs of norms and activations; selective recomputation drops them.
        layer_input: Input of the layer: all that full recomputation saves.
    """

    required: int | Fraction = 0
    recomputable: int = 0
    layer_input: int = 0

    def elements(self, recompute: Recompute, *, is_layer_kernel: bool = True) -> int | Fraction:
        """Elements saved until the backward pass [1].

        Args:
            recompute: Recomputation mode.
            is_layer_kernel: Whether it is a kernel of a layer: the head is never recomputed.
        """
        if recompute == "full" and is_layer_kernel:
            return self.layer_input
        return (
            self.required
            + self.layer_input
            + (self.recomputable if recompute != "selective" else 0)
        )


class SavingPlan(Protocol):
    """Plan values that decide copies among saved tensors: a whole plan, or a kernel's part."""

    @property
    def tp(self) -> int:
        """Chips that share a kernel [1]."""

    @property
    def save(self) -> Save:
        """Saved inputs: split over tp, or gathered."""

    @property
    def is_expert_parallel(self) -> bool:
        """True if ep is not 1."""


def saved_tensors(
    shape: Shape, plan: SavingPlan | None, element_bytes: Fraction
) -> dict[str, SavedElements]:
    """Saved elements of each kernel, by name.

    A norm and a linear kernel save their input; attention q, k, v, its output and softmax sums; an
    activation its inputs, gates of attention too; a router its scores and choices. A residual
    belongs to the kernel before it. With `save: gathered` inputs count once for each chip of tp.

    Args:
        shape: The model.
        plan: The plan; None: every tensor once.
        element_bytes: Bytes per element [byte].
    """
    width, attention = shape.D, trained_attention(shape)
    saved = {"embed": SavedElements(layer_input=width), "unembed": SavedElements(shape.V, width)}
    if isinstance(attention, Gqa):
        values, gates = attention.N * attention.value, attention.gates
        into = attention.N * attention.H + attention.kv_cache_elements
        saved["qkv"] = SavedElements(recomputable=width)
    else:
        key, rank = attention.N * (attention.nope + attention.rope), attention.q_rank
        values = attention.N * attention.v
        into, gates = 2 * key + values, values * attention.gate
        if rank is None:
            saved["qkv"] = SavedElements(attention.kv_rank, width)
        else:
            saved["qkv-down"] = SavedElements(attention.kv_rank + rank, width)
            saved["q-up"] = SavedElements(recomputable=rank)
        saved["kv-up"] = SavedElements(recomputable=attention.kv_rank)
    sums = attention.N * SOFTMAX_SUM_BYTES / element_bytes
    saved["attention"] = SavedElements(into + values + sums)
    saved["o"] = SavedElements(width + gates, values * (gates > 0))
    if (mlp := shape.mlp) is not None:
        saved["gate-up"] = SavedElements((1 + mlp.gated) * mlp.F, width)
        saved["down"] = SavedElements(recomputable=mlp.F, layer_input=width)
    if (moe := shape.moe) is not None:
        inner, shared = 1 + moe.gated, moe.shared * moe.Fe
        last_kernel = "shared" if shared else "experts"
        saved["router"] = SavedElements(2 * moe.E, width)
        saved["experts"] = SavedElements(moe.k * (width + inner * moe.Fe), moe.k * moe.Fe)
        saved["shared"] = SavedElements(inner * shared, shared)
        saved[last_kernel] = saved[last_kernel]._replace(layer_input=width)
    if plan is not None and plan.save == "gathered":
        shares_tokens = not plan.is_expert_parallel or (moe is not None and moe.shared > 0)
        for name in saved.keys() & {*GATHERED_INPUTS}:
            if name != "router" or shares_tokens:
                saved[name] = saved[name]._replace(recomputable=plan.tp * saved[name].recomputable)
    return saved


def vectors_of(shape: Shape) -> dict[str, int]:
    """Norm and bias parameters in one layer, by the kernel whose collectives carry them [1].

    Attention's, and the norms of width D, go with the first kernel; an MLP's and the experts' with
    `gate-up` and `router`; the final norm with the unembedding.
    """
    width, attention, mlp, moe = shape.D, shape.attention, shape.mlp, shape.moe
    norms = shape.norms_per_layer * shape.norm + attention.norms()
    vectors = dict.fromkeys(INPUT_KERNELS, norms + attention.biases(width))
    if mlp is not None:
        vectors["gate-up"] = mlp.biases(width)
    if moe is not None:
        vectors["router"] = moe.E * (int(moe.router_bias) + moe.expert.biases(moe.width(width)))
    final_norm = shape.model_norms * shape.norm + shape.outputs * shape.head_bias
    return {**vectors, "unembed": final_norm}


MLP_KERNELS = ("gate-up", "down")
END_KERNELS = ("embed", "unembed")
SEND = "send"


@dataclass(frozen=True)
class Stage:
    """Layers of one pipeline stage.

    Attributes:
        index: Position in the pipeline, from 0 [1].
        dense_layers, moe_layers: Layers with an MLP, and with experts [1].
        has_embedding, has_head: Whether it has the embedding, and the LM head.
    """

    index: int
    dense_layers: int
    moe_layers: int
    has_embedding: bool
    has_head: bool

    @property
    def layers(self) -> int:
        """Layers on this stage [1]."""
        return self.dense_layers + self.moe_layers

    def kernel_count(self, kernel: str) -> int:
        """Copies of a kernel on this stage, by kernel name [1]."""
        counts = {
            **dict.fromkeys(MLP_KERNELS, self.dense_layers),
            **dict.fromkeys(EXPERT_KERNELS, self.moe_layers),
            "embed": int(self.has_embedding),
            "unembed": int(self.has_head),
            SEND: 1,
        }
        return counts.get(kernel, self.layers)


def stages_of(shape: Shape, plan: StatePlan) -> tuple[Stage, ...]:
    """Split layers over stages: numbers differ by one at most; the last and the first have fewer.

    Layers with an MLP come before those with experts.
    """
    min_layers, extra = divmod(shape.layers, plan.pp)
    order = [*range(1, plan.pp - 1), 0, plan.pp - 1] if plan.pp > 1 else [0]
    larger_stages = set(order[:extra])
    stage_layers = [min_layers + (index in larger_stages) for index in range(plan.pp)]
    chunks = plan.pp * plan.interleave
    dense_layers = [0] * plan.pp
    layer = 0
    for chunk in range(chunks):
        stage = chunk % plan.pp
        size = stage_layers[stage] // plan.interleave
        dense_layers[stage] += max(min(layer + size, shape.mlp_layers) - layer, 0)
        layer += size
    return tuple(
        Stage(
            index,
            dense_layers[index],
            layer_count - dense_layers[index],
            index == 0,
            index == plan.pp - 1,
        )
        for index, layer_count in enumerate(stage_layers)
    )


def stage_kinds(stages: Sequence[Stage]) -> tuple[tuple[Stage, int], ...]:
    """Kinds of stages by their layers: the first stage of each kind, with their number.

    The first has the most micro-batches in flight, so the most memory, within its kind.
    """
    stages_by_kind: dict[Stage, list[Stage]] = {}
    for stage in stages:
        stages_by_kind.setdefault(replace(stage, index=0), []).append(stage)
    return tuple((stages_alike[0], len(stages_alike)) for stages_alike in stages_by_kind.values())


class ParameterShare(NamedTuple):
    """Parameters of a chip with the same replicas.

    Attributes:
        parameter_count: Parameters [1].
        weight_bytes: Bytes per weight [byte].
        replicas: Chips with equal parameters.
    """

    parameter_count: Fraction
    weight_bytes: Fraction
    replicas: ChipGroup

    def stored(self, *, is_shared: bool) -> Fraction:
        """Parameters that a chip stores: its part if replicas share them [1]."""
        return self.parameter_count / (self.replicas.chips if is_shared else 1)


SHARDED_STATES: Mapping[Shard, tuple[bool, bool, bool]] = {
    "none": (False, False, False),
    "optimizer": (False, False, True),
    "gradients": (False, True, True),
    "weights": (True, True, True),
}
"""Whether replicas share weights, gradients and optimizer states, by `shard`."""


class StageMemory(NamedTuple):
    """Peak memory per chip on one stage, without workspace.

    Attributes:
        states: Weights, gradients and optimizer states [byte].
        saved_per_chunk: Activations saved by a chunk (layers between two sends), per token [byte].
        transient: Activations that one micro-batch at a time needs, per token [byte].
        max_in_flight: Chunks with saved activations at once, with many micro-batches [1].
        chunks: Chunks on the stage: `interleave` [1].
    """

    states: Fraction
    saved_per_chunk: Fraction
    transient: Fraction
    max_in_flight: int
    chunks: int

    def saved(self, micro_batches: int) -> Fraction:
        """Activation memory per token: chunks in flight * saved_per_chunk + transient [byte]."""
        return (
            self.saved_per_chunk * min(self.max_in_flight, micro_batches * self.chunks)
            + self.transient
        )


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model and its dtypes, shared by its plans.

    Attributes:
        shape: The model.
        sizes: Bytes per element by class of tensors [byte].
    """

    shape: Shape
    sizes: Mapping[str, Fraction]

    @cached_property
    def _parameters(self) -> Parameters:
        return parameters_of(self.shape)

    @cached_property
    def vectors(self) -> Mapping[str, int]:
        """Norm and bias parameters of a layer by kernel: `vectors_of` [1]."""
        return vectors_of(self.shape)

    @cached_property
    def saved_once(self) -> Mapping[str, SavedElements]:
        """Saved elements of each kernel, every tensor once, in the activation dtype."""
        return saved_tensors(self.shape, None, self.sizes["activations"])

    @cached_property
    def parameters_on(self) -> Memo[Stage, tuple[int, int, int, int]]:
        """Parameters on a stage, all chips together: weights, experts, embedding, LM head [1]."""
        return Memo(self._count_parameters)

    def _count_parameters(self, stage: Stage) -> tuple[int, int, int, int]:
        """Count the parameters for `parameters_on`."""
        shape, counts = self.shape, self._parameters
        routed = counts.experts // max(shape.moe_layers, 1)
        dense = counts.mlp // max(shape.mlp_layers, 1)
        routing = (counts.shared + counts.router) // max(shape.moe_layers, 1)
        weights = (
            stage.layers * (counts.attention // shape.layers + self.vectors[INPUT_KERNELS[0]])
            + stage.dense_layers * (dense + self.vectors.get("gate-up", 0))
            + stage.moe_layers * (routing + self.vectors.get("router", 0))
            + stage.has_head * self.vectors["unembed"]
        )
        is_tied_here = shape.tied and stage.has_embedding
        head = 0 if is_tied_here else stage.has_head * shape.table
        return weights, stage.moe_layers * routed, stage.has_embedding * counts.embedding, head


@dataclass(frozen=True, eq=False)
class PlannedStates:
    """Stages, with their weights, gradients and optimizer states.

    Attributes:
        model: The model with its dtypes.
        plan: Plan values that decide them.
    """

    model: TrainedModel
    plan: StatePlan

    @cached_property
    def stages(self) -> tuple[tuple[Stage, int], ...]:
        """Kinds of stages: the first stage of each kind, with their number."""
        return stage_kinds(stages_of(self.model.shape, self.plan))

    @cached_property
    def optimizer_bytes(self) -> Fraction:
        """Optimizer states per parameter: Adam's master weight and moments, or as given [byte]."""
        if self.plan.optimizer != "adam":
            return exact(self.plan.optimizer)
        sizes = self.model.sizes
        return sizes["master"] + MOMENTS * sizes["moments"]

    def parameters(self, stage: Stage) -> tuple[ParameterShare, ...]:
        """Parameters per chip on a stage: weights, token tables and experts."""
        plan, sizes = self.plan, self.model.sizes
        tp, expert_shards = plan.weights.stride, plan.experts.stride
        weights, experts, embedding, head = self.model.parameters_on[stage]
        weight_count = Fraction(weights, tp) + self._copied_parameters(stage)
        table_count = Fraction(embedding + head, tp)
        table_bytes = embedding * sizes["head"] + head * sizes[LM_HEAD]
        mean_table_bytes = table_bytes / max(embedding + head, 1)  # in the mean of both
        return (
            ParameterShare(weight_count, sizes["weights"], plan.weights),
            ParameterShare(table_count, mean_table_bytes, plan.weights),
            ParameterShare(Fraction(experts, expert_shards), sizes["experts"], plan.experts),
        )

    def _copied_parameters(self, stage: Stage) -> Fraction:
        """Replicated parameters per chip on a stage, beyond its even weight share [1]."""
        attention, routed = self._copied_per_layer
        return stage.layers * attention + stage.moe_layers * routed

    @cached_property
    def _copied_per_layer(self) -> tuple[Fraction, Fraction]:
        """Replicated parameters in one layer: in attention, and in the router [1]."""
        shape, tp = self.model.shape, self.plan.weights.stride
        experts = copied_routing_weights(shape, tp)
        of_layers = copied_weights(shape, tp) - shape.moe_layers * experts
        return of_layers / shape.layers, experts

    def bytes_on(self, stage: Stage) -> Fraction:
        """Weights, gradients and optimizer states per chip [byte], exact."""
        total = Fraction(0)
        for share in self.parameters(stage):
            parts = share.weight_bytes, self.model.sizes["gradients"], self.optimizer_bytes
            for size, shared in zip(parts, SHARDED_STATES[self.plan.shard], strict=True):
                total += share.stored(is_shared=shared) * size
        return total

    def max_in_flight(self, stage: Stage) -> int:
        """Chunks with saved activations at once on a stage, with many micro-batches [1].

        1F1B: pp - i on stage i; interleaved with v chunks: 2 (pp - i - 1) + (v - 1) pp + 1.

        Source: Narayanan et al. 2021 (arXiv 2104.04473).
        """
        remaining_stages, chunks = self.plan.pp - stage.index, self.plan.interleave
        return (
            remaining_stages
            if chunks == 1
            else 2 * (remaining_stages - 1) + (chunks - 1) * self.plan.pp + 1
        )


@dataclass(frozen=True, eq=False)
class PlannedModel:
    """A model under a parallelism plan.

    Attributes:
        model: The model with its dtypes.
        plan: The plan.
    """

    model: TrainedModel
    plan: TrainingPlan

    @cached_property
    def saved(self) -> Mapping[str, SavedElements]:
        """Saved elements of each kernel, by name."""
        return saved_tensors(self.model.shape, self.plan, self.model.sizes["saved"])

    @cached_property
    def states(self) -> PlannedStates:
        """Stages, with weights, gradients and optimizer states."""
        return PlannedStates(self.model, StatePlan.from_plan(self.plan))

    def _layer_elements(self, stage: Stage, recompute: Recompute) -> int | Fraction:
        """Elements per token that a stage's layers save, over all tp chips [1]."""
        return sum(
            stage.kernel_count(name) * saved.elements(recompute)
            for name, saved in self.saved.items()
            if name not in END_KERNELS
        )

    def _transient_elements(self, stage: Stage) -> int | Fraction:
        """Elements per token that one micro-batch at a time needs, over all tp chips [1].

        The LM head's, with the final norm's input; and one layer's while it is recomputed.
        """
        head = (
            self.saved["unembed"].elements(self.plan.recompute, is_layer_kernel=False)
            + self.model.shape.D
        )
        elements = stage.has_head * head
        if self.plan.recompute == "full":
            kinds = [(1, 0)] * bool(stage.dense_layers) + [(0, 1)] * bool(stage.moe_layers)
            layers = (replace(stage, dense_layers=dense, moe_layers=moe) for dense, moe in kinds)
            elements += max(self._layer_elements(layer, "none") for layer in layers)
        return elements

    def memory(self, stage: Stage) -> StageMemory:
        """Peak memory per chip on a stage."""
        plan = self.plan
        token_bytes = self.model.sizes["saved"] * Fraction(plan.micro_batch, plan.tp * plan.cp)
        return StageMemory(
            self.states.bytes_on(stage),
            self._layer_elements(stage, plan.recompute) * token_bytes / plan.interleave,
            self._transient_elements(stage) * token_bytes,
            self.states.max_in_flight(stage),
            plan.interleave,
        )
