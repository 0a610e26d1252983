"""Explorer data: coefficients, chips, layers, steps and timings.

No result is computed here, and the page has no model formula: it evaluates coefficients in double
precision.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.answers.serve_answer import BY_BASIS, SHOWN_LOST, SHOWN_OF_KIND
from rooflines.basics import quantities
from rooflines.basics.cache import Codec, cached
from rooflines.basics.quantities import HFU, MBU, MFU, measured_value
from rooflines.basics.text import FORMULA, counted
from rooflines.charts.kit.chart_text import chip_label
from rooflines.config.model_fields import ModelSweepConfig
from rooflines.fits.calibration_files import (
    AUTO_CALIBRATION,
    AUTO_ENGINES,
    merge_calibrations,
    shipped_calibrations,
)
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.hardware.timing_errors import (
    ESTIMATE,
    MATMUL,
    MIN_LONG_BOUND_S,
    STEP,
    measured_quantiles,
)
from rooflines.kinds.kind_table import KINDS
from rooflines.models.architecture import DECODE, TRAIN
from rooflines.models.layer_matrices import layers_of
from rooflines.models.library import find_model, model_entries
from rooflines.models.split import Split
from rooflines.serving.deployments import (
    BATCH_TILES,
    POOL_BAND,
    TIE_BY_CHIPS,
    TIE_BY_DIVISION,
    TIE_BY_KIND,
)
from rooflines.serving.servers import MAX_BATCH, server_sizes, server_splits
from rooflines.site.calibration_data import SOFTWARE, first_fits
from rooflines.site.kernel_data import KERNEL_FILE, kernel_data, kernel_names
from rooflines.site.matmuls import matmul_data
from rooflines.site.model_steps import NOTHING, EarlierSteps, split_data, step_data
from rooflines.sweep.checks import checked_sweep
from rooflines.sweep.recipes import fits_of, shape_recipe, sweep_of
from rooflines.sweep.training_sweep import sweep_of_models
from rooflines.theory.network import TORUS
from rooflines.training.parallel_plan import TrainingPlan
from rooflines.training.training_kernels import MICRO_BATCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.fits.calibration_files import Calibrations
    from rooflines.hardware.entries import Chip
    from rooflines.models.architecture import Shape
    from rooflines.models.model import Model
    from rooflines.sweep.step_sweep import ModelSweep

MATMULS = "explorer"
"""File name for the matmul data."""

STEPS = "steps"
"""File name for the steps that models share."""

CONTENTS: JSON = json.loads(Path(__file__).with_suffix(".json").read_bytes())
"""Contents of the explorer, from `explorer.json`."""

MODELS: Sequence[str] = CONTENTS["models"]
"""Catalogue models with steps and layers on the page; the first is the default."""

SERVING: Sequence[str] = CONTENTS["serving"]
"""Catalogue chips with model steps on the page."""

DEFAULT_CHIPS: Sequence[str] = CONTENTS["default_chips"]
"""Default chips on the page."""

FORMATS: Mapping[str, str | dict[str, str]] = CONTENTS["formats"]
"""Model dtypes by format name, the plain one first."""

PUBLISHED: Mapping[str, str] = CONTENTS["published"]
"""Format name by the published dtype of experts, or of all weights."""

SPLITS: Sequence[Mapping[str, int]] = CONTENTS["splits"]

PLANS: Sequence[Mapping[str, int | str]] = CONTENTS["plans"]
"""Splits of a training step, with the states that replicas share; the first is the default."""

TRAINED: Sequence[str] = [name for name, form in FORMATS.items() if isinstance(form, str)]
"""Formats of training steps: weights are computed in their storage dtype."""

IN_EXPLORER: Mapping[str, Mapping[str, str]] = CONTENTS["views"]
"""Names in the page's address by chart menu, for each subject."""

SERVER_CHIPS = 8
"""Chips in the largest servers on the page [1]."""

SERVER_RULES: JSON = {
    "max_batch": MAX_BATCH,
    "tiles": BATCH_TILES,
    "pool_band": POOL_BAND,
    "ties": {"division": TIE_BY_DIVISION, "chips": TIE_BY_CHIPS, "kind": TIE_BY_KIND},
    "shown": SHOWN_OF_KIND,
    "shown_lost": SHOWN_LOST,
    "basis": BY_BASIS,
}
"""Rules for a search over servers, and words for what a rank rests on."""

