"""config/dtypes.yaml and config/config.yaml as plain YAML, read without the package."""

# The claims about one config: long, but one thing.

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

CONFIG_FOLDER = Path(__file__).parent.parent / "config"
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
OPERANDS = ("x", "w", "out")
COMBINATION_KEYS = {*OPERANDS, "compute", "note"}

STORED_BITS = {
    "fp64": "64",
    "fp32": "32",
    "tf32": "32",
    "bf16": "16",
    "fp16": "16",
    "fp8": "8",
    "int8": "8",
    "int4": "4",
    "int4-g128": "4.125",
    "mxfp8": "8.25",
    "mxfp6": "6.25",
    "mxfp4": "4.25",
    "nvfp4": "4.5",
}

WORKED_COMBINATIONS = {
    "bf16": ("bf16", "bf16", "bf16", "bf16"),
    "int8": ("int8", "int8", "int8", "int8"),
    "w8a16": ("bf16", "int8", "bf16", "bf16"),
    "w4a16": ("bf16", "int4", "bf16", "bf16"),
    "w8a8": ("int8", "int8", "bf16", "int8"),
    "fp8": ("fp8", "fp8", "fp8", "fp8"),
    "fp8-out-bf16": ("fp8", "fp8", "bf16", "fp8"),
    "mxfp4": ("mxfp4", "mxfp4", "bf16", "mxfp4"),
    "nvfp4": ("nvfp4", "nvfp4", "bf16", "nvfp4"),
    "w4a8": ("int8", "int4", "bf16", "int8"),
    "w-mxfp4-x-bf16": ("bf16", "mxfp4", "bf16", "bf16"),
    "w-nvfp4-x-bf16": ("bf16", "nvfp4", "bf16", "bf16"),
    "w-nvfp4-x-fp8": ("fp8", "nvfp4", "bf16", "fp8"),
}

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


class _Loader(yaml.SafeLoader):
    """YAML in which 8.1e11 is a number and duplicate keys are refused."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        keys = [key.value for key, _ in node.value]
        repeated = {key for key in keys if keys.count(key) > 1}
        if repeated:
            raise yaml.constructor.ConstructorError(
                None, None, f"duplicate keys: {sorted(repeated)}", node.start_mark
            )
        return super().construct_mapping(node, deep=deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def _text(name: str) -> str:
    return (CONFIG_FOLDER / name).read_text(encoding="utf-8")


def _load(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load(_text(name), Loader=_Loader)  # noqa: S506, a SafeLoader with two additions
    return loaded


@pytest.fixture(scope="module")
def dtypes() -> dict[str, Any]:
    """The dtype catalogue."""
    return _load("dtypes.yaml")


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    """The default config."""
    return _load("config.yaml")


@pytest.fixture(scope="module")
def sweeps(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The sweeps of the default config, by name."""
    found: dict[str, dict[str, Any]] = config["sweeps"]
    return found


