"""The rows of a sweep that each chip supports, and those skipped, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError, check_known, placed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.catalogue.dtypes import Combination
    from rooflines.catalogue.entries import Chip
    from rooflines.model.operation import Unit
    from rooflines.model.sharding import Sharding
    from rooflines.settings.schema import SweepConfig

__all__ = ["Asked", "ChipRows", "Skipped", "Variant", "check_chips", "supported"]


@dataclass(frozen=True)
class Variant:
    """One (dtypes, sharding, shards) of a sweep; with sizes it determines the costs."""

    dtypes: str
    sharding: str
    shards: int


@dataclass(frozen=True)
class ChipRows:
    """The rows of one chip and memory level: a full product of axes."""

    chip: str
    memory: str
    network: str | None
    variants: tuple[Variant, ...]


@dataclass(frozen=True)
class Skipped:
    """Rows that a sweep asks for but a chip does not support; None in a field means all values."""

    chip: str
    memory: str
    rows: int
    reason: str
    network: str | None = None
    dtypes: str | None = None
    sharding: str | None = None
    shards: int | None = None

    def asked(self) -> str:
        """The unsupported dtypes, sharding and shards, or the memory level, for a message."""
        parts = (self.dtypes, self.sharding, self.shards and f"{self.shards} shards")
        return ", ".join(str(part) for part in parts if part) or self.memory


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
    combinations: Mapping[str, Combination]
    shardings: Mapping[str, Sharding]
    points: int


def check_chips(config: SweepConfig, chips: Mapping[str, Chip]) -> None:
    """Refuse chips that are in no catalogue."""
    fix = "use one of these, or describe the chip under `chips:` with a source"
    with placed("chips"):
        check_known(config.chips, chips, "no chip in the catalogue", fix)


def supported(asked: Asked) -> tuple[tuple[ChipRows, ...], tuple[Skipped, ...]]:
    """The rows that the chips of a sweep support, and those that are skipped.

    Raises:
        RooflinesError: No row is supported, or some are not and `on_unsupported` is `error`.
    """
    by_chip: list[ChipRows] = []
    skipped: list[Skipped] = []
    pairs = _pairs(asked)
    every = tuple(Variant(dtypes, *pair) for dtypes in asked.combinations for pair in pairs)
    shared: dict[tuple[frozenset[str], int | None], tuple[Variant, ...]] = {}
    for chip in asked.config.chips:
        missing = _missing_dtypes(asked, chip)
        network, most, why = _network(asked, chip)
        key = (frozenset(missing), most)
        if key not in shared:
            shared[key] = tuple(
                variant
                for variant in every
                if variant.dtypes not in missing and (most is None or variant.shards <= most)
            )
        for memory in asked.config.memory:
            if reason := _no_level(asked, chip, memory):
                skipped.append(Skipped(chip, memory, asked.points * len(every), reason))
                continue
            for dtypes, reason in missing.items():
                rows = asked.points * len(pairs)
                skipped.append(Skipped(chip, memory, rows, reason, dtypes=dtypes))
            rows = asked.points * (len(asked.combinations) - len(missing))
            if rows and most is not None:
                wanted = network or asked.config.network
                skipped.extend(
                    Skipped(chip, memory, rows, why, wanted, sharding=sharding, shards=shards)
                    for sharding, shards in pairs
                    if shards > most
                )
            if shared[key]:
                by_chip.append(ChipRows(chip, memory, network, shared[key]))
    _check_skipped(asked, by_chip, skipped)
    return tuple(by_chip), tuple(skipped)


def _check_skipped(asked: Asked, by_chip: list[ChipRows], skipped: list[Skipped]) -> None:
    """Refuse a sweep without rows, and one with skipped rows if `on_unsupported` is `error`."""
    if not skipped or (by_chip and asked.config.on_unsupported == "skip"):
        return
    first = skipped[0]
    problem = f"asks {first.chip} for {first.asked()}, but it has {first.reason}"
    if not by_chip:
        raise RooflinesError(
            "",
            f"is left with no rows: no chip can do any of it. It {problem}",
            "choose other chips, dtypes or levels",
        )
    raise RooflinesError(
        "on_unsupported",
        f"is 'error', and the sweep {problem}",
        "leave it out, or write `on_unsupported: skip`",
    )


def _pairs(asked: Asked) -> list[tuple[str, int]]:
    """Every (sharding, shards) of the sweep; a sharding without a split runs on one chip."""
    return [
        (name, n)
        for name, scheme in asked.shardings.items()
        for n in (asked.config.shards if scheme.split else [1])
    ]


def _missing_dtypes(asked: Asked, chip: str) -> Mapping[str, str]:
    """The dtype combinations that a chip has no peak for, and the reason."""
    peaks = asked.chips[chip].units.get(asked.unit, {})
    return {
        name: f"no {combination.compute} peak of its {asked.unit} unit"
        for name, combination in asked.combinations.items()
        if combination.compute not in peaks
    }


def _no_level(asked: Asked, chip: str, memory: str) -> str | None:
    """The reason why a memory level cannot feed the unit; None where it can."""
    level = asked.chips[chip].memory.get(memory)
    if level is None:
        return f"no memory level {memory}"
    if level.bytes_per_s is None:
        return f"no published bandwidth of memory level {memory}"
    return None


def _network(asked: Asked, chip: str) -> tuple[str | None, int | None, str]:
    """A chip's interconnect, the most chips it joins (None: no documented limit), and why."""
    networks, wanted = asked.chips[chip].networks, asked.config.network
    if wanted is not None and wanted not in networks:
        return None, 1, f"no interconnect {wanted}"
    if not networks:
        return None, 1, "no interconnect"
    name = wanted or next(iter(networks))
    most = networks[name].exact.chips_joined
    return name, most, f"{most} chips at most on one {name}"
