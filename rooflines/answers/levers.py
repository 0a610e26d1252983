"""Levers: what would change a serving step's time, each alone, and by how much.

Times are exact, for other cases at the same sizes, on the answer's basis. A lever that the chips
cannot do, or that does not fit, is none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rooflines.answers.basis import ESTIMATE_BASIS, Basis, time_on
from rooflines.answers.claims import MIN_FACTOR
from rooflines.answers.question import dtypes_on_chips, formats_on, with_roles
from rooflines.evaluation.engine_columns import pool_or_none
from rooflines.evaluation.footprints import largest_fitting_batch
from rooflines.evaluation.step_rows import HOUR_S
from rooflines.hardware.support import default_route
from rooflines.models.architecture import DECODE
from rooflines.models.memory import kv_cache_elements
from rooflines.models.split import Parallelism, Split
from rooflines.models.tensor_dtypes import step_dtypes
from rooflines.sweep.exact_times import exact_step_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rooflines.models.groups import Step
    from rooflines.sweep.step_sweep import ModelSweep, StepCase

KINDS = DTYPES, BATCH, SPLIT, CHIP, DRAFT = "dtypes", "batch", "split", "chip", "draft"
"""Kinds of levers, in the order in which they are said."""

KV_FORMAT = "fp8"
"""Narrow format for weights and KV cache together."""

MAX_OF_KIND = 2
"""Maximum number of named levers in a kind, the fastest [1]."""

FACTORS = {DTYPES: 1.05, CHIP: MIN_FACTOR}
"""Factor by which a kind is faster at least [1]; dtypes are compared on one chip and software."""

DRAFTED = 3
"""Drafted tokens that are tried [1]."""


@dataclass(frozen=True)
class Lever:
    """A change, and what a step then takes.

    Attributes:
        kind: `dtypes`, `batch`, `split`, `chip` or `draft`.
        change: Dtypes, batch, split, chip or draft in its place.
        time_s: Step time on the answer's basis [s].
        bound_s: Bound on it [s].
        network: Route between the chips; None: one chip, or a draft, which leaves it.
        tokens_per_s_per_chip: Throughput at that time [1/s]; None: a draft.
        usd_per_mtok: Cost per million tokens at that time [USD]; None: no price, or a draft.
        accepted: Accepted tokens a step from which a draft pays, its drafting time left out:
            t(1 + drafted) / t(1) - 1 [1]; None: no draft.
    """

    kind: str
    change: str
    time_s: float
    bound_s: float
    network: str | None = None
    tokens_per_s_per_chip: float | None = None
    usd_per_mtok: float | None = None
    accepted: float | None = None

    @property
    def is_same_work(self) -> bool:
        """True for a step with the same sequences and tokens."""
        return self.kind not in (BATCH, DRAFT)


def other_dtypes(sweep: ModelSweep, case: StepCase) -> list[StepCase]:
    """Cases in every other format that the chip computes in, with a narrow KV cache too."""
    computed = formats_on(case.place.entry)
    dtypes = [step_dtypes(dtypes_on_chips(name, computed)) for name in computed]
    if KV_FORMAT in computed:
        roles = {"cache": KV_FORMAT}
        dtypes.append(step_dtypes(with_roles(KV_FORMAT, roles, computed, trains=False)))
    return _cases(sweep, dtypes=[form for form in dtypes if form.label != case.dtypes.label])


def dtypes_bounds(cases: Iterable[StepCase], step: Step) -> list[dict[str, Any]]:
    """Bounds by case, the fastest first: `dtypes`, `bound`, `t_lower_s` [s] and `fits`."""
    rows = []
    for case in cases:
        times = case.times.at(case.extents(step))
        bound = max(times.by_bound, key=times.by_bound.__getitem__)
        bound_s = exact_step_seconds(case, step).lower
        row = {"dtypes": case.dtypes.label, "bound": bound, "t_lower_s": bound_s}
        rows.append({**row, "fits": _fits(case, step)})
    return sorted(rows, key=lambda row: row["t_lower_s"])


def step_levers(
    sweep: ModelSweep,
    case: StepCase,
    step: Step,
    basis: Basis,
    dtypes_cases: Iterable[StepCase],
) -> list[Lever]:
    """List a serving step's levers, by kind: dtypes, batch, split, chip, draft.

    Dtypes and chips are faster by more than `FACTORS`, the fastest first; splits are over half and
    over twice as many chips; a batch has twice the sequences.

    Args:
        sweep: Sweep with one case.
        case: That case.
        step: Its step.
        basis: Time that decides.
        dtypes_cases: Cases in other dtypes, as from `other_dtypes`.
    """
    levers = [*_levers_of(SPLIT, _split_cases(sweep, case), step, basis)]
    levers = [*_faster(DTYPES, dtypes_cases, case, step, basis), *levers]
    if case.phase == DECODE:
        levers += _levers_of(BATCH, [case], replace(step, B=2 * step.B), basis)
    if basis is ESTIMATE_BASIS:
        levers += _faster(CHIP, _other_chips(sweep, case), case, step, basis)
    levers += _draft_levers(case, step, basis)
    return sorted(levers, key=lambda lever: KINDS.index(lever.kind))


def _other_chips(sweep: ModelSweep, case: StepCase) -> Iterator[StepCase]:
    """Cases on every other chip with a calibration, each over networks that join as many chips."""
    fitted = {key.chip for key in sweep.calibrations.keys_of("calibrations")}
    count = case.split.chips
    for name in sweep.chips:
        if name in fitted - {case.chip}:
            route = default_route(sweep.chips[name], count)
            yield from _cases(sweep, chips=[name], network=[route] if route else None)


def _split_cases(sweep: ModelSweep, case: StepCase) -> Iterator[StepCase]:
    """Cases with other splits; by default routes where the question's network is its default."""
    chip = case.place.entry
    is_default = [*case.place.networks] == default_route(chip, case.split.chips)
    for split in _other_splits(case.split):
        route = default_route(chip, split.chips)
        changes = {"network": [route] if route else None} if is_default else {}
        yield from _cases(sweep, splits=[split], **changes)


