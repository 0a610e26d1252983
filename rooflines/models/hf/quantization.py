"""Quantization stated by a checkpoint: formats by module, with a reader for each method.

The method is identified first; then its keys are read. Unreadable statements are refused: a guess
would be off by factors of two to four.

Sources: as in `quantizations.yaml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError, at_path, close_to, quote
from rooflines.basics.yaml_file import read_package_yaml
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.models.hf.config_keys import OFF_VALUES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FIX = "give the dtypes by hand, of weights, experts and head, or remove the quantization"

FILE = Path(__file__).with_name("quantizations.yaml")

EVERY_MATRIX = "*"
"""Pattern that matches every matrix."""

EXPERTS, EXPERT_DTYPE = "mlp.experts", "expert_dtype"
"""Module with a layer's experts; key with their dtype."""

FILE_FORMAT = ""
"""Marker in place of a format: modules keep the file's."""

KV_CACHE_ALGORITHM = "kv_cache_quant_algo"
"""ModelOpt's key for the KV cache."""

CACHE_ONLY_NOTE = "only the KV cache is quantized"
TRANSFORMS_NOTE = "transform_config: transforms of activations at run time are not counted"

QUANTIZED, UNLESS_LISTED, UNQUANTIZED = "quantized", "listed", "plain"
"""Quantization of the LM head: always, unless listed as an exception, or never."""

WORD_LISTS = ("left-out", "uncounted", "weights-alone", "refused")


@cache
def quantizations() -> Mapping[str, Any]:
    """Load the file's tables, word lists as tuples."""
    content = read_package_yaml(FILE)
    keys = {method: tuple(words.split()) for method, words in content["keys"].items()}
    return {
        **content,
        **{name: tuple(content[name].split()) for name in WORD_LISTS},
        "keys": keys,
    }


@dataclass(frozen=True)
class Quantization:
    """Quantization as stated.

    Attributes:
        formats: (module pattern, format) pairs; `*`: every matrix.
        unquantized: (module pattern, key) pairs for modules that are not quantized.
        cache: KV cache format; None: not stated.
        head: LM head: quantized always, unless listed as an exception, or never.
        embedding: Whether the embedding table is quantized too.
        weight_only: Whether only weights are quantized, not activations.
        notes: Further notes.
    """

    formats: tuple[tuple[str, str], ...]
    unquantized: tuple[tuple[str, str], ...] = ()
    cache: str | None = None
    head: str = UNQUANTIZED
    embedding: bool = False
    weight_only: bool = False
    notes: tuple[str, ...] = ()


def read_quantization(config: object) -> Quantization:
    """Read a quantization by its method.

    Args:
        config: `quantization_config` in a config.json, or the content of hf_quant_config.json.

    Raises:
        RooflinesError: Its method, a key or a value is unknown.
    """
    if not isinstance(config, Mapping):
        raise RooflinesError("", f"is {quote(config)}, which is no object", FIX, value=config)
    method = _method(config)
    quantization = READERS[method](config)
    unknown_keys = _unknown_keys(config, method)
    unquantized = (*quantization.unquantized, *_unquantized_modules(config))
    notes = (f"ignored of the quantization: {', '.join(unknown_keys)}",) if unknown_keys else ()
    return replace(quantization, unquantized=unquantized, notes=quantization.notes + notes)


def _method(config: Mapping[str, Any]) -> str:
    """Identify the method, by its name or by its keys.

    Raises:
        RooflinesError: It is unknown, or its layout is not modelled.
    """
    if config.get("quant_algo") or config.get(KV_CACHE_ALGORITHM):
        return "modelopt"
    method_name = config.get("quant_method")
    if method_name is None:
        if {"bits", "group_size"} <= config.keys():
            return "mlx"
        if {"w_bit", "q_group_size"} <= config.keys():
            return "awq"
        if {"load_in_4bit", "load_in_8bit"} & config.keys():
            return "bitsandbytes"
    table = quantizations()
    method = (
        table["names"].get(method_name, method_name)
        if isinstance(method_name, str)
        else method_name
    )
    if isinstance(method, str) and method in READERS:
        return method
    methods = [*READERS, *table["names"]]
    problem = f"is {quote(method_name)}, whose layout is not modelled"
    close = [] if method_name in table["refused"] else close_to(method_name, methods)
    raise RooflinesError("quant_method", problem, FIX, close=close)


