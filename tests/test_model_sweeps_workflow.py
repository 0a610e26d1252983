"""Sweeps of whole models in the workflow: what a run makes, and what a further run makes."""

import json

import polars as pl
import pytest
from case_files import case
from hf_configs import small
from polars.testing import assert_frame_equal
from run_folder import RunFolder
from small_config import matmul

import rooflines
from rooflines.results.folders import FOLDERS, MODEL_THRESHOLDS

CONFIG = case("configs/model-sweeps")

APART = [f"models/apart/part-{number:05d}.parquet" for number in range(4)]
"""Of a model and a chip each, in this order."""

TABLES = {*APART, "models/whole/part-00000.parquet", "layers/whole/part-00000.parquet"}
INDEXES = {f"{folder}/index.csv" for folder in FOLDERS}
SUMMARIES = {"thresholds.parquet", "summary.csv"}
OF_MODELS = {MODEL_THRESHOLDS, "skipped.csv", "summary.csv"}
SHAPES = {"model-shapes.csv"}


class Folder(RunFolder):
    """A folder with a config of whole models and the results made from it."""

    def targets(self):
        """All but the site."""
        files = INDEXES | SUMMARIES | SHAPES | {"skipped.csv"}
        return files | {MODEL_THRESHOLDS} if self.config.get("model-sweeps") else files


@pytest.fixture(scope="session")
def first_run(once):
    def make(path):
        (path / "config.json").write_text(json.dumps(small("llama")))
        Folder(path, CONFIG).finish()

    return Folder(once("model-sweeps", make), CONFIG)


@pytest.fixture
def made(first_run, tmp_path):
    return first_run.copied(tmp_path)


def test_a_config_needs_no_sweeps_of_operations(first_run):
    assert set(first_run.times()) == TABLES | INDEXES | SUMMARIES | SHAPES | OF_MODELS
    text = (first_run.results / "tables/index.csv").read_text(encoding="utf-8")
    assert text.startswith("sweep,")
    assert text.count("\n") == 1
    assert pl.read_parquet(first_run.results / "thresholds.parquet").height == 0


def test_tables_are_those_of_the_python_interface(first_run):
    config = rooflines.load_config(first_run.write())
    for sweep in ("apart", "whole"):
        expected = rooflines.rows(config, sweep).collect()
        assert rooflines.scan(first_run.results, sweep).collect().rows() == expected.rows()
    layers = rooflines.scan(first_run.results, "whole", layers=True).collect()
    expected = rooflines.model_layers(config, "whole").collect()
    assert layers.sort(layers.columns).rows() == expected.sort(expected.columns).rows()
    thresholds = rooflines.thresholds(config)
    assert_frame_equal(pl.read_parquet(first_run.results / "model-thresholds.parquet"), thresholds)
    with pytest.raises(rooflines.RooflinesError, match="has no table 'apart'") as refused:
        rooflines.scan(first_run.results, "apart", layers=True)
    assert refused.value.fix == "use one of whole"


def test_an_edited_config_json_remakes_what_depends_on_it(made):
    (made.path / "config.json").write_text(json.dumps(small("llama", intermediate_size=192)))
    (made.results / "layers/whole/part-00000.parquet").unlink()
    parts = {APART[2], APART[3], "layers/whole/part-00000.parquet"}
    assert made.remade() == parts | INDEXES | OF_MODELS


def test_tables_and_thresholds_that_nothing_asks_for_go(made):
    made.config["model-sweeps"]["whole"]["layers"] = False
    made.remade()
    assert not (made.results / "layers/whole").exists()
    assert (made.results / "models/whole").exists()
    del made.config["model-sweeps"]
    made.config["sweeps"] = {"one": matmul(chips=["mine"])}
    made.remade()
    assert set(made.times()) == (
        {"tables/one/part-00000.parquet", "skipped.csv"} | INDEXES | SUMMARIES | SHAPES
    )
    records = made.results / ".made"
    assert not [path for path in records.rglob("*.json") if "whole" in path.parts]
    assert not (records / "model-thresholds.parquet.json").exists()
