"""Optimizers by name: bytes per gradient, master weight and state, and their FLOP.

A parameter has a weight, a gradient, a master weight and moments. An optimizer says how many
moments it keeps for matrices, token tables and vectors, and which formats it sets itself; the rest
follows the dtypes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.numbers import exact
from rooflines.kinds.formulas import compile_formulas
from rooflines.kinds.kind_table import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

BF16_BYTES, FP32_BYTES = Fraction(2), Fraction(4)

BLOCK = 256
"""Elements that share an fp32 scale in an 8-bit moment [1]. Source: Dettmers et al. 2021, "8-bit
Optimizers via Block-wise Quantization"."""

PURE_BF16: Mapping[str, Fraction] = {"gradients": BF16_BYTES, "master": Fraction(0)}
"""Formats where training is in bf16 alone: no master weight [byte]."""


class Moments(NamedTuple):
    """Moments that an optimizer keeps per element [1].

    Attributes:
        matrices: For matrices in layers.
        tables: For token tables.
        vectors: For norms and biases.
    """

    matrices: int
    tables: int
    vectors: int


ADAM_MOMENTS = Moments(2, 2, 2)


class Elements(NamedTuple):
    """Trained elements on a chip [1].

    Attributes:
        matrices, tables, vectors: Elements in matrices, token tables, and norms and biases.
        lines: Rows and columns in all matrices and tables.
    """

    matrices: Fraction = Fraction(0)
    tables: Fraction = Fraction(0)
    vectors: Fraction = Fraction(0)
    lines: Fraction = Fraction(0)

    @property
    def total(self) -> Fraction:
        """All elements [1]."""
        return self.matrices + self.tables + self.vectors


@dataclass(frozen=True, eq=False)
class Optimizer:
    """An optimizer.

    Attributes:
        summary: What it keeps, in words.
        moments: Moments that it keeps.
        sizes: Bytes by tensor class that it sets itself, in place of the dtypes [byte].
        line_bytes: Bytes per row and per column in a matrix, in place of moments [byte].
        other_bytes: Bytes per parameter besides gradient and weight, as typed; None: they follow
            from master weight and moments [byte].
        orthogonalizes: Whether a step orthogonalizes matrices in layers, as Muon does.
    """

    summary: str
    moments: Moments = ADAM_MOMENTS
    sizes: Mapping[str, Fraction] = field(default_factory=dict)
    line_bytes: Fraction = Fraction(0)
    other_bytes: Fraction | None = None
    orthogonalizes: bool = False

    def sizes_with(self, sizes: Mapping[str, Fraction]) -> dict[str, Fraction]:
        """Bytes per element by tensor class: from the dtypes, or as it sets them [byte]."""
        return {**sizes, **self.sizes}

    def state_bytes(self, elements: Elements, sizes: Mapping[str, Fraction]) -> Fraction:
        """Master weights and states [byte]: master + moments, and rows and columns.

        Args:
            elements: Trained elements.
            sizes: Bytes per element by tensor class, from the dtypes [byte].
        """
        if self.other_bytes is not None:
            return elements.total * self.other_bytes
        sizes = self.sizes_with(sizes)
        moments = sum(
            number * count
            for number, count in zip(
                self.moments, (elements.matrices, elements.tables, elements.vectors), strict=True
            )
        )
        return (
            elements.total * sizes["master"]
            + moments * sizes["moments"]
            + elements.lines * self.line_bytes
        )


OPTIMIZERS: Mapping[str, Optimizer] = {
    "adam": Optimizer("two moments"),
    "adam-bf16": Optimizer(
        "two moments, with the gradients in bf16, no master weights",
        sizes={**PURE_BF16, "moments": BF16_BYTES},
    ),
    "adam-8bit": Optimizer(
        "two 8-bit moments with an fp32 scale for 256, gradients in bf16, no master weights",
        sizes={**PURE_BF16, "moments": 1 + FP32_BYTES / BLOCK},
    ),
    "adafactor": Optimizer(
        "rows and columns of every matrix in fp32 (Shazeer and Stern 2018), without momentum",
        moments=Moments(0, 0, 1),
        line_bytes=FP32_BYTES,
    ),
    "muon": Optimizer(
        "one momentum of matrices, Adam on token tables and vectors (Jordan et al. 2024)",
        moments=Moments(1, 2, 2),
        orthogonalizes=True,
    ),
    "sgd": Optimizer("no state", moments=Moments(0, 0, 0)),
    "sgd-momentum": Optimizer("one momentum", moments=Moments(1, 1, 1)),
}
"""Optimizers by name. A moment has the dtypes' format `moments`, where none is said."""


def optimizer_of(value: str | float) -> Optimizer:
    """Optimizer for a name, or for bytes per parameter besides gradient and weight."""
    if isinstance(value, str):
        return OPTIMIZERS[value]
    return Optimizer(f"{value:g} bytes per parameter", other_bytes=exact(value))


def orthogonalization_flops(matrices: Iterable[tuple[int, int, int | Fraction]]) -> Fraction:
    """FLOP in Muon's Newton-Schulz steps, as the kind of kernel `muon` counts them [FLOP].

    Args:
        matrices: Input and output widths, and how many matrices have them, in the mean [1].
    """
    (formula,) = (compile_formulas((KINDS["muon"].flops,), {}, ("D", "F")),)
    total = Fraction(0)
    for width, out, count in matrices:
        (flops,) = formula(min(width, out), max(width, out))
        total += count * flops
    return total
