"""The families of config.json that are known, as tables of keys, and the shapes they give.

A family is data: which keys hold its sizes, what its files leave out, and which layers have a
window, experts or another mixer. A shape in the form of models.yaml follows from it.

Sources: the configuration and modelling classes of transformers under the same `model_type`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from rooflines.basics.errors import RooflinesError, quote
from rooflines.models.keys import RECURRENT, SPARSE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rooflines.models.keys import Keys

    LayerRule = Callable[[Keys], list[bool]]  # whether each layer has something

Form = dict[str, Any]

FULL, SLIDING, CHUNKED = "full_attention", "sliding_attention", "chunked_attention"
"""Values of `layer_types`."""

DENSE, SPARSE_MLP = "dense", "sparse"
"""Values of `mlp_layer_types`."""


def every(step: int, *, last: bool = True, key: str | None = None) -> LayerRule:
    """Every `step`-th layer: the last of each `step`, or the first.

    Args:
        step: Layers of a period [1].
        last: Whether it is the last layer of a period that has it, else the first.
        key: A key that states the period.
    """

    def rule(keys: Keys) -> list[bool]:
        period = step if key is None else keys.size(key, step)
        place = period - 1 if last else 0
        return [index % period == place for index in range(keys.layers())]

    return rule


def all_but(rule: LayerRule) -> LayerRule:
    """The layers that a rule leaves out."""
    return lambda keys: [not has for has in rule(keys)]


def everywhere(keys: Keys) -> list[bool]:
    """All layers."""
    return [True] * keys.layers()


def _if_switched_on(keys: Keys) -> list[bool]:
    """The windows of Qwen: from `max_window_layers` on, where `use_sliding_window` is true."""
    used, layers = keys.flag("use_sliding_window"), keys.layers()
    first = keys.size("max_window_layers", layers, least=0)
    return [used and index >= first for index in range(layers)]


def _with_rope(keys: Keys) -> list[bool]:
    """The chunks of Llama 4: layers with rotary embeddings, all but every fourth."""
    layers = keys.layers()
    interval = keys.size("no_rope_layer_interval", 4)
    rotary = keys.items("no_rope_layers") or [(i + 1) % interval != 0 for i in range(layers)]
    if len(rotary) != layers or any(kind not in (0, 1) for kind in rotary):
        problem = f"is no list of a 0 or 1 for each of the {layers} layers"
        raise RooflinesError("no_rope_layers", problem, "correct it, or leave it out")
    return [bool(kind) for kind in rotary]


def _by_sparse_step(keys: Keys) -> list[bool]:
    """The experts of Qwen: in every `decoder_sparse_step`-th layer but `mlp_only_layers`."""
    step, dense = keys.size("decoder_sparse_step", 1), keys.indices("mlp_only_layers")
    return [(i + 1) % step == 0 and i not in dense for i in range(keys.layers())]


def _interleaved(keys: Keys) -> list[bool]:
    """The experts of Llama 4: in `moe_layers`, or in every n-th layer."""
    layers, step = keys.layers(), keys.size("interleave_moe_layer_step", 1)
    stated = keys.indices("moe_layers") or range(step - 1, layers, step)
    return [index in stated for index in range(layers)]


def _after_dense(keys: Keys) -> list[bool]:
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


def _between(keys: Keys) -> list[bool]:
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
    mlp: str | None = "intermediate_size"
    mlp_bias: str | None = None
    experts: ExpertKeys | None = None
    only: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    each: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()


def _defaults(
    heads: int | None = None, size: int | None = None, **more: object
) -> dict[str, object]:
    """Defaults of the key-value heads, of the head size, and of other keys."""
    stated = {"num_key_value_heads": heads, "head_dim": size, **more}
    return {key: value for key, value in stated.items() if value is not None}


MTP = ("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers")
"""Layers for multi-token prediction, which are not counted."""

GROUPED = ("n_group", "topk_group", "ep_size", "topk_method")
"""How DeepSeek's routers choose among groups of experts."""

DEEPSEEK_EXPERTS = ExpertKeys(
    E="n_routed_experts",
    Fe="moe_intermediate_size",
    shared="n_shared_experts",
    router_bias=True,
    layers=_after_dense,
)
QWEN_EXPERTS = ExpertKeys(E="num_experts", Fe="moe_intermediate_size", layers=_by_sparse_step)

LLAMA = Family(bias="qkvo", mlp_bias="mlp_bias")
MISTRAL = Family(defaults=_defaults(8), window=everywhere)
QWEN2 = Family(bias="qkv", bias_key=None, window=_if_switched_on)
QWEN3 = Family(
    defaults=_defaults(32, 128),
    bias="qkvo",
    qk_norm="head",
    window=_if_switched_on,
    only={"use_qk_norm": (True,), "qkv_bias": (False,)},
)
QWEN3_MOE = replace(
    QWEN3,
    experts=QWEN_EXPERTS,
    only={**QWEN3.only, "shared_expert_intermediate_size": (0,)},
    ignore=("intermediate_size",),
)
GEMMA = Family(
    defaults=_defaults(4, 256, tie_word_embeddings=True, sliding_window=4096), bias="qkvo", norms=4
)
DEEPSEEK_V3 = Family(
    latent=True,
    experts=DEEPSEEK_EXPERTS,
    only={"attention_bias": (False,), "topk_method": ("noaux_tc",)},
    ignore=(*GROUPED, "num_key_value_heads", "head_dim", "qk_head_dim", "index_share_for_mtp"),
)
GRANITE = replace(
    LLAMA,
    ignore=(
        "attention_multiplier",
        "embedding_multiplier",
        "logits_scaling",
        "residual_multiplier",
    ),
)
OLMO2 = Family(bias="qkvo", qk_norm="all")

