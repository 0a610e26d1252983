"""The indexes of a run's tables; writing them removes stale parts.

A sweep that shrinks or is renamed leaves parts that no rule makes any more. Snakemake ignores them,
but a reader of the folder would take their rows for results. So an index is written whenever the
parts change, and parts that are not in it are removed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from rooflines.results.folders import MEASURED, MEASURED_SUMMARIES, MODEL_THRESHOLDS, MODELS
from rooflines.results.records import forget, home_of, record_file, recorded
from rooflines.results.tables import write_csv

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

COLUMNS = {"sweep": pl.String, "part": pl.Int64, "rows": pl.Int64, "path": pl.String}

PART_FILE = re.compile(r"part-\d{5,}\.parquet")
TEMPORARY = re.compile(r"\.part-\d{5,}\.parquet\..*\.tmp")


def write_indexes(
    specs: Mapping[str, str], paths: Mapping[str, str | Path], measured: Collection[str] = ()
) -> None:
    """Write the index of each folder of tables; remove files of models and timings no more asked.

    Args:
        specs: The index as JSON, from `Plan.indexes`, by folder.
        paths: The CSV to write, by folder.
        measured: The paths of the tables of timings, below the results.
    """
    for folder, spec in specs.items():
        write_index(spec, paths[folder])
    results = Path(paths[MODELS]).parents[1]
    if not json.loads(specs[MODELS]):
        _remove_recorded([results / MODEL_THRESHOLDS])
    if not measured:
        _remove_recorded(results / name for name in MEASURED_SUMMARIES)
    sets = sorted((results / MEASURED).glob("*.parquet"))
    _remove_recorded(path for path in sets if f"{MEASURED}/{path.name}" not in measured)


@recorded
def write_index(spec: str, path: str | Path) -> None:
    """Write the index of the parts in a folder as CSV, and remove parts that are not in it.

    Args:
        spec: The index as JSON, from `Plan.indexes`.
        path: The CSV to write, beside the folders of the sweeps. No part may be written at the same
            time.
    """
    path = Path(path)
    parts = json.loads(spec)
    for stale in stale_files(path.parent, [part["path"] for part in parts]):
        print(f"removed {stale}, which is in no sweep")
        _remove(stale)
        if not any(stale.parent.iterdir()):
            stale.parent.rmdir()
    write_csv(pl.DataFrame(parts, schema=COLUMNS), path)


def _remove_recorded(paths: Iterable[Path]) -> None:
    """Remove those outputs that have a record; others are the user's."""
    for path in paths:
        if (home := home_of(path)) and record_file(home, path).is_file():
            print(f"removed {path}, which the config asks for no more")
            _remove(path)


def _remove(path: Path) -> None:
    """Remove an output and its record."""
    path.unlink(missing_ok=True)
    forget(path)


def stale_files(tables: Path, listed: Sequence[str]) -> list[Path]:
    """Stale files that this package wrote to a folder of tables.

    Args:
        tables: The folder of the sweeps' folders.
        listed: Paths of the current parts, relative to it.

    Returns:
        Parts with a record that are not listed, and temporary files of killed jobs; a part without
        a record is a user's copy.
    """
    keep, home = {tables / name for name in listed}, home_of(tables)
    others = sorted(path for path in tables.glob("*/*") if path not in keep)
    return [
        path
        for path in others
        if TEMPORARY.fullmatch(path.name)
        or (PART_FILE.fullmatch(path.name) and home and record_file(home, path).is_file())
    ]
