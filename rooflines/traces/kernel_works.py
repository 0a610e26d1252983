"""Operator work by a kernel in the package, whose formulas it takes.

The table of kinds, and for matmuls the operation, say FLOP and the elements that each tensor moves.
Where an operator was given a tensor, its stored bytes count in their place: an expanded one is
stored once, and dtypes are as recorded.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from rooflines.kinds.kind_names import checked_kind
from rooflines.kinds.role_costs import role_costs
from rooflines.theory.costs import Workload
from rooflines.theory.operation import OPERANDS, parse_operation
from rooflines.theory.sharding import parse_sharding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflines.kinds.kinds import KernelKind
    from rooflines.theory.poly import Poly
    from rooflines.traces.tensors import TensorArgument

BATCHED_MATMUL = "GBD,GDF->GBF"
"""Matmuls with a batch G; 1 for a single one."""


class KernelWork(NamedTuple):
    """Kernel work.

    Attributes:
        flops: Products [FLOP].
        memory_bytes: Bytes read and written once [byte].
    """

    flops: float
    memory_bytes: float


def kernel_work(  # noqa: PLR0913, the parts of a kernel
    kind: str,
    letters: Mapping[str, int | Fraction],
    arguments: Mapping[str, Iterable[TensorArgument]],
    result_bytes: float = 0,
    *,
    options: Mapping[str, str] | None = None,
    flag: str | None = None,
) -> KernelWork:
    """Kernel work from the table of kinds.

    Args:
        kind: The kind's name.
        letters: Size by letter, or by the kind's intermediate names [1].
        arguments: Tensors that stand for a tensor of the kernel; none: it is absent. Tensors that
            are not named are results.
        result_bytes: Bytes per result element [byte].
        options: The kind's choices by name; the rest have their first value.
        flag: A flag whose costs replace the kind's, such as `backward`.
    """
    left_out = dict.fromkeys(arguments)
    flops, results = role_costs(_form(kind, flag), options or {}, letters, left_out)
    result_elements = sum(elements for _, elements in results)
    return KernelWork(float(flops), _moved(arguments) + float(result_elements * result_bytes))


@cache
def _form(kind: str, flag: str | None) -> KernelKind:
    """Kind, with a flag's costs."""
    entry = checked_kind(kind)
    return entry if flag is None else entry.with_flag(flag)


def matmul_work(
    sizes: Mapping[str, int],
    arguments: Mapping[str, Iterable[TensorArgument]],
    result_bytes: float,
) -> KernelWork:
    """Work of matmuls: x [G, B, D], w [G, D, F], out [G, B, F].

    Args:
        sizes: Size by letter [1].
        arguments: As for `kernel_work`; others than operands are read besides.
        result_bytes: Bytes per result element [byte].
    """
    flops, operands = _batched_matmul()
    results = (elements for name, elements in operands.items() if name not in arguments)
    written = sum(elements.at(sizes) for elements in results) * result_bytes
    return KernelWork(float(flops.at(sizes)), _moved(arguments) + float(written))


@cache
def _batched_matmul() -> tuple[Poly, Mapping[str, Poly]]:
    """FLOP in a batched matmul, and elements by operand."""
    operation = parse_operation(BATCHED_MATMUL)
    sharding, bits = parse_sharding("none", operation), dict.fromkeys(OPERANDS, Fraction(0))
    workload = Workload(operation, bits, sharding, 1, (), {}, operation.flops)
    elements = {name: workload.elements(operation.operand(name)) for name in OPERANDS}
    return workload.costs["flops"], elements


def _moved(arguments: Mapping[str, Iterable[TensorArgument]]) -> float:
    """Stored bytes in arguments [byte]."""
    return float(sum(tensor.stored_bytes for part in arguments.values() for tensor in part))
