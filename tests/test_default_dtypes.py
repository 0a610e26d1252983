"""config/dtypes.yaml as plain YAML, read without the package."""

import re
from fractions import Fraction

import pytest
from plain_files import plain_file

import rooflines

OPERANDS = ("x", "w", "out")
COMBINATION_KEYS = {*OPERANDS, "compute", "note"}

STORED_BITS = {
    "fp64": "64",
    "fp32": "32",
    "tf32": "32",
    "bf16": "16",
    "fp16": "16",
    "fp8": "8",
    "int8": "8",
    "int4": "4",
    "int4-g32": "4.5",
    "int4-g128": "4.125",
    "mxfp8": "8.25",
    "mxfp6": "6.25",
    "mxfp4": "4.25",
    "nvfp4": "4.5",
}

WORKED_COMBINATIONS = {
    "bf16": ("bf16", "bf16", "bf16", "bf16"),
    "int8": ("int8", "int8", "int8", "int8"),
    "w8a16": ("bf16", "int8", "bf16", "bf16"),
    "w4a16": ("bf16", "int4", "bf16", "bf16"),
    "w8a8": ("int8", "int8", "bf16", "int8"),
    "fp8": ("fp8", "fp8", "fp8", "fp8"),
    "fp8-out-bf16": ("fp8", "fp8", "bf16", "fp8"),
    "mxfp4": ("mxfp4", "mxfp4", "bf16", "mxfp4"),
    "nvfp4": ("nvfp4", "nvfp4", "bf16", "nvfp4"),
    "w4a8": ("int8", "int4", "bf16", "int8"),
    "w-mxfp4-x-bf16": ("bf16", "mxfp4", "bf16", "bf16"),
    "w-nvfp4-x-bf16": ("bf16", "nvfp4", "bf16", "bf16"),
    "w-nvfp4-x-fp8": ("fp8", "nvfp4", "bf16", "fp8"),
}


@pytest.fixture(scope="module")
def dtypes():
    return plain_file("dtypes.yaml")


def test_stored_bits(dtypes):
    stored = {
        name: Fraction(form["bits"]) + Fraction(form.get("scale_bits", 0), form.get("block", 1))
        for name, form in dtypes["formats"].items()
    }
    assert stored == {name: Fraction(bits) for name, bits in STORED_BITS.items()}


def test_scales_have_blocks(dtypes):
    incomplete = {
        name
        for name, form in dtypes["formats"].items()
        if ("scale_bits" in form) != ("block" in form)
    }
    assert incomplete == set()


def test_formats_have_sources(dtypes):
    silent = {
        name
        for name, form in dtypes["formats"].items()
        for key in ("note", "source")
        if not isinstance(form.get(key), str)
    }
    assert silent == set()


def test_tf32_storage(dtypes):
    assert "stored as fp32" in dtypes["formats"]["tf32"]["note"]


def test_the_table_of_combinations_has_operands_in_order():
    bits = [f"{operand}_bits" for operand in ("x", "w", "out")]
    assert rooflines.dtypes().columns == ["dtypes", "x", "w", "out", "compute", *bits, "note"]


def test_combination_keys(dtypes):
    odd = {
        name: sorted(set(given) ^ COMBINATION_KEYS)
        for name, given in dtypes["combinations"].items()
        if set(given) != COMBINATION_KEYS
    }
    assert odd == {}


def test_combinations_use_known_formats(dtypes):
    unknown = {
        (name, key, given[key])
        for name, given in dtypes["combinations"].items()
        for key in (*OPERANDS, "compute")
        if given[key] not in dtypes["formats"]
    }
    assert unknown == set()


def test_combinations_have_notes(dtypes):
    assert {
        name for name, given in dtypes["combinations"].items() if len(given["note"].split()) < 2
    } == set()


def test_combinations_differ(dtypes):
    parts = [
        tuple(given[key] for key in (*OPERANDS, "compute"))
        for given in dtypes["combinations"].values()
    ]
    assert sorted(parts) == sorted(set(parts))


@pytest.mark.parametrize("name", WORKED_COMBINATIONS)
def test_well_known_combinations(dtypes, name):
    given = dtypes["combinations"][name]
    assert tuple(given[key] for key in (*OPERANDS, "compute")) == WORKED_COMBINATIONS[name]


def test_combination_names_tell_their_formats(dtypes):
    formats, sixteen = dtypes["formats"], {"bf16", "fp16"}
    stored_apart = {"tf32": "fp32"}

    def expected(name):
        if integers := re.fullmatch(r"w(\d+)a(\d+)(-g\d+)?", name):
            weights, activations, group = integers.groups()
            x = "bf16" if activations == "16" else f"int{activations}"
            return x, f"int{weights}{group or ''}", "bf16", x
        if mixed := re.fullmatch(r"w-(.+)-x-(.+)", name):
            w, x = mixed.groups()
            return x, w, x if x in sixteen else "bf16", x
        if "-out-" in name:
            both, out = name.split("-out-")
            return both, both, out, both
        if "-compute-" in name:
            stored, compute = name.split("-compute-")
            return stored, stored, stored, compute
        stored = stored_apart.get(name, name)
        return stored, stored, "bf16" if "block" in formats[name] else stored, name

    actual = {
        name: tuple(given[key] for key in (*OPERANDS, "compute"))
        for name, given in dtypes["combinations"].items()
    }
    assert actual == {name: expected(name) for name in actual}
