"""Figures on colour can be read, each chip has a colour of its own, lines on lines are seen."""

import math
from itertools import combinations, pairwise
from operator import mul

import polars as pl
import pytest
from case_files import case

from rooflines.charts.kinds.critical import DARK_FROM
from rooflines.charts.kit.chart_text import width_em, with_value
from rooflines.charts.kit.chip_colours import CHIPS, PLACES, chip_order
from rooflines.charts.kit.layers import chip_colour
from rooflines.charts.kit.themes import SIZES, config, theme
from rooflines.hardware.chip_catalogue import base_chips, chip_entries

LEAST, LEAST_LINE = 4.5, 2.98
"""Contrast of small text and of lines by WCAG 2, level AA [1]; a B200's line is at 2.99."""

GIVEN = case("colours")

LOOKS = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])


def channels(colour):
    """Red, green and blue of `#RRGGBB`, from 0 to 1."""
    return [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]


def luminance(rgb):
    """Relative luminance of sRGB, as WCAG 2 defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def seen(colour, sight):
    """A colour in OKLab as a sight has it."""

    def times(matrix, vector):
        return [sum(map(mul, row, vector)) for row in matrix]

    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels(colour)]
    to_cones, to_lab = GIVEN["oklab"]
    cones = times(to_cones, [min(max(value, 0.0), 1.0) for value in times(sight, linear)])
    return times(to_lab, [math.cbrt(value) for value in cones])


def differences(one, other):
    """The distance of two colours in OKLab, and the least as colour-blind readers see them."""
    full, *blind = (math.dist(seen(one, sight), seen(other, sight)) for sight in GIVEN["sights"])
    return full, min(blind)


def colours(*, dark, letters=False):
    shades = config(SIZES["web"], dark=dark)["range"]["diverging" if letters else "category"]
    return dict(zip(PLACES, shades, strict=False))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def on_scale(stops, share):
    """The colour at a share of a scale: a uniform cubic B-spline of its stops, as Vega draws it."""
    index = min(int(share * (len(stops) - 1)), len(stops) - 2)
    t = share * (len(stops) - 1) - index
    colours = [channels(stop) for stop in stops]
    first, second = colours[index : index + 2]
    before = [2 * a - b for a, b in zip(first, second, strict=True)]
    after = [2 * b - a for a, b in zip(first, second, strict=True)]
    around = (
        colours[index - 1] if index else before,
        first,
        second,
        colours[index + 2] if index + 2 < len(stops) else after,
    )
    weights = ((1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, -3 * t**3 + 3 * t**2 + 3 * t + 1, t**3)
    return [
        sum(weight * colour[i] for weight, colour in zip(weights, around, strict=True)) / 6
        for i in range(3)
    ]


@pytest.mark.parametrize("look", [theme(dark=False), theme(dark=True)], ids=["light", "dark"])
def test_figures_on_colour_can_be_read(look):
    shares = [step / 1000 for step in range(1001)]
    on_heat = [
        contrast(on_scale(look.heat, share), channels(look.on_heat[share > DARK_FROM]))
        for share in shares
    ]
    assert min(on_heat) >= LEAST
    for colour in look.resources:
        assert contrast(channels(colour), channels(look.on_resource)) >= LEAST
    assert contrast(channels(look.never), channels(look.muted)) >= LEAST


def test_contrast_is_that_of_wcag():
    assert contrast(channels("#000000"), channels("#FFFFFF")) == pytest.approx(21)
    assert contrast(channels("#767676"), channels("#FFFFFF")) == pytest.approx(4.54, abs=0.01)
    assert contrast(channels("#777777"), channels("#FFFFFF")) < LEAST


def test_a_label_keeps_its_number():
    assert with_value("A100 SXM 80GB", "312 TFLOP/s", 20) == "A100 SXM 80GB · 312 TFLOP/s"
    for room in (10.0, 11.0, 12.8):
        label = with_value("A100 SXM 80GB", "312 TFLOP/s", room)
        assert label.endswith(" · 312 TFLOP/s")
        assert width_em(label, bold=True) <= room


def test_every_chip_of_the_catalogue_has_a_colour():
    assert sorted(PLACES) == sorted(base_chips())
    entries = chip_entries()
    assert all(entries[chip].vendor == vendor for vendor, of in CHIPS.items() for chip in of)


@LOOKS
def test_chips_can_be_read_and_seen(*, dark):
    ground = channels(theme(dark=dark).background)
    ranges = config(SIZES["web"], dark=dark)["range"]
    assert len(ranges["category"]) == len(ranges["diverging"]) == 2 * len(PLACES)
    assert min(contrast(channels(each), ground) for each in ranges["diverging"]) >= LEAST
    assert min(contrast(channels(each), ground) for each in ranges["category"]) >= LEAST_LINE
    for line, letters in zip(ranges["category"], ranges["diverging"], strict=True):
        assert differences(line, letters)[0] < 0.12


@LOOKS
def test_chips_often_compared_differ_for_every_reader(*, dark):
    of = colours(dark=dark)
    pairs = {*combinations(GIVEN["known"], 2)}
    pairs |= {pair for line in GIVEN["generations"] for pair in pairwise(line.split())}
    assert {chip for pair in pairs for chip in pair} <= set(of)
    found = {pair: differences(*(of[chip] for chip in pair)) for pair in pairs}
    assert {pair: each for pair, each in found.items() if each[0] < 0.1 or each[1] < 0.025} == {}


@LOOKS
def test_no_two_chips_have_one_colour(*, dark):
    of = colours(dark=dark)
    assert min(differences(*pair)[0] for pair in combinations(of.values(), 2)) > 0.03
    both = config(SIZES["web"], dark=dark)["range"]["category"]
    variants = zip(both[: len(PLACES)], both[len(PLACES) :], strict=True)
    assert min(differences(*pair)[0] for pair in variants) > 0.03


def test_a_chip_has_one_colour_in_the_charts_of_every_config():
    def places(*chips):
        vendors = ["Google" if chip.startswith("tpu") else "NVIDIA" for chip in chips]
        frame = pl.DataFrame({"chip": chips, "vendor": vendors})
        domain = chip_colour(dict(frame.select("chip", "vendor").iter_rows()))["scale"]["domain"]
        return {chip: domain.index(chip) for chip in chips}

    few = places("h100-sxm", "h100-sxm-mine", "mine", "tpu-mine")
    many = places("tpu-mine", "b300", "l40s-mine", "mine", "h100-sxm-mine", "h100-sxm", "tpu-v5e")
    assert {chip: many[chip] for chip in few} == few
    assert many["h100-sxm"] == PLACES["h100-sxm"]
    assert many["h100-sxm-mine"] == PLACES["h100-sxm"] + len(PLACES)
    order = list(PLACES)
    assert order[few["mine"] - len(PLACES)] in CHIPS["NVIDIA"]
    assert order[few["tpu-mine"] - len(PLACES)] in CHIPS["Google"]
    assert chip_order({"mine": "Myself"}).index("mine") >= len(PLACES)


def test_two_variants_of_a_chip_differ_in_one_chart():
    order = chip_order(dict.fromkeys(["h100-sxm-one", "h100-sxm", "h100-sxm-two"], "NVIDIA"))
    place = PLACES["h100-sxm"] + len(PLACES)
    assert order[place : place + 2] == ["h100-sxm-one", "h100-sxm-two"]


@pytest.mark.parametrize(("chip", "base"), [("b2000", "b200"), ("l40x", "l40"), ("h200", "h20")])
def test_a_chip_is_no_variant_of_a_base_that_its_name_only_begins_with(chip, base):
    assert chip_order({chip: "NVIDIA"}).index(chip) % len(PLACES) != PLACES[base]
