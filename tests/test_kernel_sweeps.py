"""Sweeps over kernels: rows, thresholds and mistakes in a config, against exact values."""

import re
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest
from outputs_made import make_outputs
from polars.testing import assert_frame_equal

import rooflines
from rooflines import charts
from rooflines.config.schema import ConfigFile
from rooflines.evaluation.row_frames import table_of
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.kinds.kernel_forms import kernel_form, kernel_sizes, with_letters
from rooflines.kinds.kind_table import KINDS
from rooflines.kinds.placed_kernels import PlacedKernel, kernel_rates
from rooflines.results.tables import metadata_of
from rooflines.site.data_page import threshold_data
from rooflines.site.site import write_site
from rooflines.theory.operation import MATRIX

CHIPS = ["h100-sxm", "tpu-v5p", "mi300x"]

ATTENTION: dict[str, Any] = {
    "operation": "attention",
    "grid": {"B": [1, 4], "S": [64, 1000], "N": 32, "K": [1, 8], "H": 128},
    "chips": CHIPS,
}


def config_of(*sweeps, **keys):
    named = {f"s{index}": sweep for index, sweep in enumerate(sweeps)}
    return rooflines.load_config({"sweeps": named, "charts": [], **keys})


def example_sizes(kind):
    """Sizes of a kind's example, by letter."""
    sizes = {name: int(size) for name, size in re.findall(r"(\w+)=(\d+)", kind.example)}
    if "x" in (first := kind.example.split()[0]):
        sizes |= dict(zip(kind.letters, map(int, first.split("x")), strict=False))
    return sizes


def forms():
    """Each kind with each of its options."""
    for name, kind in KINDS.items():
        yield name, {}
        for option, values in kind.choices.items():
            yield from ((name, {option: value}) for value in [*values][1:])
        yield from ((name, {flag: True}) for flag in kind.flags if flag not in kind.letters)


def exact_values(row, options, dtypes):
    """Work and times in a row, from the kernel at its chip and sizes."""
    kind = KINDS[row["operation"]]
    given = {letter: row[letter] for letter in kind.letters if row[letter] is not None}
    form = with_letters(kernel_form(kind, dtypes, options), given)
    sizes = form.complete(kernel_sizes(form, given))
    rates = kernel_rates(chip_entries()[row["chip"]], row["chip"], form)
    work, times = form.work(sizes), PlacedKernel(form, rates).times(sizes)
    is_matrix = form.kind.unit == MATRIX
    flops = work.flops if is_matrix else work.vector_flops
    math = 0 if times.math is None and not flops else times.math
    known = [time for time in (math, times.memory) if time is not None]
    return {
        "flops": flops,
        "memory_bytes": work.memory_bytes,
        "vector_flops": work.vector_flops or None if is_matrix else None,
        "exponentials": work.exponentials or None,
        "pairs": work.pairs,
        "touched": work.touched,
        "t_math_s": math,
        "t_memory_s": times.memory,
        "t_lower_s": max(known),
        "t_upper_s": None if math is None else sum(known),
        "memory_intensity": Fraction(flops) / Fraction(work.memory_bytes),
        "attained_flops_per_s": Fraction(flops) / Fraction(max(known)),
    }


def nearly(found, exact):
    """True if a number is the exact number, or null, to 1e-12."""
    if exact is None or found is None:
        return found is None and exact is None
    return abs(Fraction(found) - Fraction(exact)) <= Fraction(1, 10**12) * abs(Fraction(exact))


