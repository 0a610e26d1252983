"""The unit of time of timings, found by comparing them with the lower bound."""

from __future__ import annotations

from math import ceil, floor, log10

import polars as pl

from rooflines.basics.errors import RooflinesError
from rooflines.basics.text import counted, seconds
from rooflines.fits.timings import ROW

THOUSAND = 3
"""The exponent of a slip of units: by 10^3, 10^6, ..."""

FASTEST, USUAL = 0.03, 0.3
"""A large multiplication takes no less than the first times its bound, in a cache; out of one it
takes from the second to a thousand times the second [1]."""

LAUNCH_S = 1e-4
"""A time up to this may be overhead alone, for any bound [s]."""


def check_units(frame: pl.DataFrame, what: str = "seconds") -> None:
    """Refuse times that are off by powers of a thousand: those of the largest quarter tell.

    Args:
        frame: `seconds` and `t_lower_s` of timings of one kind [s].
        what: What the times are in their file.

    Raises:
        RooflinesError: The unit of time is off.
    """
    large = frame.sort("t_lower_s").tail(max(frame.height // 4, 1))
    ratio = (large["seconds"] / large["t_lower_s"]).quantile(0.5, "linear") or 1.0
    longest = large["seconds"].quantile(0.5, "linear") or 0.0
    slip = 0
    if ratio < FASTEST:
        slip = THOUSAND * ceil(log10(FASTEST / ratio) / THOUSAND)
    elif longest > LAUNCH_S:
        slip = -THOUSAND * floor(log10(max(ratio / USUAL, 1)) / THOUSAND)
    if slip:
        problem = f"is {ratio:.3g} times the bound in the largest quarter of the timings"
        likely = f": likely {SLIPS[slip]}" if slip in SLIPS else ""
        raise RooflinesError(
            what,
            f"{problem}, so the unit of time is off by 1e{abs(slip)}{likely}",
            f"write seconds: times 1e{slip}",
        )
    _check_each(frame, what)


def _check_each(frame: pl.DataFrame, what: str) -> None:
    """Refuse single times that no cache explains, with the row of the first."""
    ratio = pl.col("seconds") / pl.col("t_lower_s")
    fast = frame.filter(ratio < FASTEST)
    if not fast.is_empty():
        share, time = fast.select(ratio.alias("ratio"), "seconds").row(0)
        where = f" in row {fast[ROW][0]}" if ROW in fast.columns else ""
        problem = (
            f"has {counted(fast.height, 'value')} that no cache explains, the first{where}: "
            f"{seconds(time)} is {share:.3g} times the bound"
        )
        raise RooflinesError(what, problem, "write seconds in these rows, or take them out")


SLIPS = {
    -3: "milliseconds",
    -6: "microseconds",
    -9: "nanoseconds",
    3: "milliseconds taken for microseconds",
    6: "seconds taken for microseconds",
}
"""What times may be in, by the power of ten that makes seconds of them."""
