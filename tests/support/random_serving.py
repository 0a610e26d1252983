"""Random sweeps of small models on random chips, as Hypothesis strategies."""

from typing import Any

import oracle
import random_sweeps as drawn
from hypothesis import assume
from hypothesis import strategies as st
from oracle import step_table
from random_fits import files_of_fits
from random_sweeps import BITS, COMPUTE

some = st.sampled_from([1, 2, 2, 3, 4, 4, 8, 16])
widths = st.sampled_from([8, 48, 64, 100, 512, 4096])


@st.composite
def attentions(draw):
    """Draw grouped or latent attention, mostly of heads that two or four chips can split."""
    if draw(st.integers(0, 2)):
        heads = draw(some)
        return {
            "N": heads * draw(some),
            "K": heads,
            "H": draw(st.sampled_from([4, 64, 128])),
            "bias": draw(st.sampled_from([None, "qkv", "qkvo"])),
            "qk_norm": draw(st.sampled_from([None, "head", "all"])),
            "sinks": draw(st.booleans()),
            "gate": draw(st.sampled_from([None, None, "element", "head"])),
            **draw(st.sampled_from([{}, {}, {"v": 32}, {"one_tensor": True}])),
        }
    ranks = {key: draw(st.sampled_from([4, 16, 64])) for key in ("kv_rank", "nope", "rope", "v")}
    found = {"kind": "mla", "N": draw(st.sampled_from([1, 4, 16, 48])), **ranks}
    found["gate"] = draw(st.booleans())
    return found | ({"q_rank": draw(st.sampled_from([8, 24]))} if draw(st.booleans()) else {})


MOST_OF_A_CHUNK = 100
"""Tokens of chunks that the oracle of contexts tries one by one [1]."""


@st.composite
def mixers(draw, layers):
    """Draw layers with a window, chosen tokens or a state; none of them in half of the models."""
    kind, count = (
        draw(st.sampled_from(["", "", "window", "sparse", "state"])),
        st.integers(1, layers),
    )
    if not kind:
        return {}
    tokens = draw(st.sampled_from([1, 2, 16, 128]))
    if kind == "window":
        window: dict[str, Any] = {"tokens": tokens, "layers": draw(count)}
        if draw(st.integers(0, 3)) == 0:
            window["attention"] = {"N": 16, "K": draw(st.sampled_from([1, 4, 16])), "H": 8}
        if tokens < MOST_OF_A_CHUNK and draw(st.booleans()):
            window["chunked"] = True
        return {kind: window}
    if kind == "sparse":
        among = draw(count)
        sparse: dict[str, Any] = {
            "tokens": tokens,
            "layers": among,
            "own": draw(st.integers(1, among)),
        }
        sparse |= {"heads": draw(some), "dim": 16, "bits": draw(st.sampled_from([None, 8]))}
        return {kind: {**sparse, "weighted": draw(st.booleans())}}
    state: dict[str, Any] = {
        key: draw(st.sampled_from([1, 4, 16])) for key in ("key", "value", "groups", "conv")
    }
    state["kind"] = draw(st.sampled_from(["gated-delta", "kda", "mamba2"]))
    state |= {"layers": draw(count), "heads": draw(some), "bits": draw(st.sampled_from([16, 32]))}
    return {kind: {**state, "full_gate": draw(st.booleans())}}


