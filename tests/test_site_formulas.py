"""The coefficients of the first page against the formulas of the package, at many sizes."""

import math
from fractions import Fraction
from typing import Any

import pytest

from rooflines.fits.calibration_files import shipped_calibrations
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.hardware.entries import Chip, shares_of
from rooflines.models.memory import cache_on_chip
from rooflines.models.split import Split
from rooflines.site.calibration_data import CHIP_ENTRY, SOFTWARE, first_fits
from rooflines.site.matmuls import matmul_data
from rooflines.site.model_steps import split_data, step_data
from rooflines.sweep.one_chip import sweep_on
from rooflines.sweep.training_sweep import TrainingCase
from rooflines.theory.network import Route, max_domain
from rooflines.theory.resources import collective_rate

CHIPS = 70
"""Numbers of chips tried [1]: more than one ring of every torus of the catalogue."""

ODD: dict[str, Any] = {**chip_entries()["tpu-v5e"].plain}
ODD["efficiency"] = {"math": 0.9, "memory": 0.8, "network": 0.7}
LINK = {"bytes_per_s": 4.5e10, "topology": "torus", "links": 4, "hop_latency_s": 1e-6}
ODD["networks"] = {
    "ici": {**LINK, "domain": 60, "ring_multiple": 3},
    "loop": {**LINK, "links": 1, "domain": 9, "ring_multiple": 1},
}
"""A chip with rings of odd numbers of chips, and with efficiencies."""

ENTRIES = {**chip_entries(), "odd": Chip.model_validate(ODD)}


@pytest.fixture(scope="module")
def data():
    return matmul_data(ENTRIES, dtype_entries())


def value(terms, n, extents=None):
    known = {"N": n, "1/N": Fraction(1, n), **(extents or {})}
    products = (
        Fraction(factor) * math.prod(known[name] for name in product.split())
        for product, factor in terms.items()
    )
    return sum(products, Fraction(0))


def piece_of(network, n):
    return next(
        piece
        for piece in network["segments"]
        if piece["first"] <= n <= piece["last"] and n % piece["step"] == piece["offset"]
    )


def test_networks_are_those_of_the_model(data):
    rings = 0
    for chip in data["chips"]:
        entry = ENTRIES[chip["id"]]
        efficiency = shares_of(entry.efficiency).get("network", Fraction(1))
        assert (chip["network"] is None) == (not entry.networks)
        if chip["network"] is None:
            continue
        network = data["networks"][chip["network"]]
        link = next(iter(entry.networks.values())).exact
        most, published = max_domain((link,))
        assert network["is_published"] == published
        assert network["max_chips"] == (2**53 if most is None else most)
        for n in range(2, min(network["max_chips"], CHIPS) + 1):
            if network["group"] and n > network["group"] and n % network["group"]:
                continue
            rings += link.is_ring(n)
            for collective, levels in piece_of(network, n)["collectives"].items():
                route = Route((link,), (n,))
                rate = collective_rate(route, collective, efficiency)
                seconds = max(value(level["seconds_per_byte"], n) for level in levels)
                assert seconds == sum(route.bytes_per_payload_byte(collective)) / rate.per_s
                assert max(value(level["latency_s"], n) for level in levels) == rate.latency_s
    assert rings > 30


def test_a_fitted_chip_without_a_network_sends_nothing():
    lone = chip_entries()["h100-sxm"].model_copy(update={"networks": {}})
    fit = first_fits({"h100-sxm": lone}, shipped_calibrations())["h100-sxm"]["bf16"]
    assert fit["software"] == "vllm"
    assert fit["collectives"] == {}


def test_calibrations_are_those_of_the_chip_and_of_software():
    own = {"bf16": {"math": 0.8, "memory": 0.5, "overhead_s": 2e-6}}
    odd = Chip.model_validate({**ODD, "calibration": own, "source": "a test", "estimate": True})
    found = first_fits({"odd": odd, "h100-sxm": chip_entries()["h100-sxm"]}, shipped_calibrations())
    assert set(found) == {"odd", "h100-sxm"}
    assert found["odd"]["bf16"] == {
        "software": CHIP_ENTRY,
        "calibration": "auto",
        "tile": 1,
        "common": {"": "1/500000"},
        "pieces": [
            {"bound": "compute", "terms": {"math": "5/4"}},
            {"bound": "memory", "terms": {"memory": 2}},
            {"bound": "network", "terms": {"network": 1}},
        ],
        "bands": {},
        "range": None,
        "collectives": {},
    }
    assert {each["software"] for each in found["h100-sxm"].values()} <= {*SOFTWARE}
    first = found["h100-sxm"]["bf16"]
    assert first["software"] == "vllm"
    sent = first["collectives"]["all-reduce"]
    hop_s = shipped_calibrations().collectives["h100-sxm/vllm"]["all-reduce"].numbers.hop_s
    for chips in (2, 5, 8):
        assert value(sent["step_seconds"], chips) == 2 * (chips - 1) * hop_s


