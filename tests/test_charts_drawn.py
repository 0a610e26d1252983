"""What charts look like, checked from their scenegraphs: no text lies on another, none is missing, none leaves the picture."""

import io
import json
import subprocess
import sys
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any

import altair as alt
import polars as pl
import pytest
from PIL import Image, ImageChops
from scenes import Text, chosen, outside, overlaps, says, texts

import rooflines
from rooflines import RooflinesError, charts
from rooflines.catalogue.chips import base_chips, chip_entries
from rooflines.charts.families import fitted
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

EVIL = "</script><script>alert(1)</script>"
LONG = "a-very-long-name-of-a-shape-that-somebody-thought-would-say-everything-there-is-to-say-about-this-one"
MODERN = [chip for chip in base_chips() if "bf16" in chip_entries()[chip].units.get("matrix", {})]


def sweeps(chips: list[str]) -> dict[str, Any]:
    """A config with every kind of axis that a chart asks for, over these chips."""
    sizes = {"from": 1, "to": 65536, "factor": 4}
    shapes = [
        {"name": EVIL, "D": 4096, "F": 14336},
        {"name": LONG, "D": 8192, "F": 28672},
        {"name": "x", "D": 512, "F": 512},
    ]
    common = {"operation": "matmul", "dtypes": ["bf16", "w8a16"], "chips": chips}
    return {
        "split": {
            **common,
            "grid": {"B": sizes},
            "shapes": shapes,
            "sharding": ["column/gather-x"],
            "shards": [1, 2, 4, 8],
        },
        "grid": {
            **common,
            "grid": {"B": sizes, "D": [128, 1024, 4096, 8192], "F": [256, 1024, 8192]},
        },
    }


def hostile(name: str) -> dict[str, Any]:
    """A config that a chart could fail on."""
    if name == "one chip":
        return {"sweeps": sweeps(["tpu-v5e"])}
    if name == "forty chips":
        wanted = {
            "chips": "split",
            "ridges": "split",
            "per-watt": "split",
            "per-dollar": "split",
            "layers": "split",
            "shards": "split",
        }
        return {
            "sweeps": sweeps(MODERN[:40]),
            "charts": [{"chart": c, "sweep": s, "chips": MODERN[:40]} for c, s in wanted.items()],
        }
    own = {
        f"h100-{'very-long-variant-name-' * 3}{i}": {
            "base": "h100-sxm",
            "memory.hbm.bytes_per_s": 3e12 + i * 1e11,
            "source": "a test",
        }
        for i in range(5)
    }
    return {"sweeps": sweeps(list(own)), "chips": own}


@cache
def drawn(name: str) -> dict[str, dict[str, Any]]:
    """The specifications of all charts of a config, by id."""
    config = rooflines.load_config(None if name == "default" else hostile(name))
    results = charts.of_config(config)

    def rows(sweep: str, kind: str) -> pl.LazyFrame:
        READ.add(kind)
        return results.rows(sweep)

    return {
        chart.id: fitted(replace(results, rows=partial(rows, kind=chart.chart)), chart)[1]
        for chart in config.charts
    }


READ: set[str] = set()
"""Charts that asked for rows while they were drawn."""

CONFIGS = ("default", "one chip", "forty chips", "long names")
KINDS = 12


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("size", SIZES)
def test_no_text_lies_on_another_or_leaves_the_picture(config: str, size: str) -> None:
    """In every size, as charts are first shown."""
    wrong = {
        name: (overlaps(spec, size)[:3], outside(spec, size)[:3])
        for name, spec in drawn(config).items()
    }
    assert {name: found for name, found in wrong.items() if found != ([], [])} == {}


def test_charts_that_read_rows_are_those_that_wait_for_tables() -> None:
    """Of all others the workflow makes no table before it draws them."""
    drawn("default")
    assert {name for name, chart in all_charts().items() if chart.reads} == READ


@pytest.mark.parametrize(
    "chart",
    [
        "roofline-model-shapes",
        "attained-book-q2-int8-weights",
        "shards-sharded-models",
        "chips-model-shapes",
    ],
)
def test_no_text_lies_on_another_whatever_a_reader_chooses(chart: str) -> None:
    """Every chip, dtype combination and split of the charts whose labels stand in the plot."""
    spec = drawn("default")[chart]
    options = {
        p["name"]: p["bind"]["options"] for p in spec["params"] if isinstance(p.get("bind"), dict)
    }
    options |= {"chip": options["chip"][:1]} if "sharding" in options else {}
    for values in product(*options.values()):
        choice = dict(zip(options, values, strict=True))
        assert (choice, overlaps(chosen(spec, choice), "paper")) == (choice, [])


def test_the_check_sees_texts_that_do_overlap() -> None:
    """Two of the same, a little apart, meet; side by side they do not."""
    square = ((0.0, 0.0), (20.0, 0.0), (20.0, 10.0), (0.0, 10.0))
    moved = tuple((x + 5, y + 3) for x, y in square)
    beside = tuple((x + 21, y) for x, y in square)
    assert Text("a", square, "").meets(Text("b", moved, ""))
    assert not Text("a", square, "").meets(Text("b", beside, ""))


