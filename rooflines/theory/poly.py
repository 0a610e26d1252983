"""Polynomials in named extents with exact coefficients: every work, byte and time.

An extent is a size, or a number that depends on sizes, told by its name:

- `B`: a size;
- `B/512`, `B*T/128`: whole tiles, with 512 or 128 elements each, in a size or a product of sizes;
- `pairs:4096`, `entries:4096`: per sequence with that attention window, pairs of tokens, and KV
  cache entries moved; without a window `pairs:` and `entries:`, in chunks `pairs:chunk-4096`;
  `drafts:4096`: pairs, as many as entries, over all runs of the MTP layer, one token each;
- `touched:128,8,1/2`: experts activated, among 128 with 8 per token, by half of the tokens B * T;
  `touched:128,8,1/2,micro_batch*T`: by half of a micro-batch's tokens; `..,B`: by one token per
  sequence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Product = tuple[str, ...]
"""Extents multiplied with each other."""

WINDOWED_EXTENTS = ("pairs", "entries", "drafts")
"""Kinds of extents that depend on the attention window."""

ACTIVATED = "touched"
"""Kind of extents that counts experts activated by tokens."""


class AffineInSize(NamedTuple):
    """A polynomial in one size n: slope * n + constant + expert * activated(n) + tile terms.

    Attributes:
        slope, constant: Polynomials in the other extents.
        expert: Terms with activated experts; empty without experts.
        per_tile: Polynomial per whole tile, by the extent that counts the tiles.
    """

    slope: Poly
    constant: Poly
    expert: Poly
    per_tile: Mapping[str, Poly]


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
        """Product with a number or a polynomial."""
        if isinstance(factor, Poly):
            return total(
                Poly(
                    {
                        (*factor_product, *product): coefficient * factor_coefficient
                        for product, coefficient in self.terms.items()
                    }
                )
                for factor_product, factor_coefficient in factor.terms.items()
            )
        if factor == 1:
            return self
        if not factor:
            return ZERO
        return Poly({product: coefficient * factor for product, coefficient in self.terms.items()})

    def __truediv__(self, divisor: Fraction | int) -> Poly:
        """Quotient by a number: a share, or time = work / rate."""
        return Poly({product: coefficient / divisor for product, coefficient in self.terms.items()})

    def renamed(self, new_name: Callable[[str], str]) -> Poly:
        """This polynomial with extents renamed."""
        terms: dict[Product, Fraction] = {}
        for product, coefficient in self.terms.items():
            renamed = tuple(map(new_name, product))
            terms[renamed] = terms[renamed] + coefficient if renamed in terms else coefficient
        return Poly(terms)

    def in_tiles(self, sizes: Product, tile: int | Fraction) -> Poly:
        """This polynomial with a product of sizes rounded up to whole tiles.

        Args:
            sizes: The sizes in the product.
            tile: Elements per tile [1].
        """
        if tile == 1 or not sizes:
            return self
        tiles, tiled_sizes = f"{'*'.join(sizes)}/{tile}", set(sizes)
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
        parts: dict[str, dict[Product, Fraction]] = {"": {}, size: {}, ACTIVATED: {}}
        for product, coefficient in self.terms.items():
            name, rest = _split_product(product, size)
            if name.startswith(ACTIVATED):
                parts[ACTIVATED][product] = coefficient
                continue
            per_size = coefficient * tile if name == size and tile > 1 else coefficient
            part = parts.setdefault(size if name == f"{size}/{tile}" else name, {})
            part[rest] = part[rest] + per_size if rest in part else per_size
        constant, slope, expert = (Poly(parts.pop(name)) for name in ("", size, ACTIVATED))
        per_tile = {extent: Poly(part) for extent, part in parts.items()}
        return AffineInSize(slope, constant, expert, per_tile)

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


class ActivatedExperts(NamedTuple):
    """Parameters of an extent that counts activated experts.

    Attributes:
        experts, per_token: E and k in a layer [1].
        share: Share of the tokens that choose [1].
        tokens: Sizes whose product is the number of tokens, such as `B*T`.
    """

    experts: int
    per_token: int
    share: Fraction
    tokens: str


@cache
def parse_activated_experts(detail: str) -> ActivatedExperts:
    """Parse an extent of activated experts, from behind its colon."""
    experts, per_token, share, *tokens = detail.split(",")
    return ActivatedExperts(int(experts), int(per_token), Fraction(share), *(tokens or ("B*T",)))


@cache
def _split_product(product: Product, size: str) -> tuple[str, Product]:
    """Split a product into the extent that depends on a size, empty if none does, and the rest."""
    varying = [name for name in product if size in sizes_of(name)]
    (name,) = varying or [""]
    return name, tuple(extent for extent in product if extent != name)


@cache
def sizes_of(extent: str) -> frozenset[str]:
    """Sizes that an extent depends on."""
    kind, _, detail = extent.partition(":")
    if kind in WINDOWED_EXTENTS:
        return frozenset(("T", "S"))
    if kind == ACTIVATED:
        return frozenset(parse_activated_experts(detail).tokens.split("*"))
    return frozenset(extent.partition("/")[0].split("*"))
