"""The sizes of one grid axis: a number, a list, a range, tokens of a batch, or another axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

from rooflines.basics.errors import Mistakes, RooflinesError, close_to, placed, quote
from rooflines.basics.numbers import LARGEST_SIZE, exact, whole

__all__ = ["LONGEST_AXIS", "Sizes"]

LONGEST_AXIS = 2**20
"""The most sizes of one axis [1]: a grid point is a row, so a longer axis is a mistake."""

HALF = Fraction(1, 2)

SNAP = Fraction(1, 10**9)
"""Relative tolerance at the end of a geometric range [1]: powers of a decimal rarely hit it."""

TERM = Context(prec=60)
"""For the terms of a geometric range: 2^20 products of 60 digits leave the first 40 right."""

NEAREST = Context(prec=40)
"""For rounding them to whole numbers: a term of exactly one half more than a whole number has fewer
digits."""

RANGES = ({"from", "to", "factor"}, {"from", "to", "step"}, {"from", "to", "count"})
TOKENS = {"sequences", "tokens_per_sequence", "replicas"}
FORMS = (
    "write a number, a list, {from, to, factor}, {from, to, step}, {from, to, count}, "
    "{sequences, tokens_per_sequence, replicas} "
    "or another dimension"
)


class Sizes:
    """The sizes of one dimension as a config has them, validated but not yet enumerated.

    Attributes:
        written: The value in the config.
        same_as: The dimension whose size it repeats, row by row; None where it has sizes of its
            own.
        count: How many sizes it has at most, known without enumerating them [1].
    """

    def __init__(self, written: object) -> None:
        self.written = written
        self.same_as: str | None = None
        self.count = 1
        self._keys: Mapping[str, object] = written if isinstance(written, Mapping) else {}
        if isinstance(written, str) and len(written) == 1 and written.isalpha():
            self.same_as = written
        elif isinstance(written, Mapping):
            keys = set(written)
            if keys in RANGES:
                self.count = self._range()
            elif keys == TOKENS:
                self._tokens()
            else:
                self._refuse_keys(keys)
        elif isinstance(written, list | tuple):
            if not written:
                raise RooflinesError("", "is an empty list, so the grid is empty", FORMS)
            self.count = len(written)
            with Mistakes() as mistakes:
                for index, value in enumerate(written):
                    with mistakes.at():
                        self._whole(value, f"[{index}]")
        else:
            self._whole(written)

    def values(self) -> tuple[int, ...]:
        """The sizes, whole, unique, in the order of the config."""
        if self._keys:
            return (self._tokens(),) if set(self._keys) == TOKENS else self._spell_range()
        if isinstance(self.written, list | tuple):
            return tuple(dict.fromkeys(self._whole(value) for value in self.written))
        return (self._whole(self.written),)

    @staticmethod
    def _refuse_keys(keys: set[str]) -> None:
        known = TOKENS.union(*RANGES)
        unknown = sorted(str(key) for key in keys - known)
        if unknown:
            raise RooflinesError(
                unknown[0],
                "is no key of a range of sizes",
                FORMS,
                close=close_to(unknown[0], known),
            )
        wanted = min((*RANGES, TOKENS), key=lambda form: len(form ^ keys))
        missing, extra = sorted(wanted - keys), sorted(keys - wanted)
        problem = (
            f"lacks {', '.join(missing)}"
            if missing
            else f"has {', '.join(extra)} beside {', '.join(sorted(wanted))}"
        )
        raise RooflinesError("", problem, FORMS)

    @staticmethod
    def _whole(value: object, place: str = "") -> int:
        try:
            return whole(value)
        except RooflinesError as error:
            raise RooflinesError(
                place, error.problem, FORMS if "no number" in error.problem else error.fix
            ) from None

    def _bound(self, key: str) -> Fraction:
        with placed(key):
            value = exact(self._keys[key])
        if value <= 0:
            raise RooflinesError(
                key, f"is {quote(self._keys[key])}, which is not above zero", "sizes start at 1"
            )
        if value > LARGEST_SIZE:
            raise RooflinesError(
                key,
                f"is {quote(self._keys[key])}, which is more than {LARGEST_SIZE:,}",
                "choose a smaller size",
            )
        return value

    def _range(self) -> int:
        """Check a range and count its sizes, before rounding makes some of them equal."""
        with Mistakes() as mistakes:
            for key in self._keys:
                with mistakes.at():
                    self._bound(key)
        start, stop = self._bound("from"), self._bound("to")
        if start < HALF:
            raise RooflinesError(
                "from", f"is {quote(self._keys['from'])}, which rounds to zero", "sizes start at 1"
            )
        if stop < start:
            problem = f"runs from {self._keys['from']} to {self._keys['to']}, so the grid is empty"
            raise RooflinesError("", problem, "let `to` be at least `from`")
        if "step" in self._keys:
            return int((stop - start) // self._bound("step")) + 1
        if "count" in self._keys:
            return self._count(start, stop)
        factor = self._bound("factor")
        if factor <= 1:
            raise RooflinesError(
                "factor",
                f"is {quote(self._keys['factor'])}, so the range never ends",
                "choose a factor above 1",
            )
        steps, snapped = (
            math.log(stop / start * edge) / math.log1p(factor - 1) for edge in (1, 1 + SNAP)
        )
        return min(math.floor(snapped), math.floor(steps) + 1) + 1

    def _count(self, start: Fraction, stop: Fraction) -> int:
        with placed("count"):
            count = whole(self._keys["count"])
        if count == 1 and start != stop:
            problem = f"is 1, but the range runs from {self._keys['from']} to {self._keys['to']}"
            raise RooflinesError(
                "count", problem, "ask for at least 2 sizes, the first and the last"
            )
        return count

    def _spell_range(self) -> tuple[int, ...]:
        start, stop = self._bound("from"), self._bound("to")
        if "step" in self._keys:
            step = self._bound("step")
            parts = math.lcm(start.denominator, step.denominator)
            first, ahead = int(start * parts), int(step * parts)
            return tuple(
                dict.fromkeys(rounded(first + ahead * index, parts) for index in range(self.count))
            )
        if "count" in self._keys:
            return tuple(dict.fromkeys(spread(decimal(start), decimal(stop), self.count)))
        return tuple(
            dict.fromkeys(powers(decimal(start), decimal(self._bound("factor")), decimal(stop)))
        )

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
            raise RooflinesError(
                "",
                problem,
                f"let every replica have a whole number of tokens, at most {LARGEST_SIZE:,}",
            )
        return int(tokens)


def rounded(numerator: int, denominator: int) -> int:
    """The whole number nearest to a fraction, a half upwards, without the cost of a fraction."""
    return (2 * numerator + denominator) // (2 * denominator)


def decimal(value: Fraction) -> Decimal:
    """A fraction as a term of a geometric range."""
    return TERM.divide(Decimal(value.numerator), Decimal(value.denominator))


def nearest(term: Decimal) -> int:
    """The whole number nearest to a term, a half upwards."""
    return int(NEAREST.plus(term).to_integral_value(ROUND_HALF_UP))


def powers(start: Decimal, factor: Decimal, stop: Decimal) -> Iterator[int]:
    """`start`, `start * factor`, ... up to `stop`, rounded.

    A term at the end that is within `SNAP` of `stop` is `stop`.
    """
    snap = TERM.multiply(stop, decimal(SNAP))
    term, following = start, TERM.multiply(start, factor)
    while following <= stop:
        yield nearest(term)
        term, following = following, TERM.multiply(following, factor)
    if following - stop <= snap:
        yield nearest(term)
        yield nearest(stop)
    else:
        yield nearest(stop if start < term and stop - term <= snap else term)


def spread(start: Decimal, stop: Decimal, count: int) -> Iterator[int]:
    """`count` sizes from `start` to `stop`, each the same factor above the one before, rounded."""
    steps = Decimal(max(count - 1, 1))
    factor = TERM.exp(TERM.divide(TERM.ln(TERM.divide(stop, start)), steps))
    term = start
    for _ in range(count - 1):
        yield nearest(term)
        term = TERM.multiply(term, factor)
    yield nearest(stop)
