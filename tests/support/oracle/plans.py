"""Plans of training, the layers of their stages, and the states that chips of a stage hold.

Conventions, where the contract leaves a choice:

- Layers with an MLP come before those with experts.
- Stages of a pipeline that have a layer more are the middle ones in order, then the first one, then
  the last one. Interleaved runs are dealt in turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from oracle import models
from oracle.fits import Fits
from oracle.network import Link
from oracle.quantities import exact
from oracle.steps import EVERY_CHIP, projections

Entry = dict[str, Any]

SHARDS = ("none", "optimizer", "gradients", "weights")
"""From what replicas share nothing of, to all."""

NO_FITS = Fits({"compute": None, "attention": None}, {}, {})


@dataclass(frozen=True)
class Plan:
    """Split of a step over chips."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    ep: int = 1
    interleave: int = 1
    micro_batch: int = 1
    shard: str = "optimizer"
    recompute: str = "none"
    save: str = "split"
    context: str = "ring"
    optimizer: str | float = "adam"

    @property
    def replicas(self):
        """Chips with equal weights [1]."""
        return self.dp * self.cp

    @property
    def stage_chips(self):
        """Chips of a stage [1]."""
        return self.tp * self.replicas

    @property
    def chips(self):
        """All chips [1]."""
        return self.stage_chips * self.pp

    @property
    def shared(self):
        """States that replicas share, from 0 for none to 3 for all."""
        return SHARDS.index(self.shard)


@dataclass(frozen=True)
class Case:
    """A model on chips by a plan, all but the sizes of a step.

    `stretch` is the fit of steps: how often they take the time without overlap, and bands.
    """

    entry: Entry
    plan: Plan
    bits: Mapping[str, Fraction]
    peaks: Mapping[str, Fraction]
    memory_rate: Fraction
    capacity: Fraction | None
    links: tuple[Link, ...]
    efficiency: Mapping[str, Fraction]
    price: Mapping[str, Any] | None = None
    watts: Fraction | None = None
    fits: Fits = NO_FITS
    stretch: Mapping[str, Any] | None = None
    routing: str = "uniform"
    known: dict[Any, Any] = field(default_factory=dict, compare=False)

    @property
    def chips(self):
        """All chips [1]."""
        return self.plan.chips

    def bytes_of(self, tensors):
        """Bytes of an element of a class of tensors."""
        return self.bits[tensors] / 8

    @property
    def optimizer_bytes(self):
        """Bytes of the states that the optimizer has of a parameter."""
        if self.plan.optimizer == "adam":
            return self.bytes_of("master") + 2 * self.bytes_of("moments")
        return exact(self.plan.optimizer)

    @cached_property
    def stages(self):
        """The layers of every stage."""
        return stages_of(self.entry, self.plan)


class Stage(NamedTuple):
    """Layers of a stage by part, all of them, whether it is the first and last, its position."""

    attention: Fraction | int
    indexer: Fraction | int
    state: Fraction | int
    dense: Fraction | int
    moe: Fraction | int
    every: int
    first: bool
    last: bool
    place: int

    @property
    def kind(self):
        """Work of a stage; stages of a kind differ in nothing else."""
        return self[: self._fields.index("place")]

    @property
    def layers(self):
        """Its layers by part."""
        return {part: getattr(self, part) for part in PARTS}


Parts = dict[str, Fraction | int]
PARTS = ("attention", "indexer", "state", "dense", "moe")
"""Parts of layers."""


def alone(**parts):
    """A stage of a layer with some parts."""
    return Stage(**{**dict.fromkeys(PARTS, 0), **parts}, every=1, first=False, last=False, place=0)


def layers_on(entry, stage):
    """Kinds of layers that a stage has in every order of its layers, each as a stage.

    A mixer (attention or state) and an MLP (dense or MoE) meet in at least as many layers as their
    counts together exceed the layers of the stage.
    """
    indexed = Fraction(stage.indexer) / stage.attention if stage.attention else 0
    plain: Parts = {"attention": 1, "indexer": indexed}
    state: Parts = {"state": 1}
    mixers = [(plain, stage.attention), (state, stage.state)]
    if (entry.get("state") or {}).get("beside"):
        mixers = [({**plain, **state}, stage.state), (plain, stage.attention - stage.state)]
    rest: list[tuple[Parts, Fraction | int]]
    rest = [({"dense": 1}, stage.dense), ({"moe": 1}, stage.moe)]
    if entry.get("single"):
        return [alone(**part) for part, count in (*mixers, *rest) if count]
    pairs = [
        (alone(**one, **other), here + there - stage.every)
        for one, here in mixers
        for other, there in rest
        if here and there
    ]
    return [each for each, both in pairs if both > 0] or [each for each, _ in pairs]


def runs_of(layers, stages, interleave):
    """The layers of every run, as they follow one another.

    Even ones; or, of several a stage, one less at both ends where embedding and head fill them up;
    or else some one less, from both ends on, the last one first. Of one a stage the last and the
    first are the smaller ones, and then those before the last.
    """
    runs = stages * interleave
    fewest, more = divmod(layers, runs)
    if interleave > 1 and more and (layers + 2) % runs == 0:
        whole = (layers + 2) // runs
        return [whole - (run in (0, runs - 1)) for run in range(runs)]
    if interleave == 1:
        order = [*range(1, runs - 1), 0, runs - 1][:runs] if runs > 1 else [0]
        return [fewest + (order.index(run) < more) for run in range(runs)]
    distance = {run: min((runs - 1 - run, 0), (run, 1)) for run in range(runs)}
    smaller = sorted(distance, key=lambda run: distance[run])[: runs - more] if more else []
    return [fewest + bool(more and run not in smaller) for run in range(runs)]


