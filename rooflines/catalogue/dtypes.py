"""Dtype combinations: the dtypes that tensors are stored in, and the one the unit computes in."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.basics.errors import Mistakes, RooflinesError, one_of, quote
from rooflines.basics.numbers import exact
from rooflines.model.operation import OPERANDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.catalogue.entries import DtypeFile, Format, NamedCombination


@dataclass(frozen=True)
class StoredDtypes:
    """The dtypes that the tensors of an operation are stored in, and the one it is computed in.

    Attributes:
        name: Its name in tables.
        bits: Bits per element of each operand as stored, block scales included [bit].
        compute: The dtype that the unit multiplies in.
    """

    name: str
    bits: Mapping[str, Fraction]
    compute: str


def stored_bits(form: Format) -> Fraction:
    """Bits per element as stored, its share of a block's scale included [bit]."""
    return exact(form.bits) + Fraction(form.scale_bits or 0, form.block or 1)


def combinations_of(
    wanted: Sequence[str | NamedCombination], dtypes: DtypeFile
) -> dict[str, StoredDtypes]:
    """The dtype combinations of a sweep by name, each with the bits it stores."""
    by_name: dict[str, StoredDtypes] = {}
    with Mistakes() as mistakes:
        for index, form in enumerate(wanted):
            with mistakes.at(f"[{index}]"):
                combination = _combination(form, dtypes)
                if combination.name in by_name:
                    raise RooflinesError(
                        "",
                        f"is {quote(combination.name)}, which is listed twice",
                        "name every combination once",
                    )
                by_name[combination.name] = combination
    return by_name


def name_of(x: str, w: str, out: str, compute: str) -> str:
    """The name of a combination that is in no catalogue."""
    return f"{x},{w}->{out}@{compute}"


def _combination(form: str | NamedCombination, dtypes: DtypeFile) -> StoredDtypes:
    if isinstance(form, str):
        fix = "use one of the names in the dtype catalogue, or write {x: , w: , out: , compute: }"
        one_of(form, dtypes.combinations, "no dtype combination", fix)
        name, parts = form, dtypes.combinations[form]
    else:
        parts = form
        with Mistakes() as mistakes:
            for key, dtype in parts.dtypes.items():
                with mistakes.at(key):
                    one_of(dtype, dtypes.formats, "no dtype")
        name = name_of(**parts.dtypes)
    bits = {operand: stored_bits(dtypes.formats[parts.dtypes[operand]]) for operand in OPERANDS}
    return StoredDtypes(name, bits, parts.compute)
