"""Dtype combinations: what the tensors of an operation are stored in, and what the unit computes in."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import Mistakes, RooflinesError, close_to, quote
from rooflines.basics.numbers import exact
from rooflines.model.operation import OPERANDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.model.resources import JSON

__all__ = ["Combination", "combinations_of"]


@dataclass(frozen=True)
class Combination:
    """What the tensors of an operation are stored in, and what the unit computes in.

    Attributes:
        name: How tables call it.
        bits: Bits per element of each operand as stored, block scales included [bit].
        compute: The dtype that the unit multiplies in.
    """

    name: str
    bits: Mapping[str, Fraction]
    compute: str


def combinations_of(wanted: Sequence[Any], dtypes: JSON) -> dict[str, Combination]:
    """The dtype combinations of a sweep by name, each with the bits it stores."""
    found: dict[str, Combination] = {}
    with Mistakes() as mistakes:
        for index, given in enumerate(wanted):
            with mistakes.at(f"[{index}]"):
                combination = _combination(given, dtypes)
                if combination.name in found:
                    raise RooflinesError(
                        "",
                        f"is {quote(combination.name)}, which stands there twice",
                        "name every combination once",
                    )
                found[combination.name] = combination
    return found


def _combination(given: Any, dtypes: JSON) -> Combination:  # noqa: ANN401, a name or a mapping, as its form has checked
    formats, named = dtypes["formats"], dtypes["combinations"]
    if isinstance(given, str):
        if given not in named:
            fix = (
                "use one of the names in the dtype catalogue, or write {x: , w: , out: , compute: }"
            )
            raise RooflinesError(
                "",
                f"is {quote(given)}, which is no dtype combination",
                fix,
                close=close_to(given, named),
            )
        name, parts = given, named[given]
    else:
        parts = given
        with Mistakes() as mistakes:
            for key in (*OPERANDS, "compute"):
                with mistakes.at(key):
                    if parts[key] not in formats:
                        fix = f"use one of {', '.join(formats)}"
                        raise RooflinesError(
                            "",
                            f"is {quote(parts[key])}, which is no dtype",
                            fix,
                            close=close_to(parts[key], formats),
                        )
        name = f"{parts['x']},{parts['w']}->{parts['out']}@{parts['compute']}"
    bits = {}
    for operand in OPERANDS:
        form = formats[parts[operand]]
        bits[operand] = exact(form["bits"]) + Fraction(
            form.get("scale_bits") or 0, form.get("block") or 1
        )
    return Combination(name, bits, parts["compute"])
