"""Profiles of Nsight Compute: what is read, the share of the roofline, and what is refused."""

import json
from fractions import Fraction

import polars as pl
import pytest
from case_files import case
from command_line import refused, said
from gallery import PROFILE

import rooflines
from rooflines.dictionary.columns import KERNELS
from rooflines.fits.nsight import read_launches, short_name
from rooflines.results.tables import metadata_of

ROUND = PROFILE.with_name("raw.csv")
"""A profile of round numbers."""

TIME, READ, WRITTEN = "gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum"
BF16 = "sm__ops_path_tensor_src_bf16_dst_fp32.sum"
FFMA = "sm__sass_thread_inst_executed_op_ffma_pred_on.sum"
ONE = {TIME: ("usecond", "1"), READ: ("byte", "64"), WRITTEN: ("byte", "0"), BF16: ("", "0")}
"""The metrics of a launch: unit and value."""


PROFILES = case("profiles")


def raw(*launches, cc="9.0"):
    """A page `raw`: names, units and a row for each launch of the kernel `k`."""
    names = list(dict.fromkeys(name for launch in launches for name in launch))
    units = [next(launch[name][0] for launch in launches if name in launch) for name in names]
    rows = [["ID", "Kernel Name", "CC", *names], ["", "", "", *units]]
    for number, launch in enumerate(launches):
        rows.append([str(number), "k", cc, *(launch.get(name, ("", ""))[1] for name in names)])
    return "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows) + "\n"


@pytest.fixture
def profile(tmp_path):
    return tmp_path / "kernels.csv"


def test_values_have_separators_units_and_weights():
    gemm, add, again = read_launches(ROUND)
    assert gemm.flops == {("vector", "fp32"): 2000, ("matrix", "bf16"): 2**37}
    assert gemm.memory_bytes == 2**27 + 2**25
    assert gemm.seconds == Fraction(200, 10**6)
    assert add == again
    assert add.flops == {("vector", "fp32"): 10**7, ("matrix", "bf16"): 0}
    assert add.device == "9.0"


def test_a_profile_of_pytorch_is_read():
    found = rooflines.profiled_kernels(PROFILE, "h200-sxm")
    bf16, fp8 = found.head(2).iter_rows(named=True)
    assert (bf16["compute"], fp8["compute"]) == ("bf16", "fp8")
    assert bf16["flops"] == 2 * 4096 * 8192 * 8192
    assert fp8["flops"] == pytest.approx(bf16["flops"], rel=0.01)  # sums are added by threads
    assert found["roof_share"].is_between(0.3, 1).all()


@pytest.mark.parametrize(("kernel", "short"), PROFILES["names"].items())
def test_names_of_templates_are_shortened(kernel, short):
    assert short_name(kernel) == short


def test_the_page_details_says_the_same(profile):
    head = "ID,Process ID,Kernel Name,CC,Section Name,Metric Name,Metric Unit,Metric Value"
    metrics = [
        (TIME, "ns", "200,000"),
        (READ, "byte", "134,217,728"),
        (WRITTEN, "Kbyte", "33554.432"),
        (BF16, "op", "137,438,953,472"),
        (FFMA, "Kinst", "1"),
        ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", "80.5"),
    ]
    rows = [f'"0","1","gemm<128, 256>(int)","9.0","x","{n}","{u}","{v}"' for n, u, v in metrics]
    profile.write_text("\n".join([head, *rows]))
    assert next(read_launches(profile)) == next(read_launches(ROUND))


@pytest.mark.parametrize(
    ("nanoseconds", "telling"),
    [
        ("117.344", {READ: ("byte", "27.595.520")}),
        ("117.344", {READ: ("byte", "64"), "x__throughput.pct": ("%", "9,00")}),
        ("117.344", {READ: ("byte", "12.288")}),
        ("117,344", {READ: ("byte", "27,595,520")}),
        ("117,344", {READ: ("byte", "64")}),
        ("117344", {READ: ("byte", "64"), "x__throughput.pct": ("%", "98.5")}),
    ],
)
def test_marks_of_numbers_are_those_of_the_locale_of_the_export(nanoseconds, telling, profile):
    """A point between thousands, as Nsight Compute prints it in German; CC is always 9.0."""
    profile.write_text(raw(ONE | {TIME: ("ns", nanoseconds), **telling}))
    (launch,) = read_launches(profile)
    assert launch.seconds == Fraction(117_344, 10**9)
    text = telling[READ][1]
    assert launch.memory_bytes == int(text.replace(".", "").replace(",", ""))


@pytest.mark.parametrize(("counters", "expected"), PROFILES["counters"])
def test_a_counter_within_another_counts_once(counters, expected, profile):
    more = {f"sm__ops_path_tensor_{name}.sum": ("", "1") for name in counters}
    metrics = {name: cell for name, cell in ONE.items() if name != BF16}
    profile.write_text(raw(metrics | more))
    (launch,) = read_launches(profile)
    assert launch.flops == {("matrix", source): count for source, count in expected.items()}


def test_one_instruction_counts_once_under_both_names(profile):
    of = "__sass_thread_inst_executed_op_"
    names = (f"sm{of}ffma", f"smsp{of}ffma", f"smsp{of}hadd", f"smsp{of}dmul")
    profile.write_text(raw(ONE | {f"{name}_pred_on.sum": ("inst", "3") for name in names}))
    (launch,) = read_launches(profile)
    vector = {dtype: count for (unit, dtype), count in launch.flops.items() if unit == "vector"}
    assert vector == {"fp32": 6, "fp16": 3, "fp64": 3}


