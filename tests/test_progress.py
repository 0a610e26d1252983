"""Progress lines, the status line and job logs."""

import io
import logging
import os
import pty
import re
import subprocess
import sys
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest
import yaml

from rooflines.run.log import WithoutSteps, job_log
from rooflines.run.progress import (
    Progress,
    RunningJob,
    Tally,
    duration,
    progress_line,
)
from rooflines.run.screen import CLEAR


def record(event, **extra):
    """A record such as Snakemake logs."""
    made = logging.LogRecord("snakemake", logging.INFO, __file__, 1, "a message", None, None)
    made.__dict__.update(extra, event=event)
    return made


def workflow(*parts, dryrun=False):
    """A stub of Snakemake's workflow object: the jobs to run, numbered from 1."""
    jobs = [
        SimpleNamespace(jobid=i, output=[f"results/tables/{part}.parquet"])
        for i, part in enumerate(parts, start=1)
    ]
    return SimpleNamespace(
        dryrun=dryrun, touch=False, dag=SimpleNamespace(needrun_jobs=lambda: jobs)
    )


def progress_of(made, stream, rows):
    """The progress of a workflow whose parts have these rows."""
    by_path = {f"tables/{name}.parquet": count for name, count in rows.items()}
    return Progress(made, by_path, stream)


def test_rows_are_counted_of_the_parts_that_this_run_makes():
    stream = io.StringIO()
    progress = progress_of(
        workflow("a/part-00000", "a/part-00001"),
        stream,
        {"a/part-00000": 10, "a/part-00001": 30, "b/part-00000": 7},
    )
    for event in (
        record("run_info"),
        record("job_finished", job_id=2),
        record("job_finished", job_id=1),
    ):
        progress.emit(event)
    assert stream.getvalue() == "40 rows to make in 2 parts\n", "nothing of what takes no time"


def test_a_dry_run_has_no_progress():
    stream = io.StringIO()
    progress = progress_of(workflow("a/part-00000", dryrun=True), stream, {"a/part-00000": 10})
    progress.emit(record("run_info"))
    assert not stream.getvalue()


@pytest.mark.parametrize(
    "event",
    [record("job_finished"), record("run_info"), record(None), record("job_finished", job_id="x")],
)
def test_progress_never_stops_a_run(event):
    Progress(object(), {}).emit(event)


def test_a_file_gets_few_lines_however_long_the_run(monkeypatch):
    clock = iter(range(0, 10**9, 60))
    monkeypatch.setattr(
        "rooflines.run.progress.time", SimpleNamespace(monotonic=lambda: float(next(clock)))
    )
    names = [f"a/part-{i:05d}" for i in range(1000)]
    stream = io.StringIO()
    progress = progress_of(workflow(*names), stream, dict.fromkeys(names, 5))
    progress.emit(record("run_info"))
    for job in range(1, 1001):
        progress.emit(record("job_finished", job_id=job))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 11
    assert lines[1].endswith("rows/s"), "rows done and their rate, and no guess of the time left"
    assert lines[-1].startswith("5,000 of 5,000 rows (100 %)")


def test_a_terminal_shows_running_jobs_with_their_time():
    parts = [RunningJob(f"a/part-{i:05d}", 1000) for i in range(3)]
    tally = Tally(dict(enumerate(parts)), total=3000, started_s=time.monotonic() - 20)
    tally.begin(0)
    tally.begin(1)
    now_s = time.monotonic()
    assert tally.line(now_s) == "0 of 3,000 rows (0 %); a/part-00000 0 s; a/part-00001 0 s"
    assert tally.finish(0) == 1000
    assert tally.line(now_s + 60) == "1,000 of 3,000 rows (33 %), 12 rows/s; a/part-00001 60 s"
    tally.fail(1)
    assert tally.line(now_s) == "1,000 of 3,000 rows (33 %), 50 rows/s"


