"""Memory of a chip in training: weights, gradients, optimizer states and activation memory.

Activations are saved between a micro-batch's forward and backward pass. Sources: Korthikanti et al.
2022 (arXiv 2205.05198) for saved tensors, Rajbhandari et al. 2020 (arXiv 1910.02054) for ZeRO.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rooflines.basics.memo import Memo
from rooflines.models.architecture import ROUTER, Gqa
from rooflines.models.parameter_counts import excess_weights, parameters_of, routing_matrices
from rooflines.models.state_layers import SHORT_CONV
from rooflines.models.tensor_dtypes import LM_HEAD, bits_of
from rooflines.theory.costs import BITS_PER_BYTE
from rooflines.training.optimizers import Elements, optimizer_of, orthogonalization_flops
from rooflines.training.parallel_plan import BASE_FORMATS, FUSED_LOSS, LOGITS, trained_attention
from rooflines.training.pipeline_stages import (
    ATTENTION_LAYERS,
    END_KERNELS,
    EXPERT_LAYERS,
    INDEX_LAYERS,
    INDEX_PROJECTIONS,
    INDEXER,
    INPUT_KERNELS,
    LATENT_IN,
    LATENT_OUT,
    MLP_LAYERS,
    RECURRENCE,
    RECURRENT_LAYERS,
    STATE_IN,
    STATE_OUT,
    STATE_STEPS,
    Layers,
    Stage,
    single_layers,
    stage_kinds,
    stages_of,
)
from rooflines.training.plan_parts import ROUTED, SHARED, StatePlan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.models.architecture import Shape
    from rooflines.models.matrix import Matrix, Widths
    from rooflines.models.parameter_counts import Parameters
    from rooflines.training.adapters import Lora
    from rooflines.training.optimizers import Optimizer
    from rooflines.training.parallel_plan import (
        Base,
        ChipGroup,
        Loss,
        Recompute,
        Save,
        Shard,
        TrainingPlan,
    )

SOFTMAX_SUM_BYTES = 4
"""Bytes per softmax sum, whatever the activation dtype [byte]."""

SAME_FORMAT = Fraction(1)
"""Share where inputs have the other tensors' format [1]."""

GATHERED_INPUTS = (*INPUT_KERNELS, STATE_IN, "gate-up", ROUTER, "unembed")
"""Kernels whose input, a norm's output, is all-gathered over tp."""


class SavedElements(NamedTuple):
    """Elements that one layer's kernel saves per token, over all tp chips [1].

    Attributes:
        required: Saved unless whole layers are recomputed.
        recomputable: Outputs of norms and activations; selective recomputation drops them.
        layer_input: Input of the layer: all that full recomputation saves.
    """

    required: int | Fraction = 0
    recomputable: int | Fraction = 0
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


