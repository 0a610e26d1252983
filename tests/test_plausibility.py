"""A likely slip in your own chip's numbers brings a warning with its cause.

Nothing else does. The slips are rows of tests/cases/doubts.yaml.
"""

import warnings
from typing import Any

import pytest
import yaml
from case_files import case
from small_config import matmul

import rooflines
from rooflines.basics.yaml_file import read_yaml
from rooflines.hardware.chip_catalogue import CHIPS_FILE, chip_entries
from rooflines.hardware.plausibility import plausibility_warnings
from rooflines.run.snakemake.workflow import plan_or_exit

ROWS = case("doubts")
PEAK, BANDWIDTH, LINK = (
    "units.matrix.bf16.flops_per_s",
    "memory.hbm.bytes_per_s",
    "networks.nvlink.bytes_per_s",
)
WHOLE: dict[str, Any] = {
    "units": {"matrix": {"bf16": {"flops_per_s": 9.89e14}}},
    "memory": {"hbm": {"bytes_per_s": 3.35e12, "capacity_bytes": 8e10}},
    "networks": {"nvlink": {"bytes_per_s": 2.5e10, "links": 18, "topology": "switch"}},
}
"""A chip of one's own, like an H100."""


def config_of(chip):
    mine = {"mine": {"source": "me", **chip}}
    return {"sweeps": {"one": matmul(chips=["mine"])}, "charts": [], "chips": mine}


def warnings_of(config):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = rooflines.load_config(config)
    assert {warning.category for warning in caught} <= {rooflines.PlausibilityWarning}
    return loaded, [str(warning.message) for warning in caught]


def refused(chip):
    with pytest.raises(rooflines.RooflinesError) as caught:
        rooflines.load_config(config_of(chip))
    (error,) = caught.value.errors
    return error


@pytest.mark.parametrize("row", ROWS["far"], ids=lambda row: f"{row['path']} {row['value']}")
def test_a_variant_far_from_its_base_is_refused_with_the_likely_unit(row):
    path, meant = row["path"], f"write `plausible: [{row['path']}]` beside it"
    chip = {"base": "h100-sxm", path: row["value"]}
    error = refused(chip)
    assert error.where == f"chips.mine.{path}"
    assert error.fix == f"write {row['fix']}; if it is meant, {meant}"
    assert warnings_of(config_of({**chip, "plausible": [path]}))[1] == []


@pytest.mark.parametrize("row", ROWS["slips"], ids=lambda row: row["name"])
def test_a_slip_brings_one_warning_with_its_cause_unless_it_is_meant(row):
    path, chip = row["path"], row.get("chip") or {**WHOLE, **row["whole"]}
    loaded, (message,) = warnings_of(config_of(chip))
    assert message.startswith(f"config: chips.mine.{path} is ")
    assert row["cause"] in message
    fix = f"{row.get('fix', 'correct it')}; if it is meant, write `plausible: [{path}]` beside it."
    assert message.endswith(f"\n  fix: {fix}")
    meant, silent = warnings_of(config_of({**chip, "plausible": [path]}))
    assert silent == []
    assert meant.chips["mine"].plain == loaded.chips["mine"].plain


@pytest.mark.parametrize(
    "chip",
    [
        WHOLE,
        {"base": "h100-sxm", BANDWIDTH: 3.0e12, PEAK: 8.0e14, LINK: 2.6e10},
        {"base": "h100-sxm", PEAK: 4.945e14, "memory.hbm.capacity_bytes": 1.6e11},
    ],
)
def test_other_numbers_bring_no_warning(chip):
    assert warnings_of(config_of(chip))[1] == []


def test_no_chip_of_the_catalogue_and_of_the_default_config_brings_a_warning():
    written, known = read_yaml(CHIPS_FILE)["chips"], chip_entries()
    for chip, entry in known.items():
        assert [
            *plausibility_warnings(written[chip], entry, known),
            *plausibility_warnings({}, entry, known),
        ] == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rooflines.load_config()


def test_a_path_that_is_no_number_of_the_chip_is_refused():
    error = refused({"base": "h100-sxm", "plausible": ["memory.hbm.bytes_per_sec", BANDWIDTH]})
    assert error.where == "chips.mine.plausible[0]"
    assert BANDWIDTH in error.close


@pytest.mark.parametrize(
    ("sizes", "place"),
    [
        ({"grid": {"B": 1, "S": [8, 131_072]}}, "grid.S reaches 131,072"),
        ({"grid": {"B": 1}, "requests": {"input": 4096, "output": 2}}, "requests reaches 4,098"),
        ({"grid": {"B": 1, "S": [8, 4096]}}, None),
    ],
)
def test_contexts_beyond_the_trained_one_are_computed_with_a_warning(sizes, place):
    sweep = {"models": ["olmo-2-7b", "llama-3.1-8b"], "dtypes": ["bf16"], "chips": ["h100-sxm"]}
    loaded, messages = warnings_of({"model-sweeps": {"s": {**sweep, **sizes}}})
    said = f"config: model-sweeps.s.{place} tokens, and olmo-2-7b is trained for 4,096."
    assert [message.split("\n")[0] for message in messages] == ([said] if place else [])
    assert loaded.sweep("s").rows


def test_a_run_prints_the_warning_once_with_its_line(tmp_path, capsys):
    """Not again in its jobs."""
    config = config_of({"base": "h100-sxm", PEAK: 1.979e15})
    text, file = yaml.safe_dump(config, sort_keys=False), tmp_path / "my.yaml"
    file.write_text(text, encoding="utf-8")
    line = text.splitlines().index(f"    {PEAK}: 1979000000000000.0") + 1
    plan_or_exit(config, [file])
    said = f"warning: {file}:{line}: chips.mine.{PEAK} is 1.979e+15, the figure with sparsity"
    assert capsys.readouterr().err.count(said) == 1
    plan_or_exit(config, [file], warn=False)
    assert capsys.readouterr().err == ""
