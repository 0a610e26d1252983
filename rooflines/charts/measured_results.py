"""The timings that charts show, joined with the model: of a run, or of a config."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError, check_known, close_to, placed, quote
from rooflines.basics.lazy import pl
from rooflines.basics.table_files import scan_parquet
from rooflines.charts.measured import CASE, NO_SOFTWARE
from rooflines.charts.offers import unsupported
from rooflines.fits.matmuls import nominal_target
from rooflines.fits.timings import SIZES
from rooflines.measured.summary import measured_frame
from rooflines.results.folders import MEASURED
from rooflines.results.tables import metadata_of
from rooflines.sweep.recipes import chips_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.catalogue.entries import Chip
    from rooflines.measured.sets import MeasuredSet
    from rooflines.model.target import Target

READ = (
    "compute",
    *SIZES,
    "seconds",
    "flops",
    "memory_intensity",
    "t_lower_s",
    "t_estimate_s",
    "t_estimate_p10_s",
    "t_estimate_p90_s",
    "ratio_lower",
    "ratio_estimate",
    "fits_cache",
)
"""The columns of timings that charts read, besides `CASE`."""


class Joined(NamedTuple):
    """The timings of a set joined with the model, and the entries of their chips."""

    frame: pl.LazyFrame
    entries: Mapping[str, Chip]


@dataclass(frozen=True, repr=False)
class MeasuredSelection:
    """Some chips and dtypes of a set of timings, made by `Results.of_measured`.

    Attributes:
        name: The set.
        frame: Its timings of these chips and dtypes, with the columns of `measured/<name>.parquet`.
        entries: The chips by id.
        chips, dtypes: What is selected, in order.
    """

    name: str
    frame: pl.LazyFrame
    entries: Mapping[str, Chip]
    chips: tuple[str, ...]
    dtypes: tuple[str, ...]

    def __repr__(self) -> str:
        """What it selects."""
        return (
            f"<MeasuredSelection of {self.name}: {', '.join(self.chips)}; {', '.join(self.dtypes)}>"
        )

    def cases(self) -> Iterator[tuple[dict[str, str], pl.DataFrame]]:
        """Chip, software and dtypes, and their timings.

        In the order of the selection, the software with most timings first.
        """
        software = pl.col("software").cast(pl.String).fill_null(NO_SOFTWARE)
        chosen = self.frame.select("chip", software, "dtypes", *READ).collect()
        parts = chosen.partition_by(CASE, as_dict=True, maintain_order=True)
        order = sorted(
            parts,
            key=lambda c: (self.chips.index(c[0]), self.dtypes.index(c[2]), -parts[c].height),
        )
        for case in order:
            yield dict(zip(CASE, case, strict=True)), parts[case]

    def target(self, chip: str, compute: str) -> Target:
        """The nominal target of timings of a chip in a compute dtype."""
        return nominal_target(self.entries[chip], compute)


def selected(
    name: str, joined: Joined, chips: Sequence[str], dtypes: Sequence[str]
) -> MeasuredSelection:
    """Some chips and dtypes of a set of timings of matmuls, in this order.

    Raises:
        RooflinesError: It is of collectives, has no such chip or dtypes, or none of the chips has
            timings in one of them.
    """
    if "dtypes" not in joined.frame.collect_schema():
        problem = f"has timings of collectives in {name}, no matmuls"
        raise RooflinesError("measurements", problem, "choose another set of timings")
    frame = joined.frame.with_columns(pl.col("chip", "dtypes").cast(pl.String))
    known = frame.select("chip", "dtypes").unique().sort("chip", "dtypes").collect()
    with placed("chips"):
        check_known(list(chips), known["chip"].unique().sort().to_list(), f"no chip of set {name}")
    with placed("dtypes"):
        check_known(list(dtypes), known["dtypes"].unique().sort().to_list(), f"no dtypes of {name}")
    wanted = pl.col("chip").is_in(list(chips)) & pl.col("dtypes").is_in(list(dtypes))
    if known.filter(wanted).is_empty():
        raise unsupported(chips, dtypes)
    return MeasuredSelection(
        name, frame.filter(wanted), joined.entries, tuple(chips), tuple(dtypes)
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
