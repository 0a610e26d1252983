"""Digests of code: an output is made again when the code that it depends on has changed."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[1]

IMPORT = re.compile(rb"^\s*(?:from|import) rooflines\.(\w+)", re.MULTILINE)
"""An import of a sub-package or of a top module."""

WRITING = "results"
"""The sub-package that puts numbers into files."""


@cache
def code_digest(package: str, job: str, *, but: str = "") -> str:
    """A digest of the code behind an output.

    That is the sub-package that computes it, the one that writes it, all that these import,
    directly or not, and the module of its job.

    Args:
        package: The sub-package that computes the output.
        job: The function that makes the output, such as `run.jobs.write_part`.
        but: A folder of the package that is left out.
    """
    module = ROOT / f"{job.rpartition('.')[0].replace('.', '/')}.py"
    files = {
        module,
        *(file for name in closure(package) | closure(WRITING) for file in files_of(name)),
    }
    left_out = {file for file in files if but and file.is_relative_to(ROOT / but)}
    return _digest_of(files - left_out)


def file_digest(names: Iterable[str]) -> str:
    """A digest of files of the package, such as `charts/kinds/bounds.py`."""
    return _digest_of({ROOT / name for name in names})


def _digest_of(files: set[Path]) -> str:
    """A digest of the names and content of files."""
    digest = hashlib.sha256(__version__.encode())
    for file in sorted(files):
        digest.update(file.relative_to(ROOT).as_posix().encode() + content(file))
    return digest.hexdigest()[:16]


@cache
def closure(package: str) -> frozenset[str]:
    """A sub-package and those that it imports, directly or not."""
    found, waiting = set[str](), {package}
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= imported(name) - found
    return frozenset(found)


@cache
def imported(package: str) -> frozenset[str]:
    """The sub-packages and top modules that a sub-package imports."""
    texts = (content(file) for file in files_of(package) if file.suffix == ".py")
    return frozenset(name.decode() for text in texts for name in IMPORT.findall(text))


@cache
def files_of(package: str) -> tuple[Path, ...]:
    """The files of a sub-package, or of a top module: code, templates, scripts and styles."""
    folder = ROOT / package
    if not folder.is_dir():
        return (folder.with_suffix(".py"),)
    return tuple(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")


@cache
def content(file: Path) -> bytes:
    """The bytes of a file, read once."""
    return file.read_bytes()
