"""No title is false: each is computed again from tables, thresholds and the catalogue."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from charted import charted
from claimed import altered, holds, unclaimed
from claims import false
from hypothesis import given
from random_sweeps import check
from titled import Case, cases_of, default_cases, drawn_cases
from titled_configs import CONFIGS

import rooflines
from rooflines import RooflinesError, charts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def lies(said: Sequence[Case]) -> list[tuple[str, ...]]:
    """The titles that are false, with the chart and the reader's choice."""
    assert said
    return [
        (case.chart.id, str(case.choice), case.title, case.subtitle) for case in said if false(case)
    ]


@pytest.fixture(scope="module", params=CONFIGS)
def drawn(request: pytest.FixtureRequest) -> tuple[Case, ...]:
    """What the charts of a config say; the tests of one config follow one another."""
    return drawn_cases(request.param)


def test_no_title_is_false(drawn: tuple[Case, ...]) -> None:
    """For every chart and every choice of a reader."""
    assert lies(drawn) == []


def unfounded(said: Sequence[Case]) -> list[tuple[str, ...]]:
    """The titles whose claim does not hold, or is missing."""
    return [
        (case.chart.id, str(case.choice), case.title, str(case.claim))
        for case in said
        if (not holds(case) if case.claim else unclaimed(case))
    ]


def test_every_title_and_claim_of_the_default_config_holds(default_results: Path) -> None:
    """By the tables that the workflow wrote; the index of each family has the claims."""
    cases = default_cases(default_results)
    false_titles, false_claims = [], []
    for _, of_chart in groupby(cases, lambda case: case.chart.id):
        said = [*of_chart]
        false_titles += lies(said)
        false_claims += unfounded(said)
        said[0].known.clear()  # hundreds of megabytes
    assert false_titles == []
    assert false_claims == []
    listed = {
        chart["id"]: chart["claims"]
        for index in (default_results / "charts").glob("*/index.json")
        for chart in json.loads(index.read_text(encoding="utf-8"))
    }
    assert listed == {case.chart.id: case.spec["usermeta"]["claims"] for case in cases}


def test_every_claim_holds(drawn: tuple[Case, ...]) -> None:
    """And none would if its value were another."""
    assert unfounded(drawn) == []
    for case in drawn:
        if case.claim:
            other = {**case.claim, "value": altered(case.claim["value"])}
            assert not holds(replace(case, claim=other)), (case.chart.id, case.claim)


@check(15)
@given(config=charted())
def test_every_claim_of_a_random_config_holds(config: dict[str, Any]) -> None:
    """Of the charts that `auto` chooses; claims are worked out from whole tables."""
    for sweep in config["sweeps"].values():
        sweep.pop("columns", None)
    try:
        loaded = rooflines.load_config({**config, "charts": "auto"})
    except RooflinesError:
        return
    assert unfounded(cases_of(loaded)) == []


@pytest.mark.parametrize(
    ("chart", "choice", "title"),
    [
        (
            "per-dollar-model-shapes",
            {"dtypes": "bf16", "seller": "lowest of all"},
            "Of 5 chips shown, TPU v5e gives most bf16 per dollar",
        ),
        (
            "per-watt-model-shapes",
            {"dtypes": "bf16"},
            "Of 5 chips shown, B200 gives most bf16 per watt",
        ),
        (
            "bounds-across-nodes",
            {"chip": "h100-sxm", "sharding": "batch"},
            "On 64 chips compute-bound from B = 32,768 on",
        ),
        (
            "bounds-across-nodes",
            {"chip": "h100-sxm", "sharding": "column"},
            "column on 16, 32 or 64 × H100 SXM: no B is enough",
        ),
        (
            "shards-sharded-models",
            {"dtypes": "bf16", "sharding": "batch/gather-w"},
            "batch/gather-w on 2, 4 or 8 × MI300X: no B is enough",
        ),
        (
            "shards-across-nodes",
            {"sharding": "batch"},
            "64 chips need B = 13,628 (H100 SXM) to 19,813 (H200 SXM)",
        ),
        (
            "layers-model-shapes",
            {"dtypes": "bf16"},
            "Llama 3 70B needs B = 169 to 1,459, by layer and chip",
        ),
        (
            "time-sharded-models",
            {"chip": "b200", "dtypes": "bf16", "size": "4096", "shards": "8"},
            "At B = 4,096, 3 of 4 matmuls wait for the network",
        ),
        (
            "critical-map-common-sizes",
            {"chip": "tpu-v5e", "dtypes": "bf16"},
            "The 16 shapes shown need about B = 246 to 422 on TPU v5e",
        ),
        (
            "attained-book-matmul",
            {"dtypes": "bf16", "sweep": "book-q3-curve"},
            "bf16 needs B = 272 at D = F = 4,096, 453 at 1,024",
        ),
        (
            "chips-model-shapes",
            {"dtypes": "bf16"},
            "In bf16 TPU v6e needs 3.4 times the intensity of TPU v5p",
        ),
    ],
)
def test_the_check_sees_a_title_that_is_false(
    chart: str, choice: dict[str, str], title: str, default_results: Path
) -> None:
    """Titles of earlier versions, and numbers that are one off."""
    case = next(
        case
        for case in default_cases(default_results)
        if case.chart.id == chart and choice.items() <= case.choice.items()
    )
    assert not false(case)
    assert false(replace(case, title=title))
    case.known.clear()


