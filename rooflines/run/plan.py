"""Run plan: every output with its job's dependencies as JSON."""

from __future__ import annotations

from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING

from rooflines.basics.numbers import exact
from rooflines.charts import registry
from rooflines.config.model_fields import LEVER_AXES, MODEL_AXES
from rooflines.fits.calibration_files import shipped_calibrations
from rooflines.hardware.chip_catalogue import chip_entries, chip_sources
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.models.model_sheet import shape_rows
from rooflines.results.folders import (
    CHARTS,
    LAYERS_FOLDER,
    MEASURED_FOLDER,
    MEASURED_SUMMARIES,
    MODEL_SHAPES_FILE,
    MODEL_THRESHOLDS_FILE,
    MODELS_FOLDER,
    PARTS_FILE,
    SCENARIOS_FOLDER,
    SITE,
    SKIPPED_FILE,
    SUMMARY_FILE,
    TABLES_FOLDER,
    THRESHOLDS_FILE,
    TRACE_CHANGES_FILE,
    TRACE_TABLES,
    TRACES_FOLDER,
    WORKBOOK,
)
from rooflines.run.code_digests import catalogue_digest, code_digest, file_digest
from rooflines.run.outputs import Output, Plan, short_digest
from rooflines.run.table_parts import parts_of, threshold_parts
from rooflines.sweep.kernel_sweep import KernelSweep
from rooflines.sweep.recipes import recipe_of, skipped_records
from rooflines.sweep.step_sweep import ModelSweep
from rooflines.sweep.threshold_columns import threshold_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.charts.views import Spec
    from rooflines.loading import Config
    from rooflines.sweep.checks import AnySweep


def plan(config: Config) -> Plan:
    """The outputs of a config, and what each depends on; nothing is computed yet."""
    tables: list[AnySweep] = [*config.sweeps.values(), *config.kernel_sweeps.values()]
    sweeps = [*tables, *config.model_sweeps.values()]
    recipes = [recipe_of(sweep) for sweep in sweeps]
    parts, solved_parts = [*_parts(config)], [*chain(*map(threshold_parts, sweeps))]
    solved = [*_thresholds(sweeps, recipes, solved_parts)]
    timings, lists = [*_timings(config)], _lists(sweeps, recipes, parts, solved)
    errors, charts = [*_errors(config, timings)], [*_charts(config, [*parts, *timings, *solved])]
    traces, scenarios = [*_traces(config)], [*_scenarios(config, [*parts, *solved])]
    read = {
        "charts": charts,
        "measured": errors,
        "timings": timings,
        "traces": traces,
        "scenarios": scenarios,
    }
    rest = (*timings, *errors, *traces, *scenarios, *charts)
    site = _site(config, parts, read, solved)
    return Plan((*parts, *solved_parts, *solved, *lists, *rest, site))


def _parts(config: Config) -> Iterator[Output]:
    """Parts in every table: operations, whole models, kernels."""
    models = config.model_sweeps.values()
    return chain(
        *(parts_of(sweep, TABLES_FOLDER) for sweep in config.sweeps.values()),
        *(parts_of(sweep, TABLES_FOLDER) for sweep in config.kernel_sweeps.values()),
        *(parts_of(sweep, MODELS_FOLDER) for sweep in models),
        *(parts_of(sweep, LAYERS_FOLDER) for sweep in models if sweep.has_layers),
    )


def _thresholds(
    sweeps: Sequence[AnySweep], recipes: Sequence[JSON], parts: Sequence[Output]
) -> Iterator[Output]:
    """Threshold outputs for operations and whole models, each from its parts."""
    of_models = {sweep.name for sweep in sweeps if isinstance(sweep, ModelSweep)}

    def thresholds(path: str, rule: str, meaning: str, *, models: bool) -> Output:
        needed = [part for part in parts if (part.sweep in of_models) == models]
        listed = [sweep for sweep in sweeps if (sweep.name in of_models) == models]
        return Output.create(
            path,
            "run.threshold_jobs.write_thresholds",
            {
                "of_models": models,
                "parts": _paths(needed),
                "columns": [asdict(column) for column in threshold_columns(listed, models=models)],
                "sweeps": [recipe for recipe in recipes if ("models" in recipe) == models],
            },
            {"parts": needed},
            rule=rule,
            meaning=meaning,
        )

    yield thresholds(
        THRESHOLDS_FILE,
        "thresholds",
        "the smallest size and the largest number of chips at which an operation is "
        'compute-bound: exact integers, "never" included',
        models=False,
    )
    if of_models:
        yield thresholds(
            MODEL_THRESHOLDS_FILE,
            "model_thresholds",
            "of whole models: the smallest compute-bound batch, the longest context that "
            "has one, the fewest chips, the largest batch within a latency. Only with "
            "`model-sweeps`",
            models=True,
        )


