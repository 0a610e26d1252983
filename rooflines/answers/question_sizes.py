"""Sizes of a question, by letter or in order: each a number, a list or a range."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, quote
from rooflines.basics.numbers import MAX_SIZE, whole
from rooflines.basics.text import counted
from rooflines.theory.operation import NAMED_OPERATIONS, Operation

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZE = re.compile(r"([A-Za-z])\s*=\s*(.*)")
"""LETTER=SIZE, the size of one dimension, or several."""

TIMES_SIGN = re.compile(r"[xX×*]")
"""Separator between the sizes in 128x8192x8192."""

SUFFIXED = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG])i?", re.ASCII)
"""A size in units of 1,024, of its square or its cube."""

RANGE = re.compile(r"(.+?)\.\.([^+]+)(?:\+(.+))?")
"""FIRST..LAST, doubling, or FIRST..LAST+STEP."""

DASHED = re.compile(r"(\d+(?:\.\d+)?[kKmMgG]?) ?[-–] ?(\d+(?:\.\d+)?[kKmMgG]?)", re.ASCII)
"""FIRST-LAST, as FIRST..LAST."""

UNITS = {"k": 2**10, "m": 2**20, "g": 2**30}
"""Multiples for the suffixes k, M and G [1]."""

MAX_SIZES = 200
"""Sizes of one letter [1]."""

BLAS = {"M": "B", "K": "D", "N": "F"}
"""Letters of matrix products in other libraries, and those of `matmul` here."""

MODEL_SIZES = ("B", "S", "T")
"""Sequences, tokens of each after the step, and new ones of each."""

HOW = (
    "write BxDxF in the order of the operation's letters, such as 128x8192x8192, "
    "or B=128 D=8192 F=8192"
)
HOW_MODEL = "write B sequences of S tokens, such as B=64 S=8192"


def sizes_of_operation(sizes: object, op: Operation) -> dict[str, list[int]]:
    """Parse the sizes along every dimension.

    Args:
        sizes: By letter, as a mapping or `B=128 D=8192 F=8192`; or in the order of the letters, as
            a list or `128x8192x8192`. Letters are in any case; M, K and N are those of `matmul`.
        op: The operation.

    Raises:
        RooflinesError: A dimension has none or is not the operation's, or a size is no whole number
            above zero.
    """
    lettered = sizes if isinstance(sizes, Mapping) else _by_letter(sizes, op)
    letters = {letter: letter for letter in op.dims}
    if op == NAMED_OPERATIONS["matmul"]:
        letters |= BLAS
    by_letter = {
        letters.get(str(letter).upper(), letter): size for letter, size in lettered.items()
    }
    dimensions = f"{op.name} has the dimensions {', '.join(op.dims)}"
    with Mistakes() as mistakes:
        if len(by_letter) < len(lettered):
            twice = f"are given twice, in {quote(' '.join(lettered))}"
            mistakes.add(RooflinesError("sizes", twice, "give each letter one size"))
        _check_letters(by_letter, op.dims, f"is of no dimension: {dimensions}", HOW, mistakes)
        if missing := [dim for dim in op.dims if dim not in by_letter]:
            lack = f"lack {', '.join(missing)}: {dimensions}"
            fix = f"add {' '.join(f'{dim}=8192' for dim in missing)}, or other sizes"
            mistakes.add(RooflinesError("sizes", lack, fix))
        return _values(by_letter, mistakes)


def sizes_of_model(
    sizes: Mapping[str, object], needed: Sequence[str] = "BS"
) -> dict[str, list[int]]:
    """B, S and, where it is given, T; letters in any case.

    Args:
        sizes: Sizes by letter.
        needed: Letters that must be there; a request has no S.

    Raises:
        RooflinesError: B or S is missing, a letter is another one, or a size is no whole number
            above zero.
    """
    by_letter = {str(letter).upper(): size for letter, size in sizes.items()}
    with Mistakes() as mistakes:
        _check_letters(by_letter, MODEL_SIZES, "is no size of a model", HOW_MODEL, mistakes)
        if missing := [letter for letter in needed if letter not in by_letter]:
            how = HOW_MODEL if "S" in needed else "write concurrency=64, or B=64"
            mistakes.add(RooflinesError("sizes", f"lack {' and '.join(missing)}", how))
        ours = {letter: by_letter[letter] for letter in MODEL_SIZES if letter in by_letter}
        return _values(ours, mistakes)


def _check_letters(
    sizes: Mapping[str, object], letters: Sequence[str], problem: str, fix: str, mistakes: Mistakes
) -> None:
    for letter in sizes:
        if letter not in letters:
            mistakes.add(RooflinesError(f"size {letter}", problem, fix))


def _values(sizes: Mapping[str, object], mistakes: Mistakes) -> dict[str, list[int]]:
    values = {}
    for letter, size in sizes.items():
        with mistakes.at():
            values[letter] = values_of(size, letter)
    return values


def _by_letter(sizes: object, op: Operation) -> dict[str, object]:
    """Sizes by letter, from a text or from numbers in letter order."""
    if not sizes:
        raise RooflinesError(
            "sizes", "are missing", f"{HOW}; or name a model, such as llama-3.1-8b"
        )
    if isinstance(sizes, str) and "=" in sizes:
        by_letter: dict[str, object] = {}
        for part in sizes.replace(",", " ").split():
            match = SIZE.fullmatch(part)
            if match is None:
                problem = f"have {quote(part)}, which is no size"
                raise RooflinesError("sizes", problem, "write B=128")
            check_once(match[1], match[2], by_letter)
            by_letter[match[1]] = match[2]
        return by_letter
    parts = TIMES_SIGN.split(sizes) if isinstance(sizes, str) else sizes
    if not isinstance(parts, list | tuple):
        parts = [parts]
    if len(parts) != len(op.dims):
        raise RooflinesError(
            "sizes",
            f"are {len(parts)} in {quote(sizes)}, but {op.name} has "
            f"{counted(len(op.dims), 'dimension')}: {', '.join(op.dims)}",
            f"write one size for each, {'x'.join(op.dims)}, or name another operation: "
            f"{', '.join(NAMED_OPERATIONS)}",
        )
    return dict(zip(op.dims, parts, strict=True))


def check_once(letter: str, size: str, sizes: Mapping[str, object]) -> None:
    """Refuse a letter that has a size already."""
    if letter in sizes:
        twice = f"is given twice, {quote(sizes[letter])} and {quote(size)}"
        raise RooflinesError(f"size {letter}", twice, "give each letter one size, or B=64,128")


def values_of(size: object, letter: str) -> list[int]:
    """Parse one letter's sizes: a number, a list `64,128`, a range `1..1024` or `64..256+64`.

    Args:
        size: A number or a text; `8k` is 8,192.
        letter: Its letter, for messages.

    Raises:
        RooflinesError: One is no whole number above zero, or there are too many.
    """
    if isinstance(size, list | tuple):
        return list(dict.fromkeys(value for item in size for value in values_of(item, letter)))
    with at_path(f"size {letter}"):
        if not isinstance(size, str):
            return [whole(size)]
        values: dict[int, None] = {}
        with Mistakes() as mistakes:
            for part in size.split(","):
                with mistakes.at():
                    values |= dict.fromkeys(_range(part))
        if len(values) > MAX_SIZES:
            problem = f"has {len(values):,} values, more than the {MAX_SIZES} of a table"
            raise RooflinesError("", problem, "ask for fewer, or run a config of them")
        return list(values)


def _range(text: str) -> Sequence[int]:
    dashed = DASHED.fullmatch(text.strip())
    match = RANGE.fullmatch(f"{dashed[1]}..{dashed[2]}" if dashed else text)
    if match is None:
        return [_whole(text)]
    first, last = _whole(match[1]), _whole(match[2])
    if first > last:
        problem = f"is {quote(text)}, which starts above its end"
        raise RooflinesError("", problem, f"write {match[2]}..{match[1]}")
    if match[3] is not None:
        return range(first, last + 1, _whole(match[3]))[: MAX_SIZES + 1]
    values = [first]
    while 2 * values[-1] <= last:
        values.append(2 * values[-1])
    return values if values[-1] == last else [*values, last]


def _whole(text: str) -> int:
    """A whole number; `8k` is 8,192.

    Raises:
        RooflinesError: It is none above zero.
    """
    match = SUFFIXED.fullmatch(text.strip())
    if match is None:
        return whole(text)
    size = Fraction(match[1]) * UNITS[match[2].lower()]
    if size.denominator > 1 or not 1 <= size <= MAX_SIZE:
        fix = f"write a whole number from 1 to {MAX_SIZE:,}; k is 1,024"
        raise RooflinesError("", f"is {quote(text)}, which is no whole number", fix, value=text)
    return int(size)
