"""Routes between chips in an answer: torus axes, and an idle inner network."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rooflines.answers.answer_values import ONE_AXIS
from rooflines.sweep.operation_sweep import OperationCase
from rooflines.sweep.training_sweep import TrainingCase
from rooflines.theory.network import TORUS, axes_text, group_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.sweep.operation_sweep import Sweep
    from rooflines.sweep.step_sweep import ModelSweep, StepCase
    from rooflines.theory.tori import AxisMapping


def routes_of(sweep: Sweep | ModelSweep) -> list[str]:
    """Routes in cases that communicate, one phrase each, with the chip where there are several."""
    several = len(sweep.config.chips) > 1
    routes = (
        f"{case.chip}: {phrase}" if several else phrase
        for case in sweep.cases
        for phrase in _phrases(sweep, case)
    )
    return list(dict.fromkeys(routes))


def _phrases(sweep: Sweep | ModelSweep, case: OperationCase | StepCase) -> Iterator[str]:
    """Phrases about a case's routes."""
    place = case.place
    routes = {sent.route for kernel in case.kernels for sent in kernel.transfers}
    if not routes:
        return
    first, link = next(iter(place.entry.networks.items()))
    if place.networks[0] != first:
        joined = link.exact.domain if link.exact.domain_known else None
        chips = f" ({joined:,} chips)" if joined else ""
        yield f"{place.network} alone, as requested: {first}{chips} is idle"
    if isinstance(case, TrainingCase) and (mapping := case.mapping) is not None:
        yield _mapped(case, mapping)
        return
    inner = place.links[0]
    if len(place.links) > 1 and inner.domain is not None:
        count, most = _chips(case), link.exact.domain or 0
        group = group_size(count, inner.domain)
        if count > group and group != most:
            rack = f" of {most:,}" if link.exact.domain_known else ""
            yield f"{count // group:,} groups of {group:,}{rack} chips on one {place.networks[0]}"
    if sweep.fastest_axes and inner.topology == TORUS:
        for axes in sorted({route.axes for route in routes}):
            if len(axes) > 1:
                best = "" if axes in _typed(case) else ", the fastest"
                yield f"{place.network} over axes {axes_text(axes)}{best}"
            else:
                yield f"{place.network} {ONE_AXIS}, of {axes[0]} chips"


def _chips(case: OperationCase | StepCase) -> int:
    """All chips that a case runs on [1]."""
    return math.prod(case.axes) if isinstance(case, OperationCase) else case.split.chips


def _typed(case: OperationCase | StepCase) -> tuple[tuple[int, ...], ...]:
    """Torus axes that a question names."""
    return (case.axes,) if isinstance(case, OperationCase) else case.split.groups


def _mapped(case: TrainingCase, mapping: AxisMapping) -> str:
    """Mapping of a plan onto the axes of a torus, and whether it was typed."""
    plan, slice_of_pod = case.plan, mapping.slice
    inner = plan.tp * plan.cp
    groups = [
        ("tp", plan.tp, 1),
        ("cp", plan.cp, plan.tp),
        ("dp", plan.pod_stage_chips // inner, inner),
        ("pp", plan.pp, plan.pod_stage_chips),
        ("ep", plan.ep, 1),
    ]
    parts = ", ".join(
        f"{key} {mapping.text(chips, stride)}" for key, chips, stride in groups if chips > 1
    )
    count = len(case.mappings)
    best = f", the fastest of {count:,} mappings" if count > 1 else ""
    pods = ""
    if plan.pods > 1:
        joined = case.place.networks[1:] or ["a network whose bandwidth is not published: left out"]
        pods = f"; {plan.pods} such pods over {joined[0]}"
    return f"{case.place.networks[0]} on {slice_of_pod.text}: {parts}{best}{pods}"