@pytest.mark.parametrize(
    ("field", "right", "wrong"),
    [
        ("title", "4 × ", ""),
        ("title", "4 × ", "2 × "),
        ("title", "6,594", "6,595"),
        ("subtitle", "4 × ", ""),
        ("subtitle", ", split batch/gather-w", ""),
        ("subtitle", "gather-w", "gather-x"),
    ],
)
def test_the_check_sees_a_map_of_another_split(field: str, right: str, wrong: str) -> None:
    """The number of chips and the split are named, in the title and in the subtitle."""
    case = next(case for case in drawn_cases("one split") if case.choice["chip"] == "h100-sxm")
    text = getattr(case, field)
    assert right in text
    assert not false(case)
    assert false(replace(case, **{field: text.replace(right, wrong)}))


@pytest.mark.parametrize(
    ("config", "chart", "right", "wrong"),
    [
        ("timings", "measured-roofline", "63.6 %", "63.7 %"),
        ("timings", "measured-ratio", "1.57 ×", "1.56 ×"),
        ("timings", "measured-errors", "worst cell 20.7 %", "worst cell 20.6 %"),
        ("calibrations", "critical-estimate", "is 1.52", "is 1.51"),
        ("calibrations", "critical-estimate", "3 of 3", "2 of 3"),
        ("calibrations", "critical-estimate", "RTX pro 6000 server is", "B200 is"),
    ],
)
def test_the_check_sees_wrong_numbers_of_timings(
    config: str, chart: str, right: str, wrong: str
) -> None:
    """Of bf16 on one chip, and of every chip with a calibration."""
    case = next(
        case
        for case in drawn_cases(config)
        if case.chart.chart == chart and case.choice["dtypes"] == "bf16" and right in case.title
    )
    assert not false(case)
    assert false(replace(case, title=case.title.replace(right, wrong)))


def bands(spec: dict[str, Any]) -> pl.DataFrame:
    """The dots of a roofline with the band that each lies in, `region`."""
    rows = [
        pl.DataFrame(rows, infer_schema_length=None) for rows in spec["datasets"].values() if rows
    ]
    dots = next(frame for frame in rows if "at" in frame.columns)
    regions = next(frame for frame in rows if "region" in frame.columns)
    spans = regions.group_by("chip", "dtypes", "region").agg(
        left=pl.col("x").min(), right=pl.col("x").max()
    )
    return dots.join(spans, on=["chip", "dtypes"]).filter(pl.col("x").is_between("left", "right"))


def test_bands_of_a_roofline_mean_one_thing_on_every_chip() -> None:
    """On all default chips each dot lies in the band of its bottleneck in the table."""
    config = rooflines.load_config()
    sweep = config.sweeps["model-shapes"]
    chips = [
        chip
        for chip in dict.fromkeys(chip_rows.chip for chip_rows in sweep.by_chip)
        if "bf16" in sweep.chips[chip].units["matrix"]
    ]
    frame = charts.roofline_frame(
        charts.of_config(config).of("model-shapes", chips, ["bf16"]), "llama-3.1-70b-down"
    )
    dots = bands(charts.spec_of(charts.roofline(frame), "roofline"))
    rows = rooflines.rows(config, "model-shapes").filter(dtypes="bf16", shape="llama-3.1-70b-down")
    table = rows.select(
        pl.col("chip").cast(pl.String), at="B", bound=pl.col("bound").cast(pl.String)
    ).collect()
    both = dots.join(table, on=["chip", "at"])
    assert both.height == frame.filter(kind="point").height == 6 * len(chips)
    assert set(both["bound"]) == {"memory", "compute"}
    assert both["region"].to_list() == both["bound"].to_list()


def test_bands_are_those_of_the_memory_level_that_the_dots_read_from() -> None:
    """A sweep that reads from on-chip memory has its ridge there."""
    (case,) = drawn_cases("on-chip memory first")
    both = bands(case.spec).join(
        case.rows().select("chip", at="B", bound=pl.col("bound").cast(pl.String)), on=["chip", "at"]
    )
    assert both.height == 5
    assert both["region"].to_list() == both["bound"].to_list()
    assert case.title.startswith("The VMEM ridge of TPU v5e")
