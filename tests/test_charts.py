"""A chart's numbers are those in tables, its sentences keep the rules, its texts have room."""

import random
from functools import cache
from io import BytesIO
from itertools import product
from math import isclose
from typing import Any

import charted
import polars as pl
import pytest
from hypothesis import given
from key_sets import key_differences
from lots import of
from PIL import Image
from random_sweeps import check, configs
from scenes import fetching_or_themed, invalid, misfits, texts
from shown import unexplained

import rooflines
from rooflines import RooflinesError, charts
from rooflines.answers.claims import MIN_FACTOR, broken
from rooflines.charts.chart_files import draw, entry_of, views_file
from rooflines.charts.chart_models import layers_run
from rooflines.charts.kinds.chips import KIND as CHIPS
from rooflines.charts.kinds.front import TARGET
from rooflines.charts.kit.chart_text import chip_label
from rooflines.charts.kit.render import THUMBNAIL_SCALE, limited, thumbnail
from rooflines.charts.kit.themes import SIZES, Margins
from rooflines.charts.options import ALL, MAX_VIEWS, Menu, choices_of
from rooflines.charts.registry import kinds

SEED, DRAWN = 4, 2
"""Views of each chart that are drawn in a test, at random."""

LISTED = charted.loaded().charts


def some(chart):
    """The first view of each option of its first menu, and some more at random."""
    every = charted.views(chart)
    first = {str(case.get("by", "")): (case, view) for case, view in reversed(every)}
    more = random.Random(f"{SEED} {chart.id}").sample(every, min(DRAWN, len(every)))
    return [*first.values(), *more]


def test_auto_draws_one_chart_of_every_kind():
    assert [chart.chart for chart in LISTED] == [
        name for name in kinds() if name not in ("kernel", "requests", "levers", "plans")
    ]
    assert all(chart.auto for chart in LISTED)


@pytest.mark.parametrize("chart", LISTED, ids=lambda chart: chart.chart)
def test_texts_of_a_view_do_not_overlap(chart):
    specs = {"|".join(map(str, case.values())): view.spec() for case, view in some(chart)}
    for size in ("slide", "paper"):
        assert misfits(specs, size) == {}
        for spec in specs.values():
            drawn = texts(spec, size)
            assert [text.role for text in drawn].count("axis-label") > 1
            (title,) = (of["value"] for of in spec["params"] if of["name"] == "headline")
            assert (title in {text.text for text in drawn}) == (size == "slide")
    for name, spec in specs.items():
        limited(spec, name)
    assert (invalid(specs), fetching_or_themed(specs)) == ({}, [])


@pytest.mark.parametrize("chart", LISTED, ids=lambda chart: chart.chart)
def test_a_title_keeps_the_rules_and_speaks_of_what_is_chosen(chart):
    for case, view in charted.views(chart):
        assert broken(view.claim) is None
        assert view.claim.chosen in (None, case.get("chip"))
        if view.claim.chosen:
            said = view.subtitle if chart.chart == "critical" else f"{view.title} {view.subtitle}"
            assert chip_label(view.claim.chosen) in said
        for row in view.rows.iter_rows(named=True):
            if {"attained_flops_per_s", "D"} <= row.keys() and row.get("shards", 1) == 1:
                useful = 2 * row["B"] * row["D"] * row["F"] * (1 + 1e-9)
                assert (row["attained_flops_per_s"] or 0) * row["t_lower_s"] <= useful, "padding"


