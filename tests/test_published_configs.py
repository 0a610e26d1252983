"""The config.json of published checkpoints: read with the right counts, or refused by name.

They are not part of the repository: `ROOFLINES_PUBLIC_DATA` names a folder that has them in
`models/configs`. They are model_configs/ of ai-dynamo/aiconfigurator at 095f58a5, Apache-2.0.
"""

import os
from pathlib import Path

import pytest

from rooflines import RooflinesError, models
from rooflines.models.cache import stores_of

DATA = os.environ.get("ROOFLINES_PUBLIC_DATA")
SKIPPED = (
    "ROOFLINES_PUBLIC_DATA names no folder with models/configs, a copy of model_configs/ of "
    "ai-dynamo/aiconfigurator at 095f58a5"
)
FOLDER = next(
    (
        folder
        for folder in (Path(DATA or ""), Path(DATA or "").parent)
        if DATA and (folder / "models" / "configs").is_dir()
    ),
    None,
)
pytestmark = pytest.mark.skipif(FOLDER is None, reason=SKIPPED)

REFUSED = {
    "deepseek-ai--DeepSeek-V4-Pro": "model_type is 'deepseek_v4'",
    "nvidia--DeepSeek-V4-Pro-NVFP4": "model_type is 'deepseek_v4'",
    "nvidia--Llama-3_3-Nemotron-Super-49B-v1": "model_type is 'nemotron-nas'",
    "sgl-project--DeepSeek-V4-Pro-FP8": "model_type is 'deepseek_ref'",
}

# File: parameters as the publisher prints them [1e9], and how close the count is [1e9]; cache
# elements of a token in layers without a window; fixed bytes of a sequence [1e6]; bytes that a
# decode step of S = 131,072 reads of it, at one byte an element [1e9]; bytes of weights [1e9].
TABLE: dict[str, tuple[float, float, int, float, float, float]] = {
    "deepseek-ai--DeepSeek-V3": (671.03, 0.005, 35_136, 0, 4.605, 672.9),
    "deepseek-ai--DeepSeek-V3.2": (671.9, 0.05, 42_944, 0, 1.095, 673.7),
    "google--gemma-4-26B-A4B": (25.2, 0.05, 5_120, 105, 0.776, 50.5),
    "moonshotai--Kimi-K3": (2780, 5, 13_824, 217, 2.246, 1552.9),
    "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (31.6, 0.05, 3_072, 48, 0.499, 63.2),
    "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4": (120.7, 0.05, 4_096, 168, 0.872, 69.4),
    "Qwen--Qwen3.5-397B-A17B": (396.3, 0.05, 15_360, 189, 2.391, 792.7),
    "XiaomiMiMo--MiMo-V2-Flash": (309, 0.5, 11_520, 13, 1.523, 310.0),
    "zai-org--GLM-5": (744, 0.5, 54_912, 0, 1.4006, 1487.8),
    "zai-org--GLM-5.2": (743.4, 0.05, 47_616, 0, 0.444, 1486.8),
}


def config(name):
    """The file of a checkpoint."""
    assert FOLDER is not None
    return FOLDER / "models" / "configs" / f"{name}_config.json"


@pytest.mark.parametrize("name", TABLE)
def test_counts_caches_and_reads_of_late_models(name):
    total, close, per_token, fixed, read, weights = TABLE[name]
    model = models.from_hf(config(name))
    assert model.parameters().total / 1e9 == pytest.approx(total, abs=close)
    context = 131_072
    stores = stores_of(model.shape)
    elements = [s.layers * s.elements for s in stores if not s.state and s.reach.tokens is None]
    assert sum(elements) == per_token
    held = [s.held(context) * (s.bits or 8) / 8e6 for s in stores if s.state or s.reach.tokens]
    assert sum(held) == pytest.approx(fixed, abs=0.51)
    step, groups = models.Step(1, context), model.groups("decode")
    moved = sum(g.count * g.of("cache", step) * (g.bits or 8) for g in groups if g.cache)
    assert float(moved) / 8e9 == pytest.approx(read, abs=6e-4)
    assert float(model.weights_bytes()) / 1e9 == pytest.approx(weights, abs=0.051)


def test_all_but_four_are_read():
    assert FOLDER is not None
    files = (FOLDER / "models" / "configs").glob("*_config.json")
    names = {
        file.name.removesuffix("_config.json") for file in files if "hf_quant" not in file.name
    }
    assert len(names) == 62
    assert set(REFUSED) <= names
    for name in sorted(names - set(REFUSED)):
        model = models.from_hf(config(name))
        assert model.dtypes is not None
        assert model.parameters().total > 0


@pytest.mark.parametrize("name", REFUSED)
def test_the_others_are_refused_by_name(name):
    assert FOLDER is not None
    with pytest.raises(RooflinesError, match=REFUSED[name]) as refused:
        models.from_hf(config(name))
    assert str(refused.value).count("fix:") == 1
