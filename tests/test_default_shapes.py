"""Shapes by model: those of config/config.yaml, and the message for each mistake in others."""

from __future__ import annotations

import re
from typing import Any

import pytest
from model_matrices import matrices, written_out
from plain_files import plain_file

import rooflines
from rooflines.models.layers import LAYERS, layers_of
from rooflines.models.library import model_entries

NAME = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")

# Published configs: width, query heads, key-value heads, head width, MLP width, vocabulary.
PUBLISHED = {
    "llama-3.1-8b": (4096, 32, 8, 128, 14336, 128256),
    "llama-3.1-70b": (8192, 64, 8, 128, 28672, 128256),
    "llama-3.1-405b": (16384, 128, 8, 128, 53248, 128256),
    "qwen2.5-7b": (3584, 28, 4, 128, 18944, 152064),
    "qwen2.5-72b": (8192, 64, 8, 128, 29568, 152064),
    "qwen3-32b": (5120, 64, 8, 128, 25600, 151936),
    "qwen3-30b-a3b": (2048, 32, 4, 128, 768, 151936),
    "qwen3-235b-a22b": (4096, 64, 4, 128, 1536, 151936),
    "mixtral-8x7b": (4096, 32, 8, 128, 14336, 32000),
    "mixtral-8x22b": (6144, 48, 8, 128, 16384, 32768),
    "mistral-large-2": (12288, 96, 8, 128, 28672, 32768),
    "gemma-2-27b": (4608, 32, 16, 128, 36864, 256000),
    "gemma-3-27b": (5376, 32, 16, 128, 21504, 262144),
    "gpt-oss-120b": (2880, 64, 8, 64, 2880, 201088),
}


@pytest.fixture(scope="module")
def sweeps():
    config = rooflines.load_config()
    return {
        name: sweep.config_json["shapes"]
        for name, sweep in config.sweeps.items()
        if sweep.config_json["shapes"]
    }


@pytest.fixture(scope="module")
def shapes(sweeps):
    return {shape["name"]: (shape["D"], shape["F"]) for shape in sweeps["model-shapes"]}


def test_shapes_are_those_of_the_catalogue(sweeps):
    written = plain_file("config.yaml")["sweeps"]
    assert {name for name in written if "shapes" in written[name]} == set(sweeps)
    for name, shapes in sweeps.items():
        assert shapes == written_out(written[name]["shapes"])
        assert all(shape["name"] == f"{shape['model']}-{shape['layer']}" for shape in shapes)
        names = [shape["name"] for shape in shapes]
        assert sorted(names) == sorted(set(names))
        assert [name for name in names if not NAME.fullmatch(name)] == []
    assert [len(shapes) for shapes in sweeps.values()] == [124, 34, 2, 1]


def test_layers_of_every_model():
    found = {name: layers_of(entry) for name, entry in model_entries().items()}
    entries = plain_file("models.yaml")["models"]
    assert found == {name: matrices(entry) for name, entry in entries.items()}
    assert all(
        list(layers) == [name for name in LAYERS if name in layers] for layers in found.values()
    )
    assert {layer for layers in found.values() for layer in layers} == set(LAYERS)


def test_shapes_agree_between_sweeps(sweeps, shapes):
    for of_sweep in sweeps.values():
        for shape in of_sweep:
            assert shapes[shape["name"]] == (shape["D"], shape["F"])


@pytest.mark.parametrize("model", PUBLISHED)
def test_matrices_of_a_model(shapes, model):
    width, queries, keys, head, mlp, vocabulary = PUBLISHED[model]
    expert = "expert-" if f"{model}-expert-up" in shapes else ""
    assert {
        name: sizes
        for name, sizes in shapes.items()
        if re.fullmatch(rf"{model}-(q|k|qkv|o|(expert-)?(up|gate-up|down)|unembed)", name)
    } == {
        f"{model}-q": (width, queries * head),
        f"{model}-k": (width, keys * head),
        f"{model}-qkv": (width, (queries + 2 * keys) * head),
        f"{model}-o": (queries * head, width),
        f"{model}-{expert}up": (width, mlp),
        f"{model}-{expert}gate-up": (width, 2 * mlp),
        f"{model}-{expert}down": (mlp, width),
        f"{model}-unembed": (width, vocabulary),
    }


