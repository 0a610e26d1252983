"""A number of a config's own chip that resembles a common slip brings a warning with its cause.

Nothing else does.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml

import rooflines
from rooflines.basics.yaml_file import read_yaml
from rooflines.catalogue.chips import CHIPS_FILE, chip_entries
from rooflines.catalogue.plausibility import doubts
from rooflines.run.workflow import plan_or_exit

ROOT = Path(__file__).resolve().parent.parent
PEAK, BANDWIDTH, LINK = (
    "units.matrix.bf16.flops_per_s",
    "memory.hbm.bytes_per_s",
    "networks.nvlink.bytes_per_s",
)


def config_of(chip):
    """A config with one chip of its own."""
    sweep = {
        "operation": "matmul",
        "grid": {"B": [1, 2], "D": 64, "F": "D"},
        "dtypes": ["bf16"],
        "chips": ["mine"],
    }
    return {"sweeps": {"one": sweep}, "charts": [], "chips": {"mine": {"source": "me", **chip}}}


def warnings_of(chip):
    """The warnings for a config with one chip of its own."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rooflines.load_config(config_of(chip))
    assert {warning.category for warning in caught} <= {rooflines.PlausibilityWarning}
    return [str(warning.message) for warning in caught]


def whole(**parts):
    """A chip of one's own, like an H100."""
    chip = {
        "units": {"matrix": {"bf16": {"flops_per_s": 9.89e14}}},
        "memory": {"hbm": {"bytes_per_s": 3.35e12, "capacity_bytes": 8e10}},
        "networks": {"nvlink": {"bytes_per_s": 2.5e10, "links": 18, "topology": "switch"}},
    }
    return {**chip, **parts}


SLIPS: dict[str, tuple[dict[str, Any], str, str]] = {
    "the printed figure with sparsity": (
        {"base": "h100-sxm", PEAK: 1.979e15},
        PEAK,
        "sparsity that is printed for h100-sxm",
    ),
    "twice the dense peak": (
        {"base": "tpu-v5e", PEAK: 3.94e14},
        PEAK,
        "2 times that of tpu-v5e, as a figure with sparsity",
    ),
    "twice the bandwidth": (
        {"base": "h100-sxm", BANDWIDTH: 6.7e12},
        BANDWIDTH,
        "reads and writes together",
    ),
    "GiB for GB": ({"base": "h100-sxm", BANDWIDTH: 3350 * 2**30}, BANDWIDTH, "GiB taken for GB"),
    "TiB for TB": ({"base": "h100-sxm", BANDWIDTH: 3.35 * 2**40}, BANDWIDTH, "TiB taken for TB"),
    "nanoseconds a hop": (
        {"base": "h100-sxm", "networks.nvlink.hop_latency_s": 6e-10},
        "networks.nvlink.hop_latency_s",
        "another prefix",
    ),
    "both directions of a link": (
        {"base": "h100-sxm", LINK: 5.0e10},
        LINK,
        "both directions together",
    ),
    "all links": ({"base": "h100-sxm", LINK: 4.5e11}, LINK, "all 18 links together"),
    "all links in both directions": (
        {"base": "h100-sxm", LINK: 9.0e11},
        LINK,
        "all 18 links in both directions",
    ),
    "a whole chip with the figure with sparsity": (
        whole(units={"matrix": {"bf16": {"flops_per_s": 1.979e15}}}),
        PEAK,
        "sparsity that is printed for h100-sxm",
    ),
    "a whole chip with its own figure with sparsity": (
        whole(units={"matrix": {"bf16": {"flops_per_s": 2e15, "printed_with_sparsity": 2e15}}}),
        PEAK,
        "its own figure with sparsity",
    ),
    "a whole chip in GB/s": (
        whole(memory={"hbm": {"bytes_per_s": 3350}}),
        BANDWIDTH,
        "less than any chip has",
    ),
    "a whole chip with its links counted twice": (
        whole(networks={"nvlink": {"bytes_per_s": 9e11, "links": 18, "topology": "switch"}}),
        LINK,
        "more than the main memory has",
    ),
    "a whole chip with microseconds": (
        whole(
            networks={"nvlink": {"bytes_per_s": 2.5e10, "topology": "switch", "hop_latency_s": 1}}
        ),
        "networks.nvlink.hop_latency_s",
        "more than any chip has",
    ),
}


