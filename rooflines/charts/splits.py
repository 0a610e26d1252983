"""How chips share the layers of a model: tensor parallelism where a sweep has both its splits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from rooflines.charts.results import Selection

PAIRS = (
    ("column", "contracting/all-reduce"),
    ("column/gather-x", "contracting/reduce-scatter"),
)
"""Shardings of tensor parallelism: of layers into the block, and of those back to its width."""

CONTRACTING = ("o", "down")
"""Last words of the layers back to the width of a block."""


def split_of(of: Selection, layers: Collection[str]) -> dict[str, str] | str | None:
    """The shardings of layers: paired by layer, else the first that splits something, for all.

    Args:
        of: The chips and combinations.
        layers: Their names, such as `qkv`, `o`, `gate-up` and `down`.

    Returns:
        A sharding by layer, one for all, or None: nothing is split.
    """
    used = {variant.sharding for rows in of.by_chip.values() for variant in rows.variants}
    splits = [name for name, one in of.sweep.shardings.items() if one.split and name in used]
    ends = {layer: layer.rpartition("-")[2] in CONTRACTING for layer in layers}
    pair = next((pair for pair in PAIRS if {*pair} <= {*splits}), None)
    if pair is None or len({*ends.values()}) == 1:
        return next(iter(splits), None)
    return {layer: pair[end] for layer, end in ends.items()}
