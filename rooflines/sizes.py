"""The sizes that one grid axis takes: a number, a list, a range, tokens of a batch, or another dimension's size row by row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction

from rooflines.errors import Mistakes, RooflinesError, close_to, placed, quote
from rooflines.numbers import LARGEST_SIZE, exact, whole

__all__ = ["LONGEST_AXIS", "Sizes"]

LONGEST_AXIS = 2**20
"""Sizes that one axis may take; a grid point is a row, so longer axes are a mistake before they are a table."""

HALF = Fraction(1, 2)
MOST_POWERS = 512
"""Terms of a geometric range that are spelt out as exact fractions."""

RANGES = ({"from", "to", "factor"}, {"from", "to", "step"})
TOKENS = {"sequences", "tokens_per_sequence", "replicas"}
FORMS = "write a number, a list, {from, to, factor}, {from, to, step}, {sequences, tokens_per_sequence, replicas} or another dimension"


class Sizes:
    """What a config says of one dimension's sizes, understood but not yet spelt out.

    Attributes:
        given: The form in the config.
        same_as: The dimension whose size it repeats, row by row; None where it has sizes of its own.
        count: How many sizes it spells out to, at most; known without spelling them out [1].
    """

    def __init__(self, given: object) -> None:
        self.given = given
        self.same_as: str | None = None
        self.count = 1
        self._keys: Mapping[str, object] = given if isinstance(given, Mapping) else {}
        if isinstance(given, str) and len(given) == 1 and given.isalpha():
            self.same_as = given
        elif isinstance(given, Mapping):
            keys = set(given)
            if keys in RANGES:
                self.count = self._range()
            elif keys == TOKENS:
                self._tokens()
            else:
                self._refuse_keys(keys)
        elif isinstance(given, list | tuple):
            if not given:
                raise RooflinesError("", "is an empty list, so the grid is empty", FORMS)
            self.count = len(given)
            with Mistakes() as mistakes:
                for index, value in enumerate(given):
                    with mistakes.at():
                        self._whole(value, f"[{index}]")
        else:
            self._whole(given)

    def values(self) -> tuple[int, ...]:
        """The sizes, whole, unique, in the order given."""
        if self._keys:
            return (self._tokens(),) if set(self._keys) == TOKENS else self._spell_range()
        if isinstance(self.given, list | tuple):
            return tuple(dict.fromkeys(self._whole(value) for value in self.given))
        return (self._whole(self.given),)

    @staticmethod
    def _refuse_keys(keys: set[str]) -> None:
        known = RANGES[0] | RANGES[1] | TOKENS
        unknown = sorted(str(key) for key in keys - known)
        if unknown:
            raise RooflinesError(unknown[0], "is no key of a range of sizes", FORMS, close=close_to(unknown[0], known))
        wanted = min((*RANGES, TOKENS), key=lambda form: len(form ^ keys))
        missing, extra = sorted(wanted - keys), sorted(keys - wanted)
        problem = f"lacks {', '.join(missing)}" if missing else f"has {', '.join(extra)} beside {', '.join(sorted(wanted))}"
        raise RooflinesError("", problem, FORMS)

    @staticmethod
    def _whole(value: object, place: str = "") -> int:
        try:
            return whole(value)
        except RooflinesError as error:
            raise RooflinesError(place, error.problem, FORMS if "no number" in error.problem else error.fix) from None

    def _bound(self, key: str) -> Fraction:
        with placed(key):
            value = exact(self._keys[key])
        if value <= 0:
            raise RooflinesError(key, f"is {quote(self._keys[key])}, which is not above zero", "sizes start at 1")
        if value > LARGEST_SIZE:
            raise RooflinesError(key, f"is {quote(self._keys[key])}, which is more than {LARGEST_SIZE:,}", "choose a smaller size")
        return value

    def _range(self) -> int:
        """Check a range and count its sizes, before rounding makes some of them equal."""
        with Mistakes() as mistakes:
            for key in self._keys:
                with mistakes.at():
                    self._bound(key)
        start, stop = self._bound("from"), self._bound("to")
        if start < HALF:
            raise RooflinesError("from", f"is {quote(self._keys['from'])}, which rounds to zero", "sizes start at 1")
        if stop < start:
            problem = f"runs from {self._keys['from']} to {self._keys['to']}, so the grid is empty"
            raise RooflinesError("", problem, "let `to` be at least `from`")
        if "step" in self._keys:
            return int((stop - start) // self._bound("step")) + 1
        factor = self._bound("factor")
        if factor <= 1:
            raise RooflinesError("factor", f"is {quote(self._keys['factor'])}, so the range never ends", "choose a factor above 1")
        return math.floor(math.log(stop / start) / math.log1p(float(factor - 1)) + 1e-9) + 1

    def _spell_range(self) -> tuple[int, ...]:
        start, stop = self._bound("from"), self._bound("to")
        if "step" in self._keys:
            step = self._bound("step")
            parts = math.lcm(start.denominator, step.denominator)
            first, ahead = int(start * parts), int(step * parts)
            return tuple(dict.fromkeys(rounded(first + ahead * index, parts) for index in range(self.count)))
        terms = powers(start, self._bound("factor"), stop, exactly=self.count <= MOST_POWERS)
        return tuple(dict.fromkeys(math.floor(term + HALF) for term in terms))

    def _tokens(self) -> int:
        """Tokens on one replica: sequences * tokens per sequence / replicas [1]."""
        parts = {}
        with Mistakes() as mistakes:
            for key in sorted(TOKENS):
                with mistakes.at(key):
                    parts[key] = whole(self._keys[key])
        tokens = Fraction(parts["sequences"] * parts["tokens_per_sequence"], parts["replicas"])
        if tokens.denominator != 1 or tokens > LARGEST_SIZE:
            problem = f"gives {float(tokens):g} tokens to each replica"
            raise RooflinesError("", problem, f"let every replica have a whole number of tokens, at most {LARGEST_SIZE:,}")
        return int(tokens)


def rounded(numerator: int, denominator: int) -> int:
    """The whole number nearest to a fraction, a half upwards, without the cost of a fraction."""
    return (2 * numerator + denominator) // (2 * denominator)


def powers(start: Fraction, factor: Fraction, stop: Fraction, *, exactly: bool) -> Iterator[Fraction | float]:
    """`start`, `start * factor`, ... up to `stop`; in Float64 where exact fractions would grow too long."""
    if exactly:
        value = start
        while value <= stop:
            yield value
            value *= factor
        return
    first, ratio, last = float(start), float(factor), float(stop)
    index = 0
    while (term := first * ratio**index) <= last:
        yield term
        index += 1
