"""The largest compute-bound number of chips in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rooflines.critical.solving import WHOLE_PEAK, Solution
from rooflines.critical.split_lines import (
    ENDLESS,
    FAR,
    NEAR,
    Constraint,
    Numbers,
    constraints,
    numbers_of,
    on_chips,
)
from rooflines.model.columns import ALWAYS, FOUND, NEVER, UNKNOWN
from rooflines.model.columns import ENDLESS as WITHOUT_END
from rooflines.model.costs import evaluate, extents
from rooflines.model.network import PAIR
from rooflines.model.resources import OTHERS, RESOURCES, Resource
from rooflines.sweep.ties import exact_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rooflines.sweep.space import ChipVariant
    from rooflines.sweep.sweep import Sweep


def solve_exactly(
    sweep: Sweep, chip_variant: ChipVariant, row: Mapping[str, Any], share: Fraction = WHOLE_PEAK
) -> Solution:
    """The thresholds of one row, from the exact times of the table.

    Args:
        sweep: The sweep.
        chip_variant: The row's chip and variant.
        row: Its sizes, and `#tends_<bound>` [FLOP/byte].
        share: The share of the attainable peak to solve for [1].
    """
    sizes = {dim: row[dim] for dim in sweep.op.dims}
    numbers = numbers_of(sweep.links(chip_variant[0]))

    def times(shards: int) -> list[Fraction]:
        chip_rows, variant = on_chips(chip_variant, shards)
        seconds = [exact_time(sweep, chip_rows, variant, resource, sizes) for resource in RESOURCES]
        return [seconds[0] / share, *seconds[1:]]

    def most(resources: Iterable[Resource]) -> int:
        indices = [RESOURCES.index(resource) for resource in resources]

        def compute_bound(shards: int) -> bool:
            seconds = times(shards)
            return all(seconds[0] >= seconds[index] for index in indices)

        few = [n for n in (1, PAIR) if n <= numbers.near and compute_bound(n)]
        found = (last_of(*family, compute_bound) for family in families(numbers))
        return max([*few, *found])

    number = most(OTHERS)
    limit, following = None, numbers.after(number)
    if following <= numbers.most:
        seconds = times(following)
        limit = RESOURCES[seconds.index(max(seconds))].bound
    outcome = outcome_of(number, numbers)
    real = math.inf
    if number and outcome != UNKNOWN:
        real = real_chips(sweep, chip_variant, number, sizes, share)
    against = {resource.name: most([resource]) for resource in OTHERS}
    return Solution(
        outcome=outcome,
        critical_exact=real if math.isfinite(real) else None,
        critical=stored(number, numbers),
        against={name: stored(each, numbers) for name, each in against.items()},
        limit=limit,
        limit_intensity=row[f"#tends_{limit}"] if limit else None,
    )


def outcome_of(number: int, numbers: Numbers) -> str:
    """What a largest number of chips is: one of `columns.OUTCOMES`."""
    if number < 1:
        return NEVER
    if number >= ENDLESS:
        return WITHOUT_END
    if number < numbers.most:
        return FOUND
    return ALWAYS if numbers.published else UNKNOWN


def stored(number: int, numbers: Numbers) -> int | None:
    """A largest number of chips as the table has it; None: not even one, no largest, or unknown."""
    return number if outcome_of(number, numbers) in (FOUND, ALWAYS) else None


def families(numbers: Numbers) -> list[tuple[Callable[[int], int], int]]:
    """Sequences of numbers of chips on which links have one rate, and where they end [1].

    One and two chips may be left out.
    """
    step = numbers.step
    if not step:
        return [(lambda n: n + 1, numbers.near)]
    far: Callable[[int], int] = lambda n: n * step  # noqa: E731, one of a list of such
    if numbers.group:
        return [(lambda n: n + 1, numbers.near), (far, numbers.most)]
    if step == 1:
        return [(far, numbers.most)]
    return [(far, numbers.most), (lambda n: n + 1 + n // (step - 1), numbers.near)]


def real_chips(
    sweep: Sweep,
    chip_variant: ChipVariant,
    number: int,
    sizes: Mapping[str, int],
    share: Fraction,
) -> float:
    """The real number of chips behind a whole one, by exact lines [1]; infinite: no largest one."""
    workload = sweep.case(*chip_variant)
    numbers = numbers_of(sweep.links(chip_variant[0]))
    samples = numbers.samples[FAR if numbers.is_far(number) else NEAR]
    if not samples:
        return math.inf

    def at(constraint: Constraint) -> list[Fraction]:
        held = extents(workload, constraint.work, sizes)
        return [
            evaluate({dims: each[power] for dims, each in constraint.terms.items()}, held)
            for power in range(3)
        ]

    first, *others = constraints(sweep, chip_variant, share, samples)
    math0, math1, _ = at(first)
    reals = [math.inf]
    for own0, own1, own2 in map(at, others):
        room, need = math0 - own0, own1 - math1
        if own2 > 0:
            reals.append(root_of(own2, need, room))
        elif need > 0:
            reals.append(float(room / need))
        elif room < 0:
            reals.append(0.0)
    return max(1.0, min(reals))


def root_of(square: Fraction, need: Fraction, room: Fraction) -> float:
    """The larger root of square N^2 + need N = room, from the form that does not cancel [1]."""
    root = math.sqrt(need * need + 4 * square * max(room, Fraction(0)))
    if need > 0:
        return float(2 * room) / (root + float(need))
    return (root - float(need)) / float(2 * square)


def last_of(number: Callable[[int], int], top: int, holds: Callable[[int], bool]) -> int:
    """The last of number(1), number(2), ... up to `top` that holds and is above two; 0: none.

    Args:
        number: An increasing sequence of numbers of chips [1].
        top: The most chips [1].
        holds: A condition that, once it fails along the sequence, stays false.
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
