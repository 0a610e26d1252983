"""Timings made from known numbers, without the package's formulas."""

import math

import polars as pl

PEAK, BANDWIDTH = 989e12, 3350e9
"""h100-sxm in bf16, as its data sheet has it [FLOP/s], [byte/s]."""

SIZES = (1024, 2048, 4096, 8192, 16384)
BATCHES = (1, 8, 32, 128, 256, 512, 1024, 2048, 4096, 8192)


FORMATS = {
    "bf16": ("bf16", "bf16", "bf16", "bf16"),
    "bf16-out-fp32": ("bf16", "bf16", "fp32", "bf16"),
    "w8a16": ("bf16", "int8", "bf16", "bf16"),
    "w4a16": ("bf16", "int4", "bf16", "bf16"),
    "w-fp8-x-bf16": ("bf16", "fp8", "bf16", "bf16"),
}
"""Dtype combinations of `of_many`: x, w, out and compute."""


def seconds(numbers, B, D, F):  # noqa: N803, letters of sizes
    """The time of a bf16 matmul on an h100-sxm by the form, written out."""
    tile = numbers.get("tile", 1)
    math_s = 2 * math.ceil(B / tile) * tile * D * F / PEAK
    x_s, w_s, out_s = (2 * elements / BANDWIDTH for elements in (B * D, D * F, B * F))
    memory_s = x_s + w_s + out_s
    sustained = math_s / numbers["math"] + numbers.get("sustained", 0) * (math_s - 1e-3)
    mixed = (
        numbers.get("mixed_math", 0) * math_s
        + numbers.get("mixed_memory", 0) * memory_s
        + numbers.get("mixed_activations", 0) * (x_s + out_s)
        + numbers.get("mixed_depth_s", 0) * D
    )
    largest = max(math_s / numbers["math"], sustained, memory_s / numbers["memory"], mixed)
    return numbers["overhead_s"] + numbers.get("activation_passes", 0) * x_s + largest


def timings(numbers, sizes=SIZES, batches=BATCHES, noise=0.0):
    """A table of timings on every size; noise alternates in sign, as a share [1]."""
    rows = [
        {
            "source": "made up",
            "chip": "h100-sxm",
            "software": "mine",
            "dtype_x": "bf16",
            "dtype_w": "bf16",
            "dtype_out": "bf16",
            "compute": "bf16",
            "B": B,
            "D": D,
            "F": F,
            "seconds": seconds(numbers, B, D, F),
        }
        for D in sizes
        for F in sizes
        for B in batches
    ]
    frame = pl.DataFrame(rows).with_row_index("#")
    sign = pl.when(pl.col("#") % 2 == 0).then(1 + noise).otherwise(1 / (1 + noise))
    return frame.with_columns(pl.col("seconds") * sign).drop("#")


def seconds_at(B, place):  # noqa: N803, a letter of sizes
    """The time of a timing of `of_many` on the chip at a place: each chip is slower [s]."""
    return 1e-5 + 2 * B * 4096**2 / (1e14 / (1 + place / 4))


def of_many(chips, softwares, timings):
    """A table of timings in each of `FORMATS`, on scales of their own.

    Args:
        chips: The first one has one timing more than others in the second of `FORMATS`.
        softwares: Each times every chip.
        timings: Timings of each case [1].
    """
    rows = [
        (chip, software, *dtypes, 64 * step, 4096, 4096, seconds_at(64 * step, place))
        for place, chip in enumerate(chips)
        for software in softwares
        for number, dtypes in enumerate(FORMATS.values())
        for step in range(1, 1 + timings + (place == 0 and number == 1))
    ]
    columns = ["chip", "software", "dtype_x", "dtype_w", "dtype_out", "compute", *"BDF", "seconds"]
    return pl.DataFrame(rows, schema=columns, orient="row")
