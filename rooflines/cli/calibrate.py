"""`rooflines measured calibrate`: numbers fitted to timings, for estimates of a chip."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflines.cli.output import as_table, check_new, width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.fits.calibrate import FitReport

EXAMPLES = """
\b
Examples:
  rooflines measured calibrate timings.parquet --chip h100-sxm --software trtllm
  rooflines measured calibrate few.csv --chip h200-sxm --software vllm --prior other.yaml
  rooflines measured calibrate nccl.csv --chip b200 --software nccl
"""

FOLDER = "calibrations"
"""Where a file is written by default."""


@click.command("calibrate", epilog=EXAMPLES, short_help="Fit a chip and a library to timings.")
@click.argument("file")
@click.option("--chip", required=True, metavar="ID", help="The chip that was measured.")
@click.option("--software", required=True, metavar="NAME", help="The library that was measured.")
@click.option("--dtype", metavar="DTYPE", help="Only this compute dtype.")
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
@click.option("--config", metavar="CONFIG", help="A config with the chip under `chips:`.")
@click.option("-o", "--out", metavar="FILE", help=f"Default: {FOLDER}/<chip>-<software>.yaml.")
@click.option("--force", is_flag=True, help="Overwrite that file.")
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
    shards, bytes and seconds. Or it is aiconfigurator's gemm_perf.parquet, vidur's mlp.csv or the
    text of nccl-tests, which name no chip: all timings are of the one given.

    A quarter of the sites (D, F) is held out; the error there is what to expect. It is said when
    what is left hardly determines the numbers.
    """
    from rooflines.basics.errors import one_of, placed  # noqa: PLC0415, help is fast
    from rooflines.fits.calibrate import FitRequest, calibrate  # noqa: PLC0415, the same
    from rooflines.fits.entries import key_of, read_calibrations  # noqa: PLC0415, the same
    from rooflines.fits.form import FORMS  # noqa: PLC0415, the same
    from rooflines.fits.read import read_timings  # noqa: PLC0415, the same
    from rooflines.fits.solving import require_scipy  # noqa: PLC0415, the same

    require_scipy()
    key = key_of(chip, software)
    path = Path(out or f"{FOLDER}/{key.replace('/', '-')}.yaml")
    check_new(path, force=force)
    chips = _chips(config)
    with placed("chip"):
        one_of(chip, chips, "no chip", "see `rooflines list chips`, or give its --config")
    timings = read_timings(file, {"chip": chip}).of(chip, software)
    request = FitRequest(
        timings,
        chip,
        chips[chip],
        source or ", ".join(timings.sources) or file,
        datetime.now(tz=UTC).date().isoformat(),
        next(known for known in FORMS if known == form),
        read_calibrations(prior) if prior else None,
        contents,
    )
    results = calibrate(request, dtype)
    click.echo("\n\n".join("\n".join(shown(key, result)) for result in results))
    write_fits(path, key, results)
    click.echo(f"\n{path}: written")


def _chips(config: str | None) -> dict[str, Chip]:
    """The chips of the catalogue, and those of a config."""
    from rooflines.catalogue.chips import chip_entries  # noqa: PLC0415, as above
    from rooflines.config import load_config  # noqa: PLC0415, the same

    return dict(load_config(config, needs_sweeps=False).chips if config else chip_entries())


def shown(key: str, result: FitReport) -> Iterator[str]:
    """The numbers of a fit, and its errors by region."""
    fitted, held_out = result.entry.fitted.n, result.entry.held_out
    yield (
        f"{key} {result.name}: {fitted:,} timings fitted, "
        f"{held_out.n if held_out else 0:,} held out"
    )
    from rooflines.fits.entries import Fitted  # noqa: PLC0415, as above

    numbers = {
        name: number
        for name, number in result.entry.model_dump(exclude_defaults=True).items()
        if isinstance(number, int | float) and name not in Fitted.model_fields
    }
    yield "  " + ", ".join(f"{name} {number:.3g}" for name, number in numbers.items())
    if result.entry.held:
        held = ", ".join(result.entry.held)
        yield f"  kept at the prior, not identifiable from the timings: {held}"
    yield from (f"  {note}" for note in result.notes)
    rows = [
        (
            f"  {row['split']}",
            row["region"],
            f"{row['n']:,}",
            *(f"{row[name]:.1%}" for name in ("bare_median", "median", "mean", "p90")),
        )
        for row in result.regions.to_dicts()
    ]
    names = ("  split", "region", "n", "bound: median", "estimate: median", "mean", "p90")
    yield as_table(names, rows, width())


def write_fits(path: Path, key: str, results: Sequence[FitReport]) -> None:
    """Write the fits of a chip and a software atomically."""
    from rooflines.fits.entries import Calibrations, kind_of, text_of  # noqa: PLC0415, as above
    from rooflines.results.atomic import atomic_file  # noqa: PLC0415, the same
    from rooflines.results.records import unrecorded  # noqa: PLC0415, the same

    entries = {key: {result.name: result.entry for result in results}}
    text = text_of(Calibrations.model_validate({kind_of(results[0].entry): entries}))
    with unrecorded(), atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
