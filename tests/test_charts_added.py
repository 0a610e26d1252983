"""Charts that compare chips: one more chip is added to them, and what was there first stays."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from scenes import chosen, outside, overlaps, texts

import rooflines
from rooflines import charts
from rooflines.charts.comparing import EVERY
from rooflines.charts.families import draw
from rooflines.charts.kit.render import spec_of
from rooflines.charts.kit.text import chip_label

if TYPE_CHECKING:
    import polars as pl

SPLITS = ("batch/gather-w", "contracting/all-reduce")
OTHERS = ("gaudi3", "rubin", "rtx-pro-6000-server", "h200-sxm")
"""Chips beside those compared: on more chips, never compute-bound, a long name, a calibration."""

SPLIT = {
    "operation": "matmul",
    "grid": {"B": {"from": 1, "to": 4096, "factor": 2}},
    "shapes": [{"name": "m-down", "D": 28672, "F": 8192}],
    "dtypes": ["bf16", "fp8-out-bf16", "nvfp4"],
    "chips": ["tpu-v5e", "h100-sxm", "mi300x", *OTHERS],
    "sharding": list(SPLITS),
    "shards": [1, 2, 4, 8, 16, 32, 64],
    "shares": [1, 0.9],
    "calibration": "trtllm",
}
FITTED = 19
"""Calibrated chips of one sweep, more than a picture has rows for."""


def config(sweep: dict[str, Any], chart: str, **more: Any) -> rooflines.Config:  # noqa: ANN401, any value of a config
    """A config with one sweep and one of its charts."""
    return rooflines.load_config(
        {"sweeps": {"s": sweep}, "charts": [{"chart": chart, "sweep": "s"}], **more}
    )


def over_chips(*added: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The chart over the number of chips; the chips compared are the first three."""
    (chart,) = config(SPLIT, "shards").charts
    one = replace(chart, chips=("tpu-v5e", "h100-sxm", "mi300x", *added), added=added)
    frame, drawn = draw(charts.of_config(config(SPLIT, "shards")), one)
    return frame, spec_of(drawn, "shards")


@cache
def with_others() -> tuple[pl.DataFrame, dict[str, Any]]:
    """With all other chips to add."""
    return over_chips(*OTHERS)


def values(spec: dict[str, Any], name: str) -> Any:  # noqa: ANN401, any value of JSON
    """The value of a parameter."""
    return next(p["value"] for p in spec["params"] if p["name"] == name)


@pytest.mark.parametrize("split", SPLITS)
def test_the_first_view_stays_as_it_was(split: str) -> None:
    """Every text in its place, with ticks, whichever chip is highlighted."""
    (_, alone), (_, more) = over_chips(), with_others()
    for chip, basis in ((EVERY, "nominal"), ("mi300x", "calibrated")):
        choice = {"chip": chip, "sharding": split, "basis": basis}
        assert texts(chosen(more, choice), "web") == texts(chosen(alone, choice), "web")


@pytest.mark.parametrize("added", OTHERS)
def test_names_of_lines_keep_apart_beside_an_added_one(added: str) -> None:
    """In the layout with least room; the added chip is named once."""
    for split in SPLITS:
        one = chosen(with_others()[1], {"chip": added, "sharding": split})
        said = [each.text for each in texts(one, "paper")]
        assert sum(text.startswith(chip_label(added)[:7]) for text in said) == 1, said
        assert (overlaps(one, "paper"), outside(one, "paper")) == ([], [])


