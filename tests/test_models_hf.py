"""A config.json gives the shape of its model, or is refused with the reason."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hf_configs import config_of
from plain_files import plain_file

from rooflines import RooflinesError, models
from rooflines.models.family import CHUNKS_NOTE
from rooflines.models.shape import Shape

ENTRIES: dict[str, dict[str, Any]] = plain_file("models.yaml")["models"]


def same_shape(one, other):
    """Whether two shapes have the same sizes in the same layers."""

    def sizes(shape):
        apart = {"attention", "mlp", "moe", "window", "sparse"}
        fields = set(Shape.model_fields) - apart - {"family"}
        mlp, moe = shape.mlp, shape.moe
        return (
            {name: getattr(shape, name) for name in fields},
            shape.attention,
            mlp and (mlp.F, mlp.bias, shape.mlp_layers),
            moe and (moe.model_copy(update={"layers": shape.moe_layers})),
            shape.windows,
            shape.sparse and {**shape.sparse.model_dump(), "own": shape.sparse.indexed},
        )

    return sizes(one) == sizes(other)


@pytest.mark.parametrize("name", ENTRIES)
def test_a_config_gives_the_shape_of_the_catalogue(name):
    known, found = models.load(name), models.from_hf(config_of(ENTRIES[name]))
    assert same_shape(known.shape, found.shape)
    assert found.parameters() == known.parameters()


LLAMA = config_of(ENTRIES["llama-3.1-8b"])


def of(name, **changes):
    """The config of a model with changed keys; a key set to `...` is removed."""
    config = {**copy.deepcopy(config_of(ENTRIES[name])), **changes}
    return {key: value for key, value in config.items() if value is not ...}


def test_a_path_a_folder_and_a_mapping_are_read(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA), encoding="utf-8")
    shapes = [models.from_hf(source).shape for source in (file, str(file), tmp_path, LLAMA)]
    assert all(shape == shapes[0] for shape in shapes)
    assert models.from_hf(file).name == str(file)
    assert models.from_hf({**LLAMA, "_name_or_path": "me/mine"}).name == "me/mine"


def test_stated_dtypes_are_the_defaults():
    stated = {
        "llama-3.1-8b": {"weights": "bf16"},
        "deepseek-v3": {"weights": "fp8", "experts": "fp8", "head": "bf16"},
        "gpt-oss-120b": {"weights": "bf16", "experts": "mxfp4", "head": "bf16"},
    }
    for name, dtypes in stated.items():
        found = models.from_hf(config_of(ENTRIES[name])).dtypes
        assert found is not None
        assert found.model_dump(exclude_defaults=True) == dtypes
    new = models.from_hf(of("llama-3.1-8b", torch_dtype=..., dtype="float16"))
    assert new.weights_bytes() == 2 * new.parameters().total
    large = models.from_hf(config_of(ENTRIES["gpt-oss-120b"]))
    assert large.weights_bytes() == models.load("gpt-oss-120b").weights_bytes()


def test_what_is_left_out_is_noted():
    notes = {
        "llama-4-scout": f"the text part; encoders are not counted; {CHUNKS_NOTE}",
        "deepseek-v3": "without the layers for multi-token prediction",
        "llama-3.1-8b": None,
    }
    for name, note in notes.items():
        assert models.from_hf(config_of(ENTRIES[name])).note == note


def test_parameters_of_a_published_hybrid():
    config = {
        "model_type": "qwen3_next",
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "vocab_size": 151936,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
    }
    assert models.from_hf(config).parameters().total == 79_674_391_296


def test_a_quantization_without_torch_dtype_leaves_the_others_in_bf16():
    stated = models.from_hf(of("gpt-oss-120b", torch_dtype="bfloat16"))
    assumed = models.from_hf(of("gpt-oss-120b", torch_dtype=...))
    said = "torch_dtype is missing: what is not quantized is taken to be bf16"
    assert (stated.dtypes, stated.note) == (assumed.dtypes, None)
    assert assumed.note == said
    both = models.from_hf(of("deepseek-v3", torch_dtype=...))
    assert both.note == f"without the layers for multi-token prediction; {said}"


def test_a_missing_torch_dtype_is_bf16_and_said():
    model = models.from_hf(of("llama-3.1-8b", torch_dtype=...))
    assert model.weights_bytes() == 2 * model.parameters().total
    assert model.note == "torch_dtype is missing: what is not quantized is taken to be bf16"


def test_given_dtypes_win_and_what_the_file_says_is_not_read():
    unknown = of("llama-3.1-8b", quantization_config={"quant_method": "quark"})
    model = models.from_hf(unknown, dtypes={"weights": "fp8", "head": "bf16"})
    counts = model.parameters()
    assert model.weights_bytes() == counts.total + counts.by_class["head"]
    assert models.from_hf(unknown, dtypes="int4").weights_bytes() == counts.total / 2


@pytest.mark.parametrize("prefix", ["", "nvidia--Llama-3.1-70B-Instruct-FP8_"])
def test_dtypes_in_a_file_beside_the_config_are_read(prefix, tmp_path):
    file, beside = (tmp_path / f"{prefix}{name}config.json" for name in ("", "hf_quant_"))
    file.write_text(json.dumps(LLAMA), encoding="utf-8")
    said = {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}
    beside.write_text(json.dumps({"producer": {}, "quantization": said}), encoding="utf-8")
    model = models.from_hf(file)
    assert model.dtypes is not None
    expected = {"weights": "fp8", "head": "bf16", "cache": "fp8"}
    assert model.dtypes.model_dump(exclude_defaults=True) == expected
    beside.write_text("{}", encoding="utf-8")
    with pytest.raises(RooflinesError, match=r"hf_quant_config.json.quant_method is null"):
        models.from_hf(file)
    beside.write_text("{", encoding="utf-8")
    with pytest.raises(RooflinesError, match=f"{beside.name} is not valid JSON"):
        models.from_hf(file)


LATENT = ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj")
DOWN = 7168 * 1536 + 7168 * 576
UP = 1536 * 128 * 192 + 512 * 128 * 256

QUANTIZATIONS: dict[str, tuple[str, dict[str, Any], dict[str, float]]] = {
    "compressed-tensors, by regular expression": (
        "deepseek-v3",
        {
            "quant_method": "compressed-tensors",
            "format": "mxfp4-pack-quantized",
            "config_groups": {
                "group_0": {
                    "targets": ["Linear"],
                    "weights": {"num_bits": 4, "type": "float", "group_size": 32},
                }
            },
            "ignore": [
                "re:.*self_attn.*",
                "re:.*shared_experts.*",
                r"re:.*mlp\.(gate|up|down)_proj.*",
            ],
        },
        {"weights": 16, "experts": 4.25, "head": (16 + 4.25) / 2},
    ),
    "modelopt, layer by layer": (
        "deepseek-v3",
        {
            "quant_algo": "NVFP4",
            "group_size": 16,
            "exclude_modules": [
                "lm_head",
                "model.layers.61*",
                *(f"model.layers.{i}.self_attn.{part}" for i in range(61) for part in LATENT),
            ],
        },
        {
            "weights": 4.5
            + 11.5
            * (DOWN + UP)
            * 61
            / ((DOWN + UP + 16384 * 7168) * 61 + 3 * 7168 * (3 * 18432 + 58 * 2048)),
            "experts": 4.5,
            "head": 16,
        },
    ),
    "one layer of eighty, whose number others begin with": (
        "llama-3.1-70b",
        {"quant_algo": "FP8", "exclude_modules": ["lm_head", "model.layers.7.*"]},
        {"weights": 8 + 8 / 80, "head": 16},
    ),
    "gptq": (
        "llama-3.1-8b",
        {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True},
        {"weights": 4.125, "head": 16},
    ),
    "mixed precision": (
        "deepseek-v3",
        {
            "quant_method": "fp8",
            "quant_algo": "MIXED_PRECISION",
            "quantized_layers": {
                f"layers.{i}.mlp.experts": {"quant_algo": "NVFP4", "group_size": 16}
                for i in range(61)
            },
        },
        {"weights": 16, "experts": 4.5, "head": 16},
    ),
}


@pytest.mark.parametrize("case", QUANTIZATIONS)
def test_bits_of_a_class_are_those_of_its_matrices(case):
    name, quantization, bits = QUANTIZATIONS[case]
    model = models.from_hf(of(name, quantization_config=quantization))
    assert model.dtypes is not None
    found = model.dtypes.bits()
    assert {tensors: float(found[tensors]) for tensors in bits} == pytest.approx(bits, rel=1e-12)
    mixed = [tensors for tensors, value in bits.items() if value not in (16, 8, 4.5, 4.25, 4.125)]
    assert all(f"{tensors} are" in (model.note or "") for tensors in mixed)


def test_a_quantization_without_a_list_says_what_is_assumed():
    model = models.from_hf(of("llama-3.1-8b", quantization_config={"quant_algo": "NVFP4"}))
    assert model.note == "the quantization lists no exceptions: token tables are taken to be bf16"


def test_files_that_disagree_are_refused(tmp_path):
    config = {**LLAMA, "quantization_config": {"quant_method": "fp8"}}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    beside = tmp_path / "hf_quant_config.json"
    beside.write_text('{"quantization": {"quant_algo": "NVFP4"}}', encoding="utf-8")
    with pytest.raises(RooflinesError, match=r"says fp8, and hf_quant_config.json nvfp4"):
        models.from_hf(tmp_path)


VARIANTS: dict[str, tuple[dict[str, Any], tuple[tuple[int, int | None], ...]]] = {
    "Mistral 7B v0.1": (of("mistral-7b", sliding_window=4096), ((32, 4096),)),
    "Qwen2 from a layer on": (
        of("qwen2.5-7b", use_sliding_window=True, sliding_window=4096, max_window_layers=20),
        ((20, None), (8, 4096)),
    ),
    "Qwen3 by types": (
        of(
            "qwen3-8b",
            sliding_window=512,
            layer_types=["full_attention"] * 30 + ["sliding_attention"] * 6,
        ),
        ((30, None), (6, 512)),
    ),
    "gpt-oss without types": (of("gpt-oss-20b", layer_types=...), ((12, None), (12, 128))),
    "Gemma 2": (of("gemma-2-27b", num_hidden_layers=5), ((2, None), (3, 4096))),
}


@pytest.mark.parametrize("case", VARIANTS)
def test_windows_are_in_the_layers_that_the_family_has_them_in(case):
    config, windows = VARIANTS[case]
    assert models.from_hf(config).shape.windows == windows


def test_what_changes_a_count_is_counted():
    def total(name, **changes):
        return models.from_hf(of(name, **changes)).parameters().total

    llama = total("llama-3.1-8b")
    width, layers, heads = 4096, 32, 4096 + 2 * 1024
    assert total("llama-3.1-8b", attention_bias=True) == llama + layers * (heads + width)
    assert total("llama-3.1-8b", mlp_bias=True) == llama + layers * (2 * 14336 + width)
    assert total("llama-3.1-8b", tie_word_embeddings=True) == llama - 128256 * width
    doubled = total("llama-3.1-8b", head_dim=256)
    assert doubled == llama + layers * width * (heads + width)
    sparse = models.from_hf(of("qwen3-30b-a3b", mlp_only_layers=[1], decoder_sparse_step=2))
    assert (sparse.shape.moe_layers, sparse.shape.mlp_layers) == (23, 25)
    latent = models.from_hf(of("deepseek-v3", q_lora_rank=None)).shape.attention
    assert latent.matrices(7168)[0].weights == 7168 * (128 * 192 + 576)


LLAMA4 = config_of(ENTRIES["llama-4-scout"])

REFUSALS: dict[str, tuple[Any, str]] = {
    "an unknown family": (of("llama-3.1-8b", model_type="lama"), "'lama'.*\n  close to it: llama"),
    "state space": (
        of("llama-3.1-8b", model_type="mamba2"),
        "'mamba2': every layer is a state-space model",
    ),
    "a vision part": (of("llama-3.1-8b", vision_config={"a": 1}), "vision_config is set"),
    "encoder and decoder": (of("llama-3.1-8b", is_encoder_decoder=True), "is_encoder_decoder is"),
    "a size per layer": (of("llama-3.1-8b", intermediate_size=[1, 2]), "intermediate_size differs"),
    "an unknown key": (
        of("llama-3.1-8b", num_extra_experts=4),
        "num_extra_experts is a key that configs of llama are not known to have",
    ),
    "a misspelt key": (
        of("llama-3.1-8b", num_hiden_layers=4),
        "num_hiden_layers is a key .*\n  close to it: num_hidden_layers",
    ),
    "linear layers by type": (
        of("qwen3-8b", layer_types=["linear_attention"] * 36),
        r"layer_types\[0\] is 'linear_attention': it has state-space",
    ),
    "types of other layers": (
        of("gpt-oss-20b", layer_types=["full_attention"]),
        "layer_types has 1 layers, and num_hidden_layers is 24",
    ),
    "a missing key": (of("llama-3.1-8b", vocab_size=...), "lacks vocab_size"),
    "no heads": (of("qwen3-8b", num_attention_heads=...), "lacks num_attention_heads"),
    "an uneven head size": (of("llama-3.1-8b", num_attention_heads=24), "is no whole number"),
    "no family": (of("llama-3.1-8b", model_type=...), "lacks model_type"),
    "a family of no text": (of("llama-3.1-8b", model_type=7), "model_type is 7"),
    "a size of no number": (of("llama-3.1-8b", hidden_size="wide"), "hidden_size is 'wide'"),
    "a switch of no truth": (of("llama-3.1-8b", attention_bias=1), "attention_bias is 1"),
    "biases of latent attention": (
        of("deepseek-v3", attention_bias=True),
        "attention_bias is true: counts of deepseek_v3 are known for false alone",
    ),
    "lightning attention": (of("minimax-m2.5", attn_type_list=[1, 0]), r"attn_type_list\[1\] is 0"),
    "experts that do not fit": (of("mixtral-8x7b", num_experts_per_tok=9), "moe.k is 9"),
    "a dtype": (
        of("llama-3.1-8b", torch_dtype="bfloat61"),
        "'bfloat61'.*\n  close to it: bfloat16",
    ),
    "a quantization": (
        of("llama-3.1-8b", quantization_config={"quant_method": "quark"}),
        "quantization_config.quant_method is 'quark', whose layout is not modelled",
    ),
    "weights of two dtypes": (
        of(
            "deepseek-v3", quantization_config={"quant_method": "fp8", "ignored_layers": ["q_proj"]}
        ),
        r"quantization_config.ignored_layers leaves out 'q_proj', which is no module",
    ),
    "a text is one module": (
        of("deepseek-v3", quantization_config={"quant_method": "fp8", "ignored_layers": "q_proj"}),
        r"quantization_config.ignored_layers leaves out 'q_proj', which is no module",
    ),
    "modules that are a number": (
        of(
            "deepseek-v3",
            quantization_config={"quant_method": "fp8", "modules_to_not_convert": 7},
        ),
        r"quantization_config.modules_to_not_convert is 7, which is no list",
    ),
    "a projection without fp8": (
        of(
            "deepseek-v3",
            quantization_config={"quant_method": "fp8", "ignored_layers": ["mlp.side_proj"]},
        ),
        "leaves out 'mlp.side_proj', which is no module that is known",
    ),
    "a text part of llama": (of("llama-3.1-8b", text_config={}), "text_config is a key"),
    "too many layers": (of("gemma-2-27b", num_hidden_layers=2**39), "more than any model has"),
    "a layer twice": (of("qwen3-30b-a3b", mlp_only_layers=[1, 1]), "with a layer twice"),
    "a layer too many": (of("qwen3-30b-a3b", mlp_only_layers=[48]), "mlp_only_layers is 48"),
    "layers without rope": (
        {**LLAMA4, "text_config": {**LLAMA4["text_config"], "no_rope_layers": [1, 0]}},
        "no_rope_layers is no list of a 0 or 1 for each of the 48 layers",
    ),
    "a list of the wrong length": (
        of("minimax-m2.5", attn_type_list=[1] * 61),
        "attn_type_list has 61 layers, and num_hidden_layers is 62",
    ),
    "layers that contradict each other": (
        of("deepseek-v3", mlp_layer_types=["sparse"] * 61),
        "mlp_layer_types contradicts first_k_dense_replace",
    ),
    "a part that contradicts the whole": (
        {**LLAMA4, "tie_word_embeddings": True},
        "tie_word_embeddings is true, and false in text_config",
    ),
    "norms of another kind": (
        of("minimax-m2.5", qk_norm_type="per_head"),
        "qk_norm_type is 'per_head': counts of minimax_m2 are known for 'per_layer' alone",
    ),
    "an unknown algorithm": (
        of("llama-3.1-8b", quantization_config={"quant_algo": "FP7"}),
        "quantization_config.quant_algo is 'FP7', which is no algorithm",
    ),
    "an unknown group": (
        of("llama-3.1-8b", quantization_config={"quant_algo": "NVFP4", "group_size": 32}),
        "quantization_config.group_size is 32, not 16",
    ),
    "an unknown key of a quantization": (
        of("llama-3.1-8b", quantization_config={"quant_method": "fp8", "rank": 8}),
        "quantization_config.rank is no key that is known",
    ),
    "no regular expression": (
        of("llama-3.1-8b", quantization_config={"quant_method": "fp8", "ignore": ["re:(", "x"]}),
        "is no regular expression",
    ),
    "bits of no format": (
        of("llama-3.1-8b", quantization_config={"quant_method": "gptq", "bits": 3}),
        "quantization_config.bits is 3 in groups of 128",
    ),
    "no mapping": ([LLAMA], r"config.json is \["),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_could_give_a_wrong_count_is_refused(case):
    config, message = REFUSALS[case]
    with pytest.raises(RooflinesError, match=message) as refused:
        models.from_hf(config)
    assert str(refused.value).count("fix:") == 1


WHOLE = json.dumps(LLAMA)

BROKEN: dict[str, tuple[bytes, str]] = {
    "truncated": (WHOLE[: len(WHOLE) // 2].encode(), "is not valid JSON: .*\n  fix: download"),
    "empty": (b"", "is not valid JSON"),
    "a list": (b"[1, 2]", r"has \[1, 2\], which is no object"),
    "binary": (b"\xff\xfe\x00", "is not text in UTF-8"),
    "too deep": (b"[" * 100_000, "has JSON too deep"),
    "too large": (b" " * (2 * 2**20 + 1), "has more than 2,097,152 bytes"),
    "a number of thousands of digits": (
        b'{"model_type": "llama", "hidden_size": ' + b"9" * 5000 + b"}",
        "has JSON too deep or numbers too long",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_that_cannot_be_read_is_refused_with_its_name(case, tmp_path):
    content, message = BROKEN[case]
    file = tmp_path / "config.json"
    file.write_bytes(content)
    with pytest.raises(RooflinesError, match=message) as refused:
        models.from_hf(file)
    assert str(refused.value).startswith(f"{file} ")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(RooflinesError, match=r"config\.json does not exist"):
        models.from_hf(tmp_path)
    with pytest.raises(RooflinesError, match="fix:"):
        models.from_hf("a\0b")
