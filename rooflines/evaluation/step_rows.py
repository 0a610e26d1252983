"""Rows of model steps and of their kernels: works, times and derived metrics, as stages."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

import polars as pl

from rooflines.basics.expressions import quotient
from rooflines.dictionary.columns import ESTIMATE_SUFFIX, SERIAL_SUFFIX, UNTIMED_PREFIX
from rooflines.evaluation.compiler import RowCompiler, Value, first_longest
from rooflines.evaluation.engine_columns import pool_stages
from rooflines.evaluation.footprints import footprint_columns, footprint_stages
from rooflines.evaluation.operation_rows import BOUND_ENUM, estimate_stages, resource_times
from rooflines.models.architecture import DECODE
from rooflines.models.split import Split
from rooflines.sweep.cases import Case
from rooflines.sweep.pipelines import is_pipelined, token_time
from rooflines.theory.kernel import OFFLOAD_BYTES
from rooflines.theory.poly import ONE
from rooflines.theory.resources import ACTIVATION_BYTES, MATH, MEMORY, NETWORK, RESOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from fractions import Fraction

    from rooflines.config.model_fields import ModelSweepConfig, Prices
    from rooflines.evaluation.operation_rows import Stages
    from rooflines.sweep.cases import Block
    from rooflines.sweep.step_sweep import StepCase
    from rooflines.theory.kernel import Kernel
    from rooflines.theory.poly import Poly
    from rooflines.theory.resources import Resource
    from rooflines.theory.times import Times

HOUR_S = 3600

WORKS = dict.fromkeys(
    [
        "flops",
        "weight_bytes",
        "kv_cache_bytes",
        ACTIVATION_BYTES,
        *(resource.work for resource in RESOURCES),
        OFFLOAD_BYTES,
    ]
)
"""Columns of works."""

SERIAL_COLLECTIVES = "#in_turn"
"""Column with the time of a step's collectives, one after another [s]."""

StepCaseT = TypeVar("StepCaseT", bound="StepCase")

INNER_AXES = 1
"""Number of inner axes: contexts, or requests. Terms without them are computed once per case and
batch."""


class StepParts(NamedTuple):
    """Parts of rows in which steps, requests and training differ.

    Attributes:
        seconds: Serialized times, their estimate, and counts that follow from a step's sizes.
        lower: Bound of a row: t_lower_s [s].
        derived: Times computed from others [s].
        footprints: Footprints and `fits`.
        at_peak: Times at a nominal peak, by its share of a step time, such as mfu [s].
        before: Columns from which `seconds` and `lower` are computed.
        after: Columns that read all others.
    """

    seconds: dict[str, pl.Expr]
    lower: pl.Expr
    derived: dict[str, pl.Expr]
    footprints: Stages
    at_peak: dict[str, pl.Expr]
    before: Stages
    after: Stages


class StepBlock(Generic[StepCaseT]):
    """Steps whose rows are compiled together.

    Args:
        block: The cases and their sizes.

    Attributes:
        compiler: The row compiler.
        cases: The cases.
        config: The keys of their sweep.
    """

    def __init__(self, block: Block[StepCaseT]) -> None:
        split = block.cases[0].workload.sharing.split
        self.has_stages = isinstance(split, Split) and split.pp > 1
        self.compiler = RowCompiler(block, INNER_AXES)
        if self.has_stages:
            self.compiler = step_compiler(block, block.cases[0])
        self.cases = block.cases
        self.config: ModelSweepConfig = block.cases[0].place.sweep.config

    @property
    def stage_blocks(self) -> list[StepBlock[StepCase]]:
        """Steps by kind of pipeline stage, in the same compiler; empty without stages."""
        pipelines = [case.pipeline for case in self.cases]
        stages = zip(*(pipeline.stages for pipeline in pipelines if pipeline), strict=True)
        blocks = []
        for kind in stages:
            block: StepBlock[StepCase] = copy(cast("StepBlock[StepCase]", self))
            block.cases = tuple(case for case, _ in kind)
            blocks.append(block)
        return blocks

    def constant(self, values: Iterable[float | Fraction | None]) -> pl.Expr:
        """Column with a number for each case."""
        return self.compiler.constant([None if value is None else float(value) for value in values])

    def stages(self, parts: StepParts) -> Stages:
        """All columns but keys and sizes."""
        compiler, cases = self.compiler, self.cases
        works = compiler.works(WORKS, exact=False)
        activation = compiler.total(compiler.poly([case.times.activation for case in cases]))
        seconds = {
            **resource_times(compiler, cases),
            "t_activation_s": activation,
            **parts.seconds,
        }
        ends = zip(*(case.band for case in cases), strict=True)
        bands = dict(zip(BANDS.values(), map(compiler.constant, ends), strict=True))
        for name, values in cost_columns(cases, self.config.prices).items():
            compiler.put(name, values)
        tokens = pl.col("B").cast(pl.Float64) * pl.col("T").cast(pl.Float64)
        if self.config.draft is not None:
            tokens *= self.config.draft.yielded
        if self.has_stages:
            columns = [*works, *(name for name in seconds if name in MEAN_CHIP)]
            mean = micro_batches(cases[0]) / float(cases[0].split.stages)
            means = [{name: pl.col(name) * mean for name in columns}]
        else:
            means = []
        return [
            works,
            *parts.before,
            seconds,
            *means,
            *parts.footprints,
            {"t_lower_s": parts.lower, "#tokens": tokens, **parts.derived, **bands},
            BAND_COLUMNS,
            {
                "bound": first_longest(RESOURCE_TIMES, MAX_TIME, BOUND_ENUM),
                **per_token("", "t_lower_s", parts.at_peak),
                **per_token(SERIAL_SUFFIX, "t_serial_s", parts.at_peak),
                **per_token(ESTIMATE_SUFFIX, "t_estimate_s", parts.at_peak),
            },
            *parts.after,
        ]


