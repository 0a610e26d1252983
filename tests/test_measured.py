"""Timings beside the model: bounds, estimates, and why a time is below its bound."""

import random
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from catalogues import shipped

import rooflines
from rooflines.basics.errors import RooflinesError
from rooflines.fits.timings import Timings
from rooflines.loading import load_config
from rooflines.measured.below import below_by_collection
from rooflines.measured.catalogues import in_catalogues
from rooflines.measured.join import BOOST_CLOCK, IN_CACHE, PARTLY, UNEXPLAINED, join_timings
from rooflines.measured.timing_summary import error_columns, summary

STORED = ("dtype_x", "dtype_w", "dtype_out", "compute")

Row = tuple[str, int, int, int, float]
"""Chip, B, D, F, seconds."""


def timed(rows, dtype="bf16", software=None):
    frame = pl.DataFrame(rows, schema=["chip", *"BDF", "seconds"], orient="row")
    stored = dict.fromkeys(STORED, pl.lit(dtype))
    return Timings("t.csv", frame.with_columns(**stored, software=pl.lit(software, pl.String)))


def bf16(rows, software=None, **catalogues):
    """Timings in bf16, joined."""
    return join_timings(timed(rows, software=software), replace(shipped(), **catalogues))


def test_a_timing_has_the_bound_of_its_row():
    """An H100 in bf16: 989 TFLOP/s, 3.35 TB/s, worked by hand."""
    found = bf16([("h100-sxm", 1024, 8192, 8192, 2e-4)]).frame.row(0, named=True)
    flops = 2 * 1024 * 8192 * 8192
    moved = 2 * (1024 * 8192 + 8192 * 8192 + 1024 * 8192)
    assert (found["flops"], found["memory_bytes"]) == (flops, moved)
    assert found["t_lower_s"] == pytest.approx(flops / 989e12)
    assert found["ratio_lower"] == pytest.approx(2e-4 / (flops / 989e12))
    assert found["bound"] == "compute"
    assert found["dtypes"] == "bf16"
    assert found["region"] == "B 257 to 1,024"
    assert found["fits_cache"] is False
    assert found["reason"] is None
    assert found["t_estimate_s"] is None
    assert found["calibration"] is None


SMALL, LARGE = (1, 4096, 4096), (1, 8192, 4096)
"""Sizes whose operands take 33.6 MB and 67.1 MB, of a last-level cache of 52.4 MB."""


@pytest.mark.parametrize(
    ("chip", "sizes", "seconds", "bound", "reason"),
    [
        ("h100-sxm", SMALL, 33570816 / 3.35e12 * 1.001, "memory", None),
        ("h100-sxm", SMALL, 33570816 / 3.35e12 * 0.999, "memory", "in cache"),
        ("h100-sxm", SMALL, 4e-6, "memory", "in cache"),
        ("h100-sxm", LARGE, 67133440 / 3.35e12 * 1.001, "memory", None),
        ("h100-sxm", LARGE, 67133440 / 3.35e12 * 0.999, "memory", "partly in cache"),
        ("h100-sxm", LARGE, (67133440 - 50 * 2**20) / 3.35e12 * 1.001, "memory", "partly in cache"),
        ("h100-sxm", LARGE, (67133440 - 50 * 2**20) / 3.35e12 * 0.999, "memory", "unexplained"),
        ("h100-sxm", (4096, 4096, 4096), 2 * 4096**3 / 989e12 * 0.999, "compute", "unexplained"),
        ("rtx-4090", (4096, 4096, 4096), 2 * 4096**3 / 165.2e12 * 0.999, "compute", "boost clock"),
        ("rtx-4090", (4096, 4096, 4096), 2 * 4096**3 / 165.2e12 * 1.001, "compute", None),
        ("h100-nvl", (1, 64, 64), 1e-9, "memory", "unexplained"),  # no cache in its entry
    ],
)
def test_a_time_below_the_bound_has_a_reason(chip, sizes, seconds, bound, reason):
    usual = [(chip, 8192, 8192, 8192, 2 * 8192**3 / 1e14)] * 3  # tells the unit of time
    found = bf16([(chip, *sizes, seconds), *usual]).frame.row(0, named=True)
    assert (found["bound"], found["reason"]) == (bound, reason)


