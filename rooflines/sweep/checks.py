"""Checks on a sweep as a whole, before anything is computed."""

from __future__ import annotations

import math
from functools import reduce
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, check_choice, quote
from rooflines.basics.lazy import pl
from rooflines.basics.numbers import MAX_COUNT
from rooflines.basics.quantities import (
    FLOPS_PER_S,
    HFU,
    MBU,
    MFU,
    PER_CHIP,
    PER_USER,
    TIME,
    TOKENS_PER_S,
    measured_value,
)
from rooflines.basics.text import counted
from rooflines.dictionary.columns import LEVEL_METRICS
from rooflines.models.architecture import DECODE, PREFILL, TRAIN
from rooflines.sweep.axes import MAX_PARTS, check_dim
from rooflines.sweep.collective_sweep import CollectiveSweep
from rooflines.sweep.kind_sweep import ChainSweep, KindSweep
from rooflines.sweep.operation_sweep import Sweep
from rooflines.sweep.step_sweep import ModelSweep
from rooflines.sweep.training_sweep import TrainingSweep
from rooflines.theory.network import ALL_TO_ALL, TORUS, axes_text
from rooflines.theory.resources import RATES
from rooflines.theory.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rooflines.sweep.kernel_sweep import KernelSweep

AnySweep = Sweep | KindSweep | CollectiveSweep | ModelSweep
"""Sweep over one operation, over a kernel, or over whole models."""

SweepT = TypeVar("SweepT", bound=AnySweep)

MAX_PRODUCT = 10**100
"""The largest product of a sweep's sizes, or tiles, and its number of chips [1]. With the rates,
times and bits that entries may have, works, times and thresholds then stay far from the limits of
Float64, 2.2e-308 and 1.8e308."""

MAX_KERNEL_PRODUCT = 10**50
"""The same of a kernel, whose works have squares of sizes [1]."""

SPLIT_AXES = (
    SHARDS,
    *(rate for rate, resource in RATES.items() if resource.rate is None),
)
"""Threshold axes that need a split."""


def check_thresholds(sweep: Sweep) -> None:
    """Refuse to solve for anything but dimensions, rates and, where something is split, shards."""
    solvable = (*sweep.op.dims, SHARDS, *RATES)
    fix = f"solve for one of {', '.join(solvable)}, or for nothing with []"
    with Mistakes() as mistakes:
        for index, axis in enumerate(sweep.solved):
            with mistakes.at():
                obstacle = _solver_obstacle(sweep, axis) if axis in SPLIT_AXES else None
                with at_path("thresholds", index):
                    check_choice(axis, solvable, f"no dimension of {sweep.op.name}", fix)
                    if obstacle:
                        problem = f"asks for {axis}, but {obstacle}"
                        raise RooflinesError("", problem, f"leave {axis} out, or solve for another")


def _solver_obstacle(sweep: Sweep, axis: str) -> str | None:
    """Reason why shards, or a rate between chips, cannot be solved for; None where it can."""
    schemes = sweep.shardings.values()
    if all(scheme.split is None for scheme in schemes):
        return "nothing is split: the sweep has no `sharding`"
    if axis != SHARDS:
        return None
    tiled = (
        f"{scheme.split} is split and tiled" for scheme in schemes if scheme.split in sweep.tile
    )
    products = (f"{axes_text(axes)} is a product of axes" for axes in sweep.splits if axes[1:])
    exchanges = (
        f"{scheme.name} is an all-to-all"
        for scheme in schemes
        if ALL_TO_ALL in dict(scheme.transfers).values()
    )
    tori = (
        f"{place.networks[1]} of {place.chip}, an outer network, is a torus"
        for place in (block.place for block in sweep.blocks)
        if len(place.links) > 1 and place.links[1].topology == TORUS
    )
    several = (
        f"{axes_text(case.route.axes)} is a product of axes"
        for case in sweep.cases
        if case.route and case.route.axes[1:]
    )
    obstacle = next(chain(tiled, products, exchanges, tori, several), None)
    return obstacle and f"{obstacle}, which has no closed form"


def check_columns(sweep: Sweep) -> None:
    """Refuse metrics of two networks where no route has two."""
    names = sweep.config.columns
    for index, name in enumerate(names if isinstance(names, list) else ()):
        if name in LEVEL_METRICS and not sweep.has_levels:
            raise RooflinesError(
                ("columns", index),
                f"is {quote(name)}, but the sweep has no two networks",
                "leave it out, or write `network: [inner, outer]`",
                value=name,
            )


def check_rows(sweep: AnySweep) -> None:
    """Refuse more parts than a folder can hold."""
    rows, per_part = sweep.rows, sweep.config.rows_per_part
    if rows > MAX_PARTS * per_part:
        problem = f"makes {rows:,} rows, in more than {MAX_PARTS:,} parts of {per_part:,}"
        fix = "choose a larger number, or fewer sizes, chips or dtypes"
        raise RooflinesError("rows_per_part", problem, fix)


