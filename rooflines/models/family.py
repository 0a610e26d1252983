"""The families of config.json that are known: tables of keys, and the shape that they give.

`families.yaml` has the tables and says what their keys mean. A rule of layers is a function of
`layer_rules`, what adds other mixers one of `hybrids`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator

from rooflines.basics.errors import RooflinesError, quote
from rooflines.catalogue.forms import Entry
from rooflines.models import hybrids, layer_rules
from rooflines.models.hybrids import FULL, Stack
from rooflines.models.keys import OTHER_KIND, RECURRENT, tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.models.hybrids import Form
    from rooflines.models.keys import Keys

SLIDING, CHUNKED = "sliding_attention", "chunked_attention"
"""Values of `layer_types`, besides `FULL` and `LINEAR`."""


def _rule(form: Any) -> Any:  # noqa: ANN401, a name or a table in the file
    if isinstance(form, Mapping):
        return partial(layer_rules.every_nth, **form)
    return form and getattr(layer_rules, form)


LayerRule = Annotated[Callable[..., list[bool]], BeforeValidator(_rule)]
"""Whether each layer of a config has something."""

Mixer = Annotated[Callable[..., None], BeforeValidator(lambda name: getattr(hybrids, name))]
"""Adds other mixers to the shape and the layers of a config."""

Words = Annotated[tuple[str, ...], BeforeValidator(lambda words: tuple(words.split()))]


class ExpertKeys(Entry):
    """The keys of a family's experts."""

    E: str = "num_local_experts"
    k: tuple[str, ...] = ("num_experts_per_tok",)
    Fe: str = "intermediate_size"
    shared: str | int = 0
    shared_width: str | None = None
    shared_gate: bool = False
    router_bias: bool | str = False
    expert_bias: bool = False
    latent: str | None = None
    latent_norm: str | None = None
    gated: bool = True
    layers: LayerRule = layer_rules.everywhere


class Family(Entry):
    """A family of config.json: its keys, and what its classes fill in."""

    defaults: Mapping[str, Any] = {}
    latent: bool = False
    bias: Literal["qkv", "qkvo"] | None = None
    bias_key: str | None = "attention_bias"
    qk_norm: Literal["head", "all"] | None = None
    qk_norm_key: str | None = None
    sinks: bool = False
    norms: int = 2
    window: LayerRule | None = None
    window_key: str = "sliding_window"
    chunked: bool = False
    more: Mixer | None = None
    types: tuple[str, ...] = (FULL, SLIDING, CHUNKED)
    mlp: str | None = "intermediate_size"
    mlp_bias: str | None = None
    experts: ExpertKeys | None = None
    mtp: str | None = None
    only: Mapping[str, tuple[Any, ...]] = {}
    each: Mapping[str, tuple[Any, ...]] | None = None
    ignore: Words = ()


@cache
def families() -> Mapping[str, Family]:
    """The table of every `model_type` that is known."""
    found = tables()["families"]
    return {name: Family.model_validate(_whole(found, name)) for name in found}


