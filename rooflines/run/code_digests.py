"""Digests of code: an output is made again when the code that it depends on has changed."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.files import CONFIG_DIR
from rooflines.basics.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[1]

IMPORT = re.compile(rb"^\s*(?:from|import) rooflines\.(\w+)(?:\.(\w+))?", re.MULTILINE)
"""An import of a sub-package or top module, and of a module in it."""


@cache
def code_digest(job: str, *, but: str = "") -> str:
    """A digest of the code behind an output.

    That is the sub-package of its job, or its module in `run`, and what this imports, directly or
    not.

    Args:
        job: The function that makes the output, such as `run.jobs.write_part`.
        but: A folder of the package that is left out.
    """
    package, module, *_ = job.split(".")
    files = {file for name in closure(_name(package, module)) for file in files_of(name)}
    return _digest_of({file for file in files if not (but and file.is_relative_to(ROOT / but))})


def _name(package: str, module: str) -> str:
    """Unit of a digest: a module of jobs, else the whole sub-package."""
    return f"run.{module}" if package == "run" else package


def file_digest(names: Iterable[str]) -> str:
    """Digest over package files, such as `charts/kinds/bounds.py`."""
    return _digest_of({ROOT / name for name in names})


def catalogue_digest(names: Iterable[str]) -> str:
    """A digest of catalogues as they are shipped, such as `models.yaml`."""
    digest = hashlib.sha256()
    for name in names:
        digest.update(content(CONFIG_DIR / name))
    return digest.hexdigest()[:16]


def _digest_of(files: set[Path]) -> str:
    """Digest over file names and content."""
    digest = hashlib.sha256(__version__.encode())
    for file in sorted(files):
        digest.update(file.relative_to(ROOT).as_posix().encode() + content(file))
    return digest.hexdigest()[:16]


@cache
def closure(name: str) -> frozenset[str]:
    """A sub-package, top module or module of jobs, and those that it imports, directly or not."""
    names, waiting = set[str](), {name}
    while waiting:
        package = waiting.pop()
        names.add(package)
        waiting |= imported(package) - names
    return frozenset(names)


@cache
def imported(name: str) -> frozenset[str]:
    """Sub-packages, top modules and job modules that one imports."""
    files = (file for file in files_of(name) if file.suffix == ".py")
    packages = (match for file in files for match in IMPORT.findall(content(file)))
    return frozenset(_name(package.decode(), module.decode()) for package, module in packages)


@cache
def files_of(name: str) -> tuple[Path, ...]:
    """The files of a sub-package or module: code, templates, scripts and styles."""
    folder = ROOT.joinpath(*name.split("."))
    if not folder.is_dir():
        return (folder.with_suffix(".py"),)
    return tuple(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")


@cache
def content(file: Path) -> bytes:
    """The bytes of a file, read once."""
    return file.read_bytes()
