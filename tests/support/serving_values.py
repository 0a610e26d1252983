"""Work, times, footprints and money of a step of a whole model, exact; an oracle.

- `t_estimate_s` is null if the compute dtype of a group has no calibration.
- `fits` compares the footprint of B / dp sequences, `max_B` counts whole sequences of a replica.
"""

import math
from fractions import Fraction
from typing import Any

import model_oracle
from oracle import ESTIMATES, NEARLY_TIED, exact
from oracle.kernels import collective_s, sent, together
from serving_estimates import estimate, sent_estimate
from serving_kernels import entries_held, entry_elements, kernels

Values = dict[str, Any]
LABELS = {"t_math_s": "compute", "t_memory_s": "memory", "t_network_s": "network"}
SENT = "collectives_estimate_s"
TWINS = ("t_lower_s", ""), ("t_ops_s", "_ops")


def layer_values(case, kernel):
    """Work and times of a kernel in one layer."""
    memory_bytes, zero = kernel.weight_bytes + kernel.cache_bytes, Fraction(0)
    rate = case.memory_rate * case.efficiency["memory"]
    math_s = kernel.flops / (case.peaks[kernel.unit] * case.efficiency["math"])
    memory_s, activation_s = memory_bytes / rate, kernel.activation_bytes / rate
    share = case.efficiency["network"]
    network_s = sum((collective_s(case.links, c, share) for c in kernel.collectives), zero)
    return {
        "flops": kernel.flops,
        "weight_bytes": kernel.weight_bytes,
        "cache_bytes": kernel.cache_bytes,
        "activation_bytes": kernel.activation_bytes,
        "memory_bytes": memory_bytes,
        "network_bytes": sum((sum(sent(case.links, c)) for c in kernel.collectives), zero),
        "t_math_s": math_s,
        "t_memory_s": memory_s,
        "t_network_s": network_s,
        "t_activation_s": activation_s,
        "t_lower_s": max(math_s, memory_s, network_s),
        "t_ops_s": max(math_s, memory_s + activation_s, network_s),
        "t_upper_s": math_s + memory_s + activation_s + network_s,
        **estimate(case, kernel),
        SENT: sent_estimate(case, kernel),
    }


def bound_of(row, nearly=Fraction(0)):
    """What takes longest, within a share; a tie goes to compute, then to memory."""
    least = max(row[n] for n in LABELS) * (1 - nearly)
    return next(LABELS[name] for name in LABELS if row[name] >= least)


def times(case, step):
    """Work and times of a step: the sums over all kernels of all layers.

    But t_network: collectives overlap, and the slowest network counts. On each all sends are added
    up, and all hops.
    """
    total: Values = {}
    parts = kernels(case, step)
    collectives = ((kernel.count, each) for kernel in parts for each in kernel.collectives)
    levels = together(case.links, collectives, case.efficiency["network"])
    for kernel in parts:
        for name, value in layer_values(case, kernel).items():
            if name in (*ESTIMATES[1:], SENT):
                continue
            before = total.get(name, Fraction(0))
            total[name] = None if None in (before, value) else before + kernel.count * value
    total["t_network_s"] = max([time for level in levels for time in level], default=Fraction(0))
    return {**total, "t_lower_s": max(total[name] for name in LABELS)}


def cache_of_one(case, context):
    """Bytes of the cache of one sequence on each chip of its replica."""
    entry, bits = entry_held(case), Fraction(0)
    for kind, tokens in model_oracle.each_mixer(entry):
        if kind == "state":
            s = entry["state"]
            state = s["heads"] * s["key"] * s["value"] * s.get("bits", 32)
            bits += Fraction(state, case.cache_shares(s["heads"]))
            continue
        a = (entry.get(kind) or {}).get("attention") or entry["attention"]
        held = entries_held(context, None if kind == "sparse" else tokens)
        bits += held * entry_elements(a) * case.bits["cache"] / case.cache_shares(a.get("K", 1))
    if sparse := entry.get("sparse"):
        keys = model_oracle.indexers(entry) * context * sparse["dim"]
        own = Fraction(sparse.get("bits") or case.bits["cache"])
        bits += keys * own / case.cache_shares(1)
    return bits / 8


def entry_held(case):
    """The model that chips hold: with the layer that drafts, where it does."""
    return model_oracle.with_drafter(case.entry) if case.own_drafts else case.entry


def weights_on_chip(case):
    """Bytes of the parameters of one chip."""
    entry = entry_held(case)
    sparse = model_oracle.each_mlp(entry).count("moe")
    moe, routed = entry.get("moe") or {}, 0
    if sparse:
        matrices = 3 if moe.get("gated", True) else 2
        routed = sparse * moe["E"] * matrices * (moe.get("latent") or entry["D"]) * moe["Fe"]
    tables = Fraction(entry["V"] * entry["D"]) * (1 if entry.get("tied") else 2)
    others = model_oracle.parameters(entry) - routed - tables
    others += model_oracle.merging(entry) if case.own_drafts else 0
    bits = (others * case.bits["weights"] + tables * case.bits["head"]) / case.tp
    bits += routed * case.bits["experts"] / (case.tp if case.ep == 1 else case.ep)
    return bits / 8


def footprints(case, sequences, context):
    """What a step takes of the memory of one chip."""
    weights, cache = weights_on_chip(case), cache_of_one(case, context) * sequences / case.dp
    return {
        "weights_footprint_bytes": weights,
        "cache_footprint_bytes": cache,
        "footprint_bytes": weights + cache,
        "fits": None if case.capacity is None else weights + cache <= case.capacity,
        "max_B": most_sequences(case, context),
    }


def most_sequences(case, context):
    """The most sequences that fit: a whole number in each replica."""
    if case.capacity is None:
        return None
    free = case.capacity - weights_on_chip(case)
    return case.dp * max(math.floor(free / cache_of_one(case, context)), 0)


def price_and_power(case, tokens_per_s, suffix, *, fits):
    """Dollars of a million tokens, if they fit, and joules of one, of all chips."""
    usd = joules = None
    if case.price is not None and fits is not False:
        per_hour = case.chips * exact(case.price["usd_per_hour"])
        usd = per_hour / 3600 / tokens_per_s * 10**6
    if case.watts is not None:
        joules = case.chips * case.watts / tokens_per_s
    return {
        "tokens_per_s" + suffix: tokens_per_s,
        "tokens_per_s_per_chip" + suffix: tokens_per_s / case.chips,
        "usd_per_mtok" + suffix: usd,
        "j_per_token" + suffix: joules,
    }


def model_values(case, step):
    """Every computed column of a model's row."""
    row = times(case, step)
    price = case.price or {"provider": None, "date": None}
    found = {
        **row,
        **footprints(case, step.B, step.S),
        "bound": bound_of(row, NEARLY_TIED),
        **dict.fromkeys(("t_estimate_p10_s", "t_estimate_p90_s")),  # no engine has a fit of steps
        "price_provider": price["provider"],
        "price_date": price["date"],
    }
    for time, suffix in TWINS:
        added = step.T if case.drafts is None else case.accepted + 1
        tokens_per_s = step.B * added / row[time]
        found |= price_and_power(case, tokens_per_s, suffix, fits=found["fits"])
        found["mfu" + suffix] = row["t_math_s"] * case.efficiency["math"] / row[time]
        found["mbu" + suffix] = row["memory_bytes"] / (row[time] * case.memory_rate)
    return found
