"""A config of chips unlike each other, whose charts have every kind; and its views."""

import atexit
import shutil
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import timed
from case_files import case

import rooflines
from rooflines import charts
from rooflines.charts.chart_files import views_of

CONFIG: dict[str, Any] = case("configs/charted")
SERVED: dict[str, Any] = CONFIG["model-sweeps"]["served"]
HOSTILE: dict[str, Any] = case("configs/charted-hostile")
"""A config with long names, and one that would run as code."""


@cache
def loaded():
    """The config, with timings."""
    table = Path(tempfile.mkdtemp()) / "timed.csv"
    atexit.register(shutil.rmtree, table.parent)
    chips = CONFIG["sweeps"]["free"]["chips"]
    timed.of_many(chips, ["mine", "theirs"], 8).write_csv(table)
    return rooflines.load_config({**CONFIG, "measurements": {"timed": {"file": str(table)}}})


@cache
def results():
    """Computed tables, each once."""
    made = charts.of_config(loaded())
    return replace(made, rows=cache(made.rows), joined=cache(made.joined))


@cache
def views(chart):
    """The choices and views of one of its charts."""
    return drawn(results(), chart)


def drawn(numbers, chart):
    """The choices and views of a chart."""
    return [*views_of(numbers, chart)]
