"""Matmul data for the explorer: sums of products that the page evaluates.

Neither this module nor the page has a formula: works come from `theory.kernel`, rates from
`theory.resources`. One chip's work or time on N chips is p(N) / N with a polynomial p on each
segment from `solvers.chip_limit`.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.charts.frames import has_bandwidth
from rooflines.charts.kit.chart_text import chip_label, part_name
from rooflines.charts.kit.chip_colours import chip_order, shades
from rooflines.charts.kit.themes import theme
from rooflines.hardware.dtype_catalogue import resolve_combinations
from rooflines.hardware.entries import MAIN_MEMORY, shares_of
from rooflines.site.coefficients import Pool, Terms, json_number, over_chips
from rooflines.solvers.chip_limit import SINGLE, find_chip_numbers, interpolate, polynomials_through
from rooflines.theory.costs import BITS_PER_BYTE, Workload
from rooflines.theory.kernel import operation_kernel
from rooflines.theory.network import Route
from rooflines.theory.operation import MATRIX, NAMED_OPERATIONS, OPERANDS
from rooflines.theory.resources import NETWORK, RESOURCES, collective_rates, math_rate, memory_rate
from rooflines.theory.sharding import NAMED_SHARDINGS, Sharding, parse_sharding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.hardware.dtype_catalogue import DtypeFile, StoredDtypes
    from rooflines.hardware.entries import Chip
    from rooflines.theory.extents import Product

MATMUL = next(iter(NAMED_OPERATIONS.values()))
"""Operation on the page."""

WORKS = (*(resource.work for resource in RESOURCES), "footprint_bytes")
"""Costs on the page; `network_bytes` is the collective's payload."""

CALIBRATION_INPUTS = ("x", "out", "depth", "columns")
"""Further inputs of calibrations, on one chip: bytes of `x` and `out`, D, and F."""

SAMPLES = (1, 2, 3)
"""Chip counts that determine N * work, which is at most quadratic in N [1]."""

LEVEL = ("seconds_per_byte", "latency_s", "typical_latency_s")
"""Quantities per network level that depend on the chip count."""


def matmul_data(chips: Mapping[str, Chip], dtypes: DtypeFile) -> JSON:
    """Matmul works, and chip rates.

    Args:
        chips: Entries by id.
        dtypes: Dtype catalogue; the page offers its combinations.

    Returns:
        `works` by sharding; `dtypes` that some chip has a peak for; `chips` with a peak
        and a bandwidth; and distinct `networks`, which chips refer to by index.
        Numbers are integers, or rationals as text such as `1/8`.
    """
    schemes = _schemes()
    networks = Pool()
    listed = [
        _chip(chip, entry, schemes, networks)
        for chip, entry in chips.items()
        if entry.units.get(MATRIX) and has_bandwidth(entry)
    ]
    peaks = {compute for combination in listed for compute in combination["peaks"]}
    combinations = resolve_combinations(list(dtypes.combinations), dtypes).values()
    return {
        "works": {name: _works(scheme) for name, scheme in schemes.items()},
        "dtypes": [
            _dtypes(combination) for combination in combinations if combination.compute in peaks
        ],
        "networks": networks.values,
        "chips": listed,
    }


def _schemes() -> dict[str, Sharding]:
    """Named shardings for a matmul."""
    schemes = {}
    for name in NAMED_SHARDINGS:
        with suppress(RooflinesError):
            schemes[name] = parse_sharding(name, MATMUL)
    return schemes


def _collective(scheme: Sharding) -> str:
    """Collective names in a sharding, joined by "+"; "" if it has none."""
    return "+".join(collective for _, collective in scheme.transfers)


def _works(scheme: Sharding) -> JSON:
    """Collective, chips that split the first dimension, and works under a sharding."""
    row = MATMUL.dims[0]
    spread = [(n, n * Fraction(_workload(scheme, n, "").shards_along(row))) for n in SAMPLES]
    return {
        "collective": _collective(scheme),
        "row_shards": over_chips(interpolate(spread)),
        "works": {work: _work(scheme, work) for work in (*WORKS, *CALIBRATION_INPUTS)},
    }


def _work(scheme: Sharding, work: str) -> Terms:
    """One chip's work as terms in sizes, bytes per operand element, and chips."""
    terms: Terms = {}
    constants = [_costs(scheme, n, "")[work] for n in SAMPLES]
    for operand in ("", *OPERANDS):
        samples = [_costs(scheme, n, operand)[work] for n in SAMPLES]
        if operand:  # linear in the bytes per element: what is left without any is the first term
            samples = [
                {dims: value - without.get(dims, 0) for dims, value in costs.items()}
                for costs, without in zip(samples, constants, strict=True)
            ]
        for dims, polynomial in polynomials_through(SAMPLES, samples).items():
            terms |= over_chips(polynomial, [*dims, *operand.split()])
    return terms


@cache
def _costs(scheme: Sharding, shards: int, operand: str) -> Mapping[str, Mapping[Product, Fraction]]:
    """Costs if one operand has a byte per element and the rest have none."""
    kernel = operation_kernel(_workload(scheme, shards, operand), "")
    works = {resource.work: resource.kernel_work(kernel) for resource in RESOURCES}
    polys = {**kernel.works, **works, **kernel.fit_terms}
    return {name: poly.terms for name, poly in polys.items()}


