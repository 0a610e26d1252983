"""Whole thresholds of random sweeps, as large as the oracle needs; one less is not enough."""

import random
from functools import partial

import oracle
import pytest
from comparison import given
from oracle import step_limits as limits
from oracle import step_table
from oracle.critical import RATES, factor_on
from oracle.critical_chips import most_chips
from oracle.critical_sizes import FAR, TIE, step_along
from oracle.step_values import times
from oracle.steps import Step
from oracle.values import bound_of
from plain_files import plain_file

import rooflines

SPLITS = ["contracting/all-reduce", "batch/gather-w", "column/gather-x", "batch"]
LINKS = [
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
        "source": "this test",
        "units": {"matrix": {"bf16": {"flops_per_s": peak}, "int8": {"flops_per_s": 2 * peak}}},
        "memory": {"hbm": {"bytes_per_s": peak / drawn(60, 500, dice)}},
        "networks": {"fabric": {"bytes_per_s": drawn(5e9, 2e11, dice), **dice.choice(LINKS)}},
    }


def solved(seed, rows, **more):
    """Thresholds of a matmul on made-up chips, each with its sizes and the oracle's setting."""
    dice = random.Random(seed)
    sweep = {
        "operation": "matmul",
        "grid": {dim: sorted({dice.randint(100, 20_000) for _ in range(12)}) for dim in "BDF"},
        "dtypes": ["bf16", "int8", "w8a16"],
        "chips": [f"chip-{number}" for number in range(4)],
        "efficiency": {"math": drawn(0.6, 1, dice)},
        **more,
    }
    own = {name: made_up(dice) for name in sweep["chips"] if name.startswith("chip-")}
    config = {"sweeps": {"s": sweep}, "chips": own, "charts": []}
    one_size = {**sweep, "grid": dict.fromkeys("BDF", 1)}
    keys = [
        "chip",
        "dtypes",
        "sharding",
        *(["shards"] if "shards" not in more["thresholds"] else []),
    ]
    settings = {
        tuple(row.keys[key] for key in keys): row.setting
        for row in oracle.rows(one_size, *given(config))
        if row.setting is not None
    }
    for row in (
        rooflines.thresholds(rooflines.load_config(config)).sample(rows, seed=seed).to_dicts()
    ):
        yield row, {dim: row[dim] for dim in "BDF"}, settings[tuple(row[key] for key in keys)]


def smallest(found, good, least=1):
    """Whether a size is the smallest good one; None: none is."""
    if found is None:
        return not good(FAR)
    return good(found) and (found <= least or not good(found - 1))


def wrong_sizes(seed):
    """The thresholds along sizes that are not the exact ones."""
    more = {"sharding": ["none", *SPLITS], "shards": [1, 2, 3, 8], "thresholds": ["B", "D", "F"]}
    for row, sizes, setting in solved(seed, 6_000, **more):

        def is_bound(others, size, row=row, sizes=sizes, setting=setting):
            found = setting.times({**sizes, row["axis"]: size}, row["shards"])
            return all(found["math"] >= found[each] for each in others)

        asked = {"critical": ("memory", "network"), "critical_memory": ("memory",)}
        asked["critical_network"] = ("network",)
        yield [
            (column, row)
            for column, others in asked.items()
            if not smallest(row[column], partial(is_bound, others))
        ]


def wrong_chips(seed):
    """The largest numbers of chips that are not the exact ones."""
    for row, sizes, setting in solved(
        seed, 1_500, sharding=SPLITS, shards=[2], thresholds=["shards"]
    ):
        truth = most_chips(setting, sizes)
        yield (
            [row] if (row["critical"], row["limit"]) != (truth["critical"], truth["limit"]) else []
        )


def wrong_rates(seed):
    """The factors on rates that are off by 1e-12, or of which the outcome or limit is not exact."""
    more = {"sharding": SPLITS, "shards": [2, 3, 8], "thresholds": [*RATES]}
    for row, sizes, setting in solved(seed, 2_000, **more):
        truth = factor_on(setting, RATES[row["axis"]], sizes, row["shards"])
        found, factor = row["critical_exact"], truth["critical_exact"]
        same = (row["limit"], found is None) == (truth["limit"], factor is None)
        yield [] if same and (factor is None or abs(found / factor - 1) < 1e-12) else [row]


def wrong_estimates(seed):
    """The sizes at which estimates saturate that are not the exact ones."""
    more = {
        "chips": ["h100-sxm", "h200-sxm", "b200"],
        "calibration": ["trtllm", "nccl"],
        "dtypes": ["bf16", "fp8"],
        "sharding": ["none", SPLITS[0]],
        "shards": [1, 2, 8],
    }
    for row, sizes, setting in solved(seed, 2_000, thresholds=["B", "D", "F"], **more):
        if setting.fits.kernels["compute"] is None:
            yield [row] if row["saturates_estimate"] is not None else []
            continue

        def time(size, row=row, sizes=sizes, setting=setting):
            at = {**sizes, row["axis"]: size}
            return setting.estimate(at, row["shards"])["t_estimate_s"]

        far = FAR * step_along(setting, row["axis"], row["shards"]) * 128 * 24  # of whole tiles
        slope = (time(2 * far) - time(far)) / far

        def attains(size, time=time, slope=slope):
            return 9 * time(size) <= 10 * slope * size * (1 + TIE)

        yield [] if smallest(row["saturates_estimate"], attains) else [row]


def wrong_steps(seed):
    """The critical batches and contexts of steps that are not the exact ones."""
    dice = random.Random(seed)
    sweep = {
        "models": ["llama-3.1-8b", "llama-3.1-70b", "gemma-3-27b", "gpt-oss-120b", "deepseek-v3"],
        "phase": ["decode", "prefill"],
        "grid": {"B": 8, "S": sorted({dice.randint(8, 60_000) for _ in range(14)})},
        "dtypes": ["bf16", "fp8"],
        "chips": ["h100-sxm", "h200-sxm", "b200", "mi300x", "tpu-v5e", "tpu-v6e"],
        "splits": [{"tp": 1}, {"tp": 8}, {"tp": 2, "dp": 4}],
        "thresholds": ["B", "S"],
    }
    catalogues = plain_file("models.yaml")["models"], plain_file("chips.yaml")["chips"]
    found = step_table.cases(sweep, *catalogues, plain_file("dtypes.yaml")["formats"])
    keys = ("model", "phase", "chip", "memory", "network", "dtypes", "split")
    cases = {tuple(named[key] for key in keys): case for named, case, _ in found}
    config = rooflines.load_config({"model-sweeps": {"s": sweep}, "charts": []})
    for row in rooflines.thresholds(config, "s").to_dicts():
        case = cases[tuple(row[key] for key in keys)]

        def is_bound(batch, new, context, case=case):
            return bound_of(times(case, Step(batch, new, context))) == "compute"

        if row["axis"] == "S":
            right = limits.context_ceiling(case) == (
                limits.ENDLESS if row["outcome"] == "without-end" else row["critical"]
            )
        else:
            new = row["S"] if case.phase == "prefill" else 1
            good = partial(is_bound, new=new, context=row["S"])
            right = smallest(row["critical"], good, case.dp)
        yield [] if right else [row]


KINDS = {
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
    wrong = list(KINDS[kind][0](seed))
    assert [each for each in wrong if each] == []
    record_property("checked", f"{len(wrong):,} thresholds along {kind}")
