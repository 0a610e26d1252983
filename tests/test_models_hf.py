"""A config.json gives its model's shape, in every family, or is refused with the reason.

The configs are rows of tests/cases/families.yaml: published ones, and a small one of each family.
"""

import json
import math
import random
from fractions import Fraction
from typing import Any

import pytest
from case_files import case
from hf_configs import FAMILIES, config_of, small

from rooflines import RooflinesError, models
from rooflines.hardware.entry_forms import validate_entry
from rooflines.models import memory
from rooflines.models.architecture import Shape
from rooflines.models.groups import StepExtents
from rooflines.models.hf import rules
from rooflines.models.hf.config_json import TIED
from rooflines.models.hf.config_keys import Keys, tables
from rooflines.models.hf.families import families
from rooflines.models.split import Split
from rooflines.models.step_kernels import Sharing, StepKernels

TEXT_PARTS = tables()["text-parts"]

SAVED = case("transformers")
"""Configs as transformers 5 saves them, and the parameters of its classes."""


def same_shape(one, other):
    """True if two shapes have the same sizes in the same layers."""

    def sizes(shape):
        apart = {"attention", "mlp", "moe", "window", "sparse", "family"}
        apart |= {"encoder", "rotary_elements"}  # what engines load besides
        mlp, moe = shape.mlp, shape.moe
        return (
            {name: getattr(shape, name) for name in set(Shape.model_fields) - apart},
            shape.attention,
            mlp and (mlp.F, mlp.bias, shape.mlp_layers),
            moe and (moe.model_copy(update={"layers": shape.moe_layers})),
            [(each.layers, each.window) for each in shape.attentions],
            shape.sparse and {**shape.sparse.model_dump(), "own": shape.sparse.indexer_layers},
        )

    return sizes(one) == sizes(other)


@pytest.mark.parametrize("name", FAMILIES["models"])
def test_a_published_config_gives_the_shape_of_the_catalogue(name):
    known, found = models.load(name), models.from_hf(config_of(name))
    assert same_shape(known.shape, found.shape)
    assert found.parameters() == known.parameters()


PLAIN: dict[str, Any] = {
    "layers": 8,
    "D": 64,
    "V": 100,
    "attention": {"kind": "gqa", "N": 4, "K": 2, "H": 16},
    "mlp": {"F": 96, "layers": 8},
    "context": 4096,
}
"""The shape of the small config without keys of a family."""


@pytest.mark.parametrize("family", FAMILIES["families"])
def test_a_small_config_gives_the_shape_of_its_family(family):
    parts = {**PLAIN, **FAMILIES["families"][family]["shape"]}
    expected = {key: value for key, value in parts.items() if value is not None}
    found = models.from_hf(small(family)).shape.model_dump(mode="json", exclude_defaults=True)
    found["attention"].setdefault("kind", "gqa")
    assert found == {"family": family, **expected}


@pytest.mark.parametrize(("rule", "keys", "layers"), case("layer-rules"))
def test_a_rule_names_its_layers(rule, keys, layers):
    config = Keys({"num_hidden_layers": len(layers), **keys}, rule)
    assert "".join(str(int(each)) for each in getattr(rules, rule)(config)) == layers


def test_every_rule_of_layers_has_a_row():
    """Nemotron's have a list for each layer, others have arguments, or say everywhere."""
    returned = {
        name
        for name, rule in vars(rules).items()
        if callable(rule) and getattr(rule, "__annotations__", {}).get("return") == "list[bool]"
    }
    assert returned - {rule for rule, *_ in case("layer-rules")} == {
        "every_nth",
        "layers_of_kind",
        "_at_offset",
    }


def test_every_family_is_tried():
    published = [config_of(name) for name in FAMILIES["models"]]
    published += [each["config"] for each in FAMILIES["counted"].values()]
    published += [each["config"] for each in SAVED.values()]
    tried = {config.get("model_type") for config in published} | set(FAMILIES["families"])
    tried |= {TEXT_PARTS.get(family, family) for family in tried}
    same = {
        "deepseek_ref": "deepseek_v4",
        "gpt-sw3": "gpt2",
        "minimax_m1": "minimax",
        "minimax_text_01": "minimax",
        "mimo_v2": "mimo_v2_flash",
        "qwen3_next": "qwen3_5_moe_text",
        "qwen3_vl_text": "qwen3",
    }
    assert set(families()) <= tried | set(same)
    assert all(families()[one] == families()[other] for one, other in same.items())


