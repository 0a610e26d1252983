"""No config ends in a traceback: charts of `auto` can be drawn, others are refused if not."""

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from charted import charted, drawn
from contours import points
from hypothesis import given
from polars.testing import assert_frame_equal
from random_sweeps import check

import rooflines
from rooflines import RooflinesError, charts
from rooflines.charts.families import fitted, unchecked
from rooflines.charts.frames import SHARES, reached_text
from rooflines.charts.job import write_charts
from rooflines.charts.kit import render
from rooflines.run.jobs import write_part
from rooflines.run.plan import plan
from rooflines.run.solving import write_thresholds

MATMUL: dict[str, Any] = {
    "operation": "matmul",
    "grid": {
        "B": {"from": 1, "to": 4096, "factor": 2},
        "D": [1024, 4096, 8192],
        "F": [1024, 4096, 8192],
    },
    "dtypes": ["bf16"],
    "chips": ["h100-sxm", "tpu-v5e", "b200"],
}


def matmul(**changes: Any) -> dict[str, Any]:  # noqa: ANN401, values of a config
    """A config with one sweep of a matmul."""
    return {"sweeps": {"mine": {**MATMUL, **changes}}}


def layers(memory: Any, *chips: str) -> dict[str, Any]:  # noqa: ANN401, values of a config
    """A config with two layers of a model, from these memory levels."""
    shapes = [{"name": "m-up", "D": 4096, "F": 8192}, {"name": "m-down", "D": 8192, "F": 4096}]
    return matmul(grid={"B": MATMUL["grid"]["B"]}, shapes=shapes, memory=memory, chips=list(chips))


def frame_of(config: dict[str, Any], chart: str) -> pl.DataFrame:
    """The frame of one of the charts that a config gets."""
    loaded = rooflines.load_config(config)
    (spec,) = [spec for spec in loaded.charts if spec.chart == chart]
    with unchecked():
        return fitted(charts.of_config(loaded), spec)[0]


def grid(*sizes: int) -> dict[str, Any]:
    """The same sizes of D and F."""
    return {**MATMUL["grid"], "D": list(sizes), "F": list(sizes)}


@pytest.mark.parametrize(
    ("config", "kinds"),
    [
        (matmul(grid=grid(64, 128, 8192)), {"critical", "critical-map", "attained"}),
        (matmul(grid=grid(64, 128, 256)), {"critical", "critical-map", "attained"}),
        (matmul(sharding="batch/gather-w", shards=[4]), {"critical", "critical-map"}),
        (matmul(sharding="contracting/all-reduce", shards=[4]), {"critical", "critical-map"}),
        (matmul(sharding="column/gather-x", shards=[4]), {"critical", "critical-map"}),
        (layers(["vmem", "hbm"], "h100-sxm"), {"time", "layers"}),
        (layers(["vmem", "hbm"], "h100-sxm", "tpu-v5e"), {"time", "layers"}),
    ],
)
def test_an_ordinary_config_gets_charts_that_can_be_drawn(
    config: dict[str, Any], kinds: set[str]
) -> None:
    """Few compute-bound sizes or none, splits bound by the network, levels that a chip lacks."""
    assert kinds <= set(drawn(config))


def test_where_nothing_is_ever_compute_bound_the_whole_map_is_never() -> None:
    """No contour, and no size left of the border of never."""
    frame = frame_of(matmul(grid=grid(16, 32, 64)), "critical-map")
    assert set(frame["kind"]) == {"never"}
    assert (frame["F"] == frame["top"]).all()


@pytest.mark.parametrize(
    "sharding",
    ["batch/gather-w", "column/gather-x", "contracting/all-reduce", "contracting/reduce-scatter"],
)
def test_contours_of_a_split_matmul_are_its_thresholds(sharding: str) -> None:
    """Just above a contour's F the thresholds are below its level, just below they are above."""
    split = {"sharding": sharding, "shards": [4], "chips": ["h100-sxm"]}
    low, high = 256, 65536
    lines = points(frame_of(matmul(grid=grid(low, 4096, high), **split), "critical-map"))
    lines = lines.filter(
        pl.col("F").is_between(low, 4 * high, closed="none"),
        pl.col("D").is_between(low, 2 * high, closed="none"),
    )
    assert lines.height > 20
    checked = 0
    for row in lines.gather_every(7).iter_rows(named=True):
        at = {
            "B": [1],
            "D": [round(row["D"] * 0.98), round(row["D"] * 1.02)],
            "F": [round(row["F"] * 0.98), round(row["F"] * 1.02)],
        }
        near = rooflines.thresholds(
            rooflines.load_config({**matmul(grid=at, **split), "charts": []})
        ).sort("D", "F")
        before, *_, after = near["critical_exact"].to_list()
        assert before is None or before > row["level"] * (1 - 1e-9)
        assert (
            (after is not None)
            if row["kind"] == "never"
            else (after is not None and after < row["level"])
        )
        checked += 1
    assert checked > 3


