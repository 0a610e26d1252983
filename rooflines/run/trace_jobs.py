"""Jobs on traces: calls as a table, pictures and a screen for the site, and comparisons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import polars as pl

from rooflines.basics.files import read_parquet
from rooflines.basics.text import counted
from rooflines.charts.kit.render import svg
from rooflines.charts.trace_pictures import PICTURES
from rooflines.dictionary.columns import TRACE_CALLS, TRACE_CHANGES
from rooflines.models.library import model_entries
from rooflines.results.atomic import atomic_folder
from rooflines.results.records import recorded
from rooflines.results.tables import write_csv, write_parquet
from rooflines.run.jobs import about
from rooflines.traces.call_frames import call_frame
from rooflines.traces.device_accounts import BREAK_NS
from rooflines.traces.rank_waits import compare_ranks
from rooflines.traces.span_parts import NS_PER_S
from rooflines.traces.trace_changes import table_changes
from rooflines.traces.trace_screen import trace_text
from rooflines.traces.trace_sets import laid_traces

if TYPE_CHECKING:
    from rooflines.basics.yaml_file import JSON
    from rooflines.traces.laid_traces import LaidTrace

INDEX = "index.json"
"""File with what the site shows."""


@recorded
def write_trace(spec: str, table: str | Path, folder: str | Path) -> str:
    """Write a trace's calls as Parquet, and a folder with its screen and pictures.

    Args:
        spec: What they depend on, from `Plan.spec`.
        table: The Parquet file to write.
        folder: The folder to write; an earlier one is replaced.

    Returns:
        A line for the log: how many calls.

    Raises:
        RooflinesError: The file is no trace, or the model did not run.
    """
    recipe = json.loads(spec)["traces"][0]
    traces = laid_traces(recipe)
    frames = [call_frame(laid) for laid in traces]
    frame = pl.concat(frames)
    write_parquet(frame.lazy(), table, about([recipe], TRACE_CALLS))
    screens = [trace_text(laid, calls=calls) for laid, calls in zip(traces, frames, strict=True)]
    with atomic_folder(folder) as temporary:
        pictures: list[JSON] = []
        for number, laid in enumerate(traces):
            if laid.total.total_ns == laid.total.break_ns:
                continue
            for name, view in PICTURES.items():
                file = f"{name}-{number}.svg"
                drawn = view(laid)
                (temporary / file).write_text(svg(drawn.spec(), "slide"), encoding="utf-8")
                pictures.append({"file": file, "title": drawn.claim.text, "trace": laid.name})
        index = {
            "name": recipe["trace"],
            "screens": screens,
            "ranks": [*compare_ranks(traces).sentences()],
            "pictures": pictures,
            "before": recipe["config"]["before"],
            "model": next((laid.match.model.name for laid in traces if laid.match), None),
            "explorer": next(filter(None, map(explorer_address, traces, frames)), None),
        }
        (temporary / INDEX).write_text(json.dumps(index, indent=1), encoding="utf-8")
    return counted(frame.height, "call")


def explorer_address(laid: LaidTrace, calls: pl.DataFrame) -> str | None:
    """Explorer address: a decode step with its measured time.

    None: no catalogue model, no chip, or no step that only decodes.

    Args:
        laid: The trace.
        calls: Its call table.
    """
    match, chip = laid.match, laid.chip.chip
    if match is None or chip is None or match.model.name not in model_entries():
        return None
    decodes = ((index, sums) for index, sums in match.sums.items() if not sums.prefills)
    index, sums = next(decodes, (None, None))
    if index is None or sums is None:
        return None
    device = laid.accounts[0].device
    queued = pl.when(pl.col("idle_device_s") * NS_PER_S <= BREAK_NS).then("idle_device_s")
    parts = pl.sum_horizontal("seconds", "idle_host_s", "idle_call_s", queued)
    step_s = calls.filter(step=index, device=device).select(parts.sum()).item()
    state = {
        "subject": "model",
        "chips": chip,
        "model": match.model.name,
        "phase": "decode",
        "split": f"tp{laid.tp}",
        "B": sums.sequences,
        "S": round(sums.context / sums.sequences),
        "tab": "kernels",
        "measured": f"{step_s * 1e3:.6g}ms",
    }
    return f"index.html#{urlencode(state)}"


@recorded
def write_trace_changes(spec: str, path: str | Path) -> None:
    """Write what changed between traces as CSV: groups and idle times, whose sums are the spans.

    Args:
        spec: What it depends on, from `Plan.spec`: `pairs` with both names and tables.
        path: The CSV file to write, in the results folder.
    """
    results = Path(path).absolute().parent
    frames = [
        table_changes(*(read_parquet(results / table) for table in pair["tables"])).select(
            pl.lit(pair["before"]).alias("before"), pl.lit(pair["after"]).alias("after"), pl.all()
        )
        for pair in json.loads(spec)["pairs"]
    ]
    write_csv(pl.concat(frames).select(column.name for column in TRACE_CHANGES), path)
