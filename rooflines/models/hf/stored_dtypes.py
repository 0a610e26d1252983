"""The dtypes that a checkpoint states: `torch_dtype`, `quantization_config`, hf_quant_config.json.

Formats are found for every matrix of every layer. A class of tensors with several has the average
of their bits. Lists of modules are names, patterns with `*`, or regular expressions after `re:`.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.errors import RooflinesError, at_path, close_to, quote
from rooflines.models.hf.quantization import (
    EVERY,
    FIX,
    LISTED,
    QUANTIZED,
    Quantization,
    quantizations,
    read_quantization,
)
from rooflines.models.layer_matrices import modules_of
from rooflines.models.tensor_dtypes import ModelDtypes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.models.architecture import Shape
    from rooflines.models.hf.config_keys import Keys
    from rooflines.models.hf.families import Stack

TORCH = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float64": "fp64"}
"""Formats by the names of torch."""

QUANTIZATIONS = ("quantization_config", "compression_config", "quantization")
"""Keys that have a quantization."""

ASSUMED = "bf16"
"""The dtype of files without `torch_dtype`."""

ASSUMED_NOTE = f"torch_dtype is missing: what is not quantized is taken to be {ASSUMED}"
NO_LIST_NOTE = "the quantization lists no exceptions: token tables are taken to be {base}"

LAYER = re.compile(r"(?:model\.)?layers\.(\d+)")
"""A module of one layer, by its number."""

EXPERT = re.compile(r"\.experts\.\d+")
"""One of the experts of a layer."""

HEAD, EMBEDDING = "lm_head", "model.embed_tokens"


class Published(NamedTuple):
    """The dtypes of a checkpoint.

    Attributes:
        dtypes: Those of its tensors.
        note: What was assumed or averaged; None: nothing.
        weights_alone: Whether weights alone are quantized, and no activations.
    """

    dtypes: ModelDtypes | None
    note: str | None = None
    weights_alone: bool = False


def published_dtypes(
    keys: Keys, shape: Shape, stack: Stack, beside: Mapping[str, Any] | None = None
) -> Published:
    """The dtypes of a checkpoint, and what was assumed or averaged, if anything.

    Args:
        keys: Its config.json.
        shape: Its shape.
        stack: What each layer is.
        beside: Content of its hf_quant_config.json, if there is one.

    Raises:
        RooflinesError: They are stated in a way that is not known, or the files disagree.
    """
    base = _base(keys)
    stated = next(filter(None, map(keys.get, QUANTIZATIONS)), None)
    keys.ignore(*QUANTIZATIONS)
    keys.ignore("torch_dtype", "dtype")
    notes = [] if base else [ASSUMED_NOTE]
    found = None
    if stated is not None:
        with at_path("quantization_config"):
            found = read_quantization(stated)
    if beside is not None:
        with at_path("hf_quant_config.json"):
            other = read_quantization(beside.get("quantization", beside))
        if found is not None and dict(found.formats) != dict(other.formats):
            problem = f"says {_shown(found)}, and hf_quant_config.json {_shown(other)}"
            raise RooflinesError("quantization_config", problem, FIX)
        found = other
    base = base or ASSUMED
    if found is None:
        return Published(ModelDtypes(weights=base), notes[0] if notes else None)
    elements, lm_head = _elements(found, shape, stack, base)
    dtypes = ModelDtypes.of_elements(elements, found.cache, lm_head, base)
    if found.head == LISTED and not found.left_out:
        notes.append(NO_LIST_NOTE.format(base=base))
    notes += [*found.notes, *dtypes.averages()]
    return Published(dtypes, "; ".join(notes) or None, weights_alone=found.alone)


def _shown(found: Quantization) -> str:
    return " and ".join(sorted({name for _, name in found.formats}))


def _base(keys: Keys) -> str | None:
    """The format of `torch_dtype`, or of `dtype`, as newer files call it."""
    for key in ("torch_dtype", "dtype"):
        value = keys.get(key)
        if value is None or value == "auto":
            continue
        name = value.removeprefix("torch.") if isinstance(value, str) else value
        if not isinstance(name, str) or name not in TORCH:
            problem = f"is {quote(value)}, which is no dtype of weights that is known"
            fix = f"use one of {', '.join(TORCH)}"
            raise RooflinesError(key, problem, fix, close=close_to(name, TORCH))
        return TORCH[name]
    return None


# ---------------------------------------------------------------- which matrix has which format


def _elements(
    found: Quantization, shape: Shape, stack: Stack, base: str
) -> tuple[dict[str, Counter[str]], str | None]:
    """Elements of each format, by class of tensors [1]; the format of the unembedding, if any.

    Those of `head` are of the embedding.
    """
    matrices = {
        f"model.layers.{layer}.{module}": (tensors, size)
        for layer, of in enumerate(zip(stack.mixers, stack.mlps, strict=True))
        for module, tensors, size in modules_of(shape, *of)
    }
    names = Modules([*matrices, HEAD, EMBEDDING])
    formats: dict[str, str] = {}
    named = [each for each in found.formats if each[0] != EVERY]  # come before their class
    of_all = [each for each in found.formats if each[0] == EVERY]
    for pattern, name in reversed([*named, *of_all]):
        formats |= dict.fromkeys(names.meant(pattern), name)
    for pattern, key in found.left_out:
        meant = names.meant(pattern)
        if not meant and not _without_effect(pattern, len(stack.mixers)):
            problem = f"leaves out {quote(pattern)}, which is no module that is known"
            raise RooflinesError(f"quantization_config.{key}", problem, FIX)
        formats |= dict.fromkeys(meant, base)
    names.check_experts(found.formats, shape.moe.E if shape.moe else 0)
    sums: dict[str, Counter[str]] = {}
    for name, (tensors, size) in matrices.items():
        sums.setdefault(tensors, Counter())[formats.get(name, base)] += size
    embedded = formats.get(EMBEDDING, base) if found.embedding else base
    sums["head"] = Counter({embedded: shape.table})
    lm_head: str | None = None
    if shape.unembedding:
        listed = found.head == LISTED and found.left_out
        by_name = any(pattern == HEAD for pattern, _ in named)
        quantized = found.head == QUANTIZED or listed or by_name
        lm_head = formats.get(HEAD, base) if quantized else base
    return sums, lm_head


def _without_effect(pattern: str, layers: int) -> bool:
    """Whether a pattern names vectors, routers, encoders, or layers beyond the model's."""
    if (match := LAYER.match(pattern)) and int(match[1]) >= layers:
        return True
    words = re.split(r"[.\\*:()|]+", pattern.removeprefix("re:"))
    return any(word in quantizations()["uncounted"] for word in words)


