"""An operator's tensor arguments, as a profiler records them: dims, dtype, strides."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflines.traces.trace_records import Arguments

ELEMENT_BYTES = {
    "BFloat16": 2,
    "Half": 2,
    "bool": 1,
    "Bool": 1,
    "Byte": 1,
    "Char": 1,
    "complex<double>": 16,
    "complex<float>": 8,
    "double": 8,
    "Double": 8,
    "float": 4,
    "Float": 4,
    "int": 4,
    "Int": 4,
    "long": 8,
    "Long": 8,
    "long int": 8,
    "short": 2,
    "short int": 2,
    "signed char": 1,
    "unsigned char": 1,
}
"""Bytes per element by recorded type, without `c10::`; PyTorch's and C++'s names [byte]."""

BYTE_WIDE = ("Float8", "Float4", "bits8", "quint8", "qint8")
"""Beginnings of recorded types of one byte; two elements of Float4 are packed in it."""

FORMATS = {
    "BFloat16": "bf16",
    "Half": "fp16",
    "float": "fp32",
    "double": "fp64",
    "signed char": "int8",
    "unsigned char": "int8",
}
"""Number format by recorded type, for those that products are computed in."""

PYTHON_NUMBERS = ("double", "long int", "bool", "int")
"""Types that are recorded for Python's numbers, too: without dims they are no tensors."""

NO_TENSORS = ("Scalar", "ScalarList", "")

TENSOR_LIST = "TensorList"

OPAQUE = re.compile(r"OpaqueType<(\d+)u?>")
"""Template argument of copying kernels that says only how wide an element is."""

OPAQUE_TYPES = {1: "bool", 2: "Half", 4: "float", 8: "double"}

TYPES_IN_KERNELS = (
    ("BFloat16", re.compile(r"BFloat16|bfloat16|bf16")),
    ("Half", re.compile(r"c10::Half|__half|\bhalf\b")),
    ("double", re.compile(r"\bdouble\b")),
    ("float", re.compile(r"\bfloat\b")),
    ("long int", re.compile(r"\blong\b")),
)
"""Patterns in kernel names by the type that they mean, in the order in which they are tried."""


class TensorArgument(NamedTuple):
    """Tensor that an operator was given.

    Attributes:
        dims: Size along each dimension [1].
        dtype: Recorded type, without `c10::`.
        strides: Stride along each dimension [1]; empty: not recorded.
    """

    dims: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] = ()

    @property
    def element_bytes(self) -> int:
        """Bytes per element [byte]."""
        return type_bytes(self.dtype) or 0

    @property
    def format(self) -> str | None:
        """Number format in which products with it are computed; None: none is."""
        if self.dtype.startswith("Float8"):
            return "fp8"
        return "nvfp4" if self.dtype.startswith("Float4") else FORMATS.get(self.dtype)

    @property
    def packed(self) -> int:
        """Elements in a stored one: two in a Float4 byte [1]."""
        return 2 if self.dtype.startswith("Float4") else 1

    @property
    def elements(self) -> int:
        """Elements by its dims [1]."""
        return prod(self.dims)

    @property
    def stored_elements(self) -> int:
        """Elements in memory: dimensions with stride 0 are expanded, and stored once [1]."""
        if len(self.strides) != len(self.dims):
            return self.elements
        return prod(size for size, stride in zip(self.dims, self.strides, strict=True) if stride)

    @property
    def stored_bytes(self) -> int:
        """Bytes in memory [byte]."""
        return self.stored_elements * self.element_bytes

    def with_dims(self, *dims: int) -> TensorArgument:
        """Tensor with the same type, stored without gaps: a result."""
        return TensorArgument(dims, self.dtype)


def type_bytes(dtype: str) -> int | None:
    """Bytes per element in a recorded type, without `c10::` [byte]; None: no number type."""
    if dtype in ELEMENT_BYTES:
        return ELEMENT_BYTES[dtype]
    return 1 if dtype.startswith(BYTE_WIDE) else None


