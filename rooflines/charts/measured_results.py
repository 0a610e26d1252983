"""The timings that charts show, joined with the model: of a run, or of a config."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError, close_to, quote
from rooflines.basics.files import scan_parquet
from rooflines.basics.lazy import pl
from rooflines.charts.frames import CASE, NO_SOFTWARE
from rooflines.fits.timings import SIZES
from rooflines.measured.sets import TimedCase
from rooflines.measured.summary import measured_frame
from rooflines.results.folders import MEASURED
from rooflines.results.tables import metadata_of
from rooflines.sweep.recipes import chips_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.catalogue.entries import Chip
    from rooflines.measured.sets import MeasuredSet

READ = (
    "compute",
    *SIZES,
    "seconds",
    "flops",
    "memory_intensity",
    "t_lower_s",
    "t_estimate_s",
    "ratio_lower",
    "ratio_estimate",
    "fits_cache",
)
"""The columns of timings that charts read, besides `CASE`."""


class Joined(NamedTuple):
    """The timings of a set joined with the model, and the entries of their chips."""

    frame: pl.LazyFrame
    entries: Mapping[str, Chip]


@dataclass(frozen=True)
class MeasuredCases:
    """What the timings of a set are of.

    Attributes:
        name: The set.
        cases: Chip, software and dtypes, each with its number of timings.
    """

    name: str
    cases: Sequence[TimedCase]


def cases_of(name: str, joined: Joined) -> MeasuredCases:
    """What the timings of matmuls of a set are of.

    Raises:
        RooflinesError: They are of collectives.
    """
    if "dtypes" not in joined.frame.collect_schema():
        problem = f"has timings of collectives in {name}, no matmuls"
        raise RooflinesError("measurements", problem, "choose another set of timings")
    keys = [pl.col(key).cast(pl.String) for key in CASE]
    counts = joined.frame.group_by(keys).agg(timings=pl.len()).sort("timings", *CASE).collect()
    return MeasuredCases(name, [TimedCase(*row) for row in counts.iter_rows()])


def timings_of(joined: Joined, chip: str, software: str, dtypes: str) -> pl.DataFrame:
    """The timings of a case, with the columns of `measured/<name>.parquet` that charts read."""
    software_text = pl.col("software").cast(pl.String).fill_null(NO_SOFTWARE)
    return (
        joined.frame.filter(
            pl.col("chip").cast(pl.String) == chip,
            software_text == software,
            pl.col("dtypes").cast(pl.String) == dtypes,
        )
        .select("chip", software_text, "dtypes", *READ)
        .with_columns(pl.col("chip", "dtypes").cast(pl.String))
        .collect()
    )


def joined_of(one: MeasuredSet) -> Joined:
    """The timings of a set of a config."""
    return Joined(measured_frame(one.joined()).lazy(), one.catalogues.chips)


def measured_recipe_on_disk(results: str | Path, name: str) -> JSON:
    """The recipe of a set of timings of a run."""
    recipe: JSON = metadata_of(_table(results, name))["made_from"][0]
    return recipe


def joined_on_disk(results: str | Path, name: str) -> Joined:
    """The timings of a set that a run joined with the model.

    Raises:
        RooflinesError: There is no such set.
    """
    path = _table(results, name)
    if not path.is_file():
        known = [other.stem for other in sorted(path.parent.glob("*.parquet"))]
        fix = f"use one of {', '.join(known)}" if known else "describe it in the config, and run it"
        close = close_to(name, known)
        raise RooflinesError("measurements", f"has no {quote(name)}", fix, close=close)
    recipe = measured_recipe_on_disk(results, name)
    return Joined(scan_parquet(path), chips_of(recipe))


def _table(results: str | Path, name: str) -> Path:
    return Path(results) / MEASURED / f"{name}.parquet"
