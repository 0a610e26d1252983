"""Random sweeps of training: small models of every family, plans of every kind, chips."""

import random
from collections.abc import Callable
from typing import Any

from oracle.step_table import UNITS
from oracle.training_table import dtypes_of, impossible, plan_name, plans_of
from plain_files import plain_file
from random_sweeps import BITS
from strata import covering

CATALOGUE = plain_file("models.yaml")["models"]

CHIP_DTYPES = ("fp32", "bf16", "fp8")


def some(*values):
    """One of them."""
    return random.choice(values)


def flip():
    """True or false."""
    return random.random() < 1 / 2


def rate(low, high):
    """A rate between two powers of ten, of twelve digits."""
    return float(f"{random.randrange(10**11, 10**12)}e{random.randint(low, high) - 11}")


def grouped():
    """Grouped-query attention whose heads four chips can share."""
    heads = some(1, 2, 4, 8)
    return {
        "N": 16 * some(1, 3),
        "K": heads,
        "H": some(4, 24, 64),
        "bias": some(None, "qkv", "qkvo"),
        "qk_norm": some(None, "head", "all"),
        "sinks": flip(),
        **some({}, {"v": 40}),
    }


def latent(**more):
    """Latent attention, all of whose sizes differ."""
    sizes = {"kv_rank": some(16, 40), "nope": 12, "rope": some(4, 8), "v": some(10, 20)}
    return {"kind": "mla", "N": some(16, 48), **sizes, **more}


def mlp():
    """An MLP."""
    return {"mlp": {"F": some(36, 100, 512), "bias": flip(), "gated": flip()}}


def experts(layers, **more):
    """Experts in all layers, or after some with an MLP."""
    number = some(8, 12, 24)
    moe = {
        "E": number,
        "k": random.choice((1, 2, 3, 4, number)),
        "Fe": some(20, 28),
        "gated": flip(),
    }
    moe |= {"router_bias": flip(), "expert_bias": flip(), **more}
    dense = random.randint(0, layers - 1)
    if not dense:
        return {"moe": moe}
    own = mlp()
    own["mlp"]["layers"] = dense
    return {**own, "moe": {**moe, "layers": layers - dense}}


def window(layers, **more):
    """Some layers with a window."""
    return {"window": {"tokens": some(3, 16), "layers": random.randint(1, layers), **more}}


FAMILIES = {
    "dense": lambda _: {"attention": grouped(), **mlp()},
    "latent": lambda _: {"attention": latent(q_rank=some(24, 32)), **mlp()},
    "latent queries": lambda layers: {"attention": latent(), **experts(layers)},
    "experts": lambda layers: {"attention": grouped(), **experts(layers)},
    "every expert": lambda _: {"attention": grouped(), "moe": {"E": 8, "k": 8, "Fe": 12}},
    "shared experts": lambda layers: {
        "attention": some(grouped(), latent(q_rank=24)),
        **experts(layers, shared=some(1, 3), shared_gate=flip()),
    },
    "shared experts apart": lambda layers: {
        "attention": grouped(),
        **experts(layers, shared=some(1, 3)),
    },
    "windows": lambda layers: {
        "attention": grouped(),
        **some(mlp(), experts(layers)),
        **window(layers),
    },
    "chunks": lambda layers: {"attention": grouped(), **mlp(), **window(layers, chunked=True)},
    "published": lambda _: None,
}
"""Parts of models, by family; one of the catalogue is whole."""


def model(family, layers):
    """A model of a family."""
    parts = FAMILIES[family](layers)
    if parts is None:
        known = [name for name in CATALOGUE if not impossible(CATALOGUE[name], *plans_of(ONE))]
        return some(*known)
    sizes = {"D": some(48, 100, 512), "V": some(100, 1000), "tied": flip()}
    own = {"norms_per_layer": some(2, 4)} if flip() else {}
    return {"name": f"a {family}".replace(" ", "-"), "layers": layers, **sizes, **own, **parts}


ONE: dict[str, Any] = {"splits": [{}]}

