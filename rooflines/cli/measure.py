"""`rooflines measured measure`: timings of matmuls on this machine."""

from __future__ import annotations

import shlex
import sys
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import polars as pl

from rooflines.answers.name_search import find_chip
from rooflines.basics.errors import INTERRUPTED, RooflinesError, at_path, check_choices
from rooflines.basics.file_kinds import check_kind
from rooflines.basics.text import counted, si, whole_percent
from rooflines.basics.version import __version__
from rooflines.cli.calibrate import CALIBRATIONS_FOLDER, fit_and_write
from rooflines.cli.output import WithExamples, format_of, one_chip
from rooflines.fits.calibrate import FitRequest
from rooflines.fits.fit_keys import FitKey
from rooflines.fits.timing_tables import read_timings
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.measured.blas import Blas
from rooflines.measured.gpu import Gpu
from rooflines.measured.machine import chip_of, config_text, timings_source
from rooflines.measured.multiplier import REFERENCE
from rooflines.measured.session import Session
from rooflines.measured.timed_shapes import choose_shapes, cost, read_shapes
from rooflines.results.atomic import write_bytes
from rooflines.theory.operation import MATRIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooflines.measured.machine import Host
    from rooflines.measured.multiplier import Multiplier

BACKENDS: dict[str, type[Multiplier]] = {"numpy": Blas, "torch": Gpu}
"""Multipliers by library."""

FOLDER = "measured"
"""Default output folder."""

MAX_TIME_S = 0.25
"""About the longest time of a matmul that is chosen [s]."""

DRIFT = 0.1
"""Drift of the reference shape's time over a session from which on a warning is printed [1]."""


@click.command("measure", cls=WithExamples)
@click.option(
    "--budget", type=click.IntRange(1), default=100, help="Shapes in every dtype; default 100."
)
@click.option("--shapes", metavar="FILE", help="CSV with columns D, F and, if you like, B.")
@click.option(
    "--dtypes",
    metavar="DTYPES",
    help="Default: fp32,fp64 of numpy; bf16,fp8-out-bf16 of torch where the GPU has them.",
)
@click.option(
    "--backend",
    type=click.Choice(tuple(BACKENDS)),
    help="numpy on the processor, or torch on the GPU; default: torch where it sees a GPU.",
)
@click.option(
    "--chip", metavar="ID", help="The chip of the catalogue that this is; default: by its name."
)
@click.option(
    "-o", "--out", metavar="FILE", help=f"Default: {FOLDER}/<machine>.parquet; goes on with it."
)
def command(  # noqa: PLR0913, the options
    *,
    budget: int,
    shapes: str | None,
    dtypes: str | None,
    backend: str | None,
    chip: str | None,
    out: str | None,
) -> int:
    """Time matmuls on this machine's GPU or processor, and calibrate on them.

    Writes the timings as Parquet, and beside it a config with a sweep of the machine; where the
    catalogue lacks it also the machine as a chip: its peak by the fastest run, its memory rate by
    adding and reading long arrays. Operands are in no cache; a time is the median of interleaved
    runs. Ctrl-C keeps what is there, and the same command goes on with it. Anything else that runs
    meanwhile is in the numbers.

    Examples:
        rooflines measured measure
        rooflines measured measure --budget 30 --dtypes fp32
        rooflines measured measure --shapes sites.csv --out measured/mine.parquet
        rooflines measured measure --backend torch --dtypes bf16,fp8-out-bf16 --budget 300
    """
    if shapes:
        check_kind(shapes, "shapes")
    multiplier = BACKENDS[backend] if backend else _default_backend()
    machine = multiplier.machine()
    names = (dtypes or multiplier.default_dtypes()).split(",")
    with at_path("--dtypes"):
        library = next(name for name, candidate in BACKENDS.items() if candidate is multiplier)
        problem = f"no dtype that {library} multiplies here"
        check_choices(names, multiplier.COMBINATIONS, problem)
    machine_id = _id_of(machine)
    chip_id = one_chip("--chip", chip) if chip else machine_id
    if chip_id != machine_id:
        click.echo(f"{machine.name} is measured as {chip_id}, as --chip says", err=True)
    path = Path(out or f"{FOLDER}/{chip_id}-{machine.software}.parquet")
    format_of(path, ["parquet"])
    unit = f", {counted(machine.threads, 'thread')}" if machine.threads else ""
    click.echo(f"{machine.name}{unit}, {machine.version}")
    session = Session.resume(path, machine, chip_id, _about(multiplier))
    try:
        for name in dict.fromkeys(names):
            _time(session, multiplier, name, budget, shapes)
    except KeyboardInterrupt:
        count = session.frame.height
        message = f"Interrupted: {count} timings are in {path}; run the same command to continue."
        click.echo(message, err=True)
        return INTERRUPTED
    _finish(session, multiplier)
    return 0


def _id_of(machine: Host) -> str:
    """Chip id for a machine: from the catalogue by its driver's name, else its own."""
    match = find_chip(machine.name, chip_entries())
    return match.name if match else machine.id


