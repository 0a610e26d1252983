"""Kernels by fractions: formulas typed from their definitions, apart from the package.

FLOP count an FMA as 2; bytes are operands read once, and results written once.
"""
# Sizes have the letters of the docs, and every kind has its formula in one list.
# ruff: noqa: C901, N806, PLR0911, PLR0912, PLR0915

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

BITS: dict[str, Any] = {
    "fp32": 32,
    "bf16": 16,
    "fp8": 8,
    "int8": 8,
    "mxfp8": Fraction(33, 4),
    "nvfp4": Fraction(9, 2),
    "mxfp4": Fraction(17, 4),
}
"""Stored bits per element, scales in blocks included [bit]."""

CHIPS: dict[str, dict[str, str]] = {
    "h100-sxm": {"bf16": "989e12", "fp8": "1979e12", "vector": "67e12", "memory": "3.35e12"},
    "b200": {"bf16": "2.25e15", "fp8": "4.5e15", "vector": "75e12", "memory": "7.7e12"},
    "mi300x": {"bf16": "1.3074e15", "fp8": "2.6149e15", "vector": "1.634e14", "memory": "5.3e12"},
    "tpu-v5p": {"bf16": "4.59e14", "vector": "1.4e13", "memory": "2.765e12"},
}
"""Rates by chip [FLOP/s, byte/s]."""

NARROW = 16
"""Bits below which rows of experts stay bf16 [bit]."""

PRODUCTS = {
    *("attention", "mla", "mla-expanded", "experts", "linear-cross-entropy", "muon", "conv2d"),
    *("delta-net", "mamba2"),
}
"""Kinds on the matrix unit."""

DEFAULTS: dict[str, dict[str, int]] = {"mla": {"N": 128, "kv": 512, "rope": 64}}
DEFAULTS["mla-expanded"] = {**DEFAULTS["mla"], "nope": 128, "Hv": 128}
DEFAULTS["conv2d"] = {"stride": 1, "pad": 0, "groups": 1}


def rate(chip, name):
    """A rate as a fraction."""
    return Fraction(Decimal(CHIPS[chip][name]))


def formats(kind, dtypes):
    """Format of every role, and of products."""
    typed = {"": dtypes} if isinstance(dtypes, str) else dict(dtypes)
    plain = typed.get("", "bf16")
    x = typed.get("x", plain)
    if kind == "experts":
        w = typed.get("w", plain)
        x = typed.get("x", "bf16" if BITS[plain] < NARROW else plain)
        roles = {"w": w, "x": x, "out": typed.get("out", x)}
    else:
        roles = {"x": x} | {role: typed.get(role, x) for role in ("w", "cache", "out")}
    return {**roles, "compute": typed.get("compute", plain)}


def up_to(count, window):
    """min(1, window) + ... + min(count, window): entries that queries see, one by one."""
    few = min(count, window)
    return few * (few + 1) // 2 + (count - few) * window


def mean(tokens, of_all, per_token):
    """of_all (1 - (1 - per_token/of_all)^tokens), to eighty digits."""
    with localcontext() as context:
        context.prec = 80
        kept = (1 - Decimal(per_token) / of_all) ** tokens
        return Fraction(of_all * (1 - kept))


def touched(routing, tokens, of_all, per_token):
    """Experts or rows that are read."""
    if routing == "uniform":
        return mean(tokens, of_all, per_token)
    return {"same": per_token, "spread": min(of_all, per_token * tokens), "all": of_all}[routing]


