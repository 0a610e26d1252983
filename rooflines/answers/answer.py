"""Answer to a question with one case: its numbers, and its statements in words.

An operation's answer, a serving step's and a training step's are three types: each has further
numbers, and words its own statements.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

from rooflines.answers.answer_values import Estimate
from rooflines.answers.assumptions import as_note
from rooflines.answers.basis import BOUND_BASIS, ESTIMATE_BASIS, Basis
from rooflines.answers.claims import MIN_FACTOR
from rooflines.answers.measured_number import dtypes_order, measured_section
from rooflines.answers.phrases import (
    BEYOND,
    DIGITS,
    Line,
    Section,
    beyond_largest_size,
    crossover,
    older_timings,
)
from rooflines.answers.screen import Screen
from rooflines.basics.text import seconds, si, significant
from rooflines.dictionary.columns import ALWAYS, FOUND, NEVER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.answers.answer_values import RequiredRate, ResourceTime
    from rooflines.answers.measured_number import MeasuredNumber
    from rooflines.hardware.chip_parts import NumberRecord


@dataclass(frozen=True, repr=False, kw_only=True)
class Answer(ABC):
    """Numbers that every answer has; `str()` is a screen, `to_dict()` has every number.

    Attributes:
        row: Row of the table, by column; works and times in a step are those of one chip.
        sizes: Size by letter [1].
        name: The chip's full name; its id if it has none.
        resources: Math first, then memory and, if chips send anything, network.
        thresholds: Rows of thresholds by column.
        required_rates: Rates at which the row becomes compute-bound.
        dtypes: The same question in the other dtypes that the chip computes, fastest first, with
            `bound`, `t_lower_s` [s] and, for a step, `fits`.
        capacity_bytes: Capacity of the memory level [byte]; None: not published.
        numbers: Chip numbers behind the row, with `source`, `confidence` and remarks.
        documents: Title and address by id, for sources that are documents.
        routes: Routes between chips, a phrase each: torus axes that are taken, and an inner network
            that is idle.
        assumptions: What is taken as given, a sentence by subject: `model`, what its shape leaves
            out; `split`, kernels that chips replicate; `dtypes`, what is in the one format typed.
        softwares: Software whose calibrations give the estimate; empty: none is named.
        contents: What their timings include besides the matmuls.
        basis: Time that the headline, rates and cost are of.
        measured: Timings of the chip in these dtypes over the bound: `software`, `n`, `p10`, `p50`,
            `p90` [1]; None: no published timings of such a case.
        measured_number: Number in the question, judged; None: none was asked about.
        kin: Chip by whose timings this one is estimated; None: by its own.
        older: Engines timed in an older version than elsewhere: that and the newest.
    """

    kind: ClassVar[str]
    """Key `kind` in JSON."""

    upper_limits: ClassVar[Mapping[str, Mapping[str, tuple[str, str]]]] = {}
    """Short answer and text by outcome, for axes whose threshold is a largest size."""

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
    routes: Sequence[str]
    assumptions: Mapping[str, str]
    softwares: Sequence[str]
    contents: Sequence[str]
    basis: Basis
    measured: Mapping[str, Any] | None
    measured_number: MeasuredNumber | None = None
    kin: str | None = None
    older: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def chip(self) -> str:
        """The chip's id."""
        return str(self.row["chip"])

    @property
    @abstractmethod
    def chips(self) -> int:
        """Number of chips that share the work [1]."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Question in words: chip, subject, sizes, dtypes, sharding or split."""

    @property
    def bound(self) -> str:
        """Bottleneck."""
        return str(self.row["bound"])

    @property
    def bound_s(self) -> float:
        """Bound on the time [s]."""
        return float(self.row["t_lower_s"])

    @property
    def time_s(self) -> float:
        """Time on the basis of the answer [s]."""
        return float(self.row[self.basis.column])

    @property
    def estimate(self) -> Estimate | None:
        """Calibrated time with its band; None without a calibration."""
        row = self.row
        if row.get("t_estimate_s") is None:
            return None
        return Estimate(
            time_s=row["t_estimate_s"],
            p10_s=row.get("t_estimate_p10_s"),
            p90_s=row.get("t_estimate_p90_s"),
            bound=row.get("estimate_bound"),
            extrapolated=row.get("estimate_extrapolated"),
            softwares=self.softwares,
            contents=self.contents,
        )

    @property
    def notes(self) -> list[str]:
        """Assumptions as notes in a table."""
        return [*map(as_note, self.assumptions.items())]

    def table_row(self) -> Mapping[str, Any]:
        """Row with its assumptions, as a table of cases has them, and with a measured number."""
        number = self.measured_number
        return {**self.row, **(number.columns() if number else {})}

    def to_dict(self) -> dict[str, Any]:
        """All numbers as JSON: mappings, lists, texts, numbers and null; `kind` names the type."""
        values = {key: _plain(value) for key, value in asdict(self).items()}
        return {"kind": self.kind, **values, "basis": self.basis.key, "time_s": self.time_s}

    def screen(self) -> Screen:
        """Statements in the order in which a screen has them."""
        return Screen(
            title=self.title,
            calibration=self._calibration(),
            verdict=self.verdict(),
            measured=self._measured_section(),
            bound=self.bound,
            resources=self.resources,
            facts=[Line(label, "", text) for label, text in self._facts() if text],
            sections=[*self._sections()],
            chip_name=self.name,
            numbers=self.numbers,
        )

    def __str__(self) -> str:
        """A screen of text, without colour."""
        return self.screen().text()

    __repr__ = __str__

    # ------------------------------------------------------------ verdict and facts

    @abstractmethod
    def verdict(self) -> str:
        """First sentence: the estimate where there is one, the bottleneck and the bound."""

    @abstractmethod
    def _facts(self) -> Iterator[tuple[str, str]]:
        """Facts as label and text; an empty text is not said."""

    @abstractmethod
    def _times(self) -> str:
        """Times with and without overlap."""

    def _hops(self) -> str:
        """Least latency of the network; empty where none is used."""
        latencies = (resource.latency_s for resource in self.resources if resource.latency_s)
        texts = (f"; network latency at least {seconds(latency_s)}" for latency_s in latencies)
        return "".join(texts)

    def _calibration(self) -> str:
        """Calibration behind the estimate: software, chip, dtypes, contents of its timings.

        Without an estimate the reason; empty where the bound alone is asked for.
        """
        estimate = self.estimate
        if self.basis is BOUND_BASIS and estimate is not None:
            return ""
        if estimate is None:
            return self._no_estimate()
        contents = "".join(f"; timings include {content}" for content in estimate.contents)
        origin = ", ".join(estimate.softwares) or "the measurements of the chip's entry"
        origin += f" on {self.chip}"
        if self.kin is not None:
            origin += f", by timings of {self.kin},"
        outside = (*older_timings(self.older), *self._outside_timings(estimate))
        remarks = "".join(f"; {text}" for text in outside)
        return f"calibrated to {origin} in {self._computes()}{contents}{remarks}"

    def _outside_timings(self, estimate: Estimate) -> Iterator[str]:
        """Respects in which the case lies outside the timings behind its estimate."""
        if estimate.extrapolated:
            yield f"{BEYOND[estimate.extrapolated]}, so the band is wider"

    @abstractmethod
    def _no_estimate(self) -> str:
        """Reason that there is no estimate; empty where none was asked for."""

    @abstractmethod
    def _computes(self) -> str:
        """Compute dtypes that the calibration is of."""

    def _band(self) -> str:
        """Band of the estimate, with the share of measurements inside; empty on another basis."""
        estimate = self.estimate
        if self.basis is not ESTIMATE_BASIS or estimate is None or estimate.p10_s is None:
            return ""
        low, high = estimate.p10_s, estimate.p90_s
        return "" if high is None else f", {seconds(low)} to {seconds(high)} ({self._band_share()})"

    @abstractmethod
    def _band_share(self) -> str:
        """Measurements that fall into the band of the estimate."""

    def _timings(self, subject: str) -> str:
        """Published timings over the bound; empty without any.

        Args:
            subject: What was timed, in the plural.
        """
        if self.measured is None:
            return ""
        low, high = (significant(self.measured[name]) for name in ("p10", "p90"))
        timings = f"{self.measured['n']:,} {subject}, {self.measured['software']}"
        below = "; below 1 from cache" if self.measured["p10"] < 1 else ""
        return f"{low} to {high} times the bound, p10 to p90 ({timings}){below}"

    def _measured_section(self) -> Section | None:
        """Measured number in words; None: none was asked about."""
        number = self.measured_number
        if number is None:
            return None
        return measured_section(
            number,
            per=self._per(),
            band_share=self._band_share(),
            levers="; ".join(self._faster_than(number)),
            phase=self.row.get("phase"),
        )

    def _per(self) -> str:
        """Phrase for what takes the time; empty: an operation."""
        return ""

    def _faster_than(self, number: MeasuredNumber) -> Iterator[str]:
        """Changes that take less than a measured time, with their times."""
        if number.estimate_s is not None and number.estimate_s < number.time_s:
            software = ", ".join(self.softwares) or "the calibration"
            yield f"as {software} runs it, {seconds(number.estimate_s)}"
        faster = [dtypes for dtypes in self._faster_dtypes() if dtypes["t_lower_s"] < number.time_s]
        if faster:
            dtypes = min(faster, key=dtypes_order)
            yield f"dtypes {dtypes['dtypes']}, at least {seconds(dtypes['t_lower_s'])}"

    @property
    def per_chip(self) -> str:
        """Phrase after an amount of one of several chips; else empty."""
        return " per chip" if self.chips > 1 else ""

    def _fit(self, needs: str) -> str:
        """Yes, no or unknown: needed bytes against the memory level's capacity."""
        row, capacity = self.row, self.capacity_bytes
        needs = f"{needs}{self.per_chip}"
        if capacity is None:
            return f"unknown: {needs}, {row['memory']} capacity not published"
        return f"{'yes' if row['fits'] else 'no'}: {needs}, {si(capacity, 'B')} of {row['memory']}"

    def _faster_dtypes(self) -> list[Mapping[str, Any]]:
        """Other dtypes whose bound is shorter by more than a ranking of bounds needs."""
        return [dtypes for dtypes in self.dtypes if self.bound_s > MIN_FACTOR * dtypes["t_lower_s"]]

    # ------------------------------------------------------------ sections

    def _sections(self) -> Iterator[Section]:
        """Kernels of a step, critical sizes, and what else would make it compute-bound."""
        yield from self._kernel_sections()
        yield Section(self._thresholds_title(), list(self._threshold_lines()))
        yield from self._change_sections()

    @abstractmethod
    def _change_sections(self) -> Iterator[Section]:
        """Sections on what would change the time."""

    def _kernel_sections(self) -> Iterator[Section]:
        """Sections on kernels; an operation has none."""
        yield from ()

    def _thresholds_title(self) -> str:
        """Title of the critical sizes."""
        return "Compute-bound from this size on, other sizes fixed:"

    def _threshold_lines(self) -> Iterator[Line]:
        """Critical size along every axis, other sizes fixed."""
        for axis, rows in groupby(self.thresholds, key=lambda row: str(row["axis"])):
            whole, *shares = rows
            if self._is_unsaid(whole):
                continue
            value, text = self._upper(whole) if axis in self.upper_limits else self._lower(whole)
            plateau = ""
            if (size := whole["plateau_estimate"]) is not None:
                plateau = f"the estimate reaches 90% of its plateau at {axis} = {size}"
            texts = [text, *self._share_texts(whole, shares), plateau]
            yield Line(axis, value, "; ".join(filter(None, texts)))

    def _is_unsaid(self, threshold: Mapping[str, Any]) -> bool:
        """True for a threshold that is no line."""
        del threshold
        return False

    def _lower(self, threshold: Mapping[str, Any]) -> tuple[str, str]:
        """Short answer and text for a smallest compute-bound size."""
        outcome = threshold["outcome"]
        if outcome == FOUND:
            text, critical = (
                f"crossover {crossover(threshold['critical_exact'])}",
                threshold["critical"],
            )
            if rule := threshold.get("rule_of_thumb"):
                text += f"; rule of thumb {significant(rule, DIGITS)}"
            max_size = self._max_fit(threshold)
            if max_size is not None and max_size < critical:
                text += f"; fits up to {max_size:,}" if max_size else "; no size fits"
            return f"{critical}", text
        if outcome == ALWAYS:
            return "any", f"compute-bound at every {self._size_word(threshold['axis'])}"
        if outcome == NEVER:
            return "never", self._never(threshold)
        return beyond_largest_size(threshold)

    def _upper(self, threshold: Mapping[str, Any]) -> tuple[str, str]:
        """Short answer and text for a largest compute-bound size."""
        texts = self.upper_limits[threshold["axis"]]
        if threshold["outcome"] not in texts:
            return beyond_largest_size(threshold)
        value, text = texts[threshold["outcome"]]
        return value.format(critical=threshold["critical"]), text.format(limit=threshold["limit"])

    def _max_fit(self, threshold: Mapping[str, Any]) -> int | None:
        """Largest size that fits along the threshold's axis [1]; None: not solved."""
        del threshold
        return None

    def _size_word(self, axis: str) -> str:
        """Word for a size along an axis."""
        del axis
        return "size"

    def _never(self, threshold: Mapping[str, Any]) -> str:
        """Reason that no size is compute-bound."""
        return f"{threshold['limit']}-bound at every size"

    def _share_texts(
        self, whole: Mapping[str, Any], shares: Sequence[Mapping[str, Any]]
    ) -> Iterator[str]:
        """Sizes that attain a share of the peak, along the axis of a threshold."""
        del whole, shares
        yield from ()


def _plain(value: object) -> object:
    """A value as JSON has it: tuples are lists, at every depth."""
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return [*map(_plain, value)] if isinstance(value, list | tuple) else value