FAR: dict[tuple[str, float], str] = {
    (BANDWIDTH, 4.8): "4.8e+12 if it is in TB/s",
    (BANDWIDTH, 4800): "4.8e+12 if it is in GB/s",
    (BANDWIDTH, 4.8e9): "4.8e+12 if it is in kB/s",
    (BANDWIDTH, 3.35e15): "3.35e+12 if it is in mB/s",
    (PEAK, 989): "9.89e+14 if it is in TFLOP/s",
    (PEAK, 9.89e23): "9.89e+14 if it is in nFLOP/s",
    (LINK, 25): "2.5e+10 if it is in GB/s",
    ("memory.hbm.capacity_bytes", 80): "8e+10 if it is in GB",
    ("networks.nvlink.hop_latency_s", 0.6): "6e-07 if it is in us",
    ("power.watts", 0.7): "700 if it is in kW",
    ("units.vector.fp16.flops_per_s", 67): "6.7e+13 if it is in TFLOP/s",
}


@pytest.mark.parametrize(("path", "value"), FAR)
def test_a_variant_far_from_its_base_is_refused_with_the_likely_unit(path, value):
    chip = {"base": "h100-sxm", path: value}
    with pytest.raises(rooflines.RooflinesError) as caught:
        rooflines.load_config(config_of(chip))
    (error,) = caught.value.errors
    assert error.where == f"chips.mine.{path}"
    assert error.fix == (
        f"write {FAR[path, value]}; if it is meant, write `plausible: [{path}]` beside it"
    )
    assert warnings_of({**chip, "plausible": [path]}) == []


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_brings_one_warning_with_its_cause(name):
    chip, path, cause = SLIPS[name]
    (message,) = warnings_of(chip)
    assert message.startswith(f"config: chips.mine.{path} is ")
    assert cause in message
    assert message.endswith(
        f"\n  fix: correct it; if it is meant, write `plausible: [{path}]` beside it."
    )


@pytest.mark.parametrize("name", SLIPS)
def test_what_is_meant_brings_no_warning(name):
    chip, path, _ = SLIPS[name]
    assert warnings_of({**chip, "plausible": [path]}) == []
    loaded = [
        rooflines.load_config(config_of(form)).chips["mine"].plain
        for form in (chip, {**chip, "plausible": [path]})
    ]
    assert loaded[0] == loaded[1]


@pytest.mark.parametrize(
    "chip",
    [
        whole(),
        {"base": "h100-sxm", BANDWIDTH: 3.0e12, PEAK: 8.0e14, LINK: 2.6e10},
        {"base": "h100-sxm", PEAK: 4.945e14},
        {"base": "h100-sxm", "memory.hbm.capacity_bytes": 1.6e11},
        {"base": "h100-sxm", "networks.nvlink.links": 36},
    ],
)
def test_other_numbers_bring_no_warning(chip):
    assert warnings_of(chip) == []


def test_no_chip_of_the_catalogue_and_of_the_default_config_brings_a_warning():
    written, known = read_yaml(CHIPS_FILE)["chips"], chip_entries()
    assert set(written) == set(known)
    assert sum("base" in entry for entry in written.values()) > 30
    assert [
        doubt
        for chip, entry in known.items()
        for doubt in (*doubts(written[chip], entry, known), *doubts({}, entry, known))
    ] == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rooflines.load_config()


def test_a_path_that_is_no_number_of_the_chip_is_refused():
    with pytest.raises(rooflines.RooflinesError) as caught:
        rooflines.load_config(
            config_of({"base": "h100-sxm", "plausible": ["memory.hbm.bytes_per_sec", BANDWIDTH]})
        )
    (error,) = caught.value.errors
    assert error.where == "chips.mine.plausible[0]"
    assert BANDWIDTH in error.close


def test_a_run_prints_the_warning_once_with_its_line(tmp_path):
    text = yaml.safe_dump(config_of({"base": "h100-sxm", PEAK: 1.979e15}), sort_keys=False)
    (tmp_path / "my.yaml").write_text(text, encoding="utf-8")
    line = text.splitlines().index("    units.matrix.bf16.flops_per_s: 1979000000000000.0") + 1
    command = [
        "results/tables/one/part-00000.parquet",
        "--cores",
        "1",
        "--snakefile",
        str(ROOT / "Snakefile"),
        "--configfile",
        "my.yaml",
    ]
    run = subprocess.run(
        [sys.executable, "-m", "snakemake", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "results/tables/one/part-00000.parquet").exists()
    assert (run.stdout + run.stderr).count("the figure with sparsity") == 1
    assert (
        f"warning: my.yaml:{line}: chips.mine.{PEAK} is 1.979e+15, the figure with sparsity"
        in run.stderr
    )


def test_a_job_does_not_print_the_warning(capsys):
    config = config_of({"base": "h100-sxm", PEAK: 1.979e15})
    plan_or_exit(config, [], warn=False)
    assert capsys.readouterr().err == ""
    plan_or_exit(config, [])
    assert capsys.readouterr().err.count("the figure with sparsity") == 1
