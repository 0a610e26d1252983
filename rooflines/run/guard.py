"""What a run does before it trusts what it finds, and while it works, so that killed, crossing and damaged runs do no harm.

It hangs on Snakemake's log, as the progress does: when Snakemake is about to look at files, every output of the plan is held against its
record, and those that are not what was written, or were made from another config, are forced. Files that the Snakemake of this folder made
and nobody touched since are known by size, inode and times, and are not read. All that is kept for it stands in `.snakemake/rooflines`.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import os
import shutil
import socket
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.errors import RooflinesError
from rooflines.results.records import (
    FOLDER,
    OWN,
    RUN,
    Record,
    files_in,
    record_file,
    record_of,
)
from rooflines.results.write_errors import no_folder, refusal, unwritable
from rooflines.run.foreign import foreign, halves, in_the_way, not_ours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["KEPT", "AtWork", "Guard", "Known", "Lease", "Suspect", "need_folder", "suspects"]

KEPT = Path(".snakemake") / "rooflines"
"""Where a run keeps what it knows, below the folder that Snakemake works in."""

LOCKS = Path(".snakemake") / "locks"

LAST = "bundle"
"""The one output that others decide: it is not said in its spec what is in it."""

WORTH_TELLING = 1 << 30
"""To read more than this takes so long that one should say so [byte]."""

TOLERANCE_NS = 2_000_000_000
"""Clocks of machines that share a file system may differ by so much [ns]."""

TOLD = 5
"""At most so many files are told of one by one."""

LONG = 4
"""A journal with so many lines for each file is written anew."""

READERS = 4
"""Files that are read at once, where they have to be."""


class Known:
    """The files that a run finished and nobody touched since: a line for each in a journal, the last one counts.

    Args:
        path: The journal.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = (
            path.read_text(encoding="utf-8", errors="replace").splitlines()
            if path.is_file()
            else []
        )
        self._marks = {name: mark for mark, _, name in (line.partition(" ") for line in lines)}
        self._long = len(lines) > LONG * len(self._marks)

    def has(self, name: str, mark: str | None) -> bool:
        """Whether an output is the one that was added under its name."""
        return mark is not None and self._marks.get(name) == mark

    def add(self, marks: Mapping[str, str | None]) -> None:
        """Note how outputs look now; a folder that cannot be written to is no reason to stop."""
        new = {
            name: mark
            for name, mark in marks.items()
            if mark is not None and self._marks.get(name) != mark
        }
        self._marks.update(new)
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("w" if self._long else "a", encoding="utf-8") as file:
                file.write(
                    "".join(
                        f"{mark} {name}\n"
                        for name, mark in (self._marks if self._long else new).items()
                    )
                )
            self._long = False


def mark_of(results: Path, path: Path) -> str | None:
    """How an output and its record look without being read: a digest of their sizes, inodes and times; None where one is missing."""
    try:
        record = record_file(results, path)
        looks = [(name, _look(file)) for name, file in [("", record), *files_in(path).items()]]
    except OSError:
        return None
    return hashlib.sha256(repr(looks).encode()).hexdigest()[:16]


def _look(path: Path) -> tuple[int, ...]:
    """What a change of a file cannot leave as it is: a clock set back, or a time put back, still shows in one of them."""
    found = path.lstat()
    return found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


class Suspect:
    """An output that cannot stay: what it is called, and why, in words that follow its name."""

    def __init__(self, path: Path, why: str, *, other: bool = False) -> None:
        self.path, self.why, self.other = path, why, other


