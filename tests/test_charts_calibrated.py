"""Nominal and calibrated critical sizes side by side, and colours of estimates and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rooflines
from rooflines import RooflinesError, charts
from rooflines.basics.text import count
from rooflines.charts.families import fitted, unchecked
from rooflines.charts.kit.text import width_em
from rooflines.charts.kit.themes import theme

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

SWEEP: dict[str, Any] = {
    "operation": "matmul",
    "grid": {"B": [1, 64], "D": [64, 4096], "F": [64, 4096]},
    "dtypes": ["bf16"],
    "chips": ["h100-sxm", "b200", "tpu-v5e"],
    "calibration": "trtllm",
}


def draw(chosen: rooflines.Config, spec: Any) -> tuple[pl.DataFrame, dict[str, Any]]:  # noqa: ANN401
    """A chart's frame and specification."""
    with unchecked():
        return fitted(charts.of_config(chosen), spec)


def test_critical_sizes_are_those_of_the_thresholds() -> None:
    """Of chips with a calibration, at equal sizes; a narrow matmul is never compute-bound."""
    chosen = rooflines.load_config({"sweeps": {"s": {**SWEEP, "thresholds": ["B"]}}})
    (spec,) = [spec for spec in chosen.charts if spec.chart == "critical-estimate"]
    assert set(spec.chips) == {"h100-sxm", "b200"}
    frame, drawn = draw(chosen, spec)
    assert set(frame["sizes"]) == {"D = F = 64", "D = F = 4,096"}
    wide = frame.filter(chip="h100-sxm", sizes="D = F = 4,096").row(0, named=True)
    # intensity 2 B D^2 / (2 (2 B D + D^2)) >= 989e12 / 3.35e12 from B = 344.98 on
    assert wide["critical"] == 345
    table = rooflines.thresholds(chosen, "s").filter(chip="h100-sxm", D=4096, F=4096)
    assert wide["critical_estimate"] == table["saturates_estimate"][0]
    assert frame.filter(sizes="D = F = 64")["critical"].to_list() == [None, None]
    findings = next(p["value"] for p in drawn["params"] if p["name"] == "findings")
    assert (
        findings["bf16|D = F = 64"]["title"] == "Calibrated B = 289,717 to 468,926; nominal never"
    )


def test_it_opens_where_most_chips_have_both_sizes() -> None:
    """Not in the middle, where none has; a reader's first choice of dtypes counts."""
    grid = {"B": 1, "D": [64, 128, 256, 512, 4096, 8192], "F": [64, 128, 256, 512, 4096, 8192]}
    sweep = {**SWEEP, "grid": grid, "thresholds": ["B"]}
    chosen = rooflines.load_config({"sweeps": {"s": sweep}})
    (spec,) = [spec for spec in chosen.charts if spec.chart == "critical-estimate"]
    frame, drawn = draw(chosen, spec)
    both = frame.drop_nulls(["critical", "critical_estimate"])
    assert both["sizes"].unique(maintain_order=True).to_list()[0] == "D = F = 4,096"
    parameters = {each["name"]: each.get("value") for each in drawn["params"]}
    assert parameters["sizes"] == "D = F = 4,096"
    span = parameters["spans"]["bf16"]
    sizes = [*both["critical"], *both["critical_estimate"]]
    assert span["low"] <= min(sizes)
    assert span["high"] >= max(sizes)
    assert all(span["low"] <= tick <= span["high"] for tick in span["ticks"])
    assert span["room"] > max(width_em(count(size), bold=True) for size in sizes)
    assert span["room"] < 6


@pytest.mark.parametrize(
    "changes",
    [
        {"calibration": None},
        {"tile": {"B": 128}},
        {"thresholds": ["D"]},
        {"chips": ["tpu-v5e"]},
        {"memory": ["l2", "hbm"], "chips": ["h100-sxm"]},
    ],
)
def test_without_calibrated_sizes_there_is_no_such_chart(changes: dict[str, Any]) -> None:
    """No calibration, tiles, no threshold of B, no such chip, another memory level first."""
    chosen = rooflines.load_config({"sweeps": {"s": {**SWEEP, **changes}}})
    assert "critical-estimate" not in {spec.chart for spec in chosen.charts}
    with pytest.raises(RooflinesError, match="critical-estimate, which needs"):
        rooflines.load_config(
            {
                "sweeps": {"s": {**SWEEP, **changes}},
                "charts": [{"chart": "critical-estimate", "sweep": "s"}],
            }
        )


def luminance(colour: Sequence[float]) -> float:
    """The relative luminance of red, green and blue, 0 to 255 [1]."""
    shares = [value / 255 for value in colour]
    linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Sequence[float], other: Sequence[float]) -> float:
    """The contrast of two colours [1]."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def rgb(colour: str) -> list[float]:
    """`#17202E` as numbers."""
    return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]


def test_a_chart_of_calibrations_shows_dtypes_that_have_one() -> None:
    """Not those named most often; a listed one that no chip is calibrated in is refused."""
    mixed = {**SWEEP, "dtypes": ["bf16", "fp16", "int8", "fp8-out-bf16"]}
    others = {f"s{i}": {**SWEEP, "dtypes": ["fp16", "int8"]} for i in range(3)}
    chosen = rooflines.load_config({"sweeps": {"s": mixed, **others}})
    specs = [spec for spec in chosen.charts if spec.chart == "critical-estimate"]
    assert [(spec.sweep, spec.dtypes) for spec in specs] == [("s", ("bf16", "fp8-out-bf16"))]
    listed = [{"chart": "critical-estimate", "sweep": "s", "dtypes": ["int8"]}]
    with pytest.raises(RooflinesError, match="shows none of") as caught:
        rooflines.load_config({"sweeps": {"s": mixed}, "charts": listed})
    assert caught.value.where == "charts[0].dtypes"
    assert "such as bf16 of b200" in str(caught.value)
    of = charts.of_config(chosen).of("s", ["h100-sxm"], ["int8"])
    with pytest.raises(RooflinesError, match="shows none of h100-sxm"):
        charts.critical_estimate_frame(of)


@pytest.mark.parametrize("dark", [False, True])
def test_names_are_read_on_the_background(dark: bool) -> None:  # noqa: FBT001
    """A contrast of 4.5 on the background."""
    colours = theme(dark=dark)
    for name in ("estimate", "measured"):
        assert contrast(rgb(getattr(colours, name)), rgb(colours.background)) >= 4.5
