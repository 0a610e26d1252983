"""Charts of sweeps over any letter: curves and maps run over the one that a sweep is about."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
from claimed import holds
from claims import false
from titled import cases_of, drawn_cases
from titled_configs import CONFIGS

import rooflines
from rooflines import charts
from rooflines.charts.offers import curved_of, lead_of

LETTERS = CONFIGS["other letters"]
LONG = {"from": 1, "to": 4096, "factor": 2}
SCORES = {"operation": "NQD,NKD->NQK", "dtypes": ["bf16"], "chips": ["tpu-v5e", "h100-sxm"]}


def config(**sweep: Any) -> rooflines.Config:  # noqa: ANN401, any value of a config
    """A config of one sweep."""
    return rooflines.load_config({"sweeps": {"s": {**SCORES, **sweep}}})


def test_a_chart_runs_over_the_letter_that_its_sweep_is_about() -> None:
    """D, F, K and N: the axis is named after it, and titles speak of it.

    By hand: Q K D / (Q D + K D + Q K) is the ridge, 1.97e14 / 8.19e11, at K = 510.2.
    """
    across = {case.chart.id: case.across for case in drawn_cases("other letters")}
    assert across == {
        "attained-depth": "D",
        "bounds-depth": "D",
        "bounds-width": "F",
        "attained-keys": "K",
        "attained-many": "N",
    }
    said = [case.title for case in drawn_cases("other letters") if case.across == "K"]
    assert "bf16 needs K = 511 at Q = 4,096; at 1 no K is enough" in said


@pytest.mark.parametrize(
    ("grid", "thresholds", "lead"),
    [
        ({"N": LONG, "Q": LONG, "D": 128, "K": LONG}, ["N", "K"], "N"),
        ({"N": LONG, "Q": LONG, "D": 128, "K": LONG}, ["K"], "K"),
        ({"N": LONG, "Q": [1, 64], "D": 128, "K": 8}, ["Q"], "N"),
        ({"N": [1, 2], "Q": [1, 64], "D": 128, "K": 8}, ["Q"], "Q"),
        ({"N": 4, "Q": LONG, "D": 128, "K": "Q"}, ["N"], "N"),
    ],
)
def test_a_long_axis_with_thresholds_leads(
    grid: dict[str, Any], thresholds: list[str], lead: str
) -> None:
    """The first of those; else a long one, else one with thresholds, each with its own axis."""
    sweep = config(grid=grid, thresholds=thresholds).sweeps["s"]
    assert lead_of(sweep) == lead


def test_a_curve_over_another_letter_is_the_roofline() -> None:
    """Of 2 N Q K D FLOP and 2 N (Q D + K D + Q K) bytes; it bends at the thresholds."""
    grid = {"N": 8, "Q": [64, 4096], "D": 512, "K": LONG}
    loaded = config(grid=grid, thresholds=["K"])
    assert "attained" in {spec.chart for spec in loaded.charts}
    frame = charts.attained_frame(charts.of_config(loaded).of("s", ["tpu-v5e"], ["bf16"]))
    assert frame["series"].unique(maintain_order=True).to_list() == ["Q = 4,096", "Q = 64"]
    assert set(frame["setting"]) == {"N = 8, D = 512"}
    for row in frame.filter(kind="curve").to_dicts():
        queries, keys = {"Q = 4,096": 4096, "Q = 64": 64}[row["series"]], row["size"]
        moved = 2 * 8 * (queries * 512 + keys * 512 + queries * keys)
        seconds = max(2 * 8 * queries * keys * 512 / 1.97e14, moved / 8.19e11)
        attained = 2 * 8 * queries * keys * 512 / seconds
        assert row["flops_per_s"] == pytest.approx(attained, rel=1e-9)
    knees = frame.filter(kind="knee").sort("order")
    known = rooflines.thresholds(loaded, "s").filter(pl.col("chip") == "tpu-v5e").sort("Q")
    assert knees["size"].to_list() == known["critical"].reverse().to_list()


def test_what_all_curves_share_is_in_the_subtitle() -> None:
    """Sizes that do not vary are no part of their names."""
    case = next(case for case in drawn_cases("other letters") if case.chart.id == "attained-keys")
    assert ", N = 8, D = 512, every byte counted" in case.subtitle
    assert LETTERS["sweeps"]["keys"]["grid"]["N"] == 8


OWN: dict[str, Any] = {
    "operation": "XGQ,GQYZ->XGYZ",
    "grid": {"X": [16, 256, 4096], "G": 8, "Q": [16, 1024], "Y": LONG, "Z": 64},
    "thresholds": ["X"],
}


def test_a_curve_runs_over_a_short_axis_that_the_sweep_solves_for() -> None:
    """Of five letters, three sizes of X: `auto` has its curves, and not over the longer Y.

    By hand, with W = Y Z columns: 2 X Q W FLOP over 2 (X Q + Q W + X W) bytes a group is the ridge
    r = 1.97e14 / 8.19e11 at X = r Q W / (Q W - r (Q + W)) = 314.8, with W = 4096 * 64, Q = 1024.
    """
    loaded = config(**OWN)
    sweep = loaded.sweeps["s"]
    assert (lead_of(sweep), curved_of(sweep)) == ("Y", "X")
    (spec,) = [spec for spec in loaded.charts if spec.chart == "attained"]
    cases = [case for case in cases_of(loaded) if case.chart.id == spec.id]
    assert {case.across for case in cases} == {"X"}
    assert [case.title for case in cases if false(case)] == []
    assert "bf16 needs X = 315 at Q = 1,024, Y = 4,096" in {case.title for case in cases}
    assert {case.choice["chip"] for case in cases} == {"tpu-v5e", "h100-sxm"}
    knees = charts.attained_frame(charts.of_config(loaded).of("s", ["tpu-v5e"], ["bf16"])).filter(
        kind="knee"
    )
    columns, ridge = 4096 * 64, 1.97e14 / 8.19e11
    by_hand = ridge * 1024 * columns / (1024 * columns - ridge * (1024 + columns))
    of_largest = knees.sort("order").head(1)
    assert of_largest["exact"].to_list() == pytest.approx([by_hand])
    assert of_largest["size"].to_list() == [math.ceil(by_hand)]


def test_a_title_without_room_for_the_letters_has_the_smallest_size() -> None:
    """Five others vary: X is named, with its number, and no title is cut.

    By hand, as above: 240.54 / (1 - 240.54 / (131072 * 4096 * 4) - 240.54 / 131072) = 240.98.
    """
    wide = [1024, 131072]
    grid = {"X": [16, 256, 4096], "G": wide, "Q": wide, "Y": wide, "Z": [1024, 4096], "V": [2, 4]}
    cases = [
        case
        for case in cases_of(config(**{**OWN, "operation": "XGQ,GQYZV->XGYZV", "grid": grid}))
        if case.chart.chart == "attained" and case.choice["chip"] == "tpu-v5e"
    ]
    assert [case.title for case in cases] == ["bf16 needs X = 241 or more at the sizes shown"]
    assert not any(map(false, cases))


def test_a_map_is_over_the_two_letters_that_vary_beside_the_one_solved_for() -> None:
    """Y over Z with G and Q of one size, named in the subtitle; with three that vary there is none.

    By hand, as above: 240.54 / (1 - 240.54 / 4096 - 240.54 / 1024) = 340.5 at Y = Z = 64.
    """
    sizes = {"X": [16, 4096], "G": 8, "Q": 1024, "Y": [16, 64, 256], "Z": [16, 64, 256]}
    loaded = config(**{**OWN, "grid": sizes})
    cases = [case for case in cases_of(loaded) if case.chart.chart == "critical"]
    assert {case.choice["chip"] for case in cases} == {"tpu-v5e", "h100-sxm"}
    assert all(", G = 8, Q = 1,024, every byte counted." in case.subtitle for case in cases)
    assert all(holds(case) and not false(case) for case in cases)
    frame = charts.critical_frame(charts.of_config(loaded).of("s", ["tpu-v5e"], ["bf16"]))
    (cell,) = frame.filter(x=64, y=64).to_dicts()
    ridge = 1.97e14 / 8.19e11
    by_hand = ridge / (1 - ridge / 4096 - ridge / 1024)
    assert (cell["critical"], cell["exact"]) == (math.ceil(by_hand), pytest.approx(by_hand))
    three = config(**{**OWN, "grid": {**sizes, "Q": [64, 1024]}})
    assert "critical" not in {spec.chart for spec in three.charts}


@pytest.mark.parametrize("sizes", [16, [16, 4096]])
def test_two_sizes_of_the_letter_that_is_solved_for_have_no_curve(sizes: int | list[int]) -> None:
    """`auto` draws one of three sizes or more."""
    loaded = config(**{**OWN, "grid": {**OWN["grid"], "X": sizes}})
    assert "attained" not in {spec.chart for spec in loaded.charts}
