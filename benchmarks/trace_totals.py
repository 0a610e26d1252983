"""Totals of public traces: `python -m benchmarks.trace_totals FOLDER > values.csv`.

The folder has `values.csv` with a row for each trace and its options (`with`: a chip, a model,
`tp`, `capture`); the same rows are printed as this version computes them. Without a folder it is
`traces` in the one that `ROOFLINES_PUBLIC_DATA` names.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflines.traces.call_frames import faster_counts
from rooflines.traces.laid_traces import LaidTrace, lay_trace

if TYPE_CHECKING:
    from collections.abc import Mapping

MS = 1e6
"""Nanoseconds in a millisecond [ns]."""


def main() -> None:
    """Print a row for each trace and its options."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(os.environ.get("ROOFLINES_PUBLIC_DATA", ".")) / "traces"
    parser.add_argument("folder", nargs="?", type=Path, default=default)
    folder = parser.parse_args().folder
    with (folder / "values.csv").open(newline="", encoding="utf-8") as file:
        asked_rows = [*csv.DictReader(file)]
    writer: csv.DictWriter[str] | None = None
    for row in asked_rows:
        totals = trace_totals(folder, row["trace"], row["with"])
        if writer is None:
            writer = csv.DictWriter(sys.stdout, [*totals], lineterminator="\n")
            writer.writeheader()
        writer.writerow(totals)


def lay_public_trace(folder: Path, trace: str, options: str) -> LaidTrace:
    """Lay a trace with options such as `chip=mi300x`, `capture` or `qwen3-8b tp=2`.

    Args:
        folder: Folder of the traces.
        trace: File below it.
        options: Options, a word each.
    """
    words = options.split()
    settings = dict(word.split("=") for word in words if "=" in word)
    models = [word for word in words if "=" not in word and word != "capture"]
    capture = trace.replace(".json", ".capture.json") if "capture" in words else None
    return lay_trace(
        str(folder / trace),
        settings.get("chip"),
        capture=None if capture is None else str(folder / capture),
        model=models[0] if models else None,
        tp=int(settings.get("tp", 1)),
    )


def trace_totals(folder: Path, trace: str, options: str) -> Mapping[str, Any]:
    """Totals of a trace: times in ms, FLOP, bytes, and calls faster than their bound.

    Args:
        folder: Folder of the traces.
        trace: File below it.
        options: As in `lay_public_trace`.
    """
    laid = lay_public_trace(folder, trace, options)
    total, inside = laid.total, laid.inside
    costs = [bounded.call.cost for bounded in inside if bounded.call.cost is not None]
    copies_ns = sum(account.copies_ns for account in laid.accounts)
    times_ns = {
        "span_ms": total.total_ns,
        "busy_ms": laid.busy_ns,
        "idle_host_ms": total.not_launched_ns,
        "idle_call_ms": total.in_call_ns,
        "queued_ms": total.queued_ns,
        "break_ms": total.break_ns,
        "exposed_comm_ms": total.communication_ns,
        "exposed_copy_ms": copies_ns,
        "before_ms": total.before_ns,
    }
    reasons = faster_counts(inside)
    return {
        "trace": trace,
        "with": options,
        "chip": laid.chip.chip or "",
        "devices": len(laid.accounts),
        "activities": len(laid.trace.activities),
        "calls": len(laid.calls),
        "steps": len(laid.trace.steps),
        **{name: time_ns / MS for name, time_ns in times_ns.items()},
        "covered": round(laid.covered() or 0.0, 4),
        "covered_exact": round(laid.covered(exact=True) or 0.0, 4),
        "t_lower_ms": round(sum(bounded.lower_s or 0.0 for bounded in inside) * 1e3, 6),
        "least_ms": total.at_bound_ns / MS,
        "lost_ms": total.above_ns / MS,
        "no_bound_ms": total.no_bound_ns / MS,
        "flops": sum(cost.flops for cost in costs),
        "memory_bytes": sum(cost.memory_bytes for cost in costs),
        "below": "; ".join(f"{reason} {count}" for reason, count in sorted(reasons.items())),
    }


if __name__ == "__main__":
    main()
