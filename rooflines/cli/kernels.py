"""`rooflines kernels`: profiled kernels on the roofline of a chip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflines.cli.output import as_table, frame_options, print_frame, width

if TYPE_CHECKING:
    import polars as pl

__all__ = ["command"]

EXAMPLES = """
\b
Examples:
  ncu --import report.ncu-rep --csv --page raw > kernels.csv
  rooflines kernels kernels.csv --chip h100-sxm
  rooflines kernels kernels.csv --chip b200 --dtype nvfp4 --out kernels.parquet
"""

NAMES = ("kernel", "launches", "time", "FLOP", "bytes", "FLOP/B", "FLOP/s", "peak of", "bound")


@click.command(
    "kernels", epilog=EXAMPLES, short_help="Put profiled kernels on the roofline of a chip."
)
@click.argument("file")
@click.option("--chip", required=True, metavar="ID", help="The chip that ran the kernels.")
@click.option("--dtype", metavar="DTYPE", help="That tensor cores compute in; default: counted.")
@click.option("--config", metavar="CONFIG", help="A config with the chip under `chips:`.")
@click.option("-o", "--out", metavar="FILE", help="Write all columns as Parquet.")
@frame_options
def command(  # noqa: PLR0913, the options
    *,
    file: str,
    chip: str,
    dtype: str | None,
    config: str | None,
    out: str | None,
    csv: bool,
    json_: bool,
) -> None:
    """Show which share of the roofline the kernels of a profile reach, and what bounds them.

    FILE is what Nsight Compute prints as CSV, of the page raw or details, with the counters
    gpu__time_duration.sum, dram__bytes_read.sum, dram__bytes_write.sum and those of operations:
    sm__ops_path_tensor_src_<dtypes>.sum of tensor cores, and
    sm__sass_thread_inst_executed_op_{fadd,fmul,ffma}_pred_on.sum (hadd, dadd, ...) of threads.
    """
    from rooflines import api  # noqa: PLC0415, help does not wait for polars
    from rooflines.config import load_config  # noqa: PLC0415, the same
    from rooflines.model.measured_columns import KERNELS  # noqa: PLC0415, the same
    from rooflines.results.tables import write_parquet  # noqa: PLC0415, the same
    from rooflines.run.jobs import about  # noqa: PLC0415, the same

    frame = api.kernels(file, chip, dtype, load_config(config) if config else None)
    if out is not None:
        write_parquet(frame.lazy(), out, about([], KERNELS, chip=chip))
    print_frame(frame, _text(frame, chip), csv=csv, json_=json_)


def _text(frame: pl.DataFrame, chip: str) -> str:
    """A line for each kernel, then the share of all of them."""
    from rooflines.basics.errors import printable  # noqa: PLC0415, as above
    from rooflines.basics.text import counted, seconds, si, significant  # noqa: PLC0415, as above

    rows = [
        (
            printable(row["kernel"]),
            f"{row['launches']:,}",
            seconds(row["seconds"]),
            si(row["flops"], ""),
            si(row["memory_bytes"], "B"),
            "-" if row["memory_intensity"] is None else significant(row["memory_intensity"]),
            si(row["flops_per_s"], ""),
            "-" if row["compute"] is None else f"{row['compute']}, {row['unit']}",
            row["bound"],
            f"{row['roof_share']:.1%}",
        )
        for row in frame.to_dicts()
    ]
    table = as_table((*NAMES, "share of roof"), rows, width())
    total, least = float(frame["seconds"].sum()), float(frame["t_lower_s"].sum())
    kernels = counted(frame.height, "kernel")
    bound = f"at least {seconds(least)} on {chip}, {least / total:.1%} of it"
    lines = [f"{kernels} in {seconds(total)}; {bound}"]
    above = frame.filter(frame["roof_share"] > 1).height
    if above:
        lines.append(
            f"{counted(above, 'kernel')} above the roof: another chip or dtype, operands in cache, "
            "or a clock above that of the peak"
        )
    return "\n".join([table, "", *lines])
