"""Quantities by side in a blocked product: kernel formulas as few operations per row.

A quantity sums products: a factor on the cases' side, one on the other side, and one on both.
Factors on one side are computed once per point there.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from rooflines.kinds.formulas import EXPRESSION_FUNCTIONS, FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rooflines.evaluation.compiler import RowCompiler

Number = int | float | Fraction
Factor = Number | pl.Expr


def _times(left: Factor, right: Factor) -> Factor:
    """Product of factors; a number of 1 is left out."""
    if isinstance(left, pl.Expr):
        if isinstance(right, pl.Expr):
            return left * right
        return left if right == 1 else left * float(right)
    return _times(right, left) if isinstance(right, pl.Expr) else left * right


def _plus(left: Factor, right: Factor) -> Factor:
    """Sum of factors; a number of 0 is left out."""
    if isinstance(left, pl.Expr):
        if isinstance(right, pl.Expr):
            return left + right
        return left if right == 0 else left + float(right)
    return _plus(right, left) if isinstance(right, pl.Expr) else left + right


def _sum(factors: Sequence[Factor], start: Factor = 0) -> Factor:
    """Sum of factors and a start."""
    return reduce(_plus, factors, start)


class Product(NamedTuple):
    """Factors by side: the cases', the other, and both."""

    near: Factor = 1
    far: Factor = 1
    row: Factor = 1

    @property
    def sides(self) -> frozenset[str]:
        """Sides with an expression."""
        factors = zip(self._fields, self, strict=True)
        return frozenset(name for name, factor in factors if isinstance(factor, pl.Expr))

    def times(self, right: Product) -> Product:
        """Product with another one."""
        return Product(*map(_times, self, right))

    @property
    def factor(self) -> Factor:
        """All factors as one."""
        return reduce(_times, self)


NO_SIDE = frozenset[str]()
NEAR, FAR = frozenset({"near"}), frozenset({"far"})


@dataclass(frozen=True, eq=False)
class Quantity:
    """Sum of products, for formulas: it adds, subtracts and multiplies as a number does.

    Attributes:
        compiler: Compiler that the columns are computed by.
        terms: The products.
    """

    compiler: RowCompiler
    terms: tuple[Product, ...]

    @classmethod
    def of_column(cls, compiler: RowCompiler, name: str) -> Quantity:
        """Quantity from a column on one side."""
        column = pl.col(name).cast(pl.Float64)
        near = compiler.is_on_case_side(name)
        return cls(compiler, (Product(near=column) if near else Product(far=column),))

    @classmethod
    def of_cases(cls, compiler: RowCompiler, numbers: Sequence[Number]) -> Quantity | Number:
        """Quantity from a number for each case; a number where they are equal."""
        if len({*numbers}) == 1:
            return numbers[0]
        return cls(compiler, (Product(near=compiler.constant([*map(float, numbers)])),))

    def _terms_of(self, right: Quantity | Number) -> tuple[Product, ...]:
        return right.terms if isinstance(right, Quantity) else (Product(near=right),)

    def __add__(self, right: Quantity | Number) -> Quantity:
        """Sum; terms on one side are one expression."""
        terms = [*self.terms, *self._terms_of(right)]
        sums = [term for term in terms if term.sides not in (NO_SIDE, NEAR, FAR)]
        numbers, near, far = (
            [term.factor for term in terms if term.sides == side] for side in (NO_SIDE, NEAR, FAR)
        )
        number = _sum(numbers)
        if near:
            sums.append(Product(near=_sum(near, number)))
        if far:
            sums.append(Product(far=_sum(far, 0 if near else number)))
        if not near and not far and (number != 0 or not sums):
            sums.append(Product(near=number))
        return Quantity(self.compiler, tuple(sums))

    __radd__ = __add__

    def __mul__(self, right: Quantity | Number) -> Quantity:
        """Product, distributed over a sum where that takes no more terms."""
        summands = self._terms_of(right)
        if len(self.terms) > 1 and len(summands) > 1:
            assert isinstance(right, Quantity)  # noqa: S101, a number has one term
            return Quantity(self.compiler, (Product(row=self.total() * right.total()),))
        terms = (term.times(summand) for term in self.terms for summand in summands)
        return Quantity(self.compiler, tuple(terms))

    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        """Quantity with the other sign."""
        return self * -1

    def __sub__(self, right: Quantity | Number) -> Quantity:
        """Difference."""
        return self + right * -1

    def __rsub__(self, right: Number) -> Quantity:
        """Difference, from a number."""
        return -self + right

    @property
    def side(self) -> frozenset[str]:
        """Sides with an expression."""
        return frozenset[str]().union(*(term.sides for term in self.terms))

    @property
    def expression(self) -> pl.Expr:
        """Expression of the columns on its side, if it is on one side alone."""
        factor = self.terms[0].factor
        return factor if isinstance(factor, pl.Expr) else pl.lit(float(factor))

    def total(self) -> pl.Expr:
        """Expression in a row; factors on one side are columns computed there."""
        return reduce(add, (self._in_row(term) for term in self.terms))

    def _in_row(self, term: Product) -> pl.Expr:
        """Product in a row."""
        near, far, row = term
        if isinstance(near, pl.Expr):
            near = self.compiler.early(near, on_case_side=True)
        elif isinstance(far, pl.Expr):
            far, near = _times(far, near), 1
        if isinstance(far, pl.Expr):
            far = self.compiler.early(far, on_case_side=False)
        product = Product(near, far, row).factor
        return product if isinstance(product, pl.Expr) else pl.lit(float(product))


def total_in_row(quantity: Quantity | Number) -> pl.Expr:
    """Expression of a quantity, or a number, in a row."""
    return quantity.total() if isinstance(quantity, Quantity) else pl.lit(float(quantity))


def _by_side(name: str) -> Callable[..., Any]:
    """Function in formulas on quantities: on the side of its arguments, exact on numbers."""
    exact, on_expressions = FUNCTIONS[name], EXPRESSION_FUNCTIONS[name]

    def apply(*values: Quantity | Number) -> Quantity | Number:
        quantities = [value for value in values if isinstance(value, Quantity)]
        if not quantities:
            number: Number = exact(*values)
            return number
        sides = frozenset[str]().union(*(quantity.side for quantity in quantities))
        if sides in (NEAR, FAR):
            arguments = [
                value.expression if isinstance(value, Quantity) else value for value in values
            ]
            (side,) = sides
        else:
            arguments = [
                value.total() if isinstance(value, Quantity) else value for value in values
            ]
            side = "row"
        product = Product(**{side: on_expressions(*arguments)})
        return Quantity(quantities[0].compiler, (product,))

    return apply


SIDED_FUNCTIONS: Mapping[str, Callable[..., Any]] = {name: _by_side(name) for name in FUNCTIONS} | {
    "half": lambda product: (
        product * 0.5 if isinstance(product, Quantity) else FUNCTIONS["half"](product)
    )
}
"""Functions in formulas, on quantities and numbers."""
