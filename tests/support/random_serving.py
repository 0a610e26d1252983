"""Random sweeps of small models on random chips, as `lots`."""

import copy
from functools import partial
from typing import Any

import lots
import oracle
import random_sweeps as drawn
from lots import assume
from oracle import step_table
from random_fits import files_of_fits
from random_sweeps import BITS, COMPUTE

some = lots.sampled_from([1, 2, 2, 3, 4, 4, 8, 16])
widths = lots.sampled_from([8, 48, 64, 100, 512, 4096])


@lots.composite
def attentions(draw):
    """Draw grouped or latent attention, mostly of heads that two or four chips can split."""
    if draw(lots.integers(0, 2)):
        heads = draw(some)
        return {
            "N": heads * draw(some),
            "K": heads,
            "H": draw(lots.sampled_from([4, 64, 128])),
            "bias": draw(lots.sampled_from([None, "qkv", "qkvo"])),
            "qk_norm": draw(lots.sampled_from([None, "head", "all"])),
            "sinks": draw(lots.booleans()),
            "gate": draw(lots.sampled_from([None, None, "element", "head"])),
            **draw(lots.sampled_from([{}, {}, {"v": 32}, {"one_tensor": True}])),
        }
    ranks = {key: draw(lots.sampled_from([4, 16, 64])) for key in ("kv_rank", "nope", "rope", "v")}
    found = {"kind": "mla", "N": draw(lots.sampled_from([1, 4, 16, 48])), **ranks}
    found["gate"] = draw(lots.booleans())
    return found | ({"q_rank": draw(lots.sampled_from([8, 24]))} if draw(lots.booleans()) else {})


@lots.composite
def compressed(draw, layers):
    """Draw a window in all layers, with compressed entries beside it in some, and streams."""
    attention = {"kind": "shared-kv", "N": draw(lots.sampled_from([4, 16, 48]))}
    attention |= {"H": draw(lots.sampled_from([16, 64])), "rope": draw(lots.sampled_from([4, 16]))}
    attention |= {key: draw(lots.sampled_from([8, 24])) for key in ("q_rank", "o_rank")}
    attention |= {"o_groups": draw(lots.sampled_from([1, 4])), "sinks": draw(lots.booleans())}
    found: dict[str, Any] = {
        "attention": attention,
        "window": {"tokens": draw(lots.sampled_from([1, 2, 16])), "layers": layers},
        "streams": draw(lots.sampled_from([None, 2, 4])),
    }
    parts: list[dict[str, Any]] = []
    if chosen := draw(lots.integers(0, layers)):
        part = {"tokens": draw(lots.sampled_from([1, 2, 4])), "layers": chosen, "overlap": True}
        part |= {"entries": draw(lots.sampled_from([1, 3, 8])), "heads": draw(some), "dim": 8}
        parts.append(part | {"bits": draw(lots.sampled_from([None, 4]))})
    if others := draw(lots.integers(0, layers - chosen)):
        parts.append({"tokens": draw(lots.sampled_from([8, 16])), "layers": others})
    return {**found, "compressed": parts}


STATES = ["gated-delta", "kda", "lightning", "mamba1", "mamba2", "short-conv"]
"""Kinds of states."""

MOST_OF_A_CHUNK = 100
"""Tokens of chunks that the oracle of contexts tries one by one [1]."""


