"""The commands besides `explain` and `run`: what they print, write and refuse."""

import json
import re
import subprocess
import sys

import polars as pl
import pytest
from command_line import refused, said, table
from documents import config_schema
from hf_configs import config_of
from small_config import SMALL, matmul
from timed_sets import BF16, HEAD

import rooflines
from rooflines.answers.claims import Sentence
from rooflines.cli import main as cli
from rooflines.cli.main import COMMANDS
from rooflines.cli.new import QUESTIONS
from rooflines.cli.output import as_table
from rooflines.run.plan import plan
from rooflines.run.run_summary import final_lines, findings, skipped_reasons

CHIPS = """\
chips:
  mine:
    base: h100-sxm
    memory.hbm.bytes_per_s: 4.8e12
    source: me
    prices: [{usd_per_hour: 2, provider: Me, date: 2026-08-20, source: me}]
"""
"""A chip and no sweep; YAML reads the date as one."""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").write_text(SMALL)
    return tmp_path


@pytest.mark.parametrize("path", cli.every_command(), ids=" ".join)
def test_every_command_has_help_with_an_example(path, capsys):
    text = said(capsys, *path, "--help")
    if path[0] in cli.GROUPS and len(path) == 1:
        assert all(f"\n  {name} " in text for name in cli.GROUPS[path[0]])
    else:
        assert f"  rooflines {' '.join(path)} " in text.partition("Examples:")[2] + " "


@pytest.mark.parametrize("name", cli.SHORT)
def test_commands_of_groups_work_without_their_group(name, capsys):
    assert said(capsys, name, "--help").startswith(f"Usage: rooflines {name} ")
    assert f"\n  {name} " not in said(capsys, "--help")


