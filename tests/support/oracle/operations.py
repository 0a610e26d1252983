"""Operations and shardings, from their names or written out."""

from dataclasses import dataclass

NAMED = {
    "matmul": "BD,DF->BF",
    "per-example-matmul": "BD,BDF->BF",
    "dot": "D,D->",
    "sequence-matmul": "BSD,DF->BSF",
    "batched-matmul": "BMK,BKN->BMN",
}


@dataclass(frozen=True)
class Operation:
    """Two operands, an output, and the letters of each."""

    name: str
    x: str
    w: str
    out: str

    @property
    def dims(self):
        """All letters, in the order in which they first appear."""
        return list(dict.fromkeys(self.x + self.w + self.out))

    @property
    def contracted(self):
        """The letters that the output lacks."""
        return [d for d in self.dims if d not in self.out]

    def letters(self, operand):
        """Return the letters of ``x``, ``w`` or ``out``."""
        return {"x": self.x, "w": self.w, "out": self.out}[operand]


def operation_of(text):
    """Return the operation that a name or an einsum stands for."""
    einsum = NAMED.get(text, text).replace(" ", "")
    operands, out = einsum.split("->")
    x, w = operands.split(",")
    name = next((name for name, form in NAMED.items() if form == einsum), einsum)
    return Operation(name, x, w, out)


@dataclass(frozen=True)
class Sharding:
    """Split dimension, gathered operand, reduction."""

    name: str
    split: str | None = None
    gather: str | None = None
    reduce: str | None = None
    dispatch: bool = False  # an all-to-all of x before
    combine: bool = False  # an all-to-all of the result after


def sharding_of(operation, spec):
    """Return the sharding that one of the seven names, or a long form, means for an operation."""
    x, w, out = set(operation.x), set(operation.w), set(operation.out)
    if isinstance(spec, str):
        if spec == "none":
            return Sharding("none")
        role, _, collective = spec.partition("/")
        candidates = {
            "contracting": (x & w) - out,
            "column": (w & out) - x,
            "batch": ((x & out) - w) or (x & out),
        }[role]
        (split,) = candidates
        gather = collective.removeprefix("gather-") if collective.startswith("gather-") else None
        return Sharding(spec, split, gather, collective if role == "contracting" else None)
    split = spec["split"]
    first, then = spec.get("first") or "", spec.get("then") or ""
    gather = first.removeprefix("all-gather ") if first.startswith("all-gather") else None
    name = "/".join(
        part
        for part in (split, first.replace("all-gather ", "gather-").replace(" ", "-"), then)
        if part
    )
    dispatch, combine = first == "all-to-all x", then == "all-to-all"
    reduction = then if then and not combine else None
    return Sharding(name, split, gather, reduction, dispatch, combine)
