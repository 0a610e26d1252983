"""`rooflines measured calibrate`: numbers fitted to timings, for estimates of a chip."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflines.basics.file_kinds import check_kind
from rooflines.cli import output
from rooflines.fits.calibrate import FitRequest, calibrate
from rooflines.fits.calibration_files import (
    Calibrations,
    Fitted,
    calibrations_yaml,
    read_calibrations,
)
from rooflines.fits.fit_keys import FitKey
from rooflines.fits.least_squares import require_scipy
from rooflines.fits.time_form import FORMS
from rooflines.fits.timing_tables import read_timings
from rooflines.results.atomic import write_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.fits.calibrate import FitReport

CALIBRATIONS_FOLDER = "calibrations"
"""Default output folder."""

REGIONS = {
    "split": "  split",
    "region": "region",
    "n": "n",
    "bare_median": "bound: median error",
    "median": "estimate: median error",
    "mean": "mean",
    "p90": "p90",
}
"""Column titles on a screen for errors by region, by column."""


@click.command("calibrate", cls=output.WithExamples)
@click.argument("file")
@click.option("--chip", required=True, metavar="ID", help="The chip that was measured.")
@click.option("--software", required=True, metavar="NAME", help="The library that was measured.")
@click.option(
    "--dtype", metavar="DTYPE", help="Only this compute dtype; that of a table without any."
)
@click.option(
    "--form", type=click.Choice(("max", "pieces")), default="pieces", help="Default: pieces."
)
@click.option("--prior", metavar="FILE", help="Another fit to start from; for few timings.")
@click.option("--source", metavar="TEXT", help="Where the timings come from, licence included.")
@click.option(
    "--contents",
    metavar="TEXT",
    help="What the timings include besides, such as dynamic scaling of x; said with estimates.",
)
@output.config_option
@output.out_options(f"Default: {CALIBRATIONS_FOLDER}/<chip>-<software>.yaml.")
def command(  # noqa: PLR0913, the options
    *,
    file: str,
    chip: str,
    software: str,
    dtype: str | None,
    form: str,
    prior: str | None,
    source: str | None,
    contents: str | None,
    config: str | None,
    out: str | None,
    force: bool,
) -> None:
    """Fit the numbers of a chip and a software to timings, and write them as YAML.

    FILE is a table in Parquet or CSV with a row for each timing: chip, dtype_x, dtype_w, dtype_out,
    compute, B, D, F and seconds, optionally software and source; of collectives chip, collective,
    shards, bytes and seconds; of attention chip, phase, compute, cache, B, S, T, N, K, H and
    seconds. Or it is aiconfigurator's gemm_perf.parquet, vidur's mlp.csv, TraceLens' GEMM.csv, a
    table of m, n, k and us, or the text of nccl-tests or hipblaslt-bench, which name no chip: all
    timings are of the one given.

    A quarter of the sites (D, F) is held out; the error there is what to expect. It is said when
    what is left hardly determines the numbers.

    Examples:
        rooflines measured calibrate timings.parquet --chip h100-sxm --software trtllm
        rooflines measured calibrate few.csv --chip h200-sxm --software vllm --prior other.yaml
        rooflines measured calibrate nccl.csv --chip b200 --software nccl
    """
    require_scipy()
    chips = output.catalogues_of(config).chips
    chip = output.one_chip("chip", chip, chips)
    key = FitKey.checked(chip, software)
    path = Path(out or f"{CALIBRATIONS_FOLDER}/{key.file_name}")
    output.check_new(path, force=force)
    check_kind(file, "fit")
    otherwise = {} if dtype is None else {"compute": dtype}
    timings = read_timings(file, {"chip": chip}, otherwise).of_system(chip, software)
    request = FitRequest(
        timings,
        chip,
        chips[chip],
        source or ", ".join(timings.sources) or file,
        datetime.now(tz=UTC).date().isoformat(),
        next(name for name in FORMS if name == form),
        read_calibrations(prior) if prior else None,
        contents,
    )
    fit_and_write(request, key, path, dtype)


def fit_and_write(request: FitRequest, key: FitKey, path: Path, dtype: str | None = None) -> None:
    """Fit timings, show the numbers with their errors, and write the fits.

    Args:
        request: The timings.
        key: Chip and software.
        path: The YAML file to write.
        dtype: Only this compute dtype; None: all.
    """
    results = calibrate(request, dtype)
    click.echo("\n\n".join("\n".join(_shown(key, result)) for result in results))
    entries = {str(key): {result.name: result.entry for result in results}}
    write_bytes(
        path, calibrations_yaml(Calibrations.model_validate({results[0].entry.KIND: entries}))
    )
    click.echo(f"\n{path}: written")


def _shown(key: FitKey, result: FitReport) -> Iterator[str]:
    """Fitted numbers, and errors by region."""
    fitted, held_out = result.entry.fitted.n, result.entry.held_out
    yield (
        f"{key} {result.name}: {fitted:,} timings fitted, "
        f"{held_out.n if held_out else 0:,} held out"
    )
    numbers = {
        name: number
        for name, number in result.entry.model_dump(exclude_defaults=True).items()
        if isinstance(number, int | float) and name not in Fitted.model_fields
    }
    yield "  " + ", ".join(f"{name} {number:.3g}" for name, number in numbers.items())
    reach = (f"{name} {low:,} to {high:,}" for name, (low, high) in result.entry.sizes.items())
    wider = result.entry.outside
    beyond = (
        f"; beyond it 8 of 10 take {wider[0]:.3g} to {wider[1]:.3g} times the estimate"
        if wider
        else ""
    )
    yield f"  fitted range: {', '.join(reach)}{beyond}"
    if result.entry.contents:
        yield f"  timings include {result.entry.contents}"
    if result.entry.held:
        at_prior = ", ".join(result.entry.held)
        yield f"  kept at the prior (not identifiable): {at_prior}"
    yield from (f"  {note}" for note in result.notes)
    rows = ({**row, "split": f"  {row['split']}"} for row in result.regions.to_dicts())
    yield output.table(REGIONS, rows)
