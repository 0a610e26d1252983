"""Chains: kinds fused into one kernel, or run one after another.

In a chain each kind takes the result before it as its first input; rows and widths must agree.
A matmul goes from the width that it gets, D or F, to the other one; before swiglu it has F columns
each of gate and up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError
from rooflines.kinds.formulas import names_in, with_names
from rooflines.kinds.kernel_forms import KernelForm, kernel_form
from rooflines.kinds.kind_names import FUSED, MATMUL_NAME, chain_sign, checked_kind
from rooflines.kinds.kinds import Check, KernelKind, Tensor
from rooflines.kinds.placed_kernels import KernelRates, kernel_rates, times_of_work
from rooflines.theory.operation import MATRIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.hardware.entries import Chip
    from rooflines.kinds.kernel_forms import Work

MATMUL = KernelKind(
    MATMUL_NAME,
    "product of rows and weights",
    {"B": "rows", "D": "width before", "F": "width after"},
    {"x": Tensor("x", "B*D"), "w": Tensor("w", "D*F")},
    {"out": Tensor("out", "B*F")},
    flops="2*B*D*F",
    roles={"x": "", "w": "x", "out": "x"},
)
"""A matmul as a link of a chain."""

STEP = re.compile(r"([A-Za-z][\w-]*)((?:\s+[a-z][\w-]*)*)(?:\s+(\d+)\s*->\s*(\d+))?", re.ASCII)
"""A link: its kind, its flags, and for a matmul perhaps its widths."""

HALVING = ("swiglu", "geglu")
"""Kinds that read gate and up, and write one of them."""

WHOLE_ROWS = ("rmsnorm", "layernorm", "softmax", "sum", "top-k", "cross-entropy")
"""Kinds that need whole rows on the chip, where they are fused."""

CHAIN_LETTERS: Mapping[str, str] = {
    "B": "rows (tokens)",
    "D": "width of a row",
    "F": "columns between two matmuls, of gate and of up",
    "V": "columns, such as the vocabulary",
    "k": "columns kept",
}
"""Chain letters, in order."""

CHAIN_ROLES = ("x", "w", "out", "compute")
"""Dtype roles: everything that is not said, weights, the last result, products."""

CHAIN_DEFAULTS = {"x": "", "w": "x", "out": "x"}
"""Storage roles with their defaults."""

SPREADING = ("top-k", "cross-entropy", "sum", "linear-cross-entropy", "experts", "embedding")
"""Kinds after which nothing, or a row of another width, follows."""


class Width(NamedTuple):
    """Link size as a formula in the chain's letters.

    Attributes:
        formula: The formula, such as `D`, `2*F` or `4096`.
        size: Its value [1].
    """

    formula: str
    size: int

    @property
    def twice(self) -> Width:
        """Twice as many columns."""
        return Width(f"2*{self.formula}", 2 * self.size)

    @property
    def half(self) -> Width:
        """Half as many columns."""
        factor, _, rest = self.formula.partition("*")
        formula = rest if factor == "2" else f"half({self.formula})"
        return Width(formula, self.size // 2)


class ChainLink(NamedTuple):
    """Kind in a chain.

    Attributes:
        form: The kernel with its dtypes and flags, in the chain's letters.
        sizes: The chain's sizes [1].
        name: The kind, with its flags and widths.
    """

    form: KernelForm
    sizes: Mapping[str, int]
    name: str

    @property
    def work(self) -> Work:
        """Work alone."""
        return self.form.work(self.sizes)


class ChainTimes(NamedTuple):
    """Chain times [s].

    Attributes:
        math, vector: Sums over the kernels, by unit.
        memory, activation: Compulsory traffic, and traffic between kernels.
        lower: Largest sum.
        overlapped: The same, with traffic between kernels in memory.
        ops: Kernels one after another.
        upper: All sums added.
    """

    math: Fraction
    vector: Fraction
    memory: Fraction
    activation: Fraction
    lower: Fraction
    overlapped: Fraction
    ops: Fraction
    upper: Fraction


@dataclass(frozen=True)
class Chain:
    """Kinds that run as one fused kernel, or one after another.

    Attributes:
        links: The kinds with their sizes.
        fused: Whether they are one kernel.
    """

    links: tuple[ChainLink, ...]
    fused: bool

    @property
    def text(self) -> str:
        """The chain as it is asked."""
        return (" + " if self.fused else ", ").join(link.name for link in self.links)

    @property
    def inner_bytes(self) -> Fraction:
        """Bytes between kernels, each tensor once [byte]."""
        return sum((Fraction(link.work.result_bytes) for link in self.links[:-1]), Fraction(0))

    @property
    def flops(self) -> Fraction:
        """Matrix unit's FLOP [FLOP]."""
        return sum((Fraction(link.work.flops) for link in self.links), Fraction(0))

    @property
    def vector_flops(self) -> Fraction:
        """Vector unit's FLOP [FLOP]."""
        return sum((Fraction(link.work.vector_flops) for link in self.links), Fraction(0))

    @property
    def exponentials(self) -> Fraction:
        """Exponentials and other special functions [1]."""
        return sum((Fraction(link.work.exponentials) for link in self.links), Fraction(0))

    @property
    def part_bytes(self) -> Fraction:
        """Bytes that all kernels move, each alone [byte]."""
        return sum((Fraction(link.work.memory_bytes) for link in self.links), Fraction(0))

    @property
    def memory_bytes(self) -> Fraction:
        """Bytes that must move: the first input, weights, the last result [byte]."""
        return self.part_bytes - 2 * self.inner_bytes

    @property
    def activation_bytes(self) -> Fraction:
        """Bytes that kernels hand each other, written and read [byte]; 0 where fused."""
        return Fraction(0) if self.fused else 2 * self.inner_bytes

    @cached_property
    def fused_kind(self) -> KernelKind:
        """One kernel in place of all, without the tensors between them."""
        last = len(self.links) - 1
        reads, writes, resident = dict[str, Tensor](), dict[str, Tensor](), dict[str, str]()
        for index, link in enumerate(self.links):
            kind = link.form.kind
            read, written = [*kind.reads.items()], [*kind.writes.items()]
            resident |= {f"{name}{index}": elements for name, elements in kind.resident.items()}
            for name, tensor in read[1:] if index else read:
                reads[f"{name}{index}"] = _chain_role(tensor, is_last=index == last)
            for name, tensor in written if index == last else written[1:]:
                writes[f"{name}{index}"] = _chain_role(tensor, is_last=index == last)
        kinds = [link.form.kind for link in self.links]
        letters = dict.fromkeys(letter for kind in kinds for letter in kind.letters)
        used = {"x", *(tensor.role for tensor in (*reads.values(), *writes.values()))}
        roles = {role: default for role, default in CHAIN_DEFAULTS.items() if role in used}
        return KernelKind(
            (" + " if self.fused else ", ").join(kind.name for kind in kinds),
            "kernels fused into one" if self.fused else "kernels one after another",
            {name: meaning for name, meaning in CHAIN_LETTERS.items() if name in letters},
            reads,
            writes,
            flops=_sum(kind.flops for kind in kinds),
            vector_flops=_sum(kind.vector_flops for kind in kinds),
            exponentials=_sum(kind.exponentials for kind in kinds),
            roles=roles,
            checks=tuple(check for kind in kinds for check in kind.checks),
            axes=tuple(name for name in CHAIN_LETTERS if name in letters),
            resident=resident,
        )

    @property
    def needs_whole_rows(self) -> list[str]:
        """Kinds that need whole rows on the chip, where they are fused with others."""
        names = [link.form.kind.name for link in self.links]
        return [name for name in names if name in WHOLE_ROWS] if self.fused else []

    @property
    def compute(self) -> str:
        """Compute dtype; without products the vector unit's."""
        computes = [link.form.compute for link in self.links if link.form.kind.unit == MATRIX]
        return computes[0] if computes else self.links[0].form.compute

    def rates(self, chip: Chip, name: str, memory: str = "hbm") -> list[KernelRates]:
        """Rates by kernel.

        Args:
            chip: The chip.
            name: Its id, for messages.
            memory: The memory level.

        Raises:
            RooflinesError: The chip lacks a compute dtype.
        """
        return [kernel_rates(chip, name, link.form, memory) for link in self.links]

    def times(self, rates: Sequence[KernelRates]) -> ChainTimes:
        """Times on a chip [s].

        Args:
            rates: Rates by kernel, from `rates`.
        """
        zero = Fraction(0)
        math, vector, alone = zero, zero, []
        for link, link_rates in zip(self.links, rates, strict=True):
            times = times_of_work(link.work, link_rates, link.form.kind.unit)
            if link.form.kind.unit == MATRIX:
                link_math, link_vector = times.math or zero, times.vector or zero
            else:
                link_math, link_vector = zero, times.math or zero
            math, vector = math + link_math, vector + link_vector
            alone.append(max(link_math, link_vector, times.memory))
        bandwidth = rates[0].memory
        memory, activation = self.memory_bytes / bandwidth, self.activation_bytes / bandwidth
        lower = max(math, vector, memory)
        overlapped = max(math, vector, memory + activation)
        ops = overlapped if self.fused else sum(alone, zero)
        upper = math + vector + memory + activation
        return ChainTimes(math, vector, memory, activation, lower, overlapped, ops, upper)