class Modules:
    """The modules of a model, and which of them a pattern means.

    Args:
        names: Their names.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._inside: dict[str, list[str]] = {}
        for name in names:
            parts = name.split(".")
            for count in range(1, len(parts) + 1):
                self._inside.setdefault(".".join(parts[:count]), []).append(name)

    def check_experts(self, formats: Sequence[tuple[str, str]], experts: int) -> None:
        """Refuse formats of which the experts of a layer have several.

        Args:
            formats: Formats by pattern.
            experts: Experts of a layer [1].

        Raises:
            RooflinesError: Experts of a layer differ, or some are not stated.
        """
        stated: dict[str, list[str]] = {}
        for pattern, name in formats:
            if EXPERT.search(pattern) and not pattern.startswith("re:"):
                stated.setdefault(EXPERT.sub(".experts.0", pattern), []).append(name)
        for pattern, names in stated.items():
            if len(set(names)) > 1 or (len(names) != experts and experts):
                problem = f"has {pattern.replace('.experts.0', '.experts')} in several formats"
                raise RooflinesError("quantization_config", problem, FIX)

    def meant(self, pattern: str) -> list[str]:
        """The modules that are meant.

        Args:
            pattern: A name, with `*` for any text, or a regular expression after `re:`. A name
                stands for what is inside the module too, and may lack what is around it.

        Raises:
            RooflinesError: It is no regular expression.
        """
        for other, ours in quantizations()["same"].items():
            pattern = pattern.replace(other, ours)
        if not pattern.startswith("re:"):
            pattern = EXPERT.sub(".experts.0", pattern)
            for name, parts in quantizations()["several"].items():
                if re.search(rf"\b{name}\b", pattern):
                    each = (self.meant(pattern.replace(name, part)) for part in parts)
                    return [module for found in each for module in found]
        whole = pattern.startswith("model.") and "*" not in pattern
        if whole or pattern in self._inside:
            return self._inside.get(pattern, [])
        inside = ".*".join(map(re.escape, pattern.split("*")))
        text = rf"(?:.*\.)?{inside}(?:\..*)?$"
        try:
            regex = re.compile(pattern.removeprefix("re:") if pattern.startswith("re:") else text)
        except re.error as error:
            problem = f"has {quote(pattern)}, which is no regular expression: {error}"
            raise RooflinesError("quantization_config", problem, FIX) from None
        return [name for name in self._names if regex.match(name)]