def step_compiler(block: Block[Any], case: StepCase) -> RowCompiler:
    """Row compiler for steps; with pipeline stages, decode costs are per micro-batch.

    Args:
        block: The block.
        case: Its first step.
    """
    compiler = RowCompiler(block, INNER_AXES)
    if is_pipelined(case) and case.phase == DECODE:
        compiler.columns["B"] = compiler.columns["B"] / micro_batches(case)
    return compiler


def micro_batches(case: StepCase) -> pl.Expr:
    """Micro-batches on the way, min(pp, B / dp); in prefill one [1].

    Args:
        case: A case in the block: all have one split and phase.
    """
    if case.phase != DECODE:
        return pl.lit(1.0)
    per_replica = pl.col("B").cast(pl.Float64) / float(case.split.dp)
    return pl.min_horizontal(float(case.split.stages), per_replica)


def step_parts(steps: StepBlock[StepCase]) -> StepParts:
    """Parts of rows for decode and prefill steps."""
    if steps.has_stages:
        stages = steps.stage_blocks
        times = [
            stage_times(stage, resource_bound(stage), step_kernel_times(stage)) for stage in stages
        ]
        return pipeline_parts(steps, times)
    kernels = range(len(steps.cases[0].kernels))
    return StepParts(
        seconds=serialized_times(
            steps,
            (kernel_seconds(steps, index) for index in kernels),
            partial(largest_piece, steps),
        ),
        lower=MAX_TIME,
        derived=UPPER,
        footprints=steps_footprints(steps),
        at_peak=times_at_peak(steps),
        before=[],
        after=[],
    )


def step_kernel_times(steps: StepBlock[StepCase]) -> dict[str, pl.Expr]:
    """Serialized times for decode and prefill steps, and their estimate."""
    kernels = range(len(steps.cases[0].kernels))
    seconds = (kernel_seconds(steps, index) for index in kernels)
    return serialized_times(steps, seconds, partial(largest_piece, steps))


# ---------------------------------------------------------------- pipeline stages

PIPELINED = ("t_lower_s", "t_serial_s", "t_upper_s", "t_estimate_s")
"""Times that pipeline stages make up."""


def resource_bound(stage: StepBlock[StepCase]) -> pl.Expr:
    """Stage bound: max over resources [s]."""
    return pl.max_horizontal(*stage_resources(stage).values())


def stage_resources(stage: StepBlock[StepCase]) -> dict[str, pl.Expr]:
    """Resource times on a stage, by bound [s]."""
    compiler = stage.compiler
    return {
        resource.bound: compiler.total(
            compiler.time([case.times.by_bound[resource.bound] for case in stage.cases])
        )
        for resource in RESOURCES
    }


def stage_times(
    stage: StepBlock[StepCase],
    lower: pl.Expr,
    kernels: Mapping[str, pl.Expr],
) -> dict[str, pl.Expr]:
    """Stage times by column, as in `PIPELINED` [s].

    Args:
        stage: The steps on the stage.
        lower: Their bound.
        kernels: Their kernels' times, as from `step_kernel_times`.
    """
    compiler = stage.compiler
    by = stage_resources(stage)
    activation = compiler.total(compiler.poly([case.times.activation for case in stage.cases]))
    local = [time for bound, time in by.items() if bound != NETWORK.bound]
    return {
        "t_lower_s": lower,
        "t_serial_s": kernels["t_serial_s"],
        "t_upper_s": reduce(add, [*local, activation, kernels[SERIAL_COLLECTIVES]]),
        "t_estimate_s": kernels["t_estimate_s"],
    }


