"""Thresholds of training, checked by evaluation on both sides of them.

Conventions, where the contract leaves a choice:

- B grows by whole micro-batches of all replicas, S by what chips share evenly, from one of them on.
- Along `micro_batch`, and among mixes of tp and dp, a step has as many micro-batches as its own.
- The largest tp is of one replica on one stage, over the first network as if it had no end; on a
  torus along axes as long as it has.
- Replicas are 1, 2, 4, ... up to 2^20, each stage of which has many micro-batches; memory is the
  limit where more of them do not need less.
- A mix of tp and dp has as many chips; its least batch is the least of all mixes.
"""

import math
import random
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import chain, combinations_with_replacement

from oracle.network import fastest_axes, why_not_joined
from oracle.plans import Plan, states
from oracle.training import saved
from oracle.training_table import impossible, times

ENDLESS = 2**53  # the largest size that is tried
MANY = 2**30
MOST_DOUBLINGS = 21
PLACES = 30  # in a chunk that are tried at most
OTHERS = ("memory", "network")
ROUNDED = Fraction(1, 10**9)
SIZES = ("B", "S", "micro_batch")


def wrong_threshold(case, row):
    """Describe what is wrong with a threshold of a case."""
    axis = row["axis"]
    if axis in SIZES:
        return [*wrong_size(case, row), *wrong_fit(case, row)]
    expected = {"tp": largest_tp, "chips": fewest_replicas, "dp": best_mix}[axis](case, row)
    return [
        f"{name}: {row[name]} where {value} is exact"
        for name, value in expected.items()
        if not same(row[name], value)
    ]


def same(found, exact):
    """True if a value is the exact one, or close to a fraction."""
    if isinstance(exact, Fraction) and found is not None:
        return abs(Fraction(found) - exact) <= exact / 10**9
    return found == exact


def at(case, *, micro_batch=None, **keys):
    """The case by another plan."""
    keys |= {} if micro_batch is None else {"micro_batch": micro_batch}
    return replace(case, plan=replace(case.plan, **keys), known={})


def leads_along(case, row):
    """Step of the size, and math's leads over the parts of the other times at a size."""
    plan, axis = case.plan, row["axis"]
    together = plan.dp * plan.micro_batch
    unit = {"B": together, "S": plan.cp, "micro_batch": 1}[axis]

    @cache
    def leads(size):
        sizes = {"B": row["B"] or together, "S": row["S"] or plan.cp, axis: size}
        of, batch = case, sizes["B"]
        if axis == "micro_batch":
            of, batch = at(case, micro_batch=size), batch // together * plan.dp * size
        seconds = times(of, batch, sizes["S"])
        parts = {"memory": [seconds["t_memory_s"]], "network": seconds["levels"] or [Fraction(0)]}
        return {name: [seconds["t_math_s"] - n for n in parts[name]] for name in OTHERS}

    return unit, leads


def later(case, axis, size):
    """Sizes from a threshold on that show whether all are compute-bound.

    Where attention has chunks every place of a chunk counts: at one place of later chunks math
    leads no less for its size.
    """
    window = case.entry.get("window") or {}
    if axis != "S" or not window.get("chunked"):
        return [2 * size]
    cp, tokens = case.plan.cp, window["tokens"]
    places = range(size + cp, size + math.lcm(cp, tokens) + cp, cp)
    return sorted(random.sample(places, min(len(places), PLACES)))


