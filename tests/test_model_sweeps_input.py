"""Wrong sweeps of whole models: one message in the usual form, or rows in skipped.csv."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
import yaml
from hf_configs import config_of

import rooflines
from rooflines.basics.yaml_file import read_yaml
from rooflines.models.library import MODELS_FILE

SWEEP: dict[str, Any] = {
    "models": ["llama-3.1-8b"],
    "grid": {"B": [1, 8], "S": 1024},
    "dtypes": ["bf16"],
    "chips": ["h100-sxm"],
}


def loaded(**changes):
    """A config of one sweep with these changes."""
    return rooflines.load_config({"model-sweeps": {"s": {**SWEEP, **changes}}})


def mistakes(**changes):
    """Place and problem of each mistake, below the sweep."""
    with pytest.raises(rooflines.RooflinesError) as refused:
        loaded(**changes)
    return [
        f"{error.where.removeprefix('model-sweeps.s').lstrip('.')} {error.problem}".strip()
        for error in refused.value.errors
    ]


WRONG: dict[str, tuple[dict[str, Any], list[str]]] = {
    "an unknown model": (
        {"models": ["lama"]},
        ["models[0] is 'lama', which is no model of the catalogue"],
    ),
    "one model under two names": (
        {"models": ["llama-3.1-8b", "meta-llama/Llama-3.1-8B"]},
        ["models[1] is 'llama-3.1-8b', which is listed twice"],
    ),
    "a shape with a wrong key": (
        {"models": [{"name": "mine", "layer": 2, "D": 64, "V": 8, "attention": {}}]},
        ["models[0].layer is no key here; known are", "models[0].attention lacks N, K, H"],
    ),
    "a file and sizes": (
        {"models": [{"name": "mine", "hf": "config.json", "layers": 2}]},
        ["models[0].hf stands beside layers"],
    ),
    "an unknown chip": (
        {"chips": ["h100"]},
        ["chips[0] is 'h100', which is no chip in the catalogue"],
    ),
    "an unknown dtype": ({"dtypes": ["bf17"]}, ["dtypes[0] is 'bf17', which is no dtype"]),
    "an unknown dtype of a class": (
        {"dtypes": [{"weights": "fp7", "cache": "fp8", "activations": "bf16", "compute": "bf16"}]},
        ["dtypes[0].weights is 'fp7', which is no dtype"],
    ),
    "a class left out": ({"dtypes": [{"weights": "fp8"}]}, ["dtypes[0] lacks cache, activations,"]),
    "no context": ({"grid": {"B": 1}}, ["grid lacks S"]),
    "a size of zero": ({"grid": {"B": 0, "S": 1}}, ["grid.B is 0"]),
    "another size": ({"grid": {"B": 1, "S": 1, "D": 64}}, ["grid.D is no size of a model sweep"]),
    "a size that repeats": (
        {"grid": {"B": "S", "S": 1}},
        ["grid.B is 'S', but no size repeats another one here"],
    ),
    "an axis without end": (
        {"grid": {"B": 1, "S": {"from": 1, "to": 1e15, "step": 1}}},
        ["grid.S has 1,000,000,000,000,000 sizes"],
    ),
    "a grid without end": (
        {
            "grid": {
                "B": {"from": 1, "to": 1e6, "step": 1},
                "S": {"from": 1, "to": 1e6, "step": 1},
            },
            "rows_per_part": 1_000,
        },
        ["grid makes at least 1,000,000,000,000 rows"],
    ),
    "new tokens of a prompt": (
        {"phase": "prefill", "grid": {"B": 1, "S": 8, "T": 2}},
        ["grid.T gives new tokens, but in prefill all S tokens are new"],
    ),
    "pipelines": (
        {"splits": [{"tp": 8, "pp": 2}]},
        ["splits[0].pp is pipeline parallelism, which is not modelled"],
    ),
    "experts over some chips": (
        {"splits": [{"tp": 8, "ep": 4}]},
        ["splits[0].ep is 4, neither 1 nor tp * dp, 8"],
    ),
    "nothing that can be": (
        {"dtypes": ["nvfp4"]},
        ["is left with no rows. It asks for h100-sxm, nvfp4, hbm: no nvfp4 peak"],
    ),
    "something that cannot be": (
        {"splits": [{"tp": 1}, {"tp": 3}], "on_unsupported": "error"},
        ["on_unsupported is 'error', and the sweep asks for llama-3.1-8b, tp3: tp is 3"],
    ),
    "several mistakes": (
        {"models": ["lama"], "chips": ["h100"], "grid": {"B": 1, "S": 1}},
        ["models[0] is 'lama'", "chips[0] is 'h100'"],
    ),
    "several mistakes of form": (
        {"models": ["lama"], "dtypes": ["bf17"], "grid": {"B": 0, "S": 1}},
        ["dtypes[0] is 'bf17'", "grid.B is 0"],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_refused_with_its_place(case):
    changes, expected = WRONG[case]
    found = mistakes(**changes)
    assert len(found) == len(expected)
    for message, start in zip(sorted(found), sorted(expected), strict=True):
        assert message.startswith(start)


def test_a_config_has_a_sweep_and_names_are_unique():
    for empty in ([], ["sweeps"], ["model-sweeps"], ["sweeps", "model-sweeps"]):
        with pytest.raises(rooflines.RooflinesError, match="has no sweeps"):
            rooflines.load_config({key: {} for key in empty})
    operation = {
        "operation": "matmul",
        "grid": {"B": 1, "D": 1, "F": 1},
        "dtypes": ["bf16"],
        "chips": ["h100-sxm"],
    }
    both = {"sweeps": {"s": operation}, "model-sweeps": {"s": SWEEP}}
    with pytest.raises(rooflines.RooflinesError, match=r"model-sweeps\.s is the name of a sweep"):
        rooflines.load_config(both)
    with pytest.raises(rooflines.RooflinesError, match="model_sweeps is no key") as refused:
        rooflines.load_config({"model_sweeps": {"s": SWEEP}})
    assert refused.value.close[0] == "model-sweeps"
    with pytest.raises(rooflines.RooflinesError, match="model-sweeps has no 's2'"):
        rooflines.model_rows(loaded(), "s2")


def test_a_mistake_has_its_line(tmp_path):
    file = tmp_path / "my.yaml"
    file.write_text(yaml.safe_dump({"model-sweeps": {"s": {**SWEEP, "chips": ["h100"]}}}))
    (line,) = (n for n, text in enumerate(file.read_text().splitlines(), 1) if "h100" in text)
    with pytest.raises(rooflines.RooflinesError, match=rf"my\.yaml:{line}: model-sweeps\.s\.chips"):
        rooflines.load_config(file)


SHAPE = {"layers": 1, "D": 8, "V": 8, "attention": {"N": 1, "K": 1, "H": 8}, "mlp": {"F": 8}}
LLAMA = config_of(read_yaml(MODELS_FILE)["models"]["llama-3.1-8b"])

HF: dict[str, tuple[dict[str, Any] | str, str]] = {
    "an unknown family": ({**LLAMA, "model_type": "lama"}, r"model_type is 'lama'.*\n  close to"),
    "an unknown key": ({**LLAMA, "num_layer": 3}, "num_layer is "),
    "truncated": (json.dumps(LLAMA)[:-20], "is not valid JSON.*\n  fix: download it again"),
    "images": ({**LLAMA, "vision_config": {"depth": 2}}, "vision_config is set"),
}


@pytest.mark.parametrize("case", HF)
def test_a_config_json_that_is_not_understood_is_refused(case, tmp_path):
    content, message = HF[case]
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "config.json").write_text(text)
    sweep = {**SWEEP, "models": [{"name": "mine", "hf": "models/config.json"}]}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump({"model-sweeps": {"s": sweep}}))
    with pytest.raises(rooflines.RooflinesError, match=f"models/config.json.*{message}"):
        rooflines.load_config(tmp_path / "my.yaml")


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"grid": {"B": 1, "S": [8, 4097]}}, "grid.S reaches 4,097"),
        ({"grid": {"B": 1}, "requests": {"input": 4096, "output": 2}}, "requests reaches 4,098"),
        ({"grid": {"B": 1, "S": [8, 4096]}}, None),
    ],
)
def test_contexts_beyond_the_trained_one_are_computed_with_a_warning(changes, place, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**LLAMA, "max_position_embeddings": 4096}))
    models = [{"name": "mine", "hf": str(file)}, {"name": "other", **SHAPE}]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        config = loaded(models=models, **changes)
    assert config.model_sweep("s").rows
    said = [f"config: model-sweeps.s.{place} tokens, and mine is trained for 4,096."]
    assert [str(each.message).split("\n")[0] for each in caught] == (said if place else [])
    assert all(each.category is rooflines.PlausibilityWarning for each in caught)


def test_models_of_the_catalogue_have_a_trained_context():
    with pytest.warns(rooflines.PlausibilityWarning) as caught:
        loaded(models=["olmo-2-7b", "llama-3.1-8b"], grid={"B": 1, "S": [4096, 131072]})
    (warning,) = caught
    message = (
        "config: model-sweeps.s.grid.S reaches 131,072 tokens, and olmo-2-7b is trained for 4,096"
    )
    assert str(warning.message).startswith(message)


SKIPPED: dict[str, tuple[dict[str, Any], dict[str, object]]] = {
    "tp that does not divide the heads": (
        {"splits": [{"tp": 1}, {"tp": 3}]},
        {"model": "llama-3.1-8b", "split": "tp3", "rows": 2, "reason": "tp is 3, which does not"},
    ),
    "ep that does not divide the experts": (
        {
            "models": ["gpt-oss-20b"],
            "grid": {"B": 24, "S": 8},
            "splits": [{"tp": 1}, {"dp": 24, "ep": 24}],
            "network": "infiniband",
        },
        {"model": "gpt-oss-20b", "split": "tp1-dp24-ep24", "reason": "ep is 24, which does not"},
    ),
    "ep of a dense model": (
        {"splits": [{"tp": 1}, {"tp": 8, "ep": 8}]},
        {"split": "tp8-ep8", "reason": "ep is 8, but the model has no experts"},
    ),
    "more chips than the network joins": (
        {"splits": [{"tp": 8}, {"tp": 16}]},
        {"model": None, "chip": "h100-sxm", "network": "nvlink", "split": "tp16", "rows": 2},
    ),
    "a dtype that the chip lacks": (
        {"dtypes": ["bf16", "mxfp4"]},
        {"model": None, "chip": "h100-sxm", "dtypes": "mxfp4", "split": None, "rows": 2},
    ),
    "a memory level that the chip lacks": (
        {"memory": ["hbm", "vmem"]},
        {"chip": "h100-sxm", "memory": "vmem", "rows": 2},
    ),
    "fewer sequences than replicas": (
        {"splits": [{"tp": 1, "dp": 4}]},
        {"split": "tp1-dp4", "rows": 1, "reason": "fewer sequences than the 4 replicas"},
    ),
}


@pytest.mark.parametrize("case", SKIPPED)
def test_what_cannot_be_is_skipped_with_the_reason(case):
    changes, expected = SKIPPED[case]
    config = loaded(**changes)
    (row,) = rooflines.skipped(config).to_dicts()
    for key, value in expected.items():
        assert row[key].startswith(value) if key == "reason" else row[key] == value
    assert rooflines.model_rows(config, "s").collect().height > 0