def test_the_default_config_has_every_chart() -> None:
    """All twelve kinds; the eight families."""
    found = rooflines.load_config().charts
    assert len({chart.chart for chart in found}) == KINDS
    assert len({chart.family for chart in found}) == 8
    assert len({chart.id for chart in found}) == len(found)


def test_title_and_subtitle_are_findings_that_fit() -> None:
    """Not cut in the default config, and a subtitle of two lines at most."""
    for name, spec in drawn("default").items():
        findings = next(p["value"] for p in spec["params"] if p["name"] == "findings")
        assert findings
        for found in findings.values():
            assert (
                name,
                "…" in found["title"],
                "…" in "".join(found["subtitle"]),
                len(found["subtitle"]) <= 2,
            ) == (
                name,
                False,
                False,
                True,
            )


def test_text_is_drawn_and_not_lost_with_its_font() -> None:
    """Ink where the title is: a missing font would leave nothing at all there."""
    spec = drawn("default")["chips-model-shapes"]
    for dark in (False, True):
        picture = png(spec, "slide", dark=dark, scale=1)
        image = _image(picture).convert("L")
        assert image.size == (SIZES["slide"].width, SIZES["slide"].height)
        ground = image.getpixel((2, 2))
        title = image.crop((80, 10, 700, 70))
        assert sum(pixel != ground for pixel in title.get_flattened_data()) > 1000
    assert "Inter" in svg(spec)


def test_a_picture_in_few_colours_is_not_told_from_the_whole() -> None:
    """Grounds and areas keep their colours, and no pixel is far from what it was, however many steps a scale has."""
    whole = image(drawn("default")["critical-common-sizes"], "web", scale=1)
    small = _image(encoded(whole)).convert("RGB")
    assert small.getpixel((2, 2)) == whole.getpixel((2, 2))
    counted = sorted(whole.getcolors(10**6) or [], reverse=True)
    kept = {colour for _, colour in small.getcolors(10**6) or []}
    assert [colour for _, colour in counted[:8] if colour not in kept] == []
    assert not any(
        sum(band.histogram()[48:]) for band in ImageChops.difference(whole, small).split()
    )
    assert len(encoded(whole)) < len(_png(whole)) / 1.5


def test_charts_are_valid_by_the_schema_of_vega_lite() -> None:
    """Every part of every chart of the default config: the workflow does not look."""
    for spec in drawn("default").values():
        alt.LayerChart.from_dict({**spec, "usermeta": {}}, validate=True)


def test_a_notebook_draws_charts_in_the_packages_look() -> None:
    """Once it is asked to; specifications stay without one."""
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
    """It is in the specification as it was written, and in the picture with its brackets escaped."""
    spec = drawn("one chip")["layers-split"]
    assert says(spec, "web", "</script>")
    picture = svg(spec)
    assert "<script>" not in picture
    assert "&lt;script&gt;" in picture


def test_nothing_is_fetched_and_nothing_is_themed() -> None:
    """Data are inside, no address but the schema's; colours come from a look."""
    for spec in drawn("default").values():
        text = dumps({key: value for key, value in spec.items() if key != "$schema"})
        assert "http" not in text
        assert "config" not in spec
        assert theme(dark=False).ink not in text


def test_bytes_are_stable() -> None:
    """Specification, SVG and PNG are the same in another process."""
    script = (
        "import rooflines, hashlib; from rooflines import charts; from rooflines.charts.kit.render import dumps\n"
        "r = charts.of_config(rooflines.load_config()); f = charts.ridge_frame(r.of('book-q5-gpu', ['h100-sxm'], ['bf16', 'w4a16']))\n"
        "s = charts.spec_of(charts.ridges(f), 'x')\n"
        "for b in (dumps(s).encode(), charts.svg(s).encode(), charts.png(s, scale=1)): print(hashlib.sha256(b).hexdigest())"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
        ).stdout
        for _ in "ab"
    ]
    assert runs[0] == runs[1]
    assert len(runs[0].split()) == 3


def test_caps_on_rows_and_bytes_say_what_to_do() -> None:
    """More than a page can draw is refused; a chart that nobody asked for shows fewer chips instead."""
    frame = pl.DataFrame({"chip": [f"c{i}" for i in range(1700)]}).with_columns(
        vendor=pl.lit("x"),
        dtypes=pl.lit("bf16"),
        compute=pl.lit("bf16"),
        flops_per_s=1e14,
        bytes_per_s=1e12,
        ridge=100.0,
    )
    with pytest.raises(
        RooflinesError, match=r"charts: many has .* rows to draw, more than 5,000"
    ) as caught:
        spec_of(charts.chips_on_one_roofline(frame), "many")
    assert "name them under `charts:`" in str(caught.value)
    for spec in drawn("default").values():
        assert sum(len(rows) for rows in spec["datasets"].values()) <= MOST_ROWS
        assert len(json.dumps(spec)) <= MOST_BYTES * 1.3
    assert texts(drawn("default")["ridges-model-shapes"], "slide")
