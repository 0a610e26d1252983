"""A SLURM cluster of virtual nodes: real munged, slurmctld and slurmd, on loopback, as any user."""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

PROGRAMS = (
    *("munged", "slurmctld", "slurmd"),
    *("sbatch", "srun", "squeue", "scontrol", "scancel", "sinfo"),
)
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin:/sbin"
"""The path with the environment activated, for jobs that start `python`, and with daemons."""
QUICKLY = ("--slurm-init-seconds-before-status-checks", "8")
"""Options for Snakemake: the jobs of this cluster take seconds."""

MUNGE_FILES = ("key-file", "socket", "pid-file", "log-file", "seed-file")
"""Options of munged, each with a file."""

CONFIG = Path(__file__).with_name("slurm.conf").read_text(encoding="utf-8")
"""The configuration but for its nodes, with places for `format`."""


def missing_programs():
    """The programs of SLURM and munge that this machine lacks."""
    return [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]


def user():
    """The name of the user whose processes these are, whatever the environment says."""
    return pwd.getpwuid(os.getuid()).pw_name


def free_port():
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


STEP = "SLURM_STEP_ID=0"
"""Environment of processes in a job's first step."""
HOLD = """\
import os, pathlib, time

while os.environ.get("SLURM_STEP_ID") == "0" and pathlib.Path(__file__).with_name("held").exists():
    time.sleep(0.05)
"""
"""`sitecustomize.py` of jobs: the Python of a step waits here while steps are held."""


class Cluster:
    """A SLURM cluster in a folder.

    Args:
        folder: For its state, logs and sockets; its path has to be short for sockets.
        nodes: Virtual nodes; each claims one CPU and 4 GB, so that it runs one job at a time.
    """

    def __init__(self, folder, nodes):
        self.folder = folder
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self.environment = {
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": f"{folder / 'bin'}:{PATH}",
            "PYTHONPATH": str(folder / "python"),
        }

    def start(self):
        """Start the daemons, and wait until every node is idle."""
        self._write()
        below = self.folder / "munge"
        files = (f"--{name}={below}.{name.removesuffix('-file')}" for name in MUNGE_FILES)
        self._call("munged", "--force", *files)
        self._call("slurmctld", "-c")
        for node in self.nodes:
            self.start_node(node)
        self._wait_for_nodes()

    def stop(self):
        """End every daemon that was started, nodes first, and what runs on them."""
        with suppress(subprocess.SubprocessError):
            self._call("scancel", "--user", user())
        names = (*(f"slurmd.{node}" for node in self.nodes), "slurmctld", "munge")
        pids = [
            int(file.read_text())
            for name in names
            if (file := self.folder / f"{name}.pid").exists()
        ]
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal_number)
            deadline_s = time.monotonic() + 3
            while any(map(psutil.pid_exists, pids)) and time.monotonic() < deadline_s:
                time.sleep(0.1)

    def start_node(self, node):
        """Start the daemon of a node."""
        self._call("slurmd", "-N", node, "-c")

    def jobs(self):
        """The jobs that are running: node and what they make, by their number."""
        lines = self._call(
            "squeue", "--noheader", "--states=RUNNING", "--format=%i|%N|%k"
        ).splitlines()
        return {
            number: (node, comment)
            for number, node, comment in (line.split("|", 2) for line in lines)
        }

    @contextmanager
    def steps_held(self):
        """Let jobs start, and keep their steps from working, however fast they are."""
        held = self.folder / "python" / "held"
        held.touch()
        try:
            yield
        finally:
            held.unlink()

    def cancel(self, job):
        """Cancel a job, as an operator would."""
        self._call("scancel", job)

    @staticmethod
    def processes(job, mark=STEP):
        """The processes of a job: with its number and another variable in their environment."""
        name, _, value = mark.partition("=")
        marks = {"SLURM_JOB_ID": job, name: value}.items()
        return [
            process.pid
            for process in psutil.process_iter(["environ"])
            if marks <= (process.info["environ"] or {}).items()
        ]

    def kill(self, job, mark=STEP):
        """End what a job's step has started with SIGKILL, as a system short of memory does."""
        for pid in self.processes(job, mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def lose(self, node):
        """Take down a node with what works on it, as a power cut does."""
        jobs = [job for job, (where, _) in self.jobs().items() if where == node]
        self._call("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")
        for job in jobs:  # SLURM ends nothing there, and a second job makes the same files
            self.kill(job, f"SLURM_CONF={self.environment['SLURM_CONF']}")

    def _write(self):
        for name in ("state", "bin", "python", *(f"spool/{node}" for node in self.nodes)):
            (self.folder / name).mkdir(parents=True)
        # munged refuses a key in a folder that others may write, and its clients must get in.
        self.folder.chmod(0o755)
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o600)
        host = socket.gethostname().partition(".")[0]
        lines = [CONFIG.format(host=host, port=free_port(), user=user(), folder=self.folder)]
        lines += [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} "
            "CPUs=1 RealMemory=4000 State=UNKNOWN\n"
            for node in self.nodes
        ]
        lines.append(
            f"PartitionName=main Nodes={','.join(self.nodes)} Default=YES "
            "MaxTime=INFINITE DefaultTime=60 State=UP\n"
        )
        (self.folder / "slurm.conf").write_text("".join(lines))
        (self.folder / "python" / "sitecustomize.py").write_text(HOLD)
        # The plugin starts the inner step without SLURM_CONF, which names this cluster; a cluster
        # with slurm.conf at its usual path does not need it.
        srun = self.folder / "bin" / "srun"
        srun.write_text(
            f"#!/bin/sh\nSLURM_CONF={self.folder / 'slurm.conf'} "
            f'exec {shutil.which("srun", path=PATH)} "$@"\n'
        )
        srun.chmod(0o755)

    def _call(self, program, *arguments):
        done = subprocess.run(
            [program, *map(str, arguments)],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stdout}{done.stderr}")
        return done.stdout

    def _wait_for_nodes(self):
        deadline_s = time.monotonic() + 30
        while time.monotonic() < deadline_s:
            if self._call("sinfo", "--noheader", "--states=idle", "--format=%D").split() == [
                str(len(self.nodes))
            ]:
                return
            time.sleep(0.2)
        raise RuntimeError(f"the nodes did not come up: {self._call('sinfo', '--long')}")
