"""Titles keep their numbers with names of any length: names are shortened, titles are not cut."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from titled import Case, cases_of
from titled_configs import BLOCK, CONFIGS, LONG, MATMUL

import rooflines
from rooflines.charts.claims import Finding, claim
from rooflines.charts.kit.text import width_em
from rooflines.charts.kit.themes import Margins
from rooflines.charts.kit.titles import LONGEST_TITLE, titles
from rooflines.charts.registry import charts as all_charts

LENGTH = 40
CALIBRATED = {"calibration.bf16": {"math": 0.8, "memory": 0.9, "overhead_s": 3.0e-6}}
ESTIMATES: dict[str, Any] = {
    "sweeps": {"s": {**MATMUL, "grid": {"B": LONG}, "shapes": BLOCK}},
    "chips": {
        chip: {"base": chip.removeprefix("my-"), "source": "a test", **CALIBRATED}
        for chip in ("my-tpu-v5e", "my-h100-sxm", "my-b200")
    },
    "charts": [{"chart": "critical-estimate", "sweep": "s"}],
}
ESTIMATES["sweeps"]["s"]["chips"] = list(ESTIMATES["chips"])
SOURCES = {**CONFIGS, "calibrations": ESTIMATES}


def long(name: str) -> str:
    """A name of 40 characters that begins with another."""
    return f"{name}-in-a-rack-that-the-laboratory-built-itself"[:LENGTH]


def lengthened(source: dict[str, Any]) -> dict[str, Any]:
    """A config with long names of chips, shapes, their model, and sweeps."""
    config = copy.deepcopy(source)
    own = config.pop("chips", {})
    chips = set()
    for kind in {"sweeps", "model-sweeps"} & {*config}:
        config[kind] = {long(name): sweep for name, sweep in config[kind].items()}
        for sweep in config[kind].values():
            chips |= {*sweep["chips"]}
            sweep["chips"] = [long(chip) for chip in sweep["chips"]]
            for shape in sweep.get("shapes", []):
                shape.update(name=long(shape["name"]), model=long("model"), layer=shape["name"])
    for chart in config.get("charts", []):
        chart["sweep"] = long(chart["sweep"])
    entries = {chip: own.get(chip, {"base": chip, "source": "a test"}) for chip in chips}
    return {**config, "chips": {long(chip): entry for chip, entry in entries.items()}}


@pytest.mark.filterwarnings("ignore::rooflines.PlausibilityWarning")
def test_no_title_of_any_chart_is_cut() -> None:
    """With names of 40 characters, for every choice of a reader."""
    cases: list[Case] = []
    for source in SOURCES.values():
        cases += cases_of(rooflines.load_config(lengthened(source)))
    assert {case.chart.chart for case in cases} == {*all_charts()}
    titled = {case.title for case in cases}
    assert [title for title in titled if title.endswith("…")] == []
    assert [title for title in titled if width_em(title, bold=True) > LONGEST_TITLE] == []


def test_a_long_name_leaves_room_for_the_number() -> None:
    """1.97e14 FLOP/s over 8.19e11 byte/s are 241 FLOP per byte; the name loses its middle."""
    chip = "my-very-long-chip-from-the-laboratory-next-door"
    entry = {"base": "tpu-v5e", "source": "a test"}
    sweep = {**MATMUL, "chips": [chip], "grid": {"B": [1, 64], "D": 4096, "F": 4096}}
    loaded = rooflines.load_config(
        {
            "sweeps": {"s": sweep},
            "chips": {chip: entry},
            "charts": [{"chart": "roofline", "sweep": "s"}],
        }
    )
    (case,) = cases_of(loaded)
    assert case.title.startswith("The HBM ridge of my-very-l")
    assert case.title.endswith("r is 241 FLOP per byte")


def said(title: str, key: str = "", **over: list[str]) -> str:
    """A title as a chart has it."""
    finding = Finding(title, "", claim("never", "critical", over, None))
    findings: Any = titles({key: finding}, ["chip"] if key else [], Margins())[0].param
    return str(findings.value[key]["title"])


def test_the_widest_names_are_shortened_first() -> None:
    """Short names stay whole, and so does a title that fits."""
    short, wide = "h100-sxm", "w" * 40
    fits = "H100 SXM needs 1.5 times the intensity of B200"
    assert said(fits, short, shape=["b200"]) == fits
    cut = said(f"H100 SXM needs 1.5 times the intensity of {wide} in bf16", short, shape=[wide])
    assert cut.startswith("H100 SXM needs 1.5 times the intensity of w")
    assert cut.endswith("w in bf16")
    both = said(f"{wide} needs 123 of {'m' * 40} in bf16", wide, shape=["m" * 40])
    assert " needs 123 of m" in both
    assert abs(both.count("w") - both.count("m")) <= 2
