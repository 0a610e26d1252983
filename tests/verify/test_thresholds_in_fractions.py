"""Whole thresholds of random sweeps against fractions: as large as needed, and one less is not."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from typing import Any

import pytest

import rooflines
from rooflines.critical.chips import case_on
from rooflines.critical.thresholds import sweep_thresholds
from rooflines.model.poly import TOUCHED, ZERO
from rooflines.model.resources import MATH, OTHERS, RATES, RESOURCES
from rooflines.models.groups import touched_experts

HUGE = 2**240
"""A size at which only the fastest growing terms count."""

SPLITS = ["contracting/all-reduce", "batch/gather-w", "column/gather-x", "batch"]
LINKS: list[dict[str, Any]] = [
    {"topology": "switch", "links": 4, "domain": 24, "hop_latency_s": 1.3e-6},
    {"topology": "mesh", "links": 7, "domain": 8},
    {"topology": "torus", "links": 4, "domain": 30, "ring_multiple": 3, "hop_latency_s": 1.1e-6},
    {"topology": "torus", "links": 4, "domain": 32, "ring_multiple": 1, "hop_latency_s": 1e-6},
    {"topology": "torus", "links": 4, "domain": 48, "ring_multiple": 4},
]


def drawn(low, high, dice):
    """A number of four digits."""
    return float(f"{low * (high / low) ** dice.random():.4g}")


def made_up(dice):
    """A chip."""
    peak = drawn(3e13, 3e15, dice)
    return {
        "name": "Made up",
        "vendor": "Nobody",
        "source": "this test",
        "units": {"matrix": {"bf16": {"flops_per_s": peak}, "int8": {"flops_per_s": 2 * peak}}},
        "memory": {"hbm": {"bytes_per_s": peak / drawn(60, 500, dice), "capacity_bytes": 1.41e11}},
        "networks": {
            "fabric": {"bytes_per_s": drawn(5e9, 2e11, dice), **dice.choice(LINKS)},
        },
        "calibration": {
            "bf16": {
                "math": drawn(0.4, 1, dice),
                "memory": drawn(0.4, 1, dice),
                "overhead_s": drawn(1e-6, 1e-5, dice),
            }
        },
    }


def config_of(seed, **more):
    """A sweep of a matmul on made-up chips."""
    dice = random.Random(seed)  # noqa: S311, examples
    sizes = {dim: sorted({dice.randint(100, 20_000) for _ in range(12)}) for dim in "BDF"}
    sweep: dict[str, Any] = {
        "operation": "matmul",
        "grid": sizes,
        "dtypes": ["bf16", "int8", "w8a16"],
        "chips": [f"chip-{number}" for number in range(4)],
        "efficiency": {"math": drawn(0.6, 1, dice)},
        **more,
    }
    chips = {name: made_up(dice) for name in sweep["chips"]}
    return rooflines.load_config({"sweeps": {"s": sweep}, "chips": chips, "charts": []})


def by_key(sweep):
    """Cases by their keys in the table."""
    return {(c.chip, c.dtypes, c.variant.sharding, c.shards): c for c in sweep.cases}


def smallest(found, good, least=1):
    """Whether a size is the smallest good one; None: none is."""
    if found is None:
        return not good(HUGE)
    return good(found) and (found <= least or not good(found - 1))


class Exact:
    """The exact times of a sweep."""

    def __init__(self, sweep):
        self.sweep = sweep
        self.parts = cache(self._parts)

    def _parts(self, one):
        found = {}
        for each in RESOURCES:
            rate = one.rate(each)
            found[each] = (
                (one.work(each.work), rate.per_s, rate.latency_s)
                if rate
                else (ZERO, Fraction(1), Fraction(0))
            )
        return found

    def times(self, one, sizes):
        """The time of every resource [s]."""
        return {
            each: max(work.at(Extents(sizes)) / per_s, latency_s)
            for each, (work, per_s, latency_s) in self.parts(one).items()
        }

    def is_bound(self, one, sizes, *others):
        """Whether math takes as long as all of some other resources."""
        times = self.times(one, sizes)
        return all(times[MATH] >= times[each] for each in others)

    def is_bound_at(self, one, sizes, axis, others, size):
        """The same at a size along an axis."""
        return self.is_bound(one, {**sizes, axis: size}, *others)


def wrong_sizes(seed):
    """The thresholds along sizes that are not the exact ones."""
    config = config_of(
        seed, sharding=["none", *SPLITS], shards=[1, 2, 3, 8], thresholds=["B", "D", "F"]
    )
    sweep = config.sweep("s")
    exact, cases, wrong = Exact(sweep), by_key(sweep), []
    rows = sweep_thresholds(sweep).sample(6_000, seed=seed).to_dicts()
    for row in rows:
        one = cases[row["chip"], row["dtypes"], row["sharding"], row["shards"]]
        axis, sizes = row["axis"], {dim: row[dim] for dim in "BDF"}
        asked = {"critical": OTHERS, **{f"critical_{each.name}": (each,) for each in OTHERS}}
        for column, others in asked.items():
            good = partial(exact.is_bound_at, one, sizes, axis, others)
            if not smallest(row[column], good):
                wrong.append((column, row))
    return len(rows), wrong


def is_bound_on(exact, one, sizes, chips):
    """Whether a variant on another number of chips is compute-bound."""
    return exact.is_bound(case_on(one, chips), sizes, *OTHERS)


def wrong_chips(seed):
    """The largest numbers of chips that are not the exact ones."""
    config = config_of(seed, sharding=SPLITS, shards=[2], thresholds=["shards"])
    sweep = config.sweep("s")
    exact, wrong = Exact(sweep), []
    cases = {key[:3]: one for key, one in by_key(sweep).items()}
    rows = sweep_thresholds(sweep).sample(1_500, seed=seed).to_dicts()
    for row in rows:
        one = cases[row["chip"], row["dtypes"], row["sharding"]]
        sizes = {dim: row[dim] for dim in "BDF"}
        most = one.place.links[0].domain or 1
        bound = (n for n in range(most, 0, -1) if is_bound_on(exact, one, sizes, n))
        if row["critical"] != next(bound, None):
            wrong.append(row)
    return len(rows), wrong


def exact_factor(resource, times, latency_s):
    """The factor on a rate at which a row is compute-bound, None: none; and its limit."""
    math_s, longest = times[MATH], max(OTHERS, key=times.__getitem__)
    rest = max((each for each in OTHERS if each is not resource), key=times.__getitem__)
    if math_s >= times[longest]:
        return Fraction(1), None
    if resource is MATH:
        return math_s / times[longest], longest.bound
    if latency_s > math_s:
        return None, resource.bound
    if times[rest] > math_s:
        return None, rest.bound
    return times[resource] / math_s, resource.bound


def wrong_rates(seed):
    """The factors on rates that are off by 1e-12, or of which the outcome or limit is not exact."""
    config = config_of(seed, sharding=SPLITS, shards=[2, 3, 8], thresholds=[*RATES])
    sweep = config.sweep("s")
    exact, cases, wrong = Exact(sweep), by_key(sweep), []
    rows = sweep_thresholds(sweep).sample(2_000, seed=seed).to_dicts()
    for row in rows:
        one = cases[row["chip"], row["dtypes"], row["sharding"], row["shards"]]
        sizes, resource = {dim: row[dim] for dim in "BDF"}, RATES[row["axis"]]
        *_, latency_s = exact.parts(one)[resource]
        factor, limit = exact_factor(resource, exact.times(one, sizes), latency_s)
        same = row["limit"] == limit and (row["critical_exact"] is None) == (factor is None)
        if factor is not None:
            same = same and abs(row["critical_exact"] / factor - 1) < 1e-12
        if not same:
            wrong.append(row)
    return len(rows), wrong


class Extents(dict):
    """Sizes, and whole spans of them."""

    def __missing__(self, name):
        size, _, span = name.partition("/")
        return -(-self[size] // int(span))


def time_of(estimate, axis, others):
    """The estimate along an axis [s]."""

    def time(size):
        at = Extents({**others, axis: size})
        return estimate.common.at(at) + max(each.at(at) for each in estimate.by.values())

    return time


def saturated(time, slope, size):
    """Whether a size attains 90 % of the plateau."""
    return 9 * time(size) <= 10 * slope * size


def wrong_estimates(seed):
    """The sizes at which estimates saturate that are not the exact ones."""
    chips = ["h100-sxm", "h200-sxm", "b200"]
    more = {"chips": chips, "calibration": ["trtllm", "nccl"], "efficiency": None}
    sizes = config_of(seed).sweep("s").config_json["grid"]
    sweep_form = {
        "operation": "matmul",
        "grid": sizes,
        "dtypes": ["bf16", "fp8"],
        "sharding": ["none", "contracting/all-reduce"],
        "shards": [1, 2, 8],
        "thresholds": ["B", "D", "F"],
        **{key: value for key, value in more.items() if value},
    }
    sweep = rooflines.load_config({"sweeps": {"s": sweep_form}, "charts": []}).sweep("s")
    known = {key: case.estimate for key, case in by_key(sweep).items()}
    rows, wrong = sweep_thresholds(sweep).sample(2_000, seed=seed).to_dicts(), []
    for row in rows:
        estimate = known[row["chip"], row["dtypes"], row["sharding"], row["shards"]]
        if estimate is None:
            wrong += [row] if row["saturates_estimate"] is not None else []
            continue
        axis, others = row["axis"], {dim: row[dim] for dim in "BDF" if dim != row["axis"]}

        time = time_of(estimate, axis, others)
        slope = (time(2 * HUGE) - time(HUGE)) / HUGE  # a multiple of all spans
        good = partial(saturated, time, slope)
        if not smallest(row["saturates_estimate"], good):
            wrong.append(row)
    return len(rows), wrong


def wrong_steps(seed):
    """The critical batches and contexts of steps that are not the exact ones."""
    dice = random.Random(seed)  # noqa: S311, examples
    models = ["llama-3.1-8b", "llama-3.1-70b", "gemma-3-27b", "gpt-oss-120b", "deepseek-v3"]
    chips = ["h100-sxm", "h200-sxm", "b200", "mi300x", "tpu-v5e", "tpu-v6e"]
    sweep = {
        "models": models,
        "phase": ["decode", "prefill"],
        "grid": {"B": 8, "S": sorted({dice.randint(8, 60_000) for _ in range(14)})},
        "dtypes": ["bf16", "fp8"],
        "chips": chips,
        "splits": [{"tp": 1}, {"tp": 8}, {"tp": 2, "dp": 4}],
        "thresholds": ["B", "S"],
    }
    config = rooflines.load_config({"model-sweeps": {"s": sweep}, "charts": []})
    own = config.model_sweep("s")
    cases = {
        (c.name, c.phase, c.chip, c.memory, c.network, c.dtypes.label, c.split.name): c
        for block in own.blocks
        for c in block.cases
    }
    keys = ("model", "phase", "chip", "memory", "network", "dtypes", "split")
    rows, wrong = sweep_thresholds(own).to_dicts(), []
    for row in rows:
        case = cases[tuple(row[key] for key in keys)]
        if row["axis"] == "B":
            new = row["S"] if case.phase == "prefill" else 1
            good = partial(is_bound, case, context=row["S"], new=new)
            right = smallest(row["critical"], good, case.split.dp)
        else:
            far = partial(is_bound, case, HUGE, new=1, strict=True)
            found = row["critical"]
            if row["outcome"] == "found":
                right = far(context=found) and not far(context=found + 1)
            else:
                right = far(context=2**80) == (row["outcome"] == "without-end")
        if not right:
            wrong.append(row)
    return len(rows), wrong


def is_bound(case, batch, context, new, *, strict=False):
    """Whether a step is compute-bound, in exact arithmetic; a tie is not where `strict`."""
    extents: dict[str, Any] = {"T": new, "S": context, "B": batch}
    for reach in case.model.shape.reaches:
        extents |= reach.extents(context, new)
    polys = [p for time in case.times.by.values() for piece in time.pieces for p in piece]
    for name in {name for poly in polys for terms in poly.terms for name in terms}:
        if name.startswith(TOUCHED):
            experts, per_token, share = name.partition(":")[2].split(",")
            tokens = min(Fraction(share) * batch * new, Fraction(10**6))
            extents[name] = touched_experts(int(experts), int(per_token), tokens)

    def at(time):
        return time.at(extents) if time.summands else Fraction(0)

    math_s = at(case.times.by[MATH.bound])
    others = [at(case.times.by[each.bound]) for each in OTHERS]
    return math_s > max(others) if strict else math_s >= max(others)


KINDS: dict[str, tuple[Callable[[int], tuple[int, list[Any]]], int]] = {
    "sizes": (wrong_sizes, 16),
    "chips": (wrong_chips, 8),
    "rates": (wrong_rates, 6),
    "estimates": (wrong_estimates, 5),
    "steps": (wrong_steps, 4),
}
"""What is compared, and how many sweeps of it: more than 100,000 thresholds together."""


@pytest.mark.parametrize(
    ("kind", "seed"), [(kind, seed) for kind, (_, many) in KINDS.items() for seed in range(many)]
)
def test_whole_thresholds_are_those_of_fractions(kind, seed, record_property):
    compared, wrong = KINDS[kind][0](seed)
    assert wrong == []
    record_property("checked", f"{compared:,} thresholds along {kind}")
