"""Parameters, caches and work of models, from their formulas, one layer after another.

An oracle for `rooflines.models`: it reads the plain YAML form and imports nothing of the package.
"""

from __future__ import annotations

from typing import Any

Entry = dict[str, Any]


def each_layer(entry: Entry) -> list[tuple[int | None, bool]]:
    """Every layer: its window, and whether it has experts. Which ones does not matter here."""
    count = entry["layers"]
    window = entry.get("window")
    windows = [window["tokens"] if window and i < window["layers"] else None for i in range(count)]
    moe, mlp = entry.get("moe"), entry.get("mlp")
    sparse = 0 if moe is None else moe.get("layers")
    if sparse is None:
        sparse = count - (mlp.get("layers") or 0 if mlp else 0)
    return [(windows[i], i < sparse) for i in range(count)]


def _attention(entry: Entry) -> int:
    """Parameters of the attention of one layer, norms and biases included."""
    a, width = entry["attention"], entry["D"]
    if a.get("kind") == "mla":
        heads, key = a["N"], a["nope"] + a["rope"]
        total = width * (a["kv_rank"] + a["rope"]) + a["kv_rank"]
        total += a["kv_rank"] * heads * a["nope"] + a["kv_rank"] * heads * a["v"]
        total += heads * a["v"] * width
        if a.get("q_rank"):
            return int(total + width * a["q_rank"] + a["q_rank"] + a["q_rank"] * heads * key)
        return int(total + width * heads * key)
    q, kv = a["N"] * a["H"], a["K"] * a["H"]
    total = width * q + width * kv + width * kv + q * width
    if a.get("bias") in ("qkv", "qkvo"):
        total += q + kv + kv
    if a.get("bias") == "qkvo":
        total += width
    total += {"head": a["H"] + a["H"], "all": q + kv}.get(a.get("qk_norm"), 0)
    return int(total + (a["N"] if a.get("sinks") else 0))


def _mlp(width: int, hidden: int, *, bias: bool) -> int:
    return 3 * width * hidden + (hidden + hidden + width if bias else 0)


def _count(entry: Entry, experts_of: str, *, embedding: bool = True) -> int:
    """Parameters with all experts (`E`) of every layer, or those of one token (`k`)."""
    width, table = entry["D"], entry["V"] * entry["D"]
    total = table if entry.get("tied") else table + (table if embedding else 0)
    for _, sparse in each_layer(entry):
        total += _attention(entry) + entry.get("norms_per_layer", 2) * width
        if sparse:
            m = entry["moe"]
            total += m["E"] * width + (m["E"] if m.get("router_bias") else 0)
            total += m[experts_of] * _mlp(width, m["Fe"], bias=m.get("expert_bias", False))
            total += m.get("shared", 0) * _mlp(width, m["Fe"], bias=False)
        else:
            total += _mlp(width, entry["mlp"]["F"], bias=entry["mlp"].get("bias", False))
    return int(total + width)


def parameters(entry: Entry) -> int:
    """All parameters [1]."""
    return _count(entry, "E")


def active(entry: Entry) -> dict[str, int]:
    """Parameters of one token by the three conventions [1]."""
    dense = entry if entry.get("moe") else {**entry, "moe": {"E": 0, "k": 0, "layers": 0}}
    with_unembedding = _count(dense, "k", embedding=False)
    return {
        "active": with_unembedding,
        "active_with_embedding": _count(dense, "k"),
        "active_without_tables": with_unembedding - entry["V"] * entry["D"],
    }


def attended(position: int, window: int | None) -> int:
    """Tokens that the token at a position, from 1, attends to [1]."""
    return len([p for p in range(1, position + 1) if window is None or position - p < window])


def kept(context: int, window: int | None) -> int:
    """Entries that the next tokens of one layer can still need, and the last one's [1]."""
    return attended(context, window)


def moved(context: int, new: int, window: int | None) -> int:
    """Entries of one layer that a step touches: those that any new token attends to [1]."""
    needed = {
        p
        for position in range(context - new + 1, context + 1)
        for p in range(1, position + 1)
        if window is None or position - p < window
    }
    return len(needed)


def cache_elements(entry: Entry, context: int) -> int:
    """Cache elements of one sequence [1]."""
    a = entry["attention"]
    per_entry = a["kv_rank"] + a["rope"] if a.get("kind") == "mla" else 2 * a["K"] * a["H"]
    return int(sum(per_entry * kept(context, window) for window, _ in each_layer(entry)))


def decode_flops(entry: Entry, sequences: int, context: int) -> int:
    """FLOP of a decode step: two per weight used and token, and the attention of every head.

    Biases and norms are no work. Latent attention scores and sums in the compressed space.
    """
    width, a = entry["D"], entry["attention"]
    plain = {
        **entry,
        "norms_per_layer": 0,
        "attention": {**a, "bias": None, "qk_norm": None, "sinks": False},
    }
    if entry.get("moe"):
        plain["moe"] = {**entry["moe"], "router_bias": False, "expert_bias": False}
    if entry.get("mlp"):
        plain["mlp"] = {**entry["mlp"], "bias": False}
    matrices = active(plain)["active"] - width
    if a.get("kind") == "mla":
        matrices -= entry["layers"] * (a["kv_rank"] + (a.get("q_rank") or 0))
        per_pair = 2 * (a["kv_rank"] + a["rope"]) + 2 * a["kv_rank"]
    else:
        per_pair = 2 * a["H"] + 2 * a["H"]
    pairs = sum(attended(context, window) for window, _ in each_layer(entry))
    return int(sequences * (2 * matrices + a["N"] * per_pair * pairs))
