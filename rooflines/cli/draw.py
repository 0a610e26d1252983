"""`rooflines draw`: the charts of finished results in other formats, sizes and themes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Collection

EXAMPLES = """
\b
Examples:
  rooflines draw
  rooflines draw roofline-model-shapes --format svg --size paper
  rooflines draw --format png --scale 3 --dark -o slides
"""

MOST_SCALE = 8
"""Limit of the scale [1]: a slide then has 59 million pixels."""


@click.command(
    "draw", epilog=EXAMPLES, short_help="Draw charts of finished results in another format or size."
)
@click.argument("charts", nargs=-1, metavar="[CHART...]")
@click.option(
    "--format",
    "form",
    default="pdf",
    metavar="FORMAT",
    help="png, svg, pdf or html (a page of its own, with menus); default pdf.",
)
@click.option(
    "--size",
    metavar="SIZE",
    help="slide, web or paper; default slide for png and svg, paper for pdf, web for html.",
)
@click.option("--dark", is_flag=True, help="A dark background.")
@click.option("--scale", type=float, metavar="N", help="Pixels of png per pixel of the size.")
@click.option(
    "--results", default="results", metavar="FOLDER", help="Where the results are; default results."
)
@click.option(
    "-o", "--output", default="pictures", metavar="FOLDER", help="Where to write; default pictures."
)
def command(  # noqa: PLR0913, the options
    *,
    charts: tuple[str, ...],
    form: str,
    size: str | None,
    scale: float | None,
    results: str,
    output: str,
    dark: bool,
) -> None:
    """Draw charts of finished results, all of them or some, in another format, size or theme.

    CHART is the name of its files in `results/charts`. Pictures of the same name in the output
    folder are replaced.
    """
    from rooflines.charts.kit.render import PNG_SCALE  # noqa: PLC0415, help is fast
    from rooflines.results.atomic import write_bytes  # noqa: PLC0415, the same
    from rooflines.settings.charts import FORMATS  # noqa: PLC0415, the same

    files = _specifications(Path(results))
    _check(charts, files, form, size, scale)
    for name in charts or files:
        drawn = _drawn(files[name], form, size or FORMATS[form], dark, scale or PNG_SCALE)
        path = Path(output) / f"{name}{'-dark' if dark else ''}.{form}"
        write_bytes(path, drawn)
        click.echo(path)


def _specifications(results: Path) -> dict[str, Path]:
    """The files with the specifications of charts, by the name of the chart.

    Beside a specification the data of its chart for the site may be.

    Raises:
        RooflinesError: There are none.
    """
    from rooflines.basics.errors import RooflinesError  # noqa: PLC0415, as above
    from rooflines.charts.every_chip import EVERY_CHIP  # noqa: PLC0415, the same

    files = sorted((results / "charts").glob("*/*.json"))
    charts = [file for file in files if file.name != "index.json"]
    data = {file.with_name(f"{file.stem}{EVERY_CHIP}") for file in charts}
    specs = {file.stem: file for file in charts if file not in data}
    if not specs:
        fix = "make them with `rooflines run`, or give the folder of results with --results"
        raise RooflinesError("", "has no charts", fix, file=str(results))
    return specs


def _check(
    charts: tuple[str, ...],
    known: Collection[str],
    form: str,
    size: str | None,
    scale: float | None,
) -> None:
    """Refuse wrong arguments, all in one message.

    Raises:
        RooflinesError: A name or a number is wrong.
    """
    from rooflines.basics.errors import Mistakes, RooflinesError, check_known, one_of  # noqa: PLC0415, as above
    from rooflines.charts.kit.themes import SIZES  # noqa: PLC0415, the same
    from rooflines.settings.charts import FORMATS  # noqa: PLC0415, the same

    with Mistakes() as mistakes:
        with mistakes.at("chart"):
            check_known(charts, known, "no chart of these results")
        with mistakes.at("--format"):
            one_of(form, FORMATS, "no format")
        with mistakes.at("--size"):
            one_of(size or FORMATS["png"], SIZES, "no size")
        with mistakes.at("--scale"):
            if scale is not None and form in FORMATS and form != "png":
                problem = f"is given for {form}, which has no pixels"
                raise RooflinesError("", problem, "leave it out, or write --format png")
            if scale is not None and not 0 < scale <= MOST_SCALE:
                fix = f"write a number above 0, {MOST_SCALE} at most"
                raise RooflinesError("", f"is {scale:g}", fix)


def _drawn(file: Path, form: str, size: str, dark: bool, scale: float) -> bytes | str:  # noqa: FBT001, those of `picture`
    """The picture of a specification.

    Raises:
        RooflinesError: The file has none: it is damaged, or of another program.
    """
    from rooflines.basics.errors import RooflinesError  # noqa: PLC0415, as above
    from rooflines.charts.kit.render import picture  # noqa: PLC0415, the same
    from rooflines.results.provenance import unreadable  # noqa: PLC0415, the same

    try:
        spec = json.loads(file.read_text(encoding="utf-8"))
        return picture(spec, form, size, dark=dark, scale=scale)
    except OSError as error:
        raise unreadable(file, error) from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        fix = "make it again with `rooflines run`"
        raise RooflinesError("", "is no specification of a chart", fix, file=str(file)) from None
