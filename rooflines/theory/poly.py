"""Sums of products of named extents with exact coefficients: every work, byte and time.

An extent is a size, or a number that depends on sizes. Its name says which:

- `B`: a size;
- `B/512`, `B*T/128`: whole spans, of 512 or 128 elements, that a size or a product of sizes needs;
- `pairs:4096`, `entries:4096`: pairs of tokens, and entries of a cache that are moved, of one
  sequence with that window; without a window `pairs:` and `entries:`, in chunks `pairs:chunk-4096`;
  `drafts:4096`: the same, of all runs of the layer that drafts tokens, which has one at a time;
- `touched:128,8,1/2`: the experts, of 128 with 8 per token, that half of the tokens B * T use;
  `touched:128,8,1/2,micro_batch*T`: that half of the tokens of a micro-batch use; `..,B`: of one
  token of each sequence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Product = tuple[str, ...]
"""Extents that are multiplied."""

WINDOWED_EXTENTS = ("pairs", "entries", "drafts")
"""Extents that depend on how far a token attends."""

ACTIVATED = "touched"
"""The extent that depends on how many tokens choose experts."""


class AffineInSize(NamedTuple):
    """A polynomial along one size n: slope * n + constant + expert * touched(n) + spans of n.

    Attributes:
        slope, constant: By the other extents.
        expert: By the experts that the tokens use; empty without experts.
        per_tile: By the extent that counts whole spans: what each of them adds, by other extents.
    """

    slope: Poly
    constant: Poly
    expert: Poly
    per_tile: Mapping[str, Poly]

    def scaled(self, scale: Fraction) -> AffineInSize:
        """The line of the same terms with another scale."""
        slope, constant, expert = (each.scaled(scale) for each in self[:3])
        counted = {extent: each.scaled(scale) for extent, each in self.per_tile.items()}
        return AffineInSize(slope, constant, expert, counted)


@dataclass(frozen=True, eq=False, slots=True)
class Poly:
    """A sum of products of extents.

    Attributes:
        terms: The coefficient of every product.
        scale: Factor of all coefficients. A work and its time at a rate share their `terms`, so
            that tables compute them once.
    """

    terms: Mapping[Product, Fraction] = field(default_factory=dict)
    scale: Fraction = Fraction(1)

    @property
    def coefficients(self) -> dict[Product, Fraction]:
        """The coefficient of every product, scale included."""
        if self.scale == 1:
            return dict(self.terms)
        return {product: each * self.scale for product, each in self.terms.items()}

    @property
    def floats(self) -> dict[Product, float]:
        """The Float64 nearest to the coefficient of every product."""
        above, below = self.scale.numerator, self.scale.denominator
        return {
            product: (each.numerator * above) / (each.denominator * below)
            for product, each in self.terms.items()
        }

    def __bool__(self) -> bool:
        """Whether there is any product."""
        return bool(self.terms)

    def __add__(self, other: Poly) -> Poly:
        """The sum."""
        return total((self, other))

    def __mul__(self, factor: Poly | Fraction | int) -> Poly:
        """A multiple, or a product."""
        if isinstance(factor, Poly):
            return total(
                Poly({(*more, *own): each for own, each in self.terms.items()}, self.scale * times)
                for more, times in factor.coefficients.items()
            )
        if factor == 1:
            return self
        return Poly(self.terms, self.scale * factor) if factor else ZERO

    def __truediv__(self, divisor: Fraction | int) -> Poly:
        """A share, or the time of a work at a rate."""
        return Poly(self.terms, self.scale / divisor)

    def scaled(self, scale: Fraction) -> Poly:
        """The same terms with another scale."""
        return Poly(self.terms, scale) if self.terms else self

    def renamed(self, extent: Callable[[str], str]) -> Poly:
        """The same by extents of other names."""
        found: dict[Product, Fraction] = {}
        for product, each in self.terms.items():
            name = tuple(map(extent, product))
            found[name] = found[name] + each if name in found else each
        return Poly(found, self.scale)

    def in_tiles(self, sizes: Product, span: int | Fraction) -> Poly:
        """The same with a product of sizes counted in whole spans.

        Args:
            sizes: The sizes whose product is counted.
            span: Elements of a span [1].
        """
        if span == 1 or not sizes:
            return self
        spans, held = f"{'*'.join(sizes)}/{span}", set(sizes)
        found = {
            (*(name for name in product if name not in held), spans)
            if held.issubset(product)
            else product: each * span if held.issubset(product) else each
            for product, each in self.terms.items()
        }
        return Poly(found, self.scale)

    def at(self, extents: Mapping[str, Fraction | int]) -> Fraction:
        """The exact value at these extents."""
        found = Fraction(0)
        for product, coefficient in self.terms.items():
            value = coefficient
            for name in product:
                value *= extents[name]
            found += value
        return found * self.scale

    def affine_in(self, size: str, span: int = 1) -> AffineInSize:
        """The sum along one size, or along the number of its spans.

        Args:
            size: The size.
            span: Elements of a span. Products that count elements are then taken at the last one of
                each span, where they are largest [1].
        """
        parts: dict[str, dict[Product, Fraction]] = {"": {}, size: {}, ACTIVATED: {}}
        for product, coefficient in self.terms.items():
            name, rest = _split_product(product, size)
            if name.startswith(ACTIVATED):
                parts[ACTIVATED][product] = coefficient
                continue
            per = coefficient * span if name == size and span > 1 else coefficient
            part = parts.setdefault(size if name == f"{size}/{span}" else name, {})
            part[rest] = part[rest] + per if rest in part else per
        constant, slope, expert = (
            Poly(parts.pop(name), self.scale) for name in ("", size, ACTIVATED)
        )
        counted = {extent: Poly(part, self.scale) for extent, part in parts.items()}
        return AffineInSize(slope, constant, expert, counted)

    def dominates(self, other: Poly) -> bool:
        """Whether every coefficient is at least that of another one: never the smaller of both."""
        own, theirs = self.coefficients, other.coefficients
        zero = Fraction(0)
        return all(
            own.get(product, zero) >= theirs.get(product, zero) for product in own.keys() | theirs
        )


ZERO, ONE = Poly(), Poly({(): Fraction(1)})


def constant(value: Fraction | int) -> Poly:
    """A number as a sum without extents."""
    return Poly({(): Fraction(value)}) if value else ZERO


def total(parts: Iterable[Poly]) -> Poly:
    """The sum of several; of one it is that one."""
    present = [part for part in parts if part.terms]
    if len(present) == 1:
        return present[0]
    sums: dict[Product, Fraction] = {}
    for part in present:
        scale = None if part.scale == 1 else part.scale
        for product, each in part.terms.items():
            coefficient = each if scale is None else each * scale
            sums[product] = sums[product] + coefficient if product in sums else coefficient
    return Poly(sums)


class ActivatedExperts(NamedTuple):
    """Tokens that choose experts, of an extent.

    Attributes:
        experts, per_token: Of a layer [1].
        share: Of the tokens [1].
        tokens: The sizes whose product the tokens are.
    """

    experts: int
    per_token: int
    share: Fraction
    tokens: str


@cache
def parse_activated_experts(of: str) -> ActivatedExperts:
    """What the extent of experts that tokens touch says behind its colon."""
    experts, per_token, share, *tokens = of.split(",")
    return ActivatedExperts(int(experts), int(per_token), Fraction(share), *(tokens or ("B*T",)))


@cache
def _split_product(product: Product, size: str) -> tuple[str, Product]:
    """The extent of a product that depends on a size, empty if none does, and the others."""
    moving = [name for name in product if size in sizes_of(name)]
    (name,) = moving or [""]
    return name, tuple(each for each in product if each != name)


@cache
def sizes_of(extent: str) -> frozenset[str]:
    """The sizes that an extent depends on."""
    kind, _, of = extent.partition(":")
    if kind in WINDOWED_EXTENTS:
        return frozenset(("T", "S"))
    if kind == ACTIVATED:
        return frozenset(parse_activated_experts(of).tokens.split("*"))
    return frozenset(extent.partition("/")[0].split("*"))
