"""`rooflines measured kernels`: profiled kernels on the roofline of a chip."""

from __future__ import annotations

import click
import polars as pl

from rooflines import api
from rooflines.basics.errors import at_path, printable, truncate
from rooflines.basics.text import counted, percent, seconds
from rooflines.charts.kinds.measured import kernels_view
from rooflines.charts.kit.render import limited, picture
from rooflines.cli import output
from rooflines.cli.picture_form import TABLE, picture_form
from rooflines.config.chart_fields import FORMATS
from rooflines.dictionary.columns import KERNELS
from rooflines.fits.named_devices import device_note
from rooflines.fits.nsight import short_name
from rooflines.fits.rocm_counters import counters_in
from rooflines.loading import load_config
from rooflines.results.atomic import write_bytes
from rooflines.results.tables import write_parquet
from rooflines.run.jobs import about

SHOWN = {
    "kernel": "kernel",
    "launches": "launches",
    "seconds": "time",
    "flops": "FLOP",
    "memory_bytes": "bytes",
    "memory_intensity": "FLOP/B",
    "flops_per_s": "FLOP/s",
    "peak_of": "peak of",
    "bound": "bound",
    "roof_share": "share of roof",
}
"""Column titles on a screen, by column."""

MAX_NAME_LENGTH = 60
"""Characters of the name of a kernel that are shown [1]."""


@click.command("kernels", cls=output.WithExamples)
@click.argument("file")
@click.option("--chip", required=True, metavar="ID", help="The chip that ran the kernels.")
@click.option("--dtype", metavar="DTYPE", help="That tensor cores compute in; default: counted.")
@output.config_option
@output.out_options("Write a picture, .png, .svg, .pdf or .html, or the table as .parquet.")
@output.picture_options
@output.prints_frame
def command(  # noqa: PLR0913, the options
    *,
    file: str,
    chip: str,
    dtype: str | None,
    config: str | None,
    out: str | None,
    size: str | None,
    dark: bool,
    force: bool,
) -> output.Printed:
    """Show which share of the roofline the kernels of a profile reach, and what bounds them.

    FILE is what Nsight Compute prints as CSV, of the page raw or details, or the pmc_perf.csv of
    rocprof-compute or its folder, or the counter_collection.csv of rocprofv3. Of Nsight Compute it
    has gpu__time_duration.sum, dram__bytes_read.sum, dram__bytes_write.sum and those of operations:
    sm__ops_path_tensor_src_{bf16_dst_fp32,fp16,fp8,...}.sum of tensor cores, and
    sm__sass_thread_inst_executed_op_{fadd,fmul,ffma}_pred_on.sum (hadd, dadd, ...) of threads.

    Examples:
        ncu --import report.ncu-rep --csv --page raw > kernels.csv
        rooflines measured kernels kernels.csv --chip h200-sxm
        rooflines measured kernels workloads/run/MI300X/pmc_perf.csv --chip mi300x
        rooflines measured kernels kernels.csv --chip b200 --dtype nvfp4 --out kernels.parquet
        rooflines measured kernels kernels.csv --chip h200-sxm --out kernels.html
    """
    form = picture_form(out, size, "kernels.png", dark=dark)
    if out is not None:
        output.check_new(out, force=force)
    loaded = load_config(config, needs_sweeps=False) if config else None
    chip = output.one_chip("chip", chip, loaded.chips if loaded else None)
    frame = api.profiled_kernels(file, chip, dtype, loaded)
    if out is not None and form == TABLE:
        write_parquet(frame.lazy(), out, about([], KERNELS, chip=chip))
    elif out is not None:
        with at_path(file=file):
            drawn = kernels_view(frame, chip, loaded.chips if loaded else None)
        spec = limited(drawn.spec(), "kernels")
        write_bytes(out, picture(spec, form, size or FORMATS[form], dark=dark))
    note = device_note(counters_in(file), chip)
    return frame, "\n".join(filter(None, [_text(frame, chip), note]))


def _text(frame: pl.DataFrame, chip: str) -> str:
    """Line for each kernel, then the roofline over their total time."""
    shown = frame.with_columns(peak_of=pl.format("{}, {}", "compute", "unit"))
    names = (truncate(short_name(printable(name)), MAX_NAME_LENGTH) for name in frame["kernel"])
    rows = [{**row, "kernel": name} for row, name in zip(shown.to_dicts(), names, strict=True)]
    total, roofline_s = float(frame["seconds"].sum()), float(frame["t_lower_s"].sum())
    kernels = counted(frame.height, "kernel")
    roofline = f"roofline {seconds(roofline_s)} on {chip} ({percent(roofline_s / total)})"
    lines = [f"{kernels}, {seconds(total)} measured; {roofline}"]
    above = frame.filter(frame["roof_share"] > 1).height
    without = int(frame["flops"].null_count())
    if without:
        lines.append(
            f"{counted(without, 'kernel')} without all operation counters: share of memory "
            "bandwidth only, bottleneck unknown"
        )
    if above:
        lines.append(
            f"{counted(above, 'kernel')} above the roof: another chip or dtype, operands in cache, "
            "or a clock above the peak's"
        )
    return "\n".join([output.table(SHOWN, rows), "", *lines])