def _chain_role(tensor: Tensor, *, is_last: bool) -> Tensor:
    """Tensor in the role that it has in the chain: results between kernels are as inputs."""
    return tensor._replace(role="x") if tensor.role == "out" and not is_last else tensor


def _sum(formulas: Iterable[str]) -> str:
    """Formulas added."""
    return " + ".join(formula for formula in formulas if formula != "0") or "0"


def _reads_gate_up(parts: Sequence[str]) -> bool:
    """Tell whether an activation of gate and up comes before the next matmul."""
    names = (part.split(maxsplit=1)[0].lower() for part in parts)
    kinds = [name if name == MATMUL_NAME else checked_kind(name).name for name in names]
    return next((kind for kind in kinds if kind in (MATMUL_NAME, *HALVING)), "") in HALVING


def parse_chain(
    text: str, sizes: Mapping[str, int], dtypes: Mapping[str, str], *, sign: str | None = None
) -> Chain:
    """Chain with sizes.

    Args:
        text: Kinds between `+` or `,`.
        sizes: Rows B, widths D and F, and further letters of the kinds [1].
        dtypes: Format by role: `x` of everything that is not said, `w`, `out` of the last result,
            `compute`.
        sign: The sign; None: as in the text.

    Raises:
        RooflinesError: A part is no kind, or widths do not agree.
    """
    sign = sign or chain_sign(text) or FUSED
    parts = [part.strip() for part in text.split(sign)]
    if unknown := [role for role in dtypes if role not in CHAIN_ROLES]:
        fix = f"its roles are {', '.join(CHAIN_ROLES)}"
        raise RooflinesError("dtypes", f"of a chain have no {', '.join(unknown)}", fix)
    if "B" not in sizes:
        raise RooflinesError("sizes", "lack B, the rows", "write B=4096")
    width: Width | None = _first_width(parts, sizes)
    links = []
    for index, part in enumerate(parts):
        rest = parts[index + 1 :]
        link, width = _link(
            part, width, sizes, dtypes, halved=_reads_gate_up(rest), is_last=not rest
        )
        links.append(link)
        if rest and width is None:
            problem = f"{rest[0]} cannot follow {part}"
            raise RooflinesError("operation", problem, "end the chain there, or leave it out")
    return Chain(tuple(links), sign == FUSED)


