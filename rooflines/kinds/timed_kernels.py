"""Kernels as calibrations read them: grouped-query attention, and routed experts."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from rooflines.kinds.formulas import compile_expressions, compile_formulas, names_in
from rooflines.kinds.kernel_forms import BYTE_BITS
from rooflines.theory.extents import Extent
from rooflines.theory.kernel import Kernel
from rooflines.theory.poly import Poly, constant

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import polars as pl

    from rooflines.kinds.kernel_forms import KernelForm
    from rooflines.kinds.kinds import Tensor

TIMED_KINDS = ("attention", "experts")
"""Kinds that fits of calibrations time."""

PREFILL = "prefill"
"""Phase of attention in which all tokens are new."""


class TimedForm(NamedTuple):
    """A kernel that calibrations time, with what they read of it as formulas.

    Formulas are in letters, in names of the table of kinds, and in `input_bytes`, `result_bytes`
    and `memory_bytes`, the kernel's traffic.

    Attributes:
        fits: Fits that apply, `attention` or `experts`.
        condition: Holds at sizes that are timed.
        activation_bytes: Traffic beside the cache or the weights [byte].
        terms: What fits read besides: sizes and counts [1], or bytes [byte].
    """

    fits: str
    condition: str
    activation_bytes: str
    terms: Mapping[str, str]


TIMED_EXPERTS = {"routing": "uniform", "part": "both", "gate": "gated"}
"""Options of the experts that calibrations time."""


def timed_form(form: KernelForm) -> TimedForm | None:
    """Formulas for what calibrations read of a kernel; None: they time no such kernel."""
    options = form.options
    if options.get("backward"):
        return None
    if form.kind.name == "attention" and options.get("mask", "causal") == "causal":
        is_decode = options.get("phase") == "decode"
        terms = {"context": "S", "head": "H", "heads": "B*K"}
        terms["window"] = "window" if "window" in options else "0"
        condition = "S >= T" if is_decode else "S == T"  # no chunks of prompts are timed
        return TimedForm("attention", condition, "input_bytes + result_bytes", terms)
    if form.kind.name == "experts" and all(
        options.get(name, value) == value for name, value in TIMED_EXPERTS.items()
    ):
        terms = {"activated": "touched", "width": "D", "expert_width": "F"}
        terms["inputs"] = "input_bytes"
        return TimedForm("experts", "k <= E", "2*k*input_bytes", terms)
    return None


class Formula(NamedTuple):
    """Formula with what it needs.

    Attributes:
        text: The formula.
        steps: Intermediate names, and letters that are left out, with their formulas, in order.
        letters: Letters that are given.
    """

    text: str
    steps: tuple[tuple[str, str], ...]
    letters: tuple[str, ...]


class FormulaExtent(Extent):
    """Formula value in letters: `2*B*K*S`.

    Attributes:
        formula: The formula.
    """

    __slots__ = ("formula",)
    formula: Formula

    def __new__(cls, formula: Formula) -> Self:
        """Name the value, with all that decides it."""
        steps = dict(formula.steps)
        needed = _names_behind(formula.text, steps)
        defined = ",".join(f"{name}={steps[name]}" for name in steps if name in needed)
        extent = super().__new__(cls, f"{formula.text} where {defined}" if defined else formula[0])
        extent.formula = formula
        extent.sizes = frozenset(needed.intersection(formula.letters))
        return extent

    def value(self, at: Mapping[str, Any]) -> Any:  # noqa: ANN401, as of all extents
        """Exact value at sizes [1]."""
        text, steps, letters = self.formula
        compute = compile_formulas([text], dict(steps), letters)
        return compute(*(at[letter] for letter in letters))[0]

    def expression(self, columns: Mapping[str, pl.Expr]) -> pl.Expr:
        """Value in rows, Float64 [1]."""
        text, steps, letters = self.formula
        compute = compile_expressions([text], dict(steps), letters)
        expression: pl.Expr = compute(*(columns[letter] for letter in letters))[0]
        return expression


def _names_behind(text: str, steps: Mapping[str, str]) -> set[str]:
    """Names in a formula, also through intermediate ones."""
    names = {*names_in(text)}
    return names.union(*(_names_behind(steps[name], steps) for name in names if name in steps))


def amounts_in(form: KernelForm, given: Collection[str]) -> Callable[[str], Poly]:
    """Formula values as polynomials in the given letters.

    Args:
        form: The kernel.
        given: Letters with sizes; others have their defaults.
    """
    defaults = {name: text for name, text in form.defaults.items() if name not in given}
    steps = (*{**defaults, **form.steps, **_traffic(form)}.items(),)
    letters = tuple(letter for letter in form.kind.letters if letter in given)

    @cache
    def amount(text: str) -> Poly:
        extent = FormulaExtent(Formula(text, steps, letters))
        if extent.sizes:
            return Poly({(extent,): Fraction(1)})
        return constant(compile_formulas([text], dict(steps), ())()[0])

    return amount


def amounts_at(form: KernelForm, complete: Mapping[str, Any]) -> Callable[[str], Poly]:
    """Formula values at complete sizes, as constants."""
    letters = tuple(complete)
    steps = {**form.steps, **_traffic(form)}

    def amount(text: str) -> Poly:
        return constant(Fraction(compile_formulas([text], steps, letters)(*complete.values())[0]))

    return amount


def timed_kernel(
    form: KernelForm, amount: Callable[[str], Poly], *, shares_heads: bool
) -> Kernel | None:
    """Kernel as calibrations read it; None: no fit times such kernels.

    Args:
        form: The kernel.
        amount: Formula values, from `amounts_in` or `amounts_at`.
        shares_heads: Whether query heads share a KV head, N > K; for attention.
    """
    timed = timed_form(form)
    if timed is None:
        return None
    works = {
        "flops": amount(form.kind.flops),
        "memory_bytes": amount("memory_bytes - input_bytes - result_bytes"),
        "activation_bytes": amount(timed.activation_bytes),
    }
    terms = {"x": "input_bytes", "out": "result_bytes", **timed.terms}
    moved = {term: amount(formula) for term, formula in terms.items()}
    details: dict[str, Any] = {"experts": form.dtypes.get("w")}
    if timed.fits == "attention":
        details = {"attention_phase": form.options.get("phase", PREFILL)}
        details |= {"cache": form.dtypes["cache"], "shares_heads": shares_heads}
    return Kernel(form.kind.name, form.compute, works, (), moved, **details)


def is_chunk(form: KernelForm, given: Mapping[str, Any]) -> bool:
    """True for a prefill that is shorter than the context, which no fit times.

    Args:
        form: The kernel.
        given: Sizes by letter; a letter left out has its default.
    """
    is_prefill = form.options.get("phase", PREFILL) == PREFILL
    return is_prefill and form.kind.name == "attention" and given.get("T", given["S"]) != given["S"]


def _traffic(form: KernelForm) -> dict[str, str]:
    """Formulas for input, result and all bytes, by name."""

    def moved(tensor: Tensor) -> str:
        share = Fraction(form.bits[tensor.role]) / BYTE_BITS
        return f"ratio(({tensor.elements})*{share.numerator}, {share.denominator})"

    read, written = (
        [*map(moved, tensors.values())] for tensors in (form.kind.reads, form.kind.writes)
    )
    return {
        "input_bytes": read[0],
        "result_bytes": written[0],
        "memory_bytes": " + ".join((*read, *written)),
    }
