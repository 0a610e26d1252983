"""Peaks of config/chips.yaml are plausible and fit each other; read without the package."""

from __future__ import annotations

import math
import re

import pytest
from chip_file import (
    CHIPS,
    FORMATS,
    HALF_PRECISION,
    PEAKS,
    PEAKS_AND_VARIANTS,
    each,
    half_precision,
    has_half_precision,
    peak,
    resolved,
)


@each(CHIPS)
def test_units_are_matrix_and_vector(name):
    """A matrix unit with a 16-bit peak, or a note why not; every dtype is a known format."""
    units = CHIPS[name]["units"]
    assert "matrix" in units
    assert set(units) <= {"matrix", "vector"}
    assert {dtype for peaks in units.values() for dtype in peaks} <= FORMATS
    assert has_half_precision(name) or re.search("16|FP4", CHIPS[name]["note"])


@each(HALF_PRECISION)
def test_half_precision_peak_has_the_right_prefix(name):
    """Between 1e12 and 1e16 FLOP/s: a peak in GFLOP/s or EFLOP/s is outside."""
    assert 1e12 <= peak(name, half_precision(name)) <= 1e16


@each(PEAKS_AND_VARIANTS)
def test_every_peak_is_plausible(item):
    """No unit is below 1 TFLOP/s or above the 4.03e16 of the fastest FP4, as printed."""
    assert 1e12 <= item.entry["flops_per_s"] <= 4.03e16


@each([item for item in PEAKS if "printed_with_sparsity" in item.entry])
def test_a_sparse_figure_is_never_the_dense_peak(item):
    assert (
        0.45 * item.entry["printed_with_sparsity"]
        <= item.entry["flops_per_s"]
        <= 0.76 * item.entry["printed_with_sparsity"]
    )


@each([item for item in PEAKS if {"halved", "printed_with_sparsity"} & set(item.entry)])
def test_halved_means_half(item):
    half = item.entry["printed_with_sparsity"] / 2
    if "halved" in item.entry:
        assert item.entry["halved"] is True
        assert item.entry["flops_per_s"] == pytest.approx(half, rel=1e-3)
    else:
        assert item.entry["flops_per_s"] != pytest.approx(half, rel=1e-6)


HOPPER_AND_LATER = [name for name in CHIPS if re.match(r"h[12]00|gh200|g?b[123]00", name)]


@each(HOPPER_AND_LATER)
def test_where_nvidia_prints_sparse_rates_the_print_is_kept(name):
    peaks = CHIPS[name]["units"]["matrix"]
    assert [
        dtype
        for dtype in ("bf16", "fp16", "fp8", "int8")
        if "printed_with_sparsity" not in peaks[dtype]
    ] == []


# Relative to bf16 (or fp16). A sparse figure is off by a factor of two; rounding is within 3 %.
RATIOS: dict[str, set[float]] = {
    "tf32": {0.5},
    "fp16": {1},
    "fp8": {1, 2},
    "int8": {1, 2},
    "mxfp8": {2},
    "mxfp6": {2, 4},
    "mxfp4": {4},
    "nvfp4": {4},
    "int4": {4},
}
UNUSUAL_RATIOS: dict[tuple[str, str], tuple[float, str]] = {
    ("b300", "int8"): (0.0682, "Blackwell Ultra has next to no INT8"),
    ("gb300", "int8"): (0.066, "Blackwell Ultra has next to no INT8"),
    ("b300", "mxfp4"): (6, "Blackwell Ultra has 1.5 times the FP4 of Blackwell"),
    ("b300", "nvfp4"): (6, "Blackwell Ultra has 1.5 times the FP4 of Blackwell"),
    ("gb300", "mxfp4"): (6, "Blackwell Ultra has 1.5 times the FP4 of Blackwell"),
    ("gb300", "nvfp4"): (6, "Blackwell Ultra has 1.5 times the FP4 of Blackwell"),
    ("rtx-4090", "int8"): (4, "GeForce halves bf16 with fp32 accumulation, not INT8"),
    ("rtx-4090", "int4"): (8, "GeForce halves bf16 with fp32 accumulation, not INT4"),
    ("rtx-5090", "int8"): (4, "GeForce halves bf16 with fp32 accumulation, not INT8"),
    ("rtx-5090", "mxfp4"): (8, "GeForce halves bf16 with fp32 accumulation, not FP4"),
    ("rtx-5090", "nvfp4"): (8, "GeForce halves bf16 with fp32 accumulation, not FP4"),
    ("mi250x", "int4"): (1, "CDNA 2 runs INT4 at the rate of INT8"),
    ("trainium1", "tf32"): (1, "NeuronCores run TF32 at the rate of bf16"),
    ("inferentia2", "tf32"): (1, "NeuronCores run TF32 at the rate of bf16"),
    ("trainium2", "tf32"): (1, "NeuronCores run TF32 at the rate of bf16"),
    ("trainium3", "tf32"): (1, "NeuronCores run TF32 at the rate of bf16"),
    ("trainium3", "fp8"): (3.751, "2517 to 671 as printed; nominally 4"),
    ("trainium3", "mxfp8"): (3.751, "2517 to 671 as printed; nominally 4"),
    ("trainium3", "mxfp4"): (3.751, "MXFP4 is turned into MXFP8 first"),
    ("rubin", "fp8"): (4.375, "17.5 to 4 as printed"),
    ("rubin", "mxfp6"): (4.375, "17.5 to 4 as printed"),
    ("rubin", "nvfp4"): (8.75, "35 to 4 as printed"),
    ("mtia-450", "mxfp4"): (6, "21 to 3.5 as printed"),
    ("mtia-500", "mxfp4"): (6, "30 to 5 as printed"),
    ("ascend-950dt", "fp8"): (1.891, "919 to 486 as printed"),
    ("ascend-950dt", "mxfp8"): (1.891, "919 to 486 as printed"),
    ("ascend-950dt", "mxfp4"): (3.669, "1783 to 486 as printed"),
}


