"""A question in a few words, as a sweep of one row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import Mistakes, RooflinesError, close_to, one_of, placed, quote
from rooflines.basics.numbers import whole
from rooflines.basics.text import counted
from rooflines.catalogue.chips import dtype_entries
from rooflines.catalogue.forms import checked
from rooflines.catalogue.unsupported import fewer_or, need_of
from rooflines.model.network import parse_axes
from rooflines.model.operation import NAMED, Operation, operation
from rooflines.model.sharding import NAMED as SHARDINGS
from rooflines.model.sharding import OR_LONG_FORM, SHARDS, sharding
from rooflines.settings.schema import SweepConfig
from rooflines.sweep.checks import checked_sweep
from rooflines.sweep.support import Skipped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.fits.entries import Calibrations
    from rooflines.sweep.sweep import Sweep

NAME = "explain"
"""The name of the sweep of one row."""

DEFAULT = "matmul"
"""The operation that sizes without one are of."""

SIZE = re.compile(r"([A-Za-z])\s*=\s*(.*)")
"""LETTER=SIZE, the size of one dimension."""

SHARES = (1, 0.9)
"""The shares of peak solved for: compute-bound, and nearly so [1]."""

TIMES = re.compile(r"[xX×*]")
"""What is between the sizes of 128x8192x8192."""

PRODUCT = re.compile(r"[\dxX×*._]+")
"""Sizes, even where one is missing."""

WRITTEN_OUT = re.compile(r"([\w-]+),([\w-]+)->([\w-]+)@([\w-]+)")
"""A dtype combination that has no name: x,w->out@compute."""

HOW = "write BxDxF in the order of the operation's letters, such as 128x8192x8192, or B=128 D=8192"
LIST_CHIPS = "use a chip of the catalogue, such as h100-sxm or tpu-v5e"
LIST_DTYPES = "use a combination of the dtype catalogue, such as bf16 or w8a16"

PLACES = {
    "": "the question",
    "chips": "chip",
    "grid": "sizes",
    "thresholds": "operation",
}
"""Config keys whose word in a question is another."""


@dataclass
class Words:
    """The words of a question by what they are; None or empty: not among them."""

    chip: str | None = None
    dtypes: str | None = None
    operation: str | None = None
    product: str | None = None
    sizes: dict[str, str] = field(default_factory=dict)

    def take(self, kind: str, word: str) -> None:
        """Keep a word.

        Raises:
            RooflinesError: There is one of this kind already.
        """
        there = getattr(self, kind)
        name, verb = ("sizes", "are") if kind == "product" else (kind, "is")
        if there is not None:
            twice = f"{verb} given twice, {quote(there)} and {quote(word)}"
            raise RooflinesError(name, twice, "ask for one at a time")
        setattr(self, kind, word)


def read_words(words: Iterable[str], chips: Mapping[str, Chip]) -> Words:
    """Words in any order: a chip, dtypes, sizes, and perhaps an operation.

    Args:
        words: Such as `h100-sxm 128x8192x8192 bf16`; sizes also as `B=128`, the operation as a name
            or an einsum.
        chips: Catalogue entries by id.

    Raises:
        RooflinesError: A word is nothing known, or something is given twice.
    """
    known, dtypes, unknown = Words(), dtype_entries().combinations, []
    for word in words:
        if word in chips:
            known.take("chip", word)
        elif word in dtypes or WRITTEN_OUT.fullmatch(word):
            known.take("dtypes", word)
        elif word in NAMED or "->" in word:
            known.take("operation", word)
        elif match := SIZE.fullmatch(word):
            take_size(known.sizes, *match.groups())
        elif word[:1] in "+-." or word[:1].isdigit() or PRODUCT.fullmatch(word):
            known.take("product", word)
        else:
            unknown.append(word)
    _place_unknown(known, unknown, chips, dtypes)
    if known.product is not None and known.sizes:
        letter, size = next(iter(known.sizes.items()))
        twice = f"are given twice, {quote(known.product)} and {quote(f'{letter}={size}')}"
        raise RooflinesError("sizes", twice, HOW)
    return known


def take_size(sizes: dict[str, str], letter: str, size: str) -> None:
    """Keep the size of a letter.

    Raises:
        RooflinesError: There is one already.
    """
    if letter in sizes:
        raise RooflinesError(
            f"size {letter}",
            f"is given twice, {quote(sizes[letter])} and {quote(size)}",
            "give each letter one size",
        )
    sizes[letter] = size


def _place_unknown(
    known: Words, unknown: Sequence[str], chips: Iterable[str], dtypes: Iterable[str]
) -> None:
    """Take unknown words as the chip or dtypes that are missing, by which names are close."""
    names = {"chip": list(chips), "dtypes": list(dtypes)}
    for word in unknown:
        missing = [kind for kind in names if getattr(known, kind) is None]
        alike = [kind for kind in missing if close_to(word, names[kind])]
        if not missing:
            close = close_to(word, [*NAMED, *names["chip"], *names["dtypes"]])
            raise RooflinesError(
                "the question",
                f"has {quote(word)}, which is no operation, size, chip or dtype combination",
                "leave it out, or correct it",
                close=close,
            )
        known.take((alike or missing)[0], word)


def sweep_of(  # noqa: PLR0913, the parts of a question
    chip: str,
    sizes: str | Mapping[str, object] | Sequence[object],
    dtypes: object,
    *,
    chips: Mapping[str, Chip],
    calibrations: Calibrations,
    operation: str | None = None,
    shards: int | str = 1,
    sharding: object = None,
    **options: object,
) -> Sweep:
    """The sweep of one row that answers a question, solved along every dimension.

    Args:
        chip: Its id.
        sizes: `128x8192x8192`, `B=128 D=8192 F=8192`, or the sizes by letter or in order [1].
        dtypes: A name of the dtype catalogue, `x,w->out@compute`, or a mapping.
        chips: Catalogue entries by id.
        calibrations: By chip and software.
        operation: A name or an einsum; None: matmul.
        shards: Number of chips [1].
        sharding: A name or a mapping; None: none.
        **options: Keys of a sweep: `network`, `memory`, `unit`, `flops`, `calibration`; None: the
            default.

    Raises:
        RooflinesError: Something is invalid; places are words of the question, not config keys.
    """
    with Mistakes() as mistakes:
        with mistakes.at():
            options = on_chip(chip, chips, options)
        with mistakes.at():
            op = _operation(str(operation or DEFAULT))
            grid = dict(_sizes(sizes, op))
        with mistakes.at("dtypes"):
            form = _written_out(dtypes)
        if sharding in (None, "none") and str(shards) != "1":
            mistakes.add(_unsplit(shards))
    keys = {
        "operation": op.name,
        "grid": grid,
        "dtypes": [form],
        "chips": [chip],
        "shards": [shards],
        "sharding": ["none" if sharding is None else sharding],
        "thresholds": _solved(op, sharding),
        "shares": list(SHARES),
        **{key: value for key, value in options.items() if value is not None},
    }
    try:
        return _checked(keys, chips, calibrations)
    except RooflinesError as error:
        unit = options.get("unit") or op.unit
        raise RooflinesError.of(
            _in_words(each, chips[chip], unit, shards) for each in error.errors
        ) from None


def _checked(
    keys: Mapping[str, Any], chips: Mapping[str, Chip], calibrations: Calibrations
) -> Sweep:
    """The sweep of a config; without the threshold of shards where that has no closed form."""
    try:
        config = checked(SweepConfig, keys)
        with Mistakes() as mistakes:
            with mistakes.at("calibration"):
                calibrations.check_softwares(config.calibration or ())
            return checked_sweep(NAME, config, chips, dtype_entries(), calibrations)
    except RooflinesError as error:
        real = [each for each in error.errors if not each.where.startswith("thresholds")]
        if real:
            raise RooflinesError.of(real) from None
        if SHARDS not in keys["thresholds"]:
            raise
        dims = [axis for axis in keys["thresholds"] if axis != SHARDS]
        return _checked({**keys, "thresholds": dims}, chips, calibrations)


def _unsplit(shards: object) -> RooflinesError:
    names = ", ".join(name for name in SHARDINGS if name != "none")
    problem = f"is {shards}, but nothing is split"
    return RooflinesError("shards", problem, f"choose a sharding: {names}")


def on_chip(
    chip: object, chips: Mapping[str, Chip], options: Mapping[str, object]
) -> dict[str, object]:
    """The options of a question about a chip, with its networks as a config has them.

    Raises:
        RooflinesError: The chip is missing or unknown, or it lacks a network.
    """
    with placed("chip"):
        _check_given(chip, LIST_CHIPS)
        one_of(chip, chips, "no chip", LIST_CHIPS)
    network = options.get("network")
    if not network:
        return {**options}
    return {**options, "network": _networks_on(network, chips[str(chip)], str(chip))}


def _check_given(word: object, fix: str) -> None:
    if word == "":
        raise RooflinesError("", "is missing", fix)


def _networks_on(wanted: object, chip: Chip, name: str) -> object:
    """The networks as a config has them: one name, or a list from the inner to the outer.

    Args:
        wanted: A name, several with commas, or a list.
        chip: The chip.
        name: Its id, for messages.

    Raises:
        RooflinesError: The chip lacks one of them.
    """
    levels = wanted.split(",") if isinstance(wanted, str) else wanted
    if not isinstance(levels, list | tuple):
        levels = [levels]
    for level in levels:
        with placed("network"):
            one_of(level, chip.networks, f"no interconnect of {name}")
    return levels[0] if len(levels) == 1 else list(levels)


def _operation(text: str) -> Operation:
    with placed("operation"):
        return operation(text)


def _written_out(dtypes: object) -> object:
    """A dtype combination in the form of a config."""
    if not isinstance(dtypes, str):
        return dtypes
    if match := WRITTEN_OUT.fullmatch(dtypes):
        return dict(zip(("x", "w", "out", "compute"), match.groups(), strict=True))
    _check_given(dtypes, LIST_DTYPES)
    one_of(dtypes, dtype_entries().combinations, "no dtype combination", LIST_DTYPES)
    return dtypes


def _solved(op: Operation, form: object) -> list[str]:
    """The axes to solve for: every dimension and, where something is split, shards."""
    try:
        split = isinstance(form, str | Mapping) and sharding(form, op).split is not None
    except RooflinesError:  # reported with its place when the sweep is checked
        split = False
    return [*op.dims, *([SHARDS] if split else [])]


def _sizes(
    sizes: str | Mapping[str, object] | Sequence[object], op: Operation
) -> Mapping[str, int]:
    """The size of every dimension.

    Raises:
        RooflinesError: A dimension has none or is not the operation's, or a size is no whole number
            above zero.
    """
    by_letter = sizes if isinstance(sizes, Mapping) else _by_letter(sizes, op)
    known = f"{op.name} has the dimensions {', '.join(op.dims)}"
    with Mistakes() as mistakes:
        for letter in by_letter:
            if letter not in op.dims:
                problem = f"is of no dimension: {known}"
                close = close_to(letter, op.dims)
                mistakes.add(RooflinesError(f"size {letter}", problem, HOW, close=close))
        if missing := [dim for dim in op.dims if dim not in by_letter]:
            lack = f"lack {', '.join(missing)}: {known}"
            mistakes.add(RooflinesError("sizes", lack, f"add {missing[0]}=SIZE"))
        whole_sizes = {}
        for letter, size in by_letter.items():
            with mistakes.at(f"size {letter}"):
                whole_sizes[letter] = whole(size)
    return whole_sizes


def _by_letter(sizes: str | Sequence[object], op: Operation) -> Mapping[str, object]:
    """Sizes by letter, of a text or of numbers in the order of the letters."""
    if isinstance(sizes, str) and "=" in sizes:
        by_letter: dict[str, str] = {}
        for word in sizes.replace(",", " ").split():
            match = SIZE.fullmatch(word)
            if match is None:
                raise RooflinesError("sizes", f"have {quote(word)}, which is no size", HOW)
            take_size(by_letter, *match.groups())
        return by_letter
    if not sizes:
        raise RooflinesError("sizes", "are missing", HOW)
    parts = TIMES.split(sizes) if isinstance(sizes, str) else sizes
    if not isinstance(parts, list | tuple):
        parts = [parts]
    if len(parts) != len(op.dims):
        wanted = "x".join(op.dims)
        raise RooflinesError(
            "sizes",
            f"are {len(parts)} in {quote(sizes)}, but {op.name} has "
            f"{counted(len(op.dims), 'dimension')}: {', '.join(op.dims)}",
            f"write one size for each, {wanted}, or name another operation",
        )
    return dict(zip(op.dims, parts, strict=True))


def dtypes_on(chip: Chip, unit: object) -> list[str]:
    """The dtype combinations that a unit of a chip computes, in the order of the catalogue."""
    peaks = chip.units.get(unit, {})  # type: ignore[call-overload]  # any text finds no peaks
    return [
        name
        for name, combination in dtype_entries().combinations.items()
        if combination.compute in peaks
    ]


def _in_words(error: RooflinesError, chip: Chip, unit: object, shards: object) -> RooflinesError:
    """An error of the sweep, with the words of a question in place of config keys."""
    head, _, letter = re.sub(r"\[\d+\]", "", error.where).partition(".")
    place = f"size {letter}" if head == "grid" and letter else PLACES.get(head, head)
    problem, fix = error.problem, error.fix.replace(OR_LONG_FORM, "")
    if isinstance(error.cause, Skipped):
        problem, need = error.cause.problem, need_of(error.cause.reason)
        if need == "peak":
            has = ", ".join(dtypes_on(chip, unit))
            fix = f"choose dtypes that its {unit} unit computes: {has}"
            if not has:
                fix = f"choose another chip, or one of its units: {', '.join(chip.units)}"
        elif need == "memory":
            has = ", ".join(name for name, level in chip.memory.items() if level.bytes_per_s)
            fix = f"choose one of its memory levels with a bandwidth: {has}"
        else:
            fix = fewer_or(chip, "other numbers of chips", parse_axes(str(shards)))
    return RooflinesError(place, problem, fix, close=error.close)
