"""The fit of collectives to their timings."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.errors import RooflinesError
from rooflines.basics.text import counted
from rooflines.fits.collective_form import (
    CollectiveNumbers,
    collective_estimate,
    ring_steps,
)
from rooflines.fits.folds import with_folds
from rooflines.fits.judge import with_errors
from rooflines.fits.solving import FitResult, Problem
from rooflines.fits.timings import medians
from rooflines.model.network import PAIR, Route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.catalogue.entries import Chip
    from rooflines.fits.solving import Array
    from rooflines.fits.timings import Timings
    from rooflines.model.network import Link

PRIOR = CollectiveNumbers(
    overhead_s=Fraction("7e-6"),
    low_latency=Fraction("0.25"),
    bulk_overhead_s=Fraction("15e-6"),
    bulk=Fraction("0.65"),
    hop_s=Fraction("1e-6"),
)
"""Where a fit starts: typical numbers of data-center GPUs."""

STARTS: tuple[Mapping[str, float], ...] = (
    {},
    {"overhead_s": 0.5, "low_latency": 0.3, "bulk_overhead_s": 2.0, "hop_s": 3.0},
    {"low_latency": 2.0, "bulk_overhead_s": 0.3, "bulk": 0.8, "hop_s": 0.2},
)
"""The starts, as factors of the prior."""


def with_network_times(
    timings: Timings, entry: Chip, collective: str
) -> tuple[pl.DataFrame, Timings]:
    """Timings of a collective with what a fit reads of them.

    Args:
        timings: Of one chip and software.
        entry: The chip's entry, whose first interconnect carries them.
        collective: A key of `network.PASSES`.

    Returns:
        `shards`, `bytes` (the payload of the model: the whole tensor, in an all-to-all what a chip
        holds), `seconds`, `network` (nominal seconds of the bytes on the wire), `hops`, and `fold`
        (the hash of the power of two below the payload); and the timings, with notes.

    Raises:
        RooflinesError: There are too few, or the chip has no interconnect.
    """
    if not entry.networks:
        raise RooflinesError("chip", "has no interconnect in its entry", "add one under `networks`")
    link: Link = next(iter(entry.networks.values())).exact
    possible = _within(timings.where("collective", collective), link)
    chosen = medians(possible, ("shards", "bytes"))
    chosen.enough()
    routes = {shards: Route((link,), (shards,)) for shards in chosen.frame["shards"].unique()}
    per_byte = {
        shards: float(route.sent(collective)[0] / route.levels[0].bytes_per_s)
        for shards, route in routes.items()
    }
    hops = {shards: float(ring_steps(route, collective)) for shards, route in routes.items()}
    shards = pl.col("shards")
    frame = chosen.frame.with_columns(
        network=shards.replace_strict(per_byte, return_dtype=pl.Float64) * pl.col("bytes"),
        hops=shards.replace_strict(hops, return_dtype=pl.Float64),
    )
    return with_folds(frame), chosen


def _within(timings: Timings, link: Link) -> Timings:
    """Timings on several chips that an interconnect joins; the others are counted."""
    most = link.domain if link.published else None
    frame = timings.frame.filter(pl.col("shards").is_between(PAIR, most or pl.col("shards")))
    others = timings.frame.height - frame.height
    chips = f"2 to {most:,}" if most else "2 or more"
    note = f"{counted(others, 'timing')} left out: not on {chips} chips, as the network joins"
    return replace(timings, frame=frame, notes=timings.notes + ((note,) if others else ()))


def fit_collective(frame: pl.DataFrame) -> FitResult[CollectiveNumbers]:
    """The numbers that fit timings of a collective best.

    Args:
        frame: Joined timings, none of a held-out payload.

    Raises:
        RooflinesError: scipy is missing.
    """
    network, hops = frame["network"].to_numpy(), frame["hops"].to_numpy()

    def times(numbers: Mapping[str, float]) -> Array:
        import numpy as np  # noqa: PLC0415, an extra

        return collective_estimate(CollectiveNumbers(**numbers), network, hops, np.minimum)

    found, held = Problem(frame["seconds"].to_numpy(), times, vars(PRIOR), STARTS).fit(
        list(vars(PRIOR))
    )
    return FitResult(CollectiveNumbers(**found), held)


def judged_collectives(frame: pl.DataFrame, numbers: CollectiveNumbers) -> pl.DataFrame:
    """Joined timings with their estimate and bound, and the columns of `judge.with_errors`."""
    times = collective_estimate(
        numbers.floats, pl.col("network"), pl.col("hops"), pl.min_horizontal
    )
    return with_errors(
        frame.with_columns(
            t_estimate_s=times, t_lower_s=pl.col("network"), estimate_bound=pl.lit("network")
        )
    )