PARTS = {
    "one": {},
    "tp": {"tp": 2},
    "copies of heads": {"tp": 4},
    "copies of heads over cp": {"tp": 4, "cp": 2},
    "pp": {"pp": 2},
    "uneven": {"pp": 3},
    "stages alike": {"pp": 4},
    "interleave": {"pp": 2, "interleave": 2},
    "dp": {"dp": 4},
    "odd dp": {"dp": 3},
    "cp": {"cp": 2},
    "ep": {"dp": 2, "ep": 2},
    "ep within tp": {"tp": 2, "ep": 2},
    "ep over all": {"tp": 2, "dp": 2, "cp": 2, "ep": 8},
    "all": {"tp": 2, "pp": 2, "dp": 2, "cp": 2, "ep": 4},
}
"""Numbers of chips, by what they share."""

BEYOND = {
    "heads": {"tp": 7},
    "heads by cp": {"tp": 4, "cp": 8, "context": "heads"},
    "stages": {"pp": 40},
    "runs": {"interleave": 2},
    "experts": {"dp": 5, "ep": 5},
    "copies": {"dp": 2, "ep": 4},
    "chips": {"dp": 64},
    "none": {},
}
"""What most models or networks do not allow."""

NETWORKS = {
    "switch": {"topology": "switch", "links": 3, "domain": "unlimited"},
    "mesh": {"topology": "mesh", "links": 15, "domain": 16},
    "two": {"topology": "switch", "links": 2, "domain": 4},
}
"""Interconnects; of two the inner one."""

DTYPES: dict[str, Callable[[], Any]] = {
    "format": lambda: some("bf16", "fp8", "fp32"),
    "narrow gradients": lambda: {"name": "narrow", "gradients": "bf16", "moments": "bf16"},
    "wide saved": lambda: {"name": "wide", "activations": "fp8", "saved": some("bf16", "fp32")},
    "every class": lambda: {
        "name": "mixed",
        **{part: some(*CHIP_DTYPES) for part in ("compute", "attention")},
        **{
            part: some(*BITS)
            for part in (
                *("weights", "experts", "head", "activations", "combine"),
                *("saved", "gradients", "master", "moments"),
            )
        },
    },
}

PLAN_KINDS: dict[str, list[Any]] = {
    "parts": [*PARTS],
    "shard": ["none", "optimizer", "gradients", "weights"],
    "recompute": ["none", "selective", "full"],
    "save": ["split", "gathered"],
    "context": ["ring", "heads"],
    "optimizer": ["adam", 4, 10.5],
    "micro_batch": [1, 2, 3],
}
"""What a plan has of each."""

KINDS = {
    "family": [*FAMILIES],
    "beyond": [*BEYOND],
    "network": [*NETWORKS],
    "dtypes": [*DTYPES],
    **PLAN_KINDS,
}


def chip(network):
    """A chip that computes in most dtypes, whose memory some steps fill."""
    computes = ["bf16", *some(("fp32", "fp8"), ("fp32", "fp8"), ("fp8",))]
    own = {
        "units": {"matrix": {dtype: {"flops_per_s": rate(12, 15)} for dtype in computes}},
        "memory": {
            "hbm": {"bytes_per_s": rate(11, 12), "capacity_bytes": rate(5, 8)},
            "l2": {"bytes_per_s": rate(9, 10)},  # binds, of unknown capacity
        },
        "networks": {"inner": {"bytes_per_s": rate(9, 11), **NETWORKS[network]}},
    }
    outer = {"bytes_per_s": rate(9, 10), "topology": "switch", "domain": "unlimited"}
    own["networks"]["outer"] = outer
    for link in own["networks"].values():
        link.update(some({}, {"hop_latency_s": some(1e-6, 2.5e-5)}))
    own |= some({}, {"power": {"watts": 700}})
    own |= some({}, {"efficiency": {"math": 0.8, "network": 0.5}})
    price = {"usd_per_hour": 3.43, "provider": "Nobody", "date": "2026-01-01"}
    return own | some({}, {"prices": [price]})


def split_of(choice):
    """The keys of a plan of these kinds."""
    return {**PARTS[choice["parts"]], **{key: choice[key] for key in PLAN_KINDS if key != "parts"}}


