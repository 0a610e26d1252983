"""What subtitles say of calibrations, computed again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooflines.charts.kit.text import chip_label

if TYPE_CHECKING:
    from titled import Case

__all__ = ["says_band", "says_calibrated"]


def on_roofline(case: Case) -> bool:
    """Whether nominal and calibrated points are drawn together, and told apart."""
    return case.chart.chart == "roofline" and "dark: calibrated" in case.subtitle


def says_calibrated(case: Case) -> bool:
    """Whether the subtitle names the chips whose numbers are calibrated, and no others."""
    said = re.search(r" Calibrated(?:: (?P<chips>.+?); others nominal)?[.,]", case.subtitle)
    if not case.calibrated:
        return said is None
    fitted = case.fitted().filter(dtypes=case.choice["dtypes"])["chip"].to_list()
    if said is None:
        nominal = case.choice["chip"] not in fitted
        return "No calibration: nominal." in case.subtitle if nominal else on_roofline(case)
    if "chip" in case.choice:
        return said["chips"] is None and case.choice["chip"] in fitted
    shown = [chip for chip in case.chart.chips if chip in case.data("chip", "calibrated")["chip"]]
    fitted = [chip for chip in shown if chip in fitted]
    if len(fitted) == len(shown):
        return said["chips"] is None
    named = re.fullmatch(r"(\d+) of (\d+) chips", said["chips"])
    if named:
        return [int(group) for group in named.groups()] == [len(fitted), len(shown)]
    return sorted(said["chips"].split(", ")) == sorted(map(chip_label, fitted))


def says_band(case: Case) -> bool:
    """Whether the subtitle names a band only where the table has one, of a chart that draws it."""
    rows = case.rows()
    known = case.calibrated and rows["t_estimate_p10_s"].count() > 0
    return ("p10 to p90" in case.subtitle) == (
        known and case.chart.chart in ("attained", "roofline", "time")
    )
