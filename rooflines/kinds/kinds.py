"""A kind of kernel: its letters, roles, options and formulas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from rooflines.theory.operation import MATRIX, Unit

VECTOR: Unit = "vector"

WHOLE_BYTE = "byte"
"""Role of a tensor whose formula counts bytes, whatever the dtypes."""


class Tensor(NamedTuple):
    """Elements that a kernel reads or writes once.

    Attributes:
        role: The dtype role, such as `x`; `byte`: the formula counts bytes.
        elements: Formula for the number of elements [1].
    """

    role: str
    elements: str


Tensors = Mapping[str, Tensor]
"""Tensors by name."""


class Form(NamedTuple):
    """Costs under a flag, such as `backward`; None: as without it.

    Attributes:
        reads, writes: Tensors by name.
        flops, vector_flops, exponentials: Formulas [FLOP, FLOP, 1].
    """

    reads: Tensors | None = None
    writes: Tensors | None = None
    flops: str | None = None
    vector_flops: str | None = None
    exponentials: str | None = None


class Check(NamedTuple):
    """A condition on letters.

    Attributes:
        formula: Holds where it is true, for numbers and for expressions of columns.
        message: What is wrong and, behind a colon, what would do, with letters in braces.
        choices: Choices under which it is checked; empty: always.
    """

    formula: str
    message: str
    choices: Mapping[str, str] = {}


@dataclass(frozen=True)
class KernelKind:
    """A kind of kernel.

    Attributes:
        name: The name in questions and tables.
        summary: A phrase that says what it computes.
        letters: Meaning by letter, in the order of a product such as `4096x8192`.
        reads, writes: Tensors by name, each moved once; the first that is read is the input of a
            fused chain, the first that is written its result.
        flops: Formula for FLOP of the matrix unit [FLOP]; `0` for kernels of the vector unit.
        vector_flops: Formula for FLOP of the vector unit in fp32 [FLOP].
        exponentials: Formula for exponentials and other special functions [1].
        roles: Dtype roles with the role that each defaults to; empty: the typed format.
        defaults: Size by letter as a formula; a letter without one must be given.
        optional: Letters that may be absent, such as `window`.
        steps: Intermediate names with their formulas, in order.
        choices: Options with their values; a value replaces intermediate formulas, and defaults of
            letters. The first value is the default.
        flags: Options that are on or off, with the costs that they replace.
        checks: Conditions on letters.
        axes: Letters along which thresholds are solved.
        largest: Letters along which the largest compute-bound size is the threshold.
        limits: Smallest and largest size along an axis, as formulas; None: no end.
        follows: Letter that grows as much as another, along its axis.
        columns: Output columns, `pairs` or `touched`, with their formulas.
        resident: Elements in memory by tensor, where they are not those moved: all experts, or
            none for a result that overwrites an input.
        notes: Sentences about what is not counted.
        synonyms: Further names.
        example: Sizes and words of an example question.
        width: Letter with the width of a row, for chains.
    """

    name: str
    summary: str
    letters: Mapping[str, str]
    reads: Tensors
    writes: Tensors
    flops: str = "0"
    vector_flops: str = "0"
    exponentials: str = "0"
    roles: Mapping[str, str] = field(default_factory=lambda: {"x": "", "out": "x"})
    defaults: Mapping[str, str] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    steps: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    flags: Mapping[str, Form] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    axes: tuple[str, ...] = ()
    largest: tuple[str, ...] = ()
    limits: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    follows: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    resident: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    synonyms: tuple[str, ...] = ()
    example: str = ""
    width: str = "D"

    @cached_property
    def unit(self) -> Unit:
        """Compute unit that `math` stands for: vector, unless the kernel has products."""
        forms = [self.flops, *(form.flops for form in self.flags.values())]
        return MATRIX if any(formula not in (None, "0") for formula in forms) else VECTOR

    @property
    def resident_tensors(self) -> list[Tensor]:
        """Tensors in memory, each once."""
        return [
            tensor._replace(elements=self.resident.get(name, tensor.elements))
            for name, tensor in (*self.reads.items(), *self.writes.items())
        ]

    @property
    def names(self) -> tuple[str, ...]:
        """Name and synonyms."""
        return (self.name, *self.synonyms)

    def with_flag(self, name: str) -> KernelKind:
        """This kind with a flag's costs in place of its own."""
        form = self.flags[name]
        changes = {key: value for key, value in form._asdict().items() if value is not None}
        return replace(self, **changes)
