"""`rooflines calibrate`: what it prints and writes, and one message for every wrong table."""

from pathlib import Path

import polars as pl
import pytest
from case_files import case
from processes import python
from small_config import matmul
from timed import timings

from rooflines.cli import main as cli
from rooflines.fits.calibration_files import read_calibrations

KNOWN = {"math": 0.72, "memory": 0.86, "overhead_s": 4e-6, "mixed_memory": 0.9}
GRID = {"B": [1, 64], "D": 4096, "F": 4096}
SWEEP = {"sweeps": {"own": matmul(grid=GRID, calibration="trtllm", thresholds=["B"])}}
GOOD = timings({**KNOWN, "mixed_math": 0.8, "mixed_depth_s": 5e-10})


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def calibrate(*words, chip="h100-sxm"):
    """The exit status of the command on timings.csv."""
    return cli.run(["calibrate", "timings.csv", "--chip", chip, "--software", "mine", *words])


def test_it_prints_errors_and_writes_a_file(capsys):
    GOOD.write_csv("timings.csv")
    assert calibrate("--contents", "scaling of x") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("h100-sxm/mine bf16: ")
    for region in ("all", "compute-bound", "memory-bound", "B 1 to 16", "B from 1,025"):
        assert f"  held out  {region}  " in printed
    assert printed.endswith("calibrations/h100-sxm-mine.yaml: written\n")
    found = read_calibrations("calibrations/h100-sxm-mine.yaml")
    entry = found.calibrations["h100-sxm/mine"]["bf16"]
    assert entry.fitted is not None
    assert entry.held_out is not None
    counts = f"{entry.fitted.n:,} timings fitted, {entry.held_out.n:,} held out\n"
    assert printed.startswith(f"h100-sxm/mine bf16: {counts}")
    assert entry.fitted.n != entry.held_out.n
    assert entry.memory == pytest.approx(0.86, rel=0.01)
    assert (entry.source, entry.contents) == ("made up", "scaling of x")
    assert entry.sizes == {size: (GOOD[size].min(), GOOD[size].max()) for size in "BDF"}
    reach = ", ".join(f"{size} {low:,} to {high:,}" for size, (low, high) in entry.sizes.items())
    assert f"  fitted range: {reach}" in printed


def test_timings_of_a_weight_only_format_say_that_they_convert_weights(capsys):
    GOOD.with_columns(dtype_w=pl.lit("int8")).write_csv("timings.csv")
    assert calibrate() == 0
    assert "  timings include the conversion of int8 weights\n" in capsys.readouterr().out
    found = read_calibrations("calibrations/h100-sxm-mine.yaml")
    entry = found.calibrations["h100-sxm/mine"]["bf16"]
    assert entry.contents == "the conversion of int8 weights"


def test_a_file_is_not_overwritten_unasked(capsys):
    GOOD.write_csv("timings.csv")
    Path("calibrations").mkdir()
    path = Path("calibrations/h100-sxm-mine.yaml")
    path.write_text("mine\n")
    assert calibrate() == 2
    assert path.read_text() == "mine\n"
    assert capsys.readouterr().err == (
        "calibrations/h100-sxm-mine.yaml exists already.\n"
        "  fix: choose another name with -o FILE, or overwrite it with --force.\n"
    )
    assert calibrate("-o", "other.yaml", "--source", "my lab, 2026") == 0
    assert "my lab, 2026" in Path("other.yaml").read_text()
    assert calibrate("--force", "--form", "max") == 0
    assert "mixed" not in path.read_text().partition("bands")[0]


def test_another_fit_and_a_chip_of_a_config(capsys):
    GOOD.write_csv("timings.csv")
    assert calibrate("-o", "prior.yaml") == 0
    GOOD.filter(pl.col("D") == 4096).with_columns(chip=pl.lit("own")).write_csv("timings.csv")
    Path("config.yaml").write_text(
        "chips:\n"
        "  own: {base: h100-sxm, memory.hbm.bytes_per_s: 3.3e12}\n"
        "sweeps:\n"
        "  one: {operation: matmul, grid: {B: [1], D: [8], F: [8]}, dtypes: [bf16], chips: [own]}\n"
    )
    assert calibrate("--prior", "prior.yaml", "--config", "config.yaml", chip="own") == 0
    assert "own/mine bf16: " in capsys.readouterr().out
    assert Path("calibrations/own-mine.yaml").exists()


