"""First page of a run: its opening state, its findings, and the chart of training plans."""

from typing import Any

import pytest
from scenes import misfits

import rooflines
from rooflines import charts
from rooflines.answers.claims import broken
from rooflines.charts.kinds.plans import MAX_ROWS
from rooflines.site.explorer import DEFAULT_CHIPS
from rooflines.site.opening import opening_state, run_chips
from rooflines.sweep.recipes import recipe_of

DEFAULTS = ["h100-sxm", "b200"]
PAGE: dict[str, Any] = {
    "default_chips": DEFAULTS,
    "chips": [{"id": name} for name in ("h100-sxm", "b200", "mi300x", "l4", "t4", "my-chip")],
    "dtypes": [{"name": "bf16"}, {"name": "fp8-out-bf16"}],
    "page": {"defaults": {"B": {"matmul": 128, "model": 64}, "D": 28672, "F": 8192, "S": 8192}},
}
STEPS: dict[str, Any] = {
    "models": [{"id": "gpt-oss-120b"}, {"id": "qwen3-32b"}],
    "skipped": [
        {"chip": "b200", "split": "tp8"},
        {"chip": "b200", "model": "gpt-oss-120b", "split": "tp4"},
    ],
    "choices": {
        "serve": {
            "model": 0,
            "split": 0,
            "splits": [{"name": "tp1"}, {"name": "tp4"}, {"name": "tp8"}],
            "formats": ["bf16", "fp8"],
        },
        "train": {
            "model": 0,
            "split": 0,
            "splits": [{"name": "dp8"}, {"name": "tp2-dp4"}],
            "formats": ["bf16"],
        },
    },
}
OWN_CHIP = {"my-chip": {"base": "h100-sxm", "memory.hbm.bytes_per_s": 4e12, "source": "mine"}}
MATMUL = {
    "operation": "matmul",
    "grid": {"B": [1, 64]},
    "shapes": [{"name": "up", "D": 4096, "F": 16384}, {"name": "down", "D": 16384, "F": 4096}],
    "dtypes": ["fp8-out-bf16"],
    "chips": ["h100-sxm", "my-chip"],
    "thresholds": [],
}
SERVED = {
    "models": ["qwen3-32b"],
    "grid": {"B": [1, 8], "S": [4096]},
    "dtypes": ["fp8"],
    "chips": ["b200"],
    "splits": [{"tp": 8}, {"tp": 4}],
    "thresholds": [],
}
TRAINED = {
    "models": ["qwen3-32b"],
    "phase": "train",
    "grid": {"B": [16], "S": [4096]},
    "dtypes": ["bf16"],
    "chips": ["h100-sxm"],
    "splits": [{"dp": 8}, {"tp": 2, "dp": 4}, {"tp": 4, "dp": 2}, {"tp": 8}],
    "shard": "weights",
    "recompute": "full",
    "thresholds": [],
}


def opening(config, leading=()):
    loaded = rooflines.load_config(config)
    sweeps: Any = [*loaded.sweeps.values(), *loaded.model_sweeps.values()]
    return opening_state([recipe_of(sweep) for sweep in sweeps], PAGE, STEPS, leading)


def test_the_page_opens_on_the_first_layer_and_all_chips_of_a_small_run():
    state = opening({"sweeps": {"s": MATMUL}, "chips": OWN_CHIP})
    assert state == {
        "chips": "h100-sxm,my-chip",
        "dtypes": "fp8-out-bf16",
        "D": "4096",
        "F": "16384",
        "B": "64",  # nearest to the default of the page
    }


def test_a_run_that_has_what_the_page_shows_by_default_opens_as_the_catalogue():
    grid = {"B": [1, 4096], "D": [4096, 28672], "F": [4096, 8192]}
    sweep = {key: value for key, value in MATMUL.items() if key != "shapes"}
    sweep |= {"grid": grid, "dtypes": ["fp8-out-bf16", "bf16"], "chips": DEFAULTS}
    assert opening({"sweeps": {"s": sweep}}) == {}


def test_the_default_config_opens_as_the_catalogue():
    page = PAGE | {
        "default_chips": DEFAULT_CHIPS,
        "chips": [{"id": name} for name in DEFAULT_CHIPS],
    }
    recipes = [recipe_of(sweep) for sweep in rooflines.load_config().sweeps.values()]
    assert opening_state(recipes, page, STEPS) == {}


def test_a_run_over_a_model_opens_on_its_step_with_a_split_that_runs_there():
    assert opening({"model-sweeps": {"s": SERVED}}) == {
        "chips": "b200",
        "subject": "model",
        "phase": "decode",
        "model": "qwen3-32b",
        "format": "fp8",
        "split": "tp4",  # tp8 is skipped on this page
        "B": "8",
        "S": "4096",
    }


def test_a_training_run_opens_on_the_plan_that_leads():
    state = opening({"model-sweeps": {"s": TRAINED}}, ["tp8", "tp2-dp4", "dp8"])
    assert (state["phase"], state["plan"], state["B"]) == ("train", "tp2-dp4", "16")


def test_a_layer_with_one_size_in_the_grid_and_a_chip_off_the_page_leave_the_defaults():
    sweep = MATMUL | {"grid": {"B": [1, 64], "D": [4096]}, "shapes": [{"name": "up", "F": 16384}]}
    assert opening({"sweeps": {"s": sweep}, "chips": OWN_CHIP})["D"] == "4096"
    assert opening({"model-sweeps": {"s": SERVED | {"chips": ["h200-sxm"]}}}) == {}


def test_chips_of_a_run_come_before_the_defaults_of_a_page():
    names = ["t4", "b200", "mine", "h100-sxm", "l4"]
    assert run_chips(names, DEFAULTS) == ["mine", "h100-sxm", "b200", "t4", "l4"]


@pytest.fixture(scope="module")
def plans():
    return charts.view(
        "plans", charts.of_config(rooflines.load_config({"model-sweeps": {"s": TRAINED}})), "s"
    )


def test_plans_are_ordered_by_kernels_one_after_another_and_all_counted(plans):
    assert broken(plans.claim) is None
    rows, bars = plans.rows, plans.data["bars"]
    fitting = rows.filter("fits")
    assert 1 < fitting.height <= rows.height == len(TRAINED["splits"])
    assert bars["split"].to_list() == fitting.sort("t_serial_s")["split"].head(MAX_ROWS).to_list()
    assert (bars["low"] <= bars["high"]).all()
    assert f"{fitting.height} of {rows.height} plans fit" in plans.subtitle
    assert bars["name"][0] in plans.title
    assert "full" in plans.subtitle
    assert not any("full" in name for name in bars["name"])


def test_texts_of_plans_do_not_overlap(plans):
    for size in ("slide", "paper"):
        assert misfits({"plans": plans.spec()}, size) == {}