def saved_tensors(  # noqa: PLR0913, all that decides them
    shape: Shape,
    plan: SavingPlan | None,
    element_bytes: Fraction,
    *,
    lora: Lora | None = None,
    loss: Loss = "logits",
    input_share: Fraction = SAME_FORMAT,
) -> dict[str, SavedElements]:
    """Saved elements of each kernel, by name.

    A norm and a linear kernel save their input; attention q, k, v, its output and softmax sums; an
    activation its inputs, gates of attention too; a router its scores and choices. A recurrence
    saves what its projection made, before the convolution, and its output; states are computed
    again, chunk by chunk, as mamba_ssm and flash-linear-attention do. An indexer saves its queries,
    keys and weights. A residual belongs to the kernel before it. With `save: gathered` inputs count
    once for each chip of tp.

    Args:
        shape: The model.
        plan: The plan; None: every tensor once.
        element_bytes: Bytes per element [byte].
        lora: Adapters on frozen weights: a frozen kernel saves its input only for an adapter, and
            an adapter what it projects to its rank; None: all weights are trained.
        loss: Logits are saved unless the loss is fused or in chunks.
        input_share: Bytes per matmul input over `element_bytes` [1].
    """
    width, moe = shape.D, shape.moe
    logits = shape.V if loss == LOGITS else 0
    residual = SavedElements(layer_input=width) if shape.single else SavedElements(width)
    saved = {
        "embed": SavedElements(layer_input=width),
        "unembed": SavedElements(logits, width),
        **_saved_by_attention(shape, element_bytes, residual),
        **_saved_by_states(shape, residual),
        **_saved_by_experts(shape),
    }
    if (mlp := shape.mlp) is not None:
        saved["gate-up"] = SavedElements((1 + mlp.gated) * mlp.F, width)
        saved["down"] = SavedElements(recomputable=mlp.F, layer_input=width)
    if input_share != 1:
        saved |= _saved_in_formats(shape, saved, input_share)
    if lora is not None:
        saved |= _saved_with_adapters(shape, lora, saved, input_share)
    if plan is not None and plan.save == "gathered":
        is_gathered = {ROUTER: routes_gathered_tokens(shape, plan.is_expert_parallel)}
        if moe is not None and moe.shared:
            is_gathered[ROUTER] = True  # the shared experts' input
        for name in saved.keys() & {*GATHERED_INPUTS}:
            if is_gathered.get(name, True):
                saved[name] = saved[name]._replace(recomputable=plan.tp * saved[name].recomputable)
    return saved


def _saved_by_attention(
    shape: Shape, element_bytes: Fraction, residual: SavedElements
) -> dict[str, SavedElements]:
    """Saved elements by kernel, for attention and an indexer."""
    width, attention, saved = shape.D, trained_attention(shape), dict[str, SavedElements]()
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
    saved["o"] = SavedElements(
        residual.required + gates, values * (gates > 0), residual.layer_input
    )
    if (sparse := shape.sparse) is not None:
        saved |= dict.fromkeys(INDEX_PROJECTIONS, SavedElements())
        queries = sparse.heads * (sparse.dim + int(sparse.weighted))
        saved[INDEXER] = SavedElements(queries + sparse.dim)
    return saved


def _saved_by_experts(shape: Shape) -> dict[str, SavedElements]:
    """Saved elements by kernel, for experts; the last one has the residual."""
    if (moe := shape.moe) is None:
        return {}
    width, inner, shared = shape.D, 1 + moe.gated, moe.shared * moe.Fe
    inputs = moe.k * moe.width(width)
    saved = {
        ROUTER: SavedElements(2 * moe.E, width),
        ROUTED: SavedElements(inputs + moe.k * inner * moe.Fe, moe.k * moe.Fe),
    }
    if moe.latent is not None:
        saved |= {LATENT_IN: SavedElements(), LATENT_OUT: SavedElements(moe.latent)}
    if shared:
        saved[SHARED] = SavedElements(inner * shared, shared)
    last_kernel = [*saved][-1]
    saved[last_kernel] = saved[last_kernel]._replace(layer_input=width)
    return saved


def routes_gathered_tokens(shape: Shape, is_expert_parallel: bool) -> bool:  # noqa: FBT001
    """True if tokens are gathered over tp before a router: for experts that tp shares.

    Routed experts alone with a latent width have tokens gathered behind the projection to it.

    Args:
        shape: The model.
        is_expert_parallel: Whether chips share whole experts.
    """
    moe = shape.moe
    return moe is not None and not is_expert_parallel and (moe.latent is None or moe.shared > 0)