def suspects(
    results: Path, expected: Mapping[str, str], known: Known, say: Callable[[str], None]
) -> list[Suspect]:
    """The outputs of a plan that are there and are not what it asks for.

    Args:
        results: The folder of results.
        expected: What each output is made from, as JSON, by its path below `results`.
        known: The files that need not be read; those that turn out to be in order are added.
        say: Where a line goes that says how much has to be read.

    Raises:
        RooflinesError: A run would delete or overwrite files of others.
    """
    found = {
        results / name: spec for name, spec in expected.items() if os.path.lexists(results / name)
    }
    unknown = {
        path: mark for path in found if not known.has(str(path), mark := mark_of(results, path))
    }
    if others := foreign(results, unknown):
        raise not_ours(results, others)
    size = sum(file.lstat().st_size for path in unknown for file in files_in(path).values())
    if size > WORTH_TELLING:
        say(
            f"reading {size / 1e9:,.1f} GB in {len(unknown):,} files that are new or touched, to see that they are as they were written"
        )
    with ThreadPoolExecutor(READERS) as pool:
        whys = list(pool.map(lambda path: _why(results, path, found[path]), unknown))
    known.add(
        {
            str(path): mark
            for (path, mark), why in zip(unknown.items(), whys, strict=True)
            if why is None
        }
    )
    last = results / LAST
    if last in found and last not in unknown and (record := record_of(results, last)):
        whys.append(_outdated(results, last, record))
    return [why for why in whys if why is not None]


def _outdated(results: Path, path: Path, record: Record) -> Suspect | None:
    """Why an output cannot stay that was made from others; None where they are as they were then, whatever their times say."""
    others = record.changed_inputs(results)
    more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
    return (
        Suspect(path, f"was made from another {others[0]}{more} than there is now")
        if others
        else None
    )


def _why(results: Path, path: Path, spec: str) -> Suspect | None:
    """Why an output cannot stay; None where it is what the plan asks for."""
    record = record_of(results, path)
    if record is None:
        return Suspect(path, "has no record of what made it")
    if damage := record.damage(path):
        return Suspect(path, damage)
    if record.spec != json.loads(spec):
        return Suspect(path, "was made from another config or by another version", other=True)
    return _outdated(results, path, record)


def told(found: Iterable[Suspect], will: str) -> list[str]:
    """Lines that say which files cannot stay: one for each of the first, those of another config in one."""
    found = list(found)
    damaged, others = [s for s in found if not s.other], [s for s in found if s.other]
    lines = [f"{suspect.path} {suspect.why}: {will}" for suspect in damaged[:TOLD]]
    if len(damaged) > TOLD:
        lines.append(f"... and {len(damaged) - TOLD:,} more like these")
    if len(others) == 1:
        lines.append(f"{others[0].path} {others[0].why}: {will}")
    elif others:
        lines.append(
            f"{others[0].path} and {len(others) - 1:,} more were made from another config or by another version: {will}"
        )
    return lines


class Lease:
    """A sign of life of the runs that make files in a folder; it is gone with them, however they end.

    Args:
        folder: Where it stands.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / "alive").open("a+", encoding="utf-8", errors="replace")
        self.alone = self._locked(fcntl.LOCK_EX)
        self._file.seek(0)
        hosts = set(self._file.read().split())
        self.here = hosts <= {socket.gethostname()}
        if not self.here or not hosts:
            self._file.write(socket.gethostname() + "\n")
            self._file.flush()

    def _locked(self, kind: int) -> bool:
        """Whether the file could be locked; some file systems know no locks."""
        try:
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def end(self) -> None:
        """Give it up before the process ends."""
        self._file.close()

    def share(self) -> None:
        """Let other runs in, which bring a lock of their own."""
        self._locked(fcntl.LOCK_SH)


@cache
def lease_of(folder: Path) -> Lease:
    """This process's sign of life in a folder: one, however many workflows it has imported."""
    return Lease(folder)


NUMBER = uuid.uuid4().hex
"""This process as a run: no other has this number."""


