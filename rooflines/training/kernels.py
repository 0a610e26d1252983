"""The kernels of a step of training on one chip: forward, and backward by input and by weights.

Each group of the model (`rooflines.models.groups`) that has weights is three kernels of equal work:
`fwd`, `dgrad` and `wgrad`; attention is two, whose backward pass is twice its forward one. What is
sent between chips belongs to the kernel that waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.model.kernel import NETWORK_BYTES, Kernel, Transfer, sent_bytes
from rooflines.model.network import ALL_TO_ALL, Route
from rooflines.model.poly import TOUCHED, ZERO, Poly, constant, total
from rooflines.models.groups import TOKENS, UNIFORM, groups_of, reached
from rooflines.models.shape import PREFILL, Gqa
from rooflines.training.memory import (
    ENDS,
    GATHERED,
    SHARDED,
    optimizer_bytes,
    parameters_of_chip,
    saved_tensors,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.model.network import Link
    from rooflines.models.groups import Group
    from rooflines.models.shape import Shape
    from rooflines.training.memory import Stage
    from rooflines.training.plan import TrainingDtypes, TrainingPlan

GATHER, SCATTER, REDUCE = "all-gather", "reduce-scatter", "all-reduce"


@dataclass(frozen=True)
class KernelRun:
    """A kernel of a stage.

    Attributes:
        kernel: The kernel.
        count: Times that a stage runs it, in a micro-batch or in a step [1].
        gradients: Bytes of gradients that it reads and writes; the first of a step only writes
            them [byte].
        again: Whether it repeats a forward pass.
        once: Whether it waits for the last micro-batch.
    """

    kernel: Kernel
    count: Fraction = Fraction(1)
    gradients: Poly = ZERO
    again: bool = False
    once: bool = False


@dataclass(frozen=True)
class Setting:
    """What a step of training runs with.

    Attributes:
        shape: The model.
        plan: How chips share it.
        dtypes: The dtypes.
        sizes: Bytes of an element by class of tensors [byte].
        links: The interconnects, inner first; none for one chip.
    """

    shape: Shape
    plan: TrainingPlan
    dtypes: TrainingDtypes
    sizes: Mapping[str, Fraction]
    links: tuple[Link, ...]

    @property
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
        inner, *outer = self.links
        if outer and inner.domain is not None:
            inner = replace(inner, domain=max(inner.domain // stride, 1))
        return Route((inner, *outer), (chips,))

    def collective(
        self, kind: str, payload: Poly, chips: int, stride: int = 1
    ) -> tuple[Transfer, ...]:
        """A collective, unless a chip would be alone in it."""
        if chips == 1 or not payload:
            return ()
        route = self.route(chips, stride)
        return (Transfer(kind, payload, route, route.sent(kind)),)

    def activations(self, elements: int | Fraction) -> Poly:
        """Bytes of activations that a chip has, by the elements of a token [byte]."""
        return (
            Poly({TOKENS: elements * self.sizes["activations"] * self.share}) if elements else ZERO
        )

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
        *,
        linear: bool = True,
        **works: Poly,
    ) -> Kernel:
        """A kernel on one chip, with its works but what it sends, by column."""
        sent = {NETWORK_BYTES: sent_bytes(transfers)}
        compute = self.dtypes.compute if linear else self.dtypes.attention
        return Kernel(name, compute, {**works, **sent}, transfers)


def micro_batch_kernels(setting: Setting, stage: Stage) -> Iterator[KernelRun]:
    """The kernels of a micro-batch on a chip of a stage."""
    for group in groups_of(setting.shape, PREFILL, scores_all=True):
        name = group.name.removesuffix("-window").removesuffix("-chunk")
        count = Fraction(stage.times(name))
        if name == "attention":
            count *= Fraction(group.count, setting.shape.layers)
        if count:
            passes = _embedding(setting) if name == "embed" else _passes(setting, group, name)
            yield from (replace(each, count=count) for each in passes)
    if setting.plan.pp > 1:
        yield KernelRun(setting.on_chip("send", (_sends(setting),)))


def once_kernels(setting: Setting, stage: Stage) -> tuple[Kernel, ...]:
    """The optimizer of a chip's share of the states, and the collectives that wait for it.

    It reads gradients and its states, and writes the states and the weights.
    """
    plan, sizes = setting.plan, setting.sizes
    _, _, shared = SHARDED[plan.shard]
    moved, sent = Fraction(0), list[Transfer]()
    for each in parameters_of_chip(setting.shape, plan, stage, sizes):
        per = 2 * optimizer_bytes(sizes) + sizes["gradients"] + each.weight_bytes
        moved += each.number * per / (each.replicas if shared else 1)
        gradients = constant(each.number * sizes["gradients"])
        weights = constant(each.number * each.weight_bytes)
        if plan.shard in ("none", "optimizer"):
            kind = REDUCE if plan.shard == "none" else SCATTER
            sent += setting.collective(kind, gradients, each.replicas, each.stride)
        if plan.shard in ("optimizer", "gradients"):
            sent += setting.collective(GATHER, weights, each.replicas, each.stride)
    optimizer = setting.on_chip("optimizer", memory_bytes=constant(moved))
    return optimizer, setting.on_chip("replicas", tuple(sent))


def _embedding(setting: Setting) -> Iterator[KernelRun]:
    """The embedding: rows read and written in each of three passes, and its table's collectives."""
    width = setting.shape.D
    moved, saved = setting.activations(2 * width), setting.activations(width)
    yield KernelRun(
        setting.on_chip(
            "embed", setting.hidden(2), memory_bytes=saved * 2, activation_bytes=moved * 3
        )
    )
    table = Fraction(setting.shape.table, setting.plan.tp)
    sent = _gathers(setting, constant(table * setting.sizes["head"]), experts=False)
    sent += _scatters(setting, constant(table * setting.sizes["gradients"]), experts=False)
    if sent:
        yield KernelRun(setting.on_chip("embed-replicas", sent))


