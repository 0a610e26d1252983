"""Formulas in letters, as text, evaluated on exact numbers or on polars expressions.

A formula is an arithmetic expression in letters and a few functions, such as
`2*(H+Hv)*B*N*pairs`. The table of kinds is the only source of formulas.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, reduce
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

EXACT_BITS = 4096
"""Bits of the largest power that is kept as an exact fraction [bit]."""

FIXED_BITS = 512
"""Bits behind the point of larger powers: far finer than a double [bit]."""


def _half(product: int | Fraction) -> int | Fraction:
    """Half of an even number, or of a fraction."""
    return product // 2 if isinstance(product, int) else product / 2


def _ratio(numerator: int | Fraction, denominator: int) -> int | Fraction:
    """Exact quotient."""
    ratio = Fraction(numerator) / denominator
    return ratio.numerator if ratio.denominator == 1 else ratio


def activated(
    tokens: int | Fraction, experts: int | Fraction, per_token: int | Fraction
) -> Fraction | int:
    """Mean count: experts that tokens activate, E (1 - (1 - k/E)^B) [1].

    Args:
        tokens: B, each of which chooses k distinct experts evenly [1].
        experts: E [1].
        per_token: k [1].
    """
    if per_token >= experts:
        return experts
    if not (
        isinstance(tokens, int) and isinstance(experts, int) and isinstance(per_token, int)
    ):  # between whole numbers, on the same curve
        decay = float(tokens) * math.log1p(-float(per_token) / float(experts))
        return Fraction(float(experts) * -math.expm1(decay))
    if tokens * experts.bit_length() <= EXACT_BITS:
        return experts * (1 - Fraction(experts - per_token, experts) ** tokens)
    used = (1 << FIXED_BITS) - _fixed_power(experts - per_token, experts, tokens)
    return Fraction(experts * used, 1 << FIXED_BITS)


def _fixed_power(numerator: int, denominator: int, exponent: int) -> int:
    """Power: share below 1 to an exponent, in units 2^-512, rounded down.

    Each product is rounded by less than one unit, so that it is short by less than the exponent.
    """
    power, square = 1 << FIXED_BITS, (numerator << FIXED_BITS) // denominator
    while exponent and power:
        if exponent & 1:
            power = power * square >> FIXED_BITS
        square = square * square >> FIXED_BITS
        exponent >>= 1
    return power


def windows(size: int, kernel: int, stride: int, pad: int) -> int:
    """Output positions in a convolution, along one side: (HW + 2 pad - k) // stride + 1 [1]."""
    return (size + 2 * pad - kernel) // stride + 1


def taps(size: int, kernel: int, stride: int, pad: int) -> int:
    """Pairs (output, kernel position) inside the image, along one side [1]."""
    return int(_taps((size, kernel, stride, pad), min, max))


def _taps(image: Sequence[Any], least: Callable[..., Any], most: Callable[..., Any]) -> Any:  # noqa: ANN401, numbers or expressions
    """All pairs but those before the image and those after it, arithmetic series of outputs."""
    size, kernel, stride, pad = image
    count = windows(size, kernel, stride, pad)

    def series(start: Any) -> Any:  # noqa: ANN401, numbers or expressions
        terms = least(count, -(-start // stride))
        return terms * start - stride * (terms * (terms - 1) // 2)

    def outside(start: Any) -> Any:  # noqa: ANN401, numbers or expressions
        return series(most(start, 0)) - series(most(start - kernel, 0))

    end = (count - 1) * stride + kernel
    return count * kernel - outside(pad) - outside(end - size - pad)


def _activated_float(tokens: int, experts: int, per_token: int) -> float | int:
    """Activated experts to the precision of a double; see `activated`."""
    if tokens == 1 or per_token >= experts:
        return min(per_token, experts)
    return experts * -math.expm1(tokens * math.log1p(-per_token / experts))


def _ratio_float(numerator: int, denominator: int) -> float | int:
    """Quotient, exact where it is whole."""
    whole, rest = divmod(numerator, denominator)
    return numerator / denominator if rest else whole


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "half": _half,
    "ratio": _ratio,
    "activated": activated,
    "windows": windows,
    "taps": taps,
}
"""Functions in formulas, on exact numbers."""

QUICK_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **FUNCTIONS,
    "activated": _activated_float,
    "ratio": _ratio_float,
}
"""Functions in formulas, on whole numbers: what is not whole is a float."""


def _expression(value: Any) -> pl.Expr:  # noqa: ANN401, a number or an expression
    """Value as an expression."""
    return value if isinstance(value, pl.Expr) else pl.lit(float(value))


def _expression_least(*values: Any) -> pl.Expr:  # noqa: ANN401, numbers or expressions
    """Minimum as an expression."""
    return pl.min_horizontal([*map(_expression, values)])


def _expression_most(*values: Any) -> pl.Expr:  # noqa: ANN401, numbers or expressions
    """Maximum as an expression."""
    return pl.max_horizontal([*map(_expression, values)])


def _expression_activated(tokens: Any, experts: Any, per_token: Any) -> pl.Expr:  # noqa: ANN401
    """Activated experts as an expression; see `activated`."""
    tokens, experts, per_token = map(_expression, (tokens, experts, per_token))
    half = (tokens * (-per_token / experts).log1p() / 2).tanh()
    used: pl.Expr = experts * (-2 * half / (1 - half))  # 1 - exp(x), without cancellation
    return used


EXPRESSION_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "min": _expression_least,
    "max": _expression_most,
    "half": lambda product: product / 2,
    "ratio": lambda numerator, denominator: numerator / denominator,
    "activated": _expression_activated,
    "windows": windows,
    "taps": lambda *image: _taps(image, _expression_least, _expression_most),
}
"""Functions in formulas, on polars expressions of Float64."""