def pipeline_parts(steps: StepBlock[StepCase], times: Sequence[Mapping[str, pl.Expr]]) -> StepParts:
    """Row parts for steps with pipeline stages.

    Args:
        steps: The steps.
        times: Micro-batch times by stage kind and column, from `stage_times`.
    """
    seconds = {
        stage_column(name, kind): time
        for kind, by_name in enumerate(times)
        for name, time in by_name.items()
    }
    pipelines = [case.pipeline for case in steps.cases]
    hops = steps.compiler.poly([pipeline and pipeline.hops_s for pipeline in pipelines])
    seconds[HOPS] = steps.compiler.total(hops)
    kinds = range(len(times))
    columns = {
        name: through_stages(steps, [pl.col(stage_column(name, kind)) for kind in kinds])
        for name in PIPELINED
    }
    if steps.cases[0].phase != DECODE:  # a prompt in chunks of any size
        latency = steps.constant(pipeline and pipeline.latency_s for pipeline in pipelines)
        stages = (pl.col(stage_column("t_lower_s", kind)) for kind in kinds)
        columns["t_lower_s"] = pl.max_horizontal(*stages) + latency
    return StepParts(
        seconds=seconds,
        lower=columns.pop("t_lower_s"),
        derived=columns,
        footprints=steps_footprints(steps),
        at_peak=times_at_peak(steps),
        before=[],
        after=[],
    )


HOPS = "#hops_s"
"""Column with the time for all hops between stages [s]."""

MEAN_CHIP = ("t_activation_s", *(f"t_{resource.name}_s" for resource in RESOURCES))
"""Times that, as all works, are the mean chip's where there are stages."""


def stage_column(name: str, kind: int) -> str:
    """Column with a time, by stage kind."""
    return f"#{name}:{kind}"


def through_stages(steps: StepBlock[StepCase], stages: Sequence[pl.Expr]) -> pl.Expr:
    """Token time through all stages, in prefill step time; null if a stage has none [s].

    Args:
        steps: The steps.
        stages: Micro-batch time by stage kind [s].
    """
    case = steps.cases[0]
    if case.pipeline is None:
        return stages[0]
    counts = case.pipeline.counts
    if case.phase != DECODE:
        return reduce(add, (time * count for time, count in zip(stages, counts, strict=True))) + (
            pl.col(HOPS)
        )
    time = token_time(stages, counts, pl.col(HOPS), micro_batches(case), pl.max_horizontal)
    return pl.when(pl.all_horizontal(stage.is_not_null() for stage in stages)).then(time)


def serialized_times(
    steps: StepBlock[StepCase],
    kernels: Iterable[tuple[Value, Value]],
    estimate: Callable[[Sequence[Times | None], Kernel], Value],
) -> dict[str, pl.Expr]:
    """Serialized kernel times, and their estimate.

    Args:
        steps: The steps.
        kernels: A kernel's time, and its collectives' alone, as in `kernel_seconds`.
        estimate: Function as `largest_piece`.
    """
    compiler, values = steps.compiler, [*kernels]
    return {
        SERIAL_COLLECTIVES: compiler.total(compiler.sum(sent for _, sent in values)),
        "t_serial_s": compiler.total(compiler.sum(longest for longest, _ in values)),
        "t_estimate_s": estimated_time(steps, estimate),
    }


def estimated_time(
    steps: StepBlock[StepCase], estimate: Callable[[Sequence[Times | None], Kernel], Value]
) -> pl.Expr:
    """Estimate: sum over kernels' calibrated times [s]; null if a kernel has none.

    Args:
        steps: The steps.
        estimate: Function as `largest_piece`.
    """
    compiler, cases, parts = steps.compiler, steps.cases, list[Value]()
    is_calibrated = [None not in case.kernel_estimates for case in cases]
    if not any(is_calibrated):
        return pl.lit(None, dtype=pl.Float64)
    for index, kernel in enumerate(cases[0].kernels):
        estimates = [case.kernel_estimates[index] for case in cases]
        common = [None if times is None else times.common * kernel.count for times in estimates]
        parts.extend((compiler.poly(common), estimate(estimates, kernel)))
    estimated = compiler.constant([0.0 if calibrated else None for calibrated in is_calibrated])
    return compiler.total(compiler.sum(parts)) + estimated


