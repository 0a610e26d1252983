"""Work, times, footprints and money of a step of a whole model.

- `t_estimate_s` is null if the compute dtype of a group has no calibration.
- `fits` compares the footprint of B / dp sequences, `max_B` counts whole sequences of a replica.
"""

import math
from dataclasses import replace
from fractions import Fraction

from oracle import models
from oracle.fits import NEARLY_TIED
from oracle.quantities import exact
from oracle.steps import (
    EVERY_CHIP,
    Step,
    bits_of_entry,
    compressor_matrices,
    convolved,
    entries_held,
    entry_elements,
    kernels,
    projections,
    state_projections,
)
from oracle.values import bound_of, totals

TWINS = ("t_lower_s", ""), ("t_serial_s", "_serial"), ("t_estimate_s", "_estimate")


def times(case, step):
    """Work and times of a step."""
    return totals(case, kernels(case, step))


def times_of_a_prompt(case, prompt):
    """Work and times of one prompt: one replica reads it, experts have its tokens alone."""
    every = kernels(case, Step(case.dp, prompt, prompt))
    if case.dp == 1 or case.ep == 1:
        return totals(case, every)
    alone = kernels(case, Step(1, prompt, prompt))
    read = [
        replace(one, collectives=all_of.collectives) if one.name == "experts" else all_of
        for one, all_of in zip(alone, every, strict=True)
    ]
    return totals(case, read)


def cache_of_one(case, context):
    """Bytes of the cache of one sequence on each chip of its replica."""
    entry, bits = entry_held(case), Fraction(0)
    for kind, tokens in models.each_mixer(entry):
        if kind == "state":
            s = entry["state"]
            short, values = s["kind"] == "short-conv", s["heads"] * s["value"]
            state = 0 if short else s["key"] * values * s.get("bits", 32)
            state += (s["conv"] - 1) * (values if short else convolved(s)) * 16
            bits += Fraction(state, case.cache_shares(s["heads"]))
            continue
        a = models.attention_in(entry, kind)
        keeps_all = kind == "sparse" or (kind == "window" and entry[kind].get("stride"))
        held = entries_held(context, None if keeps_all else tokens)
        each = entry_elements(a) * bits_of_entry(a, case.bits["cache"])
        bits += held * each / case.cache_shares(a.get("K", 1))
    for part, made, keys in models.compressors(entry):
        each = bits_of_entry(entry["attention"], case.bits["cache"])
        if keys:
            each = Fraction(part.get("bits") or case.bits["cache"])
        bits += Fraction(context * made, part["tokens"]) * each / case.cache_shares(1)
    if sparse := entry.get("sparse"):
        keys = models.indexers(entry) * context * sparse["dim"]
        own = Fraction(sparse.get("bits") or case.bits["cache"])
        bits += keys * own / case.cache_shares(1)
    return bits / 8


def entry_held(case):
    """The model that chips hold: with the layer that drafts, where it does."""
    return models.with_drafter(case.entry) if case.own_drafts else case.entry


def weights_on_chip(case):
    """Bytes of the parameters of one chip."""
    entry = entry_held(case)
    sparse = models.each_mlp(entry).count("moe")
    moe, routed = entry.get("moe") or {}, 0
    if sparse:
        matrices = 3 if moe.get("gated", True) else 2
        routed = sparse * moe["E"] * matrices * (moe.get("latent") or entry["D"]) * moe["Fe"]
    embedding = (entry["V"] + entry.get("positions", 0)) * entry["D"]
    unembedding = 0 if entry.get("tied") else entry["V"] * entry["D"]
    others = models.parameters(entry) - routed - embedding - unembedding
    others += models.merging(entry) if case.own_drafts else 0
    few = [*few_heads(entry)]
    if case.own_drafts:
        few.append((EVERY_CHIP, 2 * entry["D"] ** 2))
    held = sum((Fraction(part, min(heads, case.tp)) for heads, part in few), Fraction(0))
    held += Fraction(others - sum(part for _, part in few), case.tp)
    bits = embedding * case.bits["head"] + unembedding * case.bits["lm_head"]
    bits = held * case.bits["weights"] + bits / case.tp
    share = Fraction(1, case.tp)
    if case.ep > 1:  # whole experts, of which some chips have one more
        share = Fraction(math.ceil(Fraction(moe["E"], case.ep)), moe["E"]) if moe else Fraction(1)
    bits += routed * case.bits["experts"] * share
    return bits / 8


