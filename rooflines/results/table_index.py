"""The indexes of a run's tables; writing them removes outputs of earlier configs.

A sweep that shrinks or is renamed leaves parts that no rule makes any more. Snakemake ignores them,
but a reader of the folder would take their rows for results.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from rooflines.results.folders import TABLES
from rooflines.results.records import (
    SNAKEMAKE_TIMESTAMP,
    forget,
    record_of,
    recorded,
    recorded_outputs,
)
from rooflines.results.tables import write_csv

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

COLUMNS = {"sweep": pl.String, "part": pl.Int64, "rows": pl.Int64, "path": pl.String}


def write_indexes(
    specs: Mapping[str, str], paths: Mapping[str, str | Path], planned: Collection[str]
) -> None:
    """Write the index of each folder of tables, and remove outputs that no config asks for.

    Args:
        specs: The index as JSON, from `Plan.indexes`, by folder.
        paths: The CSV to write, by folder.
        planned: The paths of all outputs below the results.
    """
    for folder, spec in specs.items():
        write_index(spec, paths[folder])
    remove_others(Path(paths[TABLES]).parents[1], planned)


@recorded
def write_index(spec: str, path: str | Path) -> None:
    """Write the index of the parts in a folder as CSV.

    Args:
        spec: The index as JSON, from `Plan.indexes`.
        path: The CSV to write, beside the folders of the sweeps.
    """
    write_csv(pl.DataFrame(json.loads(spec), schema=COLUMNS), path)


def remove_others(results: Path, planned: Collection[str]) -> None:
    """Remove what earlier runs made and the plan does not have; what has no record stays.

    Args:
        results: The folder of results.
        planned: The paths of all outputs below it.
    """
    for path in recorded_outputs(results):
        record = record_of(results, path)
        if record is None or path.relative_to(results).as_posix() in planned:
            continue
        print(f"removed {path}, which the config asks for no more")
        names = (*record.files, SNAKEMAKE_TIMESTAMP) if path.is_dir() else (".",)
        for name in names:
            (path / name).unlink(missing_ok=True)
        for folder in (path, path.parent):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        forget(path)
