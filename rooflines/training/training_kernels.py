"""The kernels of a step of training on one chip: forward, and backward by input and by weights.

Each group of the model (`rooflines.models.groups`) that has weights is three kernels of equal work:
`fwd`, `dgrad` and `wgrad`; attention is two, whose backward pass is twice its forward one. What is
sent between chips belongs to the kernel that waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, groupby
from typing import TYPE_CHECKING, NamedTuple, cast

from rooflines.models.architecture import PREFILL, TRAIN, Gqa
from rooflines.models.groups import SEQUENCES, UNIFORM, groups_of, rank_hit_probability
from rooflines.models.step_kernels import StepKernels, copies_of
from rooflines.models.tensor_dtypes import LM_HEAD
from rooflines.theory.kernel import NETWORK_BYTES, Kernel, Transfer, sent_bytes
from rooflines.theory.network import ALL_TO_ALL, Route, resolve_axes
from rooflines.theory.poly import ACTIVATED, ONE, WINDOWED_EXTENTS, ZERO, Poly, constant, total
from rooflines.theory.resources import (
    MATH,
    Resource,
    math_rate,
    sum_time_terms,
    time_terms,
    work_of,
)
from rooflines.training.stage_memory import (
    ENDS,
    EXPERTS,
    GATHERED,
    SEND,
    SHARDED,
    PlannedModel,
    TrainedModel,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rooflines.models.architecture import Shape
    from rooflines.models.groups import Group
    from rooflines.models.step_kernels import Copies, Sharing
    from rooflines.theory.network import Link
    from rooflines.theory.resources import ChipRates, RunCount, TimeTerms
    from rooflines.training.parallel_plan import TrainingPlan
    from rooflines.training.stage_memory import Stage

GATHER, SCATTER, REDUCE = "all-gather", "reduce-scatter", "all-reduce"

MICRO_BATCH, MICRO_BATCHES = "micro_batch", "micro_batches"
"""The extents of a step of training besides those of serving: sequences of a micro-batch, and
micro-batches of a step."""

BACKWARD, AGAIN = "bwd", "again"
"""The pass of attention that is twice its forward one, and a forward pass that is repeated."""

MODEL = Resource("model", "model_flops", "", math_rate)
ALL_PAIRS = Resource("model_full", "model_full_flops", "", math_rate)
"""The FLOP of the model, nothing repeated; of all pairs of tokens in attention, as some publish
it."""
HARDWARE = Resource("hardware", "hardware_flops", "", math_rate)
"""The FLOP that a step does with fused attention, which repeats its scores in the backward pass."""

SCORES_AGAIN = Fraction(5, 4)
"""What a fused backward pass of attention does over what has to be done: 5 products for 4 [1]."""

IN_MICRO_BATCH = ("gradients", "weights")
"""What replicas share that they send in every micro-batch."""

OWN_TOKENS = (MICRO_BATCH, "T")
"""The tokens of a micro-batch."""


EVERY = Poly({(MICRO_BATCHES,): Fraction(1)})
LATER = EVERY + constant(-1)
ONCE = ONE
"""How often a kernel runs in a step: in every micro-batch, in all but the first, or once [1]."""


@dataclass(frozen=True, eq=False)
class KernelRun:
    """A kernel of a step of training, with its works in one layer and one micro-batch.

    Attributes:
        kernel: The kernel; its count is of the layers of all stages.
        often: `EVERY`, `LATER` or `ONCE`.
        part: What stages count as their layers with it; empty where `only` says who has it.
        share: Of these layers, those with it [1].
        only: The kind of stage that has it once a step, after the last micro-batch.
    """

    kernel: Kernel
    often: Poly
    part: str = ""
    share: Fraction = Fraction(1)
    only: Stage | None = None

    def times_on(self, stage: Stage) -> Fraction:
        """How often a stage runs it in a micro-batch, or once a step [1]."""
        if self.only is not None:
            return Fraction(self.only == stage)
        return self.share * stage.times(self.part)


@dataclass(frozen=True, eq=False)
class KernelRuns:
    """Kernels that plans may have in common.

    Attributes:
        each: The kernels, in order.
    """

    each: tuple[KernelRun, ...]

    @cached_property
    def by_often(self) -> list[tuple[Poly, list[tuple[RunCount, Kernel]]]]:
        """How often they run in a step, each with the kernels that do and their layers."""
        alike: dict[Poly, list[tuple[RunCount, Kernel]]] = {}
        for run in self.each:
            alike.setdefault(run.often, []).append((run.kernel.count, run.kernel))
        return [*alike.items()]

    def work(self, column: str) -> Poly:
        """A work of a step by its column, on all stages [FLOP or byte]."""
        if column not in self._works:
            works = (work_of(column, parts) * often for often, parts in self.by_often)
            self._works[column] = total(works)
        return self._works[column]

    @cached_property
    def _works(self) -> dict[str, Poly]:
        return {}

    def apart(self, resource: Resource, machine: ChipRates) -> TimeTerms:
        """The times of a resource on all stages; see `resources.time_terms`."""
        return sum_time_terms(
            (often, time_terms(resource, parts, machine)) for often, parts in self.by_often
        )


def _all_pairs(extent: str) -> str:
    """An extent, of all pairs of a sequence where it is of those that tokens attend to."""
    return "T*S" if extent.startswith(WINDOWED_EXTENTS[0]) else extent


Made = tuple[dict[object, KernelRuns], dict[tuple[int, int], Route]]
"""What plans of a model have in common over the same interconnects: kernels, by what decides them;
routes, by the number of chips and the distance between them."""


def grouped(shape: Shape) -> tuple[tuple[Group, ...], ...]:
    """The groups of a model in order, those together whose kernels the same of a plan decides."""
    found = groupby(
        groups_of(shape, PREFILL, scores_all=True), lambda of: of.name in EXPERTS and of.name
    )
    return tuple(tuple(alike) for _, alike in found)


@dataclass(frozen=True, eq=False)
class TrainingKernels(StepKernels):
    """The kernels of a step of training; `sharing` has its plan, a `TrainingPlan`.

    Attributes:
        model: The model with its dtypes, the same object for all plans.
        groups: The groups of the model, from `grouped`.
        made: What was made for other plans of the model and its dtypes, by interconnects.
    """

    model: TrainedModel = field(kw_only=True)
    groups: tuple[tuple[Group, ...], ...] = ()
    made: dict[tuple[Link, ...], Made] = field(default_factory=dict)

    @property
    def plan(self) -> TrainingPlan:
        """How chips share the step."""
        return cast("TrainingPlan", self.sharing.split)

    @property
    def works(self) -> Mapping[str, Poly]:
        """None is known before what is sent."""
        return {}

    @cached_property
    def planned(self) -> PlannedModel:
        """The model that chips share by the plan."""
        return PlannedModel(self.model, self.plan)

    @property
    def stages(self) -> tuple[tuple[Stage, int], ...]:
        """The kinds of stages, the first of each, and how many there are."""
        return self.planned.stages

    @property
    def copies(self) -> Iterator[Copies]:
        """What the chips of a tensor-parallel group have in copies."""
        return copies_of(chain.from_iterable(self.groups), self.sharing)

    @classmethod
    def first(cls, shape: Shape, sharing: Sharing) -> TrainingKernels:
        """Those of the first plan of a model and its dtypes; `replace` gives those of others."""
        sizes = {name: sharing.bytes_of(name) for name in sharing.bits}
        model = TrainedModel(shape, {"saved": sizes["activations"], **sizes})
        return cls(shape, TRAIN, sharing, model=model, groups=grouped(shape))

    def runs_over(self, links: tuple[Link, ...]) -> tuple[KernelRuns, ...]:
        """The kernels of one chip, those of all micro-batches before those of the whole step.

        Args:
            links: The interconnects, inner first; none where nothing is sent.
        """
        plan, found = self.plan, list[KernelRuns]()
        made, routes = self.made.setdefault(links, ({}, {}))
        setting = Setting(self.model, plan, self.sharing.compute, links, routes)

        def add(key: object, runs: Iterator[KernelRun]) -> None:
            if key not in made:
                made[key] = KernelRuns(tuple(runs))
            found.append(made[key])

        for first, *others in self.groups:
            add(
                (first.name, setting.decides(first.name)),
                micro_batch_runs(setting, (first, *others)),
            )
        if plan.pp > 1:
            add((SEND, plan.pp, plan.interleave, plan.tp * plan.cp, plan.dp), stage_sends(setting))
        shares = plan.tp, plan.replicas, plan.expert_shards, plan.expert_replicas
        add((plan.pp, plan.interleave, shares, plan.shard, plan.optimizer), self._once(setting))
        return tuple(found)

    def _once(self, setting: Setting) -> Iterator[KernelRun]:
        """The kernels of the whole step, of every kind of stage."""
        for index, (stage, number) in enumerate(self.stages):
            yield from once_runs(setting, stage, number, f"-{index + 1}" if index else "")

    def kernels_on(self, links: tuple[Link, ...]) -> tuple[Kernel, ...]:
        """The kernels of `runs_over`."""
        return tuple(run.kernel for runs in self.runs_over(links) for run in runs.each)


@dataclass(frozen=True, eq=False)
class Setting(PlannedModel):
    """What a step of training runs with.

    Attributes:
        compute: The compute dtypes of linear kernels, and of attention and the unembedding.
        links: The interconnects, inner first; none for one chip.
        routes: Those between chips that are known already.
    """

    compute: tuple[str, str]
    links: tuple[Link, ...]
    routes: dict[tuple[int, int], Route]

    def decides(self, name: str) -> tuple[object, ...]:
        """What of a plan decides a kernel of a micro-batch, by its name."""
        plan, apart = self.plan, self.plan.ep > 1
        experts = {"experts": plan.ep, "router": apart, "shared": apart}.get(name, 0)
        replicas = plan.expert_replicas if name == "experts" else plan.replicas
        shared = replicas if plan.shard in IN_MICRO_BATCH else 1
        own = plan.shard, plan.save, plan.recompute, plan.context
        tied = self.shape.tied and plan.pp == 1
        return plan.tp, plan.cp, experts, shared, tied, *own

    @cached_property
    def share(self) -> Fraction:
        """Share of a micro-batch's tokens, or of their work, that a chip has [1]."""
        return Fraction(1, self.plan.tp * self.plan.cp)

    def route(self, chips: int, stride: int) -> Route:
        """The route between chips of the layout.

        Args:
            chips: How many communicate [1].
            stride: Chips from one to the next; the inner network joins as many as it has room for
                at this distance [1].
        """
        key = chips, stride
        if key not in self.routes:
            inner, *outer = self.links
            if outer and inner.domain is not None:
                inner = replace(inner, domain=max(inner.domain // stride, 1))
            links = inner, *outer
            self.routes[key] = Route(links, resolve_axes(links, (chips,)))
        return self.routes[key]

    def collective(
        self, kind: str, payload: Poly, chips: int, stride: int = 1
    ) -> tuple[Transfer, ...]:
        """A collective, unless a chip would be alone in it."""
        if chips == 1 or not payload:
            return ()
        route = self.route(chips, stride)
        return (Transfer(kind, payload, route, route.bytes_per_payload_byte(kind)),)

    def activations(self, elements: int | Fraction, tensors: str = "activations") -> Poly:
        """Bytes of activations or saved tensors of a chip, by the elements of a token [byte]."""
        return Poly({OWN_TOKENS: elements * self.sizes[tensors] * self.share}) if elements else ZERO

    def hidden(self, times: int) -> tuple[Transfer, ...]:
        """Gathers, or scatters, of all tokens of a sequence between the chips of tp."""
        whole = self.activations(self.shape.D * self.plan.tp)
        return self.collective(GATHER, whole, self.plan.tp) * times

    def replicated(self, kind: str, payload: Poly, *, experts: bool) -> tuple[Transfer, ...]:
        """A collective of the chips with equal weights, or equal experts."""
        plan = self.plan
        if experts:
            return self.collective(kind, payload, plan.expert_replicas, plan.expert_shards)
        return self.collective(kind, payload, plan.replicas, plan.tp)

    def on_chip(
        self,
        name: str,
        transfers: tuple[Transfer, ...] = (),
        works: Mapping[str, Poly] | None = None,
        *,
        linear: bool = True,
    ) -> Kernel:
        """A kernel on one chip, with its works but what it sends, by column."""
        every = {**(works or {}), NETWORK_BYTES: sent_bytes(transfers)}
        own = {name: work for name, work in every.items() if work}
        return Kernel(name, self.compute[0 if linear else 1], own, transfers)


def micro_batch_runs(setting: Setting, groups: Iterable[Group]) -> Iterator[KernelRun]:
    """The kernels of groups in a micro-batch on a chip."""
    layers = setting.shape.layers
    for group in groups:
        name = group.name.removesuffix("-window").removesuffix("-chunk")
        share = Fraction(group.count, layers) if name == "attention" else Fraction(1)
        passes = _embedding(setting) if name == "embed" else _passes(setting, group, name)
        for each in passes:
            kernel = replace(each.kernel, count=group.count)
            yield replace(each, kernel=kernel, part=name, share=share)


def stage_sends(setting: Setting) -> Iterator[KernelRun]:
    """What a stage sends in a micro-batch."""
    kernel = setting.on_chip(SEND, (_sends(setting),))
    yield KernelRun(replace(kernel, count=setting.plan.pp), EVERY, SEND)


def once_runs(setting: Setting, stage: Stage, number: int, of: str) -> Iterator[KernelRun]:
    """The optimizer of a chip's share of the states, and the collectives that wait for it.

    It reads gradients and its states, and writes the states and the weights.

    Args:
        setting: What the step runs with.
        stage: The kind of stage.
        number: Stages of this kind [1].
        of: What follows the names of its kernels.
    """
    plan, sizes = setting.plan, setting.sizes
    _, _, shared = SHARDED[plan.shard]
    moved, sent = Fraction(0), list[Transfer]()
    for each in setting.parameters(stage):
        per = 2 * setting.optimizer_bytes + sizes["gradients"] + each.weight_bytes
        moved += each.number * per / (each.replicas if shared else 1)
        gradients = constant(each.number * sizes["gradients"])
        weights = constant(each.number * each.weight_bytes)
        if plan.shard in ("none", "optimizer"):
            kind = REDUCE if plan.shard == "none" else SCATTER
            sent += setting.collective(kind, gradients, each.replicas, each.stride)
        if plan.shard in ("optimizer", "gradients"):
            sent += setting.collective(GATHER, weights, each.replicas, each.stride)
    works = {"weight_bytes": constant(moved), "memory_bytes": constant(moved)}
    kernels = [setting.on_chip(f"optimizer{of}", (), works)]
    kernels += [setting.on_chip(f"replicas{of}", tuple(sent))] * bool(sent)
    for kernel in kernels:
        yield KernelRun(replace(kernel, count=number), ONCE, only=stage)


def _embedding(setting: Setting) -> Iterator[KernelRun]:
    """The embedding: rows read and written in each of three passes, and its table's collectives."""
    width = setting.shape.D
    moved, saved = setting.activations(2 * width), setting.activations(width, "saved")
    works = {"memory_bytes": saved * 2, "activation_bytes": moved * 3}
    yield KernelRun(setting.on_chip("embed", setting.hidden(2), works), EVERY)
    shape = setting.shape
    once = shape.tied and setting.plan.pp == 1  # the unembedding's, which is sent with that
    rows = shape.positions + (0 if once else shape.V)
    table = Fraction(rows * width, setting.plan.tp)
    sent = _gathers(setting, constant(table * setting.sizes["head"]), experts=False)
    sent += _scatters(setting, constant(table * setting.sizes["gradients"]), experts=False)
    if sent:
        yield KernelRun(setting.on_chip("embed-replicas", sent), EVERY)


def _gathers(setting: Setting, weights: Poly, *, experts: bool) -> tuple[Transfer, ...]:
    """What gathers the weights of a kernel before it runs."""
    shared = setting.plan.shard == "weights"
    return setting.replicated(GATHER, weights, experts=experts) if shared else ()


def _scatters(setting: Setting, gradients: Poly, *, experts: bool) -> tuple[Transfer, ...]:
    """What sums the gradients of a kernel in every micro-batch."""
    every = setting.plan.shard in IN_MICRO_BATCH
    return setting.replicated(SCATTER, gradients, experts=experts) if every else ()


def _passes(setting: Setting, group: Group, name: str) -> Iterator[KernelRun]:
    """The kernels of a group, in order."""
    plan, routed = setting.plan, group.tensors == "experts"
    head, linear = name in ENDS, bool(group.weights)
    saved, saved_once = (
        tensors[name].elements(plan.recompute, again=not head)
        for tensors in (setting.saved, setting.model.saved_once)
    )
    held, elements = setting.activations(saved, "saved"), sum(_moved(setting.shape, group))
    moved = setting.activations(elements)
    # Of three passes, two leave out saved tensors: they are written forward, and read by the last.
    handed = setting.activations(max(elements - Fraction(2, 3) * saved_once, Fraction(0)))
    flops = Poly(group.flops).renamed(_in_micro_batch) * setting.share
    times = group.share("weights", plan.tp, sequences=True) * plan.tp
    weights = _weights(setting, group, name)
    gather = _gathers(setting, weights.gathered, experts=routed)
    layers = _between_layers(setting, group, name)

    def kernel(
        of: str, sent: tuple[Transfer, ...], moved_weights: Poly, saved: Poly, handed: Poly
    ) -> Kernel:
        once = flops * (2 if of == BACKWARD else 1)
        own = {} if of == AGAIN else {MODEL.work: once, ALL_PAIRS.work: once.renamed(_all_pairs)}
        math = once * times
        works = {
            **own,
            HARDWARE.work: math * SCORES_AGAIN if of == BACKWARD else math,
            MATH.work: math,
            "weight_bytes": moved_weights,
            "memory_bytes": moved_weights + saved,
            "activation_bytes": handed,
        }
        return setting.on_chip(f"{group.name}-{of}", sent, works, linear=linear and not head)

    yield KernelRun(kernel("fwd", gather + layers.forward, weights.read, held, handed), EVERY)
    if plan.recompute == "full" and not head:
        yield KernelRun(kernel(AGAIN, layers.again, weights.read, ZERO, moved), EVERY)
    if not linear:
        yield KernelRun(kernel(BACKWARD, layers.backward, ZERO, held, handed * 2), EVERY)
        return
    yield KernelRun(kernel("dgrad", gather + layers.backward, weights.read, ZERO, handed), EVERY)
    sent = layers.inputs + _scatters(setting, weights.scattered, experts=routed)
    yield KernelRun(kernel("wgrad", sent, weights.gradients, held, handed), ONCE)
    yield KernelRun(kernel("wgrad-add", sent, weights.gradients * 2, held, handed), LATER)


def _in_micro_batch(extent: str) -> str:
    """An extent of a step as that of a micro-batch."""
    return MICRO_BATCH if extent in SEQUENCES else extent


def _moved(shape: Shape, group: Group) -> tuple[int, int]:
    """Elements of a token that a pass reads and writes [1]; gate and up are both written."""
    into, out = (int(sum(terms.values())) for terms in (group.reads, group.writes))
    if group.name.startswith("attention") and isinstance(shape.attention, Gqa):
        into += shape.attention.kv_cache_elements
    if group.name == "router" and shape.moe is not None:
        out += shape.moe.E
    if group.name == "gate-up" and shape.mlp is not None:
        out *= 1 + shape.mlp.gated
    if group.name in ("experts", "shared") and shape.moe is not None:
        moe = shape.moe
        hidden = (moe.k if group.name == "experts" else moe.shared) * moe.Fe
        into, out = into + hidden, out + (1 + moe.gated) * hidden
    return into, out


class WeightBytes(NamedTuple):
    """Bytes of the weights of a kernel, on a chip [byte].

    Attributes:
        read: Of those that a pass reads.
        gradients: Of their gradients.
        gathered: Of all its weights, with norms and biases that are sent with it.
        scattered: Of the gradients of these.
    """

    read: Poly = ZERO
    gradients: Poly = ZERO
    gathered: Poly = ZERO
    scattered: Poly = ZERO


def _weights(setting: Setting, group: Group, name: str) -> WeightBytes:
    """Bytes of the weights of a group."""
    plan, sizes = setting.plan, setting.sizes
    if not group.weights:
        return WeightBytes()
    size = sizes[LM_HEAD if group.tensors == "head" else group.tensors or "weights"]
    (elements,) = group.weights.values()
    if group.moe is None:
        count = elements * group.share("weights", plan.tp)
        read = constant(count * size)
    else:
        moe, shards = group.moe, plan.expert_shards
        tokens = Fraction(1, plan.cp) if plan.ep == 1 else plan.ep * setting.share
        chosen = f"{moe.E},{moe.k},{tokens},{'*'.join(OWN_TOKENS)}"
        count = elements * moe.E / shards
        touched = Poly({(f"{ACTIVATED}:{chosen}",): elements / shards * size})
        read = constant(count * size) if moe.k == moe.E else touched
    vectors = Fraction(setting.model.vectors.get(name, 0), plan.tp)
    return WeightBytes(
        read,
        constant(count * sizes["gradients"]),
        constant(count * size + vectors * sizes["weights"]),
        constant((count + vectors) * sizes["gradients"]),
    )


class Between(NamedTuple):
    """What chips of a layer send each other around a kernel, by its pass.

    Attributes:
        forward, again, backward: In the forward pass, the same repeated, and by input.
        inputs: What gathers the saved inputs for the gradients of weights.
    """

    forward: tuple[Transfer, ...] = ()
    again: tuple[Transfer, ...] = ()
    backward: tuple[Transfer, ...] = ()
    inputs: tuple[Transfer, ...] = ()


def _between_layers(setting: Setting, group: Group, name: str) -> Between:
    """What tp, cp and ep send around a kernel."""
    plan = setting.plan
    if name == "attention":
        return _context(setting)
    if name == "experts" and plan.ep > 1:
        return _dispatch(setting, group)
    one, two = setting.hidden(1), setting.hidden(2)
    whole = plan.save == "gathered" and plan.recompute != "selective"  # which drops them
    inputs = () if whole else one
    routed_apart = plan.ep > 1
    first = Between(one, one, one, inputs)
    of = {
        **dict.fromkeys(GATHERED, first),
        "o": Between(one, one, one),
        "down": Between(one, (), one),
        "router": Between() if routed_apart else first,
        "experts": Between(one, (), one),
        "shared": Between(two, one, two, inputs) if routed_apart else Between(),
    }
    return of.get(name, Between())


def _context(setting: Setting) -> Between:
    """What chips that share sequences send around attention."""
    plan, attention, size = setting.plan, setting.shape.attention, setting.sizes["activations"]
    keys = Fraction(attention.kv_cache_elements, min(plan.tp, attention.cache_heads))
    if plan.context == "ring":
        ring = Poly({OWN_TOKENS: keys * size})
        once = setting.collective(GATHER, ring, plan.cp, plan.tp)
        return Between(once, once, setting.collective(GATHER, ring * 2, plan.cp, plan.tp))
    if isinstance(attention, Gqa):
        other = Fraction(attention.N * (attention.H + attention.value), plan.tp)
    else:
        key = attention.nope + attention.rope
        keys = other = Fraction(attention.N * (key + attention.v), plan.tp)
    own = Poly({OWN_TOKENS: (keys + other) * size / plan.cp})
    once = setting.collective(ALL_TO_ALL, own, plan.cp, plan.tp)
    return Between(once, once, once)


def _dispatch(setting: Setting, group: Group) -> Between:
    """Tokens to the chips of their experts, and the results back; the reverse backward."""
    plan, moe = setting.plan, group.moe
    if moe is None:
        return Between()
    route = setting.route(plan.ep, 1)
    sent = route.dispatch_bytes(lambda parts: rank_hit_probability(moe.E, moe.k, parts, UNIFORM))
    choice = moe.E, moe.k, UNIFORM
    there, back = (
        Transfer(ALL_TO_ALL, setting.activations(setting.shape.D, of), route, sent, choice=choice)
        for of in ("activations", "combine")
    )
    return Between((there, back), (there,), (there, back))


def _sends(setting: Setting) -> Transfer:
    """Activations to the next stage and gradients to the one before, in the mean of all stages.

    On two networks, stages in a group of the inner one send over that.
    """
    plan = setting.plan
    route = setting.route(plan.pp, plan.stage_chips)
    runs, (_, *outer) = plan.interleave * plan.pp - 1, route.levels
    between = sum(plan.interleave * level.chips - 1 for level in outer if level.chips > 1)
    sent = tuple(Fraction(each, plan.pp) for each in (runs - between, between)[: 1 + len(outer)])
    return Transfer(ALL_TO_ALL, setting.activations(setting.shape.D * 2), route, sent)
