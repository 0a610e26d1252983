"""The rows of a sweep of models as a lazy frame: works, footprints, times and what follows.

A block of cases, whose steps have the same kernels, is evaluated at once. What does not depend on
the context is computed once per case and batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

import polars as pl

from rooflines.serving.footprints import footprint_columns, with_footprint
from rooflines.serving.formulas import MEMORY, STEP_UPPER, StepInputs, per_token
from rooflines.serving.kernels import WORKS, summed
from rooflines.serving.requests import RequestStages
from rooflines.serving.stages import ESTIMATED, OF_RESOURCES, Stages, named
from rooflines.serving.times import step_exchange
from rooflines.sweep.metrics import column
from rooflines.sweep.ties import (
    CONTENDED,
    contended,
    likely_bound,
    with_exact_bounds,
    with_exact_bounds_by_batch,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflines.serving.case import Case
    from rooflines.serving.support import Block
    from rooflines.serving.sweep import ModelSweep

TextTypes = Mapping[str, "pl.DataType"]
"""Types of text columns that are not Categorical."""


HOUR_S = 3600

IN_TURN = "#in_turn"
"""The time of the collectives of a step, one after another [s]."""

INPUTS = StepInputs(
    *map(column, ("#tokens", "#usd_per_s", "#watts", "#reached_math", "#reached_memory"))
)
"""What metrics per token read, as columns of a block."""


def block_slices(sweep: ModelSweep, start: int, stop: int) -> Iterator[tuple[Block, int, int]]:
    """The pieces of a slice of rows, one per block: (start, stop) of its rows."""
    offset = 0
    for block in sweep.blocks:
        rows = sweep.rows_of(block)
        low, high = max(start - offset, 0), min(stop - offset, rows)
        if low < high:
            yield block, low, high
        offset += rows


def key_columns(cases: Sequence[Case]) -> dict[str, pl.Series]:
    """The keys of cases."""
    texts: dict[str, Sequence[str | None]] = {
        "model": [case.name for case in cases],
        "phase": [case.phase for case in cases],
        "chip": [case.chip for case in cases],
        "memory": [case.memory for case in cases],
        "network": [case.network for case in cases],
        "dtypes": [case.dtypes.label for case in cases],
        "split": [case.split.name for case in cases],
    }
    numbers = {
        "chips": [case.split.chips for case in cases],
        "tp": [case.split.shards for case in cases],
        "dp": [case.split.dp for case in cases],
        "ep": [case.split.ep for case in cases],
    }
    return {
        **{name: pl.Series(values, dtype=pl.Categorical) for name, values in texts.items()},
        **{name: pl.Series(values, dtype=pl.Int64) for name, values in numbers.items()},
    }


def cost_columns(sweep: ModelSweep, cases: Sequence[Case]) -> dict[str, pl.Series]:
    """Prices and powers of cases.

    Returns:
        `#usd_per_s` [USD/s] and `#watts` [W] of all chips, `price_provider` and `price_date`; null
        where they are not known.
    """
    wanted = sweep.config.prices
    chips = [sweep.chips[case.chip] for case in cases]
    prices = [chip.lowest_price(wanted.provider, wanted.kind) for chip in chips]
    usd_per_s = [
        case.split.chips * price.usd_per_hour / HOUR_S if price else None
        for case, price in zip(cases, prices, strict=True)
    ]
    watts = [
        case.split.chips * chip.power.watts if chip.power else None
        for case, chip in zip(cases, chips, strict=True)
    ]
    providers = [price.provider if price else None for price in prices]
    dates = [price.date if price else None for price in prices]
    return {
        "#usd_per_s": pl.Series(usd_per_s, dtype=pl.Float64),
        "#watts": pl.Series(watts, dtype=pl.Float64),
        "price_provider": pl.Series(providers, dtype=pl.Categorical),
        "price_date": pl.Series(dates, dtype=pl.Categorical),
    }


def reached_columns(cases: Sequence[Case]) -> dict[str, pl.Series]:
    """`#reached_<resource>`, the share of the nominal rate [1], of compute and memory."""
    return {
        f"#reached_{name}": pl.Series(
            [float(case.machine.efficiency[name]) for case in cases], dtype=pl.Float64
        )
        for name in ("math", "memory")
    }


def block_frame(
    sweep: ModelSweep, block: Block, low: int, high: int, texts: TextTypes
) -> pl.LazyFrame:
    """Rows of a block, before ties in `bound` are resolved."""
    stages = stages_of(sweep, block)
    sums = {**work_sums(stages), **time_sums(stages), "t_estimate_s": estimate(stages)}
    columns = {
        **key_columns(block.cases),
        **cost_columns(sweep, block.cases),
        **reached_columns(block.cases),
        **footprint_columns(block, sweep.config.cache_split),
    }
    cast = {name: values.cast(texts.get(name, values.dtype)) for name, values in columns.items()}
    lower = stages.lower()
    frame = with_footprint(stages.frame(cast, low, high).with_columns(**sums))
    return stages.with_request_times(with_following(frame, lower, stages.longest))


def stages_of(sweep: ModelSweep, block: Block) -> Stages:
    """The columns and expressions of a block's rows."""
    kind = RequestStages if sweep.config.requests else Stages
    return kind(sweep, block, [token_share(case) for case in block.cases])


def token_share(case: Case) -> Fraction:
    """Share of a step's tokens that choose among the experts that a chip reads [1]."""
    shares = (kernel.token_share for kernel in case.kernels if kernel.group.moe is not None)
    return next(shares, Fraction(1))