@each(
    [
        item
        for item in PEAKS
        if item.path.removeprefix("matrix.") in RATIOS and item.chip in HALF_PRECISION
    ]
)
def test_ratio_to_half_precision_is_a_known_one(item):
    dtype = item.path.removeprefix("matrix.")
    ratio = item.entry["flops_per_s"] / peak(item.chip, half_precision(item.chip))
    if (item.chip, dtype) in UNUSUAL_RATIOS:
        assert ratio == pytest.approx(UNUSUAL_RATIOS[item.chip, dtype][0], rel=3e-3)
    else:
        assert any(math.isclose(ratio, usual, rel_tol=0.03) for usual in RATIOS[dtype]), ratio


@each(UNUSUAL_RATIOS)
def test_an_unusual_ratio_is_one(name, dtype):
    ratio = peak(name, dtype) / peak(name, half_precision(name))
    assert not any(math.isclose(ratio, usual, rel_tol=0.03) for usual in RATIOS[dtype])


@each([item for item in PEAKS if item.path in {"matrix.fp32", "matrix.fp64"}])
def test_wide_formats_are_slower(item):
    assert item.entry["flops_per_s"] <= 0.275 * peak(item.chip, half_precision(item.chip))


@each([item for item in PEAKS if item.path in {"matrix.mxfp4", "matrix.mxfp8"}])
def test_block_scaled_formats_run_at_the_rate_of_their_elements(item):
    same_rate = {"mxfp4": "nvfp4", "mxfp8": "fp8"}[item.path.removeprefix("matrix.")]
    vendor = CHIPS[item.chip]["vendor"]
    if same_rate == "fp8" or vendor == "NVIDIA":
        assert item.entry["flops_per_s"] == peak(item.chip, same_rate)
    else:
        assert "nvfp4" not in CHIPS[item.chip]["units"]["matrix"], "NVFP4 is NVIDIA's format"


@each([item for item in PEAKS_AND_VARIANTS if item.path.startswith("vector.")])
def test_the_vector_unit_is_no_faster_than_the_matrix_unit(item):
    dtype = item.path.removeprefix("vector.")
    peaks = resolved(item.chip)["units"]["matrix"]
    widest = peaks.get(half_precision(item.chip)) or min(
        peaks.values(), key=lambda one: one["flops_per_s"]
    )
    bound = peaks.get(dtype, widest)["flops_per_s"]
    assert item.entry["flops_per_s"] <= bound


SAME_SILICON = [
    ("h100-sxm", "h200-sxm"),
    ("h100-sxm", "gh200-96gb"),
    ("h100-sxm", "gh200-144gb"),
    ("h100-nvl", "h200-nvl"),
    ("a100-sxm-80gb", "a100-sxm-40gb"),
    ("a100-sxm-80gb", "a100-pcie-80gb"),
    ("a100-sxm-80gb", "a100-pcie-40gb"),
    ("mi300x", "mi325x"),
    ("trainium1", "inferentia2"),
]


@each(SAME_SILICON)
def test_the_same_silicon_has_the_same_peaks(one, other):
    pairs = [
        (unit, dtype)
        for unit, peaks in CHIPS[other]["units"].items()
        for dtype in peaks
        if dtype in CHIPS[one]["units"][unit]
    ]
    assert len(pairs) >= 6
    assert [peak(one, dtype, unit) for unit, dtype in pairs] == [
        peak(other, dtype, unit) for unit, dtype in pairs
    ]
