"""What a checkpoint says of its quantization: formats of modules, by its method.

The method is found first; then its own keys are read. What cannot be read is refused: a guess would
be off by factors of two to four.

Sources: as of `quantizations.yaml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError, at_path, close_to, quote
from rooflines.basics.yaml_file import read_yaml
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.models.hf.config_keys import OFF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FIX = "give the dtypes by hand, of weights, experts and head, or remove the quantization"

FILE = Path(__file__).with_name("quantizations.yaml")

EVERY = "*"
"""The pattern of every matrix."""

NOT_QUANTIZED = ""
"""In place of a format: the modules keep that of the file."""

QUANTIZED, LISTED, PLAIN = "quantized", "listed", "plain"
"""Whether the unembedding is quantized: it is, unless a list leaves it out, it is not."""

LISTED_WORDS = ("left-out", "uncounted", "weights-alone", "refused")


@cache
def quantizations() -> Mapping[str, Any]:
    """The tables of the file, lists of words as tuples."""
    content = read_yaml(FILE)
    keys = {method: tuple(words.split()) for method, words in content["keys"].items()}
    return {
        **content,
        **{name: tuple(content[name].split()) for name in LISTED_WORDS},
        "keys": keys,
    }


@dataclass(frozen=True)
class Quantization:
    """A quantization as stated.

    Attributes:
        formats: Formats with the modules that have them, by pattern; `*`: every matrix.
        left_out: Patterns of modules that are not quantized, with their key.
        cache: The format of the cache; None: not stated.
        head: Whether the unembedding is quantized: always, unless it is listed as left out, or not.
        embedding: Whether the embedding table is quantized too.
        alone: Whether weights alone are quantized, and no activations.
        notes: What else to know.
    """

    formats: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...] = ()
    cache: str | None = None
    head: str = PLAIN
    embedding: bool = False
    alone: bool = False
    notes: tuple[str, ...] = ()


def read_quantization(stated: object) -> Quantization:
    """What a quantization says.

    Args:
        stated: `quantization_config` of a config.json, or what hf_quant_config.json has.

    Raises:
        RooflinesError: Its method, a key or a value is not known.
    """
    if not isinstance(stated, Mapping):
        raise RooflinesError("", f"is {quote(stated)}, which is no object", FIX)
    method = _method(stated)
    found = READERS[method](stated)
    unread = _unread(stated, method)
    left_out = (*found.left_out, *_left_out(stated))
    notes = (f"ignored of the quantization: {', '.join(unread)}",) if unread else ()
    return replace(found, left_out=left_out, notes=found.notes + notes)


def _method(stated: Mapping[str, Any]) -> str:
    """The method, by its name or by its own keys.

    Raises:
        RooflinesError: It is not known, or its layout is not modelled.
    """
    if stated.get("quant_algo"):
        return "modelopt"
    named = stated.get("quant_method")
    if named is None:
        if {"bits", "group_size"} <= stated.keys():
            return "mlx"
        if {"w_bit", "q_group_size"} <= stated.keys():
            return "awq"
        if {"load_in_4bit", "load_in_8bit"} & stated.keys():
            return "bitsandbytes"
    table = quantizations()
    method = table["names"].get(named, named) if isinstance(named, str) else named
    if isinstance(method, str) and method in READERS:
        return method
    known = [*READERS, *table["names"]]
    problem = f"is {quote(named)}, whose layout is not modelled"
    close = [] if named in table["refused"] else close_to(named, known)
    raise RooflinesError("quant_method", problem, FIX, close=close)


def _unread(stated: Mapping[str, Any], method: str) -> list[str]:
    """The keys that nobody knows and that switch or name something.

    Raises:
        RooflinesError: There is one with a number or an object.
    """
    table, found = quantizations()["keys"], []
    for key, value in stated.items():
        if key in table["all"] or key in table[method] or value in OFF or value == "":
            continue
        if method == "mlx" and (isinstance(value, Mapping) or value is True):
            continue  # a module
        if isinstance(value, Mapping) or type(value) is int:
            raise RooflinesError(str(key), f"is no key that is known of {method}", FIX)
        found.append(str(key))
    return found


# ---------------------------------------------------------------- by method


def _modelopt(stated: Mapping[str, Any]) -> Quantization:
    """ModelOpt: an algorithm of every matrix, or of layers."""
    algorithm = stated.get("quant_algo")
    if not algorithm and isinstance(stated.get("config_groups"), Mapping):
        return _compressed(stated)
    formats = tuple(_by_algorithm(stated, str(algorithm)))
    alone = algorithm in quantizations()["weights-alone"]
    return Quantization(formats, cache=_cache(stated), head=LISTED, alone=alone)


def _by_algorithm(stated: Mapping[str, Any], algorithm: str) -> Iterator[tuple[str, str]]:
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
    known = quantizations()["algorithms"]
    if not isinstance(name, str) or name not in known:
        problem = f"is {quote(name)}, which is no algorithm that is known"
        raise RooflinesError("quant_algo", problem, FIX, close=close_to(name, known))
    found = str(known[name])
    if found.startswith("int4-g") and type(group) is int and group > 0:
        return _integer(4, group, "group_size")
    block = dtype_entries().formats[found].block
    if None not in (group, block) and group != block:
        raise RooflinesError("group_size", f"is {quote(group)}, not {block}", FIX)
    return found


def _compressed(stated: Mapping[str, Any]) -> Quantization:
    """compressed-tensors: schemes by the targets of groups."""
    sparse = stated.get("sparsity_config") or {}
    structure = sparse.get("sparsity_structure") if isinstance(sparse, Mapping) else sparse
    packed = sparse.get("format") if isinstance(sparse, Mapping) else None
    if packed not in (None, "", "dense") and structure in (None, "", "unstructured"):
        structure = packed
    if structure not in (None, "", "unstructured") or "24" in str(stated.get("format")):
        problem = f"is {quote(structure or stated.get('format'))}: sparse weights are not modelled"
        raise RooflinesError("sparsity_config", problem, FIX)
    groups = stated.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        raise RooflinesError("config_groups", f"is {quote(groups)}", FIX)
    formats: list[tuple[str, str]] = []
    alone = True
    for name, form in groups.items():
        with at_path(f"config_groups.{name}"):
            weights = form.get("weights") if isinstance(form, Mapping) else None
            if not isinstance(weights, Mapping):
                raise RooflinesError("weights", f"is {quote(weights)}, which is no object", FIX)
            alone = alone and form.get("input_activations") is None
            targets = _modules(form, "targets") or ["Linear"]
            found = _scheme(weights)
            formats += [(EVERY if target == "Linear" else target, found) for target in targets]
    return Quantization(tuple(formats), cache=_cache(stated), head=LISTED, alone=alone)


def _scheme(weights: Mapping[str, Any]) -> str:
    kind, bits, group = (weights.get(key) for key in ("type", "num_bits", "group_size"))
    grouped = weights.get("strategy") not in ("tensor", "channel", "block") and group != -1
    group = group if grouped else None
    with at_path("weights"):
        if kind == "int":
            return _integer(bits, group, zeros=weights.get("symmetric") is False)
        for scheme in quantizations()["schemes"]:
            if (kind, bits, group) == ("float", scheme["bits"], scheme["group"]):
                return str(scheme["format"])
    problem = f"are {quote(bits)} bits of {quote(kind)} in groups of {quote(group)}"
    raise RooflinesError("weights", f"{problem}, which is no format of the catalogue", FIX)


def _integer(bits: object, group: object, place: str = "bits", *, zeros: bool = False) -> str:
    """The format of integers, with a scale for a group of weights; None or -1: of a channel.

    Args:
        bits: Bits of a weight [bit].
        group: Weights of a group [1].
        place: The key, for the message.
        zeros: Whether a group has a zero point.
    """
    name = f"int{bits}"
    if group not in (None, -1, 0):
        name += f"-g{group}{'-zp' if zeros else ''}"
    if type(bits) is not int or name not in dtype_entries().formats:
        raise RooflinesError(place, f"is {quote(bits)} in groups of {quote(group)}", FIX)
    return name


def _fp8(stated: Mapping[str, Any]) -> Quantization:
    """fp8 with a scale of a tensor, a row or a block, which are not counted, or mxfp8."""
    of_rows = stated.get("weight_block_size") == [1, dtype_entries().formats["mxfp8"].block]
    return Quantization(((EVERY, "mxfp8" if of_rows else "fp8"),), cache=_cache(stated))


def _mxfp4(stated: Mapping[str, Any]) -> Quantization:
    """gpt-oss: experts in mxfp4."""
    del stated
    return Quantization((("mlp.experts", "mxfp4"),))


def _gptq(stated: Mapping[str, Any]) -> Quantization:
    """GPTQ, as transformers, AutoGPTQ, GPTQModel and auto-round write it.

    Files have zero points of groups, also where all are alike, but in the layout of Marlin.
    """
    bits, group = stated.get("bits"), stated.get("group_size", 128)
    if stated.get("data_type", "int") not in ("int", "", None):
        problem = f"is {quote(stated['data_type'])}, which is not modelled"
        raise RooflinesError("data_type", problem, FIX)
    zeros = not (stated.get("is_marlin_format") or stated.get("checkpoint_format") == "marlin")
    usual = _integer(bits, group, zeros=zeros)
    formats = [(EVERY, usual)]
    if parts := stated.get("modules_in_block_to_quantize"):
        formats = [(str(name), usual) for name in _flat(parts)]
    changed = {**_object(stated, "extra_config")}
    for pattern, form in _object(stated, "dynamic").items():  # without a sign it is +:
        changed[pattern if pattern.startswith(("-:", "+:")) else f"+:{pattern}"] = form
    left_out = []
    for pattern, form in changed.items():
        own = form if isinstance(form, Mapping) else {}
        module = pattern if pattern[:2] not in ("-:", "+:") else f"re:{pattern[2:]}"
        if pattern.startswith("-:") or (own.get("bits") or 0) >= WIDE:
            left_out.append((module, "dynamic"))
        elif own:
            sizes = own.get("bits", bits), own.get("group_size", group)
            formats.append((module, _integer(*sizes, zeros=zeros)))
    quantized = _flag(stated, "lm_head") or _flag(stated, "quant_lm_head")
    return Quantization(
        tuple(formats),
        tuple(left_out),
        head=QUANTIZED if quantized else PLAIN,
        alone=True,
    )


WIDE = 16
"""Bits from which on weights are not quantized [bit]."""


def _flat(parts: object) -> Iterator[object]:
    for part in parts if isinstance(parts, list) else [parts]:
        yield from part if isinstance(part, list) else [part]


def _flag(stated: Mapping[str, Any], key: str) -> bool:
    """True or false, false where it is absent.

    Raises:
        RooflinesError: It is neither.
    """
    value = stated.get(key) or False
    if not isinstance(value, bool):
        raise RooflinesError(key, f"is {quote(value)}, which is neither true nor false", FIX)
    return value


def _object(stated: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An object, empty where it is absent.

    Raises:
        RooflinesError: It is none.
    """
    value = stated.get(key) or {}
    if not isinstance(value, Mapping):
        raise RooflinesError(key, f"is {quote(value)}, which is no object", FIX)
    return value