OPERATION_KINDS = (TIME, FLOPS_PER_S, MFU)
STEP_KINDS = (TIME, TOKENS_PER_S, PER_CHIP, MFU, HFU, MBU)
"""Kinds of measured numbers that an operation, or a step, has."""


def check_measured(sweep: AnySweep) -> None:
    """Refuse measured numbers without a row each, and rates that the rows do not have."""
    texts = sweep.config.measured
    if texts is None:
        return
    if len(texts) != sweep.rows:
        problem = f"has {counted(len(texts), 'number')}, but the sweep {counted(sweep.rows, 'row')}"
        raise RooflinesError("measured", problem, "write one for each row, in the order of rows")
    kinds = STEP_KINDS if isinstance(sweep, ModelSweep) else OPERATION_KINDS
    if isinstance(sweep, ModelSweep) and sweep.config.phase == [DECODE]:
        kinds = (*kinds, PER_USER)
    with Mistakes() as mistakes:
        for index, text in enumerate(texts):
            value = measured_value(text)
            if value.kind not in kinds or (value.full and not isinstance(sweep, TrainingSweep)):
                problem = f"is {quote(text)}, a rate that the rows do not have"
                fix = "write a time such as 30ms, or a share of peak such as 41%mfu"
                mistakes.add(RooflinesError(("measured", index), problem, fix))


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


def check_sizes(sweep: Sweep) -> None:
    """Refuse tiles of other dimensions, and sizes whose works are negative or too large."""
    max_chips = max(sweep.counts)
    with Mistakes() as mistakes:
        for dim, tile in sweep.tile.items():
            with mistakes.at("tile", dim):
                check_dim(dim, sweep.op)
                if tile * max_chips > MAX_COUNT:
                    problem = (
                        f"is {tile:,}, which is more than {MAX_COUNT:,} on {max_chips:,} chips"
                    )
                    raise RooflinesError("", problem, "choose a smaller tile, or fewer chips")
    columns = sweep.size_columns
    product = max_chips * math.prod(
        max(sweep.tile.get(dim, 1), *columns[dim]) for dim in sweep.op.dims
    )
    if product > MAX_PRODUCT:
        raise RooflinesError(
            "grid" if sweep.config.grid else "shapes",
            f"must not reach sizes whose product is 1e{math.log10(product):.0f}: beyond "
            f"1e{math.log10(MAX_PRODUCT):.0f} results could leave Float64",
            "choose smaller sizes, or fewer dimensions",
        )
    split = {scheme.split for scheme in sweep.shardings.values()} - {*sweep.tile}
    for dim in sweep.op.contracted if sweep.flops == "exact" else ():
        if dim in split and (min_size := min(columns[dim])) < max_chips:
            extent = f"{dim} = {min_size} split over {max_chips} chips, less than one element each"
            problem = f"counts exact FLOPs of {extent}"
            fix = "count `leading` FLOPs, or use sizes of at least the number of chips"
            raise RooflinesError("flops", problem, fix)


def check_kernel_sizes(sweep: KindSweep) -> None:
    """Refuse large sizes, and those that break a condition, with the first that do.

    Each condition is checked over the letters that it reads, others at their first sizes.
    """
    axes = sweep.size_axes
    product = math.prod(max(values) for axis in axes for values in axis.columns.values())
    if product > MAX_KERNEL_PRODUCT:
        problem = (
            f"must not reach sizes whose product is 1e{math.log10(product):.0f}: beyond "
            f"1e{math.log10(MAX_KERNEL_PRODUCT):.0f} results could leave Float64"
        )
        raise RooflinesError("grid", problem, "choose smaller sizes")
    form = sweep.form
    with Mistakes() as mistakes:
        for check in form.checks:
            letters = form.letters_behind(check)
            read = [axis for axis in axes if letters.intersection(axis.columns)]
            columns = {name: pl.col(name) for axis in read for name in axis.columns}
            sizes: dict[str, Any] = sweep.first_sizes | columns
            condition = form.holds(check, form.complete(sizes))
            frames = [pl.LazyFrame(dict(axis.columns)) for axis in read] or [pl.LazyFrame()]
            rows = reduce(_cross, frames)
            broken = rows.filter(~condition) if isinstance(condition, pl.Expr) else rows
            first = next(iter(broken.head(1).collect().to_dicts()), {})
            with mistakes.at("grid"):
                form.check_one(check, form.complete(sweep.first_sizes | first))


def _cross(rows: pl.LazyFrame, axis: pl.LazyFrame) -> pl.LazyFrame:
    """Rows for every point on one more axis."""
    return rows.join(axis, how="cross", maintain_order="left_right")


def check_kernel_thresholds(sweep: KernelSweep[Any]) -> None:
    """Refuse to solve for anything but letters that a kernel has thresholds along."""
    solvable = sweep.solvable
    fix = f"solve for one of {', '.join(solvable)}, or for nothing with []"
    with Mistakes() as mistakes:
        for index, axis in enumerate(sweep.solved):
            with mistakes.at("thresholds", index):
                check_choice(axis, solvable, f"no letter of {sweep.kernel_name} to solve for", fix)


