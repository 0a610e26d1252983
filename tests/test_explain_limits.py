"""Limits of what is attained, and sizes by estimate, in explanations are those of the tables."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from explained import FOLDER, OWN, as_config

import rooflines

NEVER: dict[str, tuple[tuple[str, str, str], dict[str, Any]]] = {
    "memory": (("h100-sxm", "128x8192x8192", "bf16"), {}),
    "network": (
        ("h100-sxm", "2048x8192x8192", "bf16"),
        {"shards": 8, "sharding": "batch/gather-w"},
    ),
    "per example": (("tpu-v5e", "64x4096x4096", "int8"), {"operation": "per-example-matmul"}),
    "efficient": (("half-efficient", "512x4096x4096", "bf16"), {}),
}


@pytest.mark.parametrize(("question", "asked"), NEVER.values(), ids=NEVER)
def test_a_hair_above_the_limit_no_size_attains_it_and_a_hair_below_one_does(question, asked):
    chips = rooflines.load_config(FOLDER / "own.yaml").chips
    answer = rooflines.explain(*question, **asked, chips=chips)
    config = as_config(question[0], answer.sizes, question[2], {"shards": 1, **asked})
    assert answer.limit_shares
    for axis, share in answer.limit_shares.items():
        around = {"thresholds": [axis], "shares": [share * (1 + 1e-9), share * (1 - 1e-9)]}
        sweep = {"explain": {**config["sweeps"]["explain"], **around}}
        above, below = rooflines.thresholds(rooflines.load_config({**config, "sweeps": sweep}))[
            "outcome"
        ]
        assert above == "never"
        assert below in {"found", "always"}


def test_a_limit_of_exactly_the_peak_is_never_reached():
    chip = {
        "units": {"matrix": {"int8": {"flops_per_s": 4e12, "source": "made up"}}},
        "memory": {"hbm": {"bytes_per_s": 1e12, "source": "made up"}},
    }
    sweep = {"operation": "matmul", "grid": {"B": 1, "D": 4, "F": 4}, "dtypes": "int8"}
    config = {"sweeps": {"one": {**sweep, "chips": "even"}}, "chips": {"even": chip}}
    chips = rooflines.load_config(config).chips
    answer = rooflines.explain("even", "9x4x4", "int8", chips=chips)
    assert answer.limit_shares == {"B": 1.0}
    assert "B  never  memory intensity tends to 4 FLOP/B, but stays below" in str(answer)


def test_a_peak_at_boost_clock_says_so():
    assert "at boost clock" in str(rooflines.explain("rtx-5090", "128x8192x8192", "bf16"))
    assert "at boost clock" not in str(rooflines.explain("h100-sxm", "128x8192x8192", "bf16"))


def test_the_sizes_by_estimate_are_those_of_the_thresholds():
    options: dict[str, Any] = {"operation": "matmul", "dtypes": ["bf16"], "thresholds": ["B", "D"]}
    options |= {"grid": {"B": 128, "D": 8192, "F": 8192}, "chips": ["h100-sxm", "tpu-v5e"]}
    config = rooflines.load_config({"sweeps": {"s": {**options, "calibration": "trtllm"}}})
    columns = ("axis", "saturates_estimate")
    for chip in ("h100-sxm", "tpu-v5e"):
        table = rooflines.thresholds(config, "s").filter(pl.col("chip") == chip).select(columns)
        calibration = "trtllm" if chip == "h100-sxm" else None
        answer = rooflines.explain(chip, "128x8192x8192", "bf16", calibration=calibration)
        found = [each for each in answer.to_dict()["thresholds"] if each["share"] == 1]
        found = [tuple(each[name] for name in columns) for each in found if each["axis"] != "F"]
        assert found == table.rows()
        fitted = chip == "h100-sxm"
        assert [size is not None for _, size in found] == [fitted] * 2
        text = " ".join(str(answer).split())
        for before, (_, size) in zip(("90% of peak from 285", "42.7% of peak"), found, strict=True):
            said = f"{before}; by estimate 90% of its plateau from {size} " in text
            assert said == fitted
        assert ("by estimate" in text) == fitted


def test_a_plateau_without_overheads_is_near():
    peak = "units.matrix.bf16.flops_per_s"
    chips = {"slow": OWN["calibrated"] | {peak: 1e9, "plausible": [peak]}}
    config = {"sweeps": {"s": {"operation": "matmul", "grid": {"B": 1, "D": 1, "F": 1}}}}
    config["sweeps"]["s"] |= {"dtypes": ["bf16"], "chips": ["slow"]}
    entries = rooflines.load_config({**config, "chips": chips}).chips
    answer = rooflines.explain("slow", "8x64x64", "bf16", chips=entries)
    sizes = [each["saturates_estimate"] for each in answer.thresholds[::2]]
    assert max(sizes) < 64
    for size in sizes:
        assert f"by estimate 90% of its plateau from {size}" in str(answer)


def test_an_estimate_names_its_software_and_its_band():
    question = ("h100-sxm", "128x8192x8192")
    answer = rooflines.explain(*question, "bf16", calibration=["sglang-block", "trtllm"])
    row = answer.row
    assert answer.softwares == ["trtllm"]
    assert row["t_estimate_p10_s"] < row["t_estimate_s"] < row["t_estimate_p90_s"]
    assert f"calibrated to trtllm; {row['estimate_bound']}-bound" in str(answer)
    with pytest.raises(rooflines.RooflinesError, match="without a calibration of h100-sxm in int8"):
        rooflines.explain(*question, "int8", calibration="trtllm")
