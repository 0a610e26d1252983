"""Models and their layers, from the shapes of a sweep."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.settings.shapes import Shape
    from rooflines.sweep.sweep import Sweep


def models_of(shapes: Sequence[Shape]) -> dict[str, dict[str, str]]:
    """Shapes by model and layer.

    A shape's keys `model` and `layer` say which layer it is; without `layer` that is the rest of
    its name after the model. The model and layer of a shape without `model` are guessed from its
    name: `llama-3-8b-up` is the layer `up` of `llama-3-8b`. The guess stays for one version.

    Args:
        shapes: With `name`, and `model` and `layer` if they are stated.

    Returns:
        For every model its layers, and the name of each layer's shape. Shapes that belong to no
        model are listed under "".
    """
    models = _guessed([shape.name for shape in shapes if not shape.model])
    for shape in shapes:
        model, name = shape.model, shape.name
        if not model:
            continue
        layer = shape.layer or name.removeprefix(f"{model}-")
        models.setdefault(model, {})[layer] = name
    return models


def layers_run(sweep: Sweep, model: str) -> dict[str, str]:
    """The shapes of a model by layer, without those that another one contains.

    Nobody runs `up` alone where `gate-up` is one matmul, nor `q` and `k` where `qkv` is.

    Args:
        sweep: Its shapes set every size but that of the first dimension.
        model: One of its models, as of `models_of`.
    """
    layers = models_of(sweep.config.shapes or ())[model]
    (columns,) = (axis.columns for axis in sweep.inner if "shape" in axis.columns)
    dims = [dim for dim in sweep.op.dims if dim in columns]
    sizes = dict(
        zip(columns["shape"], zip(*(columns[dim] for dim in dims), strict=True), strict=True)
    )
    of_layers = {layer: sizes[shape] for layer, shape in layers.items()}
    parts = {part for layer in layers for part in _parts_of(layer, of_layers)}
    return {layer: shape for layer, shape in layers.items() if layer not in parts}


def _parts_of(layer: str, sizes: Mapping[str, Sequence[int]]) -> list[str]:
    """The layers that a fused one consists of, by its name and its sizes; none if it is not fused.

    Its name joins theirs, after words that all share; parts without a shape are as large as the
    last one with a shape: `qkv` is `q`, `k` and another of the size of `k`.
    """
    words = layer.split("-")
    joined = [(words[:cut], words[cut:]) for cut in range(len(words) - 1)]
    for shared, names in (*joined, (words[:-1], list(words[-1]))):
        parts = ["-".join([*shared, name]) for name in names]
        known = [part for part in parts if part in sizes and part != layer]
        if known and _add_up(sizes[layer], [sizes[part] for part in known], len(parts)):
            return known
    return []


def _add_up(whole: Sequence[int], parts: Sequence[Sequence[int]], count: int) -> bool:
    """Whether sizes are those of parts side by side along one dimension, `count` in all."""
    every = [*parts, *[parts[-1]] * (count - len(parts))]
    by_dim = zip(whole, zip(*every, strict=True), strict=True)
    differing = [(size, sizes) for size, sizes in by_dim if {*sizes} != {size}]
    return len(differing) == 1 and all(sum(sizes) == size for size, sizes in differing)


def typical_layer(layers: Mapping[str, str]) -> str:
    """The shape shown of a model's layers: the way down in its MLP, else the last."""
    return next(
        (layers[name] for name in ("down", "expert-down") if name in layers),
        list(layers.values())[-1],
    )


def _guessed(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Models and layers by name: a layer is the longest ending that two names share.

    A model that has no more layers than one whose name it extends is part of that one:
    `gpt-oss-expert` is of `gpt-oss`.
    """
    endings = Counter(ending for name in names for _, ending in _cuts(name))
    models: dict[str, dict[str, str]] = {}
    for name in names:
        model, layer = next(
            ((model, ending) for model, ending in _cuts(name) if endings[ending] > 1), ("", name)
        )
        models.setdefault(model, {})[layer] = name
    for model in sorted(models, key=len, reverse=True):
        parent = next((m for m in models if m and m != model and model.startswith(f"{m}-")), None)
        if parent and len(models[model]) <= len(models[parent]):
            models[parent] |= {
                f"{model[len(parent) + 1 :]}-{layer}": name
                for layer, name in models.pop(model).items()
            }
    return models


def _cuts(name: str) -> list[tuple[str, str]]:
    """All ways to cut a name into model and layer; a layer begins with a letter, unlike `27b`."""
    words = name.split("-")
    return [
        ("-".join(words[:cut]), "-".join(words[cut:]))
        for cut in range(1, len(words))
        if words[cut][:1].isalpha()
    ]