def few_heads(entry):
    """Weights that not every number of chips can share, layer by layer: heads, and elements."""
    width = entry["D"]
    for kind, _ in models.each_mixer(entry):
        if kind == "state":
            (_, _, _, _, _, parts), *_ = state_projections(entry["state"], width)
        else:
            a = models.attention_in(entry, kind)
            (_, _, _, _, _, parts), *_ = projections(a, width, "decode")
        yield from ((heads, weights) for heads, weights, _ in parts)
    if sparse := entry.get("sparse"):
        queries, weigh = sparse["heads"] * sparse["dim"], sparse.get("weighted", True)
        of_queries = (entry["attention"].get("q_rank") or width) * queries
        of_keys = width * (sparse["dim"] + weigh * sparse["heads"])
        yield EVERY_CHIP, models.indexers(entry) * (of_queries + of_keys)
    for part in entry.get("compressed") or []:
        a, wide = entry["attention"], 2 if part.get("overlap") else 1
        for name, made in compressor_matrices(part, a, wide):
            yield EVERY_CHIP, part["layers"] * (a["q_rank"] if name == "index-q" else width) * made
    if streams := entry.get("streams"):
        mixed = streams * width * (streams * streams + 2 * streams)
        yield EVERY_CHIP, 2 * entry["layers"] * mixed + streams * width * streams
    moe = entry.get("moe") or {}
    for _ in range(models.each_mlp(entry).count("moe")):
        gate = 1 if moe.get("shared_gate") and moe.get("shared") else 0
        yield EVERY_CHIP, width * (models.routed_among(moe) + gate + 2 * (moe.get("latent") or 0))


def footprints(case, sequences, context):
    """Memory of a step on one chip."""
    weights, cache = weights_on_chip(case), cache_of_one(case, context) * sequences / case.dp
    return {
        "weights_footprint_bytes": weights,
        "kv_cache_footprint_bytes": cache,
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
    """Dollars of a million tokens and joules of one, of all chips, if they fit."""
    usd = joules = None
    if case.price is not None and fits is not False:
        per_hour = case.chips * exact(case.price["usd_per_hour"])
        usd = per_hour / 3600 / tokens_per_s * 10**6
    if case.watts is not None and fits is not False:
        joules = case.chips * case.watts / tokens_per_s
    return {
        "tokens_per_s" + suffix: tokens_per_s,
        "tokens_per_s_per_chip" + suffix: tokens_per_s / case.chips,
        "usd_per_mtok" + suffix: usd,
        "j_per_token" + suffix: joules,
    }


def without_rates(suffix, further=()):
    """No rates by a time that there is none of."""
    names = ("tokens_per_s", "tokens_per_s_per_chip", "usd_per_mtok", "j_per_token", "mfu", "mbu")
    return {name + suffix: None for name in (*names, *further)}


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
    added = step.T if case.drafts is None else case.accepted + 1
    for time, suffix in TWINS:
        if row.get(time) is None:
            found |= without_rates(suffix)
            continue
        tokens_per_s = step.B * added / row[time]
        found |= price_and_power(case, tokens_per_s, suffix, fits=found["fits"])
        found["mfu" + suffix] = row["t_math_s"] * case.efficiency["math"] / row[time]
        found["mbu" + suffix] = row["memory_bytes"] / (row[time] * case.memory_rate)
    return found
