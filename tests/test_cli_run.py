"""`rooflines run` and `rooflines origin`, on a terminal and piped."""

import signal
import subprocess
import sys
import time

import polars as pl
import psutil
import pytest
from processes import on_a_terminal, python
from small_config import SMALL

from rooflines.cli import main as cli
from rooflines.cli.run import snakemake_command

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").write_text(SMALL)
    return tmp_path


def test_run_makes_results_in_this_folder_and_says_what(site):
    results = site.parent
    text = (results.parent / "said.txt").read_text(encoding="utf-8")
    rows = pl.read_csv(results / "parts.csv")["rows"]
    tables = "thresholds.parquet, model-thresholds.parquet, measured.csv"
    assert f"In results: {rows.sum():,} rows in {rows.len()} parts, {tables}, 4 charts\n" in text
    skipped = pl.read_csv(results / "skipped.csv")["rows"].sum()
    assert f"Skipped {skipped} rows: no published number of chips that ici joins (256); " in text
    assert "Compute-bound: " in text
    assert "Open results/bundle/index.html" in text
    assert "\x1b[3" not in text, "NO_COLOR is set"


def test_targets_are_not_read_as_configs(tmp_path):
    (tmp_path / "my.yaml").write_text(SMALL)
    config = str(tmp_path / "my.yaml")
    words = snakemake_command(config, 2, ["summary"], dry_run=False)
    assert words[words.index(config) + 1].startswith("--")
    assert words[-1] == "summary"


def test_origin_ends_quietly_with_its_reader(site):
    command = f"{sys.executable} -m rooflines origin results | true"
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=site.parents[1], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""


def test_a_dry_run_makes_nothing_and_words_after_dashes_go_to_snakemake(here):
    words = ["run", "my.yaml", "--dry-run", "--", "results/skipped.csv"]
    done = python("-m", "rooflines", *words, cwd=here)
    printed = done.stdout + done.stderr
    assert "skipped" in printed
    assert "sweep_table" not in printed
    assert "\x1b" not in printed
    assert not (here / "results").exists()


def test_ctrl_c_ends_a_run_in_one_line(here):
    large = SMALL.replace("[1, 64, 4096]", "{from: 1, to: 1000000, step: 1}")
    (here / "my.yaml").write_text(large)
    status, text = on_a_terminal(here, "run", "my.yaml", "--cores", "2", stop_after="to make")
    assert status == 130, text
    after = text.partition("to make in")[2]
    assert "Interrupted; the same command resumes the run" in after
    for word in ("Traceback", "Error", "died with"):
        assert word not in after


@pytest.mark.parametrize("at", ["its tables", "its site"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_run_ends_with_its_command(here, number, at):
    large = SMALL.replace("[1, 64, 4096]", "{from: 1, to: 400000, step: 1}")
    (here / "my.yaml").write_text(large if at == "its tables" else SMALL)
    ours = [sys.executable, "-m", "rooflines", "run", "my.yaml", "--cores", "1"]
    command = ["env", "--default-signal=HUP", *ours]  # nohup of the tests ignores it
    with (here / "said").open("w") as said, subprocess.Popen(command, stderr=said) as run:
        while "to make" not in (here / "said").read_text():
            assert run.poll() is None
            time.sleep(0.02)
        time.sleep(0.2)
        while at == "its site" and not psutil.Process(run.pid).children():
            assert run.poll() is None
            time.sleep(0.02)
        below = psutil.Process(run.pid).children(recursive=True)
        run.send_signal(number)
        assert run.wait(60) != 0
    assert bool(below) == (at == "its site"), "tables are made on threads"
    assert psutil.wait_procs(below, timeout=10)[1] == []
    assert at == "its site" or not (here / "results/bundle").exists()


def test_run_without_snakemake_says_how_to_install_it(monkeypatch, capsys):
    monkeypatch.setattr("rooflines.cli.run.find_spec", lambda _: None)
    assert cli.run(["run", "my.yaml"]) == 2
    assert "`pip install 'snakemake>=9.27,<10'`" in capsys.readouterr().err


def test_a_terminal_gets_tables_of_its_width(here):
    for words in (("chips",), ("dtypes",), ("compare", "h100-sxm", "b200")):
        status, text = on_a_terminal(here, *words)
        assert status == 0
        table = text.partition("\n\n")[2] if words[0] == "compare" else text
        assert max(map(len, table.splitlines())) <= 80
        assert "\x1b" not in text
