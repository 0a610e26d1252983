"""`rooflines origin`: what made files, and whether they are as they were written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflines.basics.errors import printable
from rooflines.cli.output import WithExamples
from rooflines.results.provenance import check_results, origin, read_error
from rooflines.results.records import RECORDS_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooflines.results.provenance import Origin


@click.command("origin", cls=WithExamples)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=Path)
@click.option("--check", is_flag=True, help="Say only whether they are as they were written.")
@click.option("--all", "whole_text", is_flag=True, help="Print all configs and numbers.")
def command(files: tuple[Path, ...], *, check: bool, whole_text: bool) -> int:
    """Print what made a file, and verify that it is unchanged.

    FILE is a table, a chart or a CSV file; or a results folder, to check all that is in it. The
    exit status is 0 if everything is as it was written, else 1. Sweeps, chips, models and sources
    are named; --all prints their configs and numbers.

    Examples:
        rooflines origin results/thresholds.parquet
        rooflines origin results/charts/roofline
        rooflines origin results
    """
    whole = True
    for number, file in enumerate(files):
        try:
            if (file / RECORDS_FOLDER).is_dir():
                whole &= _print_check(file, check_results(file))
                continue
            record = origin(file)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise read_error(error.filename, error) from None
        whole &= record.whole
        lines = [f"{file} {record.verdict}"] if check else _lines(record, whole=whole_text)
        click.echo("\n".join(map(printable, ["---"] * (number > 0 and not check) + lines)))
    return 0 if whole else 1


def _lines(record: Origin, *, whole: bool) -> list[str]:
    """Lines in an origin: names, or `whole` configs and numbers."""
    lines = record.text().rstrip().split("\n")
    names = record.summary().rstrip().split("\n")
    return lines if whole or lines == names else [*names, f"# all {len(lines):,} lines: --all"]


def _print_check(folder: Path, checked: Iterable[tuple[Path, str | None]]) -> bool:
    """Print what is wrong in a results folder; return whether nothing is."""
    count = bad = 0
    for path, problem in checked:
        count += 1
        if problem:
            bad += 1
            click.echo(f"{printable(path)} {printable(problem)}")
    verdict = f"{bad:,} of them not as they were written" if bad else "all as they were written"
    click.echo(f"{printable(folder)}: {count:,} outputs read, {verdict}")
    return not bad
