"""CONTRIBUTING's recipes: each adds a thing to a copy of the package and counts its files."""

import os
import re
import shutil
from pathlib import Path

import pytest
from case_files import case
from processes import python

HERE = Path(__file__).parent
RECIPES = case("recipes")

START = """\
import os, rooflines
assert rooflines.__file__.startswith(os.getcwd())
def config(**keys):
    sweep = {"operation": "matmul", "grid": {"B": 8, "D": 64, "F": 64}, "dtypes": ["bf16"],
             "chips": ["h100-sxm"], **keys}
    return rooflines.load_config({"sweeps": {"one": sweep}})
def one(**keys):
    (row,) = rooflines.rows(config(**keys), "one").collect().to_dicts()
    return row
"""


@pytest.fixture(scope="module")
def package(repository, tmp_path_factory):
    """A copy of what a recipe can edit, compiled, read only."""
    folder = tmp_path_factory.mktemp("package")
    for name in ("benchmarks", "config", "docs", "notebooks", "profiles", "rooflines", "workflow"):
        shutil.copytree(repository / name, folder / name)
    for path in repository.glob("*"):
        if path.is_file():
            shutil.copy(path, folder)
    return folder


@pytest.mark.parametrize(
    "name",
    [pytest.param(k, marks=[pytest.mark.slow] * v.get("slow", 0)) for k, v in RECIPES.items()],
)
def test_a_recipe_adds_a_thing_with_as_many_edits_as_it_says(name, package, tmp_path):
    folder = shutil.copytree(package, tmp_path / "package")
    for edit in RECIPES[name]["edits"]:
        path, before = folder / edit["file"], edit.get("before", "")
        text = path.read_text(encoding="utf-8") if before else ""
        assert before in text, path
        path.write_text(text.replace(before, edit["add"] + before, 1), "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    program = START + RECIPES[name]["program"]
    python("-c", program, HERE / "support", cwd=folder, env=environment)
    contributing = (folder / "CONTRIBUTING.md").read_text(encoding="utf-8")
    stated = re.search(rf"\*\*{re.escape(name)}: (\d+) files?", contributing)
    assert stated, "CONTRIBUTING counts the files"
    assert len(RECIPES[name]["edits"]) == int(stated[1])
