"""Thresholds along a size, by evaluation."""

from bisect import bisect_left
from collections.abc import Mapping
from fractions import Fraction
from functools import cache

from oracle.quantities import first, stored_size
from oracle.setting import RESOURCES

FAR = 2**400  # a size so large that only the fastest growing term counts


def first_size(difference, step):
    """Return the first whole size from 1 on at which a difference is not negative; None: never.

    The difference is affine in the number of steps; sizes within a step (1, or a tile) cost the
    same.
    """
    if difference(1) >= 0:
        return 1
    if difference(1 + step) <= difference(1):
        return None
    return first(lambda size: difference(size) >= 0, 1)


def real_size(difference, step):
    """Return where the line through two evaluated points is zero, in sizes; 0 if it is constant."""
    one, two = difference(step), difference(2 * step)
    return Fraction(0) if one == two else step * (1 - one / (two - one))


def step_along(setting, axis, chips):
    """Return the elements of a tile over all chips that share the axis; 1 without tiles."""
    tile = setting.tile.get(axis, 1)
    return tile * (chips if axis == setting.sharding.split and axis in setting.tile else 1)


def thresholds_along(setting, axis, sizes, chips):
    """Return the thresholds of one setting along one dimension, at the sizes of the others."""
    step = step_along(setting, axis, chips)

    @cache
    def terms(size):
        last = -(-size // step) * step  # of the tile
        return setting.terms({**sizes, axis: last}, chips)

    def ahead(resource, term):
        return lambda size: terms(size)["math"][0] - terms(size)[resource][term]

    found: dict[str, int | None] = {}
    real: dict[str, Fraction] = {}
    for resource in RESOURCES[1:]:
        lines = [ahead(resource, term) for term in range(len(terms(1)[resource]))]
        sizes_of = [first_size(line, step) for line in lines]
        found[resource] = None if None in sizes_of else max(each for each in sizes_of if each)
        real[resource] = max(real_size(line, step) for line in lines)
    never = [resource for resource in found if found[resource] is None]
    critical = None if never else max(size for size in found.values() if size is not None)
    if never:
        limit = max(never, key=lambda r: max(terms(FAR * step)[r]))  # the first of equals: memory
    elif critical == 1:
        limit = None
    else:
        limit = max(found, key=lambda r: (found[r], real[r]))
    tends_to = None
    if limit is not None:
        near, far = (setting.work({**sizes, axis: size * step}, chips) for size in (1, 2))
        growth = far[limit] - near[limit]
        tends_to = (far["math"] - near["math"]) / growth if growth else None
    outcome = "never" if never else "always" if critical == 1 else "found"
    return {
        "outcome": "beyond-2^62" if not never and stored_size(critical) is None else outcome,
        "critical": stored_size(critical),
        "critical_exact": None if never else max(real.values()),
        "critical_memory": stored_size(found["memory"]),
        "critical_network": stored_size(found["network"]),
        "limit": limit,
        "limit_intensity": tends_to,
    }


TIE = Fraction(1, 10**13)
"""Times that differ by a smaller share are a tie [1]."""

NO_ESTIMATE: Mapping[str, int | None] = {"plateau_estimate": None}


def first_saturated(setting, axis, sizes, chips, off=0):
    """Return the first size whose estimate attains 90 % of the rate that it tends to.

    Where rows are computed in whole tiles, more of the rate is attained at the last row of each
    than before it; from the last row of one to that of the next it only grows. `off` is a share by
    which the rate may be off.
    """
    fit = setting.fits.kernels["compute"]
    if fit is None:
        return NO_ESTIMATE
    step = step_along(setting, axis, chips)
    if axis == setting.operation.dims[0] and setting.whole_tiles:
        split = chips if axis == setting.sharding.split else 1
        tile = int(fit.numbers.get("tile", 1))
        step = split * tile if tile > 1 else 1

    def time(size):
        return setting.estimate({**sizes, axis: size}, chips)["t_estimate_s"]

    slope = (time(2 * FAR * step) - time(FAR * step)) / (FAR * step)

    def attains(size):
        return 9 * time(size) <= 10 * slope * size * (1 + TIE + off)

    tiles = first(lambda number: attains(number * step), 1)
    rows = range((tiles - 1) * step + 1, tiles * step + 1)
    return {"plateau_estimate": stored_size(rows[bisect_left(rows, x=True, key=attains)])}