def test_rows_are_those_of_explain():
    """Bounds of every chip, and estimates of those with a calibration."""
    chips = ("h100-sxm", "tpu-v5e", "h200-sxm", "mi300x")
    drawn = [
        (random.choice(chips), tuple(random.randint(1, 2**14) for _ in range(3))) for _ in range(25)
    ]
    fits = {chip: "trtllm" if chip in ("h100-sxm", "h200-sxm") else None for chip in chips}
    explained = [
        rooflines.explain(chip, of, "bf16", calibration=fits[chip]).row for chip, of in drawn
    ]
    rows = [
        (chip, *sizes, 2 * row["t_lower_s"])
        for (chip, sizes), row in zip(drawn, explained, strict=True)
    ]
    estimates = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s")
    frame = bf16(rows, software="trtllm").frame
    for found, row in zip(frame.iter_rows(named=True), explained, strict=True):
        for name in ("flops", "memory_bytes", "memory_intensity", "t_lower_s", *estimates):
            expected = row[name] and pytest.approx(row[name], rel=1e-13)
            assert found[name] == expected, (row["chip"], name)
        assert found["bound"] == row["bound"], row["chip"]


def test_the_order_of_timings_is_kept():
    chips = ["h100-sxm", "b200", "h100-sxm", "a100-sxm-80gb"]
    frame = bf16([(chip, 2048, 4096, 4096, 1e-3) for chip in chips], software="trtllm").frame
    assert frame["chip"].to_list() == chips
    keys = ["h100-sxm/trtllm", "b200/trtllm", "h100-sxm/trtllm", None]
    assert frame["calibration"].to_list() == keys


def test_the_calibration_of_a_chip_stands_in_and_an_efficiency_does_not_enter():
    chips = load_config().chips
    names = ("h100-sxm-calibrated", "b100-at-82-percent")
    found = bf16([(name, 8192, 8192, 8192, 2e-3) for name in names], chips=chips)
    row, slow = found.frame.to_dicts()
    assert row["calibration"] == "h100-sxm-calibrated"
    assert row["t_estimate_s"] == pytest.approx(2 * 8192**3 / 989e12 / 0.803 + 3e-6)
    assert row["t_estimate_p10_s"] is None
    peak = chips["b100"].units["matrix"]["bf16"].flops_per_s
    assert slow["t_lower_s"] == pytest.approx(2 * 8192**3 / peak)


def test_timings_without_a_row_are_counted():
    rows = [("v100-sxm2-32gb", 16, 64, 64, 1e-5), ("h100-sxm", 16, 64, 64, 1e-5)]
    found = bf16([rows[0], *rows])
    assert found.frame["chip"].to_list() == ["h100-sxm"]
    assert found.skipped.select("chip", "dtypes", "lacks", "reason", "timings").rows() == [
        ("v100-sxm2-32gb", "bf16", "row", "no bf16 peak of its matrix unit", 2),
        ("h100-sxm", "bf16", "estimate", "no software is named", 1),
    ]
    message = r"t\.csv has no timing that the model has a row for: v100-sxm2-32gb has no bf16 peak"
    with pytest.raises(RooflinesError, match=message):
        bf16(rows[:1])


@pytest.mark.parametrize(
    ("chips", "dtype", "where", "told"),
    [
        (["h100", "b20"], "bf16", "chip", "has 'b20', 'h100', which is no chip."),
        (["h100-sxm"], "bfloat16", "dtype_x", "has 'bfloat16', which is no dtype."),
    ],
)
def test_timings_of_unknown_chips_or_dtypes_alone_are_refused(chips, dtype, where, told):
    with pytest.raises(RooflinesError) as raised:
        in_catalogues(timed([(chip, 16, 16, 16, 1e-5) for chip in chips], dtype), shipped())
    assert f"{where} {told}" in str(raised.value)
    assert "h100-sxm" in str(raised.value) or where == "dtype_x"


def test_a_timing_of_an_unknown_chip_and_dtype_is_left_out_once():
    both = [
        timed([(chip, 16, 16, 16, 1e-5) for chip in ("h100-sxm", "h100", "h100")], dtype).frame
        for dtype in ("bf16", "bfloat16")
    ]
    found = in_catalogues(Timings("t.csv", pl.concat(both)), shipped())
    assert found.frame.height == 1
    assert [*found.left_out.values()] == [4, 1]


