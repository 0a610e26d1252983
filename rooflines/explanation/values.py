"""An explanation as values: every number is a column of the tables, of the thresholds, or a rate.

No formula is here: times come from the tables, sizes and rates from the solvers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError
from rooflines.catalogue import measured
from rooflines.catalogue.chips import chip_sources
from rooflines.catalogue.parts import parts, records

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.catalogue.parts import NumberRecord
    from rooflines.fits.entries import Calibrations


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
    intensity: float | None = None
    needed_intensity: float | None = None


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


@dataclass(frozen=True)
class Experts:
    """The experts of a layer that a step uses.

    Attributes:
        routing: Which ones tokens choose: `uniform`, `same` or `all`.
        touched: How many of them are read [1].
        E: How many there are [1].
    """

    routing: str
    touched: float
    E: int


@dataclass(frozen=True, repr=False)
class Answer:
    """An operation, or a step of a model, explained: every number.

    Attributes:
        row: The row of the table, by column; works and times of a model are those of one chip.
        sizes: The size of every dimension; of a model B, S and, where it was asked for, T [1].
        name: The chip's full name; its id if it has none.
        uses: Math first, then memory and, if chips send anything, network.
        thresholds: Rows of the thresholds by column. Of an operation: for every dimension and, of a
            split, shards, compute-bound (share 1), then attaining a share of the peak. Of a model:
            B, S (in decode) and chips.
        changes: The rates at which the row becomes compute-bound.
        dtypes: The same question in the other dtypes that the chip computes, quickest first, with
            `bound`, `t_lower_s` [s] and, of a model, `fits`.
        capacity_bytes: Capacity of the memory level [byte]; None: not published.
        numbers: The chip's numbers that were used, with `source`, `confidence` and remarks.
        documents: Title and address of the sources that are documents, by id.
        softwares: Whose calibrations give the estimate; empty: no software is named.
        contents: What their timings include besides the operation, or the matmuls of the model.
        measured: How far timings of the chip in these dtypes are above the bound: `software`, `n`,
            `p10`, `p50`, `p90` [1]; None: no published timings of such a case.
        clock: `boost` if the peak is that of the boost clock; None: not stated.
        limit_shares: Of an operation, for every dimension along which it is never compute-bound:
            the share of the attainable peak that it tends to [1].
        groups: Of a model, its kernels by column, in the order in which they run; values of one
            layer, and `outcome`, `critical_B` [1] and `limit`: from which batch on each is
            compute-bound by itself.
        products: Of a model, FLOPs, rate and time in every compute dtype: `compute`, `flops`
            [FLOP], `per_s` [FLOP/s], `time_s` [s].
        experts: The experts of a model that are used; None without experts.
        wider: The smallest `tp` that holds a model over another `network`, where those of the
            question join too few chips; None: they do not, or no network is enough.
        context: The longest context that the model is made for [1]; None: not stated.
        published: The dtypes that the model is published in, where the question has others.
        cache_split: How chips share the caches of a model: `heads` or `batch`.
        per_sequence_s: What every further sequence adds to the time of compute, of memory (by its
            cache) and of the network (by what is sent), by bottleneck [s].
    """

    row: Mapping[str, Any]
    sizes: Mapping[str, int]
    name: str
    uses: Sequence[Use]
    thresholds: Sequence[Mapping[str, Any]]
    changes: Sequence[Change]
    dtypes: Sequence[Mapping[str, Any]]
    capacity_bytes: float | None
    numbers: Sequence[NumberRecord]
    documents: Mapping[str, Mapping[str, str]]
    softwares: Sequence[str] = ()
    contents: Sequence[str] = ()
    measured: Mapping[str, Any] | None = None
    clock: str | None = None
    limit_shares: Mapping[str, float] = field(default_factory=dict)
    groups: Sequence[Mapping[str, Any]] = ()
    products: Sequence[Mapping[str, Any]] = ()
    experts: Experts | None = None
    wider: Mapping[str, Any] | None = None
    context: int | None = None
    published: str | None = None
    cache_split: str | None = None
    per_sequence_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def of_a_model(self) -> bool:
        """Whether it is about a model."""
        return "model" in self.row

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON: mappings, lists, texts, numbers and null."""
        values = asdict(self)
        return {key: [*each] if isinstance(each, tuple) else each for key, each in values.items()}


def sourced(chip: Chip, paths: Iterable[str]) -> dict[str, Any]:
    """The numbers of parts of a chip, and the documents that they name, as an explanation has them.

    Args:
        chip: The chip.
        paths: The parts, such as `memory.hbm`; those that the chip lacks are left out.
    """
    used, catalogue = set(paths), chip_sources()
    numbers = [
        number for part in parts(chip) if part.path in used for number in records(chip, part)
    ]
    named = {name for number in numbers for name in (number["source"] or "").split(", ")}
    documents = {
        name: {key: str(catalogue[name][key]) for key in ("title", "url") if key in catalogue[name]}
        for name in sorted(named & set(catalogue))
    }
    return {"numbers": numbers, "documents": documents}


def timed(of: str, **case: str) -> dict[str, Any] | None:
    """How far published timings are above the bound, of the software with most of them.

    Variants of a software, such as `trtllm-dynamic`, count where there is no other.

    Args:
        of: What was timed: `matmul` or `step`.
        **case: Columns of the quantiles, such as `chip` and `dtypes`.
    """
    rows = measured.measured_quantiles().filter(of=of, over=measured.BOUND, **case)
    named = rows.filter(rows["software"].is_not_null())
    variant = named["software"].str.contains("-").alias("variant")
    found = named.sort(variant, "n", "software", descending=[False, True, True])
    columns = ("software", "n", "p10", "p50", "p90")
    return found.select(columns).row(0, named=True) if found.height else None


def software_of(calibrations: Calibrations, chip: str, named: Sequence[str], compute: str) -> str:
    """The software whose calibration of matmuls counts.

    Args:
        calibrations: By chip and software.
        chip: The chip's id.
        named: Software, the first with a fit counts.
        compute: The compute dtype.

    Raises:
        RooflinesError: None has a calibration of the chip and the compute dtype.
    """
    for software in named:
        if calibrations.matmul(chip, [software], compute):
            return software
    problem = f"is {', '.join(named)}, without a calibration of {chip} in {compute}"
    raise RooflinesError("calibration", problem, "choose another, or leave it out")
