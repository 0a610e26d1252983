"""Answer about a kernel or a collective: what binds, least time, estimate, critical sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rooflines.answers.basis import BOUND_BASIS, ESTIMATE_BASIS
from rooflines.answers.phrases import Line, Section
from rooflines.answers.screen import Screen
from rooflines.basics.text import percent, si
from rooflines.hardware.chip_parts import number_records

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rooflines.answers.answer_values import ResourceTime
    from rooflines.answers.kernel_estimate import KernelEstimate
    from rooflines.hardware.chip_parts import NumberRecord
    from rooflines.hardware.entries import Chip
    from rooflines.kinds.placed_kernels import Critical

THRESHOLDS = "Compute-bound from this size on, other sizes fixed:"
"""Title above critical sizes."""

BOUND_WORDS = {"vector": "bound by the vector unit", "exp": "bound by exponentials"}
"""Bottlenecks in words, where they are no noun of the field."""


@dataclass(frozen=True, kw_only=True)
class KernelAnswer:
    """Answer about one kernel on one chip, or about a collective between several.

    Attributes:
        row: Numbers by column.
        title: Question in words.
        bound_text: Bound in words, such as `at least 80.2 µs, memory-bound`.
        rate_text: Rates at the bound.
        resources: Times by resource.
        facts: Labelled statements.
        thresholds: Critical sizes.
        threshold_lines: The same in words.
        chip_name: Full name of the chip.
        numbers: Chip numbers behind the answer.
        estimate: Calibrated time; None: untimed.
        untimed: Reason that there is no estimate.
        measured: Statements on a measured number; None: none was asked about.
    """

    row: Mapping[str, Any]
    title: str
    bound_text: str
    rate_text: str
    resources: Sequence[ResourceTime]
    facts: Sequence[Line]
    chip_name: str
    numbers: Sequence[NumberRecord]
    estimate: KernelEstimate | None
    untimed: str
    thresholds: Sequence[Critical] = ()
    threshold_lines: Sequence[Line] = ()
    measured: Section | None = None

    @property
    def basis(self) -> str:
        """Basis of the headline, `estimate` or `bound`."""
        return (BOUND_BASIS if self.estimate is None else ESTIMATE_BASIS).key

    def verdict(self) -> str:
        """First sentence: the estimate where there is one, the bound, rates."""
        parts = [self.bound_text, self.rate_text]
        if self.estimate is not None:
            parts.insert(0, self.estimate.text())
        return "; ".join(filter(None, parts))

    def table_row(self) -> Mapping[str, Any]:
        """Row of a table."""
        return self.row

    def to_dict(self) -> dict[str, Any]:
        """All numbers as JSON."""
        return {
            "kind": "kernel",
            "question": self.title,
            "basis": self.basis,
            "row": dict(self.row),
            "thresholds": [threshold._asdict() for threshold in self.thresholds],
            "numbers": [dict(number) for number in self.numbers],
        }

    def screen(self) -> Screen:
        """Statements in the order in which a screen has them."""
        sections = [Section(THRESHOLDS, [*self.threshold_lines])] if self.threshold_lines else []
        return Screen(
            title=self.title,
            calibration=self.untimed if self.estimate is None else self.estimate.origin,
            verdict=self.verdict(),
            measured=self.measured,
            bound=str(self.row["bound"]),
            resources=self.resources,
            facts=self.facts,
            sections=sections,
            chip_name=self.chip_name,
            numbers=self.numbers,
        )

    def __str__(self) -> str:
        """A screen of text, without colour."""
        return self.screen().text()


def chip_records(chip: Chip, used: Collection[str]) -> list[NumberRecord]:
    """Numbers in these parts of a chip."""
    return [number for number in number_records(chip) if number["path"].rpartition(".")[0] in used]


def bound_words(bound: str) -> str:
    """A bottleneck in words."""
    return BOUND_WORDS.get(bound, f"{bound}-bound")


def rate_words(row: Mapping[str, Any], peak_per_s: float | None, *, is_mean: bool = False) -> str:
    """Rate at the bound in words: FLOP/s with the share of peak, else the traffic.

    Args:
        row: The row.
        peak_per_s: Peak of the matrix unit [FLOP/s]; None: it does no work.
        is_mean: Whether the work is a mean, which single runs may beat.
    """
    lower = float(row["t_lower_s"])
    if row["flops"] and peak_per_s:
        rate = row["flops"] / lower
        most = "" if is_mean else "at most "
        return f"{most}{si(rate, 'FLOP/s')}, {percent(rate / peak_per_s)} of peak"
    return f"{si(row['memory_bytes'], 'B')} of compulsory traffic"
