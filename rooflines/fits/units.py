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

SERVER_S = 1.0
"""The time that a server takes at most for a request, beside the model [s]."""


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
        raise _off(what, problem, slip)
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


def check_first_tokens(frame: pl.DataFrame, what: str = "ttft_s") -> None:
    """Refuse times to the first token that are off by powers of a thousand.

    A request waits no longer than all requests at the same time take one after another; the unit
    of time is off where that is exceeded, and the times divided by thousands keep their bound. A
    prompt that is in a cache may take less than its bound, but no less than a token after it. One
    run alone may be slow or fast for any reason, and is not refused.

    Args:
        frame: Runs with `ttft_s`, its bound `ttft_lower_s`, `tpot_s` [s], `output_tokens` and
            `concurrency` [1].
        what: What the times are in their file.

    Raises:
        RooflinesError: The unit of time is off.
    """
    if frame.height == 1:
        return
    reading = SERVER_S + USUAL * 10**THOUSAND * pl.col("ttft_lower_s")
    before = (pl.col("concurrency") - 1) * (reading + pl.col("output_tokens") * pl.col("tpot_s"))
    rows = frame.with_columns(longest=before + reading).sort("longest")
    shortest = rows.head(max(rows.height // 4, 1))
    over = (shortest["ttft_s"] / shortest["longest"]).quantile(0.5, "linear") or 0.0
    if over > 1:
        slip = -THOUSAND * ceil(log10(over) / THOUSAND)
        if (rows["ttft_s"] * 10.0**slip >= rows["ttft_lower_s"]).all():
            problem = (
                f"is {over:.3g} times as long as all requests at the same time take one after "
                "another, in the quarter of the runs where that is least"
            )
            raise _off(what, problem, slip)
    most = rows.select((pl.col("ttft_s") / pl.col("ttft_lower_s")).max()).item()
    if most < FASTEST and (rows["ttft_s"] < rows["tpot_s"]).all():
        problem = f"is at most {most:.3g} times its bound, and less than tpot_s, in all runs"
        raise _off(what, problem, THOUSAND * ceil(log10(FASTEST / most) / THOUSAND))


SLIPS = {
    -3: "milliseconds",
    -6: "microseconds",
    -9: "nanoseconds",
    3: "milliseconds taken for microseconds",
    6: "seconds taken for microseconds",
}
"""What times may be in, by the power of ten that makes seconds of them."""


def _off(what: str, problem: str, slip: int) -> RooflinesError:
    """The error for times that are off by a power of ten."""
    likely = f": likely {SLIPS[slip]}" if slip in SLIPS else ""
    return RooflinesError(
        what,
        f"{problem}, so the unit of time is off by 1e{abs(slip)}{likely}",
        f"write seconds: times 1e{slip}",
    )
