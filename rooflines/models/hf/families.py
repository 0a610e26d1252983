"""Families of config.json: from a config's keys to an architecture.

`families.yaml` describes each family as a shape with keys in place of numbers; functions in `rules`
compute all values that are not a single key's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args

from pydantic import BeforeValidator

from rooflines.basics.errors import RooflinesError
from rooflines.hardware.entry_forms import Entry
from rooflines.models.architecture import Gqa, Indexer, Mla, Mlp, Moe, Shape, Window
from rooflines.models.compressed_attention import SharedKv
from rooflines.models.hf import rules
from rooflines.models.hf.config_keys import MTP_KEYS, tables
from rooflines.models.layer_matrices import BESIDE, VARIANT
from rooflines.models.state_layers import State

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from rooflines.models.hf.config_keys import Keys

Form = dict[str, Any]

FULL, LINEAR = "full_attention", "linear_attention"
SLIDING, CHUNKED = "sliding_attention", "chunked_attention"
"""Values of `layer_types`."""

COMPRESSED = ("compressed_sparse_attention", "heavily_compressed_attention")
"""Values of `layer_types` for layers with compressed entries beside a window."""

LAYER_TYPES = {"window": (SLIDING, CHUNKED, *COMPRESSED), "state": (LINEAR, "conv", "mamba")}
"""Values of `layer_types` for layers with a window, or an SSM state."""

ATTENTIONS: Mapping[str, type[Entry]] = {"gqa": Gqa, "mla": Mla, "shared-kv": SharedKv}

PARTS: Mapping[str, type[Entry]] = {
    "window": Window,
    "state": State,
    "sparse": Indexer,
    "moe": Moe,
    "mlp": Mlp,
}
"""Parts of a shape that only some layers have."""

CROSS_NOTE = "{count} layers of cross-attention are stored, and skipped in steps of text alone"

CALL = "()"
"""Suffix for calls to functions in `rules`."""


class Family(Entry):
    """Family of config.json: its shape by keys, and defaults in its classes.

    `families.yaml` describes the fields.
    """

    shape: Mapping[str, Any]
    names: Mapping[str, str] = {}
    defaults: Mapping[str, Any] = {}
    types: tuple[str, ...] = (FULL, SLIDING, CHUNKED)
    mtp: str | None = None
    crossed: str | None = None
    only: Mapping[str, tuple[Any, ...]] = {}
    per_layer: Mapping[str, tuple[Any, ...]] | None = None
    unmodelled: Mapping[str, str] = {}
    absent: Mapping[str, str] = {}
    parallel: bool = False
    ignore: Annotated[tuple[str, ...], BeforeValidator(lambda words: tuple(words.split()))] = ()


class LayerTypes(NamedTuple):
    """Type of every layer, by mixer and by MLP.

    Attributes:
        layer_types: `full`, `window`, `state`, `beside`, `cross` or `none`; or, in both lists, a
            variant's name.
        mlp_types: `dense`, `moe` or `none`; or the same.
    """

    layer_types: list[str]
    mlp_types: list[str]


@cache
def families() -> Mapping[str, Family]:
    """Tables of all families, by `model_type`."""
    entries = {**tables()["bases"], **tables()["families"]}
    return {name: _family(_inherited(entries, name)) for name in tables()["families"]}


def _family(table: Mapping[str, Any]) -> Family:
    options = {key: value for key, value in table.items() if key in Family.model_fields}
    shape = {key: value for key, value in table.items() if key not in options}
    return Family.model_validate({"shape": shape, **options})


def _inherited(entries: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Resolve a family's table, with the table of its base under `like`."""
    entry = dict(entries[name])
    base = entry.pop("like", None if name == "usual" else "dense")
    return entry if base is None else _merged(_inherited(entries, base), entry)


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge changes into a table: nested tables by key, ignored keys appended."""
    merged = dict(base)
    for key, value in changes.items():
        base_value = base.get(key)
        if key == "ignore" and base_value:
            merged[key] = f"{base_value} {value}"
        elif isinstance(value, dict) and isinstance(base_value, dict):
            merged[key] = _merged(base_value, value)
        else:
            merged[key] = value
    return merged


def form_of(keys: Keys, family: Family) -> tuple[Form, LayerTypes]:
    """Derive a config's shape, in the form of models.yaml, and the type of every layer.

    Raises:
        RooflinesError: A key is missing, invalid, or has a value that the family's table does not
            cover.
    """
    keys.assume_absent(family.absent)
    for name, allowed in family.only.items():
        keys.require(name, *allowed)
    for name, allowed in (family.per_layer or {}).items():
        keys.per_layer(name, allowed)
    keys.check_modelled(family.unmodelled)
    keys.ignore(*family.ignore, *MTP_KEYS)
    layers, shape = _layers(keys, family), dict(family.shape)
    parts = {part: dict(shape.pop(part, None) or {}) for part in (*PARTS, "attention")}
    form = {
        "layers": keys.layers(),
        "attention": _attention(keys, parts["attention"]),
        **_fill(keys, Shape, {key: value for key, value in shape.items() if key not in parts}),
    }
    for part, entry_type in PARTS.items():
        source = parts[part]
        has_layer_rule = source.pop("layers", part == "mlp")
        if not any(layers[part]):
            keys.ignore(*(_words(source) if has_layer_rule else ()))
            continue
        local_source = source.pop("attention", None)
        form[part] = {"layers": sum(layers[part]), **_fill(keys, entry_type, source)}
        if (
            local_source
            and (local_attention := _attention(keys, _merged(parts["attention"], local_source)))
            != form["attention"]
        ):
            form[part]["attention"] = local_attention
    if family.crossed is not None and (crossed := keys.indices(family.crossed)):
        form |= {"layers": keys.layers() - len(crossed), "crossed": len(crossed)}
        form["mlp"]["layers"] -= len(crossed)
        keys.assumptions.append(CROSS_NOTE.format(count=len(crossed)))
        types = _layer_types(layers, single=False)
        layer_types = [
            "cross" if i in crossed else value for i, value in enumerate(types.layer_types)
        ]
        return form, LayerTypes(layer_types, types.mlp_types)
    if form.get("variants"):
        places = rules.variant_places(keys)
        variants = [None if place is None else f"{VARIANT}{place}" for place in places]
        mixers, mlps = ([name or usual for name in variants] for usual in ("full", "dense"))
        return form, LayerTypes(mixers, mlps)
    # Which window or indexer such a layer has, where others differ in theirs, is unknown.
    local_layers_differ = form.get("window") or form.get("sparse", {}).get("indexer_layers")
    if family.mtp is not None and keys.get(family.mtp) == 1 and not local_layers_differ:
        form["mtp"] = True
    types = _layer_types(layers, single=form.get("single", False))
    if form.get("state", {}).get("beside"):
        mixers = [BESIDE if kind == "state" else kind for kind in types.layer_types]
        types = types._replace(layer_types=mixers)
    return form, types


def _layers(keys: Keys, family: Family) -> Mapping[str, list[bool]]:
    """Presence of every part per layer: by `layer_types`, else by the part's rule."""
    sources = {part: family.shape.get(part) or {} for part in PARTS}
    layers: dict[str, list[bool]] = {
        part: _compute(keys, source["layers"])
        for part, source in sources.items()
        if "layers" in source
    }
    types, no_layers = keys.per_layer("layer_types", family.types), [False] * keys.layers()
    for part, kinds in LAYER_TYPES.items():
        if types and not set(kinds).isdisjoint(family.types):
            has_kind = [kind in kinds for kind in types]
            if any(has_kind) and part not in layers:
                problem = f"has windows, which configs of {keys.family} are not known to have"
                raise RooflinesError("layer_types", problem, f"use a model whose layers are {FULL}")
            layers[part] = has_kind
    tokens = sources["window"].get("tokens", CALL)
    if (
        any(layers.get("window", ()))
        and not tokens.endswith(CALL)
        and keys.optional_size(tokens) is None
    ):
        if types:
            problem = "has layers with a window, whose size is absent"
            raise RooflinesError("layer_types", problem, f"add {tokens}")
        del layers["window"]
    has_mlp = [not is_used for is_used in layers.get("moe", no_layers)]
    all_parts = {**dict.fromkeys(PARTS, no_layers), "mlp": has_mlp, **layers}
    return {part: is_used or no_layers for part, is_used in all_parts.items()}