@pytest.mark.parametrize(
    ("config", "kinds"),
    [
        (
            matmul(sharding="contracting/all-reduce", shards=[1, 2, 4, 8]),
            {"critical", "critical-map", "shards"},
        ),
        (matmul(chips="tpu-v5e"), {"critical", "critical-map", "attained"}),
        (layers("hbm", "h100-sxm", "tpu-v5e"), {"layers"}),
    ],
)
def test_charts_are_of_sizes_at_the_whole_peak(config: dict[str, Any], kinds: set[str]) -> None:
    """Rates and smaller shares only add columns and rows; without share 1 no chart is left."""

    def loaded(**solved: Any) -> rooflines.Config:  # noqa: ANN401, values of a config
        return rooflines.load_config({"sweeps": {"mine": {**config["sweeps"]["mine"], **solved}}})

    alone = loaded(thresholds=["B"])
    among = loaded(thresholds=["peak", "B", "memory_rate"], shares=[0.5, 1, 0.9])
    assert [spec.chart for spec in alone.charts] == [spec.chart for spec in among.charts]
    with unchecked():
        for spec in alone.charts:
            if spec.chart in {*kinds, "bounds"}:
                expected, found = (fitted(charts.of_config(c), spec)[0] for c in (alone, among))
                if "kind" in found.columns:
                    assert "share" in set(found["kind"]) - set(expected["kind"])
                    found = found.filter(pl.col("kind") != "share")
                assert_frame_equal(
                    found.drop(SHARES, strict=False), expected.drop(SHARES, strict=False)
                )
                if {*SHARES} <= {*found.columns}:
                    solved = found.filter(kind="shape") if "kind" in found.columns else found
                    size = "level" if "level" in found.columns else "critical"
                    never = solved.filter(pl.col(size).is_null())
                    near = never.select(pl.col("near").str.contains(r"^[\d,]+ at 90 %"))
                    assert near.to_series().equals(never["reached"].is_not_null())
                    assert (solved["share"] == 0.9).all()
    left = {spec.chart for spec in loaded(thresholds=["B"], shares=[0.9]).charts}
    assert {spec.chart for spec in alone.charts} - left == kinds


def test_sizes_that_are_never_compute_bound_but_nearly_are_counted() -> None:
    """One of two; nothing is said if none comes near, or no smaller share was asked."""
    cells = [(300, 270, 0.9), (None, 512, 0.9), (None, None, 0.9)]
    assert reached_text(cells) == " Of 2 never compute-bound, 1 reaches 90 % of the peak."
    assert (
        reached_text([*cells, cells[1]]) == " Of 3 never compute-bound, 2 reach 90 % of the peak."
    )
    assert reached_text(cells[::2]) == ""
    assert reached_text((size, None, None) for size, *_ in cells) == ""


def test_a_chart_shows_the_first_memory_level_that_each_chip_has() -> None:
    """A chip without the sweep's first level is shown from the next one."""
    config = rooflines.load_config(layers(["vmem", "hbm"], "h100-sxm", "tpu-v5e"))
    of = charts.of_config(config).of("mine", ["h100-sxm", "tpu-v5e"], ["bf16"])
    assert {chip: chip_rows.memory for chip, chip_rows in of.by_chip.items()} == {
        "h100-sxm": "hbm",
        "tpu-v5e": "vmem",
    }
    assert set(of.rows().select("chip", "memory").unique().collect().rows()) == {
        ("h100-sxm", "hbm"),
        ("tpu-v5e", "vmem"),
    }
    assert set(frame_of(layers(["vmem", "hbm"], "h100-sxm", "tpu-v5e"), "time")["chip"]) == {
        "h100-sxm",
        "tpu-v5e",
    }


def test_a_frame_refuses_a_sweep_that_lacks_what_its_chart_needs() -> None:
    """From Python as from a config: the same reason."""
    of = charts.of_config(rooflines.load_config(matmul(tile={"B": 128}))).of(
        "mine", ["h100-sxm"], ["bf16"]
    )
    with pytest.raises(
        RooflinesError,
        match=r"sweeps\.mine has no chart critical-map, which needs sizes without tiles",
    ):
        charts.contour_frame(of)
    with pytest.raises(
        RooflinesError, match="has no chart layers, which needs shapes that give every size"
    ):
        charts.layer_frame(of, {})


def test_prices_are_shown_of_chips_that_have_them() -> None:
    """The seven chips that are named most often may have none; then it shows those with a price."""
    config = matmul(grid={"B": [1, 8], "D": [4096], "F": [4096]}, chips="all")
    assert frame_of(config, "per-dollar")["flops_per_usd"].count() > 1


