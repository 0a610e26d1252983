"""The lines of thresholds over chips, and what a title says of several of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.text import count
from rooflines.charts.basis import NOMINAL, fitted_text
from rooflines.charts.claims import Finding, claim, ends, solved
from rooflines.charts.kit.text import chip_label, over_text, sizes_text, split_on, width_em
from rooflines.charts.kit.titles import LONGEST_TITLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.basics.lazy import pl
    from rooflines.charts.claims import Plain

__all__ = ["Line", "Point", "Setting", "finding_of", "lines_of"]


class Point(NamedTuple):
    """A threshold of a chip on one number of chips.

    Attributes:
        shards: The number of chips [1].
        critical: The smallest compute-bound size [1]; None: never.
        reached: The smallest size for a smaller share of the peak [1].
        share: That share [1].
        network: The interconnect; None for one chip.
        calibrated: Whether chip and dtypes have a calibration.
    """

    shards: int
    critical: int | None
    reached: int | None
    share: float | None
    network: str | None
    calibrated: bool


@dataclass(frozen=True)
class Line:
    """The thresholds of a chip over the number of chips.

    Attributes:
        chip: The chip.
        points: Its thresholds, those on the fewest chips first.
    """

    chip: str
    points: Sequence[Point]

    @cached_property
    def sizes(self) -> list[int]:
        """The critical sizes that there are [1]."""
        return [point.critical for point in self.points if point.critical is not None]

    @cached_property
    def reached(self) -> list[int]:
        """The sizes for a smaller share of the peak [1]."""
        return [point.reached for point in self.points if point.reached is not None]

    @cached_property
    def never(self) -> list[int]:
        """The numbers of chips on which no size is enough [1]."""
        found = {point.shards for point in self.points if point.critical is not None}
        return [each for each in self.shards if each not in found]

    @cached_property
    def shards(self) -> list[int]:
        """Its numbers of chips [1]."""
        return list(dict.fromkeys(point.shards for point in self.points))

    def sizes_on(self, shards: int) -> list[int]:
        """The critical sizes on a number of chips [1]."""
        points = (point for point in self.points if point.shards == shards)
        return [point.critical for point in points if point.critical is not None]

    @cached_property
    def networks(self) -> list[str | None]:
        """Its interconnects."""
        return list(dict.fromkeys(point.network for point in self.points))

    @cached_property
    def share(self) -> float | None:
        """The smaller share of the peak that some size reaches [1]."""
        return next((point.share for point in self.points if point.reached is not None), None)


def lines_of(view: pl.DataFrame) -> list[Line]:
    """The lines of a frame's chips, in the order of the frame.

    Args:
        view: The rows of one dtype combination and split, by one basis.
    """
    points: dict[str, list[Point]] = {}
    for chip, *point in view.select("chip", *Point._fields).iter_rows():
        points.setdefault(chip, []).append(Point(*point))
    return [Line(chip, sorted(of, key=lambda one: one.shards)) for chip, of in points.items()]


class Setting(NamedTuple):
    """What all lines of one choice have in common.

    Attributes:
        dtypes, sharding, basis: The choice.
        size: What is solved for.
        held: The shape and sizes held fixed, as `claims.held` has them.
        text: The same as text.
        batch: The size of B held fixed [1]; None if there is none.
    """

    dtypes: str
    sharding: str
    basis: str
    size: str
    held: Mapping[str, Sequence[Plain]]
    text: str
    batch: int | None


def finding_of(lines: Sequence[Line], of: Setting) -> Finding:
    """Title and subtitle: what most chips need, or the chip that is never compute-bound first."""
    lines, size = sorted(lines, key=lambda line: line.chip), of.size
    subtitle = _subtitle(lines, of)
    shown: dict[str, Sequence[Plain]] = {
        "chip": [line.chip for line in lines],
        "dtypes": [of.dtypes],
        "sharding": [of.sharding],
        "shards": list(dict.fromkeys(each for line in lines for each in line.shards)),
        **solved(size),
        **of.held,
    }
    about = partial(claim, of="critical", basis=of.basis)
    if not any(line.sizes for line in lines):
        title = f"Split {of.sharding}: no {size} is enough on the chips shown"
        return Finding(title, subtitle, about("never", rows=shown, value=None))
    least = max(lines, key=lambda line: len(line.never))
    if least.never:
        title = f"{split_on(of.sharding, least.chip, least.never)}: no {size} is enough"
        shown["chip"] = [least.chip]
        found = about("never", rows=shown, value=sorted(least.never), by="shards")
        return Finding(title, subtitle, found)
    most = max(line.shards[-1] for line in lines)
    last = [line for line in lines if line.shards[-1] == most]
    needed = {line.chip: line.sizes_on(most) for line in last}
    shown |= {"chip": [*needed], "shards": [most]}
    value = ends(each for sizes in needed.values() for each in sizes)
    return Finding(_title(most, needed, of), subtitle, about("range", rows=shown, value=value))


def _title(shards: int, needed: Mapping[str, Sequence[int]], of: Setting) -> str:
    """What each chip needs on a number of chips; the ends of a range have their chips' names."""
    chips = "1 chip needs" if shards == 1 else f"{count(shards)} chips need"
    at = "" if of.batch is None else f" at B = {of.batch:,}"
    every = sorted((each, chip) for chip, sizes in needed.items() for each in sizes)
    sizes = [each for each, _ in every]
    (low, least), (high, most) = every[0], every[-1]
    span = sizes_text(of.size, sizes)
    if " to " not in span:
        return f"{chips} {span}{at}"
    named = (
        f"{chips} {of.size} = {low:,} ({chip_label(least)}) to {high:,} ({chip_label(most)}){at}"
    )
    alone = sizes.count(low) == sizes.count(high) == 1 and least != most
    if alone and width_em(named, bold=True) <= LONGEST_TITLE:
        return named
    return f"{chips} {span}{at}, depending on the {'chip' if len(needed) > 1 else 'network'}"


def _subtitle(lines: Sequence[Line], of: Setting) -> str:
    """The choice, what is held fixed, and what hollow dots and the basis mean."""
    fixed = over_text(network for line in lines for network in line.networks)
    fixed += f", {of.text}" if of.text else ""
    share = next((line.share for line in lines if line.share is not None), None)
    hollow = "" if share is None else f" Hollow: {100 * share:g} % of the peak."
    chips = [line.chip for line in lines]
    fitted = [line.chip for line in lines if line.points[0].calibrated]
    by = "" if of.basis == NOMINAL else fitted_text(chips, fitted)
    return f"{of.dtypes}, split {of.sharding}{fixed}. Every byte counted.{hollow}{by}"
