"""Progress lines and job logs."""

import io
import logging
import subprocess
import sys
from types import SimpleNamespace

import pytest
import yaml
from small_config import matmul

from rooflines.run.log import run_logged
from rooflines.run.outputs import Output, Plan
from rooflines.run.snakemake.progress import Progress
from rooflines.run.snakemake.steps import WithoutSteps
from rooflines.run.snakemake.workflow import drop_job_limit


def record(event, **extra):
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


@pytest.mark.parametrize(
    ("dryrun", "said"),
    [
        (False, "40 rows to make in 2 parts\n"),  # and no more of what takes no time
        (True, ""),
    ],
)
def test_rows_are_counted_that_this_run_makes(dryrun, said):
    rows = {"a/part-00000": 10, "a/part-00001": 30, "b/part-00000": 7}
    made, stream = workflow("a/part-00000", "a/part-00001", dryrun=dryrun), io.StringIO()
    progress = progress_of(made, stream, rows)
    progress.emit(record("run_info"))
    for job in (2, 1):
        progress.emit(record("job_finished", job_id=job))
    assert stream.getvalue() == said


@pytest.mark.parametrize(
    "event",
    [record("job_finished"), record("run_info"), record(None), record("job_finished", job_id="x")],
)
def test_progress_never_stops_a_run(event):
    Progress(object(), {}).emit(event)


def test_a_file_gets_few_lines_however_long_the_run(monkeypatch):
    clock = iter(range(0, 10**9, 60))
    monkeypatch.setattr(
        "rooflines.run.snakemake.progress.time",
        SimpleNamespace(monotonic=lambda: float(next(clock))),
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


def test_a_failed_run_says_last_what_was_wrong(repository, tmp_path):
    many = {"B": {"from": 1, "to": 99_999, "step": 1}, "D": 1, "F": 1}
    sweeps = {"small": matmul(), "large": matmul(grid=many)}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump({"sweeps": sweeps, "charts": []}))
    options = f"--snakefile {repository / 'Snakefile'} --cores 1 --keep-going --configfile my.yaml"
    python = f"{sys.executable} -m snakemake results/parts.csv {options}"
    command = ["bash", "-c", f"ulimit -f 200; exec {python}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "100,000 rows to make in 2 parts\n" in done.stderr
    assert "of 100,000 rows (" not in done.stderr, "a failed run has no last line"
    *_, problem, fix = done.stderr.splitlines()
    assert problem.endswith(" cannot be written: File too large."), "the cause is read last"
    assert fix.startswith("  fix: make room")


def test_single_jobs_are_left_out_but_errors_and_dry_runs_are_shown():
    shown = WithoutSteps(workflow())
    assert not shown.filter(record("job_info"))
    assert not shown.filter(record("job_finished"))
    assert shown.filter(record("job_error"))
    assert shown.filter(record(None))
    assert WithoutSteps(workflow(dryrun=True)).filter(record("job_info"))


def test_a_failed_job_has_its_traceback_in_the_log_and_returns_its_message(tmp_path, monkeypatch):
    def job():
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rooflines.run.jobs.job", job, raising=False)
    message = run_logged("run.jobs.job", tmp_path / "job.log", ())
    assert message == "OSError: [Errno 28] No space left on device"
    assert "Traceback" in (tmp_path / "job.log").read_text()


@pytest.mark.parametrize(
    ("limit", "alone", "kept"),
    [(10, True, None), (3, True, 3), (10, False, 10), (None, True, None)],
)
def test_a_limit_that_a_run_cannot_reach_costs_no_timers(limit, alone, kept):
    types = pytest.importorskip("snakemake.settings.types")
    timespan = None if limit is None else types.MaxJobsPerTimespan(limit, "1s")
    settings = types.SchedulingSettings(max_jobs_per_timespan=timespan)
    modifier = SimpleNamespace(is_main_snakefile=lambda: alone)
    made = SimpleNamespace(scheduling_settings=settings, modifier=modifier)
    drop_job_limit(Plan(tuple(Output(str(number), "", "") for number in range(3))), made)
    found = settings.max_jobs_per_timespan
    assert (found and found.max_jobs) == kept


def test_another_snakemake_without_these_settings_runs_with_its_limit():
    drop_job_limit(Plan(()), SimpleNamespace())
