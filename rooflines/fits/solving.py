"""Robust least squares of logarithms, for any form of a time with positive numbers.

Residuals are ln(estimate / measured), over logarithms of the numbers, with a soft L1 loss. scipy
and numpy are imported only here, when a fit is made: they come as an extra.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from math import exp
from typing import TYPE_CHECKING

from rooflines.basics.errors import not_installed
from rooflines.basics.lazy import pl

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.optimize import OptimizeResult

    Array = NDArray[np.float64]

SCALE = 0.03
"""Residuals beyond this count less than their square, as `f_scale` of scipy; a number a factor of
e from its prior counts as one of this size [1]."""

LEAST_WEIGHT = 3.0
"""A number that decides the time of fewer timings, added up, may be held at its prior [1]."""

LEAST_RISE = 2 * SCALE**2
"""It is not held if that raises the cost by more: two standard deviations at a noise of `SCALE`."""

STEP = 0.01
"""Change of a logarithm that shows how much of the times a number decides [1]."""

DIGITS = 6
"""Significant digits of a fitted number [1]."""

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

Named = Mapping[str, float]


def with_folds(frame: pl.DataFrame) -> pl.DataFrame:
    """Adds the hash of every row's site (D, F), the same in every table."""
    sites = frame.select("D", "F").unique(maintain_order=True)
    hashes = [_hash(f"{D}x{F}") for D, F in sites.iter_rows()]
    sites = sites.with_columns(pl.Series(FOLD, hashes, dtype=pl.Int64))
    return frame.join(sites, on=["D", "F"], how="left", maintain_order="left")


def _hash(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:4], "big")


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


def sites_in(frame: pl.DataFrame) -> int:
    """Sites that rows with `FOLD` are of [1]."""
    return frame[FOLD].n_unique()


def _place(*, inner: bool) -> pl.Expr:
    """A place from 0 to 1 by the hash: by its remainder first, then by its further digits [1]."""
    digits = pl.col(FOLD) // FOLDS if inner else pl.col(FOLD)
    return digits % FOLDS / FOLDS + digits // FOLDS / HASHES


def require_scipy() -> Callable[..., OptimizeResult]:
    """`scipy.optimize.least_squares`.

    Raises:
        RooflinesError: scipy is not installed.
    """
    try:
        from scipy.optimize import least_squares  # noqa: PLC0415, an extra
    except ImportError:
        raise not_installed("rooflines calibrate", "scipy") from None
    solve: Callable[..., OptimizeResult] = least_squares
    return solve


@dataclass(frozen=True)
class Problem:
    """Timings, and the form that shall give them.

    Attributes:
        measured: The timings [s].
        estimate: The times that numbers give [s]; a name that is left out has its default.
        prior: Where a fit starts; it pulls weakly.
        starts: Factors of the prior: one start alone can end in a poor minimum.
    """

    measured: Array
    estimate: Callable[[Named], Array]
    prior: Named
    starts: Sequence[Named]

    def solve(self, names: Sequence[str]) -> tuple[dict[str, float], float]:
        """The best numbers of these names, and the cost; other names have their default.

        Raises:
            RooflinesError: scipy is missing.
        """
        return self._solve(names, {})

    def fit(self, names: Sequence[str]) -> tuple[dict[str, float], tuple[str, ...]]:
        """The best numbers, and the names of those that the timings do not tell.

        These are held at the prior: they decide little, and the timings do not contradict it.

        Raises:
            RooflinesError: scipy is missing.
        """
        found, cost = self._solve(names, {})
        held: dict[str, float] = {}
        for name in names:
            if self._weight(name, found) < LEAST_WEIGHT:
                prior = {name: self.prior[name]}
                _, without = self._solve([other for other in names if other != name], prior)
                held |= prior if without <= cost + LEAST_RISE else {}
        if held:
            found, _ = self._solve([name for name in names if name not in held], held)
        return found, tuple(held)

    def _solve(self, names: Sequence[str], held: Named) -> tuple[dict[str, float], float]:
        least_squares = require_scipy()
        import numpy as np  # noqa: PLC0415, comes with scipy

        start = np.log([self.prior[name] for name in names])
        measured = np.log(self.measured)

        def numbers(logs: Array) -> dict[str, float]:
            return {**dict(zip(names, np.exp(logs).tolist(), strict=True)), **held}

        def residuals(logs: Array) -> Array:
            times = np.log(self.estimate(numbers(logs)))
            return np.concatenate([times - measured, SCALE * (logs - start)])

        tried = [
            least_squares(
                residuals,
                np.log([self.prior[name] * factors.get(name, 1.0) for name in names]),
                loss="soft_l1",
                f_scale=SCALE,
            )
            for factors in self.starts
        ]
        best = min(tried, key=lambda result: float(result.cost))
        return numbers(best.x), float(best.cost)

    def _weight(self, name: str, found: Named) -> float:
        """Timings that a number decides, added up over the share of each [1].

        As it was found, or as the prior has it, whichever is more.
        """
        import numpy as np  # noqa: PLC0415, as above

        weights = []
        for here in (found[name], self.prior[name]):
            more = self.estimate({**found, name: here * exp(STEP)})
            shares = np.log(more / self.estimate({**found, name: here})) / STEP
            weights.append(float(np.abs(shares).sum()))
        return max(weights)


def rounded(number: float) -> Fraction:
    """A fitted number with a few significant digits, as an exact decimal."""
    return Fraction(f"{number:.{DIGITS}g}")
