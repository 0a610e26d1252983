"""Thresholds of a step of training: sizes from which it is compute-bound, or no longer fits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rooflines.basics.numbers import first
from rooflines.model.resources import MATH

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from rooflines.training.plan import TrainingPlan
    from rooflines.training.step import TrainingStep

LARGEST_STEPS = 2**40
"""Sizes are searched up to this many times the least one [1]."""


def least_tokens(step: TrainingStep, bound: str) -> int | None:
    """The least S from which math takes at least as long as another resource [1].

    Math grows with S and S^2, the bytes of every resource with S and a constant: once it takes
    longer, it does from there on.

    Args:
        step: The step; its other sizes stay.
        bound: The other resource.

    Returns:
        S, a multiple of cp; None: never.
    """

    def outgrown(tokens: int) -> bool:
        seconds = replace(step, tokens=tokens).seconds
        return seconds[MATH.bound] >= seconds[bound]

    return _least(outgrown, step.setting.plan.cp)


def longest_context(step: TrainingStep) -> int:
    """The most tokens of a sequence whose saved tensors fit beside the states [1]; 0: none."""
    return _most(
        lambda tokens: replace(step, tokens=tokens).fits is not False, step.setting.plan.cp
    )


def largest_micro_batch(step: TrainingStep) -> int:
    """The most sequences that a replica can compute at once, with as many micro-batches [1]."""
    plan, m = step.setting.plan, step.micro_batches

    def fits(size: int) -> bool:
        wider = plan.model_copy(update={"micro_batch": size})
        setting = replace(step.setting, plan=wider)
        return replace(step, setting=setting, sequences=plan.dp * size * m).fits is not False

    return _most(fits, 1)


def hiding_micro_batches(plan: TrainingPlan, share: Fraction) -> int:
    """The least micro-batches with which stages wait for at most a share of a step [1].

    Args:
        plan: The plan.
        share: Of the time of the step, above 0 [1].
    """
    least = (plan.pp - 1) * (1 - share) / (share * plan.interleave)
    return max(-(-least.numerator // least.denominator), 1)


def _least(holds: Callable[[int], bool], unit: int) -> int | None:
    """The least multiple of a unit from which something holds; None: not up to the largest."""
    least = first(lambda times: holds(times * unit), 1, LARGEST_STEPS + 1)
    return least * unit if least <= LARGEST_STEPS else None


def _most(holds: Callable[[int], bool], unit: int) -> int:
    """The largest multiple of a unit up to which something holds; 0: none."""
    beyond = _least(lambda size: not holds(size), unit)
    return 0 if beyond is None else beyond - unit
