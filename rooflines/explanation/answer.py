"""An explanation as values: every number is a column of the table, of the thresholds, or a rate.

No formula is here: times come from the table, sizes and rates from `rooflines.critical`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rooflines.catalogue.chips import chip_entries, chip_sources
from rooflines.catalogue.numbers import numbers_with_sources
from rooflines.critical.rates import RATES, needed_intensity, rate_factor
from rooflines.critical.thresholds import sweep_thresholds
from rooflines.explanation.question import dtypes_on, sweep_of
from rooflines.model.resources import MATH, RESOURCES, Resource
from rooflines.sweep.checks import checked_sweep
from rooflines.sweep.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.sweep.space import ChipVariant
    from rooflines.sweep.sweep import Sweep

__all__ = ["Change", "Explanation", "Use", "explain"]

ALWAYS = 1
"""The critical size of what is compute-bound at every size [1]."""


@dataclass(frozen=True)
class Use:
    """What the row needs of one resource, and how long that takes.

    Attributes:
        resource: `math`, `memory` or `network`.
        bound: Its name as a bottleneck.
        column: The table's column of its work.
        work: That work [FLOP or byte].
        per_s: Its rate, efficiency included [FLOP/s or byte/s].
        latency_s: The least time of any amount of work [s].
        time_s: Its time, of the table [s].
        intensity: FLOPs per byte of its work, of the table [FLOP/byte]; None: math, or no traffic.
        needed_intensity: From which on the math takes at least as long [FLOP/byte]; None: math.
    """

    resource: str
    bound: str
    column: str
    work: float
    per_s: float
    latency_s: float
    time_s: float
    intensity: float | None
    needed_intensity: float | None


@dataclass(frozen=True)
class Change:
    """What one rate would have to be for the row to be compute-bound, all else equal.

    Attributes:
        rate: `peak`, `memory_rate` or `network_rate`.
        resource: The resource that has it.
        outcome, limit: See `critical.rates.RateSolution`.
        factor: On the chip's own rate: at most 1 for `peak`, at least 1 for others [1]; None: none.
        per_s: The rate as it is [FLOP/s or byte/s].
        needed_per_s: The rate with the factor; None: none.
    """

    rate: str
    resource: str
    outcome: str
    limit: str | None
    factor: float | None
    per_s: float
    needed_per_s: float | None


@dataclass(frozen=True, repr=False)
class Explanation:
    """One operation on one chip, explained; `str()` is a screen of text, `to_dict()` all of it.

    Attributes:
        row: The row of the table, by column.
        sizes: The size of every dimension [1].
        name: The chip's full name; its id if it has none.
        clock: `boost` if the peak is that of the boost clock; None: not stated.
        uses: Math first, then memory and, if the operation is split, network.
        thresholds: A row of the thresholds for every dimension, by column, and `outcome`.
        changes: The rates at which the row becomes compute-bound.
        dtypes: The other dtype combinations that the unit computes, quickest first, with `bound`
            and `t_lower_s` [s].
        capacity_bytes: Capacity of the memory level [byte]; None: not published.
        numbers: The chip's numbers that were used, with `source`, `confidence` and remarks.
        documents: Title and address of the sources that are documents, by id.
    """

    row: Mapping[str, Any]
    sizes: Mapping[str, int]
    name: str
    clock: str | None
    uses: Sequence[Use]
    thresholds: Sequence[Mapping[str, Any]]
    changes: Sequence[Change]
    dtypes: Sequence[Mapping[str, Any]]
    capacity_bytes: float | None
    numbers: Sequence[Mapping[str, Any]]
    documents: Mapping[str, Mapping[str, str]]

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON: mappings, lists, texts, numbers and null."""
        return {
            "row": dict(self.row),
            "sizes": dict(self.sizes),
            "name": self.name,
            "clock": self.clock,
            "uses": [dict(vars(use)) for use in self.uses],
            "thresholds": [dict(threshold) for threshold in self.thresholds],
            "changes": [dict(vars(change)) for change in self.changes],
            "dtypes": [dict(other) for other in self.dtypes],
            "capacity_bytes": self.capacity_bytes,
            "numbers": [dict(number) for number in self.numbers],
            "documents": {name: dict(document) for name, document in self.documents.items()},
        }

    def __str__(self) -> str:
        """A screen of text, without colour."""
        from rooflines.explanation.text import as_text  # noqa: PLC0415, it imports this module

        return as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A card for a notebook."""
        from rooflines.explanation.card import as_card  # noqa: PLC0415, it imports this module

        return as_card(self)


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
    chips: Mapping[str, Chip] | None = None,
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
        chips: Chips by id, such as `load_config(path).chips`; None: those of the catalogue.

    Returns:
        The explanation.

    Raises:
        RooflinesError: Something is invalid, or the chip cannot do it.
    """
    entries = chip_entries() if chips is None else chips
    sweep = sweep_of(
        chip,
        sizes,
        dtypes,
        chips=entries,
        operation=operation,
        shards=shards,
        sharding=sharding,
        network=network,
        memory=memory,
        unit=unit,
        flops=flops,
    )
    (chip_rows,) = sweep.by_chip
    own: ChipVariant = chip_rows, chip_rows.variants[0]
    row = table(sweep).collect().row(0, named=True)
    uses = list(_uses(sweep, own, row))
    numbers = list(_used(sweep, own, row))
    return Explanation(
        row=row,
        sizes={dim: row[dim] for dim in sweep.op.dims},
        name=entries[chip].name or chip,
        clock=getattr(entries[chip], "clock", None),
        uses=uses,
        thresholds=[_with_outcome(each) for each in sweep_thresholds(sweep).to_dicts()],
        changes=list(_changes(sweep, own, {dim: row[dim] for dim in sweep.op.dims})),
        dtypes=_other_dtypes(sweep, row),
        capacity_bytes=entries[chip].memory[row["memory"]].capacity_bytes,
        numbers=numbers,
        documents=_documents(numbers),
    )


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