@pytest.mark.parametrize("name", SAVED)
def test_files_that_transformers_5_saves_have_the_counts_of_its_classes(name):
    found = models.from_hf(SAVED[name]["config"])
    assert found.parameters().total == SAVED[name]["parameters"]
    make = (
        small if name in FAMILIES["families"] else config_of if name in FAMILIES["models"] else None
    )
    if make and name not in OTHERWISE:
        shape = models.from_hf(make(name)).shape
        stated = {"context": found.shape.context, "mtp": found.shape.mtp}  # not what it saves
        assert same_shape(shape.model_copy(update=stated), found.shape)


OTHERWISE = ("exaone4", "glm4", "hunyuan_v1_dense", "kimi_linear")
"""Families whose small config has other keys than the one that transformers saved."""


@pytest.mark.parametrize(
    "family", [each for each in TEXT_PARTS.values() if each in FAMILIES["families"]]
)
def test_the_text_part_of_a_model_with_encoders_is_the_model(family):
    (whole, *_) = (name for name, text in TEXT_PARTS.items() if text == family)
    text = {key: value for key, value in small(family).items() if key != "model_type"}
    encoder = {"vision_config": {"hidden_size": 8}}
    model = models.from_hf({"model_type": whole, "text_config": text, **encoder})
    assert model.shape == models.from_hf(small(family)).shape
    assert (model.note or "").startswith("the text part, without its encoders")


def test_a_model_that_speaks_is_read_by_the_part_that_writes():
    text = {**FAMILIES["small"], "model_type": "qwen2_5_omni_text"}
    thinker = {"text_config": text, "audio_config": {"d_model": 8}}
    whole = {"model_type": "qwen2_5_omni", "thinker_config": thinker, "talker_config": {"a": 1}}
    model = models.from_hf(whole)
    assert model.parameters() == models.from_hf({**text, "model_type": "qwen2"}).parameters()
    assert model.notes() == (
        "the text part, without its encoders",
        "without the parts that speak",
    )


def test_what_is_stated_for_the_whole_model_holds_for_its_text_part():
    whole = {"model_type": "mistral3", "text_config": FAMILIES["small"], "torch_dtype": "bfloat16"}
    tied = [models.from_hf({**whole, "tie_word_embeddings": tied}) for tied in (True, False)]
    assert [model.shape.tied for model in tied] == [True, False]


@pytest.mark.parametrize("tied", [True, False])
def test_from_transformers_5_on_the_tie_of_the_whole_model_counts(tied):
    text = {**FAMILIES["small"], TIED: not tied}
    whole = {"model_type": "gemma3", "text_config": {**text, "model_type": "gemma3_text"}}
    newer = {**whole, TIED: tied, "transformers_version": "5.0.1"}
    assert models.from_hf(newer).shape.tied is tied
    with pytest.raises(RooflinesError, match=TIED):
        models.from_hf({**newer, "transformers_version": "4.57.0"})


def test_a_path_a_folder_and_a_mapping_are_read(tmp_path):
    file, llama = tmp_path / "config.json", config_of("llama-3.1-8b")
    file.write_text(json.dumps(llama), encoding="utf-8")
    shapes = [models.from_hf(source).shape for source in (file, str(file), tmp_path, llama)]
    assert all(shape == shapes[0] for shape in shapes)
    assert models.from_hf(file).name == str(file)
    assert models.from_hf({**llama, "_name_or_path": "me/mine"}).name == "config.json"


@pytest.mark.parametrize("row", FAMILIES["notes"], ids=lambda row: row["model"])
def test_what_is_left_out_is_noted(row):
    assert models.from_hf(config_of(row["model"], **row.get("changes", {}))).note == row["note"]


def test_sizes_that_a_file_leaves_out_are_those_of_its_class_and_said():
    text = {"hidden_size": 2560, "num_hidden_layers": 34, "intermediate_size": 10240}
    model = models.from_hf({"model_type": "gemma3", "text_config": {**text, "dtype": "bfloat16"}})
    assert model.shape.attention.model_dump(include={"N", "K", "H"}) == {"N": 8, "K": 4, "H": 256}
    assert "num_attention_heads 8" in (model.note or "")
    step = small("step3p7", use_head_wise_attn_gate="absent", attention_other_setting="absent")
    note = models.from_hf(step).note or ""
    assert "use_head_wise_attn_gate is absent: taken as false" in note
    assert "attention_other_setting is absent" in note


