"""Charts of whole models: numbers as in rows, and no config ends in a traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import random_serving
from charted import drawn
from hypothesis import given
from random_sweeps import check
from scenes import choices, chosen, ill_titled, invalid, misfits, oversized

import rooflines
from rooflines import RooflinesError, charts
from rooflines.charts.families import fitted, unchecked

if TYPE_CHECKING:
    from rooflines.charts.chart import Spec

SWEEP: dict[str, Any] = {
    "models": ["llama-3.1-70b", "gpt-oss-120b"],
    "phase": ["decode", "prefill"],
    "grid": {"B": [1, 64, 185, 186, 512], "S": [8192, 1024]},
    "dtypes": ["bf16", "fp8"],
    "chips": ["h100-sxm", "b200", "tpu-v6e"],
    "splits": [{"tp": 8}, {"tp": 2}, {"dp": 8, "ep": 8}],
}


def config(**changes: Any) -> dict[str, Any]:  # noqa: ANN401, whatever a config holds
    """A config with one sweep of whole models."""
    return {"model-sweeps": {"mine": {**SWEEP, **changes}}}


def selected(**changes: Any) -> Any:  # noqa: ANN401, whatever a config holds
    """All chips and dtypes of it."""
    sweep = SWEEP | changes
    results = charts.of_config(rooflines.load_config(config(**changes)))
    return results.of_models("mine", sweep["chips"], sweep["dtypes"])


def specs(source: dict[str, Any]) -> dict[str, tuple[Spec, dict[str, Any]]]:
    """The charts of whole models of a config, by kind."""
    loaded = rooflines.load_config(source)
    results = charts.of_config(loaded)
    with unchecked():
        return {spec.chart: (spec, fitted(results, spec)[1]) for spec in loaded.charts}


def test_a_known_step_is_a_point() -> None:
    """Llama 3.1 70B on 8 H100, 64 sequences of 8,192 tokens: 11.597 ms, 689.8 tokens/s a chip."""
    frame = charts.pareto_frame(selected(), ["llama-3.1-70b"], [8192])
    (point,) = frame.filter(chip="h100-sxm", dtypes="bf16", split="tp8", B=64).to_dicts()
    assert point["t_lower_s"] == pytest.approx(11.597e-3, abs=5e-7)
    assert point["tokens_per_s_per_chip"] == pytest.approx(689.8, abs=0.05)
    assert (point["fits"], point["max_B"], point["routing"]) == (True, 185, None)
    experts = charts.pareto_frame(selected(routing="same"), ["gpt-oss-120b"])
    assert experts["routing"].unique().to_list() == ["same"]


def test_weights_and_caches_of_a_known_step() -> None:
    """39.11 of 80 GB on each chip for 64 sequences; 185 fit, 186 do not."""
    frame = charts.capacity_frame(selected(), ["llama-3.1-70b"], [8192])
    of_case = frame.filter(chip="h100-sxm", dtypes="bf16", split="tp8")
    assert of_case["B"].to_list() == SWEEP["grid"]["B"]
    assert of_case["fits"].to_list() == [True, True, True, False, False]
    (row,) = of_case.filter(B=64).to_dicts()
    assert row["footprint_bytes"] == pytest.approx(39.11e9, abs=5e6)
    assert row["weights_footprint_bytes"] == 2 * 70_553_706_496 / 8
    assert row["cache_footprint_bytes"] == 64 * 8192 * 163_840 * 2 / 8
    assert (row["capacity_bytes"], row["max_B"]) == (80e9, 185)


def test_a_front_has_what_no_other_case_that_fits_beats() -> None:
    """By comparing every pair of points."""
    frame = charts.pareto_frame(selected())
    assert frame["front"].any()
    for _, case in frame.group_by("model", "chip", "dtypes", "S"):
        fitting = case.filter("fits").select("t_lower_s", "tokens_per_s_per_chip").rows()
        ahead = {
            (time, rate)
            for time, rate in fitting
            if not any(t <= time and r >= rate and (t, r) != (time, rate) for t, r in fitting)
        }
        front = case.filter("front")
        assert front["fits"].all()
        points = front.select("t_lower_s", "tokens_per_s_per_chip").rows()
        assert set(points) == ahead
        assert len(points) == len(ahead)


def test_calibrated_points_are_the_estimates() -> None:
    """The rows' own, with a front of their own; a chip without a calibration has none."""
    calibrated = {"calibration": ["trtllm", "nccl"], "phase": "decode"}
    loaded = rooflines.load_config(config(**calibrated))
    rows = rooflines.model_rows(loaded, "mine").with_columns(
        pl.selectors.categorical().cast(pl.String)
    )
    frame = charts.pareto_frame(selected(**calibrated))
    both = frame.join(rows.collect(), on=["model", "chip", "dtypes", "split", "B", "S"])
    assert both.height == frame.height
    assert both["t_estimate_s"].to_list() == both["t_estimate_s_right"].to_list()
    known = both.drop_nulls("t_estimate_s")
    rates = known["B"] / known["t_estimate_s"] / known["chips"]
    assert known["tokens_per_s_per_chip_estimate"].to_list() == pytest.approx(rates.to_list())
    assert set(frame.filter("calibrated")["chip"]) == {"h100-sxm", "b200"}
    assert not frame.filter(chip="tpu-v6e")["front_estimate"].any()
    for _, case in frame.filter("fits", "calibrated").group_by("model", "chip", "dtypes", "S"):
        front = case.filter("front_estimate").sort("t_estimate_s")
        assert front["tokens_per_s_per_chip_estimate"].is_sorted()
        assert front["t_estimate_s"][0] == case["t_estimate_s"].min()


