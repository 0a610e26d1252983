"""Hostile texts in a config stay text: in Snakemake, its report, HTML and spreadsheets."""

import io
import json
import zipfile
from pathlib import Path

import fuzzing
import polars as pl
import predicates
import pytest
from run_folder import RunFolder
from valid_files import PLAIN

import rooflines
from rooflines.basics.text import is_formula
from rooflines.results.tables import csv_text

FORMULAS = (
    *("=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\uff1d1+1"),
    *("a;=1", "a; +1", '=cmd|" /C calc"!A0', "=1;=2"),
)


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_a_csv_file_starts_a_formula(text):
    assert is_formula(text)
    for dtype in (pl.String, pl.Categorical, pl.Enum([text, "x"])):
        written = csv_text(
            pl.DataFrame({"a": pl.Series([text, "x", None], dtype=dtype), "b": [-1.5, -2e300, 0.0]})
        )
        predicates.check_csv(written)
        back = pl.read_csv(io.StringIO(written))
        assert back["b"].to_list() == [-1.5, -2e300, 0.0]
        assert back["a"].to_list()[1:] == ["x", None]
        assert back["a"][0].replace("'", "") == text


@pytest.mark.parametrize("text", [text for text in FORMULAS if text.isprintable()])
def test_a_shape_that_is_a_formula_is_refused(text):
    sweep = {**PLAIN["sweeps"]["mlp"], "shapes": [{"name": text, "F": 512}]}
    with pytest.raises(rooflines.RooflinesError, match="spreadsheet would run"):
        rooflines.load_config({**PLAIN, "sweeps": {"mlp": sweep}})


RESULTS = "results [1]*?"
"""A folder whose name is a pattern of other paths."""

CONFIG = {**fuzzing.config_of_texts(), "pathvars": {"results": RESULTS}}


@pytest.fixture(scope="module")
def hostile(once):
    return once("hostile", lambda folder: RunFolder(folder, CONFIG).finish())


def test_names_notes_and_sources_pass_through_snakemake_unchanged(hostile):
    config, results = CONFIG, hostile / RESULTS
    names = {shape["name"] for shape in config["sweeps"]["texts"]["shapes"]}
    for name in ("tables/texts/part-00000.parquet", "thresholds.parquet"):
        assert set(pl.read_parquet(results / name, glob=False)["shape"]) == names
        found = rooflines.origin(results / name).sweeps["texts"]["chips"]["own"]
        assert (found["name"], found["note"]) == (
            config["chips"]["own"]["name"],
            config["chips"]["own"]["note"],
        )
    (drawn,) = json.loads((results / "charts/chips/index.json").read_text())
    assert drawn["title"][:40] == config["charts"][0]["title"][:40]


def test_a_report_has_charts_and_the_site_and_runs_no_script_of_a_config(hostile, tmp_path):
    RunFolder(hostile, CONFIG).finish("--report", tmp_path / "report.zip")
    with zipfile.ZipFile(tmp_path / "report.zip") as packed:
        names = {Path(name).name for name in packed.namelist()}
        pages = {
            name: packed.read(name).decode() for name in packed.namelist() if name.endswith(".html")
        }
    assert names >= {"report.html", "index.html", "data.html", "chips-texts.png"}
    (report,) = (text for name, text in pages.items() if name.endswith("report.html"))
    assert "every number comes from the tables and thresholds" in report
    assert "alert(1)" in report
    assert [
        (name, tag)
        for name, text in pages.items()
        for tag in fuzzing.TEXTS
        if tag.startswith("<") and tag in text
    ] == []
