"""The default config's rows and thresholds equal those in exact arithmetic."""

import re
from fractions import Fraction

import effort
import pytest
from comparison import row_differences, threshold_differences
from defaults import drawn, sweeps
from plain_files import CONFIG, plain_file

import rooflines

SWEEPS, OWN = (plain_file("config.yaml")[key] for key in ("sweeps", "chips"))
FORMATS, COMBINATIONS = (plain_file("dtypes.yaml")[key] for key in ("formats", "combinations"))
PARTS = ("x", "w", "out", "compute")


def test_own_chips_are_sourced_and_used():
    used = {chip for sweep in SWEEPS.values() if sweep["chips"] != "all" for chip in sweep["chips"]}
    assert [chip for chip, form in OWN.items() if not form.get("source")] == []
    assert set(OWN) <= used


def test_sweeps_are_explained():
    lines = (CONFIG / "config.yaml").read_text(encoding="utf-8").splitlines()
    above = {name: lines[lines.index(f"  {name}:") - 1] for name in SWEEPS}
    assert [name for name, line in above.items() if not line.startswith("  # ")] == []


@pytest.mark.parametrize(
    ("name", "bits"),
    [("tf32", 32), ("int4-g128", "4.125"), ("mxfp8", "8.25"), ("mxfp4", "4.25"), ("nvfp4", "4.5")],
)
def test_stored_bits_have_a_share_of_the_scale(name, bits):
    """Of blocks of 16 or 32 elements. Source: OCP Microscaling Formats; NVIDIA for NVFP4."""
    form = FORMATS[name]
    scale = Fraction(form.get("scale_bits", 0), form.get("block", 1))
    assert form["bits"] + scale == Fraction(bits)


def test_formats_and_combinations_have_notes():
    assert [name for name, form in FORMATS.items() if not {"note", "source"} <= set(form)] == []
    assert [name for name, given in COMBINATIONS.items() if " " not in given["note"]] == []
    parts = [tuple(given[part] for part in PARTS) for given in COMBINATIONS.values()]
    assert len(parts) == len(set(parts))


def test_the_table_of_combinations_has_operands_in_order():
    bits = [f"{operand}_bits" for operand in PARTS[:3]]
    assert rooflines.dtypes().columns == ["dtypes", *PARTS, *bits, "note"]


def meant(name):
    """The four dtypes that the name of a combination tells."""
    if integers := re.fullmatch(r"w(\d+)a(\d+)(-g\d+)?", name):
        weights, activations, group = integers.groups()
        x = "bf16" if activations == "16" else f"int{activations}"
        return x, f"int{weights}{group or ''}", "bf16", x
    if mixed := re.fullmatch(r"w-(.+)-x-(.+)", name):
        w, x = mixed.groups()
        return x, w, x if x in {"bf16", "fp16"} else "bf16", x
    if "-out-" in name:
        both, out = name.split("-out-")
        return both, both, out, both
    if "-compute-" in name:
        stored, compute = name.split("-compute-")
        return stored, stored, stored, compute
    stored = "fp32" if name == "tf32" else name
    return stored, stored, "bf16" if "block" in FORMATS[name] else stored, name


def test_combination_names_tell_their_formats():
    found = {name: tuple(given[part] for part in PARTS) for name, given in COMBINATIONS.items()}
    assert found == {name: meant(name) for name in found}


@pytest.mark.parametrize("name", sweeps())
def test_rows_and_thresholds_of_the_default_config_are_the_exact_ones(name):
    for _ in range(effort.cases(30)):
        config = drawn(name)
        try:
            rooflines.load_config(config)
        except rooflines.RooflinesError as error:
            assert "is left with no rows" in str(error)  # noqa: PT017, the chip may have none
            continue
        assert row_differences(config) == []
        assert threshold_differences(config) == []
