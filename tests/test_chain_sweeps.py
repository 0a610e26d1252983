"""Sweeps over collectives and chains of kinds, estimates and means: worked values, and answers."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rooflines
from rooflines.answers.kernel_estimate import KernelChip, collective_estimate, kernel_estimate
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.kinds.chains import parse_chain
from rooflines.kinds.collectives import COLLECTIVE_MEANINGS, placed_collective
from rooflines.kinds.kernel_forms import kernel_form, with_letters

CHIPS = chip_entries()


def rows_of(sweep, *, thresholds=False):
    config = rooflines.load_config({"sweeps": {"s": sweep}, "charts": []})
    if thresholds:
        return rooflines.thresholds(config).to_dicts()
    return rooflines.rows(config, "s").collect().to_dicts()


COLLECTIVES: list[
    tuple[str, int, list[float]]
] = [  # byte a chip, us and bandwidth-bound from: H100, B200, MI300X, v5p in a ring of 8
    ("all-reduce", 117_440_512, [260.979, 130.489, 262.144, 652.447]),
    ("all-gather", 58_720_256, [130.489, 65.245, 131.072, 326.224]),
    ("broadcast", 67_108_864, [149.131, 74.565, 149.797, 372.827]),
]
BOUND_FROM: dict[str, list[int]] = {
    "all-reduce": [308_572, 617_143, 409_600, 822_858],
    "broadcast": [270_000, 540_000, 358_400, 720_000],
}
FOUR = ["h100-sxm", "b200", "mi300x", "tpu-v5p"]


@pytest.mark.parametrize(("name", "sent", "micros"), COLLECTIVES)
def test_collectives_have_the_worked_values(name, sent, micros):
    sweep: dict[str, Any] = {
        "operation": name,
        "grid": {"bytes": "64MiB"},
        "shards": 8,
        "chips": FOUR,
    }
    rows = rows_of(sweep)
    assert [row["chip"] for row in rows] == FOUR
    assert [row["network_bytes"] for row in rows] == [sent] * 4
    assert [round(row["t_lower_s"] * 1e6, 3) for row in rows] == micros
    solved = rows_of(sweep, thresholds=True)
    assert [row["outcome"] for row in solved] == ["found"] * 4
    assert {row["axis"] for row in solved} == {"bytes"}
    if name in BOUND_FROM:
        assert [row["critical"] for row in solved] == BOUND_FROM[name]


def test_fewer_chips_of_a_mesh_use_fewer_links():
    sweep: dict[str, Any] = {
        "operation": "all-reduce",
        "grid": {"bytes": "64MiB"},
        "shards": 4,
        "chips": "mi300x",
    }
    (row,) = rows_of(sweep)
    assert (row["network_bytes"], row["hops"]) == (100_663_296, 2)
    assert round(row["t_lower_s"] * 1e6, 3) == 524.288


def test_an_all_reduce_in_the_switch_has_its_time_beside_the_ring():
    sweep: dict[str, Any] = {
        "operation": "psum",
        "grid": {"bytes": "1GiB"},
        "shards": 8,
        "chips": "h100-sxm",
    }
    (row,) = rows_of(sweep)
    micros = [round(row[key] * 1e6, 2) for key in ("t_lower_s", "t_in_switch_s", "t_strict_s")]
    assert micros == [4175.66, 2684.35, 2386.09]
    assert row["t_lower_is"] == "ring"
    assert row["busbw_bytes_per_s"] == pytest.approx(4.5e11)
    assert row["algbw_bytes_per_s"] == pytest.approx(4.5e11 * 4 / 7)
    (gather,) = rows_of({**sweep, "operation": "all-gather"})
    assert (gather["t_in_switch_s"], gather["t_lower_is"]) == (None, "bound")


def test_two_networks_have_the_bytes_of_each():
    sweep: dict[str, Any] = {
        "operation": "all-reduce",
        "grid": {"bytes": "64MiB"},
        "chips": "h100-sxm",
    }
    sweep |= {"shards": [8, 16, 13], "network": [["nvlink", "infiniband"]]}
    eight, sixteen = rows_of(sweep)
    assert (sixteen["network_inner_bytes"], sixteen["network_outer_bytes"]) == (
        117_440_512,
        8_388_608,
    )
    assert (eight["network_outer_bytes"], eight["t_in_switch_s"] is None) == (0, False)
    assert (sixteen["t_in_switch_s"], sixteen["t_strict_s"]) == (None, None)
    assert round(sixteen["t_network_s"] * 1e6, 3) == 260.979
    config = rooflines.load_config({"sweeps": {"s": sweep}, "charts": []})
    (skipped,) = rooflines.skipped(config).to_dicts()
    assert "groups of up to 8 chips on nvlink" in skipped["reason"]
    assert (skipped["shards"], skipped["rows"]) == (13, 1)


@given(
    st.sampled_from(sorted(COLLECTIVE_MEANINGS)),
    st.sampled_from([2, 3, 4, 8]),
    st.sampled_from(FOUR[:3]),
    st.integers(1, 2**34),
)
def test_every_collective_equals_its_answer(name, shards, chip, payload):
    sweep: dict[str, Any] = {
        "operation": name,
        "grid": {"bytes": payload},
        "shards": shards,
        "chips": chip,
    }
    (row,) = rows_of(sweep)
    placed = placed_collective(CHIPS[chip], chip, name, f"{shards}")
    assert row["t_network_s"] == pytest.approx(float(placed.network_s(payload)), rel=1e-12)
    assert row["t_memory_s"] == pytest.approx(float(placed.memory_s(payload)), rel=1e-12)
    estimate = collective_estimate(placed, payload, KernelChip(chip, CHIPS[chip]))
    assert (row["t_estimate_s"] is None) == (estimate is None)
    if estimate is not None:
        values = estimate.columns()
        extrapolated = values.pop("estimate_extrapolated")
        assert row["estimate_extrapolated"] == extrapolated
        assert {key: row[key] for key in values} == pytest.approx(values, rel=1e-12)


FUSED: list[tuple[dict[str, Any], int, dict[str, float]]] = [
    (
        {
            "operation": ["add", "rmsnorm", "quantise"],
            "grid": {"B": 4096, "D": 8192},
            "dtypes": {"x": "bf16", "out": "fp8"},
        },
        167_788_544,
        {"h100-sxm": 50.086, "mi300x": 31.658},
    ),
    (
        {
            "operation": "rmsnorm residual + quantise",
            "grid": {"B": 4096, "D": 8192},
            "dtypes": {"x": "bf16", "out": "fp8"},
        },
        234_897_408,
        {"h100-sxm": 70.119, "mi300x": 44.320},
    ),
    (
        {
            "operation": ["matmul", "bias", "swiglu"],
            "grid": {"B": 4096, "D": 4096, "F": 14336},
        },
        385_933_312,
        {"h100-sxm": 972.773, "tpu-v5p": 2096.02},
    ),
]


@pytest.mark.parametrize(("sweep", "moved", "micros"), FUSED)
def test_fused_kernels_have_the_worked_values(sweep, moved, micros):
    rows = rows_of({**sweep, "chips": [*micros]})
    assert [row["memory_bytes"] for row in rows] == [moved] * len(micros)
    digits = [round(row["t_lower_s"] * 1e6, 3) for row in rows]
    assert digits == pytest.approx([*micros.values()], abs=5.1e-3)
    assert {row["options"] for row in rows} == {"fused"}
    assert {row["t_estimate_s"] for row in rows} == {None}


MLP: dict[str, Any] = {"sequence": ["rmsnorm", "matmul", "swiglu", "matmul"]}
SEQUENCE_TIMES = ("t_lower_s", "t_overlapped_s", "t_serial_s")


def test_sequences_have_the_worked_values():
    sweep: dict[str, Any] = {**MLP, "grid": {"B": [128, 4096], "D": 4096, "F": 14336}}
    rows = rows_of({**sweep, "chips": ["h100-sxm", "b200"]})
    found = {
        (row["chip"], row["B"]): [round(row[key] * 1e6, 3) for key in SEQUENCE_TIMES]
        for row in rows
    }
    assert found["h100-sxm", 128] == [105.799, 112.998, 112.998]
    assert found["b200", 128] == pytest.approx([46.030, 49.162, 49.162], abs=1e-3)
    assert found["h100-sxm", 4096] == pytest.approx([1459.16, 1459.16, 1584.37], abs=5e-3)
    first = rows[0]
    (third,) = (row for row in rows if (row["chip"], row["B"]) == ("h100-sxm", 4096))
    assert (first["memory_bytes"], first["activation_bytes"]) == (354_426_880, 24_117_248)
    assert (third["memory_bytes"], third["activation_bytes"]) == (419_438_592, 771_751_936)


@given(st.integers(1, 300), st.integers(1, 200), st.integers(1, 200), st.sampled_from("+,"))
def test_a_chain_of_a_sweep_equals_its_answer(rows, width, columns, sign):
    text = sign.join(["rmsnorm residual", "matmul", "swiglu", "matmul", "add"])
    sizes: dict[str, Any] = {"B": rows, "D": 8 * width, "F": 8 * columns}
    dtypes = {"x": "bf16", "w": "fp8", "out": "fp32"}
    sweep: dict[str, Any] = {
        "operation": text,
        "grid": sizes,
        "dtypes": dtypes,
        "chips": ["h100-sxm", "mi300x"],
    }
    for row in rows_of(sweep):
        chain = parse_chain(text, sizes, dtypes)
        times = chain.times(chain.rates(CHIPS[row["chip"]], row["chip"]))
        exact = {
            "flops": chain.flops,
            "vector_flops": chain.vector_flops,
            "memory_bytes": chain.memory_bytes,
            "t_lower_s": times.lower,
            "t_upper_s": times.upper,
        }
        if sign == ",":
            exact |= {"t_overlapped_s": times.overlapped, "t_serial_s": times.ops}
            exact |= {"activation_bytes": chain.activation_bytes}
        assert {key: row[key] for key in exact} == pytest.approx(
            {key: float(value) for key, value in exact.items()}, rel=1e-12
        )
        assert row["t_lower_s"] <= row["t_upper_s"] * (1 + 1e-12)


def test_a_chain_is_solved_along_its_letters():
    sweep: dict[str, Any] = {
        "operation": ["matmul", "bias", "swiglu"],
        "thresholds": ["B", "D", "F"],
    }
    sweep |= {"grid": {"B": 4096, "D": 4096, "F": 14336}, "chips": "h100-sxm"}
    solved = {row["axis"]: row["critical"] for row in rows_of(sweep, thresholds=True)}
    rate, bandwidth, vector = (
        9.89e14,
        3.35e12,
        CHIPS["h100-sxm"].units["vector"]["fp32"].flops_per_s,
    )
    for axis, critical in solved.items():
        for size, holds in ((critical, True), (critical - 1, False)):
            at = {"B": 4096, "D": 4096, "F": 14336, axis: size}
            b, d, f = at["B"], at["D"], at["F"]
            moved = 2 * (b * d + 2 * d * f + 2 * f + b * f)
            slowest = max(moved / bandwidth, (2 * b * f + 3 * b * f) / vector)
            assert (4 * b * d * f / rate >= slowest) is holds, (axis, size)


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"operation": ["add", "rmsnorms"], "grid": {"B": 1, "D": 8}}, "s.operation", "rmsnorm"),
    (
        {"operation": ["top-k", "softmax"], "grid": {"B": 1, "V": 9, "k": 2}},
        "s.operation",
        "follow",
    ),
    ({"sequence": ["matmul"], "grid": {"B": 1, "D": 8}}, "s.grid", "D and F"),
    ({"sequence": ["rmsnorm"], "grid": {"B": 1, "D": 8, "Q": 8}}, "s.grid.Q", "no letter"),
    ({"sequence": [], "grid": {"B": 1}}, "s.sequence", "has no kinds"),
    ({**MLP, "operation": ["add"], "grid": {"B": 1, "D": 8}}, "s.sequence", "beside operation"),
    ({**MLP, "grid": {"B": 1, "D": 8, "F": 8}, "options": {}}, "s.options", "is no key here"),
    ({"operation": "all-reduce", "grid": {"bytes": 8}}, "s", "lacks shards"),
    ({"operation": "all-reduce", "grid": {"bytes": 8}, "shards": 1}, "s.shards[0]", "several"),
    ({"operation": "all-reduce", "grid": {"bytes": "64Q"}, "shards": 2}, "s.grid.bytes", "64MiB"),
    ({"operation": "all-reduce", "grid": {"B": 8}, "shards": 2}, "s.grid", "lacks bytes"),
    (
        {"operation": "all-reduce", "grid": {"bytes": 8}, "shards": 2, "dtypes": "bf16"},
        "s.dtypes",
        "no key",
    ),
    ({"operation": "all-redcue", "grid": {"bytes": 8}, "shards": 2}, "s.operation", "all-reduce"),
    (
        {"operation": "softmax", "grid": {"B": 1, "D": 8}, "chips": "mi300x"}
        | {"resources": ["math", "memory", "network", "exp"]},
        "s",
        "no sourced rate of exponentials",
    ),
    (
        {"operation": ["rmsnorm", "matmul 8->16"], "grid": {"B": 1, "D": [8, 16]}},
        "s.grid",
        "several D",
    ),
]


@pytest.mark.parametrize(("sweep", "place", "said"), WRONG, ids=str)
def test_mistakes_of_chains_and_collectives_name_their_place(sweep, place, said):
    with pytest.raises(rooflines.RooflinesError) as raised:
        rows_of({"chips": "h100-sxm", **sweep})
    text = str(raised.value)
    assert f"sweeps.{place}" in text
    assert said in text
    assert "fix" in text


def test_exponentials_bound_where_they_are_asked_for():
    sweep: dict[str, Any] = {
        "operation": "attention",
        "grid": {"B": 1, "S": 8192, "N": 32, "K": 8, "H": 128},
    }
    sweep |= {"dtypes": "fp8", "chips": ["h100-sxm", "mi300x"]}
    resources = ["math", "memory", "network", "exp"]
    plain = [row for row in rows_of(sweep) if row["chip"] == "h100-sxm"]
    (asked,) = rows_of({**sweep, "resources": resources})
    assert plain[0]["bound"] == "compute"
    assert (asked["bound"], round(asked["t_lower_s"] * 1e6, 2)) == ("exp", 277.85)
    assert asked["t_upper_s"] == pytest.approx(plain[0]["t_upper_s"] + asked["t_exp_s"])
    (solved,) = rows_of({**sweep, "resources": resources}, thresholds=True)
    assert (solved["outcome"], solved["limit"], solved["critical"]) == ("never", "exp", None)
    assert solved["critical_memory"] == 738


def test_a_mean_is_called_one_with_the_bound_beside():
    sizes: dict[str, Any] = {"B": [1, 128], "D": 7168, "F": 2048, "E": 256, "k": 8}
    sweep: dict[str, Any] = {
        "operation": "experts",
        "grid": sizes,
        "dtypes": "fp8",
        "chips": "h100-sxm",
    }
    same = rows_of({**sweep, "options": {"routing": "same"}})
    for row, strict in zip(rows_of(sweep), same, strict=True):
        assert (row["t_lower_is"], strict["t_lower_is"]) == ("mean", "bound")
        assert row["t_strict_s"] == strict["t_lower_s"] == strict["t_strict_s"]
        assert row["t_strict_s"] <= row["t_lower_s"]


ESTIMATED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("attention", {"phase": "decode"}, {"B": [1, 8], "S": 8192, "N": 32, "K": [8, 32], "H": 128}),
    ("attention", {}, {"B": 1, "S": [512, 8192], "N": 32, "K": 8, "H": [64, 128]}),
    ("attention", {}, {"B": 1, "S": 8192, "T": 512, "N": 32, "K": 8, "H": 128}),
    ("attention", {"window": 128}, {"B": 1, "S": 8192, "N": 32, "K": 8, "H": 128}),
    ("attention", {"mask": "full"}, {"B": 1, "S": 8192, "N": 32, "K": 8, "H": 128}),
    ("experts", {}, {"B": [1, 64], "D": 4096, "F": 14336, "E": 8, "k": 2}),
    ("experts", {"routing": "same"}, {"B": 16, "D": 4096, "F": 14336, "E": 8, "k": 2}),
    ("rmsnorm", {}, {"B": 4096, "D": 8192}),
]


@pytest.mark.parametrize(("name", "options", "grid"), ESTIMATED)
def test_estimates_of_sweeps_equal_those_of_answers(name, options, grid):
    chips = ["h100-sxm", "h200-sxm", "b200", "mi300x"]
    rows = rows_of({"operation": name, "options": options, "grid": grid, "chips": chips})
    for row in rows:
        given = {letter: row[letter] for letter in [*grid, *({"window"} & {*options})]}
        choices = {key: value for key, value in options.items() if key != "window"}
        form = with_letters(kernel_form(name, "bf16", choices), given)
        target = KernelChip(row["chip"], CHIPS[row["chip"]])
        estimate = kernel_estimate(form, form.complete(given), target)
        assert (row["t_estimate_s"] is None) == (estimate is None)
        if estimate is not None:
            values = estimate.columns()
            assert row["estimate_extrapolated"] == values.pop("estimate_extrapolated")
            assert {key: row[key] for key in values} == pytest.approx(values, rel=1e-12)


def test_operands_of_a_kernel_fit_in_memory_or_not():
    experts: dict[str, Any] = {
        "operation": "experts",
        "grid": {"B": 1, "D": 7168, "F": 2048, "E": 256, "k": 8},
    }
    (row,) = rows_of({**experts, "chips": "h100-sxm"})
    assert row["footprint_bytes"] == 2 * (3 * 7168 * 2048 * 256) + 2 * 2 * 7168
    assert row["fits"] is True
    adam: dict[str, Any] = {
        "operation": "adam",
        "grid": {"parameters": [10**9, 10**10]},
        "chips": "h100-sxm",
    }
    assert [row["footprint_bytes"] for row in rows_of(adam)] == [16e9, 16e10]
    assert [row["fits"] for row in rows_of(adam)] == [True, False]
    windowed: dict[str, Any] = {
        "operation": "attention",
        "options": {"phase": "decode", "window": 128},
    }
    windowed |= {"grid": {"B": 1, "S": 4096, "N": 8, "K": 8, "H": 64}, "chips": "h100-sxm"}
    (row,) = rows_of(windowed)
    assert row["footprint_bytes"] == 2 * (8 * 64 + 4096 * 8 * 128 + 8 * 64)


def test_an_unfitting_sweep_of_collectives_is_refused_like_others():
    sweep: dict[str, Any] = {
        "operation": "all-reduce",
        "grid": {"bytes": 8},
        "shards": 1024,
        "chips": "h100-sxm",
    }
    with pytest.raises(rooflines.RooflinesError, match="is left with no rows"):
        rows_of(sweep)


def test_columns_that_a_sweep_lacks_are_not_in_its_table():
    fused = rooflines.load_config({"sweeps": {"s": {**FUSED[0][0], "chips": "h100-sxm"}}})
    names = {*rooflines.rows(fused, "s").collect_schema()}
    assert not names & {"t_serial_s", "busbw_bytes_per_s", "hops"}
    matmul: dict[str, Any] = {
        "operation": "matmul",
        "grid": {"B": 8, "D": 8, "F": 8},
        "dtypes": "bf16",
    }
    plain = rooflines.load_config({"sweeps": {"s": {**matmul, "chips": "h100-sxm"}}})
    assert not {*rooflines.rows(plain, "s").collect_schema()} & {"t_lower_is", "t_strict_s"}
    assert pl.Schema(rooflines.rows(fused, "s").collect_schema())["bound"] == pl.Enum(
        ["compute", "vector", "memory", "exp", "network"]
    )
