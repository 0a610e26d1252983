"""The config.json of published checkpoints: read with the right counts, or refused by name.

They are not part of the repository: `ROOFLINES_PUBLIC_DATA` names a folder that has them in
`models/configs`. They are model_configs/ of ai-dynamo/aiconfigurator at 095f58a5, Apache-2.0.
"""

import os
from pathlib import Path

import pytest
from case_files import case

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

READ, REFUSED = (case("published-configs")[part] for part in ("read", "refused"))


def config(name):
    assert FOLDER is not None
    return FOLDER / "models" / "configs" / f"{name}_config.json"


@pytest.mark.parametrize("name", READ)
def test_counts_caches_and_reads_of_late_models(name):
    total, close, per_token, fixed, read, weights = READ[name]
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