@pytest.mark.parametrize("wrong", case("wrong-tables"), ids=lambda wrong: wrong["name"])
def test_a_wrong_table_gives_one_message(wrong, capsys):
    GOOD.sql(f"SELECT {wrong['of']}").write_csv("timings.csv")
    assert calibrate() == 2
    message = capsys.readouterr().err
    assert message.startswith("timings.csv")
    assert wrong["says"] in message
    assert message.count("\n  fix: ") == 1
    assert not Path("calibrations").exists()


def test_mistakes_of_several_dtypes_come_together(capsys):
    few = GOOD[:5].with_columns(pl.lit("fp16").alias("compute"))
    pl.concat([GOOD.filter(pl.col("B") >= 1024), few]).write_csv("timings.csv")
    assert calibrate() == 2
    message = capsys.readouterr().err
    assert "timings.csv: bf16.B has no timings but" in message
    assert "timings.csv: fp16 has 5 timings to fit" in message


def test_an_unknown_chip_or_a_wrong_name(capsys):
    GOOD.write_csv("timings.csv")
    assert calibrate(chip="h100-smx") == 2
    assert "close to it: h100-sxm" in capsys.readouterr().err
    assert calibrate(chip="h100") == 0
    assert "h100 is taken as h100-sxm" in capsys.readouterr().err
    assert cli.run(["calibrate", "timings.csv", "--chip", "h100-sxm", "--software", "Mine!"]) == 2
    assert "software is 'Mine!', which is no name" in capsys.readouterr().err


def test_nothing_but_a_fit_imports_scipy_or_numpy():
    code = (
        "import sys, rooflines.loading, rooflines.fits.calibrate, rooflines.cli.calibrate\n"
        "from rooflines.fits.calibration_files import shipped_calibrations\n"
        "rooflines.loading.load_config(); shipped_calibrations()\n"
        "import rooflines.charts as charts, rooflines.run.jobs\n"
        f"config = rooflines.load_config({SWEEP!r})\n"
        "rooflines.thresholds(config); rooflines.rows(config, 'own').collect()\n"
        "shown = charts.of_config(config)\n"
        "charts.png(charts.view('roofline', shown, 'own').spec())\n"
        "sys.exit(bool({'scipy', 'numpy', 'threadpoolctl'} & set(sys.modules)))"
    )
    python("-c", code)


def in_cache(count):
    """Timings at half their bound whose operands fit the cache of an H100, of both regimes."""
    rows = []
    for i in range(count):
        B, D, F = (1 if i % 2 else 2048), 1024, 1024 + 64 * i  # noqa: N806, letters of sizes
        bound = max(2 * B * D * F / 989e12, 2 * (B * D + D * F + B * F) / 3.35e12)
        rows.append({"B": B, "D": D, "F": F, "seconds": bound / 2})
    names = dict.fromkeys(("dtype_x", "dtype_w", "dtype_out", "compute"), pl.lit("bf16"))
    return pl.DataFrame(rows).with_columns(chip=pl.lit("h100-sxm"), **names)


@pytest.mark.parametrize("out_of_cache", [0, 1])
def test_timings_in_cache_are_none_of_those_that_a_fit_needs(out_of_cache, capsys):
    first = GOOD.select("chip", "dtype_x", "dtype_w", "dtype_out", "compute", *"BDF", "seconds")
    pl.concat([in_cache(12), first.head(out_of_cache)], how="diagonal").write_csv("timings.csv")
    assert calibrate() == 2
    said = capsys.readouterr().err
    n = "1 timing" if out_of_cache else "0 timings"
    assert f"bf16 has {n} to fit, of 10 needed; 12 timings left out: faster than memory" in said
    assert not Path("calibrations").exists()
