"""MTP layer (multi-token prediction), which drafts tokens and is in no parameter count.

It reads a token's embedding and the model's last hidden state, projects both to width D, and
continues like the last layer with full or sparse attention. It shares the model's token tables.

Sources: DeepSeek-V3 (arXiv 2412.19437), "Multi-Token Prediction"; `mtp` in config/models.yaml.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

    from rooflines.models.architecture import Shape


def with_mtp_layer(shape: Shape, *, standalone: bool = False) -> Shape:
    """Add the MTP layer to a model, or build it as a model by itself.

    Args:
        shape: The model.
        standalone: Whether to leave out the model's layers.
    """
    counts = {"moe": shape.moe_layers} if shape.moe_layers else {"mlp": shape.mlp_layers}
    parts: dict[str, object] = {
        name: getattr(shape, name).model_copy(update={"layers": 1 if standalone else layers + 1})
        for name, layers in counts.items()
    }
    if (sparse := shape.sparse) is not None:
        layers = {"layers": sparse.layers + 1, "indexer_layers": sparse.indexers + 1}
        single_layer = dict.fromkeys(layers, 1)
        parts["sparse"] = sparse.model_copy(update=single_layer if standalone else layers)
    if not shape.is_first:  # a last stage that drafts has the embedding, too
        parts["first"] = True
    if standalone:
        parts = {"state": None, "mlp": None, "moe": None, **parts}
    return shape.model_copy(update={**parts, "layers": 1 if standalone else shape.layers + 1})


def merge_elements(shape: Shape, share: Fraction) -> Fraction:
    """Parameters per chip in the MTP layer's merge: 2 D x D, copied, and three norms [1].

    Args:
        shape: The model.
        share: Share of the norms on the chip [1].
    """
    return 2 * shape.D * shape.D + 3 * shape.D * share
