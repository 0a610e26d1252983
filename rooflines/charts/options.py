"""Chart menus, and the options that the gallery shows."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rooflines.charts.frames import bases_of, chips_with_rows
from rooflines.charts.kit.chart_text import chip_label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rooflines.sweep.operation_sweep import Sweep

    Menus = Callable[[Mapping[str, "Option"]], Sequence["Menu"]]
    """Menus of a chart, given the options already chosen."""

Option = str | int
"""Option of a menu."""

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
    "lever": "Lever",
    "T": "New tokens",
    "target": "Step time",
}
"""Titles of menus on pages."""

LABELS = {
    "B_draft": "Draft: batch",
    "accepted_draft": "Draft: accepted tokens",
    "B_pools": "Separate servers: batch",
    "chunk": "Chunk of a prompt",
}
"""Labels of options on pages that differ from their names."""

MAX_VIEWS = 20
"""Maximum views of a chart in the gallery [1]."""

CAPS = ((6, 3, 4), (6, 3, 2), (6, 2, 2), (5, 2, 1), (4, 2, 1), (3, 1, 1))
"""Limits on chips, dtypes, and options of other menus [1]; the first within `MAX_VIEWS` counts."""

ALL = "all"
"""Option of a chip menu that shows several chips together."""


class Menu(NamedTuple):
    """Menu of a chart.

    Attributes:
        name: The menu's name.
        options: Its options; the first is the default.
    """

    name: str
    options: tuple[Option, ...]


def label(menu: str, option: Option) -> str:
    """Label of an option on pages."""
    if menu in ("chip", "model"):
        return chip_label(str(option))
    if menu == "lever":
        return LABELS.get(str(option), str(option))
    return option.replace(" x ", " × ") if isinstance(option, str) else f"{option:,}"


def chosen_option(choice: Mapping[str, Option], menu: str, options: Sequence[Option]) -> str:
    """Chosen option of a menu, else its first, else ""."""
    return str(choice.get(menu, options[0] if options else ""))


def shape_menus(sweep: Sweep) -> list[Menu]:
    """Menu of a sweep's shapes, if it has any."""
    shapes = tuple(shape.name for shape in sweep.config.shapes or ())
    return [Menu("shape", shapes)] if shapes else []


def split_menus(sweep: Sweep, chip: str) -> list[Menu]:
    """Menu of splits that a chip's cases have."""
    used = {case.sharding for case in sweep.cases if case.chip == chip}
    splits = (name for name, sharding in sweep.shardings.items() if sharding.split and name in used)
    return [Menu("split", tuple(splits))]


def basis_menus(sweep: Sweep, choice: Mapping[str, Option], dtypes: Sequence[str]) -> list[Menu]:
    """Menu of bases for the chosen chip and dtypes, if there are several."""
    chip = chosen_option(choice, "chip", chips_with_rows(sweep))
    bases = bases_of(sweep, chip, chosen_option(choice, "dtypes", dtypes))
    return [Menu("basis", bases)] if len(bases) > 1 else []


def choices_of(menus: Menus, offered: Mapping[str, Sequence[Option]]) -> list[dict[str, Option]]:
    """Choices that the gallery shows, the first option of every menu first.

    Args:
        menus: The menus, given the options already chosen.
        offered: Allowed options by menu; other menus offer all.
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
    """Options of a menu in the gallery; the first stays first."""
    listed = offered.get(menu.name, menu.options)
    options = [option for option in listed if option in menu.options]
    if menu.name in {"by", "basis", "lever"}:
        return options
    options = options[: {"chip": caps[0], "dtypes": caps[1]}.get(menu.name, caps[2])]
    return [*options, ALL] if ALL in menu.options and ALL not in options else options
