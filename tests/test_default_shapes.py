"""Shapes by model: those of config/config.yaml, and every form in which they are given."""

from typing import Any

from defaults import sweeps
from model_matrices import matrices
from plain_files import plain_file

import rooflines
from rooflines.models.layers import LAYERS, layers_of
from rooflines.models.library import model_entries


def test_shapes_are_those_of_the_catalogue():
    config = rooflines.load_config()
    for name, sweep in sweeps().items():
        shapes = sweep.get("shapes", [])
        assert (config.sweep(name).config_json["shapes"] or []) == shapes
        names = [shape["name"] for shape in shapes]
        assert len(set(names)) == len(names)


def test_layers_of_every_model():
    found = {name: layers_of(entry) for name, entry in model_entries().items()}
    entries = plain_file("models.yaml")["models"]
    assert found == {name: matrices(entry) for name, entry in entries.items()}
    for layers in found.values():
        assert list(layers) == [name for name in LAYERS if name in layers]
    assert {layer for layers in found.values() for layer in layers} == set(LAYERS)


def test_matrices_of_deepseek_v3_are_the_published_ones():
    """Source: config.json of deepseek-ai/DeepSeek-V3."""
    found = matrices(plain_file("models.yaml")["models"]["deepseek-v3"])
    assert (found["q-b"], found["kv-a"]) == ((1536, 128 * (128 + 64)), (7168, 512 + 64))
    assert (found["o"], found["expert-gate-up"]) == ((128 * 128, 7168), (7168, 2 * 2048))


def test_experts_of_a_latent_width_take_tokens_of_that_width():
    """Source: config.json of nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16."""
    found = layers_of(model_entries()["nemotron-3-super"])
    assert (found["expert-up"], found["expert-down"]) == ((1024, 2688), (2688, 1024))
    assert "expert-gate-up" not in found


SWEEP = {"operation": "matmul", "grid": {"B": 8}, "dtypes": "bf16", "chips": "h100-sxm"}


def of(shapes, **more):
    """The shapes of a sweep."""
    config = rooflines.load_config({"sweeps": {"one": {**SWEEP, **more, "shapes": shapes}}})
    found: list[dict[str, Any]] = config.sweep("one").config_json["shapes"]
    return found


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
