"""Checks of a sweep as a whole, made before anything is computed."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, close_to, one_of, quote
from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.model.columns import OF_LEVELS
from rooflines.model.network import ALL_TO_ALL, axes_text
from rooflines.model.resources import RATES
from rooflines.model.sharding import SHARDS
from rooflines.models.dtypes import check_dtypes
from rooflines.models.shape import DECODE, PREFILL
from rooflines.sweep.axes import MOST_PARTS, of_dims
from rooflines.sweep.cases import check_chips
from rooflines.sweep.operations import Sweep
from rooflines.sweep.steps import ModelSweep
from rooflines.sweep.training import TrainingSweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

AnySweep = Sweep | ModelSweep
"""A sweep of one operation, or of whole models."""

SweepT = TypeVar("SweepT", Sweep, ModelSweep)

LARGEST_PRODUCT = 10**100
"""The largest product of a sweep's sizes, or tiles, and its number of chips [1]. With the rates,
times and bits that entries may have, works, times and thresholds then stay far from the limits of
Float64, 2.2e-308 and 1.8e308."""

NEED_A_SPLIT = (
    SHARDS,
    *(rate for rate, resource in RATES.items() if resource.rate is None),
)
"""What can be solved for only where something is split."""


def check_tile(sweep: Sweep) -> None:
    """Refuse tiles of other dimensions than the operation's."""
    op = sweep.op
    with at_path("tile"), Mistakes() as mistakes:
        for dim in sweep.config.tile or {}:
            with mistakes.at(dim):
                if dim not in op.dims:
                    problem = f"is the tile of a dimension that {op.name} does not have"
                    raise RooflinesError("", problem, of_dims(op), close=close_to(dim, op.dims))


def check_thresholds(sweep: Sweep) -> None:
    """Refuse to solve for anything but dimensions, rates and, where something is split, shards."""
    known = (*sweep.op.dims, SHARDS, *RATES)
    with Mistakes() as mistakes:
        for index, axis in enumerate(sweep.solved):
            where = f"thresholds[{index}]"
            with mistakes.at():
                if axis in NEED_A_SPLIT and all(s.split is None for s in sweep.shardings.values()):
                    raise RooflinesError(
                        where,
                        f"asks for {axis}, but nothing is split",
                        f"give the sweep a `sharding`, or leave {axis} out",
                    )
                if axis == SHARDS:
                    _check_solved_shards(sweep, where)
                fix = f"solve for one of {', '.join(known)}, or for nothing with []"
                with at_path(where):
                    one_of(axis, known, f"no dimension of {sweep.op.name}", fix)


def _check_solved_shards(sweep: Sweep, where: str) -> None:
    split = {s.split for s in sweep.shardings.values()}
    if split & set(sweep.tile):
        tiled = ", ".join(sorted(str(dim) for dim in split & set(sweep.tile)))
        fix = f"leave {tiled} out of `tile`, or shards out of `thresholds`"
        raise RooflinesError(
            where,
            "asks for shards of a dimension that is also tiled, which has no closed form",
            fix,
        )
    if sweep.has_axes:
        product = next(axes_text(axes) for axes in sweep.splits if len(axes) > 1)
        raise RooflinesError(
            where,
            f"asks for shards, but {product} is a product of axes, which has no one largest number",
            "leave shards out, or name numbers of chips along one axis",
        )
    sent = [s for s in sweep.shardings.values() if ALL_TO_ALL in dict(s.transfers).values()]
    if sent:
        raise RooflinesError(
            where,
            f"asks for shards of {sent[0].name}, whose all-to-all has no closed form",
            "leave shards out, or solve for a dimension",
        )
    for block in sweep.blocks:
        links = block.place.links
        if len(links) > 1 and links[1].topology == "torus":
            outer = f"{block.place.networks[1]} of {block.place.chip}"
            raise RooflinesError(
                where,
                f"asks for shards over two networks, the outer of which, {outer}, is a torus: that "
                "has no closed form",
                "leave shards out, or solve for a dimension",
            )


