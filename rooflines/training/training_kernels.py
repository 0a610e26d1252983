"""Kernels of a training step on one chip: forward, and backward by input and by weights.

A group (`rooflines.models.groups`) with weights becomes three kernels of equal FLOPs: `fwd`,
`dgrad` and `wgrad`. Attention, and a recurrence, become two: `fwd`, and `bwd` with twice the FLOPs;
states and scores are not saved, and repeating them counts as hardware FLOPs only. A collective
belongs to the kernel that waits for it.

Sparse attention trains as in DeepSeek-V3.2 (arXiv 2512.02556, 2.1.1): an indexer scores all tokens
and learns from chosen ones, so its backward pass has pairs with these alone; its input is detached
from the graph, so its projections have no `dgrad`. Its loss is not counted, for which attention
scores are summed over heads.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, groupby
from typing import TYPE_CHECKING, NamedTuple, cast

from rooflines.basics.memo import Memo
from rooflines.kinds.kind_table import KINDS
from rooflines.kinds.role_costs import role_costs
from rooflines.models.architecture import PREFILL, ROUTER, Gqa
from rooflines.models.groups import groups_of
from rooflines.models.state_layers import DELTA_RULE, SHORT_CONV
from rooflines.models.step_kernels import StepKernels, copies_of
from rooflines.models.tensor_dtypes import LM_HEAD
from rooflines.theory.attention_window import AttentionWindow
from rooflines.theory.costs import BITS_PER_BYTE
from rooflines.theory.extents import ActivatedExperts, B, Pairs, S, Size, T
from rooflines.theory.kernel import (
    NETWORK_BYTES,
    OFFLOAD_BYTES,
    ExpertRouting,
    Kernel,
    Transfer,
    sent_bytes,
)
from rooflines.theory.network import ALL_TO_ALL, Route, stage_sends, strided_route
from rooflines.theory.poly import ONE, ZERO, Poly, constant, total
from rooflines.theory.resources import (
    MATH,
    Resource,
    collective_times,
    math_rate,
    sum_collective_times,
    work_of,
    work_time,
)
from rooflines.theory.routing import UNIFORM, rank_hit_probability
from rooflines.theory.tori import TorusRoute
from rooflines.training.optimizers import optimizer_of
from rooflines.training.parallel_plan import FUSED_LOSS, ChipGroup, trained_attention
from rooflines.training.pipeline_stages import (
    END_KERNELS,
    INDEX_PROJECTIONS,
    INDEXER,
    RECURRENCE,
    SEND,
    STATE_IN,
    STATE_OUT,
)
from rooflines.training.plan_parts import (
    EXPERT_KERNELS,
    ROUTED,
    LayerPlan,
    SendPlan,
    StatePlan,
)
from rooflines.training.stage_memory import (
    GATHERED_INPUTS,
    SHARDED_STATES,
    PlannedModel,
    PlannedStates,
    TrainedModel,
    frozen_sizes,
    routes_gathered_tokens,
    saved_tensors,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rooflines.models.architecture import Shape
    from rooflines.models.groups import Group, StepExtents
    from rooflines.models.step_kernels import Copies
    from rooflines.theory.extents import Extent, Product
    from rooflines.theory.network import Link
    from rooflines.theory.resources import ChipRates, CollectiveTimes, RunCount
    from rooflines.theory.tori import AxisMapping, TorusLoad
    from rooflines.training.adapters import Adapter
    from rooflines.training.parallel_plan import TrainingPlan
    from rooflines.training.pipeline_stages import Stage
    from rooflines.training.stage_memory import SavedElements
    from rooflines.training.torus_plans import Key

GATHER, SCATTER, REDUCE = "all-gather", "reduce-scatter", "all-reduce"

MICRO_BATCH, MICRO_BATCHES = Size("micro_batch"), Size("micro_batches")
"""Extents that only training has: sequences per micro-batch, and micro-batches per step."""

BACKWARD, REPEATED_FORWARD = "bwd", "again"
"""Suffixes of kernels: backward pass of attention, and forward pass repeated by recomputation."""

MODEL = Resource("model", "model_flops", "", math_rate)
ALL_PAIRS = Resource("model_full", "model_full_flops", "", math_rate)
"""Model FLOPs for MFU, no recomputation: causal pairs in attention, or all pairs, as some papers
count."""
HARDWARE = Resource("hardware", "hardware_flops", "", math_rate)
"""Hardware FLOPs for HFU: with recomputation, and scores repeated in fused attention's backward."""

BACKWARD_REPEAT = Fraction(5, 4)
"""FLOPs of a fused attention backward pass over the required ones: 5 products for 4 [1]; as many
in a recurrence that adds to a state."""

INDEXER_REPEAT, DELTA_REPEAT = Fraction(3, 2), Fraction(4, 3)
"""The same for an indexer, 3 products for 2, and for the delta rule, 8 for 6 [1]."""

BETWEEN_PODS, ON_TORUS = 1, 4
"""Network levels beside a torus: dcn between pods, and the first level for axis weights."""

TO_HOST, FROM_HOST = 2, 3
"""Host link's levels among a kernel's interconnects, after inner and outer: its two directions are
separate networks."""

HALVES = 2
"""Torus halves between which a token is copied once [1]."""

HOST_COPY, HOST_ENDS = ALL_TO_ALL, 2
"""Transfer kind for copies between chip and host, and how many ends their link has [1]."""

ADAPTER = "lora"
"""Suffix for adapter kernels."""

MICRO_BATCH_TOKENS = (MICRO_BATCH, T)
"""Extents whose product is a micro-batch's tokens."""


