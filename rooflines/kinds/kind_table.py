"""The table of kinds: one entry a kind, read by questions, sweeps, docs and help.

Bytes are compulsory traffic: operands read once, results written once. FLOP count an FMA as 2.
Formulas use `half` and `ratio` in place of `/`, so that whole numbers stay exact. A new kind is an
entry here, and a worked value in `tests/cases/kernel_kinds.yaml`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.kinds.kinds import WHOLE_BYTE, Check, Form, KernelKind, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

X_OUT = {"x": "", "out": "x"}
"""Roles of a kernel that reads and writes activations."""

X_W_OUT = {"x": "", "w": "x", "out": "x"}
"""The same, with weights."""

ROWS, ELEMENTS = "B", "B*D"
"""Formulas for rows, and for the elements of rows D wide."""

ROW_LETTERS = {"B": "rows (tokens)", "D": "width of a row"}

SEQUENCES = {"B": "sequences", "T": "new tokens per sequence", "S": "tokens after the step"}

UNCOUNTED_ATTENTION = (
    "Not counted: maxima, scaling and sums on the vector unit, masks, page tables, log-sum-exp.",
)


def _rows(  # noqa: PLR0913, the parts of an entry
    name: str,
    summary: str,
    reads: int,
    writes: int,
    vector: int,
    *,
    backward: Form | None = None,
    exponentials: int = 0,
    in_place: bool = False,
    synonyms: tuple[str, ...] = (),
    example: str = "4096x8192 bf16",
) -> KernelKind:
    """Kind that reads and writes whole rows B x D, some times each."""
    read = {name: Tensor("x", ELEMENTS) for name in ("x", "y", "z")[:reads]}
    return KernelKind(
        name,
        summary,
        ROW_LETTERS,
        read,
        {"out": Tensor("out", ELEMENTS)} if writes else {},
        vector_flops=f"{vector}*B*D" if vector else "0",
        exponentials=f"{exponentials}*B*D" if exponentials else "0",
        roles=X_OUT,
        flags={"backward": backward} if backward else {},
        resident={"out": "0"} if in_place else {},
        axes=("B", "D"),
        synonyms=synonyms,
        example=example,
    )


def _gradients(read: int, vector: str, **weights: str) -> Form:
    """Backward form that reads rows some times, and writes their gradient and that of weights."""
    return Form(
        {"grad_out": Tensor("out", ELEMENTS)}
        | {name: Tensor("x", ELEMENTS) for name in ("x", "y")[: read - 1]}
        | ({"w": Tensor("w", "D")} if weights else {}),
        {"grad_x": Tensor("x", ELEMENTS)}
        | {f"grad_{name}": Tensor("w", formula) for name, formula in weights.items()},
        vector_flops=vector,
        exponentials="0",
    )


def _attention() -> KernelKind:
    keys = Tensor("cache", "B*entries*K*(H+Hv)")
    query, out = Tensor("x", "B*T*N*H"), Tensor("out", "B*T*N*Hv")
    return KernelKind(
        "attention",
        "fused attention over a KV cache, or over the prompt itself",
        {
            **SEQUENCES,
            "N": "query heads",
            "K": "KV heads",
            "H": "head size",
            "Hv": "value head size",
            "window": "tokens that a query sees, itself included",
        },
        {"q": query, "kv": keys},
        {"out": out},
        flops="2*(H+Hv)*B*N*pairs",
        exponentials="B*N*pairs",
        roles={"x": "", "cache": "x", "out": "x"},
        defaults={"Hv": "H", "window": "S"},
        optional=("window",),
        steps={
            "all_earlier": "max(0, min(T, window - S + T))",
            "pairs": "all_earlier*(S-T) + half(all_earlier*(all_earlier+1)) "
            "+ (T-all_earlier)*window",
            "entries": "min(S, window+T-1)",
        },
        choices={
            "phase": {"prefill": {"T": "S"}, "decode": {"T": "1"}},
            "mask": {"causal": {}, "full": {"pairs": "T*S", "entries": "S"}},
        },
        flags={
            "backward": Form(
                {"q": query, "kv": keys, "out": out, "grad_out": out},
                {"grad_q": query, "grad_kv": keys},
                flops="2*(3*H+2*Hv)*B*N*pairs",
            )
        },
        checks=(
            Check(
                "N % K == 0",
                "K={K} does not divide N={N} query heads, which share KV heads: use one that does",
            ),
            Check(
                "T <= S",
                "T={T} new tokens are more than S={S}, which counts them: write S={total}, or full",
                {"mask": "causal"},
            ),
            Check("window >= 1", "window={window} hides a query from itself: write at least 1"),
        ),
        axes=("B", "S", "T", "N", "K", "window"),
        largest=("K",),
        limits={"S": ("T", None), "K": ("1", "N"), "window": ("1", "S")},
        follows={"T": "S"},
        columns={"pairs": "pairs"},
        resident=dict.fromkeys(("kv", "grad_kv"), "B*S*K*(H+Hv)"),
        notes=UNCOUNTED_ATTENTION,
        synonyms=("flash-attention", "flashattention", "flash-attn", "sdpa", "fmha", "mha", "gqa"),
        example="B=8 S=8192 N=32 K=8 H=128 bf16 decode",
    )


def _mla() -> tuple[KernelKind, KernelKind]:
    letters = {
        **SEQUENCES,
        "N": "query heads",
        "kv": "elements of the latent",
        "rope": "rotary elements",
    }
    query, out = Tensor("x", "B*T*N*(kv+rope)"), Tensor("out", "B*T*N*kv")
    checks = (
        Check("T <= S", "T={T} new tokens are more than S={S}, which counts them: write S={total}"),
    )
    steps = {"pairs": "T*S - half(T*(T-1))", "entries": "S"}
    phase = {"phase": {"decode": {"T": "1"}, "prefill": {"T": "S"}}}
    latent = Tensor("cache", "B*entries*(kv+rope)")
    packed = Tensor(WHOLE_BYTE, "B*entries*entry_bytes")
    keys = Tensor("cache", "B*entries*N*(nope+rope+Hv)")
    absorbed = KernelKind(
        "mla",
        "multi-head latent attention, absorbed: all heads read one latent per token",
        {**letters, "entry_bytes": "bytes of a cache entry"},
        {"q": query, "latent": latent},
        {"out": out},
        flops="2*(2*kv+rope)*B*N*pairs",
        exponentials="B*N*pairs",
        roles={"x": "", "cache": "x", "out": "x"},
        defaults={"N": "128", "kv": "512", "rope": "64"},
        optional=("entry_bytes",),
        steps=steps,
        choices=phase,
        flags={
            "entry_bytes": Form({"q": query, "latent": packed}),
        },
        checks=checks,
        axes=("B", "S", "T", "N"),
        limits={"S": ("T", None)},
        follows={"T": "S"},
        columns={"pairs": "pairs"},
        notes=(
            *UNCOUNTED_ATTENTION,
            "The products per head before and after it are einsums of their own.",
        ),
        synonyms=("mla-absorbed", "latent-attention"),
        example="B=128 S=4096 N=128 bf16",
    )
    expanded = KernelKind(
        "mla-expanded",
        "multi-head latent attention with keys and values of every head",
        {**letters, "nope": "elements of a head without rotation", "Hv": "value head size"},
        {
            "q": Tensor("x", "B*T*N*(nope+rope)"),
            "kv": keys,
        },
        {"out": Tensor("out", "B*T*N*Hv")},
        flops="2*(nope+rope+Hv)*B*N*pairs",
        exponentials="B*N*pairs",
        roles={"x": "", "cache": "x", "out": "x"},
        defaults={"N": "128", "kv": "512", "rope": "64", "nope": "128", "Hv": "128"},
        steps=steps,
        choices={"phase": {"prefill": {"T": "S"}, "decode": {"T": "1"}}},
        checks=checks,
        axes=("B", "S", "T"),
        limits={"S": ("T", None)},
        follows={"T": "S"},
        columns={"pairs": "pairs"},
        notes=UNCOUNTED_ATTENTION,
        example="B=1 S=4096 bf16",
    )
    return absorbed, expanded


def _experts() -> KernelKind:
    weights = Tensor("w", "touched*matrices*D*F")
    rows_in, rows_out = Tensor("x", "rows_in"), Tensor("out", "rows_out")
    return KernelKind(
        "experts",
        "routed experts of a MoE layer, up and down, as one kernel",
        {
            "B": "tokens",
            "D": "width of a token",
            "F": "width of an expert",
            "E": "experts",
            "k": "experts per token",
        },
        {"x": rows_in, "w": weights},
        {"out": rows_out},
        flops="2*B*k*matrices*D*F",
        roles={"w": "", "x": "wide", "out": "x"},
        steps={
            "gates": "2",
            "matrices": "gates+1",
            "rows_in": "B*D",
            "rows_out": "B*D",
            "touched": "activated(B, E, k)",
        },
        choices={
            "routing": {
                "uniform": {},
                "same": {"touched": "k"},
                "spread": {"touched": "min(E, k*B)"},
                "all": {"touched": "E"},
            },
            "part": {
                "both": {},
                "gate-up": {"matrices": "gates", "rows_out": "B*k*F"},
                "down": {"matrices": "1", "rows_in": "B*k*F"},
            },
            "gate": {"gated": {}, "ungated": {"gates": "1"}},
        },
        flags={
            "backward": Form(
                {"x": rows_in, "w": weights, "grad_out": rows_out},
                {"grad_x": rows_in, "grad_w": weights},
                flops="4*B*k*matrices*D*F",
            )
        },
        checks=(Check("k <= E", "k={k} experts of E={E}: use a k of at most {E}"),),
        axes=("B", "F", "D", "E", "k"),
        largest=("E",),
        limits={"E": ("k", None), "k": ("1", "E")},
        columns={"touched": "touched"},
        resident=dict.fromkeys(("w", "grad_w"), "E*matrices*D*F"),
        notes=("Not counted: ids and weights of the routing, and rows that fill up tiles.",),
        synonyms=("moe", "fused-moe"),
        example="B=128 D=7168 F=2048 E=256 k=8 fp8",
    )


def _norms() -> Iterator[KernelKind]:
    residual = Form(
        {"x": Tensor("x", ELEMENTS), "residual": Tensor("x", ELEMENTS), "w": Tensor("w", "D")},
        {"out": Tensor("out", ELEMENTS), "sum": Tensor("out", ELEMENTS)},
        vector_flops="5*B*D",
    )
    yield KernelKind(
        "rmsnorm",
        "RMS norm of rows",
        ROW_LETTERS,
        {"x": Tensor("x", ELEMENTS), "w": Tensor("w", "D")},
        {"out": Tensor("out", ELEMENTS)},
        vector_flops="4*B*D",
        roles=X_W_OUT,
        flags={"residual": residual, "backward": _gradients(2, "8*B*D", w="D")},
        axes=("B", "D"),
        synonyms=("rms-norm", "rms_norm"),
        example="4096x8192 bf16",
    )
    yield KernelKind(
        "layernorm",
        "layer norm of rows, with weight and bias",
        ROW_LETTERS,
        {"x": Tensor("x", ELEMENTS), "w": Tensor("w", "2*D")},
        {"out": Tensor("out", ELEMENTS)},
        vector_flops="7*B*D",
        roles=X_W_OUT,
        flags={"backward": _gradients(2, "13*B*D", w="2*D")},
        axes=("B", "D"),
        synonyms=("layer-norm", "layer_norm"),
        example="4096x8192 bf16",
    )


def _bytes_of_rows() -> Iterator[KernelKind]:
    yield _rows(
        "softmax",
        "softmax of rows",
        1,
        1,
        4,
        exponentials=1,
        backward=_gradients(2, "4*B*D"),
    )
    for name, vector, backward in (("relu", 1, 1), ("gelu", 1, 4), ("silu", 1, 4)):
        yield _rows(
            name,
            f"{name} of every element",
            1,
            1,
            vector,
            exponentials=int(name != "relu"),
            backward=_gradients(2, f"{backward}*B*D"),
        )
    gate_up, result = Tensor("x", "2*B*F"), Tensor("out", "B*F")
    for name in ("swiglu", "geglu"):
        yield KernelKind(
            name,
            "activation of a gate times up, as in an MLP",
            {"B": "rows (tokens)", "F": "columns of gate, and of up"},
            {"gate_up": gate_up},
            {"out": result},
            vector_flops="3*B*F",
            exponentials="2*B*F",
            flags={
                "backward": Form(
                    {"gate_up": gate_up, "grad_out": result},
                    {"grad_gate_up": gate_up},
                    vector_flops="9*B*F",
                )
            },
            axes=("B", "F"),
            synonyms=("silu-mul", "silu-and-mul") if name == "swiglu" else ("gelu-mul",),
            example="4096x14336 bf16",
            width="F",
        )
    yield _rows("add", "sum of two tensors", 2, 1, 1, synonyms=("residual-add",))
    yield KernelKind(
        "mul",
        "product of two tensors, element by element",
        ROW_LETTERS,
        {"x": Tensor("x", ELEMENTS), "y": Tensor("x", ELEMENTS)},
        {"out": Tensor("out", ELEMENTS)},
        vector_flops="B*D",
        flags={
            "backward": Form(
                {
                    "grad_out": Tensor("out", ELEMENTS),
                    "x": Tensor("x", ELEMENTS),
                    "y": Tensor("x", ELEMENTS),
                },
                {"grad_x": Tensor("x", ELEMENTS), "grad_y": Tensor("x", ELEMENTS)},
                vector_flops="2*B*D",
            )
        },
        axes=("B", "D"),
        synonyms=("multiply",),
        example="4096x8192 bf16",
    )
    yield KernelKind(
        "bias",
        "bias added to rows",
        ROW_LETTERS,
        {"x": Tensor("x", ELEMENTS), "w": Tensor("w", "D")},
        {"out": Tensor("out", ELEMENTS)},
        vector_flops="B*D",
        roles=X_W_OUT,
        flags={
            "backward": Form(
                {"grad_out": Tensor("out", ELEMENTS)},
                {"grad_w": Tensor("w", "D")},
            )
        },
        axes=("B", "D"),
        example="4096x8192 bf16",
    )
    yield _rows("copy", "copy of a tensor, or another dtype of it", 1, 1, 0, synonyms=("cast",))
    yield _rows("transpose", "transpose of a tensor", 1, 1, 0, synonyms=("permute-dims",))
    yield _rows("scatter-rows", "rows written to other places", 1, 1, 0)
    scatter_add = "scatter-add", "rows added to others", 2, 1, 1
    yield _rows(*scatter_add, in_place=True, synonyms=("index-add",))
    yield _rows("fill", "one value written everywhere", 0, 1, 0, synonyms=("memset",))
    for name in ("quantise", "dequantise"):
        yield KernelKind(
            name,
            "another number format, with its scales",
            ROW_LETTERS,
            {"x": Tensor("x", ELEMENTS)},
            {"out": Tensor("out", ELEMENTS)},
            vector_flops="B*D*(1+blocks)",
            axes=("B", "D"),
            notes=("A scale of the whole tensor needs a pass before; one read is counted.",),
            synonyms=(name.replace("ise", "ize"), name.replace("ise", "")),
            example="4096x8192 bf16 out=fp8" if name == "quantise" else "4096x8192 fp8 out=bf16",
        )


def _lookups() -> Iterator[KernelKind]:
    heads = Tensor("x", "B*T*(N+K)*H")
    yield KernelKind(
        "rotary",
        "rotary embedding of queries and keys, in place",
        {"B": "sequences", "T": "tokens per sequence", "N": "query heads", "K": "KV heads"}
        | {"H": "head size"},
        {"qk": heads},
        {"out": Tensor("out", "B*T*(N+K)*H")},
        vector_flops="3*B*T*(N+K)*H",
        flags={"backward": Form()},
        resident={"out": "0"},
        axes=("B", "T"),
        synonyms=("rope", "rotary-embedding"),
        example="B=1 T=8192 N=32 K=8 H=128 bf16",
    )
    rows, result = Tensor("x", "rows*D"), Tensor("out", ELEMENTS)
    yield KernelKind(
        "embedding",
        "rows of a table, one a token",
        {"B": "tokens", "V": "rows of the table", "D": "width of a row"},
        {"table": rows},
        {"out": result},
        steps={"rows": "activated(B, V, 1)"},
        choices={
            "routing": {"uniform": {}, "same": {"rows": "1"}, "spread": {"rows": "min(B, V)"}}
        },
        flags={"backward": Form({"grad_out": result, "grad": rows}, {"grad_table": rows})},
        axes=("B", "V", "D"),
        columns={"touched": "rows"},
        resident={**dict.fromkeys(("table", "grad_table"), "V*D"), "grad": "0"},
        synonyms=("gather-rows",),
        example="B=8192 V=128256 D=4096 bf16",
    )
    yield KernelKind(
        "sum",
        "reduction of each row to one number: a sum, mean or maximum",
        ROW_LETTERS,
        {"x": Tensor("x", ELEMENTS)},
        {"out": Tensor("out", ROWS)},
        vector_flops="B*D",
        flags={
            "backward": Form(
                {"grad_out": Tensor("out", ROWS)},
                {"grad_x": Tensor("x", ELEMENTS)},
                vector_flops="0",
            )
        },
        axes=("B", "D"),
        synonyms=("argmax", "reduction"),
        example="4096x8192 bf16",
    )
    vocabulary = {"B": "rows (tokens)", "V": "columns, such as the vocabulary"}
    logits = Tensor("x", "B*V")
    yield KernelKind(
        "top-k",
        "largest columns of every row",
        {**vocabulary, "k": "columns kept"},
        {"logits": logits},
        {"kept": Tensor(WHOLE_BYTE, "6*B*k")},
        vector_flops="B*V",
        checks=(Check("k <= V", "k={k} columns of V={V}: use a k of at most {V}"),),
        axes=("B", "V"),
        synonyms=("topk",),
        example="B=64 V=128256 k=50 bf16",
        width="V",
    )
    yield KernelKind(
        "cross-entropy",
        "cross-entropy of logits in memory",
        vocabulary,
        {"logits": logits, "labels": Tensor(WHOLE_BYTE, "8*B")},
        {"loss": Tensor(WHOLE_BYTE, "4*B")},
        vector_flops="3*B*V",
        exponentials="B*V",
        flags={
            "gradient": Form(
                writes={"grad_logits": logits, "loss": Tensor(WHOLE_BYTE, "4*B")},
                vector_flops="5*B*V",
            )
        },
        resident={"grad_logits": "0"},
        axes=("B", "V"),
        synonyms=("crossentropy", "softmax-cross-entropy"),
        example="B=8192 V=128256 bf16",
        width="V",
    )


def _optimizers() -> Iterator[KernelKind]:
    """Optimizer steps: states are read and written, gradients read, a copy written."""
    for name, state_bytes, gradient_bytes, vector, summary, synonyms in (
        ("adam", "12", "4", 14, "a step of Adam on fp32 states", ("adamw",)),
        (
            "adam-8bit",
            "2+ratio(65, 32)",
            "2",
            14,
            "a step of Adam with 8-bit moments in blocks of 256, bf16 weights and gradients",
            ("adamw-8bit", "adam8bit"),
        ),
        ("sgd", "8", "4", 4, "a step of SGD with momentum on fp32 states", ("sgd-momentum",)),
    ):
        yield KernelKind(
            name,
            summary,
            {"parameters": "parameters"},
            {"states": Tensor(WHOLE_BYTE, "(state_bytes+gradient_bytes)*parameters")},
            {"new_states": Tensor(WHOLE_BYTE, "(state_bytes+copy_bytes)*parameters")},
            vector_flops=f"{vector}*parameters",
            roles={},
            steps={
                "state_bytes": state_bytes,
                "gradient_bytes": gradient_bytes,
                "copy_bytes": "0",
            },
            resident={"new_states": "0"},
            axes=("parameters",),
            synonyms=synonyms,
            example="parameters=8030261248",
        )


def _products() -> Iterator[KernelKind]:
    rows, weights = Tensor("x", ELEMENTS), Tensor("w", "D*V")
    gradients = {"x": rows, "w": weights}, {"grad_x": rows, "grad_w": weights}
    yield KernelKind(
        "linear-cross-entropy",
        "unembedding and cross-entropy in one kernel, logits on chip",
        {"B": "rows (tokens)", "D": "width of a row", "V": "vocabulary"},
        {"x": rows, "w": weights},
        {},
        flops="2*B*D*V",
        exponentials="B*V",
        roles={"x": "", "w": "x"},
        flags={
            "backward": Form(*gradients, flops="6*B*D*V"),
            "recompute": Form(*gradients, flops="8*B*D*V"),
        },
        axes=("B", "D", "V"),
        notes=("backward is both ways; recompute computes the logits twice.",),
        synonyms=("fused-linear-cross-entropy",),
        example="B=8192 D=4096 V=128256 bf16 backward",
    )
    yield KernelKind(
        "muon",
        "a step of Muon on a matrix: five Newton-Schulz iterations",
        {"D": "the smaller side", "F": "the larger side"},
        {"states": Tensor(WHOLE_BYTE, "10*D*F")},
        {"new_states": Tensor(WHOLE_BYTE, "8*D*F")},
        flops="5*(3*D*D*F + D*D*D)",
        roles={},
        resident={"new_states": "0"},
        flags={"usual": Form(flops="5*(4*D*D*F + 2*D*D*D)")},
        checks=(Check("D <= F", "muon needs D <= F: swap them"),),
        axes=("D", "F"),
        largest=("F",),
        limits={"D": ("1", "F"), "F": ("D", None)},
        notes=("Symmetric products are halved; `usual` counts them whole, as common code does.",),
        example="4096x14336 bf16",
    )
    yield KernelKind(
        "conv2d",
        "convolution of square images",
        {
            "B": "images",
            "C": "input channels",
            "HW": "side of an image",
            "F": "output channels",
            "k": "side of the kernel",
            "stride": "step between outputs",
            "pad": "zeros around the image",
            "groups": "groups of channels",
        },
        {"x": Tensor("x", "B*C*HW*HW"), "w": Tensor("w", "F*ratio(C, groups)*k*k")},
        {"out": Tensor("out", "B*F*side*side")},
        flops="2*B*F*ratio(C, groups)*positions",
        roles=X_W_OUT,
        defaults={"stride": "1", "pad": "0", "groups": "1"},
        steps={
            "side": "windows(HW, k, stride, pad)",
            "inside": "taps(HW, k, stride, pad)",
            "positions": "inside*inside",
        },
        checks=(
            Check(
                "k <= HW+2*pad",
                "a kernel of {k} is larger than the padded image of {padded}: raise pad",
            ),
            Check(
                "(C % groups == 0) & (F % groups == 0)",
                "groups={groups} does not divide both C={C} and F={F}: use a divisor of both",
            ),
        ),
        axes=("B", "C", "F"),
        notes=("Products with padding are not counted; Winograd does less.",),
        synonyms=("conv", "convolution"),
        example="B=32 C=64 HW=56 F=64 k=3 pad=1 bf16",
    )
    for name, title, flops in (
        ("delta-net", "Gated DeltaNet", 6),
        ("mamba2", "Mamba-2", 4),
    ):
        base = f"{flops}*B*T*N*H*Hv"
        yield KernelKind(
            name,
            f"recurrence of {title} over a sequence",
            {
                "B": "sequences",
                "T": "tokens per sequence",
                "N": "value heads",
                "K": "key heads",
                "H": "key head size",
                "Hv": "value head size",
                "chunk": "tokens computed together",
            },
            {
                "x": Tensor("x", "B*T*(2*K*H + N*Hv + 2*N)"),
                "state": Tensor(WHOLE_BYTE, "4*B*N*H*Hv"),
            },
            {
                "out": Tensor("out", "B*T*N*Hv"),
                "new_state": Tensor(WHOLE_BYTE, "4*B*N*H*Hv"),
            },
            flops=base,
            defaults={"Hv": "H"},
            optional=("chunk",),
            flags={"chunk": Form(flops=f"{base} + B*T*N*((chunk+1)*(H+Hv) + (chunk-1)*(2*H+Hv))")},
            resident={"new_state": "0"},
            axes=("B", "T", "N"),
            synonyms=("gated-delta-net", "deltanet") if name == "delta-net" else ("mamba-2", "ssd"),
            example="B=64 T=1 N=64 K=16 H=128 bf16",
        )


def _entries() -> Iterator[KernelKind]:
    yield _attention()
    yield from _mla()
    yield _experts()
    yield from _norms()
    yield from _bytes_of_rows()
    yield from _lookups()
    yield from _optimizers()
    yield from _products()


KINDS: Mapping[str, KernelKind] = {kind.name: kind for kind in _entries()}
"""Kinds by name."""

BY_NAME: Mapping[str, KernelKind] = {name: kind for kind in KINDS.values() for name in kind.names}
"""Kinds by name and synonym."""
