"""A step of training by closed formulas in fractions, for layers of one kind on one switch.

Nothing of `rooflines.training` is used: the formulas count a layer as a whole, not its kernels.
Hops are left out.
"""

from fractions import Fraction
from math import comb

WEIGHT, ACTIVATION, GRADIENT, STATES = 2, 2, 4, 12
"""Bytes of an element of weights, activations, gradients, and of a parameter in the optimizer."""


class TrainingOracle:
    """Works, footprint and times of one chip in a step, in the mean of all stages."""

    def __init__(self, shape, plan, sequences, tokens):
        self.shape, self.plan, self.S = shape, plan, tokens
        self.m = sequences // (plan.dp * plan.micro_batch)
        self.X = Fraction(plan.micro_batch * tokens, plan.cp)
        self.x = self.X / plan.tp
        a = shape.attention
        self.attention = shape.D * (a.N + 2 * a.K) * a.H + a.N * a.H * shape.D
        moe, mlp = shape.moe, shape.mlp
        self.shards = plan.tp if plan.ep == 1 else plan.ep
        self.dense = self.attention + (shape.D * moe.E if moe else 3 * shape.D * mlp.F)
        self.expert = 3 * shape.D * moe.Fe if moe else 0
        self.table = shape.V * shape.D

    @property
    def flops(self):
        """All passes of all micro-batches."""
        shape, plan, a = self.shape, self.plan, self.shape.attention
        active = self.dense + (shape.moe.k * self.expert if shape.moe else 0)
        pairs = Fraction(plan.micro_batch * self.S * (self.S + 1), 2 * plan.tp * plan.cp)
        layers = shape.layers * (2 * self.x * active + 4 * a.N * a.H * pairs)
        passes = 4 if plan.recompute == "full" else 3
        return self.m * (passes * layers + 3 * 2 * self.x * self.table) / plan.pp

    @property
    def saved_of_layer(self):
        """Elements of a token that a layer saves, and those dropped to be computed again."""
        shape, a, moe = self.shape, self.shape.attention, self.shape.moe
        sums = Fraction(a.N * 4, ACTIVATION)
        kept = 4 * shape.D + 2 * (a.N + a.K) * a.H + sums
        if moe is None:
            return kept + 3 * shape.mlp.F, 2 * shape.D + shape.mlp.F
        return kept + 2 * moe.E + moe.k * (shape.D + 3 * moe.Fe), 2 * shape.D + moe.k * moe.Fe

    def saved(self, layers):
        """Elements of a token that stay until the backward pass."""
        every, dropped = self.saved_of_layer
        return (
            layers
            * {"none": every, "selective": every - dropped, "full": Fraction(self.shape.D)}[
                self.plan.recompute
            ]
        )

    @property
    def touched(self):
        """Experts of a chip that its tokens touch, on average."""
        moe, plan = self.shape.moe, self.plan
        tokens = self.X if plan.ep == 1 else plan.ep * self.x
        return moe.E * (1 - (1 - Fraction(moe.k, moe.E)) ** tokens)

    @property
    def memory_bytes(self):
        """Weights, gradients, saved tensors and the optimizer."""
        shape, plan, m = self.shape, self.plan, self.m
        passes = 3 if plan.recompute == "full" else 2
        layer, gradients = Fraction(self.dense, plan.tp), Fraction(self.dense, plan.tp)
        if shape.moe:
            layer += self.touched * Fraction(self.expert, self.shards)
            gradients += shape.moe.E * Fraction(self.expert, self.shards)
        head = Fraction(self.table, plan.tp)
        weights = WEIGHT * m * (passes * shape.layers * layer + 2 * head)
        sums = GRADIENT * (2 * m - 1) * (shape.layers * gradients + head)
        elements = self.saved(shape.layers) + shape.D + shape.V
        elements += shape.D * (plan.recompute != "selective")
        saved = 2 * m * ACTIVATION * self.x * elements
        per = GRADIENT + 2 * STATES + WEIGHT
        optimizer = sum(
            per * number / (1 if plan.shard == "none" else replicas)
            for number, replicas, _ in self.parameters
        )
        return (weights + sums + saved) / plan.pp + optimizer

    @property
    def parameters(self):
        """Parameters of a chip in the mean of all stages, chips with equal ones, and gathers.

        The last is how often a micro-batch gathers them where weights are shared: for two passes,
        once for the embedding, never for norms, which are not.
        """
        shape, plan = self.shape, self.plan
        norms = (2 * shape.layers + 1) * shape.D
        beside = ((shape.layers * self.dense, 2), (self.table, 1), (self.table, 2), (norms, 0))
        found = [
            (Fraction(number, plan.tp * plan.pp), plan.dp * plan.cp, gathers)
            for number, gathers in beside
        ]
        if shape.moe:
            experts = Fraction(shape.layers * shape.moe.E * self.expert, self.shards * plan.pp)
            alike = plan.dp * plan.cp if plan.ep == 1 else plan.tp * plan.dp * plan.cp // plan.ep
            found.append((experts, alike, 2))
        return found

    @property
    def network_bytes(self):
        """Of tp, replicas, stages, cp and ep, sent by a chip."""
        shape, plan, m, a = self.shape, self.plan, self.m, self.shape.attention
        again = plan.recompute == "full"
        unit = Fraction(plan.tp - 1, plan.tp) * self.X * shape.D * ACTIVATION
        whole = plan.save == "gathered" and plan.recompute != "selective"
        inputs = 0 if whole else 1
        around = (2, 2, 1, 2) if shape.moe and plan.ep > 1 else (4, 4, 2, 3)
        forward, backward, saved, repeated = around
        layer = forward + backward + saved * inputs + repeated * again
        sent = m * unit * (shape.layers * layer + 2 + 2 + inputs)
        ring = Fraction(plan.cp - 1, plan.cp)
        if plan.context == "ring":
            keys = Fraction(2 * a.K * a.H, min(plan.tp, a.K))
            passed = (3 + again) * keys * self.X * plan.cp
        else:
            passed = (2 + again) * Fraction(2 * (a.N + a.K) * a.H, plan.tp) * self.X
        sent += m * shape.layers * ring * passed * ACTIVATION
        if plan.ep > 1:
            moe, share = shape.moe, shape.moe.E // plan.ep
            reached = 1 - Fraction(comb(moe.E - share, moe.k), comb(moe.E, moe.k))
            copies = (plan.ep - 1) * reached * self.x * shape.D * ACTIVATION
            sent += m * shape.layers * (4 + again) * copies
        sent = (
            sent / plan.pp + m * 2 * Fraction(plan.pp - 1, plan.pp) * self.x * shape.D * ACTIVATION
        )
        return sent + self._replicas()

    def _replicas(self):
        """Gradients and weights between chips with equal ones."""
        m, sent = self.m, Fraction(0)
        for number, replicas, gathers in self.parameters:
            scatter, gather = GRADIENT * number, WEIGHT * number
            of = {
                "none": 2 * scatter,
                "optimizer": scatter + gather,
                "gradients": m * scatter * bool(gathers) + gather,
                "weights": m * (gathers * gather + scatter * bool(gathers)),
            }[self.plan.shard]
            sent += Fraction(replicas - 1, replicas) * of
        return sent

    def footprint(self, stage):
        """Bytes of states and of saved tensors on a chip of a stage, layers dealt evenly."""
        shape, plan = self.shape, self.plan
        ends = (stage == 0) + (stage == plan.pp - 1)
        shared = ["none", "optimizer", "gradients", "weights"].index(plan.shard)
        states = Fraction(0)
        for index, (number, replicas, _) in enumerate(self.parameters):
            here = number
            if index == 1:
                here = Fraction(self.table * ends, plan.tp)
            if index == 2:
                continue
            if index == 3:
                norms = shape.D * (Fraction(2 * shape.layers, plan.pp) + (stage == plan.pp - 1))
                here = norms / plan.tp
            sizes = ((STATES, 1), (GRADIENT, 2), (WEIGHT, 3))
            states += sum(
                here * size / (replicas if shared >= least else 1) for size, least in sizes
            )
        elements = self.saved(Fraction(shape.layers, plan.pp)) * min(plan.pp - stage, self.m)
        if stage == plan.pp - 1:
            elements += shape.V + shape.D + shape.D * (plan.recompute != "selective")
        if plan.recompute == "full":
            elements += self.saved_of_layer[0]
        return states, elements * ACTIVATION * self.x
