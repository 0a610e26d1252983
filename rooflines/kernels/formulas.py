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
    from collections.abc import Callable, Iterable, Mapping, Sequence

EXACT_BITS = 4096
"""Bits of the largest power that is kept as an exact fraction [bit]."""

FIXED_BITS = 512
"""Bits behind the point of larger powers: far finer than a double [bit]."""


def _least(first: Any, *more: Any) -> Any:  # noqa: ANN401, numbers or expressions
    """Minimum."""
    return min(first, *more)


def _most(first: Any, *more: Any) -> Any:  # noqa: ANN401, numbers or expressions
    """Maximum."""
    return max(first, *more)


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


@cache
def taps(size: int, kernel: int, stride: int, pad: int) -> int:
    """Pairs (output, kernel position) inside the image, along one side [1]."""
    return sum(
        max(0, min(kernel, size + pad - start) - max(0, pad - start))
        for start in range(0, windows(size, kernel, stride, pad) * stride, stride)
    )


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "min": _least,
    "max": _most,
    "half": _half,
    "ratio": _ratio,
    "activated": activated,
    "windows": windows,
    "taps": taps,
}
"""Functions in formulas, on exact numbers."""


def _expression(value: Any) -> pl.Expr:  # noqa: ANN401, a number or an expression
    """Value as an expression."""
    return value if isinstance(value, pl.Expr) else pl.lit(float(value))


def _expression_activated(tokens: Any, experts: Any, per_token: Any) -> pl.Expr:  # noqa: ANN401
    """Activated experts as an expression; see `activated`."""
    tokens, experts, per_token = map(_expression, (tokens, experts, per_token))
    decay = tokens * (-per_token / experts).log1p()
    small = decay.abs() < 1e-5  # noqa: PLR2004, where 1 - exp cancels
    unused = pl.when(small).then(decay * (1 + decay / 2)).otherwise(decay.exp() - 1)
    used: pl.Expr = experts * pl.when(experts > per_token).then(-unused).otherwise(1.0)
    return used


def _by_rows(function: Callable[..., int]) -> Callable[..., pl.Expr]:
    """Expression that calls a function of whole numbers row by row."""

    def apply(*values: Any) -> pl.Expr:  # noqa: ANN401, numbers or expressions
        columns = [_expression(value).alias(f"#{index}") for index, value in enumerate(values)]
        return pl.struct(columns).map_elements(
            lambda row: float(function(*(int(number) for number in row.values()))),
            return_dtype=pl.Float64,
        )

    return apply


EXPRESSION_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "min": lambda *values: pl.min_horizontal([*map(_expression, values)]),
    "max": lambda *values: pl.max_horizontal([*map(_expression, values)]),
    "half": lambda product: product / 2,
    "ratio": lambda numerator, denominator: numerator / denominator,
    "activated": _expression_activated,
    "windows": _by_rows(windows),
    "taps": _by_rows(taps),
}
"""Functions in formulas, on polars expressions of Float64."""


@cache
def names_in(formula: str) -> tuple[str, ...]:
    """Letters and intermediate names in a formula, by first appearance."""
    import ast  # noqa: PLC0415, few processes need it

    nodes = ast.walk(ast.parse(formula, mode="eval"))
    names = (node.id for node in nodes if isinstance(node, ast.Name))
    return tuple(dict.fromkeys(name for name in names if name not in FUNCTIONS))


def compile_formulas(
    formulas: Sequence[str], steps: Mapping[str, str], arguments: Iterable[str]
) -> Callable[..., tuple[Any, ...]]:
    """Function that computes formulas from letters, on exact numbers.

    Args:
        formulas: The formulas.
        steps: Intermediate names with their formulas, in order.
        arguments: The letters, in argument order.
    """
    return _compiled(tuple(formulas), tuple(steps.items()), tuple(arguments), exact=True)


def compile_expressions(
    formulas: Sequence[str], steps: Mapping[str, str], arguments: Iterable[str]
) -> Callable[..., tuple[Any, ...]]:
    """Function that computes formulas as polars expressions; as `compile_formulas`."""
    return _compiled(tuple(formulas), tuple(steps.items()), tuple(arguments), exact=False)


@cache
def _compiled(
    formulas: tuple[str, ...],
    steps: tuple[tuple[str, str], ...],
    arguments: tuple[str, ...],
    *,
    exact: bool,
) -> Callable[..., tuple[Any, ...]]:
    needed = _needed(formulas, dict(steps))
    body = [f"    {name} = {formula}" for name, formula in steps if name in needed]
    results = "".join(f"{formula}, " for formula in formulas)
    lines = [f"def compute({', '.join(arguments)}):", *body, f"    return ({results})"]
    namespace: dict[str, Any] = dict(FUNCTIONS if exact else EXPRESSION_FUNCTIONS)
    exec(compile("\n".join(lines), "<formulas>", "exec"), namespace)  # noqa: S102, package data
    compute: Callable[..., tuple[Any, ...]] = namespace["compute"]
    return compute


def _needed(formulas: Iterable[str], steps: Mapping[str, str]) -> set[str]:
    """Intermediate names that formulas need, also through others."""
    names = {name for formula in formulas for name in names_in(formula) if name in steps}
    return reduce(set.union, (_needed([steps[name]], steps) for name in names), names)
