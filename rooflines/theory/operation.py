"""Operations: einsums with two operands. Costs and thresholds follow from the letters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from rooflines.basics.errors import RooflinesError, close_to, quote
from rooflines.theory.extents import Size

if TYPE_CHECKING:
    from collections.abc import Iterable

OPERANDS = ("x", "w", "out")
"""The tensors of an operation, in einsum order."""

Unit = Literal["matrix", "vector"]
MATRIX: Unit = "matrix"
Flops = Literal["leading", "exact"]


@dataclass(frozen=True)
class Operation:
    """A two-operand einsum over named dimensions, with default compute unit and FLOP count.

    Attributes:
        name: The name in tables.
        x, w, out: Dimensions of operands and result, one letter each.
        unit: The default compute unit.
        flops: The default FLOP count, `leading` or `exact`.
    """

    name: str
    x: str
    w: str
    out: str
    unit: Unit = MATRIX
    flops: Flops = "leading"

    @cached_property
    def dims(self) -> tuple[str, ...]:
        """All dimensions, by first appearance."""
        return tuple(dict.fromkeys(self.x + self.w + self.out))

    @cached_property
    def sizes(self) -> tuple[Size, ...]:
        """Sizes of all dimensions."""
        return tuple(map(Size, self.dims))

    @cached_property
    def contracted(self) -> tuple[str, ...]:
        """Contracted dimensions: in both operands, not in the result."""
        return tuple(dim for dim in self.dims if dim not in self.out)

    def operand(self, name: str) -> tuple[str, ...]:
        """Dimensions of `x`, `w` or `out`."""
        return tuple({"x": self.x, "w": self.w, "out": self.out}[name])

    def in_order(self, dims: set[str]) -> tuple[Size, ...]:
        """Sizes sorted in the operation's order."""
        return tuple(size for size in self.sizes if size in dims)


NAMED_OPERATIONS = {
    op.name: op
    for op in (
        Operation("matmul", "BD", "DF", "BF"),
        Operation("per-example-matmul", "BD", "BDF", "BF"),
        Operation("dot", "D", "D", "", unit="vector", flops="exact"),
        Operation("sequence-matmul", "BSD", "DF", "BSF"),
        Operation("batched-matmul", "BMK", "BKN", "BMN"),
    )
}
"""Named operations. Source: All About Rooflines, the chapter's main case, Question 4 and the dot
product; a batched matmul has the letters of BLAS."""

EINSUM = re.compile(r"([A-Za-z]+),([A-Za-z]+)->([A-Za-z]*)")
OPERATION_FIX = (
    f"name one of {', '.join(NAMED_OPERATIONS)}, "
    "or write an einsum of two operands such as 'BD,DF->BF'"
)


def parse_operation(text: str, kernels: Iterable[str] = ()) -> Operation:
    """Parse an operation from a name, or an einsum such as `BD,DF->BF`.

    Args:
        text: The operation.
        kernels: Kinds of kernels that may be meant, for messages.

    Raises:
        RooflinesError: Neither a name nor a valid einsum with two operands.
    """
    if text in NAMED_OPERATIONS:
        return NAMED_OPERATIONS[text]
    match = EINSUM.fullmatch(text.replace(" ", ""))
    if match is None:
        raise RooflinesError(
            "",
            f"is {quote(text)}, which is no operation",
            OPERATION_FIX,
            value=text,
            close=close_to(text, [*NAMED_OPERATIONS, *kernels]),
        )
    x, w, out = match.groups()
    for name, letters in zip(OPERANDS, (x, w, out), strict=True):
        repeated = sorted({letter for letter in letters if letters.count(letter) > 1})
        if repeated:
            raise RooflinesError(
                "",
                f"is {quote(text)}, where {name} has {repeated[0]} twice",
                "give each dimension a letter of its own",
                value=text,
            )
    unknown_letters = [letter for letter in out if letter not in x + w]
    if unknown_letters:
        problem = (
            f"is {quote(text)}, whose result has {unknown_letters[0]}, which neither operand has"
        )
        raise RooflinesError(
            "", problem, f"drop {unknown_letters[0]} from the result, or give it to an operand"
        )
    unshared = [
        letter
        for letter in dict.fromkeys(x + w)
        if letter not in out and not (letter in x and letter in w)
    ]
    if unshared:
        problem = (
            f"is {quote(text)}, where {unshared[0]} is in one operand only and not in the result"
        )
        raise RooflinesError(
            "",
            problem,
            f"contract only what both operands share: sum over {unshared[0]} beforehand, or keep "
            "it in the result",
        )
    canonical = f"{x},{w}->{out}"
    return next(
        (op for op in NAMED_OPERATIONS.values() if f"{op.x},{op.w}->{op.out}" == canonical),
        Operation(canonical, x, w, out),
    )
