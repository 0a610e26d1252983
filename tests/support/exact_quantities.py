"""The quantities of a calibrated time in exact numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.fits.quantities import whole_tiles
from rooflines.model.costs import evaluate
from rooflines.model.resources import MATH

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from rooflines.fits.quantities import Polynomial


def exact_quantities(
    of: Mapping[str, Polynomial], sizes: Mapping[str, int], row: str, tile: int = 1
) -> dict[str, Fraction]:
    """The quantities at these sizes.

    Args:
        of: The polynomials of a workload without a split.
        sizes: The sizes [1].
        row: The dimension that the unit computes in whole tiles.
        tile: Its tile [1].
    """
    rounded = {**sizes, row: whole_tiles(sizes[row], tile)}
    return {
        name: evaluate(terms, rounded if name == MATH.name else sizes) for name, terms in of.items()
    }
