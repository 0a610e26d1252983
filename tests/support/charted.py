"""Random configs with axes that charts need, and what must hold of each of their charts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import oracle
import polars as pl
from hypothesis import strategies as st
from random_sweeps import axes, configs, counts, round_sizes, splits

import rooflines
from rooflines import RooflinesError, charts
from rooflines.charts.families import fitted, unchecked
from rooflines.charts.kit.render import png
from rooflines.charts.registry import charts as all_charts

if TYPE_CHECKING:
    from rooflines.charts.chart import Spec

MATMUL = oracle.operation_of("matmul")

BATCHES: list[Any] = [
    {"from": 1, "to": 4096, "factor": 2},
    {"from": 1, "to": 10**6, "factor": 3},
    [1, 2],
    [7],
    {"from": 1, "to": 9, "step": 1},
]

PRICES = [{"usd_per_hour": 2.5, "provider": "Someone", "date": "2026-01-31"}]


@st.composite
def charted(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a config of one sweep, with prices and powers: any, or a matmul for many charts."""
    config = draw(configs())
    for chip in (chip for chip in config["chips"].values() if "base" not in chip):
        chip.update(
            draw(
                st.sampled_from(
                    [
                        {},
                        {"prices": []},
                        {"prices": PRICES},
                        {"power": {"watts": 700}, "prices": PRICES},
                    ]
                )
            )
        )
    if draw(st.integers(0, 3)):
        kept = {
            key: value
            for key, value in config["sweeps"]["random"].items()
            if key in ("chips", "dtypes", "unit", "memory")
        }
        config["sweeps"] = {"random": {**draw(matmuls()), **kept}}
    return config


