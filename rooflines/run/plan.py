"""The plan of a run: every output of a config, with everything that its job depends on as JSON."""

from __future__ import annotations

import hashlib
import json
from itertools import chain
from typing import TYPE_CHECKING

from rooflines.basics.numbers import exact
from rooflines.catalogue.chips import chip_entries, chip_sources, dtype_entries
from rooflines.charts import registry
from rooflines.fits.entries import shipped_calibrations
from rooflines.models.sheet import shape_rows
from rooflines.results.folders import (
    CHARTS,
    INDEX,
    LAYERS,
    MEASURED,
    MEASURED_SUMMARIES,
    MODEL_SHAPES,
    MODEL_THRESHOLDS,
    MODELS,
    SITE,
    SKIPPED,
    SUMMARY,
    TABLES,
    THRESHOLDS,
    WORKBOOK,
)
from rooflines.run.code import code_digest, file_digest
from rooflines.run.outputs import Output, Plan, as_param
from rooflines.run.parts import parts_of
from rooflines.settings.model_sweeps import AXES
from rooflines.sweep.recipes import recipe_of, skipped_records, without_chips
from rooflines.sweep.steps import ModelSweep

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.charts.views import Spec
    from rooflines.config import Config
    from rooflines.sweep.checks import AnySweep


def plan(config: Config) -> Plan:
    """The outputs of a config, and what each depends on; nothing is computed yet."""
    parts = tuple(_parts(config))
    return Plan(
        (
            *parts,
            *_indexes(parts),
            *_numbers(config, parts),
            *_measured(config),
            *_faces(config, parts),
        )
    )


def _parts(config: Config) -> Iterator[Output]:
    """The parts of all tables, of operations, whole models and kernels."""
    models = config.model_sweeps.values()
    return chain(
        *(parts_of(sweep, TABLES) for sweep in config.sweeps.values()),
        *(parts_of(sweep, MODELS) for sweep in models),
        *(parts_of(sweep, LAYERS) for sweep in models if sweep.has_layers),
    )


def _indexes(parts: Sequence[Output]) -> Iterator[Output]:
    """The lists of parts, one per folder of tables."""
    inputs = {"tables": _paths(parts)}
    for folder in (TABLES, MODELS, LAYERS):
        rows = [
            {
                "sweep": part.sweep,
                "part": part.number,
                "rows": part.rows,
                "path": part.path.removeprefix(f"{folder}/"),
            }
            for part in parts
            if part.folder == folder
        ]
        yield Output(f"{folder}/{INDEX}", as_param(rows), inputs)


def _numbers(config: Config, parts: Sequence[Output]) -> Iterator[Output]:
    """Thresholds, what is skipped, the summary, and the models of the catalogue."""
    sweeps, model_sweeps = config.sweeps.values(), config.model_sweeps.values()
    every: list[AnySweep] = [*sweeps, *model_sweeps]
    recipes = [recipe_of(sweep) for sweep in sweeps]
    of_models = [recipe_of(sweep) for sweep in model_sweeps]
    job = "run.solving.write_thresholds"
    yield Output.of(THRESHOLDS, job, {"of_models": False, "sweeps": recipes})
    if model_sweeps:
        yield Output.of(MODEL_THRESHOLDS, job, {"of_models": True, "sweeps": of_models})
    skipped = {
        "rows": skipped_records(every),
        "sweeps": [*recipes, *of_models],
    }
    yield Output.of(SKIPPED, "run.jobs.write_skipped", skipped)
    summed = {
        "of": [_summarized(sweep, parts) for sweep in every],
        "sweeps": [*recipes, *of_models],
    }
    counted = [part for part in parts if part.folder in (TABLES, MODELS)]
    inputs = {"tables": _paths(counted), **_thresholds(config)}
    job = "results.summary.write_summary"
    yield Output.of(SUMMARY, job, summed, inputs=inputs)
    job = "results.catalogue_frames.write_model_shapes"
    yield Output.of(MODEL_SHAPES, job, {"models": shape_rows()})


def _measured(config: Config) -> Iterator[Output]:
    """Timings joined with the model, and their summaries."""
    recipes = [one.recipe() for one in config.measurements.values()]
    job = "run.measured_jobs.write_measured"
    for recipe in recipes:
        path = f"{MEASURED}/{recipe['measurement']}.parquet"
        yield Output.of(path, job, {"measurements": [recipe]})
    job = "run.measured_jobs.write_measured_summary"
    inputs = {"tables": _timings(config)}
    for path in MEASURED_SUMMARIES if recipes else ():
        yield Output.of(path, job, {"measurements": recipes}, inputs=inputs)


