"""Matmuls in a layer: elements, layout over chips, copied parts; and types for model sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator

from rooflines.basics.numbers import whole
from rooflines.hardware.entry_forms import PositiveInt

MAX_MATRIX_SIZE = 2**40
"""Largest size that a model may have [1]."""


class Layout(NamedTuple):
    """Tensor-parallel layout: what every chip in a group has whole, and what chips share.

    Attributes:
        reads_whole: Every chip reads the whole input.
        writes_whole: Every chip writes the whole output.
        sums: Outputs are partial sums, for an all-reduce.
        splits_weights: Chips share weights and FLOPs.
    """

    reads_whole: bool
    writes_whole: bool
    sums: bool
    splits_weights: bool = True


COLUMN_LAYOUT = Layout(reads_whole=True, writes_whole=False, sums=False)
ROW_LAYOUT = Layout(reads_whole=False, writes_whole=True, sums=True)
HEADS_LAYOUT = Layout(reads_whole=False, writes_whole=False, sums=False)
FUSED_LAYOUT = Layout(reads_whole=True, writes_whole=True, sums=True)
WHOLE_LAYOUT = Layout(reads_whole=True, writes_whole=True, sums=False, splits_weights=False)
"""Matmul that splits its output; its input; both by heads; the first, then the second; nothing."""


class CopiedPart(NamedTuple):
    """Part of a kernel with copies, since fewer chips can share it than the rest.

    Attributes:
        part: Name; empty: the whole kernel.
        shards: Chips that can share it: its heads, or 1 where every chip needs it whole [1].
        weights: Weight elements [1].
        reads: Input elements per token, where the layout splits the input [1].
        writes: Output elements per token [1].
        heads: Whether the part is heads, which need all tokens; in training, chips share the
            tokens of other parts.
    """

    part: str
    shards: int
    weights: int = 0
    reads: int = 0
    writes: int = 0
    heads: bool = False

    def excess_share(self, tp: int) -> Fraction:
        """Share per chip beyond an even one: 1 / min(tp, shards) - 1 / tp [1]."""
        return Fraction(1, min(tp, self.shards)) - Fraction(1, tp)


@dataclass(frozen=True)
class Matrix:
    """A matmul in a layer, or several fused in one kernel.

    Attributes:
        name: Name of its group.
        weights: Weight elements [1].
        reads: Input elements per token [1].
        writes: Output elements per token [1].
        layout: Layout over tensor-parallel chips.
        copied_parts: Parts with copies, since fewer chips can share them.
    """

    name: str
    weights: int
    reads: int
    writes: int
    layout: Layout = COLUMN_LAYOUT
    copied_parts: tuple[CopiedPart, ...] = ()


def replicated_matrix(name: str, weights: int, reads: int, writes: int) -> Matrix:
    """Build a `Matrix` that every tensor-parallel chip has whole."""
    return Matrix(
        name, weights, reads, writes, copied_parts=(CopiedPart("", 1, weights, writes=writes),)
    )


Widths = Mapping[str, tuple[int, int]]
"""(input width, output width) by projection [1]."""


def fused_matrix(
    name: str,
    widths: Widths,
    layout: Layout = COLUMN_LAYOUT,
    shards: Mapping[str, int] | None = None,
) -> Matrix:
    """Fuse projections with the same input into one matrix.

    Args:
        name: Name of its group.
        widths: Widths in and out, by projection [1].
        layout: Layout over tensor-parallel chips.
        shards: Chips that can share a projection, by name; by default all chips [1].
    """
    parts_by_shards: dict[int, list[str]] = {}
    for part, chips in (shards or {}).items():
        if math.prod(widths.get(part, (0,))):
            parts_by_shards.setdefault(chips, []).append(part)
    weights = sum(map(math.prod, widths.values()))
    copied_parts = []
    for chips, parts in parts_by_shards.items():
        elements = sum(math.prod(widths[part]) for part in parts)
        writes = sum(widths[part][1] for part in parts)
        part = "" if elements == weights else " and ".join(parts)
        copied_parts.append(CopiedPart(part, chips, elements, writes=writes))
    reads, writes = next(iter(widths.values()))[0], sum(out for _, out in widths.values())
    return Matrix(name, weights, reads, writes, layout, tuple(copied_parts))


ModelSize = Annotated[
    PositiveInt, BeforeValidator(lambda value: whole(value, maximum=MAX_MATRIX_SIZE))
]
NonNegativeSize = Annotated[
    int, BeforeValidator(lambda value: whole(value, minimum=0, maximum=MAX_MATRIX_SIZE))
]
