"""`rooflines draw`: the charts of finished results in other formats, sizes and themes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rooflines import charts
from rooflines.basics.errors import Mistakes, RooflinesError, at_path, check_choice, check_choices
from rooflines.charts.chart_files import SPEC
from rooflines.charts.kit.render import PNG_SCALE, picture
from rooflines.charts.kit.themes import SIZES
from rooflines.cli.output import WithExamples, picture_options
from rooflines.config.chart_fields import FORMATS
from rooflines.results.atomic import write_bytes
from rooflines.results.provenance import read_error

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

MAX_SCALE = 8
"""Limit of the scale [1]: a slide then has 59 million pixels."""


@click.command("draw", cls=WithExamples)
@click.argument("charts", nargs=-1, metavar="[CHART...]")
@click.option(
    "--format",
    "form",
    default="pdf",
    metavar="FORMAT",
    help="png, svg, pdf or html (a page of its own); default pdf.",
)
@click.option(
    "--set",
    "chosen",
    multiple=True,
    metavar="MENU=OPTION",
    help="Another option of a menu, such as chip=b200; any number of them.",
)
@picture_options
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
    chosen: tuple[str, ...],
    size: str | None,
    scale: float | None,
    results: str,
    output: str,
    dark: bool,
) -> None:
    """Draw charts of finished results, all of them or some, in another format, size or theme.

    CHART is the name of its files in `results/charts`. With --set another view of it is drawn,
    of any chip and dtypes of its sweep; of all charts, those without the menu or the option are
    left out, and named. Pictures of the same name are replaced.

    Examples:
        rooflines draw
        rooflines draw roofline-model-shapes --format svg --size paper
        rooflines draw roofline-model-shapes --set chip=b200 --set dtypes=fp8
        rooflines draw --format png --scale 3 --dark -o slides
    """
    files = _specifications(Path(results))
    _check(charts, files, form, size, scale)
    specs = _with_options(charts, files, chosen) if chosen else {}
    for name in specs or charts or files:
        spec = specs[name] if specs else _stored(files[name])
        try:
            drawn = picture(spec, form, size or FORMATS[form], dark=dark, scale=scale or PNG_SCALE)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise _damaged(files[name]) from None
        words = [name, *(_plain(text.partition("=")[2]) for text in chosen)]
        path = Path(output) / f"{'-'.join(words)}{'-dark' if dark else ''}.{form}"
        write_bytes(path, drawn)
        click.echo(path)


def _specifications(results: Path) -> dict[str, Path]:
    """Specification files by chart name.

    Raises:
        RooflinesError: There are none.
    """
    files = sorted((results / "charts").glob(f"*/*{SPEC}"))
    specs = {file.name.removesuffix(SPEC): file for file in files}
    if not specs:
        fix = "make them with `rooflines run`, or give the folder of results with --results"
        raise RooflinesError("", "has no charts", fix, file=str(results))
    return specs


def _with_options(
    charts: Sequence[str], files: Mapping[str, Path], chosen: Sequence[str]
) -> dict[str, Any]:
    """Chart specifications with the chosen menu options, by chart name, before any is drawn.

    Args:
        charts: The charts to draw, each of which has to have the options; none: all that have them.
        files: The files with the specifications of charts, by name.
        chosen: Menus with an option each, `menu=option`.

    Raises:
        RooflinesError: A chart of `charts`, or every chart, lacks a menu or an option.
    """
    specs: dict[str, Any] = {}
    lacking: dict[str, RooflinesError] = {}
    for name in charts or files:
        try:
            specs[name] = _chosen(files[name], chosen)
        except RooflinesError as error:
            if charts:
                raise
            lacking[name] = error
    if lacking and not specs:
        raise next(iter(lacking.values()))
    if lacking:
        click.echo(f"left out, without {' '.join(chosen)}: {', '.join(lacking)}", err=True)
    return specs


def _plain(text: str) -> str:
    """Option as part of a file name."""
    return re.sub(r"[^\w.]+", "-", text).strip("-")


def _chosen(file: Path, chosen: Sequence[str]) -> dict[str, Any]:
    """Specification for another view in a chart.

    Args:
        file: That of its first view, beside the index of its kind.
        chosen: Menus with an option each, `menu=option`.

    Raises:
        RooflinesError: There is no such menu or option.
    """
    name = file.name.removesuffix(SPEC)
    index = json.loads(file.with_name("index.json").read_text(encoding="utf-8"))
    entry = next((entry for entry in index if entry["id"] == name), None)
    if entry is None:
        raise RooflinesError("", "is in no index of charts", "run again", file=str(file))
    results = charts.on_disk(file.parents[2])
    source = entry["sweep"]
    kind, choices = entry["chart"], {param["name"]: param["value"] for param in entry["params"]}
    choices = {menu: option for menu, option in choices.items() if option is not None}
    chosen_options = dict(text.partition("=")[::2] for text in chosen)
    with at_path("--set"):
        choices = {menu: option for menu, option in choices.items() if menu not in chosen_options}
        for menu, text in chosen_options.items():
            menus = charts.menus(kind, results, source, **choices)
            options = next((candidate.options for candidate in menus if candidate.name == menu), ())
            choices[menu] = next((option for option in options if str(option) == text), text)
        menu_names = {menu.name for menu in charts.menus(kind, results, source, **choices)}
        choices = {
            menu: option
            for menu, option in choices.items()
            if menu in {*menu_names, *chosen_options}
        }
        return charts.view(kind, results, source, chips=entry["chips"], **choices).spec()


def _check(
    charts: tuple[str, ...],
    names: Collection[str],
    form: str,
    size: str | None,
    scale: float | None,
) -> None:
    """Refuse wrong arguments, all in one message.

    Raises:
        RooflinesError: A name or a number is wrong.
    """
    with Mistakes() as mistakes:
        with mistakes.at("chart"):
            check_choices(charts, names, "no chart of these results")
        with mistakes.at("--format"):
            check_choice(form, FORMATS, "no format")
        with mistakes.at("--size"):
            check_choice(size or FORMATS["png"], SIZES, "no size")
        with mistakes.at("--scale"):
            if scale is not None and form in FORMATS and form != "png":
                problem = f"is given for {form}, which has no pixels"
                raise RooflinesError("", problem, "leave it out, or write --format png")
            if scale is not None and not 0 < scale <= MAX_SCALE:
                fix = f"write a number above 0, {MAX_SCALE} at most"
                raise RooflinesError("", f"is {scale:g}", fix)


def _stored(file: Path) -> Any:  # noqa: ANN401, what a damaged file has is found when it is drawn
    """Read a specification file.

    Raises:
        RooflinesError: The file cannot be read, or is no JSON.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise read_error(str(file), error) from None
    except (ValueError, RecursionError):
        raise _damaged(file) from None


def _damaged(file: Path) -> RooflinesError:
    """The file of a chart is damaged, or of another program."""
    fix = "make it again with `rooflines run`"
    return RooflinesError("", "is no specification of a chart", fix, file=str(file))
