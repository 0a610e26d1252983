"""The largest context of decode with a compute-bound batch."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.numbers import LARGEST_COUNT, first
from rooflines.critical.chunks import last_context
from rooflines.model.columns import BEYOND, ENDLESS, FOUND, NEVER
from rooflines.model.resources import MATH, OTHERS, RESOURCES
from rooflines.models.groups import StepExtents

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rooflines.critical.chunks import Margin
    from rooflines.model.poly import Poly
    from rooflines.model.resources import Resource
    from rooflines.sweep.steps import StepCase


class Solution(NamedTuple):
    """A threshold, by the names of its columns.

    Attributes:
        outcome: What it is.
        critical_exact: The real size [1]; None without.
        critical: The whole size [1]; None without.
        limit: What binds beyond it, or always.
    """

    outcome: str
    critical_exact: float | None = None
    critical: int | None = None
    limit: str | None = None


def context_ceiling(case: StepCase, new: int) -> Solution:
    """The largest context at which some large batch is compute-bound.

    For large B only what grows with B counts. Of a resource whose growth depends on the context let
    h(S) be how much more t_math grows by a sequence: h > 0 is needed. Until all windows are full h
    is concave, from then on a straight line; if that falls, h falls everywhere. t_math does not
    fall, so resources whose growth does not depend on the context forbid short contexts only. Where
    attention is in chunks h is a sawtooth, and the last context is that of `chunks.last_context`:
    between multiples of the chunk before it there may be contexts without such a batch.

    Args:
        case: The case.
        new: T, new tokens of each sequence: no context is smaller [1].
    """
    shape = case.model.shape
    far = max((reach.tokens or 0 for reach in shape.reaches), default=0) + new
    slopes = {
        each.name: [
            poly.along("B").slope for least in case.times.by[each.bound].pieces for poly in least
        ]
        for each in RESOURCES
    }

    @cache
    def extents(context: int) -> StepExtents:
        return StepExtents(case.step(1, context, new))

    def grows(name: str, context: int) -> Fraction:
        """What a sequence adds to a time [s]."""
        at = extents(context)
        return max((slope.at(at) for slope in slopes[name]), default=Fraction(0))

    if any(reach.chunked for reach in shape.reaches):
        by_context = [each for each in OTHERS if _by_context(slopes[each.name])]
        return _ceiling_in_chunks(grows, by_context, new, far - new)
    fixed: dict[str, Fraction] = {}
    last, real = Solution(ENDLESS), None
    for each in OTHERS:
        if not _by_context(slopes[each.name]):
            fixed[each.bound] = grows(each.name, new)
            continue
        found = _ceiling(lambda at: grows(MATH.name, at) - grows(each.name, at), new, far)  # noqa: B023, called at once
        if found == 0:
            return Solution(NEVER, limit=each.bound)
        if found is not None and (real is None or found < real):
            real, last = found, Solution(FOUND, float(found), math.ceil(found) - 1, each.bound)
    longest = far if last.critical is None else last.critical
    rises = last.critical is None and grows(MATH.name, far + 1) > grows(MATH.name, far)
    most = max(fixed, key=fixed.__getitem__, default=None)
    if most is not None and grows(MATH.name, longest) < fixed[most] and not rises:
        return Solution(NEVER, limit=most)
    if last.critical is not None and last.critical >= LARGEST_COUNT:
        return Solution(BEYOND, last.critical_exact, limit=last.limit)
    return last


def _by_context(slopes: Sequence[Poly]) -> bool:
    """Whether any of them depends on the context."""
    return any(poly.along("S").counted for poly in slopes)


def _ceiling(ahead: Callable[[int], Fraction], new: int, far: int) -> Fraction | None:
    """The context from which on math grows no more than a resource; 0: always so; None: never so.

    Args:
        ahead: By how much more math grows by a sequence: concave until `far`, then a straight line.
        new: The shortest context [1].
        far: A context at which all windows are full [1].
    """
    begin, fall = far, ahead(far) - ahead(far + 1)
    if ahead(far) <= 0 and fall >= 0:
        peak = first(lambda at: ahead(at + 1) <= ahead(at), new, far)
        if ahead(peak) <= 0:
            return Fraction(0)
        begin = first(lambda at: ahead(at + 1) <= 0, peak, far)
        fall = ahead(begin) - ahead(begin + 1)
    return begin + ahead(begin) / fall if fall > 0 else None


def _ceiling_in_chunks(
    grows: Callable[[str, int], Fraction], by_context: Sequence[Resource], new: int, chunk: int
) -> Solution:
    """The largest context at which some large batch is compute-bound, with attention in chunks.

    Args:
        grows: What a sequence adds to the time of a resource, by the context [s].
        by_context: Resources besides math whose growth depends on the context.
        new: T [1].
        chunk: Tokens of a chunk [1].
    """

    def margin(of: Resource) -> Margin:
        """By how much more math grows by a sequence [s]."""
        return lambda at: grows(MATH.name, at) - grows(of.name, at)

    above = {each.bound: margin(each) for each in by_context}
    least = {each.bound: margin(each) for each in OTHERS if each not in by_context}
    last = last_context(list(above.values()), list(least.values()), new, chunk)
    if last is None:
        alone = last_context(list(above.values()), [], new, chunk)
        bounds = above if alone is None else least
        at = alone if isinstance(alone, int) else new
        return Solution(NEVER, limit=min(bounds, key=lambda bound: bounds[bound](at)))
    if isinstance(last, str):
        return Solution(ENDLESS)
    now, then = (
        {bound: of(at) for bound, of in (above | least).items()} for at in (last, last + 1)
    )
    limit = min(then, key=then.__getitem__)
    fall = Fraction(0)
    if (last + 1 - new) % chunk:  # else a chunk ends with it
        fall = min(now[bound] / (now[bound] - then[bound]) for bound in then if then[bound] <= 0)
    found = Solution(FOUND, float(last + fall), last, limit)
    return found if last < LARGEST_COUNT else Solution(BEYOND, found.critical_exact, limit=limit)
