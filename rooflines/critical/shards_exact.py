"""The largest compute-bound number of chips in exact arithmetic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rooflines.critical.solving import OTHERS, Solution
from rooflines.critical.split_lines import (
    ENDLESS,
    PAIR,
    domain_of,
    latency_per_hop,
    on_chips,
    pieces,
    ring_multiple,
    time_line,
)
from rooflines.model.costs import evaluate, extent
from rooflines.model.resources import MATH, RESOURCES, Resource
from rooflines.sweep.ties import exact_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from fractions import Fraction

    from rooflines.sweep.space import ChipVariant
    from rooflines.sweep.sweep import Sweep

__all__ = ["solve_exactly"]


def solve_exactly(sweep: Sweep, chip_variant: ChipVariant, row: Mapping[str, Any]) -> Solution:
    """The thresholds of one row, from the exact times of the table.

    Args:
        sweep: The sweep.
        chip_variant: The row's chip and variant.
        row: Its sizes, and `#tends_<bound>` [FLOP/byte].
    """
    sizes = {dim: row[dim] for dim in sweep.op.dims}
    domain = domain_of(sweep, chip_variant) or ENDLESS
    multiple = ring_multiple(sweep, chip_variant)

    def times(shards: int) -> list[Fraction]:
        chip_rows, variant = on_chips(chip_variant, shards)
        return [exact_time(sweep, chip_rows, variant, resource, sizes) for resource in RESOURCES]

    def most(resources: Iterable[Resource]) -> int:
        indices = [RESOURCES.index(resource) for resource in resources]

        def compute_bound(shards: int) -> bool:
            seconds = times(shards)
            return all(seconds[0] >= seconds[index] for index in indices)

        few = [n for n in (1, PAIR) if n <= domain and compute_bound(n)]
        return max([*few, *(last_of(f, compute_bound, domain) for f in families(multiple))])

    number = most(OTHERS)
    limit = None
    if number + 1 <= domain:
        seconds = times(number + 1)
        limit = RESOURCES[seconds.index(max(seconds))].bound
    real = real_chips(sweep, chip_variant, number, sizes) if number else math.inf
    return Solution(
        critical_exact=real if math.isfinite(real) else None,
        critical=finite(number),
        against={resource.name: finite(most([resource])) for resource in OTHERS},
        limit=limit,
        limit_intensity=row[f"#tends_{limit}"] if limit else None,
    )


def finite(number: int) -> int | None:
    """A largest number of chips; None: not even one chip, or no largest number."""
    return number if 1 <= number < ENDLESS else None


def families(multiple: int | None) -> list[Callable[[int], int]]:
    """Sequences of numbers of chips on which links have one rate; one and two may be left out.

    Args:
        multiple: The ring multiple of the interconnect [1]; None: no rings.
    """
    if multiple is None:
        return [lambda n: n + 1]
    rings: Callable[[int], int] = lambda n: n * multiple  # noqa: E731, one of a list of such
    if multiple == 1:
        return [rings]
    return [rings, lambda n: n + 1 + n // (multiple - 1)]


def real_chips(
    sweep: Sweep, chip_variant: ChipVariant, number: int, sizes: Mapping[str, int]
) -> float:
    """The real number of chips behind a whole one, by exact lines [1]; infinite: no largest one."""
    workload = sweep.case(chip_variant[1])
    extents = {dim: extent(workload, dim, size) for dim, size in sizes.items()}
    ring = number > PAIR and number % (ring_multiple(sweep, chip_variant) or number + 1) == 0
    piece = pieces(sweep, chip_variant)[2 if ring else 1]

    def line_at(resource: Resource) -> tuple[Fraction, Fraction]:
        lines = time_line(sweep, chip_variant, resource, piece).items()
        constant, slope = (
            evaluate({dims: terms[power] for dims, terms in lines}, extents) for power in (0, 1)
        )
        return constant, slope

    math0, math1 = line_at(MATH)
    reals = [math.inf]
    for resource in OTHERS:
        own0, own1 = line_at(resource)
        if own1 > math1:
            reals.append(float((math0 - own0) / (own1 - math1)))
        elif own0 > math0:
            reals.append(0.0)
        hop = latency_per_hop(sweep, chip_variant, resource)
        if hop:
            reals.append(chips_within_latency(math0, math1, hop))
    return max(1.0, min(reals))


def chips_within_latency(math0: Fraction, math1: Fraction, hop: Fraction) -> float:
    """The root N of hop N (N - 1) = math0 + math1 N, from the form that does not cancel [1]."""
    half = hop + math1
    root = math.sqrt(half * half + 4 * hop * math0)
    if half < 0:
        return float(2 * math0) / (root - float(half))
    return (float(half) + root) / float(2 * hop)


def last_of(number: Callable[[int], int], holds: Callable[[int], bool], top: int) -> int:
    """The last of number(1), number(2), ... up to `top` that holds and is above two; 0: none.

    Args:
        number: An increasing sequence of numbers of chips [1].
        holds: A condition that, once it fails along the sequence, stays false.
        top: The most chips [1].
    """
    low, high = 0, top
    while low < high:
        middle = (low + high + 1) // 2
        chips = number(middle)
        if chips <= top and (chips <= PAIR or holds(chips)):
            low = middle
        else:
            high = middle - 1
    return number(low) if low and number(low) > PAIR else 0