def _saved_by_states(shape: Shape, residual: SavedElements) -> dict[str, SavedElements]:
    """Saved elements by kernel, for a state; empty without one.

    The projection saves the norm's output, and low ranks; the recurrence its convolution's inputs,
    decays and steps, and its output; the projection back gates, and their products. Gated
    convolutions keep both gates and their input. Beside attention both mixers have one norm and one
    residual.

    Sources: `MambaSplitConv1dScanCombinedFn` and `MambaInnerFn` in mamba_ssm,
    `ChunkGatedDeltaRuleFunction` in flash-linear-attention, which keeps more.
    """
    if (state := shape.state) is None:
        return {}
    norm, values = shape.D, state.heads * state.value
    if state.beside:
        norm, residual = 0, SavedElements()
    required, gates = state.conv_channels + state.step_elements + values, values
    if state.kind == SHORT_CONV:
        required, gates = 3 * values, 0
    has_steps = state.rank is not None
    saved = {
        STATE_IN: SavedElements(0 if has_steps else state.low_ranks, norm),
        RECURRENCE: SavedElements(required),
        STATE_OUT: SavedElements(residual.required + gates, values, residual.layer_input),
    }
    return saved | ({STATE_STEPS: SavedElements(state.low_ranks, values)} if has_steps else {})


def _saved_with_adapters(
    shape: Shape, lora: Lora, saved: Mapping[str, SavedElements], input_share: Fraction
) -> Iterator[tuple[str, SavedElements]]:
    """Saved elements by kernel, in a layer with frozen weights.

    Experts are one kernel with two inputs: tokens, for gate and up, and their activations, for
    down. The shared ones' tokens are the router's input.
    """
    ranks, moe = dict[str, int](), shape.moe
    with_input = set[tuple[str, bool]]()
    for adapter in lora.adapters(shape).every:
        ranks[adapter.kernel] = ranks.get(adapter.kernel, 0) + lora.rank * adapter.active
        with_input.add((adapter.kernel, adapter.is_down))
    for name, tensors in saved.items():
        if name in END_KERNELS or name == "attention":
            continue
        is_mlp_of_experts = moe is not None and name in (ROUTED, SHARED)
        input_kernel = SHARED if name == ROUTER else name
        keeps_tokens = any(kernel == input_kernel for kernel, _ in with_input)
        if is_mlp_of_experts or name == ROUTER:
            keeps_tokens = (input_kernel, False) in with_input
        keeps_last = (name, True) in with_input if is_mlp_of_experts else keeps_tokens
        inputs = 0 if keeps_tokens else _required_inputs(shape, name) * input_share
        yield (
            name,
            tensors._replace(
                required=tensors.required - inputs + ranks.get(name, 0),
                recomputable=tensors.recomputable if keeps_last else 0,
            ),
        )


def _saved_in_formats(
    shape: Shape, saved: Mapping[str, SavedElements], input_share: Fraction
) -> Iterator[tuple[str, SavedElements]]:
    """Saved elements by kernel; matmul inputs are counted in the other tensors' size.

    Attention's output stays in its format, and so do inputs to routers and the LM head.
    """
    for name, tensors in saved.items():
        if name in (*END_KERNELS, "attention", RECURRENCE, INDEXER, ROUTER):
            continue
        yield (
            name,
            tensors._replace(
                required=tensors.required - _required_inputs(shape, name) * (1 - input_share),
                recomputable=tensors.recomputable * input_share,
            ),
        )


def _required_inputs(shape: Shape, kernel: str) -> int:
    """Required elements per token that a matmul reads: experts' inputs, or low ranks [1]."""
    inputs = {}
    if (moe := shape.moe) is not None:
        inputs = {ROUTED: moe.k * moe.width(shape.D), LATENT_OUT: moe.latent or 0}
    if (state := shape.state) is not None:
        inputs[STATE_IN if state.rank is None else STATE_STEPS] = state.low_ranks
    return inputs.get(kernel, 0)


