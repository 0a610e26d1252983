"""`rooflines list prices`: lowest dated price for each chip that has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import polars as pl

from rooflines.cli.output import WithExamples, prints_frame, table
from rooflines.hardware.chip_catalogue import chip_entries

if TYPE_CHECKING:
    from rooflines.cli.output import Printed

TITLES = {"chip": "chip", "price": "price", "sku": "product"}
"""Column titles on a screen, by column."""


@click.command("prices", cls=WithExamples)
@prints_frame
def command() -> Printed:
    """List the lowest dated price for each chip, with provider and month.

    Answers have this price; `--price 2.5` of `rooflines explain` is another one. Variants with the
    price of their chip are left out. CSV and JSON have the day and the sources too.

    Examples:
        rooflines list prices
        rooflines list prices --csv > prices.csv
    """
    entries = chip_entries()
    prices = [
        (chip, price)
        for chip, entry in entries.items()
        if (price := entry.lowest_price()) is not None
        and (entry.base is None or price != entries[entry.base].lowest_price())
    ]
    rows = [
        {
            "chip": chip,
            "price": str(price),
            "usd_per_hour": price.usd_per_hour,
            "provider": price.provider,
            "sku": price.sku,
            "date": price.date,
            "source": ", ".join(price.source or ()),
        }
        for chip, price in prices
    ]
    return pl.DataFrame(rows).drop("price"), table(TITLES, rows)