@pytest.mark.parametrize(("name", "options"), [*forms()], ids=str)
def test_rows_equal_exact_values(name, options):
    sizes = example_sizes(KINDS[name])
    grid: dict[str, Any] = {letter: [size, 2 * size] for letter, size in sizes.items()}
    config = config_of(
        {"operation": name, "options": options, "grid": grid, "chips": CHIPS, "thresholds": []}
    )
    rows = rooflines.rows(config, "s0").collect()
    assert rows.height == len(CHIPS) * 2 ** len(sizes) == config.sweep("s0").rows
    wanted = {(chip, *row) for chip in CHIPS for row in product(*grid.values())}
    assert {*rows.select("chip", *grid).cast({"chip": pl.String}).iter_rows()} == wanted
    for row in rows.iter_rows(named=True):
        exact = exact_values(row, options, None)
        assert {key for key, value in exact.items() if not nearly(row[key], value)} == set()


DTYPES = [
    ("attention", ["bf16", "fp8", {"x": "bf16", "cache": "fp8", "out": "bf16"}]),
    ("experts", ["bf16", {"w": "int4-g64", "x": "bf16", "out": "bf16", "compute": "bf16"}]),
    ("quantise", [{"x": "bf16", "out": "fp8"}, {"x": "bf16", "out": "mxfp8"}]),
]


@pytest.mark.parametrize(("name", "dtypes"), DTYPES)
def test_rows_of_several_dtypes_equal_exact_values(name, dtypes):
    grid = {letter: [size, 2 * size] for letter, size in example_sizes(KINDS[name]).items()}
    sweep = {"operation": name, "grid": grid, "chips": "h100-sxm", "dtypes": dtypes}
    rows = rooflines.rows(config_of(sweep), "s0").collect()
    named = {kernel_form(name, each).dtypes_text: each for each in dtypes}
    assert [*rows["dtypes"].cast(pl.String).unique(maintain_order=True)] == [*named]
    for row in rows.iter_rows(named=True):
        exact = exact_values(row, {}, named[row["dtypes"]])
        assert {key for key, value in exact.items() if not nearly(row[key], value)} == set()


@pytest.mark.parametrize(
    ("options", "grid"),
    [
        ({"window": 256}, {}),
        ({"phase": "decode"}, {"T": [1, 4], "window": [8, 4096]}),
        ({"mask": "full"}, {"T": [1, 2048]}),
        ({}, {"Hv": [64, 128], "K": "N"}),
    ],
)
def test_letters_with_defaults_and_ties_are_completed(options, grid):
    sweep = {**ATTENTION, "options": options, "grid": {**ATTENTION["grid"], **grid}}
    rows = rooflines.rows(config_of(sweep), "s0").collect()
    choices = {name: value for name, value in options.items() if name != "window"}
    for row in rows.iter_rows(named=True):
        assert grid.get("K") != "N" or row["K"] == row["N"]
        exact = exact_values(row, choices, None)
        assert {key for key, value in exact.items() if not nearly(row[key], value)} == set()


def test_slices_equal_the_table():
    config = config_of({**ATTENTION, "dtypes": ["bf16", "fp8"], "chips": ["h100-sxm", "mi300x"]})
    table = table_of(config.sweep("s0"))
    every = table.frame().collect()
    cut = pl.concat(table.frame(start, start + 5).collect() for start in range(0, every.height, 5))
    assert cut.equals(every)


THRESHOLDS = [
    ("attention", {"phase": "decode"}, ["S", "T", "N", "K", "B"]),
    ("attention", {}, ["S", "K", "B"]),
    ("experts", {}, ["B", "E", "k", "D"]),
    ("mla", {}, ["S", "N"]),
    ("linear-cross-entropy", {}, ["B", "V"]),
    ("rmsnorm", {}, ["B", "D"]),
    ("conv2d", {}, ["B", "F"]),
]


