"""Dtypes stated by a checkpoint: `torch_dtype`, `quantization_config`, hf_quant_config.json.

Every matrix in every layer gets a format. A tensor class with several formats has their average
bits. Module lists are names, patterns with `*`, or regular expressions after `re:`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.errors import RooflinesError, at_path, close_to, quote
from rooflines.models.hf.quantization import (
    EVERY_MATRIX,
    EXPERT_DTYPE,
    FIX,
    QUANTIZED,
    UNLESS_LISTED,
    Quantization,
    quantizations,
    read_quantization,
)
from rooflines.models.layer_matrices import modules_of
from rooflines.models.tensor_dtypes import ModelDtypes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.models.architecture import Shape
    from rooflines.models.hf.config_keys import Keys
    from rooflines.models.hf.families import LayerTypes

TORCH_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float64": "fp64"}
"""Formats by torch dtype."""

QUANTIZATIONS = ("quantization_config", "compression_config", "quantization")
"""Keys that may contain a quantization."""

DEFAULT_DTYPE = "bf16"
"""Dtype assumed for files without `torch_dtype`."""

DEFAULT_DTYPE_NOTE = f"torch_dtype is missing: what is not quantized is taken to be {DEFAULT_DTYPE}"
NO_LIST_NOTE = "the quantization lists no exceptions: token tables are taken to be {base}"

LAYER = re.compile(r"(?:model\.)?layers\.(\d+)")
"""Pattern for a module in one layer, with the layer index."""

EXPERT = re.compile(r"\.experts\.\d+")
"""Pattern for one expert in a layer."""

HEAD, EMBEDDING = "lm_head", "model.embed_tokens"


class Published(NamedTuple):
    """Published dtypes of a checkpoint.

    Attributes:
        dtypes: Dtypes by tensor class.
        note: Assumptions and averages; None: there are none.
        weight_only: Whether only weights are quantized, not activations.
    """

    dtypes: ModelDtypes | None
    note: str | None = None
    weight_only: bool = False


def published_dtypes(
    keys: Keys, shape: Shape, layer_types: LayerTypes, quant_config: Mapping[str, Any] | None = None
) -> Published:
    """Read a checkpoint's dtypes, with a note on assumptions and averages.

    Args:
        keys: Its config.json.
        shape: Its architecture.
        layer_types: Type of every layer.
        quant_config: Content of its hf_quant_config.json, if there is one.

    Raises:
        RooflinesError: The statement has an unknown form, or the files disagree.
    """
    base = _base(keys)
    quantization_value = next(filter(None, map(keys.get, QUANTIZATIONS)), None)
    keys.ignore(*QUANTIZATIONS)
    keys.ignore("torch_dtype", "dtype")
    if (expert_dtype := keys.get(EXPERT_DTYPE)) is not None:
        if not isinstance(quantization_value, Mapping):
            problem = f"is {quote(expert_dtype)} without a quantization_config"
            raise RooflinesError(EXPERT_DTYPE, problem, FIX, value=expert_dtype)
        quantization_value = {EXPERT_DTYPE: expert_dtype, **quantization_value}
    notes = [] if base else [DEFAULT_DTYPE_NOTE]
    quantization = None
    if quantization_value is not None:
        with at_path("quantization_config"):
            quantization = read_quantization(quantization_value)
    if quant_config is not None:
        with at_path("hf_quant_config.json"):
            quant_file = read_quantization(quant_config.get("quantization", quant_config))
        if quantization is not None and dict(quantization.formats) != dict(quant_file.formats):
            formats = _format_names(quantization), _format_names(quant_file)
            problem = f"says {formats[0]}, and hf_quant_config.json {formats[1]}"
            raise RooflinesError("quantization_config", problem, FIX)
        quantization = quant_file
    base = base or DEFAULT_DTYPE
    if quantization is None:
        return Published(ModelDtypes(weights=base), notes[0] if notes else None)
    elements, lm_head = _elements(quantization, shape, layer_types, base)
    dtypes = ModelDtypes.from_elements(elements, quantization.cache, lm_head, base)
    if quantization.head == UNLESS_LISTED and not quantization.unquantized:
        notes.append(NO_LIST_NOTE.format(base=base))
    notes += [*quantization.notes, *dtypes.mixed_notes()]
    return Published(dtypes, "; ".join(notes) or None, weight_only=quantization.weight_only)


def _format_names(quantization: Quantization) -> str:
    return " and ".join(sorted({name for _, name in quantization.formats}))


def _base(keys: Keys) -> str | None:
    """Read the format in `torch_dtype`, or in `dtype`, its name in newer files."""
    for key in ("torch_dtype", "dtype"):
        value = keys.get(key)
        if value is None or value == "auto":
            continue
        name = value.removeprefix("torch.") if isinstance(value, str) else value
        if not isinstance(name, str) or name not in TORCH_DTYPES:
            problem = f"is {quote(value)}, which is no dtype of weights that is known"
            fix = f"use one of {', '.join(TORCH_DTYPES)}"
            raise RooflinesError(key, problem, fix, close=close_to(name, TORCH_DTYPES))
        return TORCH_DTYPES[name]
    return None


# ---------------------------------------------------------------- which matrix has which format


def _elements(
    quantization: Quantization, shape: Shape, layer_types: LayerTypes, base: str
) -> tuple[dict[str, Counter[str]], str | None]:
    """Count elements by tensor class and format [1]; and find the LM head's format, if any.

    `head` counts the embedding only.
    """
    matrices = {
        f"model.layers.{layer}.{module}": (tensors, size)
        for layer, types in enumerate(
            zip(layer_types.layer_types, layer_types.mlp_types, strict=True)
        )
        for module, tensors, size in modules_of(shape, *types)
    }
    names = Modules([*matrices, HEAD, EMBEDDING])
    formats: dict[str, str] = {}
    module_formats = [
        item for item in quantization.formats if item[0] != EVERY_MATRIX
    ]  # come before their class
    default_formats = [item for item in quantization.formats if item[0] == EVERY_MATRIX]
    for pattern, name in reversed([*module_formats, *default_formats]):
        formats |= dict.fromkeys(names.matching(pattern), name)
    for pattern, key in quantization.unquantized:
        matched = names.matching(pattern)
        if not matched and not _is_harmless(pattern, len(layer_types.layer_types)):
            problem = f"leaves out {quote(pattern)}, which is no module that is known"
            raise RooflinesError(("quantization_config", key), problem, FIX)
        formats |= dict.fromkeys(matched, base)
    names.check_experts(quantization.formats, shape.moe.E if shape.moe else 0)
    sums: dict[str, Counter[str]] = {}
    for name, (tensors, size) in matrices.items():
        sums.setdefault(tensors, Counter())[formats.get(name, base)] += size
    embedded = formats.get(EMBEDDING, base) if quantization.embedding else base
    sums["head"] = Counter({embedded: shape.table})
    lm_head: str | None = None
    if shape.unembedding:
        listed = quantization.head == UNLESS_LISTED and quantization.unquantized
        by_name = any(pattern == HEAD for pattern, _ in module_formats)
        quantized = quantization.head == QUANTIZED or listed or by_name
        lm_head = formats.get(HEAD, base) if quantized else base
    return sums, lm_head


def _is_harmless(pattern: str, layers: int) -> bool:
    """Check for a pattern of vectors, routers, encoders, or layers beyond the model's."""
    if (match := LAYER.match(pattern)) and int(match[1]) >= layers:
        return True
    words = re.split(r"[.\\*:()|]+", pattern.removeprefix("re:"))
    return any(word in quantizations()["uncounted"] for word in words)


