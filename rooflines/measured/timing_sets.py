"""Sets of timings that a config names, checked, and as JSON for their job."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from rooflines.basics.errors import RooflinesError, at_path
from rooflines.basics.text import counted
from rooflines.basics.yaml_file import JSON, in_file, read_yaml
from rooflines.config.measurement_fields import AboutTimings, MeasurementConfig
from rooflines.fits.fit_keys import FitKey
from rooflines.fits.time_units import IMPOSSIBLE
from rooflines.fits.timing_tables import read_timings
from rooflines.fits.timings import DTYPES, MATMUL_TIMINGS
from rooflines.hardware.dtype_catalogue import DtypeFile
from rooflines.hardware.entry_forms import validate_entry
from rooflines.measured.catalogues import COMPUTED_IN, WEIGHT_FORMATS, Catalogues, in_catalogues
from rooflines.measured.join import UNEXPLAINED, WITHOUT_ROW, join_timings
from rooflines.measured.kernel_rows import missing_bound_reason, with_dtypes
from rooflines.models.library import model_entries
from rooflines.results.records import digest_of
from rooflines.results.tables import metadata_of
from rooflines.sweep.recipes import chips_of, entries_of, fits_of, fits_recipe, shape_recipe

if TYPE_CHECKING:
    from rooflines.fits.calibration_files import Calibrations
    from rooflines.fits.timings import Timings
    from rooflines.measured.join import JoinedTimings


class TimedCase(NamedTuple):
    """Chip, software and dtypes, and the number of their timings that have a row [1]."""

    chip: str
    software: str | None
    dtypes: str
    timings: int


@dataclass(frozen=True, repr=False)
class MeasuredSet:
    """Set of timings, checked.

    Attributes:
        name: Its name.
        config: Its part in the config.
        path: The file.
        sha256: The file's digest.
        about: How the timings were made, if known.
        timings: The timings.
        catalogues: Chips, dtypes and calibrations.
    """

    name: str
    config: MeasurementConfig
    path: Path
    sha256: str
    about: JSON
    timings: Timings
    catalogues: Catalogues

    def __repr__(self) -> str:
        """Name and number of timings."""
        return f"<MeasuredSet {self.name}: {counted(self.timings.frame.height, 'timing')}>"

    @cached_property
    def cases(self) -> list[TimedCase]:
        """Chips, software and dtypes in matmuls that have rows in the model."""
        if self.timings.kind is not MATMUL_TIMINGS:
            return []
        keys = [
            name for name in ("chip", "software", *DTYPES) if name in self.timings.frame.columns
        ]
        counts = self.timings.frame.group_by(keys, maintain_order=True)
        named = with_dtypes(counts.agg(timings=pl.len()), self.catalogues.dtypes)
        chips = self.catalogues.chips
        return [
            TimedCase(row["chip"], row.get("software"), row["dtypes"], row["timings"])
            for row in named.iter_rows(named=True)
            if missing_bound_reason(chips[row["chip"]], row["compute"]) is None
        ]

    def join(self) -> JoinedTimings:
        """Join the timings with their row in the model.

        Raises:
            RooflinesError: As in `join_timings`, or timings are below the bound for no reason and
                the config refuses that.
        """
        result = join_timings(self.timings, self.catalogues)
        unexplained = result.frame.filter(pl.col("reason") == UNEXPLAINED)
        impossible = result.skipped.filter(pl.col("reason") == IMPOSSIBLE)
        if self.config.on_unexplained == "error" and not impossible.is_empty():
            chips = ", ".join(impossible["chip"].unique().sort())
            count = counted(int(impossible["timings"].sum()), "timing")
            fix = "take them out, correct them, or list them: on_unexplained: list"
            problem = f"has {count} of {chips} at {IMPOSSIBLE}"
            raise RooflinesError("", problem, fix, file=self.timings.file)
        if self.config.on_unexplained == "error" and not unexplained.is_empty():
            chips = ", ".join(unexplained["chip"].unique().sort())
            min_ratio = min(unexplained["ratio_lower"].to_list())
            problem = (
                f"has {counted(unexplained.height, 'timing')} of {chips} below the bound, without "
                f"a reason: the least is {min_ratio:.3g} of it"
            )
            fix = "check units, sizes, dtypes and the chip; or list them: on_unexplained: list"
            raise RooflinesError("", problem, fix, file=self.timings.file)
        return result

    def skipped(self, joined: JoinedTimings) -> list[dict[str, Any]]:
        """Timings without a row or an estimate, counted, as in `MEASURED_SKIPPED`.

        Args:
            joined: From `join`.
        """
        unread = [
            {"lacks": WITHOUT_ROW, "reason": reason, "timings": count}
            for reason, count in self.timings.left_out.items()
        ]
        return [{"set": self.name, **row} for row in (*joined.skipped.to_dicts(), *unread)]

    def recipe(self) -> dict[str, Any]:
        """Set as JSON: config and digest, and the entries for its chips and dtypes."""
        frame, catalogues = self.timings.frame, self.catalogues
        chips = frame["chip"].unique().sort().to_list()
        stored = self.timings.kind.stored
        formats = {str(dtype) for column in stored for dtype in frame[column].unique()}
        if self.timings.is_served:
            formats |= {*WEIGHT_FORMATS.values()}
        combinations = [
            name
            for name, entry in catalogues.dtypes.combinations.items()
            if formats.issuperset(entry.dtypes.values())
        ]
        recipe: dict[str, Any] = {}
        if self.timings.is_served:
            entries = {name: model_entries()[name] for name in frame["model"].unique().sort()}
            recipe["models"] = {
                name: shape_recipe(entry, entry.source) for name, entry in entries.items()
            }
        return recipe | {
            "measurement": self.name,
            "path": str(self.path),
            "sha256": self.sha256,
            "about": self.about,
            "config": self.config.model_dump(),
            **entries_of(catalogues.chips, chips, catalogues.dtypes, formats, combinations),
            **fits_recipe(_calibrations_of(self)),
        }


def checked_set(
    name: str, config: MeasurementConfig, path: Path, catalogues: Catalogues
) -> MeasuredSet:
    """Read and check a set of timings.

    Args:
        name: Its name.
        config: Its part in the config.
        path: The file.
        catalogues: Chips, dtypes and calibrations.

    Raises:
        RooflinesError: The table cannot be read, or its values are wrong or in no catalogue.
    """
    timings = read_timings(path, config.where)
    with at_path(file=timings.file):
        timings = in_catalogues(timings, catalogues)
    about = _about(path).model_dump(exclude_none=True)
    return MeasuredSet(name, config, path, digest_of(path), about, timings, catalogues)


def _about(path: Path) -> AboutTimings:
    """Notes on how timings were made: `<file>.yaml` beside them, or metadata by `measure`."""
    notes_file = path.with_name(f"{path.name}.yaml")
    if notes_file.is_file():
        content = read_yaml(notes_file)
        with in_file(notes_file):
            return validate_entry(AboutTimings, content)
    try:
        metadata = metadata_of(path) if path.suffix == ".parquet" else {}
    except RooflinesError:
        return AboutTimings()
    fields = {key: metadata[key] for key in AboutTimings.model_fields if key in metadata}
    return validate_entry(AboutTimings, fields)


def _calibrations_of(measured_set: MeasuredSet) -> Calibrations:
    """Calibrations for a set's chips, software and compute dtypes; for served models all."""
    frame, fits = measured_set.timings.frame, measured_set.catalogues.fits
    chips = frame["chip"].unique().sort()
    keys = [FitKey.named(chip, name) for chip in chips for name in fits.softwares_of(chip)]
    if measured_set.timings.is_served:
        computed = {*WEIGHT_FORMATS.values(), *chain.from_iterable(COMPUTED_IN.values())}
        return fits.subset(keys, computed).model_copy(update={"steps": fits.steps})
    softwares = {*frame.get_column("software", default=pl.Series([], dtype=pl.String))}
    used_keys = [key for key in keys if key.engine in softwares]
    return fits.subset(
        used_keys, {*frame.get_column("compute", default=pl.Series([], dtype=pl.String))}
    )


def measured_set_of(recipe: JSON) -> MeasuredSet:
    """Set that a recipe describes.

    Raises:
        RooflinesError: The file has changed since, or cannot be read.
    """
    config = MeasurementConfig.model_validate(recipe["config"])
    dtypes = DtypeFile.model_validate(recipe["dtypes"])
    catalogues = Catalogues(chips_of(recipe), dtypes, fits_of(recipe))
    measured_set = checked_set(recipe["measurement"], config, Path(recipe["path"]), catalogues)
    if measured_set.sha256 != recipe["sha256"]:
        problem = "has changed since the run began"
        raise RooflinesError("", problem, "run the workflow again", file=recipe["path"])
    return measured_set
