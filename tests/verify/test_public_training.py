"""No public step of LoRA, or of models with states and experts, lies below its bound.

`ROOFLINES_PUBLIC_DATA` names a folder with `training/mlperf-v5.1.csv`, results of MLPerf Training,
and `training/published-steps.csv`.
"""

import csv
import json
import os
from pathlib import Path
from statistics import mean, median

import pytest
from command_line import said
from test_training_memory import bound_of

from rooflines.hardware.chip_catalogue import chip_entries

CHIPS = {
    "H100": ("h100", "fp8"),
    "H200": ("h200", "fp8"),
    "GB200": ("gb200", "nvfp4"),
    "GB300": ("gb300", "nvfp4"),
    "B200": ("b200", "nvfp4"),
    "B300": ("b300", "nvfp4"),
    "MI300X": ("mi300x", "fp8"),
    "MI325X": ("mi325x", "fp8"),
    "MI350X": ("mi350x", "mxfp4"),
    "MI355X": ("mi355x", "mxfp4"),
}
DATA = os.environ.get("ROOFLINES_PUBLIC_DATA")
DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.skipif(DATA is None, reason="ROOFLINES_PUBLIC_DATA names no folder")
def test_no_public_lora_run_is_below_its_bound():
    with (Path(DATA or "") / "training" / "mlperf-v5.1.csv").open(encoding="utf-8") as file:
        runs = [row for row in csv.DictReader(file) if row["benchmark"] == "llama2_70b_lora"]
    ratios = []
    for run in runs:
        name = next(name for name in CHIPS if name in run["accelerator"])
        chip, form = CHIPS[name]
        flops_per_s = max(
            rate.flops_per_s for rate in chip_entries()[_full(chip)].units["matrix"].values()
        )
        chips = int(run["nodes"]) * int(run["per_node"])
        flops = bound_of(chip, form)["flops"] * int(run["global_batch"])
        seconds = float(run["step_s"] or int(run["global_batch"]) / float(run["samples_per_s"]))
        ratios.append(seconds / (flops / chips / flops_per_s))
    assert len(ratios) == 26
    assert min(ratios) > 1
    assert f"{min(ratios):.2f} {max(ratios):.2f}" == "2.46 8.75"


@pytest.mark.skipif(DATA is None, reason="ROOFLINES_PUBLIC_DATA names no folder")
def test_every_public_step_of_nemotron_has_a_bound_below_it(capsys):
    path = Path(DATA or "") / "training" / "published-steps.csv"
    counts = []
    for model in ("nemotron-3-nano", "nemotron-3-super", "nemotron-3-ultra"):
        args = "measured", "judge", str(path), "--where", f"model={model}", "--json"
        *_, whole = json.loads(said(capsys, *args))["errors"]
        counts.append((whole["steps"], whole["answered"], whole["below"]))
    assert counts == [(20, 20, 0), (30, 30, 0), (2, 2, 0)]


@pytest.mark.skipif(DATA is None, reason="ROOFLINES_PUBLIC_DATA names no folder")
def test_docs_say_errors_of_estimates_of_nemotron_as_they_are(capsys):
    """No fit has seen models with states."""
    path = Path(DATA or "") / "training" / "published-steps.csv"
    judged = json.loads(said(capsys, "measured", "judge", str(path), "--json"))["steps"]
    steps = [
        row for row in judged if row["model"].startswith("nemotron-3") and row["ratio"] is not None
    ]
    error = median(abs(1 / row["ratio"] - 1) for row in steps)
    inside = mean(bool(row["in_band"]) for row in steps)
    subject = f"{len(steps)} published steps of Nemotron 3, which no fit has seen,"
    text = " ".join((DOCS / "accuracy.md").read_text(encoding="utf-8").split())
    assert f"{subject} the median error is {error:.1%}" in text.replace(" %", "%")
    assert f"{inside:.0%} are in the band" in text.replace(" %", "%")


def _full(chip):
    """Id of a chip's usual entry."""
    return {"h100": "h100-sxm", "h200": "h200-sxm"}.get(chip, chip)