def _default_backend() -> type[Multiplier]:
    """Multiplier for torch where it sees a GPU, else for numpy."""
    if find_spec("torch") is not None:
        with suppress(RooflinesError):
            Gpu.machine()
            return Gpu
    return Blas


def _about(multiplier: type[Multiplier]) -> dict[str, Any]:
    """Measurement method, for the metadata in the timings file."""
    return {
        "version": __version__,
        "command": shlex.join(["rooflines", *sys.argv[1:]]),
        "date": datetime.now(tz=UTC).date().isoformat(),
        "timer": multiplier.TIMER,
        "operands": "in no cache",
        "data": "uniform between -0.5 and 0.5",
        "most_flops": {},
    }


def _time(
    session: Session, multiplier: type[Multiplier], dtypes: str, budget: int, file: str | None
) -> None:
    """Time the shapes of a dtype combination that a session lacks, and show how far it is."""
    shapes, sites = read_shapes(Path(file)) if file else ([], [])
    if not shapes:
        max_flops = session.about["most_flops"]
        if dtypes not in max_flops:
            alone = multiplier(dtypes, session.machine, [REFERENCE])
            alone.seconds(REFERENCE)
            rate = cost(REFERENCE, dtypes, "flops") / alone.seconds(REFERENCE)
            max_flops[dtypes] = MAX_TIME_S * rate
        shapes = choose_shapes(budget, multiplier.SHAPE_RANGE, sites, max_flops[dtypes], dtypes)
    left = session.missing(dtypes, shapes)
    if left:
        timed = multiplier(dtypes, session.machine, [REFERENCE, *left])
        session.time(timed, left, _progress(dtypes, len(shapes), len(left)))


def _progress(dtype: str, count: int, left: int) -> Callable[[int], None]:
    """Shows the timings done, a line each time."""
    start = time.monotonic()

    def show(done: int) -> None:
        rest_s = (time.monotonic() - start) / done * (left - done)
        line = f"{dtype}: {count - left + done} of {count} shapes"
        click.echo(f"{line}, about {rest_s:.0f} s left" if rest_s else line, err=True)

    return show


def _finish(session: Session, multiplier: type[Multiplier]) -> None:
    """Show the machine's rates, calibrate, and write a config."""
    click.echo("\n".join(_rates(session)))
    for dtypes, times in session.about["reference_s"].items():
        drift = max(times) / min(times) - 1
        if drift > DRIFT:
            why = "the machine was busy, or its clock changed"
            click.echo(
                f"{dtypes}: the reference matmul drifted by up to {whole_percent(drift)}: {why}"
            )
    click.echo(f"{session.path}: {session.frame.height} timings")
    fits = _calibrate(session, multiplier)
    config = session.path.with_suffix(".yaml")
    near = Path(relpath(fits, config.parent)).as_posix() if fits else None
    write_bytes(config, config_text(session.about, near))
    click.echo(f"{config}: a sweep of the machine")
    if fits:
        options = f"--config {config} --calibration {session.machine.software}"
        sizes = "128x8192x8192"
        dtypes = next(iter(session.about["reference_s"]))
        click.echo(f"\nrooflines explain {session.about['chip']} {sizes} {dtypes} {options}")


def _rates(session: Session) -> Iterator[str]:
    """Fastest rates, and their shares in the data sheet's rates."""
    about, machine = session.about, session.machine
    chip = chip_entries().get(about["chip"])
    for dtype, rate in about["flops_per_s"].items():
        peak = chip and chip.units.get(MATRIX, {}).get(dtype)
        yield _rate(dtype, rate, "FLOP/s", peak.flops_per_s if peak else None)
    sheet = chip.memory[MAIN_MEMORY].bytes_per_s if chip else None
    yield _rate("memory", about["bytes_per_s"], "B/s", sheet)
    for dtypes, watts in about["watts"].items():
        yield f"{dtypes} draws up to {watts:.0f} W"
    cache = machine.cache_bytes
    yield f"last-level cache {si(cache, 'B')}" if cache else "last-level cache not reported"


def _rate(label: str, rate: float, unit: str, sheet: float | None) -> str:
    """A rate, beside that of the data sheet."""
    share = (
        f", {whole_percent(rate / sheet)} of the data sheet's {si(sheet, unit)}" if sheet else ""
    )
    return f"{label} {si(rate, unit)}{share}"


def _calibrate(session: Session, multiplier: type[Multiplier]) -> Path | None:
    """Fit the timings, show the errors, and write the fit, if scipy is installed.

    Returns:
        The file of the fit; None without scipy.
    """
    if find_spec("scipy") is None:
        click.echo("To calibrate on them: install scipy, as `make setup` does, and measure again")
        return None
    about, software = session.about, session.machine.software
    chip = about["chip"]
    timings = read_timings(session.path)
    within = timings.frame.filter(pl.col("B") >= multiplier.SHAPE_RANGE.rows[0])
    request = FitRequest(
        replace(timings, frame=within), chip, chip_of(about), timings_source(about), about["date"]
    )
    click.echo()
    key = FitKey.checked(chip, software)
    path = Path(CALIBRATIONS_FOLDER) / key.file_name
    fit_and_write(request, key, path)
    return path
