"""The families of config.json that are known, and the shape that the keys of a config give.

`families.yaml` has them, each as a shape with keys in place of numbers; what is not the value of a
key is computed by a function of `rules`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args

from pydantic import BeforeValidator

from rooflines.basics.errors import RooflinesError
from rooflines.hardware.entry_forms import Entry
from rooflines.models.architecture import Gqa, Indexer, Mla, Mlp, Moe, Shape, Window
from rooflines.models.hf import rules
from rooflines.models.hf.config_keys import MTP, tables
from rooflines.models.state_layers import State

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from rooflines.models.hf.config_keys import Keys

Form = dict[str, Any]

FULL, LINEAR, SLIDING, CHUNKED = (
    f"{kind}_attention" for kind in ("full", "linear", "sliding", "chunked")
)
"""Values of `layer_types`."""

BY_TYPE = {"window": (SLIDING, CHUNKED), "state": (LINEAR, "conv")}
"""Those of the layers with a window, or with a state."""

ATTENTIONS: Mapping[str, type[Entry]] = {"gqa": Gqa, "mla": Mla}

PARTS: Mapping[str, type[Entry]] = {
    "window": Window, "state": State, "sparse": Indexer, "moe": Moe, "mlp": Mlp,
}  # fmt: skip
"""The parts of a shape that some of the layers have."""

CROSSED = "{count} layers of cross-attention are stored, and skipped in steps of text alone"

CALLED = "()"
"""What the name of a function of `rules` ends with."""


class Family(Entry):
    """A family of config.json: its shape by keys, and what its classes fill in.

    The fields are described in `families.yaml`.
    """

    shape: Mapping[str, Any]
    names: Mapping[str, str] = {}
    defaults: Mapping[str, Any] = {}
    types: tuple[str, ...] = (FULL, SLIDING, CHUNKED)
    mtp: str | None = None
    crossed: str | None = None
    only: Mapping[str, tuple[Any, ...]] = {}
    each: Mapping[str, tuple[Any, ...]] | None = None
    unmodelled: Mapping[str, str] = {}
    absent: Mapping[str, str] = {}
    parallel: bool = False
    ignore: Annotated[tuple[str, ...], BeforeValidator(lambda words: tuple(words.split()))] = ()


class Stack(NamedTuple):
    """What each layer of a model is.

    Attributes:
        mixers: `full`, `window`, `state`, `cross` or `none`.
        mlps: `dense`, `moe` or `none`.
    """

    mixers: list[str]
    mlps: list[str]


@cache
def families() -> Mapping[str, Family]:
    """The table of every `model_type` that is known."""
    found = {**tables()["bases"], **tables()["families"]}
    return {name: _family(_whole(found, name)) for name in tables()["families"]}


def _family(table: Mapping[str, Any]) -> Family:
    beside = {key: value for key, value in table.items() if key in Family.model_fields}
    shape = {key: value for key, value in table.items() if key not in beside}
    return Family.model_validate({"shape": shape, **beside})


def _whole(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The table of a family, with that of the family that it is like."""
    own = dict(found[name])
    like = own.pop("like", None if name == "usual" else "dense")
    return own if like is None else _over(_whole(found, like), own)


