"""What every finished file was when it was written: its size, its digest, and what made it.

A folder of results that holds a folder `.made` is one whose files are recorded: each output of a job has a file there, named after it. The
record is written before its file takes its name, so that no finished file is ever without one; a file that is not as its record says was
changed by something else. Nothing here needs polars or Snakemake: a run that has nothing to do waits for this.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import shutil
import tempfile
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from rooflines.basics.errors import RooflinesError, unwritable
from rooflines.basics.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = [
    "FOLDER",
    "LEFTOVER",
    "OWN",
    "RUN",
    "Record",
    "appearing",
    "appearing_folder",
    "forget",
    "home_of",
    "record_file",
    "record_of",
    "recorded",
    "recorded_outputs",
    "recording",
    "refusal",
    "target_of",
]

P = ParamSpec("P")
T = TypeVar("T")

FOLDER = ".made"
"""The folder, at the top of the results, that has the records."""

LEFTOVER = ".*.????????.tmp"
"""What a half-written file or folder is called, as a pattern of names."""

RUN = "ROOFLINES_RUN"
"""The environment variable in which a run tells its jobs where its number stands, and which it is: `<path>:<number>`."""

MADE_WITH = ("polars", "altair", "vl-convert-python")
"""Packages whose version a record has beside this one's."""

PROBE = 1 << 16
"""What is written to a folder to see whether there is room [byte]."""

OWN = ".snakemake_timestamp"
"""A file that Snakemake puts into folders; none of ours."""

UNRECORDED = frozenset({OWN, ".DS_Store", "Thumbs.db", "desktop.ini"})
"""Files that Snakemake, Finder and Explorer put into folders by themselves: not part of any output."""

_maker: ContextVar[Mapping[str, Any] | None] = ContextVar("maker", default=None)
"""What makes the files that are being written, as plain data; None where files are not recorded."""


@dataclass(frozen=True)
class Record:
    """What is known of one output of a job: a file, or a folder that is made as a whole.

    Attributes:
        made_with: Versions of what made it: of this package, and of what it computes and draws with.
        spec: What the job depended on, as plain data: what the plan says of it.
        recipes: The sweeps that its numbers come from, with config, catalogue entries and their sources, where `spec` does not have them.
        inputs: Outputs that it was made from and that decide what is in it, as digests of their files, by their path in the results.
        files: Size [byte] and SHA-256 of every file in it, by its path in the folder; a file has one, called ".".
    """

    made_with: Mapping[str, str]
    spec: Any
    recipes: Sequence[Any]
    inputs: Mapping[str, str]
    files: Mapping[str, tuple[int, str]]

    def digest(self) -> str:
        """One digest for all its files."""
        return hashlib.sha256(repr(sorted(self.files.items())).encode()).hexdigest()

    def other_inputs(self, home: Path) -> list[str]:
        """The outputs that it was made from and that are not what they were then.

        Args:
            home: The folder of results.
        """
        now = {name: record_of(home, home / name) for name in self.inputs}
        return [
            name
            for name, record in now.items()
            if record is None or record.digest() != self.inputs[name]
        ]

    def damage(self, path: Path) -> str | None:
        """How an output differs from what was written, in words that follow its name; None where it does not.

        Args:
            path: The output; every byte of it is read.
        """
        try:
            return self._damage(path)
        except OSError as error:
            return f"cannot be read ({error.strerror})"

    def _damage(self, path: Path) -> str | None:
        kept = path.is_dir() and not path.is_symlink()
        if kept != ("." not in self.files):
            return "is a folder and was a file" if kept else "is a file and was a folder"
        found = files_in(path)
        if lost := sorted(self.files.keys() - found.keys()):
            return f"lacks {lost[0]}" + (f" and {len(lost) - 1} more" if len(lost) > 1 else "")
        if added := sorted(found.keys() - self.files.keys()):
            return f"has {added[0]} in it, which nothing here made"
        for name, (size, digest) in self.files.items():
            of = "" if name == "." else f"has {name}, which "
            real = found[name].stat().st_size
            if real != size:
                return (
                    f"{of}is empty"
                    if not real
                    else f"{of}has {real:,} bytes, and {size:,} were written"
                )
            if digest_of(found[name]) != digest:
                return f"{of}has other content than was written"
        return None


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_in(path: Path) -> dict[str, Path]:
    """The files of an output, by the names that its record gives them."""
    if not path.is_dir() or path.is_symlink():
        return {".": path}
    listed = (
        Path(folder, name)
        for folder, folders, names in os.walk(path)
        for name in (*folders, *names)
        if name not in UNRECORDED
    )
    found = (file for file in listed if file.is_symlink() or not file.is_dir())
    return {file.relative_to(path).as_posix(): file for file in sorted(found)}


def home_of(path: Path) -> Path | None:
    """The folder of results that an output belongs to: the nearest one above it that has records; None where there is none."""
    return next((folder for folder in path.absolute().parents if (folder / FOLDER).is_dir()), None)


def record_file(home: Path, path: Path) -> Path:
    """Where the record of an output stands.

    Args:
        home: The folder of results.
        path: The output.
    """
    return home / FOLDER / f"{path.absolute().relative_to(home.absolute()).as_posix()}.json"


