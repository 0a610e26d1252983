"""Charts are redrawn exactly when their data or their code change, in the run of the change."""

import shutil

import pytest
from case_files import case
from damage import unfinished
from run_folder import RunFolder

from rooflines.results.records import SNAKEMAKE_TIMESTAMP as SNAKEMAKES

CONFIG = case("configs/two-charts")
CHIPS, ROOFLINE, SITE = "charts/chips", "charts/roofline", "bundle"
THRESHOLDS = "thresholds.parquet"
OWN, CATALOGUE = "tables/own/part-00000.parquet", "tables/catalogue/part-00000.parquet"
OUTPUTS = (CHIPS, ROOFLINE, SITE, THRESHOLDS, OWN, CATALOGUE)


class Folder(RunFolder):
    """A folder with charts and the site; each is as new as its newest file."""

    def times(self):
        """The time of each output, lists of charts aside."""
        times = {}
        for name in OUTPUTS:
            path = self.results / name
            files = [file for file in (path, *path.rglob("*")) if file.is_file()]
            made = [file for file in files if file.name not in (SNAKEMAKES, "index.json")]
            times[name] = max((file.stat().st_mtime_ns for file in made), default=0)
        return times


@pytest.fixture(scope="module")
def first(once):
    def run(path):
        assert Folder(path, CONFIG).remade() == set(OUTPUTS)

    return Folder(once("two-charts", run), CONFIG)


@pytest.fixture
def made(first, tmp_path):
    return first.copied(tmp_path)


def test_charts_are_redrawn_in_the_run_that_changes_their_data(made):
    (made.results / OWN).unlink()
    made.config["charts"][1]["title"] = "Two chips"
    assert made.remade() == {OWN, ROOFLINE, SITE}, (
        "a table that is remade unchanged redraws nothing"
    )
    assert "Two chips" in (made.results / ROOFLINE / "roofline-catalogue.vl.json").read_text()
    made.config["chips"]["mine"]["memory.hbm.bytes_per_s"] = 4.0e11
    assert made.remade("--", f"results/{THRESHOLDS}", f"results/{CHIPS}") == {
        OWN,
        THRESHOLDS,
        CHIPS,
    }
    assert "400000000000.0" in (made.results / CHIPS / "chips-own.csv").read_text()


def test_charts_that_are_asked_for_are_drawn_after_a_table_that_is_made_again(made):
    shutil.rmtree(made.results / ROOFLINE)
    unfinished(made.path, f"results/{CATALOGUE}")
    made.finish("--", f"results/{ROOFLINE}")
    assert (made.results / ROOFLINE / "roofline-catalogue.vl.json").is_file()
