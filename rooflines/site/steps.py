"""Whole models as data of a page: works of kernels, rates of chips, footprints and estimates.

No formula is written here, nor in the page: works are those of `serving.kernels`, rates those of
`model.resources`, estimates those of `serving.estimates`, all as sums of products of extents.
Extents and caches are polynomials in S, on the pieces between windows, through values of
`models.cache`. Experts touched are an exponential in the tokens, through values of `models.groups`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rooflines.critical.split_lines import interpolated
from rooflines.model.network import axes_text
from rooflines.model.resources import RESOURCES
from rooflines.models.cache import entries_moved, pairs
from rooflines.models.footprint import cache_on_chip, weights_on_chip
from rooflines.models.groups import ONCE, touched_experts
from rooflines.models.shape import PREFILL
from rooflines.serving.kernels import named
from rooflines.serving.times import exchange, rates_of
from rooflines.site.rationals import coefficients, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.fits.estimate import Estimate, Sum
    from rooflines.models.groups import Terms
    from rooflines.models.shape import Shape
    from rooflines.serving.case import Case
    from rooflines.serving.kernels import Collective, Kernel
    from rooflines.serving.sweep import ModelSweep

SAMPLES = 3
"""Values that determine a polynomial of degree 2 [1]."""

Machines = dict[tuple[str, str, str | None], dict[str, Any]]
"""Machines by chip, memory level and network."""

Pieces = list[tuple[int, list[int | str]]]
"""The first number of every piece, and the coefficients of its polynomial."""


class Pool:
    """Distinct values with an index each: many cases have the same kernels."""

    def __init__(self) -> None:
        self._indices: dict[str, int] = {}

    def index(self, value: JSON) -> int:
        """The index of a value."""
        return self._indices.setdefault(json.dumps(value), len(self._indices))

    @property
    def values(self) -> list[JSON]:
        """The values, in the order of their indices."""
        return [json.loads(text) for text in self._indices]


def step_data(sweep: ModelSweep) -> JSON:
    """The steps of a sweep of whole models.

    Returns:
        `phases` and `splits`, the `machines` that steps run on, the rows that are `skipped`, and of
        each of its `models` the `trained` context, whether it has `experts`, and its steps.
    """
    machines: Machines = {}
    models = []
    for name, cases in _by_model(sweep).items():
        shape = sweep.models[name].shape
        about = {"name": name, "trained": shape.context, "experts": shape.moe is not None}
        models.append({**about, **_model(sweep, cases, machines)})
    return {
        "models": models,
        "phases": list(sweep.config.phase),
        "splits": [{"name": s.name, "chips": s.chips, "dp": s.dp} for s in sweep.config.splits],
        "machines": list(machines.values()),
        "bounds": [resource.bound for resource in RESOURCES],
        "skipped": [
            {name: value for name, value in vars(skipped).items() if value is not None}
            for skipped in sweep.skipped
        ],
    }


def _by_model(sweep: ModelSweep) -> dict[str, list[Case]]:
    """The cases of every model."""
    found: dict[str, list[Case]] = {}
    for block in sweep.blocks:
        found.setdefault(block.cases[0].name, []).extend(block.cases)
    return found


def _model(sweep: ModelSweep, cases: Sequence[Case], machines: Machines) -> JSON:
    """The kernels and footprints of a model by phase, split and dtypes, and where they run.

    Args:
        sweep: The sweep.
        cases: Those of the model.
        machines: Chips with memory level and network; those of the cases are added.
    """
    kernels, estimates = Pool(), Pool()
    steps: dict[tuple[str, str, str], JSON] = {}
    for case in cases:
        key = case.phase, case.split.name, case.dtypes.label
        if key not in steps:
            own = [kernels.index(_kernel(kernel, case.routing)) for kernel in case.kernels]
            phase, split, dtypes = key
            steps[key] = {
                "phase": phase,
                "split": split,
                "dtypes": dtypes,
                "kernels": own,
                "on": {},
                **_footprint(case),
            }
        place = case.chip, case.memory, case.network
        machine = machines.setdefault(place, _machine(sweep, case))
        _add_rates(machine, case)
        index = list(machines).index(place)
        steps[key]["on"][index] = _estimates(case, estimates)
    shape = cases[0].model.shape
    return {
        "steps": list(steps.values()),
        "kernels": kernels.values,
        "estimates": estimates.values,
        "extents": {
            phase: {new or "all": _extents(shape, new) for new in _new_tokens(sweep, phase)}
            for phase in sweep.config.phase
        },
    }


def _new_tokens(sweep: ModelSweep, phase: str) -> Sequence[int | None]:
    """The numbers of new tokens of a phase; None: all."""
    return [None] if phase == PREFILL else sweep.new_tokens or (1,)


def _kernel(kernel: Kernel, routing: str) -> JSON:
    """The works of one layer of a kernel on one chip, by extents."""
    works = {work: _terms(named(kernel, terms)) for work, terms in kernel.works.items()}
    sends = [[_kind(sent), _terms(named(kernel, sent.payload))] for sent in kernel.collectives]
    return {
        "name": kernel.group.name,
        "count": kernel.group.count,
        "compute": kernel.compute,
        "works": works,
        "sends": sends,
        "touched": _touched(kernel, routing),
    }


def _terms(terms: Terms) -> dict[str, int | str]:
    """Coefficients by product of extents."""
    return {" ".join(dims): plain(coefficient) for dims, coefficient in terms.items()}


def _kind(sent: Collective) -> str:
    """A collective and the chips along each axis; of experts their numbers and routing too."""
    return " ".join([sent.kind, axes_text(sent.route.axes), *map(str, sent.choice or ())])


def _touched(kernel: Kernel, routing: str) -> list[int | str] | None:
    """Experts that n tokens of a step touch, as a + b c^n: a, b and c; None without experts."""
    moe = kernel.group.moe
    if moe is None:
        return None
    values = [touched_experts(moe.E, moe.k, n * kernel.token_share, routing) for n in range(3)]
    first, second = (after - before for before, after in pairwise(values))
    ratio = second / first if first else Fraction(0)
    scale = first / (ratio - 1)
    return [plain(value) for value in (values[0] - scale, scale, ratio)]


def _footprint(case: Case) -> JSON:
    """Bytes of the weights on a chip, and of the cache of a sequence of its replica by S."""
    shape, sharing = case.model.shape, case.sharing

    def cache(context: int) -> Fraction:
        return cache_on_chip(shape, context, sharing.bits, sharing.split, sharing.cache_split)

    return {
        "weights": plain(weights_on_chip(shape, sharing.bits, sharing.split)),
        "cache": _pieces(cache, [1, *_windows(shape)]),
    }


def _windows(shape: Shape) -> list[int]:
    return [window for _, window in shape.windows if window is not None]


def _extents(shape: Shape, new: int | None) -> dict[str, Pieces]:
    """The extents of a sequence by S.

    Args:
        shape: The model.
        new: T, new tokens of each sequence; None: all S [1].
    """
    found: dict[str, Pieces] = {"T": [(1, coefficients([Fraction(new or 0), Fraction(not new)]))]}
    least = new or 1
    for _, window in shape.windows:
        turns = [least] if window is None else [least, window, window + least]
        for name, moved in (("pairs", pairs), ("entries", entries_moved)):
            of = partial(_extent, moved, new, window)
            found[f"{name}:{window or ''}"] = _pieces(of, [turn for turn in turns if turn >= least])
    return found


def _extent(
    of: Callable[[int, int, int | None], int], new: int | None, window: int | None, context: int
) -> Fraction:
    """A number of pairs or entries at a context."""
    return Fraction(of(context, new or context, window))


def _pieces(of: Callable[[int], Fraction], turns: Iterable[int]) -> Pieces:
    """A function of whole numbers that is a polynomial of degree 2 between turns."""
    starts = sorted(set(turns))
    found: Pieces = []
    for start, end in pairwise([*starts, starts[-1] + SAMPLES]):
        points = [(number, of(number)) for number in range(start, min(end, start + SAMPLES))]
        found.append((start, coefficients(interpolated(points))))
    return found


def _machine(sweep: ModelSweep, case: Case) -> dict[str, Any]:
    """A chip with memory level and network; rates are added for each case."""
    capacity = case.machine.level.capacity_bytes
    return {
        "chip": case.chip,
        "name": sweep.chips[case.chip].name or case.chip,
        "memory": case.memory,
        "network": case.network,
        "capacity": None if capacity is None else plain(capacity),
        "rates": {},
        "sends": {},
    }


def _add_rates(machine: dict[str, Any], case: Case) -> None:
    """Add the rates that a case needs: of math by compute dtype, of memory, and of collectives.

    A collective has, on every network, seconds per byte of its payload, and the least time of its
    hops [s].
    """
    for kernel in case.kernels:
        if kernel.compute not in machine["rates"]:
            math, memory = rates_of(kernel, case.machine, case.machine.efficiency)
            machine["rates"] |= {kernel.compute: plain(math), "memory": plain(memory)}
        for sent in kernel.collectives:
            if _kind(sent) not in machine["sends"]:
                of_a_byte = replace(sent, payload={ONCE: Fraction(1)})
                machine["sends"][_kind(sent)] = [
                    [plain(network.sending[ONCE]), plain(network.latency_s)]
                    for network in exchange(of_a_byte, case.machine.efficiency["network"])
                ]


def _estimates(case: Case, pool: Pool) -> list[int] | None:
    """The indices of the estimates of all kernels; None if one has none."""
    found = []
    for kernel, estimate in zip(case.kernels, case.estimates, strict=True):
        if estimate is None:
            return None
        found.append(pool.index(_estimate(kernel, estimate)))
    return found


def _estimate(kernel: Kernel, estimate: Estimate) -> JSON:
    """A calibrated time: what is common, and the pieces of which the largest counts.

    A piece is its bound, and sums of which the least counts, by extents.
    """

    def terms(total: Sum) -> dict[str, int | str]:
        return _terms(named(kernel, dict(total.plain)))

    return {
        "common": terms(estimate.common),
        "pieces": [[each.bound, [terms(one) for one in each.least]] for each in estimate.pieces],
    }