PAGE: JSON = CONTENTS["page"]
"""Settings for the page's scripts, unchanged: `defaults`, `address_names`, `tabs`, `dtypes` of one
tab, and `custom_numbers` with label, scale and unit. Also `columns` of the chip table: `name`,
`head`, `csv` (the name in CSV), `meaning`, `format`, `field` (the row's field if it is not `name`),
and `when`, words that a state must match."""

ON_DEMAND = ("steps", "kernels", "estimates", "extents")
"""Per-model data, loaded when a model is chosen."""

MAX_ADDED = 8
"""Maximum models, chips and training plans that a config adds to the page [1]."""

MAX_LAYERS = 100
"""Maximum layers that a config adds to the page's menu [1]."""

RATIONAL = re.compile(r"-?\d+/\d+")


def explorer_files(
    chips: Mapping[str, Chip],
    recipes: Iterable[JSON],
    cache: Path | None = None,
    leading: Sequence[str] = (),
) -> Iterator[tuple[str, JSON]]:
    """Yield the page's data.

    Args:
        chips: All offered chips by id.
        recipes: Recipes for operation sweeps, model sweeps and timings.
        cache: File for model steps, named by the digest of the code that makes them; the next call
            reads steps for unchanged chips from it. Steps for equal inputs are in the user's cache
            too, for runs in other folders.
        leading: Training plans by name that the run found to lead, best first: they are offered
            before others of its plans.

    Yields:
        Names and data: `explorer` with matmuls, chips, layers and timings; `kernels`, loaded when
        a kernel is chosen; `steps` shared by models; and `steps-0` and so on, per model, loaded
        when the model is chosen.
    """
    listed = list(recipes)
    calibrations = merge_calibrations(
        [shipped_calibrations(), *(fits_of(recipe) for recipe in listed if "sweep" in recipe)]
    )
    model_sweeps = [
        sweep_of(recipe) for recipe in listed if "models" in recipe and "sweep" in recipe
    ]
    catalogue_models = {model: find_model(model) for model in MODELS}
    config_models = {name: model for sweep in model_sweeps for name, model in sweep.models.items()}
    served = [chip for sweep in model_sweeps for chip in sweep.chips if chip not in SERVING]
    models = catalogue_models | dict(
        [(name, model) for name, model in config_models.items() if name not in catalogue_models][
            :MAX_ADDED
        ]
    )
    named = dict.fromkeys(
        software
        for recipe in listed
        for software in recipe.get("config", {}).get("calibration") or ()
        if software not in (AUTO_CALIBRATION, *AUTO_ENGINES)
    )
    matmuls = _matmuls(chips, calibrations, [*named], models)
    matmuls = {**matmuls, "layers": [*_own_layers(listed), *matmuls["layers"]]}
    page_chips = {record["id"]: chips[record["id"]] for record in matmuls["chips"]}
    yield MATMULS, matmuls
    yield KERNEL_FILE, kernel_data(page_chips, calibrations)
    served_on = [*SERVING, *dict.fromkeys(served[:MAX_ADDED])]
    offered_chips = [chip for chip in served_on if chip in chips]
    configs = _configs(models, chips, offered_chips, offered_plans(model_sweeps, leading))
    steps = _steps(models, configs, chips, calibrations, cache)
    for index, model in enumerate(steps["models"]):
        yield f"steps-{index}", {key: model.pop(key) for key in ON_DEMAND}
    yield STEPS, steps