def test_the_share_is_the_least_time_over_the_measured_one():
    """By hand, with 989 TFLOP/s of bf16, 66.9 of fp32 and 3.35 TB/s."""
    frame = rooflines.profiled_kernels(ROUND, "h100-sxm")
    assert frame.columns == [column.name for column in KERNELS]
    gemm, add = frame.to_dicts()
    flops = 2**37 + 2000
    assert gemm["kernel"] == "gemm<128, 256>(int)"
    assert gemm["t_lower_s"] == pytest.approx(flops / 989e12, rel=1e-15)
    assert gemm["roof_share"] == pytest.approx(flops / 989e12 / 200e-6, rel=1e-15)
    assert (gemm["bound"], gemm["unit"], gemm["compute"]) == ("compute", "matrix", "bf16")
    assert gemm["memory_intensity"] == flops / (2**27 + 2**25)
    assert (add["launches"], add["seconds"], add["flops"]) == (2, 100e-6, 2e7)
    assert add["roof_share"] == pytest.approx(240e6 / 3.35e12 / 100e-6, rel=1e-15)
    assert (add["bound"], add["unit"], add["compute"]) == ("memory", "vector", "fp32")


def test_the_dtype_of_tensor_cores_can_be_given():
    bf16, fp8 = (rooflines.profiled_kernels(ROUND, "h100-sxm", dtype) for dtype in (None, "fp8"))
    assert fp8["compute"].to_list() == ["fp8", "fp32"]
    assert fp8["roof_share"][0] / bf16["roof_share"][0] == pytest.approx(989 / 1979, rel=1e-15)
    assert fp8["roof_share"][1] == bf16["roof_share"][1]


def test_a_copy_has_a_share_too(profile):
    nothing = ONE | {READ: ("byte", "0")}
    profile.write_text(raw(ONE | {READ: ("Mbyte", "1.675")}))
    (copy,) = rooflines.profiled_kernels(profile, "h100-sxm").to_dicts()
    assert copy["roof_share"] == pytest.approx(0.5, rel=1e-15)
    assert (copy["bound"], copy["unit"], copy["compute"]) == ("memory", None, None)
    profile.write_text(raw(nothing))
    (row,) = rooflines.profiled_kernels(profile, "h100-sxm").to_dicts()
    assert (row["memory_intensity"], row["roof_share"]) == (None, 0)


def test_the_frame_is_written_with_its_columns(tmp_path, capsys):
    out = tmp_path / "kernels.parquet"
    printed = said(capsys, "kernels", str(ROUND), "--chip", "h100-sxm", "--out", str(out))
    assert pl.read_parquet(out).equals(rooflines.profiled_kernels(ROUND, "h100-sxm"))
    assert metadata_of(out)["chip"] == "h100-sxm"
    assert "above the roof" not in printed


@pytest.mark.parametrize("form", [[], ["--csv"], ["--json"]])
def test_a_name_writes_nothing_to_the_terminal(form, profile, capsys):
    name = "\x1b[31m\x9b31m\u202ek\u2066\x7f"
    profile.write_text(raw(ONE).replace('"k"', f'"{name}"'))
    printed = said(capsys, "kernels", str(profile), "--chip", "h100-sxm", *form)
    assert all(letter.isprintable() for letter in printed.replace("\n", ""))
    if form == ["--json"]:
        assert json.loads(printed)[0]["kernel"] == name


def test_a_file_is_overwritten_only_if_that_is_wanted(tmp_path, capsys):
    for suffix in ("parquet", "svg"):
        out = tmp_path / f"kernels.{suffix}"
        out.write_text("mine")
        words = ["kernels", str(ROUND), "--chip", "h100-sxm", "--out", str(out)]
        message = refused(capsys, *words)
        assert "exists already.\n  fix: choose another name with -o FILE" in message
        assert out.read_text() == "mine"
        said(capsys, *words, "--force")
        assert out.read_bytes() != b"mine"


def test_a_kernel_above_the_roof_is_noticed(profile, capsys):
    """A megabyte in a hundred nanoseconds is more than 3.35 TB/s."""
    profile.write_text(raw(ONE | {READ: ("Mbyte", "1"), TIME: ("nsecond", "100")}))
    printed = said(capsys, "kernels", str(profile), "--chip", "h100-sxm")
    assert "1 kernel above the roof: " in printed


@pytest.mark.parametrize("row", case("wrong-profiles"), ids=lambda row: row["says"])
def test_a_wrong_profile_gives_one_message(row, profile, capsys):
    """A text, or launches with other metrics; what replaces a part of it, and what follows."""
    one = {name: cell for name, cell in ONE.items() if name != row.get("without")}
    one |= row.get("with", {})
    launches = [one, one | row["second"]] if "second" in row else [one]
    text = row.get("text", raw(*launches)).replace("ENDLESS", "9" * 200_000)
    for old, new in row.get("replace", {}).items():
        assert old in text
        text = text.replace(old, new)
    profile.write_text(text[: row.get("end")] + row.get("more", ""))
    error = refused(capsys, "kernels", str(profile), "--chip", "b200")
    assert row["says"] in error
    assert error.count("\n  fix: ") == error.count("fix: ") == 1


@pytest.mark.parametrize(
    ("chip", "note"),
    [
        ("h200", ""),
        ("h100-sxm", "the file names NVIDIA H200, and the chip given is h100-sxm"),
        ("h20", "the file names NVIDIA H200, and the chip given is h20"),
    ],
)
def test_another_device_in_a_profile_than_the_chip_is_said(chip, note, capsys):
    printed = said(capsys, "kernels", str(PROFILE), "--chip", chip)
    assert printed.rstrip().endswith(note)
    assert ("the file names" in printed) == bool(note)
