"""Reasons why a chip does not support a combination, as in skipped.csv."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, Self

from rooflines.theory.network import (
    LEVEL_SEPARATOR,
    TORUS,
    axes_text,
    group_size,
    max_domain,
    resolve_axes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.hardware.entries import Chip
    from rooflines.theory.network import Link
    from rooflines.theory.operation import Unit


MAX_CHIPS_TRIED = 1024
"""Chip counts tried on either side of an unsupported one [1]."""

Need = Literal[
    "peak",
    "memory",
    "network",
    "axes",
    "groups",
    "sequences",
    "multiple",
    "model",
    "host",
    "once",
    "adapters",
    "lora",
    "optimizer",
]
"""Missing prerequisite: a peak of the unit, a memory level, a network that joins the chips, axes
for several parallelisms, groups that a parallelism fills, sequences for every replica, a size that
chips share evenly, a model whose step is known, a link to the host, one micro-batch in a step,
projections for adapters, or an optimizer with these dtypes.
"""


class Reason(str):
    """Reason for a missing support, as tables have it.

    Attributes:
        need: The missing prerequisite.
    """

    __slots__ = ("need",)

    need: Need

    def __new__(cls, need: Need, text: str) -> Self:
        """Reason with a prerequisite and a text."""
        reason = super().__new__(cls, text)
        reason.need = need
        return reason

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # of str: the text
        """Arguments to copy or pickle."""
        return self.need, str(self)


def need_of(reason: str) -> Need | None:
    """Missing prerequisite of a reason; None for other reasons."""
    return reason.need if isinstance(reason, Reason) else None


def missing_peak_reason(chip: Chip, unit: Unit, compute: str) -> str | None:
    """Reason why a unit cannot compute in a dtype; None if it can."""
    if compute in chip.units.get(unit, {}):
        return None
    return Reason("peak", f"no {compute} peak of its {unit} unit")


def missing_level_reason(chip: Chip, memory: str) -> str | None:
    """Reason why a memory level cannot feed the unit; None if it can."""
    level = chip.memory.get(memory)
    if level is None:
        return Reason("memory", f"no memory level {memory}")
    if level.bytes_per_s is None:
        return Reason("memory", f"no published bandwidth of memory level {memory}")
    return None


def interconnects(
    chip: Chip, network_names: Sequence[str] | None
) -> tuple[str | None, tuple[Link, ...], str]:
    """Interconnects of a chip, or the reason why it lacks them.

    Args:
        chip: The chip.
        network_names: Names of interconnects, inner first; None: the chip's first.

    Returns:
        Their name in tables, None without; the interconnects, inner first; the reason, empty if
        supported.
    """
    names = network_names or list(chip.networks)[:1]
    for name in names:
        if name not in chip.networks:
            return None, (), Reason("network", f"no interconnect {name}")
    if not names:
        return None, (), Reason("network", "no interconnect")
    return LEVEL_SEPARATOR.join(names), tuple(chip.networks[name].exact for name in names), ""


HOST_LINKS = ("nvlink-c2c", "pcie")
"""Interconnects between a chip and its host, the fastest first."""


def host_link(chip: Chip) -> tuple[str, Link] | None:
    """Link between a chip and its host: its name, and its bandwidth each way.

    Args:
        chip: The chip.

    Returns:
        None: the catalogue has none. `links` is one: a chip's share of the host's is not modelled.
    """
    name = next((name for name in HOST_LINKS if name in chip.networks), None)
    return None if name is None else (name, chip.networks[name].exact)


def missing_route_reason(
    names: Sequence[str], links: tuple[Link, ...], axes: tuple[int, ...]
) -> str | None:
    """Reason why interconnects do not join chips along these axes; None if they do.

    Args:
        names: The interconnects, inner first.
        links: The interconnects' links.
        axes: Chips along each axis [1].
    """
    if not links or math.prod(axes) == 1:
        return None
    obstacle = next(_obstacles(names, links, axes), None)
    return None if obstacle is None else Reason("network", obstacle)


def routes_joining(chip: Chip, *splits: tuple[int, ...]) -> list[str]:
    """Routes of a chip that join chips, as options name them.

    Never an outer network alone, which would leave the inner one idle.

    Args:
        chip: The chip.
        splits: Chips along each axis; all of these have to be joined [1].

    Returns:
        The first interconnect inside another one, comma between; then the first alone.
    """
    route_links = [(route, interconnects(chip, route)[1]) for route in _routes(chip)]
    return [
        ",".join(route)
        for route, links in route_links
        if all(
            missing_route_reason(route, links, resolve_axes(links, axes)) is None for axes in splits
        )
    ]


def _routes(chip: Chip) -> list[list[str]]:
    """Routes with a chip's first interconnect: inside another one, then alone."""
    inner, *outer = chip.networks or [""]
    return [*([inner, outer_name] for outer_name in outer), [inner]]