def work(kind, options, sizes, dtypes="bf16"):
    """Work of a kernel: flops, vector_flops, exponentials, memory_bytes, pairs, touched."""
    named = formats(kind, dtypes)
    x, w, cache, out = (
        Fraction(BITS[named.get(role, "bf16")]) / 8 for role in ("x", "w", "cache", "out")
    )
    blocks = any(named.get(role, "").startswith(("mx", "nv")) for role in ("x", "out"))
    s = {**DEFAULTS.get(kind, {}), **sizes}
    B, D, F, V, k = (s.get(letter, 0) for letter in "BDFVk")
    on = {name for name, value in options.items() if value is True}
    done: dict[str, Any] = {
        "flops": 0,
        "vector_flops": 0,
        "exponentials": 0,
        "pairs": None,
        "touched": None,
    }

    def result(memory_bytes, **amounts):
        return {**done, "memory_bytes": memory_bytes, **amounts}

    if kind in ("attention", "mla", "mla-expanded"):
        phase = options.get("phase", "decode" if kind == "mla" else "prefill")
        N, S = s["N"], s["S"]
        T = s.get("T", 1 if phase == "decode" else S)
        full, window = options.get("mask") == "full", s.get("window", S)
        pairs = T * S if full else up_to(S, window) - up_to(S - T, window)
        seen = S if full else min(S, window + T - 1)
        both = {"exponentials": B * N * pairs, "pairs": pairs}
        if kind == "mla":
            kv, rope = s["kv"], s["rope"]
            entry = s.get("entry_bytes", (kv + rope) * cache)
            moved = B * S * entry + B * T * N * ((kv + rope) * x + kv * out)
            return result(moved, flops=2 * (2 * kv + rope) * B * N * pairs, **both)
        if kind == "mla-expanded":
            K, H, Hv = N, s["nope"] + s["rope"], s["Hv"]
        else:
            K, H, Hv = s["K"], s["H"], s.get("Hv", s["H"])
        moved = B * T * N * (H * x + Hv * out) + B * seen * K * (H + Hv) * cache
        if "backward" in on:
            return result(2 * moved, flops=2 * B * N * pairs * (3 * H + 2 * Hv), **both)
        return result(moved, flops=2 * (H + Hv) * B * N * pairs, **both)
    if kind == "experts":
        read = touched(options.get("routing", "uniform"), B, s["E"], k)
        part = options.get("part", "both")
        gates = 1 if options.get("gate") == "ungated" else 2
        matrices = {"both": gates + 1, "gate-up": gates, "down": 1}[part]
        rows_in = B * k * F if part == "down" else B * D
        rows_out = B * k * F if part == "gate-up" else B * D
        weights, flops = read * matrices * D * F * w, 2 * B * k * matrices * D * F
        if "backward" in on:
            moved = 2 * weights + 2 * rows_in * x + rows_out * out
            return result(moved, flops=2 * flops, touched=read)
        return result(weights + rows_in * x + rows_out * out, flops=flops, touched=read)
    if kind == "linear-cross-entropy":
        once = B * D * x + D * V * w
        factor = 8 if "recompute" in on else 6 if "backward" in on else 2
        moved = once if factor == 2 else 2 * once
        return result(moved, flops=factor * B * D * V, exponentials=B * V)
    if kind == "muon":
        products = 4 * D * D * F + 2 * D**3 if "usual" in on else 3 * D * D * F + D**3
        return result(18 * D * F, flops=5 * products)
    if kind == "conv2d":
        C, size, stride, pad = (s[letter] for letter in ("C", "HW", "stride", "pad"))
        side = (size + 2 * pad - k) // stride + 1
        taps = sum(
            0 <= at * stride - pad + offset < size for at in range(side) for offset in range(k)
        )
        channels = Fraction(C, s["groups"])
        moved = B * C * size**2 * x + F * channels * k * k * w + B * F * side**2 * out
        return result(moved, flops=2 * B * F * channels * taps**2)
    if kind in ("delta-net", "mamba2"):
        T, N, K, H, Hv = (s.get(letter, s["H"]) for letter in ("T", "N", "K", "H", "Hv"))
        flops = (6 if kind == "delta-net" else 4) * B * T * N * H * Hv
        if chunk := s.get("chunk"):
            flops += B * T * N * ((chunk + 1) * (H + Hv) + (chunk - 1) * (2 * H + Hv))
        moved = B * T * ((2 * K * H + N * Hv + 2 * N) * x + N * Hv * out) + 8 * B * N * H * Hv
        return result(moved, flops=flops)
    if kind in ("adam", "adam-8bit", "sgd"):
        each, flops = {"adam": (28, 14), "adam-8bit": (Fraction(161, 16), 14), "sgd": (20, 4)}[kind]
        return result(each * s["parameters"], vector_flops=flops * s["parameters"])
    if kind == "rotary":
        elements = B * s["T"] * (s["N"] + s["K"]) * s["H"]
        return result(elements * (x + out), vector_flops=3 * elements)
    if kind == "embedding":
        rows = touched(options.get("routing", "uniform"), B, V, 1)
        moved = 2 * rows * D * x + B * D * out if "backward" in on else (rows * x + B * out) * D
        return result(moved, touched=rows)
    if kind == "top-k":
        return result(B * V * x + 6 * B * k, vector_flops=B * V)
    if kind == "cross-entropy":
        gradient = "gradient" in on
        moved = (2 if gradient else 1) * B * V * x + 12 * B
        return result(moved, vector_flops=(5 if gradient else 3) * B * V, exponentials=B * V)
    if kind in ("swiglu", "geglu"):
        if "backward" in on:
            moved = 4 * B * F * x + B * F * out
            return result(moved, vector_flops=9 * B * F, exponentials=2 * B * F)
        return result((2 * x + out) * B * F, vector_flops=3 * B * F, exponentials=2 * B * F)
    n = B * D
    backward, residual = "backward" in on, "residual" in on
    if kind in ("rmsnorm", "layernorm"):
        vectors = 1 if kind == "rmsnorm" else 2
        if backward:
            moved = n * (2 * x + out) + (1 + vectors) * D * w
            return result(moved, vector_flops=(8 if kind == "rmsnorm" else 13) * n)
        moved = (2 if residual else 1) * n * (x + out) + vectors * D * w
        return result(moved, vector_flops=(5 if residual else 4 if vectors == 1 else 7) * n)
    if kind == "bias":
        moved = n * out + D * w if backward else n * (x + out) + D * w
        return result(moved, vector_flops=n)
    if kind == "sum":
        return result(n * x + B * out, vector_flops=0 if backward else n)
    if kind in ("quantise", "dequantise"):
        return result(n * (x + out), vector_flops=2 * n if blocks else n)
    if kind == "mul" and backward:
        return result(n * (4 * x + out), vector_flops=2 * n)
    if backward:
        return result(n * (2 * x + out), vector_flops={"relu": 1}.get(kind, 4) * n)
    reads = {"fill": 0, "add": 2, "mul": 2, "scatter-add": 2}.get(kind, 1)
    flops = {"add": 1, "mul": 1, "scatter-add": 1, "softmax": 4, "relu": 1, "gelu": 1, "silu": 1}
    special = n if kind in ("softmax", "gelu", "silu") else 0
    moved = n * (reads * x + out)
    return result(moved, vector_flops=flops.get(kind, 0) * n, exponentials=special)


def times(chip, kind, options, sizes, dtypes="bf16"):
    """Math and memory time [s]; None: no work on the vector unit."""
    amounts = work(kind, options, sizes, dtypes)
    memory = amounts["memory_bytes"] / rate(chip, "memory")
    if kind in PRODUCTS:
        return amounts["flops"] / rate(chip, formats(kind, dtypes)["compute"]), memory
    vector = rate(chip, "vector")
    flops = amounts["vector_flops"]
    return (flops / vector if flops else None), memory


def is_compute_bound(chip, kind, options, sizes, dtypes="bf16"):
    """True if math takes as long as memory, or longer."""
    math, memory = times(chip, kind, options, sizes, dtypes)
    return math is not None and math >= memory
