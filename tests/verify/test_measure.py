"""The processor of this machine is measured and calibrated, for real."""

from dataclasses import replace

import polars as pl
import pytest
from catalogues import shipped

from rooflines.cli import main as cli
from rooflines.fits.calibration_files import read_calibrations
from rooflines.fits.timing_tables import read_timings
from rooflines.loading import load_config
from rooflines.measured.join import join_timings


def test_this_machine_is_measured_and_calibrated(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.run(["measure", "--out", "cpu.parquet"]) == 0
    said = capsys.readouterr().out
    print(said)
    timings = read_timings("cpu.parquet")
    assert timings.frame.group_by("compute").len().sort("compute").rows() == [
        ("fp32", 100),
        ("fp64", 100),
    ]
    config = load_config("cpu.yaml")
    (fits,) = (tmp_path / "calibrations").iterdir()
    calibrations = read_calibrations(fits)
    (by_dtype,) = calibrations.calibrations.values()
    assert sorted(by_dtype) == ["fp32", "fp64"]
    assert all(one.held_out is not None for one in by_dtype.values())
    catalogues = replace(shipped(), chips=config.chips, fits=calibrations)
    frame = join_timings(timings, catalogues).frame
    below = frame.filter((pl.col("bound") == "compute") & pl.col("reason").is_not_null())
    assert below.is_empty()  # the peak is that of the fastest run
    assert frame["t_estimate_s"].null_count() == 0
    assert cli.run(["measure", "--out", "cpu.parquet"]) == 0  # nothing is timed again
    assert read_timings("cpu.parquet").frame.equals(timings.frame)


def test_this_gpu_is_measured_and_calibrated(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    monkeypatch.chdir(tmp_path)
    assert cli.run(["measure", "--budget", "40", "--out", "gpu.parquet"]) == 0
    assert len(list((tmp_path / "calibrations").iterdir())) == 1
    frame = join_timings(read_timings("gpu.parquet"), shipped()).frame
    assert frame["reason"].null_count() == frame.height  # none below the bound