def work_sums(stages: Stages) -> dict[str, pl.Expr]:
    """The works of a step, summed over kernels and layers."""
    cases = stages.block.cases
    sums = {
        work: [
            summed((k.group.count, named(k, k.works.get(work, {}))) for k in case.kernels)
            for case in cases
        ]
        for work in WORKS
    }
    sums["network_bytes"] = [
        summed((kernel.group.count, kernel.sent_bytes) for kernel in case.kernels) for case in cases
    ]
    return {name: stages.add(name, terms) for name, terms in sums.items()}


def time_sums(stages: Stages) -> dict[str, pl.Expr]:
    """The times of a step, summed over kernels and layers [s]."""
    cases = stages.block.cases
    sums = {}
    for name in ("math", "memory", "activation"):
        sums[f"t_{name}_s"] = stages.add(
            f"t_{name}",
            [
                summed(
                    (kernel.group.count, named(kernel, getattr(times, name)))
                    for kernel, times in zip(case.kernels, case.times, strict=True)
                )
                for case in cases
            ],
        )
    of_kernels = [
        stages.kernel_times(
            f"kernel_{index}",
            [case.kernels[index] for case in cases],
            [case.times[index] for case in cases],
            kernel.group.count,
        )
        for index, kernel in enumerate(cases[0].kernels)
    ]
    network = stages.exchange("step", [step_exchange(case.kernels, case.times) for case in cases])
    sums["t_network_s"] = stages.total("t_network", [network])
    sums[IN_TURN] = stages.total("in_turn", [times.network for times in of_kernels])
    sums["t_ops_s"] = stages.total("t_ops", [times.ops for times in of_kernels])
    return sums


def estimate(stages: Stages) -> pl.Expr:
    """The sum of the calibrated times of all kernels [s]; null where one has none."""
    cases = stages.block.cases
    if all(None in case.estimates for case in cases):
        return pl.lit(None, dtype=pl.Float64)
    times = [
        stages.estimate(
            f"estimate_{index}",
            [case.kernels[index] for case in cases],
            [case.estimates[index] for case in cases],
            kernel.group.count,
        )
        for index, kernel in enumerate(cases[0].kernels)
    ]
    stages.constant(ESTIMATED, [None if None in case.estimates else 0.0 for case in cases])
    return stages.total("t_estimate", times) + pl.col(ESTIMATED)


def with_following(frame: pl.LazyFrame, lower: pl.Expr, longest: pl.Expr) -> pl.LazyFrame:
    """Adds what follows from works and times, and the likely bound.

    Args:
        frame: Works and times.
        lower: t_lower_s.
        longest: The longest of the resources' times.
    """
    frame = frame.with_columns(
        memory_bytes=MEMORY.expr,
        t_lower_s=lower,
        t_upper_s=STEP_UPPER.expr + pl.col(IN_TURN),
        **{"#tokens": pl.col("B").cast(pl.Float64) * pl.col("T").cast(pl.Float64)},
    )
    return frame.with_columns(
        bound=likely_bound(OF_RESOURCES, longest),
        **{CONTENDED: contended(OF_RESOURCES, longest)},
        **{name: formula.expr for name, formula in per_token(INPUTS).items()},
    )


def step_rows(sweep: ModelSweep, start: int = 0, stop: int | None = None) -> pl.LazyFrame:
    """Rows `start` to `stop` of a sweep of models; slices in order equal the whole table.

    Args:
        sweep: The sweep.
        start: The first row [1].
        stop: The row after the last; the end by default [1].

    Returns:
        The columns of `step_columns`, in their order; `bound` is exact.
    """
    names = [column.name for column in sweep.columns]
    pieces = block_slices(sweep, start, sweep.rows if stop is None else stop)
    return pl.concat(
        with_exact_bounds(
            block_frame(sweep, block, low, high, {}), stages_of(sweep, block).ties
        ).select(names)
        for block, low, high in pieces
    )


def enums(columns: Iterable[Mapping[str, pl.Series]]) -> TextTypes:
    """The Enum of every text column: the values that occur in some columns of that name."""
    values: dict[str, list[pl.Series]] = {}
    for each in columns:
        for name, series in each.items():
            if series.dtype == pl.Categorical:
                values.setdefault(name, []).append(series.cast(pl.String))
    return {
        name: pl.Enum(pl.concat(several).drop_nulls().unique().sort())
        for name, several in values.items()
    }


def whole_step_rows(
    sweep: ModelSweep, columns: Sequence[str], start: int, stop: int
) -> pl.LazyFrame:
    """The rows to write: fixed columns, no pushdown, faster; text is Enum.

    Args:
        sweep: The sweep.
        columns: The columns, in order.
        start: The first row [1].
        stop: The row after the last [1].
    """
    pieces = list(block_slices(sweep, start, stop))
    texts = enums(
        {**key_columns(block.cases), **cost_columns(sweep, block.cases)} for block, *_ in pieces
    )
    frames = []
    for block, low, high in pieces:
        frame = block_frame(sweep, block, low, high, texts)
        if "bound" in columns:
            ties = stages_of(sweep, block).ties
            frame = frame.select(*dict.fromkeys([*columns, *ties.columns]))
            frame = with_exact_bounds_by_batch(frame, ties)
        frames.append(frame.select(columns))
    return pl.concat(frames)