def behind(view):
    """The data of a title: its rows, what is drawn, and what sums up many of them."""
    rows, claim, data = view.rows, view.claim, view.data
    frames = [rows, *(each for each in data.values() if isinstance(each, pl.DataFrame))]
    yield from (frame.to_dict(as_series=False) for frame in frames)
    yield from ([*claim.rows], len(claim.rows), len(claim.every), rows.height)
    yield from (rows[name].n_unique() for name in ("chip", "shape") if name in rows.columns)
    if "peak" in data:
        yield data["curves"]["flops_per_s"].max() / data["peak"]["flops_per_s"].item()
    if "ratio_lower" in rows.columns:
        for ratios in (rows["ratio_lower"], 1 / rows["ratio_lower"]):
            yield [ratios.quantile(share, "linear") for share in (0.1, 0.5, 0.9)]
    if "flops_per_usd" in rows.columns:
        best = rows["flops_per_usd"].max()
        yield [MIN_FACTOR, rows.filter(pl.col("flops_per_usd") * MIN_FACTOR >= best).height]
    if "fronts" in data:
        yield TARGET
    if claim.ranks:
        yield claim.ranks.first / claim.ranks.second


@pytest.mark.parametrize("chart", LISTED, ids=lambda chart: chart.chart)
def test_numbers_of_a_title_are_those_of_its_rows(chart):
    for case, view in charted.views(chart):
        text = view.claim.text
        for name in {case.get("model"), *view.rows["chip"]} - {None}:
            text = text.replace(chip_label(name), "")
        assert unexplained(text, [*behind(view)]) == [], (case, text)


@cache
def table_of(chart, *, of_thresholds):
    results, kind = charted.results(), kinds()[chart.chart]
    if kind.source == "measurements":
        return results.joined(chart.sweep).frame.collect()
    if chart.chart == "time":
        return rooflines.model_layers(charted.loaded(), chart.sweep).collect()
    frame = results.thresholds(chart.sweep) if of_thresholds else results.rows(chart.sweep)
    return frame.collect()


@pytest.mark.parametrize(
    "chart", [c for c in LISTED if c.chart != CHIPS.name], ids=lambda chart: chart.chart
)
def test_a_number_is_that_of_the_table_column_of_its_name(chart):
    joined = 0
    for case, view in charted.views(chart):
        rows = view.rows
        if chart.chart == "roofline":
            names = {"flops_per_s": "attained_flops_per_s", "intensity": "memory_intensity"}
            if "kind" not in rows.columns:
                continue  # several chips have no operating points
            rows = rows.filter(kind="point")
            rows = rows.rename(names | {"size": "B"}).select(
                "chip", "dtypes", "B", "shape", *names.values()
            )
        if case.get("basis") == "calibrated":
            rows = rows.drop("bound", "utilization", strict=False)
        table = table_of(chart, of_thresholds="critical" in rows.columns)
        if chart.chart == "time":  # its rows are computed without the other chips
            table, rows = (
                one.with_columns(pl.selectors.float().round_sig_figs(12)) for one in (table, rows)
            )
        shared = [name for name in rows.columns if name in table.columns]
        text = [pl.col(pl.Categorical, pl.Enum).cast(pl.String)]
        kinds_of: Any = {n: table.schema[n] for n in shared if rows.schema[n] != pl.String}
        left = rows.select(shared).with_columns(text).cast(kinds_of)
        found = left.join(
            table.select(shared).with_columns(text), on=shared, how="anti", nulls_equal=True
        )
        assert found.is_empty(), (case, found)
        joined += rows.height
    assert joined > 0


def test_peaks_over_what_a_chip_costs_are_those_of_the_catalogue():
    (chart,) = (chart for chart in LISTED if chart.chart == CHIPS.name)
    for case, view in charted.views(chart):
        peak, rows = pl.col("flops_per_s"), view.rows
        quotient = {
            "ridge": ("ridge", peak / pl.col("bytes_per_s")),
            "watt": ("flops_per_joule", peak / pl.col("watts")),
            "dollar": ("flops_per_usd", peak * 3600 / pl.col("usd_per_hour")),
        }[str(case["by"])]
        assert rows.filter((pl.col(quotient[0]) / quotient[1] - 1).abs() > 1e-12).is_empty()
        assert rows[quotient[0]].is_sorted(descending=True)


