"""The Python interface: how configs and results print, and how a wrong name is refused."""

import pytest
from case_files import case
from polars.testing import assert_frame_equal
from small_config import matmul

import rooflines
from rooflines import RooflinesError, charts

WRONG = case("wrong-questions")

UNITS = {
    *(
        "",
        "that of the quantity",
        "1",
        "%",
        "s",
        "d",
        "1/s",
        "MHz",
        "byte",
        "byte/s",
        "FLOP",
        "FLOP/s",
        "FLOP/byte",
        "USD",
        "J",
    ),
}
SHORT = 1_500
"""The most characters of a `repr` [1]."""


@pytest.fixture(scope="module")
def config():
    return rooflines.load_config()


@pytest.fixture(scope="module")
def split(config):
    return charts.of_config(config).select("sharded-models", ["h100-sxm"], ["bf16"])


def test_a_config_and_its_results_are_shown_in_a_few_lines(config, split):
    shown = repr(config)
    number = len(config.sweeps) + len(config.model_sweeps)
    rows = sum(sweep.rows for sweep in config.sweeps.values())
    rows += sum(sweep.rows for sweep in config.model_sweeps.values())
    assert shown.splitlines()[0].endswith(
        f"{number} sweeps, {rows:,} rows, {len(config.charts)} charts>"
    )
    for several in (shown, repr(charts.of_config(config))):
        assert len(several) < SHORT
        assert f"... and {number - 10} more" in several.splitlines()[-1]
    for single in (config.sweep("model-shapes"), split):
        assert "\n" not in repr(single)


def test_a_sweep_is_had_by_name_and_one_of_the_other_kind_is_refused(config):
    assert config.sweep("serving") is config.model_sweeps["serving"]
    with pytest.raises(RooflinesError, match=r"model-sweeps has no 'book-matmul'"):
        rooflines.model_layers(config, "book-matmul")
    with pytest.raises(RooflinesError, match=r": sweeps has no 'serving'"):
        charts.of_config(config).select("serving", ["h100-sxm"], ["bf16"])


@pytest.mark.parametrize(("sweep", "chips", "dtypes", "close"), WRONG["selections"])
def test_a_selection_of_what_is_not_there_is_refused(config, sweep, chips, dtypes, close):
    with pytest.raises(RooflinesError, match=r"which is no |has no ") as refusal:
        charts.of_config(config).select(sweep, chips, dtypes)
    assert close in refusal.value.close
    assert "fix: use one of" in str(refusal.value)


def test_a_selection_that_no_chip_can_do_is_refused(config):
    with pytest.raises(RooflinesError, match="of which tpu-v5e can do none"):
        charts.of_config(config).select("model-shapes", ["tpu-v5e"], ["fp8-out-bf16"])


@pytest.mark.parametrize(("kind", "choices", "message"), WRONG["views"])
def test_a_chart_refuses_what_its_sweep_lacks(config, kind, choices, message):
    sweep = "all-gather-of-weights" if kind == "attained" else "sharded-models"
    with pytest.raises(RooflinesError, match=message):
        charts.view(kind, charts.of_config(config), sweep, **choices)


def test_the_model_and_layer_of_a_shape_are_no_columns_and_no_sizes():
    shape = {"name": "up", "D": 4096, "F": 14336}
    about = {"model": "llama-3-8b", "layer": "up"}
    plain, named = (
        rooflines.load_config({"sweeps": {"one": matmul(grid={"B": 1}, shapes=[each])}})
        for each in (shape, shape | about)
    )
    tables = [rooflines.rows(config, "one").collect() for config in (plain, named)]
    assert tables[0].equals(tables[1])
    (kept,) = named.sweep("one").config_json["shapes"]
    assert kept == shape | about
    assert plain.sweep("one").config_json["shapes"] == [shape]


def test_rows_and_thresholds_take_a_sweep_of_either_kind():
    steps = {"models": ["llama-3.1-8b"], "grid": {"B": [1, 64], "S": 4096}, "dtypes": ["bf16"]}
    form = {"model-sweeps": {"mine": {**steps, "chips": ["h100-sxm"]}}, "charts": []}
    config = rooflines.load_config(form)
    assert rooflines.rows(config, "mine").select("model", "B").collect().rows() == [
        ("llama-3.1-8b", 1),
        ("llama-3.1-8b", 64),
    ]
    found = rooflines.thresholds(config, "mine")
    assert found["axis"].to_list() == ["B"]
    assert_frame_equal(found, rooflines.thresholds(config))


def test_columns_say_what_a_null_means():
    rows = rooflines.columns().filter(file="table", column="memory_intensity").to_dicts()
    assert [row["null"] for row in rows] == ["no memory traffic"]


def test_a_column_is_in_its_file_once_with_a_meaning_and_a_unit_without_prefix():
    found = rooflines.columns()
    assert found.filter(meaning="").is_empty()
    assert not found.select("file", "column").is_duplicated().any()
    assert set(found["unit"]) == UNITS