class Modules:
    """Modules of a model, matched by patterns.

    Args:
        names: Module names.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._inside: dict[str, list[str]] = {}
        for name in names:
            parts = name.split(".")
            for count in range(1, len(parts) + 1):
                self._inside.setdefault(".".join(parts[:count]), []).append(name)

    def check_experts(self, formats: Sequence[tuple[str, str]], experts: int) -> None:
        """Refuse formats that differ between a layer's experts.

        Args:
            formats: (pattern, format) pairs.
            experts: Experts per layer [1].

        Raises:
            RooflinesError: Experts in a layer differ, or some are missing.
        """
        formats_by_pattern: dict[str, list[str]] = {}
        for pattern, name in formats:
            if EXPERT.search(pattern) and not pattern.startswith("re:"):
                formats_by_pattern.setdefault(EXPERT.sub(".experts.0", pattern), []).append(name)
        for pattern, names in formats_by_pattern.items():
            if len(set(names)) > 1 or (len(names) != experts and experts):
                problem = f"has {pattern.replace('.experts.0', '.experts')} in several formats"
                raise RooflinesError("quantization_config", problem, FIX)

    def matching(self, pattern: str) -> list[str]:
        """Find the modules that a pattern matches.

        Args:
            pattern: A name, with `*` for any text, or a regular expression after `re:`. A name
                includes modules inside it, and may omit its parents.

        Raises:
            RooflinesError: It is no regular expression.
        """
        for alias, module_name in quantizations()["same"].items():
            pattern = pattern.replace(alias, module_name)
        if not pattern.startswith("re:"):
            pattern = EXPERT.sub(".experts.0", pattern)
            for name, parts in quantizations()["several"].items():
                if re.search(rf"\b{name}\b", pattern):
                    matches = (self.matching(pattern.replace(name, part)) for part in parts)
                    return [module for modules in matches for module in modules]
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
