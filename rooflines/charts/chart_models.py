"""Models and their layers, from the shapes of a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.charts.frames import BASES, CALIBRATED, NOMINAL, dtypes_by_chip
from rooflines.charts.kit.chart_text import chip_label
from rooflines.charts.views import Need
from rooflines.models.library import model_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rooflines.config.grid_shapes import NamedShape
    from rooflines.sweep.operation_sweep import Sweep
    from rooflines.sweep.step_sweep import ModelSweep, StepCase


STEP_NEEDS = (
    Need("contexts S in its grid, not `requests`", lambda s: not s.config.requests),
    Need("no T in its grid: one new token a step", lambda s: s.new_tokens is None),
    Need("a chip with a known memory capacity", lambda s: bool(dtypes_by_chip(s))),
)
"""Needs of charts of model steps."""

STEP_MENUS: Mapping[str, Callable[[StepCase], str]] = {
    "chip": lambda case: case.chip,
    "model": lambda case: case.name,
    "phase": lambda case: case.phase,
    "dtypes": lambda case: case.dtypes.label,
    "split": lambda case: case.split.name,
}
"""Option of a step by menu."""

FUSED = {"qkv": ("q", "k"), "gate-up": ("up",), "expert-gate-up": ("expert-up",)}
"""Layers contained in a fused one, by names of `models.layer_matrices`."""


def step_bases(sweep: ModelSweep, choice: Mapping[str, Any]) -> tuple[str, ...]:
    """Bases of steps, the default first: calibrated where all chips have an estimate.

    Args:
        sweep: The sweep.
        choice: Options chosen so far; those of chip, model, dtypes, split and phase count.

    Returns:
        Without any estimate the nominal basis alone.
    """
    chosen = [(name, choice[menu]) for menu, name in STEP_MENUS.items() if menu in choice]
    estimated: dict[str, bool] = {}
    for case in sweep.cases:
        shown = all(name(case) == option for name, option in chosen)
        if not shown or case.machine.level.capacity_bytes is None:
            continue
        if not estimated.get(case.chip):
            computes = (kernel.compute for kernel in case.kernels)
            estimated[case.chip] = case.choice.fits((*case.computes, *computes))
    if not any(estimated.values()):
        return (NOMINAL,)
    return (CALIBRATED, NOMINAL) if all(estimated.values()) else BASES


def layers_by_model(shapes: Sequence[NamedShape]) -> dict[str, dict[str, str]]:
    """Shape names by model and layer; the model is "" where a shape names none.

    A shape's `layer` defaults to its name after the model.

    Args:
        shapes: Named shapes; `model` and `layer` are optional.
    """
    models: dict[str, dict[str, str]] = {}
    for shape in shapes:
        layer = shape.layer or shape.name.removeprefix(f"{shape.model}-")
        models.setdefault(shape.model or "", {})[layer] = shape.name
    return models


def layers_run(sweep: Sweep, model: str) -> dict[str, str]:
    """A model's shapes by layer, without layers that a fused layer contains.

    Nobody runs `up` alone where `gate-up` is one matmul, nor `q` and `k` where `qkv` is.

    Args:
        sweep: A sweep whose shapes set every size except the first dimension's.
        model: One of its models, as in `layers_by_model`.
    """
    layers = layers_by_model(sweep.config.shapes or ())[model]
    parts = {part for layer in layers for part in FUSED.get(layer, ())}
    return {layer: shape for layer, shape in layers.items() if layer not in parts}


def typical_layer(layers: Mapping[str, str]) -> str:
    """Representative shape: the MLP's down projection, else the last layer."""
    return next(
        (layers[name] for name in ("down", "expert-down") if name in layers),
        list(layers.values())[-1],
    )


def published_in(sweep: ModelSweep, model: str, dtypes: str) -> str | None:
    """Published dtype of most weights, if it differs from these dtypes; else None."""
    entry = model_entries().get(model)
    published = sweep.models[model].dtypes or (entry.dtypes if entry else None)
    if published is None:
        return None
    name = str(published.experts or published.weights)
    return name if name not in dtypes else None


def named_model(sweep: ModelSweep, model: str, dtypes: str) -> str:
    """Model and dtypes in titles, with the published dtype if it differs."""
    published = published_in(sweep, model, dtypes)
    return f"{chip_label(model)} in {dtypes}{f', published in {published}' if published else ''}"
