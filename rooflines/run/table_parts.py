"""Table parts: one sweep slice and one job each, with the job's dependencies as JSON.

A part begins where a chip begins, unless one chip has more rows than a part may have. Chips share a
part up to `TOGETHER` rows. So an edit of one chip leaves the parts of most others valid. A table of
whole models has every chip in each part: there rows of other chips are kept (see `kept`).
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from rooflines.results.folders import LAYERS_FOLDER
from rooflines.run.outputs import Output
from rooflines.sweep.operation_sweep import Sweep
from rooflines.sweep.recipes import recipe_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflines.sweep.checks import AnySweep

TOGETHER, MODELS_TOGETHER = 36_000, 300_000
"""Chips share a part up to this many rows, of operations and of whole models [1].

Smaller parts take longer to start than to write, and compress less.
"""


def parts_of(sweep: AnySweep, folder: str) -> Iterator[Output]:
    """Parts in a sweep's table: its rows, or whole-model kernels.

    Args:
        sweep: The sweep.
        folder: `TABLES_FOLDER`, `MODELS_FOLDER` or `LAYERS_FOLDER`.
    """
    units = _units(sweep, folder)
    together = TOGETHER if isinstance(sweep, Sweep) else MODELS_TOGETHER
    pieces = cuts([unit.rows for unit in units], sweep.config.rows_per_part, together)
    row = 0
    for number, (start, stop, indices) in enumerate(pieces):
        part_units, earlier = units[indices.start : indices.stop], units[: indices.start]
        models, chips = {unit.model for unit in part_units}, {unit.chip for unit in part_units}
        first = sum(unit.rows for unit in earlier)
        recipe = recipe_of(sweep, models=models, chips=chips)
        if sweep.config.measured is not None and folder != LAYERS_FOLDER:  # numbers of all rows
            recipe = recipe_of(sweep)
            models, chips = {unit.model for unit in units}, {unit.chip for unit in units}
        offset = sum(u.rows for u in earlier if u.model in models and u.chip in chips) - first
        by_chip = _rows_within(part_units, start - first, stop - first)
        rows = sum(by_chip.values())
        place = {"start": start + offset, "stop": stop + offset, "row": row, "rows": rows}
        yield Output.create(
            f"{folder}/{sweep.name}/part-{number:05d}.parquet",
            "run.jobs.write_part",
            {"folder": folder, **recipe, **place},
            rows_by_chip=by_chip,
            sweep=sweep.name,
            number=number,
        )
        row += rows


class Unit(NamedTuple):
    """Consecutive table rows for one model and chip.

    Attributes:
        model, chip: Their names; the model of an operation is empty.
        rows: How many [1].
    """

    model: str
    chip: str
    rows: int


def _units(sweep: AnySweep, folder: str) -> list[Unit]:
    """Table rows by chip (whole models: by model, phase, split and chip), in order."""
    if isinstance(sweep, Sweep):
        return [Unit("", chip, rows) for chip, rows in sweep.rows_by_chip().items()]
    units = []
    for block in sweep.blocks:
        for chip, cases in groupby(block.cases, key=lambda case: case.chip):
            rows = sum(len(case.listed_kernels) if folder == LAYERS_FOLDER else 1 for case in cases)
            units.append(Unit(block.cases[0].name, chip, block.points * rows))
    return units


def _rows_within(units: Iterable[Unit], start: int, stop: int) -> dict[str, int]:
    """Rows `start` to `stop` of units by chip [1]."""
    rows: dict[str, int] = {}
    for unit in units:
        within = min(stop, unit.rows) - max(start, 0)
        rows[unit.chip] = rows.get(unit.chip, 0) + within
        start, stop = start - unit.rows, stop - unit.rows
    return rows


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
