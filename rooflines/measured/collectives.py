"""Rows of timed collectives: bytes on the wire over the nominal rate of a chip's network."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, cast

import polars as pl

from rooflines.catalogue.unsupported import interconnects, not_joined
from rooflines.fits.choice import bands_of
from rooflines.fits.collective_form import collective_estimate, ring_steps
from rooflines.model.network import Route
from rooflines.model.resources import collective_rate
from rooflines.sweep.operation_rows import ESTIMATES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.catalogue.entries import Chip
    from rooflines.fits.entries import Fitted
    from rooflines.measured.catalogues import Catalogues

NO_ESTIMATE = {
    **dict.fromkeys(ESTIMATES, pl.lit(None, pl.Float64)),
    "calibration": pl.lit(None, pl.String),
}
"""The columns of an estimate where there is none: null."""


def missing_network_reason(chip: Chip, shards: int) -> str | None:
    """The reason why a chip's first interconnect cannot join the chips; None where it can."""
    if shards == 1:
        return "no collective on one chip"
    name, links, reason = interconnects(chip, None)
    return reason or not_joined([str(name)], links, (shards,))


def collective_rows(frame: pl.DataFrame, catalogues: Catalogues) -> Iterator[pl.DataFrame]:
    """Timings with the metrics of their row, over the first interconnect of their chip.

    Args:
        frame: Timings whose chips are joined.
        catalogues: What gives the rows.

    Yields:
        The timings of one chip, software, collective and number of chips with `network_bytes`,
        `t_lower_s`, `bound` and the columns of estimates, nominal.
    """
    keys = ("chip", "software", "collective", "shards")
    for (chip, software, collective, shards), part in frame.group_by(keys, maintain_order=True):
        _, links, _ = interconnects(catalogues.chips[str(chip)], None)
        named = [] if software is None else [str(software)]
        fitted = catalogues.fits.collective(str(chip), named, str(collective))
        route = Route(links, (int(cast("int", shards)),))
        rate = collective_rate(route, str(collective), Fraction(1))
        network = pl.col("network_bytes") / float(rate.per_s)
        estimate = NO_ESTIMATE
        if fitted:
            hops = pl.lit(float(ring_steps(route, str(collective))))
            time = collective_estimate(fitted.numbers.floats, network, hops, pl.min_horizontal)
            estimate = _with_band(time, fitted, f"{chip}/{software}")
        sent = float(sum(route.sent(str(collective))))
        yield part.with_columns(network_bytes=pl.col("bytes").cast(pl.Float64) * sent).with_columns(
            t_lower_s=pl.max_horizontal(network, float(rate.latency_s)),
            bound=pl.lit("network"),
            **estimate,
        )


def _with_band(time: pl.Expr, fitted: Fitted, key: str) -> dict[str, pl.Expr]:
    """The columns of `NO_ESTIMATE`, of a time [s] and the calibration of a chip and software."""
    band = bands_of(fitted).get("network", (None, None))
    low, high = (pl.lit(end, pl.Float64) for end in band)
    values = (time, time * low, time * high, pl.lit(key))
    return dict(zip(NO_ESTIMATE, values, strict=True))
