"""A SLURM cluster of virtual nodes on this machine: real munged, slurmctld and slurmd.

It runs on loopback as any user, and does not disturb another cluster on the machine.
"""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

PROGRAMS = (
    "munged",
    "slurmctld",
    "slurmd",
    "sbatch",
    "srun",
    "squeue",
    "scontrol",
    "scancel",
    "sinfo",
)
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin:/sbin"
"""The environment comes first, for nodes run plain `python`; daemons are in sbin."""
QUICKLY = ("--slurm-init-seconds-before-status-checks", "8")
"""Options for Snakemake: the jobs of this cluster take seconds."""

MUNGE_FILES = {
    "key-file": "key",
    "socket": "socket",
    "pid-file": "pid",
    "log-file": "log",
    "seed-file": "seed",
}

CONFIG = """\
ClusterName=rooflines
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=bf_interval=2,sched_min_interval=0,sched_interval=2
KillWait=2
SlurmdTimeout=10
PropagateResourceLimits=NONE
"""


def missing_programs() -> list[str]:
    """The programs of SLURM and munge that are missing on this machine."""
    return [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]


def user() -> str:
    """Name of the user that owns this process; the environment may name another one."""
    return pwd.getpwuid(os.getuid()).pw_name


def free_port() -> int:
    """A free port of 127.0.0.1."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def is_running(pid: int) -> bool:
    """Whether the process exists."""
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


STEP = "SLURM_STEP_ID=0"
"""An environment variable of the processes of a job's first step."""


class Cluster:
    """A SLURM cluster with all its files in one folder.

    Args:
        folder: For state, logs and sockets; socket paths have to be short.
        nodes: Virtual nodes; each claims one CPU and 4 GB, so that it runs one job at a time.
    """

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder = folder
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self._lost: list[str] = []
        self.environment = {
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": f"{folder / 'bin'}:{PATH}",
        }

    def start(self) -> None:
        """Start the daemons, and wait until every node is idle."""
        self._write()
        self._call(
            "munged",
            "--force",
            *(
                f"--{option}={self.folder / f'munge.{name}'}"
                for option, name in MUNGE_FILES.items()
            ),
        )
        self._call("slurmctld", "-c")
        for node in self.nodes:
            self.start_node(node)
        self._wait_for_nodes()

    def stop(self) -> None:
        """Stop all daemons, nodes first, and the jobs on them."""
        with suppress(subprocess.SubprocessError):
            self._call("scancel", "--user", user())
        for job in self._lost:  # jobs of a lost node keep running
            self.kill(job, f"SLURM_CONF={self.environment['SLURM_CONF']}")
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
            while any(map(is_running, pids)) and time.monotonic() < deadline_s:
                time.sleep(0.1)

    def start_node(self, node: str) -> None:
        """Start the daemon of a node."""
        self._call("slurmd", "-N", node, "-c")

    def jobs(self) -> dict[str, tuple[str, str]]:
        """The running jobs: node and output, by job number."""
        lines = self._call(
            "squeue", "--noheader", "--states=RUNNING", "--format=%i|%N|%k"
        ).splitlines()
        return {
            number: (node, comment)
            for number, node, comment in (line.split("|", 2) for line in lines)
        }

    def cancel(self, job: str) -> None:
        """Cancel a job as an operator does."""
        self._call("scancel", job)

    @staticmethod
    def processes(job: str, mark: str = STEP) -> list[int]:
        """Processes of a job with `mark` in their environment: by default those of its step."""
        marks, found = {f"SLURM_JOB_ID={job}".encode(), mark.encode()}, []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if marks <= set((process / "environ").read_bytes().split(b"\0")):
                    found.append(int(process.name))
        return found

    def kill(self, job: str, mark: str = STEP) -> None:
        """Kill the processes of a job's step with SIGKILL, as the OOM killer does."""
        for pid in self.processes(job, mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def lose(self, node: str) -> None:
        """Set a node and its job down, as after a power cut; the daemon registers it again."""
        self._lost += [job for job, (where, _) in self.jobs().items() if where == node]
        self._call("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")

    def _write(self) -> None:
        for name in ("state", "bin", *(f"spool/{node}" for node in self.nodes)):
            (self.folder / name).mkdir(parents=True)
        # munged refuses a key in a folder that others can write to; its clients need to enter it.
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
            f"PartitionName=main Nodes={','.join(self.nodes)} Default=YES MaxTime=INFINITE "
            "DefaultTime=60 State=UP\n"
        )
        (self.folder / "slurm.conf").write_text("".join(lines))
        # The plugin starts the inner step without SLURM_CONF, so it would not find this cluster. On
        # a real cluster slurm.conf is in its default location.
        srun = self.folder / "bin" / "srun"
        srun.write_text(
            f"#!/bin/sh\nSLURM_CONF={self.folder / 'slurm.conf'} "
            f'exec {shutil.which("srun", path=PATH)} "$@"\n'
        )
        srun.chmod(0o755)

    def _call(self, program: str, *arguments: str | Path) -> str:
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

    def _wait_for_nodes(self) -> None:
        deadline_s = time.monotonic() + 30
        while time.monotonic() < deadline_s:
            if self._call("sinfo", "--noheader", "--states=idle", "--format=%D").split() == [
                str(len(self.nodes))
            ]:
                return
            time.sleep(0.2)
        raise RuntimeError(f"the nodes did not come up: {self._call('sinfo', '--long')}")
