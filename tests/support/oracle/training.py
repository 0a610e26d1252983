"""A step of training in fractions, for layers of one kind on one switch.

Nothing of `rooflines.training` is used: works and times are sums over kernels that are written out
here, footprints count a layer as a whole. Hops are left out.
"""

from fractions import Fraction
from math import comb
from typing import NamedTuple

from oracle.steps import touched

WEIGHT, ACTIVATION, GRADIENT, STATES, SUM = 2, 2, 4, 12, 4
"""Bytes of an element of weights, activations, gradients, of a parameter in the optimizer, and of a
sum of a softmax."""

SHARDS = ("none", "optimizer", "gradients", "weights")
"""From what replicas share nothing of, to all."""


class Kernel(NamedTuple):
    """A kernel of a chip: its runs in a step [1], FLOP, and bytes.

    `memory` is read and written beside `handed`, which is passed on to other kernels; `repeated`
    is the FLOP that a fused kernel repeats, beside `flops`.
    """

    runs: Fraction | int
    flops: Fraction = Fraction(0)
    memory: Fraction = Fraction(0)
    handed: Fraction = Fraction(0)
    sent: Fraction = Fraction(0)
    repeated: Fraction = Fraction(0)


class TrainingOracle:
    """Works, footprint and times of one chip in a step; saved tensors have `element` bytes."""

    def __init__(self, shape, plan, sequences, tokens, element=ACTIVATION):
        self.shape, self.plan, self.S, self.element = shape, plan, tokens, element
        self.m = sequences // (plan.dp * plan.micro_batch)
        self.X = Fraction(plan.micro_batch * tokens, plan.cp)
        self.x = self.X / plan.tp
        a = shape.attention
        moe, mlp = shape.moe, shape.mlp
        self.shards = plan.tp if plan.ep == 1 else plan.ep
        self.dense = 2 * shape.D * a.N * a.H + (0 if moe else 3 * shape.D * mlp.F)
        self.keys = Fraction(2 * shape.D * a.K * a.H, min(a.K, plan.tp))  # a head, or several
        self.router = shape.D * moe.E if moe else 0  # of a chip, as it is not split
        self.expert = 3 * shape.D * moe.Fe if moe else 0
        self.table = shape.V * shape.D
        self.copies = plan.tp if plan.save == "gathered" else 1  # of inputs that tp gathers

    def works(self):
        """FLOP, bytes of memory and of the network, and repeated FLOP, in the mean of stages."""
        stages = range(self.plan.pp)
        every = [each for stage in stages for each in (*self._every(stage), *self._once(stage))]
        return {
            work: sum(each.runs * getattr(each, work) for each in every) / Fraction(self.plan.pp)
            for work in ("flops", "memory", "sent", "repeated")
        }

    @property
    def saved_of_layer(self):
        """Elements of a token that a layer saves, and those dropped to be computed again."""
        shape, a, moe = self.shape, self.shape.attention, self.shape.moe
        sums = Fraction(a.N * SUM, self.element)
        kept = 2 * shape.D + 2 * (a.N + a.K) * a.H + sums
        normed = shape.D * (self.copies + (self.copies if self.plan.ep == 1 else 1))
        if moe is None:
            every, dropped = kept + 3 * shape.mlp.F, shape.mlp.F
        else:
            every = kept + 2 * moe.E + moe.k * (shape.D + 3 * moe.Fe)
            dropped = moe.k * moe.Fe
        return every + normed, dropped + normed

    def saved(self, layers):
        """Elements of a token that stay until the backward pass."""
        every, dropped = self.saved_of_layer
        whole = {"none": every, "selective": every - dropped, "full": Fraction(self.shape.D)}
        return layers * whole[self.plan.recompute]

    @property
    def touched(self):
        """Experts of a chip that its tokens touch, on average."""
        tokens = self.X if self.plan.ep == 1 else self.plan.ep * self.x
        return touched(self.shape.moe.E, self.shape.moe.k, tokens, "uniform")

    def parameters_on(self, stage):
        """Parameters of a chip of a stage, layers dealt evenly, and chips with equal ones."""
        shape, plan = self.shape, self.plan
        layers, last = Fraction(shape.layers, plan.pp), stage == plan.pp - 1
        tables = 1 if shape.tied and plan.pp == 1 else (stage == 0) + last
        beside = layers * self.dense + self.table * tables
        beside += shape.D * (2 * layers + last)  # norms
        whole = layers * (self.keys + self.router)
        found = [(beside / plan.tp + whole, plan.dp * plan.cp)]
        if shape.moe:
            alike = plan.dp * plan.cp if plan.ep == 1 else plan.tp * plan.dp * plan.cp // plan.ep
            found.append((layers * shape.moe.E * self.expert / self.shards, alike))
        return found

    def footprint(self, stage):
        """Bytes of states and of saved tensors on a chip of a stage, layers dealt evenly."""
        shape, plan = self.shape, self.plan
        shared = SHARDS.index(plan.shard)
        sizes = ((STATES, 1), (GRADIENT, 2), (WEIGHT, 3))
        states = sum(
            number * size / (replicas if shared >= least else 1)
            for number, replicas in self.parameters_on(stage)
            for size, least in sizes
        )
        elements = self.saved(Fraction(shape.layers, plan.pp)) * min(plan.pp - stage, self.m)
        if stage == plan.pp - 1:
            elements += shape.V + shape.D
            elements += self.copies * shape.D * (plan.recompute != "selective")
        if plan.recompute == "full":
            elements += self.saved_of_layer[0]
        return states, elements * self.element * self.x

    def in_turn(self, stage, per_s):
        """Times of a stage, kernel after kernel: with overlap in each, and without.

        Args:
            stage: From 0; layers are dealt evenly.
            per_s: FLOP/s, and bytes/s of memory and of the network.
        """
        bubble = Fraction(self.m + self.plan.pp - 1, self.m)
        every = [(each.runs * bubble, each) for each in self._every(stage)]
        every += [(each.runs, each) for each in self._once(stage)]
        times = [
            (runs, [work / rate for work, rate in zip(works, per_s, strict=True)])
            for runs, each in every
            for works in [(each.flops, each.memory + each.handed, each.sent)]
        ]
        return tuple(sum(runs * of(each) for runs, each in times) for of in (max, sum))

    def _once(self, stage):
        """The optimizer and the collectives of a step."""
        shared = SHARDS.index(self.plan.shard)
        per, moved, sent = GRADIENT + 2 * STATES + WEIGHT, Fraction(0), Fraction(0)
        for number, replicas in self.parameters_on(stage):
            moved += per * number / (replicas if shared else 1)
            of = (2 * GRADIENT, GRADIENT + WEIGHT, WEIGHT, 0)[shared]
            sent += Fraction(replicas - 1, replicas) * of * number
        return Kernel(1, memory=moved), Kernel(1, sent=sent)

    def _every(self, stage):
        """The kernels of micro-batches on a stage."""
        shape, plan, a, moe = self.shape, self.plan, self.shape.attention, self.shape.moe
        layers, first, last = Fraction(shape.layers, plan.pp), stage == 0, stage == plan.pp - 1
        D, NH, KH = shape.D, a.N * a.H, a.K * a.H  # noqa: N806, the letters of the docs
        yield from self._linear(
            layers, D * (NH + 2 * KH), D, NH + 2 * KH, dropped=D, wgrad=1, norms=2 * D,
            held=Fraction(D * NH, plan.tp) + self.keys,
        )  # fmt: skip
        yield from self._attention(layers)
        yield from self._linear(layers, NH * D, NH, D, kept=D)
        if moe is None:
            F = shape.mlp.F  # noqa: N806
            yield from self._linear(layers, 2 * D * F, D, 2 * F, kept=2 * F, dropped=D, wgrad=1)
            yield from self._linear(layers, F * D, F, D, first=D, dropped=F, again=0)
        else:
            one = {"sent": 0} if plan.ep > 1 else {"wgrad": 1}
            yield from self._linear(
                layers, D * moe.E, D, moe.E, kept=2 * moe.E, dropped=D, held=self.router,
                math=Fraction(D * moe.E, plan.tp), **one,
            )  # fmt: skip
            yield from self._experts(layers)
        table = self.table
        yield from self._linear(
            last, table, D, shape.V, kept=shape.V, dropped=D, wgrad=1, norms=D, of_layer=False
        )
        token, embeds = ACTIVATION * self.x * D, first * self.m
        saved = self.element * self.x * D
        yield Kernel(embeds, memory=2 * saved, handed=6 * token, sent=2 * self._unit)
        if not shape.tied or plan.pp > 1:
            shared = self._shared(Fraction(table, plan.tp), plan.dp * plan.cp)
            yield Kernel(embeds, sent=sum(shared))
        yield Kernel(self.m, sent=2 * Fraction(plan.pp - 1, plan.pp) * token)

    @property
    def _unit(self):
        """A gather of all tokens between the chips of tp."""
        return Fraction(self.plan.tp - 1, self.plan.tp) * self.X * self.shape.D * ACTIVATION

    def _shared(self, number, replicas):
        """What gathers weights for a pass, and sums their gradients, in every micro-batch."""
        shared, part = SHARDS.index(self.plan.shard), Fraction(replicas - 1, replicas)
        return WEIGHT * number * part * (shared == 3), GRADIENT * number * part * (shared >= 2)

    def _linear(  # noqa: PLR0913, a kernel
        self, layers, weights, into, out, *, kept=0, dropped=0, first=0, sent=1, again=1, wgrad=0,
        norms=0, of_layer=True, held=None, math=None,
    ):  # fmt: skip
        """A kernel of weights: forward, perhaps again, by input and by weights.

        With `wgrad`, its input is what tp gathers. Replicas share norms with it. A chip has `held`
        of the weights, each of which meets all tokens of the chips of tp, `math` of them if these
        share the tokens.
        """
        number = Fraction(weights, self.plan.tp) if held is None else Fraction(held)
        math = number if math is None else math
        replicas = self.plan.dp * self.plan.cp
        whole = self.plan.save == "gathered" and self.plan.recompute != "selective"
        units = (sent, again * sent, sent, 0 if whole else wgrad)
        yield from self._passes(
            layers, 2 * self.X * math, number, number + Fraction(norms, self.plan.tp), replicas,
            into + out, (kept, dropped, first), [each * self._unit for each in units],
            gradients=number, copies=self.copies if wgrad else 1, of_layer=of_layer,
        )  # fmt: skip

    def _experts(self, layers):
        """The experts of a layer, as `_linear`."""
        shape, plan, moe = self.shape, self.plan, self.shape.moe
        D, hidden = shape.D, moe.k * moe.Fe  # noqa: N806
        read = self.touched * Fraction(self.expert, self.shards)
        number = moe.E * Fraction(self.expert, self.shards)
        replicas = plan.dp * plan.cp
        units = [self._unit, 0, self._unit, 0]
        if plan.ep > 1:
            replicas = plan.tp * replicas // plan.ep
            share = moe.E // plan.ep
            one = 1 - Fraction(comb(moe.E - share, moe.k), comb(moe.E, moe.k))
            copies = (plan.ep - 1) * one * self.x * D * ACTIVATION
            units = [2 * copies, copies, 2 * copies, 0]
        kept = moe.k * D + 2 * hidden
        flops = 2 * self.x * moe.k * self.expert
        yield from self._passes(
            layers, flops, read, number, replicas, 2 * moe.k * D + 3 * hidden,
            (kept, hidden, D), units, gradients=number, copies=1, of_layer=True,
        )  # fmt: skip

    def _stays(self, kept, dropped, first, *, of_layer):
        """Elements of a token that a kernel saves."""
        if self.plan.recompute == "full" and of_layer:
            return first
        return kept + first + dropped * (self.plan.recompute != "selective")

    def _passes(  # noqa: PLR0913, PLR0917, a kernel
        self, layers, flops, read, number, replicas, moved, tensors, sent, *, gradients, copies,
        of_layer,
    ):  # fmt: skip
        """The passes of a kernel that reads weights and writes a number of gradients."""
        token, m = ACTIVATION * self.x, self.m
        kept, dropped, first = tensors
        saved = (
            self.element * self.x * self._stays(kept, dropped * copies, first, of_layer=of_layer)
        )
        alike = self._stays(kept, dropped, first, of_layer=of_layer)
        handed = token * (moved - Fraction(2, 3) * alike)
        gather, scatter = self._shared(number, replicas)
        forward, again, backward, inputs = sent
        weights, runs = WEIGHT * read, layers * m
        yield Kernel(runs, flops, weights + saved, handed, forward + gather)
        if self.plan.recompute == "full" and of_layer:
            yield Kernel(runs, flops, weights, token * moved, again)
        yield Kernel(runs, flops, weights, handed, backward + gather)
        for times, of in ((1, 1), (m - 1, 2)):
            sums = of * GRADIENT * gradients
            yield Kernel(layers * times, flops, sums + saved, handed, inputs + scatter)

    def _attention(self, layers):
        """Attention: forward, perhaps again, and backward."""
        plan, a, m = self.plan, self.shape.attention, self.m
        NH, KH = a.N * a.H, a.K * a.H  # noqa: N806
        pairs = Fraction(plan.micro_batch * self.S * (self.S + 1), 2 * plan.tp * plan.cp)
        moved, sums = 2 * (NH + KH), a.N * SUM
        bytes_saved = [
            self.x * self._stays(each * moved + sums, 0, 0, of_layer=True)
            for each in (self.element, ACTIVATION)
        ]
        saved, handed = bytes_saved[0], ACTIVATION * self.x * moved - 2 * bytes_saved[1] / 3
        sent, back = Fraction(plan.cp - 1, plan.cp) * self.X * ACTIVATION, 1
        if plan.context == "ring":
            sent, back = sent * plan.cp * Fraction(2 * KH, min(plan.tp, a.K)), 2
        else:
            sent *= Fraction(2 * (NH + KH), plan.tp)
        flops = 4 * NH * pairs
        runs = layers * m
        yield Kernel(runs, flops, saved, handed, sent)
        if plan.recompute == "full":
            yield Kernel(runs, flops, Fraction(0), ACTIVATION * self.x * moved, sent)
        yield Kernel(runs, 2 * flops, saved, 2 * handed, back * sent, repeated=flops / 2)