def _with_outcome(threshold: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the thresholds, and what a null of `critical` means."""
    if threshold.get("outcome"):
        return dict(threshold)
    critical, exact, limit = (threshold[key] for key in ("critical", "critical_exact", "limit"))
    if critical is not None:
        always = critical == ALWAYS and limit is None
        outcome = "always" if always and threshold["axis"] != "shards" else "found"
    elif exact is not None:
        outcome = "beyond-2^62"
    else:
        outcome = "never" if limit else "without-end"
    return {**threshold, "outcome": outcome}


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
    return any(sweep.case(own[1]).costs[resource.work].values())


def _other_dtypes(sweep: Sweep, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The other dtype combinations that the unit computes, quickest first."""
    names = [
        name for name in dtypes_on(sweep.chips[row["chip"]], sweep.unit) if name != row["dtypes"]
    ]
    if not names:
        return []
    config = sweep.config.model_copy(update={"dtypes": names, "thresholds": []})
    rows = table(checked_sweep(sweep.name, config, sweep.chips, sweep.dtypes))
    return rows.select("dtypes", "bound", "t_lower_s").collect().sort("t_lower_s").to_dicts()


def _used(sweep: Sweep, own: ChipVariant, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The chip's numbers that the row depends on."""
    compute = sweep.combinations[own[1].dtypes].compute
    parts = [f"units.{row['unit']}.{compute}", f"memory.{row['memory']}"]
    if row["network_bytes"]:
        parts += [f"networks.{name}" for name in str(row["network"]).split("+")]
    entry = sweep.chips[row["chip"]].plain
    for number in numbers_with_sources(entry):
        if number["path"].rpartition(".")[0] in parts:
            yield number
    fitted = {
        "efficiency": entry.get("efficiency") or {},
        f"calibration.{compute}": (entry.get("calibration") or {}).get(compute) or {},
    }
    for path, shares in fitted.items():
        for key, value in shares.items():
            if isinstance(value, int | float):
                yield _without_remarks(f"{path}.{key}", value, entry.get("source"))


def _without_remarks(path: str, value: float, source: object) -> dict[str, Any]:
    """A number of a part that has no source of its own, in the form of the others."""
    return {
        "path": path,
        "value": float(value),
        "source": ", ".join(source) if isinstance(source, list) else source,
        "confidence": None,
        "estimate": False,
        "halved": False,
        "printed_with_sparsity": None,
        "note": None,
    }


def _documents(numbers: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Title and address of the documents that numbers name."""
    catalogue = chip_sources()
    named = {name for number in numbers for name in str(number["source"] or "").split(", ")}
    return {
        name: {key: str(catalogue[name][key]) for key in ("title", "url") if key in catalogue[name]}
        for name in sorted(named & set(catalogue))
    }
