"""Rules for values that take more than one key in a config.json, by their names in `families.yaml`.

Rules for layers return one truth value per layer: has it a window, experts, or an SSM state? Rules
for sizes combine several keys.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.errors import RooflinesError, at_path, quote
from rooflines.basics.numbers import whole
from rooflines.basics.text import si
from rooflines.models.hf.config_keys import OFF_VALUES
from rooflines.models.matrix import MAX_MATRIX_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rooflines.models.hf.config_keys import Keys

DENSE, SPARSE_MLP = "dense", "sparse"
"""Values of `mlp_layer_types`."""

MAMBA_NAMES = {"linear_attention": "mamba", "full_attention": "attention"}
"""Nemotron-H layer types by their name in newer transformers versions."""

MAMBA_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
"""Nemotron-H layer types by letter in its pattern."""

STATE_BITS = {"float32": 32, "float16": 16, "bfloat16": 16}
"""Bits per SSM state element, by torch dtype [bit]."""

GLOBAL_KEYS = {"head_dim": "global_head_dim", "num_key_value_heads": "num_global_key_value_heads"}
"""Gemma 4 keys for global layers, by the key for local layers."""

WINDOW_HEADS = "attention_other_setting"
"""Step 3.5's object for layers with a window."""

XIELU, SLOPES = "xielu", 2
"""Activation in Apertus, and its learned slopes per layer [1]."""

RESIDUALS = 4
"""Vectors with width D per Kimi K3 layer for residuals over blocks: a norm and a query before the
mixer, and before the MLP [1]."""


ALL_ENTRIES, CHOSEN_ENTRIES = "heavily_compressed_attention", "compressed_sparse_attention"
COMPRESSED_TOKENS = {"sliding_attention": 0, CHOSEN_ENTRIES: 4, ALL_ENTRIES: 128}
"""DeepSeek-V4's layer types, with tokens per compressed entry [1]."""

INDEX_KEY_BITS = 4
"""Bits per element of the keys of DeepSeek-V4's indexer, which its code stores in fp4 [bit]."""

FP32_BYTES = 4
"""Bytes per element of a compressor's state [byte]."""

ROTARY_SHARE = 64 / 512
"""Rotary share of a head in DeepSeek-V4's class [1]."""

REPLACED = {"no_op": "none", "replace_with_linear": "linear"}
"""Kinds of Nemotron-NAS parts in place of attention or an MLP, by the key that is true."""

SEARCHED_KEYS = {
    "attention": ("n_heads_in_group", "num_key_value_heads"),
    "ffn": ("ffn_mult", "intermediate_size"),
}
"""Keys of Nemotron-NAS with a layer's sizes, by part."""

MAX_WIDTH_RATIO = 100
"""Largest `ffn_mult`, 1.5 times an MLP's width / D [1]."""

WIDTH_STEP = 256
"""Multiple that Nemotron-NAS rounds MLP widths up to [1]."""

HASHED, HASH_LAYERS = "hash_moe", 3
"""DeepSeek-V4's value of `mlp_layer_types` for routing by token, and layers with it by default."""


# ---------------------------------------------------------------- layers


def every_nth(
    keys: Keys, every: int, *, key: str | None = None, last: bool = True, complement: bool = False
) -> list[bool]:
    """Layers at one place in a period.

    Args:
        keys: The config.
        every: Layers per period [1].
        key: A key that states the period.
        last: Whether to select the last layer in a period, else the first.
        complement: Whether to select all layers but these.
    """
    period = every if key is None else keys.size(key, every)
    place = period - 1 if last else 0
    return [(index % period == place) != complement for index in range(keys.layers())]


def five_of_six(keys: Keys) -> list[bool]:
    """Windows in Gemma 4: all layers but every sixth, and but the last."""
    layers = keys.layers()
    return [(index + 1) % 6 > 0 and index + 1 < layers for index in range(layers)]


def by_type_alone(keys: Keys) -> list[bool]:
    """Windows in Step 3.5: by `layer_types` only."""
    return [False] * keys.layers()


def everywhere(keys: Keys) -> list[bool]:
    """All layers."""
    return [True] * keys.layers()


def if_switched_on(keys: Keys) -> list[bool]:
    """Windows in Qwen: from `max_window_layers` on, where `use_sliding_window` is true."""
    is_used, layers = keys.flag("use_sliding_window"), keys.layers()
    first = keys.size("max_window_layers", layers, minimum=0)
    return [is_used and index >= first for index in range(layers)]


