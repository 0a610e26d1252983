"""The dtypes that a checkpoint states: `torch_dtype`, `quantization_config`, hf_quant_config.json.

Formats are found for every matrix of every layer. A class of tensors with several has the average
of their bits. What cannot be read is refused: a guess would be off by factors of two to four.

Sources: `quantization_config` of transformers; compressed-tensors and ModelOpt, whose lists of
modules left out are names, patterns with `*`, or regular expressions after `re:`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError, at_path, close_to, quote
from rooflines.basics.yaml_file import read_yaml
from rooflines.catalogue.dtypes import dtype_entries
from rooflines.models.dtypes import ModelDtypes
from rooflines.models.layers import modules_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.models.family import Stack
    from rooflines.models.keys import Keys
    from rooflines.models.shape import Shape

TORCH = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float64": "fp64"}
"""Formats by the names of torch."""

ASSUMED = "bf16"
"""The dtype of files without `torch_dtype`."""

ASSUMED_NOTE = f"torch_dtype is missing: what is not quantized is taken to be {ASSUMED}"
NO_LIST_NOTE = "the quantization lists no exceptions: token tables are taken to be {base}"
ZEROS_NOTE = "zero points of the groups, {bits} bit each, are not counted: {each} bit of a weight"

FIX = "give the dtypes by hand, of weights, experts and head, or remove the quantization"

FILE = Path(__file__).with_name("quantizations.yaml")


@cache
def _tables() -> Mapping[str, Any]:
    """The tables of the file, lists of words as tuples."""
    words = ("keys", "left-out", "uncounted")
    content = read_yaml(FILE)
    return {**content, **{name: tuple(content[name].split()) for name in words}}


LAYER = re.compile(r"(?:model\.)?layers\.(\d+)")
"""A module of one layer, by its number."""

EVERY = "*"
"""The pattern of every matrix."""

HEAD, EMBEDDING = "lm_head", "model.embed_tokens"

QUANTIZED, LISTED, PLAIN = "quantized", "listed", "plain"
"""Whether the unembedding is quantized: it is, unless a list leaves it out, it is not."""


@dataclass(frozen=True)
class Quantization:
    """A quantization as stated.

    Attributes:
        formats: Formats with the modules that have them, by pattern; `*`: every matrix.
        left_out: Patterns of modules that are not quantized, with their key.
        cache: The format of the cache; None: not stated.
        head: Whether the unembedding is quantized: always, unless it is listed as left out, or not.
        note: What else to know.
    """

    formats: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...]
    cache: str | None = None
    head: str = PLAIN
    note: str | None = None


def published_dtypes(
    keys: Keys, shape: Shape, stack: Stack, beside: Mapping[str, Any] | None = None
) -> tuple[ModelDtypes, str | None]:
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
    stated = keys.get("quantization_config")
    keys.ignore("torch_dtype", "dtype")
    notes = [] if base else [ASSUMED_NOTE]
    found = None
    if stated is not None:
        with at_path("quantization_config"):
            found = _read(stated)
    if beside is not None:
        with at_path("hf_quant_config.json"):
            other = _read(beside.get("quantization", beside))
        if found is not None and dict(found.formats) != dict(other.formats):
            problem = f"says {_shown(found)}, and hf_quant_config.json {_shown(other)}"
            raise RooflinesError("quantization_config", problem, FIX)
        found = other
    base = base or ASSUMED
    if found is None:
        return ModelDtypes(weights=base), notes[0] if notes else None
    elements = _elements(found, shape, stack, base)
    dtypes = ModelDtypes.of_elements(elements, found.cache)
    if found.head == LISTED and not found.left_out:
        notes.append(NO_LIST_NOTE.format(base=base))
    notes += filter(None, [found.note, *dtypes.averages()])
    return dtypes, "; ".join(notes) or None


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


def _read(stated: object) -> Quantization:
    """What a quantization says.

    Raises:
        RooflinesError: Its method, a key or a value is not known.
    """
    if not isinstance(stated, Mapping):
        raise RooflinesError("", f"is {quote(stated)}, which is no object", FIX)
    for key in stated:
        if key not in _tables()["keys"]:
            raise RooflinesError(str(key), "is no key that is known", FIX)
    left_out = tuple(_left_out(stated))
    algorithm = stated.get("quant_algo")
    method = stated.get("quant_method", "modelopt" if algorithm else None)
    if method in ("modelopt", "modelopt_fp4") or algorithm:
        formats = tuple(_by_algorithm(stated, str(algorithm)))
        return Quantization(formats, left_out, _cache(stated), LISTED)
    if method == "compressed-tensors":
        formats = tuple(_by_scheme(stated))
        return Quantization(formats, left_out, _cache(stated), LISTED)
    if method in ("fp8", "fbgemm_fp8"):
        return Quantization(((EVERY, "fp8"),), left_out)
    if method == "mxfp4":
        return Quantization((("mlp.experts", "mxfp4"),), left_out)
    if method in ("gptq", "awq"):
        bits, group = stated.get("bits"), stated.get("group_size", 128)
        found = _format("int", bits, None if group == -1 else group)
        if found is None:
            raise RooflinesError("bits", f"is {quote(bits)} in groups of {quote(group)}", FIX)
        head = QUANTIZED if stated.get("lm_head") else PLAIN
        note = None if group == -1 else ZEROS_NOTE.format(bits=bits, each=f"{bits / group:.2g}")
        return Quantization(((EVERY, found),), left_out, None, head, note)
    known = ("fp8", "fbgemm_fp8", "mxfp4", "gptq", "awq", "modelopt", "compressed-tensors")
    problem = f"is {quote(method)}, whose layout is not modelled"
    raise RooflinesError("quant_method", problem, FIX, close=close_to(method, known))


def _by_algorithm(stated: Mapping[str, Any], algorithm: str) -> Iterator[tuple[str, str]]:
    """Formats of ModelOpt: of every matrix, or by layer."""
    layers = stated.get("quantized_layers")
    if algorithm == "MIXED_PRECISION":
        if not isinstance(layers, Mapping) or not layers:
            raise RooflinesError("quant_algo", "is MIXED_PRECISION without quantized_layers", FIX)
        for name, form in layers.items():
            of = form if isinstance(form, Mapping) else {"quant_algo": form}
            yield str(name), _algorithm(of.get("quant_algo"), of.get("group_size"))
        return
    yield EVERY, _algorithm(algorithm, stated.get("group_size"))


def _algorithm(name: object, group: object) -> str:
    known = _tables()["algorithms"]
    if not isinstance(name, str) or name not in known:
        problem = f"is {quote(name)}, which is no algorithm that is known"
        raise RooflinesError("quant_algo", problem, FIX, close=close_to(name, known))
    found = str(known[name])
    block = dtype_entries().formats[found].block
    if None not in (group, block) and group != block:
        raise RooflinesError("group_size", f"is {quote(group)}, not {block}", FIX)
    return found


def _by_scheme(stated: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Formats of compressed-tensors, by the targets of each group."""
    groups = stated.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        raise RooflinesError("config_groups", f"is {quote(groups)}", FIX)
    for name, form in groups.items():
        with at_path(f"config_groups.{name}"):
            weights = form.get("weights") if isinstance(form, Mapping) else None
            if not isinstance(weights, Mapping):
                raise RooflinesError("weights", f"is {quote(weights)}, which is no object", FIX)
            for target in _modules(form, "targets") or ["Linear"]:
                yield EVERY if target == "Linear" else target, _scheme(weights)


