"""Stale and foreign outputs: not what was written, not what the plan has, or not made by a run.

Every output of the plan is compared with its record. An output that a run finished and that nobody
changed since is recognized by sizes, inodes and times, and is not read. A run deletes only its own
files.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.results.atomic import LEFTOVER, target_of
from rooflines.results.records import (
    RECORDS_FOLDER,
    SNAKEMAKE_TIMESTAMP,
    files_in,
    record_file,
    record_of,
    recorded_outputs,
)

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rooflines.run.outputs import Output

OTHER_CONFIG = "made from another config or by another version"

MAX_NAMED_FILES = 5
"""At most this many damaged outputs get a line of their own, and foreign files a name [1]."""

READERS = 4
"""Outputs that are read at once [1]."""


class FileCache:
    """Fingerprints for finished outputs, kept in a journal; a name's last line counts.

    Args:
        path: The journal.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        parted = (line.partition(" ") for line in text.splitlines())
        self._fingerprints = {name: mark for mark, _, name in parted}

    def has(self, name: str, mark: str | None) -> bool:
        """Test for a fingerprint that was added under this name."""
        return mark is not None and self._fingerprints.get(name) == mark

    def add(self, marks: Mapping[str, str | None]) -> None:
        """Add fingerprints; None is passed over, and so is a folder that cannot be written."""
        new = {name: mark for name, mark in marks.items() if mark and not self.has(name, mark)}
        self._fingerprints.update(new)
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write("".join(f"{mark} {name}\n" for name, mark in new.items()))


def fingerprint(results: Path, path: Path) -> str | None:
    """Digest over sizes, inodes and times for an output and its record; None if one is missing."""
    try:
        files = [("", record_file(results, path)), *files_in(path).items()]
        stats = [(name, _stat(file)) for name, file in files]
    except OSError:
        return None
    return hashlib.sha256(repr(stats).encode()).hexdigest()[:16]


def _stat(path: Path) -> tuple[int, ...]:
    """Fingerprint of a file's state: the ctime shows a change even if the mtime was set back."""
    stat = path.lstat()
    return stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns


@dataclass(frozen=True)
class StaleOutput:
    """An output to remake, and the reason.

    Attributes:
        path: The output.
        reason: A predicate, such as "is empty".
        other_config: Whether it is intact, and made from another config or by another version.
    """

    path: Path
    reason: str
    other_config: bool = False


def stale_outputs(
    results: Path, planned: Mapping[str, Output], cache: FileCache
) -> list[StaleOutput]:
    """The outputs that exist and differ from the plan.

    Args:
        results: The folder of results.
        planned: The outputs of the plan by their path below `results`.
        cache: The outputs that need not be read; those that are intact are added.

    Raises:
        RooflinesError: A run would delete or overwrite files that are not ours.
    """
    existing = {
        results / name: output
        for name, output in planned.items()
        if os.path.lexists(results / name)
    }
    unread = {
        path: mark
        for path in existing
        if not cache.has(str(path), mark := fingerprint(results, path))
    }
    if strangers := foreign(results, unread):
        raise not_ours(results, strangers)
    with ThreadPoolExecutor(READERS) as pool:
        stale = list(pool.map(lambda path: _stale(results, path, existing[path].spec), unread))
    checked = zip(unread.items(), stale, strict=True)
    cache.add({str(path): mark for (path, mark), problem in checked if problem is None})
    return [problem for problem in stale if problem is not None]


def _stale(results: Path, path: Path, spec: str) -> StaleOutput | None:
    """Compare an output with its record and its spec; None if it can stay."""
    record = record_of(results, path)
    if record is None:
        return StaleOutput(path, "has no record of what made it")
    if damage := record.damage(path):
        return StaleOutput(path, damage)
    if record.spec != json.loads(spec):
        return StaleOutput(path, f"was {OTHER_CONFIG}", other_config=True)
    return None