def _unknown_keys(config: Mapping[str, Any], method: str) -> list[str]:
    """Find unknown keys with a text or true as value.

    Raises:
        RooflinesError: An unknown key has a number or an object.
    """
    known_keys, unknown_keys = quantizations()["keys"], []
    for key, value in config.items():
        if (
            key in known_keys["all"]
            or key in known_keys[method]
            or value in OFF_VALUES
            or value == ""
        ):
            continue
        if method == "mlx" and (isinstance(value, Mapping) or value is True):
            continue  # a module
        if isinstance(value, Mapping) or type(value) is int:
            raise RooflinesError(str(key), f"is no key that is known of {method}", FIX)
        unknown_keys.append(str(key))
    return unknown_keys


# ---------------------------------------------------------------- by method


def _modelopt(config: Mapping[str, Any]) -> Quantization:
    """ModelOpt: one algorithm for every matrix, or per layer."""
    algorithm = config.get("quant_algo")
    if not algorithm and isinstance(config.get("config_groups"), Mapping):
        return _compressed(config)
    if not algorithm and (cache := _cache(config)) is not None:
        return Quantization((), cache=cache, notes=(CACHE_ONLY_NOTE,))
    formats = tuple(_by_algorithm(config, str(algorithm)))
    weight_only = algorithm in quantizations()["weights-alone"]
    return Quantization(formats, cache=_cache(config), head=UNLESS_LISTED, weight_only=weight_only)


def _by_algorithm(config: Mapping[str, Any], algorithm: str) -> Iterator[tuple[str, str]]:
    layers = config.get("quantized_layers")
    if algorithm == "MIXED_PRECISION":
        if not isinstance(layers, Mapping) or not layers:
            raise RooflinesError("quant_algo", "is MIXED_PRECISION without quantized_layers", FIX)
        for name, form in layers.items():
            entry = form if isinstance(form, Mapping) else {"quant_algo": form}
            yield str(name), _algorithm(entry.get("quant_algo"), entry.get("group_size"))
        if config.get("quant_method") in ("fp8", "finegrained_fp8"):
            problem = "is fp8 beside formats of layers, and does not say which others are in fp8"
            raise RooflinesError("quant_method", problem, FIX)
        return
    yield EVERY_MATRIX, _algorithm(algorithm, config.get("group_size"))


def _algorithm(name: object, group: object) -> str:
    algorithms = quantizations()["algorithms"]
    if not isinstance(name, str) or name not in algorithms:
        problem = f"is {quote(name)}, which is no algorithm that is known"
        raise RooflinesError("quant_algo", problem, FIX, close=close_to(name, algorithms))
    format_name = str(algorithms[name])
    if format_name.startswith("int4-g") and type(group) is int and group > 0:
        return _integer(4, group, "group_size")
    block = dtype_entries().formats[format_name].block
    if None not in (group, block) and group != block:
        raise RooflinesError("group_size", f"is {quote(group)}, not {block}", FIX, value=group)
    return format_name


def _compressed(config: Mapping[str, Any]) -> Quantization:
    """compressed-tensors: schemes by each group's targets."""
    sparse = config.get("sparsity_config") or {}
    structure = sparse.get("sparsity_structure") if isinstance(sparse, Mapping) else sparse
    packed = sparse.get("format") if isinstance(sparse, Mapping) else None
    if packed not in (None, "", "dense") and structure in (None, "", "unstructured"):
        structure = packed
    if structure not in (None, "", "unstructured") or "24" in str(config.get("format")):
        problem = f"is {quote(structure or config.get('format'))}: sparse weights are not modelled"
        raise RooflinesError("sparsity_config", problem, FIX)
    groups = config.get("config_groups")
    if not groups and (cache := _cache(config)) is not None:
        return Quantization((), cache=cache, notes=(CACHE_ONLY_NOTE,))
    if not isinstance(groups, Mapping) or not groups:
        raise RooflinesError("config_groups", f"is {quote(groups)}", FIX, value=groups)
    formats: list[tuple[str, str]] = []
    weight_only = True
    for name, scheme in groups.items():
        with at_path("config_groups", name):
            weights = scheme.get("weights") if isinstance(scheme, Mapping) else None
            if not isinstance(weights, Mapping):
                raise RooflinesError(
                    "weights", f"is {quote(weights)}, which is no object", FIX, value=weights
                )
            weight_only = weight_only and scheme.get("input_activations") is None
            targets = _modules(scheme, "targets") or ["Linear"]
            format_name = _scheme(weights)
            formats += [
                (EVERY_MATRIX if target == "Linear" else target, format_name) for target in targets
            ]
    return Quantization(
        tuple(formats),
        cache=_cache(config),
        head=UNLESS_LISTED,
        weight_only=weight_only,
        notes=(TRANSFORMS_NOTE,) if config.get("transform_config") else (),
    )


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
    """Integer format with one scale per weight group; None or -1: per channel.

    Args:
        bits: Bits per weight [bit].
        group: Weights per group [1].
        place: The key, for the message.
        zeros: Whether a group has a zero point.
    """
    name = f"int{bits}"
    if group not in (None, -1, 0):
        name += f"-g{group}{'-zp' if zeros else ''}"
    if type(bits) is not int or name not in dtype_entries().formats:
        raise RooflinesError(
            place, f"is {quote(bits)} in groups of {quote(group)}", FIX, value=bits
        )
    return name