def test_the_scale_holds_the_added_line() -> None:
    """Its sizes, those for 90 %, and its numbers of chips; a row of never more than without it."""
    frame, spec = with_others()
    edges = values(spec, "edges")
    for (chip, dtypes, split), case in frame.group_by("chip", "dtypes", "sharding"):
        own = edges.get(f"{EVERY}|{dtypes}|{split}|nominal", {"lanes": 0})
        span = edges[f"{chip}|{dtypes}|{split}|nominal"] if chip in OTHERS else own
        for name in ("critical", "reached"):
            sizes = case[name].drop_nulls()
            assert all(span["low"] < size < span["high"] for size in sizes)
        assert all(size < span["never"] for size in case["critical"].drop_nulls())
        assert all(span["left"] < shards < span["right"] for shards in case["shards"])
        assert (span["high"] > span["never"]) or not case["critical"].null_count()
        assert span["lanes"] == own["lanes"] + (chip in OTHERS)
    assert edges[f"rubin|bf16|{SPLITS[0]}|nominal"]["across"] == [1, 2, 4, 8, 16, 32, 64]
    assert edges[f"{EVERY}|bf16|{SPLITS[0]}|nominal"]["across"] == [1, 2, 4, 8, 16]


def test_dtypes_that_no_chip_compared_has_are_those_of_the_added_one() -> None:
    """Two of the others compute in NVFP4; the chips compared have no title there."""
    findings = values(with_others()[1], "findings")
    of_nvfp4 = {key.partition("|")[0] for key in findings if "|nvfp4|" in key}
    assert of_nvfp4 == {"rubin", "rtx-pro-6000-server"}


def test_titles_speak_of_the_chips_shown_together() -> None:
    """On 64 chips there is one of them; on two, Gaudi 3 is never compute-bound first."""
    findings = values(with_others()[1], "findings")
    rubin = findings[f"rubin|bf16|{SPLITS[0]}|nominal"]
    assert rubin["title"].startswith("64 chips need B = ")
    assert " to " not in rubin["title"]
    assert findings[f"gaudi3|bf16|{SPLITS[1]}|nominal"]["title"].startswith(
        f"{SPLITS[1]} on 2, 4 or 8 × "
    )
    calibrated = " ".join(findings[f"h200-sxm|bf16|{SPLITS[0]}|calibrated"]["subtitle"])
    assert calibrated.endswith("Calibrated: H100 SXM, H200 SXM; others nominal.")


def test_calibrated_chips_beyond_the_rows_of_a_picture_are_added() -> None:
    """Sixteen rows, and one below them for the chip that the reader adds."""
    own = {
        f"mine-{number}": {
            "base": "h100-sxm",
            "memory.hbm.bytes_per_s": 2e12 + 1e11 * number,
            "calibration.bf16": {"math": 0.8, "memory": 0.9, "overhead_s": 3.0e-6},
            "source": "a test",
        }
        for number in range(FITTED)
    }
    own["mine-18"]["calibration.fp8"] = own["mine-18"]["calibration.bf16"]
    sizes = {"B": {"from": 1, "to": 4096, "factor": 2}, "D": [4096, 8192], "F": "D"}
    sweep = {"operation": "matmul", "grid": sizes, "dtypes": ["bf16", "fp8"], "chips": list(own)}
    loaded = config(sweep, "critical-estimate", chips=own)
    (chart,) = loaded.charts
    assert (len(chart.chips), len(chart.more_chips)) == (16, 3)
    assert "mine-18" in chart.more_chips
    assert chart.all_dtypes == ("bf16", "fp8")
    one = replace(
        chart, chips=chart.all_chips, dtypes=chart.all_dtypes, added=chart.more_chips, more_chips=()
    )
    spec = spec_of(draw(charts.of_config(loaded), one)[1], "estimates")
    first = [each.text for each in texts(spec, "web")]
    assert sum(text.startswith("mine-") for text in first) == 16
    for chip in chart.more_chips[:1]:
        shown = chosen(spec, {"chip": chip})
        said = [each.text for each in texts(shown, "web")]
        assert [text for text in said if text.startswith("mine-") and text not in first] == [chip]
        claims = spec["usermeta"]["claims"]
        assert len(claims[f"{chip}|bf16|D = F = 8,192"]["over"]["chip"]) == 17
        assert (overlaps(shown, "web"), outside(shown, "web")) == ([], [])
    of_fp8 = [key for key in spec["usermeta"]["claims"] if "|fp8|" in key]
    assert of_fp8 == [f"mine-18|fp8|D = F = {size}" for size in ("4,096", "8,192")]
