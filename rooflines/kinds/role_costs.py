"""Kernel costs before dtypes: FLOP, and elements by dtype role.

Letters are numbers, columns, or polynomials in extents: groups in models are kernels too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.kinds.formulas import compile_formulas
from rooflines.kinds.kernel_forms import chosen_formulas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.kinds.kinds import KernelKind, Tensor


class RoleCosts(NamedTuple):
    """Kernel costs before dtypes.

    Attributes:
        flops: Matrix-unit work [FLOP].
        elements: Elements that each tensor moves, behind its dtype role [1].
    """

    flops: Any
    elements: tuple[tuple[str, Any], ...]


def role_costs(
    kind: KernelKind,
    options: Mapping[str, str],
    values: Mapping[str, Any],
    replaced: Mapping[str, Tensor | None] | None = None,
) -> RoleCosts:
    """Evaluate a kind's formulas.

    Args:
        kind: The kind.
        options: Its choices by name; the rest have their first value.
        values: Value by letter, or by intermediate name instead of its formula.
        replaced: Tensors by name that replace the kind's; None: left out.
    """
    tensors = {**kind.reads, **kind.writes, **(replaced or {})}
    moved = [tensor for tensor in tensors.values() if tensor is not None]
    steps = {**kind.steps, **chosen_formulas(kind, options)}
    compute = compile_formulas(
        [kind.flops, *(tensor.elements for tensor in moved)],
        {name: formula for name, formula in steps.items() if name not in values},
        values,
    )
    flops, *elements = compute(*values.values())
    roles = (tensor.role for tensor in moved)
    return RoleCosts(flops, tuple(zip(roles, elements, strict=True)))
