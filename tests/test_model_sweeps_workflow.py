"""Sweeps of whole models in the workflow: what a run makes, and what a further run makes."""

from __future__ import annotations

import copy
import gzip
import json
import shutil
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from run_folder import RunFolder
from site_data import put

import rooflines
from rooflines.results.folders import FOLDERS, LAYERS, MODEL_THRESHOLDS, MODELS
from rooflines.site.site import write_bundle

CONFIG: dict[str, Any] = {
    "model-sweeps": {
        "apart": {
            "models": ["llama-3.1-8b", {"name": "read", "hf": "config.json"}],
            "grid": {"B": [1, 8], "S": 1024},
            "dtypes": ["bf16"],
            "chips": ["h100-sxm", "mine"],
            "layers": False,
            "rows_per_part": 2,
        },
        "whole": {
            "models": ["gpt-oss-20b"],
            "phase": ["decode", "prefill"],
            "grid": {"B": [1, 8], "S": [128, 1024]},
            "dtypes": ["bf16", "mxfp4"],
            "chips": ["h100-sxm"],
            "splits": [{"tp": 2}, {"tp": 3}],
        },
    },
    "charts": [],
    "chips": {"mine": {"base": "tpu-v5e", "memory.hbm.bytes_per_s": 8.0e11, "source": "a guess"}},
}

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
"""The config.json of a model that is small."""

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

    def loaded(self):
        """The config, loaded."""
        return rooflines.load_config(self.path / "my.yaml")


@pytest.fixture(scope="session")
def first_run(once, repository, snakemake):
    def make(path):
        (path / "config.json").write_text(json.dumps(LLAMA))
        done = Folder(path, repository, snakemake, copy.deepcopy(CONFIG)).run()
        assert done.returncode == 0, done.stdout

    return Folder(once("model-sweeps", make), repository, snakemake, copy.deepcopy(CONFIG))


@pytest.fixture
def made(first_run, tmp_path):
    shutil.copytree(first_run.path, tmp_path, dirs_exist_ok=True)
    return Folder(tmp_path, first_run.repository, first_run.snakemake, copy.deepcopy(CONFIG))


# ---------------------------------------------------------------- what a run makes


def test_a_config_needs_no_sweeps_of_operations(first_run):
    assert set(first_run.times()) == TABLES | INDEXES | SUMMARIES | SHAPES | OF_MODELS
    text = (first_run.results / "tables/index.csv").read_text(encoding="utf-8")
    assert text.startswith("sweep,")
    assert text.count("\n") == 1
    assert pl.read_parquet(first_run.results / "thresholds.parquet").height == 0


def test_tables_are_those_of_the_python_interface(first_run):
    config = first_run.loaded()
    for sweep in ("apart", "whole"):
        expected = rooflines.model_rows(config, sweep).collect()
        assert rooflines.scan(first_run.results, sweep).collect().rows() == expected.rows()
    layers = rooflines.scan(first_run.results, "whole", layers=True).collect()
    expected = rooflines.model_layers(config, "whole").collect()
    assert layers.sort(layers.columns).rows() == expected.sort(expected.columns).rows()
    thresholds = rooflines.model_thresholds(config)
    assert_frame_equal(pl.read_parquet(first_run.results / "model-thresholds.parquet"), thresholds)
    with pytest.raises(rooflines.RooflinesError, match="has no table 'apart'") as refused:
        rooflines.scan(first_run.results, "apart", layers=True)
    assert refused.value.fix == "use one of whole"


def test_lists_name_every_part_with_its_rows(first_run):
    for folder in (MODELS, LAYERS):
        index = pl.read_csv(first_run.results / folder / "index.csv")
        assert {f"{folder}/{path}" for path in index["path"]} == {
            name for name in TABLES if name.startswith(folder)
        }
        heights = [pl.read_parquet(first_run.results / folder / p).height for p in index["path"]]
        assert index["rows"].to_list() == heights


def test_what_cannot_be_is_listed_with_model_and_split(first_run):
    skipped = pl.read_csv(first_run.results / "skipped.csv")
    assert skipped.select("sweep", "unit", "chip", "dtypes", "model", "split", "rows").rows() == [
        ("whole", "matrix", "h100-sxm", "mxfp4", None, None, 2 * 2 * 4),
        ("whole", "matrix", None, None, "gpt-oss-20b", "tp3", 2 * 4),
    ]
    assert skipped["reason"][1] == "tp is 3, which does not divide the 64 query heads"
    assert rooflines.skipped(first_run.loaded()).rows() == skipped.rows()


