"""The shapes of config/config.yaml are matrices of published models; read without the package."""

from __future__ import annotations

import re
from typing import Any

import pytest
from plain_files import CONFIG, plain_file
from test_default_config import NAME

# Published configs: width, query heads, key-value heads, head width, MLP width, vocabulary.
PUBLISHED = {
    "llama-3-8b": (4096, 32, 8, 128, 14336, 128256),
    "llama-3-70b": (8192, 64, 8, 128, 28672, 128256),
    "llama-3-405b": (16384, 128, 8, 128, 53248, 128256),
    "qwen-2-5-7b": (3584, 28, 4, 128, 18944, 152064),
    "qwen-2-5-72b": (8192, 64, 8, 128, 29568, 152064),
    "qwen-3-32b": (5120, 64, 8, 128, 25600, 151936),
    "qwen-3-30b-a3b": (2048, 32, 4, 128, 768, 151936),
    "qwen-3-235b-a22b": (4096, 64, 4, 128, 1536, 151936),
    "mixtral-8x7b": (4096, 32, 8, 128, 14336, 32000),
    "mixtral-8x22b": (6144, 48, 8, 128, 16384, 32768),
    "mistral-large-2": (12288, 96, 8, 128, 28672, 32768),
    "gemma-2-27b": (4608, 32, 16, 128, 36864, 256000),
    "gemma-3-27b": (5376, 32, 16, 128, 21504, 262144),
    "gpt-oss": (2880, 64, 8, 64, 2880, 201088),
}


@pytest.fixture(scope="module")
def sweeps() -> dict[str, dict[str, Any]]:
    """The sweeps of the default config, by name."""
    found: dict[str, dict[str, Any]] = plain_file("config.yaml")["sweeps"]
    return found


@pytest.fixture(scope="module")
def shapes(sweeps: dict[str, dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """(D, F) of every published matrix, by name."""
    return {shape["name"]: (shape["D"], shape["F"]) for shape in sweeps["model-shapes"]["shapes"]}


def test_shape_names_are_well_formed(shapes: dict[str, tuple[int, int]]) -> None:
    """So do the names of shapes."""
    assert [name for name in shapes if not NAME.fullmatch(name)] == []


def test_shape_names_are_unique(sweeps: dict[str, dict[str, Any]]) -> None:
    """No sweep has two shapes of one name."""
    for sweep in sweeps.values():
        names = [shape["name"] for shape in sweep.get("shapes", [])]
        assert sorted(names) == sorted(set(names))


def test_shape_sizes(sweeps: dict[str, dict[str, Any]]) -> None:
    """Shapes are layers of a model, named after both, and have whole positive sizes."""
    for shape in sweeps["model-shapes"]["shapes"]:
        assert set(shape) == {"name", "model", "layer", "D", "F"}
        assert shape["name"] == f"{shape['model']}-{shape['layer']}"
        assert type(shape["D"]) is int
        assert type(shape["F"]) is int
        assert min(shape["D"], shape["F"]) > 0


def test_shapes_agree_between_sweeps(
    sweeps: dict[str, dict[str, Any]], shapes: dict[str, tuple[int, int]]
) -> None:
    """A shape has the same sizes in every sweep."""
    for sweep in sweeps.values():
        for shape in sweep.get("shapes", []):
            assert shapes[shape["name"]] == (shape["D"], shape["F"])


def test_shapes_have_sources(shapes: dict[str, tuple[int, int]]) -> None:
    """Every shape is below the address of a published config of its model family."""
    source, cited = None, {}
    for line in (CONFIG / "config.yaml").read_text(encoding="utf-8").splitlines():
        if found := re.fullmatch(
            r" +# source: https://huggingface\.co/[^/]+/([^/]+)/blob/main/config\.json", line
        ):
            source = found.group(1).lower().replace(".", "-")
        elif line.lstrip().startswith("#"):
            source = None
        elif (shape := re.search(r"\{name: ([a-z0-9-]+), model: ", line)) and source:
            cited[shape.group(1)] = source
    assert set(cited) == set(shapes)
    families = {name: re.match(r"[a-z]+", name) for name in cited}
    assert {
        name for name, family in families.items() if not family or family.group() not in cited[name]
    } == set()


@pytest.mark.parametrize("model", PUBLISHED)
def test_matrices_of_a_model(shapes: dict[str, tuple[int, int]], model: str) -> None:
    """The matrices follow from the published width, heads, MLP and vocabulary."""
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


def test_matrices_of_deepseek_v3(shapes: dict[str, tuple[int, int]]) -> None:
    """DeepSeek-V3 has low-rank attention: rank 1536 for queries, 512 for keys and values."""
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


def test_every_model_is_checked(shapes: dict[str, tuple[int, int]]) -> None:
    """Every shape belongs to a model that is checked here."""
    models = (*PUBLISHED, "deepseek-v3")
    assert [
        name for name in shapes if not name.startswith(tuple(f"{model}-" for model in models))
    ] == []


@pytest.mark.parametrize(
    ("model", "layers", "experts", "billions"),
    [
        ("llama-3-8b", 32, 0, 8.03),
        ("llama-3-70b", 80, 0, 70.6),
        ("llama-3-405b", 126, 0, 405.9),
        ("qwen-2-5-72b", 80, 0, 72.7),
        ("qwen-3-32b", 64, 0, 32.8),
        ("mixtral-8x7b", 32, 8, 46.7),
        ("qwen-3-235b-a22b", 94, 128, 235.1),
        ("mistral-large-2", 88, 0, 122.6),
    ],
)
def test_parameter_counts(
    shapes: dict[str, tuple[int, int]], model: str, layers: int, experts: int, billions: float
) -> None:
    """The matrices add up to the published size; norms, routers and biases are below 0.2 %."""
    size = {name.removeprefix(f"{model}-"): d * f for name, (d, f) in shapes.items()}
    mlp = (
        experts * (size["expert-gate-up"] + size["expert-down"])
        if experts
        else size["gate-up"] + size["down"]
    )
    total = layers * (size["qkv"] + size["o"] + mlp) + 2 * size["unembed"]
    assert total / 1e9 == pytest.approx(billions, rel=2e-3)
