"""The timings that charts show, joined with the model: of a run, or of a config."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

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


@dataclass(frozen=True)
class MeasuredRows:
    """The timings of a set joined with the model.

    Attributes:
        name: The set.
        frame: The timings.
        entries: The entries of their chips.
    """

    name: str
    frame: pl.LazyFrame
    entries: Mapping[str, Chip]

    @cached_property
    def cases(self) -> Sequence[TimedCase]:
        """What the timings of matmuls are of: chip, software and dtypes, with their number.

        Raises:
            RooflinesError: They are of collectives.
        """
        if "dtypes" not in self.frame.collect_schema():
            problem = f"has timings of collectives in {self.name}, no matmuls"
            raise RooflinesError("measurements", problem, "choose another set of timings")
        keys = [pl.col(key).cast(pl.String) for key in CASE]
        counts = self.frame.group_by(keys).agg(timings=pl.len()).sort("timings", *CASE).collect()
        return [TimedCase(*row) for row in counts.iter_rows()]

    def of(self, chip: str, software: str, dtypes: str) -> pl.DataFrame:
        """The timings of a case, with the columns of `measured/<name>.parquet` that charts read."""
        named = pl.col("software").cast(pl.String).fill_null(NO_SOFTWARE)
        texts = pl.col("chip", "dtypes").cast(pl.String)
        found = self.frame.with_columns(texts, named).filter(chip=chip, dtypes=dtypes)
        return found.filter(pl.col("software") == software).select(*CASE, *READ).collect()


def joined_of(one: MeasuredSet) -> MeasuredRows:
    """The timings of a set of a config."""
    return MeasuredRows(one.name, measured_frame(one.joined()).lazy(), one.catalogues.chips)


def measured_recipe_on_disk(results: str | Path, name: str) -> JSON:
    """The recipe of a set of timings of a run."""
    recipe: JSON = metadata_of(_table(results, name))["made_from"][0]
    return recipe


def joined_on_disk(results: str | Path, name: str) -> MeasuredRows:
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
    return MeasuredRows(name, scan_parquet(path), chips_of(recipe))


def _table(results: str | Path, name: str) -> Path:
    return Path(results) / MEASURED / f"{name}.parquet"