def _gathers(setting: Setting, weights: Poly, *, experts: bool) -> tuple[Transfer, ...]:
    """What gathers the weights of a kernel before it runs."""
    shared = setting.plan.shard == "weights"
    return setting.replicated(GATHER, weights, experts=experts) if shared else ()


def _scatters(setting: Setting, gradients: Poly, *, experts: bool) -> tuple[Transfer, ...]:
    """What sums the gradients of a kernel in every micro-batch."""
    every = setting.plan.shard in ("weights", "gradients")
    return setting.replicated(SCATTER, gradients, experts=experts) if every else ()


def _passes(setting: Setting, group: Group, name: str) -> Iterator[KernelRun]:
    """The kernels of a group, in order."""
    plan, routed = setting.plan, group.tensors == "experts"
    head, linear = name in ENDS, bool(group.weights)
    tensors = saved_tensors(setting.shape, plan, setting.sizes["activations"])
    saved = tensors[name].elements(plan.recompute, again=not head)
    held, moved = setting.activations(saved), setting.activations(sum(_moved(setting.shape, group)))
    flops = Poly({product: per * setting.share for product, per in group.flops.items()})
    weights, gradients, gathered = _weights(setting, group)
    gather = _gathers(setting, gathered, experts=routed)
    layers = _between_layers(setting, group, name)

    def kernel(sent: tuple[Transfer, ...], memory: Poly, handed: Poly, times: int = 1) -> Kernel:
        works = {"flops": flops * times, "memory_bytes": memory, "activation_bytes": handed}
        return setting.on_chip(name, sent, **works, linear=linear and not head)

    handed = total((moved, held * Fraction(-2, 3)))  # written forward, read by the last pass
    yield KernelRun(kernel(gather + layers.forward, total((weights, held)), handed))
    if plan.recompute == "full" and not head:
        yield KernelRun(kernel(layers.again, weights, moved), again=True)
    if not linear:
        yield KernelRun(kernel(layers.backward, held, handed * 2, 2))
        return
    yield KernelRun(kernel(gather + layers.backward, weights, handed))
    sent = layers.inputs + _scatters(setting, gradients, experts=routed)
    memory = total((held, gradients * 2))
    yield KernelRun(kernel(sent, memory, handed), gradients=gradients)