def vectors_of(shape: Shape) -> dict[str, int]:
    """Norm and bias parameters in one layer, by the kernel whose collectives carry them [1].

    A mixer's, and the norms of width D, go with its first kernel, an indexer's with its keys; an
    MLP's and the experts' with `gate-up` and `router`, with the norms where a layer is one part;
    the final norm with the unembedding.
    """
    width, attention, mlp, moe = shape.D, shape.attention, shape.mlp, shape.moe
    norms = shape.norms_per_layer * shape.norm
    feed_norms = norms if shape.single else 0
    mixer = norms + attention.norms() + attention.biases(width)
    vectors = dict.fromkeys(INPUT_KERNELS, mixer)
    if shape.sparse is not None:
        vectors[INDEX_PROJECTIONS[-1]] = 2 * shape.sparse.dim
    if (state := shape.state) is not None:
        vectors[STATE_IN] = state.vector_elements() + (0 if state.beside else norms)
    if mlp is not None:
        vectors["gate-up"] = mlp.biases(width) + feed_norms
    if moe is not None:
        of_experts = moe.E * (int(moe.router_bias) + moe.expert.biases(width))
        vectors[ROUTER] = of_experts + (moe.latent or 0) * moe.latent_norm + feed_norms
    final_norm = shape.model_norms * shape.norm + shape.outputs * shape.head_bias
    return {**vectors, "unembed": final_norm}


GATHERED_LAYERS = 2
"""Layers whose weights are gathered at once: one that runs, and the next [1]."""

OPENED_BASES = ("nf4", "nf4-single")
"""Frozen formats that are opened to 16 bits before they are multiplied."""

LOGIT_COPY_BYTES = 8
"""Bytes per logit that a loss holds beside those saved: an fp32 copy, and its gradient [byte]."""


def frozen_sizes(sizes: Mapping[str, Fraction], base: Base) -> dict[str, Fraction]:
    """Bytes per element by tensor class with frozen weights, see `BASE_FORMATS` [byte]."""
    if base is None:
        return dict(sizes)
    size = bits_of(BASE_FORMATS[base]) / BITS_PER_BYTE
    return {**sizes, "weights": size, "experts": size}


