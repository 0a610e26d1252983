"""Chips with numbers of the asker's own: `--set` and `--price`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rooflines.basics.errors import Mistakes, RooflinesError, quote
from rooflines.basics.numbers import number
from rooflines.catalogue.chips import resolve_chips
from rooflines.catalogue.plausibility import doubts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.catalogue.entries import Chip

SUFFIX = "-set"
"""What ends the id of a chip with other numbers."""

SOURCE = "typed with --set"
HOW = (
    "write a number of the chip by its dotted path, such as --set memory.hbm.bytes_per_s=4.8e12; "
    "`rooflines list chips ID` has them all"
)


def with_numbers(
    names: Sequence[str], settings: Sequence[str], chips: Mapping[str, Chip]
) -> tuple[dict[str, Chip], list[str]]:
    """Variants of chips, by id.

    Args:
        names: The chips.
        settings: PATH=NUMBER each.
        chips: Entries by id.

    Returns:
        The variants, and likely slips in their numbers.

    Raises:
        RooflinesError: A path names no number, or a number is far from the chip's own.
    """
    numbers: dict[str, object] = {}
    with Mistakes() as mistakes:
        for setting in settings:
            path, equals, value = (part.strip() for part in setting.partition("="))
            with mistakes.at(f"--set {path}"):
                if not equals:
                    raise RooflinesError("", f"has no number in {quote(setting)}", HOW)
                numbers[path] = number(value)
    variants: dict[str, Chip] = {}
    slips: list[str] = []
    for name in names:
        own = f"{name}{SUFFIX}"
        written = {own: {"base": name, "source": SOURCE, **numbers}}
        with _typed(own, HOW):
            variants |= resolve_chips(written, chips)
        with _typed(own):
            slips += [
                f"{name} with --set {each.where} {each.problem}"
                for each in doubts(written[own], variants[own], {**chips, **variants})
            ]
    return variants, slips


@contextmanager
def _typed(name: str, fix: str = "") -> Iterator[None]:
    """Errors about a variant, in the words of the command line, perhaps with another fix."""
    try:
        yield
    except RooflinesError as error:
        raise RooflinesError.of(
            RooflinesError(
                f"--set {each.where.removeprefix(f'{name}.')}",
                each.problem,
                fix or each.fix.partition("; if it is meant")[0],
                close=each.close,
            )
            for each in error.errors
        ) from None