def _moved(shape: Shape, group: Group) -> tuple[int, int]:
    """Elements of a token that a pass reads and writes [1]; gate and up are both written."""
    into, out = (int(sum(terms.values())) for terms in (group.reads, group.writes))
    if group.name.startswith("attention") and isinstance(shape.attention, Gqa):
        into += shape.attention.cache_elements
    if group.name == "router" and shape.moe is not None:
        out += shape.moe.E
    if group.name == "gate-up" and shape.mlp is not None:
        out *= 1 + shape.mlp.gated
    if group.name in ("experts", "shared") and shape.moe is not None:
        moe = shape.moe
        hidden = (moe.k if group.name == "experts" else moe.shared) * moe.Fe
        into, out = into + hidden, out + (1 + moe.gated) * hidden
    return into, out


def _weights(setting: Setting, group: Group) -> tuple[Poly, Poly, Poly]:
    """Bytes of the weights that a pass reads, of their gradients, and of all weights [byte]."""
    plan, sizes = setting.plan, setting.sizes
    if not group.weights:
        return ZERO, ZERO, ZERO
    size = sizes["head" if group.tensors == "head" else "weights"]
    (elements,) = group.weights.values()
    if group.moe is None:
        count = elements / plan.tp
        return constant(count * size), constant(count * sizes["gradients"]), constant(count * size)
    moe, shards = group.moe, plan.expert_shards
    tokens = Fraction(1, plan.cp) if plan.ep == 1 else plan.ep * setting.share
    read = Poly({(f"{TOUCHED}:{moe.E},{moe.k},{tokens}",): elements / shards * size})
    count = elements * moe.E / shards
    return read, constant(count * sizes["gradients"]), constant(count * size)


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
    keys = Fraction(attention.cache_elements, min(plan.tp, attention.cache_heads))
    if plan.context == "ring":
        ring = Poly({TOKENS: keys * size})
        once = setting.collective(GATHER, ring, plan.cp, plan.tp)
        return Between(once, once, setting.collective(GATHER, ring * 2, plan.cp, plan.tp))
    if isinstance(attention, Gqa):
        other = Fraction(attention.N * (attention.H + attention.value), plan.tp)
    else:
        key = attention.nope + attention.rope
        keys = other = Fraction(attention.N * (key + attention.v), plan.tp)
    own = Poly({TOKENS: (keys + other) * size / plan.cp})
    once = setting.collective(ALL_TO_ALL, own, plan.cp, plan.tp)
    return Between(once, once, once)


def _dispatch(setting: Setting, group: Group) -> Between:
    """Tokens to the chips of their experts, and the results back; the reverse backward."""
    plan, moe = setting.plan, group.moe
    if moe is None:
        return Between()
    route = setting.route(plan.ep, 1)
    sent = route.sent_once(lambda parts: reached(moe.E, moe.k, parts, UNIFORM))
    tokens = setting.activations(setting.shape.D)
    choice = moe.E, moe.k, UNIFORM
    one = (Transfer(ALL_TO_ALL, tokens, route, sent, choice=choice),)
    return Between(one * 2, one, one * 2)


def _sends(setting: Setting) -> Transfer:
    """Activations to the next stage and gradients to the one before, in the mean of all stages."""
    plan = setting.plan
    route = setting.route(plan.pp, plan.stage_chips)
    runs = Fraction(plan.interleave * plan.pp - 1, plan.pp)
    levels, inside = len(route.levels), route.levels[0].chips == plan.pp
    sent = tuple(runs * ((level == 0) == inside) if levels > 1 else runs for level in range(levels))
    return Transfer(ALL_TO_ALL, setting.activations(setting.shape.D * 2), route, sent)
