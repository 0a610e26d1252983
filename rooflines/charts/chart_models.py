"""Models and their layers, from the shapes of a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.charts.frames import dtypes_by_chip
from rooflines.charts.kit.chart_text import chip_label
from rooflines.charts.views import Need
from rooflines.models.library import model_entries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.config.grid_shapes import NamedShape
    from rooflines.sweep.operation_sweep import Sweep
    from rooflines.sweep.step_sweep import ModelSweep


STEP_NEEDS = (
    Need("contexts S in its grid, not `requests`", lambda s: not s.config.requests),
    Need("no T in its grid: one new token a step", lambda s: s.new_tokens is None),
    Need("a chip with a known memory capacity", lambda s: bool(dtypes_by_chip(s))),
)
"""What charts of the steps of whole models need of a sweep."""

FUSED = {"qkv": ("q", "k"), "gate-up": ("up",), "expert-gate-up": ("expert-up",)}
"""The layers that another one contains, of those of `models.layer_matrices`."""


def layers_by_model(shapes: Sequence[NamedShape]) -> dict[str, dict[str, str]]:
    """The name of each layer's shape, by model and layer; shapes without a model are of "".

    A shape's `layer` is by default the rest of its name after the model.

    Args:
        shapes: With `name`, and `model` and `layer` if they are stated.
    """
    models: dict[str, dict[str, str]] = {}
    for shape in shapes:
        layer = shape.layer or shape.name.removeprefix(f"{shape.model}-")
        models.setdefault(shape.model or "", {})[layer] = shape.name
    return models


def layers_run(sweep: Sweep, model: str) -> dict[str, str]:
    """The shapes of a model by layer, without those that another one contains.

    Nobody runs `up` alone where `gate-up` is one matmul, nor `q` and `k` where `qkv` is.

    Args:
        sweep: Its shapes set every size but that of the first dimension.
        model: One of its models, as of `layers_by_model`.
    """
    layers = layers_by_model(sweep.config.shapes or ())[model]
    parts = {part for layer in layers for part in FUSED.get(layer, ())}
    return {layer: shape for layer, shape in layers.items() if layer not in parts}


def typical_layer(layers: Mapping[str, str]) -> str:
    """The shape shown of a model's layers: the way down in its MLP, else the last."""
    return next(
        (layers[name] for name in ("down", "expert-down") if name in layers),
        list(layers.values())[-1],
    )


def published_in(sweep: ModelSweep, model: str, dtypes: str) -> str | None:
    """The format that most weights of a model are published in, if it is another."""
    entry = model_entries().get(model)
    published = sweep.models[model].dtypes or (entry.dtypes if entry else None)
    if published is None:
        return None
    name = str(published.experts or published.weights)
    return name if name not in dtypes else None


def named_model(sweep: ModelSweep, model: str, dtypes: str) -> str:
    """A model and its dtypes as titles name them."""
    published = published_in(sweep, model, dtypes)
    return f"{chip_label(model)} in {dtypes}{f', published in {published}' if published else ''}"
