"""What a run says while it works."""

import io
import logging
from pathlib import Path
from types import SimpleNamespace

import pytest

from rooflines.progress import Progress, WithoutSteps, duration, job_log, part_name, progress_line


def record(event: str | None, **extra: object) -> logging.LogRecord:
    """A record such as Snakemake logs."""
    made = logging.LogRecord("snakemake", logging.INFO, __file__, 1, "a message", None, None)
    made.__dict__.update(extra, event=event)
    return made


def workflow(*parts: str, dryrun: bool = False) -> SimpleNamespace:
    """What progress needs of Snakemake's workflow object: the jobs to run, numbered from 1."""
    jobs = [SimpleNamespace(jobid=i, output=[f"results/tables/{part}.parquet"]) for i, part in enumerate(parts, start=1)]
    return SimpleNamespace(dryrun=dryrun, touch=False, dag=SimpleNamespace(needrun_jobs=lambda: jobs))


def test_rows_are_counted_of_the_parts_that_this_run_makes() -> None:
    """A part that is already there is neither to do nor done."""
    stream = io.StringIO()
    progress = Progress(workflow("a/part-00000", "a/part-00001"), {"a/part-00000": 10, "a/part-00001": 30, "b/part-00000": 7}, stream)
    for event in (record("run_info"), record("job_finished", job_id=2), record("job_finished", job_id=1)):
        progress.emit(event)
    assert stream.getvalue().startswith("40 rows to make in 2 parts\n")
    assert "40 of 40 rows (100 %)" in stream.getvalue()


def test_a_dry_run_has_no_progress() -> None:
    """Nothing is made, so nothing is announced."""
    stream = io.StringIO()
    progress = Progress(workflow("a/part-00000", dryrun=True), {"a/part-00000": 10}, stream)
    progress.emit(record("run_info"))
    assert not stream.getvalue()


@pytest.mark.parametrize("event", [record("job_finished"), record("run_info"), record(None), record("job_finished", job_id="x")])
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
    assert progress_line(12_000_000, 45_000_000, 3.0) == "12,000,000 of 45,000,000 rows (26 %), 4,000,000 rows/s, about 8 s left"
    assert progress_line(99, 100, 1.0) == "99 of 100 rows (99 %), 99 rows/s"
    assert progress_line(100, 100, 2.0) == "100 of 100 rows (100 %), 50 rows/s, 2.0 s"


def test_times_are_told_in_the_unit_one_would_say_them_in() -> None:
    """Seconds up to two minutes, minutes up to two hours."""
    assert [duration(seconds) for seconds in (42, 119, 420, 12_600)] == ["42 s", "119 s", "7 min", "3.5 h"]


def test_a_part_is_named_by_the_end_of_its_path() -> None:
    """Wherever the results are."""
    assert part_name("deep/results/tables/a-b/part-00012.parquet") == "a-b/part-00012"


def test_a_failed_job_has_its_traceback_in_the_log_and_one_line_on_the_screen(tmp_path: Path) -> None:
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
