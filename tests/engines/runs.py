"""Runs of one config on every engine, and their outputs."""

import polars as pl
from case_files import case

from rooflines.results.folders import FOLDERS
from rooflines.results.tables import metadata_of

CONFIG = case("configs/engines")
PARTS = [*(f"catalogue/part-{number:05d}" for number in range(2)), "own/part-00000"]

TABLE_FOLDERS = tuple(f"{folder}/" for folder in FOLDERS)
"""Start of paths to tables, below the results."""

WITHOUT_SITE = (
    *("parts.csv", "thresholds.parquet", "model-thresholds.parquet"),
    *("skipped.csv", "model-shapes.csv"),
)
"""Targets of runs that do not need the site."""


def contents(results, below=""):
    """Outputs of a run by name: tables with their metadata, and text; no logs, no site.

    Args:
        results: Its folder.
        below: What their paths begin with, such as `TABLE_FOLDERS`.
    """
    parquet = {
        path: (pl.read_parquet(path), metadata_of(path))
        for path in results.rglob("*.parquet")
        if "bundle" not in path.parts
    }
    csv = {path: path.read_text() for path in results.rglob("*.csv") if "bundle" not in path.parts}
    named = {path.relative_to(results).as_posix(): of for path, of in (parquet | csv).items()}
    return {name: content for name, content in named.items() if name.startswith(below)}


def assert_same(found, expected):
    """Equal files, with equal rows in equal order, to the last bit."""
    assert set(found) == set(expected)
    for name, content in expected.items():
        if isinstance(content, tuple):
            assert found[name][0].equals(content[0]), name
            assert found[name][1] == content[1], name
        else:
            assert found[name] == content, name
