"""docs/performance.md and docs/scaling.md have the figures of benchmarks/RESULTS.md."""

import re

import measured
import pytest
from documents import README
from measured import (
    CONFIG,
    PERFORMANCE,
    SCALING,
    default_rows,
    performance_page,
)

RESULTS = """\
# Measured speed

Written by `make bench`. 4 cores, x86_64.

## Goals

| what | goal |
| --- | --- |
| end to end | 3 |

## 9. The default config, `snakemake --cores 2`

4,157,357 rows of operations; the site has 18.9 MB.

| run | wall s | CPU s |
| --- | --- | --- |
| the whole, with charts and site | SECONDS | 50.66 |
"""


def test_the_rows_of_the_default_config_are_one_number():
    texts = (page.read_text(encoding="utf-8") for page in (README, CONFIG, PERFORMANCE))
    said = [re.findall(r"([\d.]+ million) rows(?:,| t)", text)[0] for text in texts]
    assert said == [f"{default_rows() / 1e6:.3g} million"] * 3
    counts = re.findall(r"([\d,]+) (?:rows )?of (?:op|whole m)", measured.results().notes[9])
    assert sum(map(measured.number, counts)) == pytest.approx(default_rows(), 0.02)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [("31.26", "30 seconds"), ("57.9", "a minute"), ("1,100", "18.5 minutes")],
)
def test_results_are_read_by_section(seconds, words):
    found = measured.results_of(RESULTS.replace("SECONDS", seconds))
    assert [*found.tables] == [9]
    assert found.row(9, CPU_s="50.66")["wall s"] == seconds
    assert found.notes[9].startswith("4,157,357 rows")
    assert measured.about(measured.number(seconds)) == words


def test_a_sentence_follows_from_the_results():
    """By hand from sections 2 and 3: the writer's share, and core columns against all."""
    found, text = measured.results(), " ".join(performance_page().split())
    by_name = {row["who"]: row for row in found.tables[2]}
    seconds = {name: float(row["rows, CPU s"]) for name, row in by_name.items()}
    assert f"`columns: core` | {seconds['rooflines-core'] / seconds['rooflines']:.2f} ×" in text
    nanoseconds = [int(row["CPU ns per row"]) for row in found.tables[3]]
    (job,) = (row["CPU ns per row"] for row in found.tables[3] if row["of a job's"] == "100%")
    computing = nanoseconds[0] / int(job)
    assert f"{1 - computing:.0%} are polars' Parquet writer" in text
    hours = re.findall(r"core-hours[^|]*\| ([\d.]+)", SCALING.read_text(encoding="utf-8"))
    rate = float(by_name["rooflines"]["rows, CPU s"])
    (rows,) = re.findall(r"^([\d,]+) rows", found.notes[2])
    assert float(hours[0]) == pytest.approx(1e12 / int(rows.replace(",", "")) * rate / 3600, 0.01)
