"""`rooflines origin` names the sources of tables, charts and CSV, and detects changes."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
import yaml
from case_files import case
from command_line import refused, said
from outputs_made import make_outputs

import rooflines
from rooflines.charts.chart_job import write_charts
from rooflines.cli.main import run
from rooflines.results import provenance
from rooflines.results.records import record_file, recorded_outputs
from rooflines.results.tables import METADATA_KEY, metadata_of
from rooflines.run.plan import plan

CONFIG = case("configs/provenance")
FILES = (
    *("parts.csv", "thresholds.parquet", "skipped.csv", "summary.csv", "model-shapes.csv"),
    "rooflines.xlsx",
)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    results = tmp_path_factory.mktemp("written") / "results"
    planned = make_outputs(CONFIG, results, *FILES)
    write_charts(planned.charts_spec(), results, tmp_path_factory.mktemp("drawn"))
    return results


@pytest.fixture
def results(written, tmp_path):
    return Path(shutil.copytree(written, tmp_path / "results"))


def test_every_output_of_a_plan_has_a_record(written):
    planned = plan(rooflines.load_config(CONFIG)).by_path
    assert {
        path.relative_to(written).as_posix() for path in recorded_outputs(written)
    } == planned.keys() - {"bundle"}
    assert all(fault is None for _, fault in provenance.check_results(written))


@pytest.mark.parametrize(
    "name",
    ["tables/small/part-00000.parquet", "charts/chips", *sorted({*FILES} - {"model-shapes.csv"})],
)
def test_an_output_says_what_made_it(written, name):
    result = rooflines.origin(written / name)
    assert result.whole
    assert result.verdict == "is as it was written"
    assert result.made_with["rooflines"] == rooflines.__version__
    assert result.made_with["polars"] == pl.__version__
    sweep = result.sweeps["small"]
    assert sweep["config"]["grid"]["B"] == [1, 64, 4096]
    assert sweep["chips"]["tpu-v5e"]["memory"]["hbm"]["bytes_per_s"] == 8.19e11
    sources = {"bytes_per_s": ["gcp-v5e-old"], "capacity_bytes": ["memory-jax"]}
    assert sweep["chips"]["tpu-v5e"]["memory"]["hbm"]["source"] == sources
    assert "v5e" in str(yaml.safe_load(result.text())["sources"]["gcp-v5e-old"])
    assert ("other" in result.sweeps) == (
        name not in ("tables/small/part-00000.parquet", "charts/chips")
    )


def test_the_metadata_of_a_table_are_in_the_file_itself(written):
    table = written / "tables/small/part-00001.parquet"
    about = metadata_of(table)
    (recipe,) = about["made_from"]
    own = recipe["chips"]["own"]["memory"]["hbm"]
    assert (own["bytes_per_s"], own["source"]["bytes_per_s"]) == (4e12, "a measurement")
    assert own["source"]["capacity_bytes"] != "a measurement"
    assert recipe["dtypes"]["formats"]["bf16"]["bits"] == 16
    assert {column["name"]: column["unit"] for column in about["columns"]}["t_lower_s"] == "s"
    assert json.loads(pl.read_parquet_metadata(table)[METADATA_KEY]) == about
    with pytest.raises(rooflines.RooflinesError, match="close to it: small"):
        rooflines.scan(written, "smal")


def test_a_chart_says_what_made_it(written, capsys):
    files = sorted((written / "charts/chips").glob("chips-small*"))
    endings = {file.name.removeprefix("chips-small") for file in files}
    assert endings > {"-small.png", ".png", ".svg", ".csv"}
    for file in files:
        found = yaml.safe_load(said(capsys, "origin", str(file), "--all"))
        assert found["verdict"] == "is as it was written"
        assert [chart["chart"] for chart in found["charts"]] == ["chips"]
        assert list(found["sweeps"]) == ["small"]
        assert found["sweeps"]["small"]["chips"]["own"]["memory"]["hbm"]["bytes_per_s"] == 4e12


def test_an_origin_names_what_made_a_file_and_all_prints_the_numbers(written, capsys):
    table = str(written / "thresholds.parquet")
    lines = rooflines.origin(table).text().rstrip().split("\n")
    short = said(capsys, "origin", table)
    assert short.endswith(f"# all {len(lines):,} lines: --all\n")
    assert len(short.splitlines()) < 50
    found = yaml.safe_load(short)
    assert found["sweeps"]["small"] == {"chips": "tpu-v5e, own", "dtypes": "bf16, mxfp4"}
    assert "gcp-v5e-old" in found["sources"]
    assert said(capsys, "origin", table, "--all").rstrip().split("\n") == lines


def test_a_changed_file_is_reported(results, capsys):
    table = results / "summary.csv"
    table.write_text(table.read_text().replace("tpu", "TPU", 1))
    assert run(["origin", str(table), "--check"]) == 1
    assert capsys.readouterr().out == f"{table} has other content than was written\n"
    assert run(["origin", str(table), str(results / "skipped.csv"), "--check"]) == 1
    assert rooflines.origin(table).sweeps.keys() == {"small", "other"}


def test_a_folder_is_checked_whole(results, capsys):
    assert "all as they were written" in said(capsys, "origin", str(results))
    part = results / "tables/small/part-00001.parquet"
    part.write_bytes(part.read_bytes()[:-1] + b"2")
    (results / "skipped.csv").unlink()
    foreign = results / "tables/small/part-00007.parquet"
    pl.DataFrame({"x": [1]}).write_parquet(foreign)
    (results / "charts/chips/mine.txt").write_text("a note")
    assert run(["origin", str(results)]) == 1
    printed = capsys.readouterr().out
    assert f"{part} has other content than was written\n" in printed
    assert f"{results / 'skipped.csv'} is not there and was written\n" in printed
    assert f"{foreign} has no record of what made it" in printed
    assert f"{results / 'charts/chips'} has mine.txt in it, which nothing here made\n" in printed
    assert "4 of them not as they were written" in printed


def test_a_table_without_a_record_still_says_what_made_it(results):
    table = results / "tables/small/part-00000.parquet"
    record_file(results, table).unlink()
    result = rooflines.origin(table)
    assert not result.whole
    assert "has no record" in result.verdict
    assert list(result.sweeps) == ["small"]
    assert result.made_with == {"rooflines": rooflines.__version__}


def test_a_missing_file_gives_one_message(capsys):
    assert "nowhere.csv does not exist.\n  fix: " in refused(capsys, "origin", "nowhere.csv")
