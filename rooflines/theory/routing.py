"""Routing of tokens to experts: how many experts are activated, and which ranks are needed."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

UNIFORM, SAME, ALL = ROUTINGS = ("uniform", "same", "all")
"""Routing of tokens to experts: uniform, by chance; all to the same k; every expert activated."""

MAX_EXACT_TOKENS = 64
"""Largest token count with an exact rational for activated experts: its digits grow [1]."""

DECIMALS = Context(prec=60)
"""Precision beyond `MAX_EXACT_TOKENS`, and for fractional token counts."""


@lru_cache(maxsize=2**14)
def activated_experts(
    experts: int, per_token: int, tokens: int | Fraction, routing: str = UNIFORM
) -> Fraction:
    """Activated experts in one layer, given the tokens in a step [1].

    Args:
        experts: E [1].
        per_token: k [1].
        tokens: Tokens in the step; a replica may have a fractional number [1].
        routing: `uniform`, `same` or `all`.

    Returns:
        uniform: the expectation E (1 - (1 - k/E)^tokens), exact for whole tokens up to
        `MAX_EXACT_TOKENS`, else to `DECIMALS` digits; same: k, the minimum; all: E.
    """
    if routing == SAME:
        return Fraction(per_token)
    if routing == ALL or per_token == experts:
        return Fraction(experts)
    miss_probability = 1 - Fraction(per_token, experts)
    if tokens <= MAX_EXACT_TOKENS and Fraction(tokens).denominator == 1:
        return experts * (1 - miss_probability ** int(tokens))
    base = DECIMALS.divide(
        Decimal(miss_probability.numerator), Decimal(miss_probability.denominator)
    )
    exponent = DECIMALS.divide(Decimal(tokens.numerator), Decimal(tokens.denominator))
    return experts * Fraction(DECIMALS.subtract(Decimal(1), DECIMALS.power(base, exponent)))


def rank_hit_probability(
    experts: int, per_token: int, parts: int, routing: str = UNIFORM, zero_experts: int = 0
) -> Fraction:
    """Probability that a token needs some expert on one given other rank of n equal ranks [1].

    Args:
        experts: E [1].
        per_token: k [1].
        parts: n, ranks that share the experts; where it does not divide E, some hold one more [1].
        routing: `uniform`, `same` or `all`.
        zero_experts: Z, further experts without weights, which no rank needs to have [1].

    Returns:
        uniform: 1 - C(E + Z - E/n, k) / C(E + Z, k), exact, the mean over ranks with floor(E/n)
        and ceil(E/n) experts; same: (ceil(k n / (E + Z)) - 1) / (n - 1), for k experts on as few
        ranks as possible, one being the token's own; all: 1.
    """
    choices = experts + zero_experts
    if routing == ALL or parts == 1:
        return Fraction(1)
    if routing == SAME:
        return Fraction(-(-per_token * parts // choices) - 1, parts - 1)
    fewest, larger = divmod(experts, parts)
    missing_choices = sum(
        ranks * math.comb(choices - slots, per_token)
        for ranks, slots in ((parts - larger, fewest), (larger, fewest + 1))
    )
    return 1 - Fraction(missing_choices, parts * math.comb(choices, per_token))