def with_rope(keys: Keys) -> list[bool]:
    """Chunks in Llama 4: layers with rotary embeddings, all but every fourth."""
    layers = keys.layers()
    interval = keys.size("no_rope_layer_interval", 4)
    rotary = keys.items("no_rope_layers") or [(i + 1) % interval != 0 for i in range(layers)]
    if len(rotary) != layers or any(kind not in (0, 1) for kind in rotary):
        problem = f"is no list of a 0 or 1 for each of the {layers} layers"
        raise RooflinesError("no_rope_layers", problem, "correct it, or leave it out")
    return [bool(kind) for kind in rotary]


def by_sparse_step(keys: Keys) -> list[bool]:
    """Experts in Qwen: in every `decoder_sparse_step`-th layer but `mlp_only_layers`."""
    step, dense = keys.size("decoder_sparse_step", 1), keys.indices("mlp_only_layers")
    return [(i + 1) % step == 0 and i not in dense for i in range(keys.layers())]


def interleaved(keys: Keys) -> list[bool]:
    """Experts in Llama 4: in `moe_layers`, or in every n-th layer."""
    layers, step = keys.layers(), keys.size("interleave_moe_layer_step", 1)
    moe_layers = keys.indices("moe_layers") or range(step - 1, layers, step)
    return [index in moe_layers for index in range(layers)]


def after_dense(keys: Keys) -> list[bool]:
    """Experts in DeepSeek: by `mlp_layer_types`, or after `first_k_dense_replace`."""
    layers = keys.layers()
    keys.ignore("first_k_dense_replace")
    frequency = keys.get("moe_layer_freq", 1)
    types = keys.per_layer("mlp_layer_types", (DENSE, SPARSE_MLP))
    if isinstance(frequency, list):
        types = types or keys.per_layer("moe_layer_freq", (0, 1))
    if types:
        return [kind in (1, SPARSE_MLP) for kind in types]
    first = keys.size("first_k_dense_replace", 0, minimum=0)
    period = keys.size("moe_layer_freq", 1)
    return [index >= first and index % period == 0 for index in range(layers)]


def listed_experts(keys: Keys) -> list[bool]:
    """Experts in Step 3.5: by `mlp_layer_types`, in `moe_layers_enum`, else from the fourth on.

    Raises:
        RooflinesError: The list has no layer indices.
    """
    layers, value = keys.layers(), keys.get("moe_layers_enum")
    types = keys.per_layer("mlp_layer_types", (DENSE, SPARSE_MLP))
    if types or value is None:
        first = keys.size("first_k_dense_replace", 3, minimum=0)
        return [kind == SPARSE_MLP for kind in types] or [i >= first for i in range(layers)]
    words = value.split(",") if isinstance(value, str) else value
    numbers = [str(word).strip() for word in words] if isinstance(words, list) else []
    if not numbers or not all(number.isdecimal() for number in numbers):
        fix = "write the numbers of layers with experts, from 0"
        raise RooflinesError("moe_layers_enum", f"is {quote(value)}", fix, value=value)
    return [str(index) in numbers for index in range(layers)]


def if_there_are_experts(keys: Keys) -> list[bool]:
    """Experts in MiniCPM: in all layers or in none."""
    return [bool(keys.size("num_experts", 0, minimum=0))] * keys.layers()


def if_routed(keys: Keys) -> list[bool]:
    """Experts in Granite 4: in all layers or in none."""
    return [bool(keys.size("num_local_experts", 0, minimum=0))] * keys.layers()


def all_but_listed(keys: Keys) -> list[bool]:
    """Mamba layers in Bamba and Granite 4: all but those listed with attention."""
    attention = keys.indices("attn_layer_indices")
    return [index not in attention for index in range(keys.layers())]


def mamba_of_jamba(keys: Keys) -> list[bool]:
    """Mamba layers in Jamba: all but one in a period, at an offset."""
    return [not is_attention for is_attention in _at_offset(keys, "attn_layer", 8, 4)]


def experts_of_jamba(keys: Keys) -> list[bool]:
    """Experts in Jamba: in one layer in a period, at an offset; none with a single expert."""
    has_experts = keys.size("num_experts") > 1
    return [has_experts and is_placed for is_placed in _at_offset(keys, "expert_layer", 2, 1)]


