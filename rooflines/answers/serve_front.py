"""Fronts of a plan, drawn in characters: output tokens/s/chip over tokens/s/user."""

from __future__ import annotations

import math
import string
from typing import TYPE_CHECKING

from rooflines.basics.text import seconds, significant
from rooflines.serving.deployments import MIXED, POOLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.serving.front import FrontPoint

WIDTH, HEIGHT = 64, 9
"""Characters of the plot [1]."""

MIN_SHARE = 0.04
"""Share of the highest throughput below which points are left out on the right [1]."""

KIND_NAMES = {MIXED: "mixed", POOLS: "two pools"}


def drawn_front(
    points: Sequence[FrontPoint], limits: Sequence[float], basis_title: str
) -> list[str]:
    """Front as lines of text; none with fewer than two points.

    Args:
        points: Points of all chips and kinds.
        limits: Limits on TPOT, drawn as lines [s].
        basis_title: Name of the basis of both rates.
    """
    if len({point.user_rate for point in points}) < 2:  # noqa: PLR2004
        return []
    top = max(point.output_per_chip for point in points)
    right = max(
        *(point.user_rate for point in points if point.output_per_chip >= MIN_SHARE * top),
        *(1 / limit for limit in limits),
    )
    grid = [[" "] * WIDTH for _ in range(HEIGHT)]
    for limit in limits:
        for row in grid:
            row[_column(1 / limit, right)] = ":"
    letters = _letters(points)
    for point in points:
        if point.user_rate <= right:
            height = min(HEIGHT - 1, int(point.output_per_chip / top * HEIGHT))
            letter = letters[point.chip, point.kind]
            grid[HEIGHT - 1 - height][_column(point.user_rate, right)] = letter
    decimals = max(0, 2 - math.floor(math.log10(top)))  # three digits of the highest
    return [
        f"output tok/s/chip ({basis_title}): {_legend(letters, limits)}",
        *(
            f"{top * (HEIGHT - index) / HEIGHT:>7,.{decimals}f} |{''.join(row).rstrip()}"
            for index, row in enumerate(grid)
        ),
        f"{'':>7} +{'-' * WIDTH}",
        f"{'':>8}0{'tokens/s/user':^{WIDTH - 7}}{significant(right, 3):>7}",
    ]


def _column(rate: float, right: float) -> int:
    return min(WIDTH - 1, int(rate / right * WIDTH))


def _letters(points: Sequence[FrontPoint]) -> dict[tuple[str, str], str]:
    """Letters by chip and kind: small for mixed servers, capital for two pools.

    A chip has its initial, or where two share one the next free letter.
    """
    by_chip: dict[str, str] = {}
    for chip in dict.fromkeys(point.chip for point in points):
        candidates = (chip[0], *string.ascii_lowercase)
        by_chip[chip] = next(name for name in candidates if name not in by_chip.values())
    kinds = dict.fromkeys((point.chip, point.kind) for point in points)
    return {
        (chip, kind): by_chip[chip] if kind == MIXED else by_chip[chip].upper()
        for chip, kind in kinds
    }


def _legend(letters: dict[tuple[str, str], str], limits: Sequence[float]) -> str:
    """Letters and lines in words."""

    def parts() -> Iterator[str]:
        chips = {chip for chip, _ in letters}
        for (chip, kind), letter in letters.items():
            of_chip = f" {chip}" if len(chips) > 1 else ""
            yield f"{letter} {KIND_NAMES[kind]}{of_chip}"
        if limits:
            yield f": TPOT {' and '.join(map(seconds, limits))}"

    return ", ".join(parts())