def _lists(
    sweeps: Sequence[AnySweep],
    recipes: Sequence[JSON],
    parts: Sequence[Output],
    solved: Sequence[Output],
) -> Iterator[Output]:
    """Lists (parts, skipped rows, models), the summary and the workbook."""
    rows = [
        {"sweep": part.sweep, "part": part.number, "rows": part.rows, "path": part.path}
        for part in parts
    ]
    yield Output.create(
        PARTS_FILE, "results.overview.write_parts", {"parts": rows}, {"tables": parts}
    )
    yield Output.create(
        SKIPPED_FILE,
        "run.jobs.write_skipped",
        {"rows": skipped_records(sweeps), "sweeps": recipes},
        rule="skipped",
        meaning="requested combinations that no chip supports, with the reason; a missing rate is "
        "never guessed",
    )
    yield Output.create(
        SUMMARY_FILE,
        "results.overview.write_summary",
        {"of": [_summarized(sweep, parts) for sweep in sweeps]},
        {"tables": [part for part in parts if part.folder != LAYERS_FOLDER], "thresholds": solved},
        rule="summary",
        meaning="for a first look: a row per sweep, chip, dtypes and sharding, of whole models per "
        "model, phase and split, with the share of compute-bound rows and the least, median and "
        "largest critical size",
    )
    yield Output.create(
        MODEL_SHAPES_FILE,
        "results.catalogue_frames.write_model_shapes",
        {"models": shape_rows()},
        rule="model_shapes",
        meaning="the models of the catalogue: parameters by every convention beside the published "
        "ones, cache per token, source",
    )
    steps: dict[str, list[Output]] = {}
    for part in parts:
        if part.folder == MODELS_FOLDER and part.sweep is not None:
            steps.setdefault(part.sweep, []).append(part)
    yield Output.create(
        WORKBOOK,
        "workbook.workbook.write_workbook",
        {
            "thresholds": _paths(solved),
            "steps": {name: _paths(rows) for name, rows in steps.items()},
        },
        {"thresholds": solved, "tables": [part for rows in steps.values() for part in rows]},
        rule="workbook",
        meaning="a workbook for a spreadsheet: an operation as formulas of sizes and rates with a "
        "chart (What-if), critical sizes by chip (Summary), steps of models with their estimates "
        "(Steps), thresholds with filters, the meaning of every column. Sheets name the sweeps "
        "that are too large for them",
    )


def _timings(config: Config) -> Iterator[Output]:
    """Timings joined with the model."""
    for timing_set in config.measurements.values():
        recipe = timing_set.recipe()
        path = f"{MEASURED_FOLDER}/{recipe['measurement']}.parquet"
        yield Output.create(path, "run.measured_jobs.write_measured", {"measurements": [recipe]})


def _errors(config: Config, timings: Sequence[Output]) -> Iterator[Output]:
    """Errors at timings for bound and estimates, and timings without a row."""
    content = {"measurements": [timing_set.recipe() for timing_set in config.measurements.values()]}
    for path in MEASURED_SUMMARIES if timings else ():
        job = "run.measured_jobs.write_measured_summary"
        yield Output.create(path, job, content, {"tables": timings})


def _traces(config: Config) -> Iterator[Output]:
    """Traces: calls as a table, screen and pictures of each, and comparisons."""
    catalogues = catalogue_digest(["chips.yaml", "dtypes.yaml", "models.yaml", "calibrations.yaml"])
    tables: dict[str, Output] = {}
    for name, trace in config.traces.items():
        content = {"traces": [trace.recipe()], "catalogues": catalogues}
        job = "run.trace_jobs.write_trace"
        tables[name] = Output.create(f"{TRACE_TABLES}/{name}.parquet", job, content)
        yield tables[name]
        yield Output.create(f"{TRACES_FOLDER}/{name}", job, content)
    pairs = [
        (trace.config.before, name)
        for name, trace in config.traces.items()
        if trace.config.before is not None
    ]
    if pairs:
        listed = [
            {"before": before, "after": after, "tables": _paths([tables[before], tables[after]])}
            for before, after in pairs
        ]
        yield Output.create(
            TRACE_CHANGES_FILE,
            "run.trace_jobs.write_trace_changes",
            {"pairs": listed},
            {"tables": [*{name: tables[name] for pair in pairs for name in pair}.values()]},
            rule="trace_changes",
            meaning="operators and idle times of two traces before and after a change, whose sums "
            "are the spans. Only with `before` in `traces`",
        )


def _scenarios(config: Config, numbers: Sequence[Output]) -> Iterator[Output]:
    """Scenarios: changed numbers as a table, and a folder with groups and pictures."""
    for scenario, pairs in config.scenarios.items():
        sweeps = {*pairs, *pairs.values()}
        content = {
            "scenario": scenario,
            "pairs": pairs,
            "sweeps": [recipe_of(config.every[sweep]) for sweep in sorted(sweeps)],
        }
        inputs = [
            output
            for output in numbers
            if output.folder != LAYERS_FOLDER and (not output.rows or output.sweep in sweeps)
        ]
        for path in (f"{SCENARIOS_FOLDER}/{scenario}.parquet", f"{SCENARIOS_FOLDER}/{scenario}"):
            job = "run.scenario_jobs.write_scenario"
            yield Output.create(path, job, content, {"numbers": inputs})