def _awq(stated: Mapping[str, Any]) -> Quantization:
    """AWQ, as AutoAWQ and transformers write it."""
    bits = stated.get("bits", stated.get("w_bit"))
    group = stated.get("group_size", stated.get("q_group_size", 128))
    zeros = stated.get("zero_point") is not False
    return Quantization(((EVERY, _integer(bits, group, zeros=zeros)),), alone=True)


def _bitsandbytes(stated: Mapping[str, Any]) -> Quantization:
    """bitsandbytes: int8, or 4 bits whose scales may be quantized too."""
    if stated.get("load_in_8bit") or stated.get("_load_in_8bit"):
        return Quantization(((EVERY, "int8"),))
    if not (stated.get("load_in_4bit") or stated.get("_load_in_4bit")):
        raise RooflinesError("load_in_4bit", "is false, as is load_in_8bit", FIX)
    double = stated.get("bnb_4bit_use_double_quant")
    return Quantization(((EVERY, "nf4-double" if double else "nf4"),), alone=True)


def _mlx(stated: Mapping[str, Any]) -> Quantization:
    """mlx-lm: every matrix and both tables, but for modules with values of their own."""
    formats, left_out = [(EVERY, _mlx_format(stated, stated))], []
    for module, own in stated.items():
        if module in quantizations()["keys"]["mlx"] or module in quantizations()["keys"]["all"]:
            continue
        if isinstance(own, Mapping):
            formats.append((str(module), _mlx_format(own, stated)))
        elif own is False:
            left_out.append((str(module), "a module"))
    return Quantization(tuple(formats), tuple(left_out), head=QUANTIZED, embedding=True, alone=True)