def check_columns(sweep: Sweep) -> None:
    """Refuse metrics of two networks where no route has two."""
    names = sweep.config.columns
    for index, name in enumerate(names if isinstance(names, list) else ()):
        if name in OF_LEVELS and not sweep.has_levels:
            raise RooflinesError(
                f"columns[{index}]",
                f"is {quote(name)}, but the sweep has no two networks",
                "leave it out, or write `network: [inner, outer]`",
            )


def check_names(sweep: AnySweep) -> None:
    """Refuse chips that are in no catalogue."""
    check_chips(sweep.config.chips, sweep.chips)


def check_rows(sweep: AnySweep) -> None:
    """Refuse more parts than a folder can hold."""
    rows, per_part = sweep.rows, sweep.config.rows_per_part
    if rows > MOST_PARTS * per_part:
        problem = f"makes {rows:,} rows, in more than {MOST_PARTS:,} parts of {per_part:,}"
        fix = "choose a larger number, or fewer sizes, chips or dtypes"
        raise RooflinesError("rows_per_part", problem, fix)


def check_skipped(sweep: AnySweep) -> None:
    """Refuse a sweep without rows, and one with skipped rows if `on_unsupported` is `error`."""
    if not sweep.skipped or (sweep.rows and sweep.config.on_unsupported == "skip"):
        return
    first = sweep.skipped[0]
    if not sweep.rows:
        problem = f"is left with no rows. It {first.problem}"
        error = RooflinesError("", problem, f"choose other {sweep.ALTERNATIVES}")
        error.cause = first
        raise error
    raise RooflinesError(
        "on_unsupported",
        f"is 'error', and the sweep {first.problem}",
        "leave it out, or write `on_unsupported: skip`",
    )


def check_floats(sweep: Sweep) -> None:
    """Refuse sizes whose metrics could overflow."""
    columns = sweep.size_columns
    largest = [max(sweep.tile.get(dim, 1), *columns[dim]) for dim in sweep.op.dims]
    product = math.prod(largest) * max(sweep.counts)
    if product > LARGEST_PRODUCT:
        raise RooflinesError(
            "grid" if sweep.config.grid else "shapes",
            f"must not reach sizes whose product is 1e{math.log10(product):.0f}: beyond "
            f"1e{math.log10(LARGEST_PRODUCT):.0f} results could leave Float64",
            "choose smaller sizes, or fewer dimensions",
        )


def check_spans(sweep: Sweep) -> None:
    """Refuse tiles that span more elements of a split dimension than can be counted."""
    most = max(sweep.counts)
    for dim in sorted({str(scheme.split) for scheme in sweep.shardings.values()} & set(sweep.tile)):
        if sweep.tile[dim] * most > LARGEST_COUNT:
            more = f"more than {LARGEST_COUNT:,} elements on {most:,} chips"
            problem = f"is {sweep.tile[dim]:,}, which is {more}"
            raise RooflinesError(f"tile.{dim}", problem, "choose a smaller tile, or fewer chips")


def check_exact_flops(sweep: Sweep) -> None:
    """Refuse exact FLOPs of a contraction over less than one element: they would be negative."""
    if sweep.flops != "exact":
        return
    most = max(sweep.counts)
    for split in (scheme.split for scheme in sweep.shardings.values()):
        if split not in sweep.op.contracted or split in sweep.tile:
            continue
        least = min(sweep.size_columns[split])
        if least < most:
            each = f"{split} = {least} split over {most} chips, less than one element each"
            raise RooflinesError(
                "flops",
                f"counts exact FLOPs of {each}",
                "count `leading` FLOPs, or use sizes of at least the number of chips",
            )


def check_step_dtypes(sweep: ModelSweep) -> None:
    """Refuse unknown dtypes, and those that are listed twice."""
    with at_path("dtypes"), Mistakes() as mistakes:
        seen = set()
        for index, dtypes in enumerate(sweep.config.dtypes):
            with mistakes.at(f"[{index}]"):
                check_dtypes(dtypes, sweep.dtypes.formats)
                if dtypes.label in seen:
                    problem = f"is {quote(dtypes.label)}, which is listed twice"
                    raise RooflinesError("", problem, "give it another name:")
                seen.add(dtypes.label)


