"""Shapes by model: the layers of the catalogue's models, and every form in which they are given."""

import pytest

import rooflines
from rooflines import models
from rooflines.models.architecture import Shape
from rooflines.models.layer_matrices import LAYERS, layers_of, modules_of
from rooflines.models.library import model_entries

MATRICES = {
    **{name: (name,) for name in ("qkv", "o", "down", "unembed")},
    "gate-up": ("gate-up", "up"),
    "q-up": ("q-b",),
    "kv-up": ("kv-b",),
}
"""The layer that a kernel with weights is, the first that a model has."""


def test_layers_of_every_model_have_the_weights_and_the_inputs_of_their_kernels():
    found = {name: layers_of(entry) for name, entry in model_entries().items()}
    for name, layers in found.items():
        assert list(layers) == [layer for layer in LAYERS if layer in layers]
        for group in models.load(name).groups("prefill"):
            known = [layers[each] for each in MATRICES.get(group.name, ()) if each in layers]
            for width, out in known[:1]:
                assert [*group.weights.values()] == [width * out], (name, group.name)
                assert [*group.reads.values()] == [width], (name, group.name)
            if group.name == "experts":
                into = layers.get("expert-gate-up", layers["expert-up"])
                of_one = sum(width * out for width, out in (into, layers["expert-down"]))
                assert [*group.weights.values()] == [of_one], name
    assert {layer for layers in found.values() for layer in layers} == set(LAYERS)


def test_matrices_of_deepseek_v3_are_the_published_ones():
    """Source: config.json of deepseek-ai/DeepSeek-V3."""
    found = layers_of(model_entries()["deepseek-v3"])
    assert (found["q-b"], found["kv-a"]) == ((1536, 128 * (128 + 64)), (7168, 512 + 64))
    assert (found["o"], found["expert-gate-up"]) == ((128 * 128, 7168), (7168, 2 * 2048))


def test_experts_of_a_latent_width_take_tokens_of_that_width():
    """Source: config.json of nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16."""
    found = layers_of(model_entries()["nemotron-3-super"])
    assert (found["expert-up"], found["expert-down"]) == ((1024, 2688), (2688, 1024))
    assert "expert-gate-up" not in found


SWEEP = {"operation": "matmul", "grid": {"B": 8}, "dtypes": "bf16", "chips": "h100-sxm"}


def of(shapes, **more):
    config = rooflines.load_config({"sweeps": {"one": {**SWEEP, **more, "shapes": shapes}}})
    return config.sweep("one").config_json["shapes"]


def test_forms_of_shapes():
    typed = {"name": "mine", "D": 64, "F": 32}
    down = {"name": "llama-3.1-8b-down", "model": "llama-3.1-8b", "layer": "down"}
    assert of({"models": "meta-llama/llama-3.1-8b", "layers": "down"}) == [
        {**down, "D": 14336, "F": 4096}
    ]
    mixed = of([typed, {"models": ["llama-3.1-8b", "mixtral-8x7b"], "layers": ["o", "q"]}])
    assert [shape["name"] for shape in mixed] == [
        *("mine", "llama-3.1-8b-o", "llama-3.1-8b-q", "mixtral-8x7b-o", "mixtral-8x7b-q")
    ]
    assert of({"models": "olmo-2-7b"}) == of({"models": ["olmo-2-7b"], "layers": "all"})
    assert of({"models": "phi-4"}, operation="BSD,DF->BSF", grid={"B": 1, "S": 8})


@pytest.mark.parametrize("indexer_layers", [None, 3])
def test_modules_of_all_layers_have_the_weights_of_all_indexers(indexer_layers):
    """Queries from a rank of 24 for two heads of 8; keys and the weights of heads from 64."""
    attention = {"kind": "mla", "N": 4, "q_rank": 24, "kv_rank": 16, "nope": 8, "rope": 4, "v": 8}
    sparse: dict[str, int | None] = {"tokens": 8, "heads": 2, "dim": 8, "layers": 6}
    sparse["indexer_layers"] = indexer_layers
    parts = {"attention": attention, "sparse": sparse, "mlp": {"F": 96}}
    shape = Shape.model_validate({"layers": 6, "D": 64, "V": 100, **parts})
    each = modules_of(shape, "full", "dense")
    found = sum(size for name, _, size in each if ".indexer." in name) * 6
    assert found == (indexer_layers or 6) * (24 * 16 + 64 * (8 + 2))


def test_a_dimension_that_repeats_one_of_a_shape_has_its_size_in_every_shape():
    shapes = [{"name": "small", "D": 64}, {"name": "large", "D": 128}]
    sweep = {"operation": "matmul", "grid": {"B": [1, 3], "F": "D"}, "shapes": shapes}
    sweep |= {"dtypes": ["bf16"], "chips": ["h100-sxm"]}
    config = rooflines.load_config({"sweeps": {"one": sweep}})
    rows = rooflines.rows(config, "one").select("shape", "B", "D", "F", "flops").collect()
    assert rows.rows() == [
        (name, batch, size, size, 2 * batch * size**2)
        for batch in (1, 3)
        for name, size in (("small", 64), ("large", 128))
    ]
