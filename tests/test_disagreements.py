"""Disagreements of sources are listed, and have a plausible size."""

import re

import polars as pl
import pytest

import rooflines

APART = 1.25
"""Largest ratio of figures for the same quantity; larger ratios are explained below."""

EXPLAINED = {
    ("tpu-v2", "units.matrix.bf16.flops_per_s"): "per core",
    ("tpu-v2", "networks.ici.bytes_per_s"): "both directions",
    ("tpu-v5p", "units.vector.fp32.flops_per_s"): "one core",
    ("rtx-4090", "units.matrix.fp16.flops_per_s"): "fp16 accumulate",
    ("rtx-4090", "units.matrix.fp8.flops_per_s"): "fp16 accumulate",
    ("rtx-5090", "units.matrix.fp16.flops_per_s"): "fp16 accumulate",
    ("rtx-5090", "units.matrix.fp8.flops_per_s"): "fp16 accumulate",
    ("h100-sxm", "units.matrix.bf16.flops_per_s"): "with sparsity",
    ("h100-sxm", "units.vector.fp32.flops_per_s"): "an FMA counted as one",
    ("b200", "networks.infiniband.bytes_per_s"): "another network card",
    ("gb200", "networks.infiniband.bytes_per_s"): "another network card",
    ("l40", "units.matrix.bf16.flops_per_s"): "the sheet and the clock",
    ("rubin", "units.matrix.nvfp4.flops_per_s"): "training and inference",
    ("rubin-cpx", "units.matrix.nvfp4.flops_per_s"): "with sparsity of 3:2",
    ("mi455x", "units.matrix.fp8.flops_per_s"): "dense or with sparsity",
    ("mi455x", "units.matrix.mxfp6.flops_per_s"): "dense or with sparsity",
    ("mi455x", "units.matrix.mxfp4.flops_per_s"): "dense or with sparsity",
    ("ascend-950dt", "memory.hbm.capacity_bytes"): "an earlier announcement",
    ("mi250x", "networks.xgmi.bytes_per_s"): "one or two links to another package",
    ("mi300a", "networks.xgmi.bytes_per_s"): "both directions",
    ("trainium3", "networks.neuronlink-rack.bytes_per_s"): "the vendor's totals",
}


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
    assert wide == set(EXPLAINED)


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