def check_step_sizes(sweep: ModelSweep) -> None:
    """Refuse phases that a model lacks, and sizes that a phase, or other sizes, contradict."""
    _check_heads(sweep)
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
        raise RooflinesError(("grid", "T"), problem, fix)
    if max(sweep.new_tokens) > min(sweep.contexts):
        raise RooflinesError(
            "grid.T",
            f"has {max(sweep.new_tokens)}, more than S, {min(sweep.contexts)}, which counts them",
            "choose fewer new tokens, or longer contexts",
        )


def _check_heads(sweep: ModelSweep) -> None:
    """Refuse to decode or train models that generate no tokens."""
    phases = [phase for phase in sweep.config.phase if phase != PREFILL]
    without = ((name, model.shape.headless_reason) for name, model in sweep.models.items())
    for name, reason in without:
        if reason and phases:
            does = "trains on" if TRAIN in phases else "decodes"
            problem = f"is {phases[0]}, but {name} {reason}: it {does} no tokens"
            raise RooflinesError("phase", problem, f"use {PREFILL}, or another model")


def _check_pool(sweep: ModelSweep) -> None:
    """Refuse servers that prefill nothing."""
    if not sweep.config.requests:
        fix = "add requests: [{input: 8192, output: 512}]"
        raise RooflinesError("pools", "are given, but there are no requests", fix)
    pool = sweep.prefill_pool
    if pool is None:
        return
    with at_path("pools", "prefill", "chip"):
        check_choice(
            pool.config.chips[0], sweep.chips, "no chip in the catalogue", "use one of these"
        )
    if not pool.cases and pool.skipped:  # else the sweep has no model, and says why
        reason = pool.skipped[0].problem
        raise RooflinesError(
            ("pools", "prefill"), f"computes nothing: {reason}", "use another pool"
        )


def _check_draft(sweep: ModelSweep) -> None:
    """Refuse a draft beside what has none, or sets the new tokens itself."""
    if PREFILL in sweep.config.phase:
        problem = "is given, but with prefill it is not modelled"
        raise RooflinesError("draft", problem, "leave it out, or sweep B and S in decode")
    for name, model in sweep.models.items() if sweep.config.requests else ():
        if any(window.chunked for window in model.shape.attention_windows):
            problem = (
                f"is given, but with requests it is not modelled where {name} attends in chunks"
            )
            raise RooflinesError("draft", problem, "leave it out, or sweep B and S in decode")
    if "T" in sweep.config.grid:
        raise RooflinesError(
            ("grid", "T"), "is given, but the draft sets it", "leave out one of them"
        )
    (new,) = sweep.new_tokens or (1,)
    if new > min(sweep.contexts):
        problem = (
            f"computes {new} tokens a step, more than S, {min(sweep.contexts)}, which counts them"
        )
        raise RooflinesError("draft", problem, "choose fewer tokens, or longer contexts")


def contexts_beyond_training(sweep: ModelSweep) -> Iterator[RooflinesError]:
    """Yield warnings on contexts beyond those in training: computed all the same."""
    place, max_context = "requests" if sweep.config.requests else "grid.S", max(sweep.contexts)
    for name, model in sweep.models.items():
        trained = model.shape.context
        if trained is not None and max_context > trained:
            problem = f"reaches {max_context:,} tokens, and {name} is trained for {trained:,}"
            yield RooflinesError(place, problem, "choose shorter contexts, unless this is intended")


CHECKS: Mapping[type, Sequence[Sequence[Callable[[Any], object]]]] = {
    Sweep: [
        [
            *map(attrgetter, ("op", "combinations", "tile", "shardings", "axes", "supported")),
            check_skipped,
            check_thresholds,
            check_columns,
            check_sizes,
            check_rows,
            check_measured,
        ]
    ],
    KindSweep: [
        [attrgetter("grid"), attrgetter("forms")],
        [attrgetter("supported"), check_kernel_sizes],
        [check_skipped, check_kernel_thresholds, check_rows, check_measured],
    ],
    CollectiveSweep: [
        [attrgetter("grid"), attrgetter("splits")],
        [attrgetter("supported")],
        [check_skipped, check_kernel_thresholds, check_rows, check_measured],
    ],
    ModelSweep: [
        [check_step_sizes, attrgetter("started"), attrgetter("supported")],
        [check_rows, check_skipped, check_measured],
    ],
}
CHECKS = {**CHECKS, TrainingSweep: CHECKS[ModelSweep], ChainSweep: CHECKS[KindSweep]}
"""Checks by kind of sweep, in stages, in the order of their messages."""


def checked_sweep(sweep: SweepT) -> SweepT:
    """Check a sweep as a whole, and return it.

    Raises:
        RooflinesError: Its keys are not consistent; key paths are relative to the sweep.
    """
    for stage in CHECKS[type(sweep)]:
        with Mistakes() as mistakes:
            for check in stage:
                with mistakes.at():
                    check(sweep)
    return sweep
