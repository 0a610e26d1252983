"""The data of the page that answers questions: coefficients, chips, layers, steps and timings.

No result is computed here, and the page has no formula of the model: it evaluates the coefficients
of `formulas` and `steps` in double precision.
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

from rooflines.basics.text import FORMULA, counted
from rooflines.charts.kit.chart_text import chip_label
from rooflines.config.model_fields import ModelSweepConfig
from rooflines.fits.calibration_files import merge_calibrations, shipped_calibrations
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.hardware.timing_errors import (
    ESTIMATE,
    MATMUL,
    MIN_LONG_BOUND_S,
    STEP,
    measured_quantiles,
)
from rooflines.models.architecture import DECODE, TRAIN
from rooflines.models.layer_matrices import layers_of
from rooflines.models.library import find_model, model_entries
from rooflines.site.calibration_data import SOFTWARE, first_fits
from rooflines.site.matmuls import matmul_data
from rooflines.site.model_steps import NOTHING, EarlierSteps, split_data, step_data
from rooflines.sweep.checks import checked_sweep
from rooflines.sweep.recipes import fits_of, shape_recipe, sweep_of
from rooflines.sweep.training_sweep import sweep_of_models
from rooflines.training.parallel_plan import TrainingPlan
from rooflines.training.training_kernels import MICRO_BATCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.fits.calibration_files import Calibrations
    from rooflines.hardware.entries import Chip
    from rooflines.models.model import Model
    from rooflines.sweep.step_sweep import ModelSweep

MATMULS = "explorer"
"""The name of the data of matmuls."""

OFFERED: JSON = json.loads(Path(__file__).with_suffix(".json").read_bytes())
"""What the page offers, from `explorer.json`."""

MODELS: Sequence[str] = OFFERED["models"]
"""Models of the catalogue whose steps and layers the page has; the first is shown first."""

SERVING: Sequence[str] = OFFERED["serving"]
"""Chips of the catalogue that models are served on; the page has their steps."""

FIRST_CHIPS: Sequence[str] = OFFERED["first_chips"]
"""Chips that the page shows first."""

FORMATS: Mapping[str, str | dict[str, str]] = OFFERED["formats"]
"""Dtypes of models by the names of the page, the plain one first."""

PUBLISHED: Mapping[str, str] = OFFERED["published"]
"""Formats of the page by the dtype of published experts, or of all weights."""

SPLITS: Sequence[Mapping[str, int]] = OFFERED["splits"]

PLANS: Sequence[Mapping[str, int | str]] = OFFERED["plans"]
"""Splits of a step of training, with the states that replicas share; the first is shown first."""

TRAINED: Sequence[str] = [
    name
    for name, form in FORMATS.items()
    if isinstance(form, str)
    or {form["compute"]} == {form[of] for of in ("weights", "experts") if of in form}
]
"""Formats that steps of training have: those whose weights are computed in their own dtype."""

IN_EXPLORER: Mapping[str, Mapping[str, str]] = OFFERED["views"]
"""What menus of charts are in the address of the page, by its subject."""

PAGE: JSON = OFFERED["page"]
"""What the scripts of the page read as it is: what is shown `first`, the `names` in its address,
the `tabs`, the `dtypes` of one of them, and numbers that may be typed over as one's `own`, each
with its text, unit and name of the unit. Also the `columns` of the table of chips: `name`, `head`,
`saved`, the name in CSV, `meaning`, the kind of `text`, the `value` of a row if that is not its
name, and words `of` the states that have it."""

OF_ONE = ("steps", "kernels", "estimates", "extents")
"""What is loaded of a model when it is shown."""

MATCHED = ("trtllm", "nccl")
"""Software whose calibrations give the estimates of steps."""

MOST_OWN = 8
"""Models of a config that the page has besides its own, chips, and plans of training [1]."""

RATIONAL = re.compile(r"-?\d+/\d+")


def explorer_files(
    chips: Mapping[str, Chip], recipes: Iterable[JSON], kept: Path | None = None
) -> Iterator[tuple[str, JSON]]:
    """The data of the page.

    Args:
        chips: All chips that it offers, by id.
        recipes: Of sweeps of operations, of whole models and of timings.
        kept: A file for the steps of models, of which the next call reads those of equal chips.

    Yields:
        Names and data: `explorer`, of matmuls, chips, layers and timings; `steps`, of models in
        common; and `steps-0` and so on, what each of them has, which is loaded when it is shown.
    """
    known = list(recipes)
    calibrations = merge_calibrations(
        [shipped_calibrations(), *(fits_of(recipe) for recipe in known if "sweep" in recipe)]
    )
    own = [sweep_of(recipe) for recipe in known if "models" in recipe and "sweep" in recipe]
    named = {model: find_model(model) for model in MODELS}
    others = {name: model for sweep in own for name, model in sweep.models.items()}
    served = [chip for sweep in own for chip in sweep.chips if chip not in SERVING]
    models = named | dict(
        [(name, model) for name, model in others.items() if name not in named][:MOST_OWN]
    )
    yield MATMULS, _matmuls(chips, calibrations, models)
    where = [*SERVING, *dict.fromkeys(served[:MOST_OWN])]
    on = [chip for chip in where if chip in chips]
    configs = _configs(models, on, offered_plans(own), calibrations)
    steps = _steps(models, configs, chips, calibrations, kept)
    for index, model in enumerate(steps["models"]):
        yield f"steps-{index}", {key: model.pop(key) for key in OF_ONE}
    yield "steps", steps


def _matmuls(
    chips: Mapping[str, Chip], calibrations: Calibrations, models: Mapping[str, Model]
) -> JSON:
    """A matmul on chips, layers of models, and quantiles of timings."""
    plain = matmul_data(chips, dtype_entries())
    own = {each["id"]: chips[each["id"]] for each in plain["chips"]}
    found = {**plain, "fits": first_fits(own, calibrations)}
    return {
        **found,
        "first": FIRST_CHIPS,
        "layers": [
            [f"{chip_label(model)} · {layer}, {depth:,} × {columns:,}", depth, columns]
            for model, of in models.items()
            for layer, (depth, columns) in layers_of(of.shape).items()
        ],
        "software": SOFTWARE,
        "measured": _measured(found),
        "formula": FORMULA,
        "offered": PAGE,
    }


def _measured(found: JSON) -> JSON:
    """Quantiles of timings, by what was timed (a matmul, or decode), chip, dtypes, length and over.

    Of several engines that of the estimate counts, else the first.

    Args:
        found: The `fits` of chips and the `dtypes`, as the page has them.

    Returns:
        The quantiles `by` these, with what a sentence has `said` of them; the dtypes of matmuls
        that are `timed` of each chip, in words; and the least `long` bound [s].
    """
    compute = {each["name"]: each["compute"] for each in found["dtypes"]}
    by: dict[str, JSON] = {}
    for row in measured_quantiles().iter_rows(named=True):
        what = DECODE if row["of"] == STEP else row["of"]
        key = "/".join([what, *(row[name] or "" for name in ("chip", "dtypes", "length", "over"))])
        fit = found["fits"].get(row["chip"], {}).get(compute.get(row["dtypes"]), {})
        fitted = fit.get("software") if row["of"] == MATMUL else MATCHED[0]
        if key not in by or row["software"] == fitted:
            quantiles = {"low": row["p10"], "middle": row["p50"], "high": row["p90"]}
            said = timed_text(row)
            by[key] = {"over": row["over"], "length": row["length"], "said": said, **quantiles}
    matmuls = measured_quantiles().filter(of=MATMUL)
    dtypes = matmuls.group_by("chip", maintain_order=True).agg(pl.col("dtypes").unique().sort())
    timed = {chip: ", ".join(names) for chip, names in dtypes.iter_rows()}
    return {"long": MIN_LONG_BOUND_S, "by": by, "timed": timed}


def timed_text(row: JSON) -> str:
    """Which timings quantiles are of, in words."""
    noun = "timing" if row["of"] == MATMUL else "run"
    n = counted(row["n"], noun)
    n += " of models left out of the fit" if (row["of"], row["over"]) == (STEP, ESTIMATE) else ""
    if not row["chip"]:
        return f"of other models, chips and engines, {n}"
    of = chip_label(row["chip"])
    of = of if row["of"] == MATMUL else f"{of} in {row['dtypes']}"
    return f"{of}, {SOFTWARE.get(row['software'], row['software'])}, {n}"


def offered_plans(own: Iterable[ModelSweep]) -> list[Mapping[str, Any]]:
    """How chips share a step of training: `PLANS`, and those of the config's own sweeps."""
    plans: dict[str, Mapping[str, Any]] = {_name(plan): plan for plan in PLANS}
    for sweep in (each for each in own if TRAIN in each.config.phase):
        for split in sweep.config.splits:
            plan = split.model_dump(exclude_defaults=True, exclude={MICRO_BATCH})  # has a field
            if plan.get("recompute") != "full":  # whose MFU the page does not tell from its HFU
                plans.setdefault(_name(plan), plan)
    return [*plans.values()][: len(PLANS) + MOST_OWN]


