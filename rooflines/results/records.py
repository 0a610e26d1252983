"""Provenance records of outputs: size, SHA-256, and what made them.

A results folder with a folder `.made` is recorded: each output of a job has a file there, under
its own path. A record is written before its output is renamed to its target, so no finished output
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

FOLDER = ".made"
"""The folder of the records, at the top of the results."""

MADE_WITH = ("polars", "altair", "vl-convert-python")
"""Packages whose versions are recorded."""

SNAKEMAKE_TIMESTAMP = ".snakemake_timestamp"
"""A file that Snakemake writes into folders."""

UNRECORDED = frozenset({SNAKEMAKE_TIMESTAMP, ".DS_Store", "Thumbs.db", "desktop.ini"})
"""Files that Snakemake, Finder and Explorer add to folders: not part of any output."""

OTHER_CONTENT = "has other content than was written"

UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError)
"""Errors of reading a record that is missing, truncated or of another version."""


_spec: ContextVar[object] = ContextVar("spec", default=None)
"""What the files that are being written depend on; None if they are not recorded."""


@dataclass(frozen=True)
class Record:
    """The record of an output of a job: a file, or a folder that is written as a whole.

    Attributes:
        made_with: Versions of this package and of those it computes and draws with, by name.
        spec: What the job depends on, as the plan states it.
        files: Size [byte] and SHA-256 of its files, by their path in it; "." for an output that is
            a file.
    """

    made_with: Mapping[str, str]
    spec: Any
    files: Mapping[str, tuple[int, str]]

    def damage(self, path: Path) -> str | None:
        """How an output differs from what was written.

        Args:
            path: The output; every byte of it is read.

        Returns:
            The first difference, in words that follow the name of the output; None without one.
        """
        try:
            return self._damage(path)
        except OSError as error:
            return f"cannot be read ({error.strerror})"

    def _damage(self, path: Path) -> str | None:
        present = files_in(path)
        if added := sorted(present.keys() - self.files.keys() - {"."}):
            return f"has {added[0]} in it, which nothing here made"
        if lost := sorted(self.files.keys() - present.keys() - {"."}):
            return f"lacks {lost[0]}"
        if "." in present.keys() - self.files.keys():
            return OTHER_CONTENT
        for name, (size, digest) in self.files.items():
            file = present.get(name)
            if file is None or file.stat().st_size != size or digest_of(file) != digest:
                return f"{'' if name == '.' else f'has {name}, which '}{OTHER_CONTENT}"
        return None


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_in(path: Path) -> dict[str, Path]:
    """The files of an output, by their names in its record."""
    if not path.is_dir() or path.is_symlink():
        return {".": path}
    listed = (
        Path(folder, name)
        for folder, folders, names in os.walk(path)
        for name in (*folders, *names)
        if name not in UNRECORDED
    )
    files = (file for file in listed if file.is_symlink() or not file.is_dir())
    return {file.relative_to(path).as_posix(): file for file in sorted(files)}


def results_root(path: Path) -> Path | None:
    """The results folder of an output: the nearest one above it with records, if any."""
    return next((folder for folder in path.absolute().parents if (folder / FOLDER).is_dir()), None)


def record_file(home: Path, path: Path) -> Path:
    """The path of an output's record.

    Args:
        home: The results folder.
        path: The output.
    """
    return home / FOLDER / f"{path.absolute().relative_to(home.absolute()).as_posix()}.json"


def record_of(home: Path, path: Path) -> Record | None:
    """The record of an output; None if it is missing or cannot be read.

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
    """The outputs of a results folder that have records, in order."""
    folder = home / FOLDER
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
    """Record what the files depend on that are written in this context; None: record nothing."""
    token = _spec.set(spec)
    try:
        yield
    finally:
        _spec.reset(token)


def recorded(job: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
    """A job whose outputs are recorded with its first argument, a spec as JSON."""

    @functools.wraps(job)
    def run(spec: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with recording(json.loads(spec)):
            return job(spec, *args, **kwargs)

    return run


@functools.cache
def made_with() -> dict[str, str]:
    """Versions of this package, of Python, and of the packages that compute and draw."""
    return {
        "rooflines": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in MADE_WITH},
    }


def write_record(written: Path, target: Path) -> None:
    """Write the record of an output, if its job and its folder are recorded.

    Args:
        written: The output under its temporary name.
        target: The output's name from now on.
    """
    spec, home = _spec.get(), results_root(target)
    if spec is None or home is None:
        return
    data = {
        "file": target.absolute().relative_to(home).as_posix(),
        "made_with": made_with(),
        "spec": spec,
        "files": {
            name: (file.stat().st_size, digest_of(file)) for name, file in files_in(written).items()
        },
    }
    file = record_file(home, target)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid():08}.tmp")
    temporary.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    temporary.replace(file)
