"""The formulas of operations as data of a page: coefficients that the page evaluates.

No formula is written here, nor in the page: the coefficients are those of `model.kernel`, the rates
those of `model.resources`. N times a work or a time is a polynomial in the number of chips N, on
each segment of `critical.chips`.
"""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.catalogue.dtypes import combinations_of
from rooflines.catalogue.entries import MAIN_MEMORY, shares_of
from rooflines.critical.chips import (
    SINGLE,
    interpolated,
    numbers_of,
    through,
)
from rooflines.fits.entries import shipped_calibrations
from rooflines.model.costs import BITS_PER_BYTE, Workload
from rooflines.model.kernel import operation_kernel
from rooflines.model.network import BETWEEN, PAIR, Route
from rooflines.model.operation import NAMED as OPERATIONS
from rooflines.model.operation import OPERANDS, operation
from rooflines.model.resources import RESOURCES, math_rate, memory_rate, network_rates
from rooflines.model.sharding import NAMED as SHARDINGS
from rooflines.model.sharding import Sharding, sharding
from rooflines.model.target import MemoryLevel, Target
from rooflines.site.fits import fits
from rooflines.site.rationals import coefficients, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.catalogue.dtypes import StoredDtypes
    from rooflines.catalogue.entries import Chip, DtypeFile
    from rooflines.fits.entries import Calibrations
    from rooflines.model.network import Link
    from rooflines.model.operation import Operation

WORKS = (*(resource.work for resource in RESOURCES), "footprint_bytes")
"""The costs that the page shows; `network_bytes` stands for the payload of the collective."""

WEIGHED = ("x", "out", "depth")
"""What calibrations weigh besides: bytes of `x` and `out`, and contracted elements, of one chip."""

SAMPLES = (1, 2, 3)
"""Numbers of chips that determine N times a work, which is at most quadratic in N [1]."""

LEVEL = ("seconds", "latency", "typical")
"""What a level of a network has by the number of chips."""

ANY_RATE = Fraction(1)
"""A rate that the one in question does not depend on."""


def formulas(
    chips: Mapping[str, Chip],
    dtypes: DtypeFile,
    operations: Iterable[str] = (),
    calibrations: Calibrations | None = None,
) -> JSON:
    """All coefficients and rates that the page needs.

    Args:
        chips: Entries by id.
        dtypes: The dtype catalogue; the page offers its combinations.
        operations: Operations besides the named ones, as names or einsums.
        calibrations: Those of the chips by software; None: the package's own.

    Returns:
        `resources`, `operations`, `dtypes`, `networks`, `chips` with indices of their networks,
        and `fits` of chips by software.
        Numbers are integers, or rationals as text such as `1/8`.
    """
    ops = {op.name: op for op in (*OPERATIONS.values(), *map(operation, operations))}
    schemes = {name: _schemes(op) for name, op in ops.items()}
    collectives = {
        _collective(scheme): scheme
        for by_name in schemes.values()
        for scheme in by_name.values()
        if scheme.transfers
    }
    by_name = combinations_of(list(dtypes.combinations), dtypes)
    return {
        "resources": [{"name": r.name, "work": r.work, "bound": r.bound} for r in RESOURCES],
        "operations": [_operation(op, schemes[name]) for name, op in ops.items()],
        "dtypes": [_dtypes(combination) for combination in by_name.values()],
        **_shared_networks([_chip(chip, entry, collectives) for chip, entry in chips.items()]),
        "fits": fits(chips, shipped_calibrations() if calibrations is None else calibrations),
    }


def _schemes(op: Operation) -> dict[str, Sharding]:
    """The named shardings that an operation has."""
    schemes = {}
    for name in SHARDINGS:
        try:
            schemes[name] = sharding(name, op)
        except RooflinesError:
            continue
    return schemes


def _collective(scheme: Sharding) -> str:
    """What a sharding sends, as a key; empty for nothing."""
    return "+".join(collective for _, collective in scheme.transfers)


