"""The plan of a run: tables in parts, one job each, with everything a job depends on as JSON."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from rooflines.basics.errors import RooflinesError, placed
from rooflines.basics.numbers import exact
from rooflines.catalogue.chips import chip_sources
from rooflines.charts import registry
from rooflines.models.table import shape_rows
from rooflines.results.folders import (
    LAYERS,
    MEASURED,
    MEASURED_SUMMARIES,
    MODEL_THRESHOLDS,
    MODELS,
    TABLES,
)
from rooflines.run.parts import (
    MODEL_ROWS,
    ROWS,
    WRITING,
    Part,
    Parts,
    as_param,
    code_digest,
    model_parts,
    table_parts,
)
from rooflines.serving.recipes import model_recipe, skipped_step_records
from rooflines.settings.model_sweeps import AXES
from rooflines.site.digest import bundle_digest
from rooflines.sweep.recipes import recipe_of, skipped_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.charts.chart import Spec
    from rooflines.config import Config
    from rooflines.serving.sweep import ModelSweep
    from rooflines.sweep.sweep import Sweep

THRESHOLDS = (*ROWS, "critical")
"""Those that thresholds depend on."""

MODEL_SHAPES = ("basics", "model", "catalogue", "models", "results/model_shapes.py")
"""What the shapes of models depend on."""

SHEETS = (
    *MODEL_ROWS,
    "critical",
    "results/model_shapes.py",
    "site/chip_page.py",
    "site/text.py",
    "workbook",
)
"""What the sheets of the workbook depend on."""

MEASURED_ROWS = (*MODEL_ROWS, "fits", "measured", "run/measured_jobs.py")
"""What timings joined with the model depend on."""

DRAWING = (
    "charts/kit",
    "charts/basis.py",
    "charts/cells.py",
    "charts/claims.py",
    "charts/comparing.py",
    "charts/contour_rows.py",
    "charts/contours.py",
    "charts/every_chip.py",
    "charts/families.py",
    "charts/frames.py",
    "charts/job.py",
    "charts/measured.py",
    "charts/measured_results.py",
    "charts/models.py",
    "charts/offers.py",
    "charts/planes.py",
    "charts/results.py",
    "charts/room.py",
    "results/tables.py",
)
"""What makes pictures of charts and writes their files."""

CHARTS_PER_PROCESS = 3
"""Charts that are worth a process of their own: its start takes as long as half a chart [1]."""

MOST_PUBLISHED_ROWS = 50_000
"""Rows of whole models up to which the site offers their tables [1]; as CSV about 5 MB."""

MOST_CHARACTERS = 2**27
"""Limit on the specs of all parts of a run: Snakemake holds all of them in memory [1]."""


class MeasurementWildcards(Protocol):
    """The wildcards of a job that joins a set of timings with the model."""

    measurement: str


@dataclass(frozen=True)
class Plan:
    """All outputs of a config.

    Attributes:
        tables: The parts of the tables of operations.
        models: The parts of the tables of whole models.
        layers: The parts of the tables of their kernels.
        thresholds_spec: Everything that the thresholds depend on, as JSON.
        model_thresholds_spec: Everything that those of whole models depend on, as JSON.
        skipped_spec: The list of what is skipped, as JSON.
        summary_spec: Everything that the summary depends on, as JSON.
        model_shapes_spec: The models of the catalogue, as JSON.
        workbook_spec: What the workbook depends on besides its inputs, as JSON.
        measured_specs: Everything that each set of timings depends on, as JSON, by its name.
        measured_summary_spec: Everything that their summary depends on, as JSON.
        family_specs: Everything that each family of charts depends on, as JSON, by its name.
        bundle_spec: What the site depends on besides its inputs, as JSON.
    """

    tables: Parts
    models: Parts
    layers: Parts
    thresholds_spec: str
    model_thresholds_spec: str
    skipped_spec: str
    summary_spec: str
    model_shapes_spec: str
    workbook_spec: str
    measured_specs: Mapping[str, str]
    measured_summary_spec: str
    family_specs: Mapping[str, str]
    bundle_spec: str

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of all tables."""
        return tuple(part for parts in self.by_folder.values() for part in parts.all)

    def part_paths(self) -> list[str]:
        """Their paths below the results."""
        return [part.path for part in self.parts]

    @property
    def by_folder(self) -> dict[str, Parts]:
        """The parts in each folder of tables."""
        return {TABLES: self.tables, MODELS: self.models, LAYERS: self.layers}

    @property
    def indexes(self) -> dict[str, str]:
        """The list of the parts in each folder of tables, as JSON."""
        return {folder: parts.index_spec() for folder, parts in self.by_folder.items()}

    def model_thresholds(self) -> list[str]:
        """The files with thresholds of whole models; none without a sweep of them."""
        return [MODEL_THRESHOLDS] if self.models.all else []

    def measured_names(self) -> list[str]:
        """The sets of timings."""
        return list(self.measured_specs)

    def measured_paths(self) -> list[str]:
        """Their tables, below the results."""
        return [f"{MEASURED}/{name}.parquet" for name in self.measured_specs]

    def measured_summaries(self) -> list[str]:
        """Their summaries; none without a set."""
        return list(MEASURED_SUMMARIES) if self.measured_specs else []

    def measured_spec(self, wildcards: MeasurementWildcards) -> str:
        """Everything that the set of a job depends on, as JSON."""
        return self.measured_specs[wildcards.measurement]

    def published_models(self) -> list[str]:
        """The files of whole models that the site offers: large tables are left out."""
        rows = sum(part.rows for part in self.models.all)
        tables = [part.path for part in self.models.all] if rows <= MOST_PUBLISHED_ROWS else []
        return [*self.model_thresholds(), *tables]

    def summarized_parts(self) -> list[str]:
        """The tables that the summary counts."""
        return [part.path for part in (*self.tables.all, *self.models.all)]

    def chart_families(self) -> list[str]:
        """The families of charts that are drawn."""
        return list(self.family_specs)

    def charts_spec(self) -> str:
        """Everything that the charts depend on, as JSON."""
        families = {name: json.loads(spec) for name, spec in self.family_specs.items()}
        return as_param({"families": families})

    def charts_digest(self) -> str:
        """The SHA-256 of `charts_spec`."""
        return hashlib.sha256(self.charts_spec().encode()).hexdigest()

    def charted(self) -> list[JSON]:
        """The charts that are drawn."""
        return [
            chart for spec in self.family_specs.values() for chart in json.loads(spec)["charts"]
        ]

    def charted_parts(self) -> list[str]:
        """The tables and timings that charts read, by path; many read thresholds alone."""
        kinds = registry.charts()
        reading = [chart for chart in self.charted() if kinds[chart["chart"]].reads]
        sweeps = {sweep for chart in reading for sweep in (chart["sweep"], *chart["others"])}
        read = (*self.tables.all, *self.models.all)
        measurements = (chart["measurements"] for chart in self.charted())
        timings = dict.fromkeys(name for name in measurements if name)
        return [
            *(part.path for part in read if part.sweep in sweeps),
            *(f"{MEASURED}/{name}.parquet" for name in timings),
        ]

    def drawing_threads(self) -> int:
        """Processes that draw the charts [1]; Snakemake starts no more than there are cores."""
        return max(1, -(-len(self.charted()) // CHARTS_PER_PROCESS))


def plan(config: Config) -> Plan:
    """The outputs of a config, and what each depends on; nothing is computed yet.

    Args:
        config: The config.

    Raises:
        RooflinesError: The specs of all parts are too large for memory.
    """
    sweeps, model_sweeps = list(config.sweeps.values()), list(config.model_sweeps.values())
    with placed(file=config.file):
        tables, models, layers = _parts(sweeps, model_sweeps)
    recipes = [recipe_of(sweep, sweep.config.chips) for sweep in sweeps]
    of_models = [model_recipe(sweep, sweep.models, sweep.config.chips) for sweep in model_sweeps]
    thresholds = as_param({"code": code_digest(*THRESHOLDS, *WRITING), "sweeps": recipes})
    model_thresholds = as_param({"code": code_digest(*MODEL_ROWS, *WRITING), "sweeps": of_models})
    skipped = as_param(
        {
            "code": code_digest(*MODEL_ROWS, *WRITING),
            "rows": [*skipped_records(sweeps), *skipped_step_records(model_sweeps)],
            "sweeps": [*recipes, *of_models],
        }
    )
    summary = as_param(
        {
            "code": code_digest(*MODEL_ROWS, *THRESHOLDS, *WRITING, "results/summary.py"),
            "of": [
                *(_summarized(sweep, tables.all) for sweep in sweeps),
                *(_summarized_steps(sweep, models.all) for sweep in model_sweeps),
            ],
            "sweeps": [*recipes, *of_models],
        }
    )
    shapes = as_param({"code": code_digest(*MODEL_SHAPES, *WRITING), "models": shape_rows()})
    sources = hashlib.sha256(json.dumps(chip_sources(), default=str).encode()).hexdigest()
    workbook = as_param({"code": code_digest(*SHEETS, *WRITING), "sources": sources[:16]})
    measured, measured_summary = _measured_specs(config)
    site = {
        "code": bundle_digest(),
        "site": config.site,
        "config": config.plain,
        "tables": _listed_tables(sweeps, tables.all) if "tables" in config.site else [],
    }
    return Plan(
        tables=tables,
        models=models,
        layers=layers,
        thresholds_spec=thresholds,
        model_thresholds_spec=model_thresholds,
        skipped_spec=skipped,
        summary_spec=summary,
        model_shapes_spec=shapes,
        workbook_spec=workbook,
        measured_specs=measured,
        measured_summary_spec=measured_summary,
        family_specs=_family_specs(config),
        bundle_spec=as_param(site),
    )


def _listed_tables(sweeps: Iterable[Sweep], parts: Sequence[Part]) -> list[JSON]:
    """The tables of sweeps of operations, as the site lists them."""
    from rooflines.sweep.table import stored_columns  # noqa: PLC0415, polars is slow to import

    listed: list[JSON] = []
    for sweep in sweeps:
        own = [part for part in parts if part.sweep == sweep.name]
        listed.append(
            {
                "sweep": sweep.name,
                "rows": sum(part.rows for part in own),
                "columns": len(stored_columns(sweep)),
                "files": [f"{part.name}.parquet" for part in own],
            }
        )
    return listed


def _measured_specs(config: Config) -> tuple[dict[str, str], str]:
    """What each set of timings, and the summary of all, depend on."""
    code = code_digest(*MEASURED_ROWS, *WRITING)
    recipes = config.measured_recipes()
    specs = {
        recipe["measurement"]: as_param({"code": code, "measurements": [recipe]})
        for recipe in recipes
    }
    return specs, as_param({"code": code, "measurements": recipes})


def _parts(
    sweeps: Iterable[Sweep], model_sweeps: Sequence[ModelSweep]
) -> tuple[Parts, Parts, Parts]:
    """The parts of all tables, of operations, whole models and kernels."""
    with_layers = [sweep for sweep in model_sweeps if sweep.has_layers]
    parts = [
        [table_parts(sweep) for sweep in sweeps],
        [model_parts(sweep, MODELS) for sweep in model_sweeps],
        [model_parts(sweep, LAYERS) for sweep in with_layers],
    ]
    bounded = list(_bounded(chain.from_iterable(map(chain.from_iterable, parts))))
    tables, models, layers = (
        Parts(tuple(part for part in bounded if part.folder == folder))
        for folder in (TABLES, MODELS, LAYERS)
    )
    return tables, models, layers


def _summarized(sweep: Sweep, parts: Sequence[Part]) -> dict[str, object]:
    """What the summary of a sweep reads: its parts, and the thresholds along one axis."""
    return {
        "sweep": sweep.name,
        "models": False,
        "axis": sweep.first_solved,
        "share": float(max(map(exact, sweep.config.shares))),
        "parts": [part.path for part in parts if part.sweep == sweep.name],
    }


def _summarized_steps(sweep: ModelSweep, parts: Sequence[Part]) -> dict[str, object]:
    """The same of a sweep of whole models."""
    config = sweep.config
    asked = {*config.thresholds, *(["B"] if config.targets else [])}
    return {
        "sweep": sweep.name,
        "models": True,
        "axis": next((axis for axis in AXES if axis in asked), None),
        "parts": [part.path for part in parts if part.sweep == sweep.name],
    }


def _bounded(parts: Iterable[Part]) -> Iterator[Part]:
    """Refuse specs of more than `MOST_CHARACTERS`."""
    characters = 0
    for part in parts:
        characters += len(part.spec)
        if characters > MOST_CHARACTERS:
            key = "sweeps" if part.folder == TABLES else "model-sweeps"
            place = f"{key}.{part.sweep}.rows_per_part"
            problem = (
                "makes parts whose descriptions together have more than "
                f"{MOST_CHARACTERS:,} characters"
            )
            raise RooflinesError(place, problem, "choose a larger number, or fewer shapes")
        yield part


def _family_specs(config: Config) -> dict[str, str]:
    """What each family of charts depends on: its charts, with a digest of all behind each."""
    families: dict[str, list[Spec]] = {}
    for chart in config.charts:
        families.setdefault(chart.family, []).append(chart)
    return {
        family: as_param(
            {
                "formats": config.formats,
                "charts": [chart.plain() for chart in charts],
                "digests": [_chart_digest(config, chart) for chart in charts],
            }
        )
        for family, charts in families.items()
    }


def _chart_digest(config: Config, chart: Spec) -> str:
    """A digest of a chart, its formats, its code and its numbers."""
    read: list[tuple[str, ...]]
    if chart.measurements:
        read = [MEASURED_ROWS]
    else:
        read = [MODEL_ROWS] if chart.sweep in config.model_sweeps else [ROWS, THRESHOLDS]
    content = {
        "formats": config.formats,
        "chart": chart.plain(),
        "code": code_digest(*registry.modules_of(chart.family), *DRAWING),
        "numbers": [code_digest(*code, *WRITING) for code in read],
        "data": list(_shown(config, chart)),
    }
    return hashlib.sha256(as_param(content).encode()).hexdigest()


def _shown(config: Config, chart: Spec) -> Iterator[Mapping[str, object]]:
    """The recipes of what a chart shows."""
    if chart.measurements:
        yield config.measured_recipe(chart.measurements)
        return
    if chart.sweep in config.model_sweeps:
        yield model_recipe(config.model_sweep(chart.sweep), chart.models, chart.chips)
        return
    for sweep in map(config.sweep, (chart.sweep, *chart.others)):
        chips = sweep.rows_by_chip()
        yield recipe_of(sweep, [chip for chip in chart.all_chips if chip in chips])