def test_the_menu_of_calibrated_numbers_shows_chips_that_have_them() -> None:
    """The subtitle names the others; a chip without a calibration has no finding there."""
    calibrated = {"calibration": ["trtllm", "nccl"], "phase": "decode"}
    _, spec = specs(config(**calibrated))["pareto"]
    findings = next(p["value"] for p in spec["params"] if p["name"] == "findings")
    said = findings["all|llama-3.1-70b|bf16|8192|calibrated"]
    assert "No calibration: TPU v6e." in " ".join(said["subtitle"])
    assert "all|llama-3.1-70b|bf16|8192|nominal" in findings
    assert not [key for key in findings if key.startswith("tpu") and key.endswith("calibrated")]


def test_a_front_under_another_is_wider() -> None:
    """That of two equal chips which is drawn first; a chip with a front of its own is not."""
    twin = {"twin": {"base": "h100-sxm", "source": "a test"}}
    changes = {"models": "llama-3.1-8b", "splits": [{"tp": 1}], "dtypes": ["bf16"]}
    source = config(**changes, chips=["h100-sxm", "twin", "b200"]) | {"chips": twin}
    _, spec = specs(source)["pareto"]
    rows = next(rows for rows in spec["datasets"].values() if "beneath" in rows[0])
    counts = {row["chip"]: row["beneath"] for row in rows}
    assert counts == {"h100-sxm": 1, "twin": 0, "b200": 0}


def test_of_equal_points_the_first_is_on_the_front() -> None:
    """Two replicas of a batch of two are as fast as one replica of a batch of one."""
    changes = {"models": "llama-3.1-8b", "grid": {"B": [1, 2], "S": 8192}}
    splits = [{"tp": 1}, {"tp": 1, "dp": 2}]
    frame = charts.pareto_frame(selected(**changes, splits=splits, chips=["b200"], dtypes=["bf16"]))
    points = frame.select("split", "B", "front").rows()
    assert points == [("tp1", 1, True), ("tp1", 2, True), ("tp1-dp2", 2, False)]


def test_a_case_is_shown_from_the_first_memory_level_and_network() -> None:
    """One point for every batch and split."""
    for changes in ({"memory": ["hbm", "l2"]}, {"network": ["nvlink", ["nvlink", "infiniband"]]}):
        several, one = (
            charts.pareto_frame(selected(chips=["h100-sxm"], **more)) for more in (changes, {})
        )
        assert several.equals(one)


def test_chips_of_unknown_capacity_are_left_out() -> None:
    """Of a sweep with other chips; without any it has no charts."""
    own = {
        "name": "x",
        "vendor": "x",
        "units": {"matrix": {"bf16": {"flops_per_s": 1e15, "source": ["a test"]}}},
        "memory": {"hbm": {"bytes_per_s": 1e12, "source": ["a test"]}},
    }
    chips = {"unknown": own}
    both = config(chips=["unknown", "b200"], splits=[{"tp": 1}]) | {"chips": chips}
    assert {spec.chips for spec in rooflines.load_config(both).charts} == {("b200",)}
    alone = config(chips=["unknown"], splits=[{"tp": 1}]) | {"chips": chips}
    assert rooflines.load_config(alone).charts == ()


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({}, ["pareto", "capacity"]),
        ({"phase": "prefill"}, ["capacity"]),
        ({"phase": "decode", "grid": {**SWEEP["grid"], "T": 4}}, ["capacity"]),
        ({"grid": {"B": 8, "S": 1024}}, []),
        ({"columns": ["fits", "t_lower_s"]}, []),
        (
            {
                "phase": "decode",
                "grid": {"B": [1, 8]},
                "requests": [{"input": 10, "output": 10}],
            },
            [],
        ),
    ],
)
def test_a_sweep_gets_the_charts_that_fit_it(changes: dict[str, Any], kinds: list[str]) -> None:
    """Latency of decoding; what fits."""
    assert [spec.chart for spec in rooflines.load_config(config(**changes)).charts] == kinds