@st.composite
def models(draw, name="made-up"):
    """Draw a model, dense, with experts, or both."""
    layers = draw(st.integers(1, 6))
    sparse = draw(st.sampled_from([0, layers, (layers + 1) // 2]))
    model: dict[str, Any] = {
        "name": name,
        "layers": layers,
        "D": draw(widths),
        "V": draw(st.sampled_from([16, 1000, 32000])),
        "tied": draw(st.booleans()),
        "attention": draw(attentions()),
        "norms_per_layer": draw(st.sampled_from([0, 2, 4])),
    }
    if sparse < layers:
        model["mlp"] = {"F": draw(widths), "layers": layers - sparse, "bias": draw(st.booleans())}
    if sparse:
        experts = draw(st.sampled_from([1, 6, 8, 16, 48, 64, 96]))
        model["moe"] = {
            "E": experts,
            "k": draw(st.integers(1, min(experts, 8))),
            "Fe": draw(widths),
            "shared": draw(st.integers(0, 2)),
            "layers": sparse,
            "router_bias": draw(st.booleans()),
            "expert_bias": draw(st.booleans()),
            "shared_gate": draw(st.booleans()),
            "gated": draw(st.booleans()),
            "latent": draw(st.sampled_from([None, None, 24])),
        }
    if draw(st.integers(0, 3)) == 0:  # each layer is a mixer, an MLP or experts
        mixed = draw(st.integers(1, 4))
        model |= {"single": True, "layers": layers + mixed}
        return model | draw(mixers(mixed))
    model |= draw(mixers(layers))
    return model if "window" in model else {**model, "mtp": draw(st.booleans())}


prices = st.fixed_dictionaries(
    {
        "usd_per_hour": st.sampled_from([0.5, 3.43, 12]),
        "provider": st.sampled_from(["Nobody", "Somebody"]),
        "date": st.sampled_from(["2025-12-31", "2026-01-01"]),
    },
    optional={"sku": st.sampled_from(["8 chips, on demand", "8 chips, reserved"])},
)


@st.composite
def chips(draw):
    """Draw a chip of `random_sweeps`, sometimes without a network, with prices and power."""
    chip = draw(drawn.chips())
    if draw(st.integers(0, 3)) == 0:
        torus = {"topology": "torus", "links": 4, "domain": 16, "ring_multiple": 4}
        chip["networks"]["fabric"] = {"bytes_per_s": draw(drawn.rates(9, 12)), **torus}
    if draw(st.integers(0, 4)) == 0:
        del chip["networks"]
    if draw(st.integers(0, 3)) == 0:
        del chip["memory"]["hbm"]["capacity_bytes"]
    if draw(st.booleans()):
        chip["power"] = {"watts": draw(st.sampled_from([75, 700, 1000.5]))}
    if draw(st.integers(0, 3)) == 0:
        fitted = {"math": 0.8, "memory": 0.9, "network": 0.5, "overhead_s": 3e-6}
        chip["calibration"] = dict.fromkeys(chip["units"]["matrix"], fitted)
    if draw(st.booleans()):
        chip["prices"] = draw(st.lists(prices, min_size=1, max_size=4))
    return chip


@st.composite
def dtypes(draw, name):
    """Draw one format for all, or dtypes by tensor under a name."""
    if draw(st.booleans()):
        return draw(st.sampled_from(COMPUTE))
    stored, computed = st.sampled_from(list(BITS)), st.sampled_from(COMPUTE)
    found = {"name": name, "compute": draw(computed)}
    found |= {part: draw(stored) for part in ("weights", "cache", "activations")}
    more = draw(st.sets(st.sampled_from(["combine", "experts", "head"])))
    found |= {part: draw(stored) for part in sorted(more)}
    return found | ({"attention": draw(computed)} if draw(st.booleans()) else {})


@st.composite
def splits(draw):
    """Draw chips of a replica, replicas, and whether all of them share the experts."""
    experts = draw(st.booleans())
    forms: list[tuple[int | str, int]] = [(1, 1), (2, 2), (4, 4), ("2x2", 4)]
    more: list[tuple[int | str, int]] = [(3, 3), (16, 16), ("4x4", 16)]
    tp, product = draw(st.sampled_from(forms if experts else forms + more))
    found: dict[str, Any] = {"tp": tp}
    dp = draw(st.sampled_from([1, 1, 2, 2, 3, 8]))
    found |= {"dp": dp} if dp > 1 or draw(st.booleans()) else {}
    chips: int | str = product * dp
    if experts and dp in (2, 8) and draw(st.booleans()):
        chips = f"{product}x{dp}" if product > 1 else f"2x{dp // 2}" if dp > 2 else dp
    return found | ({"ep": chips} if experts else {})


def sizes(low, high):
    """Draw up to three sizes, small and large ones."""
    size = st.one_of(st.integers(low, max(low, 64)), st.integers(low, high))
    return st.lists(size, min_size=1, max_size=3, unique=True)


def dtypes_name(spec):
    """The name of dtypes."""
    return spec if isinstance(spec, str) else spec["name"]


@st.composite
def parts(draw):
    """Draw what sweeps over steps and over requests have in common."""
    own = {f"chip-{number}": draw(chips()) for number in range(draw(st.integers(1, 2)))}
    named = st.sampled_from(["mixed", "other"]).flatmap(dtypes)
    sweep: dict[str, Any] = {
        "models": [draw(models(f"made-up-{n}")) for n in range(draw(st.integers(1, 2)))],
        "dtypes": draw(st.lists(named, min_size=1, max_size=2, unique_by=dtypes_name)),
        "chips": draw(st.permutations(list(own))),
        "splits": draw(st.lists(splits(), min_size=1, max_size=3, unique_by=step_table.split_name)),
    }
    optional: dict[str, st.SearchStrategy[Any]] = {
        "cache_split": st.sampled_from(["heads", "batch"]),
        "routing": st.sampled_from(["uniform", "same", "all"]),
        "memory": st.sampled_from(["hbm", ["l2", "hbm"]]),
        "network": st.sampled_from(
            [None, "fabric", ["fabric", "second"], [["second", "fabric"], "fabric"]]
        ),
        "efficiency": st.dictionaries(st.sampled_from(oracle.RESOURCES), drawn.fractions_of_one),
        "prices": st.fixed_dictionaries(
            {},
            optional={
                "provider": st.sampled_from(["Nobody", "Somebody"]),
                "kind": st.sampled_from(["on demand", "reserved", "chips"]),
            },
        ),
    }
    sweep |= {key: draw(values) for key, values in optional.items() if draw(st.booleans())}
    drawn.leave_out_unknown(sweep, own)
    sellers = {price["provider"] for chip in own.values() for price in chip.get("prices", [])}
    if sweep.get("prices", {}).get("provider") not in sellers:
        sweep.get("prices", {}).pop("provider", None)
    return {"model-sweeps": {"random": sweep}, "chips": own, "charts": []}


def supported(config):
    """Whether some chip supports a row, with a sequence for every replica."""
    sweep = config["model-sweeps"]["random"]
    found = list(step_table.cases(sweep, {}, config["chips"], BITS))
    largest = max(sweep["grid"]["B"])
    return any(case is not None and case.dp <= largest for _, case, _ in found)


@st.composite
def configs(draw):
    """Draw a config of one model sweep over steps, a case of which some chip supports."""
    config = draw(parts())
    sweep = config["model-sweeps"]["random"]
    sweep["phase"] = draw(st.sampled_from([["decode"], ["prefill"], ["decode", "prefill"]]))
    grid = {"B": draw(sizes(1, 10**5))}
    more = draw(st.integers(0, 4)) if sweep["phase"] == ["decode"] else 0
    if more == 1:
        grid["T"] = draw(st.lists(st.integers(1, 8), min_size=1, max_size=2, unique=True))
    if more == 2:
        drafted = draw(st.integers(1, 7))
        sweep["draft"] = {"tokens": drafted, "accepted": draw(st.sampled_from([0, 0.5, drafted]))}
    sweep["grid"] = {**grid, "S": draw(sizes(8 if more in (1, 2) else 1, 10**5))}
    assume(supported(config))
    return config


@st.composite
def calibrated(draw, drawn_configs):
    """Draw a config whose sweep names software, and fits of its chips under `fits`."""
    config = draw(drawn_configs)
    (sweep,) = config["model-sweeps"].values()
    sweep["calibration"] = draw(st.sampled_from(["mine", ["mine", "other"], ["other", "mine"]]))
    return {**config, "fits": draw(files_of_fits(list(config["chips"])))}


@st.composite
def request_configs(draw):
    """Draw a config of one model sweep over requests, a case of which some chip supports."""
    config = draw(parts())
    sweep = config["model-sweeps"]["random"]
    one = st.fixed_dictionaries({"input": st.integers(1, 300), "output": st.integers(1, 20)})
    sweep["grid"] = {"B": draw(sizes(1, 10**4))}
    each_once = st.lists(one, min_size=1, max_size=2, unique_by=lambda r: (r["input"], r["output"]))
    sweep["requests"] = draw(each_once)
    assume(supported(config))
    return config
