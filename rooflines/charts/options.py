"""What a reader chooses in a chart: menus, those that several kinds share, options shown."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rooflines.charts.frames import bases_of, chips_with_rows
from rooflines.charts.kit.chart_text import chip_label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rooflines.sweep.operation_sweep import Sweep

    Menus = Callable[[Mapping[str, "Option"]], Sequence["Menu"]]
    """The menus of a chart, given what has been chosen."""

Option = str | int
"""What a reader chooses in a menu."""

TITLES = {
    "chip": "Chip",
    "dtypes": "Data types",
    "basis": "Numbers",
    "split": "Split",
    "shape": "Shape",
    "model": "Model",
    "software": "Software",
    "S": "Context",
    "shards": "Chips",
    "by": "By",
}
"""What pages call the menus."""

MAX_VIEWS = 20
"""Views of a chart in the gallery [1]."""

CAPS = ((6, 3, 4), (6, 3, 2), (6, 2, 2), (5, 2, 1), (4, 2, 1), (3, 1, 1))
"""Chips, dtypes, and options of any other menu in the gallery: the first with few views [1]."""

ALL = "all"
"""The option of a menu of chips that shows several together."""


KEYS = "keys"
"""In the entry of a drawn chart: a digest of what each of its views shows."""


class Menu(NamedTuple):
    """What a reader can choose.

    Attributes:
        name: The name of the choice.
        options: Its values; the first is shown where nothing is chosen.
    """

    name: str
    options: tuple[Option, ...]


def label(menu: str, option: Option) -> str:
    """An option as pages name it."""
    if menu in ("chip", "model"):
        return chip_label(str(option))
    return option.replace(" x ", " × ") if isinstance(option, str) else f"{option:,}"


def chosen_option(choice: Mapping[str, Option], menu: str, options: Sequence[Option]) -> str:
    """What is chosen in a menu, else its first option, else nothing."""
    return str(choice.get(menu, options[0] if options else ""))


def shape_menus(sweep: Sweep) -> list[Menu]:
    """The shapes of a sweep, if it has any."""
    shapes = tuple(shape.name for shape in sweep.config.shapes or ())
    return [Menu("shape", shapes)] if shapes else []


def split_menus(sweep: Sweep, chip: str) -> list[Menu]:
    """How a chip shares the work with others."""
    used = {case.sharding for case in sweep.cases if case.chip == chip}
    splits = (name for name, sharding in sweep.shardings.items() if sharding.split and name in used)
    return [Menu("split", tuple(splits))]


def basis_menus(sweep: Sweep, choice: Mapping[str, Option], dtypes: Sequence[str]) -> list[Menu]:
    """What the numbers of the chosen chip and dtypes can be by, if that is more than one thing."""
    chip = chosen_option(choice, "chip", chips_with_rows(sweep))
    bases = bases_of(sweep, chip, chosen_option(choice, "dtypes", dtypes))
    return [Menu("basis", bases)] if len(bases) > 1 else []


def choices_of(menus: Menus, offered: Mapping[str, Sequence[Option]]) -> list[dict[str, Option]]:
    """The choices of a chart's reader in the gallery, the first option of every menu first.

    Args:
        menus: The menus, given what has been chosen.
        offered: Options of menus that are offered alone.
    """
    cached: dict[tuple[tuple[str, Option], ...], Sequence[Menu]] = {}

    def cached_menus(choice: Mapping[str, Option]) -> Sequence[Menu]:
        return cached.get(key := (*choice.items(),)) or cached.setdefault(key, menus(choice))

    choices: list[dict[str, Option]] = []
    for caps in CAPS:
        choices = list(islice(_choices(cached_menus, offered, caps, {}), MAX_VIEWS + 1))
        if len(choices) <= MAX_VIEWS:
            break
    return choices[:MAX_VIEWS]


def _choices(
    menus: Menus,
    offered: Mapping[str, Sequence[Option]],
    caps: tuple[int, int, int],
    choice: dict[str, Option],
) -> Iterator[dict[str, Option]]:
    menu = next((menu for menu in menus(choice) if menu.name not in choice), None)
    if menu is None:
        yield choice
        return
    for option in _gallery_options(menu, offered, caps):
        yield from _choices(menus, offered, caps, {**choice, menu.name: option})


def _gallery_options(
    menu: Menu, offered: Mapping[str, Sequence[Option]], caps: tuple[int, int, int]
) -> list[Option]:
    """The options of a menu that the gallery offers; what is first stays first."""
    listed = offered.get(menu.name, menu.options)
    options = [option for option in listed if option in menu.options]
    if menu.name in {"by", "basis"}:
        return options
    options = options[: {"chip": caps[0], "dtypes": caps[1]}.get(menu.name, caps[2])]
    return [*options, ALL] if ALL in menu.options and ALL not in options else options
