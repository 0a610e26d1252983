"""What follows from the works and times of a row, as formulas."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.model.step_columns import TWIN
from rooflines.sweep.metrics import Formula, column

if TYPE_CHECKING:
    from collections.abc import Mapping

MEMORY = column("weight_bytes") + column("cache_bytes")
"""`memory_bytes` of a step or kernel [byte]."""

FOOTPRINT = column("weights_footprint_bytes") + column("cache_footprint_bytes")
"""`footprint_bytes` of a step [byte]."""

STEP_UPPER = column("t_math_s") + column("t_memory_s") + column("t_activation_s")
"""`t_upper_s` of a step, besides its collectives one after another [s]."""

KERNEL_TIMES: Mapping[str, Formula] = {
    "compute": column("t_math_s"),
    "memory": column("t_memory_s") + column("t_activation_s"),
    "network": column("t_network_s"),
}
"""The times of a kernel's resources, by bound [s]."""

KERNEL_UPPER = reduce(add, KERNEL_TIMES.values())
"""`t_upper_s` of a kernel [s]."""

REQUEST_TIMES = {"tpot_s": column("t_lower_s"), "tpot_ops_s": column("t_ops_s")}
"""The times per output token of a request: means over its decode steps [s]."""

MILLION = Formula(pl.lit(1e6))


class StepInputs(NamedTuple):
    """What metrics per token and shares of peaks read besides the times of a step.

    Attributes:
        tokens: Tokens of the step [1].
        usd_per_s: Price of all chips [USD/s].
        watts: Design power of all chips [W].
        math_reached, memory_reached: Shares of the nominal rates that `t_math_s` and `t_memory_s`
            assume [1].
    """

    tokens: Formula
    usd_per_s: Formula
    watts: Formula
    math_reached: Formula
    memory_reached: Formula


def per_token(inputs: StepInputs) -> dict[str, Formula]:
    """Metrics per token and shares of peaks, at `t_lower_s` and at `t_ops_s`, by column.

    Args:
        inputs: What they read besides times.
    """
    return {
        f"{name}{twin}": formula
        for twin, seconds in (("", column("t_lower_s")), (TWIN, column("t_ops_s")))
        for name, formula in _at(seconds, inputs).items()
    }


def _at(seconds: Formula, inputs: StepInputs) -> dict[str, Formula]:
    """The metrics at a time of a step [s]."""
    tokens, usd_per_s, watts, math_reached, memory_reached = inputs
    return {
        "tokens_per_s": tokens / seconds,
        "tokens_per_s_per_chip": tokens / (seconds * column("chips")),
        "mfu": column("t_math_s") * math_reached / seconds,
        "mbu": column("t_memory_s") * memory_reached / seconds,
        "usd_per_mtok": (usd_per_s * MILLION * (seconds / tokens)).where_not_false("fits"),
        "j_per_token": watts * (seconds / tokens),
    }