def _operation(op: Operation, schemes: Mapping[str, Sharding]) -> JSON:
    return {
        "name": op.name,
        "shardings": {
            name: {
                "collective": _collective(scheme),
                "rows": coefficients(_spread(op, scheme)),
                "works": {work: _work(op, scheme, work) for work in (*WORKS, *WEIGHED)},
            }
            for name, scheme in schemes.items()
        },
    }


def _spread(op: Operation, scheme: Sharding) -> Sequence[Fraction]:
    """Chips that split the first dimension, as a polynomial in N."""
    row = op.dims[0]
    points = [(n, Fraction(_workload(op, scheme, n, "").share(row))) for n in SAMPLES]
    return interpolated(points)


def _work(op: Operation, scheme: Sharding, work: str) -> list[list[object]]:
    """N times a work as terms: operand, dimensions, and the coefficients of N^0, N^1, ...

    A term is a polynomial in N, times the bytes per element of its operand (none: 1), times the
    sizes of its dimensions.
    """
    terms: list[list[object]] = []
    apart = [_costs(op, scheme, n, "")[work] for n in SAMPLES]
    for operand in ("", *OPERANDS):
        samples = [_costs(op, scheme, n, operand)[work] for n in SAMPLES]
        if operand:  # linear in the bytes per element: what is left without any is the first term
            samples = [
                {dims: value - without[dims] for dims, value in each.items()}
                for each, without in zip(samples, apart, strict=True)
            ]
        terms.extend(
            [operand, list(dims), coefficients(polynomial)]
            for dims, polynomial in through(SAMPLES, samples).items()
            if any(polynomial)
        )
    return terms


@cache
def _costs(
    op: Operation, scheme: Sharding, shards: int, operand: str
) -> Mapping[str, Mapping[tuple[str, ...], Fraction]]:
    """The costs where one operand has a byte per element, the others none."""
    kernel = operation_kernel(_workload(op, scheme, shards, operand), "")
    works = {each.work: each.of(kernel) for each in RESOURCES}
    polys = {**kernel.works, **works, **kernel.moved}
    return {name: poly.coefficients for name, poly in polys.items()}


def _workload(op: Operation, scheme: Sharding, shards: int, operand: str) -> Workload:
    """The workload where one operand has a byte per element, the others none."""
    bits = {name: Fraction(BITS_PER_BYTE if name == operand else 0) for name in OPERANDS}
    return Workload(op, bits, scheme, shards, (Fraction(1),), {}, op.flops)


def _dtypes(combination: StoredDtypes) -> JSON:
    bits = combination.bits
    return {
        "name": combination.name,
        "compute": combination.compute,
        "bytes": {operand: plain(bits[operand] / BITS_PER_BYTE) for operand in OPERANDS},
    }


def _chip(chip: str, entry: Chip, collectives: Mapping[str, Sharding]) -> JSON:
    level = entry.memory.get(MAIN_MEMORY)
    return {
        "id": chip,
        "name": entry.name or chip,
        "vendor": entry.vendor,
        "units": {
            unit: {dtype: _rates(entry, peak.exact) for dtype, peak in peaks.items()}
            for unit, peaks in entry.units.items()
        },
        "memory": None if level is None or level.bytes_per_s is None else _memory(entry),
        "reached": plain(shares_of(entry.efficiency).get("network", Fraction(1))),
        "networks": [
            _route(name, links, entry, collectives) for name, links in routes_of(entry).items()
        ],
    }


def _shared_networks(chips: Sequence[JSON]) -> JSON:
    """Chips with indices of their networks: many chips have the same ones."""
    networks: dict[str, tuple[int, JSON]] = {}

    def index(network: JSON) -> int:
        return networks.setdefault(json.dumps(network), (len(networks), network))[0]

    indexed = [{**chip, "networks": list(map(index, chip["networks"]))} for chip in chips]
    return {"chips": indexed, "networks": [network for _, network in networks.values()]}