class Guard(logging.Handler):
    """A handler of Snakemake's log that looks after the files of a run.

    Args:
        workflow: Snakemake's own workflow object.
        results: The folder of results.
        expected: What each output is made from, as JSON, by its path below `results`.
    """

    def __init__(self, workflow: Any, results: Path, expected: Mapping[str, str]) -> None:  # noqa: ANN401 - Snakemake ships no types
        super().__init__()
        self._workflow, self._results, self._expected = workflow, results, expected
        need_folder(KEPT)
        self._known: Known | None = None
        self._outputs: dict[int, list[Path]] = {}
        self._explained = False

    @property
    def _works(self) -> bool:
        """Whether this process is to make files: no dry run, and none of the commands that only look."""
        workflow = self._workflow
        return workflow.executor_plugin is not None and not (workflow.dryrun or workflow.touch)

    def emit(self, record: logging.LogRecord) -> None:
        """Follow the run: before files are looked at, before the first job, after each."""
        event = getattr(record, "event", None)
        if self._known is None and self._workflow.dag is not None:
            self._check()
        elif event == "run_info" and self._works and self._expected:
            self._begin()
        elif event == "job_finished" and self._expected:
            self._finished(getattr(record, "job_id", -1))
        elif record.levelno >= logging.ERROR and self._works:
            self._explain()

    def _check(self) -> None:
        """Hold what is there against its records, and have made again what cannot stay; end the run where it cannot start."""
        self._known = Known(KEPT / "known")
        try:
            self._check_results(self._known)
        except RooflinesError as error:
            sys.exit(str(error))

    def _check_results(self, known: Known) -> None:
        if files := in_the_way(self._results, (self._results / name for name in self._expected)):
            raise no_folder(files[0])
        if self._workflow.executor_plugin is None or not self._expected:
            return
        if self._works:
            self._take_over()
        if not _locked():
            found = suspects(self._results, self._expected, known, _say)
            for line in told(
                found, "it is made again" if self._works else "it would be made again"
            ):
                _say(line)
            self._have_made_again(found)
            if self._works:
                self._date(
                    {self._results / name for name in self._expected}
                    - {suspect.path for suspect in found}
                )

    def _have_made_again(self, found: Iterable[Suspect]) -> None:
        """Have outputs made again in this run: what is damaged goes, and what is in order but of another config is forced.

        Snakemake does not ask whether a job is forced, or its output missing, that comes after others which run and has `ancient` inputs:
        with charts it does so by way of their digest, which has none.
        """
        forced = self._workflow.dag.forcefiles
        for suspect in found:
            if self._works and not suspect.other:
                shutil.rmtree(
                    suspect.path
                ) if suspect.path.is_dir() and not suspect.path.is_symlink() else suspect.path.unlink()
            forced.add(str(suspect.path))
        again = {suspect.path for suspect in found}
        for path in (self._results / name for name in self._expected):
            if path in again or not os.path.lexists(path):
                forced.add(str(record_file(self._results, path).with_suffix(".sha256")))

    def _date(self, outputs: Iterable[Path]) -> None:
        """Date files of the future now: after a clock was set back, Snakemake would take them for newer than what is made from now on."""
        now_ns = time.time_ns()
        late = {
            path
            for path in outputs
            if os.path.lexists(path) and _time_ns(path) > now_ns + TOLERANCE_NS
        }
        for path in late:
            for file in (path, path / OWN) if path.is_dir() else (path,):
                if file.exists():
                    os.utime(file, ns=(now_ns, now_ns))
        if late and self._known:
            _say(
                f"{len(late):,} files in {self._results} are from the future, so the clock was set back: they are dated now"
            )
            self._known.add({str(path): mark_of(self._results, path) for path in late})

    def _take_over(self) -> None:
        """Remove the lock that a killed run left, and keep what it started from publishing; end this run where another is at work."""
        run = KEPT.absolute() / "run"
        try:
            lease = lease_of(KEPT.absolute())
            run.open("a").close()
        except OSError as error:
            fix = "delete it: it says what runs are at work, and nothing of the results"
            raise RooflinesError(
                "", f"has files that cannot be used ({error})", fix, file=str(KEPT)
            ) from None
        if lease.alone and lease.here and self._all_ours():
            for lock in LOCKS.iterdir():
                lock.unlink(missing_ok=True)
            _say(
                "an earlier run was killed and left its lock behind: it is removed, and this run goes on where that one was"
            )
        if not self._workflow.modifier.is_main_snakefile():
            lease.share()
        elif not lease.alone and (who := _at_work()):
            stop = f"`{who.stop}` on {who.host}, also where it is suspended"
            fix = f"wait for it, or stop it ({stop}), or give this one a folder of its own (--directory)"
            raise RooflinesError(
                "", f"is worked in by another run, since {who.since}", fix, file=str(Path.cwd())
            )
        since = time.strftime("%Y-%m-%dT%H:%M:%S")
        run.write_text(
            f"{NUMBER} {os.getpid()} {os.getpgrp()} {socket.gethostname()} {since}\n",
            encoding="utf-8",
        )
        os.environ[RUN] = f"{run}:{NUMBER}"

    def _all_ours(self) -> bool:
        """Whether there is a lock, and all that it locks is of this folder of results: so it was a run that had a sign of life."""
        lines = [
            line
            for lock in LOCKS.glob("*.output.lock")
            for line in lock.read_text(encoding="utf-8").splitlines()
        ]
        return bool(lines) and all(Path(line).is_relative_to(self._results) for line in lines)

    def _begin(self) -> None:
        """Before the first job: see that no log of others is overwritten and that records can be kept; remove what killed jobs left."""
        ours = {
            str(self._results / name) for name in self._expected
        }  # a workflow that imports this one has outputs of its own
        jobs = list(self._workflow.dag.needrun_jobs())
        self._outputs = {
            job.jobid: [Path(path) for path in job.output if str(path) in ours] for job in jobs
        }
        logs = [
            Path(log)
            for job in jobs
            for log in job.log
            if Path(log).is_relative_to(self._results) and os.path.lexists(log)
        ]
        if logs and not (self._results / FOLDER).exists():
            sys.exit(str(not_ours(self._results, logs)))
        need_folder(self._results / FOLDER)
        if lease_of(KEPT.absolute()).alone:
            for half in halves(self._results, self._expected):
                shutil.rmtree(half, ignore_errors=True) if half.is_dir() else half.unlink(
                    missing_ok=True
                )

    def _explain(self) -> None:
        """Say once what to do where Snakemake met something that it cannot write: it does not say what helps."""
        outputs = [self._results / name for name in self._expected]
        barred = (
            path
            for path in (*(output.parent for output in outputs), *outputs)
            if path.exists() and not os.access(path, os.W_OK)
        )
        refused = ((folder, refusal(folder)) for folder in (KEPT, self._results))
        found = (
            (path, error)
            for path, error in (*((path, _barred_by(path)) for path in barred), *refused)
            if error
        )
        told = next((told for path, error in found if (told := unwritable(path, error))), None)
        if told and not self._explained:
            self._explained = True
            _say(str(told))

    def _finished(self, job: int) -> None:
        """After a job: its files are known, as Snakemake left them."""
        if self._known is not None:
            self._known.add(
                {str(path): mark_of(self._results, path) for path in self._outputs.pop(job, [])}
            )


