"""Answer about a kernel or a collective: what binds, least time, estimate, critical sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rooflines.answers.basis import BOUND_BASIS, ESTIMATE_BASIS
from rooflines.answers.phrases import Line, Section
from rooflines.answers.screen import Screen
from rooflines.basics.errors import RooflinesError
from rooflines.basics.quantities import TIME, measured_value, quantity
from rooflines.basics.text import percent, seconds, si, significant
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

IN_SWITCH = "t_in_switch_s"
"""Column with the time where the network adds up in its switch [s]."""

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


def measured_kernel(typed: str | None, row: Mapping[str, Any]) -> Section | None:
    """Measured number against the bound and the estimate, in words.

    Args:
        typed: A time, FLOP/s, a bandwidth, or for a collective its busbw or `algbw=274GB/s`.
        row: The row.

    Raises:
        RooflinesError: It is something else.
    """
    if typed is None:
        return None
    time_s, lower = _measured_time(typed, row), float(row["t_lower_s"])
    over = significant(time_s / lower)
    label = "bound" if row.get(IN_SWITCH) is None else "ring"
    lines = [Line(label, percent(lower / time_s), f"{seconds(time_s)} is {over} times the {label}")]
    if estimate_s := row.get("t_estimate_s"):
        text = f"{significant(time_s / estimate_s)} times the estimate"
        lines.append(Line("estimate", percent(estimate_s / time_s), text))
    if rates := "; ".join(_rates(row, time_s)):
        lines.append(Line("rates", "", rates))
    if time_s < lower:
        in_switch = row.get(IN_SWITCH)
        reasons = "data in a cache, another dtype, sparsity, or a masked half that is counted"
        if in_switch:
            over = significant(time_s / in_switch)
            reasons = f"reduced in the switch; {over} times the bound of that"
        lines.append(Line("faster", "", f"than the {label}: {reasons}"))
    return Section(f"Measured {typed}:", lines)


def _rates(row: Mapping[str, Any], time_s: float) -> list[str]:
    """Rates in a measured time."""
    rates = []
    if row["flops"]:
        rates.append(si(row["flops"] / time_s, "FLOP/s"))
    if row.get("bus_factor"):
        rates.append(f"busbw {si(row['bus_factor'] * row['bytes'] / time_s, 'B/s')}")
    elif row["memory_bytes"]:
        rates.append(f"{si(row['memory_bytes'] / time_s, 'B/s')} of memory traffic")
    return rates


def _measured_time(typed: str, row: Mapping[str, Any]) -> float:
    """Time behind a measured number [s]."""
    name, _, text = typed.rpartition("=")
    if text.lower().endswith(("b/s", "bps")):
        rate = float(quantity(text, "bandwidth"))
        if "bus_factor" not in row:
            return float(row["memory_bytes"]) / rate
        factor = 1.0 if name.lower() == "algbw" else float(row["bus_factor"])
        return factor * float(row["bytes"]) / rate
    value = measured_value(text)
    if value.kind == TIME:
        return value.value
    if value.kind == "flops_per_s":
        return float(row["flops"] or row["vector_flops"]) / value.value
    problem = f"is {typed}, which is no time or rate of a kernel"
    raise RooflinesError("measured", problem, "write 250us, 650TFLOP/s or 2.1TB/s")