@pytest.mark.parametrize(
    ("chart", "where", "says"),
    [
        ({"chart": "pareto", "sweep": "min"}, "sweep", "close to it: mine"),
        ({"chart": "roofline", "sweep": "mine"}, "sweep", "no sweep of operations"),
        ({"chart": "pareto", "sweep": "ops"}, "sweep", "no sweep of whole models"),
        ({"chart": "pareto", "sweep": "mine", "model": "llama"}, "model", "llama-3.1-70b"),
        ({"chart": "pareto", "sweep": "mine", "sizes": [1]}, "sizes[0]", "no context of"),
        ({"chart": "pareto", "sweep": "mine", "chips": ["h100"]}, "chips[0]", "h100-sxm"),
        ({"chart": "pareto", "sweep": "mine", "shape": "x"}, "shape", "leave it out"),
        ({"chart": "pareto", "sweep": "prompts"}, "chart", "needs decode among its `phase`"),
        ({"chart": "capacity", "sweep": "few"}, "chart", "add footprint_bytes"),
    ],
)
def test_a_chart_that_makes_no_sense_is_refused(
    chart: dict[str, Any], where: str, says: str
) -> None:
    """Where, what, what is close to it, and how to fix it."""
    operations = {"operation": "matmul", "grid": {"B": 1, "D": 8, "F": 8}, "dtypes": "bf16"}
    stored = ["weights_footprint_bytes", "cache_footprint_bytes", "fits", "max_B"]
    source = {
        "sweeps": {"ops": {**operations, "chips": ["b200"]}},
        "model-sweeps": {
            **config()["model-sweeps"],
            "prompts": {**SWEEP, "phase": "prefill"},
            "few": {**SWEEP, "columns": stored},
        },
        "charts": [chart],
    }
    with pytest.raises(RooflinesError) as caught:
        rooflines.load_config(source)
    assert caught.value.where == f"charts[0].{where}"
    assert says in str(caught.value)


def test_a_chart_shows_what_the_config_asks_for() -> None:
    """One model, some contexts, chips and dtypes."""
    asked = {"model": "gpt-oss-120b", "sizes": [1024], "chips": ["b200"], "dtypes": ["fp8"]}
    listed = [{"chart": kind, "sweep": "mine", **asked} for kind in ("pareto", "capacity")]
    loaded = rooflines.load_config(config() | {"charts": listed})
    for spec in loaded.charts:
        with unchecked():
            frame, _ = fitted(charts.of_config(loaded), spec)
        keys = frame.select("model", "S", "chip", "dtypes").unique().rows()
        assert keys == [("gpt-oss-120b", 1024, "b200", "fp8")]


def test_capacity_starts_with_the_fewest_chips_that_hold_a_batch() -> None:
    """Two H100 hold the weights of Llama 3.1 70B in bf16, one does not."""
    splits = [{"tp": 8}, {"tp": 1}, {"tp": 2}]
    _, spec = specs(config(models="llama-3.1-70b", splits=splits))["capacity"]
    shown = {p["name"]: p["value"] for p in spec["params"] if p["name"] in ("chip", "split")}
    assert shown == {"chip": "h100-sxm", "split": "tp2"}


def test_frames_refuse_a_sweep_that_lacks_what_they_need() -> None:
    """As charts of a config do."""
    with pytest.raises(RooflinesError, match="has no chart pareto, which needs decode"):
        charts.pareto_frame(selected(phase="prefill"))
    with pytest.raises(RooflinesError, match="no model of sweep mine"):
        charts.pareto_frame(selected(), ["llama"])
    results = charts.of_config(rooflines.load_config(config()))
    with pytest.raises(RooflinesError, match="can do none"):
        results.of_models("mine", [], ["bf16"])


def test_pictures_are_drawn_without_overlaps_whatever_a_reader_chooses() -> None:
    """In every size; titles fit, and specifications are valid and small."""
    drawn_specs = {kind: spec for kind, (_, spec) in specs(config()).items()}
    assert set(drawn_specs) == {"pareto", "capacity"}
    assert ill_titled(drawn_specs) == []
    assert invalid(drawn_specs) == {}
    assert oversized(drawn_specs) == []
    for kind, spec in drawn_specs.items():
        options = list(choices(spec))
        some = {
            str(n): chosen(spec, choice) for n, choice in enumerate(options[:: len(options) // 8])
        }
        for size in ("web", "paper"):
            assert misfits(some, size) == {}, kind


@check(40)
@given(random_serving.configs())
def test_charts_of_a_random_sweep_can_be_drawn(source: dict[str, Any]) -> None:
    """Or are refused in one message; those of `auto` always can."""
    drawn(source, listed=True)
