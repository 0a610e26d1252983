"""The explanation of an operation, from a sweep of one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.catalogue import measured
from rooflines.catalogue.entries import MAIN_MEMORY
from rooflines.critical.rates import latency_of, limit_share, needed_intensity, rates_at
from rooflines.critical.thresholds import sweep_thresholds
from rooflines.explanation.answer import Explanation
from rooflines.explanation.question import OPERATION, dtypes_on
from rooflines.explanation.values import Change, Use, software_of, sourced, timed
from rooflines.model.columns import NEVER
from rooflines.model.operation import MATRIX
from rooflines.model.resources import MATH, RATES, RESOURCES
from rooflines.sweep.checks import checked_sweep
from rooflines.sweep.rows import OperationTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.sweep.operations import OperationCase
    from rooflines.sweep.sweep import Sweep


def explained(sweep: Sweep) -> Explanation:
    """The explanation of the only row of a sweep."""
    (own,) = sweep.cases
    row = OperationTable(sweep).stored_frame().collect().row(0, named=True)
    sizes = {dim: row[dim] for dim in sweep.op.dims}
    chip = sweep.chips[own.chip]
    thresholds = sweep_thresholds(sweep).to_dicts()
    compute = own.combination.compute
    named = sweep.config.calibration or []
    fit = sweep.calibrations.matmul(own.chip, named, compute)
    softwares = [software_of(sweep.calibrations, own.chip, named, compute)] if named else []
    return Explanation(
        row=row,
        sizes=sizes,
        name=chip.name or own.chip,
        clock=chip.clock,
        uses=list(_uses(own, row)),
        thresholds=thresholds,
        limit_shares=_limit_shares(sweep, own, thresholds),
        changes=list(_changes(own, row)),
        dtypes=_other_dtypes(sweep, row),
        capacity_bytes=chip.memory[own.memory].capacity_bytes,
        softwares=softwares,
        contents=[fit.contents] if fit and fit.contents else [],
        measured=_timed(sweep, row),
        **sourced(chip, _used(own, row, compute)),
    )


def _timed(sweep: Sweep, row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Timings of matmuls on one chip, from its main memory; short and long ones apart."""
    alone = row["shards"] == 1 and row["memory"] == MAIN_MEMORY and row["unit"] == MATRIX
    if sweep.op.name != OPERATION or not alone:
        return None
    length = measured.SHORT if row["t_lower_s"] < measured.SHORTEST_LONG else measured.LONG
    return timed(measured.MATMUL, chip=row["chip"], dtypes=row["dtypes"], length=length)


def _uses(own: OperationCase, row: Mapping[str, Any]) -> Iterator[Use]:
    target = own.target
    for resource in RESOURCES:
        rate = resource.rate(target)
        if rate is None or not (row[resource.work] or row[f"t_{resource.name}_s"]):
            continue
        needed = None if resource is MATH else needed_intensity(target, resource)
        yield Use(
            resource=resource.name,
            bound=resource.bound,
            column=resource.work,
            work=row[resource.work],
            per_s=float(rate.per_s),
            latency_s=float(rate.latency_s),
            time_s=row[f"t_{resource.name}_s"],
            intensity=row.get(f"{resource.name}_intensity"),
            needed_intensity=None if needed is None else float(needed),
        )


def _limit_shares(
    sweep: Sweep, own: OperationCase, thresholds: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """What the share of the attainable peak tends to along dimensions that never reach it [1]."""
    by_bound = {resource.bound: resource for resource in RESOURCES}
    shares = {}
    for row in thresholds:
        if row["share"] == 1 and row["axis"] in sweep.op.dims and row["outcome"] == NEVER:
            needed = needed_intensity(own.target, by_bound[row["limit"]])
            if needed is not None and row["limit_intensity"] is not None:
                shares[row["axis"]] = limit_share(needed, row["limit_intensity"])
    return shares


def _changes(own: OperationCase, row: Mapping[str, Any]) -> Iterator[Change]:
    target = own.target
    solutions = rates_at(
        {resource: row[f"t_{resource.name}_s"] for resource in RESOURCES},
        {each: float(latency_of(own.times.by[each.bound])) for each in RESOURCES},
    )
    for name, resource in RATES.items():
        rate = resource.rate(target)
        if rate is None or not row[resource.work]:
            continue
        solution, per_s = solutions[name], float(rate.per_s)
        factor = solution["critical_exact"]
        yield Change(
            rate=name,
            resource=resource.name,
            outcome=solution["outcome"],
            limit=solution["limit"],
            factor=factor,
            per_s=per_s,
            needed_per_s=None if factor is None else per_s * factor,
        )


def _other_dtypes(sweep: Sweep, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The other dtype combinations that the unit computes, quickest first."""
    names = [
        name for name in dtypes_on(sweep.chips[row["chip"]], sweep.unit) if name != row["dtypes"]
    ]
    if not names:
        return []
    config = sweep.config.model_copy(update={"dtypes": names, "thresholds": []})
    other = checked_sweep(sweep.name, config, sweep.chips, sweep.dtypes, sweep.calibrations)
    rows = OperationTable(other).stored_frame()
    return rows.select("dtypes", "bound", "t_lower_s").collect().sort("t_lower_s").to_dicts()


def _used(own: OperationCase, row: Mapping[str, Any], compute: str) -> Iterator[str]:
    """The parts of the chip that the row depends on."""
    yield from (f"units.{row['unit']}.{compute}", f"memory.{row['memory']}")
    yield from ("efficiency", f"calibration.{compute}")
    if row["network_bytes"]:
        yield from (f"networks.{name}" for name in own.place.networks)
