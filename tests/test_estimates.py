"""Estimates of sweeps: which calibration counts, what a job depends on, what is refused."""

import json
from fractions import Fraction
from math import prod
from typing import Any

import polars as pl
import pytest
import yaml
from catalogues import NOMINAL
from serving_tables import model_sweep
from small_config import matmul

import rooflines
from rooflines.evaluation.row_frames import StepTable
from rooflines.fits.calibration_choice import CalibrationChoice
from rooflines.fits.calibration_files import Calibrations, shipped_calibrations
from rooflines.fits.time_form import nominal_quantities
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.sweep.one_chip import sweep_on
from rooflines.sweep.recipes import recipe_of, sweep_of

FIT: dict[str, Any] = {**NOMINAL, "overhead_s": 1.0, "bands": {"memory": [0.5, 2]}}
"""An overhead of a second, which no shipped fit has."""

CHIPS = ["h100-sxm", "a100-sxm-80gb"]


def config(**keys):
    grid = {"B": [1, 64, 4096], "D": 4096, "F": 4096}
    sweep = matmul(grid=grid, dtypes=["bf16", "int8"], chips=CHIPS)
    sweep["calibration"] = ["trtllm", "sglang"]
    top = {"calibrations": keys.pop("calibrations")} if "calibrations" in keys else {}
    return {"sweeps": {"one": {**sweep, **keys}}, "charts": [], **top}


def estimates(**keys):
    rows = rooflines.rows(rooflines.load_config(config(**keys)), "one")
    texts = pl.col("chip", "dtypes").cast(pl.String)
    return rows.select(texts, pl.col("^t_estimate.*|estimate_(bound|extrapolated)$")).collect()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "own.yaml"
    found = {"h100-sxm/trtllm": {"bf16": FIT}, "h100-sxm/mine": {"bf16": {**FIT, "bands": {}}}}
    path.write_text(yaml.safe_dump({"calibrations": found}))
    return str(path)


def test_the_numbers_of_the_user_win(file):
    found = estimates(calibrations=[file])
    own = (pl.col("chip") == "h100-sxm") & (pl.col("dtypes") == "bf16")
    assert (found.filter(own)["t_estimate_s"] > 1).all()
    assert (found.filter(~own)["t_estimate_s"].drop_nulls() < 1).all()


@pytest.mark.parametrize("wide", [True, False])
def test_kernels_without_timings_take_the_overhead_and_memory_rate_of_wide_matmuls(wide):
    narrow = {**FIT, "math": 0.5, "memory": 0.9, "overhead_s": 3e-6, "activation_passes": 1}
    fits = {"fp8": narrow, "bf16": {**FIT, "math": 0.7, "memory": 0.8, "overhead_s": 2e-6}}
    known = {"h100-sxm/mine": fits if wide else {"fp8": narrow}}
    chosen = Calibrations.model_validate({"calibrations": known})
    entry = chip_entries()["h100-sxm"]
    choice = CalibrationChoice(chosen, ["mine"], "h100-sxm", entry, "matrix", "hbm", ())
    fit = choice.fit("fp8")
    assert fit is not None
    found = choice.fallback_numbers(fit.numbers)
    memory, overhead_s = (0.8, 2e-6) if wide else (0.9, 3e-6)
    numbers = float(found.math), float(found.memory), float(found.overhead_s)
    assert numbers == (0.5, memory, overhead_s)
    assert found.activation_passes == 0


STEPS: dict[str, Any] = {
    "models": ["llama-3.1-8b"],
    "grid": {"B": 8, "S": 100},
    "dtypes": ["bf16"],
    "chips": CHIPS,
    "calibration": ["mine", "trtllm"],
}


def test_each_replica_computes_whole_tiles_of_its_own_rows():
    """Of 258 sequences on two replicas each has 129, two tiles of 128."""
    sweep = {"models": ["llama-3.1-8b"], "chips": ["h100-sxm"], "dtypes": ["bf16"]}
    sizes = {"splits": [{"dp": 2}], "grid": {"B": [258], "S": [1]}}
    (case,) = model_sweep({**sweep, **sizes}).cases
    (kernel,) = (kernel for kernel in case.kernels if kernel.name == "o")
    quantities = nominal_quantities(kernel, case.machine, 128)
    seconds = Fraction(2 * 256 * 4096 * 4096) / case.machine.peaks["bf16"]
    assert quantities["math"].at(case.extents(case.step(258, 1))) == seconds


