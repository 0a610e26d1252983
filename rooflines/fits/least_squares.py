"""Robust least squares on logarithms, for any time form with positive numbers.

Residuals are ln(estimate / measured), as functions of ln(number), with a soft L1 loss. scipy and
numpy are imported only here, when a fit is made: they come as an extra.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import exp
from typing import TYPE_CHECKING

from rooflines.basics.errors import missing_package

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.optimize import OptimizeResult

    Array = NDArray[np.float64]

SCALE = 0.03
"""Residuals beyond this count less than their square, as `f_scale` in scipy; by default a number a
factor e from its prior counts as one residual of this size [1]."""

MIN_WEIGHT = 3.0
"""A number that decides fewer timings than this, summed over shares, may stay at its prior [1]."""

MAX_COST_RISE = 2 * SCALE**2
"""Largest rise in cost at which a number stays at its prior: two standard deviations at a noise of
`SCALE`."""

STEP = 0.01
"""Change in a logarithm that shows how much a number decides [1]."""

DIGITS = 6
"""Significant digits in a fitted number [1]."""

Named = Mapping[str, float]


def require_scipy() -> Callable[..., OptimizeResult]:
    """Import `scipy.optimize.least_squares`.

    Raises:
        RooflinesError: scipy is not installed.
    """
    try:
        from scipy.optimize import least_squares  # noqa: PLC0415, an extra
    except ImportError:
        raise missing_package("rooflines measured calibrate", "scipy") from None
    solve: Callable[..., OptimizeResult] = least_squares
    return solve


@dataclass(frozen=True)
class Problem:
    """Least-squares problem: timings, and the form to fit to them.

    Attributes:
        measured: The timings [s].
        estimate: The times that numbers give [s]; a name that is left out has its default.
        prior: Where a fit starts, exact; it pulls weakly.
        starts: Factors on the prior: one start alone can end in a poor minimum.
        pulls: Residuals by name for a number a factor e from its prior; else `SCALE` [1].
    """

    measured: Array
    estimate: Callable[[Named], Array]
    prior: Mapping[str, Fraction]
    starts: Sequence[Named]
    pulls: Named = field(default_factory=dict)

    def fit(self, names: Sequence[str]) -> tuple[dict[str, Fraction], tuple[str, ...]]:
        """Fit numbers: exact decimals by name, and the names kept at the prior.

        Those kept are not identifiable: they decide little, and the timings do not contradict the
        prior.

        Raises:
            RooflinesError: scipy is missing.
        """
        numbers, cost = self.solve(names)
        at_prior: dict[str, float] = {}
        for name in names:
            if self._weight(name, numbers) < MIN_WEIGHT:
                prior = {name: float(self.prior[name])}
                _, cost_at_prior = self.solve([free for free in names if free != name], prior)
                at_prior |= prior if cost_at_prior <= cost + MAX_COST_RISE else {}
        if at_prior:
            numbers, _ = self.solve([name for name in names if name not in at_prior], at_prior)
        decimals = {
            name: self.prior[name] if name in at_prior else round_number(number)
            for name, number in numbers.items()
        }
        return decimals, tuple(at_prior)

    def solve(
        self, names: Sequence[str], fixed: Named | None = None
    ) -> tuple[dict[str, float], float]:
        """Best numbers by name, and their cost; other names have their default.

        Args:
            names: The names.
            fixed: Numbers under other names, which stay.

        Raises:
            RooflinesError: scipy is missing.
        """
        least_squares = require_scipy()
        import numpy as np  # noqa: PLC0415, comes with scipy

        start = np.log([float(self.prior[name]) for name in names])
        measured = np.log(self.measured)
        pulls = np.array([self.pulls.get(name, SCALE) for name in names])

        def numbers(logs: Array) -> dict[str, float]:
            return {**dict(zip(names, np.exp(logs).tolist(), strict=True)), **(fixed or {})}

        def residuals(logs: Array) -> Array:
            times = np.log(self.estimate(numbers(logs)))
            return np.concatenate([times - measured, pulls * (logs - start)])

        results = [
            least_squares(
                residuals,
                np.log([float(self.prior[name]) * factors.get(name, 1.0) for name in names]),
                loss="soft_l1",
                f_scale=SCALE,
            )
            for factors in self.starts
        ]
        best = min(results, key=lambda result: float(result.cost))
        return numbers(best.x), float(best.cost)

    def _weight(self, name: str, numbers: Named) -> float:
        """Weight of a number: timings that it decides, summed over its share in each [1].

        The larger of two: at the fitted number, and at its prior.
        """
        import numpy as np  # noqa: PLC0415, as above

        weights = []
        for number in (numbers[name], float(self.prior[name])):
            stepped_times = self.estimate({**numbers, name: number * exp(STEP)})
            shares = np.log(stepped_times / self.estimate({**numbers, name: number})) / STEP
            weights.append(float(np.abs(shares).sum()))
        return max(weights)


def round_number(number: float) -> Fraction:
    """Round a fitted number to `DIGITS` significant digits, as an exact decimal."""
    return Fraction(f"{number:.{DIGITS}g}")
