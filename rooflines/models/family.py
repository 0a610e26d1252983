"""The keys of a family of config.json, and the shape that they give.

A family is data: which keys hold its sizes, what its files leave out, and which layers have a
window, experts or another mixer. `families.yaml` has the tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from rooflines.basics.errors import RooflinesError, quote
from rooflines.models.hybrids import FULL, Stack
from rooflines.models.keys import RECURRENT, SPARSE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rooflines.models.hybrids import Form
    from rooflines.models.keys import Keys

    LayerRule = Callable[[Keys], list[bool]]  # whether each layer has something

SLIDING, CHUNKED = "sliding_attention", "chunked_attention"
"""Values of `layer_types`, besides `FULL` and `LINEAR`."""

DENSE, SPARSE_MLP = "dense", "sparse"
"""Values of `mlp_layer_types`."""


@dataclass(frozen=True)
class Every:
    """Layers at one place of a period.

    Attributes:
        every: Layers of a period [1].
        key: A key that states the period.
        last: Whether it is the last layer of a period, else the first.
        others: Whether it is the other layers instead.
    """

    every: int
    key: str | None = None
    last: bool = True
    others: bool = False

    def __call__(self, keys: Keys) -> list[bool]:
        """Whether each layer is meant."""
        period = self.every if self.key is None else keys.size(self.key, self.every)
        place = period - 1 if self.last else 0
        return [(index % period == place) != self.others for index in range(keys.layers())]


def everywhere(keys: Keys) -> list[bool]:
    """All layers."""
    return [True] * keys.layers()


def if_switched_on(keys: Keys) -> list[bool]:
    """The windows of Qwen: from `max_window_layers` on, where `use_sliding_window` is true."""
    used, layers = keys.flag("use_sliding_window"), keys.layers()
    first = keys.size("max_window_layers", layers, least=0)
    return [used and index >= first for index in range(layers)]


def with_rope(keys: Keys) -> list[bool]:
    """The chunks of Llama 4: layers with rotary embeddings, all but every fourth."""
    layers = keys.layers()
    interval = keys.size("no_rope_layer_interval", 4)
    rotary = keys.items("no_rope_layers") or [(i + 1) % interval != 0 for i in range(layers)]
    if len(rotary) != layers or any(kind not in (0, 1) for kind in rotary):
        problem = f"is no list of a 0 or 1 for each of the {layers} layers"
        raise RooflinesError("no_rope_layers", problem, "correct it, or leave it out")
    return [bool(kind) for kind in rotary]


def by_sparse_step(keys: Keys) -> list[bool]:
    """The experts of Qwen: in every `decoder_sparse_step`-th layer but `mlp_only_layers`."""
    step, dense = keys.size("decoder_sparse_step", 1), keys.indices("mlp_only_layers")
    return [(i + 1) % step == 0 and i not in dense for i in range(keys.layers())]


def interleaved(keys: Keys) -> list[bool]:
    """The experts of Llama 4: in `moe_layers`, or in every n-th layer."""
    layers, step = keys.layers(), keys.size("interleave_moe_layer_step", 1)
    stated = keys.indices("moe_layers") or range(step - 1, layers, step)
    return [index in stated for index in range(layers)]


def after_dense(keys: Keys) -> list[bool]:
    """The experts of DeepSeek: after `first_k_dense_replace`, by `moe_layer_freq`.

    Raises:
        RooflinesError: `mlp_layer_types` contradicts them.
    """
    layers = keys.layers()
    first = keys.size("first_k_dense_replace", 0, least=0)
    frequency = keys.get("moe_layer_freq", 1)
    if isinstance(frequency, list):
        stated = [kind == 1 for kind in keys.kinds("moe_layer_freq", (0, 1))]
    else:
        every_nth = keys.size("moe_layer_freq", 1)
        stated = [index >= first and index % every_nth == 0 for index in range(layers)]
    types = keys.kinds("mlp_layer_types", (DENSE, SPARSE_MLP))
    if types and [kind == SPARSE_MLP for kind in types] != stated:
        problem = "contradicts first_k_dense_replace and moe_layer_freq"
        raise RooflinesError("mlp_layer_types", problem, "correct one of them")
    return stated


def between(keys: Keys) -> list[bool]:
    """The experts of ERNIE: from a first to a last layer, at an interval."""
    layers = keys.layers()
    step = keys.size("moe_layer_interval", 1)
    first = keys.size("moe_layer_start_index", 0, least=0)
    last = keys.get("moe_layer_end_index", layers - 1)
    end = layers - 1 if last == -1 else keys.size("moe_layer_end_index", layers - 1, least=0)
    return [first <= i <= end and (i + 1) % step == 0 for i in range(layers)]


@dataclass(frozen=True)
class ExpertKeys:
    """The keys of a family's experts.

    Attributes:
        E: Key of the routed experts.
        k: Keys of the experts per token; the first that is there counts.
        Fe: Key of the width of an expert.
        shared: Key of the shared experts, or their number [1].
        shared_width: Key of the width of all shared experts together.
        shared_gate: Whether a gate of width D weighs the shared expert.
        router_bias: Whether each expert has a routing bias, or the key that says so.
        expert_bias: Whether the experts have biases.
        latent: Key of the width that tokens are projected to for routed experts.
        latent_norm: Key that says whether there is a norm of that width.
        gated: Whether experts have a gate.
        layers: Which layers have experts.
    """

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
    layers: LayerRule = everywhere


@dataclass(frozen=True)
class Family:
    """A family of config.json: its keys, and what its classes fill in.

    Attributes:
        defaults: What its classes fill in, by key.
        latent: Whether its attention is multi-head latent attention.
        bias: Projections with a bias, where `bias_key` is true.
        bias_key: The key that says whether there are; None: there always are.
        qk_norm: Norms of queries and keys.
        qk_norm_key: The key that says whether there are; None: there always are.
        sinks: Whether each query head has a learned sink.
        norms: Norms of width D in one layer [1].
        window: Layers with a window, if `layer_types` does not say.
        window_key: Key of the tokens of the window.
        chunked: Whether its windows are chunks.
        more: Adds other mixers, and what else its shape has, to the shape and the layers so far.
        types: Values that `layer_types` may have.
        mlp: Key of the width of the MLP; None: no layer has one.
        mlp_bias: Key that says whether the MLP has biases.
        experts: Its experts.
        only: Values that keys may have; others change a count.
        each: The same of lists with a value for each layer.
        ignore: Further keys that change no count.
    """

    defaults: Mapping[str, object] = field(default_factory=dict)
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
    more: Callable[[Keys, Form, Stack], None] | None = None
    types: tuple[str, ...] = (FULL, SLIDING, CHUNKED)
    mlp: str | None = "intermediate_size"
    mlp_bias: str | None = None
    experts: ExpertKeys | None = None
    only: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    each: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()


MTP = ("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers")
"""Layers for multi-token prediction, which are not counted."""


def form_of(keys: Keys, family: Family) -> tuple[Form, Stack]:
    """The shape that a config gives, in the form of models.yaml; and what each layer is.

    Raises:
        RooflinesError: A key is missing, invalid, or has a value that the family's table does not
            cover.
    """
    for name, allowed in family.only.items():
        keys.only(name, *allowed)
    for name, allowed in family.each.items():
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
            reason = RECURRENT if "linear" in str(kind) else SPARSE
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
        shared = _whole_experts(keys, experts.shared_width, width)
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


def _whole_experts(keys: Keys, name: str, width: int) -> int:
    """Shared experts of the routed ones' width that are as wide as stated together [1]."""
    together = keys.size(name, 0, least=0)
    if together % width:
        problem = f"is {together}, no multiple of the {width} of an expert"
        fix = "write the model out as docs/own-model.md says"
        raise RooflinesError(name, problem, fix)
    return together // width
