"""Impossible times: in another unit than seconds, or below what any cache explains."""

from __future__ import annotations

from math import ceil, floor, log10

import polars as pl

from rooflines.basics.errors import RooflinesError
from rooflines.basics.text import whole_percent

THOUSAND = 3
"""Exponent of a unit slip: by 10^3, 10^6, ..."""

FASTEST, USUAL = 0.03, 0.3
"""A large multiplication takes no less than the first times its bound, in a cache; out of one it
takes from the second to a thousand times the second [1]."""

LAUNCH_S = 1e-4
"""A time up to this may be overhead alone, for any bound [s]."""


def check_units(frame: pl.DataFrame, label: str = "seconds") -> None:
    """Refuse times that are off by powers of a thousand: the largest quarter tells.

    Args:
        frame: Timings in one kind with `seconds` and `t_lower_s` [s].
        label: The times' name in their file.

    Raises:
        RooflinesError: The time unit is off.
    """
    large = frame.sort("t_lower_s").tail(max(frame.height // 4, 1))
    ratio = (large["seconds"] / large["t_lower_s"]).quantile(0.5, "linear") or 1.0
    typical_s = large["seconds"].quantile(0.5, "linear") or 0.0
    slip = 0
    if ratio < FASTEST:
        slip = THOUSAND * ceil(log10(FASTEST / ratio) / THOUSAND)
    elif typical_s > LAUNCH_S:
        slip = -THOUSAND * floor(log10(max(ratio / USUAL, 1)) / THOUSAND)
    if slip:
        problem = f"is {ratio:.3g} times the bound in the largest quarter of the timings"
        likely = f": likely {SLIPS[slip]}" if slip in SLIPS else ""
        raise RooflinesError(
            label,
            f"{problem}, so the unit of time is off by 1e{abs(slip)}{likely}",
            f"write seconds: times 1e{slip}",
        )


IMPOSSIBLE = f"less than {whole_percent(FASTEST)} of the bound, which no cache explains"
"""Reason why a timing is left out."""


def is_possible() -> pl.Expr:
    """True if a time is possible, at least in a cache: seconds >= FASTEST * t_lower_s."""
    return pl.col("seconds") >= FASTEST * pl.col("t_lower_s")


SLIPS = {
    -3: "milliseconds",
    -6: "microseconds",
    -9: "nanoseconds",
    3: "milliseconds taken for microseconds",
    6: "seconds taken for microseconds",
}
"""Likely units of times, by the power of ten that converts them to seconds."""
