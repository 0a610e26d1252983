"""Matmuls to time: spread evenly over logarithms of B, and over sites (D, F)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.basics.errors import Mistakes, RooflinesError, at_path
from rooflines.basics.file_kinds import named_kind
from rooflines.basics.files import bounded_content, read_csv
from rooflines.basics.numbers import whole
from rooflines.fits.nominal import plain_matmul
from rooflines.fits.timings import MATMUL_SIZES
from rooflines.hardware.dtype_catalogue import dtype_entries, resolve_combinations

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rooflines.theory.costs import Workload

MIDDLE = (65, 1024)
"""Range from which every third B is [1]."""

STEPS = (0.8191725133961645, 0.6710436067037893, 0.5497004779019703)
"""Steps around a circle whose points fill a cube evenly: powers of 1 / 1.2207440846, the real root
of x^4 = x + 1. Source: Roberts 2018, "The Unreasonable Effectiveness of Quasirandom Sequences"."""

TRIES = 50
"""Points tried per shape, as some are too slow or repeat another [1]."""


class MatmulSizes(NamedTuple):
    """Sizes in a matmul, B x D times D x F."""

    B: int
    D: int
    F: int


class ShapeRange(NamedTuple):
    """Range that shapes are chosen from.

    Attributes:
        sides: D and F for sites where none are given [1].
        rows: The range for B [1].
    """

    sides: tuple[int, ...]
    rows: tuple[int, int]


@cache
def workload(dtypes: str) -> Workload:
    """Matmul in a dtype combination from the catalogue, on one machine."""
    (combination,) = resolve_combinations([dtypes], dtype_entries()).values()
    return plain_matmul(combination)


def cost(shape: MatmulSizes, dtypes: str, name: str) -> int:
    """Cost of a matmul: `flops` [FLOP] or `footprint_bytes` [byte]."""
    return int(workload(dtypes).costs[name].at(shape._asdict()))


def choose_shapes(
    count: int,
    shape_range: ShapeRange,
    sites: Sequence[tuple[int, int]],
    max_flops: float,
    dtypes: str,
) -> list[MatmulSizes]:
    """Shapes that fill the ranges of B and the sites evenly, the same in every run.

    Args:
        count: The number of shapes [1].
        shape_range: The sizes to choose from.
        sites: Their D and F; none: from `shape_range`.
        max_flops: The most work in one matmul [FLOP].
        dtypes: The dtype combination.

    Returns:
        As many, or fewer if not enough are within the limit.
    """
    shapes: dict[MatmulSizes, None] = {}
    for index in range(TRIES * count):
        b, d, f = ((0.5 + index * step) % 1 for step in STEPS)
        min_rows, max_rows = MIDDLE if index % 3 == 0 else shape_range.rows
        sides = shape_range.sides
        D, F = sites[index % len(sites)] if sites else (_at_share(sides, d), _at_share(sides, f))  # noqa: N806, letters of sizes
        shape = MatmulSizes(round(min_rows * (max_rows / min_rows) ** b), D, F)
        if cost(shape, dtypes, "flops") <= max_flops:
            shapes[shape] = None
        if len(shapes) == count:
            break
    return list(shapes)


def _at_share(sides: Sequence[int], share: float) -> int:
    return sides[int(share * len(sides))]


def read_shapes(path: Path) -> tuple[list[MatmulSizes], list[tuple[int, int]]]:
    """Shapes in a CSV file, or the sites where it has no B.

    Raises:
        RooflinesError: It cannot be read, lacks D or F, or has sizes that are none.
    """
    with at_path(file=str(path)), named_kind(path, "shapes"):
        try:
            frame = read_csv(bounded_content(path), infer_schema_length=None)
        except (
            pl.exceptions.PolarsError,
            pl.exceptions.PanicException,
            ValueError,
            OSError,
        ) as error:
            reason = " ".join(str(error).split())
            fix = "give a CSV file with columns D, F and, if you like, B"
            raise RooflinesError("", f"cannot be read: {reason[:200]}", fix) from None
        missing = [name for name in ("D", "F") if name not in frame.columns]
        if missing or frame.is_empty():
            problem = f"lacks {', '.join(missing)}" if missing else "has no rows"
            raise RooflinesError("", problem, "give columns D, F and, if you like, B")
        columns = [name for name in MATMUL_SIZES if name in frame.columns]
        rows: list[list[int]] = []
        with Mistakes() as mistakes:
            for number, row in enumerate(frame.select(columns).iter_rows(), start=1):
                rows.append([])
                for name, size in zip(columns, row, strict=True):
                    with mistakes.at(f"row {number}", name):
                        rows[-1].append(whole(size))
    if "B" in columns:
        return [MatmulSizes(*row) for row in rows], []
    return [], list(dict.fromkeys((D, F) for D, F in rows))