def _fp8(config: Mapping[str, Any]) -> Quantization:
    """fp8 with scales per tensor, row or block, which are not counted; or mxfp8.

    Experts may have a separate dtype.
    """
    has_row_blocks = config.get("weight_block_size") == [1, dtype_entries().formats["mxfp8"].block]
    formats = [(EVERY_MATRIX, "mxfp8" if has_row_blocks else "fp8")]
    if (expert_dtype := config.get(EXPERT_DTYPE)) is not None:
        formats_by_dtype = quantizations()["expert-dtypes"]
        if not isinstance(expert_dtype, str) or expert_dtype not in formats_by_dtype:
            raise RooflinesError(EXPERT_DTYPE, f"is {quote(expert_dtype)}", FIX, value=expert_dtype)
        formats.append((EXPERTS, formats_by_dtype[expert_dtype]))
    return Quantization(tuple(formats), cache=_cache(config))


def _mxfp4(config: Mapping[str, Any]) -> Quantization:
    """gpt-oss: experts in mxfp4."""
    del config
    return Quantization(((EXPERTS, "mxfp4"),))


def _gptq(config: Mapping[str, Any]) -> Quantization:
    """GPTQ, as transformers, AutoGPTQ, GPTQModel and auto-round write it.

    Files have a zero point per group, also where all are alike, except in the Marlin layout.
    """
    bits, group = config.get("bits"), config.get("group_size", 128)
    if config.get("data_type", "int") not in ("int", "", None):
        problem = f"is {quote(config['data_type'])}, which is not modelled"
        raise RooflinesError("data_type", problem, FIX)
    zeros = not (config.get("is_marlin_format") or config.get("checkpoint_format") == "marlin")
    default_format = _integer(bits, group, zeros=zeros)
    formats = [(EVERY_MATRIX, default_format)]
    if modules := config.get("modules_in_block_to_quantize"):
        formats = [(str(name), default_format) for name in _flat(modules)]
    overrides = {**_object(config, "extra_config")}
    for pattern, form in _object(config, "dynamic").items():  # without a sign it is +:
        overrides[pattern if pattern.startswith(("-:", "+:")) else f"+:{pattern}"] = form
    unquantized = []
    for pattern, form in overrides.items():
        options = form if isinstance(form, Mapping) else {}
        module = pattern if pattern[:2] not in ("-:", "+:") else f"re:{pattern[2:]}"
        if pattern.startswith("-:") or (options.get("bits") or 0) >= WIDE:
            unquantized.append((module, "dynamic"))
        elif options:
            sizes = options.get("bits", bits), options.get("group_size", group)
            formats.append((module, _integer(*sizes, zeros=zeros)))
    quantized = _flag(config, "lm_head") or _flag(config, "quant_lm_head")
    return Quantization(
        tuple(formats),
        tuple(unquantized),
        head=QUANTIZED if quantized else UNQUANTIZED,
        weight_only=True,
    )


WIDE = 16
"""Minimum bits of unquantized weights [bit]."""


def _flat(parts: object) -> Iterator[object]:
    for part in parts if isinstance(parts, list) else [parts]:
        yield from part if isinstance(part, list) else [part]


def _flag(config: Mapping[str, Any], key: str) -> bool:
    """Read true or false; false where absent.

    Raises:
        RooflinesError: It is neither.
    """
    value = config.get(key) or False
    if not isinstance(value, bool):
        raise RooflinesError(
            key, f"is {quote(value)}, which is neither true nor false", FIX, value=value
        )
    return value