def kernel_seconds(steps: StepBlock[StepCase], index: int) -> tuple[Value, Value]:
    """Kernel time in all layers, max over resources, and time for collectives alone [s]."""
    compiler, count = steps.compiler, steps.cases[0].kernels[index].count
    by = kernel_times(compiler, [case.kernel_times[index] for case in steps.cases], count)
    return compiler.extreme(pl.max_horizontal, by.values()), by[NETWORK.bound]


def largest_piece(
    steps: StepBlock[StepCase], estimates: Sequence[Times | None], kernel: Kernel
) -> Value:
    """Largest piece of a kernel's estimate, in all layers [s]."""
    compiler = steps.compiler
    bounds = dict.fromkeys(bound for times in estimates if times for bound in times.by_bound)
    return compiler.extreme(
        pl.max_horizontal,
        (
            compiler.time(
                [None if times is None else times.by_bound.get(bound) for times in estimates],
                kernel.count,
            )
            for bound in bounds
        ),
    )


def steps_footprints(steps: StepBlock[StepCase]) -> Stages:
    """Footprints and `fits`, and pools of serving engines where some are asked for."""
    for name, values in footprint_columns(steps.cases).items():
        steps.compiler.put(name, values)
    pools = [] if steps.config.engine is None else pool_stages(steps.cases)
    kinds = len(steps.stage_blocks) if steps.has_stages else 1
    return [*footprint_stages(kinds), *pools]


def times_at_peak(steps: StepBlock[Any]) -> dict[str, pl.Expr]:
    """FLOPs / peak, and bytes / bandwidth, by their shares of a step time [s]."""
    return {
        share: pl.col(f"t_{resource.name}_s")
        * steps.constant([case.machine.efficiency[resource.name] for case in steps.cases])
        for share, resource in (("mfu", MATH), ("mbu", MEMORY))
    }


def per_token(suffix: str, seconds: str, at_peak: Mapping[str, pl.Expr]) -> dict[str, pl.Expr]:
    """Metrics per token, and shares of peaks, at one step time.

    tokens_per_s = tokens / t, mfu = FLOPs / peak / t, mbu = bytes / bandwidth / t.

    Args:
        suffix: End of the columns' names.
        seconds: Column with the step time [s].
        at_peak: Times at a nominal peak, by their shares [s].
    """
    time, tokens = pl.col(seconds), pl.col("#tokens")
    seconds_per_token = quotient(time, tokens)
    metrics = {
        "tokens_per_s": quotient(tokens, time),
        "tokens_per_s_per_chip": quotient(tokens, time * pl.col("chips")),
        **{name: quotient(peak_s, time) for name, peak_s in at_peak.items()},
        "usd_per_mtok": where_fits(pl.col("#usd_per_s") * 1e6 * seconds_per_token),
        "j_per_token": where_fits(pl.col("#watts") * seconds_per_token),
    }
    return {f"{name}{suffix}": value for name, value in metrics.items()}


def where_fits(value: pl.Expr) -> pl.Expr:
    """Price or energy; null where memory is too small, since nothing runs."""
    return pl.when(pl.col("fits").fill_null(value=True)).then(value)


RESOURCE_TIMES = {resource.bound: pl.col(f"t_{resource.name}_s") for resource in RESOURCES}
"""Columns with the resources' times, by bound."""

MAX_TIME = pl.max_horizontal(*RESOURCE_TIMES.values())
"""Longest time of a resource: t_lower_s of a step [s]."""

UPPER = {
    "t_upper_s": reduce(
        add,
        [
            *(pl.col(f"t_{resource.name}_s") for resource in RESOURCES if resource is not NETWORK),
            pl.col("t_activation_s"),
            pl.col(SERIAL_COLLECTIVES),
        ],
    )
}
"""Column with the time without overlap: sum over resources, collectives one after another [s]."""


BANDS = {"t_estimate_p10_s": "#p10", "t_estimate_p90_s": "#p90"}
"""Columns of an estimate's band, and columns with p10 and p90 of measured over estimated time."""


BAND_COLUMNS = {name: pl.col("t_estimate_s") * pl.col(end) for name, end in BANDS.items()}
"""Columns with the band of a step's estimate [s]."""