@st.composite
def matmuls(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a sweep of a matmul: free sizes or a model's layers, split or not."""
    several = st.lists(round_sizes, min_size=3, max_size=4, unique=True)
    sizes: dict[str, Any] = {
        "grid": {"B": draw(st.sampled_from(BATCHES)), "D": draw(several), "F": draw(several)}
    }
    if draw(st.booleans()):
        layers = draw(
            st.lists(
                st.sampled_from(["m-up", "m-down", "m-q", "other-up", "alone"]),
                min_size=1,
                max_size=4,
                unique=True,
            )
        )
        given = draw(st.sampled_from(["DF", "DF", "DF", "D", "BDF"]))
        shapes = [{"name": name, **{dim: draw(round_sizes) for dim in given}} for name in layers]
        sizes = {
            "grid": {dim: size for dim, size in sizes["grid"].items() if dim not in given},
            "shapes": shapes,
        }
    elif draw(st.integers(0, 4)) == 0:
        sizes["grid"][draw(st.sampled_from("DF"))] = draw(
            st.one_of(axes(3), st.sampled_from(["B", "F"]))
        )
    optional: dict[str, st.SearchStrategy[Any]] = {
        "columns": st.just(["bound", "utilization"]),
        "shares": st.sampled_from([[0.9, 1], [0.9]]),
    }
    split: dict[str, Any] = draw(splits(MATMUL)) if draw(st.booleans()) else {}
    many: bool = draw(st.booleans())
    if split and many:
        split = {"sharding": split.get("sharding", "batch"), "shards": [1, 2, 4, 8]}
    return {
        "operation": "matmul",
        **sizes,
        **split,
        **(draw(counts(MATMUL)) if draw(st.integers(0, 3)) == 0 else {}),
        "thresholds": draw(st.sampled_from([["B"], ["B"], ["peak", "B"], [], ["D"], ["F", "B"]])),
        **{key: draw(values) for key, values in optional.items() if draw(st.integers(0, 3)) == 0},
    }


ALWAYS = {
    "roofline": ("flops_per_s",),
    "chips": ("ridge",),
    "attained": ("peak",),
    "critical": ("x_low", "x_high", "y_low", "y_high"),
    "critical-estimate": ("sizes",),
    "critical-map": ("D", "F", "top"),
    "shards": ("shards",),
    "ridges": ("ridge",),
    "layers": ("sizes",),
    "per-dollar": ("ridge",),
    "per-watt": ("ridge",),
    "time": ("seconds", "t_lower_s"),
    "bounds": ("x_low", "x_high", "y_low", "y_high", "utilization"),
    "pareto": ("t_lower_s", "tokens_per_s_per_chip", "fits", "max_B", "front"),
    "capacity": ("footprint_bytes", "capacity_bytes", "fits", "max_B"),
    "measured-roofline": ("software", "kind", "flops_per_s", "intensity"),
    "measured-ratio": ("software", "kind", "ratio_lower"),
    "measured-errors": ("software", "of", "error", "timings"),
}
"""Columns that have a value in every row; of a null a chart would draw nothing."""

PARTS: dict[str, dict[str, tuple[str, ...]]] = {
    "roofline": {
        "memory": ("bytes_per_s", "intensity"),
        "network": ("bytes_per_s", "intensity"),
        "point": ("intensity", "B"),
    },
    "attained": {"curve": ("size", "flops_per_s")},
    "critical-map": {"level": ("level",), "never": ("level",), "shape": ("name",)},
    "measured-roofline": {
        "bound": ("bytes_per_s", "timings", "share"),
        "timing": ("B", "D", "F", "seconds"),
    },
    "measured-ratio": {"median": ("t_lower_s",), "timing": ("t_lower_s", "B", "D", "F")},
    "measured-errors": {"cell": ("x_low", "x_high", "y_low", "y_high")},
}
"""The same for the rows of one kind."""

NEEDED = {"per-dollar": "flops_per_usd", "per-watt": "flops_per_joule"}
"""Columns that have some value."""


def drawn(config: dict[str, Any], *, listed: bool = False, pictures: bool = False) -> list[str]:
    """Draw the charts that `auto` chooses for a config; return their kinds.

    Args:
        config: The config; where it is refused, nothing is drawn.
        listed: Whether to draw each kind that a config can list of its first sweep, too.
        pictures: Whether to check each specification against Vega-Lite's schema, and render it.
    """
    sweep = next(iter({**config.get("sweeps", {}), **config.get("model-sweeps", {})}))
    asked = ["auto", *([{"chart": kind, "sweep": sweep}] for kind in all_charts() if listed)]
    return [
        kind for chosen in asked for kind in _drawn({**config, "charts": chosen}, pictures=pictures)
    ]


def _drawn(config: dict[str, Any], *, pictures: bool) -> list[str]:
    try:
        loaded = rooflines.load_config(config)
    except RooflinesError:
        return []
    results = charts.of_config(loaded)
    for chart in loaded.charts:
        with unchecked():
            frame, spec = fitted(results, chart)
        assert wrong(chart, frame) == []
        if pictures:
            alt.LayerChart.from_dict({**spec, "usermeta": {}}, validate=True)
            png(spec, "web", scale=1)
    return [chart.chart for chart in loaded.charts]


def wrong(chart: Spec, frame: pl.DataFrame) -> list[str]:
    """Return what a chart could not draw of its frame, in words."""
    found = [] if frame.height else ["no rows"]
    complete = {"": ALWAYS[chart.chart], **PARTS.get(chart.chart, {})}
    for kind, columns in complete.items():
        rows = frame.filter(kind=kind) if kind else frame
        found += [
            f"null in {column} of {kind or 'a row'}"
            for column in columns
            if rows[column].null_count()
        ]
    for column in frame.select(pl.selectors.float()).iter_columns():
        shown = (
            frame.filter(pl.col("kind") != "never")[column.name]
            if column.name == "level"
            else column
        )
        if not shown.drop_nulls().is_finite().all():
            found.append(f"no finite number in {column.name}")
    if chart.chart in NEEDED and not frame[NEEDED[chart.chart]].count():
        found.append(f"no {NEEDED[chart.chart]}")
    return found
