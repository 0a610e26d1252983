"""Rows of timed collectives: bytes on the wire over the nominal rate of a chip's network."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, cast

import polars as pl

from rooflines.catalogue.lacking import interconnects, not_joined
from rooflines.measured.estimates import ESTIMATES
from rooflines.model.network import Route
from rooflines.model.resources import RESOURCES, network_rate
from rooflines.model.sharding import Sharding
from rooflines.model.target import Level, Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.catalogue.entries import Chip
    from rooflines.model.network import Link
    from rooflines.model.resources import Rate

__all__ = ["collective_rows", "unjoined"]

NO_ESTIMATE = {
    name: pl.lit(None, pl.String if name == "calibration" else pl.Float64) for name in ESTIMATES
}

KEYS = ("chip", "collective", "shards")
"""What determines the rate of a collective."""


def unjoined(chip: Chip, shards: int) -> str | None:
    """The reason why a chip's first interconnect cannot join so many chips; None where it can."""
    name, links, reason = interconnects(chip, None)
    return reason or not_joined([str(name)], links, (shards,))


def collective_rows(frame: pl.DataFrame, chips: Mapping[str, Chip]) -> pl.DataFrame:
    """Timings with the metrics of their row, over the first interconnect of their chip.

    Args:
        frame: Timings whose chips are joined.
        chips: Entries by id.

    Returns:
        The timings with `network_bytes`, `t_lower_s` and `bound`, nominal, and null estimates.
    """
    known = frame.select(KEYS).unique(maintain_order=True)
    rates = known.hstack(
        pl.DataFrame(
            [
                _rate(interconnects(chips[chip], None)[1], collective, shards)
                for chip, collective, shards in known.iter_rows()
            ],
            schema=dict.fromkeys(("#sent", "#rate", "#latency"), pl.Float64),
            orient="row",
        )
    )
    network_bytes = pl.col("#sent") * pl.col("bytes").cast(pl.Float64)
    return (
        frame.join(rates, on=KEYS, how="left", maintain_order="left")
        .with_columns(network_bytes=network_bytes)
        .select(
            *frame.columns,
            "network_bytes",
            t_lower_s=pl.max_horizontal(pl.col("network_bytes") / pl.col("#rate"), "#latency"),
            bound=pl.lit("network"),
            **NO_ESTIMATE,
        )
    )


def _rate(links: tuple[Link, ...], collective: str, shards: int) -> tuple[float, float, float]:
    """Bytes sent per byte of payload [1], their rate [byte/s] and the latency of the hops [s]."""
    route = Route(links, (shards,))
    one = Fraction(1)
    target = Target(
        one,
        Level(one),
        route,
        Sharding("", None, (("out", collective),)),
        {resource.name: one for resource in RESOURCES},
    )
    rate = cast("Rate", network_rate(target))  # there are a route and a transfer
    return float(sum(route.sent(collective))), float(rate.per_s), float(rate.latency_s)
