"""A kernel with options and dtypes: its work at given sizes, exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.errors import Mistakes, RooflinesError, check_choice
from rooflines.basics.numbers import whole
from rooflines.hardware.dtype_catalogue import dtype_entries, stored_bits
from rooflines.kinds.formulas import compile_formulas, factors_of, names_in
from rooflines.kinds.kind_names import checked_kind
from rooflines.kinds.kinds import WHOLE_BYTE, Check, KernelKind
from rooflines.theory.operation import MATRIX
from rooflines.theory.routing import SAME, UNIFORM

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

DEFAULT_FORMAT = "bf16"
"""Format of all roles without one."""

WIDE = "wide"
"""Default of a role that narrow formats leave at 16 bit, such as the rows of fp8 experts."""

MIN_WIDE_BITS = 16
"""Bits of the narrowest format that such a role takes itself [bit]."""

VECTOR_DTYPE = "fp32"
"""Dtype in which the vector unit computes."""

COMPUTE = "compute"
"""Key of the dtype of products."""

BYTE_BITS = 8

MESSAGE_VALUES = {"total": "S+T", "padded": "HW+2*pad"}
"""Names in messages of checks that are no letters, with their formulas."""

ROUTING = "routing"
"""Option with the routing to experts or rows: uniform work is a mean, the same has the least."""


def chosen_formulas(kind: KernelKind, options: Mapping[str, Any]) -> dict[str, str]:
    """Formulas that choices replace, by letter or intermediate name."""
    formulas: dict[str, str] = {}
    for name, values in kind.choices.items():
        formulas |= values[options.get(name, next(iter(values)))]
    return formulas


class Work(NamedTuple):
    """Work on one chip.

    Attributes:
        flops, vector_flops: FLOP of the matrix and the vector unit [FLOP].
        exponentials: Exponentials and other special functions [1].
        memory_bytes: Bytes read and written [byte].
        input_bytes, result_bytes: Bytes of the first tensor read, and of the first written [byte].
        pairs: Pairs of tokens in a sequence, for each head; None where a kind has none [1].
        touched: Experts or rows read; None where a kind has none [1].
    """

    flops: int | Fraction
    vector_flops: int | Fraction
    exponentials: int | Fraction
    memory_bytes: int | Fraction
    input_bytes: int | Fraction
    result_bytes: int | Fraction
    pairs: int | Fraction | None
    touched: int | Fraction | None


@dataclass(frozen=True)
class KernelForm:
    """A kind with options and dtypes: sizes decide the rest.

    Attributes:
        kind: The kind, with the costs of its flags.
        options: Option by name: a choice, or True for a flag.
        dtypes: Storage format by role.
        compute: Dtype of the products; for kernels of the vector unit fp32.
    """

    kind: KernelKind
    options: Mapping[str, Any]
    dtypes: Mapping[str, str]
    compute: str

    @cached_property
    def bits(self) -> Mapping[str, int | Fraction]:
        """Stored bits per element by role [bit]."""
        formats = dtype_entries().formats
        bits = {role: stored_bits(formats[name]) for role, name in self.dtypes.items()}
        return {
            **{
                role: int(value) if value.denominator == 1 else value
                for role, value in bits.items()
            },
            WHOLE_BYTE: BYTE_BITS,
        }

    @cached_property
    def steps(self) -> Mapping[str, str]:
        """Intermediate formulas under the choices, in order."""
        return {
            name: formula
            for name, formula in {**self.kind.steps, **self._chosen}.items()
            if name not in self.kind.letters
        }

    @cached_property
    def defaults(self) -> Mapping[str, str]:
        """Defaults by letter, as formulas, under the choices."""
        chosen = {name: text for name, text in self._chosen.items() if name in self.kind.letters}
        return {**self.kind.defaults, **chosen}

    @cached_property
    def _chosen(self) -> dict[str, str]:
        """Formulas that choices replace."""
        return chosen_formulas(self.kind, self.options)

    @cached_property
    def blocks(self) -> int:
        """Activations with scales in blocks: 1 where there are some, else 0 [1]."""
        formats = dtype_entries().formats
        names = (name for role, name in self.dtypes.items() if role != "w")
        return int(any(formats[name].block for name in names))

    @property
    def strict(self) -> KernelForm | None:
        """Kernel with the least work whatever the routing; None: the work is no mean."""
        is_uniform = UNIFORM in self.kind.choices.get(ROUTING, {}) and (
            self.options.get(ROUTING, UNIFORM) == UNIFORM
        )
        return replace(self, options={**self.options, ROUTING: SAME}) if is_uniform else None

    @property
    def choice_text(self) -> str:
        """Options in words, such as `decode causal`; defaults are written out."""
        names = [self.options.get(name, next(iter(v))) for name, v in self.kind.choices.items()]
        return " ".join(
            [
                *names,
                *(
                    name
                    for name in self.options
                    if name in self.kind.flags and name not in self.kind.letters
                ),
            ]
        )

    @property
    def dtypes_text(self) -> str:
        """Dtypes in words: one format, or roles with theirs and the compute dtype."""
        formats = {*self.dtypes.values(), *([self.compute] if self.kind.unit == MATRIX else [])}
        if len(formats) == 1:
            return next(iter(formats))
        roles = [f"{role}:{name}" for role, name in self.dtypes.items()]
        return ",".join(roles) + (f"@{self.compute}" if self.kind.unit == MATRIX else "")

    def missing(self, sizes: Collection[str]) -> list[str]:
        """Letters that are needed and not given."""
        defaults = {*self.defaults, *self.kind.optional}
        letters = self.kind.letters
        return [letter for letter in letters if letter not in sizes and letter not in defaults]

    def complete(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        """Sizes with defaults of the letters that are left out [1]."""
        complete: dict[str, Any] = dict(sizes)
        for letter, (names, default) in self._defaults.items():
            if letter not in sizes:
                (complete[letter],) = default(*(complete[name] for name in names))
        return complete

    @cached_property
    def _defaults(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """Letters that defaults depend on, and functions of them, by letter."""
        names = {letter: names_in(formula) for letter, formula in self.defaults.items()}
        return {
            letter: (names[letter], compile_formulas([formula], {}, names[letter]))
            for letter, formula in self.defaults.items()
        }

    @cached_property
    def _letters(self) -> tuple[str, ...]:
        """Letters that formulas take, in order."""
        absent = {*self.kind.optional} - {*self.kind.defaults}
        present = {*self.options}
        return tuple(
            letter for letter in self.kind.letters if letter not in absent or letter in present
        )

    @cached_property
    def _compute(self) -> Any:  # noqa: ANN401, a function
        kind = self.kind
        tensors = [*kind.reads.values(), *kind.writes.values()]
        formulas = [
            kind.flops,
            kind.vector_flops,
            kind.exponentials,
            *kind.columns.values(),
            *(tensor.elements for tensor in tensors),
        ]
        return compile_formulas(formulas, self.steps, (*self._letters, "blocks"))

    def work(self, complete: Mapping[str, Any]) -> Work:
        """Work at complete sizes, exact where sizes are whole.

        Args:
            complete: Size by letter, from `complete` [1].
        """
        values = self._compute(*[complete[letter] for letter in self._letters], self.blocks)
        return self.work_of(values)

    def work_of(self, values: Sequence[Any]) -> Work:
        """Work from the values of the formulas; numbers or expressions."""
        kind, bits = self.kind, self.bits
        flops, vector, exponentials = values[:3]
        columns = dict(zip(kind.columns, values[3:], strict=False))
        elements = values[3 + len(columns) :]
        tensors = [*kind.reads.values(), *kind.writes.values()]
        amounts = [
            _bytes(number, bits[tensor.role])
            for number, tensor in zip(elements, tensors, strict=True)
        ]
        result = amounts[len(kind.reads)] if kind.writes else 0
        return Work(
            flops,
            vector,
            exponentials,
            sum(amounts),
            amounts[0] if kind.reads else 0,
            result,
            columns.get("pairs"),
            columns.get("touched"),
        )

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """Conditions on sizes under the options."""
        return tuple(
            check
            for check in self.kind.checks
            if all(
                self.options.get(name, next(iter(self.kind.choices[name]))) == value
                for name, value in check.choices.items()
            )
        )

    def depends_on(self, name: str, letter: str) -> bool:
        """True if a letter, or an intermediate name, is computed from a letter."""
        formula = {**self.defaults, **self.steps}.get(name, "0")
        return name == letter or any(self.depends_on(used, letter) for used in names_in(formula))

    def scales_with(self, letter: str) -> bool:
        """True if all works are a letter's size times what does not depend on it."""
        kind = self.kind
        if any(self.depends_on(name, letter) for name in self.defaults if name != letter):
            return False
        flops = kind.flops if kind.unit == MATRIX else kind.vector_flops
        elements = (tensor.elements for tensor in (*kind.reads.values(), *kind.writes.values()))
        for formula in (flops, *elements):
            factors = [*factors_of(formula)]
            names = [name for factor in factors if factor != letter for name in names_in(factor)]
            is_one = factors.count(letter) == 1 or formula == "0"
            if not is_one or any(self.depends_on(name, letter) for name in names):
                return False
        return True

    def check(self, complete: Mapping[str, Any]) -> None:
        """Check sizes against the kind's conditions.

        Raises:
            RooflinesError: They break one.
        """
        for check in self.checks:
            self.check_one(check, complete)

    def check_one(self, check: Check, complete: Mapping[str, Any]) -> None:
        """Check sizes against one condition.

        Raises:
            RooflinesError: They break it.
        """
        if not self.holds(check, complete):
            extra = dict[str, Any]()
            for name, formula in MESSAGE_VALUES.items():
                letters = names_in(formula)
                if {*letters} <= complete.keys():
                    values = [complete[letter] for letter in letters]
                    (extra[name],) = compile_formulas([formula], {}, letters)(*values)
            text = check.message.format(**complete, **extra)
            problem, _, fix = text.partition(": ")
            raise RooflinesError("", problem, fix)

    @staticmethod
    def holds(check: Check, complete: Mapping[str, Any]) -> Any:  # noqa: ANN401, or an expression
        """Condition at sizes: true or false, or an expression with columns."""
        names = names_in(check.formula)
        return compile_formulas([check.formula], {}, names)(*(complete[n] for n in names))[0]

    def letters_behind(self, check: Check) -> set[str]:
        """Letters that a condition reads, also through defaults."""
        letters = {*names_in(check.formula)}
        for letter, formula in reversed([*self.defaults.items()]):
            letters |= {*names_in(formula)} if letter in letters else set()
        return letters


