"""Kernels of operations and of steps, on one chip: collectives, estimates and their bands.

An operation is one kernel, a step of a model a list of kernels with counts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from oracle.network import sent_per_byte, tiers
from oracle.quantities import exact

ESTIMATES = (
    *("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s"),
    *("estimate_bound", "estimate_beyond"),
)

NEARLY_TIED = Fraction(1, 10**13)
"""Pieces that differ by a smaller share count as tied."""


class Collective(NamedTuple):
    """Passes of one kind over chips, and the bytes of what each is about on one chip.

    Where only some parts need the payload, `needed` has the chance that one does, by the number of
    parts.
    """

    kind: str
    passes: int
    axes: tuple[int, ...]
    payload: Fraction
    needed: Mapping[int, Fraction] | None = None

    @property
    def name(self):
        """The name of the collective in a file of fits."""
        if self.kind == "scattered":
            return "all-to-all"
        return "all-reduce" if self.passes > 1 else "all-gather"


class Matmul(NamedTuple):
    """A kernel that is one matrix: rows, None where no tile counts; bytes in and out; D and F."""

    rows: Fraction | None
    inputs: Fraction
    outputs: Fraction
    depth: Fraction
    columns: Fraction


@dataclass(frozen=True)
class Kernel:
    """Work of one chip, and its collectives; `activation_bytes` are those of inputs and outputs."""

    name: str
    count: int
    weight_bytes: Fraction
    flops: Fraction
    cache_bytes: Fraction
    activation_bytes: Fraction
    collectives: Sequence[Collective] = ()
    unit: str = "compute"
    matmul: Matmul | None = None


class Fit(NamedTuple):
    """Fitted numbers, bands by bound, and of matmuls how far they reach."""

    numbers: Mapping[str, Fraction]
    bands: Mapping[str, tuple[Fraction, Fraction]]
    reach: Mapping[str, Any] | None = None


def sent(links, collective):
    """Bytes that one chip sends on each level.

    Where only some parts need the payload, it is once on each chip that does: an all-to-all of as
    many copies as there are parts, each needed by chance. Inside a group a copy goes to every chip
    that needs it but the one where it arrives.
    """
    _, passes, axes, payload, needed = collective
    if needed is None:
        return [passes * part * payload for part in sent_per_byte(links, axes, collective.kind)]
    chips, found = math.prod(axes), []
    for link, joined in tiers(links, axes):
        found.append(link.scattered(joined) * chips * needed[chips] * payload)
        chips //= math.prod(joined)
    return found


def levels_s(links, collective, share, *, typical=False):
    """The times of a collective at a share of the rates of the network."""
    terms = []
    levels = zip(tiers(links, collective.axes), sent(links, collective), strict=True)
    for (link, axes), amount in levels:
        hop = link.typical_s if typical else link.hop_s
        hops = collective.passes * link.hops(axes) if amount else 0
        terms.append((amount / (link.bytes_per_s(axes) * share), hops * hop))
    return terms


def together(links, collectives, share):
    """The times of collectives that overlap, each so many times: sums by level."""
    total = [(Fraction(0), Fraction(0))] * len(links)
    for count, each in collectives:
        levels = levels_s(links, each, share)
        total = [
            (sends + count * send, hops + count * hop)
            for (sends, hops), (send, hop) in zip(total, levels, strict=True)
        ]
    return total


def collective_s(links, collective, share, *, typical=False):
    """The time of a collective alone: the slowest level or its hops."""
    return max(max(level) for level in levels_s(links, collective, share, typical=typical))


def fitted_collective_s(links, collective, share, fit):
    """The calibrated time of a collective; without a fit the hops take their typical time."""
    if fit is None:
        return collective_s(links, collective, share, typical=True)
    numbers = fit.numbers
    ((link, axes),) = tiers(links, collective.axes)
    wire = sum(sent(links, collective), Fraction(0)) / link.bytes_per_s(axes)
    protocols = (wire / numbers["low_latency"], numbers["bulk_overhead_s"] + wire / numbers["bulk"])
    steps = collective.passes * (math.prod(collective.axes) - 1)
    return numbers["overhead_s"] + min(protocols) + numbers["hop_s"] * steps


NO_FITS: Mapping[str, Fit] = {}


def pieces(machine, kernel, fit, collectives):
    """The pieces of a calibrated time, in the order that decides ties [s]."""
    moved = kernel.weight_bytes + kernel.cache_bytes + kernel.activation_bytes
    math_s, memory_s = kernel.flops / machine.peaks[kernel.unit], moved / machine.memory_rate
    activations_s, depth = Fraction(0), Fraction(0)
    if kernel.matmul is not None:
        rows, tile = kernel.matmul.rows, int(fit.get("tile", 1))
        math_s *= 1 if rows is None else math.ceil(rows / tile) * tile / rows if tile > 1 else 1
        activations_s = (kernel.matmul.inputs + kernel.matmul.outputs) / machine.memory_rate
        depth = kernel.matmul.depth
    share = fit.get("network", Fraction(1))
    network = [
        fitted_collective_s(machine.links, each, share, collectives.get(each.name))
        for each in kernel.collectives
    ]
    compute_s = math_s / fit["math"]
    return [
        ("compute", compute_s),
        ("compute", compute_s + fit.get("sustained", 0) * (math_s - Fraction(1, 1000))),
        ("memory", memory_s / fit["memory"]),
        ("network", sum(network, Fraction(0))),
        (
            "mixed",
            fit.get("mixed_math", 0) * math_s
            + fit.get("mixed_memory", 0) * memory_s
            + fit.get("mixed_activations", 0) * activations_s
            + fit.get("mixed_depth_s", 0) * depth,
        ),
    ]


def estimate(machine, kernel, fit, collectives=NO_FITS):
    """The calibrated time of a kernel, its band and its bound; None without a fit.

    The bands of the only collective win.
    """
    if fit is None:
        return dict.fromkeys(ESTIMATES)
    numbers, bands = fit.numbers, dict(fit.bands)
    if kernel.matmul is not None and len(kernel.collectives) == 1:
        of_network = collectives.get(kernel.collectives[0].name)
        bands |= of_network.bands if of_network else {}
    times = pieces(machine, kernel, numbers, collectives)
    largest = max(time for _, time in times)
    bound = next(name for name, time in times if time >= largest * (1 - NEARLY_TIED))
    total = numbers["overhead_s"] + largest
    if kernel.matmul is not None:
        total += numbers.get("activation_passes", 0) * kernel.matmul.inputs / machine.memory_rate
    low, high = bands.get(bound, (None, None))
    beyond = beyond_of(kernel.matmul, fit.reach)
    for wider in filter(None, (fit.reach and fit.reach[band] for band in beyond.values())):
        if low is not None:
            low, high = min(low, exact(wider[0])), max(high, exact(wider[1]))
    return {
        "t_estimate_s": total,
        "t_estimate_p10_s": None if low is None else low * total,
        "t_estimate_p90_s": None if high is None else high * total,
        "estimate_bound": bound,
        "estimate_beyond": ", ".join(beyond) or None,
    }


def beyond_of(matmul, reach):
    """What a matmul is beyond, in words, each with the name of the band there."""
    if matmul is None or reach is None:
        return {}
    sizes = {"D": matmul.depth, "F": matmul.columns}
    inside = all(
        low <= sizes[name] <= high for name, (low, high) in reach["sizes"].items() if name in sizes
    )
    engine = {"engine": "elsewhere"} if reach["foreign"] else {}
    return engine | ({} if inside else {"sizes": "outside"})