def record_of(home: Path, path: Path) -> Record | None:
    """The record of an output; None where there is none that can be read.

    Args:
        home: The folder of results.
        path: The output.
    """
    try:
        file = record_file(home, path)
        kept = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        files = {name: (int(size), str(digest)) for name, (size, digest) in kept["files"].items()}
        return Record(
            dict(kept["made_with"]),
            kept["spec"],
            list(kept["recipes"]),
            dict(kept["inputs"]),
            files,
        )
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ):
        return None


def recorded_outputs(home: Path) -> list[Path]:
    """The outputs that a folder of results has records of, in order."""
    kept = home / FOLDER
    return sorted(
        home / path.relative_to(kept).as_posix().removesuffix(".json")
        for path in kept.rglob("*.json")
    )


def target_of(half: Path) -> Path:
    """The output that a half-written file or folder was to become: `.thresholds.csv.a1b2c3d4.tmp` is for `thresholds.csv`."""
    return half.with_name(half.name.removeprefix(".").rsplit(".", 2)[0])


def forget(path: Path) -> None:
    """Remove the record of an output that is there no more."""
    home = home_of(path)
    if home is not None:
        record_file(home, path).unlink(missing_ok=True)


@contextmanager
def recording(**maker: Any) -> Iterator[None]:  # noqa: ANN401 - plain data of any kind
    """Give the files that appear inside a record that says what made them, where they appear in a folder of results.

    Args:
        maker: `spec`, what the job depends on; `recipes`, the sweeps that its numbers come from; `inputs`, the outputs that it is made from
            and that `spec` says nothing of. What is not given stays as it was.
    """
    token = _maker.set({**(_maker.get() or {}), **maker})
    try:
        yield
    finally:
        _maker.reset(token)


def recorded(job: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
    """A job whose files are recorded as made from its first argument: what it depends on, as JSON."""

    @functools.wraps(job)
    def run(spec: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with recording(spec=json.loads(spec)):
            return job(spec, *args, **kwargs)

    return run


@contextmanager
def appearing(path: str | Path) -> Iterator[Path]:
    """A path to write to, in the same folder, that takes the name `path` once all is written; until then nobody sees the file."""
    target = Path(path)
    with _explained(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        os.close(handle)
        aside = Path(name)
        try:
            with _explained(target):
                yield aside
                aside.chmod(0o666 & ~_umask())
                with aside.open("rb+") as written:
                    os.fsync(written.fileno())
                _record(aside, target)
                aside.replace(target)
        finally:
            aside.unlink(missing_ok=True)


@contextmanager
def appearing_folder(path: str | Path) -> Iterator[Path]:
    """A folder to write to that takes the name `path` once all is written, in place of what stands there; it has one record for all."""
    target = Path(path)
    with _explained(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        aside, old = (
            Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent))
            for _ in range(2)
        )
        try:
            token = _maker.set(None)
            try:
                yield aside
            finally:
                _maker.reset(token)
            aside.chmod(0o777 & ~_umask())
            _record(aside, target)
            if target.exists():
                target.replace(old / target.name)
            aside.replace(target)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _explained(target: Path) -> Iterator[None]:
    """Say what to do where a file cannot be written.

    Raises:
        RooflinesError: It cannot, or the disk is full.
    """
    try:
        yield
    except Exception as error:
        told = unwritable(target, error) or unwritable(target, refusal(target.parent) or error)
        if told is None:
            raise
        raise told from error


def refusal(folder: Path) -> OSError | None:
    """Why a folder cannot be written to; None where it can. A library may only say that something went wrong."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".", suffix=".tmp") as file:
            file.write(bytes(PROBE))
            file.flush()
    except OSError as error:
        return error
    return None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@functools.cache
def _versions() -> dict[str, str]:
    """Versions of this package, of Python, and of the packages that numbers and pictures come from."""
    return {
        "rooflines": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in MADE_WITH},
    }


def _record(written: Path, target: Path) -> None:
    """Write the record of an output that is about to take its name, unless its run was overtaken or nobody keeps records there.

    Raises:
        RooflinesError: The run that started this job was killed, and another one has taken over: its files are not to be touched.
    """
    path, _, number = os.environ.get(RUN, "").rpartition(":")
    if (
        path
        and Path(path).exists()
        and Path(path).read_text(encoding="utf-8").split()[:1] != [number]
    ):
        raise RooflinesError(
            "", "is being made by a later run", "leave it to that", file=str(target)
        )
    maker, home = _maker.get(), home_of(target)
    if maker is None or home is None:
        return
    inputs = {
        Path(path).absolute().relative_to(home).as_posix(): record_of(home, Path(path))
        for path in maker.get("inputs", [])
    }
    kept = {
        "file": target.absolute().relative_to(home).as_posix(),
        "made_with": _versions(),
        "spec": maker.get("spec"),
        "recipes": maker.get("recipes", []),
        "inputs": {name: record.digest() for name, record in inputs.items() if record},
        "files": {
            name: (file.stat().st_size, digest_of(file)) for name, file in files_in(written).items()
        },
    }
    file = record_file(home, target)
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_name(f".{file.name}.{os.getpid():08}.tmp")
    aside.write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")
    aside.replace(file)