def _faces(config: Config, parts: Sequence[Output]) -> Iterator[Output]:
    """The workbook, charts and site."""
    thresholds = _thresholds(config)
    job = "workbook.workbook.write_workbook"
    yield Output.of(WORKBOOK, job, {}, inputs=thresholds, recorded_inputs=True)
    families: dict[str, list[Spec]] = {}
    for chart in config.charts:
        families.setdefault(chart.chart, []).append(chart)
    inputs = {"tables": _charted(config, parts), **thresholds}
    for family, charts in families.items():
        spec = {
            "formats": config.formats,
            "charts": [chart.plain() for chart in charts],
            "shown": [_shown(config, chart) for chart in charts],
        }
        yield Output(f"{CHARTS}/{family}", as_param(spec), inputs)
    site = {
        "site": config.site,
        "config": config.plain,
        "catalogues": _short(
            {
                "sources": chip_sources(),
                "chips": {chip: entry.plain for chip, entry in chip_entries().items()},
                "dtypes": dtype_entries().model_dump(),
                "calibrations": shipped_calibrations().model_dump(mode="json"),
            }
        ),
        "tables": _listed_tables(config, parts) if "tables" in config.site else [],
    }
    inputs = {
        "charts": [f"{CHARTS}/{family}" for family in families],
        "thresholds": thresholds["thresholds"],
        "models": thresholds["model_thresholds"],
        "measured": [*MEASURED_SUMMARIES] if config.measurements else [],
        "timings": _timings(config),
    }
    job = "run.drawing_jobs.write_site"
    yield Output.of(SITE, job, site, inputs=inputs, recorded_inputs=True)


def _paths(parts: Iterable[Output]) -> list[str]:
    return [part.path for part in parts]


def _thresholds(config: Config) -> dict[str, list[str]]:
    """The files of thresholds, as inputs."""
    of_models = [MODEL_THRESHOLDS] if config.model_sweeps else []
    return {"thresholds": [THRESHOLDS], "model_thresholds": of_models}


def _timings(config: Config) -> list[str]:
    """The tables of timings."""
    return [f"{MEASURED}/{name}.parquet" for name in config.measurements]


def _short(content: object) -> str:
    """A digest of data."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _listed_tables(config: Config, parts: Sequence[Output]) -> list[JSON]:
    """The tables of sweeps of operations, as the site lists them."""
    listed: list[JSON] = []
    for sweep in config.sweeps.values():
        own = [part for part in parts if (part.folder, part.sweep) == (TABLES, sweep.name)]
        listed.append(
            {
                "sweep": sweep.name,
                "rows": sum(part.rows for part in own),
                "columns": len(sweep.stored),
                "files": [part.path.removeprefix(f"{TABLES}/") for part in own],
            }
        )
    return listed


def _summarized(sweep: AnySweep, parts: Sequence[Output]) -> dict[str, object]:
    """What the summary of a sweep reads: its parts, and the thresholds along one axis."""
    folder = MODELS if isinstance(sweep, ModelSweep) else TABLES
    about = {
        "sweep": sweep.name,
        "models": folder == MODELS,
        "parts": _paths(p for p in parts if (p.folder, p.sweep) == (folder, sweep.name)),
    }
    if isinstance(sweep, ModelSweep):
        asked = {*sweep.config.thresholds, *(["B"] if sweep.config.targets else [])}
        return {**about, "axis": next((axis for axis in AXES if axis in asked), None)}
    share = float(max(map(exact, sweep.config.shares)))
    return {**about, "axis": sweep.first_solved, "share": share}


def _charted(config: Config, parts: Sequence[Output]) -> list[str]:
    """The tables and timings that charts read; many read thresholds alone."""
    kinds = [(registry.kinds()[chart.chart], chart.sweep) for chart in config.charts]
    timed = dict.fromkeys(name for kind, name in kinds if kind.source == "measurements")
    sweeps = {name for kind, name in kinds if kind.reads and kind.source != "measurements"}
    read = [part for part in parts if part.folder != LAYERS and part.sweep in sweeps]
    return [*_paths(read), *(f"{MEASURED}/{name}.parquet" for name in timed)]


def _shown(config: Config, chart: Spec) -> dict[str, str]:
    """Digests of what a chart shows: of the numbers of each chip by its id, by "" of all else.

    That is the chart, its formats, what it is of, and its code: its own file and all of `charts`
    but the files of other charts.
    """
    recipe = _recipe_of(config, chart)
    rest = {
        "formats": config.formats,
        "chart": chart.plain(),
        "code": code_digest("charts.job.write_charts", but="charts/kinds"),
        "own": file_digest([registry.file_of(chart.chart)]),
        "data": without_chips(recipe),
    }
    return {"": _short(rest)} | {chip: _short(each) for chip, each in recipe["chips"].items()}


def _recipe_of(config: Config, chart: Spec) -> JSON:
    """The recipe of what a chart shows."""
    source = registry.kinds()[chart.chart].source
    if source == "measurements":
        return config.measurements[chart.sweep].recipe()
    sweeps = config.model_sweeps if source == "model_sweeps" else config.sweeps
    return recipe_of(sweeps[chart.sweep], chips=chart.chips)
