"""The thresholds of a sweep, and factors on rates."""

from fractions import Fraction
from itertools import product
from typing import Any

from oracle.critical_chips import most_chips
from oracle.critical_sizes import first_saturated, thresholds_along
from oracle.operations import operation_of
from oracle.quantities import as_list, exact
from oracle.setting import LABEL, at_share
from oracle.table import rows

RATES = {"peak": "math", "memory_rate": "memory", "network_rate": "network"}
"""The resource of every rate that can be solved for."""


def factor_on(setting, resource, sizes, chips):
    """Return the factor on a resource's rate at which a row becomes compute-bound.

    Every term of its work shrinks with the factor, the hops of a network do not.
    """
    terms, waits = setting.terms(sizes, chips), setting.waits(chips)
    math = terms["math"][0]
    fixed = waits if resource == "network" and len(terms["network"]) > 1 else []
    longest = max(("memory", "network"), key=lambda name: max(terms[name]))  # of a tie: memory
    most = max(terms[longest])
    factor: Fraction | None = Fraction(1)
    outcome, limit = "found", LABEL[longest]
    if math >= most:
        return {**NO_SIZE, "outcome": "always", "critical_exact": factor, "limit": None}
    others = {name: max(terms[name]) for name in ("memory", "network") if name != resource}
    if resource == "math":
        factor = math / most
    elif any(wait > math for wait in fixed):
        factor, limit = None, LABEL[resource]
    elif max(others.values()) > math:
        factor, limit = None, LABEL[max(others, key=lambda name: others[name])]
    else:
        factor, limit = max(terms[resource]) / math, LABEL[resource]
    if factor is None:
        outcome = "never"
    return {**NO_SIZE, "outcome": outcome, "critical_exact": factor, "limit": limit}


NO_SIZE = dict.fromkeys(("critical", "critical_memory", "critical_network", "limit_intensity"))
"""Columns that are null in thresholds of rates."""


def thresholds(sweep, chips, dtypes, fits=None, off=0):
    """Yield the thresholds of a sweep: for each axis, a row for each supported combination.

    `off` is a share by which the rate of an estimate may be off.
    """
    operation = operation_of(sweep["operation"])
    supported = [row for row in rows(sweep, chips, dtypes, fits) if row.setting is not None]
    for axis, share in product(sweep["thresholds"], as_list(sweep.get("shares", [1]))):
        seen = set()
        for row in supported:
            assert row.setting is not None
            if axis == "shards" and (row.setting.sharding.split is None or not row.setting.links):
                continue
            gone = {} if axis in RATES else {axis: None}
            gone |= {"axes": None} if axis == "shards" and "axes" in row.keys else {}
            keys: dict[str, Any] = {**row.keys, "axis": axis, **row.sizes, **gone}
            if tuple(keys.values()) in seen:
                continue
            seen.add(tuple(keys.values()))
            setting, keys = at_share(row.setting, exact(share)), {**keys, "share": float(share)}
            if axis in RATES:
                yield {**keys, **factor_on(setting, RATES[axis], row.sizes, row.keys["shards"])}
            elif axis == "shards":
                yield {**keys, **most_chips(setting, row.sizes)}
            else:
                solved = thresholds_along(setting, axis, row.sizes, row.keys["shards"])
                attained = first_saturated(row.setting, axis, row.sizes, row.keys["shards"], off)
                yield {**keys, **solved, **attained}
    assert set(sweep["thresholds"]) <= {*operation.dims, "shards", *RATES}