def _first_width(parts: Sequence[str], sizes: Mapping[str, int]) -> Width:
    """First input's width."""
    match = STEP.fullmatch(parts[0])
    if match and match[3]:
        return _named(int(match[3]), sizes)
    first = checked_kind(match[1]).name if match and match[1].lower() != MATMUL_NAME else ""
    letter = "F" if first in HALVING else "V" if first in ("top-k", "cross-entropy") else "D"
    if letter not in sizes:
        raise RooflinesError("sizes", f"lack {letter}, the width of rows", f"write {letter}=8192")
    width = Width(letter, sizes[letter])
    return width.twice if first in HALVING else width


def _named(size: int, sizes: Mapping[str, int]) -> Width:
    """Typed width, by its letter where one has that size."""
    letter = next((letter for letter in ("D", "F") if sizes.get(letter) == size), f"{size}")
    return Width(letter, size)


def _link(  # noqa: PLR0913, the parts of a link
    part: str,
    width: Width | None,
    sizes: Mapping[str, int],
    dtypes: Mapping[str, str],
    *,
    halved: bool,
    is_last: bool,
) -> tuple[ChainLink, Width | None]:
    """Link, and its result's width; None: no rows."""
    match = STEP.fullmatch(part)
    if match is None or width is None:
        problem = f"has {part!r}, which is no kind with its flags"
        raise RooflinesError("operation", problem, "write add + rmsnorm residual + quantise")
    name, flags = match[1].lower(), match[2].split()
    kind = MATMUL if name == MATMUL_NAME else checked_kind(name)
    roles = {role: dtypes[role] for role in kind.roles if role in dtypes and role != "out"}
    if is_last and "out" in dtypes and "out" in kind.roles:
        roles["out"] = dtypes["out"]
    elif "out" in kind.roles and "x" in dtypes:
        roles["out"] = dtypes["x"]
    if "compute" in dtypes and kind.unit == MATRIX:
        roles["compute"] = dtypes["compute"]
    form = kernel_form(kind, {"": dtypes.get("x", "bf16"), **roles}, dict.fromkeys(flags, True))
    widths, after, label = _widths(kind, match, width, sizes, halved=halved)
    placed = replace(form, kind=_in_letters(form.kind, widths, " ".join([kind.name, *flags])))
    return ChainLink(placed, sizes, label), after