def kernel_times(
    compiler: RowCompiler, case_times: Sequence[Times], count: int = 1
) -> dict[str, Value]:
    """Kernel times by bound; activation traffic is part of its memory time [s].

    Args:
        compiler: Row compiler for the cases.
        case_times: Kernel times, by case.
        count: Layers [1].
    """
    by = {
        resource.bound: compiler.time(
            [times.by_bound[resource.bound] for times in case_times], count
        )
        for resource in RESOURCES
    }
    activation = compiler.poly([times.activation * count for times in case_times])
    return {**by, MEMORY.bound: compiler.sum([by[MEMORY.bound], activation])}


def cost_columns(cases: Sequence[StepCase], price_choice: Prices | None) -> dict[str, pl.Series]:
    """Prices and powers, by case.

    Args:
        cases: The cases.
        price_choice: Provider and kind of price to use; None: the lowest price.

    Returns:
        `#usd_per_s` [USD/s] and `#watts` [W] of all chips, `price_provider` and `price_date`; null
        where a chip has none.
    """
    provider, kind = (price_choice.provider, price_choice.kind) if price_choice else (None, None)
    chips = [case.place.entry for case in cases]
    prices = [chip.lowest_price(provider, kind) for chip in chips]
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


# ------------------------------------------------------------ kernels


@dataclass(frozen=True, eq=False)
class KernelCase(Case):
    """Case: one kernel of a step, in one layer.

    Attributes:
        step: The step.
        index: The kernel's position.
    """

    step: StepCase
    index: int

    @cached_property
    def keys(self) -> Mapping[str, str | int | None]:
        """Values in tables' key columns."""
        kernel = self.step.kernels[self.index]
        is_calibrated = self.step.kernel_estimates[self.index] is not None
        choice = self.step.choice
        fits = " + ".join(choice.fits_of_kernel(kernel)) if is_calibrated else ""
        if fits and not choice.is_timed(kernel):
            fits = f"{UNTIMED_PREFIX}, by {fits}"
        return {
            **self.step.keys,
            "group": kernel.name,
            "count": kernel.count,
            "calibration": fits or None,
        }

    @property
    def shares(self) -> Mapping[str, tuple[str, int]]:
        """Shares of the step; see `Case.shares`."""
        return self.step.shares

    @property
    def runs(self) -> Poly:
        """Runs per layer and step [1]."""
        return self.step.runs_of(self.index)

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """Kernels: only this one, in one layer."""
        return (replace(self.step.kernels[self.index], count=1),)

    @cached_property
    def times(self) -> Times:
        """Nominal times, collectives one after another."""
        return self.step.kernel_times[self.index]

    def rate(self, resource: Resource) -> Fraction | None:
        """Rate of all work on a resource [FLOP/s or byte/s]; None: several, or no work."""
        several = resource is NETWORK and len(self.kernels[0].transfers) > 1
        return None if several else super().rate(resource)


def kernel_stages(compiler: RowCompiler, cases: Sequence[KernelCase]) -> Stages:
    """Columns for kernel rows, without keys and sizes: values in one layer.

    Args:
        compiler: Row compiler for the kernels.
        cases: The kernels.
    """
    works = compiler.works(WORKS, exact=False)
    activation = compiler.poly([case.times.activation for case in cases])
    estimates = [case.step.kernel_estimates[case.index] for case in cases]
    runs, runs_columns = [case.runs for case in cases], dict[str, pl.Expr]()
    if any(poly != ONE for poly in runs):
        runs_columns["runs"] = compiler.total(compiler.poly(runs)).cast(pl.Int64)
    parts = {
        **RESOURCE_TIMES,
        MEMORY.bound: RESOURCE_TIMES[MEMORY.bound] + pl.col("t_activation_s"),
    }
    return [
        works,
        {
            **runs_columns,
            **resource_times(compiler, cases),
            "t_activation_s": compiler.total(activation),
        },
        *estimate_stages(compiler, estimates),
        {"collectives_estimate_s": _collectives_estimate(estimates)},
        {
            "t_serial_s": pl.max_horizontal(*parts.values()),
            "t_upper_s": reduce(add, parts.values()),
        },
        {"bound": first_longest(parts, pl.col("t_serial_s"), BOUND_ENUM)},
    ]


def _collectives_estimate(estimates: Sequence[Times | None]) -> pl.Expr:
    """Calibrated time of a kernel's collectives, from the pieces of its estimate [s]."""
    if any(times and NETWORK.bound in times.by_bound for times in estimates):
        return pl.col(f"#piece_{NETWORK.bound}")
    return pl.when(pl.col("t_estimate_s").is_not_null()).then(0.0)
