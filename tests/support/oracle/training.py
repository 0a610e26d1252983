"""Training step on one chip: layer by layer, pass by pass, and its memory.

Conventions, where the contract leaves a choice:

- Which layers have a window is not known: every layer with attention has its share of all kinds.
  Nor is it known which have a state: every stage has its share of all mixers.
- A tensor that is saved is written by the forward pass of the kernel that reads it, and read by its
  last pass; residuals, which stay with all else computed again, by the kernel that writes them.
- What kernels hand each other is dealt evenly over forward, by input and by weights, and twice that
  for the backward pass of attention. A repeated forward pass hands over all that it reads and
  writes. A saved tensor is counted there once, in the format of activations.
- Norms and biases are sent between replicas with a kernel: those of attention and of width D with
  the first of a layer, those of an MLP with its first, those of experts with their router, the last
  norm with the unembedding. A tied table on one stage is sent with the unembedding.
- A gate of attention is an activation behind it, in the kernel of its output projection.
- Every stage sends as much to others as the mean of them.
- An indexer learns from the tokens that it chose, through nothing but its own projections.
- A recurrence keeps what goes into its convolution, its steps and what comes out; its states, like
  the scores of attention and of an indexer, are computed again.
"""

from collections import Counter
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

from oracle import models
from oracle.kernels import Collective, Kernel
from oracle.network import fastest_axes
from oracle.plans import Weights, few_of_state, layers_on, parameters_on
from oracle.steps import (
    ATTENTION,
    attention_of,
    entry_elements,
    needed_by,
    pairs,
    projections,
    touched,
)

SUM_BYTES = 4
"""Of a sum of a softmax [byte]."""


class Often(NamedTuple):
    """Runs of a kernel in a step of m micro-batches: `each` m + `more` [1]."""

    each: int
    more: int

    def runs(self, m):
        """Number of runs [1]."""
        return self.each * m + self.more


EVERY, FIRST, LATER = Often(1, 0), Often(0, 1), Often(1, -1)
ONCE = FIRST


class Pass(NamedTuple):
    """A pass of a kernel, whose count is that of a layer or of a stage.

    `useful` FLOP are of the model, `all_pairs` of these with attention to every token, and `done`
    with what a fused attention repeats.
    """

    kernel: Kernel
    often: Often
    useful: Fraction = Fraction(0)
    all_pairs: Fraction = Fraction(0)
    done: Fraction = Fraction(0)


class Saved(NamedTuple):
    """Elements of a token that a kernel saves, over all chips of tp.

    `kept` unless layers are computed again, `dropped` where nothing is, `copies` times; `residual`
    always. `sums` of softmaxes are kept in a format of their own.
    """

    kept: int = 0
    dropped: int = 0
    residual: int = 0
    copies: int = 1
    sums: int = 0

    def stay(self, recompute, size, *, in_layer=True, copies=None):
        """Bytes that stay until the backward pass, of elements of a size.

        The head is never computed again.
        """
        if recompute == "full" and in_layer:
            return self.residual * size
        dropped = 0 if recompute == "selective" else (copies or self.copies) * self.dropped
        return (self.kept + self.residual + dropped) * size + self.sums * SUM_BYTES


class Between(NamedTuple):
    """Bytes sent around a kernel in its passes; `inputs` for weight gradients."""

    forward: list[Collective]
    again: list[Collective]
    backward: list[Collective]
    inputs: list[Collective]


class Work(NamedTuple):
    """A kernel of a layer: FLOP of a pass, elements in and out and saved of a token.

    `useful` FLOP are those that no other chip does as well.
    """

    name: str
    flops: Fraction
    useful: Fraction
    moved: int
    saved: Saved
    between: Between
    weights: Weights | None = None
    unit: str = "compute"
    in_layer: bool = True
    share: Fraction = Fraction(1)
    unseen: Fraction = Fraction(1)  # all pairs of tokens over those that attend
    back: Fraction | None = None  # FLOP of the backward pass; None: twice those of the forward one
    again: Fraction = Fraction(5, 4)  # products of the backward pass over those that it needs
    detached: bool = False  # no gradient passes on to its input


NOTHING = Between([], [], [], [])


