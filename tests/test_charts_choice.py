"""Charts of a config: one of each kind that fits it, or the listed ones; and messages."""

from typing import Any

import pytest
from documents import config_schema
from processes import python

import rooflines
from rooflines import RooflinesError
from rooflines.charts.chart_data import of_config
from rooflines.charts.chart_files import write_chart
from rooflines.charts.registry import REPLACED, kinds
from rooflines.run.plan import plan

SWEEP: dict[str, Any] = {
    "operation": "matmul",
    "grid": {"B": {"from": 1, "to": 4096, "factor": 2}, "D": [1024, 4096], "F": "D"},
    "dtypes": ["bf16", "w8a16"],
    "chips": ["tpu-v5e", "h100-sxm"],
}


def chosen(**changes):
    config = rooflines.load_config({"sweeps": {"mine": {**SWEEP, **changes}}})
    return [chart.chart for chart in config.charts]


def test_every_kind_has_a_place_in_the_schema():
    schema = config_schema()["$defs"]["ChartConfig"]
    assert schema["properties"]["chart"]["enum"] == list(kinds())
    assert len(kinds()) == 12
    assert not {*REPLACED} & {*kinds()}


def test_reading_and_planning_a_config_imports_no_library_for_charts():
    program = (
        "import rooflines, sys; from rooflines.run.plan import plan; plan(rooflines.load_config());"
        "print([name for name in ('altair.vegalite', 'polars.dataframe', 'PIL', 'vl_convert')"
        " if name in sys.modules])"
    )
    assert python("-c", program).stdout == "[]\n"


def test_auto_draws_at_most_one_chart_of_each_kind():
    assert chosen() == ["roofline", "chips", "attained", "critical", "who-binds"]
    assert chosen(chips=["tpu-v5e"]) == ["roofline", "attained"]
    few = {"B": [1, 2], "D": [64, 128, 256, 512], "F": 64}
    assert chosen(thresholds=[], grid=few) == ["roofline", "chips"]
    assert "attained" not in chosen(columns=["bound", "utilization"])
    several = {f"sweep-{n}": SWEEP for n in range(3)} | {
        "wide": {**SWEEP, "chips": ["tpu-v5e", "h100-sxm", "b200"]}
    }
    charts = rooflines.load_config({"sweeps": several}).charts
    assert len({chart.chart for chart in charts}) == len(charts)
    assert {chart.sweep for chart in charts} == {"wide"}


def test_a_chart_of_auto_that_has_nothing_to_say_is_left_out(tmp_path):
    dot = {"operation": "dot", "grid": {"D": {"from": 1, "to": 4096, "factor": 2}}}
    config = rooflines.load_config({"sweeps": {"dot": {**SWEEP, **dot, "dtypes": ["fp32"]}}})
    (chart,) = (chart for chart in config.charts if chart.chart == "who-binds")
    entry = write_chart(of_config(config), chart, ["svg"], tmp_path)
    assert "says nothing of dot" in entry["left_out"]


def test_a_list_is_drawn_as_it_stands_and_an_empty_one_not_at_all():
    charts = [
        {"chart": "chips", "sweep": "mine", "id": "mine-first", "view": {"by": "watt"}},
        {"chart": "roofline", "sweep": "mine", "chips": ["h100-sxm"]},
    ]
    found = rooflines.load_config(
        {"sweeps": {"mine": {**SWEEP, "chips": ["b200", "h100-sxm"]}}, "charts": charts}
    ).charts
    assert [(chart.id, chart.chips, chart.given) for chart in found] == [
        ("mine-first", ("b200", "h100-sxm"), (("by", ("watt",)),)),
        ("roofline-mine", ("h100-sxm",), ()),
    ]
    none = rooflines.load_config({"sweeps": {"mine": SWEEP}, "charts": []})
    assert plan(none).families() == []


def test_chips_that_are_named_most_often_come_first():
    chips = ["tpu-v5e", "tpu-v6e", "a100-sxm-80gb", "h200-sxm", "mi300x", "mi355x", "b200"]
    sweeps = {"one": {**SWEEP, "chips": chips}, "two": {**SWEEP, "chips": ["b200", "mi355x"]}}
    listed = [{"chart": "roofline", "sweep": "one"}]
    (chart,) = rooflines.load_config({"sweeps": sweeps, "charts": listed}).charts
    assert chart.chips == ("mi355x", "b200", *chips[:4])


def test_every_removed_name_is_told_with_what_shows_the_same():
    for name, instead in REPLACED.items():
        charts = [{"chart": name, "sweep": "mine"}]
        with pytest.raises(RooflinesError, match="a chart of an earlier version"):
            rooflines.load_config({"sweeps": {"mine": SWEEP}, "charts": charts})
        assert instead.partition(" ")[0] in kinds()
