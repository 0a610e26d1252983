"""Held-out sites: chosen by hashes, the same in every table."""

from __future__ import annotations

from hashlib import sha256

from rooflines.basics.lazy import pl

FOLDS = 4
"""Sites per held-out site [1]."""

QUARTER = 1 / FOLDS
"""Held-out share of sites [1]."""

NEAR = 0.1
"""Largest difference between the held-out share and a quarter where hashes alone decide [1]."""

FOLD = "fold"
"""Column with the hash of a row's site, which decides whether it is held out."""

HASHES = 2.0**32
"""Number of hashes [1]."""

SPREAD, PLACES = 654_435_761, 2**30
"""Multiplier and modulus: multiples of the first, modulo the second, lie far apart [1]."""


SITES = (("D", "F"), ("N", "K"), ("D", "Fe", "k", "E"))
"""Sizes that make a site: for a matmul, attention, experts."""

SPLITS = ("tp", "ep")
"""Sizes that make a site where all experts have one shape."""


def with_folds(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `FOLD`, the hash of a matmul's site (D, F), or attention's heads (N, K).

    A collective's site is the power of two below its `bytes`: one power in `FOLDS` is held out.
    """
    names = next((site for site in SITES if set(site) <= set(frame.columns)), None)
    if names == SITES[-1] and frame.select(names).n_unique() == 1:
        names = SPLITS
    if names is None:
        power = pl.col("bytes").log(2).floor().cast(pl.Int64)
        return frame.with_columns(
            (power % FOLDS + power // FOLDS * SPREAD % PLACES * FOLDS).alias(FOLD)
        )
    sites = frame.select(names).unique(maintain_order=True)
    digests = [sha256("x".join(map(str, site)).encode()).digest() for site in sites.iter_rows()]
    hashes = [int.from_bytes(digest[:4], "big") for digest in digests]
    sites = sites.with_columns(pl.Series(FOLD, hashes, dtype=pl.Int64))
    return frame.join(sites, on=names, how="left", maintain_order="left")


def held_out(below: float | pl.Expr = QUARTER, *, inner: bool = False) -> pl.Expr:
    """True if a row is held out: the place of its site is below a limit.

    Args:
        below: Limit from `held_out_below`; by default the same sites in every table [1].
        inner: Hold out within the remaining rows, to choose the numbers to fit; not to judge a fit.
    """
    return _place(inner=inner) < below


def held_out_below(frame: pl.DataFrame, *, inner: bool = False) -> float:
    """Limit on places that holds out about a quarter of all sites.

    Args:
        frame: Rows with `FOLD`.
        inner: As in `held_out`.

    Returns:
        `QUARTER` where hashes spread the sites well: then the same sites are held out in every
        table. Else the place at rank (sites + 1) // `FOLDS` [1].
    """
    places = frame.select(_place(inner=inner)).to_series().unique().sort()
    low = places.filter(places < QUARTER).len()
    if abs(places.len() * QUARTER - low) <= places.len() * NEAR:
        return QUARTER
    return float(places[(places.len() + 1) // FOLDS])


def quarters() -> pl.Expr:
    """Quarter of a row's site, 0 to `FOLDS` - 1, by hash rank: all the same size."""
    rank = pl.col(FOLD).rank("dense") - 1
    return rank * FOLDS // (rank.max() + 1)


def sites_in(frame: pl.DataFrame) -> int:
    """Number of sites in rows with `FOLD` [1]."""
    return frame[FOLD].n_unique()


def _place(*, inner: bool) -> pl.Expr:
    """Place from 0 to 1 by the hash: its remainder first, then its further digits [1]."""
    digits = pl.col(FOLD) // FOLDS if inner else pl.col(FOLD)
    return digits % FOLDS / FOLDS + digits // FOLDS / HASHES
