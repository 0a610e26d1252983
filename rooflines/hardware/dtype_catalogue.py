"""The dtype catalogue: storage formats, and combinations with a compute dtype."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from rooflines.basics.errors import Mistakes, RooflinesError, check_choice, quote
from rooflines.basics.files import CONFIG_DIR
from rooflines.basics.numbers import exact
from rooflines.basics.yaml_file import in_file, read_yaml
from rooflines.hardware.entry_cache import cached_entries
from rooflines.hardware.entry_forms import (
    NAME_SCHEMA,
    Bits,
    Entry,
    Name,
    PositiveInt,
    Source,
    Text,
    validate_entry,
)
from rooflines.theory.operation import OPERANDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DTYPES_FILE = CONFIG_DIR / "dtypes.yaml"


class Format(Entry):
    """A storage format of numbers."""

    bits: Bits = Field(description="bits of one element [bit]")
    scale_bits: PositiveInt | None = Field(None, description="bits of a block's scale [bit]")
    block: PositiveInt | None = Field(None, description="elements that share one scale [1]")
    note: Text | None = Field(None, description="what it is")
    source: Source | None = Field(None, description="the document that defines it")

    @model_validator(mode="after")
    def _blocks_have_scales(self) -> Self:
        if (self.block is None) != (self.scale_bits is None):
            problem = "has one of scale_bits and block without the other"
            raise RooflinesError("", problem, "give both or neither")
        return self


class NamedCombination(Entry):
    """Storage formats of x, w and out, and the compute dtype."""

    x: Name = Field(description="format of the first operand, the activations")
    w: Name = Field(description="format of the second operand, the weights")
    out: Name = Field(description="format of the result")
    compute: Name = Field(
        description="dtype that the unit multiplies in; the chip needs a peak for it"
    )
    note: Text | None = Field(None, description="who uses it")

    @property
    def dtypes(self) -> dict[str, str]:
        """Storage formats and compute dtype, by key."""
        return {"x": self.x, "w": self.w, "out": self.out, "compute": self.compute}


INTEGER_FORMAT = re.compile(r"int([2-8])(?:-g(\d{1,4})(-zp|-bias)?)?")
"""Names of integer formats: bits, group size, zero point or bias."""

SCALE_BITS = 16
"""Bits in a group's scale, and in its bias [bit]."""


class StoredFormats(dict[str, Format]):
    """Formats by name; those for grouped integers follow from their name.

    `int4-g64` has a 16-bit scale per 64 weights; `-zp` adds a zero point with the integer's bits,
    `-bias` a 16-bit bias.
    """

    def __missing__(self, name: str) -> Format:
        """Build an integer format from its name."""
        match = INTEGER_FORMAT.fullmatch(name)
        if match is None or (match[2] and int(match[2]) < 1):
            raise KeyError(name)
        bits, group, extra = int(match[1]), match[2], match[3]
        extra_bits = {None: 0, "-zp": bits, "-bias": SCALE_BITS}[extra]
        if not group:
            return Format(bits=bits, scale_bits=None, block=None, note=None, source=None)
        scale_bits = SCALE_BITS + extra_bits
        return Format(bits=bits, scale_bits=scale_bits, block=int(group), note=None, source=None)

    def __contains__(self, name: object) -> bool:
        """Tell whether a name means a format."""
        try:
            return isinstance(name, str) and bool(self[name])
        except KeyError:
            return False

    def __or__(self, formats: Mapping[str, Any]) -> StoredFormats:  # type: ignore[override]
        """Union with further formats."""
        return StoredFormats({**self, **formats})


class DtypeFile(Entry):
    """The dtype catalogue."""

    formats: Annotated[dict[Name, Format], AfterValidator(StoredFormats)]
    combinations: dict[Name, NamedCombination]

    @model_validator(mode="after")
    def _formats_are_here(self) -> Self:
        fix = "use one of its formats, or add the format"
        with Mistakes() as mistakes:
            for name, combination in self.combinations.items():
                for key, dtype in combination.dtypes.items():
                    with mistakes.at("combinations", name, key):
                        check_choice(dtype, self.formats, "no format in this file", fix)
        return self


@cache
def dtype_entries() -> DtypeFile:
    """The dtype catalogue.

    Raises:
        RooflinesError: The file is wrong.
    """
    types = DtypeFile, Format, NamedCombination, StoredFormats
    return cached_entries("dtypes", [DTYPES_FILE], _read_dtypes, types)


def _read_dtypes() -> DtypeFile:
    with in_file(DTYPES_FILE):
        return validate_entry(DtypeFile, read_yaml(DTYPES_FILE))


def check_dtype(value: object) -> str:
    """Check that a name is a format in the dtype catalogue.

    Raises:
        RooflinesError: No format has that name.
    """
    check_choice(value, dtype_entries().formats, "no dtype")
    return str(value)


Dtype = Annotated[str, BeforeValidator(check_dtype), WithJsonSchema(NAME_SCHEMA)]


@dataclass(frozen=True)
class StoredDtypes:
    """Storage bits of an operation's tensors, and its compute dtype.

    Attributes:
        name: The combination's name in tables.
        bits: Stored bits per element by operand, block scales included [bit].
        compute: The dtype that the unit multiplies in.
    """

    name: str
    bits: Mapping[str, Fraction]
    compute: str


def stored_bits(form: Format) -> Fraction:
    """Stored bits per element: bits + scale_bits / block [bit]."""
    return exact(form.bits) + Fraction(form.scale_bits or 0, form.block or 1)


def resolve_combinations(
    forms: Sequence[str | NamedCombination], dtypes: DtypeFile
) -> dict[str, StoredDtypes]:
    """Resolve a sweep's dtype combinations, by name."""
    by_name: dict[str, StoredDtypes] = {}
    with Mistakes() as mistakes:
        for index, form in enumerate(forms):
            with mistakes.at(index):
                combination = _combination(form, dtypes)
                if combination.name in by_name:
                    problem = f"is {quote(combination.name)}, which is listed twice"
                    raise RooflinesError("", problem, "name every combination once")
                by_name[combination.name] = combination
    return by_name


def combination_name(x: str, w: str, out: str, compute: str) -> str:
    """Name of a combination outside the catalogue, such as `bf16,int8->bf16@bf16`."""
    return f"{x},{w}->{out}@{compute}"


def _combination(form: str | NamedCombination, dtypes: DtypeFile) -> StoredDtypes:
    if isinstance(form, str):
        fix = "use one of the names in the dtype catalogue, or write {x: , w: , out: , compute: }"
        check_choice(form, dtypes.combinations, "no dtype combination", fix)
        name, parts = form, dtypes.combinations[form]
    else:
        parts = form
        with Mistakes() as mistakes:
            for key, dtype in parts.dtypes.items():
                with mistakes.at(key):
                    check_choice(dtype, dtypes.formats, "no dtype")
        name = combination_name(**parts.dtypes)
    bits = {operand: stored_bits(dtypes.formats[parts.dtypes[operand]]) for operand in OPERANDS}
    return StoredDtypes(name, bits, parts.compute)
