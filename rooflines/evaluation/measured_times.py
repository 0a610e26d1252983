"""Measured numbers as times, and times as rates and peak shares: inverse to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.quantities import (
    FLOPS_PER_S,
    HFU,
    MBU,
    MFU,
    PER_CHIP,
    PER_USER,
    TIME,
    TOKENS_PER_S,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.basics.quantities import MeasuredValue

MFU_FULL = "mfu_full"
"""MFU with all token pairs counted in attention."""


class RateWorks(NamedTuple):
    """Works behind rates and utilizations; numbers, or columns with a number for each row.

    Attributes:
        tokens: Tokens in a step, all chips together [1]; None: an operation.
        tokens_per_user: Tokens in a step for one sequence [1]; None: a phase without TPOT.
        chips: Number of chips [1].
        flops: Useful FLOPs in an operation, on one chip [FLOP]; None: a step, which has several.
        mfu: Model FLOPs, causal, over the nominal peak in their compute dtypes [s].
        mfu_full: The same with all token pairs [s]; None: not counted.
        hfu: The same with recomputation [s]; None: an operation.
        mbu: Memory traffic over the nominal bandwidth [s].
    """

    tokens: Any
    tokens_per_user: Any
    chips: Any
    flops: Any
    mfu: Any
    mfu_full: Any
    hfu: Any
    mbu: Any

    def amounts(self) -> Iterator[tuple[str, Any]]:
        """Amounts by kind of measured number; amount / value is a time, amount / time a value."""
        if self.tokens is not None:
            yield TOKENS_PER_S, self.tokens
            yield PER_CHIP, self.tokens / self.chips
        amounts = {PER_USER: self.tokens_per_user, MFU: self.mfu, MFU_FULL: self.mfu_full}
        amounts |= {HFU: self.hfu, MBU: self.mbu, FLOPS_PER_S: self.flops}
        yield from ((kind, amount) for kind, amount in amounts.items() if amount is not None)


def amount_kind(measured: MeasuredValue) -> str:
    """Amount behind a measured rate."""
    return MFU_FULL if measured.full else measured.kind


def measured_seconds(measured: MeasuredValue, works: RateWorks) -> Any:  # noqa: ANN401, a number or a column
    """Measured number as a time [s]; None: there is no such rate.

    t = tokens / (tokens/s) = tokens / chips / (tokens/s/chip) = sequence tokens / (tokens/s/user)
    = model FLOPs / peak / mfu = bytes / bandwidth / mbu.

    Args:
        measured: The number.
        works: Operation or step works.
    """
    if measured.kind == TIME:
        return measured.value
    amount = dict(works.amounts()).get(amount_kind(measured))
    return None if amount is None else amount / measured.value


def measured_rates(time_s: Any, works: RateWorks) -> dict[str, Any]:  # noqa: ANN401, a number or a column
    """Rates and utilizations at a time, by kind: amount / time, as `measured_seconds` has them.

    Args:
        time_s: The time [s].
        works: Operation or step works.
    """
    return {kind: amount / time_s for kind, amount in works.amounts()}