class ParameterShare(NamedTuple):
    """Parameters of a chip with the same replicas.

    Attributes:
        elements: Parameters by tensor kind.
        weight_bytes: Bytes per weight [byte].
        replicas: Chips with equal parameters.
        is_trained: Whether they have gradients and states; else they are frozen.
    """

    elements: Elements
    weight_bytes: Fraction
    replicas: ChipGroup
    is_trained: bool = True

    @property
    def parameter_count(self) -> Fraction:
        """Parameters [1]."""
        return self.elements.total

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
        gathered: In flight beside them: gathered weights, and gradients before their scatter
            [byte].
        loss: In flight: logits that the loss holds, per token [byte].
    """

    states: Fraction
    saved_per_chunk: Fraction
    transient: Fraction
    max_in_flight: int
    chunks: int
    gathered: Fraction
    loss: Fraction

    def saved(self, micro_batches: int) -> Fraction:
        """Activation memory per token: chunks in flight * saved_per_chunk + transient [byte]."""
        return (
            self.saved_per_chunk * min(self.max_in_flight, micro_batches * self.chunks)
            + self.transient
        )

    def counted(self, micro_batches: int, factor: Fraction | None) -> tuple[Fraction, Fraction]:
        """Bytes that `fits` counts: fixed, and per token [byte].

        Args:
            micro_batches: Micro-batches per step [1].
            factor: Peak over states and saved tensors, so that the peak counts; None: states and
                saved tensors [1].
        """
        saved = self.saved(micro_batches)
        if factor is None:
            return self.states, saved
        return self.states * factor + self.gathered, saved * factor + self.loss


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
    def counts(self) -> Parameters:
        """Parameters by part."""
        return parameters_of(self.shape)

    @property
    def input_share(self) -> Fraction:
        """Bytes per saved matmul input over other saved tensors' [1]."""
        return self.sizes["saved_inputs"] / self.sizes["saved"]

    @cached_property
    def vectors(self) -> Mapping[str, int]:
        """Norm and bias parameters of a layer by kernel: `vectors_of` [1]."""
        return vectors_of(self.shape)

    @cached_property
    def parameters_on(self) -> Memo[Stage, StageParameters]:
        """Parameters on a stage, all chips together."""
        return Memo(self._count_parameters)

    def _count_parameters(self, stage: Stage) -> StageParameters:
        """Count the parameters for `parameters_on`."""
        shape, counts = self.shape, self.counts
        routed = counts.experts // max(shape.moe_layers, 1)
        is_tied_here = shape.tied and stage.has_embedding
        carriers = self.vectors.keys() - {*INPUT_KERNELS[1:]}
        return StageParameters(
            matrices=sum(
                getattr(stage.mix, kind) * elements for kind, elements in self.matrices.items()
            ),
            vectors=sum(stage.kernel_count(name) * self.vectors[name] for name in carriers),
            experts=stage.mix.experts * routed,
            embedding=stage.has_embedding * counts.embedding,
            head=0 if is_tied_here else stage.has_head * shape.table,
        )

    @cached_property
    def layer_matmuls(self) -> Mapping[str, tuple[Matrix, ...]]:
        """Matmuls in one layer by kind, without shared and routed experts."""
        shape = self.shape
        matmuls = {ATTENTION_LAYERS: shape.attention.matrices(shape.D)}
        if shape.sparse is not None:
            rank = getattr(shape.attention, "q_rank", None)
            matmuls[INDEX_LAYERS] = shape.sparse.matrices(shape.D, rank)
        if shape.state is not None:
            matmuls[RECURRENT_LAYERS] = shape.state.matrices(shape.D)
        if shape.mlp is not None:
            matmuls[MLP_LAYERS] = shape.mlp.matrices(shape.D)
        matmuls[EXPERT_LAYERS] = tuple(routing_matrices(shape))
        return matmuls

    @cached_property
    def matrices(self) -> Mapping[str, int]:
        """Matrix parameters in one layer by kind, except routed experts [1]."""
        shape = self.shape
        elements = {
            kind: sum(matrix.weights for matrix in matmuls)
            for kind, matmuls in self.layer_matmuls.items()
        }
        if (moe := shape.moe) is not None:
            elements[EXPERT_LAYERS] += moe.shared * moe.expert.weights(shape.D)
        return elements

    def matrices_on(self, stage: Stage) -> Iterator[Matrices]:
        """Layer matrices on a stage, experts among them."""
        shape, mix = self.shape, stage.mix
        yield from _matrices(shape.attention.projections(shape.D), mix.attention)
        if shape.sparse is not None:
            rank = getattr(shape.attention, "q_rank", None)
            yield from _matrices(shape.sparse.projections(shape.D, rank), mix.indexers)
        if shape.state is not None:
            yield from _matrices(shape.state.projections(shape.D), mix.states)
        if shape.mlp is not None:
            yield from _matrices(shape.mlp.projections(shape.D), mix.mlps)
        if (moe := shape.moe) is not None:
            yield Matrices(shape.D, moe.E, mix.experts)
            if moe.latent is not None:
                yield Matrices(shape.D, moe.latent, 2 * mix.experts)
            routed = moe.expert.projections(moe.width(shape.D))
            for width, out in routed.values():
                yield Matrices(width, out, mix.experts * moe.E, is_expert=True)
            for width, out in moe.expert.projections(shape.D).values():
                yield Matrices(width, out, mix.experts * moe.shared)

    def adapters_on(self, stage: Stage, lora: Lora) -> Iterator[Matrices]:
        """Adapter matrices on a stage: down to the rank, and up from it."""
        part_layers = (stage.mix.attention, stage.mix.mlps, stage.mix.experts)
        for adapters, layers in zip(lora.adapters(self.shape), part_layers, strict=True):
            for adapter in adapters:
                is_expert, count = adapter.kernel == ROUTED, layers * adapter.copies
                yield Matrices(adapter.width, lora.rank, count, is_expert)
                yield Matrices(lora.rank, adapter.out, count, is_expert)

    def trained_parameters(self, lora: Lora | None) -> int:
        """Parameters that a training changes: all, or the adapters' [1]."""
        if lora is None:
            return self.counts.total
        whole = Stage.whole(self.shape)
        return int(sum(matrix.elements for matrix in self.adapters_on(whole, lora)))


