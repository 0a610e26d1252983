"""Thresholds of steps of whole models, without a closed form: by evaluation and bisection.

A difference of two times is known to change its sign at most once along B: memory takes
a concave time (touched experts), collectives a convex one (latencies), math a proportional one.
Along S it is affine but for the few contexts around the end of a window.
"""

import math
from dataclasses import replace

from oracle.network import axes_of, why_not_joined
from oracle.quantities import first, last
from oracle.step_values import footprints, times
from oracle.steps import Step, shared_evenly, tokens_of
from oracle.values import bound_of

FAR = 2**400
"""A batch so large that only what grows with it counts [1]."""

FAR_TILES = FAR * math.lcm(2, 7, 64, 128) * math.lcm(2, 3, 8)
"""The same in whole tiles of every replica [1]."""

FAR_CONTEXT = 2**200
"""A context so long that only what grows with it counts [1]."""

ENDLESS = "without-end"

MOST_HEADS = 2**12
"""More heads than any model has [1]."""


def critical_batch(case, context, new=1):
    """The smallest B, dp at least, from which on a step is compute-bound; None: never."""

    def compute_bound(batch):
        return bound_of(times(case, Step(batch, new, context))) == "compute"

    return first(compute_bound, case.dp) if compute_bound(FAR) else None


def context_ceiling(case, new=1):
    """The largest S at which a decode step of any B is compute-bound, or as `last_context`."""

    def ahead(context):
        row = times(case, Step(FAR, new, context))
        return bool(row["t_math_s"] >= row["t_memory_s"])

    def compute_bound(context):
        return bound_of(times(case, Step(FAR, new, context))) == "compute"

    return last_context(case, ahead, compute_bound, new)


def last_context(case, ahead, compute_bound, new):
    """The last S at which large batches are compute-bound.

    Args:
        case: The case.
        ahead: Whether they take as long to compute as to move.
        compute_bound: Whether they are compute-bound.
        new: T, new tokens of each sequence [1].

    Returns:
        `ENDLESS` if there is no largest, None if there is none. Traffic of the network does not
        depend on S and math grows with it, so memory alone ends compute-bound contexts.
    """
    turns = turns_of(case)
    window = turns[-1]
    if (case.entry.get("window") or {}).get("chunked"):
        return last_of_chunks(ahead, compute_bound, new, window)
    if ahead(FAR_CONTEXT):
        return ENDLESS if compute_bound(FAR_CONTEXT) else None
    found, context = last(ahead, max(window + new - 1, new)), window + new - 2
    while found is None and context >= new:  # a new token is at the window's end
        if context <= turns[0] and ahead(new) and not ahead(context):  # affine from `new` to here
            context = last(ahead, new) or new
        found = context if ahead(context) else None
        context = new - 1 if context <= turns[0] else context - 1
    return found if found is not None and compute_bound(found) else None


def last_of_chunks(ahead, compute_bound, new, chunk):
    """The same where attention is in chunks: each place of a chunk for itself has a last context.

    At one place of its chunk a context grows by whole chunks: its times are affine.
    """
    found = []
    for place in range(new, new + chunk):
        far = place + chunk * FAR_CONTEXT
        if ahead(far) and compute_bound(far):
            return ENDLESS
        if ahead(far):
            continue
        count = last(lambda n: ahead(place + chunk * (n - 1)), 1)  # noqa: B023, called at once
        if count is not None and compute_bound(place + chunk * (count - 1)):
            found.append(place + chunk * (count - 1))
    return max(found, default=None)


def turns_of(case):
    """The tokens of windows, of chosen tokens, and of chosen entries, fewest first; 0 without."""
    parts = (case.entry.get(part) or {} for part in ("window", "sparse"))
    tokens = {part["tokens"] for part in parts if "tokens" in part}
    chosen = (tokens_of(part) for part in case.entry.get("compressed") or [])
    return sorted(tokens.union(number for number in chosen if number)) or [0]


def largest_batch_within(case, context, target_s, time="t_lower_s", new=1):
    """The largest B, dp at least, whose step takes at most a target; None: no batch does."""
    return last(lambda batch: times(case, Step(batch, new, context))[time] <= target_s, case.dp)


def largest_batch_that_fits(case, context):
    """The largest whole number of sequences on each replica that fits, times dp; 0: none does."""
    if case.capacity is None:
        return None
    fits = last(lambda n: bool(footprints(case, n * case.dp, context)["fits"]), 1)
    return case.dp * (fits or 0)


def fewest_chips(case, batch, context):
    """The first of tp = 1, 2, 4, ... on which B sequences fit, in one replica; None: none does."""
    tp, most_axes = 1, 1
    if case.links and case.links[0].topology == "torus":
        most_axes = max(case.links[0].links // 2, 1)
    while tp <= MOST_HEADS:
        even = shared_evenly(case.entry, tp)
        forms = axes_of(tp, most_axes)
        joined = any(why_not_joined(case.links, form) is None for form in forms)
        split = replace(case, axes=(tp,), dp=1, ep_axes=(1,))
        if even and joined and footprints(split, batch, context)["fits"]:
            return tp
        tp *= 2
    return None
