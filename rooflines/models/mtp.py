"""The layer for multi-token prediction of a model, which drafts tokens and is in no count.

It reads the embedding of a token and the last state of the model, projects both to width D, and is
then a layer as the last one with attention to all or to chosen tokens. The token tables are those
of the model.

Sources: DeepSeek-V3 (arXiv 2412.19437), "Multi-Token Prediction"; `mtp` in config/models.yaml.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

    from rooflines.models.architecture import Shape


def with_mtp_layer(shape: Shape, *, standalone: bool = False) -> Shape:
    """A model with the layer as one more, or the layer as a model of its own.

    Args:
        shape: The model.
        standalone: Whether it is without the model's layers.
    """
    counts = {"moe": shape.moe_layers} if shape.moe_layers else {"mlp": shape.mlp_layers}
    parts: dict[str, object] = {
        name: getattr(shape, name).model_copy(update={"layers": 1 if standalone else layers + 1})
        for name, layers in counts.items()
    }
    if (sparse := shape.sparse) is not None:
        layers = {"layers": sparse.layers + 1, "own": sparse.indexed + 1}
        single_layer = dict.fromkeys(layers, 1)
        parts["sparse"] = sparse.model_copy(update=single_layer if standalone else layers)
    if standalone:
        parts = {"state": None, "mlp": None, "moe": None, **parts}
    return shape.model_copy(update={**parts, "layers": 1 if standalone else shape.layers + 1})


def merge_elements(shape: Shape, share: Fraction) -> Fraction:
    """What a chip holds of the layer besides: a projection of 2 D x D, whole, and three norms [1].

    Args:
        shape: The model.
        share: The share of the norms that the chip holds [1].
    """
    return 2 * shape.D * shape.D + 3 * shape.D * share