def _bytes(elements: Any, bits: int | Fraction) -> Any:  # noqa: ANN401, numbers or expressions
    """Bytes of elements."""
    amount = elements * bits
    if isinstance(amount, int):
        whole_bytes, rest = divmod(amount, BYTE_BITS)
        if not rest:
            return whole_bytes
    if isinstance(amount, int | Fraction):
        return Fraction(amount) / BYTE_BITS
    return amount / BYTE_BITS


# ------------------------------------------------------------ forms from typed options


def kernel_form(
    kind: KernelKind | str,
    dtypes: str | Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> KernelForm:
    """Kernel form: a kind with options and dtypes.

    Args:
        kind: The kind, or its name.
        dtypes: A format for every role, or a format by role with `compute`; None: bf16.
        options: Choices by name, and flags that are True.

    Raises:
        RooflinesError: An option or a dtype is none of the kind.
    """
    kind = checked_kind(kind) if isinstance(kind, str) else kind
    options = {name: value for name, value in (options or {}).items() if value not in (None, False)}
    _check_options(kind, options)
    flags = [name for name in options if name in kind.flags]
    if len(flags) > 1:
        problem = f"{kind.name} {flags[0]} has no {flags[1]}"
        raise RooflinesError("", problem, "leave one of them out")
    if options.get("phase") == "decode" and "backward" in flags:
        raise RooflinesError("", "decode has no backward", "write prefill, or leave backward out")
    formed = kind.with_flag(flags[0]) if flags else kind
    formats, compute = _formats(kind, dtypes)
    return KernelForm(formed, options, formats, compute)


def _check_options(kind: KernelKind, options: Mapping[str, Any]) -> None:
    with Mistakes() as mistakes:
        for name, value in options.items():
            with mistakes.at(name):
                if name in kind.choices:
                    check_choice(value, kind.choices[name], f"no {name} of {kind.name}")
                elif name not in (*kind.flags, *kind.optional):
                    options_of_kind = [*kind.choices, *kind.flags]
                    fix = (
                        f"its options are {', '.join(options_of_kind)}"
                        if options_of_kind
                        else "it has no options"
                    )
                    raise RooflinesError("", f"is no option of {kind.name}", fix)


def _formats(
    kind: KernelKind, dtypes: str | Mapping[str, str] | None
) -> tuple[dict[str, str], str]:
    """Storage format by role, and the compute dtype."""
    formats = dtype_entries().formats
    typed = {"": dtypes} if isinstance(dtypes, str) else dict(dtypes or {})
    roles = kind.roles
    with Mistakes() as mistakes:
        for role, name in typed.items():
            with mistakes.at(*([role] if role else [])):
                if role not in ("", COMPUTE, *roles):
                    fix = f"its roles are {', '.join([*roles, COMPUTE])}"
                    raise RooflinesError("", f"is no role of {kind.name}", fix)
                check_choice(name, formats, "no dtype", "see `rooflines list dtypes`")
    plain = typed.get("", DEFAULT_FORMAT)
    resolved: dict[str, str] = {}
    for role, default in roles.items():
        if role in typed:
            resolved[role] = typed[role]
        elif default == WIDE:
            narrow = stored_bits(formats[plain]) < MIN_WIDE_BITS
            resolved[role] = DEFAULT_FORMAT if narrow else plain
        else:
            resolved[role] = resolved.get(default, plain)
    compute = typed.get(COMPUTE) or (plain if kind.unit == MATRIX else VECTOR_DTYPE)
    if not roles and kind.unit == MATRIX and "" not in typed:
        compute = typed.get(COMPUTE, DEFAULT_FORMAT)
    return resolved, compute


def kernel_sizes(form: KernelForm, sizes: Mapping[str, Any]) -> dict[str, int]:
    """Sizes of a kernel, checked [1].

    Raises:
        RooflinesError: A letter is missing or is none of the kind, or a size is no whole number.
    """
    checked = dict[str, int]()
    with Mistakes() as mistakes:
        with mistakes.at():
            check_letters(form, sizes)
        for letter, size in sizes.items():
            with mistakes.at(letter):
                checked[letter] = whole(size, minimum=min_size(letter))
    form.check(form.complete(checked))
    return checked


def min_size(letter: str) -> int:
    """Smallest number along a letter [1]."""
    return 0 if letter in ("pad", "window") else 1


def check_letters(form: KernelForm, letters: Collection[str]) -> None:
    """Check that a kernel has all letters, and those without a default are given.

    Raises:
        RooflinesError: Others are given, or some are left out.
    """
    kind = form.kind
    if kind.name == "mla" and "K" in letters:
        raise RooflinesError("", "mla has one cache entry for all heads", "leave out K")
    if unknown := [letter for letter in letters if letter not in kind.letters]:
        fix = f"its letters are {', '.join(kind.letters)}"
        raise RooflinesError("", f"{kind.name} has no {', '.join(unknown)}", fix)
    if missing := form.missing(letters):
        problem = f"of {kind.name} lack {', '.join(missing)}"
        raise RooflinesError("sizes", problem, f"write them, such as {kind.example}")


def with_letters(form: KernelForm, sizes: Mapping[str, Any]) -> KernelForm:
    """Form with costs for given optional letters, such as `chunk`.

    Raises:
        RooflinesError: The options rule a letter out.
    """
    present = [letter for letter in form.kind.optional if letter in sizes]
    if "window" in present and form.options.get("mask") == "full":
        raise RooflinesError("", "a window needs causal", "leave out full, or the window")
    flagged = [letter for letter in present if letter in form.kind.flags]
    kind = form.kind
    for letter in flagged:
        kind = kind.with_flag(letter)
    return (
        replace(form, kind=kind, options={**form.options, **dict.fromkeys(present, True)})
        if present
        else form
    )
