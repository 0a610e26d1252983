"""Random sweeps of training: small models of every family, plans of every kind, chips."""

import random
from collections.abc import Callable
from typing import Any

from oracle.network import fastest_axes, in_groups, why_not_joined
from oracle.step_table import UNITS
from oracle.sweeps import network_of, routes
from oracle.training_table import dtypes_of, impossible, plan_name, plan_of, plans_of
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


def states(layers, **more):
    """Some layers with a state, of any kind."""
    kind = some("gated-delta", "kda", "lightning", "mamba1", "mamba2", "short-conv")
    s = {"kind": kind, "heads": some(16, 48), "key": 4, "value": some(4, 6), "conv": 4}
    s["groups"] = some(1, 2, 8)
    further: dict[str, dict[str, Any]] = {
        "lightning": {"groups": s["heads"], "conv": 1},
        "mamba1": {"groups": 1, "value": 1, "rank": 5},
        "kda": {"full_gate": flip()},
        "mamba2": {"norm": flip()},
    }
    s |= {**further.get(kind, {}), "layers": random.randint(1, layers), **more}
    return {"state": s}


def chosen(layers):
    """Layers that attend to chosen tokens, some with an indexer."""
    some_of = random.randint(1, layers)
    own = {"tokens": some(9, 40), "heads": some(2, 3), "dim": 8, "weighted": flip()}
    return {"sparse": {**own, "layers": some_of, "indexer_layers": random.randint(1, some_of)}}


def single(layers):
    """Layers of one part each."""
    states_of = max(layers - 2, 1)
    parts = {**experts(1, latent=some(None, 24), shared=some(0, 1)), **states(states_of)}
    parts["moe"]["layers"] = random.randint(1, 2)
    more = {"mlp": {**mlp()["mlp"], "layers": 1}} if flip() else {}
    return {
        "attention": grouped(),
        "single": True,
        **parts,
        **more,
        "layers": max(layers, states_of) + 4,
    }


FAMILIES: dict[str, Callable[[int], Any]] = {
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
        "attention": some(grouped(), latent(q_rank=24)),
        **some(mlp(), experts(layers)),
        **window(layers),
    },
    "chunks": lambda layers: {
        "attention": grouped(),
        **some(mlp(), experts(layers)),
        **window(layers, chunked=True),
    },
    "gates": lambda layers: {
        "attention": {**grouped(), "gate": some("element", "head")},
        **some(mlp(), experts(layers)),
    },
    "latent gates": lambda _: {"attention": latent(gate=True), **mlp()},
    "one tensor": lambda _: {"attention": {**grouped(), "one_tensor": True}, **mlp()},
    "tables": lambda _: {
        "attention": grouped(),
        **mlp(),
        "positions": 70,
        "head_bias": True,
        "norm_bias": True,
        "model_norms": 2,
    },
    "states": lambda layers: {
        "attention": some(grouped(), latent(q_rank=24)),
        **some(mlp(), experts(layers)),
        **states(layers),
    },
    "states beside": lambda layers: {
        "attention": grouped(),
        **some(mlp(), experts(layers)),
        **states(layers, beside=True),
    },
    "chosen tokens": lambda layers: {
        "attention": some(grouped(), latent(q_rank=24), latent()),
        **some(mlp(), experts(layers)),
        **chosen(layers),
    },
    "single": single,
    "latent width": lambda layers: {
        "attention": grouped(),
        **experts(layers, latent=24, latent_norm=flip(), **some({}, {"shared": 2})),
    },
    "drafter": lambda layers: {"attention": grouped(), **experts(layers), "mtp": True},
    "published": lambda _: None,
}
"""Parts of models, by family; one of the catalogue is whole."""

REFUSED: dict[str, Callable[[int], dict[str, Any]]] = {
    "no weights": lambda layers: {"attention": grouped(), **experts(layers, zero_experts=2)},
    "other windows": lambda layers: {
        "attention": grouped(),
        **mlp(),
        **window(layers, attention={"N": 16, "K": 4, "H": 8}),
    },
}
"""Models whose training is not modelled."""


def model(family, layers, name="a"):
    """A model of a family."""
    parts = {**FAMILIES, **REFUSED}[family](layers)
    if parts is None:
        known = [each for each in CATALOGUE if not impossible(CATALOGUE[each], *plans_of(ONE))]
        return some(*known)
    sizes = {"D": some(48, 100, 512), "V": some(100, 1000), "tied": flip()}
    own = {"norms_per_layer": some(2, 4)} if flip() else {}
    label = f"{name} {family}".replace(" ", "-")
    return {"name": label, "layers": layers, **sizes, **own, **parts}


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
    "two at once": {"tp": 2, "dp": 2},
    "none": {},
}
"""Keys that most models or networks do not allow."""