def default_route(chip: Chip, chips: int) -> list[str]:
    """Default interconnects for a number of chips.

    Args:
        chip: The chip.
        chips: The number of chips [1].

    Returns:
        The chip's first; where it does not join them, the first of `routes_joining`. If there is
        none, the first with an unlimited network around it, or else the first: messages name it.
        Of a torus always the first: another network is never taken in silence.
    """
    names = list(chip.networks)[:1]
    _, links, _ = interconnects(chip, names)
    if names and links[0].topology == TORUS:
        return names
    if not names or missing_route_reason(names, links, resolve_axes(links, (chips,))) is None:
        return names
    if routes := routes_joining(chip, (chips,)):
        return routes[0].split(",")
    outer = (name for name in list(chip.networks)[1:] if chip.networks[name].exact.domain is None)
    return [*names, *[*outer][:1]]


def hint_fewer_chips(chip: Chip, request: str, *splits: tuple[int, ...]) -> str:
    """Fix for chips that interconnects do not join.

    Args:
        chip: The chip.
        request: The request to make: fewer chips, or other numbers of chips.
        splits: Chips along each axis, as in `routes_joining` [1].
    """
    first, links, _ = interconnects(chip, None)
    max_chips = (max_domain(links)[0] if first else None) or 2
    fix = f"ask for {request}, such as {2 ** (max_chips.bit_length() - 1)}"
    if networks := routes_joining(chip, *splits):
        return f"{fix}, or choose the network {' or '.join(networks)}"
    chips = max(map(math.prod, splits), default=1)
    if any(len(axes) > 1 for axes in splits):
        return fix
    if nearest := _nearest_joined(chip, chips):
        route = ",".join(default_route(chip, nearest[-1]))
        return f"ask for {' or '.join(map(str, nearest))} chips over {route}"
    return fix


def _nearest_joined(chip: Chip, chips: int) -> list[int]:
    """Nearest chip counts, below and above, that interconnects join [1]."""
    below = range(chips - 1, max(chips - MAX_CHIPS_TRIED, 1), -1)
    above = range(chips + 1, chips + MAX_CHIPS_TRIED)
    nearest = (
        next((number for number in side if routes_joining(chip, (number,))), None)
        for side in (below, above)
    )
    return [number for number in nearest if number is not None]


def _obstacles(
    names: Sequence[str], links: tuple[Link, ...], axes: tuple[int, ...]
) -> Iterator[str]:
    inner, chips = links[0], math.prod(axes)
    if len(links) > 1 and inner.topology == TORUS:
        yield f"a torus, {names[0]}, which cannot be the inner of two networks"
    if len(axes) > 1 and (len(links) > 1 or inner.topology != TORUS):
        yield f"no axes on {' and '.join(names)}: {axes_text(axes)} needs one torus"
    if len(axes) > 1 and 2 * len(axes) > inner.links:
        yield f"{inner.links} links on {names[0]}, two for an axis: too few for {axes_text(axes)}"
    max_chips, is_known = max_domain(links)
    if max_chips is not None and max(axes) > max_chips and not is_known:
        yield f"no published number of chips that {names[-1]} joins"
    if max_chips is not None and max(axes) > max_chips:
        place = "an axis of" if inner.topology == TORUS and len(links) == 1 else "one"
        yield f"{max_chips} chips at most on {place} {LEVEL_SEPARATOR.join(names)}"
    if len(links) > 1 and chips > 1 and group_size(chips, inner.domain) == 1:
        yield f"groups of up to {inner.domain} chips on {names[0]}: no divisor of {chips} is one"
