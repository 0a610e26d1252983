"""Worked values: the outputs of the workflow have them to the printed digits.

The first group is printed in the chapter "All About Rooflines" of "How to Scale Your Model"; the
second was worked out by hand with the same formulas.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
from written import Written, run_cases

import rooflines
from rooflines.model.columns import METRICS

SWEEPS = {"v5e-82": "v5e", "v5e-243": "v5e-243", "h100-sxm": "h100"}


@pytest.fixture(scope="session", name="files")
def _files(once):
    return Written(once("worked-values", run_cases) / "results")


def ridge(row):
    """Return the critical intensity of the chip [FLOP/byte], from the work and times of a row."""
    return float(row["flops"] / row["t_math_s"] / (row["memory_bytes"] / row["t_memory_s"]))


# ---------------------------------------------------------------- printed in the book


@pytest.mark.parametrize(("chip", "milliseconds"), [("h100-sxm", "1.011"), ("v6e-91", "1.099")])
def test_1e12_flops_take_about_a_millisecond(files, chip, milliseconds):
    """1e12 FLOP take 1.011 ms on an H100 and 1.099 ms on a TPU v6e."""
    row = files.row("time-of-1e12-flops", chip=chip)
    assert row["flops"] == 1e12
    assert f"{row['t_math_s'] * 1e3:.3f}" == milliseconds


@pytest.mark.parametrize(
    ("chip", "dtypes", "value"),
    [("v5e-82", "bf16", "240.24"), ("v5e-81", "bf16", "243.21"), ("v5e-81", "int8", "486.42")],
)
def test_critical_intensity_of_tpu_v5e(files, chip, dtypes, value):
    assert f"{ridge(files.row('v5e', chip=chip, dtypes=dtypes, D=4096)):.2f}" == value


@pytest.mark.parametrize(
    ("dtypes", "chip", "rule"),
    [
        ("bf16", "v5e-82", "240.24"),
        ("int8", "v5e-81", "243.21"),
        ("w8a16", "v5e-82", "120.12"),
        ("w8a16", "v5e-81", "121.60"),
    ],
)
def test_rule_of_thumb_for_b(files, dtypes, chip, rule):
    assert (
        f"{files.threshold('v5e', dtypes=dtypes, chip=chip, axis='B', D=4096)['critical_rule']:.2f}"
        == rule
    )


@pytest.mark.parametrize(
    ("chip", "dtypes", "size", "value"),
    [
        ("v5e-82", "w8a16", 4096, ("136.0857", 137)),
        ("v5e-82", "w8a16", 1024, ("226.3148", 227)),
        ("v5e-243", "w8a16", 8000, ("129.3585", 130)),
        ("v5e-243", "w8a16", 16000, ("125.3062", 126)),
        ("v5e-82", "bf16", 4096, ("272.1714", 273)),
        ("v5e-82", "bf16", 1024, ("452.6297", 453)),
    ],
)
def test_critical_b_counts_every_byte(files, chip, dtypes, size, value):
    row = files.threshold(SWEEPS[chip], dtypes=dtypes, chip=chip, axis="B", D=size, F=size)
    assert (f"{row['critical_exact']:.4f}", row["critical"]) == value
    assert row["critical_memory"] == row["critical"]
    assert row["critical"] > row["critical_rule"]
    assert row["limit"] == "memory"


def test_a_small_matrix_with_int8_weights_is_never_compute_bound(files):
    row = files.threshold("v5e", dtypes="w8a16", chip="v5e-82", axis="B", D=128)
    assert (row["critical"], row["critical_exact"], row["critical_memory"]) == (None, None, None)
    assert row["limit"] == "memory"
    assert row["limit_intensity"] == 64


def test_two_chips_are_compute_bound_from_d_8756_on(files):
    row = files.threshold("two-chips", axis="D")
    assert f"{row['critical_exact']:.2f}" == "8755.56"
    assert (row["critical"], row["critical_network"]) == (8756, 8756)
    assert row["limit"] == "network"
    assert files.row("two-chips-around", D=8755)["bound"] == "network"
    assert files.row("two-chips-around", D=8756)["bound"] == "compute"


@pytest.mark.parametrize("axis", ["B", "D", "F"])
def test_a_matrix_for_every_example_is_never_compute_bound(files, axis):
    thresholds = files.thresholds().filter(sweep="per-example", axis=axis)
    assert thresholds.height >= 1
    assert thresholds["critical"].null_count() == thresholds.height
    assert set(thresholds["limit"]) == {"memory"}


def test_a_matrix_for_every_example_has_an_intensity_of_two(files):
    intensity = files.table("per-example")["memory_intensity"].to_list()
    assert [f"{value:.4f}" for value in intensity] == ["2.0000", "2.0000"]
    assert max(intensity) < 2


@pytest.mark.parametrize("size", [1, 2, 3, 10, 1000, 2**20, 10**9])
def test_intensity_of_a_dot_product(files, size):
    assert files.row("dot", D=size)["memory_intensity"] == pytest.approx(
        (2 * size - 1) / (4 * size + 2), rel=1e-15
    )


@pytest.mark.parametrize(
    ("chip", "value"), [("h100-1e15", "298.5"), ("h100-sxm", "295.2"), ("h100-nvl-835", "214.1")]
)
def test_critical_intensity_of_h100(files, chip, value):
    """An H100 SXM has 298.5 FLOP/byte with the rounded 1e15, 295.2 with 9.89e14; an NVL 214.1."""
    assert f"{ridge(files.row('ridges', chip=chip)):.1f}" == value


def test_critical_intensity_of_a_vector_unit(files):
    """The vector unit of a TPU v5p has 2.5 FLOP/byte, and a dot product never reaches it."""
    assert f"{ridge(files.row('dot', D=1000)):.1f}" == "2.5"
    assert files.threshold("dot", axis="D")["critical"] is None
    assert files.threshold("dot", axis="D")["limit_intensity"] == 0.5


def test_tokens_of_a_replica(files):
    assert files.table("tokens")["B"].to_list() == [16384]


# ---------------------------------------------------------------- worked out by the same formulas


def test_the_reference_case(files):
    row = files.row("h100", dtypes="bf16", B=128, D=8192)
    assert f"{row['flops']:,.0f}" == "17,179,869,184"
    assert f"{row['memory_bytes']:,.0f}" == "138,412,032"
    microseconds = {
        name: f"{row[name] * 1e6:.3f}"
        for name in ("t_math_s", "t_memory_s", "t_lower_s", "t_upper_s")
    }
    assert microseconds == {
        "t_math_s": "17.371",
        "t_memory_s": "41.317",
        "t_lower_s": "41.317",
        "t_upper_s": "58.688",
    }
    assert row["bound"] == "memory"
    assert row["footprint_bytes"] == row["memory_bytes"]
    assert row["fits"]
    assert f"{row['memory_intensity']:.2f}" == "124.12"
    assert f"{row['attained_flops_per_s'] / 1e12:.1f}" == "415.8"
    assert f"{row['utilization']:.4f}" == "0.4204"
    assert row["t_estimate_s"] is None


@pytest.mark.parametrize(
    ("chip", "dtypes", "size", "value"),
    [
        ("h100-sxm", "bf16", 8192, ("318.2", 319)),
        ("h100-sxm", "bf16", 1024, ("697.3", 698)),
        ("h100-sxm", "bf16", 512, (None, None)),
        ("h100-sxm", "w8a16", 8192, ("159.1", 160)),
        ("h100-sxm", "w4a16", 8192, ("79.5", 80)),
        ("h100-sxm", "fp8-out-bf16", 8192, ("331.2", 332)),
        ("v5e-82", "int8", 8192, ("255.2", 256)),
        ("v5e-82", "w8a8", 8192, ("263.4", 264)),
    ],
)
def test_critical_b_by_dtypes(files, chip, dtypes, size, value):
    row = files.threshold(SWEEPS[chip], chip=chip, dtypes=dtypes, axis="B", D=size)
    exact = None if row["critical_exact"] is None else f"{row['critical_exact']:.1f}"
    assert (exact, row["critical"]) == value


@pytest.mark.parametrize(("shards", "sent"), [(2, 2_097_152), (4, 3_145_728), (8, 3_670_016)])
def test_bytes_of_an_all_reduce(files, shards, sent):
    assert files.row("all-reduce", shards=shards)["network_bytes"] == sent


def test_time_of_an_all_gather(files):
    """A bf16 [2048, 8192] on four TPU v5e in a line: 3/4 * 33,554,432 / 4.5e10 s = 559.2 us."""
    row = files.row("all-gather", chip="v5e-82")
    assert row["network_bytes"] == 3 / 4 * 33_554_432
    assert f"{row['t_network_s'] * 1e6:.1f}" == "559.2"
    assert row["network_intensity"] == pytest.approx(row["flops"] / (3 / 4 * 33_554_432), rel=1e-12)


@pytest.mark.parametrize(
    ("sweep", "keys", "microseconds"),
    [
        ("all-gather", {"chip": "v5e-82"}, "559.24"),
        ("all-gather", {"chip": "v5e-ring-of-4"}, "279.62"),
        ("all-gather-on-axes", {"axes": "4", "D": 1024}, "17.48"),
        ("all-gather-on-axes", {"axes": "4x4", "D": 4096}, "43.69"),
        ("all-gather-on-a-switch", {}, "65.24"),
        ("hops-of-a-ring", {}, "8.00"),
    ],
)
def test_time_of_a_collective(files, sweep, keys, microseconds):
    """(N-1)/N of the payload over the links of all axes; the links double where an axis closes.

    A tiny payload takes the time of its hops: twice 4 of 1 us around a ring of 8.
    """
    assert f"{files.row(sweep, **keys)['t_network_s'] * 1e6:.2f}" == microseconds


def test_a_collective_on_two_levels(files):
    row = files.row("all-reduce-on-two-levels", shards=16)
    assert row["network"] == "nvlink+infiniband"
    inner, outer = row["network_inner_bytes"], row["network_outer_bytes"]
    assert (inner, outer, row["network_bytes"]) == (3_670_016, 262_144, 3_932_160)
    times = [f"{bytes_ / rate * 1e6:.3f}" for bytes_, rate in ((inner, 4.5e11), (outer, 5e10))]
    assert times == ["8.156", "5.243"]
    assert f"{row['t_network_s'] * 1e6:.3f}" == "8.156"


SCANNED = {
    "batch/gather-w": ("B", {"B": 32}, {"D": 512, "F": 512}, 2e10, 0),
    "contracting/all-reduce": ("D", {"D": 24, "F": 128}, {"B": 64, "F": 256}, 1.2e11, 0),
    "contracting/reduce-scatter": ("F", {"D": 64, "F": 48}, {"B": 512, "D": 512}, 1e12, 2e-5),
    "column/gather-x": ("B", {"B": 16}, {"D": 640, "F": 640}, 1e10, 0),
}
"""By sharding: the axis solved for, tiles, the other sizes, bytes/s and latency of the network."""

SIZES_SCANNED = 6000


@pytest.mark.parametrize("sharding", SCANNED)
def test_a_threshold_along_tiles_is_that_of_a_scan(sharding):
    """Every size from `critical` on is compute-bound, and the one before is not.

    Without `critical` the sizes at the end are not, even if the first ones are: math goes in steps
    of whole tiles, and the network in elements.
    """
    axis, tile, others, network, latency = SCANNED[sharding]
    sweep = {
        "operation": "matmul",
        "grid": {axis: {"from": 1, "to": SIZES_SCANNED, "step": 1}, **others},
        "dtypes": ["bf16"],
        "chips": ["scanned"],
        "sharding": sharding,
        "shards": [3],
        "tile": tile,
        "flops": "leading",
        "thresholds": [axis],
    }
    chip = {
        "base": "h100-sxm",
        "units.matrix.bf16.flops_per_s": 2e13,
        "networks.nvlink.bytes_per_s": network / 18,
        "networks.nvlink.hop_latency_s": latency,
        "source": "this test",
    }
    config = rooflines.load_config({"sweeps": {"s": sweep}, "chips": {"scanned": chip}})
    rows = rooflines.rows(config, "s").select(axis, "bound").collect().sort(axis)
    last = max(rows.filter(rows["bound"] != "compute")[axis].to_list())
    critical = rooflines.thresholds(config)["critical"].item()
    if sharding == "column/gather-x":
        assert rows["bound"][0] == "compute"
        assert (critical, last) == (None, SIZES_SCANNED)
    else:
        assert 1 < critical < SIZES_SCANNED / 2
        assert critical == last + 1


def test_time_of_a_calibrated_chip():
    """The reference case at 90 % of the bandwidth plus 3 us: 3 + 41.317 / 0.9 = 48.908 us."""
    chip = {
        "base": "h100-sxm",
        "calibration.bf16.math": 0.8,
        "calibration.bf16.memory": 0.9,
        "calibration.bf16.overhead_s": 3e-6,
        "source": "this test",
    }
    sweep = {
        "operation": "matmul",
        "grid": {"B": 128, "D": 8192, "F": 8192},
        "dtypes": ["bf16"],
        "chips": ["calibrated"],
    }
    config = rooflines.load_config({"sweeps": {"s": sweep}, "chips": {"calibrated": chip}})
    row = rooflines.rows(config, "s").collect().row(0, named=True)
    assert f"{row['t_estimate_s'] * 1e6:.3f}" == "48.908"
    assert f"{row['t_lower_s'] * 1e6:.3f}" == "41.317"


FITTED = """
calibrations:
  round/mine:
    bf16:
      math: 0.5
      memory: 0.8
      overhead_s: 2.0e-6
      activation_passes: 2
      mixed_math: 1
      mixed_memory: 0.9
      mixed_depth_s: 1.0e-9
      tile: 64
      bands: {mixed: [0.9, 1.1]}
      fitted: {n: 30, median: 0.05, mean: 0.06, p90: 0.1}
      source: made up
      date: '2026-01-01'