@lots.composite
def mixers(draw, layers):
    """Draw layers with a window, chosen tokens or a state; none of them in half of the models."""
    kind, count = (
        draw(lots.sampled_from(["", "", "window", "sparse", "state"])),
        lots.integers(1, layers),
    )
    if not kind:
        return {}
    tokens = draw(lots.sampled_from([1, 2, 16, 128]))
    if kind == "window":
        window: dict[str, Any] = {"tokens": tokens, "layers": draw(count)}
        if draw(lots.integers(0, 3)) == 0:
            window["attention"] = {"N": 16, "K": draw(lots.sampled_from([1, 4, 16])), "H": 8}
        if tokens < MOST_OF_A_CHUNK and draw(lots.booleans()):
            window["chunked"] = True
        return {kind: window}
    if kind == "sparse":
        among = draw(count)
        sparse: dict[str, Any] = {
            "tokens": tokens,
            "layers": among,
            "indexer_layers": draw(lots.integers(1, among)),
        }
        sparse |= {"heads": draw(some), "dim": 16, "bits": draw(lots.sampled_from([None, 8]))}
        return {kind: {**sparse, "weighted": draw(lots.booleans())}}
    state: dict[str, Any] = {
        key: draw(lots.sampled_from([1, 4, 16])) for key in ("key", "value", "groups", "conv")
    }
    state["kind"] = draw(lots.sampled_from(STATES))
    if state["kind"] == "short-conv":  # its inputs are all that it keeps
        state["conv"] = draw(lots.sampled_from([2, 4, 16]))
    state |= {"layers": draw(count), "heads": draw(some), "bits": draw(lots.sampled_from([16, 32]))}
    if state["kind"] == "mamba1":
        state |= {"value": 1, "groups": 1, "rank": draw(some)}
    if state["kind"] == "lightning":
        state |= {"conv": 1, "groups": state["heads"]}
    state |= {name: draw(lots.booleans()) for name in ("full_gate", "norm")}
    return {kind: {**state, "beside": draw(lots.integers(0, 2)) == 0}}


@lots.composite
def variants(draw, model):
    """Draw layers with other heads or widths, or without a part, and the MLP of the rest."""
    layers, found = model["layers"], []
    while layers and draw(lots.booleans()):
        part: dict[str, Any] = {"layers": draw(lots.integers(1, layers))}
        layers -= part["layers"]
        heads = [each for each in (1, 2, 4, 8, 16) if model["attention"]["N"] % each == 0]
        for name, size, sizes in (("attention", "K", heads), ("mlp", "F", [16, 48, 64])):
            kind = draw(lots.sampled_from(["", "size", "linear", "none"]))
            if kind == "size":
                part[size] = draw(lots.sampled_from(sizes))
            elif kind:
                part[name] = kind
        found.append(part)
    if not layers and all(part.get("attention") for part in found):
        found = found[1:]
    varied = sum(part["layers"] for part in found if part.get("F") or part.get("mlp"))
    mlp = {key: value for key, value in model["mlp"].items() if key != "layers"}
    stated = {"layers": model["layers"] - varied} if model["layers"] > varied else {}
    return {"variants": found, "mlp": mlp | (stated if draw(lots.booleans()) else {})}


def strides(model):
    """Strides that the query heads of a model's windows allow."""
    window = model["window"]
    a = window.get("attention") or model["attention"]
    if window.get("chunked") or a.get("kind", "gqa") != "gqa":
        return []
    return [each for each in range(1, a["N"] + 1) if a["N"] % each == 0 and a["N"] <= each * a["K"]]