def _other_splits(split: Parallelism) -> Iterator[Split]:
    """Splits over half, and over twice as many chips, by dp or with one replica by tp."""
    axis, size = ("dp", split.dp) if split.dp > 1 else ("tp", split.shards)
    for changed in (size // 2, 2 * size):
        if changed not in (0, size) and changed * 2 in (size, 4 * size):
            keys = {"tp": split.shards, "dp": split.dp, axis: changed}
            ep = keys["tp"] * keys["dp"] if split.parts > 1 else 1
            yield Split.model_validate({**keys, "pp": split.stages, "ep": ep})


def _faster(
    kind: str, cases: Iterable[StepCase], case: StepCase, step: Step, basis: Basis
) -> list[Lever]:
    """Fastest levers that are faster than a case by more than `FACTORS`, bound included."""
    times = exact_step_seconds(case, step)
    now_s = time_on(basis, times)
    levers = [
        lever
        for lever in _levers_of(kind, cases, step, basis)
        if (now_s is None or now_s > FACTORS[kind] * lever.time_s) and times.lower > lever.bound_s
    ]
    return sorted(levers, key=lambda lever: lever.time_s)[:MAX_OF_KIND]


def _cases(sweep: ModelSweep, **keys: list[Any] | None) -> list[StepCase]:
    """Supported cases with changed config keys, over the networks of the question."""
    if [] in keys.values():
        return []
    changes = {**keys, "thresholds": []}
    changed = replace(sweep, config=sweep.config.model_copy(update=changes))
    return [case for block in changed.blocks for case in block.cases]


def _levers_of(kind: str, cases: Iterable[StepCase], step: Step, basis: Basis) -> Iterator[Lever]:
    """Levers by case, for cases that fit and have a time on the basis."""
    for case in cases:
        if _fits(case, step) is False:
            continue
        times = exact_step_seconds(case, step)
        time_s = time_on(basis, times)
        if time_s is None:
            continue
        chips, draft = case.split.chips, case.place.sweep.config.draft
        tokens = float(step.B * (step.T if draft is None else draft.yielded))
        price = case.place.entry.lowest_price()
        cost = None
        if price is not None:
            cost = chips * price.usd_per_hour / HOUR_S * time_s / tokens * 1e6
        changes = {
            DTYPES: case.dtypes.label,
            BATCH: f"B={step.B}",
            SPLIT: case.split.name,
            CHIP: case.chip,
        }
        yield Lever(
            kind=kind,
            change=changes[kind],
            network=case.network if chips > 1 else None,
            time_s=time_s,
            bound_s=times.lower,
            tokens_per_s_per_chip=tokens / time_s / chips,
            usd_per_mtok=cost,
        )


def _fits(case: StepCase, step: Step) -> bool | None:
    """True if weights and KV cache fit, with an engine in its pool; None: unknown capacity."""
    if (pool := pool_or_none(case, step.S)) is not None:
        return pool.requests * case.split.dp >= step.B
    shape = case.workload.resident_shape
    full, local = (kv_cache_elements(shape, step.S, local=is_local) for is_local in (False, True))
    max_batch = largest_fitting_batch(case, full, local)
    return None if max_batch is None else max_batch * case.split.dp >= step.B


def _draft_levers(case: StepCase, step: Step, basis: Basis) -> Iterator[Lever]:
    """Draft as a lever: accepted tokens from which it pays."""
    if step.S <= DRAFTED or _fits(case, step) is False:
        return
    if case.phase != DECODE or case.place.sweep.config.draft is not None or step.T != 1:
        return
    drafted = exact_step_seconds(case, replace(step, T=1 + DRAFTED))
    now_s = time_on(basis, exact_step_seconds(case, step))
    time_s = time_on(basis, drafted)
    if now_s is None or time_s is None:
        return
    accepted = time_s / now_s - 1
    if accepted < DRAFTED:
        yield Lever(DRAFT, f"{DRAFTED} tokens", time_s, drafted.lower, accepted=accepted)
