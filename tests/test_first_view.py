"""The first view of a chart on the site is its picture; what a reader adds has room in the plot."""

from __future__ import annotations

import atexit
import json
import random
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import timed
from scenes import chosen, outside, overlaps, texts
from site_data import part_of

import rooflines
from rooflines import charts
from rooflines.charts.families import fitted, of_every_chip, unchecked
from rooflines.charts.kit.place import Plane
from rooflines.charts.kit.render import spec_of, svg
from rooflines.charts.models import layers_run
from rooflines.charts.registry import charts as all_charts

if TYPE_CHECKING:
    from rooflines.charts.chart import Spec

SEED = 4
FURTHER = 2
"""Choices of each chart that only the site has, drawn at random."""

SHAPES = [
    {"name": f"m-{layer}", "model": "m", "layer": layer, "D": width, "F": output}
    for layer, width, output in (
        ("q", 4096, 4096),
        ("k", 4096, 1024),
        ("qkv", 4096, 6144),
        ("o", 4096, 4096),
        ("up", 4096, 14336),
        ("gate-up", 4096, 28672),
        ("expert-up", 4096, 768),
        ("expert-gate-up", 4096, 1536),
        ("down", 14336, 4096),
    )
]

COMMON: dict[str, Any] = {
    "operation": "matmul",
    "dtypes": ["bf16", "w8a16", "fp8-out-bf16", "w8a8", "mxfp4"],
    "chips": [
        *("tpu-v5e", "tpu-v6e", "h100-sxm", "h200-sxm", "b200", "mi300x", "a100-sxm-80gb"),
        *("t4", "l4", "gb200", "b300", "rubin-cpx", "mi355x", "ascend-950dt"),
    ],
    "shares": [1, 0.9],
}
SERVED: dict[str, Any] = {
    "models": [
        *("llama-3.1-8b", "gpt-oss-120b", "llama-3.1-70b", "gemma-3-27b", "qwen3-32b"),
        *("deepseek-v3", "kimi-k2", "mixtral-8x22b"),
    ],
    "grid": {"B": {"from": 1, "to": 1024, "factor": 4}, "S": [8192, 1024, 32768]},
    "splits": [{"tp": 1}, {"tp": 8}],
    "dtypes": ["bf16", "fp8", "int8", "mxfp4"],
    "chips": COMMON["chips"],
    "calibration": ["trtllm", "nccl"],
}
SIZES_OF_B = {"from": 1, "to": 16384, "factor": 4}

UNLIKE = re.compile(r' class="[^"]*"|gradient_\d+|clip\d+')
"""What differs between drawings of one picture: names of views, layers and gradients."""

EMPTY = re.compile(r"<g\s*/>|<g>\s*</g>")
"""A layer without marks."""


@cache
def loaded() -> rooflines.Config:
    """Sweeps of chips unlike each other, for every chart that the site has of every chip."""
    split = {"sharding": "contracting/all-reduce", "shards": [1, 2, 8, 16, 64]}
    table = Path(tempfile.mkdtemp()) / "timed.csv"
    atexit.register(shutil.rmtree, table.parent)
    timed.of_many(COMMON["chips"], ["mine", "theirs"], 8).write_csv(table)
    return rooflines.load_config(
        {
            "sweeps": {
                "free": {
                    **COMMON,
                    "grid": {"B": SIZES_OF_B, "D": [128, 1024, 8192], "F": [128, 1024, 8192]},
                },
                "split": {**COMMON, "grid": {"B": SIZES_OF_B}, "shapes": SHAPES, **split},
                "fitted": {
                    **COMMON,
                    "grid": {"B": SIZES_OF_B, "D": [4096, 8192], "F": "D"},
                    "dtypes": ["bf16", "w8a16", "fp8-out-bf16", "w4a16", "fp8"],
                    "calibration": "trtllm",
                },
            },
            "model-sweeps": {"served": SERVED},
            "measurements": {"timed": {"file": str(table)}},
        }
    )


@cache
def results() -> charts.Results:
    """What they compute."""
    return charts.of_config(loaded())


def listed() -> list[Spec]:
    """The charts with more chips or dtypes on the site."""
    return [one for one in loaded().charts if one.has_more]


@cache
def site_of(chart: Spec) -> dict[str, Any]:
    """The parts of a chart for the site."""
    return of_every_chip(results(), chart)