def test_operands_of_an_operation_are_timed_at_their_sizes_and_not_in_tiles():
    form = config(grid={"B": 100, "D": 500, "F": 64}, tile={"B": 128, "D": 256}, dtypes=["bf16"])
    for case in rooflines.load_config(form).sweep("one").cases:
        (kernel,) = case.kernels
        sizes = {"B": 100, "D": 500, "F": 64}
        found = {name: terms.at(sizes) for name, terms in kernel.fit_terms.items()}
        assert found == {"x": 2 * 100 * 500, "out": 2 * 100 * 64, "depth": 500, "columns": 64}


@pytest.mark.parametrize(("compute", "bits"), [("bf16", 16), ("fp8", 8), ("nvfp4", Fraction(9, 2))])
def test_the_input_of_a_matmul_is_timed_in_its_compute_format(compute, bits):
    """Gate and up of 8 tokens with fp8 weights, 2 x 14,336 wide, at 7.7 TB/s."""
    dtypes = {"weights": "fp8", "cache": "bf16", "activations": "bf16", "compute": compute}
    sweep = {**STEPS, "dtypes": [{"name": "one", **dtypes}], "chips": ["b200"]}
    (case,) = model_sweep(sweep).cases
    (kernel,) = (each for each in case.kernels if each.name == "gate-up")
    extents = case.extents(case.step(8, 100))
    quantities = nominal_quantities(kernel, case.machine)
    inputs, outputs = 8 * 4096 * Fraction(bits) / 8, 8 * 14_336 * 2
    found = {name: quantities[name].at(extents) for name in ("x", "out", "memory")}
    weights, per_s = 4096 * 2 * 14_336, Fraction(77 * 10**11)
    assert found == {
        "x": inputs / per_s,
        "out": outputs / per_s,
        "memory": (weights + inputs + outputs) / per_s,
    }
    handed_on = kernel.work("activation_bytes").at(extents)
    assert handed_on == 8 * 4096 * 2 + outputs  # between kernels, in their own format


def test_a_job_of_a_model_depends_on_the_numbers_that_it_uses(file):
    form = {"model-sweeps": {"steps": STEPS}, "calibrations": [file], "charts": []}
    sweep = rooflines.load_config(form).sweep("steps")
    recipe = recipe_of(sweep, chips=["h100-sxm"])
    fits = recipe["calibrations"]["calibrations"]
    own = {"h100-sxm/mine": ["bf16"], "h100-sxm/trtllm": ["bf16"]}
    assert {key: list(entries) for key, entries in fits.items()} == own
    again = sweep_of(recipe)
    rows, expected = StepTable(again).frame().collect(), StepTable(sweep).frame().collect()
    assert (
        rows["t_estimate_s"].to_list() == expected.filter(chip="h100-sxm")["t_estimate_s"].to_list()
    )
    assert rows["t_estimate_s"][0] > 4 * 32  # the matmuls of a layer have an overhead of a second


def test_sizes_and_engines_beyond_the_timings_are_named(file):
    """Bands there are wider, as `test_properties` checks."""
    grid = {"B": 64, "D": [256, 4096, 65536], "F": 4096}
    found = estimates(grid=grid, dtypes=["bf16"], calibrations=[file])
    assert (
        found.filter(chip="h100-sxm")["estimate_extrapolated"].to_list() == [None] * 3
    )  # no sizes
    beyond = estimates(grid=grid, dtypes=["bf16"])["estimate_extrapolated"].to_list()
    assert beyond == ["sizes", None, "sizes", "engine, sizes", "engine", "engine, sizes"]


def test_a_band_beyond_the_sizes_of_timings_is_the_wider_of_two_on_either_side():
    fit = shipped_calibrations().calibrations["h100-sxm/trtllm"]["bf16"]
    assert fit.outside is not None
    grid = {"B": [1, 64, 2**13], "D": [4096, 65536], "F": [4096, 2**17]}
    rows = estimates(grid=grid, dtypes=["bf16"], chips=CHIPS[:1])
    assert set(rows["estimate_extrapolated"]) == {None, "sizes"}
    for row in rows.to_dicts():
        low, high = fit.bands[row["estimate_bound"]]
        if row["estimate_extrapolated"]:
            low, high = min(low, fit.outside[0]), max(high, fit.outside[1])
        ends = [row[f"t_estimate_{end}_s"] / row["t_estimate_s"] for end in ("p10", "p90")]
        assert ends == pytest.approx([float(low), float(high)])