FAMILIES: dict[str, Family] = {
    "cohere2": Family(
        defaults=_defaults(tie_word_embeddings=True, sliding_window=4096),
        bias="qkvo",
        norms=1,
        window=all_but(every(4, key="sliding_window_pattern")),
        only={"use_qk_norm": (False,), "use_embedding_sharing": (True,)},
        ignore=("logit_scale", "layer_norm_eps", "layer_switch", "order_of_interleaved_layers"),
    ),
    "deepseek_v2": replace(
        DEEPSEEK_V3,
        experts=replace(DEEPSEEK_EXPERTS, router_bias=False),
        only={"attention_bias": (False,), "topk_method": ("greedy", "group_limited_greedy")},
    ),
    "deepseek_v3": DEEPSEEK_V3,
    "dots1": Family(
        bias="qkvo",
        qk_norm="head",
        window=_if_switched_on,
        experts=DEEPSEEK_EXPERTS,
        ignore=GROUPED,
    ),
    "ernie4_5": Family(
        defaults=_defaults(2, 128, tie_word_embeddings=True),
        bias="qkvo",
        bias_key="use_bias",
        mlp_bias="use_bias",
    ),
    "ernie4_5_moe": Family(
        defaults=_defaults(4, tie_word_embeddings=True),
        experts=ExpertKeys(
            E="moe_num_experts",
            k=("moe_k",),
            Fe="moe_intermediate_size",
            shared="moe_num_shared_experts",
            router_bias=True,
            layers=_between,
        ),
        only={"use_bias": (False,)},
        ignore=(
            "moe_capacity",
            "moe_norm_min",
            "moe_use_aux_free",
            "moe_gate",
            "compression_ratio",
        ),
    ),
    "exaone4": Family(
        defaults=_defaults(sliding_window=4096),
        qk_norm="head",
        window=all_but(every(4)),
        only={"attention_bias": (False,)},
        ignore=("sliding_window_pattern", "layer_norm_epsilon"),
    ),
    "gemma": replace(GEMMA, defaults=_defaults(16, 256, tie_word_embeddings=True), norms=2),
    "gemma2": replace(GEMMA, window=every(2, last=False), ignore=("sliding_window_size",)),
    "gemma3_text": replace(
        GEMMA,
        defaults={**GEMMA.defaults, "num_attention_heads": 8, "vocab_size": 262208},
        qk_norm="head",
        window=all_but(every(6, key="sliding_window_pattern")),
        only={"use_bidirectional_attention": (False,)},
        ignore=("_sliding_window_pattern",),
    ),
    "glm": Family(defaults=_defaults(2, 128), bias="qkv"),
    "glm4": Family(defaults=_defaults(2, 128), bias="qkv", norms=4),
    "glm4_moe": Family(
        defaults=_defaults(8, 128),
        bias="qkv",
        qk_norm="head",
        qk_norm_key="use_qk_norm",
        experts=DEEPSEEK_EXPERTS,
        ignore=GROUPED,
    ),
    "gpt_oss": Family(
        defaults=_defaults(8, 64, attention_bias=True, sliding_window=128),
        bias="qkvo",
        sinks=True,
        window=every(2, last=False),
        mlp=None,
        experts=ExpertKeys(
            k=("num_experts_per_tok", "experts_per_token"), router_bias=True, expert_bias=True
        ),
        ignore=("initial_context_length", "experts_per_token"),
    ),
    "granite": GRANITE,
    "granitemoe": replace(GRANITE, mlp=None, mlp_bias=None, experts=ExpertKeys()),
    "granitemoeshared": replace(
        GRANITE,
        mlp=None,
        mlp_bias=None,
        experts=ExpertKeys(shared_width="shared_intermediate_size"),
    ),
    "hunyuan_v1_dense": Family(
        bias="qkvo", qk_norm="head", only={"use_qk_norm": (True,), "use_cla": (False,)}
    ),
    "kimi_k2": DEEPSEEK_V3,
    "llama": LLAMA,
    "llama4_text": Family(
        defaults=_defaults(8, 128, attention_chunk_size=8192),
        bias="qkvo",
        window=_with_rope,
        window_key="attention_chunk_size",
        mlp="intermediate_size_mlp",
        experts=ExpertKeys(shared=1, layers=_interleaved),
        ignore=(
            "intermediate_size_mlp",
            "use_qk_norm",
            "attn_scale",
            "floor_scale",
            "attn_temperature_tuning",
        ),
    ),
    "mimo": Family(
        defaults={"attention_bias": True}, bias="qkv", window=_if_switched_on, ignore=("use_mrope",)
    ),
    "minimax_m2": Family(
        defaults=_defaults(8, 128, use_qk_norm=True, use_routing_bias=True),
        bias="qkvo",
        qk_norm="all",
        qk_norm_key="use_qk_norm",
        mlp=None,
        experts=ExpertKeys(router_bias="use_routing_bias"),
        only={
            "qk_norm_type": ("per_layer",),
            "shared_intermediate_size": (0,),
            "sliding_window": (0,),
        },
        each={"attn_type_list": (1,)},
        ignore=(
            "use_mtp",
            "mtp_transformer_layers",
            "mlp_intermediate_size",
            "shared_moe_mode",
            "layernorm_full_attention_beta",
            "layernorm_linear_attention_beta",
            "layernorm_mlp_beta",
        ),
    ),
    "mistral": MISTRAL,
    "mixtral": replace(MISTRAL, mlp=None, experts=ExpertKeys()),
    "olmo2": OLMO2,
    "olmo3": replace(OLMO2, defaults={"sliding_window": 4096}, window=all_but(every(4))),
    "phi3": Family(
        window=everywhere,
        only=dict.fromkeys(("attention_bias", "mlp_bias", "lm_head_bias"), (False,)),
        ignore=("full_attn_mod", "interpolate_factor"),
    ),
    "qwen2": QWEN2,
    "qwen2_moe": replace(
        QWEN2,
        experts=replace(
            QWEN_EXPERTS, shared_width="shared_expert_intermediate_size", shared_gate=True
        ),
        only={"qkv_bias": (True,)},
        ignore=("intermediate_size",),
    ),
    "qwen3": QWEN3,
    "qwen3_moe": QWEN3_MOE,
    "qwen3_vl_moe_text": QWEN3_MOE,
    "qwen3_vl_text": QWEN3,
    "seed_oss": Family(
        defaults=_defaults(8, 128, attention_bias=True),
        bias="qkv",
        mlp_bias="mlp_bias",
        only={"attention_out_bias": (False,)},
        ignore=("residual_dropout",),
    ),
    "smollm3": Family(
        defaults=_defaults(4, tie_word_embeddings=True),
        bias="qkvo",
        window=_if_switched_on,
        mlp_bias="mlp_bias",
        ignore=("no_rope_layers", "no_rope_layer_interval"),
    ),
}
"""The known values of `model_type`."""


