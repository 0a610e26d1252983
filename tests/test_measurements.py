"""`measurements:` of a config: timings joined in a run, what is refused, and what is remade."""

import datetime as dt
import hashlib
import shutil
from typing import Any

import polars as pl
import pytest
from command_line import refused, said
from polars.testing import assert_frame_equal
from run_folder import RunFolder
from small_config import matmul

import rooflines
from rooflines.fits.entries import Calibrations, shipped_calibrations, text_of
from rooflines.model.columns import MEASURED, MEASURED_SKIPPED, measured_columns
from rooflines.settings.measurements import AboutTimings
from rooflines.settings.schema import SiteConfig

HEAD = "chip,software,dtype_x,dtype_w,dtype_out,compute,B,D,F,seconds\n"
BF16 = "trtllm,bf16,bf16,bf16,bf16"

TIMINGS = (
    f"{HEAD}"
    f"h100-sxm,{BF16},1024,8192,8192,2e-4\n"
    f"h100-sxm,{BF16},1,4096,4096,9e-6\n"
    f"mine,{BF16},1024,8192,8192,2e-3\n"
    f"mine,{BF16},0,8192,8192,2e-3\n"
    "mine,trtllm,bf16,nvfp4,bf16,nvfp4,1024,8192,8192,2e-3\n"
)
"""Compute-bound; below the bound of 33,570,816 B / 3.35 TB/s = 10.02 us, in cache; of another chip;
with no rows; of a dtype that the chip lacks."""

COLLECTIVES = "chip,collective,shards,bytes,seconds\nh100-sxm,all-gather,8,1073741824,5e-3\n"

CONFIG: dict[str, Any] = {
    "measurements": {
        "grid": {"file": "timed/grid.csv"},
        "nccl": {"file": "timed/nccl.csv", "where": {"software": "nccl"}, "held_out": True},
    },
    "chips": {"mine": {"base": "tpu-v5e", "memory.hbm.bytes_per_s": 8.0e11, "source": "a guess"}},
}

TABLES = {"measured/grid.parquet", "measured/nccl.parquet"}
LISTS = {"measured.csv", "measured-skipped.csv"}


class Folder(RunFolder):
    """A folder with a config, timings and the results made from them."""

    def targets(self):
        """The list of parts and what is made from timings."""
        return {"tables/index.csv"} | (LISTS if self.config["measurements"] else set())

    def times(self):
        """The time of each file made from timings."""
        return {name: time for name, time in super().times().items() if name.startswith("measured")}


def write_timings(path):
    """Write the timings into a folder."""
    folder = path / "timed"
    folder.mkdir()
    (folder / "grid.csv").write_text(TIMINGS, encoding="utf-8")
    (folder / "grid.csv.yaml").write_text("licence: MIT\ntimer: graph\n", encoding="utf-8")
    (folder / "nccl.csv").write_text(COLLECTIVES, encoding="utf-8")


@pytest.fixture(scope="session")
def first_run(once):
    def make(path):
        write_timings(path)
        Folder(path, CONFIG).finish()

    return Folder(once("measurements", make), CONFIG)


@pytest.fixture
def made(first_run, tmp_path):
    return first_run.copied(tmp_path)


@pytest.fixture
def folder(tmp_path):
    write_timings(tmp_path)
    return Folder(tmp_path, CONFIG)


def test_timings_without_a_row_are_counted(first_run):
    skipped = pl.read_csv(first_run.results / "measured-skipped.csv")
    assert skipped.columns == [column.name for column in MEASURED_SKIPPED]
    assert skipped.select("set", "chip", "lacks", "reason", "timings").rows() == [
        ("grid", "mine", "row", "no nvfp4 peak of its matrix unit", 1),
        ("grid", "mine", "estimate", "no calibration", 1),
        ("grid", None, "row", "have B = 0", 1),
    ]


def test_tables_are_those_of_the_python_interface(first_run):
    config = rooflines.load_config(first_run.write())
    for name in ("grid", "nccl"):
        table = pl.read_parquet(first_run.results / f"measured/{name}.parquet")
        assert_frame_equal(rooflines.measurements(config, name), table)
        columns = measured_columns(table.columns)
        assert [column.name for column in columns] == table.columns
        assert [c.name for c in columns if table[c.name].has_nulls() and not c.null] == []
    written = pl.read_csv(first_run.results / "measured.csv")
    found = rooflines.measured_summary(config)
    assert found.select("set", "region", "n").rows() == written.select("set", "region", "n").rows()
    explained = rooflines.columns().filter(file="measured")["column"].to_list()
    assert explained == [column.name for column in MEASURED]
    with pytest.raises(rooflines.RooflinesError, match="has no 'gird'"):
        rooflines.measurements(config, "gird")


@pytest.mark.parametrize("name", ["measured/grid.parquet", "measured.csv"])
def test_an_output_says_which_timings_made_it(first_run, name):
    found = rooflines.origin(first_run.results / name)
    assert found.whole
    grid = found.measurements["grid"]
    assert grid["sha256"] == hashlib.sha256(TIMINGS.encode()).hexdigest()
    assert grid["about"] == {"licence": "MIT", "timer": "graph"}
    assert set(grid["chips"]) == {"h100-sxm", "mine"}
    assert found.sources()
    assert "timer: graph" in found.text()


