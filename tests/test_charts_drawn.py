"""Charts as drawn, one per kind: no text overlaps another, is missing, or leaves the picture.

`make verify` draws every chart of every config in every size.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import altair as alt
import polars as pl
import pytest
from PIL import Image, ImageChops
from scenes import (
    CONFIGS,
    Text,
    choices,
    chosen,
    config_of,
    fetching_or_themed,
    first_of_kinds,
    ill_titled,
    invalid,
    misfits,
    one_per_kind,
    overlaps,
    oversized,
    reading_rows,
    says,
    spec,
    sweeps,
    texts,
    written,
)

import rooflines
from rooflines import RooflinesError, charts
from rooflines.charts.chart import MeasuredChart
from rooflines.charts.kit.palette import palettized
from rooflines.charts.kit.render import (
    MOST_BYTES,
    MOST_ROWS,
    dumps,
    encoded,
    image,
    png,
    spec_of,
    svg,
)
from rooflines.charts.kit.themes import SIZES, theme
from rooflines.charts.registry import charts as all_charts

if TYPE_CHECKING:
    from pathlib import Path

Specs = dict[str, dict[str, Any]]

OF_SWEEPS = {name for name, chart in all_charts().items() if not isinstance(chart, MeasuredChart)}
"""The charts of sweeps; a config without timings has no others."""


@pytest.fixture(scope="session")
def every(default_results: Path) -> Specs:
    """Every chart of the default config by its id, as the workflow wrote it."""
    return written(default_results)


@pytest.fixture(scope="session")
def default(every: Specs) -> Specs:
    """The first chart of each kind."""
    return {chart: every[chart] for chart in first_of_kinds("default")}


@pytest.mark.parametrize("size", ["web", "paper"])
def test_no_text_overlaps_another_or_leaves_the_picture(default: Specs, size: str) -> None:
    """As charts of the default config are first shown, in both layouts."""
    assert misfits(default, size) == {}


@pytest.mark.parametrize("config", CONFIGS[1:])
def test_no_text_of_an_unusual_config_overlaps_another(config: str) -> None:
    """One chip, forty chips and long names, in the layout with least room."""
    assert misfits(one_per_kind(config), "paper") == {}


def test_charts_that_read_rows_are_those_that_wait_for_tables() -> None:
    """The workflow draws all other charts before it makes any table."""
    whole = {
        "models": "llama-3.1-8b",
        "grid": {"B": [1, 64], "S": 1024},
        "dtypes": "bf16",
        "chips": ["h100-sxm", "b200"],
    }
    config = {"sweeps": sweeps(["h100-sxm", "b200"]), "model-sweeps": {"whole": whole}}
    kinds, reading = reading_rows(config)
    assert kinds == OF_SWEEPS - {"critical-estimate"}
    assert {name for name, chart in all_charts().items() if chart.reads} == reading


@pytest.mark.parametrize(
    "chart", ["roofline-model-shapes", "attained-book-matmul", "shards-sharded-models"]
)
def test_no_text_overlaps_another_whatever_a_reader_chooses(every: Specs, chart: str) -> None:
    """Every chip, dtype combination and split of charts with labels inside the plot."""
    drawn = every[chart]
    wrong = {
        str(choice): pairs
        for choice in choices(drawn)
        if (pairs := overlaps(chosen(drawn, choice), "paper"))
    }
    assert wrong == {}


def test_the_check_finds_texts_that_overlap() -> None:
    """Two equal rectangles, slightly apart, overlap; side by side they do not."""
    square = ((0.0, 0.0), (20.0, 0.0), (20.0, 10.0), (0.0, 10.0))
    moved = tuple((x + 5, y + 3) for x, y in square)
    beside = tuple((x + 21, y) for x, y in square)
    assert Text("a", square, "").meets(Text("b", moved, ""))
    assert not Text("a", square, "").meets(Text("b", beside, ""))


def test_the_default_config_has_every_chart() -> None:
    """All kinds but those of timings; the nine families; every id once."""
    listed = config_of("default").charts
    assert {chart.chart for chart in listed} == OF_SWEEPS
    assert len({chart.family for chart in listed}) == 9
    assert len({chart.id for chart in listed}) == len(listed)


def test_title_and_subtitle_are_findings_that_fit(default: Specs) -> None:
    """Not cut in the default config, and a subtitle of at most two lines."""
    assert ill_titled(default) == []


def test_text_is_drawn_and_not_lost_with_its_font(every: Specs) -> None:
    """Ink where the title is: with a missing font it would be empty."""
    drawn = every["chips-model-shapes"]
    for dark in (False, True):
        picture = _image(png(drawn, "slide", dark=dark, scale=1)).convert("L")
        assert picture.size == (SIZES["slide"].width, SIZES["slide"].height)
        background = picture.getpixel((2, 2))
        title = picture.crop((80, 10, 700, 70))
        assert sum(pixel != background for pixel in title.get_flattened_data()) > 1000
    assert "Inter" in svg(drawn)


def test_a_picture_in_few_colours_looks_like_the_original(every: Specs) -> None:
    """Backgrounds and areas keep their colours; no pixel is far off, even on a colour scale."""
    whole = image(every["critical-common-sizes"], "web", scale=1)
    small = _image(encoded(whole)).convert("RGB")
    assert small.getpixel((2, 2)) == whole.getpixel((2, 2))
    counted = sorted(whole.getcolors(10**6) or [], reverse=True)
    kept = {colour for _, colour in small.getcolors(10**6) or []}
    assert [colour for _, colour in counted[:8] if colour not in kept] == []
    assert not any(
        sum(band.histogram()[48:]) for band in ImageChops.difference(whole, small).split()
    )
    assert len(encoded(whole)) < len(_png(whole)) / 1.5


def test_a_picture_of_few_colours_keeps_each_of_them() -> None:
    """Every pixel is exact if the palette has room for all; each red and green have four blues."""
    values = [(number % 10 * 28, number // 40 * 63, number) for number in range(200)]
    whole = Image.new("RGB", (40, 20))
    whole.putdata([value for value in values for _ in range(4)])
    for colours in (256, 200):
        small = palettized(whole, colours)
        assert small.mode == "P"
        assert ImageChops.difference(whole, small.convert("RGB")).getbbox() is None
    assert len(palettized(whole, 199).getcolors() or []) < 200


def test_charts_are_valid_by_the_schema_of_vega_lite(default: Specs) -> None:
    """Every part of a chart of each kind: the workflow does not validate."""
    assert invalid(default) == {}
    wrong = {**default["chips-model-shapes"], "layer": [{"mark": "no such mark"}]}
    assert invalid({"wrong": wrong}).keys() == {"wrong"}


def test_a_chart_has_a_name_for_screen_readers() -> None:
    """Title and subtitle of what it shows first, in its description and in the picture as SVG."""
    frame = charts.ridge_frame(
        charts.of_config(rooflines.load_config()).of("book-q5-gpu", ["h100-sxm"], ["bf16"])
    )
    spec = spec_of(charts.ridges(frame, title='"Ridges" & <more>'), "ridges")
    assert spec["description"].startswith('"Ridges" & <more>. Dense peak over main-memory')
    assert svg(spec).startswith(f'<svg role="img" aria-label={quoteattr(spec["description"])} ')


def test_a_notebook_draws_charts_in_the_packages_theme() -> None:
    """Once it is enabled; specifications stay without a theme."""
    chart = charts.ridges(
        charts.ridge_frame(
            charts.of_config(rooflines.load_config()).of("book-q5-gpu", ["h100-sxm"], ["bf16"])
        )
    )
    with alt.theme.enable(alt.theme.active):
        charts.enable_theme(dark=True)
        assert chart.to_dict()["config"]["background"] == theme(dark=True).background
        assert "config" not in charts.spec_of(chart, "x")


def _png(picture: Image.Image) -> bytes:
    written = io.BytesIO()
    picture.save(written, "PNG", compress_level=9)
    return written.getvalue()


def _image(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))


def test_a_shapes_name_is_text_and_nothing_else() -> None:
    """The specification has it unchanged; the picture has its brackets escaped."""
    drawn = spec("one chip", "layers-split")
    assert says(drawn, "web", "</script>")
    picture = svg(drawn)
    assert "<script>" not in picture
    assert "&lt;script&gt;" in picture


def test_nothing_is_fetched_and_nothing_is_themed(default: Specs) -> None:
    """Data are inline, the only address is the schema's, and colours come from a theme."""
    assert fetching_or_themed(default) == []
    wrong = {**default["chips-model-shapes"], "config": {}}
    assert fetching_or_themed({"wrong": wrong}) == ["wrong"]


