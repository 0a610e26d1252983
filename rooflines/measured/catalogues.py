"""Chips, dtypes and calibrations that timings are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError, close_to, placed, quote

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import polars as pl

    from rooflines.catalogue.entries import Chip, DtypeFile
    from rooflines.fits.entries import Calibrations


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


def check_known_values(
    frame: pl.DataFrame, column: str, known: Collection[str], what: str, fix: str
) -> None:
    """Refuse values of a column that are in no catalogue, all at once.

    Args:
        frame: Timings.
        column: The column.
        known: The valid values.
        what: Ends the message "has 'h100', which ...": "is no chip".
        fix: What to do about it.

    Raises:
        RooflinesError: There are such values.
    """
    unknown = [name for name in frame[column].unique().sort() if name not in known]
    with placed(column):
        if unknown:
            close = [near for name in unknown for near in close_to(name, known)]
            names = ", ".join(map(quote, unknown))
            raise RooflinesError("", f"has {names}, which {what}", fix, close=dict.fromkeys(close))
