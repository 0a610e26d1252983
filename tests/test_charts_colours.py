"""Figures on colour can be read: a contrast of 4.5 in both themes; lines on lines are seen."""

from __future__ import annotations

import polars as pl
import pytest

from rooflines.charts.cells import DARK_FROM
from rooflines.charts.comparing import beneath
from rooflines.charts.kit.drawing import SLOT_OF_CHIP, palette_of
from rooflines.charts.kit.text import width_em, with_value
from rooflines.charts.kit.themes import CHIP_SLOTS, Theme, theme

LEAST = 4.5
"""Contrast of small text by WCAG 2, level AA [1]."""


def channels(colour: str) -> list[float]:
    """Red, green and blue of `#RRGGBB`, from 0 to 1."""
    return [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]


def luminance(rgb: list[float]) -> float:
    """Relative luminance of sRGB, as WCAG 2 defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: list[float], other: list[float]) -> float:
    """Contrast of two colours [1]."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def on_scale(stops: tuple[str, ...], share: float) -> list[float]:
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
    weights = (
        (1 - t) ** 3,
        3 * t**3 - 6 * t**2 + 4,
        -3 * t**3 + 3 * t**2 + 3 * t + 1,
        t**3,
    )
    return [
        sum(weight * colour[i] for weight, colour in zip(weights, around, strict=True)) / 6
        for i in range(3)
    ]


@pytest.mark.parametrize("look", [theme(dark=False), theme(dark=True)], ids=["light", "dark"])
def test_figures_on_colour_can_be_read(look: Theme) -> None:
    """On every colour of the heat map, of the resources, and on the grey of never."""
    shares = [step / 1000 for step in range(1001)]
    on_heat = [
        contrast(on_scale(look.heat, share), channels(look.on_heat[share > DARK_FROM]))
        for share in shares
    ]
    assert min(on_heat) >= LEAST
    for colour in look.resources:
        assert contrast(channels(colour), channels(look.on_resource)) >= LEAST
    assert contrast(channels(look.never), channels(look.muted)) >= LEAST


def test_contrast_is_that_of_wcag() -> None:
    """Black on white has 21; grey #767676 on white is the lightest with 4.5."""
    assert contrast(channels("#000000"), channels("#FFFFFF")) == pytest.approx(21)
    assert contrast(channels("#767676"), channels("#FFFFFF")) == pytest.approx(4.54, abs=0.01)
    assert contrast(channels("#777777"), channels("#FFFFFF")) < LEAST


def test_a_label_keeps_its_number() -> None:
    """The name is cut if the room is short, never the number."""
    assert with_value("A100 SXM 80GB", "312 TFLOP/s", 20) == "A100 SXM 80GB · 312 TFLOP/s"
    for room in (10.0, 11.0, 12.8):
        label = with_value("A100 SXM 80GB", "312 TFLOP/s", room)
        assert label.endswith(" · 312 TFLOP/s")
        assert width_em(label, bold=True) <= room


def test_chips_have_one_colour_in_the_charts_of_every_config() -> None:
    """Whichever other chips there are; others keep off the colours taken."""

    def colours(*chips: str) -> dict[str, int]:
        """The slots of some chips."""
        vendors = pl.DataFrame({"chip": chips, "vendor": ["NVIDIA"] * len(chips)})
        domain = palette_of(vendors).to_dict()["domain"]
        return {chip: domain.index(chip) for chip in chips}

    few, many = colours("h100-sxm", "l40s", "b100"), colours("a100-sxm-80gb", "b200", "h100-sxm")
    assert few["h100-sxm"] == many["h100-sxm"] == 4
    assert len(set(few.values())) == len(set(many.values())) == 3
    every = colours(*SLOT_OF_CHIP)
    assert every == SLOT_OF_CHIP
    assert sorted(every.values()) == list(range(CHIP_SLOTS))


def test_lines_on_a_line_are_counted() -> None:
    """Of those drawn later, at a common position, closer than a line is wide."""
    lines = {
        "first": {1: 0.5, 2: 0.6},
        "apart": {1: 0.52, 2: 0.7},
        "elsewhere": {4: 0.5},
        "crossing": {1: 0.1, 2: 0.601},
        "last": {1: 0.503},
    }
    assert beneath(lines) == {"first": 2, "apart": 0, "elsewhere": 0, "crossing": 0, "last": 0}