@pytest.mark.parametrize("name", FAMILIES["counted"])
def test_parameters_of_a_model_that_the_catalogue_lacks(name):
    of = FAMILIES["counted"][name]
    assert models.from_hf(of["config"]).parameters().total == of["parameters"]


def test_deepseek_v4_caches_and_reads_what_its_paper_and_code_say():
    # An entry has 448 elements of a byte and 64 rotary ones of two; a key of the indexer 64 byte.
    # 30 layers have an entry for 4 tokens, of which 1,024 are read, 31 one for 128; all 61 have a
    # window of 128 tokens.
    model = models.from_hf(FAMILIES["counted"]["deepseek-v4-pro"]["config"])
    each, key, context = 448 + 2 * 64, 64, 131_072
    assert model.kv_cache_elements(128) == 61 * 128 * 512 + 30 * 32 * (512 + 128) + 31 * 512
    held = 61 * 128 * each + context * 30 * (each + key) // 4 + context * 31 * each // 128
    assert model.kv_cache_bytes(context, "fp8") == held == 4_497_408 + 4_939.5 * context
    assert model.kv_cache_bytes(context, "bf16") == (
        61 * 128 * 1024 + context * 30 * (1024 + key) // 4 + context * 31 * 1024 // 128
    )
    step = models.Step(1, context)
    elements = {
        group.name: group.count * group.layer_cost("cache", step)
        for group in model.groups("decode")
        if group.cache
    }
    assert elements == {
        "indexer": 30 * context // 4 * 128,
        "attention-compressed-4": 30 * (1024 + 128) * 512,
        "attention-compressed-128": 31 * (context // 128 + 128) * 512,
    }
    flops = {
        group.name: group.layer_cost("flops", step)
        for group in model.groups("decode")
        if group.cache
    }
    assert flops == {
        "indexer": 2 * 64 * 128 * context // 4,
        "attention-compressed-4": 4 * 128 * 512 * (1024 + 128),
        "attention-compressed-128": 4 * 128 * 512 * (context // 128 + 128),
    }
    counts = model.parameters()
    assert (round(counts.total, -11), round(counts.active, -9)) == (16 * 10**11, 49 * 10**9)
    assert model.dtypes is not None
    stated = {"weights": "fp8", "experts": "mxfp4", "head": "bf16", "rest": "bf16"}
    assert model.dtypes.model_dump(exclude_defaults=True) == stated
    assert "the state of compressors, 18.7 MB a sequence in fp32, is not counted" in model.notes()


def test_states_of_lightning_attention_and_of_mamba():
    minimax, jamba = (
        models.from_hf(FAMILIES["counted"][name]["config"])
        for name in ("minimax-text-01", "jamba-v0.1")
    )
    assert minimax.state_bytes() == 70 * 64 * 128 * 128 * 2
    assert minimax.kv_cache_elements(1) == 10 * 2 * 8 * 128
    assert jamba.state_bytes() == 28 * 8192 * (16 + 3) * 2  # and the last three inputs
    assert jamba.kv_cache_elements(1) == 4 * 2 * 8 * 128
    step = models.Step(3, 100)
    for model, layers, flops, moved in (
        (minimax, 70, 4 * 64 * 128 * 128, 2 * 64 * 128 * 128),
        (jamba, 28, 4 * 8192 * 16, 8192 * (2 * 16 + 4)),
    ):
        (state,) = (group for group in model.groups("decode") if group.name == "state")
        assert (state.count, state.layer_cost("flops", step)) == (layers, 3 * flops)
        assert state.layer_cost("cache", step) == 3 * moved


def blocks_of_head(head, position, config):
    """Tokens that a query head of Phi-3-small attends to from a position, block by block."""
    size, local = config["blocksparse_block_size"], config["blocksparse_num_local_blocks"]
    last = (position - 1) // size
    blocks = [
        block
        for block in range(last + 1)
        if last - block < local or (block + head + 1) % config["blocksparse_vert_stride"] == 0
    ]
    return {token for block in blocks for token in range(block * size, (block + 1) * size)} & {
        *range(position)
    }


@pytest.mark.parametrize("tp", [1, 8, 16, 32])
def test_phi_3_small_reads_no_more_than_the_blocks_of_its_heads(tp):
    config = FAMILIES["counted"]["phi-3-small-8k"]["config"]
    shape = models.from_hf(config).shape
    split = validate_entry(Split, {"tp": tp})
    classes = ("weights", "head", "rest", "lm_head", "cache", "activations", "input")
    bits = dict.fromkeys(classes, Fraction(8))
    kernels = StepKernels(shape, "decode", Sharing(split, bits, ("fp8", "fp8"), "heads", "uniform"))
    (kernel,) = (each for _, each in kernels.local_kernels if each.name == "attention-strided")
    heads = range(config["num_attention_heads"])
    queries = config["num_attention_heads"] // config["num_key_value_heads"]
    of_chip = max(len(heads) // tp, 1)
    for position in (1, 961, 1024, 1025, 1089, 3000, 8129):
        tokens = [blocks_of_head(head, position, config) for head in heads]
        chips = [[*heads][first : first + of_chip] for first in range(0, len(heads), of_chip)]
        read = sum(
            len(set().union(*(tokens[head] for head in chip if head // queries == group)))
            for chip in chips
            for group in {head // queries for head in chip}
        )
        extents = StepExtents(models.Step(1, position))
        counted = kernel.work("kv_cache_bytes").at(extents) * len(chips) / 256
        pairs = kernel.work("flops").at(extents) * len(chips) / 512
        attended = sum(map(len, tokens))
        assert counted <= read
        assert pairs <= attended
        # A block that has just begun leaves nothing to chance; else up to 63 tokens are fewer.
        if position % 64 == 1 or position <= 961:
            assert (counted, pairs) == (read, attended)
        assert counted > 0.93 * read
        assert pairs > 0.93 * attended
    assert memory.kv_cache_elements(shape, 8192) == 32 * 8192 * 2 * 1024


@pytest.mark.parametrize("row", FAMILIES["windows"], ids=lambda row: row["model"])
def test_windows_are_in_the_layers_that_the_family_has_them_in(row):
    found = models.from_hf(config_of(row["model"], **row["changes"])).shape.attentions
    assert [[each.layers, each.window.tokens] for each in found] == row["windows"]


def test_what_changes_a_count_is_counted():
    def total(**changes):
        return models.from_hf(config_of("llama-3.1-8b", **changes)).parameters().total

    llama = total()
    width, layers, heads = 4096, 32, 4096 + 2 * 1024
    assert total(attention_bias=True) == llama + layers * (heads + width)
    assert total(mlp_bias=True) == llama + layers * (2 * 14336 + width)
    assert total(tie_word_embeddings=True) == llama - 128256 * width
    assert total(head_dim=256) == llama + layers * width * (heads + width)
    sparse = config_of("qwen3-30b-a3b", mlp_only_layers=[1], decoder_sparse_step=2)
    assert models.from_hf(sparse).shape.moe_layers == 23


def test_stated_dtypes_are_the_defaults():
    for name, dtypes in FAMILIES["stated"].items():
        found = models.from_hf(config_of(name)).dtypes
        assert found is not None
        assert found.model_dump(exclude_defaults=True) == dtypes
    new = models.from_hf(config_of("llama-3.1-8b", torch_dtype="absent", dtype="float16"))
    assert new.weights_bytes() == 2 * new.parameters().total


def test_given_dtypes_win_and_what_the_file_says_is_not_read():
    unknown = config_of("llama-3.1-8b", quantization_config={"quant_method": "quark"})
    model = models.from_hf(unknown, dtypes={"weights": "fp8", "head": "bf16"})
    counts = model.parameters()
    assert model.weights_bytes() == counts.total + counts.embedding + counts.unembedding
    wide = counts.embedding + counts.unembedding  # in 16 bit beside linear weights in int4
    narrow = counts.total - wide
    assert models.from_hf(unknown, dtypes="int4").weights_bytes() == narrow / 2 + 2 * wide


LATENT = ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj")
DOWN, UP = 7168 * 1536 + 7168 * 576, 1536 * 128 * 192 + 512 * 128 * 256
DENSE = 61 * (DOWN + UP + 16384 * 7168) + 3 * 7168 * (3 * 18432 + 58 * 2048)
BY_LAYER = {
    "name": "modelopt, layer by layer",
    "model": "deepseek-v3",
    "quantization_config": {
        "quant_algo": "NVFP4",
        "group_size": 16,
        "exclude_modules": [
            "lm_head",
            *(f"model.layers.{i}.self_attn.{part}" for i in range(61) for part in LATENT),
        ],
    },
    "bits": {"weights": 4.5 + 11.5 * 61 * (DOWN + UP) / DENSE, "experts": 4.5, "head": 16},
}


@pytest.mark.parametrize("row", [*FAMILIES["quantized"], BY_LAYER], ids=lambda row: row["name"])
def test_bits_of_a_class_are_those_of_its_matrices(row):
    config = config_of(row["model"]) | {"quantization_config": row["quantization_config"]}
    model = models.from_hf(config)
    assert model.dtypes is not None
    found = model.dtypes.bits()
    bits = {tensors: float(found[tensors]) for tensors in row["bits"]}
    assert bits == pytest.approx(row["bits"], rel=1e-12)
    for tensors, value in bits.items():
        mixed = value not in (16, 8, 4.5, 4.25, 4.125, 4.15625)
        assert not mixed or f"{tensors} are" in (model.note or "")


@pytest.mark.parametrize("prefix", ["", "nvidia--Llama-3.1-70B-Instruct-FP8_"])
def test_dtypes_in_a_file_beside_the_config_are_read(prefix, tmp_path):
    file, beside = (tmp_path / f"{prefix}{name}config.json" for name in ("", "hf_quant_"))
    file.write_text(json.dumps(config_of("llama-3.1-8b")), encoding="utf-8")
    said = {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}
    beside.write_text(json.dumps({"producer": {}, "quantization": said}), encoding="utf-8")
    model = models.from_hf(file)
    assert model.dtypes is not None
    expected = {"weights": "fp8", "head": "bf16", "rest": "bf16", "cache": "fp8"}
    assert model.dtypes.model_dump(exclude_defaults=True) == expected
    for text, message in (
        ("{}", r"hf_quant_config.json.quant_method is null"),
        ("{", f"{beside.name} is not valid JSON"),
    ):
        beside.write_text(text, encoding="utf-8")
        with pytest.raises(RooflinesError, match=message):
            models.from_hf(file)
    config = config_of("llama-3.1-8b", quantization_config={"quant_method": "fp8"})
    file.write_text(json.dumps(config), encoding="utf-8")
    beside.write_text('{"quantization": {"quant_algo": "NVFP4"}}', encoding="utf-8")
    with pytest.raises(RooflinesError, match=r"says fp8, and .*hf_quant_config.json nvfp4"):
        models.from_hf(file)


@pytest.mark.parametrize("row", FAMILIES["refused"], ids=lambda row: row["name"])
def test_what_could_give_a_wrong_count_is_refused(row):
    make, name = (config_of, row["model"]) if "model" in row else (small, row["family"])
    with pytest.raises(RooflinesError, match=row["says"]) as refused:
        models.from_hf(make(name, **row["changes"]))
    assert str(refused.value).count("fix:") == 1


WHOLE = json.dumps(config_of("llama-3.1-8b"))
BROKEN: dict[str, tuple[bytes, str]] = {
    "truncated": (WHOLE[: len(WHOLE) // 2].encode(), "is not valid JSON: .*\n  fix: download"),
    "a list": (b"[1, 2]", r"has \[1, 2\], which is no object"),
    "binary": (b"\xff\xfe\x00", "is not text in UTF-8"),
    "too deep": (b"[" * 100_000, "has JSON too deep"),
    "too large": (b" " * (16 * 2**20 + 1), "has more than 16,777,216 bytes"),
    "a number of thousands of digits": (
        b'{"model_type": "llama", "hidden_size": ' + b"9" * 5000 + b"}",
        "has JSON too deep or numbers too long",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_that_cannot_be_read_is_refused_with_its_name(case, tmp_path):
    content, message = BROKEN[case]
    file = tmp_path / "config.json"
    with pytest.raises(RooflinesError, match=r"config\.json does not exist"):
        models.from_hf(tmp_path)
    file.write_bytes(content)
    with pytest.raises(RooflinesError, match=message) as refused:
        models.from_hf(file)
    assert str(refused.value).startswith(f"{file} ")


WRONG_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 3, 2.5, math.nan, 2**70, "", "x"),
    *([], [1], [None], [[1]], {}, {"a": 1}),
)
"""Values of wrong types or sizes."""


def test_a_wrong_value_of_a_key_is_read_or_refused_with_a_message():
    configs = [each["config"] for each in SAVED.values()]
    configs += map(small, FAMILIES["families"])
    for config in configs:
        for key in ("model_type", *random.choices(sorted(config), k=3)):
            wrong = {**config, key: random.choice(WRONG_VALUES)}
            mistakes: list[RooflinesError] = []
            try:
                assert models.from_hf(wrong).parameters().total > 0
            except RooflinesError as error:
                mistakes.append(error)
            assert all(str(error).count("fix:") == len(error.errors) for error in mistakes)
