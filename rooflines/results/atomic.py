"""Atomic writes: a temporary file or folder, renamed to its target on success, with a record."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.results.records import recording, write_record

if TYPE_CHECKING:
    from collections.abc import Iterator

SUFFIX = ".tmp"

DISK_FULL = errno.ENOSPC, errno.EDQUOT, errno.EFBIG
NOT_WRITABLE = errno.EROFS, errno.EACCES, errno.EPERM, errno.EEXIST, errno.ENOTDIR
"""System error numbers; the last two: a file in place of a folder."""

OS_ERROR = re.compile(r"\(os error (\d+)\)")
"""Pattern for a system error number in messages of Rust libraries."""

LEFTOVER = f".*.????????{SUFFIX}"
"""Glob for temporary files and folders."""


def target_of(temporary: Path) -> Path:
    """Target path of a temporary one: `summary.csv` for `.summary.csv.a1b2c3d4.tmp`."""
    return temporary.with_name(temporary.name.removeprefix(".").rsplit(".", 2)[0])


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Write a file atomically: a temporary path, flushed to disk and renamed to `path` on success.

    Raises:
        RooflinesError: The disk is full, or the folder cannot be written.
    """
    target = Path(path)
    with _explain_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=SUFFIX, dir=target.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            with _explain_errors(target):
                yield temporary
                temporary.chmod(0o666 & ~_umask())
                with temporary.open("rb+") as file:
                    os.fsync(file.fileno())
                write_record(temporary, target)
                temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Write a folder atomically: a temporary folder that replaces `path` on success.

    The folder has one record; files written in it have none.

    Raises:
        RooflinesError: The disk is full, or the folder cannot be written.
    """
    target = Path(path)
    with _explain_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary, old = (
            Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=SUFFIX, dir=target.parent))
            for _ in range(2)
        )
        try:
            with recording(None):
                yield temporary
            temporary.chmod(0o777 & ~_umask())
            write_record(temporary, target)
            if target.exists():
                target.replace(old / target.name)
            temporary.replace(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)


def write_bytes(path: str | Path, content: bytes | str) -> None:
    """Write a file atomically."""
    with atomic_file(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def link_or_copy(file: Path, target: Path) -> None:
    """Hard-link a file to a second name; copy it if the file system cannot."""
    try:
        os.link(file, target)
    except OSError:
        shutil.copy2(file, target)


@contextmanager
def _explain_errors(target: Path) -> Iterator[None]:
    """Replace write errors by an error with a fix."""
    try:
        yield
    except Exception as error:
        write_failure = write_error(target, error)
        if write_failure is None:
            raise
        raise write_failure from error


def write_error(path: object, error: Exception) -> RooflinesError | None:
    """Error with a fix for a file or folder that cannot be written; None for other errors.

    Args:
        path: The file or folder.
        error: The error raised by Python, or by a library that writes.
    """
    rust_number = OS_ERROR.search(str(error))
    number = (
        error.errno if isinstance(error, OSError) else int(rust_number[1]) if rust_number else None
    )
    if number not in (*DISK_FULL, *NOT_WRITABLE):
        return None
    problem = f"cannot be written: {os.strerror(number or 0)}"
    fix = (
        "make room, or the folder writable (`df -h` and `ls -ld` show what is wrong), then type "
        "the same command again: what is finished stays"
    )
    return RooflinesError("", problem, fix, file=str(path))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
