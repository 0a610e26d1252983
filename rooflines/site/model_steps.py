"""Model steps as page data: kernel works, collectives, footprints and estimates.

Neither this module nor the page has a formula: works come from `models.step_kernels`, rates from
`theory.resources`, estimates from `sweep.calibrated_times`, all as sums over products.
Extents and caches are polynomials in S on the pieces between windows, interpolated from
`theory.attention_window`; with chunked attention one chunk's pieces repeat. Activated experts
are an exponential in the tokens, interpolated from `models.groups`. In training, works are for one
micro-batch, and a kernel's run count is a sum over products too.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rooflines.models.architecture import PREFILL, TRAIN
from rooflines.models.memory import cache_on_chip, weights_on_chip
from rooflines.models.step_kernels import is_expert_parallel
from rooflines.site.coefficients import MAX_DIGITS, Pool, coefficients, double
from rooflines.solvers.chip_limit import interpolate
from rooflines.sweep.calibrated_times import calibrated_times
from rooflines.sweep.pipelines import is_pipelined
from rooflines.sweep.training_sweep import TrainingCase
from rooflines.theory.extents import TOKENS, ActivatedExperts, Entries, Pairs, Tiles
from rooflines.theory.network import axes_text
from rooflines.theory.resources import MEMORY, level_times
from rooflines.theory.routing import activated_experts
from rooflines.training.training_kernels import MICRO_BATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.models.architecture import Shape
    from rooflines.models.split import Parallelism
    from rooflines.sweep.step_sweep import ModelSweep, StepCase
    from rooflines.theory.extents import Attended, Extent
    from rooflines.theory.kernel import Kernel, Transfer
    from rooflines.theory.poly import Poly
    from rooflines.theory.times import Times
    from rooflines.training.pipeline_stages import Stage
    from rooflines.training.training_kernels import KernelRun

SAMPLES = 3
"""Values that determine a polynomial of degree 2 [1]."""

DIGITS = 7
"""Significant digits of a coefficient of an estimate [1]."""

ACTIVATED_EXPERTS = "activated_experts"
"""Extent: experts that a step activates."""

MICRO_BATCH_EXPERTS = "micro_batch_experts"
"""Extent: experts that a micro-batch activates."""

SKIPPED = ("chip", "model", "split", "dtypes", "reason")
"""Fields of a skipped row on the page."""

SHARED_AXES = "several parallelisms share torus axes: rooflines train maps them"
"""Reason of skipped training plans on a torus."""

Machines = dict[tuple[str, str, str | None], dict[str, Any]]
"""Machines by chip, memory level and network."""

Pieces = list[dict[str, Any]]
"""Pieces of a function: their `start`, and polynomial `coefficients`."""


class EarlierSteps:
    """Steps from an earlier run: kernels, and rates and estimates for unchanged chips.

    Args:
        steps: From `step_data`, as JSON; sweeps may differ in chip numbers alone.
        chips: The chips whose numbers are the same, each with one memory level and network.
    """

    def __init__(self, steps: JSON, chips: Collection[str]) -> None:
        names = [machine["chip"] for machine in steps["machines"]]
        self.machines = dict(zip(names, steps["machines"], strict=True))
        self.chips = {chip for chip in chips if names.count(chip) == 1}
        self._places = {chip: str(index) for index, chip in enumerate(names)}
        self._models = {model["name"]: model for model in steps["models"]}
        self._steps = {
            (model["name"], step["phase"], step["split"], step["dtypes"]): step
            for model in steps["models"]
            for step in model["steps"]
        }

    def step(self, case: StepCase) -> JSON | None:
        """Step in a case, with its kernels, for any chip; None if there was none."""
        step = self._steps.get((case.name, case.phase, case.split.name, case.dtypes.label))
        if step is None:
            return None
        kernels = self._models[case.name]["kernels"]
        return {**step, "kernels": [kernels[index] for index in step["kernels"]]}

    def estimates(self, case: StepCase) -> list[int] | None:
        """Places where a case's estimates are, for `chips`; None if a kernel has none."""
        key = case.name, case.phase, case.split.name, case.dtypes.label
        places: list[int] | None = self._steps[key]["estimates"][self._places[case.chip]]
        return places

    def estimate(self, model: str, place: int) -> JSON:
        """Kernel estimate by model and place."""
        estimate: JSON = self._models[model]["estimates"][place]
        return estimate


NOTHING = EarlierSteps({"machines": [], "models": []}, ())