def factors_of(formula: str) -> Iterator[str]:
    """Factors in a product, as formulas; a sum is one factor."""
    import ast  # noqa: PLC0415, few processes need it

    nodes = [ast.parse(formula, mode="eval").body]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            nodes += [node.left, node.right]
        else:
            yield ast.unparse(node)


EXACT, QUICK, EXPRESSIONS = "exact", "quick", "expressions"

LIBRARIES = {
    EXACT: FUNCTIONS,
    QUICK: QUICK_FUNCTIONS,
    EXPRESSIONS: EXPRESSION_FUNCTIONS,
}
"""Functions in formulas by the values that they take."""


@cache
def names_in(formula: str) -> tuple[str, ...]:
    """Letters and intermediate names in a formula, by first appearance."""
    import ast  # noqa: PLC0415, few processes need it

    nodes = ast.walk(ast.parse(formula, mode="eval"))
    names = (node.id for node in nodes if isinstance(node, ast.Name))
    return tuple(dict.fromkeys(name for name in names if name not in FUNCTIONS))


def with_names(formula: str, replacements: Mapping[str, str]) -> str:
    """Formula with formulas in place of names.

    Args:
        formula: The formula.
        replacements: Formula by name; other names stay.
    """
    import ast  # noqa: PLC0415, few processes need it

    class Replace(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.parse(replacements.get(node.id, node.id), mode="eval").body

    return ast.unparse(Replace().visit(ast.parse(formula, mode="eval")))


def compile_formulas(
    formulas: Sequence[str], steps: Mapping[str, str], arguments: Iterable[str]
) -> Callable[..., tuple[Any, ...]]:
    """Function that computes formulas from letters, on exact numbers.

    Args:
        formulas: The formulas.
        steps: Intermediate names with their formulas, in order.
        arguments: The letters, in argument order.
    """
    return _compiled(tuple(formulas), tuple(steps.items()), tuple(arguments), EXACT)


def compile_quick(
    formulas: Sequence[str], steps: Mapping[str, str], arguments: Iterable[str]
) -> Callable[..., tuple[Any, ...]]:
    """Function that computes formulas quickly, fractions as floats; as `compile_formulas`."""
    return _compiled(tuple(formulas), tuple(steps.items()), tuple(arguments), QUICK)


def compile_expressions(
    formulas: Sequence[str], steps: Mapping[str, str], arguments: Iterable[str]
) -> Callable[..., tuple[Any, ...]]:
    """Function that computes formulas as polars expressions; as `compile_formulas`."""
    return _compiled(tuple(formulas), tuple(steps.items()), tuple(arguments), EXPRESSIONS)


def compile_with(
    functions: Mapping[str, Callable[..., Any]],
    formulas: Sequence[str],
    steps: Mapping[str, str],
    arguments: Iterable[str],
) -> Callable[..., tuple[Any, ...]]:
    """Function that computes formulas on any values; as `compile_formulas`.

    Args:
        functions: The functions in formulas, by name.
        formulas: The formulas.
        steps: Intermediate names with their formulas, in order.
        arguments: The letters, in argument order.
    """
    needed = _needed(formulas, steps)
    body = [f"    {name} = {formula}" for name, formula in steps.items() if name in needed]
    results = "".join(f"{formula}, " for formula in formulas)
    lines = [f"def compute({', '.join(arguments)}):", *body, f"    return ({results})"]
    namespace: dict[str, Any] = dict(functions)
    exec(compile("\n".join(lines), "<formulas>", "exec"), namespace)  # noqa: S102, package data
    compute: Callable[..., tuple[Any, ...]] = namespace["compute"]
    return compute


@cache
def _compiled(
    formulas: tuple[str, ...],
    steps: tuple[tuple[str, str], ...],
    arguments: tuple[str, ...],
    functions: str,
) -> Callable[..., tuple[Any, ...]]:
    return compile_with(LIBRARIES[functions], formulas, dict(steps), arguments)


def _needed(formulas: Iterable[str], steps: Mapping[str, str]) -> set[str]:
    """Intermediate names that formulas need, also through others."""
    names = {name for formula in formulas for name in names_in(formula) if name in steps}
    return reduce(set.union, (_needed([steps[name]], steps) for name in names), names)
