"""Timings with nominal times: inputs to a fit, and bounds to compare measured times with.

A fit covers one chip and software: matmuls in a compute dtype; attention in decode, where the
compute dtype decides little, or in prefill in a compute dtype; or a collective. Attention fits hold
for grouped-query attention to all tokens; latent attention has other kernels.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import reduce
from operator import add, mul
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, check_choice, quote
from rooflines.basics.text import counted
from rooflines.fits.held_out import with_folds
from rooflines.fits.time_form import nominal_quantities, ring_steps
from rooflines.fits.time_units import IMPOSSIBLE, check_units, is_possible
from rooflines.fits.timings import (
    ATTENTION,
    ATTENTION_SIZES,
    COLLECTIVE,
    DTYPES,
    EAGER,
    EXPERTS,
    EXPERTS_SIZES,
    GRAPH,
    MATMUL_TIMINGS,
    medians,
)
from rooflines.hardware.dtype_catalogue import (
    NamedCombination,
    StoredDtypes,
    dtype_entries,
    resolve_combinations,
    stored_bits,
)
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.kinds.collectives import ALL_REDUCE, in_switch_share
from rooflines.kinds.formulas import EXPRESSION_FUNCTIONS
from rooflines.kinds.kind_table import KINDS
from rooflines.kinds.role_costs import role_costs
from rooflines.models.kind_costs import PER_EXPERT_ROWS
from rooflines.theory.attention_window import FULL_ATTENTION
from rooflines.theory.costs import BITS_PER_BYTE, Workload
from rooflines.theory.kernel import operation_kernel
from rooflines.theory.network import PAIR, Route
from rooflines.theory.operation import MATRIX, NAMED_OPERATIONS, OPERANDS
from rooflines.theory.resources import MATH, collective_rate
from rooflines.theory.sharding import parse_sharding

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rooflines.fits.timings import TimedKind, Timings
    from rooflines.hardware.entries import Chip, Network
    from rooflines.theory.attention_window import Number
    from rooflines.theory.network import Link
    from rooflines.theory.poly import Poly

TIMED_OPERATION = NAMED_OPERATIONS["matmul"]

TILES = (64, 128)
"""Row tiles that a fit tries [1]."""

WORKS = ("flops", "memory_bytes", "footprint_bytes")
"""Costs in a matmul [FLOP, byte]."""

NO_TIME = pl.lit(None, pl.Float64)

OUTPUT_BITS = 16
"""Bits per element in queries and outputs, which attention kernels keep in half precision."""


def math_column(tile: int) -> str:
    """Column with the nominal math time, rows in whole tiles."""
    return "math" if tile == 1 else f"math_{tile}"


def with_nominal_times(
    timings: Timings, chip: str, entry: Chip, name: str
) -> tuple[pl.DataFrame, Timings]:
    """Select the timings for one fit, and add nominal times.

    Args:
        timings: Timings on one chip with one software.
        chip: The chip's id.
        entry: Its entry, whose main memory and first interconnect count.
        name: The fit's name: a compute dtype, an attention phase, or a collective.

    Returns:
        The sizes, `seconds`, columns from `nominal_times`, `in_cache` (faster than the bound, and
        small enough for a cache), and `fold` (the site's hash). And the timings, with notes.

    Raises:
        RooflinesError: A dtype is unknown, the chip has no peak in a compute dtype or no
            interconnect, the time unit is off, or there are too few timings, or all in one regime.
    """
    kind = timings.kind
    if kind is MATMUL_TIMINGS:
        with at_path("compute"):
            check_choice(name, dtype_entries().formats, "no dtype")
            check_choice(name, entry.units.get(MATRIX, {}), f"no dtype that {chip} has a peak for")
    if kind is COLLECTIVE and not entry.networks:
        raise RooflinesError("chip", "has no interconnect in its entry", "add one under `networks`")
    chosen = timings.where(kind.fit_by, name)
    if kind is COLLECTIVE:
        chosen = _on_joined_chips(launched_in_graphs(chosen), _link(entry))
    told_apart = [n for n in ("distribution", "kernel") if n in kind.optional]
    keys = [*kind.identity, *(n for n in told_apart if n in chosen.frame.columns)]
    if kind is ATTENTION:
        chosen = _in_groups(chosen)
    chosen = medians(chosen, keys)
    chosen.check_enough()
    if kind.stored and kind is not MATMUL_TIMINGS:
        allowed: dict[str, Collection[str]] = {
            name: entry.units.get(MATRIX, {}) if name == "compute" else dtype_entries().formats
            for name in kind.stored
        }
        for column, names in allowed.items():
            with at_path(column):
                for dtype in chosen.frame[column].unique().sort():
                    check_choice(dtype, names, f"no dtype that {chip} has a peak for")
    frame = with_folds(nominal_times(chosen.frame, kind, entry))
    check_units(frame)
    chosen = _with_note(chosen, frame.filter(~is_possible()).height, IMPOSSIBLE)
    frame = frame.filter(is_possible())
    frame = frame.with_columns(in_cache=_in_cache(frame, entry))
    cache_hits = frame.filter("in_cache").height
    chosen = _with_note(chosen, cache_hits, "faster than memory, they fit a cache")
    uncached = frame.filter(~pl.col("in_cache"))
    replace(chosen, frame=uncached).check_enough()
    if kind is MATMUL_TIMINGS:
        _check_regimes(frame)
    return frame, chosen


MAX_GROUP = 32
"""Most query heads that share a KV head in fits to attention: for more, engines have others [1]."""


def _in_groups(timings: Timings) -> Timings:
    """Attention where at most `MAX_GROUP` query heads share a KV head; a note counts the others."""
    frame = timings.frame.filter(pl.col("N") <= MAX_GROUP * pl.col("K"))
    larger = timings.frame.height - frame.height
    why = f"more than {MAX_GROUP} query heads share a KV head"
    return _with_note(replace(timings, frame=frame), larger, why)


def launched_in_graphs(timings: Timings) -> Timings:
    """Timings from CUDA graphs, as decode steps run; all where their launch is not told."""
    if "launch" not in timings.frame.columns:
        return timings
    frame = timings.frame.filter(pl.col("launch").fill_null(GRAPH) != EAGER)
    eager = timings.frame.height - frame.height
    return _with_note(replace(timings, frame=frame), eager, "launched eagerly, not in a graph")


def _with_note(timings: Timings, count: int, why: str) -> Timings:
    """Add a note about timings that a fit leaves out, if any: their count, and why."""
    note = f"{counted(count, 'timing')} left out: {why}"
    return replace(timings, notes=(*timings.notes, *([note] if count else [])))


def nominal_times(frame: pl.DataFrame, kind: TimedKind, entry: Chip) -> pl.DataFrame:
    """Add nominal times to timings.

    Args:
        frame: Timings in one kind on one chip, with known dtypes and collectives, on chips that its
            network joins.
        kind: The timings' kind.
        entry: The chip's entry.

    Returns:
        Also works; `time_form.QUANTITIES`, as many as the kind has, and for matmuls `math_<tile>`
        with each tile in `TILES`; the bound `t_lower_s` [s] and its resource, `bound`: compute,
        memory or network; the bound under any routing, or in a switch that adds up, `t_strict_s`
        [s], null where it is `t_lower_s`.
    """
    if kind is COLLECTIVE:
        return _collective_times(frame, entry)
    if kind is EXPERTS:
        frame = _experts_times(frame, entry)
    else:
        frame = (
            _matmul_times(frame, entry)
            if kind is MATMUL_TIMINGS
            else _attention_times(frame, entry)
        )
    of_math = pl.col("math") >= pl.col("memory")
    return frame.with_columns(
        t_lower_s=pl.max_horizontal("math", "memory"),
        t_strict_s=pl.max_horizontal("math", "least_memory") if kind is EXPERTS else NO_TIME,
        bound=pl.when(of_math).then(pl.lit("compute")).otherwise(pl.lit("memory")),
    )


def plain_matmul(stored: StoredDtypes) -> Workload:
    """Matmul with any sizes, on one chip."""
    return Workload(
        TIMED_OPERATION,
        stored.bits,
        parse_sharding("none", TIMED_OPERATION),
        1,
        (),
        {},
        TIMED_OPERATION.flops,
    )


def _matmul_times(frame: pl.DataFrame, entry: Chip) -> pl.DataFrame:
    """Add works and nominal times to matmuls."""
    machine = entry.chip_rates(TIMED_OPERATION.unit, MAIN_MEMORY)
    parts = []
    for part in frame.partition_by(DTYPES, maintain_order=True):
        workload = _workload(part.row(0, named=True))
        kernel = operation_kernel(workload, part["compute"][0])
        quantities = nominal_quantities(kernel, machine)
        for tile in TILES:
            quantities[math_column(tile)] = nominal_quantities(kernel, machine, tile)[MATH.name]
        quantities |= {name: kernel.work(name) for name in WORKS}
        parts.append(part.with_columns(**_expressions(quantities)))
    return pl.concat(parts)


def _workload(row: Mapping[str, str]) -> Workload:
    """Workload with a row's dtypes."""
    names = {operand: row[f"dtype_{operand}"] for operand in OPERANDS}
    with Mistakes() as mistakes:
        for operand, name in names.items():
            with mistakes.at(f"dtype_{operand}"):
                check_choice(name, dtype_entries().formats, "no dtype")
    combination = NamedCombination(**names, compute=row["compute"])
    return plain_matmul(*resolve_combinations([combination], dtype_entries()).values())


def _expressions(polynomials: Mapping[str, Poly]) -> dict[str, pl.Expr]:
    """Polynomials in sizes as expressions over columns, Float64."""
    extents = {
        extent for poly in polynomials.values() for product in poly.terms for extent in product
    }
    sizes = frozenset[str]().union(*(extent.sizes for extent in extents))
    columns = {size: pl.col(size).cast(pl.Float64) for size in sizes}

    def summed(poly: Poly) -> pl.Expr:
        products = [
            reduce(mul, [pl.lit(float(per)), *(extent.expression(columns) for extent in product)])
            for product, per in poly.terms.items()
        ]
        return reduce(add, products)

    return {name: summed(poly) for name, poly in polynomials.items()}


def _attention_times(frame: pl.DataFrame, entry: Chip) -> pl.DataFrame:
    """Add works and nominal times to attention: the cache's bytes in decode, all products."""
    per_s = {dtype: float(peak.exact) for dtype, peak in entry.units.get(MATRIX, {}).items()}
    formats = dtype_entries().formats
    byte = {name: float(stored_bits(storage) / BITS_PER_BYTE) for name, storage in formats.items()}
    columns: dict[str, Any] = {size: pl.col(size).cast(pl.Float64) for size in ATTENTION_SIZES}
    context, new = (cast("Number", columns[size]) for size in "ST")  # columns in place of numbers
    attended = {name: getattr(FULL_ATTENTION, name)(context, new) for name in ("pairs", "entries")}
    costs = role_costs(KINDS["attention"], {}, {**columns, "Hv": columns["H"], **attended})
    elements = dict(costs.elements)
    cache_bytes = pl.col("cache").replace_strict(byte, return_dtype=pl.Float64)
    peak = pl.col("compute").replace_strict(per_s, return_dtype=pl.Float64)
    read, written = (elements[role] * (OUTPUT_BITS / BITS_PER_BYTE) for role in ("x", "out"))
    works = {
        "flops": costs.flops,
        "memory_bytes": cache_bytes * elements["cache"] + read + written,
    }
    rate = float(entry.memory[MAIN_MEMORY].exact.bytes_per_s)
    return frame.with_columns(**works).with_columns(
        footprint_bytes="memory_bytes",
        math=pl.col("flops") / peak,
        memory=pl.col("memory_bytes") / rate,
        x=read / rate,
        out=written / rate,
        depth=columns["S"],
        heads=columns["B"] * columns["K"],
    )


def _experts_times(frame: pl.DataFrame, entry: Chip) -> pl.DataFrame:
    """Add works and nominal times to routed experts, where each token chooses alike.

    Tokens are those that choose; on one chip lie E / ep experts, each split over tp chips.
    """
    per_s = {dtype: float(peak.exact) for dtype, peak in entry.units.get(MATRIX, {}).items()}
    formats = dtype_entries().formats
    byte = {name: float(stored_bits(storage) / BITS_PER_BYTE) for name, storage in formats.items()}
    tokens, width, expert_width, per_token, experts, tp, ep, matrices = (
        pl.col(size).cast(pl.Float64) for size in EXPERTS_SIZES
    )
    rate = float(entry.memory[MAIN_MEMORY].exact.bytes_per_s)
    letters = {"B": tokens, "D": width, "F": expert_width / tp, "k": per_token / ep}
    activated = EXPRESSION_FUNCTIONS["activated"](tokens, experts, per_token) / ep
    values = {**letters, "matrices": matrices, "touched": activated}
    costs = role_costs(KINDS["experts"], {}, values, PER_EXPERT_ROWS)
    one_kernel = {**values, "B": tokens / ep, "touched": per_token / ep}  # that reads a token once
    least = dict(role_costs(KINDS["experts"], {}, one_kernel).elements)
    elements = dict(costs.elements)
    stored = pl.col("experts").replace_strict(byte, return_dtype=pl.Float64)
    peak = pl.col("compute").replace_strict(per_s, return_dtype=pl.Float64)
    io_bytes = OUTPUT_BITS / BITS_PER_BYTE
    read, written = elements["x"] * io_bytes, elements["out"] * io_bytes
    return frame.with_columns(
        activated=activated,
        flops=costs.flops,
        memory_bytes=elements["w"] * stored + read + written,
        least_memory=(least["w"] * stored + (least["x"] + least["out"]) * io_bytes) / rate,
    ).with_columns(
        footprint_bytes="memory_bytes",
        math=pl.col("flops") / peak,
        memory=pl.col("memory_bytes") / rate,
        x=read / rate,
        out=written / rate,
        inputs=tokens * width * io_bytes / rate,
    )


def _collective_times(frame: pl.DataFrame, entry: Chip) -> pl.DataFrame:
    """Add what a chip sends over the first interconnect, and its nominal time, to collectives."""
    link, parts = _link(entry), []
    keys = ["collective", "shards"]
    for part in frame.partition_by(keys, maintain_order=True):
        collective, shards = part.select(keys).row(0)
        route = Route((link,), (shards,))
        rate = collective_rate(route, collective, Fraction(1))
        sent = pl.col("bytes").cast(pl.Float64) * float(
            sum(route.bytes_per_payload_byte(collective))
        )
        network, hops = sent / float(rate.per_s), float(ring_steps(route, collective))
        lower_s = pl.max_horizontal(network, float(rate.latency_s))
        columns = {"network_bytes": sent, "network": network, "hops": pl.lit(hops)}
        strict_s = NO_TIME
        if _first_network(entry).reduces and collective == ALL_REDUCE:
            ring_share = sum(route.bytes_per_payload_byte(collective), Fraction(0))
            saved = float(in_switch_share(ring_share, shards) / ring_share)
            strict_s = pl.max_horizontal(network * saved, float(rate.latency_s))
        parts.append(part.with_columns(**columns, t_lower_s=lower_s, t_strict_s=strict_s))
    return pl.concat(parts).with_columns(bound=pl.lit("network"))


def _link(entry: Chip) -> Link:
    """First interconnect on a chip, which has one."""
    return _first_network(entry).exact


def _first_network(entry: Chip) -> Network:
    return next(iter(entry.networks.values()))


def _on_joined_chips(timings: Timings, link: Link) -> Timings:
    """Timings on chips that an interconnect joins; a note counts the others."""
    max_chips = link.domain if link.domain_known else None
    frame = timings.frame.filter(pl.col("shards").is_between(PAIR, max_chips or pl.col("shards")))
    excluded = timings.frame.height - frame.height
    chips = f"2 to {max_chips:,}" if max_chips else "2 or more"
    note = f"{counted(excluded, 'timing')} left out: not on {chips} chips, as the network joins"
    return replace(timings, frame=frame, notes=timings.notes + ((note,) if excluded else ()))


def _in_cache(frame: pl.DataFrame, entry: Chip) -> pl.Expr:
    """True if a timing beats the bound, and its operands fit the last-level cache."""
    cache = entry.last_level_cache
    without = "memory_bytes" not in frame.columns or "Fe" in frame.columns  # skewed, not in a cache
    if cache is None or cache.capacity_bytes is None or without:
        return pl.lit(value=False)
    fits = pl.col("memory_bytes") < cache.capacity_bytes
    return (pl.col("seconds") < pl.col("t_lower_s")) & fits


def _check_regimes(frame: pl.DataFrame) -> None:
    """Refuse timings that are all bound by one resource."""
    bounds = frame["bound"].unique().to_list()
    if len(bounds) == 1:
        missing_size = {"compute": "smaller", "memory": "larger"}[bounds[0]]
        problem = f"has no timings but {quote(bounds[0])}-bound ones: they tell one rate of two"
        raise RooflinesError("B", problem, f"add timings with {missing_size} B")