@pytest.mark.parametrize(("factor", "fix"), [(1e3, "1e-3"), (1e6, "1e-6"), (1e-3, "1e3")])
def test_a_slip_of_units_is_told(factor, fix):
    right: list[Row] = [("b200", 2**n, 4096, 4096, 1e-3) for n in range(8)]
    rows: list[Row] = [
        ("h100-sxm", B, 8192, 8192, 1.3 * 2 * B * 8192**2 / 989e12 * factor)
        for B in (512, 1024, 2048, 4096)
    ]
    with pytest.raises(RooflinesError, match=r"seconds of h100-sxm is .* times the bound") as e:
        bf16([*right, *rows])
    assert f"times {fix}" in str(e.value)


def collective(name, shards, size, seconds, chip="h100-sxm"):
    """One timing of a collective, joined."""
    row = {"chip": chip, "collective": name, "shards": shards, "bytes": size}
    frame = pl.DataFrame([{**row, "seconds": seconds, "software": "nccl"}])
    return join_timings(Timings("t.csv", frame), shipped())


@pytest.mark.parametrize(
    ("name", "shards", "share"),
    [("all-reduce", 8, 2 * 7 / 8), ("all-gather", 4, 3 / 4), ("reduce-scatter", 2, 1 / 2)],
)
def test_a_collective_has_its_bound(name, shards, share):
    """18 links of 25 GB/s; for a small payload the latency of the hops, 0.6 µs a pass."""
    row = collective(name, shards, 2**30, 1e-2).frame.row(0, named=True)
    assert row["network_bytes"] == share * 2**30
    assert row["t_lower_s"] == pytest.approx(share * 2**30 / 450e9)
    assert (row["bound"], row["reason"]) == ("network", None)
    passes = 2 if name == "all-reduce" else 1
    small = collective(name, shards, 512, 1e-5).frame.row(0, named=True)
    assert small["t_lower_s"] == pytest.approx(passes * 0.6e-6)


@pytest.mark.parametrize(
    ("chip", "name", "shards", "sent", "reason"),
    [
        ("h100-sxm", "all-reduce", 8, 2 * 7 / 8 * 1.001, None),
        ("h100-sxm", "all-reduce", 8, 2 * 7 / 8 * 0.999, "reduced in the switch"),
        ("h100-sxm", "all-reduce", 8, 9 / 8 * 1.001, "reduced in the switch"),
        ("h100-sxm", "all-reduce", 8, 9 / 8 * 0.999, "unexplained"),
        ("h100-sxm", "all-reduce", 4, 5 / 4 * 1.001, "reduced in the switch"),
        ("h100-sxm", "all-reduce", 4, 5 / 4 * 0.999, "unexplained"),
        ("h100-sxm", "all-reduce", 2, 0.999, "unexplained"),  # the switch takes more than a ring
        ("h100-sxm", "all-gather", 8, 7 / 8 * 0.999, "unexplained"),
        ("a100-sxm-80gb", "all-reduce", 8, 2 * 7 / 8 * 0.999, "unexplained"),
    ],
)
def test_a_collective_below_its_bound_has_a_reason(chip, name, shards, sent, reason):
    """A chip sends N + 1 parts of N to a switch that adds up, and 2 (N - 1) around a ring."""
    network = shipped().chips[chip].networks["nvlink"]
    seconds = sent * 2**30 / (network.bytes_per_s * network.links)
    assert collective(name, shards, 2**30, seconds, chip).frame["reason"].item() == reason


def routed(source, distribution, seconds):
    """One timing of the experts of DeepSeek-V3 for 128 tokens on an H100, in fp8."""
    sizes = {"tokens": 128, "D": 7168, "Fe": 2048, "k": 8, "E": 256, "tp": 1, "ep": 1}
    names = {"chip": "h100-sxm", "software": source.split("/")[0], "source": source}
    kept = {"experts": "fp8", "compute": "fp8", "experts_fit": "fp8", "matrices": 3}
    return {**names, **sizes, **kept, "distribution": distribution, "seconds": seconds}


