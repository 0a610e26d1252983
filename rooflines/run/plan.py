"""The plan of a run: tables in parts, one job each, with everything a job depends on as JSON."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rooflines.basics.errors import RooflinesError, placed
from rooflines.basics.numbers import exact
from rooflines.basics.version import __version__
from rooflines.charts import registry
from rooflines.models.table import shape_rows
from rooflines.sweep.recipes import recipe_of, skipped_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.charts.chart import Spec
    from rooflines.config import Config
    from rooflines.sweep.sweep import Sweep

__all__ = ["Part", "Plan", "as_param", "code_digest", "plan"]

ROWS = ("basics", "model", "catalogue", "calibration", "settings", "sweep")
"""The sub-packages that the rows of tables, and the list of what is skipped, depend on."""

THRESHOLDS = (*ROWS, "critical")
"""Those that thresholds depend on."""

MODELS = ("basics", "model", "catalogue", "models", "results/model_shapes.py")
"""What the shapes of models depend on."""

WRITING = ("run/jobs.py", "results/tables.py")
"""The modules that put numbers into files."""

DRAWING = (
    "charts/kit",
    "charts/cells.py",
    "charts/comparing.py",
    "charts/families.py",
    "charts/frames.py",
    "charts/models.py",
    "charts/offers.py",
    "charts/results.py",
    "results/tables.py",
)
"""What makes pictures of charts and writes their files."""

ROWS_TOGETHER = 4_000_000
"""Chips share a part up to this many rows [1].

An edit of one chip then costs seconds, and the start of a job, as long as a million rows, is small.
"""

LARGE_ROWS = 8_000_000
"""A part of this many rows gets two threads [1]; a smaller one spends too much time starting."""

MANY_LARGE = 4
"""From this many large parts on, each gets one thread: together they fill the cores [1]."""

MEMORY_MB, MEMORY_MB_PER_THREAD = 300, 150
"""Memory of a job: of the interpreter with polars, and of the data of each thread [MB]."""

MEMORY_MB_PER_MILLION, MILLIONS_IN_MEMORY = 50, 4
"""Memory for a million rows that wait to be written [MB], and how many millions may wait [1]."""

ESCAPED = re.compile(r'<|\{(?!["}])')
"""Characters to escape in a job's parameters: `<`, and braces inside strings.

