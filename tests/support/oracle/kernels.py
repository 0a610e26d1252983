"""Kernels of operations and of steps, on one chip: their works and collectives.

An operation is one kernel, a step of a model a list of kernels with counts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from oracle.network import sent_per_byte, tiers


class Collective(NamedTuple):
    """A collective over chips, and the bytes that each pass is about on one chip.

    Where only some parts need the payload, `needed` has the chance that one does, by the number of
    parts. From one of the chips to the next it is `stride` chips. `shares` of the payload on each
    level, inner first, are of what no collective is.
    """

    name: str
    axes: tuple[int, ...]
    payload: Fraction
    needed: Mapping[int, Fraction] | None = None
    stride: int = 1
    shares: Sequence[Fraction] | None = None

    @property
    def passes(self):
        """Passes of a collective around the ring."""
        return 2 if self.name == "all-reduce" else 1


class Fused(NamedTuple):
    """Attention or routed experts, as fits of their own time them.

    Bytes in and out, and of each token once; the depth of a fit's mixed piece; activated experts;
    KV heads of all sequences; sizes that fits reach to. Whether query heads share a KV head of the
    chip.
    """

    inputs: Fraction
    outputs: Fraction
    sizes: Mapping[str, Fraction | int]
    depth: Fraction | int = 0
    once: Fraction = Fraction(0)
    activated: Fraction = Fraction(0)
    heads: Fraction = Fraction(0)
    shares: bool = True


class Matmul(NamedTuple):
    """A kernel that is one matrix: rows, None where no tile counts; bytes in and out; D and F."""

    rows: Fraction | None
    inputs: Fraction
    outputs: Fraction
    depth: Fraction
    columns: Fraction


@dataclass(frozen=True)
class Kernel:
    """Work of one chip, and its collectives; `activation_bytes` are those of inputs and outputs.

    `context` is what each sequence attends to, of attention. `engine_collectives` are those that
    engines call where others send less.
    """

    name: str
    count: int
    weight_bytes: Fraction
    flops: Fraction
    kv_cache_bytes: Fraction
    activation_bytes: Fraction
    collectives: Sequence[Collective] = ()
    unit: str = "compute"
    matmul: Matmul | None = None
    context: Fraction | int | None = None
    fused: Fused | None = None
    engine_collectives: Sequence[Collective] | None = None

    @property
    def timed(self):
        """The collectives that engines call, which estimates are of."""
        return self.collectives if self.engine_collectives is None else self.engine_collectives


def sent(links, collective):
    """Bytes that one chip sends on each level.

    Where only some parts need the payload, it is once on each chip that does: an all-to-all of as
    many copies as there are parts, each needed by chance. Inside a group a copy goes to every chip
    that needs it but the one where it arrives.
    """
    name, axes, payload, needed, stride, shares = collective
    if shares is not None:
        return [share * payload for share in shares]
    if needed is None:
        each = sent_per_byte(links, axes, name, stride)
        return [collective.passes * part * payload for part in each]
    chips, found = math.prod(axes), []
    for link, joined in tiers(links, axes, stride):
        found.append(link.scattered(joined) * chips * needed[chips] * payload)
        chips //= math.prod(joined)
    return found


def levels_s(links, collective, share, *, typical=False):
    """The times of a collective at a share of the rates of the network."""
    terms = []
    joined = tiers(links, collective.axes, collective.stride)
    levels = zip(joined, sent(links, collective), strict=True)
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
    """The time of a collective alone: the slowest level or its hops, usual ones of both levels."""
    sends, hops = zip(*levels_s(links, collective, share, typical=typical), strict=True)
    return max(*sends, sum(hops) if typical else max(hops))
