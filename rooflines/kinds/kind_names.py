"""Names of kinds in questions, and signs between them in chains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError, close_to, quote
from rooflines.kinds.kind_table import BY_NAME

if TYPE_CHECKING:
    from rooflines.kinds.kinds import KernelKind

FUSED, SEQUENCE = "+", ","
"""Signs between kinds: one fused kernel, or kernels one after another."""

MATMUL_NAME = "matmul"
"""A matmul as a link of a chain; asked alone it is an operation."""


def find_kind(name: str) -> KernelKind | None:
    """Kind by name or synonym, in any case; None: there is none."""
    return BY_NAME.get(name.strip().lower().replace("_", "-"))


def checked_kind(name: str) -> KernelKind:
    """Kind by name or synonym.

    Raises:
        RooflinesError: There is none.
    """
    kind = find_kind(name)
    if kind is None:
        close = close_to(name.lower(), [*BY_NAME])
        fix = f"close to it: {', '.join(close)}" if close else "see `rooflines list kernels`"
        raise RooflinesError("operation", f"is {quote(name)}, no kind of kernel", fix, value=name)
    return kind


def chain_sign(text: str) -> str | None:
    """Sign between a chain's kinds; None: the text is no chain."""
    for sign in (FUSED, SEQUENCE):
        parts = [part.strip() for part in text.split(sign)]
        if len(parts) > 1 and all(parts) and all(_names_kind(part) for part in parts):
            return sign
    return None


def _names_kind(part: str) -> bool:
    name = part.split(maxsplit=1)[0].lower()
    return name == MATMUL_NAME or find_kind(name) is not None