def test_matrices_of_deepseek_v3(shapes):
    width, heads, plain, rotary, value, q_rank, kv_rank = 7168, 128, 128, 64, 128, 1536, 512
    assert {
        name.removeprefix("deepseek-v3-"): sizes
        for name, sizes in shapes.items()
        if name.startswith("deepseek-v3-")
    } == {
        "q-a": (width, q_rank),
        "q-b": (q_rank, heads * (plain + rotary)),
        "kv-a": (width, kv_rank + rotary),
        "kv-b": (kv_rank, heads * (plain + value)),
        "o": (heads * value, width),
        "up": (width, 18432),
        "gate-up": (width, 2 * 18432),
        "down": (18432, width),
        "expert-up": (width, 2048),
        "expert-gate-up": (width, 2 * 2048),
        "expert-down": (2048, width),
        "unembed": (width, 129280),
    }


def test_every_model_is_checked(shapes):
    models = (*PUBLISHED, "deepseek-v3")
    assert [
        name for name in shapes if not name.startswith(tuple(f"{model}-" for model in models))
    ] == []


@pytest.mark.parametrize(
    ("model", "layers", "experts", "billions"),
    [
        ("llama-3.1-8b", 32, 0, 8.03),
        ("llama-3.1-70b", 80, 0, 70.6),
        ("llama-3.1-405b", 126, 0, 405.9),
        ("qwen2.5-72b", 80, 0, 72.7),
        ("qwen3-32b", 64, 0, 32.8),
        ("mixtral-8x7b", 32, 8, 46.7),
        ("qwen3-235b-a22b", 94, 128, 235.1),
        ("mistral-large-2", 88, 0, 122.6),
    ],
)
def test_parameter_counts(shapes, model, layers, experts, billions):
    size = {name.removeprefix(f"{model}-"): d * f for name, (d, f) in shapes.items()}
    mlp = (
        experts * (size["expert-gate-up"] + size["expert-down"])
        if experts
        else size["gate-up"] + size["down"]
    )
    total = layers * (size["qkv"] + size["o"] + mlp) + 2 * size["unembed"]
    assert total / 1e9 == pytest.approx(billions, rel=2e-3)


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


@pytest.mark.parametrize(
    ("shapes", "more", "place", "words"),
    [
        ({"models": "llama-3-70b"}, {}, "shapes.models[0]", "close to it: llama-3.1-70b"),
        (
            [{"models": ["phi-4", "qwen3-33b"]}],
            {},
            "shapes[0].models[1]",
            "is 'qwen3-33b', which is no model of the catalogue",
        ),
        ({"models": "phi-4", "layers": ["q", "gateup"]}, {}, "shapes.layers[1]", "gate-up"),
        (
            {"models": ["phi-4", "mixtral-8x7b"], "layers": "up"},
            {},
            "shapes.layers[0]",
            "is 'up', which mixtral-8x7b does not have",
        ),
        ({"models": "phi-4", "layer": "up"}, {}, "shapes.layer", "close to it: layers"),
        (
            [{"models": "phi-4"}, {"models": "microsoft/phi-4", "layers": "q"}],
            {},
            "shapes[1].models",
            "gives 'phi-4-q', which is listed twice",
        ),
        (
            [{"name": "mine", "D": 1, "F": 1}, {"models": "phi-4"}],
            {"operation": "BK,KN->BN"},
            "shapes[1].models",
            "gives sizes to D and F, no dimension of BK,KN->BN",
        ),
        ({"models": []}, {}, "shapes.models", "is an empty list"),
        ({"models": [7]}, {}, "shapes.models[0]", "is 7, which is no text"),
    ],
)
def test_mistakes_in_shapes_of_models(shapes, more, place, words):
    with pytest.raises(rooflines.RooflinesError) as caught:
        of(shapes, **more)
    message = str(caught.value)
    assert f"sweeps.one.{place}" in message
    assert words in message
    places = {error.where for error in caught.value.errors}
    assert len(places) == len(caught.value.errors)
