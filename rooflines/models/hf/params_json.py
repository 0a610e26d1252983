"""Translation from the params.json in Meta's and Mistral's checkpoints to config.json keys.

Sources: `params.json` in llama-models and mistral-inference; their code for the MLP width.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rooflines.basics.errors import RooflinesError, quote

PARAMS_JSON = "params.json"
"""File with the architecture in these checkpoints."""

NAMES = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "hidden_dim": "intermediate_size",
    "max_seq_len": "max_position_embeddings",
    "tied_embeddings": "tie_word_embeddings",
}
"""Keys of config.json by key of params.json, where they differ."""

WITHOUT_EFFECT = ("use_scaled_rope", "rope_theta", "norm_eps", "causal", "rope_scaling_factor")
"""Keys that change no count, besides the ones in any config."""


def is_params(config: Mapping[str, Any]) -> bool:
    """Check for the content of a params.json."""
    return "model_type" not in config and {"dim", "n_layers", "n_heads"} <= config.keys()


def config_of_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Translate a params.json to a config.json: family llama, mistral with a window, or mixtral.

    Raises:
        RooflinesError: The vocabulary is missing, or the experts have unknown keys.
    """
    config = {NAMES.get(key, key): value for key, value in params.items()}
    for key in WITHOUT_EFFECT:
        config.pop(key, None)
    if config.get("vocab_size") == -1:
        fix = "write the rows of the embedding table, such as 32000 for Llama 2"
        raise RooflinesError("vocab_size", "is -1: the tokenizer has it", fix)
    config.setdefault("num_key_value_heads", config.get("num_attention_heads"))
    multiple, factor = config.pop("multiple_of", None), config.pop("ffn_dim_multiplier", None)
    if "intermediate_size" not in config and isinstance(config.get("hidden_size"), int):
        config["intermediate_size"] = mlp_width(config["hidden_size"], multiple, factor)
    moe = config.pop("moe", None)
    family = "mistral" if config.get("sliding_window") else "llama"
    if moe:
        if not isinstance(moe, Mapping) or not set(moe) <= {"num_experts", "num_experts_per_tok"}:
            fix = "give the config.json beside it"
            raise RooflinesError("moe", f"is {quote(moe)}, which is not modelled", fix, value=moe)
        family = "mixtral"
        config |= {"num_local_experts": moe.get("num_experts")}
        config |= {"num_experts_per_tok": moe.get("num_experts_per_tok")}
    return {"model_type": family, **config}


def mlp_width(width: int, multiple: object, factor: object) -> int:
    """MLP width in Meta's code: 8/3 D, times a factor, rounded up to a multiple [1].

    Args:
        width: D [1].
        multiple: Multiple to round up to; None: 256 [1].
        factor: `ffn_dim_multiplier`; None: 1 [1].
    """
    hidden = int(2 * 4 * width / 3)
    if isinstance(factor, int | float):
        hidden = int(factor * hidden)
    step = multiple if isinstance(multiple, int) and multiple > 0 else 256
    return -(-hidden // step) * step