def step_data(sweeps: Sequence[ModelSweep], earlier: EarlierSteps = NOTHING) -> JSON:
    """Steps in sweeps over models; sweeps with one phase have the same new tokens.

    Those with pipeline stages are left out: a page adds up kernels. So are training plans that map
    several parallelisms onto a torus, whose collectives share its axes: they are `skipped`.

    Args:
        sweeps: The sweeps.
        earlier: Results that are reused.

    Returns:
        `phases`; `machines` that steps run on; `skipped` rows; and `models` with trained `context`,
        the flag `has_experts`, and steps.
    """
    machines: Machines = {}
    by_model: dict[str, list[StepCase]] = {}
    mapped: list[StepCase] = []
    for block in (block for sweep in sweeps for block in sweep.blocks):
        if not is_pipelined(block.cases[0]):
            cases = [case for case in block.cases if not _shares_axes(case)]
            by_model.setdefault(block.cases[0].name, []).extend(cases)
            mapped += [case for case in block.cases if _shares_axes(case)]
    skipped = dict.fromkeys(
        (*(getattr(row, name) for name in SKIPPED[:-1]), str(row.reason))
        for sweep in sweeps
        for row in sweep.skipped
    )
    return {
        "models": [
            {"name": name, **_model(sweeps, cases, machines, earlier)}
            for name, cases in by_model.items()
        ],
        "phases": [*dict.fromkeys(phase for sweep in sweeps for phase in sweep.config.phase)],
        "machines": list(machines.values()),
        "skipped": [dict(zip(SKIPPED, row, strict=True)) for row in skipped]
        + [
            {"chip": chip, "model": "", "split": split, "dtypes": "", "reason": SHARED_AXES}
            for chip, split in dict.fromkeys((case.chip, case.split.name) for case in mapped)
        ],
    }


def _shares_axes(case: StepCase) -> bool:
    """Check for a training plan with several parallelisms on a torus."""
    if not isinstance(case, TrainingCase) or case.mapping is None:
        return False
    plan = case.plan
    return plan.ep > 1 or sum(chips > 1 for chips in (plan.tp, plan.cp, plan.dp, plan.pp)) > 1


def split_data(split: Parallelism) -> JSON:
    """Split: name, command-line option, and chip counts."""
    given = split.model_dump(exclude_defaults=True) or {"tp": split.tp}
    option = ",".join(f"{key}={value}" for key, value in given.items())
    numbers = {"chips": split.chips, "dp": split.dp, "cp": given.get("cp", 1)}
    return {"name": split.name, "option": option, **numbers}


def _model(
    sweeps: Sequence[ModelSweep],
    cases: Sequence[StepCase],
    machines: Machines,
    earlier: EarlierSteps,
) -> JSON:
    """Model record: kernels and footprints by phase, split and dtypes, with their machines.

    Args:
        sweeps: The sweeps.
        cases: The model's cases.
        machines: Chips with memory level and network; the cases' are added.
        earlier: As in `step_data`.
    """
    kernels, estimates = Pool(), Estimates(earlier)
    steps: dict[tuple[str, str, str], JSON] = {}
    collectives: dict[tuple[str, str, str], list[list[str]]] = {}
    for case in cases:
        key = case.phase, case.split.name, case.dtypes.label
        if key not in steps:
            step = earlier.step(case) or _step(case)
            indices = [kernels.index(kernel) for kernel in step["kernels"]]
            steps[key] = {**step, "kernels": indices, "estimates": {}, "kernels_at": {}}
            collectives[key] = [
                [sent["collective"] for sent in kernel["transfers"]] for kernel in step["kernels"]
            ]
        place = case.chip, case.memory, case.network
        if case.chip in earlier.chips:
            machines.setdefault(place, earlier.machines[case.chip])
        else:
            new: dict[str, Any] = {"chip": case.chip, "collectives": {}, "bands": {}}
            _add_collectives(machines.setdefault(place, new), case)
        index = list(machines).index(place)
        if _collectives(case) != collectives[key]:  # links decide how experts exchange tokens
            listed = map(kernels.index, _step(case)["kernels"])
            steps[key]["kernels_at"][index] = [*listed]
        indices = steps[key]["kernels_at"].get(index, steps[key]["kernels"])
        steps[key]["estimates"][index] = estimates.indices(case, indices)
    shape = cases[0].model.shape
    return {
        "context": shape.context,
        "has_experts": shape.moe is not None,
        "steps": list(steps.values()),
        "kernels": kernels.values,
        "estimates": estimates.pool.values,
        "extents": {
            phase: {new or "all": _extents(shape, new) for new in _new_tokens(sweep, phase)}
            for sweep in sweeps
            for phase in sweep.config.phase
        },
    }