def _whole(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The table of a family, with that of the family that it is like."""
    own = dict(found[name])
    like = own.pop("like", None)
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


MTP = ("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers")
"""Layers for multi-token prediction, which are not counted as parameters."""


def form_of(keys: Keys, family: Family) -> tuple[Form, Stack]:
    """The shape that a config gives, in the form of models.yaml; and what each layer is.

    Raises:
        RooflinesError: A key is missing, invalid, or has a value that the family's table does not
            cover.
    """
    for name, allowed in family.only.items():
        keys.only(name, *allowed)
    for name, allowed in (family.each or {}).items():
        keys.kinds(name, allowed)
    keys.ignore(*family.ignore, *MTP)
    sparse = family.experts.layers(keys) if family.experts else [False] * keys.layers()
    windowed = _windowed(keys, family)
    form = {
        "layers": keys.layers(),
        "D": keys.size("hidden_size"),
        "V": keys.size("vocab_size"),
        "tied": keys.flag("tie_word_embeddings"),
        "attention": dict(_latent(keys) if family.latent else _heads(keys, family)),
        "norms_per_layer": family.norms,
        "window": _window(keys, family, sum(windowed)),
        "context": keys.maybe("max_position_embeddings"),
        **_mlps(keys, family, sum(sparse)),
    }
    mixers = ["window" if has else "full" for has in windowed]
    stack = Stack(mixers, ["moe" if has else "dense" for has in sparse])
    if family.more is not None:
        family.more(keys, form, stack)
    # Which window or indexer such a layer has, where others differ in theirs, is unknown.
    differ = form.get("window") or (form.get("sparse") or {}).get("own")
    if family.mtp is not None and keys.get(family.mtp) == 1 and not differ:
        form["mtp"] = True
    return {key: value for key, value in form.items() if value is not None}, stack


def _heads(keys: Keys, family: Family) -> Iterator[tuple[str, object]]:
    """Grouped-query attention."""
    heads = keys.size("num_attention_heads")
    yield from (("N", heads), ("K", keys.size("num_key_value_heads", heads)))
    yield "H", keys.size("head_dim") if keys.get("head_dim") else _whole_heads(keys, heads)
    if family.bias and (family.bias_key is None or keys.flag(family.bias_key)):
        yield "bias", family.bias
    if family.qk_norm and (family.qk_norm_key is None or keys.flag(family.qk_norm_key)):
        yield "qk_norm", family.qk_norm
    if family.sinks:
        yield "sinks", True


def _whole_heads(keys: Keys, heads: int) -> int:
    width = keys.size("hidden_size")
    if width % heads:
        problem = f"is absent, and {width} / {heads} is no whole number"
        raise RooflinesError("head_dim", problem, "add head_dim, the size of a head")
    return width // heads


def _latent(keys: Keys) -> Iterator[tuple[str, object]]:
    """Multi-head latent attention."""
    yield from (("kind", "mla"), ("N", keys.size("num_attention_heads")))
    yield "q_rank", keys.maybe("q_lora_rank")
    yield "kv_rank", keys.size("kv_lora_rank")
    yield "nope", keys.size("qk_nope_head_dim")
    yield "rope", keys.size("qk_rope_head_dim")
    yield "v", keys.size("v_head_dim")


def _windowed(keys: Keys, family: Family) -> list[bool]:
    """Whether each layer has a window: by `layer_types`, else by the family's rule."""
    types = keys.items("layer_types")
    for index, kind in enumerate(types):
        if kind not in family.types:
            reason = RECURRENT if "linear" in str(kind) else OTHER_KIND
            fix = f"use a model whose layers are {', '.join(family.types)}"
            raise RooflinesError(f"layer_types[{index}]", f"is {quote(kind)}: {reason}", fix)
    keys.kinds("layer_types", family.types)
    windowed = [kind in (SLIDING, CHUNKED) for kind in types]
    if family.window is None:
        if any(windowed):
            problem = f"has windows, which configs of {keys.family} are not known to have"
            raise RooflinesError("layer_types", problem, f"use a model whose layers are {FULL}")
        return [False] * keys.layers()
    by_rule = family.window(keys)
    return windowed or by_rule


def _window(keys: Keys, family: Family, layers: int) -> Form | None:
    """The window of some layers."""
    tokens = keys.maybe(family.window_key) if family.window is not None else None
    if layers and tokens is None and keys.items("layer_types"):
        problem = "has layers with a window, whose size is absent"
        raise RooflinesError("layer_types", problem, f"add {family.window_key}")
    if not layers or not tokens:
        return None
    return {"tokens": tokens, "layers": layers, "chunked": family.chunked}


def _mlps(keys: Keys, family: Family, sparse: int) -> Form:
    """The parts of layers after attention: an MLP, experts in some, or experts in all."""
    layers, experts = keys.layers(), family.experts
    parts: Form = {}
    if experts is not None and sparse:
        parts["moe"] = {**_moe(keys, experts), "layers": sparse}
    if sparse < layers and family.mlp is not None:
        bias = family.mlp_bias is not None and keys.flag(family.mlp_bias)
        parts["mlp"] = {"F": keys.size(family.mlp), "bias": bias, "layers": layers - sparse}
    return parts


def _moe(keys: Keys, experts: ExpertKeys) -> Form:
    width = keys.size(experts.Fe)
    per_token, *others = experts.k
    found = keys.get(per_token)
    shared = experts.shared if isinstance(experts.shared, int) else None
    if shared is None:
        shared = keys.size(str(experts.shared), 0, least=0)
    if experts.shared_width is not None:
        shared = keys.multiple(experts.shared_width, width, 0)
    bias = experts.router_bias
    form = {
        "E": keys.size(experts.E),
        "k": keys.size(per_token) if found or not others else keys.size(others[0]),
        "Fe": width,
        "shared": shared,
        "shared_gate": experts.shared_gate and shared > 0,
        "router_bias": keys.flag(bias) if isinstance(bias, str) else bias,
        "expert_bias": experts.expert_bias,
        "latent": None if experts.latent is None else keys.maybe(experts.latent),
        "latent_norm": experts.latent_norm is not None and keys.flag(experts.latent_norm),
    }
    found = {key: value for key, value in form.items() if value not in (False, None)}
    return {**found, "shared": shared, **({} if experts.gated else {"gated": False})}
