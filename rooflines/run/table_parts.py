"""Table and threshold parts: rows for some chips in a sweep, one job each.

A part begins where a chip begins, unless one chip has more rows than a part may have. Chips share a
part up to `TOGETHER` rows. So an edit to one chip leaves the parts for most others valid.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from rooflines.results.folders import LAYERS_FOLDER, THRESHOLDS_FOLDER
from rooflines.run.outputs import Output
from rooflines.sweep.recipes import recipe_of
from rooflines.sweep.step_sweep import STEPS_TOGETHER, ModelSweep

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.sweep.checks import AnySweep

TOGETHER, THRESHOLDS_TOGETHER = 110_000, 160_000
"""Chips share a part up to this many rows of operations, or thresholds [1].

Smaller parts take longer to start than to write, and compress less.
"""


def parts_of(sweep: AnySweep, folder: str) -> Iterator[Output]:
    """Parts in a sweep's table: its rows, or whole-model kernels.

    Args:
        sweep: The sweep.
        folder: `TABLES_FOLDER`, `MODELS_FOLDER` or `LAYERS_FOLDER`.
    """
    if isinstance(sweep, ModelSweep):
        sizes, together = sweep.rows_by_chip(kernels=folder == LAYERS_FOLDER), STEPS_TOGETHER
    else:
        sizes, together = sweep.rows_by_chip(), TOGETHER
    chips, first_rows = [*sizes], [0, *accumulate(sizes.values())]
    pieces = cuts([*sizes.values()], sweep.config.rows_per_part, together)
    for number, (start, stop, indices) in enumerate(pieces):
        recipe, first = recipe_of(sweep, chips=chips[indices.start : indices.stop]), start
        if sweep.config.measured is not None and folder != LAYERS_FOLDER:  # numbers of all rows
            recipe = recipe_of(sweep)
        else:
            first -= first_rows[indices.start]
        rows = stop - start
        place = {"start": first, "stop": first + rows, "row": start, "rows": rows}
        yield Output.create(
            f"{folder}/{sweep.name}/part-{number:05d}.parquet",
            "run.jobs.write_part",
            {"folder": folder, **recipe, **place},
            rows=rows,
            sweep=sweep.name,
            number=number,
        )


def threshold_parts(sweep: AnySweep) -> Iterator[Output]:
    """Parts in a sweep's thresholds, each for some chips."""
    by_chip, most = sweep.rows_by_chip(), sweep.max_thresholds()
    chips, rows = [*by_chip], max(sum(by_chip.values()), 1)
    sizes = [-(-most * count // rows) for count in by_chip.values()]
    pieces = cuts(sizes, max(most, 1), THRESHOLDS_TOGETHER)
    for number, (_, _, indices) in enumerate(pieces):
        yield Output.create(
            f"{THRESHOLDS_FOLDER}/{sweep.name}/part-{number:05d}.parquet",
            "run.threshold_jobs.write_threshold_part",
            recipe_of(sweep, chips=chips[indices.start : indices.stop]),
            sweep=sweep.name,
            number=number,
        )


def cuts(rows: Sequence[int], most: int, together: int) -> Iterator[tuple[int, int, range]]:
    """Table slices.

    Args:
        rows: Rows by unit, such as a chip [1].
        most: Maximum rows in a slice [1].
        together: Units share a slice up to this many rows [1].

    Yields:
        Start and stop, and the slice's units.
    """
    start, length, first = 0, 0, 0
    for unit, of_unit in enumerate(rows):
        if length and length + of_unit > min(most, together):
            yield start, start + length, range(first, unit)
            start, length, first = start + length, 0, unit
        length += of_unit
        if length > most:
            pieces = -(-length // most)
            for piece in range(pieces):
                yield (
                    start + length * piece // pieces,
                    start + length * (piece + 1) // pieces,
                    range(first, unit + 1),
                )
            start, length, first = start + length, 0, unit + 1
    if length:
        yield start, start + length, range(first, len(rows))
