"""Scenarios: sweeps with named overrides, what they change, their page, and wrong overrides."""

import copy
import json
from typing import Any

import polars as pl
import pytest
from command_line import refused, said, table
from outputs_made import make_outputs

import rooflines
from rooflines.basics.errors import RooflinesError
from rooflines.results.run_changes import compare_scenario, scenarios_in
from rooflines.run.plan import plan
from rooflines.run.scenario_jobs import write_scenario
from rooflines.site.pages import TEMPLATES
from rooflines.site.scenario_page import scenario_files, scenario_views
from rooflines.site.site import used_chips

CONFIG: dict[str, Any] = {
    "charts": [],
    "chips": {"mine": {"base": "h100-sxm", "memory.hbm.bytes_per_s": 4e12, "source": "mine"}},
    "sweeps": {
        "layers": {
            "operation": "matmul",
            "grid": {"B": [1, 256], "D": 4096, "F": 14336},
            "dtypes": ["bf16"],
            "chips": ["b200", "mine"],
        },
    },
    "model-sweeps": {
        "serving": {
            "models": ["llama-3.1-8b"],
            "chips": ["h100-sxm"],
            "dtypes": ["fp8"],
            "splits": [{"tp": 1}],
            "grid": {"B": [1, 64], "S": 2048},
        }
    },
    "scenarios": {
        "hbm4": {"chips.mine.memory.hbm.bytes_per_s": 4.8e12},
        "long": {"model-sweeps.serving.grid.S": 8192, "prices.h100-sxm": 1.5},
    },
}


def scenarios(**written):
    return {**copy.deepcopy(CONFIG), "scenarios": {"other": written}}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    planned = make_outputs(CONFIG, folder, "thresholds.parquet", "model-thresholds.parquet")
    (folder / "scenarios").mkdir()
    for name in CONFIG["scenarios"]:
        path = f"scenarios/{name}"
        write_scenario(planned.spec(path), folder / f"{path}.parquet", folder / path)
    return folder


def test_only_the_sweeps_that_a_scenario_changes_are_computed_again():
    config = rooflines.load_config(CONFIG)
    assert config.scenarios == {
        "hbm4": {"layers": "layers-hbm4"},
        "long": {"serving": "serving-long"},
    }
    assert [*config.every] == ["layers", "serving", "layers-hbm4", "serving-long"]
    rates = [
        config.every[name].chips["mine"].memory["hbm"].bytes_per_s
        for name in ("layers", "layers-hbm4")
    ]
    assert rates == [4e12, 4.8e12]
    assert rooflines.load_config({**CONFIG, "scenarios": {}}).scenarios == {}


def test_rows_of_a_scenario_are_those_of_the_edited_config():
    edited = copy.deepcopy(CONFIG)
    edited["chips"]["mine"]["memory.hbm.bytes_per_s"] = 4.8e12
    edited["model-sweeps"]["serving"]["grid"]["S"] = 8192
    edited["prices"] = {"h100-sxm": 1.5}
    edited["scenarios"] = {}
    for sweep, scenario in (("layers", "hbm4"), ("serving", "long")):
        rows = rooflines.rows(rooflines.load_config(CONFIG), f"{sweep}-{scenario}").collect()
        expected = rooflines.rows(rooflines.load_config(edited), sweep).collect()
        prices = pl.selectors.starts_with("price_")
        assert rows.select(~prices).equals(expected.select(~prices))


def test_charts_and_chips_of_the_site_are_as_written():
    config = rooflines.load_config({key: CONFIG[key] for key in CONFIG if key != "charts"})
    assert {chart.sweep for chart in config.charts} <= {"layers", "serving"}
    planned = plan(config)
    site = json.loads(planned.spec("bundle"))
    assert site["scenarios"] == ["layers-hbm4", "serving-long"]
    recipes = [
        recipe
        for recipe in json.loads(planned.spec("thresholds.parquet"))["sweeps"]
        if recipe["sweep"] not in site["scenarios"]
    ]
    assert used_chips(recipes)["mine"].memory["hbm"].bytes_per_s == 4e12
    listed = rooflines.load_config(
        {**CONFIG, "charts": [{"chart": "roofline", "sweep": "layers-hbm4"}]}
    )
    assert [chart.sweep for chart in listed.charts] == ["layers-hbm4"]


