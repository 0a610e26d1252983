"""A config cut into parts: slices of tables that are jobs of their own, each with everything it depends on as plain text."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rooflines.basics.errors import RooflinesError, placed
from rooflines.basics.version import __version__
from rooflines.settings.charts import MODULES, OF_ROWS
from rooflines.sweep.recipes import recipe_of, skipped_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rooflines.charts.choice import Spec
    from rooflines.config import Config
    from rooflines.sweep.sweep import Sweep

__all__ = ["Part", "Plan", "as_param", "code_digest", "plan"]

ROWS = ("basics", "model", "catalogue", "settings", "sweep")
"""The sub-packages that decide what stands in a table, and what is skipped."""

THRESHOLDS = (*ROWS, "critical")
"""Those that decide thresholds."""

WRITING = ("run/jobs.py", "results/tables.py")
"""The modules that put numbers into files."""

DRAWING = ("charts/kit", "charts/families.py", "results/tables.py")
"""What makes pictures of charts and writes their files."""

ROWS_TOGETHER = 4_000_000
"""Rows that chips share a part up to [1]: few enough that an edit of one chip costs seconds, enough that a job's start, which takes as
long as a million rows, does not weigh."""

LARGE_ROWS, MANY_LARGE = 8_000_000, 4
"""Rows from which on a part is worth two threads [1]: they share its work evenly, but its start takes one. Where there are this many such
parts, one thread each is better: they fill the cores by themselves, their starts too."""

MEMORY_MB, MEMORY_MB_PER_THREAD, MEMORY_MB_PER_MILLION, MILLIONS_IN_MEMORY = 300, 150, 50, 4
"""What a job needs [MB]: the interpreter with polars, what a thread works on, and what waits to be written, which the writer bounds."""

NOT_PLAIN = re.compile(r'<|\{(?!["}])')
"""What is escaped in a job's parameters: `<`, and braces inside strings; a brace of JSON's own is followed by a quote or a brace."""

WORDING = "basics/errors.py"
"""The module that decides what is said, not what is computed."""

MOST_CHARACTERS = 2**27
"""Characters of the specs of all parts of a run [1]; Snakemake holds all of them, and each has its sweep's shapes."""


class Wildcards(Protocol):
    """What Snakemake tells of a job: which part of which sweep."""

    sweep: str
    part: str


class FamilyWildcards(Protocol):
    """What Snakemake tells of a job: which family of charts."""

    family: str


@dataclass(frozen=True)
class Part:
    """A slice of a sweep's table.

    Attributes:
        sweep: The sweep's name.
        number: The part's, from 0.
        start, stop: Its rows in the table, half open [1].
        spec: Everything it depends on, as JSON.
    """

    sweep: str
    number: int
    start: int
    stop: int
    spec: str

    @property
    def rows(self) -> int:
        """Rows in it [1]."""
        return self.stop - self.start

    @property
    def large(self) -> bool:
        """Whether several threads are worth giving to it."""
        return self.rows >= LARGE_ROWS

    def memory_mb(self, threads: int) -> int:
        """Memory that its job needs at most [MB]; from a few million rows on it is the same for any number."""
        waiting = MEMORY_MB_PER_MILLION * min(-(-self.rows // 1_000_000), MILLIONS_IN_MEMORY)
        return MEMORY_MB + MEMORY_MB_PER_THREAD * threads + waiting

    @property
    def name(self) -> str:
        """Its path below the tables, without the ending."""
        return f"{self.sweep}/part-{self.number:05d}"


@dataclass(frozen=True)
class Plan:
    """All that a config asks the workflow to make.

    Attributes:
        parts: The parts of all tables, in order.
        thresholds_spec: Everything that the thresholds depend on, as JSON.
        skipped_spec: The list of what is skipped, as JSON.
        family_specs: Everything that each family of charts depends on, as JSON, by its name.
    """

    parts: tuple[Part, ...]
    thresholds_spec: str
    skipped_spec: str
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
        """The parts' paths below the tables, without the ending."""
        return list(self._by_name)

    def part_spec(self, wildcards: Wildcards) -> str:
        """What the part of a job depends on."""
        return self._part(wildcards).spec

    def part_threads(self, wildcards: Wildcards) -> int:
        """Threads for the part of a job [1]."""
        return 2 if self._part(wildcards).large and not self._many_large else 1

    def part_memory_mb(self, wildcards: Wildcards) -> int:
        """Memory for the part of a job [MB]."""
        return self._part(wildcards).memory_mb(self.part_threads(wildcards))

    def chart_families(self) -> list[str]:
        """The families of charts that are drawn."""
        return list(self.family_specs)

    def family_parts(self, wildcards: FamilyWildcards) -> list[str]:
        """The parts of tables that the charts of a family are drawn from, as in `part_names`; many need thresholds alone."""
        charts = json.loads(self.family_specs[wildcards.family])["charts"]
        sweeps = {chart["sweep"] for chart in charts if chart["chart"] in OF_ROWS}
        return [part.name for part in self.parts if part.sweep in sweeps]

    def family_spec(self, wildcards: FamilyWildcards) -> str:
        """What the family of a job depends on."""
        return self.family_specs[wildcards.family]

    def family_digest(self, wildcards: FamilyWildcards) -> str:
        """A digest of that."""
        return hashlib.sha256(self.family_spec(wildcards).encode()).hexdigest()


def plan(config: Config) -> Plan:
    """The parts of a config's tables.

    A part begins where a chip begins, unless a chip alone has more rows than a part may have: so an edit of one chip leaves the
    parts of the others as they are. Chips share a part only up to `ROWS_TOGETHER`.

    Args:
        config: The config.

    Returns:
        The parts; nothing of them is computed yet.

    Raises:
        RooflinesError: There are so many that no computer holds their descriptions.
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
    return Plan(tuple(parts), thresholds, skipped, _family_specs(config))


def _bounded(parts: Iterable[Part]) -> Iterator[Part]:
    """Refuse to hold more than a computer can."""
    characters = 0
    for part in parts:
        characters += len(part.spec)
        if characters > MOST_CHARACTERS:
            problem = f"makes so many parts that their descriptions have more than {MOST_CHARACTERS:,} characters"
            raise RooflinesError(
                f"sweeps.{part.sweep}.rows_per_part",
                problem,
                "choose a larger number, or fewer shapes",
            )
        yield part


def _family_specs(config: Config) -> dict[str, str]:
    """What each family of charts depends on: its charts, the code that draws them, and what decides the numbers in them."""
    families: dict[str, list[Spec]] = {}
    for chart in config.charts:
        families.setdefault(chart.family, []).append(chart)
    numbers = [code_digest(*ROWS, *WRITING), code_digest(*THRESHOLDS, *WRITING)]
    return {
        family: as_param(
            {
                "code": [code_digest(*MODULES[family], *DRAWING), *numbers],
                "data": hashlib.sha256(
                    "".join(
                        as_param(recipe_of(config.sweep(c.sweep), c.chips)) for c in charts
                    ).encode()
                ).hexdigest()[:16],
                "charts": [chart.plain() for chart in charts],
            }
        )
        for family, charts in families.items()
    }


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
    """Slices of a sweep's rows of at most `most` rows, with the chips that are in each."""
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
    """Plain data as JSON that Snakemake passes on unchanged: no name or note in it reads as a wildcard, or as a tag in a report's HTML."""
    text = json.dumps(recipe, ensure_ascii=False, separators=(",", ":"))
    return NOT_PLAIN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@cache
def code_digest(*parts: str) -> str:
    """A digest of the code that decides what stands in a file.

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