def _in_letters(kind: KernelKind, widths: Mapping[str, Width], name: str) -> KernelKind:
    """Kind in a chain's letters.

    Args:
        kind: The kind, whose formulas have no intermediate names.
        widths: Size by letter.
        name: Its name with flags.
    """
    formulas = {letter: width.formula for letter, width in widths.items()}

    def tensors(named: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {
            key: Tensor(role, with_names(elements, formulas))
            for key, (role, elements) in named.items()
        }

    def check(checked: Check) -> Check:
        message = checked.message
        for letter, formula in formulas.items():
            message = message.replace(f"{{{letter}}}", f"{{{formula}}}")
        return checked._replace(formula=with_names(checked.formula, formulas), message=message)

    if kind.name == MATMUL_NAME:
        ends = (formulas[letter].replace("*", "") for letter in ("D", "F"))
        name = f"{MATMUL_NAME} {'->'.join(ends)}"
    halves = (formula for formula in formulas.values() if formula.startswith("half("))
    even = tuple(
        Check(f"{width} % 2 == 0", f"{name} reads gate and up, but rows are {{{width}}} wide: odd")
        for formula in halves
        for width in names_in(formula)
    )
    used = {name for formula in formulas.values() for name in names_in(formula)}
    return replace(
        kind,
        name=name,
        letters={letter: text for letter, text in CHAIN_LETTERS.items() if letter in used},
        reads=tensors(kind.reads),
        writes=tensors(kind.writes),
        flops=with_names(kind.flops, formulas),
        vector_flops=with_names(kind.vector_flops, formulas),
        exponentials=with_names(kind.exponentials, formulas),
        checks=(*map(check, kind.checks), *even),
        resident={key: with_names(elements, formulas) for key, elements in kind.resident.items()},
        flags={},
    )


def _widths(
    kind: KernelKind,
    match: re.Match[str],
    width: Width,
    sizes: Mapping[str, int],
    *,
    halved: bool,
) -> tuple[dict[str, Width], Width | None, str]:
    """Link's sizes, its result's width, and its name."""
    rows, name = Width("B", sizes["B"]), " ".join([kind.name, *match[2].split()])
    if kind.name == MATMUL_NAME:
        if match[3] and int(match[3]) != width.size:
            problem = f"matmul {match[3]}->{match[4]} follows rows {width.size:,} wide"
            raise RooflinesError("operation", problem, f"write matmul {width.size}->{match[4]}")
        typed = match[4] and int(match[4])
        after = _named(typed, sizes) if typed else _other_width(width, sizes, halved=halved)
        label = f"matmul {width.size}->{after.size}"
        return {"B": rows, "D": width, "F": after}, after, label
    if kind.name in HALVING:
        if width.size % 2:
            problem = f"{kind.name} reads gate and up, but rows are {width.size:,} wide"
            raise RooflinesError("operation", problem, "give it an even width")
        return {"B": rows, "F": width.half}, width.half, name
    if kind.name in ("top-k", "cross-entropy"):
        if "k" in kind.letters and "k" not in sizes:
            raise RooflinesError("sizes", "of top-k lack k", "write k=50")
        columns = {"k": Width("k", sizes["k"])} if "k" in kind.letters else {}
        return {"B": rows, "V": width, **columns}, None, name
    if set(kind.letters) != {"B", "D"}:
        problem = f"{kind.name} does not work on rows alone"
        raise RooflinesError("operation", problem, "ask it alone")
    return {"B": rows, "D": width}, None if kind.name in SPREADING else width, name


def _other_width(width: Width, sizes: Mapping[str, int], *, halved: bool) -> Width:
    """Width that a matmul goes to: the other one of D and F."""
    ends = {letter: Width(letter, sizes[letter]) for letter in ("D", "F") if letter in sizes}
    if len(ends) < 2:  # noqa: PLR2004, both ends of a matmul
        raise RooflinesError("sizes", "of a matmul are D and F", "write D=4096 F=14336")
    letter = width.formula if width.formula in ends else _named(width.size, sizes).formula
    if letter == "D":
        return ends["F"].twice if halved else ends["F"]
    if letter == "F":
        return ends["D"]
    (rows, columns), size = (end.size for end in ends.values()), width.size
    problem = f"gets rows {size:,} wide, which are neither D={rows} nor F={columns}"
    raise RooflinesError("matmul", problem, f"write matmul {size}->{rows}")
