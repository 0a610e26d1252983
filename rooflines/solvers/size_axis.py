"""Times along one size, as columns: the cases and all other sizes are rows.

Along a size n a polynomial is slope * n + constant. The experts that tokens use are concave in n,
rows that are computed in whole spans are a staircase, and pairs of tokens and entries of a cache
follow from how far a token attends: these are columns of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import log1p
from operator import add, mul
from typing import TYPE_CHECKING

import polars as pl

from rooflines.evaluation.compiler import Sheet, used_share
from rooflines.models.attention_window import FULL_ATTENTION, AttentionWindow
from rooflines.sweep.cases import Block, Case
from rooflines.theory.poly import ZERO, Poly, SizeLine, touching
from rooflines.theory.times import NO_TIME, side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rooflines.sweep.axes import Axis
    from rooflines.theory.times import Time

DECAY = "#decay"
"""Of experts that an element more leaves unused, the share that it uses, as a rate [1]."""

USED = "#used"
"""The share of the experts that a size uses [1]."""

ALL_TOKENS, DRAFTING = EXPERTS = ("expert", "drafting")
"""The parts of lines with experts: those that all tokens use, or one token of each sequence."""

Pieces = list[list[str]]
"""Names of lines: of each piece the least counts, of these the largest."""

Summand = tuple[int, Pieces]
"""How often pieces are added to a sum, and these."""


@dataclass(frozen=True)
class Spans:
    """Rows of which whole spans are computed together.

    Attributes:
        rows: Rows of an element of the size [1].
        span: Rows of a span [1].
    """

    rows: pl.Expr
    span: float

    def full(self, size: pl.Expr) -> pl.Expr:
        """Spans of a size, if all are full [1]."""
        return size * self.rows / self.span

    def whole(self, size: pl.Expr) -> pl.Expr:
        """Whole spans of a size [1]."""
        return self.full(size).ceil()

    def last(self, size: pl.Expr) -> pl.Expr:
        """The largest size that needs no more spans [1]."""
        return pl.max_horizontal((self.whole(size) * self.span / self.rows).floor(), size)


def itself(poly: Poly) -> Poly:
    """A polynomial as it is."""
    return poly


class Along:
    """Polynomials of cases along a size, by name.

    Args:
        cases: The cases.
        axes: The other sizes, slowest first; cases are slower than all.
        size: The size.
        spans: For every case the elements that are counted as one; none: 1 [1].

    Attributes:
        rows: Cases times points of the other sizes [1].
        spans: The extents that count whole spans of the size, by name.
        windows: Extents that follow from how far a token attends.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        axes: Sequence[Axis],
        size: str,
        spans: Sequence[int] = (),
    ) -> None:
        block = Block((), tuple(cases), tuple(axes))
        self.rows, self.spans, self._size = block.rows, dict[str, Spans](), size
        self.windows: set[str] = set()
        self._sheet = Sheet([block], inner=len(block.after))
        self._of_case = spans or [1] * len(cases)
        self._lines: dict[tuple[int, int], tuple[Poly, SizeLine]] = {}
        self._parts: dict[str, list[str]] = {}
        self._stages: list[dict[str, pl.Expr]] = []
        self._decays = [0.0] * len(cases)

    def put(self, name: str, values: pl.Series) -> None:
        """Add a column with a value for each case."""
        self._sheet.put(name, values)

    def ask(self, named: Mapping[str, Sequence[Poly]]) -> None:
        """Ask for the lines of polynomials, by name; multiples of earlier ones are a quotient.

        Lines are columns `#slope:<name>` and `#constant:<name>`, with experts also
        `#expert:<name>`, of all experts; with whole spans `#<extent>:<name>`.
        """
        columns: dict[str, pl.Expr] = {}
        known: dict[str, list[Poly]] = {}
        for name, polys in named.items():
            lines = [self.line(*each) for each in zip(polys, self._of_case, strict=True)]
            parts = {
                "slope": [line.slope for line in lines],
                "constant": [line.constant for line in lines],
                **{
                    extent: [line.counted.get(extent, ZERO) for line in lines]
                    for extent in dict.fromkeys(extent for line in lines for extent in line.counted)
                },
            }
            self._parts[name] = [part for part, each in parts.items() if any(each)]
            for part, each in parts.items():
                column = f"#{part}:{name}"
                columns[column] = self._sheet.total(self._sheet.poly(each))
                known[column] = each
            self.spans |= {extent: self._counted(extent) for extent in parts if "/" in extent}
            self.windows |= {extent for extent in parts if ":" in extent}
            columns |= self._experts(name, lines)
        self._stages.append(columns)
        for column, polys in known.items():
            self._sheet.know(column, polys)

    def ask_time(
        self, name: str, times: Sequence[Time | None], of: Callable[[Poly], Poly] = itself
    ) -> Pieces:
        """Ask for the lines of a time; what a case lacks is zero.

        Args:
            name: What the names of the lines begin with.
            times: By case.
            of: What to ask for of every polynomial.
        """
        pieces, asked = [], dict[str, list[Poly]]()
        found = [NO_TIME if time is None else time.pieces for time in times]
        for index, leasts in enumerate(side_by_side(found)):
            named = {
                f"{name}:{index}:{n}": [of(each or ZERO) for each in polys]
                for n, polys in enumerate(leasts)
            }
            pieces.append(list(named))
            asked |= named
        self.ask(asked)
        return pieces

    def line(self, poly: Poly, span: int) -> SizeLine:
        """A polynomial along the size; those with the same terms are looked at once."""
        key = id(poly.terms), span
        if key not in self._lines:
            unscaled = poly.scaled(Fraction(1))
            self._lines[key] = unscaled, unscaled.along(self._size, span)
        line = self._lines[key][1]
        return line if poly.scale == 1 else line.scaled(poly.scale)

    def has(self, part: str, name: str) -> bool:
        """Whether a line has a part: `slope`, `constant`, `expert`, or an extent."""
        return part in self._parts[name]

    @property
    def has_experts(self) -> bool:
        """Whether any line has experts."""
        return any(self._decays)

    def frames(self) -> Iterator[pl.DataFrame]:
        """All that was asked for, in slices."""
        stages = [*self._stages]
        if self.has_experts:
            each = self._sheet.constant(self._decays)
            decays = pl.col("T").cast(pl.Float64) * each, each
            stages.append({f"{DECAY}:{part}": by for part, by in zip(EXPERTS, decays, strict=True)})
        return self._sheet.slices(stages, self.rows)

    def _counted(self, extent: str) -> Spans:
        sizes, _, span = extent.partition("/")
        others = [pl.col(size).cast(pl.Float64) for size in sizes.split("*") if size != self._size]
        return Spans(reduce(mul, others, pl.lit(1.0)), float(span))

    def _experts(self, name: str, lines: Sequence[SizeLine]) -> dict[str, pl.Expr]:
        """The columns of experts; all of a part are used by the same tokens."""
        if not any(line.expert for line in lines):
            return {}
        seconds = {part: [0.0] * len(lines) for part in EXPERTS}
        for index, line in enumerate(lines):
            for (of,), each in line.expert.coefficients.items():
                experts, per_token, share, tokens = touching(of.partition(":")[2])
                part = DRAFTING if tokens == self._size else ALL_TOKENS
                seconds[part][index] = float(each * experts)
                self._decays[index] = -float(share) * log1p(-per_token / experts)
        found = {part: values for part, values in seconds.items() if any(values)}
        self._parts[name] += found
        return {f"#{part}:{name}": self._sheet.constant(each) for part, each in found.items()}

    # ------------------------------------------------------------ values at a size

    def with_extents(
        self, rows: pl.LazyFrame, size: pl.Expr, *, whole: bool = True
    ) -> pl.LazyFrame:
        """Rows with the extents that follow from a size, as columns that `at` expects.

        Args:
            rows: The rows.
            size: The size [1].
            whole: Whether spans are whole; else all are full.
        """
        extents = {
            extent: each.whole(size) if whole else each.full(size)
            for extent, each in self.spans.items()
        }
        if self.has_experts:
            extents |= {
                f"{USED}:{part}": used_share(pl.col(f"{DECAY}:{part}") * -size) for part in EXPERTS
            }
        if self.windows:
            contexts = rows.select(size.cast(pl.Int64), "T").collect().rows()
            rows = rows.with_columns(**_windowed(self.windows, contexts))
        return rows.with_columns(**extents)

    def at(self, size: pl.Expr, summands: Sequence[Summand]) -> pl.Expr:
        """A sum of maxima of minima of lines at a size, by the columns of its extents [s].

        Args:
            size: The size [1].
            summands: How often, and which pieces.
        """
        extents = {extent: pl.col(extent) for extent in (*self.spans, *self.windows)}
        used = {part: pl.col(f"{USED}:{part}") for part in EXPERTS}
        factors = {"slope": size, **used, **extents}

        return self._summed("constant", factors, summands)

    def growth(self, summands: Sequence[Summand]) -> pl.Expr:
        """What an element adds to a sum where the size is large: spans and windows are full [s]."""
        one = pl.lit(1.0)
        factors = {extent: each.full(one) for extent, each in self.spans.items()}
        pairs, entries = FULL_ATTENTION.extent_names  # windows are full
        new = pl.col("T").cast(pl.Float64)
        factors |= {pairs: new, entries: one, FULL_ATTENTION.draft_extent: new - 1.0}

        return self._summed("slope", factors, summands)

    def _summed(
        self, first: str, factors: Mapping[str, pl.Expr], summands: Sequence[Summand]
    ) -> pl.Expr:
        """A sum of maxima of minima of values: a part of each line, and others times factors."""

        def value(name: str) -> pl.Expr:
            parts = [
                pl.col(f"#{part}:{name}") * factor
                for part, factor in factors.items()
                if self.has(part, name)
            ]
            return reduce(add, [pl.col(f"#{first}:{name}"), *parts])

        sums = []
        for count, pieces in summands:
            leasts = [_of_all(pl.min_horizontal, list(map(value, least))) for least in pieces]
            largest = _of_all(pl.max_horizontal, leasts)
            sums.append(largest if count == 1 else largest * float(count))
        return reduce(add, sums)


def _windowed(names: Iterable[str], sizes: Sequence[tuple[int, int]]) -> dict[str, pl.Series]:
    """Extents by how far a token attends, at contexts and new tokens; chunks count as windows."""
    found = {}
    for name in names:
        kind, _, of = name.partition(":")
        reach = AttentionWindow(AttentionWindow.from_name(of).tokens)
        extent = f"{kind}:{reach.name}"
        found[name] = pl.Series(
            [float(reach.extents(s, t)[extent]) for s, t in sizes], dtype=pl.Float64
        )
    return found


def _of_all(choose: Callable[[list[pl.Expr]], pl.Expr], values: list[pl.Expr]) -> pl.Expr:
    """The largest or least of values; of one it is that one."""
    return values[0] if len(values) == 1 else choose(values)
