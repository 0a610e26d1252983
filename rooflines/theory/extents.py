"""Extents: sizes, and numbers that depend on sizes; costs sum their products.

An extent is the text that names it in a column, and its type knows the rest: the sizes that it
depends on, its value, and its expression over columns.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import reduce
from operator import mul
from typing import TYPE_CHECKING, ClassVar, Self

from rooflines.basics.expressions import quotient
from rooflines.theory.routing import UNIFORM, activated_experts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from rooflines.theory.attention_window import AttentionWindow, Number


class Extent(str):
    """A size, or a number that depends on sizes.

    Attributes:
        sizes: Sizes that it depends on.
    """

    __slots__ = ("sizes",)
    sizes: frozenset[str]

    @abstractmethod
    def value(self, at: Mapping[str, Number]) -> Number:
        """Exact value at sizes [1]."""

    def expression(self, columns: Mapping[str, pl.Expr]) -> pl.Expr:
        """Value in rows, Float64 [1].

        Args:
            columns: Columns that rows have, Float64, by name.
        """
        return columns[self]


Product = tuple[Extent, ...]
"""Extents multiplied with each other."""


class Size(Extent):
    """A size, such as `B`."""

    __slots__ = ()

    def __new__(cls, name: str) -> Self:
        """Name a size."""
        size = super().__new__(cls, name)
        size.sizes = frozenset((name,))
        return size

    def value(self, at: Mapping[str, Number]) -> Number:
        """Look the size up."""
        return at[self]


B, S, T = Size("B"), Size("S"), Size("T")
SEQUENCES: Product = (B,)
TOKENS: Product = (B, T)


class Tiles(Extent):
    """Whole tiles in a product of sizes: `B/512`, `B*T/128`.

    Attributes:
        factors: The sizes.
        span: Elements per tile [1].
    """

    __slots__ = ("factors", "span")
    factors: Product
    span: int

    def __new__(cls, factors: Product, span: int) -> Self:
        """Name the tiles."""
        tiles = super().__new__(cls, f"{'*'.join(factors)}/{span}")
        tiles.factors, tiles.span, tiles.sizes = factors, span, frozenset(factors)
        return tiles

    def value(self, at: Mapping[str, Number]) -> Number:
        """Tiles: ceil(product / span) [1]."""
        return -(-math.prod(at[size] for size in self.factors) // self.span)

    def expression(self, columns: Mapping[str, pl.Expr]) -> pl.Expr:
        """Tiles as a column."""
        product = reduce(mul, [columns[size] for size in self.factors])
        return quotient(product, float(self.span)).ceil()


class Attended(Extent):
    """Tokens that attention counts in each sequence, within its window; a column in sweeps.

    Attributes:
        kind: Start of names, and the window's method that counts.
        window: The window.
        amount: Function from S and T to the count per sequence and layer [1].
    """

    __slots__ = ("amount", "window")
    kind: ClassVar[str]
    window: AttentionWindow
    amount: Callable[[Number, Number], Number]

    def __new__(cls, window: AttentionWindow) -> Self:
        """Name what attention counts."""
        attended = super().__new__(cls, f"{cls.kind}:{window.name}")
        attended.window, attended.amount = window, getattr(window, cls.kind)
        attended.sizes = frozenset((S, T))
        return attended

    def value(self, at: Mapping[str, Number]) -> Number:
        """Count at S and T [1]."""
        return self.amount(at[S], at[T])


class Pairs(Attended):
    """Token pairs, a new token and one that it attends to: `pairs:4096`."""

    __slots__ = ()
    kind = "pairs"


class Entries(Attended):
    """KV cache entries moved: `entries:4096`."""

    __slots__ = ()
    kind = "entries"


class DraftPairs(Attended):
    """Pairs, as many as entries, over all runs by an MTP layer, one token each: `drafts:4096`."""

    __slots__ = ()
    kind = "drafts"


class ActivatedExperts(Extent):
    """Experts activated in a layer: `touched:128,8,1/2` are 8 per token in 128, by half the tokens.

    Tokens are named unless they are all in the step: `touched:128,8,1/2,micro_batch*T`.

    Attributes:
        experts, per_token: E and k in a layer [1].
        share: Share of tokens that choose [1].
        tokens: Sizes whose product counts the tokens.
    """

    __slots__ = ("experts", "per_token", "share", "tokens")
    experts: int
    per_token: int
    share: Fraction
    tokens: Product

    def __new__(
        cls,
        experts: int,
        per_token: int,
        share: Fraction = Fraction(1),
        tokens: Product = TOKENS,
    ) -> Self:
        """Name the experts."""
        choosers = "" if tokens == TOKENS else f",{'*'.join(tokens)}"
        activated = super().__new__(cls, f"touched:{experts},{per_token},{share}{choosers}")
        activated.experts, activated.per_token = experts, per_token
        activated.share, activated.tokens = share, tokens
        activated.sizes = frozenset(tokens)
        return activated

    def chosen_by(self, share: Fraction, tokens: Product) -> Self:
        """Experts in the same layer, activated by other tokens."""
        return type(self)(self.experts, self.per_token, share, tokens)

    def value(self, at: Mapping[str, Number], routing: str = UNIFORM) -> Number:
        """Experts, see `activated_experts` [1]."""
        tokens = math.prod(at[size] for size in self.tokens) * self.share
        return activated_experts(self.experts, self.per_token, tokens, routing)

    @property
    def decay(self) -> float:
        """Rate at which unused experts decay per token: E exp(-decay * tokens) are unused [1]."""
        return -float(self.share) * math.log1p(-self.per_token / self.experts)

    def expression(self, columns: Mapping[str, pl.Expr]) -> pl.Expr:
        """Experts as a column: E (1 - (1 - k/E)^tokens) [1]."""
        tokens = reduce(mul, [columns[size] for size in self.tokens])
        return float(self.experts) * used_share(tokens * -self.decay)


def used_share(power: pl.Expr) -> pl.Expr:
    """Activated share, 1 - exp(power) with power < 0, without cancellation [1]."""
    return (power * -0.5).tanh() * (1.0 + power.exp())