class OneChip:
    """Kernels of one chip in a micro-batch of S tokens a sequence."""

    def __init__(self, case, length):
        self.case, self.plan, self.entry, self.S = case, case.plan, case.entry, length
        self.X = Fraction(self.plan.micro_batch * length, self.plan.cp)
        self.x = self.X / self.plan.tp
        self.width = self.entry["D"]
        self.token = case.bytes_of("activations") * self.x  # bytes of an element of each token

    # What is sent

    def over(self, name, chips, stride, payload):
        """A collective of so many chips that are so far apart, if there are several."""
        if chips == 1 or not payload:
            return []
        axes = fastest_axes(self.case.links, chips)
        return [Collective(name, axes, payload, None, stride)]

    def hidden(self, times):
        """Gathers, or scatters, of all tokens over tp."""
        whole = self.X * self.width * self.case.bytes_of("activations")
        return self.over("all-gather", self.plan.tp, 1, whole) * times

    def between_layers(self, forward, again, backward, inputs):
        """Bytes that tp sends around a kernel, in gathers of all tokens."""
        if self.plan.save == "gathered" and self.plan.recompute != "selective":
            inputs = 0  # they are saved whole
        return Between(*map(self.hidden, (forward, again, backward, inputs)))

    @property
    def gathered(self):
        """Copies of gathered inputs that tp saves."""
        return self.plan.tp if self.plan.save == "gathered" else 1

    def context(self, a):
        """Bytes that chips with one sequence send around attention."""
        plan, size = self.plan, self.case.bytes_of("activations")
        keys = Fraction(entry_elements(a), min(plan.tp, a.get("K", 1)))
        if plan.context == "ring":
            ring = self.X * plan.cp * keys * size
            once, twice = (self.over("all-gather", plan.cp, plan.tp, n * ring) for n in (1, 2))
            return Between(once, once, twice, [])
        if a.get("kind") == "mla":
            elements = Fraction(2 * a["N"] * (a["nope"] + a["rope"] + a["v"]), plan.tp)
        else:
            elements = keys + Fraction(a["N"] * (a["H"] + (a.get("v") or a["H"])), plan.tp)
        once = self.over("all-to-all", plan.cp, plan.tp, self.X * elements * size)
        return Between(once, once, once, [])

    def dispatch(self, width):
        """Tokens to the chips of their experts, and results back."""
        ep = self.plan.ep
        parts = [n for n in range(1, ep + 1) if ep % n == 0]
        needed = {n: needed_by(self.case, n) for n in parts}
        there, back = (
            Collective("all-to-all", (ep,), self.x * width * self.case.bytes_of(tensors), needed)
            for tensors in ("activations", "combine")
        )
        return Between([there, back], [there], [there, back], [])

    def shared_by_replicas(self, weights):
        """Weights that replicas gather in a pass, and gradients that they scatter."""
        if weights is None:
            return [], []
        size = self.case.bytes_of
        whole = weights.held * size(weights.tensors) + weights.vectors * size("weights")
        sums = (weights.held + weights.vectors) * size("gradients")
        gathered, scattered = (
            self.over(name, weights.replicas, weights.stride, payload)
            if self.plan.shared >= least
            else []
            for name, least, payload in (("all-gather", 3, whole), ("reduce-scatter", 2, sums))
        )
        return gathered, scattered

    # Kernels

    def passes(self, work):
        """The passes of a kernel."""
        case, plan = self.case, self.plan
        saved, once = (
            self.x
            * work.saved.stay(
                plan.recompute, case.bytes_of(of), in_layer=work.in_layer, copies=copies
            )
            for of, copies in (("saved", None), ("activations", 1))
        )
        whole = work.moved * self.token
        handed = max(whole - Fraction(2, 3) * once, Fraction(0))
        gather, scatter = self.shared_by_replicas(work.weights)
        weights = gradients = Fraction(0)
        if work.weights is not None:
            weights = work.weights.read * case.bytes_of(work.weights.tensors)
            gradients = work.weights.held * case.bytes_of("gradients")

        def one(of, often, moved, sent):
            """A pass; `moved` are bytes of weights and gradients, saved ones, and handed ones."""
            flops, unseen = work.flops, work.unseen
            if of == "bwd":
                flops = 2 * work.flops if work.back is None else work.back
                unseen = 2 * work.flops * work.unseen / flops  # all pairs, twice
            useful = Fraction(0) if of == "again" else work.useful * flops / work.flops
            done = flops * work.again if of == "bwd" else flops
            name, (weights, saved, handed) = f"{work.name}-{of}", moved
            kernel = Kernel(name, work.share, weights, flops, saved, handed, sent, work.unit)
            return Pass(kernel, often, useful, useful * unseen, done)

        between, none = work.between, Fraction(0)
        yield one("fwd", EVERY, (weights, saved, handed), between.forward + gather)
        if plan.recompute == "full" and work.in_layer:
            yield one("again", EVERY, (weights, none, whole), between.again)
        if work.weights is None:
            yield one("bwd", EVERY, (none, saved, 2 * handed), between.backward)
            return
        if not work.detached:
            yield one("dgrad", EVERY, (weights, none, handed), between.backward + gather)
        inputs = between.inputs + scatter
        yield one("wgrad", FIRST, (gradients, saved, handed), inputs)
        yield one("wgrad-add", LATER, (2 * gradients, saved, handed), inputs)

    def linear(self, name, elements, moved, saved, between=NOTHING, **more):
        """A kernel of weights that tp splits, over all chips of tp; `moved` is in, then out.

        Of its parts of `few` heads a chip has one at least, for all tokens; of parts that are
        `whole` each has all, for its share of the tokens.
        """
        tp, none = self.plan.tp, Fraction(0)
        few, whole = more.pop("few", []), more.pop("whole", 0)
        shared = elements - whole - sum(part for _, part in few)
        held = Fraction(shared, tp) + sum((Fraction(n, min(heads, tp)) for heads, n in few), none)
        vectors, tensors = Fraction(more.pop("vectors", 0), tp), more.pop("tensors", "weights")
        own = held + whole
        weights = Weights(own, own, self.plan.replicas, tp, tensors, vectors)
        flops, useful = 2 * (self.X * held + self.x * whole), 2 * self.x * elements
        return Work(name, flops, useful, sum(moved), saved, between, weights, **more)

    def attention(self):
        """The kernels of a layer with attention, in the mean of all."""
        entry, plan = self.entry, self.plan
        a, width, layers = entry["attention"], entry["D"], len(models.attending(entry))
        gqa = a.get("kind") != "mla"
        heads = self.between_layers(1, 1, 1, 1)
        *into, out = projections(a, width, "prefill")
        values = a["N"] * ((a.get("v") or a["H"]) if gqa else a["v"])
        for number, (name, elements, inside, outside, _, *few) in enumerate(into):
            if number == 0:
                kept = 0 if gqa else a["kv_rank"] + (a.get("q_rank") or 0)
                saved = Saved(kept, width, copies=self.gathered)
            else:
                saved = Saved(dropped=inside)
            between = NOTHING if number else heads
            own = 0 if number else models.layer_vectors(entry)
            parts = [(heads, part) for each in few for heads, part, _ in each]
            more = {"few": parts} if gqa else {"whole": sum(part for _, part in parts)}
            moved = inside, outside
            yield self.linear(name, elements, moved, saved, between, vectors=own, **more)
        if gqa:
            tensors = a["N"] * a["H"] + entry_elements(a)
        else:
            tensors = 2 * a["N"] * (a["nope"] + a["rope"]) + a["N"] * a["v"]
        spans = Counter(models.attending(entry))
        kinds = {(type(tokens), tokens): count for tokens, count in spans.items()}
        for (kind, tokens), count in sorted(kinds.items(), key=lambda each: each[0][1] is not None):
            of_pair, inside, outside = attention_of(a, "prefill")
            seen = plan.micro_batch * pairs(self.S, self.S, tokens)
            flops = Fraction(of_pair * seen, plan.tp * plan.cp)
            yield Work(
                ATTENTION[kind],
                flops,
                flops,
                inside + outside + (entry_elements(a) if gqa else 0),
                Saved(tensors + values, sums=a["N"]),
                self.context(a),
                unit="attention",
                share=Fraction(count, layers),
                unseen=Fraction(self.S**2, pairs(self.S, self.S, tokens)),
            )
        name, elements, inside, outside, _ = out
        gates = {True: values, "element": values, "head": a["N"]}.get(a.get("gate"), 0)
        kept, last = self.residual
        saved = Saved(kept + gates, values if gates else 0, last)
        yield self.linear(name, elements, (inside, outside), saved, self.mixed)

    @property
    def residual(self):
        """Elements of a token behind a mixer: kept, and at the end of its layer."""
        return (0, self.width) if self.entry.get("single") else (self.width, 0)

    @property
    def mixed(self):
        """Bytes that tp sends behind a mixer; at the end of a layer none are needed again."""
        return self.between_layers(1, 0 if self.entry.get("single") else 1, 1, 0)

    @property
    def own_norms(self):
        """Norms of a layer that is an MLP or experts alone [1]."""
        return models.layer_norms(self.entry) if self.entry.get("single") else 0

    def indexers(self):
        """The kernels of an indexer; chips of tp share its tokens."""
        sparse, width, length = self.entry["sparse"], self.width, self.S
        queries, inside = sparse["heads"] * sparse["dim"], self.entry["attention"].get("q_rank")
        weights = sparse["heads"] if sparse.get("weighted", True) else 0
        inside = inside or width
        keys = sparse["dim"] + weights
        for name, elements, moved, vectors in (
            ("index-q", inside * queries, (inside, queries), 0),
            ("index-k", width * keys, (width, keys), 2 * sparse["dim"]),
        ):
            more = {"whole": elements, "vectors": vectors, "detached": True}
            yield self.linear(name, elements, moved, Saved(), **more)
        seen, chosen = (pairs(length, length, tokens) for tokens in (None, sparse["tokens"]))
        one = Fraction(2 * queries * self.plan.micro_batch, self.plan.tp * self.plan.cp)
        yield Work(
            "indexer",
            one * seen,
            one * seen,
            queries + sparse["tokens"],
            Saved(queries + sparse["dim"] + weights),
            NOTHING,
            unit="attention",
            unseen=Fraction(length**2, seen),
            back=2 * one * chosen,
            again=Fraction(3, 2),
        )

    def states(self):
        """The kernels of a layer with a state."""
        s, width, beside = self.entry["state"], self.width, self.entry["state"].get("beside")
        values, keys = s["heads"] * s["value"], 2 * s["groups"] * s["key"]
        kind, low, products = s["kind"], 0, 2
        made = {"short-conv": 3 * values, "mamba1": 2 * values}.get(kind, keys + 2 * values)
        kept, gates, again = keys + 2 * values, values, Fraction(5, 4)
        if kind == "gated-delta":
            made, kept = made + 2 * s["heads"], kept + 2 * s["heads"]
        elif kind == "mamba2":
            made, kept = made + s["heads"], kept + s["heads"]
        elif kind == "short-conv":
            kept, gates, again = 3 * values, 0, Fraction(1)
        elements = width * made
        if kind == "kda":
            kept += s["heads"] + s["heads"] * s["key"]
            made += s["heads"]
            low = s["value"]
            elements = width * made + low * width + low * s["heads"] * s["key"]
            if not s.get("full_gate", True):
                elements += low * width + low * values - width * values
                low, made = 2 * low, made - values
        if kind in ("gated-delta", "kda"):
            products, again = 3, Fraction(4, 3)
        parts = few_of_state(s, width)
        few = [part for part in parts if part[0] > 1]
        whole = sum(part for heads, part in parts if heads == 1)
        out = values * width
        steps = values * (2 * s["rank"] + keys) if kind == "mamba1" else 0
        matrices = elements + steps + out
        own = models.state_parameters(self.entry) - matrices
        own += 0 if beside else models.layer_norms(self.entry)
        saved = Saved(low, 0 if beside else width, copies=1 if beside else self.gathered)
        into = NOTHING if beside else self.between_layers(1, 1, 1, 1)
        more = {"few": few, "whole": whole, "vectors": own}
        yield self.linear("state-in", elements, (width, made), saved, into, **more)
        if steps:
            saved = Saved(s["rank"], values)
            yield self.linear("state-steps", steps, (values, keys + values), saved)
        flops = 2 * products * values * s["key"] * self.x
        inside = keys + values + (values if kind == "mamba1" else 0)
        if kind == "short-conv":
            flops, inside = 2 * s["conv"] * values * self.x, 3 * values
        saved, moved = Saved(kept), inside + values
        more = {"unit": "attention", "again": again}
        yield Work("state", flops, flops, moved, saved, NOTHING, **more)
        kept, last = (0, 0) if beside else self.residual
        saved, behind = Saved(kept + gates, values, last), NOTHING if beside else self.mixed
        yield self.linear("state-out", out, (values, width), saved, behind)

    def mlp(self):
        """The kernels of an MLP."""
        width, mlp = self.width, self.entry["mlp"]
        hidden, gates = mlp["F"], 2 if mlp.get("gated", True) else 1
        up = Saved(gates * hidden, width, copies=self.gathered)
        into, out = self.between_layers(1, 1, 1, 1), self.between_layers(1, 0, 1, 0)
        moved = width, gates * hidden
        own = models.mlp_parameters(self.entry) - (gates + 1) * width * hidden + self.own_norms
        yield self.linear("gate-up", gates * width * hidden, moved, up, into, vectors=own)
        saved = Saved(dropped=hidden, residual=width)
        yield self.linear("down", hidden * width, (hidden, width), saved, out)

    def experts(self):
        """The kernels of a layer with experts."""
        width, moe, plan = self.width, self.entry["moe"], self.plan
        experts, chosen, own = moe["E"], moe["k"], moe.get("shared", 0)
        matrices = 3 if moe.get("gated", True) else 2
        gates, inner = matrices - 1, moe.get("latent") or width
        apart = plan.ep > 1
        behind = bool(inner != width and not own)  # tokens are gathered behind the projection
        router = width * (experts + (1 if moe.get("shared_gate") and own else 0))
        into = NOTHING if apart or behind else self.between_layers(1, 1, 1, 1)
        copies = self.gathered if own or not (apart or behind) else 1
        saved = Saved(2 * experts, width, copies=copies)
        latents = 2 * width * inner if inner != width else 0
        vectors = models.experts_parameters(self.entry) - router - latents
        vectors -= matrices * moe["Fe"] * (inner * experts + width * own)
        vectors += self.own_norms
        moved = width, experts
        yield self.linear("router", router, moved, saved, into, whole=router, vectors=vectors)
        if latents:
            more = {"whole": width * inner}
            yield self.linear("latent-in", width * inner, (width, inner), Saved(), **more)
            saved = Saved(inner, 0, 0 if own else width)
            yield self.linear("latent-out", width * inner, (inner, width), saved, **more)
        one, shards = matrices * inner * moe["Fe"], plan.ep if apart else plan.tp
        tokens = plan.ep * self.x if apart else self.X
        read = touched(experts, chosen, tokens, "uniform") * Fraction(one, shards)
        replicas = plan.stage_chips // plan.ep if apart else plan.replicas
        weights = Weights(read, Fraction(experts * one, shards), replicas, shards, "experts")
        hidden = chosen * moe["Fe"]
        saved = Saved(chosen * inner + gates * hidden, hidden, 0 if own or latents else width)
        sent = self.dispatch(inner) if apart else self.between_layers(1, 0, 1, 0)
        if behind and not apart:
            whole = self.X * inner * self.case.bytes_of("activations")
            once = self.over("all-gather", plan.tp, 1, whole)
            sent = Between(once * 2, once, once * 2, [])
        moved = 2 * chosen * inner + (1 + gates) * hidden
        flops = 2 * self.x * chosen * one
        yield Work("experts", flops, flops, moved, saved, sent, weights)
        if own:
            hidden = own * moe["Fe"]
            saved = Saved(gates * hidden, hidden, width)
            sent = self.between_layers(2, 1, 2, 1) if apart else NOTHING
            moved = width + hidden, gates * hidden + width
            yield self.linear("shared", matrices * width * hidden, moved, saved, sent)

    def works(self, part):
        """The kernels of a part of a layer."""
        parts = {
            "attention": self.attention,
            "indexer": self.indexers,
            "state": self.states,
            "dense": self.mlp,
            "moe": self.experts,
        }
        return [*parts[part]()]

    def layer(self, part):
        """The passes of a part of a layer."""
        return [each for work in self.works(part) for each in self.passes(work)]

    def table(self, rows):
        """So many rows of the embedding, on a chip."""
        held = Fraction(rows * self.width, self.plan.tp)
        return Weights(held, held, self.plan.replicas, self.plan.tp, "head")

    def embedding(self):
        """The embedding: rows are read and written in three passes; its table is gathered once."""
        saved = 2 * self.width * self.x * self.case.bytes_of("saved")
        none, handed = Fraction(0), 6 * self.width * self.token
        yield Pass(Kernel("embed", 1, none, none, saved, handed, self.hidden(2)), EVERY)
        tied = self.entry.get("tied") and self.plan.pp == 1
        rows = self.entry.get("positions", 0) + (0 if tied else self.entry["V"])
        sent = [each for kind in self.shared_by_replicas(self.table(rows)) for each in kind]
        if sent:
            yield Pass(Kernel("embed-replicas", 1, none, none, none, none, sent), EVERY)

    def head(self):
        """The unembedding of all tokens."""
        rows, width = self.entry["V"], self.width
        saved = Saved(rows, width, copies=self.gathered)
        between = self.between_layers(1, 0, 1, 1)
        more = {"tensors": "lm_head", "unit": "attention", "in_layer": False}
        more |= {"vectors": models.last_vectors(self.entry)}
        work = self.linear("unembed", rows * width, (width, rows), saved, between, **more)
        yield from self.passes(work)

    def sends(self):
        """Bytes that a stage sends to the next one, and to the one before, in the mean.

        From run to run of layers, over the inner network where two stages are in one group of it.
        """
        plan, links, none = self.plan, self.case.links, Fraction(0)
        if plan.pp == 1:
            return
        domain = links[0].domain if len(links) > 1 else None
        group = [
            0 if domain is None else stage * plan.stage_chips // domain for stage in range(plan.pp)
        ]
        ways = [
            (run % plan.pp, (run + 1) % plan.pp) for run in range(plan.interleave * plan.pp - 1)
        ]
        inside = sum(group[here] == group[there] for here, there in ways)
        shares = [Fraction(n, plan.pp) for n in (inside, len(ways) - inside)][: len(links)]
        both = 2 * self.width * self.token
        sent = Collective("all-to-all", (plan.pp,), both, None, plan.stage_chips, shares)
        yield Pass(Kernel("send", 1, none, none, none, none, [sent]), EVERY)

    def on(self, stage):
        """The passes of a micro-batch on a stage, by what it has of each [1]."""
        for kind, layers in stage.layers.items():
            if layers:
                yield layers, self.known(kind, lambda kind=kind: self.layer(kind))
        if stage.first:
            yield 1, self.known("embed", self.embedding)
        if stage.last:
            yield 1, self.known("head", self.head)
        yield 1, self.known("sends", self.sends)

    def known(self, what, make):
        """The passes of a part, made once."""
        key = what, self.S
        if key not in self.case.known:
            self.case.known[key] = [*make()]
        return self.case.known[key]

    def once(self, stage):
        """The optimizer of a chip's share of the states, and the collectives of the step."""
        case, plan, none = self.case, self.plan, Fraction(0)
        moved, sent = none, []
        parts = groupby(parameters_on(case, stage), lambda of: of.tensors.removeprefix("lm_"))
        for alike in ([*of] for _, of in parts):  # both token tables are sent together
            each = alike[0]
            gradients = sum(of.held for of in alike) * case.bytes_of("gradients")
            weights = sum((of.held * case.bytes_of(of.tensors) for of in alike), none)
            states = sum(of.held for of in alike) * case.optimizer_bytes
            moved += (gradients + weights + 2 * states) / (each.replicas if plan.shared else 1)
            kind = "all-reduce" if plan.shard == "none" else "reduce-scatter"
            if plan.shared <= 1:
                sent += self.over(kind, each.replicas, each.stride, gradients)
            if plan.shared in (1, 2):
                sent += self.over("all-gather", each.replicas, each.stride, weights)
        yield Pass(Kernel("optimizer", 1, moved, none, none, none), ONCE)
        if sent:
            yield Pass(Kernel("replicas", 1, none, none, none, none, sent), ONCE)


