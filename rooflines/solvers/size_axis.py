"""Times along one size, as columns: the cases and all other sizes are rows.

Along a size n a polynomial is slope * n + constant. Activated experts are concave in n, rows that
are computed in whole spans are a staircase, and pairs of tokens and cache entries depend on the
attention window: these terms have separate columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import add, mul
from typing import TYPE_CHECKING

import polars as pl

from rooflines.evaluation.compiler import RowCompiler
from rooflines.sweep.cases import Block, Case
from rooflines.theory.attention_window import FULL_ATTENTION, AttentionWindow
from rooflines.theory.extents import (
    ActivatedExperts,
    DraftPairs,
    Entries,
    Pairs,
    used_share,
)
from rooflines.theory.poly import ZERO, Poly
from rooflines.theory.times import NO_TIME, align_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rooflines.sweep.axes import Axis
    from rooflines.theory.extents import Attended, Tiles
    from rooflines.theory.poly import AffineInSize
    from rooflines.theory.times import Time

DECAY = "#decay"
"""Decay rate of unused experts along the size: experts * exp(-decay * n) are unused at n [1]."""

USED = "#used"
"""Share of the experts that a size uses, 1 - exp(-decay * n) [1]."""

ALL_TOKENS, DRAFTING = EXPERT_TERMS = ("expert", "drafting")
"""Parts of lines with experts: used by all tokens, or by one token in each sequence."""

Pieces = list[list[str]]
"""Names of lines; a time is the maximum over pieces, a piece the minimum over its lines."""

Summand = tuple[int, Pieces]
"""Term of a sum: a count and the pieces that it multiplies."""


@dataclass(frozen=True)
class Spans:
    """Spans: rows are computed in whole groups of this many.

    Attributes:
        rows: Rows per element along the size [1].
        span: Rows in a span [1].
    """

    rows: pl.Expr
    span: float

    def full(self, size: pl.Expr) -> pl.Expr:
        """Spans of a size if all are full, size * rows / span [1]."""
        return size * self.rows / self.span

    def whole(self, size: pl.Expr) -> pl.Expr:
        """Whole spans of a size, ceil(size * rows / span) [1]."""
        return self.full(size).ceil()

    def last(self, size: pl.Expr) -> pl.Expr:
        """Largest size with as many spans [1]."""
        return pl.max_horizontal((self.whole(size) * self.span / self.rows).floor(), size)


class AxisLines:
    """Polynomials of cases along a size, by name.

    Args:
        cases: The cases.
        axes: The other sizes, slowest first; cases are slower than all.
        size: The size.
        spans: Elements that count as one, by case; empty: 1 [1].

    Attributes:
        compiler: The row compiler of all lines.
        spans: Whole spans along the size, by the extents that count them.
        windows: Attended tokens that lines count, in order.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        axes: Sequence[Axis],
        size: str,
        spans: Sequence[int] = (),
    ) -> None:
        block = Block((), tuple(cases), tuple(axes))
        self.spans, self._size = dict[str, Spans](), size
        self.windows: dict[Attended, None] = {}
        self.compiler = RowCompiler(block, inner=len(block.after))
        self._case_spans = spans or [1] * len(cases)
        self._parts: dict[str, list[str]] = {}
        self._stages: list[dict[str, pl.Expr]] = []
        self._decays = [0.0] * len(cases)

    def add_lines(self, polys_by_name: Mapping[str, Sequence[Poly]]) -> None:
        """Add the lines of polynomials.

        Lines are columns `#slope:<name>` and `#constant:<name>`, with experts also
        `#expert:<name>`, for all experts; with whole spans `#<extent>:<name>`.

        Args:
            polys_by_name: A polynomial for every case, by name.
        """
        columns: dict[str, pl.Expr] = {}
        for name, polys in polys_by_name.items():
            lines = [
                poly.affine_in(self._size, span)
                for poly, span in zip(polys, self._case_spans, strict=True)
            ]
            extent_polys = [
                dict[str, Poly](chain(line.per_tile.items(), line.per_attended.items()))
                for line in lines
            ]
            parts = {
                "slope": [line.slope for line in lines],
                "constant": [line.constant for line in lines],
                **{
                    extent: [by_extent.get(extent, ZERO) for by_extent in extent_polys]
                    for extent in dict.fromkeys(chain.from_iterable(extent_polys))
                },
            }
            self._parts[name] = [part for part, part_polys in parts.items() if any(part_polys)]
            for part, part_polys in parts.items():
                values = self.compiler.poly(part_polys)
                columns[f"#{part}:{name}"] = self.compiler.total(values)
            for line in lines:
                self.spans |= {tiles: self._spans_of(tiles) for tiles in line.per_tile}
                self.windows |= dict.fromkeys(line.per_attended)
            if any(line.expert for line in lines):
                columns |= self._experts(name, lines)
        self._stages.append(columns)

    def add_time(
        self,
        name: str,
        times: Sequence[Time | None],
        transform: Callable[[Poly], Poly] | None = None,
    ) -> Pieces:
        """Add the lines of a time; None is zero.

        Args:
            name: Prefix of the lines' names.
            times: By case.
            transform: Applied to every polynomial; None: none.

        Returns:
            The names of the lines.
        """
        pieces, polys_by_name = [], dict[str, list[Poly]]()
        case_pieces = [NO_TIME if time is None else time.pieces for time in times]
        for index, leasts in enumerate(align_pieces(case_pieces)):
            piece_polys = {
                f"{name}:{index}:{n}": [
                    transform(poly) if transform and poly else poly or ZERO for poly in polys
                ]
                for n, polys in enumerate(leasts)
            }
            pieces.append(list(piece_polys))
            polys_by_name |= piece_polys
        self.add_lines(polys_by_name)
        return pieces

    def frames(self) -> Iterator[pl.DataFrame]:
        """Yield all lines that were added, in slices."""
        stages = [*self._stages]
        if any(self._decays):
            expert_decay = self.compiler.constant(self._decays)
            decays = pl.col("T").cast(pl.Float64) * expert_decay, expert_decay
            stages.append(
                {f"{DECAY}:{part}": by for part, by in zip(EXPERT_TERMS, decays, strict=True)}
            )
        return self.compiler.slices(stages)

    def _spans_of(self, tiles: Tiles) -> Spans:
        other_sizes = [
            pl.col(size).cast(pl.Float64) for size in tiles.factors if size != self._size
        ]
        return Spans(reduce(mul, other_sizes, pl.lit(1.0)), float(tiles.span))

    def _experts(self, name: str, lines: Sequence[AffineInSize]) -> dict[str, pl.Expr]:
        """Columns of experts; the same tokens use all experts in a part."""
        seconds = {part: [0.0] * len(lines) for part in EXPERT_TERMS}
        for index, line in enumerate(lines):
            for (activated,), coefficient in line.expert.terms.items():
                if not isinstance(activated, ActivatedExperts):
                    continue
                part = DRAFTING if activated.tokens == (self._size,) else ALL_TOKENS
                seconds[part][index] = float(coefficient * activated.experts)
                self._decays[index] = activated.decay
        used_parts = {part: values for part, values in seconds.items() if any(values)}
        self._parts[name] += used_parts
        return {
            f"#{part}:{name}": self.compiler.constant(values) for part, values in used_parts.items()
        }

    # ------------------------------------------------------------ values at a size

    def with_extents(
        self, rows: pl.LazyFrame, size: pl.Expr, *, whole: bool = True
    ) -> pl.LazyFrame:
        """Add the extents that follow from a size, as columns that `at` expects.

        Args:
            rows: The rows.
            size: The size [1].
            whole: Count whole spans; False: spans as if all were full.
        """
        extents = {
            extent: spans.whole(size) if whole else spans.full(size)
            for extent, spans in self.spans.items()
        }
        if any(self._decays):
            extents |= {
                f"{USED}:{part}": used_share(pl.col(f"{DECAY}:{part}") * -size)
                for part in EXPERT_TERMS
            }
        if self.windows:
            contexts = rows.select(size.cast(pl.Int64), "T").collect().rows()
            rows = rows.with_columns(**_window_extents(self.windows, contexts))
        return rows.with_columns(**extents)

    def at(self, size: pl.Expr, summands: Sequence[Summand]) -> pl.Expr:
        """Sum over summands at a size, sum of count * max over pieces of min over lines [s].

        Args:
            size: The size [1]; its extents are columns, see `with_extents`.
            summands: Counts and pieces.
        """
        extents = {extent: pl.col(extent) for extent in (*self.spans, *self.windows)}
        used_shares = {part: pl.col(f"{USED}:{part}") for part in EXPERT_TERMS}
        factors = {"slope": size, **used_shares, **extents}

        return self._summed("constant", factors, summands)

    def growth(self, summands: Sequence[Summand]) -> pl.Expr:
        """Time that an element adds at a large size, with full spans and windows [s]."""
        element = pl.lit(1.0)
        factors: dict[str, pl.Expr] = {
            extent: spans.full(element) for extent, spans in self.spans.items()
        }
        if self.windows:  # all are full
            new = pl.col("T").cast(pl.Float64)
            factors |= {
                Pairs(FULL_ATTENTION): new,
                Entries(FULL_ATTENTION): element,
                DraftPairs(FULL_ATTENTION): new - 1.0,
            }

        return self._summed("slope", factors, summands)

    def _summed(
        self, first: str, factors: Mapping[str, pl.Expr], summands: Sequence[Summand]
    ) -> pl.Expr:
        """Sum over summands; a line's value is its part `first` plus parts times factors."""

        def value(name: str) -> pl.Expr:
            parts = [
                pl.col(f"#{part}:{name}") * factor
                for part, factor in factors.items()
                if part in self._parts[name]
            ]
            return reduce(add, [pl.col(f"#{first}:{name}"), *parts])

        sums = []
        for count, pieces in summands:
            minima = [pl.min_horizontal([*map(value, names)]) for names in pieces]
            largest = pl.max_horizontal(minima)
            sums.append(largest if count == 1 else largest * float(count))
        return reduce(add, sums)


def _window_extents(
    extents: Iterable[Attended], sizes: Sequence[tuple[int, int]]
) -> dict[str, pl.Series]:
    """Attended tokens at contexts and new tokens; chunks count as windows."""
    columns: dict[str, pl.Series] = {}
    for extent in extents:
        in_window = type(extent)(AttentionWindow(extent.window.tokens))
        counts = [float(in_window.amount(s, t)) for s, t in sizes]
        columns[extent] = pl.Series(counts, dtype=pl.Float64)
    return columns