A brace of JSON itself is followed by a quote or another brace.
"""

WORDING = "basics/errors.py"
"""The module of wording: no number depends on it."""

MOST_CHARACTERS = 2**27
"""Limit on the specs of all parts of a run: Snakemake holds all of them in memory [1]."""


class Wildcards(Protocol):
    """The wildcards of a job that makes a part of a table."""

    sweep: str
    part: str


class FamilyWildcards(Protocol):
    """The wildcards of a job that draws a family of charts."""

    family: str


@dataclass(frozen=True)
class Part:
    """A slice of a sweep's table.

    Attributes:
        sweep: The sweep's name.
        number: The part's number, from 0.
        start, stop: Its rows in the table, as a half-open range [1].
        spec: Everything it depends on, as JSON.
    """

    sweep: str
    number: int
    start: int
    stop: int
    spec: str

    @property
    def rows(self) -> int:
        """Rows of the part [1]."""
        return self.stop - self.start

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
        """Its path below the tables, without the suffix."""
        return f"{self.sweep}/part-{self.number:05d}"


@dataclass(frozen=True)
class Plan:
    """All outputs of a config.

    Attributes:
        parts: The parts of all tables, in order.
        thresholds_spec: Everything that the thresholds depend on, as JSON.
        skipped_spec: The list of what is skipped, as JSON.
        summary_spec: Everything that the summary depends on, as JSON.
        model_shapes_spec: The models of the catalogue, as JSON.
        family_specs: Everything that each family of charts depends on, as JSON, by its name.
    """

    parts: tuple[Part, ...]
    thresholds_spec: str
    skipped_spec: str
    summary_spec: str
    model_shapes_spec: str
    family_specs: Mapping[str, str]

    @cached_property
    def _by_name(self) -> Mapping[str, Part]:
        return {part.name: part for part in self.parts}

    @cached_property
    def _many_large(self) -> bool:
        return sum(part.large for part in self.parts) >= MANY_LARGE

    def _part(self, wildcards: Wildcards) -> Part:
        return self._by_name[f"{wildcards.sweep}/part-{wildcards.part}"]

    def part_names(self) -> list[str]:
        """The paths of parts below the tables, without the suffix."""
        return list(self._by_name)

    def part_spec(self, wildcards: Wildcards) -> str:
        """Everything that the part of a job depends on, as JSON."""
        return self._part(wildcards).spec

    def part_threads(self, wildcards: Wildcards) -> int:
        """Threads of a job [1]."""
        return 2 if self._part(wildcards).large and not self._many_large else 1

    def part_memory_mb(self, wildcards: Wildcards) -> int:
        """Memory of a job [MB]."""
        return self._part(wildcards).memory_mb(self.part_threads(wildcards))

    def chart_families(self) -> list[str]:
        """The families of charts that are drawn."""
        return list(self.family_specs)

    def family_parts(self, wildcards: FamilyWildcards) -> list[str]:
        """The parts of tables that the charts of a family read; many read thresholds alone."""
        charts = json.loads(self.family_specs[wildcards.family])["charts"]
        kinds = registry.charts()
        sweeps = {chart["sweep"] for chart in charts if kinds[chart["chart"]].reads}
        return [part.name for part in self.parts if part.sweep in sweeps]

    def family_spec(self, wildcards: FamilyWildcards) -> str:
        """Everything that the family of a job depends on, as JSON."""
        return self.family_specs[wildcards.family]

    def family_digest(self, wildcards: FamilyWildcards) -> str:
        """The SHA-256 of `family_spec`."""
        return hashlib.sha256(self.family_spec(wildcards).encode()).hexdigest()


def plan(config: Config) -> Plan:
    """The outputs of a config, and what each depends on; nothing is computed yet.

    A part begins where a chip begins, unless one chip has more rows than a part may have. So an
    edit of one chip leaves the parts of the others valid. Chips share a part up to `ROWS_TOGETHER`.

    Args:
        config: The config.

    Raises:
        RooflinesError: The specs of all parts are too large for memory.
    """
    with placed(file=config.file):
        parts = list(
            _bounded(part for sweep in config.sweeps.values() for part in _parts_of(sweep))
        )
    sweeps = list(config.sweeps.values())
    recipes = [recipe_of(sweep, sweep.config.chips) for sweep in sweeps]
    thresholds = as_param({"code": code_digest(*THRESHOLDS, *WRITING), "sweeps": recipes})
    skipped = as_param(
        {"code": code_digest(*ROWS, *WRITING), "rows": skipped_records(sweeps), "sweeps": recipes}
    )
    summary = as_param(
        {
            "code": code_digest(*THRESHOLDS, *WRITING, "results/summary.py"),
            "of": [_summarized(sweep, parts) for sweep in sweeps],
            "sweeps": recipes,
        }
    )
    shapes = as_param({"code": code_digest(*MODELS, *WRITING), "models": shape_rows()})
    return Plan(tuple(parts), thresholds, skipped, summary, shapes, _family_specs(config))


def _summarized(sweep: Sweep, parts: Sequence[Part]) -> dict[str, object]:
    """What the summary of a sweep reads: its parts, and the thresholds along one axis."""
    return {
        "sweep": sweep.name,
        "axis": next((dim for dim in sweep.op.dims if dim in sweep.solved), None),
        "share": float(max(map(exact, sweep.config.shares))),
        "parts": [part.name for part in parts if part.sweep == sweep.name],
    }


def _bounded(parts: Iterable[Part]) -> Iterator[Part]:
    """Refuse specs of more than `MOST_CHARACTERS`."""
    characters = 0
    for part in parts:
        characters += len(part.spec)
        if characters > MOST_CHARACTERS:
            place = f"sweeps.{part.sweep}.rows_per_part"
            problem = (
                "makes so many parts that their descriptions have more than "
                f"{MOST_CHARACTERS:,} characters"
            )
            raise RooflinesError(place, problem, "choose a larger number, or fewer shapes")
        yield part


def _family_specs(config: Config) -> dict[str, str]:
    """What each family of charts depends on: its charts, their code, and their numbers."""
    families: dict[str, list[Spec]] = {}
    for chart in config.charts:
        families.setdefault(chart.family, []).append(chart)
    numbers = [code_digest(*ROWS, *WRITING), code_digest(*THRESHOLDS, *WRITING)]
    specs = {}
    for family, charts in families.items():
        recipes = [as_param(recipe_of(config.sweep(c.sweep), c.chips)) for c in charts]
        specs[family] = as_param(
            {
                "code": [code_digest(*registry.modules_of(family), *DRAWING), *numbers],
                "data": hashlib.sha256("".join(recipes).encode()).hexdigest()[:16],
                "charts": [chart.plain() for chart in charts],
            }
        )
    return specs


def _parts_of(sweep: Sweep) -> Iterator[Part]:
    """The parts of one sweep."""
    for number, (start, stop, chips) in enumerate(_cuts(sweep, sweep.config.rows_per_part)):
        first = offset_of(sweep, chips[0])
        recipe = {
            "code": code_digest(*ROWS, *WRITING),
            **recipe_of(sweep, chips),
            "start": start - first,
            "stop": stop - first,
            "row": start,
        }
        yield Part(sweep.name, number, start, stop, as_param(recipe))


def _cuts(sweep: Sweep, most: int) -> Iterator[tuple[int, int, list[str]]]:
    """Slices of at most `most` rows of a sweep: start, stop, and the chips in each."""
    start, rows = 0, 0
    chips: list[str] = []
    for chip, of_chip in sweep.rows_by_chip().items():
        if rows and rows + of_chip > min(most, ROWS_TOGETHER):
            yield start, start + rows, chips
            start, rows, chips = start + rows, 0, []
        rows, chips = rows + of_chip, [*chips, chip]
        if rows > most:
            pieces = -(-rows // most)
            for piece in range(pieces):
                yield start + rows * piece // pieces, start + rows * (piece + 1) // pieces, chips
            start, rows, chips = start + rows, 0, []
    if rows:
        yield start, start + rows, chips


def offset_of(sweep: Sweep, chip: str) -> int:
    """The row at which a chip begins [1]."""
    offset = 0
    for name, rows in sweep.rows_by_chip().items():
        if name == chip:
            break
        offset += rows
    return offset


def as_param(recipe: object) -> str:
    """JSON that Snakemake passes on unchanged: no text in it reads as a wildcard or an HTML tag."""
    text = json.dumps(recipe, ensure_ascii=False, separators=(",", ":"))
    return ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


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
