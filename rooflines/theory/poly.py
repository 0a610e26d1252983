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
        slope, constant, expert = (part.scaled(scale) for part in self[:3])
        per_tile = {extent: part.scaled(scale) for extent, part in self.per_tile.items()}
        return AffineInSize(slope, constant, expert, per_tile)


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
        return {product: coefficient * self.scale for product, coefficient in self.terms.items()}

    @property
    def floats(self) -> dict[Product, float]:
        """The Float64 nearest to the coefficient of every product."""
        numerator, denominator = self.scale.numerator, self.scale.denominator
        return {
            product: (coefficient.numerator * numerator) / (coefficient.denominator * denominator)
            for product, coefficient in self.terms.items()
        }

    def __bool__(self) -> bool:
        """Whether there is any product."""
        return bool(self.terms)

    def __add__(self, addend: Poly) -> Poly:
        """The sum."""
        return total((self, addend))

    def __mul__(self, factor: Poly | Fraction | int) -> Poly:
        """A multiple, or a product."""
        if isinstance(factor, Poly):
            return total(
                Poly(
                    {
                        (*factor_product, *product): coefficient
                        for product, coefficient in self.terms.items()
                    },
                    self.scale * factor_coefficient,
                )
                for factor_product, factor_coefficient in factor.coefficients.items()
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

    def renamed(self, new_name: Callable[[str], str]) -> Poly:
        """The same by extents of other names."""
        terms: dict[Product, Fraction] = {}
        for product, coefficient in self.terms.items():
            renamed = tuple(map(new_name, product))
            terms[renamed] = terms[renamed] + coefficient if renamed in terms else coefficient
        return Poly(terms, self.scale)

    def in_tiles(self, sizes: Product, tile: int | Fraction) -> Poly:
        """The same with a product of sizes counted in whole spans.

        Args:
            sizes: The sizes whose product is counted.
            tile: Elements of a span [1].
        """
        if tile == 1 or not sizes:
            return self
        tiles, tiled_sizes = f"{'*'.join(sizes)}/{tile}", set(sizes)
        terms = {
            (*(name for name in product if name not in tiled_sizes), tiles)
            if tiled_sizes.issubset(product)
            else product: coefficient * tile if tiled_sizes.issubset(product) else coefficient
            for product, coefficient in self.terms.items()
        }
        return Poly(terms, self.scale)

    def at(self, extents: Mapping[str, Fraction | int]) -> Fraction:
        """The exact value at these extents."""
        value_sum = Fraction(0)
        for product, coefficient in self.terms.items():
            term = coefficient
            for name in product:
                term *= extents[name]
            value_sum += term
        return value_sum * self.scale

    def affine_in(self, size: str, tile: int = 1) -> AffineInSize:
        """The sum along one size, or along the number of its spans.

        Args:
            size: The size.
            tile: Elements of a span. Products that count elements are then taken at the last one of
                each span, where they are largest [1].
        """
        parts: dict[str, dict[Product, Fraction]] = {"": {}, size: {}, ACTIVATED: {}}
        for product, coefficient in self.terms.items():
            name, rest = _split_product(product, size)
            if name.startswith(ACTIVATED):
                parts[ACTIVATED][product] = coefficient
                continue
            per_size = coefficient * tile if name == size and tile > 1 else coefficient
            part = parts.setdefault(size if name == f"{size}/{tile}" else name, {})
            part[rest] = part[rest] + per_size if rest in part else per_size
        constant, slope, expert = (
            Poly(parts.pop(name), self.scale) for name in ("", size, ACTIVATED)
        )
        per_tile = {extent: Poly(part, self.scale) for extent, part in parts.items()}
        return AffineInSize(slope, constant, expert, per_tile)

    def dominates(self, poly: Poly) -> bool:
        """Whether every coefficient is at least that of another one: never the smaller of both."""
        coefficients, other_coefficients = self.coefficients, poly.coefficients
        zero = Fraction(0)
        return all(
            coefficients.get(product, zero) >= other_coefficients.get(product, zero)
            for product in coefficients.keys() | other_coefficients
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
        for product, unscaled in part.terms.items():
            coefficient = unscaled if scale is None else unscaled * scale
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
def parse_activated_experts(detail: str) -> ActivatedExperts:
    """What the extent of experts that tokens touch says behind its colon."""
    experts, per_token, share, *tokens = detail.split(",")
    return ActivatedExperts(int(experts), int(per_token), Fraction(share), *(tokens or ("B*T",)))


@cache
def _split_product(product: Product, size: str) -> tuple[str, Product]:
    """The extent of a product that depends on a size, empty if none does, and the others."""
    varying = [name for name in product if size in sizes_of(name)]
    (name,) = varying or [""]
    return name, tuple(extent for extent in product if extent != name)


@cache
def sizes_of(extent: str) -> frozenset[str]:
    """The sizes that an extent depends on."""
    kind, _, detail = extent.partition(":")
    if kind in WINDOWED_EXTENTS:
        return frozenset(("T", "S"))
    if kind == ACTIVATED:
        return frozenset(parse_activated_experts(detail).tokens.split("*"))
    return frozenset(extent.partition("/")[0].split("*"))