MEAN_S, STRICT_S = 11_109_922_903.757 / 3.35e12, 355_991_552 / 3.35e12
"""Bounds of these experts, memory: with rows of 8 experts a token; of the kernel under `same`."""


def test_timings_below_the_bound_are_listed_by_collection():
    rows = [
        routed("one/1", "power_law", MEAN_S * 0.999),
        routed("one/1", "power_law", STRICT_S * 1.001),
        routed("one/1", "power_law", MEAN_S * 1.001),
        routed("one/1", "balanced", MEAN_S * 0.98),
        routed("two/3", "balanced", MEAN_S * 1.96),
        routed("two/3", "power_law", STRICT_S * 0.999),
    ]
    joined = join_timings(Timings("t.csv", pl.DataFrame(rows)), shipped())
    skewed, even = "skewed routing", "unexplained"
    assert joined.frame["reason"].to_list() == [skewed, skewed, None, even, None, even]
    one, two = below_by_collection(joined).to_dicts()
    assert (one["collection"], one["timings"], one["below"], one["below_strict"]) == (
        "one/1",
        *(4, 3, 0),
    )
    assert one["reason"] == f"2 {skewed}, 1 {even}"
    assert one["least_ratio"] == pytest.approx(STRICT_S * 1.001 / MEAN_S)
    assert (one["elsewhere"], one["above_elsewhere"]) == (3, 1)
    assert (two["below"], two["below_strict"], two["reason"]) == (1, 1, f"1 {even}")
    assert two["ratio_elsewhere"] == pytest.approx(MEAN_S / STRICT_S)


def test_the_strict_bound_of_experts_is_the_kernel_s():
    (row,) = join_timings(
        Timings("t.csv", pl.DataFrame([routed("one/1", "balanced", 4e-3)])), shipped()
    ).frame.to_dicts()
    sizes: dict[str, Any] = {"B": 128, "D": 7168, "F": 2048, "E": 256, "k": 8}
    kernel = rooflines.kernel("h100", "experts", dtypes="fp8", routing="same", **sizes)
    assert row["t_strict_s"] == pytest.approx(kernel.t_lower_s, rel=1e-13)
    assert row["t_lower_s"] == pytest.approx(MEAN_S, rel=1e-10)


def test_the_estimate_of_a_collective():
    numbers = shipped().fits.collectives["gb200/nccl"]["all-gather"]
    network = shipped().chips["gb200"].networks["nvlink"]
    for size in (2**12, 2**28):
        row = collective("all-gather", 4, size, 9e-5, "gb200").frame.row(0, named=True)
        wire = 3 / 4 * size / (network.bytes_per_s * network.links)
        fast = numbers.overhead_s + wire / numbers.low_latency
        bulk = numbers.overhead_s + numbers.bulk_overhead_s + wire / numbers.bulk
        expected = min(fast, bulk) + 3 * numbers.hop_s
        assert row["t_estimate_s"] == pytest.approx(expected)
        assert row["calibration"] == "gb200/nccl"


def test_more_chips_than_an_interconnect_joins_are_skipped():
    with pytest.raises(RooflinesError, match="8 chips at most on one nvlink"):
        collective("all-gather", 16, 2**20, 1e-4)
    with pytest.raises(RooflinesError, match="h100-sxm has no collective on one chip"):
        collective("all-gather", 1, 2**30, 1e-2)


def sites(count):
    """As many sites, D and F."""
    return [(1024 + 64 * index, 2048) for index in range(count)]


def test_a_summary_counts_timings_partly_in_cache_as_those_in_cache():
    reasons = [None, None, None, IN_CACHE, PARTLY, PARTLY, BOOST_CLOCK, UNEXPLAINED]
    texts = {"reason": reasons, "calibration": [None] * 8}
    numbers = ("bare", "error", "seconds", "ratio_lower", "ratio_estimate")
    estimates = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s")
    frame = pl.DataFrame({**texts, **dict.fromkeys((*numbers, *estimates), [1.0] * 8)})
    (row,) = frame.select(**error_columns()).to_dicts()
    assert (row["below_percent"], row["below_in_cache_percent"]) == (62.5, 37.5)


