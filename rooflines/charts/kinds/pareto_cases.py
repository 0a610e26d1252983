"""The chips that are shown together for one choice: their fronts, the axes, and what is said."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.lazy import pl
from rooflines.basics.text import seconds, significant
from rooflines.charts.basis import NOMINAL
from rooflines.charts.claims import Finding, claim
from rooflines.charts.comparing import EVERY, names_of
from rooflines.charts.kinds.pareto_fronts import CASE, ESTIMATES, MS, RATE, TIME
from rooflines.charts.kit.place import Plane
from rooflines.charts.kit.text import chip_label
from rooflines.charts.planes import ticked
from rooflines.models.shape import DECODE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from rooflines.charts.claims import Plain

__all__ = ["TARGET_S", "VIEW", "ChipPoints", "Setting", "Together", "finding_of", "together"]

TARGET_S = 0.02
"""The time per token that titles compare chips at: 50 tokens per second for every user [s]."""

ROOM = 1.3
"""The factor by which axes go beyond the values [1]."""

BEYOND = 3.0
"""The factor by which times of what does not fit may exceed those of what fits [1]."""

EQUAL_DIGITS = 12
"""Throughputs that agree to this many digits are a tie."""

VIEW = (*CASE, "basis")
"""What all points that are shown together have in common."""


class ChipPoints(NamedTuple):
    """The extent and the front of the points of a chip in one view.

    Attributes:
        chip: The chip.
        left, right: The least and the largest time [ms].
        fitting: The largest time of what fits [ms]; None: nothing fits.
        bottom, top: The least and the largest throughput [1/s].
        times, rates: Time [ms] and throughput [1/s] along the front; both grow.
        rate: The exact largest throughput on the front [1/s]; None: nothing fits.
        quick: The largest within `TARGET_S` [1/s]; None: none is.
    """

    chip: str
    left: float
    right: float
    fitting: float | None
    bottom: float
    top: float
    times: Sequence[float]
    rates: Sequence[float]
    rate: float | None
    quick: float | None


class Setting(NamedTuple):
    """What all points of one view have in common.

    Attributes:
        model, dtypes, context, basis: The choice; the context in tokens [1].
        routing: How tokens choose experts; None for a dense model.
        lacking: The chips compared that are left out, as they have no calibration.
    """

    model: str
    dtypes: str
    context: int
    basis: str
    routing: str | None
    lacking: Sequence[str]

    @property
    def view(self) -> tuple[str, str, int, str]:
        """The values of `VIEW`."""
        return self.model, self.dtypes, self.context, self.basis


@dataclass(frozen=True)
class Together:
    """Chips that are shown together for one choice, and their axes.

    Attributes:
        chip: The chip that is added to those compared, the last one; `EVERY` for none.
        of: What their points have in common.
        chips: The points of each.
    """

    chip: str
    of: Setting
    chips: Sequence[ChipPoints]

    @cached_property
    def plane(self) -> Plane:
        """The axes; times go on somewhat beyond those that fit."""
        right = max(one.right for one in self.chips)
        fitting = [one.fitting for one in self.chips if one.fitting is not None]
        if fitting:
            right = min(right, max(fitting) * BEYOND)
        left = min(one.left for one in self.chips)
        bottom, top = min(one.bottom for one in self.chips), max(one.top for one in self.chips)
        return Plane((left / ROOM, right * ROOM), (bottom / ROOM, top * ROOM))

    @property
    def fronts(self) -> dict[str, list[tuple[float, float]]]:
        """Time [ms] and throughput [1/s] along the front of each chip."""
        return {one.chip: list(zip(one.times, one.rates, strict=True)) for one in self.chips}

    @cached_property
    def highest(self) -> list[tuple[str, float, float]]:
        """Chips with their largest throughput, as drawn and exact [1/s], the largest first."""
        found = [(one.chip, one.rates[-1], one.rate) for one in self.chips if one.rate is not None]
        return sorted(found, key=lambda each: -each[1])

    def span(self) -> dict[str, Any]:
        """What the chart reads of the axes, and the target where it is on them."""
        (left, right), target = self.plane.x, TARGET_S * MS
        return {
            **ticked(self.plane),
            "target": target if left < target < right else None,
            "late": target**2 > left * right,
        }


def together(views: pl.DataFrame, added: Collection[str] = ()) -> Iterator[Together]:
    """The chips compared by view, where there are any, and these with each one that is added.

    Args:
        views: From `pareto_fronts.views_of`.
        added: The chips that are added to those compared; they come last in each view.
    """
    by_view = _by_view(views)
    for (*case, basis, routing), chips in by_view.items():
        model, dtypes, context = case
        own = [one for one in chips if one.chip not in added]
        shown = {one.chip for one in chips}
        nominal = by_view[*case, NOMINAL, routing]
        lacking = [c.chip for c in nominal if c.chip not in shown and c.chip not in added]
        of = Setting(model, dtypes, context, basis, routing, lacking)
        if own:
            yield Together(EVERY, of, own)
        for one in chips:
            if one.chip in added:
                yield Together(one.chip, of, [*own, one])


def _by_view(views: pl.DataFrame) -> dict[tuple[Any, ...], list[ChipPoints]]:
    """The points of every chip by `VIEW` and `routing`."""
    fits, front = pl.col("fits"), pl.col("front")
    quick = front & (pl.col(TIME) <= TARGET_S)
    key = (*VIEW, "routing")
    by_chip = views.group_by(*key, "chip", maintain_order=True).agg(
        left=pl.col("ms").min(),
        right=pl.col("ms").max(),
        fitting=pl.col("ms").filter(fits).max(),
        bottom=pl.col("rate").min(),
        top=pl.col("rate").max(),
        times=pl.col("ms").filter(front).sort(),
        rates=pl.col("rate").filter(front).sort(),
        rate=pl.col(RATE).filter(front).max(),
        quick=pl.col(RATE).filter(quick).max(),
    )
    found: dict[tuple[Any, ...], list[ChipPoints]] = {}
    for row in by_chip.select(*key, *ChipPoints._fields).iter_rows():
        found.setdefault(row[: len(key)], []).append(ChipPoints(*row[len(key) :]))
    return found


def finding_of(shown: Together) -> Finding:
    """Title and subtitle: the chips with the largest throughput within the target."""
    of = shown.of
    times = "lower bounds (t_lower)" if of.basis == NOMINAL else "calibrated"
    experts = f" Experts: {of.routing} routing." if of.routing else ""
    lacking = f" No calibration: {names_of(of.lacking)}." if of.lacking else ""
    subtitle = (
        f"{chip_label(of.model)} in {of.dtypes}, decode at S = {of.context:,}. Times are"
        f" {times}.{experts} Dots: batches and splits; hollow: too large for the memory.{lacking}"
    )
    return _headline(shown)._replace(subtitle=subtitle)


def _headline(shown: Together) -> Finding:
    """Title and claim."""
    of, chips = shown.of, [one.chip for one in shown.chips]
    rows: dict[str, Sequence[Plain]] = {
        "chip": chips,
        "model": [of.model],
        "dtypes": [of.dtypes],
        "S": [of.context],
        "phase": [DECODE],
        "fits": [True],
    }
    about = partial(claim, of=RATE, rows=rows, basis=of.basis)
    time = TIME if of.basis == NOMINAL else ESTIMATES[TIME]
    quickly = partial(about, most={time: TARGET_S})
    within = f"within {seconds(TARGET_S)} a token"
    if all(one.rate is None for one in shown.chips):
        return Finding("Nothing shown fits the memory", "", about("none", value=None))
    quick = {one.chip: one.quick for one in shown.chips if one.quick is not None}
    if not quick:
        return Finding(f"Nothing that fits is {within}", "", quickly("none", value=None))
    most = max(quick.values())
    digits = f".{EQUAL_DIGITS - 1}e"
    best = [chip for chip, rate in quick.items() if f"{rate:{digits}}" == f"{most:{digits}}"]
    if len(best) > 1:
        title = f"{len(best)} chips tie for most tokens per chip {within}"
        return Finding(title, "", quickly("tie", value=len(best)))
    (first,) = best
    if len(chips) == 1:
        title = f"{chip_label(first)}: {significant(most)} tokens/s per chip {within}"
        return Finding(title, "", quickly("maximum", value=most))
    title = f"{chip_label(first)} gives most tokens per chip {within}"
    return Finding(title, "", quickly("largest", value=first))
