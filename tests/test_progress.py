"""What a run says while it works."""

import io
import logging
import os
import pty
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from rooflines.run.log import WithoutSteps, job_log
from rooflines.run.progress import (
    Progress,
    RunningPart,
    Tally,
    duration,
    part_name,
    progress_line,
)
from rooflines.run.screen import CLEAR, Screen


def record(event: str | None, **extra: object) -> logging.LogRecord:
    """A record such as Snakemake logs."""
    made = logging.LogRecord("snakemake", logging.INFO, __file__, 1, "a message", None, None)
    made.__dict__.update(extra, event=event)
    return made


def workflow(*parts: str, dryrun: bool = False) -> SimpleNamespace:
    """What progress needs of Snakemake's workflow object: the jobs to run, numbered from 1."""
    jobs = [
        SimpleNamespace(jobid=i, output=[f"results/tables/{part}.parquet"])
        for i, part in enumerate(parts, start=1)
    ]
    return SimpleNamespace(
        dryrun=dryrun, touch=False, dag=SimpleNamespace(needrun_jobs=lambda: jobs)
    )


def test_rows_are_counted_of_the_parts_that_this_run_makes() -> None:
    """A part that is already there is neither to do nor done."""
    stream = io.StringIO()
    progress = Progress(
        workflow("a/part-00000", "a/part-00001"),
        {"a/part-00000": 10, "a/part-00001": 30, "b/part-00000": 7},
        stream,
    )
    for event in (
        record("run_info"),
        record("job_finished", job_id=2),
        record("job_finished", job_id=1),
    ):
        progress.emit(event)
    assert stream.getvalue().startswith("40 rows to make in 2 parts\n")
    assert "40 of 40 rows (100 %)" in stream.getvalue()


def test_a_dry_run_has_no_progress() -> None:
    """Nothing is made, so nothing is announced."""
    stream = io.StringIO()
    progress = Progress(workflow("a/part-00000", dryrun=True), {"a/part-00000": 10}, stream)
    progress.emit(record("run_info"))
    assert not stream.getvalue()


@pytest.mark.parametrize(
    "event",
    [record("job_finished"), record("run_info"), record(None), record("job_finished", job_id="x")],
)
def test_progress_never_stops_a_run(event: logging.LogRecord) -> None:
    """Whatever is logged, and whatever the workflow object has become, a count is not worth a run."""
    Progress(object(), {}).emit(event)


def test_a_thousand_parts_do_not_make_a_thousand_lines() -> None:
    """Parts that finish together share a line."""
    names = [f"a/part-{i:05d}" for i in range(1000)]
    stream = io.StringIO()
    progress = Progress(workflow(*names), dict.fromkeys(names, 5), stream)
    progress.emit(record("run_info"))
    for job in range(1, 1001):
        progress.emit(record("job_finished", job_id=job))
    assert len(stream.getvalue().splitlines()) < 20
    assert "5,000 of 5,000 rows (100 %)" in stream.getvalue()


def test_a_file_gets_few_lines_however_long_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand parts of a minute each: one line for every tenth of the rows, the first and the last."""
    clock = iter(range(0, 10**9, 60))
    monkeypatch.setattr(
        "rooflines.run.progress.time", SimpleNamespace(monotonic=lambda: float(next(clock)))
    )
    names = [f"a/part-{i:05d}" for i in range(1000)]
    stream = io.StringIO()
    progress = Progress(workflow(*names), dict.fromkeys(names, 5), stream)
    progress.emit(record("run_info"))
    for job in range(1, 1001):
        progress.emit(record("job_finished", job_id=job))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 11
    assert "rows/s, about" in lines[1]
    assert lines[-1].startswith("5,000 of 5,000 rows (100 %)")


def test_a_terminal_shows_parts_in_the_making_with_their_own_time_left(tmp_path: Path) -> None:
    """How far a part is follows from its half-written file, as soon as a finished part has told how many bytes a row takes."""
    parts = [
        RunningPart(f"a/part-{i:05d}", 1000, tmp_path / f"part-{i:05d}.parquet") for i in range(3)
    ]
    tally = Tally(dict(enumerate(parts)), total=3000, started_s=time.monotonic() - 20)
    tally.begin(0)
    tally.begin(1)
    now_s = time.monotonic()
    assert tally.line(now_s) == "0 of 3,000 rows (0 %); a/part-00000 0 s; a/part-00001 0 s"
    parts[0].path.write_bytes(bytes(10_000))
    (tmp_path / ".part-00001.parquet.abcdefgh.tmp").write_bytes(bytes(2500))
    assert tally.finish(0) == 1000
    tally.waiting[1].began_s = now_s - 10
    assert (
        tally.line(now_s)
        == "1,250 of 3,000 rows (41 %), 62 rows/s, about 28 s left; a/part-00001 25 %, about 30 s left"
    )
    tally.fail(1)
    assert tally.line(now_s) == "1,000 of 3,000 rows (33 %), 50 rows/s, about 40 s left"


def test_what_is_written_to_a_screen_stands_above_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is taken back first, and is never longer than the screen is wide."""
    monkeypatch.setenv("COLUMNS", "10")
    stream = io.StringIO()
    screen = Screen(stream)
    screen.show("12 of 45 rows")
    screen.write("an error\n")
    screen.show("")
    assert stream.getvalue() == f"12 of 45 {CLEAR}an error\n"


