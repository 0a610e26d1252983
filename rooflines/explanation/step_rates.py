"""The times of a step resource by resource, and the rates that make it compute-bound, exact."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.critical.rates import RateSolution, factor_of
from rooflines.model.costs import evaluate
from rooflines.model.resources import NETWORK, RESOURCES, Resource
from rooflines.serving.times import step_exchange

if TYPE_CHECKING:
    from rooflines.models.groups import Step
    from rooflines.serving.case import Case


class Products(NamedTuple):
    """The products of a step in one compute dtype.

    Attributes:
        compute: The compute dtype.
        flops: Floating-point operations on one chip [FLOP].
        time_s: Their time [s].
    """

    compute: str
    flops: Fraction
    time_s: Fraction


class StepRates:
    """The exact times of a step on one chip, resource by resource.

    Args:
        case: The model on its chips.
        step: The sizes.
    """

    def __init__(self, case: Case, step: Step) -> None:
        seconds = case.seconds(step)
        self.times = {resource: getattr(seconds, resource.name) for resource in RESOURCES}
        self.products = _products(case, step)
        network, tokens = step_exchange(case.kernels, case.times), {"B": step.B, "T": step.T}
        self._network = evaluate(network.sending, tokens), network.latency_s

    def parts(self, resource: Resource) -> list[tuple[Fraction, Fraction]]:
        """What a resource's time is the sum of: max(work / rate, latency), as pairs of both [s]."""
        if resource is NETWORK:
            return [self._network]
        return [(self.times[resource], Fraction(0))]

    def factor(self, resource: Resource) -> RateSolution:
        """The factor on a resource's rate at which the step is compute-bound, all else equal."""
        return factor_of(resource, self.times, self.parts(resource))


def _products(case: Case, step: Step) -> list[Products]:
    """The products by compute dtype: of linear kernels, then of attention where it is another."""
    found: dict[str, Products] = {}
    for kernel, times in zip(case.kernels, case.times, strict=True):
        extents, count = kernel.extents(step), kernel.group.count
        flops = count * evaluate(kernel.works.get("flops", {}), extents)
        if flops:
            time_s = count * evaluate(times.math, extents)
            there = found.get(kernel.compute, Products(kernel.compute, Fraction(0), Fraction(0)))
            found[kernel.compute] = there._replace(
                flops=there.flops + flops, time_s=there.time_s + time_s
            )
    return list(found.values())
