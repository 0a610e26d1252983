"""Explanation as values: every number is a table column, a threshold column, or a rate.

No formula is here: times come from the tables, sizes and rates from the solvers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rooflines.models.architecture import TRAIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.hardware.chip_parts import NumberRecord


ONE_AXIS = "over one axis"
"""Name for a route along a single torus axis."""


@dataclass(frozen=True)
class ResourceTime:
    """Work, rate and time at one resource: time = max over networks(work / rate, hop latency) [s].

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
class RequiredRate:
    """Rate at which the row becomes compute-bound, all else equal.

    Attributes:
        rate: `peak`, `memory_rate` or `network_rate`.
        resource: The resource that has it.
        outcome, limit: See `solvers.required_rates.solve_rate`.
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
class Answer:
    """An operation, or a step of a model, explained: every number.

    Attributes:
        row: The row of the table, by column; works and times of a model are those of one chip.
        sizes: The size of every dimension; of a model B, S and, where it was asked for, T [1].
        name: The chip's full name; its id if it has none.
        resources: Math first, then memory and, if chips send anything, network.
        thresholds: Rows of the thresholds by column. Of an operation: for every dimension and, of a
            split, shards, compute-bound (share 1), then attaining a share of the peak. Of a model:
            B, S (in decode) and chips.
        required_rates: The rates at which the row becomes compute-bound.
        dtypes: The same question in the other dtypes that the chip computes, quickest first, with
            `bound`, `t_lower_s` [s] and, of a model, `fits`.
        capacity_bytes: Capacity of the memory level [byte]; None: not published.
        numbers: The chip's numbers that were used, with `source`, `confidence` and remarks.
        documents: Title and address of the sources that are documents, by id.
        softwares: Whose calibrations give the estimate; empty: no software is named.
        contents: What their timings include besides the operation, or the matmuls of the model.
        measured: How far timings of the chip in these dtypes are above the bound: `software`, `n`,
            `p10`, `p50`, `p90` [1]; None: no published timings of such a case.
        limit_shares: Of an operation, for every dimension along which it is never compute-bound:
            the share of the attainable peak that it tends to [1].
        groups: Of a model, its kernels by column, in the order in which they run; values of one
            layer, and `outcome`, `critical_B` [1] and `limit`: from which batch on each is
            compute-bound by itself.
        terms: Of a model with an estimate, what makes it up: `group`, `count`, `t_estimate_s` of
            one layer and `collectives_estimate_s` of its collectives alone [s], `estimate_bound`,
            `estimate_extrapolated` and `calibration`, the names of the fits it is by.
        fits: These fits by name: `source`, `n`, the timings held out [1], and `median`, the
            median error there [1]; of steps the runs of models that were left out.
        prompt_s: What a prompt of S tokens takes that is read between steps of decode [s]; None
            without an engine's fit of steps.
        products: Of a model, FLOPs, rate and time in every compute dtype: `compute`, `flops`
            [FLOP], `per_s` [FLOP/s], `time_s` [s].
        experts: Of a model with experts: the `routing`, how many of a layer's are read, `touched`,
            and how many there are, `E` [1]; None without experts.
        wider: The smallest `tp` that holds a model over another `network`, where those of the
            question join too few chips; None: they do not, or no network is enough.
        context: The longest context that the model is made for [1]; None: not stated.
        routes: How chips are joined, a phrase each: the axes of a torus that are taken, and an
            inner network that is idle.
        averages: Of a model, the classes of tensors in several formats, and their average bits.
        assumptions: Of a model, what is taken as given, a sentence each: of the `model`, what its
            shape leaves out and assumes; of the `split`, kernels that chips have in copies; of
            `dtypes`, what is in the one format that was typed.
        published: The dtypes that the model is published in, where the question has others.
        in_chunks: Of a model whose layers attend in chunks, the `number` of contexts with a
            compute-bound batch, `among` those up to the longest, or those of a chunk where no one
            is the longest [1]; None: no such layers.
        cache_split: How chips share the caches of a model: `heads` or `batch`.
        draft: Tokens proposed and `accepted` in a step of decode; None without a draft.
        per_sequence_s: What every further sequence adds to the time of compute, of memory (by its
            cache) and of the network (by what is sent), by bottleneck [s].
    """

    row: Mapping[str, Any]
    sizes: Mapping[str, int]
    name: str
    resources: Sequence[ResourceTime]
    thresholds: Sequence[Mapping[str, Any]]
    required_rates: Sequence[RequiredRate]
    dtypes: Sequence[Mapping[str, Any]]
    capacity_bytes: float | None
    numbers: Sequence[NumberRecord]
    documents: Mapping[str, Mapping[str, str]]
    softwares: Sequence[str] = ()
    contents: Sequence[str] = ()
    measured: Mapping[str, Any] | None = None
    limit_shares: Mapping[str, float] = field(default_factory=dict)
    groups: Sequence[Mapping[str, Any]] = ()
    terms: Sequence[Mapping[str, Any]] = ()
    fits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    prompt_s: float | None = None
    products: Sequence[Mapping[str, Any]] = ()
    experts: Mapping[str, Any] | None = None
    wider: Mapping[str, Any] | None = None
    context: int | None = None
    routes: Sequence[str] = ()
    averages: Sequence[str] = ()
    assumptions: Mapping[str, str] = field(default_factory=dict)
    published: str | None = None
    in_chunks: Mapping[str, int] | None = None
    cache_split: str | None = None
    draft: Mapping[str, float] | None = None
    per_sequence_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def along_axis(self) -> str:
        """Phrase for chips along one torus axis; else empty."""
        return "along one axis, " if any(ONE_AXIS in route for route in self.routes) else ""

    @property
    def of_a_model(self) -> bool:
        """True for a model step."""
        return "model" in self.row

    @property
    def trains(self) -> bool:
        """True for a training step."""
        return self.row.get("phase") == TRAIN

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON: mappings, lists, texts, numbers and null."""
        values = asdict(self)
        return {
            key: [*value] if isinstance(value, tuple) else value for key, value in values.items()
        }