@pytest.mark.parametrize(("interleave", "waits"), [(1, 3), (2, 1.5), (6, 0.5)])
def test_a_stage_waits_for_as_many_runs_of_others_as_a_pipeline_fills_with(interleave, waits):
    shape = {"name": "deep", "layers": 24, "D": 64, "V": 100, "mlp": {"F": 64}}
    model = {**shape, "attention": {"N": 8, "K": 2, "H": 8}}
    plan = {"pp": 4, "interleave": interleave}
    keys = {"phase": "train", "grid": {"B": 1, "S": 64}, "splits": [plan], "thresholds": []}
    sweep = sweep_on(model, "h100-sxm", "bf16", entries=chip_entries(), **keys)
    ((step,),) = (each["steps"] for each in step_data([sweep])["models"])
    assert (step["pp"], step["bubble_runs"]) == (4, waits)


def test_a_stage_has_the_memory_of_its_kind_and_its_share_of_the_kernels():
    shape = {"name": "deep", "layers": 6, "D": 64, "V": 100, "mlp": {"F": 64}}
    model = {**shape, "attention": {"N": 8, "K": 2, "H": 8}}
    keys = {"phase": "train", "grid": {"B": 4, "S": 64}, "splits": [{"pp": 3}], "thresholds": []}
    sweep = sweep_on(model, "h100-sxm", "bf16", entries=chip_entries(), **keys)
    ((step,),) = (each["steps"] for each in step_data([sweep])["models"])
    (case,) = sweep.cases
    assert isinstance(case, TrainingCase)
    assert len(step["stages"]) == len(case.workload.stages) == 3
    for stage, memory in zip(step["stages"], case.stage_memory, strict=True):
        assert stage["fixed_bytes"] == float(memory.states)
        saved = [cache["pieces"][0]["coefficients"] for cache in stage["cache_bytes"]]
        assert saved == [[0, float(memory.saved(n))] for n in range(1, memory.max_in_flight + 1)]
    layers, unembed = (
        next(index for index, run in enumerate(case.runs) if run.kernel.name == name)
        for name in ("qkv-fwd", "unembed-fwd")
    )
    assert [stage["shares"][layers] for stage in step["stages"]] == [1, 1, 1]
    assert sorted(stage["shares"][unembed] for stage in step["stages"]) == [0, 0, 3]


@pytest.mark.parametrize(
    ("keys", "option", "numbers"),
    [
        ({}, "tp=1", (1, 1, 1)),
        ({"tp": 8}, "tp=8", (8, 1, 1)),
        ({"tp": 2, "dp": 4, "ep": 8}, "tp=2,dp=4,ep=8", (8, 4, 1)),
    ],
)
def test_a_split_has_its_option_and_its_chips(keys, option, numbers):
    split = split_data(Split.model_validate(keys))
    assert split["option"] == option
    assert (split["chips"], split["dp"], split["cp"]) == numbers


@pytest.mark.parametrize("name", ["gpt-oss-20b", "llama-4-scout", "gemma-3-27b"])
def test_caches_of_windows_grow_as_those_of_the_model(name):
    keys = {"grid": {"B": 1, "S": 64}, "splits": [{}], "thresholds": []}
    sweep = sweep_on(name, "b200", "bf16", entries=chip_entries(), **keys)
    ((step,),) = (each["steps"] for each in step_data([sweep])["models"])
    (pieces,) = (cache["pieces"] for cache in step["stages"][0]["cache_bytes"])
    (case,) = sweep.cases
    (window,) = (each.tokens for each in case.model.shape.attention_windows if each.tokens)
    for context in (1, window - 1, window, window + 1, 3 * window + 5):
        *_, last = (piece["coefficients"] for piece in pieces if piece["start"] <= context)
        found = sum(factor * context**power for power, factor in enumerate(last))
        sharing = case.sharing
        exact = cache_on_chip(case.model.shape, context, sharing.bits, sharing.split)
        assert found == pytest.approx(float(exact))