class RecordedArguments(NamedTuple):
    """Operator arguments by place.

    Attributes:
        places: A tensor, a list of tensors, or None for numbers and what is absent.
        values: Numbers and lists of numbers as text; empty for tensors.
    """

    places: tuple[TensorArgument | tuple[TensorArgument, ...] | None, ...]
    values: tuple[str, ...]

    def find(self, place: int | None) -> TensorArgument | None:
        """Tensor at a place; None: there is none, or no single one."""
        if place is None or not -len(self.places) <= place < len(self.places):
            return None
        argument = self.places[place]
        return argument if isinstance(argument, TensorArgument) else None

    def tensor(self, place: int) -> TensorArgument:
        """Tensor at a place.

        Raises:
            LookupError: There is none.
        """
        argument = self.find(place)
        if argument is None:
            raise LookupError(place)
        return argument

    def tensors(self, places: Iterable[int]) -> list[TensorArgument]:
        """Tensors at places, absent ones left out."""
        return [tensor for place in places if (tensor := self.find(place)) is not None]

    @property
    def lists(self) -> list[tuple[TensorArgument, ...]]:
        """Tensor lists, in order."""
        return [
            argument
            for argument in self.places
            if argument is not None and not isinstance(argument, TensorArgument)
        ]

    def flat(self, first: int = 0) -> Iterator[TensorArgument]:
        """All tensors from a place on, those in lists one by one."""
        for argument in self.places[first:]:
            if isinstance(argument, TensorArgument):
                yield argument
            elif argument is not None:
                yield from argument

    def value(self, place: int | None) -> str:
        """Number at a place as text; empty: there is none."""
        if place is None or not -len(self.values) <= place < len(self.values):
            return ""
        return self.values[place]

    def number(self, place: int | None, otherwise: int) -> int:
        """Whole number at a place, or another one where none is recorded [1]."""
        try:
            return int(self.value(place))
        except ValueError:
            return otherwise

    def numbers(self, place: int | None) -> list[int]:
        """Number list at a place; empty: there is none."""
        return number_list(self.value(place))

    def flag(self, place: int | None) -> bool:
        """True where a place says so, in words or as a number above zero."""
        return self.value(place) not in ("", "False", "0", "None")


def number_list(text: str) -> list[int]:
    """Numbers in a text such as `[1, 2]`; empty: it is no list."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return []
    return value if isinstance(value, list) else []


def recorded_arguments(arguments: Arguments, kernels: Sequence[str] = ()) -> RecordedArguments:
    """Arguments with their tensors.

    Args:
        arguments: As recorded. Types of lists, and in files of 2020 and 2021 all types, are not:
            the kernel's template says them.
        kernels: Names of the kernels that the operator launched.
    """
    types: Sequence[str] = arguments.input_types
    if not any(types):
        guess = type_in_kernels(tuple(kernels))
        types = [guess if dims and guess else "" for dims in arguments.input_dims]
    places = [
        _argument(dims, _at(types, place, ""), _at(arguments.input_strides, place, ()), kernels)
        for place, dims in enumerate(arguments.input_dims)
    ]
    return RecordedArguments(tuple(places), tuple(map(str, arguments.concrete_inputs)))


def _argument(
    dims: Sequence[Any], recorded: str, strides: Sequence[Any], kernels: Sequence[str]
) -> TensorArgument | tuple[TensorArgument, ...] | None:
    """Argument at one place."""
    dtype = recorded.removeprefix("c10::")
    if recorded == TENSOR_LIST or (dims and isinstance(dims[0], list | tuple)):
        inner = type_in_kernels(tuple(kernels))
        if inner is None or not dims:
            return None
        return tuple(
            TensorArgument(tuple(sizes), inner, tuple(_at(strides, place, ())))
            for place, sizes in enumerate(dims)
        )
    if dtype in NO_TENSORS or type_bytes(dtype) is None:
        return None
    if not dims and recorded in PYTHON_NUMBERS:
        return None
    return TensorArgument(tuple(dims), dtype, tuple(strides or ()))


def _at(sequence: Sequence[Any], place: int, otherwise: Any) -> Any:  # noqa: ANN401, any item
    """Item at a place, or another value where there is none."""
    return sequence[place] if sequence and place < len(sequence) else otherwise


@lru_cache(4096)
def type_in_kernels(kernels: tuple[str, ...]) -> str | None:
    """Recorded type that template arguments in kernel names mean; None: they say nothing."""
    for name in kernels:
        if match := OPAQUE.search(name):
            return OPAQUE_TYPES.get(int(match[1]))
        for dtype, pattern in TYPES_IN_KERNELS:
            if pattern.search(name):
                return dtype
    return None
