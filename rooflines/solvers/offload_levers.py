"""Offload levers: from which sizes transfers to host memory hide under a training step's math.

Math is that of a chip at its peak, divided evenly; host links carry both directions at once.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, cast

from rooflines.basics.numbers import exact
from rooflines.dictionary.columns import FOUND, FROM
from rooflines.hardware.support import host_link
from rooflines.models.architecture import PREFILL
from rooflines.models.groups import groups_of
from rooflines.solvers.payoffs import End, ends_of
from rooflines.theory.extents import TOKENS, Pairs
from rooflines.theory.resources import math_rate
from rooflines.training.pipeline_stages import END_KERNELS, LayerMix
from rooflines.training.stage_memory import saved_tensors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.models.architecture import Shape
    from rooflines.sweep.training_sweep import TrainingCase, TrainingSweep
    from rooflines.training.adapters import Lora

INPUTS, SAVED, STATES = "inputs", "saved", "states"
"""Tensors off the chip: inputs of layers, all saved tensors, optimizer states."""

OFFLOADED = {"S_offload": (INPUTS, SAVED), "X_offload": (STATES,)}
"""Tensors off the chip, by axis."""

TIMES = ("t_lower_s", "t_estimate_s")
"""Times that thresholds are by: math at peak, and math at peak times a slowdown."""

FLOPS_PER_PARAMETER = 6
"""FLOPs per parameter and token of a training step, without attention [FLOP]."""


def offload_thresholds(
    sweep: TrainingSweep,
) -> Iterator[tuple[TrainingCase, dict[str, Any]]]:
    """Yield the thresholds of offloading that a sweep's config lists.

    The estimate is the bound's math times a typed slowdown, or the factor of the training fit.

    Yields:
        A case, and the values by column.
    """
    axes = [axis for axis in OFFLOADED if axis in sweep.config.thresholds]
    typed = sweep.config.levers.slowdown if sweep.config.levers else None
    cases = cast("tuple[TrainingCase, ...]", sweep.cases)
    for axis, case in product(axes, cases):
        rate = host_rate(case)
        if rate is None:
            continue
        slowdowns: list[float | None] = [None, typed or case.math_slowdown]
        for offload, (index, slowdown) in product(OFFLOADED[axis], enumerate(slowdowns)):
            if index and slowdown is None:
                continue
            factor = Fraction(1) if slowdown is None else exact(slowdown)
            columns = {
                "axis": axis,
                "offload": offload,
                "time": TIMES[index],
                "slowdown": None if slowdown is None else float(slowdown),
            }
            ends = (
                [states_end(case, rate, factor)]
                if offload == STATES
                else saved_ends(case, offload, rate, factor)
            )
            for end in ends:
                row = {"outcome": end.outcome, "side": end.side, "critical": end.critical}
                yield case, {**columns, **row, "critical_exact": end.exact}


def host_rate(case: TrainingCase) -> Fraction | None:
    """Bandwidth to the host in one direction [byte/s]: typed, or the chip's; None: unknown."""
    levers = case.place.sweep.config.levers
    if levers is not None and levers.host_bytes_per_s is not None:
        return exact(levers.host_bytes_per_s)
    link = host_link(case.place.entry)
    return None if link is None else link[1].bytes_per_s


def saved_elements(
    shape: Shape, offload: str, element_bytes: Fraction, lora: Lora | None = None
) -> Fraction:
    """Elements per token that go off the chip, over all layers [1].

    Args:
        shape: The model.
        offload: `inputs`, of every layer, or `saved`, all that nothing is recomputed from.
        element_bytes: Bytes per element [byte].
        lora: Adapters on frozen weights; None: all weights are trained.
    """
    total, mix = Fraction(0), LayerMix.of_model(shape)
    for name, saved in saved_tensors(shape, None, element_bytes, lora=lora).items():
        if name in END_KERNELS:
            continue
        total += mix.with_kernel(name) * saved.elements("full" if offload == INPUTS else "none")
    return total


def saved_ends(
    case: TrainingCase, offload: str, rate: Fraction, slowdown: Fraction = Fraction(1)
) -> list[End]:
    """Contexts from which saved tensors go to the host within the forward math of their layers.

    They hide iff (2 P + 2 N H S) / C >= bytes / rate, a token and layer: P its parameters, S / 2
    its attended tokens in the mean. Back they come under a longer backward.

    Args:
        case: The case.
        offload: `inputs` or `saved`.
        rate: Bandwidth to the host [byte/s].
        slowdown: Real time over the math at peak [1].
    """
    shape, windows = case.model.shape, case.model.shape.attention_windows
    tensors = "saved" if "saved" in case.sharing.bits else "activations"
    element_bytes = case.sharing.bytes_of(tensors)
    elements = saved_elements(shape, offload, element_bytes, case.plan.lora)
    sent_s = elements * element_bytes / rate
    linear, attention = (math_rate(case.machine, dtype) for dtype in case.sharing.compute)
    per_token, per_pair = Fraction(0), dict.fromkeys(windows, Fraction(0))
    for group in groups_of(shape, PREFILL):
        if group.name in END_KERNELS:
            continue
        for extents, flops in group.flops.items():
            if extents == TOKENS:
                per_token += group.count * flops / (linear if group.weights else attention)
                continue
            for window in windows:
                if Pairs(window) in extents:
                    per_pair[window] += group.count * flops / attention

    def gain(size: int) -> Fraction:
        """Math of a sequence minus its transfer [s]."""
        pairs_s = sum(
            seconds * (window.pairs(size, size) - Fraction(size, 2))
            for window, seconds in per_pair.items()
        )
        return slowdown * (per_token * size + pairs_s) - sent_s * size

    chunk = max((window.tokens or 0 for window in windows if window.chunked), default=0)
    if chunk:
        high = shape.context or chunk
        return ends_of(gain, 1, high, range(chunk, high, chunk), ties=True)
    return ends_of(gain, ties=True)


def states_end(case: TrainingCase, rate: Fraction, slowdown: Fraction = Fraction(1)) -> End:
    """Tokens of a chip and step from which an optimizer off the chip hides.

    6 P' X / C >= b P / rate: gradients go down and weights up at once, b is the wider [byte]; P'
    are the parameters that a token uses, fewer than P with experts. With adapters A on frozen
    weights W: (4 W + 6 A') X / C >= b A / rate.

    Args:
        case: The case.
        rate: Bandwidth to the host [byte/s].
        slowdown: Real time over the math at peak [1].
    """
    bytes_moved = max(case.sharing.bytes_of(tensors) for tensors in ("gradients", "weights"))
    peak = math_rate(case.machine, case.sharing.compute[0])
    shape, lora, trained = case.model.shape, case.plan.lora, case.trained_parameters
    if lora is None:
        counts = case.workload.kernels.model.counts
        flops = FLOPS_PER_PARAMETER * Fraction(counts.active_with_embedding, trained)
    else:
        groups = groups_of(shape, PREFILL, scores_all=True)
        works = (group.count * group.flops.get(TOKENS, Fraction(0)) for group in groups)
        used = FLOPS_PER_PARAMETER * lora.active_parameters(shape)
        flops = (used + 2 * sum(works, Fraction(0))) / trained
    tokens = bytes_moved * peak / (flops * slowdown * rate)
    return End(FOUND, FROM, -(-tokens.numerator // tokens.denominator), float(tokens))