def _name(plan: Mapping[str, Any]) -> str:
    return TrainingPlan.model_validate(plan).name


def _configs(
    models: Iterable[str],
    where: Sequence[str],
    plans: Sequence[Mapping[str, Any]],
    calibrations: Calibrations,
) -> list[ModelSweepConfig]:
    """The configs of steps that serve models, and that train them."""
    forms = {
        name: each if isinstance(each, str) else {"name": name, **each}
        for name, each in FORMATS.items()
    }
    plain = {
        "models": list(models),
        "grid": {"B": [8], "S": [1024]},
        "chips": list(where),
        "thresholds": [],
    }
    serves = {
        "phase": ["decode", "prefill"],
        "dtypes": list(forms.values()),
        "splits": list(SPLITS),
        "calibration": list(MATCHED),
    }
    every = [TrainingPlan.model_validate(plan) for plan in plans]
    whole = {
        "B": lcm(*(plan.global_micro_batch for plan in every)),
        "S": lcm(*(plan.cp for plan in every)),
    }
    trains = {
        "phase": [TRAIN],
        "grid": whole,
        "dtypes": [forms[name] for name in TRAINED],
        "splits": list(plans),
        "calibration": calibrations.softwares,
    }
    return [ModelSweepConfig.model_validate(plain | own) for own in (serves, trains)]