@lots.composite
def models(draw, name="made-up"):
    """Draw a model, dense, with experts, or both."""
    layers = draw(lots.integers(1, 6))
    sparse = draw(lots.sampled_from([0, layers, (layers + 1) // 2]))
    model: dict[str, Any] = {
        "name": name,
        "layers": layers,
        "D": draw(widths),
        "V": draw(lots.sampled_from([16, 1000, 32000])),
        "tied": draw(lots.booleans()),
        "attention": draw(attentions()),
        "norms_per_layer": draw(lots.sampled_from([0, 2, 4])),
        "norm_bias": draw(lots.booleans()),
        "model_norms": draw(lots.sampled_from([1, 1, 2])),
        "positions": draw(lots.sampled_from([0, 0, 7])),
        "head_bias": draw(lots.booleans()),
    }
    if sparse < layers:
        model["mlp"] = {"F": draw(widths), "layers": layers - sparse, "bias": draw(lots.booleans())}
    if sparse:
        experts = draw(lots.sampled_from([1, 6, 8, 16, 48, 64, 96]))
        model["moe"] = {
            "E": experts,
            "k": draw(lots.integers(1, min(experts, 8))),
            "Fe": draw(widths),
            "shared": draw(lots.integers(0, 2)),
            "layers": sparse,
            "router_bias": draw(lots.booleans()),
            "expert_bias": draw(lots.booleans()),
            "shared_gate": draw(lots.booleans()),
            "gated": draw(lots.booleans()),
            "latent": draw(lots.sampled_from([None, None, 24])),
            "zero_experts": draw(lots.sampled_from([0, 0, 1, 8])),
        }
    if draw(lots.integers(0, 5)) == 0:
        model |= draw(compressed(layers))
        if sparse:
            model["moe"]["hash_layers"] = draw(lots.integers(0, sparse))
        return model
    if draw(lots.integers(0, 3)) == 0:  # each layer is a mixer, an MLP or experts
        mixed = draw(lots.integers(1, 4))
        model |= {"single": True, "layers": layers + mixed}
        return model | draw(mixers(mixed))
    plain = not sparse and model["attention"].get("kind", "gqa") == "gqa"
    if plain and "mtp" not in model and draw(lots.integers(0, 2)) == 0:
        return model | {"norms_per_layer": 2} | draw(variants(model))
    model |= draw(mixers(layers))
    if "window" in model and (among := strides(model)):
        model["window"]["stride"] = draw(lots.sampled_from([None, *among]))
    return model if "window" in model else {**model, "mtp": draw(lots.booleans())}


prices = lots.fixed_dictionaries(
    {
        "usd_per_hour": lots.sampled_from([0.5, 3.43, 12]),
        "provider": lots.sampled_from(["Nobody", "Somebody"]),
        "date": lots.sampled_from(["2025-12-31", "2026-01-01"]),
    },
    optional={"sku": lots.sampled_from(["8 chips, on demand", "8 chips, reserved"])},
)


@lots.composite
def chips(draw):
    """Draw a chip of `random_sweeps`, sometimes without a network, with prices and power."""
    chip = draw(drawn.chips())
    if draw(lots.integers(0, 3)) == 0:
        torus = {"topology": "torus", "links": 4, "domain": 16, "ring_multiple": 4}
        chip["networks"]["fabric"] = {"bytes_per_s": draw(drawn.rates(9, 12)), **torus}
    if "second" in chip["networks"] and draw(lots.booleans()):
        group = {"topology": "switch", "domain": draw(lots.sampled_from([2, 4]))}
        chip["networks"]["fabric"] = {"bytes_per_s": draw(drawn.rates(9, 12)), **group}
        around = {"topology": "switch", "domain": "unlimited"}
        chip["networks"]["second"] = {"bytes_per_s": draw(drawn.rates(9, 12)), **around}
    if draw(lots.integers(0, 4)) == 0:
        del chip["networks"]
    if draw(lots.integers(0, 3)) == 0:
        del chip["memory"]["hbm"]["capacity_bytes"]
    if draw(lots.booleans()):
        chip["power"] = {"watts": draw(lots.sampled_from([75, 700, 1000.5]))}
    if draw(lots.integers(0, 3)) == 0:
        fitted = {"math": 0.8, "memory": 0.9, "network": 0.5, "overhead_s": 3e-6}
        chip["calibration"] = dict.fromkeys(chip["units"]["matrix"], fitted)
    if draw(lots.booleans()):
        chip["prices"] = draw(lots.lists(prices, min_size=1, max_size=4))
    return chip


@lots.composite
def dtypes(draw, name):
    """Draw one format for all, or dtypes by tensor under a name."""
    if draw(lots.booleans()):
        return draw(lots.sampled_from(COMPUTE))
    stored, computed = lots.sampled_from(list(BITS)), lots.sampled_from(COMPUTE)
    found = {"name": name, "compute": draw(computed)}
    found |= {part: draw(stored) for part in ("weights", "cache", "activations")}
    more = draw(lots.sets(lots.sampled_from(["combine", "experts", "head", "lm_head"])))
    found |= {part: draw(stored) for part in sorted(more)}
    if draw(lots.integers(0, 3)) == 0:
        part = draw(lots.sampled_from(["weights", "experts", "head"]))
        found["mixed"] = {part: {"fp8": draw(lots.integers(1, 9)), "bf16": 4}}
    return found | ({"attention": draw(computed)} if draw(lots.booleans()) else {})


@lots.composite
def splits(draw):
    """Draw chips of a replica, replicas, and whether all of them share the experts."""
    experts = draw(lots.booleans())
    forms: list[tuple[int | str, int]] = [(1, 1), (2, 2), (4, 4), ("2x2", 4)]
    more: list[tuple[int | str, int]] = [(3, 3), (16, 16), ("4x4", 16)]
    tp, product = draw(lots.sampled_from(forms if experts else forms + more))
    found: dict[str, Any] = {"tp": tp}
    dp = draw(lots.sampled_from([1, 1, 2, 2, 3, 8]))
    found |= {"dp": dp} if dp > 1 or draw(lots.booleans()) else {}
    chips: int | str = product * dp
    if experts and dp in (2, 8) and draw(lots.booleans()):
        chips = f"{product}x{dp}" if product > 1 else f"2x{dp // 2}" if dp > 2 else dp
    return found | ({"ep": chips} if experts else {})


def sizes(low, high):
    """Draw up to three sizes, small and large ones."""
    size = lots.one_of(lots.integers(low, max(low, 64)), lots.integers(low, high))
    return lots.lists(size, min_size=1, max_size=3, unique=True)


def dtypes_name(spec):
    """The name of dtypes."""
    return spec if isinstance(spec, str) else spec["name"]


@lots.composite
def parts(draw):
    """Draw what sweeps over steps and over requests have in common."""
    own = {f"chip-{number}": draw(chips()) for number in range(draw(lots.integers(1, 2)))}
    named = lots.sampled_from(["mixed", "other"]).flatmap(dtypes)
    sweep: dict[str, Any] = {
        "models": [draw(models(f"made-up-{n}")) for n in range(draw(lots.integers(1, 2)))],
        "dtypes": draw(lots.lists(named, min_size=1, max_size=2, unique_by=dtypes_name)),
        "chips": draw(lots.permutations(list(own))),
        "splits": draw(
            lots.lists(splits(), min_size=1, max_size=3, unique_by=step_table.split_name)
        ),
    }
    optional: dict[str, lots.Lot] = {
        "cache_split": lots.sampled_from(["heads", "batch"]),
        "routing": lots.sampled_from(["uniform", "same", "all"]),
        "memory": lots.sampled_from(["hbm", ["l2", "hbm"]]),
        "network": lots.sampled_from(
            [None, "fabric", *[["fabric", "second"]] * 3, [["second", "fabric"], "fabric"]]
        ),
        "efficiency": lots.dictionaries(
            lots.sampled_from(oracle.RESOURCES), drawn.fractions_of_one
        ),
        "prices": lots.fixed_dictionaries(
            {},
            optional={
                "provider": lots.sampled_from(["Nobody", "Somebody"]),
                "kind": lots.sampled_from(["on demand", "reserved", "chips"]),
            },
        ),
    }
    sweep |= {key: draw(values) for key, values in optional.items() if draw(lots.booleans())}
    drawn.leave_out_unknown(sweep, own)
    sellers = {price["provider"] for chip in own.values() for price in chip.get("prices", [])}
    if sweep.get("prices", {}).get("provider") not in sellers:
        sweep.get("prices", {}).pop("provider", None)
    return {"model-sweeps": {"random": sweep}, "chips": own, "charts": []}


def supported(config):
    """True if some chip supports a row, with a sequence for every replica."""
    sweep = config["model-sweeps"]["random"]
    sweep = step_table.decoding(sweep)
    found = list(step_table.cases(sweep, {}, config["chips"], BITS))
    largest = max(sweep["grid"]["B"])
    return any(case is not None and case.dp <= largest for _, case, _ in found)


@lots.composite
def configs(draw):
    """Draw a config of one model sweep over steps, a case of which some chip supports."""
    config = draw(parts())
    sweep = config["model-sweeps"]["random"]
    sweep["phase"] = draw(lots.sampled_from([["decode"], ["prefill"], ["decode", "prefill"]]))
    grid = {"B": draw(sizes(1, 10**5))}
    more = draw(lots.integers(0, 4)) if sweep["phase"] == ["decode"] else 0
    if more == 1:
        grid["T"] = draw(lots.lists(lots.integers(1, 8), min_size=1, max_size=2, unique=True))
    if more == 2:
        drafted = draw(lots.integers(1, 7))
        sweep["draft"] = {"tokens": drafted, "accepted": draw(lots.sampled_from([0, 0.5, drafted]))}
        for each in sweep["models"]:
            each.update(
                {} if {"window", "single", "variants"} & {*each} else {"mtp": draw(lots.booleans())}
            )
    sweep["grid"] = {**grid, "S": draw(sizes(8 if more in (1, 2) else 1, 10**5))}
    assume(supported(config))
    return config


@lots.composite
def calibrated(draw, drawn_configs):
    """Draw a config whose sweep names software, and fits of its chips under `fits`."""
    config = draw(drawn_configs)
    (sweep,) = config["model-sweeps"].values()
    sweep["calibration"] = draw(lots.sampled_from(["mine", ["mine", "other"], ["other", "mine"]]))
    return {**config, "fits": draw(files_of_fits(list(config["chips"])))}


@lots.composite
def pools(draw, sweep, own):
    """Draw servers that prefill, and at times the only ones that decode."""

    def server():
        name = f"chip-{len(own)}"
        if draw(lots.booleans()):
            own[name] = draw(chips())
        found = {"chip": [*own][-1], "split": draw(splits())}
        networks = [*own[found["chip"]].get("networks", {})]
        return found | ({"network": networks[-1:]} if networks and draw(lots.booleans()) else {})

    if draw(lots.booleans()):
        return {"prefill": server()}
    for key in ("chips", "splits", "network"):
        sweep.pop(key, None)
    return {"prefill": server(), "decode": server()}


@lots.composite
def request_configs(draw):
    """Draw a config of one model sweep over requests, a case of which some chip supports."""
    config = draw(parts())
    sweep = config["model-sweeps"]["random"]
    one = lots.fixed_dictionaries({"input": lots.integers(1, 300), "output": lots.integers(1, 20)})
    sweep["grid"] = {"B": draw(sizes(1, 10**4))}
    each_once = lots.lists(
        one, min_size=1, max_size=2, unique_by=lambda r: (r["input"], r["output"])
    )
    sweep["requests"] = draw(each_once)
    if draw(lots.booleans()):
        sweep["pools"] = draw(pools(sweep, config["chips"]))
        servers = step_table.prefill_servers(sweep, {}, config["chips"], BITS)
        assume(any(case for case in servers.values()))
    assume(supported(config))
    return config


EVERY_KIND = {
    *("heads", "latent", "latent queries", "gates", "values", "biases", "norms", "sinks"),
    *("windows", "chunks", "other windows", "strides", "chosen tokens", "variants"),
    *("compressed entries", "chosen entries", "no compressed entries", "streams", "hashed"),
    *STATES,
    *("beside a state", "state without a norm"),
    *("mlp", "experts", "mlp and experts", "shared", "shared gate", "latent width", "no gate"),
    "experts without weights",
    *("single", "tied", "tp", "copies of heads", "dp", "ep", "ep over tp and dp"),
    *("few tokens for ep", "axes", "ring"),
    *("switch", "mesh", "torus", "two networks", "ep on two networks", "by batch", "by heads"),
    *(
        "uniform",
        "same",
        "all",
        "decode",
        "prefill",
        "T",
        "draft",
        "own draft",
        "l2",
        "no capacity",
    ),
    *("price", "watts", "format", "by class", "own experts", "own head", "own lm_head"),
    *("own attention", "own mixed"),
    *(f"skipped: {why}" for why in ("heads", "dense", "experts", "domain", "axes", "network")),
}
"""Steps of random sweeps."""


OWN_DTYPES = ("experts", "head", "lm_head", "attention", "mixed")
"""Classes of dtypes that need not be given."""


def kinds_of(config):
    """The kinds of what a config of one model sweep asks for, and of what is supported."""
    (sweep,) = config["model-sweeps"].values()
    for _, case, reasons in step_table.cases(sweep, {}, config["chips"], BITS):
        if case is None:
            yield from (f"skipped: {reason}" for reason in reasons)
        else:
            yield from kinds_of_case(case)
            few = case.dp <= min(sweep["grid"]["B"]) <= 8 * case.dp and case.phase == "decode"
            if few and case.ep > 1 and case.dp > 1 and case.routing == "uniform":
                yield "few tokens for ep"
    yield from {"T", "draft"} & {*sweep["grid"], *sweep}
    for spec in sweep["dtypes"]:
        yield from kinds_of_dtypes(spec)
    yield from (
        level for level in [sweep.get("memory", "hbm")] if "l2" in level for level in ["l2"]
    )


def single(config, keys, *, every_dtype=False):
    """The config of one of its cases, by its keys, with its first sizes; in all dtypes, if so."""
    (sweep,) = config["model-sweeps"].values()
    one = copy.deepcopy(sweep)
    one["models"] = [model for model in one["models"] if model["name"] == keys["model"]]
    if not every_dtype:
        one["dtypes"] = [spec for spec in one["dtypes"] if dtypes_name(spec) == keys["dtypes"]]
    if "pools" not in one:
        one["memory"] = keys["memory"]
    one |= {"phase": [keys["phase"]]} if "phase" in keys else {}
    if "requests" in one:
        one["requests"] = one["requests"][:1]
    one["grid"] = {axis: sizes if axis == "B" else sizes[:1] for axis, sizes in one["grid"].items()}
    if "decode" not in one.get("pools", {}):
        one["chips"] = [keys["chip"]]
        splits = one["splits"]
        one["splits"] = [each for each in splits if step_table.split_name(each) == keys["split"]]
        one["network"] = [keys["network"].split("+")] if keys["network"] else None
    return {**config, "model-sweeps": {"random": one}}


MOST_REPLICAS = 8
"""Replicas of the cases that are drawn by kind, at most [1]."""

EVERY_CASE = {kind for kind in EVERY_KIND if not kind.startswith("skipped: ")}
EVERY_CASE -= {"few tokens for ep", "price", "watts"}
EVERY_CASE |= {"fit of a chip", "fit of software", "fit of collectives", "two dtypes"}
"""Cases of random step sweeps."""

OF_PHASES = {"decode", "prefill", "T", "draft", "own draft"}
EVERY_REQUEST = (EVERY_CASE - OF_PHASES) | {"pool", "pool that decodes", "two chips"}
EVERY_REQUEST |= {"pool without dtypes", "pool of two levels"}
"""Cases of random request sweeps."""


def parts_of(config):
    """Every case of a config as a config of its own, which a function makes, and its kinds."""
    (asked,) = config["model-sweeps"].values()
    sweep, most = step_table.decoding(asked), min(MOST_REPLICAS, max(asked["grid"]["B"]))
    specs = {dtypes_name(spec): spec for spec in sweep["dtypes"]}
    servers = {}
    if "pools" in asked:
        servers = step_table.prefill_servers(asked, {}, config["chips"], BITS)
    for keys, case, _ in step_table.cases(sweep, {}, config["chips"], BITS, config.get("fits")):
        named, lacking = dict(keys), False
        if "requests" in asked:
            del named["phase"]
        if case is None or case.dp > most or (keys["network"] is None and sweep.get("network")):
            continue
        kinds = [*kinds_of_case(case), *kinds_of_dtypes(specs[keys["dtypes"]])]
        kinds += {"T", "draft"} & {*sweep["grid"], *sweep}
        kinds += ["l2"] if keys["memory"] == "l2" else []
        if any(case.fits.kernels.values()):
            kinds.append("fit of software" if "fits" in config else "fit of a chip")
            kinds += ["fit of collectives"] if case.fits.collectives and case.tp > 1 else []
        if servers:
            at = keys["model"], keys["memory"]
            lacking = servers[*at, keys["dtypes"]] is None
            if lacking and not any(servers[*at, name] for name in specs):
                continue
            kinds += ["pool that decodes" if "decode" in asked["pools"] else "pool"]
            kinds += ["pool without dtypes"] if lacking else []
            levels = isinstance(asked.get("memory"), list) and keys["memory"] == "l2"
            kinds += ["pool of two levels"] if levels else []
            kinds += ["two chips"] if asked["pools"]["prefill"]["chip"] != keys["chip"] else []
        yield partial(single, config, named, every_dtype=lacking), kinds
        if len(specs) > 1:
            yield partial(single, config, named, every_dtype=True), [*kinds, "two dtypes"]


def kinds_of_dtypes(spec):
    """The kinds of dtypes."""
    if isinstance(spec, str):
        return ["format"]
    return ["by class", *(f"own {part}" for part in spec if part in OWN_DTYPES)]


def kinds_of_case(case):
    """The kinds of a case that a chip supports."""
    entry, a = case.entry, case.entry["attention"]
    latent_one, shared_one = a.get("kind") == "mla", a.get("kind") == "shared-kv"
    grouped_one = not latent_one and not shared_one
    entries = entry.get("compressed") or []
    window, moe, state = (entry.get(part) or {} for part in ("window", "moe", "state"))
    several = case.tp > 1 or case.ep > 1
    both = len(case.links) > 1 and several
    holds = {
        "heads": grouped_one,
        "compressed entries": any(not part.get("entries") for part in entries),
        "chosen entries": any(part.get("entries") for part in entries),
        "no compressed entries": shared_one and not entries,
        "streams": entry.get("streams"),
        "hashed": moe.get("hash_layers"),
        "latent": latent_one,
        "latent queries": latent_one and "q_rank" in a,
        "gates": a.get("gate"),
        "values": grouped_one and "v" in a,
        "biases": a.get("bias"),
        "norms": a.get("qk_norm"),
        "sinks": a.get("sinks"),
        "windows": window and not window.get("chunked"),
        "chunks": window.get("chunked"),
        "other windows": window.get("attention"),
        "strides": window.get("stride"),
        "variants": entry.get("variants"),
        "chosen tokens": entry.get("sparse"),
        str(state.get("kind")): state,
        "beside a state": state.get("beside"),
        "state without a norm": state.get("kind") == "mamba2" and not state["norm"],
        "mlp": entry.get("mlp"),
        "experts": moe,
        "mlp and experts": moe and entry.get("mlp"),
        "shared": moe.get("shared"),
        "shared gate": moe.get("shared") and moe.get("shared_gate"),
        "latent width": moe.get("latent"),
        "experts without weights": moe.get("zero_experts"),
        "no gate": moe and not moe.get("gated", True),
        "single": entry.get("single"),
        "tied": entry.get("tied"),
        "tp": case.tp > 1,
        "copies of heads": grouped_one and case.tp > a["K"],
        "dp": case.dp > 1,
        "ep": case.ep > 1,
        "ep over tp and dp": case.ep > 1 and case.tp > 1 and case.dp > 1,
        "axes": len(case.axes) > 1,
        "ring": several and any(case.links[0].ring(n) for n in (*case.axes, *case.ep_axes)),
        "two networks": both and case.chips > (case.links[0].domain or case.chips),
        "ep on two networks": both and case.ep > (case.links[0].domain or case.ep),
        "by batch": case.cache_split == "batch" and case.tp > 1,
        "by heads": case.cache_split == "heads" and case.tp > 1,
        case.routing: moe,
        case.phase: True,
        "own draft": case.own_drafts,
        "no capacity": case.capacity is None,
        "price": case.price,
        "watts": case.watts,
        **({case.links[0].topology: several} if case.links else {}),
    }
    return [kind for kind, true in holds.items() if true]
