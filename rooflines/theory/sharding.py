"""Shardings: several chips split one dimension evenly.

Which operands have that dimension determines the collective.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError, at_path, check_choice, quote
from rooflines.theory.network import ALL_TO_ALL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.theory.operation import Operation

SHARDS = "shards"
"""Name for the number of chips, as a key, a column and an axis to solve for."""


@dataclass(frozen=True)
class Sharding:
    """A split of an operation over N chips.

    Attributes:
        name: The name in tables.
        split: The split dimension; None for no split.
        transfers: Pairs of a tensor, `x`, `w` or `out`, and its collective, a key of
            `network.RING_PASSES`.
    """

    name: str
    split: str | None = None
    transfers: tuple[tuple[str, str], ...] = ()


NAMED_SHARDINGS: Mapping[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "none": ("", ()),
    "contracting/all-reduce": ("contracting", (("out", "all-reduce"),)),
    "contracting/reduce-scatter": ("contracting", (("out", "reduce-scatter"),)),
    "column": ("column", ()),
    "column/gather-x": ("column", (("x", "all-gather"),)),
    "batch": ("batch", ()),
    "batch/gather-w": ("batch", (("w", "all-gather"),)),
}
"""Named shardings: role of the split dimension, and transfers."""

FIRST_COLLECTIVES = {
    "all-gather x": ("x", "all-gather"),
    "all-gather w": ("w", "all-gather"),
    "all-to-all x": ("x", ALL_TO_ALL),
}
REDUCTIONS = ("all-reduce", "reduce-scatter")
THEN_COLLECTIVES = (*REDUCTIONS, ALL_TO_ALL)
LONG_FORM = (
    f"{{split: S, first: {' | '.join(FIRST_COLLECTIVES)}, then: {' | '.join(THEN_COLLECTIVES)}}}"
)
OR_LONG_FORM = f", or the long form, {LONG_FORM}"


def _role(op: Operation, role: str) -> str:
    """Find the operation's only dimension in a role."""
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
        f"choose another sharding{OR_LONG_FORM}",
        typed_fix="choose another sharding",
    )


def _long_form(op: Operation, form: Mapping[str, object]) -> Sharding:
    """Parse a sharding in long form, every value checked."""
    split, first, then = form.get("split"), form.get("first"), form.get("then")
    with at_path("split"):
        check_choice(split, op.dims, f"no dimension of {op.name}")
    transfers = []
    name_parts = [str(split)]
    if first is not None:
        fix = f"use one of {', '.join(FIRST_COLLECTIVES)}, or leave it out"
        with at_path("first"):
            check_choice(first, FIRST_COLLECTIVES, "no collective of an operand", fix)
        operand, collective = FIRST_COLLECTIVES[str(first)]
        transfers.append((operand, collective))
        name_parts.append(f"{collective.replace('all-gather', 'gather')}-{operand}")
    if then is not None:
        fix = f"use one of {', '.join(THEN_COLLECTIVES)}, or leave it out"
        with at_path("then"):
            check_choice(then, THEN_COLLECTIVES, "no collective of the result", fix)
        transfers.append(("out", str(then)))
        name_parts.append(str(then))
    return Sharding("/".join(name_parts), str(split), tuple(transfers))


def parse_sharding(form: str | Mapping[str, object], op: Operation) -> Sharding:
    """Parse a sharding of an operation from a name or a long form.

    Raises:
        RooflinesError: The sharding does not exist, several dimensions have that role, or the
            collective does not apply to the split.
    """
    if not isinstance(form, str):
        scheme = _long_form(op, form)
    else:
        fix = f"use one of {', '.join(NAMED_SHARDINGS)}"
        check_choice(form, NAMED_SHARDINGS, "no sharding", f"{fix}{OR_LONG_FORM}", fix)
        role, transfers = NAMED_SHARDINGS[form]
        if not role:
            return Sharding(form)
        try:
            scheme = Sharding(form, _role(op, role), transfers)
        except RooflinesError as error:
            raise RooflinesError(
                "",
                f"is {quote(form)}, which {error.problem}",
                error.fix,
                value=form,
                typed_fix=error.typed_fix,
            ) from None
    for problem, fix in _contradictions(scheme, op):
        raise RooflinesError("", f"is {quote(scheme.name)}, {problem}", fix, value=scheme.name)
    return scheme


def _contradictions(scheme: Sharding, op: Operation) -> Iterator[tuple[str, str]]:
    """Contradictions in a sharding, each with its fix."""
    split, collectives = scheme.split, dict(scheme.transfers)
    contracted = split in op.contracted
    for operand, collective in scheme.transfers:
        if collective == "all-gather" and split in op.operand(operand):
            yield (
                f"but {operand} itself is split over {split}, so a gather would undo the split",
                "gather the operand that lacks the split dimension, or nothing",
            )
        if collective in REDUCTIONS and not contracted:
            yield (
                f"but {split} is not contracted: there are no partial sums",
                f"leave `then` out, or write `then: {ALL_TO_ALL}`",
            )
        if collective == ALL_TO_ALL and contracted:
            yield (
                f"but {split} is contracted: an all-to-all would send partial sums",
                f"write `then: {REDUCTIONS[0]}` or `then: {REDUCTIONS[1]}`"
                if operand == "out"
                else "leave `first` out",
            )
        if collective == ALL_TO_ALL and split not in op.operand(operand):
            yield (
                f"but {operand} lacks {split}: every chip needs all of it",
                f"write `first: all-gather {operand}`",
            )
    if len(set(collectives.values())) > 1:
        yield (
            f"which gathers one tensor and sends another {ALL_TO_ALL}",
            "write two sweeps, one for each collective",
        )
    if contracted and "out" not in collectives:
        yield (
            "which leaves partial sums of the result on every chip",
            f"add `then: {REDUCTIONS[0]}` or `then: {REDUCTIONS[1]}`",
        )