def _at_offset(keys: Keys, name: str, period: int, offset: int) -> list[bool]:
    """Layers at an offset in a period.

    Args:
        keys: The config.
        name: Prefix in both keys' names.
        period: Layers per period by default [1].
        offset: Index in it by default [1].

    Raises:
        RooflinesError: The offset is not below the period.
    """
    period, name = keys.size(f"{name}_period", period), f"{name}_offset"
    offset = keys.size(name, offset, minimum=0)
    if offset >= period:
        problem = f"is {offset}, beyond a period of {period} layers"
        raise RooflinesError(name, problem, "correct one of them")
    return [index % period == offset for index in range(keys.layers())]


def first_of_pairs(keys: Keys) -> list[bool]:
    """Experts in LongCat: in a pair's first layer; its files count pairs.

    Raises:
        RooflinesError: Layers and pairs contradict each other.
    """
    pairs = keys.optional_size("num_pairs")
    if pairs is not None:
        keys.set_default("num_hidden_layers", 2 * pairs)
        if keys.layers() != 2 * pairs:
            problem = f"is {keys.layers()}, and num_layers {pairs}, each of which is two"
            raise RooflinesError("num_hidden_layers", problem, "correct one of them")
    experts, empty = keys.size("n_routed_experts"), keys.size("zero_expert_num", 0, minimum=0)
    chosen = keys.size("num_experts_per_tok")
    if empty:
        mean = chosen * experts / (experts + empty)
        keys.assumptions.append(
            f"of the {chosen} experts of a token {mean:.3g} have weights on average"
        )
    return [index % 2 == 0 for index in range(keys.layers())]


def lightning_layers(keys: Keys) -> list[bool]:
    """Lightning attention in MiniMax: by `attn_type_list`, else every second layer."""
    types = keys.per_layer("attn_type_list", (0, 1))
    return [kind == 0 for kind in types] or [index % 2 == 1 for index in range(keys.layers())]


def between(keys: Keys) -> list[bool]:
    """Experts in ERNIE: from a first to a last layer, at an interval."""
    layers = keys.layers()
    step = keys.size("moe_layer_interval", 1)
    first = keys.size("moe_layer_start_index", 0, minimum=0)
    last = keys.get("moe_layer_end_index", layers - 1)
    end = layers - 1 if last == -1 else keys.size("moe_layer_end_index", layers - 1, minimum=0)
    return [first <= i <= end and (i + 1) % step == 0 for i in range(layers)]


def layer_pattern(keys: Keys) -> list[str]:
    """Nemotron-H layer types: `mamba`, `attention`, `mlp` or `moe`.

    Raises:
        RooflinesError: The pattern has unknown letters, or a wrong length.
    """
    pattern = keys.get("hybrid_override_pattern")
    types = [MAMBA_NAMES.get(str(kind), kind) for kind in keys.items("layers_block_type")]
    if pattern is not None:
        unknown = set(str(pattern)) - set(MAMBA_LETTERS)
        if not isinstance(pattern, str) or unknown:
            fix = f"use letters of {' '.join(MAMBA_LETTERS)}"
            raise RooflinesError(
                "hybrid_override_pattern", f"is {quote(pattern)}", fix, value=pattern
            )
        pattern_types = [MAMBA_LETTERS[letter] for letter in pattern]
        if types and types != pattern_types:
            problem = "contradicts hybrid_override_pattern"
            raise RooflinesError("layers_block_type", problem, "correct one of them")
        types = pattern_types
    if not types:
        problem = "lacks hybrid_override_pattern and layers_block_type"
        raise RooflinesError("", problem, "add one: the file may be incomplete")
    keys.set_default("num_hidden_layers", len(types))
    if len(types) != keys.layers():
        problem = f"has {len(types)} layers, and num_hidden_layers is {keys.layers()}"
        raise RooflinesError("hybrid_override_pattern", problem, "correct one of them")
    for index, kind in enumerate(types):
        if kind not in MAMBA_LETTERS.values():
            fix = f"use a model whose layers are of {', '.join(MAMBA_LETTERS.values())}"
            raise RooflinesError(("layers_block_type", index), f"is {quote(kind)}", fix, value=kind)
    return types


def layers_of_kind(keys: Keys, kind: str) -> list[bool]:
    """Nemotron-H layers with one type, by its pattern."""
    return [layer_kind == kind for layer_kind in layer_pattern(keys)]