EVERY_MICRO_BATCH = Poly({(MICRO_BATCHES,): Fraction(1)})
LATER_MICRO_BATCHES = EVERY_MICRO_BATCH + constant(-1)
ONCE_PER_STEP = ONE
"""Runs of a kernel per step: in every micro-batch, in all but the first, or once [1]."""


@dataclass(frozen=True, eq=False)
class KernelRun:
    """A kernel of a training step, with its works in one layer and one micro-batch.

    Attributes:
        kernel: The kernel; its count covers the layers of all stages.
        runs_per_step: `EVERY_MICRO_BATCH`, `LATER_MICRO_BATCHES` or `ONCE_PER_STEP`.
        stage_part: Key of `Stage.kernel_count` for its layers; empty where `only_stage` is given.
        share: Share of these layers with the kernel [1].
        only_stage: Kind of stage that runs it once per step, after the last micro-batch.
    """

    kernel: Kernel
    runs_per_step: Poly
    stage_part: str = ""
    share: Fraction = Fraction(1)
    only_stage: Stage | None = None

    def repeats_on(self, stage: Stage) -> Fraction:
        """Runs on a stage per micro-batch, or per step for `only_stage` [1]."""
        if self.only_stage is not None:
            return Fraction(self.only_stage == stage)
        return self.share * stage.kernel_count(self.stage_part)


@dataclass(frozen=True, eq=False)
class KernelRuns:
    """Kernels that several plans may share.

    Attributes:
        runs: The kernels, in order.
    """

    runs: tuple[KernelRun, ...]

    @cached_property
    def by_runs_per_step(self) -> list[tuple[Poly, list[tuple[RunCount, Kernel]]]]:
        """Kernels with their layer counts, grouped by their number per step."""
        kernels: dict[Poly, list[tuple[RunCount, Kernel]]] = {}
        for run in self.runs:
            kernels.setdefault(run.runs_per_step, []).append((run.kernel.count, run.kernel))
        return [*kernels.items()]

    @cached_property
    def works(self) -> Memo[str, Poly]:
        """Works per step on all stages, by column [FLOP or byte]."""
        return Memo(self._work)

    def _work(self, column: str) -> Poly:
        return total(
            runs_per_step * work_of(column, parts) for runs_per_step, parts in self.by_runs_per_step
        )

    def work_time(self, resource: Resource, machine: ChipRates) -> Poly:
        """Time on a resource, except the network, all stages together [s]."""
        return total(
            runs_per_step * work_time(resource, parts, machine)
            for runs_per_step, parts in self.by_runs_per_step
        )

    def collective_times(self, machine: ChipRates) -> CollectiveTimes:
        """Collective times, network by network, all stages together [s]."""
        return sum_collective_times(
            (runs_per_step, collective_times(parts, machine))
            for runs_per_step, parts in self.by_runs_per_step
        )


def all_pairs(extent: Extent) -> Product:
    """All pairs, T * S, for attended pairs."""
    return (T, S) if isinstance(extent, Pairs) else (extent,)


@dataclass(frozen=True, eq=False)
class ModelKernels:
    """Kernels that a trained model's plans share.

    Attributes:
        model: The model with its dtypes.
        compute: Compute dtypes: linear kernels; attention and LM head.
    """

    model: TrainedModel
    compute: tuple[str, str]

    @classmethod
    def with_dtypes(
        cls, shape: Shape, bits: Mapping[str, Fraction], compute: tuple[str, str]
    ) -> ModelKernels:
        """Kernels with these dtypes.

        Args:
            shape: The model.
            bits: Bits per element by tensor class [bit].
            compute: Compute dtypes: linear kernels; attention and LM head.
        """
        sizes = {name: Fraction(size) / BITS_PER_BYTE for name, size in bits.items()}
        saved = sizes.get("saved", sizes["activations"])
        return cls(TrainedModel(shape, {"saved": saved, "saved_inputs": saved, **sizes}), compute)

    @cached_property
    def groups(self) -> Mapping[str, tuple[Group, ...]]:
        """Groups by the first one's name; those that depend on the same `LayerPlan` together."""
        groups = groupby(
            groups_of(self.model.shape, PREFILL, scores_all=True),
            lambda group: group.name in EXPERT_KERNELS and group.name,
        )
        together = [tuple(members) for _, members in groups]
        return {members[0].name: members for members in together}

    @cached_property
    def over(self) -> Memo[tuple[tuple[Link, ...], Link | None, AxisMapping | None], LinkedKernels]:
        """Kernels over interconnects, inner first, none on one chip; a link to the host; axes."""
        return Memo(lambda links: LinkedKernels(self, *links))


