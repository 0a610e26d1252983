"""Thresholds along the number of chips, by evaluation."""

from fractions import Fraction

from oracle.network import families, largest_domain, why_not_joined
from oracle.quantities import ENDLESS, first
from oracle.setting import RESOURCES


def most_chips(setting, sizes):
    """Return the most chips on which a split operation is compute-bound, and the next bottleneck.

    In a finite domain every number of whole groups is tried. Otherwise numbers of chips with the
    same link rate (open lines, closed rings, whole groups) are searched by bisection: on these,
    once an operation is split too far, it stays so.
    """

    def compute_bound(chips):
        return setting.bound(sizes, chips) == "compute"

    most, published = largest_domain(setting.links)
    inner = setting.links[0].domain if len(setting.links) > 1 else None

    def joined(chips):
        is_whole = inner is None or chips <= inner or chips % inner == 0
        return is_whole and why_not_joined(setting.links, (chips,)) is None

    if most is not None:
        good = [n for n in range(1, most + 1) if joined(n) and compute_bound(n)]
        best = max(good, default=0)
        following = next((n for n in range(best + 1, most + 1) if joined(n)), None)
    else:
        best = max((n for n in range(1, (inner or 1) + 1) if compute_bound(n)), default=0)
        for family in families(setting.links) if best else ():
            last = last_good(family, compute_bound)
            best = ENDLESS if last is None else max(best, last)
        following = best + 1
        if best >= ENDLESS:
            following = None
        elif inner is not None and best >= inner:
            following = (best // inner + 1) * inner
    outcome = "found" if best else "never"
    if best >= ENDLESS:
        outcome = "without-end"
    elif best and best == most:
        outcome = "always" if published else "domain-unknown"
    limit = None if following is None else setting.bound(sizes, following)
    number = best if outcome in ("found", "always") else None
    real = real_chips(setting, sizes) if outcome != "domain-unknown" else {"critical_exact": None}
    return {"outcome": outcome, "critical": number, **limit_of_split(setting, sizes, limit), **real}


def limit_of_split(setting, sizes, limit):
    """Return what limits a split, and what its intensity tends to: 0 if N times its work grows."""
    if limit is None:
        return {"limit": None, "limit_intensity": None}
    domain = setting.links[0].domain
    group = domain if len(setting.links) > 1 and domain is not None else 1
    two, three = (
        {name: chips * amount for name, amount in setting.work(sizes, chips).items()}
        for chips in (2 * group, 3 * group)
    )
    return {
        "limit": limit,
        "limit_intensity": Fraction(0) if three[limit] > two[limit] else two["math"] / two[limit],
    }


def real_chips(setting, sizes):
    """Return the real number of chips up to which compute binds, if links have one rate for any."""
    if len(setting.links) > 1 or setting.links[0].topology != "switch" or setting.links[0].hop_s:
        return {}
    if setting.bound(sizes, 1) != "compute":
        return {"critical_exact": None}
    zeros = []
    for resource in RESOURCES[1:]:
        two, three = (
            chips * (setting.times(sizes, chips)["math"] - setting.times(sizes, chips)[resource])
            for chips in (2, 3)
        )
        if two != three:
            zeros.append(2 + two / (two - three))
    return {"critical_exact": min(zeros, default=None)}


def last_good(family, good):
    """Return the last good member of a family; 0: none; None: there is no last one."""
    number = first(lambda n: n > 2 * ENDLESS or not good(family(n)), 1) - 1
    return 0 if not number else family(number) if family(number) <= ENDLESS else None
