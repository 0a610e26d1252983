"""The dtypes that the tensors of a model are stored in, by class of tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import Field

from rooflines.basics.errors import Mistakes, RooflinesError, one_of, placed, quote
from rooflines.catalogue.chips import dtype_entries
from rooflines.catalogue.dtypes import stored_bits
from rooflines.catalogue.forms import Entry, Name
from rooflines.model.costs import BITS_PER_BYTE
from rooflines.models.shape import checked

if TYPE_CHECKING:
    from fractions import Fraction

    from rooflines.models.shape import TensorClass

__all__ = ["ModelDtypes", "bits_of", "check_dtypes", "dtypes_of", "in_bytes"]


class ModelDtypes(Entry):
    """Storage dtypes of a model: formats of the dtype catalogue."""

    weights: Name = Field(description="of all tensors without a class of their own")
    experts: Name | None = Field(default=None, description="of routed experts; null: as weights")
    head: Name | None = Field(
        default=None, description="of embedding and unembedding; null: as weights"
    )
    cache: Name | None = Field(default=None, description="of the cache")

    def of(self, tensors: TensorClass) -> str:
        """The dtype of a class of tensors."""
        return getattr(self, tensors) or self.weights


def bits_of(dtype: str) -> Fraction:
    """Bits per element of a format, its share of a block's scale included [bit].

    Raises:
        RooflinesError: The dtype catalogue has no such format.
    """
    formats = dtype_entries().formats
    one_of(dtype, formats, "no dtype")
    return stored_bits(formats[dtype])


def in_bytes(elements: int, bits: Fraction) -> int | Fraction:
    """Bytes of elements [byte], exact; an int where it is whole.

    Args:
        elements: How many [1].
        bits: Bits of each [bit].
    """
    size = elements * bits / BITS_PER_BYTE
    return int(size) if size.denominator == 1 else size


def dtypes_of(form: object) -> ModelDtypes:
    """Dtypes from a format's name, which then holds for all tensors, or from dtypes by class.

    Raises:
        RooflinesError: It is neither, or names no format of the dtype catalogue.
    """
    if isinstance(form, ModelDtypes):
        return form
    if isinstance(form, str):
        form = {"weights": form, "cache": form}
    elif not isinstance(form, Mapping):
        fix = "name a format such as bf16, or write {weights: , experts: , head: , cache: }"
        raise RooflinesError("dtypes", f"is {quote(form)}", fix)
    with placed("dtypes"):
        dtypes = checked(ModelDtypes, form)
        check_dtypes(dtypes)
    return dtypes


def check_dtypes(dtypes: ModelDtypes) -> None:
    """Refuse names of formats that the dtype catalogue lacks.

    Raises:
        RooflinesError: There are such names; each is a mistake.
    """
    with Mistakes() as mistakes:
        for name, dtype in dtypes.model_dump(exclude_none=True).items():
            with mistakes.at(name):
                one_of(dtype, dtype_entries().formats, "no dtype")
