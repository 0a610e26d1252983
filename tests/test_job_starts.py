"""Starts of jobs: on a thread of the run or in a process; what happens if one is killed."""

import os
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil
import pytest
from processes import python
from small_config import matmul

from rooflines.basics.errors import INTERRUPTED
from rooflines.loading import load_config
from rooflines.run import start
from rooflines.run.plan import plan
from rooflines.run.start import JobError, run_job, run_process

READ = "basics.yaml_file.read_yaml"
"""A job that waits if its file is a pipe: nobody writes to it."""


@pytest.fixture
def waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor() as pool:
        job = pool.submit(run_process, READ, tmp_path / "waiting.log", 1, tmp_path / "pipe")
        until((tmp_path / "waiting.log").exists)
        yield job
        with suppress(OSError):  # the job is there no more
            os.close(os.open(tmp_path / "pipe", os.O_WRONLY | os.O_NONBLOCK))


def until(condition):
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    raise TimeoutError


def processes():
    return [
        process
        for process in psutil.Process().children()
        if "rooflines.run.job_process" in process.cmdline()
    ]


def read(folder, run=run_process, *memory_mb):
    (folder / "good.yaml").write_text("a: 1\n")
    run(READ, folder / "good.log", 1, *memory_mb, folder / "good.yaml")
    return (folder / "good.log").read_text()


def test_a_job_on_a_thread_and_one_in_a_process_have_a_log(tmp_path):
    for args in [(run_process,), (run_job, 1)]:
        assert re.fullmatch(r"done in \d\.\d\d s\n", read(tmp_path, *args))
    assert processes() == []


@pytest.mark.parametrize("run", ["run_process({}, 1, {})", "run_job({}, 1, 1, {})"])
def test_a_job_fails_with_its_message(run, tmp_path):
    def failed(call, *arguments):
        call = run.format(call, ", ".join(map(repr, arguments)))
        code = f"from rooflines.run.start import run_job, run_process; {call}"
        return python("-c", code, cwd=tmp_path, status=1).stderr.splitlines()

    lines = failed(f"{READ!r}, 'a.log'", "none.yaml")
    assert lines[0] == "none.yaml does not exist."
    assert lines[1] == "  fix: give the path of a file that does."
    assert lines[-1].endswith("JobError: read_yaml failed with exit status 1; its log: a.log")
    assert failed("'run.jobs.write_part', 'b.log'", "no spec", "c")[0].startswith("JSONDecode")
    assert "Traceback (most recent call last)" in (tmp_path / "b.log").read_text()
    assert failed("'sys.exit', 'c.log'")[0].startswith("ModuleNotFoundError")


@pytest.mark.parametrize("threads", [1, 2])
def test_polars_computes_on_the_threads_of_a_process(threads, tmp_path):
    (part,) = plan(load_config({"sweeps": {"one": matmul()}})).parts_in("tables")
    one = tmp_path / "one.parquet"
    run_process("run.jobs.write_part", tmp_path / "log", threads, part.spec, one)
    assert f"1 rows, {threads} thread" in (tmp_path / "log").read_text()


def test_a_panic_of_polars_on_a_thread_ends_the_job_alone(tmp_path, monkeypatch, capfd):
    class PanicException(BaseException):
        pass

    def panics():
        raise PanicException("index out of bounds")

    monkeypatch.setattr("rooflines.basics.yaml_file.panics", panics, raising=False)
    with pytest.raises(JobError, match="panics failed with exit status 1"):
        run_job("basics.yaml_file.panics", tmp_path / "log", 1, 1)
    assert capfd.readouterr().err == "PanicException: index out of bounds\n"
    assert "Traceback" in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("free_mb", "running", "process"), [(300, 0, False), (299, 0, True), (499, 1, True)]
)
def test_a_job_that_plans_more_than_the_free_memory_is_a_process(
    free_mb, running, process, tmp_path, monkeypatch
):
    run, planned = [], [200.0] * running
    monkeypatch.setattr(start, "free_memory_mb", lambda: free_mb)
    monkeypatch.setattr(start, "_planned_mb", planned)
    monkeypatch.setattr(start, "run_process", lambda *arguments: run.append(arguments))
    log = tmp_path / "log"
    run_job(READ, log, 1, 300, tmp_path / "none.yaml") if process else read(tmp_path, run_job, 300)
    assert run == ([(READ, log, 1, tmp_path / "none.yaml")] if process else [])
    assert planned == [200.0] * running