@pytest.mark.parametrize(("tp", "dp"), [(4, 1), (2, 2), (2, 4)])
def test_experts_of_all_chips_are_timed_with_one_all_reduce_over_these(tp, dp):
    """And bound by dispatch and combine over these, with a gather over tp."""
    split = {"tp": tp, "dp": dp, "ep": tp * dp}
    asked: dict[str, Any] = {"phase": "decode", "splits": [split], "grid": {"B": 8, "S": 64}}
    sweep = sweep_on("mixtral-8x7b", "h100-sxm", "bf16", **asked)
    (experts,) = (kernel for kernel in sweep.cases[0].kernels if kernel.name == "experts")
    timed, bound = (
        [(sent.kind, prod(sent.route.axes)) for sent in transfers]
        for transfers in (experts.timed_transfers, experts.transfers)
    )
    assert timed == [("all-reduce", tp * dp)]
    assert bound == [*[("all-to-all", tp * dp)] * 2, ("all-gather", tp)]


@pytest.mark.parametrize(("shards", "beyond"), [(8, None), (16, "sizes"), ("4x4", "sizes")])
def test_chips_along_all_axes_of_a_collective_are_those_of_its_timings(shards, beyond, tmp_path):
    """A fit of one's own to all-reduces over 2 to 8 chips, which the sides of 4x4 are too."""
    known = shipped_calibrations().collectives["h100-sxm/nccl"]["all-reduce"].model_dump()
    dropped = ("contents", "held_out_below", "held_out")
    fit = {key: value for key, value in known.items() if key not in dropped}
    path = tmp_path / "own.yaml"
    of_chip = {"calibrations": {"bf16": FIT}, "collectives": {"all-reduce": fit}}
    path.write_text(json.dumps({kind: {"tpu-v5e/mine": of} for kind, of in of_chip.items()}))
    split = {"sharding": "contracting/all-reduce", "shards": [shards], "calibration": ["mine"]}
    grid = {"B": 64, "D": 4096, "F": 4096}
    rows = estimates(
        grid=grid, dtypes=["bf16"], chips=["tpu-v5e"], calibrations=[str(path)], **split
    )
    assert rows["estimate_extrapolated"].to_list() == [beyond]


def test_attention_of_drafts_is_timed_at_the_mean_context_of_a_run():
    """Two runs attend to S - 2 and to S - 1 tokens; timings reach to 131,072."""
    for context, beyond in ((70_000, None), (131_073, None), (131_074, "sizes")):
        answer = rooflines.explain_model(
            "h100-sxm",
            "glm-4.5",
            B=8,
            S=context,
            dtypes="bf16",
            calibration="trtllm",
            split="tp=8",
            draft={"tokens": 2, "accepted": 1},
        )
        (attention,) = (each for each in answer.groups if each["group"] == "draft-attention")
        assert attention["estimate_extrapolated"] == beyond


def test_explain_names_attention_and_collectives_beyond_their_timings():
    """Of attention a context, of a collective a payload; bands are those of `test_properties`."""

    def found(context):
        return rooflines.explain_model(
            "h100-sxm", "llama-3.1-8b", B=1, S=context, dtypes="bf16", calibration="trtllm"
        )

    for context, beyond in ((131_072, None), (131_073, "sizes")):
        (attention,) = (each for each in found(context).terms if each["group"] == "attention")
        assert attention["estimate_extrapolated"] == beyond
        screen = " ".join(str(found(context)).split())
        assert ("bf16; attention, " in screen) == bool(beyond)
    split: dict[str, Any] = {
        "sharding": "contracting/all-reduce",
        "shards": 8,
        "calibration": ["trtllm", "nccl"],
    }
    for batch, beyond in ((2**14, None), (2**16, "sizes")):
        row = rooflines.explain("h100-sxm", (batch, 1024 * 8, 16384), "bf16", **split).row
        assert row["estimate_bound"] == "network"
        assert row["estimate_extrapolated"] == beyond
