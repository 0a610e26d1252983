"""docs/performance.md, docs/scaling.md and README have the figures of benchmarks/results.json."""

import re

import performance
import pytest
from documents import README
from performance import CONFIG, PERFORMANCE, SCALING, default_rows


def test_the_rows_of_the_default_config_are_one_number():
    texts = (page.read_text(encoding="utf-8") for page in (README, CONFIG, PERFORMANCE))
    said = [re.findall(r"([\d.]+ million) rows(?:,| t)", text)[0] for text in texts]
    assert said == [f"{default_rows() / 1e6:.3g} million"] * 3


@pytest.mark.parametrize(
    ("seconds", "words"), [(31.26, "30 seconds"), (57.9, "a minute"), (1100, "18.5 minutes")]
)
def test_a_time_in_words(seconds, words):
    assert performance.about(seconds) == words


def test_figures_follow_from_the_results():
    """By hand: the writer's share, core columns against all, and the core-hours of 10^12 rows."""
    rows, by = (performance.results()["rows"][key] for key in ("rows", "by"))
    text = " ".join(PERFORMANCE.read_text(encoding="utf-8").split())
    assert f"`columns: core` | {by['core']['rows_s'] / by['rooflines']['rows_s']:.2f} ×" in text
    writing = 1 - by["unwritten"]["rows_s"] / by["rooflines"]["rows_s"]
    assert f"{writing:.0%}<!--/--> are polars' Parquet writer" in text
    hours = re.findall(r"core-hours[^|]*\| ([\d.]+)", SCALING.read_text(encoding="utf-8"))
    expected = 1e12 / rows * by["rooflines"]["rows_s"] / 3600
    assert float(hours[0]) == pytest.approx(expected, 0.01)
