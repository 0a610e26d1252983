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

IMPORT = re.compile(rb"^\s*(?:from|import) rooflines\.(\w+)(?:\.(\w+))?", re.MULTILINE)
"""An import of a sub-package or top module, and of a module in it."""

OWN = "run"
"""The sub-package of jobs: of it, a job depends on modules one by one."""


@cache
def code_digest(job: str, *, but: str = "") -> str:
    """A digest of the code behind an output.

    That is the module of its job, and the sub-packages that this imports, directly or not.

    Args:
        job: The function that makes the output, such as `run.jobs.write_part`.
        but: A folder of the package that is left out.
    """
    package, *_ = job.split(".")
    modules = _modules(job.split(".")[1]) if package == OWN else frozenset[Path]()
    names = {package} if package != OWN else set[str]()
    names |= {name for module in modules for name, _ in _imports(module) if name != OWN}
    files = {file for name in names for found in closure(name) for file in files_of(found)}
    left_out = {file for file in files if but and file.is_relative_to(ROOT / but)}
    return _digest_of({*modules, *files} - left_out)


def _modules(name: str) -> frozenset[Path]:
    """A module of jobs, and those of its sub-package that it imports."""
    found, waiting = set[Path](), {ROOT / OWN / f"{name}.py"}
    while waiting:
        module = waiting.pop()
        found.add(module)
        waiting |= {
            ROOT / OWN / f"{other}.py" for package, other in _imports(module) if package == OWN
        } - found
    return frozenset(found)


def _imports(file: Path) -> set[tuple[str, str]]:
    """The sub-packages or top modules that a file imports, each with the module in it."""
    return {(name.decode(), module.decode()) for name, module in IMPORT.findall(content(file))}


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
    files = (file for file in files_of(package) if file.suffix == ".py")
    return frozenset(name for file in files for name, _ in _imports(file))


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