@pytest.mark.parametrize(("name", "options", "axes"), THRESHOLDS)
def test_thresholds_equal_critical_sizes(name, options, axes):
    sizes = example_sizes(KINDS[name])
    grid = {letter: [size, 2 * size] for letter, size in sizes.items()}
    sweep = {"operation": name, "options": options, "grid": grid, "thresholds": axes}
    config = config_of({**sweep, "chips": CHIPS[:2]})
    rows = rooflines.thresholds(config)
    assert rows.height <= config.sweep("s0").max_thresholds()
    form = kernel_form(name, None, options)
    for axis in axes:
        solved = rows.filter(axis=axis)
        others = [letter for letter in sizes if letter != axis]
        assert solved.height == len(CHIPS[:2]) * 2 ** len(others)
        assert not solved.select("chip", *others).is_duplicated().any()
        for row in solved.iter_rows(named=True):
            rates = kernel_rates(chip_entries()[row["chip"]], row["chip"], form)
            given = {letter: row[letter] for letter in others}
            if axis in sizes:
                given[axis] = sizes[axis]
            critical = PlacedKernel(form, rates).critical(axis, given)
            assert row["outcome"] == critical.outcome
            assert row["critical_exact"] == critical.real
            if critical.critical is not None:
                assert row["critical"] == row["critical_memory"] == critical.critical
            assert (row["limit"] is None) == (critical.outcome == "always")
            if row["limit"]:
                assert row["limit_intensity"] == critical.limit_intensity


def test_the_default_threshold_is_along_the_first_letter_that_moves_the_intensity():
    experts = {"operation": "moe", "grid": example_sizes(KINDS["experts"]), "chips": "h100-sxm"}
    config = config_of(
        ATTENTION, experts, {**experts, "operation": "copy", "grid": {"B": 1, "D": 8}}
    )
    assert [sweep.solved for sweep in config.kernel_sweeps.values()] == [("S",), ("B",), ("B",)]
    rows = rooflines.thresholds(config)
    assert {*rows["operation"].cast(pl.String)} == {"attention", "experts", "copy"}


def test_chips_without_the_dtype_are_skipped_with_a_reason():
    config = config_of(
        {**ATTENTION, "dtypes": ["bf16", "fp8"], "chips": ["a100-sxm-80gb", "h100-sxm"]}
    )
    skipped = rooflines.skipped(config).to_dicts()
    assert [(row["chip"], row["dtypes"], row["rows"]) for row in skipped] == [
        ("a100-sxm-80gb", "fp8", 8)
    ]
    assert "fp8" in skipped[0]["reason"]


def test_tables_of_operations_are_as_without_kernels():
    matmul = {"operation": "matmul", "grid": {"B": 8, "D": 64, "F": 64}, "dtypes": "bf16"}
    alone, beside = (
        config_of({**matmul, "chips": CHIPS}),
        config_of({**matmul, "chips": CHIPS}, ATTENTION),
    )
    assert rooflines.rows(beside, "s0").collect().equals(rooflines.rows(alone, "s0").collect())
    both = rooflines.thresholds(beside)
    assert {"options", "S", "window"} <= {*both.columns}
    first = both.filter(pl.col("sweep") == "s0")
    assert first["options"].is_null().all()
    assert first.select(rooflines.thresholds(alone).columns).equals(rooflines.thresholds(alone))


def test_efficiency_and_measured_numbers_apply():
    sweep = {
        **ATTENTION,
        "grid": {**ATTENTION["grid"], "B": 1, "S": 64, "K": 8},
        "chips": "h100-sxm",
    }
    plain = rooflines.rows(config_of(sweep), "s0").collect()
    slow = {**sweep, "efficiency": {"memory": 0.5}, "measured": ["1ms"]}
    rows = rooflines.rows(config_of(slow), "s0").collect()
    assert rows["t_memory_s"][0] == pytest.approx(2 * plain["t_memory_s"][0])
    assert rows["measured_over_bound"][0] == pytest.approx(1e-3 / rows["t_lower_s"][0])


