"""Sizes along a grid axis: a number, a list, a range, tokens per batch, or another axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, PlainValidator, WithJsonSchema

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, close_to, quote
from rooflines.basics.numbers import MAX_SIZE, exact, number, whole
from rooflines.config.lists import COUNT_SCHEMA

MAX_AXIS_SIZES = 2**20
"""The most sizes of one axis [1]: a grid point is a row, so a longer axis is a mistake."""

HALF = Fraction(1, 2)

SNAP = Decimal("1e-9")
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
    """The sizes of one dimension as a config has them, parsed once but not yet enumerated.

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
        self._spelt: Spelt = partial(iter, ())
        if isinstance(written, str) and len(written) == 1 and written.isalpha():
            self.same_as = written
        else:
            self.count, self._spelt = _parsed(written)

    def values(self) -> tuple[int, ...]:
        """The sizes, whole, unique, in the order of the config."""
        return tuple(dict.fromkeys(self._spelt()))


Spelt = Callable[[], Iterator[int]]
"""Enumerates sizes, some of which may be equal after rounding."""


def _parsed(written: object) -> tuple[int, Spelt]:
    """Maximum number of sizes [1], with their enumerator."""
    if isinstance(written, Mapping):
        if set(written) in RANGES:
            return _range(written)
        if set(written) == TOKENS:
            return 1, partial(iter, (_tokens(written),))
        raise _wrong_keys(set(written))
    if not isinstance(written, list | tuple):
        return 1, partial(iter, (_whole(written),))
    if not written:
        raise RooflinesError("", "is an empty list, so the grid is empty", FORMS)
    sizes = []
    with Mistakes() as mistakes:
        for index, value in enumerate(written):
            with mistakes.at(index):
                sizes.append(_whole(value))
    return len(sizes), partial(iter, sizes)


def _wrong_keys(keys: set[str]) -> RooflinesError:
    allowed = TOKENS.union(*RANGES)
    unknown = sorted(str(key) for key in keys - allowed)
    if unknown:
        close = close_to(unknown[0], allowed)
        return RooflinesError(unknown[0], "is no key of a range of sizes", FORMS, close=close)
    wanted = min((*RANGES, TOKENS), key=lambda form: len(form ^ keys))
    missing, extra = sorted(wanted - keys), sorted(keys - wanted)
    problem = (
        f"lacks {', '.join(missing)}"
        if missing
        else f"has {', '.join(extra)} beside {', '.join(sorted(wanted))}"
    )
    return RooflinesError("", problem, FORMS)


def _whole(value: object) -> int:
    try:
        number(value)
    except RooflinesError as error:
        raise RooflinesError("", error.problem, FORMS) from None
    return whole(value)


def _bound(value: object) -> Fraction:
    """A number of a range: its start, its end, a step or a factor."""
    bound = exact(value)
    if bound <= 0:
        problem = f"is {quote(value)}, which is not above zero"
        raise RooflinesError("", problem, "sizes start at 1")
    if bound > MAX_SIZE:
        problem = f"is {quote(value)}, which is more than {MAX_SIZE:,}"
        raise RooflinesError("", problem, "choose a smaller size")
    return bound


