"""A laid trace as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rooflines.traces.call_frames import faster_counts
from rooflines.traces.span_parts import inside_bounds_s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.traces.laid_traces import LaidTrace


def trace_record(laid: LaidTrace, other_chips: Sequence[str] = ()) -> dict[str, Any]:
    """Totals of a trace; times in whole ns where their name ends in `_ns`.

    Args:
        laid: The trace.
        other_chips: Further chips for bounds of the same calls.
    """
    return {
        "trace": laid.trace.file,
        "chip": laid.chip.chip,
        "chip_source": laid.chip.source,
        "activities": len(laid.trace.activities),
        "calls": len(laid.calls),
        "steps": [step.name for step in laid.trace.steps],
        "span_ns": laid.total.total_ns,
        "busy_ns": laid.busy_ns,
        "parts": asdict(laid.total),
        "devices": {
            device: {"span_ns": parts.total_ns, **asdict(parts)}
            for device, parts in laid.parts.items()
        },
        "covered_share": laid.covered(),
        "covered_exact_share": laid.covered(exact=True),
        "t_lower_s": laid.lower_s,
        "ratio": laid.ratio,
        "faster": faster_counts(laid.inside),
        "library": None if laid.library is None else asdict(laid.library),
        "unfused_attention": [
            {"seconds": unfused.seconds, "apart_s": unfused.apart_s, "fused_s": unfused.fused_s}
            for unfused in laid.unfused
        ],
        "on": {chip: inside_bounds_s(laid.on(chip)) for chip in other_chips},
        "notes": [*laid.lines, *laid.trace.notes],
    }
