"""`measurements:` of a config: what is refused, and what `check` says of timings."""

import datetime as dt
import json

import polars as pl
import pytest
from case_files import case
from command_line import refused, said
from polars.testing import assert_frame_equal
from run_folder import RunFolder
from timed_sets import BF16, HEAD, write_timings

import rooflines
from rooflines.config.measurement_fields import AboutTimings
from rooflines.config.schema import SiteConfig
from rooflines.fits.calibration_files import shipped_calibrations
from rooflines.measured.timing_sets import measured_set_of
from rooflines.results.tables import metadata_of

CONFIG = {key: case("configs/workflow")[key] for key in ("measurements", "chips")}


@pytest.fixture
def folder(tmp_path):
    write_timings(tmp_path)
    return RunFolder(tmp_path, CONFIG)


def wrong(folder):
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
    ],
)
def test_a_wrong_set_is_refused(folder, key, entry, problem):
    folder.config["measurements"][key] = entry
    message = wrong(folder)
    assert problem in message
    assert "fix:" in message


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("measured", {"measurements": {"x": {"file": "timed/none.csv"}}}),
        ("roofline", {"sweeps": {"x": {"operation": "matmul", "dtypes": ["none"]}}}),
        ("time", {"model-sweeps": {"x": {"models": ["none"], "grid": {"B": 1, "S": 1}}}}),
    ],
)
def test_a_chart_of_what_is_refused_has_no_message_of_its_own(kind, part):
    key = "measurements" if kind == "measured" else "sweep"
    with pytest.raises(rooflines.RooflinesError) as alone:
        rooflines.load_config({**part, "charts": []})
    with pytest.raises(rooflines.RooflinesError) as beside:
        rooflines.load_config({**part, "charts": [{"chart": kind, key: "x"}]})
    assert str(beside.value) == str(alone.value)


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
    assert "duplicate row" not in printed
    again = text + text.removeprefix(HEAD)
    (folder.path / "timed/grid.csv").write_text(again, encoding="utf-8")
    printed = said(capsys, "check", str(folder.write()))
    assert "grid: 1 duplicate row" in printed
    (folder.path / "timed/grid.csv").write_text(text, encoding="utf-8")
    folder.config["measurements"]["grid"]["on_unexplained"] = "error"
    message = refused(capsys, "check", str(folder.write()))
    assert "has 1 timing of h100-sxm below the bound, without a reason" in message
    assert "the least is 0.899 of it" in message
    more = f"{text}h100-sxm,{BF16},4096,8192,8192,4.5e-4\n"
    (folder.path / "timed/grid.csv").write_text(more, encoding="utf-8")
    message = refused(capsys, "check", str(folder.write()))
    assert "has 2 timings of h100-sxm below the bound, without a reason" in message
    assert "the least is 0.81 of it" in message


def test_joined_timings_are_written_as_parquet_or_csv(tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_text(f"{HEAD}h100-sxm,{BF16},4096,8192,8192,8e-4\n", encoding="utf-8")
    printed = said(capsys, "measured", "join", str(table))
    assert "1 timing with a bound" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
    for name in ("out.parquet", "out.csv"):
        said(capsys, "measured", "join", str(table), "-o", str(tmp_path / name))
        message = refused(capsys, "measured", "join", str(table), "-o", str(tmp_path / name))
        assert "exists" in message
    parquet, csv = pl.read_parquet(tmp_path / "out.parquet"), pl.read_csv(tmp_path / "out.csv")
    assert parquet.columns == csv.columns
    assert parquet["seconds"].to_list() == csv["seconds"].to_list() == [8e-4]
    columns = [column["name"] for column in metadata_of(tmp_path / "out.parquet")["columns"]]
    assert columns == parquet.columns


ATTENTION = """\
chip,software,phase,compute,cache,B,S,T,N,K,H,seconds
h100-sxm,vllm,decode,bf16,bf16,64,8192,1,32,8,128,1e-3
h100-sxm,vllm,prefill,bf16,bf16,1,8192,8192,32,8,128,3e-3
h100-sxm,vllm,decode,bf16,bf17,64,8192,1,32,8,128,1e-3
"""


def test_a_job_of_timings_has_the_fits_of_variants_of_their_software(folder):
    fit = shipped_calibrations().calibrations["b200/trtllm-dynamic"]["fp8"]
    row = f'b200,trtllm,fp8,fp8,bf16,fp8,1024,8192,8192,2e-4,"{fit.contents}"'
    text = f"{HEAD.rstrip()},contents\n{row}\n"
    (folder.path / "timed/grid.csv").write_text(text, encoding="utf-8")
    one = rooflines.load_config(folder.write()).measurement("grid")
    rows = one.join().frame
    assert rows["calibration"].to_list() == ["b200/trtllm-dynamic"]
    assert_frame_equal(measured_set_of(json.loads(json.dumps(one.recipe()))).join().frame, rows)


def test_timings_of_attention_are_a_set(folder, capsys):
    """Its job joins the same rows: of 64 caches of 8,192 tokens, 32 kB each, at 3.35 TB/s."""
    (folder.path / "timed/grid.csv").write_text(ATTENTION, encoding="utf-8")
    one = rooflines.load_config(folder.write()).measurement("grid")
    rows = one.join().frame
    moved = 64 * (8192 * 2 * 8 * 128 * 2 + 2 * 32 * 128 * 2)
    assert rows["t_lower_s"][0] == pytest.approx(moved / 3.35e12)
    assert rows["t_lower_s"][1] == pytest.approx(4 * 32 * 128 * 8192 * 8193 / 2 / 989e12)
    assert rows["dtypes"].to_list() == ["decode-bf16", "prefill-bf16-bf16"]
    assert rows["t_estimate_s"].null_count() == 0
    assert_frame_equal(measured_set_of(json.loads(json.dumps(one.recipe()))).join().frame, rows)
    printed = said(capsys, "measured", "judge", str(folder.path / "timed/grid.csv"))
    assert "1 without row: they have cache 'bf17', which is no dtype; close to it: bf16" in printed
    assert "h100-sxm vllm decode" in printed


def test_a_date_of_yaml_is_kept_as_text():
    assert AboutTimings.model_validate({"date": dt.date(2026, 1, 2)}).date == "2026-01-02"
    assert AboutTimings.model_validate({}).date is None
    assert SiteConfig.model_validate({"date": dt.date(2026, 1, 2)}).date == "2026-01-02"