def _range(written: Mapping[str, object]) -> tuple[int, Spelt]:
    """A range, and its sizes before rounding makes some of them equal."""
    bounds: dict[str, Fraction] = {}
    with Mistakes() as mistakes:
        for key, value in written.items():
            with mistakes.at(key):
                bounds[key] = _bound(value)
    start, stop = bounds["from"], bounds["to"]
    if start < HALF:
        problem = f"is {quote(written['from'])}, which rounds to zero"
        raise RooflinesError("from", problem, "sizes start at 1")
    if stop < start:
        problem = f"runs from {written['from']} to {written['to']}, so the grid is empty"
        raise RooflinesError("", problem, "let `to` be at least `from`")
    if "step" in bounds:
        count = int((stop - start) // bounds["step"]) + 1
        return count, partial(_stepped, start, bounds["step"], count)
    ratio = _decimal(stop / start)
    if "count" in bounds:
        with at_path("count"):
            count = whole(written["count"])
        if count == 1 and start != stop:
            problem = f"is 1, but the range runs from {written['from']} to {written['to']}"
            fix = "ask for at least 2 sizes, the first and the last"
            raise RooflinesError("count", problem, fix)
        factor = TERM.exp(TERM.divide(TERM.ln(ratio), max(count - 1, 1)))
    else:
        if bounds["factor"] <= 1:
            problem = f"is {quote(written['factor'])}, so the range never ends"
            raise RooflinesError("factor", problem, "choose a factor above 1")
        factor = _decimal(bounds["factor"])
        steps, snapped = (
            TERM.divide(TERM.ln(TERM.multiply(ratio, edge)), TERM.ln(factor))
            for edge in (Decimal(1), 1 + SNAP)
        )
        count = min(int(snapped), int(steps) + 1) + 1
    return count, partial(_powers, _decimal(start), factor, count, _decimal(stop))


def _tokens(written: Mapping[str, object]) -> int:
    """Tokens on one replica: sequences * tokens per sequence / replicas [1]."""
    parts = {}
    with Mistakes() as mistakes:
        for key in sorted(TOKENS):
            with mistakes.at(key):
                parts[key] = whole(written[key])
    tokens = Fraction(parts["sequences"] * parts["tokens_per_sequence"], parts["replicas"])
    if tokens.denominator != 1 or tokens > MAX_SIZE:
        problem = f"gives {float(tokens):g} tokens to each replica"
        fix = f"let every replica have a whole number of tokens, at most {MAX_SIZE:,}"
        raise RooflinesError("", problem, fix)
    return int(tokens)


def _stepped(start: Fraction, step: Fraction, count: int) -> Iterator[int]:
    """`count` sizes from `start`, each a step above the one before, rounded, a half upwards."""
    parts = math.lcm(start.denominator, step.denominator)
    first, ahead = int(start * parts), int(step * parts)
    return ((2 * (first + ahead * index) + parts) // (2 * parts) for index in range(count))


def _powers(start: Decimal, factor: Decimal, count: int, stop: Decimal) -> Iterator[int]:
    """`count` sizes from `start`, each a factor above the one before, rounded, a half upwards.

    The last one is `stop` if it is within `SNAP` of that.
    """
    term = start
    for index in range(count):
        last = 0 < index == count - 1 and abs(stop - term) <= SNAP * stop
        exact_term = NEAREST.plus(stop if last else term)
        yield int(exact_term.to_integral_value(ROUND_HALF_UP))
        term = TERM.multiply(term, factor)


def _decimal(value: Fraction) -> Decimal:
    """A fraction as a term of a geometric range."""
    return TERM.divide(Decimal(value.numerator), Decimal(value.denominator))


SIZES_SCHEMA: Any = {
    "description": "a number, a list, a range, tokens of a batch, or another dimension whose size "
    "it repeats row by row",
    "anyOf": [
        COUNT_SCHEMA,
        {"type": "array", "items": COUNT_SCHEMA, "minItems": 1},
        {"type": "string", "pattern": "^[A-Za-z]$"},
        *(
            {
                "type": "object",
                "properties": {key: {"type": "number", "exclusiveMinimum": 0} for key in keys},
                "required": keys,
                "additionalProperties": False,
            }
            for keys in (
                *(["from", "to", by] for by in ("factor", "step", "count")),
                ["sequences", "tokens_per_sequence", "replicas"],
            )
        ),
    ],
}

GridSizes = Annotated[
    Sizes,
    PlainValidator(lambda value: value if isinstance(value, Sizes) else Sizes(value)),
    PlainSerializer(lambda sizes: sizes.written),
    WithJsonSchema(SIZES_SCHEMA),
]
"""The sizes of one dimension in a config."""


def checked_grid(value: object) -> object:
    """Sizes by dimension.

    Raises:
        RooflinesError: It is something else.
    """
    if isinstance(value, Mapping) or value is None:
        return value
    fix = "write sizes by letter, such as {B: 64, D: 8192, F: 8192}, or {B: 64, S: 8192} of a model"
    raise RooflinesError("", f"is {quote(value)}, which says of no dimension", fix, value=value)


Grid = Annotated[dict[str, GridSizes], BeforeValidator(checked_grid)]
"""The sizes of every dimension in a config."""
