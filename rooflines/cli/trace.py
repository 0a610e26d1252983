"""`rooflines measured trace`: where the time of a run went, by a profiler's trace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import polars as pl

from rooflines.basics.errors import RooflinesError, quote
from rooflines.basics.text import counted
from rooflines.cli import output
from rooflines.dictionary.columns import TRACE_CALLS
from rooflines.results.atomic import write_bytes
from rooflines.results.tables import write_csv, write_parquet
from rooflines.run.jobs import about
from rooflines.traces.call_frames import call_frame, group_frame
from rooflines.traces.laid_traces import LaidTrace, lay_trace
from rooflines.traces.model_calls import AUTO_MODEL
from rooflines.traces.rank_waits import compare_ranks
from rooflines.traces.trace_changes import change_frame, change_text
from rooflines.traces.trace_json import trace_record
from rooflines.traces.trace_screen import RANKS, trace_text
from rooflines.traces.trace_timings import matmul_timings

if TYPE_CHECKING:
    from collections.abc import Sequence

TABLE = "parquet"

COMPARED = 2
"""Files that are compared [1]."""

TIMING_SUFFIXES = (".parquet", ".csv")
"""Suffixes of a table with timings."""


@click.command("trace", cls=output.WithExamples)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--chip", metavar="ID", help="The chip, where the file does not name it.")
@click.option("--model", metavar="MODEL", help="The model that ran, where shapes lack; or auto.")
@click.option("--tp", type=click.IntRange(1), default=1, help="Chips that share each layer.")
@click.option("--context", type=click.IntRange(1), help="Tokens per sequence, if not annotated.")
@click.option("--capture", metavar="FILE", help="A trace with the capture of the graphs.")
@click.option("--compare", is_flag=True, help="Show what changed between two files.")
@click.option("--on", metavar="ID,...", help="Other chips whose bounds are shown beside.")
@click.option("--timings", metavar="PATH", help="Write the matmuls as timings, .parquet or .csv.")
@click.option("--pictures", metavar="FOLDER", help="Draw parts, groups and a step as .png.")
@output.out_options("Write all calls as .parquet, a row each.")
@output.refuses_in_one_line
@output.prints_frame
def command(  # noqa: PLR0913, the options
    *,
    files: Sequence[str],
    chip: str | None,
    model: str | None,
    tp: int,
    context: int | None,
    capture: str | None,
    compare: bool,
    on: str | None,
    timings: str | None,
    pictures: str | None,
    out: str | None,
    force: bool,
) -> output.Printed:
    """Show where the time of a run went: each nanosecond of a device gets one name.

    FILE is what the PyTorch profiler writes (.json or .json.gz, with CUDA, ROCm or MTIA), what
    `nsys export --type sqlite` or `nsys stats -r cuda_gpu_trace -f csv` write, the CSV of
    `rocprofv3 --kernel-trace`, or the trace.json.gz of XProf. The span from the first kernel to the
    end of the last is kernels at their bound, above it, and without one, communication that no
    kernel hides, and idle time: the host had not launched, the launch was running, queued, breaks.
    Bounds need shapes (record_shapes=True); under CUDA graphs and in compiled steps --model lays
    kernels on a model's layers, and --capture takes operators from a trace of the graphs' capture.
    A ratio is said where 85 % of the busy time has a bound.

    Examples:
        rooflines measured trace trace.json.gz
        rooflines measured trace rank0.json --chip a100-sxm-40gb
        rooflines measured trace decode.json.gz --model qwen3-8b
        rooflines measured trace decode.json.gz --capture graph_capture_rank_0.json.gz
        rooflines measured trace before.json.gz after.json.gz --compare
        rooflines measured trace rank0.json.gz rank1.json.gz
        rooflines measured trace trace.json.gz --on b200,mi355x
        rooflines measured trace trace.json.gz --out calls.parquet
        rooflines measured trace trace.json.gz --timings matmuls.parquet
        rooflines measured trace trace.json.gz --pictures pictures
    """
    if compare and len(files) != COMPARED:
        fix = "give the trace before the change and the one after it"
        raise RooflinesError(
            "--compare", f"needs two files, and gets {counted(len(files), 'file')}", fix
        )
    if out is not None:
        output.format_of(out, (TABLE,))
        output.check_new(out, force=force)
    if timings is not None:
        if not timings.endswith(TIMING_SUFFIXES):
            problem = f"is {quote(timings)}"
            raise RooflinesError("--timings", problem, "end the name in .parquet or .csv")
        output.check_new(timings, force=force)
    named = output.one_chip("--chip", chip) if chip else None
    other_chips = [output.one_chip("--on", name) for name in on.split(",") if name] if on else []
    laid_model = output.one_model(model) if model and model != AUTO_MODEL else model
    answers = [
        lay_trace(file, named, capture=capture, model=laid_model, tp=tp, context=context)
        for file in files
    ]
    frames = [call_frame(answer) for answer in answers]
    if out is not None:
        chips = ",".join(sorted({answer.chip.chip or "none" for answer in answers}))
        write_parquet(pl.concat(frames).lazy(), out, about([], TRACE_CALLS, chip=chips))
    if timings is not None:
        _write_timings(answers, timings)
    if pictures is not None:
        for answer in answers:
            _draw(answer, Path(pictures))
    if compare:
        before, after = answers
        changes = change_frame(before, after)
        return changes, change_text(before, after), changes.to_dicts()
    sentences = [*compare_ranks(answers).sentences()]
    alone = sentences if len(answers) == 1 else ()
    screens = [
        trace_text(answer, other_chips, alone, frame)
        for answer, frame in zip(answers, frames, strict=True)
    ]
    if sentences and not alone:
        screens.append("\n".join(map(RANKS.format, sentences)))
    text = "\n\n".join(screens)
    records = [
        _record(answer, frame, other_chips) for answer, frame in zip(answers, frames, strict=True)
    ]
    return pl.concat(frames), text, records


def _write_timings(answers: Sequence[LaidTrace], path: str) -> None:
    """Write the matmuls as timings.

    Raises:
        RooflinesError: There are none with a known chip and shapes.
    """
    parts = [
        matmul_timings((bounded.call for bounded in laid.inside), laid.chip.chip, laid.name)
        for laid in answers
        if laid.chip.chip is not None
    ]
    frame = pl.concat(parts) if parts else pl.DataFrame()
    if frame.is_empty():
        problem = "gets no timings: no matmul has a chip, shapes and dtypes"
        raise RooflinesError("--timings", problem, "record shapes, or name the chip with --chip")
    if path.endswith(".csv"):
        write_csv(frame, path)
    else:
        chips = ",".join(sorted(frame["chip"].unique()))
        write_parquet(frame.lazy(), path, about([], (), chip=chips))


def _draw(laid: LaidTrace, folder: Path) -> None:
    """Draw a trace's pictures; those with the same name are replaced.

    Raises:
        RooflinesError: Its activities take no time.
    """
    if laid.total.total_ns == laid.total.break_ns:
        problem = f"has nothing to draw: all that {laid.name} has takes no time"
        raise RooflinesError("--pictures", problem, "leave it out, or record a longer run")
    from rooflines.charts.kit.render import png  # noqa: PLC0415, slow to import
    from rooflines.charts.trace_pictures import PICTURES  # noqa: PLC0415, as above

    stem = re.sub(r"\.(json|gz|sqlite|csv)\b", "", laid.name)
    for name, view in PICTURES.items():
        write_bytes(folder / f"{stem}-{name}.png", png(view(laid).spec()))


def _record(laid: LaidTrace, frame: pl.DataFrame, other_chips: Sequence[str]) -> dict[str, Any]:
    """Everything on a trace as JSON."""
    return {**trace_record(laid, other_chips), "groups": group_frame(frame).to_dicts()}