def _layer_types(layers: Mapping[str, list[bool]], *, single: bool) -> LayerTypes:
    """Type of every layer, from the parts that it has."""
    mlp_types = [
        "moe" if moe else "dense" if mlp else "none"
        for moe, mlp in zip(layers["moe"], layers["mlp"], strict=True)
    ]
    layer_types = [
        "state" if state else "window" if window else "none" if single and mlp != "none" else "full"
        for state, window, mlp in zip(layers["state"], layers["window"], mlp_types, strict=True)
    ]
    return LayerTypes(layer_types, mlp_types)


def _attention(keys: Keys, source: Mapping[str, Any]) -> Form:
    return _fill(keys, ATTENTIONS[source.get("kind", "gqa")], source)


def _fill(keys: Keys, entry_type: type[Entry], source: Mapping[str, Any]) -> Form:
    """Fill a part's keys with the config's values."""
    fields = {
        name: _value(keys, entry_type.model_fields[name], field_source)
        for name, field_source in source.items()
    }
    return {name: value for name, value in fields.items() if value is not None}


def _value(keys: Keys, field: FieldInfo, source: Any) -> object:  # noqa: ANN401, any YAML value
    """Read a field's value as its type requires."""
    names = source if isinstance(source, list) else [source]
    if not isinstance(names[0], str) or names[0] in _constants(field.annotation):
        return _compute(keys, source)
    keys.ignore(*names)
    for name in names:
        if name.endswith(CALL):
            return _compute(keys, name)
        if keys.get(name) is not None:
            break
    else:
        name = names[0]
    if field.is_required():
        return keys.size(name)
    if isinstance(field.default, bool):
        return keys.flag(name)
    return (
        keys.optional_size(name)
        if field.default is None
        else keys.size(name, field.default, minimum=0)
    )


def _compute(keys: Keys, source: object) -> Any:  # noqa: ANN401, what the function gives
    """Compute a value: by a function in `rules`, by the key that is true, or constant."""
    if isinstance(source, str) and source.endswith(CALL):
        return getattr(rules, source.removesuffix(CALL))(keys)
    if not isinstance(source, Mapping):
        return source
    if (function := rules.BY_ARGUMENT.get(next(iter(source)))) is not None:
        return function(keys, **source)
    return next(
        (candidate for candidate, key in source.items() if key is True or keys.flag(key)), None
    )


def _words(source: object) -> set[str]:
    """Find all words in a part of a table: config keys and constants."""
    if isinstance(source, str):
        return {source}
    items = source.values() if isinstance(source, Mapping) else source
    return (
        {word for item in items for word in _words(item)} if isinstance(items, Iterable) else set()
    )


def _constants(annotation: object) -> set[str]:
    """Texts that a type allows."""
    parts = get_args(annotation)
    return {part for part in parts if isinstance(part, str)}.union(*map(_constants, parts))
