"""Profiled kernels as points on the roofline of a chip: numbers, labels, files, and messages."""

import random
from fractions import Fraction

import polars as pl
import pytest
from bundles import HOSTILE
from command_line import said
from gallery import PROFILE
from scenes import invalid, misfits, texts
from test_kernels import BF16, ONE, raw

import rooflines
from rooflines import charts
from rooflines.charts.kinds.measured import MAX_KERNELS, MAX_NAMES, kernels_view
from rooflines.charts.kit.render import limited
from rooflines.charts.roofline_layers import Roof, plain_lines
from rooflines.fits.nsight import Launch
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.measured.profiled_kernels import kernel_frame
from rooflines.theory.operation import Unit

ROUND = PROFILE.with_name("raw.csv")
"""A profile of round numbers."""

PEAKS: dict[tuple[Unit, str], float] = {("matrix", "bf16"): 989e12, ("vector", "fp32"): 67e12}
RATE = 3.35e12
FLOPS = 2**37 + 2000
"""The operations of the example's first kernel."""


def drawn(kernels):
    return limited(kernels_view(kernels, "h100-sxm").spec(), "kernels")


def profile(number):
    """Random kernels of both units, a few of them with a long or hostile name."""
    names = [HOSTILE, "void at::native::vectorized_elementwise_kernel<4, at::Functor<float>>"]
    launches = []
    for index in range(number):
        key = random.choice(list(PEAKS))
        moved = Fraction(round(10 ** random.uniform(5, 9.5)))
        flops = Fraction(round(10 ** random.uniform(-1.5, 3.5) * moved))
        least = max(float(flops) / PEAKS[key], float(moved) / RATE)
        seconds = Fraction(least / random.uniform(0.05, 1)).limit_denominator(10**15)
        name = names[index] if index < len(names) else f"kernel_{index}"
        launches.append(Launch(name, "9.0", {key: flops}, moved, seconds))
    return kernel_frame(launches, chip_entries()["h100-sxm"])


def finding(spec):
    """Title and subtitle."""
    params = {param["name"]: param["value"] for param in spec["params"]}
    return params["headline"], " ".join(params["subline"])


def test_the_roofs_and_the_title_are_those_of_the_kernels():
    """989 TFLOP/s of bf16, 67 of fp32, 3.35 TB/s; the share is of the sums of times."""
    spec = charts.spec_of(charts.kernels(rooflines.profiled_kernels(ROUND, "h100-sxm"), "h100-sxm"))
    peaks = {row["name"]: row["peak"] for row in spec["datasets"]["ceiling"]}
    assert peaks == {f"{dtype}, {unit}": peak for (unit, dtype), peak in PEAKS.items()}
    for row in spec["datasets"]["slope"]:
        assert row["bytes_per_s"] == RATE
        assert row["ridge"] == pytest.approx(989e12 / RATE, rel=1e-6)
    share = (FLOPS / 989e12 + 240e6 / RATE) / 300e-6
    assert finding(spec)[0] == f"2 kernels at {100 * share:.3g} % of the roofline of H100 SXM"


def test_what_is_not_drawn_is_said():
    kernels = rooflines.profiled_kernels(ROUND, "h100-sxm")
    copy = kernels.tail(1).with_columns(
        kernel=pl.lit("copy"), memory_intensity=0.0, flops=0.0, flops_per_s=0.0
    )
    spec = drawn(pl.concat([kernels, copy]))
    assert [row["kernel"] for row in spec["datasets"]["dots"]] == kernels["kernel"].to_list()
    assert finding(spec)[1].endswith(" Not drawn: 1 kernel, 25 % of the time.")
    long = pl.col("kernel") + "x" * 5_000
    many = drawn(profile(MAX_KERNELS + 7).with_columns(long))
    assert len(many["datasets"]["dots"]) == MAX_KERNELS
    assert " Not drawn: 7 kernels, " in finding(many)[1]


@pytest.mark.parametrize("intensity", [0.017, 0.2, 1.9, 5, 19, 25, 60, 1e4])
def test_a_dot_and_its_roof_are_in_the_plot(intensity):
    roof = Roof(plain_lines(RATE, {"bf16": 989e12}), [(intensity, 1e12)])
    assert roof.low < min(intensity, roof.main["ridge"])
    assert roof.high > max(intensity, roof.main["ridge"])


@pytest.mark.parametrize("number", [2, 7, 40, 300])
def test_no_label_overlaps_another(number):
    kernels = profile(number)
    spec = drawn(kernels)
    assert invalid({"kernels": spec}) == {}
    for size in ("slide", "web", "paper"):
        assert misfits({"kernels": spec}, size) == {}
    shown = {text.text for text in texts(spec, "slide")}
    assert "HBM at 3.35 TB/s" in finding(spec)[1]
    assert {"bf16, matrix · 989 TFLOP/s", "fp32, vector · 67 TFLOP/s"} & shown
    shares = kernels["seconds"] / kernels["seconds"].sum()
    named = [any(text.endswith(f" · {100 * share:.3g} %") for text in shown) for share in shares]
    assert named[0] or number > 7
    assert any(named[:MAX_NAMES]) or number > 40  # there may be no room


def test_the_kernel_that_takes_most_time_is_named_where_others_crowd_it():
    """Dots left, right and below it, and the name of the peak, leave no free place near it."""
    tensor, vector = PEAKS
    crowd = [
        ("vectorized_elementwise_kernel<4, float>", tensor, 516.7, 9.0e14, 1.19e-3),
        ("gemm", vector, 69.4, 6.47e13, 8.7e-4),
        (HOSTILE, tensor, 596.7, 9.51e14, 7.7e-5),
        ("kernel_4", tensor, 589.7, 4.31e14, 7e-6),
        ("kernel_2", tensor, 342.3, 4.87e14, 4e-6),
        ("kernel_5", tensor, 1.03, 1.5e12, 2.3e-7),
    ]
    launches = [
        Launch(name, "9.0", {key: Fraction(rate * s)}, Fraction(rate * s / intensity), Fraction(s))
        for name, key, intensity, rate, s in crowd
    ]
    spec = drawn(kernel_frame(launches, chip_entries()["h100-sxm"]))
    assert any(text.text.endswith(" · 55.4 %") for text in texts(spec, "slide"))
    assert misfits({"kernels": spec}, "slide") == {}


def test_the_command_writes_a_picture_by_the_suffix(tmp_path, capsys):
    starts = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF", "html": b"<!DOCTYPE html>"}
    for form, start in starts.items():
        out = tmp_path / f"kernels.{form}"
        words = ("kernels", str(ROUND), "--chip", "h100-sxm", "--out", str(out))
        assert "roofline 211 µs on h100-sxm (70.2%)" in said(
            capsys, *words, "--size", "paper", "--dark"
        )
        assert out.read_bytes().startswith(start)


def test_a_name_does_not_run_in_a_page(tmp_path, capsys):
    path, page = tmp_path / "kernels.csv", tmp_path / "kernels.html"
    cell = HOSTILE.replace('"', '""')
    path.write_text(raw(ONE | {BF16: ("", "999")}).replace('"k"', f'"{cell}"'))
    said(capsys, "kernels", str(path), "--chip", "h100-sxm", "--out", str(page))
    assert "document.title" in page.read_text()
    assert "<script>document" not in page.read_text()
