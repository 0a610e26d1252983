"""Tables as downloads of the site: Parquet, and CSV where that is not too large."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.basics.files import scan_parquet
from rooflines.results.tables import NO_TEXT, csv_text, scan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_CSV_ROWS = 10_000
"""Rows up to which a table is offered as CSV, too [1]; as gzip about 1.5 MB."""


class Download(NamedTuple):
    """A table as a file of the site.

    Attributes:
        text: What it is.
        stem: Its path without the suffix.
        path: The table on disk, as Parquet.
        csv: Whether it is offered as CSV, too.
    """

    text: str
    stem: str
    path: Path
    csv: bool


def downloads_of(thresholds: Path, models: list[Path]) -> list[Download]:
    """The downloads of thresholds, and of those of whole models if there are any."""
    named = [("All thresholds", "data/thresholds", thresholds)]
    named += [("Thresholds of whole models", "data/model-thresholds", path) for path in models]
    return [Download(*each, _rows(each[2]) <= MOST_CSV_ROWS) for each in named]


def _rows(path: Path) -> int:
    return int(scan_parquet(path).select(pl.len()).collect().item())


def download_files(download: Download) -> Iterator[tuple[str, bytes]]:
    """The files of a download: name and content."""
    yield f"{download.stem}.parquet", download.path.read_bytes()
    if download.csv:
        text = csv_text(scan(download.path).collect(), NO_TEXT)
        yield f"{download.stem}.csv.gz", gzip.compress(text.encode(), mtime=0)
