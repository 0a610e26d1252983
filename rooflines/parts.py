"""A config cut into parts: slices of tables that are jobs of their own, each with everything it depends on as plain text."""

from __future__ import annotations

import ast
import hashlib
import json
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rooflines.charts.config import MODULES
from rooflines.operation import OPERANDS
from rooflines.sweep import Sweep
from rooflines.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.charts.choice import Spec
    from rooflines.config import Config
    from rooflines.resources import Plain

__all__ = ["Part", "Plan", "code_digest", "plan", "sweep_of"]

ROWS, THRESHOLDS, SKIPPED = "table_rows", "critical", "sweep"
"""The modules that make rows, thresholds, and the list of what is skipped; what they import decides what stands in those files."""

DRAWING = ("charts.render",)
"""The module that makes pictures of charts."""

WRITING = ("jobs", "parts", "tables", "dictionary")
"""The modules that put it into files."""

WORDING = frozenset({"errors"})
"""Modules that decide what is said, not what is computed."""


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
    def name(self) -> str:
        """Its path below the tables, without the ending."""
        return f"{self.sweep}/part-{self.number:05d}"


@dataclass(frozen=True)
class Plan:
    """All that a config asks the workflow to make.

    Attributes:
        parts: The parts of all tables, in order.
        thresholds_spec: Everything that the thresholds depend on, as JSON.
        skipped_spec: Everything that the list of what is skipped depends on, as JSON.
        family_specs: Everything that each family of charts depends on, as JSON, by its name.
    """

    parts: tuple[Part, ...]
    thresholds_spec: str
    skipped_spec: str
    family_specs: Mapping[str, str]

    @cached_property
    def _specs(self) -> Mapping[str, str]:
        return {part.name: part.spec for part in self.parts}

    def part_names(self) -> list[str]:
        """The parts' paths below the tables, without the ending."""
        return list(self._specs)

    def part_spec(self, wildcards: Wildcards) -> str:
        """What the part of a job depends on."""
        return self._specs[f"{wildcards.sweep}/part-{wildcards.part}"]

    def chart_families(self) -> list[str]:
        """The families of charts that are drawn."""
        return list(self.family_specs)

    def family_spec(self, wildcards: FamilyWildcards) -> str:
        """What the family of a job depends on."""
        return self.family_specs[wildcards.family]


def plan(config: Config) -> Plan:
    """The parts of a config's tables.

    A part begins where a chip begins, unless a chip alone has more rows than a part may have: so an edit of one chip leaves the
    parts of the others as they are.

    Args:
        config: The config.

    Returns:
        The parts; nothing of them is computed yet.
    """
    parts = [part for sweep in config.sweeps.values() for part in _parts_of(sweep)]
    recipes = [_recipe(sweep, sweep.config["chips"]) for sweep in config.sweeps.values()]
    thresholds, skipped = (_text({"code": code_digest(module), "sweeps": recipes}) for module in (THRESHOLDS, SKIPPED))
    return Plan(tuple(parts), thresholds, skipped, _family_specs(config))


def _family_specs(config: Config) -> dict[str, str]:
    """What each family of charts depends on: its charts, the code that draws them, and what decides the numbers in them."""
    families: dict[str, list[Spec]] = {}
    for chart in config.charts:
        families.setdefault(chart.family, []).append(chart)
    numbers = [code_digest(ROWS), code_digest(THRESHOLDS)]
    return {
        family: _text(
            {
                "code": [code_digest(*MODULES[family], *DRAWING, writing=("charts.families",)), *numbers],
                "data": hashlib.sha256("".join(_text(_recipe(config.sweep(c.sweep), c.chips)) for c in charts).encode()).hexdigest()[:16],
                "charts": [chart.plain() for chart in charts],
            }
        )
        for family, charts in families.items()
    }


def _parts_of(sweep: Sweep) -> Iterator[Part]:
    """The parts of one sweep."""
    for number, (start, stop, chips) in enumerate(_cuts(sweep, sweep.config["rows_per_part"])):
        first = offset_of(sweep, chips[0])
        recipe = {"code": code_digest(ROWS), **_recipe(sweep, chips), "start": start - first, "stop": stop - first, "row": start}
        yield Part(sweep.name, number, start, stop, _text(recipe))


def _cuts(sweep: Sweep, most: int) -> Iterator[tuple[int, int, list[str]]]:
    """Slices of a sweep's rows of at most `most` rows, with the chips that are in each."""
    start, rows = 0, 0
    chips: list[str] = []
    for chip, of_chip in sweep.rows_by_chip().items():
        if rows and rows + of_chip > most:
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


def _recipe(sweep: Sweep, chips: Sequence[str]) -> dict[str, Any]:
    """All that decides some chips' rows of a sweep, as plain data."""
    combinations = {name: sweep.dtypes["combinations"][name] for name in sweep.config["dtypes"] if isinstance(name, str)}
    written_out = [given for given in sweep.config["dtypes"] if not isinstance(given, str)]
    used = {parts[key] for parts in (*combinations.values(), *written_out) for key in (*OPERANDS, "compute")}
    formats = {name: form for name, form in sweep.dtypes["formats"].items() if name in used}
    return {
        "sweep": sweep.name,
        "config": {**sweep.config, "chips": list(chips)},
        "chips": {chip: sweep.chips[chip] for chip in chips},
        "dtypes": {"formats": formats, "combinations": combinations},
    }


def _text(recipe: Plain) -> str:
    return json.dumps(recipe, ensure_ascii=False, separators=(",", ":"))


def sweep_of(recipe: Plain) -> Sweep:
    """The sweep that a recipe describes."""
    return Sweep.of(recipe["sweep"], recipe["config"], recipe["chips"], recipe["dtypes"])


@cache
def code_digest(*modules: str, writing: Sequence[str] = WRITING) -> str:
    """A digest of the code that decides what stands in a file.

    Args:
        modules: The modules that compute it, such as `table_rows` or `charts.roofline`; with all that they import.
        writing: The modules that put it into files.
    """
    digest = hashlib.sha256(__version__.encode())
    waiting, sources = list(modules), {name: _source(name) for name in writing}
    while waiting:
        module = waiting.pop()
        if module in sources or module in WORDING:
            continue
        sources[module] = _source(module)
        imports = [node.module for node in ast.parse(sources[module]).body if isinstance(node, ast.ImportFrom)]
        waiting += [name.removeprefix("rooflines.") for name in imports if name and name.startswith("rooflines.")]
    for module in sorted(sources):
        digest.update(sources[module])
    return digest.hexdigest()[:16]


def _source(module: str) -> bytes:
    """The text of one of the package's modules."""
    return Path(__file__).parent.joinpath(*module.split(".")).with_suffix(".py").read_bytes()