def check_step_sizes(sweep: ModelSweep) -> None:
    """Refuse sizes that a phase, or other sizes, contradict."""
    if sweep.config.requests and PREFILL in sweep.config.phase:
        raise RooflinesError(
            "phase", "lists prefill, but a request has both phases", "leave it out, or requests"
        )
    if sweep.config.pools is not None:
        _check_pool(sweep)
    if sweep.config.draft is not None:
        _check_draft(sweep)
        return
    if sweep.new_tokens is None:
        return
    if whole := [phase for phase in sweep.config.phase if phase != DECODE]:
        problem = f"gives new tokens, but in {whole[0]} all S tokens are new"
        fix = f"leave T out, or {whole[0]}" if DECODE in sweep.config.phase else "leave T out"
        raise RooflinesError("grid.T", problem, fix)
    if max(sweep.new_tokens) > min(sweep.contexts):
        raise RooflinesError(
            "grid.T",
            f"has {max(sweep.new_tokens)}, more than S, {min(sweep.contexts)}, which counts them",
            "choose fewer new tokens, or longer contexts",
        )


def _check_pool(sweep: ModelSweep) -> None:
    """Refuse servers that prefill nothing."""
    if not sweep.config.requests:
        fix = "add requests: [{input: 8192, output: 512}]"
        raise RooflinesError("pools", "are given, but there are no requests", fix)
    pool = sweep.prefill_pool
    if pool is None:
        return
    with at_path("pools.prefill.chip"):
        one_of(pool.config.chips[0], sweep.chips, "no chip in the catalogue", "use one of these")
    if not pool.cases:
        reason = pool.skipped[0].problem
        raise RooflinesError("pools.prefill", f"computes nothing: {reason}", "use another pool")


def _check_draft(sweep: ModelSweep) -> None:
    """Refuse a draft beside what has none, or sets the new tokens itself."""
    if sweep.config.requests or PREFILL in sweep.config.phase:
        other = "requests" if sweep.config.requests else "prefill"
        problem = f"is given, but with {other} it is not modelled"
        raise RooflinesError("draft", problem, "leave it out, or sweep B and S in decode")
    if "T" in sweep.config.grid:
        raise RooflinesError("grid.T", "is given, but the draft sets it", "leave out one of them")
    (new,) = sweep.new_tokens or (1,)
    if new > min(sweep.contexts):
        problem = (
            f"computes {new} tokens a step, more than S, {min(sweep.contexts)}, which counts them"
        )
        raise RooflinesError("draft", problem, "choose fewer tokens, or longer contexts")


def too_long(sweep: ModelSweep) -> Iterator[RooflinesError]:
    """Contexts beyond those that models are trained for: they can be computed, and are named."""
    place, longest = "requests" if sweep.config.requests else "grid.S", max(sweep.contexts)
    for name, model in sweep.models.items():
        trained = model.shape.context
        if trained is not None and longest > trained:
            problem = f"reaches {longest:,} tokens, and {name} is trained for {trained:,}"
            yield RooflinesError(place, problem, "choose shorter contexts, unless this is intended")


CHECKS: Mapping[type, Sequence[Sequence[Callable[[Any], object]]]] = {
    Sweep: [
        [
            *map(attrgetter, ("op", "combinations", "tile", "shardings", "axes", "supported")),
            check_skipped,
            check_names,
            check_tile,
            check_spans,
            check_thresholds,
            check_columns,
            check_exact_flops,
            check_rows,
            check_floats,
        ]
    ],
    ModelSweep: [
        [check_step_sizes, check_step_dtypes, check_names],
        [check_rows, check_skipped],
    ],
}
CHECKS = {**CHECKS, TrainingSweep: CHECKS[ModelSweep]}
"""Checks of each kind of sweep in stages, in the order of their messages."""


def checked_sweep(sweep: SweepT) -> SweepT:
    """A sweep, checked as a whole.

    Raises:
        RooflinesError: Its keys are not consistent; key paths are relative to the sweep.
    """
    for stage in CHECKS[type(sweep)]:
        with Mistakes() as mistakes:
            for check in stage:
                with mistakes.at():
                    check(sweep)
    return sweep
