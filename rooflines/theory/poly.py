"""Polynomials in extents with exact coefficients: every work, byte and time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from rooflines.theory.extents import ActivatedExperts, Attended, Product, Tiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rooflines.theory.extents import Extent


class AffineInSize(NamedTuple):
    """A polynomial in one size n: slope * n + constant + terms in extents that depend on n.

    Attributes:
        slope, constant: Polynomials in the other extents.
        expert: Terms with activated experts; empty without experts.
        per_tile: Polynomial per whole tile.
        per_attended: Polynomial per token pair, or KV cache entry.
    """

    slope: Poly
    constant: Poly
    expert: Poly
    per_tile: Mapping[Tiles, Poly]
    per_attended: Mapping[Attended, Poly]


@dataclass(frozen=True, slots=True)
class Poly:
    """A polynomial: sum over products of extents, coefficient * product.

    Attributes:
        terms: Coefficient by product.
    """

    terms: Mapping[Product, Fraction] = field(default_factory=dict)

    def __hash__(self) -> int:
        """Hash over the terms, in any order."""
        return hash(frozenset(self.terms.items()))

    def __bool__(self) -> bool:
        """Tell whether any term exists."""
        return bool(self.terms)

    def __add__(self, addend: Poly) -> Poly:
        """Sum with another polynomial."""
        return total((self, addend))

    def __mul__(self, factor: Poly | Fraction | int) -> Poly:
        """Product with a number or a polynomial; extents stay in order."""
        if isinstance(factor, Poly):
            return total(
                Poly(
                    {
                        (*product, *factor_product): coefficient * factor_coefficient
                        for factor_product, factor_coefficient in factor.terms.items()
                    }
                )
                for product, coefficient in self.terms.items()
            )
        if factor == 1:
            return self
        if not factor:
            return ZERO
        return Poly({product: coefficient * factor for product, coefficient in self.terms.items()})

    def __rmul__(self, factor: Fraction | int) -> Poly:
        """Product with a number."""
        return self * factor

    def __truediv__(self, divisor: Fraction | int) -> Poly:
        """Quotient by a number: a share, or time = work / rate."""
        return Poly({product: coefficient / divisor for product, coefficient in self.terms.items()})

    def replaced(self, product_for: Callable[[Extent], Product]) -> Poly:
        """This polynomial with a product of extents in place of each."""
        terms: dict[Product, Fraction] = {}
        for product, coefficient in self.terms.items():
            replaced = tuple(chain.from_iterable(map(product_for, product)))
            terms[replaced] = terms[replaced] + coefficient if replaced in terms else coefficient
        return Poly(terms)

    def in_tiles(self, sizes: Product, tile: int) -> Poly:
        """This polynomial with a product of sizes rounded up to whole tiles.

        Args:
            sizes: The sizes in the product.
            tile: Elements per tile [1].
        """
        if tile == 1 or not sizes:
            return self
        tiles, tiled_sizes = Tiles(sizes, tile), set(sizes)
        terms: dict[Product, Fraction] = {}
        for product, coefficient in self.terms.items():
            if tiled_sizes.issubset(product):
                rest = (name for name in product if name not in tiled_sizes)
                terms[*rest, tiles] = coefficient * tile
            else:
                terms[product] = coefficient
        return Poly(terms)

    def at(self, extents: Mapping[str, Fraction | int]) -> Fraction:
        """Exact value at given extents."""
        value_sum = Fraction(0)
        for product, coefficient in self.terms.items():
            term = coefficient
            for name in product:
                term *= extents[name]
            value_sum += term
        return value_sum

    def affine_in(self, size: str, tile: int = 1) -> AffineInSize:
        """This polynomial as an affine function of one size, or of its number of tiles.

        Args:
            size: The size.
            tile: Elements per tile. Products that count elements are then taken at each tile's
                last element, where they are largest [1].
        """
        slope, constant, expert = (dict[Product, Fraction]() for _ in range(3))
        per_tile = defaultdict[Tiles, dict[Product, Fraction]](dict)
        per_attended = defaultdict[Attended, dict[Product, Fraction]](dict)
        for product, coefficient in self.terms.items():
            extent, rest = _split_product(product, size)
            part, per_part = slope, coefficient
            if extent is None:
                part = constant
            elif isinstance(extent, ActivatedExperts):
                part, rest = expert, product
            elif isinstance(extent, Attended):
                part = per_attended[extent]
            elif not isinstance(extent, Tiles):
                per_part = coefficient * tile if tile > 1 else coefficient
            elif extent.factors != (size,) or extent.span != tile:
                part = per_tile[extent]
            part[rest] = part[rest] + per_part if rest in part else per_part
        return AffineInSize(
            Poly(slope),
            Poly(constant),
            Poly(expert),
            {extent: Poly(part) for extent, part in per_tile.items()},
            {extent: Poly(part) for extent, part in per_attended.items()},
        )

    def dominates(self, poly: Poly) -> bool:
        """Tell whether every coefficient is at least the other's: this is never the smaller."""
        return all(
            self.terms.get(product, 0) >= poly.terms.get(product, 0)
            for product in self.terms.keys() | poly.terms
        )


ZERO, ONE = Poly(), Poly({(): Fraction(1)})


def constant(value: Fraction | int) -> Poly:
    """Polynomial without extents: a number."""
    return Poly({(): Fraction(value)}) if value else ZERO


def total(parts: Iterable[Poly]) -> Poly:
    """Sum of polynomials; a single one is returned as it is."""
    present = [part for part in parts if part.terms]
    if len(present) == 1:
        return present[0]
    sums: dict[Product, Fraction] = {}
    for part in present:
        for product, coefficient in part.terms.items():
            sums[product] = sums[product] + coefficient if product in sums else coefficient
    return Poly(sums)


@cache
def _split_product(product: Product, size: str) -> tuple[Extent | None, Product]:
    """Split a product into the extent that depends on a size, if any does, and the rest."""
    varying = [extent for extent in product if size in extent.sizes]
    if not varying:
        return None, product
    (varying_extent,) = varying
    return varying_extent, tuple(extent for extent in product if extent != varying_extent)
