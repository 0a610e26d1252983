"""Parts of tables: slices of a sweep, a job each, with everything a job depends on as JSON.

A part begins where a chip begins, unless one chip has more rows than a part may have. So an edit of
one chip leaves the parts of the others valid. Chips share a part up to `ROWS_TOGETHER`.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rooflines.basics.version import __version__
from rooflines.results.folders import LAYERS, TABLES
from rooflines.serving.recipes import model_recipe
from rooflines.sweep.recipes import recipe_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.serving.sweep import ModelSweep
    from rooflines.sweep.sweep import Sweep

ROWS = ("basics", "model", "catalogue", "fits", "settings", "sweep")
"""The sub-packages that the rows of tables, and the list of what is skipped, depend on."""

MODEL_ROWS = (*ROWS, "models", "serving")
"""Those that the rows of tables of whole models depend on."""

WRITING = ("run/jobs.py", "results/tables.py")
"""The modules that put numbers into files."""

ROWS_TOGETHER = 4_000_000
"""Chips share a part up to this many rows [1].

An edit of one chip then costs seconds.
"""

LARGE_ROWS = 8_000_000
"""A part of this many rows gets two threads [1]; a smaller one spends too much time starting."""

MANY_LARGE = 4
"""From this many large parts on, each gets one thread: together they fill the cores [1]."""

MEMORY_MB, MEMORY_MB_PER_THREAD = 300, 150
"""Memory of a job: of the interpreter with polars, and of the data of each thread [MB]."""

MEMORY_MB_PER_MILLION, MILLIONS_IN_MEMORY = 50, 4
"""Memory for a million rows that wait to be written [MB], and how many millions may wait [1]."""

BRACE_IN_STRING = re.compile(r'\{(?!["}])')
"""A brace inside a string of JSON: one of JSON itself is followed by a quote or another brace."""

WORDING = "basics/errors.py"
"""The module of wording: no number depends on it."""


class Wildcards(Protocol):
    """The wildcards of a job that makes a part of a table."""

    sweep: str
    part: str


@dataclass(frozen=True)
class Part:
    """A slice of a sweep's table.

    Attributes:
        folder: The folder of the table.
        sweep: The sweep's name.
        number: The part's number, from 0.
        start, stop: The rows of the sweep that it is of, as a half-open range [1].
        rows: Its own rows: of kernels more than of the sweep [1].
        spec: Everything it depends on, as JSON.
    """

    folder: str
    sweep: str
    number: int
    start: int
    stop: int
    rows: int
    spec: str

    @property
    def large(self) -> bool:
        """Whether it is large enough for two threads."""
        return self.rows >= LARGE_ROWS

    def memory_mb(self, threads: int) -> int:
        """Most memory of its job [MB]; constant from a few million rows on."""
        millions = min(-(-self.rows // 1_000_000), MILLIONS_IN_MEMORY)
        return MEMORY_MB + MEMORY_MB_PER_THREAD * threads + MEMORY_MB_PER_MILLION * millions

    @property
    def name(self) -> str:
        """Its path below the folder of the table, without the suffix."""
        return f"{self.sweep}/part-{self.number:05d}"

    @property
    def path(self) -> str:
        """Its path below the results."""
        return f"{self.folder}/{self.name}.parquet"


@dataclass(frozen=True)
class Parts:
    """The parts of all tables in one folder, in order; its methods answer a rule of the workflow.

    Attributes:
        all: The parts.
    """

    all: tuple[Part, ...]

    @cached_property
    def _by_name(self) -> Mapping[str, Part]:
        return {part.name: part for part in self.all}

    @cached_property
    def _many_large(self) -> bool:
        return sum(part.large for part in self.all) >= MANY_LARGE

    def _of(self, wildcards: Wildcards) -> Part:
        return self._by_name[f"{wildcards.sweep}/part-{wildcards.part}"]

    def names(self) -> list[str]:
        """The paths of parts below their folder, without the suffix."""
        return list(self._by_name)

    def index_spec(self) -> str:
        """The list of the parts as JSON, with the columns of `index.csv`."""
        rows = [
            {
                "sweep": part.sweep,
                "part": part.number,
                "rows": part.rows,
                "path": f"{part.name}.parquet",
            }
            for part in self.all
        ]
        return as_param(rows)

    def spec(self, wildcards: Wildcards) -> str:
        """Everything that the part of a job depends on, as JSON."""
        return self._of(wildcards).spec

    def threads(self, wildcards: Wildcards) -> int:
        """Threads of a job [1]."""
        return 2 if self._of(wildcards).large and not self._many_large else 1

    def memory_mb(self, wildcards: Wildcards) -> int:
        """Memory of a job [MB]."""
        return self._of(wildcards).memory_mb(self.threads(wildcards))


def table_parts(sweep: Sweep) -> Iterator[Part]:
    """The parts of the table of a sweep of operations."""
    by_chip = sweep.rows_by_chip()
    names, rows = list(by_chip), list(by_chip.values())
    code = code_digest(*ROWS, *WRITING)
    for number, (start, stop, units) in enumerate(cuts(rows, sweep.config.rows_per_part)):
        recipe = recipe_of(sweep, [names[unit] for unit in units])
        first = sum(rows[: units.start])
        place = {"start": start - first, "stop": stop - first, "row": start, "rows": stop - start}
        spec = as_param({"code": code, **recipe, **place})
        yield Part(TABLES, sweep.name, number, start, stop, stop - start, spec)


def model_parts(sweep: ModelSweep, folder: str) -> Iterator[Part]:
    """The parts of a table of a sweep of whole models: its rows, or their kernels.

    Args:
        sweep: The sweep.
        folder: `MODELS` or `LAYERS`; kernels are cut between rows of the sweep.
    """
    units = _units(sweep, folder)
    most = max((unit.each for unit in units), default=1)
    rows_per_part = max(sweep.config.rows_per_part // most, 1)
    pieces = cuts([unit.rows for unit in units], rows_per_part, ROWS_TOGETHER // most)
    code, row = code_digest(*MODEL_ROWS, *WRITING), 0
    for number, (start, stop, indices) in enumerate(pieces):
        own, earlier = units[indices.start : indices.stop], units[: indices.start]
        models, chips = {unit.model for unit in own}, {unit.chip for unit in own}
        first = sum(unit.rows for unit in earlier)
        recipe = model_recipe(
            sweep,
            [name for name in sweep.models if name in models],
            [name for name in sweep.config.chips if name in chips],
        )
        offset = sum(u.rows for u in earlier if u.model in models and u.chip in chips) - first
        rows = _rows_within(own, start - first, stop - first)
        place = {"start": start + offset, "stop": stop + offset, "row": row, "rows": rows}
        spec = as_param({"code": code, **recipe, **place})
        yield Part(folder, sweep.name, number, start, stop, rows, spec)
        row += rows


class Unit(NamedTuple):
    """Consecutive rows of a sweep of models, of one model and chip.

    Attributes:
        model, chip: Their names.
        rows: Rows of the sweep [1].
        each: Rows of the table for each of them [1].
    """

    model: str
    chip: str
    rows: int
    each: int


def _units(sweep: ModelSweep, folder: str) -> list[Unit]:
    """The rows of a sweep by model, phase, split and chip, in order."""
    units = []
    for block in sweep.blocks:
        of_case = sweep.rows_of(block) // len(block.cases)
        model, kernels = block.cases[0].name, len(block.cases[0].kernels)
        for chip, cases in groupby(block.cases, key=lambda case: case.chip):
            rows = of_case * sum(1 for _ in cases)
            units.append(Unit(model, chip, rows, kernels if folder == LAYERS else 1))
    return units


def _rows_within(units: Iterable[Unit], start: int, stop: int) -> int:
    """Rows of the table for rows `start` to `stop` of units [1]."""
    rows = 0
    for unit in units:
        rows += unit.each * (min(stop, unit.rows) - max(start, 0))
        start, stop = start - unit.rows, stop - unit.rows
    return rows


def cuts(
    rows: Sequence[int], most: int, together: int = ROWS_TOGETHER
) -> Iterator[tuple[int, int, range]]:
    """Slices of a table.

    Args:
        rows: Rows of each of its units, such as those of a chip [1].
        most: Rows of a slice at most [1].
        together: Units share a slice up to this many rows [1].

    Yields:
        Start and stop of a slice, and the units that it has.
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


def as_param(recipe: object) -> str:
    """JSON that Snakemake passes on unchanged: no text in it reads as a wildcard or an HTML tag."""
    text = json.dumps(recipe, ensure_ascii=False, separators=(",", ":"))
    return BRACE_IN_STRING.sub(r"\\u007b", text.replace("<", r"\u003c"))


@cache
def code_digest(*parts: str) -> str:
    """A digest of the code that an output depends on.

    Args:
        parts: Sub-packages and modules, by their paths in the package.
    """
    digest = hashlib.sha256(__version__.encode())
    root = Path(__file__).parents[1]
    files = {
        file
        for part in parts
        for file in ([root / part] if part.endswith(".py") else (root / part).rglob("*.py"))
    }
    for file in sorted(files - {root / WORDING}):
        digest.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:16]
