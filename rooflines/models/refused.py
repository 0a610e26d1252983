"""The families of config.json that are refused, each with its reason."""

from __future__ import annotations

SPARSE = (
    "its attention is sparse or compressed, so that cache and work do not follow from the sizes"
)
RECURRENT = "it has state-space or linear-attention layers, which are not modelled"
VISION = "it has an encoder of images or sound, which is not modelled"
ENCODER = "it is an encoder, or an encoder with a decoder; decoder-only models are known"
UNEQUAL = "its layers differ in size, which is not modelled"

REFUSED = {
    **dict.fromkeys(
        ("deepseek_v32", "deepseek_v4", "glm_moe_dsa", "minicpm_sala", "longcat_flash"), SPARSE
    ),
    **dict.fromkeys(
        (
            "bamba",
            "falcon_h1",
            "falcon_mamba",
            "granitemoehybrid",
            "jamba",
            "kimi_linear",
            "lfm2",
            "mamba",
            "mamba2",
            "minimax",
            "minimax_text_01",
            "nemotron_h",
            "qwen3_5",
            "qwen3_5_moe",
            "qwen3_next",
            "recurrent_gemma",
            "rwkv",
            "zamba",
            "zamba2",
        ),
        RECURRENT,
    ),
    **dict.fromkeys(
        (
            "clip",
            "gemma3n",
            "glm4v",
            "glm4v_moe",
            "idefics3",
            "internvl_chat",
            "kimi_k25",
            "kimi_vl",
            "llava",
            "llava_next",
            "mistral3",
            "mllama",
            "paligemma",
            "phi3_v",
            "phi4mm",
            "pixtral",
            "qwen2_5_vl",
            "qwen2_vl",
            "qwen3_vl",
            "qwen3_vl_moe",
            "siglip",
            "whisper",
        ),
        VISION,
    ),
    **dict.fromkeys(
        (
            "bart",
            "bert",
            "deberta-v2",
            "distilbert",
            "electra",
            "mt5",
            "roberta",
            "t5",
            "xlm-roberta",
        ),
        ENCODER,
    ),
    **dict.fromkeys(("nemotron-nas", "openelm"), UNEQUAL),
}
"""Families that are known not to have a shape, with the reason."""