def at(chart: Spec, choice: dict[str, Any]) -> dict[str, Any]:
    """The site's specification at a choice, with the part of its chip or dtypes."""
    parts = site_of(chart)
    spec: dict[str, Any] = json.loads(json.dumps(chosen(parts["spec"], choice)))
    part = part_of(parts, choice)
    for name, values in part["params"].items():
        next(each for each in spec["params"] if each["name"] == name)["value"] |= values
    for name, rows in spec["datasets"].items():
        columns = part.get(name, {})
        rows += [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
    return spec


def keys_of(spec: dict[str, Any]) -> list[str]:
    """The choices that a specification has a finding for."""
    return list(next(each["value"] for each in spec["params"] if each["name"] == "findings"))


def choice_of(chart: Spec, key: str) -> dict[str, Any]:
    """The values of a choice by the names of the menus."""
    menus = site_of(chart)["params"]
    return {
        menu["name"]: next(one for one in menu["options"] if str(one) == value)
        for menu, value in zip(menus, key.split("|"), strict=True)
    }


def marks(spec: dict[str, Any], size: str) -> str:
    """All that is drawn."""
    drawn = UNLIKE.sub("", svg(spec, size)).replace("\n", "")
    while (less := EMPTY.sub("", drawn)) != drawn:
        drawn = less
    return drawn


@cache
def picture_of(chart: Spec) -> dict[str, Any]:
    """The specification of the picture."""
    with unchecked():
        return fitted(results(), chart)[1]


def test_the_config_has_every_chart() -> None:
    """So that all of them are compared."""
    assert {one.chart for one in listed()} == {*all_charts()}


@pytest.mark.parametrize("chart", listed(), ids=lambda chart: chart.id)
def test_the_site_draws_what_the_picture_shows_as_the_picture_does(chart: Spec) -> None:
    """Axes, ticks, angles, marks and labels are equal, at first and at another choice."""
    picture, site = picture_of(chart), site_of(chart)["spec"]
    for size in ("web", "paper"):
        assert marks(picture, size) == marks(site, size)
    key = random.Random(f"{SEED} {chart.id}").choice(keys_of(picture))  # noqa: S311, no secret
    names = list(picture["usermeta"]["choices"])
    every = dict(zip(names, key.split("|"), strict=True))
    choice = {name: value for name, value in every.items() if name in ("chip", "dtypes")}
    assert marks(chosen(picture, choice), "web") == marks(chosen(site, choice), "web")


def added_keys(chart: Spec) -> list[str]:
    """Random choices that the picture lacks."""
    cases = site_of(chart)["cases"]
    keys = [f"{chip}{rest}" for chips, rests in cases for chip in chips for rest in rests]
    shown = {*chart.chips, "all"}
    more = {*chart.more_dtypes, *chart.more_models, *map(str, chart.more_sizes)}
    others = sorted(
        key for key in keys if key.partition("|")[0] not in shown or {*key.split("|")} & more
    )
    return random.Random(f"{SEED} {chart.id}").sample(others, FURTHER)  # noqa: S311, no secret


@pytest.mark.parametrize("chart", listed(), ids=lambda chart: chart.id)
def test_what_a_reader_adds_has_room(chart: Spec) -> None:
    """No text overlaps another or leaves the picture, and every axis has ticks."""
    for key in added_keys(chart):
        spec = at(chart, choice_of(chart, key))
        for size in ("web", "paper"):
            assert (key, overlaps(spec, size), outside(spec, size)) == (key, [], [])
            roles = [text.role for text in texts(spec, size)]
            assert roles.count("axis-label") > 2, key


@pytest.mark.parametrize("peaks", [(1.02e15, 1.3e15), (1.15e15, 1.2e15), (1.5e15, 4e15)])
@pytest.mark.parametrize("size", ["web", "paper"])
def test_the_name_of_a_ceiling_is_at_its_own_line(peaks: tuple[float, float], size: str) -> None:
    """On it, or beside it with no other line through the name."""
    of = results().of("free", ["h100-sxm"], ["bf16"])
    name, kind = pl.col("name"), pl.col("kind")
    frame = charts.roofline_frame(of).filter(~((kind == "ceiling") & name.is_in(["tf32", "fp64"])))
    for dtype, peak in zip(("fp8", "int8"), peaks, strict=True):
        moved = (kind == "ceiling") & (name == dtype)
        frame = frame.with_columns(flops_per_s=pl.when(moved).then(peak).otherwise("flops_per_s"))
    spec = spec_of(charts.roofline(frame), "roofline")
    sides = next(each["value"] for each in spec["params"] if each["name"] == "plane")
    look = spec["usermeta"]["looks"][size]
    plot = (look["width"], look["height"])
    plane = Plane(tuple(sides["x"]), tuple(sides["y"]))
    lines = {
        label: plane.at(plot, plane.x[0], peak)[1]
        for label, peak in (("bf16, fp16", 9.89e14), ("fp8", peaks[0]), ("int8", peaks[1]))
    }
    shown = [
        text for text in texts(spec, size) if text.text.endswith("FLOP/s") and " · " in text.text
    ]
    assert {text.text.partition(" · ")[0] for text in shown} == {*lines}
    assert overlaps(spec, size) == []
    for text in shown:
        dtypes = text.text.partition(" · ")[0]
        middle = sum(y for _, y in text.corners) / len(text.corners)
        own, half = lines.pop(dtypes), 0.5 * look["em"]
        on_it = abs(middle - own) < 0.05 * look["em"]
        beside = min(abs(middle - line) for line in lines.values()) > half
        assert on_it or (beside and abs(middle - own) < 0.7 * look["em"])
        lines[dtypes] = own


def test_parts_of_fused_layers_are_left_out() -> None:
    """Those that are in `qkv` and `gate-up` by name and size; `o` is as large as `q`, and stays."""
    layers = layers_run(loaded().sweeps["split"], "m")
    assert [*layers] == ["qkv", "o", "gate-up", "expert-gate-up", "down"]
    assert layers["gate-up"] == "m-gate-up"


def test_layers_of_other_sizes_are_no_parts() -> None:
    """A gate-up matrix of another size than two of `up` is not of these."""
    shapes = [
        {"name": "m-up", "model": "m", "layer": "up", "D": 64, "F": 128},
        {"name": "m-gate-up", "model": "m", "layer": "gate-up", "D": 64, "F": 257},
        {"name": "n-up", "model": "n", "layer": "up", "D": 64, "F": 128},
    ]
    sweep = {**COMMON, "chips": ["tpu-v5e"], "grid": {"B": [1, 2]}, "shapes": shapes}
    (one,) = rooflines.load_config({"sweeps": {"one": sweep}}).sweeps.values()
    assert [*layers_run(one, "m")] == ["up", "gate-up"]
    assert [*layers_run(one, "n")] == ["up"]