def test_free_memory_is_that_of_the_container(tmp_path, monkeypatch):
    monkeypatch.setattr(start, "CGROUP", tmp_path)
    machine_mb = psutil.virtual_memory().available / 1e6
    assert start.free_memory_mb() == pytest.approx(machine_mb, rel=0.2)
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    assert start.free_memory_mb() == 2
    (tmp_path / "memory.max").write_text("max\n")
    assert start.free_memory_mb() == pytest.approx(machine_mb, rel=0.2)


def test_free_memory_is_within_the_limit_of_the_process(tmp_path):
    code = (
        "import resource, psutil\n"
        "from rooflines.run.start import free_memory_mb\n"
        "used = psutil.Process().memory_info().vms\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 50_000_000, -1))\n"
        "print(free_memory_mb())\n"
    )
    assert 40 < float(python("-c", code, cwd=tmp_path).stdout) < 50.1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_job_fails_alone(number, waiting, tmp_path):
    (job,) = processes()
    assert read(tmp_path)
    assert not waiting.done()
    os.kill(job.pid, number)
    with pytest.raises(JobError, match=f"was ended by {number.name}"):
        waiting.result(60)
    assert read(tmp_path)


def test_after_ctrl_c_processes_end_and_none_starts(waiting, tmp_path, monkeypatch):
    ended: list[int] = []
    interrupted = threading.Event()
    monkeypatch.setattr(start, "interrupted", interrupted)
    monkeypatch.setattr(start, "INTERRUPTED_S", 0)
    monkeypatch.setattr(os, "_exit", ended.append)
    interrupted.set()
    start.end_jobs()
    with pytest.raises(JobError, match="was ended by SIGTERM"):
        waiting.result(60)
    for args in [(run_process,), (run_job, 1)]:
        with pytest.raises(JobError, match="the run was interrupted"):
            read(tmp_path, *args)
    until(lambda: ended)
    assert ended == [INTERRUPTED], "jobs on threads end with the process"


def test_a_process_ends_with_the_run(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    call = f"{READ!r}, 'waiting.log', 1, 'pipe'"
    code = (
        "import os, pathlib, threading, time\n"
        "from rooflines.run.start import _processes, run_process\n"
        f"threading.Thread(target=run_process, args=({call})).start()\n"
        "while not pathlib.Path('waiting.log').exists(): time.sleep(0.01)\n"
        "(process,) = _processes\n"
        "pathlib.Path('pid').write_text(str(process.pid))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    python("-c", code, cwd=tmp_path, status=-signal.SIGKILL)
    job = int((tmp_path / "pid").read_text())
    until(lambda: not psutil.pid_exists(job) or psutil.Process(job).status() == "zombie")


def test_a_killed_job_is_not_waited_for_until_its_own_processes_end(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(
        "import os, pathlib, signal\n"
        "import rooflines.basics.yaml_file\n"
        "def forks(path):\n"
        "    if child := os.fork(): pathlib.Path(path).write_text(str(child))\n"
        "    os.kill(os.getpid(), signal.SIGKILL if child else signal.SIGSTOP)\n"
        "rooflines.basics.yaml_file.forks = forks\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    child = tmp_path / "child"
    with ThreadPoolExecutor() as pool:
        job = pool.submit(run_process, "basics.yaml_file.forks", tmp_path / "log", 1, child)
        until(lambda: child.exists() and child.read_text())
        try:
            with pytest.raises(JobError, match="SIGKILL, as for lack of memory"):
                job.result(20)
        finally:
            os.kill(int(child.read_text()), signal.SIGKILL)
