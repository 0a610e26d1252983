"""Chips with numbers of the asker's own: `--set` and `--price`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rooflines.answers.name_search import find_chip
from rooflines.basics.errors import Mistakes, RooflinesError, at_path, key_path, quote
from rooflines.basics.numbers import number
from rooflines.basics.quantities import quantity, quantity_kind
from rooflines.hardware.chip_catalogue import SET_SUFFIX, add_price, resolve_chips
from rooflines.hardware.plausibility import plausibility_warnings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.answers.kernel_question import KernelQuestion
    from rooflines.answers.question import QuestionCatalogues
    from rooflines.answers.question_words import Question
    from rooflines.hardware.entries import Chip

SOURCE = "typed with --set"

PAIR = "+"
"""Text between two chips of one service: h100+b200 reads prompts on the first."""

SHORT_PATHS = {
    ("hbm", "bandwidth"): "memory.hbm.bytes_per_s",
    ("memory", "bandwidth"): "memory.hbm.bytes_per_s",
    ("hbm", "bytes"): "memory.hbm.capacity_bytes",
    ("memory", "bytes"): "memory.hbm.capacity_bytes",
    **{
        (dtype, "compute"): f"units.matrix.{dtype}.flops_per_s"
        for dtype in ("bf16", "fp16", "fp8", "int8", "nvfp4", "mxfp4")
    },
}
"""Paths by a short name and the kind of its quantity: hbm=4.8TB/s."""

HOW = (
    "write a number of the chip by its dotted path, such as --set memory.hbm.bytes_per_s=4.8e12; "
    "`rooflines list chips ID` has them all"
)


def with_overrides(
    question: Question | KernelQuestion,
    catalogues: QuestionCatalogues,
    settings: Sequence[str],
    price: object = None,
) -> QuestionCatalogues:
    """Add chip variants with overridden numbers to the catalogues, and put them in the question.

    Args:
        question: The question; its chips become the variants, and its notes say so.
        catalogues: What can be named.
        settings: PATH=NUMBER each.
        price: Of one chip [USD/h], or `h100=2.5,b200=5` by chip; None: those of the catalogue.

    Raises:
        RooflinesError: A path names no number, or a number is far from the chip's own.
    """
    matches = {
        word: match.name
        for word in PAIR.join(question.chips).split(PAIR)
        if (match := find_chip(word, catalogues.chips)) is not None
    }
    chips = {name: catalogues.chips[name] for name in matches.values()}
    if settings and chips:
        bases = [*chips]
        chips, slips = _variants(bases, settings, catalogues.chips)
        question.notes += [*slips, *(f"{name}: {' '.join(settings)}" for name in chips)]
        variants = dict(zip(bases, chips, strict=True))
        question.chips = [
            PAIR.join(
                variants[matches[name]] if name in matches else name for name in pair.split(PAIR)
            )
            for pair in question.chips
        ]
    if price is not None:
        prices = typed_prices(price, chips, catalogues.chips)
        for name, usd in prices.items():
            chips[name] = add_price(chips[name], usd, "typed with --price")
    return catalogues._replace(chips={**catalogues.chips, **chips})


def typed_prices(
    price: object, names: Iterable[str], chips: Mapping[str, Chip]
) -> dict[str, float]:
    """Prices by chip [USD/h], from a number for all or `h100=2.5,b200=5`.

    Args:
        price: As typed.
        names: Chips in the question, or variants of these.
        chips: Chips that can be named.

    Raises:
        RooflinesError: One is no price, or names no chip of the question.
    """
    listed = [*names]
    if not isinstance(price, str) or "=" not in price:
        with at_path("--price"):
            return dict.fromkeys(listed, quantity(price, "money"))
    prices: dict[str, float] = {}
    for part in price.split(","):
        word, _, value = part.partition("=")
        match = find_chip(word.strip(), chips)
        priced = [
            name
            for name in listed
            if match is not None and name.removesuffix(SET_SUFFIX) == match.name
        ]
        if not priced:
            problem = f"has {quote(word.strip())}, which is no chip of the question"
            fix = f"write {listed[0]}=2.5" if listed else "name a chip"
            raise RooflinesError("--price", problem, fix)
        with at_path("--price"):
            prices |= dict.fromkeys(priced, quantity(value.strip(), "money"))
    return prices


def _typed_numbers(settings: Sequence[str]) -> dict[str, object]:
    """Numbers by path, as typed: PATH=NUMBER each."""
    numbers: dict[str, object] = {}
    with Mistakes() as mistakes:
        for setting in settings:
            path, equals, value = (part.strip() for part in setting.partition("="))
            with mistakes.at(f"--set {path}"):
                if not equals:
                    raise RooflinesError("", f"has no number in {quote(setting)}", HOW)
                kind = quantity_kind(value)
                if kind is None:
                    numbers[path] = number(value)
                else:
                    path = SHORT_PATHS.get((path.lower(), kind), path)
                    numbers[path] = quantity(value, kind)
    return numbers


def written_variants(names: Sequence[str], settings: Sequence[str]) -> dict[str, dict[str, object]]:
    """Chip entries by id as a config has them: bases with overridden numbers.

    Args:
        names: Their bases.
        settings: PATH=NUMBER each.

    Raises:
        RooflinesError: One is no number.
    """
    numbers = _typed_numbers(settings)
    return {f"{name}{SET_SUFFIX}": {"base": name, "source": SOURCE, **numbers} for name in names}


def _variants(
    names: Sequence[str], settings: Sequence[str], chips: Mapping[str, Chip]
) -> tuple[dict[str, Chip], list[str]]:
    """Variants of chips by id, and likely slips in their numbers."""
    variants: dict[str, Chip] = {}
    slips: list[str] = []
    for name, (variant_id, entry) in zip(
        names, written_variants(names, settings).items(), strict=True
    ):
        written = {variant_id: entry}
        with _typed(variant_id, HOW):
            variants |= resolve_chips(written, chips)
        with _typed(variant_id):
            slips += [
                f"{name} with --set {doubt.where} {doubt.problem}"
                for doubt in plausibility_warnings(
                    written[variant_id], variants[variant_id], {**chips, **variants}
                )
            ]
    return variants, slips


@contextmanager
def _typed(name: str, fix: str = "") -> Iterator[None]:
    """Errors about a variant, in the words of the command line, perhaps with another fix."""
    try:
        yield
    except RooflinesError as error:
        raise RooflinesError.combine(
            mistake.changed(
                place=f"--set {key_path(mistake.path[mistake.path[:1] == (name,) :])}",
                fix=fix or mistake.typed_fix,
                typed_fix="",
                file="",
            )
            for mistake in error.errors
        ) from None
