"""Ownership of files in a folder of results: a run deletes only its own files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.results.atomic import LEFTOVER, target_of
from rooflines.results.records import FOLDER, files_in, record_file, record_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

MOST_NAMED = 5
"""At most this many files are named in a message [1]."""


def in_the_way(results: Path, outputs: Iterable[Path]) -> list[Path]:
    """Files where a run needs folders: the results themselves, or a folder in them.

    Args:
        results: The folder of results.
        outputs: The paths of the plan's outputs.
    """
    folders = {folder for output in outputs for folder in output.parents}
    needed = {folder for folder in folders if folder.is_relative_to(results)}
    needed |= {results, results / FOLDER}
    return sorted(path for path in needed if os.path.lexists(path) and not path.is_dir())


def foreign(results: Path, outputs: Iterable[Path]) -> list[Path]:
    """Files at the paths of outputs, or in folders that are outputs, that something else made.

    A file is ours if it has a record, even if its content has changed, or is a Parquet file whose
    metadata says so. A folder is ours if it has a readable record, with the files named there and
    no others. Links, and folders in place of files, are never ours.

    Args:
        results: The folder of results.
        outputs: The paths of outputs; those that do not exist are passed over.
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
    elif record or is_folder or not (record_file(results, output).is_file() or _is_ours(output)):
        yield output


def _is_ours(output: Path) -> bool:
    """Whether the metadata of a file without a record says that it is ours."""
    if output.suffix != ".parquet":
        return False
    from rooflines.results.table_index import is_ours  # noqa: PLC0415 - polars is slow to import

    return is_ours(output)


def not_ours(results: Path, files: Sequence[Path]) -> RooflinesError:
    """The error for the files that `foreign` returns: which they are, and what to do about them."""
    more = f" and {len(files) - MOST_NAMED:,} more" if len(files) > MOST_NAMED else ""
    problem = (
        f"{'were' if len(files) > 1 else 'was'} not made by this program, "
        "and a run would delete or overwrite what is there"
    )
    fix = (
        f"move it out of {results}, or put results elsewhere "
        "(`pathvars: {results: FOLDER}` in the config); "
        f"delete it if it is a result whose record in {results / FOLDER} was lost"
    )
    return RooflinesError("", problem, fix, file=", ".join(map(str, files[:MOST_NAMED])) + more)


def temporary_outputs(results: Path, names: Iterable[str]) -> list[Path]:
    """Temporary files and folders that killed jobs left: those of outputs and of records only.

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
    return [*temporary, *(results / FOLDER).rglob(LEFTOVER)]