def saved(case, stage, m, length):
    """Bytes of saved tensors on a chip of a stage with m micro-batches."""
    plan, chip = case.plan, OneChip(case, length)
    ahead = plan.pp - stage.place

    size = case.bytes_of("saved")

    def of(part, recompute):
        """Bytes of a token that a part of a layer saves."""
        each = {work.name: work.saved.stay(recompute, size) for work in chip.works(part)}
        spans = [name for name in each if name.startswith("attention")]
        return sum(each.values()) - sum(each[name] for name in spans[1:])

    def all_of(layers, recompute):
        """Bytes of a token that layers save."""
        return sum(count * of(part, recompute) for part, count in layers.items() if count)

    held = all_of(stage.layers, plan.recompute)
    if plan.interleave == 1:
        held *= min(ahead, m)
    else:
        runs = 2 * (ahead - 1) + (plan.interleave - 1) * plan.pp + 1
        held *= Fraction(min(runs, m * plan.interleave), plan.interleave)
    if stage.last:
        head = Saved(case.entry["V"], case.entry["D"], copies=chip.gathered)
        held += head.stay(plan.recompute, size, in_layer=False) + case.entry["D"] * size
    if plan.recompute == "full":
        held += max(all_of(layer.layers, "none") for layer in layers_on(case.entry, stage))
    return held * chip.x
