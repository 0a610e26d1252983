"""The largest context at which some batch of a decode step is compute-bound."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.critical.batches import CaseLines, extents_at, first
from rooflines.model.columns import BEYOND, ENDLESS, FOUND, NEVER
from rooflines.model.poly import WINDOWED
from rooflines.model.resources import MATH, OTHERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rooflines.model.poly import Poly


class Solution(NamedTuple):
    """A threshold.

    Attributes:
        outcome: What it is.
        exact: The real size [1]; None without.
        whole: The whole size [1]; None without.
        limit: What binds beyond it, or always.
    """

    outcome: str
    exact: float | None = None
    whole: int | None = None
    limit: str | None = None


def context_ceiling(lines: CaseLines, new: int) -> Solution:
    """The largest context at which some large batch is compute-bound.

    For large B only what grows with B counts. Of a resource whose growth depends on the context let
    h(S) be how much more t_math grows by a sequence: h > 0 is needed. Until all windows are full h
    is concave, from then on a straight line; if that falls, h falls everywhere. t_math does not
    fall, so resources whose growth does not depend on the context forbid short contexts only.

    Args:
        lines: The lines of the case.
        new: T, new tokens of each sequence: no context is smaller [1].
    """
    shape = lines.case.model.shape
    far = max((window for _, window in shape.windows if window is not None), default=0) + new
    slopes = {
        name: [poly.along("B").slope for poly in polys] for name, polys in lines.by_resource.items()
    }

    def grows(name: str, context: int) -> Fraction:
        """What a sequence adds to a time [s]."""
        at = extents_at(shape, context, new)
        return max((slope.at(at) for slope in slopes[name]), default=Fraction(0))

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
    longest = far if last.whole is None else last.whole
    rises = last.whole is None and grows(MATH.name, far + 1) > grows(MATH.name, far)
    most = max(fixed, key=fixed.__getitem__, default=None)
    if most is not None and grows(MATH.name, longest) < fixed[most] and not rises:
        return Solution(NEVER, limit=most)
    if last.whole is not None and last.whole >= LARGEST_COUNT:
        return Solution(BEYOND, last.exact, limit=last.limit)
    return last


def _by_context(slopes: Sequence[Poly]) -> bool:
    """Whether any of them depends on the context."""
    names = {name for poly in slopes for product in poly.terms for name in product}
    return any(name.partition(":")[0] in WINDOWED for name in names)


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
