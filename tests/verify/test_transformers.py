"""Every family that the installed transformers has, loaded and saved by it, has the counts of ours.

`ROOFLINES_TRANSFORMERS` names a Python with transformers and torch; without it the test is skipped.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from case_files import case
from hf_configs import FAMILIES, config_of, small

from rooflines import models

PYTHON = os.environ.get("ROOFLINES_TRANSFORMERS")
SCRIPT = Path(__file__).parents[1] / "support" / "with_transformers.py"
CONFIGS = {name: each["config"] for name, each in case("transformers").items()} | {
    name: make(name)
    for make, names in ((small, FAMILIES["families"]), (config_of, FAMILIES["models"]))
    for name in names
}
LEFT_OUT = ("step3p7", "kimi_linear", "kimi-k2.5")
"""Its class takes the keys of step3p7 for another model, has none of those of Kimi K3, and ties the
tables of Kimi K2.5."""


@pytest.mark.skipif(PYTHON is None, reason="ROOFLINES_TRANSFORMERS names no Python with it")
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