def _scheme(weights: Mapping[str, Any]) -> str:
    kind, bits, group = (weights.get(key) for key in ("type", "num_bits", "group_size"))
    grouped = weights.get("strategy") not in ("tensor", "channel", "block") and group != -1
    found = _format(kind, bits, group if grouped else None)
    if found is None:
        problem = f"are {quote(bits)} bits of {quote(kind)} in groups of {quote(group)}"
        raise RooflinesError("weights", f"{problem}, which is no format of the catalogue", FIX)
    return found


def _format(kind: object, bits: object, group: object) -> str | None:
    """The format of weights of a type, in bits, of which a group shares a scale."""
    for one in _tables()["schemes"]:
        if (kind, bits, group) == (one["type"], one["bits"], one["group"]):
            return str(one["format"])
    return None


def _cache(stated: Mapping[str, Any]) -> str | None:
    """The format of the cache."""
    for key in ("kv_cache_quant_algo", "kv_cache_scheme"):
        value = stated.get(key)
        if value is None:
            continue
        with at_path(key):
            return _scheme(value) if isinstance(value, Mapping) else _algorithm(value, None)
    return None


def _left_out(stated: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Patterns of the modules that are not quantized, with the key that lists them."""
    for key in _tables()["left-out"]:
        yield from ((module, key) for module in _modules(stated, key))


def _modules(stated: Mapping[str, Any], key: str) -> list[str]:
    """Patterns of modules that a key lists."""
    listed = stated.get(key) or []
    modules = [listed] if isinstance(listed, str) else listed
    if not isinstance(modules, list) or not all(isinstance(one, str) for one in modules):
        raise RooflinesError(key, f"is {quote(listed)}, which is no list of modules", FIX)
    return modules


# ---------------------------------------------------------------- which matrix has which format


def _elements(
    found: Quantization, shape: Shape, stack: Stack, base: str
) -> dict[str, Counter[str]]:
    """Elements of each format, by class of tensors [1]."""
    matrices = {
        f"model.layers.{layer}.{module}": (tensors, size)
        for layer, of in enumerate(zip(stack.mixers, stack.mlps, strict=True))
        for module, tensors, size in modules_of(shape, *of)
    }
    names = Modules([*matrices, HEAD, EMBEDDING])
    formats: dict[str, str] = {}
    named = [each for each in found.formats if each[0] != EVERY]  # come before their class
    for pattern, name in reversed([*named, *(each for each in found.formats if each not in named)]):
        formats |= dict.fromkeys(names.meant(pattern), name)
    for pattern, key in found.left_out:
        meant = names.meant(pattern)
        if not meant and not _without_effect(pattern, shape.layers):
            problem = f"leaves out {quote(pattern)}, which is no module that is known"
            raise RooflinesError(f"quantization_config.{key}", problem, FIX)
        formats |= dict.fromkeys(meant, base)
    sums: dict[str, Counter[str]] = {}
    for name, (tensors, size) in matrices.items():
        sums.setdefault(tensors, Counter())[formats.get(name, base)] += size
    sums["head"] = Counter({base: shape.table})
    if shape.unembedding:
        quantized = found.head == QUANTIZED or (found.head == LISTED and bool(found.left_out))
        sums["head"][formats.get(HEAD, base) if quantized else base] += shape.unembedding
    return sums


def _without_effect(pattern: str, layers: int) -> bool:
    """Whether a pattern names vectors, routers, encoders, or layers beyond the model's."""
    if (match := LAYER.match(pattern)) and int(match[1]) >= layers:
        return True
    words = re.split(r"[.\\*:()|]+", pattern.removeprefix("re:"))
    return any(word in _tables()["uncounted"] for word in words)


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

    def meant(self, pattern: str) -> list[str]:
        """The modules that are meant.

        Args:
            pattern: A name, with `*` for any text, or a regular expression after `re:`. A name
                stands for what is inside the module too, and may lack what is around it.

        Raises:
            RooflinesError: It is no regular expression.
        """
        for other, ours in _tables()["same"].items():
            pattern = pattern.replace(other, ours)
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