def _rates(entry: Chip, peak: Fraction) -> JSON:
    """The nominal peak, and the rate that formulas read."""
    rate = math_rate(_target(entry, peak, MemoryLevel(ANY_RATE)))
    return {"nominal": plain(peak), "rate": plain(rate.per_s)}


def _memory(entry: Chip) -> JSON:
    level = entry.memory[MAIN_MEMORY].exact
    rate = memory_rate(_target(entry, ANY_RATE, level))
    return {
        "nominal": plain(level.bytes_per_s),
        "rate": plain(rate.per_s),
        "capacity": None if level.capacity_bytes is None else plain(level.capacity_bytes),
    }


def _target(
    entry: Chip,
    peak: Fraction,
    level: MemoryLevel,
    route: Route | None = None,
    scheme: Sharding | None = None,
) -> Target:
    shares = {resource.name: Fraction(1) for resource in RESOURCES} | shares_of(entry.efficiency)
    return Target(peak, level, route, scheme or Sharding("none"), shares)


def routes_of(entry: Chip) -> dict[str, tuple[Link, ...]]:
    """The routes of a chip that the page offers, by their names in tables.

    Returns:
        Each interconnect alone, and two of them where the inner joins a published number of chips,
        the outer joins more, and neither is a torus.
    """
    links = {name: network.exact for name, network in entry.networks.items()}
    routes: dict[str, tuple[Link, ...]] = {name: (link,) for name, link in links.items()}
    for (inner, near), (outer, far) in combinations(links.items(), 2):
        group = (near.domain or 0) if near.published else 0
        joins_more = group >= PAIR and (far.domain is None or far.domain > group)
        if joins_more and "torus" not in (near.topology, far.topology):
            routes[f"{inner}{BETWEEN}{outer}"] = (near, far)
    return routes


def _route(
    name: str, links: tuple[Link, ...], entry: Chip, collectives: Mapping[str, Sharding]
) -> JSON:
    """One interconnect along one axis, or two: its limits, and its pieces, the first that fits."""
    numbers = numbers_of(links)
    pieces = []
    segments = [segment for segment in numbers.segments if segment.name != SINGLE]
    for piece in reversed(segments):  # rings before lines, groups before one
        routes = [Route(links, (n,)) for n in piece.samples]
        pieces.append(
            {
                "least": piece.least,
                "most": piece.most,
                "step": piece.step,
                "offset": piece.offset,
                "collectives": {
                    key: _transfer(entry, scheme, routes) for key, scheme in collectives.items()
                },
            }
        )
    return {
        "name": name,
        "link": plain(links[0].bytes_per_s) if len(links) == 1 else None,
        "most": numbers.most,
        "group": numbers.group,
        "published": numbers.published,
        "pieces": pieces,
    }


def _transfer(entry: Chip, scheme: Sharding, routes: Sequence[Route]) -> JSON:
    """A collective on a piece, as polynomials.

    Returns:
        `sent`, N times the bytes sent per byte of payload [1]; for each of the `levels` that send
        at the same time, N times the `seconds` per byte of payload, and the `latency`, the least
        one and the `typical` one [s].
    """
    values: list[dict[tuple[str, ...], Fraction]] = []
    for route in routes:
        target = _target(entry, ANY_RATE, MemoryLevel(ANY_RATE), route, scheme)
        rates, usual = network_rates(target), network_rates(target, typical=True)
        amounts = route.sent(scheme.transfers[0][1])
        own: dict[tuple[str, ...], Fraction] = {("sent",): sum(amounts, Fraction(0))}
        for level, (sent, rate, slow) in enumerate(zip(amounts, rates, usual, strict=True)):
            own["seconds", f"{level}"] = sent / rate.per_s
            own["latency", f"{level}"] = rate.latency_s
            own["typical", f"{level}"] = slow.latency_s
        values.append(own)
    polynomials = through([route.axes[0] for route in routes], values)
    return {
        "sent": coefficients(polynomials["sent",]),
        "levels": [
            {name: coefficients(polynomials[name, f"{level}"]) for name in LEVEL}
            for level in range(len(routes[0].links))
        ],
    }