def _steps(
    models: Mapping[str, Model],
    configs: Sequence[ModelSweepConfig],
    chips: Mapping[str, Chip],
    calibrations: Calibrations,
    kept: Path | None,
) -> JSON:
    """Kernels, footprints, rates and estimates of steps of models."""
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
        before = json.loads(kept.read_bytes()) if kept else {}
        if before["key"] == key:
            same = [chip for chip in where if before["chips"][chip] == numbers[chip]]
            if len(same) == len(where):
                return _as_page(before["steps"], configs)
            earlier = EarlierSteps(before["steps"], same)
    catalogues = chips, dtype_entries(), calibrations, models
    each_phase = (sweep_of_models("steps", each, *catalogues) for each in configs)
    sweeps = [checked_sweep(replace(sweep, fastest_axes=True)) for sweep in each_phase]
    found = step_data(sweeps, earlier)
    with suppress(OSError):
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            content = {"key": key, "chips": numbers, "steps": found}
            kept.write_text(json.dumps(content), encoding="utf-8")
    return _as_page(found, configs)


def _as_page(of: JSON, configs: Sequence[ModelSweepConfig]) -> JSON:
    """Steps in the form of the page."""
    splits, plans = ([split_data(split) for split in config.splits] for config in configs)
    held = (
        (max(stage["weights"] for stage in step["stages"]), index)
        for index, model in enumerate(of["models"])
        for step in model["steps"]
        if step["phase"] == TRAIN and model["name"] in MODELS
    )
    _, smallest = min(held, default=(0, 0))
    most = max(range(len(splits)), key=lambda index: configs[0].splits[index].shards)
    return {
        **{key: of[key] for key in ("phases", "machines", "skipped")},
        "offers": {
            "serve": {"splits": splits, "formats": list(FORMATS), "model": 0, "split": most},
            "train": {"splits": plans, "formats": TRAINED, "model": smallest, "split": 0},
        },
        "formats": {
            name: each if isinstance(each, str) else ",".join(f"{a}={b}" for a, b in each.items())
            for name, each in FORMATS.items()
        },
        "compute": {
            name: each if isinstance(each, str) else each["compute"]
            for name, each in FORMATS.items()
        },
        "calibration": ",".join(MATCHED),
        "models": [_model(each) for each in of["models"]],
    }


def _model(of: JSON) -> JSON:
    """A model with its name and format."""
    model = of["name"]
    entry = model_entries().get(model)
    stored = None if entry is None or entry.dtypes is None else entry.dtypes.dtype_of("experts")
    return {
        **of,
        "id": model,
        "name": model if entry is None else entry.name,
        "format": PUBLISHED.get(stored or "", next(iter(FORMATS))),
    }


def doubles(value: Any) -> Any:  # noqa: ANN401, any JSON
    """JSON with decimals in place of rationals such as `1/8`; other text stays as it is."""
    if isinstance(value, dict):
        return {key: doubles(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [doubles(each) for each in value]
    if isinstance(value, str) and RATIONAL.fullmatch(value):
        return float(Fraction(value))
    return value
