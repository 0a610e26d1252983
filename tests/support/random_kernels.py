"""Random questions about kernels: a kind with options, dtypes and sizes, all valid."""

import random
from typing import Any

from oracle.kernel_kinds import CHIPS, PRODUCTS

RANGES: dict[str, Any] = dict.fromkeys("BT", (1, 4096)) | {
    "S": (1, 10**6),
    "N": (1, 256),
    "K": (1, 64),
    "H": (1, 512),
    "Hv": (1, 512),
    "D": (1, 2**15),
    "F": (1, 2**15),
    "E": (1, 512),
    "k": (1, 16),
    "V": (1, 10**6),
    "kv": (1, 1024),
    "rope": (1, 128),
    "nope": (1, 256),
    "entry_bytes": (1, 2000),
    "parameters": (1, 2**40),
    "window": (1, 10**6),
    "chunk": (1, 512),
}
"""Smallest and largest size by letter."""

LETTERS: dict[str, Any] = {
    "attention": "B S N K H",
    "mla": "B S",
    "mla-expanded": "B S",
    "experts": "B D F E k",
    "rotary": "B T N K H",
    "embedding": "B V D",
    "top-k": "B V k",
    "cross-entropy": "B V",
    "linear-cross-entropy": "B D V",
    "muon": "D F",
    "conv2d": "B C HW F k",
    **dict.fromkeys(("swiglu", "geglu"), "B F"),
    **dict.fromkeys(("adam", "adam-8bit", "sgd"), "parameters"),
    **dict.fromkeys(("delta-net", "mamba2"), "B T N K H"),
}
"""Letters that a kind needs; rows of the others are B D."""

OPTIONAL: dict[str, Any] = {
    "attention": ("T", "Hv", "window"),
    "mla": ("T", "N", "kv", "rope", "entry_bytes"),
    "mla-expanded": ("T", "N", "rope", "nope", "Hv"),
    **dict.fromkeys(("delta-net", "mamba2"), ("Hv", "chunk")),
}

CHOICES: dict[str, Any] = {
    "attention": {"phase": ("prefill", "decode"), "mask": ("causal", "full")},
    "mla": {"phase": ("prefill", "decode")},
    "mla-expanded": {"phase": ("prefill", "decode")},
    "experts": {
        "routing": ("uniform", "same", "spread", "all"),
        "part": ("both", "gate-up", "down"),
        "gate": ("gated", "ungated"),
    },
    "embedding": {"routing": ("uniform", "same", "spread")},
}

FLAGS: dict[str, Any] = {
    "rmsnorm": ("residual", "backward"),
    "cross-entropy": ("gradient",),
    "linear-cross-entropy": ("backward", "recompute"),
    "muon": ("usual",),
    **dict.fromkeys(
        ("attention", "experts", "layernorm", "softmax", "relu", "gelu", "silu", "swiglu"),
        ("backward",),
    ),
    **dict.fromkeys(("geglu", "mul", "bias", "rotary", "embedding", "sum"), ("backward",)),
}

ROLES: dict[str, Any] = {
    **dict.fromkeys(("attention", "mla", "mla-expanded"), ("x", "cache", "out")),
    **dict.fromkeys(("experts", "rmsnorm", "layernorm", "bias", "conv2d"), ("x", "w", "out")),
    "linear-cross-entropy": ("x", "w"),
    **dict.fromkeys(("adam", "adam-8bit", "sgd", "muon"), ()),
}


def size(letter, most=None):
    """A size of any order of magnitude."""
    low, high = RANGES[letter]
    high = min(high, most or high)
    return min(high, low + int(2 ** random.uniform(0, (high - low + 1).bit_length())) - 1)


def options_of(kind):
    """Options, each often left out."""
    options = {
        name: random.choice(values)
        for name, values in CHOICES.get(kind, {}).items()
        if random.random() < 0.7
    }
    flags = FLAGS.get(kind, ())
    if flags and random.random() < 0.4 and options.get("phase") != "decode":
        options[random.choice(flags)] = True
    return options


def sizes_of(kind, options, most=None):
    """Sizes that a kind allows, at most `most`."""
    if kind == "conv2d":
        return image(most)
    sizes = {letter: size(letter, most) for letter in LETTERS.get(kind, "B D").split()}
    for letter in OPTIONAL.get(kind, ()):
        if random.random() < 0.4:
            sizes[letter] = size(letter, most)
    if options.get("mask") == "full":
        sizes.pop("window", None)
    elif "T" in sizes and "S" in sizes:
        sizes["T"] = min(sizes["T"], sizes["S"])
    if kind == "attention":
        sizes["N"] = sizes["K"] * random.randint(1, 16)
    if kind in ("experts", "top-k"):
        sizes["k"] = min(sizes["k"], sizes["E" if kind == "experts" else "V"])
    if kind == "muon":
        sizes["D"], sizes["F"] = sorted((sizes["D"], sizes["F"]))
    return sizes


def image(most=None):
    """Sizes of a convolution."""
    groups, side = random.choice([1, 1, 2, 4]), random.randint(1, 64)
    pad = random.randint(0, 4)
    wide = max(1, (most or 1024) // groups)
    sizes = {
        "B": random.randint(1, most or 256),
        "C": groups * random.randint(1, wide),
        "F": groups * random.randint(1, wide),
        "HW": side,
        "k": random.randint(1, min(11, side + 2 * pad)),
    }
    more = {"stride": random.randint(1, 4), "pad": pad, "groups": groups}
    needed = {"pad"} if pad else set()
    return sizes | {
        name: value
        for name, value in more.items()
        if name in needed or value > 1 or random.random() < 0.5
    }


def dtypes_of(kind, chip):
    """A format for all roles, or some roles with theirs."""
    computed = [name for name in CHIPS[chip] if name in ("bf16", "fp8")]
    compute = random.choice(computed)
    roles = ROLES.get(kind, ("x", "out"))
    if random.random() < 0.4 or not roles:
        return compute
    stored = ["fp32", "bf16", "fp8", "int8", "mxfp8", "nvfp4", "mxfp4"]
    chosen = {role: random.choice(stored) for role in roles if random.random() < 0.6}
    return {**chosen, "compute": compute} if kind in PRODUCTS else chosen


def question(kind, most=None):
    """A chip, options, dtypes and sizes."""
    chip = random.choice([*CHIPS])
    options = options_of(kind)
    return chip, options, dtypes_of(kind, chip), sizes_of(kind, options, most)
