"""The rows of steps of models, and of their kernels: works, times and what follows, as stages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import TYPE_CHECKING

import polars as pl

from rooflines.dictionary.columns import SERIAL_SUFFIX, UNTIMED_PREFIX
from rooflines.evaluation.compiler import Sheet, Value, first_longest, quotient
from rooflines.evaluation.footprints import footprint_columns, footprint_stages
from rooflines.evaluation.operation_rows import BOUND, estimate_stages, resource_times
from rooflines.sweep.cases import Case
from rooflines.theory.poly import ONE
from rooflines.theory.resources import ACTIVATION_BYTES, MATH, MEMORY, NETWORK, RESOURCES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.config.model_fields import ModelSweepConfig, Prices
    from rooflines.evaluation.operation_rows import Stages
    from rooflines.sweep.cases import Block
    from rooflines.sweep.step_sweep import StepCase
    from rooflines.theory.kernel import Kernel
    from rooflines.theory.poly import Poly
    from rooflines.theory.times import Times

HOUR_S = 3600

WORKS = dict.fromkeys(
    [
        "flops",
        "weight_bytes",
        "kv_cache_bytes",
        ACTIVATION_BYTES,
        *(resource.work for resource in RESOURCES),
    ]
)
"""The columns of works."""

IN_TURN = "#in_turn"
"""The time of the collectives of a step, one after another [s]."""

INNER_AXES = 1
"""Contexts, or requests, are the block of inner rows: what does not depend on them is computed once
per case and batch."""


class StepSheet:
    """The columns of rows of steps.

    Args:
        block: The cases and their sizes.

    Attributes:
        config: The keys of their sweep.
        prior: Columns that times are computed from.
    """

    def __init__(self, block: Block[StepCase]) -> None:
        self.sheet = Sheet([block], INNER_AXES)
        self.cases = block.cases
        self.config: ModelSweepConfig = block.place.sweep.config
        self.prior: Stages = []

    def stages(self) -> Stages:
        """The columns but keys and sizes."""
        sheet, cases = self.sheet, self.cases
        # Before works, so that no time of a kernel is a multiple of these: a sum over kernels would
        # have other early and late parts, and another last digit, with other cases beside it.
        in_turn, lower = self.in_turn(), self.lower()
        works = sheet.works(WORKS, exact=False)
        seconds = resource_times(sheet, cases)
        activation = sheet.total(sheet.poly([case.times.activation for case in cases]))
        seconds |= {"t_activation_s": activation, **in_turn, **self.own()}
        ends = zip(*(case.band for case in cases), strict=True)
        bands = dict(zip(BANDS.values(), map(sheet.constant, ends), strict=True))
        for name, values in cost_columns(cases, self.config.prices).items():
            sheet.put(name, values)
        tokens = pl.col("B").cast(pl.Float64) * pl.col("T").cast(pl.Float64)
        if self.config.draft is not None:
            tokens *= self.config.draft.yielded
        longest = pl.max_horizontal(*OF_RESOURCES.values())
        return [
            works,
            *self.prior,
            seconds,
            *self.footprints(),
            {"t_lower_s": lower, "#tokens": tokens, **self.with_memory(), **bands},
            band_columns(),
            {
                "bound": first_longest(OF_RESOURCES, longest, BOUND),
                **self._per_token("", "t_lower_s"),
                **self._per_token(SERIAL_SUFFIX, "t_serial_s"),
            },
        ]

    def in_turn(self) -> dict[str, pl.Expr]:
        """The times of kernels one after another, and their estimate."""
        sheet = self.sheet
        kernels = [self.kernel_seconds(index) for index in range(len(self.cases[0].kernels))]
        return {
            IN_TURN: sheet.total(sheet.sum(sent for _, sent in kernels)),
            "t_serial_s": sheet.total(sheet.sum(longest for longest, _ in kernels)),
            "t_estimate_s": self.estimate(),
        }

    def own(self) -> dict[str, pl.Expr]:
        """Columns of its kind of steps, besides times."""
        return {}

    def footprints(self) -> Stages:
        """What chips hold, and whether it fits."""
        for name, values in footprint_columns(self.cases).items():
            self.sheet.put(name, values)
        return footprint_stages()

    def with_memory(self) -> dict[str, pl.Expr]:
        """The time without overlap."""
        parts = [pl.col(f"t_{each.name}_s") for each in RESOURCES if each is not NETWORK]
        return {"t_upper_s": reduce(add, [*parts, pl.col("t_activation_s"), pl.col(IN_TURN)])}

    def lower(self) -> pl.Expr:
        """`t_lower_s` of a row, from the times of its resources."""
        return pl.max_horizontal(*OF_RESOURCES.values())

    def kernel_seconds(self, index: int) -> tuple[Value, Value]:
        """The time of a kernel in all its layers, and of its collectives one after another [s]."""
        sheet, count = self.sheet, self.cases[0].kernels[index].count
        by = kernel_times(sheet, [case.kernel_times[index] for case in self.cases], count)
        return sheet.largest(by.values()), by[NETWORK.bound]

    def estimate(self) -> pl.Expr:
        """The sum of the calibrated times of all kernels [s]; null where one has none."""
        sheet, parts = self.sheet, list[Value]()
        known = [None not in case.kernel_estimates for case in self.cases]
        if not any(known):
            return pl.lit(None, dtype=pl.Float64)
        for index, kernel in enumerate(self.cases[0].kernels):
            found = [case.kernel_estimates[index] for case in self.cases]
            common = [None if each is None else each.common * kernel.count for each in found]
            parts.extend((sheet.poly(common), self.kernel_estimate(found, kernel)))
        estimated = sheet.constant([0.0 if each else None for each in known])
        return sheet.total(sheet.sum(parts)) + estimated

    def kernel_estimate(self, found: Sequence[Times | None], kernel: Kernel) -> Value:
        """The largest piece of the estimate of a kernel in all its layers [s]."""
        bounds = dict.fromkeys(bound for each in found if each for bound in each.by_bound)
        return self.sheet.largest(
            self.sheet.time(
                [None if each is None else each.by_bound.get(bound) for each in found], kernel.count
            )
            for bound in bounds
        )

    def _per_token(self, suffix: str, seconds: str) -> dict[str, pl.Expr]:
        """Metrics per token and shares of peaks at a time of a step."""
        sheet, cases = self.sheet, self.cases
        over, tokens = pl.col(seconds), pl.col("#tokens")

        def reached(name: str) -> pl.Expr:
            return sheet.constant([float(case.machine.efficiency[name]) for case in cases])

        per_token = quotient(over, tokens)
        found = {
            "tokens_per_s": quotient(tokens, over),
            "tokens_per_s_per_chip": quotient(tokens, over * pl.col("chips")),
            "mfu": quotient(pl.col("t_math_s") * reached(MATH.name), over),
            "mbu": quotient(pl.col("t_memory_s") * reached(MEMORY.name), over),
            "usd_per_mtok": where_fits(pl.col("#usd_per_s") * 1e6 * per_token),
            "j_per_token": where_fits(pl.col("#watts") * per_token),
        }
        return {f"{name}{suffix}": each for name, each in found.items()}


def where_fits(value: pl.Expr) -> pl.Expr:
    """A price or an energy; null where the memory is too small, for nothing then runs."""
    return pl.when(pl.col("fits").fill_null(value=True)).then(value)


OF_RESOURCES = {each.bound: pl.col(f"t_{each.name}_s") for each in RESOURCES}
"""The columns of the resources' times, by bound."""


