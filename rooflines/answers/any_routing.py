"""Bounds that hold under any routing, beside those at the mean over uniform routing.

Under uniform routing a step reads a mean number of experts: a routing that reads fewer is faster.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.text import seconds
from rooflines.config.model_fields import Request
from rooflines.models.architecture import DECODE
from rooflines.sweep.exact_times import exact_step_seconds
from rooflines.sweep.prompt_times import prompt_seconds
from rooflines.sweep.step_sweep import ModelSweep
from rooflines.sweep.training_sweep import TrainingSweep
from rooflines.theory.routing import SAME, UNIFORM

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.models.groups import Step
    from rooflines.models.model import Model
    from rooflines.sweep.operation_sweep import Sweep

MEAN_NOTE = (
    "Bounds of models with experts are at the mean over uniform routing; --routing same has those "
    "that hold for any."
)
"""Note below a table with such bounds."""

TRAINING_NOTE = "Bounds of models with experts are at the mean over uniform routing."
"""Note below a table of training, whose routing is always uniform."""

AT_THE_MEAN = "at the mean of uniform routing "
"""Words before a bound that is a mean."""


class AnyRoutingBounds(NamedTuple):
    """Bounds under any routing, which `same` has [s].

    Attributes:
        step: Step.
        first_token: In decode a prompt; None in prefill.
    """

    step: float
    first_token: float | None


def is_routed_unevenly(model: Model) -> bool:
    """Tell whether tokens choose some experts, so that routing decides how many are read."""
    moe = model.shape.moe
    return moe is not None and moe.k < moe.choices


def has_mean(sweeps: Iterable[Sweep | ModelSweep]) -> bool:
    """Tell whether any step has a bound at a mean over uniform routing; training always has."""
    return any(
        isinstance(sweep, ModelSweep)
        and (sweep.config.routing == UNIFORM or isinstance(sweep, TrainingSweep))
        and any(is_routed_unevenly(case.model) for block in sweep.blocks for case in block.cases)
        for sweep in sweeps
    )


def mean_notes(sweeps: Sequence[Sweep | ModelSweep]) -> Iterator[str]:
    """Yield what bounds of models with experts are, where they are means."""
    for note, is_training in ((MEAN_NOTE, False), (TRAINING_NOTE, True)):
        if has_mean(sweep for sweep in sweeps if isinstance(sweep, TrainingSweep) == is_training):
            yield note


def mean_titles(columns: Mapping[str, str], sweeps: Iterable[Sweep | ModelSweep]) -> dict[str, str]:
    """Column titles that call a mean a mean."""
    if not has_mean(sweeps):
        return {**columns}
    return {name: title.replace("at least", "mean bound") for name, title in columns.items()}


def any_routing_bounds(sweep: ModelSweep, step: Step) -> AnyRoutingBounds | None:
    """Bounds of a serving step under any routing; None: its bounds are no means.

    Args:
        sweep: Sweep with one case.
        step: Its step.
    """
    if isinstance(sweep, TrainingSweep) or not has_mean([sweep]):
        return None
    config = sweep.config.model_copy(update={"routing": SAME, "thresholds": []})
    (case,) = (case for block in replace(sweep, config=config).blocks for case in block.cases)
    least = exact_step_seconds(case, replace(step, routing=SAME)).lower
    if case.phase != DECODE:
        return AnyRoutingBounds(least, None)
    return AnyRoutingBounds(least, prompt_seconds(case, Request(input=step.S, output=1)).lower)


def bound_phrase(bound_s: float, any_routing_s: float | None, behind: str = "") -> str:
    """Bound in words: at least, or a mean beside the bound that holds for any routing.

    Args:
        bound_s: The bound [s].
        any_routing_s: The bound under any routing [s]; None: the same.
        behind: Words behind the first time, such as `, memory-bound`.
    """
    if any_routing_s is None or any_routing_s >= bound_s:
        return f"at least {seconds(bound_s)}{behind}"
    return (
        f"{AT_THE_MEAN}{seconds(bound_s)}{behind}, "
        f"at least {seconds(any_routing_s)} whatever the routing"
    )
