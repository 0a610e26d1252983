"""Every chart of the default and of hostile configs, in every size and for every choice."""

from __future__ import annotations

import pytest
from scenes import (
    CONFIGS,
    choices,
    chosen,
    drawn,
    fetching_or_themed,
    ill_titled,
    invalid,
    misfits,
    overlaps,
    oversized,
)

from rooflines.charts.kit.themes import SIZES


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("size", SIZES)
def test_no_text_overlaps_another_or_leaves_the_picture(config: str, size: str) -> None:
    """As charts are first shown."""
    assert misfits(drawn(config), size) == {}


def test_no_text_overlaps_another_whatever_a_reader_chooses() -> None:
    """Every chart of the default config whose labels are inside the plot."""
    wrong = {
        (name, str(choice)): pairs
        for name, spec in drawn("default").items()
        if name.split("-")[0] in {"roofline", "attained", "shards", "chips"}
        for choice in choices(spec)
        if (pairs := overlaps(chosen(spec, choice), "paper"))
    }
    assert wrong == {}


@pytest.mark.parametrize("config", CONFIGS)
def test_specifications_are_valid_small_and_without_theme(config: str) -> None:
    """By Vega-Lite's schema and the caps; nothing is fetched."""
    specs = drawn(config)
    assert invalid(specs) == {}
    assert oversized(specs) == []
    assert fetching_or_themed(specs) == []


def test_title_and_subtitle_are_findings_that_fit() -> None:
    """Not cut in the default config, and a subtitle of at most two lines."""
    assert ill_titled(drawn("default")) == []