WRONG = [
    ({"network": "infiniband"}, "s0.network", "has no effect on kernels"),
    (
        {"operation": "mla", "grid": {"B": 1, "S": 8}, "calibration": "vllm"},
        "s0.calibration",
        "no fit",
    ),
    ({"resources": ["math", "exp"]}, "s0.resources", "lacks memory, network"),
    ({"operation": "atention"}, "s0.operation", "attention"),
    ({"grid": {"B": 1, "D": 8, "S": 8, "N": 8, "K": 8, "H": 8}}, "s0.grid.D", "has no D"),
    ({"grid": {"B": 1, "S": 8}}, "s0.grid", "lacks N, K, H"),
    ({"options": {"backwards": True}}, "s0.options.backwards", "is no option of attention"),
    ({"options": {"phase": "decoding"}}, "s0.options.phase", "decode"),
    ({"options": {"window": 9, "mask": "full"}}, "s0.options", "a window needs causal"),
    ({"options": {"phase": "decode", "backward": True}}, "s0.options", "decode has no backward"),
    ({"dtypes": [{"x": "bf16", "w": "fp8"}]}, "s0.dtypes[0].w", "is no role of attention"),
    ({"dtypes": ["bf17"]}, "s0.dtypes[0]", "bf17"),
    ({"dtypes": ["bf16", {"x": "bf16"}]}, "s0.dtypes[1]", "listed twice"),
    ({"thresholds": ["H"]}, "s0.thresholds[0]", "solve for one of B, S, T, N, K"),
    ({"sharding": "column"}, "s0.sharding", "is no key here"),
    ({"columns": ["kv_cache_bytes"]}, "s0.columns", "no metric"),
    ({"chips": "h100"}, "s0.chips", "h100"),
]


@pytest.mark.parametrize(("keys", "place", "said"), WRONG, ids=str)
def test_mistakes_name_their_place(keys, place, said):
    with pytest.raises(rooflines.RooflinesError) as raised:
        config_of({**ATTENTION, **keys})
    text = str(raised.value)
    assert f"sweeps.{place}" in text
    assert said in text
    assert "fix" in text


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ({"N": [32, 40], "K": [8, 16, 5]}, "K=5 does not divide N=32"),
        ({"T": [1, 2000]}, "T=2000 new tokens are more than S=64"),
        ({"window": [1, 2], "S": "N"}, None),
    ],
)
def test_sizes_that_contradict_each_other_are_refused_with_the_first_pair(grid, said):
    sweep = {**ATTENTION, "options": {"phase": "decode"}, "grid": {**ATTENTION["grid"], **grid}}
    if said is None:
        assert rooflines.rows(config_of(sweep), "s0").collect().height
        return
    with pytest.raises(rooflines.RooflinesError) as raised:
        config_of(sweep)
    assert "sweeps.s0.grid" in str(raised.value)
    assert said in str(raised.value)


def test_a_run_has_tables_thresholds_a_summary_a_workbook_and_a_site(tmp_path):
    dtypes = ["bf16", "fp8"]
    sweep = {**ATTENTION, "dtypes": dtypes, "chips": ["a100-sxm-80gb", "h100-sxm"]}
    matmul = {"operation": "matmul", "grid": {"B": [8, 512], "D": 4096, "F": 4096}}
    sweeps = {"s0": sweep, "m": {**matmul, "dtypes": "bf16", "chips": "h100-sxm"}}
    content = {"sweeps": sweeps, "charts": []}
    files = ("thresholds.parquet", "skipped.csv", "summary.csv", "rooflines.xlsx")
    planned = make_outputs(content, tmp_path, *files)
    config = rooflines.load_config(content)
    rows = rooflines.rows(config, "s0").collect()
    read = rooflines.scan(tmp_path, "s0").collect()
    assert_frame_equal(read, rows, categorical_as_str=True)
    thresholds = pl.read_parquet(tmp_path / "thresholds.parquet")
    assert_frame_equal(thresholds, rooflines.thresholds(config), categorical_as_str=True)
    summary = pl.read_csv(tmp_path / "summary.csv").filter(sweep="s0")
    assert summary["rows"].sum() == rows.height
    assert {*summary["axis"]} == {"S"}
    assert summary["critical_min"].null_count() == 0
    skipped = pl.read_csv(tmp_path / "skipped.csv")
    assert skipped.select("sweep", "chip", "dtypes", "rows").rows() == [
        ("s0", "a100-sxm-80gb", "fp8", 8)
    ]
    data = metadata_of(tmp_path / "thresholds.parquet")
    page = threshold_data(thresholds, data["columns"])
    assert (page["sweep"], page["axis"], len(page["rows"])) == ("s0", "S", 12)
    inputs: dict[str, list[Path]] = {"thresholds": [tmp_path / "thresholds.parquet"]}
    inputs |= {name: [] for name in ("charts", "models", "measured", "timings")}
    write_site(planned.spec("bundle"), tmp_path / "bundle", inputs)
    assert "attention" in (tmp_path / "bundle" / "method.html").read_text(encoding="utf-8")


