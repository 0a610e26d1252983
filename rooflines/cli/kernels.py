"""`rooflines measured kernels`: profiled kernels on the roofline of a chip."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflines.cli.output import as_table, check_new, frame_options, print_frame, width

if TYPE_CHECKING:
    import polars as pl

EXAMPLES = """
\b
Examples:
  ncu --import report.ncu-rep --csv --page raw > kernels.csv
  rooflines measured kernels kernels.csv --chip h100-sxm
  rooflines measured kernels kernels.csv --chip b200 --dtype nvfp4 --out kernels.parquet
  rooflines measured kernels kernels.csv --chip h100-sxm --out kernels.html
"""

TABLE = "parquet"

NAMES = ("kernel", "launches", "time", "FLOP", "bytes", "FLOP/B", "FLOP/s", "peak of", "bound")


@click.command(
    "kernels", epilog=EXAMPLES, short_help="Put profiled kernels on the roofline of a chip."
)
@click.argument("file")
@click.option("--chip", required=True, metavar="ID", help="The chip that ran the kernels.")
@click.option("--dtype", metavar="DTYPE", help="That tensor cores compute in; default: counted.")
@click.option("--config", metavar="CONFIG", help="A config with the chip under `chips:`.")
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    help="Write the kernels on the roofline as .png, .svg, .pdf or .html, or a table as .parquet.",
)
@click.option(
    "--size",
    metavar="SIZE",
    help="Of the picture: slide, web or paper; default slide for png and svg, paper for pdf, web "
    "for html.",
)
@click.option("--dark", is_flag=True, help="A dark background of the picture.")
@click.option("--force", is_flag=True, help="Overwrite the file of --out.")
@frame_options
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

    form = _form(out, size, dark=dark)
    if out is not None:
        check_new(out, force=force)
    loaded = load_config(config, needs_sweeps=False) if config else None
    frame = api.kernels(file, chip, dtype, loaded)
    if out is not None and form == TABLE:
        write_parquet(frame.lazy(), out, about([], KERNELS, chip=chip))
    elif out is not None:
        from rooflines.basics.errors import placed  # noqa: PLC0415, as above
        from rooflines.charts.kit.render import limited, picture  # noqa: PLC0415, the same
        from rooflines.charts.profiled import kernels_view  # noqa: PLC0415, the same
        from rooflines.results.atomic import write_bytes  # noqa: PLC0415, as above
        from rooflines.settings.charts import FORMATS  # noqa: PLC0415, the same

        with placed(file=file):
            chips = loaded.chips if loaded else None
            drawn = kernels_view(frame, chip, chips)
        spec = limited(drawn.spec(), "kernels")
        write_bytes(out, picture(spec, form, size or FORMATS[form], dark=dark))
    print_frame(frame, _text(frame, chip), csv=csv, json_=json_)


def _form(out: str | None, size: str | None, *, dark: bool) -> str:
    """The format of a file by its suffix.

    Raises:
        RooflinesError: It has another suffix, or a size or theme is given without a picture.
    """
    from rooflines.basics.errors import Mistakes, RooflinesError, one_of  # noqa: PLC0415, as above
    from rooflines.charts.kit.themes import SIZES  # noqa: PLC0415, the same
    from rooflines.settings.charts import FORMATS  # noqa: PLC0415, the same

    form = TABLE if out is None else Path(out).suffix.removeprefix(".")
    with Mistakes() as mistakes:
        with mistakes.at("--out"):
            suffixes = ", ".join(f".{name}" for name in (*FORMATS, TABLE))
            one_of(form, (*FORMATS, TABLE), "no format", f"end the name in one of {suffixes}")
        for option, given in (("--size", size), ("--dark", dark)):
            with mistakes.at(option):
                if given and form == TABLE:
                    problem = "is given without a picture"
                    raise RooflinesError("", problem, "leave it out, or write --out kernels.png")
        with mistakes.at("--size"):
            if size is not None and form in FORMATS:
                one_of(size, SIZES, "no size")
    return form


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