SWITCH = {"topology": "switch", "links": 2, "domain": 4}
OUTSIDE = {"topology": "switch", "domain": "unlimited"}

NETWORKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "switch": ({"topology": "switch", "links": 3, "domain": "unlimited"}, OUTSIDE),
    "mesh": ({"topology": "mesh", "links": 15, "domain": 16}, OUTSIDE),
    "unpublished": ({"topology": "switch", "links": 3}, OUTSIDE),
    "two": (SWITCH, OUTSIDE),
    "mesh inside": ({"topology": "mesh", "links": 3}, {**OUTSIDE, "domain": 32}),
    "torus outside": (
        SWITCH,
        {"topology": "torus", "links": 4, "domain": 16, "ring_multiple": 4},
    ),
    "outer alone": (SWITCH, OUTSIDE),
}
"""Interconnects, inner and outer, by what is asked for."""

ROUTES: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(("two", "mesh inside", "torus outside"), lambda: ["inner", "outer"]),
    "outer alone": lambda: "outer",
}
"""The networks of a sweep; of others the inner one."""

DTYPES: dict[str, Callable[[], Any]] = {
    "format": lambda: some("bf16", "fp8", "fp32"),
    "narrow gradients": lambda: {"name": "narrow", "gradients": "bf16", "moments": "bf16"},
    "wide saved": lambda: {"name": "wide", "activations": "fp8", "saved": some("bf16", "fp32")},
    "own head": lambda: {"name": "head", "head": "fp8", "lm_head": "fp32"},
    "several formats": lambda: {
        "name": "several",
        "mixed": {
            "weights": {"fp8": 3, "bf16": 1},
            "experts": {"fp8": 1, "fp32": 6},
            "head": {"bf16": 2, "fp8": 5},
        },
        **some({}, {"lm_head": "fp32"}),
    },
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
"""Sizes of each part of a plan."""

SPELLINGS = ("keys", "names", "of the sweep", "ZeRO", "auto")
"""Forms of plans."""

BESIDE = ("tokens", "prices", "efficiency", "levels", "calibration", "another software", "sizes")
"""Further keys of a sweep."""

CHIPS = ("one", "no network", "no level", "no dtype", "no capacity", "variant")
"""Further chips besides one that computes the first plan, or lacks something for it."""

KINDS = {
    "family": [*FAMILIES],
    "other": ["none", *REFUSED, "one more"],
    "beyond": [*BEYOND],
    "network": [*NETWORKS],
    "chips": [*CHIPS],
    "dtypes": [*DTYPES],
    "spelling": [*SPELLINGS],
    "beside": [*BESIDE],
    **PLAN_KINDS,
}


def networks_of(kind):
    """The interconnects of a chip."""
    inner, outer = NETWORKS[kind]
    found = {"inner": {"bytes_per_s": rate(9, 11), **inner}}
    found["outer"] = {"bytes_per_s": rate(9, 10), **outer}
    for link in found.values():
        link.update(some({}, {"hop_latency_s": some(1e-6, 2.5e-5)}))
    return found


SOLD = [
    {"usd_per_hour": usd, "provider": provider, "date": date, "sku": sku}
    for usd, provider, date, sku in (
        (3.43, "Nobody", "2026-01-01", "8 chips, on demand"),
        (2.5, "Somebody", "2025-12-31", "8 chips, on demand"),
        (1.75, "Nobody", "2026-01-01", "8 chips, reserved"),
    )
]


def chip(network):
    """A chip that computes in most dtypes, whose memory some steps fill."""
    computes = ["bf16", *some(("fp32", "fp8"), ("fp32", "fp8"), ("fp8",))]
    own = {
        "units": {"matrix": {dtype: {"flops_per_s": rate(12, 15)} for dtype in computes}},
        "memory": {
            "hbm": {"bytes_per_s": rate(11, 12), "capacity_bytes": rate(5, 8)},
            "l2": {"bytes_per_s": rate(9, 10)},  # binds, of unknown capacity
        },
        "networks": networks_of(network),
    }
    own |= some({}, {"power": {"watts": 700}})
    own |= some({}, {"efficiency": {"math": 0.8, "network": 0.5}})
    return own | some({}, {"prices": random.sample(SOLD, 2)})


ABOUT = {"source": "made up", "name": "own", "vendor": "Nobody"}


def chips_of(kind, network):
    """The chips of a sweep by id; the first computes its first plan."""
    own = {**ABOUT, **chip(network)}
    other: dict[str, Any] = {**ABOUT, **chip(network)}
    if kind == "one":
        return {"own": own}
    if kind == "no capacity":
        del own["memory"]["hbm"]["capacity_bytes"]
        return {"own": own}
    if kind == "variant":
        rates = {"memory.hbm.bytes_per_s": rate(11, 12), "networks.inner.bytes_per_s": rate(9, 11)}
        return {"own": own, "other": {"base": "own", **rates, "plausible": [*rates], **SOURCE}}
    if kind == "no network":
        del other["networks"]
    if kind == "no level":
        del other["memory"]["l2"]
    if kind == "no dtype":
        del other["units"]["matrix"]["bf16"]
    return {"own": own, "other": other}


SOURCE = {"source": "made up"}


def fits_of(chips, every):
    """Fits of steps of training, of some chips by one software and of all by another one."""
    errors = {"n": 30, "median": 0.05, "mean": 0.06, "p90": 0.1}
    about = {"fitted": errors, "source": "made up", "date": "2026-01-01"}

    def fit():
        bands = some({}, {"step": [0.9, some(1, 1.3)]})
        base = some("upper", "math")
        return {"train": {"times": some(1, 2.04, 3.5), "base": base, "bands": bands, **about}}

    some_of = [name for name in chips if every or name == "own"]
    found = {f"{name}/mine": fit() for name in some_of}
    return {"training": found | {f"{name}/other": fit() for name in chips}}


def split_of(choice):
    """The keys of a plan of these kinds."""
    parts: dict[str, Any] = PARTS.get(choice["parts"]) or {}
    return {**parts, **{key: choice[key] for key in PLAN_KINDS if key != "parts"}}


def layers_for(parts, split):
    """Layers that stages of a plan can share, equal ones or not."""
    runs = split.get("pp", 1) * split.get("interleave", 1)
    whole = runs * random.randint(0, 2)
    return runs + {"uneven": 1, "stages alike": 2 + whole}.get(parts, whole)


def spelled(spelling, splits):
    """The plans of a sweep, and the keys that it has for all of them."""
    if spelling == "names":
        return {"splits": [plan_name(*plans_of({"splits": [each]})) for each in splits]}
    shared = {key: splits[0][key] for key in SHARED if key in splits[0]}
    if spelling == "auto":
        (plan,) = plans_of({"splits": splits[:1]})
        return {"splits": "auto", "num_chips": plan.chips, **shared}
    if spelling == "of the sweep":
        own = (
            {key: value for key, value in each.items() if shared.get(key) != value}
            for each in splits
        )
        named = {plan_name(*plans_of({**shared, "splits": [each]})): each for each in own}
        return {"splits": [*named.values()], **shared}
    if spelling == "ZeRO":
        words = {"none": "zero0", "optimizer": "zero1", "gradients": "zero2"}
        words["weights"] = some("zero3", "fsdp", "ZeRO3")
        shards = (words[each.get("shard", "optimizer")] for each in splits)
        return {"splits": [{**a, "shard": b} for a, b in zip(splits, shards, strict=True)]}
    return {"splits": splits}


FEW = (2, 3, 4)
"""Chips over which all plans are tried [1]."""

SHARED = ("interleave", *(key for key in PLAN_KINDS if key != "parts"))
"""Keys of a plan that a sweep may have for all."""


def asked_beside(kind, sweep, config, sizes):
    """Further keys of a sweep, and the fits that it needs."""
    sweep |= {"tokens": 1e12} if kind == "tokens" or flip() else {}
    if kind == "prices":
        sweep["prices"] = some({"provider": "Nobody"}, {"kind": "on demand"})
        for own in config["chips"].values():
            own.update({} if "base" in own else {"prices": SOLD})
    if kind == "efficiency":
        sweep["efficiency"] = some({"memory": 0.95}, {"math": 0.7, "network": 0.9})
    if kind == "levels":
        sweep["memory"] = some("l2", ["l2", "hbm"])
    if kind in ("calibration", "another software"):
        config["fits"] = fits_of(config["chips"], kind == "calibration")
        sweep["calibration"] = some("mine", ["mine", "other"]) if kind == "calibration" else "mine"
    if kind == "sizes":
        batch, length = sizes
        sweep["grid"] = {"B": {"from": batch, "to": 2 * batch, "factor": 2}, "S": length}


def config(**choice):
    """A config of these kinds, one of whose plans is possible; None: there is none."""
    first = split_of(choice)
    layers = layers_for(choice["parts"], first)
    spec = model(choice["family"], layers)
    entry = CATALOGUE[spec] if isinstance(spec, str) else spec
    if choice["family"] == "shared experts apart" and not {"tp", "ep"} <= first.keys():
        return None
    own = chips_of(choice["chips"], choice["network"])
    route = ROUTES.get(choice["network"], lambda: some("inner", None))()
    if impossible(entry, plan_of(first)) or not joined(first, route, own["own"]):
        return None
    key = some(*PLAN_KINDS)
    others = [each for each in PLAN_KINDS[key] if each != choice[key]]
    changed = {**choice, key: some(*others) if others else choice[key]}
    if choice["spelling"] == "auto" and plan_of(first).chips not in FEW:
        return None
    splits = [first, split_of(changed), BEYOND[choice["beyond"]]]
    named = {plan_name(plan_of(each)): each for each in [*splits[1:], first]}
    splits = [first, *(each for each in named.values() if each is not first)]
    m, together = random.randint(1, 4), first["micro_batch"] * first.get("dp", 1)
    sizes = {"B": sorted({m * together, random.randint(1, 24)})}
    length = first.get("cp", 1) * random.randint(1, 300)
    sizes["S"] = sorted({length, random.randint(1, 90)})
    other = some("dense", "experts") if choice["other"] == "one more" else choice["other"]
    more = [] if other == "none" else [model(other, layers, "another")]
    if more or len(own) > 1:  # instead of more sizes
        sizes = {"B": [m * together], "S": [length]}
    sweep: dict[str, Any] = {"models": random.sample([spec, *more], 1 + len(more))}
    sweep |= {"phase": "train", "chips": random.sample([*own], len(own)), "grid": sizes}
    sweep |= {**spelled(choice["spelling"], splits), "thresholds": []}
    sweep["dtypes"] = [DTYPES[choice["dtypes"]]()]
    computing = {dtypes_of(sweep["dtypes"][0], BITS)[1][unit] for unit in UNITS}
    supported = own["own"]["units"]["matrix"].keys()
    if not computing <= supported or (sweep["dtypes"] != ["bf16"] and flip()):
        sweep["dtypes"].append("bf16")
    sweep |= {"network": route} if route else {}
    found = {"model-sweeps": {"random": sweep}, "chips": own, "charts": []}
    asked_beside(choice["beside"], sweep, found, (m * together, length))
    return found


def one_by_one(network):
    """A config of plans over a kind of network, each differing from the first in one thing.

    Of four stages the middle ones, which are alike, have two layers. Some allow both contexts.
    """
    first: dict[str, Any] = {"tp": 2, "pp": 2, "dp": 4, "cp": 2, "ep": 2}
    first |= {key: values[0] for key, values in PLAN_KINDS.items() if key != "parts"}
    others = {"tp": 1, "pp": 1, "dp": 2, "cp": 1, "ep": 4, "interleave": 3}
    changes: list[dict[str, Any]] = [
        {},
        {"pp": 4},
        *({key: value} for key, value in others.items()),
        *({"tp": 1, "cp": 1, "ep": 1, "dp": dp} for dp in (2, 4)),  # stages within an inner domain
    ]
    for key, values in PLAN_KINDS.items():
        changes += [{key: value} for value in values[1:] if key != "parts"]
    own = {"source": "made up", "name": "own", "vendor": "Nobody", **chip(network)}
    spec = {**model("shared experts apart", 1), "layers": 6, "V": 100}
    sweep: dict[str, Any] = {"models": [spec], "phase": "train", "chips": ["own"]}
    sweep |= {"dtypes": ["bf16"], "grid": {"B": 24, "S": [63, 64]}}
    sweep |= {"splits": [{**first, **each} for each in changes]}
    sweep |= {"thresholds": [], "network": ROUTES.get(network, lambda: "inner")()}
    return {"model-sweeps": {"random": sweep}, "chips": {"own": own}, "charts": []}


def joined(split, route, own):
    """True if a chip's interconnects join a plan, by some route."""
    plan = plan_of(split)
    for each in routes({"network": route}):
        _, links = network_of(own, each)
        links = in_groups(links, plan.chips)
        if not why_not_joined(links, fastest_axes(links, plan.chips)):
            return True
    return False


def configs():
    """Random configs with each of `KINDS` at least once."""
    return covering(KINDS, config)