def test_a_copy_still_says_it(first_run, tmp_path):
    copied = shutil.copy(first_run.results / "measured/grid.parquet", tmp_path / "copy.parquet")
    assert rooflines.origin(copied).measurements["grid"]["about"]["licence"] == "MIT"


def test_a_further_run_makes_what_depends_on_an_edit(made):
    made.config["chips"]["mine"]["memory.hbm.bytes_per_s"] = 4.0e11
    assert made.remade() == {"measured/grid.parquet"} | LISTS
    timings = made.path / "timed/nccl.csv"
    timings.write_text(f"{COLLECTIVES}h100-sxm,all-gather,8,2147483648,9e-3\n", encoding="utf-8")
    made.config["measurements"]["other"] = made.config["measurements"].pop("nccl")
    assert made.remade() == {"measured/other.parquet"} | LISTS
    assert set(made.times()) == {"measured/grid.parquet", "measured/other.parquet"} | LISTS


def test_files_of_no_set_are_removed(made):
    (made.results / "measured/own.parquet").write_bytes(b"mine")
    made.config["measurements"] = {}
    made.config["sweeps"] = {"s": matmul()}
    made.finish()
    assert set(made.times()) == {"measured/own.parquet"}


def test_estimates_are_by_the_calibrations_of_the_config(made):
    before = pl.read_parquet(made.results / "measured/grid.parquet")
    shipped = shipped_calibrations()
    fit = shipped.calibrations["h100-sxm/trtllm"]["bf16"]
    own = fit.model_copy(update={"overhead_s": fit.overhead_s + 1e-3})
    text = text_of(Calibrations(calibrations={"h100-sxm/trtllm": {"bf16": own}}))
    (made.path / "own.yaml").write_text(text, encoding="utf-8")
    made.config["calibrations"] = ["own.yaml"]
    assert made.remade() == {"measured/grid.parquet"} | LISTS
    after = pl.read_parquet(made.results / "measured/grid.parquet")
    longer = (after["t_estimate_s"] - before["t_estimate_s"]).to_list()
    assert longer == [pytest.approx(1e-3), pytest.approx(1e-3), None]


def wrong(folder):
    """The message on a wrong config."""
    with pytest.raises(rooflines.RooflinesError) as refused:
        rooflines.load_config(folder.write())
    return str(refused.value)


@pytest.mark.parametrize(
    ("key", "entry", "problem"),
    [
        ("x", {"file": "timed/none.csv"}, "timed/none.csv"),
        ("x", {"file": "timed/grid.csv", "where": {"chip": "h200"}}, "has no 'h200'"),
        ("x", {"file": "timed/nccl.csv", "where": {"shards": 4}}, "shards has no '4'"),
        ("x", {"file": "timed/grid.csv", "were": {}}, "measurements.x.were"),
        ("x", {"where": {}}, "measurements.x lacks file"),
        ("X Y", {"file": "timed/nccl.csv"}, "measurements.X Y"),
        ("x", {"file": "timed/grid.csv", "on_unexplained": "stop"}, "on_unexplained"),
        ("x", {"file": "timed/grid.csv"}, "has the same content as that of grid"),
        ("x", {"file": "timed/nccl.csv", "where": {"chip": "h100-sxm"}}, "as that of nccl"),
    ],
)
def test_a_wrong_set_is_refused(folder, key, entry, problem):
    folder.config["measurements"][key] = entry
    message = wrong(folder)
    assert problem in message
    assert "fix:" in message


def test_an_unknown_chip_is_counted_and_wrong_metadata_are_refused(folder, capsys):
    del folder.config["chips"]
    printed = said(capsys, "measured", "join", str(folder.path / "timed/grid.csv"))
    assert "2 without row: they have chip 'mine', which is no chip" in printed
    (folder.path / "timed/nccl.csv.yaml").write_text("timer: sundial\n", encoding="utf-8")
    assert "sundial" in wrong(folder)


def test_unexplained_timings_can_stop_a_run(folder, capsys):
    """550 GFLOP take 556 us at 989 TFLOP/s; a timing says 500 us."""
    text = f"{HEAD}h100-sxm,{BF16},4096,8192,8192,5e-4\n"
    (folder.path / "timed/grid.csv").write_text(text, encoding="utf-8")
    printed = said(capsys, "check", str(folder.write()))
    assert "grid: 1 timing, 0 without an estimate, 1 below the bound, 0 left out" in printed
    assert "rows that repeat" not in printed
    again = text + text.removeprefix(HEAD)
    (folder.path / "timed/grid.csv").write_text(again, encoding="utf-8")
    printed = said(capsys, "check", str(folder.write()))
    assert "grid: rows that repeat another one in all columns: 1" in printed
    (folder.path / "timed/grid.csv").write_text(text, encoding="utf-8")
    folder.config["measurements"]["grid"]["on_unexplained"] = "error"
    message = refused(capsys, "check", str(folder.write()))
    assert "has 1 timing of h100-sxm below the bound, without a reason" in message
    assert "the least is 0.899 of it" in message


def test_a_date_of_yaml_is_kept_as_text():
    assert AboutTimings.model_validate({"date": dt.date(2026, 1, 2)}).date == "2026-01-02"
    assert AboutTimings.model_validate({}).date is None
    assert SiteConfig.model_validate({"date": dt.date(2026, 1, 2)}).date == "2026-01-02"