def config(**choice):
    """A config of these kinds, one of whose plans is possible; None: there is none."""
    parts = PARTS[choice["parts"]]
    runs = parts.get("pp", 1) * parts.get("interleave", 1)
    whole = runs * random.randint(0, 2)
    more = {"uneven": 1, "stages alike": 2 + whole}.get(choice["parts"], whole)
    spec = model(choice["family"], runs + more)
    entry = CATALOGUE[spec] if isinstance(spec, str) else spec
    first = split_of(choice)
    if choice["family"] == "shared experts apart" and not {"tp", "ep"} <= first.keys():
        return None
    if impossible(entry, *plans_of({"splits": [first]})) or not joined(first, choice["network"]):
        return None
    key = some(*PLAN_KINDS)
    splits = [first, split_of({**choice, key: some(*PLAN_KINDS[key])}), BEYOND[choice["beyond"]]]
    named = {plan_name(*plans_of({"splits": [each]})): each for each in reversed(splits)}
    made = chip(choice["network"])
    m, together = random.randint(1, 4), first["micro_batch"] * first.get("dp", 1)
    sizes = {"B": sorted({m * together, random.randint(1, 24)})}
    sizes["S"] = sorted({first.get("cp", 1) * random.randint(1, 300), random.randint(1, 90)})
    sweep: dict[str, Any] = {"models": [spec], "phase": "train", "chips": ["own"], "grid": sizes}
    sweep |= {"splits": [*named.values()], "dtypes": [DTYPES[choice["dtypes"]]()], "thresholds": []}
    computing = {dtypes_of(sweep["dtypes"][0], BITS)[1][unit] for unit in UNITS}
    if not computing <= made["units"]["matrix"].keys() or (sweep["dtypes"] != ["bf16"] and flip()):
        sweep["dtypes"].append("bf16")
    two = [["inner", "outer"], some("inner", "outer")]
    sweep["network"] = two if choice["network"] == "two" else "inner"
    sweep |= some({}, {}, {"memory": "l2"}, {"memory": ["l2", "hbm"]})
    sweep |= some({}, {"tokens": 1e12}) | some({}, {"efficiency": {"memory": 0.95}})
    own = {"source": "made up", "name": "own", "vendor": "Nobody", **made}
    return {"model-sweeps": {"random": sweep}, "chips": {"own": own}, "charts": []}


def one_by_one():
    """A config of plans each of which differs from the first in one thing.

    Of four stages the middle ones, which are alike, have two layers.
    """
    first: dict[str, Any] = {"tp": 2, "pp": 2, "dp": 4, "cp": 2, "ep": 2}
    first |= {key: values[0] for key, values in PLAN_KINDS.items() if key != "parts"}
    others = {"tp": 1, "pp": 1, "dp": 2, "cp": 1, "ep": 4, "interleave": 3}
    changes: list[dict[str, Any]] = [
        {},
        {"pp": 4},
        *({key: value} for key, value in others.items()),
    ]
    for key, values in PLAN_KINDS.items():
        changes += [{key: value} for value in values[1:] if key != "parts"]
    own = {"source": "made up", "name": "own", "vendor": "Nobody", **chip("switch")}
    spec = {**model("shared experts apart", 1), "layers": 6, "V": 100}
    sweep: dict[str, Any] = {"models": [spec], "phase": "train", "chips": ["own"]}
    sweep |= {"dtypes": ["bf16"], "grid": {"B": 24, "S": 64}}
    sweep |= {"splits": [{**first, **each} for each in changes]}
    sweep |= {"thresholds": [], "network": "inner"}
    return {"model-sweeps": {"random": sweep}, "chips": {"own": own}, "charts": []}


def joined(split, network):
    """Whether the inner of two networks divides the chips of a plan, or joins them all."""
    (found,) = plans_of({"splits": [split]})
    return network != "two" or found.chips <= 4 or found.chips % 4 == 0


def configs():
    """Random configs with each of `KINDS` at least once."""
    return covering(KINDS, config)