def hybrid_layers(keys: Keys) -> list[bool]:
    """Windows in MiMo-V2: by its pattern, else all layers but the first and every sixth."""
    listed = keys.per_layer("hybrid_layer_pattern", (0, 1))
    pattern = listed or [int(i > 0 and (i + 1) % 6 > 0) for i in range(keys.layers())]
    return [kind == 1 for kind in pattern]


def of_usual_width(keys: Keys) -> list[bool]:
    """MLPs in Nemotron-NAS with the width of most."""
    width = usual_width(keys)
    return [layer.width == width for layer in searched_sizes(keys)]


def if_enabled(keys: Keys) -> list[bool]:
    """Experts in Gemma 4: in all layers or in none."""
    return [keys.flag("enable_moe_block")] * keys.layers()


def strided_layers(keys: Keys) -> list[bool]:
    """Strided blocks in Phi-3-small: all layers but each n-th, or all where n is not stated."""
    every = keys.optional_size("dense_attention_every_n_layers")
    return [every is None or (index + 1) % every > 0 for index in range(keys.layers())]


def kda_layers(keys: Keys) -> list[bool]:
    """KDA layers in Kimi, numbered from 1; none where `layer_types` states them.

    Raises:
        RooflinesError: KDA and attention layers together are not all layers, each once.
    """
    if keys.get("linear_attn_config") is None and keys.get("layer_types"):
        return [False] * keys.layers()
    kda, full = (keys.items(f"linear_attn_config.{kind}_layers") for kind in ("kda", "full_attn"))
    layer_numbers = range(1, keys.layers() + 1)
    if sorted(map(repr, kda + full)) != sorted(map(repr, layer_numbers)):
        problem = f"and full_attn_layers are not the layers 1 to {keys.layers()}, each once"
        fix = "correct them: they count from 1"
        raise RooflinesError(("linear_attn_config", "kda_layers"), problem, fix)
    return [layer in kda for layer in layer_numbers]


def convolutions(keys: Keys) -> list[bool]:
    """Short convolutions in LFM2: layers without attention."""
    full = keys.indices("full_attn_idxs")
    return [bool(full) and layer not in full for layer in range(keys.layers())]


def indexer_layers(keys: Keys) -> int | None:
    """Indexer layers in DeepSeek-V3.2 and GLM-5; None: all [1]."""
    types = keys.per_layer("indexer_types", ("full", "shared"))
    if not types and keys.get("index_topk_freq", 1) != 1:
        problem = "shares indexers among layers, and indexer_types does not say which"
        raise RooflinesError("index_topk_freq", problem, "add indexer_types")
    keys.require("num_experts", keys.get("n_routed_experts"))
    return types.count("full") if "shared" in types else None


def compressions(keys: Keys) -> list[dict[str, object]]:
    """Compressed entries in DeepSeek-V4: tokens per entry by `compress_ratios` or `layer_types`.

    Layers with 4 tokens per entry have overlapping entries and an indexer.

    Raises:
        RooflinesError: Neither key says which layers have which.
    """
    types = keys.per_layer("layer_types", tuple(COMPRESSED_TOKENS))
    keys.ignore("compress_rates")
    if types:
        tokens_by_type = {
            kind: keys.size(f"compress_rates.{kind}", default) if default else 0
            for kind, default in COMPRESSED_TOKENS.items()
        }
    else:
        tokens_by_type = COMPRESSED_TOKENS
        type_by_tokens = {tokens: kind for kind, tokens in COMPRESSED_TOKENS.items()}
        listed = keys.per_layer("compress_ratios", tuple(type_by_tokens))
        types = [type_by_tokens[tokens] for tokens in listed]
    keys.ignore("compress_ratios")
    if not types:
        problem = "lacks compress_ratios and layer_types"
        raise RooflinesError("", problem, "add one: the file may be incomplete")
    _note_compressors(
        keys,
        *(tokens_by_type[kind] * types.count(kind) for kind in (CHOSEN_ENTRIES, ALL_ENTRIES)),
    )
    chosen = {
        "overlap": True,
        "entries": keys.size("index_topk"),
        "heads": keys.size("index_n_heads"),
        "dim": keys.size("index_head_dim"),
        "bits": INDEX_KEY_BITS,
    }
    return [
        {"tokens": tokens_by_type[kind], "layers": types.count(kind), **parts}
        for kind, parts in ((CHOSEN_ENTRIES, chosen), (ALL_ENTRIES, {}))
        if kind in types
    ]


