"""config/config.yaml as plain YAML, read without the package."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest
from plain_files import CONFIG, plain_file
from test_default_dtypes import OPERANDS

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@pytest.fixture(scope="module")
def config():
    return plain_file("config.yaml")


@pytest.fixture(scope="module")
def dtypes():
    return plain_file("dtypes.yaml")


@pytest.fixture(scope="module")
def sweeps(config):
    found: dict[str, dict[str, Any]] = config["sweeps"]
    return found


@pytest.mark.parametrize(
    ("file", "path"),
    [
        ("dtypes.yaml", ("formats",)),
        ("dtypes.yaml", ("combinations",)),
        ("config.yaml", ("sweeps",)),
        ("config.yaml", ("chips",)),
    ],
)
def test_names_are_well_formed(file, path):
    found = plain_file(file)
    for key in path:
        found = found[key]
    assert found != {}
    assert [name for name in found if not NAME.fullmatch(name)] == []


def test_named_combinations_exist(dtypes, sweeps):
    asked = {
        (sweep, name)
        for sweep, given in sweeps.items()
        for name in given["dtypes"]
        if isinstance(name, str)
    }
    assert {(sweep, name) for sweep, name in asked if name not in dtypes["combinations"]} == set()


def test_inline_combinations_use_known_formats(dtypes, sweeps):
    inline = [
        given
        for sweep in sweeps.values()
        for given in sweep["dtypes"]
        if not isinstance(given, str)
    ]
    assert inline != []
    for given in inline:
        assert set(given) == {*OPERANDS, "compute"}
        assert set(given.values()) <= set(dtypes["formats"])


def test_overrides_are_positive_numbers(config):
    paths = {
        (chip, path): value
        for chip, given in config["chips"].items()
        for path, value in given.items()
        if path.startswith(("units.", "memory.", "networks.", "efficiency.", "calibration."))
    }
    assert paths != {}
    assert {
        where for where, value in paths.items() if not isinstance(value, int | float) or value <= 0
    } == set()


def test_own_chips_are_sourced_and_used(config, sweeps):
    used = {chip for given in sweeps.values() if given["chips"] != "all" for chip in given["chips"]}
    assert {
        chip
        for chip, given in config["chips"].items()
        if not given.get("source") or chip not in used
    } == set()


def test_chip_of_243_flop_per_byte(config):
    """The book's rounded chip has a critical intensity of exactly 243 FLOP/byte."""
    chip = config["chips"]["tpu-v5e-intensity-243"]
    assert (
        Fraction(chip["units.matrix.bf16.flops_per_s"]) / Fraction(chip["memory.hbm.bytes_per_s"])
        == 243
    )


def test_vector_unit_intensity(config):
    """The vector unit of the dot product needs 2.5 FLOP/byte."""
    chip = config["chips"]["tpu-v5p-vector-7e12"]
    assert Fraction(chip["units.vector.fp32.flops_per_s"]) / Fraction(
        chip["memory.hbm.bytes_per_s"]
    ) == Fraction(5, 2)


def test_timed_matmul(sweeps):
    """The matmul of the timing example is of exactly 1e12 FLOP."""
    grid = sweeps["book-time-of-1e12-flops"]["grid"]
    assert 2 * grid["B"] * grid["D"] * grid["F"] == 10**12


def test_batch_in_tokens(sweeps):
    batch = sweeps["book-batch-in-tokens"]["grid"]["B"]
    assert Fraction(batch["sequences"] * batch["tokens_per_sequence"], batch["replicas"]) == 16384


def test_question_3_grid(sweeps):
    grid = sweeps["book-q3-curve"]["grid"]
    assert grid == {"B": {"from": 1, "to": 512, "step": 1}, "D": [1024, 4096], "F": "D"}


def test_shard_counts(sweeps):
    assert sweeps["sharded-models"]["shards"] == [2**power for power in range(7)]


def test_batch_sizes(sweeps):
    for name in ("common-sizes", "model-shapes", "sharded-models"):
        assert sweeps[name]["grid"]["B"] == {"from": 1, "to": 65536, "factor": 2}
        assert sweeps[name]["chips"] == "all"


def test_sweeps_are_explained(sweeps):
    lines = (CONFIG / "config.yaml").read_text(encoding="utf-8").splitlines()
    bare = {name for name in sweeps if not lines[lines.index(f"  {name}:") - 1].startswith("  # ")}
    assert bare == set()
