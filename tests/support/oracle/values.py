"""Works and times of kernels, exact: of each, and of those of a step together."""

from fractions import Fraction
from typing import Any

from oracle.fits import ESTIMATES, estimate, sent_estimate
from oracle.kernels import collective_s, sent, together

Values = dict[str, Any]
LABELS = {"t_math_s": "compute", "t_memory_s": "memory", "t_network_s": "network"}
SENT = "collectives_estimate_s"


def layer_values(case, kernel):
    """Work and times of a kernel in one layer."""
    memory_bytes, zero = kernel.weight_bytes + kernel.kv_cache_bytes, Fraction(0)
    rate = case.memory_rate * case.efficiency["memory"]
    math_s = kernel.flops / (case.peaks[kernel.unit] * case.efficiency["math"])
    memory_s, activation_s = memory_bytes / rate, kernel.activation_bytes / rate
    share = case.efficiency["network"]
    network_s = sum((collective_s(case.links, c, share) for c in kernel.collectives), zero)
    return {
        "flops": kernel.flops,
        "weight_bytes": kernel.weight_bytes,
        "kv_cache_bytes": kernel.kv_cache_bytes,
        "activation_bytes": kernel.activation_bytes,
        "memory_bytes": memory_bytes,
        "network_bytes": sum((sum(sent(case.links, c)) for c in kernel.collectives), zero),
        "t_math_s": math_s,
        "t_memory_s": memory_s,
        "t_network_s": network_s,
        "t_activation_s": activation_s,
        "t_lower_s": max(math_s, memory_s, network_s),
        "t_serial_s": max(math_s, memory_s + activation_s, network_s),
        "t_upper_s": math_s + memory_s + activation_s + network_s,
        **estimate(case, kernel),
        SENT: sent_estimate(case, kernel),
    }


def bound_of(row, nearly=Fraction(0)):
    """Longest time's resource, within a share; a tie goes to compute, then to memory."""
    least = max(row[n] for n in LABELS) * (1 - nearly)
    return next(LABELS[name] for name in LABELS if row[name] >= least)


def totals(case, kernels):
    """Work and times of all kernels: the sums over their counts."""
    return summed(case, [(each.count, each, layer_values(case, each)) for each in kernels])


def summed(case, kernels):
    """Work and times of kernels, each so many times with its own work and times.

    But t_network: collectives overlap, and the slowest network counts. On each all sends are added
    up, and all hops.
    """
    total: Values = {}
    collectives = ((count, each) for count, kernel, _ in kernels for each in kernel.collectives)
    levels = together(case.links, collectives, case.efficiency["network"])
    for count, _, values in kernels:
        for name, value in values.items():
            if name in (*ESTIMATES[1:], SENT):
                continue
            before = total.get(name, Fraction(0))
            total[name] = None if None in (before, value) else before + count * value
    total["t_network_s"] = max([time for level in levels for time in level], default=Fraction(0))
    return {**total, "t_lower_s": max(total[name] for name in LABELS)}
