"""The rows of a sweep that each chip supports, and those skipped, with the reason."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rooflines.basics.errors import RooflinesError, check_known, placed
from rooflines.catalogue.unsupported import (
    interconnects,
    missing_level_reason,
    missing_peak_reason,
    not_joined,
)
from rooflines.model.network import ALL_TO_ALL, BETWEEN, axes_text, parse_axes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.catalogue.dtypes import StoredDtypes
    from rooflines.catalogue.entries import Chip
    from rooflines.model.network import Link
    from rooflines.model.operation import Unit
    from rooflines.model.sharding import Sharding
    from rooflines.settings.schema import SweepConfig

Split = tuple[str, tuple[int, ...]]
"""A sharding by name, and its chips along each axis."""


@dataclass(frozen=True)
class Variant:
    """One (dtypes, sharding, chips along each axis) of a sweep.

    With sizes, a chip and its networks it determines the costs.
    """

    dtypes: str
    sharding: str
    axes: tuple[int, ...]

    @property
    def shards(self) -> int:
        """N, the chips [1]."""
        return math.prod(self.axes)


@dataclass(frozen=True)
class ChipRows:
    """The rows of one chip, memory level and network: a full product of axes."""

    chip: str
    memory: str
    network: str | None
    variants: tuple[Variant, ...]

    @property
    def networks(self) -> tuple[str, ...]:
        """The interconnects, inner first; none where the chip has none."""
        return tuple(self.network.split(BETWEEN)) if self.network else ()


@dataclass(frozen=True)
class Skipped:
    """Rows of a sweep that a chip does not support; None in a field means all values."""

    chip: str
    memory: str
    rows: int
    reason: str
    network: str | None = None
    dtypes: str | None = None
    sharding: str | None = None
    shards: int | None = None
    axes: str | None = None

    def asked(self) -> str:
        """The unsupported dtypes, sharding and shards, or the memory level, for a message."""
        parts = (self.dtypes, self.sharding, self.axes and f"{self.axes} shards")
        return ", ".join(str(part) for part in parts if part) or self.memory

    @property
    def problem(self) -> str:
        """A predicate of the sweep, for a message."""
        return f"asks {self.chip} for {self.asked()}, but it has {self.reason}"


@dataclass(frozen=True)
class Asked:
    """What a sweep asks of every chip.

    Attributes:
        config: The sweep's config.
        chips: Catalogue entries by id.
        unit: The compute unit.
        combinations, shardings: By name.
        points: Rows of one variant on one chip [1].
    """

    config: SweepConfig
    chips: Mapping[str, Chip]
    unit: Unit
    combinations: Mapping[str, StoredDtypes]
    shardings: Mapping[str, Sharding]
    points: int


def check_chips(names: Sequence[str], chips: Mapping[str, Chip]) -> None:
    """Refuse chips that are in no catalogue."""
    fix = "use one of these, or describe the chip under `chips:` with a source"
    with placed("chips"):
        check_known(names, chips, "no chip in the catalogue", fix)


def supported(asked: Asked) -> tuple[tuple[ChipRows, ...], tuple[Skipped, ...]]:
    """The rows that the chips of a sweep support, and those that are skipped.

    Raises:
        RooflinesError: No row is supported, or some are not and `on_unsupported` is `error`.
    """
    by_chip: list[ChipRows] = []
    skipped: list[Skipped] = []
    pairs = _pairs(asked)
    splits = Splits(asked, pairs)
    routes: Sequence[list[str] | None] = asked.config.network or [None]
    for chip in asked.config.chips:
        missing = _missing_dtypes(asked, chip)
        of_one_combination = asked.points * _splits_asked(asked.chips[chip], routes, pairs)
        for memory in asked.config.memory:
            if reason := missing_level_reason(asked.chips[chip], memory):
                rows = of_one_combination * len(asked.combinations)
                skipped.append(Skipped(chip, memory, rows, reason))
                continue
            for dtypes, reason in missing.items():
                skipped.append(Skipped(chip, memory, of_one_combination, reason, dtypes=dtypes))
            if len(missing) == len(asked.combinations):
                continue
            rows = asked.points * (len(asked.combinations) - len(missing))
            without = False  # rows of one chip without a network are there once
            for wanted in routes:
                network, links, reason = interconnects(asked.chips[chip], wanted)
                unjoined = splits.unjoined(network, links, reason)
                skipped.extend(
                    Skipped(
                        chip,
                        memory,
                        rows,
                        why,
                        network or (BETWEEN.join(wanted) if wanted else None),
                        sharding=sharding,
                        shards=math.prod(axes),
                        axes=axes_text(axes),
                    )
                    for (sharding, axes), why in unjoined.items()
                )
                variants = splits.variants(frozenset(missing), network, links, reason)
                if variants and not (network is None and without):
                    by_chip.append(ChipRows(chip, memory, network, variants))
                without = without or network is None
    _check_skipped(asked, by_chip, skipped)
    return tuple(by_chip), tuple(skipped)


NetworkKey: TypeAlias = "tuple[str | None, tuple[Link, ...], str]"
"""A network, its links, and the reason for splits that nothing else rules out."""


class Splits:
    """The variants of a sweep that networks support; chips with equal networks share the answer."""

    def __init__(self, asked: Asked, pairs: Sequence[Split]) -> None:
        self.every = [Variant(dtypes, *pair) for dtypes in asked.combinations for pair in pairs]
        self.pairs = pairs
        self.scattered = {
            name
            for name, scheme in asked.shardings.items()
            if ALL_TO_ALL in dict(scheme.transfers).values()
        }
        self._unjoined: dict[NetworkKey, dict[Split, str]] = {}
        self._variants: dict[tuple[frozenset[str], NetworkKey], tuple[Variant, ...]] = {}

    def unjoined(
        self, network: str | None, links: tuple[Link, ...], reason: str
    ) -> Mapping[Split, str]:
        """The splits that a network does not support, and the reason for each."""
        key = network, links, reason
        if key not in self._unjoined:
            names = network.split(BETWEEN) if network else []
            whys = (
                (pair, not_joined(names, links, pair[1]) or self._why_not(pair) or reason)
                for pair in self.pairs
            )
            self._unjoined[key] = {pair: why for pair, why in whys if why and pair[1] != (1,)}
        return self._unjoined[key]

    def _why_not(self, split: Split) -> str | None:
        sharding, axes = split
        if len(axes) > 1 and sharding in self.scattered:
            return f"no formula for an {ALL_TO_ALL} along the axes of {axes_text(axes)}"
        return None

    def variants(
        self, missing: frozenset[str], network: str | None, links: tuple[Link, ...], reason: str
    ) -> tuple[Variant, ...]:
        """The variants that a network supports, without some dtype combinations."""
        key = missing, (network, links, reason)
        if key not in self._variants:
            unjoined = self.unjoined(network, links, reason)
            self._variants[key] = tuple(
                variant
                for variant in self.every
                if variant.dtypes not in missing
                and (variant.sharding, variant.axes) not in unjoined
            )
        return self._variants[key]


def _check_skipped(asked: Asked, by_chip: list[ChipRows], skipped: list[Skipped]) -> None:
    """Refuse a sweep without rows, and one with skipped rows if `on_unsupported` is `error`."""
    if not skipped or (by_chip and asked.config.on_unsupported == "skip"):
        return
    first = skipped[0]
    if not by_chip:
        nothing = RooflinesError(
            "",
            f"is left with no rows: no chip can do any of it. It {first.problem}",
            "choose other chips, dtypes or levels",
        )
        nothing.cause = first
        raise nothing
    raise RooflinesError(
        "on_unsupported",
        f"is 'error', and the sweep {first.problem}",
        "leave it out, or write `on_unsupported: skip`",
    )


def _pairs(asked: Asked) -> list[Split]:
    """Every (sharding, axes) of the sweep; a sharding without a split runs on one chip."""
    return [
        (name, axes)
        for name, scheme in asked.shardings.items()
        for axes in (map(parse_axes, asked.config.shards) if scheme.split else [(1,)])
    ]


def _splits_asked(
    chip: Chip, routes: Sequence[Sequence[str] | None], pairs: Sequence[Split]
) -> int:
    """Pairs of a route and a split that are asked of a chip [1].

    Of the routes that it lacks, only the first one has rows of one chip.
    """
    lacking = sum(not interconnects(chip, wanted)[1] for wanted in routes)
    alone = sum(axes == (1,) for _, axes in pairs)
    return len(routes) * len(pairs) - max(lacking - 1, 0) * alone


def _missing_dtypes(asked: Asked, chip: str) -> Mapping[str, str]:
    """The dtype combinations that a chip has no peak for, and the reason."""
    reasons = {
        name: missing_peak_reason(asked.chips[chip], asked.unit, combination.compute)
        for name, combination in asked.combinations.items()
    }
    return {name: reason for name, reason in reasons.items() if reason is not None}
