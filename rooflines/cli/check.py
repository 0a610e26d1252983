"""`rooflines check`: all mistakes in a config, or the outputs that a run will make."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import click

from rooflines import api
from rooflines.basics.errors import Mistakes, PlausibilityWarning
from rooflines.basics.text import counted, si
from rooflines.cli.output import WithExamples
from rooflines.dictionary.columns import KERNEL_SWEEP_METRICS, STEP_METRICS
from rooflines.loading import load_config
from rooflines.measured.join import WITHOUT_ESTIMATE, WITHOUT_ROW
from rooflines.measured.timing_summary import timings_lacking
from rooflines.models.library import ModelEntry
from rooflines.results.folders import MODELS_FOLDER, TABLES_FOLDER
from rooflines.run.plan import plan
from rooflines.run.run_summary import skipped_reasons

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooflines.loading import Config
    from rooflines.run.outputs import Output

BYTES_PER_METRIC = {TABLES_FOLDER: 1.1, MODELS_FOLDER: 4.7}
"""Bytes of a real number in a row of a large table, by its folder [byte]; keys take next to none.

Measured on a million rows of a matmul over B, D and F, with two shardings and four dtypes; and on
1.6 million rows of decode over B and S, of two models, chips, dtypes and splits.
"""

BYTES_PER_KERNEL = 3
"""Bytes of a row of a large table of kernels [byte]."""

BYTES_PER_THRESHOLD = 2
"""Bytes of a threshold [byte]."""

BYTES_PER_PART = 20_000
"""Bytes of a part beside its rows: the catalogue entries that it was made from [byte]."""


@click.command("check", cls=WithExamples)
@click.argument("config", required=False, metavar="[CONFIG]")
def command(config: str | None) -> None:
    """Check a config: all of its mistakes at once, or what a run of it will make.

    That is rows, parts, about how many bytes, and what will be skipped and why.
    CONFIG is the default config if left out.

    Examples:
        rooflines check my.yaml
        rooflines check
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PlausibilityWarning)
        loaded = load_config(config)
    for warning in caught:
        click.echo(f"warning: {warning.message}", err=True)
    click.echo(_expected(loaded))


def _expected(config: Config) -> str:
    """Expected outputs for a valid config."""
    planned = plan(config)
    rows = sum(part.rows for part in planned.parts)
    solutions = sum(sweep.max_thresholds() for sweep in config.every.values())
    size = (
        _row_bytes(config, planned.parts)
        + len(planned.parts) * BYTES_PER_PART
        + solutions * BYTES_PER_THRESHOLD
    )
    max_charts = len(config.charts)
    charts = f"at most {counted(max_charts, 'chart')}" if max_charts else "no charts"
    lines = [
        f"{config.file} is valid",
        (
            f"{counted(rows, 'row')} of {counted(len(config.every), 'sweep')} in "
            f"{counted(len(planned.parts), 'part')}; {counted(solutions, 'threshold')}; {charts}"
        ),
        f"about {si(size, 'B', 2)} of tables",
        *_chartless(config),
        *_notes(config),
        *_timings(config),
        *(
            f"{name}: a trace, {counted(len(trace.paths), 'file')}"
            for name, trace in config.traces.items()
        ),
        *skipped_reasons(api.skipped(config).to_dicts()),
    ]
    return "\n".join(lines)


def _chartless(config: Config) -> list[str]:
    """Line about sweeps that no chart shows."""
    names = ", ".join(config.kernel_sweeps)
    return [f"no charts of {names}: they show operations and models"] if names else []


def _row_bytes(config: Config, parts: Iterable[Output]) -> float:
    """About how many bytes the rows of all parts take [byte]."""
    real = {column.name for column in (*KERNEL_SWEEP_METRICS, *STEP_METRICS) if column.unit}
    metrics = {
        name: sum(column.name in real for column in sweep.stored)
        for name, sweep in config.every.items()
    }
    return sum(
        part.rows * metrics[part.sweep] * BYTES_PER_METRIC[part.folder]
        if part.folder in BYTES_PER_METRIC
        else part.rows * BYTES_PER_KERNEL
        for part in parts
    )


def _notes(config: Config) -> list[str]:
    """Line for each model from a file with parts left out or assumed."""
    notes = {
        name: "; ".join(model.notes(drafts=sweep.config.draft is not None))
        for sweep in config.model_sweeps.values()
        for name, model in sweep.models.items()
        if not isinstance(model.shape, ModelEntry)
    }
    return [f"{name}: {note}" for name, note in notes.items() if note]


def _timings(config: Config) -> list[str]:
    """Line for each set of timings, after joining all sets.

    Raises:
        RooflinesError: Sets cannot be joined.
    """
    lines = []
    with Mistakes() as mistakes:
        for name, measured_set in config.measurements.items():
            with mistakes.at("measurements", name):
                joined = measured_set.join()
                below = joined.frame["reason"].drop_nulls().len()
                skipped = measured_set.skipped(joined)
                unjoined, unestimated = (
                    timings_lacking(lacking, skipped) for lacking in (WITHOUT_ROW, WITHOUT_ESTIMATE)
                )
                lines.append(
                    f"{name}: {counted(joined.frame.height, 'timing')}, {unestimated:,} without an "
                    f"estimate, {below:,} below the bound, {unjoined:,} left out"
                )
                if copies := measured_set.timings.copies:
                    lines.append(f"{name}: {counted(copies, 'duplicate row')}")
    return lines
