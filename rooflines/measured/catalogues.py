"""Catalogues that timings are compared with: chips, dtypes and calibrations."""

from __future__ import annotations

from collections.abc import Collection  # noqa: TC003, a named tuple reads it
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.basics.errors import RooflinesError, close_to, quote
from rooflines.models.library import model_entries
from rooflines.theory.operation import MATRIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.fits.calibration_files import Calibrations
    from rooflines.fits.timings import Timings
    from rooflines.hardware.dtype_catalogue import DtypeFile
    from rooflines.hardware.entries import Chip

UNQUANTIZED = "bf16"
"""Weight format where none is stated."""

WEIGHT_FORMATS = {
    None: UNQUANTIZED,
    "bf16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8",
    "nvfp4": "nvfp4",
    "mxfp4": "mxfp4",
    "int4_wo": "int4-g128",
}
"""Weight formats of served models by their name in the data; scales for fp8 blocks are left out."""

COMPUTED_IN = {"mxfp4": ("mxfp4", "fp8", UNQUANTIZED), "int4-g128": (UNQUANTIZED,)}
"""Compute dtypes for formats that are narrower than a chip's math may be, the fastest first."""


def compute_of(weights: str, chip: Chip) -> str:
    """Fastest compute dtype for weights in a format that a chip has a peak in.

    Args:
        weights: The format, a value in `WEIGHT_FORMATS`.
        chip: The chip.
    """
    peaks = chip.units.get(MATRIX, {})
    dtypes = COMPUTED_IN.get(weights, (weights,))
    return next((dtype for dtype in dtypes if dtype in peaks), dtypes[-1])


@dataclass(frozen=True)
class Catalogues:
    """Catalogue entries that rows for timings are computed from.

    Attributes:
        chips: By id.
        dtypes: The dtype catalogue.
        fits: Calibrations by chip and software.
    """

    chips: Mapping[str, Chip]
    dtypes: DtypeFile
    fits: Calibrations


class CatalogueValues(NamedTuple):
    """Values that a catalogue allows in a column of timings.

    Attributes:
        allowed: The catalogue's values.
        claim: Ends the message "has 'h100', which ...": "is no chip".
        fix: Advice about other values.
    """

    allowed: Collection[str]
    claim: str
    fix: str


def _catalogue_columns(timings: Timings, catalogues: Catalogues) -> dict[str, CatalogueValues]:
    """Columns in timings whose values have to be in a catalogue."""
    describe = "choose rows of other chips, or describe the chip in a config under `chips:`"
    columns = {"chip": CatalogueValues(catalogues.chips, "is no chip", describe)}
    formats = catalogues.dtypes.formats
    fix = f"use some of {', '.join(formats)}, or choose other rows"
    columns |= dict.fromkeys(timings.kind.stored, CatalogueValues(formats, "is no dtype", fix))
    if timings.is_served:
        fix = "use an id of `rooflines list models`, or choose other rows"
        columns["model"] = CatalogueValues(model_entries(), "is no model", fix)
        names = [name for name in WEIGHT_FORMATS if name is not None]
        fix = f"use one of {', '.join(names)}, or choose other rows"
        kinds = (name for name in ("linear", "experts") if name in timings.frame.columns)
        columns |= dict.fromkeys(kinds, CatalogueValues(names, "is no format of weights", fix))
    return columns


def in_catalogues(timings: Timings, catalogues: Catalogues) -> Timings:
    """Timings whose values are in catalogues; the others are counted.

    Raises:
        RooflinesError: None is.
    """
    listed, left_out = timings.frame, dict(timings.left_out)
    for column, (allowed, claim, fix) in _catalogue_columns(timings, catalogues).items():
        values = listed[column].drop_nulls().unique().sort()
        unknown = [name for name in values if name not in allowed]
        close = {name: close_to(name, allowed) for name in unknown}
        remaining = listed.filter(~pl.col(column).is_in(unknown).fill_null(value=False))
        if remaining.is_empty():
            problem = f"has {', '.join(map(quote, unknown))}, which {claim}"
            suggestions = dict.fromkeys(chain.from_iterable(close.values()))
            raise RooflinesError(column, problem, fix, close=suggestions)
        for name in unknown:
            hint = "".join(f"; close to it: {match}" for match in close[name][:1])
            count = listed.filter(pl.col(column) == name).height
            left_out[f"have {column} {quote(name)}, which {claim}{hint}"] = count
        listed = remaining
    return replace(timings, frame=listed, left_out=left_out)