def _charts(config: Config, numbers: Sequence[Output]) -> Iterator[Output]:
    """The families of charts; many charts read thresholds alone."""
    kinds = registry.kinds()
    timed, read = set[str](), set[str]()
    families: dict[str, list[Spec]] = {}
    for chart in config.charts:
        families.setdefault(chart.chart, []).append(chart)
        if kinds[chart.chart].source == "measurements":
            timed.add(f"{MEASURED_FOLDER}/{chart.sweep}.parquet")
        elif kinds[chart.chart].reads:
            read.add(chart.sweep)
    inputs = [
        entry
        for entry in numbers
        if entry.folder != LAYERS_FOLDER and (not entry.rows or entry.sweep in read)
        if entry.folder != MEASURED_FOLDER or entry.path in timed
    ]
    for family, charts in families.items():
        spec = {
            "formats": config.formats,
            "charts": [chart.plain() for chart in charts],
            "shown": [_shown(config, chart) for chart in charts],
        }
        job = "charts.chart_job.write_charts"
        yield Output.create(f"{CHARTS}/{family}", job, spec, {"numbers": inputs})


def _site(
    config: Config,
    parts: Sequence[Output],
    inputs: Mapping[str, Sequence[Output]],
    solved: Sequence[Output],
) -> Output:
    """The site."""
    catalogues = {
        "sources": chip_sources(),
        "chips": {chip: entry.plain for chip, entry in chip_entries().items()},
        "dtypes": dtype_entries().model_dump(),
        "calibrations": shipped_calibrations().model_dump(mode="json"),
        "files": catalogue_digest(["measured.csv", "models.yaml"]),
    }
    site = {
        "site": config.site,
        "config": config.plain,
        "catalogues": short_digest(catalogues),
        "scenarios": [sweep for pairs in config.scenarios.values() for sweep in pairs.values()],
        "tables": _listed_tables(config, parts) if "tables" in config.site else [],
    }
    inputs = {**inputs, "thresholds": solved[:1], "models": solved[1:]}
    return Output.create(SITE, "site.site.write_site", site, inputs)


def _paths(outputs: Iterable[Output]) -> list[str]:
    return [output.path for output in outputs]


def _listed_tables(config: Config, parts: Sequence[Output]) -> list[JSON]:
    """Operation tables as the site lists them."""
    listed: list[JSON] = []
    for sweep in (*config.sweeps.values(), *config.kernel_sweeps.values()):
        sweep_parts = [
            part for part in parts if (part.folder, part.sweep) == (TABLES_FOLDER, sweep.name)
        ]
        listed.append(
            {
                "sweep": sweep.name,
                "rows": sum(part.rows for part in sweep_parts),
                "columns": len(sweep.stored),
                "files": [part.path.removeprefix(f"{TABLES_FOLDER}/") for part in sweep_parts],
            }
        )
    return listed


def _summarized(sweep: AnySweep, parts: Sequence[Output]) -> dict[str, object]:
    """Inputs of a sweep's summary: its parts, and the thresholds along one axis."""
    folder = MODELS_FOLDER if isinstance(sweep, ModelSweep) else TABLES_FOLDER
    about = {
        "sweep": sweep.name,
        "models": folder == MODELS_FOLDER,
        "parts": _paths(p for p in parts if (p.folder, p.sweep) == (folder, sweep.name)),
    }
    if isinstance(sweep, ModelSweep):
        axes = {*sweep.config.thresholds, *(["B"] if sweep.config.targets else [])}
        return {
            **about,
            "axis": next((axis for axis in (*MODEL_AXES, *LEVER_AXES) if axis in axes), None),
        }
    shares = [1] if isinstance(sweep, KernelSweep) else sweep.config.shares
    share = float(max(map(exact, shares)))
    return {**about, "axis": sweep.first_solved, "share": share}


def _shown(config: Config, chart: Spec) -> str:
    """Digest for what a chart shows: the chart, its formats, its subject with its chips, its code.

    Its code is its own file and all in `charts` but other charts' files.
    """
    inputs = {
        "formats": config.formats,
        "chart": chart.plain(),
        "code": code_digest("charts.chart_job.write_charts", but="charts/kinds"),
        "own": file_digest([registry.file_of(chart.chart)]),
        "data": _recipe_of(config, chart),
        "names": _names(),
    }
    return short_digest(inputs)


def _names() -> str:
    """Digest over chip and model names, which chart labels read from the catalogues."""
    chips = {chip: entry.short for chip, entry in chip_entries().items() if entry.base is None}
    return short_digest([chips, catalogue_digest(["models.yaml"])])


def _recipe_of(config: Config, chart: Spec) -> JSON:
    """The recipe of what a chart shows."""
    if registry.kinds()[chart.chart].source == "measurements":
        return config.measurements[chart.sweep].recipe()
    return recipe_of(config.every[chart.sweep], chips=chart.chips)
