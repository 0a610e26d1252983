"""A matrix multiplication of a layer, by its elements and how chips share it; sizes of models."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator

from rooflines.basics.numbers import whole
from rooflines.hardware.entry_forms import PositiveInt

MAX_SIZE = 2**40
"""No size of a model is as large [1]."""

Layout = Literal["column", "row", "heads", "fused", "whole"]
"""How chips share a kernel in tensor parallelism: column has the input whole and splits the output;
row splits the input and sums the outputs; heads splits both; fused is column, then row; whole is
the same on every chip."""


class CopiedPart(NamedTuple):
    """A part of a kernel that fewer chips can share than others: there it has copies.

    Attributes:
        part: What it is; empty: all of the kernel.
        shards: Chips that can share it: heads, or 1 where every chip needs all of it [1].
        weights: Elements of its weights [1].
        reads: Elements of its input per token, where the layout splits the input [1].
        writes: Elements of its output per token [1].
        heads: Whether it is heads, which attention has of all tokens; in training chips share the
            tokens of what is none.
    """

    part: str
    shards: int
    weights: int = 0
    reads: int = 0
    writes: int = 0
    heads: bool = False

    def excess_share(self, tp: int) -> Fraction:
        """What each of tp chips has of it beyond an even share [1]."""
        return Fraction(1, min(tp, self.shards)) - Fraction(1, tp)


@dataclass(frozen=True)
class Matrix:
    """A matrix multiplication of a layer, or several in one kernel.

    Attributes:
        name: Its group.
        weights: Elements of the weights [1].
        reads: Elements of the input per token [1].
        writes: Elements of the output per token [1].
        layout: How chips share it.
        copied: Its parts that fewer chips can share, of which there are copies.
    """

    name: str
    weights: int
    reads: int
    writes: int
    layout: Layout = "column"
    copied_parts: tuple[CopiedPart, ...] = ()


def replicated_matrix(name: str, weights: int, reads: int, writes: int) -> Matrix:
    """A matrix that every chip of a tensor-parallel group has whole, as of `Matrix`."""
    return Matrix(
        name, weights, reads, writes, copied_parts=(CopiedPart("", 1, weights, writes=writes),)
    )


Widths = Mapping[str, tuple[int, int]]
"""The width of the input and of the output of every projection, by its name [1]."""


def fused_matrix(
    name: str, widths: Widths, layout: Layout = "column", shards: Mapping[str, int] | None = None
) -> Matrix:
    """Projections of the same input as one matrix.

    Args:
        name: Its group.
        widths: Their widths in and out, by name [1].
        layout: How chips share it.
        shards: Chips that can share a projection, by its name; of others all can [1].
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


ModelSize = Annotated[PositiveInt, BeforeValidator(lambda value: whole(value, largest=MAX_SIZE))]
NonNegativeSize = Annotated[
    int, BeforeValidator(lambda value: whole(value, least=0, largest=MAX_SIZE))
]
