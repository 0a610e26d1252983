"""Disagreements of sources are listed, and have a plausible size."""

import re

import polars as pl
import pytest
from case_files import case

import rooflines

APART = 1.25
"""Largest ratio of figures for the same quantity; larger ratios are explained below."""

EXPLAINED = case("disagreements")


FIGURE = re.compile(r"(?<![\w.])\d+(?:\.\d+)?e\d+")
SAME_KIND = 2.5
"""Figures further apart than this factor describe another quantity."""


def disputed():
    """Chip, path, value and other figures in the note of each number of a chip with several."""
    noted = rooflines.chips().filter(pl.col("base").is_null(), pl.col("note").is_not_null())
    for chip, path, value, note in noted.select("chip", "path", "value", "note").rows():
        figures = {float(figure) for figure in FIGURE.findall(note)} - {value}
        if others := [each for each in figures if 1 / SAME_KIND < each / value < SAME_KIND]:
            yield chip, path, value, others


def test_sources_are_close_unless_they_count_differently():
    found = list(disputed())
    assert len(found) > 60
    wide = {
        (chip, path)
        for chip, path, value, others in found
        if any(max(other / value, value / other) > APART for other in others)
    }
    assert wide == {(chip, path) for chip, paths in EXPLAINED.items() for path in paths}


@pytest.mark.parametrize("chip", ["tpu-v5e", "tpu-v5p", "h100-sxm", "b200"])
def test_what_is_disputed_can_be_computed_with(chip):
    chips = rooflines.chips()
    main = chips.filter(chips["path"] == "memory.hbm.bytes_per_s")
    values = main.filter((main["chip"] == chip) | (main["base"] == chip))["value"].to_list()
    others_of = [
        others
        for name, path, _, others in disputed()
        if (name, path) == (chip, "memory.hbm.bytes_per_s")
    ]
    assert len(set(values)) > 1 or not others_of