def test_help_needs_no_extra():
    """No command imports what only an extra installs before it runs."""
    blocked = "import sys; sys.modules.update(dict.fromkeys(sys.argv[1].split()))"
    helped = (
        "from rooflines.cli.main import every_command, run; "
        "assert not any(run([*path, '-h']) for path in every_command())"
    )
    extras = "snakemake pygments numpy threadpoolctl scipy torch"
    code = f"{blocked}; {helped}"
    done = subprocess.run(
        [sys.executable, "-c", code, extras], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_run_refuses_a_wrong_config_before_anything_else(here, capsys):
    (here / "my.yaml").write_text(SMALL.replace("tpu-v5e", "tpu-v5"))
    assert cli.run(["check", "my.yaml"]) == 2
    message = capsys.readouterr().err
    assert cli.run(["run", "my.yaml"]) == 2
    assert capsys.readouterr().err == message
    assert not (here / "results").exists()


def test_check_says_what_a_run_will_make(capsys):
    config = rooflines.load_config("my.yaml")
    text = said(capsys, "check", "my.yaml")
    rows = rooflines.rows(config, "a").collect().height
    skipped = rooflines.skipped(config)["rows"].sum()
    solutions = rooflines.thresholds(config).height
    assert f"{rows} rows of 1 sweep in 1 part; {solutions} thresholds; no charts" in text
    assert f"Skipped {skipped} rows: no mxfp4 peak" in text


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_new_config_is_valid_and_answers_its_question(question, here, capsys):
    assert f"rooflines run {question}.yaml" in said(capsys, "new", question)
    text = (here / f"{question}.yaml").read_text()
    assert len(text.splitlines()) <= 25
    assert text.startswith("# ")
    config = rooflines.load_config(here / f"{question}.yaml")
    assert rooflines.thresholds(config)["critical"].drop_nulls().len() > 3


def test_a_config_of_a_quantised_model_has_the_dtypes_that_it_is_published_in(here, capsys):
    said(capsys, "new", "--model", "gpt-oss-120b", "-o", "one.yaml")
    (sweep,) = rooflines.load_config(here / "one.yaml").model_sweeps.values()
    (dtypes,) = sweep.config.dtypes
    assert (dtypes.label, dtypes.weights, dtypes.experts) == (
        "bf16 experts=mxfp4",
        "bf16",
        "mxfp4",
    )


def test_a_config_about_ones_own_model_runs(here, capsys):
    said(capsys, "new", "--model", "qwen3-8b", "-o", "one.yaml")
    (here / "config.json").write_text(json.dumps(config_of("qwen3-8b")))
    said(capsys, "new", "model", "--model", "config.json", "-o", "own.yaml")
    frames = [rooflines.thresholds(rooflines.load_config(f"{n}.yaml")) for n in ("one", "own")]
    assert frames[0]["critical"].to_list() == frames[1]["critical"].to_list()


def test_a_config_of_prices_is_enough(here, capsys):
    (here / "prices.yaml").write_text("prices: {mi300x: 2.5}\n")
    words = ("--config", "prices.yaml")
    assert "$2.5/h, your price" in said(capsys, "compare", "mi300x", "tpu-v6e", *words)
    assert "2.5" in said(capsys, "list", "chips", "mi300x", *words)
    (here / "prices.yaml").write_text("chips: {mine: {units: 5}}\nprices: {mine: 2.5}\n")
    assert "prices.mine" not in refused(capsys, "explain", "b200", "1x2x3", "bf16", *words)


def test_the_help_has_a_whole_line_for_each_command(capsys):
    listed = said(capsys, "--help").partition("Commands:\n")[2].splitlines()
    for name, line in zip(COMMANDS, listed, strict=False):
        assert line.split()[0] == name
        assert line.endswith(".")
        assert not line.endswith("...")


def test_the_catalogue_is_printed_whole(capsys):
    frame = rooflines.chips()
    assert len(table(capsys, "chips")) == frame.height
    one = json.loads(said(capsys, "chips", "h100-sxm", "--json"))
    assert one == frame.filter(chip="h100-sxm").to_dicts()
    listed = said(capsys, "chips").splitlines()
    whole = set(frame.filter(pl.col("base").is_null())["chip"])
    assert {line.split()[0] for line in listed[1:-2]} == whole
    every = said(capsys, "list", "chips", "--all").splitlines()
    assert {line.split()[0] for line in every[1:-2]} == set(frame["chip"]) > whole
    assert "mine" in said(capsys, "chips", "--config", "my.yaml")
    assert "989 TFLOP/s" in said(capsys, "chips", "h100-sxm")


def test_columns_are_those_of_python(capsys):
    assert json.loads(said(capsys, "list", "columns", "--json")) == rooflines.columns().to_dicts()
    one = said(capsys, "list", "columns", "thresholds").splitlines()
    assert len(one) == rooflines.columns().filter(file="thresholds").height + 1
    assert one[0].split()[:2] == ["column", "unit"]


def test_keys_are_those_of_the_schema(capsys):
    every = json.loads(said(capsys, "list", "keys", "--json"))
    found = {row["key"] for row in every if row["place"] == "config"}
    assert found == {*config_schema()["properties"]}
    one = said(capsys, "list", "keys", "sweeps")
    assert re.search(r"^shares +\[1\] +shares of attainable peak", one, re.MULTILINE)


def test_dtypes_have_the_sources_of_their_formats(capsys):
    rows = json.loads(said(capsys, "dtypes", "--json"))
    assert [row["dtypes"] for row in rows] == rooflines.dtypes()["dtypes"].to_list()
    assert all(row[f"{name}_source"] for row in rows for name in ("x", "w", "out", "compute"))
    _, *lines = said(capsys, "dtypes").splitlines()
    assert [line.split()[0] for line in lines] == [row["dtypes"] for row in rows]
    assert all((row["note"] or "") in line for line, row in zip(lines, rows, strict=True))


def test_a_table_fits_the_terminal():
    rows = [("a", "b" * 100), ("cc", "d")]
    assert all(len(line) <= 40 for line in as_table(("x", "y"), rows, 40).splitlines())
    assert "b.." in as_table(("x", "y"), rows, 40)
    assert "b" * 100 in as_table(("x", "y"), rows)
    assert all(len(line) <= 5 for line in as_table(("x", "y"), rows, 5).splitlines())


def test_two_chips_are_compared_by_their_numbers_and_critical_sizes(capsys):
    rows = {row["what"]: row for row in table(capsys, "compare", "h100-sxm", "h200-sxm")}
    memory = rows["memory.hbm.bytes_per_s"]
    numbers = {
        row["path"]: row["value"] for row in rooflines.chips().filter(chip="h200-sxm").to_dicts()
    }
    assert float(memory["other"]) == numbers["memory.hbm.bytes_per_s"]
    assert float(memory["ratio"]) == float(memory["other"]) / float(memory["one"])
    assert "units.matrix.bf16.flops_per_s" not in rows  # it is that of the h100
    assert "critical B, nvfp4" not in rows  # neither computes in it
    grid = {"B": 1, "D": 8192, "F": 8192}
    sweep = matmul(grid=grid, chips=["h100-sxm", "h200-sxm"], thresholds=["B"])
    config = rooflines.load_config({"sweeps": {"s": sweep}})
    expected = rooflines.thresholds(config)["critical"].to_list()
    found = rows["critical B, bf16"]
    assert [float(found["one"]), float(found["other"])] == expected


def test_two_chips_are_summed_up_by_peak_and_main_memory(capsys):
    """989.5 TFLOP/s on both; 4.8 and 3.35 TB/s."""
    assert "bf16 peak × 1, memory bandwidth × 1.43, " in said(
        capsys, "compare", "h100-sxm", "h200-sxm"
    )


def test_a_config_of_chips_alone_names_chips_for_every_command(here, capsys):
    (here / "chips.yaml").write_text(CHIPS)
    assert cli.run(["check", "chips.yaml"]) == 2
    assert "has no sweeps, so there is nothing to compute" in capsys.readouterr().err
    words = ("--config", "chips.yaml")
    assert "memory.hbm.bytes_per_s,4800000000000.0" in said(
        capsys, "chips", "mine", "--csv", *words
    )
    rows = table(capsys, "compare", "h100-sxm", "mine", *words)
    (memory,) = (row for row in rows if row["what"].startswith("memory."))
    assert (memory["what"], float(memory["other"])) == ("memory.hbm.bytes_per_s", 4.8e12)


def test_a_run_without_operations_names_what_it_has(here):
    (here / "timed.csv").write_text(f"{HEAD}h100-sxm,{BF16},1024,8192,8192,2e-4\n")
    made = plan(rooflines.load_config({"measurements": {"one": {"file": "timed.csv"}}}))
    first, last = final_lines(made, here).splitlines()
    assert first == f"In {here}: measured.csv, 0 charts"
    assert last == f"Open {here}/bundle/index.html; in numbers: {here}/measured.csv"


def test_a_finding_that_breaks_a_rule_is_not_said(here, monkeypatch):
    made = plan(rooflines.load_config("my.yaml"))
    (here / "summary.csv").write_text("rows,compute_bound,bottleneck\n5,0.0,memory\n")
    assert "most often the bottleneck: memory" in final_lines(made, here)
    wrong = Sentence("memory binds", rows=[{"bound": "network"}], blames="memory")
    monkeypatch.setattr("rooflines.run.run_summary.findings", lambda _: [wrong])
    assert "memory binds" not in final_lines(made, here)


def test_findings_count_rows_and_not_lines():
    line = {"rows": "1", "compute_bound": "1.0", "bottleneck": "compute"}
    other = {"rows": "5", "compute_bound": "0.0", "bottleneck": "memory"}
    (found,) = findings([line, line, line, other])
    assert found.text == (
        "Compute-bound: 38 % of the rows; most often the bottleneck: compute "
        "(3 of 4 lines of summary.csv)"
    )
    assert not list(findings([]))
    reasons = [{"reason": f"no {name}", "rows": "2"} for name in "abcd"]
    (text,) = skipped_reasons(reasons)
    assert text == "Skipped 8 rows: no a (2); no b (2); no c (2); 1 more reason in skipped.csv"
