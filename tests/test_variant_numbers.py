"""The numbers of chips and formats: those that a variant sets, and mistakes in a catalogue."""

from functools import reduce
from typing import Any

import fuzzing
import polars as pl
import pytest
import valid_files
from valid_files import PLAIN

import rooflines
from rooflines.hardware import chip_catalogue as catalogue
from rooflines.hardware.chip_parts import NUMBER_KEYS, SPARSE_PEAK, source_in
from rooflines.hardware.entries import Chip, Level, Network, Peak, Power


@pytest.fixture(autouse=True)
def _own_catalogue():
    with fuzzing.real_catalogues():
        yield


BARE: dict[str, Any] = {
    "source": "data sheet",
    "units": {"matrix": {"bf16": {"flops_per_s": 1e14}}},
    "memory": {"hbm": {"bytes_per_s": 1e12}},
    "networks": {"ici": {"bytes_per_s": 1e10, "topology": "torus"}},
}
"""A chip with required numbers only."""

SETTABLE: dict[str, float] = {
    "units.matrix.bf16.flops_per_s": 2e14,
    "units.matrix.bf16.printed_with_sparsity": 4e14,
    "units.vector.fp32.flops_per_s": 3e13,
    "memory.hbm.bytes_per_s": 2e12,
    "memory.hbm.capacity_bytes": 1e10,
    "memory.hbm.driver_reserved_bytes": 1e8,
    "memory.hbm.bus_bits": 4096,
    "memory.hbm.pin_bits_per_s": 4e9,
    "networks.ici.bytes_per_s": 2e10,
    **{f"networks.ici.{key}": 8 for key in ("links", "domain", "ring_multiple", "pod")},
    **{f"networks.ici.{key}_s": 1e-6 for key in ("hop_latency", "typical_hop_latency")},
    "power.watts": 300,
}


@pytest.mark.parametrize("order", [1, -1])
def test_a_variant_of_a_chip_described_anew_has_the_numbers_of_that_description(order):
    rate = "memory.hbm.bytes_per_s"
    entries = {
        "h100-sxm": {"base": "h200-sxm", "source": "a test", rate: 4e12},
        "mine": {"base": "h100-sxm", "source": "a test"},
        "other": {"base": "b200", "source": "a test"},
    }
    known = catalogue.chip_entries()
    found = catalogue.resolve_chips(dict([*entries.items()][::order]), known)
    rates = {name: chip.memory["hbm"].bytes_per_s for name, chip in found.items()}
    assert rates == {
        "h100-sxm": 4e12,
        "mine": 4e12,
        "other": known["b200"].memory["hbm"].bytes_per_s,
    }


def test_a_variant_may_set_every_number_alone():
    parts = (Peak, Level, Network, Power)
    known = {
        name for part in parts for name in part.model_fields if name in {*NUMBER_KEYS, SPARSE_PEAK}
    }
    assert {path.rpartition(".")[2] for path in SETTABLE} == known
    own = {
        f"own-{number}": {"base": "bare", "source": "measured", path: SETTABLE[path]}
        for number, path in enumerate(SETTABLE)
    }
    config = rooflines.load_config({**PLAIN, "chips": {**PLAIN["chips"], "bare": BARE, **own}})
    listed = rooflines.chips(config)
    for chip, path in zip(own, SETTABLE, strict=True):
        *steps, last = path.split(".")
        place: Any = reduce(lambda inside, step: inside[step], steps, config.chips[chip].plain)
        assert (place[last], source_in(place["source"], last)) == (SETTABLE[path], "measured")
        others = listed.filter(pl.col("path") != path)
        bare, same = (
            {*others.filter(chip=name).select("path", "value").rows()} for name in ("bare", chip)
        )
        assert bare == same


@pytest.mark.parametrize(
    ("path", "value", "dropped"),
    [
        ("units.matrix.bf16.flops_per_s", 2e14, {"printed_with_sparsity", "halved"}),
        ("memory.hbm.capacity_bytes", 2e10, {"label", "driver_reserved_bytes"}),
        ("memory.hbm.bytes_per_s", 2e12, set()),
    ],
)
def test_what_describes_a_number_goes_with_it(path, value, dropped):
    peak = {"flops_per_s": 1e14, "printed_with_sparsity": 2e14, "halved": True}
    level = {**BARE["memory"]["hbm"], "capacity_bytes": 1e10, "label": "10 GB"}
    level["driver_reserved_bytes"] = 1e8
    base = {**BARE, "units": {"matrix": {"bf16": peak}}, "memory": {"hbm": level}}
    own = {"base": "bare", "source": "measured", path: value}
    chips = {**PLAIN["chips"], "bare": base, "own": own}
    config = rooflines.load_config({**PLAIN, "chips": chips})

    def keys(chip):
        steps = path.split(".")[:-1]
        place: Any = reduce(lambda inside, step: inside[step], steps, config.chips[chip].plain)
        return {*place}

    assert keys("bare") - keys("own") == dropped


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


def test_a_capacity_of_ones_own_has_neither_the_label_nor_the_estimate_of_its_base():
    own = {"mine": {"base": "gaudi3", "source": "me", "memory.hbm.capacity_bytes": 1.2e11}}
    config = rooflines.load_config({**PLAIN, "chips": {**PLAIN["chips"], **own}})
    listed = rooflines.chips(config).filter(path="memory.hbm.capacity_bytes")
    of = {row["chip"]: (row["estimate"], row["label"]) for row in listed.to_dicts()}
    assert of["gaudi3"] == (True, "128 GB")
    assert of["mine"] == (False, None)


def test_a_capacity_that_is_an_estimate_makes_no_estimate_of_the_bandwidth():
    listed = rooflines.chips().filter(chip="h200-nvl").to_dicts()
    estimates = {row["path"] for row in listed if row["estimate"]}
    assert {path for path in estimates if path.startswith("memory.hbm")} == {
        "memory.hbm.capacity_bytes",
        "memory.hbm.driver_reserved_bytes",
    }


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


@pytest.mark.parametrize("dates", [("2026-01-01", "2025-12-31"), ("2025-12-31", "2026-01-01")])
def test_of_equal_prices_the_latest_counts(dates):
    sold = [{"usd_per_hour": 2, "provider": "a", "date": date, "source": "x"} for date in dates]
    dearer = {"usd_per_hour": 3, "provider": "a", "date": "2026-06-01", "source": "x"}
    price = Chip.model_validate({**BARE, "prices": [*sold, dearer]}).lowest_price()
    assert price is not None
    assert (price.usd_per_hour, price.date) == (2, "2026-01-01")