@pytest.fixture
def on_a_terminal(repository: Path, tmp_path: Path) -> str:
    """What a terminal gets from a run of two parts, the larger of which is larger than a file may be."""
    rest = {"dtypes": ["bf16"], "chips": ["tpu-v5e"], "operation": "matmul"}
    sweeps = {
        "small": {**rest, "grid": {"B": 1, "D": 1, "F": 1}},
        "large": {**rest, "grid": {"B": {"from": 1, "to": 99_999, "step": 1}, "D": 1, "F": 1}},
    }
    (tmp_path / "my.yaml").write_text(yaml.safe_dump({"sweeps": sweeps, "charts": []}))
    options = f"--snakefile {repository / 'Snakefile'} --cores 1 --keep-going --configfile my.yaml"
    here, there = pty.openpty()
    command = [
        "bash",
        "-c",
        f"ulimit -f 200; exec {sys.executable} -m snakemake results/tables/index.csv {options}",
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
        with suppress(OSError):  # how a terminal says that nobody writes to it any more
            while text := os.read(here, 4096):
                shown += text
        os.close(here)
        assert run.wait(60) != 0
    return shown.decode().replace("\r\n", "\n")


def test_a_terminal_gets_a_line_that_is_written_over_and_errors_on_lines_of_their_own(
    on_a_terminal: str,
) -> None:
    """The running line never stands in front of a message, and nothing of it is left at the end."""
    assert re.search(r"^100,000 rows to make in 2 parts$", on_a_terminal, re.MULTILINE)
    assert re.search(
        r"\d of 100,000 rows \(\d+ %\)[^\n]*(large|small)/part-00000[^\n]*" + re.escape(CLEAR),
        on_a_terminal,
    )
    seen = re.sub(rf"[^\n]*{re.escape(CLEAR)}", "", on_a_terminal)
    assert re.search(r"^(\w+Error: )?.*([Tt]oo large|may not grow)", seen, re.MULTILINE)
    assert "of 100,000 rows (" not in seen, (
        "the run did not end well, so there is no last line, and the running one is taken back"
    )
    assert seen.endswith("\n")


def test_single_jobs_are_left_out_but_errors_and_dry_runs_are_shown() -> None:
    """The screen shows what one acts on."""
    shown = WithoutSteps(workflow())
    assert not shown.filter(record("job_info"))
    assert not shown.filter(record("job_finished"))
    assert shown.filter(record("job_error"))
    assert shown.filter(record(None))
    assert WithoutSteps(workflow(dryrun=True)).filter(record("job_info"))


def test_a_line_of_progress_says_how_far_how_fast_and_how_long() -> None:
    """Rows done of rows to do, the rate to two digits, and the time left where it is long enough to be told."""
    assert (
        progress_line(12_000_000, 45_000_000, 3.0)
        == "12,000,000 of 45,000,000 rows (26 %), 4,000,000 rows/s, about 8 s left"
    )
    assert progress_line(99, 100, 1.0) == "99 of 100 rows (99 %), 99 rows/s"
    assert progress_line(100, 100, 2.0) == "100 of 100 rows (100 %), 50 rows/s, 2.0 s"


def test_times_are_told_in_the_unit_one_would_say_them_in() -> None:
    """Seconds up to two minutes, minutes up to two hours."""
    assert [duration(seconds) for seconds in (42, 119, 420, 12_600)] == [
        "42 s",
        "119 s",
        "7 min",
        "3.5 h",
    ]


def test_a_part_is_named_by_the_end_of_its_path() -> None:
    """Wherever the results are."""
    assert part_name("deep/results/tables/a-b/part-00012.parquet") == "a-b/part-00012"


def test_a_failed_job_has_its_traceback_in_the_log_and_one_line_on_the_screen(
    tmp_path: Path,
) -> None:
    """The log also has what the job printed before."""

    def job() -> None:
        with job_log(tmp_path / "job.log"):
            print("begun")
            raise OSError(28, "No space left on device")

    with pytest.raises(SystemExit, match=r"^OSError: \[Errno 28\] No space left on device$"):
        job()
    log = (tmp_path / "job.log").read_text()
    assert log.startswith("begun\n")
    assert "Traceback" in log
