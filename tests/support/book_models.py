"""The models of How to Scale Your Model, and the quantities that it works out.

Chips share a model evenly, as in the book: n of them take 1/n of the time of one.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

from case_files import case

from rooflines.basics.numbers import exact
from rooflines.models import Step, load, work
from rooflines.models.groups import StepExtents
from rooflines.models.library import models_of
from rooflines.sweep.one_chip import sweep_on

CAPACITY = 16 * 10**9
"""Memory of a TPU v5e [byte]."""

LONG = 8192
"""Tokens of a prompt, or of the usual context [1]."""

ANSWER = 512
"""Tokens of an answer [1]."""


FORMS: Mapping[str, Mapping[str, object]] = case("book-forms")
"""Models of the book's own."""

SMALL, WIDE, INVENTED = (
    models_of([{"name": name, **FORMS[name]}])[name] for name in ("small", "wide", "invented")
)
LLAMA_2, LLAMA_3 = load("llama-2-13b"), load("llama-3.1-70b")

TABLES, ROOFLINE = "tpu-v5e-book-tables", "tpu-v5e-book-roofline"
"""Two chips of the catalogue: the book has 8.1e11 and 8.2e11 bytes/s for one."""

QUANTIZED = {"cache": "int8", "activations": "bf16", "compute": "bf16"}
DTYPES: Mapping[str, str | Mapping[str, str]] = {
    "bf16": "bf16",
    "int8": {**QUANTIZED, "weights": "int8"},
    "int4": {**QUANTIZED, "weights": "int4", "cache": "int4"},
}


@cache
def case_of(model, dtypes, chip, phase):
    """A model on one chip; every step uses all experts."""
    form = {"name": model, **FORMS[model]} if model in FORMS else model
    return sweep_on(form, chip, DTYPES[dtypes], phase=phase, routing="all").cases[0]


def down_of(case, batch):
    """The times of the last projection of an MLP in one layer [s]."""
    for kernel, times in zip(case.kernels, case.kernel_times, strict=True):
        if kernel.name == "down":
            return times.at(StepExtents(case.step(batch, 1)))
    raise LookupError(case.name)


def shared(seconds, chips):
    """Times of work that chips share evenly [s]."""
    by = {bound: time / chips for bound, time in seconds.by_bound.items()}
    return replace(seconds, by_bound=by, activation=seconds.activation / chips)


@dataclass(frozen=True)
class System:
    """A model on several TPU v5e, which share it evenly.

    Attributes:
        model: An id, or a key of `FORMS`.
        chips: How many [1].
        dtypes: A key of `DTYPES`.
        chip: A chip of the catalogue.
        phase: `decode` or `prefill`.
    """

    model: str
    chips: int = 1
    dtypes: str = "bf16"
    chip: str = ROOFLINE
    phase: str = "decode"

    @property
    def case(self):
        """The model on one of the chips."""
        return case_of(self.model, self.dtypes, self.chip, self.phase)

    def times(self, batch, context):
        """The times of a step [s]."""
        one = self.case
        return shared(one.seconds(one.step(batch, context)), self.chips)

    def flops(self, batch):
        """FLOP of a step at a context of one token [FLOP]."""
        return work(self.case.model.groups("decode"), "flops", Step(batch, 1))

    def memory_s(self, batch, context):
        """t_memory of a step [s]."""
        return self.times(batch, context)["memory"]

    def kernels_s(self, batch, context):
        """The sum over the kernels of a step of max(t_math, t_memory) [s]."""
        one = self.case
        step = one.step(batch, context)
        found = [
            kernel.count * times.at(StepExtents(step)).lower
            for kernel, times in zip(one.kernels, one.kernel_times, strict=True)
        ]
        return sum(found, Fraction(0)) / self.chips

    def down(self, batch):
        """The times of the last projection of an MLP [s]."""
        return shared(down_of(self.case, batch), self.chips)

    def critical_batch(self):
        """The smallest compute-bound batch at a context of one token; times are affine in it."""
        one, two = self.times(1, 1), self.times(2, 1)
        fixed = 2 * one["memory"] - two["memory"]
        return math.ceil(
            fixed / (two["compute"] - one["compute"] - (two["memory"] - one["memory"]))
        )

    def fitting(self):
        """The most sequences of the usual context that fit, caches spread over all chips [1]."""
        return self.case.model.max_batch(
            CAPACITY, LONG, self.dtypes, tp=self.chips, cache_split="batch"
        )

    def full_s(self):
        """t_memory of a step of as many sequences as fit [s]."""
        return self.memory_s(self.fitting(), LONG)

    def requests_per_s(self):
        """Requests of `ANSWER` tokens, of as many sequences as fit [1/s]."""
        return self.fitting() / (ANSWER * self.full_s())


def prefill_s(chips, reached):
    """t_math of a prompt of Llama 3.1 70B, at a share of the peak [s]."""
    return System("llama-3.1-70b", chips, phase="prefill").times(1, LONG)["compute"] / exact(
        reached
    )


def all_reduce_s(batch, axes):
    """t_network of the last projection of an MLP of Llama 3.1 70B in bf16 [s]."""
    return down_of(
        sweep_on("llama-3.1-70b", TABLES, "bf16", splits=[{"tp": axes}]).cases[0], batch
    )["network"]


def equal_tokens(model, names):
    """The shortest prompt with at least as many FLOP in attention as in other groups [1].

    Args:
        model: The model.
        names: The other groups.
    """
    groups = model.groups("prefill")
    others = [group for group in groups if group.name in names]
    attention = [group for group in groups if group.name == "attention"]

    def reached(tokens):
        step = Step.prefill(1, tokens)
        return work(attention, "flops", step) >= work(others, "flops", step)

    return bisect_left(range(2**20), True, lo=1, key=reached)  # noqa: FBT003, what to look for


LLAMA_2_STEP = System("llama-2-13b", 8)
FEWER = System("fewer-heads", 8)
THIRTY = System("thirty", 16, "int8", TABLES)
ON_TABLES = System("llama-3.1-70b", 8, "int8", TABLES)
BF16_16, INT8_8, INT4_4, BF16_32 = (
    System("llama-3.1-70b", chips, dtypes)
    for chips, dtypes in ((16, "bf16"), (8, "int8"), (4, "int4"), (32, "bf16"))
)


def caches(dtype, sequences, context):
    """Bytes of the caches of sequences of Llama 3.1 70B [byte]."""
    return Fraction(sequences * LLAMA_3.kv_cache_bytes(context, dtype))


def activation(model, tokens):
    """Elements of one activation of all tokens, what the embedding writes [1]."""
    return work(model.groups("prefill")[:1], "writes", Step.prefill(1, tokens))


def whole(dtype):
    """Bytes of the parameters of Llama 3.1 70B [byte]."""
    return Fraction(LLAMA_3.weights_bytes({"weights": dtype}))


def here(expression):
    """The package's value of a number, by the names in this module."""
    return Fraction(eval(expression, globals()))  # noqa: S307, an expression of a file of ours
