"""The explanation of a step of a model, from a sweep of one row."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError
from rooflines.basics.numbers import LARGEST_SIZE
from rooflines.catalogue import measured
from rooflines.catalogue.entries import MAIN_MEMORY
from rooflines.catalogue.unsupported import joining
from rooflines.critical.rates import latency_of, rates_at
from rooflines.critical.search import first
from rooflines.critical.steps import step_thresholds
from rooflines.explanation.answer import Explanation
from rooflines.explanation.question import as_published, formats_on
from rooflines.explanation.values import (
    Change,
    Experts,
    Use,
    software_of,
    sourced,
    timed,
)
from rooflines.model.columns import ALWAYS, FOUND, NEVER
from rooflines.model.network import BETWEEN
from rooflines.model.operation import MATRIX
from rooflines.model.resources import MATH, RATES, RESOURCES
from rooflines.model.step_columns import HEADS
from rooflines.models.dtypes import step_dtypes
from rooflines.models.groups import touched_experts
from rooflines.models.kernels import StepExtents, token_share
from rooflines.models.shape import DECODE
from rooflines.sweep.rows import KernelTable, StepTable
from rooflines.sweep.step_sweep import checked_model_sweep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.model.resources import Resource
    from rooflines.models.groups import Step
    from rooflines.sweep.step_sweep import ModelSweep
    from rooflines.sweep.steps import StepCase


def explained(sweep: ModelSweep) -> Explanation:
    """The explanation of the only row of a sweep."""
    (block,) = sweep.blocks
    (case,) = block.cases
    row = StepTable(sweep).frame().collect().row(0, named=True)
    sizes = {letter: values[0] for letter, values in sweep.sizes.items()}
    step = case.step(sizes["B"], sizes["S"], sizes.get("T", 1))
    chip = sweep.chips[case.chip]
    thresholds = step_thresholds(sweep).to_dicts()
    latencies = {each: float(latency_of(case.times.by[each.bound])) for each in RESOURCES}
    uses = list(_uses(case, step, row, latencies))
    return Explanation(
        row=row,
        sizes=sizes,
        cache_split=sweep.config.cache_split,
        name=chip.name or case.chip,
        uses=uses,
        products=_products(case, step),
        experts=_experts(case, step),
        groups=_groups(sweep, case, step),
        thresholds=thresholds,
        wider=_wider(sweep, chip, thresholds),
        changes=list(_changes(uses, row, latencies)),
        dtypes=_other_dtypes(sweep, row),
        context=case.model.shape.context,
        published=_published(case, chip),
        capacity_bytes=chip.memory[case.memory].capacity_bytes,
        per_sequence_s=_per_sequence(case, step),
        softwares=_softwares(sweep, case),
        contents=[*case.choice.contents(case.dtypes.computed)],
        measured=_timed(case),
        **sourced(chip, _used(chip, case, row)),
    )


def _timed(case: StepCase) -> dict[str, Any] | None:
    """Steps of served models on the chip, in the format of all weights."""
    uniform = case.dtypes.of("experts") == case.dtypes.weights
    if case.phase != DECODE or case.memory != MAIN_MEMORY or not uniform:
        return None
    return timed(measured.STEP, chip=case.chip, dtypes=case.dtypes.weights)


def _published(case: StepCase, chip: Chip) -> str | None:
    """The formats that a model is published in, where the step is in others."""
    stored = case.model.dtypes
    if stored is None or case.dtypes.label == step_dtypes(as_published(case.model, [chip])).label:
        return None
    own = (f"{key} {each}" for key, each in stored.stored.items() if each != stored.weights)
    return ", ".join([stored.weights, *own])


def _products(case: StepCase, step: Step) -> list[dict[str, Any]]:
    """The products by compute dtype: of linear kernels, then of attention where it is another."""
    found: dict[str, tuple[Fraction, Fraction]] = {}
    extents = StepExtents(step)
    for kernel, times in zip(case.kernels, case.kernel_times, strict=True):
        flops = kernel.count * kernel.work(MATH.work).at(extents)
        if flops:
            before = found.get(kernel.compute, (Fraction(0), Fraction(0)))
            time_s = kernel.count * times.by[MATH.bound].at(extents)
            found[kernel.compute] = (before[0] + flops, before[1] + time_s)
    return [
        {
            "compute": compute,
            "flops": float(flops),
            "per_s": float(flops / time_s),
            "time_s": float(time_s),
        }
        for compute, (flops, time_s) in found.items()
    ]


def _uses(
    case: StepCase, step: Step, row: Mapping[str, Any], latencies: Mapping[Resource, float]
) -> Iterator[Use]:
    extents = StepExtents(step)
    for resource in RESOURCES:
        time_s, pieces = row[f"t_{resource.name}_s"], case.times.by[resource.bound].pieces
        if time_s:
            working = (each for least in pieces for each in least if each.terms.keys() != {()})
            yield Use(
                resource=resource.name,
                bound=resource.bound,
                column=resource.work,
                work=row[resource.work],
                per_s=row[resource.work] / float(max(each.at(extents) for each in working)),
                latency_s=latencies[resource],
                time_s=time_s,
            )


def _changes(
    uses: Sequence[Use], row: Mapping[str, Any], latencies: Mapping[Resource, float]
) -> Iterator[Change]:
    times = {resource: row[f"t_{resource.name}_s"] for resource in RESOURCES}
    solutions, per_s = rates_at(times, latencies), {used.resource: used.per_s for used in uses}
    for name, resource in RATES.items():
        if resource.name not in per_s:
            continue
        factor = solutions[name]["critical_exact"]
        yield Change(
            rate=name,
            resource=resource.name,
            outcome=solutions[name]["outcome"],
            limit=solutions[name]["limit"],
            factor=factor,
            per_s=per_s[resource.name],
            needed_per_s=None if factor is None else per_s[resource.name] * factor,
        )


def _wider(
    sweep: ModelSweep, chip: Chip, thresholds: Sequence[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """The smallest tp that fits over more networks, where the network of the question limits it."""
    (fewest,) = (each for each in thresholds if each["axis"] == "chips")
    if fewest["outcome"] != NEVER or fewest["limit"] == HEADS:
        return None
    for network in joining(chip):
        changed = {"network": [network.split(",")], "thresholds": ["chips"]}
        try:
            other = _changed(sweep, changed)
        except RooflinesError:  # it does not join the chips of the question
            continue
        (row,) = step_thresholds(other).to_dicts()
        if row["outcome"] == FOUND:
            return {"tp": row["critical"], "network": network}
    return None


def _changed(sweep: ModelSweep, keys: Mapping[str, Any]) -> ModelSweep:
    """The sweep with other keys in its config."""
    config = sweep.config.model_copy(update=keys)
    return checked_model_sweep(
        sweep.name, config, sweep.models, sweep.chips, sweep.dtypes, sweep.calibrations
    )


def _softwares(sweep: ModelSweep, case: StepCase) -> list[str]:
    """The software whose calibrations of matmuls and collectives give the estimate.

    Raises:
        RooflinesError: None that is named has a calibration of the chip and a compute dtype.
    """
    named = sweep.config.calibration or []
    computed = case.dtypes.computed if named else ()
    found = (software_of(sweep.calibrations, case.chip, named, each) for each in computed)
    kinds = (sent.kind for kernel in case.kernels for sent in kernel.transfers)
    joined = (case.choice.collective_software(kind) for kind in kinds)
    return list(dict.fromkeys([*found, *(name for name in joined if name)]))


def _per_sequence(case: StepCase, step: Step) -> dict[str, float]:
    """How the times grow with B, without the experts that further tokens touch [s]."""
    extents = StepExtents(step)
    return {
        bound: float(max(least[0].along("B").slope.at(extents) for least in time.pieces))
        for bound, time in case.times.by.items()
    }


def _experts(case: StepCase, step: Step) -> Experts | None:
    moe = case.model.shape.moe
    if moe is None:
        return None
    tokens = step.B * step.T * token_share(case.sharing.split)
    return Experts(case.routing, float(touched_experts(moe.E, moe.k, tokens, step.routing)), moe.E)


def _groups(sweep: ModelSweep, case: StepCase, step: Step) -> list[dict[str, Any]]:
    """The kernels of the row, without its keys and sizes, each with its critical batch."""
    names = [column.name for column in sweep.layer_columns]
    rows = KernelTable(sweep).frame().select(names[names.index("group") :]).collect().to_dicts()
    return [{**row, **_critical(case, index, step)} for index, row in enumerate(rows)]


def _critical(case: StepCase, index: int, step: Step) -> dict[str, Any]:
    """From which batch on a kernel is compute-bound by itself, as `bound` of a layer says it.

    Its intensity grows with the batch, so it is so for every larger one.
    """
    times = case.kernel_times[index]

    def limit(batch: int) -> str | None:
        at = times.at(StepExtents(replace(step, B=min(batch, LARGEST_SIZE)))).handed_over
        math = at.pop(MATH.bound)
        longest = max(at, key=at.__getitem__)
        return longest if at[longest] > math else None

    least = case.split.dp
    if (beyond := limit(LARGEST_SIZE)) is not None:
        return {"outcome": NEVER, "critical_B": None, "limit": beyond}
    critical = first(lambda batch: limit(batch) is None, least, LARGEST_SIZE)
    if critical == least:
        return {"outcome": ALWAYS, "critical_B": least, "limit": None}
    return {"outcome": FOUND, "critical_B": critical, "limit": limit(critical - 1)}


def _other_dtypes(sweep: ModelSweep, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same question in other formats, quickest first."""
    names = [name for name in formats_on(sweep.chips[row["chip"]]) if name != row["dtypes"]]
    if not names:
        return []
    forms = [step_dtypes(name) for name in names]
    rows = StepTable(_changed(sweep, {"dtypes": forms, "thresholds": []})).frame()
    rows = rows.select("dtypes", "bound", "t_lower_s", "fits")
    return rows.collect().sort("t_lower_s", maintain_order=True).to_dicts()


def _used(chip: Chip, case: StepCase, row: Mapping[str, Any]) -> Iterator[str]:
    """The parts of the chip that the row depends on."""
    yield from (f"memory.{case.memory}", "efficiency", "power")
    for compute in dict.fromkeys(case.dtypes.computed):
        yield from (f"units.{MATRIX}.{compute}", f"calibration.{compute}")
    if row["network_bytes"] and case.network is not None:
        yield from (f"networks.{name}" for name in case.network.split(BETWEEN))
    price = None if row["usd_per_mtok"] is None else chip.lowest_price()
    yield from (f"prices.{index}" for index, each in enumerate(chip.prices or ()) if each is price)