def wrong_size(case, row):
    """Describe what is wrong with the least compute-bound size."""
    unit, leads = leads_along(case, row)
    axis, end = row["axis"], ENDLESS // unit * unit
    found = {name: row[f"critical_{name}"] for name in OTHERS}

    def ahead(size, name):
        return min(leads(size)[name])

    for name, size in found.items():
        if size is None:
            if min(ahead(far, name) for far in (end, *later(case, axis, end))) >= 0:
                yield f"some size is compute-bound against {name}"
        elif size % unit or any(ahead(n, name) < 0 for n in (size, *later(case, axis, size))):
            yield f"{size} is not compute-bound against {name}"
        elif size > unit and ahead(size - unit, name) >= 0:
            yield f"less than {size} is compute-bound against {name}"
    size = None if None in found.values() else max(found.values())
    always, outcome = size == unit, row["outcome"]
    before = end if size is None else size - unit
    last = None if always else min(OTHERS, key=lambda name: ahead(before, name))
    if row["critical"] != size or row["limit"] != last:
        yield f"the critical size is {row['critical']} by {row['limit']} where {size} by {last} is"
    expected = ("never", "beyond-2^62") if size is None else ("always" if always else "found",)
    if outcome not in expected:
        yield f"the outcome is {outcome} at {size}"
    yield from wrong_real(row["critical_exact"], size, unit, leads, bends(case, axis, size))


def bends(case, axis, size):
    """True if the lead may bend at a size, or within the step before it."""
    window = case.entry.get("window") or {}
    tokens = window.get("tokens", 0) if axis == "S" and size else 0
    return bool(tokens) and any(n % tokens == 0 for n in range(size - case.plan.cp, size + 1))


def wrong_real(real, size, unit, leads, bent):
    """Describe what is wrong with the real size, at which the last lead is zero.

    Leads are convex: the zero is beyond that of the line through both ends of the last step, and
    before that of the line through the next one. Where one bends it is within the step.
    """
    if size is None:
        return
    low, high = Fraction(size - unit), Fraction(size)
    if size > unit and not bent:
        three = ([*chain(*leads(n).values())] for n in (size - unit, size, size + unit))
        zeros = [
            (size - unit * at / (at - before), size - (unit * at / (after - at) if at else 0))
            for before, at, after in zip(*three, strict=True)
            if before < 0
        ]
        low, high = (max(ends) for ends in zip(*zeros, strict=True))
    if not low * (1 - ROUNDED) <= real <= high * (1 + ROUNDED):
        yield f"the real size is {real} at {size}, not from {float(low)} to {float(high)}"


def held(case, batch, length):
    """Memory of a chip in the fullest stage, with as many micro-batches as a batch has."""
    plan = case.plan
    m = batch // (plan.dp * plan.micro_batch)
    return max(states(case, stage) + saved(case, stage, m, length) for stage in case.stages)