def _mlx_format(own: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    mode = own.get("mode", usual.get("mode", "affine"))
    if mode != "affine":
        if mode not in quantizations()["mlx"]:
            raise RooflinesError("mode", f"is {quote(mode)}, which is no mode that is known", FIX)
        return str(quantizations()["mlx"][mode])
    bits, group = (own.get(key, usual.get(key)) for key in ("bits", "group_size"))
    name = f"int{bits}-g{group}-bias"
    if type(bits) is not int or name not in dtype_entries().formats:
        raise RooflinesError("bits", f"is {quote(bits)} in groups of {quote(group)}", FIX)
    return name


def _quark(stated: Mapping[str, Any]) -> Quantization:
    """Quark: a format of all, and of patterns of layers."""
    usual = _object(stated, "global_quant_config")
    formats = [(EVERY, _quark_format(usual))]
    for pattern, own in _object(stated, "layer_quant_config").items():
        with at_path(f"layer_quant_config.{pattern}"):
            formats.append((str(pattern), _quark_format(own or {})))
    caches = {
        _quark_format({"weight": (own or {}).get("output_tensors")})
        for own in _object(stated, "kv_cache_quant_config").values()
    }
    cache = caches.pop() if len(caches) == 1 else None
    alone = usual.get("input_tensors") is None
    return Quantization(tuple(formats), cache=cache, head=LISTED, alone=alone)


def _quark_format(own: Mapping[str, Any]) -> str:
    weight = own.get("weight")
    if isinstance(weight, list) and len(weight) == 1:
        (weight,) = weight
    if not isinstance(weight, Mapping):
        raise RooflinesError("weight", f"is {quote(weight)}, which is no object", FIX)
    name, group = weight.get("dtype"), weight.get("group_size")
    grouped = group if weight.get("qscheme") == "per_group" else None
    if isinstance(name, str) and name in ("int2", "int3", "int4", "uint4"):
        return _integer(int(name[-1]), grouped, "group_size", zeros=name.startswith("u"))
    known = quantizations()["quark"]
    if (
        not isinstance(name, str)
        or name not in known
        or (name == "fp4" and group not in (32, None))
    ):
        problem = f"is {quote(name)} in groups of {quote(group)}, which is no format that is known"
        raise RooflinesError("weight.dtype", problem, FIX)
    return str(known[name])


def _torchao(stated: Mapping[str, Any]) -> Quantization:
    """torchao: a config of all matrices."""
    kind: Any = stated.get("quant_type")
    data: Any = stated.get("quant_type_kwargs") or {}
    if isinstance(kind, Mapping):
        if set(kind) != {"default"}:
            raise RooflinesError("quant_type", "has modules of their own", FIX)
        kind = kind["default"]
    if isinstance(kind, Mapping):
        kind, data = kind.get("_type"), kind.get("_data") or {}
    known = quantizations()["torchao"]
    if not isinstance(kind, str) or kind not in known:
        problem = f"is {quote(kind)}, which is no type that is known"
        raise RooflinesError("quant_type", problem, FIX, close=close_to(kind, known))
    form = known[kind]
    if "format" in form:
        found = str(form["format"])
    else:
        group = data.get("group_size", form["group"]) if isinstance(data, Mapping) else None
        found = f"{_integer(form['bits'], group, 'quant_type')}-bias"
    tables = bool(stated.get("include_input_output_embeddings"))
    head = QUANTIZED if tables else PLAIN
    return Quantization(
        ((EVERY, found),), head=head, embedding=tables, alone=bool(form.get("alone"))
    )


READERS: Mapping[str, Callable[[Mapping[str, Any]], Quantization]] = {
    "modelopt": _modelopt,
    "compressed-tensors": _compressed,
    "fp8": _fp8,
    "mxfp4": _mxfp4,
    "gptq": _gptq,
    "awq": _awq,
    "bitsandbytes": _bitsandbytes,
    "mlx": _mlx,
    "quark": _quark,
    "torchao": _torchao,
}
"""What reads a quantization, by its method."""


# ---------------------------------------------------------------- of several methods


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
    for key in quantizations()["left-out"]:
        yield from ((module, key) for module in _modules(stated, key))


def _modules(stated: Mapping[str, Any], key: str) -> list[str]:
    """Patterns of modules that a key lists."""
    listed = stated.get(key) or []
    modules = [listed] if isinstance(listed, str) else listed
    if not isinstance(modules, list) or not all(isinstance(each, str) for each in modules):
        raise RooflinesError(key, f"is {quote(listed)}, which is no list of modules", FIX)
    return modules
