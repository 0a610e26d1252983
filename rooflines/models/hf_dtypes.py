"""The dtypes that a config.json states: `torch_dtype` and `quantization_config`, or a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError, close_to, quote
from rooflines.models.dtypes import ModelDtypes

if TYPE_CHECKING:
    from rooflines.models.keys import Keys

TORCH = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float64": "fp64"}
"""Formats by the names of torch."""

FP8, MXFP4 = "fp8", "mxfp4"

FP8_KEYS = frozenset(
    [
        "quant_method",
        "fmt",
        "weight_block_size",
        "activation_scheme",
        "modules_to_not_convert",
        "ignored_layers",
        "scale_fmt",
    ]
)
"""Keys of a quantization to fp8; its scales, one per tensor or block of 128 x 128, are not
counted."""

UNQUANTIZED = (
    "gate",
    "router",
    "e_score_correction_bias",
    "lm_head",
    "embed_tokens",
    "norm",
    "input_layernorm",
    "post_attention_layernorm",
)
"""The last names of modules that a quantization may leave out: routers, tables and norms."""

OTHERS = "self_attn"
"""The module that mxfp4 leaves out besides: all but the experts."""

FIX = "remove quantization_config, and give the dtypes by hand: of weights, of experts, of the head"

ASSUMED = "bf16"
"""The dtype of what a quantization leaves out, in files without `torch_dtype`."""

ASSUMED_NOTE = f"torch_dtype is missing: what is not quantized is taken to be {ASSUMED}"


def published_dtypes(keys: Keys) -> tuple[ModelDtypes | None, str | None]:
    """The dtypes of a config, None where it states none; and what was assumed, if anything.

    Raises:
        RooflinesError: They are stated in a way that is not known.
    """
    base = _base(keys)
    quantization = keys.get("quantization_config")
    keys.ignore("torch_dtype", "dtype")
    if quantization is None:
        return None if base is None else ModelDtypes(weights=base), None
    return _quantized(quantization, base or ASSUMED), None if base else ASSUMED_NOTE


def _quantized(quantization: object, base: str) -> ModelDtypes:
    """The dtypes of quantized tensors, and of the others, which have the base."""
    if not isinstance(quantization, Mapping):
        raise RooflinesError(
            "quantization_config", f"is {quote(quantization)}, which is no object", FIX
        )
    method = quantization.get("quant_method")
    if method == FP8:
        _check(quantization, UNQUANTIZED)
        return ModelDtypes(weights=FP8, experts=FP8, head=base)
    if method == MXFP4:
        _check(quantization, (*UNQUANTIZED, OTHERS))
        return ModelDtypes(weights=base, experts=MXFP4, head=base)
    known = (FP8, MXFP4)
    raise RooflinesError(
        "quantization_config.quant_method",
        f"is {quote(method)}, whose layout is not modelled",
        FIX,
        close=close_to(method, known),
    )


def _base(keys: Keys) -> str | None:
    """The format of `torch_dtype`, or of `dtype`, as newer files call it."""
    for key in ("torch_dtype", "dtype"):
        value = keys.get(key)
        if value is None:
            continue
        name = value.removeprefix("torch.") if isinstance(value, str) else value
        if not isinstance(name, str) or name not in TORCH:
            raise RooflinesError(
                key,
                f"is {quote(value)}, which is no dtype of weights that is known",
                f"use one of {', '.join(TORCH)}",
                close=close_to(name, TORCH),
            )
        return TORCH[name]
    return None


def _check(quantization: Mapping[str, Any], left_out: tuple[str, ...]) -> None:
    """Refuse keys that are not known, and modules left out that would need a dtype of their own."""
    place = "quantization_config"
    for key in quantization:
        if key not in FP8_KEYS:
            raise RooflinesError(f"{place}.{key}", "is no key that is known", FIX)
    for key in ("modules_to_not_convert", "ignored_layers"):
        listed = quantization.get(key) or []
        modules = [listed] if isinstance(listed, str) else listed
        if not isinstance(modules, list):
            raise RooflinesError(f"{place}.{key}", f"is {quote(listed)}, which is no list", FIX)
        for module in modules:
            if not isinstance(module, str) or module.rpartition(".")[2] not in left_out:
                problem = f"leaves out {quote(module)}, so that weights have two dtypes"
                raise RooflinesError(f"{place}.{key}", problem, FIX)