@dataclass(frozen=True, eq=False)
class LinkedKernels:
    """Kernels over interconnects, each by the plan values that decide it.

    Attributes:
        kernels: The model's kernels.
        links: The interconnects, inner first; empty for one chip.
        host: The link to the host, for what is offloaded; None: nothing is.
        mapping: Mapping from the layout onto torus axes; None: there is none.
    """

    kernels: ModelKernels
    links: tuple[Link, ...]
    host: Link | None
    mapping: AxisMapping | None = None

    def runs(self, plan: TrainingPlan) -> tuple[KernelRuns, ...]:
        """Kernels on one chip: first per micro-batch, then once per step."""
        shape = self.kernels.model.shape
        layers = [
            self._layer_runs[name, LayerPlan.for_kernel(plan, shape, name)]
            for name in self.kernels.groups
        ]
        sends = [self._sends[SendPlan.from_plan(plan)]] if plan.pp > 1 else []
        return *layers, *sends, self._step_runs[StatePlan.from_plan(plan)]

    @cached_property
    def _layer_runs(self) -> Memo[tuple[str, LayerPlan], KernelRuns]:
        """Kernels in a micro-batch, by the first group's name."""

        def runs(key: tuple[str, LayerPlan]) -> KernelRuns:
            name, plan = key
            builder = LayerBuilder(self.kernels, self._routes, self.host, self._between_pods, plan)
            return KernelRuns(tuple(micro_batch_runs(builder, self.kernels.groups[name])))

        return Memo(runs)

    @cached_property
    def _sends(self) -> Memo[SendPlan, KernelRuns]:
        """Transfers between stages."""
        builder = KernelBuilder(self.kernels, self._routes, self.host, self._between_pods)
        return Memo(lambda plan: KernelRuns((stage_send(builder, plan),)))

    @cached_property
    def _step_runs(self) -> Memo[StatePlan, KernelRuns]:
        """Kernels that run once per step, for every kind of stage."""
        builder = KernelBuilder(self.kernels, self._routes, self.host, self._between_pods)
        model = self.kernels.model
        return Memo(lambda plan: KernelRuns(tuple(step_runs(builder, PlannedStates(model, plan)))))

    @cached_property
    def _routes(self) -> Memo[ChipGroup, Route | TorusRoute]:
        """Routes between chips in the layout, in a torus pod."""
        if (mapping := self.mapping) is not None:
            return Memo(lambda group: mapping.route(group.chips // group.pods, group.stride))
        return Memo(lambda group: strided_route(self.links, group.chips, group.stride))

    @property
    def _between_pods(self) -> Link | None:
        """Interconnect between torus pods; None: there is none."""
        return self.links[1] if self.mapping is not None and len(self.links) > 1 else None


def amounts_of(groups: Iterable[KernelRuns], extents: StepExtents) -> dict[Key, float]:
    """Bytes in a step's collectives on a torus: payload times factor, by form and group [byte].

    Args:
        groups: Kernels with loads on a torus, over any mapping.
        extents: The step's extents.
    """
    amounts: dict[Key, float] = {}
    for runs in groups:
        for run in runs.runs:
            for transfer in run.kernel.transfers:
                if (load := transfer.load) is None or transfer.group is None:
                    continue
                factor = run.kernel.count * run.runs_per_step.at(extents) * load.factor
                amount = float(factor * transfer.payload.at(extents))
                key = (load.form, *transfer.group)
                amounts[key] = amounts.get(key, 0.0) + amount
    return amounts


@dataclass(frozen=True, eq=False)
class TrainingKernels(StepKernels):
    """Kernels of a training step; `sharing.split` is a `TrainingPlan`.

    Attributes:
        kernels: The model's kernels, one object for all plans.
    """

    kernels: ModelKernels = field(kw_only=True)

    @property
    def plan(self) -> TrainingPlan:
        """Parallelism plan of the step."""
        return cast("TrainingPlan", self.sharing.split)

    @property
    def works(self) -> Mapping[str, Poly]:
        """Empty: works are known only with their collectives."""
        return {}

    @cached_property
    def planned(self) -> PlannedModel:
        """The model under this plan."""
        return PlannedModel(self.kernels.model, self.plan)

    @property
    def stages(self) -> tuple[tuple[Stage, int], ...]:
        """Kinds of stages: the first stage of each kind, with their number."""
        return self.planned.states.stages

    @property
    def copies(self) -> Iterator[Copies]:
        """Replicated parts within a tensor-parallel group; an indexer's tokens are split."""
        groups = chain.from_iterable(self.kernels.groups.values())
        return copies_of((group for group in groups if group.name != INDEXER), self.sharing)

    def runs_over(
        self, links: tuple[Link, ...], host: Link | None = None, mapping: AxisMapping | None = None
    ) -> tuple[KernelRuns, ...]:
        """Kernels on one chip: first per micro-batch, then once per step.

        Args:
            links: The interconnects, inner first; empty for one chip.
            host: The link to the host, for a plan that offloads.
            mapping: Mapping onto torus axes.
        """
        return self.kernels.over[links, host, mapping].runs(self.plan)

    def kernels_on(self, links: tuple[Link, ...]) -> tuple[Kernel, ...]:
        """Kernels of `runs_over`, without their number per step."""
        return tuple(run.kernel for runs in self.runs_over(links) for run in runs.runs)


@dataclass(frozen=True, eq=False)
class KernelBuilder:
    """Builder of kernels and collectives, whatever the plan.

    Attributes:
        kernels: Kernels of the model, with its dtypes.
        routes: Routes between chips of the layout.
        host: The link to the host; None: nothing is offloaded.
        between_pods: The interconnect between torus pods; None: there is none.
    """

    kernels: ModelKernels
    routes: Memo[ChipGroup, Route | TorusRoute]
    host: Link | None
    between_pods: Link | None

    @property
    def model(self) -> TrainedModel:
        """The model with its dtypes."""
        return self.kernels.model

    @property
    def shape(self) -> Shape:
        """Architecture of the model."""
        return self.model.shape

    @property
    def sizes(self) -> Mapping[str, Fraction]:
        """Bytes per element by class of tensors [byte]."""
        return self.model.sizes

    def collective(self, kind: str, payload: Poly, group: ChipGroup) -> tuple[Transfer, ...]:
        """Build a collective; empty for one chip or an empty payload."""
        if group.chips == 1 or not payload:
            return ()
        inside = group.chips // group.pods
        transfers: tuple[Transfer, ...] = ()
        if inside > 1:
            route = self.routes[group]
            if isinstance(route, TorusRoute):
                transfers = (on_torus(kind, payload, route.load(kind), group),)
            else:
                transfers = (Transfer(kind, payload, route, route.bytes_per_payload_byte(kind)),)
        return transfers + self.pod_collective(kind, payload / inside, group.pods)

    def pod_collective(self, kind: str, payload: Poly, pods: int) -> tuple[Transfer, ...]:
        """Build a collective between torus pods; empty for one, or without a network.

        Args:
            kind: The collective.
            payload: A chip's shard [byte].
            pods: Pods, in each of which a chip has that shard [1].
        """
        if pods == 1 or self.between_pods is None:
            return ()
        route = Route((self.between_pods,), (pods,))
        sent = route.bytes_per_payload_byte(kind)
        return (Transfer(kind, payload, route, sent, first_level=BETWEEN_PODS),)

    def host_copy(self, payload: Poly, level: int) -> tuple[Transfer, ...]:
        """Build a copy between chip and host; empty for an empty payload.

        Args:
            payload: Bytes copied [byte].
            level: `TO_HOST` or `FROM_HOST`: each direction has the link's whole bandwidth.
        """
        if self.host is None or not payload:
            return ()
        route = Route((replace(self.host, hop_latency_s=Fraction(0)),), (HOST_ENDS,))
        return (Transfer(HOST_COPY, payload, route, (Fraction(1),), first_level=level),)

    def token_bytes(self, elements: int | Fraction, share: Fraction, tensors: str) -> Poly:
        """Bytes per chip for elements in every token [byte].

        Args:
            elements: Elements per token [1].
            share: Token share per chip [1].
            tensors: Tensor class.
        """
        return (
            Poly({MICRO_BATCH_TOKENS: elements * self.sizes[tensors] * share}) if elements else ZERO
        )

    def chip_kernel(
        self,
        name: str,
        transfers: tuple[Transfer, ...] = (),
        works: Mapping[str, Poly] | None = None,
        *,
        linear: bool = True,
    ) -> Kernel:
        """Build a kernel on one chip from its transfers and its other works by column."""
        between_chips, copies = (
            tuple(
                sent for sent in transfers if (sent.first_level in (TO_HOST, FROM_HOST)) == is_copy
            )
            for is_copy in (False, True)
        )
        all_works = {
            **(works or {}),
            NETWORK_BYTES: sent_bytes(between_chips),
            OFFLOAD_BYTES: sent_bytes(copies),
        }
        nonzero_works = {name: work for name, work in all_works.items() if work}
        return Kernel(name, self.kernels.compute[0 if linear else 1], nonzero_works, transfers)


def on_torus(
    kind: str,
    payload: Poly,
    load: TorusLoad,
    group: ChipGroup,
    routing: ExpertRouting | None = None,
) -> Transfer:
    """Build a collective on torus axes.

    Args:
        kind: The collective.
        payload: As in `Transfer` [byte].
        load: Its load on the axes.
        group: The chips that it joins.
        routing: Routing to experts, for token copies.
    """
    return Transfer(
        kind,
        payload,
        load.route,
        (load.sent,),
        routing=routing,
        first_level=ON_TORUS,
        load=load,
        group=(group.chips // group.pods, group.stride),
    )


@dataclass(frozen=True, eq=False)
class LayerBuilder(KernelBuilder):
    """Builder of a group's kernels in a micro-batch.

    Attributes:
        plan: Plan values that decide them.
    """

    plan: LayerPlan

    @cached_property
    def sizes(self) -> Mapping[str, Fraction]:
        """Bytes per element by tensor class, with what the plan sets [byte]."""
        sizes = optimizer_of(self.plan.optimizer).sizes_with(self.model.sizes)
        return sizes if self.plan.lora is None else frozen_sizes(sizes, self.plan.base)

    @cached_property
    def saved(self) -> Mapping[str, SavedElements]:
        """Saved elements of each kernel, by name; true for the kernels with this plan."""
        return self._saved(self.plan, "saved")

    @cached_property
    def saved_once(self) -> Mapping[str, SavedElements]:
        """Saved elements of each kernel, every tensor once, in the activation dtype."""
        return self._saved(None, "activations")

    def _saved(self, plan: LayerPlan | None, tensors: str) -> Mapping[str, SavedElements]:
        return saved_tensors(
            self.shape,
            plan,
            self.sizes[tensors],
            lora=self.plan.lora,
            loss=self.plan.loss,
            input_share=Fraction(1) if plan is None else self.model.input_share,
        )

    @cached_property
    def adapters(self) -> Mapping[str, tuple[Adapter, ...]]:
        """Adapters beside each kernel, by its name."""
        by_kernel: dict[str, tuple[Adapter, ...]] = {}
        if self.plan.lora is not None:
            for adapter in self.plan.lora.adapters(self.shape).every:
                by_kernel[adapter.kernel] = (*by_kernel.get(adapter.kernel, ()), adapter)
        return by_kernel

    def offloaded(self, saved_bytes: Poly, level: int) -> tuple[Transfer, ...]:
        """Copy a layer's saved tensors to the host, or back."""
        return self.host_copy(saved_bytes, level) if self.plan.offloads_saved else ()

    def activation_bytes(self, elements: int | Fraction, tensors: str = "activations") -> Poly:
        """Activations or saved tensors per chip, from elements per token [byte]."""
        return self.token_bytes(elements, self.plan.token_share, tensors)

    def hidden_gathers(self, times: int) -> tuple[Transfer, ...]:
        """Hidden-state all-gathers over tp; reduce-scatters send as much."""
        return self.token_gathers(self.shape.D, times)

    def token_gathers(self, width: int, times: int) -> tuple[Transfer, ...]:
        """All-gathers over tp for tokens with a width [1]."""
        whole = self.activation_bytes(width * self.plan.tp)
        return self.collective(GATHER, whole, ChipGroup(self.plan.tp)) * times

    def weight_gathers(self, weights: Poly) -> tuple[Transfer, ...]:
        """All-gather of a kernel's weights before it runs: FSDP only."""
        is_gathered = self.plan.shard == "weights"
        return self.collective(GATHER, weights, self.plan.replicas) if is_gathered else ()

    def gradient_scatters(self, gradients: Poly) -> tuple[Transfer, ...]:
        """Reduce-scatter of a kernel's gradients in every micro-batch: ZeRO-2 and FSDP."""
        return self.collective(SCATTER, gradients, self.plan.replicas)


def micro_batch_runs(builder: LayerBuilder, groups: Iterable[Group]) -> Iterator[KernelRun]:
    """Kernels that groups run in one micro-batch on one chip."""
    layers = builder.shape.attention_layers
    for group in groups:
        name = group.name.removesuffix("-window").removesuffix("-chunk")
        share = Fraction(group.count, layers) if name == "attention" else Fraction(1)
        passes = _embedding(builder) if name == "embed" else _passes(builder, group, name)
        for run in passes:
            kernel = replace(run.kernel, count=group.count)
            yield replace(run, kernel=kernel, stage_part=name, share=share)


def stage_send(builder: KernelBuilder, plan: SendPlan) -> KernelRun:
    """Transfer between pipeline stages, as a kernel in every micro-batch."""
    kernel = builder.chip_kernel(SEND, (_stage_transfer(builder, plan),))
    return KernelRun(replace(kernel, count=plan.stages.chips), EVERY_MICRO_BATCH, SEND)


def step_runs(builder: KernelBuilder, planned: PlannedStates) -> Iterator[KernelRun]:
    """Kernels that run once per step, for every kind of stage."""
    for index, (stage, stage_count) in enumerate(planned.stages):
        yield from _optimizer_runs(
            builder, planned, stage, stage_count, f"-{index + 1}" if index else ""
        )


def _optimizer_runs(
    builder: KernelBuilder, planned: PlannedStates, stage: Stage, stage_count: int, suffix: str
) -> Iterator[KernelRun]:
    """Optimizer step on a chip's shard, with its collectives for gradients and weights.

    The kind `adam` has its bytes, for states with any size: it reads gradients and states, and
    writes states and weights. Offloaded states are changed by the host, which gets the gradients
    and sends the weights. Frozen weights take no part.

    Args:
        builder: Builder over the interconnects.
        planned: Stages and states.
        stage: The kind of stage.
        stage_count: Stages of this kind [1].
        suffix: Ending for the kernel names.
    """
    shard, sizes = planned.plan.shard, planned.sizes
    is_offloaded = planned.plan.offloads_states
    _, _, is_shared = SHARDED_STATES[shard]
    moved_bytes, transfers = Fraction(0), list[Transfer]()
    copies = list[Transfer]()
    for share in planned.parameters(stage):
        if not share.is_trained:
            continue
        stored = share.stored(is_shared=is_shared)
        states = Fraction(0) if is_offloaded else planned.optimizer_states(share)
        values = {
            "parameters": stored,
            "state_bytes": states / (stored or 1),
            "gradient_bytes": sizes["gradients"],
            "copy_bytes": share.weight_bytes,
        }
        moved_bytes += sum(amount for _, amount in role_costs(KINDS["adam"], {}, values).elements)
        if is_offloaded:
            copies += builder.host_copy(constant(stored * sizes["gradients"]), TO_HOST)
            copies += builder.host_copy(constant(stored * share.weight_bytes), FROM_HOST)
        gradients = constant(share.parameter_count * sizes["gradients"])
        weights = constant(share.parameter_count * share.weight_bytes)
        if shard in ("none", "optimizer"):
            kind = REDUCE if shard == "none" else SCATTER
            transfers += builder.collective(kind, gradients, share.replicas)
        if shard in ("optimizer", "gradients"):
            transfers += builder.collective(GATHER, weights, share.replicas)
        between_pods = planned.plan.pods // share.replicas.pods
        shard_of_pod = gradients / (share.replicas.chips // share.replicas.pods)
        transfers += builder.pod_collective(REDUCE, shard_of_pod, between_pods)
    flops = constant(0 if is_offloaded else planned.orthogonalization_flops(stage))
    works = {
        MATH.work: flops,
        HARDWARE.work: flops,
        "weight_bytes": constant(moved_bytes),
        "memory_bytes": constant(moved_bytes),
    }
    kernels = [builder.chip_kernel(f"optimizer{suffix}", tuple(copies), works, linear=not flops)]
    kernels += [builder.chip_kernel(f"replicas{suffix}", tuple(transfers))] * bool(transfers)
    for kernel in kernels:
        yield KernelRun(replace(kernel, count=stage_count), ONCE_PER_STEP, only_stage=stage)


def _embedding(builder: LayerBuilder) -> Iterator[KernelRun]:
    """Embedding: rows read and written in three passes, and the table's collectives."""
    width = builder.shape.D
    moved, saved = builder.activation_bytes(2 * width), builder.activation_bytes(width, "saved")
    shape, plan = builder.shape, builder.plan
    passes = 3 if plan.lora is None else 1
    works = {"memory_bytes": saved * 2, "activation_bytes": moved * passes}
    yield KernelRun(
        builder.chip_kernel("embed", builder.hidden_gathers(2), works), EVERY_MICRO_BATCH
    )
    rows = shape.positions + (0 if plan.is_tied else shape.V)  # a tied table is the unembedding's
    table = Fraction(rows * width, plan.tp)
    transfers = builder.weight_gathers(constant(table * builder.sizes["head"]))
    if plan.lora is None:
        transfers += builder.gradient_scatters(constant(table * builder.sizes["gradients"]))
    if transfers:
        yield KernelRun(builder.chip_kernel("embed-replicas", transfers), EVERY_MICRO_BATCH)


def _passes(builder: LayerBuilder, group: Group, name: str) -> Iterator[KernelRun]:
    """Kernels of a group: `fwd`, `again` in full recomputation, then `bwd`, or `dgrad`, `wgrad`."""
    plan = builder.plan
    is_end, is_linear = name in END_KERNELS, bool(group.weights)
    plan_saved, saved_elements = (
        tensors[name].elements(plan.recompute, is_layer_kernel=not is_end)
        for tensors in (builder.saved, builder.saved_once)
    )
    saved_bytes = builder.activation_bytes(plan_saved, "saved")
    elements = sum(_moved_elements(builder.shape, group))
    if is_end and plan.loss == FUSED_LOSS:
        elements -= builder.shape.V
    is_frozen = is_linear and plan.lora is not None
    full_traffic = builder.activation_bytes(elements)
    # Two of three passes move saved tensors as memory traffic: forward writes, wgrad reads them;
    # with frozen weights both passes, forward and dgrad.
    activation_traffic = builder.activation_bytes(
        max(elements - Fraction(2, 2 if is_frozen else 3) * saved_elements, Fraction(0))
    )
    to_host, from_host = (
        () if is_end else builder.offloaded(saved_bytes, level) for level in (TO_HOST, FROM_HOST)
    )
    flops = Poly(group.flops).replaced(_micro_batch) * plan.token_share
    backward_flops = _backward_flops(builder.shape, name, flops)
    repeated = _backward_repeat(builder.shape, name)
    shards = Fraction(1)  # an indexer's tokens are split, its heads are not
    if name != INDEXER:
        shards = group.share("weights", plan.tp, sequences=True) * plan.tp
    weights = _weights(builder, group, name)
    gather = builder.weight_gathers(weights.gathered)
    collectives = _layer_collectives(builder, group, name)

    def kernel(
        pass_name: str,
        transfers: tuple[Transfer, ...],
        moved_weights: Poly,
        saved_traffic: Poly,
        traffic: Poly,
    ) -> Kernel:
        model_flops = backward_flops if pass_name == BACKWARD else flops
        model_works = (
            {}
            if pass_name == REPEATED_FORWARD
            else {MODEL.work: model_flops, ALL_PAIRS.work: model_flops.replaced(all_pairs)}
        )
        math = model_flops * shards
        works = {
            **model_works,
            HARDWARE.work: math * repeated if pass_name == BACKWARD else math,
            MATH.work: math,
            "weight_bytes": moved_weights,
            "memory_bytes": moved_weights + saved_traffic,
            "activation_bytes": traffic,
        }
        return builder.chip_kernel(
            f"{group.name}-{pass_name}", transfers, works, linear=is_linear and not is_end
        )

    yield KernelRun(
        kernel(
            "fwd",
            gather + collectives.forward + to_host,
            weights.read,
            saved_bytes,
            activation_traffic,
        ),
        EVERY_MICRO_BATCH,
    )
    if plan.recompute == "full" and not is_end:
        yield KernelRun(
            kernel(REPEATED_FORWARD, collectives.repeated, weights.read, ZERO, full_traffic),
            EVERY_MICRO_BATCH,
        )
    if not is_linear:
        yield KernelRun(
            kernel(
                BACKWARD,
                collectives.backward + from_host,
                ZERO,
                saved_bytes,
                activation_traffic * 2,
            ),
            EVERY_MICRO_BATCH,
        )
        return
    if is_frozen:
        yield KernelRun(
            kernel(
                "dgrad",
                gather + collectives.backward + from_host,
                weights.read,
                saved_bytes,
                activation_traffic,
            ),
            EVERY_MICRO_BATCH,
        )
        if adapters := builder.adapters.get(name):
            yield from _adapter_passes(builder, group, adapters, collectives.inputs)
        return
    if name not in INDEX_PROJECTIONS:
        yield KernelRun(
            kernel("dgrad", gather + collectives.backward, weights.read, ZERO, activation_traffic),
            EVERY_MICRO_BATCH,
        )
    gradient_transfers = (
        collectives.inputs + builder.gradient_scatters(weights.scattered) + from_host
    )
    yield KernelRun(
        kernel("wgrad", gradient_transfers, weights.gradients, saved_bytes, activation_traffic),
        ONCE_PER_STEP,
    )
    yield KernelRun(
        kernel(
            "wgrad-add", gradient_transfers, weights.gradients * 2, saved_bytes, activation_traffic
        ),
        LATER_MICRO_BATCHES,
    )


def _adapter_passes(
    builder: LayerBuilder,
    group: Group,
    adapters: tuple[Adapter, ...],
    inputs: tuple[Transfer, ...],
) -> Iterator[KernelRun]:
    """Adapter kernels beside a frozen kernel, each with three passes with equal FLOPs.

    Args:
        builder: Builder with adapters.
        group: The frozen kernel's group.
        adapters: The adapters.
        inputs: All-gather for saved inputs, before weight gradients.
    """
    plan, sizes, lora = builder.plan, builder.sizes, builder.plan.lora
    if lora is None:
        return
    sizes_of = [(adapter, adapter.width + adapter.out) for adapter in adapters]
    used = lora.rank * sum(adapter.active * width for adapter, width in sizes_of)
    parameters = lora.rank * sum(adapter.copies * width for adapter, width in sizes_of)
    stored = Fraction(parameters, plan.tp if group.moe is None else plan.expert_shards)
    flops = Poly({MICRO_BATCH_TOKENS: 2 * used * plan.token_share})
    traffic = builder.activation_bytes(
        sum(adapter.active * (width + 2 * lora.rank) for adapter, width in sizes_of)
    )
    weights = constant(stored * sizes["activations"])
    read = weights
    if (activated := _activated(builder, group)) is not None:
        per_expert = Fraction(lora.rank * sum(width for _, width in sizes_of), plan.expert_shards)
        read = Poly({(activated,): per_expert * sizes["activations"]})
    gradients = constant(stored * sizes["gradients"])
    gather = builder.weight_gathers(weights)

    def run(
        pass_name: str, transfers: tuple[Transfer, ...], moved: Poly, runs: Poly = EVERY_MICRO_BATCH
    ) -> KernelRun:
        is_model = pass_name != REPEATED_FORWARD
        works = {
            **({MODEL.work: flops, ALL_PAIRS.work: flops} if is_model else {}),
            HARDWARE.work: flops,
            MATH.work: flops,
            "weight_bytes": moved,
            "memory_bytes": moved,
            "activation_bytes": traffic,
        }
        name = f"{group.name}-{ADAPTER}-{pass_name}"
        return KernelRun(builder.chip_kernel(name, transfers, works), runs)

    yield run("fwd", gather, read)
    if plan.recompute == "full":
        yield run(REPEATED_FORWARD, (), read)
    yield run("dgrad", gather, read)
    transfers = inputs + builder.gradient_scatters(gradients)
    yield run("wgrad", transfers, gradients, ONCE_PER_STEP)
    yield run("wgrad-add", transfers, gradients * 2, LATER_MICRO_BATCHES)


def _backward_flops(shape: Shape, kernel: str, forward: Poly) -> Poly:
    """FLOPs in a backward pass, twice the forward pass's; an indexer has chosen tokens alone."""
    if kernel == INDEXER and shape.sparse is not None:
        chosen = Pairs(AttentionWindow(shape.sparse.tokens))
        forward = forward.replaced(
            lambda extent: (chosen,) if isinstance(extent, Pairs) else (extent,)
        )
    return forward * 2


def _backward_repeat(shape: Shape, kernel: str) -> Fraction:
    """FLOPs in a backward pass over the required ones [1]."""
    if kernel == INDEXER:
        return INDEXER_REPEAT
    if kernel == RECURRENCE and shape.state is not None:
        by_kind = {**dict.fromkeys(DELTA_RULE, DELTA_REPEAT), SHORT_CONV: Fraction(1)}
        return by_kind.get(shape.state.kind, BACKWARD_REPEAT)
    return BACKWARD_REPEAT


def _micro_batch(extent: Extent) -> Product:
    """Sequences in a micro-batch, replacing those in the step."""
    return (MICRO_BATCH if extent == B else extent,)


def _moved_elements(shape: Shape, group: Group) -> tuple[int, int]:
    """Elements per token that a pass reads and writes [1]; gate and up are both written."""
    inputs, outputs = (int(sum(terms.values())) for terms in (group.reads, group.writes))
    if group.name.startswith("attention") and isinstance(shape.attention, Gqa):
        inputs += shape.attention.kv_cache_elements
    if group.name == "router" and shape.moe is not None:
        outputs += shape.moe.E
    if group.name == "gate-up" and shape.mlp is not None:
        outputs *= 1 + shape.mlp.gated
    if group.name in ("experts", "shared") and shape.moe is not None:
        moe = shape.moe
        hidden_elements = (moe.k if group.name == "experts" else moe.shared) * moe.Fe
        inputs, outputs = inputs + hidden_elements, outputs + (1 + moe.gated) * hidden_elements
    return inputs, outputs


class WeightBytes(NamedTuple):
    """Weight traffic of one kernel on one chip [byte].

    Attributes:
        read: Weights that a pass reads.
        gradients: Their gradients.
        gathered: All-gather payload: all weights, with the norms and biases sent along.
        scattered: Reduce-scatter payload: gradients for `gathered`.
    """

    read: Poly = ZERO
    gradients: Poly = ZERO
    gathered: Poly = ZERO
    scattered: Poly = ZERO


def _weights(builder: LayerBuilder, group: Group, name: str) -> WeightBytes:
    """Weight traffic for a group; reads count activated experts."""
    plan, sizes = builder.plan, builder.sizes
    if not group.weights:
        return WeightBytes()
    size = sizes[LM_HEAD if group.tensors == "head" else group.tensors or "weights"]
    (elements,) = group.weights.values()
    if group.moe is None:
        count = elements * group.share("weights", plan.tp)
        read = constant(count * size)
    else:
        shards, activated = plan.expert_shards, _activated(builder, group)
        count = elements * group.moe.E / shards
        read = constant(count * size)
        if activated is not None:
            read = Poly({(activated,): elements / shards * size})
    vectors = Fraction(builder.model.vectors.get(name, 0), plan.tp)
    if plan.lora is not None:
        gathered = constant(count * size + vectors * sizes["activations"])
        return WeightBytes(read, gathered=gathered)
    return WeightBytes(
        read,
        constant(count * sizes["gradients"]),
        constant(count * size + vectors * sizes["weights"]),
        constant((count + vectors) * sizes["gradients"]),
    )


def _activated(builder: LayerBuilder, group: Group) -> ActivatedExperts | None:
    """Routed experts that a micro-batch reads; None: every expert, or none."""
    moe, plan = group.moe, builder.plan
    if moe is None or moe.k == moe.E:
        return None
    tokens = plan.expert_shards * plan.token_share
    return ActivatedExperts(moe.E, moe.k, tokens, MICRO_BATCH_TOKENS)


class LayerCollectives(NamedTuple):
    """Collectives within a layer around one kernel, by pass.

    Attributes:
        forward, repeated, backward: Forward pass, its recomputation, and backward by input.
        inputs: All-gather of saved inputs for the gradients of weights.
    """

    forward: tuple[Transfer, ...] = ()
    repeated: tuple[Transfer, ...] = ()
    backward: tuple[Transfer, ...] = ()
    inputs: tuple[Transfer, ...] = ()


def _layer_collectives(builder: LayerBuilder, group: Group, name: str) -> LayerCollectives:
    """Collectives around a kernel, over tp, cp or ep."""
    plan = builder.plan
    if name == "attention":
        return _context_collectives(builder)
    if name == ROUTED and plan.is_expert_parallel:
        return _dispatch_collectives(builder, group)
    gathers, double_gathers = builder.hidden_gathers(1), builder.hidden_gathers(2)
    keeps_inputs = plan.save == "gathered" and plan.recompute != "selective"  # which drops them
    inputs = () if keeps_inputs else gathers
    shape, nothing = builder.shape, LayerCollectives()
    gathered_input = LayerCollectives(gathers, gathers, gathers, inputs)
    layer_output = LayerCollectives(gathers, (), gathers)
    mixer_output = layer_output if shape.single else LayerCollectives(gathers, gathers, gathers)
    by_kernel = {
        **dict.fromkeys(GATHERED_INPUTS, gathered_input),
        "o": mixer_output,
        STATE_OUT: mixer_output,
        "down": layer_output,
        ROUTED: layer_output,
        "shared": LayerCollectives(double_gathers, gathers, double_gathers, inputs)
        if plan.is_expert_parallel
        else nothing,
    }
    if not routes_gathered_tokens(shape, plan.is_expert_parallel):
        by_kernel[ROUTER] = nothing
        if shape.moe is not None:
            latents, double_latents = (
                builder.token_gathers(shape.moe.width(shape.D), times) for times in (1, 2)
            )
            by_kernel[ROUTED] = LayerCollectives(double_latents, latents, double_latents)
    if shape.state is not None and shape.state.beside:  # attention has the same input and output
        by_kernel |= {STATE_IN: nothing, STATE_OUT: nothing}
    return by_kernel.get(name, nothing)


def _context_collectives(builder: LayerBuilder) -> LayerCollectives:
    """Context-parallel collectives around attention: ring all-gather for keys, or head exchange."""
    plan, size = builder.plan, builder.sizes["activations"]
    attention = trained_attention(builder.shape)
    sequence = ChipGroup(plan.cp, plan.tp)
    key_elements = Fraction(attention.kv_cache_elements, min(plan.tp, attention.cache_heads))
    if plan.context == "ring":
        ring = Poly({MICRO_BATCH_TOKENS: key_elements * size})
        forward = builder.collective(GATHER, ring, sequence)
        return LayerCollectives(forward, forward, builder.collective(GATHER, ring * 2, sequence))
    if isinstance(attention, Gqa):
        query_elements = Fraction(attention.N * (attention.H + attention.value), plan.tp)
    else:
        key = attention.nope + attention.rope
        key_elements = query_elements = Fraction(attention.N * (key + attention.v), plan.tp)
    payload = Poly({MICRO_BATCH_TOKENS: (key_elements + query_elements) * size / plan.cp})
    forward = builder.collective(ALL_TO_ALL, payload, sequence)
    return LayerCollectives(forward, forward, forward)


def _dispatch_collectives(builder: LayerBuilder, group: Group) -> LayerCollectives:
    """All-to-alls of expert parallelism: dispatch and combine, reversed in the backward pass."""
    moe = group.moe
    if moe is None:
        return LayerCollectives()
    experts = ChipGroup(builder.plan.expert_shards)
    route = builder.routes[experts]
    routing = ExpertRouting(moe.E, moe.k, UNIFORM)

    def sent(tensors: str) -> Transfer:
        payload = builder.activation_bytes(moe.width(builder.shape.D), tensors)
        if isinstance(route, TorusRoute):
            copies = route.copies(rank_hit_probability(moe.E, moe.k, HALVES, UNIFORM))
            return on_torus(ALL_TO_ALL, payload, copies, experts, routing)
        amounts = route.dispatch_bytes(
            lambda parts: rank_hit_probability(moe.E, moe.k, parts, UNIFORM)
        )
        return Transfer(ALL_TO_ALL, payload, route, amounts, routing=routing)

    dispatch, combine = map(sent, ("activations", "combine"))
    return LayerCollectives((dispatch, combine), (dispatch,), (dispatch, combine))


def _stage_transfer(builder: KernelBuilder, plan: SendPlan) -> Transfer:
    """Transfer of activations to the next stage and gradients to the previous one, stage mean."""
    pp, route = plan.stages.chips, builder.routes[plan.stages]
    payload = builder.token_bytes(builder.shape.D * 2, plan.token_share, "activations")
    if isinstance(route, TorusRoute):
        sends = route.sends(Fraction(plan.interleave * pp - 1, pp))
        return on_torus(ALL_TO_ALL, payload, sends, plan.stages)
    sent = tuple(Fraction(sends, pp) for sends in stage_sends(route, plan.interleave))
    return Transfer(ALL_TO_ALL, payload, route, sent)