def test_a_curve_of_tiles_has_as_many_points_as_any_other() -> None:
    """41 of six thousand sizes, even on a log axis where sizes are whole; rows of the table."""
    tiled = {
        "grid": {"B": {"from": 1, "to": 6000, "step": 1}, "D": 4096, "F": "D"},
        "tile": {"B": 16},
        "chips": ["h100-sxm"],
    }
    config = rooflines.load_config(matmul(**tiled))
    curve = frame_of(matmul(**tiled), "attained").filter(kind="curve")
    sizes = curve["size"].sort().to_list()
    step = 6000 ** (1 / 40)
    assert len(sizes) <= 41
    assert (sizes[0], sizes[-1]) == (1, 6000)
    assert all(larger <= math.ceil(smaller * step) for smaller, larger in pairwise(sizes))
    table = (
        rooflines.rows(config, "mine")
        .select("attained_flops_per_s", size=pl.col("B").cast(pl.Float64))
        .collect()
    )
    both = curve.join(table, on="size")
    assert both.height >= curve.height - 1
    assert ((both["flops_per_s"] / both["attained_flops_per_s"] - 1).abs() < 1e-12).all()


def test_a_chart_that_auto_chose_is_left_out_where_it_is_too_large(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a line in the job's log; the run goes on. One that the config lists is refused."""
    shapes = [{"name": f"layer-{i}", "D": 1024 + i, "F": 4096} for i in range(300)]
    large = {
        "grid": {"B": [1, 64, 4096]},
        "shapes": shapes,
        "chips": ["h100-sxm"],
        "sharding": "column/gather-x",
        "shards": [1, 2],
    }
    planned = plan(rooflines.load_config(matmul(**large)))
    for part in planned.parts:
        write_part(part.spec, tmp_path / part.path)
    write_thresholds(planned.spec("thresholds.parquet"), tmp_path / "thresholds.parquet")
    write_charts(planned.charts_spec(), tmp_path, tmp_path / "charts", tmp_path / "drawn")
    assert json.loads((tmp_path / "charts" / "time" / "index.json").read_text()) == []
    said = [
        line for line in capsys.readouterr().out.splitlines() if "charts: time-mine takes" in line
    ]
    assert [line.endswith("left out") for line in said] == [True]
    listed = plan(
        rooflines.load_config({**matmul(**large), "charts": [{"chart": "time", "sweep": "mine"}]})
    )
    with pytest.raises(
        RooflinesError, match=r"charts: time-mine takes .* bytes, more than 500,000"
    ):
        write_charts(listed.charts_spec(), tmp_path, tmp_path / "charts", tmp_path / "drawn")


def test_chips_for_which_a_page_has_no_room_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the subtitle, and by name in the job's log; the title is about those that are shown."""
    chips = ["h100-sxm", "tpu-v5e", "b200", "tpu-v5p"]
    small = {"grid": {"B": [1, 64], "D": [4096], "F": [4096]}, "chips": chips}
    config = rooflines.load_config(matmul(**small))
    (spec,) = [spec for spec in config.charts if spec.chart == "chips"]
    with unchecked():
        _, every = fitted(charts.of_config(config), spec)
    monkeypatch.setattr(render, "MOST_BYTES", len(render.dumps(every)) - 2000)
    with unchecked():
        frame, some = fitted(charts.of_config(config), spec)
    assert set(frame["chip"]) == {"h100-sxm", "tpu-v5e"}
    assert some["usermeta"]["claims"]["all|bf16"]["over"]["chip"] == ["h100-sxm", "tpu-v5e"]
    (said,) = (each["value"] for each in some["params"] if each["name"] == "findings")
    assert said["all|bf16"]["title"] == "In bf16 H100 SXM needs 1.23 times the intensity of TPU v5e"
    assert said["all|bf16"]["subtitle"][0].startswith("2 of 4 chips. bf16: dense peak over")
    assert some["description"].endswith(" 2 of 4 chips.")
    planned = plan(replace(config, charts=(spec,)))
    write_thresholds(planned.spec("thresholds.parquet"), tmp_path / "thresholds.parquet")
    write_charts(planned.charts_spec(), tmp_path, tmp_path / "charts", tmp_path / "drawn")
    line = "charts: chips-mine has no room for b200, tpu-v5p: left out"
    assert line in capsys.readouterr().out.splitlines()


@check(20)  # `make verify` draws 600
@given(config=charted())
def test_every_chart_of_a_random_config_can_be_drawn(config: dict[str, Any]) -> None:
    """No traceback, and a finite number wherever a chart draws one."""
    drawn(config)
