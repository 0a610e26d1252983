"""Held-out median errors of estimates, and counts of the catalogues, in sentences of pages."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from blocks import with_values
from documents import DOCS

import rooflines
from rooflines.basics.text import significant
from rooflines.fits.calibration_files import ALL_ENGINES, Fitted, shipped_calibrations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


FAQ = DOCS / "faq.md"


def with_held_out_errors(page: str) -> str:
    """A page with current held-out errors and counts: matmuls, served tokens, training."""
    shipped, chips = shipped_calibrations(), rooflines.chips()
    steps = {key: fits["decode"] for key, fits in shipped.by_key["steps"].items()}
    by_engine = _medians(fit for key, fit in steps.items() if key.chip is not None)
    values = {
        "matmul": _percent(_medians(_fits(shipped.calibrations))),
        "served": _percent(_medians([shipped.steps[ALL_ENGINES]["decode"]])),
        "spread": f"{100 * min(by_engine):.0f} to {100 * max(by_engine):.0f} %",
        "training": _percent(_medians(_once(_fits(shipped.training)))),
        "chips": str(chips.filter(chips["base"].is_null())["chip"].n_unique()),
        "models": str(len(rooflines.model_shapes())),
    }
    return with_values(page, values)


def _fits(by_chip: Mapping[str, Mapping[str, Fitted]]) -> Iterable[Fitted]:
    return (fit for fits in by_chip.values() for fit in fits.values())


def _once(fits: Iterable[Fitted]) -> list[Fitted]:
    """Fits, those that chips share once."""
    seen = list[Fitted]()
    for fit in fits:
        seen += [] if fit in seen else [fit]
    return seen


def _medians(fits: Iterable[Fitted]) -> list[float]:
    """The median held-out error of each fit that has one [1]."""
    return [fit.held_out.median for fit in fits if fit.held_out]


def _percent(errors: list[float]) -> str:
    return f"{significant(100 * median(errors), 2)} %"
