"""Provenance records: size and SHA-256 of outputs, with the job and versions that made them.

A results folder with a folder `.made` is recorded: each job output has a file there, under the
same path. A record is written before its output is renamed to its target, so no finished output
lacks one. An output that differs from its record was changed by something else. This module imports
neither polars nor Snakemake: every run reads records first.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from rooflines.basics.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

P = ParamSpec("P")
T = TypeVar("T")

RECORDS_FOLDER = ".made"
"""Folder with the records, at the top of the results."""

MADE_WITH = ("polars", "altair", "vl-convert-python")
"""Packages whose versions are recorded."""

SNAKEMAKE_TIMESTAMP = ".snakemake_timestamp"
"""File that Snakemake writes into folders."""

UNRECORDED = frozenset({SNAKEMAKE_TIMESTAMP, ".DS_Store", "Thumbs.db", "desktop.ini"})
"""Files that Snakemake, Finder and Explorer add to folders: no part of outputs."""

OTHER_CONTENT = "has other content than was written"

UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError)
"""Errors on reading a record that is missing, truncated or from another version."""


_spec: ContextVar[object] = ContextVar("spec", default=None)
"""Dependencies of the files being written; None: not recorded."""


@dataclass(frozen=True)
class Record:
    """Record of a job's output: a file, or a folder written as a whole.

    Attributes:
        made_with: Versions of this package and of those that compute and draw, by name.
        spec: The job's dependencies, as the plan states them.
        files: Size [byte] and SHA-256 by path inside the output; "." for an output that is a file.
    """

    made_with: Mapping[str, str]
    spec: Any
    files: Mapping[str, tuple[int, str]]

    def damage(self, path: Path) -> str | None:
        """Difference of an output from the content written.

        Args:
            path: The output; every byte is read.

        Returns:
            The first difference, in words that follow the output's name; None without one.
        """
        try:
            return self._damage(path)
        except OSError as error:
            return f"cannot be read ({error.strerror})"

    def _damage(self, path: Path) -> str | None:
        present = files_in(path)
        if extra := sorted(present.keys() - self.files.keys() - {"."}):
            return f"has {extra[0]} in it, which nothing here made"
        if missing := sorted(self.files.keys() - present.keys() - {"."}):
            return f"lacks {missing[0]}"
        if "." in present.keys() - self.files.keys():
            return OTHER_CONTENT
        for name, (size, digest) in self.files.items():
            file = present.get(name)
            if file is None or file.stat().st_size != size or digest_of(file) != digest:
                return f"{'' if name == '.' else f'has {name}, which '}{OTHER_CONTENT}"
        return None


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_in(path: Path) -> dict[str, Path]:
    """Files in an output, by name in its record."""
    if not path.is_dir() or path.is_symlink():
        return {".": path}
    paths = (
        Path(folder, name)
        for folder, folders, names in os.walk(path)
        for name in (*folders, *names)
        if name not in UNRECORDED
    )
    files = (file for file in paths if file.is_symlink() or not file.is_dir())
    return {file.relative_to(path).as_posix(): file for file in sorted(files)}


def results_root(path: Path) -> Path | None:
    """Results folder of an output: the nearest parent with records; None without one."""
    return next(
        (folder for folder in path.absolute().parents if (folder / RECORDS_FOLDER).is_dir()), None
    )


def record_file(home: Path, path: Path) -> Path:
    """Path of an output's record.

    Args:
        home: The results folder.
        path: The output.
    """
    return home / RECORDS_FOLDER / f"{path.absolute().relative_to(home.absolute()).as_posix()}.json"


def record_of(home: Path, path: Path) -> Record | None:
    """Read the record of an output; None if missing or unreadable.

    Args:
        home: The results folder.
        path: The output.
    """
    try:
        file = record_file(home, path)
        data = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        files = {name: (int(size), str(digest)) for name, (size, digest) in data["files"].items()}
        return Record(dict(data["made_with"]), data["spec"], files)
    except UNREADABLE:
        return None


def recorded_outputs(home: Path) -> list[Path]:
    """Outputs with records in a results folder, in order."""
    folder = home / RECORDS_FOLDER
    return sorted(
        home / path.relative_to(folder).as_posix().removesuffix(".json")
        for path in folder.rglob("*.json")
    )


def forget(path: Path) -> None:
    """Remove the record of an output that was removed."""
    home = results_root(path)
    if home is not None:
        record_file(home, path).unlink(missing_ok=True)


@contextmanager
def recording(spec: object) -> Iterator[None]:
    """Record these dependencies for files written in this context; None: record nothing."""
    token = _spec.set(spec)
    try:
        yield
    finally:
        _spec.reset(token)


def recorded(job: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
    """Decorate a job: its outputs are recorded with its first argument, a spec as JSON."""

    @functools.wraps(job)
    def run(spec: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with recording(json.loads(spec)):
            return job(spec, *args, **kwargs)

    return run


@functools.cache
def made_with() -> dict[str, str]:
    """Versions of this package, Python, and the packages that compute and draw."""
    return {
        "rooflines": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in MADE_WITH},
    }


def write_record(temporary_output: Path, target: Path) -> None:
    """Write the record of an output, if its job and its folder are recorded.

    Args:
        temporary_output: The output at its temporary path.
        target: The output's final path.
    """
    spec, home = _spec.get(), results_root(target)
    if spec is None or home is None:
        return
    data = {
        "file": target.absolute().relative_to(home).as_posix(),
        "made_with": made_with(),
        "spec": spec,
        "files": {
            name: (file.stat().st_size, digest_of(file))
            for name, file in files_in(temporary_output).items()
        },
    }
    file = record_file(home, target)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid():08}.tmp")
    temporary.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    temporary.replace(file)
