"""Charts of timings: their numbers by hand, which a config gets, and what a run makes of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl
import pytest
from charted import wrong
from scenes import invalid, misfits, overlaps

import rooflines
from rooflines import RooflinesError, charts
from rooflines.charts.families import fitted, unchecked
from rooflines.charts.job import write_charts
from rooflines.charts.kinds.measured_errors import _edges
from rooflines.charts.kinds.measured_roofline import _hull
from rooflines.charts.measured import FEWEST_DOTS, dots_each, medians, sampled
from rooflines.fits.entries import Calibrations, shipped_calibrations, text_of
from rooflines.run.measured_jobs import write_measured
from rooflines.run.plan import plan
from rooflines.run.solving import write_thresholds

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ["measured-roofline", "measured-ratio", "measured-errors"]

HEAD = "chip,software,dtype_x,dtype_w,dtype_out,compute,B,D,F,seconds\n"
BF16 = "trtllm,bf16,bf16,bf16,bf16"
TIMINGS = (
    f"{HEAD}"
    f"h100-sxm,{BF16},1024,8192,8192,2e-4\n"
    f"h100-sxm,{BF16},1500,8192,8192,4e-4\n"
    f"h100-sxm,{BF16},1,4096,4096,9e-6\n"
    "tpu-v5e,,bf16,bf16,bf16,bf16,1024,8192,8192,2e-3\n"
    "h100-sxm,trtllm,fp8,fp8,bf16,fp8,1024,8192,8192,2e-4\n"
    "tpu-v5e,trtllm,fp8,fp8,bf16,fp8,1024,8192,8192,2e-3\n"
)
"""Two compute-bound timings, one in cache, one without software and calibration, one of a second
dtype, and one of a dtype that the chip lacks."""

BOTH = {"timed": {"file": "timed.csv"}, "nccl": {"file": "nccl.csv", "where": {"software": "x"}}}
"""Sets of matmuls and of collectives."""

COLLECTIVES = "chip,collective,shards,bytes,seconds\nh100-sxm,all-gather,8,1073741824,5e-3\n"

FLOPS = 2 * 1024 * 8192 * 8192
OPERANDS = 2 * (1024 * 8192 * 2 + 8192 * 8192)
"""The bytes of the first timing's operands and result."""

