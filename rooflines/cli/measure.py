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

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooflines.measured.blas import Dtype
    from rooflines.measured.session import Session

EXAMPLES = """
\b
Examples:
  rooflines measured measure
  rooflines measured measure --budget 30 --dtypes fp32
  rooflines measured measure --shapes sites.csv --out measured/mine.parquet
"""

FOLDER = "measured"
"""Where a file is written by default."""

LONGEST_S = 0.25
"""About the longest time of a matmul that is chosen [s]."""

DRIFT = 0.1
"""Drift of the reference shape's time over a session from which on a warning is printed [1]."""


@click.command(
    "measure",
    epilog=EXAMPLES,
    short_help="Time matmuls on this machine, and describe it as a chip.",
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
    from rooflines.basics.errors import (  # noqa: PLC0415, help is fast
        INTERRUPTED,
        RooflinesError,
        check_known,
        placed,
    )
    from rooflines.measured.blas import DTYPES  # noqa: PLC0415, the same
    from rooflines.measured.machine import require_numpy, this_machine  # noqa: PLC0415, the same
    from rooflines.measured.session import Session  # noqa: PLC0415, the same

    require_numpy()
    chosen = [known for known in DTYPES if known in dtypes.split(",")]
    with placed("--dtypes"):
        check_known(dtypes.split(","), DTYPES, "no dtype that numpy multiplies with BLAS")
    machine = this_machine()
    path = Path(out or f"{FOLDER}/{machine.id}.parquet")
    with placed("--out"):
        if path.suffix != ".parquet":
            problem = f"is {str(path)!r}, which has not the suffix .parquet"
            raise RooflinesError("", problem, "name a Parquet file")
    click.echo(f"{machine.name}, {machine.threads} threads, {machine.version}")
    session = Session.opened(path, machine, _about())
    try:
        for dtype in chosen:
            _time(session, dtype, budget, shapes)
    except KeyboardInterrupt:
        count = session.frame.height
        click.echo(
            f"Interrupted: {count} timings are in {path}; the same command goes on.", err=True
        )
        return INTERRUPTED
    _finish(session)
    return 0


def _about() -> dict[str, Any]:
    """How timings are made, for the metadata of their file."""
    from rooflines.basics.version import __version__  # noqa: PLC0415, as above

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
    from rooflines.measured.blas import Blas, flops_per_s  # noqa: PLC0415, as above
    from rooflines.measured.session import REFERENCE  # noqa: PLC0415, the same
    from rooflines.measured.shapes import chosen_shapes, read_shapes  # noqa: PLC0415, the same

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
    """Shows the timings done: a line that is replaced on a terminal, few lines in a file."""
    from rooflines.run.progress import duration  # noqa: PLC0415, as above
    from rooflines.run.screen import Screen, is_screen  # noqa: PLC0415, the same

    start = time.monotonic()
    screen = Screen(sys.stderr) if is_screen(sys.stderr) else None

    def show(done: int) -> None:
        rest = duration((time.monotonic() - start) / done * (left - done))
        line = f"{dtype}: {count - left + done} of {count} shapes"
        line += f", about {rest} left" if done < left else ""
        if screen:
            screen.show(line if done < left else "")
        if not screen or done == left:
            click.echo(line, err=True)

    return show


def _finish(session: Session) -> None:
    """Show the machine's rates, write its config, and calibrate."""
    from rooflines.basics.text import si  # noqa: PLC0415, as above
    from rooflines.measured.entry import config_text  # noqa: PLC0415, the same
    from rooflines.results.atomic import atomic_file  # noqa: PLC0415, the same
    from rooflines.results.records import unrecorded  # noqa: PLC0415, the same

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
    with unrecorded(), atomic_file(config) as temporary:
        temporary.write_text(config_text(about), encoding="utf-8")
    click.echo(f"{session.path}: {session.frame.height} timings")
    click.echo(f"{config}: the machine as a chip, and a sweep of it")
    _calibrate(session)


def _calibrate(session: Session) -> None:
    """Fit the timings, show the errors, and write the fit, if scipy is installed."""
    import polars as pl  # noqa: PLC0415, as above

    from rooflines.cli.calibrate import FOLDER as FITS  # noqa: PLC0415, the same
    from rooflines.cli.calibrate import shown, write_fits  # noqa: PLC0415, the same
    from rooflines.fits.calibrate import FitRequest, calibrate  # noqa: PLC0415, the same
    from rooflines.fits.entries import key_of  # noqa: PLC0415, the same
    from rooflines.fits.read import read_timings  # noqa: PLC0415, the same
    from rooflines.measured.entry import chip_of  # noqa: PLC0415, the same

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
    results = calibrate(request)
    click.echo(
        "\n".join(
            ["", *(line for result in results for line in shown(key_of(chip, software), result))]
        )
    )
    path = Path(FITS) / f"{chip}-{software}.yaml"
    write_fits(path, key_of(chip, software), results)
    click.echo(f"{path}: the calibration")
