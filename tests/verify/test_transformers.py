"""Every family that the installed transformers has, loaded and saved by it, has the counts of ours.

`make transformers` makes an environment with both, which `make verify` uses then, or
`ROOFLINES_TRANSFORMERS` names a Python that has them; without one the test is skipped.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from case_files import case
from hf_configs import FAMILIES, config_of, small

from rooflines import models

ROOT = Path(__file__).parents[2]
PYTHON = Path(
    os.environ.get("ROOFLINES_TRANSFORMERS") or ROOT / ".venv-transformers" / "bin" / "python"
)
SCRIPT = Path(__file__).parents[1] / "support" / "with_transformers.py"
WITHIN = {"mllama_text_model": "mllama", "step3p5": "step3p7"}
"""Text parts that transformers has no class of, and the models that they are part of."""


def whole(family):
    """A small config of a family, within that of a model with encoders where it is part of one."""
    config = small(family, pad_token_id=0)  # that of some classes is beyond a small vocabulary
    if family not in WITHIN:
        return config
    return {"model_type": WITHIN[family], "text_config": config}


CONFIGS = {name: each["config"] for name, each in case("transformers").items()} | {
    name: make(name)
    for make, names in ((whole, FAMILIES["families"]), (config_of, FAMILIES["models"]))
    for name in names
}
CONFIGS |= {
    name: each["config"]
    for name, each in FAMILIES["counted"].items()
    if "model_type" in each["config"]
}
LEFT_OUT = ("step3p7", "kimi_linear", "kimi-k2.5", "longcat_flash", "longcat-flash")
"""Its class takes the keys of step3p7 for another model, has none of those of Kimi K3, ties the
tables of Kimi K2.5, and gives weights to the experts of LongCat that have none."""


@pytest.mark.skipif(
    not PYTHON.exists(), reason="`make transformers` makes the environment of this test (6 GB)"
)
def test_what_transformers_saves_has_the_same_counts():
    ran = subprocess.run(
        [str(PYTHON), str(SCRIPT)],
        input=json.dumps(CONFIGS),
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(ran.stdout)
    assert len(found) > 0.8 * len(CONFIGS)
    wrong = {}
    for name in found.keys() - {*LEFT_OUT}:
        saved, before = (models.from_hf(each) for each in (found[name]["config"], CONFIGS[name]))
        counts = saved.parameters().total, before.parameters().total, found[name]["parameters"]
        if len({*counts}) > 1:
            wrong[name] = counts
    assert wrong == {}
