"""Charts are redrawn exactly when their data or their code change, in the run of the change."""

import copy
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from damage import unfinished

from rooflines.results.records import OWN as SNAKEMAKES

MATMUL: dict[str, Any] = {
    "operation": "matmul",
    "grid": {"B": [1, 8, 64, 512], "D": [4096], "F": [4096]},
    "dtypes": ["bf16"],
}
CONFIG: dict[str, Any] = {
    "sweeps": {
        "own": {**MATMUL, "chips": ["mine", "tpu-v5e"]},
        "catalogue": {**MATMUL, "chips": ["h100-sxm", "tpu-v5e"]},
    },
    "charts": [{"chart": "chips", "sweep": "own"}, {"chart": "roofline", "sweep": "catalogue"}],
    "chips": {"mine": {"base": "tpu-v5e", "memory.hbm.bytes_per_s": 8.1e11, "source": "a guess"}},
}
CHIPS, ROOFLINE, SITE = "charts/chips", "charts/roofline", "bundle"
THRESHOLDS = "thresholds.parquet"
OWN, CATALOGUE = "tables/own/part-00000.parquet", "tables/catalogue/part-00000.parquet"
OUTPUTS = (CHIPS, ROOFLINE, SITE, THRESHOLDS, OWN, CATALOGUE)


class Runs:
    """A folder whose config is edited, and run again.

    Args:
        path: The folder.
        snakefile: The workflow.
        snakemake: The fixture.
    """

    def __init__(self, path, snakefile, snakemake):
        self.path, self.snakefile, self.snakemake = path, snakefile, snakemake
        self.config = copy.deepcopy(CONFIG)

    def remade(self, **style):
        """Write the config in a YAML style and run the workflow; the outputs that are new."""
        (self.path / "my.yaml").write_text(yaml.safe_dump(self.config, sort_keys=False, **style))
        before = self._made()
        done = self.snakemake(
            "--snakefile", self.snakefile, "--configfile", "my.yaml", cwd=self.path
        )
        assert done.returncode == 0, done.stdout
        return {name for name, made in self._made().items() if before[name] != made}

    def _made(self):
        """The time of each output; of a folder, that of its newest file, lists of charts aside."""
        times = {}
        for name in OUTPUTS:
            path = self.path / "results" / name
            files = (f for f in [path, *path.rglob("*")] if f.is_file())
            times[name] = max(
                (
                    file.stat().st_mtime_ns
                    for file in files
                    if file.name not in (SNAKEMAKES, "index.json")
                ),
                default=0,
            )
        return times


@pytest.fixture(scope="module")
def first(once, repository, snakemake):
    snakefile = repository / "Snakefile"

    def run(folder):
        assert Runs(folder, snakefile, snakemake).remade() == set(OUTPUTS)

    return Runs(once("two-charts", run), snakefile, snakemake)


@pytest.fixture
def runs(first, tmp_path):
    shutil.copytree(first.path, tmp_path, dirs_exist_ok=True)
    return Runs(tmp_path, first.snakefile, first.snakemake)


def test_charts_are_redrawn_in_the_run_that_changes_their_data(runs):
    results = runs.path / "results"
    (results / OWN).unlink()
    runs.config["charts"][1]["title"] = "Two chips"
    assert runs.remade() == {OWN, ROOFLINE, SITE}, (
        "a table that is remade unchanged redraws nothing"
    )
    assert "Two chips" in (results / ROOFLINE / "roofline-catalogue.vl.json").read_text()
    runs.config["chips"]["mine"]["memory.hbm.bytes_per_s"] = 4.0e11
    assert runs.remade(default_flow_style=True, width=60) == {OWN, THRESHOLDS, CHIPS, SITE}
    assert "400000000000.0" in (results / CHIPS / "chips-own.csv").read_text()


def test_charts_that_are_asked_for_are_drawn_after_a_table_that_is_made_again(runs):
    shutil.rmtree(runs.path / "results" / ROOFLINE)
    unfinished(runs.path, f"results/{CATALOGUE}")
    done = runs.snakemake(
        "--snakefile",
        runs.snakefile,
        "--configfile",
        "my.yaml",
        "--",
        f"results/{ROOFLINE}",
        cwd=runs.path,
    )
    assert done.returncode == 0, done.stdout
    assert (runs.path / "results" / ROOFLINE / "roofline-catalogue.vl.json").is_file()


def test_the_report_has_every_chart_and_the_site(first):
    options = ("--snakefile", first.snakefile, "--configfile", "my.yaml")
    done = first.snakemake(*options, "--report", "report.zip", cwd=first.path)
    assert done.returncode == 0, done.stdout
    with zipfile.ZipFile(first.path / "report.zip") as report:
        names = [Path(name).name for name in report.namelist()]
        assert {
            "report.html",
            "chips-own.png",
            "roofline-catalogue.png",
            "index.html",
            "data.html",
        } <= set(names)
        shown = "".join(
            report.read(name).decode(errors="replace")
            for name in report.namelist()
            if name.endswith("report.html")
        )
    assert "every number comes from the tables and thresholds" in shown
