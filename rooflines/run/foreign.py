"""Whose a file in a folder of results is: a run removes what is ours alone, and stops before its first job where it would remove more."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.results.atomic import LEFTOVER, target_of
from rooflines.results.records import FOLDER, files_in, record_file, record_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

__all__ = ["foreign", "halves", "in_the_way", "not_ours"]

NAMED = 5
"""At most this many files are named in a message [1]."""


def in_the_way(results: Path, outputs: Iterable[Path]) -> list[Path]:
    """Files where a run needs folders: the results themselves, or a folder in them.

    Args:
        results: The folder of results.
        outputs: The paths of the plan's outputs.
    """
    parents = {path.parent for path in outputs}
    needed = {
        results,
        results / FOLDER,
        *(
            folder
            for path in parents
            for folder in (path, *path.parents)
            if folder.is_relative_to(results)
        ),
    }
    return sorted(path for path in needed if os.path.lexists(path) and not path.is_dir())


def foreign(results: Path, outputs: Iterable[Path]) -> list[Path]:
    """What is at the paths of outputs, or in folders that are outputs, and was made by something else.

    A file is ours if it has a record, whatever is in it now, or is a Parquet file whose metadata says so. A folder is ours if it has a
    record that can be read, with the files that are named there and no others. Links, and folders in place of files, are never ours.

    Args:
        results: The folder of results.
        outputs: The paths of outputs; what does not exist is passed over.
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
    elif record or is_folder or not (record_file(results, output).is_file() or _says_so(output)):
        yield output


def _says_so(output: Path) -> bool:
    """Whether a file without a record says in its own metadata that it is ours."""
    if output.suffix != ".parquet":
        return False
    from rooflines.results.table_index import is_ours  # noqa: PLC0415 - a run that has nothing to do does not wait for polars

    return is_ours(output)


def not_ours(results: Path, found: Sequence[Path]) -> RooflinesError:
    """What to do about the files that `foreign` found."""
    named = ", ".join(map(str, found[:NAMED])) + (
        f" and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
    )
    problem = f"{'were' if len(found) > 1 else 'was'} not made by this program, and a run would delete or overwrite what is there"
    fix = (
        f"move it out of {results}, or put results elsewhere (`pathvars: {{results: FOLDER}}` in the config); "
        f"delete it if it is a result whose record in {results / FOLDER} was lost"
    )
    return RooflinesError("", problem, fix, file=named)


def halves(results: Path, expected: Iterable[str]) -> list[Path]:
    """The half-written files and folders that killed jobs left: of outputs and of records, and of nothing else in the folder of results.

    Args:
        results: The folder of results.
        expected: The paths of outputs below `results`.
    """
    outputs = {results / name for name in expected}
    beside = [
        half
        for folder in {path.parent for path in outputs}
        for half in folder.glob(LEFTOVER)
        if target_of(half) in outputs
    ]
    return [*beside, *(results / FOLDER).rglob(LEFTOVER)]
