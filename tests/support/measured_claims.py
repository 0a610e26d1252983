"""What the titles of charts of timings and calibrations claim, computed again from rows."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING, Any

import polars as pl
from titled import SPAN, known_rows, number, on_fewest, says_span, span

import rooflines
from rooflines.basics.text import significant
from rooflines.charts.kit.text import chip_label

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from titled import Case

    Claim = tuple[str, Callable[["Case", re.Match[str]], bool]]

NUMBER = r"[\d.,]*\d"

KNOWN: dict[tuple[int, str], pl.DataFrame] = {}


def timings_of(case: Case) -> list[dict[str, Any]]:
    """The timings of what a reader chose, joined with the model."""
    key = (id(case.config), case.chart.measurements)
    if key not in KNOWN:
        found = rooflines.measurements(case.config, case.chart.measurements)
        KNOWN[key] = found.with_columns(pl.col("software").fill_null("software not stated"))
    names = ("chip", "software", "dtypes")
    return KNOWN[key].filter(**{name: case.choice[name] for name in names}).to_dicts()


def says_dots(case: Case) -> bool:
    """The subtitle has the number of timings drawn, and that of all."""
    drawn, every = case.data("B", "D", "F", "seconds").height, len(timings_of(case))
    some = f"Dots: {drawn:,} of {every:,} timings" in case.subtitle
    return some and ("one per cell" in case.subtitle) == (drawn < every)


def attains(case: Case, match: re.Match[str]) -> bool:
    """The median share, and whether hollow dots are explained where there are some."""
    rows = timings_of(case)
    share = median(row["t_lower_s"] / row["seconds"] for row in rows)
    hollow = "hollow" in case.subtitle
    return (
        significant(100 * share) == match["share"]
        and match["dtypes"] == case.choice["dtypes"]
        and hollow == bool(case.data("hollow").filter("hollow").height)
        and ("estimate" in case.subtitle) == any(row["t_estimate_s"] for row in rows)
        and says_dots(case)
    )


def is_times(case: Case, match: re.Match[str]) -> bool:
    """The medians of both ratios; no estimate is named where there is none."""
    rows = timings_of(case)
    estimated = [row for row in rows if row["t_estimate_s"]]
    of_bound = median(row["seconds"] / row["t_lower_s"] for row in rows)
    if bool(estimated) != bool(match["estimate"]):
        return False
    of_estimate = [row["seconds"] / row["t_estimate_s"] for row in estimated]
    return (
        significant(of_bound) == match["bound"]
        and (not estimated or significant(median(of_estimate)) == match["estimate"])
        and says_dots(case)
    )


def errs(case: Case, match: re.Match[str]) -> bool:
    """The median of all errors, and the largest median of a cell."""
    column = {"bound": "t_lower_s", "estimate": "t_estimate_s"}[case.choice["of"]]
    cells = defaultdict(list)
    for row in timings_of(case):
        product = row["D"] * row["F"]
        # exact: the whole part of the logarithm to base 4 of a whole number
        cell = ((row["B"].bit_length() - 1) // 2, (product.bit_length() - 1) // 2)
        cells[cell].append(abs(row[column] / row["seconds"] - 1))
    every = [error for errors in cells.values() for error in errors]
    return (
        match["of"] == case.choice["of"]
        and significant(100 * median(every)) == match["error"]
        and significant(100 * max(map(median, cells.values()))) == match["worst"]
        and f" of {len(every):,} timing" in case.subtitle
    )


def calibrated(case: Case) -> pl.DataFrame:
    """The thresholds of the chips drawn, each of which has estimates."""
    chips = case.data("critical_estimate", "row")["chip"].unique().to_list()
    rows = known_rows(case).filter(pl.col("chip").is_in(chips), dtypes=case.choice["dtypes"])
    estimated = rows.filter(pl.col("t_estimate_s").is_not_null())["chip"].unique()
    found = on_fewest(case.at(case.thresholds(), case.choice["sizes"]))
    found = found.filter(pl.col("chip").is_in(chips))
    assert found.height == len(chips) == len(estimated)
    return found


def times_nominal(case: Case, match: re.Match[str]) -> bool:
    """The least and the largest ratio of the chips with both sizes, all of them with the second."""
    found = calibrated(case)
    both = found.drop_nulls("critical")
    ratios = (both["critical_estimate"] / both["critical"]).to_list()
    low, high = significant(min(ratios)), significant(max(ratios))
    return found["critical_estimate"].null_count() == 0 and (low, high) == (
        match["low"],
        match["high"] or match["low"],
    )


def calibrated_never(case: Case, match: re.Match[str]) -> bool:
    """So many chips without a calibrated size, of all."""
    found = calibrated(case)["critical_estimate"]
    return (number(match["some"]), number(match["all"])) == (found.null_count(), len(found))


def one_never(case: Case, match: re.Match[str]) -> bool:
    """The only chip without a calibrated size."""
    never = calibrated(case).filter(pl.col("critical_estimate").is_null())["chip"].to_list()
    return [chip_label(str(chip)) for chip in never] == [match["chip"]]


def nominal_never(case: Case, match: re.Match[str]) -> bool:
    """No nominal size, and the calibrated ones."""
    found = calibrated(case)
    return found["critical"].null_count() == found.height and says_span(
        match, span(found["critical_estimate"])
    )


TO = rf"(?P<low>{NUMBER})(?: to (?P<high>{NUMBER}))?"
OVER = rf"(?P<bound>{NUMBER}) × the bound(?:, (?P<estimate>{NUMBER}) × the estimate)?"
ERRORS = rf"(?P<error>{NUMBER}) %, worst cell (?P<worst>{NUMBER}) %"

MEASURED_CLAIMS: dict[str, list[Claim]] = {
    "measured-roofline": [
        (rf"The median (?P<dtypes>\S+) timing attains (?P<share>{NUMBER}) % of the bound", attains),
    ],
    "measured-ratio": [(rf"The median timing is {OVER}", is_times)],
    "measured-errors": [(rf"Median error of the (?P<of>\w+): {ERRORS}", errs)],
    "critical-estimate": [
        (rf"Calibrated, the critical [A-Z] is {TO} × the nominal one", times_nominal),
        (
            r"Calibrated, (?P<some>\d+) of (?P<all>\d+) chips are never compute-bound",
            calibrated_never,
        ),
        (r"Calibrated, (?P<chip>.+) is never compute-bound", one_never),
        (rf"Calibrated {SPAN}; nominal never", nominal_never),
    ],
}
"""What the titles of each chart claim, and how that is worked out again."""
