"""An explanation as values: every number is a column of the table, of the thresholds, or a rate.

No formula is here: times come from the table, sizes and rates from `rooflines.critical`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.catalogue.chips import chip_entries
from rooflines.critical.rates import limit_share, needed_intensity, rate_factor
from rooflines.critical.thresholds import sweep_thresholds
from rooflines.explanation import phrases
from rooflines.explanation.question import dtypes_on, sweep_of
from rooflines.explanation.shown import Shown
from rooflines.explanation.software import software_of
from rooflines.explanation.sources import documents_of, used_numbers
from rooflines.explanation.values import Answer, Change, Use
from rooflines.fits.entries import shipped_calibrations
from rooflines.model.columns import NEVER
from rooflines.model.resources import MATH, RATES, RESOURCES, Resource
from rooflines.sweep.checks import checked_sweep
from rooflines.sweep.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.explanation.sheet import Sheet
    from rooflines.fits.entries import Calibrations
    from rooflines.sweep.space import ChipVariant
    from rooflines.sweep.sweep import Sweep


class Explanation(Shown, Answer):
    """One operation on one chip, explained; `str()` is a screen of text, `to_dict()` all of it."""

    @property
    def sheet(self) -> Sheet:
        """What is shown."""
        return phrases.sheet(self)


def explain(  # noqa: PLR0913, the parts of a question
    chip: str,
    sizes: str | Mapping[str, int] | Mapping[str, str] | Sequence[int],
    dtypes: str | Mapping[str, str],
    *,
    operation: str | None = None,
    shards: int | str = 1,
    sharding: str | Mapping[str, str] | None = None,
    network: str | Sequence[str] | None = None,
    memory: str | None = None,
    unit: str | None = None,
    flops: str | None = None,
    calibration: str | Sequence[str] | None = None,
    chips: Mapping[str, Chip] | None = None,
    calibrations: Calibrations | None = None,
) -> Explanation:
    """Explain one operation on one chip: what binds it, and what would make it compute-bound.

    Args:
        chip: Its id, such as `h100-sxm`.
        sizes: `128x8192x8192`, `B=128 D=8192 F=8192`, or the sizes by letter or in order [1].
        dtypes: A name of the dtype catalogue, `x,w->out@compute`, or a mapping.
        operation: A name or an einsum; None: matmul.
        shards: Number of chips that share it [1].
        sharding: How they split it: a name or the long form; None: not at all.
        network: The interconnect; None: the chip's first.
        memory: The memory level that feeds the unit; None: hbm.
        unit: `matrix` or `vector`; None: the operation's.
        flops: `leading` or `exact`; None: the operation's.
        calibration: Software that the estimate is calibrated to, or several in order; None: the
            chip's own calibration.
        chips: Chips by id, such as `load_config(path).chips`; None: those of the catalogue.
        calibrations: Such as `load_config(path).calibrations`; None: those of the package.

    Returns:
        The explanation.

    Raises:
        RooflinesError: Something is invalid, or the chip cannot do it.
    """
    sweep = sweep_of(
        chip,
        sizes,
        dtypes,
        chips=chip_entries() if chips is None else chips,
        calibrations=shipped_calibrations() if calibrations is None else calibrations,
        operation=operation,
        shards=shards,
        sharding=sharding,
        network=network,
        memory=memory,
        unit=unit,
        flops=flops,
        calibration=calibration,
    )
    return _explained(sweep)


def _explained(sweep: Sweep) -> Explanation:
    """The explanation of the only row of a sweep."""
    (chip_rows,) = sweep.by_chip
    own: ChipVariant = chip_rows, chip_rows.variants[0]
    row = table(sweep).collect().row(0, named=True)
    sizes = {dim: row[dim] for dim in sweep.op.dims}
    chip = sweep.chips[chip_rows.chip]
    thresholds = sweep_thresholds(sweep).to_dicts()
    numbers = used_numbers(chip, _used(sweep, own, row))
    return Explanation(
        row=row,
        sizes=sizes,
        name=chip.name or chip_rows.chip,
        clock=chip.clock,
        uses=list(_uses(sweep, own, row)),
        thresholds=thresholds,
        limit_shares=_limit_shares(sweep, own, thresholds),
        changes=list(_changes(sweep, own, sizes)),
        dtypes=_other_dtypes(sweep, row),
        capacity_bytes=chip.memory[chip_rows.memory].capacity_bytes,
        numbers=numbers,
        documents=documents_of(numbers),
        software=_software(sweep, own),
        contents=_contents(sweep, own),
    )


def _software(sweep: Sweep, own: ChipVariant) -> str | None:
    """The software whose calibration gives the estimate; None: no software is named.

    Raises:
        RooflinesError: None that is named has a calibration of the chip and the compute dtype.
    """
    named = sweep.config.calibration
    if named is None:
        return None
    compute = sweep.combinations[own[1].dtypes].compute
    return software_of(sweep.calibrations, own[0].chip, named, compute)


def _contents(sweep: Sweep, own: ChipVariant) -> str | None:
    """What the timings of the calibration include besides the operation."""
    compute = sweep.combinations[own[1].dtypes].compute
    fit = sweep.calibrations.matmul(own[0].chip, sweep.config.calibration or (), compute)
    return fit.contents if fit else None


def _uses(sweep: Sweep, own: ChipVariant, row: Mapping[str, Any]) -> Iterator[Use]:
    target = sweep.target(*own)
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
    sweep: Sweep, own: ChipVariant, thresholds: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """What the share of the attainable peak tends to along dimensions that never reach it [1]."""
    by_bound = {resource.bound: resource for resource in RESOURCES}
    shares = {}
    for row in thresholds:
        if row["share"] == 1 and row["axis"] in sweep.op.dims and row["outcome"] == NEVER:
            needed = needed_intensity(sweep.target(*own), by_bound[row["limit"]])
            if needed is not None and row["limit_intensity"] is not None:
                shares[row["axis"]] = limit_share(needed, row["limit_intensity"])
    return shares


def _changes(sweep: Sweep, own: ChipVariant, sizes: Mapping[str, int]) -> Iterator[Change]:
    target = sweep.target(*own)
    for name, resource in RATES.items():
        rate = resource.rate(target)
        if rate is None or not _loaded(sweep, own, resource):
            continue
        solution = rate_factor(sweep, own, resource, sizes)
        factor = solution.factor
        yield Change(
            rate=name,
            resource=resource.name,
            outcome=solution.outcome,
            limit=solution.limit,
            factor=None if factor is None else float(factor),
            per_s=float(rate.per_s),
            needed_per_s=None if factor is None else float(rate.per_s * factor),
        )


def _loaded(sweep: Sweep, own: ChipVariant, resource: Resource) -> bool:
    """Whether the row has work for a resource."""
    return any(sweep.case(*own).costs[resource.work].values())


def _other_dtypes(sweep: Sweep, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The other dtype combinations that the unit computes, quickest first."""
    names = [
        name for name in dtypes_on(sweep.chips[row["chip"]], sweep.unit) if name != row["dtypes"]
    ]
    if not names:
        return []
    config = sweep.config.model_copy(update={"dtypes": names, "thresholds": []})
    rows = table(checked_sweep(sweep.name, config, sweep.chips, sweep.dtypes, sweep.calibrations))
    return rows.select("dtypes", "bound", "t_lower_s").collect().sort("t_lower_s").to_dicts()


def _used(sweep: Sweep, own: ChipVariant, row: Mapping[str, Any]) -> Iterator[str]:
    """The parts of the chip that the row depends on."""
    compute = sweep.combinations[own[1].dtypes].compute
    yield from (f"units.{row['unit']}.{compute}", f"memory.{row['memory']}")
    yield from ("efficiency", f"calibration.{compute}")
    if row["network_bytes"]:
        yield from (f"networks.{name}" for name in own[0].networks)
