"""The commands besides `explain`: what they print, write and refuse, on a terminal and piped."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import polars as pl
import pytest
from measured import WHOLE, number, results

import rooflines
from rooflines.cli import main as cli
from rooflines.cli.main import COMMANDS
from rooflines.cli.new import QUESTIONS
from rooflines.cli.output import as_table
from rooflines.cli.run import snakemake_command
from rooflines.run.ending import findings, skipped_reasons
from rooflines.run.plan import plan
from rooflines.run.work import work_of

if TYPE_CHECKING:
    from pathlib import Path

SMALL = """
sweeps:
  a:
    operation: matmul
    grid: {B: [1, 64, 4096], D: [1024, 8192], F: D}
    dtypes: [bf16, mxfp4]
    chips: [tpu-v5e, mine]
    thresholds: [B]
chips:
  mine: {base: h100-sxm, memory.hbm.bytes_per_s: 4.0e+12, source: mine}
charts: []
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with a config."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").write_text(SMALL)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command prints on stdout."""
    assert cli.run(list(words)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help_with_an_example(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--help` shows how to call it."""
    assert f"  rooflines {name} " in said(capsys, name, "--help").partition("Examples:")[2] + " "


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("chips h100", "chip is 'h100', which is no chip.\n  close to it: h100-sxm"),
        ("chips --cvs", "rooflines chips has no option '--cvs'.\n  close to it: --csv"),
        ("dtypes bf16", "rooflines dtypes is used wrongly: got unexpected extra argument (bf16)"),
        ("new matmull", "question is 'matmull', which is no question.\n  close to it: matmul"),
        ("new matmul -o my.yaml", "my.yaml exists already.\n  fix: choose another name"),
        ("new matmul -o no/x.yaml", "no/x.yaml cannot be written: No such file or directory."),
        ("new", "rooflines new needs QUESTION"),
        ("compare h100-sxm h200", "second chip is 'h200', which is no chip.\n  close to it: h200-"),
        ("compare b200 b200", "second chip is 'b200' again"),
        ("compare my.yaml b200", "first chip is 'my.yaml', which is no chip."),
        ("compare my.yaml no.yaml", "no.yaml does not exist"),
        ("check no.yaml", "no.yaml does not exist"),
        ("check my.yaml --cores 0", "rooflines check is used wrongly: invalid value for '--cores'"),
        ("run no.yaml", "no.yaml does not exist"),
        ("run my.yaml --core 2", "rooflines run has no option '--core'.\n  close to it: --cores"),
        ("origin no.csv", "no.csv does not exist"),
        ("chekc my.yaml", "rooflines has no command 'chekc'.\n  close to it: check"),
    ],
)
def test_a_mistake_gives_one_message_and_writes_nothing(
    words: str, message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With close names and a fix; exit code 2."""
    assert cli.run(words.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(message)
    assert printed.err.count("  fix: ") == 1
    assert [path.name for path in here.iterdir()] == ["my.yaml"]


def test_check_reports_all_mistakes_at_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two mistakes in one run, each with its line."""
    (here / "my.yaml").write_text(SMALL.replace("tpu-v5e", "tpu-v5").replace("bf16", "bf61"))
    assert cli.run(["check", "my.yaml"]) == 2
    message = capsys.readouterr().err
    assert "'tpu-v5'" in message
    assert "'bf61'" in message


def test_run_refuses_a_wrong_config_before_anything_else(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message and the exit status are those of `check`."""
    (here / "my.yaml").write_text(SMALL.replace("tpu-v5e", "tpu-v5"))
    assert cli.run(["check", "my.yaml"]) == 2
    message = capsys.readouterr().err
    assert cli.run(["run", "my.yaml"]) == 2
    assert capsys.readouterr().err == message
    assert not (here / "results").exists()


def test_check_says_what_a_run_will_make(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows and skipped rows are those of the Python interface."""
    config = rooflines.load_config("my.yaml")
    text = said(capsys, "check", "my.yaml", "--cores", "2")
    rows = rooflines.rows(config, "a").collect().height
    skipped = rooflines.skipped(config)["rows"].sum()
    solutions = rooflines.thresholds(config).height
    assert f"{rows} rows of 1 sweep in 1 part; {solutions} thresholds; 0 charts" in text
    assert f"Skipped {skipped} rows: no mxfp4 peak" in text


@pytest.mark.parametrize(
    ("columns", "size"),
    [("all", "192 MB"), ("core", "70 MB"), (["t_lower_s", "bound"], "10 MB"), (["fits"], "20 kB")],
)
def test_check_expects_the_bytes_of_the_columns_that_are_stored(
    columns: list[str] | str, size: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of ten million rows in one part, which has 20 kB beside its rows."""
    steps = {"from": 1, "step": 1}
    sweep = {
        "operation": "matmul",
        "grid": {"B": steps | {"to": 100}, "D": steps | {"to": 100_000}, "F": 1024},
        "dtypes": ["bf16"],
        "chips": ["h100-sxm"],
        "thresholds": [],
        "columns": columns,
    }
    large = {"sweeps": {"large": sweep}, "charts": []}
    (here / "large.yaml").write_text(json.dumps(large))
    assert f"about {size} of tables" in said(capsys, "check", "large.yaml")


@pytest.mark.parametrize(("columns", "size"), [("all", "142 MB"), ("core", "51 MB")])
def test_check_expects_the_bytes_of_models(
    columns: str, size: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a million rows in one part."""
    sweep = {
        "models": "llama-3.1-70b",
        "grid": {"B": {"from": 1, "to": 1000, "step": 1}, "S": {"from": 1, "to": 1000, "step": 1}},
        "dtypes": "fp8",
        "chips": "h200-sxm",
        "thresholds": [],
        "layers": False,
        "columns": columns,
    }
    large = {"model-sweeps": {"large": sweep}, "charts": []}
    (here / "large.yaml").write_text(json.dumps(large))
    assert f"about {size} of tables" in said(capsys, "check", "large.yaml")


def test_the_time_of_the_default_config_is_about_what_is_measured() -> None:
    """benchmarks/RESULTS.md has the time of a run; the estimate must not be off twofold."""
    work = work_of(plan(rooflines.load_config()))
    measured = number(results().row(9, run=WHOLE)["CPU s"])
    assert measured / 2 < sum(work.values()) < 2 * measured


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_new_config_is_valid_and_answers_its_question(
    question: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has thresholds, comments, and at most 25 lines."""
    assert f"rooflines run {question}.yaml" in said(capsys, "new", question)
    text = (here / f"{question}.yaml").read_text()
    assert len(text.splitlines()) <= 25
    assert text.startswith("# ")
    config = rooflines.load_config(here / f"{question}.yaml")
    thresholds = rooflines.model_thresholds if question == "model" else rooflines.thresholds
    frame = thresholds(config)
    assert frame["critical"].drop_nulls().len() > 3


def test_the_help_has_a_whole_line_for_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Without an ellipsis, at 80 columns."""
    listed = said(capsys, "--help").partition("Commands:\n")[2].splitlines()
    for name, line in zip(COMMANDS, listed, strict=False):
        assert line.split()[0] == name
        assert line.endswith(".")
        assert not line.endswith("...")


def test_the_catalogue_is_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """CSV and JSON have every row of the Python interface; a table has every chip."""
    frame = rooflines.chips()
    assert pl.read_csv(io.StringIO(said(capsys, "chips", "--csv"))).height == frame.height
    one = json.loads(said(capsys, "chips", "h100-sxm", "--json"))
    assert one == frame.filter(chip="h100-sxm").to_dicts()
    listed = said(capsys, "chips").splitlines()
    assert {line.split()[0] for line in listed[1:-2]} == set(frame["chip"])
    assert "mine" in said(capsys, "chips", "--config", "my.yaml")
    assert "989 TFLOP/s" in said(capsys, "chips", "h100-sxm")


def test_dtypes_have_the_sources_of_their_formats(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has a source for each of the four formats of each combination."""
    rows = json.loads(said(capsys, "dtypes", "--json"))
    assert [row["dtypes"] for row in rows] == rooflines.dtypes()["dtypes"].to_list()
    assert all(row[f"{name}_source"] for row in rows for name in ("x", "w", "out", "compute"))
    assert len(said(capsys, "dtypes").splitlines()) == len(rows) + 1


def test_a_table_fits_the_terminal() -> None:
    """The widest column is cut, and marked; without a limit nothing is."""
    rows = [("a", "b" * 100), ("cc", "d")]
    assert all(len(line) <= 40 for line in as_table(("x", "y"), rows, 40).splitlines())
    assert "b.." in as_table(("x", "y"), rows, 40)
    assert "b" * 100 in as_table(("x", "y"), rows, None)
    assert all(len(line) <= 5 for line in as_table(("x", "y"), rows, 5).splitlines())


def test_two_chips_are_compared_by_their_numbers_and_critical_sizes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The h200 is the h100 with a faster memory: that, and nothing else, is why."""
    rows = list(
        csv.DictReader(io.StringIO(said(capsys, "compare", "h100-sxm", "h200-sxm", "--csv")))
    )
    memory = next(row for row in rows if row["what"] == "memory.hbm.bytes_per_s")
    numbers = {
        row["path"]: row["value"] for row in rooflines.chips().filter(chip="h200-sxm").to_dicts()
    }
    assert float(memory["other"]) == numbers["memory.hbm.bytes_per_s"]
    assert float(memory["ratio"]) == float(memory["other"]) / float(memory["one"])
    critical = {row["what"]: row for row in rows if row["what"].startswith("critical")}
    assert {row["because_of"] for row in critical.values()} == {"memory.hbm.bytes_per_s"}
    grid = {"B": 1, "D": 8192, "F": 8192}
    sweep = {"operation": "matmul", "grid": grid, "dtypes": ["bf16"], "thresholds": ["B"]}
    config = rooflines.load_config({"sweeps": {"s": {**sweep, "chips": ["h100-sxm", "h200-sxm"]}}})
    expected = rooflines.thresholds(config)["critical"].to_list()
    found = critical["critical B, bf16"]
    assert [float(found["one"]), float(found["other"])] == expected


def test_numbers_that_work_against_each_other_are_both_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A TPU v5e has a lower peak, so a lower critical batch, although its memory is slower."""
    text = said(capsys, "compare", "h100-sxm", "tpu-v5e", "--csv")
    assert "units.matrix.bf16.flops_per_s; against it memory.hbm.bytes_per_s" in text


def test_two_configs_are_compared_by_rows_and_thresholds(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A changed number of a chip is found, with the thresholds that it moves."""
    changed = SMALL.replace("4.0e+12", "5.0e+12").replace("[1, 64, 4096]", "[1, 64]")
    (here / "other.yaml").write_text(changed)
    text = said(capsys, "compare", "my.yaml", "other.yaml", "--csv")
    rows = {row["what"]: row for row in csv.DictReader(io.StringIO(text))}
    assert float(rows["mine, memory.hbm.bytes_per_s"]["ratio"]) == 1.25
    assert float(rows["rows, a"]["other"]) * 3 == float(rows["rows, a"]["one"]) * 2
    moved = {what: row for what, row in rows.items() if "critical" in what}
    assert len(moved) == 2
    assert all(row["because_of"] == "memory.hbm.bytes_per_s" for row in moved.values())
    assert "0 of 4 thresholds in both differ" in said(capsys, "compare", "my.yaml", "my.yaml")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which `rooflines run` made results on a terminal, and what it printed."""
    folder = tmp_path_factory.mktemp("ran")
    (folder / "my.yaml").write_text(SMALL)
    return folder, on_a_terminal(folder, "run", "my.yaml", "--cores", "2")[1]


def on_a_terminal(folder: Path, *words: str, stop_after: str = "") -> tuple[int, str]:
    """The exit status and the output of a command on a terminal of 80 columns.

    Args:
        folder: Where it runs.
        words: The command.
        stop_after: Text after which Ctrl-C is typed.
    """
    here, there = pty.openpty()
    command = [sys.executable, "-m", "rooflines", *words]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"}
    with subprocess.Popen(
        command, cwd=folder, stdin=there, stdout=there, stderr=there, env=environment,
        start_new_session=True,
    ) as run:  # fmt: skip
        os.close(there)
        shown, stopped = b"", False
        with suppress(OSError):  # the terminal was closed
            while text := os.read(here, 4096):
                shown += text
                if stop_after and not stopped and stop_after.encode() in shown:
                    stopped = True
                    time.sleep(0.5)
                    os.killpg(run.pid, signal.SIGINT)
        os.close(here)
        return run.wait(60), shown.decode().replace("\r\n", "\n")


def test_run_makes_results_in_this_folder_and_says_what(ran: tuple[Path, str]) -> None:
    """Its last lines say what was made, skipped and found, and what to open."""
    folder, text = ran
    assert (folder / "results/bundle/index.html").is_file()
    assert "In results: 12 rows in 1 part, thresholds.csv, 0 charts\n" in text
    assert "Skipped 12 rows: no mxfp4 peak of its matrix unit (12)\n" in text
    assert "Compute-bound: " in text
    assert "Open results/bundle/index.html" in text
    assert "\x1b[3" not in text, "NO_COLOR is set"


def test_targets_are_not_read_as_configs(tmp_path: Path) -> None:
    """An option follows the config file, so that what the user adds begins a list of its own."""
    (tmp_path / "my.yaml").write_text(SMALL)
    config = str(tmp_path / "my.yaml")
    words = snakemake_command(config, 2, ["summary"], dry_run=False)
    assert words[words.index(config) + 1].startswith("--")
    assert words[-1] == "summary"


def test_origin_says_what_the_old_command_says(
    ran: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Unchanged files give 0, others 1."""
    file = str(ran[0] / "results" / "summary.csv")
    assert said(capsys, "origin", file, "--check") == f"{file} is as it was written\n"
    assert "sweeps:" in said(capsys, "origin", file)
    changed = ran[0] / "copy.csv"
    changed.write_text("a\n")
    assert cli.run(["origin", str(changed), "--results", str(ran[0] / "results")]) == 1


def test_a_dry_run_makes_nothing_and_words_after_dashes_go_to_snakemake(here: Path) -> None:
    """Piped, without colours; the words reach Snakemake."""
    words = ["run", "my.yaml", "--dry-run", "--", "results/skipped.csv"]
    done = subprocess.run(
        [sys.executable, "-m", "rooflines", *words],
        cwd=here, capture_output=True, text=True, check=True,
    )  # fmt: skip
    printed = done.stdout + done.stderr
    assert "skipped" in printed
    assert "sweep_table" not in printed
    assert "\x1b" not in printed
    assert not (here / "results").exists()


def test_ctrl_c_ends_a_run_in_one_line(here: Path) -> None:
    """No traceback and no block of a failed rule."""
    large = SMALL.replace("[1, 64, 4096]", "{from: 1, to: 1000000, step: 1}")
    (here / "my.yaml").write_text(large)
    status, text = on_a_terminal(here, "run", "my.yaml", "--cores", "2", stop_after="to make")
    assert status == 130
    after = text.partition("to make in")[2]
    assert "Interrupted; the same command resumes the run" in after
    for word in ("Traceback", "Error", "died with"):
        assert word not in after


def test_run_without_snakemake_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One message with the command."""
    monkeypatch.setattr("rooflines.cli.run.find_spec", lambda _: None)
    assert cli.run(["run", "my.yaml"]) == 2
    assert 'pip install "rooflines[workflow]"' in capsys.readouterr().err


def test_a_terminal_gets_tables_of_its_width(here: Path) -> None:
    """No line of a table is wider than 80 columns."""
    for words in (("chips",), ("dtypes",), ("compare", "h100-sxm", "b200")):
        status, text = on_a_terminal(here, *words)
        assert status == 0
        table = text.partition("\n\n")[2] if words[0] == "compare" else text
        assert max(map(len, table.splitlines())) <= 80
        assert "\x1b" not in text


def test_findings_count_rows_and_not_lines() -> None:
    """The share weighs each line of the summary by its rows."""
    line = {"rows": "1", "compute_bound": "1.0", "bottleneck": "compute", "never": "0.0"}
    least = {"axis": "B", "sweep": "s", "chip": "c", "dtypes": "d", "critical_least": "7"}
    split = {"sharding": "batch", "shards": "8"}
    other = {**line, "rows": "3", "compute_bound": "0.0", "bottleneck": "memory", "never": "1.0"}
    first, second, third = findings(
        [{**line, **least, **split}, {**other, **least, **split, "critical_least": ""}]
    )
    assert first.startswith("Compute-bound: 25 % of the rows")
    assert "B = 7 on c with d over 8 chips (batch) in s" in second
    assert "1 of 2 lines" in third
    assert not list(findings([]))
    reasons = [{"reason": f"no {name}", "rows": "2"} for name in "abcd"]
    (text,) = skipped_reasons(reasons)
    assert text == "Skipped 8 rows: no a (2); no b (2); no c (2); 1 more reason in skipped.csv"