@pytest.mark.parametrize(
    "name",
    [
        "models/whole/part-00000.parquet",
        "layers/whole/part-00000.parquet",
        "models/index.csv",
        "model-thresholds.parquet",
        "summary.csv",
        "skipped.csv",
    ],
)
def test_an_output_says_what_made_it(first_run, name):
    result = rooflines.origin(first_run.results / name)
    assert result.whole
    sweep = result.sweeps["whole"]
    assert sweep["config"]["splits"][0]["tp"] == 2
    assert sweep["models"]["gpt-oss-20b"]["shape"]["moe"]["E"] == 32
    assert "gpt-oss" in result.models["gpt-oss-20b"]
    assert sweep["chips"]["h100-sxm"]["memory"]["hbm"]["source"]
    assert "h100" in result.text()
    if "apart" in result.sweeps:
        assert result.sweeps["apart"]["config"]["models"] == ["llama-3.1-8b", "read"]
        assert result.models["read"] == "config.json"
        assert result.sweeps["apart"]["config"]["chips"] == ["h100-sxm", "mine"]


def test_a_site_offers_the_tables_and_has_their_chips(first_run, tmp_path):
    paths = [first_run.results / "model-thresholds.parquet"]
    write_bundle(tmp_path / "site", [], first_run.results / "thresholds.parquet", paths)
    page = (tmp_path / "site/data.html").read_text(encoding="utf-8")
    stems = ["model-thresholds"]
    for path, stem in zip(paths, stems, strict=True):
        assert f'href="data/{stem}.parquet"' in page
        assert f'href="data/{stem}.csv.gz"' in page
        assert (tmp_path / f"site/data/{stem}.parquet").read_bytes() == path.read_bytes()
        text = gzip.decompress((tmp_path / f"site/data/{stem}.csv.gz").read_bytes())
        written = pl.read_csv(text)
        assert (written.columns, written.height) == (
            pl.read_parquet(path).columns,
            pl.read_parquet(path).height,
        )
    numbers = put(tmp_path / "site/data/chip-numbers.js")
    assert "a guess" in str(numbers)


# ---------------------------------------------------------------- what a further run makes


def test_a_second_run_does_nothing(made):
    before = made.times()
    done = made.run()
    assert done.returncode == 0
    assert "Nothing to be done" in done.stdout
    assert made.times() == before


def test_an_edited_chip_remakes_what_depends_on_it(made):
    before = pl.read_parquet(made.results / APART[1])
    made.config["chips"]["mine"]["memory.hbm.bytes_per_s"] = 4.0e11
    assert made.remade() == {APART[1], APART[3]} | INDEXES | OF_MODELS
    after = pl.read_parquet(made.results / APART[1])
    assert (after["t_memory_s"] / before["t_memory_s"]).to_list() == [2.0, 2.0]


def test_an_edited_config_json_remakes_what_depends_on_it(made):
    (made.path / "config.json").write_text(json.dumps({**LLAMA, "intermediate_size": 192}))
    (made.results / "layers/whole/part-00000.parquet").unlink()
    parts = {APART[2], APART[3], "layers/whole/part-00000.parquet"}
    assert made.remade() == parts | INDEXES | OF_MODELS


def test_tables_and_thresholds_that_nothing_asks_for_go(made):
    made.config["model-sweeps"]["whole"]["layers"] = False
    made.remade()
    assert not (made.results / "layers/whole").exists()
    assert (made.results / "models/whole").exists()
    del made.config["model-sweeps"]
    made.config["sweeps"] = {
        "one": {
            "operation": "matmul",
            "grid": {"B": 1, "D": 1, "F": 1},
            "dtypes": ["bf16"],
            "chips": ["mine"],
        }
    }
    made.remade()
    assert set(made.times()) == (
        {"tables/one/part-00000.parquet", "skipped.csv"} | INDEXES | SUMMARIES | SHAPES
    )
    records = made.results / ".made"
    assert not [path for path in records.rglob("*.json") if "whole" in path.parts]
    assert not (records / "model-thresholds.parquet.json").exists()
