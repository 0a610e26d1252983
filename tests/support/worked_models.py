"""Worked numbers of How to Scale Your Model about whole models, and what this package has."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import partial

from book_models import (
    ANSWER,
    CAPACITY,
    INVENTED,
    LLAMA_2,
    LLAMA_3,
    LONG,
    SMALL,
    TABLES,
    WIDE,
    System,
    all_reduce_s,
    equal_tokens,
    prefill_s,
)
from worked import Worked

from rooflines.models import Model, Step, work

NOT_READ = "a step does not read the embedding table; the book rounds the cache"
ROUNDED = "the book rounds the parameters or the cache before"
CAUSAL = "a token attends to itself and those before it; the book counts all pairs"

LLAMA_2_STEP = System("llama-2-13b", 8)
FEWER = System("fewer-heads", 8)
THIRTY = System("thirty", 16, "int8", TABLES)
ON_TABLES = System("llama-3.1-70b", 8, "int8", TABLES)
BF16_16, INT8_8, INT4_4, BF16_32 = (
    System("llama-3.1-70b", chips, dtypes)
    for chips, dtypes in ((16, "bf16"), (8, "int8"), (4, "int4"), (32, "bf16"))
)


def caches(dtype: str, sequences: int, context: int) -> Fraction:
    """Bytes of the caches of sequences of Llama 3.1 70B [byte]."""
    return Fraction(sequences * LLAMA_3.cache_bytes(context, dtype))


def activation(model: Model, tokens: int) -> Fraction:
    """Elements of one activation of all tokens, what the embedding writes [1]."""
    return work(model.groups("prefill")[:1], "writes", Step.prefill(1, tokens))


def whole(dtype: str) -> Fraction:
    """Bytes of the parameters of Llama 3.1 70B [byte]."""
    return Fraction(LLAMA_3.weights_bytes(dtype))


TRANSFORMERS = (
    Worked(
        "parameters of 64 layers, D = 4096, F = 4 D, V = 32,000, multi-head",
        "16e9",
        lambda: SMALL.parameters().total,
        "the book rounds to 16 billion",
    ),
    Worked(
        "share of attention in the parameters of a layer, D = N H, F = 4 D",
        "0.25",
        lambda: Fraction(
            SMALL.parameters().attention, SMALL.parameters().attention + SMALL.parameters().mlp
        ),
    ),
    Worked(
        "cache per token of 64 layers, D = 4096, multi-head, int8 [byte]",
        "524288",
        lambda: SMALL.cache_bytes(1, "int8"),
        "printed as 512 kB, of 1,024",
    ),
    Worked(
        "cache of 8,192 tokens, 64 layers of 8,192 keys, int8 [byte]",
        "8589934592",
        lambda: WIDE.cache_bytes(LONG, "int8"),
        "printed as 8 GiB",
    ),
    Worked(
        "tokens from which attention has more FLOP than all matrices, D = 8192",
        "65536",
        lambda: equal_tokens(WIDE, ("qkv", "o", "gate-up", "down")),
        CAUSAL,
    ),
    Worked(
        "tokens from which attention has more FLOP than its projections, D = 4096",
        "8192",
        lambda: equal_tokens(SMALL, ("qkv", "o")),
        CAUSAL,
    ),
    Worked(
        "critical batch of 8 of 256 experts, int8 weights, bf16 math, v5e",
        "3840",
        lambda: System("experts", 1, "int8").critical_batch(),
        "experts, and next to nothing else",
    ),
)

INFERENCE = (
    Worked(
        "critical batch of Llama 3 70B in bf16, v5e",
        "240",
        lambda: System("llama-3.1-70b").critical_batch(),
        "with a context of one token",
    ),
    Worked(
        "step of 30e9 parameters in int8, 16 v5e, B = 4, S = 8192 [s]",
        "2.5e-3",
        lambda: THIRTY.memory_s(4, LONG),
    ),
    Worked(
        "step of 30e9 parameters in int8, 16 v5e, B = 256, S = 8192 [s]",
        "21e-3",
        lambda: THIRTY.kernels_s(256, LONG),
        "sum over kernels, without networks and activations",
    ),
    Worked("MLPs of Llama 2 13B", "8.5e9", lambda: LLAMA_2.parameters().mlp),
    Worked(
        "token tables of Llama 2 13B",
        "0.3e9",
        lambda: LLAMA_2.parameters().embedding + LLAMA_2.parameters().unembedding,
    ),
    Worked("attention of Llama 2 13B", "4.2e9", lambda: LLAMA_2.parameters().attention),
    Worked(
        "an activation of 8,192 tokens of Llama 2 13B in bf16 [byte]",
        "83886080",
        lambda: 2 * activation(LLAMA_2, LONG),
        "printed as 80 MB, of 1,024",
    ),
    Worked(
        "cache of 8,192 tokens of Llama 2 13B in bf16 [byte]",
        "6.7e9",
        lambda: LLAMA_2.cache_bytes(LONG, "bf16"),
    ),
    *(
        Worked(
            f"step of Llama 2 13B in bf16, 8 v5e, B = {batch}, S = 8192 [s]",
            printed,
            partial(LLAMA_2_STEP.memory_s, batch, LONG),
            NOT_READ,
        )
        for batch, printed in (
            (1, "4.98e-3"),
            (8, "12.13e-3"),
            (16, "20.3e-3"),
            (32, "36.65e-3"),
            (64, "69.33e-3"),
            (240, "249.09e-3"),
        )
    ),
    Worked(
        "tokens of Llama 2 13B per second, 8 v5e, B = 240, S = 8192 [1/s]",
        "963.53",
        lambda: 240 / LLAMA_2_STEP.memory_s(240, LONG),
        NOT_READ,
    ),
    *(
        Worked(
            f"step of Llama 2 13B with a fifth of the KV heads, B = {batch} [s]",
            printed,
            partial(FEWER.memory_s, batch, LONG),
            "fewer key-value heads make the weights smaller too",
        )
        for batch, printed in ((1, "4.17e-3"), (64, "17.04e-3"), (240, "52.99e-3"))
    ),
    Worked(
        "parameters of 64 layers, D = 4096, F = 16,384, N = 32, K = 8, H = 256",
        "18.4e9",
        lambda: INVENTED.parameters().total,
    ),
    Worked(
        "cache per token of 64 layers, K = 8, H = 256, int8 [byte]",
        None,
        lambda: INVENTED.cache_bytes(1, "int8"),
    ),
    Worked(
        "time in which 16 v5e read the weights of that model in int8 [s]",
        None,
        lambda: System("invented", 16, "int8", TABLES).memory_s(1, 1),
    ),
    Worked(
        "most sequences of 8,192 tokens of that model in int8 on 16 v5e",
        None,
        lambda: System("invented", 16, "int8").fitting(),
    ),
    Worked(
        "an activation of 16 tokens of width 8,192 in int8 [byte]",
        "131e3",
        lambda: activation(LLAMA_3, 16),
    ),
)

SERVING = (
    Worked(
        "cache per token of Llama 3 70B in int8 [byte]",
        "163840",
        lambda: caches("int8", 1, 1),
        "printed as 160 kB, of 1,024",
    ),
    Worked(
        "cache of 32,768 tokens of Llama 3 70B in int8 [byte]",
        "5.3e9",
        lambda: caches("int8", 1, 32768),
    ),
    Worked(
        "240 caches of 32,768 tokens in int8 [byte]", "1.3e12", lambda: caches("int8", 240, 32768)
    ),
    Worked(
        "v5e that hold 240 caches of 32,768 tokens and the weights, int8",
        "86",
        lambda: (whole("int8") + caches("int8", 240, 32768)) / CAPACITY,
        ROUNDED,
    ),
    Worked(
        "32 caches of 8,192 tokens in int8 [byte]",
        "41.9e9",
        lambda: caches("int8", 32, LONG),
        "the book has 160e3 bytes for 160 KiB per token",
    ),
    Worked(
        "32 caches of 8,192 tokens and the weights, int8 [byte]",
        "112e9",
        lambda: whole("int8") + caches("int8", 32, LONG),
        ROUNDED,
    ),
    Worked(
        "v5e that hold 32 caches of 8,192 tokens and the weights, int8",
        "7",
        lambda: (whole("int8") + caches("int8", 32, LONG)) / CAPACITY,
        "not rounded up",
    ),
    Worked(
        "step in int8, 8 v5e, B = 32, S = 8192 [s]",
        "17e-3",
        lambda: ON_TABLES.memory_s(32, LONG),
    ),
    Worked(
        "tokens per second in int8, 8 v5e, B = 32, S = 8192 [1/s]",
        "1882",
        lambda: 32 / ON_TABLES.memory_s(32, LONG),
        "the book divides by the rounded step",
    ),
    Worked(
        "tokens per second and chip in int8, 8 v5e, B = 32, S = 8192 [1/s]",
        "235",
        lambda: 32 / ON_TABLES.memory_s(32, LONG) / 8,
        "the book divides by the rounded step",
    ),
    Worked(
        "step in int8, 16 v5e, B = 32, S = 8192 [s]",
        "8.5e-3",
        lambda: ON_TABLES.memory_s(32, LONG) / 2,
        "the book halves the rounded step",
    ),
    Worked(
        "critical batch of Llama 3 70B, int8 weights, bf16 math, v5e",
        "120",
        lambda: System("llama-3.1-70b", 1, "int8").critical_batch(),
        "with a context of one token",
    ),
    Worked("v5e that hold the weights in bf16", "8.75", lambda: whole("bf16") / CAPACITY),
    Worked("v5e that hold the weights in int8", "4.38", lambda: whole("int8") / CAPACITY, ROUNDED),
    Worked(
        "v5e that hold the weights in int4",
        "2.81",
        lambda: whole("int4") / CAPACITY,
        "the book takes 45 GB for weights of half a byte",
    ),
    Worked(
        "memory beside the weights in bf16 on 16 v5e [byte]",
        "116e9",
        lambda: 16 * CAPACITY - whole("bf16"),
        ROUNDED,
    ),
    Worked("caches of 8,192 tokens that fit, bf16 on 16 v5e", "43", BF16_16.fitting, ROUNDED),
    Worked(
        "caches of 8,192 tokens that fit, int8 on 8 v5e",
        "52",
        INT8_8.fitting,
        "the book has 68 GB beside the weights, and 58 GB by its own sizes",
    ),
    Worked(
        "step with the memory full, bf16 on 16 v5e [s]",
        "19e-3",
        BF16_16.full_s,
        "the book divides the capacity by the bandwidth; here, what fits is read",
    ),
    Worked(
        "step of int4 weights on 4 v5e, without caches [s]",
        "10e-3",
        lambda: INT4_4.memory_s(1, 1),
    ),
    Worked(
        "answer of 512 tokens with the memory full, bf16 on 16 v5e [s]",
        "9",
        lambda: ANSWER * BF16_16.full_s(),
    ),
    Worked(
        "answers per second, bf16 on 16 v5e [1/s]",
        "4.42",
        BF16_16.requests_per_s,
        "from the number of caches that fit",
    ),
    Worked(
        "answers per second and chip, bf16 on 16 v5e [1/s]",
        "0.27",
        lambda: BF16_16.requests_per_s() / 16,
        ROUNDED,
    ),
    Worked(
        "answers per second and chip, int8 on 8 v5e [1/s]",
        "0.66",
        lambda: INT8_8.requests_per_s() / 8,
        "from the number of caches that fit",
    ),
    Worked(
        "answers per second and chip, int4 on 4 v5e [1/s]",
        "1.72",
        lambda: INT4_4.requests_per_s() / 4,
        "the book has 67 sequences, more than the weights leave room for",
    ),
    Worked(
        "answers per second and chip, bf16 on 32 v5e [1/s]",
        "0.51",
        lambda: BF16_32.requests_per_s() / 32,
        "the book has 161 sequences, more than the weights leave room for",
    ),
    Worked(
        "all-reduce of 64 tokens on 4x8 v5e [s]",
        "11e-6",
        lambda: all_reduce_s(64, "4x8"),
        "the book counts one of its two passes",
    ),
    Worked(
        "time in which 32 v5e read one projection of an MLP in bf16 [s]",
        "18e-6",
        lambda: System("llama-3.1-70b", 32, chip=TABLES).down(64)["memory"],
    ),
    Worked(
        "math of that projection for 64 tokens [s]",
        "4e-6",
        lambda: System("llama-3.1-70b", 32, chip=TABLES).down(64)["compute"],
    ),
    Worked(
        "prompt of 8,192 tokens on 16 v5e, 40 % of the peak [s]",
        "0.91",
        lambda: prefill_s(16, 0.4),
        "with the products of attention",
    ),
    Worked(
        "chips for prompts over chips for answers, B = 32",
        "3",
        lambda: prefill_s(16, 0.4) * 32 / (ANSWER * BF16_16.full_s()),
        "with the products of attention",
    ),
    Worked(
        "FLOP per token of Llama 3 405B",
        None,
        lambda: System("llama-3.1-405b").flops(1),
    ),
)

TRAINING = (
    Worked("MLPs of Llama 3 70B", "56.3e9", lambda: LLAMA_3.parameters().mlp),
    Worked(
        "token tables of Llama 3 70B",
        "2.1e9",
        lambda: LLAMA_3.parameters().embedding + LLAMA_3.parameters().unembedding,
    ),
    Worked("attention of Llama 3 70B", "12e9", lambda: LLAMA_3.parameters().attention),
)

WORKED_NUMBERS: Mapping[str, tuple[Worked, ...]] = {
    "transformers": TRANSFORMERS,
    "inference": INFERENCE,
    "serving": SERVING,
    "training": TRAINING,
}
"""By chapter, in the order of the book."""