def _collectives(case: StepCase) -> list[list[str]]:
    """Collective keys in a case, by kernel."""
    placed = case.place.sweep.fastest_axes
    return [[_kind(sent, placed=placed) for sent in kernel.transfers] for kernel in case.kernels]


def _step(case: StepCase) -> JSON:
    """Kernels and footprint in a case, shared by all chips but those in `kernels_at`."""
    return {
        "phase": case.phase,
        "split": case.split.name,
        "dtypes": case.dtypes.label,
        "kernels": [
            {
                **_kernel(kernel, placed=case.place.sweep.fastest_axes),
                **_runs(case, index),
                **_prompt(case, kernel),
            }
            for index, kernel in enumerate(case.kernels)
        ],
        "estimates": {},
        **_footprint(case),
    }


def _runs(case: StepCase, index: int) -> JSON:
    """Kernel runs per micro-batch in training, as terms; empty for serving steps.

    Works are per micro-batch, whose sequences the page chooses: in the plan a micro-batch has one.
    """
    if not isinstance(case, TrainingCase) or case.runs[index].only_stage is not None:
        return {}
    return {"runs": _terms(case.runs_of(index))}


def _prompt(case: StepCase, kernel: Kernel) -> JSON:
    """Prefill kernel's fields besides works: `cache`, KV cache bytes moved, and `shared`.

    Shared kernels have the tokens from all replicas: experts under expert parallelism.
    """
    if case.phase != PREFILL:
        return {}
    moved = kernel.work("kv_cache_bytes")
    shares = any(
        group.name == kernel.name and is_expert_parallel(group, case.sharing)
        for group, _ in case.workload.local_kernels
    )
    return {
        **({"cache": _terms(moved)} if moved else {}),
        **({"shared": True} if shares else {}),
    }


def _new_tokens(sweep: ModelSweep, phase: str) -> Sequence[int | None]:
    """New tokens in a phase; None: all."""
    return [None] if phase in {PREFILL, TRAIN} else sweep.new_tokens or (1,)


def _kernel(kernel: Kernel, *, placed: bool) -> JSON:
    """Kernel works on one chip, for one layer, by extents; `placed` as in `_kind`."""
    works = {
        "math": kernel.work("flops"),
        "memory": MEMORY.kernel_work(kernel),
        "activation": kernel.work("activation_bytes"),
    }
    transfers = [
        {"collective": _kind(sent, placed=placed), "payload": _terms(sent.payload)}
        for sent in kernel.transfers
    ]
    return {
        "name": kernel.name,
        "count": kernel.count,
        "compute": kernel.compute,
        "works": {name: _terms(poly) for name, poly in works.items() if poly},
        "transfers": transfers,
        "activated_experts": _activated_experts(kernel),
    }


def _terms(poly: Poly, digits: int = MAX_DIGITS) -> dict[str, float]:
    """Coefficients by product; spans (tiles) count as rows.

    Args:
        poly: The polynomial in extents.
        digits: Significant digits [1].
    """
    terms = {}
    for product, coefficient in poly.terms.items():
        names = map(_extent_name, product)
        spans = math.prod(extent.span for extent in product if isinstance(extent, Tiles))
        terms[" ".join(names)] = double(coefficient / spans, digits)
    return terms


def _extent_name(extent: Extent) -> str:
    """Extent name on the page."""
    if isinstance(extent, Tiles):
        return f"{'tokens' if extent.factors == TOKENS else 'sequences'}:{extent.span}"
    if isinstance(extent, ActivatedExperts):
        return MICRO_BATCH_EXPERTS if MICRO_BATCH in extent.sizes else ACTIVATED_EXPERTS
    return extent


def _kind(sent: Transfer, *, placed: bool) -> str:
    """Collective key: kind and chips per axis; for experts also counts and routing.

    Transfers between stages are no whole collective: their key has the share that is sent.

    Args:
        sent: The transfer.
        placed: Whether chips take a torus's fastest axes: they are then counted together,
            since on other chips they have none.
    """
    axes = (math.prod(sent.route.axes),) if placed else sent.route.axes
    whole = sent.bytes_per_payload_byte == sent.route.bytes_per_payload_byte(sent.kind)
    routing: tuple[int | str, ...] | None = sent.routing
    if sent.routing is not None and not sent.routing.zero_experts:
        routing = sent.routing[:-1]
    details = routing or (() if whole else sent.bytes_per_payload_byte)
    return " ".join([sent.kind, axes_text(axes), *map(str, details)])