def form_of(keys: Keys, family: Family) -> tuple[Form, list[bool]]:
    """The shape that a config gives, in the form of models.yaml; and which layers have experts.

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
    form = {
        "layers": keys.layers(),
        "D": keys.size("hidden_size"),
        "V": keys.size("vocab_size"),
        "tied": keys.flag("tie_word_embeddings"),
        "attention": dict(_latent(keys) if family.latent else _heads(keys, family)),
        "norms_per_layer": family.norms,
        "window": _window(keys, family),
        "context": keys.maybe("max_position_embeddings"),
        **_mlps(keys, family, sum(sparse)),
    }
    return {key: value for key, value in form.items() if value is not None}, sparse


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


def _window(keys: Keys, family: Family) -> Form | None:
    """The layers with a window: by `layer_types` where it is given, else by the family's rule."""
    types = keys.items("layer_types")
    if types:
        _check_layer_types(keys, types)
    if family.window is None:
        if any(kind != FULL for kind in types):
            problem = f"has windows, which configs of {keys.family} are not known to have"
            raise RooflinesError("layer_types", problem, f"use a model whose layers are {FULL}")
        return None
    by_rule = family.window(keys)
    windowed = [kind != FULL for kind in types] or by_rule
    tokens = keys.maybe(family.window_key)
    count = sum(windowed)
    if count and tokens is None and types:
        problem = "has layers with a window, whose size is absent"
        raise RooflinesError("layer_types", problem, f"add {family.window_key}")
    return {"tokens": tokens, "layers": count} if count and tokens else None


def _check_layer_types(keys: Keys, types: list[Any]) -> None:
    for index, kind in enumerate(types):
        if kind not in (FULL, SLIDING, CHUNKED):
            raise RooflinesError(
                f"layer_types[{index}]",
                f"is {quote(kind)}: {RECURRENT if 'linear' in str(kind) else SPARSE}",
                f"use a model whose layers are {FULL}, {SLIDING} or {CHUNKED}",
            )
    keys.kinds("layer_types", (FULL, SLIDING, CHUNKED))


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
    }
    return {key: value for key, value in form.items() if value is not False}


def _whole_experts(keys: Keys, name: str, width: int) -> int:
    """Shared experts of the routed ones' width that are as wide as stated together [1]."""
    together = keys.size(name, 0, least=0)
    if together % width:
        problem = f"is {together}, no multiple of the {width} of an expert"
        fix = "write the model out as docs/own-model.md says"
        raise RooflinesError(name, problem, fix)
    return together // width