SWEEP: dict[str, Any] = {
    "operation": "matmul",
    "grid": {"B": [1, 64], "D": [64, 4096], "F": [64, 4096]},
    "dtypes": ["bf16"],
    "chips": ["h100-sxm", "b200", "tpu-v5e"],
    "calibration": "trtllm",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with timings."""
    (tmp_path / "timed.csv").write_text(TIMINGS, encoding="utf-8")
    (tmp_path / "nccl.csv").write_text(COLLECTIVES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def loaded(**keys: Any) -> rooflines.Config:  # noqa: ANN401, whatever a config holds
    """A config with the timings."""
    return rooflines.load_config({"measurements": {"timed": {"file": "timed.csv"}}, **keys})


def frame_of(chart: str) -> pl.DataFrame:
    """The frame of a chart of all timings."""
    of = charts.of_config(loaded()).of_measured(
        "timed", ["h100-sxm", "tpu-v5e"], ["bf16", "fp8-out-bf16"]
    )
    frame: pl.DataFrame = getattr(charts, f"{chart.replace('-', '_')}_frame")(of)
    return frame


def h100(frame: pl.DataFrame, **values: str) -> pl.DataFrame:
    """The rows of the first three timings."""
    return frame.filter(chip="h100-sxm", software="trtllm", dtypes="bf16", **values)


# ---------------------------------------------------------------- numbers by hand


@pytest.mark.usefixtures("folder")
def test_a_roofline_has_the_bound_and_what_timings_attain() -> None:
    """989 TFLOP/s and 3.35 TB/s of an H100; the operands of a small matmul fit its cache."""
    frame = frame_of("measured-roofline")
    bound = h100(frame, kind="bound").row(0, named=True)
    assert (bound["flops_per_s"], bound["bytes_per_s"]) == (989e12, 3.35e12)
    assert bound["intensity"] == 989e12 / 3.35e12
    assert bound["timings"] == 3
    # 137.4 GFLOP take 139 us, and were measured at 200; the others are at 0.509 and 1.11
    assert bound["share"] == pytest.approx(FLOPS / 989e12 / 2e-4)
    timings = h100(frame, kind="timing")
    assert timings["flops_per_s"].to_list()[0] == pytest.approx(FLOPS / 2e-4)
    assert timings["intensity"].to_list()[0] == pytest.approx(FLOPS / OPERANDS)
    assert timings["in_cache"].to_list() == [False, False, True]
    unnamed = frame.filter(chip="tpu-v5e")
    assert set(unnamed["software"]) == {"software not stated"}
    assert set(unnamed["kind"]) == {"bound", "timing"}


@pytest.mark.usefixtures("folder")
def test_the_estimate_of_a_roofline_is_that_of_its_timings() -> None:
    """The upper hull of what the estimates attain, each with its band."""
    table = rooflines.measurements(loaded(), "timed")
    rows = h100(table).sort("memory_intensity")
    estimate = h100(frame_of("measured-roofline"), kind="estimate")
    for column, seconds in (
        ("flops_per_s", "t_estimate_s"),
        ("low", "t_estimate_p90_s"),
        ("high", "t_estimate_p10_s"),
    ):
        expected = (rows["flops"] / rows[seconds]).to_list()
        assert set(estimate[column].to_list()) <= set(expected)
    assert estimate["intensity"].is_sorted()
    assert estimate["flops_per_s"].max() == (rows["flops"] / rows["t_estimate_s"]).max()


def test_a_hull_leaves_out_what_lies_below_it() -> None:
    """The third point lies below the line from the second to the last; the first one starts it."""
    assert _hull([(0, 0), (1, 2), (2, 2), (3, 3.2), (4, 3.3)]) == [0, 1, 3, 4]
    assert _hull([(0, 0), (1, 1), (2, 2)]) == [0, 2]
    assert _hull([(0, 5)]) == [0]
    assert _hull([]) == []


@pytest.mark.usefixtures("folder")
def test_ratios_are_medians_of_all_timings() -> None:
    """Of 1.44, 1.97 and 0.898 times the bound."""
    frame = frame_of("measured-ratio")
    every = h100(frame, kind="all").row(0, named=True)
    assert every["ratio_lower"] == pytest.approx(2e-4 / (FLOPS / 989e12))
    assert every["timings"] == 3
    # 139 and 204 us share one of six bins in a factor of ten, 10 us has another
    bins = h100(frame, kind="median")
    assert bins["timings"].to_list() == [1, 1, 1]
    assert bins["ratio_lower"][0] == pytest.approx(9e-6 / (2 * (2 * 4096 + 4096**2) / 3.35e12))
    unnamed = frame.filter(chip="tpu-v5e", kind="all").row(0, named=True)
    assert unnamed["ratio_estimate"] is None
    assert unnamed["ratio_lower"] == pytest.approx(2e-3 / (FLOPS / 197e12))


@pytest.mark.usefixtures("folder")
def test_errors_are_medians_of_cells_of_a_factor_of_four() -> None:
    """B of 1,024 and 1,500, and D * F = 2^26; the lower edge is in a cell."""
    frame = frame_of("measured-errors")
    cells = h100(frame, kind="cell", of="bound").sort("x_low")
    assert cells.select("x_low", "x_high", "y_low", "y_high", "timings").rows() == [
        (1.0, 4.0, 2.0**24, 2.0**26, 1),
        (1024.0, 4096.0, 2.0**26, 2.0**28, 2),
    ]
    # 4^15 - 1 is in the cell from 2^28 to 2^30, although its logarithm rounds to that of 2^30
    edge = pl.DataFrame({"size": [2**30 - 1, 2**30, 3, 4]}).select(**_edges("x", pl.col("size")))
    assert edge["x_low"].to_list() == [2.0**28, 2.0**30, 1.0, 4.0]
    first, second = 1 - FLOPS / 989e12 / 2e-4, 1 - FLOPS * 1500 / 1024 / 989e12 / 4e-4
    assert cells["error"][1] == pytest.approx((first + second) / 2)
    assert h100(frame, kind="all", of="bound")["error"][0] == pytest.approx(first)
    assert frame.filter(chip="tpu-v5e")["of"].unique().to_list() == ["bound"]


# ---------------------------------------------------------------- many timings


def many(count: int) -> pl.DataFrame:
    """Timings on a grid of two columns, every third in cache."""
    index = pl.int_range(count, eager=True)
    return pl.DataFrame(
        {"x": 1.01 ** (index % 997), "y": 1.003 ** ((index * 7919) % 4001)}
    ).with_columns(cached=index % 3 == 0)


@pytest.mark.parametrize("count", [200, 5_000, 100_000])
def test_a_sample_has_a_timing_of_every_cell(count: int) -> None:
    """No more than asked, on both sides of the cache, with the extremes near; always the same."""
    part = many(count)
    kept = sampled(part, "x", "y", 150, apart=["cached"])
    assert 60 < kept.height <= 150
    assert kept.equals(sampled(part, "x", "y", 150, apart=["cached"]))
    assert set(kept["cached"]) == {True, False}
    assert kept.join(part, on=["x", "y", "cached"], how="semi").height == kept.height
    for name in ("x", "y"):
        span = (part[name].max() / part[name].min()) ** 0.2  # type: ignore[operator]
        assert kept[name].min() < part[name].min() * span  # type: ignore[operator]
        assert kept[name].max() > part[name].max() / span  # type: ignore[operator]


def test_few_timings_are_all_drawn() -> None:
    """And equal ones are one cell."""
    part = many(150)
    assert sampled(part, "x", "y", 150) is part
    equal = pl.DataFrame({"x": [2.0] * 9, "y": [3.0] * 9})
    assert sampled(equal, "x", "y", 3).height == 1


def test_dots_are_shared_by_the_cases_of_a_chart() -> None:
    """Up to a least number in each."""
    assert dots_each(1) == 1800
    assert dots_each(9) == 200
    assert dots_each(1000) == FEWEST_DOTS


def test_medians_count_every_timing() -> None:
    """Of a bin of a sixth of a factor of ten."""
    part = pl.DataFrame({"x": [1.0, 1.2, 1.4, 10.0], "y": [1.0, 5.0, 2.0, 7.0]})
    assert medians(part, "x", y=pl.col("y")).rows() == [(1.2, 2.0, 3), (10.0, 7.0, 1)]


def test_a_chart_says_how_many_timings_it_draws(folder: Path) -> None:
    """Of 3,000 timings in one case."""
    rows = [
        f"h100-sxm,{BF16},{b},{1024 + 8 * d},4096,{2e-5 * (1 + (b * d) % 13):.3e}"
        for b in range(1, 61)
        for d in range(50)
    ]
    (folder / "timed.csv").write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")
    chosen = loaded()
    for spec in chosen.charts[:2]:
        frame, drawn = draw(chosen, spec)
        dots = frame.filter(kind="timing").height
        assert 600 < dots <= 1800
        said = next(p["value"] for p in drawn["params"] if p["name"] == "findings")
        subtitle = " ".join(said["h100-sxm|trtllm|bf16"]["subtitle"])
        assert f"Dots: {dots:,} of 3,000 timings, one per cell of a grid" in subtitle


# ---------------------------------------------------------------- which charts a config gets


def draw(chosen: rooflines.Config, spec: Any) -> tuple[pl.DataFrame, dict[str, Any]]:  # noqa: ANN401
    """A chart's frame and specification."""
    with unchecked():
        return fitted(charts.of_config(chosen), spec)


@pytest.mark.usefixtures("folder")
def test_a_set_gets_the_charts_of_timings() -> None:
    """The chip and the dtypes with most timings first; collectives have none."""
    chosen = loaded(measurements=BOTH)
    assert [spec.chart for spec in chosen.charts] == KINDS
    assert {spec.measurements for spec in chosen.charts} == {"timed"}
    for spec in chosen.charts:
        assert spec.chips == ("h100-sxm", "tpu-v5e")
        assert spec.dtypes == ("bf16", "fp8-out-bf16")
        frame, drawn = draw(chosen, spec)
        assert wrong(spec, frame) == []
        alt.LayerChart.from_dict({**drawn, "usermeta": {}}, validate=True)


@pytest.mark.usefixtures("folder")
def test_texts_of_charts_of_timings_have_room() -> None:
    """In both layouts."""
    chosen = loaded(sweeps={"s": {**SWEEP, "grid": {"B": 1, "D": [64, 4096], "F": "D"}}})
    kinds = [*KINDS, "critical-estimate"]
    specs = {spec.id: draw(chosen, spec)[1] for spec in chosen.charts if spec.chart in kinds}
    assert len(specs) == 4
    for size in ("web", "paper"):
        assert misfits(specs, size) == {}
        assert {
            name: overlaps(spec, size) for name, spec in specs.items() if overlaps(spec, size)
        } == {}
    assert invalid(specs) == {}


@pytest.mark.usefixtures("folder")
def test_a_listed_chart_shows_what_it_lists() -> None:
    """In this order."""
    listed = {
        "chart": "measured-ratio",
        "measurements": "timed",
        "chips": ["tpu-v5e", "h100-sxm"],
        "dtypes": ["bf16"],
        "id": "mine",
    }
    chosen = loaded(charts=[listed])
    (spec,) = chosen.charts
    assert (spec.id, spec.chips, spec.dtypes) == ("mine", ("tpu-v5e", "h100-sxm"), ("bf16",))
    frame, _ = draw(chosen, spec)
    assert frame["chip"].unique(maintain_order=True).to_list() == ["tpu-v5e", "h100-sxm"]


@pytest.mark.parametrize(
    ("entry", "where", "says"),
    [
        ({}, "charts[0]", "needs a set of timings"),
        ({}, "charts[0]", "add measurements: one of timed, nccl"),
        ({"measurements": "timd"}, "charts[0].measurements", "close to it: timed"),
        ({"measurements": "nccl"}, "charts[0].chart", "needs timings of matmuls"),
        ({"measurements": "timed", "sweep": "s"}, "charts[0].sweep", "a chart of timings"),
        ({"measurements": "timed", "sizes": [1]}, "charts[0].sizes", "leave it out"),
        ({"measurements": "timed", "chips": ["b200"]}, "charts[0].chips[0]", "no chip with rows"),
        ({"measurements": "timed", "dtypes": ["fp8"]}, "charts[0].dtypes[0]", "of set timed"),
        (
            {"measurements": "timed", "chips": ["tpu-v5e"], "dtypes": ["fp8-out-bf16"]},
            "charts[0].dtypes",
            "can do none",
        ),
        ({"chart": "ridges", "measurements": "timed"}, "charts[0].measurements", "leave it out"),
        ({"chart": "ridges"}, "charts[0]", "add sweep:"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_chart_of_timings_that_makes_no_sense_is_refused(
    entry: dict[str, Any], where: str, says: str
) -> None:
    """Where, what, and how to fix it."""
    listed = [{"chart": "measured-roofline", **entry}]
    with pytest.raises(RooflinesError) as caught:
        loaded(measurements=BOTH, sweeps={"s": SWEEP}, charts=listed)
    assert caught.value.where == where
    assert says in str(caught.value)


def test_without_timings_a_chart_of_them_says_what_it_needs() -> None:
    """A set under the config's key."""
    listed = [{"chart": "measured-errors", "measurements": "timed"}, {"chart": "measured-ratio"}]
    with pytest.raises(RooflinesError) as caught:
        rooflines.load_config({"sweeps": {"s": SWEEP}, "charts": listed})
    assert "no set of timings of this config" in str(caught.value)
    assert "describe one under `measurements:` of the config" in str(caught.value)


@pytest.mark.usefixtures("folder")
def test_a_selection_from_python_is_checked() -> None:
    """A set of collectives, an unknown chip, dtypes that no chip has timings of."""
    results = charts.of_config(loaded(measurements=BOTH))
    for asked, says in (
        (("nccl", ["h100-sxm"], ["bf16"]), "no matmuls"),
        (("timed", ["h100"], ["bf16"]), "close to it: h100-sxm"),
        (("timed", ["tpu-v5e"], ["fp8-out-bf16"]), "can do none"),
        (("other", ["h100-sxm"], ["bf16"]), "has no 'other'"),
    ):
        with pytest.raises(RooflinesError, match=says):
            results.of_measured(*asked)
    of = results.of_measured("timed", ["h100-sxm"], ["bf16"])
    assert repr(of) == "<MeasuredSelection of timed: h100-sxm; bf16>"


# ---------------------------------------------------------------- in a run


def test_a_run_draws_charts_of_its_timings(folder: Path) -> None:
    """From the table that the run joined; each file says which timings made it."""
    planned = plan(loaded(charts="auto"))
    results = folder / "results"
    (results / ".made").mkdir(parents=True)
    write_measured(planned.spec("measured/timed.parquet"), results / "measured" / "timed.parquet")
    write_thresholds(planned.spec("thresholds.parquet"), results / "thresholds.parquet")
    write_charts(planned.charts_spec(), results, results / "charts", folder / "drawn")
    index = json.loads((results / "charts" / "measured" / "index.json").read_text("utf-8"))
    assert [chart["id"] for chart in index] == [f"{kind}-timed" for kind in KINDS]
    for name in ("measured-ratio-timed.csv", "index.json"):
        found = rooflines.origin(results / "charts" / "measured" / name)
        assert found.whole
        assert set(found.measurements["timed"]["chips"]) == {"h100-sxm", "tpu-v5e"}
        assert found.sweeps == {}
    on_disk = charts.on_disk(results).of_measured("timed", ["h100-sxm"], ["bf16"])
    in_memory = charts.of_config(loaded()).of_measured("timed", ["h100-sxm"], ["bf16"])
    assert charts.measured_roofline_frame(on_disk).equals(charts.measured_roofline_frame(in_memory))
    with pytest.raises(RooflinesError, match="has no 'tmed'"):
        charts.on_disk(results).of_measured("tmed", ["h100-sxm"], ["bf16"])


def test_a_family_of_timings_depends_on_its_sets(folder: Path) -> None:
    """On the table of its set, and on the calibration; not on another set."""
    sets = {"timed": {"file": "timed.csv"}, "other": {"file": "other.csv"}}
    (folder / "other.csv").write_text(TIMINGS.replace("2e-4", "3e-4"), encoding="utf-8")
    listed = [{"chart": "measured-ratio", "measurements": "timed"}]

    def spec(**keys: Any) -> str:  # noqa: ANN401, whatever a config holds
        planned = plan(loaded(measurements=sets, charts=listed, **keys))
        assert planned.charts_inputs()["tables"] == ["<results>/measured/timed.parquet"]
        return planned.spec("charts/measured")

    first = spec()
    (folder / "other.csv").write_text(TIMINGS.replace("2e-4", "5e-4"), encoding="utf-8")
    assert spec() == first
    fit = shipped_calibrations().calibrations["h100-sxm/trtllm"]["bf16"]
    own = fit.model_copy(update={"overhead_s": fit.overhead_s + 1e-3})
    text = text_of(Calibrations(calibrations={"h100-sxm/trtllm": {"bf16": own}}))
    (folder / "own.yaml").write_text(text, encoding="utf-8")
    assert spec(calibrations=["own.yaml"]) != first
    (folder / "timed.csv").write_text(TIMINGS.replace("9e-6", "8e-6"), encoding="utf-8")
    assert spec() != first