def test_a_scenario_has_its_changes_as_table_and_folder(results):
    changed = pl.read_parquet(results / "scenarios" / "hbm4.parquet")
    assert {*changed["chip"]} == {"mine"}
    expected = compare_scenario(results, "hbm4", scenarios_in(results)["hbm4"]).frame()
    assert changed.equals(expected)
    assert changed.filter(table="rows", B=1)["ratio"].to_list() == pytest.approx([4 / 4.8])
    index = json.loads((results / "scenarios" / "long" / "index.json").read_text("utf-8"))
    assert index["inputs"] == [
        "prices.h100-sxm: 3.85 -> 1.5",
        "model-sweeps.serving.grid.S: 2048 -> 8192",
    ]


def test_the_page_lists_every_scenario_with_its_picture(results):
    outputs = sorted((results / "scenarios").iterdir())
    views, files = scenario_views(outputs), dict(scenario_files(outputs))
    page = TEMPLATES.get_template("scenarios.html").render(
        policy="",
        version="",
        site={},
        has_traces=False,
        has_scenarios=True,
        card="",
        card_text="",
        file="",
        scenarios=views,
    )
    for view in views:
        assert f'<h2 id="{view["name"]}">' in page
        assert {*view["pictures"].values()} <= {*files}
        assert f"scenarios/{view['name']}.parquet" in files
        assert all(row[5].replace(">", "&gt;") in page for row in view["groups"])
    assert page.count("<img ") == len(views) + 1  # with the icon


def test_a_scenario_without_a_change_says_so(results, tmp_path):
    planned = plan(rooflines.load_config(CONFIG))
    spec = json.loads(planned.spec("scenarios/hbm4"))
    spec["pairs"] = {"layers": "layers"}
    for name in ("tables", "thresholds.parquet"):
        (tmp_path / name).symlink_to(results / name)
    (tmp_path / "scenarios").mkdir()
    folder = tmp_path / "scenarios" / "same"
    write_scenario(json.dumps(spec), tmp_path / "scenarios" / "same.parquet", folder)
    (view,) = scenario_views([folder])
    assert (view["groups"], view["pictures"]) == ([], {})


def test_command_compares_the_scenarios_of_a_folder(results, capsys):
    text = said(capsys, "compare", str(results))
    assert "as written -> hbm4: 1 sweep" in text
    assert "as written -> long: 1 sweep" in text
    rows = table(capsys, "compare", str(results))
    assert {row["scenario"] for row in rows} == {"hbm4", "long"}
    assert "long" not in said(capsys, "compare", str(results), "hbm4")
    assert "close to it: hbm4" in refused(capsys, "compare", str(results), "hbm5")
    several = refused(capsys, "compare", str(results), "-o", "x.svg")
    assert "2 scenarios are compared" in several
    index = results / "scenarios" / "hbm4" / "index.json"
    content = index.read_text("utf-8")
    index.write_text("{}", "utf-8")
    assert "is no index of a scenario" in refused(capsys, "compare", str(results))
    index.write_text(content, "utf-8")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({}, "scenarios.other overrides nothing"),
        ({"charts": []}, "is 'charts', which a scenario cannot override"),
        ({"chips.mine": 4}, "is 'chips.mine', which a scenario cannot override"),
        ({"chips.minne.memory.hbm.bytes_per_s": 4e12}, "'minne', which is no chip"),
        ({"chips.mine.memory.hbm.speed": 4e12}, "scenarios.other.chips"),
        ({"prices.mine": -1}, "scenarios.other.prices.mine"),
        ({"prices.mine": 2}, "changes mine, which no sweep computes with"),
        ({"sweeps.layer.dtypes": "fp8"}, "'layer', which is none of sweeps"),
        ({"sweeps.layers.dtypes.x": "fp8"}, "passes through dtypes"),
        ({"sweeps.layers.dtypes": "fp7"}, "scenarios.other.*dtypes"),
        ({"sweeps.layers.dtype": "fp8"}, "scenarios.other.*sweeps.layers.dtype"),
    ],
)
def test_a_wrong_override_is_refused_with_its_place(written, message):
    with pytest.raises(RooflinesError, match=message):
        rooflines.load_config(scenarios(**written))


def test_a_name_that_a_sweep_has_is_refused():
    config = scenarios(**{"sweeps.layers.dtypes": "fp8"})
    config["sweeps"]["layers-other"] = config["sweeps"]["layers"]
    with pytest.raises(RooflinesError, match="makes a sweep 'layers-other', and the config has"):
        rooflines.load_config(config)


def test_a_likely_slip_in_a_scenario_brings_a_warning():
    with pytest.warns(rooflines.PlausibilityWarning, match="scenarios.other"):
        rooflines.load_config(scenarios(**{"chips.mine.units.matrix.bf16.flops_per_s": 1979e12}))