def _note_compressors(keys: Keys, chosen: int, full: int) -> None:
    """Note compressor states: sum and gate per token in unfinished entries.

    Args:
        keys: The config.
        chosen: Tokens per entry, summed over layers with overlapping entries and keys [1].
        full: Tokens per entry, summed over further layers [1].
    """
    size, key = keys.size("head_dim"), keys.size("index_head_dim")
    elements = 2 * (chosen * 2 * 2 * (size + key) + full * size)
    text = f"the state of compressors, {si(elements * FP32_BYTES, 'B')} a sequence in fp32"
    if elements:
        keys.assumptions.append(f"{text}, is not counted")


def rotary_size(keys: Keys) -> int:
    """Rotary part of a head in DeepSeek-V4: as stated, or by its share [1].

    Raises:
        RooflinesError: The share is no number from 0 to 1.
    """
    if keys.get("qk_rope_head_dim") is not None:
        return keys.size("qk_rope_head_dim")
    size, share = keys.size("head_dim"), keys.get("partial_rotary_factor", ROTARY_SHARE)
    if not isinstance(share, int | float) or not 0 < share <= 1:
        raise RooflinesError(
            "partial_rotary_factor", f"is {quote(share)}", "write 0 to 1", value=share
        )
    return int(size * share)


def hash_layers(keys: Keys) -> int:
    """DeepSeek-V4's layers that route by token: the first [1]."""
    types = keys.per_layer("mlp_layer_types", (HASHED, "moe"))
    if types:
        keys.ignore("num_hash_layers")
        return types.count(HASHED)
    return keys.size("num_hash_layers", HASH_LAYERS, minimum=0)


def where_sparse(keys: Keys) -> list[bool]:
    """Block-sparse attention layers in MiniMax-M3."""
    on = keys.flag("sparse_attention_config.use_sparse_attention", default=True)
    frequency = keys.per_layer("sparse_attention_config.sparse_attention_freq", (0, 1))
    return [on and kind == 1 for kind in frequency]


# ---------------------------------------------------------------- sizes


def head_size(keys: Keys) -> int:
    """Head size: `head_dim`, else D / N [1].

    Raises:
        RooflinesError: It is absent, and D / N is no whole number.
    """
    if keys.get("head_dim"):
        return keys.size("head_dim")
    width, heads = keys.size("hidden_size"), keys.size("num_attention_heads")
    if width % heads:
        problem = f"is absent, and {width} / {heads} is no whole number"
        raise RooflinesError("head_dim", problem, "add head_dim, the size of a head")
    return width // heads


def share_of_the_width(keys: Keys) -> int:
    """Value head size in MiniCPM 3: D / N [1]."""
    return keys.size("hidden_size") // keys.size("num_attention_heads")


def heads_of_windows(keys: Keys) -> int:
    """Query heads in Step 3.5 layers with a window, by transformers' or the publisher's key [1].

    Raises:
        RooflinesError: Further sizes differ per layer, or two keys differ.
    """
    name = "num_sliding_attention_heads"
    _read_layer_sizes(keys, "sliding_attention", {"num_attention_heads": name})
    return keys.size(
        keys.first_set(name, f"{WINDOW_HEADS}.num_attention_heads", "num_attention_heads")
    )


def slopes_of_xielu(keys: Keys) -> int:
    """Learned slopes in Apertus' activation [1]."""
    return SLOPES if keys.get("hidden_act", XIELU) == XIELU else 0


def four_times_the_width(keys: Keys) -> int:
    """MLP width in older families: as stated, else 4 D [1]."""
    return keys.size("intermediate_size", 4 * keys.size("hidden_size"))


def by_expansion(keys: Keys) -> int:
    """MLP width in MPT: expansion ratio times D [1]."""
    return keys.size("expansion_ratio") * keys.size("hidden_size")


def mamba_channels(keys: Keys) -> int:
    """Mamba channels: expansion times D [1]."""
    return keys.size("mamba_expand") * keys.size("hidden_size")