def test_the_summary_counts_and_judges():
    rows: list[Row] = []
    for index, (d, f) in enumerate(sites(8)):
        factor = 0.5 if index < 2 else 2.0
        rows.append(("h100-sxm", 1, d, f, factor * 2 * (d + d * f + f) / 3.35e12))
        rows.append(("h100-sxm", 8192, d, f, 4 * 2 * 8192 * d * f / 989e12))
    found = summary(bf16(rows).frame, shipped().fits, never_fitted=True)
    assert set(found["split"]) == {"held_out"}
    by_region = {row["region"]: row for row in found.to_dicts()}
    assert list(by_region) == ["all", "compute-bound", "memory-bound", "B 1 to 16", "B from 1,025"]
    assert [row["n"] for row in by_region.values()] == [16, 8, 8, 8, 8]
    assert by_region["all"]["below_percent"] == pytest.approx(12.5)
    assert by_region["all"]["below_in_cache_percent"] == pytest.approx(12.5)
    assert by_region["memory-bound"]["below_percent"] == pytest.approx(25)
    assert by_region["compute-bound"]["bare_median"] == pytest.approx(0.75)
    assert by_region["memory-bound"]["bare_median"] == pytest.approx(0.5)
    assert by_region["memory-bound"]["bare_mean"] == pytest.approx((6 * 0.5 + 2 * 1.0) / 8)
    ratios = [by_region["memory-bound"][f"ratio_lower_{of}"] for of in ("p10", "median", "p90")]
    assert ratios == pytest.approx([0.5, 2, 2])
    for name in ("estimate_median", "estimate_p90", "band_coverage", "calibration"):
        assert by_region["all"][name] is None


def test_the_summary_splits_by_site():
    rows: list[Row] = [("h100-sxm", B, D, F, 1e-3) for D, F in sites(60) for B in (4096, 8192)]
    found = summary(bf16(rows, software="trtllm").frame, shipped().fits).filter(region="all")
    counts = dict(found.select("split", "n").iter_rows())
    assert counts.keys() == {"fit", "sites"}
    assert counts["fit"] + counts["sites"] == 120
    assert 10 <= counts["sites"] <= 50
    assert counts["sites"] % 2 == 0
    assert set(found["calibration"]) == {"h100-sxm/trtllm"}


def test_the_summary_splits_as_the_fit_did():
    rows: list[Row] = [("h100-sxm", B, D, F, 1e-3) for D, F in sites(60) for B in (4096, 8192)]
    fits = shipped().fits.model_copy(deep=True)
    fits.calibrations["h100-sxm/trtllm"]["bf16"].__dict__["held_out_below"] = 1
    found = summary(bf16(rows, software="trtllm").frame, fits).filter(region="all")
    assert found.select("split", "n").rows() == [("sites", 120)]


def test_the_summary_knows_bands():
    sizes = [(4096, 4096, 4096 + 64 * index) for index in range(4)]
    at: list[Row] = [("h100-sxm", *each, 1e-3) for each in sizes]
    estimates = bf16(at, software="trtllm").frame["t_estimate_s"].to_list()
    rows: list[Row] = [
        ("h100-sxm", *each, time * factor)
        for each, time, factor in zip(sizes, estimates, (1, 1, 0.5, 2), strict=True)
    ]
    row = summary(bf16(rows, software="trtllm").frame, shipped().fits, never_fitted=True).row(
        0, named=True
    )
    assert row["band_coverage"] == pytest.approx(0.5)
    assert row["estimate_median"] == pytest.approx(0.25)
    assert row["estimate_mean"] == pytest.approx(0.375)
    assert row["estimate_p90"] == pytest.approx(0.85)  # 0.7 of the way from 0.5 to 1
    ratios = [row[f"ratio_estimate_{of}"] for of in ("p10", "median", "p90")]
    assert ratios == pytest.approx([0.65, 1, 1.7])


def test_the_summary_of_collectives_has_no_regions():
    frames = [collective("all-gather", chips, 2**30, 1e-2).frame for chips in (8, 2)]
    found = summary(pl.concat(frames), shipped().fits, never_fitted=True)
    assert found.select("collective", "dtypes", "shards", "region", "n").rows() == [
        ("all-gather", None, None, "all", 2),
        ("all-gather", None, 2, "all", 1),
        ("all-gather", None, 8, "all", 1),
    ]