@pytest.mark.parametrize("chart", LISTED, ids=lambda chart: chart.chart)
def test_the_file_of_views_makes_the_specification_of_each(chart):
    every = charted.views(chart)
    file = views_file(every)
    assert 1 <= len(file["views"]) == len(every) <= MAX_VIEWS
    assert len(file["layers"]) < max(len(every), 2)
    menus = entry_of(kinds()[chart.chart], chart, every)["params"]
    assert all(menu["value"] == every[0][0].get(menu["name"]) for menu in menus)
    base = every[0][1].spec()
    for (case, view), part in zip(every, file["views"], strict=True):
        assert part["values"] == case
        spec = view.spec()
        params = {param["name"]: param["value"] for param in base["params"]} | part["params"]
        assert {param["name"]: params[param["name"]] for param in spec["params"]} == {
            param["name"]: param["value"] for param in spec["params"]
        }
        assert (part["datasets"], file["layers"][part["layer"]]) == (
            spec["datasets"],
            spec["layer"],
        )


@pytest.mark.parametrize("chart", LISTED, ids=lambda chart: chart.chart)
def test_marks_have_the_numbers_of_their_rows_to_seven_digits(chart):
    _, view = charted.views(chart)[0]
    for name, rows in view.datasets().items():
        for column in view.data[name].select(pl.selectors.float()).columns:
            exact = view.data[name][column].to_list()
            shown = [row[column] for row in rows]
            pairs = zip(shown, exact, strict=True)
            assert all(isclose(one, other, rel_tol=5e-7) for one, other in pairs if one)


def test_the_gallery_offers_all_chips_together_however_many_there_are():
    menu = Menu("chip", (*(f"chip-{number}" for number in range(9)), ALL))
    for offered in ({}, {"chip": ["chip-3", "chip-7"]}):
        first, *_, last = choices_of(lambda _: [menu], offered)
        assert first == {"chip": offered.get("chip", menu.options)[0]}
        assert last == {"chip": ALL}


def test_a_thumbnail_shows_all_of_a_chart_but_its_title():
    slide, spec = SIZES["slide"], charted.views(LISTED[0])[0][1].spec()
    about = {param["name"]: param["value"] for param in spec["params"]}
    titles = {about["headline"], *about["subline"]}
    picture = Image.new("RGB", (THUMBNAIL_SCALE * slide.width, THUMBNAIL_SCALE * slide.height))
    small = Image.open(BytesIO(thumbnail(picture)))
    assert small.width == slide.width
    cut = slide.height - small.height - Margins().top * slide.em  # below the plot's top
    for text in texts(spec, "slide"):
        middle = sum(corner.imag for corner in text.corners) / len(text.corners)
        assert (middle < cut) == (text.text in titles)


def test_a_layer_within_another_is_not_run_beside_it():
    shapes = {"models": ["llama-3.1-8b"], "layers": "all"}
    sweep = {"operation": "matmul", "grid": {"B": 8}, "dtypes": ["bf16"], "chips": ["h100-sxm"]}
    config = rooflines.load_config({"sweeps": {"one": {**sweep, "shapes": shapes}}})
    layers = layers_run(config.sweep("one"), "llama-3.1-8b")
    assert list(layers) == ["qkv", "o", "gate-up", "down", "unembed"]


def test_long_and_hostile_names_are_cut_and_never_markup():
    config = rooflines.load_config(charted.HOSTILE)
    results = charts.of_config(config)
    assert {chart.chart for chart in config.charts} >= {"roofline", "critical"}
    for chart in config.charts:
        for _, view in charted.drawn(results, chart)[:3]:
            spec = {chart.id: view.spec()}
            assert (misfits(spec, "slide"), misfits(spec, "paper")) == ({}, {})
            assert "<script" not in charts.svg(spec[chart.id])


