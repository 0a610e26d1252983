"""Contours of critical maps: borders on the exact solution, and what is drawn of their arcs."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import vl_convert as vlc
from contours import height

import rooflines
from rooflines import charts
from rooflines.charts.contours import HUGE
from rooflines.charts.kit import VEGA_LITE
from rooflines.charts.kit.render import spec_of
from rooflines.critical.plane import (
    Arc,
    Hyperbola,
    Window,
    border,
    estimated_area,
    exact_threshold,
    nominal_area,
)
from rooflines.critical.solving import rate_at
from rooflines.fits.critical import critical_estimate
from rooflines.model.costs import evaluate
from rooflines.model.resources import RESOURCES
from rooflines.sweep.estimates import estimates

if TYPE_CHECKING:
    from rooflines.critical.plane import Area
    from rooflines.sweep.space import ChipVariant
    from rooflines.sweep.sweep import Sweep

WINDOW = Window(64, 65536, 128, 262144)
SEED = 7
CASES = 40
"""Random cases of each kind."""

SPLITS = [
    "batch/gather-w",
    "column/gather-x",
    "contracting/all-reduce",
    "contracting/reduce-scatter",
]
CHIPS = ["tpu-v5e", "tpu-v6e", "tpu-v5p", "h100-sxm", "h200-sxm", "b200", "a100-sxm-80gb", "mi300x"]
NODES = ["h100-sxm", "h200-sxm", "b200"]
ONE: dict[str, Any] = {
    "operation": "matmul",
    "dtypes": ["bf16", "fp8", "int8", "w8a16", "w4a16"],
    "chips": CHIPS,
    "grid": {"B": [1, 2], "D": [64, 512, 4096], "F": [64, 512, 4096]},
}
SEVERAL = {**ONE, "sharding": SPLITS, "shards": [2, 4, 8, 64]}


def sweep_of(**keys: object) -> Sweep:
    """A sweep of matmuls."""
    return rooflines.load_config({"sweeps": {"s": {**ONE, **keys}}, "charts": []}).sweep("s")


def cases(sweep: Sweep, dice: random.Random) -> list[ChipVariant]:
    """Random chips and variants of a sweep."""
    return dice.sample(sweep.chip_variants, min(CASES, len(sweep.chip_variants)))


def exact_f(
    sweep: Sweep, one: ChipVariant, sizes: dict[str, Fraction], share: Fraction
) -> float | None:
    """The real F from which on a case is compute-bound; None: never."""
    lines = []
    for resource in RESOURCES:
        rate, work = rate_at(resource, sweep.target(*one), share), sweep.case(*one).costs
        at_zero, at_one = (
            evaluate(work[resource.work], {**sizes, "F": Fraction(f)}) for f in (0, 1)
        )
        per_s = rate.per_s if rate else Fraction(1)
        lines.append(((at_one - at_zero) / per_s, at_zero / per_s))
        if rate and rate.latency_s:
            lines.append((Fraction(0), rate.latency_s))
    found = exact_threshold(lines[0], lines[1:])
    return None if found is None else float(found)


def check(arcs: list[Arc], d: int, exact_f: float | None, *, whole: bool = False) -> bool:
    """Whether the border at a D is the exact solution, clamped to the window."""
    found = height(arcs, d)
    if exact_f is None or exact_f > WINDOW.top:
        return found is None or found >= WINDOW.top * (1 - 1e-9)
    if found is None:
        return False
    if whole:
        # A real F that is whole up to rounding is that number or the next one.
        sizes = {math.ceil(found * (1 + sign * 1e-9)) for sign in (-1, 0, 1)}
        return max(exact_f, WINDOW.bottom) in sizes
    return math.isclose(found, max(exact_f, WINDOW.bottom), rel_tol=1e-6)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"flops": "exact"},
        SEVERAL,
        {**SEVERAL, "flops": "exact"},
        {**SEVERAL, "network": ["nvlink", "infiniband"], "chips": NODES, "shards": [8, 64]},
        {"efficiency": {"math": 0.7, "memory": 0.81}},
    ],
)
@pytest.mark.parametrize("share", [Fraction(1), Fraction(9, 10)])
def test_borders_are_the_exact_solution(keys: dict[str, Any], share: Fraction) -> None:
    """At random batches and D, split or not, the smallest F in exact arithmetic."""
    dice = random.Random(SEED)  # noqa: S311, no secret
    sweep = sweep_of(**keys)
    within = 0
    for one in cases(sweep, dice):
        area = nominal_area(sweep, one, share)
        for size in (*map(Fraction, (dice.randint(1, 20_000), dice.uniform(1, 4000), HUGE)),):
            arcs = border(area.lines(Fraction(size)), WINDOW)
            for _ in range(6):
                d = round(64 * 1024 ** dice.random())
                exact = exact_f(sweep, one, {"B": size, "D": Fraction(d)}, share)
                assert check(arcs, d, exact), (one, size, d, exact, arcs)
                within += exact is not None and exact < WINDOW.top
    assert within > CASES


@pytest.mark.parametrize("keys", [{}, {"flops": "exact"}, {**SEVERAL, "shards": [2, 8]}])
def test_calibrated_borders_are_the_exact_solution(keys: dict[str, Any]) -> None:
    """At random batches and D, split or not, the F that is whole in the exact one."""
    dice = random.Random(SEED)  # noqa: S311, no secret
    sweep = sweep_of(**keys, calibration=["trtllm", "sglang", "nccl"])
    fitted = [
        (one, estimate)
        for one, estimate in zip(
            sweep.chip_variants, estimates(sweep, sweep.chip_variants), strict=True
        )
        if estimate
    ]
    within = joined = 0
    for one, estimate in dice.sample(fitted, min(CASES, len(fitted))):
        area: Area = estimated_area(estimate, sweep.op.dims)
        for size in (dice.randint(1, 500), dice.randint(1, 20_000), HUGE):
            arcs = border(area.lines(Fraction(size)), WINDOW)
            joined += len(arcs) > 1
            for _ in range(6):
                d = round(64 * 1024 ** dice.random())
                exact = critical_estimate(estimate, {"B": size, "D": d}, "F").size
                assert check(arcs, d, exact, whole=True), (one, size, d, exact, arcs)
                within += exact is not None and exact < WINDOW.top
    assert within > len(fitted)
    assert joined > 0 or "shards" not in keys


def test_a_border_turns_where_another_line_takes_over() -> None:
    """A corner at x = 10 and y = 100, and x y = 10,000: the upper one of both, and the lower."""
    window = Window(1, 1000, 1, 1e6)
    corner, line = Hyperbola(10, 100, 0), Hyperbola(0, 0, 1e4)
    upper = border([[corner], [line]], window)
    assert upper == [
        Arc(10, 1e6, 10, 1000),
        Arc(10, 1000, 100, 100, 0, 0),
        Arc(100, 100, 1000, 100),
    ]
    lower = border([[corner, line]], window)
    assert lower == [
        Arc(1, 1e4, 10, 1000, 0, 0),
        Arc(10, 1000, 10, 100),
        Arc(10, 100, 100, 100),
        Arc(100, 100, 1000, 10, 0, 0),
    ]
    assert border([[corner], []], window) == []
    assert border([[Hyperbola(2000, 5, 10)]], window) == []
    assert border([[Hyperbola(0, 0, 0)]], window) == [Arc(1, 1, 1000, 1)]
    assert border([[line], [Hyperbola(0, 2e6, 0)]], window) == []
    assert border([[line], [Hyperbola(math.inf, math.inf, math.inf)]], window) == []


def test_a_border_close_to_its_limits_is_straight() -> None:
    """Where rounding would leave nothing of its distance from one."""
    arcs = border([[Hyperbola(100, 100, 1e-2)]], Window(1, 1000, 1, 1e6))
    assert [(arc.x_limit, arc.y_limit) for arc in arcs] == [(None, None), (100, 100), (None, None)]
    assert [arc.x for arc in arcs] == pytest.approx([100, 100, 200], rel=1e-5)
    assert [arc.y for arc in arcs] == pytest.approx([1e6, 200, 100], rel=1e-5)


def drawn_lines(spec: dict[str, Any]) -> list[list[tuple[float, float]]]:
    """The points of all lines of a picture, from the scenegraph [px]."""
    found: list[list[tuple[float, float]]] = []

    def walk(item: dict[str, Any]) -> None:
        if item.get("marktype") == "line":
            found.append([(one["x"], one["y"]) for one in item["items"]])
            return
        for each in item.get("items", []):
            walk(each)

    walk(vlc.vegalite_to_scenegraph(spec, vl_version=VEGA_LITE)["scenegraph"])
    return [line for line in found if len(line) > 1]


def test_drawn_lines_stay_within_half_a_pixel_of_their_arcs() -> None:
    """Every point is on an arc, and no arc is further from the straight pieces, on a slide too."""
    sweep = {**ONE, "chips": ["tpu-v5e"], "dtypes": ["bf16"], "shares": [1, 0.9]}
    sweep["grid"] = {"B": [1, 2], "D": [128, 512, 32768], "F": [128, 512, 32768]}
    results = charts.of_config(rooflines.load_config({"sweeps": {"s": sweep}, "charts": []}))
    frame = charts.contour_frame(results.of("s", ["tpu-v5e"], ["bf16"]))
    spec = spec_of(charts.critical_map(frame), "map")
    spec |= {"width": 1700, "height": 800}
    left, right, bottom, top = (
        float(frame[name][0]) for name in ("left", "right", "bottom", "top")
    )

    def placed(d: float, f: float) -> tuple[float, float]:
        across = math.log(d / left) / math.log(right / left)
        return across * 1700, (1 - math.log(f / bottom) / math.log(top / bottom)) * 800

    arcs = frame.filter(pl.col("kind").is_in(["level", "share"])).to_dicts()
    lines = drawn_lines(spec)
    assert len(lines) == len(arcs) == 11
    by_start = {tuple(round(each) for each in placed(arc["D"], arc["F"])): arc for arc in arcs}
    for line in lines:
        arc = by_start[round(line[0][0]), round(line[0][1])]
        assert line[-1] == pytest.approx(placed(arc["D_end"], arc["F_end"]), abs=1e-3)
        for (x1, y1), (x2, y2) in pairwise(line):
            d1, d2 = (left * (right / left) ** (x / 1700) for x in (x1, x2))
            for share in (0.0, 0.25, 0.5, 0.75):
                far = (
                    arc["D_limit"]
                    + (d1 - arc["D_limit"]) ** (1 - share) * (d2 - arc["D_limit"]) ** share
                )
                rest = (arc["D"] - arc["D_limit"]) / (far - arc["D_limit"])
                x, y = placed(far, arc["F_limit"] + (arc["F"] - arc["F_limit"]) * rest)
                off = abs((x2 - x1) * (y1 - y) - (x1 - x) * (y2 - y1))
                assert off / math.hypot(x2 - x1, y2 - y1) < 0.5
