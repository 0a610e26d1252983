"""`rooflines explain` of a model, and `rooflines.explain_model`, say what the tables say."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from command_line import said
from explained import FOLDER, MODEL
from pages import text_of

import rooflines
from rooflines.catalogue.chips import chip_entries, dtype_entries
from rooflines.critical.steps import step_thresholds
from rooflines.explanation.text import as_text
from rooflines.fits.entries import shipped_calibrations
from rooflines.model.resources import RESOURCES
from rooflines.models.resolve import models_of
from rooflines.settings.model_sweeps import ModelSweepConfig
from rooflines.sweep.rows import KernelTable, StepTable
from rooflines.sweep.step_sweep import checked_model_sweep

MATH, MEMORY, NETWORK = RESOURCES
MLA = {
    "weights": "fp8",
    "cache": "bf16",
    "activations": "bf16",
    "compute": "fp8",
    "attention": "bf16",
}


def test_the_reviewed_explanations_cover_what_can_be_said():
    cases = FOLDER.glob("model-*.txt")
    text = " ".join(" ".join(case.read_text(encoding="utf-8").split()) for case in cases)
    for kind in (
        "682 tokens/s per chip",
        "context S is beyond the 131,072 tokens that the model is made for",
        "does not fit: 163 GB of weights and caches, 80 GB of hbm; tp=4 is enough compute",
        "80 GB of hbm; tp=16 over nvlink,infiniband is enough",
        "TTFT 186 ms",
        "5,519 with full overlap",
        "11.1% of peak; at least 11.6 ms",
        "of the prompts kernel after kernel",
        "estimate 13.6 ms, calibrated",
        "calibrated to trtllm; matmuls include static scales",
        "quicker all fp8: 5.8 ms (memory-bound)",
        "peaks 586 GFLOP in fp8",
        "almost all of 128 in a layer are read",
        "222.4 of 256 in a layer are read",
        "same routing: 4 of 128",
        "B up to 185; tp=4 is enough",
        "no: 141 GB of weights",
        "80 GB of hbm; no sequence Time",
        "capacity of hbm not published",
        "at best $1.55 a million tokens (Nebius, 2026-08-20), 1.01 J a token",
        "B never each sequence adds",
        "B any compute-bound at every batch",
        "crossover 962.7; none fits",
        "S ≤ 1476 with a large batch",
        "S never no batch",
        "S any every long context",
        "its hops alone take",
        "the network takes longer than the math",
        "At these sizes it is compute-bound as it is.",
        "caches split by batch",
        "no tp is enough that the network allows",
        "3 others",
        "crossover 962.7; by estimate 90% of its plateau from 2362",
        "longer contexts are memory-bound; by estimate 90% of its plateau from",
    ):
        assert kind in text


def sweep_of(chip, model, **keys):
    """The same question as a sweep, written by hand."""
    form = {"models": [model], "chips": [chip], "thresholds": ["B", "S", "chips"], **keys}
    config = ModelSweepConfig.model_validate(form)
    own = rooflines.load_config(FOLDER / "own.yaml").chips
    catalogues = own, dtype_entries(), shipped_calibrations()
    return checked_model_sweep("explain", config, models_of([model]), *catalogues)


QUESTIONS: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "dense": ("h100-sxm", "llama-3.1-70b", {"B": 64, "S": 8192}, {"split": {"tp": 8}}),
    "experts": (
        "b200",
        "qwen3-235b-a22b",
        {"B": 256, "S": 4096},
        {"split": {"dp": 8, "ep": 8}, "dtypes": "fp8", "routing": "same"},
    ),
    "mla": ("h200-sxm", "deepseek-v3", {"B": 64, "S": 8192}, {"split": {"tp": 8}, "dtypes": MLA}),
    "window": ("tpu-v5e", "gemma-3-27b", {"B": 16, "S": 8192}, {"split": {"tp": "4x4"}}),
    "prefill": (
        "h100-sxm",
        "llama-3.1-70b",
        {"B": 2, "S": 4096},
        {"split": {"tp": 8}, "phase": "prefill", "cache_split": "batch"},
    ),
    "levels": (
        "h100-sxm",
        "llama-3.1-405b",
        {"B": 64, "S": 2048, "T": 2},
        {"split": {"tp": 16}, "network": ["nvlink", "infiniband"]},
    ),
    "calibrated": ("calibrated", "llama-3.1-8b", {"B": 8, "S": 1024}, {}),
}


@pytest.mark.parametrize(("chip", "model", "sizes", "asked"), QUESTIONS.values(), ids=QUESTIONS)
def test_every_number_is_one_of_the_tables(chip, model, sizes, asked):
    own = rooflines.load_config(FOLDER / "own.yaml").chips
    answer = rooflines.explain_model(chip, model, **sizes, **asked, chips=own)
    found = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    keys = {**asked, "grid": sizes, "dtypes": [asked.get("dtypes", "bf16")]}
    keys["splits"] = [keys.pop("split", {})]
    sweep = sweep_of(chip, model, **keys)
    row = StepTable(sweep).frame().collect().row(0, named=True)
    assert found["row"] == row
    assert found["thresholds"] == step_thresholds(sweep).to_dicts()
    kernels = KernelTable(sweep).frame().collect()
    names = kernels.columns[kernels.columns.index("group") :]
    added = ("outcome", "critical_B", "limit")
    groups = [{k: v for k, v in each.items() if k not in added} for each in found["groups"]]
    assert groups == kernels.select(names).to_dicts()
    for use in found["uses"]:
        assert use["work"] == row[use["column"]]
        assert use["time_s"] == row[f"t_{use['resource']}_s"]
        assert use["time_s"] >= use["work"] / use["per_s"] * (1 - 1e-12)
    assert sum(each["time_s"] for each in found["products"]) == pytest.approx(row["t_math_s"])
    assert sum(each["flops"] for each in found["products"]) == pytest.approx(row["flops"])
    for other in found["dtypes"]:
        again = sweep_of(chip, model, **{**keys, "dtypes": [other["dtypes"]]})
        assert StepTable(again).frame().collect()["t_lower_s"].to_list() == [other["t_lower_s"]]
    times = [other["t_lower_s"] for other in found["dtypes"]]
    assert times == sorted(times)
    used = {number["path"].rpartition(".")[0] for number in found["numbers"]}
    assert f"memory.{row['memory']}" in used
    assert {f"units.matrix.{each['compute']}" for each in found["products"]} <= used
    networks = row["network"].split("+") if row["network_bytes"] else []
    assert {f"networks.{name}" for name in networks} <= used
    assert ("power" in used) == (row["j_per_token"] is not None)
    assert any(path.startswith("prices") for path in used) == (row["usd_per_mtok"] is not None)
    assert all(number["source"] for number in found["numbers"])


def test_a_known_model_on_eight_chips_has_the_numbers_worked_by_hand():
    """Llama 3.1 70B in bf16: 1.02706e13 FLOP, 1.39e11 bytes of weights and 1.718e11 of caches."""
    answer = rooflines.explain_model("h100-sxm", "llama-3.1-70b", B=64, S=8192, split={"tp": 8})
    row = answer.row
    assert 8 * row["flops"] == pytest.approx(1.02706e13, rel=1e-5)
    assert 8 * row["memory_bytes"] == 139_003_428_864 + 171_798_691_840
    assert row["t_lower_s"] == pytest.approx(11.5971e-3, rel=1e-5)
    assert row["tokens_per_s_per_chip"] == pytest.approx(689.8, rel=1e-4)
    assert row["max_B"] == 185
    assert answer.experts is None
    by_axis = {each["axis"]: each for each in answer.thresholds}
    assert by_axis["B"]["outcome"] == "never"
    assert by_axis["S"]["critical"] == 1476
    assert by_axis["chips"]["critical"] == 4
    cache_s = 163_840 * 2 * 8192 / 8 / 3.35e12
    math_s = (2 * 69_501_714_432 + 2_621_440 * 8192) / 8 / 989e12
    assert answer.per_sequence_s["memory"] == pytest.approx(cache_s)
    assert answer.per_sequence_s["compute"] == pytest.approx(math_s, rel=1e-3)


def changed(chip, path, value):
    """The chips with a variant, `changed`, that differs in one number."""
    sweep = {"operation": "matmul", "grid": {"B": 1, "D": 1, "F": 1}, "dtypes": "bf16"}
    own = {"changed": {"base": chip, path: value, "source": "made up"}}
    form = {"sweeps": {"one": {**sweep, "chips": chip, "thresholds": []}}, "chips": own}
    return rooflines.load_config(form).chips


def test_the_rates_that_are_told_make_it_compute_bound():
    question: dict[str, Any] = {"B": 64, "S": 1024}
    answer = rooflines.explain_model("h100-sxm", "llama-3.1-70b", **question)
    factors = {change.rate: change.factor for change in answer.changes}
    assert factors["memory_rate"] is not None
    chips = changed("h100-sxm", "memory.hbm.bytes_per_s", 3.35e12 * factors["memory_rate"])
    row = rooflines.explain_model("changed", "llama-3.1-70b", **question, chips=chips).row
    assert row["t_memory_s"] == pytest.approx(row["t_math_s"], rel=1e-12)
    assert factors["peak"] == pytest.approx(1 / factors["memory_rate"])


def test_the_network_that_is_told_makes_it_compute_bound():
    question: dict[str, Any] = {
        "B": 1,
        "S": 2048,
        "phase": "prefill",
        "split": {"tp": 8},
        "network": "infiniband",
    }
    answer = rooflines.explain_model("h100-sxm", "qwen2.5-72b", **question)
    (change,) = (change for change in answer.changes if change.rate == "network_rate")
    assert answer.row["bound"] == "network"
    assert change.factor is not None
    rate = float(chip_entries()["h100-sxm"].networks["infiniband"].bytes_per_s)
    chips = changed("h100-sxm", "networks.infiniband.bytes_per_s", rate * change.factor)
    row = rooflines.explain_model("changed", "qwen2.5-72b", **question, chips=chips).row
    assert row["t_network_s"] == pytest.approx(row["t_math_s"], rel=1e-12)


SECTION = text_of("models.md").partition("\n## A model on chips\n")[2]


def test_the_page_shows_what_the_command_prints(capsys):
    shown = SECTION.partition("```text\n")[2].partition("```")[0]
    command, _, lines = shown.removesuffix("...\n").partition("\n")
    assert command == f"$ rooflines explain {MODEL}"
    assert said(capsys, "explain", *shlex.split(MODEL)).startswith(lines)
    row = rooflines.explain_model("h100-sxm", "llama-3.1-70b", B=64, S=8192, split="tp=8").row
    for text in (
        f"{1e3 * row['t_lower_s']:.1f} ms at best",
        f"{1e3 * row['t_ops_s']:.1f} ms if kernels run one after another",
        f"{row['max_B']} sequences fit",
        f"# {row['t_lower_s']:.4f} s and {row['tokens_per_s_per_chip']:.0f}:",
        f"# {row['fits']}, and {row['max_B']} sequences",
    ):
        assert text in SECTION


def test_the_page_has_the_thresholds_by_estimate():
    calibration = SECTION.partition("`--calibration ")[2].partition("`")[0].split(",")
    question: dict[str, Any] = {"B": 64, "S": 1024, "split": "tp=8", "calibration": calibration}
    answer = rooflines.explain_model("h100-sxm", "llama-3.1-70b", **question)
    batch, context, _ = answer.thresholds
    said = " ".join(SECTION.split())
    assert f"a batch of {batch['saturates_estimate']:,}" in said
    assert f"along the context from {context['saturates_estimate']:,} tokens on" in said


def test_the_json_is_the_whole_answer(capsys):
    answer = rooflines.explain_model("h100-sxm", "llama-3.1-70b", B=64, S=8192, split="tp=8")
    assert json.loads(said(capsys, "explain", *shlex.split(MODEL), "--json")) == answer.to_dict()
    assert str(answer) == said(capsys, "explain", *shlex.split(MODEL)).rstrip()
    assert as_text(answer.sheet, ascii_only=True).isascii()


def test_an_estimate_of_a_model_names_its_software():
    asked: dict[str, Any] = {"B": 64, "S": 8192, "split": "tp=8"}
    softwares = ["sglang", "trtllm", "nccl"]
    answer = rooflines.explain_model("h100-sxm", "llama-3.1-70b", calibration=softwares, **asked)
    grid = {"B": 64, "S": 8192}
    sweep = sweep_of(
        "h100-sxm",
        "llama-3.1-70b",
        dtypes=["bf16"],
        splits=[{"tp": 8}],
        grid=grid,
        calibration=softwares,
    )
    (row,) = StepTable(sweep).frame().collect().to_dicts()
    assert answer.row["t_estimate_s"] == row["t_estimate_s"] > row["t_ops_s"]
    assert answer.softwares == ["sglang"]
    assert "calibrated to sglang" in str(answer)
    unfitted: dict[str, Any] = {"B": 1, "S": 1, "dtypes": "int8", "calibration": "trtllm"}
    with pytest.raises(rooflines.RooflinesError, match="without a calibration of tpu-v5e in int8"):
        rooflines.explain_model("tpu-v5e", "llama-3.1-8b", **unfitted)
    with pytest.raises(rooflines.RooflinesError, match=r"'trtlm'(.|\n)*close to it: trtllm"):
        rooflines.explain_model("h100-sxm", "llama-3.1-8b", calibration="trtlm", **asked)


@pytest.mark.parametrize(
    ("chip", "model", "label"),
    [
        ("h100-sxm", "llama-3.1-70b", "bf16"),
        ("h100-sxm", "gpt-oss-120b", "bf16,bf16,bf16,experts:mxfp4@bf16"),
        ("h100-sxm", "deepseek-v3", "fp8,bf16,bf16,head:bf16,attention:bf16@fp8"),
        ("a100-sxm-80gb", "deepseek-v3", "fp8,bf16,bf16,head:bf16@bf16"),
    ],
)
def test_a_model_is_asked_for_in_the_dtypes_that_it_is_published_in(chip, model, label):
    question: dict[str, Any] = {"B": 8, "S": 64, "split": "tp=8"}
    answer = rooflines.explain_model(chip, model, **question)
    assert (answer.row["dtypes"], answer.published) == (label, None)
    other = rooflines.explain_model(chip, model, dtypes="int8", **question)
    assert (other.published is None) == (label == "bf16")
    assert ("; published in" in other.sheet.finding) == (
        label != "bf16" and bool(other.row["fits"])
    )