def _object(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Read an object; empty where absent.

    Raises:
        RooflinesError: It is none.
    """
    value = config.get(key) or {}
    if not isinstance(value, Mapping):
        raise RooflinesError(key, f"is {quote(value)}, which is no object", FIX, value=value)
    return value


def _awq(config: Mapping[str, Any]) -> Quantization:
    """AWQ, as AutoAWQ and transformers write it."""
    bits = config.get("bits", config.get("w_bit"))
    group = config.get("group_size", config.get("q_group_size", 128))
    zeros = config.get("zero_point") is not False
    return Quantization(((EVERY_MATRIX, _integer(bits, group, zeros=zeros)),), weight_only=True)


def _bitsandbytes(config: Mapping[str, Any]) -> Quantization:
    """bitsandbytes: int8, or 4 bits whose scales may be quantized too."""
    if config.get("load_in_8bit") or config.get("_load_in_8bit"):
        return Quantization(((EVERY_MATRIX, "int8"),))
    if not (config.get("load_in_4bit") or config.get("_load_in_4bit")):
        raise RooflinesError("load_in_4bit", "is false, as is load_in_8bit", FIX)
    double = config.get("bnb_4bit_use_double_quant")
    return Quantization(((EVERY_MATRIX, "nf4-double" if double else "nf4"),), weight_only=True)


def _mlx(config: Mapping[str, Any]) -> Quantization:
    """mlx-lm: every matrix and both token tables, except modules with separate values."""
    formats, unquantized = [(EVERY_MATRIX, _mlx_format(config, config))], []
    for module, options in config.items():
        if module in quantizations()["keys"]["mlx"] or module in quantizations()["keys"]["all"]:
            continue
        if isinstance(options, Mapping):
            formats.append((str(module), _mlx_format(options, config)))
        elif options is False:
            unquantized.append((str(module), "a module"))
    return Quantization(
        tuple(formats), tuple(unquantized), head=QUANTIZED, embedding=True, weight_only=True
    )


def _mlx_format(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    mode = options.get("mode", defaults.get("mode", "affine"))
    if mode != "affine":
        if mode not in quantizations()["mlx"]:
            raise RooflinesError(
                "mode", f"is {quote(mode)}, which is no mode that is known", FIX, value=mode
            )
        return str(quantizations()["mlx"][mode])
    bits, group = (options.get(key, defaults.get(key)) for key in ("bits", "group_size"))
    name = f"int{bits}-g{group}-bias"
    if type(bits) is not int or name not in dtype_entries().formats:
        raise RooflinesError(
            "bits", f"is {quote(bits)} in groups of {quote(group)}", FIX, value=bits
        )
    return name


def _quark(config: Mapping[str, Any]) -> Quantization:
    """Quark: a global format, and formats by layer pattern."""
    default_options = _object(config, "global_quant_config")
    formats = [(EVERY_MATRIX, _quark_format(default_options))]
    for pattern, options in _object(config, "layer_quant_config").items():
        with at_path("layer_quant_config", pattern):
            formats.append((str(pattern), _quark_format(options or {})))
    caches = {
        _quark_format({"weight": (options or {}).get("output_tensors")})
        for options in _object(config, "kv_cache_quant_config").values()
    }
    cache = caches.pop() if len(caches) == 1 else None
    weight_only = default_options.get("input_tensors") is None
    return Quantization(tuple(formats), cache=cache, head=UNLESS_LISTED, weight_only=weight_only)


def _quark_format(options: Mapping[str, Any]) -> str:
    weight = options.get("weight")
    if isinstance(weight, list) and len(weight) == 1:
        (weight,) = weight
    if not isinstance(weight, Mapping):
        raise RooflinesError("weight", f"is {quote(weight)}, which is no object", FIX, value=weight)
    name, group = weight.get("dtype"), weight.get("group_size")
    grouped = group if weight.get("qscheme") == "per_group" else None
    if isinstance(name, str) and name in ("int2", "int3", "int4", "uint4"):
        return _integer(int(name[-1]), grouped, "group_size", zeros=name.startswith("u"))
    formats = quantizations()["quark"]
    if (
        not isinstance(name, str)
        or name not in formats
        or (name == "fp4" and group not in (32, None))
    ):
        problem = f"is {quote(name)} in groups of {quote(group)}, which is no format that is known"
        raise RooflinesError(("weight", "dtype"), problem, FIX)
    return str(formats[name])


def _torchao(config: Mapping[str, Any]) -> Quantization:
    """torchao: one config for all matrices, or configs by module besides a default."""
    kind: Any = config.get("quant_type")
    options: Any = config.get("quant_type_kwargs") or {}
    if isinstance(kind, Mapping):
        if set(kind) != {"default"}:
            raise RooflinesError("quant_type", "has modules of their own", FIX)
        kind = kind["default"]
    if not isinstance(kind, Mapping):
        kind = {"_type": kind, "_data": options}
    by_module: dict[str, Any] = {EVERY_MATRIX: kind}
    if kind.get("_type") in MODULE_CONFIGS:
        data = kind.get("_data")
        by_module = {**_object(data if isinstance(data, Mapping) else {}, "module_fqn_to_config")}
        by_module = {EVERY_MATRIX: by_module.pop("_default", None), **by_module}
    formats, weight_only, unquantized = [], True, []
    for module, entry in by_module.items():
        if entry is not None:
            format_name, alone = _torchao_format(entry)
            formats.append((module, format_name))
            weight_only = weight_only and alone
        elif module != EVERY_MATRIX:
            unquantized.append((module, "quant_type"))
    tables = bool(config.get("include_input_output_embeddings"))
    head = QUANTIZED if tables else UNQUANTIZED
    return Quantization(
        tuple(formats),
        tuple(unquantized),
        head=head,
        embedding=tables or "model.embed_tokens" in by_module,
        weight_only=weight_only,
    )


MODULE_CONFIGS = ("ModuleFqnToConfig", "FqnToConfig")
"""torchao config types by module."""


def _torchao_format(entry: object) -> tuple[str, bool]:
    """Format by one torchao config, and whether it quantizes weights alone.

    Plain layouts keep weights with few bits in bytes.
    """
    kind = entry.get("_type") if isinstance(entry, Mapping) else entry
    options = entry.get("_data") or {} if isinstance(entry, Mapping) else {}
    types = quantizations()["torchao"]
    if not isinstance(kind, str) or kind not in types:
        problem = f"is {quote(kind)}, which is no type that is known"
        raise RooflinesError("quant_type", problem, FIX, close=close_to(kind, types))
    type_entry, stated = types[kind], options if isinstance(options, Mapping) else {}
    alone = bool(type_entry.get("alone"))
    if "format" in type_entry:
        return str(type_entry["format"]), alone
    if "formats" in type_entry:
        return _by_weight_dtype(options, type_entry["formats"]), alone
    version = entry.get("_version") if isinstance(entry, Mapping) else None
    for key, allowed in (type_entry.get("only") or {}).items():
        value = stated.get(key, version if key == "version" else None)
        name = value.get("_type") if key == "layout" and isinstance(value, Mapping) else value
        name = name.get("_data") if isinstance(name, Mapping) else name
        if name is not None and str(name).removeprefix("torch.").upper() not in allowed:
            problem = f"has {key} {quote(name)}, whose bytes are not modelled"
            raise RooflinesError("quant_type", problem, FIX, value=name)
    granularity = stated.get("weight_granularity", stated.get("granularity"))
    group = stated.get("group_size", type_entry["group"])
    if isinstance(granularity, Mapping):
        group = (granularity.get("_data") or {}).get("group_size")
    extra = type_entry["extra"] if group not in (None, -1) else ""
    return f"{_integer(type_entry['bits'], group, 'quant_type')}{extra}", alone


def _by_weight_dtype(options: object, formats: Mapping[str, str]) -> str:
    """Format by a torchao config's weight dtype; the first one where it is absent."""
    stated = options.get("weight_dtype") if isinstance(options, Mapping) else None
    dtype = stated.get("_data") if isinstance(stated, Mapping) else stated
    name = next(iter(formats)) if dtype is None else str(dtype).removeprefix("torch.")
    if name not in formats:
        raise RooflinesError("quant_type", f"has weights of {quote(dtype)}", FIX, value=dtype)
    return formats[name]


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
"""Readers by method."""


# ---------------------------------------------------------------- of several methods


def _cache(config: Mapping[str, Any]) -> str | None:
    """Read the KV cache format."""
    for key in (KV_CACHE_ALGORITHM, "kv_cache_scheme"):
        value = config.get(key)
        if value is None:
            continue
        with at_path(key):
            return _scheme(value) if isinstance(value, Mapping) else _algorithm(value, None)
    return None


def _unquantized_modules(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Find patterns of unquantized modules, each with the key that lists it."""
    for key in quantizations()["left-out"]:
        yield from ((module, key) for module in _modules(config, key))


def _modules(config: Mapping[str, Any], key: str) -> list[str]:
    """Read the module patterns that a key lists."""
    value = config.get(key) or []
    modules = [value] if isinstance(value, str) else value
    if not isinstance(modules, list) or not all(isinstance(module, str) for module in modules):
        raise RooflinesError(
            key, f"is {quote(value)}, which is no list of modules", FIX, value=value
        )
    return modules
