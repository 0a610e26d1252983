"""The coefficients of the page "What if" against the formulas of the package, at many sizes."""

from fractions import Fraction

import pytest

from rooflines.catalogue.chips import chip_entries, dtype_entries
from rooflines.catalogue.entries import Chip, shares_of
from rooflines.fits.entries import shipped_calibrations
from rooflines.model.costs import COSTS, Workload, exact_cost
from rooflines.model.network import Route, most_chips
from rooflines.model.operation import OPERANDS, operation
from rooflines.model.resources import collective_rate
from rooflines.model.sharding import sharding
from rooflines.site.fits import OWN, fits
from rooflines.site.formulas import WORKS, formulas, routes_of

BATCHED = "BHSD,BHTD->BHST"
BITS = {"x": Fraction(16), "w": Fraction(9, 2), "out": Fraction(32)}
CHIPS = 70
"""Numbers of chips tried [1]: more than one ring of every torus of the catalogue."""

ODD = {
    **chip_entries()["tpu-v5e"].plain,
    "networks": {
        "ici": {
            "bytes_per_s": 4.5e10,
            "topology": "torus",
            "links": 4,
            "domain": 60,
            "ring_multiple": 3,
            "hop_latency_s": 1e-6,
        },
        "loop": {"bytes_per_s": 1e10, "topology": "torus", "domain": 9, "ring_multiple": 1},
    },
    "efficiency": {"math": 0.9, "memory": 0.8, "network": 0.7},
}
"""A chip with rings of odd numbers of chips, and with efficiencies."""


@pytest.fixture(scope="module")
def data():
    chips = {**chip_entries(), "odd": Chip.model_validate(ODD)}
    return formulas(chips, dtype_entries(), [BATCHED])


def value(coefficients, n):
    """A polynomial at n, divided by n."""
    powers = enumerate(map(Fraction, coefficients))
    return sum((one * n**power for power, one in powers), Fraction(0)) / n


def work_at(terms, n, sizes):
    """A work from its terms."""
    total = Fraction(0)
    for operand, dims, coefficients in terms:
        product = value(coefficients, n) * (BITS[operand] / 8 if operand else 1)
        for dim in dims:
            product *= sizes[dim]
        total += product
    return total


def workloads(op, name):
    """The workload of a sharding on several numbers of chips; a payload is sent once."""
    for n in (1, 2, 5, 48):
        scheme = sharding(name, op)
        yield Workload(op, BITS, scheme, n, (Fraction(1),), {}, op.flops)


def test_works_are_those_of_the_model(data):
    assert set(WORKS) <= set(COSTS)
    seen = set()
    for entry in data["operations"]:
        op = operation(entry["name"])
        sizes = {dim: 96 + 7 * place for place, dim in enumerate(op.dims)}
        for name, scheme in entry["shardings"].items():
            seen.add((op.name, name))
            for workload in workloads(op, name):
                for work in WORKS:
                    terms = scheme["works"][work]
                    assert work_at(terms, workload.shards, sizes) == exact_cost(
                        workload, work, sizes
                    ), (op.name, name, work, workload.shards)
    assert ("matmul", "contracting/all-reduce") in seen
    assert (BATCHED, "column") in seen
    assert ("dot", "column") not in seen


def piece_of(network, n):
    """The first piece that has a number of chips."""
    return next(
        piece
        for piece in network["pieces"]
        if piece["least"] <= n <= piece["most"] and n % piece["step"] == piece["offset"]
    )


def test_networks_are_those_of_the_model(data):
    entries = {**chip_entries(), "odd": Chip.model_validate(ODD)}
    rings = groups = 0
    for chip in data["chips"]:
        entry = entries[chip["id"]]
        efficiency = shares_of(entry.efficiency).get("network", Fraction(1))
        routes = routes_of(entry)
        assert [data["networks"][index]["name"] for index in chip["networks"]] == list(routes)
        for network in (data["networks"][index] for index in chip["networks"]):
            links = routes[network["name"]]
            most, published = most_chips(links)
            assert network["published"] == published
            assert network["most"] == (2**53 if most is None else most)
            for n in range(2, min(network["most"], CHIPS) + 1):
                if network["group"] and n > network["group"] and n % network["group"]:
                    continue
                rings += links[0].closes(n)
                groups += len(links) > 1 and n > network["group"]
                for collective, sent in piece_of(network, n)["collectives"].items():
                    route = Route(links, (n,))
                    bytes_sent = sum(route.sent(collective))
                    rate = collective_rate(route, collective, efficiency)
                    assert value(sent["sent"], n) == bytes_sent
                    seconds = max(value(level["seconds"], n) for level in sent["levels"])
                    assert seconds == bytes_sent / rate.per_s
                    latency = max(value(level["latency"], n) for level in sent["levels"])
                    assert latency == rate.latency_s
    assert min(rings, groups) > 30


def test_rates_and_dtypes_are_those_of_the_catalogue(data):
    chips = {chip["id"]: chip for chip in data["chips"]}
    h100, odd = chips["h100-sxm"], chips["odd"]
    assert set(chips) == {*chip_entries(), "odd"}
    assert h100["units"]["matrix"]["bf16"] == {"nominal": 989 * 10**12, "rate": 989 * 10**12}
    assert h100["memory"] == {
        "nominal": 3350 * 10**9,
        "rate": 3350 * 10**9,
        "capacity": 80 * 10**9,
    }
    assert odd["units"]["matrix"]["bf16"]["rate"] == 197 * 10**12 * 9 // 10
    assert odd["memory"]["rate"] == 819 * 10**9 * 8 // 10
    forms = {form["name"]: form for form in data["dtypes"]}
    assert set(forms) == set(dtype_entries().combinations)
    assert forms["w8a16"] == {
        "name": "w8a16",
        "compute": "bf16",
        "bytes": dict(zip(OPERANDS, (2, 1, 2), strict=True)),
    }
    assert forms["w4a16-g128"]["bytes"]["w"] == "33/64"


def test_calibrations_are_those_of_the_chip_and_of_software():
    own = {"bf16": {"math": 0.8, "memory": 0.5, "overhead_s": 2e-6}}
    odd = Chip.model_validate({**ODD, "calibration": own, "source": "a test", "estimate": True})
    found = fits({"odd": odd, "h100-sxm": chip_entries()["h100-sxm"]}, shipped_calibrations())
    assert set(found) == {"odd", "h100-sxm"}
    assert found["odd"][OWN]["matrix"]["bf16"] == {
        "tile": 1,
        "common": {"": "1/500000"},
        "pieces": [
            ["compute", {"math": "5/4"}],
            ["memory", {"memory": 2}],
            ["network", {"network": 1}],
        ],
        "bands": {},
        "contents": [],
        "sent": {},
    }
    assert {"trtllm", "trtllm-dynamic", "trtllm-block", "vllm", "sglang"} <= set(found["h100-sxm"])
    assert set(found["h100-sxm"]["trtllm"]) == {"matrix"}
    every = found["h100-sxm"]["trtllm"]["matrix"]["bf16"]["sent"]
    sent = every["all-reduce"]
    assert (sent["software"], every["all-gather"]["software"]) == ("trtllm", "nccl")
    hop_s = shipped_calibrations().collectives["h100-sxm/trtllm"]["all-reduce"].numbers.hop_s
    for chips in (2, 5, 8):
        assert value(sent["waits"], chips) == 2 * (chips - 1) * hop_s
