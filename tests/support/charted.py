"""A config of chips unlike each other, whose charts have every kind; and its views."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import timed
import yaml
from valid_files import config

import rooflines
from rooflines import charts
from rooflines.charts.files import views_of
from rooflines.charts.options import Option
from rooflines.charts.views import Spec, View

CONFIG: dict[str, Any] = yaml.safe_load(config("charted"))
SERVED: dict[str, Any] = CONFIG["model-sweeps"]["served"]
HOSTILE: dict[str, Any] = yaml.safe_load(config("charted-hostile"))
"""A config with long names, and one that would run as code."""


@cache
def loaded() -> rooflines.Config:
    """The config, with timings."""
    table = Path(tempfile.mkdtemp()) / "timed.csv"
    atexit.register(shutil.rmtree, table.parent)
    chips = CONFIG["sweeps"]["free"]["chips"]
    timed.of_many(chips, ["mine", "theirs"], 8).write_csv(table)
    return rooflines.load_config({**CONFIG, "measurements": {"timed": {"file": str(table)}}})


@cache
def results() -> charts.Results:
    """What it computes."""
    return charts.of_config(loaded())


@cache
def views(chart: Spec) -> list[tuple[dict[str, Option], View]]:
    """The choices and views of one of its charts."""
    return views_of(results(), chart)
