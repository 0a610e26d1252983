"""Sites that a fit keeps back: chosen by hashes, the same in every table."""

from __future__ import annotations

from hashlib import sha256

from rooflines.basics.lazy import pl

FOLDS = 4
"""One site in as many is held out [1]."""

QUARTER = 1 / FOLDS
"""The share of sites that is held out [1]."""

NEAR = 0.1
"""By how much the share may differ where the hashes alone decide [1]."""

FOLD = "fold"
"""The column with the hash of a row's site, which decides whether it is held out."""

HASHES = 2.0**32
"""Different hashes [1]."""

SPREAD, PLACES = 654_435_761, 2**30
"""Multiples of the one, modulo the other, are far from each other [1]."""


SITES = (("D", "F"), ("N", "K"))
"""The sizes of a site, of matmuls and of attention."""


def with_folds(frame: pl.DataFrame) -> pl.DataFrame:
    """Adds `FOLD`, the hash of a matmul's site (D, F), or of the heads (N, K) of attention.

    The site of a collective is the power of two below its `bytes`: one power in `FOLDS` is held
    out.
    """
    names = next((site for site in SITES if set(site) <= set(frame.columns)), None)
    if names is None:
        power = pl.col("bytes").log(2).floor().cast(pl.Int64)
        return frame.with_columns(
            (power % FOLDS + power // FOLDS * SPREAD % PLACES * FOLDS).alias(FOLD)
        )
    sites = frame.select(names).unique(maintain_order=True)
    digests = [sha256(f"{first}x{second}".encode()).digest() for first, second in sites.iter_rows()]
    hashes = [int.from_bytes(digest[:4], "big") for digest in digests]
    sites = sites.with_columns(pl.Series(FOLD, hashes, dtype=pl.Int64))
    return frame.join(sites, on=names, how="left", maintain_order="left")


def held_out(below: float | pl.Expr = QUARTER, *, inner: bool = False) -> pl.Expr:
    """Whether a row is held out: those of sites whose place is low.

    Args:
        below: From `held_out_below`; as it is by default, the same sites in every table [1].
        inner: Not to judge a fit, but within the other rows, to choose what is fitted.
    """
    return _place(inner=inner) < below


def held_out_below(frame: pl.DataFrame, *, inner: bool = False) -> float:
    """The place below which sites are held out, so that they are about a quarter of all.

    Args:
        frame: Rows with `FOLD`.
        inner: As of `held_out`.

    Returns:
        `QUARTER` where the hashes share out the sites well: then they are the same sites in every
        table. Else the place of the site whose rank is a quarter of their number [1].
    """
    places = frame.select(_place(inner=inner)).to_series().unique().sort()
    low = places.filter(places < QUARTER).len()
    if abs(places.len() * QUARTER - low) <= places.len() * NEAR:
        return QUARTER
    return float(places[(places.len() + 1) // FOLDS])


def quarters() -> pl.Expr:
    """The quarter of a row's site, 0 to `FOLDS` - 1: by rank of the hashes, all of one size."""
    rank = pl.col(FOLD).rank("dense") - 1
    return rank * FOLDS // (rank.max() + 1)


def sites_in(frame: pl.DataFrame) -> int:
    """Sites that rows with `FOLD` are of [1]."""
    return frame[FOLD].n_unique()


def _place(*, inner: bool) -> pl.Expr:
    """A place from 0 to 1 by the hash: by its remainder first, then by its further digits [1]."""
    digits = pl.col(FOLD) // FOLDS if inner else pl.col(FOLD)
    return digits % FOLDS / FOLDS + digits // FOLDS / HASHES
