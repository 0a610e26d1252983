"""Parts of an answer as values: every number is a table column, a threshold column, or a rate.

No formula is here: times come from the tables, sizes and rates from the solvers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


ONE_AXIS = "over one axis"
"""Name for a route along a single torus axis."""


@dataclass(frozen=True)
class ResourceTime:
    """Work, rate and time at one resource: time = max over networks(work / rate, hop latency) [s].

    Attributes:
        resource: `math`, `memory` or `network`.
        bound: Its name as a bottleneck.
        column: The table's column of its work.
        work: That work [FLOP or byte].
        per_s: Its rate, efficiency included [FLOP/s or byte/s].
        latency_s: The least time of any amount of work [s].
        time_s: Its time, of the table [s].
        intensity: FLOPs per byte of its work, of the table [FLOP/byte]; None: math, or no traffic.
        needed_intensity: From which on the math takes at least as long [FLOP/byte]; None: math.
    """

    resource: str
    bound: str
    column: str
    work: float
    per_s: float
    latency_s: float
    time_s: float
    intensity: float | None = None
    needed_intensity: float | None = None


@dataclass(frozen=True)
class RequiredRate:
    """Rate at which the row becomes compute-bound, all else equal.

    Attributes:
        rate: `peak`, `memory_rate` or `network_rate`.
        resource: The resource that has it.
        outcome, limit: See `solvers.required_rates.solve_rate`.
        factor: On the chip's own rate: at most 1 for `peak`, at least 1 for others [1]; None: none.
        per_s: The rate as it is [FLOP/s or byte/s].
        needed_per_s: The rate with the factor; None: none.
    """

    rate: str
    resource: str
    outcome: str
    limit: str | None
    factor: float | None
    per_s: float
    needed_per_s: float | None


@dataclass(frozen=True)
class Estimate:
    """Time by a calibration, with its band.

    Attributes:
        time_s: Time expected on real software [s].
        p10_s, p90_s: Band that 8 of 10 measured times fall in [s]; None: no band.
        bound: Bottleneck by the calibration; None: a step, whose kernels have their own.
        extrapolated: What lies beyond the calibration's timings, `sizes`, `engine` or both; None:
            nothing.
        softwares: Software that the calibration is fitted to; empty: the chip's own measurements.
        contents: What its timings include besides matmuls.
    """

    time_s: float
    p10_s: float | None
    p90_s: float | None
    bound: str | None
    extrapolated: str | None
    softwares: Sequence[str]
    contents: Sequence[str]