def mamba_rank(keys: Keys) -> int:
    """Time-step rank in Mamba-1: as stated, else D / 16, rounded up [1]."""
    width = keys.size("hidden_size")
    return -(-width // 16) if _is_auto(keys, "mamba_dt_rank") else keys.size("mamba_dt_rank")


def mamba_head(keys: Keys) -> int:
    """Head size in Falcon-H1's states: channels / heads [1].

    Raises:
        RooflinesError: The heads do not share the channels evenly, or have another size.
    """
    channels = keys.optional_size("mamba_d_ssm") or mamba_channels(keys)
    heads = keys.size("mamba_n_heads")
    if channels % heads:
        problem = f"is {heads}, which does not divide the {channels} channels"
        raise RooflinesError("mamba_n_heads", problem, "correct one of them")
    size = channels // heads
    if not _is_auto(keys, "mamba_d_head") and keys.size("mamba_d_head") != size:
        problem = f"is {keys.size('mamba_d_head')}, and {channels} channels / {heads} heads {size}"
        raise RooflinesError("mamba_d_head", problem, "correct one of them")
    return size


def _is_auto(keys: Keys, name: str) -> bool:
    """Check for a key that is absent, or says that its value is computed."""
    return keys.get(name) in (None, "auto")


def short_conv(keys: Keys) -> int:
    """Short-convolution tokens in LFM2: as stated, else 3 [1]."""
    return keys.size("conv_L_cache", 3)


def width_of_lfm2(keys: Keys) -> int:
    """MLP width in LFM2: 2/3 as stated, times a factor, rounded up to a multiple [1]."""
    width, step = keys.size("intermediate_size"), keys.size("block_multiple_of", 256)
    factor = keys.get("block_ffn_dim_multiplier", 1.0)
    if not keys.flag("block_auto_adjust_ff_dim", default=True):
        return width
    if not isinstance(factor, int | float) or not math.isfinite(factor):
        raise RooflinesError(
            "block_ffn_dim_multiplier", f"is {quote(factor)}", "write a number", value=factor
        )
    return -(-int(factor * int(2 * width / 3)) // step) * step


def positions_and_two(keys: Keys) -> int:
    """Learned positions in OPT; the first two are padding [1]."""
    return keys.size("max_position_embeddings") + 2


def heads_of_falcon(keys: Keys) -> int:
    """KV heads in Falcon: one, or as stated in the newer architecture [1]."""
    heads = keys.size("num_attention_heads")
    if keys.flag("new_decoder_architecture"):
        return keys.size("num_key_value_heads", heads)
    return 1 if keys.flag("multi_query") else heads


def norms_of_falcon(keys: Keys) -> int:
    """Norms per Falcon layer: one where attention and MLP are parallel, else two [1]."""
    if keys.flag("new_decoder_architecture"):
        return keys.size("num_ln_in_parallel_attn", 2)
    return 1 if keys.flag("parallel_attn") else 2


def heads_of_chatglm(keys: Keys) -> int:
    """KV heads in ChatGLM: its groups, else all heads [1]."""
    heads = keys.size("num_attention_heads")
    return keys.size("multi_query_group_num") if keys.flag("multi_query_attention") else heads


class SearchedLayer(NamedTuple):
    """Sizes of a layer in Nemotron-NAS; a part may be `linear` or `none`.

    Attributes:
        heads: KV heads [1].
        width: MLP width [1].
    """

    heads: int | str
    width: int | str


def searched_sizes(keys: Keys) -> list[SearchedLayer]:
    """Sizes of every Nemotron-NAS layer, by `block_configs`.

    Raises:
        RooflinesError: A layer is incomplete, or has a part that is not modelled.
    """
    blocks, layers = keys.items("block_configs"), keys.layers()
    if len(blocks) != layers:
        problem = f"has {len(blocks)} layers, and num_hidden_layers is {layers}"
        raise RooflinesError("block_configs", problem, "correct one of them")
    return [_searched_layer(keys, index, block) for index, block in enumerate(blocks)]


def _searched_layer(keys: Keys, index: int, block: object) -> SearchedLayer:
    """Read a layer's sizes."""
    with at_path("block_configs", index):
        if not isinstance(block, Mapping) or set(block) != {"attention", "ffn"}:
            raise RooflinesError("", "is no attention and ffn", "write both", value=block)
        parts = {}
        for name, sizes in SEARCHED_KEYS.items():
            part = block[name]
            with at_path(name):
                if not isinstance(part, Mapping):
                    raise RooflinesError("", f"is {quote(part)}", "write an object", value=part)
                for key, value in part.items():
                    if key not in (*sizes, *REPLACED, "hidden_act") and value not in OFF_VALUES:
                        problem = f"is {quote(value)}, which is not modelled"
                        raise RooflinesError(key, problem, "use another model", value=value)
                replaced = (kind for key, kind in REPLACED.items() if part.get(key))
                parts[name] = next(replaced, None) or _searched_size(keys, part, sizes)
        return SearchedLayer(parts["attention"], parts["ffn"])


def _searched_size(keys: Keys, part: Mapping[str, Any], sizes: Sequence[str]) -> int:
    """Read KV heads or MLP width, by the first key that has a value [1]."""
    name = next((name for name in sizes if part.get(name) is not None), sizes[0])
    value, width = part.get(name), keys.size("hidden_size")
    with at_path(name):
        if name == "ffn_mult":
            ratio = value if isinstance(value, int | float) and value is not True else 0
            if not 0 < ratio <= MAX_WIDTH_RATIO:
                fix = f"write a number up to {MAX_WIDTH_RATIO}"
                raise RooflinesError("", f"is {quote(value)}", fix, value=value)
            return -(-int(2 * ratio * width / 3) // WIDTH_STEP) * WIDTH_STEP
        size = whole(value, maximum=MAX_MATRIX_SIZE)
        if name != "n_heads_in_group":
            return size
        heads = keys.size("num_attention_heads")
        if heads % size:
            problem = f"is {size}, which does not divide the {heads} query heads"
            raise RooflinesError("", problem, "correct it")
        return heads // size


def usual_heads(keys: Keys) -> int:
    """KV heads in most Nemotron-NAS layers [1]."""
    return _most_frequent(layer.heads for layer in searched_sizes(keys))


def usual_width(keys: Keys) -> int:
    """MLP width in most Nemotron-NAS layers [1]."""
    return _most_frequent(layer.width for layer in searched_sizes(keys))


def _most_frequent(sizes: Iterable[int | str]) -> int:
    """Most frequent size [1]."""
    counts = Counter(size for size in sizes if isinstance(size, int))
    if not counts:
        raise RooflinesError("block_configs", "has no layer with each part", "use another model")
    return counts.most_common(1)[0][0]


def variant_places(keys: Keys) -> list[int | None]:
    """Place of every Nemotron-NAS layer among the kinds that differ; None: as most."""
    usual, layers = SearchedLayer(usual_heads(keys), usual_width(keys)), searched_sizes(keys)
    kinds = [layer for layer in dict.fromkeys(layers) if layer != usual]
    return [None if layer == usual else kinds.index(layer) for layer in layers]


def searched_layers(keys: Keys) -> list[dict[str, object]]:
    """Nemotron-NAS layers that differ from most, by kind."""
    usual, layers = SearchedLayer(usual_heads(keys), usual_width(keys)), searched_sizes(keys)
    variants = []
    for kind, number in Counter(layer for layer in layers if layer != usual).items():
        form: dict[str, object] = {"layers": number}
        for part, name, size, usual_size in (
            ("attention", "K", kind.heads, usual.heads),
            ("mlp", "F", kind.width, usual.width),
        ):
            if size != usual_size:
                form[part if isinstance(size, str) else name] = size
        variants.append(form)
    return variants


def global_size(keys: Keys) -> int:
    """Head size in Gemma 4's global layers [1]."""
    _read_layer_sizes(keys, "full_attention", GLOBAL_KEYS)
    return keys.size("global_head_dim")


def _read_layer_sizes(keys: Keys, kind: str, target_keys: Mapping[str, str]) -> None:
    """Read sizes that are stated per layer, for all layers of one type.

    Args:
        keys: The config.
        kind: The type in `layer_types`.
        target_keys: Keys for these layers, by the key for all layers.

    Raises:
        RooflinesError: They differ between these layers, or belong to further layers or sizes.
    """
    layer_configs = keys.get("per_layer_config") or {}
    if not layer_configs:
        return
    is_of_kind = [entry == kind for entry in keys.items("layer_types")]
    sizes: Any = next(iter(layer_configs.values())) if isinstance(layer_configs, Mapping) else {}
    is_uniform = (
        isinstance(layer_configs, Mapping)
        and isinstance(sizes, Mapping)
        and all(entry == sizes for entry in layer_configs.values())
    )
    names = layer_configs if isinstance(layer_configs, Mapping) else ()
    layers = {int(entry) for entry in names if str(entry).isdecimal()}
    if (
        not is_uniform
        or set(sizes) - set(target_keys)
        or layers != {index for index, entry in enumerate(is_of_kind) if entry}
    ):
        problem = f"is not of the layers of {kind}, the same for all"
        raise RooflinesError("per_layer_config", problem, "use another model, or write it out")
    for key, name in target_keys.items():
        if key in sizes:
            keys.set_default(name, sizes[key])


def global_heads(keys: Keys) -> int:
    """KV heads in Gemma 4's global layers [1]."""
    _read_layer_sizes(keys, "full_attention", GLOBAL_KEYS)
    is_shared, kv_heads = keys.flag("attention_k_eq_v"), keys.size("num_key_value_heads")
    global_kv_heads = keys.size("num_global_key_value_heads", kv_heads)
    return global_kv_heads if is_shared else kv_heads


def twice_the_heads(keys: Keys) -> int:
    """KV heads in MiMo-V2's local layers: twice the global layers' [1]."""
    return 2 * keys.size("num_key_value_heads")


def shared_experts(
    keys: Keys, shared_width: str, expert_width: str, *, required: bool = False
) -> int:
    """Shared experts: their total width / width per routed expert [1].

    Args:
        keys: The config.
        shared_width: The key with their total width; 0 where it is absent.
        expert_width: The key with the width per routed expert.
        required: Whether `shared_width` may not be absent.

    Raises:
        RooflinesError: The total is no multiple of an expert's width.
    """
    width = keys.size(expert_width)
    total_width = keys.size(shared_width) if required else keys.size(shared_width, 0, minimum=0)
    if total_width % width:
        problem = f"is {total_width}, no multiple of the {width} of an expert"
        raise RooflinesError(
            shared_width, problem, "write the model out as docs/write-a-config.md says"
        )
    return total_width // width


def indexed_layers(keys: Keys) -> list[bool]:
    """Block-sparse attention layers in MiniMax-M3, as transformers states them."""
    types = keys.per_layer("layer_types", ("full_attention", "minimax_m3_sparse"))
    return [kind == "minimax_m3_sparse" for kind in types]


def tokens_of_index_blocks(keys: Keys) -> int:
    """Minimum tokens that a MiniMax-M3 token attends to, by transformers' keys [1]."""
    return (keys.size("index_topk_blocks") - 1) * keys.size("index_block_size") + 1


def tokens_of_blocks(keys: Keys) -> int:
    """Minimum tokens that a MiniMax-M3 token attends to: (blocks - 1) * block size + 1 [1].

    The last chosen block may have one token.
    """
    blocks, size = (
        keys.size(f"sparse_attention_config.sparse_{name}")
        for name in ("topk_blocks", "block_size")
    )
    return (blocks - 1) * size + 1


def local_tokens(keys: Keys) -> int:
    """Minimum tokens in a Phi-3-small token's local blocks: (blocks - 1) * block size + 1 [1].

    The last block may have one token. Before them a head attends to one block in a
    stride.
    """
    blocks, size = keys.size("blocksparse_num_local_blocks"), keys.size("blocksparse_block_size")
    stride, tokens = keys.size("blocksparse_vert_stride"), (blocks - 1) * size + 1
    keys.assumptions.append(
        f"in {sum(strided_layers(keys))} layers each head attends to {tokens} tokens, the fewest "
        f"that {blocks} blocks can hold, and to 1/{stride} of those before: a bound"
    )
    return tokens


def norms_of_kimi(keys: Keys) -> int:
    """Norms per Kimi layer, with the vectors for residuals over blocks [1]."""
    return 2 + (RESIDUALS if keys.optional_size("attn_res_block_size") else 0)


def state_bits(keys: Keys) -> int:
    """Bits per SSM state element: as stated, else fp32, the default in the families' code [bit].

    Raises:
        RooflinesError: The stated dtype is unknown.
    """
    name = keys.first_set("mamba_ssm_dtype", "mamba_ssm_cache_dtype")
    value = keys.get(name, "float32")
    if not isinstance(value, str) or value not in STATE_BITS:
        raise RooflinesError(
            name, f"is {quote(value)}", f"use one of {', '.join(STATE_BITS)}", value=value
        )
    return STATE_BITS[value]


def file_bits(keys: Keys) -> int:
    """Bits per SSM state element: as stated, else in the file's dtype [bit]."""
    if any(keys.get(name) is not None for name in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype")):
        return state_bits(keys)
    return STATE_BITS.get(str(keys.get(keys.first_set("torch_dtype", "dtype"))), 16)


BY_ARGUMENT: Mapping[str, Callable[..., Any]] = {
    "every": every_nth,
    "kind": layers_of_kind,
    "shared_width": shared_experts,
}
"""Rules with arguments, by their first argument."""
