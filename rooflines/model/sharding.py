"""Sharding: several chips split one dimension evenly.

The operands that have the dimension determine the collective.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError, one_of, placed, quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.model.operation import Operation

__all__ = ["NAMED", "SHARDS", "Sharding", "sharding"]

SHARDS = "shards"
"""The name of the number of chips, as a key, a column and an axis to solve for."""


@dataclass(frozen=True)
class Sharding:
    """A split of an operation over N chips.

    Attributes:
        name: Its name in tables.
        split: The dimension that is split; None for no split.
        first: The operand all-gathered before the computation, `x` or `w`.
        then: The collective over the partial sums, `all-reduce` or `reduce-scatter`.
    """

    name: str
    split: str | None = None
    first: str | None = None
    then: str | None = None

    def payload(self) -> str | None:
        """The tensor that is sent: the gathered operand, or the partial sums of the result."""
        return self.first or ("out" if self.then else None)

    def trips(self) -> int:
        """How many times the payload goes around the ring: twice in an all-reduce."""
        return 2 if self.then == "all-reduce" else 1 if self.payload() else 0

    def bytes_per_payload(self, shards: int) -> Fraction:
        """Bytes that each of N chips sends per byte of the payload [1].

        Returns:
            (N-1)/N for an all-gather or a reduce-scatter, 2 (N-1)/N for an all-reduce, 0 for one
            chip; exact for a ring.

        Source: All About Rooflines, "Network communication rooflines", generalised from two chips
            to N.
        """
        return Fraction(self.trips() * (shards - 1), shards)

    def hops(self, shards: int) -> int:
        """Sequential steps of the collective [1]: N-1; 2 (N-1) for an all-reduce; 0 without one."""
        return self.trips() * (shards - 1)


NAMED: Mapping[str, tuple[str, str | None, str | None]] = {
    "none": ("", None, None),
    "contracting/all-reduce": ("contracting", None, "all-reduce"),
    "contracting/reduce-scatter": ("contracting", None, "reduce-scatter"),
    "column": ("column", None, None),
    "column/gather-x": ("column", "x", None),
    "batch": ("batch", None, None),
    "batch/gather-w": ("batch", "w", None),
}
"""The named shardings: role of the split dimension, operand gathered first, collective after."""

GATHERS = {"all-gather x": "x", "all-gather w": "w"}
REDUCTIONS = ("all-reduce", "reduce-scatter")
LONG_FORM = "{split: S, first: all-gather x | all-gather w, then: all-reduce | reduce-scatter}"


def _role(op: Operation, role: str) -> str:
    """The only dimension of the operation in that role."""
    has = {dim: tuple(dim in op.operand(name) for name in ("x", "w", "out")) for dim in op.dims}
    patterns = {
        "contracting": [(True, True, False)],
        "column": [(False, True, True)],
        "batch": [(True, False, True), (True, True, True)],
    }[role]
    for pattern in patterns:
        dims = [dim for dim in op.dims if has[dim] == pattern]
        if len(dims) == 1:
            return dims[0]
        if dims:
            raise RooflinesError(
                "",
                f"could split any of {', '.join(dims)} in {op.name}",
                f"say which in the long form, {LONG_FORM}",
            )
    meaning = {
        "contracting": "that x and w share and the result lacks",
        "column": "of w and the result only",
        "batch": "of x and the result",
    }[role]
    raise RooflinesError(
        "",
        f"needs a dimension {meaning}, and {op.name} has none",
        f"choose another sharding, or the long form, {LONG_FORM}",
    )


def _long_form(op: Operation, form: Mapping[str, object]) -> tuple[str, str | None, str | None]:
    """Split, first and then of a sharding written out, each a value that exists."""
    split = form.get("split")
    with placed("split"):
        one_of(split, op.dims, f"no dimension of {op.name}")
    first, then = form.get("first"), form.get("then")
    if first is not None and first not in GATHERS:
        raise RooflinesError(
            "first",
            f"is {quote(first)}, which gathers nothing",
            f"use one of {', '.join(GATHERS)}, or leave it out",
        )
    if then is not None:
        fix = f"use one of {', '.join(REDUCTIONS)}, or leave it out"
        with placed("then"):
            one_of(then, REDUCTIONS, "no reduction", fix)
    return str(split), GATHERS.get(str(first)), None if then is None else str(then)


def sharding(form: str | Mapping[str, object], op: Operation) -> Sharding:
    """The sharding that a name, or a long form, means for an operation.

    Raises:
        RooflinesError: It does not exist, several dimensions have that role, or the collective
            does not apply to the split.
    """
    if isinstance(form, str):
        fix = f"use one of {', '.join(NAMED)}, or the long form, {LONG_FORM}"
        one_of(form, NAMED, "no sharding", fix)
        role, first, then = NAMED[form]
        if not role:
            return Sharding(form)
        try:
            split = _role(op, role)
        except RooflinesError as error:
            raise RooflinesError(
                "", f"is {quote(form)}, which {error.problem}", error.fix
            ) from None
        name = form
    else:
        split, first, then = _long_form(op, form)
        name = "/".join(
            part for part in (split, f"gather-{first}" if first else None, then) if part
        )
    if first and split in op.operand(first):
        problem = (
            f"is {quote(name)}, but {first} itself is split over {split}, so a gather of "
            "it would undo the split"
        )
        raise RooflinesError(
            "", problem, "gather the operand that lacks the split dimension, or nothing"
        )
    if then and split not in op.contracted:
        raise RooflinesError(
            "",
            f"is {quote(name)}, but {split} is not contracted: there are no partial sums",
            "leave `then` out",
        )
    if split in op.contracted and not then:
        problem = f"is {quote(name)}, which leaves partial sums of the result on every chip"
        raise RooflinesError("", problem, f"add `then: {REDUCTIONS[0]}` or `then: {REDUCTIONS[1]}`")
    return Sharding(name, split, first, then)
