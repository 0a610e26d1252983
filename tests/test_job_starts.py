"""Starts of jobs: a process each, forked by a server of the run; what happens if one is killed."""

import json
import os
import re
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from processes import python
from small_config import matmul

from rooflines.loading import load_config
from rooflines.run.plan import plan
from rooflines.run.start import JobError, Server, run_job

READ = "basics.yaml_file.read_yaml"
"""A job that waits if its file is a pipe: nobody writes to it."""


@pytest.fixture
def waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor() as pool:
        job = pool.submit(run_job, READ, tmp_path / "waiting.log", 1, tmp_path / "pipe")
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


def server():
    (found,) = (
        process
        for process in psutil.Process().children()
        if "rooflines.run.fork_server" in process.cmdline()
        and process.environ()["POLARS_MAX_THREADS"] == "1"
    )
    return found


def read(folder):
    (folder / "good.yaml").write_text("a: 1\n")
    run_job(READ, folder / "good.log", 1, folder / "good.yaml")
    return (folder / "good.log").read_text()


def test_a_job_is_a_process_with_a_log(tmp_path):
    assert re.fullmatch(r"done in \d\.\d\d s\n", read(tmp_path))
    assert server().children() == []


def test_a_job_fails_with_its_message(tmp_path):
    def failed(call):
        code = f"from rooflines.run.start import run_job; run_job({call})"
        return python("-c", code, cwd=tmp_path, status=1).stderr.splitlines()

    lines = failed(f"{READ!r}, 'a.log', 1, 'none.yaml'")
    assert lines[0] == "none.yaml does not exist."
    assert lines[1] == "  fix: give the path of a file that does."
    assert lines[-1].endswith("JobError: read_yaml failed with exit status 1; its log: a.log")
    assert failed("'run.jobs.write_part', 'b.log', 1, 'no spec', 'c'")[0].startswith("JSONDecode")
    assert "Traceback (most recent call last)" in (tmp_path / "b.log").read_text()


@pytest.mark.parametrize("threads", [1, 2])
def test_polars_computes_on_the_threads_of_the_job(threads, tmp_path):
    (part,) = plan(load_config({"sweeps": {"one": matmul()}})).parts_in("tables")
    run_job("run.jobs.write_part", tmp_path / "log", threads, part.spec, tmp_path / "one.parquet")
    assert f"1 rows, {threads} thread" in (tmp_path / "log").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="names of threads come from /proc")
def test_the_server_has_no_threads_of_polars(tmp_path):
    with pytest.raises(JobError):
        run_job("run.jobs.write_part", tmp_path / "log", 1, "no spec", tmp_path / "file")
    maps = Path(f"/proc/{server().pid}/maps").read_text()
    assert "polars" in maps, "it has imported polars"
    tasks = Path(f"/proc/{server().pid}/task").glob("*/comm")
    names = {task.read_text().strip() for task in tasks}
    assert {name for name in names if re.match(r"polars-\d|tokio|async-exec", name)} == set()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_job_fails_alone(number, waiting, tmp_path):
    assert read(tmp_path)
    assert not waiting.done()
    (job,) = server().children()
    os.kill(job.pid, number)
    with pytest.raises(JobError, match=f"was ended by {number.name}"):
        waiting.result(60)
    assert read(tmp_path)


def test_a_killed_server_is_replaced(waiting, tmp_path):
    (job,), killed = server().children(), server().pid
    os.kill(killed, signal.SIGKILL)
    os.waitid(os.P_PID, killed, os.WEXITED | os.WNOWAIT)
    assert read(tmp_path)
    assert server().pid != killed
    assert not waiting.done()
    job.kill()
    with pytest.raises(JobError, match="was left without the process that started it"):
        waiting.result(60)


def test_a_killed_job_is_not_waited_for_until_its_own_processes_end(tmp_path):
    code = (
        "import os, pathlib, signal\n"
        f"if child := os.fork(): pathlib.Path({str(tmp_path / 'child')!r}).write_text(str(child))\n"
        "os.kill(os.getpid(), signal.SIGKILL if child else signal.SIGSTOP)\n"
    )
    request = {"module": "builtins", "name": "exec", "log": f"{tmp_path}/log", "arguments": [code]}
    own = Server(1)
    with ThreadPoolExecutor() as pool:
        status = pool.submit(own.run, json.dumps(request).encode())
        until((tmp_path / "child").exists)
        try:
            assert status.result(20)[0] == -signal.SIGKILL
        finally:
            os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)
            own.close()