def _workload(scheme: Sharding, shards: int, operand: str) -> Workload:
    """Workload if one operand has a byte per element and the rest have none."""
    bits = {name: Fraction(BITS_PER_BYTE if name == operand else 0) for name in OPERANDS}
    return Workload(MATMUL, bits, scheme, shards, (Fraction(1),), {}, MATMUL.flops)


def _dtypes(combination: StoredDtypes) -> JSON:
    bits = combination.bits
    return {
        "name": combination.name,
        "compute": combination.compute,
        "bytes": {operand: json_number(bits[operand] / BITS_PER_BYTE) for operand in OPERANDS},
    }


def _chip(chip: str, entry: Chip, schemes: Mapping[str, Sharding], networks: Pool) -> JSON:
    """Chip record: names, colours, price, rates, and its first network."""
    network = next(iter(entry.networks), None)
    machine = entry.chip_rates(MATRIX, MAIN_MEMORY, entry.efficiency)
    capacity, price = machine.level.capacity_bytes, entry.lowest_price()
    colours = {}
    place = chip_order({chip: entry.vendor}).index(chip)
    for name, dark in (("light", False), ("dark", True)):
        order = shades(theme(dark=dark).ink, dark=dark)
        colours[name] = order[place % len(order)]
    return {
        "id": chip,
        "label": entry.short or chip_label(chip),
        "usual": entry.usual,
        "name": entry.name or chip,
        "vendor": entry.vendor,
        "is_variant": entry.base is not None,
        "colours": colours,
        "peaks": {
            dtype: {
                "nominal": json_number(peak),
                "rate": json_number(math_rate(machine, dtype)),
            }
            for dtype, peak in machine.peaks.items()
        },
        "memory": {
            "nominal": json_number(machine.level.bytes_per_s),
            "rate": json_number(memory_rate(machine, MATRIX)),
            "capacity": None if capacity is None else json_number(capacity),
        },
        "network_efficiency": json_number(shares_of(entry.efficiency).get("network", Fraction(1))),
        "network": None if network is None else networks.index(_network(entry, network, schemes)),
        "link_name": None if network is None else _one_axis(entry, network),
        "price": price and {"usd_per_hour": price.usd_per_hour, "text": str(price)},
    }


def _one_axis(entry: Chip, name: str, before: str = "") -> str:
    """Interconnect's display name; in a torus one axis, all that a matmul uses here.

    Args:
        entry: The chip.
        name: The interconnect.
        before: Word before the name if it has no axes.
    """
    part = part_name(name)
    if entry.networks[name].exact.axes > 1:
        return f"one axis of {part}"
    return f"{before} {part}".strip()


def _network(entry: Chip, name: str, schemes: Mapping[str, Sharding]) -> JSON:
    """Interconnect along one axis: limits, and chip-count segments; the first one counts."""
    link = entry.networks[name].exact
    numbers = find_chip_numbers((link,))
    sending = {_collective(scheme): scheme for scheme in schemes.values() if scheme.transfers}
    return {
        "link_bytes_per_s": json_number(link.bytes_per_s),
        "max_chips": numbers.max_chips,
        "group": numbers.group,
        "is_published": numbers.is_published,
        "limit": f"{numbers.max_chips:,} chips at most on {_one_axis(entry, name, 'one')}"
        if numbers.is_published
        else f"no published number of chips on {_one_axis(entry, name, 'one')}",
        "segments": [
            {
                "first": segment.first,
                "last": segment.last,
                "step": segment.step,
                "offset": segment.offset,
                "collectives": {
                    key: _levels(entry, scheme, [Route((link,), (n,)) for n in segment.samples])
                    for key, scheme in sending.items()
                },
            }
            for segment in reversed(numbers.segments)  # rings before lines
            if segment.name != SINGLE
        ],
    }


def _levels(entry: Chip, scheme: Sharding, routes: Sequence[Route]) -> list[JSON]:
    """Collective terms on a segment, per network level; levels send concurrently.

    Returns:
        By level: payload's `seconds_per_byte` [s/byte], minimum and typical latency [s].
    """
    values: list[dict[tuple[str, ...], Fraction]] = []
    kind, times = scheme.transfers[0][1], len(scheme.transfers)
    share = shares_of(entry.efficiency).get(NETWORK.name, Fraction(1))
    for route in routes:
        rates, usual = (
            collective_rates(route, kind, share, typical=typical) for typical in (False, True)
        )
        level_values: dict[tuple[str, ...], Fraction] = {}
        for level, (amount, rate, slow) in enumerate(
            zip(route.bytes_per_payload_byte(kind), rates, usual, strict=True)
        ):
            level_values["seconds_per_byte", f"{level}"] = amount / rate.per_s
            level_values["latency_s", f"{level}"] = times * rate.latency_s
            level_values["typical_latency_s", f"{level}"] = times * slow.latency_s
        values.append(level_values)
    polynomials = polynomials_through([route.axes[0] for route in routes], values)
    return [
        {name: over_chips(polynomials[name, f"{level}"]) for name in LEVEL}
        for level in range(len(routes[0].links))
    ]
