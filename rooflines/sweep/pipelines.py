"""Pipelines in serving: stages with whole layers, which sequences pass in micro-batches.

min(pp, B / dp) micro-batches, b = max(B / pp, dp) sequences each, are on the way. A token takes all
stages in turn, and a stage serves every micro-batch once a token:

    t = max(sum over stages + hops, micro-batches * the slowest stage's time)

A prompt passes the stages once: by the bound in chunks however small, so that the slowest stage
counts; otherwise as a whole.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from rooflines.models.split import Split
from rooflines.models.stages import StageShape
from rooflines.theory.extents import TOKENS, ActivatedExperts, B, Tiles
from rooflines.theory.network import stage_sends, strided_route
from rooflines.theory.poly import Poly, constant
from rooflines.theory.resources import NETWORK
from rooflines.theory.times import Time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from rooflines.models.model import Model
    from rooflines.models.split import Parallelism
    from rooflines.models.step_kernels import Sharing, StepKernels
    from rooflines.sweep.cases import ChipPlace
    from rooflines.theory.extents import Extent, Product
    from rooflines.theory.times import Times


class ServingCase(Protocol):
    """Case of a model at a place, as a pipeline reads it."""

    @property
    def place(self) -> ChipPlace:
        """Chip with a memory level and a route."""

    @property
    def model(self) -> Model:
        """Model."""

    @property
    def workload(self) -> StepKernels:
        """Step kernels."""

    @property
    def split(self) -> Parallelism:
        """Split over chips."""

    @property
    def sharing(self) -> Sharing:
        """Split with dtypes."""


CaseT = TypeVar("CaseT", bound=ServingCase)


class Pipeline(NamedTuple, Generic[CaseT]):
    """Pipeline stages in a serving case.

    Attributes:
        stages: Cases by stage kind, each with the number of such stages; its kernels are in the
            stage's layers.
        hops_s: Time for all hops from a stage to the next, with a micro-batch [s].
        latency_s: Minimum time for the same hops [s].
    """

    stages: tuple[tuple[CaseT, int], ...]
    hops_s: Poly
    latency_s: Fraction

    @property
    def counts(self) -> tuple[int, ...]:
        """Stages by kind [1]."""
        return tuple(count for _, count in self.stages)


def is_pipelined(case: ServingCase) -> bool:
    """Check for a case with several stages; a stage's case is none."""
    split, shape = case.split, case.workload.shape
    return isinstance(split, Split) and split.pp > 1 and not isinstance(shape, StageShape)


def pipeline_of(case: CaseT, stage_case: Callable[[StepKernels], CaseT]) -> Pipeline[CaseT] | None:
    """Pipeline in a case; None without stages.

    In a hop every chip sends 1 / (tp dp) of a micro-batch's tokens to the next stage, inside a
    domain over the inner network.

    Args:
        case: The case.
        stage_case: Function from a stage's kernels to its case.
    """
    split = case.split
    if not isinstance(split, Split) or not is_pipelined(case):
        return None
    stages = tuple((stage_case(kernels), n) for kernels, n in case.workload.stage_kernels)
    route = strided_route(case.place.links, split.pp, split.stage_chips)
    efficiency = case.place.machine.efficiency[NETWORK.name]
    sends = [*zip(stage_sends(route), route.levels, strict=True)]
    per_byte = sum((n / (level.bytes_per_s * efficiency) for n, level in sends), Fraction(0))
    latency = sum((n * level.link.hop_latency_s for n, level in sends), Fraction(0))
    width = case.model.shape.D * case.sharing.bytes_of("activations")
    payload = Poly({TOKENS: width / (split.shards * split.dp)})
    return Pipeline(stages, payload * per_byte + constant(latency), latency)


def token_time(
    stages: Sequence[Any],
    counts: Sequence[int],
    hops_s: Any,  # noqa: ANN401, numbers or columns
    micro_batches: Any,  # noqa: ANN401, the same
    longest: Callable[..., Any] = max,
) -> Any:  # noqa: ANN401, the same
    """Token time: max(sum over stages + hops, micro-batches * slowest stage) [s].

    Args:
        stages: Micro-batch time by stage kind [s].
        counts: Stages by kind [1].
        hops_s: Time for all hops [s].
        micro_batches: Micro-batches on the way [1].
        longest: Function that takes the largest number, or column.
    """
    latency = sum(time * count for time, count in zip(stages, counts, strict=True)) + hops_s
    slowest = longest(*stages) if len(stages) > 1 else stages[0]
    return longest(latency, micro_batches * slowest)


def in_batches(poly: Poly, stages: int) -> Poly:
    """Polynomial in B, from a polynomial in a micro-batch's sequences b = B / pp.

    Args:
        poly: The polynomial in b.
        stages: pp [1].
    """
    terms: dict[Product, Fraction] = {}
    for product, coefficient in poly.terms.items():
        changed = tuple(_extent_in_batches(extent, stages) for extent in product)
        scaled = coefficient / stages ** product.count(B)
        terms[changed] = terms.get(changed, Fraction(0)) + scaled
    return Poly(terms)


def _extent_in_batches(extent: Extent, stages: int) -> Extent:
    """Extent in B that counts as much as one in b; B itself counts pp times as much."""
    if isinstance(extent, Tiles) and B in extent.factors:
        return Tiles(extent.factors, extent.span * stages)
    if isinstance(extent, ActivatedExperts) and B in extent.tokens:
        return extent.chosen_by(extent.share / stages, extent.tokens)
    return extent


def times_in_batches(times: Times, stages: int) -> Times:
    """Times in B for those in a micro-batch's sequences, see `in_batches`."""

    def changed(time: Time) -> Time:
        return Time(
            tuple(
                tuple(tuple(in_batches(poly, stages) for poly in least) for least in term)
                for term in time.terms
            )
        )

    by_bound = {bound: changed(time) for bound, time in times.by_bound.items()}
    common, activation = in_batches(times.common, stages), in_batches(times.activation, stages)
    return replace(times, by_bound=by_bound, common=common, activation=activation)