def test_charts_of_kernels_answer_each_sweep():
    sweeps = {"s0": {**ATTENTION, "grid": {**ATTENTION["grid"], "S": [64, 1000, 4096]}}}
    sweeps["s1"] = {"operation": "all-reduce", "grid": {"bytes": [1024, 2**20, 2**30]}}
    sweeps["s1"] |= {"shards": [2, 8], "chips": "h100-sxm"}
    with pytest.raises(
        rooflines.RooflinesError, match="no sweep of operations, which critical needs"
    ):
        rooflines.load_config({"sweeps": sweeps, "charts": [{"chart": "critical", "sweep": "s0"}]})
    config = rooflines.load_config({"sweeps": sweeps})
    assert [chart.id for chart in config.charts] == ["kernel-s0", "kernel-s1"]
    results = charts.of_config(config)
    attention = charts.view("kernel", results, "s0", chips=CHIPS)
    assert attention.title == "Attention prefill is compute-bound from S = 415 to 738, by chip"
    (alone,) = charts.view("kernel", results, "s0", chips=["h100-sxm"]).data["knees"].rows()
    assert (alone[0], alone[1]) == ("h100-sxm", 738)
    roof = charts.view("kernel", results, "s0", by="roofline", chip="h100-sxm")
    assert roof.title == "H100 SXM, bf16 matrix unit: ridge 295 FLOP/byte"
    rows = rooflines.rows(config, "s0").filter(chip="h100-sxm", B=4, K=8).collect()
    attained = dict(rows.select("S", "attained_flops_per_s").rows())
    assert roof.data["point"].select("size", "y").rows() == [(s, attained[s]) for s in (64, 4096)]
    sent = charts.view("kernel", results, "s1")
    sizes = "from 308,572 bytes on H100 SXM, by hops below"
    assert sent.title == f"All-reduce is bound by bandwidth {sizes}"
    assert "ring" in sent.subtitle
    assert sent.data["curves"]["estimate_s"].null_count() == 0


def test_the_schema_takes_kernels_and_refuses_other_kinds():
    schema = ConfigFile.model_json_schema(by_alias=True)
    keys = {**ATTENTION, "options": {"phase": "decode"}, "dtypes": ["bf16", {"x": "fp8"}]}
    assert not [*jsonschema.Draft202012Validator(schema).iter_errors({"sweeps": {"s0": keys}})]
    wrong = {"sweeps": {"s0": {**keys, "thresholds": 3}}}
    assert [*jsonschema.Draft202012Validator(schema).iter_errors(wrong)]


def test_too_many_thresholds_are_refused():
    grid = {**ATTENTION["grid"], "B": {"from": 1, "to": 20_000, "step": 1}}
    with pytest.raises(rooflines.RooflinesError, match="120,000 thresholds"):
        config_of({**ATTENTION, "grid": grid})
    assert config_of({**ATTENTION, "grid": grid, "thresholds": []}).sweep("s0").rows == 240_000