STABLE = """\
import hashlib

import rooflines
from rooflines import charts
from rooflines.charts.kit.render import dumps

results = charts.of_config(rooflines.load_config())
frame = charts.ridge_frame(results.of('book-q5-gpu', ['h100-sxm'], ['bf16', 'w4a16']))
drawn = charts.spec_of(charts.ridges(frame), 'x')
for made in (dumps(drawn).encode(), charts.svg(drawn).encode(), charts.png(drawn, scale=1)):
    print(hashlib.sha256(made).hexdigest())
"""


def test_bytes_are_stable() -> None:
    """Specification, SVG and PNG are the same in another process."""
    other = subprocess.run(
        [sys.executable, "-c", STABLE], capture_output=True, text=True, check=True, timeout=120
    ).stdout.split()
    results = charts.of_config(rooflines.load_config())
    frame = charts.ridge_frame(results.of("book-q5-gpu", ["h100-sxm"], ["bf16", "w4a16"]))
    drawn = charts.spec_of(charts.ridges(frame), "x")
    made = (dumps(drawn).encode(), charts.svg(drawn).encode(), charts.png(drawn, scale=1))
    assert other == [hashlib.sha256(content).hexdigest() for content in made]


def test_caps_on_rows_and_bytes_say_what_to_do(default: Specs) -> None:
    """More than a page can draw is refused; charts of `auto` stay below the caps."""
    rows = alt.Chart(pl.DataFrame({"x": range(MOST_ROWS + 1)})).mark_point()
    size = alt.Chart(pl.DataFrame({"x": ["x" * MOST_BYTES]})).mark_point()
    for chart, problem in (
        (rows, r"charts: many has 5,001 rows to draw, more than 5,000"),
        (size, r"charts: many takes .* bytes, more than 500,000"),
    ):
        with pytest.raises(RooflinesError, match=problem) as caught:
            spec_of(chart, "many")
        assert "name them under `charts:`" in str(caught.value)
    assert oversized(default) == []
    assert texts(default["ridges-model-shapes"], "slide")