class Matrices(NamedTuple):
    """Equal matrices.

    Attributes:
        width, out: Rows and columns [1].
        layers: How many there are, in the mean where kinds of layers are [1].
        is_expert: Whether routed experts have them.
    """

    width: int
    out: int
    layers: Layers
    is_expert: bool = False

    @property
    def elements(self) -> Layers:
        """Elements in all [1]."""
        return self.width * self.out * self.layers

    @property
    def lines(self) -> Layers:
        """Rows and columns in all [1]."""
        return (self.width + self.out) * self.layers


def _matrices(widths: Widths, layers: Layers) -> Iterator[Matrices]:
    """Matrices for projections with an output, one a layer."""
    return (Matrices(*sizes, layers) for sizes in widths.values() if sizes[1])


class StageParameters(NamedTuple):
    """Parameters on a stage, all chips together [1].

    Attributes:
        matrices: Layer matrices, except routed experts.
        vectors: Norms and biases.
        experts: Routed experts.
        embedding: Token table and learned positions.
        head: LM head, where its table is not the embedding's on the stage.
    """

    matrices: Layers
    vectors: Layers
    experts: Layers
    embedding: int
    head: int

    @property
    def tables(self) -> tuple[int, int]:
        """Embedding, and LM head [1]."""
        return self.embedding, self.head


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
    def optimizer(self) -> Optimizer:
        """The optimizer."""
        return optimizer_of(self.plan.optimizer)

    @cached_property
    def sizes(self) -> Mapping[str, Fraction]:
        """Bytes per element by tensor class, with what the plan sets [byte]."""
        return self.optimizer.sizes_with(self.model.sizes)

    def parameters(self, stage: Stage) -> tuple[ParameterShare, ...]:
        """Parameters per chip on a stage: weights, token tables and experts.

        With adapters these are frozen, norms apart, and the adapters are trained.
        """
        plan, sizes, counts = self.plan, self.sizes, self.model.parameters_on[stage]
        tp, expert_shards = plan.weights.stride, plan.experts.stride
        copied, lora = self._copied_parameters(stage), plan.lora
        tables = sum(counts.tables)
        table_bytes = counts.embedding * sizes["head"] + counts.head * sizes[LM_HEAD]
        width = self.model.shape.D
        table_lines = Fraction(sum(count // width + width for count in counts.tables if count))
        lines: dict[bool, Layers] = {True: 0, False: 0}
        for matrix in self.model.matrices_on(stage):
            lines[matrix.is_expert] += matrix.lines
        weights = Elements(
            matrices=Fraction(counts.matrices, tp) + copied,
            vectors=Fraction(counts.vectors, tp),
            lines=Fraction(lines[False], tp),
        )
        table = Elements(tables=Fraction(tables, tp), lines=table_lines / tp)
        experts = Elements(
            matrices=Fraction(counts.experts, expert_shards),
            lines=Fraction(lines[True], expert_shards),
        )
        is_trained = lora is None
        shares = [
            ParameterShare(weights, sizes["weights"], plan.weights, is_trained),
            ParameterShare(
                table,
                table_bytes / max(tables, 1),  # in the mean of both
                plan.weights,
                is_trained,
            ),
            ParameterShare(experts, sizes["experts"], plan.experts, is_trained),
        ]
        if lora is not None:
            frozen = frozen_sizes(sizes, plan.base)
            norms = Elements(vectors=weights.vectors)
            weights = weights._replace(vectors=Fraction(0))
            adapters = [*self.model.adapters_on(stage, lora)]
            trained, in_experts = (
                Elements(
                    matrices=Fraction(sum(matrix.elements for matrix in part), chips),
                    lines=Fraction(sum(matrix.lines for matrix in part), chips),
                )
                for part, chips in (
                    ([matrix for matrix in adapters if not matrix.is_expert], tp),
                    ([matrix for matrix in adapters if matrix.is_expert], expert_shards),
                )
            )
            shares = [
                ParameterShare(weights, frozen["weights"], plan.weights, is_trained),
                ParameterShare(norms, sizes["activations"], plan.weights, is_trained),
                shares[1],
                ParameterShare(experts, frozen["experts"], plan.experts, is_trained),
                ParameterShare(trained, sizes["activations"], plan.weights),
            ]
            if in_experts.total:
                shares.append(ParameterShare(in_experts, sizes["activations"], plan.experts))
        return tuple(shares)

    def trained_matrices(self, stage: Stage) -> Iterator[Matrices]:
        """Layer or adapter matrices that the optimizer changes on a stage."""
        lora = self.plan.lora
        return (
            self.model.matrices_on(stage) if lora is None else self.model.adapters_on(stage, lora)
        )

    def orthogonalization_flops(self, stage: Stage) -> Fraction:
        """FLOP per chip to orthogonalize matrices, dealt evenly [FLOP]."""
        if not self.optimizer.orthogonalizes:
            return Fraction(0)
        _, _, is_shared = SHARDED_STATES[self.plan.shard]
        flops = Fraction(0)
        for is_expert, ring in ((False, self.plan.weights), (True, self.plan.experts)):
            matrices = [
                (matrix.width, matrix.out, matrix.layers)
                for matrix in self.trained_matrices(stage)
                if matrix.is_expert == is_expert
            ]
            chips = ring.stride * (ring.chips if is_shared else 1)
            flops += orthogonalization_flops(matrices) / chips
        return flops

    def _copied_parameters(self, stage: Stage) -> Fraction:
        """Replicated parameters per chip on a stage, beyond its even weight share [1]."""
        copied = self._copied_per_layer.items()
        return sum((getattr(stage.mix, kind) * count for kind, count in copied), Fraction(0))

    @cached_property
    def _copied_per_layer(self) -> Mapping[str, Fraction]:
        """Replicated parameters in one layer by kind [1]."""
        tp = self.plan.weights.stride
        return {
            kind: sum((excess_weights(matrix, tp) for matrix in matmuls), Fraction(0))
            for kind, matmuls in self.model.layer_matmuls.items()
        }

    def bytes_on(self, stage: Stage) -> Fraction:
        """Weights, gradients and optimizer states per chip [byte], exact."""
        total, gradient_bytes = Fraction(0), self.sizes["gradients"]
        shares_weights, shares_gradients, _ = SHARDED_STATES[self.plan.shard]
        for share in self.parameters(stage):
            total += share.stored(is_shared=shares_weights) * share.weight_bytes
            if share.is_trained:
                total += 0 if self.plan.offloads_states else self.optimizer_states(share)
                if self.plan.gradients == "kept":
                    total += share.stored(is_shared=shares_gradients) * gradient_bytes
        if self.plan.gradients == "freed":
            replicas = self.plan.weights.chips if shares_gradients else 1
            total += self._largest_tensor(stage) * gradient_bytes / replicas
        return total

    def frozen_bytes_on(self, stage: Stage) -> Fraction:
        """Frozen weights per chip [byte]."""
        is_shared, _, _ = SHARDED_STATES[self.plan.shard]
        frozen = (share for share in self.parameters(stage) if not share.is_trained)
        return sum(
            (share.stored(is_shared=is_shared) * share.weight_bytes for share in frozen),
            Fraction(0),
        )

    def optimizer_states(self, share: ParameterShare) -> Fraction:
        """Master weights and states for a chip's part in trained parameters [byte]."""
        _, _, is_shared = SHARDED_STATES[self.plan.shard]
        whole = self.optimizer.state_bytes(share.elements, self.sizes)
        return whole / (share.replicas.chips if is_shared else 1)

    def _largest_tensor(self, stage: Stage) -> Fraction:
        """Elements per chip in the largest trained tensor on a stage [1]."""
        counts, tp = self.model.parameters_on[stage], self.plan.weights.stride
        sizes = [
            Fraction(
                matrix.width * matrix.out, self.plan.experts.stride if matrix.is_expert else tp
            )
            for matrix in self.trained_matrices(stage)
            if matrix.layers
        ]
        if self.plan.lora is None:
            sizes += [Fraction(table, tp) for table in counts.tables]
        return max(sizes, default=Fraction(0))

    def gathered_on(self, stage: Stage) -> Fraction:
        """Weights and gradients in flight per chip, where replicas share weights [byte].

        Two layers' weights, since the next is gathered ahead; one layer's gradients before their
        scatter; and one layer's frozen 4-bit weights, opened to the activations' format.
        """
        if self.plan.shard != "weights":
            return Fraction(0)
        opened_bytes = self.sizes["activations"] if self.plan.base in OPENED_BASES else 0
        in_flight = [Fraction(0)]
        for layer in single_layers(self.model.shape, stage):
            weights = gradients = opened = Fraction(0)
            for share in self.parameters(layer):
                if share.replicas.chips == 1:
                    continue
                weights += share.parameter_count * share.weight_bytes
                if share.is_trained:
                    gradients += share.parameter_count * self.sizes["gradients"]
                else:
                    opened += share.elements.matrices * opened_bytes
            in_flight.append(GATHERED_LAYERS * weights + gradients + opened)
        return max(in_flight)

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
        plan = self.plan
        return saved_tensors(
            self.model.shape,
            plan,
            self.model.sizes["saved"],
            lora=plan.lora,
            loss=plan.loss,
            input_share=self.model.input_share,
        )

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
        if self._holds_one_layer:
            recompute = "none" if self.plan.recompute == "full" else self.plan.recompute
            layers = single_layers(self.model.shape, stage)
            elements += max(self._layer_elements(layer, recompute) for layer in layers)
        return elements

    @property
    def _holds_one_layer(self) -> bool:
        """True if one layer at a time has tensors on the chip that others do not save there."""
        return self.plan.recompute == "full" or "saved" in self.plan.offload

    @property
    def _logits(self) -> Fraction:
        """Logits in flight per token beside those saved: a chunk's, or all [1].

        A stack's fitted working memory has them if the loss saves logits.
        """
        loss, vocabulary = self.plan.loss, Fraction(self.model.shape.V)
        if loss == FUSED_LOSS or (loss == LOGITS and self.plan.stack is not None):
            return Fraction(0)
        return vocabulary if loss == LOGITS else vocabulary / int(loss)

    def memory(self, stage: Stage) -> StageMemory:
        """Peak memory per chip on a stage."""
        saved_per_chunk, transient, loss = self.activations(stage)
        return StageMemory(
            self.states.bytes_on(stage),
            saved_per_chunk,
            transient,
            self.states.max_in_flight(stage),
            self.plan.interleave,
            self.states.gathered_on(stage),
            loss,
        )

    def activations(self, stage: Stage) -> tuple[Fraction, Fraction, Fraction]:
        """Activations per token: saved by a chunk, transient, and the loss's logits [byte]."""
        plan = self.plan
        tokens = Fraction(plan.micro_batch, plan.tp * plan.cp)
        token_bytes = self.model.sizes["saved"] * tokens
        saved = Fraction(0)
        if "saved" not in plan.offload:
            saved = self._layer_elements(stage, plan.recompute) * token_bytes / plan.interleave
        return (
            saved,
            self._transient_elements(stage) * token_bytes,
            stage.has_head * self._logits * LOGIT_COPY_BYTES * tokens,
        )
