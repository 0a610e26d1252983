"""The numbers of chips and formats: those that a variant sets, and mistakes in a catalogue."""

from functools import reduce
from typing import Any

import fuzzing
import polars as pl
import pytest
import valid_files
from valid_files import PLAIN

import rooflines
from rooflines.catalogue import chips as catalogue
from rooflines.catalogue.entries import Level, Network, Peak, Power
from rooflines.catalogue.parts import NUMBERS, PRINTED, source_in


@pytest.fixture(autouse=True)
def _own_catalogue():
    with fuzzing.real_catalogues():
        yield


BARE = {
    "source": "data sheet",
    "units": {"matrix": {"bf16": {"flops_per_s": 1e14}}},
    "memory": {"hbm": {"bytes_per_s": 1e12}},
    "networks": {"ici": {"bytes_per_s": 1e10, "topology": "torus"}},
}
"""A chip with required numbers only."""

SETTABLE: dict[str, float] = {
    "units.matrix.bf16.flops_per_s": 2e14,
    "units.matrix.bf16.printed_with_sparsity": 4e14,
    "units.matrix.int8.flops_per_s": 3e14,
    "units.vector.fp32.flops_per_s": 3e13,
    "memory.hbm.bytes_per_s": 2e12,
    "memory.hbm.capacity_bytes": 1e10,
    "networks.ici.bytes_per_s": 2e10,
    "networks.ici.links": 4,
    "networks.ici.domain": 64,
    "networks.ici.ring_multiple": 16,
    "networks.ici.hop_latency_s": 1e-6,
    "networks.ici.typical_hop_latency_s": 2e-6,
    "power.watts": 300,
}


@pytest.mark.parametrize("path", SETTABLE)
def test_a_variant_may_set_a_number_that_its_base_lacks(path):
    variant = {"base": "bare", "source": "measured", path: SETTABLE[path]}
    config = rooflines.load_config(
        {**PLAIN, "chips": {**PLAIN["chips"], "bare": BARE, "variant": variant}}
    )
    *steps, last = path.split(".")
    place: Any = reduce(lambda inside, step: inside[step], steps, config.chips["variant"].plain)
    assert (place[last], source_in(place["source"], last)) == (SETTABLE[path], "measured")
    numbers = [
        set(
            rooflines.chips(config)
            .filter(pl.col("chip") == chip, pl.col("path") != path)
            .select("path", "value")
            .rows()
        )
        for chip in ("bare", "variant")
    ]
    assert numbers[0] == numbers[1]


def test_every_number_of_a_part_can_be_set():
    assert {path.rpartition(".")[2] for path in SETTABLE} == {
        name
        for part in (Peak, Level, Network, Power)
        for name in part.model_fields
        if name in {*NUMBERS, PRINTED}
    }


def test_a_variant_may_have_parts_that_its_base_lacks():
    parts = {
        "memory.l3": {"bytes_per_s": 1e13},
        "memory.l3.capacity_bytes": 1e9,
        "networks.net": {"bytes_per_s": 1e9, "topology": "switch", "source": "a quote"},
    }
    chips = {
        **PLAIN["chips"],
        "bare": BARE,
        "variant": {"base": "bare", "source": "measured", **parts},
    }
    sweep = {
        **PLAIN["sweeps"]["mlp"],
        "chips": ["variant"],
        "memory": "l3",
        "network": "net",
        "sharding": "column",
        "thresholds": [],
    }
    config = rooflines.load_config({**PLAIN, "chips": chips, "sweeps": {"mlp": sweep}})
    assert rooflines.rows(config, "mlp").collect()["memory"].unique().to_list() == ["l3"]
    sources = dict(rooflines.chips(config).filter(chip="variant").select("path", "source").rows())
    assert sources["memory.l3.bytes_per_s"] == sources["memory.l3.capacity_bytes"] == "measured"
    assert sources["networks.net.bytes_per_s"] == "a quote"
    assert list(config.chips["variant"].networks) == ["ici", "net"]


def test_what_a_variant_says_of_sparsity_is_kept():
    base = {
        **BARE,
        "units": {
            "matrix": {"bf16": {"flops_per_s": 1e14, "printed_with_sparsity": 2e14, "halved": True}}
        },
    }
    own = {"units.matrix.bf16.printed_with_sparsity": 6e14, "units.matrix.bf16.flops_per_s": 3e14}
    chips = {
        **PLAIN["chips"],
        "bare": base,
        "plain": {"base": "bare", "units.matrix.bf16.flops_per_s": 3e14},
        "both": {"base": "bare", **own},
    }
    resolved = rooflines.load_config({**PLAIN, "chips": chips}).chips
    assert resolved["plain"].plain["units"]["matrix"]["bf16"].keys() == {"flops_per_s", "source"}
    assert resolved["both"].units["matrix"]["bf16"].printed_with_sparsity == 6e14


def test_a_mistake_in_a_catalogue_is_placed_in_that_file(tmp_path):
    (tmp_path / "dtypes.yaml").write_text(
        valid_files.DTYPES.replace("{bits: 16", "{bits: many"), encoding="utf-8"
    )
    fuzzing.use_catalogues(catalogue.CHIPS_FILE, tmp_path / "dtypes.yaml")
    with pytest.raises(
        rooflines.RooflinesError, match=r"dtypes\.yaml:3: formats\.bf16\.bits is 'many'"
    ):
        rooflines.load_config(PLAIN)


def test_a_chip_with_other_fields_keeps_nothing_of_the_first():
    """Its form and exact numbers are cached; a copy has its own."""
    chip = catalogue.chip_entries()["h100-sxm"]
    level = chip.memory["hbm"]
    assert chip.plain["prices"]
    assert "prices" not in chip.model_copy(update={"prices": None}).plain
    assert level.exact.bytes_per_s != 1e12
    assert level.model_copy(update={"bytes_per_s": 1e12}).exact.bytes_per_s == 1e12