def _activated_experts(kernel: Kernel) -> dict[str, float] | None:
    """Experts activated by n tokens, base + scale * ratio^n; None if constant."""
    extents = (extent for product in kernel.work("weight_bytes").terms for extent in product)
    activated = next((extent for extent in extents if isinstance(extent, ActivatedExperts)), None)
    if activated is None:
        return None
    values = [
        activated_experts(activated.experts, activated.per_token, n * activated.share)
        for n in range(3)
    ]
    first, second = (after - before for before, after in pairwise(values))
    ratio = second / first if first else Fraction(0)
    scale = first / (ratio - 1)
    base = values[0] - scale
    return {"base": double(base), "scale": double(scale), "ratio": double(ratio)}


def _footprint(case: StepCase) -> JSON:
    """Bytes on a chip: weights, and the KV cache per sequence of its replica, over S.

    In training: memory by stage kind, each stage's kernel shares, and the pipeline bubble in runs
    through a stage's layers.
    """
    if isinstance(case, TrainingCase):
        plan = case.plan
        return {
            "pp": plan.pp,
            "bubble_runs": (plan.pp - 1) / plan.interleave,
            "stages": [
                {
                    "fixed_bytes": double(memory.states),
                    "cache_bytes": [
                        {"pieces": [_piece(1, [Fraction(0), memory.saved(number)])]}
                        for number in range(1, -(-memory.max_in_flight // memory.chunks) + 1)
                    ],
                    "shares": [_share(run, stage, plan.pp) for run in case.runs],
                }
                for memory, (stage, _) in zip(case.stage_memory, case.workload.stages, strict=True)
            ],
        }
    shape, sharing = case.model.shape, case.sharing

    def cache(context: int) -> Fraction:
        return cache_on_chip(shape, context, sharing.bits, sharing.split, sharing.cache_split)

    weight_bytes = double(weights_on_chip(shape, sharing.bits, sharing.split))
    pieces = _pieces(cache, [1, *(reach.tokens or 1 for reach in shape.attention_windows)])
    stage = {"fixed_bytes": weight_bytes, "cache_bytes": [{"pieces": pieces}]}
    return {"pp": 1, "bubble_runs": 0, "stages": [stage]}


def _share(run: KernelRun, stage: Stage, stages: int) -> float:
    """Kernel runs on a stage / mean runs over all stages [1]."""
    return double(run.repeats_on(stage) * stages / run.kernel.count)


def _extents(shape: Shape, new: int | None) -> dict[str, JSON]:
    """Sequence extents as polynomials in S.

    Args:
        shape: The model.
        new: T, new tokens per sequence; None: all S [1].
    """
    tokens = _piece(1, [Fraction(new or 0), Fraction(not new)])
    extents: dict[str, JSON] = {"T": {"pieces": [tokens]}}
    least = new or 1
    for reach in shape.attention_windows:
        size = reach.tokens or least
        turns = [least, size, size + least]
        if reach.chunked:
            turns = [least, least + size - least % size]
        for extent in (Pairs(reach), Entries(reach)):

            def pairs(context: int, extent: Attended = extent) -> Fraction:
                """Pairs or entries at a context."""
                return Fraction(extent.amount(context, new or context))

            end = least + size if reach.chunked else None
            pieces = {"pieces": _pieces(pairs, [turn for turn in turns if turn >= least], end)}
            period = (
                {} if end is None else {"period": size, "gain": double(pairs(end) - pairs(least))}
            )
            extents[extent] = {**pieces, **period}
    return extents


def _piece(start: int, polynomial: Sequence[Fraction]) -> dict[str, Any]:
    """Polynomial piece from a number on."""
    return {"start": start, "coefficients": coefficients(polynomial)}


def _pieces(
    function: Callable[[int], Fraction], turns: Iterable[int], end: int | None = None
) -> Pieces:
    """Pieces for a function on whole numbers that is quadratic between turns.

    Args:
        function: The function.
        turns: Where pieces start [1].
        end: Where the last piece ends; None: open [1].
    """
    starts = sorted(turn for turn in set(turns) if end is None or turn < end)
    pieces: Pieces = []
    for start, stop in pairwise([*starts, end or starts[-1] + SAMPLES]):
        points = [(number, function(number)) for number in range(start, min(stop, start + SAMPLES))]
        pieces.append(_piece(start, interpolate(points)))
    return pieces


def _band_key(case: StepCase) -> str:
    """Key of a case's band in its machine, as the page builds it."""
    return f"{case.phase} {case.dtypes.label}{' experts' if case.has_experts else ''}"


def _add_collectives(machine: dict[str, Any], case: StepCase) -> None:
    """Add a case's collective times and its band to a machine.

    A collective has, on every network, seconds per payload byte, and minimum hop time [s]. A band
    is p10 and p90: measured / estimated step time, by phase, dtypes and, for models that have
    them, experts; `prompts` is the engine's factor on prompts between the steps. A training step
    takes `slowdown` times its time without overlap, a factor fitted to one software's steps; one
    that changes with the model's width is by model.
    """
    if isinstance(case, TrainingCase):
        if fit := case.fit:
            (software,) = case.fitted_softwares
            machine["bands"][_band_key(case)] = case.band
            of_model = f" {case.name}" if fit.width_power else ""
            machine.setdefault("training", {})[f"{_band_key(case)}{of_model}"] = {
                "slowdown": case.slowdown,
                "of_math": fit.base == "math",
                "fitted_steps": fit.fitted.n,
                "software": software,
            }
    elif case.engine:
        machine["bands"][_band_key(case)] = case.band
        prompts = double(Fraction(case.engine.prompts), DIGITS)
        machine.setdefault("prompts", {})[_band_key(case)] = prompts
    for sent in (sent for kernel in case.kernels for sent in kernel.transfers):
        kind = _kind(sent, placed=case.place.sweep.fastest_axes)
        if kind not in machine["collectives"]:
            if len(sent.route.axes) > 1:
                taken = axes_text(sent.route.axes)
                machine.setdefault("axes", {})[str(math.prod(sent.route.axes))] = taken
            levels = level_times(sent, case.machine.efficiency["network"])
            machine["collectives"][kind] = [
                {"seconds_per_byte": double(seconds_per_byte), "latency_s": double(latency_s)}
                for seconds_per_byte, latency_s in levels
            ]


class Estimates:
    """Distinct kernel estimates on machines; formats and splits share many.

    Args:
        earlier: As in `step_data`.
    """

    def __init__(self, earlier: EarlierSteps) -> None:
        self.pool, self._earlier = Pool(), earlier
        self._indices: dict[tuple[Any, ...], int | None] = {}
        self._earlier_indices: dict[int, int] = {}

    def indices(self, case: StepCase, kernels: Sequence[int]) -> list[int] | None:
        """Estimate indices for a case's kernels; None if a kernel has none.

        Args:
            case: The case.
            kernels: Kernel indices.
        """
        if isinstance(case, TrainingCase):
            return None
        if case.chip in self._earlier.chips:
            earlier = self._earlier.estimates(case)
            return None if earlier is None else [self._index(case.name, place) for place in earlier]
        places = []
        for index, kernel in zip(kernels, case.kernels, strict=True):
            # what the page has not
            variant = case.split.name if kernel.engine else kernel.attention_phase
            software = tuple(case.choice.softwares or ())
            key = case.chip, case.memory, case.network, index, variant, software
            if key not in self._indices:
                estimate = calibrated_times(kernel, case.machine, case.choice)
                self._indices[key] = (
                    None if estimate is None else self.pool.index(_estimate(estimate))
                )
            place = self._indices[key]
            if place is None:
                return None
            places.append(place)
        return places

    def _index(self, model: str, place: int) -> int:
        """Index for an estimate from the earlier run."""
        if place not in self._earlier_indices:
            self._earlier_indices[place] = self.pool.index(self._earlier.estimate(model, place))
        return self._earlier_indices[place]


def _estimate(estimate: Times) -> JSON:
    """Calibrated time as terms: common + max over pieces of min over sums.

    A piece has its bound, and its sums by extents.
    """
    return {
        "common": _terms(estimate.common, DIGITS),
        "pieces": [
            {"bound": bound, "sums": [_terms(poly, DIGITS) for poly in alternatives]}
            for bound, time in estimate.by_bound.items()
            for alternatives in time.pieces
        ],
    }