class AtWork(NamedTuple):
    """A run that makes files: its process and group of processes, the machine it runs on, and when it began, in local time."""

    pid: int
    group: int
    host: str
    since: str

    @property
    def stop(self) -> str:
        """The command that ends it. A suspended process, or one that waits for suspended jobs, ends only after all of them continue."""
        return f"kill -CONT -{self.group}; kill {self.pid}"


def _at_work() -> AtWork | None:
    """The last run that began to make files here; None where nothing is known of it."""
    try:
        _, pid, group, host, since = (KEPT / "run").read_text(encoding="utf-8").split()
        return AtWork(int(pid), int(group), host, since)
    except (OSError, ValueError):
        return None


def _barred_by(path: Path) -> OSError:
    """What the system says when one writes to a file or folder that may not be written."""
    read_only = os.statvfs(path).f_flag & os.ST_RDONLY
    return OSError(errno.EROFS if read_only else errno.EACCES, "")


def _time_ns(path: Path) -> int:
    """When Snakemake thinks that an output was made [ns]."""
    own = path / OWN
    return (own if own.exists() else path).lstat().st_mtime_ns


def _locked() -> bool:
    return LOCKS.is_dir() and any(LOCKS.iterdir())


def need_folder(folder: Path) -> None:
    """See that a folder can be written to, or end the run: Snakemake has a traceback for it.

    Raises:
        SystemExit: It cannot, or there is no room; its message says what to do.
    """
    if error := refusal(folder):
        sys.exit(str(unwritable(folder, error) or error))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
