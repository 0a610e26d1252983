"""Chips, dtypes and calibrations that timings are compared with."""

from __future__ import annotations

from collections.abc import Collection  # noqa: TC003, a named tuple reads it
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.basics.errors import Mistakes, RooflinesError, close_to, quote
from rooflines.fits.timings import DTYPES
from rooflines.models.library import model_entries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.catalogue.dtypes import DtypeFile
    from rooflines.catalogue.entries import Chip
    from rooflines.fits.entries import Calibrations
    from rooflines.fits.timings import Timings

UNQUANTIZED = "bf16"
"""The format of weights that is not stated."""

FORMATS = {None: UNQUANTIZED, "bf16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "nvfp4": "nvfp4"}
"""Formats of weights of served models by their name in the data; scales of fp8 blocks are left
out."""


@dataclass(frozen=True)
class Catalogues:
    """Entries that the rows of timings are made from.

    Attributes:
        chips: By id.
        dtypes: The dtype catalogue.
        fits: Calibrations by chip and software.
    """

    chips: Mapping[str, Chip]
    dtypes: DtypeFile
    fits: Calibrations


class CatalogueColumn(NamedTuple):
    """A column of timings whose values are in a catalogue.

    Attributes:
        column: Its name.
        known: The valid values.
        what: Ends the message "has 'h100', which ...": "is no chip".
        fix: What to do about others.
    """

    column: str
    known: Collection[str]
    what: str
    fix: str

    def unknown(self, frame: pl.DataFrame) -> list[str]:
        """The values of a frame that are in no catalogue."""
        return [
            name
            for name in frame[self.column].drop_nulls().unique().sort()
            if name not in self.known
        ]

    def told(self, names: Sequence[str]) -> str:
        """What these values are not."""
        return f"{', '.join(map(quote, names))}, which {self.what}"

    def check(self, frame: pl.DataFrame) -> None:
        """Refuse values that are in no catalogue, all at once.

        Raises:
            RooflinesError: There are such values.
        """
        if unknown := self.unknown(frame):
            close = [near for name in unknown for near in close_to(name, self.known)]
            raise RooflinesError(
                self.column, f"has {self.told(unknown)}", self.fix, close=dict.fromkeys(close)
            )


def catalogue_columns(timings: Timings, catalogues: Catalogues) -> list[CatalogueColumn]:
    """The columns of timings whose values are in catalogues."""
    describe = "choose rows of other chips, or describe the chip in a config under `chips:`"
    columns = [CatalogueColumn("chip", catalogues.chips, "is no chip", describe)]
    stored = {"matmul": DTYPES, "attention": ("compute", "cache")}.get(timings.kind)
    if stored:
        formats = catalogues.dtypes.formats
        fix = f"use some of {', '.join(formats)}, or choose other rows"
        columns += [CatalogueColumn(column, formats, "is no dtype", fix) for column in stored]
    if timings.served:
        fix = "use an id of `rooflines list models`, or choose other rows"
        columns.append(CatalogueColumn("model", model_entries(), "is no model", fix))
        known = [name for name in FORMATS if name is not None]
        fix = f"use one of {', '.join(known)}, or choose other rows"
        kinds = (name for name in ("linear", "experts") if name in timings.frame.columns)
        columns += [CatalogueColumn(name, known, "is no format of weights", fix) for name in kinds]
    return columns


def check_listed(timings: Timings, catalogues: Catalogues) -> None:
    """Refuse values of timings that are in no catalogue.

    Raises:
        RooflinesError: There are such values.
    """
    with Mistakes() as mistakes:
        for column in catalogue_columns(timings, catalogues):
            with mistakes.at():
                column.check(timings.frame)


def in_catalogues(timings: Timings, catalogues: Catalogues) -> Timings:
    """The timings whose values are in catalogues; the others are counted.

    Raises:
        RooflinesError: None is.
    """
    kept, left_out = timings.frame, dict(timings.left_out)
    for column in catalogue_columns(timings, catalogues):
        for name in column.unknown(kept):
            rest = kept.filter(pl.col(column.column).ne_missing(name))
            close = "".join(f"; close to it: {near}" for near in close_to(name, column.known)[:1])
            left_out[f"have {column.column} {column.told([name])}{close}"] = (
                kept.height - rest.height
            )
            kept = rest
    if kept.is_empty():
        check_listed(timings, catalogues)
    return replace(timings, frame=kept, left_out=left_out)
