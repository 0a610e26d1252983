"""What every title claims, computed again from tables, thresholds and the catalogue."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from claim_checks import (
    a_ridge,
    chips_need,
    counted,
    from_on,
    last_needs,
    layer_thresholds,
    layers_never,
    map_needs,
    most_per,
    needs_at,
    needs_first,
    needs_least,
    never_along,
    never_at_all,
    never_on,
    no_best,
    ridges_apart,
    shapes_on_map,
    waits,
)
from measured_claims import MEASURED_CLAIMS
from model_claims import MODEL_CLAIMS
from networks_named import says_network
from titled import (
    NAMED_SPAN,
    ON,
    SPAN,
    Case,
    cells,
    fewest,
    on_map,
    says_span,
    span,
)

from rooflines.charts.kit.text import chip_label

if TYPE_CHECKING:
    from collections.abc import Callable

    Claim = tuple[str, Callable[["Case", re.Match[str]], bool]]


VERB = (
    r"(?P<verb>(?:are|is) compute-bound|waits? for (?:the )?(?:memory|network)"
    r"|overlaps? imperfectly)"
)
MULTIPLE = r"(?P<times>[\d.,]+)"
UNIT = r"(?:dollar|watt)"
OTHER = r"(?P<other>.+?)(?: no [A-Z] is enough)?"
LAST = r"(?:On (?P<shards>[\d,]+) chips?|At (?P<up>[A-Z]) = (?P<value>[\d,]+))"
MATMULS = r"(?:(?P<some>\d+) of|all|the|both) (?:(?P<all>\d+) )?matmuls?"
CASES = r"(?:pairs of chip and layer|layers)"
COMPARED: list[Claim] = [
    (
        rf"In (?P<dtypes>\S+) (?P<more>.+) needs {MULTIPLE} times the intensity of (?P<less>.+)",
        ridges_apart,
    ),
    (r"The (?P<dtypes>\S+) ridge of (?P<chip>.+) is (?P<ridge>[\d.,]+) FLOP per byte", a_ridge),
]
DEPENDING = r"(?:, depending on the (?P<by>chip|network))?"
BOUGHT: list[Claim] = [
    (
        (
            rf"(?:Of (?P<shown>\d+) chips shown|At (?P<seller>.+?)), (?P<chip>.+) gives most"
            rf" (?P<dtypes>\S+) per {UNIT}"
        ),
        most_per,
    ),
    (rf"Dense (?P<dtypes>\S+) peak per {UNIT}", no_best),
]
NEVER_ON: list[Claim] = [
    (rf"(?P<split>\S+) on {ON}: no [A-Z] is enough", never_on),
    (r"(?P<shards>[\d, .or]+) × (?P<chip>.+): no [A-Z] is enough", never_on),
]
CLAIMS: dict[str, list[Claim]] = {
    "roofline": [
        (r"The (?P<level>\S+) ridge of (?P<chip>.+) is (?P<ridge>[\d.,]+) FLOP per byte", a_ridge)
    ],
    "chips": COMPARED,
    "ridges": COMPARED,
    "attained": [
        (
            rf"\S+ needs {SPAN} at (?P<first>.+?)(?:, (?P<more>[\d,]*\d)|;) at {OTHER}",
            needs_at,
        ),
        (rf"\S+ needs {SPAN} at (?P<first>[^;]+)", needs_first),
        (rf"\S+ needs {SPAN} or more at the sizes shown", needs_least),
        (r"No [A-Z] makes \S+ compute-bound at the sizes shown", never_at_all),
        (rf"\S+ is compute-bound from {SPAN} on at (?:every size shown|.+ = .+)", from_on),
    ],
    "critical": [
        (
            rf"None of these sizes is ever compute-bound on {ON}",
            lambda c, m: fewest(c, m) and cells(c)["critical"].null_count() == cells(c).height,
        ),
        (
            rf"(?P<at>[A-Z] = [A-Z] = [\d,]+) is never compute-bound on {ON}",
            lambda c, m: fewest(c, m) and c.at(cells(c), m["at"])["critical"].to_list() == [None],
        ),
        (
            rf"(?P<some>\d+) of (?P<all>\d+) sizes are never compute-bound on {ON}",
            lambda c, m: (
                fewest(c, m)
                and (int(m["some"]), int(m["all"]))
                == (cells(c)["critical"].null_count(), cells(c).height)
            ),
        ),
        (
            rf"{ON} needs {SPAN}(?:, by size)?",
            lambda c, m: fewest(c, m) and says_span(m, span(cells(c)["critical"])),
        ),
    ],
    "critical-map": [
        (rf"(?:The (?P<shapes>\d+) shapes shown need|.+ needs) {SPAN} on {ON}", map_needs),
        (
            rf"(?P<some>\d+) of the (?P<all>\d+) shapes are never compute-bound on {ON}",
            lambda c, m: (
                on_map(c, m)
                and (int(m["some"]), int(m["all"]))
                == (shapes_on_map(c).count(None), len(shapes_on_map(c)))
            ),
        ),
        (rf"Where {ON} turns compute-bound", lambda c, m: on_map(c, m) and not shapes_on_map(c)),
    ],
    "shards": [
        *NEVER_ON,
        (r"Split \S+: no [A-Z] is enough on the chips shown", never_at_all),
        (
            rf"(?P<shards>\d+) chips? needs? {NAMED_SPAN}(?: at B = [\d,]+)?{DEPENDING}",
            chips_need,
        ),
    ],
    "bounds": [
        *NEVER_ON,
        (r"(?P<chip>(?:(?! at ).)+): no [A-Z] is enough", never_on),
        (r".+ at (?P<up>[A-Z]) = (?P<values>[\d, or]+): no [A-Z] is enough", never_along),
        (rf"{LAST} compute-bound from {SPAN} on", last_needs),
        (r"(?P<some>[\d,]+) of (?P<all>[\d,]+) cases shown on .+ are compute-bound", counted),
    ],
    "layers": [
        (
            r"No [A-Z] makes these layers compute-bound(?: on .+)?",
            lambda c, _: layer_thresholds(c)["critical"].null_count() == layer_thresholds(c).height,
        ),
        (
            rf"(?P<some>[\d,]+) of (?P<all>[\d,]+) {CASES} are never compute-bound(?: on .+)?",
            layers_never,
        ),
        (
            rf".+ needs? {SPAN}(?: on .+?)?(?:, by layer(?: and chip)?)?",
            lambda c, m: says_span(m, span(layer_thresholds(c)["critical"])),
        ),
    ],
    "per-dollar": BOUGHT,
    "per-watt": BOUGHT,
    "time": [
        (rf"At [A-Z] = (?P<low>[\d,]*\d), {MATMULS} {VERB}", waits),
    ],
    **MODEL_CLAIMS,
    **MEASURED_CLAIMS,
}
"""What the titles of each chart claim, and how that is worked out again."""


def on_roofline(case: Case) -> bool:
    """Whether nominal and calibrated points are drawn together, with different marks."""
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


def false(case: Case) -> bool:
    """Whether a title claims what does not hold, or something that nobody checks."""
    if case.subtitle.partition(", split ")[1] and not says_network(case):
        return True
    of_operations = case.chart.sweep in case.config.sweeps
    if of_operations and not (says_calibrated(case) and says_band(case)):
        return True
    for pattern, holds in CLAIMS[case.chart.chart]:
        match = re.fullmatch(pattern, case.title)
        if match:
            return not holds(case, match)
    return True
