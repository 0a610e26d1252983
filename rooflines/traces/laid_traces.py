"""A trace laid on its bound: accounts, calls with bounds, span parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.fits.calibration_files import shipped_calibrations
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.measured.catalogues import Catalogues
from rooflines.traces.bound_times import TraceRates
from rooflines.traces.captures import join_capture
from rooflines.traces.device_accounts import DeviceAccount, device_accounts
from rooflines.traces.host_tree import attribute, forget_unused
from rooflines.traces.model_calls import model_calls
from rooflines.traces.span_parts import (
    NS_PER_S,
    BoundedCall,
    SpanParts,
    bound_calls,
    span_parts,
)
from rooflines.traces.step_annotations import mark_steps
from rooflines.traces.trace_calls import trace_calls
from rooflines.traces.trace_files import check_activities, read_trace
from rooflines.traces.trace_timings import LibrarySplit, LibraryTime, library_split, library_times
from rooflines.traces.traced_chips import TracedChip, traced_chip
from rooflines.traces.unfused_attention import UnfusedAttention, unfused_attention

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.hardware.entries import Chip
    from rooflines.traces.model_calls import ModelMatch
    from rooflines.traces.trace_records import Trace

MIN_COVERED = 0.85
"""Share of the busy time with a bound from which on a ratio is said [1]."""

GIVEN = "given"
"""Source of a chip that the user named."""


@dataclass(frozen=True)
class LaidTrace:
    """A trace laid on its bound.

    Attributes:
        trace: The trace.
        chip: The chip, and what told it.
        rates: The chip's rates; None: no chip.
        accounts: Time of each device.
        calls: All calls, with their bounds.
        parts: Span parts by device.
        lines: Sentences on a model, a capture, or ranks.
        match: Model laid on it; None: none.
        tp: Chips that share each layer of the model [1].
    """

    trace: Trace
    chip: TracedChip
    rates: TraceRates | None
    accounts: Sequence[DeviceAccount]
    calls: Sequence[BoundedCall]
    parts: Mapping[str, SpanParts]
    lines: list[str] = field(default_factory=list)
    match: ModelMatch | None = None
    tp: int = 1

    @property
    def name(self) -> str:
        """File name without its folder."""
        return Path(self.trace.file).name

    @property
    def total(self) -> SpanParts:
        """Parts summed over devices."""
        return reduce(add, self.parts.values())

    @property
    def busy_ns(self) -> int:
        """Busy time, summed over devices [ns]."""
        return sum(account.busy_ns for account in self.accounts)

    @property
    def inside(self) -> list[BoundedCall]:
        """Calls whose launch is in the trace."""
        return [bounded for bounded in self.calls if not bounded.is_before]

    @property
    def compared(self) -> list[BoundedCall]:
        """Calls with a bound that their time is compared with: no collectives."""
        return [
            bounded
            for bounded in self.inside
            if bounded.times is not None and not bounded.is_communication
        ]

    def covered(self, *, exact: bool = False) -> float | None:
        """Busy time share with a bound, without what came before the trace [1].

        Args:
            exact: Only calls whose work the trace confirms.
        """
        inside = self.inside
        busy_ns = sum(bounded.call.owned_ns for bounded in inside)
        bounded_ns = sum(
            bounded.call.owned_ns
            for bounded in inside
            if bounded.times is not None
            and not (exact and bounded.call.cost and not bounded.call.cost.exact)
        )
        return bounded_ns / busy_ns if busy_ns else None

    @property
    def lower_s(self) -> float:
        """Bounds, summed over calls in `compared` [s]."""
        return sum(bounded.lower_s or 0.0 for bounded in self.compared)

    @property
    def ratio(self) -> float | None:
        """Time over bound, over calls in `compared` [1]; None: too little of the time has one."""
        covered = self.covered()
        if covered is None or covered < MIN_COVERED or not self.lower_s:
            return None
        return sum(bounded.seconds for bounded in self.compared) / self.lower_s

    def on(self, chip: str, chips: Mapping[str, Chip] | None = None) -> list[BoundedCall]:
        """The same calls with another chip's bounds.

        Args:
            chip: Its id.
            chips: Entries by id; None: those in the catalogue.
        """
        rates = trace_rates(chip, chips)
        return bound_calls((bounded.call for bounded in self.calls), rates)

    @cached_property
    def library_times(self) -> Mapping[int, LibraryTime]:
        """Times with a good library by the call's `id`, where a calibration covers a call."""
        if self.rates is None:
            return {}
        calls = [bounded.call for bounded in self.compared]
        catalogues = Catalogues(chip_entries(), dtype_entries(), shipped_calibrations())
        times = library_times(calls, self.rates, catalogues)
        if self.match is not None:
            # Imported here: only a trace with a model asks a question about it.
            from rooflines.traces.model_estimates import group_times  # noqa: PLC0415

            match = self.match
            times |= group_times(calls, match.model, self.rates.name, self.tp, match.sums)
        return times

    @cached_property
    def library(self) -> LibrarySplit | None:
        """Time above the bound: what a good library needs, and what this run adds.

        None: no calibration covers a call in the trace.
        """
        if self.rates is None:
            return None
        calls = [bounded.call for bounded in self.compared]
        return library_split(calls, self.rates, self.library_times)

    @cached_property
    def unfused(self) -> list[UnfusedAttention]:
        """Attention that runs as several kernels."""
        if self.rates is None:
            return []
        return unfused_attention((bounded.call for bounded in self.compared), self.rates)

    @property
    def span_s(self) -> float:
        """Span, summed over devices [s]."""
        return self.total.total_ns / NS_PER_S


def trace_rates(chip: str, chips: Mapping[str, Chip] | None = None) -> TraceRates:
    """A chip's rates."""
    entries = chip_entries() if chips is None else chips
    return TraceRates(chip, entries[chip])


def prepared_trace(path: str) -> Trace:
    """A file's trace with launches, operators, steps, and time owners.

    Args:
        path: The file.

    Raises:
        RooflinesError: It is no trace with device events.
    """
    trace = read_trace(path)
    check_activities(trace)
    attribute(trace)
    mark_steps(trace)
    forget_unused(trace)
    return trace


def lay_trace(  # noqa: PLR0913, the options
    path: str,
    chip: str | None = None,
    chips: Mapping[str, Chip] | None = None,
    *,
    capture: str | None = None,
    model: str | None = None,
    tp: int = 1,
    context: int | None = None,
) -> LaidTrace:
    """Lay a file's trace on its bound.

    Args:
        path: The file.
        chip: Chip id; None: the one that the file names.
        chips: Entries by id; None: those in the catalogue.
        capture: File with the capture of the trace's graphs.
        model: Model whose groups kernels without operators are laid on: an id, a config.json, or
            `auto`.
        tp: Chips that share each layer [1].
        context: Tokens of context per sequence, where annotations have none [1].

    Raises:
        RooflinesError: It is no trace with device events, or the model did not run.
    """
    trace = prepared_trace(path)
    lines = []
    match: ModelMatch | None = None
    if capture is not None:
        lines.append(join_capture(trace, read_trace(capture)).note)
    calls = trace_calls(trace)
    named = TracedChip(chip, GIVEN) if chip else traced_chip(trace.devices, chips)
    rates = trace_rates(named.chip, chips) if named.chip else None
    if model is not None:
        calls, match = model_calls(trace, calls, model, rates, tp=tp, context=context)
        lines += match.notes
    accounts = device_accounts(trace)
    bounded = bound_calls(calls, rates)
    parts = span_parts(bounded, accounts)
    return LaidTrace(trace, named, rates, accounts, bounded, parts, lines, match, tp)