def _over(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A table with what differs: tables within it by key, ignored keys added up."""
    merged = dict(base)
    for key, value in own.items():
        before = base.get(key)
        if key == "ignore" and before:
            merged[key] = f"{before} {value}"
        elif isinstance(value, dict) and isinstance(before, dict):
            merged[key] = _over(before, value)
        else:
            merged[key] = value
    return merged


def form_of(keys: Keys, family: Family) -> tuple[Form, Stack]:
    """The shape that a config gives, in the form of models.yaml; and what each layer is.

    Raises:
        RooflinesError: A key is missing, invalid, or has a value that the family's table does not
            cover.
    """
    keys.suppose(family.absent)
    for name, allowed in family.only.items():
        keys.only(name, *allowed)
    for name, allowed in (family.each or {}).items():
        keys.kinds(name, allowed)
    keys.check_modelled(family.unmodelled)
    keys.ignore(*family.ignore, *MTP)
    layers, whole = _layers(keys, family), dict(family.shape)
    parts = {part: dict(whole.pop(part, None) or {}) for part in (*PARTS, "attention")}
    form = {
        "layers": keys.layers(),
        "attention": _attention(keys, parts["attention"]),
        **_filled(keys, Shape, {key: each for key, each in whole.items() if key not in parts}),
    }
    for part, kind in PARTS.items():
        source = parts[part]
        by_rule = source.pop("layers", part == "mlp")
        if not any(layers[part]):
            keys.ignore(*(_words(source) if by_rule else ()))
            continue
        near = source.pop("attention", None)
        form[part] = {"layers": sum(layers[part]), **_filled(keys, kind, source)}
        if near and (own := _attention(keys, _over(parts["attention"], near))) != form["attention"]:
            form[part]["attention"] = own
    if family.crossed is not None and (crossed := keys.indices(family.crossed)):
        form |= {"layers": keys.layers() - len(crossed), "crossed": len(crossed)}
        form["mlp"]["layers"] -= len(crossed)
        keys.assumed.append(CROSSED.format(count=len(crossed)))
        stack = _stack(layers, single=False)
        mixers = ["cross" if i in crossed else each for i, each in enumerate(stack.mixers)]
        return form, Stack(mixers, stack.mlps)
    # Which window or indexer such a layer has, where others differ in theirs, is unknown.
    differ = form.get("window") or form.get("sparse", {}).get("own")
    if family.mtp is not None and keys.get(family.mtp) == 1 and not differ:
        form["mtp"] = True
    return form, _stack(layers, single=form.get("single", False))


def _layers(keys: Keys, family: Family) -> Mapping[str, list[bool]]:
    """Whether each layer has a part: by `layer_types`, else by the rule of the part."""
    sources = {part: family.shape.get(part) or {} for part in PARTS}
    found: dict[str, list[bool]] = {
        part: _computed(keys, source["layers"])
        for part, source in sources.items()
        if "layers" in source
    }
    types, none = keys.kinds("layer_types", family.types), [False] * keys.layers()
    for part, kinds in BY_TYPE.items():
        if types and not set(kinds).isdisjoint(family.types):
            typed = [kind in kinds for kind in types]
            if any(typed) and part not in found:
                problem = f"has windows, which configs of {keys.family} are not known to have"
                raise RooflinesError("layer_types", problem, f"use a model whose layers are {FULL}")
            found[part] = typed
    if any(found.get("window", ())) and keys.maybe(tokens := sources["window"]["tokens"]) is None:
        if types:
            problem = "has layers with a window, whose size is absent"
            raise RooflinesError("layer_types", problem, f"add {tokens}")
        del found["window"]
    with_mlp = [not has for has in found.get("moe", none)]
    whole = {**dict.fromkeys(PARTS, none), "mlp": with_mlp, **found}
    return {part: has or none for part, has in whole.items()}


def _stack(layers: Mapping[str, list[bool]], *, single: bool) -> Stack:
    """What each layer is, by the parts that it has."""
    mlps = [
        "moe" if moe else "dense" if mlp else "none"
        for moe, mlp in zip(layers["moe"], layers["mlp"], strict=True)
    ]
    mixers = [
        "state" if state else "window" if window else "none" if single and mlp != "none" else "full"
        for state, window, mlp in zip(layers["state"], layers["window"], mlps, strict=True)
    ]
    return Stack(mixers, mlps)


def _attention(keys: Keys, source: Mapping[str, Any]) -> Form:
    return _filled(keys, ATTENTIONS[source.get("kind", "gqa")], source)


def _filled(keys: Keys, kind: type[Entry], source: Mapping[str, Any]) -> Form:
    """A part of a shape with the values that a config has in place of its keys."""
    found = {name: _value(keys, kind.model_fields[name], each) for name, each in source.items()}
    return {name: value for name, value in found.items() if value is not None}


def _value(keys: Keys, field: FieldInfo, source: Any) -> object:  # noqa: ANN401, any YAML value
    """The value of a field, read as the type of the field says."""
    names = source if isinstance(source, list) else [source]
    if not isinstance(names[0], str) or names[0] in _constants(field.annotation):
        return _computed(keys, source)
    keys.ignore(*names)
    for name in names:
        if name.endswith(CALLED):
            return _computed(keys, name)
        if keys.get(name) is not None:
            break
    else:
        name = names[0]
    if field.is_required():
        return keys.size(name)
    if isinstance(field.default, bool):
        return keys.flag(name)
    return keys.maybe(name) if field.default is None else keys.size(name, field.default, least=0)


def _computed(keys: Keys, source: object) -> Any:  # noqa: ANN401, what the function gives
    """What a function of `rules` gives, the value whose key is true, or a constant."""
    if isinstance(source, str) and source.endswith(CALLED):
        return getattr(rules, source.removesuffix(CALLED))(keys)
    if not isinstance(source, Mapping):
        return source
    if (function := rules.BY_ARGUMENT.get(next(iter(source)))) is not None:
        return function(keys, **source)
    return next((each for each, key in source.items() if key is True or keys.flag(key)), None)


def _words(source: object) -> set[str]:
    """The words of a part of a table: keys of a config, and constants."""
    if isinstance(source, str):
        return {source}
    within = source.values() if isinstance(source, Mapping) else source
    return (
        {word for each in within for word in _words(each)}
        if isinstance(within, Iterable)
        else set()
    )


def _constants(annotation: object) -> set[str]:
    """The texts that a type allows."""
    parts = get_args(annotation)
    return {part for part in parts if isinstance(part, str)}.union(*map(_constants, parts))
