"""Snippets in README and docs run unchanged."""

import inspect
import json
import re

import pytest
import yaml
from documents import DOCS, README, RESULTS
from gallery import PROFILE
from outputs import declared
from pages import PAGES, blocks, example
from processes import python
from small_config import matmul

import rooflines
from rooflines.run.plan import plan

TEXT = README.read_text(encoding="utf-8")
WITH_SNIPPETS = [page for page in PAGES if blocks(page, "python")]
LOADING = blocks(RESULTS, "python")[:4]


@pytest.fixture(scope="session")
def swept(tmp_path_factory, default_results):
    assert re.search(r"Plain `snakemake --cores 4`", TEXT)
    folder = tmp_path_factory.mktemp("swept")
    (folder / "results").symlink_to(default_results)
    (folder / "kernels.csv").symlink_to(PROFILE)
    return folder


RUN = """
import json, sys
for title, code in json.load(sys.stdin):
    exec(compile(code, title, "exec"), {"__name__": "__main__"})
"""
"""Runs snippets in one process, each with names of its own; a traceback has the snippet's title."""


@pytest.mark.parametrize("page", WITH_SNIPPETS, ids=lambda page: page.stem)
def test_the_snippets_of_a_page_run_on_what_the_workflow_made(page, swept):
    """Every Python snippet runs unchanged beside the results.

    Each of the four ways to load a table gives rows.
    """
    snippets = []
    for code in blocks(page, "python"):
        last = code.strip().splitlines()[-1]
        counted = f"\nassert len({last.partition('  #')[0]}) > 1, 'no rows'"
        snippets.append((code.strip().splitlines()[0], code + (counted if code in LOADING else "")))
    python("-c", RUN, cwd=swept, input=json.dumps(snippets))


def test_the_page_on_python_has_every_public_function():
    named = set(re.findall(r"`rooflines\.(\w+)\(", (DOCS / "python.md").read_text("utf-8")))
    public = {name for name in rooflines.__all__ if inspect.isfunction(getattr(rooflines, name))}
    assert named == public


def test_the_results_are_those_that_are_listed(swept):
    made = {path.name for path in (swept / "results").iterdir()}
    listed = {name.split("/")[0] for outputs, _ in declared() for name in outputs}
    of_measurements = {name for name in listed if name.startswith("measured")}
    assert len(of_measurements) == 3
    of_traces = {name for name in listed if name.startswith("trace")}
    assert "traces" in of_traces
    of_scenarios = {name for name in listed if name.startswith("scenario")}
    assert made == (listed | {"logs", ".made"}) - of_measurements - of_traces - of_scenarios


def test_the_example_config_runs_with_the_command_below_it(tmp_path, repository, snakemake):
    arguments = example(tmp_path, repository)
    tables = ("results/parts.csv", "results/thresholds.parquet")
    run = snakemake(*tables, *arguments, cwd=tmp_path)
    assert run.returncode == 0, run.stdout
    frame = rooflines.scan(tmp_path / "elsewhere" / "results", "decode").collect()
    assert frame["chip"].n_unique() == 3
    shapes = {"llama-3.1-8b-gate-up", "llama-3.1-8b-down", "my-mlp"}
    assert set(frame["shape"]) == shapes
    outputs = plan(rooflines.load_config(tmp_path / "my.yaml")).by_path
    assert {"charts/roofline", "bundle"} <= outputs.keys()


CHIP_BLOCKS = re.findall(
    r"^```yaml\n(chips:\n.*?)^```$",
    (README.parent / "config" / "README.md").read_text(encoding="utf-8"),
    flags=re.DOTALL | re.MULTILINE,
)


@pytest.mark.parametrize("example", CHIP_BLOCKS, ids=lambda code: code.splitlines()[1].strip(" :"))
def test_the_chips_that_config_readme_describes_can_be_swept(example):
    form = yaml.safe_load(example)
    (chip,) = form["chips"]
    config = rooflines.load_config({**form, "sweeps": {"shown": matmul(chips=[chip])}})
    (row,) = rooflines.rows(config, "shown").collect().to_dicts()
    assert (row["t_estimate_s"] is not None) == ("calibration" in example)