def messages(stale: Iterable[StaleOutput], action: str) -> list[str]:
    """Lines that name stale outputs: one per damaged output up to a limit, one for another config.

    Args:
        stale: The outputs.
        action: What happens to each, such as "it is made again".
    """
    stale = list(stale)
    damaged = [output for output in stale if not output.other_config]
    elsewhere = [output for output in stale if output.other_config]
    lines = [f"{output.path} {output.reason}: {action}" for output in damaged[:MAX_NAMED_FILES]]
    if len(damaged) > MAX_NAMED_FILES:
        lines.append(f"... and {len(damaged) - MAX_NAMED_FILES:,} more like these")
    if len(elsewhere) == 1:
        lines.append(f"{elsewhere[0].path} {elsewhere[0].reason}: {action}")
    elif elsewhere:
        more = f"{elsewhere[0].path} and {len(elsewhere) - 1:,} more"
        lines.append(f"{more} were {OTHER_CONFIG}: {action}")
    return lines


def foreign(results: Path, outputs: Iterable[Path]) -> list[Path]:
    """Files at output paths, or in output folders, that something else made.

    A file is ours if it has a record, even if its content has changed. A folder is ours if it has a
    readable record, with the files named there and no others. Links, and folders in place of files,
    are never ours.

    Args:
        results: The results folder.
        outputs: Output paths; those that do not exist are passed over.
    """
    return [
        path for output in outputs if os.path.lexists(output) for path in _foreign(results, output)
    ]


def _foreign(results: Path, output: Path) -> Iterator[Path]:
    record, is_folder = record_of(results, output), output.is_dir()
    if output.is_symlink() or not (is_folder or output.is_file()):
        yield output
    elif record and is_folder != ("." in record.files):
        yield from (file for name, file in files_in(output).items() if name not in record.files)
    elif record or is_folder or not record_file(results, output).is_file():
        yield output


def not_ours(results: Path, files: Sequence[Path]) -> RooflinesError:
    """The error for the files that `foreign` returns: which they are, and what to do about them."""
    named = [str(file.relative_to(results)) for file in files[1:MAX_NAMED_FILES]]
    if len(files) > MAX_NAMED_FILES:
        named.append(f"{len(files) - MAX_NAMED_FILES:,} more")
    were = f"and {', '.join(named)} were" if named else "was"
    problem = f"{were} not made by this program, and a run would delete or overwrite what is there"
    fix = (
        f"move it out of {results}, or put results elsewhere "
        "(`pathvars: {results: FOLDER}` in the config); "
        f"delete it if it is a result whose record in {results / RECORDS_FOLDER} was lost"
    )
    return RooflinesError("", problem, fix, file=str(files[0]))


def remove_others(results: Path, planned: Container[str]) -> None:
    """Remove recorded outputs from earlier runs that the plan lacks; files without a record stay.

    Snakemake ignores parts of a sweep that shrinks or is renamed, but a reader of the folder would
    take their rows for results.

    Args:
        results: The results folder.
        planned: All output paths below it.
    """
    for path in recorded_outputs(results):
        record = record_of(results, path)
        if record is None or path.relative_to(results).as_posix() in planned:
            continue
        print(f"removed {path}, which the config asks for no more", file=sys.stderr)
        names = (*record.files, SNAKEMAKE_TIMESTAMP) if path.is_dir() else (".",)
        for name in names:
            (path / name).unlink(missing_ok=True)
        for folder in (path, path.parent):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        record_file(results, path).unlink()


def temporary_outputs(results: Path, names: Iterable[str]) -> list[Path]:
    """Temporary files and folders left by killed jobs, for outputs and records only.

    Args:
        results: The folder of results.
        names: The paths of outputs below `results`.
    """
    outputs = {results / name for name in names}
    temporary = [
        path
        for folder in {output.parent for output in outputs}
        for path in folder.glob(LEFTOVER)
        if target_of(path) in outputs
    ]
    return [*temporary, *(results / RECORDS_FOLDER).rglob(LEFTOVER)]
