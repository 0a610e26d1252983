"""Groups as kernels: the table of kinds has the formulas, a model binds their letters.

A letter is an architecture's size, or a product of extents: B and T, and where a kind computes
`pairs`, `entries` and `touched`, what windows and routing count. The tensors below replace a kind's
where engines hand over something else. No kind has matmuls, which are operations, and gated short
convolutions. In training a backward pass counts two products for each forward one; scores that it
repeats count in `hfu` alone.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypedDict, cast

from rooflines.kinds.kind_names import checked_kind
from rooflines.kinds.kinds import Tensor
from rooflines.kinds.role_costs import role_costs
from rooflines.theory.poly import Poly, constant, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.theory.extents import Product

Terms = dict["Product", Fraction]
"""Cost: coefficient by product of extents."""

COST_BY_ROLE = {"x": "reads", "w": "weights", "cache": "cache", "out": "writes"}
"""Group fields by dtype role."""

PER_EXPERT_ROWS = {"x": Tensor("x", "B*k*D"), "out": Tensor("out", "B*k*D")}
"""Rows that routed experts read and write, once an expert: further kernels permute and sum them."""

OUTPUT_ALONE = {"table": None}
"""No table rows, which steps leave out."""

CHOSEN_ALONE = {"out": Tensor("out", "B*T*chosen")}
"""Indexer output: chosen tokens or entries."""

LATENT_BESIDE_HEADS = {
    "kv": Tensor("x", "B*T*N*(nope+Hv)"),
    "latent": Tensor("cache", "B*entries*(kv+rope)"),
}
"""Keys and values that expanded MLA gets from its up-projection; the rotary key from the cache."""


class GroupCosts(TypedDict, total=False):
    """Group costs by field, see `Group`."""

    weights: Terms
    flops: Terms
    cache: Terms
    reads: Terms
    writes: Terms


class KindLetters(NamedTuple):
    """A model's part as a kernel.

    Attributes:
        kind: The kind's name.
        letters: Size by letter [1].
        options: The kind's choices.
        tensors: Tensors by name that replace the kind's; None: left out.
    """

    kind: str
    letters: Mapping[str, int | Fraction]
    options: Mapping[str, str] = {}
    tensors: Mapping[str, Tensor | None] = {}


def scores_of(heads: int, dim: int, chosen: int) -> KindLetters:
    """Indexer as attention without values, all heads over one key, that writes its choice.

    Args:
        heads: Heads [1].
        dim: Head size, also the key's [1].
        chosen: Tokens or entries that it chooses per token [1].
    """
    letters = {"N": heads, "K": 1, "H": dim, "Hv": 0, "chosen": chosen}
    return KindLetters("attention", letters, tensors=CHOSEN_ALONE)


def kind_costs(part: KindLetters, extents: Mapping[str, Product]) -> GroupCosts:
    """Group costs by field, exact; those without terms are left out.

    Args:
        part: The model's part.
        extents: Products by letter, or by the kind's intermediate names.
    """
    variables = {name: Poly({product: Fraction(1)}) for name, product in extents.items()}
    return bound_costs(part, variables)


def bound_costs(part: KindLetters, values: Mapping[str, Poly]) -> GroupCosts:
    """Group costs where letters are polynomials; as `kind_costs`."""
    flops, elements = role_costs(
        checked_kind(part.kind), part.options, {**values, **part.letters}, part.tensors
    )
    costs = {"flops": [_poly(flops)]}
    for role, amount in elements:
        costs.setdefault(COST_BY_ROLE[role], []).append(_poly(amount))
    sums = {name: total(polys) for name, polys in costs.items()}
    return cast("GroupCosts", {name: dict(poly.terms) for name, poly in sums.items() if poly})


def _poly(value: Poly | Fraction | int) -> Poly:
    """Value as a polynomial."""
    return value if isinstance(value, Poly) else constant(value)