def wrong_fit(case, row):
    """Describe what is wrong with the largest size that fits, and with what hides a bubble."""
    plan, axis, most = case.plan, row["axis"], row["max_fit"]
    together = plan.dp * plan.micro_batch
    if axis == "B":
        m, rest = divmod(row["min_B_bubble"], together)
        waits = [Fraction(plan.pp - 1, plan.interleave * n + plan.pp - 1) for n in (m, m - 1) if n]
        if rest or waits[0] > Fraction(1, 10) or min(waits[1:], default=1) <= Fraction(1, 10):
            yield f"{row['min_B_bubble']} does not hide a bubble, or less does"
        return
    if case.capacity is None:
        if most is not None:
            yield "a size fits in an unknown capacity"
        return
    unit = plan.cp if axis == "S" else 1

    def fits(size):
        if axis == "S":
            return held(case, row["B"], size) <= case.capacity
        of = at(case, micro_batch=size)
        return held(of, row["B"] // together * plan.dp * size, row["S"]) <= case.capacity

    if most % unit or (most and not fits(most)) or fits(most + unit):
        yield f"{most} is not the largest {axis} that fits"


def largest_tp(case, row):
    """The most chips whose gathers take no longer than their math: M / tp and N (tp - 1) / tp."""
    if not case.links:
        return {"outcome": "never", "limit": "network", "critical": None}
    links = (replace(case.links[0], domain=None),)
    pair = replace(at(case, tp=2, pp=1, dp=1, cp=1, ep=1, interleave=1), links=links)
    seconds = times(pair, pair.plan.micro_batch, row["S"])
    ratio = seconds["t_math_s"] / seconds["t_network_s"]  # over one link of a torus
    critical, real = int(1 + ratio), 1 + ratio
    if case.links[0].topology == "torus":
        critical, real = largest_on_torus(case.links[0], ratio)
    own = {"outcome": "found", "limit": "network"}
    return {**own, "critical": critical, "critical_exact": real}


def largest_on_torus(link, ratio):
    """The most chips along axes of a torus, of a plain number of them, and 1 + M / N over these."""
    axes, most = max(link.links // 2, 1), int(1 + max(link.links, 2) * ratio)
    longest = most if link.domain is None else min(link.domain, most)
    shorter = range(1, longest + 1) if axes > 1 else [1]
    forms = [(1,) * axes]
    for lengths in combinations_with_replacement(shorter, axes - 1):
        for last in range(longest, 1, -1):
            form = tuple(n for n in (*lengths, last) if n > 1)
            if math.prod(form) <= 1 + link.links_used(form) * ratio:
                forms.append(form)
                break
    largest = max(forms, key=lambda form: (math.prod(form), link.links_used(form)))
    chips = math.prod(largest)
    return chips, 1 + (link.links_used(largest) if chips > 1 else 1) * ratio


def fewest_replicas(case, row):
    """The fewest chips that hold a step."""
    if case.capacity is None:
        return {"outcome": "capacity-unknown", "critical": None}
    last, tried = None, set()
    for exponent in range(MOST_DOUBLINGS):
        of = at(case, dp=2**exponent)
        while why_not_joined(case.links, (of.plan.chips,)) == "groups":
            of = at(case, dp=of.plan.dp + 1)
        axes = fastest_axes(case.links, of.plan.chips)
        if of.plan.chips > 1 and why_not_joined(case.links, axes):
            return {"outcome": "never", "limit": "network", "critical": None}
        if of.plan.dp in tried or of.plan.stage_chips % of.plan.ep:
            continue
        tried.add(of.plan.dp)
        needed = held(of, of.plan.dp * of.plan.micro_batch * MANY, row["S"])
        if needed <= case.capacity:
            return {"outcome": "found", "critical": of.plan.chips}
        if needed == last:
            break
        last = needed
    return {"outcome": "never", "limit": "memory", "critical": None}


def best_mix(case, row):
    """The replicas that send for the least time, and whether the least batch is the least."""
    plan, chips = case.plan, case.plan.tp * case.plan.dp
    if chips == 1 or not case.links:
        return {"outcome": "never", "limit": "network", "critical": None, "critical_network": None}
    m = row["B"] // (plan.dp * plan.micro_batch)
    sends, least = {}, []
    for dp in (n for n in range(1, chips + 1) if chips % n == 0):
        keys: dict[str, int] = {"dp": dp, "tp": chips // dp}
        mix = Plan(**{**vars(plan), **keys})
        if impossible(case.entry, mix):
            continue

        def seconds(size, keys=keys, dp=dp):
            return times(at(case, micro_batch=size, **keys), m * dp * size, row["S"])

        def ahead(size, seconds=seconds):
            found = seconds(size)
            return found["t_math_s"] >= found["t_network_s"]

        size, rest = divmod(row["B"], m * dp)
        if not rest:
            sends[dp] = seconds(size)["t_network_s"]
        least += least_batches(row["critical_network"], m * dp, ahead)
    fewest = min(sends, key=lambda dp: sends[dp])
    return {"outcome": "found", "critical": fewest, "critical_network": min(least, default=None)}


def least_batches(claimed, together, ahead):
    """The least batch of a mix, if it is the claimed one or less."""
    if claimed is None:
        return [together] if ahead(ENDLESS // together) else []
    size, rest = divmod(claimed, together)
    if size > bool(not rest) and ahead(size - (not rest)):
        return [claimed - 1]
    return [claimed] if not rest and ahead(size) else []
