"""Pages with commands of `rooflines`, and the files that they name."""

import json
import shlex
import shutil

from documents import DOCS, ROOT
from hf_configs import config_of
from pages import PAGES, blocks, commands
from timed import timings

TIMINGS = timings({"math": 0.72, "memory": 0.86, "overhead_s": 4e-6})

LONG = "rooflines measured measure"
"""A command of minutes, left to tests/verify/test_measure.py."""


def prepare(folder):
    """Write the files that pages name: a model, its config.json, timings, a profile."""
    TIMINGS.write_csv(folder / "timings.csv")
    (model,) = blocks(DOCS / "own-model.md", "yaml")
    (folder / "own-model.yaml").write_text(model, encoding="utf-8")
    (folder / "path/to").mkdir(parents=True)
    (folder / "path/to/config.json").write_text(
        json.dumps(config_of("llama-3.1-8b")), encoding="utf-8"
    )
    shutil.copy(ROOT / "tests/cases/nsight/h200.csv", folder / "kernels.csv")


def arguments(page):
    """The commands of a page, in order: the words after `rooflines`."""
    return [shlex.split(command)[1:] for command in commands(page, "rooflines") if command != LONG]


HOW_TO = [page for page in PAGES if arguments(page)]
"""The pages with commands of `rooflines`."""