def _matmuls(
    chips: Mapping[str, Chip],
    calibrations: Calibrations,
    run_softwares: Sequence[str],
    models: Mapping[str, Model],
) -> JSON:
    """Matmul data by chip, model layers, and timing quantiles."""
    plain = matmul_data(chips, dtype_entries())
    page_chips = {record["id"]: chips[record["id"]] for record in plain["chips"]}
    data = {**plain, "fits": first_fits(page_chips, calibrations, run_softwares)}
    return {
        **data,
        "default_chips": DEFAULT_CHIPS,
        "layers": [
            {
                "name": f"{chip_label(model)} · {layer}, {depth:,} × {columns:,}",
                "D": depth,
                "F": columns,
            }
            for model, library_model in models.items()
            for layer, (depth, columns) in layers_of(library_model.shape).items()
        ],
        "software": SOFTWARE,
        "measured_scales": measured_scales(),
        "measured": _measured(data),
        "formula_pattern": FORMULA,
        "kinds": [*KINDS],
        "kernel_names": kernel_names(),
        "page": PAGE,
    }


def _own_layers(recipes: Iterable[JSON]) -> list[JSON]:
    """Named sizes in the run's sweeps that are no layer of a model, for the layer menu."""
    shapes = [
        shape
        for recipe in recipes
        for shape in recipe["config"].get("shapes") or ()
        if {"D", "F"} <= shape.keys() and not shape.get("model")
    ]
    records = {
        (shape["D"], shape["F"]): f"{shape['name']}, {shape['D']:,} × {shape['F']:,}"
        for shape in shapes
    }
    layers: list[JSON] = [
        {"name": name, "D": depth, "F": columns} for (depth, columns), name in records.items()
    ]
    return layers[:MAX_LAYERS]


def _measured(data: JSON) -> JSON:
    """Timing quantiles by subject (matmul or decode), chip, dtypes, length and over.

    If several engines were timed, the estimate's counts, else the first.

    Args:
        data: Page data with `fits` and `dtypes`.

    Returns:
        `quantiles` by these keys, with their source as text, `timings`; `timed_dtypes`, matmul
        dtypes by chip, as text; and `min_long_bound_s`.
    """
    compute = {dtype["name"]: dtype["compute"] for dtype in data["dtypes"]}
    quantiles: dict[str, JSON] = {}
    for row in measured_quantiles().iter_rows(named=True):
        subject = DECODE if row["subject"] == STEP else row["subject"]
        key = "/".join(
            [subject, *(row[name] or "" for name in ("chip", "dtypes", "length", "over"))]
        )
        name = row["dtypes"] or ""
        fit = data["fits"].get(row["chip"], {}).get(compute.get(name, name), {})
        if key not in quantiles or row["software"] == fit.get("software"):
            names = ("over", "length", "p10", "p50", "p90")
            quantiles[key] = {"timings": timed_text(row), **{name: row[name] for name in names}}
    matmuls = measured_quantiles().filter(subject=MATMUL)
    dtypes = matmuls.group_by("chip", maintain_order=True).agg(pl.col("dtypes").unique().sort())
    timed = {chip: ", ".join(names) for chip, names in dtypes.iter_rows()}
    return {
        "min_long_bound_s": MIN_LONG_BOUND_S,
        "quantiles": quantiles,
        "timed_dtypes": timed,
    }


def timed_text(row: JSON) -> str:
    """Words for the timings behind quantiles."""
    noun = "timing" if row["subject"] == MATMUL else "run"
    n = counted(row["n"], noun)
    n += (
        " of models left out of the fit"
        if (row["subject"], row["over"]) == (STEP, ESTIMATE)
        else ""
    )
    if not row["chip"]:
        return f"of other models, chips and engines, {n}"
    source = chip_label(row["chip"])
    source = source if row["subject"] == MATMUL else f"{source} in {row['dtypes']}"
    return f"{source}, {SOFTWARE.get(row['software'], row['software'])}, {n}"


def measured_scales() -> JSON:
    """Scales by kind and unit for measured numbers, as commands read them.

    Utilizations with all token pairs are left out: the page counts causal attention alone.
    """
    names = [*quantities.SCALES_BY_KIND["time"], MFU, HFU, MBU]
    flops_units = quantities.FLOPS_UNITS.items()
    names += [unit for unit, scale in flops_units if scale < quantities.MAX_MEASURED]
    names += [f"%{name}" for name in (MFU, HFU, MBU)]
    names += [f"{prefix}{rate}" for rate in quantities.RATES for prefix in ("", "k", "m")]
    scales: dict[str, dict[str, float]] = {}
    for name in filter(None, names):
        value = measured_value(f"1{name}")
        scales.setdefault(value.kind, {})[name] = value.value
    return scales