"""


def test_padding_of_tiles_is_work_of_no_use():
    chip = {
        "vendor": "Nobody",
        "source": "this test",
        "units": {"matrix": {"bf16": {"flops_per_s": 1e14}}},
        "memory": {"hbm": {"bytes_per_s": 1e16}},
    }
    sweep = {
        "operation": "matmul",
        "grid": {"B": [1, 512, 513], "D": 1000, "F": 1024},
        "tile": {"B": 512, "F": 1024},
        "dtypes": ["bf16"],
        "chips": ["own"],
    }
    rows = rooflines.rows(
        rooflines.load_config({"sweeps": {"s": sweep}, "chips": {"own": chip}}), "s"
    )
    table = rows.select("bound", "flops", "attained_flops_per_s", "utilization").collect()
    padded = 2 * 512 * 1000 * 1024
    assert table["bound"].to_list() == ["compute"] * 3
    assert table["flops"].to_list() == [padded, padded, 2 * padded]
    assert table["utilization"].to_list() == pytest.approx([1 / 512, 1, 513 / 1024], rel=1e-15)
    assert table["attained_flops_per_s"].to_list() == pytest.approx(
        [1e14 / 512, 1e14, 1e14 * 513 / 1024], rel=1e-15
    )


def test_time_of_a_calibrated_software(tmp_path):
    """100 x 1000 x 2000 in bf16 at 100 TFLOP/s and 1 TB/s, in tiles of 64 rows.

    Math of 128 rows: 5.12 us, over 0.5 10.24 us. Memory: 0.2 + 4 + 0.4 MB in 4.6 us, over 0.8
    5.75 us. Mixed: 5.12 + 0.9 * 4.6 + 1 = 10.26 us, the largest. With 2 us and two passes over x,
    0.4 us: 12.66 us. At 65 rows mixed is 5.12 + 0.9 * 4.39 + 1 = 10.07 us, and compute still 10.24
    us; at 64 rows it is 5.12 us, and mixed 2.56 + 0.9 * 4.384 + 1 = 7.51 us.

    The plateau is 84 ns a row: 80 of math and 4 of x. 256 rows take 2 + 20.48 us of math and 4 ns a
    row: 90 % of the plateau from (2 + 20.48) us / (84 / 0.9 - 4) ns = 251.6 rows on.
    """
    file = tmp_path / "mine.yaml"
    file.write_text(FITTED)
    chip = {
        "name": "Round",
        "vendor": "Nobody",
        "source": "this test",
        "units": {"matrix": {"bf16": {"flops_per_s": 1e14}}},
        "memory": {"hbm": {"bytes_per_s": 1e12}},
    }
    sweep = {
        "operation": "matmul",
        "grid": {"B": 100, "D": 1000, "F": 2000},
        "dtypes": ["bf16"],
        "chips": ["round"],
        "calibration": "mine",
        "thresholds": ["B"],
    }
    config = rooflines.load_config(
        {"sweeps": {"s": sweep}, "chips": {"round": chip}, "calibrations": [str(file)]}
    )
    row = rooflines.rows(config, "s").collect().row(0, named=True)
    assert f"{row['t_estimate_s'] * 1e6:.4f}" == "12.6600"
    assert f"{row['t_estimate_p10_s'] * 1e6:.4f}" == "11.3940"
    assert f"{row['t_estimate_p90_s'] * 1e6:.4f}" == "13.9260"
    assert row["estimate_bound"] == "mixed"
    assert (row["t_lower_s"], row["bound"]) == (4.6e-6, "memory")
    (threshold,) = rooflines.thresholds(config, "s").to_dicts()
    assert threshold["saturates_estimate"] == 252


# ---------------------------------------------------------------- every metric has a worked value

CLAIMS: dict[str, Callable[..., None]] = {
    **dict.fromkeys(
        (
            "flops",
            "memory_bytes",
            "footprint_bytes",
            "t_math_s",
            "t_memory_s",
            "t_lower_s",
            "t_upper_s",
            "memory_intensity",
            "attained_flops_per_s",
            "utilization",
            "bound",
            "fits",
        ),
        test_the_reference_case,
    ),
    **dict.fromkeys(
        ("network_bytes", "t_network_s", "network_intensity"), test_time_of_an_all_gather
    ),
    "t_estimate_s": test_time_of_a_calibrated_chip,
    **dict.fromkeys(
        ("t_estimate_p10_s", "t_estimate_p90_s", "estimate_bound"),
        test_time_of_a_calibrated_software,
    ),
    **dict.fromkeys(
        ("network_inner_bytes", "network_outer_bytes"), test_a_collective_on_two_levels
    ),
}
"""Test with a worked value of each metric."""


def test_every_metric_has_a_worked_value():
    assert set(CLAIMS) == {column.name for column in METRICS}
    assert [
        name
        for name, test in CLAIMS.items()
        if f'"{name}"' not in inspect.getsource(test).replace("'", '"')
    ] == []