@pytest.fixture
def on_a_terminal(repository, tmp_path):
    """The terminal output of a run of two parts, one larger than a file may be.

    The status line is updated often, for a run of less than a second.
    """
    rest = {"dtypes": ["bf16"], "chips": ["tpu-v5e"], "operation": "matmul"}
    sweeps = {
        "small": {**rest, "grid": {"B": 1, "D": 1, "F": 1}},
        "large": {**rest, "grid": {"B": {"from": 1, "to": 99_999, "step": 1}, "D": 1, "F": 1}},
    }
    (tmp_path / "my.yaml").write_text(yaml.safe_dump({"sweeps": sweeps, "charts": []}))
    options = f"--snakefile {repository / 'Snakefile'} --cores 1 --keep-going --configfile my.yaml"
    start = (
        "import rooflines.run.progress; from snakemake.cli import main; "
        "rooflines.run.progress.UPDATE_INTERVAL_S = 0.02; main()"
    )
    here, there = pty.openpty()
    command = [
        "bash",
        "-c",
        f"ulimit -f 200; exec {sys.executable} -c '{start}' results/tables/index.csv {options}",
    ]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdin=there,
        stdout=there,
        stderr=there,
        env={**os.environ, "TERM": "xterm"},
    ) as run:
        os.close(there)
        shown = b""
        with suppress(OSError):  # the terminal was closed
            while text := os.read(here, 4096):
                shown += text
        os.close(here)
        assert run.wait(60) != 0
    return shown.decode().replace("\r\n", "\n")


def test_a_terminal_gets_a_status_line_and_errors_on_lines_of_their_own(on_a_terminal):
    assert re.search(r"^100,000 rows to make in 2 parts$", on_a_terminal, re.MULTILINE)
    assert re.search(
        r"\d of 100,000 rows \(\d+ %\)[^\n]*(large|small)/part-00000[^\n]*" + re.escape(CLEAR),
        on_a_terminal,
    )
    seen = re.sub(rf"[^\n]*{re.escape(CLEAR)}", "", on_a_terminal)
    assert re.search(r"^(\w+Error: )?.*([Tt]oo large|may not grow)", seen, re.MULTILINE)
    assert "of 100,000 rows (" not in seen, (
        "a failed run has no last line, and its status line is cleared"
    )
    assert seen.endswith("\n")
    *_, problem, fix = seen.splitlines()
    assert re.search("[Tt]oo large|may not grow", problem), "the cause is what is read first"
    assert fix.startswith("  fix: make room")


def test_single_jobs_are_left_out_but_errors_and_dry_runs_are_shown():
    shown = WithoutSteps(workflow())
    assert not shown.filter(record("job_info"))
    assert not shown.filter(record("job_finished"))
    assert shown.filter(record("job_error"))
    assert shown.filter(record(None))
    assert WithoutSteps(workflow(dryrun=True)).filter(record("job_info"))


def test_a_line_of_progress_says_how_far_how_fast_and_how_long():
    assert (
        progress_line(12_000_000, 45_000_000, 3.0)
        == "12,000,000 of 45,000,000 rows (26 %), 4,000,000 rows/s"
    )
    assert progress_line(99, 100, 1.0) == "99 of 100 rows (99 %), 99 rows/s"
    assert progress_line(100, 100, 2.0) == "100 of 100 rows (100 %), 50 rows/s, 2.0 s"


def test_durations_have_the_unit_of_their_length():
    assert [duration(seconds) for seconds in (42, 119, 420, 12_600)] == [
        "42 s",
        "119 s",
        "7 min",
        "3.5 h",
    ]


def test_a_failed_job_has_its_traceback_in_the_log_and_one_line_on_the_screen(tmp_path):
    def job():
        with job_log(tmp_path / "job.log"):
            print("begun")
            raise OSError(28, "No space left on device")

    with pytest.raises(SystemExit, match=r"^OSError: \[Errno 28\] No space left on device$"):
        job()
    log = (tmp_path / "job.log").read_text()
    assert log.startswith("begun\n")
    assert "Traceback" in log