UNKNOWN_PLAN_KEYS = {"lora", "base", "loss", "gradients", "offload", "stack"}
"""Keys of training plans that the page has no form for: it offers no plan with them."""


def offered_plans(
    sweeps: Iterable[ModelSweep], leading: Sequence[str] = ()
) -> list[Mapping[str, Any]]:
    """Training plans: `PLANS`, then those in the config's sweeps, leading ones first."""
    order = {name: place for place, name in enumerate(leading)}
    plans: dict[str, Mapping[str, Any]] = {_name(plan): plan for plan in PLANS}
    for sweep in (
        training_sweep for training_sweep in sweeps if TRAIN in training_sweep.config.phase
    ):
        for split in sorted(sweep.config.splits, key=lambda s: order.get(s.name, len(order))):
            plan = split.model_dump(
                exclude_defaults=True, exclude={str(MICRO_BATCH)}
            )  # has a field
            # The page does not tell the MFU of full recomputation from its HFU.
            if plan.get("recompute") != "full" and not plan.keys() & UNKNOWN_PLAN_KEYS:
                plans.setdefault(_name(plan), plan)
    return [*plans.values()][: len(PLANS) + MAX_ADDED]


def _name(plan: Mapping[str, Any]) -> str:
    return TrainingPlan.model_validate(plan).name


def page_servers(shape: Shape) -> list[Split]:
    """Server splits that `rooflines serve` searches on `SERVER_CHIPS` chips off a torus."""
    sizes = server_sizes(SERVER_CHIPS)
    return [split for size in sizes for split in server_splits(shape, size)]


def is_on_torus(chip: Chip) -> bool:
    """Check for a chip whose servers lie on torus axes: the page has none."""
    return any(link.exact.topology == TORUS for link in chip.networks.values())


def _configs(
    models: Mapping[str, Model],
    chips: Mapping[str, Chip],
    where: Sequence[str],
    plans: Sequence[Mapping[str, Any]],
) -> list[ModelSweepConfig]:
    """Configs for serving steps, for training steps, and for further servers with experts."""
    forms = {
        name: form if isinstance(form, str) else {"name": name, **form}
        for name, form in FORMATS.items()
    }
    plain: dict[str, Any] = {
        "models": list(models),
        "grid": {"B": [8], "S": [1024]},
        "chips": list(where),
        "thresholds": [],
    }
    serves: dict[str, Any] = {
        "phase": ["decode", "prefill"],
        "dtypes": list(forms.values()),
        "splits": list(SPLITS),
        "calibration": AUTO_CALIBRATION,
    }
    parsed = [TrainingPlan.model_validate(plan) for plan in plans]
    grid = {
        "B": lcm(*(plan.global_micro_batch for plan in parsed)),
        "S": lcm(*(plan.cp for plan in parsed)),
    }
    trains = {
        "phase": [TRAIN],
        "grid": grid,
        "dtypes": [forms[name] for name in TRAINED],
        "splits": list(plans),
        "calibration": AUTO_CALIBRATION,
    }
    offered = {Split.model_validate(split).name for split in SPLITS}
    expert_models = {name: model for name, model in models.items() if model.shape.moe is not None}
    servers = {
        split.name: split.model_dump(exclude_defaults=True)
        for model in expert_models.values()
        for split in page_servers(model.shape)
        if split.name not in offered
    }
    further = {
        **serves,
        "models": [*expert_models],
        "chips": [chip for chip in where if not is_on_torus(chips[chip])],
        "splits": [*servers.values()],
    }
    listed = [serves, trains, *([further] if servers and further["chips"] else [])]
    return [ModelSweepConfig.model_validate({**plain, **fields}) for fields in listed]


