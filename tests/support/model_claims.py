"""What the titles of charts of whole models claim, computed again from rows and the catalogue."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl
from titled import ON, number, shown_chip

from rooflines.basics.text import significant
from rooflines.charts.kit.text import on_chips

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from titled import Case

    Claim = tuple[str, Callable[["Case", re.Match[str]], bool]]

TARGET_S = 0.02
WITHIN = "within 20 ms a token"


def rows_of(case: Case) -> pl.DataFrame:
    """The rows of what a reader chose, of the chips shown; calibrated, those with estimates."""
    kept = {name: case.choice[name] for name in ("model", "dtypes", "split") if name in case.choice}
    rows = case.results.rows(case.chart.sweep).filter(
        pl.col("chip").is_in(case.chart.chips), S=int(case.choice["S"]), **kept
    )
    if case.calibrated:
        rows = rows.filter(pl.col("t_estimate_s").is_not_null()).with_columns(
            t_lower_s="t_estimate_s",
            tokens_per_s_per_chip=pl.col("B") / (pl.col("t_estimate_s") * pl.col("chips")),
        )
    return rows.collect()


def best(case: Case) -> dict[str, float]:
    """The largest throughput of each chip among decode steps that fit and keep the target [1/s]."""
    rows = rows_of(case).filter(pl.col("fits"), pl.col("t_lower_s") <= TARGET_S, phase="decode")
    found: dict[str, float] = {}
    for chip, rate in rows.select("chip", "tokens_per_s_per_chip").iter_rows():
        found[chip] = max(found.get(chip, 0.0), rate)
    return found


def close(one: float, other: float) -> bool:
    """Whether two throughputs are a tie."""
    return math.isclose(one, other, rel_tol=1e-11)


def most(case: Case, match: re.Match[str]) -> bool:
    """One chip is ahead of every other one."""
    rates = best(case)
    first = rates.pop(shown_chip(case, match["chip"]))
    return len(set(rows_of(case)["chip"])) > 1 and all(
        rate < first and not close(rate, first) for rate in rates.values()
    )


def tie(case: Case, match: re.Match[str]) -> bool:
    """So many chips have the largest throughput."""
    rates = list(best(case).values())
    return number(match["some"]) == sum(close(rate, max(rates)) for rate in rates)


def alone(case: Case, match: re.Match[str]) -> bool:
    """One chip has rows at all; its largest throughput."""
    ((chip, rate),) = best(case).items()
    return (
        set(rows_of(case)["chip"]) == {chip}
        and shown_chip(case, match["chip"]) == chip
        and significant(rate) == match["rate"]
    )


def held(case: Case, match: re.Match[str]) -> tuple[float, float, int, int]:
    """Capacity, weights [byte], the largest batch by division [1], and that of the rows [1]."""
    row = rows_of(case).filter(chip=case.choice["chip"]).row(0, named=True)
    assert match[0].count(on_chips(row["chip"], [row["chips"]])) == 1
    chips = case.config.model_sweeps[case.chart.sweep].chips
    capacity = float(chips[row["chip"]].memory[row["memory"]].capacity_bytes or 0)
    one = row["cache_footprint_bytes"] * row["dp"] / row["B"]
    free = capacity - row["weights_footprint_bytes"]
    largest = max(math.floor(free / one), 0) * row["dp"]
    return capacity, row["weights_footprint_bytes"], largest, row["max_B"]


def holds(case: Case, match: re.Match[str]) -> bool:
    """The largest batch, at the context chosen."""
    *_, largest, told = held(case, match)
    said = {f"B = {largest:,} ", f"S = {int(case.choice['S']):,}"}
    return largest == told > 0 and all(text in match[0] for text in said)


def too_heavy(case: Case, match: re.Match[str]) -> bool:
    """The weights alone are too large."""
    capacity, weights, _, told = held(case, match)
    return weights > capacity and told == 0


def no_room(case: Case, match: re.Match[str]) -> bool:
    """The weights fit, but no cache does."""
    capacity, weights, largest, told = held(case, match)
    at = f"S = {int(case.choice['S']):,} "
    return weights <= capacity and largest == told == 0 and at in match[0]


MODEL_CLAIMS: dict[str, list[Claim]] = {
    "pareto": [
        (rf"(?P<chip>.+) gives most tokens per chip {WITHIN}", most),
        (rf"(?P<some>\d+) chips tie for most tokens per chip {WITHIN}", tie),
        (rf"(?P<chip>.+): (?P<rate>[\d.,]+) tokens/s per chip {WITHIN}", alone),
        (
            rf"Nothing that fits is {WITHIN}",
            lambda c, _: not best(c) and bool(rows_of(c)["fits"].any()),
        ),
        (r"Nothing shown fits the memory", lambda c, _: not rows_of(c)["fits"].any()),
    ],
    "capacity": [
        (rf"Up to B = [\d,]+ fits on {ON} at S = [\d,]+", holds),
        (rf"The weights do not fit on {ON}", too_heavy),
        (rf"No cache of S = [\d,]+ fits beside the weights on {ON}", no_room),
    ],
}
"""What the titles of each chart claim, and how that is worked out again."""