BANDS = {"t_estimate_p10_s": "#p10", "t_estimate_p90_s": "#p90"}
"""The columns of the band of an estimate, and those of its ends over the estimate."""


def band_columns() -> dict[str, pl.Expr]:
    """The band of the estimate of a step [s]."""
    return {name: pl.col("t_estimate_s") * pl.col(end) for name, end in BANDS.items()}


def kernel_times(sheet: Sheet, found: Sequence[Times], count: int = 1) -> dict[str, Value]:
    """The times of a kernel by bound; what it hands over is part of its memory traffic [s].

    Args:
        sheet: The columns of the cases.
        found: Its times in every case.
        count: Layers [1].
    """
    by = {
        each.bound: sheet.time([times.by_bound[each.bound] for times in found], count)
        for each in RESOURCES
    }
    handed = sheet.poly([times.activation * count for times in found])
    return {**by, MEMORY.bound: sheet.sum([by[MEMORY.bound], handed])}


def cost_columns(cases: Sequence[StepCase], wanted: Prices | None) -> dict[str, pl.Series]:
    """Prices and powers of cases.

    Args:
        cases: The cases.
        wanted: Which of a chip's prices to use; None: the lowest.

    Returns:
        `#usd_per_s` [USD/s] and `#watts` [W] of all chips, `price_provider` and `price_date`; null
        where they are not known.
    """
    provider, kind = (wanted.provider, wanted.kind) if wanted else (None, None)
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
    """One layer of a kernel of a step, as a case of its own.

    Attributes:
        step: The step.
        index: The position of the kernel.
    """

    step: StepCase
    index: int

    @cached_property
    def keys(self) -> Mapping[str, str | int | None]:
        """Its values in the key columns of tables."""
        kernel = self.step.kernels[self.index]
        known = self.step.kernel_estimates[self.index] is not None
        choice = self.step.choice
        fits = " + ".join(choice.fits_of_kernel(kernel)) if known else ""
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
        """Those of the step; see `Case.shares`."""
        return self.step.shares

    @property
    def runs(self) -> Poly:
        """How often a layer runs it in a step [1]."""
        return self.step.runs_of(self.index)

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernel, in one layer."""
        return (replace(self.step.kernels[self.index], count=1),)

    @cached_property
    def times(self) -> Times:
        """Its nominal times; its collectives follow one another."""
        return self.step.kernel_times[self.index]


def kernel_stages(sheet: Sheet, cases: Sequence[KernelCase]) -> Stages:
    """The columns of rows of kernels but keys and sizes: values of one layer.

    Args:
        sheet: The columns of the kernels.
        cases: The kernels.
    """
    works = sheet.works(WORKS, exact=False)
    activation = sheet.poly([case.times.activation for case in cases])
    estimates = [case.step.kernel_estimates[case.index] for case in cases]
    runs, often = [case.runs for case in cases], dict[str, pl.Expr]()
    if any(each is not ONE for each in runs):
        often["runs"] = sheet.total(sheet.poly(runs)).cast(pl.Int64)
    parts = {**OF_RESOURCES, MEMORY.bound: OF_RESOURCES[MEMORY.bound] + pl.col("t_activation_s")}
    return [
        works,
        {
            **often,
            **resource_times(sheet, cases),
            "t_activation_s": sheet.total(activation),
        },
        *estimate_stages(sheet, estimates),
        {"collectives_estimate_s": _collectives_estimate(estimates)},
        {
            "t_serial_s": pl.max_horizontal(*parts.values()),
            "t_upper_s": reduce(add, parts.values()),
        },
        {"bound": first_longest(parts, pl.col("t_serial_s"), BOUND)},
    ]


def _collectives_estimate(estimates: Sequence[Times | None]) -> pl.Expr:
    """The calibrated time of the collectives of a kernel, from the pieces of its estimate [s]."""
    if any(each and NETWORK.bound in each.by_bound for each in estimates):
        return pl.col(f"#piece_{NETWORK.bound}")
    return pl.when(pl.col("t_estimate_s").is_not_null()).then(0.0)
