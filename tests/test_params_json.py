"""params.json of Meta and Mistral, in the words of config.json."""

import pytest

from rooflines.basics.errors import RooflinesError
from rooflines.models.hf.params_json import (
    WITHOUT_EFFECT,
    config_of_params,
    is_params,
    mlp_width,
)

PARAMS = {"dim": 64, "n_layers": 2, "n_heads": 4, "vocab_size": 100}
CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 100,
    "intermediate_size": 256,  # 170, rounded up to a multiple of 256
}


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({}, {}),
        ({"n_kv_heads": 2}, {"num_key_value_heads": 2}),
        ({"hidden_dim": 96}, {"intermediate_size": 96}),
        ({"multiple_of": 32}, {"intermediate_size": 192}),
        ({"multiple_of": 32, "ffn_dim_multiplier": 1.5}, {"intermediate_size": 256}),
        ({"max_seq_len": 5}, {"max_position_embeddings": 5}),
        ({"tied_embeddings": True}, {"tie_word_embeddings": True}),
        ({"head_dim": 8}, {"head_dim": 8}),
        ({"sliding_window": 7}, {"sliding_window": 7, "model_type": "mistral"}),
        ({"sliding_window": None}, {"sliding_window": None}),
        (
            {"moe": {"num_experts": 8, "num_experts_per_tok": 2}},
            {"num_local_experts": 8, "num_experts_per_tok": 2, "model_type": "mixtral"},
        ),
        ({"moe": None}, {}),
        ({"quantization": {"bits": 4}}, {"quantization": {"bits": 4}}),  # refused by its reader
        *(({key: 1}, {}) for key in WITHOUT_EFFECT),
    ],
)
def test_keys_are_those_of_config_json(more, wanted):
    assert is_params(PARAMS | more)
    assert config_of_params(PARAMS | more) == CONFIG | wanted


@pytest.mark.parametrize("missing", ["dim", "n_layers", "n_heads"])
def test_a_file_without_a_key_of_params_is_none(missing):
    assert not is_params({key: value for key, value in PARAMS.items() if key != missing})
    assert not is_params({**PARAMS, "model_type": "llama"})


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"vocab_size": -1}, "vocab_size"),
        ({"moe": {"num_experts": 8, "shared": 1}}, "moe"),
        ({"moe": [8]}, "moe"),
    ],
)
def test_what_cannot_be_translated_is_named(change, path):
    with pytest.raises(RooflinesError) as refused:
        config_of_params(PARAMS | change)
    assert refused.value.path == (path,)


@pytest.mark.parametrize(
    ("width", "multiple", "factor", "wanted"),
    [
        (4096, 256, None, 11008),  # Llama 2 7B
        (5120, 256, None, 13824),  # Llama 2 13B
        (8192, 4096, 1.3, 28672),  # Llama 3 70B
        (4096, None, None, 11008),
        (4096, 0, None, 11008),
        (64, 1, None, 170),
    ],
)
def test_the_mlp_width_is_that_of_metas_code(width, multiple, factor, wanted):
    assert mlp_width(width, multiple, factor) == wanted
