"""The values of an explanation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.catalogue.parts import NumberRecord


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
class Answer:
    """One operation on one chip, explained.

    Attributes:
        row: The row of the table, by column.
        sizes: The size of every dimension [1].
        name: The chip's full name; its id if it has none.
        clock: `boost` if the peak is that of the boost clock; None: not stated.
        uses: Math first, then memory and, if the operation is split, network.
        thresholds: Rows of the thresholds by column, for every dimension and, of a split, shards:
            compute-bound (share 1), then attaining a share of the peak.
        limit_shares: For every dimension along which it is never compute-bound: the share of the
            attainable peak that it tends to [1].
        changes: The rates at which the row becomes compute-bound.
        dtypes: The other dtype combinations that the unit computes, quickest first, with `bound`
            and `t_lower_s` [s].
        capacity_bytes: Capacity of the memory level [byte]; None: not published.
        numbers: The chip's numbers that were used, with `source`, `confidence` and remarks.
        documents: Title and address of the sources that are documents, by id.
        software: Whose calibration gives the estimate; None: the chip's own, if it has one.
        contents: What its timings include besides the operation; None: nothing that is stated.
    """

    row: Mapping[str, Any]
    sizes: Mapping[str, int]
    name: str
    clock: str | None
    uses: Sequence[Use]
    thresholds: Sequence[Mapping[str, Any]]
    limit_shares: Mapping[str, float]
    changes: Sequence[Change]
    dtypes: Sequence[Mapping[str, Any]]
    capacity_bytes: float | None
    numbers: Sequence[NumberRecord]
    documents: Mapping[str, Mapping[str, str]]
    software: str | None = None
    contents: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON: mappings, lists, texts, numbers and null."""
        return {
            "row": dict(self.row),
            "sizes": dict(self.sizes),
            "name": self.name,
            "clock": self.clock,
            "uses": [dict(vars(use)) for use in self.uses],
            "thresholds": [dict(threshold) for threshold in self.thresholds],
            "limit_shares": dict(self.limit_shares),
            "changes": [dict(vars(change)) for change in self.changes],
            "dtypes": [dict(other) for other in self.dtypes],
            "capacity_bytes": self.capacity_bytes,
            "numbers": [dict(number) for number in self.numbers],
            "documents": {name: dict(document) for name, document in self.documents.items()},
            "software": self.software,
            "contents": self.contents,
        }
