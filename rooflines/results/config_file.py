"""The config file that the results of a folder are of."""

from __future__ import annotations

import os
from pathlib import Path

from rooflines.results.atomic import write_bytes
from rooflines.results.records import FOLDER

NAME = "config"
"""The file with the path of the config, from the results: both may be moved together."""


def record_config(results: Path, config: Path | None) -> None:
    """Record of which config file a run makes results; None: of no single file."""
    record = results / FOLDER / NAME
    if config is None:
        record.unlink(missing_ok=True)
    else:
        write_bytes(record, f"{os.path.relpath(config.resolve(), results.resolve())}\n")


def config_of_results(results: Path) -> Path | None:
    """The config file that results are of; None: there are none, or it was not recorded."""
    record = results / FOLDER / NAME
    if not record.is_file() or not any(results.glob("[!.]*")):
        return None
    relative = record.read_text(encoding="utf-8", errors="replace").removesuffix("\n")
    return Path(os.path.normpath(results.resolve() / relative))
