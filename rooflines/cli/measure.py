"""`rooflines measured measure`: timings of matmuls on this machine."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import polars as pl

from rooflines.basics.errors import INTERRUPTED, at_path, check_known
from rooflines.basics.text import si
from rooflines.basics.version import __version__
from rooflines.cli.calibrate import FOLDER as FITS
from rooflines.cli.calibrate import fit_and_write
from rooflines.cli.output import examples, format_of
from rooflines.fits.calibrate import FitRequest
from rooflines.fits.entries import key_of
from rooflines.fits.read import read_timings
from rooflines.measured.blas import DTYPES, Blas, flops_per_s
from rooflines.measured.machine import chip_of, config_text, require_numpy, this_machine
from rooflines.measured.session import REFERENCE, Session
from rooflines.measured.shapes import chosen_shapes, read_shapes
from rooflines.results.atomic import write_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooflines.measured.blas import Dtype

FOLDER = "measured"
"""Where a file is written by default."""

LONGEST_S = 0.25
"""About the longest time of a matmul that is chosen [s]."""

DRIFT = 0.1
"""Drift of the reference shape's time over a session from which on a warning is printed [1]."""


@click.command(
    "measure",
    epilog=examples(
        "rooflines measured measure",
        "rooflines measured measure --budget 30 --dtypes fp32",
        "rooflines measured measure --shapes sites.csv --out measured/mine.parquet",
    ),
)
@click.option(
    "--budget", type=click.IntRange(1), default=100, help="Shapes in every dtype; default 100."
)
@click.option("--shapes", metavar="FILE", help="CSV with columns D, F and, if you like, B.")
@click.option("--dtypes", metavar="DTYPES", default="fp32,fp64", help="Default: fp32,fp64.")
@click.option(
    "-o", "--out", metavar="FILE", help=f"Default: {FOLDER}/<machine>.parquet; goes on with it."
)
def command(budget: int, shapes: str | None, dtypes: str, out: str | None) -> int:
    """Time matmuls on this machine's processor, with numpy, and calibrate on them.

    Writes the timings as Parquet, and beside it a config with the machine as a chip: its peak by
    the fastest run, its memory rate by adding and reading long arrays. Operands are in no cache;
    a time is the median of interleaved runs. Ctrl-C keeps what is there, and the same command goes
    on with it. Anything else that runs meanwhile is in the numbers.
    """
    require_numpy()
    chosen = [known for known in DTYPES if known in dtypes.split(",")]
    with at_path("--dtypes"):
        check_known(dtypes.split(","), DTYPES, "no dtype that numpy multiplies with BLAS")
    machine = this_machine()
    path = Path(out or f"{FOLDER}/{machine.id}.parquet")
    format_of(path, ["parquet"])
    click.echo(f"{machine.name}, {machine.threads} threads, {machine.version}")
    session = Session.opened(path, machine, _about())
    try:
        for dtype in chosen:
            _time(session, dtype, budget, shapes)
    except KeyboardInterrupt:
        count = session.frame.height
        said = f"Interrupted: {count} timings are in {path}; the same command goes on."
        click.echo(said, err=True)
        return INTERRUPTED
    _finish(session)
    return 0


def _about() -> dict[str, Any]:
    """How timings are made, for the metadata of their file."""
    return {
        "version": __version__,
        "command": shlex.join(["rooflines", *sys.argv[1:]]),
        "date": datetime.now(tz=UTC).date().isoformat(),
        "timer": "wall",
        "operands": "in no cache",
        "data": "uniform between -0.5 and 0.5",
        "most_flops": {},
    }


def _time(session: Session, dtype: Dtype, budget: int, file: str | None) -> None:
    """Time the shapes of a dtype that a session lacks, and show how far it is."""
    shapes, sites = read_shapes(Path(file)) if file else ([], [])
    if not shapes:
        most = session.about["most_flops"]
        if dtype not in most:
            most[dtype] = LONGEST_S * flops_per_s(dtype, REFERENCE)
        shapes = chosen_shapes(budget, sites, most[dtype], dtype)
    left = session.missing(dtype, shapes)
    if left:
        blas = Blas(dtype, session.machine, [REFERENCE, *left])
        session.time(blas, left, _progress(dtype, len(shapes), len(left)))


def _progress(dtype: str, count: int, left: int) -> Callable[[int], None]:
    """Shows the timings done, a line each time."""
    start = time.monotonic()

    def show(done: int) -> None:
        rest_s = (time.monotonic() - start) / done * (left - done)
        line = f"{dtype}: {count - left + done} of {count} shapes"
        click.echo(f"{line}, about {rest_s:.0f} s left" if rest_s else line, err=True)

    return show


def _finish(session: Session) -> None:
    """Show the machine's rates, write its config, and calibrate."""
    about, cache = session.about, session.machine.cache_bytes
    rates = [f"{dtype} {si(rate, 'FLOP/s')}" for dtype, rate in about["flops_per_s"].items()]
    rates.append(f"memory {si(about['bytes_per_s'], 'B/s')}")
    rates.append(f"last-level cache {si(cache, 'B')}" if cache else "last-level cache not reported")
    click.echo(", ".join(rates))
    for dtype, times in about["reference_s"].items():
        drift = max(times) / min(times) - 1
        if drift > DRIFT:
            why = "the machine was busy, or its clock changed"
            click.echo(f"{dtype}: the same matmul took up to {drift:.0%} longer: {why}")
    config = session.path.with_suffix(".yaml")
    write_bytes(config, config_text(about))
    click.echo(f"{session.path}: {session.frame.height} timings")
    click.echo(f"{config}: the machine as a chip, and a sweep of it")
    _calibrate(session)


def _calibrate(session: Session) -> None:
    """Fit the timings, show the errors, and write the fit, if scipy is installed."""
    if find_spec("scipy") is None:
        click.echo("To calibrate on them: install scipy, as `make setup` does, and measure again")
        return
    chip, software = session.about["chip"], session.machine.software
    timings = read_timings(session.path)
    several = timings.frame.filter(pl.col("B") > 1)
    request = FitRequest(
        replace(timings, frame=several),
        chip,
        chip_of(session.about),
        "rooflines measured measure",
        session.about["date"],
    )
    click.echo()
    fit_and_write(request, key_of(chip, software), Path(FITS) / f"{chip}-{software}.yaml")
