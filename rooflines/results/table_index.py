"""The list of a run's tables, and the removal of parts that are no longer in it.

A sweep that shrinks leaves its last parts behind, a renamed one its whole folder: Snakemake forgets what no rule makes any
more, and a reader of the folder would take the old rows for new ones. So the list is a file of its own, made anew whenever
the parts change, and its making removes what is not in it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from rooflines.results.records import forget, home_of, record_file, recorded
from rooflines.results.tables import METADATA_KEY, write_csv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["write_index"]

PART_FILE = re.compile(r"part-\d{5,}\.parquet")
HALF_WRITTEN = re.compile(r"\.part-\d{5,}\.parquet\..*\.tmp")


@recorded
def write_index(spec: str, path: str | Path) -> None:
    """Write the list of parts as CSV, and remove what stands beside it of parts that are not in the list.

    Args:
        spec: The list as JSON, from `index_spec`.
        path: The CSV to write: `tables/index.csv`, in the folder that holds the sweeps' folders. No part may be in the making.
    """
    path = Path(path)
    parts = json.loads(spec)
    for stale in stale_files(path.parent, [part["path"] for part in parts]):
        print(f"removed {stale}, which is no part of any sweep now")
        stale.unlink()
        forget(stale)
        if not any(stale.parent.iterdir()):
            stale.parent.rmdir()
    write_csv(pl.DataFrame(parts), path)


def stale_files(tables: Path, listed: Sequence[str]) -> list[Path]:
    """Files in a folder of tables that nobody needs any more, of those alone that this package made.

    Args:
        tables: The folder that holds the sweeps' folders.
        listed: Paths of the parts that stay, relative to it.

    Returns:
        Parts that are not listed and say in their metadata that they are ours, and halves that a killed job left behind. Where outputs
        have records, a part without one is a copy that somebody keeps there, and stays.
    """
    keep = {tables / name for name in listed}
    found = sorted(path for path in tables.glob("*/*") if path not in keep)
    home = home_of(tables)
    return [
        path
        for path in found
        if HALF_WRITTEN.fullmatch(path.name)
        or (
            PART_FILE.fullmatch(path.name)
            and (home is None or record_file(home, path).is_file())
            and is_ours(path)
        )
    ]


def is_ours(path: str | Path, access: Mapping[str, str] | None = None) -> bool:
    """Whether a Parquet file was written by this package; a file that cannot be read was not.

    Args:
        path: The file, on a disk or in a bucket.
        access: How polars gets into the bucket, in its own terms.
    """
    if access is None and not Path(path).is_file():
        return False
    try:
        return METADATA_KEY in pl.read_parquet_metadata(
            path, storage_options=dict(access) if access else None
        )
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return False