def stages_of(entry, plan):
    """The stages of a model, the first one first.

    Every stage has its share of all mixers, and of all layers that are one part.
    """
    layers = entry["layers"]
    every, dense = [0] * plan.pp, [0] * plan.pp
    kinds = sorted(models.each_mlp(entry))  # dense, then moe
    for run, here in enumerate(runs_of(layers, plan.pp, plan.interleave)):
        every[run % plan.pp] += here
        dense[run % plan.pp] += kinds[:here].count("dense")
        kinds = kinds[here:]
    found = []
    for place, count in enumerate(every):
        counts: Parts = {
            part: Fraction(number * count, layers)
            for part, number in models.layers_by_part(entry).items()
        }
        if not entry.get("single"):
            counts |= {"dense": dense[place], "moe": count - dense[place]}
        stage = alone(**counts)
        ends = {"first": place == 0, "last": place == plan.pp - 1}
        found.append(stage._replace(every=count, place=place, **ends))
    return found


def few_of_state(s, width):
    """Parts of a state's projections that few chips can share: their number, and elements.

    Keys and queries of few heads; and projections to a low rank, which every chip has.
    """
    if s["kind"] in ("short-conv", "mamba1"):
        return []
    parts = [(s["groups"], 2 * s["groups"] * s["key"] * width)]
    if s["kind"] == "kda":
        ranks = 1 if s.get("full_gate", True) else 2
        parts.append((EVERY_CHIP, ranks * width * s["value"]))
    return parts


class Weights(NamedTuple):
    """Elements of a chip that a pass reads, that have gradients, and how chips share them.

    `vectors` are those of norms and biases that are sent with them.
    """

    read: Fraction
    held: Fraction
    replicas: int
    stride: int
    tensors: str = "weights"
    vectors: Fraction = Fraction(0)


def parameters_on(case, stage):
    """The parameters of a chip of a stage, as `Weights`: of layers, of token tables, of experts.

    Of layers with copies of what not all chips of tp can share. A table of both ends is that of the
    embedding.
    """
    entry, plan, width = case.entry, case.plan, case.entry["D"]
    moe, s = entry.get("moe") or {}, entry.get("state")
    beside = stage.every * models.layer_norms(entry) + models.last_vectors(entry) * stage.last
    beside += stage.attention * models.attention_parameters(entry)
    (_, _, _, _, _, few), *_ = projections(entry["attention"], width, "prefill")
    parts = [(heads, part * stage.attention) for heads, part, _ in few]
    if stage.indexer:
        own = models.indexer_parameters(entry)
        beside += stage.indexer * own
        parts.append((EVERY_CHIP, stage.indexer * (own - 2 * entry["sparse"]["dim"])))
    if stage.state and s is not None:
        beside += stage.state * models.state_parameters(entry)
        parts += [(heads, part * stage.state) for heads, part in few_of_state(s, width)]
    routed = 0
    if stage.dense:
        beside += stage.dense * models.mlp_parameters(entry)
    if stage.moe:
        matrices = 3 if moe.get("gated", True) else 2
        inner = moe.get("latent") or width
        routed = stage.moe * moe["E"] * matrices * inner * moe["Fe"]
        beside += stage.moe * models.experts_parameters(entry) - routed
        gate = 1 if moe.get("shared_gate") and moe.get("shared") else 0
        parts.append((EVERY_CHIP, stage.moe * width * (moe["E"] + gate)))
        if moe.get("latent"):
            parts.append((EVERY_CHIP, stage.moe * 2 * width * inner))
    copies = sum(
        Fraction(part, min(heads, plan.tp)) - Fraction(part, plan.tp) for heads, part in parts
    )
    once = entry.get("tied") and stage.first and stage.last
    table = entry["V"] * width
    rows = stage.first * (table + entry.get("positions", 0) * width)
    apart = plan.ep > 1
    shards = plan.ep if apart else plan.tp
    replicas = plan.stage_chips // plan.ep if apart else plan.replicas
    for elements, chips, alike, tensors, more in (
        (beside, plan.tp, plan.replicas, "weights", copies),
        (rows, plan.tp, plan.replicas, "head", 0),
        (0 if once else stage.last * table, plan.tp, plan.replicas, "lm_head", 0),
        (routed, shards, replicas, "experts", 0),
    ):
        held = Fraction(elements, chips) + more
        yield Weights(held, held, alike, chips, tensors)


def states(case, stage):
    """Bytes of weights, gradients and the states of the optimizer on a chip of a stage."""
    total = Fraction(0)
    for each in parameters_on(case, stage):
        sizes = (
            (case.optimizer_bytes, 1),
            (case.bytes_of("gradients"), 2),
            (case.bytes_of(each.tensors), 3),
        )
        for size, least in sizes:
            total += each.held * size / (each.replicas if case.plan.shared >= least else 1)
    return total
