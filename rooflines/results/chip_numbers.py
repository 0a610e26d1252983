"""The numbers of chips as a frame, with their sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.catalogue.parts import described

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.catalogue.entries import Chip

SCHEMA = {
    "chip": pl.String,
    "name": pl.String,
    "vendor": pl.String,
    "base": pl.String,
    "path": pl.String,
    "value": pl.Float64,
    "unit": pl.String,
    "part": pl.String,
    "meaning": pl.String,
    "source": pl.String,
    "confidence": pl.String,
    "estimate": pl.Boolean,
    "halved": pl.Boolean,
    "printed_with_sparsity": pl.Float64,
    "clock": pl.String,
    "note": pl.String,
}


def chip_numbers(chips: Mapping[str, Chip]) -> pl.DataFrame:
    """A row for every number of every chip that has a source; see `rooflines.chips`.

    Args:
        chips: Entries by id.
    """
    records = [
        {
            "chip": chip,
            "name": entry.name,
            "vendor": entry.vendor,
            "base": entry.base,
            **number,
        }
        for chip, entry in chips.items()
        for number in described(entry, shares=False)
    ]
    return pl.DataFrame(records, schema=SCHEMA, orient="row")