@check(100)
@given(of(configs()))
def test_a_chart_of_any_config_is_drawn(config):
    try:
        loaded = rooflines.load_config({**config, "charts": "auto"})
    except RooflinesError:
        return
    results = charts.of_config(loaded)
    for chart in loaded.charts:
        view = draw(results, chart)
        assert view.rows.height > 0
        assert broken(view.claim) is None
        limited(view.spec(), chart.id)


@pytest.mark.parametrize(
    ("axes", "tables"),
    [
        (["B"], ["D x F", "chip x dtypes"]),
        (["F"], ["chip x dtypes"]),  # a size that is solved for is no side of a table
        (["D", "F"], ["chip x dtypes"]),
    ],
)
def test_critical_sizes_are_a_table_of_the_sizes_that_are_not_solved_for(axes, tables):
    sizes = [1024, 2048, 4096, 8192]
    sweep = {"operation": "matmul", "grid": {"B": [64, 128], "D": sizes, "F": sizes}}
    sweep |= {"dtypes": ["bf16", "fp8"], "chips": ["h100-sxm", "b200"], "thresholds": axes}
    results = charts.of_config(rooflines.load_config({"sweeps": {"one": sweep}}))
    menus = {menu.name: menu.options for menu in charts.menus("critical", results, "one")}
    assert [*menus["by"]] == tables
    for by in tables:
        rows = charts.view("critical", results, "one", by=by).rows
        ends = {"D x F": (("D", "F"), product(sizes, sizes))}
        columns, keys = ends.get(by, (("chip", "dtypes"), product(sweep["chips"], sweep["dtypes"])))
        assert key_differences(rows, columns, keys) == ([], [])
        assert rows["axis"].unique().to_list() == axes[:1]


def test_a_function_returns_an_altair_chart_of_one_choice():
    results = charted.results()
    made = charts.roofline(results, "free", chip="b200", dtypes="w8a8")
    view = charts.view("roofline", results, "free", chip="b200", dtypes="w8a8")
    assert charts.spec_of(made)["datasets"] == view.spec()["datasets"]
    assert "B200" in view.title
    menus = {menu.name: menu.options for menu in charts.menus("roofline", results, "free")}
    assert "b200" in menus["chip"]
    with pytest.raises(rooflines.RooflinesError, match="'h1000'"):
        charts.roofline(results, "free", chip="h1000")
    with pytest.raises(rooflines.RooflinesError, match="choose some of chip, dtypes"):
        charts.roofline(results, "free", colour="red")


KEYS_OF_ROWS = {
    "who-binds": ("B", "shards"),
    "front": ("chip", "split", "B"),
    "critical": ("D", "F"),
    "measured": ("B", "D", "F"),
}
"""Columns in which a view's rows differ."""


@pytest.mark.parametrize("kind", KEYS_OF_ROWS)
def test_a_view_leaves_out_no_row_of_its_choice(kind):
    """Rows of the table or the thresholds with the chosen options, each once."""
    (chart,) = (chart for chart in LISTED if chart.chart == kind)
    keys, compared = KEYS_OF_ROWS[kind], 0
    for case, view in charted.views(chart):
        if case.get("by") not in (None, "shards", "D x F", "ratio", "roof"):
            continue
        table = table_of(chart, of_thresholds=kind == "critical")
        table = table.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
        chosen = {name: value for name, value in case.items() if name in table.columns}
        if "split" in case and "sharding" in table.columns:
            chosen["sharding"] = case["split"]
        if kind == "critical":
            chosen |= {"axis": "B", "share": 1.0}
        if kind == "front":
            table = table.filter(pl.col("chip").is_in([*view.rows["chip"].unique()]))
            table = table.drop_nulls("max_B").unique(["chip", "split", "B", "model", "dtypes", "S"])
        expected = table.filter(**chosen).select(keys).unique().rows()
        assert key_differences(view.rows, keys, expected) == ([], []), case
        compared += view.rows.height
    assert compared
