"""Rules that say which layers of a config.json have a window, or experts, by their names in YAML.

Each gives a truth value for every layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError, quote

if TYPE_CHECKING:
    from rooflines.models.keys import Keys

DENSE, SPARSE_MLP = "dense", "sparse"
"""Values of `mlp_layer_types`."""

MAMBA_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
"""Layers of Nemotron-H by the letters of its pattern."""


def every_nth(
    keys: Keys, every: int, *, key: str | None = None, last: bool = True, others: bool = False
) -> list[bool]:
    """Layers at one place of a period.

    Args:
        keys: The config.
        every: Layers of a period [1].
        key: A key that states the period.
        last: Whether it is the last layer of a period, else the first.
        others: Whether it is the other layers instead.
    """
    period = every if key is None else keys.size(key, every)
    place = period - 1 if last else 0
    return [(index % period == place) != others for index in range(keys.layers())]


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


def layer_pattern(keys: Keys) -> list[str]:
    """The layers of Nemotron-H: `mamba`, `attention`, `mlp` or `moe`.

    Raises:
        RooflinesError: The pattern has other letters, or not as many as there are layers.
    """
    pattern, types = keys.get("hybrid_override_pattern"), keys.items("layers_block_type")
    if pattern is not None:
        unknown = set(str(pattern)) - set(MAMBA_LETTERS)
        if not isinstance(pattern, str) or unknown:
            fix = f"use letters of {' '.join(MAMBA_LETTERS)}"
            raise RooflinesError("hybrid_override_pattern", f"is {quote(pattern)}", fix)
        found = [MAMBA_LETTERS[letter] for letter in pattern]
        if types and types != found:
            problem = "contradicts hybrid_override_pattern"
            raise RooflinesError("layers_block_type", problem, "correct one of them")
        types = found
    if not types:
        problem = "lacks hybrid_override_pattern and layers_block_type"
        raise RooflinesError("", problem, "add one: the file may be incomplete")
    keys.derive("num_hidden_layers", len(types))
    if len(types) != keys.layers():
        problem = f"has {len(types)} layers, and num_hidden_layers is {keys.layers()}"
        raise RooflinesError("hybrid_override_pattern", problem, "correct one of them")
    if pattern is None:
        keys.kinds("layers_block_type", tuple(MAMBA_LETTERS.values()))
    return types


def expert_letters(keys: Keys) -> list[bool]:
    """The experts of Nemotron-H, by its pattern."""
    return [kind == "moe" for kind in layer_pattern(keys)]


def hybrid_layers(keys: Keys) -> list[bool]:
    """The windows of MiMo-V2, by its pattern."""
    return [kind == 1 for kind in keys.kinds("hybrid_layer_pattern", (0, 1))]