@pytest.fixture(scope="module")
def shapes(sweeps: dict[str, dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """(D, F) of every published matrix, by name."""
    return {shape["name"]: (shape["D"], shape["F"]) for shape in sweeps["model-shapes"]["shapes"]}


# --- dtypes ---


def test_stored_bits(dtypes: dict[str, Any]) -> None:
    """Stored bits of every format equal its specification, block scales included."""
    stored = {
        name: Fraction(form["bits"]) + Fraction(form.get("scale_bits", 0), form.get("block", 1))
        for name, form in dtypes["formats"].items()
    }
    assert stored == {name: Fraction(bits) for name, bits in STORED_BITS.items()}


def test_scales_have_blocks(dtypes: dict[str, Any]) -> None:
    """`scale_bits` and `block` are given together."""
    incomplete = {
        name
        for name, form in dtypes["formats"].items()
        if ("scale_bits" in form) != ("block" in form)
    }
    assert incomplete == set()


def test_formats_have_sources(dtypes: dict[str, Any]) -> None:
    """Every format says what it is and where it is defined."""
    silent = {
        name
        for name, form in dtypes["formats"].items()
        for key in ("note", "source")
        if not isinstance(form.get(key), str)
    }
    assert silent == set()


def test_tf32_storage(dtypes: dict[str, Any]) -> None:
    """The note of tf32 says that it is stored as fp32."""
    assert "stored as fp32" in dtypes["formats"]["tf32"]["note"]


def test_combination_keys(dtypes: dict[str, Any]) -> None:
    """A combination has five keys; an unquoted note with a comma would give more."""
    odd = {
        name: sorted(set(given) ^ COMBINATION_KEYS)
        for name, given in dtypes["combinations"].items()
        if set(given) != COMBINATION_KEYS
    }
    assert odd == {}


def test_combinations_use_known_formats(dtypes: dict[str, Any]) -> None:
    """Combinations use existing formats."""
    unknown = {
        (name, key, given[key])
        for name, given in dtypes["combinations"].items()
        for key in (*OPERANDS, "compute")
        if given[key] not in dtypes["formats"]
    }
    assert unknown == set()


def test_combinations_have_notes(dtypes: dict[str, Any]) -> None:
    """The note of every combination says who uses it, in at least two words."""
    assert {
        name for name, given in dtypes["combinations"].items() if len(given["note"].split()) < 2
    } == set()


def test_combinations_differ(dtypes: dict[str, Any]) -> None:
    """No two names have the same four formats."""
    parts = [
        tuple(given[key] for key in (*OPERANDS, "compute"))
        for given in dtypes["combinations"].values()
    ]
    assert sorted(parts) == sorted(set(parts))


@pytest.mark.parametrize("name", WORKED_COMBINATIONS)
def test_well_known_combinations(dtypes: dict[str, Any], name: str) -> None:
    """Well-known combinations have their usual formats."""
    given = dtypes["combinations"][name]
    assert tuple(given[key] for key in (*OPERANDS, "compute")) == WORKED_COMBINATIONS[name]


def test_combination_names_tell_their_formats(dtypes: dict[str, Any]) -> None:
    """Names of combinations follow the convention in the file."""
    formats, sixteen = dtypes["formats"], {"bf16", "fp16"}
    stored_apart = {"tf32": "fp32"}

    def expected(name: str) -> tuple[str, str, str, str]:
        if integers := re.fullmatch(r"w(\d+)a(\d+)(-g\d+)?", name):
            weights, activations, group = integers.groups()
            x = "bf16" if activations == "16" else f"int{activations}"
            return x, f"int{weights}{group or ''}", "bf16", x
        if mixed := re.fullmatch(r"w-(.+)-x-(.+)", name):
            w, x = mixed.groups()
            return x, w, x if x in sixteen else "bf16", x
        if "-out-" in name:
            both, out = name.split("-out-")
            return both, both, out, both
        if "-compute-" in name:
            stored, compute = name.split("-compute-")
            return stored, stored, stored, compute
        stored = stored_apart.get(name, name)
        return stored, stored, "bf16" if "block" in formats[name] else stored, name

    actual = {
        name: tuple(given[key] for key in (*OPERANDS, "compute"))
        for name, given in dtypes["combinations"].items()
    }
    assert actual == {name: expected(name) for name in actual}


# --- names ---


@pytest.mark.parametrize(
    ("file", "path"),
    [
        ("dtypes.yaml", ("formats",)),
        ("dtypes.yaml", ("combinations",)),
        ("config.yaml", ("sweeps",)),
        ("config.yaml", ("chips",)),
    ],
)
def test_names_are_well_formed(file: str, path: tuple[str, ...]) -> None:
    """Names consist of lower-case letters, digits and single hyphens."""
    found = _load(file)
    for key in path:
        found = found[key]
    assert found != {}
    assert [name for name in found if not NAME.fullmatch(name)] == []


def test_shape_names_are_well_formed(shapes: dict[str, tuple[int, int]]) -> None:
    """So do the names of shapes."""
    assert [name for name in shapes if not NAME.fullmatch(name)] == []


# --- sweeps ---


def test_named_combinations_exist(
    dtypes: dict[str, Any], sweeps: dict[str, dict[str, Any]]
) -> None:
    """Every combination that a sweep names is in the catalogue."""
    asked = {
        (sweep, name)
        for sweep, given in sweeps.items()
        for name in given["dtypes"]
        if isinstance(name, str)
    }
    assert {(sweep, name) for sweep, name in asked if name not in dtypes["combinations"]} == set()


def test_inline_combinations_use_known_formats(
    dtypes: dict[str, Any], sweeps: dict[str, dict[str, Any]]
) -> None:
    """Inline combinations are complete and use existing formats."""
    inline = [
        given
        for sweep in sweeps.values()
        for given in sweep["dtypes"]
        if not isinstance(given, str)
    ]
    assert inline != []
    for given in inline:
        assert set(given) == {*OPERANDS, "compute"}
        assert set(given.values()) <= set(dtypes["formats"])


def test_overrides_are_positive_numbers(config: dict[str, Any]) -> None:
    """Overrides of chips are positive numbers."""
    paths = {
        (chip, path): value
        for chip, given in config["chips"].items()
        for path, value in given.items()
        if path.startswith(("units.", "memory.", "networks.", "efficiency.", "calibration."))
    }
    assert paths != {}
    assert {
        where for where, value in paths.items() if not isinstance(value, int | float) or value <= 0
    } == set()


def test_own_chips_are_sourced_and_used(
    config: dict[str, Any], sweeps: dict[str, dict[str, Any]]
) -> None:
    """Every chip of the config has a source and is used by a sweep."""
    used = {chip for given in sweeps.values() if given["chips"] != "all" for chip in given["chips"]}
    assert {
        chip
        for chip, given in config["chips"].items()
        if not given.get("source") or chip not in used
    } == set()


def test_chip_of_243_flop_per_byte(config: dict[str, Any]) -> None:
    """The book's rounded chip has a critical intensity of exactly 243 FLOP/byte."""
    chip = config["chips"]["tpu-v5e-intensity-243"]
    assert (
        Fraction(chip["units.matrix.bf16.flops_per_s"]) / Fraction(chip["memory.hbm.bytes_per_s"])
        == 243
    )


def test_vector_unit_intensity(config: dict[str, Any]) -> None:
    """The vector unit of the dot product needs 2.5 FLOP/byte."""
    chip = config["chips"]["tpu-v5p-vector-7e12"]
    assert Fraction(chip["units.vector.fp32.flops_per_s"]) / Fraction(
        chip["memory.hbm.bytes_per_s"]
    ) == Fraction(5, 2)


def test_timed_matmul(sweeps: dict[str, dict[str, Any]]) -> None:
    """The matmul of the timing example is of exactly 1e12 FLOP."""
    grid = sweeps["book-time-of-1e12-flops"]["grid"]
    assert 2 * grid["B"] * grid["D"] * grid["F"] == 10**12


def test_batch_in_tokens(sweeps: dict[str, dict[str, Any]]) -> None:
    """512 sequences of 4096 tokens over 128 replicas are 16384 tokens each."""
    batch = sweeps["book-batch-in-tokens"]["grid"]["B"]
    assert Fraction(batch["sequences"] * batch["tokens_per_sequence"], batch["replicas"]) == 16384


def test_question_3_grid(sweeps: dict[str, dict[str, Any]]) -> None:
    """The curve of question 3 has every batch size from 1 to 512, at D = F = 1024 and 4096."""
    grid = sweeps["book-q3-curve"]["grid"]
    assert grid == {"B": {"from": 1, "to": 512, "step": 1}, "D": [1024, 4096], "F": "D"}


def test_shard_counts(sweeps: dict[str, dict[str, Any]]) -> None:
    """Models are split over 1 to 64 chips, in powers of two."""
    assert sweeps["sharded-models"]["shards"] == [2**power for power in range(7)]


def test_batch_sizes(sweeps: dict[str, dict[str, Any]]) -> None:
    """The large sweeps take batches in powers of two up to 65,536, on every chip."""
    for name in ("common-sizes", "model-shapes", "sharded-models"):
        assert sweeps[name]["grid"]["B"] == {"from": 1, "to": 65536, "factor": 2}
        assert sweeps[name]["chips"] == "all"


def test_sweeps_are_explained(sweeps: dict[str, dict[str, Any]]) -> None:
    """Every sweep is explained by a comment right above it."""
    lines = _text("config.yaml").splitlines()
    bare = {name for name in sweeps if not lines[lines.index(f"  {name}:") - 1].startswith("  # ")}
    assert bare == set()


# --- shapes of published models ---


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
    for line in _text("config.yaml").splitlines():
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