def _steps(
    models: Mapping[str, Model],
    configs: Sequence[ModelSweepConfig],
    chips: Mapping[str, Chip],
    calibrations: Calibrations,
    cache: Path | None,
) -> JSON:
    """Model steps: kernels, footprints, rates and estimates, from caches where possible."""
    inputs = [
        *(config.model_dump() for config in configs),
        {name: shape_recipe(model.shape, "") for name, model in models.items()},
        dtype_entries().model_dump(),
        calibrations.model_dump(mode="json"),
    ]
    key = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()
    where = configs[0].chips
    numbers = {chip: chips[chip].plain for chip in where}
    earlier = NOTHING
    with suppress(OSError, ValueError, KeyError, TypeError):
        before = json.loads(cache.read_bytes()) if cache else {}
        if before["key"] == key:
            same = [chip for chip in where if before["chips"][chip] == numbers[chip]]
            if len(same) == len(where):
                return _as_page(before["steps"], configs, models, chips)
            earlier = EarlierSteps(before["steps"], same)
    catalogues = chips, dtype_entries(), calibrations, models
    each_phase = (sweep_of_models("steps", phase_config, *catalogues) for phase_config in configs)
    sweeps = [checked_sweep(replace(sweep, fastest_axes=True)) for sweep in each_phase]

    def compute() -> JSON:
        return step_data(sweeps, earlier)

    state = json.dumps([key, numbers, cache.stem if cache else ""])
    steps = cached("page-steps", (), compute, Codec(version=state)) if cache else compute()
    with suppress(OSError):
        if cache:
            cache.parent.mkdir(parents=True, exist_ok=True)
            content = {"key": key, "chips": numbers, "steps": steps}
            cache.write_text(json.dumps(content), encoding="utf-8")
    return _as_page(steps, configs, models, chips)


def _as_page(
    steps: JSON,
    configs: Sequence[ModelSweepConfig],
    models: Mapping[str, Model],
    chips: Mapping[str, Chip],
) -> JSON:
    """Steps in the page's form."""
    splits, plans = ([split_data(split) for split in config.splits] for config in configs[:2])
    servers = {model: page_servers(library_model.shape) for model, library_model in models.items()}
    by_name = {split.name: split for model_splits in servers.values() for split in model_splits}
    state_bytes = (
        (max(stage["fixed_bytes"] for stage in step["stages"]), index)
        for index, model in enumerate(steps["models"])
        for step in model["steps"]
        if step["phase"] == TRAIN and model["name"] in MODELS
    )
    _, smallest = min(state_bytes, default=(0, 0))
    largest = max(range(len(splits)), key=lambda index: configs[0].splits[index].shards)
    return {
        **{key: steps[key] for key in ("phases", "machines", "skipped")},
        "choices": {
            "serve": {"splits": splits, "formats": list(FORMATS), "model": 0, "split": largest},
            "train": {"splits": plans, "formats": TRAINED, "model": smallest, "split": 0},
        },
        "formats": {
            name: form if isinstance(form, str) else ",".join(f"{a}={b}" for a, b in form.items())
            for name, form in FORMATS.items()
        },
        "compute": {
            name: form if isinstance(form, str) else form["compute"]
            for name, form in FORMATS.items()
        },
        "models": [
            {**_model(form), "servers": [split.name for split in servers[form["name"]]]}
            for form in steps["models"]
        ],
        "servers": {
            "splits": {
                name: {"chips": split.chips, "dp": split.dp} for name, split in by_name.items()
            },
            "tori": [chip for chip in configs[0].chips if is_on_torus(chips[chip])],
            "chips": server_sizes(SERVER_CHIPS),
            **SERVER_RULES,
        },
    }


def _model(record: JSON) -> JSON:
    """Model record with display name and published format."""
    model = record["name"]
    entry = model_entries().get(model)
    stored = None if entry is None or entry.dtypes is None else entry.dtypes.dtype_of("experts")
    return {
        **record,
        "id": model,
        "name": model if entry is None else entry.name,
        "format": PUBLISHED.get(stored or "", next(iter(FORMATS))),
    }


def doubles(value: Any) -> Any:  # noqa: ANN401, any JSON
    """Replace rationals such as `1/8` in JSON by decimals; other text is unchanged."""
    if isinstance(value, dict):
        return {key: doubles(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [doubles(item) for item in value]
    if isinstance(value, str) and RATIONAL.fullmatch(value):
        return float(Fraction(value))
    return value
